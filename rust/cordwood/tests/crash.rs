//! The machine stops at any moment, with any part of the unsynced data on its disk. No synced
//! record may be lost, no record may appear that was never written, and everything appended
//! afterwards must be found.
//!
//! The same is true of packed logs, in which records share containers. The operations of a writer
//! on its file are recorded. For each prefix of these operations, the test builds the files that a
//! crash may leave ([`crash_files`]), and opens each file for append in every possible way.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::common;
use crate::common::{Found, read_all};
use crate::double::{Double, ENOSPC, Fault, Op, apply};
#[cfg(feature = "zstd")]
use cordwood_log::Compression;
use cordwood_log::damage::Reason;
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::{
    Dialect, End, Error, ErrorKind, FlushPolicy, LogFile, LogFileOptions, LogFormat, OnCorruption, OnTornTail,
    ReadOptions, Reader, SyncPolicy,
};

/// The sector length of most disks. Others write 4 KiB at a time.
const SECTOR_LEN: usize = 512;
/// A write is cut at each of this many last bytes. Before these bytes, it is cut only at the end of
/// each sector.
const TAIL_LEN: usize = 64;

// The written records ---------------------------------------------------------------------------

const LEVELDB: LogFormat = LogFormat::new(Dialect::LEVELDB);
const FORMATS: &[LogFormat] = &[
    LEVELDB,
    LogFormat::new(Dialect::PACKED),
    #[cfg(feature = "zstd")]
    LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd),
];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Record {
    offset: u64,
    data: Vec<u8>,
}

/// The calls of a writer and their results.
struct History {
    format: LogFormat,
    /// The file before it was opened. All its records are on the disk.
    initial: Vec<u8>,
    is_new: bool,
    /// The number of bytes that the disk writes at a time.
    sector_len: usize,
    ops: Vec<Op>,
    /// Every record that was appended or whose append failed.
    attempted: HashSet<Record>,
    /// The records whose append succeeded, and the records of the initial file.
    appended: Vec<Record>,
}

