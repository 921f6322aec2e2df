//! A [`LogFile`](super::LogFile)'s file operations. They are methods of a trait, so that tests can
//! record calls and make them fail.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, ErrorKind, Hint};
use crate::file::{self, FileId};
use crate::process::Process;

/// A file with one writer. No other process changes the file while it is open.
#[cfg_attr(
    not(feature = "test-storage"),
    allow(unreachable_pub, reason = "public for tests only")
)]
pub trait Storage: Debug + Send + Sync {
    /// Returns the length of the file in bytes.
    fn file_len(&self) -> io::Result<u64>;

    /// Reads some bytes at `offset` and returns the number of bytes read. Returns 0 at the end of
    /// the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` at `offset` and returns the number of bytes written. No write starts
    /// past the end of the file, but a write may extend the file.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Waits until the bytes and the length of the file are on disk.
    fn sync_data(&self) -> io::Result<()>;

    /// Waits until the file's name is on disk.
    fn sync_directory(&self) -> io::Result<()>;

    /// Returns the key under which a failed sync of this file is remembered, or `None` if the file
    /// has no identity.
    fn identity(&self) -> Option<FileId> {
        None
    }

    /// Returns the process that is using the file.
    fn process(&self) -> Process {
        Process::current()
    }
}

/// An operating-system file. It stays locked until the process that opened it drops this handle.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: File,
    /// Whether this is a regular file. A pipe or a device has no length and no offsets.
    pub(in crate::writer) is_regular: bool,
    identity: Option<FileId>,
    /// The process that holds the lock.
    owner: u64,
    /// The directory of the file. It is opened along with the file, because the path may be
    /// relative and the working directory may change.
    pub(in crate::writer) directory: io::Result<File>,
}

/// The maximum number of times to reopen a file. Without this limit, opening a log could loop
/// forever on a file system that doesn't give files a lasting identity.
const REOPENED_MAX: usize = 10;

impl DiskFile {
    pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let mut file = DiskFile::open_once(path, options)?;
        for _ in 0..REOPENED_MAX {
            if file.has_path(path) {
                break;
            }
            file = DiskFile::open_once(path, options)?;
        }
        Ok(file)
    }

    fn open_once(path: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let failed = |source: io::Error| {
            let of_directory = (source.kind() == io::ErrorKind::IsADirectory).then_some(Hint::SegmentLen);
            Error::io(source, Some(path)).with_hint(of_directory)
        };
        let file = options.open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() {
            check_lock(file.try_lock()).map_err(|kind| Error::new(kind, Some(path)))?;
        }
        Ok(DiskFile {
            // If the file has no identity, failed syncs are not recorded, and `has_path` can't
            // detect that the path now names another file.
            identity: metadata.is_file().then(|| FileId::of(&file).ok()).flatten(),
            file,
            is_regular: metadata.is_file(),
            owner: Process::current().number(),
            directory: open_directory_of(path),
        })
    }

    /// Checks whether the path still names this file. Before this file was locked, another writer
    /// may have renamed it and created a new one. This older file would then receive records that
    /// are newer than those in the new file.
    pub(super) fn has_path(&self, path: &Path) -> bool {
        let Some(identity) = self.identity else { return true };
        match FileId::at(path) {
            Ok(other) => other == identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Drop for DiskFile {
    /// Releases the lock. Closing the file is not enough: a forked child also has the file open and
    /// shares the lock. The child must not release the lock, because the process that opened the
    /// file is still writing.
    fn drop(&mut self) {
        if self.is_regular && Process::current().number() == self.owner {
            // If this fails, closing the file releases the lock.
            let _ = self.file.unlock();
        }
    }
}

/// Checks whether a file can be written to, given the result of trying to lock it.
fn check_lock(locked: Result<(), TryLockError>) -> Result<(), ErrorKind> {
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::Locked),
        // The file system doesn't support locks, so a second writer cannot be kept out.
        Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(source)) => Err(ErrorKind::Io { source }),
    }
}

