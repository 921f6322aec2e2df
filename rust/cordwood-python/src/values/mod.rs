//! Arguments, results and exceptions. Results are converted to named tuples. The tuples' classes
//! are written in Python, in `cordwood.types`.

pub(crate) mod arguments;
pub(crate) mod enums;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod position;
pub(crate) mod record;
pub(crate) mod shown;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cordwood::damage::{Finding, Findings, Reason};
use cordwood::ops;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use self::enums::{FRAGMENT_KIND, FRAGMENT_PART, OUTCOME_KIND, REASON, WAIT_REASON};
use self::options::{compression_name, dialect_name};
use crate::memory::buffer::{new_int, new_text, try_bytes};

/// Makes a type convertible to a named tuple. Specify the module and name of the tuple's class, and
/// list the fields in order.
macro_rules! named_tuple {
    (
        $module:literal, $name:literal,
        |$value:ident: $type:ty, $py:ident| {
            $(let $part:pat = $from:expr;)*
            [$($field:expr),+ $(,)?]
        }
    ) => {
        impl<'py> crate::values::IntoField<'py> for $type {
            fn into_field(self, $py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let $value = self;
                $(let $part = $from;)*
                let class = $crate::interpreter::imported!($py, $module, $name)?.cast()?;
                let fields = $crate::memory::buffer::new_tuple($py, [$($field.into_field($py)?),+])?;
                $crate::memory::buffer::new_named_tuple(class, fields)
            }
        }

        impl<'py> IntoPyObject<'py> for $type {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.into_field(py)
            }
        }
    };
}

pub(crate) use named_tuple;

/// A field of a named tuple. When memory runs out, the conversion raises a `MemoryError`, whereas
/// PyO3's own conversions would panic.
pub(crate) trait IntoField<'py> {
    fn into_field(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

macro_rules! fields {
    ($($type:ty: |$field:ident, $py:ident| $made:expr;)*) => {$(
        impl<'py> IntoField<'py> for $type {
            fn into_field(self, $py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let $field = self;
                $made
            }
        }
    )*};
}

fields! {
    u8: |number, py| new_int(py, number.into());
    u16: |number, py| new_int(py, number.into());
    u32: |number, py| new_int(py, number.into());
    u64: |number, py| new_int(py, number);
    bool: |is_set, py| Ok(PyBool::new(py, is_set).to_owned().into_any());
    &str: |text, py| Ok(new_text(py, text)?.into_any());
    &[u8]: |bytes, py| Ok(try_bytes(py, bytes)?.into_any());
    &OsStr: |path, py| path.into_bound_py_any(py);
}

impl<'py, T> IntoField<'py> for Bound<'py, T> {
    fn into_field(self, _py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.into_any())
    }
}

impl<'py, T: IntoField<'py>> IntoField<'py> for Option<T> {
    fn into_field(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.map_or_else(|| Ok(py.None().into_bound(py)), |field| field.into_field(py))
    }
}

struct BitFlip(cordwood::damage::BitFlip);

named_tuple!("cordwood.types", "BitFlip", |flip: BitFlip, py| {
    let BitFlip(flip) = flip;
    [flip.offset, flip.bit, FRAGMENT_PART.member(py, flip.part.as_str())?]
});

pub(crate) struct SkippedRegion(pub(crate) Finding);

named_tuple!("cordwood.types", "SkippedRegion", |found: SkippedRegion, py| {
    let Finding { region, bit_flip, .. } = found.0;
    let reason = region.reason;
    [
        region.start,
        region.end,
        REASON.member(py, reason.as_str())?,
        reason.detail("stored_crc"),
        reason.detail("computed_crc"),
        reason.detail("stated_len"),
        reason.detail("type_byte"),
        reason.detail("version"),
        bit_flip.map(BitFlip),
    ]
});

/// Describes in words why a region was skipped.
///
/// `SkippedRegion.description` returns this text.
///
/// Args:
///     reason: The reason.
///     region: The region. Its attributes contain the details of why it was skipped. Attributes
///         that don't belong to `reason` are ignored.
///
/// Returns:
///     The text.
///
/// Raises:
///     ValueError: The reason is unknown.
#[pyfunction]
#[pyo3(signature = (reason, region, /))]
pub(crate) fn reason_in_words(reason: &str, region: &Bound<'_, PyAny>) -> PyResult<String> {
    let detail = |name: &str| Ok::<_, PyErr>(region.getattr(name)?.extract::<Option<_>>()?.unwrap_or_default());
    match Reason::ALL.iter().find(|found| found.as_str() == reason) {
        Some(found) => Ok(found.with_details(detail)?.to_string()),
        None => Err(PyValueError::new_err(format!("there is no reason '{reason}'"))),
    }
}

