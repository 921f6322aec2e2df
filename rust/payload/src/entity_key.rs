//! Decodes an entity key, which has two encodings.

use super::error::PayloadError;
use super::proto::{Message, OtherField};
use super::wire::Cursor;

/// An entity key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct EntityKey<'a> {
    /// The application: the project prefixed with the partition, such as `s~project`, or
    /// `dev~project` in an emulator. Empty for a Firestore map.
    pub app: &'a str,
    /// The database, if it isn't the default.
    pub database: Option<&'a str>,
    /// The namespace, if it isn't the default.
    pub namespace: Option<&'a str>,
    /// The path from the root to the entity. Empty for a Firestore map.
    pub path: Vec<PathElement<'a>>,
}

/// A step in a key's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PathElement<'a> {
    /// The kind, which is the collection in Firestore.
    pub kind: &'a str,
    /// The name or number of the entity within its kind.
    pub id: PathId<'a>,
}

/// The name or number of an entity within its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathId<'a> {
    /// Neither a name nor a number. The key is incomplete.
    None,
    /// A number.
    Id(i64),
    /// A name.
    Name(&'a str),
}

/// The number of the first field in a `Path` element. An element has three fields: the kind, the
/// number and the name.
const PATH: u32 = 2;

/// Like [`PATH`], but for an element of a `ReferenceValue`.
const REFERENCE_VALUE_PATH: u32 = 15;

/// Reads a `Path`.
fn read_path<'a>(
    message: Message<'a>,
    other_fields: &mut Vec<OtherField<'a>>,
) -> Result<Vec<PathElement<'a>>, PayloadError> {
    match plain_path(message.bytes()) {
        Some(path) => Ok(path),
        None => read_path_fields(message, other_fields),
    }
}

/// Reads a `Path` in any encoding. This is the naive counterpart of [`plain_path`].
pub(super) fn read_path_fields<'a>(
    mut message: Message<'a>,
    other_fields: &mut Vec<OtherField<'a>>,
) -> Result<Vec<PathElement<'a>>, PayloadError> {
    let mut path = Vec::new();
    while let Some(field) = message.next_field()? {
        if field.number == 1 {
            path.push(PathElement::read(field.group()?, PATH, other_fields)?);
        } else {
            other_fields.push(field.other("Path"));
        }
    }
    Ok(path)
}

/// Reads the `Path` of an entity group. Returns whether the path is empty or consists only of
/// `root`.
pub(super) fn is_empty_or_root<'a>(
    message: Message<'a>,
    root: Option<&PathElement<'a>>,
    other_fields: &mut Vec<OtherField<'a>>,
) -> Result<bool, PayloadError> {
    // `read_path` would allocate.
    if let Some((element, [])) = plain_element(message.bytes()) {
        return Ok(root == Some(&element));
    }
    let path = read_path(message, other_fields)?;
    Ok(path.is_empty() || path.iter().eq(root))
}

/// Returns the `Path` element at the start of `bytes` and the bytes after it. Returns `None` if
/// there is no element, or if it isn't encoded the way Google's own programs encode it. See the
/// fast path in `entity.rs`.
#[inline]
fn plain_element(bytes: &[u8]) -> Option<(PathElement<'_>, &[u8])> {
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

/// Returns the elements of a `Path` if all of them are encoded the way Google's own programs encode
/// them.
pub(super) fn plain_path(mut bytes: &[u8]) -> Option<Vec<PathElement<'_>>> {
    let mut path = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = plain_element(bytes)?;
        path.push(element);
        bytes = rest;
    }
    Some(path)
}

impl<'a> PathElement<'a> {
    fn read(mut group: Message<'a>, first: u32, other_fields: &mut Vec<OtherField<'a>>) -> Result<Self, PayloadError> {
        let whole = group.clone();
        let (mut kind, mut id) = (None, None);
        while let Some(field) = group.next_field()? {
            match field.number.checked_sub(first) {
                Some(0) => field.set(&mut kind, field.text()?)?,
                Some(1) => field.set(&mut id, PathId::Id(field.varint()? as i64))?,
                Some(2) => field.set(&mut id, PathId::Name(field.text()?))?,
                _ => other_fields.push(field.other("Element")),
            }
        }
        Ok(PathElement {
            kind: kind.ok_or_else(|| whole.missing(first))?,
            id: id.unwrap_or(PathId::None),
        })
    }
}

/// The two messages that contain a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// `Reference`, which contains the path as a separate message.
    Reference,
    /// `PropertyValue.ReferenceValue`, which contains the path elements directly, under different
    /// field numbers.
    ReferenceValue,
}

impl<'a> EntityKey<'a> {
    pub(super) fn read(
        mut message: Message<'a>,
        form: KeyForm,
        other_fields: &mut Vec<OtherField<'a>>,
    ) -> Result<Self, PayloadError> {
        let whole = message.clone();
        let is_value = form == KeyForm::ReferenceValue;
        let (mut app, mut database, mut namespace, mut path) = (None, None, None, None);
        while let Some(field) = message.next_field()? {
            match field.number {
                13 => field.set(&mut app, field.text()?)?,
                14 if is_value => {
                    let element = PathElement::read(field.group()?, REFERENCE_VALUE_PATH, other_fields)?;
                    path.get_or_insert_with(Vec::new).push(element);
                }
                14 => {
                    let elements = read_path(field.message()?, other_fields)?;
                    field.set(&mut path, elements)?;
                }
                20 => field.set(&mut namespace, field.text()?)?,
                23 => field.set(&mut database, field.text()?)?,
                _ => other_fields.push(field.other(if is_value { "ReferenceValue" } else { "Reference" })),
            }
        }
        Ok(EntityKey {
            app: app.ok_or_else(|| whole.missing(13))?,
            database,
            namespace,
            path: path.unwrap_or_default(),
        })
    }
}
