//! A log in segments: one [`LogFile`](super::LogFile) after the other in a folder, of which the last
//! is written.
//!
//! The rules are in `docs/format/writing.md`.

mod folder;
mod log;
mod room;

#[cfg(feature = "test-storage")]
pub use folder::Folder;
pub use log::SegmentedLog;
