//! The segmented log itself, which several threads may share.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, TryLockError};

use super::directory::{Directory, DiskDirectory};
use super::room::Room;
use crate::damage::SkippedRegion;
use crate::detect::{DETECT_LEN, Detection, detect, starts_undamaged};
use crate::dialect::{Dialect, LogFormat, Unsupported};
use crate::error::{Error, ErrorKind, Hint, unsupported};
use crate::process::Process;
use crate::segments::{OFFSET_MAX, Segment, breaks, name_of};
use crate::writer::log_file::{LogFile, LogFileOptions, LogStatus, Mutex, MutexGuard, check_appended_to};
use crate::writer::storage::{Storage, read_at_most};

/// The maximum number of expired segments to remove when a new segment starts. Appends wait for
/// these removals, each of which requires a sync of the directory.
const EXPIRED_MAX: usize = 64;

/// A segmented log: a directory of log files, each named after the log offset of its first byte.
///
/// A segmented log is like a [`LogFile`] without a length limit. Each of its files is a segment. An
/// append that would make the last segment longer than [`segment_len`](LogFileOptions::segment_len)
/// starts a new segment. [`prune_before`](SegmentedLog::prune_before) removes the oldest segments.
/// The options [`retention_bytes`](LogFileOptions::retention_bytes) and
/// [`retention_time`](LogFileOptions::retention_time) remove old segments each time a segment
/// starts. Offsets are log offsets: they increase across segments and never change. Each segment is
/// also an ordinary log file, in the [`LEVELDB`](Dialect::LEVELDB) or [`PACKED`](Dialect::PACKED)
/// dialect.
///
/// * [`open`](SegmentedLog::open) reads only the last segment. No other segment can have a torn
///   tail, because all records in a segment are on disk before the next one is created.
/// * Until the log is closed or dropped, it is locked against a second writer, whether in this
///   process or another. Threads can share it by reference, and they share syncs as with a
///   [`LogFile`]. A log belongs to the process that opened it.
/// * Crashes and failures have the same effects [as for a `LogFile`](LogFile#failures). If the next
///   segment cannot be created, the append that needs it fails. The log stays usable, and the next
///   append that needs a segment tries again.
///
/// ```
/// use cordwood_log::{LogFileOptions, OnTornTail, SegmentedLog};
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("orders");
/// let options = LogFileOptions::default()
///     .with_segment_len(64 << 20)
///     .with_on_torn_tail(OnTornTail::Truncate);
/// let log = SegmentedLog::open(&directory, options)?;
/// assert_eq!(log.append_sync(b"one")?, 0);
/// assert_eq!(log.rotate()?, 10); // otherwise, after 64 MiB
/// assert_eq!(log.append_sync(b"two")?, 10);
///
/// assert_eq!(log.prune_before(10)?, 10);
/// assert!(!directory.join("00000000000000000000.log").exists());
/// log.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentedLog {
    /// The options for each segment. They include the format of the log, but no checkpoint and no
    /// origin.
    options: LogFileOptions,
    path: Option<PathBuf>,
    discarded_tail: Option<SkippedRegion>,
    process: Process,
    /// The process that opened the log.
    owner: u64,
    first_offset: AtomicU64,
    /// Held by the thread that removes segments, so that the oldest segment is removed first. A
    /// thread that needs both this lock and the one on `segments` takes this lock first. A thread
    /// that holds `segments` must not wait for this lock.
    pruning: Mutex<()>,
    /// Held while a record is appended or a segment is started, but not while a thread waits for a
    /// record to be on disk.
    segments: Mutex<Segments>,
}

#[derive(Debug)]
struct Segments {
    /// `None` once the log is closed.
    directory: Option<Arc<dyn Directory>>,
    /// The last segment. No other segment is open, except while a thread is still waiting for an
    /// earlier segment to be synced.
    active: Arc<LogFile>,
    /// The log offsets where the segments start. There is always at least one.
    starts: VecDeque<u64>,
}

impl Segments {
    /// Returns the log offset of the active segment's first byte.
    fn base(&self) -> u64 {
        self.starts.back().copied().unwrap_or(0)
    }

    /// Updates the state after the oldest segment has been removed. Marks the log as failed if the
    /// removal couldn't be synced, because a crash could bring the removed segment back without the
    /// next one.
    fn removed(&mut self, synced: io::Result<()>) -> Result<(), Error> {
        synced.map_err(|source| self.active.fail("sync", source))?;
        self.starts.pop_front();
        Ok(())
    }

    fn room(&self, options: &LogFileOptions) -> Room {
        Room::after(self.active.ends(), self.active.format(), options)
    }
}

