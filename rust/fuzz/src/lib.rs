//! The code that the fuzz targets share. It consists of a model of the format that is independent
//! of the crate, builders of files from a fuzzer's bytes, and comparisons of results.
//!
//! Each target compares results with the [`model`], with another way to get the same result, or
//! with the records that were written. Panics are found along the way.

#![forbid(unsafe_code)]

pub mod append;
pub mod containers;
pub mod event;
pub mod file;
pub mod log;
pub mod model;
pub mod options;
pub mod packed;
pub mod read;
pub mod session;
pub mod steps;
mod zstd;

/// The length of a block in bytes. `rust/exhaustive` uses the model with shorter blocks.
pub const BLOCK: usize = 32_768;
