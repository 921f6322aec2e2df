//! The classes that turn records into columns: `cordwood_payload::table` for Python.

use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cordwood_payload::table::{self, Builder, Learner, Limits, NotAdded, Row, Rows, Type, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use crate::arrow::{Array, DataType, Field, Memory, array_capsules};
use crate::memory::buffer::no_memory;
use crate::reader::record_batch::RecordBatch;

/// The maximum number of records left out at a time: each becomes a Python object.
const LEFT_OUT_MAX: usize = 1_000;

fn rows_of(payload: &str) -> PyResult<Rows> {
    Ok(match payload {
        "entity" => Rows::Entity,
        "json" => Rows::Json,
        "wandb-history" => Rows::History,
        _ => return Err(PyValueError::new_err(format!("there is no table of {payload}"))),
    })
}

/// Learns the columns of a table, as `cordwood._tables.learner.Columns` does with rows.
///
/// Args:
///     payload: The contents of the records: `"entity"`, `"json"` or `"wandb-history"`.
///     column_count_max: The maximum number of columns, including fields in columns.
///     field_count_max: The maximum number of fields in a column.
///     level_count_max: The maximum number of levels of lists and structures in a column.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct TableLearner {
    rows: Rows,
    learner: Mutex<Learner>,
}

#[pymethods]
impl TableLearner {
    #[new]
    #[pyo3(signature = (payload, *, column_count_max, field_count_max, level_count_max))]
    fn new(payload: &str, column_count_max: usize, field_count_max: usize, level_count_max: usize) -> PyResult<Self> {
        Ok(TableLearner {
            rows: rows_of(payload)?,
            learner: Mutex::new(Learner::new(Limits {
                columns: column_count_max,
                fields: field_count_max,
                levels: level_count_max,
            })),
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
        let took = py.detach(|| {
            let mut learner = self.learner();
            take_rows(self.rows, batch.records(), begin, |row| {
                learn(&mut learner, row, origin)
            })
        });
        (took.next, took.left_out, took.stop)
    }

    /// The learned columns.
    ///
    /// Returns:
    ///     The name of each column and its type, as in `cordwood._tables.schema`; the names of those
    ///     with values of several types, and these types; and the names of those with too many
    ///     fields.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Vec<(String, Bound<'py, PyAny>)>,
        Vec<(String, Vec<String>)>,
        Vec<String>,
    )> {
        // Copied first: creating an object may run Python code, which may call this method.
        let (types, conflicts, overfull) = py.detach(|| {
            let learner = self.learner();
            let overfull: Vec<String> = learner.overfull().into_iter().map(str::to_owned).collect();
            (learner.types(), learner.conflicts(), overfull)
        });
        let types = types
            .iter()
            .map(|(name, kind)| Ok((name.clone(), type_object(py, kind)?)));
        let conflicts = conflicts
            .into_iter()
            .map(|(name, kinds)| (name, kinds.into_iter().collect()));
        Ok((types.collect::<PyResult<_>>()?, conflicts.collect(), overfull))
    }
}

impl TableLearner {
    fn learner(&self) -> MutexGuard<'_, Learner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    rows: Rows,
    /// The names and the types in Arrow of the columns; `None` for a column that is not wanted.
    columns: Vec<(String, Option<Field>)>,
    builder: Mutex<Builder>,
    row_count_max: usize,
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
        let types = columns.into_iter().map(|(name, kind)| {
            let kind = kind.as_ref().map(type_of).transpose()?;
            Ok((name, kind))
        });
        let types: Vec<(String, Option<Type>)> = types.collect::<PyResult<_>>()?;
        let columns = types.iter().map(|(name, kind)| {
            let field = kind.as_ref().map(|kind| field_of(name, kind));
            (name.clone(), field)
        });
        Ok(TableBuilder {
            rows: rows_of(payload)?,
            columns: columns.collect(),
            builder: Mutex::new(Builder::new(types, cell_count_max)),
            row_count_max,
        })
    }

