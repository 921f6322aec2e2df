//! The rows of write batches.

mod rows;

use cordwood_payload::table::{Decoder, Facts, Record};
use cordwood_payload::{Engine, WriteBatchReader};

use rows::{Lines, lines, lines_with_room, value};

/// A record with this header.
fn batch(sequence: u8, count: u8, operations: &[&[u8]]) -> Vec<u8> {
    let header = [sequence, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0];
    [&header[..], &operations.concat()].concat()
}

const PUT: &[u8] = b"\x01\x01a\x01b";

/// The same to both engines.
const SAME: &[u8] = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x00\x01a";
/// A transaction starts: a tag that Pebble does not have.
const ROCKSDB: &[u8] = b"\x07\0\0\0\0\0\0\0\0\0\0\0\x09";
/// An ingested table: too short for the entity that RocksDB would put.
const PEBBLE: &[u8] = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x16\x01\x05";
/// To RocksDB, an entity in the column family 1; to Pebble, a delete of a key and a value of one byte each.
const EITHER: &[u8] = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x17\x01\x01\x01\x00";
/// A tag that neither has.
const NEITHER: &[u8] = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x7f";

fn lines_of(facts: &Facts, records: &[&[u8]]) -> Vec<String> {
    let records = (0..).zip(records);
    let records: Vec<Record<'_>> = records
        .map(|(index, data)| Record {
            offset: 100 * index,
            ..Record::of(data)
        })
        .collect();
    lines("write-batch", facts, &records)
}

fn of_engine(engine: Engine) -> Facts {
    let mut facts = Facts::default();
    facts.engine = Some(engine);
    facts
}

#[test]
fn each_operation_becomes_a_row() {
    let record = batch(
        7,
        5,
        &[
            b"\x05\x03\x01k\x01v",
            b"\x03\x04note",
            b"\x0f\x01a\x01b",
            b"\x0b\x01x",
            b"\x15\x02ts\x01x",
            b"\x18\x01k\x09v\x05\0\0\0\0\0\0\0",
            b"\x00\x01\xff",
            b"\x0d",
            PUT,
        ],
    );
    let expected = [
        r#"offset: 0, sequence: 7, kind: "put", column_family: 3, key: b"k", value: b"v""#,
        r#"offset: 0, sequence: null, kind: "log_data", value: b"note""#,
        r#"offset: 0, sequence: 8, kind: "delete_range", column_family: 0, key: b"a", end_key: b"b""#,
        r#"offset: 0, sequence: null, kind: "commit", xid: b"x""#,
        r#"offset: 0, sequence: null, kind: "commit_with_timestamp", xid: b"x", timestamp: b"ts""#,
        r#"offset: 0, sequence: 9, kind: "timed_put", column_family: 0, key: b"k", value: b"v", write_unix_time: 5"#,
        r#"offset: 0, sequence: 10, kind: "delete", column_family: 0, key: b"\xff""#,
        r#"offset: 0, sequence: null, kind: "noop""#,
        r#"offset: 0, sequence: 11, kind: "put", column_family: 0, key: b"a", value: b"b""#,
    ];
    assert_eq!(lines_of(&Facts::default(), &[&record]), expected);
}

#[test]
fn an_empty_batch_becomes_a_row() {
    let (empty, put) = (batch(9, 0, &[]), batch(9, 1, &[PUT]));
    let expected = [
        "offset: 0, sequence: 9",
        r#"offset: 100, sequence: 9, kind: "put", column_family: 0, key: b"a", value: b"b""#,
    ];
    assert_eq!(lines_of(&Facts::default(), &[&empty, &put]), expected);
}

