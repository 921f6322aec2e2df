//! A growing file and the part of it that has been read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Directory, Next, not_opened, origin_of};
use crate::decode::Window;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::file::{FileId, read_full_at};
use crate::format::BLOCK_LEN;
use crate::reader::joint::Joint;
use crate::segments::{list_again, name_of};

/// The number of bytes to request per read while catching up.
const WINDOW_LEN: usize = 1 << 20;

/// Only one in this many attempts to find the next file lists the directory, because listing is
/// expensive.
const LOOKS_PER_LIST: u32 = 20;

/// The minimum length of a read: one block, plus the file header that may precede the first block.
const READ_LEN_MIN: usize = BLOCK_LEN + 16;

/// The state of the file on disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileStatus {
    pub(super) file_len: u64,
    /// Whether the path no longer exists or now refers to a different file. Always false in a
    /// segmented log.
    pub(super) is_rotated: bool,
    /// Whether this segment's path now refers to a different segment, possibly in another
    /// directory. Only that segment's contents show whether it belongs to the followed log.
    pub(super) is_replaced: bool,
}

/// A growing file and the part of it that has been read.
#[derive(Debug)]
pub(super) struct LiveFile {
    pub(super) path: PathBuf,
    /// The absolute path, which remains valid even if the working directory changes.
    pub(super) absolute: PathBuf,
    file: File,
    pub(super) identity: FileId,
    /// The directory of the segmented log containing this file, if any. If there is one, all
    /// offsets are log offsets.
    pub(super) directory: Option<Directory>,
    /// The offset of the first byte of the file.
    pub(super) origin: u64,
    /// The next file of the log, once [`status`](Self::status) has found it. From then on, the
    /// followed file no longer changes.
    pub(super) next: Option<Next>,
    /// Whether the file is treated as one that will no longer change.
    pub(super) is_final: bool,
    pub(super) joint: Joint,
    /// The number of failed attempts to find the next file since the directory was last listed.
    pub(super) look_count: u32,
    /// The bytes starting at the file offset `offset`. Only the first `len` of them are from the
    /// file.
    buffer: Vec<u8>,
    offset: u64,
    len: usize,
    /// Whether `is_final` is true and the first `len` bytes of `buffer` extend to the end of the
    /// file.
    is_last: bool,
    /// The number of bytes that the last read requested.
    read_len: usize,
}

impl LiveFile {
    /// Opens a file, or the segment containing the log offset `start`.
    pub(super) fn open(path: &Path, start: u64) -> Result<Self, Error> {
        let failed = |source| Error::io(source, Some(path));
        // Opening a pipe would block until a writer opens it, so the path is checked first.
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() && !metadata.is_dir() {
            let text = "only a regular file can be followed";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        let absolute = std::path::absolute(path).map_err(failed)?;
        let (directory, origin, (file, identity)) = loop {
            if !metadata.is_dir() {
                break (None, 0, open_identified(path).map_err(failed)?);
            }
            let directory = Directory::open(path).map_err(failed)?;
            let origin = origin_of(path, start)?;
            let opened = open_identified(&absolute.join(name_of(origin)));
            match opened.map_err(|error| not_opened(path, &absolute, origin, error)) {
                // The segment was pruned after the directory was listed, so list the directory
                // again. With the new list, `origin_of` either rejects a start in the pruned
                // segment or finds a later segment.
                Err(error) if matches!(error.kind, ErrorKind::Pruned { .. }) => {}
                opened => break (Some(directory), origin, opened?),
            }
        };
        Ok(LiveFile {
            absolute,
            path: path.to_owned(),
            identity,
            file,
            directory,
            origin,
            next: None,
            is_final: false,
            joint: Joint::default(),
            look_count: 0,
            buffer: Vec::new(),
            offset: 0,
            len: 0,
            is_last: false,
            read_len: 0,
        })
    }

    /// Opens the segment that starts at `origin`. The caller discards the bytes that were read.
    pub(super) fn open_next(&mut self, origin: u64) -> Result<(), Error> {
        let opened = open_identified(&self.absolute.join(name_of(origin)));
        (self.file, self.identity) = opened.map_err(|error| not_opened(&self.path, &self.absolute, origin, error))?;
        self.go_to(origin);
        Ok(())
    }

    /// Opens the directory and the followed segment again, by their paths. Either may have been
    /// replaced. The caller discards the bytes that were read.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.directory = Some(Directory::open(&self.absolute)?);
        self.go_to(self.origin);
        (self.file, self.identity) = open_identified(&self.file_path())?;
        Ok(())
    }

    fn go_to(&mut self, origin: u64) {
        self.origin = origin;
        (self.next, self.is_final, self.look_count) = (None, false, 0);
        self.joint = Joint::default();
    }

    /// Returns the absolute path of the file itself, not of its directory. A segment's file name
    /// may contain the log number, whereas the directory's name is arbitrary.
    pub(super) fn file_path(&self) -> PathBuf {
        match self.directory {
            Some(_) => self.absolute.join(name_of(self.origin)),
            None => self.absolute.clone(),
        }
    }

