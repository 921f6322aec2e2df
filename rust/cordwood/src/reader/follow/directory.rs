//! A followed segmented log: which file is followed, and which one comes after it.
//!
//! The writer starts a file only once the one before it is complete, so no file that has a
//! successor changes any more. The table is in `docs/format/following.md`, "A segmented log".

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::file::FileId;
use crate::reader::joint::Joint;
use crate::segments::{list_again, list_log, name_of};

/// The directory of a segmented log, and the file in it that is followed.
#[derive(Debug)]
pub(super) struct Directory {
    /// As the caller gave it: for errors.
    path: PathBuf,
    /// So that a change of the working directory does not matter.
    absolute: PathBuf,
    opened: OpenedDirectory,
    /// The log offset of the first byte of the followed file.
    pub(super) origin: u64,
    /// The file after it, once there is one.
    pub(super) next: Option<Next>,
    /// Whether the followed file is read as one that will not change.
    pub(super) is_final: bool,
    pub(super) joint: Joint,
    /// How often no next file was found since the directory was last listed.
    look_count: u32,
}

/// The directory that the path named when it was opened.
#[derive(Debug)]
struct OpenedDirectory {
    identity: FileId,
    /// While it is open, no other directory gets its identity. Windows would not let it be removed.
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

/// A missing file is looked for the first time, and then once in so many times: that takes a list of
/// the directory.
const LOOKS_PER_LIST: u32 = 20;

/// The file after the one that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of its first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed. Then other files before this one may have been
    /// removed too.
    pub(super) is_after_pruning: bool,
}

impl Directory {
    /// The file in which the log offset `start` is; 0 stands for the start of the log.
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

    /// The absolute path of the followed file.
    pub(super) fn file(&self) -> PathBuf {
        self.absolute.join(name_of(self.origin))
    }

    /// Goes to the file that starts at this log offset.
    pub(super) fn go_to(&mut self, origin: u64) {
        self.origin = origin;
        (self.next, self.is_final, self.look_count) = (None, false, 0);
        self.joint = Joint::default();
    }

    /// Whether another file or directory has the name of the followed file, whose identity is `of_file`,
    /// or of its directory. Then the names tell nothing about the log that is followed. `None` if there
    /// is no such file: it was pruned.
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

    /// Goes on in the directory that the path names now, which has the same log.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.opened = OpenedDirectory::open(&self.absolute)?;
        Ok(())
    }

    /// Looks for the file after the followed one, which has been seen to end at `end`, and which still
    /// has its name if it `is_there`. Returns whether there is one now: `end` is then to be read again.
    pub(super) fn find_next(&mut self, end: u64, is_there: bool) -> Result<bool, Error> {
        if end > self.origin && self.absolute.join(name_of(end)).exists() {
            self.next = Some(Next {
                origin: end,
                is_after_pruning: false,
            });
            return Ok(true);
        }
        // Either the file has grown meanwhile, or the next one was pruned, and then so was this one, or it
        // is missing.
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

    /// The error for a follower that was to continue at `offset`, where no file starts any more.
    pub(super) fn pruned(&self, offset: u64, first_offset: u64) -> Error {
        pruned(&self.path, offset, first_offset)
    }

    /// The error in opening the file that was to be followed next.
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
