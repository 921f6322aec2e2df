//! The class `Reader` and its iterators.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cordwood::{Finding, Findings, OnCorruption, ReadOptions, RecordSpan, Severity, Step};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};

use crate::ahead::{Ahead, Found};
use crate::bytes::new_bytes;
use crate::dialect::{Dialect, dialect_of};
use crate::error::to_python;
use crate::event::{End, Record, SkippedRegion, listed};
use crate::exclusive::Exclusive;
use crate::pack::{Pack, Pool};
use crate::source::{SourceReader, open_reader};

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each reader, and most are open"
)]
enum State {
    Open(Open),
    /// What it has told of stays.
    Closed {
        skipped: Findings,
        end: Option<cordwood::End>,
    },
}

struct Open {
    reader: SourceReader,
    position: u64,
    skipped: Findings,
    end: Option<cordwood::End>,
    /// What a batch met and left to the next step, since it had records to return first.
    met: Option<Next>,
    /// To open it once more, if it is a file or memory of a length that is known.
    source: Option<Py<PyAny>>,
    options: ReadOptions,
}

/// What stands next in the log.
enum Next {
    Record(RecordSpan),
    Skipped(cordwood::SkippedRegion),
    Failed(cordwood::Error),
    /// A signal's handler has raised this.
    Raised(PyErr),
    /// Threads have read ahead: the reader has to go to the position first.
    Elsewhere,
    End,
}

impl Open {
    /// The next record, if it has been found already.
    #[inline]
    fn next_found(&mut self) -> Option<RecordSpan> {
        if self.met.is_some() {
            None
        } else {
            self.reader.next_found()
        }
    }

    /// What comes next, when nothing more has been found: looks on, with the interpreter released. It is not handed out yet.
    fn look(&mut self, py: Python<'_>) -> Next {
        match self.met.take() {
            Some(Next::Elsewhere) => {
                if let Err(failed) = self.come_here(py) {
                    return failed;
                }
            }
            Some(met) => return met,
            None => {}
        }
        while self.end.is_none() {
            // One step and one read at most: a long stretch without a record must not keep Ctrl-C waiting.
            let step = py.detach(|| match self.reader.step_buffered() {
                Ok(Step::NeedMore) => self.reader.fill().map(|()| Step::NeedMore),
                step => step,
            });
            match step {
                Ok(Step::Record(span)) => return Next::Record(span),
                Ok(Step::Skipped(region)) => return Next::Skipped(region),
                Ok(Step::NeedMore) => {
                    if let Err(error) = py.check_signals() {
                        return Next::Raised(error);
                    }
                }
                Ok(Step::End(end)) => {
                    self.end = Some(end);
                    self.position = end.offset();
                }
                Err(error) => return Next::Failed(error),
            }
        }
        Next::End
    }

    /// Goes to the position, to which threads have read ahead.
    fn come_here(&mut self, py: Python<'_>) -> Result<(), Next> {
        let position = self.position;
        let moved = py.detach(|| self.reader.seek(position));
        moved.map_err(|error| {
            self.met = Some(Next::Elsewhere);
            Next::Failed(error)
        })
    }

    /// [`fill`](Self::fill) for `packs`, with what threads have read ahead where they can.
    fn fill_for(&mut self, py: Python<'_>, pack: &mut cordwood::Pack, packs: &Packs) -> Option<Next> {
        if packs.threads == NonZeroUsize::MIN {
            return self.fill(py, pack, packs.len_max);
        }
        let mut ahead = packs.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if self.options.dialect.is_none() {
            match py.detach(|| self.reader.dialect()) {
                Ok(dialect) => self.options.dialect = Some(dialect),
                Err(error) => return Some(Next::Failed(error)),
            }
        }
        let found = match &self.source {
            // One range does not depend on another, and nothing else has met what comes next.
            Some(source)
                if self.options.on_corruption != OnCorruption::Stop
                    && !self.options.dialect.is_some_and(cordwood::Dialect::has_log_numbers)
                    && self.end.is_none()
                    && matches!(self.met, None | Some(Next::Elsewhere)) =>
            {
                ahead.next(
                    source.bind(py),
                    &self.options,
                    self.position,
                    &packs.pool,
                    packs.len_max,
                )
            }
            _ => Ok(None),
        };
        match found {
            Ok(Some(Found::Pack(found))) => {
                self.position = found.end_offset();
                self.met = Some(Next::Elsewhere);
                *pack = found;
                None
            }
            Ok(Some(Found::Skipped(region))) => {
                self.met = Some(Next::Elsewhere);
                Some(Next::Skipped(region))
            }
            Ok(Some(Found::Failed(error))) => {
                self.met = Some(Next::Elsewhere);
                Some(Next::Failed(error))
            }
            Ok(None) => self.fill(py, pack, packs.len_max),
            Err(error) => Some(Next::Raised(error)),
        }
    }

