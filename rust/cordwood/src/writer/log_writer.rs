//! The writer to any sink: a loop around the encoder.

use std::io;

use super::BUFFER_LEN;
use super::sink::Sink;
use crate::decode::RECORD_LEN_MAX;
use crate::dialect::{Dialect, LogFormat};
use crate::encode::{Encoder, NotEncoded, Stopped};
use crate::error::{Error, ErrorKind};
use crate::format::BLOCK_LEN;
use crate::process::Process;

const HAS_SINK: &str = "only what takes the whole writer takes its sink";

/// Writes records to any [`Write`](io::Write). For a file on disk, use [`LogFile`](super::LogFile).
///
/// Records are buffered and written about 256 KiB at a time; [`flush`](Writer::flush),
/// [`finish`](Writer::finish) and [`into_inner`](Writer::into_inner) write the rest. **Call
/// `finish` or `into_inner` to learn whether everything was written**: dropping the writer without
/// either tries to write the buffer, but cannot report a failure. Dropping writes nothing after a
/// failure, nor in a forked child, since the parent writes the same buffer; and it never writes a
/// trailer.
///
/// After a failed write it is unknown how much of the buffer was written, so every later call also
/// fails.
///
/// In the dialect [`PACKED`](Dialect::PACKED), short records are gathered in containers, which
/// `flush` and those that call it close.
///
/// ```
/// use cordwood_log::Writer;
/// let mut writer = Writer::new(Vec::new());
/// writer.append(b"hello")?;
/// assert_eq!(writer.offset(), 7 + 5);
/// let file = writer.finish()?;
/// assert_eq!(file.len(), 12);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Sink> {
    /// `None` only after it has been returned: `drop` then has nothing to write.
    sink: Option<W>,
    encoder: Encoder,
    buffer: Vec<u8>,
    record_len_max: u64,
    has_failed: bool,
    /// The process that created the writer.
    owner: u64,
}

impl<W: Sink> Writer<W> {
    /// A writer for a new file.
    pub fn new(sink: W) -> Self {
        Writer::with_len(sink, 0)
    }

    /// A writer that appends to a file of `file_len` bytes; `sink` must write at the end of that
    /// file. The last record of the file must be complete: records after a torn one are lost to
    /// every reader up to the next block.
    pub fn with_len(sink: W, file_len: u64) -> Self {
        Writer::with_encoder(sink, Encoder::unchecked(file_len, Dialect::LEVELDB.into()))
    }

    /// A writer in another dialect, with a log number or with compression: see
    /// [`Encoder::with_format`]. `file_len` is 0 for a new file.
    ///
    /// ```
    /// use cordwood_log::{Dialect, Writer};
    /// let writer = Writer::with_format(Vec::new(), 0, Dialect::WANDB)?;
    /// assert_eq!(writer.into_inner()?, b":W&B\xe1\xbe\x00");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Encoder::with_format`].
    pub fn with_format(sink: W, file_len: u64, format: impl Into<LogFormat>) -> Result<Self, Error> {
        Ok(Writer::with_encoder(sink, Encoder::with_format(file_len, format)?))
    }

    fn with_encoder(sink: W, mut encoder: Encoder) -> Self {
        let mut buffer = Vec::new();
        encoder.begin(&mut buffer);
        Writer {
            sink: Some(sink),
            encoder,
            buffer,
            record_len_max: RECORD_LEN_MAX,
            has_failed: false,
            owner: Process::current().number(),
        }
    }

