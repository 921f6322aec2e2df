//! The loop around the decoder.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::judge::{AtFault, Judged};
use super::live_file::{LiveFile, Look};
use super::options::FollowOptions;
use super::poll::{NotYet, Poll, WaitReason};
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::decode::{Decoder, End, Growth, OnCorruption, RecordSpan, Refused, Step};
use crate::detect::{
    DETECT_LEN, Detection, begins_undamaged, ends_in_first_fragment, identify, log_number_of, shown_dialect,
};
use crate::dialect::{Dialect, LogFormat};
use crate::error::{Error, refusal, unsupported};
use crate::reader::Record;

/// The result of a poll, without borrows.
enum Reported {
    Record(RecordSpan),
    Skipped(SkippedRegion),
    Other(Poll<'static>),
}

/// Why nothing is reported.
enum Failed {
    Io(io::Error),
    Refused(Refused),
    Unidentified(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Io(error)
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// Records, and what is between them.
    Records,
    /// The rest of a damaged block that has not been written completely.
    RestOfBlock(Rest),
    /// The final result, returned by every further call.
    Ended(Poll<'static>),
}

/// The part of a damaged block that has not been written yet.
#[derive(Debug, Clone, Copy)]
struct Rest {
    block_end: u64,
    /// What to report once it has been written. `None` before the start, where nothing is reported.
    region: Option<SkippedRegion>,
}

/// Follows a file that another process or thread appends to.
///
/// [`poll`](Self::poll) returns at once; [`wait`](Self::wait) waits. Neither writes to the file.
/// The file is polled at intervals, without operating system notifications.
///
/// * A record is returned when it is complete. The follower waits at an incomplete one, and at
///   zeros: the space that a writer preallocates.
/// * Damage is reported when a later block begins with a valid fragment, since writes become
///   visible in order; or when it is still there after [`retry_polls`](FollowOptions::retry_polls)
///   and [`retry_time`](FollowOptions::retry_time).
/// * [`offset`](Self::offset) advances only past what has been reported. It can be stored and
///   passed as [`start`](FollowOptions::start) later, to resume.
///
/// Once the dialect is known, a poll that finds nothing new costs one `stat` of the path, and one
/// read of at most a block if an incomplete record or zeros follow the offset. If there are blocks
/// after that one, as in a preallocated file, the headers at the beginning of up to 256 of them are
/// also read; once the path names another file, all of them in several polls, before
/// [`Poll::Rotated`]. All but the last block of an incomplete record is held in memory, at most
/// [`record_len_max`](FollowOptions::record_len_max) bytes, and is read a second time when the
/// record is complete: in all, apart from one block per poll, no byte of a record is read more than
/// twice.
///
/// ```
/// use cordwood_log::{FollowOptions, Follower, Writer};
/// use cordwood_log::follow::{NotYet, Poll};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("live.log");
/// let mut writer = Writer::new(std::fs::File::create(&path)?);
/// let mut follower = Follower::open(&path, FollowOptions::default())?;
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
    /// Includes what is known of the dialect so far.
    pub(super) options: FollowOptions,
    /// The format of the log, as far as it is known.
    pub(super) format: LogFormat,
    /// Whether the contents have shown the format of the log.
    pub(super) is_identified: bool,
    pub(super) file: LiveFile,
    pub(super) decoder: Decoder,
    /// The file offset after the last reported event.
    pub(super) position: u64,
    /// Whether anything has been reported.
    pub(super) has_reported: bool,
    /// Whether the last reported event is the beginning of a record that is too large.
    is_in_too_large: bool,
    pub(super) judged: Judged,
    mode: Mode,
}

impl Follower {
    /// Opens a file to follow. It must exist; it may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the path: the error from the operating system, or
    /// [`io::ErrorKind::IsADirectory`], or [`io::ErrorKind::InvalidInput`] for anything but a
    /// regular file. [`Error::Unsupported`] if logs in the given dialect cannot have a number,
    /// or the compression, that was given.
    pub fn open(path: impl AsRef<Path>, options: FollowOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let named = options.named();
        unsupported(named.check(), Some(path))?;
        let mut format = LogFormat::new(Dialect::LEVELDB);
        if let Some(dialect) = named.dialect {
            let number = named.log_number.or_else(|| log_number_of(path));
            format = named.format(dialect).numbered(number);
        }
        let file = LiveFile::open(path).map_err(|source| Error::Io {
            path: Some(path.to_owned()),
            source,
        })?;
        Ok(Follower {
            file,
            decoder: options.decoder(format),
            position: options.start,
            has_reported: false,
            is_in_too_large: false,
            format,
            is_identified: !named.may_be_completed(),
            options,
            judged: Judged::default(),
            mode: Mode::Records,
        })
    }