    pub(super) fn status(&mut self) -> Result<FileStatus, Error> {
        if self.directory.is_none() {
            let is_rotated = self.is_replaced()? != Some(false);
            return Ok(FileStatus {
                // This file is read to its end, even if the path now refers to another file.
                file_len: self.end()?,
                is_rotated,
                is_replaced: false,
            });
        }
        let mut end = self.end()?;
        let mut is_replaced = false;
        if self.next.is_none() {
            let found = self.is_replaced()?;
            is_replaced = found == Some(true);
            if !is_replaced && self.find_next(end, found.is_some())? {
                end = self.end()?;
            }
        }
        Ok(FileStatus {
            // Bytes after the start of the next file do not belong to the log.
            file_len: self.next.map_or(end, |next| next.origin.min(end)),
            is_rotated: false,
            is_replaced,
        })
    }

    /// Checks whether the followed file or its directory has been replaced by another one with the
    /// same name. If so, the names no longer identify the followed log. Returns `None` if the
    /// followed file's name no longer exists, because the file was renamed or pruned.
    pub(super) fn is_replaced(&self) -> io::Result<Option<bool>> {
        match FileId::at(&self.file_path()) {
            Ok(now) => Ok(Some(now != self.identity)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(self.directory.as_ref().and_then(|directory| {
                    let now = FileId::at(&self.absolute).ok()?;
                    (now != directory.identity).then_some(true)
                }))
            }
            Err(error) => Err(error),
        }
    }

    /// Looks for the next file. `end` is where the followed file ended when it was last checked,
    /// and `is_there` is true if that file still exists under its name. Returns whether the next
    /// file exists now. If so, the caller must determine the end of the followed file again.
    fn find_next(&mut self, end: u64, is_there: bool) -> Result<bool, Error> {
        if end > self.origin && self.absolute.join(name_of(end)).exists() {
            self.next = Some(Next {
                origin: end,
                is_after_pruning: false,
            });
            return Ok(true);
        }
        // There are three possibilities: the followed file has grown in the meantime, the next file
        // is missing, or both files were pruned.
        let is_listed = self.look_count == 0;
        self.look_count = (self.look_count + 1) % LOOKS_PER_LIST;
        if is_there && !is_listed {
            return Ok(false);
        }
        let segments = list_again(&self.absolute).map_err(|error| error.with_path_below(&self.absolute, &self.path))?;
        self.next = segments
            .iter()
            .find(|segment| segment.offset > self.origin)
            .map(|next| Next {
                origin: next.offset,
                is_after_pruning: segments[0].offset > self.origin,
            });
        Ok(self.next.is_some())
    }

    /// Discards the bytes that were read.
    pub(super) fn forget(&mut self) {
        (self.len, self.is_last) = (0, false);
    }

    /// Returns the log offset of the end of the file.
    pub(super) fn end(&self) -> io::Result<u64> {
        Ok(self.origin + self.file.metadata()?.len())
    }

    pub(super) fn window(&self) -> Window<'_> {
        Window {
            offset: self.offset,
            bytes: &self.buffer[..self.len],
            is_last: self.is_last,
        }
    }

    /// Reads the file from `offset` to at least the end of the block, or to `file_len`. Discards
    /// the bytes of earlier reads, because bytes that were not a valid fragment may have changed.
    pub(super) fn read(&mut self, offset: u64, file_len: u64) -> io::Result<()> {
        // A read is longer than the previous one only if all bytes of the previous read were used.
        // Without this rule, the follower would read all zeros after the written part, even a
        // gigabyte of them.
        let used = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let was_of_use = self.len == self.read_len && used.saturating_add(BLOCK_LEN) > self.len;
        let wanted = if was_of_use { self.read_len * 2 } else { READ_LEN_MIN };
        self.read_len = wanted.clamp(READ_LEN_MIN, WINDOW_LEN);
        self.buffer.resize(self.buffer.len().max(self.read_len), 0);
        (self.offset, self.len, self.is_last) = (offset, 0, false);
        // Bytes after `file_len` belong to the log only if this is the log's newest file. In that
        // case, the next read returns them.
        let rest = usize::try_from(file_len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let buffer = &mut self.buffer[..self.read_len.min(rest)];
        self.len = read_full_at(&self.file, buffer, offset.saturating_sub(self.origin))?;
        self.is_last = self.is_final && self.len >= rest;
        Ok(())
    }

    /// Reads from the file offset `offset` into `buffer`, until the buffer is full or the file
    /// ends.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_full_at(&self.file, buffer, offset.saturating_sub(self.origin))
    }

    /// Returns the last `left` bytes of the block, from `at` onward, and how many of them have been
    /// written. `at` must be the start of the last read. Zeros replace the bytes that haven't been
    /// written yet. If these zeros would complete the fragment at `at` in this dialect, the first
    /// of them is replaced by another byte to keep the fragment incomplete.
    pub(super) fn whole_block(&mut self, at: u64, left: usize, dialect: Dialect) -> (Window<'_>, usize) {
        debug_assert_eq!(at, self.offset);
        let there = self.len.min(left);
        let bytes = &mut self.buffer[..left];
        bytes[there..].fill(0);
        if dialect.valid(bytes, true).is_some_and(|valid| valid.end > there) {
            // Changing one byte always changes the CRC.
            bytes[there] = 1;
        }
        let window = Window {
            offset: at,
            bytes,
            is_last: false,
        };
        (window, there)
    }
}

fn open_identified(path: &Path) -> io::Result<(File, FileId)> {
    let file = File::open(path)?;
    let identity = FileId::of(&file)?;
    Ok((file, identity))
}
