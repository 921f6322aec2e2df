//! Sources and sinks: adapters that let Python objects be used as [`Read`](std::io::Read) and
//! [`Write`](std::io::Write).

pub(crate) mod sink;
pub(crate) mod source;
