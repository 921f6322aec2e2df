//! A file that is still being written: records as they arrive.
//!
//! `docs/format/following.md` has the rules and the reasons for them. The [`Decoder`] decides what
//! is a record and what is damage; this module decides only when its answer is final.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Record;
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::decode::{Decoder, End, Growth, OnCorruption, ReadOptions, RecordSpan, Refused, Step, Window};
use crate::dialect::{
    Compression, DETECT_LEN, Detection, Dialect, LogFormat, Named, Role, ends_in_first_fragment, identify,
    log_number_of,
};
use crate::error::{Error, unsupported};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header};
use crate::fragment::{Found, find};

/// Bytes requested per read when there is a backlog. See `source::WINDOW_LEN`.
const WINDOW_LEN: usize = 1 << 20;

/// The smallest read: a block, and the file header that may precede the first block.
const READ_LEN_MIN: usize = BLOCK_LEN + 16;

/// The most blocks after zeros that one poll probes, so that no poll takes long: those of 8 MiB.
const PROBES_MAX: usize = 256;

/// How to follow.
///
/// ```
/// use std::time::Duration;
/// use cordwood_log::{FollowOptions, OnCorruption};
/// let options = FollowOptions::default()
///     .with_start(50_034)
///     .with_on_corruption(OnCorruption::Skip)
///     .with_poll_interval(Duration::from_millis(5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Return only what begins at this file offset or after it: the [`Follower::offset`] of an
    /// earlier follower, to resume. Default: 0.
    pub start: u64,
    /// What to do with damage. Default: [`OnCorruption::Fail`]. [`OnCorruption::Salvage`] is here
    /// the same as
    /// [`OnCorruption::Skip`]: the rest of a block that is still being written cannot be judged.
    pub on_corruption: OnCorruption,
    /// How long [`Follower::wait`] sleeps between polls. Default: 50 ms.
    pub poll_interval: Duration,
    /// What looks damaged and has no valid record after it is read again this many times before it
    /// is reported. Default: 3.
    pub retry_polls: u32,
    /// And for at least this long. Default: 100 ms.
    pub retry_time: Duration,
    /// Refuse a record with more bytes than this. It bounds the memory of a follower. Default: 1
    /// GiB.
    pub record_len_max: u64,
    /// The dialect of the log. Default: `None`: it is detected as soon as there is a file header or
    /// a complete fragment, and is [`Dialect::LEVELDB`] until then.
    pub dialect: Option<Dialect>,
    /// The number of the log, as [`ReadOptions::log_number`]. Default: `None`.
    pub log_number: Option<u32>,
    /// How each record is compressed, as [`ReadOptions::compression`]. Default: `None`.
    pub compression: Option<Compression>,
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            start: 0,
            on_corruption: OnCorruption::Fail,
            poll_interval: Duration::from_millis(50),
            retry_polls: 3,
            retry_time: Duration::from_millis(100),
            record_len_max: ReadOptions::default().record_len_max,
            dialect: None,
            log_number: None,
            compression: None,
        }
    }
}

impl FollowOptions {
    /// Sets [`start`](Self::start), in bytes.
    #[must_use]
    pub fn with_start(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    /// Sets [`on_corruption`](Self::on_corruption).
    #[must_use]
    pub fn with_on_corruption(mut self, on_corruption: OnCorruption) -> Self {
        self.on_corruption = on_corruption;
        self
    }

    /// Sets [`poll_interval`](Self::poll_interval).
    #[must_use]
    pub fn with_poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval;
        self
    }

    /// Sets [`retry_polls`](Self::retry_polls) and [`retry_time`](Self::retry_time).
    #[must_use]
    pub fn with_retry(mut self, polls: u32, time: Duration) -> Self {
        self.retry_polls = polls;
        self.retry_time = time;
        self
    }

    /// Sets [`record_len_max`](Self::record_len_max), in bytes.
    #[must_use]
    pub fn with_record_len_max(mut self, record_len_max: u64) -> Self {
        self.record_len_max = record_len_max;
        self
    }

