//! Tests the calls of a `LogFile` to its file: when it writes and syncs, and how it reacts if a
//! write or a sync fails.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Found, assert_error, read_all};
use crate::double::{Double, EINTR, EIO, ENOSPC, Fault, HANG, Op, until};
use cordwood_log::codec::{Decoder, Encoder, RECORD_LEN_MAX};
use cordwood_log::damage::Severity;
use cordwood_log::ops::{SalvageOptions, salvage_file};
use cordwood_log::write::Process;
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, FlushPolicy, FollowOptions, Follower, LogFile, LogFileOptions, LogFormat,
    OnCorruption, OnTornTail, ReadOptions, Reader, SyncPolicy, Unsupported, Writer, WriterOptions,
};

fn create_in(double: &Double, options: LogFileOptions) -> LogFile {
    LogFile::create_in(double.boxed(), options).expect("a file that can be emptied")
}

fn create(options: LogFileOptions) -> (Double, LogFile) {
    let double = Double::default();
    let log = create_in(&double, options);
    (double, log)
}

/// Records are buffered, so that the test decides when they are written.
fn buffered() -> LogFileOptions {
    LogFileOptions::default().with_flush(FlushPolicy::OnClose)
}

fn plain() -> (Double, LogFile) {
    create(buffered())
}

fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let (events, _) = read_all(&mut Reader::from_slice(file, ReadOptions::default()));
    let data = |event| match event {
        Found::Record { data, .. } => data,
        Found::Skipped(region) => panic!("{region}"),
    };
    events.into_iter().map(data).collect()
}

fn sync_count(double: &Double) -> usize {
    double.ops().iter().filter(|op| **op == Op::SyncData).count()
}

/// Returns the operating system's error number of a failed write or sync, the durable offset, and
/// whether the log remains usable.
fn write_error<T: std::fmt::Debug>(result: Result<T, Error>) -> (Option<i32>, u64, bool) {
    match result {
        Err(Error {
            kind: ErrorKind::Write { source, failure, .. },
            ..
        }) => (source.raw_os_error(), failure.durable_offset, failure.is_undone),
        other => panic!("{other:?}"),
    }
}

// Writes ----------------------------------------------------------------------------------------

#[test]
fn each_flush_performs_exactly_one_write() -> Result<(), Error> {
    let (double, log) = plain();
    for len in [0, 10, 40_000, 100_000] {
        log.append(&vec![7; len])?;
    }
    assert_eq!(double.ops(), []);
    log.flush()?;
    let [Op::Write { offset: 0, bytes }] = &double.ops()[..] else {
        panic!("{:?}", double.ops().len())
    };
    assert_eq!(*bytes, double.bytes());
    assert_eq!(bytes.len() as u64, log.offset());
    log.flush()?;
    assert_eq!(double.ops().len(), 1, "nothing new is not written");
    Ok(())
}

#[test]
fn the_buffer_is_written_out_when_full() -> Result<(), Error> {
    let (double, log) = plain();
    for _ in 0..3000 {
        log.append(&[7; 1000])?;
    }
    // 261 is the smallest number of records that reach 256 KiB, counting their headers.
    assert_eq!(double.ops().len(), 3000 / 261);
    log.close()?;
    assert_eq!(records(&double.bytes()), vec![vec![7; 1000]; 3000]);

    // Containers of four such records are buffered as well.
    let (double, log) = create(buffered().with_dialect(Dialect::PACKED));
    for _ in 0..3000 {
        log.append(&[7; 1000])?;
    }
    assert_eq!(double.ops().len(), 3000 / 261);
    Ok(())
}

/// `try_append` does no I/O, so it leaves a record that would fill the buffer to `append`.
#[test]
fn try_append_returns_immediately_if_the_buffer_is_full() -> Result<(), Error> {
    let (double, log) = plain();
    for _ in 0..260 {
        assert!(log.try_append(&[7; 1000])?.is_some());
    }
    assert_eq!(log.try_append(&[7; 1000])?, None);
    assert_eq!(double.ops().len(), 0);
    log.append(&[7; 1000])?;
    assert_eq!(double.ops().len(), 1);
    assert!(log.try_append(&[7; 1000])?.is_some());
    Ok(())
}

/// `append` refuses a record that is too long, even if the record would fit into an open container.
#[test]
fn try_append_returns_immediately_for_an_overlong_record() -> Result<(), Error> {
    for dialect in [Dialect::LEVELDB, Dialect::PACKED] {
        let (double, log) = create(buffered().with_dialect(dialect).with_record_len_max(3));
        log.append(b"one")?;
        assert!(log.try_append(b"two")?.is_some());
        assert_eq!(log.try_append(b"four")?, None);
        log.close()?;
        let file = double.bytes();
        let mut reader = Reader::from_slice(&file, ReadOptions::default());
        for record in [Some(&b"one"[..]), Some(b"two"), None] {
            assert_eq!(reader.next_record()?.map(|record| record.data), record, "{dialect:?}");
        }
    }
    Ok(())
}

/// If a sync is due after a record, `try_append` leaves it to `append`, however long headers are.
#[test]
fn try_append_returns_immediately_if_a_sync_would_be_due() -> Result<(), Error> {
    let formats = [
        LogFormat::new(Dialect::LEVELDB),
        LogFormat::new(Dialect::RECYCLABLE).with_log_number(7),
        LogFormat::new(Dialect::WANDB),
        #[cfg(feature = "zstd")]
        LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
    ];
    for format in formats {
        for len in 0..40 {
            let options = buffered().with_format(format).with_sync(SyncPolicy::EveryBytes(20));
            let record = vec![7; len];
            let (_, log) = create(options.clone());
            log.append(&record)?;
            let is_due = log.durable_offset() > 0;
            let appended = create(options).1.try_append(&record)?;
            assert!(!(is_due && appended.is_some()), "{format:?}, {len}");
        }
        let options = buffered().with_format(format).with_sync(SyncPolicy::EveryBytes(1000));
        let (_, log) = create(options);
        assert!(log.try_append(b"short")?.is_some(), "{format:?}");
    }
    Ok(())
}

#[test]
fn short_and_interrupted_writes_are_continued() -> Result<(), Error> {
    let (double, log) = plain();
    log.append(&[1; 1000])?;
    double.state().write_faults = [
        Fault::Short(1),
        Fault::Error(EINTR),
        Fault::Short(500),
        Fault::Error(EINTR),
        Fault::Error(EINTR),
    ]
    .into();
    log.flush()?;
    assert_eq!(records(&double.bytes()), [vec![1; 1000]]);
    assert_eq!(double.ops().len(), 3);
    Ok(())
}

