//! Tests a segmented log: where a segment ends and the next one starts, and each line of the table
//! of failures in `docs/format/writing.md`, under its name.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier, OnceLock, Weak};
use std::time::Duration;
use std::{fs, io};

use crate::common::{self, Found, assert_error, read_all};
use crate::double::directory::{DirectoryDouble, DirectoryOp};
use crate::double::{EIO, ENOSPC, Fault, HANG, Op, until};
use crate::wire::Wire;
use cordwood_log::damage::Reason;
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::segments::{LOCK_NAME, Segment, breaks, list, name_of};
use cordwood_log::write::{Directory, Process, Storage};
use cordwood_log::{
    Dialect, Error, ErrorKind, FlushPolicy, Hint, LogFile, LogFileOptions, OnTornTail, ReadOptions, Reader,
    SegmentedLog, SyncPolicy, Unsupported,
};

const EMFILE: i32 = 24;

/// A segment holds ten records of three bytes. With its header, each record has 10 bytes.
fn options() -> LogFileOptions {
    LogFileOptions::default().with_segment_len(100)
}

fn packed() -> LogFileOptions {
    options().with_dialect(Dialect::PACKED)
}

fn open(directory: &DirectoryDouble, options: LogFileOptions) -> SegmentedLog {
    SegmentedLog::open_in(directory.arc(), options).expect("a segmented log")
}

fn create(options: LogFileOptions) -> (DirectoryDouble, SegmentedLog) {
    let directory = DirectoryDouble::default();
    let log = open(&directory, options);
    (directory, log)
}

fn number(number: usize) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

fn fill(log: &SegmentedLog, numbers: std::ops::Range<usize>) {
    for index in numbers {
        assert_eq!(log.append(&number(index)).expect("an append"), index as u64 * 10);
    }
}

/// Returns all records with their log offsets. Asserts that each segment ends where the next one
/// starts.
fn read(directory: &DirectoryDouble) -> Vec<(u64, Vec<u8>)> {
    let mut records = Vec::new();
    let mut expected = None;
    for (base, bytes) in directory.files() {
        assert_eq!(
            *expected.get_or_insert(base),
            base,
            "a segment that does not start at the end"
        );
        let (events, _) = read_all(&mut Reader::from_slice(&bytes, ReadOptions::default()));
        for event in events {
            match event {
                Found::Record { offset, data, .. } => records.push((base + offset, data)),
                Found::Skipped(region) if matches!(region.reason, Reason::Metadata { .. }) => {}
                Found::Skipped(region) => panic!("in the segment {base}: {region}"),
            }
        }
        expected = Some(base + bytes.len() as u64);
    }
    records
}

fn numbers(range: std::ops::Range<usize>) -> Vec<(u64, Vec<u8>)> {
    range.map(|index| (index as u64 * 10, number(index))).collect()
}

fn starts(directory: &DirectoryDouble) -> Vec<u64> {
    directory.files().into_keys().collect()
}

/// Returns the operating system's error number of a failed write or sync, the durable log offset,
/// and whether the log remains usable.
fn write_error<T: std::fmt::Debug>(result: Result<T, Error>) -> (Option<i32>, u64, bool) {
    match result {
        Err(Error {
            kind: ErrorKind::Write { source, failure, .. },
            ..
        }) => (source.raw_os_error(), failure.durable_offset, failure.is_undone),
        other => panic!("{other:?}"),
    }
}

fn io_error<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<i32> {
    match result {
        Err(Error {
            kind: ErrorKind::Io { source, .. },
            ..
        }) => source.raw_os_error(),
        other => panic!("{other:?}"),
    }
}

fn region(result: Result<SegmentedLog, Error>) -> (u64, u64, Reason) {
    match result {
        Err(Error {
            kind: ErrorKind::Corruption { region, .. } | ErrorKind::TornTail { region, .. },
            ..
        }) => (region.start, region.end, region.reason),
        other => panic!("{other:?}"),
    }
}

// Segments --------------------------------------------------------------------------------------

#[test]
fn a_segment_ends_before_a_record_that_does_not_fit() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..25);
    assert_eq!((log.offset(), log.first_offset()), (250, 0));
    assert_eq!(starts(&directory), [0, 100, 200]);
    // This record is one byte too long for the room that is left.
    assert_eq!(log.append(&[7; 44])?, 250);
    assert_eq!(log.append(&[7; 0])?, 301);
    log.close()?;
    assert_eq!(starts(&directory), [0, 100, 200, 250]);
    assert_eq!(read(&directory).len(), 27);
    Ok(())
}

#[test]
fn a_record_longer_than_a_segment_gets_its_own_segment() -> Result<(), Error> {
    let (directory, log) = create(options());
    for (record_len, offset) in [(3, 0), (500, 10), (600, 517), (3, 1124)] {
        assert_eq!(log.append(&vec![7; record_len])?, offset);
    }
    assert_eq!(starts(&directory), [0, 10, 517, 1124]);
    Ok(())
}

#[test]
fn a_rejected_record_does_not_start_a_segment() -> Result<(), Error> {
    let (directory, log) = create(options().with_record_len_max(50));
    fill(&log, 0..15);
    for result in [log.append(&[7; 51]), log.extend([[7; 51]])] {
        let error = result.expect_err("a record that is too long");
        assert!(
            matches!(error.kind, ErrorKind::RecordTooLarge { offset: 150, .. }),
            "{error:?}"
        );
    }
    assert_eq!(
        log.extend([number(15), number(16), vec![7; 51]])
            .map_err(|error| error.offset()),
        Err(Some(170))
    );
    assert_eq!(starts(&directory), [0, 100]);
    assert_eq!(read(&directory), numbers(0..17));
    Ok(())
}

#[test]
fn extend_moves_on_to_the_next_segment_when_one_is_full() -> Result<(), Error> {
    for sync in [SyncPolicy::Never, SyncPolicy::EveryAppend] {
        let (directory, log) = create(options().with_sync(sync));
        fill(&log, 0..7);
        assert_eq!(log.extend((7..35).map(number))?, 28);
        assert_eq!(log.extend::<Vec<u8>>([])?, 0);
        assert_eq!(starts(&directory), [0, 100, 200, 300]);
        assert_eq!(read(&directory), numbers(0..35));
        let durable = if sync == SyncPolicy::Never { 300 } else { 350 };
        assert_eq!(log.durable_offset(), durable);
    }
    Ok(())
}

/// When the segment was started, the records that required a sync were already synced.
#[test]
fn extend_does_not_sync_a_new_segment_because_of_records_in_an_earlier_one() -> Result<(), Error> {
    let (_, log) = create(options().with_sync(SyncPolicy::EveryBytes(90)));
    assert_eq!(log.extend((0..12).map(number))?, 12);
    assert_eq!((log.offset(), log.durable_offset()), (120, 100));
    Ok(())
}

