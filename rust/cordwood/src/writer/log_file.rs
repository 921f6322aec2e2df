//! A log file on disk that several threads can append to, and that keeps its guarantees when a
//! write, a sync or the machine fails.
//!
//! `docs/format/writing.md` has the rules.

use std::collections::TryReserveError;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, TryLockError};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

// `tests/loom.rs` explores all interleavings of the threads.
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

use super::BUFFER_LEN;
use super::options::{FlushPolicy, LogFileOptions, SyncPolicy};
use super::process::Process;
use super::recover::{Recovered, cut, recover};
use super::storage::{DiskFile, Storage, copy_of, write_all};
use super::unsynced;
use crate::damage::SkippedRegion;
use crate::dialect::LogFormat;
use crate::encode::{Encoder, NotEncoded};
use crate::error::{Error, unsupported};
use crate::format::{BLOCK_LEN, encoded_len};

/// A log file on disk, to write records to.
///
/// * [`create`](LogFile::create) and [`create_new`](LogFile::create_new) create a new log,
///   [`append_to`](LogFile::append_to) appends to an existing one, after reading it: never after an
///   incomplete record, where LevelDB's own log reuse loses what follows.
/// * It is locked against a second writer, in this process or another, until it is closed or
///   dropped.
/// * Threads may share it by reference. Those that [`append_sync`](LogFile::append_sync) at the
///   same time share a sync.
/// * It belongs to the process that opened it. In a forked child every call fails with
///   [`Error::Forked`], and closing or dropping the copy changes neither the file nor its lock.
///
/// # What survives
///
/// | what happened to a record | survives the end of the process | survives a crash of the machine |
/// |---|---|---|
/// | [`append`](LogFile::append) returned, [`FlushPolicy::EveryAppend`] (the default) | yes | once synced |
/// | [`append`](LogFile::append) returned, [`FlushPolicy::OnClose`] | once flushed | once synced |
/// | [`flush`](LogFile::flush) returned | yes | once synced |
/// | [`sync`](LogFile::sync) or [`append_sync`](LogFile::append_sync) returned: it is before [`durable_offset`](LogFile::durable_offset) | yes | yes |
///
/// With [`FlushPolicy::OnClose`] records are buffered and written about 1 MiB at a time;
/// [`flush`](LogFile::flush), [`sync`](LogFile::sync) and [`close`](LogFile::close) write the rest.
/// **Call `close` to learn whether everything was written**: dropping the log without it tries to
/// flush, but cannot report a failure. Dropping does not flush after a permanent failure or in a
/// forked child; it never syncs, whatever the policy, and does not write Pebble's end-of-log
/// trailer.
///
/// # Failures
///
/// A failed or partial write is undone: the file is truncated to the end of the last record that
/// was written completely. The record being appended is then not in the log; records appended
/// earlier that were still in the buffer stay there, and the next flush tries to write them again.
/// If the file cannot be truncated either, its end is unknown, and every later call fails.
///
/// After a failed sync every later call fails too. A sync cannot be repeated: the system may have
/// dropped what it could not write, and reports that only once. To continue, open the file again
/// with [`append_to`](LogFile::append_to): in the same process it rewrites what follows the durable
/// offset, as read from the file, so that the next sync covers it. Another process does so from its
/// [checkpoint](LogFileOptions::checkpoint) on.
///
/// A panic while a record is appended, such as in an iterator passed to
/// [`extend`](LogFile::extend), makes every later call fail, too.
///
/// ```
/// use cordwood_log::{LogFile, LogFileOptions, SyncPolicy};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("example.log");
/// let log = LogFile::create_new(&path, LogFileOptions::default())?;
/// log.append(b"one")?;
/// log.append_sync(b"two")?; // both are on the disk
/// assert_eq!(log.durable_offset(), 20);
/// log.close()?;
/// drop(log);
///
/// let log = LogFile::append_to(&path, LogFileOptions::default().with_sync(SyncPolicy::OnClose))?;
/// assert_eq!(log.append(b"three")?, 20);
/// log.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LogFile {
    options: LogFileOptions,
    path: Option<PathBuf>,
    format: LogFormat,
    discarded_tail: Option<SkippedRegion>,
    process: Process,
    /// The process that opened the log.
    owner: u64,
    state: Mutex<State>,
    /// Notified when a sync has ended, successfully or not, and when no thread waits for one any
    /// more.
    sync_ended: Condvar,
}

