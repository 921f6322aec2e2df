//! Tests detecting which log a file contains, while its start is being written or if it is damaged.

use super::*;
use cordwood_log::Unsupported;
use cordwood_log::ops::{DETECT_LEN, Foreign};

follow_tests! {
    in_file_and_segment: [
        a_log_that_starts_with_damage_is_followed_in_its_dialect,
        damage_found_before_the_dialect_is_known_is_reported_as_one_error_for_its_block,
        raw_frames_are_not_returned_as_records_if_a_log_starts_with_damage,
        a_follower_waits_until_a_first_fragment_of_any_dialect_is_complete,
        a_follower_waits_for_a_first_fragment_of_any_dialect_in_a_preallocated_file,
        a_fragment_of_unknown_type_is_incomplete_until_its_longer_header_is_written,
        the_dialect_is_decided_once_three_blocks_without_a_valid_fragment_are_written,
        containers_are_still_read_if_no_dialect_is_detected_in_the_first_three_blocks,
        a_follower_does_not_wait_for_a_first_fragment_once_three_blocks_are_written,
    ],
    in_file_only, "No log of compressed records is segmented.": [
        metadata_before_the_first_record_does_not_delay_the_record,
        a_follower_waits_for_the_whole_first_block_after_metadata,
        a_log_number_is_rejected_once_a_dialect_without_log_numbers_is_detected,
        a_dialect_given_by_the_caller_is_not_replaced_while_the_log_number_is_unknown,
        the_log_number_is_determined_once_three_blocks_are_written,
        a_damaged_file_header_is_reread_before_it_is_reported,
    ],
    in_file_only, "The segment before it shows that it is a log.": [
        a_file_of_another_format_is_rejected_once_its_signature_is_written,
    ],
}

/// Until the dialect is known, the header of the first fragment may be longer than LevelDB's.
fn a_follower_waits_until_a_first_fragment_of_any_dialect_is_complete(place: Place) {
    for wire in [Wire::Plain, Wire::Recyclable(4), Wire::Synced(4, 9)] {
        // A record may contain a log of another dialect.
        let log = [Wire::Plain.full(b"in"), Wire::Plain.full(b"it"), b"!".to_vec()].concat();
        for data in [&b""[..], b"first", &log] {
            let (_directory, path) = place.directory();
            let file = wire.full(data);
            fs::write(&path, b"").unwrap();
            let options = FollowOptions::default().with_retry(0, Duration::ZERO);
            let mut follower = Follower::open_with(&path, options).unwrap();
            for len in 1..file.len() {
                fs::write(&path, &file[..len]).unwrap();
                let poll = follower.poll();
                assert!(
                    matches!(
                        &poll,
                        Ok(Poll::NotYet(NotYet {
                            reason: WaitReason::Incomplete,
                            ..
                        }))
                    ),
                    "{wire:?}, {len} bytes: {poll:?}"
                );
            }
            fs::write(&path, &file).unwrap();
            let poll = follower.poll();
            assert!(
                matches!(&poll, Ok(Poll::Record(record)) if record.data == data),
                "{wire:?}: {poll:?}"
            );
        }
    }
}

/// In a preallocated file, zeros follow the bytes that have been written so far.
fn a_follower_waits_for_a_first_fragment_of_any_dialect_in_a_preallocated_file(place: Place) {
    for wire in [Wire::Plain, Wire::Recyclable(4), Wire::Synced(4, 9)] {
        let log = [Wire::Plain.full(b"in"), Wire::Plain.full(b"it"), b"!".to_vec()].concat();
        for data in [&b"first"[..], &log] {
            let (_directory, path) = place.directory();
            let file = wire.full(data);
            // The last bytes are after those that show the dialect, and are fewer than a header.
            let len_before = DETECT_LEN + 5;
            fs::write(&path, vec![0; len_before]).unwrap();
            let options = FollowOptions::default().with_retry(0, Duration::ZERO);
            let mut follower = Follower::open_with(&path, options).unwrap();
            for len in 1..file.len() {
                let mut preallocated = file[..len].to_vec();
                preallocated.resize(len_before, 0);
                fs::write(&path, preallocated).unwrap();
                let poll = follower.poll();
                assert!(matches!(&poll, Ok(Poll::NotYet(_))), "{wire:?}, {len} bytes: {poll:?}");
            }
            let mut preallocated = file.clone();
            preallocated.resize(len_before, 0);
            fs::write(&path, preallocated).unwrap();
            let poll = follower.poll();
            assert!(
                matches!(&poll, Ok(Poll::Record(record)) if record.data == data),
                "{wire:?}: {poll:?}"
            );
        }
    }
}

