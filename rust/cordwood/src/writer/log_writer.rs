//! Writes an encoder's output to any sink.

use std::collections::TryReserveError;
use std::io;

use super::BUFFER_LEN;
use super::options::WriterOptions;
use super::sink::Sink;
use crate::decode::RECORD_LEN_MAX;
use crate::dialect::LogFormat;
use crate::encode::{Encoder, Stopped};
use crate::error::{Error, ErrorKind, WriteFailure};
use crate::format::BLOCK_LEN;
use crate::process::Process;

const HAS_SINK: &str = "only methods that take the whole writer take its sink";

/// Writes records to any [`Write`](io::Write). For a file on disk, use [`LogFile`](super::LogFile).
///
/// Records are buffered and written about 256 KiB at a time. [`flush`](Writer::flush),
/// [`finish`](Writer::finish) and [`into_inner`](Writer::into_inner) write the rest. **Call
/// `finish` or `into_inner` to learn whether everything was written.** Dropping the writer also
/// tries to write the buffer, but cannot report a failure. After a failure, it writes nothing. In a
/// forked child, it writes nothing either, because the parent writes the same buffer. Dropping
/// never writes a trailer.
///
/// After a failed write, it is unknown how much of the buffer was written, so every later call also
/// fails.
///
/// In the [`PACKED`](crate::Dialect::PACKED) dialect, short records are gathered in containers.
/// `flush`, and the methods that call it, close the open container.
///
/// ```
/// use cordwood_log::Writer;
/// let mut writer = Writer::new(Vec::new());
/// writer.append(b"hello")?;
/// assert_eq!(writer.offset(), 7 + 5);
/// let file = writer.finish()?;
/// assert_eq!(file.len(), 12);
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Sink> {
    /// `None` once the sink has been returned, so that `drop` has nothing to write.
    sink: Option<W>,
    encoder: Encoder,
    buffer: Vec<u8>,
    record_len_max: u64,
    /// Everything before this offset is on disk.
    durable: u64,
    failure: Option<Failure>,
    /// The process that created the writer.
    owner: u64,
}

impl<W: Sink> Writer<W> {
    /// Returns a writer for a new log in LevelDB's dialect.
    pub fn new(sink: W) -> Self {
        Writer::with_encoder(sink, Encoder::new(0), RECORD_LEN_MAX)
    }

    /// Returns a writer with the given options, for example to append to an existing log or to use
    /// another dialect.
    ///
    /// ```
    /// use cordwood_log::{Dialect, Writer, WriterOptions};
    /// let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_dialect(Dialect::WANDB))?;
    /// writer.append(b"one")?;
    /// let mut file = writer.into_inner()?;
    /// assert!(file.starts_with(b":W&B\xe1\xbe\x00"));
    ///
    /// let options = WriterOptions::default().with_dialect(Dialect::WANDB).with_file_len(file.len() as u64);
    /// let mut writer = Writer::with_options(&mut file, options)?;
    /// assert_eq!(writer.append(b"two")?, 17);
    /// writer.finish()?;
    /// assert_eq!(file.len(), 27);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Encoder::with_format`].
    pub fn with_options(sink: W, options: WriterOptions) -> Result<Self, Error> {
        let encoder = Encoder::with_format(options.file_len, options.named().or_leveldb())?;
        Ok(Writer::with_encoder(sink, encoder, options.record_len_max))
    }

    fn with_encoder(sink: W, mut encoder: Encoder, record_len_max: u64) -> Self {
        let mut buffer = Vec::new();
        encoder.start(&mut buffer);
        Writer {
            sink: Some(sink),
            encoder,
            buffer,
            record_len_max,
            durable: 0,
            failure: None,
            owner: Process::current().number(),
        }
    }

    /// Returns the format the log is written in.
    pub fn format(&self) -> LogFormat {
        self.encoder.format()
    }

    /// Returns the length of the file in bytes, including records that haven't been written yet.
    /// While a container is open, the container's length isn't known yet, so the result is the
    /// lowest possible offset for the next record.
    pub fn offset(&self) -> u64 {
        self.encoder.offset()
    }

    /// Appends a record, which may be empty, and returns its offset in the file. For most records,
    /// this is the offset of the first header. For a record in a container, it is the container's
    /// offset plus the record's index in the container.
    ///
    /// ```
    /// use cordwood_log::{Error, ErrorKind, Writer, WriterOptions};
    /// let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_record_len_max(3))?;
    /// writer.append(b"one")?;
    /// let refused = writer.append(b"three");
    /// assert!(matches!(refused, Err(Error { kind: ErrorKind::RecordTooLarge { record_len: 5, .. }, .. })));
    /// assert_eq!(writer.offset(), 10);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::RecordTooLarge`] if the record has more than
    ///   [`record_len_max`](WriterOptions::record_len_max) bytes. The record is not appended.
    /// * [`ErrorKind::Write`] if the buffer is full and the sink fails to write it. If
    ///   [`is_undone`](WriteFailure::is_undone) is set, there wasn't enough memory for the buffer
    ///   ([`io::ErrorKind::OutOfMemory`]), and the record was not appended.
    #[inline]
    pub fn append(&mut self, record: &[u8]) -> Result<u64, Error> {
        if self.encoder.packs() {
            self.append_packed(record)
        } else {
            self.append_any(record)
        }
    }

