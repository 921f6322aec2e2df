//! The class `Writer`.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use cordwood::BLOCK_LEN;
use pyo3::exceptions::{PyResourceWarning, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::error::{os_error, to_python};
use crate::exclusive::Exclusive;
use crate::source::{ObjectOutput, Output, bytes_of, path_of, refuse_text};

/// From so many bytes on that wait to be written, `append` releases the interpreter: the buffer is about to be written out.
const DETACH_LEN: usize = (1 << 20) - BLOCK_LEN;

/// What `extend` takes before it appends: little enough to stay in the processor's cache.
const BATCH_LEN: usize = 128 << 10;
const BATCH_COUNT: usize = 1024;

struct State {
    writer: cordwood::Writer<Box<dyn Output>>,
    durable_offset: u64,
}

impl State {
    #[inline]
    fn append(&mut self, py: Python<'_>, record: &[u8]) -> io::Result<u64> {
        if self.writer.buffered_len() + record.len() >= DETACH_LEN {
            py.detach(|| self.writer.append(record))
        } else {
            self.writer.append(record)
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.writer.has_failed() {
            self.writer.get_mut().check_sync()?;
        }
        self.writer.sync_with(|sink| sink.sync())?;
        self.durable_offset = self.writer.offset();
        Ok(())
    }
}

/// Writes records to a log.
#[pyclass(frozen, module = "cordwood")]
pub(crate) struct Writer {
    /// `None` once it is closed.
    state: Exclusive<Option<State>>,
    path: Option<PathBuf>,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (sink, mode = "x"))]
    fn new(sink: &Bound<'_, PyAny>, mode: &str) -> PyResult<Self> {
        let py = sink.py();
        let mut options = OpenOptions::new();
        match mode {
            "x" => options.write(true).create_new(true),
            "w" => options.write(true).create(true).truncate(true),
            "a" => options.append(true).create(true),
            other => {
                return Err(PyValueError::new_err(format!(
                    "mode must be 'r', 'w', 'x' or 'a' to open a log, not '{other}'"
                )));
            }
        };
        let (writer, path) = if let Some(path) = path_of(sink)? {
            let opened = py.detach(|| open(&path, &options, mode == "a"));
            (opened.map_err(|error| to_python(py, error, Some(&path)))?, Some(path))
        } else if !sink.hasattr(intern!(py, "write"))? {
            let name = sink.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "sink must be a path or an object with write(data), not {name}"
            )));
        } else if mode == "a" {
            return Err(PyValueError::new_err(
                "mode 'a' needs a path: the log has to be read before it is appended to",
            ));
        } else {
            refuse_text(sink)?;
            let output: Box<dyn Output> = Box::new(ObjectOutput(sink.clone().unbind()));
            (cordwood::Writer::new(output), None)
        };
        let durable_offset = 0;
        Ok(Writer {
            state: Exclusive::new(Some(State { writer, durable_offset })),
            path,
        })
    }

    #[pyo3(signature = (record, /))]
    fn append(&self, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = record.py();
        if let Ok(bytes) = record.cast::<PyBytes>() {
            return self.with_state(py, |state| state.append(py, bytes.as_bytes()));
        }
        let copy = bytes_of(record)?;
        self.with_state(py, |state| state.append(py, &copy))
    }

    #[pyo3(signature = (records, /))]
    fn extend(&self, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = records.py();
        let mut records = records.try_iter()?;
        let mut count = 0;
        loop {
            // Taken from the iterable without the lock, since that runs Python code; then appended in one go.
            let mut batch = Batch::default();
            let taken = batch.take_from(&mut records);
            if !batch.records.is_empty() {
                let slices: Vec<&[u8]> = batch.records.iter().map(|record| record.as_bytes()).collect();
                self.with_state(py, |state| {
                    py.detach(|| {
                        slices
                            .iter()
                            .try_for_each(|record| state.writer.append(record).map(drop))
                    })
                })?;
                count += slices.len() as u64;
            }
            if taken? {
                return Ok(count);
            }
        }
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_state(py, |state| Ok(state.writer.offset()))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with_state(py, |state| py.detach(|| state.writer.flush()))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with_state(py, |state| py.detach(|| state.sync()))
    }

    #[getter]
    fn durable_offset(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_state(py, |state| Ok(state.durable_offset))
    }

    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.state.lock(py)?.is_none())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut state) = self.state.lock(py)?.take() else {
            return Ok(());
        };
        py.detach(|| state.writer.flush())
            .map_err(|error| os_error(error, self.path.as_deref()))
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().with_state(py, |_| Ok(()))?;
        Ok(slf)
    }

    #[pyo3(signature = (exc_type, _exc, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let had_failed = self
            .state
            .lock(py)?
            .as_ref()
            .is_some_and(|state| state.writer.has_failed());
        match self.close(py) {
            // What failed has been raised already, and is on its way.
            Err(_) if had_failed && !exc_type.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        match &self.path {
            Some(path) => format!("<cordwood.Writer of {:?}>", path.display().to_string()),
            None => "<cordwood.Writer>".to_owned(),
        }
    }
}

