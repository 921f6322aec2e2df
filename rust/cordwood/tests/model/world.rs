//! The state of the model, its actions, and the promises that it must keep.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cordwood_log::{
    Dialect, Error, ErrorKind, Event, FlushPolicy, LogFile, LogFileOptions, LogFormat, OnCorruption, OnTornTail,
    ReadOptions, Reader, SyncPolicy,
};

use crate::disk::{Byte, Fault, File, Loss, Port};
use crate::follower::Beside;
use crate::reader::{Found, Tail, WANDB_HEADER, full, read};

// Actions ---------------------------------------------------------------------------------------

/// The data of a record. The data of each record is unique, so that a repeated record is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Data {
    Short,
    /// One byte and 600 zeros, which may contain a sector of zeros.
    Zeros,
    /// Data that fills most of a block.
    Long,
}

impl Data {
    fn bytes(self, number: u8) -> Vec<u8> {
        match self {
            Data::Short => vec![b'a' + number; 5],
            Data::Zeros => [vec![b'a' + number], vec![0; 600]].concat(),
            Data::Long => vec![b'a' + number; 32_768 - 7 - 300],
        }
    }
}

/// A call to the crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Create,
    Open(OnTornTail),
    Append(Data),
    AppendSync(Data),
    Flush,
    Sync,
    /// Calls `close` and drops the value. The Python class also calls `close` when it is dropped.
    Close,
    /// Drops the value without `close`.
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    A,
    B,
}

/// The part of a fragment in which a bit flips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Checksum,
    LengthLow,
    LengthHigh,
    Type,
    FirstByte,
    LastByte,
}

impl Part {
    const ALL: [Part; 6] = [
        Part::Checksum,
        Part::LengthLow,
        Part::LengthHigh,
        Part::Type,
        Part::FirstByte,
        Part::LastByte,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Call(Name, Call, Option<Fault>),
    /// A forks, and B is its child.
    Fork,
    Kill(Name),
    PowerLoss(Loss),
    /// One bit flips in the first or last record that is known to be on the disk.
    Flip {
        is_last: bool,
        part: Part,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, call, fault) = match *self {
            Action::Call(name, call, fault) => (name, call, fault),
            Action::Fork => return f.write_str("A forks: B is its child"),
            Action::Kill(name) => return write!(f, "{name:?} is killed"),
            Action::PowerLoss(loss) => return write!(f, "power is lost, and with it of what was not synced: {loss:?}"),
            Action::Flip { is_last, part } => {
                let which = if is_last { "last" } else { "first" };
                return write!(f, "a bit flips in the {which} synced record: {part:?}");
            }
        };
        match call {
            Call::Create => write!(f, "{name:?}: LogFile::create")?,
            Call::Open(policy) => write!(f, "{name:?}: LogFile::append_to, {policy:?}")?,
            Call::Append(data) => write!(f, "{name:?}: append, {data:?}")?,
            Call::AppendSync(data) => write!(f, "{name:?}: append_sync, {data:?}")?,
            Call::Flush => write!(f, "{name:?}: flush")?,
            Call::Sync => write!(f, "{name:?}: sync")?,
            Call::Close => write!(f, "{name:?}: close")?,
            Call::Drop => write!(f, "{name:?}: the LogFile is dropped")?,
        }
        match fault {
            None => Ok(()),
            Some(Fault::Write) => f.write_str("; the write fails in the middle"),
            Some(Fault::WriteAndCut) => f.write_str("; the write fails in the middle, and so does the cut"),
            Some(Fault::Sync) => f.write_str("; the sync fails"),
            Some(Fault::DiesAtFirst) => write!(f, "; {name:?} is killed at its first change"),
            Some(Fault::DiesAtSecond) => write!(f, "; {name:?} is killed at its second change"),
        }
    }
}

// Setups ----------------------------------------------------------------------------------------

/// The contents of the file at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// No file exists.
    None,
    /// A short record, and a record with zeros.
    LevelDb,
    /// One record that leaves 300 bytes of its block free.
    NearlyFullBlock,
    Wandb,
    /// A record with log number 7, followed by a record with log number 6.
    Recycled,
    /// A log with log number 7 that Pebble has closed with its trailer.
    PebbleClosed,
    /// A text file.
    Text,
}

