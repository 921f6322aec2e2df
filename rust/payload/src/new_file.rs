//! The table that a version edit adds to a level, with the internal keys at its ends.

use super::error::{PayloadError, PayloadReason};
use super::wire::{Cursor, put_nested_varint, put_string, put_string_of, put_varint, too_large, wrong_tag};

/// A key as stored in the tables of a database: the user's key, followed by 8 bytes with the
/// sequence number and the type of the entry (`ParsedInternalKey` of `db/dbformat.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InternalKey<'a> {
    /// The user's key. With user-defined timestamps, it ends with the timestamp.
    pub user_key: &'a [u8],
    /// The sequence number: 56 bits.
    pub sequence: u64,
    /// The type of the entry: the tag of an [`Operation`](super::Operation) without a column
    /// family, such as 0 for a delete and 1 for a put.
    pub value_type: u8,
}

impl<'a> InternalKey<'a> {
    pub(super) fn decode(cursor: &mut Cursor<'a>) -> Result<Self, PayloadError> {
        let start = cursor.offset();
        let Some((user_key, packed)) = cursor.string()?.split_last_chunk() else {
            return Err(cursor.error(start, PayloadReason::BadKey));
        };
        let packed = u64::from_le_bytes(*packed);
        Ok(InternalKey {
            user_key,
            sequence: packed >> 8,
            value_type: packed as u8,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        if self.sequence >> 56 != 0 {
            return Err(too_large(out, 8));
        }
        let packed = self.sequence << 8 | u64::from(self.value_type);
        put_string_of(out, &[self.user_key, &packed.to_le_bytes()])
    }
}

/// A table that is added to a level.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NewFile<'a> {
    /// The level, 0 for the one that memory is flushed to.
    pub level: u32,
    /// The number in the file's name.
    pub file_number: u64,
    /// The length of the file, in bytes.
    pub file_len: u64,
    /// The smallest key in it.
    pub smallest: InternalKey<'a>,
    /// The largest key in it. RocksDB: a key with the maximum sequence number and the type of a
    /// range deletion is not in the file.
    pub largest: InternalKey<'a>,
    /// The form in which it is written, one of four, with the fields that only this form has.
    pub form: NewFileForm<'a>,
}

/// The forms of a [`NewFile`]: each has its own tag. LevelDB writes the first form, current
/// versions of RocksDB the last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum NewFileForm<'a> {
    /// `kNewFile`, 7.
    NewFile,
    /// `kNewFile2`, 100: with the smallest and the largest sequence number in the file.
    NewFile2 {
        smallest_sequence: u64,
        largest_sequence: u64,
    },
    /// `kNewFile3`, 102: also with the number of the directory among RocksDB's `db_paths`.
    NewFile3 {
        path_id: u32,
        smallest_sequence: u64,
        largest_sequence: u64,
    },
    /// `kNewFile4`, 103: as `kNewFile2`, with any number of further fields.
    NewFile4 {
        smallest_sequence: u64,
        largest_sequence: u64,
        custom_fields: Vec<CustomField<'a>>,
    },
}

