//! Tests following a segmented log across its files. The expected values are the records that were
//! appended, at the offsets that the writer returned, or hand-built bytes.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::double::HANG;
use crate::wire::Wire;
use cordwood_log::damage::{Reason, Severity, SkippedRegion};
use cordwood_log::follow::{NotYet, Poll, WaitReason};
use cordwood_log::segments::name_of;
use cordwood_log::{
    Dialect, Error, ErrorKind, FollowOptions, Follower, LogFileOptions, LogFormat, OnCorruption, SegmentedLog, Writer,
    WriterOptions,
};

/// Returns the offsets and the data of all records until the follower has no more.
fn drain(follower: &mut Follower) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        match follower.poll().expect("a poll") {
            Poll::Record(record) => all.push((record.offset, record.data.to_vec())),
            // This is the mark of a packed log.
            Poll::Skipped(region) if region.reason.severity() == Severity::Info => {}
            Poll::NotYet(_) => return all,
            other => panic!("{other:?}"),
        }
    }
}

fn options(format: LogFormat) -> LogFileOptions {
    LogFileOptions::default().with_format(format)
}

fn file_of(records: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default()).expect("a writer");
    writer.extend(records).expect("records");
    writer.finish().expect("a log")
}

fn write(directory: &Path, offset: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join(name_of(offset)))
        .expect("a file");
    file.write_all(bytes).expect("bytes");
}

#[test]
fn a_follower_returns_each_record_once_across_many_rotations() {
    for format in [Dialect::LEVELDB.into(), LogFormat::new(Dialect::PACKED)] {
        let directory = tempfile::tempdir().expect("a directory");
        let log = SegmentedLog::open(directory.path(), options(format)).expect("a log");
        let mut follower = Follower::open(directory.path()).expect("a follower");
        let (mut appended, mut followed) = (Vec::new(), Vec::new());
        for round in 0..60_usize {
            for rotation in 0..[0, 1, 2, 20][round % 4] {
                // A file contains several records, one record or none, and some records have
                // several blocks.
                for index in 0..(round + rotation) % 3 {
                    let data = vec![round as u8; [5, 40_000, 0][index] + rotation];
                    appended.push((log.append(&data).expect("an append"), data));
                }
                log.rotate().expect("a rotation");
            }
            log.flush().expect("a flush");
            followed.extend(drain(&mut follower));
            assert!(followed == appended, "{format:?} in round {round}");
            assert_eq!(follower.offset(), log.offset().max(log.first_offset()));
        }
        assert_eq!(follower.format(), format);
    }
}

#[test]
fn a_follower_reads_all_later_segments_no_matter_where_it_starts() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), options(Dialect::LEVELDB.into())).expect("a log");
    let mut appended = Vec::new();
    for index in 0..40_usize {
        let data = vec![index as u8; 1 + index * 700];
        appended.push((log.append(&data).expect("an append"), data));
        if index % 5 == 4 {
            log.rotate().expect("a rotation");
        }
    }
    for (index, (offset, _)) in appended.iter().enumerate() {
        let options = FollowOptions::default().with_start(*offset);
        let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
        assert!(drain(&mut follower) == appended[index..]);
    }
    let end = FollowOptions::default().with_start(log.offset());
    let mut follower = Follower::open_with(directory.path(), end).expect("a follower");
    assert_eq!(drain(&mut follower), []);
    let last = (log.append(b"last").expect("an append"), b"last".to_vec());
    assert_eq!(drain(&mut follower), [last]);
}

#[test]
fn a_follower_reads_each_segment_to_its_end_before_starting_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (file_of(&[b"one"]), file_of(&[b"two"]));
    write(directory.path(), 0, &one);
    let mut follower = Follower::open(directory.path()).expect("a follower");
    assert_eq!(drain(&mut follower), [(0, b"one".to_vec())]);
    // The second record appears in parts. The next file appears while that record is being read.
    write(directory.path(), 0, &two[..4]);
    let answer = follower.poll().expect("a poll");
    let Poll::NotYet(NotYet {
        offset: 10,
        file_len: 14,
        reason: WaitReason::Incomplete,
        ..
    }) = answer
    else {
        panic!("{answer:?}")
    };
    write(directory.path(), 0, &two[4..]);
    write(directory.path(), 20, b"");
    assert_eq!(drain(&mut follower), [(10, b"two".to_vec())]);
    assert_eq!(follower.offset(), 20);
    write(directory.path(), 20, &file_of(&[b"three"]));
    assert_eq!(drain(&mut follower), [(20, b"three".to_vec())]);
}

