//! The log file itself, which several threads may share.

use std::collections::TryReserveError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, TryLockError};

use super::options::{FlushPolicy, LogFileOptions, SyncPolicy};
use super::state::{Failure, LogStatus, State, after_panic};
use super::{Condvar, Mutex, MutexGuard};
use crate::damage::SkippedRegion;
use crate::dialect::LogFormat;
use crate::encode::{Encoder, Stopped};
use crate::error::{Error, ErrorKind, WriteFailure};
use crate::format::BLOCK_LEN;
use crate::process::Process;
use crate::writer::BUFFER_LEN;
use crate::writer::storage::copy_of;

/// A log file on disk that records are appended to.
///
/// * [`create`](LogFile::create) and [`create_new`](LogFile::create_new) create a new log.
///   [`append_to`](LogFile::append_to) reads an existing log and appends to it, but never directly
///   after an incomplete record. In contrast, when LevelDB reuses a log, it appends even directly
///   after an incomplete record, and loses the records that follow.
/// * Until the log is closed or dropped, the file is locked against a second writer, whether in
///   this process or another.
/// * Threads can share a log by reference. If several threads call
///   [`append_sync`](LogFile::append_sync) at the same time, they share a sync.
/// * A log belongs to the process that opened it. In a forked child, every call fails with
///   [`ErrorKind::Forked`], and closing or dropping the copy doesn't change the file or its lock.
///
/// # Crashes and failures
///
/// | the last operation on a record | survives the end of the process | survives a crash of the machine |
/// |---|---|---|
/// | [`append`](LogFile::append) returned, [`FlushPolicy::EveryAppend`] (the default) | yes | once synced |
/// | [`append`](LogFile::append) returned, [`FlushPolicy::OnClose`] | once flushed | once synced |
/// | [`flush`](LogFile::flush) returned | yes | once synced |
/// | [`sync`](LogFile::sync) or [`append_sync`](LogFile::append_sync) returned, so the record is before [`durable_offset`](LogFile::durable_offset) | yes | yes |
///
/// With [`FlushPolicy::OnClose`], records are buffered and written about 256 KiB at a time.
/// [`flush`](LogFile::flush), [`sync`](LogFile::sync) and [`close`](LogFile::close) write the rest.
/// **Call `close` to learn whether everything was written.** Dropping the log also tries to flush,
/// but cannot report a failure. It does not flush after a permanent failure or in a forked child.
/// Dropping never syncs, under any policy, and does not write Pebble's end-of-log trailer.
///
/// # Failures
///
/// A failed or partial write is undone by truncating the file to the end of the last completely
/// written record. The record being appended when the write failed is not in the log. Earlier
/// records still in the buffer stay there, and the next flush tries to write them again. If the
/// file cannot be truncated either, its end is unknown, and every later call fails.
///
/// After a failed sync, every later call also fails. A failed sync cannot be retried, because the
/// system reports the failure only once and may have dropped the bytes it could not write. To
/// continue, reopen the file with [`append_to`](LogFile::append_to). In the same process,
/// `append_to` rewrites the bytes after the durable offset, so that the next sync covers them. In
/// another process, pass a [checkpoint](LogFileOptions::checkpoint) to make `append_to` rewrite the
/// bytes after it.
///
/// A panic while a record is being appended, for example in an iterator passed to
/// [`extend`](LogFile::extend), also makes every later call fail.
///
/// ```
/// use cordwood_log::{LogFile, LogFileOptions, SyncPolicy};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("example.log");
/// let log = LogFile::create_new(&path, LogFileOptions::default())?;
/// log.append(b"one")?;
/// log.append_sync(b"two")?; // both are on disk
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
    pub(super) options: LogFileOptions,
    pub(super) path: Option<PathBuf>,
    pub(super) format: LogFormat,
    pub(super) discarded_tail: Option<SkippedRegion>,
    pub(super) process: Process,
    /// The process that opened the log.
    pub(super) owner: u64,
    pub(super) state: Mutex<State>,
    /// Notified when a sync succeeds or fails, and when no thread is waiting for a sync anymore.
    pub(super) sync_ended: Condvar,
}

impl LogFile {
    /// Returns the format in which the log is written, as given by the options. If they don't name
    /// a dialect, the detected one is used.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Returns the bytes that followed the last complete record when the log was opened, or `None`
    /// if no bytes followed it. The [options](LogFileOptions::on_torn_tail) determine whether these
    /// bytes were cut off or kept.
    pub fn discarded_tail(&self) -> Option<SkippedRegion> {
        self.discarded_tail
    }

