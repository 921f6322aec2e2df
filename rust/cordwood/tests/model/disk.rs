//! The model's file. It consists of the contents of the page cache and of the disk, and of the
//! [`Storage`] through which a `LogFile` accesses them.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cordwood_log::write::{FileId, Process, Storage};

use crate::reader::{Found, Tail, read};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const SECTOR_LEN: usize = 512;

/// The state of a byte in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Byte {
    /// The byte is on the disk.
    Synced,
    /// The next sync writes the byte.
    Dirty,
    /// A sync failed in this process, and the system marked the byte as clean. No later sync writes
    /// it, unless it is written again.
    Lost(u32),
}

/// Which unsynced bytes and lengths a power loss leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Loss {
    /// All unsynced changes are lost.
    Everything,
    /// Nothing is lost.
    Nothing,
    /// The new bytes are lost, but the new length is kept. The bytes read as zeros or as the old
    /// bytes.
    Bytes,
    /// The new bytes are kept, but a truncation is lost.
    Cut,
    /// The file ends in the middle of the new bytes.
    SecondHalf,
    /// The new length and the first sector of the new bytes are kept. All other sectors are lost.
    AllSectorsButTheFirst,
    /// The new length is kept, but the first sector of the new bytes is lost.
    TheFirstSector,
}

impl Loss {
    pub(crate) const ALL: [Loss; 7] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Bytes,
        Loss::Cut,
        Loss::SecondHalf,
        Loss::AllSectorsButTheFirst,
        Loss::TheFirstSector,
    ];
}

/// A fault during one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// The first write writes half of its bytes and fails.
    Write,
    /// The first write fails in the same way, and the file cannot be truncated afterwards.
    WriteAndCut,
    /// The first sync fails as on Linux. The bytes stay in the page cache and are never written.
    Sync,
    /// The process is killed at the first write, truncation or sync. Half of a write is done.
    DiesAtFirst,
    /// The process is killed at the second write, truncation or sync.
    DiesAtSecond,
}

/// The file, which all processes share.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) cache: Vec<u8>,
    /// The state of each byte in `cache`.
    pub(crate) bytes: Vec<Byte>,
    /// The contents of the disk. They may be longer than `cache` if a truncation has not been
    /// synced.
    pub(crate) disk: Vec<u8>,
    pub(crate) is_name_on_disk: bool,
    /// The fault of the current call, if it has not occurred yet.
    fault: Option<Fault>,
    /// Whether the process that makes the current call has been killed.
    pub(crate) is_dead: bool,
    /// Whether a sync has failed during the current call.
    pub(crate) has_sync_failed: bool,
    /// The number of writes, truncations and syncs during the current call.
    writes: u32,
    cuts: u32,
    syncs: u32,
    /// Whether the file was changed by a process that did not open the writer.
    pub(crate) is_changed_by_stranger: bool,
    /// The result of the model's reader for `cache`, once it has been requested.
    found: Option<Arc<(Vec<Found>, Tail)>>,
}

impl File {
    /// Returns a file that is entirely on the disk.
    pub(crate) fn with_content(content: &[u8]) -> Self {
        File {
            cache: content.to_vec(),
            bytes: vec![Byte::Synced; content.len()],
            disk: content.to_vec(),
            is_name_on_disk: !content.is_empty(),
            ..File::default()
        }
    }

    /// Starts a call during which this fault occurs.
    pub(crate) fn start_call(&mut self, fault: Option<Fault>) {
        self.fault = fault;
        (self.is_dead, self.has_sync_failed) = (false, false);
        (self.writes, self.cuts, self.syncs) = (0, 0, 0);
    }

