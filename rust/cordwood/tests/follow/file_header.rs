//! Tests that follow logs with a file header, such as run files.

use super::*;

follow_tests! {
    in_file_and_segment: [],
    in_file_only, "A segment has no file header.": [
        a_follower_reports_a_file_header_of_zeros_just_as_a_reader_of_the_whole_file_does,
        damage_in_a_file_header_is_limited_to_the_header,
        a_follower_waits_for_the_first_record_after_a_destroyed_file_header,
        a_file_header_is_reported_as_soon_as_it_is_written,
        a_partly_visible_file_header_is_reread,
        a_run_file_is_followed_on_its_own_block_grid,
        an_old_run_file_is_followed_as_a_new_one_if_no_dialect_is_specified,
        each_record_of_a_run_file_is_returned_as_soon_as_it_is_complete,
    ],
}

/// Returns file headers with up to eight damaged bits. In most of them, between one and eight bits
/// are flipped. In some, these are the bits that make the header most similar to `other`. The
/// others have zeros at their start or at their end.
fn damaged_headers(header: [u8; 7], other: [u8; 7]) -> Vec<[u8; 7]> {
    let flipped = |bits: &[usize]| {
        let mut damaged = header;
        for &bit in bits {
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        damaged
    };
    let mut headers: Vec<_> = (0..56).map(|bit| flipped(&[bit])).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for count in 2..=8 {
        headers.extend((0..3).map(|_| flipped(&std::array::from_fn::<_, 8, _>(|_| random.below(56))[..count])));
        let towards: Vec<usize> = (0..56)
            .filter(|bit| (header[bit / 8] ^ other[bit / 8]) >> (bit % 8) & 1 == 1)
            .collect();
        headers.extend((0..2).map(|_| {
            let mut left = towards.clone();
            let bits: Vec<_> = (0..count).map(|_| left.swap_remove(random.below(left.len()))).collect();
            flipped(&bits)
        }));
    }
    for cut in 1..7 {
        let (mut without_start, mut without_end) = (header, header);
        without_start[..cut].fill(0);
        without_end[cut..].fill(0);
        headers.extend([without_start, without_end]);
    }
    let damaged_bits = |damaged: &[u8; 7]| -> u32 {
        let bytes = damaged.iter().zip(header);
        bytes.map(|(byte, right)| (byte ^ right).count_ones()).sum()
    };
    headers.retain(|damaged| (1..=8).contains(&damaged_bits(damaged)));
    headers
}

/// In a run file from before wandb-core 0.17.6, the header precedes the first block. That block
/// determines whether zeros in place of the header are damage.
fn a_follower_reports_a_file_header_of_zeros_just_as_a_reader_of_the_whole_file_does(place: Place) {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, Dialect::WANDB_OLD).unwrap();
    for len in [10, 20, 40_000, 30_000] {
        encoder.encode(&vec![b'x'; len], &mut file);
    }
    let block_end = 7 + BLOCK_LEN;
    let header_only = [vec![0; 7], file[7..].to_vec()].concat();
    let whole_block = [vec![0; block_end], file[block_end..].to_vec()].concat();
    let mut all_but_one_byte = whole_block.clone();
    all_but_one_byte[block_end - 1] = 1;
    let options = ReadOptions::default()
        .with_dialect(Dialect::WANDB_OLD)
        .with_on_corruption(OnCorruption::Skip);
    for file in [header_only, whole_block, all_but_one_byte] {
        let (_directory, path) = place.directory();
        fs::write(&path, &file).unwrap();
        let follow_options = skipping().with_dialect(Dialect::WANDB_OLD);
        let mut reported = Vec::new();
        drain(&mut Follower::open_with(&path, follow_options).unwrap(), &mut reported);
        assert_eq!(reported, read_with(&file, options.clone()));
    }
}

