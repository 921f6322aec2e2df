//! Readers: one loop around the [`Decoder`](crate::codec::Decoder), over anything that provides
//! windows of a file.

mod event;
mod file_reader;
mod follow;
mod identify;
mod log_reader;
mod record_batch;
mod records;
mod source;

pub use event::{Event, Record};
pub use file_reader::FileReader;
pub use follow::{FollowOptions, Follower, NotYet, Poll, WaitReason};
pub use log_reader::Reader;
pub use record_batch::RecordBatch;
pub use records::{IntoRecords, OwnedRecord, Records};
pub use source::{SeekSource, SliceSource, Source, StreamSource};
