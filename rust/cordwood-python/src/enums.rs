//! Enums that are written in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The member of `cordwood.types.Severity`.
pub(crate) fn severity_object(py: Python<'_>, severity: cordwood::damage::Severity) -> PyResult<Bound<'_, PyAny>> {
    static SEVERITY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    SEVERITY
        .import(py, "cordwood.types", "Severity")?
        .call1((severity.as_str(),))
}

/// The member of `cordwood.types.Reason` with this name.
pub(crate) fn reason_object<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static REASON: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    REASON.import(py, "cordwood.types", "Reason")?.call1((name,))
}
