//! A position is valid in its own log, wherever that log is, and in no other log. The expected
//! values are the records that were written.

use std::fs::{self, OpenOptions};
use std::path::Path;

use cordwood_log::damage::Severity;
use cordwood_log::follow::Poll;
use cordwood_log::segments::name_of;
use cordwood_log::{
    Dialect, Error, ErrorKind, FollowOptions, Follower, LogFileOptions, LogFormat, OnCorruption, Position, ReadOptions,
    Reader, SegmentedLog, Writer, WriterOptions,
};

fn formats() -> [LogFormat; 5] {
    let recyclable = LogFormat::new(Dialect::ROCKSDB).with_log_number(7);
    [
        Dialect::LEVELDB.into(),
        Dialect::PACKED.into(),
        Dialect::WANDB.into(),
        Dialect::SWANLAB.into(),
        recyclable,
    ]
}

fn log_of(records: &[Vec<u8>], format: LogFormat) -> Vec<u8> {
    let options = WriterOptions::default().with_format(format);
    let mut writer = Writer::with_options(Vec::new(), options).expect("a writer");
    writer.extend(records).expect("records");
    writer.finish().expect("a log")
}

/// Returns records of `len` bytes. The first `same` records are the same in every log.
fn records(count: usize, len: usize, same: usize, log: &str) -> Vec<Vec<u8>> {
    let text = |at| match at < same {
        true => format!("the same {at}"),
        false => format!("{log} {at}"),
    };
    (0..count)
        .map(|at| text(at).bytes().cycle().take(len).collect())
        .collect()
}

fn follow(path: &Path, position: &Position, format: LogFormat) -> Result<Follower, Error> {
    let mut options = FollowOptions::default()
        .with_position(position.clone())
        .with_on_corruption(OnCorruption::Skip)
        .with_format(format);
    options.retry_polls = 0;
    Follower::open_with(path, options)
}

/// Returns all records that the follower can return now.
fn drain(follower: &mut Follower) -> Result<Vec<Vec<u8>>, Error> {
    let mut all = Vec::new();
    loop {
        match follower.poll()? {
            Poll::Record(record) => all.push(record.data.to_vec()),
            Poll::Skipped(region) if region.reason.severity() == Severity::Info => {}
            Poll::NotYet(_) => return Ok(all),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns a follower's position before each record, and its position after the last record.
fn positions(path: &Path, format: LogFormat) -> Vec<Position> {
    let mut follower = follow(path, &Position::default(), format).expect("a follower");
    let mut all = vec![follower.position().expect("a position")];
    loop {
        match follower.poll().expect("a poll") {
            Poll::Record(_) => all.push(follower.position().expect("a position")),
            Poll::Skipped(_) => {}
            _ => return all,
        }
    }
}

fn is_changed(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Changed { .. })
}

#[test]
fn a_position_is_still_valid_in_a_grown_or_copied_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    for format in formats() {
        for (count, len) in [(40, 3000), (300, 7), (5, 70_000)] {
            let written = records(count, len, 0, "a");
            let whole = log_of(&written, format);
            fs::write(&path, &whole).expect("a file");
            let all = positions(&path, format);
            assert_eq!(all.len(), count + 1);
            for (at, position) in all.iter().enumerate().step_by(count / 5) {
                // When the position was taken, the log may have ended there.
                let offset = usize::try_from(position.offset()).expect("a length");
                let (copy, link) = (directory.path().join("copy.log"), directory.path().join("link.log"));
                fs::write(&copy, &whole).expect("a file");
                fs::hard_link(&path, &link).expect("a link");
                for path in [&path, &copy, &link, &directory.path().join(".").join("a.log")] {
                    let mut follower = follow(path, position, format).expect("the same log");
                    assert_eq!(follower.position().expect("a position"), *position);
                    let rest = drain(&mut follower).expect("records");
                    assert_eq!(rest, written[at..], "{format:?}, {count} of {len}, {offset}");
                }
                fs::remove_file(&link).expect("a file");
                let text = position.to_string();
                assert_eq!(text.parse().as_ref(), Ok(position), "{text}");
            }
        }
    }
}

#[test]
fn the_error_for_a_replaced_log_gives_an_offset_before_the_position() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    for format in formats() {
        for (count, len, same) in [
            (40, 3000, 0),
            (40, 3000, 1),
            (40, 3000, 15),
            (300, 7, 1),
            (5, 70_000, 1),
        ] {
            fs::write(&path, log_of(&records(count, len, same, "a"), format)).expect("a file");
            let all = positions(&path, format);
            for other_len in [len, len + 1] {
                let other = log_of(&records(2 * count, other_len, same, "b"), format);
                let old = fs::read(&path).expect("a file");
                let place = directory.path().join("other.log");
                fs::write(&place, &other).expect("a file");
                for position in &all {
                    let offset = usize::try_from(position.offset()).expect("a length");
                    let is_same = old[..offset] == other[..offset];
                    match follow(&place, position, format) {
                        Ok(_) => assert!(is_same, "{format:?}, {count} of {len}, {same} the same, at {offset}"),
                        Err(error) => {
                            assert!(is_changed(&error) && !is_same, "{error}");
                            assert_eq!(error.path.as_deref(), Some(&*place));
                            let start = usize::try_from(error.offset().expect("an offset")).expect("a length");
                            assert!(start < offset);
                        }
                    }
                    let options = ReadOptions::default()
                        .with_format(format)
                        .with_position(position.clone());
                    assert_eq!(Reader::open_with(&place, options).is_ok(), is_same);
                }
            }
        }
    }
}

