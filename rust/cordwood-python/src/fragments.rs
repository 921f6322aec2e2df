//! The function `fragments`, its iterator and the class `Fragment`; and `runs`, what the picture of a long log is made of.

use std::io::{self, Read, SeekFrom};
use std::path::PathBuf;
use std::vec;

use cordwood::{OnCorruption, ReadOptions, Reader, StreamSource, verbs};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::dialect::dialect_of;
use crate::error::to_python;
use crate::event::{reason_object, severity_object};
use crate::exclusive::Exclusive;
use crate::reader::is_interrupt_of_source;
use crate::source::{Input, InputSource, Opened, Referent, open, source_at, unsupported};

/// Fragments that are found at a time, with the interpreter released.
const BATCH_MAX: usize = 512;

/// A fragment, or a stretch of a block that is none.
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Fragment(verbs::Fragment);

#[pymethods]
impl Fragment {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "name")
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    #[getter]
    fn end_offset(&self) -> u64 {
        self.0.end_offset
    }

    #[getter]
    fn block(&self) -> u64 {
        self.0.block
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        name_object(py, self.0.name)
    }

    #[getter]
    fn kind(&self) -> Option<u8> {
        self.0.kind
    }

    #[getter]
    fn payload_len(&self) -> Option<u16> {
        self.0.payload_len
    }

    #[getter]
    fn stored(&self) -> Option<u32> {
        self.0.stored
    }

    #[getter]
    fn computed(&self) -> Option<u32> {
        self.0.computed
    }

    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.0.log_number
    }

    #[getter]
    fn synced_offset(&self) -> Option<u64> {
        self.0.synced_offset
    }

    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reason = self.0.reason.map(|reason| reason_object(py, reason.as_str()));
        reason.transpose()
    }

    #[getter]
    fn severity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let severity = self.0.reason.map(|reason| severity_object(py, reason.severity()));
        severity.transpose()
    }

    #[getter]
    fn record_offset(&self) -> Option<u64> {
        self.0.record_offset
    }

    #[getter]
    fn salvaged(&self) -> bool {
        self.0.is_salvaged
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.end_offset - self.0.offset).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let verbs::Fragment {
            offset,
            end_offset,
            name,
            reason,
            ..
        } = self.0;
        let reason = reason.map(|reason| format!(", reason='{}'", reason.as_str()));
        format!(
            "Fragment(offset={offset}, end_offset={end_offset}, name='{}'{})",
            name.as_str(),
            reason.unwrap_or_default()
        )
    }
}