/// A further field of a [`NewFile`]: `NewFileCustomTag` of RocksDB's `db/version_edit.h`, whose
/// spelling is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CustomField<'a> {
    /// 2: the file is marked for compaction.
    NeedCompaction(bool),
    /// 3: logs with smaller numbers are not needed. It concerns the database and is here for
    /// compatibility with older versions.
    MinLogNumberToKeep(u64),
    /// 4: the smallest number of a blob file that the table refers to.
    OldestBlobFileNumber(u64),
    /// 5: Unix time, in seconds, of the oldest data; 0 if it is not known.
    OldestAncesterTime(u64),
    /// 6: Unix time, in seconds, at which the file was created; 0 if it is not known.
    FileCreationTime(u64),
    /// 7: the checksum of the whole file.
    FileChecksum(&'a [u8]),
    /// 8: the name of the function that computes this checksum.
    FileChecksumFuncName(&'a [u8]),
    /// 9: the temperature of the storage.
    Temperature(u8),
    /// 10: the smallest user-defined timestamp in the file.
    MinTimestamp(&'a [u8]),
    /// 11: the largest user-defined timestamp in the file.
    MaxTimestamp(&'a [u8]),
    /// 12: the file's unique number, 16 or 24 bytes.
    UniqueId(&'a [u8]),
    /// 13: the order in which files were flushed or ingested.
    EpochNumber(u64),
    /// 14: the estimated number of bytes that range deletions in the file cover.
    CompensatedRangeDeletionSize(u64),
    /// 15: the number of bytes of the file after its data blocks.
    TailSize(u64),
    /// 16: whether user-defined timestamps are kept in the file.
    UserDefinedTimestampsPersisted(bool),
    /// 17: metadata for opening the file faster.
    FileOpenMetadata(&'a [u8]),
    /// 65: the number of the directory among RocksDB's `db_paths`.
    PathId(u8),
    /// A field of a later version that its tag marks as safe to ignore (bit 6 is not set).
    Ignorable {
        /// The tag.
        tag: u32,
        /// The content of the field.
        value: &'a [u8],
    },
}

/// The tag after the last custom field.
const TERMINATE: u32 = 1;

/// The bit in the tag of a custom field that marks it as one that readers must understand. It is
/// the same in blob files.
pub(super) const NON_SAFE_IGNORE_MASK: u32 = 1 << 6;

impl<'a> CustomField<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Result<Option<Self>, PayloadError> {
        let start = cursor.offset();
        let tag = cursor.varint32()?;
        let field = match tag {
            TERMINATE => return Ok(None),
            2 => CustomField::NeedCompaction(cursor.nested_value(Cursor::bool)?),
            3 => CustomField::MinLogNumberToKeep(cursor.nested_value(Cursor::fixed64)?),
            4 => CustomField::OldestBlobFileNumber(cursor.nested_value(Cursor::varint64)?),
            5 => CustomField::OldestAncesterTime(cursor.nested_value(Cursor::varint64)?),
            6 => CustomField::FileCreationTime(cursor.nested_value(Cursor::varint64)?),
            7 => CustomField::FileChecksum(cursor.string()?),
            8 => CustomField::FileChecksumFuncName(cursor.string()?),
            9 => CustomField::Temperature(cursor.nested_value(Cursor::byte)?),
            10 => CustomField::MinTimestamp(cursor.string()?),
            11 => CustomField::MaxTimestamp(cursor.string()?),
            12 => CustomField::UniqueId(cursor.string()?),
            13 => CustomField::EpochNumber(cursor.nested_value(Cursor::varint64)?),
            14 => CustomField::CompensatedRangeDeletionSize(cursor.nested_value(Cursor::varint64)?),
            15 => CustomField::TailSize(cursor.nested_value(Cursor::varint64)?),
            16 => CustomField::UserDefinedTimestampsPersisted(cursor.nested_value(Cursor::bool)?),
            17 => CustomField::FileOpenMetadata(cursor.string()?),
            65 => CustomField::PathId(cursor.nested_value(Cursor::byte)?),
            tag if tag & NON_SAFE_IGNORE_MASK != 0 => {
                return Err(cursor.error(start, PayloadReason::UnknownTag { tag }));
            }
            tag => CustomField::Ignorable {
                tag,
                value: cursor.string()?,
            },
        };
        Ok(Some(field))
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        let start = out.len();
        put_varint(out, self.tag().into());
        match *self {
            CustomField::OldestBlobFileNumber(number)
            | CustomField::OldestAncesterTime(number)
            | CustomField::FileCreationTime(number)
            | CustomField::EpochNumber(number)
            | CustomField::CompensatedRangeDeletionSize(number)
            | CustomField::TailSize(number) => {
                put_nested_varint(out, number);
                Ok(())
            }
            CustomField::MinLogNumberToKeep(number) => put_string(out, &number.to_le_bytes()),
            CustomField::NeedCompaction(is_set) | CustomField::UserDefinedTimestampsPersisted(is_set) => {
                put_string(out, &[u8::from(is_set)])
            }
            CustomField::Temperature(byte) | CustomField::PathId(byte) => put_string(out, &[byte]),
            CustomField::FileChecksum(bytes)
            | CustomField::FileChecksumFuncName(bytes)
            | CustomField::MinTimestamp(bytes)
            | CustomField::MaxTimestamp(bytes)
            | CustomField::UniqueId(bytes)
            | CustomField::FileOpenMetadata(bytes) => put_string(out, bytes),
            CustomField::Ignorable { tag, value } => {
                put_string(out, value)?;
                match CustomField::decode(&mut Cursor::new(out, start)) {
                    Ok(Some(decoded)) if decoded == *self => Ok(()),
                    _ => Err(wrong_tag(out, start, tag)),
                }
            }
        }
    }
}

/// The tag and the name of each variant.
macro_rules! tagged {
    ($kind:ident: $($pattern:pat => $tag:expr, $name:literal;)*) => {
        #[allow(unused_variables, reason = "some patterns have names for the tag")]
        impl $kind<'_> {
            /// The number that precedes the field.
            pub const fn tag(&self) -> u32 {
                match self {
                    $($pattern => $tag,)*
                }
            }

            /// A stable name: part of the interface, the same in Python.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($pattern => $name,)*
                }
            }
        }
    };
}

pub(super) use tagged;

