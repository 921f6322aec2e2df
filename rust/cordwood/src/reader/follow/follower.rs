//! The follower, which runs the decoder in a loop over a growing file.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::directory::Next;
use super::live_file::{FileStatus, LiveFile};
use super::options::FollowOptions;
use super::poll::{NotYet, Poll, WaitReason};
use super::unreported::{Answer, Seen, Unreported};
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::decode::{Decoder, End, Growth, OnCorruption, RecordSpan, Step};
use crate::detect::log_number_of;
use crate::dialect::{Dialect, LogFormat};
use crate::error::{Error, ErrorKind, refusal, unsupported};
use crate::format::Header;
use crate::fragment::stated_end;
use crate::position::{Mark, Position};
use crate::reader::Record;
use crate::segments::pruned;
use crate::trace::trace;

/// The result of a poll, without borrowed data.
#[derive(Debug)]
enum Reported {
    Record(RecordSpan),
    Other(Poll<'static>),
}

/// The state that determines the next step of a poll. `docs/format/following.md` lists the same
/// states under "States".
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// The format of the log has yet to be detected.
    Identifying,
    /// The next record or region can be returned.
    Reading,
    /// The remainder of a damaged block has not been written yet. Everything written to the block
    /// so far has been reported.
    DamagedRest(Rest),
    /// The follower has ended and keeps returning its final result.
    Ended(Poll<'static>),
}

/// The part of a damaged block that has not been written yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    block_end: u64,
    /// The event to report once this part has been written. `None` if this part is before the
    /// follower's start, because no events are reported there.
    region: Option<SkippedRegion>,
    /// Whether the format of the log is known.
    is_identified: bool,
}

/// The last reported event, which determines how the bytes after it are reread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// No event has been reported yet. MIDDLE and LAST fragments at the start belong to an earlier
    /// record, and are not reported.
    Nothing,
    /// The start of a record that is too large. The remainder of the record is not reported as
    /// damage.
    TooLarge,
    /// Any other event.
    Event,
}

/// Follows a file while another process or thread appends to it.
///
/// [`poll`](Self::poll) returns immediately, whereas [`wait`](Self::wait) waits for an event. The
/// follower never writes to the file. It checks the file at intervals, without notifications from
/// the operating system.
///
/// * A record is returned once it is complete; until then, the follower waits for the remaining
///   bytes. It also waits when it reaches zeros, because a writer may have preallocated the space.
/// * Damage is reported as soon as a later block starts with a valid fragment, because writes
///   become visible in order. It is also reported if it persists after
///   [`retry_polls`](FollowOptions::retry_polls) and [`retry_time`](FollowOptions::retry_time).
/// * [`offset`](Self::offset) only advances past reported bytes. To resume later, store the offset
///   and pass it as [`start`](FollowOptions::start).
///
/// Once the dialect is known, a poll that finds no event costs one `stat` of the path. If an
/// incomplete record or zeros follow the offset, it also reads up to one block. If more blocks
/// follow, as in a preallocated file, it also reads the first header of each block, for up to 256
/// blocks. Once the path refers to another file, the headers of all remaining blocks are read, over
/// several polls if necessary, before [`Poll::Rotated`] is returned.
///
/// The follower keeps an incomplete record in memory, except for its last block. This takes up to
/// [`record_len_max`](FollowOptions::record_len_max) bytes. Once the record is complete, its bytes
/// are read again. Each byte of a record is read at most twice, not counting the one block that
/// each poll may reread.
///
/// ```
/// use cordwood_log::{Follower, Writer};
/// use cordwood_log::follow::{NotYet, Poll};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("live.log");
/// let mut writer = Writer::new(std::fs::File::create(&path)?);
/// let mut follower = Follower::open(&path)?;
/// assert!(matches!(follower.poll()?, Poll::NotYet(NotYet { offset: 0, .. })));
///
/// writer.append(b"one")?;
/// writer.flush()?;
/// let Poll::Record(record) = follower.poll()? else { panic!() };
/// assert_eq!((record.offset, record.data), (0, b"one".as_slice()));
/// assert_eq!(follower.offset(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    pub(super) options: FollowOptions,
    pub(super) file: LiveFile,
    pub(super) state: State,
    /// The format of the log, or the first format to try if the format is not known yet.
    pub(super) format: LogFormat,
    pub(super) decoder: Decoder,
    /// The file offset after the last reported event.
    pub(super) position: u64,
    pub(super) last: Last,
    pub(super) unreported: Unreported,
    /// A record that was found but has not been taken yet.
    found: Option<RecordSpan>,
    /// Whether the format of the log was detected from the contents of one of its files.
    pub(super) is_known_log: bool,
    /// The checksum of the last bytes of the previous file.
    before: Option<Mark>,
    /// The checksum of the bytes before the follower's position, as of the last wait. Writers never
    /// change these bytes.
    last_wait: Option<Mark>,
}

