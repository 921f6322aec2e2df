//! The input of detection, and its results.

use super::foreign::Foreign;
use crate::dialect::LogFormat;
use crate::format::BLOCK_LEN;

/// How many bytes of the start of a file [`detect`](crate::ops::detect) inspects: three
/// blocks, so that the second one is included even if it starts after a file header.
pub const DETECT_LEN: usize = 3 * BLOCK_LEN;

/// The kind of a file.
///
/// Exhaustive: there is no fourth answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// A log in this format.
    Log(LogFormat),
    /// A file in another format.
    Foreign(Foreign),
    /// It cannot be determined: the file is empty, or contains no complete fragment with a valid
    /// checksum. A [`Reader`](crate::Reader) assumes [`Dialect::LEVELDB`](crate::Dialect::LEVELDB).
    Unclear,
}

/// The result of detection in a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartialDetection {
    Log(LogFormat),
    Foreign(Foreign),
    /// It cannot be determined.
    Unclear,
    /// The file continues after these bytes, which do not show that it is a log. The rest
    /// decides: see [`of_rest`](super::of_rest).
    Longer(Option<Foreign>),
    /// More bytes are needed.
    NeedMore,
}
