//! The fields of a version edit as views.

use super::view::View;
use crate::{CustomField, Field, InternalKey, NewFile, VersionEdit};

/// Calls `each` with the fields of an edit that has no fault, until it returns `false`. Returns
/// whether it never did.
pub(super) fn all_edit_fields(record: &[u8], mut each: impl FnMut(View<'_>) -> bool) -> bool {
    let mut fields = VersionEdit::new(record).fields().map_while(Result::ok);
    fields.all(|field| {
        take_value(&field, &mut |value| {
            take_field(field.as_str(), field.tag(), value, &mut each)
        })
    })
}

impl<'v> View<'v> {
    /// The value of a field of a version edit, if it is a number, a truth value or bytes.
    pub fn of_field(field: &Field<'v>) -> Option<Self> {
        Some(match *field {
            Field::LogNumber(number)
            | Field::NextFileNumber(number)
            | Field::LastSequence(number)
            | Field::PrevLogNumber(number)
            | Field::MinLogNumberToKeep(number)
            | Field::WalDeletion { log_number: number, .. }
            | Field::LastCompactedManifestFileSize(number) => View::UInt(number),
            Field::ColumnFamily(number) | Field::MaxColumnFamily(number) | Field::InAtomicGroup(number) => {
                View::UInt(number.into())
            }
            Field::Comparator(bytes)
            | Field::ColumnFamilyAdd(bytes)
            | Field::DbId(bytes)
            | Field::FullHistoryTsLow(bytes)
            | Field::SubcompactionProgress(bytes)
            | Field::Ignorable { value: bytes, .. } => View::Bytes(bytes),
            Field::PersistUserDefinedTimestamps(is_set) => View::Bool(is_set),
            _ => return None,
        })
    }

    /// The value of a further field of a file.
    pub fn of_custom_field(field: &CustomField<'v>) -> Self {
        match *field {
            CustomField::MinLogNumberToKeep(number)
            | CustomField::OldestBlobFileNumber(number)
            | CustomField::OldestAncesterTime(number)
            | CustomField::FileCreationTime(number)
            | CustomField::EpochNumber(number)
            | CustomField::CompensatedRangeDeletionSize(number)
            | CustomField::TailSize(number) => View::UInt(number),
            CustomField::Temperature(byte) | CustomField::PathId(byte) => View::UInt(byte.into()),
            CustomField::NeedCompaction(is_set) | CustomField::UserDefinedTimestampsPersisted(is_set) => {
                View::Bool(is_set)
            }
            CustomField::FileChecksum(bytes)
            | CustomField::FileChecksumFuncName(bytes)
            | CustomField::MinTimestamp(bytes)
            | CustomField::MaxTimestamp(bytes)
            | CustomField::UniqueId(bytes)
            | CustomField::FileOpenMetadata(bytes)
            | CustomField::Ignorable { value: bytes, .. } => View::Bytes(bytes),
        }
    }
}

/// Returns the result of `take` for the value of a field, which is null if it has none.
fn take_value(field: &Field<'_>, take: &mut dyn FnMut(View<'_>) -> bool) -> bool {
    match field {
        Field::CompactPointer { level, key } => take(View::Cells(&[
            ("level", View::UInt((*level).into())),
            ("key", View::Cells(&key_cells(key))),
        ])),
        Field::DeletedFile { level, file_number } => take(View::Cells(&[
            ("level", View::UInt((*level).into())),
            ("file_number", View::UInt(*file_number)),
        ])),
        Field::NewFile(file) => take(View::Cells(&new_file_cells(
            file,
            [&key_cells(&file.smallest), &key_cells(&file.largest)],
        ))),
        Field::BlobFileAddition(blob) => take(View::Cells(&[
            ("file_number", View::UInt(blob.file_number)),
            ("blob_count", View::UInt(blob.blob_count)),
            ("blob_len", View::UInt(blob.blob_len)),
            ("checksum_method", View::Bytes(blob.checksum_method)),
            ("checksum", View::Bytes(blob.checksum)),
            ("custom_fields", View::CustomFields(&blob_fields(&blob.custom_fields))),
        ])),
        Field::BlobFileGarbage(blob) => take(View::Cells(&[
            ("file_number", View::UInt(blob.file_number)),
            ("blob_count", View::UInt(blob.blob_count)),
            ("blob_len", View::UInt(blob.blob_len)),
            ("custom_fields", View::CustomFields(&blob_fields(&blob.custom_fields))),
        ])),
        Field::WalAddition(wal) => {
            let synced_len = wal.synced_len.map_or(View::Null, View::UInt);
            let cells = [("log_number", View::UInt(wal.log_number)), ("synced_len", synced_len)];
            take(View::Cells(if wal.synced_len.is_some() { &cells } else { &cells[..1] }))
        }
        plain => take(View::of_field(plain).unwrap_or(View::Null)),
    }
}

/// Returns the result of `take` for a field with this value.
fn take_field(kind: &str, tag: u32, value: View<'_>, take: &mut dyn FnMut(View<'_>) -> bool) -> bool {
    let cells = [
        ("kind", View::Text(kind)),
        ("tag", View::UInt(tag.into())),
        ("value", value),
    ];
    take(View::Cells(match value {
        View::Null => &cells[..2],
        _ => &cells,
    }))
}

/// Calls `each` with the further fields of a file, until it returns `false`. Returns whether it
/// never did.
pub(super) fn all_custom_fields(fields: &[CustomField<'_>], mut each: impl FnMut(View<'_>) -> bool) -> bool {
    fields.iter().all(|field| {
        let value = View::of_custom_field(field);
        take_field(field.as_str(), field.tag(), value, &mut each)
    })
}

/// The cells of a new file, of whose keys the cells are given.
fn new_file_cells<'v>(file: &'v NewFile<'v>, keys: [&'v KeyCells<'v>; 2]) -> Vec<(&'v str, View<'v>)> {
    let mut cells = vec![
        ("level", View::UInt(file.level.into())),
        ("file_number", View::UInt(file.file_number)),
        ("file_len", View::UInt(file.file_len)),
        ("smallest", View::Cells(keys[0])),
        ("largest", View::Cells(keys[1])),
    ];
    if let Some((smallest, largest)) = file.sequences() {
        cells.push(("smallest_sequence", View::UInt(smallest)));
        cells.push(("largest_sequence", View::UInt(largest)));
    }
    cells.push(("path_id", View::UInt(file.path_id().into())));
    cells.push(("custom_fields", View::CustomFields(file.custom_fields())));
    cells
}

type KeyCells<'v> = [(&'v str, View<'v>); 3];

fn key_cells<'v>(key: &InternalKey<'v>) -> KeyCells<'v> {
    [
        ("user_key", View::Bytes(key.user_key)),
        ("sequence", View::UInt(key.sequence)),
        ("value_type", View::UInt(key.value_type.into())),
    ]
}

fn blob_fields<'a>(fields: &[(u32, &'a [u8])]) -> Vec<CustomField<'a>> {
    let fields = fields.iter();
    fields
        .map(|&(tag, value)| CustomField::Ignorable { tag, value })
        .collect()
}