    /// Adds the next records to `pack`, with the interpreter released, until it holds `len_max` bytes or something else comes, which is
    /// returned if there is no record before it.
    fn fill(&mut self, py: Python<'_>, pack: &mut cordwood::Pack, len_max: usize) -> Option<Next> {
        let stopped_by = loop {
            match self.met.take() {
                // What `batches` has left.
                Some(Next::Record(span)) => {
                    pack.push(self.reader.data(span), span);
                    if pack.data().len() >= len_max {
                        self.position = span.end_offset;
                        return None;
                    }
                }
                Some(Next::Elsewhere) => {
                    if let Err(failed) = self.come_here(py) {
                        break failed;
                    }
                }
                Some(other) => break other,
                None => {}
            }
            if self.end.is_some() {
                break Next::End;
            }
            let step = py.detach(|| match self.reader.pack_buffered(pack, len_max) {
                Ok(Step::NeedMore) => self.reader.fill().map(|()| Step::NeedMore),
                step => step,
            });
            match step {
                Ok(Step::Record(span)) => {
                    self.position = span.end_offset;
                    return None;
                }
                Ok(Step::Skipped(region)) => break Next::Skipped(region),
                Ok(Step::NeedMore) => {
                    if let Err(error) = py.check_signals() {
                        break Next::Raised(error);
                    }
                }
                Ok(Step::End(end)) => {
                    self.end = Some(end);
                    self.position = end.offset();
                }
                Err(error) => break Next::Failed(error),
            }
        };
        if pack.is_empty() {
            return Some(stopped_by);
        }
        if !matches!(stopped_by, Next::End) {
            self.position = pack.end_offset();
        }
        self.met = Some(stopped_by);
        None
    }

    /// Hands out a record.
    #[inline]
    fn take(&mut self, py: Python<'_>, span: RecordSpan) -> Py<PyBytes> {
        self.position = span.end_offset;
        new_bytes(py, self.reader.data(span)).unbind()
    }

    fn skip(&mut self, region: cordwood::SkippedRegion) {
        if region.reason.severity() != Severity::TornTail {
            self.position = region.end;
        }
        self.skipped.add(Finding::new(region));
    }
}

