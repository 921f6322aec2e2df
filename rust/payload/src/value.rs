//! Values that form a tree.

use std::borrow::Cow;
use std::collections::TryReserveError;

/// A value from a record. It comes from JSON text, a version edit's field, or a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'v> {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer. Parsing JSON text never returns this variant.
    UInt(u64),
    /// The digits of an integer that is wider than 64 bits.
    Huge(Cow<'v, str>),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(Cow<'v, str>),
    /// Bytes. Parsing JSON text never returns this variant.
    Bytes(Cow<'v, [u8]>),
    /// A list of values.
    Array(Vec<Value<'v>>),
    /// Named values, each with a different name.
    Object(Vec<Item<'v>>),
}

/// A named value in an object or a row.
pub type Item<'v> = (Cow<'v, str>, Value<'v>);

impl<'v> Value<'v> {
    /// Returns the value with this name in an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Value::Object(items) = self else { return None };
        let item = items.iter().find(|(other, _)| other == name);
        item.map(|(_, value)| value)
    }

    /// Converts the value into one that owns its text.
    pub(super) fn into_owned(self) -> Result<Value<'static>, TryReserveError> {
        Ok(match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::UInt(value) => Value::UInt(value),
            Value::Float(value) => Value::Float(value),
            Value::Huge(digits) => Value::Huge(owned(digits)?),
            Value::Text(text) => Value::Text(owned(text)?),
            Value::Bytes(bytes) => Value::Bytes(bytes.into_owned().into()),
            Value::Array(values) => {
                let mut owned = Vec::new();
                owned.try_reserve_exact(values.len())?;
                for value in values {
                    owned.push(value.into_owned()?);
                }
                Value::Array(owned)
            }
            Value::Object(items) => {
                let mut kept = Vec::new();
                kept.try_reserve_exact(items.len())?;
                for (name, value) in items {
                    kept.push((owned(name)?, value.into_owned()?));
                }
                Value::Object(kept)
            }
        })
    }
}

fn owned(text: Cow<'_, str>) -> Result<Cow<'static, str>, TryReserveError> {
    Ok(match text {
        Cow::Owned(text) => text,
        Cow::Borrowed(text) => copied(text)?,
    }
    .into())
}

/// Returns a copy of text from a record.
pub(super) fn copied(text: &str) -> Result<String, TryReserveError> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len())?;
    copy.push_str(text);
    Ok(copy)
}
