//! Tests that follow a growing file. Every record must be returned once and in order, no damage may
//! be reported by mistake, and all real damage must be reported. Each test runs on a single file
//! and on a segment of a log, see [`Place`].

/// Makes two tests of each function: `file::NAME` and `segment::NAME`. A function that cannot run
/// on a segment is listed with a reason.
macro_rules! follow_tests {
    (
        in_file_and_segment: [$($both:ident),* $(,)?]
        $(, in_file_only, $reason:literal: [$($alone:ident),* $(,)?])*
        $(,)?
    ) => {
        mod file {
            $(#[test] fn $both() { super::$both(crate::follow::Place::File); })*
            $($(#[doc = $reason] #[test] fn $alone() { super::$alone(crate::follow::Place::File); })*)*
        }
        mod segment {
            $(#[test] fn $both() { super::$both(crate::follow::Place::Segment); })*
        }
    };
}

mod damage;
mod file_header;
mod growing;
mod holes;
mod identifying;
mod older_log;
mod rotation;
mod waiting;

use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cordwood_log::codec::Encoder;
use cordwood_log::damage::{Reason, SkippedRegion};
use cordwood_log::follow::{NotYet, Poll, WaitReason};
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::segments::{name_of, offset_of};
use cordwood_log::{
    Compression, Dialect, End, Error, ErrorKind, Event, FollowOptions, LogFormat, OnCorruption, ReadOptions, Reader,
    Writer,
};
use tempfile::TempDir;

use crate::double::HANG;
use crate::wire::Wire;

/// Records, and the log that contains them.
struct Log {
    records: Vec<Vec<u8>>,
    spans: Vec<Range<usize>>,
    file: Vec<u8>,
}

impl Log {
    fn new(records: Vec<Vec<u8>>) -> Self {
        let (mut encoder, mut file, mut spans) = (Encoder::new(0), Vec::new(), Vec::new());
        for record in &records {
            let start = encoder.encode(record, &mut file) as usize;
            spans.push(start..file.len());
        }
        Log { records, spans, file }
    }

    /// Returns the number of records that are complete when the first `len` bytes have been
    /// written. If `is_preallocated` is true, zeros follow these bytes.
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

/// The generator xorshift64*, which is good enough to choose lengths and chunks.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % end
    }

    /// Returns data of many lengths. Some of it ends with zeros, and some of it is itself a log.
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

/// The place of the file under test.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The file is a log of its own.
    File,
    /// The file is the second segment of a log. Its log offset is not a multiple of the block
    /// length.
    Segment,
}

impl Place {
    /// Returns a new directory, and the path in it at which a test creates the file under test.
    fn directory(self) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.log");
        let Place::Segment = self else { return (directory, path) };
        let first = Wire::Plain.full(&[b'0'; 100]);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(name_of(0)), &first).unwrap();
        (directory, path.join(name_of(first.len() as u64)))
    }
}

/// A follower of the file under test. All offsets are offsets in that file.
#[derive(Debug)]
struct Follower {
    /// The path of the file, or of the directory of the segmented log.
    path: PathBuf,
    /// The log offset of the first byte of the file.
    base: u64,
    follower: cordwood_log::Follower,
}

impl Follower {
    fn open(path: &Path) -> Result<Self, Error> {
        Follower::open_with(path, FollowOptions::default())
    }

    /// Opens the log. Without a start, takes the records before the file under test.
    fn open_with(path: &Path, mut options: FollowOptions) -> Result<Self, Error> {
        let base = path.file_name().and_then(offset_of).unwrap_or(0);
        let path = if base > 0 { path.parent().unwrap() } else { path };
        let is_from_first = options.start == 0 && base > 0;
        if options.start > 0 {
            options.start += base;
        }
        let mut follower = cordwood_log::Follower::open_with(path, options)?;
        if is_from_first {
            assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.end_offset == base));
        }
        Ok(Follower {
            path: path.to_owned(),
            base,
            follower,
        })
    }

    fn poll(&mut self) -> Result<Poll<'_>, Error> {
        in_file(self.follower.poll(), self.base)
    }

    fn peek(&mut self) -> Result<Poll<'_>, Error> {
        in_file(self.follower.peek(), self.base)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Poll<'_>, Error> {
        in_file(self.follower.wait(timeout), self.base)
    }

    fn offset(&self) -> u64 {
        self.follower.offset() - self.base
    }
}

