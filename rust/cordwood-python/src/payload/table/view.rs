//! A value as a table has it, without a copy: which values have fields, and which have items.
//! `python/cordwood/_tables/entities.py` does the same for Python objects.

use std::borrow::Cow;
use std::fmt::Write;

use cordwood_payload::{
    Entity, EntityKey, EntityValue, OtherField, PathElement, PathId, Property, PropertyValue, User, WandbRecord,
};

use super::tree::{Item, Refused, Rules, Value, has_twice, parse};

/// A value of a column, of a field or of an item.
#[derive(Debug, Clone, Copy)]
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Int(i64),
    /// The digits of an integer of more than 64 bits.
    Huge(&'v str),
    /// Microseconds since 1970, within the years 1 to 9999.
    Time(i64),
    Float(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
    Point(f64, f64),
    User(&'v User<'v>),
    Key(&'v EntityKey<'v>),
    /// The path of a key, a list.
    Path(&'v [PathElement<'v>]),
    /// An element of a path.
    Element(&'v PathElement<'v>),
    Entity(&'v Entity<'v>),
    Array(&'v [PropertyValue<'v>]),
    /// The fields that are not interpreted, a list.
    Others(&'v [&'v OtherField<'v>]),
    /// One of those fields.
    Other(&'v OtherField<'v>),
    /// Bytes as JSON represents them, a structure.
    Data(&'v [u8]),
    /// The text in that structure.
    Base64(&'v [u8]),
    /// A JSON array.
    Values(&'v [Value<'v>]),
    /// A JSON object.
    Object(&'v [Item<'v>]),
}

/// The years 1 to 9999. No `datetime` represents other times, which are integers instead.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

impl<'v> View<'v> {
    pub(super) fn of_property(property: &'v Property<'v>) -> Self {
        match &property.values[..] {
            [value] if !property.is_array => View::of(&value.value),
            values => View::Array(values),
        }
    }

    fn of(value: &'v EntityValue<'v>) -> Self {
        match value {
            EntityValue::Boolean(value) => View::Bool(*value),
            EntityValue::Integer(value) => View::Int(*value),
            EntityValue::Timestamp(time) if TIMES.contains(time) => View::Time(*time),
            EntityValue::Timestamp(time) => View::Int(*time),
            EntityValue::Double(value) => View::Float(*value),
            EntityValue::Text(text) => View::Text(text),
            EntityValue::Bytes(bytes) => View::Bytes(bytes),
            EntityValue::Point { latitude, longitude } => View::Point(*latitude, *longitude),
            EntityValue::Reference(key) => View::Key(key),
            EntityValue::User(user) => View::User(user),
            EntityValue::Entity(entity) => View::Entity(entity),
            // `Null`: there is no other variant yet.
            _ => View::Null,
        }
    }

