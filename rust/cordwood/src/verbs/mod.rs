//! Operations on a whole log: [`verify`], [`salvage`], [`stat`], [`fragments`]. Each is a short
//! function over the events of a [`Reader`](crate::Reader). [`detect`] determines the dialect from
//! the first bytes.

mod fragments;
mod place;
mod ranges;
mod salvage;
mod stat;
mod verify;

pub use crate::detect::{DETECT_LEN, Foreign, detect, detect_named};
pub use fragments::{Fragment, Fragments, fragments, fragments_file, fragments_slice};
pub use ranges::split_ranges;
pub use salvage::{NotKept, salvage, salvage_source};
pub use stat::{Stat, stat, stat_ranges};
pub use verify::{Report, verify, verify_file, verify_ranges, verify_slice};