/// The member of `cordwood.types.FragmentName`.
fn name_object(py: Python<'_>, name: cordwood::FragmentName) -> PyResult<Bound<'_, PyAny>> {
    static NAME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    NAME.import(py, "cordwood.types", "FragmentName")?
        .call1((name.as_str(),))
}

/// Takes a log apart.
#[pyfunction]
#[pyo3(signature = (source, *, dialect = None))]
pub(crate) fn fragments(source: &Bound<'_, PyAny>, dialect: Option<&Bound<'_, PyAny>>) -> PyResult<Fragments> {
    Ok(Fragments(Exclusive::new(Some(Batches::open(source, dialect)?))))
}

/// Iterates over the fragments of a log.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct Fragments(Exclusive<Option<Batches>>);

#[pymethods]
impl Fragments {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Fragment>> {
        let mut state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let Some(batches) = &mut *state else { return Ok(None) };
        Ok(batches.next(py)?.map(Fragment))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Who uses it now holds it, and so all that it refers to.
        match self.0.try_lock().as_deref() {
            Some(Some(batches)) => batches.traverse(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let cleared = self.0.try_lock().and_then(|mut state| state.take());
        drop(cleared);
    }
}

/// Fragments one behind the other that are of the same name and have the same reason, as one.
#[pyfunction]
#[pyo3(signature = (source, *, dialect = None))]
pub(crate) fn runs(source: &Bound<'_, PyAny>, dialect: Option<&Bound<'_, PyAny>>) -> PyResult<Runs> {
    Ok(Runs(Exclusive::new(Some((Batches::open(source, dialect)?, None)))))
}

/// Iterates over runs: offset, end offset, name, reason, severity, number of fragments. A run does not cross the end of a block.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct Runs(Exclusive<Option<(Batches, Option<verbs::Fragment>)>>);

type Run = (u64, u64, &'static str, Option<&'static str>, Option<&'static str>, u64);

#[pymethods]
impl Runs {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Run>> {
        let mut state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let Some((batches, met)) = &mut *state else {
            return Ok(None);
        };
        let first = match met.take() {
            Some(first) => first,
            None => match batches.next(py)? {
                Some(first) => first,
                None => return Ok(None),
            },
        };
        let reason = first.reason.map(cordwood::Reason::as_str);
        let (mut end, mut count) = (first.end_offset, 1);
        while let Some(next) = batches.next(py)? {
            let next_reason = next.reason.map(cordwood::Reason::as_str);
            if (next.block, next.name, next_reason) != (first.block, first.name, reason) {
                *met = Some(next);
                break;
            }
            end = next.end_offset;
            count += 1;
        }
        let severity = first.reason.map(|reason| reason.severity().as_str());
        Ok(Some((first.offset, end, first.name.as_str(), reason, severity, count)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock().as_deref() {
            Some(Some((batches, _))) => batches.traverse(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let cleared = self.0.try_lock().and_then(|mut state| state.take());
        drop(cleared);
    }
}

/// One of two that read the same source.
struct Half {
    input: Box<dyn Input>,
    /// Where it stands, if the other one moves the same object.
    position: Option<u64>,
}

impl Read for Half {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(position) = &mut self.position else {
            return self.input.read(buffer);
        };
        self.input.seek(SeekFrom::Start(*position))?;
        let len = self.input.read(buffer)?;
        *position += len as u64;
        Ok(len)
    }
}

/// Finds fragments, many at a time.
struct Batches {
    fragments: verbs::Fragments<StreamSource<Half>>,
    path: Option<PathBuf>,
    referents: [Option<Referent>; 2],
    found: vec::IntoIter<verbs::Fragment>,
    /// What came behind those that were found.
    failed: Option<cordwood::Error>,
}

impl Batches {
    fn open(source: &Bound<'_, PyAny>, dialect: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
        options.dialect = dialect_of(dialect)?;
        let Opened {
            source: ahead,
            path,
            referent,
        } = open(source, 0)?;
        // A file or a buffer can be read at two positions, unless it is a pipe; an object is shared.
        let another = ahead.get_ref().another();
        let is_shared = another.is_none();
        if is_shared && path.is_some() {
            return Err(unsupported(source.py(), "the source cannot seek"));
        }
        let (behind, also_referent) = match another {
            Some(input) => (source_at(input, 0)?, None),
            None => {
                let Opened { source, referent, .. } = open(source, 0)?;
                (source, referent)
            }
        };
        let half = |source: InputSource| {
            source.map(|input| Half {
                input,
                position: is_shared.then_some(0),
            })
        };
        let reader = Reader::with_source(half(ahead), options).with_path(path.clone());
        Ok(Batches {
            fragments: verbs::fragments(reader, half(behind)),
            path,
            referents: [referent, also_referent],
            found: Vec::new().into_iter(),
            failed: None,
        })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.referents
            .iter()
            .flatten()
            .try_for_each(|referent| visit.call(referent.as_ref()))
    }

    #[inline]
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<verbs::Fragment>> {
        match self.found.next() {
            Some(fragment) => Ok(Some(fragment)),
            None => self.find(py),
        }
    }

    fn find(&mut self, py: Python<'_>) -> PyResult<Option<verbs::Fragment>> {
        if self.failed.is_none() {
            py.check_signals()?;
            let mut found = Vec::with_capacity(BATCH_MAX);
            let (fragments, failed) = (&mut self.fragments, &mut self.failed);
            py.detach(|| {
                while found.len() < BATCH_MAX {
                    match fragments.next().transpose() {
                        Ok(Some(fragment)) => found.push(fragment),
                        Ok(None) => break,
                        Err(error) => {
                            *failed = Some(error);
                            break;
                        }
                    }
                }
            });
            self.found = found.into_iter();
        }
        // Ctrl-C is raised at once. What was found comes with the next step.
        let is_interrupt = |error: &mut cordwood::Error| match error {
            cordwood::Error::Io { source, .. } => is_interrupt_of_source(py, source),
            _ => false,
        };
        if let Some(error) = self.failed.take_if(is_interrupt) {
            return Err(to_python(py, error, self.path.as_deref()));
        }
        match (
            self.found.next(),
            self.failed.take_if(|_| self.found.as_slice().is_empty()),
        ) {
            (Some(fragment), failed) => {
                self.failed = failed;
                Ok(Some(fragment))
            }
            (None, Some(error)) => Err(to_python(py, error, self.path.as_deref())),
            (None, None) => Ok(None),
        }
    }
}
