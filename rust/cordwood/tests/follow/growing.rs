//! Records are returned once and in order, however the file grows and wherever reading starts.

use super::*;

follow_tests! {
    in_file_and_segment: [
        a_follower_returns_the_complete_records_of_each_prefix_and_then_waits,
        a_follower_resumes_at_a_saved_offset,
        a_write_that_is_rolled_back_does_not_affect_later_records,
        a_follower_returns_all_records_that_are_written_in_random_chunks,
        a_concurrent_write_is_not_reported_as_damage,
        a_follower_that_starts_in_the_middle_of_a_record_skips_the_rest_of_that_record,
        a_follower_reports_whether_it_can_return_a_record_without_reading_the_file,
        a_record_after_skipped_bytes_is_returned_only_once_it_is_complete,
        waiting_for_a_record_takes_no_longer_than_the_timeout,
    ],
    in_file_only, "A segment is followed as a part of its log.": [
        following_a_missing_file_a_directory_or_a_device_is_an_error,
    ],
}

fn a_follower_returns_all_records_that_are_written_in_random_chunks(place: Place) {
    for seed in 1..=6 {
        let is_preallocated = seed % 2 == 0;
        let mut random = Random(seed);
        let log = Log::new((0..60).map(|_| random.record()).collect());
        let (_directory, path) = place.directory();
        let ahead = if is_preallocated { log.file.len() + 300_000 } else { 0 };
        let mut growing = Growing::new(&path, ahead as u64);
        let mut follower = Follower::open_with(
            &path,
            FollowOptions::default().with_poll_interval(Duration::from_micros(200)),
        )
        .unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut written = 0;
                while written < log.file.len() {
                    let chunk_max = [10, 1_000, 100_000][random.below(3)];
                    let end = log.file.len().min(written + 1 + random.below(chunk_max));
                    growing.write(written, &log.file[written..end]);
                    written = end;
                    if random.below(3) == 0 {
                        thread::sleep(Duration::from_micros(random.below(2_000) as u64));
                    }
                }
            });
            for (record, span) in log.records.iter().zip(&log.spans) {
                match follower.wait(Some(HANG)).unwrap() {
                    Poll::Record(found) => {
                        assert_eq!((found.offset, found.end_offset), (span.start as u64, span.end as u64));
                        assert!(found.data == record, "seed {seed}, the record at {span:?}");
                    }
                    other => panic!("seed {seed}, at {span:?}: {other:?}"),
                }
            }
        });
        let Poll::NotYet(not_yet) = follower.poll().unwrap() else {
            panic!()
        };
        assert_eq!(
            (not_yet.offset, not_yet.file_len),
            (log.file.len() as u64, ahead.max(log.file.len()) as u64)
        );
        let reason = if is_preallocated {
            WaitReason::Zeros
        } else {
            WaitReason::Idle
        };
        assert_eq!(not_yet.reason, reason);
    }
}

/// A read copies bytes in order, so it may miss the start of a write but see its end.
fn a_concurrent_write_is_not_reported_as_damage(place: Place) {
    let log = Log::new((0..200).map(|number| vec![b'x'; number * 97]).collect());
    let options = FollowOptions::default().with_poll_interval(Duration::ZERO);
    for _ in 0..40 {
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, log.file.len() as u64);
        let mut follower = Follower::open_with(&path, options.clone()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| growing.write(0, &log.file));
            for span in &log.spans {
                let reported = follower.wait(Some(HANG)).unwrap();
                assert!(
                    matches!(reported, Poll::Record(record) if record.offset == span.start as u64),
                    "{span:?}"
                );
            }
        });
    }
}