/// Returns bytes that cannot be compressed. They differ for each number.
fn noise(number: u64, len: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Returns data that is not a log and can be compressed. It differs for each number. It contains
/// some zeros, and sometimes ends with zeros.
fn data(number: u64, len: usize) -> Vec<u8> {
    // No byte of the data is a fragment type, because readers would search for one.
    let mut bytes: Vec<u8> = noise(number, len).iter().map(|byte| b'a' + byte % 16).collect();
    match number % 4 {
        1 => bytes[len / 2..].fill(0),
        2 => bytes[len / 3..len / 2].fill(0),
        _ => {}
    }
    bytes
}

struct Session {
    log: LogFile,
    double: Double,
    history: History,
    number: u64,
}

impl Session {
    /// Creates a writer to a new file, or to a file that replaces `initial`.
    fn create(initial: Option<&[u8]>, options: LogFileOptions) -> Self {
        let double = Double::with_bytes(initial.unwrap_or_default());
        let log = LogFile::create_in(double.boxed(), options).expect("a file that can be emptied");
        Session::new(log, double, initial.unwrap_or_default(), initial.is_none(), 0)
    }

    fn append_to(initial: &[u8], options: LogFileOptions) -> Self {
        let double = Double::with_bytes(initial);
        let log = LogFile::append_in(double.boxed(), options).expect("a file that can be appended to");
        Session::new(log, double, initial, false, 1000)
    }

    fn new(log: LogFile, double: Double, initial: &[u8], is_new: bool, number: u64) -> Self {
        let appended = records_of(initial);
        let history = History {
            format: log.format(),
            initial: initial.to_vec(),
            is_new,
            sector_len: SECTOR_LEN,
            ops: Vec::new(),
            attempted: appended.iter().cloned().collect(),
            appended,
        };
        Session {
            log,
            double,
            history,
            number,
        }
    }

    fn append_with(&mut self, len: usize, append: impl FnOnce(&LogFile, &[u8]) -> Result<u64, Error>) {
        let data = data(self.number, len);
        self.number += 1;
        let before = self.log.offset();
        let appended = append(&self.log, &data);
        let offset = match appended {
            Ok(offset) => offset,
            Err(_) => before + cordwood_log::format::trailer_len(before) as u64,
        };
        let record = Record { offset, data };
        self.history.attempted.insert(record.clone());
        if appended.is_ok() {
            self.history.appended.push(record);
        }
        self.note();
    }

    fn append(&mut self, len: usize) {
        self.append_with(len, LogFile::append);
    }

    fn append_sync(&mut self, len: usize) {
        self.append_with(len, LogFile::append_sync);
    }

    fn flush(&mut self) {
        let _ = self.log.flush();
        self.note();
    }

    fn sync(&mut self) {
        self.log.sync().expect("a sync that nothing disturbs");
        self.note();
    }

    /// Records the promises that the writer makes at this point.
    fn note(&mut self) {
        let promised = Op::Promised(self.log.durable_offset());
        let mut state = self.double.state();
        if state.ops.last() != Some(&promised) {
            state.ops.push(promised);
        }
    }

    fn close(mut self) -> History {
        self.log.close().expect("a close that nothing disturbs");
        self.note();
        self.history.ops = self.double.ops();
        self.history
    }
}

/// Returns the records in a file, by the rules of all these formats.
fn records_of(file: &[u8]) -> Vec<Record> {
    let record = |event| match event {
        Found::Record { offset, data, .. } => Some(Record { offset, data }),
        Found::Skipped(_) => None,
    };
    events_of(file).into_iter().filter_map(record).collect()
}

fn events_of(file: &[u8]) -> Vec<Found> {
    let options = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_dialect(Dialect::PACKED);
    read_all(&mut Reader::from_slice(file, options)).0
}

/// Returns the end of the last record.
fn end_of(file: &[u8]) -> u64 {
    let end = |event| match event {
        Found::Record { end_offset, .. } => Some(end_offset),
        Found::Skipped(_) => None,
    };
    events_of(file).into_iter().filter_map(end).next_back().unwrap_or(0)
}

// The files that a crash leaves -----------------------------------------------------------------

/// A file that a crash may leave.
struct CrashFile {
    bytes: Vec<u8>,
    what: String,
    /// Whether a disk that writes whole sectors in order can have left the file. Truncating such a
    /// file must be allowed.
    is_usual: bool,
}

/// Returns the files that may be on the disk after the first `count` operations.
fn crash_files(history: &History, count: usize) -> Vec<CrashFile> {
    let ops = &history.ops[..count];
    let sector_len = history.sector_len;
    let (synced, pending) = ops.split_at(ops.iter().rposition(|op| *op == Op::SyncData).unwrap_or(0));
    let mut durable = history.initial.clone();
    synced.iter().for_each(|op| apply(op, &mut durable));
    let pending: Vec<&Op> = pending
        .iter()
        .filter(|op| matches!(op, Op::Write { .. } | Op::SetLen(_)))
        .collect();

    let mut files = Vec::new();
    let mut push = |bytes: &[u8], what: String, is_usual| {
        files.push(CrashFile {
            bytes: bytes.to_vec(),
            what,
            is_usual,
        });
    };
    // The operations are done in order, and the last one is done in part.
    let mut file = durable.clone();
    for (index, op) in pending.iter().enumerate() {
        push(&file, format!("{index} pending operations done"), true);
        if let Op::Write { offset, bytes } = op {
            let sector_ends = (1..bytes.len()).filter(|len| (*offset as usize + len).is_multiple_of(sector_len));
            let last_bytes = bytes.len().saturating_sub(TAIL_LEN).max(1)..bytes.len();
            for len in sector_ends.chain(last_bytes).chain([0]) {
                let mut part = bytes[..len].to_vec();
                let torn = |bytes| Op::Write { offset: *offset, bytes };
                let mut cut = file.clone();
                apply(&torn(part.clone()), &mut cut);
                push(&cut, format!("{index} done, the next torn at {len}"), true);
                part.resize(bytes.len(), 0);
                let mut filled = file.clone();
                apply(&torn(part), &mut filled);
                let is_usual = len == 0 || (*offset as usize + len).is_multiple_of(sector_len);
                push(&filled, format!("{index} done, the next zero from {len} on"), is_usual);
            }
        }
        apply(op, &mut file);
    }
    push(&file, "all done".to_owned(), true);

    // Sectors are written out of order or not at all: all but one, only one, or random ones.
    let mut base = durable;
    base.resize(file.len(), 0);
    let sectors: Vec<usize> = (0..file.len())
        .step_by(sector_len)
        .filter(|&start| sector(&file, start, sector_len) != sector(&base, start, sector_len))
        .collect();
    let mut mix = |what: String, is_lost: &mut dyn FnMut(usize) -> bool| {
        let mut mixed = file.clone();
        for &start in &sectors {
            if is_lost(start) {
                let end = (start + sector_len).min(mixed.len());
                mixed[start..end].copy_from_slice(&base[start..end]);
            }
        }
        push(&mixed, what, false);
    };
    for &one in &sectors {
        mix(format!("without the sector at {one}"), &mut |start| start == one);
        mix(format!("only the sector at {one}"), &mut |start| start != one);
    }
    let mut random = count as u64 * 2 + 1;
    for _ in 0..sectors.len().min(8) {
        mix(format!("random sectors {random}"), &mut |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 63 == 0
        });
    }
    files
}