/// The length of a container is not known before it is compressed. Nevertheless, no segment may be
/// longer than allowed, and none may be nearly empty.
#[test]
fn packed_segments_are_filled_to_their_limit() -> Result<(), Error> {
    for flush in [FlushPolicy::EveryAppend, FlushPolicy::OnClose] {
        let (directory, log) = create(packed().with_flush(flush).with_segment_len(100_000));
        assert_eq!(log.extend((0..30_000).map(number))?, 30_000);
        for index in 30_000..31_000 {
            log.append(&number(index))?;
        }
        log.close()?;
        let found = read(&directory);
        assert!(found.iter().map(|(_, data)| data.clone()).eq((0..31_000).map(number)));
        let lens: Vec<usize> = directory.files().values().map(Vec::len).collect();
        assert!(lens.iter().all(|len| *len <= 100_000), "{lens:?}");
        assert!(lens.iter().rev().skip(1).all(|len| *len > 95_000), "{lens:?}");
    }
    Ok(())
}

#[test]
fn rotating_does_not_start_a_new_segment_after_an_empty_segment() -> Result<(), Error> {
    for (options, first) in [(options(), 0), (packed(), 17)] {
        let (directory, log) = create(options.clone());
        assert_eq!(log.rotate()?, 0);
        assert_eq!(log.append(b"one")?, first);
        let next = log.offset();
        assert_eq!(log.rotate()?, next);
        assert_eq!(log.rotate()?, next);
        log.close()?;
        // A packed log that is closed without a record contains a mark.
        assert_eq!(directory.files()[&next].len() as u64, first);
        let log = open(&directory, options);
        assert_eq!(log.rotate()?, next);
        assert_eq!(log.append(b"two")?, next + first);
        assert_eq!(starts(&directory), [0, next]);
        assert_eq!(
            read(&directory),
            [(first, b"one".to_vec()), (next + first, b"two".to_vec())]
        );
    }
    Ok(())
}

#[test]
fn a_segment_is_synced_before_the_next_segment_is_created() -> Result<(), Error> {
    let (directory, log) = create(options().with_flush(FlushPolicy::OnClose));
    fill(&log, 0..10);
    log.rotate()?;
    log.append(b"010")?;
    log.flush()?;
    let ops = directory.ops();
    let calls = ops
        .iter()
        .filter(|op| !matches!(op, DirectoryOp::File(_, Op::Write { .. })));
    let expected = [
        DirectoryOp::Create(0),
        DirectoryOp::File(0, Op::SyncData),
        DirectoryOp::Sync,
        DirectoryOp::Create(100),
        DirectoryOp::File(100, Op::SyncData),
        DirectoryOp::Sync,
    ];
    assert!(calls.eq(&expected), "{ops:?}");
    assert_eq!(directory.file(0).holders(), 2, "the old file is still open"); // the directory and this file hold it
    Ok(())
}

#[test]
fn opening_a_segmented_log_reads_only_its_last_segment() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..75);
    log.close()?;
    let log = open(&directory, options());
    assert_eq!(directory.state().opened, [700]);
    assert_eq!((log.offset(), log.durable_offset(), log.first_offset()), (750, 700, 0));
    fill(&log, 75..85);
    assert_eq!(read(&directory), numbers(0..85));
    Ok(())
}

#[test]
fn reopening_a_segmented_log_preserves_its_dialect() -> Result<(), Error> {
    let (directory, log) = create(packed());
    log.append(b"one")?;
    let next = log.rotate()?;
    drop(log);
    assert_eq!(directory.files()[&next].len(), 0);
    // Only the segment before the last one shows the dialect.
    let refused = SegmentedLog::open_in(directory.arc(), options().with_dialect(Dialect::LEVELDB));
    assert_error!(refused, ErrorKind::WrongDialect { .. });
    let log = open(&directory, options());
    assert_eq!(log.format().dialect, Dialect::PACKED);
    assert_eq!(log.append(b"two")?, next + 17);
    let last = log.rotate()?;
    assert_eq!(log.append(b"three")?, last + 17);
    drop(log);
    assert_eq!(open(&directory, options()).format().dialect, Dialect::PACKED);
    Ok(())
}

#[test]
fn only_leveldb_and_packed_logs_can_be_segmented() {
    for dialect in [Dialect::WANDB, Dialect::ROCKSDB, Dialect::PEBBLE] {
        let refused = SegmentedLog::open_in(DirectoryDouble::default().arc(), options().with_dialect(dialect));
        assert_error!(
            refused,
            ErrorKind::Unsupported {
                unsupported: Unsupported::Segments,
                ..
            }
        );
    }
    let numbered = cordwood_log::LogFormat::new(Dialect::LEVELDB).with_log_number(7);
    let directory = DirectoryDouble::default();
    SegmentedLog::open_in(directory.arc(), options().with_format(numbered)).expect_err("LevelDB's logs have no number");
    assert!(directory.files().is_empty());
    // This is a run file, with the file header of its dialect and a torn record. It must not be
    // truncated.
    let mut run = b":W&B\xe1\xbe\x00".to_vec();
    run.extend_from_slice(&common::fragment(1, b"not with this checksum")[..20]);
    let directory = DirectoryDouble::with_files([(0, run.clone())]);
    let refused = SegmentedLog::open_in(directory.arc(), options().with_on_torn_tail(OnTornTail::Truncate));
    assert!(refused.is_err());
    assert_eq!(directory.files()[&0], run);
    // Only the segment before the newest one shows the dialect.
    let mut run = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut run, 0, b"record");
    let directory = DirectoryDouble::with_files([(0, run.clone()), (run.len() as u64, Vec::new())]);
    let refused = SegmentedLog::open_in(directory.arc(), options());
    assert_error!(
        refused,
        ErrorKind::Unsupported {
            unsupported: Unsupported::Segments,
            ..
        }
    );
}

/// A file that ends after the header of a run file is as long as a torn mark of a packed log.
#[test]
fn an_empty_run_file_is_not_a_segment() {
    let header = b":W&B\xe1\xbe\x00".to_vec();
    let one = common::fragment(1, b"one");
    for files in [vec![(0, header.clone())], vec![(0, one), (10, header.clone())]] {
        let directory = DirectoryDouble::with_files(files.clone());
        let refused = SegmentedLog::open_in(directory.arc(), options());
        assert_error!(
            refused,
            ErrorKind::Unsupported {
                unsupported: Unsupported::Segments,
                ..
            }
        );
        assert_eq!(directory.files(), files.into_iter().collect());
    }
}

#[test]
fn closing_fails_if_the_last_records_cannot_be_written() {
    let (directory, log) = create(options().with_flush(FlushPolicy::OnClose));
    fill(&log, 0..3);
    directory.file(0).state().write_faults = [Fault::Error(ENOSPC), Fault::Error(ENOSPC)].into();
    let error = log.close().expect_err("a full disk");
    assert!(matches!(error.kind, ErrorKind::Write { .. }), "{error}");
    assert!(log.status().is_closed);
}

#[test]
fn a_record_of_maximum_length_starts_a_new_segment_if_it_does_not_fit() {
    let (directory, log) = create(options().with_record_len_max(50));
    fill(&log, 0..9);
    assert_eq!(log.append(&[1; 50]).expect("an append"), 90);
    assert_eq!(starts(&directory), [0, 90]);
}

