//! Physical layout of a log: every fragment and gap, with its header fields and faults.
//!
//! The file is read twice in parallel. A [`Reader`] goes ahead and classifies each region: a
//! record, skipped for a reason, or a trailer. A second read of the same bytes finds the fragments
//! in that region. So the result agrees with the reader's, and no region, however long, is held in
//! memory.

use std::io;
use std::path::Path;

use crate::damage::Reason;
use crate::damage::resync;
use crate::decode::{OnCorruption, ReadOptions, Step};
use crate::dialect::{Dialect, FragmentKind, LogFormat};
use crate::error::Error;
use crate::format::{HEADER_LEN, Header};
use crate::reader::{FileReader, Reader, SliceSource, Source, StreamSource};

/// A fragment, or a gap: a part of a block that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fragment {
    /// File offset of its first byte.
    pub offset: u64,
    /// File offset after its last byte. After damage, the beginning of the next fragment found,
    /// whatever the header states.
    pub end_offset: u64,
    /// The index of its block, from 0.
    pub block: u64,
    /// What it is.
    pub kind: FragmentKind,
    /// The type byte; `None` where there is no header.
    pub type_byte: Option<u8>,
    /// Bytes of payload as stated by the header, right or wrong.
    pub payload_len: Option<u16>,
    /// The CRC that the header states, unmasked.
    pub stored_crc: Option<u32>,
    /// The CRC computed from the bytes that the header covers; `None` if these go past the end of
    /// the block or of the file.
    pub computed_crc: Option<u32>,
    /// The number of the log, if headers of this type carry one.
    pub log_number: Option<u32>,
    /// How far the file had been synced, if headers of this type state it.
    pub synced_offset: Option<u64>,
    /// Why these bytes were not returned: the reason of the skipped region that contains them.
    /// `None`: part of a record, or a trailer.
    pub reason: Option<Reason>,
    /// File offset of the record that contains it, if that was returned.
    pub record_offset: Option<u64>,
    /// Whether that record begins after damage in the same block, so that only
    /// [`OnCorruption::Salvage`] returns it.
    pub is_salvaged: bool,
}

/// The reader's classification of a region.
#[derive(Debug, Clone, Copy)]
struct Region {
    begin: u64,
    end: u64,
    kind: RegionKind,
}

#[derive(Debug, Clone, Copy)]
enum RegionKind {
    Record {
        is_salvaged: bool,
    },
    Skipped(Reason),
    /// Between two events: the end of a block, too short for a header.
    Trailer,
}

/// The fragments of a log, one by one: see [`fragments`].
#[derive(Debug)]
pub struct Fragments<S> {
    ahead: Reader<S>,
    source: S,
    region: Region,
    /// The region after a trailer.
    next: Option<Region>,
    /// File offset of the next byte to report.
    offset: u64,
    /// File offset of the last block in which every byte was tried as a beginning.
    scanned: Option<u64>,
    has_ended: bool,
}

/// Returns the fragments of the log that `reader` and `source` both read; `source` must be at the
/// same position as `reader`.
///
/// The entries tile what is read: each begins where the one before it ends, and none crosses the
/// end of a block. The rules:
///
/// * Entries follow what `reader` returns or skips; with [`OnCorruption::Salvage`], everything
///   valid is shown. Entries in a skipped region carry its reason.
/// * Fragments with valid checksums are shown individually, also in a skipped region: those of a
///   record without an end, or of an older log.
/// * If a header is damaged, its length is not trusted: the entry extends to where the policy
///   `salvage` would resume reading (`docs/format/reading.md`), or to the end of the block.
///
/// ```
/// use cordwood_log::{ReadOptions, verbs};
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
/// file[9] ^= 1;
/// let mut fragments = verbs::fragments_slice(&file, None);
/// let damaged = fragments.next().unwrap()?;
/// assert_eq!((damaged.offset, damaged.end_offset, damaged.kind.as_str()), (0, 10, "full"));
/// assert_eq!(damaged.reason.unwrap().as_str(), "checksum_mismatch");
/// assert_eq!(damaged.stored_crc, Some(0x3a82_ec18));
/// let valid = fragments.next().unwrap()?;
/// assert_eq!((valid.offset, valid.reason, valid.is_salvaged), (10, None, true));
/// assert!(fragments.next().is_none());
/// # Ok::<(), cordwood_log::Error>(())
/// ```
pub fn fragments<S: Source>(reader: Reader<S>, source: S) -> Fragments<S> {
    let begin = reader.offset();
    Fragments {
        ahead: reader,
        source,
        region: Region {
            begin,
            end: begin,
            kind: RegionKind::Trailer,
        },
        next: None,
        offset: begin,
        scanned: None,
        has_ended: false,
    }
}

/// [`fragments`] of bytes in memory. Without a format, it is detected.
///
/// ```
/// use cordwood_log::verbs;
/// let mut fragments = verbs::fragments_slice(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo", None);
/// let fragment = fragments.next().unwrap()?;
/// assert_eq!((fragment.kind.as_str(), fragment.payload_len, fragment.computed_crc), ("full", Some(3), Some(0x3a82_ec18)));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
pub fn fragments_slice(file: &[u8], format: Option<LogFormat>) -> Fragments<SliceSource<'_>> {
    fragments(Reader::from_slice(file, options(format)), SliceSource::new(file))
}

