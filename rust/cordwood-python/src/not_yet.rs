//! The class `NotYet`.

use pyo3::prelude::*;

use crate::enums::WAIT_REASON;
use crate::value::{Reduced, reduced, static_name};

/// Where and why there is no record yet: the value of `Follower.waiting`.
///
/// It distinguishes a writer that is idle from one that is stuck. The constructor takes the
/// attributes as keywords, except `pending_len`, which follows from the others.
///
/// >>> with cordwood.open("live.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> with cordwood.follow("live.log", timeout=0) as follower:
/// ...     list(follower), follower.waiting
/// ([b'one'], NotYet(reason='idle', offset=10, file_len=10))
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NotYet {
    pub(crate) reason: &'static str,
    pub(crate) offset: u64,
    pub(crate) file_len: u64,
}

impl From<cordwood::follow::NotYet> for NotYet {
    fn from(not_yet: cordwood::follow::NotYet) -> Self {
        NotYet {
            reason: not_yet.reason.as_str(),
            offset: not_yet.offset,
            file_len: not_yet.file_len,
        }
    }
}

#[pymethods]
impl NotYet {
    #[new]
    #[pyo3(signature = (*, reason, offset, file_len))]
    fn new(reason: &str, offset: u64, file_len: u64) -> PyResult<Self> {
        let reasons = ["idle", "incomplete", "zeros", "stale", "suspect", "damaged"];
        let reason = static_name(&reasons, reason, "reason to wait")?;
        Ok(NotYet {
            reason,
            offset,
            file_len,
        })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("reason", "offset", "file_len")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, &["reason", "offset", "file_len"])
    }

    /// What the follower is waiting for.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        WAIT_REASON.member(py, self.reason)
    }

    /// The file offset after what has been returned or skipped.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// The length of the file, in bytes.
    #[getter]
    fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Bytes of the file after `offset`, including zeros that a writer has preallocated.
    #[getter]
    fn pending_len(&self) -> u64 {
        self.file_len.saturating_sub(self.offset)
    }

    fn __repr__(&self) -> String {
        let NotYet {
            reason,
            offset,
            file_len,
        } = self;
        format!("NotYet(reason='{reason}', offset={offset}, file_len={file_len})")
    }
}
