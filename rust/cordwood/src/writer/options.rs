//! How a writer to any sink writes.

use crate::decode::{RECORD_LEN_MAX, log_options};
use crate::dialect::{Compression, Dialect, LogFormat};

/// How a [`Writer`](crate::Writer) writes. For a file on disk, see
/// [`LogFileOptions`](crate::LogFileOptions), where the options of the same name mean the same.
///
/// ```
/// use cordwood_log::{Dialect, WriterOptions};
/// let options = WriterOptions::default().with_dialect(Dialect::ROCKSDB).with_log_number(7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// The length in bytes of the file to append to; the sink must write at its end. The last record
    /// of the file must be complete: every reader loses the records after a torn one, up to the
    /// next block. Default: 0, a new file.
    pub file_len: u64,
    /// The dialect to write, as for [`Encoder::with_format`](crate::codec::Encoder::with_format).
    /// Default: `None`, which means [`Dialect::LEVELDB`].
    pub dialect: Option<Dialect>,
    /// The number of the log, which goes into each fragment: see [`LogFormat::log_number`]. Default:
    /// `None`.
    pub log_number: Option<u32>,
    /// How each record, or in the dialect [`PACKED`](Dialect::PACKED) each container, is compressed.
    /// Default: `None`, no compression.
    pub compression: Option<Compression>,
    /// Refuse to write a record of more bytes than this:
    /// [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge). Default: [`RECORD_LEN_MAX`], 1 GiB,
    /// as for readers. A longer record can be read only if the reader's option of the same name
    /// allows it.
    pub record_len_max: u64,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            file_len: 0,
            dialect: None,
            log_number: None,
            compression: None,
            record_len_max: RECORD_LEN_MAX,
        }
    }
}

log_options!(WriterOptions);

impl WriterOptions {
    /// Sets [`file_len`](Self::file_len), in bytes.
    #[must_use]
    pub fn with_file_len(mut self, file_len: u64) -> Self {
        self.file_len = file_len;
        self
    }

    /// The given format; [`Dialect::LEVELDB`] if no dialect is given.
    pub(super) fn format(&self) -> LogFormat {
        self.named().or_leveldb()
    }
}
