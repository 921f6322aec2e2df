//! A followed log in segments: which file is followed, and which one comes after it.
//!
//! The writer begins a file only once the one before it is complete, so no file that has a successor
//! changes any more. The table is in `docs/format/following.md`, "A log in segments".

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::segments::{list_again, list_log, name_of};

/// The folder of a log in segments, and the file in it that is followed.
#[derive(Debug)]
pub(super) struct Folder {
    /// As the caller gave it: for errors.
    path: PathBuf,
    /// So that a change of the working directory does not matter.
    absolute: PathBuf,
    /// The log offset of the first byte of the followed file.
    pub(super) origin: u64,
    /// The file after it, once there is one.
    pub(super) next: Option<Next>,
    /// Whether the followed file is read as one that will not change.
    pub(super) is_final: bool,
    /// Where the incomplete record or the zeros at its end begin, if it will not change.
    pub(super) torn_since: Option<u64>,
    /// Whether the break before the next file has been reported.
    pub(super) is_reported: bool,
    /// How often no next file was found since the folder was last listed.
    look_count: u32,
}

/// A missing file is looked for the first time, and then once in so many times: that takes a list of
/// the folder.
const LOOKS_PER_LIST: u32 = 20;

/// The file after the one that is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The log offset of its first byte.
    pub(super) origin: u64,
    /// Whether the followed file has been removed, so that others before this one may have been, too.
    pub(super) is_after_pruning: bool,
}

impl Folder {
    /// The file in which the log offset `start` is; 0 stands for the beginning of the log.
    pub(super) fn open(path: &Path, absolute: &Path, start: u64) -> Result<Self, Error> {
        let segments = list_log(path)?;
        let before = segments.partition_point(|segment| segment.offset <= start);
        let found = match before.checked_sub(1) {
            Some(index) => segments[index],
            None if start == 0 => segments[0],
            None => return Err(pruned(path, start, segments[0].offset)),
        };
        Ok(Folder::at(path.to_owned(), absolute.to_owned(), found.offset))
    }

    fn at(path: PathBuf, absolute: PathBuf, origin: u64) -> Self {
        Folder {
            path,
            absolute,
            origin,
            next: None,
            is_final: false,
            torn_since: None,
            is_reported: false,
            look_count: 0,
        }
    }

    /// The absolute path of the followed file.
    pub(super) fn file(&self) -> PathBuf {
        self.absolute.join(name_of(self.origin))
    }

    /// Goes to the file that begins at this log offset.
    pub(super) fn go_to(&mut self, origin: u64) {
        *self = Folder::at(
            std::mem::take(&mut self.path),
            std::mem::take(&mut self.absolute),
            origin,
        );
    }

    /// Looks for the file after the followed one, which has been seen to end at `end`. Returns whether
    /// there is one now: `end` is then to be read again.
    pub(super) fn find_next(&mut self, end: u64) -> Result<bool, Error> {
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
        if self.file().exists() && !is_listed {
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

    /// The error for a follower that was to continue at `offset`, where no file begins any more.
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
