//! The class `RecordDecoder`, which decodes records to Python objects or to JSON.

use cordwood_payload::Engine;
use cordwood_payload::table::{BytesAs, Decoder, Facts, Fault, OneRow, Record, Sink, View};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::exclusive::Exclusive;
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{new_text, no_memory, try_bytes};
use crate::values::IntoField;
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Decodes the records of one log, in order.
///
/// Args:
///     payload: The contents of the records, as in `cordwood._tables.payloads`.
///     dialect: The log's dialect, if known.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct RecordDecoder {
    /// How to convert bytes to JSON. The bytes in entities are never converted to text.
    bytes: BytesAs,
    decoder: Exclusive<Decoder>,
}

#[pymethods]
impl RecordDecoder {
    #[new]
    #[pyo3(signature = (payload, dialect = None, /))]
    fn new(payload: &str, dialect: Option<&str>) -> PyResult<Self> {
        let mut facts = facts_of(dialect);
        facts.is_run = true;
        Ok(RecordDecoder {
            bytes: match payload {
                "entity" => BytesAs::Object,
                _ => BytesAs::Text,
            },
            decoder: Exclusive::new(decoder_of(payload, facts)?),
        })
    }

    /// Returns a record's row.
    ///
    /// Args:
    ///     record: `bytes` or any other buffer.
    ///     errors: A list to which the errors for unreadable values are appended; the row then
    ///         omits these values. If `errors` is `None`, the first error is raised.
    ///
    /// Returns:
    ///     The values by name, or `None` if the record has no row.
    ///
    /// Raises:
    ///     PayloadError: The record cannot be decoded.
    ///     TypeError: `record` is not bytes-like.
    #[pyo3(signature = (record, errors = None, /))]
    fn row<'py>(
        &self,
        record: &Bound<'py, PyAny>,
        errors: Option<&Bound<'py, PyList>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = record.py();
        let record = bytes_of("record", record)?;
        self.taken(py, errors, |decoder, sink| {
            decoder.record(&Record::of(record.as_bytes()), sink).map(drop)
        })
    }

    /// Returns the last row, which isn't complete until all records have been read.
    ///
    /// Returns:
    ///     The values by name, or `None` if there is no such row.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.taken(py, None, |decoder, sink| {
            decoder.rest(sink);
            Ok(())
        })
    }

    /// Returns a record's value.
    ///
    /// Args:
    ///     record: `bytes` or any other buffer.
    ///
    /// Returns:
    ///     The value, or `None` if the payload doesn't describe this record.
    ///
    /// Raises:
    ///     PayloadError: The record cannot be decoded.
    ///     TypeError: `record` is not bytes-like.
    #[pyo3(signature = (record, /))]
    fn value<'py>(&self, record: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = record.py();
        let record = bytes_of("record", record)?;
        let mut value = None;
        self.view(&record, |view| value = Some(object_of(py, view)))?;
        value.transpose()
    }

    /// Returns a record's value as JSON, on one line.
    ///
    /// Args:
    ///     record: `bytes` or any other buffer.
    ///
    /// Returns:
    ///     The text, or `None` if the payload doesn't describe this record.
    ///
    /// Raises:
    ///     PayloadError: The record cannot be decoded.
    ///     TypeError: `record` is not bytes-like.
    #[pyo3(signature = (record, /))]
    fn json<'py>(&self, record: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
        let py = record.py();
        let record = bytes_of("record", record)?;
        let mut text = None;
        match self.view(&record, |value| text = value.to_json(self.bytes))? {
            true => Ok(Some(new_text(py, &text.ok_or_else(no_memory)?)?)),
            false => Ok(None),
        }
    }

    /// Decodes the whole write batch in a record, and returns the engine that wrote it.
    ///
    /// Args:
    ///     record: The record.
    ///
    /// Returns:
    ///     `"rocksdb"` or `"pebble"`.
    ///
    /// Raises:
    ///     PayloadError: The record is not a batch, or the batch is damaged.
    #[pyo3(signature = (record, /))]
    fn engine(&self, record: &Bound<'_, PyBytes>) -> PyResult<&'static str> {
        let mut is_pebble = false;
        self.view(record, |value| {
            let operations = value.field("operations");
            is_pebble = matches!(operations, Some(View::Operations(batch)) if batch.engine() == Engine::Pebble);
        })?;
        Ok(if is_pebble { "pebble" } else { "rocksdb" })
    }

    /// A message if the records so far can be read in more than one way, or `None` otherwise.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.decoder.lock(py)?.note())
    }
}