impl SegmentedLog {
    /// Opens the log in a directory to append to it. Creates the directory if it does not exist,
    /// but its parent must exist.
    ///
    /// The [`checkpoint`](LogFileOptions::checkpoint) option is a log offset. If no
    /// [`dialect`](LogFileOptions::dialect) is given, the existing segments determine it.
    /// [`on_torn_tail`](LogFileOptions::on_torn_tail) applies to the last segment.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`LogFile::append_to`] for the last segment, but with log offsets
    /// and the directory's path. Also returns:
    ///
    /// * [`ErrorKind::Locked`] if another writer has the log open.
    /// * [`ErrorKind::NotASegment`] if the directory contains files other than those of a segmented
    ///   log. The directory is not changed.
    /// * [`ErrorKind::Corruption`] if a segment is missing between two others, or does not end
    ///   where the next one starts.
    /// * [`ErrorKind::Unsupported`] for a dialect other than [`LEVELDB`](Dialect::LEVELDB) or
    ///   [`PACKED`](Dialect::PACKED).
    pub fn open(directory: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        Self::open_unless(directory, options, &|| Ok(()))
    }

    /// Like [`open`](Self::open), but interruptible. See [`LogFile::append_to_unless`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open), and any error from `interrupted`.
    pub fn open_unless(
        directory: impl AsRef<Path>,
        options: LogFileOptions,
        interrupted: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self, Error> {
        let path = directory.as_ref();
        check_options(&options, Some(path))?;
        // A log with a checkpoint must already exist.
        let is_created = options.checkpoint.unwrap_or(0) == 0;
        let directory = Arc::new(DiskDirectory::open(path, is_created)?);
        Self::open_directory(
            Arc::clone(&directory) as Arc<dyn Directory>,
            options,
            Some(path),
            interrupted,
        )
        .inspect_err(|_| directory.remove_new_lock())
    }

    /// Like [`open`](Self::open), but for tests.
    #[cfg(feature = "test-storage")]
    pub fn open_in(directory: Arc<dyn Directory>, options: LogFileOptions) -> Result<Self, Error> {
        check_options(&options, None)?;
        Self::open_directory(directory, options, None, &|| Ok(()))
    }

    fn open_directory(
        directory: Arc<dyn Directory>,
        mut options: LogFileOptions,
        path: Option<&Path>,
        interrupted: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self, Error> {
        let segments = directory.list()?;
        if let Some(region) = breaks(&segments).next() {
            return Err(Error::new(ErrorKind::Corruption { region }, path).with_hint(Some(Hint::Salvage)));
        }
        let checkpoint = options.checkpoint.take();
        let mut starts: VecDeque<u64> = segments.iter().map(|segment| segment.offset).collect();
        let active = match segments.last() {
            Some(newest) => {
                let storage = directory.open(newest.offset)?;
                set_format(&mut options, &*directory, &segments, &*storage, path)?;
                let mut options = options.clone().with_checkpoint(checkpoint);
                options.origin = newest.offset;
                options.is_segment = segments.len() > 1 || directory.had_lock();
                let file = name_of(newest.offset);
                LogFile::append_to_storage(storage, options, path, Some(Path::new(&file)), interrupted)?.after_another()
            }
            None if checkpoint.unwrap_or(0) > 0 => return Err(Error::io(io::ErrorKind::NotFound.into(), path)),
            None => {
                starts.push_back(0);
                LogFile::create_in_storage(directory.create(0)?, options.clone(), path)
                    .map_err(|source| Error::io(source, path))?
            }
        };
        let process = directory.process();
        Ok(SegmentedLog {
            options: options.with_format(active.format()),
            path: path.map(Path::to_owned),
            discarded_tail: active.discarded_tail(),
            owner: process.number(),
            process,
            first_offset: AtomicU64::new(starts.front().copied().unwrap_or(0)),
            pruning: Mutex::new(()),
            segments: Mutex::new(Segments {
                directory: Some(directory),
                active: Arc::new(active),
                starts,
            }),
        })
    }

    /// Returns the format the segments are written in.
    pub fn format(&self) -> LogFormat {
        self.options.named().or_leveldb()
    }

    /// Returns the bytes that followed the last complete record when the log was opened. Like
    /// [`LogFile::discarded_tail`], but with log offsets.
    pub fn discarded_tail(&self) -> Option<SkippedRegion> {
        self.discarded_tail
    }

    /// Returns the directory path used to open the log.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the log offset of the first byte that has not been pruned, which is where the oldest
    /// segment starts.
    pub fn first_offset(&self) -> u64 {
        self.first_offset.load(Relaxed)
    }

    /// Returns the log offset just past the last record, like [`LogFile::offset`].
    pub fn offset(&self) -> u64 {
        self.status().offset
    }

    /// Returns how much of the log is on disk, as a log offset. Everything before this offset
    /// survives a machine crash. Right after the log is opened, this is the start of the last
    /// segment.
    pub fn durable_offset(&self) -> u64 {
        self.status().durable_offset
    }

    /// Returns the state of the log, with log offsets. Waits while another thread is writing or
    /// starting a segment, but not while a thread is waiting for a sync.
    pub fn status(&self) -> LogStatus {
        if self.is_forked() {
            // Another thread of the parent may have held the lock when the fork happened.
            return self.try_status().unwrap_or(LogStatus::UNKNOWN);
        }
        locked(&self.segments).active.status()
    }

    /// Returns the [`status`](Self::status) without waiting, or `None` while another thread is
    /// writing.
    pub fn try_status(&self) -> Option<LogStatus> {
        self.try_lock()?.active.try_status()
    }

    /// Appends a record, which may be empty, and returns its log offset. If the record would make
    /// the last segment too long, a new segment is started first.
    ///
    /// # Errors
    ///
    /// * The same errors as [`LogFile::append`], with log offsets.
    /// * [`ErrorKind::Io`] if the next segment cannot be created. The record is not in the log. The
    ///   log stays usable, and the next append that needs a segment tries again.
    pub fn append(&self, record: &[u8]) -> Result<u64, Error> {
        self.append_and(record, false)
    }

    /// Appends a record, and returns its log offset once it and everything before it are on disk.
    /// Threads that call this at the same time share one sync.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append`](Self::append).
    pub fn append_sync(&self, record: &[u8]) -> Result<u64, Error> {
        self.append_and(record, true)
    }

    fn append_and(&self, record: &[u8], syncs: bool) -> Result<u64, Error> {
        let mut segments = self.lock()?;
        if !segments.room(&self.options).takes(record.len()) {
            self.switch(&mut segments)?;
        }
        let log = Arc::clone(&segments.active);
        let (offset, unsynced) = log.append_unsynced(record, syncs)?;
        drop(segments);
        log.wait_for(unsynced)?;
        Ok(offset)
    }

    /// Appends several records under one lock and returns how many were appended. The records may
    /// be spread over several segments. If the policy requires a sync, the log syncs after the last
    /// record. Whatever the policy, starting a segment also syncs the log. Other threads wait until
    /// all the records have been appended. The iterator must not use the log itself.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append`](Self::append). As with [`LogFile::extend`], the
    /// records before the failed one may be in the log. The log ends at the offset that
    /// [`offset`](Self::offset) returns.
    pub fn extend<R: AsRef<[u8]>>(&self, records: impl IntoIterator<Item = R>) -> Result<u64, Error> {
        let mut records = records.into_iter();
        // A record that the iterator returned but that did not fit in the segment.
        let mut kept: Option<R> = None;
        let (mut count, mut syncs) = (0, false);
        let mut segments = self.lock()?;
        loop {
            let log = Arc::clone(&segments.active);
            let mut room = segments.room(&self.options);
            let fitting = std::iter::from_fn(|| {
                let record = kept.take().or_else(|| records.next())?;
                if room.takes(record.as_ref().len()) {
                    return Some(record);
                }
                kept = Some(record);
                None
            });
            let (extended, unsynced) = log.extend_unsynced(fitting)?;
            syncs |= unsynced.is_some();
            drop(unsynced);
            count += extended.as_ref().unwrap_or(&0);
            match &kept {
                // Packing may have left more room than expected.
                Some(record) => {
                    if !segments.room(&self.options).takes(record.as_ref().len()) {
                        self.switch(&mut segments)?;
                        syncs = false;
                    }
                }
                None => {
                    let unsynced = syncs.then(|| log.flushed()).transpose()?;
                    drop(segments);
                    log.wait_for(unsynced)?;
                    return extended.map(|_| count);
                }
            }
        }
    }

    /// Appends a record if it can be appended without waiting, like [`LogFile::try_append`].
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] after a permanent failure, [`ErrorKind::Closed`] if the log is
    /// closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn try_append(&self, record: &[u8]) -> Result<Option<u64>, Error> {
        self.check_owner()?;
        let Some(segments) = self.try_lock() else {
            return Ok(None);
        };
        if !segments.room(&self.options).takes(record.len()) {
            return Ok(None);
        }
        segments.active.try_append(record)
    }

