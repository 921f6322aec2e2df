//! Version edits, byte by byte: each tag as in the engines' sources, and bytes that no engine
//! writes.

use cordwood_payload::{
    BlobFileAddition, BlobFileGarbage, CustomField, Field, InternalKey, NewFile, NewFileForm, PayloadError,
    PayloadReason, VersionEdit, WalAddition,
};

const KEY: InternalKey<'_> = InternalKey {
    user_key: b"a",
    sequence: 0x0123_4567_89ab,
    value_type: 1,
};
const KEY_BYTES: &[u8] = b"\x09a\x01\xab\x89\x67\x45\x23\x01\0";

fn new_file(form: NewFileForm<'_>) -> Field<'_> {
    let (smallest, largest) = (
        KEY,
        InternalKey {
            user_key: b"z",
            sequence: 5,
            value_type: 0,
        },
    );
    Field::NewFile(NewFile {
        level: 2,
        file_number: 300,
        file_len: 1000,
        smallest,
        largest,
        form,
    })
}

/// Each field: its bytes, their meaning, its name.
fn fields() -> Vec<(Vec<u8>, Field<'static>, &'static str)> {
    let ends = [KEY_BYTES, b"\x09z\x00\x05\0\0\0\0\0\0"].concat();
    let file = |tag: &[u8], directory: &[u8], behind: &[u8]| {
        [tag, b"\x02\xac\x02", directory, b"\xe8\x07", &ends, behind].concat()
    };
    let sequences = (5, 0x0123_4567_89ab);
    let (smallest_sequence, largest_sequence) = sequences;
    let sequence_bytes = b"\x05\xab\x93\x9e\xab\xb4\x24".as_slice();
    let custom_fields = vec![
        CustomField::OldestAncesterTime(0),
        CustomField::FileCreationTime(1_700_000_000),
        CustomField::EpochNumber(300),
        CustomField::FileChecksum(b"\xde\xad"),
        CustomField::FileChecksumFuncName(b"crc"),
        CustomField::PathId(1),
        CustomField::Temperature(4),
        CustomField::NeedCompaction(true),
        CustomField::MinLogNumberToKeep(9),
        CustomField::OldestBlobFileNumber(8),
        CustomField::UniqueId(b"0123456789abcdef"),
        CustomField::CompensatedRangeDeletionSize(1),
        CustomField::TailSize(2),
        CustomField::UserDefinedTimestampsPersisted(false),
        CustomField::MinTimestamp(b"t0"),
        CustomField::MaxTimestamp(b"t1"),
        CustomField::FileOpenMetadata(b"open"),
        CustomField::Ignorable { tag: 63, value: b"new" },
        CustomField::Ignorable { tag: 128, value: b"" },
    ];
    let custom_bytes =
        b"\x05\x01\x00\x06\x05\x80\xe2\xcf\xaa\x06\x0d\x02\xac\x02\x07\x02\xde\xad\x08\x03crc\x41\x01\x01\x09\x01\x04\
        \x02\x01\x01\x03\x08\x09\0\0\0\0\0\0\0\x04\x01\x08\x0c\x100123456789abcdef\x0e\x01\x01\x0f\x01\x02\x10\x01\x00\
        \x0a\x02t0\x0b\x02t1\x11\x04open\x3f\x03new\x80\x01\x00\x01";
    let addition = |deprecated_tag| {
        Field::BlobFileAddition(BlobFileAddition {
            file_number: 300,
            blob_count: 2,
            blob_len: 3,
            checksum_method: b"m",
            checksum: b"c",
            custom_fields: vec![(1, b"one"), (63, b"")],
            deprecated_tag,
        })
    };
    let addition_bytes = b"\xac\x02\x02\x03\x01m\x01c\x01\x03one\x3f\x00\x00".as_slice();
    let garbage = |deprecated_tag| {
        Field::BlobFileGarbage(BlobFileGarbage {
            file_number: 300,
            blob_count: 2,
            blob_len: 3,
            custom_fields: vec![],
            deprecated_tag,
        })
    };
    let wal = |synced_len, length_prefixed| {
        Field::WalAddition(WalAddition {
            log_number: 4,
            synced_len,
            length_prefixed,
        })
    };
    let deletion = |length_prefixed| Field::WalDeletion {
        log_number: 300,
        length_prefixed,
    };
    vec![
        (b"\x01\x03cmp".to_vec(), Field::Comparator(b"cmp"), "comparator"),
        (b"\x02\xac\x02".to_vec(), Field::LogNumber(300), "log_number"),
        (b"\x03\x04".to_vec(), Field::NextFileNumber(4), "next_file_number"),
        (
            b"\x04\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec(),
            Field::LastSequence((1 << 56) - 1),
            "last_sequence",
        ),
        (
            [b"\x05\x03", KEY_BYTES].concat(),
            Field::CompactPointer { level: 3, key: KEY },
            "compact_pointer",
        ),
        (
            b"\x06\x01\xac\x02".to_vec(),
            Field::DeletedFile {
                level: 1,
                file_number: 300,
            },
            "deleted_file",
        ),
        (file(b"\x07", b"", b""), new_file(NewFileForm::NewFile), "new_file"),
        (
            file(b"\x64", b"", sequence_bytes),
            new_file(NewFileForm::NewFile2 {
                smallest_sequence,
                largest_sequence,
            }),
            "new_file",
        ),
        (
            file(b"\x66", b"\x03", sequence_bytes),
            new_file(NewFileForm::NewFile3 {
                path_id: 3,
                smallest_sequence,
                largest_sequence,
            }),
            "new_file",
        ),
        (
            file(b"\x67", b"", &[sequence_bytes, custom_bytes].concat()),
            new_file(NewFileForm::NewFile4 {
                smallest_sequence,
                largest_sequence,
                custom_fields,
            }),
            "new_file",
        ),
        (b"\x09\x00".to_vec(), Field::PrevLogNumber(0), "prev_log_number"),
        (
            b"\x0a\x07".to_vec(),
            Field::MinLogNumberToKeep(7),
            "min_log_number_to_keep",
        ),
        (b"\xc8\x01\x05".to_vec(), Field::ColumnFamily(5), "column_family"),
        (
            b"\xc9\x01\x02cf".to_vec(),
            Field::ColumnFamilyAdd(b"cf"),
            "column_family_add",
        ),
        (b"\xca\x01".to_vec(), Field::ColumnFamilyDrop, "column_family_drop"),
        (b"\xcb\x01\x06".to_vec(), Field::MaxColumnFamily(6), "max_column_family"),
        (b"\xac\x02\x01".to_vec(), Field::InAtomicGroup(1), "in_atomic_group"),
        (
            [b"\x90\x03", addition_bytes].concat(),
            addition(false),
            "blob_file_addition",
        ),
        (
            b"\x91\x03\xac\x02\x02\x03\x00".to_vec(),
            garbage(false),
            "blob_file_garbage",
        ),
        (b"\x81\x40\x02id".to_vec(), Field::DbId(b"id"), "db_id"),
        (
            [b"\x82\x40", addition_bytes].concat(),
            addition(true),
            "blob_file_addition",
        ),
        (
            b"\x83\x40\xac\x02\x02\x03\x00".to_vec(),
            garbage(true),
            "blob_file_garbage",
        ),
        (b"\x84\x40\x04\x01".to_vec(), wal(None, false), "wal_addition"),
        (
            b"\x84\x40\x04\x02\xac\x02\x01".to_vec(),
            wal(Some(300), false),
            "wal_addition",
        ),
        (b"\x85\x40\xac\x02".to_vec(), deletion(false), "wal_deletion"),
        (
            b"\x86\x40\x02ts".to_vec(),
            Field::FullHistoryTsLow(b"ts"),
            "full_history_ts_low",
        ),
        (b"\x87\x40\x02\x04\x01".to_vec(), wal(None, true), "wal_addition"),
        (
            b"\x87\x40\x05\x04\x02\xac\x02\x01".to_vec(),
            wal(Some(300), true),
            "wal_addition",
        ),
        (b"\x88\x40\x02\xac\x02".to_vec(), deletion(true), "wal_deletion"),
        (
            b"\x89\x40\x01\x01".to_vec(),
            Field::PersistUserDefinedTimestamps(true),
            "persist_user_defined_timestamps",
        ),
        (
            b"\x8a\x40\x03raw".to_vec(),
            Field::SubcompactionProgress(b"raw"),
            "subcompaction_progress",
        ),
        (
            b"\x8b\x40\x02\xac\x02".to_vec(),
            Field::LastCompactedManifestFileSize(300),
            "last_compacted_manifest_file_size",
        ),
        (
            b"\x8c\x40\x03new".to_vec(),
            Field::Ignorable {
                tag: 8204,
                value: b"new",
            },
            "ignorable",
        ),
        (
            b"\x80\x40\x00".to_vec(),
            Field::Ignorable { tag: 8192, value: b"" },
            "ignorable",
        ),
    ]
}

fn decode_edit(record: &[u8]) -> Result<Vec<Field<'_>>, PayloadError> {
    VersionEdit::new(record).fields().collect()
}

