//! The class that turns entities into columns.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use super::column::{Column, Fields, Misfit, Type};
use super::learner::EntityLearner;
use super::names::Names;
use super::seen::{Learner, Node};
use super::view::Row;
use super::{LEFT_OUT_MAX, LeftOut, decode, left_out_objects};
use crate::arrow::{Array, array_capsules};
use crate::reader::record_batch::RecordBatch;

/// Turns entities into columns, as `cordwood._tables.arrow.Batches` does with rows.
///
/// Args:
///     columns: Pairs of a name and a type from `cordwood._tables.schema`; the type is `None` for a
///         column that is not wanted.
///     row_count_max: The maximum number of rows in a batch.
///     cell_count_max: The maximum number of cells in a batch.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct EntityBuilder {
    names: Names,
    /// `None` for a column that is not wanted.
    types: Vec<Option<Type>>,
    /// The number of Parquet columns of all of them.
    width: usize,
    row_count_max: usize,
    cell_count_max: usize,
}

/// Some rows, as columns.
struct Chunk {
    /// The index of the record to continue with.
    next: usize,
    left_out: LeftOut,
    row_count: usize,
    columns: Vec<Option<Column>>,
    /// The number of Parquet columns of these columns.
    width: usize,
    /// The index of a record with a value that does not fit its column, or is in none.
    misfit: Option<usize>,
    /// Whether the rows contain a kind of value that no earlier row did.
    is_new: bool,
}

#[pymethods]
impl EntityBuilder {
    #[new]
    #[pyo3(signature = (columns, *, row_count_max, cell_count_max))]
    fn new(
        columns: Vec<(String, Option<Bound<'_, PyAny>>)>,
        row_count_max: usize,
        cell_count_max: usize,
    ) -> PyResult<Self> {
        let types = columns.iter().map(|(_, kind)| kind.as_ref().map(type_of).transpose());
        let types: Vec<Option<Type>> = types.collect::<PyResult<_>>()?;
        Ok(EntityBuilder {
            width: types.iter().flatten().map(Type::leaf_count).sum(),
            types,
            names: columns.iter().map(|(name, _)| name.as_str()).collect(),
            row_count_max,
            cell_count_max,
        })
    }

    /// Makes rows from records, as many as one Arrow batch may contain.
    ///
    /// Args:
    ///     batch: The records.
    ///     begin: The index of the first record to use.
    ///     learner: If given, it learns from the records. Several calls may use it at the same time.
    ///
    /// Returns:
    ///     The index of the record to continue with; whether the learner saw a new kind of value;
    ///     the indices of the records that were left out, as from `learn`; the index of a record
    ///     with a value that does not fit its column or is in none, or `None`: there are then no
    ///     rows; the names of the columns that have values; the number of rows; and capsules of the
    ///     Arrow C data interface that contain the rows.
    #[pyo3(signature = (batch, begin, learner, /))]
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn build<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, RecordBatch>,
        begin: usize,
        learner: Option<&Bound<'py, EntityLearner>>,
    ) -> PyResult<(
        usize,
        bool,
        Vec<(usize, Py<PyAny>)>,
        Option<usize>,
        Vec<&str>,
        usize,
        (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>),
    )> {
        let batch = batch.get().shared();
        let learner = learner.map(|learner| &learner.get().learner);
        let (chunk, names, fields, table) = py.detach(|| {
            let mut chunk = self.chunk(batch.records(), begin, learner);
            let (mut names, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
            let columns = std::mem::take(&mut chunk.columns);
            for ((name, kind), column) in self.names.iter().zip(&self.types).zip(columns) {
                if let (Some(kind), Some(column)) = (kind, column)
                    && chunk.misfit.is_none()
                {
                    names.push(name);
                    fields.push(kind.field(name));
                    arrays.push(column.finish(chunk.row_count));
                }
            }
            let row_count = if chunk.misfit.is_none() { chunk.row_count } else { 0 };
            (chunk, names, fields, Array::table(row_count, arrays))
        });
        let left_out = left_out_objects(py, chunk.left_out)?;
        let capsules = array_capsules(py, &fields, table)?;
        Ok((
            chunk.next,
            chunk.is_new,
            left_out,
            chunk.misfit,
            names,
            chunk.row_count,
            capsules,
        ))
    }
}

impl EntityBuilder {
    fn chunk(&self, records: &cordwood::read::RecordBatch, begin: usize, learner: Option<&Mutex<Learner>>) -> Chunk {
        let mut chunk = Chunk {
            next: begin,
            left_out: LeftOut::new(),
            row_count: 0,
            columns: self.types.iter().map(|_| None).collect(),
            width: 0,
            misfit: None,
            is_new: false,
        };
        while let Some(record) = records.get(chunk.next)
            && chunk.left_out.len() < LEFT_OUT_MAX
            && chunk.row_count < self.row_count_max
            && chunk.misfit.is_none()
        {
            match decode(record) {
                Ok(entity) => {
                    let row = Row::new(&entity);
                    if chunk.row_count > 0 && !self.fits(&row, &chunk) {
                        break;
                    }
                    self.add(&row, &mut chunk, learner);
                }
                Err(fault) => chunk.left_out.push((chunk.next, fault)),
            }
            chunk.next += 1;
        }
        chunk
    }