fn sector(file: &[u8], start: usize, sector_len: usize) -> &[u8] {
    &file[start..file.len().min(start + sector_len)]
}

// The promises ----------------------------------------------------------------------------------

#[derive(Default, Debug)]
struct Counts {
    files: usize,
    cut: usize,
    refused: usize,
}

fn check(name: &str, history: &History) -> Counts {
    let mut counts = Counts::default();
    let initial_end = match history.ops.contains(&Op::SetLen(0)) {
        true => 0, // The old records are meant to be discarded.
        false => end_of(&history.initial),
    };
    // After an operation that does not write, a crash may leave the same files as before it.
    let (hasher, mut checked) = (RandomState::new(), HashSet::new());
    for count in 0..=history.ops.len() {
        let ops = &history.ops[..count];
        let promised = ops.iter().rev().find_map(|op| match op {
            Op::Promised(offset) => Some(*offset),
            _ => None,
        });
        let promised = promised.unwrap_or(0).max(initial_end);
        if history.is_new && !ops.contains(&Op::SyncDirectory) {
            // Without a synced name, the whole file may be missing.
            assert_eq!(
                promised, 0,
                "{name}, {count} operations: a promise without a name on the disk"
            );
        }
        for file in crash_files(history, count) {
            counts.files += 1;
            if checked.insert(hasher.hash_one((promised, file.is_usual, &file.bytes))) {
                let what = format!("{name}, {count} operations, {}", file.what);
                check_file(&what, history, promised, &file, &mut counts);
            }
        }
    }
    counts
}

