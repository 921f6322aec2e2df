//! The machine stops at any operation of a segmented log: on a file, on the directory, while a
//! segment is started, or during pruning. A prefix of the records must be left, which starts at the
//! oldest segment that was not being removed and contains every promised record. The log must open,
//! and must accept more records.
//!
//! The operations of a writer are recorded. For each prefix of these operations, the test builds
//! all directories that a crash may leave. Each name that was not synced may or may not exist,
//! independently of the other names. The bytes that were not synced are written up to any
//! operation, and the last operation is done in part.

use std::collections::{BTreeMap, HashSet};

use crate::common::{Found, read_all};
use crate::double::directory::{DirectoryDouble, DirectoryOp};
use crate::double::{EIO, ENOSPC, Fault, Op, apply};
use cordwood_log::segments::Segment;
use cordwood_log::{
    Dialect, Error, FlushPolicy, LogFileOptions, OnCorruption, OnTornTail, ReadOptions, Reader, SegmentedLog,
    SyncPolicy, segments,
};

type Files = BTreeMap<u64, Vec<u8>>;

/// The calls of a writer and their results.
struct Session {
    log: SegmentedLog,
    directory: DirectoryDouble,
    history: History,
}

struct History {
    options: LogFileOptions,
    /// The files before the writer opened the log. They are entirely on the disk.
    initial: Files,
    ops: Vec<DirectoryOp>,
    /// Each record that was appended or may have been appended, with its log offset.
    records: Vec<(u64, Vec<u8>)>,
}

fn options() -> LogFileOptions {
    LogFileOptions::default()
        .with_segment_len(100)
        .with_on_torn_tail(OnTornTail::Truncate)
}

fn packed() -> LogFileOptions {
    options().with_dialect(Dialect::PACKED).with_segment_len(200)
}

fn record(number: usize) -> Vec<u8> {
    let mut data = format!("record {number} ").into_bytes();
    data.resize(data.len() + number * 5 % 23, b'x');
    data
}

impl Session {
    fn open(initial: Files, options: LogFileOptions) -> Self {
        let directory = DirectoryDouble::with_files(initial.clone());
        let log = SegmentedLog::open_in(directory.arc(), options.clone()).expect("a segmented log");
        let records = read(&initial, &options);
        let history = History {
            options,
            initial,
            ops: Vec::new(),
            records,
        };
        Session {
            log,
            directory,
            history,
        }
    }

    fn append_with(&mut self, count: usize, append: impl FnOnce(&SegmentedLog, Vec<Vec<u8>>) -> Result<(), Error>) {
        let first = self.history.records.len();
        let records: Vec<_> = (first..first + count).map(record).collect();
        let appended = append(&self.log, records.clone());
        if appended.is_ok() {
            // The offsets of the records are known once the records are written.
            self.history
                .records
                .extend(records.into_iter().map(|data| (u64::MAX, data)));
        }
        self.note();
    }

    fn append(&mut self, count: usize) {
        for _ in 0..count {
            self.append_with(1, |log, records| log.append(&records[0]).map(drop));
        }
    }

    fn append_sync(&mut self) {
        self.append_with(1, |log, records| log.append_sync(&records[0]).map(drop));
    }

    fn extend(&mut self, count: usize) {
        self.append_with(count, |log, records| log.extend(records).map(drop));
    }

    fn prune(&mut self, offset: u64) {
        self.log.prune_before(offset).expect("pruning that nothing disturbs");
        self.note();
    }

    fn note(&self) {
        self.directory.note(self.log.durable_offset());
    }

    /// Closes the log, and fills in the offsets of the records. The records of removed segments are
    /// read from the operations.
    fn close(mut self) -> History {
        self.log.close().expect("a close that nothing disturbs");
        self.note();
        let ops = self.directory.ops();
        let files = written(&self.history.initial, &ops);
        let found = read(&files, &self.history.options);
        let data = |records: &[(u64, Vec<u8>)]| records.iter().map(|(_, data)| data.clone()).collect::<Vec<_>>();
        assert_eq!(data(&found), data(&self.history.records), "without a crash");
        self.history.records = found;
        self.history.ops = ops;
        self.history
    }
}

