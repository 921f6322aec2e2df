//! The class `RecordBatch`: many records in a few buffers.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyMemoryView, PySlice};

use crate::bytes::{Column, Part, new_bytes};
use crate::value::not_pickled;

/// Consecutive records in one buffer, and where each begins in another.
///
/// The layout is that of Arrow's `LargeBinary`.
///
/// `Reader.record_batches` makes them. The buffers are shared, not copied; they are read-only, and
/// stay as they are for as long as anything refers to them.
///
/// `len(batch)` is the number of records. `batch[i]` copies one record to `bytes`, and raises
/// `IndexError` if there is none; a slice gives a list, and iterating gives all.
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
    records: cordwood::read::RecordBatch,
    pool: Arc<Pool>,
}

impl RecordBatch {
    pub(crate) fn new(records: cordwood::read::RecordBatch, pool: Arc<Pool>) -> Self {
        RecordBatch { records, pool }
    }

    pub(crate) fn records(&self) -> &cordwood::read::RecordBatch {
        &self.records
    }

    fn record<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        let record = usize::try_from(index).ok().and_then(|index| self.records.get(index));
        let Some(record) = record else {
            return Err(PyIndexError::new_err(
                "there is no record with this number in the batch",
            ));
        };
        new_bytes(py, record).ok_or_else(|| PyErr::fetch(py))
    }

    fn list<'py>(&self, py: Python<'py>, indices: impl Iterator<Item = isize>) -> PyResult<Bound<'py, PyAny>> {
        let records = indices.map(|index| self.record(py, index));
        let records: Vec<_> = records.collect::<PyResult<_>>()?;
        PyList::new(py, records).map(Bound::into_any)
    }

    fn column<'py>(slf: &Bound<'py, Self>, part: Part) -> PyResult<Bound<'py, PyMemoryView>> {
        let batch = slf.clone().unbind();
        PyMemoryView::from(Bound::new(slf.py(), Column { batch, part })?.as_any())
    }
}

impl Drop for RecordBatch {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.records));
    }
}

#[pymethods]
impl RecordBatch {
    /// The bytes of all records, concatenated.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        Self::column(slf, Part::Data)
    }

    /// Where each record begins in `data`, and then where the last one ends.
    ///
    /// One more than there are records; 64-bit signed integers in native byte order (format `"q"`).
    #[getter]
    fn offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::column(slf, Part::Offsets)?.call_method1(intern!(slf.py(), "cast"), (intern!(slf.py(), "q"),))
    }

    /// The file offset of each record.
    ///
    /// 64-bit unsigned integers in native byte order (format `"Q"`).
    #[getter]
    fn record_offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::column(slf, Part::RecordOffsets)?.call_method1(intern!(slf.py(), "cast"), (intern!(slf.py(), "Q"),))
    }

    /// The file offset after the last record.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.records.end_offset()
    }

    fn __len__(&self) -> usize {
        self.records.len()
    }

    /// One record, or a list of those that a slice names.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(self.records.len() as isize)?;
            // For a slice of this length, no index goes past the ends.
            return self.list(
                py,
                (0..range.slicelength as isize).map(|at| range.start + at * range.step),
            );
        }
        let index: isize = index.extract()?;
        // From the end, if it is below 0.
        let from_start = if index < 0 {
            index + self.records.len() as isize
        } else {
            index
        };
        self.record(py, from_start).map(Bound::into_any)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        // All at once: a step over a list is cheaper in Python than one over an object of this
        // module.
        self.list(py, 0..self.records.len() as isize)?.try_iter()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled(
            "RecordBatch",
            "pass list(batch), or a path and a range for the other process to read",
        ))
    }

    fn __repr__(&self) -> String {
        let records = &self.records;
        format!(
            "<cordwood.RecordBatch: {} records, {} bytes>",
            records.len(),
            records.data().len()
        )
    }
}

/// Memory of record batches that Python has released. New memory costs more than reading into it:
/// the system zeroes each page first.
///
/// Nothing here waits: if another thread is using the pool, memory is allocated or released. In a
/// forked process that thread may not exist.
pub(crate) struct Pool {
    batches: Mutex<Vec<cordwood::read::RecordBatch>>,
    count_max: usize,
}

impl Pool {
    /// A record batch that a huge record has enlarged is not kept.
    const CAPACITY_MAX: usize = 64 << 20;

    /// `count_max` is the number of record batches in use at a time.
    pub(crate) fn new(count_max: usize) -> Self {
        Pool {
            batches: Mutex::default(),
            count_max,
        }
    }

    pub(crate) fn take(&self) -> cordwood::read::RecordBatch {
        let batch = self.batches.try_lock().ok().and_then(|mut batches| batches.pop());
        batch.unwrap_or_default()
    }

    pub(crate) fn put(&self, mut batch: cordwood::read::RecordBatch) {
        batch.clear();
        if let Ok(mut batches) = self.batches.try_lock()
            && batches.len() < self.count_max
            && batch.capacity() <= Self::CAPACITY_MAX
        {
            batches.push(batch);
        }
    }
}
