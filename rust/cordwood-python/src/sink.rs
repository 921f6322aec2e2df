//! An object with `write`, as [`Write`].

use std::io::{self, Write};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::buffer::new_bytes;
use crate::error::unsupported;

/// An object with `write`.
pub(crate) struct ObjectOutput(pub(crate) Py<PyAny>);

impl ObjectOutput {
    fn fileno<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.bind(py).getattr_opt(intern!(py, "fileno"))? {
            Some(fileno) => fileno.call0(),
            None => Err(unsupported(py, "the sink has no file descriptor to sync")),
        }
    }
}

/// Calls the object. A writer may be dropped after the interpreter has shut down.
fn call<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    match Python::try_attach(work) {
        Some(done) => done.map_err(io::Error::from),
        None => Err(io::Error::other("the interpreter has ended")),
    }
}

impl Write for ObjectOutput {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        call(|py| {
            let answer = self.0.bind(py).call_method1(
                intern!(py, "write"),
                (new_bytes(py, buffer).ok_or_else(|| PyErr::fetch(py))?,),
            )?;
            if answer.is_none() {
                return Ok(buffer.len());
            }
            let written = answer.extract()?;
            if written > buffer.len() {
                let message = format!("write() of {} bytes said that it wrote {written}", buffer.len());
                return Err(PyValueError::new_err(message));
            }
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        call(|py| match self.0.bind(py).getattr_opt(intern!(py, "flush"))? {
            Some(flush) => flush.call0().map(drop),
            None => Ok(()),
        })
    }
}

impl ObjectOutput {
    /// Fails if the object can never be synced.
    pub(crate) fn check_sync(&self) -> io::Result<()> {
        Python::attach(|py| self.fileno(py).map(drop)).map_err(io::Error::from)
    }

    /// Waits until everything written is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let sync = |py: Python<'_>| py.import("os")?.call_method1("fsync", (self.fileno(py)?,)).map(drop);
        Python::attach(sync).map_err(io::Error::from)
    }
}
