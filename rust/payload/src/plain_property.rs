//! The fast path for properties and keys as Google's own programs write them: their fields in the
//! order of their numbers, and lengths of at most two bytes. Anything else is left to the loops
//! over fields in `entity.rs`, `entity_value.rs` and `entity_key.rs`, the naive counterpart.

use super::entity_key::{PathElement, PathId};
use super::entity_value::{
    EntityValue, MEANING_BLOB, MEANING_BYTE_STRING, MEANING_ENTITY_PROTO, MEANING_GD_WHEN, MEANING_INDEX_VALUE,
};
use super::proto::Message;
use super::wire::Cursor;

/// The content of a `Property`.
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

/// The value in a `PropertyValue` of one field, which is not a message, nor any group except a
/// point.
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

/// The element of a `Path` at the beginning of `bytes`, and what follows it.
#[inline]
pub(super) fn plain_element(bytes: &[u8]) -> Option<(PathElement<'_>, &[u8])> {
    let [0x0b, 0x12, len @ 0..0x80, rest @ ..] = bytes else {
        return None;
    };
    let (kind, rest) = rest.split_at_checked(usize::from(*len))?;
    let (id, rest) = match rest {
        [0x18, rest @ ..] => {
            let mut cursor = Cursor::new(rest, 0);
            let number = cursor.varint64().ok()? as i64;
            (PathId::Id(number), rest.get(cursor.offset()..)?)
        }
        [0x22, len @ 0..0x80, rest @ ..] => {
            let (name, rest) = rest.split_at_checked(usize::from(*len))?;
            (PathId::Name(std::str::from_utf8(name).ok()?), rest)
        }
        _ => (PathId::None, rest),
    };
    let kind = std::str::from_utf8(kind).ok()?;
    Some((PathElement { kind, id }, rest.strip_prefix(&[0x0c])?))
}

/// The elements of a `Path`.
pub(super) fn plain_path(mut bytes: &[u8]) -> Option<Vec<PathElement<'_>>> {
    let mut path = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = plain_element(bytes)?;
        path.push(element);
        bytes = rest;
    }
    Some(path)
}

/// The string in `bytes`, if it fills them.
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
    use crate::entity_key::read_path_fields;

    /// Properties as they are written, and their values.
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

    /// Paths, and how many elements they have.
    const PATHS: [(&[u8], usize); 5] = [
        (b"", 0),
        (b"\x0b\x12\x04Task\x18\x07\x0c", 1),
        (b"\x0b\x12\x02\xc3\xa4\x22\x01n\x0c\x0b\x12\x00\x0c", 2),
        (b"\x0b\x12\x01k\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0c", 1),
        (b"\x0b\x12\x01k\x22\x02\xc3\xa4\x0c\x0b\x12\x01k\x18\x00\x0c", 2),
    ];

    /// Whether the fast path accepts the bytes; if so, the loops over fields must read the same.
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

    /// The number of elements that the fast path reads, if it reads all; then the loop over fields
    /// must read the same.
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

    /// Calls `each` with the bytes, and with many variants that differ from them in one place.
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
    fn both_ways_read_the_same_path() {
        for (path, count) in PATHS {
            assert_eq!(plain_count(path), Some(count));
            all_near(path, |bytes| _ = plain_count(bytes));
        }
    }

    #[test]
    fn both_ways_read_the_same() {
        let long = [b"\x1a\x01p\x20\x00\x2a\x83\x01\x1a\x80\x01".as_slice(), &[b'x'; 128]].concat();
        for property in PROPERTIES.into_iter().chain([&long[..]]) {
            assert!(is_plain(property));
            all_near(property, |bytes| _ = is_plain(bytes));
        }
    }
}
