//! The class `SkippedRegion`, and the list of them that a reader or a follower keeps.

use cordwood::damage::{Finding, Findings, Severity};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bit_flip::BitFlip;
use crate::enums::{REASON, SEVERITY};
use crate::value::{Reduced, reduced, shown, shown_crc};

/// A region of a file that was not returned as a record: the bytes `[offset, end_offset)`, and why.
///
/// `Reader.skipped`, `Follower.skipped` and `Report.skipped` list them. `len(region)` is its length
/// in bytes, and `str(region)` describes it in a sentence. The constructor takes the attributes as
/// keywords, except `severity`, which follows from `reason`.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(7), file.write(b"X")
/// >>> region = cordwood.verify("example.log").skipped[0]
/// >>> region.offset, region.end_offset, region.reason.value, region.severity.value
/// (0, 10, 'checksum_mismatch', 'corruption')
#[pyclass(frozen, module = "cordwood", eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SkippedRegion {
    offset: u64,
    end_offset: u64,
    pub(crate) reason: cordwood::damage::Reason,
    bit_flip: Option<BitFlip>,
}

impl From<cordwood::damage::SkippedRegion> for SkippedRegion {
    fn from(region: cordwood::damage::SkippedRegion) -> Self {
        cordwood::damage::Finding::new(region).into()
    }
}

impl From<cordwood::damage::Finding> for SkippedRegion {
    fn from(finding: cordwood::damage::Finding) -> Self {
        SkippedRegion {
            offset: finding.region.begin,
            end_offset: finding.region.end,
            reason: finding.region.reason,
            bit_flip: finding.bit_flip.map(BitFlip::from),
        }
    }
}

impl SkippedRegion {
    pub(crate) fn len(&self) -> u64 {
        self.end_offset - self.offset
    }
}

#[pymethods]
impl SkippedRegion {
    #[new]
    #[pyo3(signature = (
        *, offset, end_offset, reason, stored_crc = None, computed_crc = None, stated_len = None, type_byte = None,
        version = None, bit_flip = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        offset: u64,
        end_offset: u64,
        reason: &str,
        stored_crc: Option<u32>,
        computed_crc: Option<u32>,
        stated_len: Option<u16>,
        type_byte: Option<u8>,
        version: Option<u8>,
        bit_flip: Option<BitFlip>,
    ) -> PyResult<Self> {
        if end_offset < offset {
            return Err(PyValueError::new_err(format!(
                "a region cannot end at {end_offset}, before its offset {offset}"
            )));
        }
        let region = SkippedRegion {
            offset,
            end_offset,
            reason: reason_with(
                reason,
                stored_crc.unwrap_or(0),
                computed_crc.unwrap_or(0),
                stated_len.unwrap_or(0),
                type_byte.unwrap_or(0),
                version.unwrap_or(0),
            )?,
            bit_flip,
        };
        let surplus = [
            (stored_crc.is_some() && region.stored_crc().is_none(), "stored_crc"),
            (
                computed_crc.is_some() && region.computed_crc().is_none(),
                "computed_crc",
            ),
            (stated_len.is_some() && region.stated_len().is_none(), "stated_len"),
            (type_byte.is_some() && region.type_byte().is_none(), "type_byte"),
            (version.is_some() && region.version().is_none(), "version"),
        ];
        match surplus.iter().find(|(is_surplus, _)| *is_surplus) {
            Some((_, name)) => Err(PyTypeError::new_err(format!(
                "a region with the reason '{reason}' has no {name}"
            ))),
            None => Ok(region),
        }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "reason")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(
            slf,
            &[
                "offset",
                "end_offset",
                "reason",
                "stored_crc",
                "computed_crc",
                "stated_len",
                "type_byte",
                "version",
                "bit_flip",
            ],
        )
    }

    /// File offset of the first byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// File offset after the last byte.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// Why these bytes were not returned.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        REASON.member(py, self.reason.as_str())
    }

    /// Why these bytes were not returned, in words, without their place.
    #[getter]
    fn description(&self) -> String {
        self.reason.to_string()
    }

    /// The severity of the reason: `"info"`, `"torn_tail"` or `"corruption"`.
    #[getter]
    fn severity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        SEVERITY.member(py, self.reason.severity().as_str())
    }

    /// The checksum that the file states, if the reason is `checksum_mismatch`; else `None`.
    #[getter]
    fn stored_crc(&self) -> Option<u32> {
        match self.reason {
            cordwood::damage::Reason::ChecksumMismatch { stored, .. } => Some(stored),
            _ => None,
        }
    }

    /// The checksum of the data, if the reason is `checksum_mismatch`; else `None`.
    #[getter]
    fn computed_crc(&self) -> Option<u32> {
        match self.reason {
            cordwood::damage::Reason::ChecksumMismatch { computed, .. } => Some(computed),
            _ => None,
        }
    }

    /// The length in bytes that the header states, if the reason is `bad_length`; else `None`.
    #[getter]
    fn stated_len(&self) -> Option<u16> {
        match self.reason {
            cordwood::damage::Reason::BadLength { len } => Some(len),
            _ => None,
        }
    }

    /// The type byte, if the reason is about it; else `None`.
    ///
    /// The reasons are `unknown_kind`, `ignored_kind`, `metadata` and `bad_metadata`.
    #[getter]
    fn type_byte(&self) -> Option<u8> {
        match self.reason {
            cordwood::damage::Reason::UnknownKind { kind }
            | cordwood::damage::Reason::IgnoredKind { kind }
            | cordwood::damage::Reason::Metadata { kind }
            | cordwood::damage::Reason::BadMetadata { kind } => Some(kind),
            _ => None,
        }
    }

    /// The version that the file header states, if the reason is `unknown_version`; else `None`.
    #[getter]
    fn version(&self) -> Option<u8> {
        match self.reason {
            cordwood::damage::Reason::UnknownVersion { version } => Some(version),
            _ => None,
        }
    }

    /// The one flipped bit that explains the region, if `verify` or `salvage` found one.
    ///
    /// `salvage` flips it back with `repair_bit_flips`.
    #[getter]
    fn bit_flip(&self) -> Option<BitFlip> {
        self.bit_flip
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.len()).unwrap_or(usize::MAX)
    }

    fn __str__(&self) -> String {
        let len = self.len();
        let bytes = if len == 1 { "byte" } else { "bytes" };
        format!("{len} {bytes} at offset {}: {}", self.offset, self.reason)
    }

    fn __repr__(&self) -> String {
        let SkippedRegion {
            offset,
            end_offset,
            reason,
            bit_flip,
        } = self;
        let reason = reason.as_str();
        let mut text = format!("SkippedRegion(offset={offset}, end_offset={end_offset}, reason='{reason}'");
        text += &shown_crc("stored_crc", self.stored_crc());
        text += &shown_crc("computed_crc", self.computed_crc());
        text += &shown("stated_len", self.stated_len());
        text += &shown("type_byte", self.type_byte());
        text += &shown("version", self.version());
        text += &shown("bit_flip", bit_flip.map(|bit_flip| bit_flip.__repr__()));
        text + ")"
    }
}

