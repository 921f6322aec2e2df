//! Opening a log to append to it: what its end is, and where appending resumes.

mod recover;
mod tail;
pub(super) mod unsynced;

pub(super) use recover::{Recovered, cut, recover};
