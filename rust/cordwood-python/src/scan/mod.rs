//! Logs as a table, for every library that reads Arrow.

mod class;
mod plan;
mod source;
mod stream;

pub(crate) use class::{Scan, scan};
