//! The memory of record batches, which is reused.

use std::sync::{Arc, Mutex};

/// Memory of record batches that Python has released. New memory costs more than reading into it,
/// since the system zeroes each page first.
///
/// No call here waits: if another thread is using the pool, memory is allocated or freed instead.
/// In a forked process that thread may not exist.
pub(crate) struct Pool {
    batches: Mutex<Vec<cordwood::read::RecordBatch>>,
    count_max: usize,
}

impl Pool {
    /// A record batch that a huge record has made larger than this is not kept.
    const CAPACITY_MAX: usize = 64 << 20;

    /// `count_max` is the number of record batches in use at a time.
    pub(crate) fn new(count_max: usize) -> Self {
        Pool {
            batches: Mutex::default(),
            count_max,
        }
    }

    pub(crate) fn take(&self) -> cordwood::read::RecordBatch {
        let batch = self.batches.try_lock().ok().and_then(|mut batches| batches.pop());
        batch.unwrap_or_default()
    }

    pub(crate) fn put(&self, mut batch: cordwood::read::RecordBatch) {
        batch.clear();
        if let Ok(mut batches) = self.batches.try_lock()
            && batches.len() < self.count_max
            && batch.capacity() <= Self::CAPACITY_MAX
        {
            batches.push(batch);
        }
    }
}

/// A record batch whose memory goes back to the pool once no object refers to it.
pub(crate) struct PooledBatch {
    records: cordwood::read::RecordBatch,
    pool: Arc<Pool>,
}

impl PooledBatch {
    pub(crate) fn new(records: cordwood::read::RecordBatch, pool: Arc<Pool>) -> Self {
        PooledBatch { records, pool }
    }

    /// Takes the records back: they are not released.
    pub(crate) fn take(&mut self) -> cordwood::read::RecordBatch {
        std::mem::take(&mut self.records)
    }

    pub(crate) fn records(&self) -> &cordwood::read::RecordBatch {
        &self.records
    }
}

impl Drop for PooledBatch {
    fn drop(&mut self) {
        let records = self.take();
        self.pool.put(records);
    }
}
