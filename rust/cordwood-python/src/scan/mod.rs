//! Logs as a table, for everything that reads Arrow.

mod class;
mod columns;
mod failure;
mod open_log;
mod plan;
mod source;
mod stream;

pub(crate) use class::{Scan, scan};
pub(crate) use columns::{Column, all_fit_binary, fits_binary, offset_column, record_column};
pub(crate) use failure::attached;
pub(crate) use open_log::TARGET_LEN;
