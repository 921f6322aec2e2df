//! Decodes and builds the data that programs store in log records: a [`WriteBatch`] in a
//! write-ahead log, a [`VersionEdit`] in a MANIFEST, an [`Entity`] in a Datastore or Firestore
//! export, a [`WandbRecord`] in a Weights & Biases run, and a [`SwanlabScalar`] in a SwanLab run.
//!
//! The crate decodes the bytes of one record at a time. It does no I/O, and decoded values borrow
//! from the record. To read records from a log, use [`cordwood-log`](https://docs.rs/cordwood-log)
//! or any other reader.
//!
//! ```
//! use cordwood_payload::{Engine, Operation, WriteBatch};
//!
//! let record = b"\x07\0\0\0\0\0\0\0\x02\0\0\0\x01\x03key\x05value\0\x03old";
//! let batch = WriteBatch::new(record, Engine::RocksDb)?;
//! assert_eq!((batch.sequence(), batch.count()), (7, 2));
//! let operations: Vec<Operation<'_>> = batch.operations().collect::<Result<_, _>>()?;
//! assert_eq!(operations[0], Operation::Put { column_family: 0, key: b"key", value: b"value" });
//! assert_eq!(operations[1], Operation::Delete { column_family: 0, key: b"old" });
//! assert_eq!(WriteBatch::encode(7, &operations, Engine::RocksDb)?, record);
//! # Ok::<(), cordwood_payload::PayloadError>(())
//! ```
//!
//! Entities, JSON and run steps can also be converted to [`table`] columns.
//!
//! # One encoding per value
//!
//! Two different write batches, or two different version edits, never decode to the same values.
//! Encoding a decoded batch gives the same bytes again, and decoding an edit loses no information.
//! An engine would also accept a number padded with zeros, an explicit column family 0, or extra
//! bytes after the number in a field. However, engines never write these encodings, and this crate
//! could not write them back. Instead of silently normalising them, the crate reports an error,
//! [`PayloadReason::NonCanonical`] or [`PayloadReason::BadLength`].

#![forbid(unsafe_code)]

mod entity;
mod entity_key;
mod error;
mod operation;
mod proto;
mod several;
mod swanlab;
pub mod table;
mod value;
mod version_edit;
mod version_state;
mod wandb;
mod wire;
mod write_batch;
mod write_batch_reader;

pub use entity::{Entity, EntityValue, Property, PropertyValue, User};
pub use entity_key::{EntityKey, PathElement, PathId};
pub use error::{PayloadError, PayloadReason};
pub use operation::{Engine, Operation, Parts};
pub use proto::OtherField;
pub use several::Several;
pub use swanlab::SwanlabScalar;
pub use value::{Item, Value};
pub use version_edit::{Field, VersionEdit};
pub use version_state::VersionState;
pub use wandb::{WandbChange, WandbEnvironment, WandbItem, WandbItems, WandbOutput, WandbRecord, WandbRun};
pub use write_batch::{Position, WriteBatch};
pub use write_batch_reader::WriteBatchReader;
