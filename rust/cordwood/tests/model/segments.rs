//! A segmented log is explored in the same way as a single file. The real `SegmentedLog`, reader
//! and follower work on a directory in memory ([`DirectoryDouble`]), in all orders of calls.
//!
//! * **Writers** never overlap. Each opening is by a new process, which only knows how much is
//!   durable (`checkpoint`). Any operation on a file or on the directory may fail once. A failed
//!   write does half of its work, and a failed creation may leave the file. A process may be killed
//!   during any operation or between two calls.
//! * **A flipped bit** in the first or last record on the disk hides that record and the records
//!   after it in its file. A follower sees the flipped bit. No reader is open at the same time.
//! * **Pads and holes**: in some worlds, the segments are long, the first segment starts at any
//!   offset, and opening pads a torn tail. The log then continues in the next block of the same
//!   segment. A follower polls at any time. In these worlds, no bit flips and no reader is open.
//! * **A power loss** leaves any of the directories that [`Disk::after_any_loss`] lists. In each
//!   state, each of these directories is read and opened. The exploration also continues from each
//!   of them, once.
//! * **A reader** is opened in one state and reads in another. **A follower** polls at any time.
//!   They use a copy of the directory on the real disk, in which each file keeps its inode.
//!
//! The promises are listed in `docs/format/writing.md` and in `following.md`, "A segmented log":
//!
//! * A power loss loses no durable record, and a kill loses no written record, unless the record
//!   was pruned.
//! * No record appears twice, in another order, or after its append failed without an effect. No
//!   record is missing between two others.
//! * A reader finds the same records as the model's reader, without damage. If files were pruned
//!   before a reader or follower reached them, it returns an error. It never omits a record without
//!   an error.
//! * A call fails only if an operation failed, either in this call or, permanently, in an earlier
//!   one. Opening also fails if a bit has flipped in the newest file, and then leaves that file
//!   unchanged.
//!
//! One state is known and allowed. A power loss leaves a torn record, the process that truncates it
//! is killed before the sync, the next process appends, and a second power loss keeps the length of
//! that write but restores the truncated bytes. To readers, such an end is damage, and opening the
//! log fails. No durable record is lost.
//!
//! Three things are not explored: the lock against a second writer, pruning by another thread
//! during an append, and a failed sync of the directory after which the next sync has no effect. In
//! the last case, no promise is made that a new file is on the disk.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::time::{Duration, Instant};

use cordwood_log::damage::Severity;
use cordwood_log::follow::Poll;
use cordwood_log::read::{FileReader, StreamSource};
use cordwood_log::segments::{Segment, breaks, name_of};
use cordwood_log::{
    Dialect, Error, ErrorKind, Event, FlushPolicy, FollowOptions, Follower, LogFileOptions, OnCorruption, OnTornTail,
    ReadOptions, Reader, SegmentedLog,
};
use tempfile::TempDir;

use crate::disk::File;
use crate::double::Op;
use crate::double::directory::{DirectoryDouble, DirectoryOp};
use crate::reader::read;

type Files = BTreeMap<u64, Vec<u8>>;
/// Records, each as its log offset and its number.
type Records = Vec<(u64, usize)>;
type DirectoryReader = Reader<StreamSource<FileReader>>;

/// The maximum number of each kind of event in a world. There is also at most one flipped bit.
const RECORDS: usize = 5;
const OPENINGS: usize = 3;
const FAULTS: usize = 1;
const POWER_LOSSES: usize = 1;
const LOOKS: usize = 4;

/// A number that is larger than the number of operations in any call.
const MANY: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Open,
    Append,
    AppendSync,
    Sync,
    Rotate,
    /// Prunes everything before the last segment.
    Prune,
    Close,
    Kill,
    /// Leaves the directory with this index among the directories that a power loss may leave.
    LosePower(usize),
    /// Flips a bit in the record with this number, which is on the disk.
    Flip(usize),
    OpenReader,
    Read,
    Follow,
}

/// The operation at which a call fails or the process is killed. The operations of a call are
/// counted from 0.
#[derive(Debug, Clone, Copy)]
struct Fault {
    operation: usize,
    is_kill: bool,
    /// Whether a failed creation leaves the file.
    leaves_file: bool,
}

type Step = (Action, Option<Fault>);

/// The known state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
enum State {
    /// The record must not be found.
    Gone,
    /// The record may be found. Its append failed, or a kill may have lost it.
    Unknown,
    Buffered,
    Written,
    Durable,
}