#[derive(Debug)]
struct State {
    /// `None` once closed. Threads that wait for a sync also hold it.
    storage: Option<Arc<dyn Storage>>,
    encoder: Encoder,
    /// Records not yet written to the file.
    buffer: Vec<u8>,
    /// The length of the file: all records before this offset are completely in it.
    written: u64,
    /// Everything before this offset is on the disk.
    durable: u64,
    /// Whether the name of the file is on the disk: without it the contents are lost.
    is_name_durable: bool,
    /// A thread is syncing, without holding the lock.
    is_syncing: bool,
    /// How many threads wait for a sync, including the one that syncs.
    waiting: usize,
    /// The end offset of the last sync that has begun, and when it began.
    sync_end: u64,
    sync_begun: Instant,
    /// Space has been preallocated up to here. `None`: preallocation has failed or is off.
    allocated: Option<u64>,
    /// The permanent failure, if there was one.
    failure: Option<Failure>,
    /// Closing has begun.
    is_closed: bool,
}

/// The state of a [`LogFile`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStatus {
    /// [`LogFile::offset`].
    pub offset: u64,
    /// [`LogFile::durable_offset`].
    pub durable_offset: u64,
    /// [`LogFile::has_failed`].
    pub has_failed: bool,
    /// [`LogFile::is_closed`].
    pub is_closed: bool,
}

#[derive(Debug)]
struct Failure {
    what: &'static str,
    source: io::Error,
}

/// The end of the log, to roll back to.
#[derive(Debug, Clone, Copy)]
struct Mark {
    buffered_len: usize,
    offset: u64,
}

impl State {
    #[inline]
    fn encode(&mut self, record: &[u8]) -> u64 {
        self.encoder.encode(record, &mut self.buffer)
    }

    fn encode_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        record_len_max: u64,
    ) -> Result<(u64, bool), NotEncoded> {
        let State { encoder, buffer, .. } = self;
        encoder.encode_all(records, buffer, BUFFER_LEN, record_len_max)
    }

    fn status(&self) -> LogStatus {
        LogStatus {
            offset: self.encoder.offset(),
            durable_offset: self.durable,
            has_failed: self.failure.is_some(),
            is_closed: self.is_closed,
        }
    }

    #[inline]
    fn mark(&self) -> Mark {
        Mark {
            buffered_len: self.buffer.len(),
            offset: self.encoder.offset(),
        }
    }

    fn take_back(&mut self, mark: Mark) {
        let (len, offset) = if self.written > mark.offset {
            // Everything before the mark has been written, and part of what followed it.
            (0, self.written)
        } else {
            (mark.buffered_len, mark.offset)
        };
        self.buffer.truncate(len);
        self.encoder = self.encoder.at(offset);
    }
}

