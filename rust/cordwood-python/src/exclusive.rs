//! A value that only one thread at a time can use.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use cordwood::Hint;
use cordwood::write::Process;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::values::error::with_hint;

/// A mutex that releases the interpreter lock while it waits. Two kinds of threads would wait
/// forever, so they get an error instead:
///
/// * A thread that has already locked the mutex. Reading from or writing to a Python object runs
///   Python code, which can call back into this module.
/// * A thread in a process that was forked while another thread had the mutex locked. The locked
///   mutex was copied into this process, but the thread that would unlock it was not.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    /// The thread that holds the lock and may run Python code, or 0 if there is no such thread.
    owner: AtomicUsize,
    /// Twice the ID of the process for which `is_lost` is valid. While a thread is still
    /// determining `is_lost`, this number is 1 higher.
    process: AtomicU64,
    /// Whether a thread that does not exist in this process held the lock at the time of the fork.
    is_lost: AtomicBool,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Exclusive {
            value: Mutex::new(value),
            owner: AtomicUsize::new(0),
            process: AtomicU64::new(2 * Process::current().number()),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Locks the value for work that doesn't run Python code.
    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, T>> {
        self.lock_unless_lost(py)?.ok_or_else(|| lost(py))
    }

    /// Locks the value. Returns `None` if another thread was using it when this process was forked.
    #[inline]
    pub(crate) fn lock_unless_lost(&self, py: Python<'_>) -> PyResult<Option<MutexGuard<'_, T>>> {
        match self.try_lock() {
            Some(value) => Ok(Some(value)),
            None => self.wait(py),
        }
    }

    /// Locks the value, or returns `None` if it is in use.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let process = Process::current().number();
        if self.process.load(Ordering::Acquire) != 2 * process {
            self.enter(process);
        }
        match self.value.try_lock() {
            Ok(value) => Some(value),
            // A panic while the lock was held has already been raised as an exception. Which calls
            // still work depends on the value's own state.
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Records whether another thread held the lock when this process was forked. No thread in this
    /// process can take the lock until this has been recorded.
    #[cold]
    fn enter(&self, process: u64) {
        loop {
            let seen = self.process.load(Ordering::Acquire);
            if seen == 2 * process {
                return;
            }
            let looking = 2 * process + 1;
            if seen == looking {
                // To finish, the recording thread needs neither a lock nor the interpreter.
                thread::yield_now();
                continue;
            }
            let entered = self
                .process
                .compare_exchange(seen, looking, Ordering::Acquire, Ordering::Relaxed);
            if entered.is_ok() {
                let is_taken = matches!(self.value.try_lock(), Err(TryLockError::WouldBlock));
                // A source or sink may itself fork the process. In the child, the thread that
                // called the source or sink still holds the lock.
                let is_own = self.owner.load(Ordering::Relaxed) == this_thread();
                self.is_lost.store(is_taken && !is_own, Ordering::Relaxed);
                self.process.store(2 * process, Ordering::Release);
            }
        }
    }

    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<Option<MutexGuard<'_, T>>> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            return Err(PyRuntimeError::new_err(
                "the reader or writer is already in use by this thread: its source or sink must not use it",
            ));
        }
        Ok(Some(
            self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// Marks this thread as the owner until the returned value is dropped. The thread holding the
    /// lock must call this before it runs any Python code.
    pub(crate) fn may_run_python(&self) -> Owner<'_> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        Owner(&self.owner)
    }
}

#[cold]
fn lost(py: Python<'_>) -> PyErr {
    let error = PyOSError::new_err("another thread was using it when this process was forked");
    with_hint(py, error, Hint::Reopen)
}

/// While an `Owner` exists, the thread that created it cannot take the lock again.
pub(crate) struct Owner<'a>(&'a AtomicUsize);

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Returns a number that is unique to this thread and never reused, even after the thread has
/// ended. An address wouldn't work: in a forked process, a new thread can have the same address as
/// a thread that was not copied.
fn this_thread() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = COUNT.fetch_add(1, Ordering::Relaxed) + 1);
    OWN.with(|own| *own)
}
