//! Memory: Python's, which is read or made here, and that of record batches, which is reused.

pub(crate) mod batch_pool;
pub(crate) mod buffer;
