//! The decoder: a window of the file in, one event out. It does no I/O and holds no bytes but those
//! of a fragmented record.

mod options;
mod recycled;

use std::ops::Range;

pub use self::options::{OnCorruption, RECORD_LEN_MAX, ReadOptions};

use self::recycled::Doubt;
use crate::assemble::{Assembler, Fragment, Interruption, Outcome};
use crate::checksum;
use crate::compression::{Decompressor, Failed};
use crate::damage::resync;
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::dialect::{Compression, Dialect, Form, LogFormat, Metadata};
use crate::error::{Error, unsupported};
use crate::format::{FRAGMENT_LEN_MAX, HEADER_LEN, Kind};
use crate::fragment::{Found, FullRun, RUN_MAX, find};
use crate::wal_metadata::{Applied, LogInfo};

/// A part of the file that is in memory.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// File offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether the file ends with these bytes.
    pub is_last: bool,
}

impl<'a> Window<'a> {
    /// File offset after the last byte. No file ends after the largest possible offset, but a
    /// window may claim to.
    pub(crate) fn end_offset(self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// The window without the bytes that no file can have: those after the largest possible offset.
    /// An offset in it plus a length of its bytes does not overflow.
    fn within_offsets(self) -> Self {
        let len = usize::try_from(u64::MAX - self.offset).unwrap_or(usize::MAX);
        let bytes = &self.bytes[..self.bytes.len().min(len)];
        Window { bytes, ..self }
    }

    /// The bytes from the file offset `begin` on, at most `len`; none if the window does not hold
    /// `begin`.
    #[inline]
    pub(crate) fn at(self, begin: u64, len: usize) -> &'a [u8] {
        let skip = begin
            .checked_sub(self.offset)
            .and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| self.bytes.get(skip..)).unwrap_or_default();
        &bytes[..bytes.len().min(len)]
    }
}

/// The position of a record in the file. [`Decoder::data`] returns its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSpan {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset after the last fragment's payload.
    pub end_offset: u64,
    /// Whether the record has several fragments, or is compressed, so that its bytes are held by
    /// the decoder and not by the window.
    pub is_joined: bool,
    /// Bytes of the header in front of the data, if that is in the window.
    pub(crate) header_len: u8,
    /// Whether it begins after damage in the same block, under [`OnCorruption::Salvage`]. Its
    /// checksums are valid, but its beginning had to be searched for: a payload that itself holds
    /// log fragments can look like this.
    pub is_salvaged: bool,
}

/// How reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Between two records: at the end of the file, or where the range ended. Bytes after the end
    /// of the log, up to the end of the file, are [`Reason::Stale`].
    Clean {
        /// That file offset.
        offset: u64,
    },
    /// In an incomplete record, as a crash leaves it. Not damage.
    TornTail {
        /// File offset at which the incomplete part begins.
        offset: u64,
    },
    /// At damage, under [`OnCorruption::Stop`].
    Stopped {
        /// File offset at which the damage begins.
        offset: u64,
    },
}

impl End {
    /// The file offset, for each kind of end.
    pub const fn offset(self) -> u64 {
        match self {
            End::Clean { offset } | End::TornTail { offset } | End::Stopped { offset } => offset,
        }
    }

    /// A stable name: `"clean"`, `"torn_tail"` or `"stopped"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            End::Clean { .. } => "clean",
            End::TornTail { .. } => "torn_tail",
            End::Stopped { .. } => "stopped",
        }
    }
}

/// A result of the [`Decoder`].
///
/// Exhaustive: the caller of a decoder must handle each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A record.
    Record(RecordSpan),
    /// Bytes that are not returned.
    Skipped(SkippedRegion),
    /// Call again with a window that holds the bytes from [`Decoder::offset`] on and extends
    /// further than this one; or with this one, if [`Decoder::refused`].
    NeedMore,
    /// There are no more events. Every further call returns the same.
    End(End),
}