/// Opens the directory that contains the file. If the path is a symbolic link, this is the
/// directory of its target.
pub(super) fn open_directory_of(path: &Path) -> io::Result<File> {
    if !cfg!(unix) {
        // On systems other than Unix, a directory cannot be opened, and `sync_directory` has no
        // effect.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let path = path.canonicalize()?;
    File::open(path.parent().unwrap_or(&path))
}

/// Waits until the names in a directory are on disk.
pub(super) fn sync_directory(directory: &io::Result<File>) -> io::Result<()> {
    #[cfg(all(test, target_os = "linux"))]
    tests::note_sync(directory);
    match directory {
        Ok(directory) => match directory.sync_all() {
            // File systems that cannot sync a directory return this error. PostgreSQL also ignores
            // it (`fsync_fname_ext`).
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        },
        Err(_) if !cfg!(unix) => Ok(()),
        Err(error) => Err(copy_of(error)),
    }
}

impl Storage for DiskFile {
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file::read_at(&self.file, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.is_regular {
            file::write_at(&self.file, bytes, offset)
        } else {
            (&self.file).write(bytes)
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// Calls `fdatasync`, which also syncs the file's length. On macOS, this uses `F_FULLFSYNC`,
    /// because otherwise the data may remain in the disk's cache.
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_directory(&self) -> io::Result<()> {
        sync_directory(&self.directory)
    }

    fn identity(&self) -> Option<FileId> {
        self.identity
    }
}

/// Writes all of `bytes` at `offset`. This takes one write, unless the system accepts only some of
/// the bytes or a signal interrupts it.
pub(super) fn write_all(storage: &dyn Storage, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match storage.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns a copy of the error, because several callers may need it.
pub(super) fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Reads from a [`Storage`], starting at an offset.
pub(super) struct StorageReader<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) offset: u64,
    /// Called before each read. If it fails, so does the read.
    pub(super) interrupted: &'a dyn Fn() -> io::Result<()>,
}

impl Read for StorageReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.interrupted)()?;
        let len = self.storage.read_at(buffer, self.offset)?;
        self.offset += len as u64;
        Ok(len)
    }
}

/// Reads `len` bytes starting at `offset`, or fewer at the end of the file.
pub(super) fn read_at_most(storage: &dyn Storage, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader = StorageReader {
        storage,
        offset,
        interrupted: &|| Ok(()),
    };
    reader.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, target_os = "linux"))]
pub(super) use tests::take_synced;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    thread_local! {
        /// The directories this thread has synced. A file system doesn't provide this information.
        static SYNCED: RefCell<Vec<FileId>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note_sync(directory: &io::Result<File>) {
        let identity = directory.as_ref().ok().and_then(|file| FileId::of(file).ok());
        SYNCED.with_borrow_mut(|synced| synced.extend(identity));
    }

    /// Returns the directories this thread has synced since the last call, in order.
    pub(in crate::writer) fn take_synced() -> Vec<FileId> {
        SYNCED.take()
    }

    #[test]
    fn syncing_a_directory_that_could_not_be_opened_fails() {
        let error = sync_directory(&Err(io::ErrorKind::PermissionDenied.into())).expect_err("not opened");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        sync_directory(&File::open("/proc")).expect("a file system that cannot sync a directory");
        // `O_PATH` opens only the path of the directory, so every other call on the descriptor
        // fails.
        let path_only = OpenOptions::new().read(true).custom_flags(0x20_0000).open("/");
        sync_directory(&path_only).expect_err("a directory that is not open for this");
    }

    #[test]
    fn opens_without_a_lock_only_if_locking_is_unsupported() {
        let failed = |kind: io::ErrorKind| check_lock(Err(TryLockError::Error(kind.into())));
        assert!(matches!(failed(io::ErrorKind::Unsupported), Ok(())));
        assert!(
            matches!(failed(io::ErrorKind::PermissionDenied), Err(ErrorKind::Io { source })
            if source.kind() == io::ErrorKind::PermissionDenied)
        );
        assert!(matches!(
            check_lock(Err(TryLockError::WouldBlock)),
            Err(ErrorKind::Locked)
        ));
    }

    #[test]
    fn a_failed_sync_returns_the_operating_system_error() {
        let mut file = DiskFile::open(Path::new("/dev/null"), OpenOptions::new().write(true)).expect("a device");
        file.sync_data().expect_err("a device that cannot be synced");
        file.directory = Err(io::ErrorKind::PermissionDenied.into());
        file.sync_directory().expect_err("a directory that is not open");
    }

    /// A forked child and a second handle to the open file share the lock.
    #[test]
    fn only_the_process_that_opened_a_file_releases_its_lock() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let open = || DiskFile::open(file.path(), OpenOptions::new().read(true).write(true));
        for is_forked in [false, true] {
            let mut opened = open().expect("no lock");
            let _shared = opened.file.try_clone().expect("a handle");
            opened.owner += u64::from(is_forked);
            drop(opened);
            assert_eq!(open().is_err(), is_forked);
        }
    }

    /// A failed sync is remembered under the identity of the file.
    #[test]
    fn an_open_file_has_the_same_identity_as_the_file_at_its_path() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_owned();
        let opened = DiskFile::open(file.path(), OpenOptions::new().read(true).write(true)).expect("no lock");
        assert_eq!(opened.identity(), Some(FileId::at(file.path()).expect("a name")));
        assert!(opened.has_path(file.path()));
        file.close().expect("a file that can be removed");
        assert!(!opened.has_path(&path));
    }
}
