//! The logs that a `Writer` writes by itself: one file, or a folder of segments.

use cordwood::damage::SkippedRegion;
use cordwood::write::LogStatus;
use cordwood::{Error, LogFile, LogFormat, SegmentedLog};

/// A log on disk. It has its own lock, which no thread holds while it waits for a sync.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each writer, and most are files"
)]
pub(crate) enum LogOnDisk {
    File(LogFile),
    Segments(SegmentedLog),
}

/// The same call for both.
macro_rules! each {
    ($log:ident in $self:ident => $call:expr) => {
        match $self {
            LogOnDisk::File($log) => $call,
            LogOnDisk::Segments($log) => $call,
        }
    };
}

impl LogOnDisk {
    #[inline]
    pub(crate) fn try_append(&self, record: &[u8]) -> Result<Option<u64>, Error> {
        each!(log in self => log.try_append(record))
    }

    pub(crate) fn append(&self, record: &[u8], sync: bool) -> Result<u64, Error> {
        each!(log in self => if sync { log.append_sync(record) } else { log.append(record) })
    }

    pub(crate) fn extend(&self, records: &[&[u8]]) -> Result<u64, Error> {
        each!(log in self => log.extend(records))
    }

    pub(crate) fn flush(&self) -> Result<(), Error> {
        each!(log in self => log.flush())
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        each!(log in self => log.sync())
    }

    pub(crate) fn wait_durable(&self, offset: u64) -> Result<(), Error> {
        each!(log in self => log.wait_durable(offset))
    }

    pub(crate) fn close(&self) -> Result<(), Error> {
        each!(log in self => log.close())
    }

    pub(crate) fn status(&self) -> LogStatus {
        each!(log in self => log.status())
    }

    pub(crate) fn try_status(&self) -> Option<LogStatus> {
        each!(log in self => log.try_status())
    }

    pub(crate) fn discarded_tail(&self) -> Option<SkippedRegion> {
        each!(log in self => log.discarded_tail())
    }

    pub(crate) fn format(&self) -> LogFormat {
        each!(log in self => log.format())
    }
}
