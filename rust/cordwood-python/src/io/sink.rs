//! Lets an object with `write` be used as a [`Sink`].

use std::io::{self, Write};
use std::sync::Arc;

use cordwood::write::Sink;
use pyo3::exceptions::{PyBlockingIOError, PyValueError};
use pyo3::prelude::*;

use crate::interpreter::python_code::{Held, PythonCode};
use crate::interpreter::{imported, interned};
use crate::memory::buffer::{Shared, new_tuple, view_of_shared};
use crate::values::error::{call_python, check_signals_anywhere, unsupported};

/// An object with `write`.
pub(crate) struct ObjectOutput(pub(crate) Held);

impl ObjectOutput {
    fn fileno<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.bind(py).attribute(interned!(py, "fileno")?)? {
            Some(fileno) => fileno.run(()),
            None => Err(unsupported(py, "the sink has no file descriptor to sync")),
        }
    }

    /// Fails if the object can never be synced.
    pub(crate) fn check_sync(&self) -> io::Result<()> {
        call_python(|py| self.fileno(py).map(drop))
    }

    /// Waits until everything written is on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        call_python(|py| {
            let fsync = imported!(py, "os", "fsync")?;
            fsync.run(new_tuple(py, [self.fileno(py)?])?).map(drop)
        })
    }
}

/// The object gets a view of the writer's memory, because copying the data would cost more than all
/// the other steps. If the object keeps the view, it takes over that memory, and the writer
/// allocates new memory.
impl Sink for ObjectOutput {
    fn write_buffer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let bytes = Arc::new(std::mem::take(buffer));
        let written = Showing(&self.0, &bytes).write_all(&bytes);
        *buffer = Arc::try_unwrap(bytes).unwrap_or_default();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        call_python(|py| match self.0.bind(py).attribute(interned!(py, "flush")?)? {
            Some(flush) => flush.run(()).map(drop),
            None => Ok(()),
        })
    }
}

/// An object with a `write` method, and the bytes to write. Only suffixes of these bytes are passed
/// to `write`.
struct Showing<'a>(&'a Py<PyAny>, &'a Arc<Vec<u8>>);

impl Write for Showing<'_> {
    fn write(&mut self, rest: &[u8]) -> io::Result<usize> {
        let Showing(object, bytes) = self;
        if rest.len() < bytes.len() {
            // This can take a long time if each call writes only some of the bytes.
            check_signals_anywhere()?;
        }
        call_python(|py| {
            let unwritten = Shared::Unwritten(Arc::clone(bytes), bytes.len() - rest.len());
            let view = view_of_shared(py, unwritten)?;
            let write = interned!(py, "write")?;
            let answer = object.bind(py).run_method(write, new_tuple(py, [view.into_any()])?)?;
            if answer.is_none() {
                // If `write` returns `None`, it has written all the bytes. In Python's raw files
                // and sockets, however, `None` means that nothing was written.
                if object.bind(py).is_a(imported!(py, "io", "RawIOBase")?)? {
                    return Err(PyBlockingIOError::new_err(
                        "write() returned None: the sink must be in blocking mode",
                    ));
                }
                return Ok(rest.len());
            }
            let written = answer.extract()?;
            if written > rest.len() {
                let message = format!("write() of {} bytes returned {written}", rest.len());
                return Err(PyValueError::new_err(message));
            }
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