    /// The format of the log: its dialect, with the log number and the compression if they are
    /// known. The dialect is [`Dialect::LEVELDB`] until the file shows another one.
    pub fn format(&self) -> LogFormat {
        self.decoder.format()
    }

    /// The file offset after the last reported event. A follower with this as its
    /// [`start`](FollowOptions::start) resumes here. It returns the same records, but after damage
    /// it does not report the remaining fragments of the damaged record, which this one reports as
    /// [`Reason::MissingStart`].
    pub fn offset(&self) -> u64 {
        self.position
    }

    /// Whether the last poll left a part of a file that has been replaced to the next one, and so did
    /// not report the rotation yet.
    #[doc(hidden)]
    pub fn is_probing(&self) -> bool {
        self.judged.is_probing
    }

    /// How long to wait before the next [`poll`](Self::poll):
    /// [`poll_interval`](FollowOptions::poll_interval), or less while bytes that look damaged are
    /// being read again; nothing while the rest of a file that has been replaced is being searched.
    /// For a loop of your own; [`wait`](Self::wait) does this.
    pub fn delay(&self) -> Duration {
        let retry = self.options.retry_time / self.options.retry_polls.max(1);
        match self.judged.suspect {
            _ if self.judged.is_probing => Duration::ZERO,
            Some(_) => self.options.poll_interval.min(retry),
            None => self.options.poll_interval,
        }
    }

    /// The next event that is already in the file. Does not wait.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file cannot be read; a further call tries again.
    /// * [`Error::OverBudget`] if the next record of a compressed log decompresses to too many bytes; a
    ///   further call returns the same error.
    /// * [`Error::Corruption`] in place of [`Poll::Skipped`] if that is damage, under
    ///   [`OnCorruption::Fail`]; a further call continues after it. If the rest of the damaged
    ///   block is written only later, it is a [`Poll::Skipped`], not a second error.
    pub fn poll(&mut self) -> Result<Poll<'_>, Error> {
        let reported = self.report()?;
        Ok(self.answer(reported))
    }

    /// The next event, as soon as there is one: waits while [`poll`](Self::poll) returns
    /// [`Poll::NotYet`], and returns that after `timeout`. `None` waits forever.
    ///
    /// # Errors
    ///
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Poll<'_>, Error> {
        // A deadline that the clock cannot represent means no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let reported = self.report()?;
            if !matches!(reported, Reported::Other(Poll::NotYet(_))) {
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
            Reported::Record(span) => Poll::Record(Record {
                offset: span.offset,
                end_offset: span.end_offset,
                data: self.decoder.data(self.file.window(), span),
                is_salvaged: span.is_salvaged,
            }),
            Reported::Skipped(region) => Poll::Skipped(region),
            Reported::Other(poll) => poll,
        }
    }

    fn report(&mut self) -> Result<Reported, Error> {
        self.judged.is_probing = false;
        if !self.is_identified && matches!(self.mode, Mode::Records) {
            self.identify(false)?;
        }
        match self.advance() {
            Ok(Reported::Skipped(region))
                if self.options.on_corruption == OnCorruption::Fail
                    && region.reason.severity() == Severity::Corruption =>
            {
                Err(Error::Corruption {
                    path: Some(self.file.path.clone()),
                    region,
                })
            }
            Err(Failed::Refused(refused)) => Err(refusal(refused, Some(self.file.path.clone()))),
            Err(Failed::Unidentified(error)) => Err(error),
            Err(Failed::Io(source)) => Err(self.io(source)),
            Ok(reported) => Ok(reported),
        }
    }

