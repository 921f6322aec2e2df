//! Reads and writes files at given offsets, and identifies files.
//!
//! No function here uses an open file's position, because forked processes share it.

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(test)]
pub(crate) mod tests;

/// The identity of a file, independent of its name. No other file has the same identity while this
/// file exists or is open.
#[cfg_attr(
    not(feature = "test-storage"),
    allow(unreachable_pub, reason = "public for tests only")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device containing the file. On Windows, this is the volume's serial number.
    pub device: u64,
    /// The file's number on its device.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    #[cfg(unix)]
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(FileId::in_metadata(&file.metadata()?))
    }

    /// Returns the identity of the file that currently has this name. Does not open the file,
    /// because opening a pipe could block.
    #[cfg(unix)]
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        #[cfg(test)]
        tests::before_call();
        Ok(FileId::in_metadata(&std::fs::metadata(path)?))
    }

    #[cfg(unix)]
    fn in_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Returns the identity of an open file.
    #[cfg(windows)]
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let information = winapi_util::file::information(file)?;
        Ok(FileId {
            device: information.volume_serial_number(),
            inode: information.file_index(),
        })
    }

    /// Returns the identity of the file that currently has this name. The creation time is not
    /// enough to identify a file: Windows reuses that time for a new file created under the same
    /// name within 15 seconds.
    #[cfg(windows)]
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        use std::os::windows::fs::OpenOptionsExt;
        // Without FILE_FLAG_BACKUP_SEMANTICS, a directory couldn't be opened.
        const FLAGS: u32 = 0x0200_0000;
        // Access to the file's contents is not requested, because another process may have locked
        // them.
        let file = File::options().access_mode(0).custom_flags(FLAGS).open(path)?;
        FileId::of(&file)
    }
}

/// Reads one or more bytes at `offset` and returns the number of bytes read. Returns 0 at the end
/// of the file.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    // No file has bytes at or after the offset `i64::MAX`, and operating systems reject reads
    // there.
    let room = usize::try_from((i64::MAX as u64).saturating_sub(offset)).unwrap_or(usize::MAX);
    let wanted = buffer.len().min(room);
    if wanted == 0 {
        return Ok(0);
    }
    #[cfg(test)]
    tests::before_call();
    system_read_at(file, &mut buffer[..wanted], offset)
}

/// Reads into `buffer` from `offset` until the buffer is full or the file ends. Returns the number
/// of bytes read. Retries a read that is interrupted by a signal.
pub(crate) fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_at(file, &mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(unix)]
fn system_read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn system_read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Writes some of `bytes` at `offset` and returns the number of bytes written.
#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

/// Writes some of `bytes` at `offset` and returns the number of bytes written.
#[cfg(windows)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}
