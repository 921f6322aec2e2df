//! The record of a Datastore or Firestore export: an entity.
//!
//! `EntityProto` is a protocol buffer from 2008 with groups (`storage_onestore_v3`; the field
//! numbers are those of `google/appengine/datastore/entity_bytes_pb2.py` in the App Engine SDK). It
//! is parsed by hand: a general library such as `prost` drops unknown fields, and cannot report
//! where in a record something is wrong. Here no field is dropped: those that are not interpreted
//! are in [`Entity::other_fields`].

use std::collections::HashMap;

use super::entity_key::{EntityKey, KeyForm, is_empty_or_root};
use super::entity_value::EntityValue;
use super::error::{PayloadError, PayloadReason};
use super::plain_property::PlainProperty;
use super::property_values::PropertyValues;
use super::proto::{Message, OtherField};

/// An entity of Datastore; in Firestore, a document or a map in a document.
///
/// ```
/// use cordwood_payload::{Entity, EntityValue};
///
/// // The key [Task 7] of the app "a", and the property n = 5.
/// let record = b"\x6a\x0f\x6a\x01a\x72\x0a\x0b\x12\x04Task\x18\x07\x0c\x72\x09\x1a\x01n\x20\x00\x2a\x02\x08\x05";
/// let entity = Entity::decode(record)?;
/// assert_eq!(entity.key.unwrap().path[0].kind, "Task");
/// assert_eq!(entity.properties[0].name, "n");
/// assert_eq!(entity.properties[0].values[0].value, EntityValue::Integer(5));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Entity<'a> {
    /// Its key. An entity that is the value of a property need not have one.
    pub key: Option<EntityKey<'a>>,
    /// The properties, in the order in which they begin in the record. Each name occurs once.
    pub properties: Vec<Property<'a>>,
    /// The fields that are not interpreted, in the order of the record: those that Google's own
    /// reader also skips (`owner`, `meaning_uri`, an `entity_group` that is not the key's root,
    /// ...), and those that are newer than this decoder.
    pub other_fields: Vec<OtherField<'a>>,
}

/// A property: a name and its value, or the values of an array.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Property<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether it is an array. If not, it has one value.
    pub is_array: bool,
    /// The values, in order.
    pub values: PropertyValues<'a>,
}

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PropertyValue<'a> {
    /// The value.
    pub value: EntityValue<'a>,
    /// The meaning of the value (`Property.Meaning`), if stated: 2 is a link, 15 a long text.
    /// [`EntityValue`] already distinguishes the most common ones.
    pub meaning: Option<u64>,
    /// Whether it is indexed (`property`) or not (`raw_property`).
    pub is_indexed: bool,
}

/// Property names that are refused: tables and JSON have the key and the [other
/// fields](Entity::other_fields) under these names, next to the properties. Datastore and Firestore
/// accept no name that begins and ends with two underscores.
const RESERVED_NAMES: [&str; 2] = ["__key__", "__other_fields__"];

const MEANING_EMPTY_LIST: u64 = 24;

impl<'a> Entity<'a> {
    /// How deeply entities may be nested. Datastore and Firestore themselves allow 20 levels.
    pub const DEPTH_MAX: usize = 50;

    /// The number of properties for which room is reserved at the beginning.
    const PROPERTY_COUNT: usize = 16;

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// Fails if the record is not an `EntityProto`, has no key, or breaks the rules of [the
    /// crate](super): a repeated value, an array that is not marked as one, a property with the
    /// name `__key__` or `__other_fields__`.
    pub fn decode(record: &'a [u8]) -> Result<Self, PayloadError> {
        let entity = Entity::read(Message::new(record), 1)?;
        if entity.key.is_none() {
            return Err(Message::new(record).missing(13));
        }
        Ok(entity)
    }

    pub(super) fn read(mut message: Message<'a>, depth: usize) -> Result<Self, PayloadError> {
        if depth > Self::DEPTH_MAX {
            return Err(message.error(PayloadReason::TooDeep));
        }
        let mut entity = Entity::default();
        // Not for its maps, since an array may contain many of them.
        if depth == 1 {
            entity.properties.reserve(Self::PROPERTY_COUNT);
        }
        let mut entity_group = None;
        let mut numbers = Numbers::default();
        while let Some(field) = message.next_field()? {
            match field.number {
                13 => {
                    let key = EntityKey::read(field.message()?, KeyForm::Reference, &mut entity.other_fields)?;
                    field.set(&mut entity.key, key)?;
                }
                14 | 15 => entity.read_property(field.message()?, field.number == 14, &mut numbers, depth)?,
                16 => field.set(&mut entity_group, field)?,
                _ => entity.other_fields.push(field.other("EntityProto")),
            }
        }
        // An entity group repeats the root of the path, or is empty.
        if let Some(field) = entity_group {
            let root = entity.key.as_ref().and_then(|key| key.path.first());
            if !is_empty_or_root(field.message()?, root, &mut entity.other_fields)? {
                entity.other_fields.push(field.other("EntityProto"));
            }
        }
        entity.other_fields.sort_by_key(|field| field.offset);
        Ok(entity)
    }