#[test]
fn a_position_remains_valid_even_if_earlier_bytes_are_damaged() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let written = records(12, 4000, 0, "a");
    let whole = log_of(&written, Dialect::LEVELDB.into());
    fs::write(&path, &whole).expect("a file");
    let all = positions(&path, Dialect::LEVELDB.into());
    for at in [3, 9, 11] {
        let offset = usize::try_from(all[at].offset()).expect("a length");
        for damaged in (0..offset).step_by(97) {
            let mut log = whole.clone();
            log[damaged] ^= 0x40;
            fs::write(&path, &log).expect("a file");
            // If the block of the position is damaged, the rest of that block is lost. It is after
            // the position.
            follow(&path, &all[at], Dialect::LEVELDB.into()).unwrap_or_else(|error| panic!("{damaged}: {error}"));
        }
    }
}

#[test]
fn reports_that_a_log_was_truncated_to_a_point_before_the_position() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let whole = log_of(&records(12, 4000, 0, "a"), Dialect::LEVELDB.into());
    fs::write(&path, &whole).expect("a file");
    let last = positions(&path, Dialect::LEVELDB.into()).pop().expect("a position");
    for len in [0, 5, 40_000, whole.len() - 1] {
        fs::write(&path, &whole[..len]).expect("a file");
        let mut follower = follow(&path, &last, Dialect::LEVELDB.into()).expect("a follower");
        assert!(matches!(follower.poll(), Ok(Poll::Truncated { .. })), "{len}");
    }
}

#[test]
fn a_malformed_position_is_rejected() {
    for text in [
        "",
        "7",
        "1:7",
        "2:7::",
        "1:x::",
        "1:7:0+7:",
        "1:7:0+0+7:",
        "1:7:0+7=00000000:",
        "1:7:0+0+99999=00000000:",
        "1:7:0+0+1=0,0+0+1=0,0+0+1=0,0+0+1=0:",
        "1:-7::",
    ] {
        let error = text.parse::<Position>().expect_err("no position");
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
    let text = "1:1007:1000+0+7=deadbeef:\"a:b\"";
    let position: Position = text.parse().expect("a position");
    assert_eq!((position.offset(), position.version()), (1007, Some("\"a:b\"")));
    assert_eq!(position.to_string(), text);
}

/// A running follower must notice another log, as a follower that resumes does.
#[test]
fn a_follower_fails_when_its_file_is_rewritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    for format in formats() {
        for (count, len) in [(40, 3000), (300, 7)] {
            fs::write(&path, log_of(&records(count, len, 1, "a"), format)).expect("a file");
            let mut follower = follow(&path, &Position::default(), format).expect("a follower");
            drain(&mut follower).expect("records");
            // This is the same file, but it is longer than before.
            fs::write(&path, log_of(&records(count + 1, len, 1, "b"), format)).expect("a file");
            for _ in 0..2 {
                let error = follower.poll().expect_err("another log");
                assert!(is_changed(&error), "{format:?}: {error}");
            }
        }
    }
}

/// Writes a segmented log with two records in each segment. The first `pruned` segments are
/// missing.
fn segmented(path: &Path, written: &[Vec<u8>], format: LogFormat, pruned: usize) {
    let log = SegmentedLog::open(path, LogFileOptions::default().with_format(format)).expect("a log");
    let mut ends = Vec::new();
    for records in written.chunks(2) {
        for record in records {
            log.append(record).expect("a record");
        }
        ends.push(log.rotate().expect("a segment"));
    }
    if let Some(end) = pruned.checked_sub(1).map(|last| ends[last]) {
        log.prune_before(end).expect("segments");
    }
    log.close().expect("a log");
}

#[test]
fn a_position_in_a_segmented_log_survives_rotation_pruning_and_copying() {
    for format in [LogFormat::new(Dialect::LEVELDB), LogFormat::new(Dialect::PACKED)] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let written = records(12, 500, 0, "a");
        segmented(&path, &written, format, 0);
        let all = positions(&path, format);
        for pruned in [0, 1, 3] {
            let copy = directory.path().join(format!("copy{pruned}"));
            segmented(&copy, &written, format, pruned);
            for (at, position) in all.iter().enumerate().skip(2 * pruned) {
                for path in [&path, &copy] {
                    let mut follower = follow(path, position, format).expect("the same log");
                    assert_eq!(drain(&mut follower).expect("records"), written[at..], "{at}");
                }
            }
        }
    }
}

