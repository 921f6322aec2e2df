//! The fast path for properties as Google's own programs write them: their fields in the order of
//! their numbers, and lengths of at most two bytes. What looks otherwise in any way is left to the
//! loops over fields in `entity.rs` and `entity_value.rs`, the naive counterpart.

use super::entity_value::{
    EntityValue, MEANING_BLOB, MEANING_BYTE_STRING, MEANING_ENTITY_PROTO, MEANING_GD_WHEN, MEANING_INDEX_VALUE,
};
use super::proto::Message;
use super::wire::Cursor;

/// What a `Property` holds.
#[derive(Debug)]
pub(super) struct PlainProperty<'a> {
    pub(super) meaning: Option<u64>,
    pub(super) name: &'a str,
    pub(super) is_multiple: bool,
    /// Its `PropertyValue`.
    pub(super) content: Message<'a>,
}

impl<'a> PlainProperty<'a> {
    #[inline]
    pub(super) fn read(message: &Message<'a>) -> Option<Self> {
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

/// The value in a `PropertyValue` of one field, which is no group and no message.
#[inline]
pub(super) fn plain_value<'a>(content: &Message<'a>, meaning: Option<u64>) -> Option<EntityValue<'a>> {
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
        _ => return None,
    })
}

/// A string that fills all that is left.
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
    use crate::entity::Entity;

    /// Properties as they are written, and their values.
    const PROPERTIES: [&[u8]; 8] = [
        b"\x1a\x01p\x20\x00\x2a\x00",
        b"\x1a\x02pq\x20\x01\x2a\x03\x08\xac\x02",
        b"\x08\x07\x1a\x01p\x20\x00\x2a\x09\x08\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x1a\x02\xc3\xa4\x20\x00\x2a\x02\x10\x01",
        b"\x08\x0f\x1a\x01p\x20\x00\x2a\x04\x1a\x02\xc3\xa4",
        b"\x08\x0e\x1a\x01p\x20\x00\x2a\x04\x1a\x02\xff\xfe",
        b"\x1a\x01p\x20\x00\x2a\x09\x21\0\0\0\0\0\0\xf0\x3f",
        b"\x08\x18\x1a\x01p\x20\x00\x2a\x00",
    ];

    /// Whether the fast path takes it; then the loops over fields must read the same.
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

    #[test]
    fn both_ways_read_the_same() {
        let long = [b"\x1a\x01p\x20\x00\x2a\x83\x01\x1a\x80\x01".as_slice(), &[b'x'; 128]].concat();
        for property in PROPERTIES.into_iter().chain([&long[..]]) {
            assert!(is_plain(property));
            for at in 0..property.len() {
                is_plain(&property[..at]);
                is_plain(&property[at..]);
                for byte in 0..=u8::MAX {
                    let mut changed = property.to_vec();
                    changed[at] = byte;
                    is_plain(&changed);
                    is_plain(&changed[at.saturating_sub(1)..]);
                    changed.insert(at, byte);
                    is_plain(&changed);
                }
            }
        }
    }
}
