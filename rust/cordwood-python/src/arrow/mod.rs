//! Batches of records and of entities, for everything that reads Arrow; and records from everything
//! that exports it.

mod c_data;
pub(crate) mod columns;
pub(crate) mod failure;
pub(crate) mod import;

pub(crate) use c_data::{
    Array, Batches, DataType, Failure, Field, Memory, array_capsules, schema_capsule, stream_capsule,
};