    /// Writes all buffered records to the last segment, like [`LogFile::flush`].
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the
    /// log is closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn flush(&self) -> Result<(), Error> {
        self.lock()?.active.flush()
    }

    /// Writes all records appended so far and waits until they are on disk.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the
    /// log is closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn sync(&self) -> Result<(), Error> {
        let segments = self.lock()?;
        let log = Arc::clone(&segments.active);
        let unsynced = log.flushed()?;
        drop(segments);
        log.wait_for(Some(unsynced))
    }

    /// Waits until everything before a log offset is on disk, like [`LogFile::wait_durable`].
    /// Doesn't append a record.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if `offset` is past the end of the log
    ///   ([`io::ErrorKind::InvalidInput`]).
    /// * [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the log is
    ///   closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn wait_durable(&self, offset: u64) -> Result<(), Error> {
        let segments = self.usable()?;
        if offset <= segments.base() {
            // Everything before this segment was on disk when the segment was created.
            return Ok(());
        }
        let log = Arc::clone(&segments.active);
        let (unsynced, end) = log.written_to(offset)?;
        drop(segments);
        log.wait_until_durable(unsynced, end)
    }

    /// Starts a new segment now, unless the last one has no records. Returns the log offset where
    /// the last segment starts.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the segment cannot be created. The log stays usable.
    /// * [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the log is
    ///   closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn rotate(&self) -> Result<u64, Error> {
        let mut segments = self.usable()?;
        if !segments.room(&self.options).is_empty() {
            self.switch(&mut segments)?;
        }
        Ok(segments.base())
    }

    /// Removes the segments that end at or before a log offset, oldest first, but never the last
    /// segment. Returns the new [`first_offset`](Self::first_offset).
    ///
    /// Other threads can append during the call. A crash never leaves a gap between segments. A
    /// reader may still have a removed segment open. On Windows, an open segment cannot be removed.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if a segment cannot be removed. Earlier segments have already been
    ///   removed. The log stays usable, and another call tries again.
    /// * [`ErrorKind::Write`] if the directory cannot be synced. Every later call also fails.
    /// * [`ErrorKind::Closed`] if the log is closed, and [`ErrorKind::Forked`] in a forked child.
    pub fn prune_before(&self, offset: u64) -> Result<u64, Error> {
        self.check_owner()?;
        let _pruning = locked(&self.pruning);
        loop {
            let (directory, end) = {
                let segments = self.usable()?;
                match (segments.starts.get(1), &segments.directory) {
                    (Some(&end), Some(directory)) if end <= offset => (Arc::clone(directory), end),
                    _ => return Ok(self.first_offset()),
                }
            };
            directory.remove(self.first_offset())?;
            let synced = directory.sync();
            // Another thread may have started a segment in the meantime.
            locked(&self.segments).removed(synced)?;
            self.first_offset.store(end, Relaxed);
        }
    }

    /// Closes the log, like [`LogFile::close`], and releases its directory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if records after [`durable_offset`](Self::durable_offset) may
    /// be lost. The log is closed even then.
    pub fn close(&self) -> Result<(), Error> {
        if self.is_forked() {
            // Only this process's copies of the descriptors are closed.
            if let Some(mut segments) = self.try_lock() {
                segments.directory = None;
                let _ = segments.active.close();
            }
            return Ok(());
        }
        let _pruning = locked(&self.pruning);
        let mut segments = locked(&self.segments);
        let closed = segments.active.close();
        segments.directory = None;
        closed
    }

    /// Starts the next segment. Once a segment exists, everything before it is complete and on
    /// disk. A crash therefore leaves a prefix of the records, and only the last segment can be
    /// torn.
    fn switch(&self, segments: &mut Segments) -> Result<(), Error> {
        segments.active.sync()?;
        let next = segments.active.offset();
        if next > OFFSET_MAX {
            let text = "no segment starts after the offset 2^63 - 1";
            let source = io::Error::new(io::ErrorKind::FileTooLarge, text);
            return Err(Error::io(source, self.path()));
        }
        let Some(directory) = segments.directory.clone() else {
            return Err(Error::new(ErrorKind::Closed, self.path()));
        };
        let mut options = self.options.clone();
        options.origin = next;
        let created = directory.create(next).and_then(|storage| {
            LogFile::create_in_storage(storage, options, self.path())
                .map(LogFile::after_another)
                .map_err(|source| Error::io(source, self.path()))
        });
        let active = created.map_err(|error| {
            if !directory.has(next) {
                return error;
            }
            // The new segment is named after the end of the active segment, which must therefore
            // not grow any further.
            let source = match error.kind {
                ErrorKind::Io { source } => source,
                kind => io::Error::other(kind.to_string()),
            };
            segments.active.fail("rotation", source)
        })?;
        segments.active = Arc::new(active);
        segments.starts.push_back(next);
        // This makes the segment's name durable. If this fails, the log is marked as failed.
        segments.active.sync()?;
        self.remove_expired(segments, &*directory)
    }

    /// Removes the oldest segments according to `retention_bytes` and `retention_time`. Removes at
    /// most [`EXPIRED_MAX`] at a time, because appends wait for the removals. A segment that can't
    /// be removed, or that another thread is removing, is left for next time.
    fn remove_expired(&self, segments: &mut Segments, directory: &dyn Directory) -> Result<(), Error> {
        let Some(_pruning) = try_locked(&self.pruning) else {
            return Ok(());
        };
        for _ in 0..EXPIRED_MAX {
            let Some(&end) = segments.starts.get(1) else { break };
            let start = self.first_offset();
            let kept_len = segments.base() - end;
            let is_expired = self.options.retention_bytes.is_some_and(|bytes| kept_len >= bytes)
                || (self.options.retention_time)
                    .is_some_and(|time| directory.age_of(start).is_some_and(|age| age > time));
            if !is_expired || directory.remove(start).is_err() {
                break;
            }
            segments.removed(directory.sync())?;
            self.first_offset.store(end, Relaxed);
        }
        Ok(())
    }

    /// Checks whether this log is a forked child's copy.
    fn is_forked(&self) -> bool {
        self.process.number() != self.owner
    }

    fn check_owner(&self) -> Result<(), Error> {
        if self.is_forked() {
            return Err(Error::new(ErrorKind::Forked, self.path()));
        }
        Ok(())
    }

    fn lock(&self) -> Result<MutexGuard<'_, Segments>, Error> {
        self.check_owner()?;
        Ok(locked(&self.segments))
    }

    fn usable(&self) -> Result<MutexGuard<'_, Segments>, Error> {
        let segments = self.lock()?;
        drop(segments.active.usable()?);
        Ok(segments)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Segments>> {
        try_locked(&self.segments)
    }
}

