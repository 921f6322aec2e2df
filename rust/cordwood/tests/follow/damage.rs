//! Damage is reported once, in the same way as by a reader of the whole file. A write in progress
//! is not damage.

use super::*;

follow_tests! {
    in_file_and_segment: [
        damage_is_reported_only_after_both_retry_limits_are_exhausted,
        a_follower_reports_damage_just_as_a_reader_of_the_whole_file_does,
        damage_followed_by_a_valid_block_is_reported_at_once,
        the_policies,
        the_rest_of_an_oversized_record_is_not_reported_as_damage_when_it_is_reread,
        the_rest_of_a_record_with_a_destroyed_start_is_reported_as_damage,
        damage_at_the_end_of_a_log_is_reported_only_after_all_retries,
        damage_that_is_overwritten_during_the_retries_is_not_reported,
        unwritten_bytes_never_complete_a_fragment,
        all_events_at_the_same_place_share_one_series_of_retries,
        the_retry_count_starts_over_at_a_new_place,
        a_follower_that_starts_in_a_damaged_block_waits_for_the_end_of_the_block,
        truncation_inside_a_damaged_block_is_reported,
        the_rest_of_a_damaged_record_is_reported_as_damage_after_it_is_rewritten,
        resuming_from_an_offset_after_damage_returns_the_same_records,
    ],
}

/// Returns the same events, but with one reason for a wrong length and a wrong checksum. A header
/// that no writer writes is reported before its data is complete, and its checksum cannot be
/// verified at that point.
fn without_checksums(mut reported: Vec<Reported>) -> Vec<Reported> {
    for reported in &mut reported {
        if let Reported::Skipped(region) = reported
            && matches!(region.reason, Reason::ChecksumMismatch { .. })
        {
            region.reason = Reason::BadLength { len: 0 };
        }
        if let Reported::Skipped(region) = reported
            && let Reason::BadLength { len } = &mut region.reason
        {
            *len = 0;
        }
    }
    reported
}

fn a_follower_reports_damage_just_as_a_reader_of_the_whole_file_does(place: Place) {
    let small = small_log();
    // The file has another block, so that the end of the file does not matter.
    let mut whole = small.file.clone();
    whole.resize(whole.len().next_multiple_of(BLOCK_LEN), 0);
    Encoder::new(whole.len() as u64).encode(b"a block of its own", &mut whole);
    let mut random = Random(7);
    let options = FollowOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_retry(1, Duration::from_micros(1));
    for round in 0..120 {
        let mut file = whole.clone();
        let span = &small.spans[random.below(small.spans.len())];
        let at = if round % 3 == 0 {
            random.below(file.len())
        } else {
            span.start + random.below(7)
        };
        match round % 4 {
            0 => file[at..at + 600.min(small.file.len() - at.min(small.file.len()))].fill(0),
            _ => file[at] ^= 1 << random.below(8),
        }
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, if round % 2 == 0 { 0 } else { file.len() as u64 + 100 });
        let mut follower = Follower::open_with(&path, options.clone()).unwrap();
        let (mut written, mut reported) = (0, Vec::new());
        let chunk_max = [file.len(), 40_000, 3_000][random.below(3)];
        while written < file.len() {
            let end = file.len().min(written + 1 + random.below(chunk_max));
            growing.write(written, &file[written..end]);
            written = end;
            drain(&mut follower, &mut reported);
        }
        assert_eq!(
            without_checksums(reported),
            without_checksums(read(&file)),
            "round {round}, byte {at}, chunks of at most {chunk_max}"
        );
        assert_eq!(follower.offset(), file.len() as u64);
    }
}

