//! The function `decode_entity`. The Python classes of the decoded values are in
//! `cordwood.payload.entity`.

use cordwood_payload::table::View;
use cordwood_payload::{Entity, PathElement, PathId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple};

use super::objects::{list_of, object_of};
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{new_text, try_bytes};
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Decodes the entity in a record of a Datastore or Firestore export.
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

/// Converts a value of an entity. The fields of keys, places and users are passed in the order
/// their classes declare them.
fn value_object<'py>(py: Python<'py>, value: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    let class = match value {
        View::Entity(entity) => return entity_object(py, entity),
        View::Path(path) => return path_object(py, path),
        View::Key(_) => named!(py, "Key")?,
        View::Point(..) => named!(py, "GeoPoint")?,
        View::User(_) => named!(py, "User")?,
        list if list.is_list() => return Ok(list_of(py, list, value_object)?.into_any()),
        plain => return object_of(py, plain),
    };
    let (mut fields, mut result) = (Vec::new(), Ok(()));
    value.all_fields(|_, value| {
        result = value_object(py, value).map(|object| fields.push(object));
        result.is_ok()
    });
    result?;
    class.run(PyTuple::new(py, fields)?)
}

fn path_object<'py>(py: Python<'py>, path: &[PathElement<'_>]) -> PyResult<Bound<'py, PyAny>> {
    let elements = PyList::empty(py);
    for element in path {
        let kind = new_text(py, element.kind)?;
        elements.append(match element.id {
            PathId::None => (kind, None::<i64>).into_pyobject(py)?,
            PathId::Id(id) => (kind, id).into_pyobject(py)?,
            PathId::Name(name) => (kind, new_text(py, name)?).into_pyobject(py)?,
        })?;
    }
    Ok(elements.to_tuple().into_any())
}