/// Returns all files after these operations, including files that were removed.
fn written(initial: &Files, ops: &[DirectoryOp]) -> Files {
    let mut files = initial.clone();
    for op in ops {
        match op {
            DirectoryOp::File(base, op) => apply(op, files.entry(*base).or_default()),
            DirectoryOp::Create(base) => drop(files.insert(*base, Vec::new())),
            DirectoryOp::Remove(_) | DirectoryOp::Sync | DirectoryOp::FailedSync(_) | DirectoryOp::Promised(_) => {}
        }
    }
    files
}

/// Returns the records in all files with their log offsets. A torn tail ends a file.
fn read(files: &Files, options: &LogFileOptions) -> Vec<(u64, Vec<u8>)> {
    let reading = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_dialect(options.dialect.unwrap_or(Dialect::LEVELDB));
    let mut records = Vec::new();
    for (base, bytes) in files {
        for event in read_all(&mut Reader::from_slice(bytes, reading.clone())).0 {
            if let Found::Record { offset, data, .. } = event {
                records.push((base + offset, data));
            }
        }
    }
    records
}

// The directories that a crash leaves
// ---------------------------------------------------------------

/// Returns the possible states of a file. It contains everything up to its last sync, and any part
/// of the later bytes.
fn file_states(initial: Vec<u8>, ops: &[&Op]) -> Vec<Vec<u8>> {
    let synced = ops.iter().rposition(|op| **op == Op::SyncData).unwrap_or(0);
    let mut file = initial;
    ops[..synced].iter().for_each(|op| apply(op, &mut file));
    let mut states = Vec::new();
    for op in &ops[synced..] {
        if let Op::Write { offset, bytes } = op {
            // A write may be cut at each of its first and last bytes, because a mark has 17 bytes.
            // The file may also have its new length but none of the bytes, because these writes are
            // shorter than a sector.
            let len = bytes.len();
            let parts = (0..len).filter(|&part| part < 20 || len - part < 12 || part % 16 == 0);
            for part in parts.map(|part| bytes[..part].to_vec()).chain([vec![0; len]]) {
                let mut state = file.clone();
                let (offset, bytes) = (*offset, part);
                apply(&Op::Write { offset, bytes }, &mut state);
                states.push(state);
            }
        }
        apply(op, &mut file);
        states.push(file.clone());
    }
    states.push(file);
    states.sort();
    states.dedup();
    states
}

/// Returns all directories that may exist after the first `count` operations.
fn crash_directories(history: &History, count: usize) -> Vec<Files> {
    let ops = &history.ops[..count];
    let synced = ops.iter().rposition(|op| *op == DirectoryOp::Sync).unwrap_or(0);
    let mut names: HashSet<u64> = history.initial.keys().copied().collect();
    let rename = |names: &mut HashSet<u64>, op: &DirectoryOp| match op {
        DirectoryOp::Create(base) => drop(names.insert(*base)),
        DirectoryOp::Remove(base) => drop(names.remove(base)),
        _ => {}
    };
    ops[..synced].iter().for_each(|op| rename(&mut names, op));
    let is_name = |op: &&DirectoryOp| matches!(op, DirectoryOp::Create(_) | DirectoryOp::Remove(_));
    let pending: Vec<&DirectoryOp> = ops[synced..].iter().filter(is_name).collect();
    assert!(pending.len() < 6, "{pending:?}");

    let mut directories = Vec::new();
    for subset in 0..1u32 << pending.len() {
        let mut names = names.clone();
        for (index, op) in pending.iter().enumerate() {
            if subset >> index & 1 == 1 {
                rename(&mut names, op);
            }
        }
        let mut found = vec![Files::new()];
        for base in names {
            let of_file = |op| match op {
                &DirectoryOp::File(offset, ref op) if offset == base => Some(op),
                _ => None,
            };
            let file_ops: Vec<&Op> = ops.iter().filter_map(of_file).collect();
            let initial = history.initial.get(&base).cloned().unwrap_or_default();
            let states = file_states(initial, &file_ops);
            found = found
                .iter()
                .flat_map(|files| {
                    states.iter().map(|state| {
                        let mut files = files.clone();
                        files.insert(base, state.clone());
                        files
                    })
                })
                .collect();
        }
        directories.extend(found);
    }
    directories
}