    /// Returns the path used to open the log.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the length of the file in bytes, including records that haven't been written yet.
    /// While a container is open, its length is not known yet, so this is the lowest possible
    /// offset for the next record.
    pub fn offset(&self) -> u64 {
        self.status().offset
    }

    /// Returns how much of the file is on disk. Everything before this file offset survives a
    /// machine crash. The offset is 0 before this writer's first sync.
    pub fn durable_offset(&self) -> u64 {
        self.status().durable_offset
    }

    /// Returns the state of the log. Waits while another thread is writing, but not while a thread
    /// is syncing.
    ///
    /// ```
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.append(b"one")?;
    /// let status = log.status();
    /// assert_eq!((status.offset, status.durable_offset, status.is_closed), (10, 0, false));
    /// # log.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn status(&self) -> LogStatus {
        if self.is_forked() {
            // Another thread of the parent may have held the lock when the fork happened. In the
            // child, no thread would ever release it.
            return self.try_status().unwrap_or(LogStatus::UNKNOWN);
        }
        self.lock().status(self.options.origin)
    }

    /// Returns the [`status`](Self::status) without waiting, or `None` while another thread is
    /// writing.
    pub fn try_status(&self) -> Option<LogStatus> {
        self.try_lock().map(|state| state.status(self.options.origin))
    }

    /// Appends a record, which may be empty, and returns the file offset of its first header.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::RecordTooLarge`] if the record has more than
    ///   [`record_len_max`](LogFileOptions::record_len_max) bytes. The record is not appended.
    /// * [`ErrorKind::Write`] if the write fails, if a sync that the [policy](LogFileOptions::sync)
    ///   requires fails, or if there isn't enough memory for the buffer
    ///   ([`io::ErrorKind::OutOfMemory`]). See [Failures](LogFile#failures).
    /// * [`ErrorKind::Closed`] if the log is closed, and [`ErrorKind::Forked`] in a forked child.
    #[inline]
    pub fn append(&self, record: &[u8]) -> Result<u64, Error> {
        self.append_and(record, false)
    }

    /// Appends a record. Once the record and everything before it are on disk, returns the record's
    /// offset.
    ///
    /// While one thread waits for the disk, others can append. The next sync covers everything
    /// appended in the meantime.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append`](Self::append).
    ///
    /// ```
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("example.log");
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
        let (offset, unsynced) = self.append_unsynced(record, syncs)?;
        self.wait_for(unsynced)?;
        Ok(offset)
    }

    /// Appends a record and returns its log offset. Also returns the locked state if the caller
    /// must wait until the record is on disk.
    #[inline]
    pub(in crate::writer) fn append_unsynced(
        &self,
        record: &[u8],
        syncs: bool,
    ) -> Result<(u64, Option<MutexGuard<'_, State>>), Error> {
        let mut state = self.usable()?;
        self.reserve(&mut state, record.len())?;
        let packs = state.encoder.packs();
        let mut syncs = syncs;
        if packs {
            if !syncs && let Some(offset) = self.gather(&mut state, record) {
                return Ok((self.options.origin + offset, None));
            }
            syncs = self.prepare_container(&mut state, record.len(), syncs)?;
        }
        let before = state.mark();
        let offset = if record.len() >= BUFFER_LEN {
            self.write_long(&mut state, record)
                .inspect_err(|_| state.take_back(before))?
        } else {
            state.encode(record)
        };
        syncs = syncs || !packs && self.is_due(&state, state.encoder.closed_offset());
        if syncs || self.writes_each() || state.buffer.len() >= BUFFER_LEN {
            self.write_out(&mut state).inspect_err(|_| state.take_back(before))?;
        }
        Ok((self.options.origin + offset, syncs.then_some(state)))
    }

    /// Adds a record to the open container if that is all that needs to be done. The container
    /// stays open, and nothing is written or synced.
    // Inlining this function would slow down appends to logs without containers.
    #[inline(never)]
    fn gather(&self, state: &mut State, record: &[u8]) -> Option<u64> {
        let is_never_due = matches!(self.options.sync, SyncPolicy::Never | SyncPolicy::OnClose);
        if self.writes_each() || !is_never_due {
            return None;
        }
        state.encoder.add_to_container(record)
    }

    /// Prepares to append a record to a log with containers. Returns whether the record must be
    /// synced, either because `syncs` is set or because the policy requires it.
    ///
    /// If this append writes the record to the file, the open container is closed first. A failed
    /// write then removes only this record. Otherwise, the record goes into the open container. If
    /// the buffer is full, it is written first.
    #[inline(never)]
    fn prepare_container(&self, state: &mut State, record_len: usize, syncs: bool) -> Result<bool, Error> {
        let len = state.encoder.encoded_len_max(record_len);
        // The length of the open container is not known yet, so this end is an upper bound.
        let end = state.encoder.closed_offset().saturating_add(len);
        let syncs = syncs || self.is_due(state, end);
        if syncs || self.writes_each() || !Encoder::shares_container(record_len) {
            state.end_container();
        } else if state.buffer.len() as u64 + len >= BUFFER_LEN as u64 {
            self.write_buffer(state)?;
        }
        Ok(syncs)
    }

    /// Appends several records under one lock and returns how many were appended. If the policy
    /// requires a sync, the log syncs once, after the last record. Other threads wait until all the
    /// records have been appended. The iterator must not use the log itself.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append`](Self::append). If a record is too long, the records
    /// before it have already been appended. If a write fails, any records from this call that had
    /// already reached the file stay in the log, and the rest are removed. The log ends at the
    /// offset that [`offset`](Self::offset) returns.
    pub fn extend<R: AsRef<[u8]>>(&self, records: impl IntoIterator<Item = R>) -> Result<u64, Error> {
        let (extended, unsynced) = self.extend_unsynced(records)?;
        self.wait_for(unsynced)?;
        extended
    }

    /// Appends several records. Returns how many were appended, or the error for the refused
    /// record. Also returns the locked state if the caller must wait until the appended records are
    /// on disk.
    #[expect(clippy::type_complexity, reason = "the result of `extend`, and what it waits for")]
    pub(in crate::writer) fn extend_unsynced<R: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = R>,
    ) -> Result<(Result<u64, Error>, Option<MutexGuard<'_, State>>), Error> {
        let mut state = self.usable()?;
        state.end_container();
        let (before, start) = (state.mark(), state.encoder.closed_offset());
        let mut records = records.into_iter();
        let mut count = 0;
        let encoded = loop {
            let State { encoder, buffer, .. } = &mut *state;
            match encoder.encode_all(
                &mut records,
                buffer,
                BUFFER_LEN,
                self.options.record_len_max,
                &mut count,
            ) {
                Stopped::AtEnd => break Ok(()),
                Stopped::Full => self.write_buffer(&mut state).inspect_err(|_| state.take_back(before))?,
                Stopped::At(record) => {
                    let record = record.as_ref();
                    if let Err(error) = self.reserve(&mut state, record.len()) {
                        break Err(error);
                    }
                    self.write_long(&mut state, record)
                        .inspect_err(|_| state.take_back(before))?;
                    count += 1;
                }
                Stopped::TooLarge(record_len) => break Err(self.too_large(&state, record_len)),
                Stopped::NoMemory(error) => break Err(self.out_of_memory(&state, error)),
            }
        };
        if self.writes_each() {
            self.write_out(&mut state).inspect_err(|_| state.take_back(before))?;
        }
        // A sync may be due even if a record was too long, because the records before it are in the
        // log.
        let syncs = state.encoder.offset() > start && self.is_due(&state, state.encoder.end_max());
        if syncs {
            self.write_out(&mut state).inspect_err(|_| state.take_back(before))?;
        }
        Ok((encoded.map(|()| count), syncs.then_some(state)))
    }

    /// If `unsynced` contains a state, waits until everything that has been written is on disk.
    pub(in crate::writer) fn wait_for(&self, unsynced: Option<MutexGuard<'_, State>>) -> Result<(), Error> {
        let Some(state) = unsynced else { return Ok(()) };
        let end = state.written;
        self.wait_until_durable(state, end)
    }

    /// Appends a record if it can be appended without waiting for the operating system or another
    /// thread. Otherwise, or if the record is too long, returns `None` without appending it. With
    /// [`FlushPolicy::EveryAppend`], this always returns `None`.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] after a permanent failure, [`ErrorKind::Closed`] if the log is
    /// closed, and [`ErrorKind::Forked`] in a forked child.
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
        let is_too_large = record.len() as u64 > self.options.record_len_max;
        if state.encoder.packs()
            && !is_too_large
            && let Some(offset) = self.gather(&mut state, record)
        {
            return Ok(Some(self.options.origin + offset));
        }
        // This length is an upper bound. If it is too high, the caller must use `append`.
        let len = state.encoder.encoded_len_max(record.len());
        let end = state.encoder.offset().saturating_add(len);
        let is_full = state.buffer.len() as u64 + len >= BUFFER_LEN as u64;
        if is_full || is_too_large || self.is_due(&state, end) {
            return Ok(None);
        }
        Ok(Some(self.options.origin + state.encode(record)))
    }

    /// Writes all buffered records to the file. They then survive the end of this process, but not
    /// a machine crash.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the
    /// log is closed, and [`ErrorKind::Forked`] in a forked child. See
    /// [Failures](LogFile#failures).
    pub fn flush(&self) -> Result<(), Error> {
        self.flushed().map(drop)
    }

    /// Writes all records appended so far and returns the locked state.
    pub(in crate::writer) fn flushed(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.usable()?;
        self.write_out(&mut state)?;
        Ok(state)
    }

    /// Writes all records appended so far and waits until they are on disk.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if a write or a sync has failed, [`ErrorKind::Closed`] if the
    /// log is closed, and [`ErrorKind::Forked`] in a forked child. See
    /// [Failures](LogFile#failures).
    pub fn sync(&self) -> Result<(), Error> {
        self.wait_for(Some(self.flushed()?))
    }

    /// Notes that the operation named `what` has failed, and returns the error for this call.
    /// Every later call fails.
    #[cold]
    pub(in crate::writer) fn fail(&self, what: &'static str, source: io::Error) -> Error {
        let mut state = self.lock();
        let error = copy_of(&source);
        state.fail(what, source);
        self.failed(&state, error)
    }

    /// Returns a lower and an upper bound for the current length of the file, including an open
    /// container.
    pub(in crate::writer) fn ends(&self) -> (u64, u64) {
        let state = self.lock();
        (state.encoder.offset(), state.encoder.end_max())
    }

    /// Waits until every byte before the file offset `offset` is on disk. This doesn't append a
    /// record, so a thread can wait for records appended by other threads. If another thread is
    /// syncing, this call waits for that sync to end. If the bytes are still not on disk, this call
    /// syncs the file itself.
    ///
    /// To wait for a record, pass the value that [`offset`](Self::offset) returns after appending
    /// it. [`append`](Self::append) returns where the record starts, not where it ends.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if `offset` is past the end of the log
    ///   ([`io::ErrorKind::InvalidInput`]).
    /// * [`ErrorKind::Write`] after a permanent failure, even if the bytes were already known to be
    ///   on disk. See [Failures](LogFile#failures).
    /// * [`ErrorKind::Closed`] if the log is closed, and [`ErrorKind::Forked`] in a forked child.
    ///
    /// ```
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.append(b"one")?;
    /// let end = log.offset();
    /// std::thread::scope(|scope| scope.spawn(|| log.wait_durable(end)).join().unwrap())?;
    /// assert!(log.durable_offset() >= end);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_durable(&self, offset: u64) -> Result<(), Error> {
        let (state, end) = self.written_to(offset)?;
        self.wait_until_durable(state, end)
    }

    /// Writes the records before the log offset `offset`. Returns the locked state and the file
    /// offset to sync up to.
    pub(in crate::writer) fn written_to(&self, offset: u64) -> Result<(MutexGuard<'_, State>, u64), Error> {
        let mut state = self.usable()?;
        let end = self.options.origin + state.encoder.offset();
        if offset > end {
            let text = format!("the offset {offset} is after the end of the log, {end}");
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(Error::io(source, self.path.as_deref()));
        }
        let offset = offset - self.options.origin;
        if offset > state.written {
            self.write_out(&mut state)?;
        }
        Ok((state, offset))
    }

    /// Closes the log.
    ///
    /// Writes all records appended so far and waits until they are on disk, unless the
    /// [policy](LogFileOptions::sync) is [`SyncPolicy::Never`]. `close` also waits for threads that
    /// are waiting for a sync. It then releases the file, so that another writer can open it.
    ///
    /// Every later call fails with [`ErrorKind::Closed`], except for calls to `close` and to
    /// methods that only return information about the log. A second call to `close` waits until the
    /// first has released the file. Unlike [`Writer::finish`](crate::Writer::finish), `close` does
    /// not consume the log, because threads may share it.
    ///
    /// In a forked child, `close` doesn't write anything and does not release the lock. It only
    /// closes the child's copy of the descriptor.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Write`] if records after [`durable_offset`](Self::durable_offset) may
    /// be lost. The log is closed even if this error is returned.
    ///
    /// ```
    /// use cordwood_log::{Error, ErrorKind, LogFile, LogFileOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.close()?;
    /// assert!(matches!(log.append(b"one"), Err(Error { kind: ErrorKind::Closed, .. })));
    /// LogFile::append_to(&path, LogFileOptions::default())?; // another writer may have it now
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> Result<(), Error> {
        if self.is_forked() {
            // Do not call `lock` here, for the reason given in `status`. This process has appended
            // no records, and the parent writes the buffered records.
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
        // A closed writer may be kept for a long time, so release its memory. Any bytes that
        // haven't been written are lost, but `finished` is an error in that case.
        state.buffer = Vec::new();
        state.encoder = Encoder::new(state.encoder.offset());
        finished
    }

    fn finish(&self, mut state: MutexGuard<'_, State>) -> Result<(), Error> {
        let usable = self.check(&state);
        // From here on, no records can be appended, because they would never be written.
        state.is_closed = true;
        usable?;
        let State { encoder, buffer, .. } = &mut *state;
        // Writes the end-of-log trailer. In a log without records, the file header comes first.
        encoder.start(buffer);
        encoder.end(buffer);
        self.write_out(&mut state)?;
        if self.options.sync == SyncPolicy::Never {
            return Ok(());
        }
        self.wait_for(Some(state))
    }

    /// Checks whether this log is a forked child's copy.
    #[inline]
    fn is_forked(&self) -> bool {
        self.process.number() != self.owner
    }

    #[inline]
    fn check_owner(&self) -> Result<(), Error> {
        if self.is_forked() {
            return Err(Error::new(ErrorKind::Forked, self.path.as_deref()));
        }
        Ok(())
    }

    #[inline]
    fn writes_each(&self) -> bool {
        self.options.flush == FlushPolicy::EveryAppend
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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
    pub(in crate::writer) fn usable(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.check_owner()?;
        let state = self.lock();
        self.check(&state)?;
        Ok(state)
    }

    /// Reserves room in the buffer for a long record, or fails if there is not enough memory.
    #[inline]
    fn reserve(&self, state: &mut State, record_len: usize) -> Result<(), Error> {
        if record_len as u64 > self.options.record_len_max {
            return Err(self.too_large(state, record_len));
        }
        if record_len < BLOCK_LEN {
            return Ok(());
        }
        let State { encoder, buffer, .. } = state;
        let reserved = encoder
            .try_reserve_frame(record_len)
            // Longer records are written in pieces.
            .and_then(|()| encoder.try_reserve(record_len.min(BUFFER_LEN + BLOCK_LEN), buffer));
        reserved.map_err(|error| self.out_of_memory(state, error))
    }

    #[cold]
    fn too_large(&self, state: &State, record_len: usize) -> Error {
        let kind = ErrorKind::RecordTooLarge {
            offset: self.options.origin + state.encoder.offset(),
            record_len: record_len as u64,
            record_len_max: self.options.record_len_max,
        };
        Error::new(kind, self.path.as_deref())
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
    pub(super) fn refusal(&self, state: &State) -> Error {
        match &state.failure {
            Some(Failure { what, source, .. }) if state.storage.is_some() => {
                self.write_error(state, copy_of(source), Some(what))
            }
            _ => Error::new(ErrorKind::Closed, self.path.as_deref()),
        }
    }

    /// Returns the error for a failed write or sync. The state must already have been updated.
    pub(super) fn failed(&self, state: &State, source: io::Error) -> Error {
        self.write_error(state, source, None)
    }

    fn write_error(&self, state: &State, source: io::Error, earlier: Option<&'static str>) -> Error {
        let failure = WriteFailure {
            earlier,
            durable_offset: self.options.origin + state.durable,
            is_undone: state.failure.is_none() && !state.is_closed,
            undo_error: state
                .failure
                .as_ref()
                .and_then(|failure| failure.undo_error.as_ref())
                .map(copy_of),
        };
        Error::new(ErrorKind::Write { source, failure }, self.path.as_deref())
    }

    /// Checks whether the policy requires a sync when the log ends at `end`.
    #[inline]
    fn is_due(&self, state: &State, end: u64) -> bool {
        match self.options.sync {
            SyncPolicy::Never | SyncPolicy::OnClose => false,
            SyncPolicy::EveryAppend => true,
            SyncPolicy::EveryBytes(len) => end - state.sync_end >= len,
            SyncPolicy::EveryInterval(time) => state.sync_started.elapsed() >= time,
        }
    }
}

/// Tries to write the unflushed bytes, as `BufWriter` does.
impl Drop for LogFile {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        // No other thread can use the log now. If a thread panicked while appending a record,
        // `check` returns an error.
        if let Some(mut state) = self.try_lock()
            && self.check(&state).is_ok()
        {
            // Dropping cannot report an error, but `close` can.
            let _ = self.write_out(&mut state);
        }
    }
}
