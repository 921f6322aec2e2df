//! The rows of version edits.

mod rows;

use cordwood_payload::table::{Builder, Decoder, Facts, Fault, Record, Row, Sink, Type, Values};

use rows::{lines, value};

/// An internal key: the user's key `a`, the sequence number 1 and the type 1, with its length.
const KEY: &[u8] = b"\x09a\x01\x01\0\0\0\0\0\0";

/// The JSON of the fields of an edit, as in a column of a table.
fn json(record: &[u8]) -> String {
    struct Build(Builder);
    impl Sink for Build {
        fn row(&mut self, row: &Row<'_>) -> bool {
            self.0.add(row).expect("a row that fits")
        }
        fn fault(&mut self, fault: Fault) {
            panic!("{fault}");
        }
    }
    let columns = [("offset", Type::UInt), ("fields", Type::Json)];
    let mut build = Build(Builder::new(columns, 1 << 20));
    let mut decoder = Decoder::named("version-edit", Facts::default()).unwrap();
    assert_eq!(decoder.record(&Record::of(record), &mut build), Ok(true));
    let batch = build.0.take().unwrap();
    let Values::Bytes { data, .. } = &batch.columns[1].1.values else {
        panic!("{batch:?}")
    };
    str::from_utf8(data).unwrap().to_owned()
}

#[test]
fn each_edit_becomes_a_row() {
    let mut record = Record {
        offset: 7,
        ..Record::of(b"\x02\x04\xca\x01\xc9\x01\x02\xffn")
    };
    let fields = concat!(
        r#"[{kind: "log_number", tag: 2, value: 4}, "#,
        r#"{kind: "column_family_drop", tag: 202}, "#,
        r#"{kind: "column_family_add", tag: 201, value: b"\xffn"}]"#,
    );
    let place = [format!("offset: 7, fields: {fields}")];
    assert_eq!(lines("version-edit", &Facts::default(), &[record]), place);
    record.is_salvaged = Some(true);
    let place = [format!("offset: 7, salvaged: true, fields: {fields}")];
    assert_eq!(lines("version-edit", &Facts::default(), &[record]), place);
    let mut decoder = Decoder::named("version-edit", Facts::default()).unwrap();
    assert_eq!(
        value(&mut decoder, record.data),
        Ok(Some(format!("{{fields: {fields}}}")))
    );
}

