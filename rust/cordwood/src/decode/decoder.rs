//! The decoder's state and interface. `look.rs` decides what the bytes mean.

use std::collections::TryReserveError;
use std::ops::Range;

use super::opened::Opened;
use super::pieces::Pieces;
use super::recycled::Recycled;
use super::repairs::Repairs;
use super::run::Run;
use super::unpack::Unpacker;
use super::{DataAt, End, OnCorruption, ReadOptions, RecordSpan, Step, Window};
use crate::assemble::{Assembler, Interruption, Stored};
use crate::damage::SkippedRegion;
use crate::dialect::{Compression, Form, Grid, LogFormat};
use crate::error::{Error, Refused, unsupported};
use crate::format::{FRAGMENT_LEN_MAX, HEADER_LEN};
use crate::wal_metadata::LogInfo;

/// Finds the records in a file's bytes, returning one event for each call to [`step`](Self::step).
/// It does no I/O.
///
/// The decoder does not detect a log's dialect: pass the result of [`detect`](crate::ops::detect)
/// to [`ReadOptions::with_format`]. It never returns an error, and returns damage as
/// [`Step::Skipped`], even under [`OnCorruption::Fail`].
///
/// A window can have any length, but some events can't be returned until it contains the rest of
/// the block. Windows of 256 KiB work well. The decoder holds the bytes of one fragmented record
/// and, for a compressed log, one decompressed record as well. Each is at most
/// [`ReadOptions::record_len_max`] bytes long.
///
/// ```
/// use cordwood_log::{End, ReadOptions};
/// use cordwood_log::codec::{Decoder, Step, Window};
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
/// let window = Window { offset: 0, bytes: file, is_last: true };
/// let mut decoder = Decoder::new(&ReadOptions::default())?;
/// let Step::Record(span) = decoder.step(window) else { panic!() };
/// assert_eq!(decoder.data(window, span), b"foo");
/// assert_eq!(decoder.step(window), Step::End(End::Clean { offset: 10 }));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    pub(super) format: LogFormat,
    /// The offset of the file's first byte.
    pub(super) origin: u64,
    pub(super) info: LogInfo,
    pub(super) policy: Policy,
    pub(super) bounds: Bounds,
    /// The offset of the next byte to read.
    pub(super) offset: u64,
    /// Whether a FIRST or MIDDLE fragment precedes `offset`. If so, a trailer at `offset` is part
    /// of a record.
    pub(super) is_inside: bool,
    pub(super) assembler: Assembler,
    pub(super) unpacker: Unpacker,
    pub(super) run: Run,
    pub(super) opened: Opened,
    /// The space that the last container or compressed record takes up in the file.
    pub(super) stored: Stored,
    /// The form of the last header in the last record. It isn't updated for records in a run.
    pub(super) record_form: Form,
    pub(super) retry: Retry,
    pub(super) salvaged: Salvaged,
    pub(super) repairs: Repairs,
    pub(super) recycled: Recycled,
    pub(super) ending: Ending,
}

/// The options that control reading.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) on_corruption: OnCorruption,
    pub(super) verify_checksums: bool,
    /// Whether to keep the bytes of records. If not, only [`Decoder::data_len`] and
    /// [`Decoder::stored`] may be called.
    pub(super) keeps_data: bool,
    /// Whether to leave a multi-fragment record in the window for [`Decoder::pieces`] instead of
    /// joining it. This applies only if the window contains all its fragments.
    pub(super) leaves_in_window: bool,
    pub(super) growth: Growth,
}

/// Whether the file is still being written. This determines how the decoder treats bytes that
/// aren't a valid fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The file is no longer being written. Bytes that aren't a valid fragment are classified.
    Ended,
    /// Bytes that aren't a valid fragment may still become one, so the decoder returns
    /// [`Step::NeedMore`] for them, even if the whole block is in the window. Damage in a recycled
    /// log is reported immediately, even though later bytes might show that the log ended before
    /// the damage.
    WaitAtFaults,
    /// Like `WaitAtFaults`, but the bytes at the decoder's offset are final and are classified.
    SkipFaults,
}

