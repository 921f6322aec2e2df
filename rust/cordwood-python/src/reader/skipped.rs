//! The regions skipped while reading a log, and how reading ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cordwood::damage::{Finding, Findings, Severity, SkippedRegion};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::values::{Outcome, listed};

/// The regions skipped so far, and the outcome once reading has ended. The Python object that
/// exposes the regions may outlive the reader, and another thread may be using that object while
/// regions are being added.
#[derive(Clone, Default)]
pub(crate) struct Skipped(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    findings: Findings,
    /// The listed regions as a tuple, which is built on request and cached until the findings
    /// change.
    tuple: Option<Py<PyTuple>>,
    /// How many times the findings have changed.
    changes: u64,
    /// The outcome once reading has ended. Until then, it is available only in the cursor.
    outcome: Outcome,
}

impl Skipped {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Findings)) {
        let state = &mut *self.lock();
        change(&mut state.findings);
        // The regions don't refer to other objects, so dropping them doesn't run Python code.
        state.tuple = None;
        state.changes += 1;
    }

    pub(crate) fn add(&self, region: SkippedRegion) {
        self.change(|findings| findings.add(Finding::new(region)));
    }

    pub(crate) fn clear(&self) {
        self.change(|findings| *findings = Findings::default());
    }

    pub(crate) fn findings(&self) -> Findings {
        self.lock().findings.clone()
    }

    /// Returns the listed regions. The lock is not held while the tuple is created, because
    /// creating it can run Python code.
    pub(crate) fn tuple(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let (findings, changes) = {
            let state = self.lock();
            if let Some(tuple) = &state.tuple {
                return Ok(tuple.clone_ref(py));
            }
            (state.findings.clone(), state.changes)
        };
        let tuple = listed(py, &findings)?.unbind();
        let mut state = self.lock();
        if state.changes == changes {
            state.tuple = Some(tuple.clone_ref(py));
        }
        Ok(tuple)
    }

    /// Returns `true` if no damage has been found.
    pub(crate) fn is_ok(&self) -> bool {
        !self.lock().findings.has(Severity::Corruption)
    }

    /// Returns the total length of all regions in bytes, including unlisted ones.
    pub(crate) fn len(&self) -> u64 {
        self.lock().findings.len()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.lock().outcome
    }

    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        self.lock().outcome = outcome;
    }

    /// See [`Findings::zeros_before`].
    pub(crate) fn zeros_before(&self, end: u64) -> Option<u64> {
        self.lock().findings.zeros_before(end)
    }
}
