//! A value that one thread uses at a time.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// A mutex that gives up the interpreter while it waits, and that refuses the thread that holds it already: reading from or writing
/// to a Python object runs Python code, which may come back to us.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    /// The thread that holds the lock, 0 for none.
    owner: AtomicUsize,
}

pub(crate) struct Guard<'a, T> {
    value: MutexGuard<'a, T>,
    owner: &'a AtomicUsize,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Exclusive {
            value: Mutex::new(value),
            owner: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<Guard<'_, T>> {
        let this_thread = this_thread();
        let value = match self.value.try_lock() {
            Ok(value) => value,
            // What panicked under the lock has already been raised; the value's own state says what still works.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) if self.owner.load(Ordering::Relaxed) == this_thread => {
                return Err(PyRuntimeError::new_err(
                    "the reader or writer is in use by this very thread: its source or sink must not use it",
                ));
            }
            Err(TryLockError::WouldBlock) => self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner),
        };
        self.owner.store(this_thread, Ordering::Relaxed);
        Ok(Guard {
            value,
            owner: &self.owner,
        })
    }

    /// The value, of which there is no other user.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

/// A number that no other living thread has: the address of something of its own.
fn this_thread() -> usize {
    thread_local!(static OWN: Cell<u8> = const { Cell::new(0) });
    OWN.with(|own| std::ptr::from_ref(own).addr())
}