fn a_follower_returns_the_complete_records_of_each_prefix_and_then_waits(place: Place) {
    let log = small_log();
    for is_preallocated in [false, true] {
        let (_directory, path) = place.directory();
        let ahead = if is_preallocated { 6 * BLOCK_LEN as u64 + 5 } else { 0 };
        let mut growing = Growing::new(&path, ahead);
        let mut grown = follow(&path);
        let (mut reported, mut checked) = (Vec::new(), 0);
        let edges = lengths(&log);
        for len in 0..=log.file.len() {
            growing.write(len.saturating_sub(1), &log.file[len.saturating_sub(1)..len]);
            // The test polls at each length. In a preallocated file, a poll has to read a whole
            // block, so the test polls only at some lengths.
            let is_edge = edges.binary_search(&len).is_ok();
            if is_preallocated && !is_edge {
                continue;
            }
            let count = log.count(len, is_preallocated);
            let not_yet = drain(&mut grown, &mut reported);
            assert_eq!(reported.len(), count, "{len}");
            assert!(records(&reported[checked..]) == log.records[checked..count], "{len}");
            checked = count;
            let end = count.checked_sub(1).map_or(0, |last| log.spans[last].end as u64);
            assert_eq!((grown.offset(), not_yet.offset), (end, end), "{len}");
            assert_ne!(not_yet.reason, WaitReason::Damaged);
            if !is_edge {
                continue;
            }
            // A new follower sees only this prefix of the file.
            let mut fresh = Vec::new();
            assert_eq!(drain(&mut follow(&path), &mut fresh), not_yet, "{len}");
            assert!(fresh == reported, "{len}");
        }
        assert_eq!(reported.len(), log.records.len());
    }
}

fn a_follower_resumes_at_a_saved_offset(place: Place) {
    let log = small_log();
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    let (mut written, mut reported, mut offset) = (0, Vec::new(), 0);
    for len in lengths(&log).into_iter().step_by(7).chain([log.file.len()]) {
        growing.write(written, &log.file[written..len]);
        written = len;
        let mut follower = Follower::open_with(&path, FollowOptions::default().with_start(offset)).unwrap();
        drain(&mut follower, &mut reported);
        offset = follower.offset();
    }
    assert!(records(&reported) == log.records);
}

/// The start is in the middle of an earlier record. The rest of that record is skipped, whenever it
/// is read.
fn a_follower_that_starts_in_the_middle_of_a_record_skips_the_rest_of_that_record(place: Place) {
    let log = Log::new(vec![vec![b'x'; 3 * BLOCK_LEN], vec![b'y'; 3 * BLOCK_LEN]]);
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    growing.write(0, &log.file[..5 * BLOCK_LEN]);
    let mut follower = Follower::open_with(&path, FollowOptions::default().with_start(BLOCK_LEN as u64 - 5)).unwrap();
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Incomplete);
    growing.write(5 * BLOCK_LEN, &log.file[5 * BLOCK_LEN..]);
    drain(&mut follower, &mut reported);
    assert!(records(&reported) == log.records[1..]);
}

/// Records that were found together are returned without accessing the file, even if the file no
/// longer exists. This is tested for a plain and for a packed log.
fn a_follower_reports_whether_it_can_return_a_record_without_reading_the_file(place: Place) {
    for dialect in [Dialect::LEVELDB, Dialect::PACKED] {
        let (_directory, path) = place.directory();
        let mut encoder = Encoder::with_format(0, dialect).unwrap();
        let mut file = Vec::new();
        for record in [b"one", b"two", b"xyz"] {
            encoder.encode(record, &mut file);
        }
        encoder.finish(&mut file);
        fs::write(&path, &file).unwrap();
        let mut follower = follow(&path);
        assert!(!follower.has_found());
        if dialect == Dialect::PACKED {
            assert!(matches!(follower.poll().unwrap(), Poll::Skipped(_)), "the mark");
        }
        let is_next = |follower: &mut Follower, expected: &[u8]| matches!(follower.peek().unwrap(), Poll::Record(record) if record.data == expected);
        assert!(is_next(&mut follower, b"one"));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        for (expected, is_found) in [(b"one", true), (b"two", true), (b"xyz", false)] {
            assert!(follower.has_found() && is_next(&mut follower, expected));
            let waited = follower.wait(None).unwrap();
            assert!(matches!(waited, Poll::Record(record) if record.data == expected));
            assert_eq!(follower.has_found(), is_found);
        }
        assert!(matches!(follower.poll().unwrap(), Poll::Truncated { .. }));
    }
}

