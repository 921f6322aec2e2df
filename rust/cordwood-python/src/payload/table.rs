//! The classes that turn records into columns: `cordwood_payload::table` for Python.

use std::collections::{HashMap, TryReserveError};
use std::ffi::CString;
use std::fmt;
use std::iter;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use cordwood_payload::table::{self, Batch, Builder, Learner, Limits, NotAdded, Row, Rows, Selection, Type, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString};

use super::table_source::{Records, Source, Took, column_name, given_name};
use crate::arrow::{Array, DataType, Field, Memory, array_capsules};
use crate::interpreter::interned;
use crate::interpreter::python_code::{PythonCode, module};
use crate::memory::buffer::no_memory;

/// Fewer records are not worth a thread. Half of them are rows enough to show whether the values of a
/// column repeat (`_ROWS_MIN` in `cli/convert/arrow_table.py`).
const SPLIT_MIN: usize = 4_000;

/// The contents of the records that are decoded here.
fn rows_of(payload: &str) -> PyResult<Rows> {
    Ok(match payload {
        "entity" => Rows::Entity,
        "json" => Rows::Json,
        "wandb-history" => Rows::History,
        _ => return Err(PyValueError::new_err(format!("{payload} is not decoded here"))),
    })
}

/// Learns the columns of a table.
///
/// Args:
///     payload: The contents of the records: `"entity"`, `"json"` or `"wandb-history"`; `None` for
///         rows of Python.
///     columns: The columns that are wanted of each row; `None` for all. `a.b` is the field `b` of
///         the column `a`.
///     column_count_max: The maximum number of columns, including fields in columns.
///     field_count_max: The maximum number of fields in a column.
///     level_count_max: The maximum number of levels of lists and structures in a column.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct TableLearner {
    rows: Option<Rows>,
    selection: Option<Selection>,
    learner: Mutex<Learner>,
}

#[pymethods]
impl TableLearner {
    #[new]
    #[pyo3(signature = (payload, columns = None, *, column_count_max, field_count_max, level_count_max))]
    fn new(
        payload: Option<&str>,
        columns: Option<Vec<String>>,
        column_count_max: usize,
        field_count_max: usize,
        level_count_max: usize,
    ) -> PyResult<Self> {
        Ok(TableLearner {
            rows: payload.map(rows_of).transpose()?,
            selection: columns.map(Selection::from_iter),
            learner: Mutex::new(Learner::new(Limits {
                columns: column_count_max,
                fields: field_count_max,
                levels: level_count_max,
            })),
        })
    }

    /// Learns from records, or from rows.
    ///
    /// It stops at a record after which there are too many columns, and at one whose row has a
    /// column that is in `first`.
    ///
    /// Args:
    ///     source: A `RecordBatch`, a list of `Record`, or a list of rows, which are `dict`.
    ///     begin: The index of the first record to use.
    ///     first: The names of the table's other columns.
    ///
    /// Returns:
    ///     The index of the record to continue with; the indices of the records that cannot be
    ///     read, or not completely; `"columns"` or `"first"` if one of these made it stop; and the
    ///     number of rows.
    #[pyo3(signature = (source, begin, first, /))]
    fn learn(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        begin: usize,
        first: Vec<String>,
    ) -> PyResult<(usize, Vec<usize>, Option<String>, usize)> {
        let source = Source::of(source, self.rows, false)?;
        let mut row_count = 0;
        let took = source.take(py, begin, |row| {
            self.add(&mut self.learner(), row, &first)?;
            row_count += 1;
            Ok(true)
        })?;
        let stop = took.stop.map(|stop: Stop| stop.to_string());
        Ok((took.next, took.left_out, stop, row_count))
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
        Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        Vec<(Bound<'py, PyAny>, Vec<String>)>,
        Vec<Bound<'py, PyAny>>,
    )> {
        // Copied first: creating an object may run Python code, which may call this method.
        let (types, conflicts, overfull) = py.detach(|| {
            let learner = self.learner();
            let overfull: Vec<String> = learner.overfull().into_iter().map(str::to_owned).collect();
            (learner.types(), learner.conflicts(), overfull)
        });
        // Names in records are UTF-8 already.
        let name_object = |name: &str| match self.rows {
            Some(_) => Ok(PyString::new(py, name).into_any()),
            None => given_name(py, name),
        };
        let types = types
            .iter()
            .map(|(name, kind)| Ok((name_object(name)?, type_object(py, kind)?)));
        let conflicts = conflicts
            .into_iter()
            .map(|(name, kinds)| Ok((name_object(&name)?, kinds.into_iter().collect())));
        let overfull = overfull.iter().map(|name| name_object(name));
        Ok((
            types.collect::<PyResult<_>>()?,
            conflicts.collect::<PyResult<_>>()?,
            overfull.collect::<PyResult<_>>()?,
        ))
    }
}

impl TableLearner {
    fn learner(&self) -> MutexGuard<'_, Learner> {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a row, which must have no column in `first`.
    fn add(&self, learner: &mut Learner, row: &Row<'_>, first: &[String]) -> Result<(), Stop> {
        if first.iter().any(|name| row.has(name)) {
            return Err(Stop::First);
        }
        if chosen(row, self.selection.as_ref(), |row| learner.add(row)) {
            Ok(())
        } else {
            Err(Stop::Columns)
        }
    }

