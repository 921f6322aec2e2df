//! Reads and writes the **LevelDB log format**, which LevelDB and its relatives use for their
//! write-ahead logs and MANIFESTs. You can use it for any append-only file of records that must
//! remain readable after a crash.
//!
//! A file is divided into **blocks** of 32 KiB. A block contains **fragments**, each consisting of
//! a 7-byte header followed by a payload. A **record** is one or more fragments. Each fragment has
//! a checksum, so a reader detects damage and continues at the next block.
//!
//! # Writing and reading
//!
//! ```
//! use cordwood_log::{LogFile, LogFileOptions, OnTornTail, Reader};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("app.log");
//! // Cuts off the part of a record that a crash may have left at the end: its `append` never returned.
//! let options = LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate);
//! let log = LogFile::append_to(&path, options)?;
//! assert_eq!(log.append(b"one")?, 0);
//! assert_eq!(log.append(b"two")?, 10); // the offset of the record's first header
//! log.close()?;
//!
//! let mut reader = Reader::open(&path)?;
//! let mut records = Vec::new();
//! while let Some(record) = reader.next_record()? {
//!     records.push((record.offset, record.data.to_vec()));
//! }
//! assert_eq!(records, [(0, b"one".to_vec()), (10, b"two".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! See [`LogFile`] for which records survive a crash. A [`SegmentedLog`] is split into several
//! files, and you can remove the oldest ones. [`Reader::seek`] moves to a record, a [`RecordIndex`]
//! looks up records by index, and a [`Follower`] reads a log while it is being written. If the log
//! is not a file on disk, use [`Writer`], [`Reader::new`] and [`Reader::from_slice`].
//!
//! [`Reader::record_batch`] gathers many records in one buffer. [`ops::split_ranges`] divides a
//! file into ranges that start at block boundaries, and [`Reader::another`] reads one of them. Each
//! record is in exactly one range, so several threads or machines can share the work.
//!
//! # Damage
//!
//! A reader returns *events*: records, and the [`SkippedRegion`](damage::SkippedRegion)s between
//! them. Every event gives the range of bytes it covers, and together the events cover every byte
//! of the file except the block trailers. A skipped region also says why it was skipped.
//! [`OnCorruption`] decides how damage is handled: the reader can return an error (the default),
//! skip the damage (as LevelDB does), treat it as the end of the log, or skip it and salvage the
//! intact remainder of its block. A torn tail, the incomplete end left by a crash, is not damage:
//! the log ends there, and [`Reader::end`] reports it.
//!
//! No input makes this crate panic, loop forever, or hold more than [`ReadOptions::record_len_max`]
//! bytes of a record in memory.
//!
//! # Layers
//!
//! [`Decoder`](codec::Decoder) does no I/O. It takes a [`Window`](codec::Window) of the file and
//! returns the next event, or asks for more bytes. [`Reader`] runs a decoder in a loop over a
//! slice, a file or any [`std::io::Read`], and [`Follower`] runs one over a file that is still
//! being written. For writing, the counterparts of `Decoder` and `Reader` are
//! [`Encoder`](codec::Encoder) and [`Writer`]. [`LogFile`] writes to a file on disk, and is for
//! programs that can't afford to lose a record. [`ops`] contains the operations on whole logs, such
//! as verifying and salvaging them, counting their records and bytes, listing their fragments, and
//! detecting their dialects. The `cordwood-payload` crate decodes the payloads that the engines
//! store in records.
//!
//! The crate root contains the items that most programs need. The others are in the modules
//! [`codec`], [`crc32c`], [`damage`], [`follow`], [`mod@format`], [`read`], [`ops`], [`segments`]
//! and [`mod@write`].
//!
//! # Features
//!
//! * `fs` (default): support for files on disk, on Unix and Windows. Enables [`Reader::open`],
//!   [`LogFile`], [`Follower`], [`ops::salvage_file`] and similar items.
//! * `zstd`: support for compressed logs. Without it, a reader reports the records of RocksDB's
//!   compressed logs but does not return them, and fails on a compressed packed log.
//! * `trace`: for debugging. Prints a line to standard error for each decision made by a decoder or
//!   a follower.
//!
//! Without `fs`, the crate compiles for any target that has the standard library, such as
//! `wasm32-unknown-unknown`.
//!
//! # Hidden items
//!
//! A few items are `#[doc(hidden)]`, because only cordwood's Python package or its benchmarks need
//! them. The `test-storage` feature lets tests put a simulated disk under a [`LogFile`]. The hidden
//! items and this feature are not part of the public interface, and may change in any release. To
//! wait for data yourself, use [`Reader::found`]. To do the I/O yourself, use a
//! [`Decoder`](codec::Decoder).