// The promises ----------------------------------------------------------------------------------

/// Checks all directories that a crash can leave, and returns their number.
fn check(name: &str, history: &History) -> usize {
    let mut checked = HashSet::new();
    for count in 0..=history.ops.len() {
        let ops = &history.ops[..count];
        let promised = ops.iter().rev().find_map(|op| match op {
            DirectoryOp::Promised(offset) => Some(*offset),
            _ => None,
        });
        let end = |(&base, bytes): (&u64, &Vec<u8>)| base + bytes.len() as u64;
        let promised = promised.unwrap_or_else(|| {
            // A record in a torn tail was not promised.
            let whole = read(&history.initial, &history.options);
            whole.last().map_or(0, |(offset, data)| offset + data.len() as u64)
        });
        let removed = ops.iter().filter_map(|op| match op {
            DirectoryOp::Remove(base) => Some(*base),
            _ => None,
        });
        let removed: HashSet<u64> = removed.collect();
        // Every record must be left from the first segment on that was not being removed.
        let first = (history.initial.keys().copied())
            .chain(ops.iter().filter_map(|op| match op {
                DirectoryOp::Create(base) => Some(*base),
                _ => None,
            }))
            .filter(|base| !removed.contains(base))
            .min()
            .unwrap_or(0);
        for files in crash_directories(history, count) {
            let what = format!(
                "{name}, {count} operations, {:?}",
                files.iter().map(end).collect::<Vec<_>>()
            );
            if checked.insert((promised, first, files.clone())) {
                check_directory(&what, history, promised, first, files);
            }
        }
    }
    checked.len()
}

fn check_directory(what: &str, history: &History, promised: u64, first: u64, files: Files) {
    let chain: Vec<Segment> = (files.iter())
        .map(|(&offset, bytes)| Segment {
            offset,
            len: bytes.len() as u64,
        })
        .collect();
    assert_eq!(segments::breaks(&chain).next(), None, "{what}");
    let found = read(&files, &history.options);
    let all = &history.records;
    let start = found
        .first()
        .and_then(|first| all.iter().position(|record| record == first));
    if let Some(start) = start {
        assert!(
            all[start..].starts_with(&found),
            "{what}: not a part of what was written, in its order"
        );
    } else {
        assert!(found.is_empty(), "{what}: nobody wrote {:?}", found[0]);
    }
    for record in all.iter().filter(|(offset, _)| first <= *offset && *offset < promised) {
        assert!(found.contains(record), "{what}: lost the record at {}", record.0);
    }

    // The reopened log continues at its end.
    let directory = DirectoryDouble::with_files(files);
    let log = SegmentedLog::open_in(directory.arc(), history.options.clone())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        log.durable_offset() >= chain.last().map_or(0, |last| last.offset),
        "{what}"
    );
    let mut expected = found;
    for data in [b"behind".to_vec(), vec![7; 150], b"at the end".to_vec()] {
        let offset = log.append_sync(&data).unwrap_or_else(|error| panic!("{what}: {error}"));
        expected.push((offset, data));
    }
    log.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(read(&directory.files(), &history.options), expected, "{what}: after it");
    SegmentedLog::open_in(
        directory.arc(),
        history.options.clone().with_on_torn_tail(OnTornTail::Refuse),
    )
    .unwrap_or_else(|error| panic!("{what}: {error}"));
}

// The histories ---------------------------------------------------------------------------------

fn checked(name: &str, session: Session, directories_min: usize) {
    let history = session.close();
    let switches = history
        .ops
        .iter()
        .filter(|op| matches!(op, DirectoryOp::Create(_)))
        .count();
    assert!(switches >= 2, "{name}: {switches} switches");
    let count = check(name, &history);
    assert!(count >= directories_min, "{name}: {count} directories");
}

#[test]
fn unsynced_appends_survive_killing_the_process() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options);
        session.append(20);
        checked("written", session, 500);
    }
}

