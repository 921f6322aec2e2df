//! Keeps track of which file of a segmented log is being followed, and which file comes next.
//!
//! The writer doesn't start a file until the previous one is complete, so once a file has a
//! successor, it no longer changes. The rules are in `docs/format/following.md`, "A segmented log".

use std::io;
use std::path::Path;

use super::live_file::LiveFile;
use crate::error::Error;
use crate::file::FileId;
use crate::segments::{list_again, list_log, name_of, pruned};

/// The directory that the path referred to when the follower opened it.
#[derive(Debug)]
pub(super) struct Directory {
    identity: FileId,
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

/// While a file is missing, the directory is listed in only one of this many attempts to find the
/// file, because listing is expensive.
const LOOKS_PER_LIST: u32 = 20;

/// The next file to follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of the file's first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed, in which case other files before the next one
    /// may also be gone.
    pub(super) is_after_pruning: bool,
}

impl LiveFile {
    /// Checks whether the name of the followed file or of its directory now refers to another file
    /// or directory. If so, the names no longer identify the followed log. Returns `None` if no
    /// file has the name, because the file was renamed or pruned.
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
    /// and `is_there` is true if that file still exists under its name. Returns whether there is a
    /// next file now, in which case the caller must read the followed file's end again.
    pub(super) fn find_next(&mut self, end: u64, is_there: bool) -> Result<bool, Error> {
        if end > self.origin && self.absolute.join(name_of(end)).exists() {
            self.next = Some(Next {
                origin: end,
                is_after_pruning: false,
            });
            return Ok(true);
        }
        // Either the followed file has grown in the meantime, or the next file is missing, or both
        // files were pruned.
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
}

/// Returns the log offset of the file containing the log offset `start`, or of the first file of
/// the log if `start` is 0.
pub(super) fn origin_of(path: &Path, start: u64) -> Result<u64, Error> {
    let segments = list_log(path)?;
    let before = segments.partition_point(|segment| segment.offset <= start);
    match before.checked_sub(1) {
        Some(index) => Ok(segments[index].offset),
        None if start == 0 => Ok(segments[0].offset),
        None => Err(pruned(path, start, segments[0].offset)),
    }
}

/// Returns the error to report if the file at `origin` cannot be opened. In the error, the
/// directory at the path `absolute` is given as `path`.
pub(super) fn not_opened(path: &Path, absolute: &Path, origin: u64, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound
        && let Ok(segments) = list_again(absolute)
        && let Some(first) = segments.first().filter(|first| first.offset > origin)
    {
        return pruned(path, origin, first.offset);
    }
    Error::io(error, Some(&path.join(name_of(origin))))
}