/// Locks the mutex. After a panic in the caller's iterator, the state is still consistent, but
/// every later call fails because the active segment has failed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn check_options(options: &LogFileOptions, path: Option<&Path>) -> Result<(), Error> {
    check_appended_to(options.format(), path)?;
    options.dialect.map_or(Ok(()), |dialect| check_dialect(dialect, path))
}

/// Rejects all dialects except `LEVELDB` and the packed dialects. Files in the other dialects are
/// written by other programs, which never write segments.
fn check_dialect(dialect: Dialect, path: Option<&Path>) -> Result<(), Error> {
    if dialect == Dialect::LEVELDB || dialect.is_packed() {
        return Ok(());
    }
    unsupported(Err((dialect, Unsupported::Segments)), path)
}

/// Checks the format of the existing segments. If the format of the newest segment can't be
/// determined yet, sets `options` to the format of the previous segment.
fn set_format(
    options: &mut LogFileOptions,
    directory: &dyn Directory,
    segments: &[Segment],
    newest: &dyn Storage,
    path: Option<&Path>,
) -> Result<(), Error> {
    let head_of =
        |storage: &dyn Storage| read_at_most(storage, 0, DETECT_LEN as u64).map_err(|source| Error::io(source, path));
    let head = head_of(newest)?;
    let mut is_foreign = false;
    match detect(&head) {
        Detection::Log(found) => {
            check_dialect(found.dialect, path)?;
            // The mark of a packed log may have been lost.
            if found.dialect.is_packed() || starts_undamaged(&head) {
                return Ok(());
            }
        }
        // After a crash, text may follow a sector of zeros.
        Detection::Foreign(_) => is_foreign = true,
        // After a crash, the bytes may be zeros.
        Detection::Unclear => {}
    }
    let Some(before) = segments.iter().rev().nth(1) else {
        if is_foreign && options.dialect.is_none() && directory.had_lock() {
            *options = options.clone().with_dialect(Some(Dialect::LEVELDB));
        }
        return Ok(());
    };
    if let Detection::Log(found) = detect(&head_of(&*directory.open(before.offset)?)?) {
        check_dialect(found.dialect, path)?;
        match options.dialect {
            Some(named) if named.is_packed() != found.dialect.is_packed() => {
                let found = found.dialect;
                return Err(Error::new(ErrorKind::WrongDialect { named, found }, path));
            }
            _ if found.dialect.is_packed() || (is_foreign && options.dialect.is_none()) => {
                *options = options.clone().with_format(found)
            }
            _ => {}
        }
    }
    Ok(())
}