/// Gives access to the methods that do not use offsets.
impl Deref for Follower {
    type Target = cordwood_log::Follower;

    fn deref(&self) -> &Self::Target {
        &self.follower
    }
}

impl DerefMut for Follower {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.follower
    }
}

/// Converts the offsets in a result to offsets in the file that starts at the log offset `base`.
fn in_file(mut answer: Result<Poll<'_>, Error>, base: u64) -> Result<Poll<'_>, Error> {
    let offsets = match &mut answer {
        Ok(Poll::Record(record)) => [&mut record.offset, &mut record.end_offset],
        Ok(Poll::NotYet(not_yet)) => [&mut not_yet.offset, &mut not_yet.file_len],
        Ok(Poll::Truncated { offset, file_len, .. } | Poll::Rotated { offset, file_len, .. }) => [offset, file_len],
        Ok(Poll::Skipped(region))
        | Err(Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => [&mut region.start, &mut region.end],
        Ok(Poll::End(End::Stopped { offset } | End::Clean { offset })) => {
            *offset -= base;
            return answer;
        }
        Err(Error {
            kind: ErrorKind::Io { .. },
            ..
        }) => return answer,
        other => panic!("{other:?}"),
    };
    for offset in offsets {
        *offset -= base;
    }
    answer
}

/// A file that starts with `len` zeros. `append` writes over these zeros or after them.
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

/// An event that a follower reported.
#[derive(Clone, PartialEq, Eq)]
enum Reported {
    Record(u64, u64, Vec<u8>),
    Skipped(SkippedRegion),
}

impl fmt::Debug for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The message of a failure must be short enough to read.
            Reported::Record(start, end, data) => {
                write!(f, "[{start}, {end}) {:08x}", cordwood_log::crc32c::crc32c(data))
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

/// Returns options under which damage is skipped, and reported without reading it again.
fn skipping() -> FollowOptions {
    FollowOptions::default()
        .with_retry(0, Duration::ZERO)
        .with_on_corruption(OnCorruption::Skip)
}

/// Returns the events of a follower of a file that grows by `step` bytes at a time.
fn followed_in_steps(place: Place, file: &[u8], step: usize, options: FollowOptions) -> Vec<Reported> {
    let (_directory, path) = place.directory();
    let mut growing = Growing::new(&path, 0);
    let mut follower = Follower::open_with(&path, options).unwrap();
    let mut reported = Vec::new();
    for (index, piece) in file.chunks(step).enumerate() {
        growing.write(index * step, piece);
        drain(&mut follower, &mut reported);
    }
    reported
}

/// Collects all events, and returns the reason why the follower then waits. While damage is being
/// read again, this polls again.
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

/// Returns the events of a follower while `file` is written at `path` in parts that end at `ends`.
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

/// Returns the events of a reader of the whole file.
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

/// Returns a log of slightly more than three blocks. It contains each kind of fragment, a trailer,
/// a block with exactly seven bytes left, data that ends in zeros, and an inner log.
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

/// Returns the lengths to check, which are all lengths near a boundary and some others.
fn lengths(log: &Log) -> Vec<usize> {
    let mut edges: Vec<usize> = log.spans.iter().flat_map(|span| [span.start, span.end]).collect();
    edges.extend((0..=log.file.len() / BLOCK_LEN).map(|block| block * BLOCK_LEN));
    let is_near = |len: usize| edges.iter().any(|&edge| len.abs_diff(edge) <= 12);
    (0..=log.file.len())
        .filter(|&len| is_near(len) || len < 250 || len % 499 == 0)
        .collect()
}

/// Returns a run file of records that each repeat one byte. It has a file header, and blocks that
/// start at `grid_offset`. Also returns the start and the end of each record.
fn run_file(grid_offset: usize, lens: &[usize]) -> (Vec<u8>, Vec<Reported>) {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    let records = lens.iter().map(|&len| {
        let data = vec![b'x'; len];
        let start = Wire::Ieee.append(&mut file, grid_offset, &data);
        Reported::Record(start, file.len() as u64, data)
    });
    let records = records.collect();
    (file, records)
}