#[test]
fn each_field_and_back() {
    for (bytes, field, name) in fields() {
        assert_eq!(decode_edit(&bytes), Ok(vec![field.clone()]));
        assert_eq!(field.as_str(), name);
        assert_eq!(VersionEdit::encode(&[field]), Ok(bytes));
    }
}

#[test]
fn an_edit_of_all_fields() {
    let bytes: Vec<u8> = fields().into_iter().flat_map(|(bytes, ..)| bytes).collect();
    let decoded = decode_edit(&bytes).unwrap();
    assert!(decoded.iter().eq(fields().iter().map(|(_, field, _)| field)));
    assert_eq!(VersionEdit::encode(&decoded), Ok(bytes));
    assert_eq!(decode_edit(b""), Ok(vec![]));
}

#[test]
fn a_field_that_is_cut_is_an_error_at_every_byte() {
    for (bytes, ..) in fields() {
        for len in 1..bytes.len() {
            let error = decode_edit(&bytes[..len]).expect_err("cut");
            assert_eq!(error.reason, PayloadReason::Truncated, "{len} bytes of {bytes:?}");
            assert_eq!(error.offset + error.len, len);
        }
    }
}

#[test]
fn the_fault_of_an_edit_is_named_with_its_place() {
    for (record, offset, len, reason) in [
        // Large value refs, which LevelDB has dropped; a Pebble tag; one after all that are known.
        (
            b"\x02\x00\x08\x01".as_slice(),
            2,
            1,
            PayloadReason::UnknownTag { tag: 8 },
        ),
        (b"\x68\x01", 0, 1, PayloadReason::UnknownTag { tag: 104 }),
        (b"\x82\xc0\x00\x01", 0, 3, PayloadReason::NonCanonical),
        (b"\x80\x10", 0, 2, PayloadReason::UnknownTag { tag: 2048 }),
        (b"\x02\x80\x00", 1, 2, PayloadReason::NonCanonical),
        (b"\x05\x00\x07sevenby", 2, 8, PayloadReason::BadKey),
        // One byte more than the number, a truth value of 2, one byte where eight are needed.
        (b"\x8b\x40\x02\x01\x01", 4, 1, PayloadReason::BadLength),
        (b"\x89\x40\x01\x02", 3, 1, PayloadReason::NonCanonical),
        (b"\x89\x40\x00", 3, 0, PayloadReason::Truncated),
        // A log for which two synced lengths, or an unknown field, are stated.
        (b"\x84\x40\x04\x02\x01\x02\x01\x01", 5, 1, PayloadReason::NonCanonical),
        (b"\x84\x40\x04\x03\x01", 3, 1, PayloadReason::UnknownTag { tag: 3 }),
        // A field of a blob file that the reader has to know.
        (
            b"\x91\x03\x01\x01\x01\x40\x00\x00",
            5,
            1,
            PayloadReason::UnknownTag { tag: 64 },
        ),
    ] {
        let error = decode_edit(record).unwrap_err();
        assert_eq!(
            (error.offset, error.len, error.reason),
            (offset, len, reason),
            "{record:?}"
        );
    }
}

