//! The classes `Record`, `SkippedRegion` and `Outcome`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

use crate::verbs::BitFlip;

/// A record and where it stands in the file: what `Reader.records` and `Follower.poll` return.
///
/// A record cannot be changed. Records are equal if their offsets, data and `salvaged` are.
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
    /// File offset of the first fragment's header, in bytes. `Reader.seek` goes there.
    pub(crate) offset: u64,
    /// File offset after the last fragment's data, in bytes.
    pub(crate) end_offset: u64,
    /// The bytes that were written.
    pub(crate) data: Py<PyBytes>,
    /// Whether it begins after damage in the same block, under the policy `"salvage"`.
    ///
    /// Its checksums are right, but where it begins had to be searched for: a log inside a record's
    /// data can look like this.
    pub(crate) salvaged: bool,
}

#[pymethods]
impl Record {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "data")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
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

/// A region of a file that was not returned as a record: the bytes `[offset, end_offset)`, and why.
///
/// `Reader.skipped`, `Follower.skipped` and `Report.skipped` list them. `len(region)` is its
/// length in bytes, and `str(region)` a sentence about it.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(7), file.write(b"X")
/// >>> region = cordwood.verify("example.log").skipped[0]
/// >>> region
/// SkippedRegion(offset=0, end_offset=20, reason='checksum_mismatch')
/// >>> len(region), region.severity.value
/// (20, 'corruption')
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct SkippedRegion(cordwood::SkippedRegion, Option<BitFlip>);

impl From<cordwood::SkippedRegion> for SkippedRegion {
    fn from(region: cordwood::SkippedRegion) -> Self {
        SkippedRegion(region, None)
    }
}

impl From<cordwood::Finding> for SkippedRegion {
    fn from(finding: cordwood::Finding) -> Self {
        SkippedRegion(finding.region, finding.bit_flip.map(BitFlip))
    }
}

#[pymethods]
impl SkippedRegion {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "reason")
    }

    /// File offset of the first byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.begin
    }

    /// File offset after the last byte.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.0.end
    }

    /// Why these bytes were not returned.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        reason_object(py, self.0.reason.as_str())
    }

    /// How severe that is: `"info"`, `"torn_tail"` or `"corruption"`.
    #[getter]
    fn severity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        severity_object(py, self.0.reason.severity())
    }

    /// The CRC-32C that the file states, if the reason is `checksum_mismatch`; else `None`.
    #[getter]
    fn stored_crc(&self) -> Option<u32> {
        match self.0.reason {
            cordwood::Reason::ChecksumMismatch { stored, .. } => Some(stored),
            _ => None,
        }
    }

    /// The CRC-32C of the data, if the reason is `checksum_mismatch`; else `None`.
    #[getter]
    fn computed_crc(&self) -> Option<u32> {
        match self.0.reason {
            cordwood::Reason::ChecksumMismatch { computed, .. } => Some(computed),
            _ => None,
        }
    }

    /// The bytes that LevelDB's own reader reports for this region; `None` where it reports none.
    #[getter]
    fn leveldb_len(&self) -> Option<u64> {
        self.0.leveldb_len
    }

    /// The one flipped bit that explains the region, if `verify` or `salvage` found it.
    ///
    /// Nothing is repaired.
    #[getter]
    fn bit_flip(&self) -> Option<BitFlip> {
        self.1
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let cordwood::SkippedRegion { begin, end, reason, .. } = self.0;
        format!(
            "SkippedRegion(offset={begin}, end_offset={end}, reason='{}')",
            reason.as_str()
        )
    }
}

/// How reading a log ended, or that it has not: what `outcome` of a reader, a follower or a report is.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> cordwood.verify("example.log").outcome
/// Outcome(kind='clean', offset=10)
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    kind: &'static str,
    offset: u64,
}

impl From<cordwood::End> for Outcome {
    fn from(end: cordwood::End) -> Self {
        Outcome {
            kind: end.as_str(),
            offset: end.offset(),
        }
    }
}

impl Outcome {
    /// How a reading stands that has come to `position`, and may have ended there.
    pub(crate) fn at(position: u64, end: Option<cordwood::End>) -> Self {
        end.map_or(
            Outcome {
                kind: "unfinished",
                offset: position,
            },
            Outcome::from,
        )
    }
}

#[pymethods]
impl Outcome {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("kind", "offset")
    }

    /// `"clean"`, `"torn_tail"`, `"stopped"` or `"unfinished"`.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        KIND.import(py, "cordwood.types", "OutcomeKind")?.call1((self.kind,))
    }

    /// Where, as a file offset, in bytes.
    ///
    /// The end of the file (or of the range), the beginning of the torn tail, the beginning of the
    /// damage, or how far reading has come.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn __repr__(&self) -> String {
        format!("Outcome(kind='{}', offset={})", self.kind, self.offset)
    }
}

/// The member of `cordwood.types.Severity`.
pub(crate) fn severity_object(py: Python<'_>, severity: cordwood::Severity) -> PyResult<Bound<'_, PyAny>> {
    static SEVERITY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    SEVERITY
        .import(py, "cordwood.types", "Severity")?
        .call1((severity.as_str(),))
}

/// The member of `cordwood.types.Reason` with this name.
pub(crate) fn reason_object<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static REASON: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    REASON.import(py, "cordwood.types", "Reason")?.call1((name,))
}

/// The regions that are listed.
pub(crate) fn listed(findings: &cordwood::Findings) -> Vec<SkippedRegion> {
    findings.listed().iter().copied().map(SkippedRegion::from).collect()
}
