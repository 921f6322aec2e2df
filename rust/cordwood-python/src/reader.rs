//! The class `Reader` and its iterators.

use std::collections::VecDeque;

use cordwood::{OnCorruption, ReadOptions, RecordSpan, Severity, Step, StreamSource};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};

use crate::error::to_python;
use crate::event::{End, Record, SkippedRegion};
use crate::exclusive::Exclusive;
use crate::source::{Input, Opened, open};

/// Bytes of the file that are decoded at a time with the interpreter released: they stay in the processor's cache until their records
/// are taken.
const BATCH_LEN: u64 = 128 << 10;

/// What has been decoded and not yet been taken.
enum Item {
    Record(RecordSpan),
    Skipped(cordwood::SkippedRegion),
    Failed(cordwood::Error),
}

/// What a step gives, made while nobody else may use the reader.
enum Taken {
    Record(RecordSpan, Py<PyBytes>),
    /// Damage that nobody else will tell of.
    Skipped(cordwood::SkippedRegion),
    Failed(cordwood::Error),
    End,
}

struct State {
    reader: cordwood::Reader<StreamSource<Box<dyn Input>>>,
    items: VecDeque<Item>,
    position: u64,
    skipped: Vec<cordwood::SkippedRegion>,
    end: Option<cordwood::End>,
}

impl State {
    /// Decodes some more, reading at most once. Returns whether there is nothing more.
    fn decode(&mut self) -> bool {
        let mut begin = None;
        loop {
            match self.reader.step_buffered() {
                Ok(Step::Record(span)) => {
                    self.items.push_back(Item::Record(span));
                    // The bytes of a record in pieces are there only until the next step.
                    if span.is_joined || span.end_offset - *begin.get_or_insert(span.offset) >= BATCH_LEN {
                        return false;
                    }
                }
                Ok(Step::Skipped(region)) => {
                    self.items.push_back(Item::Skipped(region));
                    if region.end - *begin.get_or_insert(region.begin) >= BATCH_LEN {
                        return false;
                    }
                }
                Ok(Step::NeedMore) => {
                    // Reading on would move the bytes of the records that wait to be taken.
                    if self.items.is_empty()
                        && let Err(error) = self.reader.fill()
                    {
                        self.items.push_back(Item::Failed(error));
                    }
                    return false;
                }
                Ok(Step::End(_)) => return true,
                Err(error) => {
                    self.items.push_back(Item::Failed(error));
                    return false;
                }
            }
        }
    }

    /// The next thing to hand out. Decodes when there is none.
    #[inline]
    fn take(&mut self, py: Python<'_>) -> PyResult<Taken> {
        loop {
            match self.items.pop_front() {
                Some(Item::Record(span)) => {
                    self.position = span.end_offset;
                    return Ok(Taken::Record(span, PyBytes::new(py, self.reader.data(span)).unbind()));
                }
                Some(Item::Skipped(region)) => {
                    self.skip(region);
                    if region.reason.severity() == Severity::Corruption {
                        return Ok(Taken::Skipped(region));
                    }
                }
                Some(Item::Failed(error)) => {
                    if let cordwood::Error::Corruption { region, .. } = error {
                        self.skip(region);
                    }
                    return Ok(Taken::Failed(error));
                }
                None if self.end.is_some() => return Ok(Taken::End),
                None => {
                    // A long stretch without a record must not keep Ctrl-C waiting.
                    py.check_signals()?;
                    if py.detach(|| self.decode()) && self.items.is_empty() {
                        self.end = self.reader.end();
                        self.position = self.end.map_or(self.position, cordwood::End::offset);
                    }
                }
            }
        }
    }

    fn skip(&mut self, region: cordwood::SkippedRegion) {
        if region.reason.severity() != Severity::TornTail {
            self.position = region.end;
        }
        match self.skipped.last_mut() {
            Some(last) if last.joined(region).is_some() => *last = last.joined(region).unwrap_or(region),
            _ => self.skipped.push(region),
        }
    }
}

