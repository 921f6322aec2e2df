//! Tests offsets of more than 32 bits. The log is at the end of a 5 GiB file, and the rest of the
//! file is a hole that is never read.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{Found, fragment, read_all};
use cordwood_log::follow::Poll;
use cordwood_log::ops::verify_file;
use cordwood_log::{Dialect, End, FollowOptions, Follower, LogFile, LogFileOptions, ReadOptions, Reader};

const BASE: u64 = 5 << 30;
/// The offsets of a record of 3 bytes and of an empty record.
const OFFSETS: [u64; 2] = [BASE, BASE + 10];
const END: u64 = BASE + 17;

fn sparse(directory: &Path) -> PathBuf {
    let path = directory.join("large.log");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("a file");
    file.set_len(BASE).expect("a hole");
    file.seek(SeekFrom::Start(BASE)).expect("an offset");
    file.write_all(&[fragment(1, b"one"), fragment(1, b"")].concat())
        .expect("two records");
    path
}

fn offsets(path: &Path, start: u64) -> Vec<u64> {
    let options = ReadOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_range(start..);
    let (events, end) = read_all(&mut Reader::open_with(path, options).expect("a reader"));
    assert!(matches!(end, End::Clean { .. }), "{end:?}");
    let offset = |event| match event {
        Found::Record { offset, .. } => offset,
        Found::Skipped(region) => panic!("{region}"),
    };
    events.into_iter().map(offset).collect()
}

#[test]
fn a_large_file_can_be_read_verified_followed_and_appended_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = sparse(directory.path());
    assert_eq!(offsets(&path, BASE), OFFSETS);
    assert_eq!(offsets(&path, OFFSETS[1]), OFFSETS[1..]);

    let options = ReadOptions::default().with_dialect(Dialect::LEVELDB).with_range(BASE..);
    let report = verify_file(&path, &options, NonZeroUsize::MIN).expect("a report");
    assert!(report.is_ok());
    assert_eq!((report.record_count, report.end), (2, End::Clean { offset: END }));

    let following = FollowOptions::default().with_dialect(Dialect::LEVELDB).with_start(BASE);
    let mut follower = Follower::open_with(&path, following).expect("a follower");
    let mut next = || match follower.wait(Some(Duration::ZERO)).expect("a poll") {
        Poll::Record(record) => Some(record.offset),
        _ => None,
    };
    assert_eq!([next(), next(), next()], [Some(BASE), Some(OFFSETS[1]), None]);

    let writing = LogFileOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_checkpoint(Some(BASE));
    let log = LogFile::append_to(&path, writing).expect("a log");
    assert_eq!(log.append(b"three").expect("room"), END);
    log.close().expect("a file that can be closed");
    assert_eq!(next(), Some(END));
    assert_eq!(offsets(&path, BASE), [BASE, OFFSETS[1], END]);
}