fn damage_followed_by_a_valid_block_is_reported_at_once(place: Place) {
    let mut log = small_log();
    log.file[8] ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &log.file).unwrap();
    let mut follower = Follower::open_with(
        &path,
        FollowOptions::default().with_retry(1_000, Duration::from_secs(1_000)),
    )
    .unwrap();
    match follower.poll() {
        Err(Error {
            path: Some(named),
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => {
            assert_eq!(*named, *follower.path);
            assert_eq!((region.start, region.end), (0, BLOCK_LEN as u64));
            assert!(matches!(region.reason, Reason::ChecksumMismatch { .. }));
        }
        other => panic!("{other:?}"),
    }
    let Poll::Record(record) = follower.poll().unwrap() else {
        panic!()
    };
    assert!(record.data == log.records[5]);
}

fn damage_at_the_end_of_a_log_is_reported_only_after_all_retries(place: Place) {
    let (_directory, path) = place.directory();
    let mut log = Log::new(vec![b"good".to_vec(), b"bad".to_vec()]);
    let last = log.file.len() - 1;
    log.file[last] ^= 1;
    fs::write(&path, &log.file).unwrap();
    let mut follower = follow(&path);
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    let start = Instant::now();
    let mut polls = 0;
    let region = loop {
        match follower.poll() {
            Ok(Poll::NotYet(not_yet)) => {
                assert_eq!((not_yet.reason, not_yet.pending_len()), (WaitReason::Suspect, 10));
                assert_eq!(follower.offset(), 11);
                polls += 1;
                thread::sleep(follower.delay());
            }
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => break region,
            other => panic!("{other:?}"),
        }
    };
    assert!(polls >= 3 && start.elapsed() >= Duration::from_millis(100), "{polls}");
    assert!(start.elapsed() < HANG);
    assert_eq!((region.start, region.end), (11, 21));

    // The rest of the block is not trusted. It is reported once it has been written, and is not a
    // second error.
    let mut growing = Growing {
        file: File::options().write(true).open(&path).unwrap(),
    };
    growing.write(21, &Log::new(vec![b"in the same block".to_vec()]).file);
    let Poll::NotYet(not_yet) = follower.poll().unwrap() else {
        panic!()
    };
    assert_eq!((not_yet.offset, not_yet.reason), (21, WaitReason::Damaged));
    let mut next = Vec::new();
    Encoder::new(BLOCK_LEN as u64).encode(b"in the next", &mut next);
    growing.write(BLOCK_LEN, &next);
    let Poll::Skipped(rest) = follower.poll().unwrap() else {
        panic!()
    };
    assert_eq!(
        (rest.start, rest.end, rest.reason),
        (21, BLOCK_LEN as u64, region.reason)
    );
    let Poll::Record(record) = follower.poll().unwrap() else {
        panic!()
    };
    assert_eq!(record.data, b"in the next");
}

fn damage_that_is_overwritten_during_the_retries_is_not_reported(place: Place) {
    let (_directory, path) = place.directory();
    let log = Log::new(vec![b"good".to_vec(), vec![b'x'; 5_000]]);
    let mut growing = Growing::new(&path, 0);
    let mut torn = log.file.clone();
    torn[1_000..2_000].fill(0);
    growing.write(0, &torn);
    let mut follower = follow(&path);
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    for _ in 0..3 {
        assert!(matches!(
            follower.poll(),
            Ok(Poll::NotYet(NotYet {
                reason: WaitReason::Suspect,
                ..
            }))
        ));
    }
    growing.write(1_000, &log.file[1_000..2_000]);
    let Poll::Record(record) = follower.poll().unwrap() else {
        panic!()
    };
    assert!(record.data == log.records[1]);
    assert_eq!(follower.delay(), FollowOptions::default().poll_interval);
}

/// No writer would write such a header here, so it is damage even before its payload is written.
/// This also holds if the checksum fits a payload of zeros, or of another byte that may be a
/// placeholder, because the payload is different once it is written.
fn unwritten_bytes_never_complete_a_fragment(place: Place) {
    const FIRST: u8 = 2;
    const LAST: u8 = 4;
    const UNKNOWN: u8 = 77;
    for (kind, byte) in [(FIRST, 0), (FIRST, 1), (FIRST, 0xff), (LAST, 0), (UNKNOWN, 0)] {
        let header = &Wire::Plain.fragment(kind, &[byte; 50])[..7];
        let mut file = [header, &[b'x'; 50], &Wire::Plain.full(b"in the same block")].concat();
        file.resize(BLOCK_LEN, 0);
        file.extend(Wire::Plain.full(b"next"));
        let (_directory, path) = place.directory();
        let options = skipping().with_dialect(Dialect::LEVELDB);
        let reported = followed(&path, &file, [7, 20, 100, file.len()], options);
        let [Reported::Skipped(block), Reported::Record(start, _, data)] = &reported[..] else {
            panic!("type {kind}: {reported:?}");
        };
        assert_eq!((block.start, block.end), (0, BLOCK_LEN as u64), "type {kind}");
        assert_eq!(block.reason, Reason::BadLength { len: 50 });
        assert_eq!((*start, &data[..]), (BLOCK_LEN as u64, b"next".as_slice()));
    }
}

/// The unfinished record is reported first, and then the bytes that look damaged.
fn all_events_at_the_same_place_share_one_series_of_retries(place: Place) {
    let mut file = Wire::Plain.part(2, &[b'x'; BLOCK_LEN - 7]);
    file.extend(Wire::Plain.part(4, b"rest"));
    *file.last_mut().unwrap() ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &file).unwrap();
    let options = skipping().with_dialect(Dialect::LEVELDB).with_retry(2, Duration::ZERO);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let answers: Vec<_> = (0..5)
        .map(|_| match follower.poll().unwrap() {
            Poll::Skipped(region) => region.reason.as_str(),
            Poll::NotYet(not_yet) => not_yet.reason.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        answers,
        [
            "suspect",
            "suspect",
            "interrupted_record",
            "checksum_mismatch",
            "damaged"
        ]
    );
}

/// No event is reported between the two places, because the bytes at the first place turn out to be
/// a part of a record.
fn the_retry_count_starts_over_at_a_new_place(place: Place) {
    let mut file = Wire::Plain.part(2, &[b'x'; BLOCK_LEN - 7]);
    file.extend(Wire::Plain.part(4, b"rest"));
    *file.last_mut().unwrap() ^= 1;
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    growing.write(0, &file[..BLOCK_LEN]);
    growing.write(100, b"y");
    let options = skipping().with_dialect(Dialect::LEVELDB).with_retry(2, Duration::ZERO);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let is_suspect = |follower: &mut Follower| {
        let poll = follower.poll().unwrap();
        matches!(poll, Poll::NotYet(not_yet) if not_yet.reason == WaitReason::Suspect)
    };
    assert!(is_suspect(&mut follower) && is_suspect(&mut follower));
    growing.write(0, &file);
    assert!(is_suspect(&mut follower) && is_suspect(&mut follower));
    assert!(!is_suspect(&mut follower));
}

/// The new follower waits like the one that reported the damage. Both lose the rest of the block,
/// but only the first follower reports it.
fn a_follower_that_starts_in_a_damaged_block_waits_for_the_end_of_the_block(place: Place) {
    let mut damaged = Wire::Plain.full(b"bad");
    damaged[8] ^= 1;
    let mut file = [Wire::Plain.full(b"one"), damaged].concat();
    let start = file.len();
    file.extend(Wire::Plain.full(b"in the same block"));
    let end = file.len();
    file.resize(BLOCK_LEN, 0);
    file.extend(Wire::Plain.full(b"next"));
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    growing.write(0, &file[..start]);
    let options = skipping().with_dialect(Dialect::LEVELDB);
    let mut follower = Follower::open_with(&path, options.clone()).unwrap();
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);
    assert_eq!(follower.offset(), start as u64);
    let mut later = Follower::open_with(&path, options.with_start(start as u64)).unwrap();
    let mut reported_later = Vec::new();
    for len in [start, end, BLOCK_LEN - 1] {
        growing.write(0, &file[..len]);
        for (follower, reported) in [(&mut follower, &mut reported), (&mut later, &mut reported_later)] {
            let not_yet = drain(follower, reported);
            assert_eq!(
                (not_yet.offset, not_yet.reason),
                (start as u64, WaitReason::Damaged),
                "{len}"
            );
        }
    }
    growing.write(0, &file[..BLOCK_LEN]);
    assert_eq!(drain(&mut follower, &mut reported).offset, BLOCK_LEN as u64);
    drain(&mut later, &mut reported_later);
    growing.write(0, &file);
    drain(&mut follower, &mut reported);
    drain(&mut later, &mut reported_later);
    let next = Reported::Record(BLOCK_LEN as u64, file.len() as u64, b"next".to_vec());
    assert_eq!(reported_later, std::slice::from_ref(&next));
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert_eq!(reported[2], next);
    assert!(
        matches!(&reported[1], Reported::Skipped(region) if (region.start, region.end) == (10, BLOCK_LEN as u64)),
        "{reported:?}"
    );
}