#[test]
fn errors_contain_the_path_that_the_caller_passed() {
    let directory = tempfile::tempdir_in(".").expect("a directory");
    let given = Path::new(directory.path().file_name().expect("a name"));
    let path_of = |failed: Result<Poll<'_>, Error>| failed.expect_err("a failure").path.expect("a path");
    for start in [0, 10, 20] {
        write(given, start, &file_of(&[b"one"]));
    }
    let early = FollowOptions::default().with_start(5);
    let mut follower = Follower::open(given).expect("a follower");
    for start in [0, 10] {
        fs::remove_file(given.join(name_of(start))).expect("a segment");
    }
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    assert_eq!(*path_of(follower.poll()), *given);
    assert_eq!(
        *Follower::open_with(given, early)
            .expect_err("pruned")
            .path
            .expect("a path"),
        *given
    );
    let mut follower = Follower::open(given).expect("a follower");
    fs::write(given.join("notes"), b"").expect("a file");
    while let Poll::Record(_) = follower.poll().expect("an open log") {}
    let error = Follower::open(given).expect_err("another file");
    assert_eq!(error.path.as_deref(), Some(&*given.join("notes")));
}

#[test]
fn a_follower_of_a_pruned_log_reports_where_the_log_now_starts() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), options(Dialect::LEVELDB.into())).expect("a log");
    let mut ends = vec![0];
    let mut follower = Follower::open(directory.path()).expect("a follower");
    for index in 0..4 {
        log.append(&[index; 10]).expect("an append");
        ends.push(log.rotate().expect("a rotation"));
    }
    log.append(b"last").expect("an append");
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    // The first file has been removed, but the follower has it open, and the second file still
    // exists.
    assert_eq!(log.prune_before(ends[1]).expect("a prune"), ends[1]);
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.offset == ends[1]));
    assert_eq!(log.prune_before(ends[3]).expect("a prune"), ends[3]);
    for _ in 0..3 {
        let Err(Error {
            kind: ErrorKind::Pruned {
                offset, first_offset, ..
            },
            path,
            ..
        }) = follower.poll()
        else {
            panic!("no error")
        };
        assert_eq!((offset, first_offset), (ends[2], ends[3]));
        assert_eq!(path.as_deref(), Some(directory.path()));
    }
    // A new follower starts at an offset that has been pruned, and another one at the start of the
    // log.
    let options = FollowOptions::default().with_start(5);
    let error = Follower::open_with(directory.path(), options).expect_err("pruned");
    assert!(matches!(error.kind, ErrorKind::Pruned { offset: 5, first_offset, .. } if first_offset == ends[3]));
    let mut follower = Follower::open(directory.path()).expect("a follower");
    assert_eq!(follower.offset(), ends[3]);
    assert_eq!(drain(&mut follower).len(), 2);
}

/// Returns the first event that is not a record. It is a region, or damage that is an error.
fn first_region(follower: &mut Follower) -> SkippedRegion {
    for _ in 0..1000 {
        match follower.poll() {
            Ok(Poll::Record(_)) => {}
            Ok(Poll::Skipped(region)) => return region,
            Ok(Poll::NotYet(_)) => std::thread::sleep(Duration::from_millis(1)),
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => return region,
            other => panic!("{other:?}"),
        }
    }
    panic!("no region")
}

#[test]
fn a_follower_continues_past_missing_shortened_or_overlong_segments() {
    let one = file_of(&[b"one", b"two"]);
    let torn = &file_of(&[b"three"])[..9];
    let cases = [
        (&one[..], &b""[..], (20, 300, Reason::MissingSegment)),
        (&one[..10], b"", (10, 300, Reason::MissingSegment)),
        (&one[..15], b"", (10, 300, Reason::MissingSegment)),
        (&one, torn, (20, 300, Reason::MissingSegment)),
        (&one, &[0; 280], (20, 300, Reason::MissingSegment)),
        (&one, &[0; 281], (20, 300, Reason::MissingSegment)),
    ];
    for policy in [OnCorruption::Fail, OnCorruption::Skip] {
        for (file, rest, expected) in cases {
            let directory = tempfile::tempdir().expect("a directory");
            write(directory.path(), 0, file);
            write(directory.path(), 0, rest);
            write(directory.path(), 300, &file_of(&[b"next"]));
            let options = FollowOptions::default().with_on_corruption(policy);
            let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
            let region = first_region(&mut follower);
            assert_eq!(
                (region.start, region.end, region.reason),
                expected,
                "{} {}",
                file.len(),
                rest.len()
            );
            assert_eq!(drain(&mut follower), [(300, b"next".to_vec())]);
        }
    }
}