/// A record that declares the compression comes first. In another dialect, its type would have a
/// longer header, and the follower would wait for the rest of it. The checksum rules that out. The
/// next fragment contains the number of the log.
fn metadata_before_the_first_record_does_not_delay_the_record(place: Place) {
    let metadata = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    // An empty record is not a zstd frame.
    for payload in [&b""[..], b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00one\xf6\xa1\x08\x24"] {
        let (_directory, path) = place.directory();
        let file = [&metadata[..], &Wire::Recyclable(4).full(payload)].concat();
        fs::write(&path, b"").unwrap();
        // A build without zstd skips the compressed record.
        let options = skipping();
        let mut follower = Follower::open_with(&path, options).unwrap();
        for len in 1..file.len() {
            fs::write(&path, &file[..len]).unwrap();
            let poll = follower.poll();
            let waits = matches!(&poll, Ok(Poll::NotYet(not_yet)) if not_yet.reason == WaitReason::Incomplete);
            assert!(waits, "{len} bytes: {poll:?}");
        }
        fs::write(&path, &file).unwrap();
        let mut reported = Vec::new();
        let waits = drain(&mut follower, &mut reported);
        assert_eq!(waits.reason, WaitReason::Idle);
        let format = follower.format();
        assert_eq!(
            (format.log_number, format.compression),
            (Some(4), Some(Compression::Zstd))
        );
        if payload.is_empty() {
            assert_eq!(reported.last(), Some(&Reported::Record(11, 22, Vec::new())));
        }
    }
}

/// A byte that is not zero shows that everything before it has been written. Here, it is the last
/// byte of the three blocks, or any byte after them.
fn the_dialect_is_decided_once_three_blocks_without_a_valid_fragment_are_written(place: Place) {
    let mut file: Vec<u8> = [0x4d, 0xff].iter().copied().cycle().take(4 * BLOCK_LEN).collect();
    for last in [0xff, 1, 0] {
        file[DETECT_LEN - 1] = last;
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, skipping()).unwrap();
        let (mut reported, mut written) = (Vec::new(), 0);
        for end in [BLOCK_LEN, DETECT_LEN - 1, DETECT_LEN, DETECT_LEN + 20, file.len()] {
            growing.write(written, &file[written..end]);
            written = end;
            drain(&mut follower, &mut reported);
            // Before this point, only the damage at the start is reported.
            let is_decided = end > DETECT_LEN || (end == DETECT_LEN && last != 0);
            let expected = if is_decided { end } else { BLOCK_LEN };
            assert_eq!(follower.offset(), expected as u64, "{last}, {end} bytes");
        }
    }
}

/// As by a reader of the whole file.
fn containers_are_still_read_if_no_dialect_is_detected_in_the_first_three_blocks(place: Place) {
    let mut file: Vec<u8> = [0x4d, 0xff].iter().copied().cycle().take(DETECT_LEN).collect();
    file.extend(Wire::Packed.full(b"\x00\x01\x01a"));
    let (_directory, path) = place.directory();
    fs::write(&path, &file).unwrap();
    let mut reported = Vec::new();
    drain(&mut Follower::open_with(&path, skipping()).unwrap(), &mut reported);
    let (start, end) = (DETECT_LEN as u64, file.len() as u64);
    assert_eq!(reported.last(), Some(&Reported::Record(start, end, b"a".to_vec())));
}

/// It is damage, because the bytes after it have been written.
fn a_follower_does_not_wait_for_a_first_fragment_once_three_blocks_are_written(place: Place) {
    let mut file = Wire::Recyclable(5).full(&[b'x'; 32_000])[..20].to_vec();
    file.resize(BLOCK_LEN, 0);
    file.extend([0x4d, 0xff].iter().cycle().take(DETECT_LEN));
    let (_directory, path) = place.directory();
    fs::write(&path, &file).unwrap();
    let mut follower = Follower::open_with(&path, skipping()).unwrap();
    drain(&mut follower, &mut Vec::new());
    assert_eq!(follower.offset(), file.len() as u64);
}

/// One bit is wrong in the file header of a run file.
fn a_dialect_given_by_the_caller_is_not_replaced_while_the_log_number_is_unknown(place: Place) {
    let (_directory, path) = place.directory();
    fs::write(&path, b":W&B\xe1\xbe\x01").unwrap();
    let options = skipping().with_dialect(Dialect::RECYCLABLE);
    let mut follower = Follower::open_with(&path, options).unwrap();
    follower.poll().unwrap();
    assert_eq!(follower.format().dialect, Dialect::RECYCLABLE);
}

