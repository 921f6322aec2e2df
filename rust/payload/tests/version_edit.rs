//! Version edits, byte by byte: each tag as in the engines' sources, and bytes that no engine
//! writes.

mod edits;

use cordwood_payload::{Field, PayloadError, PayloadReason, Value, VersionEdit};

use edits::encoded;

const KEY: &[u8] = b"\x09a\x01\xab\x89\x67\x45\x23\x01\0";

fn bytes(bytes: &'static [u8]) -> Value<'static> {
    Value::Bytes(bytes.into())
}

fn object<const COUNT: usize>(items: [(&'static str, Value<'static>); COUNT]) -> Value<'static> {
    Value::Object(items.map(|(name, value)| (name.into(), value)).into())
}

fn key(user_key: &'static [u8], sequence: u64, value_type: u64) -> Value<'static> {
    object([
        ("user_key", bytes(user_key)),
        ("sequence", Value::UInt(sequence)),
        ("value_type", Value::UInt(value_type)),
    ])
}

/// A field as its place in a list.
fn further(kind: &'static str, tag: u64, value: Value<'static>) -> Value<'static> {
    object([
        ("kind", Value::Text(kind.into())),
        ("tag", Value::UInt(tag)),
        ("value", value),
    ])
}

fn new_file(sequences: bool, path_id: u64, custom_fields: Vec<Value<'static>>) -> Value<'static> {
    let mut items = vec![
        ("level".into(), Value::UInt(2)),
        ("file_number".into(), Value::UInt(300)),
        ("file_len".into(), Value::UInt(1000)),
        ("smallest".into(), key(b"a", 0x0123_4567_89ab, 1)),
        ("largest".into(), key(b"z", 5, 0)),
    ];
    if sequences {
        items.push(("smallest_sequence".into(), Value::UInt(5)));
        items.push(("largest_sequence".into(), Value::UInt(0x0123_4567_89ab)));
    }
    items.push(("path_id".into(), Value::UInt(path_id)));
    items.push(("custom_fields".into(), Value::Array(custom_fields)));
    Value::Object(items)
}

/// Each field: its bytes, their meaning.
fn fields() -> Vec<(Vec<u8>, Field<'static>)> {
    use Value::{Bool, Null, UInt};

    let ends = [KEY, b"\x09z\x00\x05\0\0\0\0\0\0"].concat();
    let file = |tag: &[u8], directory: &[u8], behind: &[u8]| {
        [tag, b"\x02\xac\x02", directory, b"\xe8\x07", &ends, behind].concat()
    };
    let sequences = b"\x05\xab\x93\x9e\xab\xb4\x24".as_slice();
    let custom_bytes =
        b"\x05\x01\x00\x06\x05\x80\xe2\xcf\xaa\x06\x0d\x02\xac\x02\x07\x02\xde\xad\x08\x03crc\x41\x01\x01\x09\x01\x04\
        \x02\x01\x01\x03\x08\x09\0\0\0\0\0\0\0\x04\x01\x08\x0c\x100123456789abcdef\x0e\x01\x01\x0f\x01\x02\x10\x01\x00\
        \x0a\x02t0\x0b\x02t1\x11\x04open\x3f\x03new\x80\x01\x00\x01";
    let custom_fields = vec![
        further("oldest_ancester_time", 5, UInt(0)),
        further("file_creation_time", 6, UInt(1_700_000_000)),
        further("epoch_number", 13, UInt(300)),
        further("file_checksum", 7, bytes(b"\xde\xad")),
        further("file_checksum_func_name", 8, bytes(b"crc")),
        further("path_id", 65, UInt(1)),
        further("temperature", 9, UInt(4)),
        further("need_compaction", 2, Bool(true)),
        further("min_log_number_to_keep", 3, UInt(9)),
        further("oldest_blob_file_number", 4, UInt(8)),
        further("unique_id", 12, bytes(b"0123456789abcdef")),
        further("compensated_range_deletion_size", 14, UInt(1)),
        further("tail_size", 15, UInt(2)),
        further("user_defined_timestamps_persisted", 16, Bool(false)),
        further("min_timestamp", 10, bytes(b"t0")),
        further("max_timestamp", 11, bytes(b"t1")),
        further("file_open_metadata", 17, bytes(b"open")),
        further("ignorable", 63, bytes(b"new")),
        further("ignorable", 128, bytes(b"")),
    ];
    let addition_bytes = b"\xac\x02\x02\x03\x01m\x01c\x01\x03one\x3f\x00\x00".as_slice();
    let addition = object([
        ("file_number", UInt(300)),
        ("blob_count", UInt(2)),
        ("blob_len", UInt(3)),
        ("checksum_method", bytes(b"m")),
        ("checksum", bytes(b"c")),
        (
            "custom_fields",
            Value::Array(vec![
                further("ignorable", 1, bytes(b"one")),
                further("ignorable", 63, bytes(b"")),
            ]),
        ),
    ]);
    let garbage = object([
        ("file_number", UInt(300)),
        ("blob_count", UInt(2)),
        ("blob_len", UInt(3)),
        ("custom_fields", Value::Array(Vec::new())),
    ]);
    let wal = object([("log_number", UInt(4))]);
    let synced = object([("log_number", UInt(4)), ("synced_len", UInt(300))]);
    let deleted = object([("level", UInt(1)), ("file_number", UInt(300))]);
    let pointer = object([("level", UInt(3)), ("key", key(b"a", 0x0123_4567_89ab, 1))]);
    let new_with_all = [sequences, custom_bytes].concat();
    let all: [(&[u8], u32, &'static str, Value<'static>); 34] = [
        (b"\x01\x03cmp", 1, "comparator", bytes(b"cmp")),
        (b"\x02\xac\x02", 2, "log_number", UInt(300)),
        (b"\x03\x04", 3, "next_file_number", UInt(4)),
        (
            b"\x04\xff\xff\xff\xff\xff\xff\xff\x7f",
            4,
            "last_sequence",
            UInt((1 << 56) - 1),
        ),
        (&[b"\x05\x03", KEY].concat(), 5, "compact_pointer", pointer),
        (b"\x06\x01\xac\x02", 6, "deleted_file", deleted),
        (&file(b"\x07", b"", b""), 7, "new_file", new_file(false, 0, Vec::new())),
        (
            &file(b"\x64", b"", sequences),
            100,
            "new_file",
            new_file(true, 0, Vec::new()),
        ),
        (
            &file(b"\x66", b"\x03", sequences),
            102,
            "new_file",
            new_file(true, 3, Vec::new()),
        ),
        (
            &file(b"\x67", b"", &new_with_all),
            103,
            "new_file",
            new_file(true, 1, custom_fields),
        ),
        (b"\x09\x00", 9, "prev_log_number", UInt(0)),
        (b"\x0a\x07", 10, "min_log_number_to_keep", UInt(7)),
        (b"\xc8\x01\x05", 200, "column_family", UInt(5)),
        (b"\xc9\x01\x02cf", 201, "column_family_add", bytes(b"cf")),
        (b"\xca\x01", 202, "column_family_drop", Null),
        (b"\xcb\x01\x06", 203, "max_column_family", UInt(6)),
        (b"\xac\x02\x01", 300, "in_atomic_group", UInt(1)),
        (
            &[b"\x90\x03", addition_bytes].concat(),
            400,
            "blob_file_addition",
            addition.clone(),
        ),
        (
            b"\x91\x03\xac\x02\x02\x03\x00",
            401,
            "blob_file_garbage",
            garbage.clone(),
        ),
        (b"\x81\x40\x02id", 8193, "db_id", bytes(b"id")),
        (
            &[b"\x82\x40", addition_bytes].concat(),
            8194,
            "blob_file_addition",
            addition,
        ),
        (b"\x83\x40\xac\x02\x02\x03\x00", 8195, "blob_file_garbage", garbage),
        (b"\x84\x40\x04\x01", 8196, "wal_addition", wal.clone()),
        (b"\x84\x40\x04\x02\xac\x02\x01", 8196, "wal_addition", synced.clone()),
        (b"\x85\x40\xac\x02", 8197, "wal_deletion", UInt(300)),
        (b"\x86\x40\x02ts", 8198, "full_history_ts_low", bytes(b"ts")),
        (b"\x87\x40\x02\x04\x01", 8199, "wal_addition", wal),
        (b"\x87\x40\x05\x04\x02\xac\x02\x01", 8199, "wal_addition", synced),
        (b"\x88\x40\x02\xac\x02", 8200, "wal_deletion", UInt(300)),
        (b"\x89\x40\x01\x01", 8201, "persist_user_defined_timestamps", Bool(true)),
        (b"\x8a\x40\x03raw", 8202, "subcompaction_progress", bytes(b"raw")),
        (
            b"\x8b\x40\x02\xac\x02",
            8203,
            "last_compacted_manifest_file_size",
            UInt(300),
        ),
        (b"\x8c\x40\x03new", 8204, "ignorable", bytes(b"new")),
        (b"\x80\x40\x00", 8192, "ignorable", bytes(b"")),
    ];
    let all = all.into_iter();
    all.map(|(bytes, tag, kind, value)| (bytes.to_vec(), Field { tag, kind, value }))
        .collect()
}

fn decode_edit(record: &[u8]) -> Result<Vec<Field<'_>>, PayloadError> {
    VersionEdit::new(record).fields().collect()
}

