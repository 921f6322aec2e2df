//! Opens a log for appending: classifies its end and determines where to append.

mod recover;
mod tail;
pub(super) mod unsynced;

pub(super) use recover::{Recovered, cut, recover};
