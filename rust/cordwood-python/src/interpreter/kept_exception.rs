//! Preserves the pending exception while an object is dropped.

#![expect(unsafe_code, reason = "PyO3 has no function that leaves a panic alone")]

use pyo3::ffi;
use pyo3::prelude::*;

/// Sets aside the current exception, if any, and restores it when this value is dropped. Python can
/// be called in the meantime. PyO3's own `PyErr::take` would panic if the exception was created
/// from a panic.
pub(crate) struct KeptException<'py> {
    exception: [*mut ffi::PyObject; 3],
    _py: Python<'py>,
}

impl<'py> KeptException<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        let mut exception = [std::ptr::null_mut(); 3];
        let [class, value, traceback] = &mut exception;
        // SAFETY: The thread is attached. From here on, each of the three references is null or
        // owned, and `drop` restores them exactly once.
        #[allow(deprecated, reason = "its replacement came with Python 3.12")]
        unsafe {
            ffi::PyErr_Fetch(class, value, traceback);
        }
        KeptException { exception, _py: py }
    }
}

impl Drop for KeptException<'_> {
    fn drop(&mut self) {
        let [class, value, traceback] = self.exception;
        // SAFETY: As above, each reference is null or owned, and its ownership is passed on here.
        // The thread stays attached for as long as `_py` exists.
        #[allow(deprecated, reason = "its replacement came with Python 3.12")]
        unsafe {
            ffi::PyErr_Restore(class, value, traceback);
        }
    }
}
