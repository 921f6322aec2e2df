//! The class `Outcome`.

use pyo3::prelude::*;

use crate::enums::OUTCOME_KIND;
use crate::value::{Reduced, reduced, shown, static_name};

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
    zeros_offset: Option<u64>,
}

impl Outcome {
    /// The outcome of reading that ended at `end`, in a file whose last zeros begin at
    /// `zeros_offset`.
    pub(crate) fn of(end: cordwood::End, zeros_offset: Option<u64>) -> Self {
        Outcome {
            kind: end.as_str(),
            offset: end.offset(),
            zeros_offset,
        }
    }

    /// The outcome of reading that has reached `position`, and has ended there if there is an
    /// `end`.
    pub(crate) fn at(position: u64, end: Option<cordwood::End>, zeros_offset: Option<u64>) -> Self {
        match end {
            Some(end) => Outcome::of(end, zeros_offset),
            None => Outcome {
                kind: "unfinished",
                offset: position,
                zeros_offset: None,
            },
        }
    }
}

#[pymethods]
impl Outcome {
    #[new]
    #[pyo3(signature = (*, kind, offset, zeros_offset = None))]
    fn new(kind: &str, offset: u64, zeros_offset: Option<u64>) -> PyResult<Self> {
        let kinds = ["unfinished", "clean", "torn_tail", "stopped"];
        let kind = static_name(&kinds, kind, "outcome")?;
        Ok(Outcome {
            kind,
            offset,
            zeros_offset,
        })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("kind", "offset", "zeros_offset")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, &["kind", "offset", "zeros_offset"])
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

    /// The file offset at which zeros begin that extend to the end of the file.
    ///
    /// They are space that was never written, padding, or data that was lost. `None` if the file
    /// does not end in zeros, or was not read to its end; always `None` for a follower.
    #[getter]
    fn zeros_offset(&self) -> Option<u64> {
        self.zeros_offset
    }

    pub(crate) fn __repr__(&self) -> String {
        let zeros = shown("zeros_offset", self.zeros_offset);
        format!("Outcome(kind='{}', offset={}{zeros})", self.kind, self.offset)
    }
}