#[test]
fn a_failed_write_is_rolled_back_and_retried() -> Result<(), Error> {
    for (faults, error) in [
        (vec![Fault::Error(ENOSPC)], Some(ENOSPC)),
        (vec![Fault::Error(EIO)], Some(EIO)),
        (vec![Fault::Short(9), Fault::Error(ENOSPC)], Some(ENOSPC)),
        (vec![Fault::ErrorAfter(15, EIO)], Some(EIO)),
        // A write of no bytes without an error would be repeated forever.
        (vec![Fault::Short(3), Fault::Short(0)], None),
    ] {
        let (double, log) = plain();
        log.append_sync(b"one")?;
        log.append(b"two")?;
        double.state().write_faults = faults.into();
        assert_eq!(write_error(log.flush()), (error, 10, true));
        assert_eq!(double.bytes().len(), 10, "nothing of it stays");
        assert!(!log.status().has_failed);
        log.append(b"three")?;
        log.flush()?;
        assert_eq!(records(&double.bytes()), [&b"one"[..], b"two", b"three"]);
    }
    Ok(())
}

/// Acknowledged records must be in the log and refused ones must not, however full the buffer is.
#[test]
fn a_failed_write_rolls_back_its_append() -> Result<(), Error> {
    let appends: [Append; 3] = [LogFile::append_sync, LogFile::append, |log, record| {
        log.extend([b"part of extend", record])
    }];
    for append in appends {
        let (double, log) = plain();
        log.append(b"one")?;
        double.state().write_faults = [Fault::Short(100), Fault::Error(ENOSPC)].into();
        assert_eq!(write_error(append(&log, &[9; 2 << 20])), (Some(ENOSPC), 0, true));
        assert_eq!(log.offset(), 10);
        assert_eq!(log.append(b"two")?, 10);
        log.flush()?;
        assert_eq!(records(&double.bytes()), [b"one", b"two"]);
    }
    Ok(())
}