#[test]
fn a_custom_field_that_the_reader_has_to_know_is_an_error() {
    let mut bytes = fields()[9].0.clone();
    bytes.pop();
    let end = bytes.len();
    bytes.extend(b"\x42\x01\x01\x01"); // 66: a Pebble virtual table.
    let error = decode_edit(&bytes).unwrap_err();
    assert_eq!(
        (error.offset, error.reason),
        (end, PayloadReason::UnknownTag { tag: 66 })
    );
}

#[test]
fn fields_end_at_the_first_error() {
    let mut fields = VersionEdit::new(b"\x02\x00\x08\x02\x00").fields();
    assert_eq!(fields.next(), Some(Ok(Field::LogNumber(0))));
    assert!(fields.next().unwrap().is_err());
    assert_eq!(fields.next(), None);
}

#[test]
fn a_sequence_number_has_56_bits() {
    let key = InternalKey {
        user_key: b"",
        sequence: 1 << 56,
        value_type: 0,
    };
    let error = VersionEdit::encode(&[Field::CompactPointer { level: 0, key }]).unwrap_err();
    assert_eq!(error.reason, PayloadReason::TooLarge);
}

/// For every tag: a field of a later version is either read again as it was written, or not written.
#[test]
fn values_that_a_reader_would_take_for_another_field_are_not_written() {
    let mut written = [0; 3];
    for tag in (0..20_000).chain([u32::MAX]) {
        let ignorable = Field::Ignorable {
            tag,
            value: b"\x01\x05",
        };
        let custom = new_file(NewFileForm::NewFile4 {
            smallest_sequence: 1,
            largest_sequence: 2,
            custom_fields: vec![CustomField::Ignorable {
                tag,
                value: b"\x01\x05",
            }],
        });
        let blob = Field::BlobFileGarbage(BlobFileGarbage {
            file_number: 1,
            blob_count: 2,
            blob_len: 3,
            custom_fields: vec![(tag, b"\x01\x05")],
            deprecated_tag: false,
        });
        for (field, written) in [ignorable, custom, blob].iter().zip(&mut written) {
            match VersionEdit::encode([field]) {
                Ok(record) => {
                    let decoded: Result<Vec<_>, _> = VersionEdit::new(&record).fields().collect();
                    assert_eq!(decoded.as_deref(), Ok(std::slice::from_ref(field)), "{tag}");
                    *written += 1;
                }
                Err(error) => assert_eq!(error.reason, PayloadReason::UnknownTag { tag }),
            }
        }
    }
    // Bit 13, less the eleven that are known; not bit 6, less those that are; not bit 6, and not 0.
    let (bit_13, not_bit_6) = (8192 + 1, 20_000 / 128 * 64 + 32);
    assert_eq!(written, [bit_13 - 11, not_bit_6 - 17, not_bit_6 - 1]);
}
