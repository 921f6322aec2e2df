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

/// A batch is complete once it contains this many bytes. Measured on Sapphire Rapids: a batch of
/// 1 MiB does not stay in the processor's cache, and takes 1.05 to 1.15 times as long; one of 4 MiB
/// needs new memory each time, which costs half as much again.
pub(crate) const TARGET_LEN: usize = 1 << 18;
