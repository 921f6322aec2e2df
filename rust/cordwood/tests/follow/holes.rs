//! Tests zeros between records, which may still be overwritten.

use super::*;

follow_tests! {
    in_file_and_segment: [
        a_follower_waits_at_a_hole_until_a_later_block_starts_with_a_record,
        each_block_after_a_hole_is_checked_again,
        a_follower_does_not_wait_at_zeros_in_the_first_three_blocks_if_records_follow,
    ],
    in_file_only, "A segment is never rotated.": [
        records_after_a_long_hole_are_returned_before_the_rotation_is_reported,
    ],
}

fn a_follower_waits_at_a_hole_until_a_later_block_starts_with_a_record(place: Place) {
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 10 * BLOCK_LEN as u64);
    growing.write(0, &Log::new(vec![b"one".to_vec()]).file);
    let mut follower = follow(&path);
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
    // A write in the same block shows that the zeros may still be overwritten.
    growing.write(100, b"something");
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
    growing.write(10, &Log::new(vec![vec![b'x'; 83]]).file);
    growing.write(100, &Log::new(vec![b"three".to_vec()]).file);
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
    assert_eq!(reported.len(), 3);

    let mut behind = Vec::new();
    Encoder::new(10 * BLOCK_LEN as u64).encode(b"behind", &mut behind);
    growing.write(10 * BLOCK_LEN, &behind);
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Idle);
    let regions: Vec<_> = reported[3..].iter().take(1).collect();
    assert!(
        matches!(regions[0], Reported::Skipped(region) if region.reason == Reason::ZeroFill
        && (region.start, region.end) == (112, 10 * BLOCK_LEN as u64))
    );
    assert!(matches!(&reported[4], Reported::Record(_, _, data) if data == b"behind"));
}

/// Returns a file of this length that contains one record and then zeros, and its follower, which
/// waits at the zeros.
fn at_a_hole(path: &Path, len: u64) -> (Growing, Follower, Vec<Reported>) {
    let mut growing = Growing::new(path, len);
    growing.write(0, &Log::new(vec![b"before".to_vec()]).file);
    let mut follower = Follower::open_with(path, skipping()).unwrap();
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
    (growing, follower, reported)
}

/// A crash has left a hole of several blocks. The writer continues in the block after the hole, or
/// in the block after a damaged block. When that block is first polled, only a part of a write may
/// be visible in it.
fn each_block_after_a_hole_is_checked_again(place: Place) {
    for (preallocated, later_block) in [(0, 2), (4 << 20, 2), (4 << 20, 40)] {
        let (directory, path) = place.directory();
        let start = later_block * BLOCK_LEN;
        let (mut growing, mut follower, mut reported) = at_a_hole(&path, preallocated.max(start as u64));
        let mut after = Vec::new();
        Encoder::new(start as u64).encode(b"after the hole", &mut after);
        growing.write(start, &after[..8]);
        assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
        growing.write(start, &after);
        drain(&mut follower, &mut reported);
        let last = Reported::Record(start as u64, (start + after.len()) as u64, b"after the hole".to_vec());
        assert_eq!(reported.last(), Some(&last), "{preallocated}, {later_block}");
        drop(directory);
    }
}

/// A poll probes at most 8 MiB. If the file has been replaced, several polls probe it to its end
/// before the rotation is reported. They probe it again before the rotation is reported another
/// time.
fn records_after_a_long_hole_are_returned_before_the_rotation_is_reported(place: Place) {
    for is_written_between_reports in [false, true] {
        let (directory, path) = place.directory();
        let start = 2_000 * BLOCK_LEN;
        let (mut growing, mut follower, _) = at_a_hole(&path, (start + BLOCK_LEN) as u64);
        let mut after = Vec::new();
        Encoder::new(start as u64).encode(b"after the hole", &mut after);
        fs::rename(&path, directory.path().join("old.log")).unwrap();
        // Returns the number of polls up to the first poll with an event, and that event.
        let next = |follower: &mut Follower| {
            for count in 1.. {
                match follower.poll().unwrap() {
                    Poll::Record(record) => return (count, Some(record.data.to_vec())),
                    Poll::Rotated { .. } => return (count, None),
                    Poll::Skipped(_) => {}
                    Poll::NotYet(not_yet) => {
                        assert_eq!(not_yet.reason, WaitReason::Zeros);
                        assert!(follower.is_probing() && follower.delay().is_zero());
                    }
                    other => panic!("{other:?}"),
                }
            }
            unreachable!()
        };
        if is_written_between_reports {
            let polls = 2_000_usize.div_ceil(255);
            assert_eq!(next(&mut follower), (polls, None));
            assert_eq!(next(&mut follower), (polls, None));
        } else {
            // During these polls, the rest of the file is searched.
            for _ in 0..3 {
                assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)));
            }
        }
        growing.write(start, &after);
        assert_eq!(next(&mut follower).1.as_deref(), Some(&b"after the hole"[..]));
        assert_eq!(next(&mut follower).1, None);
        assert!(!follower.is_probing() && !follower.delay().is_zero());
    }
}

/// The first three blocks show the format of a log. If bytes follow, zeros in these blocks have
/// been written, and are not room for later writes.
fn a_follower_does_not_wait_at_zeros_in_the_first_three_blocks_if_records_follow(place: Place) {
    let cases = [
        (Dialect::LEVELDB, true),
        (Dialect::WANDB, false),
        (Dialect::WANDB, true),
    ];
    for (dialect, is_damaged) in cases {
        for (later_block, preallocated) in [(3, 0), (4, 0), (5, 8 << 20)] {
            let mut encoder = Encoder::with_format(0, dialect).unwrap();
            let mut file = Vec::new();
            for _ in 0..30 {
                encoder.encode(&[b'x'; 993], &mut file);
            }
            if is_damaged {
                file[20] ^= 1;
            }
            file.resize(later_block * BLOCK_LEN, 0);
            let start = file.len();
            let mut encoder = Encoder::with_format(start as u64, dialect).unwrap();
            for _ in 0..30 {
                encoder.encode(&[b'y'; 5_000], &mut file);
            }
            let (_directory, path) = place.directory();
            let mut growing = Growing::new(&path, preallocated);
            growing.write(0, &file[..start]);
            let mut follower = Follower::open_with(&path, skipping()).unwrap();
            let mut reported = Vec::new();
            drain(&mut follower, &mut reported);
            growing.write(start, &file[start..]);
            drain(&mut follower, &mut reported);
            assert_eq!(reported, read(&file), "{dialect:?}, {is_damaged}, {later_block}");
        }
    }
}
