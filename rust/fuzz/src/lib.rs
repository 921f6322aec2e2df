//! What the fuzz targets share: a model of the format that owes nothing to the crate, files made from a fuzzer's bytes, and
//! comparisons of what was read.
//!
//! Each target compares: with the [`model`], with another way to the same answer, or with what was written. That nothing panics
//! is only what comes with it.

#![forbid(unsafe_code)]

pub mod file;
pub mod log;
pub mod model;
pub mod options;
pub mod read;
pub mod session;
pub mod steps;