/// Reads the records of a log.
#[pyclass(frozen, module = "cordwood")]
pub(crate) struct Reader {
    state: Exclusive<State>,
    path: Option<PathBuf>,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (
        source, *, dialect = None, on_corruption = "raise", start = 0, end = None, verify_checksums = true,
        record_len_max = 1_073_741_824
    ))]
    fn new(
        source: &Bound<'_, PyAny>,
        dialect: Option<&Bound<'_, PyAny>>,
        on_corruption: &str,
        start: u64,
        end: Option<u64>,
        verify_checksums: bool,
        record_len_max: u64,
    ) -> PyResult<Self> {
        let mut options = ReadOptions::default()
            .with_on_corruption(on_corruption_of(on_corruption)?)
            .with_range(start, end)
            .with_verify_checksums(verify_checksums)
            .with_record_len_max(record_len_max);
        options.dialect = dialect_of(dialect)?;
        let (reader, options) = open_reader(source, options)?;
        let path = reader.path().map(Path::to_owned);
        let state = Open {
            source: reader.file_len().map(|_| source.clone().unbind()),
            reader,
            position: start,
            skipped: Findings::default(),
            end: None,
            met: None,
            options,
        };
        Ok(Reader {
            state: Exclusive::new(State::Open(state)),
            path,
        })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        Ok(self.next(py)?.map(|(_, data)| data))
    }

    fn records(slf: Py<Self>, py: Python<'_>) -> PyResult<Records> {
        slf.get().with_state(py, |_| Ok(()))?;
        Ok(Records { reader: slf })
    }

    #[pyo3(signature = (*, len_max = 262_144))]
    fn batches(slf: Py<Self>, py: Python<'_>, len_max: usize) -> PyResult<Batches> {
        slf.get().with_state(py, |_| Ok(()))?;
        Ok(Batches { reader: slf, len_max })
    }

    #[pyo3(signature = (*, len_max = 4_194_304, threads = 1))]
    fn packs(slf: Py<Self>, py: Python<'_>, len_max: usize, threads: usize) -> PyResult<Packs> {
        slf.get().with_state(py, |_| Ok(()))?;
        let threads = threads_of(threads)?;
        Ok(Packs {
            reader: slf,
            len_max,
            threads,
            pool: Arc::new(Pool::new(threads)),
            ahead: Mutex::new(Ahead::new(threads)),
        })
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_state(py, |state| Ok(state.position))
    }

    #[pyo3(signature = (offset, /))]
    fn seek(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.with_state(py, |state| {
            let _owner = self.state.may_run_python();
            py.detach(|| state.reader.seek(offset))
                .map_err(|error| to_python(py, error, self.path.as_deref()))?;
            state.skipped = Findings::default();
            state.end = None;
            state.met = None;
            state.position = offset;
            Ok(())
        })
    }

    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<Vec<SkippedRegion>> {
        self.with_told(py, |skipped, _| listed(skipped))
    }

    #[getter]
    fn skipped_len(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_told(py, |skipped, _| skipped.len())
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<Option<End>> {
        self.with_told(py, |_, end| end.map(End::from))
    }

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Dialect> {
        self.with_state(py, |state| {
            let _owner = self.state.may_run_python();
            let dialect = py.detach(|| state.reader.dialect());
            dialect
                .map(Dialect)
                .map_err(|error| to_python(py, error, self.path.as_deref()))
        })
    }

    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(*self.state.lock(py)?, State::Closed { .. }))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        let closed = match &mut *state {
            State::Open(open) => State::Closed {
                skipped: std::mem::take(&mut open.skipped),
                end: open.end,
            },
            State::Closed { .. } => return Ok(()),
        };
        let open = std::mem::replace(&mut *state, closed);
        // Dropped without the lock: letting go of a Python object may run Python code.
        drop(state);
        drop(open);
        Ok(())
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().with_state(py, |_| Ok(()))?;
        Ok(slf)
    }

    #[pyo3(signature = (_exc_type, _exc, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exc_type: &Bound<'_, PyAny>,
        _exc: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        match &self.path {
            Some(path) => format!("<cordwood.Reader of {:?}>", path.display().to_string()),
            None => "<cordwood.Reader>".to_owned(),
        }
    }
}

impl Reader {
    #[inline]
    fn with_state<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut Open) -> PyResult<T>) -> PyResult<T> {
        match &mut *self.state.lock(py)? {
            State::Open(state) => use_it(state),
            State::Closed { .. } => Err(PyValueError::new_err("the reader is closed")),
        }
    }

    /// What has been told of, also by a reader that is closed.
    fn with_told<T>(&self, py: Python<'_>, use_it: impl FnOnce(&Findings, Option<cordwood::End>) -> T) -> PyResult<T> {
        Ok(match &*self.state.lock(py)? {
            State::Open(Open { skipped, end, .. }) | State::Closed { skipped, end } => use_it(skipped, *end),
        })
    }

    /// The next record, if it has been found already and nobody else uses the reader.
    #[cfg(not(feature = "abi3"))]
    #[inline]
    pub(crate) fn next_found(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        match &mut *self.state.try_lock()? {
            State::Open(state) => state.next_found().map(|span| state.take(py, span)),
            State::Closed { .. } => None,
        }
    }

    /// The next record.
    #[inline]
    fn next(&self, py: Python<'_>) -> PyResult<Option<(RecordSpan, Py<PyBytes>)>> {
        let found = self.with_state(py, |state| {
            Ok(state.next_found().map(|span| (span, state.take(py, span))))
        })?;
        if found.is_some() { Ok(found) } else { self.look(py) }
    }

    /// The next record, if none has been found yet.
    fn look(&self, py: Python<'_>) -> PyResult<Option<(RecordSpan, Py<PyBytes>)>> {
        self.find(py, |state| match state.look(py) {
            Next::Record(span) => Ok((span, state.take(py, span))),
            other => Err(other),
        })
    }

    /// What `find_it` finds, or `None` at the end. What it meets before is told or raised, once others may use the reader again.
    fn find<T>(&self, py: Python<'_>, mut find_it: impl FnMut(&mut Open) -> Result<T, Next>) -> PyResult<Option<T>> {
        loop {
            let (found, is_listed) = self.with_state(py, |state| {
                let _owner = self.state.may_run_python();
                let found = find_it(state);
                let is_listed = !state.skipped.is_full();
                if let Err(Next::Skipped(region) | Next::Failed(cordwood::Error::Corruption { region, .. })) = found {
                    state.skip(region);
                }
                Ok((found, is_listed))
            })?;
            match found {
                Ok(found) => return Ok(Some(found)),
                // Damage that nobody else will tell of.
                Err(Next::Skipped(region)) if is_listed && region.reason.severity() == Severity::Corruption => {
                    log_skipped(py, region, self.path.as_deref())?;
                }
                Err(Next::Skipped(_)) => {}
                Err(Next::Raised(error)) => return Err(error),
                Err(Next::Failed(error)) => return Err(to_python(py, error, self.path.as_deref())),
                Err(Next::End | Next::Record(_) | Next::Elsewhere) => return Ok(None),
            }
        }
    }

    /// Records with at least `len_max` bytes together; fewer before the end or before what is to be said or raised; `None` at the end.
    fn pack(&self, py: Python<'_>, packs: &Packs) -> PyResult<Option<Pack>> {
        let mut pack = packs.pool.take();
        let found = self.find(py, |state| state.fill_for(py, &mut pack, packs).map_or(Ok(()), Err))?;
        Ok(found.map(|()| Pack::new(pack, Arc::clone(&packs.pool))))
    }

    /// Records with at most `len_max` bytes together, or one longer one; fewer before the end or before what is to be said or
    /// raised; none at the end.
    fn batch(&self, py: Python<'_>, len_max: usize) -> PyResult<Vec<Py<PyBytes>>> {
        let mut records = Vec::new();
        let Some((_, first)) = self.next(py)? else {
            return Ok(records);
        };
        let mut len = first.as_bytes(py).len();
        records.push(first);
        self.with_state(py, |state| {
            let _owner = self.state.may_run_python();
            loop {
                let next = match state.next_found() {
                    Some(span) => Next::Record(span),
                    None => state.look(py),
                };
                let span = match next {
                    Next::Record(span) if len + state.reader.data(span).len() <= len_max => span,
                    other => {
                        state.met = Some(other);
                        return Ok(());
                    }
                };
                len += state.reader.data(span).len();
                records.push(state.take(py, span));
            }
        })?;
        Ok(records)
    }
}

