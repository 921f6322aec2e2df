//! The physical layout of a log: every fragment and gap, with its header fields and faults.
//!
//! The file is read in two interleaved passes. In the first, a [`Reader`] reads ahead and
//! classifies each region as a record, a skipped region with a reason, or a trailer. The second
//! pass finds the fragments in each region. The result therefore agrees with the reader's reports,
//! and no region, however long, is held in memory.

use std::io;
use std::path::Path;

use super::fragment::Fragment;
use super::fragment_at::{Place, Region, RegionKind};
use crate::decode::{OnCorruption, ReadOptions, Step};
use crate::dialect::LogFormat;
use crate::error::Error;
use crate::reader::{FileReader, Reader, Source, StreamSource};
use crate::wal_metadata::LogInfo;

/// An iterator over the fragments of a log. See [`fragments`].
#[derive(Debug)]
pub struct Fragments<S> {
    ahead: Reader<S>,
    source: S,
    /// The region of the last event. The bytes between this region and the preceding region are a
    /// trailer.
    region: Region,
    /// The file offset of the next byte to report.
    offset: u64,
    /// The index of the last block that was searched for fragments byte by byte.
    scanned: Option<u64>,
    has_ended: bool,
}

/// Returns the fragments of a log. The log is read twice at the same time, so you must provide two
/// sources.
///
/// The entries cover the bytes read, without gaps or overlaps: each starts where the previous one
/// ends, and none crosses the end of a block. These rules apply:
///
/// * Entries are based on the records and regions that a reader with these options returns.
///   [`OnCorruption::Fail`], the default, acts like [`OnCorruption::Salvage`], so that all valid
///   fragments are shown. Entries in a skipped region carry its reason.
/// * Fragments with valid checksums are shown individually, even in a skipped region. They may
///   belong to an incomplete record or to an older log.
/// * The length in a damaged header is not trusted. The entry extends to where the `salvage` policy
///   would resume reading (`docs/format/reading.md`), or to the end of the block.
///
/// ```
/// use cordwood_log::{ReadOptions, ops};
/// use cordwood_log::read::SliceSource;
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
/// file[9] ^= 1;
/// let mut fragments = ops::fragments([SliceSource::new(&file); 2], &ReadOptions::default());
/// let damaged = fragments.next().unwrap()?;
/// assert_eq!((damaged.offset, damaged.end_offset, damaged.kind.as_str()), (0, 10, "full"));
/// assert_eq!(damaged.reason.unwrap().as_str(), "checksum_mismatch");
/// assert_eq!(damaged.stored_crc, Some(0x3a82_ec18));
/// let valid = fragments.next().unwrap()?;
/// assert_eq!((valid.offset, valid.reason, valid.is_salvaged), (10, None, true));
/// assert!(fragments.next().is_none());
/// # Ok::<(), cordwood_log::Error>(())
/// ```
pub fn fragments<S: Source>([ahead, behind]: [S; 2], options: &ReadOptions) -> Fragments<S> {
    let reader = Reader::with_source(ahead, salvaging(options));
    of_reader(reader, behind)
}

fn of_reader<S: Source>(mut reader: Reader<S>, source: S) -> Fragments<S> {
    reader.set_keeps_data(false);
    let start = reader.decoder.offset();
    Fragments {
        ahead: reader,
        source,
        region: Region::trailer(start, start),
        offset: start,
        scanned: None,
        has_ended: false,
    }
}

/// Like [`fragments`], but for a regular file.
///
/// ```
/// use cordwood_log::{ReadOptions, ops};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("example.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let mut fragments = ops::fragments_file(&path, &ReadOptions::default())?;
/// assert_eq!(fragments.next().unwrap()?.end_offset, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// * [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be opened, or is a pipe or a
///   device.
/// * [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the given dialect does not
///   support the given log number or compression.
#[cfg(feature = "fs")]
pub fn fragments_file(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Fragments<StreamSource<FileReader>>, Error> {
    let path = path.as_ref();
    let reader = Reader::open_with(path, salvaging(options))?;
    let source = match reader.file_len() {
        Some(_) => StreamSource::with_file(reader.get_ref().get_ref().clone(), reader.decoder.offset()),
        None => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a pipe or a device cannot be read twice",
        )),
    };
    let source = source.map_err(|source| Error::io(source, Some(path)))?;
    Ok(of_reader(reader, source))
}