/// The disk that contains the directory. It is built from the recorded operations.
#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<u64, File>,
    names: BTreeSet<u64>,
    /// The creations and removals since the last sync of the directory.
    pending: Vec<DirectoryOp>,
    /// The files with a truncation that has not been synced.
    cut: BTreeSet<u64>,
    /// The result of [`after_any_loss`](Self::after_any_loss) until the next operation.
    losses: OnceCell<BTreeSet<Files>>,
}

fn rename(names: &mut BTreeSet<u64>, op: &DirectoryOp) {
    match op {
        DirectoryOp::Create(base) => drop(names.insert(*base)),
        DirectoryOp::Remove(base) => drop(names.remove(base)),
        _ => {}
    }
}

impl Disk {
    fn with_files(files: &Files) -> Self {
        let named = files.iter().map(|(&base, bytes)| (base, File::with_content(bytes)));
        Disk {
            files: named.collect(),
            names: files.keys().copied().collect(),
            ..Disk::default()
        }
    }

    fn run(&mut self, op: &DirectoryOp) {
        self.losses.take();
        match op {
            DirectoryOp::File(base, op) => {
                let file = self.files.entry(*base).or_default();
                match op {
                    Op::Write { offset, bytes } => file.write(bytes, *offset as usize),
                    Op::SetLen(len) => {
                        file.set_len(*len as usize);
                        self.cut.insert(*base);
                    }
                    Op::SyncData => {
                        file.sync();
                        self.cut.remove(base);
                    }
                    Op::SyncDirectory | Op::Promised(_) => {}
                }
            }
            DirectoryOp::FailedSync(base) => self.files.entry(*base).or_default().fail_sync(0),
            DirectoryOp::Create(_) | DirectoryOp::Remove(_) => self.pending.push(op.clone()),
            DirectoryOp::Sync => self.pending.drain(..).for_each(|op| rename(&mut self.names, &op)),
            DirectoryOp::Promised(_) => {}
        }
    }

    /// Returns each directory that a power loss may leave. It has any subset of the unsynced names,
    /// and each of its files has any possible state.
    fn after_any_loss(&self) -> &BTreeSet<Files> {
        self.losses.get_or_init(|| self.make_losses())
    }

    fn make_losses(&self) -> BTreeSet<Files> {
        let mut directories = BTreeSet::new();
        for subset in 0..1_u32 << self.pending.len() {
            let mut names = self.names.clone();
            let left = self.pending.iter().enumerate();
            left.filter(|(index, _)| subset >> index & 1 == 1)
                .for_each(|(_, op)| rename(&mut names, op));
            let mut found = vec![Files::new()];
            for base in names {
                let file = self.files.get(&base);
                let states = file.map_or_else(|| vec![Vec::new()], File::contents_after_any_loss);
                let with = |files: &Files, state: &Vec<u8>| {
                    let mut files = files.clone();
                    files.insert(base, state.clone());
                    files
                };
                found = found
                    .iter()
                    .flat_map(|files| states.iter().map(move |state| with(files, state)))
                    .collect();
            }
            directories.extend(found);
        }
        directories
    }
}

/// A copy of the directory on the real disk, with its reader and its follower.
struct Readers {
    directory: TempDir,
    /// The numbers of the records that the follower has returned.
    followed: Vec<usize>,
    follower: Option<Follower>,
    /// The records that existed when the reader was opened.
    at_opening: Vec<usize>,
    reader: Option<DirectoryReader>,
    /// The files at each read or poll. They determine the states of the reader and the follower.
    seen: Vec<Files>,
}

impl Readers {
    fn new() -> Self {
        Readers {
            directory: tempfile::tempdir().expect("a directory"),
            followed: Vec::new(),
            follower: None,
            at_opening: Vec::new(),
            reader: None,
            seen: Vec::new(),
        }
    }

    fn copy(&mut self, files: Files) {
        for base in self.seen.last().into_iter().flat_map(BTreeMap::keys) {
            if !files.contains_key(base) {
                fs::remove_file(self.directory.path().join(name_of(*base))).expect("a file less");
            }
        }
        write_all(self.directory.path(), &files);
        self.seen.push(files);
    }
}

fn write_all(directory: &std::path::Path, files: &Files) {
    for (&base, bytes) in files {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(false);
        let mut file = open.open(directory.join(name_of(base))).expect("a file");
        file.write_all(bytes).expect("bytes");
        file.set_len(bytes.len() as u64).expect("a length");
    }
}

