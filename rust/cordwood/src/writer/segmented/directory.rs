//! A [`SegmentedLog`](super::SegmentedLog)'s operations on its directory. They are methods of a
//! trait, so that tests can record calls and make them fail.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::process::Process;
use crate::segments::{self, LOCK_NAME, Segment, name_of};
use crate::writer::storage::{DiskFile, Storage, open_directory_of, sync_directory};

/// A directory of segments with one writer. Each segment is named after the log offset of its first
/// byte.
#[cfg_attr(
    not(feature = "test-storage"),
    allow(unreachable_pub, reason = "public for tests only")
)]
pub trait Directory: Debug + Send + Sync {
    /// Returns the segments, ordered by offset.
    fn list(&self) -> Result<Vec<Segment>, Error>;

    /// Opens the segment starting at `offset`.
    fn open(&self, offset: u64) -> Result<Box<dyn Storage>, Error>;

    /// Creates an empty segment starting at `offset`. A file with the segment's name must not exist
    /// yet.
    fn create(&self, offset: u64) -> Result<Box<dyn Storage>, Error>;

    /// Checks whether a file with this segment's name exists, or may exist.
    fn has(&self, offset: u64) -> bool;

    /// Removes the segment starting at `offset`.
    fn remove(&self, offset: u64) -> Result<(), Error>;

    /// Returns how long ago the segment starting at `offset` was last changed, or `None` if,
    /// according to the clock, that time is in the future.
    fn age_of(&self, _offset: u64) -> Option<Duration> {
        None
    }

    /// Waits until all changes to the directory's entries are on disk.
    fn sync(&self) -> io::Result<()>;

    /// Returns whether the directory already contained its lock when it was opened. If it did, the
    /// directory belongs to a log, even if its files don't look like logs.
    fn had_lock(&self) -> bool {
        false
    }

    /// Returns the process that uses the directory.
    fn process(&self) -> Process {
        Process::current()
    }
}

/// An operating-system directory. It stays locked until the process that opened it drops this
/// handle.
#[derive(Debug)]
pub(super) struct DiskDirectory {
    /// The path as the caller gave it, for errors.
    path: PathBuf,
    /// The absolute path, so that it doesn't matter if the working directory changes.
    absolute: PathBuf,
    lock: DiskFile,
    had_lock: bool,
}

impl DiskDirectory {
    /// Opens the directory, creating it first if it does not exist and `is_created` is set.
    pub(super) fn open(path: &Path, is_created: bool) -> Result<Self, Error> {
        let failed = |source| Error::io(source, Some(path));
        let absolute = std::path::absolute(path).map_err(failed)?;
        if is_created {
            let is_new = match fs::create_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                created => created.is_ok(),
            };
            sync_name(&open_directory_of(path), is_new).map_err(failed)?;
        }
        // Check this first, because locking creates a file, and no file may be created in a
        // directory that is not a segmented log.
        segments::list(path)?;
        let lock_path = path.join(LOCK_NAME);
        let mut open = OpenOptions::new();
        open.read(true).write(true);
        let (lock, had_lock) = match DiskFile::open(&lock_path, &open) {
            Err(Error {
                kind: ErrorKind::Io { source },
                ..
            }) if source.kind() == io::ErrorKind::NotFound => (DiskFile::open(&lock_path, open.create(true)), false),
            lock => (lock, true),
        };
        let lock = lock.map_err(|error| match error.kind {
            ErrorKind::Locked => Error::new(ErrorKind::Locked, Some(path)),
            _ if lock_path.is_dir() => Error::new(ErrorKind::NotASegment, Some(&lock_path)),
            _ => error,
        })?;
        if !had_lock {
            // The lock's name must be on disk before the first segment is created. Otherwise, a
            // crash could leave a segment that can be recognised neither by its bytes nor by a
            // lock.
            lock.sync_directory().map_err(failed)?;
        }
        Ok(DiskDirectory {
            path: path.to_owned(),
            absolute,
            lock,
            had_lock,
        })
    }

    /// Removes the lock if it was created when the directory was opened. The files might not belong
    /// to a log, and the lock would make the next attempt treat them as segments of a log.
    pub(super) fn remove_new_lock(&self) {
        if !self.had_lock {
            // No data is lost if the lock cannot be removed. See `is_segment` in the options.
            let _ = fs::remove_file(self.absolute.join(LOCK_NAME));
        }
    }

    fn path_of(&self, offset: u64) -> PathBuf {
        self.absolute.join(name_of(offset))
    }

    fn named(&self, error: Error) -> Error {
        error.with_path_below(&self.absolute, &self.path)
    }

    /// Returns an error if the path now names another directory, which may belong to another log.
    fn check_place(&self) -> Result<(), Error> {
        if self.lock.has_path(&self.absolute.join(LOCK_NAME)) {
            return Ok(());
        }
        let text = "the directory of this log, or the file LOCK in it, was moved or removed";
        let source = io::Error::new(io::ErrorKind::NotFound, text);
        Err(Error::io(source, Some(&self.path)))
    }
}

