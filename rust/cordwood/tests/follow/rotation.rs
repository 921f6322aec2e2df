//! Tests a file that is truncated, renamed or replaced.

use super::*;

follow_tests! {
    in_file_and_segment: [
        truncation_is_reported_by_every_later_poll,
    ],
    in_file_only, "A segment is never rotated.": [
        rotation_is_reported_once_the_old_file_has_been_read,
        a_renamed_file_is_read_to_its_end_without_waiting_for_more_blocks,
        a_path_that_cannot_be_looked_up_causes_an_error,
        after_a_rotation_a_follower_waits_only_at_suspect_bytes,
        a_rotation_is_reported_only_after_the_last_of_many_blocks,
    ],
}

fn truncation_is_reported_by_every_later_poll(place: Place) {
    let (_directory, path) = place.directory();
    fs::write(&path, small_log().file).unwrap();
    let mut follower = follow(&path);
    drain(&mut follower, &mut Vec::new());
    let offset = follower.offset();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(3).unwrap();
    for _ in 0..2 {
        let poll = follower.poll().unwrap();
        assert!(
            matches!(poll, Poll::Truncated { offset: at, file_len: 3, .. } if at == offset),
            "{poll:?}"
        );
        file.set_len(1 << 20).unwrap();
    }
    // The saved offset is after the end of the file.
    file.set_len(3).unwrap();
    let mut resumed = Follower::open_with(&path, FollowOptions::default().with_start(10)).unwrap();
    let poll = resumed.poll().unwrap();
    let is_truncated = matches!(
        poll,
        Poll::Truncated {
            offset: 10,
            file_len: 3,
            ..
        }
    );
    assert!(is_truncated, "{poll:?}");
}

fn rotation_is_reported_once_the_old_file_has_been_read(place: Place) {
    let (directory, path) = place.directory();
    let log = Log::new(vec![b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    fs::write(&path, &log.file[..10]).unwrap();
    let mut follower = follow(&path);
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);

    let old = directory.path().join("old.log");
    fs::rename(&path, &old).unwrap();
    let poll = follower.poll().unwrap();
    let is_rotated = matches!(
        poll,
        Poll::Rotated {
            offset: 10,
            file_len: 10,
            ..
        }
    );
    assert!(is_rotated, "{poll:?}");
    fs::write(&path, b"another file").unwrap();
    fs::write(&old, &log.file[..25]).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.data == b"two"));
    let poll = follower.poll().unwrap();
    let is_rotated = matches!(
        poll,
        Poll::Rotated {
            offset: 20,
            file_len: 25,
            ..
        }
    );
    assert!(is_rotated, "{poll:?}");
    fs::remove_file(&path).unwrap();
    fs::write(&old, &log.file).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.data == b"three"));
    assert!(matches!(follower.poll(), Ok(Poll::Rotated { .. })));
}

/// Nothing more is written to a file that has been renamed, so the follower does not wait for
/// records that a reader returns.
fn a_renamed_file_is_read_to_its_end_without_waiting_for_more_blocks(place: Place) {
    // The first fragment of the file is damaged, and the file ends before its third block does.
    let (mut closed, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..90 {
        let start = Wire::Recyclable(5).append(&mut closed, 0, &[b'x'; 1_000]);
        if start >= BLOCK_LEN as u64 {
            expected.push(Reported::Record(start, closed.len() as u64, vec![b'x'; 1_000]));
        }
    }
    closed[20] ^= 1;
    let (directory, path) = place.directory();
    fs::write(&path, &closed).unwrap();
    let mut follower = Follower::open_with(&path, skipping()).unwrap();
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);
    fs::rename(&path, directory.path().join("old.log")).unwrap();
    let last = loop {
        match follower.poll().unwrap() {
            Poll::Record(record) => {
                reported.push(Reported::Record(record.offset, record.end_offset, record.data.to_vec()))
            }
            Poll::Skipped(region) => push_skipped(&mut reported, region),
            Poll::NotYet(_) => {}
            last => break last,
        }
    };
    assert!(matches!(last, Poll::Rotated { .. }));
    reported.retain(|reported| matches!(reported, Reported::Record(..)));
    assert_eq!(reported, expected);
}

