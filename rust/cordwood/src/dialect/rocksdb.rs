//! RocksDB. Source: `db/log_format.h`, `db/log_reader.cc`.

use super::leveldb::LEVELDB;
use super::pebble::RECYCLABLE;
use super::{Dialect, Form, Kinds, Metadata, Role, Spec};

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
    kinds.with_metadata(Metadata::SetCompression, Form::Recyclable)
};

/// The types in a log detected as [`Dialect::LEVELDB`] or [`Dialect::RECYCLABLE`]. These logs do
/// not start with a record that declares compression. If only types 1 to 4 were seen, a damaged
/// header is assumed to have the length of a LevelDB header.
///
/// The table also includes the container types, because the mark of a packed log may have been
/// destroyed.
static DETECTED_LEVELDB_KINDS: Kinds = Kinds::plain()
    .with_metadata(Metadata::LateSetCompression, Form::Plain)
    .with_containers();
static DETECTED_RECYCLABLE_KINDS: Kinds = Kinds::plain()
    .with_fragments(Form::Recyclable)
    .with_metadata(Metadata::LateSetCompression, Form::Recyclable);

static ROCKSDB: Spec = Spec {
    name: "rocksdb",
    kinds: &KINDS,
    ..LEVELDB
};

static DETECTED_LEVELDB: Spec = Spec {
    kinds: &DETECTED_LEVELDB_KINDS,
    ..LEVELDB
};

static DETECTED_RECYCLABLE: Spec = Spec {
    kinds: &DETECTED_RECYCLABLE_KINDS,
    ..RECYCLABLE
};

impl Kinds {
    /// Adds the metadata records. Metadata records with the log number have the form `numbered`.
    const fn with_metadata(self, set_compression: Metadata, numbered: Form) -> Kinds {
        let timestamp_sizes = Role::Metadata(Metadata::TimestampSizes);
        let predecessor = Role::Metadata(Metadata::Predecessor);
        // This record has a 7-byte header, even in a recycled log.
        self.with(SET_COMPRESSION, Role::Metadata(set_compression), Form::Plain)
            .with(TIMESTAMP_SIZES, timestamp_sizes, Form::Plain)
            .with(RECYCLABLE_TIMESTAMP_SIZES, timestamp_sizes, numbered)
            .with(PREDECESSOR, predecessor, Form::Plain)
            .with(RECYCLABLE_PREDECESSOR, predecessor, numbered)
    }
}

impl Dialect {
    /// Returns the dialect used to read a log if this dialect was detected rather than named by the
    /// caller.
    ///
    /// Before the first write to a column family that uses timestamps, RocksDB writes a metadata
    /// record. Such a record can be anywhere in a log, so the start of the log cannot rule it out.
    /// Source: `db/log_writer.cc`, `MaybeAddUserDefinedTimestampSizeRecord`. Damage at the start
    /// can also hide the fact that a log is [packed](Self::PACKED).
    #[must_use]
    pub fn detected(self) -> Dialect {
        if self == Dialect::LEVELDB {
            Dialect(&DETECTED_LEVELDB)
        } else if self == Dialect::RECYCLABLE {
            Dialect(&DETECTED_RECYCLABLE)
        } else {
            self
        }
    }

    /// Checks whether this is a [`detected`](Self::detected) dialect that differs from the constant
    /// of the same name.
    #[must_use]
    pub fn is_detected(self) -> bool {
        std::ptr::eq(self.0, &DETECTED_LEVELDB) || std::ptr::eq(self.0, &DETECTED_RECYCLABLE)
    }

    /// RocksDB's write-ahead log with all its parts: types 1 to 4 and 5 to 8, zstd, and the
    /// engine's metadata records.
    pub const ROCKSDB: Dialect = Dialect(&ROCKSDB);
}

/// The payload of the record that declares compression: a little-endian number. Only this value is
/// in use. Source: `include/rocksdb/compression_type.h`, `kZSTD`; `db/log_reader.cc`.
pub(crate) const ZSTD: [u8; 4] = [7, 0, 0, 0];

/// The payload of a record declaring that records are not compressed.
pub(crate) const NO_COMPRESSION: [u8; 4] = [0; 4];

/// The type and payload of the record that declares zstd.
pub(crate) const SET_ZSTD: (u8, [u8; 4]) = (SET_COMPRESSION, ZSTD);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::LogFormat;
    use crate::format::FragmentKind;

    #[test]
    fn a_detected_dialect_accepts_more_types_and_is_otherwise_unchanged() {
        for &named in Dialect::ALL {
            let detected = named.detected();
            assert_eq!((detected, detected.detected()), (named, named));
            let knows_more = [Dialect::LEVELDB, Dialect::RECYCLABLE].contains(&named);
            let knows_containers = named == Dialect::LEVELDB;
            assert_eq!(
                (detected.is_detected(), named.is_detected()),
                (knows_more, false),
                "{named}"
            );
            // All other properties are unchanged.
            assert_eq!(detected.has_log_numbers(), named.has_log_numbers());
            assert_eq!(detected.has_compression(), named.has_compression());
            for kind in 0..=u8::MAX {
                let is_metadata = [9, 10, 11, 130, 131].contains(&kind);
                let is_packed = [0x40, 0x42, 0x44, 0x46, 0x48].contains(&kind);
                if knows_containers && is_packed {
                    assert_eq!(named.kind_of(kind), FragmentKind::Unknown);
                    assert_eq!(detected.kind_of(kind), Dialect::PACKED.kind_of(kind));
                } else if !(knows_more && is_metadata) {
                    assert_eq!(detected.meaning(kind), named.meaning(kind), "{named}, type {kind}");
                } else {
                    assert_eq!(named.kind_of(kind), FragmentKind::Unknown);
                    assert_eq!(detected.kind_of(kind), Dialect::ROCKSDB.kind_of(kind));
                }
            }
        }
        assert!(LogFormat::unknown().dialect.is_detected());
    }
}