    fn advance(&mut self) -> Result<Reported, Failed> {
        loop {
            let reported = match self.mode {
                Mode::Records => self.next_event()?,
                Mode::RestOfBlock(rest) => self.rest_of_block(rest)?,
                Mode::Ended(last) => Some(Reported::Other(last)),
            };
            if let Some(reported) = reported {
                return Ok(reported);
            }
        }
    }

    /// What the decoder finds next. `None` if the mode or the format of the log has changed.
    fn next_event(&mut self) -> Result<Option<Reported>, Failed> {
        let mut place = None;
        let mut is_mixed = false;
        let mut is_confirmed = false;
        loop {
            let mut step = self.decoder.step(self.file.window());
            if step == Step::NeedMore {
                if let Some(refused) = self.decoder.refused() {
                    return Err(Failed::Refused(refused));
                }
                let offset = self.decoder.offset();
                let Some((at, look)) = place.filter(|&(at, _)| at == offset) else {
                    // Fragments read by an earlier call and bytes read now may not belong together:
                    // a writer that failed in the middle of a record may have truncated the file
                    // and written another record.
                    is_mixed |= place.is_none() && self.decoder.has_parts();
                    let look = self.file.look()?;
                    if look.file_len < self.position {
                        return Ok(Some(self.truncated(look)));
                    }
                    if look.file_len < offset {
                        // Only what had not been reported is gone.
                        self.forget();
                        (place, is_mixed) = (None, false);
                        continue;
                    }
                    self.file.read(offset, look.file_len)?;
                    (place, is_confirmed) = (Some((offset, look)), false);
                    continue;
                };
                // Everything from `at` on has been read since this call began.
                match self.judge(at, look, is_confirmed)? {
                    AtFault::Wait(reason) => return self.waits(reason, look),
                    AtFault::ReadAgain => {
                        is_confirmed = true;
                        self.file.read(at, look.file_len)?;
                        continue;
                    }
                    AtFault::Final => {
                        self.judged.condemned = Some(at);
                        step = self.step_over();
                    }
                }
            }
            match step {
                Step::NeedMore | Step::End(_) => {
                    if matches!(self.mode, Mode::RestOfBlock(_)) {
                        return Ok(None);
                    }
                }
                _ if is_mixed => {
                    // Read again from the beginning of the record, all at once.
                    self.restart();
                    is_mixed = false;
                }
                _ if !self.is_identified && self.position > 0 => {
                    // The log begins with damage, which has been reported or precedes the start.
                    // What follows it depends on which log this is.
                    self.restart();
                    let look = self.file.look()?;
                    return self.waits(WaitReason::Damaged, look);
                }
                Step::Record(span) => {
                    self.position = span.end_offset;
                    self.has_reported = true;
                    self.is_in_too_large = false;
                    self.judged.suspect = None;
                    return Ok(Some(Reported::Record(span)));
                }
                Step::Skipped(region) => return Ok(Some(Reported::Skipped(self.skip(region)))),
            }
        }
    }

    /// Puts back the record that the last poll returned, which begins at the file offset
    /// `record_offset`: the next poll returns it again. For a caller that cannot allocate room for
    /// its bytes.
    #[doc(hidden)]
    pub fn put_back(&mut self, record_offset: u64) {
        self.position = record_offset;
        self.restart();
    }

