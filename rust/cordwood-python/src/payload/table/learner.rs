//! The class that learns the columns of a table.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::seen::{Learner, Limits, Node, Nodes};
use super::view::Payload;
use super::{LEFT_OUT_MAX, payload_of};
use crate::reader::record_batch::RecordBatch;

/// Learns the columns of a table, as `cordwood._tables.learner.Columns` does with rows.
///
/// Args:
///     payload: The contents of the records: `"entity"`, `"json"` or `"wandb-history"`.
///     column_count_max: The maximum number of columns, including fields in columns.
///     field_count_max: The maximum number of fields in a column.
///     level_count_max: The maximum number of levels of lists and structures in a column.
///     other_count: The number of the table's other columns.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct TableLearner {
    payload: Payload,
    learner: Mutex<Learner>,
}

#[pymethods]
impl TableLearner {
    #[new]
    #[pyo3(signature = (payload, *, column_count_max, field_count_max, level_count_max, other_count))]
    fn new(
        payload: &str,
        column_count_max: usize,
        field_count_max: usize,
        level_count_max: usize,
        other_count: usize,
    ) -> PyResult<Self> {
        let limits = Limits {
            columns: column_count_max,
            fields: field_count_max,
            levels: level_count_max,
        };
        Ok(TableLearner {
            payload: payload_of(payload)?,
            learner: Mutex::new(Learner::new(limits, other_count)),
        })
    }

    /// Learns from records.
    ///
    /// It stops at a record after which there are too many columns, and at one whose row has a
    /// column `origin`.
    ///
    /// Args:
    ///     batch: The records.
    ///     begin: The index of the first record to use.
    ///     origin: The name of the table's other column, if it has one.
    ///
    /// Returns:
    ///     The index of the record to continue with; the indices of the records that cannot be
    ///     read, or not completely; and `"columns"` or `"origin"` if one of these made it stop.
    #[pyo3(signature = (batch, begin, origin, /))]
    fn learn(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, RecordBatch>,
        begin: usize,
        origin: Option<&str>,
    ) -> (usize, Vec<usize>, Option<&'static str>) {
        let batch = batch.get().shared();
        py.detach(|| {
            let records = batch.records();
            let mut learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
            let mut left_out = Vec::new();
            let mut next = begin;
            while let Some(record) = records.get(next)
                && left_out.len() < LEFT_OUT_MAX
            {
                let (stop, has_fault) = self.payload.with_row(record, |row| {
                    if origin.is_some() && !row.all_cells(|name, _| Some(name) != origin) {
                        return Some("origin");
                    }
                    (!learner.add(row)).then_some("columns")
                });
                if let Some(Some(stop)) = stop {
                    return (next, left_out, Some(stop));
                }
                if has_fault {
                    left_out.push(next);
                }
                next += 1;
            }
            (next, left_out, None)
        })
    }

    /// The learned columns.
    ///
    /// Returns:
    ///     For each column, by name: the kinds that were seen, and the same for the items of lists,
    ///     and for fields; `None` for a column with too many fields.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Copied first: creating an object may run Python code, which may call this method.
        let learned: Vec<(String, Option<Node>)> = py.detach(|| {
            let learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
            let columns = learner.columns.iter().zip(&learner.field_counts);
            columns
                .map(|((name, node), field_count)| (name.to_owned(), field_count.map(|_| node.clone())))
                .collect()
        });
        let found = PyDict::new(py);
        for (name, node) in &learned {
            found.set_item(name, node.as_ref().map(|node| node_object(py, node)).transpose()?)?;
        }
        Ok(found)
    }
}

fn node_object<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyTuple>> {
    let seen: Vec<_> = node.seen().collect();
    let item = node.item.as_ref().map(|item| node_object(py, item)).transpose()?;
    (seen, item, nodes_object(py, &node.fields)?).into_pyobject(py)
}

fn nodes_object<'py>(py: Python<'py>, nodes: &Nodes) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, node) in nodes.iter() {
        found.set_item(name, node_object(py, node)?)?;
    }
    Ok(found)
}