    /// Returns the faults that could have occurred during the last call.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let changes = self.writes + self.cuts + self.syncs;
        let mut faults = Vec::new();
        if self.writes > 0 {
            faults.extend([Fault::Write, Fault::WriteAndCut]);
        }
        if self.syncs > 0 {
            faults.push(Fault::Sync);
        }
        if changes > 0 {
            faults.push(Fault::DiesAtFirst);
        }
        if changes > 1 {
            faults.push(Fault::DiesAtSecond);
        }
        faults
    }

    /// Returns the result of the model's reader.
    pub(crate) fn read(&mut self) -> Arc<(Vec<Found>, Tail)> {
        let found = self.found.get_or_insert_with(|| Arc::new(read(&self.cache)));
        found.clone()
    }

    /// Returns each file that a power loss may leave, without duplicates.
    pub(crate) fn after_any_loss(&self) -> Vec<(Loss, Vec<u8>)> {
        if self.is_name_on_disk && self.cache == self.disk {
            return vec![(Loss::Nothing, self.cache.clone())];
        }
        let mut files: Vec<(Loss, Vec<u8>)> = Vec::new();
        for loss in Loss::ALL {
            let file = self.after(loss);
            if files.iter().all(|(_, other)| *other != file) {
                files.push((loss, file));
            }
        }
        files
    }

    /// Returns the file that a power loss leaves.
    fn after(&self, loss: Loss) -> Vec<u8> {
        if !self.is_name_on_disk && loss != Loss::Nothing {
            return Vec::new();
        }
        self.contents_after(loss)
    }

    /// Returns the file that a power loss leaves if the file's name is on the disk.
    fn contents_after(&self, loss: Loss) -> Vec<u8> {
        let (old, new) = (&self.disk, &self.cache);
        let mut base = old.clone();
        base.resize(new.len(), 0);
        let is_new = |index: &usize| base[*index] != new[*index];
        let first_sector = (0..new.len()).find(is_new).unwrap_or(0) / SECTOR_LEN * SECTOR_LEN;
        let first_sector = first_sector..(first_sector + SECTOR_LEN).min(new.len());
        match loss {
            Loss::Everything => old.clone(),
            Loss::Nothing => new.clone(),
            Loss::Bytes => base,
            Loss::Cut => {
                let mut file = new.clone();
                file.extend(old.iter().skip(new.len()));
                file
            }
            Loss::SecondHalf => {
                let start = (0..new.len()).find(is_new).unwrap_or(new.len());
                new[..start + (new.len() - start) / 2].to_vec()
            }
            Loss::AllSectorsButTheFirst => {
                base[first_sector.clone()].copy_from_slice(&new[first_sector]);
                base
            }
            Loss::TheFirstSector => {
                let mut file = new.clone();
                file[first_sector.clone()].copy_from_slice(&base[first_sector]);
                file
            }
        }
    }

    /// Simulates a power loss and a restart.
    pub(crate) fn lose_power(&mut self, loss: Loss) {
        *self = File::with_content(&self.after(loss));
    }

    /// Flips a bit on the disk.
    pub(crate) fn flip(&mut self, index: usize, bit: u8) {
        self.found = None;
        self.cache[index] ^= 1 << bit;
        self.disk[index] ^= 1 << bit;
    }

    /// Like [`after_any_loss`](Self::after_any_loss), for a file whose name is on the disk.
    pub(crate) fn contents_after_any_loss(&self) -> Vec<Vec<u8>> {
        Loss::ALL.map(|loss| self.contents_after(loss)).into()
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.cache.len() < end {
            self.set_len(end);
        }
        self.found = None;
        for (index, &byte) in (offset..end).zip(bytes) {
            // A synced byte stays on the disk if it is overwritten with the same value.
            if self.cache[index] != byte || self.bytes[index] != Byte::Synced {
                (self.cache[index], self.bytes[index]) = (byte, Byte::Dirty);
            }
        }
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.found = None;
        self.cache.resize(len, 0);
        self.bytes.resize(len, Byte::Dirty);
    }

    pub(crate) fn sync(&mut self) {
        self.disk.resize(self.cache.len(), 0);
        for (index, byte) in self.bytes.iter_mut().enumerate() {
            if *byte == Byte::Dirty {
                self.disk[index] = self.cache[index];
                *byte = Byte::Synced;
            }
        }
    }

    /// The system marks the bytes that it could not write as clean.
    pub(crate) fn fail_sync(&mut self, process: u32) {
        for byte in self.bytes.iter_mut().filter(|byte| **byte == Byte::Dirty) {
            *byte = Byte::Lost(process);
        }
    }

    /// Checks whether the fault of this call is one of these. If it is, the fault occurs and is
    /// cleared.
    fn fails(&mut self, faults: &[Fault]) -> bool {
        let fails = self.fault.is_some_and(|fault| faults.contains(&fault));
        if fails {
            self.fault = match self.fault {
                Some(Fault::DiesAtSecond) => Some(Fault::DiesAtFirst),
                _ => None,
            };
        }
        fails
    }

    /// Checks whether the process is killed here or was killed before.
    fn dies(&mut self) -> bool {
        let is_at_second = self.fault == Some(Fault::DiesAtSecond);
        if self.fails(&[Fault::DiesAtFirst, Fault::DiesAtSecond]) && !is_at_second {
            self.is_dead = true;
        }
        self.is_dead
    }
}

