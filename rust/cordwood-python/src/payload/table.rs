//! The class `Table`: `cordwood_payload::table` for Python.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;

use cordwood_payload::table::{
    self, BytesAs, Decoder, Facts, Fits, Form, Given, Limits, Made, NotAdded, Options, Part, Record, Rows, Sink, Stop,
    Type, Values,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyList, PyString};

use super::write_batch::engine_of_log;
use crate::arrow::{Array, DataType, Field, Memory, array_capsules};
use crate::exclusive::Exclusive;
use crate::interpreter::interned;
use crate::interpreter::python_code::{PythonCode, module};
use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::{no_memory, try_bytes};
use crate::reader::record_batch::RecordBatch;
use crate::values::error::payload_fault;

/// The value with this name.
pub(super) fn named<T: Copy>(names: &[(&str, T)], name: &str) -> PyResult<T> {
    let found = names.iter().find(|(other, _)| *other == name);
    let value = found.map(|&(_, value)| value);
    value.ok_or_else(|| PyValueError::new_err(format!("'{name}' is not known")))
}

pub(super) const ROWS: [(&str, Rows); 14] = [
    ("raw", Rows::Raw),
    ("write-batch", Rows::WriteBatch),
    ("version-edit", Rows::VersionEdit),
    ("live-files", Rows::LiveFiles),
    ("entity", Rows::Entity),
    ("json", Rows::Json),
    ("wandb", Rows::Message),
    ("wandb-run", Rows::Run),
    ("wandb-history", Rows::History),
    ("wandb-summary", Rows::Summary),
    ("wandb-config", Rows::Config),
    ("wandb-metrics", Rows::Metrics),
    ("wandb-output", Rows::Output),
    ("swanlab-history", Rows::Swanlab),
];

const FORMS: [(&str, Form); 3] = [("arrow", Form::Columns), ("ndjson", Form::Ndjson), ("csv", Form::Csv)];

const BYTES_AS: [(&str, BytesAs); 4] = [
    ("object", BytesAs::Object),
    ("utf-8", BytesAs::Text),
    ("hex", BytesAs::Hex),
    ("base64", BytesAs::Base64),
];

const PARTS: [(Part, &str); 4] = [
    (Part::Record, "record"),
    (Part::Row, "row"),
    (Part::Value, "value"),
    (Part::Rest, "rest"),
];

/// The indices of records, the parts that are missing, and the faults.
type Faults<'py> = Vec<(usize, &'static str, Bound<'py, PyAny>)>;

/// Turns the records of logs into a table.
///
/// The columns are known, or learned. A table that learns them is open once the first records have
/// shown some: from then on, its rows are also written. If later rows need other columns, they and all
/// that follow only teach: the table is no longer open, and must be made again with all columns.
///
/// Args:
///     payload: The contents of the records, as in `cordwood._tables.payloads`.
///     form: `"arrow"`, `"ndjson"` or `"csv"`.
///     columns: Pairs of a name and a type from `cordwood._tables.schema`, if they are known.
///     always: The columns that a table has even if no row has a value in them.
///     wanted: The columns that are wanted, in their order; `None` for all. `a.b` is the field `b` of
///         the column `a`.
///     limit: The maximum number of rows.
///     opens_early: Whether a table that learns its columns is opened with those of the first records.
///     bytes_as: How bytes become text: `"object"`, `"utf-8"`, `"hex"` or `"base64"`. With `"utf-8"`, a row
///         with other bytes is a fault.
///     escapes_formulas: Whether text in CSV that a spreadsheet takes for a formula gets an apostrophe.
///     column_count_max: The maximum number of columns, including fields in columns.
///     field_count_max: The maximum number of fields in a column.
///     level_count_max: The maximum number of levels of lists and structures in a column.
///     row_count_max: The maximum number of rows in an Arrow batch.
///     cell_count_max: The maximum number of cells in an Arrow batch. One row may have more.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Table {
    rows: Rows,
    form: Form,
    parts: Exclusive<Parts>,
}