/// After a failed call, either nothing has changed, or the log accepts no more records.
#[test]
fn a_failed_call_leaves_the_log_unchanged_or_marks_it_as_failed() {
    type Call = (&'static str, fn(&LogFile) -> Result<u64, Error>);
    let calls: [Call; 7] = [
        ("append", |log| log.append(b"two")),
        ("a long append", |log| log.append(&[9; 1 << 20])),
        ("append_sync", |log| log.append_sync(b"two")),
        // `extend` appends all records before the one that fails, so only one record is passed.
        ("extend", |log| log.extend([&[9; 1 << 20]])),
        ("flush", |log| log.flush().map(|()| 0)),
        ("sync", |log| log.sync().map(|()| 0)),
        ("wait_durable", |log| log.wait_durable(log.offset()).map(|()| 0)),
    ];
    let writes = [
        vec![Fault::Error(ENOSPC)],
        vec![Fault::ErrorAfter(3, EIO)],
        vec![Fault::Short(5), Fault::Error(EIO)],
        vec![Fault::None, Fault::Error(ENOSPC)],
    ];
    let (mut unchanged, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for options in [LogFileOptions::default(), buffered()] {
        for (name, call) in calls {
            for (write, cut, sync) in (0..=writes.len()).flat_map(|write| {
                [(false, false), (true, false), (false, true), (true, true)].map(|(cut, sync)| (write, cut, sync))
            }) {
                let (double, log) = create(options.clone());
                log.append(b"one").expect("a record");
                let (offset, bytes) = (log.offset(), double.bytes());
                let mut state = double.state();
                state.write_faults = writes.get(write).cloned().unwrap_or_default().into();
                state.set_len_faults = vec![Fault::Error(EIO); usize::from(cut)].into();
                state.sync_faults = vec![Fault::Error(EIO); usize::from(sync)].into();
                drop(state);
                if call(&log).is_ok() {
                    continue;
                }
                if log.status().has_failed {
                    ended.insert(name);
                    let (offset, bytes) = (log.offset(), double.bytes());
                    log.append(b"next").expect_err("a log that has failed");
                    log.sync().expect_err("a log that has failed");
                    assert_eq!((log.offset(), double.bytes()), (offset, bytes));
                } else {
                    unchanged.insert(name);
                    assert_eq!(log.offset(), offset, "{name}, {write}, {cut}, {sync}");
                    // A record that was buffered before may have been written.
                    let found = records(&double.bytes());
                    assert!(
                        found == records(&bytes) || found == [b"one"],
                        "{name}, {write}, {cut}, {sync}"
                    );
                    assert_eq!(log.append(b"next").expect("a record"), offset);
                    log.close().expect("a log");
                    assert_eq!(records(&double.bytes()), [&b"one"[..], b"next"]);
                }
            }
        }
    }
    // Each call must have failed in both ways.
    let all = BTreeSet::from(calls.map(|(name, _)| name));
    assert_eq!((&unchanged, &ended), (&all, &all));
}

type Append = fn(&LogFile, &[u8]) -> Result<u64, Error>;

/// A record of more than 256 KiB is written in pieces. If one of them fails, no part of the record
/// may stay in the file, but everything before it must.
#[test]
fn a_long_record_is_rolled_back_if_writing_a_piece_fails() -> Result<(), Error> {
    let appends: [(Append, &[&[u8]]); 3] = [
        (LogFile::append, &[]),
        (LogFile::append_sync, &[]),
        (|log, record| log.extend([b"in extend", record]), &[b"in extend"]),
    ];
    let formats = [
        LogFormat::new(Dialect::LEVELDB),
        LogFormat::new(Dialect::WANDB),
        LogFormat::new(Dialect::PEBBLE).with_log_number(7),
    ];
    for format in formats {
        for options in [LogFileOptions::default(), buffered()] {
            for (append, reached) in appends {
                // The long record either is the first record of the file, or follows other records.
                check_each_piece(&options.clone().with_format(format), &[], append, reached)?;
                check_each_piece(&options.clone().with_format(format), &[b"one"], append, reached)?;
            }
        }
    }
    Ok(())
}

/// Appends a long record after the records `before`, and makes each of its pieces fail in turn. The
/// records `reached` are appended together with it, and reach the file with its first piece.
fn check_each_piece(
    options: &LogFileOptions,
    before: &[&[u8]],
    append: Append,
    reached: &[&[u8]],
) -> Result<(), Error> {
    let long: Vec<u8> = (0..1_u32 << 20).map(|i| (i / 251) as u8).collect();
    let start = || -> Result<_, Error> {
        let (double, log) = create(options.clone());
        for record in before {
            log.append(record)?;
        }
        Ok((double, log))
    };
    let writes = |double: &Double| double.ops().iter().filter(|op| matches!(op, Op::Write { .. })).count();
    let (double, log) = start()?;
    let write_count = writes(&double);
    append(&log, &long)?;
    let piece_count = writes(&double) - write_count;
    assert!(piece_count >= 4, "{piece_count} {options:?}");

    for failing in 0..piece_count {
        let (double, log) = start()?;
        let mut faults = vec![Fault::None; failing];
        faults.extend([Fault::Short(100), Fault::ErrorAfter(50, ENOSPC)]);
        double.state().write_faults = faults.into();
        assert_eq!(write_error(append(&log, &long)), (Some(ENOSPC), 0, true));
        log.append(b"two")?;
        log.append(&long)?;
        assert_eq!(log.extend([&long[..], b"three", &long])?, 3);
        log.flush()?;

        let mut expected = before.to_vec();
        if failing > 0 {
            expected.extend(reached);
        }
        expected.extend([b"two", &long[..], &long, b"three", &long]);
        let read = ReadOptions::default()
            .with_dialect(options.dialect)
            .with_log_number(options.log_number);
        let (events, _) = read_all(&mut Reader::from_slice(&double.bytes(), read));
        let found = events.iter().filter_map(|event| match event {
            Found::Record { data, .. } => Some(&data[..]),
            Found::Skipped(region) => {
                assert_eq!(region.reason.severity(), Severity::Info, "{region}");
                None
            }
        });
        assert!(found.eq(expected), "{failing} {options:?}");
    }
    Ok(())
}

/// If the file cannot be truncated after a piece has failed, nothing more may be written to it.
#[test]
fn a_failed_rollback_of_a_long_record_marks_the_log_as_failed() -> Result<(), Error> {
    for options in [LogFileOptions::default(), buffered()] {
        for failing in 0..4 {
            let (double, log) = create(options.clone());
            log.append(b"one")?;
            let mut faults = vec![Fault::None; failing];
            faults.push(Fault::ErrorAfter(50, ENOSPC));
            double.state().write_faults = faults.into();
            double.state().set_len_faults = [Fault::Error(EIO)].into();
            assert_eq!(write_error(log.append(&[9; 1 << 20])), (Some(ENOSPC), 0, false));
            assert!(log.status().has_failed);
            let before = double.ops();
            for refused in [log.append(b"two").map(drop), log.flush(), log.close()] {
                let (_, durable_offset, is_undone) = write_error(refused);
                assert_eq!((durable_offset, is_undone), (0, false));
            }
            drop(log);
            assert_eq!(double.ops(), before);
        }
    }
    Ok(())
}

/// However the records of a writer are divided into pieces, the bytes are the same as the
/// encoder's.
#[test]
fn long_records_are_written_in_pieces() -> Result<(), Box<dyn std::error::Error>> {
    #[derive(Default)]
    struct Pieces(Vec<Vec<u8>>);
    impl io::Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lens = [10, (256 << 10) - 1, 256 << 10, 0, 1 << 20, 300_000, 32_761, 2_000_000];
    let written: Vec<Vec<u8>> = lens.iter().map(|&len| vec![len as u8; len]).collect();
    let formats = [
        LogFormat::new(Dialect::LEVELDB),
        LogFormat::new(Dialect::WANDB),
        LogFormat::new(Dialect::PEBBLE).with_log_number(7),
        #[cfg(feature = "zstd")]
        LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
    ];
    for format in formats {
        let mut expected = Vec::new();
        let mut encoder = Encoder::with_format(0, format)?;
        for record in &written {
            encoder.encode(record, &mut expected);
        }
        encoder.finish(&mut expected);

        let mut one = Writer::with_options(Pieces::default(), WriterOptions::default().with_format(format))?;
        for record in &written {
            one.append(record)?;
        }
        let mut all = Writer::with_options(Pieces::default(), WriterOptions::default().with_format(format))?;
        assert_eq!(all.extend(&written)?, written.len() as u64);
        for writer in [one, all] {
            let pieces = writer.finish()?.0;
            assert!(pieces.concat() == expected, "{format:?}");
            let longest = pieces.iter().map(Vec::len).max();
            assert!(longest < Some((512 << 10) + 1024), "{longest:?}");
            let whole = &pieces[..pieces.len() - 1];
            assert!(whole.iter().all(|piece| piece.len() >= 256 << 10), "{format:?}");
        }
        let (double, log) = create(buffered().with_format(format));
        log.append(&written[0])?;
        log.append(&written[1])?;
        log.extend(&written[2..])?;
        log.close()?;
        assert!(double.bytes() == expected, "{format:?}");
    }
    Ok(())
}

/// Without the truncation and the sync, a crash could leave bytes of the failed write after the
/// bytes of the next write.
#[test]
fn the_file_is_truncated_and_synced_after_a_failed_write() -> Result<(), Error> {
    for options in [LogFileOptions::default(), buffered()] {
        let (double, log) = create(options);
        log.append(b"one")?;
        log.flush()?;
        double.state().write_faults = [Fault::ErrorAfter(5, ENOSPC)].into();
        let failed = log.append(b"two").map(drop).and_then(|()| log.flush());
        assert_eq!(write_error(failed), (Some(ENOSPC), 0, true));
        assert!(
            double.ops().ends_with(&[Op::SetLen(10), Op::SyncData]),
            "{:?}",
            double.ops()
        );
        log.close()?;
    }
    Ok(())
}

#[test]
fn a_failed_write_that_cannot_be_undone_marks_the_log_as_failed() -> Result<(), Error> {
    let (double, log) = plain();
    log.append_sync(b"one")?;
    log.append(b"two")?;
    double.state().write_faults = [Fault::ErrorAfter(5, ENOSPC)].into();
    double.state().set_len_faults = [Fault::Error(EIO)].into();
    let flushed = log.flush();
    let text = flushed.as_ref().expect_err("it must fail").to_string();
    for number in [ENOSPC, EIO] {
        let cause = io::Error::from_raw_os_error(number).to_string();
        assert!(text.contains(&cause), "{text}");
    }
    assert_eq!(write_error(flushed), (Some(ENOSPC), 10, false));
    assert!(log.status().has_failed);
    let before = double.ops();
    for result in [
        log.append(b"three").map(drop),
        log.try_append(b"three").map(drop),
        log.append_sync(b"three").map(drop),
        log.extend([b"three"]).map(drop),
        log.flush(),
        log.sync(),
        log.close(),
    ] {
        let text = result.as_ref().expect_err("it must fail").to_string();
        assert!(text.contains("an earlier write failed"), "{text}");
        let cause = io::Error::from_raw_os_error(EIO).to_string();
        assert!(text.contains(&cause), "why the file could not be cut: {text}");
        assert!(text.contains("everything before offset 10 is on the disk"), "{text}");
        assert_eq!(write_error(result), (Some(ENOSPC), 10, false));
    }
    assert_eq!(double.ops(), before, "the file is left alone");
    // Reopening the log continues after the complete records.
    let file = Double::with_bytes(&double.bytes());
    let options = buffered().with_on_torn_tail(OnTornTail::Truncate);
    let log = LogFile::append_in(file.boxed(), options)?;
    log.append_sync(b"three")?;
    assert_eq!(records(&file.bytes()), [&b"one"[..], b"three"]);
    Ok(())
}

/// When an append returns, the operating system has the record. Each append is one write. A long
/// record, and the records of an `extend`, take one write for every 256 KiB.
#[test]
fn by_default_each_append_performs_one_write() -> Result<(), Error> {
    let (double, log) = create(LogFileOptions::default());
    let mut lens = Vec::new();
    for len in [0, 10, 40_000, (256 << 10) - 1] {
        assert_eq!(log.try_append(b"would have to be written")?, None);
        log.append(&vec![7; len])?;
        assert_eq!(double.bytes().len() as u64, log.offset());
        lens.push(len);
    }
    assert_eq!(double.ops().len(), lens.len());
    log.append(&vec![7; 3 << 20])?;
    let with_long = double.ops().len();
    assert_eq!(with_long, lens.len() + 12);
    lens.push(3 << 20);
    log.extend(vec![vec![8; 1000]; 3000])?;
    assert_eq!(
        double.ops().len(),
        with_long + 3000_usize.div_ceil(261),
        "one for each 256 KiB"
    );
    let expected: Vec<Vec<u8>> = (lens.iter().map(|&len| vec![7; len]))
        .chain(vec![vec![8; 1000]; 3000])
        .collect();
    assert!(records(&double.bytes()) == expected);
    drop(log);
    assert!(records(&double.bytes()) == expected, "without closing it");
    Ok(())
}

/// If the write fails, the record is not in the log, and the log remains usable.
#[test]
fn by_default_a_failed_write_rolls_back_its_append() -> Result<(), Error> {
    let (double, log) = create(LogFileOptions::default());
    log.append(b"one")?;
    double.state().write_faults = [Fault::Short(4), Fault::Error(ENOSPC)].into();
    assert_eq!(write_error(log.append(b"two")), (Some(ENOSPC), 0, true));
    assert_eq!((log.offset(), double.bytes().len()), (10, 10));
    double.state().write_faults = [Fault::Error(ENOSPC)].into();
    assert_eq!(write_error(log.extend([b"two", b"2nd"])), (Some(ENOSPC), 0, true));
    assert_eq!(log.append(b"three")?, 10);
    assert_eq!(records(&double.bytes()), [&b"one"[..], b"three"]);
    Ok(())
}

/// If an iterator panics, the writer has failed. The records appended before are in the log, but no
/// part of the interrupted batch is in the file.
#[test]
fn a_panic_during_append_marks_the_log_as_failed() -> Result<(), Error> {
    let (double, log) = plain();
    log.append_sync(b"one")?;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log.extend((0..3).map(|number| {
            assert!(number < 2, "a panic of the test");
            [number; 5]
        }))
    }));
    assert!(panicked.is_err());
    assert!(log.status().has_failed);
    for result in [
        log.append(b"two").map(drop),
        log.flush(),
        log.try_append(b"two").map(drop),
        log.close(),
    ] {
        let text = result.expect_err("it must fail").to_string();
        assert!(text.contains("it panicked; an earlier append failed; "), "{text}");
    }
    assert_eq!(records(&double.bytes()), [b"one"]);
    Ok(())
}

