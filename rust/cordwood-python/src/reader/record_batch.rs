//! The class `RecordBatch`: many records in a few buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyMemoryView, PySlice};

use crate::arrow::columns::{Column, table};
use crate::arrow::{array_capsules, schema_capsule};
use crate::interpreter::fast_call::{FastClass, FastNext, class_with_next};
use crate::interpreter::python_code::PythonCode;
use crate::interpreter::{imported, interned};
use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::{BatchBuffer, Shared, new_bytes, try_bytes, view_of_shared};
use crate::values::arguments::place_of;

/// Consecutive records in one buffer, with their positions in another buffer.
///
/// The layout is Arrow's `LargeBinary`, so `pyarrow.record_batch(batch)` doesn't make a copy.
///
/// `Reader.record_batches` returns record batches. The buffers are read-only, are shared rather
/// than copied, and don't change while an object refers to them.
///
/// `len(batch)` is the number of records. `batch[i]` copies one record to `bytes`, or raises
/// `IndexError` if there is no record `i`. Slicing returns a list, and iterating yields every
/// record.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> reader = cordwood.open("example.log")
/// >>> for batch in reader.record_batches():
/// ...     bytes(batch.data), batch.offsets.tolist(), batch.record_offsets.tolist(), batch[1]
/// (b'onetwo', [0, 3, 6], [0, 10], b'two')
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct RecordBatch {
    batch: Arc<PooledBatch>,
}

impl RecordBatch {
    pub(crate) fn new(batch: Arc<PooledBatch>) -> Self {
        RecordBatch { batch }
    }

    /// Returns a shared reference to the batch, usable without the interpreter.
    pub(crate) fn shared(&self) -> Arc<PooledBatch> {
        Arc::clone(&self.batch)
    }

    fn records(&self) -> &cordwood::read::RecordBatch {
        self.batch.records()
    }

    fn record<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        let record = self.records().get(index as usize);
        try_bytes(py, record.ok_or_else(no_record)?)
    }

    fn column<'py>(&self, py: Python<'py>, part: BatchBuffer) -> PyResult<Bound<'py, PyMemoryView>> {
        view_of_shared(py, Shared::Batch(Arc::clone(&self.batch), part))
    }
}

#[pymethods]
impl RecordBatch {
    /// The bytes of all records, concatenated.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        self.column(py, BatchBuffer::Data)
    }

    /// The position in `data` where each record starts, followed by the end of the last record.
    ///
    /// A batch of `n` records has `n + 1` positions: 64-bit signed integers in native byte order
    /// (format `"q"`).
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, BatchBuffer::Offsets)?
            .run_method(interned!(py, "cast")?, (interned!(py, "q")?,))
    }

    /// The file offset of each record.
    ///
    /// 64-bit unsigned integers in native byte order (format `"Q"`).
    #[getter]
    fn record_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column(py, BatchBuffer::RecordOffsets)?
            .run_method(interned!(py, "cast")?, (interned!(py, "Q")?,))
    }

    /// The file offset after the last record.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.records().end_offset()
    }

    /// Returns the batch as an Arrow table, without copying it.
    ///
    /// The table has the columns `offset` and `record`, and is passed in two capsules of the Arrow
    /// C data interface.
    ///
    /// Args:
    ///     requested_schema: Ignored, as the interface allows. The consumer casts the columns
    ///         itself. Default: `None`.
    ///
    /// Returns:
    ///     One capsule with the schema and one with the table.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        array_capsules(py, &COLUMNS.map(Column::field), table(&COLUMNS, &self.batch, None))
    }

    /// Returns the columns and their types, in a capsule of the Arrow C schema interface.
    ///
    /// Returns:
    ///     The capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &COLUMNS.map(Column::field))
    }

    fn __len__(&self) -> usize {
        self.records().len()
    }

    fn __reversed__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let indices = imported!(py, "builtins", "range")?.run((slf.len()?,))?;
        let reversed = imported!(py, "builtins", "reversed")?.run((indices,))?;
        imported!(py, "builtins", "map")?.run((slf.getattr("__getitem__")?, reversed))
    }

    /// Returns one record, or a list of the records in a slice.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(self.records().len() as isize)?;
            // The slice is clipped to the number of records, so every index is in range.
            let records = (0..range.slicelength as isize).map(|at| self.record(py, range.start + at * range.step));
            let records: Vec<_> = records.collect::<PyResult<_>>()?;
            return PyList::new(py, records).map(Bound::into_any);
        }
        let place = place_of(index, self.records().len() as u64)?.ok_or_else(no_record)?;
        self.record(py, place as isize).map(Bound::into_any)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        class_with_next::<RecordBatchIterator>(slf.py()).run((slf,))
    }

    fn __repr__(&self) -> String {
        let records = self.records();
        format!(
            "<cordwood.RecordBatch: {} records, {} bytes>",
            records.len(),
            records.data().len()
        )
    }
}

fn no_record() -> PyErr {
    PyIndexError::new_err("there is no record with this number in the batch")
}

/// The columns of a batch when it is passed as a table.
const COLUMNS: [Column; 2] = [Column::Offset, Column::Record];

/// The result of `iter(batch)`, which yields the records as `bytes`.
// Records are returned one at a time, so that one record's memory can be reused for the next. A
// list of all records would be many times larger than the processor's cache. The module creates
// objects of a final subclass, which has a fast path. See `fast_call.rs`.
#[pyclass(frozen, weakref, subclass, module = "cordwood._native")]
pub(crate) struct RecordBatchIterator {
    batch: Arc<PooledBatch>,
    /// The index of the next record. After the last record, this is at least the number of records.
    index: AtomicUsize,
}

static FAST_CLASS: FastClass = FastClass::new();

impl FastNext for RecordBatchIterator {
    const FAST_CLASS: &'static FastClass = &FAST_CLASS;

    #[inline]
    fn next_now(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        Some(self.next(py)?.into_any().unbind())
    }
}

impl RecordBatchIterator {
    /// Returns the next record, or `None` after the last one. If there is not enough memory, this
    /// returns `None` with an exception set, and the next call returns the same record.
    #[inline]
    fn next<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        loop {
            let index = self.index.load(Ordering::Relaxed);
            let bytes = new_bytes(py, self.batch.records().get(index)?)?;
            // If Python runs without its interpreter lock, another thread may already have returned
            // this record.
            let next = self
                .index
                .compare_exchange(index, index + 1, Ordering::Relaxed, Ordering::Relaxed);
            if next.is_ok() {
                return Some(bytes);
            }
        }
    }
}

#[pymethods]
impl RecordBatchIterator {
    #[new]
    fn new(batch: &Bound<'_, RecordBatch>) -> Self {
        RecordBatchIterator {
            batch: Arc::clone(&batch.get().batch),
            index: AtomicUsize::new(0),
        }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.next(py) {
            Some(record) => Ok(Some(record)),
            None => PyErr::take(py).map_or(Ok(None), Err),
        }
    }
}
