//! The functions `decode_entity` and `entity_kinds`. The Python classes of the decoded values are in
//! `cordwood.payload.entity`.

use std::collections::HashMap;

use cordwood_payload::Entity;
use cordwood_payload::table::{Facts, OneRow, View};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple};

use super::objects::{decoder_of, list_of, object_of};
use super::table::Records;
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{new_text, try_bytes};
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Decodes the entity in a record from a Datastore or Firestore export.
///
/// Called by `cordwood.payload.entity.decode`.
///
/// Args:
///     record: `bytes` or any other buffer.
///
/// Returns:
///     The entity.
///
/// Raises:
///     PayloadError: The record is not an entity.
///     TypeError: `record` is not bytes-like.
#[pyfunction]
#[pyo3(signature = (record, /))]
pub(crate) fn decode_entity<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = record.py();
    let record = bytes_of("record", record)?;
    let entity = Entity::decode(record.as_bytes()).map_err(|error| payload_error(py, error))?;
    entity_object(py, &entity)
}

/// Returns the class or function with this name in `cordwood.payload.entity`.
macro_rules! named {
    ($py:expr, $name:literal) => {
        imported!($py, "cordwood.payload.entity", $name)
    };
}

fn entity_object<'py>(py: Python<'py>, entity: &Entity<'_>) -> PyResult<Bound<'py, PyAny>> {
    let properties = PyDict::new(py);
    let meanings = PyDict::new(py);
    let mut unindexed = Vec::new();
    for property in &entity.properties {
        let name = new_text(py, property.name)?;
        properties.set_item(&name, value_object(py, View::of_property(property))?)?;
        if property.values.iter().any(|value| value.meaning.is_some()) {
            let stated: Vec<_> = property.values.iter().map(|value| value.meaning).collect();
            meanings.set_item(&name, PyTuple::new(py, stated)?)?;
        }
        if property.values.iter().any(|value| !value.is_indexed) {
            unindexed.push(name);
        }
    }
    let key = entity.key.as_ref().map(|key| value_object(py, View::Key(key)));
    let key = key.transpose()?;
    let other_fields = PyList::empty(py);
    for field in &entity.other_fields {
        let bytes = try_bytes(py, field.bytes)?;
        let fields = (field.message, field.number, field.offset, bytes);
        other_fields.append(named!(py, "OtherField")?.run(fields)?)?;
    }
    let unindexed = PyFrozenSet::new(py, unindexed)?;
    named!(py, "Entity")?.run((key, properties, meanings, unindexed, other_fields.to_tuple()))
}

/// Converts a value in an entity. The fields of keys, places and users are passed in the order in
/// which their classes declare them.
fn value_object<'py>(py: Python<'py>, value: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    let class = match value {
        View::Entity(entity) => return entity_object(py, entity),
        View::Path(_) => return Ok(list_of(py, value, value_object)?.to_tuple().into_any()),
        View::Element(_) => None,
        View::Key(_) => Some(named!(py, "Key")?),
        View::Point(..) => Some(named!(py, "GeoPoint")?),
        View::User(_) => Some(named!(py, "User")?),
        list if list.is_list() => return Ok(list_of(py, list, value_object)?.into_any()),
        plain => return object_of(py, plain),
    };
    let (mut fields, mut result) = (Vec::new(), Ok(()));
    value.all_fields(|_, value| {
        result = value_object(py, value).map(|object| fields.push(object));
        result.is_ok()
    });
    result?;
    let Some(class) = class else {
        // The last element of a path may have neither a number nor a name.
        fields.resize_with(2, || py.None().into_bound(py));
        return Ok(PyTuple::new(py, fields)?.into_any());
    };
    class.run(PyTuple::new(py, fields)?)
}

/// Returns the kinds of the entities in records.
///
/// Args:
///     source: A `RecordBatch`, or a list of `Record`.
///
/// Returns:
///     A pair of lists. The first contains the entity kinds, each with the indices of its records.
///     The second contains the indices of the unreadable records. If an entity has no key, its kind
///     is `None`.
#[pyfunction]
#[pyo3(signature = (source, /))]
#[expect(clippy::type_complexity, reason = "a tuple of Python")]
pub(crate) fn entity_kinds(source: &Bound<'_, PyAny>) -> PyResult<(Vec<(Option<String>, Vec<usize>)>, Vec<usize>)> {
    let records = Records::of(source)?;
    let mut decoder = decoder_of("entity", Facts::default())?;
    Ok(source.py().detach(|| {
        let mut numbers = HashMap::new();
        let mut kinds: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        let mut left_out = Vec::new();
        for (index, record) in (0..).map_while(|index| Some((index, records.get(index, false)?))) {
            let mut kind = None;
            let mut sink = OneRow {
                take: &mut |row| {
                    if let Some(View::Text(text)) = row.field("__kind__") {
                        kind = Some(text.to_owned());
                    }
                },
                fault: &mut drop,
            };
            if decoder.record(&record, &mut sink).is_err() {
                left_out.push(index);
                continue;
            }
            let number = *numbers.entry(kind).or_insert_with_key(|kind| {
                kinds.push((kind.clone(), Vec::new()));
                kinds.len() - 1
            });
            kinds[number].1.push(index);
        }
        (kinds, left_out)
    }))
}
