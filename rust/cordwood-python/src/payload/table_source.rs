//! The rows of a table: those of records, which are decoded here, and those that Python code made.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use cordwood_payload::table::{Item, Row, Rows, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::interpreter::python_code::PythonCode;
use crate::interpreter::{imported, interned};
use crate::memory::batch_pool::PooledBatch;
use crate::reader::record_batch::RecordBatch;

/// The maximum number of records left out at a time: each becomes a Python object.
const LEFT_OUT_MAX: usize = 1_000;

/// Records that are decoded here.
pub(super) enum Records {
    Batch(Arc<PooledBatch>),
    List(Vec<PyBackedBytes>),
}

impl Records {
    /// A `RecordBatch`, or a list of `Record`.
    pub(super) fn of(records: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(batch) = records.cast::<RecordBatch>() {
            return Ok(Records::Batch(batch.get().shared()));
        }
        let data = interned!(records.py(), "data")?;
        let records = records.cast::<PyList>()?.iter();
        let records = records.map(|record| Ok(record.getattr(data)?.extract()?));
        Ok(Records::List(records.collect::<PyResult<_>>()?))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Records::Batch(batch) => batch.records().len(),
            Records::List(records) => records.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        match self {
            Records::Batch(batch) => batch.records().get(index),
            Records::List(records) => records.get(index).map(|record| &record[..]),
        }
    }

    /// Calls `take` with the rows of some records, as [`Source::take`] does.
    pub(super) fn take<S>(
        &self,
        rows: Rows,
        range: Range<usize>,
        mut take: impl FnMut(&Row<'_>) -> Result<bool, S>,
    ) -> Took<S> {
        let mut took = Took::at(range.start);
        while took.next < range.end
            && took.left_out.len() < LEFT_OUT_MAX
            && let Some(record) = self.get(took.next)
        {
            let decoded = rows.of(record, &mut take);
            let index = took.next;
            if !took.advance(decoded.row) {
                break;
            }
            if decoded.has_fault {
                took.left_out.push(index);
            }
        }
        took
    }
}

/// Where rows come from.
pub(super) enum Source<'py> {
    Records(Rows, Records),
    /// Rows, and whether the fields of a value must have different names as UTF-8.
    Rows(Bound<'py, PyList>, bool),
}

/// How far some rows were taken.
#[derive(Debug)]
pub(super) struct Took<S> {
    /// The index of the record to continue with.
    pub(super) next: usize,
    /// The indices of the records that cannot be read, or not completely.
    pub(super) left_out: Vec<usize>,
    /// Why the next row was not taken; `None` also if there was no room for it.
    pub(super) stop: Option<S>,
}

impl<'py> Source<'py> {
    /// Records, decoded as `rows`; or a list of `dict`, if that is `None`, in which the fields of a
    /// value must have different names as UTF-8, if `is_strict`.
    pub(super) fn of(source: &Bound<'py, PyAny>, rows: Option<Rows>, is_strict: bool) -> PyResult<Self> {
        Ok(match rows {
            Some(rows) => Source::Records(rows, Records::of(source)?),
            None => Source::Rows(source.cast::<PyList>()?.clone(), is_strict),
        })
    }

    /// Calls `take` with rows, until it returns that there is no room for one, or why it cannot take
    /// one. It must not need the interpreter.
    pub(super) fn take<S: Send>(
        &self,
        py: Python<'py>,
        begin: usize,
        mut take: impl FnMut(&Row<'_>) -> Result<bool, S> + Send,
    ) -> PyResult<Took<S>> {
        match self {
            Source::Records(rows, records) => Ok(py.detach(|| records.take(*rows, begin..records.len(), take))),
            Source::Rows(rows, is_strict) => {
                let mut took = Took::at(begin);
                while took.next < rows.len() {
                    let items = row_items(rows.get_item(took.next)?.cast::<PyDict>()?, *is_strict)?;
                    if !took.advance(Some(take(&Row::of_items(&items)))) {
                        break;
                    }
                }
                Ok(took)
            }
        }
    }
}

impl<S> Took<S> {
    fn at(next: usize) -> Self {
        Took {
            next,
            left_out: Vec::new(),
            stop: None,
        }
    }