#[test]
fn does_not_return_bytes_past_the_start_of_the_next_segment() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), 0, &file_of(&[b"one", b"two"]));
    write(directory.path(), 10, &file_of(&[b"next"]));
    let options = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    let expected = [(0, 10, "record"), (10, 10, "grown_segment"), (10, 21, "record")];
    assert_eq!(events(&mut follower, 21), expected);
}

/// A segment has the records [0, 10), [10, 40024) and [40024, 40034). Each row of the table has the
/// flipped byte and the events by `docs/format/reading.md`.
#[test]
fn damage_in_an_older_segment_affects_only_the_records_in_its_block() {
    const BLOCK: u64 = 32_768;
    type Part = (u64, u64, &'static str);
    let cases: [(usize, &[Part]); 3] = [
        (
            2,
            &[
                (0, BLOCK, "checksum_mismatch"),
                (BLOCK, 40_024, "missing_start"),
                (40_024, 40_034, "record"),
            ],
        ),
        (
            12,
            &[
                (0, 10, "record"),
                (10, BLOCK, "checksum_mismatch"),
                (BLOCK, 40_024, "missing_start"),
                (40_024, 40_034, "record"),
            ],
        ),
        (
            39_990,
            &[
                (0, 10, "record"),
                (10, BLOCK, "interrupted_record"),
                (BLOCK, 40_034, "checksum_mismatch"),
            ],
        ),
    ];
    for base in [0, 107] {
        for (at, parts) in cases {
            let directory = tempfile::tempdir().expect("a directory");
            let mut file = file_of(&[b"one", &[7; 40_000], b"two"]);
            file[at] ^= 0x10;
            write(directory.path(), base, &file);
            write(directory.path(), base + 40_034, &file_of(&[b"next"]));
            let mut expected: Vec<_> = parts
                .iter()
                .map(|part| (base + part.0, base + part.1, part.2))
                .collect();
            expected.push((base + 40_034, base + 40_045, "record"));
            let options = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
            let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
            let mut seen = Vec::new();
            while follower.offset() < base + 40_045 {
                seen.push(match follower.poll().expect("a poll") {
                    Poll::Record(record) => (record.offset, record.end_offset, "record"),
                    Poll::Skipped(region) => (region.start, region.end, region.reason.as_str()),
                    other => panic!("{other:?} after {seen:?}"),
                });
            }
            assert_eq!(seen, expected, "byte {at} of the segment at {base}");
        }
    }
}

/// The previous file is not read, so it may be missing, as after pruning, or incomplete.
#[test]
fn starting_at_a_segment_does_not_require_earlier_segments() {
    for file in [None, Some(&b"torn"[..]), Some(&file_of(&[b"one"]))] {
        let directory = tempfile::tempdir().expect("a directory");
        if let Some(file) = file {
            write(directory.path(), 100, file);
        }
        write(directory.path(), 110, &file_of(&[b"two"]));
        let options = FollowOptions::default().with_start(110);
        let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
        assert_eq!(drain(&mut follower), [(110, b"two".to_vec())]);
    }
}

/// The directory is listed when the follower first looks for the end of a file, and then at every
/// twentieth poll.
#[test]
fn a_missing_segment_is_reported_after_twenty_polls() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), 0, &file_of(&[b"one"]));
    let options = FollowOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_corruption(OnCorruption::Skip);
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    for (offset, next) in [(0, 300), (300, 700)] {
        let data = follower.poll().expect("a poll");
        assert!(
            matches!(data, Poll::Record(record) if record.offset == offset),
            "{data:?}"
        );
        write(directory.path(), next, &file_of(&[b"two"]));
        for number in 1..20 {
            let answer = follower.poll().expect("a poll");
            assert!(matches!(answer, Poll::NotYet(_)), "poll {number}: {answer:?}");
        }
        let answer = follower.poll().expect("a poll");
        let Poll::Skipped(region) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!((region.start, region.end), (offset + 10, next));
        assert_eq!(region.reason, Reason::MissingSegment);
    }
}

