//! A test can change files between any two calls to the operating system.

use std::cell::RefCell;

thread_local! {
    static BEFORE_CALL: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Calls the function given to [`with_calls`], if any.
pub(super) fn before_call() {
    let taken = BEFORE_CALL.take();
    if let Some(mut call) = taken {
        call();
        BEFORE_CALL.set(Some(call));
    }
}

/// Runs `work`. Calls `before` before each read of a file and, on Unix, before each check of a
/// name, so that a test can change the files between any two calls of this thread.
pub(crate) fn with_calls<T>(before: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
    /// Removes the function, even if `work` panics, because the next test may run in the same
    /// thread.
    struct Removed;
    impl Drop for Removed {
        fn drop(&mut self) {
            BEFORE_CALL.set(None);
        }
    }
    let _removed = Removed;
    BEFORE_CALL.set(Some(Box::new(before)));
    work()
}
