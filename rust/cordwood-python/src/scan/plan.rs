//! The sources of a scan, its options, and its findings.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cordwood::ReadOptions;

use super::paths::Paths;
use crate::arrow::columns::Column;
use crate::reader::skipped::Skipped;
use crate::values::Outcome;

/// The sources and the options: the same for all streams of a scan.
pub(super) struct Plan {
    pub(super) columns: Vec<Column>,
    pub(super) options: ReadOptions,
    /// Those of each source, which may be a part of a log.
    pub(super) source_options: Vec<ReadOptions>,
    pub(super) threads: usize,
    pub(super) paths: Paths,
    /// How many times each source was opened.
    pub(super) openings: Vec<AtomicU64>,
    /// The most recently started reading.
    pub(super) latest: Mutex<Reading>,
}

/// The findings of one reading in each source.
pub(super) type Reading = Arc<[LogState]>;

#[derive(Default)]
pub(super) struct LogState {
    pub(super) skipped: Skipped,
    outcome: Mutex<Outcome>,
}

impl LogState {
    pub(super) fn outcome(&self) -> Outcome {
        *lock(&self.outcome)
    }

    pub(super) fn set_outcome(&self, outcome: Outcome) {
        *lock(&self.outcome) = outcome;
    }
}

impl Plan {
    pub(super) fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    pub(super) fn latest(&self) -> Reading {
        Arc::clone(&lock(&self.latest))
    }

    /// Begins a reading.
    pub(super) fn begin(&self) -> Reading {
        let reading: Reading = self.openings.iter().map(|_| LogState::default()).collect();
        *lock(&self.latest) = Arc::clone(&reading);
        reading
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
