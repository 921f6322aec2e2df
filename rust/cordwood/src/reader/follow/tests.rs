//! Tests a follower whose file changes between two of its calls to the operating system.
//!
//! A follower's poll makes several such calls, so one call can see a file before a write, and the
//! next call can see it after the write. These tests use small logs, and try each write before the
//! first call, before the second call, and so on. All the writes are valid, so the follower must
//! return each record once and in order, and report no damage. Retries are turned off, so bytes
//! that look damaged would be reported at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::{FollowOptions, Follower, Poll};
use crate::damage::Severity;
use crate::dialect::{Dialect, LogFormat};
use crate::encode::Encoder;
use crate::file::tests::with_calls;
use crate::format::{BLOCK_LEN, HEADER_LEN};
use crate::segments::name_of;

/// The tests try each write before the first call, before the second call, and so on, up to this
/// call. Later writes happen between two polls.
const CALLS: usize = 9;

/// One write, creation or renaming of a file.
type Change = Box<dyn FnOnce()>;

/// Formats that are detected in different ways.
fn formats() -> Vec<LogFormat> {
    let mut formats: Vec<LogFormat> = [
        Dialect::LEVELDB,
        Dialect::PACKED,
        Dialect::WANDB,
        Dialect::SWANLAB,
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
    ]
    .map(LogFormat::new)
    .into();
    formats.extend([Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| LogFormat::new(dialect).with_log_number(7)));
    if cfg!(feature = "zstd") {
        let packed = LogFormat::new(Dialect::PACKED);
        formats.push(packed.with_compression(crate::dialect::Compression::Zstd));
    }
    formats
}

/// Returns records, including one that spans two blocks and one that spans three. Once a follower
/// sees a later block, it knows that the earlier ones are complete, including the bytes that
/// determine the format.
fn records() -> Vec<Vec<u8>> {
    [5, 40_000, 10, 70_000, 3]
        .iter()
        .zip(b'a'..)
        .map(|(&len, byte)| vec![byte; len])
        .collect()
}

fn encoded(format: LogFormat, records: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = Encoder::with_format(0, format).expect("a format that can be written");
    let mut log = Vec::new();
    for record in records {
        encoder.encode(record, &mut log);
    }
    encoder.finish(&mut log);
    log
}

