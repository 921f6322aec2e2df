//! An offset in a log, combined with marks that identify the log.

use std::fmt;
use std::io;
use std::ops::Range;
#[cfg(feature = "fs")]
use std::path::Path;
use std::str::FromStr;

use crate::checksum::{crc32c, extend};
use crate::decode::{Decoder, Growth, ReadOptions, Step, Window};
use crate::dialect::LogFormat;
#[cfg(feature = "fs")]
use crate::error::{Error, ErrorKind};
use crate::format::BLOCK_LEN;

/// An offset in a log, combined with marks that identify the log.
///
/// An offset is valid only for the log it came from. For this reason, a position also stores
/// checksums of up to three ranges of bytes before the offset: at the end of the previous segment,
/// in the first block of the file, and in the block before the offset. A reader or follower that
/// resumes at a position compares these checksums with the log. If any checksum differs, the
/// position belongs to a different log, and the result is
/// [`ErrorKind::Changed`](crate::ErrorKind::Changed). A log that has since grown, or has been
/// copied or renamed, is still the same log. A damaged log is also accepted, because damaged blocks
/// are not compared. A position at offset 0 matches any log.
///
/// To store a position, use its text form. See [`Display`](fmt::Display) and [`FromStr`].
///
/// ```
/// use cordwood_log::{FollowOptions, Follower, LogFile, LogFileOptions, Position, follow::Poll};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.log");
/// let log = LogFile::create(&path, LogFileOptions::default())?;
/// log.append(b"one")?;
///
/// let mut follower = Follower::open(&path)?;
/// follower.poll()?;
/// let text = follower.position()?.to_string();
///
/// log.append(b"two")?;
/// let options = FollowOptions::default().with_position(text.parse::<Position>()?);
/// let mut follower = Follower::open_with(&path, options.clone())?;
/// assert!(matches!(follower.poll()?, Poll::Record(record) if record.data == b"two"));
///
/// std::fs::remove_file(&path)?;
/// LogFile::create(&path, LogFileOptions::default())?.extend(["another", "log"])?;
/// assert!(Follower::open_with(&path, options).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Position {
    offset: u64,
    /// The marks, at most [`MARKS_MAX`] of them.
    marks: Vec<Mark>,
    version: Option<String>,
}

/// The maximum number of marks: one each for the end of the previous segment, the first block, and
/// the block before the offset.
const MARKS_MAX: usize = 3;

/// The checksum of a range of bytes in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    /// The log offset of the first byte of the file. This is 0 unless the file is a segment.
    pub(crate) base: u64,
    /// The log offset of the first checksummed byte.
    pub(crate) start: u64,
    /// The number of checksummed bytes, which is at most the length of a block.
    pub(crate) len: u32,
    /// The CRC-32C of the bytes.
    pub(crate) checksum: u32,
}

