//! Reads and creates objects in Python's memory, and reuses the memory of record batches.

pub(crate) mod batch_pool;
pub(crate) mod buffer;
