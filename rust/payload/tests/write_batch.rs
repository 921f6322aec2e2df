//! Write batches, byte by byte: each tag as in the engines' sources, and bytes that no engine
//! writes.

use cordwood_payload::{Engine, Operation, PayloadError, PayloadReason, WriteBatch};

/// Each operation: its bytes, their meaning, whether it counts, its name.
fn operations(engine: Engine) -> Vec<(&'static [u8], Operation<'static>, bool, &'static str)> {
    let column_family = 0;
    let (key, value, end_key, xid) = (b"k".as_slice(), b"val".as_slice(), b"m".as_slice(), b"x1".as_slice());
    let both = [
        (
            b"\x00\x01k".as_slice(),
            Operation::Delete { column_family, key },
            true,
            "delete",
        ),
        (
            b"\x01\x01k\x03val",
            Operation::Put {
                column_family,
                key,
                value,
            },
            true,
            "put",
        ),
        (
            b"\x02\x01k\x03val",
            Operation::Merge {
                column_family,
                key,
                value,
            },
            true,
            "merge",
        ),
        (b"\x03\x03val", Operation::LogData { value }, false, "log_data"),
        (
            b"\x07\x01k",
            Operation::SingleDelete { column_family, key },
            true,
            "single_delete",
        ),
        (
            b"\x0f\x01k\x01m",
            Operation::DeleteRange {
                column_family,
                key,
                end_key,
            },
            true,
            "delete_range",
        ),
    ];
    let rocksdb = [
        (b"\x09".as_slice(), Operation::BeginPrepare, false, "begin_prepare"),
        (b"\x0a\x02x1", Operation::EndPrepare { xid }, false, "end_prepare"),
        (b"\x0b\x02x1", Operation::Commit { xid }, false, "commit"),
        (b"\x0c\x02x1", Operation::Rollback { xid }, false, "rollback"),
        (b"\x0d", Operation::Noop, false, "noop"),
        (
            b"\x11\x01k\x03val",
            Operation::PutBlobIndex {
                column_family,
                key,
                value,
            },
            true,
            "put_blob_index",
        ),
        (
            b"\x12",
            Operation::BeginPersistedPrepare,
            false,
            "begin_persisted_prepare",
        ),
        (b"\x13", Operation::BeginUnprepare, false, "begin_unprepare"),
        (
            b"\x15\x03val\x02x1",
            Operation::CommitWithTimestamp { timestamp: value, xid },
            false,
            "commit_with_timestamp",
        ),
        (
            b"\x16\x01k\x03val",
            Operation::PutEntity {
                column_family,
                key,
                value,
            },
            true,
            "put_entity",
        ),
        (
            b"\x18\x01k\x0bval\x15\xcd\x5b\x07\0\0\0\0",
            Operation::TimedPut {
                column_family,
                key,
                value,
                write_unix_time: 123_456_789,
            },
            true,
            "timed_put",
        ),
        // The same with a column family: 300 takes two bytes.
        (
            b"\x04\xac\x02\x01k",
            Operation::Delete {
                column_family: 300,
                key,
            },
            true,
            "delete",
        ),
        (
            b"\x05\xac\x02\x01k\x03val",
            Operation::Put {
                column_family: 300,
                key,
                value,
            },
            true,
            "put",
        ),
        (
            b"\x06\xac\x02\x01k\x03val",
            Operation::Merge {
                column_family: 300,
                key,
                value,
            },
            true,
            "merge",
        ),
        (
            b"\x08\x01\x01k",
            Operation::SingleDelete { column_family: 1, key },
            true,
            "single_delete",
        ),
        (
            b"\x0e\x01\x01k\x01m",
            Operation::DeleteRange {
                column_family: 1,
                key,
                end_key,
            },
            true,
            "delete_range",
        ),
        (
            b"\x10\x01\x01k\x03val",
            Operation::PutBlobIndex {
                column_family: 1,
                key,
                value,
            },
            true,
            "put_blob_index",
        ),
        (
            b"\x17\x01\x01k\x03val",
            Operation::PutEntity {
                column_family: 1,
                key,
                value,
            },
            true,
            "put_entity",
        ),
        (
            b"\x19\x01\x01k\x08\x01\0\0\0\0\0\0\0",
            Operation::TimedPut {
                column_family: 1,
                key,
                value: b"",
                write_unix_time: 1,
            },
            true,
            "timed_put",
        ),
    ];
    let pebble = [
        (
            b"\x13\x01k\x01m".as_slice(),
            Operation::RangeKeyDelete { key, end_key },
            true,
            "range_key_delete",
        ),
        (
            b"\x14\x01k\x03val",
            Operation::RangeKeyUnset { key, value },
            true,
            "range_key_unset",
        ),
        (
            b"\x15\x01k\x03val",
            Operation::RangeKeySet { key, value },
            true,
            "range_key_set",
        ),
        (b"\x16\x01k", Operation::IngestSst { key }, true, "ingest_sst"),
        (
            b"\x17\x01k\x03val",
            Operation::DeleteSized { key, value },
            true,
            "delete_sized",
        ),
        (b"\x18\x01k\x01m", Operation::Excise { key, end_key }, true, "excise"),
        (
            b"\x1a\x01k\x03val",
            Operation::IngestSstWithBlobs { key, value },
            true,
            "ingest_sst_with_blobs",
        ),
    ];
    match engine {
        Engine::RocksDb => [&both[..], &rocksdb].concat(),
        _ => [&both[..], &pebble].concat(),
    }
}