/// The range of file offsets to read.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the decoder is at the start of the range, where MIDDLE and LAST fragments belong to
    /// the previous range.
    pub(super) is_before_first: bool,
    /// Whether the decoder started before the target of a seek. The target is the start or end of a
    /// record. If true, the bytes before the range are read, but only to find damage and any
    /// container that may hold the record.
    pub(super) is_sought: bool,
}

/// Results to return before reading any more bytes.
#[derive(Debug, Default)]
pub(super) struct Retry {
    /// A record or container that was joined but couldn't be unpacked.
    pub(super) joined: Option<RecordSpan>,
    /// Why the last call found a record but did not return it.
    pub(super) refused: Option<Refused>,
}

/// The state that [`OnCorruption::Salvage`] keeps for damaged blocks.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    /// The file offsets of the salvaged part of the last damaged block.
    pub(super) part: Range<u64>,
    /// The file offset of the last block that was scanned byte by byte for the start of a fragment.
    /// A block is scanned at most once.
    pub(super) scanned: Option<u64>,
}

/// How reading ends.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The offset where the torn tail starts, if the last event returned so far belongs to a torn
    /// tail. Stale bytes and end trailers after the tail don't count.
    pub(super) torn_since: Option<u64>,
    /// Set once there are no more events.
    pub(super) end: Option<End>,
}

impl Ending {
    /// Stops reading at `offset`, with no further events.
    pub(super) fn finish(&mut self, offset: u64) -> End {
        let end = match self.torn_since {
            Some(offset) => End::TornTail { offset },
            None => End::Clean { offset },
        };
        self.end = Some(end);
        end
    }
}

impl Decoder {
    /// Creates a decoder at the start of the range in `options`.
    ///
    /// # Errors
    ///
    /// Returns any error that [`ReadOptions::check`] returns.
    pub fn new(options: &ReadOptions) -> Result<Self, Error> {
        unsupported(options.named().or_leveldb().check(), None)?;
        Ok(Decoder::unchecked(options))
    }

    /// Like [`new`](Self::new), but does not check the options.
    pub(crate) fn unchecked(options: &ReadOptions) -> Self {
        let format = options.named().or_leveldb();
        let start = Grid::new(format.dialect, options.origin).block_start(options.start);
        // The limit on compressed frames and containers always applies, because they are
        // decompressed even if the caller doesn't use the data.
        let frame_len_max = options.record_len_max;
        let record_len_max = match options.takes_any_len {
            true => u64::MAX,
            false => options.record_len_max,
        };
        Decoder {
            format,
            origin: options.origin,
            info: LogInfo {
                compression: format.compression.filter(|_| format.has_zstd_records()),
                ..LogInfo::default()
            },
            policy: Policy {
                on_corruption: options.on_corruption,
                verify_checksums: options.verify_checksums,
                keeps_data: true,
                leaves_in_window: false,
                growth: Growth::Ended,
            },
            bounds: Bounds {
                start: options.start,
                end: options.end.unwrap_or(u64::MAX),
                is_before_first: options.start > options.origin || options.end.is_some_and(|end| end <= options.origin),
                is_sought: false,
            },
            offset: start,
            is_inside: false,
            assembler: Assembler::new(record_len_max, frame_len_max),
            unpacker: Unpacker::new(frame_len_max, start),
            run: Run::new(record_len_max >= FRAGMENT_LEN_MAX as u64 && format.dialect.has_plain_full()),
            opened: Opened::new(record_len_max),
            stored: Stored::default(),
            record_form: Form::Plain,
            retry: Retry::default(),
            salvaged: Salvaged::default(),
            repairs: Repairs::new(options.repairs_bit_flips),
            recycled: Recycled::default(),
            ending: Ending::default(),
        }
    }

