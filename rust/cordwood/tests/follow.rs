//! A file that grows: every record once and in order, no false damage, and no real damage
//! unreported.

#[path = "common/wire.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod wire;

use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cordwood_log::codec::Encoder;
use cordwood_log::damage::{Reason, SkippedRegion};
use cordwood_log::follow::{NotYet, Poll, WaitReason};
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::{
    Compression, Dialect, End, Error, ErrorKind, Event, FollowOptions, Follower, LogFormat, OnCorruption, ReadOptions,
    Reader, Writer,
};
use tempfile::TempDir;
use wire::Wire;

/// Records and their log.
struct Log {
    records: Vec<Vec<u8>>,
    spans: Vec<Range<usize>>,
    file: Vec<u8>,
}

impl Log {
    fn new(records: Vec<Vec<u8>>) -> Self {
        let (mut encoder, mut file, mut spans) = (Encoder::new(0), Vec::new(), Vec::new());
        for record in &records {
            let begin = encoder.encode(record, &mut file) as usize;
            spans.push(begin..file.len());
        }
        Log { records, spans, file }
    }

    /// How many records are complete when the first `len` bytes are written; if `is_preallocated`,
    /// zeros follow them.
    fn count(&self, len: usize, is_preallocated: bool) -> usize {
        let whole = |span: &&Range<usize>| {
            let zeros = self.file[span.start..span.end]
                .iter()
                .rev()
                .take_while(|&&byte| byte == 0);
            let may_miss = if is_preallocated { zeros.count() } else { 0 };
            span.end - may_miss <= len
        };
        self.spans.iter().take_while(whole).count()
    }
}

/// xorshift64*: good enough to choose lengths and chunks.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % end
    }

    /// Data of many lengths; some end with zeros, some are logs themselves.
    fn record(&mut self) -> Vec<u8> {
        let len = match self.below(10) {
            0 => 0,
            1..=5 => self.below(300),
            6..=7 => self.below(20_000),
            8 => BLOCK_LEN - 30 + self.below(60),
            _ => self.below(150_000),
        };
        let mut record: Vec<u8> = (0..len).map(|_| self.below(256) as u8).collect();
        match self.below(5) {
            0 => {
                let zeros = self.below(len + 1);
                record[len - zeros..].fill(0);
            }
            1 => record = Log::new(vec![b"inner".to_vec(); len / 12]).file,
            _ => {}
        }
        record
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.log");
    (folder, path)
}

/// A file of `len` zeros; `append` writes into it or after it.
struct Growing {
    file: File,
}

impl Growing {
    fn new(path: &Path, len: u64) -> Self {
        let file = File::create(path).unwrap();
        file.set_len(len).unwrap();
        Growing { file }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.file.seek(SeekFrom::Start(offset as u64)).unwrap();
        self.file.write_all(bytes).unwrap();
    }
}

fn follow(path: &Path) -> Follower {
    Follower::open(path).unwrap()
}

/// The events of a follower.
#[derive(Clone, PartialEq, Eq)]
enum Reported {
    Record(u64, u64, Vec<u8>),
    Skipped(SkippedRegion),
}

impl fmt::Debug for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Keeps the message of a failure short enough to read.
            Reported::Record(begin, end, data) => {
                write!(f, "[{begin}, {end}) {:08x}", cordwood_log::crc32c::crc32c(data))
            }
            Reported::Skipped(region) => write!(f, "{region:?}"),
        }
    }
}

fn push_skipped(reported: &mut Vec<Reported>, region: SkippedRegion) {
    match reported.last_mut() {
        Some(Reported::Skipped(last)) if last.joined(region).is_some() => *last = last.joined(region).unwrap(),
        _ => reported.push(Reported::Skipped(region)),
    }
}

/// Options that skip damage, and report it without trying again.
fn skipping() -> FollowOptions {
    FollowOptions::default()
        .with_retry(0, Duration::ZERO)
        .with_on_corruption(OnCorruption::Skip)
}

/// The events of a follower of a file that grows by `step` bytes at a time.
fn followed_in_steps(file: &[u8], step: usize, options: FollowOptions) -> Vec<Reported> {
    let (_folder, path) = folder();
    let mut growing = Growing::new(&path, 0);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let mut reported = Vec::new();
    for (index, piece) in file.chunks(step).enumerate() {
        growing.write(index * step, piece);
        drain(&mut follower, &mut reported);
    }
    reported
}

/// Collects all events, and returns the reason for which the follower then waits. While
/// damage is being read again, it polls again.
fn drain(follower: &mut Follower, reported: &mut Vec<Reported>) -> NotYet {
    loop {
        match follower.poll().unwrap() {
            Poll::Record(record) => {
                reported.push(Reported::Record(record.offset, record.end_offset, record.data.to_vec()))
            }
            Poll::Skipped(region) => push_skipped(reported, region),
            Poll::NotYet(not_yet) if not_yet.reason == WaitReason::Suspect => thread::sleep(follower.delay()),
            Poll::NotYet(not_yet) => return not_yet,
            other => panic!("{other:?}"),
        }
    }
}

/// The events of a follower while `file` is written at `path`, in parts that end at `ends`.
fn followed(path: &Path, file: &[u8], ends: impl IntoIterator<Item = usize>, options: FollowOptions) -> Vec<Reported> {
    let mut growing = Growing::new(path, 0);
    let mut follower = Follower::open_with(path, options).unwrap();
    let (mut reported, mut written) = (Vec::new(), 0);
    for end in ends {
        growing.write(written, &file[written..end]);
        written = end;
        drain(&mut follower, &mut reported);
    }
    reported
}

fn records(reported: &[Reported]) -> Vec<Vec<u8>> {
    let data = reported.iter().map(|reported| match reported {
        Reported::Record(_, _, data) => data.clone(),
        Reported::Skipped(region) => panic!("{region}"),
    });
    data.collect()
}

