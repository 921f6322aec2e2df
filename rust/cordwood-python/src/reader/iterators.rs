//! The iterators of a reader, and its records as an Arrow stream. None has a position of its own.

use std::sync::atomic::Ordering;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use super::cursor::Batches;
use super::record_batch::{self, RecordBatch};
use super::{Reader, State};
use crate::arrow::failure::attached;
use crate::arrow::{self, Array, Failure, Field};
use crate::interpreter::fast_call::{FastClass, FastNext};

/// The records of a reader: as `bytes`, the result of `iter(reader)`; or with their offsets, that of
/// `Reader.records`.
// The module creates objects of a final subclass, which has a fast path: see `fast_call.rs`.
#[pyclass(frozen, weakref, subclass, module = "cordwood._native")]
pub(super) struct ReaderIterator {
    reader: Py<Reader>,
    has_offsets: bool,
}

impl FastNext for ReaderIterator {
    fn fast_class() -> &'static FastClass {
        static CLASS: FastClass = FastClass::new();
        &CLASS
    }

    /// Only a record that has already been found, and if no other thread is using the reader.
    #[inline]
    fn next_now(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &mut *self.reader.get().state.try_lock()? {
            State::Open(cursor) => cursor.take(py, |record| record.shown(py, self.has_offsets)),
            State::Closed(_) => None,
        }
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
        self.reader.get().next(py, |record| record.shown(py, self.has_offsets))
    }
}

/// The result of `Reader.record_batches`.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(super) struct RecordBatches {
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
        // The garbage collector does not track `RecordBatch` either.
        let make = |batch| Py::new(py, RecordBatch::new(batch));
        self.reader.get().record_batch(py, &self.batches, make)
    }
}

/// Ends the threads that read ahead, unless another thread is using the reader.
impl Drop for RecordBatches {
    fn drop(&mut self) {
        if let Some(State::Open(cursor)) = self.reader.get().state.try_lock().as_deref_mut() {
            cursor.stop_threads(&self.batches);
        }
    }
}

pub(super) const STREAMED: &str = "an Arrow stream of this reader has already been read, and a reader has only one position: \
                        cordwood.scan(source) makes a table that can be read again";

/// A reader as a stream of Arrow batches.
pub(super) struct ReaderStream {
    pub(super) reader: Py<Reader>,
    pub(super) batches: Batches,
    pub(super) is_binary: bool,
    pub(super) has_begun: bool,
}

impl arrow::Batches for ReaderStream {
    fn fields(&self) -> Vec<Field> {
        record_batch::fields(self.is_binary).to_vec()
    }

    fn next(&mut self) -> Result<Option<Array>, Failure> {
        attached(|py| {
            let reader = self.reader.get();
            // Not earlier: some consumers open several streams, and read only one.
            if !self.has_begun && reader.is_streamed.swap(true, Ordering::Relaxed) {
                return Err(PyRuntimeError::new_err(STREAMED));
            }
            self.has_begun = true;
            let batch = reader.record_batch(py, &self.batches, Ok)?;
            Ok(batch.map(|batch| record_batch::table(&batch, self.is_binary)))
        })
    }
}
