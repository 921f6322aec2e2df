//! Exports batches of records and entities to libraries that read Arrow data, and imports records
//! from libraries that export it.

mod c_data;
pub(crate) mod columns;
pub(crate) mod failure;
pub(crate) mod import;

pub(crate) use c_data::{
    Array, Batches, DataType, Failure, Field, Memory, array_capsules, schema_capsule, stream_capsule,
};