/// The reason with this name, with those of the given details that apply to it.
fn reason_with(
    name: &str,
    stored: u32,
    computed: u32,
    len: u16,
    kind: u8,
    version: u8,
) -> PyResult<cordwood::damage::Reason> {
    use cordwood::damage::Reason::*;
    let reasons = [
        BadLength { len },
        ChecksumMismatch { stored, computed },
        UnknownKind { kind },
        MissingStart,
        MissingEnd,
        InterruptedRecord,
        ZeroHeader,
        RecordTooLarge,
        TooLargeRest,
        ZeroFill,
        NonzeroTrailer,
        EmptyFirst,
        TornTail,
        FileHeader,
        UnknownVersion { version },
        BadFileHeader,
        Metadata { kind },
        BadMetadata { kind },
        IgnoredKind { kind },
        EndTrailer,
        Stale,
        LostWrite,
        UnsupportedCompression,
        BadCompression,
        BadContainer,
        NotRead,
    ];
    let found = reasons.into_iter().find(|reason| reason.as_str() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("there is no reason '{name}'")))
}

/// The reason with this name, without details.
pub(crate) fn reason_named(name: &str) -> PyResult<cordwood::damage::Reason> {
    reason_with(name, 0, 0, 0, 0, 0)
}

/// The listed regions.
pub(crate) fn listed<'py>(py: Python<'py>, findings: &Findings) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, findings.listed().iter().copied().map(SkippedRegion::from))
}

/// What a reader or a follower has skipped so far, and the tuple that shows it.
///
/// The tuple is built on request, without the lock of the reader, since creating objects can run
/// Python code. It is cached until there is more to show.
#[derive(Default)]
pub(crate) struct Listed {
    findings: Findings,
    tuple: Option<Py<PyTuple>>,
    /// How many times the findings have changed.
    changes: u64,
}

impl Listed {
    pub(crate) fn add(&mut self, region: cordwood::damage::SkippedRegion) {
        self.findings.add(Finding::new(region));
        self.changed();
    }

    pub(crate) fn clear(&mut self) {
        self.findings = Findings::default();
        self.changed();
    }

    fn changed(&mut self) {
        // The regions refer to no other objects, so dropping them runs no Python code.
        self.tuple = None;
        self.changes += 1;
    }

    /// The tuple, or what to build it from: the regions, and the number to pass to
    /// [`keep`](Self::keep).
    pub(crate) fn shown(&self, py: Python<'_>) -> Result<Py<PyTuple>, (Vec<SkippedRegion>, u64)> {
        match &self.tuple {
            Some(tuple) => Ok(tuple.clone_ref(py)),
            None => {
                let regions = self.findings.listed().iter().copied().map(SkippedRegion::from);
                Err((regions.collect(), self.changes))
            }
        }
    }

    /// Keeps the tuple if nothing has changed in the meantime.
    pub(crate) fn keep(&mut self, tuple: Py<PyTuple>, changes: u64) {
        if self.changes == changes {
            self.tuple = Some(tuple);
        }
    }

    /// Whether none of the regions is damage.
    pub(crate) fn is_ok(&self) -> bool {
        self.findings.len_of(Severity::Corruption) == 0
    }

    /// Bytes in all regions, listed or not.
    pub(crate) fn len(&self) -> u64 {
        self.findings.len()
    }

    /// See [`Findings::zeros_before`].
    pub(crate) fn zeros_before(&self, end: u64) -> Option<u64> {
        self.findings.zeros_before(end)
    }
}