/// Reads the records of a log.
#[pyclass(frozen, module = "cordwood")]
pub(crate) struct Reader {
    /// `None` once it is closed.
    state: Exclusive<Option<State>>,
    path: Option<String>,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (
        source, *, on_corruption = "raise", start = 0, end = None, verify_checksums = true, record_len_max = 1_073_741_824
    ))]
    fn new(
        source: &Bound<'_, PyAny>,
        on_corruption: &str,
        start: u64,
        end: Option<u64>,
        verify_checksums: bool,
        record_len_max: u64,
    ) -> PyResult<Self> {
        let options = ReadOptions::default()
            .with_on_corruption(on_corruption_of(on_corruption)?)
            .with_range(start, end)
            .with_verify_checksums(verify_checksums)
            .with_record_len_max(record_len_max);
        let Opened { source, path } = open(source, start)?;
        let reader = cordwood::Reader::with_source(source, options);
        let state = State {
            reader,
            items: VecDeque::new(),
            position: start,
            skipped: Vec::new(),
            end: None,
        };
        Ok(Reader {
            state: Exclusive::new(Some(state)),
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

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_state(py, |state| Ok(state.position))
    }

    #[pyo3(signature = (offset, /))]
    fn seek(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.with_state(py, |state| {
            py.detach(|| state.reader.seek(offset))
                .map_err(|error| to_python(py, error, self.path.as_deref()))?;
            state.items.clear();
            state.skipped.clear();
            state.end = None;
            state.position = offset;
            Ok(())
        })
    }

    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<Vec<SkippedRegion>> {
        self.with_state(py, |state| {
            Ok(state.skipped.iter().copied().map(SkippedRegion).collect())
        })
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<Option<End>> {
        self.with_state(py, |state| Ok(state.end.map(End::from)))
    }

    #[getter]
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.lock(py)?.is_none())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.state.lock(py)?.take();
        // Dropped without the lock: letting go of a Python object may run Python code.
        drop(state);
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
            Some(path) => format!("<cordwood.Reader of {path:?}>"),
            None => "<cordwood.Reader>".to_owned(),
        }
    }
}

impl Reader {
    fn with_state<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut State) -> PyResult<T>) -> PyResult<T> {
        match self.state.lock(py)?.as_mut() {
            Some(state) => use_it(state),
            None => Err(PyValueError::new_err("the reader is closed")),
        }
    }

    /// The next record. What is to be said or raised is, once others may use the reader again.
    #[inline]
    fn next(&self, py: Python<'_>) -> PyResult<Option<(RecordSpan, Py<PyBytes>)>> {
        loop {
            match self.with_state(py, |state| state.take(py))? {
                Taken::Record(span, data) => return Ok(Some((span, data))),
                Taken::Skipped(region) => log_skipped(py, region, self.path.as_deref())?,
                Taken::Failed(error) => return Err(to_python(py, error, self.path.as_deref())),
                Taken::End => return Ok(None),
            }
        }
    }
}

/// The policy of that name.
pub(crate) fn on_corruption_of(name: &str) -> PyResult<OnCorruption> {
    match name {
        "raise" => Ok(OnCorruption::Raise),
        "skip" => Ok(OnCorruption::Skip),
        "stop" => Ok(OnCorruption::Stop),
        other => Err(PyValueError::new_err(format!(
            "on_corruption must be 'raise', 'skip' or 'stop', not '{other}'"
        ))),
    }
}

pub(crate) fn log_skipped(py: Python<'_>, region: cordwood::SkippedRegion, path: Option<&str>) -> PyResult<()> {
    static LOG_SKIPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOG_SKIPPED
        .import(py, "cordwood._log", "log_skipped")?
        .call1((SkippedRegion(region), path))
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

    /// A list ends early where something must be raised; that is raised by the next step.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let reader = self.reader.get();
        let mut records = Vec::new();
        let mut len = 0;
        while let Some((_, data)) = reader.next(py)? {
            len += data.as_bytes(py).len();
            records.push(data);
            if !reader.has_next_within(py, self.len_max.saturating_sub(len))? {
                break;
            }
        }
        // Made without the lock: a new list may start the garbage collector, and that Python code.
        if records.is_empty() {
            Ok(None)
        } else {
            PyList::new(py, records).map(Some)
        }
    }
}

impl Reader {
    /// Whether a record of at most `len` bytes, or nothing yet, is what would be taken next.
    fn has_next_within(&self, py: Python<'_>, len: usize) -> PyResult<bool> {
        self.with_state(py, |state| {
            Ok(match state.items.front() {
                Some(Item::Record(span)) => state.reader.data(*span).len() <= len,
                Some(Item::Skipped(_)) => true,
                Some(Item::Failed(_)) => false,
                None => false,
            })
        })
    }
}