/// Reads to the end. Also returns the error, if there is one.
///
/// Damage may start only at offsets for which `is_damaged` returns true.
fn read_on(reader: &mut DirectoryReader, is_damaged: impl Fn(u64) -> bool) -> Result<(Records, Option<Error>), String> {
    let mut found = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(Event::Record(record))) => found.push((record.offset, number_of(record.data)?)),
            Ok(Some(Event::Skipped(region)))
                if region.reason.severity() == Severity::Corruption && !is_damaged(region.start) =>
            {
                return Err(format!("a reader reports {region:?}"));
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok((found, None)),
            Err(error) => return Ok((found, Some(error))),
        }
    }
}

fn skipping() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Skip)
}

fn data_of(number: usize) -> Vec<u8> {
    format!("record {number}").into_bytes()
}

fn number_of(data: &[u8]) -> Result<usize, String> {
    let number = (0..RECORDS).find(|&number| data_of(number) == data);
    number.ok_or_else(|| format!("a record that nobody appended: {data:?}"))
}

/// Returns the offsets and numbers of the records in a directory, as the model's reader finds them.
fn records_in(files: &Files) -> Result<Records, String> {
    let mut records = Vec::new();
    for (base, bytes) in files {
        for found in read(bytes).0 {
            records.push((base + found.start as u64, number_of(&found.payload)?));
        }
    }
    Ok(records)
}

/// A record in which a bit has flipped. It is given by the log offset of the record and the log
/// offset of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Flipped {
    base: u64,
    offset: u64,
}

impl Flipped {
    /// Checks whether readers cannot find the record at `offset`. They skip the rest of the damaged
    /// block, and a file has only one block.
    fn hides(self, offset: u64, files: &Files) -> bool {
        let next = files.range(self.base + 1..).next();
        self.offset <= offset && next.is_none_or(|(next, _)| offset < *next)
    }

    /// Checks whether the record is in the file that is opened for appending.
    fn is_in_newest(self, files: &Files) -> bool {
        files.last_key_value().is_some_and(|(newest, _)| *newest == self.base)
    }
}

/// The options, and the log offset of the first segment.
type Setup<'a> = (&'a LogFileOptions, u64);

struct World {
    options: LogFileOptions,
    directory: DirectoryDouble,
    disk: Disk,
    /// The number of directory operations that have reached the disk.
    ops_done: usize,
    log: Option<SegmentedLog>,
    records: Vec<(State, Option<u64>)>,
    /// Everything before this log offset is known to be durable.
    durable: u64,
    /// Records before this log offset may have been pruned.
    pruned: u64,
    readers: Option<Readers>,
    flipped: Option<Flipped>,
    openings: usize,
    faults: usize,
    power_losses: usize,
    /// The number of operations in the last call.
    operations: usize,
    /// Whether one of these operations was a creation.
    has_created: bool,
}

impl World {
    /// Creates a log that starts at `base`, as if everything before it had been pruned.
    fn new((options, base): Setup<'_>) -> Self {
        let files: Files = (base > 0).then(|| (base, Vec::new())).into_iter().collect();
        World {
            options: options.clone(),
            disk: Disk::with_files(&files),
            directory: DirectoryDouble::with_files(files),
            ops_done: 0,
            log: None,
            records: Vec::new(),
            durable: base,
            pruned: base,
            readers: None,
            flipped: None,
            openings: 0,
            faults: 0,
            power_losses: 0,
            operations: 0,
            has_created: false,
        }
    }

