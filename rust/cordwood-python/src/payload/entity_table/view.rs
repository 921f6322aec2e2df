//! A value of an entity as a table has it, without a copy: which values have fields, and which
//! have items. `python/cordwood/_tables/entities.py` does the same for Python objects.

use std::fmt::Write;

use cordwood_payload::{
    Entity, EntityKey, EntityValue, OtherField, PathElement, PathId, Property, PropertyValue, User,
};

/// A value of a column, of a field or of an item.
#[derive(Debug, Clone, Copy)]
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Int(i64),
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
        )
    }

    /// Whether it has items.
    pub(super) fn is_list(self) -> bool {
        matches!(self, View::Array(_) | View::Path(_) | View::Others(_))
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

/// The row of an entity.
pub(super) struct Row<'v> {
    pub(super) entity: &'v Entity<'v>,
    path: Option<String>,
    others: Vec<&'v OtherField<'v>>,
}

impl<'v> Row<'v> {
    pub(super) fn new(entity: &'v Entity<'v>) -> Self {
        let path = entity
            .key
            .as_ref()
            .map(|key| &key.path[..])
            .filter(|path| !path.is_empty());
        let mut others = Vec::new();
        collect_others(entity, &mut others);
        Row {
            entity,
            path: path.map(path_text),
            others,
        }
    }

    /// Calls `each` with the cells, in their order, until it returns `false`.
    pub(super) fn cells(&self, mut each: impl FnMut(&'v str, View<'_>) -> bool) {
        let entity = self.entity;
        let last = entity.key.as_ref().and_then(|key| key.path.last());
        if let (Some(last), Some(path)) = (last, &self.path) {
            let goes_on = each("__kind__", View::Text(last.kind))
                && match last.id {
                    PathId::None => true,
                    PathId::Id(id) => each("__id__", View::Int(id)),
                    PathId::Name(name) => each("__name__", View::Text(name)),
                }
                && each("__path__", View::Text(path));
            if !goes_on {
                return;
            }
        }
        let _ = each("__key__", entity.key.as_ref().map_or(View::Null, View::Key))
            && entity
                .properties
                .iter()
                .all(|property| each(property.name, View::of_property(property)))
            && (self.others.is_empty() || each("__other_fields__", View::Others(&self.others)));
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