    /// The same, and returns `true`, unless the table then needs other columns than it has.
    fn add_unless_grown(
        &self,
        learner: &mut Learner,
        row: &Row<'_>,
        first: &[String],
        table: &Builder,
    ) -> Result<bool, Stop> {
        self.add(learner, row, first)?;
        if learner.take_has_changed() && !table.has_all(&learner.types()) {
            return Err(Stop::Grown);
        }
        Ok(true)
    }
}

/// Turns records, or rows, into columns.
///
/// Args:
///     payload: The contents of the records: `"entity"`, `"json"` or `"wandb-history"`; `None` for
///         rows of Python.
///     columns: Pairs of a name and a type from `cordwood._tables.schema`; the type is `None` for a
///         column that is not wanted.
///     are_chosen: Whether rows may have other columns, and `a.b` is the field `b` of the column `a`.
///     row_count_max: The maximum number of rows in a batch.
///     cell_count_max: The maximum number of cells in a batch. One row may have more.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct TableBuilder {
    rows: Option<Rows>,
    selection: Option<Selection>,
    /// The types in Arrow of the columns; `None` for a column that is not wanted.
    columns: Vec<Option<Field>>,
    builder: Builder,
    row_count_max: usize,
}

#[pymethods]
impl TableBuilder {
    #[new]
    #[pyo3(signature = (payload, columns, *, are_chosen, row_count_max, cell_count_max))]
    fn new(
        payload: Option<&str>,
        columns: Vec<(Bound<'_, PyString>, Option<Bound<'_, PyAny>>)>,
        are_chosen: bool,
        row_count_max: usize,
        cell_count_max: usize,
    ) -> PyResult<Self> {
        let rows = payload.map(rows_of).transpose()?;
        let types = columns.into_iter().map(|(name, kind)| {
            let name = match rows {
                Some(_) => name.to_str()?.to_owned(),
                None => column_name(&name)?,
            };
            Ok((name, kind.as_ref().map(type_of).transpose()?))
        });
        let types: Vec<(String, Option<Type>)> = types.collect::<PyResult<_>>()?;
        let columns = types.iter().map(|(name, kind)| Some(field_of(name, kind.as_ref()?)));
        Ok(TableBuilder {
            rows,
            selection: are_chosen.then(|| types.iter().map(|(name, _)| name).collect()),
            columns: columns.collect(),
            builder: Builder::new(types, cell_count_max),
            row_count_max,
        })
    }

    /// Makes one or two Arrow batches, together with at most as many rows as one may contain.
    ///
    /// It stops at a row with a value that does not fit its column or is in none; with a learner,
    /// also where that stops, and at a row that makes a column another than it has learned before.
    ///
    /// Args:
    ///     source: A `RecordBatch`, a list of `Record`, or a list of rows, which are `dict`.
    ///     begin: The index of the first record to use.
    ///     learner: Learns from the rows, if it is not `None`.
    ///     first: The names of the table's other columns, for the learner.
    ///
    /// Returns:
    ///     The index of the record to continue with; the indices of the records that cannot be
    ///     read, or not completely; `"columns"`, `"first"` or `"grown"`, or the message about a
    ///     value that does not fit, if one of these made it stop; and for each batch, which may have
    ///     no rows, the indices of the columns that have values, the number of rows, and capsules
    ///     of the Arrow C data interface that contain the rows.
    ///
    /// Raises:
    ///     MemoryError: There is not enough memory for the rows.
    #[pyo3(signature = (source, begin, learner = None, first = Vec::new(), /))]
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn build<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        begin: usize,
        learner: Option<&Bound<'_, TableLearner>>,
        first: Vec<String>,
    ) -> PyResult<(usize, Vec<usize>, Option<String>, Vec<Capsules<'py>>)> {
        let source = Source::of(source, self.rows, true)?;
        let learner = learner.map(Bound::get);
        let parts = match &source {
            Source::Records(rows, records) => py.detach(|| self.parts(*rows, records, begin, learner, &first)),
            Source::Rows(..) => {
                let mut builder = self.builder.another();
                let took = source.take(py, begin, |row| {
                    if let Some(learner) = learner {
                        learner.add_unless_grown(&mut learner.learner(), row, &first, &builder)?;
                    }
                    self.add(&mut builder, row)
                })?;
                vec![(took, builder.take())]
            }
        };
        let (mut next, mut all_left_out, mut stop, mut batches) = (begin, Vec::new(), None, Vec::new());
        for (took, rows) in parts {
            let rows = rows.map_err(|_| no_memory())?;
            if let Some(Stop::NotAdded(NotAdded::NoMemory)) = took.stop {
                return Err(no_memory());
            }
            next = took.next;
            all_left_out.extend(took.left_out);
            stop = took.stop.map(|stop| stop.to_string());
            batches.push(self.batch(py, rows)?);
        }
        Ok((next, all_left_out, stop, batches))
    }
}