/// The events of a reader of the whole file.
fn read(file: &[u8]) -> Vec<Reported> {
    read_with(file, ReadOptions::default().with_on_corruption(OnCorruption::Skip))
}

fn read_with(file: &[u8], options: ReadOptions) -> Vec<Reported> {
    let mut reader = Reader::from_slice(file, options);
    let mut reported = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            Event::Record(record) => {
                reported.push(Reported::Record(record.offset, record.end_offset, record.data.to_vec()))
            }
            Event::Skipped(region) => push_skipped(&mut reported, region),
        }
    }
    reported
}

#[test]
fn a_writer_at_random_chunk_sizes_plain_and_preallocated() {
    for seed in 1..=6 {
        let is_preallocated = seed % 2 == 0;
        let mut random = Random(seed);
        let log = Log::new((0..60).map(|_| random.record()).collect());
        let (_folder, path) = folder();
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
                match follower.wait(Some(Duration::from_secs(10))).unwrap() {
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

/// A read copies bytes in order, so it may see the end of a write whose beginning it missed.
#[test]
fn a_concurrent_write_is_not_damage() {
    let log = Log::new((0..200).map(|number| vec![b'x'; number * 97]).collect());
    let options = FollowOptions::default().with_poll_interval(Duration::ZERO);
    for _ in 0..40 {
        let (_folder, path) = folder();
        let mut growing = Growing::new(&path, log.file.len() as u64);
        let mut follower = Follower::open_with(&path, options.clone()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| growing.write(0, &log.file));
            for span in &log.spans {
                let reported = follower.wait(Some(Duration::from_secs(10))).unwrap();
                assert!(
                    matches!(reported, Poll::Record(record) if record.offset == span.start as u64),
                    "{span:?}"
                );
            }
        });
    }
}

/// Slightly over three blocks: each kind of fragment, a trailer, a block with exactly seven bytes
/// left, data that ends in zeros, and an inner log.
fn small_log() -> Log {
    Log::new(vec![
        b"one".to_vec(),
        Vec::new(),
        [b"zeros behind".as_slice(), &[0; 40]].concat(),
        Log::new(vec![b"inner".to_vec(); 8]).file,
        vec![b'a'; BLOCK_LEN - 10 - 7 - 59 - 103 - 7 - 4], // leaves a trailer of 4 bytes
        vec![b'b'; 2 * BLOCK_LEN],                         // FIRST, MIDDLE, LAST
        vec![b'c'; BLOCK_LEN - 14 - 7 - 7],                // leaves 7 bytes
        b"an empty FIRST before it".to_vec(),
    ])
}

/// The lengths to check: each byte near a boundary, and some elsewhere.
fn lengths(log: &Log) -> Vec<usize> {
    let mut edges: Vec<usize> = log.spans.iter().flat_map(|span| [span.start, span.end]).collect();
    edges.extend((0..=log.file.len() / BLOCK_LEN).map(|block| block * BLOCK_LEN));
    let is_near = |len: usize| edges.iter().any(|&edge| len.abs_diff(edge) <= 12);
    (0..=log.file.len())
        .filter(|&len| is_near(len) || len < 250 || len % 499 == 0)
        .collect()
}

#[test]
fn each_prefix_gives_its_whole_records_and_then_waits() {
    let log = small_log();
    for is_preallocated in [false, true] {
        let (_folder, path) = folder();
        let ahead = if is_preallocated { 6 * BLOCK_LEN as u64 + 5 } else { 0 };
        let mut growing = Growing::new(&path, ahead);
        let mut grown = follow(&path);
        let (mut reported, mut checked) = (Vec::new(), 0);
        let edges = lengths(&log);
        for len in 0..=log.file.len() {
            growing.write(len.saturating_sub(1), &log.file[len.saturating_sub(1)..len]);
            // Polls at each length; in a preallocated file, where a poll has to read a whole block,
            // only at some.
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
            // Also a follower that sees only this prefix.
            let mut fresh = Vec::new();
            assert_eq!(drain(&mut follow(&path), &mut fresh), not_yet, "{len}");
            assert!(fresh == reported, "{len}");
        }
        assert_eq!(reported.len(), log.records.len());
    }
}

#[test]
fn a_saved_offset_resumes_there() {
    let log = small_log();
    let (_folder, path) = folder();
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

/// The part of an earlier record at the start is skipped, whenever it is read.
#[test]
fn a_start_in_the_middle_of_a_record_skips_its_rest() {
    let log = Log::new(vec![vec![b'x'; 3 * BLOCK_LEN], vec![b'y'; 3 * BLOCK_LEN]]);
    let (_folder, path) = folder();
    let mut growing = Growing::new(&path, 0);
    growing.write(0, &log.file[..5 * BLOCK_LEN]);
    let mut follower = Follower::open_with(&path, FollowOptions::default().with_start(BLOCK_LEN as u64 - 5)).unwrap();
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Incomplete);
    growing.write(5 * BLOCK_LEN, &log.file[5 * BLOCK_LEN..]);
    drain(&mut follower, &mut reported);
    assert!(records(&reported) == log.records[1..]);
}

/// The same, with one reason for a wrong length and a wrong checksum: a header that no writer writes
/// is reported before its data is there, whose checksum is not known then.
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

#[test]
fn damage_is_reported_as_by_a_reader_of_the_whole_file() {
    let small = small_log();
    // One more block, so that the end of the file does not matter.
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
        let (_folder, path) = folder();
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

#[test]
fn damage_with_a_valid_block_after_it_is_reported_at_once() {
    let mut log = small_log();
    log.file[8] ^= 1;
    let (_folder, path) = folder();
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
            assert_eq!(*named, *path);
            assert_eq!((region.begin, region.end), (0, BLOCK_LEN as u64));
            assert!(matches!(region.reason, Reason::ChecksumMismatch { .. }));
        }
        other => panic!("{other:?}"),
    }
    let Poll::Record(record) = follower.poll().unwrap() else {
        panic!()
    };
    assert!(record.data == log.records[5]);
}

