//! Reuses the memory of record batches.

use std::sync::{Arc, Mutex};

use cordwood::read::RecordBatch;

/// Memory from batches whose pools are no longer in use. The next pool reuses this memory, which
/// helps because many logs have only one or two batches.
static SPARE: Mutex<Vec<RecordBatch>> = Mutex::new(Vec::new());

/// Memory from record batches that Python has released. Allocating new memory costs more than
/// reading records into it, because the system zeroes each page first.
///
/// The pool's methods never block. If another thread is using the pool, the methods allocate or
/// free memory instead. After a fork, a pool in the child may be locked by a thread that does not
/// exist there.
pub(crate) struct Pool {
    batches: Mutex<Vec<RecordBatch>>,
    count_max: usize,
}

impl Pool {
    /// The maximum size, in bytes, of a record batch whose memory is reused. A larger batch, such
    /// as one that contains a huge record, is freed.
    const CAPACITY_MAX: usize = 64 << 20;

    /// The maximum amount of memory, in bytes, that the process keeps for other pools when a pool
    /// is dropped. When records are converted, each batch that is read ahead is shorter than this.
    const SPARE_CAPACITY_MAX: usize = 32 << 20;

    /// Creates a pool for at most `count_max` record batches in use at the same time.
    pub(crate) fn new(count_max: usize) -> Self {
        Pool {
            batches: Mutex::default(),
            count_max,
        }
    }

    pub(crate) fn take(&self) -> RecordBatch {
        let own = self.batches.try_lock().ok().and_then(|mut batches| batches.pop());
        let batch = own.or_else(|| SPARE.try_lock().ok()?.pop());
        batch.unwrap_or_default()
    }

    pub(crate) fn put(&self, mut batch: RecordBatch) {
        batch.clear();
        if let Ok(mut batches) = self.batches.try_lock()
            && batches.len() < self.count_max
            && batch.capacity() <= Self::CAPACITY_MAX
        {
            batches.push(batch);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let (Ok(batches), Ok(mut spare)) = (self.batches.get_mut(), SPARE.try_lock()) {
            for batch in batches.drain(..) {
                let kept: usize = spare.iter().map(RecordBatch::capacity).sum();
                if kept + batch.capacity() <= Self::SPARE_CAPACITY_MAX {
                    spare.push(batch);
                }
            }
        }
    }
}

/// A record batch whose memory returns to the pool once no object refers to it.
pub(crate) struct PooledBatch {
    records: RecordBatch,
    pool: Arc<Pool>,
}

impl PooledBatch {
    pub(crate) fn new(records: RecordBatch, pool: Arc<Pool>) -> Self {
        PooledBatch { records, pool }
    }

    /// Takes the records out of the batch, so that their memory isn't returned to the pool.
    pub(crate) fn take(&mut self) -> RecordBatch {
        std::mem::take(&mut self.records)
    }

    /// Frees most of the memory if the records use less than a quarter of it.
    pub(crate) fn shrink(&mut self) {
        let used = self.records.data().len() + size_of::<u64>() * 2 * self.records.len();
        if self.records.capacity() / 4 > used {
            self.records.shrink_to_fit();
        }
    }

    pub(crate) fn records(&self) -> &RecordBatch {
        &self.records
    }
}

impl Drop for PooledBatch {
    fn drop(&mut self) {
        let records = self.take();
        self.pool.put(records);
    }
}
