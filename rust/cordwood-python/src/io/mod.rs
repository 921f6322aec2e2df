//! Sources and sinks, which make Python objects usable as [`Read`](std::io::Read) and
//! [`Write`](std::io::Write).

pub(crate) mod sink;
pub(crate) mod source;