    /// The fields of a `Property`: its meaning, its name, whether it may have several values, and
    /// its value.
    #[expect(clippy::type_complexity, reason = "one caller, which names them")]
    pub(super) fn read_fields(
        &mut self,
        mut message: Message<'a>,
    ) -> Result<(Option<u64>, &'a str, Option<bool>, Message<'a>), PayloadError> {
        let whole = message.clone();
        let (mut name, mut content, mut meaning, mut multiple) = (None, None, None, None);
        while let Some(field) = message.next_field()? {
            match field.number {
                1 => field.set(&mut meaning, field.varint()?)?,
                3 => field.set(&mut name, field.text()?)?,
                4 => field.set(&mut multiple, field.boolean()?)?,
                5 => field.set(&mut content, field.message()?)?,
                _ => self.other_fields.push(field.other("Property")),
            }
        }
        let name = name.ok_or_else(|| whole.missing(3))?;
        let content = content.ok_or_else(|| whole.missing(5))?;
        Ok((meaning, name, multiple, content))
    }

    /// Reads one `Property`, and adds its value to those of the same name.
    fn read_property(
        &mut self,
        message: Message<'a>,
        is_indexed: bool,
        numbers: &mut Numbers<'a>,
        depth: usize,
    ) -> Result<(), PayloadError> {
        let whole = message.clone();
        let (meaning, name, multiple, content) = match PlainProperty::read(&message) {
            Some(plain) => (plain.meaning, plain.name, Some(plain.is_multiple), plain.content),
            None => self.read_fields(message)?,
        };
        if name.starts_with("__") && RESERVED_NAMES.contains(&name) {
            return Err(whole.error(PayloadReason::ReservedName));
        }
        let value = EntityValue::read(content, meaning, &mut self.other_fields, depth)?;
        let is_empty_list = meaning == Some(MEANING_EMPTY_LIST);
        let is_multiple = multiple == Some(true);
        if is_empty_list && value != EntityValue::Null {
            return Err(whole.error(PayloadReason::NonCanonical));
        }
        match numbers.find(name, &mut self.properties) {
            None if is_empty_list => self.properties.push(Property {
                name,
                is_array: true,
                values: PropertyValues::none(),
            }),
            // Built in place: moving it here would take as long as reading it.
            None => self.properties.push(Property {
                name,
                is_array: is_multiple,
                values: PropertyValues::one(PropertyValue {
                    value,
                    meaning,
                    is_indexed,
                }),
            }),
            Some(property) if property.is_array && is_multiple && !property.values.is_empty() => {
                if !is_empty_list {
                    property.values.push(PropertyValue {
                        value,
                        meaning,
                        is_indexed,
                    });
                }
            }
            Some(_) => return Err(whole.error(PayloadReason::NonCanonical)),
        }
        Ok(())
    }
}

/// Finds a property by name: with a linear search if there are few, since only many are worth a
/// table.
#[derive(Default)]
struct Numbers<'a> {
    /// A bit for each name so far, not always a different one: usually it shows that a name is new.
    seen: u64,
    /// The numbers of the first properties, by name. Usually there is no table: even an empty one
    /// takes time to make.
    table: Option<HashMap<&'a str, usize>>,
}

impl<'a> Numbers<'a> {
    const FEW: usize = 16;

    fn find<'p>(&mut self, name: &str, properties: &'p mut [Property<'a>]) -> Option<&'p mut Property<'a>> {
        let (first, last) = (name.bytes().next(), name.bytes().next_back());
        let hash = first.map_or(0, usize::from) * 5 + last.map_or(0, usize::from) * 3 + name.len();
        let is_new = self.seen & (1 << (hash % 64)) == 0;
        self.seen |= 1 << (hash % 64);
        if is_new {
            return None;
        }
        // Usually an item of an array.
        if properties.last().is_some_and(|last| last.name == name) {
            return properties.last_mut();
        }
        if properties.len() <= Self::FEW {
            return properties.iter_mut().find(|property| property.name == name);
        }
        let table = self.table.get_or_insert_default();
        for (number, property) in properties.iter().enumerate().skip(table.len()) {
            table.insert(property.name, number);
        }
        table.get(name).and_then(|&number| properties.get_mut(number))
    }
}
