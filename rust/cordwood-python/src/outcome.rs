//! The class `Outcome`.

use pyo3::prelude::*;

use crate::enums::OUTCOME_KIND;
use crate::value::{Reduced, reduced, static_name};

/// How reading a log ended, or that it has not yet: the `outcome` of a reader, follower or report.
///
/// The constructor takes the attributes as keywords.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> cordwood.verify("example.log").outcome
/// Outcome(kind='clean', offset=10)
#[pyclass(frozen, module = "cordwood", eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    kind: &'static str,
    offset: u64,
}

impl From<cordwood::End> for Outcome {
    fn from(end: cordwood::End) -> Self {
        Outcome {
            kind: end.as_str(),
            offset: end.offset(),
        }
    }
}

impl Outcome {
    /// The outcome of reading that has reached `position`, and may have ended there.
    pub(crate) fn at(position: u64, end: Option<cordwood::End>) -> Self {
        end.map_or(
            Outcome {
                kind: "unfinished",
                offset: position,
            },
            Outcome::from,
        )
    }
}

#[pymethods]
impl Outcome {
    #[new]
    #[pyo3(signature = (*, kind, offset))]
    fn new(kind: &str, offset: u64) -> PyResult<Self> {
        let kinds = ["unfinished", "clean", "torn_tail", "stopped"];
        let kind = static_name(&kinds, kind, "outcome")?;
        Ok(Outcome { kind, offset })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("kind", "offset")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, &["kind", "offset"])
    }

    /// `"clean"`, `"torn_tail"`, `"stopped"` or `"unfinished"`.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        OUTCOME_KIND.member(py, self.kind)
    }

    /// The file offset, in bytes, that goes with `kind`.
    ///
    /// For each kind in turn: the end of the file (or of the range), the beginning of the torn
    /// tail, the beginning of the damage, or how far reading has got.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn __repr__(&self) -> String {
        format!("Outcome(kind='{}', offset={})", self.kind, self.offset)
    }
}
