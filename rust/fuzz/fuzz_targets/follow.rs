//! Follows a log of any dialect that grows in steps. Records must be returned as they were written,
//! each exactly once. In the end, the follower must have returned all records that a reader of the
//! finished file returns.

#![no_main]

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use arbitrary::Arbitrary;
use cordwood::codec::Grid;
use cordwood::damage::Severity;
use cordwood::follow::{Poll, WaitReason};
use cordwood::format::BLOCK_LEN;
use cordwood::{Dialect, Error, ErrorKind, FollowOptions, Follower, OnCorruption, ReadOptions, Reader};
use cordwood_fuzz::log::{Script, layout};
use cordwood_fuzz::read;
use cordwood_fuzz::steps::Steps;
use libfuzzer_sys::fuzz_target;

/// The dialect can be detected once the file has this many bytes.
const DETECT_LEN: usize = 3 * BLOCK_LEN;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Whether the options name the dialect.
    is_named: bool,
    raises: bool,
    /// Whether the writer has preallocated the file with zeros, so that the file has its full
    /// length from the first step on.
    is_preallocated: bool,
    /// Whether the file contained the older log before.
    is_recycled: bool,
    steps: Steps<'a>,
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let mut steps = input.steps;
    let log = input.script.build();
    let is_clean = log.is_whole && log.intact_count == log.records.len();
    let bytes = &log.file.bytes;
    // The dialect is detected once, from the start of the file. It must be named if the start may
    // belong to an older log, for example because this log has no record. It must also be named for
    // an old run file, because the header of such a file does not identify it.
    let is_named =
        input.is_named || input.is_recycled || log.records.is_empty() || log.format.dialect == Dialect::WANDB_OLD;
    let starts_with = match (
        is_clean,
        input.is_recycled && log.format.log_number.is_some(),
        input.is_preallocated,
    ) {
        (true, true, _) => log.older.clone(),
        (true, false, true) => vec![0; log.own_len + usize::from(steps.choice())],
        _ => Vec::new(),
    };

    let mut read_options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    if is_named {
        read_options = read_options.with_format(log.format);
    }
    if matches!(
        Reader::from_slice(bytes, read_options.clone()).format(),
        Err(Error {
            kind: ErrorKind::Foreign { .. },
            ..
        })
    ) || read::is_refused(bytes, &read_options)
    {
        return;
    }

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("live");
    std::fs::write(&path, &starts_with).expect("a file");
    let file = File::options().write(true).open(&path).expect("the file");
    let mut options = FollowOptions::default()
        .with_on_corruption(if input.raises {
            OnCorruption::Fail
        } else {
            OnCorruption::Skip
        })
        .with_retry(0, Duration::ZERO);
    if is_named {
        options = options.with_format(log.format);
    }
    let mut follower = open(&path, &options);
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let (mut written, mut has_ended) = (0, false);
    let all = if starts_with.is_empty() {
        bytes.len()
    } else {
        log.own_len
    };
    while written < all {
        let end = written.saturating_add(steps.step()).min(all);
        file.write_all_at(&bytes[written..end], written as u64).expect("room");
        written = end;
        match steps.choice() % 8 {
            // Several steps are written between two polls.
            0 => continue,
            // Restarts the follower. In a damaged log, the dialect must be named, because it is
            // detected from the start of the file, which the damage may have changed. The follower
            // is not restarted after the log has ended, because damage may have moved the end
            // trailer before other blocks.
            1 if (is_clean || is_named) && !has_ended => {
                let start = follower.offset();
                follower = open(&path, &options.clone().with_start(start));
            }
            _ => {}
        }
        has_ended = poll(&mut follower, &mut found, &mut lost, is_clean).is_none();
        // Only records that have been written may be returned.
        let end = found.last().map_or(0, |(offset, _): &(u64, Vec<u8>)| *offset);
        assert!(end <= written as u64, "a record at {end}, of {written} bytes");
        if is_clean {
            assert!(
                log.records.starts_with(&found),
                "{} records at {written} bytes",
                found.len()
            );
        }
    }
    let waits = poll(&mut follower, &mut found, &mut lost, is_clean);

    if is_clean {
        assert_eq!(found.len(), log.records.len(), "of a whole log, {:?}", log.format);
        return;
    }
    let mut expected = read::records(read::slice(bytes, &read_options).0);
    let (file_header, _) = layout(log.format.dialect);
    let wrong_bits: u32 = (file_header.iter().zip(bytes)).map(|(a, b)| (a ^ b).count_ones()).sum();
    if !is_named && wrong_bits > 8 && !expected.starts_with(&found) {
        // By "Dialects" in following.md, the damage costs the first block.
        expected.retain(|(offset, _)| *offset >= BLOCK_LEN as u64);
    }
    // A fragment that no writer would write may have been reported as damage before all of it was
    // in the file. The rest of its block was then skipped (following.md, line 9).
    let is_intact = |start| (log.records.iter()).any(|record| record.0 == start && expected.contains(record));
    assert!(!lost.iter().any(|lost| is_intact(lost.start)), "{lost:?} is a record");
    expected.retain(|record| !lost.iter().any(|lost| lost.contains(&record.0)) || found.contains(record));
    assert!(
        expected.starts_with(&found),
        "{} of {} records are a reader's, {:?}",
        found
            .iter()
            .zip(&expected)
            .take_while(|(found, expected)| found == expected)
            .count(),
        found.len(),
        log.format
    );
    // The follower may wait at damage that looks like a write in progress (following.md, "The
    // limits of following"). In a log with a number, it may wait at any damage.
    let may_wait = match waits {
        Some(WaitReason::Zeros | WaitReason::Incomplete) => true,
        // The dialect may not have been detected yet (following.md, "Dialects").
        Some(WaitReason::Damaged) if !is_named && found.is_empty() && bytes.len() < DETECT_LEN => true,
        _ => log.format.dialect.has_log_numbers(),
    };
    assert_ne!(waits, Some(WaitReason::Suspect), "no retries are left");
    assert!(
        found.len() == expected.len() || may_wait,
        "{} of {} records, {:?}",
        found.len(),
        expected.len(),
        log.format
    );
});

fn open(path: &Path, options: &FollowOptions) -> Follower {
    Follower::open_with(path, options.clone()).expect("the file")
}

/// Collects everything that can be reported, and returns the reason why the follower then waits. If
/// damage is reported while its block is still growing, the rest of the block from the damage on is
/// added to `lost`.
fn poll(
    follower: &mut Follower,
    found: &mut Vec<(u64, Vec<u8>)>,
    lost: &mut Vec<Range<u64>>,
    is_clean: bool,
) -> Option<WaitReason> {
    let mut damaged = None;
    loop {
        match follower.poll() {
            Ok(Poll::Record(record)) => {
                found.push((record.offset, record.data.to_vec()));
                damaged = None;
            }
            Ok(Poll::Skipped(region))
            | Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                let is_damage = region.reason.severity() == Severity::Corruption;
                assert!(!(is_clean && is_damage), "damage in a whole log: {region:?}");
                damaged = is_damage.then_some(region);
            }
            Ok(Poll::NotYet(not_yet)) => {
                if not_yet.reason == WaitReason::Damaged
                    && let Some(region) = damaged
                {
                    let dialect = follower.format().dialect;
                    lost.push(region.start..Grid::new(dialect, 0).block_start(region.end - 1) + BLOCK_LEN as u64);
                }
                return Some(not_yet.reason);
            }
            Ok(Poll::End(_)) => return None,
            Ok(poll) => panic!("{poll:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}