/// The result of an operation. The forked child of a process remembers the same results.
#[derive(Debug, Clone)]
enum Answer {
    Len(u64),
    Bytes(Vec<u8>),
    Written(Result<usize, i32>),
    Done(Result<(), i32>),
}

/// A descriptor of the file in one process. The process `opener` opened it.
#[derive(Debug)]
struct Descriptor {
    file: Arc<Mutex<File>>,
    process: AtomicU32,
    opener: u32,
    /// Whether the process has been killed. When its `LogFile` is dropped, the calls of that
    /// `LogFile` then have no effect.
    is_dead: AtomicBool,
    /// The process identifier that the crate sees, which is `OPENER` or `CHILD`. It is not the
    /// number of the process, so that equal processes have equal states.
    role: Arc<AtomicU32>,
    /// The key under which a process remembers facts about the file. It must differ for each
    /// process in each world, because they all run in one real process.
    inode: u64,
    /// All results so far.
    tape: Mutex<Vec<Answer>>,
    /// The results to return without any effect while a child's memory is being created.
    playing: Mutex<Option<VecDeque<Answer>>>,
}

/// The process that opened the log, and the process that inherited it.
const OPENER: u32 = 1;
const CHILD: u32 = 2;

/// The storage of a `LogFile`. All clones are the same descriptor.
#[derive(Clone)]
pub(crate) struct Port(Arc<Descriptor>);

/// The text is constant, because the `Debug` text of a `LogFile` distinguishes its states.
impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Port")
    }
}

impl Port {
    pub(crate) fn open(file: &Arc<Mutex<File>>, process: u32, inode: u64) -> Self {
        Port(Arc::new(Descriptor {
            file: file.clone(),
            process: AtomicU32::new(process),
            opener: process,
            is_dead: AtomicBool::new(false),
            role: Arc::new(AtomicU32::new(OPENER)),
            inode,
            tape: Mutex::default(),
            playing: Mutex::new(None),
        }))
    }

    /// Returns the descriptor that a child inherits. Until [`wake`](Self::wake) is called, it
    /// repeats the results that the parent received.
    pub(crate) fn inherited(&self, inode: u64) -> Self {
        let tape = lock(&self.0.tape).clone();
        Port(Arc::new(Descriptor {
            file: self.0.file.clone(),
            process: AtomicU32::new(self.0.opener),
            opener: self.0.opener,
            is_dead: AtomicBool::new(false),
            role: Arc::new(AtomicU32::new(OPENER)),
            inode,
            tape: Mutex::default(),
            playing: Mutex::new(Some(tape.into())),
        }))
    }

    /// Makes this the child's descriptor. From then on, calls have an effect.
    pub(crate) fn wake(&self, process: u32) {
        let rest = lock(&self.0.playing).take();
        assert!(
            rest.is_some_and(|rest| rest.is_empty()),
            "the child's memory is not that of the parent"
        );
        self.0.process.store(process, Ordering::Relaxed);
        self.0.role.store(CHILD, Ordering::Relaxed);
    }

    /// Kills the process. From then on, no call has an effect.
    pub(crate) fn kill(&self) {
        self.0.is_dead.store(true, Ordering::Relaxed);
    }

