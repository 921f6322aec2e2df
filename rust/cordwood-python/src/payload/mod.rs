//! Decoders for the kinds of data that programs store in records.

pub(crate) mod entity;
pub(crate) mod objects;
pub(crate) mod table;
pub(crate) mod version_edit;
pub(crate) mod write_batch;
