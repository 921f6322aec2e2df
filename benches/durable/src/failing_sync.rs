//! The C functions `fdatasync`, `fsync` and `msync`, in place of those of the C library, for every crate in this program.
//! With the variable `FAIL_SYNC=N`, the N-th call fails with EIO, once, as a disk fails that could not write a page.

use std::ffi::{c_int, c_long, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// The variable in the environment.
pub const FAIL_SYNC: &str = "FAIL_SYNC";

static CALLS: AtomicU64 = AtomicU64::new(0);
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Whether the sync that fails has failed.
pub fn has_failed() -> bool {
    HAS_FAILED.load(SeqCst)
}

/// Whether this call is the one that fails.
fn fails() -> bool {
    static AT: OnceLock<Option<u64>> = OnceLock::new();
    let at = AT.get_or_init(|| std::env::var(FAIL_SYNC).ok()?.parse().ok());
    let fails = Some(CALLS.fetch_add(1, SeqCst) + 1) == *at;
    if fails {
        HAS_FAILED.store(true, SeqCst);
        // SAFETY: the pointer to this thread's error number is always valid.
        unsafe { *libc::__errno_location() = libc::EIO };
    }
    fails
}

fn sync(call: c_long, fd: c_int) -> c_int {
    match fails() {
        true => -1,
        // SAFETY: these calls take a descriptor, and check it.
        false => unsafe { libc::syscall(call, fd) as c_int },
    }
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(libc::SYS_fdatasync, fd)
}

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    sync(libc::SYS_fsync, fd)
}

#[unsafe(no_mangle)]
extern "C" fn msync(address: *mut c_void, len: usize, flags: c_int) -> c_int {
    match fails() {
        true => -1,
        // SAFETY: the caller's promise, which the C library passes on in the same way.
        false => unsafe { libc::syscall(libc::SYS_msync, address, len, flags) as c_int },
    }
}
