//! Detects what a file is: a log, with its dialect, number and compression, or something else.

mod compression;
mod detection;
mod dialect;
mod file_header;
mod foreign;
mod fragment;
mod identify;
mod name;
mod no_log;
mod number;

pub use detection::DETECT_LEN;
pub(crate) use detection::Detection;
pub use foreign::Foreign;
pub(crate) use foreign::is_text;
pub(crate) use fragment::{begins_undamaged, ends_in_first_fragment, shown_dialect};
pub(crate) use identify::identify;
pub use identify::{detect, detect_named};
pub use name::is_log_name;
pub(crate) use no_log::of_rest;
pub(crate) use number::{check_number, log_number_of};
