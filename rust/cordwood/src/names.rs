//! Values with stable names, which are the same in Rust, in Python and on the command line.
//! `Display` shows the name, and `FromStr` parses it, for programs that take the name from the
//! user.

use std::fmt;

/// The error that [`str::parse`] returns for text that is not the name of any value.
///
/// ```
/// use cordwood_log::Dialect;
/// let error = "gzip".parse::<Dialect>().unwrap_err();
/// assert_eq!(error.name, "gzip");
/// assert!(error.to_string().starts_with("unknown dialect \"gzip\": expected leveldb, "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// The kind of name that was expected, such as `"dialect"`.
    pub what: &'static str,
    /// The text that is not a valid name.
    pub name: String,
    /// The valid names.
    pub expected: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { what, name, expected } = self;
        let expected = match expected.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => expected.concat(),
        };
        write!(f, "unknown {what} {name:?}: expected {expected}")
    }
}

impl std::error::Error for UnknownName {}

/// Returns the value in `all` that has this name.
pub(crate) fn parse<T: Copy>(
    what: &'static str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
    name: &str,
) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|&value| name_of(value) == name);
    found.ok_or_else(|| UnknownName {
        what,
        name: name.to_owned(),
        expected: all.iter().copied().map(name_of).collect(),
    })
}

/// Implements `Display` by showing the name that `as_str` returns.
macro_rules! shows_name {
    ($type:ty) => {
        /// Shows the [name](Self::as_str).
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Implements `FromStr` and `Display` with the name that `as_str` returns.
macro_rules! parses_name {
    ($type:ident, $what:literal, [$($variant:ident),+]) => {
        $crate::names::shows_name!($type);

        /// Parses the [name](Self::as_str).
        impl std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                $crate::names::parse($what, &[$($type::$variant),+], $type::as_str, name)
            }
        }
    };
}

/// Defines an enum without fields, whose values have stable names and, optionally, descriptions.
macro_rules! named {
    ($(#[$about:meta])* pub enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$of])* $variant,)+
        }

        impl $type {
            /// Returns a stable name, which is the same in Python and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
    (
        $(#[$about:meta])*
        pub enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal, $description:literal;)+ }
    ) => {
        $crate::names::named! {
            $(#[$about])*
            pub enum $type { $($(#[$of])* $variant = $name,)+ }
        }

        impl $type {
            /// Returns the description of the value.
            pub const fn description(self) -> &'static str {
                match self {
                    $($type::$variant => $description,)+
                }
            }
        }
    };
}

pub(crate) use {named, parses_name, shows_name};

#[cfg(test)]
mod tests {
    use crate::damage::{FragmentPart, Severity};
    use crate::format::{FragmentKind, Kind};
    use crate::{Compression, Dialect, End, FlushPolicy, OnCorruption, OnTornTail};

    #[test]
    fn a_displayed_name_can_be_parsed_back() {
        assert_eq!(OnCorruption::Fail.to_string(), "raise");
        assert_eq!("raise".parse(), Ok(OnCorruption::Fail));
        assert_eq!("skip".parse(), Ok(OnCorruption::Skip));
        assert_eq!("stop".parse(), Ok(OnCorruption::Stop));
        assert_eq!("salvage".parse(), Ok(OnCorruption::Salvage));
        assert_eq!("append".parse(), Ok(FlushPolicy::EveryAppend));
        assert_eq!("close".parse(), Ok(FlushPolicy::OnClose));
        assert_eq!("refuse".parse(), Ok(OnTornTail::Refuse));
        assert_eq!("truncate".parse(), Ok(OnTornTail::Truncate));
        assert_eq!("pad".parse(), Ok(OnTornTail::PadToBlock));
        assert_eq!("wandb_old".parse(), Ok(Dialect::WANDB_OLD));
    }

    #[test]
    fn unknown_name_errors_list_the_valid_names() {
        let error = "fail".parse::<OnCorruption>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown policy for damage \"fail\": expected raise, skip, stop or salvage"
        );
        let error = "".parse::<Compression>().unwrap_err().to_string();
        assert_eq!(error, "unknown compression \"\": expected zstd");
    }

    #[test]
    fn display_pads_names_like_strings() {
        assert_eq!(
            format!("{:>9}|{:<9}|", Severity::Info, FragmentPart::Kind),
            "     info|kind     |"
        );
        assert_eq!(FragmentKind::WalSync(Kind::Last).to_string(), "wal_sync_last");
    }

    #[test]
    fn displaying_a_log_end_shows_its_offset() {
        assert_eq!(End::TornTail { offset: 38 }.to_string(), "torn tail at offset 38");
    }
}