/// Returns `options` with [`OnCorruption::Salvage`] in place of [`OnCorruption::Fail`].
fn salvaging(options: &ReadOptions) -> ReadOptions {
    let options = options.clone();
    match options.on_corruption {
        OnCorruption::Fail => options.with_on_corruption(OnCorruption::Salvage),
        _ => options,
    }
}

/// An item is an error in these cases:
///
/// * The source cannot be read ([`ErrorKind::Io`](crate::ErrorKind::Io)). The next call tries
///   again.
/// * The log is in segments ([`io::ErrorKind::IsADirectory`]). List its files one at a time
///   instead.
/// * The file is in another format ([`ErrorKind::Foreign`](crate::ErrorKind::Foreign)).
/// * The dialect of the file does not support the given log number or compression
///   ([`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)).
/// * A record in a compressed log decompresses to too many bytes
///   ([`ErrorKind::OverBudget`](crate::ErrorKind::OverBudget)).
///
/// After an error other than a failed read, every later call returns the same error.
impl<S: Source> Iterator for Fragments<S> {
    type Item = Result<Fragment, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_fragment().transpose()
    }
}

impl<S: Source> Fragments<S> {
    /// Returns the format of the log. See [`Reader::format`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Reader::format`].
    pub fn format(&mut self) -> Result<LogFormat, Error> {
        self.ahead.format()
    }

    /// Returns what is known about the log, based on the fragments returned so far and some later
    /// fragments.
    pub fn info(&self) -> &LogInfo {
        self.ahead.info()
    }

    /// Returns the next fragment, or `None` at the end.
    fn next_fragment(&mut self) -> Result<Option<Fragment>, Error> {
        while self.offset >= self.region.end {
            if self.has_ended {
                return Ok(None);
            }
            self.region = self.next_event()?;
        }
        let mut region = self.region;
        if self.offset < region.start {
            region = Region::trailer(self.offset, region.start);
        }
        let format = self.ahead.format()?;
        let grid = self.ahead.decoder.grid();
        let left = grid.block_left(self.offset);
        while {
            let window = self.source.window();
            window.at(self.offset, left).len() < left && !window.is_last
        } {
            self.source
                .fill(self.offset, u64::MAX)
                .map_err(|source| Error::io(source, self.ahead.path()))?;
        }
        let rest = self.source.window().at(self.offset, left);
        let in_region = usize::try_from(region.end - self.offset).unwrap_or(usize::MAX);
        let bytes = &rest[..rest.len().min(in_region)];
        if bytes.is_empty() {
            // The file was truncated while it was being read.
            self.has_ended = true;
            self.region.end = self.offset;
            return Ok(None);
        }
        let place = Place {
            format,
            block: grid.block_of(self.offset),
            form: self.ahead.decoder.form(),
            region,
            offset: self.offset,
            left,
            rest,
            bytes,
        };
        let fragment = place.look(&mut self.scanned);
        self.offset = fragment.end_offset;
        Ok(Some(fragment))
    }

    /// Returns the region of the next event. For a record in a container, this is the container's
    /// region.
    fn next_event(&mut self) -> Result<Region, Error> {
        if self.ahead.place().is_some() {
            let text = "this is a segmented log: name its files, each of which is a log";
            let source = io::Error::new(io::ErrorKind::IsADirectory, text);
            return Err(Error::io(source, self.ahead.path()));
        }
        let position = self.region.end;
        loop {
            let (start, end, kind) = match self.ahead.step()? {
                Step::Record(span) => {
                    let is_salvaged = span.is_salvaged;
                    (span.offset, span.end_offset, RegionKind::Record { is_salvaged })
                }
                Step::Skipped(region) => (region.start, region.end, RegionKind::Skipped(region.reason)),
                Step::NeedMore | Step::End(_) => {
                    self.has_ended = true;
                    let end = self.ahead.decoder.offset();
                    return Ok(Region::trailer(end, end));
                }
            };
            let (start, end) = match self.ahead.decoder.container_at(start) {
                Some(container) if container.end <= position => continue,
                Some(container) => (container.start.max(position), container.end),
                None => (start, end),
            };
            return Ok(Region { start, end, kind });
        }
    }
}
