//! A segmented log is a directory of log files, each named after the log offset of its first byte.
//!
//! With these names, a position in the log is a single number, and each segment ends at the offset
//! that names the next one. There is no other list of the segments. [`list`] reads the directory,
//! and [`breaks`] finds the bytes missing between two segments. The rules are in
//! `docs/format/writing.md`.
//!
//! ```
//! use cordwood_log::segments::{self, Segment};
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! std::fs::write(directory.join("00000000000000000000.log"), [0; 70])?;
//! std::fs::write(directory.join("00000000000000000100.log"), [0; 50])?;
//! let segments = segments::list(directory)?;
//! assert_eq!(segments, [Segment { offset: 0, len: 70 }, Segment { offset: 100, len: 50 }]);
//!
//! let missing: Vec<_> = segments::breaks(&segments).map(|region| region.start..region.end).collect();
//! assert_eq!(missing, [70..100]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::damage::{Reason, SkippedRegion};
use crate::error::{Error, ErrorKind};

/// The name of the lock file, in the same directory as the segments. The writer of the log holds a
/// lock on it.
pub const LOCK_NAME: &str = "LOCK";

/// The number of digits in the largest `u64`.
const DIGITS: usize = 20;

/// The greatest offset at which a file or a log can end.
pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;

/// One file of a segmented log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The log offset of the segment's first byte. The file is named after it.
    pub offset: u64,
    /// The length of the file in bytes.
    pub len: u64,
}

impl Segment {
    /// Returns the log offset just past the segment's last byte.
    pub const fn end_offset(self) -> u64 {
        self.offset + self.len
    }

    /// Returns the path of the file in the log's directory.
    pub fn path_in(self, directory: &Path) -> PathBuf {
        directory.join(name_of(self.offset))
    }
}

/// Returns the name of the segment that starts at this log offset: twenty digits and `.log`.
///
/// ```
/// assert_eq!(cordwood_log::segments::name_of(67_108_864), "00000000000067108864.log");
/// ```
pub fn name_of(offset: u64) -> String {
    format!("{offset:0DIGITS$}.log")
}

/// Returns the log offset where the segment with this name starts, or `None` if no segment can have
/// this name.
///
/// ```
/// use cordwood_log::segments::offset_of;
/// assert_eq!(offset_of("00000000000067108864.log"), Some(67_108_864));
/// assert_eq!(offset_of("000012.log"), None); // LevelDB's twelfth log
/// ```
pub fn offset_of(name: impl AsRef<OsStr>) -> Option<u64> {
    let digits = name.as_ref().to_str()?.strip_suffix(".log")?;
    let is_name = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    let offset = digits.parse().ok().filter(|_| is_name)?;
    (offset <= OFFSET_MAX).then_some(offset)
}

/// Returns the segments in a directory with their lengths, ordered by offset. The last segment's
/// length may change while a writer appends to it.
///
/// Ignores the lock file [`LOCK_NAME`], and also `lost+found` and names starting with a dot,
/// because file systems create such files.
///
/// # Errors
///
/// * [`ErrorKind::Io`] if the directory or the length of a segment cannot be read.
/// * [`ErrorKind::NotASegment`] if the directory contains any other file. The error contains that
///   file's path.
pub fn list(directory: &Path) -> Result<Vec<Segment>, Error> {
    settled(directory)?.without_strays(directory)
}

/// Returns the segments of the log in a directory. A log has at least one segment, so a directory
/// only counts as a log if a file in it is named like a segment.
pub(crate) fn list_log(directory: &Path) -> Result<Vec<Segment>, Error> {
    let listing = settled(directory)?;
    if listing.segments.is_empty() && (listing.offsets.is_empty() || listing.stray.is_none()) {
        return Err(Error::io(io::ErrorKind::IsADirectory.into(), Some(directory)));
    }
    listing.without_strays(directory)
}

/// Returns the segments of a log that is already open. Ignores other files: they cannot be mistaken
/// for segments and must not stop a reader or a follower.
pub(crate) fn list_again(directory: &Path) -> Result<Vec<Segment>, Error> {
    Ok(settled(directory)?.segments)
}

/// Returns the error for an offset before `first_offset`, where the log in `directory` starts.
pub(crate) fn pruned(directory: &Path, offset: u64, first_offset: u64) -> Error {
    Error::new(ErrorKind::Pruned { offset, first_offset }, Some(directory))
}

/// The files in a directory.
struct Listing {
    /// The segments, ordered by offset.
    segments: Vec<Segment>,
    /// The offset in each segment name that was listed. Some of these files may have been pruned
    /// since.
    offsets: Vec<u64>,
    /// The name of a file that is neither a segment nor ignored.
    stray: Option<OsString>,
}

impl Listing {
    fn without_strays(self, directory: &Path) -> Result<Vec<Segment>, Error> {
        match self.stray {
            Some(name) => Err(Error::new(ErrorKind::NotASegment, Some(&directory.join(name)))),
            None => Ok(self.segments),
        }
    }
}

