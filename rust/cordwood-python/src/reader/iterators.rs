//! The iterators of a reader, which share its position.

use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use super::Reader;
use super::read_ahead::Batches;
use super::record_batch::RecordBatch;
use crate::interpreter::fast_call::{FastClass, FastNext};

/// The iterator over a reader's records. It yields `bytes` for `iter(reader)`, and the records with
/// their offsets for `Reader.records`.
// The module creates instances of a final subclass, which has a fast path. See `fast_call.rs`.
#[pyclass(frozen, weakref, subclass, module = "cordwood._native")]
pub(crate) struct ReaderIterator {
    reader: Py<Reader>,
    has_offsets: bool,
}

static FAST_CLASS: FastClass = FastClass::new();

impl FastNext for ReaderIterator {
    const FAST_CLASS: &'static FastClass = &FAST_CLASS;

    /// Returns a record only if it has already been found and no other thread is using the reader.
    #[inline]
    fn next_now(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let mut cursor = self.reader.get().cursor.try_lock()?;
        cursor.as_mut()?.take(py, |record| record.item(py, self.has_offsets))
    }
}

#[pymethods]
impl ReaderIterator {
    #[new]
    fn new(reader: Py<Reader>, has_offsets: bool) -> Self {
        ReaderIterator { reader, has_offsets }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.reader.get().next(py, |record| record.item(py, self.has_offsets))
    }
}

/// The result of `Reader.record_batches`.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct RecordBatches {
    pub(super) reader: Py<Reader>,
    pub(super) batches: Batches,
}

#[pymethods]
impl RecordBatches {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.reader)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<RecordBatch>>> {
        // Creating a `RecordBatch` doesn't run Python code, because the garbage collector doesn't
        // track its class.
        let make = |batch| Py::new(py, RecordBatch::new(batch));
        let reader = self.reader.get();
        reader.find(py, |cursor| cursor.next_batch(Some(py), &self.batches, make))
    }
}

/// Stops the threads that are reading ahead, unless another thread is using the reader.
impl Drop for RecordBatches {
    fn drop(&mut self) {
        if let Some(Some(cursor)) = self.reader.get().cursor.try_lock().as_deref_mut() {
            cursor.stop_threads(&self.batches);
        }
    }
}