    /// Sets [`dialect`](Self::dialect).
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets [`log_number`](Self::log_number).
    #[must_use]
    pub fn with_log_number(mut self, log_number: u32) -> Self {
        self.log_number = Some(log_number);
        self
    }

    /// Sets [`compression`](Self::compression).
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Sets the dialect, the number and the compression.
    #[must_use]
    pub fn with_format(mut self, format: impl Into<LogFormat>) -> Self {
        let LogFormat {
            dialect,
            log_number,
            compression,
        } = format.into();
        (self.dialect, self.log_number, self.compression) = (Some(dialect), log_number, compression);
        self
    }

    fn named(&self) -> Named {
        Named {
            dialect: self.dialect,
            log_number: self.log_number,
            compression: self.compression,
        }
    }

    fn decoder(&self, format: LogFormat) -> Decoder {
        // The follower itself ends at damage, since it also decides when damage is reported.
        let options = ReadOptions::default()
            .with_format(format)
            .with_on_corruption(OnCorruption::Skip)
            .with_range(self.start..)
            .with_record_len_max(self.record_len_max);
        let mut decoder = Decoder::unchecked(&options);
        decoder.set_growth(Growth::WaitAtFaults);
        decoder
    }
}

/// Why there is no record yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// Everything in the file has been returned.
    Idle,
    /// A record has begun and is not complete: it is being written, or its writer was killed.
    Incomplete,
    /// Zeros: the space that a writer has preallocated, or a hole that is still to be filled.
    Zeros,
    /// The next bytes look damaged. They are read again before that is reported, since they may be
    /// a partly visible write.
    Suspect,
    /// The rest of a block whose damage has been reported. Reading continues at the next block.
    Damaged,
}

impl WaitReason {
    /// A stable name, such as `"incomplete"`: the same in Python.
    pub const fn as_str(self) -> &'static str {
        match self {
            WaitReason::Idle => "idle",
            WaitReason::Incomplete => "incomplete",
            WaitReason::Zeros => "zeros",
            WaitReason::Suspect => "suspect",
            WaitReason::Damaged => "damaged",
        }
    }
}

/// There is no record yet: where, and why. It distinguishes an idle writer from a stuck one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotYet {
    /// The file offset after the last reported event: [`Follower::offset`].
    pub offset: u64,
    /// The length of the file, in bytes.
    pub file_len: u64,
    /// What the follower is waiting for.
    pub reason: WaitReason,
}

impl NotYet {
    /// Bytes of the file that have not been reported yet. With [`WaitReason::Zeros`] they are
    /// zeros, and may stay zeros.
    pub const fn pending_len(&self) -> u64 {
        self.file_len.saturating_sub(self.offset)
    }
}

/// The results of a [`Follower`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Poll<'a> {
    /// A record.
    Record(Record<'a>),
    /// Bytes that are not returned and never will be: damage, if the severity is
    /// [`Severity::Corruption`].
    Skipped(SkippedRegion),
    /// Nothing to report yet. Poll again later.
    NotYet(NotYet),
    /// The file is shorter than the part already reported. The offset has lost its meaning, so
    /// every further result is the same.
    Truncated {
        /// The file offset after the last reported event.
        offset: u64,
        /// The length of the file, in bytes.
        file_len: u64,
    },
    /// The path names another file now, or none, and everything in the old one has been reported.
    /// If the old one grows, following continues with it.
    Rotated {
        /// The file offset after the last reported event, in the old file.
        offset: u64,
        /// The length of the old file, in bytes.
        file_len: u64,
    },
    /// At damage, under [`OnCorruption::Stop`], or after the trailer of a closed log. Every further
    /// result is the same.
    End(End),
}

/// The result of a poll, without borrows.
enum Told {
    Record(RecordSpan),
    Skipped(SkippedRegion),
    Other(Poll<'static>),
}

/// Why nothing is reported.
enum Failed {
    Io(io::Error),
    Refused(Refused),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Io(error)
    }
}

