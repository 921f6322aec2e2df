//! The parts that the fuzz targets share: a model of the format that is independent of the crate,
//! files made from a fuzzer's bytes, and comparisons of results.
//!
//! Each target compares results: with the [`model`], with another way to the same answer, or with
//! the written records. The absence of panics is checked along the way.

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

/// Bytes in a block. `rust/exhaustive` uses the model with shorter ones.
pub const BLOCK: usize = 32_768;
