//! Tracks which file of a segmented log is followed, and which file comes next.
//!
//! The writer starts a file only once the previous one is complete, so a file that has a successor
//! no longer changes. The rules are in `docs/format/following.md`, "A segmented log".

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::file::FileId;
use crate::reader::joint::Joint;
use crate::segments::{list_again, list_log, name_of};

/// The directory of a segmented log, and the file in it that is followed.
#[derive(Debug)]
pub(super) struct Directory {
    /// The path as the caller gave it, for errors.
    path: PathBuf,
    /// The absolute path, so that a change of the working directory does not matter.
    absolute: PathBuf,
    opened: OpenedDirectory,
    /// The log offset of the first byte of the followed file.
    pub(super) origin: u64,
    /// The file after the followed file, once it exists.
    pub(super) next: Option<Next>,
    /// Whether the followed file is read as one that will no longer change.
    pub(super) is_final: bool,
    pub(super) joint: Joint,
    /// How many looks have found no next file since the directory was last listed.
    look_count: u32,
}

/// The directory that the path named when the follower opened it.
#[derive(Debug)]
struct OpenedDirectory {
    identity: FileId,
    /// While the directory is open, no other directory can get its identity. Windows does not allow
    /// a directory to be removed while it is open, so there it is not kept open.
    #[cfg(unix)]
    _open: std::fs::File,
}

impl OpenedDirectory {
    #[cfg(unix)]
    fn open(path: &Path) -> io::Result<Self> {
        let directory = std::fs::File::open(path)?;
        Ok(OpenedDirectory {
            identity: FileId::of(&directory)?,
            _open: directory,
        })
    }

    #[cfg(windows)]
    fn open(path: &Path) -> io::Result<Self> {
        let identity = FileId::at(path)?;
        Ok(OpenedDirectory { identity })
    }
}

/// The number of looks for a missing file per listing of the directory. Listing is the expensive
/// part, so only the first of these looks lists the directory.
const LOOKS_PER_LIST: u32 = 20;

/// The file after the one that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of its first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed. If so, other files before this one may have been
    /// removed too.
    pub(super) is_after_pruning: bool,
}

impl Directory {
    /// Opens the file that contains the log offset `start`. A `start` of 0 means the start of the
    /// log.
    pub(super) fn open(path: &Path, absolute: &Path, start: u64) -> Result<Self, Error> {
        let opened = OpenedDirectory::open(path).map_err(|source| Error::io(source, Some(path)))?;
        let segments = list_log(path)?;
        let before = segments.partition_point(|segment| segment.offset <= start);
        let found = match before.checked_sub(1) {
            Some(index) => segments[index],
            None if start == 0 => segments[0],
            None => return Err(pruned(path, start, segments[0].offset)),
        };
        Ok(Directory {
            path: path.to_owned(),
            absolute: absolute.to_owned(),
            opened,
            origin: found.offset,
            next: None,
            is_final: false,
            joint: Joint::default(),
            look_count: 0,
        })
    }

    /// Returns the absolute path of the followed file.
    pub(super) fn file(&self) -> PathBuf {
        self.absolute.join(name_of(self.origin))
    }

    /// Moves to the file that starts at this log offset.
    pub(super) fn go_to(&mut self, origin: u64) {
        self.origin = origin;
        (self.next, self.is_final, self.look_count) = (None, false, 0);
        self.joint = Joint::default();
    }

    /// Checks whether another file or directory now has the name of the followed file or of its
    /// directory. If one has, the names no longer show which log is followed. Returns `None` if the
    /// file does not exist because it was pruned. `of_file` is the identity of the followed file.
    pub(super) fn is_replaced(&self, of_file: FileId) -> io::Result<Option<bool>> {
        match FileId::at(&self.file()) {
            Ok(now) => Ok(Some(now != of_file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match FileId::at(&self.absolute) {
                Ok(now) if now != self.opened.identity => Ok(Some(true)),
                _ => Ok(None),
            },
            Err(error) => Err(error),
        }
    }

    /// Continues in the directory that the path names now, which contains the same log.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.opened = OpenedDirectory::open(&self.absolute)?;
        Ok(())
    }

    /// Looks for the file after the followed one. The followed file was seen to end at `end`.
    /// `is_there` states whether the followed file still has its name. Returns whether a next file
    /// exists now. If so, the caller must read `end` again.
    pub(super) fn find_next(&mut self, end: u64, is_there: bool) -> Result<bool, Error> {
        if end > self.origin && self.absolute.join(name_of(end)).exists() {
            self.next = Some(Next {
                origin: end,
                is_after_pruning: false,
            });
            return Ok(true);
        }
        // There are three possible causes. The followed file has grown in the meantime, the next
        // file is missing, or both were pruned.
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

    /// Returns the error for a follower that should continue at `offset`, where no file starts any
    /// more.
    pub(super) fn pruned(&self, offset: u64, first_offset: u64) -> Error {
        pruned(&self.path, offset, first_offset)
    }

    /// Returns the error for a failure to open the file that should be followed next.
    pub(super) fn not_opened(&self, error: io::Error, origin: u64) -> Error {
        if error.kind() == io::ErrorKind::NotFound
            && let Ok(segments) = list_again(&self.absolute)
            && let Some(first) = segments.first().filter(|first| first.offset > origin)
        {
            return self.pruned(origin, first.offset);
        }
        Error::io(error, Some(&self.path.join(name_of(origin))))
    }
}

fn pruned(path: &Path, offset: u64, first_offset: u64) -> Error {
    Error::new(ErrorKind::Pruned { offset, first_offset }, Some(path))
}
