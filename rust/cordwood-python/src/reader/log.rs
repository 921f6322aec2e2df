//! Sends messages to the logger `cordwood`. They report a limited number of skipped regions, and
//! explain why a file contains no records at all.

use std::path::Path;

use cordwood::damage::{Finding, Severity, SkippedRegion};
use cordwood::{Reader, read::Source};
use pyo3::prelude::*;

use crate::interpreter::python_code::{Arguments, PythonCode, module};
use crate::values;
use crate::values::error::of_call;

/// Limits the number of messages logged while a log is read, because a hostile file must not flood
/// the logger.
#[derive(Default)]
pub(crate) struct Logged {
    count: u64,
    len: u64,
    /// Whether [`Message::OtherLog`] has been logged.
    has_other_log: bool,
}

/// The messages about one step (at most two). They are logged without holding the reader's lock,
/// because a logging handler or filter can run any Python code.
pub(crate) type Messages = [Option<Message>; 2];

pub(crate) enum Message {
    /// Damage.
    Skipped(SkippedRegion),
    /// The number of regions that were not logged individually, and the number of bytes in them.
    Summary { count: u64, len: u64 },
    /// `own` is the log number that was expected. `other` is the number of the log that the whole
    /// file belongs to.
    OtherLog { own: u32, other: u32 },
    /// The offset and length of the incomplete record at the end of a file that is no longer
    /// followed.
    Left { offset: u64, len: u64 },
}

impl Logged {
    /// The maximum number of regions to log individually.
    const COUNT_MAX: u64 = 10;

    /// Counts a damaged region, and returns the messages to log about it.
    pub(crate) fn add(&mut self, region: SkippedRegion) -> Messages {
        self.count += 1;
        let is_logged = self.count <= Self::COUNT_MAX;
        if !is_logged {
            self.len += region.len();
        }
        [is_logged.then_some(Message::Skipped(region)), None]
    }

    /// Counts a region that doesn't need to be logged. If the region has to be logged, returns
    /// `false` without counting it.
    pub(crate) fn only_counts(&mut self, region: SkippedRegion) -> bool {
        let is_damage = region.reason.severity() == Severity::Corruption;
        if is_damage && self.count < Self::COUNT_MAX {
            return false;
        }
        if is_damage {
            self.add(region);
        }
        true
    }

    /// Returns the message about the regions that were only counted, and resets the counters.
    /// Called when reading ends.
    pub(crate) fn summary(&mut self) -> Option<Message> {
        let (count, len) = (std::mem::take(&mut self.count), std::mem::take(&mut self.len));
        let count = count.checked_sub(Self::COUNT_MAX).filter(|&count| count > 0)?;
        Some(Message::Summary { count, len })
    }

    /// Returns the messages at the end of a log: the [`summary`](Self::summary) and, if the file
    /// belongs to another log, a message that says so. If the log was read from its start, pass its
    /// reader as `whole`. Without `whole`, the second message is left out.
    pub(crate) fn end<S: Source>(&mut self, whole: Option<&mut Reader<S>>) -> Messages {
        let other_log = whole.and_then(|reader| {
            let other = reader.info().other_log_number?;
            let own = reader.format().ok()?.log_number?;
            Some(Message::OtherLog { own, other })
        });
        let other_log = other_log.filter(|_| !std::mem::replace(&mut self.has_other_log, true));
        [self.summary(), other_log]
    }
}

pub(crate) fn log(py: Python<'_>, messages: Messages, path: Option<&Path>) -> PyResult<()> {
    let path = path.map(Path::as_os_str);
    messages.into_iter().flatten().try_for_each(|message| match message {
        Message::Skipped(region) => call(py, "log_skipped", (values::SkippedRegion(Finding::new(region)), path)),
        Message::Summary { count, len } => call(py, "log_summary", (count, len, path)),
        Message::OtherLog { own, other } => call(py, "log_other_log", (own, other, path)),
        Message::Left { offset, len } => call(py, "log_left", (offset, len, path)),
    })
}

/// Calls a function in the logging module. A logging handler or filter may raise an exception.
fn call<'py>(py: Python<'py>, function: &str, args: impl Arguments<'py>) -> PyResult<()> {
    let called = module(py, "cordwood._log")?.getattr(function)?.run(args);
    called.map(drop).map_err(|raised| of_call(py, raised))
}