struct Parts {
    table: table::Table,
    decoder: Decoder,
    /// The types in Arrow of the columns, once the table is open.
    fields: Vec<Field>,
}

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (
        payload, form, columns = None, *, always = Vec::new(), wanted = None, limit = None, opens_early = true,
        bytes_as = "object", escapes_formulas = false, column_count_max, field_count_max, level_count_max, row_count_max, cell_count_max
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
        column_count_max: usize,
        field_count_max: usize,
        level_count_max: usize,
        row_count_max: usize,
        cell_count_max: usize,
    ) -> PyResult<Self> {
        let rows = named(&ROWS, payload)?;
        let form = named(&FORMS, form)?;
        let options = Options {
            form,
            always: types_of(always)?,
            wanted,
            row_count_max: limit,
            opens_early,
            bytes: named(&BYTES_AS, bytes_as)?,
            escapes_formulas,
            limits: Limits {
                columns: column_count_max,
                fields: field_count_max,
                levels: level_count_max,
            },
            batch_rows_max: row_count_max,
            batch_cells_max: cell_count_max,
        };
        let columns = columns.map(types_of).transpose()?;
        Ok(Table {
            rows,
            form,
            parts: Exclusive::new(Parts {
                table: table::Table::new(options, columns.as_deref()),
                decoder: Decoder::new(rows, Facts::default()),
                fields: columns
                    .iter()
                    .flatten()
                    .map(|(name, kind)| field_of(name, kind))
                    .collect(),
            }),
        })
    }

    /// Starts a log.
    ///
    /// Args:
    ///     first: Names and texts of the cells that each of its rows starts with.
    ///     dialect: The dialect of the log, if it is known.
    ///     families: The names of its column families by their numbers.
    ///     is_run: Whether it is a run of Weights & Biases even without a record.
    ///     has_salvaged: Whether rows with the offset of their record say whether it is salvaged.
    #[pyo3(signature = (first, *, dialect = None, families = BTreeMap::new(), is_run = false, has_salvaged = false))]
    fn start(
        &self,
        py: Python<'_>,
        first: Vec<(String, Option<String>)>,
        dialect: Option<&str>,
        families: BTreeMap<u32, Vec<u8>>,
        is_run: bool,
        has_salvaged: bool,
    ) -> PyResult<()> {
        let mut facts = facts_of(dialect);
        facts.families = families;
        facts.is_run = is_run;
        facts.has_salvaged = has_salvaged;
        let mut parts = self.parts.lock(py)?;
        parts.table.start(first);
        parts.decoder = Decoder::new(self.rows, facts);
        Ok(())
    }

    /// Takes the rows of records.
    ///
    /// Args:
    ///     source: A `RecordBatch`, or a list of `Record`.
    ///     start: The index of the first record to take.
    ///     only: The indices of the records to take, in ascending order; `None` for all. `start` is
    ///         then an index in this list.
    ///
    /// Returns:
    ///     The index of the record to continue with. The output: `bytes`, or for Arrow the indices of
    ///     the columns that have values, the number of rows and capsules of the Arrow C data interface.
    ///     The faults: the index of a record, the missing part (`"record"`, `"row"`, `"value"` or `"rest"`),
    ///     and a `PayloadError`. And how many more faults there are.
    ///
    /// Raises:
    ///     MemoryError: There is not enough memory.
    ///     TooManyColumnsError: There are too many columns.
    ///     HasFirstError: A row has a column with which each row starts.
    ///     MisfitError: A value does not fit its column, or is in none.
    #[pyo3(signature = (source, start, only = None, /))]
    fn feed<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        start: usize,
        only: Option<Vec<usize>>,
    ) -> PyResult<(usize, Vec<Bound<'py, PyAny>>, Faults<'py>, u64)> {
        let records = Records::of(source)?;
        let mut guard = self.parts.lock(py)?;
        let parts = &mut *guard;
        let (next, faults, more, made) = py.detach(|| {
            let Parts { table, decoder, .. } = &mut *parts;
            let next = match &only {
                Some(only) => table.feed(
                    decoder,
                    only[start..].iter().map_while(|&index| records.get(index)),
                    start,
                ),
                None => table.feed(decoder, (start..).map_while(|index| records.get(index)), start),
            };
            let (faults, more) = table.take_faults();
            (next, faults, more, table.take())
        });
        let stop = parts.table.stop().cloned();
        let made = made.map_err(|_| no_memory())?;
        let made = self.objects(py, parts, made)?;
        drop(guard);
        let index_of = |index: usize| only.as_ref().map_or(index, |only| only[index]);
        // Faults before it are returned first: the next call raises it.
        let stop = stop.filter(|_| faults.is_empty());
        if let Some(error) = stop.and_then(|stop| stopped(py, stop).transpose()) {
            let error = error?;
            if let Some(record) = records.get(index_of(next)) {
                error.value(py).setattr("offset", record.offset)?;
            }
            return Err(error);
        }
        Ok((next, made, faults_of(py, faults, index_of)?, more))
    }

    /// Takes the rows that are complete only at the end of a log.
    ///
    /// Returns:
    ///     Whether these are all: if not, it must be called again. And the output and the faults, as for
    ///     `feed`.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<(bool, Vec<Bound<'py, PyAny>>, Faults<'py>, u64)> {
        self.end(py, table::Table::rest)
    }

    /// Takes the rows that are held back until all logs were read.
    ///
    /// Returns:
    ///     As for `rest`.
    fn rest_of_all<'py>(&self, py: Python<'py>) -> PyResult<(bool, Vec<Bound<'py, PyAny>>, Faults<'py>, u64)> {
        self.end(py, |table, _| table.end())
    }

    /// The learned columns, with those that are always there.
    ///
    /// Returns:
    ///     The name of each column and its type, as in `cordwood._tables.schema`.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let columns = self.parts.lock(py)?.table.columns();
        let columns = columns.into_iter().map(|(name, kind)| {
            let kind = type_object(py, &kind)?;
            Ok((name, kind))
        });
        columns.collect()
    }

    /// The columns that are JSON.
    ///
    /// Returns:
    ///     The names of those with values of several types, and these types; and the names of those with
    ///     too many fields.
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn conflicts(&self, py: Python<'_>) -> PyResult<(Vec<(String, Vec<String>)>, Vec<String>)> {
        let parts = self.parts.lock(py)?;
        let Some(learner) = parts.table.learner() else {
            return Ok(Default::default());
        };
        let conflicts = learner.conflicts().into_iter();
        let conflicts = conflicts.map(|(name, kinds)| (name, kinds.into_iter().collect()));
        let overfull = learner.overfull().into_iter().map(str::to_owned);
        Ok((conflicts.collect(), overfull.collect()))
    }

    /// The uncertain point that the records of this log have shown so far; `None` if there is none.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.parts.lock(py)?.decoder.note().map(|note| note.to_string()))
    }

    /// Whether its rows are written. If not at the end, it must be made again with all columns.
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.parts.lock(py)?.table.is_open())
    }

    /// Lets the rows that follow only teach, as if the columns had grown.
    fn only_learn(&self, py: Python<'_>) -> PyResult<()> {
        self.parts.lock(py)?.table.only_learn();
        Ok(())
    }

    /// The number of rows.
    #[getter]
    fn row_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.parts.lock(py)?.table.row_count())
    }

    /// Whether there are as many rows as are wanted.
    #[getter]
    fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.parts.lock(py)?.table.stop(), Some(Stop::Full)))
    }

    /// The wanted columns that no row had; and the names of columns that rows had, for a message.
    #[getter]
    fn missing(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let parts = self.parts.lock(py)?;
        let missing = parts.table.missing();
        Ok((missing.wanted().to_vec(), missing.seen().map(str::to_owned).collect()))
    }
}

