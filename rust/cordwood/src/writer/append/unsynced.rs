//! Files whose sync has failed in this process.
//!
//! After a failed `fsync`, Linux marks the pages it could not write as clean. They can still be
//! read, and the next sync succeeds, but they are not on disk. A writer that reopens such a file
//! must therefore rewrite the bytes to make the pages dirty. Only then does a successful sync mean
//! that the bytes are on disk. Only the process whose sync failed knows about the failure. Another
//! process can pass a checkpoint to indicate which bytes are known to be on disk.
//!
//! Source: Rebello et al., "Can Applications Recover from fsync Failures?" (USENIX ATC 2020);
//! PostgreSQL, "fsyncgate" (2018).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::file::FileId;

/// An offset for each file whose sync failed. Everything before this offset was on disk when the
/// sync failed.
static UNSYNCED: Mutex<BTreeMap<FileId, u64>> = Mutex::new(BTreeMap::new());

/// The number of files whose sync failed. While it is 0, as it nearly always is, the lock is not
/// taken. In a forked child, the lock may be held by a thread that does not exist there.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn unsynced() -> MutexGuard<'static, BTreeMap<FileId, u64>> {
    // None of the code that runs while the lock is held can panic.
    UNSYNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers that a sync has failed. Everything before `durable_offset` is on disk. If an earlier
/// sync also failed, the greater offset is kept.
pub(in crate::writer) fn remember(file: Option<FileId>, durable_offset: u64) {
    if let Some(file) = file {
        let mut unsynced = unsynced();
        let known = unsynced.entry(file).or_insert(durable_offset);
        *known = durable_offset.max(*known);
        COUNT.store(unsynced.len(), Relaxed);
    }
}

/// Returns an offset if a sync of this file has failed, and `None` otherwise. Everything before the
/// offset was on disk when the sync failed.
pub(in crate::writer) fn known_offset(file: Option<FileId>) -> Option<u64> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    unsynced().get(&file?).copied()
}

/// Forgets a file's failed sync. The caller has rewritten and synced the whole file, or found that
/// this is not the file whose sync failed.
pub(in crate::writer) fn forget(file: Option<FileId>) {
    if let Some(file) = file
        && COUNT.load(Relaxed) > 0
    {
        let mut unsynced = unsynced();
        unsynced.remove(&file);
        COUNT.store(unsynced.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_greatest_unsynced_offset_until_the_file_is_forgotten() {
        let file = tempfile::tempfile().expect("a file");
        let file = Some(FileId::of(&file).expect("an identity"));
        assert_eq!(known_offset(file), None);
        for (durable_offset, known) in [(10, 10), (5, 10), (20, 20)] {
            remember(file, durable_offset);
            assert_eq!(known_offset(file), Some(known));
        }
        remember(None, 30);
        assert_eq!((known_offset(file), known_offset(None)), (Some(20), None));
        forget(file);
        assert_eq!(known_offset(file), None);
    }
}