#[test]
fn rows_include_the_salvaged_flag_and_the_column_family() {
    let mut facts = of_engine(Engine::RocksDb);
    facts.families = [(0, b"default".to_vec()), (3, b"n\xff".to_vec())].into();
    let (first, empty) = (
        batch(7, 3, &[b"\x04\x03\x01k", b"\x04\x05\x01k", b"\x00\x01k", b"\x03\x00"]),
        batch(7, 0, &[]),
    );
    let records = [
        Record {
            is_salvaged: Some(true),
            ..Record::of(&first)
        },
        Record {
            offset: 40,
            is_salvaged: Some(false),
            ..Record::of(&empty)
        },
    ];
    let expected = [
        r#"offset: 0, salvaged: true, sequence: 7, kind: "delete", column_family: 3, column_family_name: b"n\xff", key: b"k""#,
        r#"offset: 0, salvaged: true, sequence: 8, kind: "delete", column_family: 5, key: b"k""#,
        r#"offset: 0, salvaged: true, sequence: 9, kind: "delete", column_family: 0, column_family_name: b"default", key: b"k""#,
        r#"offset: 0, salvaged: true, sequence: null, kind: "log_data", value: b"""#,
        "offset: 40, salvaged: false, sequence: 7",
    ];
    assert_eq!(lines("write-batch", &facts, &records), expected);
}