    /// Returns the log's format, including the log number and compression once they are known.
    pub fn format(&self) -> LogFormat {
        LogFormat {
            compression: if self.format.dialect.is_packed() {
                self.format.compression
            } else {
                self.info.is_compressed().then_some(Compression::Zstd)
            },
            ..self.format
        }
    }

    /// Returns the block grid of the file.
    #[inline]
    pub(crate) fn grid(&self) -> Grid {
        Grid::new(self.format.dialect, self.origin)
    }

    /// Returns the contents of the metadata records read so far.
    pub fn info(&self) -> &LogInfo {
        &self.info
    }

    /// Returns the file offset of the next byte to read. The decoder no longer needs any bytes
    /// before that offset. The offset may be past the end of the window, for example when a range
    /// starts later in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves to `offset`. A record must start or end there, so pass a [`RecordSpan::offset`] or
    /// [`RecordSpan::end_offset`]. At any other offset, the decoder reports the bytes as damage.
    ///
    /// After this, the range starts at `offset`, so the decoder returns no event that starts
    /// earlier. In a packed log, the record may be in a container, so the next window must start no
    /// later than the block that contains `offset`. See [`offset`](Self::offset).
    ///
    /// Under [`OnCorruption::Salvage`], the decoder does not see damage that comes before `offset`
    /// in the same block. It therefore doesn't mark the records after that damage as salvaged.
    /// [`Reader::seek`](crate::Reader::seek) reads the block from its start, so it does mark them.
    pub fn seek(&mut self, offset: u64) {
        self.seek_from(self.start_of(offset), offset);
    }

    /// Like [`seek`](Self::seek), but starts reading at `start`. This is either `offset` or the
    /// start of the block or container that contains `offset`.
    pub(crate) fn seek_from(&mut self, start: u64, offset: u64) {
        self.assembler.abandon(Interruption::Damage);
        self.unpacker.restart(start);
        self.run.clear();
        self.opened.clear();
        self.bounds.start = offset;
        self.bounds.is_before_first = false;
        self.bounds.is_sought = start < offset;
        self.offset = start;
        self.is_inside = false;
        self.retry = Retry::default();
        self.salvaged = Salvaged::default();
        // Everything known about the log's fragments is kept.
        self.recycled.ambiguity = None;
        self.recycled.log_end = None;
        self.ending = Ending::default();
    }

    /// Returns true if the range has no end.
    pub(crate) fn has_no_end(&self) -> bool {
        self.bounds.end == u64::MAX
    }

    /// Sets the end of the range.
    pub(crate) fn set_end(&mut self, end: u64) {
        self.bounds.end = end;
    }

    /// Like [`seek`](Self::seek), but for an offset at which a record was refused because it is too
    /// large. The decoder expects the rest of that record at `offset`.
    pub(crate) fn seek_to_rest(&mut self, offset: u64) {
        self.seek(offset);
        self.offset = offset;
        self.assembler.expect_rest(offset);
        self.is_inside = true;
    }

    /// Returns the file offset where reading was supposed to start: the start of the range, or the
    /// offset of the last seek.
    pub(crate) fn start(&self) -> u64 {
        self.bounds.start
    }

    /// Returns why the last call to [`step`](Self::step) returned [`Step::NeedMore`] even though
    /// the window contained the next record. Returns `None` if the decoder needs more of the file.
    pub fn refused(&self) -> Option<Refused> {
        self.retry.refused
    }

    /// Returns the file offsets of the salvaged part of the last damaged block.
    pub(crate) fn salvaged(&self) -> Range<u64> {
        self.salvaged.part.clone()
    }

    /// Stops reading at `region`, which starts after the end of the file.
    pub(crate) fn stop(&mut self, region: SkippedRegion) {
        self.offset = region.end;
        self.ending.end = Some(End::Stopped { offset: region.start });
    }

    /// Sets how to treat damage that has not been reported yet.
    pub(crate) fn set_policy(&mut self, on_corruption: OnCorruption) {
        self.policy.on_corruption = on_corruption;
    }

