//! Presents logs as a table for any library that reads Arrow.

mod class;
mod source;
mod stream;

pub(crate) use class::{Scan, scan};
