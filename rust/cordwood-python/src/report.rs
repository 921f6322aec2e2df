//! The class `Report`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use cordwood::damage::Severity;
use cordwood::ops;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::enums::{REASON, SEVERITY};
use crate::options::{compression_name, dialect_name, format_of};
use crate::outcome::Outcome;
use crate::skipped_region::{SkippedRegion, listed, reason_named};
use crate::value::{Reduced, html, reduced};

/// What is in a log and what is wrong with it, as `verify` and `salvage` return it.
///
/// The constructor takes the attributes as keywords, except those that follow from the others:
/// `ok`, `skipped_len` and `len_by_severity`. Two reports are equal if everything except their
/// paths is. A notebook shows a report as a table.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> cordwood.verify("example.log")
/// <cordwood.Report: ok=True, record_count=2, skipped=0, outcome=Outcome(kind='clean', offset=20)>
#[pyclass(frozen, module = "cordwood")]
pub(crate) struct Report {
    format: cordwood::LogFormat,
    counts: Counts,
    skipped: Py<PyTuple>,
    repaired: Py<PyTuple>,
    /// Bytes in all regions, listed or not, by the name of the reason.
    lens: BTreeMap<&'static str, (Severity, u64)>,
    not_kept: Py<PyTuple>,
    path: Option<PathBuf>,
}

/// The plain numbers of a [`Report`].
#[derive(PartialEq, Eq, Hash)]
struct Counts {
    dialect_known: bool,
    record_count: u64,
    salvaged_count: u64,
    repaired_count: u64,
    payload_len: u64,
    file_len: Option<u64>,
    outcome: Outcome,
    other_log_number: Option<u32>,
}

impl Report {
    /// `lost_content` names what the new log of `salvage` lacks of its records' contents, which
    /// only this crate decodes.
    pub(crate) fn of(
        py: Python<'_>,
        report: ops::Report,
        lost_content: Option<&'static str>,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let lens = report.findings.lens();
        let not_kept = report.not_kept.iter().map(|what| what.as_str());
        let not_kept: Vec<_> = not_kept.chain(lost_content).collect();
        Ok(Report {
            format: report.format,
            counts: Counts {
                dialect_known: report.is_dialect_known,
                record_count: report.record_count,
                salvaged_count: report.salvaged_count,
                repaired_count: report.repaired_count,
                payload_len: report.payload_len,
                file_len: report.file_len,
                outcome: Outcome::of(report.end, report.zeros_offset()),
                other_log_number: report.other_log_number,
            },
            skipped: listed(py, &report.findings)?.unbind(),
            repaired: listed(py, &report.repaired)?.unbind(),
            lens: lens.map(|(name, severity, len)| (name, (severity, len))).collect(),
            not_kept: PyTuple::new(py, not_kept)?.unbind(),
            path,
        })
    }

    fn len_of(&self, severity: Severity) -> u64 {
        let lens = self.lens.values().filter(|(of_reason, _)| *of_reason == severity);
        lens.map(|(_, len)| len).sum()
    }
}

#[pymethods]
impl Report {
    #[new]
    #[pyo3(signature = (
        *, dialect, record_count, payload_len, file_len, outcome, log_number = None, compression = None,
        salvaged_count = 0, repaired_count = 0, skipped = None, repaired = None, len_by_reason = None, other_log_number = None,
        not_kept = None, dialect_known = true, path = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        py: Python<'_>,
        dialect: &Bound<'_, PyString>,
        record_count: u64,
        payload_len: u64,
        file_len: Option<u64>,
        outcome: Outcome,
        log_number: Option<u32>,
        compression: Option<&str>,
        salvaged_count: u64,
        repaired_count: u64,
        skipped: Option<Vec<SkippedRegion>>,
        repaired: Option<Vec<SkippedRegion>>,
        len_by_reason: Option<BTreeMap<String, u64>>,
        other_log_number: Option<u32>,
        not_kept: Option<Vec<String>>,
        dialect_known: bool,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let skipped = skipped.unwrap_or_default();
        let mut lens = BTreeMap::new();
        let mut add = |reason: cordwood::damage::Reason, len: u64| {
            let (_, sum): &mut (_, u64) = lens.entry(reason.as_str()).or_insert((reason.severity(), 0));
            *sum = sum.saturating_add(len);
        };
        match len_by_reason {
            Some(lens) => lens
                .iter()
                .try_for_each(|(name, &len)| reason_named(name).map(|reason| add(reason, len)))?,
            None => skipped.iter().for_each(|region| add(region.reason, region.len())),
        }
        Ok(Report {
            format: format_of(dialect, log_number, compression)?,
            counts: Counts {
                dialect_known,
                record_count,
                salvaged_count,
                repaired_count,
                payload_len,
                file_len,
                outcome,
                other_log_number,
            },
            skipped: PyTuple::new(py, skipped)?.unbind(),
            repaired: PyTuple::new(py, repaired.unwrap_or_default())?.unbind(),
            lens,
            not_kept: PyTuple::new(py, not_kept.unwrap_or_default())?.unbind(),
            path,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(
            slf,
            &[
                "dialect",
                "record_count",
                "payload_len",
                "file_len",
                "outcome",
                "log_number",
                "compression",
                "salvaged_count",
                "repaired_count",
                "skipped",
                "repaired",
                "len_by_reason",
                "other_log_number",
                "not_kept",
                "dialect_known",
                "path",
            ],
        )
    }

    /// The dialect of the log, such as `"leveldb"`.
    #[getter]
    fn dialect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dialect_name(py, self.format.dialect)
    }

