//! Opening a log to append to it: the kind of its end, and where appending resumes.

mod recover;
mod tail;
pub(super) mod unsynced;

pub(super) use recover::{Recovered, cut, recover};
