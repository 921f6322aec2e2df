//! Reads and writes the **LevelDB log format**: the write-ahead logs and MANIFESTs of LevelDB and its relatives, and any file
//! that a program wants to append records to and still read after a crash.
//!
//! A file is cut into **blocks** of 32 KiB; a block holds **fragments**, a 7-byte header and a payload; a **record** is one
//! fragment or several. Each fragment has a checksum, and after damage a reader goes on at the next block.
//!
//! # Writing and reading
//!
//! ```
//! use cordwood_log::{ReadOptions, Reader, Writer};
//!
//! let mut writer = Writer::new(Vec::new());
//! assert_eq!(writer.append(b"one")?, 0);
//! assert_eq!(writer.append(b"two")?, 10); // the offset of the record's first header
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::from_slice(&file, ReadOptions::default());
//! let mut records = Vec::new();
//! while let Some(record) = reader.next_record()? {
//!     records.push((record.offset, record.data.to_vec()));
//! }
//! assert_eq!(records, [(0, b"one".to_vec()), (10, b"two".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Damage
//!
//! A reader returns *events*: records, and the [`SkippedRegion`]s between them, each with the bytes it spans and the reason.
//! No byte of a file goes unaccounted for. [`OnCorruption`] says whether damage is an error (the default), is skipped (LevelDB's
//! behaviour), is taken for the end, or is skipped with as little as possible of its block. A torn tail, the incomplete end that a crash
//! leaves, is not damage: it ends the file, and [`Reader::end`] says so.
//!
//! No input makes this crate panic, loop or hold more than [`ReadOptions::record_len_max`] bytes of a record.
//!
//! # Layers
//!
//! [`Decoder`] does no I/O: it takes a [`Window`] of the file and says what stands there, or that it needs more. [`Reader`] is the
//! loop around it over a slice, any [`std::io::Read`] or a file; [`Follower`] is the one over a file that is still being written.
//! [`Encoder`] and [`Writer`] are the same on the way out; [`LogFile`] is the writer of a file on disk, for whoever cannot afford to lose a
//! record. [`verbs`] are what is done with a whole log: check it, save what can be read of it, count what is in it, take it apart. What the
//! engines keep in the records is decoded by the crate `cordwood-payload`.
//!
//! # What is hidden
//!
//! Some functions are `#[doc(hidden)]`: those by which cordwood's Python package reads without
//! holding its interpreter (`Reader::step_buffered`, `fill`, `data` and their like), and those by
//! which tests put a disk of their own under a [`LogFile`] (`Storage`, `create_in`). They are no
//! part of the interface, and may change in any release: to wait for bytes in your own way, use a
//! [`Decoder`].

// The README's example runs as a test of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod assemble;
mod checksum;
mod copy;
mod decode;
mod deflate;
mod dialect;
mod encode;
mod error;
mod findings;
mod flip;
mod format;
mod fragment;
mod inflate;
mod log_info;
mod reader;
mod salvage;
mod scanner;
pub mod verbs;
mod writer;

/// Private parts that `rust/fuzz` compares with their definition. cargo-fuzz sets `fuzzing`.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::checksum::kernels;
}

pub use checksum::{combine, crc32c, crc32c_kernel, extend, mask, unmask};
pub use decode::{Decoder, End, OnCorruption, RECORD_LEN_MAX, ReadOptions, RecordSpan, Refused, Step, Window};
pub use dialect::{
    Compression, DETECT_LEN, Dialect, Foreign, FragmentKind, LogFormat, Unsupported, detect, detect_named,
};
pub use encode::Encoder;
pub use error::{Error, Reason, Severity, SkippedRegion};
pub use findings::{Finding, Findings};
pub use flip::{BitFlip, FragmentPart, locate_bit_flip};
pub use format::{
    BLOCK_LEN, FRAGMENT_LEN_MAX, HEADER_LEN, Header, Kind, TRAILER_LEN_MAX, block_begin, block_left, encoded_len,
    trailer_len,
};
pub use log_info::{LogInfo, Predecessor};
pub use reader::{
    Event, FileReader, OwnedRecord, Reader, Record, RecordBatch, Records, SeekSource, SliceSource, Source, StreamSource,
};
pub use reader::{FollowOptions, Follower, NotYet, Poll, WaitReason};
#[doc(hidden)]
pub use writer::{FileId, Process, Storage};
pub use writer::{FlushPolicy, LogFile, LogFileOptions, LogStatus, OnTornTail, SyncPolicy, Writer};