// Syncs -----------------------------------------------------------------------------------------

#[test]
fn a_failed_sync_marks_the_log_as_failed() -> Result<(), Error> {
    let (double, log) = plain();
    log.append_sync(b"one")?;
    log.append(b"two")?;
    double.state().sync_faults = [Fault::Error(EIO)].into();
    assert_eq!(write_error(log.sync()), (Some(EIO), 10, false));
    // A second sync would succeed, because fsync reports an error only once.
    for result in [log.sync(), log.append(b"three").map(drop), log.close()] {
        let text = result.as_ref().expect_err("it must fail").to_string();
        assert!(text.contains("an earlier sync failed"), "{text}");
        // Programs make decisions by the operating system's error number.
        assert_eq!(write_error(result), (Some(EIO), 10, false));
    }
    assert_eq!((sync_count(&double), log.durable_offset()), (1, 10));
    Ok(())
}

/// If its name is not on the disk, the bytes of a new file are useless.
#[test]
fn only_the_first_sync_syncs_the_directory() -> Result<(), Error> {
    let (double, log) = plain();
    log.append_sync(b"one")?;
    log.append_sync(b"two")?;
    let writes_out = |op: &Op| !matches!(op, Op::Write { .. });
    let syncs: Vec<Op> = double.ops().into_iter().filter(writes_out).collect();
    assert_eq!(syncs, [Op::SyncData, Op::SyncDirectory, Op::SyncData]);

    let (double, log) = plain();
    double.state().directory_faults = [Fault::Error(EIO)].into();
    assert_eq!(write_error(log.append_sync(b"one")), (Some(EIO), 0, false));
    assert_eq!(log.durable_offset(), 0);
    Ok(())
}

#[test]
fn each_sync_policy_syncs_on_schedule() -> Result<(), Error> {
    let hour = Duration::from_secs(3600);
    for (policy, after_each, at_close) in [
        (SyncPolicy::Never, [0, 0, 0, 0], 0),
        (SyncPolicy::OnClose, [0, 0, 0, 0], 1),
        (SyncPolicy::EveryAppend, [1, 2, 3, 4], 4),
        (SyncPolicy::EveryBytes(0), [1, 2, 3, 4], 4),
        (SyncPolicy::EveryBytes(214), [0, 1, 1, 2], 2),
        (SyncPolicy::EveryBytes(u64::MAX), [0, 0, 0, 0], 1),
        (SyncPolicy::EveryInterval(Duration::ZERO), [1, 2, 3, 4], 4),
        (SyncPolicy::EveryInterval(hour), [0, 0, 0, 0], 1),
    ] {
        let (double, log) = create(buffered().with_sync(policy));
        for count in after_each {
            log.append(&[7; 100])?;
            assert_eq!(sync_count(&double), count, "{policy:?}");
            if count > 0 && sync_count(&double) == count {
                assert!(log.durable_offset() >= 107, "{policy:?}");
            }
        }
        log.close()?;
        assert_eq!(sync_count(&double), at_close, "{policy:?}");
        assert_eq!(log.durable_offset(), if at_close > 0 { 428 } else { 0 }, "{policy:?}");
        assert_eq!(records(&double.bytes()).len(), 4);
    }
    Ok(())
}

#[test]
fn an_extend_without_records_does_not_sync() -> Result<(), Error> {
    let none: [&[u8]; 0] = [];
    for policy in [
        SyncPolicy::EveryAppend,
        SyncPolicy::EveryBytes(0),
        SyncPolicy::EveryInterval(Duration::ZERO),
    ] {
        let (double, log) = create(buffered().with_sync(policy));
        assert_eq!(log.extend(none)?, 0);
        log.append(b"one")?;
        assert_eq!(log.extend(none)?, 0);
        assert_eq!(sync_count(&double), 1, "{policy:?}");
    }
    Ok(())
}

#[test]
fn an_append_after_the_interval_triggers_a_sync() -> Result<(), Error> {
    let double = Double::default();
    let interval = Duration::from_millis(30);
    let options = buffered().with_sync(SyncPolicy::EveryInterval(interval));
    let log = create_in(&double, options);
    std::thread::sleep(interval);
    log.append(b"one")?;
    assert_eq!(log.durable_offset(), 10);
    Ok(())
}

