//! Creates a log file, or opens an existing one to append to it.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::options::LogFileOptions;
use super::state::State;
use super::{Condvar, LogFile, Mutex};
use crate::detect::{check_number, log_number_of};
use crate::dialect::LogFormat;
use crate::encode::Encoder;
use crate::error::{Error, ErrorKind, unsupported};
use crate::writer::append::{Recovered, cut, recover, unsynced};
use crate::writer::storage::{DiskFile, Storage};

/// Rejects logs that are never appended to, and options that the dialect does not support.
pub(in crate::writer) fn check_appended_to(format: LogFormat, path: Option<&Path>) -> Result<(), Error> {
    unsupported(format.check(), path)?;
    if format.is_appended_to() {
        return unsupported(format.check_to_write(), path);
    }
    Err(Error::new(ErrorKind::NeverAppended { format }, path))
}

impl LogFile {
    /// Creates a new log, replacing any existing file.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the file cannot be opened or emptied.
    /// * [`ErrorKind::Io`] with [`io::ErrorKind::InvalidInput`] if the log number in the file name
    ///   (12 in `000012.log`) differs from the one in the options.
    /// * [`ErrorKind::Locked`] if another writer has the file open. The file is not changed.
    /// * [`ErrorKind::Unsupported`] if the dialect does not support the log number or the
    ///   compression in the options, or if this build cannot write that compression. The file is
    ///   not changed.
    pub fn create(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        // Opening must not truncate the file, because another writer may have it open.
        Self::create_with(
            path.as_ref(),
            OpenOptions::new().write(true).create(true).truncate(false),
            options,
        )
    }

    /// Creates a new log. The file must not exist.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the file already exists ([`io::ErrorKind::AlreadyExists`]), cannot be
    ///   created, or has the wrong name, as in [`create`](Self::create).
    /// * [`ErrorKind::Unsupported`], as in [`create`](Self::create).
    pub fn create_new(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        Self::create_with(path.as_ref(), OpenOptions::new().write(true).create_new(true), options)
    }

    fn create_with(path: &Path, open: &OpenOptions, options: LogFileOptions) -> Result<Self, Error> {
        let failed = |source| Error::io(source, Some(path));
        unsupported(options.format().check_to_write(), Some(path))?;
        if let Some(number) = options.format().log_number {
            check_number(log_number_of(path), number).map_err(failed)?;
        }
        let file = DiskFile::open(path, open)?;
        Self::create_in_storage(Box::new(file), options, Some(path)).map_err(failed)
    }