    /// Sets whether the file is still being written.
    pub(crate) fn set_growth(&mut self, growth: Growth) {
        self.policy.growth = growth;
    }

    /// Sets whether to keep the bytes of fragmented records. If not, don't call
    /// [`data`](Self::data). If some of a pending record's bytes were not kept, the record is read
    /// again from its start.
    pub(crate) fn set_keeps_data(&mut self, keeps_data: bool) {
        self.policy.keeps_data = keeps_data;
        self.update_assembler();
        if keeps_data && let Some(start) = self.assembler.take_unkept() {
            self.offset = start;
        }
    }

    pub(crate) fn keeps_data(&self) -> bool {
        self.policy.keeps_data
    }

    /// Makes the decoder leave a multi-fragment record in the window if the window contains all its
    /// fragments. This is for callers that copy each record elsewhere. To get the bytes of a record
    /// that was left in the window, call [`pieces`](Self::pieces). [`data`](Self::data) returns
    /// them only after a call to [`join`](Self::join).
    pub(crate) fn leaving_in_window(mut self) -> Self {
        self.policy.leaves_in_window = true;
        self.update_assembler();
        self
    }

    /// Joins the record returned by the last step, if that step left it in the window.
    ///
    /// # Errors
    ///
    /// Returns an error and leaves the decoder unchanged if there isn't enough memory.
    #[inline]
    pub(crate) fn join(&mut self, window: Window<'_>, span: RecordSpan) -> Result<(), TryReserveError> {
        if span.data_at == DataAt::Joined && self.assembler.is_in_window() {
            self.join_from(window, span.offset..span.end_offset, 0)
        } else {
            Ok(())
        }
    }

    /// Joins the fragments in `range`, which must be in the window.
    #[cold]
    pub(super) fn join_from(
        &mut self,
        window: Window<'_>,
        range: Range<u64>,
        more_len: usize,
    ) -> Result<(), TryReserveError> {
        let payloads = self.payloads(window, range);
        self.assembler.join(payloads, more_len)
    }

