//! The class `Table`, which wraps `cordwood_payload::table` for Python.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use cordwood_payload::table::{
    self, BytesAs, Column, Decoder, Facts, Fits, Form, Given, Limits, Made, NotAdded, Options, Part, Stop, Type, Values,
};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use super::objects::{decoder_of, facts_of};
use crate::arrow::{Array, DataType, Field, Memory, array_capsules, schema_capsule};
use crate::exclusive::Exclusive;
use crate::interpreter::imported;
use crate::interpreter::python_code::{PythonCode, module};
use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::{no_memory, try_bytes};
use crate::reader::record_batch::RecordBatch;
use crate::values::error::payload_error;
use crate::values::options::chosen;
use crate::values::record::Record;

const FORMS: [(&str, Form); 3] = [("arrow", Form::Columns), ("ndjson", Form::Ndjson), ("csv", Form::Csv)];

const BYTES_AS: [(&str, BytesAs); 4] = [
    ("object", BytesAs::Object),
    ("utf-8", BytesAs::Text),
    ("hex", BytesAs::Hex),
    ("base64", BytesAs::Base64),
];

/// The result of one call to a table: the output, the faults, and the number of further faults.
/// Each fault gives the index of the record, the missing part, and the error.
type Taken<'py, T> = (
    T,
    Vec<Bound<'py, PyAny>>,
    Vec<(usize, &'static str, Py<PyBaseException>)>,
    u64,
);

/// The records of a batch or list.
pub(super) enum Records {
    Batch(Arc<PooledBatch>),
    List(Vec<(u64, u64, bool, PyBackedBytes)>),
}

impl Records {
    /// Converts a `RecordBatch`, or a list of `Record`.
    pub(super) fn of(records: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(batch) = records.cast::<RecordBatch>() {
            return Ok(Records::Batch(batch.get().shared()));
        }
        let records = records.cast::<PyList>()?.iter().map(|record| {
            let record = record.cast::<Record>()?.get();
            let data = record.data.bind(records.py()).clone().into();
            Ok((record.offset, record.end_offset, record.salvaged, data))
        });
        Ok(Records::List(records.collect::<PyResult<_>>()?))
    }

    /// Returns a record and, if `has_salvaged` is true, whether the record was salvaged.
    pub(super) fn get(&self, index: usize, has_salvaged: bool) -> Option<table::Record<'_>> {
        let (offset, end_offset, is_salvaged, data) = match self {
            Records::Batch(batch) => {
                let records = batch.records();
                let offset = *records.record_offsets().get(index)?;
                let end_offset = records.record_end_offset(index)?;
                let is_salvaged = has_salvaged && records.is_salvaged(index);
                (offset, end_offset, is_salvaged, records.get(index)?)
            }
            Records::List(records) => {
                let (offset, end_offset, is_salvaged, data) = records.get(index)?;
                (*offset, *end_offset, *is_salvaged, &data[..])
            }
        };
        Some(table::Record {
            offset,
            end_offset,
            is_salvaged: has_salvaged.then_some(is_salvaged),
            data,
        })
    }
}

/// Turns the records of logs into a table.
///
/// The columns are either known in advance or learned from the rows. If they are learned, the table
/// is opened once the first records have shown some of them. From then on, the table also writes
/// its rows. If a later row needs a new column, the table stops writing. From that row onward, it
/// only collects the names and types of columns. You must then create another table with all the
/// columns.
///
/// Args:
///     payload: The contents of the records, as in `cordwood._tables.payloads`.
///     form: `"arrow"`, `"ndjson"` or `"csv"`.
///     columns: The columns, if known, as pairs of a name and a type from
///         `cordwood._tables.schema`.
///     always: The columns that the table has even if no row has a value in them.
///     wanted: The columns to keep, in this order, or `None` for all columns. `a.b` is the field
///         `b` of the column `a`.
///     limit: The maximum number of rows.
///     opens_early: If the columns are learned, whether to open the table with the columns found in
///         the first records.
///     bytes_as: How to convert bytes to text: `"object"`, `"utf-8"`, `"hex"` or `"base64"`. With
///         `"utf-8"`, a row whose bytes are not UTF-8 is reported as a fault.
///     escapes_formulas: Whether to put an apostrophe before CSV text that a spreadsheet would
///         interpret as a formula.
///     has_salvaged: If true, rows with a record offset also show whether the record was salvaged.
///     learned_max: Three limits for learned columns. The first limits the number of columns,
///         including fields inside columns. The second limits the number of fields in a column. The
///         third limits the nesting depth of lists and structures in a column.
///     batch_max: The maximum number of rows in an Arrow batch, and the maximum number of cells if
///         the batch has more than one row.
#[pyclass(frozen, subclass, module = "cordwood._native")]
pub(crate) struct Table {
    payload: String,
    /// If true, rows with a record offset also show whether the record was salvaged.
    has_salvaged: bool,
    parts: Exclusive<Parts>,
}

