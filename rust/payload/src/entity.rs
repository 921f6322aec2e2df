//! Decodes the entities in a Datastore or Firestore export. Each record is an entity.
//!
//! `EntityProto` is a protocol buffer from 2008 that uses groups (`storage_onestore_v3`; the field
//! numbers are from `google/appengine/datastore/entity_bytes_pb2.py` in the App Engine SDK). This
//! module parses the records by hand, because a general library such as `prost` drops unknown
//! fields and can't report where in a record a fault is. This decoder doesn't drop any fields: the
//! ones it doesn't interpret are in [`Entity::other_fields`].

use std::collections::HashMap;

use super::entity_key::{EntityKey, KeyForm, is_empty_or_root};
use super::error::{PayloadError, PayloadReason};
use super::proto::{Message, OtherField, fields};
use super::several::Several;
use super::wire::Cursor;

/// A Datastore entity. In Firestore, this is a document, or a map in a document.
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
    /// The key. An entity that is a property value may have no key.
    pub key: Option<EntityKey<'a>>,
    /// The properties, ordered by where they start in the record. Their names are unique.
    pub properties: Vec<Property<'a>>,
    /// The fields that are not interpreted, in record order. Google's own reader also skips some of
    /// them (`owner`, `meaning_uri`, an `entity_group` that is not the root of the key, ...). The
    /// others were added to the format after this decoder was written.
    pub other_fields: Vec<OtherField<'a>>,
}