#[test]
fn damage_at_the_end_is_reported_when_the_retries_are_spent_and_not_before() {
    let (_folder, path) = folder();
    let mut log = Log::new(vec![b"good".to_vec(), b"bad".to_vec()]);
    let last = log.file.len() - 1;
    log.file[last] ^= 1;
    fs::write(&path, &log.file).unwrap();
    let mut follower = follow(&path);
    assert!(matches!(follower.poll(), Ok(Poll::Record(_))));
    let begin = Instant::now();
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
    assert!(polls >= 3 && begin.elapsed() >= Duration::from_millis(100), "{polls}");
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!((region.begin, region.end), (11, 21));

    // The rest of the block is not trusted. It is reported once it is there, and is not a second
    // error.
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
        (rest.begin, rest.end, rest.reason),
        (21, BLOCK_LEN as u64, region.reason)
    );
    let Poll::Record(record) = follower.poll().unwrap() else {
        panic!()
    };
    assert_eq!(record.data, b"in the next");
}

#[test]
fn damage_that_heals_within_the_retries_is_not_reported() {
    let (_folder, path) = folder();
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

#[test]
fn a_hole_is_waited_at_until_a_block_after_it_begins_with_a_record() {
    let (_folder, path) = folder();
    let mut growing = Growing::new(&path, 10 * BLOCK_LEN as u64);
    growing.write(0, &Log::new(vec![b"one".to_vec()]).file);
    let mut follower = follow(&path);
    let mut reported = Vec::new();
    assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
    // In the same block: the zeros may yet be written over.
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
        && (region.begin, region.end) == (112, 10 * BLOCK_LEN as u64))
    );
    assert!(matches!(&reported[4], Reported::Record(_, _, data) if data == b"behind"));
}

/// Records that are found together, of a plain and of a packed log, are returned without a look at the
/// file: even if it is gone.
#[test]
fn a_follower_says_which_records_it_returns_without_the_file() {
    for dialect in [Dialect::LEVELDB, Dialect::PACKED] {
        let (_folder, path) = folder();
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
            follower.advance();
            assert_eq!(follower.has_found(), is_found);
        }
        assert!(matches!(follower.poll().unwrap(), Poll::Truncated { .. }));
    }
}