/// Converts the regions listed in the findings.
pub(crate) fn listed<'py>(py: Python<'py>, findings: &Findings) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, findings.listed().iter().copied().map(SkippedRegion))
}

/// The outcome of reading. The default means that reading has not started.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// How reading ended, or `None` if it hasn't ended yet.
    end: Option<cordwood::End>,
    offset: u64,
    zeros_offset: Option<u64>,
}

impl Outcome {
    /// Returns the outcome of reading up to `position`. `end` is set if reading has ended.
    /// `zeros_offset` is the start of the zeros at the end of the file.
    pub(crate) fn at(position: u64, end: Option<cordwood::End>, zeros_offset: Option<u64>) -> Self {
        Outcome {
            end,
            offset: end.map_or(position, |end| end.offset()),
            zeros_offset: zeros_offset.filter(|_| end.is_some()),
        }
    }
}

named_tuple!("cordwood.types", "Outcome", |outcome: Outcome, py| {
    [
        OUTCOME_KIND.member(py, outcome.end.map_or("unfinished", |end| end.as_str()))?,
        outcome.offset,
        outcome.zeros_offset,
    ]
});

#[derive(Clone, Copy)]
pub(crate) struct NotYet {
    pub(crate) reason: &'static str,
    pub(crate) offset: u64,
    pub(crate) file_len: u64,
}

named_tuple!("cordwood.types", "NotYet", |not_yet: NotYet, py| {
    [
        WAIT_REASON.member(py, not_yet.reason)?,
        not_yet.offset,
        not_yet.file_len,
    ]
});

pub(crate) struct Fragment(pub(crate) ops::Fragment);

named_tuple!("cordwood.types", "Fragment", |fragment: Fragment, py| {
    let Fragment(fragment) = fragment;
    [
        fragment.offset,
        fragment.end_offset,
        FRAGMENT_KIND.member(py, fragment.kind.as_str())?,
        fragment.block,
        fragment.type_byte,
        fragment.payload_len,
        fragment.stored_crc,
        fragment.computed_crc,
        fragment.log_number,
        fragment.synced_offset,
        fragment
            .reason
            .map(|reason| REASON.member(py, reason.as_str()))
            .transpose()?,
        fragment.record_offset,
        fragment.is_salvaged,
    ]
});

pub(crate) struct Report {
    pub(crate) report: ops::Report,
    /// The kind of records missing from the new log that `salvage` wrote. The core can't set this,
    /// because it doesn't decode the contents of records.
    pub(crate) lost_content: Option<&'static str>,
    pub(crate) path: Option<PathBuf>,
}

/// Returns, for each reason in the findings, the total length of its regions in bytes.
pub(crate) fn len_by_reason<'py>(py: Python<'py>, findings: &Findings) -> PyResult<Bound<'py, PyDict>> {
    let lens = PyDict::new(py);
    for (name, _, len) in findings.lens() {
        lens.set_item(REASON.member(py, name)?, len)?;
    }
    Ok(lens)
}

named_tuple!("cordwood.types", "Report", |this: Report, py| {
    let report = &this.report;
    let not_kept = report.not_kept.iter().map(|what| what.as_str());
    let not_kept = not_kept.chain(this.lost_content).collect::<Vec<_>>();
    [
        dialect_name(py, report.format.dialect)?,
        report.record_count,
        report.payload_len,
        report.file_len,
        Outcome::at(0, Some(report.end), report.zeros_offset()),
        len_by_reason(py, &report.findings)?,
        report.format.log_number,
        compression_name(report.format),
        report.salvaged_count,
        report.repaired_count,
        listed(py, &report.findings)?,
        listed(py, &report.repaired)?,
        report.other_log_number,
        PyTuple::new(py, not_kept)?,
        report.is_dialect_known,
        this.path.as_deref().map(Path::as_os_str),
    ]
});

pub(crate) struct Stat {
    pub(crate) stat: ops::Stat,
    pub(crate) path: Option<PathBuf>,
}

named_tuple!("cordwood.types", "Stat", |this: Stat, py| {
    let stat = &this.stat;
    [
        dialect_name(py, stat.format.dialect)?,
        stat.record_count,
        stat.payload_len,
        stat.file_len,
        Outcome::at(0, Some(stat.end), stat.zeros_offset()),
        stat.format.log_number,
        compression_name(stat.format),
        stat.salvaged_count,
        stat.stored_len,
        stat.header_len,
        stat.record_len_min,
        stat.record_len_max,
        stat.full_count,
        stat.first_count,
        stat.middle_count,
        stat.last_count,
        stat.container_count,
        stat.container_len,
        stat.packed_count,
        stat.packed_len,
        stat.trailer_len,
        stat.skipped_len,
        stat.damaged_len,
        stat.zeros_inside_len(),
        stat.other_log_number,
        stat.is_ok(),
        this.path.as_deref().map(Path::as_os_str),
    ]
});
