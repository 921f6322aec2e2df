//! Tests that follow a growing file.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cordwood::damage::{Reason, Severity};
use cordwood::follow::{Poll, WaitReason};
use cordwood::{Dialect, Error, ErrorKind, FollowOptions, Follower, OnCorruption, ReadOptions};

use super::{Set, sequences};
use crate::crate_reads::records;
use crate::files::Width::{Edge, Few, Least};
use crate::files::{Alphabet, Files, each_in_threads};
use crate::model::{self, Event, encode};
use crate::tally::Tally;

/// Records, each as its offset and its bytes.
type Records = Vec<(u64, Vec<u8>)>;

pub(super) fn sets(is_full: bool) -> Vec<Set> {
    let grown: Vec<usize> = if is_full {
        (0..=36).collect()
    } else {
        vec![0, 1, 9, 10, 11, 17, 18, 30, 32]
    };
    let looked: Vec<usize> = if is_full {
        (0..=36).collect()
    } else {
        vec![0, 10, 17, 24]
    };
    let count = if is_full { 3 } else { 2 };
    let mut sets = vec![
        of_logs("follow byte by byte", count, grown, |tally, live, log| {
            byte_by_byte(tally, live, log, false);
            byte_by_byte(tally, live, log, true);
        }),
        of_logs("follow by two looks", 2, looked, two_looks),
    ];
    for alphabet in [Alphabet::LevelDb, Alphabet::Packed] {
        let files = Files {
            alphabet,
            widths: if is_full { vec![Edge, Few] } else { vec![Few, Least] },
            truncates: false,
        };
        sets.push(Set {
            name: format!("follow damage byte by byte {alphabet:?}"),
            bound: files.to_string(),
            run: Box::new(move || {
                let tallies = files.each(
                    || (Tally::default(), Live::new()),
                    |(tally, live), file| {
                        tally.files += 1;
                        damaged(tally, live, alphabet, file);
                    },
                );
                Tally::sum(tallies.into_iter().map(|(tally, _)| tally).collect())
            }),
        });
    }
    sets
}

/// Returns the set of all logs of at most `count` whole records.
fn of_logs(name: &str, count: usize, lens: Vec<usize>, check: fn(&mut Tally, &Live, &[u8])) -> Set {
    Set {
        name: name.to_owned(),
        bound: format!("at most {count} records, each of one of the lengths {lens:?}"),
        run: Box::new(move || {
            let sequences = sequences(count, &lens);
            let tallies = each_in_threads(
                sequences.len(),
                || (Tally::default(), Live::new()),
                |(tally, live), index| {
                    let mut log = Vec::new();
                    for (seed, &len) in sequences[index].iter().enumerate() {
                        log.extend(encode(log.len() as u64, &vec![seed as u8 + 1; len]).0);
                    }
                    tally.files += 1;
                    check(tally, live, &log);
                },
            );
            Tally::sum(tallies.into_iter().map(|(tally, _)| tally).collect())
        }),
    }
}

/// A growing file. Dropping this value removes the file.
struct Live {
    path: PathBuf,
    file: File,
}