    /// Like [`append`](Self::append), but for a packed log. Usually, adding the record to the open
    /// container is enough.
    // This is separate and not inlined, so that neither function has to save registers that only
    // the other needs.
    #[inline(never)]
    fn append_packed(&mut self, record: &[u8]) -> Result<u64, Error> {
        if self.failure.is_none()
            && record.len() as u64 <= self.record_len_max
            && let Some(offset) = self.encoder.add_to_container(record)
        {
            return Ok(offset);
        }
        self.append_any(record)
    }

    /// Implements [`append`](Self::append) for every kind of record.
    #[inline(never)]
    fn append_any(&mut self, record: &[u8]) -> Result<u64, Error> {
        self.check()?;
        if record.len() as u64 > self.record_len_max {
            return Err(self.too_large(record.len()));
        }
        if record.len() >= BLOCK_LEN {
            if record.len() >= BUFFER_LEN {
                return self.append_long(record);
            }
            let reserved = self.encoder.try_reserve(record.len(), &mut self.buffer);
            reserved.map_err(|error| self.out_of_memory(error))?;
        }
        let offset = self.encoder.encode(record, &mut self.buffer);
        if self.buffer.len() >= BUFFER_LEN {
            self.write_out()?;
        }
        Ok(offset)
    }

    /// Like [`append`](Self::append), but for a record of [`BUFFER_LEN`] bytes or more. The record
    /// is written in pieces, so only one piece is copied at a time.
    #[cold]
    fn append_long(&mut self, record: &[u8]) -> Result<u64, Error> {
        let reserved = self
            .encoder
            .try_reserve_frame(record.len())
            .and_then(|()| self.encoder.try_reserve(BUFFER_LEN + BLOCK_LEN, &mut self.buffer));
        reserved.map_err(|error| self.out_of_memory(error))?;
        self.unless_it_fails("write", |writer| {
            let sink = writer.sink.as_mut().expect(HAS_SINK);
            writer.encoder.encode_in_pieces(record, &mut writer.buffer, |piece| {
                if piece.len() >= BUFFER_LEN {
                    sink.write_buffer(piece)?;
                    piece.clear();
                }
                io::Result::Ok(())
            })
        })
    }

    /// Appends several records in one loop and returns how many were appended.
    ///
    /// ```
    /// use cordwood_log::Writer;
    /// let mut writer = Writer::new(Vec::new());
    /// assert_eq!(writer.extend(["one", "two"])?, 2);
    /// assert_eq!(writer.finish()?.len(), 20);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append`](Self::append). If a record is too long, or if there
    /// isn't enough memory for it, the records before it are still appended.
    pub fn extend<R: AsRef<[u8]>>(&mut self, records: impl IntoIterator<Item = R>) -> Result<u64, Error> {
        self.check()?;
        let mut records = records.into_iter();
        let mut count = 0;
        loop {
            let Writer { encoder, buffer, .. } = self;
            match encoder.encode_all(&mut records, buffer, BUFFER_LEN, self.record_len_max, &mut count) {
                Stopped::AtEnd => return Ok(count),
                Stopped::Full => self.write_out()?,
                Stopped::At(record) => {
                    self.append(record.as_ref())?;
                    count += 1;
                }
                Stopped::TooLarge(record_len) => return Err(self.too_large(record_len)),
                Stopped::NoMemory(error) => return Err(self.out_of_memory(error)),
            }
        }
    }

