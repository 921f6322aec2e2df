//! An open file that keeps its own read position.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::file;

/// An open file with its own read position. Other users of the same open file, such as another
/// thread or a forked process, can't move it.
///
/// A clone reads the same open file from the same position, even if the path now refers to another
/// file. Pipes and devices don't have a position, so all clones consume the same stream.
#[derive(Debug, Clone)]
pub struct FileReader {
    file: Arc<File>,
    /// The file offset of the next byte, or `None` for a pipe or a device.
    position: Option<u64>,
}

impl FileReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Returns the error from the operating system, or [`io::ErrorKind::IsADirectory`] for a
    /// directory.
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

    /// Returns the current length of the file in bytes, or `None` for a pipe or a device.
    ///
    /// # Errors
    ///
    /// Returns the error from the operating system.
    pub fn file_len(&self) -> io::Result<Option<u64>> {
        match self.position {
            Some(_) => Ok(Some(self.file.metadata()?.len())),
            None => Ok(None),
        }
    }

    /// Reads into `buffer` from the file offset `offset` until the buffer is full or the file ends.
    /// Returns the number of bytes read. Does not change the read position.
    pub(super) fn read_full_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file::read_full_at(&self.file, buffer, offset)
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(position) = &mut self.position else {
            return self.file.as_ref().read(buffer);
        };
        let len = file::read_at(&self.file, buffer, *position)?;
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