/// Threads that wait for the disk share a sync. Each record must be found once. In this test, a
/// sync only ends when all threads are waiting for the disk. The next sync covers the threads that
/// this one does not, so a thread needs at most two syncs for a record.
#[test]
fn sixteen_appending_threads_share_syncs() -> Result<(), Error> {
    const THREADS: usize = 16;
    const EACH: usize = 25;
    const LEN: usize = 7 + 5;
    let double = Double::default();
    double.state().held_sync = Some(1);
    let log = create_in(&double, buffered());
    let (returned, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, double, returned, finished) = (&log, &double, &returned, &finished);
            scope.spawn(move || {
                for number in 0..EACH {
                    let record = format!("{thread:02} {number:02}");
                    let offset = log.append_sync(record.as_bytes()).expect("nothing fails");
                    let end = offset + 7 + record.len() as u64;
                    let durable = log.durable_offset();
                    assert!(durable >= end, "it returned too early");
                    // Records that other threads write during a sync are not on the disk yet.
                    assert!(double.state().synced_len >= durable, "it promises too much");
                    returned.fetch_add(1, SeqCst);
                }
                finished.fetch_add(1, SeqCst);
            });
        }
        for number in 1.. {
            until(|| {
                let (returned, finished) = (returned.load(SeqCst), finished.load(SeqCst));
                let all_wait = log.offset() as usize == (returned + THREADS - finished) * LEN;
                // The threads that the last sync covered have returned, and are waiting again.
                let is_served = log.durable_offset() as usize == returned * LEN;
                finished == THREADS || (double.state().started_syncs == number && is_served && all_wait)
            });
            if finished.load(SeqCst) == THREADS {
                break;
            }
            double.state().held_sync = Some(number + 1);
        }
    });
    let found = records(&double.bytes());
    let expected: BTreeSet<Vec<u8>> = (0..THREADS)
        .flat_map(|thread| (0..EACH).map(move |number| format!("{thread:02} {number:02}").into_bytes()))
        .collect();
    assert_eq!(found.len(), expected.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    let syncs = sync_count(&double);
    assert!(syncs <= 2 * EACH, "{syncs} syncs");
    Ok(())
}

/// If a sync fails, it fails for every thread that waited for it.
#[test]
fn waiting_threads_share_a_failed_sync() {
    let double = Double::default();
    double.state().held_sync = Some(1);
    double.state().sync_faults = [Fault::Error(EIO)].into();
    let log = create_in(&double, buffered());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || log.append_sync(format!("{thread}").as_bytes()).is_err())
            })
            .collect();
        until(|| log.offset() == 32);
        double.state().held_sync = None;
        for thread in threads {
            assert!(thread.join().expect("no panic"), "a record was acknowledged");
        }
    });
    assert_eq!(log.durable_offset(), 0);
}

/// Waiting writes buffered records, but syncs only if the bytes are not on the disk yet.
#[test]
fn waiting_for_an_offset_syncs_once_without_appending() -> Result<(), Error> {
    let (double, log) = plain();
    log.append(b"one")?;
    log.append(b"two")?;
    log.wait_durable(10)?;
    assert_eq!((log.durable_offset(), double.state().synced_len), (20, 20));
    for offset in [0, 10, 20] {
        log.wait_durable(offset)?;
    }
    assert_eq!((sync_count(&double), log.offset()), (1, 20));
    log.append(b"six")?;
    log.flush()?;
    log.wait_durable(20)?;
    assert_eq!(sync_count(&double), 1, "the third record was not waited for");
    log.wait_durable(21)?;
    assert_eq!((sync_count(&double), log.durable_offset()), (2, 30));
    log.append(b"ten")?;
    log.wait_durable(30)?;
    assert_eq!(
        records(&double.bytes()),
        [b"one", b"two", b"six"],
        "the fourth was not waited for"
    );
    Ok(())
}

/// A thread can wait for the offset at which a record of an open container starts. This closes the
/// container.
#[test]
fn waiting_for_an_offset_in_an_open_container_closes_the_container() -> Result<(), Error> {
    let (double, log) = create(buffered().with_dialect(Dialect::PACKED));
    log.append(b"one")?;
    log.append(b"two")?;
    let end = log.offset();
    assert_eq!(double.ops(), []);
    log.wait_durable(end)?;
    assert!(double.state().synced_len >= end);
    assert_eq!(log.durable_offset(), double.bytes().len() as u64);
    Ok(())
}

/// If a running sync covers the bytes, the waiting thread does not sync again.
#[test]
fn waiting_for_an_offset_joins_a_sync_already_in_progress() -> Result<(), Error> {
    let double = Double::default();
    double.state().held_sync = Some(1);
    let log = create_in(&double, buffered());
    std::thread::scope(|scope| {
        let appends = scope.spawn(|| log.append_sync(b"one"));
        until(|| double.state().started_syncs == 1);
        scope.spawn(|| {
            // The call below may or may not have started to wait by then. The result is the same.
            std::thread::sleep(Duration::from_millis(50));
            double.state().held_sync = None;
        });
        log.wait_durable(10)?;
        assert!(double.state().synced_len >= 10);
        appends.join().expect("no panic").map(drop)
    })?;
    assert_eq!(double.state().started_syncs, 1);
    Ok(())
}

#[test]
fn waiting_for_an_offset_past_the_end_fails() -> Result<(), Error> {
    let (double, log) = plain();
    log.append_sync(b"one")?;
    let result = log.wait_durable(11);
    let Err(Error {
        kind: ErrorKind::Io { source, .. },
        ..
    }) = result
    else {
        panic!("{result:?}")
    };
    assert_eq!(source.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(source.to_string(), "the offset 11 is after the end of the log, 10");
    assert_eq!(sync_count(&double), 1);

    log.append(b"two")?;
    double.state().sync_faults = [Fault::Error(EIO)].into();
    assert_eq!(write_error(log.wait_durable(20)), (Some(EIO), 10, false));
    // The second offset is on the disk, but a failed log refuses every call.
    for offset in [20, 10] {
        assert_eq!(write_error(log.wait_durable(offset)), (Some(EIO), 10, false));
    }
    assert_eq!(write_error(log.close()), (Some(EIO), 10, false));
    assert_error!(log.wait_durable(10), ErrorKind::Closed);
    Ok(())
}

/// If a record returns different bytes at each call, one of its values is written.
#[test]
fn a_record_that_changes_between_reads_is_written_consistently() -> Result<(), Error> {
    const VALUES: [&[u8]; 3] = [b"one", b"another", &[7; 40_000]];
    struct Changing(AtomicU32);
    impl AsRef<[u8]> for Changing {
        fn as_ref(&self) -> &[u8] {
            VALUES[self.0.fetch_add(1, Relaxed) as usize % VALUES.len()]
        }
    }
    for first in 0..3 {
        let (double, log) = plain();
        log.extend((0..100).map(|_| Changing(AtomicU32::new(first))))?;
        log.close()?;
        // If the file were damaged, reading it would fail the test.
        let found = records(&double.bytes());
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|record| VALUES.contains(&&record[..])));
    }
    Ok(())
}