fn record(count: u32, operations: &[u8]) -> Vec<u8> {
    [&7_u64.to_le_bytes(), &count.to_le_bytes()[..], operations].concat()
}

fn decode(record: &[u8], engine: Engine) -> Result<Vec<Operation<'_>>, PayloadError> {
    WriteBatch::new(record, engine)?.operations().collect()
}

fn is_wrong(result: Result<Vec<Operation<'_>>, PayloadError>, offset: usize, len: usize, reason: PayloadReason) {
    let error = result.unwrap_err();
    assert_eq!((error.offset, error.len, error.reason), (offset, len, reason));
}

#[test]
fn each_operation_round_trips() {
    for engine in [Engine::RocksDb, Engine::Pebble] {
        for (bytes, operation, is_counted, name) in operations(engine) {
            let record = record(is_counted.into(), bytes);
            assert_eq!(decode(&record, engine), Ok(vec![operation]));
            assert_eq!(WriteBatch::encode(7, &[operation], engine), Ok(record));
            assert_eq!((operation.is_counted(), operation.as_str()), (is_counted, name));
        }
    }
}

#[test]
fn rejects_every_unknown_tag() {
    for engine in [Engine::RocksDb, Engine::Pebble] {
        let known: Vec<u8> = operations(engine).iter().map(|(bytes, ..)| bytes[0]).collect();
        for tag in (0..=u8::MAX).filter(|tag| !known.contains(tag)) {
            let record = record(1, &[tag, 1, b'k', 1, b'v']);
            is_wrong(
                decode(&record, engine),
                12,
                1,
                PayloadReason::UnknownTag { tag: tag.into() },
            );
        }
    }
}

#[test]
fn encoding_an_operation_from_the_other_engine_is_rejected() {
    for (engine, other) in [(Engine::RocksDb, Engine::Pebble), (Engine::Pebble, Engine::RocksDb)] {
        let known: Vec<&[u8]> = operations(other).iter().map(|(bytes, ..)| *bytes).collect();
        for (bytes, operation, ..) in operations(engine) {
            let result = WriteBatch::encode(7, &[operation], other);
            let in_both = bytes[0] < 8 && known.contains(&bytes) || bytes[0] == 0x0f;
            let tag = u32::from(bytes[0]);
            match result {
                Ok(_) => assert!(in_both, "{operation:?}"),
                Err(error) => assert_eq!((error.reason, in_both), (PayloadReason::UnknownTag { tag }, false)),
            }
        }
    }
}

