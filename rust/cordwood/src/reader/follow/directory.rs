//! Keeps track of which file of a segmented log is being followed, and which file comes next.
//!
//! The writer starts a file only once the previous one is complete, so a file with a successor no
//! longer changes. The rules are in `docs/format/following.md`, "A segmented log".

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::file::FileId;
use crate::reader::joint::Joint;
use crate::segments::{list_again, list_log, name_of};

/// The directory of a segmented log, and which of its files is being followed.
#[derive(Debug)]
pub(super) struct Directory {
    /// The path as given by the caller, for error messages.
    path: PathBuf,
    /// The absolute path, which stays valid if the working directory changes.
    absolute: PathBuf,
    opened: OpenedDirectory,
    /// The log offset of the first byte of the followed file.
    pub(super) origin: u64,
    /// The file after the followed one, once it exists.
    pub(super) next: Option<Next>,
    /// Whether the followed file is read as one that will no longer change.
    pub(super) is_final: bool,
    pub(super) joint: Joint,
    /// How many times the follower has looked for the next file in vain since it last listed the
    /// directory.
    look_count: u32,
}

/// The directory that the path referred to when the follower opened it.
#[derive(Debug)]
struct OpenedDirectory {
    identity: FileId,
    /// Keeping the directory open prevents another one from getting the same identity. Windows does
    /// not allow an open directory to be removed, so it is not kept open there.
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

/// While a file is missing, the directory is listed on only one in this many attempts to find the
/// file, because listing is expensive.
const LOOKS_PER_LIST: u32 = 20;

/// The next file to follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of the file's first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed, in which case other files before the next one
    /// may be gone too.
    pub(super) is_after_pruning: bool,
}

impl Directory {
    /// Opens the file containing the log offset `start`, or the first file of the log if `start` is
    /// 0.
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

    /// Moves to the file starting at the given log offset.
    pub(super) fn go_to(&mut self, origin: u64) {
        self.origin = origin;
        (self.next, self.is_final, self.look_count) = (None, false, 0);
        self.joint = Joint::default();
    }

    /// Checks whether another file or directory now has the name of the followed file or of its
    /// directory. If so, the names no longer identify the followed log. Returns `None` if the file
    /// was pruned and no longer exists. `of_file` is the identity of the followed file.
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

    /// Continues in the directory the path now refers to, which contains the same log.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.opened = OpenedDirectory::open(&self.absolute)?;
        Ok(())
    }

    /// Looks for the next file. `end` is where the followed file ended when last checked, and
    /// `is_there` is true if it still exists under its name. Returns whether there is a next file
    /// now, in which case the caller must read the followed file's end again.
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

    /// Returns the error for a follower that must continue at `offset`, although no file starts
    /// there anymore.
    pub(super) fn pruned(&self, offset: u64, first_offset: u64) -> Error {
        pruned(&self.path, offset, first_offset)
    }

    /// Returns the error to report if the next file cannot be opened.
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