    /// Returns the payloads of the fragments in `range`, which extends from the header of a
    /// record's first fragment to the end of the last payload.
    fn payloads<'a>(&self, window: Window<'a>, left: Range<u64>) -> Pieces<'a> {
        Pieces {
            one: None,
            grid: self.grid(),
            window,
            left,
        }
    }

    /// Sets which bytes the assembler keeps. A compressed record can't be decompressed piecemeal,
    /// so its frame is kept in full.
    pub(super) fn update_assembler(&mut self) {
        self.assembler.keeps = self.policy.keeps_data || self.info.is_compressed();
        // A compressed or repaired record must be joined, because the window doesn't contain its
        // data.
        self.assembler.leaves = self.policy.leaves_in_window && !self.info.is_compressed() && !self.repairs.is_on;
    }

    /// Returns the form of the most recently read record fragment, if any.
    pub(crate) fn form(&self) -> Option<Form> {
        self.recycled.form
    }

    /// Returns true if the decoder holds fragments of a record whose last fragment has not been
    /// read.
    pub(crate) fn has_parts(&self) -> bool {
        self.assembler.has_parts()
    }

    /// Returns true if a record was refused because it is too large, and its end hasn't been read.
    pub(crate) fn is_in_too_large(&self) -> bool {
        self.assembler.is_in_too_large()
    }

    /// Returns the bytes of the record returned by the last call to [`step`](Self::step). `window`
    /// must be the window passed to that call.
    ///
    /// # Panics
    ///
    /// Panics if the last [`step`](Self::step) found the record's bytes in its window, but `window`
    /// does not contain them.
    #[inline]
    pub fn data<'a>(&'a self, window: Window<'a>, span: RecordSpan) -> &'a [u8] {
        match span.data_at {
            DataAt::Window { header_len } => {
                let start = span.offset + u64::from(header_len);
                window.slice(start, (span.end_offset - start) as usize)
            }
            DataAt::Container { index } => self.data_in_container(window, index),
            DataAt::Joined => self.assembler.joined(),
            DataAt::Unpacked => self.unpacker.data(),
        }
    }

    /// Returns the [`data`](Self::data), or `None` if the record was left in the window as several
    /// fragments.
    #[inline]
    pub(crate) fn data_in_one<'a>(&'a self, window: Window<'a>, span: RecordSpan) -> Option<&'a [u8]> {
        let is_in_one = span.data_at != DataAt::Joined || !self.assembler.is_in_window();
        is_in_one.then(|| self.data(window, span))
    }

    /// Returns the [`data`](Self::data) as one or more slices, in order.
    #[inline]
    pub(crate) fn pieces<'a>(&'a self, window: Window<'a>, span: RecordSpan) -> Pieces<'a> {
        match self.data_in_one(window, span) {
            None => self.payloads(window, span.offset..span.end_offset),
            one => Pieces {
                one,
                ..self.payloads(window, 0..0)
            },
        }
    }

    /// Returns the length of the [`data`](Self::data), even if the record's bytes are not kept.
    #[inline]
    pub(crate) fn data_len(&self, span: RecordSpan) -> u64 {
        match span.data_at {
            DataAt::Window { header_len } => span.end_offset - span.offset - u64::from(header_len),
            DataAt::Container { index } => self.len_in_container(index),
            DataAt::Joined => self.assembler.stored().payload_len,
            DataAt::Unpacked => self.unpacker.data().len() as u64,
        }
    }

    /// Returns how much space a record takes up in the file. The record must be the one that the
    /// last call to [`step`](Self::step) returned.
    pub(crate) fn stored(&self, span: RecordSpan) -> Stored {
        match span.data_at {
            DataAt::Window { header_len } => Stored {
                fragment_count: 1,
                header_len: u64::from(header_len),
                payload_len: span.end_offset - span.offset - u64::from(header_len),
                trailer_len: 0,
            },
            DataAt::Container { index } => self.stored_in_container(index),
            DataAt::Joined => self.assembler.stored(),
            DataAt::Unpacked => self.stored,
        }
    }

    /// Returns the form of the last header in the record returned by the last call to
    /// [`step`](Self::step).
    pub(crate) fn record_form(&self, span: RecordSpan) -> Form {
        match span.data_at {
            DataAt::Window { header_len } if usize::from(header_len) == HEADER_LEN => Form::Plain,
            _ => self.record_form,
        }
    }

    /// Returns the next event in `window`, or [`Step::NeedMore`] if there is none.
    ///
    /// The window must contain the bytes from [`offset`](Self::offset) onward. It must extend at
    /// least to the end of the previous window, because records found in the previous window are
    /// returned without being read again. If the window starts after the decoder's offset, the
    /// result is [`Step::NeedMore`], even for the last window. A gap does not end the log, because
    /// the bytes in it were never read.
    #[inline]
    pub fn step(&mut self, window: Window<'_>) -> Step {
        if let Some(span) = self.next_of_several() {
            return Step::Record(span);
        }
        let step = self.look(window);
        self.take_first(step);
        step
    }

    /// Returns the next record in a run or container whose records were all found at once.
    #[inline]
    pub(crate) fn next_of_several(&mut self) -> Option<RecordSpan> {
        self.next_of_run().or_else(|| self.next_of_container())
    }

    /// Returns the record that [`next_of_several`](Self::next_of_several) would return, without
    /// taking it.
    #[inline]
    pub(crate) fn peek_of_several(&self) -> Option<RecordSpan> {
        self.peek_of_run().or_else(|| self.peek_of_container())
    }

    /// Takes the record in `step` if it is the first of several. `step` is the result of
    /// [`look`](Self::look).
    #[inline]
    pub(crate) fn take_first(&mut self, step: Step) {
        if matches!(step, Step::Record(_)) {
            self.next_of_several();
        }
    }
}