    /// Returns the actions that are possible now, without faults.
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        match &self.log {
            None if self.openings < OPENINGS => actions.push(Action::Open),
            None => {}
            Some(log) => {
                if !log.status().has_failed {
                    if self.records.len() < RECORDS {
                        actions.extend([Action::Append, Action::AppendSync]);
                    }
                    actions.extend([Action::Sync, Action::Rotate, Action::Prune]);
                }
                actions.extend([Action::Close, Action::Kill]);
            }
        }
        if self.power_losses < POWER_LOSSES {
            let count = self.disk.after_any_loss().len();
            actions.extend((0..count).map(Action::LosePower));
        }
        let looks = self.readers.as_ref().map_or(0, |readers| readers.seen.len());
        let can_look = looks < LOOKS && !self.directory.files().is_empty();
        if can_look {
            actions.push(Action::Follow);
        }
        if self.flipped.is_some() || self.options.on_torn_tail == OnTornTail::PadToBlock {
            return actions;
        }
        let durable = |(number, (state, _)): (usize, &(State, _))| (*state == State::Durable).then_some(number);
        let mut durable = self.records.iter().enumerate().filter_map(durable);
        let first_and_last = [durable.next(), durable.next_back()];
        let can_flip = |number: &usize| self.place_of(*number).is_some();
        actions.extend(first_and_last.into_iter().flatten().filter(can_flip).map(Action::Flip));
        if can_look {
            let has_reader = self.readers.as_ref().is_some_and(|readers| readers.reader.is_some());
            actions.push(if has_reader { Action::Read } else { Action::OpenReader });
        }
        actions
    }

    /// Returns the last action with each fault that could occur in it.
    fn faulty(&self, action: Action) -> Vec<Step> {
        if self.faults == FAULTS {
            return Vec::new();
        }
        let kinds = [(false, false), (true, false), (false, true)];
        let kinds = &kinds[..if self.has_created { 3 } else { 2 }];
        let faults = (0..self.operations).flat_map(|operation| {
            kinds.iter().map(move |&(is_kill, leaves_file)| Fault {
                operation,
                is_kill,
                leaves_file,
            })
        });
        faults.map(|fault| (action, Some(fault))).collect()
    }

    fn act(&mut self, (action, fault): Step) -> Result<(), String> {
        self.operations = 0;
        match action {
            Action::LosePower(index) => self.lose_power(index),
            Action::OpenReader | Action::Read | Action::Follow => return self.look(action),
            Action::Kill => self.end_process(),
            Action::Flip(number) => self.flip(number),
            _ => {
                {
                    let mut state = self.directory.state();
                    state.calls_left = Some(fault.map_or(MANY, |fault| fault.operation));
                    state.is_kill = fault.is_some_and(|fault| fault.is_kill);
                    state.leaves_file = fault.is_some_and(|fault| fault.leaves_file);
                }
                self.faults += usize::from(fault.is_some());
                let had_failed = self.log.as_ref().is_some_and(|log| log.status().has_failed);
                let result = self.call(action);
                self.operations = MANY - self.directory.state().calls_left.take().unwrap_or(MANY);
                let is_refused = action == Action::Open
                    && self
                        .flipped
                        .is_some_and(|flipped| flipped.is_in_newest(&self.directory.files()));
                if let (Err(error), None, false, false) = (&result, fault, had_failed, is_refused) {
                    return Err(format!("{action:?} fails: {error}"));
                }
                if self.directory.state().is_dead {
                    self.end_process();
                }
            }
        }
        let ops = self.directory.ops();
        let new = &ops[self.ops_done..];
        new.iter().for_each(|op| self.disk.run(op));
        self.has_created = new.iter().any(|op| matches!(op, DirectoryOp::Create(_)));
        self.ops_done = ops.len();
        Ok(())
    }

    fn call(&mut self, action: Action) -> Result<(), Error> {
        let options = self.options.clone().with_checkpoint(Some(self.durable));
        if action == Action::Open {
            self.openings += 1;
            self.log = Some(SegmentedLog::open_in(self.directory.arc(), options)?);
            return Ok(());
        }
        let Some(log) = &self.log else {
            unreachable!("{action:?} without a log")
        };
        let number = self.records.len();
        let is_append = matches!(action, Action::Append | Action::AppendSync);
        if is_append {
            self.records.push((State::Unknown, None));
        }
        let result = match action {
            Action::Append => log.append(&data_of(number)).map(Some),
            Action::AppendSync => log.append_sync(&data_of(number)).map(Some),
            Action::Sync => log.sync().map(|()| None),
            Action::Rotate => log.rotate().map(|_| None),
            Action::Prune => {
                let base = self.directory.files().keys().last().copied();
                self.pruned = base.unwrap_or(0);
                log.prune_before(log.offset()).map(|_| None)
            }
            _ => log.close().map(|()| None),
        };
        let is_buffering = self.options.flush == FlushPolicy::OnClose;
        match (&result, is_append) {
            (Ok(offset), true) => {
                let state = if is_buffering { State::Buffered } else { State::Written };
                self.records[number] = (state, *offset);
            }
            (Err(_), true) if !is_buffering && !log.status().has_failed && !self.directory.state().is_dead => {
                self.records[number].0 = State::Gone;
            }
            _ => {}
        }
        let reached = match action {
            Action::AppendSync | Action::Sync | Action::Rotate => State::Durable,
            Action::Close => State::Written,
            _ => State::Unknown,
        };
        let durable = log.durable_offset();
        self.durable = self.durable.max(durable);
        for (state, offset) in self.records.iter_mut().filter(|(state, _)| *state > State::Unknown) {
            if result.is_ok() && *state < reached {
                *state = reached;
            }
            if offset.is_some_and(|offset| offset < durable) {
                *state = State::Durable;
            }
        }
        if action == Action::Close {
            self.end_process();
        }
        result.map(drop)
    }

    /// Ends the process. Operations that the log tries when it is dropped have no effect.
    fn end_process(&mut self) {
        self.directory.state().is_dead = true;
        self.log = None;
        self.directory.state().is_dead = false;
        for (state, _) in &mut self.records {
            if *state == State::Buffered {
                *state = State::Unknown;
            }
        }
    }

    /// Returns the place of a record that is on the disk: its file, and its offset in that file.
    fn place_of(&self, number: usize) -> Option<(u64, usize)> {
        let offset = self.records[number].1?;
        let (base, _) = self.directory.files().into_iter().rfind(|(base, _)| *base <= offset)?;
        let (at, file) = ((offset - base) as usize, self.disk.files.get(&base)?);
        let is_on_disk = file
            .disk
            .get(at..)
            .is_some_and(|rest| file.cache.get(at..) == Some(rest));
        (is_on_disk && file.disk.len() > at).then_some((base, at))
    }

    fn flip(&mut self, number: usize) {
        let (base, at) = self.place_of(number).expect("it is there");
        // This bit belongs to the checksum.
        self.directory.file(base).state().bytes[at] ^= 1;
        let file = self.disk.files.get_mut(&base).expect("it is there");
        file.cache[at] ^= 1;
        file.disk[at] ^= 1;
        self.disk.losses.take();
        self.flipped = Some(Flipped {
            base,
            offset: base + at as u64,
        });
    }

    fn lose_power(&mut self, index: usize) {
        self.end_process();
        let files = self
            .disk
            .after_any_loss()
            .iter()
            .nth(index)
            .expect("a directory")
            .clone();
        let found = records_in(&files).expect("checked before");
        for (number, (state, _)) in self.records.iter_mut().enumerate() {
            let is_found = found.iter().any(|(_, other)| *other == number);
            let is_pruned = *state == State::Durable;
            *state = match is_found {
                true => State::Durable,
                false if is_pruned => *state,
                false => State::Gone,
            };
        }
        self.disk = Disk::with_files(&files);
        self.directory = DirectoryDouble::with_files(files);
        (self.ops_done, self.readers) = (0, None);
        self.power_losses += 1;
    }

    /// Checks whether damage may be reported at this log offset. It may be reported for the flipped
    /// record, for the records hidden by it, and for a torn tail that was padded.
    fn is_damaged(&self, offset: u64) -> bool {
        let files = self.directory.files();
        self.options.on_torn_tail == OnTornTail::PadToBlock
            || self.flipped.is_some_and(|flipped| flipped.hides(offset, &files))
    }

    /// Checks whether an acknowledged record that no damage hides is between two records. A reader
    /// must not omit such a record.
    fn has_between(&self, last: usize, next: usize) -> bool {
        let files = self.directory.files();
        let is_hidden = |offset: u64| self.flipped.is_some_and(|flipped| flipped.hides(offset, &files));
        (last + 1..next).any(|number| {
            let (state, offset) = self.records[number];
            state >= State::Written && !offset.is_some_and(is_hidden)
        })
    }

    fn look(&mut self, action: Action) -> Result<(), String> {
        let files = self.directory.files();
        let visible: Vec<_> = records_in(&files)?.into_iter().map(|(_, number)| number).collect();
        let mut readers = self.readers.take().unwrap_or_else(Readers::new);
        readers.copy(files);
        let result = match action {
            Action::OpenReader => {
                let reader = Reader::open_with(readers.directory.path(), skipping());
                readers.at_opening = visible;
                reader
                    .map(|reader| readers.reader = Some(reader))
                    .map_err(|error| error.to_string())
            }
            Action::Read => self.finish_reading(&mut readers),
            _ => self.follow(&mut readers, &visible),
        };
        self.readers = Some(readers);
        result
    }

    fn finish_reading(&self, readers: &mut Readers) -> Result<(), String> {
        let Some(mut reader) = readers.reader.take() else {
            return Ok(());
        };
        let (found, error) = read_on(&mut reader, |start| self.is_damaged(start))?;
        let found: Vec<_> = found.into_iter().map(|(_, number)| number).collect();
        let expected = &readers.at_opening;
        let is_right = match error.map(|error| error.kind) {
            None => found.starts_with(expected) && found.windows(2).all(|pair| !self.has_between(pair[0], pair[1])),
            // Opening the log may have truncated a torn tail since the reader was opened.
            Some(ErrorKind::Io { source, .. }) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                found == *expected
            }
            Some(ErrorKind::Pruned { .. }) => expected.starts_with(&found) && self.pruned > 0,
            Some(other) => return Err(format!("a reader fails: {other}")),
        };
        match is_right {
            true => Ok(()),
            false => Err(format!("a reader that was opened at {expected:?} returns {found:?}")),
        }
    }

    fn follow(&self, readers: &mut Readers, visible: &[usize]) -> Result<(), String> {
        let follower = match &mut readers.follower {
            Some(follower) => follower,
            none => {
                let options = FollowOptions::default()
                    .with_on_corruption(OnCorruption::Skip)
                    .with_retry(0, Duration::ZERO);
                let follower = Follower::open_with(readers.directory.path(), options);
                none.insert(follower.map_err(|error| error.to_string())?)
            }
        };
        let (mut new, mut is_overtaken, mut is_cut) = (Vec::new(), false, false);
        loop {
            match follower.poll() {
                Ok(Poll::Record(record)) => new.push(number_of(record.data)?),
                Ok(Poll::Skipped(region))
                    if region.reason.severity() != Severity::Corruption || self.is_damaged(region.start) => {}
                Ok(Poll::NotYet(_)) => break,
                Ok(Poll::Truncated { .. }) => {
                    is_cut = true;
                    break;
                }
                Err(Error {
                    kind: ErrorKind::Pruned { .. },
                    ..
                }) => {
                    is_overtaken = true;
                    break;
                }
                other => return Err(format!("a follower returns {other:?}")),
            }
        }
        let before = readers.followed.len();
        readers.followed.extend(&new);
        let followed = &readers.followed;
        let rest = || visible.iter().filter(|number| followed[..before].last() < Some(number));
        let from = followed.len().saturating_sub(new.len() + 1);
        // A file that was removed while it was open is still read to its end.
        let are_in_order = followed.windows(2).all(|pair| pair[0] < pair[1]);
        let new = new.iter().filter(|number| visible.contains(number));
        let has_gap = followed[from..]
            .windows(2)
            .any(|pair| self.has_between(pair[0], pair[1]));
        if has_gap || !are_in_order || !is_overtaken && !is_cut && !new.eq(rest()) {
            return Err(format!("a follower has returned {followed:?}, of {visible:?}"));
        }
        if is_overtaken {
            let next = followed.last().map_or(0, |last| last + 1);
            let first = visible.first().copied().unwrap_or(self.records.len());
            if next >= first {
                return Err(format!("a follower was overtaken after {followed:?}, of {visible:?}"));
            }
        }
        if is_overtaken || is_cut {
            (readers.follower, readers.followed) = (None, Vec::new());
        }
        Ok(())
    }

    /// Checks the current directory, and each directory that a power loss may leave now.
    fn check(&self, read_before: &mut HashSet<Files>) -> Result<(), String> {
        let files = self.directory.files();
        self.check_directory("now", &files, State::Written)?;
        check_reading(&files, &self.options, read_before, self.flipped, false)?;
        for files in self.disk.after_any_loss() {
            self.check_directory("after a loss of power", files, State::Durable)?;
            let may_be_damaged = self.power_losses > 0 && !self.disk.cut.is_empty();
            check_reading(files, &self.options, read_before, self.flipped, may_be_damaged)?;
        }
        Ok(())
    }

    /// Checks that a directory contains the correct records. Records whose state is at least `kept`
    /// must be in it.
    fn check_directory(&self, when: &str, files: &Files, kept: State) -> Result<(), String> {
        let found = records_in(files)?;
        let is_right = |&(offset, number): &(u64, usize)| match self.records.get(number) {
            None | Some((State::Gone, _)) => false,
            Some((_, known)) => known.is_none_or(|known| known == offset),
        };
        let are_in_order = found.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let first_and_last = found.first().zip(found.last());
        let is_hidden = |offset: u64| self.flipped.is_some_and(|flipped| flipped.hides(offset, files));
        let is_kept = |(number, (state, offset)): (usize, &(State, Option<u64>))| {
            if offset.is_none_or(is_hidden) && self.flipped.is_some() {
                return true;
            }
            let is_within = first_and_last.is_some_and(|(first, last)| first.1 < number && number < last.1);
            let is_needed = is_within && *state >= State::Buffered
                || *state >= kept && offset.is_none_or(|offset| offset >= self.pruned);
            !is_needed || found.iter().any(|(_, other)| *other == number)
        };
        if found.iter().all(is_right) && are_in_order && self.records.iter().enumerate().all(is_kept) {
            return Ok(());
        }
        let records = &self.records;
        Err(format!(
            "{when} there are {found:?} of {records:?}; {} may be pruned",
            self.pruned
        ))
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.directory.files().hash(&mut hasher);
        self.disk.after_any_loss().hash(&mut hasher);
        self.disk.files.values().for_each(|file| file.bytes.hash(&mut hasher));
        format!("{:?} {:?} {:?}", self.log, self.disk.pending, self.disk.cut).hash(&mut hasher);
        self.records.hash(&mut hasher);
        (self.durable, self.pruned, self.openings, self.faults, self.power_losses).hash(&mut hasher);
        self.flipped.hash(&mut hasher);
        if let Some(readers) = &self.readers {
            let flags = (readers.follower.is_some(), readers.reader.is_some());
            (flags, &readers.followed, &readers.at_opening, &readers.seen).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Checks that the crate's reader finds the same records as the model's reader, without damage.
/// Opening the log must also find them. After a second power loss, the end may be damaged if a
/// truncation was not synced.
fn check_reading(
    files: &Files,
    options: &LogFileOptions,
    read_before: &mut HashSet<Files>,
    flipped: Option<Flipped>,
    may_be_damaged: bool,
) -> Result<(), String> {
    if files.is_empty() || !read_before.insert(files.clone()) {
        return Ok(());
    }
    let segments = files.iter().map(|(&offset, bytes)| Segment {
        offset,
        len: bytes.len() as u64,
    });
    if let Some(region) = breaks(&segments.collect::<Vec<_>>()).next() {
        return Err(format!("{region:?}"));
    }
    let expected = records_in(files)?;
    let (base, newest) = files.last_key_value().expect("a segment");
    let end = base + read(newest).0.last().map_or(0, |last| last.end as u64);
    let directory = tempfile::tempdir().expect("a directory");
    write_all(directory.path(), files);
    let mut reader = Reader::open_with(directory.path(), skipping()).map_err(|error| error.to_string())?;
    let is_flipped = |start: u64| flipped.is_some_and(|flipped| flipped.hides(start, files));
    let found = read_on(&mut reader, |start| {
        options.on_torn_tail == OnTornTail::PadToBlock || is_flipped(start) || may_be_damaged && start >= end
    })?;
    if found.0 != expected || found.1.is_some() {
        return Err(format!("a reader returns {found:?}, not {expected:?}"));
    }
    let directory = DirectoryDouble::with_files(files.clone());
    let is_refused = flipped.is_some_and(|flipped| flipped.is_in_newest(files));
    match SegmentedLog::open_in(directory.arc(), options.clone()) {
        Ok(_) if is_refused => return Err("opening: a flipped bit was not seen".to_owned()),
        Ok(log) => drop(log),
        Err(_) if is_refused => match directory.files() == *files {
            true => return Ok(()),
            false => return Err("opening: refused, and changed".to_owned()),
        },
        Err(Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) if may_be_damaged && region.start >= end => {
            // Without a second power loss, the same files would be an error, so they are checked
            // again.
            read_before.remove(files);
        }
        Err(error) => return Err(format!("opening: {error}")),
    }
    let found = records_in(&directory.files())?;
    match found == expected {
        true => Ok(()),
        false => Err(format!("opening left {found:?} of {expected:?}")),
    }
}

// The exploration ---------------------------------------------------------------------------------

fn replay(setup: Setup<'_>, path: &[Step]) -> World {
    let mut world = World::new(setup);
    for &step in path {
        world.act(step).expect("it went well before");
    }
    world
}

/// Two segments, with a reader and a follower.
const BUSY: &[Action] = &[
    Action::Open,
    Action::Append,
    Action::Rotate,
    Action::Append,
    Action::Follow,
    Action::OpenReader,
];

/// Returns the number of states and of actions, or the shortest way to break a promise.
fn explore(setup: Setup<'_>, start: &[Action], depth: usize) -> Result<(usize, usize), String> {
    let mut known = HashSet::from([World::new(setup).fingerprint()]);
    let mut frontier: Vec<Vec<Step>> = vec![start.iter().map(|&action| (action, None)).collect()];
    let (mut steps, mut read_before) = (0, HashSet::new());
    for _ in 0..depth {
        let mut next = Vec::new();
        for path in &frontier {
            let actions = replay(setup, path).actions();
            let mut waiting: Vec<Step> = actions.into_iter().map(|action| (action, None)).collect();
            while let Some(step) = waiting.pop() {
                let mut world = replay(setup, path);
                steps += 1;
                let mut done = world.act(step);
                if step.1.is_none() {
                    waiting.extend(world.faulty(step.0));
                }
                let is_new = known.insert(world.fingerprint());
                if is_new {
                    done = done.and_then(|()| world.check(&mut read_before));
                }
                let path: Vec<_> = path.iter().copied().chain([step]).collect();
                match done {
                    Ok(()) if is_new => next.push(path),
                    Ok(()) => {}
                    Err(broken) => {
                        let mut text = broken;
                        path.iter().for_each(|step| _ = write!(text, "\n  {step:?}"));
                        return Err(text);
                    }
                }
            }
        }
        frontier = next;
    }
    Ok((known.len(), steps))
}

/// Two segments on the disk.
const CLOSED: &[Action] = &[
    Action::Open,
    Action::AppendSync,
    Action::AppendSync,
    Action::Rotate,
    Action::AppendSync,
    Action::Close,
];

/// The last of these records is not synced, so a power loss may tear it.
const UNSYNCED: &[Action] = &[Action::Open, Action::AppendSync, Action::Append];

/// Returns the number of directories that a power loss may leave after these actions.
fn loss_count(setup: Setup<'_>, start: &[Action]) -> usize {
    let path: Vec<_> = start.iter().map(|&action| (action, None)).collect();
    replay(setup, &path).disk.after_any_loss().len()
}

fn explore_each(setup: Setup<'_>, starts: Vec<(Vec<Action>, usize)>) {
    let (options, base) = setup;
    let text = format!("segments from {base} on, {:?}, {:?}", options.dialect, options.flush);
    for (start, depth) in starts {
        let started = Instant::now();
        let explored = explore(setup, &start, depth);
        let (states, steps) = explored.unwrap_or_else(|broken| panic!("{text}: {broken}"));
        #[allow(clippy::print_stderr, reason = "`make model` shows it")]
        {
            let time = started.elapsed();
            eprintln!("{states} states by {steps} actions to a depth of {depth}, {time:.1?}: {text}");
        }
    }
}

/// Returns a start for each power loss that may tear a record.
fn after_losses(setup: Setup<'_>, depth: usize) -> impl Iterator<Item = (Vec<Action>, usize)> {
    let losses = 0..loss_count(setup, UNSYNCED);
    losses.map(move |loss| ([UNSYNCED, &[Action::LosePower(loss)]].concat(), depth))
}

fn check_all(dialect: Dialect, segment_len: u64) {
    let depth = crate::depth();
    for flush in [FlushPolicy::EveryAppend, FlushPolicy::OnClose] {
        let options = LogFileOptions::default()
            .with_dialect(dialect)
            .with_segment_len(segment_len)
            .with_flush(flush)
            .with_on_torn_tail(OnTornTail::Truncate);
        let mut starts = vec![
            (Vec::new(), depth - 1),
            (BUSY.to_vec(), depth - 2),
            (CLOSED.to_vec(), depth - 2),
        ];
        starts.extend(after_losses((&options, 0), depth - 2));
        explore_each((&options, 0), starts);
    }
}

/// Explores segments of several blocks, in which a torn tail is padded.
fn check_padded(base: u64) {
    let options = LogFileOptions::default()
        .with_segment_len(100_000)
        .with_on_torn_tail(OnTornTail::PadToBlock);
    let setup = (&options, base);
    explore_each(setup, after_losses(setup, crate::depth() - 2).collect());
}

/// A segment has room for two records.
#[test]
fn the_guarantees_of_segmented_logs_hold_in_every_state() {
    check_all(Dialect::LEVELDB, 32);
}

#[test]
fn the_guarantees_of_packed_segmented_logs_hold_in_every_state() {
    check_all(Dialect::PACKED, 70);
}

#[test]
fn the_guarantees_of_padded_segmented_logs_hold_in_every_state() {
    check_padded(0);
}

/// If blocks were counted from offset 0, the first block of a segment at the second base would end
/// after 27 bytes.
#[test]
fn the_guarantees_of_segmented_logs_hold_with_a_padded_segment_at_any_offset() {
    for base in [107, 32_768 - 27] {
        check_padded(base);
    }
}