#[test]
fn appended_records_survive_a_crash_if_every_append_is_synced() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options.with_sync(SyncPolicy::EveryAppend));
        session.append(20);
        checked("synced", session, 500);
    }
}

#[test]
fn buffered_records_survive_a_crash_once_synced() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options.with_flush(FlushPolicy::OnClose));
        session.append(3);
        session.append_sync();
        session.append(5);
        session.log.flush().expect("a flush that nothing disturbs");
        session.append(7);
        session.extend(12);
        session.append_sync();
        session.log.rotate().expect("a segment");
        session.note();
        session.extend(3);
        checked("now and then", session, 300);
    }
}

#[test]
fn pruning_between_appends_does_not_lose_durable_records() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options);
        session.append(12);
        session.prune(150);
        session.append(6);
        session.prune(u64::MAX);
        session.append_sync();
        session.append(8);
        let end = session.log.offset();
        session.prune(end);
        session.append(2);
        checked("pruned", session, 1000);
    }
}

#[test]
fn retained_records_survive_a_crash_after_segments_expire() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options.clone().with_retention_bytes(150));
        // After a crash, the log is opened without retention. Neither opening the log nor appending
        // to it then removes segments.
        session.history.options = options;
        session.append(12);
        session.append_sync();
        session.extend(20);
        assert!(session.log.first_offset() > 150);
        checked("retention", session, 700);
    }
}

#[test]
fn rotating_after_each_record_does_not_lose_durable_records() {
    let mut session = Session::open(Files::new(), options().with_segment_len(1));
    session.append(4);
    for _ in 0..3 {
        session.log.rotate().expect("a segment");
        session.note();
        session.append_sync();
    }
    checked("one record each", session, 150);
}

#[test]
fn a_crash_during_recovery_does_not_lose_durable_records() {
    for options in [options(), packed()] {
        let mut first = Session::open(Files::new(), options.clone());
        first.append(9);
        let whole = first.directory.files();
        let (&last, bytes) = whole.last_key_value().expect("a segment");
        for len in [0, 1, 16, 17, bytes.len() - 1, bytes.len()] {
            let mut initial = whole.clone();
            initial.insert(last, bytes[..len.min(bytes.len())].to_vec());
            let records = read(&initial, &options).len();
            let mut session = Session::open(initial, options.clone());
            assert_eq!(session.history.records.len(), records);
            session.append(10);
            session.prune(last);
            session.append_sync();
            checked(&format!("recovery, {len} bytes"), session, 200);
        }
    }
}

#[test]
fn failed_calls_before_a_crash_do_not_lose_durable_records() {
    for options in [options(), packed()] {
        let mut session = Session::open(Files::new(), options);
        session.append(3);
        session.directory.state().create_faults = [Fault::Error(ENOSPC), Fault::Error(EIO)].into();
        session.append(8);
        let base = *session.directory.files().last_key_value().expect("a segment").0;
        session.directory.file(base).state().write_faults = [Fault::ErrorAfter(9, ENOSPC)].into();
        session.append(8);
        session.append_sync();
        checked("failures", session, 500);
    }
}

/// In each run, one call fails once. It is a write, a truncation or a sync of a file, a sync of the
/// directory, a creation or a removal. Appended records must be found, and no crash may lose a
/// promised record.
#[test]
fn a_single_failed_call_does_not_lose_durable_records() {
    check_each_call("fails", false);
}

/// In each run, the process is killed during one call, another process continues, and the machine
/// stops later.
#[test]
fn killing_the_process_during_any_call_does_not_lose_durable_records() {
    check_each_call("is killed", true);
}

