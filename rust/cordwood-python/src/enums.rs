//! The enums of the package, which are written in Python. Each is imported once, and its members are
//! kept by value: a lookup costs less than a call of the class.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// A class whose members have texts as values.
pub(crate) struct Enum {
    module: &'static str,
    name: &'static str,
    members: PyOnceLock<Py<PyDict>>,
}

impl Enum {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Enum {
            module,
            name,
            members: PyOnceLock::new(),
        }
    }

    /// The member with this value.
    pub(crate) fn member<'py>(&self, py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
        let members = self.members.get_or_try_init(py, || self.import(py))?;
        members.bind(py).as_any().get_item(value)
    }

    fn import(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let members = PyDict::new(py);
        for member in py.import(self.module)?.getattr(self.name)?.try_iter()? {
            let member = member?;
            members.set_item(member.getattr("value")?, member)?;
        }
        Ok(members.unbind())
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