    /// Makes rows from records, as many as one Arrow batch may contain.
    ///
    /// It stops at a record with a value that does not fit its column or is in none; with a learner,
    /// also where that stops, and at a record that makes a column another than it has learned
    /// before.
    ///
    /// Args:
    ///     batch: The records.
    ///     begin: The index of the first record to use.
    ///     learner: Learns from the records, if it is not `None`.
    ///     origin: The name of the table's other column, for the learner.
    ///
    /// Returns:
    ///     The index of the record to continue with; the indices of the records that cannot be
    ///     read, or not completely; `"misfit"`, `"columns"`, `"origin"` or `"grown"` if one of these
    ///     made it stop: there may then be no rows; the names of the columns that have values; the
    ///     number of rows; and capsules of the Arrow C data interface that contain the rows.
    ///
    /// Raises:
    ///     MemoryError: There is not enough memory for the rows.
    #[pyo3(signature = (batch, begin, learner = None, origin = None, /))]
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn build<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, RecordBatch>,
        begin: usize,
        learner: Option<&Bound<'_, TableLearner>>,
        origin: Option<&str>,
    ) -> PyResult<(
        usize,
        Vec<usize>,
        Option<&'static str>,
        Vec<&str>,
        usize,
        (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>),
    )> {
        let batch = batch.get().shared();
        let learner = learner.map(Bound::get);
        let (took, rows) = py.detach(|| {
            let mut learner = learner.map(TableLearner::learner);
            let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
            let took = take_rows(self.rows, batch.records(), begin, |row| {
                if let Some(learner) = &mut learner {
                    learn(learner, row, origin)?;
                    if learner.take_has_changed() && !builder.has_all(&learner.types()) {
                        return Err("grown");
                    }
                }
                Ok(builder.row_count() < self.row_count_max
                    && builder.add(row).map_err(|error| match error {
                        NotAdded::Misfit => "misfit",
                        NotAdded::NoMemory => "memory",
                    })?)
            });
            (took, builder.take())
        });
        let rows = rows.map_err(|_| no_memory())?;
        if took.stop == Some("memory") {
            return Err(no_memory());
        }
        let (mut names, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (number, array) in rows.columns {
            if let (name, Some(field)) = &self.columns[number] {
                names.push(name.as_str());
                fields.push(field.clone());
                arrays.push(Array::from(array));
            }
        }
        let capsules = array_capsules(py, &fields, Array::table(rows.row_count, arrays))?;
        Ok((took.next, took.left_out, took.stop, names, rows.row_count, capsules))
    }
}

/// How far some records were taken.
struct Took {
    /// The index of the record to continue with.
    next: usize,
    /// The indices of the records that cannot be read, or not completely.
    left_out: Vec<usize>,
    /// Why the next record was not taken; `None` also if there was no room for it.
    stop: Option<&'static str>,
}