fn check_each_call(event: &str, is_kill: bool) {
    for options in [options(), packed()] {
        for calls in 0.. {
            let what = format!("{:?}, call {calls} {event}", options.dialect);
            let directory = DirectoryDouble::default();
            let opened = || {
                SegmentedLog::open_in(directory.arc(), options.clone())
                    .unwrap_or_else(|error| panic!("{what}: {error}"))
            };
            let mut log = opened();
            {
                let mut state = directory.state();
                state.calls_left = Some(calls);
                state.is_kill = is_kill;
            }
            let mut appended = Vec::new();
            for number in 0..14 {
                let data = record(number);
                let offset = match number % 3 {
                    0 => log.append_sync(&data),
                    _ => log.append(&data),
                };
                if let Ok(offset) = offset {
                    appended.push((offset, data));
                }
                if number == 10 {
                    let _ = log.prune_before(log.offset());
                }
                if log.status().has_failed || directory.state().is_dead {
                    drop(log);
                    directory.state().is_dead = false;
                    log = opened();
                }
                directory.note(log.durable_offset());
            }
            log.close().unwrap_or_else(|error| panic!("{what}: {error}"));
            if directory.state().calls_left.is_some() {
                assert!(calls > 25, "{calls} calls");
                break;
            }
            let ops = directory.ops();
            let records = read(&written(&Files::new(), &ops), &options);
            let mut attempted = (0..14).map(record);
            assert!(
                records.iter().all(|(_, data)| attempted.any(|other| other == *data)),
                "{what}: {records:?}"
            );
            let mut found = records.iter();
            assert!(
                appended.iter().all(|record| found.any(|other| other == record)),
                "{what}: {appended:?}"
            );
            // A record whose sync failed may also be found.
            assert!(records.len() <= appended.len() + 1, "{what}: {records:?}");
            let history = History {
                options: options.clone(),
                initial: Files::new(),
                ops,
                records,
            };
            check(&what, &history);
        }
    }
}

/// The unsynced sectors of the last segment reach the disk in any order, so each of them may be
/// zeros. The log must open with `truncate`, or else with `pad`, whether or not its dialect is
/// named. It must then open again, and each durable record must be found once.
#[test]
fn a_log_can_be_opened_after_its_last_segment_loses_unsynced_sectors() {
    assert!(lost_sectors(true) >= 2000);
}

/// The first segment has no segment before it, but the directory has its `LOCK` file.
#[test]
fn a_log_can_be_opened_after_its_only_segment_loses_unsynced_sectors() {
    assert!(lost_sectors(false) >= 2000);
}

/// Checks all states, and returns their number.
fn lost_sectors(has_older: bool) -> usize {
    const SECTOR_LEN: usize = 512;
    let mut count = 0;
    for dialect in [Dialect::LEVELDB, Dialect::PACKED] {
        for lens in [&[90; 25][..], &[700; 4], &[2500], &[1200, 40, 1300]] {
            let options = LogFileOptions::default().with_dialect(dialect);
            let directory = DirectoryDouble::default();
            let log = SegmentedLog::open_in(directory.arc(), options.clone()).expect("a new log");
            let durable: Vec<_> = (0..3 * usize::from(has_older))
                .map(|number| (log.append(&record(number)).unwrap(), record(number)))
                .collect();
            let base = log.rotate().expect("a segment");
            for (number, &len) in lens.iter().enumerate() {
                let mut data = format!("{{\"number\": {number}}}").into_bytes();
                data.resize(len, b'x');
                log.append(&data).expect("an append that nothing disturbs");
            }
            log.close().expect("a close that nothing disturbs");
            let whole = directory.files();
            assert_eq!(whole.len(), 1 + usize::from(has_older));
            let bytes = &whole[&base];
            let sector_count = bytes.len().div_ceil(SECTOR_LEN);
            for (lost, cut) in (0..1u32 << sector_count).flat_map(|lost| [0, 1, 100, 600].map(|cut| (lost, cut))) {
                let mut last = bytes[..bytes.len() - cut].to_vec();
                for (index, sector) in last.chunks_mut(SECTOR_LEN).enumerate() {
                    if lost >> index & 1 == 1 {
                        sector.fill(0);
                    }
                }
                let mut files = whole.clone();
                files.insert(base, last);
                for is_named in [false, true] {
                    let what = format!("{dialect}, {lens:?}, sectors {lost:b}, cut {cut}, named {is_named}");
                    let mut options = options.clone();
                    options.dialect = options.dialect.filter(|_| is_named);
                    // If no byte of the log is left, the dialect can only be known if it is named.
                    let expected = (is_named || has_older || lost & 1 == 0).then_some(dialect);
                    check_lost(&what, &files, &options, expected, &durable);
                    count += 1;
                }
            }
        }
    }
    count
}