#[test]
fn missing_parts_are_omitted_from_json_fields() {
    for (record, fields) in [
        (&b""[..], ""),
        (
            b"\x01\x03abc",
            r#"{"kind":"comparator","tag":1,"value":{"base64":"YWJj"}}"#,
        ),
        (
            b"\x01\x02\xff\xfe",
            r#"{"kind":"comparator","tag":1,"value":{"base64":"//4="}}"#,
        ),
        (
            b"\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            r#"{"kind":"last_sequence","tag":4,"value":18446744073709551615}"#,
        ),
        (
            b"\x06\x02\x05",
            r#"{"kind":"deleted_file","tag":6,"value":{"level":2,"file_number":5}}"#,
        ),
        (
            &[b"\x05\x01", KEY].concat(),
            concat!(
                r#"{"kind":"compact_pointer","tag":5,"value":{"level":1,"#,
                r#""key":{"user_key":{"base64":"YQ=="},"sequence":1,"value_type":1}}}"#,
            ),
        ),
        (
            &[b"\x07\x01\x06\x2a", KEY, KEY].concat(),
            concat!(
                r#"{"kind":"new_file","tag":7,"value":{"level":1,"file_number":6,"file_len":42,"#,
                r#""smallest":{"user_key":{"base64":"YQ=="},"sequence":1,"value_type":1},"#,
                r#""largest":{"user_key":{"base64":"YQ=="},"sequence":1,"value_type":1},"path_id":0,"custom_fields":[]}}"#,
            ),
        ),
        (
            // Temperature 8, marked for compaction, unknown 20 of two bytes, directory 3, the end.
            &[
                b"\x67\x01\x06\x2a",
                KEY,
                KEY,
                b"\x01\x05\x09\x01\x08\x02\x01\x01\x14\x02\xff\0\x41\x01\x03\x01",
            ]
            .concat(),
            concat!(
                r#"{"kind":"new_file","tag":103,"value":{"level":1,"file_number":6,"file_len":42,"#,
                r#""smallest":{"user_key":{"base64":"YQ=="},"sequence":1,"value_type":1},"#,
                r#""largest":{"user_key":{"base64":"YQ=="},"sequence":1,"value_type":1},"#,
                r#""smallest_sequence":1,"largest_sequence":5,"path_id":3,"custom_fields":["#,
                r#"{"kind":"temperature","tag":9,"value":8},{"kind":"need_compaction","tag":2,"value":true},"#,
                r#"{"kind":"ignorable","tag":20,"value":{"base64":"/wA="}},{"kind":"path_id","tag":65,"value":3}]}}"#,
            ),
        ),
        (
            b"\x90\x03\x07\x02\x64\x03crc\x01x\x02\x01y\x00",
            concat!(
                r#"{"kind":"blob_file_addition","tag":400,"value":{"file_number":7,"blob_count":2,"blob_len":100,"#,
                r#""checksum_method":{"base64":"Y3Jj"},"checksum":{"base64":"eA=="},"custom_fields":[{"kind":"ignorable","tag":2,"value":{"base64":"eQ=="}}]}}"#,
            ),
        ),
        (
            b"\x91\x03\x07\x02\x64\x00",
            concat!(
                r#"{"kind":"blob_file_garbage","tag":401,"value":"#,
                r#"{"file_number":7,"blob_count":2,"blob_len":100,"custom_fields":[]}}"#,
            ),
        ),
        (
            b"\x84\x40\x07\x01",
            r#"{"kind":"wal_addition","tag":8196,"value":{"log_number":7}}"#,
        ),
        (
            b"\x84\x40\x07\x02\x09\x01",
            r#"{"kind":"wal_addition","tag":8196,"value":{"log_number":7,"synced_len":9}}"#,
        ),
        (b"\x88\x40\x01\x07", r#"{"kind":"wal_deletion","tag":8200,"value":7}"#),
        (
            b"\x89\x40\x01\x00",
            r#"{"kind":"persist_user_defined_timestamps","tag":8201,"value":false}"#,
        ),
        (b"\xca\x01", r#"{"kind":"column_family_drop","tag":202}"#),
        (
            b"\xe4\x60\x02ab",
            r#"{"kind":"ignorable","tag":12388,"value":{"base64":"YWI="}}"#,
        ),
    ] {
        assert_eq!(json(record), format!("[{fields}]"), "{record:?}");
    }
}

#[test]
fn a_faulty_edit_produces_no_row() {
    let records = [&b"\x02\x04\x63"[..], b"\x01\x05ab", b"\x09\x00"].map(Record::of);
    let expected = [
        "no row: tag 99 is unknown or not allowed here (1 byte at offset 2 of the payload)",
        "no row: the payload ends inside a number or a string (3 bytes at offset 1 of the payload)",
        r#"offset: 0, fields: [{kind: "prev_log_number", tag: 9, value: 0}]"#,
    ];
    assert_eq!(lines("version-edit", &Facts::default(), &records), expected);
}

#[test]
fn each_table_in_the_final_state_becomes_a_row() {
    let added = |before: &[u8], after: &[u8]| [before, KEY, KEY, after].concat();
    let records = [
        // Column family 3, named x, with a table of which the sequence numbers are known.
        added(b"\xc8\x01\x03\xc9\x01\x01x\x64\x00\x08\x2a", b"\x01\x05"),
        // Two tables of the default column family; the second is deleted.
        added(&added(b"\x07\x01\x06\x2a", b"\x07\x00\x05\xe8\x07"), b""),
        b"\x06\x00\x05".to_vec(),
        // A fault: the edit has no effect.
        b"\x06\x01\x06\x63".to_vec(),
        added(b"\x66\x02\x09\x04\x2a", b"\x02\x03"),
    ];
    let expected = [
        "no row: tag 99 is unknown or not allowed here (1 byte at offset 3 of the payload)",
        concat!(
            "column_family: 0, column_family_name: null, level: 1, file_number: 6, file_len: 42, ",
            r#"smallest_key: b"a", largest_key: b"a", smallest_sequence: null, largest_sequence: null, path_id: 0"#,
        ),
        concat!(
            "column_family: 0, column_family_name: null, level: 2, file_number: 9, file_len: 42, ",
            r#"smallest_key: b"a", largest_key: b"a", smallest_sequence: 2, largest_sequence: 3, path_id: 4"#,
        ),
        concat!(
            r#"column_family: 3, column_family_name: b"x", level: 0, file_number: 8, file_len: 42, "#,
            r#"smallest_key: b"a", largest_key: b"a", smallest_sequence: 1, largest_sequence: 5, path_id: 0"#,
        ),
    ];
    let records = records.each_ref().map(|record| Record::of(record));
    assert_eq!(lines("live-files", &Facts::default(), &records), expected);
    assert_eq!(lines("live-files", &Facts::default(), &[]), Vec::<String>::new());
    let mut decoder = Decoder::named("live-files", Facts::default()).unwrap();
    assert_eq!(value(&mut decoder, b"\x02\x04"), Ok(None));
}