/// Lists a directory repeatedly until a listing has no faults or two listings in a row have the
/// same faults.
///
/// The operating system's listing may include a new file but miss a file that was created before
/// it. It's also possible that all listed segments are pruned before their lengths are read. In the
/// next listing, these faults are gone. If a log changes faster than it can be listed, or if
/// another program makes a segment longer, no two listings agree. The number of attempts is
/// therefore limited, and the listing from the last attempt is used. A listing without segments is
/// short and says nothing about the state of the log, so the limit for such listings is much
/// higher.
fn settled(directory: &Path) -> Result<Listing, Error> {
    const TRIES_MAX: usize = 100;
    const PRUNED_TRIES_MAX: usize = 100_000;
    let mut before = None;
    for tries in 1.. {
        let listing = list_once(directory)?;
        let is_pruned = listing.segments.is_empty() && !listing.offsets.is_empty();
        let breaks: Vec<_> = breaks(&listing.segments).collect();
        if !is_pruned && breaks.is_empty() {
            return Ok(listing);
        }
        let faults = (is_pruned.then(|| listing.offsets.clone()), breaks);
        let tries_max = if is_pruned { PRUNED_TRIES_MAX } else { TRIES_MAX };
        if before.as_ref() == Some(&faults) || tries >= tries_max {
            return Ok(listing);
        }
        before = Some(faults);
    }
    unreachable!("the last try returns")
}

/// Checks whether a log's directory may contain a file with this name in addition to the segments.
fn is_ignored(name: &OsStr) -> bool {
    name == LOCK_NAME || name == "lost+found" || name.as_encoded_bytes().starts_with(b".")
}

fn list_once(directory: &Path) -> Result<Listing, Error> {
    let failed = |source| Error::io(source, Some(directory));
    let (mut offsets, mut stray) = (Vec::new(), None);
    for entry in directory.read_dir().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        match offset_of(&name) {
            Some(offset) => offsets.push(offset),
            None if is_ignored(&name) => {}
            None => stray = Some(name),
        }
    }
    offsets.sort_unstable();
    let mut segments = Vec::with_capacity(offsets.len());
    // The writer starts a segment only after the previous one has reached its final length. A
    // segment's length is therefore final if a later segment was listed. The writer removes the
    // oldest segment first, so if a segment has been removed in the meantime, all segments before
    // it have been removed as well.
    for &offset in offsets.iter().rev() {
        let path = directory.join(name_of(offset));
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => segments.push(Segment {
                offset,
                len: metadata.len().min(OFFSET_MAX),
            }),
            Ok(_) => stray = Some(name_of(offset).into()),
            // A symbolic link to a missing file is an error, not a sign that the segment has been
            // pruned.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => break,
            Err(error) => return Err(Error::io(error, Some(&path))),
        }
    }
    segments.reverse();
    Ok(Listing {
        segments,
        offsets,
        stray,
    })
}

