//! With the `trace` feature, decoders and followers print their decisions to standard error for
//! debugging. Without the feature, this code is not compiled in.

use std::fmt;

/// Prints a line. Accepts the same arguments as `format!`.
macro_rules! trace {
    ($($argument:tt)+) => {
        if cfg!(feature = "trace") {
            crate::trace::print(format_args!($($argument)+));
        }
    };
}
pub(crate) use trace;

#[expect(
    clippy::print_stderr,
    reason = "this is the only place that prints, and only on request"
)]
pub(crate) fn print(line: fmt::Arguments<'_>) {
    eprintln!("{line}");
}
