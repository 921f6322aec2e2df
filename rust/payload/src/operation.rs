//! One operation of a write batch, and its tag.

use super::error::{PayloadError, PayloadReason};
use super::wire::{Cursor, VARINT_LEN_MAX, make_room, put_string, put_string_of, put_varint};

/// The engine that wrote a batch. The tags 19 and 21 to 24 differ between RocksDB and Pebble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// RocksDB, and also LevelDB, whose two tags RocksDB has kept.
    #[default]
    RocksDb,
    /// Pebble, which has no column families or transactions, but has range keys.
    Pebble,
}

impl Engine {
    /// The engine with which this one can be confused.
    pub(super) fn other(self) -> Self {
        match self {
            Engine::RocksDb => Engine::Pebble,
            Engine::Pebble => Engine::RocksDb,
        }
    }
}

/// An operation of a [`WriteBatch`](super::WriteBatch).
///
/// `column_family` is the number of the column family, 0 for the default one and where there are
/// none. LevelDB writes only [`Put`](Operation::Put) and [`Delete`](Operation::Delete).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Operation<'a> {
    /// Sets the value of the key.
    Put {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Deletes the key.
    Delete { column_family: u32, key: &'a [u8] },
    /// Has the database's merge operator combine this with the value of the key.
    Merge {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Data for readers of the log; the database ignores it.
    LogData { value: &'a [u8] },
    /// Deletes a key that was put only once.
    SingleDelete { column_family: u32, key: &'a [u8] },
    /// Deletes the keys from `key` on, up to but excluding `end_key`.
    DeleteRange {
        column_family: u32,
        key: &'a [u8],
        end_key: &'a [u8],
    },
    /// RocksDB: the value of the key is in a blob file; `value` says where.
    PutBlobIndex {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// RocksDB: sets the columns of the key; `value` is their serialization.
    PutEntity {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// RocksDB: a put of data that was written at this Unix time, in seconds.
    TimedPut {
        column_family: u32,
        key: &'a [u8],
        value: &'a [u8],
        write_unix_time: u64,
    },
    /// RocksDB: has no effect; it separates parts of a batch, or reserves room for a `Start`.
    Noop,
    /// RocksDB: the operations after it, up to [`EndPrepare`](Operation::EndPrepare), take effect
    /// only once the transaction is committed.
    BeginPrepare,
    /// RocksDB: as [`BeginPrepare`](Operation::BeginPrepare), with the write policy
    /// `WritePrepared`: the operations are written to the database at once.
    BeginPersistedPrepare,
    /// RocksDB: as [`BeginPrepare`](Operation::BeginPrepare), with the write policy
    /// `WriteUnprepared`: the transaction may continue in further batches.
    BeginUnprepare,
    /// RocksDB: the end of the operations that the transaction with this name prepares.
    EndPrepare { xid: &'a [u8] },
    /// RocksDB: the transaction is committed.
    Commit { xid: &'a [u8] },
    /// RocksDB: the transaction is committed, with this timestamp for its keys.
    CommitWithTimestamp { timestamp: &'a [u8], xid: &'a [u8] },
    /// RocksDB: the transaction is rolled back.
    Rollback { xid: &'a [u8] },
    /// Pebble: a delete; `value` is a varint, the size of the key and value that it deletes.
    DeleteSized { key: &'a [u8], value: &'a [u8] },
    /// Pebble: sets range keys from `key` on; `value` is the end key as a string, then suffixes and
    /// values as strings.
    RangeKeySet { key: &'a [u8], value: &'a [u8] },
    /// Pebble: removes range keys; `value` is the end key as a string, then suffixes as strings.
    RangeKeyUnset { key: &'a [u8], value: &'a [u8] },
    /// Pebble: deletes all range keys from `key` on, up to but excluding `end_key`.
    RangeKeyDelete { key: &'a [u8], end_key: &'a [u8] },
    /// Pebble: ingests a table; `key` is a varint, the number of its file. Such a batch contains
    /// only these and [`Excise`](Operation::Excise).
    IngestSst { key: &'a [u8] },
    /// Pebble: as [`IngestSst`](Operation::IngestSst), for a table with blob files; `value` is
    /// their count and their numbers as varints.
    IngestSstWithBlobs { key: &'a [u8], value: &'a [u8] },
    /// Pebble: deletes everything from `key` on, up to but excluding `end_key`, when a table is
    /// ingested.
    Excise { key: &'a [u8], end_key: &'a [u8] },
}

/// The parts of an [`Operation`]: `None` for those that operations of its kind do not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The number of the column family: 0 for the default one.
    pub column_family: Option<u32>,
    /// The key or, for a range, the first one; for an ingested table, the number of its file.
    pub key: Option<&'a [u8]>,
    /// The key after a range.
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

/// The names of all operations, and their parts.
macro_rules! operations {
    ($($variant:ident = $name:literal { $($part:ident),* })*) => {
        impl<'a> Operation<'a> {
            /// A stable name, such as `"put"`: part of the interface, the same in Python.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $(Operation::$variant { .. } => $name,)*
                }
            }

            /// The parts of the operation.
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

            /// The operation of the kind with this name, and with these parts. Parts that are missing
            /// are 0 or empty, and parts that it does not have are left out. `None` if there is no such
            /// kind.
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
        }
    };
}

operations! {
    Put = "put" { column_family, key, value }
    Delete = "delete" { column_family, key }
    Merge = "merge" { column_family, key, value }
    LogData = "log_data" { value }
    SingleDelete = "single_delete" { column_family, key }
    DeleteRange = "delete_range" { column_family, key, end_key }
    PutBlobIndex = "put_blob_index" { column_family, key, value }
    PutEntity = "put_entity" { column_family, key, value }
    TimedPut = "timed_put" { column_family, key, value, write_unix_time }
    Noop = "noop" {}
    BeginPrepare = "begin_prepare" {}
    BeginPersistedPrepare = "begin_persisted_prepare" {}
    BeginUnprepare = "begin_unprepare" {}
    EndPrepare = "end_prepare" { xid }
    Commit = "commit" { xid }
    CommitWithTimestamp = "commit_with_timestamp" { timestamp, xid }
    Rollback = "rollback" { xid }
    DeleteSized = "delete_sized" { key, value }
    RangeKeySet = "range_key_set" { key, value }
    RangeKeyUnset = "range_key_unset" { key, value }
    RangeKeyDelete = "range_key_delete" { key, end_key }
    IngestSst = "ingest_sst" { key }
    IngestSstWithBlobs = "ingest_sst_with_blobs" { key, value }
    Excise = "excise" { key, end_key }
}

impl<'a> Operation<'a> {
    /// Whether the operation is counted in the batch's header, and uses a sequence number.
    ///
    /// Log data and transaction markers are not (`WriteBatchInternal::Iterate` of RocksDB's
    /// `db/write_batch.cc`, `Batch.LogData` of Pebble's `batch.go`).
    pub const fn is_counted(&self) -> bool {
        !matches!(
            self,
            Operation::LogData { .. }
                | Operation::Noop
                | Operation::BeginPrepare
                | Operation::BeginPersistedPrepare
                | Operation::BeginUnprepare
                | Operation::EndPrepare { .. }
                | Operation::Commit { .. }
                | Operation::CommitWithTimestamp { .. }
                | Operation::Rollback { .. }
        )
    }

    /// Reads the operation at the cursor: `ReadRecordFromWriteBatch` of RocksDB's
    /// `db/write_batch.cc`, `Reader.Next` of Pebble's `batchrepr/reader.go`.
    pub(super) fn decode(cursor: &mut Cursor<'a>, engine: Engine) -> Result<Self, PayloadError> {
        use Engine::{Pebble, RocksDb};
        let start = cursor.offset();
        let tag = cursor.byte()?;
        let column_family = match (engine, tag) {
            (RocksDb, 0x04 | 0x05 | 0x06 | 0x08 | 0x0e | 0x10 | 0x17 | 0x19) => match cursor.varint32()? {
                0 => return Err(cursor.error(start, PayloadReason::NonCanonical)),
                column_family => column_family,
            },
            _ => 0,
        };
        let mut string = || cursor.string();
        Ok(match (engine, tag) {
            (_, 0x00) | (RocksDb, 0x04) => Operation::Delete {
                column_family,
                key: string()?,
            },
            (_, 0x01) | (RocksDb, 0x05) => Operation::Put {
                column_family,
                key: string()?,
                value: string()?,
            },
            (_, 0x02) | (RocksDb, 0x06) => Operation::Merge {
                column_family,
                key: string()?,
                value: string()?,
            },
            (_, 0x03) => Operation::LogData { value: string()? },
            (_, 0x07) | (RocksDb, 0x08) => Operation::SingleDelete {
                column_family,
                key: string()?,
            },
            (RocksDb, 0x09) => Operation::BeginPrepare,
            (RocksDb, 0x0a) => Operation::EndPrepare { xid: string()? },
            (RocksDb, 0x0b) => Operation::Commit { xid: string()? },
            (RocksDb, 0x0c) => Operation::Rollback { xid: string()? },
            (RocksDb, 0x0d) => Operation::Noop,
            (_, 0x0f) | (RocksDb, 0x0e) => Operation::DeleteRange {
                column_family,
                key: string()?,
                end_key: string()?,
            },
            (RocksDb, 0x10 | 0x11) => Operation::PutBlobIndex {
                column_family,
                key: string()?,
                value: string()?,
            },
            (RocksDb, 0x12) => Operation::BeginPersistedPrepare,
            (RocksDb, 0x13) => Operation::BeginUnprepare,
            (RocksDb, 0x15) => Operation::CommitWithTimestamp {
                timestamp: string()?,
                xid: string()?,
            },
            (RocksDb, 0x16 | 0x17) => Operation::PutEntity {
                column_family,
                key: string()?,
                value: string()?,
            },
            (RocksDb, 0x18 | 0x19) => {
                let key = string()?;
                let value_start = cursor.offset();
                // `ParsePackedValueWithWriteTime` of `db/seqno_to_time_mapping.cc`: the time
                // follows the value, as a fixed64.
                let Some((value, time)) = cursor.string()?.split_last_chunk() else {
                    return Err(cursor.error(value_start, PayloadReason::BadLength));
                };
                Operation::TimedPut {
                    column_family,
                    key,
                    value,
                    write_unix_time: u64::from_le_bytes(*time),
                }
            }
            (Pebble, 19) => Operation::RangeKeyDelete {
                key: string()?,
                end_key: string()?,
            },
            (Pebble, 20) => Operation::RangeKeyUnset {
                key: string()?,
                value: string()?,
            },
            (Pebble, 21) => Operation::RangeKeySet {
                key: string()?,
                value: string()?,
            },
            (Pebble, 22) => Operation::IngestSst { key: string()? },
            (Pebble, 23) => Operation::DeleteSized {
                key: string()?,
                value: string()?,
            },
            (Pebble, 24) => Operation::Excise {
                key: string()?,
                end_key: string()?,
            },
            (Pebble, 26) => Operation::IngestSstWithBlobs {
                key: string()?,
                value: string()?,
            },
            _ => return Err(cursor.error(start, PayloadReason::UnknownTag { tag: tag.into() })),
        })
    }

    /// Appends the operation to `out`, as the engine would write it: without a column family if it
    /// is the default one.
    pub(super) fn encode(&self, out: &mut Vec<u8>, engine: Engine) -> Result<(), PayloadError> {
        use Engine::{Pebble, RocksDb};
        let parts = self.parts();
        let column_family = parts.column_family.unwrap_or(0);
        // The engine that knows it (`None`: both), and its tags, without and with a column family.
        let (knows, tag, tag_with_family) = match self {
            Operation::Delete { .. } => (None, 0x00, 0x04),
            Operation::Put { .. } => (None, 0x01, 0x05),
            Operation::Merge { .. } => (None, 0x02, 0x06),
            Operation::LogData { .. } => (None, 0x03, 0),
            Operation::SingleDelete { .. } => (None, 0x07, 0x08),
            Operation::BeginPrepare => (Some(RocksDb), 0x09, 0),
            Operation::EndPrepare { .. } => (Some(RocksDb), 0x0a, 0),
            Operation::Commit { .. } => (Some(RocksDb), 0x0b, 0),
            Operation::Rollback { .. } => (Some(RocksDb), 0x0c, 0),
            Operation::Noop => (Some(RocksDb), 0x0d, 0),
            Operation::DeleteRange { .. } => (None, 0x0f, 0x0e),
            Operation::PutBlobIndex { .. } => (Some(RocksDb), 0x11, 0x10),
            Operation::BeginPersistedPrepare => (Some(RocksDb), 0x12, 0),
            Operation::BeginUnprepare => (Some(RocksDb), 0x13, 0),
            Operation::CommitWithTimestamp { .. } => (Some(RocksDb), 0x15, 0),
            Operation::PutEntity { .. } => (Some(RocksDb), 0x16, 0x17),
            Operation::TimedPut { .. } => (Some(RocksDb), 0x18, 0x19),
            Operation::RangeKeyDelete { .. } => (Some(Pebble), 19, 0),
            Operation::RangeKeyUnset { .. } => (Some(Pebble), 20, 0),
            Operation::RangeKeySet { .. } => (Some(Pebble), 21, 0),
            Operation::IngestSst { .. } => (Some(Pebble), 22, 0),
            Operation::DeleteSized { .. } => (Some(Pebble), 23, 0),
            Operation::Excise { .. } => (Some(Pebble), 24, 0),
            Operation::IngestSstWithBlobs { .. } => (Some(Pebble), 26, 0),
        };
        let tag: u8 = if column_family == 0 { tag } else { tag_with_family };
        if knows.is_some_and(|knows| knows != engine) || (column_family != 0 && engine == Pebble) {
            return Err(PayloadError {
                offset: out.len(),
                len: 1,
                reason: PayloadReason::UnknownTag { tag: tag.into() },
            });
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
            put_string(out, string)?;
        }
        match (parts.value, parts.write_unix_time) {
            // The value and the time are one string.
            (Some(value), Some(time)) => put_string_of(out, &[value, &time.to_le_bytes()])?,
            (Some(value), None) => put_string(out, value)?,
            (None, _) => {}
        }
        Ok(())
    }
}