/// The first block is damaged, but fragments after the damage have the number 5. So the next block
/// is left over from an older log. A decision from less than three blocks would miss this number.
fn the_log_number_is_determined_once_three_blocks_are_written(place: Place) {
    // The fragment at the start is valid in another dialect only.
    let other = Wire::Synced(4, 9).full(b"other");
    for (first, preallocated) in [(&b""[..], DETECT_LEN + 5), (&other, 0)] {
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, preallocated as u64);
        let options = skipping().with_dialect(Dialect::RECYCLABLE);
        let mut follower = Follower::open_with(&path, options).unwrap();
        growing.write(0, first);
        assert!(matches!(follower.poll(), Ok(Poll::NotYet(_) | Poll::Skipped(_))));
        growing.write(DETECT_LEN, &Wire::Recyclable(5).full(b"two"));
        growing.write(2 * BLOCK_LEN, &Wire::Recyclable(5).full(b"one"));
        growing.write(BLOCK_LEN, &Wire::Recyclable(4).full(b"older"));
        growing.write(100, &Wire::Recyclable(5).full(b"lost").repeat(2));
        growing.write(0, &[0xff; 20]);
        let mut reported = Vec::new();
        drain(&mut follower, &mut reported);
        reported.retain(|reported| matches!(reported, Reported::Record(..)));
        assert_eq!(records(&reported), [b"one", b"two"]);
    }
}

/// One bit is wrong in the file header of a run file.
fn a_damaged_file_header_is_reread_before_it_is_reported(place: Place) {
    let (_directory, path) = place.directory();
    fs::write(&path, b":W&C\xe1\xbe\x00").unwrap();
    let mut follower = Follower::open_with(&path, skipping().with_retry(2, Duration::ZERO)).unwrap();
    for _ in 0..2 {
        let poll = follower.poll();
        assert!(
            matches!(&poll, Ok(Poll::NotYet(not_yet)) if not_yet.reason == WaitReason::Suspect),
            "{poll:?}"
        );
    }
    let poll = follower.poll();
    assert!(
        matches!(&poll, Ok(Poll::Skipped(region)) if region.start == 0),
        "{poll:?}"
    );
}

/// If the first fragment of a log is destroyed, the records after the first block are returned.
/// This is true in any dialect, whether or not it is named.
fn a_log_that_starts_with_damage_is_followed_in_its_dialect(place: Place) {
    let unnamed = [Wire::Plain, Wire::Recyclable(5), Wire::Synced(5, 9)].map(|wire| (wire, None));
    let named = [
        (Wire::Plain, Some(Dialect::LEVELDB)),
        (Wire::Plain, Some(Dialect::PEBBLE)),
        (Wire::Recyclable(5), Some(Dialect::ROCKSDB)),
        (Wire::Synced(5, 9), Some(Dialect::PEBBLE)),
    ];
    for (wire, dialect) in unnamed.into_iter().chain(named) {
        let (mut file, mut expected) = (Vec::new(), Vec::new());
        for index in 0..20_u64 {
            let data = [&index.to_le_bytes()[..], &[b'x'; 6_000]].concat();
            let start = wire.append(&mut file, 0, &data);
            if start >= BLOCK_LEN as u64 {
                expected.push((start, data));
            }
        }
        file[..20].fill(0xff);
        for (step, preallocated) in [(700, 0), (BLOCK_LEN, 0), (40_000, 0), (3_000, 2 * file.len())] {
            let (_directory, path) = place.directory();
            let mut options = skipping();
            options.dialect = dialect;
            let mut growing = Growing::new(&path, preallocated as u64);
            let mut follower = Follower::open_with(&path, options).unwrap();
            let mut reported = Vec::new();
            for (index, piece) in file.chunks(step).enumerate() {
                growing.write(index * step, piece);
                drain(&mut follower, &mut reported);
            }
            let found: Vec<_> = reported
                .into_iter()
                .filter_map(|reported| match reported {
                    Reported::Record(start, _, data) => Some((start, data)),
                    Reported::Skipped(_) => None,
                })
                .collect();
            assert!(
                found == expected,
                "{wire:?} as {dialect:?}, {step} bytes at a time: {} of {} records",
                found.len(),
                expected.len()
            );
        }
    }
}