// Most items that are needed only to open files have no `cfg` of their own, so they are unused or
// unreachable without `fs`.
#![cfg_attr(
    not(feature = "fs"),
    allow(dead_code, unreachable_code, unreachable_pub, unused_imports)
)]

// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(feature = "fs", not(any(unix, windows))))]
compile_error!(
    "cordwood-log reads and writes files at offsets, which it can only do on Unix and on Windows: without them, build it \
     without the feature `fs`"
);

#[cfg(all(cordwood_small_blocks, not(all(debug_assertions, feature = "test-storage"))))]
compile_error!("blocks of 24 bytes are for tests: no other program can read or write such a log");

mod assemble;
mod checksum;
mod compression;
mod container;
mod copy;
pub mod damage;
mod decode;
mod detect;
mod dialect;
mod encode;
mod error;
#[cfg(feature = "fs")]
mod file;
pub mod format;
mod fragment;
#[cfg(feature = "fs")]
mod index;
mod names;
pub mod ops;
mod options;
mod pipeline;
mod position;
mod process;
mod reader;
#[cfg(feature = "fs")]
pub mod segments;
#[cfg(not(feature = "fs"))]
mod segments;
mod text;
mod trace;
mod wal_metadata;
mod writer;

pub use decode::{End, OnCorruption, ReadOptions};
pub use dialect::{Compression, Dialect, LogFormat, Unsupported};
pub use error::{Error, ErrorKind, Hint, OverBudget, WriteFailure};
#[cfg(feature = "fs")]
pub use index::RecordIndex;
pub use names::UnknownName;
pub use position::{InvalidPosition, Position};
pub use reader::{Event, Reader, Record};
#[cfg(feature = "fs")]
pub use reader::{FollowOptions, Follower};
#[cfg(feature = "fs")]
pub use writer::{FlushPolicy, LogFile, LogFileOptions, OnTornTail, SegmentedLog, SyncPolicy};
pub use writer::{Writer, WriterOptions};

/// Encoding and decoding without I/O. The [`Decoder`](codec::Decoder) finds the records in the
/// bytes of a file, and the [`Encoder`](codec::Encoder) produces the bytes of a record.
pub mod codec {
    pub use crate::decode::{DataAt, Decoder, RECORD_LEN_MAX, RecordSpan, Step, Window};
    pub use crate::dialect::Grid;
    pub use crate::encode::Encoder;
    pub use crate::error::Refused;
}

/// The checksum of a fragment: CRC-32C, with LevelDB's masking.
pub mod crc32c {
    pub use crate::checksum::crc32c_kernel as kernel;
    // Hidden: only the fuzz target and the benchmark that compare the kernels need this.
    #[doc(hidden)]
    pub use crate::checksum::kernels;
    pub use crate::checksum::{combine, crc32c, extend, mask, unmask};
}

/// Reads one log using several threads.
// Hidden: only the Python binding needs this, because its threads can be interrupted and can read
// Python sources.
#[doc(hidden)]
pub mod parallel {
    pub use crate::ops::parallel::Parts;
    pub use crate::ops::stat::stat_parts;
    pub use crate::ops::verify::verify_parts;
    pub use crate::pipeline::{Next, Pipeline, Queue};
}

/// The results of a [`Follower`].
#[cfg(feature = "fs")]
pub mod follow {
    pub use crate::reader::{NotYet, Poll, WaitReason};
}

/// The sources a [`Reader`] reads from and the types it returns, except [`Record`].
pub mod read {
    pub use crate::decode::Pieces;
    #[cfg(feature = "fs")]
    pub use crate::index::IndexedLog;
    pub use crate::reader::{
        FileReader, Found, FoundRecord, IntoRecords, OwnedRecord, RecordBatch, Records, SeekSource, SliceSource,
        Source, StreamSource,
    };
    pub use crate::wal_metadata::{LogInfo, Predecessor};
}

/// The types that [`LogFile`] and its options use.
pub mod write {
    #[cfg(feature = "test-storage")]
    pub use crate::file::FileId;
    // Hidden: the Python binding needs this to detect that an object is used in a forked child.
    #[doc(hidden)]
    pub use crate::process::Process;
    #[cfg(feature = "fs")]
    pub use crate::writer::LogStatus;
    pub use crate::writer::Sink;
    #[cfg(feature = "test-storage")]
    pub use crate::writer::{Directory, Storage};
}
