//! A value of a property.

use super::entity::Entity;
use super::entity_key::{EntityKey, KeyForm};
use super::error::PayloadError;
use super::plain_property::plain_value;
use super::proto::{Message, OtherField};

/// A value that a property can have.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EntityValue<'a> {
    /// Nothing.
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
    /// Bytes: what is meant to be bytes, and any text that is not UTF-8.
    Bytes(&'a [u8]),
    /// A place on earth, in degrees.
    Point {
        /// North of the equator.
        latitude: f64,
        /// East of Greenwich.
        longitude: f64,
    },
    /// The key of another entity.
    Reference(Box<EntityKey<'a>>),
    /// A user account.
    User(Box<User<'a>>),
    /// A nested entity; in Firestore, a map.
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
    /// The name to show.
    pub nickname: Option<&'a str>,
    /// The number of the account.
    pub gaia_id: i64,
    /// The number of the account, obfuscated.
    pub obfuscated_gaia_id: Option<&'a str>,
    /// The OpenID identity, if there is one.
    pub federated_identity: Option<&'a str>,
    /// That provider.
    pub federated_provider: Option<&'a str>,
}

pub(super) const MEANING_GD_WHEN: u64 = 7;
pub(super) const MEANING_BLOB: u64 = 14;
pub(super) const MEANING_BYTE_STRING: u64 = 16;
pub(super) const MEANING_INDEX_VALUE: u64 = 18;
pub(super) const MEANING_ENTITY_PROTO: u64 = 19;

impl<'a> EntityValue<'a> {
    /// Reads a `PropertyValue`, which has at most one of its fields.
    pub(super) fn read(
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

    pub(super) fn read_fields(
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
        while let Some(field) = group.next_field()? {
            match field.number {
                6 => field.set(&mut latitude, field.double()?)?,
                7 => field.set(&mut longitude, field.double()?)?,
                _ => other_fields.push(field.other("PointValue")),
            }
        }
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
        while let Some(field) = group.next_field()? {
            match field.number {
                9 => field.set(&mut email, field.text()?)?,
                10 => field.set(&mut auth_domain, field.text()?)?,
                11 => field.set(&mut user.nickname, field.text()?)?,
                18 => field.set(&mut gaia_id, field.varint()? as i64)?,
                19 => field.set(&mut user.obfuscated_gaia_id, field.text()?)?,
                21 => field.set(&mut user.federated_identity, field.text()?)?,
                22 => field.set(&mut user.federated_provider, field.text()?)?,
                _ => other_fields.push(field.other("UserValue")),
            }
        }
        user.email = email.ok_or_else(|| whole.missing(9))?;
        user.auth_domain = auth_domain.ok_or_else(|| whole.missing(10))?;
        user.gaia_id = gaia_id.ok_or_else(|| whole.missing(18))?;
        Ok(user)
    }
}