/// [`fragments`] of a regular file. Without a format, it is detected.
///
/// ```
/// use cordwood_log::verbs;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("example.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let mut fragments = verbs::fragments_file(&path, None)?;
/// assert_eq!(fragments.next().unwrap()?.end_offset, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be opened, or is a pipe or a device.
pub fn fragments_file(
    path: impl AsRef<Path>,
    format: Option<LogFormat>,
) -> Result<Fragments<StreamSource<FileReader>>, Error> {
    let path = path.as_ref();
    let reader = Reader::open(path, options(format))?;
    let source = match reader.file_len() {
        Some(_) => StreamSource::with_file(reader.get_ref().get_ref().clone(), 0),
        None => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a pipe or a device cannot be read twice",
        )),
    };
    let source = source.map_err(|source| Error::Io {
        path: Some(path.to_owned()),
        source,
    })?;
    Ok(fragments(reader, source))
}

fn options(format: Option<LogFormat>) -> ReadOptions {
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    match format {
        Some(format) => options.with_format(format),
        None => options,
    }
}

/// An item is an error if
///
/// * the source cannot be read ([`Error::Io`]); the next call tries again;
/// * the file is in another format ([`Error::Foreign`]).
impl<S: Source> Iterator for Fragments<S> {
    type Item = Result<Fragment, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_fragment().transpose()
    }
}

impl<S: Source> Fragments<S> {
    /// Which log is read: see [`Reader::format`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn format(&mut self) -> Result<LogFormat, Error> {
        self.ahead.format()
    }

    /// The next fragment, or `None` at the end.
    fn next_fragment(&mut self) -> Result<Option<Fragment>, Error> {
        while self.offset >= self.region.end {
            match self.next_region()? {
                Some(region) => self.region = region,
                None => return Ok(None),
            }
        }
        let dialect = self.ahead.format()?.dialect;
        let left = dialect.block_left(self.offset);
        while {
            let window = self.source.window();
            window.at(self.offset, left).len() < left && !window.is_last
        } {
            self.source.fill(self.offset).map_err(|source| Error::Io {
                path: self.ahead.path().map(Path::to_owned),
                source,
            })?;
        }
        let rest = self.source.window().at(self.offset, left);
        let in_region = usize::try_from(self.region.end - self.offset).unwrap_or(usize::MAX);
        let bytes = &rest[..rest.len().min(in_region)];
        if bytes.is_empty() {
            // The file was truncated while it was read.
            self.has_ended = true;
            self.region.end = self.offset;
            return Ok(None);
        }
        let place = Place {
            dialect,
            region: self.region,
            offset: self.offset,
            left,
            rest,
            bytes,
        };
        let block = dialect.block_begin(self.offset);
        let (fragment, has_scanned) = place.look(self.scanned != Some(block));
        if has_scanned {
            self.scanned = Some(block);
        }
        self.offset = fragment.end_offset;
        Ok(Some(fragment))
    }

    /// The next region that is not empty. Regions tile the file.
    fn next_region(&mut self) -> Result<Option<Region>, Error> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        if self.has_ended {
            return Ok(None);
        }
        let position = self.region.end;
        let (begin, end, kind) = match self.ahead.step() {
            Ok(Step::Record(span)) => {
                let is_salvaged = span.is_salvaged;
                (span.offset, span.end_offset, RegionKind::Record { is_salvaged })
            }
            Ok(Step::Skipped(region)) | Err(Error::Corruption { region, .. }) => {
                (region.begin, region.end, RegionKind::Skipped(region.reason))
            }
            Ok(Step::NeedMore | Step::End(_)) => {
                self.has_ended = true;
                let end = self.ahead.offset();
                (end, end, RegionKind::Trailer)
            }
            Err(error) => return Err(error),
        };
        let region = Region { begin, end, kind };
        if position < begin {
            self.next = (begin < end).then_some(region);
            return Ok(Some(Region {
                begin: position,
                end: begin,
                kind: RegionKind::Trailer,
            }));
        }
        Ok((begin < end).then_some(region))
    }
}

/// A position in a region, and the bytes there.
struct Place<'a> {
    dialect: Dialect,
    region: Region,
    offset: u64,
    /// Bytes to the end of the block.
    left: usize,
    /// To the end of the block, or of the file if that comes first.
    rest: &'a [u8],
    /// The part of it inside the region.
    bytes: &'a [u8],
}