#[test]
fn truncation_is_reported_and_stays() {
    let (_folder, path) = folder();
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
    // A saved offset that is beyond the end of the file.
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

#[test]
fn rotation_is_reported_when_the_old_file_has_been_read() {
    let (folder, path) = folder();
    let log = Log::new(vec![b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    fs::write(&path, &log.file[..10]).unwrap();
    let mut follower = follow(&path);
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);

    let old = folder.path().join("old.log");
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

/// A writer whose write failed halfway cuts the file and continues: no part of the record that was
/// begun may be joined to another.
#[test]
fn a_write_that_is_undone_leaves_no_trace() {
    let undone = Log::new(vec![b"kept".to_vec(), vec![b'u'; 3 * BLOCK_LEN]]).file;
    let log = Log::new(vec![b"kept".to_vec(), vec![b'n'; 3 * BLOCK_LEN], b"next".to_vec()]);
    for sees_the_cut in [false, true] {
        // With and without a record that was reported from the same read.
        for polls_before in [1, 2] {
            let (_folder, path) = folder();
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

#[test]
fn the_policies() {
    let mut log = small_log();
    log.file[8] ^= 1;
    let (_folder, path) = folder();
    fs::write(&path, &log.file).unwrap();
    let mut follower =
        Follower::open_with(&path, FollowOptions::default().with_on_corruption(OnCorruption::Stop)).unwrap();
    assert!(matches!(follower.poll(), Ok(Poll::Skipped(region)) if region.begin == 0));
    for _ in 0..2 {
        assert_eq!(follower.poll().unwrap(), Poll::End(End::Stopped { offset: 0 }));
    }
    let skip = FollowOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut reported = Vec::new();
    drain(&mut Follower::open_with(&path, skip.clone()).unwrap(), &mut reported);
    assert_eq!(reported, read(&log.file));

    // Longer than the limit, and still being written when that becomes clear.
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

/// The zeros that stand for bytes still to be written in the rest of a block are not data, even if
/// the skipped part of that block precedes the start and is not reported.
#[test]
fn after_bytes_before_the_start_a_record_is_returned_once_it_is_complete() {
    let unknown = [Wire::Plain.full(b"foo"), Wire::Plain.fragment(9, b"x")].concat();
    let start = unknown.len();
    let whole = [
        &unknown[..],
        &Wire::Plain.full(b"ab\0\0\0\0"),
        &Wire::Plain.full(b"next"),
    ]
    .concat();
    for written in start..=whole.len() {
        let (_folder, path) = folder();
        let options = FollowOptions::default()
            .with_start(start as u64)
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(0, Duration::ZERO);
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

#[test]
fn wait_waits_no_longer_than_its_timeout() {
    let (_folder, path) = folder();
    let mut writer = Writer::new(File::create(&path).unwrap());
    let mut follower = follow(&path);
    let begin = Instant::now();
    assert!(matches!(
        follower.wait(Some(Duration::from_millis(120))),
        Ok(Poll::NotYet(_))
    ));
    assert!((120..1_000).contains(&begin.elapsed().as_millis()));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            writer.append(b"late").unwrap();
            writer.flush().unwrap();
        });
        assert!(matches!(follower.wait(None), Ok(Poll::Record(record)) if record.data == b"late"));
    });
}

#[test]
fn paths_that_cannot_be_followed() {
    let (folder, path) = folder();
    let kind = |path: &Path| match Follower::open(path) {
        Err(Error {
            path: Some(named),
            kind: ErrorKind::Io { source, .. },
            ..
        }) if *named == *path => source.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&path), std::io::ErrorKind::NotFound);
    assert_eq!(kind(folder.path()), std::io::ErrorKind::IsADirectory);
    #[cfg(unix)]
    assert_eq!(kind(Path::new("/dev/null")), std::io::ErrorKind::InvalidInput);
}

/// A RocksDB log with a number, in a file that once contained an older log without numbers.
#[test]
fn an_older_log_of_another_form_is_not_returned() {
    let (_folder, path) = folder();
    let mut older = Vec::new();
    while older.len() < 2 * BLOCK_LEN {
        Wire::Plain.append(&mut older, 0, &[b'o'; 100]);
    }
    let mut file = Wire::Recyclable(5).full(b"new");
    let own_len = file.len();
    file.extend(&older[own_len..]);
    fs::write(&path, &file).unwrap();

    let dialect = LogFormat::new(Dialect::ROCKSDB).with_log_number(5);
    let options = FollowOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_retry(0, Duration::ZERO)
        .with_format(dialect);
    let mut reported = Vec::new();
    let not_yet = drain(&mut Follower::open_with(&path, options).unwrap(), &mut reported);
    assert_eq!(records(&reported), [b"new"]);
    assert_eq!((not_yet.offset, not_yet.reason), (own_len as u64, WaitReason::Stale));

    // The rest of the new log shows that the old one is being overwritten.
    let mut log = file[..own_len].to_vec();
    Wire::Recyclable(5).append(&mut log, 0, &[b'n'; 2 * BLOCK_LEN]);
    let mut follower = Follower::open_with(&path, FollowOptions::default().with_format(dialect)).unwrap();
    fs::write(&path, &log).unwrap();
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);
    assert_eq!(records(&reported), [b"new".to_vec(), vec![b'n'; 2 * BLOCK_LEN]]);
}

/// One flipped bit in a fragment that carries this log's number is damage, although an older log
/// follows it and no fragment of this one does. Two of them may be a write that is under way.
#[test]
fn a_flipped_bit_in_the_last_record_of_a_recycled_log_is_damage() {
    let (_folder, path) = folder();
    let own = Wire::Recyclable(6);
    let older = Wire::Recyclable(5).full(&[b'o'; 1_000]);
    let (first, last) = (own.full(b"first"), own.full(b"last"));
    let (begin, end) = (first.len(), first.len() + last.len());
    let file = [&first[..], &last, &older[end..]].concat();
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(6);
    let options = skipping().with_retry(0, Duration::ZERO).with_format(format);
    for (flips, is_damage) in [(1, true), (3, false)] {
        for at in begin + 7..end {
            let mut damaged = file.clone();
            damaged[at] ^= flips << (at % 7);
            fs::write(&path, &damaged).unwrap();
            let mut reported = Vec::new();
            let not_yet = drain(&mut Follower::open_with(&path, options.clone()).unwrap(), &mut reported);
            assert_eq!(records(&reported[..1]), [b"first"]);
            assert_eq!(reported.len() > 1, is_damage, "{at}: {reported:?}");
            let waits = (not_yet.offset, not_yet.reason) == (begin as u64, WaitReason::Stale);
            assert_eq!(waits, !is_damage, "{at}: {not_yet:?}");
        }
    }
}

/// Until the dialect is known, the first fragment's header may be longer than LevelDB's.
#[test]
fn the_first_fragment_of_any_dialect_is_waited_for() {
    for wire in [Wire::Plain, Wire::Recyclable(4), Wire::Synced(4, 9)] {
        // A record may contain a log of another dialect.
        let log = [Wire::Plain.full(b"in"), Wire::Plain.full(b"it"), b"!".to_vec()].concat();
        for data in [&b""[..], b"first", &log] {
            let (_folder, path) = folder();
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

/// The same in a preallocated file, where zeros follow the bytes written so far.
#[test]
fn the_first_fragment_of_any_dialect_is_waited_for_in_a_preallocated_file() {
    for wire in [Wire::Plain, Wire::Recyclable(4), Wire::Synced(4, 9)] {
        let log = [Wire::Plain.full(b"in"), Wire::Plain.full(b"it"), b"!".to_vec()].concat();
        for data in [&b"first"[..], &log] {
            let (_folder, path) = folder();
            let file = wire.full(data);
            fs::write(&path, vec![0; 2 * BLOCK_LEN]).unwrap();
            let options = FollowOptions::default().with_retry(0, Duration::ZERO);
            let mut follower = Follower::open_with(&path, options).unwrap();
            for len in 1..file.len() {
                let mut preallocated = file[..len].to_vec();
                preallocated.resize(2 * BLOCK_LEN, 0);
                fs::write(&path, preallocated).unwrap();
                let poll = follower.poll();
                assert!(matches!(&poll, Ok(Poll::NotYet(_))), "{wire:?}, {len} bytes: {poll:?}");
            }
            let mut preallocated = file.clone();
            preallocated.resize(2 * BLOCK_LEN, 0);
            fs::write(&path, preallocated).unwrap();
            let poll = follower.poll();
            assert!(
                matches!(&poll, Ok(Poll::Record(record)) if record.data == data),
                "{wire:?}: {poll:?}"
            );
        }
    }
}

/// In a run file from before wandb-core 0.17.6 the header precedes the first block, which
/// determines whether zeros in the header's place are damage.
#[test]
fn a_file_header_of_zeros_is_reported_as_by_a_reader_of_the_whole_file() {
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
        let (_folder, path) = folder();
        fs::write(&path, &file).unwrap();
        let follow_options = FollowOptions::default()
            .with_dialect(Dialect::WANDB_OLD)
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(0, Duration::ZERO);
        let mut reported = Vec::new();
        drain(&mut Follower::open_with(&path, follow_options).unwrap(), &mut reported);
        assert_eq!(reported, read_with(&file, options.clone()));
    }
}

/// A record that says how all others are compressed comes first. In another dialect its type has a
/// longer header, the rest of which would be waited for; its checksum rules that out. The log's
/// number is in the fragment after it.
#[test]
fn metadata_before_the_first_record_is_not_waited_at() {
    let metadata = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    // An empty record is not a frame.
    for payload in [&b""[..], b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00one\xf6\xa1\x08\x24"] {
        let (_folder, path) = folder();
        let file = [&metadata[..], &Wire::Recyclable(4).full(payload)].concat();
        fs::write(&path, b"").unwrap();
        // A build without zstd skips the compressed record.
        let options = FollowOptions::default()
            .with_retry(0, Duration::ZERO)
            .with_on_corruption(OnCorruption::Skip);
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

/// The log's number comes from two consecutive fragments after the damage: it is greater than that
/// of the next block, which an older log left. Before that block is written, only the damage is
/// reported.
#[test]
fn after_damage_at_the_beginning_an_older_log_is_not_returned() {
    let mut older = Vec::new();
    for _ in 0..2 {
        Wire::Recyclable(3).append(&mut older, 0, &[b'o'; BLOCK_LEN - 11]);
    }
    Wire::Recyclable(3).append(&mut older, 0, b"older");
    let mut file = Wire::Plain.full(&[b'd'; 300]);
    file[0] ^= 1;
    file.extend(Wire::Recyclable(6).part(3, &[b'm'; 80]));
    file.extend(Wire::Plain.full(b"after damage in its block"));
    file.extend(&older[file.len()..]);

    for dialect in [Dialect::PEBBLE, Dialect::ROCKSDB, Dialect::RECYCLABLE] {
        let (_folder, path) = folder();
        let options = FollowOptions::default()
            .with_retry(0, Duration::ZERO)
            .with_on_corruption(OnCorruption::Skip)
            .with_dialect(dialect);
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let (mut reported, mut written) = (Vec::new(), 0);
        for end in [BLOCK_LEN + 10_000, 2 * BLOCK_LEN + 3, file.len()] {
            growing.write(written, &file[written..end]);
            written = end;
            drain(&mut follower, &mut reported);
        }
        let spans: Vec<_> = reported
            .iter()
            .map(|reported| match reported {
                Reported::Record(begin, end, _) => panic!("{dialect:?}: a record at [{begin}, {end})"),
                Reported::Skipped(region) => (region.begin, region.end),
            })
            .collect();
        assert_eq!(spans, [(0, BLOCK_LEN as u64)], "{dialect:?}");
        assert_eq!(follower.format().log_number, Some(6));
    }
}

/// If a log's first fragment is destroyed, the records after the first block are returned, in any
/// dialect, named or not.
#[test]
fn a_log_that_begins_with_damage_is_followed_in_its_dialect() {
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
            let begin = wire.append(&mut file, 0, &data);
            if begin >= BLOCK_LEN as u64 {
                expected.push((begin, data));
            }
        }
        file[..20].fill(0xff);
        for (step, preallocated) in [(700, 0), (BLOCK_LEN, 0), (40_000, 0), (3_000, 2 * file.len())] {
            let (_folder, path) = folder();
            let mut options = FollowOptions::default()
                .with_retry(0, Duration::ZERO)
                .with_on_corruption(OnCorruption::Skip);
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
                    Reported::Record(begin, _, data) => Some((begin, data)),
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

/// The first fragment is one of an unknown type in LevelDB, which costs only itself, and damage in the
/// log's own dialect, which costs the block. The damage is one error, its rest is no second one.
#[test]
fn damage_before_the_dialect_is_known_costs_as_much_as_for_a_reader() {
    let wire = Wire::Synced(5, 9);
    let unknown = Wire::Plain.fragment(5, &[b'u'; 300]);
    let mut file = unknown.clone();
    file.extend(Wire::Plain.full(b"in the damaged block"));
    let mut records = Vec::new();
    for byte in 0..9 {
        let data = vec![byte; 10_000];
        let begin = wire.append(&mut file, 0, &data);
        records.push((begin, data));
    }
    let first_block = BLOCK_LEN as u64;
    // The record that begins in it continues in the next one.
    let expected: Vec<_> = records.into_iter().filter(|record| record.0 >= first_block).collect();
    for (on_corruption, step) in [OnCorruption::Skip, OnCorruption::Fail]
        .into_iter()
        .flat_map(|policy| [200, 5_000, 40_000, 200_000].map(|step| (policy, step)))
    {
        let (_folder, path) = folder();
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
                    Ok(Poll::Skipped(region)) => skipped.push(region.begin..region.end),
                    Ok(_) => break,
                    Err(Error {
                        kind: ErrorKind::Corruption { region, .. },
                        ..
                    }) => errors.push(region.begin..region.end),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let case = format!("{on_corruption:?}, {step} bytes at a time: {errors:?} and {skipped:?}");
        assert!(found == expected, "{case}, {} of {}", found.len(), expected.len());
        // The rest of the record that begins in the block is damage of its own.
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

/// The record that says that all others are compressed is destroyed: a frame is not taken for a
/// record.
#[test]
fn frames_are_not_returned_as_records_if_a_log_begins_with_damage() {
    let frame = b"\x28\xb5\x2f\xfd\x24\x03\x19\x00\x00one\xf6\xa1\x08\x24";
    for wire in [Wire::Plain, Wire::Recyclable(5)] {
        let mut file = vec![0xff; 11];
        while file.len() < 4 * BLOCK_LEN {
            wire.append(&mut file, 0, frame);
        }
        for dialect in [None, Some(Dialect::ROCKSDB)] {
            let (_folder, path) = folder();
            let mut options = FollowOptions::default()
                .with_retry(0, Duration::ZERO)
                .with_on_corruption(OnCorruption::Skip);
            options.dialect = dialect;
            let mut growing = Growing::new(&path, 0);
            let mut follower = Follower::open_with(&path, options).unwrap();
            let mut reported = Vec::new();
            for (index, piece) in file.chunks(5_000).enumerate() {
                growing.write(index * 5_000, piece);
                drain(&mut follower, &mut reported);
            }
            // A build without zstd skips them all.
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

/// A fragment of a type that a later version may write has one of two headers: it is incomplete
/// until the longer one is there.
#[test]
fn a_fragment_of_an_unknown_type_is_waited_for_with_its_longer_header() {
    let mut file = Wire::Plain.full(b"before");
    file.extend(Wire::Recyclable(4).fragment(41, &[b'u'; 80]));
    file.extend(Wire::Plain.full(b"after"));
    for dialect in [Dialect::ROCKSDB, Dialect::PEBBLE, Dialect::RECYCLABLE] {
        let (_folder, path) = folder();
        let options = FollowOptions::default()
            .with_retry(0, Duration::ZERO)
            .with_on_corruption(OnCorruption::Skip)
            .with_dialect(dialect);
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

/// After garbage or a lost write in a log with a number, the rest of an older log in the following
/// blocks is not returned, but the records of this log after them are.
#[test]
fn in_a_recycled_file_only_fragments_of_the_same_form_follow_damage() {
    let own = Wire::Recyclable(6);
    let filler = |wire: Wire, begin: usize| wire.full(&vec![b'o'; BLOCK_LEN - begin - wire.header_len()]);
    let own_len = own.full(b"own").len();
    // A block of garbage, one of an older log without numbers, and one in which the log continues.
    let mut garbage = own.full(b"own");
    garbage.resize(BLOCK_LEN, 0xff);
    garbage.extend(filler(Wire::Plain, 0));
    garbage.extend(own.full(b"later"));
    // The same with a block of an older log of the same form.
    let stale = [
        own.full(b"own"),
        filler(Wire::Recyclable(5), own_len),
        own.full(b"later"),
    ]
    .concat();
    // The first fragment's type shows no form, which is known only when the next block has been
    // seen.
    let mut unknown = own.fragment(41, b"of a type to come");
    let begin = unknown.len() as u64;
    unknown.extend(Wire::Plain.full(b"own"));
    unknown.resize(BLOCK_LEN, 0xff);
    unknown.extend(own.full(b"of another form"));

    let later = |file: &[u8]| (file.len() - own.full(b"later").len()) as u64;
    let cases = [
        (&garbage, vec![(0, "own"), (later(&garbage), "later")]),
        (&stale, vec![(0, "own"), (later(&stale), "later")]),
        (&unknown, vec![(begin, "own")]),
    ];
    for (index, (file, expected)) in cases.into_iter().enumerate() {
        let options = skipping().with_format(LogFormat::new(Dialect::ROCKSDB).with_log_number(6));
        let reported = followed_in_steps(file, 1_000, options);
        let found: Vec<_> = reported
            .iter()
            .filter_map(|reported| match reported {
                Reported::Record(begin, _, data) if data.len() < 100 => Some((*begin, str::from_utf8(data).unwrap())),
                Reported::Record(begin, ..) => Some((*begin, "an older log's")),
                Reported::Skipped(_) => None,
            })
            .collect();
        assert_eq!(found, expected, "{index}");
    }
}

/// After that metadata the first fragment of a long record ends with its block, though it is
/// shorter than a block. Whether or not that fragment is damaged, the metadata is not damage, and
/// the records' format is known.
#[test]
fn after_metadata_the_first_block_is_waited_for() {
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
            let (_folder, path) = folder();
            let mut growing = Growing::new(&path, preallocated as u64);
            let options = FollowOptions::default()
                .with_retry(0, Duration::ZERO)
                .with_on_corruption(OnCorruption::Skip);
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
                (first.begin, first.end, first.reason),
                (0, 11, Reason::Metadata { kind: 9 }),
                "{is_damaged}, {preallocated}"
            );
            assert_eq!(
                (follower.format().log_number, follower.format().compression),
                (Some(4), Some(Compression::Zstd))
            );
            let damage = reported.iter().find_map(|reported| match reported {
                Reported::Skipped(region) if matches!(region.reason, Reason::ChecksumMismatch { .. }) => {
                    Some(region.begin)
                }
                _ => None,
            });
            assert_eq!(damage, is_damaged.then_some(11), "{preallocated}");
        }
    }
}

/// Up to eight damaged bits in a file header: each bit, pairs, more, those in which it becomes most
/// like the header `other`, and zeros in the place of its beginning and of its end.
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
        let (mut without_begin, mut without_end) = (header, header);
        without_begin[..cut].fill(0);
        without_end[cut..].fill(0);
        headers.extend([without_begin, without_end]);
    }
    let damaged_bits = |damaged: &[u8; 7]| -> u32 {
        let bytes = damaged.iter().zip(header);
        bytes.map(|(byte, right)| (byte ^ right).count_ones()).sum()
    };
    headers.retain(|damaged| (1..=8).contains(&damaged_bits(damaged)));
    headers
}

/// Damage of up to eight bits in a file header costs only the header: neither a reader nor a
/// follower, however the bytes arrive, and for any first fragment.
#[test]
fn a_damaged_file_header_costs_only_itself() {
    let (wandb, swanlab) = (*b":W&B\xe1\xbe\x00", *b":SWL\xd6\xe1\x02");
    let dialects = [
        (wandb, swanlab, 0, Dialect::WANDB),
        (wandb, swanlab, 7, Dialect::WANDB_OLD),
        (swanlab, wandb, 0, Dialect::SWANLAB),
    ];
    // One record; one that fills the first block of `wandb_old`; one that ends in its last bytes.
    let cases = [vec![10], vec![32_761, 5], vec![32_755, 40_000]];
    for (header, other, grid_offset, dialect) in dialects {
        for lens in &cases {
            let (mut file, expected) = run_file(grid_offset, lens);
            let arrivals = [
                vec![],
                vec![7],
                // Byte by byte, where the answer changes.
                (1..30).chain(BLOCK_LEN - 1..BLOCK_LEN + 16).collect(),
                vec![BLOCK_LEN, 2 * BLOCK_LEN, 3 * BLOCK_LEN],
            ];
            for damaged in damaged_headers(header, other) {
                file[..7].copy_from_slice(&damaged);
                for named in [None, Some(dialect)] {
                    if named.is_none() && dialect == Dialect::WANDB_OLD {
                        // It is followed only if it is named.
                        continue;
                    }
                    let mut options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
                    options.dialect = named;
                    let by_reader = read_with(&file, options);
                    assert_eq!(by_reader[1..], expected, "a reader: {damaged:?}, {named:?}, {lens:?}");
                    let Reported::Skipped(region) = by_reader[0] else {
                        panic!()
                    };
                    // Each version of SwanLab is read, and this record shows none to be wrong.
                    let is_version = damaged[..6] == swanlab[..6];
                    let is_damage = region.reason == Reason::BadFileHeader;
                    assert_eq!((region.begin, region.end, is_damage), (0, 7, !is_version));
                    for ends in &arrivals {
                        let (_folder, path) = folder();
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

/// A read may see the end of a write and not its beginning, also in a file header.
#[test]
fn a_file_header_that_is_partly_visible_is_read_again() {
    let (file, expected) = run_file(0, &[10]);
    for dialect in [None, Some(Dialect::WANDB)] {
        let (_folder, path) = folder();
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

/// The records, each of one byte repeated, as a run file: the file header, and then blocks that
/// begin at `grid_offset`. Also where each record begins and ends.
fn run_file(grid_offset: usize, lens: &[usize]) -> (Vec<u8>, Vec<Reported>) {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    let records = lens.iter().map(|&len| {
        let data = vec![b'x'; len];
        let begin = Wire::Ieee.append(&mut file, grid_offset, &data);
        Reported::Record(begin, file.len() as u64, data)
    });
    let records = records.collect();
    (file, records)
}

/// The blocks of a run file that wandb-core wrote before 0.17.6 begin 7 bytes later, which its
/// beginning does not show: its dialect must be named.
#[test]
fn a_run_file_is_followed_with_its_own_blocks() {
    let mut cases = vec![vec![32_755, 70_000], vec![32_761, 5, 40_000], vec![100_000]];
    // The last record that begins in the first block has from 0 to 40 bytes there.
    cases.extend((0..40).map(|left| vec![10_000, BLOCK_LEN - 10_014 - left, 3, 5, 1, 70_000, 1]));
    for lens in cases {
        for (grid_offset, dialect, options) in [
            (0, Dialect::WANDB, skipping()),
            (7, Dialect::WANDB_OLD, skipping().with_dialect(Dialect::WANDB_OLD)),
        ] {
            let (file, expected) = run_file(grid_offset, &lens);
            for (step, preallocated) in [(1_000, 0), (BLOCK_LEN, 0), (file.len(), 0), (5_000, 2 * file.len())] {
                let (_folder, path) = folder();
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

/// Whether its second block is there already makes no difference: a run file is followed in blocks
/// that begin with the file.
#[test]
fn an_old_run_file_that_is_not_named_is_followed_as_a_new_one() {
    let (file, _) = run_file(7, &[5_000; 20]);
    for step in [1_000, file.len()] {
        let expected = followed_in_steps(&file, step, skipping().with_dialect(Dialect::WANDB));
        assert_eq!(followed_in_steps(&file, step, skipping()), expected, "{step}");
    }
}

/// The follower does not wait for later bytes: a record is returned once it is complete.
#[test]
fn a_run_file_is_not_returned_later_than_it_is_written() {
    for (grid_offset, dialect) in [(0, Dialect::WANDB), (7, Dialect::WANDB_OLD)] {
        let (file, expected) = run_file(grid_offset, &[500; 200]);
        let options = FollowOptions::default().with_dialect(dialect);
        let (_folder, path) = folder();
        let mut growing = Growing::new(&path, 0);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let (mut reported, mut written) = (Vec::new(), 0);
        for (index, record) in expected.iter().enumerate() {
            let Reported::Record(_, end, _) = *record else { panic!() };
            // First only a part of it.
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

/// No more is written to a file that has been renamed, so there is no wait for records that a
/// reader returns.
#[test]
fn a_rotation_decides_open_questions() {
    // Its first fragment is damaged, and it ends before the third block does.
    let (mut closed, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..90 {
        let begin = Wire::Recyclable(5).append(&mut closed, 0, &[b'x'; 1_000]);
        if begin >= BLOCK_LEN as u64 {
            expected.push(Reported::Record(begin, closed.len() as u64, vec![b'x'; 1_000]));
        }
    }
    closed[20] ^= 1;
    let (folder, path) = folder();
    fs::write(&path, &closed).unwrap();
    let mut follower = Follower::open_with(&path, skipping()).unwrap();
    let mut reported = Vec::new();
    drain(&mut follower, &mut reported);
    fs::rename(&path, folder.path().join("old.log")).unwrap();
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

/// A crash left a hole of several blocks, and the writer continued in the block after them, or in
/// one after a damaged block. Its writes there may be only partly visible when it is first polled.
#[test]
fn each_block_after_a_hole_is_looked_at_again() {
    for (preallocated, later_block) in [(0, 2), (4 << 20, 2), (4 << 20, 40)] {
        let (folder, path) = folder();
        let begin = later_block * BLOCK_LEN;
        let mut growing = Growing::new(&path, preallocated.max(begin as u64));
        growing.write(0, &Log::new(vec![b"before".to_vec()]).file);
        let mut follower = Follower::open_with(&path, skipping()).unwrap();
        let mut reported = Vec::new();
        assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);

        let mut after = Vec::new();
        Encoder::new(begin as u64).encode(b"after the hole", &mut after);
        growing.write(begin, &after[..8]);
        assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
        growing.write(begin, &after);
        drain(&mut follower, &mut reported);
        let last = Reported::Record(begin as u64, (begin + after.len()) as u64, b"after the hole".to_vec());
        assert_eq!(reported.last(), Some(&last), "{preallocated}, {later_block}");
        drop(folder);
    }
}

/// A poll probes no more than 8 MiB. A file that has been replaced is probed to its end, in several
/// polls, before that is reported, and again before it is reported another time.
#[test]
fn records_after_a_long_hole_are_returned_before_the_rotation() {
    for is_written_between_reports in [false, true] {
        let (folder, path) = folder();
        let begin = 2_000 * BLOCK_LEN;
        let mut growing = Growing::new(&path, begin as u64 + BLOCK_LEN as u64);
        growing.write(0, &Log::new(vec![b"before".to_vec()]).file);
        let mut follower = Follower::open_with(&path, skipping()).unwrap();
        let mut reported = Vec::new();
        assert_eq!(drain(&mut follower, &mut reported).reason, WaitReason::Zeros);
        let mut after = Vec::new();
        Encoder::new(begin as u64).encode(b"after the hole", &mut after);
        fs::rename(&path, folder.path().join("old.log")).unwrap();
        // The number of polls up to the first one with an event, and that event.
        let next = |follower: &mut Follower| {
            for count in 1.. {
                match follower.poll().unwrap() {
                    Poll::Record(record) => return (count, Some(record.data.to_vec())),
                    Poll::Rotated { .. } => return (count, None),
                    Poll::Skipped(_) => {}
                    Poll::NotYet(not_yet) => {
                        assert_eq!(not_yet.reason, WaitReason::Zeros);
                        assert!(follower.delay().is_zero());
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
            // While the rest of the file is searched.
            for _ in 0..3 {
                assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)));
            }
        }
        growing.write(begin, &after);
        assert_eq!(next(&mut follower).1.as_deref(), Some(&b"after the hole"[..]));
        assert_eq!(next(&mut follower).1, None);
        assert!(!follower.delay().is_zero());
    }
}

/// The format of a log shows in its first three blocks. Zeros in them are written, and no space for
/// later writes, if bytes follow them.
#[test]
fn zeros_where_the_format_shows_are_not_waited_at_if_the_log_continues_after_them() {
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
            let begin = file.len();
            let mut encoder = Encoder::with_format(begin as u64, dialect).unwrap();
            for _ in 0..30 {
                encoder.encode(&[b'y'; 5_000], &mut file);
            }
            let (_folder, path) = folder();
            let mut growing = Growing::new(&path, preallocated);
            growing.write(0, &file[..begin]);
            let mut follower = Follower::open_with(&path, skipping()).unwrap();
            let mut reported = Vec::new();
            drain(&mut follower, &mut reported);
            growing.write(begin, &file[begin..]);
            drain(&mut follower, &mut reported);
            assert_eq!(reported, read(&file), "{dialect:?}, {is_damaged}, {later_block}");
        }
    }
}

/// A record is too large, and its rest, which is not damage, is read more than once, because its
/// writer cuts the file and writes it again.
#[test]
fn the_rest_of_a_too_large_record_is_not_damage_if_it_is_read_again() {
    let (run, _) = run_file(0, &[5, 50_000, 4]);
    let plain = Log::new(vec![vec![b'a'; 5], vec![b'b'; 100_000], vec![b'c'; 4]]).file;
    // LevelDB ignores bytes in a trailer after a FIRST.
    let mut trailer = Wire::Plain.part(2, &[b'b'; BLOCK_LEN - 10]);
    trailer.extend([1, 2, 3]);
    trailer.extend(&plain[BLOCK_LEN..]);
    for file in [run, plain, trailer] {
        let options = ReadOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_record_len_max(10_000);
        let expected = read_with(&file, options);
        let (_folder, path) = folder();
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

/// The beginning of a record is destroyed. Its rest is damage, even if the destroyed block was
/// taken for another dialect.
#[test]
fn the_rest_of_a_destroyed_record_is_damage() {
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
            let reported = followed_in_steps(&file, step, skipping());
            let spans = reported.iter().map(|reported| match reported {
                Reported::Record(begin, end, _) => (*begin as usize, *end as usize, "record"),
                Reported::Skipped(region) => (region.begin as usize, region.end as usize, region.reason.as_str()),
            });
            assert_eq!(spans.collect::<Vec<_>>(), expected, "{wire:?}, {step} bytes at a time");
        }
    }
}

/// A follower that starts where another one stopped reports the same, except the rest of a record
/// that was damaged before that offset.
#[test]
fn a_kept_offset_after_damage_returns_the_same_records() {
    let mut log = Log::new(vec![
        vec![b'a'; 40_000],
        b"b".to_vec(),
        vec![b'c'; 100_000],
        b"d".to_vec(),
    ]);
    log.file[100] ^= 1;
    log.file[2 * BLOCK_LEN + 100] ^= 1;
    let (_folder, path) = folder();
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