/// No writer uses a removed segment, so its end is reported at the next poll, without waiting for
/// the twentieth.
#[test]
fn the_missing_end_of_a_removed_segment_is_reported_at_once() {
    for is_first in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        if !is_first {
            write(directory.path(), 90, &file_of(&[b"old"]));
        }
        write(directory.path(), 100, &file_of(&[b"one"]));
        let options = FollowOptions::default()
            .with_dialect(Dialect::LEVELDB)
            .with_on_corruption(OnCorruption::Skip)
            .with_start(100);
        let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
        assert_eq!(drain(&mut follower), [(100, b"one".to_vec())]);
        fs::remove_file(directory.path().join(name_of(100))).expect("a segment");
        write(directory.path(), 300, &file_of(&[b"next"]));
        match follower.poll() {
            // The log now starts after this segment, so it was pruned, and other segments may have
            // been too.
            Err(Error {
                kind: ErrorKind::Pruned {
                    offset, first_offset, ..
                },
                ..
            }) if is_first => assert_eq!((offset, first_offset), (110, 300)),
            Ok(Poll::Skipped(region)) if !is_first => {
                assert_eq!((region.start, region.end), (110, 300));
                assert_eq!(region.reason, Reason::MissingSegment);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Windows cannot rename a directory with an open file.
#[cfg(unix)]
#[test]
fn polling_fails_until_a_missing_directory_is_restored() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, moved) = (directory.path().join("log"), directory.path().join("moved"));
    fs::create_dir(&log).expect("a directory");
    write(&log, 0, &file_of(&[b"one"]));
    let options = FollowOptions::default().with_dialect(Dialect::LEVELDB);
    let mut follower = Follower::open_with(&log, options).expect("a follower");
    assert_eq!(drain(&mut follower), [(0, b"one".to_vec())]);
    fs::rename(&log, &moved).expect("a free name");
    for _ in 0..2 {
        let error = follower.poll().expect_err("no directory");
        assert_eq!(error.path.as_deref(), Some(&*log));
        let is_not_found =
            matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
        assert!(is_not_found);
    }
    fs::rename(&moved, &log).expect("a free name");
    write(&log, 0, &file_of(&[b"two"]));
    assert_eq!(drain(&mut follower), [(10, b"two".to_vec())]);
}

/// The files of the copy are pruned as those of the directory before it. Windows renames no
/// directory in which a file is open.
#[cfg(unix)]
#[test]
fn a_follower_keeps_reading_when_a_copy_replaces_the_directory() {
    let parent = tempfile::tempdir().expect("a directory");
    let [path, copy] = ["orders", "copy"].map(|name| parent.path().join(name));
    for directory in [&path, &copy] {
        fs::create_dir(directory).expect("a directory");
        write(directory, 0, &file_of(&[b"one"]));
    }
    let mut follower = Follower::open(&path).expect("a follower");
    assert_eq!(drain(&mut follower), [(0, b"one".to_vec())]);
    write(&copy, 10, &file_of(&[b"two"]));
    fs::rename(&path, parent.path().join("old")).expect("a new name");
    fs::rename(&copy, &path).expect("a new name");
    assert_eq!(drain(&mut follower), [(10, b"two".to_vec())]);
    write(&path, 20, &file_of(&[b"three"]));
    fs::remove_file(path.join(name_of(0))).expect("a file");
    fs::remove_file(path.join(name_of(10))).expect("a file");
    assert_eq!(drain(&mut follower), [(20, b"three".to_vec())]);
}

/// It may not have been copied yet.
#[cfg(unix)]
#[test]
fn a_follower_keeps_looking_for_the_next_file_in_a_copied_directory() {
    let parent = tempfile::tempdir().expect("a directory");
    let [path, copy] = ["orders", "copy"].map(|name| parent.path().join(name));
    for directory in [&path, &copy] {
        fs::create_dir(directory).expect("a directory");
        write(directory, 0, &[&file_of(&[b"one"])[..], b"torn!"].concat());
    }
    write(&path, 15, &file_of(&[b"two"]));
    let skipping = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut follower = Follower::open_with(&path, skipping).expect("a follower");
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    let poll = follower.poll();
    assert!(
        matches!(poll, Ok(Poll::Skipped(region)) if (region.start, region.end) == (10, 15)),
        "{poll:?}"
    );
    fs::rename(&path, parent.path().join("old")).expect("a new name");
    fs::rename(&copy, &path).expect("a new name");
    assert!(drain(&mut follower).is_empty());
    write(&path, 15, &file_of(&[b"two"]));
    assert_eq!(drain(&mut follower), [(15, b"two".to_vec())]);
}

#[cfg(unix)]
#[test]
fn a_follower_accepts_only_a_file_or_a_directory() {
    let error = Follower::open("/dev/null").expect_err("a device");
    assert!(
        matches!(&error.kind, ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput),
        "{error:?}"
    );
}

#[test]
fn a_follower_with_the_stop_policy_ends_at_a_missing_segment() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), 0, &file_of(&[b"one"]));
    write(directory.path(), 300, &file_of(&[b"next"]));
    let options = FollowOptions::default().with_on_corruption(OnCorruption::Stop);
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    assert_eq!(first_region(&mut follower).start, 10);
    assert!(matches!(follower.poll(), Ok(Poll::End(end)) if end.offset() == 10));
}

