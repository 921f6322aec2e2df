//! The function `decode_entity`. The classes of its results are written in Python, in
//! `cordwood.payload.entity`.

use cordwood_payload::{Entity, EntityKey, EntityValue, PathId, Property};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple};

use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{new_text, try_bytes};
use crate::values::IntoField;
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Decodes the entity in a record of a Datastore or Firestore export.
///
/// `cordwood.payload.entity.decode` returns this class.
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
        properties.set_item(&name, property_object(py, property)?)?;
        if property.values.iter().any(|value| value.meaning.is_some()) {
            let stated: Vec<_> = property.values.iter().map(|value| value.meaning).collect();
            meanings.set_item(&name, PyTuple::new(py, stated)?)?;
        }
        if property.values.iter().any(|value| !value.is_indexed) {
            unindexed.push(name);
        }
    }
    let key = entity.key.as_ref().map(|key| key_object(py, key)).transpose()?;
    let other_fields = PyList::empty(py);
    for field in &entity.other_fields {
        let bytes = try_bytes(py, field.bytes)?;
        let fields = (field.message, field.number, field.offset, bytes);
        other_fields.append(named!(py, "OtherField")?.run(fields)?)?;
    }
    let unindexed = PyFrozenSet::new(py, unindexed)?;
    named!(py, "Entity")?.run((key, properties, meanings, unindexed, other_fields.to_tuple()))
}

fn property_object<'py>(py: Python<'py>, property: &Property<'_>) -> PyResult<Bound<'py, PyAny>> {
    match &property.values[..] {
        [value] if !property.is_array => value_object(py, &value.value),
        values => {
            let array = PyList::empty(py);
            for value in values {
                array.append(value_object(py, &value.value)?)?;
            }
            Ok(array.into_any())
        }
    }
}

fn value_object<'py>(py: Python<'py>, value: &EntityValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        EntityValue::Boolean(value) => value.into_field(py)?,
        EntityValue::Integer(value) => value.into_pyobject(py)?.into_any(),
        EntityValue::Double(value) => value.into_pyobject(py)?.into_any(),
        EntityValue::Text(text) => new_text(py, text)?.into_any(),
        EntityValue::Bytes(bytes) => try_bytes(py, bytes)?.into_any(),
        EntityValue::Timestamp(microseconds) => named!(py, "_timestamp")?.run((microseconds,))?,
        EntityValue::Point { latitude, longitude } => named!(py, "GeoPoint")?.run((latitude, longitude))?,
        EntityValue::Reference(key) => key_object(py, key)?,
        EntityValue::User(user) => named!(py, "User")?.run((
            new_text(py, user.email)?,
            new_text(py, user.auth_domain)?,
            user.nickname.into_field(py)?,
            user.gaia_id,
            user.obfuscated_gaia_id.into_field(py)?,
            user.federated_identity.into_field(py)?,
            user.federated_provider.into_field(py)?,
        ))?,
        EntityValue::Entity(entity) => entity_object(py, entity)?,
        // This is `Null`. There is no other variant yet.
        _ => py.None().into_bound(py),
    })
}

fn key_object<'py>(py: Python<'py>, key: &EntityKey<'_>) -> PyResult<Bound<'py, PyAny>> {
    let path = PyList::empty(py);
    for element in &key.path {
        let kind = new_text(py, element.kind)?;
        path.append(match element.id {
            PathId::None => (kind, None::<i64>).into_pyobject(py)?,
            PathId::Id(id) => (kind, id).into_pyobject(py)?,
            PathId::Name(name) => (kind, new_text(py, name)?).into_pyobject(py)?,
        })?;
    }
    named!(py, "Key")?.run((
        new_text(py, key.app)?,
        path.to_tuple(),
        key.namespace.into_field(py)?,
        key.database.into_field(py)?,
    ))
}