/// Indices of columns, a number of rows, and the capsules that contain these.
type Capsules<'py> = (Vec<usize>, usize, (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>));

/// Some rows, and how far they were taken.
type Part = (Took<Stop>, Result<Batch, TryReserveError>);

impl TableBuilder {
    /// The rows for Python.
    fn batch<'py>(&self, py: Python<'py>, rows: Batch) -> PyResult<Capsules<'py>> {
        let (mut numbers, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (number, array) in rows.columns {
            if let Some(field) = &self.columns[number] {
                numbers.push(number);
                fields.push(field.clone());
                arrays.push(Array::from(array));
            }
        }
        let capsules = array_capsules(py, &fields, Array::table(rows.row_count, arrays))?;
        Ok((numbers, rows.row_count, capsules))
    }

    /// Makes the rows of records. If there are many, another thread makes those of the later half, up
    /// to a record from which the learner would learn: so both parts are what one thread makes.
    fn parts(
        &self,
        rows: Rows,
        records: &Records,
        begin: usize,
        learner: Option<&TableLearner>,
        first: &[String],
    ) -> Vec<Part> {
        let (count, end) = (records.len().saturating_sub(begin), records.len());
        let is_split = count >= SPLIT_MIN && count <= self.row_count_max && self.builder.has_room_for(count);
        let middle = if is_split { begin + count / 2 } else { end };
        let mut learned = learner.map(|learner| (learner, learner.learner()));
        let mut ahead = learned
            .as_ref()
            .filter(|_| is_split)
            .map(|(learner, learned)| (*learner, Learner::clone(learned)));
        thread::scope(|scope| {
            let later = || {
                self.part(rows, records, middle..end, |row, _| match &mut ahead {
                    Some((learner, ahead)) => Ok(learner.add(ahead, row, first).is_ok() && !ahead.take_has_changed()),
                    None => Ok(true),
                })
            };
            // Without a thread, only the earlier half is made.
            let later = is_split
                .then(|| thread::Builder::new().spawn_scoped(scope, later).ok())
                .flatten();
            let earlier = self.part(rows, records, begin..middle, |row, builder| match &mut learned {
                Some((learner, learned)) => learner.add_unless_grown(learned, row, first, builder),
                None => Ok(true),
            });
            let is_whole = earlier.0.next == middle && earlier.0.stop.is_none();
            let later = later.map(|later| later.join().unwrap_or_else(|panic| resume_unwind(panic)));
            iter::once(earlier).chain(later.filter(|_| is_whole)).collect()
        })
    }

    /// Makes the rows of some records, for which `learn` returns whether to go on.
    fn part(
        &self,
        rows: Rows,
        records: &Records,
        range: Range<usize>,
        mut learn: impl FnMut(&Row<'_>, &Builder) -> Result<bool, Stop>,
    ) -> Part {
        let mut builder = self.builder.another();
        let took = records.take(rows, range, |row| {
            Ok(learn(row, &builder)? && self.add(&mut builder, row)?)
        });
        (took, builder.take())
    }

    /// Appends a row. Returns whether there is room for it.
    fn add(&self, builder: &mut Builder, row: &Row<'_>) -> Result<bool, Stop> {
        let is_full = builder.row_count() == self.row_count_max;
        Ok(!is_full && chosen(row, self.selection.as_ref(), |row| builder.add(row))?)
    }
}

/// Why a row was not taken.
enum Stop {
    Columns,
    First,
    Grown,
    NotAdded(NotAdded),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Columns => f.write_str("columns"),
            Stop::First => f.write_str("first"),
            Stop::Grown => f.write_str("grown"),
            Stop::NotAdded(error) => error.fmt(f),
        }
    }
}

impl From<NotAdded> for Stop {
    fn from(error: NotAdded) -> Self {
        Stop::NotAdded(error)
    }
}

/// The result of `take` for the columns that are wanted of a row.
fn chosen<T>(row: &Row<'_>, selection: Option<&Selection>, take: impl FnOnce(&Row<'_>) -> T) -> T {
    match selection {
        Some(selection) => take(&row.select(selection)),
        None => take(row),
    }
}