/// After a write that failed halfway, the writer truncates the file and continues. No part of the
/// unfinished record may be joined to another record.
fn a_write_that_is_rolled_back_does_not_affect_later_records(place: Place) {
    let undone = Log::new(vec![b"kept".to_vec(), vec![b'u'; 3 * BLOCK_LEN]]).file;
    let log = Log::new(vec![b"kept".to_vec(), vec![b'n'; 3 * BLOCK_LEN], b"next".to_vec()]);
    for sees_the_cut in [false, true] {
        // The test is done with and without a record that was reported from the same read.
        for polls_before in [1, 2] {
            let (_directory, path) = place.directory();
            let mut growing = Growing::new(&path, 0);
            growing.write(0, &undone[..2 * BLOCK_LEN + 100]);
            let mut follower = follow(&path);
            let mut reported = Vec::new();
            assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.data == b"kept"));
            for _ in 1..polls_before {
                assert!(matches!(
                    follower.poll(),
                    Ok(Poll::NotYet(NotYet {
                        reason: WaitReason::Incomplete,
                        ..
                    }))
                ));
            }
            growing.file.set_len(11).unwrap();
            if sees_the_cut {
                assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Idle);
            }
            growing.write(0, &log.file);
            drain(&mut follower, &mut reported);
            assert!(records(&reported) == log.records[1..]);
        }
    }
}

/// The zeros in the rest of a block are bytes that have not been written yet, so they are not data.
/// This is also true if the skipped part of that block precedes the start and is not reported.
fn a_record_after_skipped_bytes_is_returned_only_once_it_is_complete(place: Place) {
    // These fragments are RocksDB's metadata, and a type that no dialect has.
    let skipped = [9, 77].map(|kind| Wire::Plain.fragment(kind, b"x"));
    for skipped in skipped {
        let unknown = [Wire::Plain.full(b"foo"), skipped].concat();
        let start = unknown.len();
        let whole = [
            &unknown[..],
            &Wire::Plain.full(b"ab\0\0\0\0"),
            &Wire::Plain.full(b"next"),
        ]
        .concat();
        for written in start..=whole.len() {
            let (_directory, path) = place.directory();
            let options = skipping().with_start(start as u64);
            std::fs::write(&path, &whole[..written]).unwrap();
            let mut follower = Follower::open_with(&path, options).unwrap();
            let mut reported = Vec::new();
            drain(&mut follower, &mut reported);
            let count = [start + 13, start + 24].iter().filter(|&&end| end <= written).count();
            assert_eq!(records(&reported), [&b"ab\0\0\0\0"[..], b"next"][..count], "{written}");
            std::fs::write(&path, &whole).unwrap();
            drain(&mut follower, &mut reported);
            assert_eq!(records(&reported), [&b"ab\0\0\0\0"[..], b"next"], "{written}");
            assert_eq!(follower.offset(), whole.len() as u64);
        }
    }
}

fn waiting_for_a_record_takes_no_longer_than_the_timeout(place: Place) {
    let (_directory, path) = place.directory();
    let mut writer = Writer::new(File::create(&path).unwrap());
    let mut follower = follow(&path);
    let start = Instant::now();
    assert!(matches!(
        follower.wait(Some(Duration::from_millis(120))),
        Ok(Poll::NotYet(_))
    ));
    assert!((Duration::from_millis(120)..HANG).contains(&start.elapsed()));
    // The follower must not wait until the next poll either.
    let seldom = FollowOptions::default().with_poll_interval(2 * HANG);
    let mut follower_that_polls_seldom = Follower::open_with(&path, seldom).unwrap();
    let start = Instant::now();
    let waited = follower_that_polls_seldom.wait(Some(Duration::from_millis(1)));
    assert!(matches!(waited, Ok(Poll::NotYet(_))));
    assert!(start.elapsed() < HANG);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            writer.append(b"late").unwrap();
            writer.flush().unwrap();
        });
        assert!(matches!(follower.wait(None), Ok(Poll::Record(record)) if record.data == b"late"));
    });
}

fn following_a_missing_file_a_directory_or_a_device_is_an_error(place: Place) {
    let (directory, path) = place.directory();
    let kind = |path: &Path| match Follower::open(path) {
        Err(Error {
            path: Some(named),
            kind: ErrorKind::Io { source, .. },
            ..
        }) if *named == *path => source.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&path), std::io::ErrorKind::NotFound);
    assert_eq!(kind(directory.path()), std::io::ErrorKind::IsADirectory);
    #[cfg(unix)]
    assert_eq!(kind(Path::new("/dev/null")), std::io::ErrorKind::InvalidInput);
}