    fn is_dead(&self) -> bool {
        self.0.is_dead.load(Ordering::Relaxed)
    }

    /// Returns the process identifier, as `getpid` would.
    pub(crate) fn process_id(&self) -> u32 {
        self.0.process.load(Ordering::Relaxed)
    }

    pub(crate) fn boxed(&self) -> Box<dyn Storage> {
        Box::new(self.clone())
    }

    /// Returns the next result from the tape, or the result of `make` if the tape is empty.
    fn answer(&self, make: impl FnOnce(&mut File) -> Answer) -> Answer {
        let answer = match &mut *lock(&self.0.playing) {
            Some(tape) => tape.pop_front().expect("the parent asked for this, too"),
            None => make(&mut lock(&self.0.file)),
        };
        lock(&self.0.tape).push(answer.clone());
        answer
    }

    /// Changes the file or syncs it.
    fn done(&self, make: impl FnOnce(&mut File) -> Result<(), i32>) -> io::Result<()> {
        if self.is_dead() {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let answer = self.answer(|file| {
            Answer::Done(match file.dies() {
                true => Err(EIO),
                false => self.watched(file, make),
            })
        });
        let Answer::Done(result) = answer else {
            unreachable!("the parent did something else here: {answer:?}")
        };
        result.map_err(io::Error::from_raw_os_error)
    }

    /// Records whether a process that did not open the writer changes the file.
    fn watched<T>(&self, file: &mut File, change: impl FnOnce(&mut File) -> T) -> T {
        if self.process_id() == self.0.opener {
            return change(file);
        }
        let before = file.cache.clone();
        let result = change(file);
        file.is_changed_by_stranger |= file.cache != before;
        result
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics with the lock")
}

impl Storage for Port {
    fn file_len(&self) -> io::Result<u64> {
        match self.answer(|file| Answer::Len(file.cache.len() as u64)) {
            Answer::Len(len) => Ok(len),
            other => unreachable!("the parent did something else here: {other:?}"),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let answer = self.answer(|file| {
            let rest = file.cache.get(offset as usize..).unwrap_or_default();
            Answer::Bytes(rest[..rest.len().min(buffer.len())].to_vec())
        });
        let Answer::Bytes(bytes) = answer else {
            unreachable!("the parent did something else here: {answer:?}")
        };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.is_dead() {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let answer = self.answer(|file| {
            file.writes += 1;
            let (len, result) = if file.is_dead {
                (0, Err(EIO))
            } else if file.dies() {
                (bytes.len() / 2, Err(EIO))
            } else if file.fault == Some(Fault::WriteAndCut) || file.fails(&[Fault::Write]) {
                (bytes.len() / 2, Err(ENOSPC))
            } else {
                (bytes.len(), Ok(bytes.len()))
            };
            self.watched(file, |file| file.write(&bytes[..len], offset as usize));
            Answer::Written(result)
        });
        let Answer::Written(result) = answer else {
            unreachable!("the parent did something else here: {answer:?}")
        };
        result.map_err(io::Error::from_raw_os_error)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.done(|file| {
            file.cuts += 1;
            if file.fails(&[Fault::WriteAndCut]) {
                return Err(EIO);
            }
            file.set_len(len as usize);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let process = self.process_id();
        self.done(|file| {
            file.syncs += 1;
            if file.fails(&[Fault::Sync]) {
                file.has_sync_failed = true;
                // The system reports the failed sync only once. Here, it would report it to a
                // process that shares the opener's descriptor.
                file.is_changed_by_stranger |= process != self.0.opener;
                file.fail_sync(process);
                return Err(EIO);
            }
            file.sync();
            Ok(())
        })
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.done(|file| {
            file.syncs += 1;
            file.is_name_on_disk = true;
            Ok(())
        })
    }

    fn identity(&self) -> Option<FileId> {
        // No device of this machine has this number.
        Some(FileId {
            device: u64::MAX,
            inode: self.0.inode,
        })
    }

    fn process(&self) -> Process {
        Process::simulated(self.0.role.clone())
    }
}