/// Damage of up to eight bits in a file header costs only the header. This is true for a reader and
/// for a follower, however the bytes arrive, and for any first fragment.
fn damage_in_a_file_header_is_limited_to_the_header(place: Place) {
    let (wandb, swanlab) = (*b":W&B\xe1\xbe\x00", *b":SWL\xd6\xe1\x02");
    let dialects = [
        (wandb, swanlab, 0, Dialect::WANDB),
        (wandb, swanlab, 7, Dialect::WANDB_OLD),
        (swanlab, wandb, 0, Dialect::SWANLAB),
    ];
    // The cases are a single record, a record that fills the first block of `wandb_old`, and a
    // record that ends in the last bytes of that block.
    let cases = [vec![10], vec![32_761, 5], vec![32_755, 40_000]];
    for (header, other, grid_offset, dialect) in dialects {
        for lens in &cases {
            let (mut file, expected) = run_file(grid_offset, lens);
            let arrivals = [
                vec![],
                vec![7],
                // The bytes arrive one at a time where the result changes.
                (1..30).chain(BLOCK_LEN - 1..BLOCK_LEN + 16).collect(),
                vec![BLOCK_LEN, 2 * BLOCK_LEN, 3 * BLOCK_LEN],
            ];
            for damaged in damaged_headers(header, other) {
                file[..7].copy_from_slice(&damaged);
                for named in [None, Some(dialect)] {
                    if named.is_none() && dialect == Dialect::WANDB_OLD {
                        // This dialect is followed only if it is named.
                        continue;
                    }
                    let mut options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
                    options.dialect = named;
                    let by_reader = read_with(&file, options);
                    assert_eq!(by_reader[1..], expected, "a reader: {damaged:?}, {named:?}, {lens:?}");
                    let Reported::Skipped(region) = by_reader[0] else {
                        panic!()
                    };
                    // Each version of SwanLab can be read, and this record does not rule out any
                    // version.
                    let is_version = damaged[..6] == swanlab[..6];
                    let is_damage = region.reason == Reason::BadFileHeader;
                    assert_eq!((region.start, region.end, is_damage), (0, 7, !is_version));
                    for ends in &arrivals {
                        let (_directory, path) = place.directory();
                        let mut options = skipping();
                        options.dialect = named;
                        let before = ends.iter().copied().filter(|&end| end < file.len());
                        let reported = followed(&path, &file, before.chain([file.len()]), options);
                        assert_eq!(reported, by_reader, "{damaged:?}, {named:?}, {lens:?}, {ends:?}");
                    }
                }
            }
        }
    }
}

/// Only the header is damage. The bytes after it may belong to a write in progress.
fn a_follower_waits_for_the_first_record_after_a_destroyed_file_header(place: Place) {
    let (mut file, expected) = run_file(0, &[10, 20]);
    file[..7].fill(b'?');
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 24);
    let mut follower = Follower::open_with(&path, skipping().with_dialect(Dialect::WANDB).with_start(24)).unwrap();
    let mut reported = Vec::new();
    for (start, end) in [(0, 7), (7, 20), (20, 40), (40, file.len())] {
        assert_eq!(reported, [], "{start} bytes");
        growing.write(start, &file[start..end]);
        drain(&mut follower, &mut reported);
    }
    assert_eq!(reported, expected[1..]);
}

/// A follower does not wait at a complete header. In a SwanLab file, however, the version is the
/// last byte, and a 0 may mean that this byte has not been written yet.
fn a_file_header_is_reported_as_soon_as_it_is_written(place: Place) {
    for (header, is_version) in [(*b":W&B\xe1\xbe\x00", false), (*b":SWL\xd6\xe1\x02", true)] {
        let (mut file, expected) = run_file(0, &[10]);
        file[..7].copy_from_slice(&header);
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, 100);
        let mut follower = Follower::open_with(&path, FollowOptions::default()).unwrap();
        growing.write(0, &file[..6]);
        let poll = follower.poll().unwrap();
        assert!(!is_version || matches!(poll, Poll::NotYet(_)), "{poll:?}");
        growing.write(6, &file[6..]);
        let mut reported = Vec::new();
        drain(&mut follower, &mut reported);
        if is_version {
            let header = matches!(&reported[0], Reported::Skipped(region) if region.reason == Reason::FileHeader);
            assert!(header, "{reported:?}");
            assert_eq!(reported[1..], expected);
        }
        let mut follower = Follower::open_with(&path, FollowOptions::default()).unwrap();
        let poll = follower.poll().unwrap();
        assert!(
            matches!(poll, Poll::Skipped(region) if region.reason == Reason::FileHeader),
            "{poll:?}"
        );
    }
}

