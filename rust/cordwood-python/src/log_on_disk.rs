//! The logs a `Writer` can write to disk: a single file, or a directory of segments.

use cordwood::damage::SkippedRegion;
use cordwood::write::LogStatus;
use cordwood::{Error, LogFile, LogFormat, SegmentedLog};

/// A log on disk. Each log has its own lock, which no thread holds while waiting for a sync.
pub(crate) enum LogOnDisk {
    File(LogFile),
    Segments(SegmentedLog),
}

/// Defines methods that forward to the [`LogFile`] or [`SegmentedLog`] method of the same name.
macro_rules! same {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        impl LogOnDisk {
            $(
                #[inline]
                pub(crate) fn $name(&self, $($arg: $type),*) -> $result {
                    match self {
                        LogOnDisk::File(log) => log.$name($($arg),*),
                        LogOnDisk::Segments(log) => log.$name($($arg),*),
                    }
                }
            )*
        }
    };
}

same! {
    fn try_append(record: &[u8]) -> Result<Option<u64>, Error>;
    fn append(record: &[u8]) -> Result<u64, Error>;
    fn append_sync(record: &[u8]) -> Result<u64, Error>;
    fn extend(records: &[&[u8]]) -> Result<u64, Error>;
    fn flush() -> Result<(), Error>;
    fn sync() -> Result<(), Error>;
    fn wait_durable(offset: u64) -> Result<(), Error>;
    fn close() -> Result<(), Error>;
    fn status() -> LogStatus;
    fn try_status() -> Option<LogStatus>;
    fn discarded_tail() -> Option<SkippedRegion>;
    fn format() -> LogFormat;
}