#[test]
fn a_fault_is_reported_before_the_rows_of_its_record() {
    let (bad_tag, wrong_count) = (batch(7, 2, &[PUT, PUT, b"\x7f"]), batch(7, 2, &[PUT]));
    let put = |offset, sequence| {
        format!(r#"offset: {offset}, sequence: {sequence}, kind: "put", column_family: 0, key: b"a", value: b"b""#)
    };
    let expected = [
        "no more rows: tag 127 is unknown or not allowed here (1 byte at offset 22 of the payload)",
        &put(0, 7),
        &put(0, 8),
        "no more rows: the header states 2 operations, but there is 1 (4 bytes at offset 8 of the payload)",
        &put(100, 7),
    ];
    assert_eq!(lines_of(&Facts::default(), &[&bad_tag, &wrong_count]), expected);
}

#[test]
fn a_record_without_a_complete_operation_produces_no_row() {
    let (bad_tag, wrong_count) = (batch(7, 2, &[b"\x7f", PUT]), batch(7, 1, &[]));
    let expected = [
        "no row: tag 127 is unknown or not allowed here (1 byte at offset 12 of the payload)",
        "no row: the header states 1 operation, but there are 0 (4 bytes at offset 8 of the payload)",
        "no row: the payload ends inside a number or a string (3 bytes at offset 0 of the payload)",
        "offset: 300, sequence: 7",
    ];
    let records = [&bad_tag[..], &wrong_count, b"abc", &batch(7, 0, &[])];
    assert_eq!(lines_of(&Facts::default(), &records), expected);
}

#[test]
fn decoding_can_resume_in_the_middle_of_a_record() {
    let mut record = batch(7, 4, &[PUT; 4]);
    let mut decoder = Decoder::named("write-batch", Facts::default()).unwrap();
    assert_eq!(
        decoder.record(&Record::of(&record), &mut Lines::with_room(2)),
        Ok(false)
    );
    // The first two operations would now be a fault.
    record[12..22].fill(0xff);
    let put =
        |sequence| format!(r#"offset: 0, sequence: {sequence}, kind: "put", column_family: 0, key: b"a", value: b"b""#);
    let rest = lines_with_room(&mut decoder, &[Record::of(&record)], &[usize::MAX]);
    assert_eq!(rest, [put(9), put(10)]);
}

#[test]
fn a_record_decodes_to_the_whole_batch() {
    let record = batch(7, 2, &[b"\x05\x03\x01k\x01\xff", b"\x03\x01n", PUT]);
    let expected = concat!(
        r#"{sequence: 7, count: 2, operations: ["#,
        r#"{kind: "put", sequence: 7, column_family: 3, key: b"k", value: b"\xff"}, "#,
        r#"{kind: "log_data", value: b"n"}, "#,
        r#"{kind: "put", sequence: 8, column_family: 0, key: b"a", value: b"b"}]}"#,
    );
    let mut decoder = Decoder::named("write-batch", Facts::default()).unwrap();
    assert_eq!(value(&mut decoder, &record), Ok(Some(expected.to_owned())));
    let fault = value(&mut decoder, &batch(7, 2, &[PUT, b"\x7f"])).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "tag 127 is unknown or not allowed here (1 byte at offset 17 of the payload)"
    );
    let empty = value(&mut decoder, &batch(7, 0, &[]));
    assert_eq!(empty, Ok(Some("{sequence: 7, count: 0, operations: []}".to_owned())));
}

#[test]
fn earlier_batches_determine_the_engine() {
    use Engine::{Pebble, RocksDb};
    for (records, engines, is_ambiguous) in [
        (&[SAME, EITHER, SAME][..], &[RocksDb; 3][..], true),
        (&[ROCKSDB, EITHER], &[RocksDb; 2], false),
        (&[PEBBLE, EITHER], &[Pebble; 2], false),
        (&[ROCKSDB, PEBBLE, EITHER], &[RocksDb, Pebble, Pebble], false),
        (&[PEBBLE, ROCKSDB, EITHER], &[Pebble, RocksDb, RocksDb], false),
        (&[EITHER, PEBBLE, EITHER], &[RocksDb, Pebble, Pebble], true),
        (&[NEITHER, SAME, EITHER], &[RocksDb; 3], true),
        (&[PEBBLE, NEITHER, SAME], &[Pebble; 3], false),
        (&[], &[], false),
    ] {
        let mut reader = WriteBatchReader::new(None);
        let read = |record: &&[u8]| reader.read(record).unwrap().0.engine();
        assert_eq!(records.iter().map(read).collect::<Vec<_>>(), engines, "{records:?}");
        assert_eq!(reader.note().is_some(), is_ambiguous, "{records:?}");
    }
}

#[test]
fn batches_do_not_override_a_known_engine() {
    for (engine, fault_counts) in [(Engine::RocksDb, [0, 0, 1, 0, 1]), (Engine::Pebble, [0, 1, 0, 0, 1])] {
        let mut reader = WriteBatchReader::new(Some(engine));
        let mut read = |record: &[u8]| {
            let (batch, fault) = reader.read(record).unwrap();
            assert_eq!(batch.engine(), engine);
            usize::from(fault.is_some())
        };
        assert_eq!([SAME, ROCKSDB, PEBBLE, EITHER, NEITHER].map(&mut read), fault_counts);
        assert_eq!(reader.note(), None);
    }
}

#[test]
fn a_log_that_could_come_from_either_engine_is_ambiguous() {
    let note = |facts: Facts, records: &[&[u8]]| {
        let records: Vec<Record<'_>> = records.iter().map(|data| Record::of(data)).collect();
        let mut decoder = Decoder::named("write-batch", facts.clone()).unwrap();
        let lines = lines_with_room(&mut decoder, &records, &[usize::MAX]);
        let mut values = Decoder::named("write-batch", facts).unwrap();
        for record in records {
            let _ = value(&mut values, record.data);
        }
        assert_eq!(decoder.note(), values.note());
        (decoder.note(), lines.last().cloned())
    };
    let of_rocksdb = r#"offset: 0, sequence: 7, kind: "put_entity", column_family: 1, key: b"\x01", value: b"""#;
    let of_pebble = r#"offset: 0, sequence: 7, kind: "delete_sized", key: b"\x01", value: b"\x00""#;
    let either = note(Facts::default(), &[SAME, EITHER]);
    let words = "RocksDB and Pebble read this log differently, and it is read as one from RocksDB";
    assert_eq!(either, (Some(words), Some(of_rocksdb.to_owned())));
    let decided = note(Facts::default(), &[PEBBLE, EITHER]);
    assert_eq!(decided, (None, Some(of_pebble.to_owned())));
    let given = note(of_engine(Engine::Pebble), &[EITHER]);
    assert_eq!(given, (None, Some(of_pebble.to_owned())));
}
