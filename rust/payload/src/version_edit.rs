//! The record of a MANIFEST: the changes from one version of the database to the next.

use super::error::{PayloadError, PayloadReason};
use super::new_file::{InternalKey, NON_SAFE_IGNORE_MASK, NewFile, tagged};
use super::wire::{Cursor, put_nested_varint, put_string, put_varint, wrong_tag};

/// The record of a MANIFEST of LevelDB or RocksDB: fields that state the changes, each preceded by
/// its tag.
///
/// The tags of the two do not collide, so there is one decoder (`VersionEdit::DecodeFrom` of
/// `db/version_edit.cc`). Pebble writes the same tags and some of its own, for tables with range
/// keys, virtual tables and blob files; those are [unknown](PayloadReason::UnknownTag) here.
///
/// ```
/// use cordwood_payload::{Field, VersionEdit};
///
/// let record = b"\x01\x1aleveldb.BytewiseComparator\x02\x00\x03\x02\x04\x00"; // The first of a new LevelDB.
/// let edit = VersionEdit::new(record);
/// let fields: Vec<Field<'_>> = edit.fields().collect::<Result<_, _>>()?;
/// assert_eq!(fields[0], Field::Comparator(b"leveldb.BytewiseComparator"));
/// assert_eq!(fields[1..], [Field::LogNumber(0), Field::NextFileNumber(2), Field::LastSequence(0)]);
/// assert_eq!(VersionEdit::encode(&fields)?, record);
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionEdit<'a> {
    record: &'a [u8],
}

impl<'a> VersionEdit<'a> {
    /// The edit in this record. No field is decoded yet.
    pub fn new(record: &'a [u8]) -> Self {
        VersionEdit { record }
    }

    /// The fields, in the order of the record.
    pub fn fields(&self) -> Fields<'a> {
        Fields {
            cursor: Some(Cursor::new(self.record, 0)),
        }
    }

    /// The field at an offset in the record, and the offset after it. `None` if the record ends
    /// there.
    ///
    /// [`fields`](VersionEdit::fields) does this for all of them. This method is for callers that
    /// cannot keep a borrow of the record between steps.
    ///
    /// # Errors
    ///
    /// Fails if there is no field at `offset`.
    ///
    /// ```
    /// use cordwood_payload::{Field, VersionEdit};
    ///
    /// let edit = VersionEdit::new(b"\x02\x04\x09\x00\x63");
    /// assert_eq!(edit.field_at(0)?, Some((Field::LogNumber(4), 2)));
    /// assert_eq!(edit.field_at(2)?, Some((Field::PrevLogNumber(0), 4)));
    /// assert!(edit.field_at(4).is_err());
    /// assert_eq!(edit.field_at(5)?, None);
    /// # Ok::<(), cordwood_payload::PayloadError>(())
    /// ```
    pub fn field_at(&self, offset: usize) -> Result<Option<(Field<'a>, usize)>, PayloadError> {
        let mut cursor = Cursor::new(self.record, offset);
        if cursor.is_at_end() {
            return Ok(None);
        }
        let field = Field::decode(&mut cursor)?;
        Ok(Some((field, cursor.offset())))
    }

    /// The record with these fields, in this order.
    ///
    /// # Errors
    ///
    /// * [`TooLarge`](PayloadReason::TooLarge) for a string of 4 GiB or more, or for a sequence
    ///   number of more than 56 bits in a key.
    /// * [`UnknownTag`](PayloadReason::UnknownTag) for a field of a later version whose tag is
    ///   known, or marked as not safe to ignore: a reader would take it for another field.
    /// * [`OutOfMemory`](PayloadReason::OutOfMemory) if there is no memory for a string. For numbers,
    ///   the process is aborted, as by [`Vec::push`].
    pub fn encode<'b>(fields: impl IntoIterator<Item = &'b Field<'b>>) -> Result<Vec<u8>, PayloadError> {
        let mut record = Vec::new();
        for field in fields {
            field.encode(&mut record)?;
        }
        Ok(record)
    }
}

/// The fields of a version edit. Iteration ends at the first error.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    /// `None` after the end or an error.
    cursor: Option<Cursor<'a>>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut cursor = self.cursor.take().filter(|cursor| !cursor.is_at_end())?;
        let field = Field::decode(&mut cursor);
        if field.is_ok() {
            self.cursor = Some(cursor);
        }
        Some(field)
    }
}

impl std::iter::FusedIterator for Fields<'_> {}