fn check_file(what: &str, history: &History, promised: u64, file: &CrashFile, counts: &mut Counts) {
    // The promises apply to whole records and containers.
    let must_be_there: Vec<&Record> = (history.appended.iter())
        .filter(|record| record.offset < promised)
        .collect();
    let before = records_of(&file.bytes);
    for on_torn_tail in [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock] {
        let what = format!("{what}, {on_torn_tail:?}");
        let double = Double::with_bytes(&file.bytes);
        let options = named(history.format).with_on_torn_tail(on_torn_tail);
        let log = match LogFile::append_in(double.boxed(), options) {
            Ok(log) => log,
            Err(
                Error {
                    kind: ErrorKind::TornTail { region, .. },
                    ..
                }
                | Error {
                    kind: ErrorKind::Corruption { region, .. },
                    ..
                },
            ) => {
                assert_eq!(double.ops(), [], "{what}: refused, and changed");
                assert!(region.start >= promised, "{what}: {region} before {promised}");
                // Without a valid fragment, the file does not show that it is a log.
                let is_log = !before.is_empty() || promised > 0;
                assert!(on_torn_tail != OnTornTail::PadToBlock || !is_log, "{what}: {region}");
                if on_torn_tail == OnTornTail::Truncate {
                    assert!(!file.is_usual, "{what}: {region}");
                    counts.refused += 1;
                }
                continue;
            }
            Err(Error {
                kind: ErrorKind::Foreign { .. } | ErrorKind::WrongDialect { .. },
                ..
            }) => {
                // The file does not show that it is a log, or that it is packed. This is only
                // allowed if no promise was made.
                assert_eq!(double.ops(), [], "{what}: refused, and changed");
                assert!(promised == 0 && !file.is_usual, "{what}: no log");
                continue;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        counts.cut += usize::from(on_torn_tail == OnTornTail::Truncate && log.discarded_tail().is_some());
        let appended: Vec<Record> = [data(10_003, 20), data(10_000, BLOCK_LEN)]
            .into_iter()
            .map(|data| {
                let offset = log.append_sync(&data).expect("an append that nothing disturbs");
                Record { offset, data }
            })
            .collect();
        let after = records_of(&double.bytes());
        assert!(after.ends_with(&appended), "{what}: what was appended is not there");
        let old = &after[..after.len() - appended.len()];
        for record in must_be_there.iter().copied().chain(&before) {
            assert!(old.contains(record), "{what}: lost the record at {}", record.offset);
        }
        for record in old {
            assert!(history.attempted.contains(record), "{what}: nobody wrote {record:?}");
        }
        // Once the file is whole again, even the strictest policy must open it.
        if on_torn_tail == OnTornTail::Truncate {
            let again = LogFile::append_in(double.boxed(), named(history.format));
            assert!(again.is_ok(), "{what}: {:?}", again.err());
        }
    }
}

/// Returns options that name a format, because the file may no longer show it.
fn named(format: LogFormat) -> LogFileOptions {
    match format == LEVELDB {
        true => LogFileOptions::default(),
        false => LogFileOptions::default().with_format(format),
    }
}

/// Asserts that at least `files_min` files were checked and that some were truncated. Any number of
/// files may have been refused.
fn assert_checked(counts: &Counts, files_min: usize) {
    assert!(counts.files >= files_min && counts.cut > 0, "{counts:?}");
}

// The histories ---------------------------------------------------------------------------------

/// Records are buffered, so that the history decides when they are written.
fn options(format: LogFormat) -> LogFileOptions {
    named(format).with_flush(FlushPolicy::OnClose)
}

fn count_writes(history: &History) -> usize {
    history.ops.iter().filter(|op| matches!(op, Op::Write { .. })).count()
}

#[test]
fn synced_records_survive_a_crash_after_unsynced_appends() {
    for &format in FORMATS {
        let mut session = Session::create(None, named(format));
        for len in [3, 700, 0, 1_500] {
            session.append(len);
        }
        session.sync();
        for len in [600, 20_000, 12_000, 100] {
            session.append(len);
        }
        let history = session.close();
        assert_eq!(count_writes(&history), 8);
        assert_checked(&check("every append written", &history), 500);
    }
}

#[test]
fn records_of_any_length_survive_a_crash_once_synced() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format));
        session.append(3);
        session.append(700);
        session.sync();
        session.append(0);
        session.append(1500);
        session.flush();
        session.append(600);
        session.append(5);
        session.flush();
        session.sync();
        session.append(BLOCK_LEN - 9_000);
        session.append(4_000);
        session.sync();
        session.append(9_000); // Continues in the next block.
        session.append(100);
        session.flush();
        session.append(2_000);
        session.sync();
        assert_checked(&check("now and then", &session.close()), 800);
    }
}

