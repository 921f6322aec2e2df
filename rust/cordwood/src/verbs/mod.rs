//! What is done with a whole log: [`verify`], [`salvage`], [`stat`]. Each is a short function over the events of a [`Reader`](crate::Reader).

mod salvage;
mod stat;
mod verify;

pub use salvage::{salvage, salvage_source};
pub use stat::{Stat, stat};
pub use verify::{Report, split_ranges, verify, verify_file, verify_ranges, verify_slice};