impl Live {
    fn new() -> Self {
        let name = format!(
            "cordwood-exhaustive-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("a file in TMPDIR");
        Live { path, file }
    }

    fn set(&self, bytes: &[u8]) {
        self.file.set_len(0).expect("a file that can be truncated");
        self.file.write_all_at(bytes, 0).expect("room");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path, dialect: Dialect) -> Follower {
    let options = FollowOptions::default()
        .with_dialect(dialect)
        .with_on_corruption(OnCorruption::Skip)
        .with_retry(0, Duration::ZERO);
    Follower::open_with(path, options).expect("the file")
}

/// Takes all records of a whole log, and returns the reason why the follower then waits.
fn poll(follower: &mut Follower, found: &mut Records) -> WaitReason {
    loop {
        match follower.poll().expect("a whole log") {
            Poll::Record(record) => found.push((record.offset, record.data.to_vec())),
            Poll::NotYet(not_yet) => return not_yet.reason,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the records in the first `len` bytes, and the reason why the follower waits after them.
/// Zeros may be the start of a header. If a record has started, the reason is `Incomplete`,
/// whatever bytes follow.
fn in_prefix(log: &[u8], len: usize) -> (Records, WaitReason) {
    let options = ReadOptions::default().with_dialect(Dialect::LEVELDB);
    let (events, _) = model::read(&log[..len], &options);
    let mut skipped = events.iter().filter_map(|event| match event {
        Event::Skipped { reason, .. } => Some(*reason),
        Event::Record { .. } => None,
    });
    let reason = match (skipped.next(), skipped.next()) {
        (None, _) => WaitReason::Idle,
        (Some(Reason::ZeroFill), None) => WaitReason::Zeros,
        _ => WaitReason::Incomplete,
    };
    (records(&events), reason)
}

/// Checks that each record is returned as soon as its last byte is in the file. If
/// `is_preallocated` is true, the file is full of zeros at first, and the log is written over them.
/// Otherwise, the file grows.
fn byte_by_byte(tally: &mut Tally, live: &Live, log: &[u8], is_preallocated: bool) {
    tally.check(log, &("byte by byte", is_preallocated), || {
        live.set(&vec![0; if is_preallocated { log.len() + 40 } else { 0 }]);
        let mut follower = open(&live.path, Dialect::LEVELDB);
        let mut found = Vec::new();
        for len in 0..=log.len() {
            if let Some(at) = len.checked_sub(1) {
                live.file.write_all_at(&log[at..len], at as u64).expect("room");
            }
            let reason = poll(&mut follower, &mut found);
            let expected = in_prefix(log, len);
            if found != expected.0 || (!is_preallocated && reason != expected.1) {
                let message = format!("at {len} bytes\ncrate: {:?}\nmodel: {expected:?}", (found, reason));
                return Err(message);
            }
        }
        Ok(())
    });
}

/// Polls once when the file has `a` bytes, and again when it has `b` bytes.
fn two_looks(tally: &mut Tally, live: &Live, log: &[u8]) {
    for a in 0..log.len() {
        for b in a + 1..=log.len() {
            tally.check(log, &("looks at", a, b), || {
                live.set(&log[..a]);
                let mut follower = open(&live.path, Dialect::LEVELDB);
                let mut found = Vec::new();
                let first = poll(&mut follower, &mut found);
                let first = (found.clone(), first);
                live.file.write_all_at(&log[a..b], a as u64).expect("room");
                let second = poll(&mut follower, &mut found);
                let looks = [first, (found, second)];
                let expected = [in_prefix(log, a), in_prefix(log, b)];
                match looks == expected {
                    true => Ok(()),
                    false => Err(format!("crate: {looks:?}\nmodel: {expected:?}")),
                }
            });
        }
    }
}

/// Follows a damaged file byte by byte. The records must be the same as those that a reader of the
/// finished file returns.
fn damaged(tally: &mut Tally, live: &Live, alphabet: Alphabet, file: &[u8]) {
    let dialect = match alphabet {
        Alphabet::Packed => Dialect::PACKED,
        _ => Dialect::LEVELDB,
    };
    let options = ReadOptions::default()
        .with_dialect(dialect)
        .with_on_corruption(OnCorruption::Skip);
    let (events, end) = model::read(file, &options);
    if end.is_err() {
        return;
    }
    tally.check(file, &"follow byte by byte", || {
        live.set(&[]);
        let mut follower = open(&live.path, dialect);
        let (mut found, mut lost) = (Vec::new(), Vec::new());
        let mut reason = WaitReason::Idle;
        for at in 0..file.len() {
            live.file.write_all_at(&file[at..=at], at as u64).expect("room");
            reason = poll_damaged(&mut follower, &mut found, &mut lost);
            assert!(
                found.last().is_none_or(|last| last.0 <= at as u64),
                "a record of the future"
            );
        }
        // A fragment that no writer would write may have been reported as damage before all of it
        // was in the file. The rest of its block was then skipped (line 9 of following.md).
        let mut expected = records(&events);
        expected
            .retain(|record| !lost.iter().any(|lost: &Range<u64>| lost.contains(&record.0)) || found.contains(record));
        // The follower may wait at damage that looks like a write in progress.
        let may_wait = matches!(reason, WaitReason::Zeros | WaitReason::Incomplete);
        assert_ne!(reason, WaitReason::Suspect, "no retries are left");
        if expected.starts_with(&found) && (found.len() == expected.len() || may_wait) {
            return Ok(());
        }
        let message = format!("crate: {found:?}, waits: {reason:?}, lost: {lost:?}\nmodel: {expected:?}");
        Err(message)
    });
}

/// Takes all records and reports that are available. If damage is reported while its block is still
/// growing, the rest of the block from the damage on is added to `lost`.
fn poll_damaged(follower: &mut Follower, found: &mut Records, lost: &mut Vec<Range<u64>>) -> WaitReason {
    let mut damage = None;
    loop {
        match follower.poll() {
            Ok(Poll::Record(record)) => {
                found.push((record.offset, record.data.to_vec()));
                damage = None;
            }
            Ok(Poll::Skipped(region)) => {
                damage = (region.reason.severity() == Severity::Corruption).then_some(region);
            }
            Ok(Poll::NotYet(not_yet)) => {
                if not_yet.reason == WaitReason::Damaged
                    && let Some(region) = damage
                {
                    let block = crate::BLOCK as u64;
                    lost.push(region.start..(region.end - 1) / block * block + block);
                }
                return not_yet.reason;
            }
            // The part of a packed log that has been written so far may be refused even if the
            // whole log is not.
            Err(Error {
                kind: ErrorKind::Unsupported { .. },
                ..
            }) => return WaitReason::Incomplete,
            other => panic!("{other:?}"),
        }
    }
}