    /// Sets the longest record, in bytes, that the writer accepts: see
    /// [`LogFileOptions::record_len_max`](super::LogFileOptions::record_len_max).
    ///
    /// ```
    /// use cordwood_log::{Error, ErrorKind, Writer};
    /// let mut writer = Writer::new(Vec::new()).with_record_len_max(3);
    /// writer.append(b"one")?;
    /// let refused = writer.append(b"three").unwrap_err();
    /// assert!(matches!(refused.downcast::<Error>(), Ok(Error { kind: ErrorKind::RecordTooLarge { record_len: 5, .. }, .. })));
    /// assert_eq!(writer.offset(), 10);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_record_len_max(mut self, record_len_max: u64) -> Self {
        self.record_len_max = record_len_max;
        self
    }

    /// The length of the file with all records so far, in bytes, written out or not. While a
    /// container is open, whose length is not known yet: the least offset that the next record can
    /// have.
    pub fn offset(&self) -> u64 {
        self.encoder.offset()
    }

    /// Appends a record and returns its offset in the file: that of its first header, or in a
    /// container, the offset of the container and the record's index in it, added. The record may be
    /// empty.
    ///
    /// # Errors
    ///
    /// * The error of the sink, if the buffer is full and has to be written.
    /// * [`io::ErrorKind::OutOfMemory`] if there is no memory for the buffer. The record is then not
    ///   appended.
    /// * [`io::ErrorKind::InvalidInput`] with an [`ErrorKind::RecordTooLarge`] inside if the record is
    ///   too long. It is not appended.
    #[inline]
    pub fn append(&mut self, record: &[u8]) -> io::Result<u64> {
        self.check()?;
        if record.len() as u64 > self.record_len_max {
            return Err(self.too_large(record.len()));
        }
        if record.len() >= BLOCK_LEN {
            if record.len() >= BUFFER_LEN {
                return self.append_long(record);
            }
            self.encoder.try_reserve(record.len(), &mut self.buffer)?;
        }
        let offset = self.encoder.encode(record, &mut self.buffer);
        if self.buffer.len() >= BUFFER_LEN {
            self.write_out()?;
        }
        Ok(offset)
    }

    /// [`append`](Self::append) for a record of [`BUFFER_LEN`] bytes or more: written in pieces, so
    /// that only one of them is copied at a time.
    #[cold]
    fn append_long(&mut self, record: &[u8]) -> io::Result<u64> {
        self.encoder.try_reserve_frame(record.len())?;
        self.encoder.try_reserve(BUFFER_LEN + BLOCK_LEN, &mut self.buffer)?;
        self.has_failed = true;
        let Writer {
            sink, encoder, buffer, ..
        } = self;
        let sink = sink.as_mut().expect(HAS_SINK);
        let offset = encoder.encode_in_pieces(record, buffer, |piece| {
            if piece.len() >= BUFFER_LEN {
                sink.write_buffer(piece)?;
                piece.clear();
            }
            io::Result::Ok(())
        })?;
        self.has_failed = false;
        Ok(offset)
    }

    /// Appends several records in one loop, and returns how many.
    ///
    /// ```
    /// use cordwood_log::Writer;
    /// let mut writer = Writer::new(Vec::new());
    /// assert_eq!(writer.extend(["one", "two"])?, 2);
    /// assert_eq!(writer.finish()?.len(), 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append). The records before one that is too long, or for which there is
    /// no memory, are appended.
    pub fn extend<R: AsRef<[u8]>>(&mut self, records: impl IntoIterator<Item = R>) -> io::Result<u64> {
        self.check()?;
        let mut records = records.into_iter();
        let mut count = 0;
        loop {
            let Writer { encoder, buffer, .. } = self;
            match encoder.encode_all(&mut records, buffer, BUFFER_LEN, self.record_len_max) {
                Ok((encoded, stopped)) => {
                    count += encoded;
                    match stopped {
                        Stopped::AtEnd => return Ok(count),
                        Stopped::Full => self.write_out()?,
                        Stopped::At(record) => {
                            self.append(record.as_ref())?;
                            count += 1;
                        }
                    }
                }
                Err(NotEncoded::NoMemory(error)) => return Err(error.into()),
                Err(NotEncoded::TooLarge(record_len)) => return Err(self.too_large(record_len)),
            }
        }
    }

    /// Writes out all records so far and flushes the sink. It does not sync: the data may still be
    /// lost if the machine crashes.
    ///
    /// # Errors
    ///
    /// The error of the sink.
    pub fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.encoder.end_container(&mut self.buffer);
        self.write_out()?;
        self.with_sink(W::flush)
    }

    /// The number of bytes appended but not yet written to the sink. Those of an open container are
    /// counted as they are, not compressed.
    pub fn buffered_len(&self) -> usize {
        self.buffer.len() + self.encoder.open_len()
    }

    /// Writes out all records so far and calls `sync` on the sink, to put them on the disk.
    ///
    /// A failed sync cannot be retried: the system may have dropped what it could not write, and
    /// reports that only once. So every later call also fails.
    ///
    /// ```
    /// # let mut file = tempfile::tempfile()?;
    /// let mut writer = cordwood_log::Writer::new(file);
    /// writer.append(b"one")?;
    /// writer.sync_with(|file| file.sync_data())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the sink or of `sync`.
    pub fn sync_with(&mut self, sync: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        self.flush()?;
        self.with_sink(sync)
    }

    /// The sink. Records appended since the last flush may not have reached it.
    pub fn get_ref(&self) -> &W {
        self.sink.as_ref().expect(HAS_SINK)
    }

    /// The sink. Records appended since the last flush may not have reached it; do not write to it.
    pub fn get_mut(&mut self) -> &mut W {
        self.sink.as_mut().expect(HAS_SINK)
    }

    /// Whether a write or a sync has failed, so that every further call also fails.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Ends the log with the trailer of its dialect, if any, flushes, and returns the sink. It
    /// consumes the writer, since nothing may be appended after the trailer. For a file that is to
    /// be appended to later, use [`into_inner`](Self::into_inner), which writes no trailer.
    ///
    /// ```
    /// use cordwood_log::{Dialect, LogFormat, Writer};
    /// let writer = Writer::with_format(Vec::new(), 0, LogFormat::new(Dialect::PEBBLE).with_log_number(1))?;
    /// assert_eq!(writer.finish()?, b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the sink; the sink is then lost.
    pub fn finish(mut self) -> io::Result<W> {
        self.check()?;
        self.encoder.end(&mut self.buffer);
        self.into_inner()
    }

    /// Flushes and returns the sink, without the trailer that [`finish`](Self::finish) writes.
    ///
    /// ```
    /// use cordwood_log::Writer;
    /// let mut writer = Writer::new(Vec::new());
    /// writer.append(b"one")?;
    /// assert_eq!(writer.get_ref().len(), 0);
    /// assert_eq!(writer.into_inner()?.len(), 10);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the sink; the sink is then lost.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.sink.take().expect(HAS_SINK))
    }

    #[cold]
    fn too_large(&self, record_len: usize) -> io::Error {
        let error = Error::from(ErrorKind::RecordTooLarge {
            offset: self.offset(),
            record_len: record_len as u64,
            record_len_max: self.record_len_max,
        });
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }

    fn check(&self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other(
                "an earlier write failed, so the end of the file is not known; read the file and open it anew",
            ));
        }
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.with_sink(|sink| sink.write_buffer(&mut buffer));
        self.buffer = buffer;
        written?;
        self.buffer.clear();
        Ok(())
    }

    /// Runs `work` on the sink. If it fails or panics, the writer has failed.
    fn with_sink(&mut self, work: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        self.has_failed = true;
        work(self.get_mut())?;
        self.has_failed = false;
        Ok(())
    }
}

/// Tries to write what has not been flushed, as `BufWriter` does.
impl<W: Sink> Drop for Writer<W> {
    fn drop(&mut self) {
        let is_here = Process::current().number() == self.owner;
        if self.sink.is_some() && !self.has_failed && is_here {
            // An error cannot be returned from here. `finish` and `into_inner` report it.
            let _ = self.flush();
        }
    }
}