/// Finds the records in the bytes of a file, one event a call, without I/O.
///
/// A window may be of any length, but some results need the whole rest of a block; 1 MiB at a time
/// works well. Memory: the bytes of one fragmented record, at most [`ReadOptions::record_len_max`];
/// nothing otherwise.
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
    format: LogFormat,
    assembler: Assembler,
    /// Whether the bytes of records are kept. If not, only [`data_len`](Self::data_len) and
    /// [`stored`](Self::stored) may be called.
    keeps_data: bool,
    decompressor: Decompressor,
    record_len_max: u64,
    info: LogInfo,
    /// The space of the last record in the file, unless it is one of a run.
    stored: Stored,
    /// The header of the last fragment of this log.
    form: Option<Form>,
    /// Damage of which it is not yet clear whether the log continues after it.
    doubt: Option<Doubt>,
    /// Where a trailer ended the log before the end of the file.
    log_end: Option<u64>,
    verify_checksums: bool,
    stops_at_corruption: bool,
    salvages: bool,
    /// The part of a block after the last damage in it, if it is salvaged: file offsets.
    salvaged: Range<u64>,
    /// File offset of the last block in which every byte was tried as a beginning: once per block
    /// is enough.
    scanned: Option<u64>,
    /// The file is still being written: bytes that are not a valid fragment may still become one.
    waits_at_faults: bool,
    /// The file is still being written, and is reported as far as it is written: no ambiguity is
    /// held back.
    is_live: bool,
    start: u64,
    end: u64,
    /// The next byte to look at.
    offset: u64,
    /// At the start of a range: MIDDLE and LAST belong to the range before.
    is_before_first: bool,
    /// FIRST or MIDDLE precedes `offset`: a trailer here is part of a record.
    is_inside: bool,
    /// Where the sequence of torn regions began with which the events so far end.
    torn_since: Option<u64>,
    /// Set when there is nothing more to find.
    finish: Option<End>,
    /// A record to be returned again.
    again: Option<RecordSpan>,
    /// A fragmented record whose decompression was refused.
    compressed: Option<RecordSpan>,
    /// Why the last call did not return a record that is there.
    refused: Option<Refused>,
    /// Where reading began: bytes from here on count towards the budget of a compressed log.
    read_begin: u64,
    run: Run,
    /// Whether to look for runs: not if even a FULL fragment may be too large.
    finds_runs: bool,
}

/// Why a record that is there is not returned. It is neither skipped nor consumed: a further call
/// begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is not enough memory for its bytes.
    OutOfMemory,
    /// With it, the records of a compressed log would decompress to more than is allowed for the
    /// bytes read: see [`ReadOptions::record_len_max`].
    OverBudget {
        /// File offset of its first header.
        offset: u64,
        /// File offset after its last fragment.
        end_offset: u64,
        /// Bytes of its data.
        data_len: u64,
        /// The smallest value of the option with which it is returned.
        record_len_max: u64,
    },
}

/// The space of a record in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) fragment_count: u64,
    /// Bytes of its headers.
    pub(crate) header_len: u64,
    /// Bytes of its payloads: those of its data, unless it is compressed.
    pub(crate) payload_len: u64,
}

/// Consecutive records of one fragment each, found in one loop and returned one by one.
struct Run {
    /// File offset of the first.
    begin: u64,
    /// Where each ends, counted from `begin`.
    ends: [u16; RUN_MAX],
    /// How many there are, and how many of them have been returned.
    len: usize,
    taken: usize,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run { begin, len, taken, .. } = self;
        f.debug_struct("Run")
            .field("begin", begin)
            .field("len", len)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder at the start of the range that `options` specify.
    ///
    /// # Errors
    ///
    /// As [`ReadOptions::check`].
    pub fn new(options: &ReadOptions) -> Result<Self, Error> {
        unsupported(
            options.named().check_in(options.dialect.unwrap_or(Dialect::LEVELDB)),
            None,
        )?;
        Ok(Decoder::unchecked(options))
    }

    /// As [`new`](Self::new), for options that have been checked.
    pub(crate) fn unchecked(options: &ReadOptions) -> Self {
        let format = options.named().or_leveldb();
        let dialect = format.dialect;
        Decoder {
            format,
            assembler: Assembler::new(options.record_len_max),
            keeps_data: true,
            decompressor: Decompressor::default(),
            record_len_max: options.record_len_max,
            info: LogInfo::new(format.compression),
            stored: Stored {
                fragment_count: 0,
                header_len: 0,
                payload_len: 0,
            },
            form: None,
            doubt: None,
            log_end: None,
            verify_checksums: options.verify_checksums,
            stops_at_corruption: options.on_corruption == OnCorruption::Stop,
            salvages: options.on_corruption == OnCorruption::Salvage,
            salvaged: 0..0,
            scanned: None,
            waits_at_faults: false,
            is_live: false,
            start: options.start,
            end: options.end.unwrap_or(u64::MAX),
            offset: dialect.block_begin(options.start),
            is_before_first: options.start > 0 || options.end == Some(0),
            is_inside: false,
            torn_since: None,
            finish: None,
            again: None,
            compressed: None,
            refused: None,
            read_begin: dialect.block_begin(options.start),
            run: Run {
                begin: 0,
                ends: [0; RUN_MAX],
                len: 0,
                taken: 0,
            },
            finds_runs: options.record_len_max >= FRAGMENT_LEN_MAX as u64 && dialect.has_plain_full(),
        }
    }