/// Converts a `ColumnType` of `cordwood._tables.schema`.
fn type_of(kind: &Bound<'_, PyAny>) -> PyResult<Type> {
    if let Ok(name) = kind.cast::<PyString>() {
        return Ok(match name.to_str()? {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::UInt,
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
    let fields = kind.getattr("fields")?.items()?.map(|field| {
        let (name, kind): (String, Bound<'_, PyAny>) = field?.extract()?;
        Ok((name, type_of(&kind)?))
    });
    Ok(Type::Struct(Arc::new(fields.collect::<PyResult<_>>()?)))
}

/// The `ColumnType` of `cordwood._tables.schema` for a type.
fn type_object<'py>(py: Python<'py>, kind: &Type) -> PyResult<Bound<'py, PyAny>> {
    let schema = || module(py, "cordwood._tables.schema");
    let name = match kind {
        Type::Bool => "bool",
        Type::Int => "int",
        Type::UInt => "uint",
        Type::Float => "float",
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::Time => "time",
        Type::Json => "json",
        Type::List(item) => return schema()?.getattr("ListOf")?.run((type_object(py, item)?,)),
        Type::Struct(fields) => {
            let fields = fields.iter().map(|(name, kind)| Ok((name, type_object(py, kind)?)));
            let fields = pyo3::types::PyTuple::new(py, fields.collect::<PyResult<Vec<_>>>()?)?;
            return schema()?.getattr("StructOf")?.run((fields,));
        }
    };
    Ok(PyString::new(py, name).into_any())
}

/// The field of Arrow with this name and type.
fn field_of(name: &str, kind: &Type) -> Field {
    let (data_type, children) = match kind {
        Type::Bool => (DataType::BOOL, Vec::new()),
        Type::Int => (DataType::INT64, Vec::new()),
        Type::UInt => (DataType::UINT64, Vec::new()),
        Type::Float => (DataType::FLOAT64, Vec::new()),
        Type::Text | Type::Json => (DataType::TEXT, Vec::new()),
        Type::Bytes => (DataType::BINARY, Vec::new()),
        Type::Time => (DataType::TIME, Vec::new()),
        Type::List(item) => (DataType::LIST, vec![field_of("item", item)]),
        Type::Struct(fields) => {
            let children = fields.iter().map(|(name, kind)| field_of(name, kind));
            (DataType::STRUCT, children.collect())
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
            Values::U64(values) => (vec![validity, Memory::U64(values)], Vec::new()),
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
///     source: A `RecordBatch`, or a list of `Record`.
///     crc: The CRC-32C of the records before them.
///
/// Returns:
///     An unsigned 32-bit integer.
#[pyfunction]
#[pyo3(signature = (source, crc, /))]
pub(crate) fn batch_crc(source: &Bound<'_, PyAny>, crc: u32) -> PyResult<u32> {
    let py = source.py();
    let records = Records::of(source)?;
    let offsets: Vec<u64> = match source.cast::<PyList>() {
        Ok(list) => {
            let offsets = list
                .iter()
                .map(|record| record.getattr(interned!(py, "offset")?)?.extract());
            offsets.collect::<PyResult<_>>()?
        }
        Err(_) => Vec::new(),
    };
    Ok(py.detach(|| {
        let offsets = match &records {
            Records::Batch(batch) => batch.records().record_offsets(),
            Records::List(_) => &offsets,
        };
        offsets.iter().enumerate().fold(crc, |crc, (index, offset)| {
            let crc = cordwood::crc32c::extend(crc, &offset.to_le_bytes());
            cordwood::crc32c::extend(crc, records.get(index).unwrap_or_default())
        })
    }))
}

/// The kinds of the entities in records.
///
/// Args:
///     source: A `RecordBatch`, or a list of `Record`.
///
/// Returns:
///     Each kind, and the indices of its records; `None` is the kind of entities without a key. And
///     the indices of the records that cannot be read.
#[pyfunction]
#[pyo3(signature = (source, /))]
#[expect(clippy::type_complexity, reason = "a tuple of Python")]
pub(crate) fn entity_kinds(source: &Bound<'_, PyAny>) -> PyResult<(Vec<(Option<String>, Vec<usize>)>, Vec<usize>)> {
    let records = Records::of(source)?;
    Ok(source.py().detach(|| {
        let mut numbers = HashMap::new();
        let mut kinds: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        let mut left_out = Vec::new();
        for (index, record) in (0..).map_while(|index| Some((index, records.get(index)?))) {
            let kind = Rows::Entity
                .of(record, |row| row.text("__kind__").map(str::to_owned))
                .row;
            let Some(kind) = kind else {
                left_out.push(index);
                continue;
            };
            let number = *numbers.entry(kind).or_insert_with_key(|kind| {
                kinds.push((kind.clone(), Vec::new()));
                kinds.len() - 1
            });
            kinds[number].1.push(index);
        }
        (kinds, left_out)
    }))
}
