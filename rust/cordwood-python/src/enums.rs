//! The enums of the package, which are written in Python. Each class is looked up once.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A class whose members have texts as values.
pub(crate) struct Enum {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyType>>,
}

impl Enum {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Enum {
            module,
            name,
            class: PyOnceLock::new(),
        }
    }

    /// The member with this value.
    pub(crate) fn member<'py>(&self, py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
        self.class.import(py, self.module, self.name)?.call1((value,))
    }
}

pub(crate) static FRAGMENT_KIND: Enum = Enum::new("cordwood.types", "FragmentKind");
pub(crate) static FRAGMENT_PART: Enum = Enum::new("cordwood.types", "FragmentPart");
pub(crate) static OPERATION_KIND: Enum = Enum::new("cordwood.payload.write_batch", "OperationKind");
pub(crate) static OUTCOME_KIND: Enum = Enum::new("cordwood.types", "OutcomeKind");
pub(crate) static PAYLOAD_REASON: Enum = Enum::new("cordwood.types", "PayloadReason");
pub(crate) static REASON: Enum = Enum::new("cordwood.types", "Reason");
pub(crate) static SEVERITY: Enum = Enum::new("cordwood.types", "Severity");
pub(crate) static WAIT_REASON: Enum = Enum::new("cordwood.types", "WaitReason");
