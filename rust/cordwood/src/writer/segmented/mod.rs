//! A segmented log: a series of [`LogFile`](super::LogFile)s in a directory. Only the last one is
//! written to.
//!
//! The rules are in `docs/format/writing.md`.

mod directory;
mod log;
mod room;

#[cfg(feature = "test-storage")]
pub use directory::Directory;
pub use log::SegmentedLog;
