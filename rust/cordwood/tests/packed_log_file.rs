//! Tests that `LogFile` keeps its promises in a packed log, with both codecs. The tests cover
//! failed writes, crashes, and appending to existing logs. The promises are in
//! `docs/format/writing.md`.

use crate::double::{Double, ENOSPC, Fault, Op, apply};
use cordwood_log::ops;
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, FlushPolicy, LogFile, LogFileOptions, LogFormat, OnCorruption, OnTornTail,
    ReadOptions, Reader, SyncPolicy,
};

const FORMATS: [LogFormat; 2] = [
    LogFormat::new(Dialect::PACKED),
    LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd),
];

fn options(format: LogFormat) -> LogFileOptions {
    LogFileOptions::default().with_format(format)
}

fn buffered(format: LogFormat) -> LogFileOptions {
    options(format).with_flush(FlushPolicy::OnClose)
}

fn record(number: usize, len: usize) -> Vec<u8> {
    let text = format!("{{\"number\": {number}, \"loss\": 0.125}} ");
    text.bytes().cycle().take(len).collect()
}

/// Returns the records of a file, each as its offset, its end offset and its data. Asserts that all
/// skipped bytes are a torn tail or padding.
fn read(file: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut reader = Reader::from_slice(file, ReadOptions::default().with_on_corruption(OnCorruption::Skip));
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("a file in memory") {
        records.push((record.offset, record.end_offset, record.data.to_vec()));
    }
    records
}

fn data(file: &[u8]) -> Vec<Vec<u8>> {
    read(file).into_iter().map(|(_, _, data)| data).collect()
}

/// Each call of a writer is tested with one failing write, the one with the number `failing`. A
/// record whose append failed must not be in the log, and every other record must be in it.
#[test]
fn a_failed_write_loses_only_its_own_record() {
    let faults = [
        Fault::Error(ENOSPC),
        Fault::ErrorAfter(1, ENOSPC),
        Fault::ErrorAfter(30, ENOSPC),
        Fault::Short(3),
    ];
    for format in FORMATS {
        for (flush, fault, failing) in [FlushPolicy::EveryAppend, FlushPolicy::OnClose]
            .into_iter()
            .flat_map(|flush| faults.map(|fault| (flush, fault)))
            .flat_map(|(flush, fault)| (0..40).map(move |failing| (flush, fault, failing)))
        {
            let double = Double::default();
            let log = LogFile::create_in(double.boxed(), options(format).with_flush(flush)).expect("a new file");
            let state = &double;
            state.state().write_faults = (0..failing).map(|_| Fault::None).chain([fault]).collect();
            let mut expected = Vec::new();
            for number in 0..60 {
                let one = record(number, [0, 20, 300, 5_000, 70_000][number * 7 % 5]);
                match number % 9 {
                    4 => {
                        let before = log.offset();
                        let batch: Vec<_> = (0..50).map(|at| record(number * 100 + at, at * 3)).collect();
                        match log.extend(&batch) {
                            Ok(_) => expected.extend(batch),
                            // All records of the batch fit into one write, which is undone as a
                            // whole.
                            Err(_) => assert_eq!(log.offset(), before),
                        }
                    }
                    // A failed flush keeps the records that it could not write.
                    6 => drop(log.flush()),
                    7 => {
                        if log.append_sync(&one).is_ok() {
                            expected.push(one);
                            let durable = log.durable_offset();
                            assert_eq!(data(&double.bytes()[..durable as usize]), expected);
                        }
                    }
                    _ => {
                        if log.append(&one).is_ok() {
                            expected.push(one);
                        }
                    }
                }
                if flush == FlushPolicy::EveryAppend {
                    assert_eq!(
                        data(&double.bytes()).len(),
                        expected.len(),
                        "{format:?} {failing} {number}"
                    );
                }
            }
            // The fault may occur only at this flush. The records that could not be written are
            // kept.
            let _ = log.flush();
            log.close().expect("no further fault");
            let file = double.bytes();
            assert!(data(&file) == expected, "{format:?} {flush:?} {fault:?} {failing}");
        }
    }
}