#[test]
fn rejected_options_do_not_create_a_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("log");
    SegmentedLog::open(&directory, options().with_dialect(Dialect::WANDB)).expect_err("a dialect that is refused");
    assert!(!directory.exists());
}

/// The lock file shows that the files belong to a log, whatever they contain.
#[test]
fn a_failed_open_does_not_remove_the_existing_lock_file() {
    let place = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(place.path(), options()).expect("a new log");
    fill(&log, 0..25);
    log.close().expect("a closed log");
    drop(log);
    fs::remove_file(place.path().join(name_of(100))).expect("a file");
    let error = SegmentedLog::open(place.path(), options()).expect_err("a log without a segment");
    assert!(matches!(error.kind, ErrorKind::Corruption { .. }), "{error}");
    assert!(place.path().join(LOCK_NAME).exists());
}

#[cfg(unix)]
#[test]
fn an_unusable_lock_file_returns_the_os_error() {
    let place = tempfile::tempdir().expect("a directory");
    let lock = place.path().join(LOCK_NAME);
    std::os::unix::fs::symlink(LOCK_NAME, &lock).expect("a link to itself");
    let error = SegmentedLog::open(place.path(), options()).expect_err("a loop of links");
    assert!(matches!(error.kind, ErrorKind::Io { .. }), "{error}");
    fs::remove_file(&lock).expect("a link");
    fs::create_dir(&lock).expect("a directory");
    let error = SegmentedLog::open(place.path(), options()).expect_err("a directory");
    assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
}

#[test]
fn waiting_for_an_offset_triggers_a_sync_only_if_the_offset_is_in_the_last_segment() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..15);
    log.close()?;
    let log = open(&directory, options());
    let before = directory.ops().len();
    log.wait_durable(100)?;
    assert_eq!(directory.ops().len(), before);
    // This is the offset after the first byte of the last segment.
    log.wait_durable(101)?;
    assert_eq!(log.durable_offset(), 150);
    log.wait_durable(150)?;
    assert_eq!(log.try_status(), Some(log.status()));
    let error = log.wait_durable(151).expect_err("no record ends there");
    assert_eq!(error.to_string(), "the offset 151 is after the end of the log, 150");
    assert!(!log.status().is_closed);
    log.close()?;
    assert!(log.status().is_closed);
    assert_error!(log.wait_durable(10), ErrorKind::Closed);
    Ok(())
}

/// While one thread waits for the disk, other threads can append. The next sync covers all their
/// records.
#[test]
fn a_slow_sync_does_not_block_other_threads_from_appending() -> Result<(), Error> {
    type Wait = fn(&SegmentedLog) -> Result<(), Error>;
    let waits: [Wait; 4] = [
        |log| log.append_sync(b"001").map(drop),
        |log| log.extend([b"001", b"002"]).map(drop),
        |log| log.append(b"001").and_then(|_| log.sync()),
        |log| log.append(b"001").and_then(|_| log.wait_durable(20)),
    ];
    for wait in waits {
        let directory = DirectoryDouble::default();
        // With the records of `extend`, the log has this many bytes.
        let sync = SyncPolicy::EveryBytes(30);
        let log = open(&directory, options().with_segment_len(1 << 20).with_sync(sync));
        log.append(b"000")?;
        let file = directory.file(0);
        file.state().held_sync = Some(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&log));
            until(|| file.state().started_syncs == 1);
            let appends = scope.spawn(|| log.append(b"003"));
            until(|| appends.is_finished());
            assert!(!waiting.is_finished());
            assert_eq!(log.status().durable_offset, 0, "the sync has not ended");
            file.state().held_sync = None;
            waiting.join().expect("no panic")
        })?;
        assert!(log.durable_offset() >= 20);
    }
    Ok(())
}

/// `try_append` does not even wait for a write in a thread that waits for records of other threads.
#[test]
fn try_append_does_not_wait_for_a_write() -> Result<(), Error> {
    let (directory, log) = create(options().with_flush(FlushPolicy::OnClose));
    log.append(b"000")?;
    let file = directory.file(0);
    let answer = std::thread::scope(|scope| {
        let busy = file.state();
        scope.spawn(|| log.wait_durable(10));
        until(|| log.try_status().is_none());
        let (sender, receiver) = std::sync::mpsc::channel();
        let log = &log;
        scope.spawn(move || sender.send(log.try_append(b"001").is_ok_and(|offset| offset.is_none())));
        let answer = receiver.recv_timeout(HANG);
        drop(busy);
        answer
    });
    assert_eq!(answer, Ok(true));
    Ok(())
}

#[test]
fn try_append_does_not_start_a_new_segment() -> Result<(), Error> {
    let (directory, log) = create(options().with_flush(FlushPolicy::OnClose));
    fill(&log, 0..12);
    assert_eq!(log.try_append(&number(12))?, Some(120));
    assert_eq!(log.try_append(&[7; 100])?, None);
    assert_eq!(starts(&directory), [0, 100]);
    assert_eq!(log.append(&[7; 100])?, 130);
    assert_eq!(starts(&directory), [0, 100, 130]);
    Ok(())
}

/// Eight threads append and sync while segments are started and pruned. Every record must be found
/// once, and the records of each thread must be in order.
#[test]
fn threads_can_share_a_log_while_its_segments_are_pruned() -> Result<(), Error> {
    let (directory, log) = create(options().with_segment_len(2000));
    let barrier = Barrier::new(9);
    let mut acknowledged: Vec<(u64, Vec<u8>)> = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let (log, barrier) = (&log, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    (0..100)
                        .map(|index| {
                            let record = format!("{thread} {index}").into_bytes();
                            let offset = log.append_sync(&record).expect("an append");
                            assert!(log.durable_offset() > offset);
                            (offset, record)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        barrier.wait();
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            log.rotate().expect("a segment");
            let end = log.offset();
            assert!(log.prune_before(end / 2).expect("pruning") <= end / 2);
        }
        for thread in threads {
            acknowledged.extend(thread.join().expect("no panic"));
        }
    });
    let end = log.rotate()?;
    let first = log.prune_before(end / 2)?;
    assert!(first > 0 && first <= end / 2);
    acknowledged.sort();
    acknowledged.retain(|(offset, _)| *offset >= log.first_offset());
    assert!(!acknowledged.is_empty());
    assert_eq!(read(&directory), acknowledged);
    Ok(())
}

// Pruning ---------------------------------------------------------------------------------------

#[test]
fn pruning_removes_whole_segments_but_never_the_last_one() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..35);
    for (before, first) in [
        (0, 0),
        (99, 0),
        (100, 100),
        (299, 200),
        (100, 200),
        (350, 300),
        (u64::MAX, 300),
    ] {
        assert_eq!(log.prune_before(before)?, first, "before {before}");
        assert_eq!(log.first_offset(), first);
        assert_eq!(starts(&directory)[0], first);
    }
    fill(&log, 35..40);
    assert_eq!(read(&directory), numbers(30..40));
    Ok(())
}