    /// Opens a log for appending, or creates it if the file does not exist.
    ///
    /// Reads the file from its start or from the [checkpoint](LogFileOptions::checkpoint). If it
    /// does not end with a complete record, [`on_torn_tail`](LogFileOptions::on_torn_tail)
    /// determines how it is treated. [`discarded_tail`](Self::discarded_tail) describes the bytes
    /// after the last complete record.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the file cannot be opened, read or truncated, or is not a regular
    ///   file.
    /// * [`ErrorKind::Io`] if the checkpoint is greater than 0 and the file does not exist
    ///   ([`io::ErrorKind::NotFound`]), or if no record starts or ends at the checkpoint
    ///   ([`io::ErrorKind::InvalidInput`]).
    /// * [`ErrorKind::Locked`] if another writer has the file open.
    /// * [`ErrorKind::WrongDialect`] if the file's fragments are not in the dialect named in the
    ///   options.
    /// * [`ErrorKind::NeverAppended`] for a RocksDB or Pebble log that has a log number or is
    ///   compressed. These engines create a new log instead.
    /// * [`ErrorKind::Unsupported`], as in [`create`](Self::create).
    /// * [`ErrorKind::Foreign`] if the file is not a log.
    /// * [`ErrorKind::TornTail`] if the file ends with an incomplete record or with zeros, unless
    ///   the options request truncation or padding.
    /// * [`ErrorKind::Corruption`] if the file is damaged, unless the options request padding.
    ///
    /// ```
    /// use cordwood_log::{Error, ErrorKind, LogFile, LogFileOptions};
    /// use cordwood_log::OnTornTail;
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("example.log");
    /// let log = LogFile::create(&path, LogFileOptions::default())?;
    /// log.append(b"one")?;
    /// log.append(b"two")?;
    /// log.close()?;
    /// drop(log);
    /// std::fs::OpenOptions::new().write(true).open(&path)?.set_len(19)?; // as a crash may leave it
    ///
    /// let refused = LogFile::append_to(&path, LogFileOptions::default());
    /// let Err(Error { kind: ErrorKind::TornTail { region, .. }, .. }) = refused else { panic!() };
    /// assert_eq!(region.start, 10);
    /// let options = LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate);
    /// let log = LogFile::append_to(&path, options)?;
    /// assert_eq!(log.discarded_tail().map(|region| (region.start, region.end)), Some((10, 19)));
    /// assert_eq!(log.append(b"two again")?, 10);
    /// # log.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn append_to(path: impl AsRef<Path>, options: LogFileOptions) -> Result<Self, Error> {
        Self::append_to_unless(path, options, &|| Ok(()))
    }

    /// Like [`append_to`](Self::append_to), but interruptible. `interrupted` is called repeatedly
    /// while the file is read. If it returns an error, this call returns that error as an
    /// [`ErrorKind::Io`].
    ///
    /// ```
    /// use std::io;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use cordwood_log::{LogFile, LogFileOptions};
    /// static IS_CANCELLED: AtomicBool = AtomicBool::new(false);
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.log");
    /// let log = LogFile::append_to_unless(&path, LogFileOptions::default(), &|| {
    ///     match IS_CANCELLED.load(Ordering::Relaxed) {
    ///         true => Err(io::Error::other("cancelled")),
    ///         false => Ok(()),
    ///     }
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`append_to`](Self::append_to), and any error from `interrupted`.
    pub fn append_to_unless(
        path: impl AsRef<Path>,
        options: LogFileOptions,
        interrupted: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        // This check must come first, because opening the path would create the file.
        check_appended_to(options.format(), Some(path))?;
        // A log with a checkpoint must already exist. If the log is lost, creating a new log would
        // hide the loss.
        let is_new = options.checkpoint.unwrap_or(0) == 0;
        let mut open = OpenOptions::new();
        let file = DiskFile::open(path, open.read(true).write(true).create(is_new).truncate(false))?;
        if !file.is_regular {
            let text = "only a regular file can be read and then appended to";
            return Err(Error::io(io::Error::new(io::ErrorKind::InvalidInput, text), Some(path)));
        }
        Self::append_to_storage(Box::new(file), options, Some(path), Some(path), interrupted)
    }

    /// Opens the log in `storage` for appending. `path` is shown in errors, and `file` is the path
    /// of the file itself.
    pub(in crate::writer) fn append_to_storage(
        storage: Box<dyn Storage>,
        options: LogFileOptions,
        path: Option<&Path>,
        file: Option<&Path>,
        interrupted: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self, Error> {
        let recovered = recover(&*storage, &options, path, file, interrupted)?;
        Ok(Self::new(storage, options, recovered, path))
    }

    /// Like [`create`](Self::create), but for tests.
    #[cfg(feature = "test-storage")]
    pub fn create_in(storage: Box<dyn Storage>, options: LogFileOptions) -> io::Result<Self> {
        unsupported(options.format().check_to_write(), None)?;
        Self::create_in_storage(storage, options, None)
    }

    /// Creates a new log in `storage`. Errors contain `path`.
    pub(in crate::writer) fn create_in_storage(
        storage: Box<dyn Storage>,
        options: LogFileOptions,
        path: Option<&Path>,
    ) -> io::Result<Self> {
        if storage.file_len()? > 0 {
            cut(&*storage, 0, 0)?;
        }
        // A failed sync of the old contents does not affect the new ones.
        unsynced::forget(storage.identity());
        let format = options.format();
        let new = Recovered {
            format,
            ..Recovered::default()
        };
        Ok(Self::new(storage, options, new, path))
    }

    /// Marks this log as a segment that follows another segment. The previous segments may have
    /// used up a reader's decompression budget.
    pub(in crate::writer) fn after_another(mut self) -> Self {
        if let Ok(state) = self.state.get_mut() {
            state.encoder.use_up_budget();
        }
        self
    }

    /// Like [`append_to`](Self::append_to), but for tests.
    #[cfg(feature = "test-storage")]
    pub fn append_in(storage: Box<dyn Storage>, options: LogFileOptions) -> Result<Self, Error> {
        check_appended_to(options.format(), None)?;
        Self::append_to_storage(storage, options, None, None, &|| Ok(()))
    }

    fn new(storage: Box<dyn Storage>, options: LogFileOptions, recovered: Recovered, path: Option<&Path>) -> Self {
        let Recovered { format, file_len, tail } = recovered;
        let process = storage.process();
        let mut encoder = Encoder::unchecked(file_len, format);
        // The whole file is a padded tail, so the mark must be written again.
        if file_len > 0 && tail.is_some_and(|tail| tail.start == options.origin) {
            encoder.start_again();
        }
        let state = State {
            storage: Some(Arc::from(storage)),
            encoder,
            buffer: Vec::new(),
            written: file_len,
            // The existing contents may never have been synced successfully.
            durable: 0,
            is_name_durable: false,
            is_syncing: false,
            waiting: 0,
            sync_end: file_len,
            sync_started: Instant::now(),
            failure: None,
            is_closed: false,
        };
        LogFile {
            options,
            path: path.map(Path::to_owned),
            format,
            discarded_tail: tail,
            owner: process.number(),
            process,
            state: Mutex::new(state),
            sync_ended: Condvar::new(),
        }
    }
}