/// The file is cut at each length that a crash may leave. A container must be found as a whole or
/// not at all, and later records must follow the last whole container.
#[test]
fn appending_continues_after_the_last_complete_container() {
    for format in FORMATS {
        let double = Double::default();
        let log = LogFile::create_in(double.boxed(), buffered(format)).expect("a new file");
        for number in 0..60 {
            log.append(&record(number, number * 5 % 90)).expect("no fault");
            if number % 13 == 12 {
                log.flush().expect("no fault");
            }
        }
        log.append(&record(60, 40_000)).expect("no fault");
        log.close().expect("no fault");
        let file = double.bytes();
        let records = read(&file);
        assert_eq!(records.len(), 61);
        let cuts = (0..file.len()).filter(|cut| *cut < 3_000 || cut % 101 == 0 || file.len() - cut < 300);
        for cut in cuts {
            // The end offset may be inside a container, so `is_whole` looks for the end of that
            // container.
            let whole = records.iter().filter(|(_, end, _)| is_whole(&file, *end, cut));
            let mut expected: Vec<_> = whole.map(|(_, _, data)| data.clone()).collect();
            expected.push(b"appended".to_vec());
            expected.push(b"and packed".to_vec());
            for policy in [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock] {
                let double = Double::with_bytes(&file[..cut]);
                let opened = LogFile::append_in(double.boxed(), buffered(format).with_on_torn_tail(policy));
                let log = match opened {
                    Err(Error {
                        kind: ErrorKind::TornTail { .. },
                        ..
                    }) if policy == OnTornTail::Refuse => continue,
                    opened => opened.unwrap_or_else(|error| panic!("{format:?} {policy:?} {cut}: {error}")),
                };
                assert_eq!(log.format(), format, "{cut}");
                let offset = log.append(b"appended").expect("no fault");
                assert_eq!(log.append(b"and packed").expect("no fault"), offset + 1);
                log.close().expect("no fault");
                let found = read(&double.bytes());
                assert_eq!(found[found.len() - 2].0, offset);
                assert!(
                    found.into_iter().map(|(_, _, data)| data).eq(expected.clone()),
                    "{format:?} {policy:?} {cut}"
                );
            }
        }
    }
}

/// If the mark were not written again, the padded log would have no mark.
#[test]
fn the_mark_is_rewritten_after_padding_at_the_start_of_a_log() {
    let marks: [&[u8]; 2] = [
        b"\x90\x26\x4b\x92\x0a\x00\x48cordwood\x01\x00",
        b"\x47\xca\x52\x8c\x0a\x00\x48cordwood\x01\x01",
    ];
    for (format, mark) in FORMATS.into_iter().zip(marks) {
        for cut in 1..mark.len() {
            let double = Double::with_bytes(&mark[..cut]);
            let options = options(format).with_on_torn_tail(OnTornTail::PadToBlock);
            let log = LogFile::append_in(double.boxed(), options).expect("a torn mark");
            assert_eq!(log.append(b"one").expect("no fault"), 32_768 + 17, "{cut}");
            log.close().expect("no fault");
            assert_eq!(double.bytes()[32_768..][..17], *mark, "{cut}");
        }
    }
}

/// Checks whether the record that ends at `end` is in the first `cut` bytes of the file, together
/// with the rest of its container.
fn is_whole(file: &[u8], end: u64, cut: usize) -> bool {
    // Fragments tile the file, so this loop finds the end of the container that contains `end - 1`.
    let mut at = 0;
    while at < end as usize {
        let left = 32_768 - at % 32_768;
        if left < 7 {
            at += left;
            continue;
        }
        at += 7 + usize::from(u16::from_le_bytes([file[at + 4], file[at + 5]]));
    }
    at <= cut
}

#[test]
fn appending_preserves_the_compression_stated_in_the_mark() {
    for format in FORMATS {
        for given in [LogFileOptions::default(), options(FORMATS[0]), options(FORMATS[1])] {
            let double = Double::default();
            let log = LogFile::create_in(double.boxed(), options(format)).expect("a new file");
            log.close().expect("no fault");
            assert_eq!(double.bytes().len(), 17);

            // At this point, only the mark states the compression.
            let log = LogFile::append_in(double.boxed(), given.clone()).expect("a packed log");
            assert_eq!(log.format(), format);
            log.extend([&b"one"[..], b"two"]).expect("no fault");
            log.close().expect("no fault");
            let len_before = double.bytes().len();

            let log = LogFile::append_in(double.boxed(), given).expect("a packed log");
            assert_eq!(log.format(), format);
            log.extend((0..100).map(|number| record(number, 40))).expect("no fault");
            log.close().expect("no fault");
            let file = double.bytes();
            assert_eq!(data(&file).len(), 102);
            let is_compressed = file.len() - len_before < 2_000;
            assert_eq!(is_compressed, format == FORMATS[1]);
        }
    }
}

