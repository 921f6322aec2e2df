//! The sources of a scan, its options, and its findings.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cordwood::damage::Findings;
use cordwood::{End, ReadOptions};

use super::paths::Paths;
use crate::arrow::columns::Column;

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
    pub(super) latest: Mutex<Latest>,
}

/// The findings of the most recently started reading.
#[derive(Default)]
pub(super) struct Latest {
    pub(super) number: u64,
    pub(super) logs: Vec<LogState>,
}

#[derive(Default, Clone)]
pub(super) struct LogState {
    pub(super) findings: Findings,
    pub(super) position: u64,
    pub(super) end: Option<End>,
    pub(super) file_len: Option<u64>,
}

impl Plan {
    pub(super) fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    pub(super) fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a reading, and returns its number.
    pub(super) fn begin(&self) -> u64 {
        let mut latest = self.latest();
        latest.number += 1;
        latest.logs = vec![LogState::default(); self.openings.len()];
        latest.number
    }

    /// Notes the findings of the reading with this number in a log, unless another has begun.
    pub(super) fn note(&self, reading: u64, source: usize, change: impl FnOnce(&mut LogState)) {
        let mut latest = self.latest();
        if latest.number == reading
            && let Some(log) = latest.logs.get_mut(source)
        {
            change(log);
        }
    }
}
