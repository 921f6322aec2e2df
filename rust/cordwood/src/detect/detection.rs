//! The results of format detection, and the number of bytes that it inspects.

use super::foreign::Foreign;
use crate::dialect::LogFormat;
use crate::format::BLOCK_LEN;

/// The number of bytes that [`detect`](crate::ops::detect) inspects at the start of a file. Three
/// blocks' worth of bytes always includes the whole second block, even if a file header precedes
/// the first.
pub const DETECT_LEN: usize = 3 * BLOCK_LEN;

/// The kind of a file.
///
/// This enum is exhaustive, because there can be no fourth kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// A log in this format.
    Log(LogFormat),
    /// A file in another format.
    Foreign(Foreign),
    /// The kind cannot be determined, because the file is empty or contains no complete fragment
    /// with a valid checksum. A [`Reader`](crate::Reader) assumes
    /// [`Dialect::LEVELDB`](crate::Dialect::LEVELDB).
    Unclear,
}

/// The result of detection in part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartialDetection {
    Log(LogFormat),
    Foreign(Foreign),
    /// The kind cannot be determined.
    Unclear,
    /// These bytes don't show that the file is a log, but more bytes follow, so the rest of the
    /// file determines the kind. See [`of_rest`](super::of_rest).
    Longer(Option<Foreign>),
    /// More bytes are needed to determine the kind.
    NeedMore,
}
