//! Macros that define structs of options, with defaults and setters.

/// Defines a struct of options. Write each field as `name: type = default`.
///
/// If the field has a setter, write `set with_name` after the default. If the setter must also
/// convert its argument, so that callers can leave out `Some`, write `into with_name` instead.
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $options:ident {
            $($(#[$field_about:meta])* $vis:vis $field:ident: $type:ty = $default:expr $(, $kind:ident $setter:ident)?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $options {
            $($(#[$field_about])* $vis $field: $type,)*
        }

        impl Default for $options {
            fn default() -> Self {
                $options { $($field: $default,)* }
            }
        }

        impl $options {
            $($($crate::options::setter!($kind $setter, $field: $type);)?)*
        }
    };
}

/// A setter for `options!`.
macro_rules! setter {
    (set $setter:ident, $field:ident: $type:ty) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    };
    (into $setter:ident, $field:ident: $type:ty) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(mut self, $field: impl Into<$type>) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

/// Implements `with_format`, `with_named` and `named` for options that include the format of a log.
macro_rules! log_options {
    ($options:ident) => {
        impl $options {
            /// Sets the dialect, the log number and the compression. You can get a
            /// [`LogFormat`](crate::LogFormat) from [`detect`](crate::ops::detect) or from a reader
            /// of the same log.
            #[must_use]
            pub fn with_format(self, format: impl Into<$crate::LogFormat>) -> Self {
                let format: $crate::LogFormat = format.into();
                self.with_named(format.into())
            }

            pub(crate) fn with_named(self, named: $crate::dialect::GivenFormat) -> Self {
                self.with_dialect(named.dialect)
                    .with_log_number(named.log_number)
                    .with_compression(named.compression)
            }

            pub(crate) fn named(&self) -> $crate::dialect::GivenFormat {
                $crate::dialect::GivenFormat {
                    dialect: self.dialect,
                    log_number: self.log_number,
                    compression: self.compression,
                }
            }
        }
    };
}

pub(crate) use {log_options, options, setter};
