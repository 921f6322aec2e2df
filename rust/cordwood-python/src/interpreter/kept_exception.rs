//! Keeps the pending exception while an object is dropped.

#![expect(unsafe_code, reason = "PyO3 has no function that leaves a panic alone")]

use pyo3::ffi;
use pyo3::prelude::*;

/// Sets aside the current exception, if there is one, and restores it when this value is dropped.
/// Python can be called in the meantime. PyO3's own `PyErr::take` panics if the exception was
/// created from a panic.
pub(crate) struct KeptException<'py> {
    exception: [*mut ffi::PyObject; 3],
    _py: Python<'py>,
}

impl<'py> KeptException<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        let mut exception = [std::ptr::null_mut(); 3];
        let [class, value, traceback] = &mut exception;
        // SAFETY: the thread is attached; the three references, each null or owned from here on,
        // are restored once, by `drop`.
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
        // SAFETY: as above: the references are owned, and passed on. The thread is attached as long
        // as `_py` lives.
        #[allow(deprecated, reason = "its replacement came with Python 3.12")]
        unsafe {
            ffi::PyErr_Restore(class, value, traceback);
        }
    }
}
