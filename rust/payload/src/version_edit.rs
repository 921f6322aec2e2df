//! Decodes a MANIFEST record, which describes the changes from one version of a database to the
//! next.

use std::iter;

use super::error::{PayloadError, PayloadReason};
use super::value::{Item, Value};
use super::wire::Cursor;

/// A record in a LevelDB or RocksDB MANIFEST. It consists of fields that describe the changes, and
/// each field starts with its tag.
///
/// The tags of LevelDB and RocksDB don't collide, so one decoder is enough for both
/// (`VersionEdit::DecodeFrom` in `db/version_edit.cc`). Pebble writes the same tags, and adds its
/// own for tables with range keys, virtual tables and blob files. Tags that only Pebble writes are
/// [unknown](PayloadReason::UnknownTag) here.
///
/// ```
/// use cordwood_payload::{Field, Value, VersionEdit};
///
/// let record = b"\x01\x1aleveldb.BytewiseComparator\x02\x00\x03\x02\x04\x00"; // The first of a new LevelDB.
/// let fields: Vec<Field<'_>> = VersionEdit::new(record).fields().collect::<Result<_, _>>()?;
/// let comparator = Value::Bytes(b"leveldb.BytewiseComparator".into());
/// assert_eq!((fields[0].tag, fields[0].kind, &fields[0].value), (1, "comparator", &comparator));
/// assert_eq!((fields[2].tag, fields[2].kind, &fields[2].value), (3, "next_file_number", &Value::UInt(2)));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionEdit<'a> {
    record: &'a [u8],
}

impl<'a> VersionEdit<'a> {
    /// Creates the edit from this record, without decoding any fields yet.
    pub fn new(record: &'a [u8]) -> Self {
        VersionEdit { record }
    }

    /// Returns the fields, in record order. The iterator ends after the first error.
    pub fn fields(&self) -> impl Iterator<Item = Result<Field<'a>, PayloadError>> + use<'a> {
        let (edit, mut next) = (*self, Some(0));
        iter::from_fn(move || {
            let step = edit.field_at(next.take()?).transpose()?;
            Some(step.map(|(field, end_offset)| {
                next = Some(end_offset);
                field
            }))
        })
    }

    /// Decodes all fields to check for faults. Only one field is decoded at a time, because a
    /// decoded field takes up much more memory than its bytes in the record.
    ///
    /// # Errors
    ///
    /// Returns the first fault.
    pub fn check(&self) -> Result<(), PayloadError> {
        self.fields().try_for_each(|field| field.map(drop))
    }

    /// Decodes the field at an offset in the record. Returns the field and its end offset, or
    /// `None` if the record ends at the given offset.
    ///
    /// To decode all fields, use [`fields`](VersionEdit::fields). This method is for callers that
    /// cannot keep the record borrowed between calls.
    ///
    /// # Errors
    ///
    /// Fails if there is no field at `offset`.
    ///
    /// ```
    /// use cordwood_payload::{Value, VersionEdit};
    ///
    /// let edit = VersionEdit::new(b"\x02\x04\x63");
    /// let (field, end_offset) = edit.field_at(0)?.unwrap();
    /// assert_eq!((field.kind, field.value, end_offset), ("log_number", Value::UInt(4), 2));
    /// assert!(edit.field_at(2).is_err());
    /// assert_eq!(edit.field_at(3)?, None);
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
}

/// A field in a [`VersionEdit`], or a custom field of a file in an edit. See `Tag` in LevelDB's
/// `db/version_edit.cc`, and `Tag` and `NewFileCustomTag` in RocksDB's `db/version_edit.h`.
#[derive(Debug, Clone, PartialEq)]
pub struct Field<'a> {
    /// The number that the field starts with. Some kinds have several tags, because the engines
    /// have changed their encoding.
    pub tag: u32,
    /// The name of the field's kind, such as `"log_number"`. It is part of the interface and is the
    /// same in Python.
    pub kind: &'static str,
    /// The value, which is null if fields of this kind have no value.
    pub value: Value<'a>,
}

/// The name of a kind, and a value of that kind.
type Kind<'a> = (&'static str, Value<'a>);

/// An unknown field is safe to ignore if this bit is set in its tag.
const SAFE_IGNORE_MASK: u32 = 1 << 13;

/// An unknown field of a file is safe to ignore unless this bit is set in its tag.
const NON_SAFE_IGNORE_MASK: u32 = 1 << 6;

