//! The options of a scan, and its findings.

use std::sync::{Arc, Mutex, PoisonError};

use cordwood::OnCorruption;

use crate::arrow::columns::Column;
use crate::reader::skipped::Skipped;

/// The options and findings shared by all streams of a scan.
pub(super) struct Plan {
    pub(super) columns: Vec<Column>,
    pub(super) on_corruption: OnCorruption,
    pub(super) threads: usize,
    /// The findings of the most recently started read.
    pub(super) latest: Mutex<Reading>,
}

/// The findings of one read of all sources, one item per source.
pub(super) type Reading = Arc<[Skipped]>;

impl Plan {
    pub(super) fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    pub(super) fn latest(&self) -> Reading {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts reading `count` sources.
    pub(super) fn start(&self, count: usize) -> Reading {
        let reading: Reading = (0..count).map(|_| Skipped::default()).collect();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&reading);
        reading
    }
}
