//! A segmented log: one [`LogFile`](super::LogFile) after the other in a directory. Only the last
//! is written.
//!
//! The rules are in `docs/format/writing.md`.

mod directory;
mod log;
mod room;

#[cfg(feature = "test-storage")]
pub use directory::Directory;
pub use log::SegmentedLog;