impl Place<'_> {
    /// The fragment or gap here, and whether every byte of the block was tried to find its end.
    fn look(&self, may_scan: bool) -> (Fragment, bool) {
        let prefix_len = self.dialect.prefix.len();
        if self.offset < prefix_len as u64 {
            return (self.bare(FragmentKind::FileHeader, prefix_len), false);
        }
        if self.reason() == Some(Reason::EndTrailer) {
            let header = self.header(FragmentKind::EndTrailer);
            return (
                header.unwrap_or_else(|| self.bare(FragmentKind::Rest, usize::MAX)),
                false,
            );
        }
        if self.left >= HEADER_LEN
            && let Some(fragment) = self.valid()
        {
            return (fragment, false);
        }
        let is_zero = self.bytes.iter().all(|&byte| byte == 0);
        let is_trailer =
            self.left < HEADER_LEN || (is_zero && self.left <= self.dialect.trailer_len_max() && !self.is_fault());
        if is_trailer {
            return (self.bare(FragmentKind::Trailer, usize::MAX), false);
        }
        if is_zero {
            return (self.bare(FragmentKind::Zeros, usize::MAX), false);
        }
        let (len, has_scanned) = self.damaged_len(may_scan);
        // Only where the reader has looked for a header: elsewhere these are ordinary bytes.
        let header = (self.offset == self.region.begin && self.is_fault())
            .then(|| self.damaged(len))
            .flatten();
        let found = header.unwrap_or_else(|| self.bare(FragmentKind::Rest, len));
        (found, has_scanned)
    }

    fn reason(&self) -> Option<Reason> {
        match self.region.kind {
            RegionKind::Skipped(reason) => Some(reason),
            RegionKind::Record { .. } | RegionKind::Trailer => None,
        }
    }

    /// Whether no valid fragment was found at the beginning of the region.
    fn is_fault(&self) -> bool {
        matches!(
            self.reason(),
            Some(
                Reason::BadLength { .. }
                    | Reason::ChecksumMismatch { .. }
                    | Reason::ZeroHeader
                    | Reason::ZeroFill
                    | Reason::TornTail
            )
        )
    }

    /// A gap without a header, of at most `len` bytes.
    fn bare(&self, kind: FragmentKind, len: usize) -> Fragment {
        Fragment {
            offset: self.offset,
            end_offset: self.offset + self.bytes.len().min(len) as u64,
            block: self.dialect.block_of(self.offset),
            kind,
            type_byte: None,
            payload_len: None,
            stored_crc: None,
            computed_crc: None,
            log_number: None,
            synced_offset: None,
            reason: self.reason(),
            record_offset: None,
            is_salvaged: false,
        }
    }

    /// The header here, if it is complete, spanning the rest of the region in this block.
    fn header(&self, kind: FragmentKind) -> Option<Fragment> {
        let header = Header::decode(self.bytes.first_chunk()?);
        Some(Fragment {
            type_byte: Some(header.kind),
            payload_len: Some(header.len),
            ..self.bare(kind, usize::MAX)
        })
    }

    /// The fragment with a valid checksum here, if it is inside the region.
    fn valid(&self) -> Option<Fragment> {
        let valid = self.dialect.valid(self.bytes, true)?;
        let header = Header::decode(self.bytes.first_chunk()?);
        if header.kind == 0 && header.len == 0 {
            // Whatever its checksum, it stands for zeros.
            return None;
        }
        let crc = self.dialect.checksum.crc_of_stored(header.masked_crc);
        let (record_offset, is_salvaged) = match self.region.kind {
            RegionKind::Record { is_salvaged } => (Some(self.region.begin), is_salvaged),
            _ => (None, false),
        };
        Some(Fragment {
            end_offset: self.offset + valid.end as u64,
            stored_crc: Some(crc),
            computed_crc: Some(crc),
            log_number: Dialect::log_number_at(self.bytes, valid.form),
            synced_offset: Dialect::synced_offset_at(self.bytes, valid.form),
            record_offset,
            is_salvaged,
            ..self.header(self.dialect.kind_of(header.kind))?
        })
    }

    /// The damaged header here, and the `len` bytes lost with it.
    fn damaged(&self, len: usize) -> Option<Fragment> {
        let header = Header::decode(self.bytes.first_chunk()?);
        let form = self.dialect.meaning(header.kind).form;
        let covered = self
            .rest
            .get(HEADER_LEN - 1..form.header_len() + usize::from(header.len));
        let checksum = self.dialect.checksum;
        Some(Fragment {
            end_offset: self.offset + self.bytes.len().min(len) as u64,
            stored_crc: Some(checksum.crc_of_stored(header.masked_crc)),
            computed_crc: covered.map(|covered| checksum.crc(covered)),
            log_number: Dialect::log_number_at(self.rest, form),
            synced_offset: Dialect::synced_offset_at(self.rest, form),
            ..self.header(self.dialect.kind_of(header.kind))?
        })
    }

    /// How many bytes here are not a fragment, and whether every byte of the block was tried to
    /// determine that.
    fn damaged_len(&self, may_scan: bool) -> (usize, bool) {
        let goes_on = self.bytes.len() < self.rest.len();
        if goes_on || self.reason() == Some(Reason::TornTail) {
            return (self.bytes.len(), false);
        }
        let resume = resync::resume(&self.dialect, self.rest, self.left, may_scan);
        (resume.len, resume.has_scanned)
    }
}