tagged! { CustomField:
    CustomField::NeedCompaction(_) => 2, "need_compaction";
    CustomField::MinLogNumberToKeep(_) => 3, "min_log_number_to_keep";
    CustomField::OldestBlobFileNumber(_) => 4, "oldest_blob_file_number";
    CustomField::OldestAncesterTime(_) => 5, "oldest_ancester_time";
    CustomField::FileCreationTime(_) => 6, "file_creation_time";
    CustomField::FileChecksum(_) => 7, "file_checksum";
    CustomField::FileChecksumFuncName(_) => 8, "file_checksum_func_name";
    CustomField::Temperature(_) => 9, "temperature";
    CustomField::MinTimestamp(_) => 10, "min_timestamp";
    CustomField::MaxTimestamp(_) => 11, "max_timestamp";
    CustomField::UniqueId(_) => 12, "unique_id";
    CustomField::EpochNumber(_) => 13, "epoch_number";
    CustomField::CompensatedRangeDeletionSize(_) => 14, "compensated_range_deletion_size";
    CustomField::TailSize(_) => 15, "tail_size";
    CustomField::UserDefinedTimestampsPersisted(_) => 16, "user_defined_timestamps_persisted";
    CustomField::FileOpenMetadata(_) => 17, "file_open_metadata";
    CustomField::PathId(_) => 65, "path_id";
    CustomField::Ignorable { tag, .. } => *tag, "ignorable";
}

impl<'a> NewFile<'a> {
    /// The number that precedes the field: 7, 100, 102 or 103.
    pub const fn tag(&self) -> u32 {
        match self.form {
            NewFileForm::NewFile => 7,
            NewFileForm::NewFile2 { .. } => 100,
            NewFileForm::NewFile3 { .. } => 102,
            NewFileForm::NewFile4 { .. } => 103,
        }
    }

    /// The smallest and the largest sequence number in the file; `None` in the form that LevelDB
    /// writes.
    pub const fn sequences(&self) -> Option<(u64, u64)> {
        match self.form {
            NewFileForm::NewFile => None,
            NewFileForm::NewFile2 {
                smallest_sequence,
                largest_sequence,
            }
            | NewFileForm::NewFile3 {
                smallest_sequence,
                largest_sequence,
                ..
            }
            | NewFileForm::NewFile4 {
                smallest_sequence,
                largest_sequence,
                ..
            } => Some((smallest_sequence, largest_sequence)),
        }
    }

    /// The further fields, which only the form of current versions of RocksDB has.
    pub fn custom_fields(&self) -> &[CustomField<'a>] {
        match &self.form {
            NewFileForm::NewFile4 { custom_fields, .. } => custom_fields,
            _ => &[],
        }
    }

    /// The number of the directory among RocksDB's `db_paths`: 0 where the file states none. Of
    /// several [`CustomField::PathId`], the last one counts, as it does in RocksDB.
    pub fn path_id(&self) -> u32 {
        let of_field = |field: &CustomField<'_>| match *field {
            CustomField::PathId(path_id) => Some(path_id.into()),
            _ => None,
        };
        match self.form {
            NewFileForm::NewFile3 { path_id, .. } => path_id,
            _ => self.custom_fields().iter().rev().find_map(of_field).unwrap_or(0),
        }
    }

    /// `tag` is one that [`tag`](NewFile::tag) returns.
    pub(super) fn decode(cursor: &mut Cursor<'a>, tag: u32) -> Result<Self, PayloadError> {
        let level = cursor.varint32()?;
        let file_number = cursor.varint64()?;
        let path_id = if tag == 102 { cursor.varint32()? } else { 0 };
        let file_len = cursor.varint64()?;
        let smallest = InternalKey::decode(cursor)?;
        let largest = InternalKey::decode(cursor)?;
        let (smallest_sequence, largest_sequence) = match tag {
            7 => (0, 0),
            _ => (cursor.varint64()?, cursor.varint64()?),
        };
        let form = match tag {
            7 => NewFileForm::NewFile,
            100 => NewFileForm::NewFile2 {
                smallest_sequence,
                largest_sequence,
            },
            102 => NewFileForm::NewFile3 {
                path_id,
                smallest_sequence,
                largest_sequence,
            },
            _ => {
                let mut custom_fields = Vec::new();
                while let Some(field) = CustomField::decode(cursor)? {
                    custom_fields.push(field);
                }
                NewFileForm::NewFile4 {
                    smallest_sequence,
                    largest_sequence,
                    custom_fields,
                }
            }
        };
        Ok(NewFile {
            level,
            file_number,
            file_len,
            smallest,
            largest,
            form,
        })
    }

    /// Everything after the tag.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        put_varint(out, self.level.into());
        put_varint(out, self.file_number);
        if let NewFileForm::NewFile3 { path_id, .. } = self.form {
            put_varint(out, path_id.into());
        }
        put_varint(out, self.file_len);
        self.smallest.encode(out)?;
        self.largest.encode(out)?;
        if let Some((smallest, largest)) = self.sequences() {
            put_varint(out, smallest);
            put_varint(out, largest);
        }
        if let NewFileForm::NewFile4 { custom_fields, .. } = &self.form {
            for field in custom_fields {
                field.encode(out)?;
            }
            put_varint(out, TERMINATE.into());
        }
        Ok(())
    }
}