#[test]
fn a_synced_record_spanning_several_blocks_survives_a_crash() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format));
        if format != LEVELDB {
            session.history.sector_len = 4096;
        }
        session.append_sync(30_000);
        session.append(50_000);
        session.flush();
        session.append_sync(10);
        assert_checked(&check("several blocks", &session.close()), 300);
    }
}

/// Containers of both codecs are in the buffer when they are written. Some of them are cut at the
/// end of a block.
#[test]
fn short_records_survive_a_crash() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format));
        session.history.sector_len = 4096;
        for number in 0..700 {
            session.append(number * 7 % 130);
            match number {
                300 => session.sync(),
                500 => session.flush(),
                _ => {}
            }
        }
        assert_checked(&check("many short records", &session.close()), 100);
    }
}

/// A record that is longer than the writer's buffer is written in pieces. A disk with 4 KiB sectors
/// leaves fewer files to check.
#[test]
fn a_synced_record_written_in_several_pieces_survives_a_crash() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format));
        session.history.sector_len = 4096;
        session.append_sync(100);
        session.append(50);
        session.append(300_000);
        session.append_sync(10);
        let history = session.close();
        assert!(format != LEVELDB || count_writes(&history) == 4);
        assert_checked(&check("in pieces", &history), 300);
    }
}

#[test]
fn appended_records_survive_a_crash_if_every_append_is_synced() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format).with_sync(SyncPolicy::EveryAppend));
        for len in [0, 1, 500, 512, 1024, 17, 3_000] {
            session.append(len);
        }
        let history = session.close();
        assert_eq!(history.ops.iter().filter(|op| matches!(op, Op::Promised(_))).count(), 7);
        assert_checked(&check("every append", &history), 400);
    }
}

#[test]
fn synced_records_near_a_block_end_survive_a_crash() {
    for &format in FORMATS {
        for left in [0, 1, 6, 7, 8, 20] {
            let mut first = Encoded::new(&[], format);
            let mark_len = first.bytes.len();
            first.append_one(&noise(3, BLOCK_LEN - 7 - left - mark_len));
            assert_eq!(first.bytes.len(), BLOCK_LEN - left);
            let mut session = Session::append_to(&first.bytes, options(format));
            session.append(5);
            session.append(600);
            session.flush();
            session.append_sync(30);
            check(&format!("{left} bytes left in the block"), &session.close());
        }
    }
}

/// Returns logs with records, followed by bytes that a crash left.
fn torn_logs(format: LogFormat) -> Vec<(&'static str, Vec<u8>)> {
    let mut session = Session::create(None, options(format));
    for len in [40, 1_500, 700] {
        session.append(len);
    }
    session.flush();
    let whole = session.double.bytes();
    let mut torn = Encoded::new(&whole, format);
    torn.append(2_000);
    let torn = torn.bytes;
    let half = whole.len() + 1_000;
    let mut zeros = torn[..half].to_vec();
    zeros.resize(torn.len(), 0);
    let mut first = Encoded::new(&whole, format);
    first.append(40_000);
    first.bytes.truncate(BLOCK_LEN);
    vec![
        ("torn", torn[..half].to_vec()),
        ("half zeros", zeros),
        ("all zeros", {
            let mut zeros = whole.clone();
            zeros.resize(whole.len() + 5_000, 0);
            zeros
        }),
        ("only FIRST", first.bytes),
    ]
}

struct Encoded {
    encoder: cordwood_log::codec::Encoder,
    is_packed: bool,
    bytes: Vec<u8>,
}