impl RecordDecoder {
    /// Passes a record's value to `take`. Returns `false` if the payload doesn't describe the record.
    fn view(&self, record: &Bound<'_, PyBytes>, mut take: impl FnMut(View<'_>)) -> PyResult<bool> {
        let mut decoder = self.decoder.lock(record.py())?;
        let _owner = self.decoder.may_run_python();
        let decoded = decoder.value(record.as_bytes(), &mut take);
        decoded.map_err(|fault| payload_error(record.py(), fault))
    }

    /// Calls `take`, and returns the row passed to the sink.
    fn taken<'py>(
        &self,
        py: Python<'py>,
        errors: Option<&Bound<'py, PyList>>,
        take: impl FnOnce(&mut Decoder, &mut dyn Sink) -> Result<(), Fault>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (mut row, mut result) = (None, Ok(()));
        let mut sink = OneRow {
            take: &mut |view| row = Some(object_of(py, view)),
            fault: &mut |fault| {
                if result.is_ok() {
                    result = match errors {
                        Some(errors) => errors.append(payload_error(py, fault).into_value(py)),
                        None => Err(payload_error(py, fault)),
                    };
                }
            },
        };
        let mut decoder = self.decoder.lock(py)?;
        let _owner = self.decoder.may_run_python();
        take(&mut decoder, &mut sink).map_err(|fault| payload_error(py, fault))?;
        result.and_then(|()| row.transpose())
    }
}

/// Returns the decoder for a payload, given the facts about its log.
pub(super) fn decoder_of(payload: &str, facts: Facts) -> PyResult<Decoder> {
    let decoder = Decoder::named(payload, facts);
    decoder.ok_or_else(|| PyValueError::new_err(format!("'{payload}' is not known")))
}

/// Returns what the dialect reveals about a log. Only the RocksDB and Pebble dialects reveal the
/// engine.
pub(super) fn facts_of(dialect: Option<&str>) -> Facts {
    let mut facts = Facts::default();
    facts.engine = match dialect {
        Some("rocksdb") => Some(Engine::RocksDb),
        Some("pebble") => Some(Engine::Pebble),
        _ => None,
    };
    facts
}

/// Checks whether a whole record can be decoded as this payload.
///
/// Args:
///     payload: The name of the payload.
///     record: The record.
///     dialect: The dialect of the log, if it is known.
///
/// Returns:
///     True if the record can be decoded without a fault.
#[pyfunction]
#[pyo3(signature = (payload, record, dialect, /))]
pub(crate) fn is_decoded(payload: &str, record: &[u8], dialect: Option<&str>) -> PyResult<bool> {
    let mut decoder = decoder_of(payload, facts_of(dialect))?;
    Ok(matches!(decoder.value(record, &mut |_| ()), Ok(true)))
}

/// Converts a value to an instance of a built-in Python type, or to a `datetime` in UTC.
pub(super) fn object_of<'py>(py: Python<'py>, value: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        View::Null => py.None().into_bound(py),
        View::Bool(value) => value.into_field(py)?,
        View::Int(value) => value.into_pyobject(py)?.into_any(),
        View::UInt(value) => value.into_field(py)?,
        View::Huge(digits) => huge_object(py, digits)?,
        View::Float(value) => PyFloat::new(py, value).into_any(),
        View::Text(text) => new_text(py, text)?.into_any(),
        View::Time(time) => imported!(py, "cordwood.payload.entity", "_timestamp")?.run((time,))?,
        View::Bytes(bytes) => try_bytes(py, bytes)?.into_any(),
        list if list.is_list() => list_of(py, list, object_of)?.into_any(),
        structure => {
            let (fields, mut result) = (PyDict::new(py), Ok(()));
            structure.all_fields(|name, value| {
                result = object_of(py, value).and_then(|value| fields.set_item(new_text(py, name)?, value));
                result.is_ok()
            });
            result?;
            fields.into_any()
        }
    })
}

/// Converts a list, using the given function for each item.
pub(super) fn list_of<'py>(
    py: Python<'py>,
    list: View<'_>,
    object_of: impl Fn(Python<'py>, View<'_>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let (items, mut result) = (PyList::empty(py), Ok(()));
    list.all_items(|item| {
        result = object_of(py, item).and_then(|item| items.append(item));
        result.is_ok()
    });
    result.map(|()| items)
}

/// Converts an integer with many digits. Returns text if Python does not accept that many digits.
fn huge_object<'py>(py: Python<'py>, digits: &str) -> PyResult<Bound<'py, PyAny>> {
    let text = new_text(py, digits)?.into_any();
    match py.get_type::<PyInt>().run((&text,)) {
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(text),
        number => number,
    }
}
