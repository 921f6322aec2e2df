//! RocksDB. Source: `db/log_format.h`, `db/log_reader.cc`.

use super::{Dialect, Form, Kinds, Metadata, Role};

const SET_COMPRESSION: u8 = 9;
const TIMESTAMP_SIZES: u8 = 10;
const RECYCLABLE_TIMESTAMP_SIZES: u8 = 11;
const PREDECESSOR: u8 = 130;
const RECYCLABLE_PREDECESSOR: u8 = 131;

/// An unknown type with this bit is safe to ignore.
const IGNORABLE: u8 = 0x80;

static KINDS: Kinds = {
    let mut kinds = Kinds::plain().with_fragments(Form::Recyclable);
    let mut byte = IGNORABLE;
    loop {
        kinds = kinds.with(byte, Role::Ignorable, Form::Plain);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    kinds
        // A 7-byte header, even in a recycled log.
        .with(SET_COMPRESSION, Role::Metadata(Metadata::SetCompression), Form::Plain)
        .with(TIMESTAMP_SIZES, Role::Metadata(Metadata::TimestampSizes), Form::Plain)
        .with(
            RECYCLABLE_TIMESTAMP_SIZES,
            Role::Metadata(Metadata::TimestampSizes),
            Form::Recyclable,
        )
        .with(PREDECESSOR, Role::Metadata(Metadata::Predecessor), Form::Plain)
        .with(
            RECYCLABLE_PREDECESSOR,
            Role::Metadata(Metadata::Predecessor),
            Form::Recyclable,
        )
};

impl Dialect {
    /// RocksDB's write-ahead log with everything that it may contain: types 1 to 4 and 5 to 8,
    /// zstd, and the engine's metadata records.
    pub const ROCKSDB: Dialect = Dialect {
        name: "rocksdb",
        kinds: &KINDS,
        rank: Some(2),
        ..Dialect::LEVELDB
    };
}

/// The payload of the record that declares compression: a little-endian number, for which only this
/// value is in use. Source: `include/rocksdb/compression_type.h`, `kZSTD`; `db/log_reader.cc`.
pub(crate) const ZSTD: [u8; 4] = [7, 0, 0, 0];

/// The type and payload of that record.
pub(crate) const SET_ZSTD: (u8, [u8; 4]) = (SET_COMPRESSION, ZSTD);
