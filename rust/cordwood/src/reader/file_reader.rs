//! An open file that is read at its own position.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// An open file with its own read position, which no other user of the same open file, such as
/// another thread or a forked process, can move.
///
/// A clone reads the same open file from the same position on, even if its path names another file
/// by now. A pipe or a device has no positions: it is read from its current state, also by clones.
#[derive(Debug, Clone)]
pub struct FileReader {
    file: Arc<File>,
    /// The file offset of the next byte; `None` for a pipe or a device.
    position: Option<u64>,
}

impl FileReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The error from the operating system, or [`io::ErrorKind::IsADirectory`] for a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(FileReader {
            file: Arc::new(file),
            position: metadata.is_file().then_some(0),
        })
    }

    /// The current length of the file in bytes; `None` for a pipe or a device.
    ///
    /// # Errors
    ///
    /// The error from the operating system.
    pub fn file_len(&self) -> io::Result<Option<u64>> {
        match self.position {
            Some(_) => Ok(Some(self.file.metadata()?.len())),
            None => Ok(None),
        }
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(position) = &mut self.position else {
            return self.file.as_ref().read(buffer);
        };
        // No file has bytes at offsets from `i64::MAX` on, and operating systems reject such reads.
        let room = usize::try_from((i64::MAX as u64).saturating_sub(*position)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(room);
        if wanted == 0 {
            return Ok(0);
        }
        let len = read_at(&self.file, &mut buffer[..wanted], *position)?;
        *position += len as u64;
        Ok(len)
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let Some(position) = &mut self.position else {
            return self.file.as_ref().seek(to);
        };
        let new = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        *position = new.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(*position)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