impl Content {
    /// Checks whether the file is not in LevelDB's dialect.
    fn is_foreign(self) -> bool {
        !matches!(self, Content::None | Content::LevelDb | Content::NearlyFullBlock)
    }

    fn bytes(self) -> Vec<u8> {
        let short = Data::Short.bytes(0);
        let two = |is_wandb, number| {
            let zeros = full(is_wandb, number, &Data::Zeros.bytes(1));
            [full(is_wandb, number, &short), zeros].concat()
        };
        match self {
            Content::None => Vec::new(),
            Content::LevelDb => two(false, None),
            Content::NearlyFullBlock => full(false, None, &Data::Long.bytes(0)),
            Content::Wandb => [WANDB_HEADER.to_vec(), two(true, None)].concat(),
            Content::Recycled => [two(false, Some(7)), full(false, Some(6), &[b'?'; 9])].concat(),
            Content::PebbleClosed => [two(false, Some(7)), b"\0\0\0\0\0\0\x05\x08\0\0\0".to_vec()].concat(),
            Content::Text => b"This is a text, which somebody wants to keep as it is.\n".to_vec(),
        }
    }
}

/// The time at which records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Records are written before `append` returns.
    EveryAppend,
    OnClose,
}

/// The start of a world, and the options with which it opens logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) content: Content,
    /// The format in which a log is created. A packed log is also opened with this format.
    pub(crate) format: LogFormat,
    pub(crate) flush: Flush,
    pub(crate) sync: SyncPolicy,
    pub(crate) limits: Limits,
    /// The number of levels by which the exploration ends earlier than the deepest one.
    pub(crate) levels_less: usize,
    /// Whether a follower runs alongside the writer.
    pub(crate) has_follower: bool,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup {
            content, flush, sync, ..
        } = self;
        write!(f, "content {content:?}, flush {flush:?}, sync {sync:?}")?;
        if self.format != LogFormat::new(Dialect::LEVELDB) {
            write!(f, ", created as {:?}", self.format)?;
        }
        Ok(())
    }
}

impl Setup {
    fn options(&self) -> LogFileOptions {
        let flush = match self.flush {
            Flush::EveryAppend => FlushPolicy::EveryAppend,
            Flush::OnClose => FlushPolicy::OnClose,
        };
        LogFileOptions::default().with_flush(flush).with_sync(self.sync)
    }

    fn create_options(&self) -> LogFileOptions {
        self.options().with_format(self.format)
    }

    fn open_options(&self) -> LogFileOptions {
        match self.format.dialect == Dialect::PACKED {
            true => self.create_options(),
            false => self.options(),
        }
    }
}

/// Limits how often certain events happen in a world, so that the exploration ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    pub(crate) records: u32,
    pub(crate) opens: u32,
    pub(crate) faults: u32,
    pub(crate) forks: u32,
    pub(crate) power_losses: u32,
    pub(crate) flips: u32,
    pub(crate) deaths: u32,
}

// The promises ----------------------------------------------------------------------------------

/// The promises. `main.rs` names the source of each rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rule {
    SyncedSurvivesPowerLoss,
    WrittenSurvivesKill,
    NothingInvented,
    OnlyTheOpenerWrites,
    SyncedSurvivesAChild,
    OpeningKeepsSyncedRecords,
    OpeningKeepsForeignFiles,
    AppendedIsFound,
    DurableAfterFailedSync,
    UndamagedLogsOpen,
    FailedWritesAreUndone,
    ReaderAgrees,
    FollowerAgrees,
}

#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) what: String,
}

fn broken(rule: Rule, what: impl Into<String>) -> Violation {
    Violation {
        rule,
        what: what.into(),
    }
}

// The state -------------------------------------------------------------------------------------

/// The known facts about an appended record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Status {
    /// The record may be in the file. It is in a buffer, or its sync failed.
    Maybe,
    /// The operating system has the record, because a call that writes it has returned.
    Written,
    /// The record is on the disk, because a sync has returned or `durable_offset` covers it.
    Durable,
    /// The record was durable, but a bit has flipped in it or before it, so readers do not find it.
    Hidden,
}