/// How to treat bytes that are not a valid fragment.
enum Verdict {
    Wait(WaitReason),
    /// They must be read again before they are reported.
    ReadAgain,
    /// They never will be one.
    Final,
}

/// The part of a damaged block that has not been written yet.
#[derive(Debug, Clone, Copy)]
struct Rest {
    block_end: u64,
    /// What to report once it has been. `None` before the start, where nothing is reported.
    region: Option<SkippedRegion>,
}

/// Bytes that look damaged, since when, and how often they were read again.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    offset: u64,
    since: Instant,
    polls: u32,
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
/// read of at most a block if an incomplete record or zeros follow the offset. All but the last
/// block of an incomplete record is held, at most [`record_len_max`](FollowOptions::record_len_max)
/// bytes, and is read a second time when the record is complete: in all, no byte of a record is
/// read more than twice, apart from one block per poll.
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
    options: FollowOptions,
    /// The format of the log, as far as it is known.
    format: LogFormat,
    /// Whether the contents have shown the format of the log.
    is_identified: bool,
    file: LiveFile,
    decoder: Decoder,
    /// The file offset after the last reported event.
    position: u64,
    /// Whether anything has been reported.
    has_told: bool,
    /// The beginning of the last block that is known to begin with a valid fragment. All before it
    /// has been written.
    passed: u64,
    /// The next block to probe for that.
    probe: u64,
    suspect: Option<Suspect>,
    /// The offset of bytes that are not a valid fragment and never will be.
    condemned: Option<u64>,
    rest: Option<Rest>,
    /// The final result, returned by every further call.
    last: Option<Poll<'static>>,
}

