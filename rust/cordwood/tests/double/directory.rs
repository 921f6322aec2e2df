//! A directory of segments in memory. It records all calls in order, and fails where a test
//! requests it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cordwood_log::segments::Segment;
use cordwood_log::write::{Directory, FileId, Process, Storage};
use cordwood_log::{Error, ErrorKind};

use super::{Double, EIO, Fault, Op, next};

/// An operation that was done on a file or on the directory. A file is identified by its log
/// offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DirectoryOp {
    File(u64, Op),
    Create(u64),
    Remove(u64),
    Sync,
    /// A sync of a file that failed.
    FailedSync(u64),
    /// A note by the test. The writer has reported that everything before this log offset is safe.
    Promised(u64),
}

#[derive(Debug, Default)]
pub(crate) struct DirectoryState {
    pub(crate) files: BTreeMap<u64, Double>,
    pub(crate) ops: Vec<DirectoryOp>,
    /// The faults of the next calls, one for each call.
    pub(crate) create_faults: VecDeque<Fault>,
    pub(crate) remove_faults: VecDeque<Fault>,
    pub(crate) sync_faults: VecDeque<Fault>,
    /// Whether a file exists even if creating it failed.
    pub(crate) leaves_file: bool,
    /// The number of calls on a file or on the directory that succeed before one fails. A write
    /// that fails does half of its work.
    pub(crate) calls_left: Option<usize>,
    /// Whether the process is killed during the failing call. All later calls then fail, too.
    pub(crate) is_kill: bool,
    pub(crate) is_dead: bool,
    /// Whether the directory had a lock file. If so, it belongs to a log, even if no byte of its
    /// files shows that.
    pub(crate) had_lock: bool,
    /// The ages of files that were changed in the past.
    pub(crate) ages: BTreeMap<u64, Duration>,
    /// The offsets of the files that were opened.
    pub(crate) opened: Vec<u64>,
    pub(crate) process: Process,
}

/// All clones are the same directory.
#[derive(Clone, Default)]
pub(crate) struct DirectoryDouble(Arc<Mutex<DirectoryState>>);

/// The text is constant, because the `Debug` text of a log distinguishes its states.
impl std::fmt::Debug for DirectoryDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DirectoryDouble")
    }
}

impl DirectoryDouble {
    pub(crate) fn with_files(files: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        let directory = DirectoryDouble::default();
        let files = files.into_iter();
        directory.state().files = files
            .map(|(offset, bytes)| (offset, Double::with_bytes(&bytes)))
            .collect();
        directory
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, DirectoryState> {
        self.0.lock().expect("no test panics with the lock")
    }

    pub(crate) fn arc(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    pub(crate) fn ops(&self) -> Vec<DirectoryOp> {
        self.state().ops.clone()
    }

    pub(crate) fn note(&self, promised: u64) {
        self.state().ops.push(DirectoryOp::Promised(promised));
    }

    pub(crate) fn file(&self, offset: u64) -> Double {
        self.state().files[&offset].clone()
    }

    /// Returns the log offset in the name of each file, and the bytes of the file.
    pub(crate) fn files(&self) -> BTreeMap<u64, Vec<u8>> {
        let state = self.state();
        state
            .files
            .iter()
            .map(|(&offset, file)| (offset, file.bytes()))
            .collect()
    }

    /// Counts a call. Fails if this is the call that should fail.
    fn count_call(&self) -> io::Result<()> {
        let mut state = self.state();
        match state.calls_left {
            _ if state.is_dead => Err(io::Error::from_raw_os_error(EIO)),
            Some(0) => {
                state.calls_left = None;
                state.is_dead = state.is_kill;
                Err(io::Error::from_raw_os_error(EIO))
            }
            calls_left => {
                state.calls_left = calls_left.map(|left| left - 1);
                Ok(())
            }
        }
    }

    fn storage(&self, offset: u64) -> Box<dyn Storage> {
        Box::new(SegmentDouble {
            offset,
            file: self.file(offset),
            directory: self.clone(),
        })
    }
}

impl Directory for DirectoryDouble {
    fn list(&self) -> Result<Vec<Segment>, Error> {
        let segment = |(offset, bytes): (u64, Vec<u8>)| Segment {
            offset,
            len: bytes.len() as u64,
        };
        Ok(self.files().into_iter().map(segment).collect())
    }

    fn open(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        self.state().opened.push(offset);
        Ok(self.storage(offset))
    }

    fn create(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        let is_alive = !self.state().is_dead;
        let counted = self.count_call();
        let mut state = self.state();
        let fault = counted.and_then(|()| next(&mut state.create_faults));
        if fault.is_ok() || state.leaves_file && is_alive {
            let file = Double::default();
            file.state().process = state.process.clone();
            let before = state.files.insert(offset, file);
            assert!(before.is_none(), "the segment {offset} is there already");
            state.ops.push(DirectoryOp::Create(offset));
        }
        drop(state);
        fault?;
        Ok(self.storage(offset))
    }

    fn has(&self, offset: u64) -> bool {
        self.state().files.contains_key(&offset)
    }

    fn remove(&self, offset: u64) -> Result<(), Error> {
        self.count_call()?;
        let mut state = self.state();
        next(&mut state.remove_faults)?;
        if state.files.remove(&offset).is_none() {
            return Err(Error::from(ErrorKind::Closed));
        }
        state.ops.push(DirectoryOp::Remove(offset));
        Ok(())
    }

    fn age_of(&self, offset: u64) -> Option<Duration> {
        self.state().ages.get(&offset).copied()
    }

    fn sync(&self) -> io::Result<()> {
        self.count_call()?;
        let mut state = self.state();
        next(&mut state.sync_faults)?;
        state.ops.push(DirectoryOp::Sync);
        Ok(())
    }

    fn had_lock(&self) -> bool {
        self.state().had_lock
    }

    fn process(&self) -> Process {
        self.state().process.clone()
    }
}

/// A file of the directory.
struct SegmentDouble {
    offset: u64,
    file: Double,
    directory: DirectoryDouble,
}

/// The text is constant for the same reason as for the directory.
impl std::fmt::Debug for SegmentDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SegmentDouble")
    }
}

impl SegmentDouble {
    /// Does an operation on the file, and records it among the operations of the directory.
    fn recorded<T>(&self, operation: impl FnOnce(&Double) -> io::Result<T>) -> io::Result<T> {
        let before = self.file.ops().len();
        let result = operation(&self.file);
        let done = self.file.ops().split_off(before);
        let mut state = self.directory.state();
        state
            .ops
            .extend(done.into_iter().map(|op| DirectoryOp::File(self.offset, op)));
        result
    }
}

impl Storage for SegmentDouble {
    fn file_len(&self) -> io::Result<u64> {
        self.file.file_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if let Err(error) = self.directory.count_call() {
            let number = error.raw_os_error().unwrap_or(EIO);
            let mut state = self.file.state();
            state
                .write_faults
                .push_front(Fault::ErrorAfter(bytes.len() / 2, number));
        }
        self.recorded(|file| file.write_at(bytes, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.directory.count_call()?;
        self.recorded(|file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Err(error) = self.directory.count_call() {
            let mut state = self.directory.state();
            if !state.is_dead {
                state.ops.push(DirectoryOp::FailedSync(self.offset));
            }
            return Err(error);
        }
        self.recorded(|file| file.sync_data())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync()
    }

    fn identity(&self) -> Option<FileId> {
        self.file.identity()
    }

    fn process(&self) -> Process {
        self.directory.process()
    }
}