struct Parts {
    table: table::Table,
    decoder: Decoder,
    /// The Arrow types of the columns. Empty until a batch exists.
    fields: Vec<Field>,
}

impl Parts {
    /// Returns the Arrow types of the columns.
    fn new_fields(&self) -> Vec<Field> {
        let columns = self.table.columns();
        columns.iter().map(|(name, kind)| field_of(name, kind)).collect()
    }

    /// Returns the output as a Python object.
    fn object<'py>(&mut self, py: Python<'py>, made: Made) -> PyResult<Bound<'py, PyAny>> {
        let rows = match made {
            Made::Text(text) => return Ok(try_bytes(py, text.as_bytes())?.into_any()),
            Made::Batch(rows) => rows,
        };
        if self.fields.is_empty() {
            self.fields = self.new_fields();
        }
        let (mut numbers, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (number, column) in rows.columns {
            numbers.push(number);
            fields.push(self.fields[number].clone());
            arrays.push(Array::from(column));
        }
        let capsules: (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) =
            array_capsules(py, &fields, Array::table(rows.row_count, arrays))?;
        Ok((numbers, rows.row_count, capsules).into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (
        payload, form, columns = None, *, always = Vec::new(), wanted = None, limit = None, opens_early = true,
        bytes_as = "object", escapes_formulas = false, has_salvaged = false, learned_max, batch_max
    ))]
    fn new(
        payload: &str,
        form: &str,
        columns: Option<Vec<(String, Bound<'_, PyAny>)>>,
        always: Vec<(String, Bound<'_, PyAny>)>,
        wanted: Option<Vec<String>>,
        limit: Option<u64>,
        opens_early: bool,
        bytes_as: &str,
        escapes_formulas: bool,
        has_salvaged: bool,
        learned_max: (usize, usize, usize),
        batch_max: (usize, usize),
    ) -> PyResult<Self> {
        let columns = columns.map(types_of).transpose()?;
        let known = columns.clone().filter(|columns| !columns.is_empty());
        let options = Options {
            form: chosen("form", FORMS, form)?,
            always: known.map_or_else(|| types_of(always), Ok)?,
            wanted,
            row_count_max: limit,
            opens_early,
            bytes: chosen("bytes_as", BYTES_AS, bytes_as)?,
            escapes_formulas,
            limits: Limits {
                columns: learned_max.0,
                fields: learned_max.1,
                levels: learned_max.2,
            },
            batch_rows_max: batch_max.0,
            batch_cells_max: batch_max.1,
        };
        Ok(Table {
            payload: payload.to_owned(),
            has_salvaged,
            parts: Exclusive::new(Parts {
                table: table::Table::new(options, columns.as_deref()),
                decoder: decoder_of(payload, Facts::default())?,
                fields: Vec::new(),
            }),
        })
    }

    /// Starts a log.
    ///
    /// Args:
    ///     first: The names and texts of the leading cells, which are the same in every row from
    ///         the log.
    ///     dialect: The dialect of the log, if it is known.
    ///     families: The names of the log's column families, by number.
    ///     is_run: Whether to treat the log as a Weights & Biases run even if it has no records.
    #[pyo3(signature = (first, *, dialect = None, families = BTreeMap::new(), is_run = false))]
    fn start_log(
        &self,
        py: Python<'_>,
        first: Vec<(String, Option<String>)>,
        dialect: Option<&str>,
        families: BTreeMap<u32, Vec<u8>>,
        is_run: bool,
    ) -> PyResult<()> {
        let mut facts = facts_of(dialect);
        facts.families = families;
        facts.is_run = is_run;
        let mut parts = self.parts.lock(py)?;
        parts.table.start(first);
        parts.decoder = decoder_of(&self.payload, facts)?;
        Ok(())
    }

    /// Takes rows from records.
    ///
    /// Args:
    ///     source: A `RecordBatch`, or a list of `Record`.
    ///     start: The index of the first record to take.
    ///     only: The indices of the records to take, in ascending order, or `None` for all records.
    ///         If this is a list, `start` is a position in the list.
    ///
    /// Returns:
    ///     A tuple of four items: the index of the record to continue with, a list with the output,
    ///     a list of faults, and the number of further faults. If there is no output, the first
    ///     list is empty. The output is `bytes`. For Arrow, it is a tuple of the indices of the
    ///     columns that have values, the number of rows, and capsules of the Arrow C data
    ///     interface. Each fault gives the index of a record, the missing part (`"record"`,
    ///     `"row"`, `"value"` or `"rest"`), and a `PayloadError`.
    ///
    /// Raises:
    ///     MemoryError: There is not enough memory.
    ///     TooManyColumnsError: There are too many columns.
    ///     HasFirstError: A row has a column with the same name as a leading cell.
    ///     MisfitError: A value does not fit its column, or has no column.
    #[pyo3(signature = (source, start, only = None, /))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        start: usize,
        only: Option<Vec<usize>>,
    ) -> PyResult<Taken<'py, usize>> {
        let records = Records::of(source)?;
        let index_of = |at: usize| only.as_ref().map_or(Some(at), |only| only.get(at).copied());
        let record_at = |at: usize| records.get(index_of(at)?, self.has_salvaged);
        let step = |table: &mut table::Table, decoder: &mut Decoder| {
            let next = table.feed(decoder, (start..).map_while(&record_at), start);
            (next, record_at(next).map(|record| record.offset))
        };
        self.taken(py, step, |at| index_of(at).unwrap_or(at))
    }

    /// Takes the rows that become complete only at the end of a log.
    ///
    /// Args:
    ///     is_last: Whether this log was the last one. If so, this method takes the rows that the
    ///         table has held back.
    ///
    /// Returns:
    ///     A tuple of four items. The first says whether all these rows have been taken; if not,
    ///     call this method again. The other items are the same as for `take`.
    #[pyo3(signature = (*, is_last))]
    fn take_rest<'py>(&self, py: Python<'py>, is_last: bool) -> PyResult<Taken<'py, bool>> {
        let step = |table: &mut table::Table, decoder: &mut Decoder| {
            let is_all = if is_last { table.end() } else { table.rest(decoder) };
            // If the table cannot take a row, the caller tries again and gets the error.
            (is_all && table.stop().is_none_or(|stop| *stop == Stop::Full), None)
        };
        self.taken(py, step, |at| at)
    }

    /// Returns the known or learned columns, in order, each with its type.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = self.parts.lock(py)?.table.columns();
        let found = PyDict::new(py);
        for (name, kind) in columns {
            found.set_item(name, type_object(py, &kind)?)?;
        }
        Ok(found)
    }

    /// Returns the columns and their types as a capsule of the Arrow C schema interface.
    ///
    /// Returns:
    ///     The capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.parts.lock(py)?.new_fields())
    }

    /// Returns the columns that were converted to JSON.
    ///
    /// The first item is a dictionary. For each column whose values have different types, it
    /// contains a list of those types. The second item lists the columns that are too wide.
    ///
    /// `a.b` is a field in `a`, and `a[]` means the items in `a`.
    #[getter]
    fn conflicts<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
        let (found, parts) = (PyDict::new(py), self.parts.lock(py)?);
        let Some(learner) = parts.table.learner() else {
            return Ok((found, Vec::new()));
        };
        for (name, kinds) in learner.conflicts() {
            found.set_item(name, kinds.into_iter().collect::<Vec<_>>())?;
        }
        let overfull = learner.overfull().into_iter().map(str::to_owned);
        Ok((found, overfull.collect()))
    }

    /// A message if the records so far can be read in more than one way, or `None` otherwise.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.parts.lock(py)?.decoder.note())
    }

    /// Whether the table writes its rows.
    ///
    /// If this is false at the end, you must create another table with all the columns.
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.parts.lock(py)?.table.is_open())
    }

    /// Stops writing rows.
    ///
    /// After this call, the table only collects the names and types of columns, as it does once a
    /// row needs a new column.
    fn only_learn(&self, py: Python<'_>) -> PyResult<()> {
        self.parts.lock(py)?.table.only_learn();
        Ok(())
    }

    /// The number of rows.
    #[getter]
    fn row_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.parts.lock(py)?.table.row_count())
    }

    /// Whether the table has reached its maximum number of rows.
    #[getter]
    fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.parts.lock(py)?.table.stop(), Some(Stop::Full)))
    }

    /// Returns the requested columns that no row contained, and the known columns.
    ///
    /// A column is known if it always exists or has appeared in a row.
    #[getter]
    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let parts = self.parts.lock(py)?;
        let missing = parts.table.missing();
        Ok((missing.wanted().to_vec(), missing.seen().map(str::to_owned).collect()))
    }
}

