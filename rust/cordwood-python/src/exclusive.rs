//! A value that one thread uses at a time.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// A mutex that releases the interpreter while it waits, and that refuses a thread that already
/// holds it: reading from or writing to a Python object runs Python code, which may call this
/// module again.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    /// The thread that holds the lock and may run Python code, or 0 for none.
    owner: AtomicUsize,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Exclusive {
            value: Mutex::new(value),
            owner: AtomicUsize::new(0),
        }
    }

    /// The value, for work that runs no Python code.
    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, T>> {
        match self.try_lock() {
            Some(value) => Ok(value),
            None => self.wait(py),
        }
    }

    /// The same, or `None` if the value is in use.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            // A panic under the lock has already been raised; the value's own state shows what
            // still works.
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, T>> {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            return Err(PyRuntimeError::new_err(
                "the reader or writer is already in use by this thread: its source or sink must not use it",
            ));
        }
        Ok(self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// To be called by the thread that holds the lock, before work that may run Python code. It is
    /// in effect as long as the returned value lives.
    pub(crate) fn may_run_python(&self) -> Owner<'_> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        Owner(&self.owner)
    }
}

/// While this lives, its thread cannot take the lock.
pub(crate) struct Owner<'a>(&'a AtomicUsize);

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A number that no other living thread has: the address of a thread-local.
fn this_thread() -> usize {
    thread_local!(static OWN: Cell<u8> = const { Cell::new(0) });
    OWN.with(|own| std::ptr::from_ref(own).addr())
}