    /// The format of the log, with its number and its compression as soon as they are known.
    pub fn format(&self) -> LogFormat {
        LogFormat {
            compression: self.info.has_known_compression().then_some(Compression::Zstd),
            ..self.format
        }
    }

    /// How the bytes are laid out.
    pub(crate) fn dialect(&self) -> &Dialect {
        &self.format.dialect
    }

    /// What the engine's metadata records, as far as they have been read, say about the log.
    pub fn info(&self) -> &LogInfo {
        &self.info
    }

    /// The file offset of the next byte that the decoder will read. Bytes before it are no longer
    /// needed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves to `offset`, which must be where a record begins or ends: [`RecordSpan::offset`] or
    /// [`RecordSpan::end_offset`]. Anywhere else, the bytes found there are reported as damage.
    ///
    /// This becomes the start of the range: nothing before `offset` is returned, and everything
    /// after it is.
    pub fn seek(&mut self, offset: u64) {
        self.assembler.give_up(Interruption::Damage);
        self.run.len = 0;
        self.start = offset;
        self.offset = offset;
        self.is_before_first = false;
        self.is_inside = false;
        self.torn_since = None;
        self.finish = None;
        self.again = None;
        self.compressed = None;
        self.salvaged = 0..0;
        self.scanned = None;
        self.doubt = None;
        self.log_end = None;
        self.read_begin = offset;
        // The metadata before the first record is at the beginning of the log, and is read again
        // there.
        self.info.has_begun &= offset > 0;
        self.decompressor.reset();
    }

    /// Puts back the record that the last call to [`step`](Self::step) returned: the next call
    /// returns it again.
    #[cold]
    pub(crate) fn put_back(&mut self, span: RecordSpan) {
        let run = &mut self.run;
        let taken = run.ends[..run.taken.min(run.len)].last();
        if !span.is_joined && taken.is_some_and(|&end| run.begin + u64::from(end) == span.end_offset) {
            run.taken -= 1;
            self.offset = span.offset;
        } else {
            self.again = Some(span);
        }
    }

    /// Why the last call to [`step`](Self::step) returned [`Step::NeedMore`] although the next
    /// record is in the window. `None`: it is not, and more of the file is needed.
    pub fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// The part of a block after the last damage in it, if its records are salvaged: file offsets.
    pub(crate) fn salvaged(&self) -> Range<u64> {
        self.salvaged.clone()
    }

    /// Whether to return [`Step::NeedMore`] at bytes that are not a valid fragment, even if the
    /// whole block is in the window.
    pub(crate) fn set_waits_at_faults(&mut self, waits_at_faults: bool) {
        self.waits_at_faults = waits_at_faults;
        self.is_live = true;
    }

    /// Sets whether to keep the bytes of fragmented records. Without them [`data`](Self::data) must
    /// not be called. A pending record whose bytes were not all kept is read again from its
    /// beginning.
    pub(crate) fn set_keeps_data(&mut self, keeps_data: bool) {
        self.keeps_data = keeps_data;
        self.update_assembler();
        if keeps_data && let Some(begin) = self.assembler.take_unkept() {
            self.offset = begin;
            self.is_inside = false;
        }
    }

    pub(crate) fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// The data of a compressed record is known only after decompression, which needs the whole
    /// frame.
    fn update_assembler(&mut self) {
        self.assembler.set_keeps(self.keeps_data || self.info.is_compressed());
    }

    /// The form of the last record fragment that was read, if any.
    pub(crate) fn form(&self) -> Option<Form> {
        self.form
    }

    /// Whether the first fragments of a record are held, but not its last.
    pub(crate) fn has_parts(&self) -> bool {
        self.assembler.has_parts()
    }

    /// The bytes of the record that the last call to [`step`](Self::step) returned, from the window
    /// of that call.
    #[inline]
    pub fn data<'a>(&'a self, window: Window<'a>, span: RecordSpan) -> &'a [u8] {
        if span.is_joined {
            self.held()
        } else {
            let begin = span.offset + u64::from(span.header_len);
            window.at(begin, (span.end_offset - begin) as usize)
        }
    }

    /// The number of bytes that [`data`](Self::data) has for the same record, without the bytes
    /// themselves.
    #[inline]
    pub(crate) fn data_len(&self, span: RecordSpan) -> u64 {
        if span.is_joined {
            self.held_len()
        } else {
            span.end_offset - span.offset - u64::from(span.header_len)
        }
    }