fn check_lost(
    what: &str,
    files: &Files,
    options: &LogFileOptions,
    dialect: Option<Dialect>,
    durable: &[(u64, Vec<u8>)],
) {
    let policies =
        [OnTornTail::Truncate, OnTornTail::PadToBlock].map(|policy| options.clone().with_on_torn_tail(policy));
    let directory = DirectoryDouble::with_files(files.clone());
    directory.state().had_lock = true;
    let mut appended = Vec::new();
    let mut written = dialect;
    for number in 0..3 {
        let opened = SegmentedLog::open_in(directory.arc(), policies[0].clone())
            .or_else(|_| SegmentedLog::open_in(directory.arc(), policies[1].clone()));
        let log = opened.unwrap_or_else(|error| panic!("{what}, start {number}: {error}"));
        let found = log.format().dialect;
        let expected = *written.get_or_insert(found);
        assert_eq!(found.name(), expected.name(), "{what}, start {number}");
        let data = format!("start {number}").into_bytes();
        appended.push((log.append(&data).expect("an append that nothing disturbs"), data));
        log.close().expect("a close that nothing disturbs");
    }
    let reading = LogFileOptions::default().with_dialect(written.expect("the dialect of the first start"));
    let found = read(&directory.files(), &reading);
    assert!(found.starts_with(durable), "{what}: {found:?}");
    assert!(found.ends_with(&appended), "{what}: {found:?}");
    let unique: HashSet<_> = found.iter().collect();
    assert_eq!(unique.len(), found.len(), "{what}: a record is there twice");
}

// Random histories ------------------------------------------------------------------------------

/// A xorshift64* generator, which returns the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// A process is killed during a random call, and then the machine stops. Each unsynced name may or
/// may not exist, and each sector may have any of its states since the last sync. The log must open
/// with `truncate` or else with `pad`. It must also open with `pad`, and each durable record must
/// be found once. This is repeated three times for each log. `CRASHES` is the number of crashes.
#[test]
#[expect(clippy::print_stdout, reason = "with --nocapture, the figures")]
fn random_kills_and_power_losses_do_not_lose_durable_records() {
    let crash_count = std::env::var("CRASHES").map_or(2_000, |count| count.parse().expect("a number"));
    let mut open_counts = [0; 3];
    let mut seed = 0;
    let mut count = 0;
    while count < crash_count {
        seed += 1;
        let mut life = Life::new(seed);
        for _ in 0..3 {
            life.work();
            life.stop(&mut open_counts);
            count += 1;
        }
    }
    println!("{count} crashes: {open_counts:?} logs opened under refuse, truncate, pad");
    assert!(open_counts[0] < open_counts[1] && open_counts[1] < open_counts[2]);
    assert_eq!(open_counts[2], count);
}

