//! Keeps track of all writers' logs, so that they can be closed at the end of the program.
//!
//! At the end of the program, Python doesn't drop all objects. It keeps the variables of a thread
//! that is still running, and objects that refer to each other through such a thread. If any of
//! these is a writer, the records in its buffer would be lost without this module.

use std::sync::{Arc, LazyLock, Weak};

use pyo3::prelude::*;

use crate::exclusive::Exclusive;
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::no_memory;

/// A log to close at the end of the program if it is still open.
pub(crate) trait AtEnd: Send + Sync {
    fn close_at_end(&self, py: Python<'_>);
}

/// The logs in the order in which they were opened. A dropped log stays in the list until its place
/// is needed for a new log.
static LOGS: LazyLock<Exclusive<Vec<Weak<dyn AtEnd>>>> = LazyLock::new(|| Exclusive::new(Vec::new()));

/// Adds the log of a new writer.
///
/// # Errors
///
/// Returns a `MemoryError` if the list cannot grow.
pub(crate) fn add(py: Python<'_>, log: Arc<dyn AtEnd>) -> PyResult<()> {
    let Some(mut logs) = LOGS.lock_unless_lost(py)? else {
        return Ok(());
    };
    if logs.len() == logs.capacity() {
        logs.retain(|log| log.strong_count() > 0);
        let room = logs.len() + 1;
        logs.try_reserve(room).map_err(|_| no_memory())?;
    }
    logs.push(Arc::downgrade(&log));
    Ok(())
}

/// Closes the logs that are still open.
#[pyfunction]
fn close_all(py: Python<'_>) -> PyResult<()> {
    let logs = LOGS.lock_unless_lost(py)?.map(|mut logs| std::mem::take(&mut *logs));
    for log in logs.into_iter().flatten().filter_map(|log| log.upgrade()) {
        log.close_at_end(py);
    }
    Ok(())
}

/// Registers [`close_all`] to be called at the end of the program, before Python finalizes objects.
/// Functions registered later are called earlier, so they can still append.
pub(crate) fn close_at_end(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let close_all = wrap_pyfunction!(close_all, module)?;
    imported!(module.py(), "atexit", "register")?
        .run((close_all,))
        .map(drop)
}
