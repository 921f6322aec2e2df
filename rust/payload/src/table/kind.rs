//! The kinds of values, which determine a column's type.

use super::view::View;

/// A set of kinds, with one bit per kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(pub(super) u16);

impl Kinds {
    pub(super) const ALL: Kinds = Kinds(u16::MAX);

    pub(super) fn of(kinds: &[Kind]) -> Kinds {
        Kinds(kinds.iter().fold(0, |all, &kind| all | 1 << kind as u16))
    }

    #[inline]
    pub(super) fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u16 & 1 == 1
    }

    /// Returns the kinds in the set.
    pub(super) fn all(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(move |&kind| self.has(kind))
    }

    /// Returns the kind of a column with values of these kinds, or [`Kind::Json`] if they have no
    /// common kind.
    pub(super) fn common(self) -> Kind {
        let mut all = self.all();
        match (all.next(), all.next(), all.next()) {
            (None, ..) => Kind::Text,
            (Some(Kind::Int), Some(Kind::Large), None) | (Some(Kind::Large), None, _) => Kind::Int,
            (Some(Kind::Int), Some(Kind::Float), None) => Kind::Float,
            (Some(Kind::Huge), None, _) => Kind::Json,
            (Some(alone), None, _) => alone,
            _ => Kind::Json,
        }
    }
}

macro_rules! kinds {
    ($($kind:ident = $name:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind {
            $($kind,)*
        }

        impl Kind {
            const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// Returns the name of the kind, for use in messages.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    Bool = "bool",
    Int = "int",
    Large = "int",
    Huge = "int of more than 64 bits",
    Float = "float",
    Text = "text",
    Bytes = "bytes",
    Time = "time",
    List = "list",
    Object = "object",
    Key = "key",
    Place = "place",
    User = "user",
    Json = "json",
}

/// All integers up to this number convert to floating-point numbers without loss.
const EXACT_MAX: u64 = 1 << 53;

impl Kind {
    #[inline]
    pub(super) fn of(value: View<'_>) -> Option<Self> {
        Some(match value {
            View::Null => return None,
            View::Bool(_) => Kind::Bool,
            View::Int(value) if value.unsigned_abs() <= EXACT_MAX => Kind::Int,
            View::Int(_) => Kind::Large,
            View::UInt(value) if value <= EXACT_MAX => Kind::Int,
            View::UInt(value) if i64::try_from(value).is_ok() => Kind::Large,
            View::UInt(_) | View::Huge(_) => Kind::Huge,
            View::Time(_) => Kind::Time,
            View::Float(_) => Kind::Float,
            View::Text(_) => Kind::Text,
            View::Bytes(_) => Kind::Bytes,
            View::Point(..) => Kind::Place,
            View::User(_) => Kind::User,
            View::Key(_) => Kind::Key,
            View::Entity(_) | View::Properties(_) | View::Element(_) | View::Object(_) | View::Cells(_) => Kind::Object,
            View::Array(_) | View::Path(_) | View::Values(_) | View::Operations(_) | View::EditFields(_) => Kind::List,
        })
    }
}
