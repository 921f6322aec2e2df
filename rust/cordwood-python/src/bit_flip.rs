//! The class `BitFlip`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::enums::FRAGMENT_PART;
use crate::value::{Reduced, reduced, static_name};

/// The one bit that explains damage: flipped back, it makes the fragment's checksum valid.
///
/// It is the value of `SkippedRegion.bit_flip`. The constructor takes the attributes as keywords.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(7), file.write(b"O")
/// >>> cordwood.verify("example.log").skipped[0].bit_flip
/// BitFlip(offset=7, bit=5, part='payload')
#[pyclass(frozen, module = "cordwood", eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BitFlip {
    offset: u64,
    bit: u8,
    part: &'static str,
}

impl From<cordwood::damage::BitFlip> for BitFlip {
    fn from(flip: cordwood::damage::BitFlip) -> Self {
        BitFlip {
            offset: flip.offset,
            bit: flip.bit,
            part: flip.part.as_str(),
        }
    }
}

#[pymethods]
impl BitFlip {
    #[new]
    #[pyo3(signature = (*, offset, bit, part))]
    fn new(offset: u64, bit: u8, part: &str) -> PyResult<Self> {
        if bit > 7 {
            return Err(PyValueError::new_err(format!("bit must be from 0 to 7, not {bit}")));
        }
        let parts = [
            "checksum",
            "length",
            "kind",
            "log_number",
            "synced_offset",
            "payload",
            "file_header",
        ];
        let part = static_name(&parts, part, "part of a fragment")?;
        Ok(BitFlip { offset, bit, part })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "bit", "part")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, &["offset", "bit", "part"])
    }

    /// File offset of the byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// Which bit of the byte: 0 is the lowest, 7 the highest.
    #[getter]
    fn bit(&self) -> u8 {
        self.bit
    }

    /// The part of the fragment to which the byte belongs, or the file header.
    #[getter]
    fn part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        FRAGMENT_PART.member(py, self.part)
    }

    pub(crate) fn __repr__(&self) -> String {
        let BitFlip { offset, bit, part } = self;
        format!("BitFlip(offset={offset}, bit={bit}, part='{part}')")
    }
}