impl Table {
    fn end<'py>(
        &self,
        py: Python<'py>,
        take: impl FnOnce(&mut table::Table, &mut Decoder) -> bool + Send,
    ) -> PyResult<(bool, Vec<Bound<'py, PyAny>>, Faults<'py>, u64)> {
        let mut guard = self.parts.lock(py)?;
        let parts = &mut *guard;
        let (is_all, (faults, more), made) = py.detach(|| {
            let Parts { table, decoder, .. } = &mut *parts;
            let is_all = take(table, decoder);
            (is_all, table.take_faults(), table.take())
        });
        let made = self.objects(py, parts, made.map_err(|_| no_memory())?)?;
        let stop = parts.table.stop().cloned();
        drop(guard);
        match stop.and_then(|stop| stopped(py, stop).transpose()) {
            Some(error) => Err(error?),
            None => Ok((is_all, made, faults_of(py, faults, |index| index)?, more)),
        }
    }

    /// The output, for Python.
    fn objects<'py>(&self, py: Python<'py>, parts: &mut Parts, made: Vec<Made>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.form == Form::Columns && parts.fields.is_empty() && !made.is_empty() {
            parts.fields = parts
                .table
                .columns()
                .iter()
                .map(|(name, kind)| field_of(name, kind))
                .collect();
        }
        let object = |made| match made {
            Made::Text(text) => Ok(try_bytes(py, text.as_bytes())?.into_any()),
            Made::Batch(rows) => {
                let (mut numbers, mut fields, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
                for (number, array) in rows.columns {
                    numbers.push(number);
                    fields.push(parts.fields[number].clone());
                    arrays.push(Array::from(array));
                }
                let capsules: (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) =
                    array_capsules(py, &fields, Array::table(rows.row_count, arrays))?;
                Ok((numbers, rows.row_count, capsules).into_pyobject(py)?.into_any())
            }
        };
        made.into_iter().map(object).collect()
    }
}