impl Encoded {
    /// Creates a log that starts with these bytes.
    fn new(bytes: &[u8], format: LogFormat) -> Self {
        let mut bytes = bytes.to_vec();
        let mut encoder = cordwood_log::codec::Encoder::with_format(bytes.len() as u64, format).expect("a format");
        if bytes.is_empty() {
            encoder.start(&mut bytes);
        }
        Encoded {
            encoder,
            is_packed: format.dialect == Dialect::PACKED,
            bytes,
        }
    }

    /// Appends about this many bytes of data that cannot be compressed. In a packed log, a few
    /// bytes become a container, and many bytes become an ordinary record.
    fn append(&mut self, len: usize) {
        let noise = noise(3, len);
        if self.is_packed {
            self.encoder.encode(b"", &mut self.bytes);
        }
        self.append_one(&noise);
    }

    fn append_one(&mut self, data: &[u8]) {
        self.encoder.encode(data, &mut self.bytes);
        self.encoder.end_container(&mut self.bytes);
    }
}

#[test]
fn a_crash_during_recovery_does_not_lose_durable_records() {
    for &format in FORMATS {
        for (name, torn) in torn_logs(format) {
            for on_torn_tail in [OnTornTail::Truncate, OnTornTail::PadToBlock] {
                let mut session = Session::append_to(&torn, options(format).with_on_torn_tail(on_torn_tail));
                assert!(session.log.discarded_tail().is_some());
                session.append(3);
                session.flush();
                session.append(1_200);
                session.sync();
                session.append_sync(2_500);
                let history = session.close();
                if on_torn_tail == OnTornTail::Truncate {
                    check(&format!("{name}, cut"), &history);
                } else {
                    check_padded(&format!("{name}, padded"), &history);
                }
            }
        }
    }
}

/// Padded bytes stay in the file and may be read as damage, so this only checks padding again.
fn check_padded(name: &str, history: &History) {
    let initial_end = end_of(&history.initial);
    for count in 0..=history.ops.len() {
        let promised = history.ops[..count].iter().rev().find_map(|op| match op {
            Op::Promised(offset) => Some(*offset),
            _ => None,
        });
        let promised = promised.unwrap_or(0).max(initial_end);
        for file in crash_files(history, count) {
            let what = format!("{name}, {count} operations, {}", file.what);
            let double = Double::with_bytes(&file.bytes);
            let padding = options(history.format).with_on_torn_tail(OnTornTail::PadToBlock);
            let log = LogFile::append_in(double.boxed(), padding);
            let log = log.unwrap_or_else(|error| panic!("{what}: {error}"));
            let offset = log.append_sync(b"behind").expect("an append that nothing disturbs");
            let after = records_of(&double.bytes());
            let last = after.last().map(|record| (record.offset, record.data.as_slice()));
            assert_eq!(last, Some((offset, b"behind".as_slice())), "{what}");
            for record in history.appended.iter().filter(|record| record.offset < promised) {
                assert!(after.contains(record), "{what}: lost the record at {}", record.offset);
            }
            for record in &after[..after.len() - 1] {
                assert!(history.attempted.contains(record), "{what}: nobody wrote {record:?}");
            }
        }
    }
}

#[test]
fn a_new_log_that_replaces_an_old_log_survives_a_crash() {
    for &format in FORMATS {
        let mut old = Encoded::new(&[], format);
        for len in [700; 5] {
            old.append(len);
        }
        let mut session = Session::create(Some(&old.bytes), options(format));
        session.history.appended.clear();
        session.append(700); // The new record is as long as the old ones, so they would fit after it.
        session.flush();
        session.append_sync(700);
        let history = session.close();
        // Until the truncation is on the disk, the old records may still be found. Afterwards, they
        // must not be found.
        let cut = history.ops.iter().position(|op| *op == Op::SyncData).expect("a sync");
        assert_eq!(history.ops[..cut], [Op::SetLen(0)]);
        check("in place of an old one", &history);
        let attempted: HashSet<Record> = (history.attempted.iter())
            .filter(|record| !records_of(&old.bytes).contains(record))
            .cloned()
            .collect();
        let history = History {
            initial: Vec::new(),
            ops: history.ops[cut..].to_vec(),
            attempted,
            ..history
        };
        check("in place of an old one, cut", &history);
    }
}

