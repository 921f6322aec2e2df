//! The list of skipped regions that a reader or a follower keeps.

use cordwood::damage::{Finding, Findings, Severity};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The regions that a reader or a follower has skipped so far, and the tuple of them.
///
/// The tuple is built on request, without the lock of the reader, since creating objects can run
/// Python code. It is cached until there is more to show.
#[derive(Default)]
pub(crate) struct Listed {
    findings: Findings,
    tuple: Option<Py<PyTuple>>,
    /// How many times the findings have changed.
    changes: u64,
}

impl Listed {
    pub(crate) fn add(&mut self, region: cordwood::damage::SkippedRegion) {
        self.findings.add(Finding::new(region));
        self.changed();
    }

    pub(crate) fn clear(&mut self) {
        self.findings = Findings::default();
        self.changed();
    }

    fn changed(&mut self) {
        // The regions refer to no other objects, so dropping them runs no Python code.
        self.tuple = None;
        self.changes += 1;
    }

    /// The tuple, or the parts to build it from: the findings, and the number to pass to
    /// [`keep`](Self::keep).
    pub(crate) fn shown(&self, py: Python<'_>) -> Result<Py<PyTuple>, (Findings, u64)> {
        match &self.tuple {
            Some(tuple) => Ok(tuple.clone_ref(py)),
            None => Err((self.findings.clone(), self.changes)),
        }
    }

    /// Keeps the tuple if the list has not changed in the meantime.
    pub(crate) fn keep(&mut self, tuple: Py<PyTuple>, changes: u64) {
        if self.changes == changes {
            self.tuple = Some(tuple);
        }
    }

    /// Whether none of the regions is damage.
    pub(crate) fn is_ok(&self) -> bool {
        self.findings.len_of(Severity::Corruption) == 0
    }

    /// Bytes in all regions, listed or not.
    pub(crate) fn len(&self) -> u64 {
        self.findings.len()
    }

    /// See [`Findings::zeros_before`].
    pub(crate) fn zeros_before(&self, end: u64) -> Option<u64> {
        self.findings.zeros_before(end)
    }
}