/// If a storage panics during a sync, no thread may keep waiting. This includes the threads that
/// wait for that sync and the thread that closes the log.
#[test]
fn a_panic_during_sync_marks_the_log_as_failed() {
    let double = Double::default();
    double.state().held_sync = Some(1);
    double.state().sync_faults = [Fault::Panic].into();
    let log = Arc::new(create_in(&double, buffered()));
    let (sender, results) = std::sync::mpsc::channel();
    for thread in 0..4 {
        let (log, sender) = (Arc::clone(&log), sender.clone());
        std::thread::spawn(move || sender.send(log.append_sync(format!("{thread}").as_bytes())));
    }
    until(|| log.offset() == 32);
    double.state().held_sync = None;
    for _ in 0..4 {
        let result = results.recv_timeout(HANG).expect("all return");
        let text = result.as_ref().expect_err("it must fail").to_string();
        assert!(text.contains("it panicked"), "{text}");
        assert_eq!(write_error(result), (None, 0, false));
    }
    std::thread::spawn(move || sender.send(log.close().map(|()| 0)));
    let closed = results.recv_timeout(HANG).expect("it returns");
    assert_eq!(write_error(closed), (None, 0, false));
}

/// If a thread closes the log, other threads that wait for the disk are still served, and later
/// calls are refused. Only acknowledged records are in the log. After closing, the log has released
/// the file.
#[test]
fn close_waits_for_threads_that_are_waiting_on_the_disk() {
    let double = Double::default();
    double.state().held_sync = Some(1);
    let log = create_in(&double, buffered());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let offset = log
                        .append_sync(b"one")
                        .expect("it was appended before the log was closed");
                    assert!(double.state().synced_len >= offset + 10, "it returned too early");
                    assert_error!(log.append_sync(b"two"), ErrorKind::Closed);
                })
            })
            .collect();
        // One of the threads syncs, and the others wait.
        until(|| log.offset() == 40);
        let closes = scope.spawn(|| {
            log.close().expect("nothing fails");
            assert_eq!(double.holders(), 1, "the log still has the file");
        });
        until(|| log.status().is_closed);
        double.state().held_sync = None;
        for thread in threads.into_iter().chain([closes]) {
            thread.join().expect("no panic");
        }
    });
    assert_eq!(records(&double.bytes()), vec![b"one"; 4]);
}

// On disk ---------------------------------------------------------------------------------------

#[test]
fn a_second_writer_is_rejected_while_the_first_is_open() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("some.log");
    let log = LogFile::create_new(&path, buffered())?;
    assert_eq!(log.path(), Some(&*path));
    log.append_sync(b"one")?;
    for second in [LogFile::create, LogFile::append_to] {
        let refused = second(&path, buffered());
        assert!(
            matches!(&refused, Err(Error { path: Some(named), kind: ErrorKind::Locked, .. }) if **named == *path),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(&path)?.len(), 10, "it has changed nothing");
    }
    log.close()?;
    let second = LogFile::append_to(&path, buffered())?;
    assert_eq!(second.append(b"two")?, 10);
    drop(second);
    let third = LogFile::append_to(&path, buffered())?;
    assert_eq!(
        third.append(b"three")?,
        20,
        "what was appended was written when it was dropped"
    );
    Ok(())
}

#[test]
fn opening_for_append_truncates_a_torn_tail() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("some.log");
    std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo\xba\xea\xec\x44\x03\x00\x01b")?;
    let log = LogFile::append_to(&path, buffered().with_on_torn_tail(OnTornTail::Truncate))?;
    assert_eq!(std::fs::read(&path)?.len(), 10);
    assert_eq!(log.append(b"bar")?, 10);
    log.close()?;
    assert_eq!(records(&std::fs::read(&path)?), [b"foo", b"bar"]);
    Ok(())
}

#[test]
fn interrupted_open_errors_include_the_path() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("some.log");
    LogFile::create(&path, buffered())?.append_sync(b"one")?;
    let opened = LogFile::append_to_unless(&path, buffered(), &|| Err(io::Error::other("mine")));
    let error = opened.expect_err("the error of the function");
    assert_eq!(error.path.as_deref(), Some(&*path));
    assert!(matches!(&error.kind, ErrorKind::Io { source, .. } if source.to_string() == "mine"));
    Ok(())
}

#[test]
#[cfg(unix)]
fn rejects_appending_to_a_device() {
    let refused = LogFile::append_to("/dev/null", buffered());
    assert_error!(refused, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput);
}

/// Dropping a log writes its records. It does not sync, and does not write the bytes that close a
/// log.
#[test]
fn dropping_a_log_file_writes_its_buffered_records() -> Result<(), Error> {
    let double = Double::default();
    let format = LogFormat::new(Dialect::PEBBLE).with_log_number(7);
    let log = create_in(&double, buffered().with_format(format).with_sync(SyncPolicy::OnClose));
    log.append(b"one")?;
    log.append(b"two")?;
    assert_eq!(double.bytes(), b"");
    let before = double.ops().len();
    drop(log);
    let mut encoder = Encoder::with_format(0, format).unwrap();
    let mut expected = Vec::new();
    encoder.encode(b"one", &mut expected);
    encoder.encode(b"two", &mut expected);
    assert_eq!(double.bytes(), expected);
    assert_eq!(double.ops().len(), before + 1, "one write, and no sync");
    Ok(())
}

/// After a failed write that was undone, dropping the log writes the records again. If the write
/// could not be undone, or after a failed sync or a panic, it writes nothing.
#[test]
fn dropping_a_failed_log_does_not_write_its_buffer() -> Result<(), Error> {
    let (double, log) = create(buffered());
    log.append(b"one")?;
    double.state().write_faults = [Fault::Error(ENOSPC)].into();
    assert!(log.flush().is_err());
    drop(log);
    assert_eq!(records(&double.bytes()), [b"one"]);

    let (double, log) = create(buffered());
    log.append(b"one")?;
    double.state().sync_faults = [Fault::Error(EIO)].into();
    assert!(log.sync().is_err());
    let before = double.ops();
    drop(log);
    assert_eq!(double.ops(), before);

    let (double, log) = create(buffered());
    log.append(b"one")?;
    let panics = std::iter::from_fn(|| -> Option<&[u8]> { panic!("of the test") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log.extend(panics)));
    assert!(caught.is_err());
    drop(log);
    assert_eq!(double.bytes(), b"");

    // If writing fails during a drop, the drop is silent and leaves no part of a record.
    let (double, log) = create(buffered());
    log.append(b"one")?;
    double.state().write_faults = [Fault::ErrorAfter(4, ENOSPC)].into();
    drop(log);
    assert_eq!(double.bytes(), b"");
    Ok(())
}

