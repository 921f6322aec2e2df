//! The identity of the process. A writer uses this to detect that `fork` has copied it.
//!
//! A forked child has a copy of every writer, with the same buffered records and the same open
//! file. If both processes wrote to the file, each would overwrite the other's bytes. For this
//! reason, only the process that opened a writer may use it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Distinguishes a process from the processes it was forked from.
///
/// The process id is not enough, because ids are reused. Calling `getpid` would also be slow: it
/// takes half as long as a write, and a writer checks the process before each record. Instead,
/// forks are counted: `fork` calls the handlers registered with `pthread_atfork`.
#[derive(Clone, Default)]
pub struct Process {
    /// A simulated process, which a test can change.
    simulated: Option<Arc<AtomicU32>>,
}

/// Shows the same text in every process, because a `Process` identifies the caller and is not part
/// of a writer's state.
impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

impl Process {
    /// Returns the current process.
    pub fn current() -> Self {
        Process::default()
    }

    /// Returns a simulated process for tests. Its number is the current value of `number`.
    #[cfg(any(test, feature = "test-storage"))]
    pub fn simulated(number: Arc<AtomicU32>) -> Self {
        Process {
            simulated: Some(number),
        }
    }

    /// Returns a number that distinguishes this process from every process it was forked from.
    #[inline]
    pub fn number(&self) -> u64 {
        match &self.simulated {
            None => current_number(),
            Some(number) => u64::from(number.load(Relaxed)),
        }
    }
}

/// 0 before the first call, which sets it to 1. Each later fork adds 1 in the child.
static GENERATION: AtomicU64 = AtomicU64::new(0);

#[inline]
fn current_number() -> u64 {
    match GENERATION.load(Relaxed) {
        0 => first_number(),
        number => number,
    }
}

#[cold]
fn first_number() -> u64 {
    if are_forks_counted() {
        // Another thread may have set the counter in the meantime.
        let _ = GENERATION.compare_exchange(0, 1, Relaxed, Relaxed);
        return GENERATION.load(Relaxed);
    }
    // If forks cannot be counted, the process id is queried each time.
    u64::from(std::process::id())
}

/// Returns whether [`GENERATION`] is incremented in each child.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library has no way to act on a fork")]
fn are_forks_counted() -> bool {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    type Handler = Option<extern "C" fn()>;

    // `pthread_atfork` is part of POSIX and of the C library, which the standard library links
    // against.
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    extern "C" fn count() {
        GENERATION.fetch_add(1, Relaxed);
    }

    static IS_REGISTERED: OnceLock<bool> = OnceLock::new();
    *IS_REGISTERED.get_or_init(|| {
        // SAFETY: the declaration matches the one in POSIX. The handler is a function in this
        // library, which stays loaded. If the library is unloaded, the C library removes the
        // handler. The handler runs in a child whose parent may have had other threads. There, only
        // async-signal-safe operations are allowed, such as an atomic addition. The handler does
        // not unwind.
        unsafe { pthread_atfork(None, None, Some(count)) == 0 }
    })
}

/// On non-Unix systems, a process cannot be forked.
#[cfg(not(unix))]
fn are_forks_counted() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_number_does_not_change_within_a_process() {
        let number = Process::current().number();
        assert!(number > 0);
        assert_eq!(Process::current().number(), number);
        let simulated = Arc::new(AtomicU32::new(7));
        let process = Process::simulated(Arc::clone(&simulated));
        assert_eq!(process.number(), 7);
        simulated.store(8, Relaxed);
        assert_eq!(process.number(), 8);
    }
}