    fn of_json(value: &'v Value<'v>) -> Self {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(*value),
            Value::Int(value) => View::Int(*value),
            Value::Huge(digits) => View::Huge(digits),
            Value::Float(value) => View::Float(*value),
            Value::Text(text) => View::Text(text),
            Value::Array(values) => View::Values(values),
            Value::Object(items) => View::Object(items),
        }
    }

    fn optional(text: Option<&'v str>) -> Self {
        text.map_or(View::Null, View::Text)
    }

    /// Whether it has fields.
    pub(super) fn is_struct(self) -> bool {
        matches!(
            self,
            View::Point(..)
                | View::User(_)
                | View::Key(_)
                | View::Element(_)
                | View::Entity(_)
                | View::Other(_)
                | View::Data(_)
                | View::Object(_)
        )
    }

    /// Whether it has items.
    pub(super) fn is_list(self) -> bool {
        matches!(self, View::Array(_) | View::Path(_) | View::Others(_) | View::Values(_))
    }

    /// Calls `each` with the fields of a structure, until it returns `false`. Returns whether it
    /// never did.
    pub(super) fn all_fields(self, mut each: impl FnMut(&'v str, View<'v>) -> bool) -> bool {
        match self {
            View::Point(latitude, longitude) => {
                each("latitude", View::Float(latitude)) && each("longitude", View::Float(longitude))
            }
            View::User(user) => {
                each("email", View::Text(user.email))
                    && each("auth_domain", View::Text(user.auth_domain))
                    && each("nickname", View::optional(user.nickname))
                    && each("gaia_id", View::Int(user.gaia_id))
                    && each("obfuscated_gaia_id", View::optional(user.obfuscated_gaia_id))
                    && each("federated_identity", View::optional(user.federated_identity))
                    && each("federated_provider", View::optional(user.federated_provider))
            }
            View::Key(key) => {
                each("app", View::Text(key.app))
                    && each("namespace", View::optional(key.namespace))
                    && each("database", View::optional(key.database))
                    && each("path", View::Path(&key.path))
            }
            View::Element(element) => {
                each("kind", View::Text(element.kind))
                    && match element.id {
                        PathId::None => true,
                        PathId::Id(id) => each("id", View::Int(id)),
                        PathId::Name(name) => each("name", View::Text(name)),
                    }
            }
            View::Other(field) => {
                each("message", View::Text(field.message))
                    && each("number", View::Int(field.number.into()))
                    && each("offset", View::Int(field.offset as i64))
                    && each("data", View::Data(field.bytes))
            }
            View::Data(bytes) => each("base64", View::Base64(bytes)),
            View::Object(items) => items.iter().all(|(name, value)| each(name, View::of_json(value))),
            View::Entity(entity) => {
                key_of_map(entity).is_none_or(|key| each("__key__", View::Key(key)))
                    && entity
                        .properties
                        .iter()
                        .all(|property| each(property.name, View::of_property(property)))
            }
            _ => true,
        }
    }

    /// Calls `each` with the items of a list, until it returns `false`. Returns whether it never
    /// did.
    pub(super) fn all_items(self, mut each: impl FnMut(View<'v>) -> bool) -> bool {
        match self {
            View::Array(values) => values.iter().all(|value| each(View::of(&value.value))),
            View::Path(path) => path.iter().all(|element| each(View::Element(element))),
            View::Others(fields) => fields.iter().all(|field| each(View::Other(field))),
            View::Values(values) => values.iter().all(|value| each(View::of_json(value))),
            _ => true,
        }
    }
}

/// The key of an entity inside another one; `None` for a Firestore map, whose key is empty.
fn key_of_map<'v>(entity: &'v Entity<'v>) -> Option<&'v EntityKey<'v>> {
    let key = entity.key.as_ref()?;
    (*key != EntityKey::default()).then_some(key)
}

/// Collects the fields that are not interpreted, of an entity and of all entities in it.
fn collect_others<'v>(entity: &'v Entity<'v>, found: &mut Vec<&'v OtherField<'v>>) {
    found.extend(&entity.other_fields);
    for value in entity.properties.iter().flat_map(|property| &property.values) {
        if let EntityValue::Entity(entity) = &value.value {
            collect_others(entity, found);
        }
    }
}

/// The columns that tables have for the key: no property may have one of these names.
const KEY_COLUMNS: [&str; 4] = ["__kind__", "__id__", "__name__", "__path__"];

/// What the records of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// Entities of Datastore or Firestore.
    Entity,
    /// JSON text.
    Json,
    /// Records of a run of Weights & Biases, whose steps are the rows.
    History,
}

impl Payload {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "entity" => Payload::Entity,
            "json" => Payload::Json,
            "wandb-history" => Payload::History,
            _ => return None,
        })
    }

    /// Decodes a record, and calls `take` with its row, if it has one. Returns the result, and
    /// whether the record, or a value in it, cannot be read.
    pub(super) fn with_row<T>(self, record: &[u8], take: impl FnOnce(&Row<'_>) -> T) -> (Option<T>, bool) {
        match self {
            Payload::Entity => match Entity::decode(record) {
                Ok(entity) if !has_reserved_name(&entity) => (Some(take(&Row::of_entity(&entity))), false),
                _ => (None, true),
            },
            Payload::Json => {
                let value = str::from_utf8(record)
                    .ok()
                    .and_then(|text| parse(text, Rules::Document).ok());
                let items = match value {
                    Some(Value::Object(items)) => items,
                    Some(value) => vec![("__value__".into(), value)],
                    None => return (None, true),
                };
                (Some(take(&Row::Items(&items))), false)
            }
            Payload::History => match history(record) {
                Some(Some((items, has_fault))) => (Some(take(&Row::Items(&items))), has_fault),
                Some(None) => (None, false),
                None => (None, true),
            },
        }
    }
}