/// A record that may appear. A record whose append failed or that a power loss has removed is not
/// in any list, and must not appear.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Record {
    data: Data,
    number: u8,
    status: Status,
    /// The start of the record, once it is known to be on the disk.
    start: usize,
    end: usize,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record {
            data, number, status, ..
        } = self;
        write!(f, "record {number} ({data:?}, {status:?})")
    }
}

impl Record {
    fn must_be_found(&self) -> bool {
        matches!(self.status, Status::Written | Status::Durable)
    }

    fn may_be_found(&self) -> bool {
        self.status != Status::Hidden
    }
}

#[derive(Debug)]
struct Process {
    /// The number of the process in this world. 0 means that it does not exist.
    number: u32,
    inode: u64,
    log: Option<LogFile>,
    /// Whether the process has opened `log` itself.
    is_opener: bool,
    /// The descriptors of all logs that the process has opened, in order.
    ports: Vec<Port>,
    /// All calls of the process. A child's memory is created from them.
    history: Vec<(Call, u8)>,
    /// The numbers of the records that this process has appended and that no later call has
    /// reported as lost.
    own: Vec<u8>,
    /// The value of `durable_offset` when a sync failed. A process may remember nothing else about
    /// the failure.
    failed_at: Option<u64>,
}

impl Process {
    fn new(number: u32) -> Self {
        static INODE: AtomicU64 = AtomicU64::new(1);
        Process {
            number,
            inode: INODE.fetch_add(1, Ordering::Relaxed),
            log: None,
            is_opener: false,
            ports: Vec::new(),
            history: Vec::new(),
            own: Vec::new(),
            failed_at: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct World {
    setup: Setup,
    limits: Limits,
    file: Arc<Mutex<File>>,
    a: Process,
    b: Process,
    /// The number of the next process.
    next_process: u32,
    /// The number of the next record.
    next_record: u8,
    records: Vec<Record>,
    has_file: bool,
    /// Whether a lock is held. The process that opened the log releases the lock by closing or
    /// dropping the log. If that process is killed, the lock is released with the last copy of the
    /// descriptor.
    is_locked: bool,
    has_flipped: bool,
    follower: Option<Beside>,
    /// The result of the last call, which is printed with a counterexample.
    outcome: String,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let content = setup.content.bytes();
        let records: Vec<Record> = read(&content)
            .0
            .into_iter()
            .zip(0..)
            .map(|(found, number)| Record {
                data: match found.payload.len() {
                    5 => Data::Short,
                    601 => Data::Zeros,
                    _ => Data::Long,
                },
                number,
                status: Status::Durable,
                start: found.start,
                end: found.end,
            })
            .collect();
        World {
            setup,
            limits: setup.limits,
            file: Arc::new(Mutex::new(File::with_content(&content))),
            a: Process::new(1),
            b: Process::new(2),
            next_process: 3,
            next_record: records.len() as u8,
            records,
            has_file: setup.content != Content::None,
            is_locked: false,
            has_flipped: false,
            follower: setup.has_follower.then(Beside::new),
            outcome: String::new(),
        }
    }

    pub(crate) fn outcome(&self) -> &str {
        &self.outcome
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().expect("nothing panics with the lock")
    }

    fn process(&mut self, name: Name) -> &mut Process {
        match name {
            Name::A => &mut self.a,
            Name::B => &mut self.b,
        }
    }

    /// Returns a hash of everything that affects the future. Equal states have equal hashes.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let file = self.file();
        let is_synced = file.cache == file.disk;
        (&file.cache, file.is_name_on_disk, is_synced).hash(&mut hasher);
        if !is_synced {
            file.disk.hash(&mut hasher);
        }
        (&self.records, self.next_record, self.limits).hash(&mut hasher);
        (self.has_file, self.is_locked, self.has_flipped).hash(&mut hasher);
        self.follower.as_ref().map(Beside::offset).hash(&mut hasher);
        for process in [&self.a, &self.b] {
            (
                process.is_opener,
                &process.own,
                process.failed_at,
                process.history.is_empty(),
            )
                .hash(&mut hasher);
            process.log.as_ref().map(memory_of).hash(&mut hasher);
        }
        for run in file.bytes.chunk_by(PartialEq::eq) {
            let what = match run[0] {
                Byte::Synced => 0_u8,
                Byte::Dirty => 1,
                Byte::Lost(process) if process == self.a.number => 2,
                Byte::Lost(process) if process == self.b.number => 3,
                Byte::Lost(_) => 4,
            };
            (what, run.len()).hash(&mut hasher);
        }
        hasher.finish()
    }

    // Possible actions --------------------------------------------------------------------------

    /// Returns all actions that are possible next, without a fault.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (name, process) in [(Name::A, &self.a), (Name::B, &self.b)] {
            if process.log.is_some() {
                if self.limits.records > 0 {
                    actions.push(Action::Call(name, Call::Append(Data::Short), None));
                    actions.push(Action::Call(name, Call::AppendSync(Data::Zeros), None));
                }
                for call in [Call::Flush, Call::Sync, Call::Close, Call::Drop] {
                    actions.push(Action::Call(name, call, None));
                }
            } else if !self.is_locked && self.limits.opens > 0 && (name == Name::A || !process.history.is_empty()) {
                if !self.has_file {
                    actions.push(Action::Call(name, Call::Create, None));
                }
                for policy in [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock] {
                    actions.push(Action::Call(name, Call::Open(policy), None));
                }
            }
            if self.limits.deaths > 0 && (process.log.is_some() || process.failed_at.is_some()) {
                actions.push(Action::Kill(name));
            }
        }
        if self.limits.forks > 0 && self.a.log.is_some() && self.a.is_opener {
            actions.push(Action::Fork);
        }
        if self.limits.power_losses > 0 {
            let losses = self.file().after_any_loss();
            actions.extend(losses.iter().map(|&(loss, _)| Action::PowerLoss(loss)));
        }
        let is_open = self.a.log.is_some() || self.b.log.is_some();
        if self.limits.flips > 0 && !is_open {
            let count = self
                .records
                .iter()
                .filter(|record| record.status == Status::Durable)
                .count();
            for part in Part::ALL {
                if count > 1 {
                    actions.push(Action::Flip { is_last: false, part });
                }
                if count > 0 {
                    actions.push(Action::Flip { is_last: true, part });
                }
            }
        }
        actions
    }

    /// Returns the same call with each fault that could have occurred in it.
    pub(crate) fn faulty(&self, action: Action) -> Vec<Action> {
        match action {
            Action::Call(name, call, None) if self.limits.faults > 0 => {
                let faults = self.file().faults().into_iter();
                faults.map(|fault| Action::Call(name, call, Some(fault))).collect()
            }
            _ => Vec::new(),
        }
    }

    // Actions -----------------------------------------------------------------------------------

    /// Performs an action.
    ///
    /// # Errors
    ///
    /// Returns the rule that the action broke.
    pub(crate) fn act(&mut self, action: Action) -> Result<(), Violation> {
        self.outcome.clear();
        match action {
            Action::Call(name, call, fault) => self.call(name, call, fault)?,
            Action::Fork => {
                self.limits.forks -= 1;
                self.fork();
            }
            Action::Kill(name) => {
                self.limits.deaths -= 1;
                self.kill(name);
            }
            Action::PowerLoss(loss) => {
                self.limits.power_losses -= 1;
                self.kill(Name::A);
                self.kill(Name::B);
                self.file().lose_power(loss);
                self.is_locked = false;
                self.has_file = self.file().is_name_on_disk || !self.file().cache.is_empty();
                self.keep_found(Status::Written);
            }
            Action::Flip { is_last, part } => {
                self.limits.flips -= 1;
                self.flip(is_last, part);
            }
        }
        if matches!(action, Action::PowerLoss(_) | Action::Flip { .. }) {
            self.follower = self.setup.has_follower.then(Beside::new);
        }
        if let Some(follower) = &mut self.follower {
            let mut file = self.file.lock().expect("nothing panics with the lock");
            let read = file.read();
            let mut looked = follower.look(&file.cache, &read.0);
            if looked.is_err() && matches!(action, Action::Call(_, Call::Open(OnTornTail::Truncate), _)) {
                // Bytes that the follower has reported as damage may have been truncated, so a new
                // follower is started.
                *follower = Beside::new();
                looked = follower.look(&file.cache, &read.0);
            }
            looked.map_err(|what| broken(Rule::FollowerAgrees, what))?;
        }
        Ok(())
    }

    /// Keeps the records that are found. Records that are not found become hidden if they were on
    /// the disk. All others must not appear again.
    fn keep_found(&mut self, status: Status) {
        let read = self.file().read();
        let (found, _) = &*read;
        self.records.retain_mut(|record| {
            let is_found = found.iter().any(|found| is_payload_of(found, record));
            record.status = match record.status {
                Status::Durable if !is_found => Status::Hidden,
                Status::Durable | Status::Hidden => record.status,
                _ if !is_found => return false,
                _ => record.status.max(status),
            };
            true
        });
    }

    fn flip(&mut self, is_last: bool, part: Part) {
        let mut synced = self.records.iter().filter(|record| record.status == Status::Durable);
        let record = if is_last { synced.next_back() } else { synced.next() };
        let record = record.expect("a record that is known to be on the disk");
        // A container may be shorter than the records in it.
        let len = record.end - record.start;
        let header_len = len.checked_sub(record.data.bytes(0).len()).unwrap_or(7);
        let (index, bit) = match part {
            Part::Checksum => (0, 0),
            Part::LengthLow => (4, 1),
            Part::LengthHigh => (5, 6),
            Part::Type => (6, 1),
            Part::FirstByte => (header_len, 3),
            Part::LastByte => (len - 1, 7),
        };
        let index = record.start + index;
        self.file().flip(index, bit);
        self.has_flipped = true;
        self.keep_found(Status::Maybe);
    }

    /// Kills the process. A new process with an empty memory gets its name.
    fn kill(&mut self, name: Name) {
        let number = self.next_process;
        self.next_process += 1;
        let process = self.process(name);
        process.ports.iter().for_each(Port::kill);
        *process = Process::new(number);
        self.let_lock_go();
    }

    /// Releases the lock if no descriptor is left.
    fn let_lock_go(&mut self) {
        if self.a.log.is_none() && self.b.log.is_none() {
            self.is_locked = false;
        }
    }

    /// Gives B the memory of A. All calls of A are repeated with the results that A received.
    fn fork(&mut self) {
        let mut child = Process::new(self.next_process);
        self.next_process += 1;
        child.history = self.a.history.clone();
        child.ports = self.a.ports.iter().map(|port| port.inherited(child.inode)).collect();
        child.failed_at = self.a.failed_at;
        let mut ports = child.ports.iter();
        for &(call, number) in &child.history {
            let log = &mut child.log;
            match call {
                Call::Create | Call::Open(_) => {
                    let port = ports.next().expect("a descriptor for each opening");
                    *log = self.setup.open(call, port).ok();
                }
                Call::Close | Call::Drop => {
                    let log = log.take();
                    if call == Call::Close {
                        let _ = log.expect("a log").close();
                    }
                }
                _ => {
                    let _ = run(log.as_ref().expect("a log"), call, number);
                }
            }
        }
        for port in &child.ports {
            port.wake(child.number);
        }
        assert_eq!(
            child.log.as_ref().map(memory_of),
            self.a.log.as_ref().map(memory_of),
            "the child's memory is that of the parent"
        );
        self.b = child;
    }

    fn call(&mut self, name: Name, call: Call, fault: Option<Fault>) -> Result<(), Violation> {
        let (before, read_before) = {
            let mut file = self.file();
            file.start_call(fault);
            (file.cache.clone(), file.read())
        };
        let (found_before, tail_before) = &*read_before;
        let is_opening = matches!(call, Call::Create | Call::Open(_));
        let number = self.next_record;
        let process = self.process(name);
        let works = process.is_opener && process.log.as_ref().is_some_and(|log| !log.status().has_failed);
        let result = self.make(name, call, number);
        let (is_dead, has_sync_failed, is_changed_by_stranger, now) = {
            let file = self.file();
            let now = file.cache.clone();
            (file.is_dead, file.has_sync_failed, file.is_changed_by_stranger, now)
        };
        self.outcome = match &result {
            _ if is_dead => "killed".to_owned(),
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        let process = self.process(name);
        process.history.push((call, number));
        if has_sync_failed {
            process.failed_at = Some(process.log.as_ref().map_or(0, LogFile::durable_offset));
        }
        self.limits.faults -= u32::from(fault.is_some());
        if is_changed_by_stranger {
            let only_closes = matches!(call, Call::Close | Call::Drop) && self.process(name).own.is_empty();
            let read = self.file().read();
            let is_found = |record: &Record| read.0.iter().any(|found| is_payload_of(found, record));
            let mut synced = self.records.iter().filter(|record| record.status == Status::Durable);
            if let Some(record) = synced.find(|record| only_closes && !is_found(record)) {
                let what = format!("{name:?} did not open the writer, and never used it; {record} is gone");
                return Err(broken(Rule::SyncedSurvivesAChild, what));
            }
            let what =
                format!("{name:?}, which did not open the writer, has changed the file, or taken the error of a sync");
            return Err(broken(Rule::OnlyTheOpenerWrites, what));
        }
        if is_opening {
            self.limits.opens -= 1;
            self.check_opening(call, &before, &now, found_before)?;
            let may_refuse = match call {
                _ if self.setup.content.is_foreign() => true,
                Call::Open(OnTornTail::Refuse) => *tail_before != Tail::Whole,
                _ => *tail_before == Tail::Other,
            };
            // A text file is not a log, so it must stay unchanged. A log with log numbers must also
            // stay unchanged, because it may consist of only a torn record.
            let may_refuse =
                may_refuse || self.setup.content == Content::Text || self.setup.format.log_number.is_some();
            if result.is_err() && fault.is_none() && !may_refuse && !self.has_flipped {
                return Err(broken(Rule::UndamagedLogsOpen, "a log without damage is refused"));
            }
        }
        if is_dead {
            if let Call::Append(data) | Call::AppendSync(data) = call {
                self.limits.records -= 1;
                self.push_record(data);
            }
            self.kill(name);
            return Ok(());
        }
        let still_works = match self.process(name).log.as_ref() {
            Some(log) => !log.status().has_failed,
            None => call == Call::Close && result.is_ok(),
        };
        if still_works && *tail_before == Tail::Whole && self.file().read().1 == Tail::Torn {
            let what = format!("{call:?} leaves a part of a record in the file, and the writer goes on");
            return Err(broken(Rule::FailedWritesAreUndone, what));
        }
        // Dropping a log does not report a failure.
        let is_ok = result.is_ok() && (call != Call::Drop || works && fault.is_none());
        self.note(name, call, is_ok, has_sync_failed)?;
        if matches!(call, Call::Close | Call::Drop) || is_opening && result.is_err() {
            let process = self.process(name);
            let is_opener = std::mem::take(&mut process.is_opener);
            process.own.clear();
            if is_opener || is_opening {
                self.is_locked = false;
            }
            self.let_lock_go();
        }
        self.check_durable_offset(name)?;
        Ok(())
    }

    /// Makes the call to the crate.
    fn make(&mut self, name: Name, call: Call, number: u8) -> Result<(), Error> {
        let (setup, file) = (self.setup, self.file.clone());
        if matches!(call, Call::Create | Call::Open(_)) {
            (self.has_file, self.is_locked) = (true, true);
        }
        let process = self.process(name);
        match call {
            Call::Create | Call::Open(_) => {
                let port = Port::open(&file, process.number, process.inode);
                process.ports.push(port.clone());
                process.log = Some(setup.open(call, &port)?);
                process.is_opener = true;
                Ok(())
            }
            Call::Close => process.log.take().expect("a log").close(),
            Call::Drop => {
                process.log = None;
                Ok(())
            }
            _ => run(process.log.as_ref().expect("a log"), call, number),
        }
    }

    fn push_record(&mut self, data: Data) {
        self.records.push(Record {
            data,
            number: self.next_record,
            status: Status::Maybe,
            start: 0,
            end: 0,
        });
        self.next_record += 1;
    }

    /// Records the promises that a returned call makes.
    fn note(&mut self, name: Name, call: Call, is_ok: bool, has_sync_failed: bool) -> Result<(), Violation> {
        if let Call::Append(data) | Call::AppendSync(data) = call {
            self.limits.records -= 1;
            match is_ok || has_sync_failed {
                true => {
                    let number = self.next_record;
                    self.push_record(data);
                    self.process(name).own.push(number);
                }
                false => self.next_record += 1,
            }
        }
        let setup = self.setup;
        let status = match call {
            Call::AppendSync(_) | Call::Sync => Status::Durable,
            Call::Close if setup.sync != SyncPolicy::Never => Status::Durable,
            Call::Flush | Call::Close | Call::Drop => Status::Written,
            Call::Append(_) if setup.flush == Flush::EveryAppend => Status::Written,
            _ => Status::Maybe,
        };
        if is_ok {
            let own = self.process(name).own.clone();
            self.promise(name, status, |record| own.contains(&record.number))?;
        }
        Ok(())
    }

    /// Marks records as promised. From then on, they must be found.
    fn promise(&mut self, name: Name, status: Status, is_meant: impl Fn(&Record) -> bool) -> Result<(), Violation> {
        let process = self.process(name).number;
        let file = self.file.clone();
        let mut file = file.lock().expect("nothing panics with the lock");
        let read = file.read();
        let (found, bytes) = (&read.0, &file.bytes);
        for record in self
            .records
            .iter_mut()
            .filter(|record| is_meant(record) && record.may_be_found())
        {
            let Some(place) = found.iter().find(|found| is_payload_of(found, record)) else {
                if status == Status::Maybe {
                    continue;
                }
                let what = format!("{record} was appended and written, and no reader finds it");
                return Err(broken(Rule::AppendedIsFound, what));
            };
            // A new process does not know about syncs that failed in another process. Readers may
            // stop at the lost bytes.
            let is_lost_elsewhere = |byte: &Byte| matches!(byte, Byte::Lost(other) if *other != process);
            let status = match bytes[..place.end].iter().any(is_lost_elsewhere) {
                true => status.min(Status::Written),
                false => status,
            };
            record.status = record.status.max(status);
            (record.start, record.end) = (place.start, place.end);
        }
        Ok(())
    }

    fn check_durable_offset(&mut self, name: Name) -> Result<(), Violation> {
        let process = self.process(name);
        let number = process.number;
        let Some(log) = process.log.as_ref().filter(|_| process.is_opener) else {
            return Ok(());
        };
        let durable = log.durable_offset() as usize;
        let (read, is_on_disk, failed_here) = {
            let mut file = self.file();
            let read = file.read();
            let bytes = &file.bytes[..durable.min(file.bytes.len())];
            let failed_here = bytes.contains(&Byte::Lost(number));
            let is_on_disk =
                durable == 0 || file.is_name_on_disk && durable <= file.disk.len() && !bytes.contains(&Byte::Dirty);
            (read, is_on_disk, failed_here)
        };
        if failed_here {
            let what = format!("durable_offset is {durable}, and covers bytes of a failed sync of this process");
            return Err(broken(Rule::DurableAfterFailedSync, what));
        }
        if !is_on_disk {
            let what = format!("durable_offset is {durable}, and some of that is not on the disk");
            return Err(broken(Rule::SyncedSurvivesPowerLoss, what));
        }
        let is_covered = |record: &Record| {
            let mut places = read.0.iter().filter(|found| is_payload_of(found, record));
            places.any(|found| found.end <= durable)
        };
        self.promise(name, Status::Durable, is_covered)
    }

    fn check_opening(&self, call: Call, before: &[u8], now: &[u8], found: &[Found]) -> Result<(), Violation> {
        let content = self.setup.content;
        let initial = content.bytes();
        if content.is_foreign() && !self.has_flipped && !now.starts_with(&initial) {
            let what = format!("a file of {content:?} has been changed by {call:?}");
            return Err(broken(Rule::OpeningKeepsForeignFiles, what));
        }
        let synced = self.records.iter().filter(|record| record.status >= Status::Durable);
        for record in synced {
            let span = record.start..record.end;
            if now.get(span.clone()) != before.get(span) {
                let what = format!("{record} was on the disk, and {call:?} has cut or overwritten it");
                return Err(broken(Rule::OpeningKeepsSyncedRecords, what));
            }
        }
        if let Some(lost) = found
            .iter()
            .find(|found| now.get(found.start..found.end) != before.get(found.start..found.end))
        {
            let what = format!("{call:?} has cut or overwritten the whole record at {}", lost.start);
            return Err(broken(Rule::OpeningKeepsSyncedRecords, what));
        }
        Ok(())
    }

    /// Checks the promises for this state, however it was reached.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        let mut file = self.file();
        let found = &file.read().0;
        self.check_found(found, Record::must_be_found, Rule::WrittenSurvivesKill, "in the file")?;
        check_reader(&file.cache, found)?;
        for (loss, left) in file.after_any_loss() {
            if loss == Loss::Nothing {
                continue;
            }
            let is_durable = |record: &Record| record.status == Status::Durable;
            let place = format!("after a loss of power ({loss:?})");
            self.check_found(&read(&left).0, is_durable, Rule::SyncedSurvivesPowerLoss, &place)?;
        }
        Ok(())
    }

    /// Checks that the records found were appended, each once and in order. All promised records
    /// must be among them.
    fn check_found(
        &self,
        found: &[Found],
        must_be_found: impl Fn(&Record) -> bool,
        rule: Rule,
        place: &str,
    ) -> Result<(), Violation> {
        let mut rest = found.iter().peekable();
        for record in &self.records {
            if record.may_be_found() && rest.next_if(|found| is_payload_of(found, record)).is_some() {
                continue;
            }
            if must_be_found(record) {
                return Err(broken(rule, format!("{record} is not found {place}")));
            }
        }
        match rest.next() {
            Some(found) => {
                let what = format!(
                    "the record at {} comes up {place}: it was never appended, or not here, or its append failed",
                    found.start
                );
                Err(broken(Rule::NothingInvented, what))
            }
            None => Ok(()),
        }
    }
}

