//! Follows a file that is still being written, returning its records as they arrive.
//!
//! The rules and the reasons for them are in `docs/format/following.md`. The
//! [`Decoder`](crate::codec::Decoder) distinguishes records from damage; this module only decides
//! when the decoder's result is final.

mod directory;
mod follower;
mod identify;
mod judge;
mod live_file;
mod options;
mod poll;
#[cfg(test)]
mod tests;
mod unreported;

pub use follower::Follower;
pub use options::FollowOptions;
pub use poll::{NotYet, Poll, WaitReason};