/// Returns offsets where a write may end: near the start of the file, near the block boundaries,
/// and near the end.
fn cuts(len: usize) -> Vec<usize> {
    let near = |at: usize| {
        [
            at.saturating_sub(HEADER_LEN),
            at.saturating_sub(1),
            at,
            at + 1,
            at + HEADER_LEN,
            at + 20,
        ]
    };
    let mut cuts: Vec<usize> = (1..=len / BLOCK_LEN)
        .flat_map(|block| near(block * BLOCK_LEN))
        .chain(near(HEADER_LEN + 7))
        .chain(near(len))
        .filter(|&cut| cut <= len)
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Appends to a file, or overwrites a part of it.
fn write(path: &Path, offset: usize, bytes: &[u8]) -> Change {
    let (path, bytes) = (path.to_owned(), bytes.to_owned());
    Box::new(move || {
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .expect("the file");
        file.seek(SeekFrom::Start(offset as u64)).expect("a position");
        file.write_all(&bytes).expect("room");
    })
}

/// Returns all non-decreasing lists of `count` call numbers, none greater than [`CALLS`].
fn schedules(count: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..count {
        lists = lists
            .into_iter()
            .flat_map(|list: Vec<usize>| {
                let first = list.last().copied().unwrap_or(1);
                (first..=CALLS).map(move |call| [list.as_slice(), &[call]].concat())
            })
            .collect();
    }
    lists
}

/// Follows `path`. Makes each change just before the call whose number `schedule` gives. If a poll
/// finds nothing new before that call, makes the change after the poll. Returns the records and the
/// format.
fn follow(path: &Path, changes: Vec<Change>, schedule: &[usize], is_rotated: bool) -> (Vec<Vec<u8>>, LogFormat) {
    let options = FollowOptions::default().with_retry(0, Duration::ZERO);
    let mut follower = Follower::open_with(path, options).expect("the file exists");
    let left: VecDeque<(usize, Change)> = schedule.iter().copied().zip(changes).collect();
    let left = Rc::new(RefCell::new(left));
    let count = Rc::new(Cell::new(0));
    let (to_come, calls) = (Rc::clone(&left), Rc::clone(&count));
    let before = move || {
        calls.set(calls.get() + 1);
        while to_come.borrow().front().is_some_and(|(call, _)| *call <= calls.get()) {
            let change = to_come.borrow_mut().pop_front();
            change.into_iter().for_each(|(_, change)| change());
        }
    };
    let found = with_calls(before, || {
        let mut found = Vec::new();
        loop {
            let left_before = left.borrow().len();
            match follower.poll() {
                Ok(Poll::Record(record)) => found.push(record.data.to_vec()),
                Ok(Poll::Skipped(region)) => {
                    assert_ne!(
                        region.reason.severity(),
                        Severity::Corruption,
                        "{region:?} {schedule:?}"
                    );
                }
                Ok(Poll::NotYet(not_yet)) => {
                    // If the files changed during a poll, the poll may have missed the change.
                    if follower.is_probing() || left.borrow().len() < left_before {
                        continue;
                    }
                    let next = left.borrow_mut().pop_front();
                    match next {
                        Some((_, change)) => change(),
                        None if is_rotated => panic!("{not_yet:?} {schedule:?}"),
                        None => break,
                    }
                }
                Ok(Poll::Rotated { .. }) if is_rotated => break,
                // Pebble's end trailer ends the log.
                Ok(Poll::End(_)) => break,
                other => panic!("{other:?} {schedule:?}"),
            }
        }
        found
    });
    (found, follower.format())
}

fn check(found: &(Vec<Vec<u8>>, LogFormat), format: LogFormat, what: &str) {
    let lens = |records: &[Vec<u8>]| records.iter().map(Vec::len).collect::<Vec<_>>();
    assert!(found.0 == records(), "{what}: {:?}", lens(&found.0));
    let is_same = found.1.dialect.is_packed() == format.dialect.is_packed() && found.1.log_number == format.log_number;
    assert!(is_same, "{what}: {:?}", found.1);
}

/// Follows a log that is written in two parts into a zero-filled file. Given the length of the log,
/// `lens` returns the lengths to try for that file.
fn check_two_writes(lens: impl Fn(usize) -> Vec<usize>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("live");
    for format in formats() {
        let log = encoded(format, &records());
        for len in lens(log.len()) {
            for schedule in schedules(2) {
                for cut in cuts(log.len()) {
                    fs::write(&path, vec![0; len]).expect("room");
                    let changes = vec![write(&path, 0, &log[..cut]), write(&path, cut, &log[cut..])];
                    let found = follow(&path, changes, &schedule, false);
                    check(&found, format, &format!("{format:?}, {len}, {cut} bytes, {schedule:?}"));
                }
            }
        }
    }
}

#[test]
fn a_log_can_grow_between_any_two_follower_calls() {
    check_two_writes(|_| vec![0]);
}

#[test]
fn a_preallocated_log_can_be_overwritten_between_any_two_follower_calls() {
    // The first length makes the follower read the start of the file in two calls.
    check_two_writes(|log_len| vec![BLOCK_LEN, log_len + BLOCK_LEN]);
}

#[test]
fn a_log_can_be_renamed_between_any_two_follower_calls() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, renamed) = (directory.path().join("live"), directory.path().join("old"));
    for format in formats() {
        let log = encoded(format, &records());
        for schedule in schedules(3) {
            for cut in [0, 20, BLOCK_LEN, log.len()].map(|cut| cut.min(log.len())) {
                fs::write(&path, b"").expect("room");
                let (from, to) = (path.clone(), renamed.clone());
                let rename = move || {
                    fs::rename(&from, to).expect("the file");
                    fs::write(from, b"").expect("room");
                };
                let changes: Vec<Change> = vec![
                    write(&path, 0, &log[..cut]),
                    write(&path, cut, &log[cut..]),
                    Box::new(rename),
                ];
                let found = follow(&path, changes, &schedule, true);
                check(&found, format, &format!("{format:?}, {cut} bytes, {schedule:?}"));
            }
        }
    }
}

#[test]
fn a_segmented_log_can_grow_between_any_two_follower_calls() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    for format in formats().into_iter().filter(|format| format.log_number.is_none()) {
        for first_count in 1..=2 {
            let (first, second) = (
                encoded(format, &records()[..first_count]),
                encoded(format, &records()[first_count..]),
            );
            let file = |offset: usize| -> PathBuf { path.join(name_of(offset as u64)) };
            for schedule in schedules(3) {
                for cut in [0, 10, 20, BLOCK_LEN + 1] {
                    let _ = fs::remove_dir_all(&path);
                    fs::create_dir(&path).expect("room");
                    fs::write(file(0), b"").expect("room");
                    let cut = cut.min(second.len());
                    let changes = vec![
                        write(&file(0), 0, &first),
                        write(&file(first.len()), 0, &second[..cut]),
                        write(&file(first.len()), cut, &second[cut..]),
                    ];
                    let found = follow(&path, changes, &schedule, false);
                    check(
                        &found,
                        format,
                        &format!("{format:?}, {first_count} records, {cut} bytes, {schedule:?}"),
                    );
                }
            }
        }
    }
}