fn has_reserved_name(entity: &Entity<'_>) -> bool {
    // Few entities have such a name: the others are not compared with each of them.
    let mut names = entity.properties.iter().map(|property| property.name);
    names.any(|name| name.starts_with("__") && KEY_COLUMNS.contains(&name))
}

/// The values of a step, and whether some cannot be read. The inner `None`: the record is of
/// another kind; the outer one: it cannot be decoded.
#[expect(clippy::option_option, reason = "two reasons for no row")]
fn history(record: &[u8]) -> Option<Option<(Vec<Item<'_>>, bool)>> {
    let WandbRecord::History { items, step } = WandbRecord::decode(record).ok()? else {
        return Some(None);
    };
    let mut found: Vec<Item<'_>> = Vec::new();
    let mut has_fault = false;
    for item in items {
        let item = item.ok()?;
        let name: Cow<'_, str> = match item.path[..] {
            [name] => name.into(),
            _ => item.path.join(".").into(),
        };
        match parse(item.value_json, Rules::Run) {
            Ok(value) => {
                found.try_reserve(1).ok()?;
                found.push((name, value));
            }
            Err(Refused::Text) => has_fault = true,
            Err(Refused::Names) => return None,
        }
    }
    if has_twice(&found).ok()? {
        // The first of them counts.
        has_fault = true;
        let mut names = std::collections::HashSet::new();
        found.retain(|(name, _)| names.insert(name.clone()));
    }
    // In old files, the step is not among the items.
    let at = found.iter().position(|(name, _)| name == "_step");
    match (at, step) {
        (Some(at), _) => found[..=at].rotate_right(1),
        (None, Some(step)) => found.insert(0, ("_step".into(), Value::Int(step))),
        (None, None) => {}
    }
    Some(Some((found, has_fault)))
}

/// The row of a record.
pub(super) enum Row<'v> {
    Entity {
        entity: &'v Entity<'v>,
        path: Option<String>,
        others: Vec<&'v OtherField<'v>>,
    },
    Items(&'v [Item<'v>]),
}

impl<'v> Row<'v> {
    pub(super) fn of_entity(entity: &'v Entity<'v>) -> Self {
        let path = entity
            .key
            .as_ref()
            .map(|key| &key.path[..])
            .filter(|path| !path.is_empty());
        let mut others = Vec::new();
        collect_others(entity, &mut others);
        Row::Entity {
            entity,
            path: path.map(path_text),
            others,
        }
    }

    /// Calls `each` with the cells, in their order, until it returns `false`. Returns whether it
    /// never did.
    pub(super) fn all_cells(&self, mut each: impl FnMut(&str, View<'_>) -> bool) -> bool {
        let (entity, path, others) = match self {
            Row::Items(items) => return items.iter().all(|(name, value)| each(name, View::of_json(value))),
            Row::Entity { entity, path, others } => (entity, path, others),
        };
        let last = entity.key.as_ref().and_then(|key| key.path.last());
        if let (Some(last), Some(path)) = (last, path) {
            let goes_on = each("__kind__", View::Text(last.kind))
                && match last.id {
                    PathId::None => true,
                    PathId::Id(id) => each("__id__", View::Int(id)),
                    PathId::Name(name) => each("__name__", View::Text(name)),
                }
                && each("__path__", View::Text(path));
            if !goes_on {
                return false;
            }
        }
        each("__key__", entity.key.as_ref().map_or(View::Null, View::Key))
            && entity
                .properties
                .iter()
                .all(|property| each(property.name, View::of_property(property)))
            && (others.is_empty() || each("__other_fields__", View::Others(others)))
    }
}

/// The kinds and the numbers or names, separated by slashes.
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
