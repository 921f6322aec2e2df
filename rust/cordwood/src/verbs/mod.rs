//! Operations on a whole log: [`verify`], [`salvage`], [`stat`], [`fragments`]. Each is a short
//! function over the events of a [`Reader`](crate::Reader). [`detect`] determines the dialect from
//! the first bytes.

mod fragment;
mod fragments;
mod place;
mod ranges;
mod salvage;
mod stat;
mod verify;

pub use crate::detect::{DETECT_LEN, Foreign, detect, detect_named};
pub use fragment::Fragment;
pub use fragments::{Fragments, fragments, fragments_file, fragments_slice};
#[doc(hidden)]
pub use ranges::Parts;
pub use ranges::split_ranges;
pub use salvage::{NotKept, salvage, salvage_source};
#[doc(hidden)]
pub use stat::stat_parts;
pub use stat::{Stat, stat, stat_file};
#[doc(hidden)]
pub use verify::verify_parts;
pub use verify::{Report, verify, verify_file, verify_slice};