#[test]
fn a_position_in_a_replaced_segmented_log_causes_an_error() {
    for format in [LogFormat::new(Dialect::LEVELDB), LogFormat::new(Dialect::PACKED)] {
        for same in [0, 1, 5] {
            let directory = tempfile::tempdir().expect("a directory");
            let (path, other) = (directory.path().join("log"), directory.path().join("other"));
            segmented(&path, &records(8, 500, same, "a"), format, 0);
            segmented(&other, &records(16, 500, same, "b"), format, 0);
            // In a segment whose first record is the same in both logs, a later record differs.
            for position in positions(&path, format).iter().skip(same + 1) {
                let error = follow(&other, position, format).expect_err("another log");
                assert!(is_changed(&error), "{error}");
            }

            let mut follower = follow(&path, &Position::default(), format).expect("a follower");
            drain(&mut follower).expect("records");
            fs::remove_dir_all(&path).expect("a directory");
            fs::rename(&other, &path).expect("a directory");
            for _ in 0..2 {
                let error = drain(&mut follower).expect_err("another log");
                assert!(is_changed(&error), "{error}");
            }
        }
    }
}

#[test]
fn a_follower_continues_in_a_copy_of_its_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, other) = (directory.path().join("log"), directory.path().join("other"));
    let format = LogFormat::new(Dialect::LEVELDB);
    let written = records(16, 500, 0, "a");
    segmented(&path, &written[..7], format, 0);
    segmented(&other, &written, format, 0);
    // The follower waits in a segment that has no successor.
    let mut last: Vec<_> = fs::read_dir(&path)
        .expect("a directory")
        .map(|file| file.expect("a file").path())
        .collect();
    last.sort();
    last.retain(|path| path.extension().is_some_and(|end| end == "log"));
    fs::remove_file(last.pop().expect("the empty segment")).expect("a file");
    let mut follower = follow(&path, &Position::default(), format).expect("a follower");
    assert_eq!(drain(&mut follower).expect("records"), written[..7]);
    fs::rename(&path, directory.path().join("old")).expect("a directory");
    fs::rename(&other, &path).expect("a directory");
    assert!(drain(&mut follower).expect("records") == written[7..]);
}

/// The segments have the same names, but the segment that is followed has been removed.
#[test]
fn a_follower_fails_if_its_log_is_replaced_by_a_pruned_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, other) = (directory.path().join("log"), directory.path().join("other"));
    let format = LogFormat::new(Dialect::LEVELDB);
    segmented(&path, &records(2, 500, 0, "a"), format, 0);
    segmented(&other, &records(8, 500, 0, "b"), format, 1);
    fs::remove_file(path.join(name_of(2 * 507))).expect("the empty segment");
    let mut follower = follow(&path, &Position::default(), format).expect("a follower");
    drain(&mut follower).expect("records");
    fs::rename(&path, directory.path().join("old")).expect("a directory");
    fs::rename(&other, &path).expect("a directory");
    let error = drain(&mut follower).expect_err("another log");
    assert!(is_changed(&error), "{error}");
}

#[test]
fn a_position_at_offset_0_or_in_an_empty_file_is_valid_in_any_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    fs::write(&path, b"").expect("a file");
    let format = Dialect::LEVELDB.into();
    let mut follower = follow(&path, &Position::default(), format).expect("a follower");
    let empty = follower.position().expect("a position");
    assert_eq!(empty, Position::default());
    let written = records(3, 100, 0, "a");
    fs::write(&path, log_of(&written, format)).expect("a file");
    assert_eq!(drain(&mut follower).expect("records"), written);
    fs::write(&path, log_of(&records(3, 100, 0, "b"), format)).expect("a file");
    assert_eq!(
        drain(&mut follow(&path, &empty, format).expect("any log"))
            .expect("records")
            .len(),
        3
    );
    OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("a file")
        .set_len(0)
        .expect("a file");
    drain(&mut follow(&path, &empty, format).expect("any log")).expect("no record");
}

#[test]
fn a_reader_starts_at_the_given_position() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    // Each record has a header of 7 bytes.
    let all = records(3, 20, 0, "log");
    fs::write(&path, log_of(&all, Dialect::LEVELDB.into())).expect("a file");
    for (index, offset) in [0, 27, 54].into_iter().enumerate() {
        let position = Position::of(&path, offset).expect("a position");
        let options = ReadOptions::default().with_position(position);
        let mut reader = Reader::open_with(&path, options).expect("the same log");
        let record = reader.next_record().expect("no damage").expect("a record");
        assert_eq!((record.offset, record.data), (offset, &all[index][..]));
    }
}
