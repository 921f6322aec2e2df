//! Decodes Datastore or Firestore entities.

use std::fmt::Write;

use super::{Decode, Decoded, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::json::base64;
use crate::table::row::Row;
use crate::table::view::View;
use crate::{Entity, EntityValue, PathElement, PathId, PayloadError, PayloadReason, Value};

/// Decodes each entity into one row.
#[derive(Debug, Clone)]
pub(super) struct Entities;

impl Decode for Entities {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let entity = Entity::decode(record.data)?;
        if let Some(name) = reserved_name(&entity) {
            let detail = format!("a property has the name {name}, which a table has for the key");
            return Err(Fault::whole(Part::Record, record.data, PayloadReason::ReservedName, detail).into());
        }
        let path = entity.key.as_ref().map(|key| path_text(&key.path));
        let mut others = Vec::new();
        collect_others(&entity, &mut others)?;
        Ok(sink.row(&Row::new(entity_cells(&entity, path.as_deref(), &others))))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let entity = Entity::decode(record)?;
        let mut others = Vec::new();
        collect_others(&entity, &mut others)?;
        let key = entity.key.as_ref().map_or(View::Null, View::Key);
        let cells = [
            ("key", key),
            ("properties", View::Properties(&entity.properties)),
            ("other_fields", View::Values(&others)),
        ];
        take(View::Cells(if others.is_empty() { &cells[..2] } else { &cells }));
        Ok(true)
    }
}

/// Collects the uninterpreted fields of an entity and of all entities nested in it.
fn collect_others(entity: &Entity<'_>, found: &mut Vec<Value<'_>>) -> Result<(), Box<Fault>> {
    for field in &entity.other_fields {
        let data = base64(field.bytes).map_err(|_| PayloadError::new(0, 0, PayloadReason::OutOfMemory))?;
        found.push(Value::Object(vec![
            ("message".into(), Value::Text(field.message.into())),
            ("number".into(), Value::Int(field.number.into())),
            ("offset".into(), Value::Int(field.offset as i64)),
            (
                "data".into(),
                Value::Object(vec![("base64".into(), Value::Text(data.into()))]),
            ),
        ]));
    }
    for value in entity.properties.iter().flat_map(|property| &property.values) {
        if let EntityValue::Entity(entity) = &value.value {
            collect_others(entity, found)?;
        }
    }
    Ok(())
}

/// The columns for an entity's key. Properties must not have these names.
const KEY_COLUMNS: [&str; 4] = ["__kind__", "__id__", "__name__", "__path__"];

/// Returns a property name that is also the name of a key column, if there is one.
fn reserved_name<'e>(entity: &Entity<'e>) -> Option<&'e str> {
    // Few property names start with `__`, and only those names are compared with the column names.
    let mut names = entity.properties.iter().map(|property| property.name);
    names.find(|name| name.starts_with("__") && KEY_COLUMNS.contains(name))
}

/// Returns the cells of an entity. `path` is the entity's path as text, and `others` are its
/// uninterpreted fields.
fn entity_cells<'v>(
    entity: &'v Entity<'v>,
    path: Option<&'v str>,
    others: &'v [Value<'v>],
) -> Vec<(&'v str, View<'v>)> {
    let mut cells = Vec::with_capacity(entity.properties.len() + 5);
    let last = entity.key.as_ref().and_then(|key| key.path.last());
    if let (Some(last), Some(path)) = (last, path) {
        cells.push(("__kind__", View::Text(last.kind)));
        match last.id {
            PathId::None => {}
            PathId::Id(id) => cells.push(("__id__", View::Int(id))),
            PathId::Name(name) => cells.push(("__name__", View::Text(name))),
        }
        cells.push(("__path__", View::Text(path)));
    }
    cells.push(("__key__", entity.key.as_ref().map_or(View::Null, View::Key)));
    let properties = entity.properties.iter();
    cells.extend(properties.map(|property| (property.name, View::of_property(property))));
    if !others.is_empty() {
        cells.push(("__other_fields__", View::Values(others)));
    }
    cells
}

/// Returns a path as text, with slashes between the kinds and the numbers or names.
fn path_text(steps: &[PathElement<'_>]) -> String {
    let mut path = String::new();
    for (index, step) in steps.iter().enumerate() {
        if index > 0 {
            path.push('/');
        }
        path.push_str(step.kind);
        match step.id {
            PathId::None => {}
            PathId::Id(id) => {
                let _ = write!(path, "/{id}");
            }
            PathId::Name(name) => {
                path.push('/');
                path.push_str(name);
            }
        }
    }
    path
}
