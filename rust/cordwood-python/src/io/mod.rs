//! Sources and sinks: Python objects as [`Read`](std::io::Read) and [`Write`](std::io::Write).

pub(crate) mod sink;
pub(crate) mod source;