#[test]
fn the_next_pruning_retries_a_failed_removal() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..35);
    directory.state().remove_faults = [Fault::None, Fault::Error(EIO)].into();
    assert_eq!(io_error(log.prune_before(300)), Some(EIO));
    assert_eq!((log.first_offset(), starts(&directory)), (100, vec![100, 200, 300]));
    assert_eq!(log.prune_before(300)?, 300);
    Ok(())
}

// Retention -------------------------------------------------------------------------------------

#[test]
fn creating_a_segment_removes_the_oldest_segments_to_enforce_the_retention_size() {
    for (bytes, expected) in [
        (0, &[300][..]),
        (1, &[200, 300]),
        (100, &[200, 300]),
        (101, &[100, 200, 300]),
        (201, &[0, 100, 200, 300]),
    ] {
        let (directory, log) = create(options().with_retention_bytes(bytes));
        fill(&log, 0..35);
        assert_eq!(starts(&directory), expected, "{bytes}");
        assert_eq!(log.first_offset(), expected[0]);
        assert_eq!(read(&directory), numbers(expected[0] as usize / 10..35));
    }
}

#[test]
fn starting_a_new_segment_removes_expired_segments() {
    let (directory, log) = create(options().with_retention_time(Duration::from_secs(60)));
    fill(&log, 0..35);
    assert_eq!(log.first_offset(), 0, "the clock says that they are of the future");
    let ages = [(0, 61), (100, 61), (200, 60), (300, 61)].map(|(offset, age)| (offset, Duration::from_secs(age)));
    directory.state().ages = ages.into();
    fill(&log, 35..40);
    assert_eq!(log.first_offset(), 0, "no segment was started");
    fill(&log, 40..41);
    assert_eq!(
        starts(&directory),
        [200, 300, 400],
        "a later one does not go before an earlier one"
    );
}

#[test]
fn retention_also_removes_segments_from_before_the_log_was_opened() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..35);
    log.close()?;
    let log = open(&directory, options().with_retention_bytes(150));
    assert_eq!(log.first_offset(), 0);
    assert_eq!(log.rotate()?, 350);
    assert_eq!(starts(&directory), [200, 300, 350]);
    assert_eq!(log.rotate()?, 350, "there is no record in the last one");
    Ok(())
}

#[test]
fn the_next_rotation_retries_a_failed_removal() {
    let (directory, log) = create(options().with_retention_bytes(0));
    directory.state().remove_faults = [Fault::Error(EIO)].into();
    fill(&log, 0..15);
    assert_eq!(starts(&directory), [0, 100]);
    fill(&log, 15..25);
    assert_eq!(starts(&directory), [200]);
}

#[test]
fn the_log_is_marked_as_failed_if_the_directory_sync_fails_after_segments_expire() {
    let (directory, log) = create(options().with_retention_bytes(0));
    fill(&log, 0..10);
    // The first result is for syncing the name of the new segment.
    directory.state().sync_faults = [Fault::None, Fault::Error(EIO)].into();
    assert_eq!(write_error(log.append(b"010")), (Some(EIO), 100, false));
    assert_eq!(write_error(log.append(b"010")), (Some(EIO), 100, false));
    assert!(log.status().has_failed);
}

// The table of failures -------------------------------------------------------------------------

#[test]
fn a_failed_sync_of_the_old_segment_marks_the_log_as_failed() {
    let (directory, log) = create(options());
    fill(&log, 0..10);
    directory.file(0).state().sync_faults = [Fault::Error(EIO)].into();
    assert_eq!(write_error(log.append(b"010")), (Some(EIO), 0, false));
    assert_eq!(write_error(log.append(b"011")), (Some(EIO), 0, false));
    assert_eq!(write_error(log.rotate()), (Some(EIO), 0, false));
    assert_eq!(write_error(log.prune_before(0)), (Some(EIO), 0, false));
    assert!(log.status().has_failed);
    assert_eq!(starts(&directory), [0]);
}

/// Only a part of a record was written, and it could not be truncated.
#[test]
fn a_failed_truncation_of_the_old_segment_marks_the_log_as_failed() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..9);
    {
        let file = directory.file(0);
        let mut state = file.state();
        state.write_faults = [Fault::ErrorAfter(5, ENOSPC)].into();
        state.set_len_faults = [Fault::Error(EIO)].into();
    }
    assert_eq!(write_error(log.append(b"009")), (Some(ENOSPC), 0, false));
    assert_eq!(write_error(log.append(&[7; 40])), (Some(ENOSPC), 0, false));
    assert_eq!(write_error(log.rotate()), (Some(ENOSPC), 0, false));
    assert_eq!(starts(&directory), [0]);
    drop(log);
    let log = open(&directory, options().with_on_torn_tail(OnTornTail::Truncate));
    fill(&log, 9..12);
    assert_eq!(read(&directory), numbers(0..12));
    Ok(())
}

#[test]
fn the_next_append_retries_a_failed_segment_creation() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..9);
    directory.state().create_faults = [Fault::Error(ENOSPC), Fault::Error(EMFILE), Fault::Error(ENOSPC)].into();
    assert_eq!(io_error(log.append(&[7; 40])), Some(ENOSPC));
    assert_eq!(io_error(log.rotate()), Some(EMFILE));
    // A record that fits is appended. The next record that does not fit tries again.
    assert_eq!(
        log.extend([number(9), number(10)]).map_err(|error| error.offset()),
        Err(None)
    );
    assert_eq!((log.offset(), log.status().has_failed), (100, false));
    fill(&log, 10..12);
    assert_eq!(starts(&directory), [0, 100]);
    assert_eq!(read(&directory), numbers(0..12));
    Ok(())
}

/// The old segment must not grow past the offset in the name of an existing segment.
#[test]
fn a_leftover_file_from_a_failed_segment_creation_marks_the_log_as_failed() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..9);
    {
        let mut state = directory.state();
        state.create_faults = [Fault::Error(EMFILE)].into();
        state.leaves_file = true;
    }
    assert_eq!(write_error(log.append(&[7; 40])), (Some(EMFILE), 90, false));
    assert_eq!(write_error(log.append(b"009")), (Some(EMFILE), 90, false));
    drop(log);
    let log = open(&directory, options());
    assert_eq!(log.append(b"009")?, 90);
    assert_eq!(read(&directory), numbers(0..10));
    Ok(())
}

#[test]
fn a_failed_directory_sync_marks_the_segmented_log_as_failed() {
    let (directory, log) = create(options());
    fill(&log, 0..10);
    directory.state().sync_faults = [Fault::None, Fault::Error(EIO)].into();
    assert_eq!(write_error(log.append(b"010")), (Some(EIO), 100, false));
    assert_eq!(write_error(log.append(b"010")), (Some(EIO), 100, false));
    assert_eq!(directory.files()[&100].len(), 0);
    // After a removal, a crash could bring back the removed segment, but not a later one.
    let (directory, log) = create(options());
    fill(&log, 0..35);
    directory.state().sync_faults = [Fault::Error(EIO)].into();
    assert_eq!(write_error(log.prune_before(300)), (Some(EIO), 300, false));
    assert_eq!(starts(&directory), [100, 200, 300]);
    assert_eq!(write_error(log.append(b"035")), (Some(EIO), 300, false));
}