impl Table {
    /// Calls `step` on the table. `step` also returns the offset of the record where the table
    /// stopped. `index_of` converts the index in each fault to the index of its record.
    fn taken<'py, T: Send>(
        &self,
        py: Python<'py>,
        step: impl FnOnce(&mut table::Table, &mut Decoder) -> (T, Option<u64>) + Send,
        index_of: impl Fn(usize) -> usize,
    ) -> PyResult<Taken<'py, T>> {
        let mut guard = self.parts.lock(py)?;
        let parts = &mut *guard;
        let ((result, offset), (faults, more_count), made) = py.detach(|| {
            let result = step(&mut parts.table, &mut parts.decoder);
            (result, parts.table.take_faults(), parts.table.take())
        });
        let made = made.map_err(|_| no_memory())?;
        let made = made.map(|made| parts.object(py, made)).transpose()?;
        let stop = parts.table.stop().filter(|stop| **stop != Stop::Full).cloned();
        // Creating an exception runs Python code, so the lock is released first.
        drop(guard);
        // Faults that precede the error are returned first. The next call raises the error.
        if faults.is_empty()
            && let Some(stop) = stop
        {
            let error = stopped(py, stop)?;
            if let Some(offset) = offset {
                error.value(py).setattr("offset", offset)?;
            }
            return Err(error);
        }
        let faults = faults.into_iter().map(|(index, fault)| {
            let part = match fault.part {
                Part::Record => "record",
                Part::Row => "row",
                Part::Value => "value",
                Part::Rest => "rest",
            };
            (index_of(index), part, payload_error(py, fault).into_value(py))
        });
        Ok((result, made.into_iter().collect(), faults.collect(), more_count))
    }
}