/// Returns the events that the follower reports up to the end of the log. Asserts that it then
/// waits at `offset`.
fn events(follower: &mut Follower, offset: u64) -> Vec<(u64, u64, &'static str)> {
    let mut seen = Vec::new();
    while follower.offset() < offset {
        seen.push(match follower.poll().expect("a poll") {
            Poll::Record(record) => (record.offset, record.end_offset, "record"),
            Poll::Skipped(region) => (region.start, region.end, region.reason.as_str()),
            Poll::NotYet(_) => continue,
            other => panic!("{other:?} after {seen:?}"),
        });
    }
    seen
}

/// Only the next file in the directory shows where this file ends. Bytes that are read after that
/// are final.
#[test]
fn a_damaged_block_ends_at_the_end_of_its_segment() {
    let mut damaged = file_of(&[b"one", b"two"]);
    damaged[19] ^= 1;
    for rest in [0, 1, 5] {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), 0, &damaged);
        let options = FollowOptions::default()
            .with_dialect(Dialect::LEVELDB)
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(0, Duration::ZERO);
        let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
        assert_eq!(
            events(&mut follower, 20),
            [(0, 10, "record"), (10, 20, "checksum_mismatch")]
        );
        for _ in 0..2 {
            let answer = follower.poll().expect("a poll");
            assert!(matches!(
                answer,
                Poll::NotYet(NotYet {
                    offset: 20,
                    reason: WaitReason::Damaged,
                    ..
                })
            ));
        }
        write(directory.path(), 0, &vec![b'x'; rest as usize]);
        write(directory.path(), 20 + rest, &file_of(&[b"next"]));
        let mut expected = vec![(20, 20 + rest, "checksum_mismatch"), (20 + rest, 31 + rest, "record")];
        expected.retain(|(start, end, _)| start < end);
        assert_eq!(events(&mut follower, 31 + rest), expected);
    }
}

/// All bytes from the start on are missing.
#[test]
fn a_follower_that_starts_past_a_truncated_segment_reports_missing_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), 0, b"cut");
    let options = FollowOptions::default()
        .with_start(20)
        .with_on_corruption(OnCorruption::Skip);
    let mut alone = Follower::open_with(directory.path(), options.clone()).expect("a follower");
    for _ in 0..2 {
        let answer = alone.poll().expect("a poll");
        assert!(
            matches!(
                answer,
                Poll::Truncated {
                    offset: 20,
                    file_len: 3,
                    ..
                }
            ),
            "{answer:?}"
        );
    }
    write(directory.path(), 30, &file_of(&[b"next"]));
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    assert_eq!(
        events(&mut follower, 41),
        [(20, 30, "missing_segment"), (30, 41, "record")]
    );
}