    /// The data of the last record, if it is not in the window.
    #[cold]
    fn held(&self) -> &[u8] {
        if self.info.is_compressed() {
            self.decompressor.data()
        } else {
            self.assembler.joined()
        }
    }

    #[cold]
    fn held_len(&self) -> u64 {
        if self.info.is_compressed() {
            self.decompressor.data().len() as u64
        } else {
            self.assembler.joined_len()
        }
    }

    /// The space in the file of the record that the last call to [`step`](Self::step) returned.
    pub(crate) fn stored(&self, span: RecordSpan) -> Stored {
        if span.is_joined || usize::from(span.header_len) != HEADER_LEN {
            return self.stored;
        }
        Stored {
            fragment_count: 1,
            header_len: HEADER_LEN as u64,
            payload_len: span.end_offset - span.offset - HEADER_LEN as u64,
        }
    }

    /// The next event in `window`, or [`Step::NeedMore`].
    ///
    /// The window must hold the bytes from [`offset`](Self::offset) on, and must not end before the
    /// window of the last call: records already found in that one are returned without reading them
    /// again.
    #[inline]
    pub fn step(&mut self, window: Window<'_>) -> Step {
        match self.next_of_run() {
            Some(span) => Step::Record(span),
            None => self.look(window),
        }
    }

    /// Fast path of [`step`](Self::step): the next record of the run, if one is left.
    #[inline]
    pub(crate) fn next_of_run(&mut self) -> Option<RecordSpan> {
        if self.run.taken >= self.run.len {
            return None;
        }
        let end = u64::from(*self.run.ends.get(self.run.taken)?);
        self.run.taken += 1;
        let offset = std::mem::replace(&mut self.offset, self.run.begin + end);
        Some(RecordSpan {
            offset,
            end_offset: self.offset,
            is_joined: false,
            header_len: HEADER_LEN as u8,
            // Salvaged parts are not searched for runs.
            is_salvaged: false,
        })
    }

    /// Looks for a run at the beginning of `bytes`, which are at `offset`, and takes its first
    /// record.
    #[inline]
    fn find_run(&mut self, bytes: &[u8], left: usize) -> Option<RecordSpan> {
        let is_inside = self.offset >= self.start && self.end - self.offset.min(self.end) >= left as u64;
        let is_plain = !self.is_before_first
            && self.assembler.is_idle()
            && self.offset >= self.salvaged.end
            && self.doubt.is_none()
            && !self.info.is_compressed();
        if !(self.finds_runs && is_inside && is_plain) {
            return None;
        }
        let Decoder {
            run, verify_checksums, ..
        } = self;
        run.begin = self.offset;
        run.taken = 0;
        run.len = checksum::run(FullRun {
            bytes,
            ends: &mut run.ends,
            verify_checksums: *verify_checksums,
        });
        let first = self.next_of_run()?;
        self.form = Some(Form::Plain);
        self.info.has_begun = true;
        self.info.other_log_number = None;
        self.is_inside = false;
        self.torn_since = None;
        Some(first)
    }

