//! The memory of record batches, which is used again.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of record batches that Python has released. New memory costs more than reading into it:
/// the system zeroes each page first.
pub(crate) struct Pool {
    batches: Mutex<Vec<cordwood::read::RecordBatch>>,
    count_max: usize,
}

impl Pool {
    /// A record batch that a huge record has enlarged is not kept.
    const CAPACITY_MAX: usize = 64 << 20;

    /// One record batch is read while the next is filled; several threads fill more of them.
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Pool {
            batches: Mutex::default(),
            count_max: match threads.get() {
                1 => 2,
                threads => 4 * threads,
            },
        }
    }

    pub(crate) fn take(&self) -> cordwood::read::RecordBatch {
        let batch = self.batches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        batch.unwrap_or_default()
    }

    fn put(&self, mut batch: cordwood::read::RecordBatch) {
        batch.clear();
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.len() < self.count_max && batch.capacity() <= Self::CAPACITY_MAX {
            batches.push(batch);
        }
    }
}

/// A record batch whose memory goes back to the pool when nothing refers to it any more.
pub(crate) struct PooledBatch {
    records: cordwood::read::RecordBatch,
    pool: Arc<Pool>,
}

impl PooledBatch {
    pub(crate) fn new(records: cordwood::read::RecordBatch, pool: Arc<Pool>) -> Self {
        PooledBatch { records, pool }
    }

    pub(crate) fn records(&self) -> &cordwood::read::RecordBatch {
        &self.records
    }
}

impl Drop for PooledBatch {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.records));
    }
}