/// A field of a [`VersionEdit`]: `Tag` of LevelDB's `db/version_edit.cc` and RocksDB's
/// `db/version_edit.h`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Field<'a> {
    /// 1: the name of the comparator that orders the keys.
    Comparator(&'a [u8]),
    /// 2: logs with smaller numbers are not needed, except the one in
    /// [`PrevLogNumber`](Field::PrevLogNumber).
    LogNumber(u64),
    /// 3: the number that the next file gets.
    NextFileNumber(u64),
    /// 4: the last sequence number that was assigned.
    LastSequence(u64),
    /// 5: where the next compaction of this level starts.
    CompactPointer { level: u32, key: InternalKey<'a> },
    /// 6: this table is removed from this level.
    DeletedFile { level: u32, file_number: u64 },
    /// 7, 100, 102 and 103: a table is added to this level.
    NewFile(NewFile<'a>),
    /// 9: one older log that is needed. Always 0 since 2011.
    PrevLogNumber(u64),
    /// 10: RocksDB: logs with smaller numbers are not needed by any column family.
    MinLogNumberToKeep(u64),
    /// 200: RocksDB: the column family that this edit concerns, if it is not the default one.
    ColumnFamily(u32),
    /// 201: RocksDB: the column family is new, and this is its name.
    ColumnFamilyAdd(&'a [u8]),
    /// 202: RocksDB: the column family is dropped.
    ColumnFamilyDrop,
    /// 203: RocksDB: the largest number that a column family has had.
    MaxColumnFamily(u32),
    /// 300: RocksDB: the edit takes effect together with this many edits that follow.
    InAtomicGroup(u32),
    /// 400: RocksDB: a blob file is added.
    BlobFileAddition(BlobFileAddition<'a>),
    /// 401: RocksDB: part of a blob file is garbage.
    BlobFileGarbage(BlobFileGarbage<'a>),
    /// 8193: RocksDB: the identifier of the database.
    DbId(&'a [u8]),
    /// 8196 and 8199: RocksDB: a write-ahead log exists, or has been synced.
    WalAddition(WalAddition),
    /// 8197 and 8200: RocksDB: write-ahead logs with smaller numbers are gone. `length_prefixed`:
    /// written with tag 8200.
    WalDeletion { log_number: u64, length_prefixed: bool },
    /// 8198: RocksDB: user-defined timestamps older than this one are not needed.
    FullHistoryTsLow(&'a [u8]),
    /// 8201: RocksDB: whether user-defined timestamps are kept in files.
    PersistUserDefinedTimestamps(bool),
    /// 8202: RocksDB: the progress of a compaction that can be resumed. Its contents are not
    /// decoded.
    SubcompactionProgress(&'a [u8]),
    /// 8203: RocksDB: the length of the MANIFEST when it was last rewritten, in bytes.
    LastCompactedManifestFileSize(u64),
    /// A field of a later RocksDB that its tag marks as safe to ignore (bit 13 is set).
    Ignorable { tag: u32, value: &'a [u8] },
}

/// A blob file that RocksDB has written (`db/blob/blob_file_addition.cc`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlobFileAddition<'a> {
    /// The number in the file's name.
    pub file_number: u64,
    /// The number of values in it.
    pub blob_count: u64,
    /// The number of bytes that they take.
    pub blob_len: u64,
    /// The name of the checksum of the whole file; empty if there is none.
    pub checksum_method: &'a [u8],
    /// That checksum.
    pub checksum: &'a [u8],
    /// Fields of later versions, as tag and content. None is known.
    pub custom_fields: Vec<(u32, &'a [u8])>,
    /// Whether it is written with tag 8194, as by older versions, and not with 400.
    pub deprecated_tag: bool,
}

/// Values of a blob file that are no longer referred to (`db/blob/blob_file_garbage.cc`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlobFileGarbage<'a> {
    /// The number in the file's name.
    pub file_number: u64,
    /// The number of values.
    pub blob_count: u64,
    /// The number of bytes that they take.
    pub blob_len: u64,
    /// Fields of later versions, as tag and content. None is known.
    pub custom_fields: Vec<(u32, &'a [u8])>,
    /// Whether it is written with tag 8195, as by older versions, and not with 401.
    pub deprecated_tag: bool,
}

/// A write-ahead log that RocksDB keeps track of (`db/wal_edit.cc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WalAddition {
    /// The number in the log's name.
    pub log_number: u64,
    /// The number of bytes of it that are synced, if stated.
    pub synced_len: Option<u64>,
    /// Whether it is written with tag 8199, and not with 8196.
    pub length_prefixed: bool,
}

/// An unknown field is safe to ignore if its tag has this bit.
const SAFE_IGNORE_MASK: u32 = 1 << 13;

impl<'a> Field<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, PayloadError> {
        let start = cursor.offset();
        let tag = cursor.varint32()?;
        Ok(match tag {
            1 => Field::Comparator(cursor.string()?),
            2 => Field::LogNumber(cursor.varint64()?),
            3 => Field::NextFileNumber(cursor.varint64()?),
            4 => Field::LastSequence(cursor.varint64()?),
            5 => Field::CompactPointer {
                level: cursor.varint32()?,
                key: InternalKey::decode(cursor)?,
            },
            6 => Field::DeletedFile {
                level: cursor.varint32()?,
                file_number: cursor.varint64()?,
            },
            7 | 100 | 102 | 103 => Field::NewFile(NewFile::decode(cursor, tag)?),
            9 => Field::PrevLogNumber(cursor.varint64()?),
            10 => Field::MinLogNumberToKeep(cursor.varint64()?),
            200 => Field::ColumnFamily(cursor.varint32()?),
            201 => Field::ColumnFamilyAdd(cursor.string()?),
            202 => Field::ColumnFamilyDrop,
            203 => Field::MaxColumnFamily(cursor.varint32()?),
            300 => Field::InAtomicGroup(cursor.varint32()?),
            400 | 8194 => Field::BlobFileAddition(BlobFileAddition {
                file_number: cursor.varint64()?,
                blob_count: cursor.varint64()?,
                blob_len: cursor.varint64()?,
                checksum_method: cursor.string()?,
                checksum: cursor.string()?,
                custom_fields: blob_fields(cursor)?,
                deprecated_tag: tag == 8194,
            }),
            401 | 8195 => Field::BlobFileGarbage(BlobFileGarbage {
                file_number: cursor.varint64()?,
                blob_count: cursor.varint64()?,
                blob_len: cursor.varint64()?,
                custom_fields: blob_fields(cursor)?,
                deprecated_tag: tag == 8195,
            }),
            8193 => Field::DbId(cursor.string()?),
            8196 => Field::WalAddition(WalAddition::decode(cursor, false)?),
            8199 => Field::WalAddition(cursor.nested_value(|inside| WalAddition::decode(inside, true))?),
            8197 => Field::WalDeletion {
                log_number: cursor.varint64()?,
                length_prefixed: false,
            },
            8200 => Field::WalDeletion {
                log_number: cursor.nested_value(Cursor::varint64)?,
                length_prefixed: true,
            },
            8198 => Field::FullHistoryTsLow(cursor.string()?),
            8201 => Field::PersistUserDefinedTimestamps(cursor.nested_value(Cursor::bool)?),
            8202 => Field::SubcompactionProgress(cursor.string()?),
            8203 => Field::LastCompactedManifestFileSize(cursor.nested_value(Cursor::varint64)?),
            tag if tag & SAFE_IGNORE_MASK != 0 => Field::Ignorable {
                tag,
                value: cursor.string()?,
            },
            tag => return Err(cursor.error(start, PayloadReason::UnknownTag { tag })),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        let start = out.len();
        put_varint(out, self.tag().into());
        match self {
            Field::LogNumber(number)
            | Field::NextFileNumber(number)
            | Field::LastSequence(number)
            | Field::PrevLogNumber(number)
            | Field::MinLogNumberToKeep(number) => put_varint(out, *number),
            Field::ColumnFamily(number) | Field::MaxColumnFamily(number) | Field::InAtomicGroup(number) => {
                put_varint(out, (*number).into());
            }
            Field::ColumnFamilyDrop => {}
            Field::Comparator(bytes)
            | Field::ColumnFamilyAdd(bytes)
            | Field::DbId(bytes)
            | Field::FullHistoryTsLow(bytes)
            | Field::SubcompactionProgress(bytes) => put_string(out, bytes)?,
            Field::Ignorable { tag, value } => {
                put_string(out, value)?;
                if Field::decode(&mut Cursor::new(out, start)).as_ref() != Ok(self) {
                    return Err(wrong_tag(out, start, *tag));
                }
            }
            Field::CompactPointer { level, key } => {
                put_varint(out, (*level).into());
                key.encode(out)?;
            }
            Field::DeletedFile { level, file_number } => {
                put_varint(out, (*level).into());
                put_varint(out, *file_number);
            }
            Field::NewFile(file) => file.encode(out)?,
            Field::BlobFileAddition(blob) => {
                put_varint(out, blob.file_number);
                put_varint(out, blob.blob_count);
                put_varint(out, blob.blob_len);
                put_string(out, blob.checksum_method)?;
                put_string(out, blob.checksum)?;
                put_blob_fields(out, &blob.custom_fields)?;
            }
            Field::BlobFileGarbage(blob) => {
                put_varint(out, blob.file_number);
                put_varint(out, blob.blob_count);
                put_varint(out, blob.blob_len);
                put_blob_fields(out, &blob.custom_fields)?;
            }
            Field::WalAddition(wal) if wal.length_prefixed => {
                let mut inside = Vec::new();
                wal.encode(&mut inside);
                put_string(out, &inside)?;
            }
            Field::WalAddition(wal) => wal.encode(out),
            Field::WalDeletion {
                log_number,
                length_prefixed: false,
            } => put_varint(out, *log_number),
            Field::WalDeletion { log_number: number, .. } | Field::LastCompactedManifestFileSize(number) => {
                put_nested_varint(out, *number);
            }
            Field::PersistUserDefinedTimestamps(is_set) => put_string(out, &[u8::from(*is_set)])?,
        }
        Ok(())
    }
}

tagged! { Field:
    Field::Comparator(_) => 1, "comparator";
    Field::LogNumber(_) => 2, "log_number";
    Field::NextFileNumber(_) => 3, "next_file_number";
    Field::LastSequence(_) => 4, "last_sequence";
    Field::CompactPointer { .. } => 5, "compact_pointer";
    Field::DeletedFile { .. } => 6, "deleted_file";
    Field::NewFile(file) => file.tag(), "new_file";
    Field::PrevLogNumber(_) => 9, "prev_log_number";
    Field::MinLogNumberToKeep(_) => 10, "min_log_number_to_keep";
    Field::ColumnFamily(_) => 200, "column_family";
    Field::ColumnFamilyAdd(_) => 201, "column_family_add";
    Field::ColumnFamilyDrop => 202, "column_family_drop";
    Field::MaxColumnFamily(_) => 203, "max_column_family";
    Field::InAtomicGroup(_) => 300, "in_atomic_group";
    Field::BlobFileAddition(blob) => [400, 8194][blob.deprecated_tag as usize], "blob_file_addition";
    Field::BlobFileGarbage(blob) => [401, 8195][blob.deprecated_tag as usize], "blob_file_garbage";
    Field::DbId(_) => 8193, "db_id";
    Field::WalAddition(wal) => [8196, 8199][wal.length_prefixed as usize], "wal_addition";
    Field::WalDeletion { length_prefixed, .. } => [8197, 8200][*length_prefixed as usize], "wal_deletion";
    Field::FullHistoryTsLow(_) => 8198, "full_history_ts_low";
    Field::PersistUserDefinedTimestamps(_) => 8201, "persist_user_defined_timestamps";
    Field::SubcompactionProgress(_) => 8202, "subcompaction_progress";
    Field::LastCompactedManifestFileSize(_) => 8203, "last_compacted_manifest_file_size";
    Field::Ignorable { tag, .. } => *tag, "ignorable";
}

impl WalAddition {
    const TERMINATE: u32 = 1;
    const SYNCED_SIZE: u32 = 2;

    fn decode(cursor: &mut Cursor<'_>, length_prefixed: bool) -> Result<Self, PayloadError> {
        let log_number = cursor.varint64()?;
        let mut synced_len = None;
        loop {
            let start = cursor.offset();
            match cursor.varint32()? {
                Self::TERMINATE => break,
                Self::SYNCED_SIZE if synced_len.is_none() => synced_len = Some(cursor.varint64()?),
                Self::SYNCED_SIZE => return Err(cursor.error(start, PayloadReason::NonCanonical)),
                tag => return Err(cursor.error(start, PayloadReason::UnknownTag { tag })),
            }
        }
        Ok(WalAddition {
            log_number,
            synced_len,
            length_prefixed,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.log_number);
        if let Some(synced_len) = self.synced_len {
            put_varint(out, Self::SYNCED_SIZE.into());
            put_varint(out, synced_len);
        }
        put_varint(out, Self::TERMINATE.into());
    }
}

/// The custom fields of a blob file, up to the final tag 0.
fn blob_fields<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(u32, &'a [u8])>, PayloadError> {
    let mut fields = Vec::new();
    loop {
        let start = cursor.offset();
        match cursor.varint32()? {
            0 => return Ok(fields),
            tag if tag & NON_SAFE_IGNORE_MASK != 0 => {
                return Err(cursor.error(start, PayloadReason::UnknownTag { tag }));
            }
            tag => fields.push((tag, cursor.string()?)),
        }
    }
}

fn put_blob_fields(out: &mut Vec<u8>, fields: &[(u32, &[u8])]) -> Result<(), PayloadError> {
    for &(tag, value) in fields {
        if tag == 0 || tag & NON_SAFE_IGNORE_MASK != 0 {
            return Err(wrong_tag(out, out.len(), tag));
        }
        put_varint(out, tag.into());
        put_string(out, value)?;
    }
    out.push(0);
    Ok(())
}