    /// Whether the dialect was named, or detected.
    ///
    /// If not, nothing in the file shows it, and the log was read as `"leveldb"`.
    #[getter]
    fn dialect_known(&self) -> bool {
        self.counts.dialect_known
    }

    /// The number of the log; `None` if the dialect has none or if it is not known.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.format.log_number
    }

    /// How each record is compressed: `"zstd"`, or `None` for not at all.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        compression_name(self.format)
    }

    /// Whether no damage was found: no region of severity `"corruption"`, and nothing to repair.
    ///
    /// Torn tails do not count.
    #[getter]
    fn ok(&self, py: Python<'_>) -> bool {
        self.len_of(Severity::Corruption) == 0 && self.repaired.bind(py).is_empty()
    }

    /// Records that were returned.
    #[getter]
    fn record_count(&self) -> u64 {
        self.counts.record_count
    }

    /// Returned records that begin after damage in the same block.
    ///
    /// LevelDB and the policy `"skip"` drop these, and return the others.
    #[getter]
    fn salvaged_count(&self) -> u64 {
        self.counts.salvaged_count
    }

    /// Records that `salvage` wrote with a bit flipped back; 0 without `repair_bit_flips`.
    #[getter]
    fn repaired_count(&self) -> u64 {
        self.counts.repaired_count
    }

    /// Bytes of data in the records, without headers and trailers.
    #[getter]
    fn payload_len(&self) -> u64 {
        self.counts.payload_len
    }

    /// The length of the whole file, including what is outside the range.
    ///
    /// `None` if it is not known: for an object with `read` that was not read to its end.
    #[getter]
    fn file_len(&self) -> Option<u64> {
        self.counts.file_len
    }

    /// The regions that were not returned, in order of offset: the first 100,000.
    ///
    /// A region that one flipped bit explains has a `bit_flip`.
    ///
    /// Adjacent regions are merged if their reasons are the same in all details and no flipped bit
    /// explains either region.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> Py<PyTuple> {
        self.skipped.clone_ref(py)
    }

    /// The fragments that `salvage` wrote with a bit flipped back: the first 100,000.
    ///
    /// Each is listed as a reader would skip it, with the `bit_flip`. It is a fragment of a record,
    /// metadata of the engine, the file header, or the trailer of a closed log.
    #[getter]
    fn repaired(&self, py: Python<'_>) -> Py<PyTuple> {
        self.repaired.clone_ref(py)
    }

    /// Bytes in all regions, listed or not.
    #[getter]
    fn skipped_len(&self) -> u64 {
        self.lens.values().map(|(_, len)| len).sum()
    }

    /// Bytes in the regions of each severity that occurs.
    #[getter]
    fn len_by_severity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for severity in [Severity::Info, Severity::TornTail, Severity::Corruption] {
            let len = self.len_of(severity);
            if len > 0 {
                lens.set_item(SEVERITY.member(py, severity.as_str())?, len)?;
            }
        }
        Ok(lens)
    }

    /// Bytes in the regions with each reason that occurs.
    #[getter]
    fn len_by_reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for (name, (_, len)) in &self.lens {
            lens.set_item(REASON.member(py, name)?, len)?;
        }
        Ok(lens)
    }

    /// How reading ended.
    #[getter]
    fn outcome(&self) -> Outcome {
        self.counts.outcome
    }

    /// The number of another log, if the whole file belongs to that log; else `None`.
    ///
    /// The file's name or `log_number` states a different number: the file was recycled and nothing
    /// has been written to the log with that number yet, or the file was renamed or copied.
    #[getter]
    fn other_log_number(&self) -> Option<u32> {
        self.counts.other_log_number
    }

    /// What `salvage` could not keep in the new log; empty after `verify`.
    ///
    /// `"synced_offsets"`: how far the file had been synced, which some Pebble records state.
    /// `"bad_metadata"` and `"ignored_kinds"`: metadata in a form that no engine writes, or of an
    /// unknown type. `"timestamp_sizes"` and `"predecessor"`: records of RocksDB's own that are
    /// damaged, if one flipped bit shows what they were, or that follow damage in their block.
    /// Without the first, RocksDB takes keys with timestamps for keys without. `"version_edit"`: an
    /// edit of a MANIFEST without which no engine opens the database.
    #[getter]
    fn not_kept(&self, py: Python<'_>) -> Py<PyTuple> {
        self.not_kept.clone_ref(py)
    }

    /// The path, the URL, or the `name` of an object with `read_range`; else `None`.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    /// What a notebook shows: a table, in HTML.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf, "of_report")
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Report>() else {
            return Ok(false);
        };
        let other = other.get();
        Ok(self.format == other.format
            && self.counts == other.counts
            && self.lens == other.lens
            && self.not_kept.bind(py).eq(&other.not_kept)?
            && self.repaired.bind(py).eq(&other.repaired)?
            && self.skipped.bind(py).eq(&other.skipped)?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.counts.hash(&mut hasher);
        self.skipped.bind(py).hash()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Report { counts, skipped, .. } = self;
        let ok = if self.ok(py) { "True" } else { "False" };
        format!(
            "<cordwood.Report: ok={ok}, record_count={}, skipped={}, outcome={}>",
            counts.record_count,
            skipped.bind(py).len(),
            counts.outcome.__repr__()
        )
    }
}
