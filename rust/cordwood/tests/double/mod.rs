#![allow(dead_code, reason = "each test file uses a part of it")]
//! A file in memory. It records its calls, and fails where a test requests it.

pub(crate) mod directory;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cordwood_log::write::{FileId, Process, Storage};

pub(crate) const EIO: i32 = 5;
pub(crate) const EINTR: i32 = 4;
pub(crate) const ENOSPC: i32 = 28;

/// A call that takes this long hangs, even on a busy machine.
pub(crate) const HANG: Duration = Duration::from_secs(300);

/// Waits until other threads have made the condition true.
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < HANG, "it hangs");
        std::thread::yield_now();
    }
}

/// An operation that was done. Operations that neither succeeded nor left a partial result are not
/// recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen(u64),
    SyncData,
    SyncDirectory,
    /// A note by the test. The writer has reported that everything before this offset is safe.
    Promised(u64),
}

/// The fault of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    None,
    /// The operation has no effect, and this error is returned.
    Error(i32),
    /// This many bytes are written, and no error is returned.
    Short(usize),
    /// This many bytes are written, and then this error is returned.
    ErrorAfter(usize, i32),
    /// A sync panics.
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ops: Vec<Op>,
    /// The faults of the next writes, one for each write. The other fields have the faults of other
    /// operations.
    pub(crate) write_faults: VecDeque<Fault>,
    pub(crate) set_len_faults: VecDeque<Fault>,
    pub(crate) sync_faults: VecDeque<Fault>,
    pub(crate) directory_faults: VecDeque<Fault>,
    /// The number of syncs that have started.
    pub(crate) started_syncs: usize,
    /// The number of a sync, counted from 1. As long as this is set, that sync does not end. Other
    /// threads may write in the meantime.
    pub(crate) held_sync: Option<usize>,
    /// The length of the file when the last completed sync started. That sync put all of these
    /// bytes on the disk.
    pub(crate) synced_len: u64,
    /// The key by which a failed sync of the file is remembered.
    pub(crate) identity: Option<FileId>,
    /// The process that uses the file.
    pub(crate) process: Process,
}

/// All clones are the same file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Double(Arc<Mutex<State>>);

impl Double {
    pub(crate) fn with_bytes(bytes: &[u8]) -> Self {
        let double = Double::default();
        double.state().bytes = bytes.to_vec();
        double
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with the lock")
    }

    pub(crate) fn boxed(&self) -> Box<dyn Storage> {
        Box::new(self.clone())
    }

    /// Returns the number of references to the file, including this one.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.state().ops.clone()
    }
}

fn next(faults: &mut VecDeque<Fault>) -> io::Result<Fault> {
    match faults.pop_front().unwrap_or(Fault::None) {
        // On Windows, no error number has this meaning.
        Fault::Error(EINTR) => Err(io::ErrorKind::Interrupted.into()),
        Fault::Error(number) => Err(io::Error::from_raw_os_error(number)),
        fault => Ok(fault),
    }
}

/// Applies an operation to the bytes of a file.
pub(crate) fn apply(op: &Op, file: &mut Vec<u8>) {
    match op {
        Op::Write { offset, bytes } => {
            let (start, end) = (*offset as usize, *offset as usize + bytes.len());
            file.resize(file.len().max(end), 0);
            file[start..end].copy_from_slice(bytes);
        }
        Op::SetLen(len) => file.resize(*len as usize, 0),
        Op::SyncData | Op::SyncDirectory | Op::Promised(_) => {}
    }
}

impl State {
    fn run(&mut self, op: Op) {
        apply(&op, &mut self.bytes);
        self.ops.push(op);
    }
}

impl Storage for Double {
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state();
        let rest = state.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        let rest = state.bytes.get(offset as usize..);
        assert!(
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(bytes)),
            "a write that is neither at the end of the file nor what the file holds already"
        );
        let (len, error) = match next(&mut state.write_faults)? {
            Fault::Short(len) => (len, None),
            Fault::ErrorAfter(len, number) => (len, Some(number)),
            _ => (bytes.len(), None),
        };
        let len = len.min(bytes.len());
        if len > 0 {
            let bytes = bytes[..len].to_vec();
            state.run(Op::Write { offset, bytes });
        }
        error.map_or(Ok(len), |number| Err(io::Error::from_raw_os_error(number)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        next(&mut state.set_len_faults)?;
        state.run(Op::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (number, len) = {
            let mut state = self.state();
            state.started_syncs += 1;
            (state.started_syncs, state.bytes.len() as u64)
        };
        until(|| self.state().held_sync != Some(number));
        let mut state = self.state();
        if matches!(state.sync_faults.front(), Some(Fault::Panic)) {
            state.sync_faults.pop_front();
            drop(state);
            panic!("a fault of the test");
        }
        next(&mut state.sync_faults)?;
        state.synced_len = len;
        state.run(Op::SyncData);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        next(&mut state.directory_faults)?;
        state.run(Op::SyncDirectory);
        Ok(())
    }

    fn identity(&self) -> Option<FileId> {
        self.state().identity
    }

    fn process(&self) -> Process {
        self.state().process.clone()
    }
}