impl<'a> Field<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, PayloadError> {
        let start = cursor.offset();
        let tag = cursor.varint32()?;
        let (kind, value) = match tag {
            1 => ("comparator", bytes(cursor)?),
            2 => ("log_number", long(cursor)?),
            3 => ("next_file_number", long(cursor)?),
            4 => ("last_sequence", long(cursor)?),
            5 => (
                "compact_pointer",
                object([("level", short(cursor)?), ("key", key(cursor)?)]),
            ),
            6 => (
                "deleted_file",
                object([("level", short(cursor)?), ("file_number", long(cursor)?)]),
            ),
            7 | 100 | 102 | 103 => ("new_file", new_file(cursor, tag)?),
            9 => ("prev_log_number", long(cursor)?),
            10 => ("min_log_number_to_keep", long(cursor)?),
            // Only RocksDB writes this field and the fields below.
            200 => ("column_family", short(cursor)?),
            201 => ("column_family_add", bytes(cursor)?),
            202 => ("column_family_drop", Value::Null),
            203 => ("max_column_family", short(cursor)?),
            300 => ("in_atomic_group", short(cursor)?),
            // Older versions of RocksDB write the second tag.
            400 | 8194 => ("blob_file_addition", blob_file(cursor, true)?),
            401 | 8195 => ("blob_file_garbage", blob_file(cursor, false)?),
            8193 => ("db_id", bytes(cursor)?),
            8196 => ("wal_addition", wal_addition(cursor)?),
            8199 => ("wal_addition", cursor.nested_value(wal_addition)?),
            8197 => ("wal_deletion", long(cursor)?),
            8200 => ("wal_deletion", cursor.nested_value(long)?),
            8198 => ("full_history_ts_low", bytes(cursor)?),
            8201 => ("persist_user_defined_timestamps", cursor.nested_value(flag)?),
            // This field's contents are not decoded.
            8202 => ("subcompaction_progress", bytes(cursor)?),
            8203 => ("last_compacted_manifest_file_size", cursor.nested_value(long)?),
            tag if tag & SAFE_IGNORE_MASK != 0 => ("ignorable", bytes(cursor)?),
            tag => return Err(cursor.error(start, PayloadReason::UnknownTag { tag })),
        };
        Ok(Field { tag, kind, value })
    }

    /// Converts the field to the items of an object.
    pub(super) fn into_items(self) -> Vec<Item<'a>> {
        let mut items = vec![
            ("kind".into(), Value::Text(self.kind.into())),
            ("tag".into(), Value::UInt(self.tag.into())),
        ];
        if self.value != Value::Null {
            items.push(("value".into(), self.value));
        }
        items
    }
}

fn bytes<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    Ok(Value::Bytes(cursor.string()?.into()))
}

fn short<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    Ok(Value::UInt(cursor.varint32()?.into()))
}

fn long<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    cursor.varint64().map(Value::UInt)
}

fn byte<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    Ok(Value::UInt(cursor.byte()?.into()))
}

fn flag<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    cursor.bool().map(Value::Bool)
}

fn object<'a, const COUNT: usize>(items: [(&'static str, Value<'a>); COUNT]) -> Value<'a> {
    Value::Object(items.map(|(name, value)| (name.into(), value)).into())
}

/// Reads an internal key, as stored in the tables of a database: the user key, followed by 8 bytes
/// with the entry's sequence number and type (see `ParsedInternalKey` in `db/dbformat.h`). With
/// user-defined timestamps, the user key ends with the timestamp.
fn key<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    let start = cursor.offset();
    let Some((user_key, packed)) = cursor.string()?.split_last_chunk() else {
        return Err(cursor.error(start, PayloadReason::BadKey));
    };
    let packed = u64::from_le_bytes(*packed);
    Ok(object([
        ("user_key", Value::Bytes(user_key.into())),
        ("sequence", Value::UInt(packed >> 8)),
        ("value_type", Value::UInt(packed & 0xff)),
    ]))
}

/// Reads a table added to a level. Each encoding has its own tag: LevelDB writes 7, and current
/// RocksDB versions write 103. In RocksDB, the largest key is not in the file if it has the maximum
/// sequence number and the type of a range deletion.
fn new_file<'a>(cursor: &mut Cursor<'a>, tag: u32) -> Result<Value<'a>, PayloadError> {
    let (level, file_number) = (short(cursor)?, long(cursor)?);
    // The path id is the index of a directory in RocksDB's `db_paths`.
    let mut path_id = if tag == 102 { short(cursor)? } else { Value::UInt(0) };
    let mut items: Vec<Item<'a>> = Vec::with_capacity(9);
    items.push(("level".into(), level));
    items.push(("file_number".into(), file_number));
    items.push(("file_len".into(), long(cursor)?));
    items.push(("smallest".into(), key(cursor)?));
    items.push(("largest".into(), key(cursor)?));
    if tag != 7 {
        items.push(("smallest_sequence".into(), long(cursor)?));
        items.push(("largest_sequence".into(), long(cursor)?));
    }
    let mut custom_fields = Vec::new();
    if tag == 103 {
        custom_fields = further_fields(cursor, 1, custom_field)?;
        // Uses the last path id if there are several, as RocksDB does.
        if let Some(field) = custom_fields.iter().rfind(|field| field.kind == "path_id") {
            path_id = field.value.clone();
        }
    }
    items.push(("path_id".into(), path_id));
    items.push(("custom_fields".into(), list(custom_fields)));
    Ok(Value::Object(items))
}

