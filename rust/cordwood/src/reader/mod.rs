//! Readers. A reader runs the [`Decoder`](crate::codec::Decoder) repeatedly on windows of a file,
//! which can come from any kind of source.

mod cursor;
mod event;
#[cfg(feature = "fs")]
mod file_reader;
#[cfg(feature = "fs")]
mod follow;
mod format;
mod joint;
mod log_reader;
#[cfg(not(feature = "fs"))]
mod no_file;
mod record_batch;
mod records;
mod segments;
mod source;

pub use cursor::{Found, FoundRecord};
pub use event::{Event, Record};
#[cfg(feature = "fs")]
pub use file_reader::FileReader;
#[cfg(feature = "fs")]
pub use follow::{FollowOptions, Follower, NotYet, Poll, WaitReason};
pub use log_reader::Reader;
#[cfg(not(feature = "fs"))]
pub use no_file::FileReader;
pub use record_batch::RecordBatch;
pub use records::{IntoRecords, OwnedRecord, Records};
pub use source::{SeekSource, SliceSource, Source, StreamSource};
