//! What goes to the logger `cordwood`: damage that is skipped, in bounded number.

use std::path::Path;

use cordwood::damage::Severity;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::skipped_region::SkippedRegion;

/// Limits what one reading of a log sends to the logger: a hostile file must not flood it.
#[derive(Default)]
pub(crate) struct Logged {
    count: u64,
    len: u64,
}

impl Logged {
    /// The most regions that are logged individually.
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

    /// Counts a region that is not logged. `false`: it is to be logged, and is not counted.
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

    /// At the end of a reading: how many regions were only counted, and how many bytes they have.
    /// Resets the counters.
    pub(crate) fn summary(&mut self) -> Option<(u64, u64)> {
        let Logged { count, len } = std::mem::take(self);
        (count > Self::COUNT_MAX).then(|| (count - Self::COUNT_MAX, len))
    }
}

/// Logs damage.
pub(crate) fn log_skipped(
    py: Python<'_>,
    region: cordwood::damage::SkippedRegion,
    path: Option<&Path>,
) -> PyResult<()> {
    static LOG_SKIPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOG_SKIPPED
        .import(py, "cordwood._log", "log_skipped")?
        .call1((SkippedRegion::from(region), path.map(Path::as_os_str)))
        .map(drop)
}

/// Logs a summary of what was not logged individually.
pub(crate) fn log_summary(py: Python<'_>, summary: Option<(u64, u64)>, path: Option<&Path>) -> PyResult<()> {
    let Some((count, len)) = summary else { return Ok(()) };
    let log_summary = py.import("cordwood._log")?.getattr("log_summary")?;
    log_summary.call1((count, len, path.map(Path::as_os_str))).map(drop)
}

/// Logs the incomplete record at the end of a file that is no longer followed.
pub(crate) fn log_left(py: Python<'_>, offset: u64, len: u64, path: &Path) -> PyResult<()> {
    let log_left = py.import("cordwood._log")?.getattr("log_left")?;
    log_left.call1((offset, len, path.as_os_str())).map(drop)
}
