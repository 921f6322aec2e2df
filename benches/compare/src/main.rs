//! cordwood compared with other crates: checksums by length, and logs in memory and in files by the
//! length of their records.
//!
//! Each line is a contender at a size: nanoseconds for one checksum or one record, as the median of
//! the rounds with the middle half, then likewise the time as a multiple of cordwood's in the same
//! round. The contenders take turns, so that other load on the machine affects all alike, and each
//! answer is checked before it is timed. A line that starts with `file_share` says instead how many
//! bytes the file has for each byte of the records.
//!
//! `cordwood-compare kernels` times each kernel of the checksum instead, and `cordwood-compare check` prints the lengths
//! for which another crate's checksum is faster.

// Printing is this program's purpose.
#![allow(clippy::print_stdout)]

mod append;
mod checksum;
mod kernels;
mod log;
mod packed;
mod turns;

// The log module looks for its two neighbours at the top of the crate.
#[allow(warnings, missing_docs, clippy::all, clippy::pedantic)]
mod rusty_leveldb {
    include!(concat!(env!("OUT_DIR"), "/rusty_leveldb.rs"));
}
#[allow(unused_imports)]
use rusty_leveldb::{crc, error};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("kernels") => return kernels::compare(),
        Some("check") => return kernels::check(),
        _ => {}
    }
    println!("verb\tsize\tcontender\tns\tlow\thigh\tratio\tlow\thigh");
    checksum::compare();
    log::compare();
    append::compare();
    packed::compare();
}