/// The faults of records, whose indices `index_of` converts.
fn faults_of<'py>(
    py: Python<'py>,
    faults: Vec<(usize, table::Fault)>,
    index_of: impl Fn(usize) -> usize,
) -> PyResult<Faults<'py>> {
    let faults = faults.into_iter().map(|(index, fault)| {
        let part = PARTS.iter().find(|(part, _)| *part == fault.part);
        let name = part.map_or("", |(_, name)| name);
        Ok((index_of(index), name, payload_fault(py, &fault)?))
    });
    faults.collect()
}

/// The exception for a table that takes no more records; `None` if there are enough rows.
fn stopped(py: Python<'_>, stop: Stop) -> PyResult<Option<PyErr>> {
    let schema = |class: &str, message: String| {
        let error = module(py, "cordwood._tables.schema")?.getattr(class)?.run((message,))?;
        Ok(Some(PyErr::from_value(error)))
    };
    match stop {
        Stop::TooManyColumns => schema("TooManyColumnsError", "there are too many columns".to_owned()),
        Stop::HasFirst(name) => schema("HasFirstError", name),
        Stop::NotAdded(NotAdded::Misfit(misfit)) => schema("MisfitError", misfit.to_string()),
        Stop::NotAdded(error @ NotAdded::SameNames(_)) => schema("MisfitError", error.to_string()),
        Stop::NotAdded(NotAdded::NoMemory) => Ok(Some(no_memory())),
        Stop::Full => Ok(None),
    }
}

/// Records of a batch, or of a list.
enum Records {
    Batch(Arc<PooledBatch>),
    List(Vec<(u64, u64, bool, PyBackedBytes)>),
}

impl Records {
    /// A `RecordBatch`, or a list of `Record`.
    fn of(records: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(batch) = records.cast::<RecordBatch>() {
            return Ok(Records::Batch(batch.get().shared()));
        }
        let py = records.py();
        let (offset, end_offset) = (interned!(py, "offset")?, interned!(py, "end_offset")?);
        let (salvaged, data) = (interned!(py, "salvaged")?, interned!(py, "data")?);
        let records = records.cast::<PyList>()?.iter().map(|record| {
            Ok((
                record.getattr(offset)?.extract()?,
                record.getattr(end_offset)?.extract()?,
                record.getattr(salvaged)?.extract()?,
                record.getattr(data)?.extract()?,
            ))
        });
        Ok(Records::List(records.collect::<PyResult<_>>()?))
    }

