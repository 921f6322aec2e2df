//! The decoder itself.

use std::ops::Range;

use super::recycled::Doubt;
use super::run::Run;
use super::unpack::{Unpacked, Unpacker};
use super::{DataAt, End, OnCorruption, ReadOptions, RecordSpan, Refused, Step, Stored, Window};
use crate::assemble::{Assembler, Fragment, Interruption, Outcome};
use crate::checksum;
use crate::damage::resync;
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::dialect::{Compression, Dialect, Form, LogFormat, Metadata};
use crate::error::{Error, unsupported};
use crate::format::{FRAGMENT_LEN_MAX, HEADER_LEN, Kind};
use crate::fragment::{Found, FullRun, RUN_MAX, find};
use crate::wal_metadata::{Applied, LogInfo};

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
    pub(super) format: LogFormat,
    pub(super) assembler: Assembler,
    /// Whether the bytes of records are kept. If not, only [`data_len`](Self::data_len) and
    /// [`stored`](Self::stored) may be called.
    pub(super) keeps_data: bool,
    pub(super) unpacker: Unpacker,
    pub(super) info: LogInfo,
    /// The space of the last record in the file, unless it is one of a run.
    pub(super) stored: Stored,
    /// The header of the last fragment of this log.
    pub(super) form: Option<Form>,
    /// Damage of which it is not yet clear whether the log continues after it.
    pub(super) doubt: Option<Doubt>,
    /// Where a trailer ended the log before the end of the file.
    pub(super) log_end: Option<u64>,
    pub(super) verify_checksums: bool,
    pub(super) stops_at_corruption: bool,
    pub(super) salvages: bool,
    /// The part of a block after the last damage in it, if it is salvaged: file offsets.
    pub(super) salvaged: Range<u64>,
    /// File offset of the last block in which every byte was tried as a beginning: once per block
    /// is enough.
    pub(super) scanned: Option<u64>,
    /// The file is still being written: bytes that are not a valid fragment may still become one.
    pub(super) waits_at_faults: bool,
    /// The file is still being written, and is reported as far as it is written: no ambiguity is
    /// held back.
    pub(super) is_live: bool,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The next byte to look at.
    pub(super) offset: u64,
    /// At the start of a range: MIDDLE and LAST belong to the range before.
    pub(super) is_before_first: bool,
    /// FIRST or MIDDLE precedes `offset`: a trailer here is part of a record.
    pub(super) is_inside: bool,
    /// Where the sequence of torn regions began with which the events so far end.
    pub(super) torn_since: Option<u64>,
    /// Set when there is nothing more to find.
    pub(super) finish: Option<End>,
    /// A record to be returned again.
    pub(super) again: Option<RecordSpan>,
    /// A joined record whose unpacking was refused.
    pub(super) packed: Option<RecordSpan>,
    /// Why the last call did not return a record that is there.
    pub(super) refused: Option<Refused>,
    pub(super) run: Run,
    /// Whether to look for runs: not if even a FULL fragment may be too large.
    pub(super) finds_runs: bool,
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
            unpacker: Unpacker::new(options.record_len_max, dialect.block_begin(options.start)),
            info: LogInfo::new(format.compression),
            stored: Stored {
                fragment_count: 0,
                header_len: 0,
                payload_len: 0,
                form: Form::Plain,
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
            packed: None,
            refused: None,
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
        self.packed = None;
        self.salvaged = 0..0;
        self.scanned = None;
        self.doubt = None;
        self.log_end = None;
        self.unpacker.restart(offset);
        // The metadata before the first record is at the beginning of the log, and is read again
        // there.
        self.info.has_begun &= offset > 0;
    }

    /// Puts back the record that the last call to [`step`](Self::step) returned: the next call
    /// returns it again.
    #[cold]
    pub(crate) fn put_back(&mut self, span: RecordSpan) {
        let run = &mut self.run;
        let taken = run.ends[..run.taken.min(run.len)].last();
        let is_in_window = matches!(span.data_at, DataAt::Window { .. });
        if is_in_window && taken.is_some_and(|&end| run.begin + u64::from(end) == span.end_offset) {
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
        match span.data_at {
            DataAt::Window { header_len } => {
                let begin = span.offset + u64::from(header_len);
                window.at(begin, (span.end_offset - begin) as usize)
            }
            DataAt::Joined | DataAt::Unpacked => self.held(span.data_at),
        }
    }

    /// The number of bytes that [`data`](Self::data) has for the same record, without the bytes
    /// themselves.
    #[inline]
    pub(crate) fn data_len(&self, span: RecordSpan) -> u64 {
        match span.data_at {
            DataAt::Window { header_len } => span.end_offset - span.offset - u64::from(header_len),
            DataAt::Joined => self.assembler.joined_len(),
            DataAt::Unpacked => self.unpacker.data().len() as u64,
        }
    }

    /// The data of the last record, if it is not in the window.
    #[cold]
    fn held(&self, at: DataAt) -> &[u8] {
        match at {
            DataAt::Unpacked => self.unpacker.data(),
            DataAt::Joined | DataAt::Window { .. } => self.assembler.joined(),
        }
    }

    /// The space in the file of the record that the last call to [`step`](Self::step) returned.
    pub(crate) fn stored(&self, span: RecordSpan) -> Stored {
        match span.data_at {
            DataAt::Window { header_len } if usize::from(header_len) == HEADER_LEN => Stored {
                fragment_count: 1,
                header_len: HEADER_LEN as u64,
                payload_len: span.end_offset - span.offset - HEADER_LEN as u64,
                form: Form::Plain,
            },
            _ => self.stored,
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
            data_at: DataAt::Window {
                header_len: HEADER_LEN as u8,
            },
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
        if let Some(span) = self.packed.take() {
            return self.unpack(span, &[]);
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
                        form,
                    }
                } else {
                    Stored {
                        fragment_count: 1,
                        header_len: form.header_len() as u64,
                        payload_len: payload.len() as u64,
                        form,
                    }
                };
                let span = RecordSpan {
                    offset: begin,
                    end_offset: end,
                    data_at: if is_joined {
                        DataAt::Joined
                    } else {
                        DataAt::Window {
                            header_len: form.header_len() as u8,
                        }
                    },
                    is_salvaged: self.salvaged.contains(&begin),
                };
                Some(if self.info.is_compressed() {
                    self.unpack(span, payload)
                } else {
                    Step::Record(span)
                })
            }
            Outcome::Skipped(region) => Some(self.skip(region)),
        }
    }

    /// A record of a compressed log; `payload` is that of its last fragment.
    #[cold]
    fn unpack(&mut self, span: RecordSpan, payload: &[u8]) -> Step {
        let is_joined = span.data_at == DataAt::Joined;
        let frame = if is_joined { self.assembler.joined() } else { payload };
        match self.unpacker.unpack(span, frame, self.info.has_known_compression()) {
            Unpacked::Record(span) => Step::Record(span),
            Unpacked::Skipped(region) => self.skip(region),
            Unpacked::Refused(refused) => {
                if is_joined {
                    self.packed = Some(span);
                } else {
                    // The window holds it: it is read again.
                    self.offset = span.offset;
                }
                self.refuse(refused)
            }
        }
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
    pub(super) fn is_salvaged(&self) -> bool {
        self.salvaged.contains(&self.offset)
    }

    /// Abandons the pending record, since `next` does not continue it.
    pub(super) fn give_up(&mut self, next: Found) -> Option<Step> {
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
    pub(super) fn skip(&mut self, mut region: SkippedRegion) -> Step {
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
