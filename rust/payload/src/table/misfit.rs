//! Why a row does not fit the columns of a table.

use std::collections::TryReserveError;
use std::error;
use std::fmt;

use super::kind::Kind;
use super::types::Type;
use super::view::View;

/// Why a row was not added.
#[derive(Debug, Clone, PartialEq)]
pub enum NotAdded {
    /// A value does not fit its column.
    Misfit(Box<Misfit>),
    /// Two values have this name in Arrow, where some characters are escaped.
    SameNames(String),
    /// There is not enough memory.
    NoMemory,
}

/// A value that does not fit its column: it has the wrong type, it exceeds what a column can
/// contain, or no column or field has its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Misfit {
    /// The name of the column. `a.b` is a field of `a`, and `a[]` is an item of `a`.
    pub path: String,
    /// The type of the column, field or item that `path` names, or `None` if there is no such
    /// column or field.
    pub column: Option<Type>,
    /// The type of the value.
    pub value: &'static str,
    /// Why this value does not fit even though other values of its type do.
    pub why: Option<String>,
}

impl NotAdded {
    pub(super) fn misfit(column: Option<&Type>, value: View<'_>) -> Self {
        NotAdded::Misfit(Box::new(Misfit {
            path: String::new(),
            column: column.cloned(),
            value: match Kind::of(value) {
                None => "null",
                // An integer that is too large doesn't fit in a column of floating-point numbers.
                Some(Kind::Large) if column.is_some_and(|column| *column.made_as() == Type::Float) => {
                    "int of more than 53 bits"
                }
                Some(kind) => kind.name(),
            },
            why: None,
        }))
    }

    /// Prepends the name of the outer column or field to the inner name.
    pub(super) fn within(mut self, outer: &str) -> Self {
        if let NotAdded::Misfit(misfit) = &mut self {
            misfit.path.insert_str(0, outer);
        }
        self
    }

    /// Completes the error for a row: removes the dot before the column name.
    pub(super) fn of_row(mut self) -> Self {
        if let NotAdded::Misfit(misfit) = &mut self {
            misfit.path = misfit.path.strip_prefix('.').unwrap_or(&misfit.path).to_owned();
        }
        self
    }
}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdded::Misfit(misfit) => misfit.fmt(f),
            NotAdded::SameNames(name) => write!(
                f,
                "two values have the name '{name}' in a table, where some characters are escaped"
            ),
            NotAdded::NoMemory => f.write_str("there is not enough memory"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit {
            path,
            column,
            value,
            why,
        } = self;
        match column {
            Some(column) => {
                write!(
                    f,
                    "the column '{path}' is {column}, and cannot have a value of type {value}"
                )?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            None => write!(f, "the column '{path}' was not there when the columns were found"),
        }
    }
}

impl error::Error for NotAdded {}

impl From<TryReserveError> for NotAdded {
    fn from(_: TryReserveError) -> Self {
        NotAdded::NoMemory
    }
}
