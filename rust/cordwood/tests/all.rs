//! The tests of the public interface, in a single program. Building it takes half as long as
//! building a program for each file. Cargo.toml lists the tests that have their own programs.

mod common;
mod double;
#[path = "common/packed.rs"]
mod made;
#[path = "common/wire.rs"]
mod wire;

mod append_to;
#[cfg(feature = "zstd")]
mod budget;
mod crash;
mod damage;
mod detect;
mod dialect_damage;
mod dialect_golden;
mod errors;
mod follow;
mod fragments;
mod golden;
mod index;
#[cfg(target_os = "linux")]
mod large_file;
mod leveldb_log_test;
mod log_file;
mod packed;
mod packed_edges;
#[cfg(feature = "zstd")]
mod packed_log_file;
#[cfg(feature = "zstd")]
mod packed_writer;
mod position;
mod properties;
mod reading;
mod segmented_crash;
mod segmented_log;
mod segments_following;
mod segments_reading;
