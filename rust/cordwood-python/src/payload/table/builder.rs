//! The class that turns records into columns.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use super::column::{Column, Fields, NotSet, Type};
use super::names::Names;
use super::view::{Payload, Row};
use super::{LEFT_OUT_MAX, payload_of};
use crate::arrow::{Array, array_capsules};
use crate::memory::buffer::no_memory;
use crate::reader::record_batch::RecordBatch;

/// Turns records into columns, as `cordwood._tables.arrow.Batches` does with rows.
///
/// Args:
///     payload: The contents of the records: `"entity"`, `"json"` or `"wandb-history"`.
///     columns: Pairs of a name and a type from `cordwood._tables.schema`; the type is `None` for a
///         column that is not wanted.
///     row_count_max: The maximum number of rows in a batch.
///     cell_count_max: The maximum number of cells in a batch. One row may have more.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct TableBuilder {
    payload: Payload,
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
    /// The indices of the records that cannot be read, or not completely.
    left_out: Vec<usize>,
    row_count: usize,
    columns: Vec<Option<Column>>,
    /// The number of Parquet columns of these columns.
    width: usize,
    /// The number of cells of items in lists.
    item_cell_count: usize,
    /// The index of a record with a value that does not fit its column, or is in none.
    misfit: Option<usize>,
}

#[pymethods]
impl TableBuilder {
    #[new]
    #[pyo3(signature = (payload, columns, *, row_count_max, cell_count_max))]
    fn new(
        payload: &str,
        columns: Vec<(String, Option<Bound<'_, PyAny>>)>,
        row_count_max: usize,
        cell_count_max: usize,
    ) -> PyResult<Self> {
        let types = columns.iter().map(|(_, kind)| kind.as_ref().map(type_of).transpose());
        let types: Vec<Option<Type>> = types.collect::<PyResult<_>>()?;
        Ok(TableBuilder {
            payload: payload_of(payload)?,
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
    ///
    /// Returns:
    ///     The index of the record to continue with; the indices of the records that cannot be
    ///     read, or not completely; the index of a record with a value that does not fit its column
    ///     or is in none, or `None`: there are then no rows; the names of the columns that have
    ///     values; the number of rows; and capsules of the Arrow C data interface that contain the
    ///     rows.
    ///
    /// Raises:
    ///     MemoryError: There is not enough memory for the rows.
    #[pyo3(signature = (batch, begin, /))]
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn build<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, RecordBatch>,
        begin: usize,
    ) -> PyResult<(
        usize,
        Vec<usize>,
        Option<usize>,
        Vec<&str>,
        usize,
        (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>),
    )> {
        let batch = batch.get().shared();
        let made = py.detach(|| -> Result<_, NotSet> {
            let mut chunk = self.chunk(batch.records(), begin)?;
            let (mut names, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
            let columns = std::mem::take(&mut chunk.columns);
            for ((name, kind), column) in self.names.iter().zip(&self.types).zip(columns) {
                if let (Some(kind), Some(column)) = (kind, column)
                    && chunk.misfit.is_none()
                {
                    names.push(name);
                    fields.push(kind.field(name));
                    arrays.push(column.finish(chunk.row_count)?);
                }
            }
            let row_count = if chunk.misfit.is_none() { chunk.row_count } else { 0 };
            Ok((chunk, names, fields, Array::table(row_count, arrays)))
        });
        let (chunk, names, fields, table) = made.map_err(|_| no_memory())?;
        let capsules = array_capsules(py, &fields, table)?;
        Ok((
            chunk.next,
            chunk.left_out,
            chunk.misfit,
            names,
            chunk.row_count,
            capsules,
        ))
    }
}

impl TableBuilder {
    fn chunk(&self, records: &cordwood::read::RecordBatch, begin: usize) -> Result<Chunk, NotSet> {
        let mut chunk = Chunk {
            next: begin,
            left_out: Vec::new(),
            row_count: 0,
            columns: self.types.iter().map(|_| None).collect(),
            width: 0,
            item_cell_count: 0,
            misfit: None,
        };
        while let Some(record) = records.get(chunk.next)
            && chunk.left_out.len() < LEFT_OUT_MAX
            && chunk.row_count < self.row_count_max
            && chunk.item_cell_count < self.cell_count_max
            && chunk.misfit.is_none()
        {
            let (is_added, has_fault) = self.payload.with_row(record, |row| {
                let fits = chunk.row_count == 0 || self.fits(row, &chunk);
                if fits {
                    self.add(row, &mut chunk)?;
                }
                Ok::<_, NotSet>(fits)
            });
            if is_added.transpose()? == Some(false) {
                break;
            }
            if has_fault {
                chunk.left_out.push(chunk.next);
            }
            chunk.next += 1;
        }
        Ok(chunk)
    }

    /// Whether the number of cells stays within the limit with one more row. A column with any
    /// value has a cell in each row.
    fn fits(&self, row: &Row<'_>, chunk: &Chunk) -> bool {
        let row_count = chunk.row_count + 1;
        // There are usually too few columns for this to matter.
        let cell_count_max = self.cell_count_max - chunk.item_cell_count;
        if row_count * self.width <= cell_count_max {
            return true;
        }
        let mut hint = 0;
        let mut width = chunk.width;
        row.all_cells(|name, _| {
            if let Some(number) = self.names.find(name, hint) {
                hint = number + 1;
                if chunk.columns[number].is_none() {
                    width += self.types[number].as_ref().map_or(0, Type::leaf_count);
                }
            }
            true
        });
        row_count * width <= cell_count_max
    }

    /// Adds a row.
    fn add(&self, row: &Row<'_>, chunk: &mut Chunk) -> Result<(), NotSet> {
        let mut hint = 0;
        let mut set = Ok(0);
        row.all_cells(|name, value| {
            let Some(number) = self.names.find(name, hint) else {
                set = Err(NotSet::Misfit);
                return false;
            };
            hint = number + 1;
            let Some(kind) = &self.types[number] else {
                return true;
            };
            let column = chunk.columns[number].get_or_insert_with(|| {
                chunk.width += kind.leaf_count();
                Column::new(kind)
            });
            set = column.set(chunk.row_count, value);
            chunk.item_cell_count += set.unwrap_or_default();
            set.is_ok()
        });
        match set {
            Ok(_) => {}
            Err(NotSet::Misfit) => chunk.misfit = Some(chunk.next),
            Err(NotSet::NoMemory) => return Err(NotSet::NoMemory),
        }
        chunk.row_count += 1;
        Ok(())
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
            other => return Err(PyValueError::new_err(format!("no value is {other}"))),
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
