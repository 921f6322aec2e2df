//! The function `decode_wandb`, for `cordwood.payload.wandb`.

use cordwood_payload::{WandbItems, WandbRecord, WandbRun};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Adds the fields of a value to a `dict`, under the same names.
macro_rules! add {
    ($fields:ident, $value:ident: $($field:ident),*) => {
        $($fields.set_item(stringify!($field), $value.$field)?;)*
    };
}

/// The fields of a record of a Weights & Biases run.
///
/// Items are pairs of a path, which is a tuple of at least one name, and the value as JSON. Times
/// are in microseconds since 1970-01-01 00:00 UTC. A field that is not in the record is `None`.
///
/// Args:
///     record: `bytes` or any other buffer.
///     kind: The kind that the record must be, which determines the fields. `"history"`: `items`
///         and `step`. `"stats"`: `timestamp` and `items`. `"summary"`, and `"config"`, which a
///         record of kind `"run"` may also contain: `update` and `remove`, each a list of items.
///         `"run"`: `run_id`, `entity`, `project`, `group`, `job_type`, `display_name`, `notes`,
///         `tags`, `host`, `git_commit` and `start_time`. `"environment"`: `executable`,
///         `program`, `args`, `host` and `git_commit`. `"output"`, whether raw or not: `stream`
///         (`"stdout"` or `"stderr"`), `timestamp` and `line`. `"exit"`: `exit_code`.
///
/// Returns:
///     The fields, or `None` if the record is of another kind.
///
/// Raises:
///     PayloadError: `record` is not a record of a run.
///     TypeError: `record` is not bytes-like.
#[pyfunction]
#[pyo3(signature = (record, kind, /))]
pub(crate) fn decode_wandb<'py>(record: &Bound<'py, PyAny>, kind: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = record.py();
    let record = bytes_of("record", record)?;
    let decoded = WandbRecord::decode(record.as_bytes()).map_err(|error| payload_error(py, error))?;
    let fields = PyDict::new(py);
    match (kind, decoded) {
        ("history", WandbRecord::History { items, step }) => {
            fields.set_item("items", items_object(py, items)?)?;
            fields.set_item("step", step)?;
        }
        ("stats", WandbRecord::Stats { timestamp, items }) => {
            fields.set_item("timestamp", timestamp)?;
            fields.set_item("items", items_object(py, items)?)?;
        }
        ("summary", WandbRecord::Summary(change))
        | (
            "config",
            WandbRecord::Config(change)
            | WandbRecord::Run(WandbRun {
                config: Some(change), ..
            }),
        ) => {
            fields.set_item("update", items_object(py, change.update)?)?;
            fields.set_item("remove", items_object(py, change.remove)?)?;
        }
        ("run", WandbRecord::Run(run)) => {
            add!(fields, run: run_id, entity, project, group, job_type, display_name, notes, tags, host);
            add!(fields, run: git_commit, start_time);
        }
        ("output", WandbRecord::Output(output) | WandbRecord::OutputRaw(output)) => {
            fields.set_item("stream", if output.is_stderr { "stderr" } else { "stdout" })?;
            add!(fields, output: timestamp, line);
        }
        ("environment", WandbRecord::Environment(environment)) => {
            add!(fields, environment: executable, program, args, host, git_commit);
        }
        ("exit", WandbRecord::Exit(code)) => fields.set_item("exit_code", code)?,
        _ => return Ok(None),
    }
    Ok(Some(fields))
}

fn items_object<'py>(py: Python<'py>, items: WandbItems<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        let item = item.map_err(|error| payload_error(py, error))?;
        list.append((PyTuple::new(py, item.path.iter())?, item.value_json))?;
    }
    Ok(list)
}
