//! Options for writing to any sink.

use crate::decode::RECORD_LEN_MAX;
use crate::dialect::{Compression, Dialect};
use crate::options::{log_options, options};

options! {
    /// Options for a [`Writer`](crate::Writer). For a file on disk, use
    /// [`LogFileOptions`](crate::LogFileOptions). Options with the same name mean the same thing in
    /// both.
    ///
    /// ```
    /// use cordwood_log::{Dialect, WriterOptions};
    /// let options = WriterOptions::default().with_dialect(Dialect::ROCKSDB).with_log_number(7);
    /// ```
    pub struct WriterOptions {
        /// The length in bytes of the file to append to. The sink must write at the end of that
        /// file. The file's last record must be complete, because readers lose all records between
        /// a torn record and the next block. Default: 0, which means a new file.
        pub file_len: u64 = 0, set with_file_len;
        /// The dialect to write. See [`Encoder::with_format`](crate::codec::Encoder::with_format).
        /// Default: `None`, meaning [`Dialect::LEVELDB`].
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log, which is written to each fragment. See
        /// [`LogFormat::log_number`](crate::LogFormat::log_number). Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// The compression of each record or, in the [`PACKED`](Dialect::PACKED) dialect, of each
        /// container. Default: `None`, which means no compression.
        pub compression: Option<Compression> = None, into with_compression;
        /// The maximum length of a record in bytes. Longer records are refused with
        /// [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge). Default:
        /// [`RECORD_LEN_MAX`], 1 GiB, the same as for readers. To read a record of more than 1 GiB,
        /// a reader also needs a higher `record_len_max`.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
    }
}

log_options!(WriterOptions);