/// Calls `take` with the rows of records, until it returns that there is no room for one, or why it
/// cannot take one.
fn take_rows(
    rows: Rows,
    records: &cordwood::read::RecordBatch,
    begin: usize,
    mut take: impl FnMut(&Row<'_>) -> Result<bool, &'static str>,
) -> Took {
    let mut took = Took {
        next: begin,
        left_out: Vec::new(),
        stop: None,
    };
    while let Some(record) = records.get(took.next)
        && took.left_out.len() < LEFT_OUT_MAX
    {
        let decoded = rows.of(record, &mut take);
        match decoded.row {
            Some(Ok(false)) => break,
            Some(Err(stop)) => {
                took.stop = Some(stop);
                break;
            }
            Some(Ok(true)) | None => {}
        }
        if decoded.has_fault {
            took.left_out.push(took.next);
        }
        took.next += 1;
    }
    took
}

/// Learns from a row, which must have no column `origin`.
fn learn(learner: &mut Learner, row: &Row<'_>, origin: Option<&str>) -> Result<bool, &'static str> {
    if origin.is_some_and(|name| row.has(name)) {
        return Err("origin");
    }
    if learner.add(row) { Ok(true) } else { Err("columns") }
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
    let fields = kind.getattr("fields")?.try_iter()?.map(|field| {
        let (name, kind): (String, Bound<'_, PyAny>) = field?.extract()?;
        Ok((name, type_of(&kind)?))
    });
    Ok(Type::Struct(Arc::new(fields.collect::<PyResult<_>>()?)))
}

/// The `ColumnType` of `cordwood._tables.schema` for a type.
fn type_object<'py>(py: Python<'py>, kind: &Type) -> PyResult<Bound<'py, PyAny>> {
    let schema = || py.import("cordwood._tables.schema");
    let name = match kind {
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Float => "float",
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::Time => "time",
        Type::Json => "json",
        Type::List(item) => return schema()?.call_method1("ListOf", (type_object(py, item)?,)),
        Type::Struct(fields) => {
            let fields = fields.iter().map(|(name, kind)| Ok((name, type_object(py, kind)?)));
            let fields = pyo3::types::PyTuple::new(py, fields.collect::<PyResult<Vec<_>>>()?)?;
            return schema()?.call_method1("StructOf", (fields,));
        }
    };
    Ok(PyString::new(py, name).into_any())
}

/// The field of Arrow with this name and type.
fn field_of(name: &str, kind: &Type) -> Field {
    let (data_type, children) = match kind {
        Type::Bool => (DataType::Bool, Vec::new()),
        Type::Int => (DataType::Int64, Vec::new()),
        Type::Float => (DataType::Float64, Vec::new()),
        Type::Text | Type::Json => (DataType::Text, Vec::new()),
        Type::Bytes => (DataType::Binary, Vec::new()),
        Type::Time => (DataType::Time, Vec::new()),
        Type::List(item) => (DataType::List, vec![field_of("item", item)]),
        Type::Struct(fields) => {
            let children = fields.iter().map(|(name, kind)| field_of(name, kind));
            (DataType::Struct, children.collect())
        }
    };
    Field {
        // A name ends at a NUL in Arrow's interface.
        name: CString::new(name.replace('\0', "\\x00")).unwrap_or_default().into(),
        data_type,
        is_nullable: true,
        children,
    }
}

impl From<table::Array> for Array {
    fn from(array: table::Array) -> Self {
        let bytes = |bytes| Memory::Bytes(Arc::new(bytes));
        let validity = array.validity.map_or(Memory::Absent, bytes);
        let (buffers, children) = match array.values {
            Values::Bits(bits) => (vec![validity, bytes(bits)], Vec::new()),
            Values::I64(values) => (vec![validity, Memory::I64(values)], Vec::new()),
            Values::F64(values) => (vec![validity, Memory::F64(values)], Vec::new()),
            Values::Bytes { offsets, data } => {
                (vec![validity, Memory::I32(Arc::new(offsets)), bytes(data)], Vec::new())
            }
            Values::List { offsets, items } => (
                vec![validity, Memory::I32(Arc::new(offsets))],
                vec![Array::from(*items)],
            ),
            Values::Struct(fields) => (vec![validity], fields.into_iter().map(Array::from).collect()),
        };
        Array {
            null_count: array.null_count,
            children,
            ..Array::plain(array.len, buffers)
        }
    }
}

/// The CRC-32C of the offsets and the data of records, continued from `crc`.
///
/// Args:
///     batch: The records.
///     crc: The CRC-32C of the records before them.
///
/// Returns:
///     An unsigned 32-bit integer.
#[pyfunction]
#[pyo3(signature = (batch, crc, /))]
pub(crate) fn batch_crc(py: Python<'_>, batch: &Bound<'_, RecordBatch>, crc: u32) -> u32 {
    let batch = batch.get().shared();
    py.detach(|| {
        let records = batch.records();
        (0..records.len()).fold(crc, |crc, index| {
            let offset = records.record_offsets().get(index).copied().unwrap_or_default();
            let crc = cordwood::crc32c::extend(crc, &offset.to_le_bytes());
            cordwood::crc32c::extend(crc, records.get(index).unwrap_or_default())
        })
    })
}