/// A read may see the end of a write and not its start. This is also true for a file header.
fn a_partly_visible_file_header_is_reread(place: Place) {
    let (file, expected) = run_file(0, &[10]);
    for dialect in [None, Some(Dialect::WANDB)] {
        let (_directory, path) = place.directory();
        let mut options = FollowOptions::default().with_retry(1, Duration::ZERO);
        options.dialect = dialect;
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        growing.write(0, &[&[0; 3], &file[3..]].concat());
        let poll = follower.poll();
        let waits = matches!(&poll, Ok(Poll::NotYet(not_yet)) if not_yet.reason == WaitReason::Suspect);
        assert!(waits, "{dialect:?}: {poll:?}");
        growing.write(0, &file);
        let mut reported = Vec::new();
        drain(&mut follower, &mut reported);
        assert_eq!(reported[1..], expected);
    }
}

/// In a run file that wandb-core wrote before 0.17.6, the blocks start 7 bytes later. The start of
/// the file does not show this, so the dialect must be named.
fn a_run_file_is_followed_on_its_own_block_grid(place: Place) {
    let mut cases = vec![vec![32_755, 70_000], vec![32_761, 5, 40_000], vec![100_000]];
    // The last record that starts in the first block has between 0 and 40 bytes in it.
    cases.extend((0..40).map(|left| vec![10_000, BLOCK_LEN - 10_014 - left, 3, 5, 1, 70_000, 1]));
    for lens in cases {
        for (grid_offset, dialect, options) in [
            (0, Dialect::WANDB, skipping()),
            (7, Dialect::WANDB_OLD, skipping().with_dialect(Dialect::WANDB_OLD)),
        ] {
            let (file, expected) = run_file(grid_offset, &lens);
            for (step, preallocated) in [(1_000, 0), (BLOCK_LEN, 0), (file.len(), 0), (5_000, 2 * file.len())] {
                let (_directory, path) = place.directory();
                let mut growing = Growing::new(&path, preallocated as u64);
                let mut follower = Follower::open_with(&path, options.clone()).unwrap();
                let mut reported = Vec::new();
                for (index, piece) in file.chunks(step).enumerate() {
                    growing.write(index * step, piece);
                    drain(&mut follower, &mut reported);
                }
                reported.remove(0);
                assert_eq!(reported, expected, "{dialect:?}, {lens:?}, {step} bytes at a time");
                assert_eq!(follower.format().dialect, dialect);
            }
        }
    }
}

/// The follower treats the file as a new run file, whose blocks start with the file. It makes no
/// difference whether the second block has been written.
fn an_old_run_file_is_followed_as_a_new_one_if_no_dialect_is_specified(place: Place) {
    let (file, _) = run_file(7, &[5_000; 20]);
    for step in [1_000, file.len()] {
        let expected = followed_in_steps(place, &file, step, skipping().with_dialect(Dialect::WANDB));
        assert_eq!(followed_in_steps(place, &file, step, skipping()), expected, "{step}");
    }
}

/// The follower does not wait for later bytes. A record is returned as soon as it is complete.
fn each_record_of_a_run_file_is_returned_as_soon_as_it_is_complete(place: Place) {
    for (grid_offset, dialect) in [(0, Dialect::WANDB), (7, Dialect::WANDB_OLD)] {
        let (file, expected) = run_file(grid_offset, &[500; 200]);
        let options = FollowOptions::default().with_dialect(dialect);
        let (_directory, path) = place.directory();
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let (mut reported, mut written) = (Vec::new(), 0);
        for (index, record) in expected.iter().enumerate() {
            let Reported::Record(_, end, _) = *record else { panic!() };
            // At first, only a part of the record is written.
            for end in [end as usize - 3, end as usize] {
                growing.write(written, &file[written..end]);
                written = end;
                let waits = drain(&mut follower, &mut reported);
                assert!(
                    matches!(waits.reason, WaitReason::Idle | WaitReason::Incomplete),
                    "{waits:?}"
                );
            }
            assert_eq!(reported.len(), index + 2, "{dialect:?}");
        }
        assert_eq!(reported[1..], expected);
    }
}
