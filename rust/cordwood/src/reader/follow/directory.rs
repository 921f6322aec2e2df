//! The directory of a segmented log that is being followed, and the files in it.
//!
//! The writer doesn't start a file until the previous one is complete, so once a file has a
//! successor, it no longer changes. The rules are in `docs/format/following.md`, "A segmented log".

use std::io;
use std::path::Path;

use crate::error::Error;
use crate::file::FileId;
use crate::segments::{list_again, list_log, name_of, pruned};

/// The directory that the path referred to when the follower opened it.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) identity: FileId,
    /// Keeping the directory open prevents another directory from getting the same identity.
    /// Windows does not allow an open directory to be removed, so the directory is not kept open
    /// there.
    #[cfg(unix)]
    _open: std::fs::File,
}

impl Directory {
    #[cfg(unix)]
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let directory = std::fs::File::open(path)?;
        Ok(Directory {
            identity: FileId::of(&directory)?,
            _open: directory,
        })
    }

    #[cfg(windows)]
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let identity = FileId::at(path)?;
        Ok(Directory { identity })
    }
}

/// The next file to follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of the file's first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed. If so, any files between it and the file at
    /// `origin` may also be gone.
    pub(super) is_after_pruning: bool,
}

/// Finds the file that contains the log offset `start`, and returns the log offset where that file
/// starts. If `start` is 0, returns the offset of the log's first file.
pub(super) fn origin_of(path: &Path, start: u64) -> Result<u64, Error> {
    let segments = list_log(path)?;
    let before = segments.partition_point(|segment| segment.offset <= start);
    match before.checked_sub(1) {
        Some(index) => Ok(segments[index].offset),
        None if start == 0 => Ok(segments[0].offset),
        None => Err(pruned(path, start, segments[0].offset)),
    }
}

/// Returns the error to report if the file at `origin` cannot be opened. The directory's absolute
/// path is `absolute`, but the error shows `path`.
pub(super) fn not_opened(path: &Path, absolute: &Path, origin: u64, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound
        && let Ok(segments) = list_again(absolute)
        && let Some(first) = segments.first().filter(|first| first.offset > origin)
    {
        return pruned(path, origin, first.offset);
    }
    Error::io(error, Some(&path.join(name_of(origin))))
}