/// A directory in which another thread starts a segment while pruning waits for the disk.
#[derive(Debug)]
struct RotatedMeanwhile {
    directory: DirectoryDouble,
    log: OnceLock<Weak<SegmentedLog>>,
}

impl Directory for RotatedMeanwhile {
    fn list(&self) -> Result<Vec<Segment>, Error> {
        self.directory.list()
    }

    fn open(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        self.directory.open(offset)
    }

    fn create(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        self.directory.create(offset)
    }

    fn has(&self, offset: u64) -> bool {
        self.directory.has(offset)
    }

    fn remove(&self, offset: u64) -> Result<(), Error> {
        self.directory.remove(offset)
    }

    fn age_of(&self, offset: u64) -> Option<Duration> {
        self.directory.age_of(offset)
    }

    fn sync(&self) -> io::Result<()> {
        let log = self.log.get().and_then(Weak::upgrade).expect("the log");
        assert_eq!(log.rotate().expect("a segment"), 350);
        Err(io::Error::from_raw_os_error(EIO))
    }
}

#[test]
fn a_failed_sync_after_a_concurrent_removal_marks_the_log_as_failed() -> Result<(), Error> {
    let directory = Arc::new(RotatedMeanwhile {
        directory: DirectoryDouble::default(),
        log: OnceLock::new(),
    });
    let options = options().with_retention_time(Duration::ZERO);
    let log = Arc::new(SegmentedLog::open_in(directory.clone(), options)?);
    directory.log.set(Arc::downgrade(&log)).expect("one log");
    fill(&log, 0..35);
    // Starting a segment does not wait for the thread that prunes, even if there are old segments
    // to remove.
    directory.directory.state().ages = [(100, Duration::MAX)].into();
    assert_eq!(write_error(log.prune_before(300)), (Some(EIO), 350, false));
    assert_eq!(write_error(log.append(b"035")), (Some(EIO), 350, false));
    assert!(log.status().has_failed);
    Ok(())
}

#[test]
fn a_log_recovers_from_a_crash_before_the_next_segment_is_created() -> Result<(), Error> {
    let bytes = |count| {
        (0..count)
            .flat_map(|index| common::fragment(1, &number(index)))
            .collect::<Vec<u8>>()
    };
    let directory = DirectoryDouble::with_files([(0, bytes(10))]);
    let log = open(&directory, options());
    fill(&log, 10..12);
    assert_eq!(starts(&directory), [0, 100]);
    assert_eq!(read(&directory), numbers(0..12));
    Ok(())
}

#[test]
fn a_log_recovers_from_a_crash_after_the_next_segment_is_created() -> Result<(), Error> {
    let bytes = (0..10).flat_map(|index| common::fragment(1, &number(index))).collect();
    let directory = DirectoryDouble::with_files([(0, bytes), (100, Vec::new())]);
    let log = open(&directory, options());
    assert_eq!((log.offset(), log.durable_offset()), (100, 100));
    fill(&log, 10..12);
    assert_eq!(starts(&directory), [0, 100]);
    assert_eq!(read(&directory), numbers(0..12));
    Ok(())
}

#[test]
fn recovers_from_a_crash_while_writing_the_mark_of_a_packed_segment() -> Result<(), Error> {
    let (whole, log) = create(packed());
    log.append(b"one")?;
    let next = log.rotate()?;
    log.append(b"two")?;
    log.close()?;
    let files = whole.files();
    for len in 0..=17 {
        let cut = (next, files[&next][..len].to_vec());
        let directory = DirectoryDouble::with_files([(0, files[&0].clone()), cut]);
        // The dialect is not named. The segment before shows it.
        let log = open(&directory, options().with_on_torn_tail(OnTornTail::Truncate));
        let tail = log.discarded_tail().map(|region| (region.start, region.end));
        assert_eq!(
            tail,
            (0 < len && len < 17).then_some((next, next + len as u64)),
            "{len} bytes"
        );
        assert_eq!(log.rotate()?, next, "{len} bytes");
        assert_eq!(log.append(b"two")?, next + 17, "{len} bytes");
        log.close()?;
        assert_eq!(directory.files(), files, "{len} bytes");
        let directory = DirectoryDouble::with_files([(0, files[&0].clone()), (next, files[&next][..len].to_vec())]);
        let refused = SegmentedLog::open_in(directory.arc(), options());
        assert_eq!(refused.is_err(), 0 < len && len < 17, "{len} bytes: {refused:?}");
    }
    Ok(())
}

/// A file system may keep the length of a file but lose its bytes.
#[test]
fn a_packed_segment_that_contains_only_zeros_after_a_crash_is_recovered() -> Result<(), Error> {
    let (whole, log) = create(packed());
    log.append(b"one")?;
    let next = log.rotate()?;
    log.append(b"two")?;
    log.close()?;
    let files = whole.files();
    for len in [17, 100, 2 * BLOCK_LEN] {
        let directory = DirectoryDouble::with_files([(0, files[&0].clone()), (next, vec![0; len])]);
        let leveldb = options().with_dialect(Dialect::LEVELDB);
        let refused = SegmentedLog::open_in(directory.arc(), leveldb.with_on_torn_tail(OnTornTail::Truncate));
        assert_error!(refused, ErrorKind::WrongDialect { .. });
        let log = open(&directory, options().with_on_torn_tail(OnTornTail::Truncate));
        assert_eq!(log.append(b"two")?, next + 17, "{len} zeros");
        log.close()?;
        assert_eq!(directory.files(), files, "{len} zeros");
    }
    Ok(())
}

/// The previous segment ends where this one starts. So this segment is a part of the log, whatever
/// its bytes are.
#[test]
fn a_last_segment_without_a_valid_fragment_is_padded() {
    let mut damaged = [&[0x81, 0x82, 0x83, 0x84, 72, 0, 1][..], &[0xff; 505]].concat();
    damaged.resize(3000, 0);
    let pad = options().with_on_torn_tail(OnTornTail::PadToBlock);
    for options in [pad.clone(), pad.with_dialect(Dialect::LEVELDB)] {
        let directory = DirectoryDouble::with_files([(0, common::fragment(1, b"one")), (10, damaged.clone())]);
        let log = open(&directory, options);
        assert_eq!(log.offset(), 10 + BLOCK_LEN as u64);
    }
}

#[test]
fn a_last_segment_containing_a_few_bytes_of_text_is_padded() {
    let directory = DirectoryDouble::with_files([(0, common::fragment(1, b"one")), (10, b"a line\n".to_vec())]);
    let log = open(&directory, options().with_on_torn_tail(OnTornTail::PadToBlock));
    assert_eq!(log.offset(), 10 + BLOCK_LEN as u64);
}