/// Returns, in order, the places where a segment does not end exactly where the next one starts. A
/// healthy log has none.
///
/// * [`Reason::MissingSegment`]: no segment contains these bytes, because a file was removed or
///   truncated.
/// * [`Reason::GrownSegment`]: these bytes are at the end of a segment, after the offset at which
///   the next segment starts.
pub fn breaks(segments: &[Segment]) -> impl Iterator<Item = SkippedRegion> {
    segments.windows(2).filter_map(|pair| {
        let (end, next) = (pair[0].end_offset(), pair[1].offset);
        let reason = if end < next {
            Reason::MissingSegment
        } else {
            Reason::GrownSegment
        };
        (end != next).then_some(SkippedRegion::new(end.min(next)..end.max(next), reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, len: u64) -> Segment {
        Segment { offset, len }
    }

    fn directory_of(files: &[(&str, usize)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, len) in files {
            std::fs::write(directory.path().join(name), vec![0; *len]).expect("a file");
        }
        directory
    }

    #[test]
    fn a_segment_is_named_after_the_offset_of_its_first_byte() {
        for (offset, name) in [
            (0, "00000000000000000000.log"),
            (32_768, "00000000000000032768.log"),
            (i64::MAX as u64, "09223372036854775807.log"),
        ] {
            assert_eq!(name_of(offset), name);
            assert_eq!(offset_of(name), Some(offset));
        }
    }

    #[test]
    fn a_file_not_named_like_a_segment_is_not_a_segment() {
        for name in [
            "",
            ".log",
            "LOCK",
            "000012.log",
            "0000000000000000000.log",
            "000000000000000000000.log",
            "0000000000000000000x.log",
            "+0000000000000000001.log",
            "00000000000000000000.LOG",
            "00000000000000000000.log.1",
            "00000000000000000000",
            "09223372036854775808.log",
            "99999999999999999999.log",
            "٠٠٠٠٠٠٠٠٠٠.log",
        ] {
            assert_eq!(offset_of(name), None, "{name}");
        }
    }

    #[test]
    fn segments_are_listed_in_offset_order() {
        let directory = directory_of(&[(&name_of(150), 0), ("LOCK", 0), (&name_of(9), 141), (&name_of(0), 9)]);
        let segments = list(directory.path()).expect("a segmented log");
        assert_eq!(segments, [segment(0, 9), segment(9, 141), segment(150, 0)]);
        assert_eq!(segments[1].path_in(directory.path()), directory.path().join(name_of(9)));
        assert_eq!(breaks(&segments).next(), None);
    }

    #[test]
    fn an_empty_directory_has_no_segments() {
        assert_eq!(list(directory_of(&[]).path()).expect("an empty directory"), []);
    }

    #[test]
    fn a_directory_with_unrelated_files_is_not_a_segmented_log() {
        for other in ["000012.log", "CURRENT", "lost+found.log"] {
            let directory = directory_of(&[(&name_of(0), 9), (other, 1)]);
            assert_eq!(list_again(directory.path()).expect("an open log"), [segment(0, 9)]);
            let error = list(directory.path()).expect_err("another file");
            assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
            assert_eq!(error.path.as_deref(), Some(&*directory.path().join(other)));
        }
        let directory = directory_of(&[]);
        std::fs::create_dir(directory.path().join(name_of(0))).expect("a directory");
        let error = list(directory.path()).expect_err("a directory");
        assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
    }

    #[test]
    fn files_created_by_the_file_system_are_ignored() {
        let directory = directory_of(&[(&name_of(0), 9), (".nfs0000000000001", 1), (".DS_Store", 1)]);
        std::fs::create_dir(directory.path().join("lost+found")).expect("a directory");
        assert_eq!(list(directory.path()).expect("a log"), [segment(0, 9)]);
        assert_eq!(list_log(directory.path()).expect("a log"), [segment(0, 9)]);
    }

    #[test]
    fn listing_a_directory_without_segments_fails() {
        for name in ["000012.log", ".hidden", LOCK_NAME] {
            let error = list_log(directory_of(&[(name, 1)]).path()).expect_err("no log");
            assert!(matches!(&error.kind, ErrorKind::Io { source } if source.kind() == io::ErrorKind::IsADirectory));
        }
    }

    #[test]
    fn relists_a_log_that_is_pruned_while_being_opened() {
        let directory = directory_of(&[(&name_of(0), 0)]);
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for offset in 0.. {
                    if is_done.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    std::fs::write(directory.path().join(name_of(offset + 1)), []).expect("a file");
                    std::fs::remove_file(directory.path().join(name_of(offset))).expect("a file");
                }
            });
            let opened: Result<Vec<_>, _> = (0..20_000)
                .map(|_| list_log(directory.path()).and_then(|_| crate::Reader::open(directory.path()).map(drop)))
                .collect();
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            opened.expect("a log at every time");
        });
    }

    /// A symbolic link to a missing file is a segment that can't be read at the moment. It has not
    /// been pruned.
    #[cfg(unix)]
    #[test]
    fn dangling_symlink_errors_include_the_path() {
        let directory = directory_of(&[(&name_of(0), 9), (&name_of(20), 5)]);
        let link = directory.path().join(name_of(9));
        std::os::unix::fs::symlink("missing", &link).expect("a link");
        let error = list(directory.path()).expect_err("a link to no file");
        assert!(matches!(&error.kind, ErrorKind::Io { source } if source.kind() == io::ErrorKind::NotFound));
        assert_eq!(error.path.as_deref(), Some(&*link));
    }

    #[test]
    fn missing_directory_errors_include_the_path() {
        let directory = directory_of(&[]).path().join("missing");
        let error = list(&directory).expect_err("no directory");
        assert!(matches!(&error.kind, ErrorKind::Io { source } if source.kind() == io::ErrorKind::NotFound));
        assert_eq!(error.path.as_deref(), Some(&*directory));
    }

    #[test]
    fn gaps_and_changed_segment_lengths_are_reported_as_regions() {
        let found = |segments: &[Segment]| -> Vec<_> {
            let regions = breaks(segments);
            regions
                .map(|region| (region.start, region.end, region.reason))
                .collect()
        };
        // Pruning the oldest segments leaves no break at the start of the log.
        assert_eq!(found(&[segment(70, 30), segment(100, 5)]), []);
        let hole = [segment(0, 40), segment(70, 30), segment(100, 5)];
        assert_eq!(found(&hole), [(40, 70, Reason::MissingSegment)]);
        let shortened = [segment(0, 70), segment(70, 29), segment(100, 5)];
        assert_eq!(found(&shortened), [(99, 100, Reason::MissingSegment)]);
        let grown = [segment(0, 70), segment(70, 37), segment(100, 5)];
        assert_eq!(found(&grown), [(100, 107, Reason::GrownSegment)]);
        let both = [segment(0, 71), segment(70, 29), segment(100, 5)];
        assert_eq!(
            found(&both),
            [(70, 71, Reason::GrownSegment), (99, 100, Reason::MissingSegment)]
        );
    }
}