impl Mark {
    /// Reads the bytes `[start, end)` of a log. Returns an error if the file ends before `end`.
    fn read(
        base: u64,
        Range { start, end }: Range<u64>,
        mut read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Self> {
        let (mut at, mut checksum) = (start, crc32c(b""));
        let mut buffer = [0; 4096];
        while at < end {
            let wanted = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
            let filled = read_at(at, &mut buffer[..wanted])?;
            if filled == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            checksum = extend(checksum, &buffer[..filled]);
            at += filled as u64;
        }
        Ok(Mark {
            base,
            start,
            len: u32::try_from(end - start).unwrap_or(u32::MAX),
            checksum,
        })
    }

    /// Reads the block that contains the byte before `offset`, but only up to `offset`. The offset
    /// must be after the first byte of the file.
    pub(crate) fn before(
        base: u64,
        offset: u64,
        read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Self> {
        let block = BLOCK_LEN as u64;
        let start = (offset - 1 - base) / block * block + base;
        Mark::read(base, start..offset, read_at)
    }

    /// Reads the bytes of this mark again.
    pub(crate) fn again(self, read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>) -> io::Result<Self> {
        Mark::read(self.base, self.range(), read_at)
    }

    pub(crate) fn range(self) -> Range<u64> {
        self.start..self.start.saturating_add(u64::from(self.len))
    }
}

impl Position {
    /// The first version of the text form.
    const VERSION: &str = "1";

    /// Returns the offset in the log, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns a position at another offset in the same log, with the same marks.
    #[must_use]
    pub fn with_offset(&self, offset: u64) -> Self {
        Position { offset, ..self.clone() }
    }

    /// If the log is an object in a store, returns the version that the store assigned to it: the
    /// object's ETag or generation.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the marks, for code that reads the log in its own way. Each mark consists of a
    /// start, a length and a checksum.
    pub fn marks(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        self.marks.iter().map(|mark| (mark.start, mark.len, mark.checksum))
    }

    /// Returns the same position with the given object version.
    #[must_use]
    pub fn with_version(self, version: Option<String>) -> Self {
        Position { version, ..self }
    }

    /// Returns the position at the start of a log. `bytes` are the first bytes of its first file,
    /// which starts at the log offset `base`. The mark ends before the first incomplete fragment,
    /// which a writer may still overwrite.
    pub fn of_start(bytes: &[u8], base: u64, format: LogFormat) -> Self {
        let mut options = ReadOptions::default().with_format(format);
        options.origin = base;
        let mut decoder = Decoder::unchecked(&options);
        decoder.set_growth(Growth::WaitAtFaults);
        decoder.set_keeps_data(false);
        let window = Window {
            offset: base,
            bytes: &bytes[..bytes.len().min(BLOCK_LEN)],
            is_last: false,
        };
        while matches!(decoder.step(window), Step::Record(_) | Step::Skipped(_)) {}
        let len = usize::try_from(decoder.offset() - base).map_or(0, |len| len.min(window.bytes.len()));
        let mark = Mark {
            base,
            start: base,
            len: u32::try_from(len).unwrap_or(0),
            checksum: crc32c(&bytes[..len]),
        };
        Position {
            offset: base,
            marks: if len > 0 { vec![mark] } else { Vec::new() },
            version: None,
        }
    }

    /// Returns the mark of the bytes before the offset.
    pub(crate) fn last_mark(&self) -> Option<Mark> {
        self.marks.last().copied()
    }

    /// Returns the last mark that belongs to an earlier file. `base` is the log offset where the
    /// current file starts.
    pub(crate) fn mark_before(&self, base: u64) -> Option<Mark> {
        self.marks.iter().copied().rfind(|mark| mark.base < base)
    }

    /// Creates the position at `offset`, reading the marks from the file that starts at the log
    /// offset `base`. `before` is a mark from the previous file.
    pub(crate) fn read(
        base: u64,
        offset: u64,
        before: Option<Mark>,
        mut read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Self> {
        let head = base..offset.min(base.saturating_add(BLOCK_LEN as u64));
        let mut marks = Vec::from_iter(before);
        if !head.is_empty() {
            marks.push(Mark::read(base, head.clone(), &mut read_at)?);
            if head.end < offset {
                marks.push(Mark::before(base, offset, read_at)?);
            }
        }
        Ok(Position {
            offset,
            marks,
            version: None,
        })
    }
}

#[cfg(feature = "fs")]
mod files {
    use std::fs::File;
    use std::io::Read;

    use super::{BLOCK_LEN, Error, ErrorKind, LogFormat, Mark, Path, Position, ReadOptions, Step, io};
    use crate::damage::Severity;
    use crate::decode::OnCorruption;
    use crate::file::read_full_at;
    use crate::reader::Reader;
    use crate::segments::{Segment, list_again, name_of};

    /// Where the bytes of a mark are stored.
    enum Marked {
        /// The file, and the log offset of its first byte.
        In(File, u64),
        /// No file contains the bytes of the mark: they were pruned, or a segment is missing.
        Nowhere,
        /// Another segment contains the bytes of the mark.
        Elsewhere,
    }

    impl Position {
        /// Returns the position at an offset in a log. `path` is a log file, or the directory of a
        /// log in [`segments`](crate::segments).
        ///
        /// # Errors
        ///
        /// Returns [`ErrorKind::Io`] if the file cannot be read or ends before the offset.
        pub fn of(path: impl AsRef<Path>, offset: u64) -> Result<Self, Error> {
            let path = path.as_ref();
            let mut base = 0;
            if path.is_dir() {
                let before = list_again(path)?.into_iter().rfind(|segment| segment.offset < offset);
                // There are no marks for bytes that were pruned.
                let Some(segment) = before else {
                    return Ok(Position::default().with_offset(offset));
                };
                base = segment.offset;
            }
            let position = file_with(path, base).and_then(|marked| match marked {
                Marked::In(file, origin) => {
                    Position::read(base, offset, None, |at, to| read_full_at(&file, to, at - origin))
                }
                Marked::Nowhere | Marked::Elsewhere => Err(io::ErrorKind::NotFound.into()),
            });
            position.map_err(|source| Error::io(source, Some(path)))
        }

        /// Returns the position at the start of a log whose format is known.
        ///
        /// # Errors
        ///
        /// Returns [`ErrorKind::Io`] if the file or the directory cannot be read.
        pub fn start(path: &Path, format: LogFormat) -> Result<Self, Error> {
            let (mut bytes, mut base) = (Vec::new(), 0);
            let mut file = path.to_owned();
            if path.is_dir()
                && let Some(first) = list_again(path)?.first()
            {
                (base, file) = (first.offset, first.path_in(path));
            }
            let read = File::open(file).and_then(|file| file.take(BLOCK_LEN as u64).read_to_end(&mut bytes));
            read.map_err(|source| Error::io(source, Some(path)))?;
            Ok(Position::of_start(&bytes, base, format))
        }

        /// Checks that a file or directory contains the log that this position belongs to. If the
        /// log ends before the offset, the check still succeeds, because the reader reports that.
        ///
        /// # Errors
        ///
        /// Returns [`ErrorKind::Changed`] if the contents belong to a different log, and
        /// [`ErrorKind::Io`] if they cannot be read.
        pub(crate) fn check(&self, path: &Path, options: &ReadOptions) -> Result<(), Error> {
            self.compare(path, options).map(drop)
        }

        /// Like [`check`](Self::check), but also returns whether there were any bytes to compare.
        pub(crate) fn compare(&self, path: &Path, options: &ReadOptions) -> Result<bool, Error> {
            let failed = |source| Error::io(source, Some(path));
            // Opening a pipe would block until a writer opens it.
            let metadata = path.metadata().map_err(failed)?;
            if self.marks.is_empty() || !(metadata.is_file() || metadata.is_dir()) {
                return Ok(false);
            }
            let mut is_compared = false;
            for mark in &self.marks {
                let (file, origin) = match file_with(path, mark.base).map_err(failed)? {
                    Marked::In(file, origin) => (file, origin),
                    Marked::Nowhere => continue,
                    Marked::Elsewhere => return Err(mark.changed(path)),
                };
                let is_same = match mark.again(|at, to| read_full_at(&file, to, at.saturating_sub(origin))) {
                    Ok(now) => now == *mark,
                    // A reader that starts after missing bytes detects the gap, unless the next
                    // segment has bytes at those offsets.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        let is_next =
                            |segment: &Segment| mark.base < segment.offset && segment.offset < mark.range().end;
                        let has_next = metadata.is_dir() && list_again(path)?.iter().any(is_next);
                        mark.range().end <= self.offset && !has_next
                    }
                    Err(error) => return Err(failed(error)),
                };
                if !is_same && !mark.is_damaged(path, options) {
                    return Err(mark.changed(path));
                }
                is_compared = true;
            }
            Ok(is_compared)
        }
    }

    impl Mark {
        /// Checks whether a reader finds damage in the bytes of this mark. Damaged bytes do not
        /// reveal which log they come from.
        pub(crate) fn is_damaged(self, path: &Path, options: &ReadOptions) -> bool {
            let range = self.range();
            let mut options = options
                .clone()
                .with_on_corruption(OnCorruption::Skip)
                .with_range(range.clone());
            options.position = None;
            let find = || -> Result<bool, Error> {
                let mut reader = Reader::open_with(path, options)?;
                reader.without_data(|reader| {
                    loop {
                        match reader.step()? {
                            Step::Skipped(region)
                                if region.reason.severity() == Severity::Corruption
                                    && region.start < range.end
                                    && region.end > range.start =>
                            {
                                return Ok(true);
                            }
                            Step::End(_) => return Ok(false),
                            Step::Record(_) | Step::Skipped(_) | Step::NeedMore => {}
                        }
                    }
                })
            };
            // An error here is ignored, because the reader of the log will report it.
            find().unwrap_or(true)
        }

        pub(crate) fn changed(self, path: &Path) -> Error {
            let kind = ErrorKind::Changed {
                offset: self.start,
                end_offset: self.range().end,
            };
            Error::new(kind, Some(path))
        }
    }

    /// Opens the file that starts at the log offset `base`.
    fn file_with(path: &Path, base: u64) -> io::Result<Marked> {
        if !path.is_dir() {
            return Ok(Marked::In(File::open(path)?, 0));
        }
        match File::open(path.join(name_of(base))) {
            Ok(file) => Ok(Marked::In(file, base)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let segments = list_again(path).map_err(io::Error::from)?;
                let is_in = |segment: &Segment| segment.offset < base && base < segment.end_offset();
                Ok(match segments.iter().any(is_in) {
                    true => Marked::Elsewhere,
                    false => Marked::Nowhere,
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes the text form, `1:OFFSET:MARKS:VERSION`, which [`FromStr`] parses. `MARKS` is a list
/// whose items have the form `BASE+START+LENGTH=CHECKSUM`. `BASE` is the log offset of a file,
/// `START` is the start of the bytes in that file, `LENGTH` is the number of bytes, and `CHECKSUM`
/// is their CRC-32C in hexadecimal. `VERSION` is the version of an object in a store, and is empty
/// if the log is not an object.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", Position::VERSION, self.offset)?;
        for (nth, mark) in self.marks.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            let start = mark.start - mark.base;
            write!(f, "{comma}{}+{start}+{}={:08x}", mark.base, mark.len, mark.checksum)?;
        }
        write!(f, ":{}", self.version.as_deref().unwrap_or_default())
    }
}

/// The error for text that is not a [`Position`], or that was written by a later release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidPosition {
    /// The text that could not be parsed.
    pub text: String,
}

impl fmt::Display for InvalidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a position that this release knows", self.text)
    }
}

impl std::error::Error for InvalidPosition {}

/// Parses the text that [`Display`](fmt::Display) writes.
impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parsed(text).ok_or_else(|| InvalidPosition { text: text.to_owned() })
    }
}

fn parsed(text: &str) -> Option<Position> {
    let mut fields = text.splitn(4, ':');
    let mut next = || fields.next();
    if next()? != Position::VERSION {
        return None;
    }
    let offset = next()?.parse().ok()?;
    let marks = next()?.split(',').filter(|mark| !mark.is_empty()).map(|mark| {
        let (bytes, checksum) = mark.split_once('=')?;
        let [base, start, len] = *bytes.split('+').collect::<Vec<_>>() else {
            return None;
        };
        let base: u64 = base.parse().ok()?;
        Some(Mark {
            base,
            start: base.checked_add(start.parse().ok()?)?,
            len: len.parse().ok().filter(|&len| len as usize <= BLOCK_LEN)?,
            checksum: u32::from_str_radix(checksum, 16).ok()?,
        })
    });
    let marks: Vec<_> = marks.collect::<Option<_>>()?;
    let version = next()?;
    (marks.len() <= MARKS_MAX).then(|| Position {
        offset,
        marks,
        version: (!version.is_empty()).then(|| version.to_owned()),
    })
}