impl Setup {
    fn open(&self, call: Call, port: &Port) -> Result<LogFile, Error> {
        match call {
            Call::Open(policy) => LogFile::append_in(port.boxed(), self.open_options().with_on_torn_tail(policy)),
            _ => LogFile::create_in(port.boxed(), self.create_options()).map_err(Error::from),
        }
    }
}

fn run(log: &LogFile, call: Call, number: u8) -> Result<(), Error> {
    match call {
        Call::Append(data) => log.append(&data.bytes(number)).map(|_| ()),
        Call::AppendSync(data) => log.append_sync(&data.bytes(number)).map(|_| ()),
        Call::Flush => log.flush(),
        Call::Sync => log.sync(),
        Call::Create | Call::Open(_) | Call::Close | Call::Drop => unreachable!("not a call of an open log"),
    }
}

fn is_payload_of(found: &Found, record: &Record) -> bool {
    found.payload == record.data.bytes(record.number)
}

/// Returns the whole memory of a log, including private fields. Two fields are left out. No policy
/// here depends on the time of the last sync, and the policy with which the log was opened no
/// longer matters.
fn memory_of(log: &LogFile) -> String {
    let text = format!("{log:?}");
    [("sync_started: ", "}"), ("on_torn_tail: ", ",")]
        .iter()
        .fold(text, |text, (start, end)| {
            let (before, rest) = text.split_once(start).expect("a field of a LogFile");
            let (_, behind) = rest.split_once(end).expect("the end of its value");
            format!("{before}{behind}")
        })
}

/// Checks that the crate's own reader finds the same records.
fn check_reader(file: &[u8], found: &[Found]) -> Result<(), Violation> {
    let mut reader = Reader::from_slice(file, ReadOptions::default().with_on_corruption(OnCorruption::Skip));
    let mut records = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(Event::Record(record))) => records.push(record.data.to_vec()),
            Ok(Some(Event::Skipped(_))) => {}
            Ok(None) => break,
            // The file is a text file.
            Err(Error {
                kind: ErrorKind::Foreign { .. },
                ..
            }) if found.is_empty() => return Ok(()),
            Err(error) => return Err(broken(Rule::ReaderAgrees, error.to_string())),
        }
    }
    let expected: Vec<_> = found.iter().map(|found| found.payload.clone()).collect();
    if records != expected {
        let what = format!(
            "{} records are found by the crate, {} by the model",
            records.len(),
            expected.len()
        );
        return Err(broken(Rule::ReaderAgrees, what));
    }
    Ok(())
}