/// A log that goes through several crashes.
struct Life {
    seed: u64,
    random: Random,
    options: LogFileOptions,
    is_named: bool,
    directory: DirectoryDouble,
    /// The files that have been on the disk since the last crash.
    initial: Files,
    /// All records that were passed to a call.
    attempted: HashSet<Vec<u8>>,
    /// The durable records by offset, each with the offset after it.
    durable: BTreeMap<u64, (u64, Vec<u8>)>,
    /// The records for which `append` has returned since the last crash, in the same form as in
    /// `durable`.
    acknowledged: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Records at or after this offset have not been pruned.
    pruned: u64,
    record_count: usize,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let dialect = random.one_of(&[Dialect::LEVELDB, Dialect::PACKED]);
        let options = LogFileOptions::default()
            .with_dialect(dialect)
            .with_segment_len(random.one_of(&[60, 700, 3_000, 50_000]))
            .with_flush(random.one_of(&[FlushPolicy::EveryAppend, FlushPolicy::OnClose]))
            .with_sync(random.one_of(&[
                SyncPolicy::Never,
                SyncPolicy::Never,
                SyncPolicy::OnClose,
                SyncPolicy::EveryAppend,
                SyncPolicy::EveryBytes(1_500),
            ]));
        Life {
            seed,
            is_named: random.below(3) > 0,
            random,
            options,
            directory: DirectoryDouble::default(),
            initial: Files::new(),
            attempted: HashSet::new(),
            durable: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            pruned: 0,
            record_count: 0,
        }
    }

    fn what(&self) -> String {
        format!("seed {}, {:?}, named {}", self.seed, self.options, self.is_named)
    }

    /// Opens the log with this policy. The dialect is named if the log is new or if `is_named` is
    /// true.
    fn open(&self, directory: &DirectoryDouble, policy: OnTornTail) -> Result<SegmentedLog, Error> {
        let mut options = self.options.clone().with_on_torn_tail(policy);
        if !self.is_named && !directory.files().is_empty() {
            options.dialect = None;
        }
        SegmentedLog::open_in(directory.arc(), options)
    }

    fn open_anyhow(&self, directory: &DirectoryDouble) -> SegmentedLog {
        let opened = self.open(directory, OnTornTail::Truncate);
        opened
            .or_else(|_| self.open(directory, OnTornTail::PadToBlock))
            .unwrap_or_else(|error| panic!("{}: {error}", self.what()))
    }

    /// Makes random calls. One of them may be the last call of its process, and another process
    /// then continues.
    fn work(&mut self) {
        for _ in 0..2 {
            let log = self.open_anyhow(&self.directory);
            self.options.dialect = Some(log.format().dialect);
            self.note_kill();
            {
                let calls_left = self.random.below(40);
                let mut state = self.directory.state();
                state.calls_left = (calls_left < 30).then_some(calls_left);
                state.is_kill = true;
            }
            for _ in 0..self.random.below(25) {
                self.call(&log);
                self.note_durable(&log);
                if self.directory.state().is_dead {
                    break;
                }
            }
            if self.random.below(2) == 0 {
                let _ = log.close();
                self.note_durable(&log);
            }
            drop(log);
            let mut state = self.directory.state();
            (state.calls_left, state.is_dead) = (None, false);
        }
    }

    /// A kill may only lose records that the process has buffered.
    fn note_kill(&mut self) {
        let found: HashSet<_> = read(&self.directory.files(), &self.options).into_iter().collect();
        let (is_gathered, pruned) = (self.options.flush == FlushPolicy::OnClose, self.pruned);
        let what = self.what();
        self.acknowledged.retain(|&offset, (_, data)| {
            let is_there = found.contains(&(offset, data.clone()));
            assert!(
                is_there || is_gathered || offset < pruned,
                "{what}: a kill lost the one at {offset}"
            );
            is_there
        });
    }

    fn call(&mut self, log: &SegmentedLog) {
        let len = self.random.one_of(&[0, 3, 40, 90, 500, 700, 1_400, 5_000]);
        let kind = self.random.below(12);
        match kind {
            0 => drop(log.rotate()),
            1 => drop(log.sync()),
            2 => {
                let offset = self.random.below(log.offset() as usize + 1) as u64;
                self.pruned = self.pruned.max(offset);
                drop(log.prune_before(offset));
            }
            _ => {
                self.record_count += 1;
                let mut data = format!("{{\"record\": {}}}", self.record_count).into_bytes();
                data.resize(data.len() + len, b'x');
                self.attempted.insert(data.clone());
                let appended = match kind {
                    3 => log.append_sync(&data),
                    _ => log.append(&data),
                };
                if let Ok(offset) = appended {
                    self.acknowledged.insert(offset, (log.offset(), data));
                }
            }
        }
    }

    fn note_durable(&mut self, log: &SegmentedLog) {
        let end = log.durable_offset();
        let is_durable = |(_, (record_end, _)): &(&u64, &(u64, Vec<u8>))| *record_end <= end;
        let durable = self.acknowledged.iter().filter(is_durable);
        self.durable
            .extend(durable.map(|(offset, record)| (*offset, record.clone())));
    }

    /// Stops the machine. Opens the log with each policy, and continues with one of the logs that
    /// opened.
    fn stop(&mut self, open_counts: &mut [usize; 3]) {
        let files = self.crashed();
        let policies = [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock];
        let mut directories = Vec::new();
        for (policy, count) in policies.into_iter().zip(open_counts) {
            let directory = DirectoryDouble::with_files(files.clone());
            // The lock file is on the disk before the first segment is created.
            directory.state().had_lock = true;
            match self.open(&directory, policy) {
                Ok(log) => {
                    *count += 1;
                    self.check(&directory, &log);
                    directories.push(directory);
                }
                Err(error) if policy == OnTornTail::PadToBlock => panic!("{}: {error}", self.what()),
                Err(_) => {
                    assert_eq!(directory.files(), files, "{}: changed, and not opened", self.what());
                }
            }
        }
        self.directory = DirectoryDouble::with_files(directories[self.random.below(directories.len())].files());
        self.directory.state().had_lock = true;
        self.initial = self.directory.files();
        self.acknowledged.clear();
    }

    /// Checks that all records were passed to a call, and that each durable record is found once.
    fn check(&self, directory: &DirectoryDouble, log: &SegmentedLog) {
        let mut expected = self.options.clone();
        expected.dialect = Some(log.format().dialect);
        // Without a named dialect and without a durable byte, the dialect cannot be known.
        if self.is_named || self.durable.range(self.pruned..).next().is_some() {
            assert_eq!(expected.dialect, self.options.dialect, "{}", self.what());
        }
        let found = read(&directory.files(), &expected);
        let unique: HashSet<_> = found.iter().map(|(_, data)| data).collect();
        assert_eq!(unique.len(), found.len(), "{}: a record is there twice", self.what());
        let is_known = |record: &Vec<u8>| self.attempted.contains(record);
        assert!(
            unique.into_iter().all(is_known),
            "{}: a record that nobody wrote",
            self.what()
        );
        let found: HashSet<_> = found.into_iter().collect();
        for (&offset, (_, data)) in self.durable.range(self.pruned..) {
            assert!(
                found.contains(&(offset, data.clone())),
                "{}: lost the one at {offset}",
                self.what()
            );
        }
    }

    /// Returns the files that a crash leaves.
    fn crashed(&mut self) -> Files {
        let ops = self.directory.ops();
        let synced = ops
            .iter()
            .rposition(|op| *op == DirectoryOp::Sync)
            .map_or(0, |at| at + 1);
        let mut names: HashSet<u64> = self.initial.keys().copied().collect();
        for (at, op) in ops.iter().enumerate() {
            // A removal is synced before the next removal.
            let is_on_disk = at < synced || self.random.below(2) == 0;
            match op {
                DirectoryOp::Create(base) if is_on_disk => drop(names.insert(*base)),
                DirectoryOp::Remove(base) if is_on_disk => drop(names.remove(base)),
                _ => {}
            }
        }
        let mut bases: Vec<u64> = names.into_iter().collect();
        bases.sort_unstable();
        let mut files = Files::new();
        for base in bases {
            let initial = self.initial.get(&base).cloned().unwrap_or_default();
            let bytes = self.crashed_file(initial, &ops, base);
            files.insert(base, bytes);
        }
        files
    }

    /// Returns a file that a crash leaves. Each sector is as it was after its last sync or after
    /// any later call.
    fn crashed_file(&mut self, initial: Vec<u8>, ops: &[DirectoryOp], base: u64) -> Vec<u8> {
        const SECTOR_LEN: usize = 512;
        let mut versions = vec![initial];
        for op in ops {
            let DirectoryOp::File(offset, op) = op else { continue };
            if *offset != base {
                continue;
            }
            let mut bytes = versions.last().expect("a version").clone();
            apply(op, &mut bytes);
            match op {
                Op::SyncData => versions = vec![bytes],
                _ => versions.push(bytes),
            }
        }
        let count = versions.len();
        let mut bytes = vec![0; versions[self.random.below(count)].len()];
        for (index, sector) in bytes.chunks_mut(SECTOR_LEN).enumerate() {
            let version = versions[self.random.below(count)]
                .get(index * SECTOR_LEN..)
                .unwrap_or_default();
            let len = version.len().min(sector.len());
            sector[..len].copy_from_slice(&version[..len]);
        }
        bytes
    }
}
