//! Calls between this crate and Python, in both directions.

pub(crate) mod fast_call;
pub(crate) mod kept_exception;
pub(crate) mod python_code;

use pyo3::Python;

/// Returns the object with this name from a Python module, importing it only once.
macro_rules! imported {
    ($py:expr, $module:literal, $name:literal) => {{
        static OBJECT: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::PyAny>> = pyo3::sync::PyOnceLock::new();
        let import = || $crate::interpreter::python_code::object($py, $module, $name);
        OBJECT.get_or_try_init($py, import).map(|object| object.bind($py))
    }};
}

/// Returns a name as an interned `str`, which is created only once. PyO3's own macro would panic if
/// memory ran out.
macro_rules! interned {
    ($py:expr, $name:literal) => {{
        static NAME: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::types::PyString>> = pyo3::sync::PyOnceLock::new();
        let intern = || $crate::memory::buffer::new_interned($py, $name).map(pyo3::Bound::unbind);
        NAME.get_or_try_init($py, intern).map(|name| name.bind($py))
    }};
}

pub(crate) use {imported, interned};

/// Runs `work`, which may block. If `py` is passed, the interpreter lock is released while `work`
/// runs.
pub(crate) fn released<T: Send>(py: Option<Python<'_>>, work: impl FnOnce() -> T + Send) -> T {
    match py {
        Some(py) => py.detach(work),
        None => work(),
    }
}