impl Follower {
    /// Opens a file, or the directory of a segmented log, for following with the default options.
    /// The file must exist but may be empty; the directory must contain at least one segment.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open_with`](Self::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Follower::open_with(path, FollowOptions::default())
    }

    /// Opens a file for following with `options`. The file must exist but may be empty.
    ///
    /// To follow a log in [`segments`](crate::segments), pass its directory, which must contain at
    /// least one segment. The follower then reads every file in the log, and all offsets are log
    /// offsets. [`Poll::Rotated`] is never returned for a segmented log.
    ///
    /// ```
    /// use cordwood_log::{FollowOptions, Follower, LogFileOptions, SegmentedLog};
    /// use cordwood_log::follow::Poll;
    /// # let directory = tempfile::tempdir()?;
    /// # let orders = directory.path().join("orders");
    /// let log = SegmentedLog::open(&orders, LogFileOptions::default())?;
    /// let mut follower = Follower::open_with(&orders, FollowOptions::default())?;
    /// for order in [b"one", b"two"] {
    ///     log.append(order)?;
    ///     log.rotate()?;
    /// }
    /// for (offset, order) in [(0, b"one"), (10, b"two")] {
    ///     let Poll::Record(record) = follower.poll()? else { panic!() };
    ///     assert_eq!((record.offset, record.data), (offset, order.as_slice()));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Pruned`] if the start is before the first offset of a segmented log.
    /// * [`ErrorKind::NotASegment`] if the directory of a segmented log also contains other files.
    /// * [`ErrorKind::Changed`] if the position in `options` belongs to another log.
    /// * [`ErrorKind::Io`] with the path and the operating system's error. The kind is
    ///   [`io::ErrorKind::IsADirectory`] for a directory that is not a log, and
    ///   [`io::ErrorKind::InvalidInput`] for a pipe or a device.
    /// * [`ErrorKind::Unsupported`] if `options` names a dialect that does not support the given
    ///   number or compression.
    pub fn open_with(path: impl AsRef<Path>, options: FollowOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let named = options.named();
        unsupported(named.check(), Some(path))?;
        let mut format = LogFormat::new(Dialect::LEVELDB);
        if let Some(dialect) = named.dialect {
            let number = named.log_number.or_else(|| log_number_of(path));
            format = named.format(dialect).numbered(number);
        }
        let file = LiveFile::open(path, options.start)?;
        if let Some(position) = &options.position {
            position.check(path, &options.read_options())?;
        }
        let state = if named.may_be_completed() {
            State::Identifying
        } else {
            State::Reading
        };
        Ok(Follower {
            decoder: options.decoder(format, file.origin),
            // A start of 0 means the first offset of the log.
            position: options.start.max(file.origin),
            before: options
                .position
                .as_ref()
                .and_then(|position| position.mark_before(file.origin)),
            last_wait: None,
            options,
            file,
            state,
            format,
            last: Last::Nothing,
            unreported: Unreported::default(),
            found: None,
            is_known_log: false,
        })
    }

    /// Returns the format of the log: the dialect and, if known, the log number and the
    /// compression. The dialect is [`Dialect::LEVELDB`] until another one is detected.
    pub fn format(&self) -> LogFormat {
        self.decoder.format()
    }

    /// Returns the file offset after the last reported event. To resume there, pass it to another
    /// follower as [`start`](FollowOptions::start). That follower returns the same records as this
    /// one. After damage, however, only this follower reports the remaining fragments of the
    /// damaged record, as [`Reason::MissingStart`].
    pub fn offset(&self) -> u64 {
        self.found.map_or(self.position, |span| span.offset)
    }

    /// Returns the position after the last reported event. To resume there later, use
    /// [`FollowOptions::with_position`]. This call reads at most two blocks.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Io`] if the file cannot be read, and [`ErrorKind::Truncated`] if the
    /// file has been truncated.
    pub fn position(&self) -> Result<Position, Error> {
        self.position_at(self.offset())
    }

    fn position_at(&self, offset: u64) -> Result<Position, Error> {
        let origin = self.file.origin;
        let position = Position::read(origin, offset, self.before, |at, to| self.file.read_at(at, to));
        position.map_err(|source| {
            let file_len = self.file.end().ok();
            match source.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::new(ErrorKind::Truncated { offset, file_len }, Some(&self.file.path))
                }
                _ => Error::io(source, Some(&self.file.path)),
            }
        })
    }

    /// Returns whether the last poll postponed [`Poll::Rotated`] because blocks of the replaced
    /// file still had to be probed. If so, [`delay`](Self::delay) returns zero.
    pub fn is_probing(&self) -> bool {
        self.unreported.is_probing
    }

    /// Returns how long to wait before the next [`poll`](Self::poll), for programs that poll in
    /// their own loop. This is [`poll_interval`](FollowOptions::poll_interval), but may be shorter
    /// while bytes that look damaged are being reread. It is zero while the remaining blocks of a
    /// replaced file are being probed. [`wait`](Self::wait) already includes this delay.
    pub fn delay(&self) -> Duration {
        let retry = self.options.retry_time / self.options.retry_polls.max(1);
        match self.unreported.retrying {
            _ if self.unreported.is_probing => Duration::ZERO,
            Some(_) => self.options.poll_interval.min(retry),
            None => self.options.poll_interval,
        }
    }

    /// Returns the next event if it is already in the file. Never waits.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the file cannot be read. A later call tries again.
    /// * [`ErrorKind::OverBudget`] if the next record in a compressed log decompresses to too many
    ///   bytes. A later call returns the same error.
    /// * [`ErrorKind::Corruption`] for damage, if the policy is [`OnCorruption::Fail`]. A later
    ///   call resumes after the damage. If the remainder of the damaged block is written later, it
    ///   is returned as a [`Poll::Skipped`], not as a second error. Under the other policies, all
    ///   damage is returned as a [`Poll::Skipped`].
    /// * [`ErrorKind::Foreign`] and [`ErrorKind::Unsupported`], as in
    ///   [`Reader::next_event`](crate::Reader::next_event).
    /// * [`ErrorKind::Pruned`] if files of a segmented log were removed before they were read. A
    ///   later call returns the same error.
    /// * [`ErrorKind::Changed`] if the path now refers to another log, because a segmented log's
    ///   directory was replaced or a file was rewritten from its start. A later call returns the
    ///   same error.
    #[inline]
    pub fn poll(&mut self) -> Result<Poll<'_>, Error> {
        if let Some(span) = self.next_found() {
            self.advance();
            return Ok(Poll::Record(self.record(span)));
        }
        let reported = self.report()?;
        self.advance();
        Ok(self.answer(reported))
    }

    /// Like [`poll`](Self::poll), but does not take a record: subsequent calls return the same
    /// record until [`advance`](Self::advance) takes it. This is useful if processing the record
    /// can fail, for example because memory runs out.
    ///
    /// ```
    /// use cordwood_log::{Follower, follow::Poll};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("live.log");
    /// std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
    /// let mut follower = Follower::open(&path)?;
    /// for _ in 0..2 {
    ///     assert!(matches!(follower.peek()?, Poll::Record(record) if record.data == b"foo"));
    ///     assert_eq!(follower.offset(), 0);
    /// }
    /// follower.advance();
    /// assert_eq!(follower.offset(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`poll`](Self::poll).
    #[inline]
    pub fn peek(&mut self) -> Result<Poll<'_>, Error> {
        if let Some(span) = self.next_found() {
            return Ok(Poll::Record(self.record(span)));
        }
        let reported = self.report()?;
        Ok(self.answer(reported))
    }

    /// Takes the record that [`peek`](Self::peek) returned, if any.
    #[inline]
    pub fn advance(&mut self) {
        self.found = None;
    }

    /// Checks whether the next record has already been found. If so, the next [`peek`](Self::peek)
    /// or [`poll`](Self::poll) returns it without reading the file. Such a record was found
    /// together with the previous one, or was returned by `peek` but has not been taken yet.
    #[inline]
    pub fn has_found(&self) -> bool {
        self.found.is_some() || (self.is_reading() && self.decoder.peek_of_several().is_some())
    }

    /// Returns the next record if it [has been found](Self::has_found).
    #[inline]
    fn next_found(&mut self) -> Option<RecordSpan> {
        if self.found.is_none() && self.is_reading() {
            let span = self.decoder.next_of_several()?;
            self.moved(span.end_offset, Last::Event);
            self.found = Some(span);
        }
        self.found
    }

    #[inline]
    fn is_reading(&self) -> bool {
        matches!(self.state, State::Reading)
    }

    /// Waits for the next event and returns it. Keeps waiting as long as [`poll`](Self::poll)
    /// returns [`Poll::NotYet`]. If `timeout` elapses first, returns [`Poll::NotYet`]. Waits
    /// indefinitely if `timeout` is `None`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`poll`](Self::poll).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Poll<'_>, Error> {
        // If the clock cannot represent the deadline, there is no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let reported = self.report()?;
            if !matches!(reported, Reported::Other(Poll::NotYet(_))) {
                self.advance();
                return Ok(self.answer(reported));
            }
            let mut pause = self.delay();
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(self.answer(reported));
                }
                pause = pause.min(left);
            }
            thread::sleep(pause);
        }
    }

    fn answer(&self, reported: Reported) -> Poll<'_> {
        match reported {
            Reported::Record(span) => Poll::Record(self.record(span)),
            Reported::Other(poll) => poll,
        }
    }

    #[inline]
    fn record(&self, span: RecordSpan) -> Record<'_> {
        Record::new(span, self.decoder.data(self.file.window(), span))
    }

    #[inline(never)]
    fn report(&mut self) -> Result<Reported, Error> {
        if let Some(span) = self.next_found() {
            return Ok(Reported::Record(span));
        }
        self.unreported.is_probing = false;
        let reported = self.next();
        trace!("follow: {reported:?}; {:?}", self.state);
        if let Ok(Reported::Record(span)) = reported {
            self.found = Some(span);
        }
        reported.map_err(|mut error| {
            // Errors from the operating system, such as a failed read, do not contain the path yet.
            error.path.get_or_insert_with(|| self.file.path.as_path().into());
            error
        })
    }

    fn next(&mut self) -> Result<Reported, Error> {
        loop {
            let reported = match self.state {
                State::Identifying | State::Reading => self.next_event()?,
                State::DamagedRest(rest) => self.rest_of_block(rest)?,
                State::Ended(last) => Some(Reported::Other(last)),
            };
            if let Some(reported) = reported {
                return Ok(reported);
            }
        }
    }

    /// Returns the decoder's next finding, or `None` if the follower's state or the log's format
    /// has changed.
    fn next_event(&mut self) -> Result<Option<Reported>, Error> {
        let mut seen: Option<Seen> = None;
        let mut is_mixed = false;
        loop {
            let mut step = self.decoder.step(self.file.window());
            let mut rest = None;
            if step == Step::NeedMore {
                if let Some(refused) = self.decoder.refused() {
                    return Err(refusal(refused, Some(&self.file.path)));
                }
                let offset = self.decoder.offset();
                let Some(seen) = seen.as_mut().filter(|seen| seen.at == offset) else {
                    // Fragments from an earlier call may not belong to the same record as the bytes
                    // being read now: a writer that failed in the middle of a record may have
                    // truncated the file and written a different record.
                    is_mixed |= seen.is_none() && self.decoder.has_parts();
                    let status = self.file.status()?;
                    if status.is_replaced {
                        self.reopen()?;
                        (seen, is_mixed) = (None, false);
                        continue;
                    }
                    if status.file_len < self.position {
                        return match self.file.next {
                            Some(next) => self.leave_file(next),
                            None => Ok(Some(self.truncated(status))),
                        };
                    }
                    if status.file_len < offset {
                        // Only unreported bytes were truncated.
                        self.forget();
                        (seen, is_mixed) = (None, false);
                        continue;
                    }
                    if status.file_len > offset {
                        self.check_unchanged()?;
                    }
                    if self.read(offset, status)? {
                        return Ok(None);
                    }
                    seen = Some(Seen {
                        at: offset,
                        status,
                        is_read_again: false,
                    });
                    continue;
                };
                // Everything from this offset onward has been read since this call started.
                match self.judge(*seen)? {
                    Answer::Wait(_) if let Some(next) = self.file.next => return self.leave_file(next),
                    Answer::Wait(reason) => return self.waits(reason, seen.status),
                    Answer::ReadAgain => {
                        seen.is_read_again = true;
                        if self.read(offset, seen.status)? {
                            return Ok(None);
                        }
                        continue;
                    }
                    Answer::Final => {
                        self.unreported.known_bad = Some(offset);
                        (step, rest) = self.step_over();
                    }
                }
            }
            match step {
                Step::End(_) if let Some(next) = self.file.next => {
                    return self.leave_file(next);
                }
                Step::NeedMore | Step::End(_) => {
                    if let Some(rest) = rest {
                        self.state = State::DamagedRest(rest);
                        return Ok(None);
                    }
                }
                _ if is_mixed => {
                    // Reread the whole record from its start.
                    self.restart();
                    is_mixed = false;
                }
                _ if matches!(self.state, State::Identifying) && self.position > self.file.origin => {
                    // The log starts with damage that was already reported, or that is before the
                    // follower's start. How to read the bytes after the damage depends on the
                    // format of the log.
                    self.restart();
                    let status = self.file.status()?;
                    return self.waits(WaitReason::Damaged, status);
                }
                // These bytes, at the start of the log, have already been reported as damage. At
                // that time, the log's format was still unknown.
                Step::Record(span) if span.offset < self.position => {}
                Step::Skipped(region) if region.end <= self.position => {
                    if let Some(rest) = rest {
                        self.state = State::DamagedRest(rest);
                        return Ok(None);
                    }
                }
                Step::Record(span) => {
                    self.moved(span.end_offset, Last::Event);
                    return Ok(Some(Reported::Record(span)));
                }
                Step::Skipped(region) if self.is_of_break(region) => {}
                Step::Skipped(region) => {
                    if let Some(rest) = rest {
                        self.state = State::DamagedRest(rest);
                    }
                    if region.start >= self.position {
                        return self.skip_or_fail(region).map(Some);
                    }
                    // The start of the region has been reported, possibly as an error, so the
                    // remainder must not be reported as a second error.
                    return Ok(Some(self.skip(part(region, self.position, region.end))));
                }
            }
        }
    }

    /// Reads the file from `offset`. Then, if the format of the log is not known, tries to
    /// determine it. This must happen after the read. Otherwise, a writer could write the start of
    /// the file between the two reads, and the bytes read here would be decoded in the wrong
    /// format. Returns whether the log must be reread in another format.
    fn read(&mut self, offset: u64, status: FileStatus) -> Result<bool, Error> {
        self.file.read(offset, status.file_len)?;
        if !matches!(self.state, State::Identifying) {
            return Ok(false);
        }
        let is_new = self.identify(false);
        if is_new.is_err() {
            // The next poll must identify the log before it decodes these bytes.
            self.restart();
        }
        is_new
    }

    /// Reads the remaining bytes of a segment that will no longer change, then opens the `next`
    /// segment. Called where the follower would otherwise wait for more bytes. Returns `None` if
    /// there is no event to report.
    #[cold]
    fn leave_file(&mut self, next: Next) -> Result<Option<Reported>, Error> {
        if !self.file.is_final && self.position != next.origin {
            // The file does not end with a record, so read its last bytes as a reader would.
            if matches!(self.state, State::Identifying) {
                self.identify(true)?;
                self.state = State::Reading;
            }
            self.file.is_final = true;
            self.restart_in(self.format);
            return Ok(None);
        }
        let (file_end, next_origin) = (self.file.end()?, next.origin);
        let before = self.position_at(file_end.min(next_origin))?.last_mark();
        let has_grown = file_end > next_origin;
        let range = self.position..u64::MAX;
        if let Some(region) = self.file.joint.region(file_end, next_origin, has_grown, range) {
            if region.reason == Reason::MissingSegment && next.is_after_pruning {
                return Err(pruned(&self.file.path, region.start, next_origin));
            }
            if self.file.joint.reports() {
                return self.skip_or_fail(region).map(Some);
            }
        }
        if self.file.is_replaced()? == Some(true) {
            // Another file now has the name of the followed file, so this name cannot be used to
            // find the next file.
            self.reopen()?;
            return Ok(None);
        }
        self.file.open_next(next.origin)?;
        (self.before, self.last_wait) = (before, None);
        self.position = next.origin;
        self.last = Last::Nothing;
        if self.options.named().may_be_completed() {
            self.state = State::Identifying;
        }
        self.restart_in(self.format);
        Ok(None)
    }

    /// Checks whether `region` is at the end of a file that will no longer change. If so, the
    /// region must be reported as part of the break before the next file.
    fn is_of_break(&mut self, region: SkippedRegion) -> bool {
        let end = self.file.window().end_offset();
        self.file.is_final && self.file.joint.takes(region, end)
    }

    /// Makes the decoder skip the bytes at the start of the window, where it is waiting. These
    /// bytes are the rest of the block or a fragment of unknown type. Returns the step, and the
    /// part of the block that has not been written yet.
    fn step_over(&mut self) -> (Step, Option<Rest>) {
        let at = self.decoder.offset();
        // The block may be incomplete. The rest of it is skipped regardless of its contents, just
        // as a reader of the whole file would skip it. However, it can't be reported until it has
        // been written. Until then, zeros take its place; they do not affect the preceding bytes.
        let grid = self.decoder.grid();
        // A file header before the first block is treated as part of that block.
        let left = if at == grid.origin {
            grid.first_block_len()
        } else {
            grid.block_left(at)
        };
        let (window, there) = self.file.whole_block(at, left, self.decoder.format().dialect);
        self.decoder.set_growth(Growth::SkipFaults);
        let step = self.decoder.step(window);
        self.decoder.set_growth(Growth::WaitAtFaults);

        // A skipped event before the follower's start is not reported. In the window, zeros replace
        // the bytes that haven't been written yet. The next finding may extend into these zeros, so
        // it is read again from the file.
        let after = match step {
            Step::Record(span) => Some((self.decoder.start_of_record(span), span.offset)),
            Step::Skipped(region) => {
                Some((self.decoder.start_of_region(region), region.start)).filter(|&(_, offset)| offset > at)
            }
            Step::NeedMore | Step::End(_) => None,
        };
        if let Some((start, offset)) = after {
            // Do not seek to the start of the block: the decoder would stop at the same damage
            // again.
            self.decoder.seek_from(start, offset);
            return (Step::NeedMore, None);
        }
        let (end, block_end) = (at + there as u64, self.decoder.offset());
        if block_end <= end {
            return (step, None);
        }
        let mut rest = Rest {
            block_end,
            region: None,
            is_identified: matches!(self.state, State::Reading),
        };
        let Step::Skipped(mut region) = step else {
            return (step, Some(rest));
        };
        // The computed checksum is meaningless if part of the data has not been written yet.
        if let Reason::ChecksumMismatch { .. } = region.reason
            && let Some(header) = window.at(at, there).first_chunk().map(Header::decode)
            && stated_end(&self.decoder.format(), header) > there
        {
            region.reason = Reason::BadLength { len: header.len };
        }
        rest.region = Some(part(region, end, block_end));
        (Step::Skipped(part(region, region.start, end)), Some(rest))
    }

    /// Waits for the rest of a damaged block to be written, then reports it and continues with the
    /// next block. Returns `None` if there is no event to report.
    fn rest_of_block(&mut self, rest: Rest) -> Result<Option<Reported>, Error> {
        let status = self.file.status()?;
        if status.file_len < self.position {
            return Ok(Some(self.truncated(status)));
        }
        if status.file_len < rest.block_end && self.file.next.is_none() {
            return Ok(Some(self.not_yet(WaitReason::Damaged, status)));
        }
        self.state = if rest.is_identified {
            State::Reading
        } else {
            State::Identifying
        };
        let end = rest.block_end.min(status.file_len);
        let Some(region) = rest.region.filter(|region| region.start < end) else {
            return Ok(None);
        };
        // The start of the damage has been reported, possibly as an error, so the remainder must
        // not be reported as a second error.
        Ok(Some(self.skip(part(region, region.start, end))))
    }

    /// Reports a region. Returns an error if the region counts as damage and the options treat
    /// damage as an error.
    fn skip_or_fail(&mut self, region: SkippedRegion) -> Result<Reported, Error> {
        let reported = self.skip(region);
        if self.options.on_corruption == OnCorruption::Fail && region.reason.severity() == Severity::Corruption {
            return Err(Error::new(ErrorKind::Corruption { region }, Some(&self.file.path)));
        }
        Ok(reported)
    }

    fn skip(&mut self, region: SkippedRegion) -> Reported {
        let last = if self.decoder.is_in_too_large() {
            Last::TooLarge
        } else {
            Last::Event
        };
        self.moved(region.end, last);
        let is_damage = region.reason.severity() == Severity::Corruption;
        if is_damage && self.options.on_corruption == OnCorruption::Stop {
            let end = End::Stopped { offset: region.start };
            self.state = State::Ended(Poll::End(end));
        }
        if region.reason == Reason::EndTrailer {
            let end = End::Clean { offset: region.end };
            self.state = State::Ended(Poll::End(end));
        }
        Reported::Other(Poll::Skipped(region))
    }

    /// Moves the offset past an event that is about to be reported.
    #[inline]
    fn moved(&mut self, position: u64, last: Last) {
        (self.position, self.last) = (position, last);
        self.unreported.retrying = None;
    }

    /// Returns the result of a poll that has no event to report. If the path refers to another
    /// file, first determines the format of the log from the existing bytes, just as a reader of
    /// the whole file would. Returns `None` if this call has determined the format.
    fn waits(&mut self, reason: WaitReason, status: FileStatus) -> Result<Option<Reported>, Error> {
        if matches!(self.state, State::Identifying) && status.is_rotated && reason != WaitReason::Suspect {
            self.identify(true)?;
            if self.is_reading() {
                self.restart_in(self.format);
                return Ok(None);
            }
        }
        Ok(Some(self.not_yet(reason, status)))
    }

    /// Reopens the followed file and directory by name and continues there. The new ones may be
    /// copies. Returns an error if they don't belong to the followed log.
    #[cold]
    fn reopen(&mut self) -> Result<(), Error> {
        let position = self.position()?;
        let path = self.file.path.clone();
        if let Some(mark) = position.last_mark()
            && !position.compare(&path, &self.options.read_options())?
        {
            return Err(mark.changed(&path));
        }
        self.file.reopen()?;
        self.restart();
        Ok(())
    }

    /// Checks that the bytes before the position have not changed since the last wait.
    fn check_unchanged(&mut self) -> Result<(), Error> {
        let Some(mark) = self.last_wait else {
            return Ok(());
        };
        let now = mark.again(|at, to| self.file.read_at(at, to));
        if now.ok() != Some(mark) && !mark.is_damaged(&self.file.path, &self.options.read_options()) {
            return Err(mark.changed(&self.file.path));
        }
        self.last_wait = None;
        Ok(())
    }

    fn not_yet(&mut self, reason: WaitReason, status: FileStatus) -> Reported {
        let (offset, file_len) = (self.position, status.file_len);
        if offset > self.file.origin && self.last_wait.is_none_or(|mark| mark.range().end != offset) {
            let mark = Mark::before(self.file.origin, offset, |at, to| self.file.read_at(at, to));
            self.last_wait = mark.ok();
        }
        if status.is_rotated && reason != WaitReason::Suspect && !self.unreported.is_probing {
            // All blocks of the old file have been probed. They are probed again before the next
            // report.
            self.unreported.probes.has_probed_all = None;
            self.unreported.head_probes.has_probed_all = None;
            return Reported::Other(Poll::Rotated { offset, file_len });
        }
        Reported::Other(Poll::NotYet(NotYet {
            offset,
            file_len,
            reason,
        }))
    }

    fn truncated(&mut self, status: FileStatus) -> Reported {
        let last = Poll::Truncated {
            offset: self.position,
            file_len: status.file_len,
        };
        self.state = State::Ended(last);
        Reported::Other(last)
    }

    /// Moves the decoder back to the offset after the last reported event.
    fn restart(&mut self) {
        match self.last {
            Last::Nothing => self.decoder = self.options.decoder(self.format, self.file.origin),
            Last::TooLarge => self.decoder.seek_to_rest(self.position),
            Last::Event => self.decoder.seek(self.position),
        }
        if self.file.is_final {
            self.decoder.set_growth(Growth::Ended);
        }
        self.file.forget();
    }

    /// Moves the decoder back and forgets everything that is known about the unreported bytes.
    fn forget(&mut self) {
        self.restart();
        self.unreported = Unreported::default();
    }

    /// Restarts the decoder with `format`.
    pub(super) fn restart_in(&mut self, format: LogFormat) {
        self.format = format;
        self.decoder = self.options.decoder(format, self.file.origin);
        self.forget();
    }
}

/// Returns the part of `region` between `start` and `end`.
fn part(region: SkippedRegion, start: u64, end: u64) -> SkippedRegion {
    SkippedRegion {
        start,
        end,
        leveldb_len: region.leveldb_len.map(|_| end - start),
        ..region
    }
}