/// A number of threads.
pub(crate) fn threads_of(threads: usize) -> PyResult<NonZeroUsize> {
    NonZeroUsize::new(threads).ok_or_else(|| PyValueError::new_err("threads must be at least 1"))
}

/// The policy of that name.
pub(crate) fn on_corruption_of(name: &str) -> PyResult<OnCorruption> {
    match name {
        "raise" => Ok(OnCorruption::Raise),
        "skip" => Ok(OnCorruption::Skip),
        "stop" => Ok(OnCorruption::Stop),
        "salvage" => Ok(OnCorruption::Salvage),
        other => Err(PyValueError::new_err(format!(
            "on_corruption must be 'raise', 'skip', 'stop' or 'salvage', not '{other}'"
        ))),
    }
}

/// Tells the logger of damage. It is not told of what is not listed: a hostile file must not flood the log.
pub(crate) fn log_skipped(py: Python<'_>, region: cordwood::SkippedRegion, path: Option<&Path>) -> PyResult<()> {
    static LOG_SKIPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOG_SKIPPED
        .import(py, "cordwood._log", "log_skipped")?
        .call1((SkippedRegion::from(region), path.map(Path::as_os_str)))
        .map(drop)
}

/// What `Reader.records` returns.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Records {
    reader: Py<Reader>,
}

#[pymethods]
impl Records {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let next = self.reader.get().next(py)?;
        Ok(next.map(|(span, data)| Record {
            offset: span.offset,
            end_offset: span.end_offset,
            data,
            salvaged: span.is_salvaged,
        }))
    }
}

/// What `Reader.batches` returns.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Batches {
    reader: Py<Reader>,
    len_max: usize,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let records = self.reader.get().batch(py, self.len_max)?;
        // Made without the lock: a new list may start the garbage collector, and that Python code.
        if records.is_empty() {
            Ok(None)
        } else {
            PyList::new(py, records).map(Some)
        }
    }
}

/// What `Reader.packs` returns.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Packs {
    reader: Py<Reader>,
    len_max: usize,
    threads: NonZeroUsize,
    pool: Arc<Pool>,
    /// Locked only by who has locked the reader.
    ahead: Mutex<Ahead>,
}

#[pymethods]
impl Packs {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Pack>> {
        self.reader.get().pack(py, self)
    }
}
