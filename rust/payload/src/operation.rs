//! The operations of a write batch, and their tags.

use self::Engine::{Pebble, RocksDb};
use super::error::{PayloadError, PayloadReason};
use super::wire::{Cursor, VARINT_LEN_MAX, make_room, put_string, put_varint};

/// The engine that wrote a batch. The tags 19 and 21 to 24 differ between RocksDB and Pebble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// RocksDB, which can also read LevelDB batches because it has kept both of LevelDB's tags.
    #[default]
    RocksDb,
    /// Pebble, which has no column families or transactions, but has range keys.
    Pebble,
}

impl Engine {
    /// Returns the engine that this engine can be mistaken for.
    pub(super) fn other(self) -> Self {
        match self {
            Engine::RocksDb => Engine::Pebble,
            Engine::Pebble => Engine::RocksDb,
        }
    }
}

/// An operation of a [`WriteBatch`](super::WriteBatch).
///
/// `column_family` is the number of the column family. It is 0 for the default column family, and
/// for an engine that doesn't have column families. LevelDB only writes [`Put`](Operation::Put) and
/// [`Delete`](Operation::Delete).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Operation<'a> {
    /// Sets the key's value.
    Put {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Deletes the key.
    Delete { column_family: u32, key: &'a [u8] },
    /// Merges this operand into the key's value, using the database's merge operator.
    Merge {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Data for readers of the log. The database ignores it.
    LogData { value: &'a [u8] },
    /// Deletes a key that was written only once.
    SingleDelete { column_family: u32, key: &'a [u8] },
    /// Deletes the keys from `key` up to but not including `end_key`.
    DeleteRange {
        column_family: u32,
        key: &'a [u8],
        end_key: &'a [u8],
    },
    /// RocksDB: the key's value is in a blob file. `value` contains its location in that file.
    PutBlobIndex {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// RocksDB: sets the key's columns. `value` contains the serialized columns.
    PutEntity {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// RocksDB: puts a value. `write_unix_time` is when the value was written, as a Unix time in
    /// seconds.
    TimedPut {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
        write_unix_time: u64,
    },
    /// RocksDB: has no effect. It separates parts of a batch, or reserves space for a
    /// `BeginPrepare`.
    Noop,
    /// RocksDB: the operations after this one, up to [`EndPrepare`](Operation::EndPrepare), don't
    /// take effect until the transaction is committed.
    BeginPrepare,
    /// RocksDB: like [`BeginPrepare`](Operation::BeginPrepare), but for the `WritePrepared` write
    /// policy. The operations are written to the database immediately.
    BeginPersistedPrepare,
    /// RocksDB: like [`BeginPrepare`](Operation::BeginPrepare), but for the `WriteUnprepared` write
    /// policy. The transaction may continue in later batches.
    BeginUnprepare,
    /// RocksDB: marks the end of the operations prepared by the transaction with this name.
    EndPrepare { xid: &'a [u8] },
    /// RocksDB: commits the transaction.
    Commit { xid: &'a [u8] },
    /// RocksDB: commits the transaction and gives its keys this timestamp.
    CommitWithTimestamp { timestamp: &'a [u8], xid: &'a [u8] },
    /// RocksDB: rolls back the transaction.
    Rollback { xid: &'a [u8] },
    /// Pebble: deletes the key. `value` is a varint holding the combined size of the deleted key
    /// and value.
    DeleteSized { key: &'a [u8], value: &'a [u8] },
    /// Pebble: sets range keys, starting at `key`. `value` contains the end key, then each suffix
    /// followed by its value, all as strings.
    RangeKeySet { key: &'a [u8], value: &'a [u8] },
    /// Pebble: removes range keys. `value` contains the end key, then the suffixes, all as strings.
    RangeKeyUnset { key: &'a [u8], value: &'a [u8] },
    /// Pebble: deletes all range keys from `key` up to but not including `end_key`.
    RangeKeyDelete { key: &'a [u8], end_key: &'a [u8] },
    /// Pebble: ingests a table. `key` is a varint holding the table's file number. A batch with
    /// this operation contains no other kinds of operations except [`Excise`](Operation::Excise).
    IngestSst { key: &'a [u8] },
    /// Pebble: like [`IngestSst`](Operation::IngestSst), but for a table with blob files. `value`
    /// contains the number of blob files, followed by their file numbers, all as varints.
    IngestSstWithBlobs { key: &'a [u8], value: &'a [u8] },
    /// Pebble: deletes all keys from `key` up to but not including `end_key` when a table is
    /// ingested.
    Excise { key: &'a [u8], end_key: &'a [u8] },
}

/// The parts of an [`Operation`]. A part is `None` if operations of this kind don't have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The number of the column family, which is 0 for the default.
    pub column_family: Option<u32>,
    /// The key. For a range, this is the first key. For an ingested table, it is the file number.
    pub key: Option<&'a [u8]>,
    /// The exclusive end key of a range.
    pub end_key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The name of a transaction.
    pub xid: Option<&'a [u8]>,
    /// The timestamp of a commit.
    pub timestamp: Option<&'a [u8]>,
    /// The time of a put, in seconds since 1970-01-01 00:00 UTC.
    pub write_unix_time: Option<u64>,
}

impl<'a> Parts<'a> {
    /// Returns the parts that are strings, with their names.
    pub fn strings(&self) -> [(&'static str, Option<&'a [u8]>); 5] {
        [
            ("key", self.key),
            ("end_key", self.end_key),
            ("value", self.value),
            ("xid", self.xid),
            ("timestamp", self.timestamp),
        ]
    }
}

macro_rules! option {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

/// Defines all operations. Each operation has these arguments: the engine that supports it (`_` if
/// both do), its tag, its name, and its parts in the order in which they are written. A second tag,
/// after a slash, is for operations that name a column family.
macro_rules! operations {
    ($($variant:ident = $engine:pat, $tag:literal $(/ $family:literal)?, $name:literal { $($part:ident),* })*) => {
        impl<'a> Operation<'a> {
            /// Returns a stable name, such as `"put"`. The name is part of the interface and is the
            /// same in Python.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $(Operation::$variant { .. } => $name,)*
                }
            }

            /// Returns the parts of the operation.
            ///
            /// ```
            /// use cordwood_payload::Operation;
            /// let parts = Operation::Delete { column_family: 3, key: b"a" }.parts();
            /// assert_eq!((parts.column_family, parts.key, parts.value), (Some(3), Some(b"a".as_slice()), None));
            /// ```
            pub fn parts(&self) -> Parts<'a> {
                match *self {
                    $(Operation::$variant { $($part),* } => Parts {
                        $($part: Some($part),)*
                        ..Parts::default()
                    },)*
                }
            }

            /// Builds an operation of the named kind from these parts. Missing parts default to 0
            /// or to empty bytes, and parts that this kind doesn't have are ignored. Returns `None`
            /// if there is no kind with this name.
            ///
            /// ```
            /// use cordwood_payload::{Operation, Parts};
            /// let parts = Parts { xid: Some(b"a"), ..Parts::default() };
            /// assert_eq!(Operation::from_parts("commit", parts), Some(Operation::Commit { xid: b"a" }));
            /// assert_eq!(Operation::from_parts("undo", parts), None);
            /// ```
            pub fn from_parts(name: &str, parts: Parts<'a>) -> Option<Self> {
                Some(match name {
                    $($name => Operation::$variant {
                        $($part: parts.$part.unwrap_or_default()),*
                    },)*
                    _ => return None,
                })
            }

            /// Returns whether the engine knows the operation, and the operation's tags without and
            /// with a column family.
            const fn tags(&self, engine: Engine) -> (bool, u8, Option<u8>) {
                match self {
                    $(Operation::$variant { .. } => (matches!(engine, $engine), $tag, option!($($family)?)),)*
                }
            }

            /// Reads the operation with this tag. In a `TimedPut`, the value still ends with the
            /// time.
            fn read(strings: &mut Strings<'_, 'a>, engine: Engine, tag: u8) -> Result<Option<Self>, PayloadError> {
                if engine == RocksDb && (false $($(|| tag == $family)?)*) {
                    strings.read_column_family()?;
                }
                Ok(Some(match (engine, tag) {
                    $(($engine, $tag) $(| (RocksDb, $family))? => Operation::$variant {
                        $($part: Part::read(strings)?),*
                    },)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

operations! {
    Put = _, 0x01 / 0x05, "put" { column_family, key, value }
    Delete = _, 0x00 / 0x04, "delete" { column_family, key }
    Merge = _, 0x02 / 0x06, "merge" { column_family, key, value }
    LogData = _, 0x03, "log_data" { value }
    SingleDelete = _, 0x07 / 0x08, "single_delete" { column_family, key }
    DeleteRange = _, 0x0f / 0x0e, "delete_range" { column_family, key, end_key }
    PutBlobIndex = RocksDb, 0x11 / 0x10, "put_blob_index" { column_family, key, value }
    PutEntity = RocksDb, 0x16 / 0x17, "put_entity" { column_family, key, value }
    TimedPut = RocksDb, 0x18 / 0x19, "timed_put" { column_family, key, value, write_unix_time }
    Noop = RocksDb, 0x0d, "noop" {}
    BeginPrepare = RocksDb, 0x09, "begin_prepare" {}
    BeginPersistedPrepare = RocksDb, 0x12, "begin_persisted_prepare" {}
    BeginUnprepare = RocksDb, 0x13, "begin_unprepare" {}
    EndPrepare = RocksDb, 0x0a, "end_prepare" { xid }
    Commit = RocksDb, 0x0b, "commit" { xid }
    CommitWithTimestamp = RocksDb, 0x15, "commit_with_timestamp" { timestamp, xid }
    Rollback = RocksDb, 0x0c, "rollback" { xid }
    DeleteSized = Pebble, 23, "delete_sized" { key, value }
    RangeKeySet = Pebble, 21, "range_key_set" { key, value }
    RangeKeyUnset = Pebble, 20, "range_key_unset" { key, value }
    RangeKeyDelete = Pebble, 19, "range_key_delete" { key, end_key }
    IngestSst = Pebble, 22, "ingest_sst" { key }
    IngestSstWithBlobs = Pebble, 26, "ingest_sst_with_blobs" { key, value }
    Excise = Pebble, 24, "excise" { key, end_key }
}

/// Reads the bytes after an operation's tag.
struct Strings<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    column_family: u32,
    /// The offset where the last string starts.
    last_start: usize,
}

/// A part of an operation.
trait Part<'a>: Sized {
    fn read(strings: &mut Strings<'_, 'a>) -> Result<Self, PayloadError>;
}

impl Strings<'_, '_> {
    fn read_column_family(&mut self) -> Result<(), PayloadError> {
        let start = self.cursor.offset() - 1;
        self.column_family = self.cursor.varint32()?;
        if self.column_family == 0 {
            return Err(self.cursor.error(start, PayloadReason::NonCanonical));
        }
        Ok(())
    }
}

impl<'a> Part<'a> for &'a [u8] {
    #[inline]
    fn read(strings: &mut Strings<'_, 'a>) -> Result<Self, PayloadError> {
        strings.last_start = strings.cursor.offset();
        strings.cursor.string()
    }
}

/// Returns the column family, which is read before the parts.
impl Part<'_> for u32 {
    #[inline]
    fn read(strings: &mut Strings<'_, '_>) -> Result<Self, PayloadError> {
        Ok(strings.column_family)
    }
}

/// Returns 0. The time is extracted from the value afterwards.
impl Part<'_> for u64 {
    fn read(_: &mut Strings<'_, '_>) -> Result<Self, PayloadError> {
        Ok(0)
    }
}

impl<'a> Operation<'a> {
    /// Checks whether the batch header's count includes the operation. If so, the operation uses a
    /// sequence number. All operations with a key are counted.
    ///
    /// Log data and transaction markers are not counted (`WriteBatchInternal::Iterate` in RocksDB's
    /// `db/write_batch.cc`, `Batch.LogData` in Pebble's `batch.go`).
    pub fn is_counted(&self) -> bool {
        self.parts().key.is_some()
    }

    /// Reads the operation at the cursor. Sources: `ReadRecordFromWriteBatch` in RocksDB's
    /// `db/write_batch.cc`, and `Reader.Next` in Pebble's `batchrepr/reader.go`.
    pub(super) fn decode(cursor: &mut Cursor<'a>, engine: Engine) -> Result<Self, PayloadError> {
        let start = cursor.offset();
        let tag = cursor.byte()?;
        let mut strings = Strings {
            cursor,
            column_family: 0,
            last_start: start,
        };
        let read = Operation::read(&mut strings, engine, tag)?;
        let Strings { cursor, last_start, .. } = strings;
        let Some(mut operation) = read else {
            return Err(cursor.error(start, PayloadReason::UnknownTag { tag: tag.into() }));
        };
        if let Operation::TimedPut {
            value, write_unix_time, ..
        } = &mut operation
        {
            // The write time follows the value as a fixed64. Source:
            // `ParsePackedValueWithWriteTime` in `db/seqno_to_time_mapping.cc`.
            let Some((rest, time)) = value.split_last_chunk() else {
                return Err(cursor.error(last_start, PayloadReason::BadLength));
            };
            (*value, *write_unix_time) = (rest, u64::from_le_bytes(*time));
        }
        Ok(operation)
    }

    /// Appends the operation to `out` as the engine would write it, omitting a default column
    /// family.
    pub(super) fn encode(&self, out: &mut Vec<u8>, engine: Engine) -> Result<(), PayloadError> {
        let parts = self.parts();
        let column_family = parts.column_family.unwrap_or(0);
        let (is_known, tag, tag_with_family) = self.tags(engine);
        let tag = tag_with_family.filter(|_| column_family != 0).unwrap_or(tag);
        if !is_known || (column_family != 0 && engine == Pebble) {
            let reason = PayloadReason::UnknownTag { tag: tag.into() };
            return Err(PayloadError::new(out.len(), 1, reason));
        }
        make_room(out, 1 + VARINT_LEN_MAX)?;
        out.push(tag);
        if column_family != 0 {
            put_varint(out, column_family.into());
        }
        for string in [parts.key, parts.end_key, parts.timestamp, parts.xid]
            .into_iter()
            .flatten()
        {
            put_string(out, &[string])?;
        }
        match (parts.value, parts.write_unix_time) {
            // The value and the time form one string.
            (Some(value), Some(time)) => put_string(out, &[value, &time.to_le_bytes()])?,
            (Some(value), None) => put_string(out, &[value])?,
            (None, _) => {}
        }
        Ok(())
    }
}