    /// Checks whether the contents show the format of the log yet. The beginning of an undamaged
    /// log shows it; otherwise it is decided as for a reader of the whole file, once everything
    /// that decides it is written, or, if `is_last`, by what is there.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] if a signature shows that it is not a log. A file without one may be a
    /// log whose first record is not complete yet. [`Error::Unsupported`] if logs in its dialect do
    /// not have the number or compression given in the options.
    fn identify(&mut self, is_last: bool) -> Result<(), Error> {
        // A nonzero byte shows that everything before it is written.
        let is_passed = self.is_head_written().map_err(|source| self.io(source))?;
        let mut head = vec![0; DETECT_LEN];
        let len = self.file.read_at(0, &mut head).map_err(|source| self.io(source))?;
        let is_written = is_passed || head[DETECT_LEN - 1] != 0;
        let is_all = is_last || is_written;
        head.truncate(len.min(if is_all { DETECT_LEN } else { DETECT_LEN - 1 }));
        if !is_written && ends_in_first_fragment(&head) {
            return Ok(());
        }
        let named = self.options.named();
        let detect = |is_last| identify(named, Some(&self.file.path), &head, 0, is_last);
        let is_undetected = named.dialect.is_none();
        // Only a complete fragment decides, and the block need not be complete for that.
        let mut detected = detect(is_last || is_undetected && begins_undamaged(&head));
        if detected == Detection::NeedMore && is_undetected && self.position == 0 {
            detected = match detect(true) {
                foreign @ Detection::Foreign(_) => foreign,
                _ => Detection::NeedMore,
            };
        }
        match detected {
            Detection::Log(format) => {
                self.set_format(LogFormat {
                    dialect: without_grid(format.dialect, is_undetected),
                    ..format
                })?;
                self.is_identified = true;
            }
            Detection::Foreign(foreign) if foreign.has_signature() => {
                return Err(Error::Foreign {
                    path: Some(self.file.path.clone()),
                    foreign,
                });
            }
            _ if is_written && is_undetected => {
                // As for a reader.
                self.set_format(Dialect::LEVELDB.into())?;
                self.is_identified = true;
            }
            _ if is_undetected && self.position == 0 => {
                if let Some(dialect) = shown_dialect(&head) {
                    let number = named.log_number.or_else(|| log_number_of(&self.file.path));
                    self.set_format(named.format(dialect).numbered(number))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io {
            path: Some(self.file.path.clone()),
            source,
        }
    }

    /// Reads in this format, from the offset after the last reported event on.
    fn set_format(&mut self, format: LogFormat) -> Result<(), Error> {
        unsupported(self.options.named().check_in(format.dialect), Some(&self.file.path))?;
        if self.format != format {
            self.restart_in(format);
        }
        Ok(())
    }

    /// Moves back to the offset after the last reported event, to read in this format.
    fn restart_in(&mut self, format: LogFormat) {
        self.format = format;
        self.decoder = self.options.decoder(format);
        self.forget();
    }

    /// Lets the decoder skip what it is waiting at, which begins the window: the rest of the block,
    /// or a fragment of unknown type.
    fn step_over(&mut self) -> Step {
        let at = self.decoder.offset();
        // The block need not be complete. Its rest is skipped whatever is written there, as by
        // every reader of the whole file, but it can be reported only once it is written. Zeros in
        // its place do not affect the bytes before them.
        let dialect = self.decoder.dialect();
        // A file header before the first block is judged together with it.
        let left = if at == 0 {
            dialect.first_block_end()
        } else {
            dialect.block_left(at)
        };
        let (window, there) = self.file.whole_block(at, left);
        self.decoder.set_growth(Growth::SkipFaults);
        let step = self.decoder.step(window);
        self.decoder.set_growth(Growth::WaitAtFaults);

        // What is passed may precede the start, and not be reported. What was found after it may
        // extend into the zeros that stand for bytes still to be written: it is read again, from
        // the file.
        let after = match step {
            Step::Record(span) => Some(span.offset),
            Step::Skipped(region) => Some(region.begin).filter(|&begin| begin > at),
            Step::NeedMore | Step::End(_) => None,
        };
        if let Some(offset) = after {
            self.decoder.seek(offset);
            return Step::NeedMore;
        }
        let (end, block_end) = (at + there as u64, self.decoder.offset());
        if block_end <= end {
            return step;
        }
        let mut rest = Rest {
            block_end,
            region: None,
        };
        let Step::Skipped(region) = step else {
            self.mode = Mode::RestOfBlock(rest);
            return step;
        };
        rest.region = Some(part(region, end, block_end));
        self.mode = Mode::RestOfBlock(rest);
        Step::Skipped(part(region, region.begin, end))
    }

    /// Waits for the end of a damaged block, to report it and continue after it. `None` if there is
    /// nothing to report.
    fn rest_of_block(&mut self, rest: Rest) -> Result<Option<Reported>, Failed> {
        let look = self.file.look()?;
        if look.file_len < self.position {
            return Ok(Some(self.truncated(look)));
        }
        if look.file_len < rest.block_end {
            return Ok(Some(self.not_yet(WaitReason::Damaged, look)));
        }
        self.mode = Mode::Records;
        let Some(region) = rest.region else {
            return Ok(None);
        };
        // The damage itself has been reported, perhaps as an error. The rest is not a second error.
        let region = self.skip(region);
        Ok(Some(Reported::Other(Poll::Skipped(region))))
    }

    fn skip(&mut self, region: SkippedRegion) -> SkippedRegion {
        self.position = region.end;
        self.has_reported = true;
        self.is_in_too_large = self.decoder.is_in_too_large();
        self.judged.suspect = None;
        let is_damage = region.reason.severity() == Severity::Corruption;
        if is_damage && self.options.on_corruption == OnCorruption::Stop {
            let end = End::Stopped { offset: region.begin };
            self.mode = Mode::Ended(Poll::End(end));
        }
        if region.reason == Reason::EndTrailer {
            let end = End::Clean { offset: region.end };
            self.mode = Mode::Ended(Poll::End(end));
        }
        region
    }

    /// The answer while nothing can be reported. `None` if the path names another file and the
    /// format of the log has been decided for that reason: by what is there, as by a reader of the
    /// whole file.
    fn waits(&mut self, reason: WaitReason, look: Look) -> Result<Option<Reported>, Failed> {
        if !self.is_identified && look.is_rotated && reason != WaitReason::Suspect {
            self.identify(true).map_err(Failed::Unidentified)?;
            if self.is_identified {
                self.restart_in(self.format);
                return Ok(None);
            }
        }
        Ok(Some(self.not_yet(reason, look)))
    }

    fn not_yet(&mut self, reason: WaitReason, look: Look) -> Reported {
        let (offset, file_len) = (self.position, look.file_len);
        let is_rotated = look.is_rotated && reason != WaitReason::Suspect && self.may_report_rotation();
        Reported::Other(if is_rotated {
            Poll::Rotated { offset, file_len }
        } else {
            Poll::NotYet(NotYet {
                offset,
                file_len,
                reason,
            })
        })
    }

    fn truncated(&mut self, look: Look) -> Reported {
        let last = Poll::Truncated {
            offset: self.position,
            file_len: look.file_len,
        };
        self.mode = Mode::Ended(last);
        Reported::Other(last)
    }

    /// Moves the decoder back to the offset after the last reported event.
    fn restart(&mut self) {
        if self.is_in_too_large {
            self.decoder.seek_to_rest(self.position);
        } else if self.has_reported {
            self.decoder.seek(self.position);
        } else {
            self.decoder = self.options.decoder(self.format);
        }
        if matches!(self.mode, Mode::RestOfBlock(_)) {
            self.mode = Mode::Records;
        }
        self.file.len = 0;
    }

    /// Moves back, and discards what was learned about the bytes there.
    fn forget(&mut self) {
        self.restart();
        self.judged = Judged::default();
    }
}

/// A part of what is skipped for one reason.
fn part(region: SkippedRegion, begin: u64, end: u64) -> SkippedRegion {
    SkippedRegion {
        begin,
        end,
        leveldb_len: region.leveldb_len.map(|_| end - begin),
        ..region
    }
}

/// The dialect in which to follow a log of the `detected` one. Where the blocks of a `wandb_old` log
/// begin shows only in its second block, so it is followed as what it is only if that is named.
fn without_grid(detected: Dialect, is_undetected: bool) -> Dialect {
    if is_undetected && detected == Dialect::WANDB_OLD {
        Dialect::WANDB
    } else {
        detected
    }
}