    fn get(&self, index: usize) -> Option<Record<'_>> {
        match self {
            Records::Batch(batch) => Some(Record {
                offset: batch.records().record_offsets().get(index).copied()?,
                ..Record::of(batch.records().get(index)?)
            }),
            Records::List(records) => records
                .get(index)
                .map(|(offset, end_offset, is_salvaged, data)| Record {
                    offset: *offset,
                    end_offset: *end_offset,
                    is_salvaged: *is_salvaged,
                    data,
                }),
        }
    }
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
    struct KindOf(Option<String>);

    impl Sink for KindOf {
        fn row(&mut self, row: &table::Row<'_>) -> bool {
            self.0 = row.text("__kind__").map(str::to_owned);
            true
        }

        fn fault(&mut self, _: table::Fault) {}
    }

    let records = Records::of(source)?;
    Ok(source.py().detach(|| {
        let mut decoder = Decoder::new(Rows::Entity, Facts::default());
        let mut numbers = HashMap::new();
        let mut kinds: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        let mut left_out = Vec::new();
        for (index, record) in (0..).map_while(|index| Some((index, records.get(index)?))) {
            let mut kind = KindOf(None);
            if decoder.record(&record, &mut kind).is_err() {
                left_out.push(index);
                continue;
            }
            let number = *numbers.entry(kind.0).or_insert_with_key(|kind| {
                kinds.push((kind.clone(), Vec::new()));
                kinds.len() - 1
            });
            kinds[number].1.push(index);
        }
        (kinds, left_out)
    }))
}

/// Whether a record is of the kind that a payload is about, all of it.
///
/// Args:
///     payload: The name of the payload.
///     record: The record.
///     dialect: The dialect of its log, if it is known.
///
/// Returns:
///     Whether it can be decoded without a fault.
#[pyfunction]
#[pyo3(signature = (payload, record, dialect, /))]
pub(crate) fn is_decoded(payload: &str, record: &[u8], dialect: Option<&str>) -> PyResult<bool> {
    let mut decoder = Decoder::new(named(&ROWS, payload)?, facts_of(dialect));
    Ok(matches!(decoder.value(record, &mut |_| ()), Ok(true)))
}

/// The facts that the dialect of a log shows.
pub(super) fn facts_of(dialect: Option<&str>) -> Facts {
    let mut facts = Facts::default();
    facts.engine = engine_of_log(dialect);
    facts
}

/// The types of columns.
fn types_of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Vec<(String, Type)>> {
    let types = columns.into_iter().map(|(name, kind)| Ok((name, type_of(&kind)?)));
    types.collect()
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
    if kind.hasattr("made_as")? {
        let count = kind.getattr("size")?.extract()?;
        let fits: String = kind.getattr("fits")?.extract()?;
        return Ok(Type::Given(Arc::new(Given {
            name: kind.getattr("name")?.extract()?,
            made_as: type_of(&kind.getattr("made_as")?)?,
            fits: match fits.as_str() {
                "same" => Fits::Same,
                "nothing" => Fits::Nothing,
                "integers" => Fits::Integers(count),
                "digits" => Fits::Digits(count),
                "floats" => Fits::Floats(count),
                "bytes" => Fits::Bytes,
                "count" => Fits::Count(count),
                "times" => Fits::Times(count),
                "map" => Fits::Map,
                other => return Err(PyValueError::new_err(format!("no values are {other}"))),
            },
            is_nullable: kind.getattr("is_nullable")?.extract()?,
        })));
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

/// The `ColumnType` of `cordwood._tables.schema` for a type that was learned.
fn type_object<'py>(py: Python<'py>, kind: &Type) -> PyResult<Bound<'py, PyAny>> {
    let schema = || module(py, "cordwood._tables.schema");
    let name = match kind.made_as() {
        Type::Bool => "bool",
        Type::Int => "int",
        Type::UInt => "uint",
        Type::Float => "float",
        Type::Text => "text",
        Type::Bytes => "bytes",
        Type::Time => "time",
        Type::Json | Type::Given(_) => "json",
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
    let (data_type, children) = match kind.made_as() {
        Type::Bool => (DataType::BOOL, Vec::new()),
        Type::Int => (DataType::INT64, Vec::new()),
        Type::UInt => (DataType::UINT64, Vec::new()),
        Type::Float => (DataType::FLOAT64, Vec::new()),
        Type::Text | Type::Json | Type::Given(_) => (DataType::TEXT, Vec::new()),
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
