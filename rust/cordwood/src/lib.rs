//! Reads and writes the **LevelDB log format**: the write-ahead logs and MANIFESTs of LevelDB and its relatives, and any file
//! that a program wants to append records to and still read after a crash.
//!
//! A file is cut into **blocks** of 32 KiB; a block holds **fragments**, a 7-byte header and a payload; a **record** is one
//! fragment or several. Each fragment has a checksum, and after damage a reader goes on at the next block.
//!
//! # Writing and reading
//!
//! ```
//! use cordwood_log::write::OnTornTail;
//! use cordwood_log::{LogFile, LogFileOptions, ReadOptions, Reader};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.log");
//! // Cuts off what a crash may have left at the end: a record whose `append` never returned.
//! let options = LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate);
//! let log = LogFile::append_to(&path, options)?;
//! assert_eq!(log.append(b"one")?, 0);
//! assert_eq!(log.append(b"two")?, 10); // the offset of the record's first header
//! log.close()?;
//!
//! let mut reader = Reader::open(&path, ReadOptions::default())?;
//! let mut records = Vec::new();
//! while let Some(record) = reader.next_record()? {
//!     records.push((record.offset, record.data.to_vec()));
//! }
//! assert_eq!(records, [(0, b"one".to_vec()), (10, b"two".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`LogFile`] says what survives a crash. [`Reader::seek`] goes to a record, and a [`Follower`]
//! reads a log while it is written. Without a file on disk, there are [`Writer`], [`Reader::new`]
//! and [`Reader::from_slice`].
//!
//! # Damage
//!
//! A reader returns *events*: records, and the [`SkippedRegion`](damage::SkippedRegion)s between them, each with the bytes it spans and the reason.
//! No byte of a file goes unaccounted for. [`OnCorruption`] says whether damage is an error (the default), is skipped (LevelDB's
//! behaviour), is taken for the end, or is skipped with as little as possible of its block. A torn tail, the incomplete end that a crash
//! leaves, is not damage: it ends the file, and [`Reader::end`] says so.
//!
//! No input makes this crate panic, loop or hold more than [`ReadOptions::record_len_max`] bytes of a record.
//!
//! # Layers
//!
//! [`Decoder`](codec::Decoder) does no I/O: it takes a [`Window`](codec::Window) of the file and
//! says what is there, or that it needs more. [`Reader`] is the loop around it over a slice, any
//! [`std::io::Read`] or a file; [`Follower`] is the one over a file that is still being written.
//! [`Encoder`](codec::Encoder) and [`Writer`] are the same on the way out; [`LogFile`] is the
//! writer of a file on disk, for programs that cannot afford to lose a record. [`verbs`] are what
//! is done with a whole log: check it, save what can be read of it, count what is in it, take it
//! apart, detect its dialect. What the engines keep in the records is decoded by the crate
//! `cordwood-payload`.
//!
//! The root has what most programs name. The modules have the rest: [`codec`], [`crc32c`],
//! [`damage`], [`follow`], [`mod@format`], [`read`], [`verbs`], [`mod@write`].
//!
//! # What is hidden
//!
//! Some functions are `#[doc(hidden)]`: those by which cordwood's Python package reads without
//! holding its interpreter (`Reader::step_buffered`, `fill`, `data` and their like), and those by
//! which tests put a disk of their own under a [`LogFile`] (`Storage`, `create_in`). They are no
//! part of the interface, and may change in any release: to wait for bytes in your own way, use a
//! [`Decoder`](codec::Decoder).

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
pub mod format;
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

pub use decode::{End, OnCorruption, ReadOptions};
pub use dialect::{Compression, Dialect, LogFormat, Unsupported};
pub use error::Error;
pub use reader::{Event, FollowOptions, Follower, Reader, Record};
pub use writer::{FlushPolicy, LogFile, LogFileOptions, SyncPolicy, Writer};

/// Without I/O: the [`Decoder`](codec::Decoder), which finds the records in the bytes of a file,
/// and the [`Encoder`](codec::Encoder), which makes the bytes of a record.
pub mod codec {
    pub use crate::decode::{Decoder, RECORD_LEN_MAX, RecordSpan, Refused, Step, Window};
    pub use crate::encode::Encoder;
}

/// The checksum of fragments: CRC-32C, and the mask that LevelDB puts over it.
pub mod crc32c {
    pub use crate::checksum::crc32c_kernel as kernel;
    pub use crate::checksum::{combine, crc32c, extend, mask, unmask};
}

/// What a reader does not return, and why: [`SkippedRegion`](damage::SkippedRegion)s, reasons, and
/// the bit that was flipped.
pub mod damage {
    pub use crate::error::{Reason, Severity, SkippedRegion};
    pub use crate::findings::{Finding, Findings};
    pub use crate::flip::{BitFlip, FragmentPart, locate_bit_flip};
}

/// What a [`Follower`] answers.
pub mod follow {
    pub use crate::reader::{NotYet, Poll, WaitReason};
}

/// What a [`Reader`] reads, and what it gives besides [`Record`]s.
pub mod read {
    pub use crate::log_info::{LogInfo, Predecessor};
    pub use crate::reader::{
        FileReader, OwnedRecord, RecordBatch, Records, SeekSource, SliceSource, Source, StreamSource,
    };
}

/// What [`LogFile`] and its options name.
pub mod write {
    #[doc(hidden)]
    pub use crate::writer::{FileId, Process, Storage};
    pub use crate::writer::{LogStatus, OnTornTail};
}
