//! Which process this is, so that a writer detects that it was copied by `fork`.
//!
//! A forked child has a copy of every writer, with the same buffered records and the same open file. If both
//! wrote, each would overwrite what the other has written. So a writer belongs to the process that opened it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Tells one process from another.
///
/// Asking the operating system takes as long as half a write, and a writer asks before each record. So the answer is kept,
/// and forgotten in a child: `fork` calls the handlers that were registered with `pthread_atfork`.
#[derive(Clone, Default)]
pub struct Process {
    /// A test's process, which changes when the test says so.
    simulated: Option<Arc<AtomicU32>>,
}

/// The same in each process: it says who asks, and is no part of what a writer knows.
impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

impl Process {
    /// The process that runs this code.
    pub fn current() -> Self {
        Process::default()
    }

    /// A process for tests: its id is what `id` holds.
    pub fn simulated(id: Arc<AtomicU32>) -> Self {
        Process { simulated: Some(id) }
    }

    /// The id of the process that calls.
    #[inline]
    pub fn id(&self) -> u32 {
        match &self.simulated {
            None => current_id(),
            Some(id) => id.load(Relaxed),
        }
    }
}

/// The id of this process; 0 if it has to be asked for.
static ID: AtomicU32 = AtomicU32::new(0);

#[inline]
fn current_id() -> u32 {
    match ID.load(Relaxed) {
        0 => asked_id(),
        id => id,
    }
}

#[cold]
fn asked_id() -> u32 {
    let id = std::process::id();
    if is_forgotten_in_children() {
        ID.store(id, Relaxed);
    }
    id
}

/// Whether a child of this process will ask for its own id. If not, the id is asked for each time.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library has no way to act on a fork")]
fn is_forgotten_in_children() -> bool {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    type Handler = Option<extern "C" fn()>;

    // POSIX, in the C library that the standard library links in any case.
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    extern "C" fn forget() {
        ID.store(0, Relaxed);
    }

    static IS_REGISTERED: OnceLock<bool> = OnceLock::new();
    *IS_REGISTERED.get_or_init(|| {
        // SAFETY: the declaration is that of POSIX. The handler is a function of this library, which stays
        // loaded (if it is unloaded, the C library removes its handlers). It runs in the child of a process
        // that may have had other threads, where only async-signal-safe operations are allowed: an atomic
        // store is one. It does not unwind.
        unsafe { pthread_atfork(None, None, Some(forget)) == 0 }
    })
}

/// Here a process cannot be copied.
#[cfg(not(unix))]
fn is_forgotten_in_children() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_process_is_this_one() {
        for _ in 0..2 {
            assert_eq!(Process::current().id(), std::process::id());
        }
        let id = Arc::new(AtomicU32::new(7));
        let process = Process::simulated(Arc::clone(&id));
        assert_eq!(process.id(), 7);
        id.store(8, Relaxed);
        assert_eq!(process.id(), 8);
    }
}
