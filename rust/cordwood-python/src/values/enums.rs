//! The package's enums, which are written in Python. Each is imported once, and its members are
//! cached with their values. Each has few members, so searching them is cheaper than calling the
//! class or creating a string for a `dict` lookup.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;

use crate::interpreter::python_code::{PythonCode, module};
use crate::memory::buffer::no_memory;

/// An enum class whose members have string values.
pub(crate) struct Enum {
    module: &'static str,
    name: &'static str,
    members: PyOnceLock<Vec<(PyBackedStr, Py<PyAny>)>>,
}

impl Enum {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Enum {
            module,
            name,
            members: PyOnceLock::new(),
        }
    }

    /// Returns the member with this value.
    pub(crate) fn member<'py>(&self, py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
        let members = self.members.get_or_try_init(py, || self.import(py))?;
        let found = members.iter().find(|(of_member, _)| **of_member == *value);
        found
            .map(|(_, member)| member.bind(py).clone())
            .ok_or_else(|| PyKeyError::new_err(value.to_owned()))
    }

    /// Imports the class. This may happen while an error is being reported, even an out-of-memory
    /// error, so it must not abort the process.
    fn import(&self, py: Python<'_>) -> PyResult<Vec<(PyBackedStr, Py<PyAny>)>> {
        let class = module(py, self.module)?.getattr(self.name)?;
        let mut members = Vec::new();
        for member in class.items()? {
            let member = member?;
            members.try_reserve(1).map_err(|_| no_memory())?;
            members.push((member.extract()?, member.unbind()));
        }
        Ok(members)
    }
}

pub(crate) static FRAGMENT_KIND: Enum = Enum::new("cordwood.types", "FragmentKind");
pub(crate) static FRAGMENT_PART: Enum = Enum::new("cordwood.types", "FragmentPart");
pub(crate) static HINT: Enum = Enum::new("cordwood.types", "Hint");
pub(crate) static OPERATION_KIND: Enum = Enum::new("cordwood.payload.write_batch", "OperationKind");
pub(crate) static OUTCOME_KIND: Enum = Enum::new("cordwood.types", "OutcomeKind");
pub(crate) static PAYLOAD_REASON: Enum = Enum::new("cordwood.types", "PayloadReason");
pub(crate) static REASON: Enum = Enum::new("cordwood.types", "Reason");
pub(crate) static WAIT_REASON: Enum = Enum::new("cordwood.types", "WaitReason");