impl Follower {
    /// Opens a file to follow. It must exist; it may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] with the path: the error from the operating system, or
    /// [`io::ErrorKind::IsADirectory`], or [`io::ErrorKind::InvalidInput`] for anything but a
    /// regular file. [`Error::Unsupported`] if the given dialect does not have the given number or
    /// compression.
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
            has_told: false,
            format,
            is_identified: !named.is_open(),
            options,
            passed: 0,
            probe: 0,
            suspect: None,
            condemned: None,
            rest: None,
            last: None,
        })
    }

    /// The format of the log: its dialect, with the log number and the compression as far as they
    /// are known. [`Dialect::LEVELDB`] until the file has shown another one.
    pub fn format(&self) -> LogFormat {
        self.decoder.format()
    }

    /// The file offset after the last reported event. A follower with this as its
    /// [`start`](FollowOptions::start) resumes here.
    pub fn offset(&self) -> u64 {
        self.position
    }

    /// How long to wait before the next [`poll`](Self::poll):
    /// [`poll_interval`](FollowOptions::poll_interval), or less while what looks damaged is read
    /// again. For a loop of your own; [`wait`](Self::wait) does this.
    pub fn delay(&self) -> Duration {
        let retry = self.options.retry_time / self.options.retry_polls.max(1);
        match self.suspect {
            Some(_) => self.options.poll_interval.min(retry),
            None => self.options.poll_interval,
        }
    }

    /// The next event that the file holds now. It does not wait.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file cannot be read; a further call tries again.
    /// * [`Error::OverBudget`] if the next record of a compressed log decompresses to too much; a
    ///   further call returns the same error.
    /// * [`Error::Corruption`] in place of [`Poll::Skipped`] if that is damage, under
    ///   [`OnCorruption::Fail`]; a further call continues after it. If the rest of the damaged
    ///   block is written only later, that is a [`Poll::Skipped`] and no second error.
    pub fn poll(&mut self) -> Result<Poll<'_>, Error> {
        let told = self.told()?;
        Ok(self.answer(told))
    }

    /// The next event, as soon as there is one: waits as long as [`poll`](Self::poll) returns
    /// [`Poll::NotYet`], and returns that itself after `timeout`. `None` waits forever.
    ///
    /// # Errors
    ///
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Poll<'_>, Error> {
        // A deadline that the clock cannot represent means no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let told = self.told()?;
            if !matches!(told, Told::Other(Poll::NotYet(_))) {
                return Ok(self.answer(told));
            }
            let mut pause = self.delay();
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(self.answer(told));
                }
                pause = pause.min(left);
            }
            thread::sleep(pause);
        }
    }

    fn answer(&self, told: Told) -> Poll<'_> {
        match told {
            Told::Record(span) => Poll::Record(Record {
                offset: span.offset,
                end_offset: span.end_offset,
                data: self.decoder.data(self.file.window(), span),
                is_salvaged: span.is_salvaged,
            }),
            Told::Skipped(region) => Poll::Skipped(region),
            Told::Other(poll) => poll,
        }
    }

    fn told(&mut self) -> Result<Told, Error> {
        if !self.is_identified && !self.has_told && self.last.is_none() && self.rest.is_none() {
            self.identify()?;
        }
        match self.advance() {
            Ok(Told::Skipped(region))
                if self.options.on_corruption == OnCorruption::Fail
                    && region.reason.severity() == Severity::Corruption =>
            {
                Err(Error::Corruption {
                    path: Some(self.file.path.clone()),
                    region,
                })
            }
            Err(Failed::Refused(refused)) => Err(super::refusal(refused, Some(self.file.path.clone()))),
            Err(Failed::Io(source)) => Err(Error::Io {
                path: Some(self.file.path.clone()),
                source,
            }),
            Ok(told) => Ok(told),
        }
    }

    fn advance(&mut self) -> Result<Told, Failed> {
        if let Some(last) = self.last {
            return Ok(Told::Other(last));
        }
        if let Some(rest) = self.rest {
            return self.rest_of_block(rest);
        }
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
                        return Ok(self.truncated(look));
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
                match self.judge(at, look.file_len, is_confirmed)? {
                    Verdict::Wait(reason) => return Ok(self.not_yet(reason, look)),
                    Verdict::ReadAgain => {
                        is_confirmed = true;
                        self.file.read(at, look.file_len)?;
                        continue;
                    }
                    Verdict::Final => {
                        self.condemned = Some(at);
                        step = self.step_over();
                    }
                }
            }
            match step {
                Step::NeedMore | Step::End(_) => {
                    if self.rest.is_some() {
                        return self.advance();
                    }
                }
                _ if is_mixed => {
                    // Read again from the beginning of the record, all at once.
                    self.restart();
                    is_mixed = false;
                }
                Step::Record(span) => {
                    self.position = span.end_offset;
                    self.has_told = true;
                    self.suspect = None;
                    return Ok(Told::Record(span));
                }
                Step::Skipped(region) => return Ok(Told::Skipped(self.skip(region))),
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

    /// Checks whether the contents show the format of the log yet.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] if a signature shows that it is not a log. A file without one may be a
    /// log whose first record is not complete yet. [`Error::Unsupported`] if its dialect does not
    /// have the number or compression that the options give.
    fn identify(&mut self) -> Result<(), Error> {
        let mut head = vec![0; DETECT_LEN];
        let len = self.file.read_at(0, &mut head).map_err(|source| Error::Io {
            path: Some(self.file.path.clone()),
            source,
        })?;
        if ends_in_first_fragment(&head[..len]) {
            return Ok(());
        }
        // Only a complete fragment decides, and for that the block need not be complete.
        let is_last = self.options.dialect.is_none();
        match identify(self.options.named(), Some(&self.file.path), &head[..len], 0, is_last) {
            Detection::Log(format) => {
                unsupported(self.options.named().check_in(format.dialect), Some(&self.file.path))?;
                self.is_identified = true;
                if self.format != format {
                    self.format = format;
                    self.restart();
                }
            }
            Detection::Foreign(foreign) if foreign.has_signature() => {
                return Err(Error::Foreign {
                    path: Some(self.file.path.clone()),
                    foreign,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// How to treat the window, which begins at `at` with bytes that are not a valid fragment. The
    /// file had `file_len` bytes when it was read.
    fn judge(&mut self, at: u64, file_len: u64, is_confirmed: bool) -> io::Result<Verdict> {
        if self.condemned == Some(at) {
            return Ok(Verdict::Final);
        }
        let format = self.decoder.format();
        let left = format.dialect.block_left(at);
        let block_end = at + left as u64;
        let bytes = self.file.window().at(at, left);
        if find(&format, bytes, left, false, true) == Found::Stale {
            // This log will be written over the older one.
            return Ok(Verdict::Wait(WaitReason::Idle));
        }
        if self.is_passed(block_end, file_len)? {
            // Of a write concurrent with the read, the end may be visible and the beginning not.
            return Ok(if is_confirmed {
                Verdict::Final
            } else {
                Verdict::ReadAgain
            });
        }
        let bytes = self.file.window().at(at, left);
        let mut reason = reason_to_wait(&format.dialect, bytes, left, self.decoder.has_parts());
        let is_undetected = self.options.dialect.is_none() && !self.is_identified && !self.has_told;
        let is_incomplete_in =
            |dialect: &Dialect| reason_to_wait(dialect, bytes, left, false) == WaitReason::Incomplete;
        let is_begun =
            ends_in_first_fragment(bytes) || [Dialect::ROCKSDB, Dialect::PEBBLE].iter().any(is_incomplete_in);
        if is_undetected && is_begun {
            // The first fragment determines the dialect. Its header may be a longer one that is
            // only partly written.
            reason = WaitReason::Incomplete;
        }
        if reason == WaitReason::Suspect && format.log_number.is_some() {
            // It may be the middle of an older log. Only fragments of this one after it show that
            // it is not.
            reason = WaitReason::Idle;
        }
        if reason != WaitReason::Suspect {
            self.suspect = None;
            return Ok(Verdict::Wait(reason));
        }
        let suspect = match self.suspect {
            Some(suspect) if suspect.offset == at => Suspect {
                polls: suspect.polls.saturating_add(1),
                ..suspect
            },
            _ => Suspect {
                offset: at,
                since: Instant::now(),
                polls: 0,
            },
        };
        self.suspect = Some(suspect);
        let is_spent = suspect.polls >= self.options.retry_polls && suspect.since.elapsed() >= self.options.retry_time;
        Ok(if is_spent {
            Verdict::Final
        } else {
            Verdict::Wait(reason)
        })
    }

    /// Whether a block from `block_end` on begins with a valid fragment.
    fn is_passed(&mut self, block_end: u64, file_len: u64) -> io::Result<bool> {
        let mut block = vec![0; BLOCK_LEN];
        // The next block is probed at each poll: there the writer continues. A hole of several
        // blocks is left by a crash, and what follows it has been there since, so each of the other
        // blocks is probed only once.
        let mut probe = block_end;
        for _ in 0..PROBES_MAX {
            if self.passed >= block_end {
                return Ok(true);
            }
            if probe >= file_len {
                break;
            }
            // Most are zeros, and reading a gigabyte of them would fill the page cache.
            let mut len = self.file.read_at(probe, &mut block[..HEADER_LEN])?;
            let format = self.decoder.format();
            if matches!(format.dialect.meaning(block[HEADER_LEN - 1]).role, Role::Fragment(_)) {
                len = self.file.read_at(probe, &mut block)?;
            }
            // A log with a number has fragments of one form: those of another one are left over
            // from an older log.
            let is_own = |form| format.log_number.is_none() || self.decoder.form().is_none_or(|own| own == form);
            if let Found::Fragment { form, .. } = find(&format, &block[..len], BLOCK_LEN, false, true)
                && is_own(form)
            {
                self.passed = probe;
            }
            self.probe = self.probe.max(probe + BLOCK_LEN as u64);
            probe = self.probe;
        }
        Ok(self.passed >= block_end)
    }

    /// Lets the decoder skip what it waits at, at the beginning of the window: the rest of the
    /// block, or a fragment of unknown type.
    fn step_over(&mut self) -> Step {
        let at = self.decoder.offset();
        // The block need not be complete. Its rest will be skipped whatever is written there, as
        // every reader of the whole file does; but it can be reported only once it is written.
        // Zeros in its place do not affect the bytes before them.
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

        let (end, block_end) = (at + there as u64, self.decoder.offset());
        if block_end <= end {
            return step;
        }
        let mut rest = Rest {
            block_end,
            region: None,
        };
        let Step::Skipped(region) = step else {
            self.rest = Some(rest);
            return step;
        };
        let part = |begin: u64, end: u64| SkippedRegion {
            begin,
            end,
            leveldb_len: region.leveldb_len.map(|_| end - begin),
            ..region
        };
        rest.region = Some(part(end, block_end));
        self.rest = Some(rest);
        Step::Skipped(part(region.begin, end))
    }

    /// Waits for the end of a damaged block, to report it and continue after it.
    fn rest_of_block(&mut self, rest: Rest) -> Result<Told, Failed> {
        let look = self.file.look()?;
        if look.file_len < self.position {
            return Ok(self.truncated(look));
        }
        if look.file_len < rest.block_end {
            return Ok(self.not_yet(WaitReason::Damaged, look));
        }
        self.rest = None;
        let Some(region) = rest.region else {
            return self.advance();
        };
        // The damage itself has been reported, perhaps as an error. The rest is not a second one.
        let region = self.skip(region);
        Ok(Told::Other(Poll::Skipped(region)))
    }

    fn skip(&mut self, region: SkippedRegion) -> SkippedRegion {
        self.position = region.end;
        self.has_told = true;
        self.suspect = None;
        let is_damage = region.reason.severity() == Severity::Corruption;
        if is_damage && self.options.on_corruption == OnCorruption::Stop {
            let end = End::Stopped { offset: region.begin };
            self.last = Some(Poll::End(end));
        }
        if region.reason == Reason::EndTrailer {
            let end = End::Clean { offset: region.end };
            self.last = Some(Poll::End(end));
        }
        region
    }

    fn not_yet(&self, reason: WaitReason, look: Look) -> Told {
        let (offset, file_len) = (self.position, look.file_len);
        Told::Other(if look.is_rotated && reason != WaitReason::Suspect {
            Poll::Rotated { offset, file_len }
        } else {
            Poll::NotYet(NotYet {
                offset,
                file_len,
                reason,
            })
        })
    }

    fn truncated(&mut self, look: Look) -> Told {
        let last = Poll::Truncated {
            offset: self.position,
            file_len: look.file_len,
        };
        self.last = Some(last);
        Told::Other(last)
    }

    /// Moves the decoder back to the offset after the last reported event.
    fn restart(&mut self) {
        if self.has_told {
            self.decoder.seek(self.position);
        } else {
            self.decoder = self.options.decoder(self.format);
        }
        self.rest = None;
        self.file.len = 0;
    }

    /// Moves back, and discards what was learned about the bytes there.
    fn forget(&mut self) {
        self.restart();
        (self.passed, self.probe) = (0, 0);
        self.suspect = None;
        self.condemned = None;
    }
}

/// The state of the file on disk.
#[derive(Debug, Clone, Copy)]
struct Look {
    file_len: u64,
    /// The path names another file, or none.
    is_rotated: bool,
}

/// Why to wait at `bytes`, the part written so far of the last `left` bytes of a block, which is
/// not a valid fragment.
///
/// Zeros at the end of `bytes` may be unwritten space, as in a preallocated file. Writes become
/// visible in order, so a fragment is complete if its last byte, or any byte after it, is not zero.
fn reason_to_wait(dialect: &Dialect, bytes: &[u8], left: usize, has_parts: bool) -> WaitReason {
    let written_len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match bytes.split_first_chunk().map(|(header, _)| Header::decode(header)) {
        _ if has_parts && written_len == 0 => WaitReason::Incomplete,
        _ if left < HEADER_LEN || bytes.is_empty() => WaitReason::Idle,
        _ if written_len == 0 => WaitReason::Zeros,
        // A type is not zero, so the last byte of a header shows that it is complete.
        _ if written_len < HEADER_LEN => WaitReason::Incomplete,
        Some(Header { kind: 0, len: 0, .. }) => WaitReason::Zeros,
        Some(header) => {
            let len = dialect.meaning(header.kind).form.header_len() + usize::from(header.len);
            if len > left || len <= written_len {
                WaitReason::Suspect
            } else {
                WaitReason::Incomplete
            }
        }
        None => WaitReason::Incomplete,
    }
}

/// A growing file, and what has been read of it.
#[derive(Debug)]
struct LiveFile {
    path: PathBuf,
    /// The absolute path, so that a change of the working directory does not matter.
    absolute: PathBuf,
    file: File,
    id: FileId,
    /// The bytes from the file offset `offset` on; the first `len` are those of the file.
    buffer: Vec<u8>,
    offset: u64,
    len: usize,
    /// Bytes that the last read requested.
    read_len: usize,
}

impl LiveFile {
    fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe waits for its writer, so the path is checked first.
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "only a regular file can be followed",
            ));
        }
        let file = File::open(path)?;
        Ok(LiveFile {
            absolute: std::path::absolute(path)?,
            path: path.to_owned(),
            id: file_id(&file.metadata()?),
            file,
            buffer: Vec::new(),
            offset: 0,
            len: 0,
            read_len: 0,
        })
    }

    fn look(&self) -> io::Result<Look> {
        let (metadata, is_rotated) = match fs::metadata(&self.absolute) {
            Ok(metadata) if file_id(&metadata) == self.id => (metadata, false),
            Ok(_) => (self.file.metadata()?, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (self.file.metadata()?, true),
            Err(error) => return Err(error),
        };
        Ok(Look {
            file_len: metadata.len(),
            is_rotated,
        })
    }

    fn window(&self) -> Window<'_> {
        Window {
            offset: self.offset,
            bytes: &self.buffer[..self.len],
            is_last: false,
        }
    }

    /// Reads the file from `offset` on, as far as it goes, at least to the end of the block. What was read before
    /// is discarded: where the decoder found no valid fragment, it may be stale.
    fn read(&mut self, offset: u64, file_len: u64) -> io::Result<()> {
        // Reads are long only while all of their bytes are used: after the end of what is written
        // there may be a gigabyte of zeros.
        let used = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let was_of_use = self.len == self.read_len && used.saturating_add(BLOCK_LEN) > self.len;
        let wanted = if was_of_use { self.read_len * 2 } else { READ_LEN_MIN };
        self.read_len = wanted.clamp(READ_LEN_MIN, WINDOW_LEN);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(self.read_len), 0);
        (self.offset, self.len) = (offset, 0);
        let filled = if offset < file_len {
            self.read_at(offset, &mut buffer[..self.read_len])
        } else {
            Ok(0)
        };
        self.buffer = buffer;
        self.len = filled?;
        Ok(())
    }

    /// Fills `buffer` from the file offset `offset` on, as far as the file goes.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// The last `left` bytes of the block, from `at` on, where the last read began, with zeros for
    /// what is not written yet; and how many bytes are.
    fn whole_block(&mut self, at: u64, left: usize) -> (Window<'_>, usize) {
        debug_assert_eq!(at, self.offset);
        let there = self.len.min(left);
        self.buffer[there..left].fill(0);
        let window = Window {
            offset: at,
            bytes: &self.buffer[..left],
            is_last: false,
        };
        (window, there)
    }
}

/// Identifies the file even if another one takes its name. No other file gets the number while this
/// one is open.
#[cfg(unix)]
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// The standard library provides no file number here; the creation time comes closest.
#[cfg(not(unix))]
type FileId = Option<std::time::SystemTime>;

#[cfg(not(unix))]
fn file_id(metadata: &Metadata) -> FileId {
    metadata.created().ok()
}
