//! Opens a log to append to it: classifies its end and finds where to append.

mod recover;
mod tail;
pub(super) mod unsynced;

pub(super) use recover::{Recovered, cut, recover};