    /// Writes out all records appended so far and flushes the sink. Does not sync, so a machine
    /// crash may still lose the data.
    ///
    /// ```
    /// # use cordwood_log::Writer;
    /// let mut writer = Writer::new(std::io::BufWriter::new(Vec::new()));
    /// writer.append(b"one")?;
    /// writer.flush()?;
    /// assert_eq!(writer.get_ref().get_ref().len(), 10);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] with the sink's error.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        self.encoder.end_container(&mut self.buffer);
        self.write_out()?;
        self.unless_it_fails("write", |writer| writer.get_mut().flush())
    }

    /// Returns the number of bytes that have been appended but not yet written to the sink. The
    /// bytes in an open container are counted before compression.
    ///
    /// ```
    /// use cordwood_log::Writer;
    /// let mut writer = Writer::new(Vec::new());
    /// writer.append(b"foo")?;
    /// assert_eq!(writer.buffered_len(), 7 + 3);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    pub fn buffered_len(&self) -> usize {
        self.buffer.len() + self.encoder.open_len()
    }

    /// Writes out all records appended so far, then calls `sync` on the sink so that they reach the
    /// disk.
    ///
    /// A failed sync cannot be retried, because the system reports the failure only once and may
    /// have dropped the bytes it could not write. Every later call therefore also fails.
    ///
    /// ```
    /// # let mut file = tempfile::tempfile()?;
    /// let mut writer = cordwood_log::Writer::new(file);
    /// writer.append(b"one")?;
    /// writer.sync_with(|file| file.sync_data())?;
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] with the error from the sink or `sync`.
    pub fn sync_with(&mut self, sync: impl FnOnce(&mut W) -> io::Result<()>) -> Result<(), Error> {
        self.flush()?;
        self.unless_it_fails("sync", |writer| sync(writer.get_mut()))?;
        self.durable = self.encoder.offset();
        Ok(())
    }

    /// Returns the sink. Records appended since the last flush may not have reached the sink.
    pub fn get_ref(&self) -> &W {
        self.sink.as_ref().expect(HAS_SINK)
    }

    /// Returns the sink. Records appended since the last flush may not have reached the sink. Do
    /// not write to the sink.
    pub fn get_mut(&mut self) -> &mut W {
        self.sink.as_mut().expect(HAS_SINK)
    }

    /// Returns whether a write or a sync has failed. If so, every further call also fails.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Writes the trailer, if the dialect has one, then flushes and returns the sink. This consumes
    /// the writer, because no record may be appended after the trailer. To append to the file
    /// later, use [`into_inner`](Self::into_inner), which doesn't write a trailer.
    ///
    /// ```
    /// use cordwood_log::{Dialect, Writer, WriterOptions};
    /// let options = WriterOptions::default().with_dialect(Dialect::PEBBLE).with_log_number(1);
    /// let writer = Writer::with_options(Vec::new(), options)?;
    /// assert_eq!(writer.finish()?, b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00");
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] with the sink's error. In that case, the sink is lost.
    pub fn finish(mut self) -> Result<W, Error> {
        self.check()?;
        self.encoder.end(&mut self.buffer);
        self.into_inner()
    }

    /// Flushes and returns the sink but, unlike [`finish`](Self::finish), doesn't write a trailer.
    ///
    /// ```
    /// use cordwood_log::Writer;
    /// let mut writer = Writer::new(Vec::new());
    /// writer.append(b"one")?;
    /// assert_eq!(writer.get_ref().len(), 0);
    /// assert_eq!(writer.into_inner()?.len(), 10);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] with the sink's error. In that case, the sink is lost.
    pub fn into_inner(mut self) -> Result<W, Error> {
        self.flush()?;
        Ok(self.sink.take().expect(HAS_SINK))
    }

    #[cold]
    fn too_large(&self, record_len: usize) -> Error {
        Error::from(ErrorKind::RecordTooLarge {
            offset: self.offset(),
            record_len: record_len as u64,
            record_len_max: self.record_len_max,
        })
    }

    #[cold]
    fn out_of_memory(&self, error: TryReserveError) -> Error {
        self.failed(io::Error::new(io::ErrorKind::OutOfMemory, error), None)
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(self.refusal(*failure)),
        }
    }

    /// Returns the error that every call reports after a failure. The error does not contain the
    /// text of the sink's error, which was already returned and cannot be copied.
    #[cold]
    fn refusal(&self, failure: Failure) -> Error {
        let source = match failure.errno {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::other("the log cannot be continued"),
        };
        self.failed(source, Some(failure.what))
    }

    /// Returns the error for a failure that the writer has already recorded.
    #[cold]
    fn failed(&self, source: io::Error, earlier: Option<&'static str>) -> Error {
        let failure = WriteFailure {
            earlier,
            durable_offset: self.durable,
            is_undone: self.failure.is_none(),
            undo_error: None,
        };
        Error::from(ErrorKind::Write { source, failure })
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.unless_it_fails("write", |writer| {
            let mut buffer = std::mem::take(&mut writer.buffer);
            let written = writer.get_mut().write_buffer(&mut buffer);
            writer.buffer = buffer;
            written
        })?;
        self.buffer.clear();
        Ok(())
    }

    /// Runs the operation named `what` on the sink. If the operation fails or panics, the writer is
    /// marked as failed.
    fn unless_it_fails<T>(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> Result<T, Error> {
        self.failure = Some(Failure { what, errno: None });
        match work(self) {
            Ok(done) => {
                self.failure = None;
                Ok(done)
            }
            Err(source) => {
                let errno = source.raw_os_error();
                self.failure = Some(Failure { what, errno });
                Err(self.failed(source, None))
            }
        }
    }
}

/// A failed call to the sink.
#[derive(Debug, Clone, Copy)]
struct Failure {
    what: &'static str,
    errno: Option<i32>,
}

/// Tries to write the unflushed bytes, as `BufWriter` does.
impl<W: Sink> Drop for Writer<W> {
    fn drop(&mut self) {
        let is_here = Process::current().number() == self.owner;
        if self.sink.is_some() && self.failure.is_none() && is_here {
            // Dropping cannot report an error, but `finish` and `into_inner` can.
            let _ = self.flush();
        }
    }
}
