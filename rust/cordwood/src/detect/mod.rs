//! Detects a log's dialect, number and compression, or the format of a file that is not a log.

mod by_file_header;
mod by_fragment;
mod by_frame;
mod detect_at;
mod detection;
mod foreign;
mod identify;
mod name;
mod not_a_log;
mod number;

pub(crate) use by_fragment::{check_start, ends_in_first_fragment, shown_dialect, starts_undamaged};
pub(crate) use detection::PartialDetection;
pub use detection::{DETECT_LEN, Detection};
pub use foreign::Foreign;
pub(crate) use identify::identify;
pub use identify::{detect, detect_named};
pub use name::is_log_name;
pub(crate) use not_a_log::of_rest;
pub(crate) use number::{check_number, log_number_of};