/// Reads a custom field of a table. Returns `None` for an unknown tag.
fn custom_field<'a>(cursor: &mut Cursor<'a>, tag: u32) -> Result<Option<Kind<'a>>, PayloadError> {
    Ok(Some(match tag {
        2 => ("need_compaction", cursor.nested_value(flag)?),
        3 => (
            "min_log_number_to_keep",
            Value::UInt(cursor.nested_value(Cursor::fixed64)?),
        ),
        4 => ("oldest_blob_file_number", cursor.nested_value(long)?),
        5 => ("oldest_ancester_time", cursor.nested_value(long)?),
        6 => ("file_creation_time", cursor.nested_value(long)?),
        7 => ("file_checksum", bytes(cursor)?),
        8 => ("file_checksum_func_name", bytes(cursor)?),
        9 => ("temperature", cursor.nested_value(byte)?),
        10 => ("min_timestamp", bytes(cursor)?),
        11 => ("max_timestamp", bytes(cursor)?),
        12 => ("unique_id", bytes(cursor)?),
        13 => ("epoch_number", cursor.nested_value(long)?),
        14 => ("compensated_range_deletion_size", cursor.nested_value(long)?),
        15 => ("tail_size", cursor.nested_value(long)?),
        16 => ("user_defined_timestamps_persisted", cursor.nested_value(flag)?),
        17 => ("file_open_metadata", bytes(cursor)?),
        65 => ("path_id", cursor.nested_value(byte)?),
        _ => return Ok(None),
    }))
}

/// Reads RocksDB's entry for a blob file. It describes either a new file (see
/// `db/blob/blob_file_addition.cc`) or the amount of garbage in a file (see
/// `db/blob/blob_file_garbage.cc`). Blob files have no known custom fields.
fn blob_file<'a>(cursor: &mut Cursor<'a>, has_checksum: bool) -> Result<Value<'a>, PayloadError> {
    let mut items: Vec<Item<'a>> = Vec::with_capacity(6);
    items.push(("file_number".into(), long(cursor)?));
    items.push(("blob_count".into(), long(cursor)?));
    items.push(("blob_len".into(), long(cursor)?));
    if has_checksum {
        items.push(("checksum_method".into(), bytes(cursor)?));
        items.push(("checksum".into(), bytes(cursor)?));
    }
    let fields = further_fields(cursor, 0, |_, _| Ok(None))?;
    items.push(("custom_fields".into(), list(fields)));
    Ok(Value::Object(items))
}

/// Reads the custom fields of a file, up to the tag `end`.
fn further_fields<'a>(
    cursor: &mut Cursor<'a>,
    end: u32,
    read: impl Fn(&mut Cursor<'a>, u32) -> Result<Option<Kind<'a>>, PayloadError>,
) -> Result<Vec<Field<'a>>, PayloadError> {
    let mut fields = Vec::new();
    loop {
        let start = cursor.offset();
        let tag = cursor.varint32()?;
        if tag == end {
            return Ok(fields);
        }
        let (kind, value) = match read(cursor, tag)? {
            Some(known) => known,
            None if tag & NON_SAFE_IGNORE_MASK != 0 => {
                return Err(cursor.error(start, PayloadReason::UnknownTag { tag }));
            }
            None => ("ignorable", bytes(cursor)?),
        };
        fields.push(Field { tag, kind, value });
    }
}

fn list(fields: Vec<Field<'_>>) -> Value<'_> {
    let fields = fields.into_iter().map(|field| Value::Object(field.into_items()));
    Value::Array(fields.collect())
}

/// Reads the entry for a write-ahead log tracked by RocksDB. The entry states either that the log
/// exists or how many of its bytes are synced (see `db/wal_edit.cc`).
fn wal_addition<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, PayloadError> {
    const TERMINATE: u32 = 1;
    const SYNCED_SIZE: u32 = 2;
    let mut items: Vec<Item<'a>> = vec![("log_number".into(), long(cursor)?)];
    loop {
        let start = cursor.offset();
        match cursor.varint32()? {
            TERMINATE => return Ok(Value::Object(items)),
            SYNCED_SIZE if items.len() == 1 => items.push(("synced_len".into(), long(cursor)?)),
            SYNCED_SIZE => return Err(cursor.error(start, PayloadReason::NonCanonical)),
            tag => return Err(cursor.error(start, PayloadReason::UnknownTag { tag })),
        }
    }
}
