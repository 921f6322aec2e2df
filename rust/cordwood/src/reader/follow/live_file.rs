//! A growing file, and the part that has been read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::decode::Window;
use crate::file::{FileId, read_full_at};
use crate::format::BLOCK_LEN;

/// Bytes requested per read when there is a backlog.
const WINDOW_LEN: usize = 1 << 20;

/// The smallest read: a block, and the file header that may precede the first block.
const READ_LEN_MIN: usize = BLOCK_LEN + 16;

/// The state of the file on disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileStatus {
    pub(super) file_len: u64,
    /// The path names another file, or none.
    pub(super) is_rotated: bool,
}

/// A growing file, and the part that has been read.
#[derive(Debug)]
pub(super) struct LiveFile {
    pub(super) path: PathBuf,
    /// The absolute path, so that a change of the working directory does not matter.
    absolute: PathBuf,
    file: File,
    identity: FileId,
    /// The bytes from the file offset `offset` on; the first `len` are those of the file.
    buffer: Vec<u8>,
    offset: u64,
    pub(super) len: usize,
    /// The number of bytes that the last read requested.
    read_len: usize,
}

impl LiveFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe waits for its writer, so the path is checked first.
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "only a regular file can be followed",
            ));
        }
        let file = File::open(path)?;
        Ok(LiveFile {
            absolute: std::path::absolute(path)?,
            path: path.to_owned(),
            identity: FileId::of(&file)?,
            file,
            buffer: Vec::new(),
            offset: 0,
            len: 0,
            read_len: 0,
        })
    }

    pub(super) fn status(&self) -> io::Result<FileStatus> {
        let is_rotated = match FileId::at(&self.absolute) {
            Ok(identity) => identity != self.identity,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        // Even if another file has the name now, this one is read to its end.
        let file_len = self.file.metadata()?.len();
        Ok(FileStatus { file_len, is_rotated })
    }

    pub(super) fn window(&self) -> Window<'_> {
        Window {
            offset: self.offset,
            bytes: &self.buffer[..self.len],
            is_last: false,
        }
    }

    /// Reads the file from `offset` to at least the end of the block, or to the end of the file.
    /// The bytes read before are discarded: where the decoder found no valid fragment, it may be
    /// stale.
    pub(super) fn read(&mut self, offset: u64, file_len: u64) -> io::Result<()> {
        // Reads are long only while all of their bytes are used: after the written part, there may
        // be a gigabyte of zeros.
        let used = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let was_of_use = self.len == self.read_len && used.saturating_add(BLOCK_LEN) > self.len;
        let wanted = if was_of_use { self.read_len * 2 } else { READ_LEN_MIN };
        self.read_len = wanted.clamp(READ_LEN_MIN, WINDOW_LEN);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(self.read_len), 0);
        (self.offset, self.len) = (offset, 0);
        let filled = if offset < file_len {
            self.read_at(offset, &mut buffer[..self.read_len])
        } else {
            Ok(0)
        };
        self.buffer = buffer;
        self.len = filled?;
        Ok(())
    }

    /// Fills `buffer` from the file offset `offset` on, as far as the file goes.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_full_at(&self.file, buffer, offset)
    }

    /// The last `left` bytes of the block, from `at` on, where the last read began, with zeros for
    /// the bytes not written yet; and how many of them are written.
    pub(super) fn whole_block(&mut self, at: u64, left: usize) -> (Window<'_>, usize) {
        debug_assert_eq!(at, self.offset);
        let there = self.len.min(left);
        self.buffer[there..left].fill(0);
        let window = Window {
            offset: at,
            bytes: &self.buffer[..left],
            is_last: false,
        };
        (window, there)
    }
}