    /// Whether the number of cells stays within the limit with one more row. A column with any
    /// value has a cell in each row.
    fn fits(&self, row: &Row<'_>, chunk: &Chunk) -> bool {
        let row_count = chunk.row_count + 1;
        // There are usually too few columns for this to matter.
        if row_count * self.width <= self.cell_count_max {
            return true;
        }
        let mut hint = 0;
        let mut width = chunk.width;
        for property in &row.entity.properties {
            if let Some(number) = self.names.find(property.name, hint) {
                hint = number + 1;
                if chunk.columns[number].is_none() {
                    width += self.types[number].as_ref().map_or(0, Type::leaf_count);
                }
            }
        }
        row_count * width <= self.cell_count_max
    }

    /// Adds the row of an entity. The learner is consulted only about values that may be of a new
    /// kind: that is far less work than learning from each value, and lets other threads consult it
    /// as well.
    fn add(&self, row: &Row<'_>, chunk: &mut Chunk, learner: Option<&Mutex<Learner>>) {
        let learner = || learner.map(|learner| learner.lock().unwrap_or_else(PoisonError::into_inner));
        let nothing = Node::default();
        let mut hint = 0;
        row.cells(|name, value| {
            let number = self.names.find(name, hint);
            let mut is_new = true;
            if let Some(number) = number {
                hint = number + 1;
                if let Some(kind) = &self.types[number] {
                    is_new = false;
                    let column = chunk.columns[number].get_or_insert_with(|| {
                        chunk.width += kind.leaf_count();
                        let learner = learner();
                        let seen = learner.as_ref().map(|learner| learner.columns.get(name));
                        Column::new(kind, seen.map(|node| node.unwrap_or(&nothing)))
                    });
                    if column.set(chunk.row_count, value, &mut is_new) == Err(Misfit) {
                        chunk.misfit = Some(chunk.next);
                    }
                }
            } else {
                chunk.misfit = Some(chunk.next);
            }
            if is_new && let Some(mut learner) = learner() {
                learner.is_new = false;
                learner.add_cell(name, value, hint);
                chunk.is_new |= learner.is_new;
            }
            chunk.misfit.is_none()
        });
        chunk.row_count += 1;
    }
}

/// Converts a `ColumnType` of `cordwood._tables.schema`.
fn type_of(kind: &Bound<'_, PyAny>) -> PyResult<Type> {
    if let Ok(name) = kind.cast::<PyString>() {
        return Ok(match name.to_str()? {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "float" => Type::Float,
            "text" => Type::Text,
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "json" => Type::Json,
            other => return Err(PyValueError::new_err(format!("no value of an entity is {other}"))),
        });
    }
    if kind.hasattr("item")? {
        return Ok(Type::List(Box::new(type_of(&kind.getattr("item")?)?)));
    }
    let fields = kind.getattr("fields")?.try_iter()?;
    let fields: Vec<(String, Bound<'_, PyAny>)> = fields.map(|field| field?.extract()).collect::<PyResult<_>>()?;
    let types = fields.iter().map(|(_, kind)| type_of(kind));
    Ok(Type::Struct(Arc::new(Fields {
        types: types.collect::<PyResult<_>>()?,
        names: fields.iter().map(|(name, _)| name.as_str()).collect(),
    })))
}
