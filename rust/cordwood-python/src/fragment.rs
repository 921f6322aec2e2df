//! The class `Fragment`.

use cordwood::damage::Severity;
use cordwood::format::{BLOCK_LEN, FragmentKind};
use cordwood::ops;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::enums::{FRAGMENT_KIND, REASON, SEVERITY};
use crate::skipped_region::reason_named;
use crate::value::{Reduced, reduced, shown, shown_crc, static_name};

/// A fragment of a log, or a gap between fragments. `cordwood.fragments` returns them.
///
/// `len(fragment)` is the number of bytes from `offset` to `end_offset`. The constructor takes the
/// attributes as keywords, except `severity`, which follows from `reason`.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> fragment = next(cordwood.fragments("example.log"))
/// >>> fragment.kind.value, fragment.offset, fragment.end_offset, fragment.payload_len
/// ('full', 0, 10, 3)
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Fragment {
    offset: u64,
    end_offset: u64,
    block: u64,
    kind: &'static str,
    type_byte: Option<u8>,
    payload_len: Option<u16>,
    stored_crc: Option<u32>,
    computed_crc: Option<u32>,
    log_number: Option<u32>,
    synced_offset: Option<u64>,
    /// Its name and its severity.
    reason: Option<(&'static str, Severity)>,
    record_offset: Option<u64>,
    salvaged: bool,
}

impl From<ops::Fragment> for Fragment {
    fn from(fragment: ops::Fragment) -> Self {
        Fragment {
            offset: fragment.offset,
            end_offset: fragment.end_offset,
            block: fragment.block,
            kind: fragment.kind.as_str(),
            type_byte: fragment.type_byte,
            payload_len: fragment.payload_len,
            stored_crc: fragment.stored_crc,
            computed_crc: fragment.computed_crc,
            log_number: fragment.log_number,
            synced_offset: fragment.synced_offset,
            reason: fragment.reason.map(name_and_severity),
            record_offset: fragment.record_offset,
            salvaged: fragment.is_salvaged,
        }
    }
}

fn name_and_severity(reason: cordwood::damage::Reason) -> (&'static str, Severity) {
    (reason.as_str(), reason.severity())
}

#[pymethods]
impl Fragment {
    #[new]
    #[pyo3(signature = (
        *, offset, end_offset, kind, block = None, type_byte = None, payload_len = None, stored_crc = None,
        computed_crc = None, log_number = None, synced_offset = None, reason = None, record_offset = None,
        salvaged = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        offset: u64,
        end_offset: u64,
        kind: &str,
        block: Option<u64>,
        type_byte: Option<u8>,
        payload_len: Option<u16>,
        stored_crc: Option<u32>,
        computed_crc: Option<u32>,
        log_number: Option<u32>,
        synced_offset: Option<u64>,
        reason: Option<&str>,
        record_offset: Option<u64>,
        salvaged: bool,
    ) -> PyResult<Self> {
        if end_offset < offset {
            return Err(PyValueError::new_err(format!(
                "a fragment cannot end at {end_offset}, before its offset {offset}"
            )));
        }
        let reason = reason.map(reason_named).transpose()?;
        Ok(Fragment {
            offset,
            end_offset,
            block: block.unwrap_or(block_of(offset)),
            kind: static_name(&FragmentKind::ALL.map(FragmentKind::as_str), kind, "kind of fragment")?,
            type_byte,
            payload_len,
            stored_crc,
            computed_crc,
            log_number,
            synced_offset,
            reason: reason.map(name_and_severity),
            record_offset,
            salvaged,
        })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "kind")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(
            slf,
            &[
                "offset",
                "end_offset",
                "kind",
                "block",
                "type_byte",
                "payload_len",
                "stored_crc",
                "computed_crc",
                "log_number",
                "synced_offset",
                "reason",
                "record_offset",
                "salvaged",
            ],
        )
    }

    /// File offset of the first byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// File offset after the last byte. After damage, the beginning of the next fragment found.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// The index of its block, from 0.
    #[getter]
    fn block(&self) -> u64 {
        self.block
    }

    /// What it is: `"full"`, `"first"`, `"trailer"`, ...
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        FRAGMENT_KIND.member(py, self.kind)
    }

    /// The type byte; `None` if there is no header.
    #[getter]
    fn type_byte(&self) -> Option<u8> {
        self.type_byte
    }

    /// Bytes of payload as stated by the header, right or wrong; `None` if there is no header.
    #[getter]
    fn payload_len(&self) -> Option<u16> {
        self.payload_len
    }

    /// The checksum that the header states, without the mask; `None` if there is no header.
    #[getter]
    fn stored_crc(&self) -> Option<u32> {
        self.stored_crc
    }

    /// The checksum computed from the bytes; `None` if that extends past the end of block or file.
    #[getter]
    fn computed_crc(&self) -> Option<u32> {
        self.computed_crc
    }

    /// The number of the log, if headers of this type carry one; else `None`.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.log_number
    }

    /// How far the file had been synced, in bytes, if headers of this type state it; else `None`.
    #[getter]
    fn synced_offset(&self) -> Option<u64> {
        self.synced_offset
    }

    /// Why these bytes were not returned as part of a record.
    ///
    /// `None` if they were, and for trailers.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.reason.map(|(name, _)| REASON.member(py, name)).transpose()
    }

    /// The severity of the reason; `None` if there is none.
    #[getter]
    fn severity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let severity = self.reason.map(|(_, severity)| SEVERITY.member(py, severity.as_str()));
        severity.transpose()
    }

    /// File offset of the record that contains it, if that record was returned; else `None`.
    #[getter]
    fn record_offset(&self) -> Option<u64> {
        self.record_offset
    }

    /// Whether the record that contains it begins after damage in the same block.
    ///
    /// Only the policy `"salvage"` returns such a record.
    #[getter]
    fn salvaged(&self) -> bool {
        self.salvaged
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.end_offset - self.offset).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let Fragment {
            offset,
            end_offset,
            kind,
            block,
            ..
        } = *self;
        let mut text = format!("Fragment(offset={offset}, end_offset={end_offset}, kind='{kind}'");
        text += &shown("block", Some(block).filter(|&block| block != block_of(offset)));
        text += &shown("type_byte", self.type_byte);
        text += &shown("payload_len", self.payload_len);
        text += &shown_crc("stored_crc", self.stored_crc);
        text += &shown_crc("computed_crc", self.computed_crc);
        text += &shown("log_number", self.log_number);
        text += &shown("synced_offset", self.synced_offset);
        text += &shown("reason", self.reason.map(|(name, _)| format!("'{name}'")));
        text += &shown("record_offset", self.record_offset);
        text += &shown("salvaged", self.salvaged.then_some("True"));
        text + ")"
    }
}

/// The index of the block that contains an offset.
fn block_of(offset: u64) -> u64 {
    offset / BLOCK_LEN as u64
}