/// Only the parent may write records that the parent has appended but not written.
#[test]
fn dropping_a_log_in_a_forked_child_does_not_write_its_buffer() -> Result<(), Error> {
    let double = Double::default();
    let number = Arc::new(AtomicU32::new(1));
    double.state().process = Process::simulated(Arc::clone(&number));
    let log = create_in(&double, buffered());
    log.append(b"one")?;
    number.store(2, Relaxed);
    drop(log);
    assert_eq!(double.bytes(), b"");
    Ok(())
}

/// A sink that the test shares with the writer.
#[derive(Clone, Default)]
struct Shared {
    bytes: Arc<Mutex<Vec<u8>>>,
    panics: bool,
}

impl io::Write for Shared {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let len = buffer.len().min(4);
        self.bytes.lock().unwrap().extend(&buffer[..len]);
        match self.panics {
            true => std::panic::panic_any("of the test"),
            false => Ok(len),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn dropping_a_writer_writes_its_buffered_records() -> Result<(), Error> {
    let sink = Shared::default();
    let mut writer = Writer::new(sink.clone());
    writer.append(b"one")?;
    writer.append(b"two")?;
    assert_eq!(*sink.bytes.lock().unwrap(), b"");
    drop(writer);
    assert_eq!(records(&sink.bytes.lock().unwrap()), [b"one", b"two"]);

    // It is unknown how many bytes arrived the first time.
    let panics = true;
    let sink = Shared {
        panics,
        ..Shared::default()
    };
    let mut writer = Writer::new(sink.clone());
    writer.append(b"one")?;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.flush()));
    assert!(caught.is_err());
    let mut state = sink.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert_eq!(state.len(), 4);
    state.clear();
    drop(state);
    drop(writer);
    assert_eq!(sink.bytes.lock().unwrap().len(), 0);

    // After a sink has been returned, the writer does not write to it again.
    let sink = Shared::default();
    let mut writer = Writer::new(sink.clone());
    writer.append(b"one")?;
    writer.finish()?;
    assert_eq!(records(&sink.bytes.lock().unwrap()), [b"one"]);
    Ok(())
}

/// Refused records are not in the log, and later calls only report that the log is closed.
#[test]
fn a_log_counts_as_closed_even_if_close_fails() -> Result<(), Error> {
    let faults: [fn(&Double); 2] = [
        |double| double.state().write_faults = [Fault::Error(ENOSPC)].into(),
        |double| double.state().sync_faults = [Fault::Error(EIO)].into(),
    ];
    for fault in faults {
        let (double, log) = create(buffered().with_sync(SyncPolicy::OnClose));
        log.append(b"one")?;
        fault(&double);
        assert_error!(log.close(), ErrorKind::Write { .. });
        log.close()?;
        assert_error!(log.append(b"two"), ErrorKind::Closed);
        assert_error!(log.sync(), ErrorKind::Closed);
        assert_eq!(double.holders(), 1);
        assert_eq!(log.offset(), 10);
    }
    Ok(())
}

#[test]
fn a_closed_log_rejects_further_calls() -> Result<(), Error> {
    let (double, log) = plain();
    log.append(b"one")?;
    assert!(!log.status().is_closed);
    log.close()?;
    assert!(log.status().is_closed);
    log.close()?;
    for result in [
        log.append(b"two").map(drop),
        log.append_sync(b"two").map(drop),
        log.try_append(b"two").map(drop),
        log.extend([b"two"]).map(drop),
        log.flush(),
        log.sync(),
    ] {
        assert_error!(result, ErrorKind::Closed);
    }
    assert_eq!(records(&double.bytes()), [b"one"]);
    Ok(())
}

/// The missing part of the torn record is zeros, and so is padding. A record that was reported as
/// lost must not reappear.
#[test]
fn padding_does_not_complete_a_torn_record() -> Result<(), Error> {
    for len in [1, 100, 40_000] {
        let (double, log) = plain();
        log.append(b"one")?;
        log.append(&vec![0; len])?;
        log.close()?;
        let whole = double.bytes();
        let header_end = 10 + 7;
        for cut in [header_end, whole.len() - 1, whole.len() - len.min(100)] {
            let file = Double::with_bytes(&whole[..cut]);
            let options = buffered().with_on_torn_tail(OnTornTail::PadToBlock);
            let log = LogFile::append_in(file.boxed(), options)?;
            log.append_sync(b"two")?;
            let bytes = file.bytes();
            assert!(bytes.starts_with(&whole[..cut]), "every byte is left");
            let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
            let (events, _) = read_all(&mut Reader::from_slice(&bytes, options));
            let found = events.into_iter().filter_map(|event| match event {
                Found::Record { data, .. } => Some(data),
                Found::Skipped(_) => None,
            });
            assert_eq!(found.collect::<Vec<_>>(), [b"one", b"two"], "{len} {cut}");
        }
    }
    Ok(())
}

/// In Pebble's dialect, closing writes a trailer with the number 8. In W&B's dialect, the file
/// header is written even if there is no record.
#[test]
fn close_writes_the_trailer_or_header_the_dialect_requires() -> Result<(), Error> {
    for (dialect, expected) in [
        (
            LogFormat::new(Dialect::PEBBLE).with_log_number(7),
            &b"\0\0\0\0\0\0\x05\x08\0\0\0"[..],
        ),
        (LogFormat::new(Dialect::WANDB), b":W&B\xe1\xbe\0"),
        (LogFormat::new(Dialect::LEVELDB), b""),
    ] {
        let double = Double::default();
        create_in(&double, buffered().with_format(dialect)).close()?;
        assert_eq!(double.bytes(), expected, "{dialect:?}");
    }
    Ok(())
}