/// If the directory already had its lock file, the segment is a part of the log. Otherwise, it is a
/// file of another format.
#[test]
fn a_last_segment_containing_text_is_padded_if_the_lock_file_already_existed() {
    for had_lock in [false, true] {
        let directory = DirectoryDouble::with_files([(0, b"a line of text\n".repeat(100))]);
        directory.state().had_lock = had_lock;
        let opened = SegmentedLog::open_in(directory.arc(), options().with_on_torn_tail(OnTornTail::PadToBlock));
        match opened.map_err(|error| error.kind) {
            Ok(log) if had_lock => assert_eq!(log.offset(), BLOCK_LEN as u64),
            Err(ErrorKind::Foreign { .. }) if !had_lock => {}
            other => panic!("with a lock: {had_lock}: {other:?}"),
        }
    }
}

#[test]
fn a_last_segment_without_a_valid_fragment_is_truncated() {
    // The machine stopped before the first sector reached the disk.
    let lost = [&[0; 512][..], &[b'x'; 3000]].concat();
    let directory = DirectoryDouble::with_files([(0, common::fragment(1, b"one")), (10, lost)]);
    let log = open(&directory, options().with_on_torn_tail(OnTornTail::Truncate));
    assert_eq!(log.offset(), 10);
    assert_eq!(directory.files()[&10], b"");
}

#[test]
fn a_torn_tail_in_the_last_segment_is_truncated() -> Result<(), Error> {
    let torn = || {
        let bytes = |numbers: std::ops::Range<usize>| numbers.flat_map(|index| common::fragment(1, &number(index)));
        let mut last: Vec<u8> = bytes(10..13).collect();
        last.truncate(27);
        DirectoryDouble::with_files([(0, bytes(0..10).collect()), (100, last)])
    };
    let directory = torn();
    let refused = SegmentedLog::open_in(directory.arc(), options());
    assert_error!(refused, ErrorKind::TornTail { .. });
    assert_eq!(region(refused), (120, 127, Reason::TornTail));

    let log = open(&directory, options().with_on_torn_tail(OnTornTail::Truncate));
    let tail = log.discarded_tail().expect("a torn tail");
    assert_eq!((tail.start, tail.end), (120, 127));
    assert_eq!(log.append(b"012")?, 120);
    assert_eq!(read(&directory), numbers(0..13));

    let directory = torn();
    let log = open(&directory, options().with_on_torn_tail(OnTornTail::PadToBlock));
    // The padding fills the block, and the next record starts a new segment.
    let next = 100 + BLOCK_LEN as u64;
    assert_eq!(log.append(b"012")?, next);
    assert_eq!(starts(&directory), [0, 100, next]);
    Ok(())
}

#[test]
fn a_change_in_the_length_of_an_older_segment_is_reported() {
    for (lens, start, end, reason) in [
        ([100, 99, 50], 199, 200, Reason::MissingSegment),
        ([100, 0, 50], 100, 200, Reason::MissingSegment),
        ([100, 103, 50], 200, 203, Reason::GrownSegment),
        ([70, 103, 50], 70, 100, Reason::MissingSegment),
    ] {
        let files = (0..).step_by(100).zip(lens).map(|(offset, len)| (offset, vec![0; len]));
        let directory = DirectoryDouble::with_files(files);
        for on_torn_tail in [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock] {
            let refused = SegmentedLog::open_in(directory.arc(), options().with_on_torn_tail(on_torn_tail));
            assert_eq!(
                refused.as_ref().map_err(|error| error.hint).err(),
                Some(Some(Hint::Salvage))
            );
            assert_eq!(region(refused), (start, end, reason));
        }
        assert_eq!((directory.ops(), directory.state().opened.len()), (vec![], 0));
    }
}

#[test]
fn a_missing_middle_segment_is_damage_but_a_missing_first_segment_is_not() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..35);
    log.close()?;
    directory.state().files.remove(&0);
    // If the missing segment is at the start, it was pruned.
    let log = open(&directory, options());
    assert_eq!((log.first_offset(), log.offset()), (100, 350));
    log.close()?;
    directory.state().files.remove(&200);
    let refused = SegmentedLog::open_in(directory.arc(), options());
    assert_eq!(region(refused), (200, 300, Reason::MissingSegment));
    Ok(())
}

#[test]
fn a_crash_during_pruning_loses_only_the_oldest_segments() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..45);
    let before = directory.ops().len();
    log.prune_before(400)?;
    // The oldest segment is removed first, and each removal is synced before the next one.
    let removed: Vec<DirectoryOp> = [0, 100, 200, 300]
        .into_iter()
        .flat_map(|offset| [DirectoryOp::Remove(offset), DirectoryOp::Sync])
        .collect();
    assert_eq!(directory.ops()[before..], removed);
    Ok(())
}

#[test]
fn rejects_a_second_writer_for_the_same_directory() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("orders");
    let log = SegmentedLog::open(&path, options())?;
    let is_locked = |result: Result<(), Error>, named: &Path| matches!(&result, Err(Error { path: Some(path), kind: ErrorKind::Locked, .. }) if **path == *named);
    for start in [0, 100] {
        fill(&log, start / 10..start / 10 + 10);
        assert!(is_locked(SegmentedLog::open(&path, options()).map(drop), &path));
        // The last file cannot be opened on its own either.
        let last = path.join(name_of(start as u64));
        assert!(is_locked(LogFile::append_to(&last, options()).map(drop), &last));
        assert!(is_locked(LogFile::create(&last, options()).map(drop), &last));
    }
    log.close()?;
    SegmentedLog::open(&path, options())?.close()?;
    Ok(())
}

#[test]
fn a_fork_is_detected() -> Result<(), Error> {
    let process = Arc::new(AtomicU32::new(1));
    let directory = DirectoryDouble::default();
    directory.state().process = Process::simulated(Arc::clone(&process));
    let shared = directory.arc();
    let log = SegmentedLog::open_in(Arc::clone(&shared), options().with_flush(FlushPolicy::OnClose))?;
    fill(&log, 0..15);
    let ops = directory.ops();
    process.store(2, Relaxed);
    let is_forked = |result: Result<(), Error>| {
        matches!(
            result,
            Err(Error {
                kind: ErrorKind::Forked,
                ..
            })
        )
    };
    assert!(is_forked(log.append(b"015").map(drop)));
    assert!(is_forked(log.append_sync(b"015").map(drop)));
    assert!(is_forked(log.try_append(b"015").map(drop)));
    // The segment has no room for this record.
    assert!(is_forked(log.try_append(&[7; 100]).map(drop)));
    assert!(is_forked(log.extend([b"015"]).map(drop)));
    assert!(is_forked(log.rotate().map(drop)));
    assert!(is_forked(log.prune_before(100).map(drop)));
    assert!(is_forked(log.flush()));
    assert!(is_forked(log.sync()));
    assert!(is_forked(log.wait_durable(10)));
    log.close()?;
    // Closing releases the directory and the file. The double of the directory and this call still
    // hold the file.
    assert_eq!((Arc::strong_count(&shared), directory.file(100).holders()), (1, 2));
    drop(log);
    assert_eq!(directory.ops(), ops);
    Ok(())
}