fn is_wrong_dialect(opened: &Result<LogFile, Error>) -> bool {
    let kind = opened.as_ref().err().map(|error| &error.kind);
    matches!(kind, Some(ErrorKind::WrongDialect { .. }))
}

/// Readers of another dialect would drop or refuse containers.
#[test]
fn never_appends_containers_to_a_log_in_another_dialect() {
    let plain = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
    for format in FORMATS {
        let opened = LogFile::append_in(Double::with_bytes(plain).boxed(), options(format));
        assert!(is_wrong_dialect(&opened), "{opened:?}");
    }
    let double = Double::default();
    LogFile::create_in(double.boxed(), options(FORMATS[0]))
        .and_then(|log| Ok(log.close()?))
        .expect("no fault");
    for named in [Dialect::LEVELDB, Dialect::ROCKSDB, Dialect::WANDB] {
        let opened = LogFile::append_in(double.boxed(), LogFileOptions::default().with_dialect(named));
        assert!(is_wrong_dialect(&opened), "{opened:?}");
    }
}

/// The salvaged records of a packed log must be packed again, and no record may stay in an open
/// container.
#[test]
fn salvaging_a_packed_log_produces_a_packed_log() {
    let directory = tempfile::tempdir().expect("a directory");
    for (at, format) in FORMATS.into_iter().enumerate() {
        let paths = ["source", "salvaged"].map(|name| directory.path().join(format!("{name}{at}.log")));
        let log = LogFile::create(&paths[0], buffered(format)).expect("a new file");
        for number in 0..100 {
            log.append(&record(number, 50)).expect("no fault");
        }
        log.close().expect("no fault");
        ops::salvage_file(&paths[0], &paths[1], &ops::SalvageOptions::default()).expect("an intact log");
        let [source, salvaged] = paths.map(|path| std::fs::read(path).expect("a file"));
        assert!(source == salvaged, "{format:?}");
    }
}

/// Synced records must be in the file that a crash leaves, even if no later record is.
#[test]
fn the_durable_offset_is_always_the_end_of_a_container() {
    for format in FORMATS {
        let double = Double::default();
        let options = buffered(format).with_sync(SyncPolicy::EveryBytes(500));
        let log = LogFile::create_in(double.boxed(), options).expect("a new file");
        let mut durable = Vec::new();
        for number in 0..400 {
            log.append(&record(number, number % 60)).expect("no fault");
            durable.push((log.durable_offset(), number + 1));
        }
        let mut file = Vec::new();
        double.ops().iter().for_each(|op: &Op| apply(op, &mut file));
        durable.dedup_by_key(|(offset, _)| *offset);
        assert!(durable.len() > 3);
        for (offset, count) in durable.into_iter().filter(|(offset, _)| *offset > 0) {
            assert_eq!(data(&file[..offset as usize]).len(), count, "{format:?} {offset}");
        }
    }
}

/// A failed write must undo its own record, but none of the records that were gathered before it.
#[test]
fn a_failed_append_does_not_lose_records_in_an_open_container() {
    for format in FORMATS {
        for is_synced in [true, false] {
            let double = Double::default();
            let log = LogFile::create_in(double.boxed(), buffered(format)).expect("a new file");
            log.append(b"one").expect("no fault");
            double.state().write_faults = [Fault::Error(ENOSPC)].into();
            let failed = match is_synced {
                true => log.append_sync(b"two"),
                // This record is too long for the buffer.
                false => log.append(&[7; 300_000]),
            };
            failed.expect_err("the fault");
            log.append(b"three").expect("no fault");
            log.close().expect("no fault");
            assert_eq!(data(&double.bytes()), [&b"one"[..], b"three"], "{format:?} {is_synced}");
        }
    }
}

/// The first record is in an open container. Without a sync, the second record could be added to
/// that container.
#[test]
fn a_synced_append_writes_the_record_to_disk() {
    for format in FORMATS {
        let double = Double::default();
        let log =
            LogFile::create_in(double.boxed(), buffered(format).with_sync(SyncPolicy::Never)).expect("a new file");
        log.append(b"one").expect("no fault");
        log.append_sync(b"two").expect("no fault");
        let synced = double.state().synced_len;
        assert_eq!(data(&double.bytes()[..synced as usize]), [b"one", b"two"], "{format:?}");
    }
}