impl Writer {
    #[inline]
    fn with_state<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut State) -> io::Result<T>) -> PyResult<T> {
        let mut state = self.state.lock(py)?;
        let _owner = self.state.may_run_python();
        match state.as_mut() {
            Some(state) => use_it(state).map_err(|error| os_error(error, self.path.as_deref())),
            None => Err(PyValueError::new_err("the writer is closed")),
        }
    }
}

/// Records that `extend` appends in one go, with the interpreter released.
#[derive(Default)]
struct Batch<'py> {
    records: Vec<Bound<'py, PyBytes>>,
    len: usize,
}

impl<'py> Batch<'py> {
    /// Takes some records, and says whether there are no more. If taking one fails, those before are there.
    fn take_from(&mut self, records: &mut Bound<'py, PyIterator>) -> PyResult<bool> {
        while self.len < BATCH_LEN && self.records.len() < BATCH_COUNT {
            let Some(record) = records.next() else { return Ok(true) };
            let record = record?;
            let bytes = match record.cast_into::<PyBytes>() {
                Ok(bytes) => bytes,
                Err(other) => PyBytes::new(records.py(), &bytes_of(&other.into_inner())?),
            };
            self.len += bytes.as_bytes().len();
            self.records.push(bytes);
        }
        Ok(false)
    }
}

/// A writer that nobody closed writes what it has, as Python's own files do, and says so.
impl Drop for Writer {
    fn drop(&mut self) {
        let Some(mut state) = self.state.get_mut().take() else {
            return;
        };
        let repr = self.__repr__();
        let path = self.path.as_deref();
        // At the very end of the interpreter there is nobody left to warn.
        let _ = Python::try_attach(|py| {
            let flushed = state.writer.flush().map_err(|error| os_error(error, path));
            let message = format!("unclosed writer {repr}\0");
            let warned = std::ffi::CStr::from_bytes_until_nul(message.as_bytes()).map_or(Ok(()), |message| {
                PyErr::warn(py, &py.get_type::<PyResourceWarning>(), message, 1)
            });
            for error in [flushed, warned].into_iter().filter_map(Result::err) {
                error.write_unraisable(py, None);
            }
        });
    }
}

fn open(
    path: &Path,
    options: &OpenOptions,
    appends: bool,
) -> Result<cordwood::Writer<Box<dyn Output>>, cordwood::Error> {
    let file = options.open(path).map_err(|source| cordwood::Error::Io {
        path: Some(path.to_owned()),
        source,
    })?;
    let offset = if appends { cordwood::append_offset(path)? } else { 0 };
    Ok(cordwood::Writer::with_len(Box::new(file), offset))
}
