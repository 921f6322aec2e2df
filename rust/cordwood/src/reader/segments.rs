//! The files of a segmented log, which a source reads one at a time.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileReader;
use crate::error::{Error, ErrorKind};
use crate::segments::{Segment, list_again, list_log, name_of, pruned};

/// A file's place in a segmented log. All fields except `has_grown` are log offsets.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The offset of the file's first byte.
    pub(super) origin: u64,
    /// The offset where the next file starts, or `None` for the last file.
    pub(super) next: Option<u64>,
    /// The offset just past the file's last byte that belongs to the log.
    pub(super) end: u64,
    /// Whether the file has bytes past the start of the next file. Those bytes do not belong to the
    /// log.
    pub(super) has_grown: bool,
}

/// The files of a segmented log, and the index of the open file. The directory is listed when the
/// log is opened, and again at each seek to the end of the log or beyond. `R` is the type that
/// reads the open file.
pub(super) struct Segments<R> {
    directory: PathBuf,
    /// The files, in order of offset. Never empty.
    segments: Vec<Segment>,
    /// The index of the open file.
    current: usize,
    open: Arc<dyn Fn(FileReader) -> R + Send + Sync>,
    /// The file list and the index as they were before the last [`open_at`](Self::open_at), so that
    /// the call can be undone. The list is only stored if the directory was listed again.
    before: Option<(Option<Vec<Segment>>, usize)>,
}

impl Segments<FileReader> {
    /// Lists the files in `directory` and opens the first file.
    pub(super) fn open(directory: &Path) -> Result<(Self, FileReader), Error> {
        let mut segments = Segments {
            directory: directory.to_owned(),
            segments: Vec::new(),
            current: 0,
            open: Arc::new(|file| file),
            before: None,
        };
        loop {
            segments.segments = list_log(directory)?;
            match segments.open_nth(0) {
                // The first file was pruned after the directory was listed.
                Err(error) if matches!(error.kind, ErrorKind::Pruned { .. }) => {}
                opened => return opened.map(|(file, _)| (segments, file)),
            }
        }
    }
}

impl<R> Segments<R> {
    /// Returns the same files, with `wrap` applied to each file when it is opened.
    pub(super) fn map<T>(self, wrap: Arc<impl Fn(R) -> T + Send + Sync + 'static>) -> Segments<T>
    where
        R: 'static,
    {
        let open = self.open;
        Segments {
            directory: self.directory,
            segments: self.segments,
            current: self.current,
            open: Arc::new(move |file| wrap(open(file))),
            before: self.before,
        }
    }

    /// Returns the open file's place in the log.
    pub(super) fn place(&self) -> Place {
        let open = self.segments[self.current];
        let next = self.segments.get(self.current + 1).map(|next| next.offset);
        Place {
            origin: open.offset,
            next,
            end: next.map_or(open.end_offset(), |next| next.min(open.end_offset())),
            has_grown: next.is_some_and(|next| next < open.end_offset()),
        }
    }

    /// Returns the log offset just past the last byte of the last file.
    pub(super) fn log_end(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.end_offset())
    }

    /// Opens the file containing the log offset `offset`. Returns `None` if it is already open.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Pruned`] if `offset` is before the first offset of the log.
    pub(super) fn open_at(&mut self, offset: u64) -> Result<Option<(R, FileReader)>, Error> {
        let may_be_newer = offset >= self.log_end();
        let listed = if may_be_newer {
            // The offset may be in a file that was started after the directory was listed.
            let fresh = list_again(&self.directory)?;
            Some(std::mem::replace(&mut self.segments, fresh))
        } else {
            None
        };
        self.before = Some((listed, self.current));
        let opened = match (self.count_until(offset), self.segments.first()) {
            (_, None) => Err(Error::io(io::ErrorKind::NotFound.into(), Some(&self.directory))),
            (0, Some(first)) => Err(pruned(&self.directory, offset, first.offset)),
            (after, _) if !may_be_newer && after - 1 == self.current => return Ok(None),
            (after, _) => self.open_nth(after - 1).map(Some),
        };
        if opened.is_err() {
            self.go_back();
        }
        opened
    }

    /// Goes back to the file that was open before the last [`open_at`](Self::open_at).
    pub(super) fn go_back(&mut self) {
        if let Some((segments, current)) = self.before.take() {
            self.segments = segments.unwrap_or(std::mem::take(&mut self.segments));
            self.current = current;
        }
    }

    /// Returns how many files start at or before the given log offset.
    fn count_until(&self, offset: u64) -> usize {
        self.segments.partition_point(|segment| segment.offset <= offset)
    }

    /// Opens the next file. Returns `None` if the open file is the last one.
    pub(super) fn open_next(&mut self) -> Result<Option<(R, FileReader)>, Error> {
        if self.current + 1 == self.segments.len() {
            return Ok(None);
        }
        self.open_nth(self.current + 1).map(Some)
    }

    fn open_nth(&mut self, index: usize) -> Result<(R, FileReader), Error> {
        let offset = self.segments[index].offset;
        let path = self.directory.join(name_of(offset));
        let opened = FileReader::open(&path).and_then(|file| Ok((file.file_len()?, file)));
        let (len, file) = match opened {
            Ok(opened) => opened,
            // The file was pruned after the directory was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let first = list_again(&self.directory)?.first().map(|first| first.offset);
                return Err(match first {
                    Some(first) if first > offset => pruned(&self.directory, offset, first),
                    _ => Error::io(error, Some(&path)),
                });
            }
            Err(error) => return Err(Error::io(error, Some(&path))),
        };
        // The file may have grown since the directory was listed.
        self.segments[index].len = len.unwrap_or(0);
        self.current = index;
        Ok(((self.open)(file.clone()), file))
    }
}

impl<R> fmt::Debug for Segments<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments")
            .field("directory", &self.directory)
            .field("segments", &self.segments)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}
