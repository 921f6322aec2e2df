//! The kinds of data that programs keep in records.

pub(crate) mod entity;
pub(crate) mod operation;
pub(crate) mod swanlab;
pub(crate) mod table;
mod table_source;
pub(crate) mod version_edit;
pub(crate) mod wandb;
pub(crate) mod write_batch;
