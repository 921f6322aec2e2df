//! The class `Record`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::bytes_of;
use super::shown::short_repr;

/// A record and its place in the file, as returned by `Reader.records` and `Follower.poll`.
///
/// Records are immutable, and two records are equal if their offsets, their data and `salvaged` are
/// equal. The constructor takes the attributes as keyword arguments.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> with cordwood.open("example.log") as reader:
/// ...     for record in reader.records():
/// ...         record
/// Record(offset=0, end_offset=10, data=b'one')
/// Record(offset=10, end_offset=20, data=b'two')
#[pyclass(frozen, module = "cordwood", get_all)]
pub(crate) struct Record {
    /// The file offset, in bytes, of the header of the record's first fragment.
    ///
    /// `Reader.seek` accepts it.
    pub(crate) offset: u64,
    /// The file offset, in bytes, after the data of the record's last fragment.
    pub(crate) end_offset: u64,
    /// The record's contents.
    pub(crate) data: Py<PyBytes>,
    /// Whether the record starts after damage in the same block.
    ///
    /// This can only be true under the policy `"salvage"`.
    ///
    /// The checksums of a salvaged record are valid, but the reader had to search for its start. If
    /// a record's data contains another log, a record in that log can be mistaken for a salvaged
    /// record.
    pub(crate) salvaged: bool,
}

impl Record {
    /// Converts the record to the item that an iterator yields: the record itself, or only its
    /// bytes. This doesn't run Python code, because the garbage collector doesn't track a `Record`.
    #[inline]
    pub(crate) fn item(self, py: Python<'_>, has_offsets: bool) -> PyResult<Py<PyAny>> {
        match has_offsets {
            true => Py::new(py, self).map(Py::into_any),
            false => Ok(self.data.into_any()),
        }
    }
}

#[pymethods]
impl Record {
    #[new]
    #[pyo3(signature = (*, offset, end_offset, data, salvaged = false))]
    fn new(offset: u64, end_offset: u64, data: &Bound<'_, PyAny>, salvaged: bool) -> PyResult<Self> {
        if end_offset < offset {
            return Err(PyValueError::new_err(format!(
                "a record cannot end at {end_offset}, before its offset {offset}"
            )));
        }
        Ok(Record {
            offset,
            end_offset,
            data: bytes_of("data", data)?.unbind(),
            salvaged,
        })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "data")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = short_repr(py, self.data.as_bytes(py))?;
        let salvaged = if self.salvaged { ", salvaged=True" } else { "" };
        Ok(format!(
            "Record(offset={}, end_offset={}, data={data}{salvaged})",
            self.offset, self.end_offset
        ))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Record>().is_ok_and(|other| {
            let other = other.get();
            (self.offset, self.end_offset, self.salvaged) == (other.offset, other.end_offset, other.salvaged)
                && self.data.as_bytes(py) == other.data.as_bytes(py)
        })
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (self.offset, self.end_offset, &self.data).into_pyobject(py)?.hash()
    }
}