#[test]
fn each_field_round_trips() {
    for (bytes, field) in fields() {
        assert_eq!(encoded(&field), bytes, "{field:?}");
        assert_eq!(decode_edit(&bytes), Ok(vec![field]));
    }
}

#[test]
fn the_fields_of_an_edit_are_decoded_in_order() {
    let bytes: Vec<u8> = fields().into_iter().flat_map(|(bytes, _)| bytes).collect();
    let decoded = decode_edit(&bytes).unwrap();
    assert!(decoded.iter().eq(fields().iter().map(|(_, field)| field)));
    assert_eq!(decode_edit(b""), Ok(vec![]));
}

#[test]
fn rejects_a_field_truncated_at_any_byte() {
    for (bytes, _) in fields() {
        for len in 1..bytes.len() {
            let error = decode_edit(&bytes[..len]).expect_err("cut");
            assert_eq!(error.reason, PayloadReason::Truncated, "{len} bytes of {bytes:?}");
            assert_eq!(error.offset + error.len, len);
        }
    }
}

#[test]
fn a_fault_in_an_edit_is_reported_with_its_offset() {
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
fn rejects_an_unknown_mandatory_custom_field() {
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
fn decoding_fields_stops_at_the_first_error() {
    let mut fields = VersionEdit::new(b"\x02\x00\x08\x02\x00").fields();
    assert_eq!(fields.next().unwrap().unwrap().kind, "log_number");
    assert!(fields.next().unwrap().is_err());
    assert_eq!(fields.next(), None);
}