/// If a segment shows no dialect, all of it is damage. The other segments show the dialect.
#[test]
fn the_other_segments_are_still_read_if_one_is_destroyed() {
    let sqlite = b"SQLite format 3\0".repeat(10);
    for format in [Dialect::LEVELDB.into(), LogFormat::new(Dialect::PACKED)] {
        for (bytes, reason) in [
            (&[0xff; 160][..], "bad_length"),
            (&[b'x'; 160], "bad_length"),
            (&[0; 160], "missing_segment"),
            (&sqlite, "bad_length"),
        ] {
            for destroyed in [0, 1] {
                let directory = tempfile::tempdir().expect("a directory");
                let log = SegmentedLog::open(directory.path(), options(format)).expect("a log");
                let (mut starts, mut records) = (vec![0], Vec::new());
                for index in 0..3 {
                    records.push(log.append(&[index; 100]).expect("an append"));
                    starts.push(log.rotate().expect("a rotation"));
                }
                log.close().expect("a log that is closed");
                let (start, end) = (starts[destroyed], starts[destroyed + 1]);
                let name = directory.path().join(name_of(start));
                fs::write(name, &bytes[..(end - start) as usize]).expect("a file");
                let options = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
                let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
                if bytes == sqlite && destroyed == 0 {
                    for _ in 0..2 {
                        let error = follower.poll().expect_err("it is no log");
                        assert!(matches!(error.kind, ErrorKind::Foreign { .. }), "{error:?}");
                        assert_eq!(error.path.as_deref(), Some(directory.path()));
                    }
                    continue;
                }
                let seen: Vec<_> = events(&mut follower, starts[3])
                    .into_iter()
                    .filter(|&(.., reason)| reason != "metadata")
                    .map(|(start, _, what)| (start, what))
                    .collect();
                let mut expected: Vec<_> = records.iter().map(|&start| (start, "record")).collect();
                expected[destroyed] = (start, reason);
                assert_eq!(seen, expected, "{format:?}, {:?}", &bytes[..8]);
                assert_eq!(follower.format(), format);
            }
        }
    }
}

/// No byte of the trailer is reported, and no byte is missing.
#[test]
fn a_follower_moves_to_the_next_segment_after_a_block_trailer() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = file_of(&[&[b'x'; 32_768 - 7 - 3]]);
    first.extend([0; 3]);
    write(directory.path(), 0, &first);
    write(directory.path(), 32_768, b"");
    let mut follower = Follower::open(directory.path()).expect("a follower");
    assert_eq!(drain(&mut follower).len(), 1);
    assert_eq!(follower.offset(), 32_768);
    write(directory.path(), 32_768, &file_of(&[b"next"]));
    assert_eq!(drain(&mut follower), [(32_768, b"next".to_vec())]);
}

/// The mark of the segment is destroyed, and the segment is shorter than the three blocks that
/// decide about a growing file. A reader of the whole log can determine its dialect.
#[test]
fn a_short_damaged_segment_is_reported_as_soon_as_it_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), options(LogFormat::new(Dialect::PACKED))).expect("a log");
    let mut appended: Vec<_> = (0..4)
        .map(|index| (log.append(&[index; 20_000]).expect("an append"), vec![index; 20_000]))
        .collect();
    log.rotate().expect("a rotation");
    appended.push((log.append(b"next").expect("an append"), b"next".to_vec()));
    log.close().expect("a log that is closed");
    let name = directory.path().join(name_of(0));
    let mut file = fs::read(&name).expect("a segment");
    assert!(file.len() < 3 * 32_768);
    file[8] ^= 1;
    fs::write(&name, file).expect("a segment");
    // The damage costs the first block, and therefore also the record that continues in the second
    // block.
    appended.retain(|&(offset, _)| offset >= 32_768);
    assert_eq!(appended.len(), 3);
    let options = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    let mut found = Vec::new();
    while found.len() < appended.len() {
        match follower.poll().expect("a poll") {
            Poll::Record(record) => found.push((record.offset, record.data.to_vec())),
            Poll::Skipped(_) => {}
            other => panic!("{other:?} after {} records", found.len()),
        }
    }
    assert!(found == appended);
}