/// Returns the exception that explains why a table no longer accepts records.
fn stopped(py: Python<'_>, stop: Stop) -> PyResult<PyErr> {
    let (class, message) = match stop {
        Stop::TooManyColumns => ("TooManyColumnsError", "there are too many columns".to_owned()),
        Stop::HasFirst(name) => ("HasFirstError", name),
        Stop::NotAdded(NotAdded::NoMemory) | Stop::Full => return Ok(no_memory()),
        Stop::NotAdded(error) => ("MisfitError", error.to_string()),
    };
    let class = module(py, "cordwood._tables.schema")?.getattr(class)?;
    Ok(PyErr::from_value(class.run((message,))?))
}

/// Converts the type of each column.
fn types_of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Vec<(String, Type)>> {
    let types = columns.into_iter().map(|(name, kind)| Ok((name, type_of(&kind)?)));
    types.collect()
}

/// The types that aren't nested. Each one comes with its name in `cordwood._tables.schema` and its
/// Arrow type.
const TYPES: [(&str, Type, DataType); 8] = [
    ("bool", Type::Bool, DataType::BOOL),
    ("int", Type::Int, DataType::INT64),
    ("uint", Type::UInt, DataType::UINT64),
    ("float", Type::Float, DataType::FLOAT64),
    ("text", Type::Text, DataType::TEXT),
    ("bytes", Type::Bytes, DataType::BINARY),
    ("time", Type::Time, DataType::TIME),
    ("json", Type::Json, DataType::TEXT),
];

/// The fields of a `GivenAs` in `cordwood._tables.schema`.
type GivenAs<'py> = (String, Bound<'py, PyAny>, String, u64, bool);

