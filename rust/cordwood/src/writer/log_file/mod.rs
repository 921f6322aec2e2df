//! A log file on disk that several threads can append to. It keeps its guarantees even if a write
//! or a sync fails, or if the machine crashes.
//!
//! The rules are in `docs/format/writing.md`.

mod disk;
mod handle;
mod open;
mod options;
mod state;

#[cfg(not(loom))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

// `tests/loom.rs` explores all interleavings of the threads.
#[cfg(loom)]
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};

pub use handle::LogFile;
pub(super) use open::check_appended_to;
pub use options::{FlushPolicy, LogFileOptions, OnTornTail, SyncPolicy};
pub use state::LogStatus;