/// The state after a thread panicked while it held the lock: it may be inconsistent.
#[cold]
fn after_panic(mut state: MutexGuard<'_, State>) -> MutexGuard<'_, State> {
    state.failure.get_or_insert_with(|| Failure {
        what: "append",
        source: io::Error::other("it panicked"),
    });
    state
}

/// Refuses what the dialect does not have, or this build cannot write.
fn check(format: LogFormat, path: Option<&Path>) -> Result<(), Error> {
    let checked = format.check_to_write();
    unsupported(checked.map_err(|what| (format.dialect, what)), path)
}

/// Refuses what the dialect does not have, and logs that are never appended to.
fn check_appended_to(format: LogFormat, path: Option<&Path>) -> Result<(), Error> {
    let checked = format.check();
    unsupported(checked.map_err(|what| (format.dialect, what)), path)?;
    if format.is_appended_to() {
        return Ok(());
    }
    Err(Error::NeverAppended {
        path: path.map(Path::to_owned),
        format: Box::new(format),
    })
}

impl LogFile {
    /// Creates a new log, replacing any existing file.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file cannot be opened or emptied.
    /// * [`Error::Locked`] if another writer has it open; it stays as it is.
    /// * [`Error::Unsupported`] if logs in the dialect have no number or are not compressed, or
    ///   this build cannot compress; nothing is changed.
    pub fn create(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        // Not truncated by opening: another writer may have it open.
        Self::create_with(
            path.as_ref(),
            OpenOptions::new().write(true).create(true).truncate(false),
            options,
        )
    }

    /// Creates a new log.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file already exists ([`io::ErrorKind::AlreadyExists`]), or cannot be
    ///   created.
    /// * [`Error::Unsupported`] as [`create`](Self::create).
    pub fn create_new(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        Self::create_with(path.as_ref(), OpenOptions::new().write(true).create_new(true), options)
    }

    fn create_with(path: &Path, open: &OpenOptions, options: LogFileOptions) -> Result<Self, Error> {
        check(options.format(), Some(path))?;
        let file = DiskFile::open(path, open)?;
        let mut log = Self::create_checked(Box::new(file), options).map_err(|source| Error::Io {
            path: Some(path.to_owned()),
            source,
        })?;
        log.path = Some(path.to_owned());
        Ok(log)
    }

    /// Opens a log to append to it; creates a new one if there is none.
    ///
    /// The file is read, from its beginning or the [checkpoint](LogFileOptions::checkpoint) on. If
    /// it does not end with a complete record, [`on_torn_tail`](LogFileOptions::on_torn_tail)
    /// decides what happens; [`discarded_tail`](Self::discarded_tail) reports what did.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file cannot be opened, read or truncated, is not a regular file, or
    ///   no record begins at the checkpoint ([`io::ErrorKind::InvalidInput`]).
    /// * [`Error::Locked`] if another writer has it open.
    /// * [`Error::WrongDialect`] if the fragments of the file are not in the dialect that the
    ///   options give.
    /// * [`Error::NeverAppended`] for a log with a log number, or with compression: RocksDB and
    ///   Pebble create a new log instead.
    /// * [`Error::Unsupported`] as [`create`](Self::create).
    /// * [`Error::Foreign`] if the file is not a log.
    /// * [`Error::TornTail`] if it ends in an incomplete record or in zeros, and the options refuse
    ///   that.
    /// * [`Error::Corruption`] if it is damaged, unless the options pad it.
    ///
    /// ```
    /// use cordwood_log::{Error, LogFile, LogFileOptions};
    /// use cordwood_log::OnTornTail;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.append(b"one")?;
    /// log.append(b"two")?;
    /// log.close()?;
    /// drop(log);
    /// std::fs::OpenOptions::new().write(true).open(&path)?.set_len(19)?; // as a crash may leave it
    ///
    /// let refused = LogFile::append_to(&path, LogFileOptions::default());
    /// assert!(matches!(refused, Err(Error::TornTail { region, .. }) if region.begin == 10));
    /// let log = LogFile::append_to(&path, LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate))?;
    /// assert_eq!(log.discarded_tail().map(|region| (region.begin, region.end)), Some((10, 19)));
    /// assert_eq!(log.append(b"two again")?, 10);
    /// # log.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append_to(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        Self::append_to_unless(path, options, &|| Ok(()))
    }

    /// [`append_to`](Self::append_to), interruptible: `interrupted` is called repeatedly while the
    /// file is read, and an error from it ends the call as an [`Error::Io`].
    #[doc(hidden)]
    pub fn append_to_unless(
        path: impl AsRef<Path>,
        options: LogFileOptions,
        interrupted: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        // Before the file is opened, which would create it.
        check_appended_to(options.format(), Some(path))?;
        let mut open = OpenOptions::new();
        let file = DiskFile::open(path, open.read(true).write(true).create(true).truncate(false))?;
        if !file.is_regular() {
            let text = "only a regular file can be read and then appended to";
            return Err(Error::Io {
                path: Some(path.to_owned()),
                source: io::Error::new(io::ErrorKind::InvalidInput, text),
            });
        }
        let recovered = recover(&file, &options, Some(path), interrupted)?;
        let mut log = Self::new(Box::new(file), options, recovered);
        log.path = Some(path.to_owned());
        Ok(log)
    }

    /// [`create`](Self::create), for tests.
    #[doc(hidden)]
    pub fn create_in(storage: Box<dyn Storage>, options: LogFileOptions) -> io::Result<Self> {
        check(options.format(), None)?;
        Self::create_checked(storage, options)
    }

    fn create_checked(storage: Box<dyn Storage>, options: LogFileOptions) -> io::Result<Self> {
        if storage.file_len()? > 0 {
            cut(&*storage, 0, 0)?;
        }
        // A failed sync of the old contents does not matter for the new ones.
        unsynced::forget(storage.identity());
        let format = options.format();
        Ok(Self::new(storage, options, Recovered::empty(format)))
    }

    /// [`append_to`](Self::append_to), for tests.
    #[doc(hidden)]
    pub fn append_in(storage: Box<dyn Storage>, options: LogFileOptions) -> Result<Self, Error> {
        check_appended_to(options.format(), None)?;
        let recovered = recover(&*storage, &options, None, &|| Ok(()))?;
        Ok(Self::new(storage, options, recovered))
    }

    fn new(storage: Box<dyn Storage>, options: LogFileOptions, recovered: Recovered) -> Self {
        let Recovered { format, file_len, tail } = recovered;
        let process = storage.process();
        let state = State {
            storage: Some(Arc::from(storage)),
            encoder: Encoder::unchecked(file_len, format),
            buffer: Vec::new(),
            written: file_len,
            // Whoever wrote the existing contents may not have synced them successfully.
            durable: 0,
            is_name_durable: false,
            is_syncing: false,
            waiting: 0,
            sync_end: file_len,
            sync_begun: Instant::now(),
            allocated: (options.preallocate_len > 0).then_some(file_len),
            failure: None,
            is_closed: false,
        };
        LogFile {
            options,
            path: None,
            format,
            discarded_tail: tail,
            owner: process.number(),
            process,
            state: Mutex::new(state),
            sync_ended: Condvar::new(),
        }
    }

    /// The format of the log that is written: as the options say, in the detected dialect if they
    /// give none.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// What followed the last complete record when the log was opened: cut off or kept, as the
    /// [options](LogFileOptions::on_torn_tail) say. `None` if there was nothing.
    pub fn discarded_tail(&self) -> Option<SkippedRegion> {
        self.discarded_tail
    }

    /// The path, as given.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The length of the file with all records so far, in bytes, including those not yet written.
    pub fn offset(&self) -> u64 {
        self.status().offset
    }

    /// Everything before this file offset is on the disk: it survives a crash of the machine. 0
    /// before the first sync of this writer.
    pub fn durable_offset(&self) -> u64 {
        self.status().durable_offset
    }

    /// Whether there was a permanent failure, after which every call fails.
    pub fn has_failed(&self) -> bool {
        self.status().has_failed
    }

    /// Whether [`close`](Self::close) has been called.
    pub fn is_closed(&self) -> bool {
        self.status().is_closed
    }

    /// The state of the log. Waits while another thread writes, but not while it syncs.
    ///
    /// ```
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.append(b"one")?;
    /// let status = log.status();
    /// assert_eq!((status.offset, status.durable_offset, status.is_closed), (10, 0, false));
    /// # log.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn status(&self) -> LogStatus {
        if self.is_forked() {
            // At the fork, another thread of the parent may have held the lock, which nobody would
            // ever release here.
            return self.try_status().unwrap_or(LogStatus {
                offset: 0,
                durable_offset: 0,
                has_failed: true,
                is_closed: false,
            });
        }
        self.lock().status()
    }

    /// [`status`](Self::status) without waiting: `None` while another thread writes.
    pub fn try_status(&self) -> Option<LogStatus> {
        self.try_lock().map(|state| state.status())
    }

    /// Appends a record and returns the file offset of its first header. The record may be empty.
    ///
    /// # Errors
    ///
    /// * [`Error::RecordTooLarge`] if it has more than
    ///   [`record_len_max`](LogFileOptions::record_len_max) bytes. It is not appended.
    /// * [`Error::Write`] if writing it, or a sync that the [policy](LogFileOptions::sync)
    ///   requires, failed; or if there is no memory for it ([`io::ErrorKind::OutOfMemory`]). See
    ///   [Failures](LogFile#failures).
    /// * [`Error::Closed`], [`Error::Forked`].
    #[inline]
    pub fn append(&self, record: &[u8]) -> Result<u64, Error> {
        self.append_and(record, false)
    }

    /// Appends a record, and returns its offset once it and everything before it are on the disk.
    ///
    /// While one thread waits for the disk, others append; the next sync covers all of them.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    ///
    /// ```
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// std::thread::scope(|scope| {
    ///     for thread in 0..4 {
    ///         let log = &log;
    ///         scope.spawn(move || log.append_sync(format!("from thread {thread}").as_bytes()));
    ///     }
    /// });
    /// assert_eq!(log.durable_offset(), 4 * (7 + 13));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append_sync(&self, record: &[u8]) -> Result<u64, Error> {
        self.append_and(record, true)
    }

    fn append_and(&self, record: &[u8], syncs: bool) -> Result<u64, Error> {
        let mut state = self.usable()?;
        let before = state.mark();
        self.reserve(&mut state, record.len())?;
        let offset = state.encode(record);
        let syncs = syncs || self.is_due(&state, state.encoder.offset());
        if syncs || self.writes_each() || state.buffer.len() >= BUFFER_LEN {
            self.write_out_since(&mut state, before)?;
        }
        if syncs {
            self.wait_until_durable(state)?;
        }
        Ok(offset)
    }

    /// Appends several records under one lock, and returns how many. If the policy requires a sync,
    /// it follows the last of them. Other threads wait meanwhile, and the iterator must not use the
    /// log itself.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append). The records before one that is too long are in the log. After a
    /// failed write, those of the records that had not reached the file, perhaps all, are not in
    /// the log; [`offset`](Self::offset) shows how far it goes.
    pub fn extend<R: AsRef<[u8]>>(&self, records: impl IntoIterator<Item = R>) -> Result<u64, Error> {
        let mut state = self.usable()?;
        let before = state.mark();
        let mut records = records.into_iter();
        let mut count = 0;
        let encoded = loop {
            match state.encode_all(&mut records, self.options.record_len_max) {
                Ok((encoded, may_be_more)) => {
                    count += encoded;
                    if state.buffer.len() >= BUFFER_LEN {
                        self.write_out_since(&mut state, before)?;
                    }
                    if !may_be_more {
                        break Ok(());
                    }
                }
                Err(NotEncoded::NoMemory(error)) => break Err(self.out_of_memory(&state, error)),
                Err(NotEncoded::TooLarge(record_len)) => break Err(self.too_large(&state, record_len)),
            }
        };
        if self.writes_each() {
            self.write_out_since(&mut state, before)?;
        }
        encoded?;
        if count > 0 && self.is_due(&state, state.encoder.offset()) {
            self.write_out_since(&mut state, before)?;
            self.wait_until_durable(state)?;
        }
        Ok(count)
    }

    /// Appends a record if that needs no waiting, neither for the operating system nor for another
    /// thread. Otherwise, also for a record that is too long and always with
    /// [`FlushPolicy::EveryAppend`], it appends nothing and returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] after a permanent failure, [`Error::Closed`], [`Error::Forked`].
    #[inline]
    pub fn try_append(&self, record: &[u8]) -> Result<Option<u64>, Error> {
        if self.writes_each() {
            return Ok(None);
        }
        self.check_owner()?;
        let Some(mut state) = self.try_lock() else {
            return Ok(None);
        };
        self.check(&state)?;
        // Headers take a little more; this only bounds how full the buffer gets.
        let is_full = state.buffer.len() + record.len() >= BUFFER_LEN - BLOCK_LEN;
        let is_too_large = record.len() as u64 > self.options.record_len_max;
        let offset = state.encoder.offset();
        let end = offset.saturating_add(encoded_len(offset, record.len() as u64));
        if is_full || is_too_large || self.is_due(&state, end) {
            return Ok(None);
        }
        Ok(Some(state.encode(record)))
    }

    /// Writes all records so far to the file. They then survive the end of this process, but not a
    /// crash of the machine.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], [`Error::Closed`], [`Error::Forked`]. See [Failures](LogFile#failures).
    pub fn flush(&self) -> Result<(), Error> {
        let mut state = self.usable()?;
        self.write_out(&mut state)
    }

    /// Writes all records so far, and waits until they are on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], [`Error::Closed`], [`Error::Forked`]. See [Failures](LogFile#failures).
    pub fn sync(&self) -> Result<(), Error> {
        let mut state = self.usable()?;
        self.write_out(&mut state)?;
        self.wait_until_durable(state)
    }

    /// Writes all records so far and, if the [policy](LogFileOptions::sync) is not
    /// [`SyncPolicy::Never`], waits until they are on the disk. It also waits for other threads
    /// that wait for a sync. Then the file is released, and another writer may open it. Every later
    /// call fails with [`Error::Closed`], except a further `close` and the methods that only query.
    /// A second `close` waits until the first has released the file. It does not consume the log,
    /// as [`Writer::finish`](super::Writer::finish) does, since threads may share it.
    ///
    /// In a forked child nothing is written and the lock stays: only the child's copy of the
    /// descriptor is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Write`]: records after [`durable_offset`](Self::durable_offset) may be lost. The log is closed nevertheless.
    ///
    /// ```
    /// use cordwood_log::{Error, LogFile, LogFileOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.close()?;
    /// assert!(matches!(log.append(b"one"), Err(Error::Closed { .. })));
    /// LogFile::append_to(&path, LogFileOptions::default())?; // another writer may have it now
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> Result<(), Error> {
        if self.is_forked() {
            // Not `lock`: see `status`. Nothing was appended in this process; the buffer is for the
            // parent to write.
            if let Some(mut state) = self.try_lock() {
                state.is_closed = true;
                state.storage = None;
            }
            return Ok(());
        }
        let mut state = self.lock();
        if state.is_closed {
            while state.storage.is_some() {
                state = self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            return Ok(());
        }
        let finished = self.finish(state);
        let mut state = self.lock();
        while state.waiting > 0 {
            state = self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.storage = None;
        self.sync_ended.notify_all();
        // A closed writer may be kept for long. What it has not written is lost, and that has been
        // reported.
        state.buffer = Vec::new();
        state.encoder = Encoder::new(state.encoder.offset());
        finished
    }

    fn finish(&self, mut state: MutexGuard<'_, State>) -> Result<(), Error> {
        let usable = self.check(&state);
        // From here on, nothing can be appended that would never be written.
        state.is_closed = true;
        usable?;
        let State { encoder, buffer, .. } = &mut *state;
        // The file header, if there is no record, and the end-of-log trailer.
        encoder.begin(buffer);
        encoder.end(buffer);
        self.write_out(&mut state)?;
        if self.options.preallocate_len > 0
            && let Some(storage) = &state.storage
        {
            // Sets the length to what it is, which releases the preallocated space after it. A
            // failure costs only that space.
            let _ = storage.file_len().and_then(|len| storage.set_len(len));
        }
        if self.options.sync == SyncPolicy::Never {
            return Ok(());
        }
        self.wait_until_durable(state)
    }

    /// Whether this is the copy in a forked child.
    #[inline]
    fn is_forked(&self) -> bool {
        self.process.number() != self.owner
    }

    #[inline]
    fn check_owner(&self) -> Result<(), Error> {
        if self.is_forked() {
            return Err(Error::Forked {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    #[inline]
    fn writes_each(&self) -> bool {
        self.options.flush == FlushPolicy::EveryAppend
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|error| after_panic(error.into_inner()))
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(error)) => Some(after_panic(error.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn usable(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.check_owner()?;
        let state = self.lock();
        self.check(&state)?;
        Ok(state)
    }

    /// Reserves room in the buffer for a long record, for which there may be no memory.
    #[inline]
    fn reserve(&self, state: &mut State, record_len: usize) -> Result<(), Error> {
        if record_len as u64 > self.options.record_len_max {
            return Err(self.too_large(state, record_len));
        }
        if record_len < BLOCK_LEN {
            return Ok(());
        }
        let State { encoder, buffer, .. } = state;
        match encoder.try_reserve(record_len, buffer) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.out_of_memory(state, error)),
        }
    }

    #[cold]
    fn too_large(&self, state: &State, record_len: usize) -> Error {
        Error::RecordTooLarge {
            path: self.path.clone(),
            offset: state.encoder.offset(),
            record_len: record_len as u64,
            record_len_max: self.options.record_len_max,
        }
    }

    #[cold]
    fn out_of_memory(&self, state: &State, error: TryReserveError) -> Error {
        self.failed(state, io::Error::new(io::ErrorKind::OutOfMemory, error))
    }

    #[inline]
    fn check(&self, state: &State) -> Result<(), Error> {
        if state.is_closed || state.failure.is_some() {
            return Err(self.refusal(state));
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self, state: &State) -> Error {
        match &state.failure {
            Some(Failure { what, source }) if state.storage.is_some() => {
                let text = format!("an earlier {what} failed: {source}");
                self.failed(state, io::Error::new(source.kind(), text))
            }
            _ => Error::Closed {
                path: self.path.clone(),
            },
        }
    }

    /// The error for a failed write or sync, after the state has been updated.
    fn failed(&self, state: &State, source: io::Error) -> Error {
        Error::Write {
            path: self.path.clone(),
            source,
            durable_offset: state.durable,
            is_undone: state.failure.is_none() && !state.is_closed,
        }
    }

    /// Whether the policy requires a sync when the log ends at `end`.
    #[inline]
    fn is_due(&self, state: &State, end: u64) -> bool {
        match self.options.sync {
            SyncPolicy::Never | SyncPolicy::OnClose => false,
            SyncPolicy::EveryAppend => true,
            SyncPolicy::EveryBytes(len) => end - state.sync_end >= len,
            SyncPolicy::EveryInterval(time) => state.sync_begun.elapsed() >= time,
        }
    }

    /// [`write_out`](Self::write_out), and if that fails, removes what was appended since `before`
    /// and is not in the file.
    fn write_out_since(&self, state: &mut State, before: Mark) -> Result<(), Error> {
        self.write_out(state).inspect_err(|_| state.take_back(before))
    }

    /// Writes the buffer to the file, in one write unless the system accepts only parts.
    fn write_out(&self, state: &mut State) -> Result<(), Error> {
        self.preallocate(state);
        let Some(storage) = &state.storage else {
            return Err(self.refusal(state));
        };
        if let Err(source) = write_all(&**storage, &state.buffer, state.written) {
            return Err(self.undo_write(state, source));
        }
        state.written = state.encoder.offset();
        state.buffer.clear();
        // One huge record must not hold its memory for the life of the writer.
        state.buffer.shrink_to(2 * BUFFER_LEN);
        Ok(())
    }

    /// Truncates the file to the end of the last record that was written completely. The buffer is
    /// kept.
    #[cold]
    fn undo_write(&self, state: &mut State, source: io::Error) -> Error {
        let undone = state.storage.as_ref().map(|storage| storage.set_len(state.written));
        match undone.unwrap_or(Ok(())) {
            Ok(()) => state.allocated = state.allocated.map(|_| state.written),
            // The end of the file is unknown now: whatever is written may follow a partial record.
            Err(_) => {
                state.failure = Some(Failure {
                    what: "write",
                    source: copy_of(&source),
                });
            }
        }
        self.failed(state, source)
    }

    fn preallocate(&self, state: &mut State) {
        let end = state.encoder.offset();
        if let Some(allocated) = state.allocated
            && let Some(storage) = &state.storage
            && end > allocated
            && let Some(new_end) = end.checked_next_multiple_of(self.options.preallocate_len)
        {
            let result = storage.allocate(state.written, new_end - state.written);
            // A failed request is not repeated.
            state.allocated = result.is_ok().then_some(new_end);
        }
    }

    /// Waits until everything written so far is on the disk. One of the waiting threads syncs for
    /// all of them, without holding the lock.
    fn wait_until_durable<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<(), Error> {
        let Some(storage) = state.storage.clone() else {
            return Err(self.refusal(&state));
        };
        let target = state.written;
        state.waiting += 1;
        let durable = loop {
            if state.durable >= target && state.is_name_durable {
                break Ok(());
            }
            if let Some(failure) = &state.failure {
                break Err(self.failed(&state, copy_of(&failure.source)));
            }
            state = if state.is_syncing {
                self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.lead_sync(state, &*storage)
            };
        };
        // Dropped under the lock, so that `close` never sees a handle held by a thread that has
        // stopped waiting.
        drop(storage);
        state.waiting -= 1;
        if state.waiting == 0 {
            self.sync_ended.notify_all();
        }
        durable
    }

    fn lead_sync<'a>(&'a self, mut state: MutexGuard<'a, State>, storage: &dyn Storage) -> MutexGuard<'a, State> {
        state.is_syncing = true;
        let end = state.written;
        state.sync_end = end;
        state.sync_begun = Instant::now();
        let syncs_name = !state.is_name_durable;
        drop(state);

        let mut result = storage.sync_data();
        if syncs_name {
            result = result.and_then(|()| storage.sync_folder());
        }

        let mut state = self.lock();
        state.is_syncing = false;
        match result {
            Ok(()) => {
                state.durable = end;
                state.is_name_durable = true;
                // What an earlier failed sync left unwritten was rewritten when the log was opened.
                unsynced::forget(storage.identity());
            }
            Err(source) => {
                unsynced::remember(storage.identity(), state.durable);
                state.failure = Some(Failure { what: "sync", source });
            }
        }
        self.sync_ended.notify_all();
        state
    }
}

/// Tries to write what has not been flushed, as `BufWriter` does.
impl Drop for LogFile {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        // No other thread has the log any more. After a panic while a record was appended, `check`
        // refuses.
        if let Some(mut state) = self.try_lock()
            && self.check(&state).is_ok()
        {
            // An error cannot be returned from here. `close` reports it.
            let _ = self.write_out(&mut state);
        }
    }
}