/// Converts a `ColumnType` from `cordwood._tables.schema`.
fn type_of(kind: &Bound<'_, PyAny>) -> PyResult<Type> {
    if let Ok(name) = kind.cast::<PyString>() {
        let types = TYPES.map(|(name, kind, _)| (name, kind));
        return chosen("a type", types, name.to_str()?);
    }
    if let Ok((name, made_as, fits, size, is_nullable)) = kind.extract::<GivenAs<'_>>() {
        let choices = [
            ("same", Fits::Same),
            ("nothing", Fits::Nothing),
            ("integers", Fits::Integers(size)),
            ("digits", Fits::Digits(size)),
            ("floats", Fits::Floats(size)),
            ("bytes", Fits::Bytes),
            ("count", Fits::Count(size)),
            ("times", Fits::Times(size)),
            ("map", Fits::Map),
        ];
        return Ok(Type::Given(Arc::new(Given {
            name,
            made_as: type_of(&made_as)?,
            fits: chosen("fits", choices, &fits)?,
            is_nullable,
        })));
    }
    if kind.hasattr("item")? {
        return Ok(Type::List(Box::new(type_of(&kind.getattr("item")?)?)));
    }
    let fields = types_of(kind.getattr("fields")?.extract()?)?;
    Ok(Type::Struct(Arc::new(fields.into_iter().collect())))
}

/// Returns the type used to build a column of type `kind`, as a `ColumnType` from
/// `cordwood._tables.schema`.
fn type_object<'py>(py: Python<'py>, kind: &Type) -> PyResult<Bound<'py, PyAny>> {
    match kind.made_as() {
        Type::List(item) => imported!(py, "cordwood._tables.schema", "ListOf")?.run((type_object(py, item)?,)),
        Type::Struct(fields) => {
            let fields = fields.iter().map(|(name, kind)| Ok((name, type_object(py, kind)?)));
            let fields = PyTuple::new(py, fields.collect::<PyResult<Vec<_>>>()?)?;
            imported!(py, "cordwood._tables.schema", "StructOf")?.run((fields,))
        }
        plain => Ok(PyString::new(py, plain_type(plain).0).into_any()),
    }
}

/// Returns the name and the Arrow type of a type that isn't nested.
fn plain_type(plain: &Type) -> (&'static str, DataType) {
    let found = TYPES.into_iter().find(|(_, kind, _)| kind == plain);
    found.map_or(("json", DataType::TEXT), |(name, _, data_type)| (name, data_type))
}

/// Returns the Arrow field with this name and type.
fn field_of(name: &str, kind: &Type) -> Field {
    let (data_type, children) = match kind.made_as() {
        Type::List(item) => (DataType::LIST, vec![field_of("item", item)]),
        Type::Struct(fields) => {
            let children = fields.iter().map(|(name, kind)| field_of(name, kind));
            (DataType::STRUCT, children.collect())
        }
        plain => (plain_type(plain).1, Vec::new()),
    };
    Field {
        // In the Arrow interface, a name ends at the first NUL, so each NUL in a name is escaped.
        name: CString::new(name.replace('\0', "\\x00")).unwrap_or_default().into(),
        data_type,
        is_nullable: true,
        children,
    }
}

impl From<Column> for Array {
    fn from(column: Column) -> Self {
        let (len, null_count) = (column.len(), column.null_count());
        let (validity, values) = column.into_parts();
        let (mut buffers, mut children) = (Vec::new(), Vec::new());
        match values {
            Values::Bool(bits) => buffers.push(Memory::Bytes(bits.into_bytes())),
            Values::I64(values) => buffers.push(Memory::I64(values)),
            Values::U64(values) => buffers.push(Memory::U64(values)),
            Values::F64(values) => buffers.push(Memory::F64(values)),
            Values::Bytes { offsets, data } => buffers.extend([Memory::I32(offsets), Memory::Bytes(data)]),
            Values::List { offsets, items, .. } => {
                buffers.push(Memory::I32(offsets));
                children.push(Array::from(*items));
            }
            Values::Struct(fields) => children.extend(fields.into_iter().map(Array::from)),
        }
        Array {
            null_count,
            validity: validity.map(Memory::Bytes),
            children,
            ..Array::plain(len, buffers)
        }
    }
}