/// In LevelDB's dialect, the first fragment has an unknown type and costs only itself. In the log's
/// own dialect, it is damage and costs the block. The follower must report one error, not two.
fn damage_found_before_the_dialect_is_known_is_reported_as_one_error_for_its_block(place: Place) {
    let wire = Wire::Synced(5, 9);
    let unknown = Wire::Plain.fragment(5, &[b'u'; 300]);
    let mut file = unknown.clone();
    file.extend(Wire::Plain.full(b"in the damaged block"));
    let mut records = Vec::new();
    for byte in 0..9 {
        let data = vec![byte; 10_000];
        let start = wire.append(&mut file, 0, &data);
        records.push((start, data));
    }
    let first_block = BLOCK_LEN as u64;
    // The record that starts in this block continues in the next one.
    let expected: Vec<_> = records.into_iter().filter(|record| record.0 >= first_block).collect();
    for (on_corruption, step) in [OnCorruption::Skip, OnCorruption::Fail]
        .into_iter()
        .flat_map(|policy| [200, 5_000, 40_000, 200_000].map(|step| (policy, step)))
    {
        let (_directory, path) = place.directory();
        let options = FollowOptions::default()
            .with_retry(0, Duration::ZERO)
            .with_on_corruption(on_corruption);
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let (mut found, mut skipped, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (index, piece) in file.chunks(step).enumerate() {
            growing.write(index * step, piece);
            loop {
                match follower.poll() {
                    Ok(Poll::Record(record)) => found.push((record.offset, record.data.to_vec())),
                    Ok(Poll::Skipped(region)) => skipped.push(region.start..region.end),
                    Ok(_) => break,
                    Err(Error {
                        kind: ErrorKind::Corruption { region, .. },
                        ..
                    }) => errors.push(region.start..region.end),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let case = format!("{on_corruption:?}, {step} bytes at a time: {errors:?} and {skipped:?}");
        assert!(found == expected, "{case}, {} of {}", found.len(), expected.len());
        // The rest of the record that starts in the block is reported as separate damage.
        let rest = match on_corruption {
            OnCorruption::Fail => {
                assert_eq!(errors.len(), 2, "{case}");
                errors.pop().unwrap()
            }
            _ => skipped.pop().unwrap(),
        };
        assert_eq!((rest.start, rest.end), (first_block, expected[0].0), "{case}");
        let all: Vec<_> = errors.iter().chain(&skipped).collect();
        assert_eq!((all[0].start, all[all.len() - 1].end), (0, first_block), "{case}");
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start), "{case}");
    }
}

/// The record that declares the compression is destroyed. A zstd frame must still not be returned
/// as a record.
fn raw_frames_are_not_returned_as_records_if_a_log_starts_with_damage(place: Place) {
    let frame = b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00one\xf6\xa1\x08\x24";
    for wire in [Wire::Plain, Wire::Recyclable(5)] {
        let mut file = vec![0xff; 11];
        while file.len() < 4 * BLOCK_LEN {
            wire.append(&mut file, 0, frame);
        }
        for dialect in [None, Some(Dialect::ROCKSDB)] {
            let (_directory, path) = place.directory();
            let mut options = skipping();
            options.dialect = dialect;
            let mut growing = Growing::new(&path, 0);
            let mut follower = Follower::open_with(&path, options).unwrap();
            let mut reported = Vec::new();
            for (index, piece) in file.chunks(5_000).enumerate() {
                growing.write(index * 5_000, piece);
                drain(&mut follower, &mut reported);
            }
            // A build without zstd skips all frames.
            let found = reported.iter().filter(|reported| match reported {
                Reported::Record(_, _, data) => {
                    assert_eq!(data, b"one", "{wire:?} as {dialect:?}");
                    true
                }
                Reported::Skipped(_) => false,
            });
            assert_eq!(found.count() > 3_000, cfg!(feature = "zstd"), "{wire:?} as {dialect:?}");
            assert_eq!(follower.format().compression, Some(Compression::Zstd));
        }
    }
}

/// A fragment of a type that a later version may write has one of two headers. It is incomplete
/// until the longer header has been written.
fn a_fragment_of_unknown_type_is_incomplete_until_its_longer_header_is_written(place: Place) {
    let mut file = Wire::Plain.full(b"before");
    file.extend(Wire::Recyclable(4).fragment(41, &[b'u'; 80]));
    file.extend(Wire::Plain.full(b"after"));
    for dialect in [Dialect::ROCKSDB, Dialect::PEBBLE, Dialect::RECYCLABLE] {
        let (_directory, path) = place.directory();
        let options = skipping().with_dialect(dialect);
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let mut reported = Vec::new();
        for (at, byte) in file.iter().enumerate() {
            growing.write(at, &[*byte]);
            drain(&mut follower, &mut reported);
        }
        let found: Vec<_> = reported
            .iter()
            .filter(|reported| matches!(reported, Reported::Record(..)))
            .collect();
        assert_eq!(found.len(), 2, "{dialect:?}: {reported:?}");
    }
}

/// After this metadata, the first fragment of a long record ends with its block, although it is
/// shorter than a block. Whether or not that fragment is damaged, the metadata is not damage, and
/// the format of the records is known.
fn a_follower_waits_for_the_whole_first_block_after_metadata(place: Place) {
    let metadata = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00".to_vec();
    let frame = b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00one\xf6\xa1\x08\x24";
    let mut whole = metadata.clone();
    Wire::Recyclable(4).append(&mut whole, 0, &[b'x'; 40_000]);
    while whole.len() < 4 * BLOCK_LEN {
        Wire::Recyclable(4).append(&mut whole, 0, frame);
    }
    let mut damaged = whole.clone();
    damaged[20_000] ^= 1;
    for (file, is_damaged) in [(whole, false), (damaged, true)] {
        for preallocated in [0, 2 * file.len()] {
            let (_directory, path) = place.directory();
            let mut growing = Growing::new(&path, preallocated as u64);
            let options = skipping();
            let mut follower = Follower::open_with(&path, options).unwrap();
            let (mut reported, mut written) = (Vec::new(), 0);
            for end in [24_000, 32_000, BLOCK_LEN + 4_000, 3 * BLOCK_LEN, file.len()] {
                growing.write(written, &file[written..end]);
                written = end;
                drain(&mut follower, &mut reported);
                if end <= 32_000 {
                    assert!(reported.is_empty(), "{end} bytes: {reported:?}");
                }
            }
            let Some(Reported::Skipped(first)) = reported.first() else {
                panic!("{is_damaged}: {reported:?}")
            };
            assert_eq!(
                (first.start, first.end, first.reason),
                (0, 11, Reason::Metadata { kind: 9 }),
                "{is_damaged}, {preallocated}"
            );
            assert_eq!(
                (follower.format().log_number, follower.format().compression),
                (Some(4), Some(Compression::Zstd))
            );
            let damage = reported.iter().find_map(|reported| match reported {
                Reported::Skipped(region) if matches!(region.reason, Reason::ChecksumMismatch { .. }) => {
                    Some(region.start)
                }
                _ => None,
            });
            assert_eq!(damage, is_damaged.then_some(11), "{preallocated}");
        }
    }
}

/// If a dialect is named, this is not an error.
fn a_file_of_another_format_is_rejected_once_its_signature_is_written(place: Place) {
    let mut sqlite = b"SQLite format 3\0".to_vec();
    let signature_len = sqlite.len();
    sqlite.extend([1; 100]);
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    let mut follower = Follower::open_with(&path, skipping()).unwrap();
    for len in 1..signature_len {
        growing.write(len - 1, &sqlite[len - 1..len]);
        let poll = follower.poll();
        assert!(matches!(poll, Ok(Poll::NotYet(_))), "{len} bytes: {poll:?}");
    }
    growing.write(0, &sqlite);
    for _ in 0..2 {
        let error = follower.follower.poll().unwrap_err();
        assert!(
            matches!(
                error.kind,
                ErrorKind::Foreign {
                    foreign: Foreign::Sqlite,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(error.path.as_deref(), Some(&*path));
    }
    let mut named = Follower::open_with(&path, skipping().with_dialect(Dialect::LEVELDB)).unwrap();
    assert!(matches!(named.poll(), Ok(Poll::Skipped(region)) if region.start == 0));
}

fn a_log_number_is_rejected_once_a_dialect_without_log_numbers_is_detected(place: Place) {
    let (run, _) = run_file(0, &[10]);
    for file in [run, Wire::Plain.full(b"one")] {
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, skipping().with_log_number(5)).unwrap();
        assert!(matches!(follower.poll(), Ok(Poll::NotYet(_))));
        growing.write(0, &file);
        for _ in 0..2 {
            let error = follower.follower.poll().unwrap_err();
            let expected = Unsupported::LogNumber;
            assert!(
                matches!(error.kind, ErrorKind::Unsupported { unsupported, .. } if unsupported == expected),
                "{error:?}"
            );
            assert_eq!(error.path.as_deref(), Some(&*path));
        }
    }
}