/// The file is truncated while the follower waits for the end of the damaged block.
fn truncation_inside_a_damaged_block_is_reported(place: Place) {
    let mut damaged = Wire::Plain.full(b"bad");
    damaged[8] ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &damaged).unwrap();
    let options = skipping().with_dialect(Dialect::LEVELDB);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Damaged);
    fs::write(&path, &damaged[..9]).unwrap();
    for _ in 0..2 {
        let poll = follower.poll().unwrap();
        assert!(
            matches!(
                poll,
                Poll::Truncated {
                    offset: 10,
                    file_len: 9,
                    ..
                }
            ),
            "{poll:?}"
        );
    }
}

fn the_policies(place: Place) {
    let mut log = small_log();
    log.file[8] ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &log.file).unwrap();
    let mut follower =
        Follower::open_with(&path, FollowOptions::default().with_on_corruption(OnCorruption::Stop)).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Skipped(region)) if region.start == 0));
    for _ in 0..2 {
        assert_eq!(follower.poll().unwrap(), Poll::End(End::Stopped { offset: 0 }));
    }
    let skip = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut reported = Vec::new();
    drain(&mut Follower::open_with(&path, skip.clone()).unwrap(), &mut reported);
    assert_eq!(reported, read(&log.file));

    // The record is longer than the limit, and is still being written when that becomes clear.
    let log = Log::new(vec![vec![b'x'; 3 * BLOCK_LEN], b"next".to_vec()]);
    let ends = [40_000, 70_000, 90_000, log.file.len()];
    let reported = followed(&path, &log.file, ends, skip.with_record_len_max(50_000));
    let reasons: Vec<_> = reported
        .iter()
        .filter_map(|reported| match reported {
            Reported::Skipped(region) => Some(region.reason),
            Reported::Record(..) => None,
        })
        .collect();
    assert_eq!(reasons, [Reason::RecordTooLarge, Reason::TooLargeRest]);
    assert!(matches!(&reported[2], Reported::Record(_, _, data) if data == b"next"));
}

