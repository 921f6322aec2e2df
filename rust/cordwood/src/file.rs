//! Files of the operating system: reads and writes at offsets, and the identity of a file.
//!
//! Nothing here uses the position that belongs to an open file: a forked process shares it.

use std::fs::{File, Metadata};
use std::io;

/// The identity of a file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device that contains it.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
}

impl FileId {
    /// The identity of a regular file. No other file has it while this one exists or is open.
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        metadata.is_file().then(|| FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// On other systems the standard library does not identify the file.
    #[cfg(not(unix))]
    pub(crate) fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }
}

/// Reads some bytes at `offset` and returns how many; 0 at the end of the file.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    // No file has bytes at offsets from `i64::MAX` on, and operating systems reject such reads.
    let room = usize::try_from((i64::MAX as u64).saturating_sub(offset)).unwrap_or(usize::MAX);
    let wanted = buffer.len().min(room);
    if wanted == 0 {
        return Ok(0);
    }
    system_read_at(file, &mut buffer[..wanted], offset)
}

/// Fills `buffer` from `offset` on, as far as the file goes, and returns how many bytes it read. A
/// read that is interrupted by a signal is repeated.
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

/// Writes some of `bytes` at `offset` and returns how many.
#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

/// Writes some of `bytes` at `offset` and returns how many.
#[cfg(windows)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}