/// This is not a rotation, because it is unknown which file has the path.
fn a_path_that_cannot_be_looked_up_causes_an_error(place: Place) {
    if cfg!(windows) {
        return; // Windows cannot rename a directory with an open file.
    }
    let (directory, _) = place.directory();
    let (parent, moved) = (directory.path().join("parent"), directory.path().join("moved"));
    fs::create_dir(&parent).unwrap();
    let path = parent.join("live.log");
    fs::write(&path, Wire::Plain.full(b"one")).unwrap();
    let mut follower = follow(&path);
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    fs::rename(&parent, &moved).unwrap();
    fs::write(&parent, b"a file").unwrap();
    for _ in 0..2 {
        let error = follower.poll().unwrap_err();
        assert_eq!(error.path.as_deref(), Some(&*path));
        assert!(
            matches!(&error.kind, ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory),
            "{error:?}"
        );
    }
    fs::remove_file(&parent).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Rotated { .. })));
}

/// It makes no difference whether the dialect is named or not known yet.
fn after_a_rotation_a_follower_waits_only_at_suspect_bytes(place: Place) {
    let record = Wire::Plain.full(b"one");
    let mut flipped = record.clone();
    flipped[8] ^= 1;
    for dialect in [None, Some(Dialect::LEVELDB)] {
        for (tail, is_suspect) in [
            (vec![], false),
            (record[..3].to_vec(), false),
            (record[..9].to_vec(), false),
            (vec![0; 100], false),
            (flipped.clone(), true),
        ] {
            for before in [&b""[..], &record] {
                let (directory, path) = place.directory();
                let file = [before, &tail].concat();
                fs::write(&path, &file).unwrap();
                let mut options = FollowOptions::default().with_retry(u32::MAX, Duration::MAX);
                options.dialect = dialect;
                let mut follower = Follower::open_with(&path, options).unwrap();
                fs::rename(&path, directory.path().join("old.log")).unwrap();
                if !before.is_empty() {
                    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
                }
                for _ in 0..3 {
                    match follower.poll().unwrap() {
                        Poll::Rotated { offset, file_len, .. } if !is_suspect => {
                            assert_eq!((offset, file_len), (before.len() as u64, file.len() as u64));
                        }
                        Poll::NotYet(not_yet) if is_suspect => assert_eq!(not_yet.reason, WaitReason::Suspect),
                        other => panic!("{dialect:?}, {tail:?} after {before:?}: {other:?}"),
                    }
                }
            }
        }
    }
}

/// A poll reads the starts of 256 blocks at most.
fn a_rotation_is_reported_only_after_the_last_of_many_blocks(place: Place) {
    for dialect in [None, Some(Dialect::LEVELDB)] {
        let (directory, path) = place.directory();
        let mut file = vec![0; 600 * BLOCK_LEN];
        fs::write(&path, &file).unwrap();
        let mut options = skipping();
        options.dialect = dialect;
        let mut follower = Follower::open_with(&path, options).unwrap();
        assert_eq!(drain(&mut follower, &mut Vec::new()).reason, WaitReason::Zeros);
        let old = directory.path().join("old.log");
        fs::rename(&path, &old).unwrap();
        file.extend(Wire::Plain.full(b"last"));
        fs::write(&old, &file).unwrap();
        let mut reported = Vec::new();
        loop {
            match follower.poll().unwrap() {
                Poll::Record(record) => {
                    reported.push(Reported::Record(record.offset, record.end_offset, record.data.to_vec()))
                }
                Poll::Skipped(region) => push_skipped(&mut reported, region),
                Poll::NotYet(_) => assert!(follower.is_probing()),
                Poll::Rotated { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(reported, read(&file), "{dialect:?}");
    }
}