/// The other thread does not exist in the child, so it would never release the lock.
#[test]
fn forking_while_another_thread_prunes_does_not_block_the_child() -> Result<(), Error> {
    let process = Arc::new(AtomicU32::new(1));
    let directory = DirectoryDouble::default();
    directory.state().process = Process::simulated(Arc::clone(&process));
    let shared = directory.arc();
    let log = SegmentedLog::open_in(Arc::clone(&shared), options())?;
    fill(&log, 0..15);
    std::thread::scope(|scope| {
        let busy = directory.state();
        let parent = scope.spawn(|| log.prune_before(100));
        // The log, this function and the thread that removes a segment each hold the directory.
        until(|| Arc::strong_count(&shared) == 3);
        process.store(2, Relaxed);
        let (sender, receiver) = std::sync::mpsc::channel();
        let log = &log;
        scope.spawn(move || sender.send(log.prune_before(100).map_err(|error| error.kind)));
        let answer = receiver.recv_timeout(HANG);
        process.store(1, Relaxed);
        drop(busy);
        assert!(matches!(answer, Ok(Err(ErrorKind::Forked))), "{answer:?}");
        assert_eq!(parent.join().expect("no panic")?, 100);
        Ok(())
    })
}

/// The other thread does not exist in the child, so it would never release the lock.
#[test]
fn forking_while_another_thread_appends_does_not_block_the_child() {
    let process = Arc::new(AtomicU32::new(1));
    let directory = DirectoryDouble::default();
    directory.state().process = Process::simulated(Arc::clone(&process));
    let log = open(&directory, options());
    let (started, ended) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let parent = scope.spawn(|| {
            log.extend((0..2).map(|index| {
                started.wait();
                ended.wait();
                number(index)
            }))
        });
        for _ in 0..2 {
            started.wait();
            process.store(2, Relaxed);
            let (sender, receiver) = std::sync::mpsc::channel();
            let child = scope.spawn(|| {
                let sender = sender;
                let is_forked = matches!(
                    log.append(b"x"),
                    Err(Error {
                        kind: ErrorKind::Forked,
                        ..
                    })
                );
                let _ = sender.send((is_forked, log.close().is_ok(), log.status().has_failed));
            });
            let answer = receiver.recv_timeout(HANG);
            process.store(1, Relaxed);
            ended.wait();
            child.join().expect("no panic");
            assert_eq!(answer, Ok((true, true, true)));
        }
        assert_eq!(parent.join().expect("no panic").expect("an append"), 2);
    });
}

/// Bytes that an earlier process could not sync are written again from the checkpoint on. The
/// checkpoint is a log offset.
#[test]
fn bytes_left_unsynced_by_an_earlier_process_are_rewritten() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..15);
    log.close()?;
    let rewritten = |checkpoint: u64| {
        let before = directory.ops().len();
        let log = open(&directory, options().with_checkpoint(checkpoint));
        drop(log);
        let ops = directory.ops().split_off(before);
        let range = |op| match op {
            DirectoryOp::File(base, Op::Write { offset, bytes }) => (base, offset, bytes.len()),
            other => panic!("{other:?}"),
        };
        ops.into_iter().map(range).collect::<Vec<_>>()
    };
    assert_eq!(rewritten(120), [(100, 20, 30)]);
    assert_eq!(rewritten(100), [(100, 0, 50)]);
    // Everything before the last segment was on the disk when that segment was created.
    assert_eq!(rewritten(40), [(100, 0, 50)]);
    assert_eq!(rewritten(150), []);
    for checkpoint in [151, 105] {
        let refused = SegmentedLog::open_in(directory.arc(), options().with_checkpoint(checkpoint));
        assert!(refused.is_err(), "{refused:?}");
    }
    let empty = SegmentedLog::open_in(DirectoryDouble::default().arc(), options().with_checkpoint(1));
    assert_error!(empty, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    Ok(())
}

#[test]
fn the_bytes_of_a_failed_write_are_removed_from_the_segment() -> Result<(), Error> {
    let (directory, log) = create(options());
    fill(&log, 0..15);
    directory.file(100).state().write_faults = [Fault::ErrorAfter(5, ENOSPC)].into();
    assert_eq!(write_error(log.append(b"015")), (Some(ENOSPC), 100, true));
    fill(&log, 15..25);
    assert_eq!(read(&directory), numbers(0..25));
    Ok(())
}

#[test]
fn every_call_fails_after_an_iterator_panics() {
    let (_, log) = create(options());
    fill(&log, 0..9);
    let panics = (9..15).map(|index| {
        if index < 13 {
            number(index)
        } else {
            panic!("a fault of the test")
        }
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log.extend(panics)));
    assert!(result.is_err());
    assert_eq!(write_error(log.append(b"013")), (None, 100, false));
    assert!(log.status().has_failed);
    assert_eq!(log.try_status(), Some(log.status()));
}

// On the disk -----------------------------------------------------------------------------------

#[test]
fn a_segmented_log_on_disk_can_be_written_and_pruned_and_reopened() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("orders");
    let log = SegmentedLog::open(&path, options())?;
    assert_eq!(log.path(), Some(&*path));
    fill(&log, 0..35);
    assert_eq!(log.prune_before(150)?, 100);
    log.close()?;
    let segments = list(&path)?;
    assert_eq!(
        segments.iter().map(|segment| segment.offset).collect::<Vec<_>>(),
        [100, 200, 300]
    );
    assert_eq!(breaks(&segments).next(), None);
    assert!(path.join("LOCK").exists());
    let log = SegmentedLog::open(&path, options())?;
    fill(&log, 35..45);
    drop(log);
    let mut reader = Reader::open(path.join(name_of(400)))?;
    assert_eq!(
        reader.next_record()?.map(|record| record.data.to_vec()),
        Some(number(40))
    );
    Ok(())
}

/// The name of such a file would not be the name of a segment, and the directory would not be a
/// log.
#[test]
fn no_segment_starts_past_the_largest_offset() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let greatest = i64::MAX as u64;
    fs::write(directory.path().join(name_of(greatest - 10)), b"").expect("a file");
    let log = SegmentedLog::open(directory.path(), options())?;
    log.append(b"000")?;
    assert_eq!(log.rotate()?, greatest);
    assert_eq!(log.prune_before(greatest)?, greatest);
    assert_eq!(log.append(b"one")?, greatest);
    let error = log.rotate().expect_err("no offset is left");
    assert!(matches!(&error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge));
    assert_eq!(log.append(b"two")?, greatest + 10);
    log.close()?;
    assert_eq!(
        list(directory.path())?,
        [Segment {
            offset: greatest,
            len: 20
        }]
    );
    let mut reader = Reader::open(directory.path())?;
    let offsets = reader.records().map(|record| record.map(|record| record.offset));
    assert_eq!(offsets.collect::<Result<Vec<_>, _>>()?, [greatest, greatest + 10]);
    Ok(())
}