/// The rest of a record that is too large is not damage. It is read more than once, because the
/// writer truncates the file and writes the rest again.
fn the_rest_of_an_oversized_record_is_not_reported_as_damage_when_it_is_reread(place: Place) {
    let (run, _) = run_file(0, &[5, 50_000, 4]);
    let plain = Log::new(vec![vec![b'a'; 5], vec![b'b'; 100_000], vec![b'c'; 4]]).file;
    // LevelDB ignores the bytes of a trailer after a FIRST fragment.
    let mut trailer = Wire::Plain.part(2, &[b'b'; BLOCK_LEN - 10]);
    trailer.extend([1, 2, 3]);
    trailer.extend(&plain[BLOCK_LEN..]);
    for file in [run, plain, trailer] {
        let options = ReadOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_record_len_max(10_000);
        let expected = read_with(&file, options);
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, skipping().with_record_len_max(10_000)).unwrap();
        let mut reported = Vec::new();
        let almost = 70_000.min(file.len() - 20);
        for (written, end) in [(0, 20_000), (20_000, almost), (35_000, file.len())] {
            growing.file.set_len(written as u64).unwrap();
            drain(&mut follower, &mut reported);
            growing.write(written, &file[written..end]);
            drain(&mut follower, &mut reported);
        }
        assert_eq!(reported, expected);
    }
}

/// The fragments after reported damage are truncated and written again. The rest of a record that
/// started in the damaged block is damage, and must not be taken for the rest of a record that was
/// too large.
fn the_rest_of_a_damaged_record_is_reported_as_damage_after_it_is_rewritten(place: Place) {
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    growing.write(0, &[0xff; BLOCK_LEN]);
    growing.write(BLOCK_LEN, &Wire::Plain.part(2, &[b'x'; BLOCK_LEN - 7]));
    let options = skipping().with_dialect(Dialect::LEVELDB);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Incomplete);
    growing.file.set_len(BLOCK_LEN as u64).unwrap();
    growing.write(BLOCK_LEN, &Wire::Plain.part(4, b"rest"));
    drain(&mut follower, &mut reported);
    let [Reported::Skipped(block), Reported::Skipped(rest)] = &reported[..] else {
        panic!("{reported:?}");
    };
    assert_eq!((block.start, block.end), (0, BLOCK_LEN as u64));
    assert_eq!((rest.start, rest.reason), (BLOCK_LEN as u64, Reason::MissingStart));
}

