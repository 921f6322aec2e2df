//! Lets a test change files between two calls to the operating system.

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

/// Runs `work`. Calls `before` whenever `work` is about to read a file or, on Unix, to check a
/// name. A test can use it to change the files between two reads or checks on this thread.
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
