//! The class `Pack`: many records in a few buffers.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::bytes::{Column, Part, new_bytes};

/// Consecutive records in one buffer, and where each begins in another.
///
/// The layout is that of Arrow's `LargeBinary`.
///
/// `Reader.packs` makes them. The buffers are shared, not copied; they are read-only, and stay
/// as they are for as long as anything refers to them.
///
/// `len(pack)` is the number of records. `pack[i]` copies one record to `bytes`, and raises
/// `IndexError` if there is none.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> reader = cordwood.open("example.log")
/// >>> for pack in reader.packs():
/// ...     bytes(pack.data), pack.offsets.tolist(), pack.record_offsets.tolist(), pack[1]
/// (b'onetwo', [0, 3, 6], [0, 10], b'two')
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct Pack {
    records: cordwood::Pack,
    pool: Arc<Pool>,
}

impl Pack {
    pub(crate) fn new(records: cordwood::Pack, pool: Arc<Pool>) -> Self {
        Pack { records, pool }
    }

    pub(crate) fn records(&self) -> &cordwood::Pack {
        &self.records
    }

    fn column<'py>(slf: &Bound<'py, Self>, part: Part) -> PyResult<Bound<'py, PyMemoryView>> {
        let pack = slf.clone().unbind();
        PyMemoryView::from(Bound::new(slf.py(), Column { pack, part })?.as_any())
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.records));
    }
}

#[pymethods]
impl Pack {
    /// The bytes of all records, one after the other.
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

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyBytes>> {
        // From the end, if it is below 0.
        let index = if index < 0 {
            index + self.records.len() as isize
        } else {
            index
        };
        let record = usize::try_from(index).ok().and_then(|index| self.records.get(index));
        let Some(record) = record else {
            return Err(PyIndexError::new_err("there is no record with this number in the pack"));
        };
        new_bytes(py, record).ok_or_else(|| PyErr::fetch(py))
    }

    fn __repr__(&self) -> String {
        let records = &self.records;
        format!(
            "<cordwood.Pack: {} records, {} bytes>",
            records.len(),
            records.data().len()
        )
    }
}

/// Memory of packs that Python is done with. New memory costs more than what is read into it: the system zeroes each page of it first.
pub(crate) struct Pool {
    packs: Mutex<Vec<cordwood::Pack>>,
    packs_max: usize,
}

impl Pool {
    /// A pack that a huge record has made larger is not kept.
    const CAPACITY_MAX: usize = 64 << 20;

    /// One pack is read while the next is filled; several threads fill more of them.
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Pool {
            packs: Mutex::default(),
            packs_max: match threads.get() {
                1 => 2,
                threads => 4 * threads,
            },
        }
    }

    pub(crate) fn take(&self) -> cordwood::Pack {
        let pack = self.packs.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pack.unwrap_or_default()
    }

    fn put(&self, mut pack: cordwood::Pack) {
        pack.clear();
        let mut packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if packs.len() < self.packs_max && pack.capacity() <= Self::CAPACITY_MAX {
            packs.push(pack);
        }
    }
}