/// An option that the dialect does not support, or that this build cannot write, is refused before
/// a file is created, emptied or changed.
#[test]
fn rejected_options_leave_the_log_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old.log"), directory.path().join("new.log"));
    std::fs::write(&old, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo").unwrap();
    let mut formats = Vec::new();
    for &dialect in Dialect::ALL {
        if !dialect.has_log_numbers() {
            formats.push((LogFormat::new(dialect).with_log_number(7), Unsupported::LogNumber));
        }
        let zstd = LogFormat::new(dialect).with_compression(Compression::Zstd);
        if ![Dialect::ROCKSDB, Dialect::PACKED].contains(&dialect) {
            formats.push((zstd, Unsupported::Compression));
        } else if !cfg!(feature = "zstd") {
            formats.push((zstd, Unsupported::ZstdFeature));
        }
    }
    assert!(formats.len() >= 4 + 6);
    for (format, expected) in formats {
        let is_refused = |error: &Error| {
            matches!(error.kind, ErrorKind::Unsupported { dialect, unsupported, .. }
                if dialect == format.dialect && unsupported == expected)
        };
        let options = || LogFileOptions::default().with_format(format);
        for error in [
            LogFile::create(&old, options()).unwrap_err(),
            LogFile::create(&new, options()).unwrap_err(),
            LogFile::create_new(&new, options()).unwrap_err(),
            Writer::with_options(Vec::new(), WriterOptions::default().with_format(format)).unwrap_err(),
            Encoder::with_format(0, format).unwrap_err(),
        ] {
            assert!(is_refused(&error), "{format:?}: {error}");
        }
        for path in [&old, &new] {
            let error = LogFile::append_to(path, options()).unwrap_err();
            // A compressed log is never appended to, with or without the feature.
            let is_never =
                expected == Unsupported::ZstdFeature && matches!(error.kind, ErrorKind::NeverAppended { .. });
            assert!(is_never || is_refused(&error), "{format:?}: {error}");
        }
        assert_eq!(std::fs::read(&old).unwrap(), b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
        assert!(!new.exists());
        // Without the feature, options for reading are still accepted.
        let options = ReadOptions::default().with_format(format);
        if expected != Unsupported::ZstdFeature {
            assert!(is_refused(&options.check().unwrap_err()));
            assert!(is_refused(&Decoder::new(&options).unwrap_err()));
            assert!(is_refused(&Reader::open_with(&old, options.clone()).unwrap_err()));
            let mut reader = Reader::from_slice(b"", options);
            for _ in 0..2 {
                assert!(is_refused(&reader.next_record().unwrap_err()));
                assert!(is_refused(&reader.format().unwrap_err()));
            }
            let options = FollowOptions::default().with_format(format);
            assert!(is_refused(&Follower::open_with(&old, options).unwrap_err()));
        }
    }
    // This is also true for a detected dialect.
    let options = ReadOptions::default().with_log_number(7);
    assert_error!(Reader::open_with(&old, options).unwrap().next_record(), ErrorKind::Unsupported { dialect, .. } if *dialect == Dialect::LEVELDB);
}

// Limits ----------------------------------------------------------------------------------------

/// Readers refuse a record of this length by default.
#[test]
fn does_not_write_records_too_long_to_read_back() {
    assert_eq!(LogFileOptions::default().record_len_max, RECORD_LEN_MAX);
    assert_eq!(WriterOptions::default().record_len_max, RECORD_LEN_MAX);
    assert_eq!(ReadOptions::default().record_len_max, RECORD_LEN_MAX);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.log");
    for (dialect, flush, max) in [
        (Dialect::LEVELDB, FlushPolicy::EveryAppend, 5),
        (Dialect::LEVELDB, FlushPolicy::OnClose, 5),
        (Dialect::LEVELDB, FlushPolicy::OnClose, 100_000),
        (Dialect::WANDB, FlushPolicy::OnClose, 100_000),
    ] {
        let options = LogFileOptions::default().with_format(dialect).with_flush(flush);
        let log = LogFile::create(&path, options.with_record_len_max(max as u64)).unwrap();
        let (right, long) = (vec![1; max], vec![2; max + 1]);
        let is_refused = |error: Error| {
            let offset = log.offset();
            let is = matches!(error.kind, ErrorKind::RecordTooLarge { offset: found, record_len, record_len_max, .. }
                if (found, record_len, record_len_max) == (offset, max as u64 + 1, max as u64));
            assert!(is, "{error}");
        };
        log.append(&right).unwrap();
        is_refused(log.append(&long).unwrap_err());
        is_refused(log.append_sync(&long).unwrap_err());
        assert_eq!(log.try_append(&long).unwrap(), None);
        // The records before the long record are in the log.
        is_refused(log.extend([&right, &long, &right]).unwrap_err());
        log.append(b"last").unwrap();
        log.close().unwrap();
        drop(log);
        let mut reader = Reader::open_with(&path, ReadOptions::default().with_record_len_max(max as u64)).unwrap();
        for expected in [&right[..], &right, b"last"] {
            assert!(reader.next_record().unwrap().unwrap().data == expected);
        }
        assert_eq!(reader.next_record().unwrap(), None);

        let options = WriterOptions::default()
            .with_format(dialect)
            .with_record_len_max(max as u64);
        let mut writer = Writer::with_options(Vec::new(), options).unwrap();
        writer.append(&right).unwrap();
        let before = writer.offset();
        let error = writer.append(&long).unwrap_err();
        let is = matches!(error.kind, ErrorKind::RecordTooLarge { offset, record_len, .. }
            if (offset, record_len) == (before, max as u64 + 1));
        assert!(is, "{error}");
        assert_eq!(writer.offset(), before);
        assert!(!writer.has_failed());
    }
}

/// `extend` writes the same bytes as single appends, and stops where an append would fail.
#[test]
fn extend_writes_the_same_bytes_as_appending_each_record() -> Result<(), Error> {
    for dialect in [Dialect::LEVELDB, Dialect::WANDB] {
        let records: Vec<Vec<u8>> = (0..3_000).map(|i| vec![i as u8; i * 7 % 900]).collect();
        let mut one = Writer::with_options(Vec::new(), WriterOptions::default().with_format(dialect)).unwrap();
        for record in &records {
            one.append(record)?;
        }
        let mut all = Writer::with_options(Vec::new(), WriterOptions::default().with_format(dialect)).unwrap();
        assert_eq!(all.extend(&records)?, 3_000);
        assert_eq!(all.offset(), one.offset());
        assert!(all.buffered_len() < 1 << 18, "it writes on the way");
        assert!(all.finish()? == one.finish()?);
    }
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_record_len_max(3))?;
    let refused = writer.extend(["one", "three", "two"]).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::RecordTooLarge { record_len: 5, .. }));
    assert_eq!(writer.extend(["two"])?, 1);
    assert_eq!(records(&writer.finish()?), [b"one", b"two"]);
    Ok(())
}

/// Readers trust the name of a file. They would take records with another number for records of an
/// older log.
#[test]
fn rejects_a_file_name_with_a_different_log_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(6);
    for (name, is_written) in [("000005.log", false), ("000006.log", true), ("any.log", true)] {
        let path = directory.path().join(name);
        let created = LogFile::create(&path, LogFileOptions::default().with_format(format));
        match created {
            Ok(log) => {
                log.append(b"one").expect("nothing fails");
                log.close().expect("nothing fails");
                assert!(is_written, "{name}");
            }
            Err(error) => {
                assert!(!is_written, "{name}: {error}");
                let ErrorKind::Io { source, .. } = &error.kind else {
                    panic!("{error:?}")
                };
                assert_eq!(source.kind(), io::ErrorKind::InvalidInput);
                assert!(!path.exists());
            }
        }
    }
    for (name, is_written) in [("000007.log", false), ("copy.log", true)] {
        let (source, copy) = (directory.path().join("000006.log"), directory.path().join(name));
        let salvaged = salvage_file(&source, &copy, &SalvageOptions::default());
        assert_eq!(
            (salvaged.is_ok(), copy.exists()),
            (is_written, is_written),
            "{name}: {salvaged:?}"
        );
    }
}