#[test]
fn the_operations_of_a_batch_are_decoded_in_order() {
    for engine in [Engine::RocksDb, Engine::Pebble] {
        let all = operations(engine);
        let bytes: Vec<u8> = all.iter().flat_map(|(bytes, ..)| *bytes).copied().collect();
        let count = all.iter().filter(|(_, _, is_counted, _)| *is_counted).count();
        let record = record(count as u32, &bytes);
        let batch = WriteBatch::new(&record, engine).unwrap();
        assert_eq!((batch.sequence(), batch.count() as usize), (7, count));
        let decoded = decode(&record, engine).unwrap();
        assert!(decoded.iter().eq(all.iter().map(|(_, operation, ..)| operation)));
        assert_eq!(WriteBatch::encode(7, &decoded, engine), Ok(record));
    }
}

#[test]
fn rejects_a_batch_truncated_at_any_byte() {
    for engine in [Engine::RocksDb, Engine::Pebble] {
        for (bytes, _, is_counted, _) in operations(engine) {
            // A put after it: a batch without it has the wrong count, also where the cut is between the two.
            let whole = record(1 + u32::from(is_counted), &[bytes, b"\x01\x01a\x01b"].concat());
            assert!(decode(&whole, engine).is_ok());
            for len in 0..whole.len() {
                assert!(decode(&whole[..len], engine).is_err(), "{len} bytes of {whole:?}");
            }
        }
    }
}

#[test]
fn decoding_operations_stops_at_the_first_error() {
    let record = record(3, b"\x00\x01k\x63\x00\x01k");
    let batch = WriteBatch::new(&record, Engine::RocksDb).unwrap();
    let mut operations = batch.operations();
    assert!(operations.next().unwrap().is_ok());
    assert_eq!(
        operations.next().unwrap().unwrap_err().to_string(),
        "tag 99 is unknown or not allowed here (1 byte at offset 15 of the payload)"
    );
    assert_eq!(operations.next(), None);
}

#[test]
fn a_fault_in_a_batch_is_reported_with_its_offset() {
    let rocksdb = |record: &[u8], offset, len, reason| is_wrong(decode(record, Engine::RocksDb), offset, len, reason);
    rocksdb(b"", 0, 0, PayloadReason::Truncated);
    rocksdb(&[0; 11], 8, 3, PayloadReason::Truncated);
    rocksdb(
        &record(2, b"\x00\x01k"),
        8,
        4,
        PayloadReason::WrongCount { stated: 2, found: 1 },
    );
    rocksdb(
        &record(0, b"\x00\x01k"),
        8,
        4,
        PayloadReason::WrongCount { stated: 0, found: 1 },
    );
    // Log data does not count.
    rocksdb(
        &record(1, b"\x03\x01k"),
        8,
        4,
        PayloadReason::WrongCount { stated: 1, found: 0 },
    );
    // The length of the string is absurd; no memory is allocated for it.
    rocksdb(
        &record(1, b"\x01\x01k\xff\xff\xff\xff\x0fv"),
        15,
        6,
        PayloadReason::Truncated,
    );
    rocksdb(
        &record(1, b"\x01\x01k\xff\xff\xff\xff\xffv"),
        15,
        5,
        PayloadReason::BadVarint,
    );
    rocksdb(&record(1, b"\x01\x81\x00k\x01v"), 13, 2, PayloadReason::NonCanonical);
    rocksdb(&record(1, b"\x05\x00\x01k\x01v"), 12, 2, PayloadReason::NonCanonical);
    rocksdb(&record(1, b"\x18\x01k\x071234567"), 15, 8, PayloadReason::BadLength);
}

#[test]
fn rejects_sequence_numbers_over_56_bits() {
    let last = (1_u64 << 56) - 1;
    let of =
        |sequence: u64, count: u32| [&sequence.to_le_bytes()[..], &count.to_le_bytes(), b"\x00\x01a\x00\x01b"].concat();
    assert_eq!(decode(&of(last - 1, 2), Engine::RocksDb).unwrap().len(), 2);
    for sequence in [last, last + 1, u64::MAX] {
        is_wrong(
            decode(&of(sequence, 2), Engine::RocksDb),
            0,
            8,
            PayloadReason::NonCanonical,
        );
        let deletes = [Operation::Delete {
            column_family: 0,
            key: b"a",
        }; 2];
        let error = WriteBatch::encode(sequence, &deletes, Engine::RocksDb).unwrap_err();
        assert_eq!((error.offset, error.len, error.reason), (0, 8, PayloadReason::TooLarge));
    }
}