#[test]
fn failed_writes_before_a_crash_do_not_lose_durable_records() {
    for &format in FORMATS {
        let mut session = Session::create(None, options(format));
        session.append_sync(600);
        let before = session.log.offset();
        session.double.state().write_faults = [Fault::Short(300), Fault::ErrorAfter(400, ENOSPC)].into();
        session.append_sync(6_000);
        assert_eq!(session.log.offset(), before);
        session.append(900);
        session.double.state().write_faults = [Fault::Short(10), Fault::Error(ENOSPC)].into();
        session.flush();
        session.append_sync(50);
        session.append(2_000);
        let history = session.close();
        assert_eq!(history.ops.iter().filter(|op| matches!(op, Op::SetLen(_))).count(), 2);
        assert_checked(&check("writes that failed", &history), 400);
    }
}

#[test]
fn opening_for_append_distinguishes_crash_damage_from_other_damage() {
    // One flipped bit is in the last record, which was synced. A crash does not cause that.
    let mut log = Encoded::new(&[], LEVELDB);
    log.append(40);
    log.append(2_000);
    let end = log.bytes.len();
    let mut flipped = log.bytes.clone();
    flipped[end - 700] ^= 1;
    let truncate = options(LEVELDB).with_on_torn_tail(OnTornTail::Truncate);
    let refused = |file: &[u8]| match LogFile::append_in(Double::with_bytes(file).boxed(), truncate.clone()) {
        Err(Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => Some((region.start, region.reason)),
        Ok(log) => {
            assert!(log.offset() < file.len() as u64);
            None
        }
        Err(error) => panic!("{error}"),
    };
    assert!(matches!(refused(&flipped), Some((47, Reason::ChecksumMismatch { .. }))));
    // A sector is missing, which a crash may have caused.
    let mut lost = log.bytes.clone();
    lost[1024..1536].fill(0);
    assert_eq!(refused(&lost), None);
    // If a whole record follows the missing sector, truncating would lose it.
    log.append(30);
    lost.extend_from_slice(&log.bytes[end..]);
    assert!(matches!(refused(&lost), Some((47, Reason::ChecksumMismatch { .. }))));
    // Here, a record follows in the next block.
    lost.truncate(end);
    lost.resize(BLOCK_LEN, 0);
    let mut next = Encoded::new(&lost, LEVELDB);
    next.append(30);
    assert!(matches!(
        refused(&next.bytes),
        Some((47, Reason::ChecksumMismatch { .. }))
    ));
    // Here, a whole fragment of an unknown type follows.
    let mut unknown = common::fragment(77, b"whole");
    unknown.resize(600, 0);
    assert!(matches!(refused(&unknown), Some((0, Reason::UnknownKind { kind: 77 }))));
}

#[test]
fn a_log_can_be_read_to_the_end_after_its_torn_tail_is_truncated() {
    for &format in FORMATS {
        for (name, torn) in torn_logs(format) {
            let double = Double::with_bytes(&torn);
            let truncate = options(format).with_on_torn_tail(OnTornTail::Truncate);
            let log = LogFile::append_in(double.boxed(), truncate).expect(name);
            log.append_sync(b"behind").expect(name);
            let bytes = double.bytes();
            let (events, end) = read_all(&mut Reader::from_slice(&bytes, ReadOptions::default()));
            let is_whole = |event: &Found| match event {
                Found::Record { .. } => true,
                Found::Skipped(region) => matches!(region.reason, Reason::Metadata { .. }),
            };
            assert!(events.iter().all(is_whole), "{name}");
            let offset = bytes.len() as u64;
            assert_eq!(end, End::Clean { offset });
        }
    }
}