/// A property, which has a name and either one value or an array of values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Property<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether the property is an array. A property that is not an array has exactly one value.
    pub is_array: bool,
    /// The values, in order.
    pub values: Several<PropertyValue<'a>>,
}

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PropertyValue<'a> {
    /// The value.
    pub value: EntityValue<'a>,
    /// The value's meaning (`Property.Meaning`), if the record contains one. For example, 2 means a
    /// link and 15 means long text. [`EntityValue`] already distinguishes the most common meanings.
    pub meaning: Option<u64>,
    /// Whether the value is indexed (`property`) or not (`raw_property`).
    pub is_indexed: bool,
}

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EntityValue<'a> {
    /// No value.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A time, in microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// Bytes: either a value of type bytes, or text that is not valid UTF-8.
    Bytes(&'a [u8]),
    /// A point on Earth, in degrees.
    Point {
        /// Degrees north of the equator.
        latitude: f64,
        /// Degrees east of Greenwich.
        longitude: f64,
    },
    /// The key of another entity.
    Reference(Box<EntityKey<'a>>),
    /// A user account.
    User(Box<User<'a>>),
    /// A nested entity, which is a map in Firestore.
    Entity(Box<Entity<'a>>),
}

/// A user account, as in App Engine's Users service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct User<'a> {
    /// The address.
    pub email: &'a str,
    /// The domain in which the user was authenticated.
    pub auth_domain: &'a str,
    /// The display name.
    pub nickname: Option<&'a str>,
    /// The account number.
    pub gaia_id: i64,
    /// The account number, in obfuscated form.
    pub obfuscated_gaia_id: Option<&'a str>,
    /// The user's OpenID identity, if any.
    pub federated_identity: Option<&'a str>,
    /// The provider of the OpenID identity.
    pub federated_provider: Option<&'a str>,
}

/// Property names that this decoder rejects because tables and JSON use them for an entity's key
/// and [other fields](Entity::other_fields). Datastore and Firestore do not accept names that start
/// and end with two underscores.
const RESERVED_NAMES: [&str; 2] = ["__key__", "__other_fields__"];

const MEANING_GD_WHEN: u64 = 7;
const MEANING_BLOB: u64 = 14;
const MEANING_BYTE_STRING: u64 = 16;
const MEANING_INDEX_VALUE: u64 = 18;
const MEANING_ENTITY_PROTO: u64 = 19;
const MEANING_EMPTY_LIST: u64 = 24;

impl<'a> Entity<'a> {
    /// The maximum depth of nested entities. Datastore and Firestore themselves allow 20 levels.
    pub const DEPTH_MAX: usize = 50;

    /// The number of properties to reserve memory for before decoding an entity.
    const PROPERTY_COUNT: usize = 16;

    /// Decodes a record.
    ///
    /// # Errors
    ///
    /// Fails if the record is not an `EntityProto`, has no key, or breaks the rules of
    /// [the crate](super). These rules forbid repeated values, unmarked arrays, and properties
    /// named `__key__` or `__other_fields__`.
    pub fn decode(record: &'a [u8]) -> Result<Self, PayloadError> {
        let entity = Entity::read(Message::new(record), 1)?;
        if entity.key.is_none() {
            return Err(Message::new(record).missing(13));
        }
        Ok(entity)
    }

    fn read(mut message: Message<'a>, depth: usize) -> Result<Self, PayloadError> {
        if depth > Self::DEPTH_MAX {
            return Err(message.error(PayloadReason::TooDeep));
        }
        let mut entity = Entity::default();
        // No memory is reserved for a map, because an array may contain many maps.
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
        // An entity group is empty, or it repeats the root of the path.
        if let Some(field) = entity_group {
            let root = entity.key.as_ref().and_then(|key| key.path.first());
            if !is_empty_or_root(field.message()?, root, &mut entity.other_fields)? {
                entity.other_fields.push(field.other("EntityProto"));
            }
        }
        entity.other_fields.sort_by_key(|field| field.offset);
        Ok(entity)
    }

    /// Reads the fields of a `Property`: its meaning, its name, whether it can have multiple
    /// values, and its value.
    #[expect(clippy::type_complexity, reason = "one caller, which names them")]
    fn read_fields(
        &mut self,
        mut message: Message<'a>,
    ) -> Result<(Option<u64>, &'a str, Option<bool>, Message<'a>), PayloadError> {
        let whole = message.clone();
        let (mut name, mut content, mut meaning, mut multiple) = (None, None, None, None);
        fields!(message, field => {
            1 => meaning, field.varint(),
            3 => name, field.text(),
            4 => multiple, field.boolean(),
            5 => content, field.message(),
        }, self.other_fields, "Property");
        let name = name.ok_or_else(|| whole.missing(3))?;
        let content = content.ok_or_else(|| whole.missing(5))?;
        Ok((meaning, name, multiple, content))
    }

    /// Reads one `Property` and adds its value to the property of the same name.
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
                values: Several::none(),
            }),
            // The property is built in place. Moving it here would take as long as reading it.
            None => self.properties.push(Property {
                name,
                is_array: is_multiple,
                values: Several::one(PropertyValue {
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

impl<'a> EntityValue<'a> {
    /// Reads a `PropertyValue`, which has at most one field.
    fn read(
        message: Message<'a>,
        meaning: Option<u64>,
        other_fields: &mut Vec<OtherField<'a>>,
        depth: usize,
    ) -> Result<Self, PayloadError> {
        match plain_value(&message, meaning) {
            Some(value) => Ok(value),
            None => Self::read_fields(message, meaning, other_fields, depth),
        }
    }

    fn read_fields(
        mut message: Message<'a>,
        meaning: Option<u64>,
        other_fields: &mut Vec<OtherField<'a>>,
        depth: usize,
    ) -> Result<Self, PayloadError> {
        let mut value = None;
        while let Some(field) = message.next_field()? {
            let content = match field.number {
                1 if meaning == Some(MEANING_GD_WHEN) => EntityValue::Timestamp(field.varint()? as i64),
                1 => EntityValue::Integer(field.varint()? as i64),
                2 => EntityValue::Boolean(field.boolean()?),
                3 => match meaning {
                    Some(MEANING_ENTITY_PROTO) => {
                        EntityValue::Entity(Box::new(Entity::read(field.message()?, depth + 1)?))
                    }
                    Some(MEANING_BLOB | MEANING_BYTE_STRING | MEANING_INDEX_VALUE) => {
                        EntityValue::Bytes(field.bytes()?)
                    }
                    _ => match field.text() {
                        Ok(text) => EntityValue::Text(text),
                        Err(_) => EntityValue::Bytes(field.bytes()?),
                    },
                },
                4 => EntityValue::Double(field.double()?),
                5 => EntityValue::read_point(field.group()?, other_fields)?,
                8 => EntityValue::User(Box::new(User::read(field.group()?, other_fields)?)),
                12 => {
                    let key = EntityKey::read(field.group()?, KeyForm::ReferenceValue, other_fields)?;
                    EntityValue::Reference(Box::new(key))
                }
                _ => {
                    other_fields.push(field.other("PropertyValue"));
                    continue;
                }
            };
            field.set(&mut value, content)?;
        }
        Ok(value.unwrap_or(EntityValue::Null))
    }

    fn read_point(mut group: Message<'a>, other_fields: &mut Vec<OtherField<'a>>) -> Result<Self, PayloadError> {
        let whole = group.clone();
        let (mut latitude, mut longitude) = (None, None);
        fields!(group, field => {
            6 => latitude, field.double(),
            7 => longitude, field.double(),
        }, other_fields, "PointValue");
        Ok(EntityValue::Point {
            latitude: latitude.ok_or_else(|| whole.missing(6))?,
            longitude: longitude.ok_or_else(|| whole.missing(7))?,
        })
    }
}

impl<'a> User<'a> {
    fn read(mut group: Message<'a>, other_fields: &mut Vec<OtherField<'a>>) -> Result<Self, PayloadError> {
        let whole = group.clone();
        let (mut email, mut auth_domain, mut gaia_id) = (None, None, None);
        let mut user = User::default();
        fields!(group, field => {
            9 => email, field.text(),
            10 => auth_domain, field.text(),
            11 => user.nickname, field.text(),
            18 => gaia_id, field.varint(),
            19 => user.obfuscated_gaia_id, field.text(),
            21 => user.federated_identity, field.text(),
            22 => user.federated_provider, field.text(),
        }, other_fields, "UserValue");
        user.email = email.ok_or_else(|| whole.missing(9))?;
        user.auth_domain = auth_domain.ok_or_else(|| whole.missing(10))?;
        user.gaia_id = gaia_id.ok_or_else(|| whole.missing(18))? as i64;
        Ok(user)
    }
}

/// Finds properties by name. If there are few properties, the search is linear, because a table
/// only pays off if there are many.
#[derive(Default)]
struct Numbers<'a> {
    /// Each name so far has set one of these bits. Two names may share a bit, but the bits usually
    /// show that a name is new.
    seen: u64,
    /// Maps the names of the first properties to their numbers. Most entities don't have a table,
    /// because creating even an empty one takes time.
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
        // A repeated name usually indicates an array item.
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

// This is the fast path for properties in the encoding that Google's own programs write: the fields
// are ordered by number, and each length has at most two bytes. The loops over fields handle all
// other encodings. They are the naive counterpart of this fast path.

/// The contents of a `Property`.
#[derive(Debug)]
struct PlainProperty<'a> {
    meaning: Option<u64>,
    name: &'a str,
    is_multiple: bool,
    /// The bytes of the property's `PropertyValue`.
    content: Message<'a>,
}

impl<'a> PlainProperty<'a> {
    #[inline]
    fn read(message: &Message<'a>) -> Option<Self> {
        let (meaning, bytes) = match message.bytes() {
            [0x08, meaning @ 0..0x80, rest @ ..] => (Some(u64::from(*meaning)), rest),
            bytes => (None, bytes),
        };
        let [0x1a, len @ 0..0x80, rest @ ..] = bytes else {
            return None;
        };
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        let [0x20, multiple @ 0..=1, 0x2a, rest @ ..] = rest else {
            return None;
        };
        let content = whole_string(rest)?;
        Some(PlainProperty {
            meaning,
            name: std::str::from_utf8(name).ok()?,
            is_multiple: *multiple == 1,
            content: message.tail(content.len()),
        })
    }
}

/// Returns the value of a `PropertyValue` with one field. That field must not be a message, and the
/// only group allowed is a point.
#[inline]
fn plain_value<'a>(content: &Message<'a>, meaning: Option<u64>) -> Option<EntityValue<'a>> {
    Some(match content.bytes() {
        [] => EntityValue::Null,
        [0x08, rest @ ..] => {
            let mut cursor = Cursor::new(rest, 0);
            let number = cursor.varint64().ok().filter(|_| cursor.is_at_end())? as i64;
            if meaning == Some(MEANING_GD_WHEN) {
                EntityValue::Timestamp(number)
            } else {
                EntityValue::Integer(number)
            }
        }
        [0x10, value @ 0..=1] => EntityValue::Boolean(*value == 1),
        [0x1a, rest @ ..] => {
            let bytes = whole_string(rest)?;
            match meaning {
                Some(MEANING_ENTITY_PROTO) => return None,
                Some(MEANING_BLOB | MEANING_BYTE_STRING | MEANING_INDEX_VALUE) => EntityValue::Bytes(bytes),
                _ => std::str::from_utf8(bytes).map_or(EntityValue::Bytes(bytes), EntityValue::Text),
            }
        }
        [0x21, rest @ ..] => EntityValue::Double(f64::from_le_bytes(rest.try_into().ok()?)),
        [0x2b, 0x31, rest @ ..] => {
            let (latitude, rest) = rest.split_first_chunk()?;
            let (longitude, [0x2c]) = rest.strip_prefix(&[0x39])?.split_first_chunk()? else {
                return None;
            };
            EntityValue::Point {
                latitude: f64::from_le_bytes(*latitude),
                longitude: f64::from_le_bytes(*longitude),
            }
        }
        _ => return None,
    })
}

/// Returns the string in `bytes` if no other bytes follow it.
#[inline]
fn whole_string(bytes: &[u8]) -> Option<&[u8]> {
    let (len, rest) = match bytes {
        [len @ 0..0x80, rest @ ..] => (usize::from(*len), rest),
        // A high byte of zero would be padding.
        [low @ 0x80..=0xff, high @ 1..0x80, rest @ ..] => (usize::from(low & 0x7f) | usize::from(*high) << 7, rest),
        _ => return None,
    };
    (rest.len() == len).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity_key::{plain_path, read_path_fields};

    /// Properties and their values, encoded the way programs write them.
    const PROPERTIES: [&[u8]; 9] = [
        b"\x1a\x01p\x20\x00\x2a\x00",
        b"\x1a\x02pq\x20\x01\x2a\x03\x08\xac\x02",
        b"\x08\x07\x1a\x01p\x20\x00\x2a\x09\x08\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x1a\x02\xc3\xa4\x20\x00\x2a\x02\x10\x01",
        b"\x08\x0f\x1a\x01p\x20\x00\x2a\x04\x1a\x02\xc3\xa4",
        b"\x08\x0e\x1a\x01p\x20\x00\x2a\x04\x1a\x02\xff\xfe",
        b"\x1a\x01p\x20\x00\x2a\x09\x21\0\0\0\0\0\0\xf0\x3f",
        b"\x08\x18\x1a\x01p\x20\x00\x2a\x00",
        b"\x1a\x01p\x20\x00\x2a\x14\x2b\x31\0\0\0\0\0\0\xf0\x3f\x39\0\0\0\0\0\0\xf8\x7f\x2c",
    ];

    /// Paths, each with the number of its elements.
    const PATHS: [(&[u8], usize); 5] = [
        (b"", 0),
        (b"\x0b\x12\x04Task\x18\x07\x0c", 1),
        (b"\x0b\x12\x02\xc3\xa4\x22\x01n\x0c\x0b\x12\x00\x0c", 2),
        (b"\x0b\x12\x01k\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0c", 1),
        (b"\x0b\x12\x01k\x22\x02\xc3\xa4\x0c\x0b\x12\x01k\x18\x00\x0c", 2),
    ];

    /// Checks whether the fast path accepts the bytes. If it does, the loops over fields must read
    /// the same values.
    fn is_plain(bytes: &[u8]) -> bool {
        let message = Message::new(bytes);
        for meaning in [None, Some(7), Some(14), Some(15), Some(19), Some(24)] {
            let mut others = Vec::new();
            let fields = EntityValue::read_fields(message.clone(), meaning, &mut others, 1);
            if let Some(value) = plain_value(&message, meaning) {
                assert_eq!(format!("{:?}", fields.unwrap()), format!("{value:?}"), "{bytes:x?}");
                assert_eq!(others, []);
            }
        }
        let Some(plain) = PlainProperty::read(&message) else {
            return false;
        };
        let mut entity = Entity::default();
        let (meaning, name, multiple, content) = entity.read_fields(message).unwrap();
        assert_eq!(entity.other_fields, []);
        assert_eq!(
            (meaning, name, multiple),
            (plain.meaning, plain.name, Some(plain.is_multiple))
        );
        assert_eq!(content.bytes(), plain.content.bytes(), "{bytes:x?}");
        true
    }

    /// Returns the number of elements if the fast path reads all of them. The loop over fields must
    /// then read the same elements.
    fn plain_count(bytes: &[u8]) -> Option<usize> {
        let plain = plain_path(bytes)?;
        let mut others = Vec::new();
        assert_eq!(
            read_path_fields(Message::new(bytes), &mut others),
            Ok(plain.clone()),
            "{bytes:x?}"
        );
        assert_eq!(others, []);
        Some(plain.len())
    }

    /// Calls `each` with many variants of the bytes, each differing from the original in one place.
    fn all_near(bytes: &[u8], mut each: impl FnMut(&[u8])) {
        for at in 0..bytes.len() {
            each(&bytes[..at]);
            each(&bytes[at..]);
            for byte in 0..=u8::MAX {
                let mut changed = bytes.to_vec();
                changed[at] = byte;
                each(&changed);
                each(&changed[at.saturating_sub(1)..]);
                changed.insert(at, byte);
                each(&changed);
            }
        }
    }

    #[test]
    fn plain_and_general_decoders_return_the_same_key_paths() {
        for (path, count) in PATHS {
            assert_eq!(plain_count(path), Some(count));
            all_near(path, |bytes| _ = plain_count(bytes));
        }
    }

    #[test]
    fn plain_and_general_decoders_return_the_same_properties() {
        let long = [b"\x1a\x01p\x20\x00\x2a\x83\x01\x1a\x80\x01".as_slice(), &[b'x'; 128]].concat();
        for property in PROPERTIES.into_iter().chain([&long[..]]) {
            assert!(is_plain(property));
            all_near(property, |bytes| _ = is_plain(bytes));
        }
    }
}
