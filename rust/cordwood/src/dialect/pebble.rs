//! Pebble. Source: `record/record.go` and `record/log_writer.go`.

use super::leveldb::LEVELDB;
use super::{Dialect, Form, Kinds, Spec};

static RECYCLABLE_KINDS: Kinds = Kinds::plain().with_fragments(Form::Recyclable);

static KINDS: Kinds = Kinds::plain()
    .with_fragments(Form::Recyclable)
    .with_fragments(Form::Synced);

static PEBBLE: Spec = Spec {
    name: "pebble",
    kinds: &KINDS,
    has_end_trailer: true,
    ..LEVELDB
};

pub(super) static RECYCLABLE: Spec = Spec {
    name: "recyclable",
    kinds: &RECYCLABLE_KINDS,
    ..PEBBLE
};

impl Dialect {
    /// Pebble's write-ahead log: types 1 to 12 and the end-of-log trailer. Types 9 to 12 contain an
    /// offset that says how far the file had been synced.
    pub const PEBBLE: Dialect = Dialect(&PEBBLE);

    /// The dialect of a log that either RocksDB or Pebble could have written: types 1 to 8, and
    /// Pebble's trailer.
    pub const RECYCLABLE: Dialect = Dialect(&RECYCLABLE);
}