/// The start of a record is destroyed. The rest of the record is damage, even if the destroyed
/// block was taken for a block of another dialect.
fn the_rest_of_a_record_with_a_destroyed_start_is_reported_as_damage(place: Place) {
    for wire in [Wire::Plain, Wire::Recyclable(5), Wire::Synced(5, 9)] {
        let mut file = Vec::new();
        for _ in 0..2 {
            wire.append(&mut file, 0, &[b'd'; 2 * BLOCK_LEN]);
        }
        file[100] ^= 1;
        let second = BLOCK_LEN * 2 + 3 * wire.header_len();
        let expected = [
            (0, BLOCK_LEN, "checksum_mismatch"),
            (BLOCK_LEN, second, "missing_start"),
            (second, file.len(), "record"),
        ];
        for step in [1_000, BLOCK_LEN, 40_000, file.len()] {
            let reported = followed_in_steps(place, &file, step, skipping());
            let spans = reported.iter().map(|reported| match reported {
                Reported::Record(start, end, _) => (*start as usize, *end as usize, "record"),
                Reported::Skipped(region) => (region.start as usize, region.end as usize, region.reason.as_str()),
            });
            assert_eq!(spans.collect::<Vec<_>>(), expected, "{wire:?}, {step} bytes at a time");
        }
    }
}

/// A follower that starts where another follower stopped reports the same events. The rest of a
/// record that was damaged before that offset is the only exception.
fn resuming_from_an_offset_after_damage_returns_the_same_records(place: Place) {
    let mut log = Log::new(vec![
        vec![b'a'; 40_000],
        b"b".to_vec(),
        vec![b'c'; 100_000],
        b"d".to_vec(),
    ]);
    log.file[100] ^= 1;
    log.file[2 * BLOCK_LEN + 100] ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &log.file).unwrap();
    let expected = read(&log.file);
    let is_rest =
        |reported: &Reported| matches!(reported, Reported::Skipped(region) if region.reason == Reason::MissingStart);
    let mut rests = 0;
    for (index, last) in expected.iter().enumerate() {
        let (Reported::Record(_, end, _) | Reported::Skipped(SkippedRegion { end, .. })) = last;
        let mut reported = Vec::new();
        drain(
            &mut Follower::open_with(&path, skipping().with_start(*end)).unwrap(),
            &mut reported,
        );
        let mut rest = &expected[index + 1..];
        if rest.first().is_some_and(is_rest) {
            rests += 1;
            rest = &rest[1..];
        }
        assert_eq!(reported, rest, "from {end}");
    }
    assert_eq!(rests, 2);
}

/// Each of the two limits alone prevents damage from being reported. This test takes less time than
/// the limits.
fn damage_is_reported_only_after_both_retry_limits_are_exhausted(place: Place) {
    let mut file = Wire::Plain.full(b"bad");
    file[9] ^= 1;
    let (_directory, path) = place.directory();
    fs::write(&path, &file).unwrap();
    for (polls, time, is_final) in [
        (0, Duration::ZERO, true),
        (0, Duration::MAX, false),
        (u32::MAX, Duration::ZERO, false),
    ] {
        let options = skipping().with_retry(polls, time);
        let mut follower = Follower::open_with(&path, options).unwrap();
        for _ in 0..20 {
            match follower.poll().unwrap() {
                Poll::Skipped(region) if is_final => assert_eq!((region.start, region.end), (0, 10)),
                Poll::NotYet(not_yet) if is_final => assert_eq!(not_yet.reason, WaitReason::Damaged),
                Poll::NotYet(not_yet) => assert_eq!(not_yet.reason, WaitReason::Suspect),
                other => panic!("{polls}, {time:?}: {other:?}"),
            }
        }
        assert_eq!(follower.offset(), if is_final { 10 } else { 0 });
    }
}
