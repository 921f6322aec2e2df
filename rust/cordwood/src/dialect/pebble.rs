//! Pebble. Source: `record/record.go` and `record/log_writer.go`.

use super::{Dialect, Form, Kinds};

static RECYCLABLE_KINDS: Kinds = Kinds::plain().with_fragments(Form::Recyclable);

static KINDS: Kinds = Kinds::plain()
    .with_fragments(Form::Recyclable)
    .with_fragments(Form::Synced);

pub(super) const PEBBLE: Dialect = Dialect {
    name: "pebble",
    kinds: &KINDS,
    has_end_trailer: true,
    ..super::leveldb::LEVELDB
};

pub(super) const RECYCLABLE: Dialect = Dialect {
    name: "recyclable",
    kinds: &RECYCLABLE_KINDS,
    ..PEBBLE
};
