//! The messages to the logger `cordwood`: damage that is skipped, in limited number, and why a
//! whole file contains no record.

use std::path::Path;

use cordwood::damage::Severity;
use cordwood::{Reader, read::Source};
use pyo3::intern;
use pyo3::prelude::*;

use crate::interpreter::python_code::{Arguments, PythonCode};
use crate::values::SkippedRegion;
use crate::values::error::of_call;

/// Limits the messages of one reading of a log to the logger: a hostile file must not flood it.
#[derive(Default)]
pub(crate) struct Logged {
    count: u64,
    len: u64,
    /// Whether it has been logged that the file belongs to another log.
    has_other_log: bool,
}

impl Logged {
    /// The maximum number of regions that are logged individually.
    const COUNT_MAX: u64 = 10;

    /// Counts a region of damage, and returns whether to log it.
    pub(crate) fn add(&mut self, region: cordwood::damage::SkippedRegion) -> bool {
        self.count += 1;
        let is_logged = self.count <= Self::COUNT_MAX;
        if !is_logged {
            self.len += region.len();
        }
        is_logged
    }

    /// Counts a region that need not be logged. Returns `false`, and does not count it, if it is to
    /// be logged.
    pub(crate) fn only_counts(&mut self, region: cordwood::damage::SkippedRegion) -> bool {
        let is_damage = region.reason.severity() == Severity::Corruption;
        if is_damage && self.count < Self::COUNT_MAX {
            return false;
        }
        if is_damage {
            self.add(region);
        }
        true
    }

    /// At the end of a reading: how many regions were only counted, and how many bytes they
    /// contain. Resets the counters.
    pub(crate) fn summary(&mut self) -> Option<(u64, u64)> {
        let (count, len) = (std::mem::take(&mut self.count), std::mem::take(&mut self.len));
        (count > Self::COUNT_MAX).then(|| (count - Self::COUNT_MAX, len))
    }

    /// At the end of a reading from the beginning of a file: the number of its log, and that of the
    /// log to which the whole file belongs, if they differ and this has not been logged.
    pub(crate) fn other_log<S: Source>(&mut self, reader: &mut Reader<S>) -> Option<(u32, u32)> {
        let other = reader.info().other_log_number?;
        let own = reader.format().ok()?.log_number?;
        (!std::mem::replace(&mut self.has_other_log, true)).then_some((own, other))
    }
}

/// Logs damage.
pub(crate) fn log_skipped(
    py: Python<'_>,
    region: cordwood::damage::SkippedRegion,
    path: Option<&Path>,
) -> PyResult<()> {
    log(
        py,
        "log_skipped",
        (SkippedRegion::from(region), path.map(Path::as_os_str)),
    )
}

/// Logs a summary of the regions that were not logged individually.
pub(crate) fn log_summary(py: Python<'_>, summary: Option<(u64, u64)>, path: Option<&Path>) -> PyResult<()> {
    let Some((count, len)) = summary else { return Ok(()) };
    log(py, "log_summary", (count, len, path.map(Path::as_os_str)))
}

/// Logs that a file belongs to another log.
pub(crate) fn log_other_log(py: Python<'_>, numbers: Option<(u32, u32)>, path: Option<&Path>) -> PyResult<()> {
    let Some((own, other)) = numbers else { return Ok(()) };
    log(py, "log_other_log", (own, other, path.map(Path::as_os_str)))
}

/// Logs the incomplete record at the end of a file that is no longer followed.
pub(crate) fn log_left(py: Python<'_>, offset: u64, len: u64, path: &Path) -> PyResult<()> {
    log(py, "log_left", (offset, len, path.as_os_str()))
}

/// Calls a function of the module that logs. A handler or a filter may raise.
fn log<'py>(py: Python<'py>, function: &str, args: impl Arguments<'py>) -> PyResult<()> {
    let module = py.import(intern!(py, "cordwood._log"))?;
    let called = module.getattr(function)?.run(args);
    called.map(drop).map_err(|raised| of_call(py, raised))
}