/// The next segment exists, so no bytes will be added to this one. It decides which log it is from
/// the bytes that are there.
#[test]
fn the_dialect_of_a_damaged_segment_is_detected_when_the_segment_ends() {
    const BLOCK_LEN: u64 = 32_768;
    // Only a reader that knows the dialect finds the record in the second block.
    let record = Wire::Recyclable(5).full(b"one");
    for (second, len, what) in [(record, 14, "record"), (vec![0xff; 32_768], BLOCK_LEN, "bad_length")] {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), 0, &[0xff; 32_768]);
        write(directory.path(), 0, &second);
        let next = BLOCK_LEN + len;
        write(directory.path(), next, &file_of(&[b"next"]));
        let options = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
        let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
        let mut seen = Vec::new();
        loop {
            seen.push(match follower.poll().expect("a poll") {
                Poll::Record(record) => (record.offset, record.end_offset, "record"),
                Poll::Skipped(region) => (region.start, region.end, region.reason.as_str()),
                Poll::NotYet(_) => break,
                other => panic!("{other:?} after {seen:?}"),
            });
        }
        let expected = [
            (0, BLOCK_LEN, "bad_length"),
            (BLOCK_LEN, next, what),
            (next, next + 11, "record"),
        ];
        assert_eq!(seen, expected);
    }
}

const WRITER: &str = "CORDWOOD_TEST_ROTATING_WRITER";

#[test]
fn block_boundaries_are_relative_to_the_start_of_the_segment() {
    const BASE: u64 = 107;
    const BLOCK_LEN: u64 = 32_768;
    let directory = tempfile::tempdir().expect("a directory");
    // The writer was killed in the middle of a record of several blocks.
    let file = file_of(&[b"before", &[2; 100_000]]);
    write(directory.path(), BASE, &file[..20_000]);
    let options = FollowOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_dialect(Dialect::LEVELDB)
        .with_retry(0, Duration::ZERO);
    let mut follower = Follower::open_with(directory.path(), options).expect("a follower");
    assert_eq!(drain(&mut follower), [(BASE, b"before".to_vec())]);
    let Poll::NotYet(NotYet { reason, .. }) = follower.poll().expect("a poll") else {
        panic!("no record is complete")
    };
    assert_eq!(reason, WaitReason::Incomplete);

    // The next writer fills the block, and continues in the next one.
    write(directory.path(), BASE, &[0; BLOCK_LEN as usize - 20_000]);
    write(directory.path(), BASE, &file_of(&[b"after"]));
    let torn = BASE + 7 + 6..BASE + BLOCK_LEN;
    let region = first_region(&mut follower);
    assert_eq!((region.start, region.end), (torn.start, torn.end));
    assert_eq!(drain(&mut follower), [(torn.end, b"after".to_vec())]);
}

/// Runs in the other process of the next test.
#[test]
fn rotating_writer() {
    let Some(directory) = std::env::var_os(WRITER) else {
        return;
    };
    let log = SegmentedLog::open(directory, LogFileOptions::default()).expect("a log");
    let mut number = 0_u32;
    for rotation in 0..10_000 {
        for _ in 0..1 + rotation % 3 {
            log.append(&number.to_le_bytes()).expect("an append");
            number += 1;
        }
        log.rotate().expect("a rotation");
        // The writer makes bursts of a few dozen rotations, with a pause that is longer than a
        // poll.
        if rotation % 40 == 39 {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    log.append(b"end").expect("an append");
    log.close().expect("a log that is closed");
}

#[test]
fn a_follower_returns_each_record_once_across_ten_thousand_rotations() {
    // The files are in memory if the system has such a directory. Each rotation is synced, and
    // syncs are not tested here.
    let directory = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a directory");
    let log = directory.path().join("log");
    drop(SegmentedLog::open(&log, LogFileOptions::default()).expect("a log"));
    let mut writer = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "segments_following::rotating_writer"])
        .env(WRITER, &log)
        .stdout(File::create(directory.path().join("output")).expect("a file"))
        .spawn()
        .expect("a process");
    let options = FollowOptions::default().with_poll_interval(Duration::from_millis(2));
    let mut follower = Follower::open_with(&log, options).expect("a follower");
    let mut next = 0_u32;
    loop {
        match follower.wait(Some(HANG)).expect("a poll") {
            Poll::Record(record) if record.data == b"end" => break,
            Poll::Record(record) => {
                assert_eq!(record.data, next.to_le_bytes());
                next += 1;
            }
            other => panic!("{other:?} after {next} records"),
        }
    }
    assert_eq!(next, 10_000 + 9_999);
    assert!(writer.wait().expect("a status").success());
    assert_eq!(fs::read_dir(&log).expect("a directory").count(), 10_000 + 2);
}