/// Syncs `parent`, so that the name of the log's directory is on disk. Otherwise, a crash can lose
/// the directory and all segments in it. This is needed even for an existing directory, because the
/// process that created it may have exited before syncing the name.
fn sync_name(parent: &io::Result<File>, is_new: bool) -> io::Result<()> {
    match sync_directory(parent) {
        // Another user created the directory, in a parent directory that the current user cannot
        // read.
        Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

impl Directory for DiskDirectory {
    fn list(&self) -> Result<Vec<Segment>, Error> {
        segments::list(&self.absolute).map_err(|error| self.named(error))
    }

    fn open(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        let file = DiskFile::open(&self.path_of(offset), OpenOptions::new().read(true).write(true));
        Ok(Box::new(file.map_err(|error| self.named(error))?))
    }

    fn create(&self, offset: u64) -> Result<Box<dyn Storage>, Error> {
        self.check_place()?;
        let file = DiskFile::open(
            &self.path_of(offset),
            OpenOptions::new().read(true).write(true).create_new(true),
        );
        Ok(Box::new(file.map_err(|error| self.named(error))?))
    }

    fn has(&self, offset: u64) -> bool {
        let metadata = self.path_of(offset).symlink_metadata();
        !metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    fn remove(&self, offset: u64) -> Result<(), Error> {
        self.check_place()?;
        let path = self.path_of(offset);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.named(Error::io(error, Some(&path)))),
            _ => Ok(()),
        }
    }

    fn age_of(&self, offset: u64) -> Option<Duration> {
        self.path_of(offset).metadata().ok()?.modified().ok()?.elapsed().ok()
    }

    fn sync(&self) -> io::Result<()> {
        self.lock.sync_directory()
    }

    fn had_lock(&self) -> bool {
        self.had_lock
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_parent_directory_is_accepted_only_for_an_existing_log() {
        let synced = |kind: io::ErrorKind, is_new| sync_name(&Err(kind.into()), is_new).is_ok();
        assert!(synced(io::ErrorKind::PermissionDenied, false));
        assert!(!synced(io::ErrorKind::PermissionDenied, true));
        assert!(!synced(io::ErrorKind::NotFound, false));
    }

    #[test]
    fn directory_syncs_use_the_lock_handle() {
        let place = tempfile::tempdir().expect("a directory");
        let mut directory = DiskDirectory::open(place.path(), false).expect("an empty directory");
        directory.sync().expect("a directory on the disk");
        directory.lock.directory = Err(io::ErrorKind::PermissionDenied.into());
        directory.sync().expect_err("a directory that is not open");
    }

    /// A name isn't on disk until the directory containing it is synced. The log's name is in its
    /// parent directory, and the lock's name is in the log's directory.
    #[cfg(target_os = "linux")]
    #[test]
    fn syncs_a_new_directory_and_lock_file_before_using_the_log() {
        use crate::file::FileId;
        use crate::writer::storage::take_synced;

        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("log");
        let parent = FileId::at(place.path()).expect("a directory");
        let synced_by = |is_created| {
            take_synced();
            DiskDirectory::open(&path, is_created).expect("a log");
            take_synced()
        };
        let created = synced_by(true);
        let own = FileId::at(&path).expect("a directory");
        assert_eq!(created, [parent, own]);
        // Another process may have created the directory and exited before syncing it.
        assert_eq!(synced_by(true), [parent]);
        assert_eq!(synced_by(false), []);
        fs::remove_file(path.join(LOCK_NAME)).expect("the lock");
        assert_eq!(synced_by(false), [own]);
    }
}