#[test]
fn opening_a_directory_with_other_files_does_not_change_it() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("000003.log"), b"").expect("a file");
    let error = SegmentedLog::open(directory.path(), options()).expect_err("a database");
    assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
    assert_eq!(error.path.as_deref(), Some(&*directory.path().join("000003.log")));
    assert_eq!(error.hint, Some(Hint::OwnDirectory));
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    fs::remove_file(directory.path().join("000003.log")).expect("no file");
    fs::create_dir(directory.path().join("LOCK")).expect("a directory");
    let error = SegmentedLog::open(directory.path(), options()).expect_err("no lock");
    assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
    assert_eq!(error.path.as_deref(), Some(&*directory.path().join("LOCK")));
    assert_eq!(error.hint, Some(Hint::OwnDirectory));
    let missing = SegmentedLog::open(directory.path().join("a/b"), options());
    assert_error!(missing, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    let missing = SegmentedLog::open(directory.path().join("a"), options().with_checkpoint(1));
    assert_error!(missing, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    assert!(!directory.path().join("a").exists());
    if cfg!(target_os = "linux") {
        // A directory cannot be created there. The error must give the real reason, and not say
        // that the directory does not exist.
        let refused = SegmentedLog::open("/sys/log", options());
        assert_error!(refused, ErrorKind::Io { source, .. } if source.kind() != io::ErrorKind::NotFound);
    }
}

/// The `LOCK` file of a database is not locked, and it does not matter who has locked it.
#[test]
fn opening_a_database_directory_that_is_in_use_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("000003.log"), b"").expect("a file");
    let lock = fs::File::create(directory.path().join(LOCK_NAME)).expect("a file");
    lock.lock().expect("a lock");
    let error = SegmentedLog::open(directory.path(), options()).expect_err("a database");
    assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
}

/// If the machine stops before a byte of its first record reaches the disk, only its name shows
/// that the first segment is a segment.
#[test]
fn a_lost_first_segment_is_recovered_if_the_lock_file_exists() -> Result<(), Error> {
    let lost = |rest: &[u8]| [&[0; 512][..], rest].concat();
    let files = [
        lost(&[b'x'; 3_000]),
        lost(b"{\"item\": \"two coffees\"}"),
        lost(&[0xa5; 3_000]),
    ];
    for (bytes, policy) in files.iter().flat_map(|bytes| {
        [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock].map(|policy| (bytes, policy))
    }) {
        for dialect in [None, Some(Dialect::LEVELDB), Some(Dialect::PACKED)] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join(name_of(0));
            fs::write(&path, bytes).expect("a file");
            let options = LogFileOptions::default()
                .with_on_torn_tail(policy)
                .with_dialect(dialect);
            // A single file is also padded if its dialect is named.
            let is_padded = policy == OnTornTail::PadToBlock && dialect.is_some();
            // The first attempt must not leave a lock file, because the second attempt would then
            // succeed.
            for _ in 0..if is_padded { 0 } else { 2 } {
                let error = SegmentedLog::open(directory.path(), options.clone()).expect_err("no log");
                let kind = &error.kind;
                assert!(
                    matches!(kind, ErrorKind::Corruption { .. } | ErrorKind::Foreign { .. }),
                    "{error}"
                );
                assert!(!directory.path().join(LOCK_NAME).exists());
                assert_eq!(fs::read(&path).expect("a file"), *bytes);
            }
            fs::write(directory.path().join(LOCK_NAME), "").expect("a file");
            for number in 0..3 {
                let opened = SegmentedLog::open(directory.path(), options.clone());
                if policy == OnTornTail::Refuse {
                    assert!(matches!(opened.expect_err("damage").kind, ErrorKind::Corruption { .. }));
                    continue;
                }
                let log = opened?;
                assert_eq!(log.discarded_tail().is_some(), number == 0);
                log.append(b"one")?;
                log.close()?;
            }
        }
    }
    Ok(())
}

#[test]
fn errors_contain_the_path_that_the_caller_passed() -> Result<(), Error> {
    let directory = tempfile::tempdir_in(".").expect("a directory");
    let given = Path::new(directory.path().file_name().expect("a name"));
    let path_of = |failed: Result<u64, Error>| failed.expect_err("a failure").path.expect("a path");
    fs::write(given.join("notes"), b"").expect("a file");
    let refused = SegmentedLog::open(given, options()).map(|_| 0);
    assert_eq!(*path_of(refused), given.join("notes"));
    fs::remove_file(given.join("notes")).expect("a file");
    let log = SegmentedLog::open(given, options())?;
    fill(&log, 0..15);
    // If a directory is in place of a file, the file cannot be removed.
    fs::remove_file(given.join(name_of(0))).expect("a segment");
    fs::create_dir(given.join(name_of(0))).expect("a directory");
    assert_eq!(*path_of(log.prune_before(100)), given.join(name_of(0)));
    fs::remove_file(given.join(LOCK_NAME)).expect("a lock");
    assert_eq!(*path_of(log.prune_before(100)), *given);
    Ok(())
}

/// If `append` did not fail, the active segment would grow past the start of the next one.
#[test]
fn appending_fails_if_the_next_segment_already_exists() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), options())?;
    fill(&log, 0..5);
    fs::write(directory.path().join(name_of(50)), b"").expect("a file");
    log.rotate().expect_err("the name is taken");
    log.append(b"005").expect_err("the log has failed");
    assert_eq!(
        fs::metadata(directory.path().join(name_of(0)))
            .expect("a segment")
            .len(),
        50
    );
    Ok(())
}

#[test]
fn pruning_ignores_missing_segments_but_reports_failed_removals() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), options())?;
    fill(&log, 0..25);
    let first = directory.path().join(name_of(0));
    fs::remove_file(&first).expect("a segment");
    fs::create_dir(&first).expect("a directory in the place of the segment");
    let error = log.prune_before(100).expect_err("a directory is not removed");
    assert_eq!(error.path.as_deref(), Some(&*first));
    assert_eq!(log.first_offset(), 0);
    fs::remove_dir(&first).expect("an empty directory");
    assert_eq!(log.prune_before(100)?, 100);
    Ok(())
}

#[cfg(unix)] // Windows cannot move a directory with an open file.
#[test]
fn never_creates_a_segment_in_a_directory_that_replaced_the_log() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("orders");
    let log = SegmentedLog::open(&path, options())?;
    fill(&log, 0..10);
    fs::rename(&path, directory.path().join("moved")).expect("a directory that can be moved");
    let other = SegmentedLog::open(&path, options())?;
    let refused = log.append(b"010");
    assert_error!(refused, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    fill(&other, 0..1);
    assert_eq!(list(&path)?.len(), 1);
    Ok(())
}

#[cfg(unix)] // Windows cannot move such a directory.
#[test]
fn never_prunes_segments_in_a_directory_that_replaced_the_log() -> Result<(), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("orders");
    let log = SegmentedLog::open(&path, options())?;
    fill(&log, 0..25);
    fs::rename(&path, directory.path().join("moved")).expect("a directory that can be moved");
    let other = SegmentedLog::open(&path, options())?;
    fill(&other, 0..25);
    let refused = log.prune_before(200);
    assert_error!(refused, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    assert_eq!(list(&path)?.len(), 3);
    assert_eq!(list(&directory.path().join("moved"))?.len(), 3);
    Ok(())
}