    /// Goes on to the next record, if this one was taken, or has no row. Returns whether it was.
    fn advance(&mut self, taken: Option<Result<bool, S>>) -> bool {
        let is_taken = match taken {
            Some(Err(stop)) => {
                self.stop = Some(stop);
                false
            }
            Some(Ok(has_room)) => has_room,
            None => true,
        };
        self.next += usize::from(is_taken);
        is_taken
    }
}

/// The values of a row, by the names of its columns.
fn row_items(row: &Bound<'_, PyDict>, is_strict: bool) -> PyResult<Vec<Item<'static>>> {
    let items = row.iter().map(|(name, value)| {
        let name = column_name(name.cast::<PyString>()?)?;
        Ok((name.into(), value_of(&value, is_strict)?))
    });
    items.collect()
}

/// A value of Python, in which a lone surrogate becomes its escape, six characters.
fn value_of(value: &Bound<'_, PyAny>, is_strict: bool) -> PyResult<Value<'static>> {
    let py = value.py();
    Ok(if value.is_none() {
        Value::Null
    } else if let Ok(text) = value.cast::<PyString>() {
        Value::Text(text_of(text)?.into())
    } else if value.is_instance_of::<PyBool>() {
        Value::Bool(value.extract()?)
    } else if let Ok(number) = value.cast::<PyInt>() {
        match number.extract() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Huge(number.str()?.to_str()?.to_owned().into()),
        }
    } else if value.is_instance_of::<PyFloat>() {
        Value::Float(value.extract()?)
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Value::Bytes(bytes.as_bytes().to_vec().into())
    } else if let Ok(items) = value.cast::<PyList>() {
        Value::Array(
            items
                .iter()
                .map(|item| value_of(&item, is_strict))
                .collect::<PyResult<_>>()?,
        )
    } else if let Ok(fields) = value.cast::<PyDict>() {
        let items = fields.iter().map(|(name, value)| {
            let name = text_of(name.cast::<PyString>()?)?;
            Ok((name.into(), value_of(&value, is_strict)?))
        });
        let items: Vec<Item<'static>> = items.collect::<PyResult<_>>()?;
        if is_strict {
            check_names(py, &items)?;
        }
        Value::Object(items)
    } else if value.is_a(imported!(py, "datetime", "datetime")?)? {
        let microseconds = imported!(py, "cordwood._tables.schema", "microseconds")?;
        Value::Time(microseconds.run((value,))?.extract()?)
    } else {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!("a table has no values of {kind}")));
    })
}

/// Text as UTF-8. A lone surrogate becomes its escape.
fn text_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => {
            let bytes = encoded(text, "backslashreplace")?;
            Ok(String::from_utf8_lossy(bytes.as_bytes()).into_owned())
        }
    }
}

fn encoded<'py>(text: &Bound<'py, PyString>, errors: &str) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = text.run_method(interned!(text.py(), "encode")?, ("utf-8", errors))?;
    Ok(bytes.cast_into()?)
}

/// Checks that no two fields have the same name now, which a `dict` cannot have.
fn check_names(py: Python<'_>, items: &[Item<'_>]) -> PyResult<()> {
    // Only a name with an escape can be that of another.
    if !items.iter().any(|(name, _)| name.contains('\\')) {
        return Ok(());
    }
    let mut names = HashSet::new();
    match items.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => {
            let error = imported!(py, "cordwood._tables.schema", "SameNamesError")?;
            let message = format!("two fields have the name '{name}'");
            Err(PyErr::from_value(error.run((message,))?))
        }
        None => Ok(()),
    }
}

/// The name of a column of rows as text that is UTF-8. Two columns never have the same: one that is
/// not UTF-8 becomes a NUL and hexadecimal digits, and so does one that begins with a NUL.
pub(super) fn column_name(name: &Bound<'_, PyString>) -> PyResult<String> {
    if let Ok(text) = name.to_str()
        && !text.starts_with('\0')
    {
        return Ok(text.to_owned());
    }
    let bytes = encoded(name, "surrogatepass")?;
    let digits = bytes.as_bytes().iter().map(|byte| format!("{byte:02x}"));
    Ok(format!("\0{}", digits.collect::<String>()))
}

/// The name from which [`column_name`] made this one.
pub(super) fn given_name<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let Some(digits) = name.strip_prefix('\0') else {
        return Ok(PyString::new(py, name).into_any());
    };
    let bytes = imported!(py, "builtins", "bytes")?;
    let bytes = bytes.run_method(interned!(py, "fromhex")?, (digits,))?;
    bytes.run_method(interned!(py, "decode")?, ("utf-8", "surrogatepass"))
}
