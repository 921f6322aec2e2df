//! Operations on a whole log: [`verify`], [`salvage`], [`pack`], [`stat`], [`fragments`]. Each
//! operation is a short function over the events of a [`Reader`](crate::Reader). [`detect`]
//! determines the dialect from the first bytes.

mod fragment;
mod fragment_at;
mod fragments;
#[cfg(feature = "fs")]
mod new_log;
mod output;
#[cfg(feature = "fs")]
mod pack;
pub(crate) mod parallel;
mod salvage;
pub(crate) mod stat;
pub(crate) mod verify;

pub use crate::detect::{DETECT_LEN, Detection, Foreign, detect, detect_named, is_log_name};
pub use fragment::Fragment;
#[cfg(feature = "fs")]
pub use fragments::fragments_file;
pub use fragments::{Fragments, fragments};
#[cfg(feature = "fs")]
pub use pack::{PackOptions, pack, pack_file};
pub use parallel::split_ranges;
pub use salvage::{SalvageOptions, salvage_to};
#[cfg(feature = "fs")]
pub use salvage::{salvage, salvage_file};
#[cfg(feature = "fs")]
pub use stat::stat_file;
pub use stat::{Stat, stat};
#[cfg(feature = "fs")]
pub use verify::verify_file;
pub use verify::{NotKept, Report, verify};

#[cfg(test)]
pub(crate) use {stat::stat_from, verify::verify_from};