    /// [`step`](Self::step) if no run is left.
    fn look(&mut self, window: Window<'_>) -> Step {
        self.refused = None;
        if let Some(span) = self.again.take() {
            return Step::Record(span);
        }
        if let Some(span) = self.compressed.take() {
            return self.decompress(span, &[]);
        }
        let window = window.within_offsets();
        loop {
            if let Some(end) = self.finish {
                return Step::End(end);
            }
            if self.offset == 0 && !self.format.dialect.prefix.is_empty() {
                match self.prefix(window) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            if let Some(begin) = self.log_end {
                return self.behind_log_end(begin, window);
            }
            if let Some(doubt) = self.doubt
                && let Some(verdict) = doubt.verdict
            {
                return self.resolve(doubt, verdict);
            }
            let left = self.format.dialect.block_left(self.offset);
            let bytes = window.at(self.offset, left);
            if self.offset == 0
                && self.format.log_number.is_none()
                && let Some(number) = self.format.dialect.number_of_empty_log(bytes)
            {
                self.format.log_number = Some(number);
            }
            if let Some(span) = self.find_run(bytes, left) {
                return Step::Record(span);
            }
            let mut found = find(&self.format, bytes, left, window.is_last, self.verify_checksums);
            if matches!(found, Found::EndTrailer { .. }) && self.is_salvaged() {
                let format = self.format.without_end_trailer();
                found = find(&format, bytes, left, window.is_last, self.verify_checksums);
            }
            if self.format.dialect.has_log_numbers() && self.weigh(found, bytes) {
                continue;
            }
            if let Found::Fragment {
                kind,
                form,
                payload_len,
            } = found
                && self.offset >= self.start
                && self.offset < self.end
                && !(self.is_before_first && matches!(kind, Kind::Middle | Kind::Last))
            {
                if let Some(step) = self.fragment(kind, form, &bytes[form.header_len()..][..payload_len]) {
                    return step;
                }
            } else if found == Found::Incomplete
                || (self.waits_at_faults && matches!(found, Found::Fault { .. } | Found::Stale))
            {
                return Step::NeedMore;
            } else if let Some(step) = self.other(self.with_torn_zeros(found), bytes, window) {
                return step;
            }
        }
    }

    /// The file header of this dialect. `None`: look again.
    #[cold]
    fn prefix(&mut self, window: Window<'_>) -> Option<Step> {
        let prefix = self.format.dialect.prefix;
        let bytes = window.at(0, prefix.len());
        if bytes.len() < prefix.len() && !window.is_last {
            return Some(Step::NeedMore);
        }
        // Whether the first block is otherwise empty: if so it was preallocated, if not the header
        // was destroyed.
        let written_len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let block_end = self.format.dialect.first_block_end();
        let first_block = window.at(0, block_end);
        let is_zero = written_len == 0 && first_block.iter().all(|&byte| byte == 0);
        let is_half_written = self.waits_at_faults && bytes != prefix && prefix.starts_with(&bytes[..written_len]);
        if is_half_written || (is_zero && first_block.len() < block_end && !window.is_last) {
            return Some(Step::NeedMore);
        }
        if bytes.is_empty() || self.end == 0 {
            return self.finish(Found::Nothing, 0);
        }
        let reason = if bytes == prefix {
            Reason::FileHeader
        } else if is_zero {
            Reason::ZeroFill
        } else if bytes.len() < prefix.len() && prefix.starts_with(bytes) {
            Reason::TornTail
        } else {
            Reason::BadFileHeader
        };
        self.offset = bytes.len() as u64;
        let region = SkippedRegion {
            begin: 0,
            end: self.offset,
            reason,
            leveldb_len: None,
        };
        (self.start == 0).then(|| self.skip(region))
    }

    /// Fewer zeros than a header, at the end of the file after FIRST or MIDDLE, are the torn rest
    /// of that record, not padding. Only in the same block, so that a range that begins with this
    /// block reports the same.
    fn with_torn_zeros(&self, found: Found) -> Found {
        match found {
            Found::Fault {
                reason: Reason::ZeroFill,
                len,
                leveldb_len,
            } if len < HEADER_LEN && self.is_inside && self.offset > self.format.dialect.block_begin(self.offset) => {
                Found::Fault {
                    reason: Reason::TornTail,
                    len,
                    leveldb_len,
                }
            }
            found => found,
        }
    }

    /// A fragment inside the range.
    fn fragment(&mut self, kind: Kind, form: Form, payload: &[u8]) -> Option<Step> {
        self.is_before_first = false;
        if matches!(kind, Kind::Full | Kind::First) && !self.assembler.is_idle() {
            // The next call reads the fragment itself again.
            return self
                .assembler
                .give_up(Interruption::NewRecord)
                .map(|region| self.skip(region));
        }
        if self.assembler.reserve(kind, payload.len()).is_err() {
            return Some(self.refuse(Refused::OutOfMemory));
        }
        let begin = self.offset;
        let end = begin + (form.header_len() + payload.len()) as u64;
        self.offset = end;
        self.is_inside = matches!(kind, Kind::First | Kind::Middle);
        match self.assembler.push(Fragment {
            kind,
            begin,
            end,
            payload,
        }) {
            Outcome::Pending => None,
            Outcome::Record { begin, is_joined } => {
                self.torn_since = None;
                self.info.has_begun = true;
                self.stored = if is_joined {
                    Stored {
                        fragment_count: self.assembler.joined_count(),
                        header_len: self.assembler.joined_header_len(),
                        payload_len: self.assembler.joined_len(),
                    }
                } else {
                    Stored {
                        fragment_count: 1,
                        header_len: form.header_len() as u64,
                        payload_len: payload.len() as u64,
                    }
                };
                let span = RecordSpan {
                    offset: begin,
                    end_offset: end,
                    is_joined,
                    header_len: form.header_len() as u8,
                    is_salvaged: self.salvaged.contains(&begin),
                };
                Some(if self.info.is_compressed() {
                    self.decompress(span, payload)
                } else {
                    Step::Record(span)
                })
            }
            Outcome::Skipped(region) => Some(self.skip(region)),
        }
    }

    /// A record of a compressed log; `payload` is that of its last fragment.
    #[cold]
    fn decompress(&mut self, span: RecordSpan, payload: &[u8]) -> Step {
        let frame = if span.is_joined {
            self.assembler.joined()
        } else {
            payload
        };
        let decompressed = if self.info.has_known_compression() {
            let read_len = span.end_offset - self.read_begin;
            let total_max = ReadOptions::budget(self.record_len_max, read_len);
            self.decompressor.decompress(frame, self.record_len_max, total_max)
        } else {
            Err(Failed::Skipped(Reason::UnsupportedCompression))
        };
        match decompressed {
            Ok(()) => Step::Record(RecordSpan {
                is_joined: true,
                ..span
            }),
            Err(Failed::OutOfMemory) => self.refuse_compressed(span, Refused::OutOfMemory),
            Err(Failed::OverBudget { data_len, excess }) => {
                let base = ReadOptions::budget(self.record_len_max, 0);
                let refused = Refused::OverBudget {
                    offset: span.offset,
                    end_offset: span.end_offset,
                    data_len,
                    record_len_max: base.saturating_add(excess).max(RECORD_LEN_MAX + 1),
                };
                self.refuse_compressed(span, refused)
            }
            Err(Failed::Skipped(reason)) => self.skip(SkippedRegion {
                begin: span.offset,
                end: span.end_offset,
                reason,
                leveldb_len: None,
            }),
        }
    }

    fn refuse_compressed(&mut self, span: RecordSpan, refused: Refused) -> Step {
        if span.is_joined {
            self.compressed = Some(span);
        } else {
            // The window holds it: it is read again.
            self.offset = span.offset;
        }
        self.refuse(refused)
    }

    #[cold]
    fn refuse(&mut self, refused: Refused) -> Step {
        self.refused = Some(refused);
        Step::NeedMore
    }

    /// Slow path: the edges of the range, trailers, faults and the end of the file.
    fn other(&mut self, found: Found, bytes: &[u8], window: Window<'_>) -> Option<Step> {
        let begin = self.offset;
        let (continues, len) = match found {
            Found::Fragment {
                kind,
                form,
                payload_len,
            } => (
                matches!(kind, Kind::Middle | Kind::Last),
                form.header_len() + payload_len,
            ),
            Found::Trailer { is_zero } if is_zero || self.is_inside => {
                self.offset += bytes.len() as u64;
                return None;
            }
            Found::Trailer { .. } | Found::Stale => (false, bytes.len()),
            Found::Fault { len, .. } | Found::Metadata { len, .. } | Found::EndTrailer { len } => (false, len),
            Found::Nothing | Found::Incomplete => (false, 0),
        };
        if begin >= self.end {
            if self.is_before_first {
                self.finish = Some(End::Clean { offset: self.end });
                return None;
            }
            if !continues {
                return self.finish(found, begin);
            }
        }
        let is_ours = begin >= self.start && !(self.is_before_first && continues);
        match found {
            Found::Nothing => return self.finish(found, window.end_offset()),
            Found::Fragment {
                kind,
                form,
                payload_len,
            } if is_ours => {
                return self.fragment(kind, form, &bytes[form.header_len()..][..payload_len]);
            }
            _ => {}
        }
        if is_ours {
            self.is_before_first = false;
            if !self.assembler.is_idle() {
                // The next call reads these bytes again.
                return self.give_up(found);
            }
        }
        self.offset += match found {
            Found::Fault { reason, .. } if self.salvages => self.lost_len(reason, bytes, len) as u64,
            _ => len as u64,
        };
        self.is_inside = matches!(
            found,
            Found::Fragment {
                kind: Kind::First | Kind::Middle,
                ..
            }
        );
        let (reason, leveldb_len) = match found {
            Found::Fault {
                reason, leveldb_len, ..
            } => (reason, leveldb_len),
            Found::Metadata { metadata, form, len } => {
                let kind = bytes[HEADER_LEN - 1];
                // A log states its compression before its first record; it is applied even if it
                // comes later. But metadata found after damage must not change how the following
                // blocks are read.
                let is_believed = metadata != Metadata::SetCompression || !self.salvaged.contains(&begin);
                let applied = is_believed.then(|| self.info.apply(metadata, &bytes[form.header_len()..len]));
                self.update_assembler();
                match applied.unwrap_or(Applied::Unusual) {
                    Applied::AsUsual => (Reason::Metadata { kind }, None),
                    Applied::Unusual => (Reason::BadMetadata { kind }, None),
                }
            }
            Found::EndTrailer { .. } => {
                self.log_end = Some(self.offset);
                (Reason::EndTrailer, None)
            }
            Found::Stale => (Reason::LostWrite, None),
            _ => (Reason::NonzeroTrailer, None),
        };
        let region = SkippedRegion {
            begin,
            end: self.offset,
            reason,
            leveldb_len,
        };
        is_ours.then(|| self.skip(region))
    }

    /// How many of the `len` bytes of a fault at the beginning of `bytes`, the rest of the block,
    /// are lost.
    #[cold]
    fn lost_len(&mut self, reason: Reason, bytes: &[u8], len: usize) -> usize {
        if !matches!(
            reason,
            Reason::BadLength { .. } | Reason::ChecksumMismatch { .. } | Reason::ZeroHeader
        ) {
            return len;
        }
        let (block, left) = (
            self.format.dialect.block_begin(self.offset),
            self.format.dialect.block_left(self.offset),
        );
        let resume = resync::resume(&self.format.dialect, bytes, left, self.scanned != Some(block));
        if resume.has_scanned {
            self.scanned = Some(block);
        }
        // Further damage in the same block does not shrink the salvaged part.
        if !self.salvaged.contains(&self.offset) {
            self.salvaged = self.offset + resume.len as u64..self.offset.saturating_add(left as u64);
        }
        resume.len
    }

    /// Whether `offset` is after damage in the same block. It may be part of a payload, so the rest
    /// of the log is read as it would be without it: it says nothing about the log's number, the
    /// form of its fragments, its compression or its end.
    fn is_salvaged(&self) -> bool {
        self.salvaged.contains(&self.offset)
    }

    /// Abandons the pending record, since `next` does not continue it.
    fn give_up(&mut self, next: Found) -> Option<Step> {
        let interruption = match next {
            Found::Nothing
            | Found::EndTrailer { .. }
            | Found::Fault {
                reason: Reason::TornTail,
                ..
            } => Interruption::EndOfFile,
            Found::Fragment { .. } => Interruption::NewRecord,
            _ => Interruption::Damage,
        };
        let mut region = self.assembler.give_up(interruption)?;
        // If the file ends in too few bytes for a header or in a length that goes past its end,
        // LevelDB sees a clean end and silently drops the pending record.
        if let Found::Fault {
            len,
            reason,
            leveldb_len: None,
        } = next
            && (len < HEADER_LEN || matches!(reason, Reason::BadLength { .. }))
        {
            region.leveldb_len = None;
        }
        Some(self.skip(region))
    }

    /// Ends the events at `offset`, where `next` is, after abandoning the pending record.
    fn finish(&mut self, next: Found, offset: u64) -> Option<Step> {
        if let Some(step) = self.give_up(next) {
            return Some(step);
        }
        self.finish = Some(match self.torn_since {
            Some(offset) => End::TornTail { offset },
            None => End::Clean { offset },
        });
        None
    }

    /// Reports `region`, and ends there if the policy says so.
    fn skip(&mut self, mut region: SkippedRegion) -> Step {
        if self.salvaged.contains(&region.begin) {
            // LevelDB has abandoned this block.
            region.leveldb_len = None;
        }
        match region.reason.severity() {
            Severity::TornTail => self.torn_since = self.torn_since.or(Some(region.begin)),
            // After the end of the log, whatever ended it.
            _ if region.reason == Reason::Stale => {}
            _ => self.torn_since = None,
        }
        if self.stops_at_corruption && region.reason.severity() == Severity::Corruption {
            self.offset = region.end;
            self.finish = Some(End::Stopped { offset: region.begin });
        }
        Step::Skipped(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoder;

    fn steps(file: &[u8], finds_runs: bool, options: &ReadOptions) -> Vec<Step> {
        let window = Window {
            offset: 0,
            bytes: file,
            is_last: true,
        };
        let mut decoder = Decoder::new(options).unwrap();
        decoder.finds_runs &= finds_runs;
        let mut steps = Vec::new();
        while !matches!(steps.last(), Some(Step::End(_))) {
            steps.push(decoder.step(window));
        }
        steps
    }

    /// Runs are an optimisation: without them each fragment goes through `find`, one by one.
    #[test]
    fn runs_find_what_single_steps_find() {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(0);
        for len in (0..3000).map(|i| i * 7919 % 97).chain([32_000, 40_000, 0, 0, 5]) {
            encoder.encode(&vec![b'x'; len], &mut file);
        }
        let damaged = {
            let mut damaged = file.clone();
            for offset in (500..damaged.len()).step_by(9001) {
                damaged[offset] ^= 1;
            }
            damaged
        };
        let skip = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
        for file in [&file, &damaged] {
            for options in [
                skip.clone(),
                skip.clone().with_range(10..70_000),
                skip.clone().with_range(32_768..65_536),
                skip.clone().with_record_len_max(50),
                skip.clone().with_verify_checksums(false),
                ReadOptions::default().with_on_corruption(OnCorruption::Stop),
            ] {
                assert_eq!(steps(file, true, &options), steps(file, false, &options), "{options:?}");
            }
        }
        assert!(
            steps(&damaged, true, &skip)
                .iter()
                .any(|step| matches!(step, Step::Skipped(_)))
        );
    }

    /// Cut, zeroed, repeated or overwritten, at positions and of lengths that `random` chooses.
    fn damage(file: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut damaged = file.to_vec();
        for _ in 0..random(5) {
            let begin = random(damaged.len());
            let end = begin + random((damaged.len() - begin).min(70_000) + 1);
            match random(4) {
                0 => damaged[begin] ^= 1 << random(8),
                1 => damaged[begin..end].fill(0),
                2 => drop(damaged.drain(begin..end)),
                _ => damaged.truncate(damaged.len() - random(40_000).min(damaged.len() - 1)),
            }
        }
        damaged
    }

    /// Whole and damaged files of every dialect, under every policy: without kept bytes, the
    /// lengths of records are those of their bytes.
    #[test]
    fn lengths_are_those_of_the_data() {
        let mut formats = vec![
            LogFormat::new(Dialect::LEVELDB),
            LogFormat::new(Dialect::ROCKSDB),
            LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
            LogFormat::new(Dialect::PEBBLE).with_log_number(7),
            LogFormat::new(Dialect::RECYCLABLE).with_log_number(7),
            LogFormat::new(Dialect::WANDB),
            LogFormat::new(Dialect::WANDB_OLD),
            LogFormat::new(Dialect::SWANLAB),
        ];
        if cfg!(feature = "zstd") {
            formats.extend([
                LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
                LogFormat::new(Dialect::ROCKSDB)
                    .with_log_number(7)
                    .with_compression(Compression::Zstd),
            ]);
        }
        let mut joined_count = 0;
        for format in formats {
            for seed in 0..60_u64 {
                let mut state = seed;
                let mut random = |max: usize| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as usize % max
                };
                let mut file = Vec::new();
                let mut encoder = Encoder::with_format(0, format).unwrap();
                for _ in 0..random(40) {
                    let len_max = [1, 300, 40_000, 150_000][random(4)];
                    let record: Vec<u8> = (0..=random(len_max)).map(|_| random(256) as u8).collect();
                    encoder.encode(&record, &mut file);
                }
                if random(2) == 0 {
                    encoder.finish(&mut file);
                }
                let file = if seed % 3 == 0 || file.is_empty() {
                    file
                } else {
                    damage(&file, &mut random)
                };
                let policies = [OnCorruption::Skip, OnCorruption::Stop, OnCorruption::Salvage];
                let mut options = ReadOptions::default().with_format(format);
                // A compressed log must say so itself.
                options.compression = None;
                let options = options
                    .with_on_corruption(policies[random(3)])
                    .with_record_len_max([1 << 30, 1 << 30, 50_000, 0][random(4)]);
                let window = Window {
                    offset: 0,
                    bytes: &file,
                    is_last: true,
                };
                let (mut keeping, mut counting) = (Decoder::new(&options).unwrap(), Decoder::new(&options).unwrap());
                counting.set_keeps_data(false);
                loop {
                    let step = keeping.step(window);
                    assert_eq!(counting.step(window), step, "{format:?} {seed}");
                    match step {
                        Step::Record(span) => {
                            let len = keeping.data(window, span).len() as u64;
                            assert_eq!(keeping.data_len(span), len);
                            assert_eq!(counting.data_len(span), len, "{format:?} {seed}");
                            assert_eq!(counting.stored(span), keeping.stored(span), "{format:?} {seed}");
                            joined_count += u32::from(span.is_joined);
                        }
                        Step::Skipped(_) => {}
                        Step::NeedMore => panic!("the window is the last"),
                        Step::End(_) => break,
                    }
                }
                assert_eq!(counting.info(), keeping.info());
            }
        }
        assert!(joined_count > 400, "{joined_count}");
    }
}
