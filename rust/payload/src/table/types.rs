//! The types that a column can have.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::kind::{Kind, Kinds};
use super::names::Names;

/// The type of a column, of list items, or of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Truth values.
    Bool,
    /// 64-bit integers.
    Int,
    /// Unsigned 64-bit integers. A [`Learner`](super::Learner) never chooses this type.
    UInt,
    /// 64-bit floating-point numbers, and integers that convert to them without loss.
    Float,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Microseconds since 1970 in UTC.
    Time,
    /// Any value, as JSON text.
    Json,
    /// Lists whose items all have the same type.
    List(Box<Type>),
    /// Structures.
    Struct(Arc<Fields>),
    /// A type in a given schema.
    Given(Arc<Given>),
}

/// The fields of a structure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields {
    pub(super) names: Names,
    pub(super) types: Vec<Type>,
}

impl Fields {
    /// Iterates over the names and types in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.names.iter().zip(&self.types)
    }

    /// Checks whether these fields include all the given fields, with the same types.
    pub fn has_all<'n>(&self, fields: impl IntoIterator<Item = &'n (String, Type)>) -> bool {
        fields.into_iter().all(|(name, kind)| {
            let number = self.names.find(name, 0);
            number.is_some_and(|number| self.types[number] == *kind)
        })
    }
}

impl<N: AsRef<str>> FromIterator<(N, Type)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, Type)>>(fields: I) -> Self {
        let mut found = Fields::default();
        for (name, kind) in fields {
            found.names.add(name.as_ref());
            found.types.push(kind);
        }
        found
    }
}

/// A given Arrow type. Columns of this type are built as columns of another type, and the caller
/// casts them to this type.
#[derive(Debug, PartialEq)]
pub struct Given {
    /// The name of the type in Arrow, for messages.
    pub name: String,
    /// The type used to build the columns. A text type is built as JSON, but its text has no
    /// quotation marks. The types of any fields or items are also given types.
    pub made_as: Type,
    /// The values that fit this type.
    pub fits: Fits,
    /// Whether null fits.
    pub is_nullable: bool,
}

/// The values that fit a given type. Casting does not change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    /// The values that fit the type used to build the columns. If that type is a structure, any
    /// extra fields of a value are omitted.
    Same,
    /// No value.
    Nothing,
    /// Integers with this many bits, and floating-point numbers whose value is such an integer.
    Integers(u64),
    /// Integers with at most this many digits. The columns are built as JSON.
    Digits(u64),
    /// Floating-point numbers with this many bits.
    Floats(u64),
    /// Bytes and text. The text is stored as UTF-8.
    Bytes,
    /// Lists with this many items, or byte strings of this length.
    Count(u64),
    /// Times that are a multiple of this many nanoseconds.
    Times(u64),
    /// Structures. The columns are built as lists of structures with two fields, `key` and `value`.
    Map,
}

/// Writes the Arrow name of a type.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int64"),
            Type::UInt => f.write_str("uint64"),
            Type::Float => f.write_str("double"),
            Type::Text | Type::Json => f.write_str("string"),
            Type::Bytes => f.write_str("binary"),
            Type::Time => f.write_str("timestamp[us, tz=UTC]"),
            Type::Given(given) => f.write_str(&given.name),
            Type::List(item) => write!(f, "list<item: {item}>"),
            Type::Struct(fields) => {
                f.write_str("struct<")?;
                for (number, (name, kind)) in fields.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}: {kind}")?;
                }
                f.write_char('>')
            }
        }
    }
}

/// The maximum number of cells counted for a given type. A row with this many cells needs a batch
/// of its own. In a fixed-size list, each item counts as a cell.
const LEAF_COUNT_MAX: usize = 1 << 24;

impl Type {
    /// Returns the number of Parquet columns needed by a column of this type.
    pub(super) fn leaf_count(&self) -> usize {
        match self {
            Type::List(item) => item.leaf_count(),
            Type::Given(given) => {
                let count = given.made_as.leaf_count().saturating_mul(self.fixed_len().max(1));
                count.min(LEAF_COUNT_MAX)
            }
            Type::Struct(fields) => fields.types.iter().map(Type::leaf_count).sum(),
            _ => 1,
        }
    }

    /// Returns the kinds of values that a column of this type can contain. Other kinds may have the
    /// same memory layout: a text column, for example, could store bytes.
    pub(super) fn kinds(&self) -> Kinds {
        match self {
            Type::Bool => Kinds::of(&[Kind::Bool]),
            Type::Int => Kinds::of(&[Kind::Int, Kind::Large]),
            Type::UInt => Kinds::of(&[Kind::Int, Kind::Large, Kind::Huge]),
            Type::Float => Kinds::of(&[Kind::Int, Kind::Float]),
            Type::Text => Kinds::of(&[Kind::Text]),
            Type::Bytes => Kinds::of(&[Kind::Bytes]),
            Type::Time => Kinds::of(&[Kind::Time]),
            Type::List(_) => Kinds::of(&[Kind::List]),
            Type::Struct(_) => Kinds::of(&[Kind::Object, Kind::Key, Kind::Place, Kind::User]),
            Type::Json => Kinds::ALL,
            Type::Given(given) => given.kinds(),
        }
    }

    /// Returns the type used to build a column of this type.
    pub fn made_as(&self) -> &Type {
        match self {
            Type::Given(given) => &given.made_as,
            natural => natural,
        }
    }

    /// Returns the number of items that each list must have, or 0 if this number isn't fixed.
    pub(super) fn fixed_len(&self) -> usize {
        match self {
            Type::Given(given) => match (given.fits, &given.made_as) {
                (Fits::Count(count), Type::List(_)) => usize::try_from(count).unwrap_or(usize::MAX),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Checks whether null fits the type.
    pub(super) fn is_nullable(&self) -> bool {
        !matches!(self, Type::Given(given) if !given.is_nullable)
    }

    /// Returns the type of entity keys.
    pub(super) fn key() -> Type {
        let element = Type::of_fields([("kind", Type::Text), ("id", Type::Int), ("name", Type::Text)]);
        Type::of_fields([
            ("app", Type::Text),
            ("namespace", Type::Text),
            ("database", Type::Text),
            ("path", Type::List(Box::new(element))),
        ])
    }

    /// Returns the type of an entity's place values.
    pub(super) fn point() -> Type {
        Type::of_fields([("latitude", Type::Float), ("longitude", Type::Float)])
    }

    /// Returns the type of an entity's user values.
    pub(super) fn user() -> Type {
        Type::of_fields([
            ("email", Type::Text),
            ("auth_domain", Type::Text),
            ("nickname", Type::Text),
            ("gaia_id", Type::Int),
            ("obfuscated_gaia_id", Type::Text),
            ("federated_identity", Type::Text),
            ("federated_provider", Type::Text),
        ])
    }

    fn of_fields<const COUNT: usize>(fields: [(&str, Type); COUNT]) -> Type {
        Type::Struct(Arc::new(fields.into_iter().collect()))
    }
}

impl Given {
    /// Returns the kinds of values that may fit the type.
    fn kinds(&self) -> Kinds {
        match self.fits {
            Fits::Nothing => Kinds::default(),
            Fits::Integers(_) => Kinds::of(&[Kind::Int, Kind::Large, Kind::Huge, Kind::Float]),
            Fits::Digits(_) => Kinds::of(&[Kind::Int, Kind::Large, Kind::Huge]),
            Fits::Bytes => Kinds::of(&[Kind::Bytes, Kind::Text]),
            Fits::Map => Type::Struct(Arc::default()).kinds(),
            _ => self.made_as.kinds(),
        }
    }
}
