//! Views that present borrowed values in the form that tables use. Some values have fields, and
//! others have items. `tests/helpers/naive_tables.py` does the same for Python objects.

use crate::{
    Entity, EntityKey, EntityValue, Item, Operation, PathElement, PathId, Position, Property, PropertyValue, User,
    Value, VersionEdit, WriteBatch,
};

/// The value of a column, a field or an item.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum View<'v> {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// The digits of an integer that is wider than 64 bits.
    Huge(&'v str),
    /// Microseconds since 1970, for times in the years 1 to 9999.
    Time(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(&'v str),
    /// Bytes.
    Bytes(&'v [u8]),
    /// A latitude and a longitude, in degrees.
    Point(f64, f64),
    /// A user account.
    User(&'v User<'v>),
    /// An entity key.
    Key(&'v EntityKey<'v>),
    /// The path in a key, as a list.
    Path(&'v [PathElement<'v>]),
    /// A path element.
    Element(&'v PathElement<'v>),
    /// An entity nested in another.
    Entity(&'v Entity<'v>),
    /// An entity's properties, as a structure.
    Properties(&'v [Property<'v>]),
    /// A property's values, as a list.
    Array(&'v [PropertyValue<'v>]),
    /// A list of values.
    Values(&'v [Value<'v>]),
    /// Named values, as a structure.
    Object(&'v [Item<'v>]),
    /// A write batch's operations, as a list.
    Operations(&'v WriteBatch<'v>),
    /// The fields of this record's version edit, as a list.
    EditFields(&'v [u8]),
    /// Named views, as a structure.
    Cells(&'v [(&'v str, View<'v>)]),
}

/// Times in the years 1 to 9999. Other times become integers, because Python's `datetime` cannot
/// represent them.
pub(super) const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

impl<'v> View<'v> {
    /// Returns the view of a property, which is a list if the property is an array.
    pub fn of_property(property: &'v Property<'v>) -> Self {
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
            // This is `Null`, because there are no other variants yet.
            _ => View::Null,
        }
    }

    /// Returns the view of a value.
    pub fn of_value(value: &'v Value<'v>) -> Self {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(*value),
            Value::Int(value) => View::Int(*value),
            Value::UInt(value) => View::UInt(*value),
            Value::Huge(digits) => View::Huge(digits),
            Value::Float(value) => View::Float(*value),
            Value::Text(text) => View::Text(text),
            Value::Bytes(bytes) => View::Bytes(bytes),
            Value::Array(values) => View::Values(values),
            Value::Object(items) => View::Object(items),
        }
    }

    pub(super) fn optional(text: Option<&'v str>) -> Self {
        text.map_or(View::Null, View::Text)
    }

    /// Checks whether the value has items.
    pub fn is_list(self) -> bool {
        matches!(
            self,
            View::Array(_) | View::Path(_) | View::Values(_) | View::Operations(_) | View::EditFields(_)
        )
    }

    /// Calls `each` for each field of a structure until a call returns `false`. Returns whether
    /// every call returned `true`.
    pub fn all_fields(self, mut each: impl FnMut(&'v str, View<'v>) -> bool) -> bool {
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
                    && each("path", View::Path(&key.path))
                    && each("namespace", View::optional(key.namespace))
                    && each("database", View::optional(key.database))
            }
            View::Element(element) => {
                each("kind", View::Text(element.kind))
                    && match element.id {
                        PathId::None => true,
                        PathId::Id(id) => each("id", View::Int(id)),
                        PathId::Name(name) => each("name", View::Text(name)),
                    }
            }
            View::Object(items) => items.iter().all(|(name, value)| each(name, View::of_value(value))),
            View::Cells(cells) => cells.iter().all(|&(name, value)| each(name, value)),
            View::Entity(entity) => {
                key_of_map(entity).is_none_or(|key| each("__key__", View::Key(key)))
                    && View::Properties(&entity.properties).all_fields(each)
            }
            View::Properties(properties) => properties
                .iter()
                .all(|property| each(property.name, View::of_property(property))),
            _ => true,
        }
    }

    /// Returns the value of a field.
    pub fn field(self, name: &str) -> Option<Self> {
        let mut found = None;
        self.all_fields(|other, value| {
            found = (other == name).then_some(value);
            found.is_none()
        });
        found
    }

    /// Calls `each` for each item of a list until a call returns `false`. Returns whether every
    /// call returned `true`.
    pub fn all_items(self, mut each: impl FnMut(View<'_>) -> bool) -> bool {
        match self {
            View::Array(values) => values.iter().all(|value| each(View::of(&value.value))),
            View::Path(path) => path.iter().all(|element| each(View::Element(element))),
            View::Values(values) => values.iter().all(|value| each(View::of_value(value))),
            View::Operations(batch) => all_operations(batch, each),
            // Decodes one field at a time, because a decoded field takes up much more memory than
            // its bytes in the record.
            View::EditFields(record) => VersionEdit::new(record)
                .fields()
                .map_while(Result::ok)
                .all(|field| each(View::Object(&field.into_items()))),
            _ => true,
        }
    }
}

/// Returns the key of a nested entity. Returns `None` for a Firestore map, which has an empty key.
fn key_of_map<'v>(entity: &'v Entity<'v>) -> Option<&'v EntityKey<'v>> {
    let key = entity.key.as_ref()?;
    (*key != EntityKey::default()).then_some(key)
}

/// Calls `each` for every operation of a batch without faults, but stops if a call returns `false`.
/// Returns whether every call returned `true`.
fn all_operations(batch: &WriteBatch<'_>, mut each: impl FnMut(View<'_>) -> bool) -> bool {
    let mut next = Position::START;
    while let Ok(Some((operation, sequence))) = batch.next_operation(&mut next) {
        let mut cells = vec![("kind", View::Text(operation.as_str()))];
        cells.extend(sequence.map(|sequence| ("sequence", View::UInt(sequence))));
        add_parts(&mut cells, &operation, None);
        if !each(View::Cells(&cells)) {
            return false;
        }
    }
    true
}

/// Appends the parts of an operation, and its column family's name if known.
pub(super) fn add_parts<'v>(
    cells: &mut Vec<(&'v str, View<'v>)>,
    operation: &Operation<'v>,
    family_name: Option<&'v [u8]>,
) {
    let parts = operation.parts();
    let number = parts.column_family.map(|number| View::UInt(number.into()));
    cells.extend(number.map(|number| ("column_family", number)));
    cells.extend(family_name.map(|name| ("column_family_name", View::Bytes(name))));
    let strings = parts.strings().into_iter();
    cells.extend(strings.filter_map(|(name, bytes)| Some((name, View::Bytes(bytes?)))));
    cells.extend(parts.write_unix_time.map(|time| ("write_unix_time", View::UInt(time))));
}
