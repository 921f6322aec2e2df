//! Finds where to append to a log, following the rules in `docs/format/writing.md`.

use std::io;
use std::path::Path;

use super::tail::Tail;
use super::unsynced;
use crate::container::Mark;
use crate::damage::{Reason, SkippedRegion};
use crate::decode::{OnCorruption, ReadOptions, Step};
use crate::detect::{DETECT_LEN, Foreign, PartialDetection, check_start, identify, of_rest, starts_undamaged};
use crate::dialect::{Dialect, Form, GivenFormat, Grid, LogFormat, Metadata, Role};
use crate::error::{Error, ErrorKind, Hint, unsupported};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};
use crate::fragment::is_written;
use crate::reader::{Reader, Source, StreamSource};
use crate::text::is_text;
use crate::writer::BUFFER_LEN;
use crate::writer::log_file::{LogFileOptions, OnTornTail};
use crate::writer::storage::{Storage, StorageReader, read_at_most, write_all};

/// The offset for the next record, and any bytes that follow the last complete record.
#[derive(Debug, Default)]
pub(in crate::writer) struct Recovered {
    pub(in crate::writer) format: LogFormat,
    pub(in crate::writer) file_len: u64,
    /// The bytes after the last complete record. Their offsets are log offsets.
    pub(in crate::writer) tail: Option<SkippedRegion>,
}

/// Finds the end of the last complete record, and changes the file so that another record can
/// follow it. Errors contain `path`. `file` is the path of the file itself, which may be a segment
/// of a log. `interrupted` can stop the call while it is reading.
///
/// Records, the tail and errors have log offsets. The storage uses file offsets.
pub(in crate::writer) fn recover(
    storage: &dyn Storage,
    options: &LogFileOptions,
    path: Option<&Path>,
    file: Option<&Path>,
    interrupted: &dyn Fn() -> io::Result<()>,
) -> Result<Recovered, Error> {
    let failed = |source| Error::io(source, path);
    let file_len = storage.file_len().map_err(failed)?;
    let (format, foreign) = format_of(storage, options, (path, file), file_len)?;
    let origin = options.origin;
    let log = LogBefore {
        grid: Grid::new(format.dialect, origin),
        foreign,
        end: origin + file_len,
        storage,
        options,
        path,
        interrupted,
    };
    // Data from this offset onward might not be on disk, even though it can be read.
    let known = unsynced::known_offset(storage.identity());
    let checkpoint = options.checkpoint.map(|offset| offset.saturating_sub(origin));
    let unsynced = known.into_iter().chain(checkpoint).min();
    let (mut new_len, mut discarded) = (file_len, None);
    if let Some(tail) = log.find_tail()? {
        let region = SkippedRegion::new(tail.start..log.end, tail.reason);
        new_len = log.new_end(&tail, region)? - origin;
        if new_len > file_len && tail.last != Reason::ZeroFill {
            let byte = log.padding_byte(&tail)?;
            write_all(storage, &[byte], file_len).map_err(failed)?;
        }
        if new_len != file_len {
            cut(storage, new_len, unsynced.unwrap_or(0)).map_err(failed)?;
        }
        discarded = Some(region);
    }
    match unsynced {
        // The file is shorter than the part that was on disk: it is a different file or has been
        // truncated.
        Some(offset) if offset > new_len => unsynced::forget(storage.identity()),
        Some(offset) => write_again(storage, offset, new_len, interrupted).map_err(failed)?,
        None => {}
    }
    Ok(Recovered {
        format,
        file_len: new_len,
        tail: discarded,
    })
}

/// Returns the format to use for appending to a log. The format has the given dialect, or the log's
/// own dialect if none is given. Also returns the detected foreign format if a dialect is given.
///
/// A packed log keeps the compression named in its mark. If the mark is lost, the log keeps the
/// compression of its first container. The given compression is only used if the file has neither a
/// mark nor a container.
///
/// # Errors
///
/// Returns [`ErrorKind::WrongDialect`], [`ErrorKind::NeverAppended`] or [`ErrorKind::Foreign`] if
/// readers of the file would not find the appended records.
fn format_of(
    storage: &dyn Storage,
    options: &LogFileOptions,
    (path, file): (Option<&Path>, Option<&Path>),
    file_len: u64,
) -> Result<(LogFormat, Option<Foreign>), Error> {
    let named = options.dialect;
    let head = read_at_most(storage, 0, DETECT_LEN as u64).map_err(|source| Error::io(source, path))?;
    let read_at = |offset, buffer: &mut [u8]| {
        let bytes = read_at_most(storage, offset, buffer.len() as u64)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    };
    let found = match identify(GivenFormat::default(), file, &head, 0, true) {
        PartialDetection::Log(found) => Ok(found),
        PartialDetection::Foreign(foreign) => Err(Some(foreign)),
        PartialDetection::Longer(weak) => {
            Err(of_rest(weak, file_len, read_at).map_err(|source| Error::io(source, path))?)
        }
        PartialDetection::Unclear | PartialDetection::NeedMore => Err(None),
    };
    if let (Err(Some(foreign)), None) = (found, named) {
        return Err(Error::new(ErrorKind::Foreign { foreign }, path));
    }
    // A file that does not look like a log may still be one if the caller named its dialect.
    let foreign = found.err().flatten().filter(|&foreign| foreign != Foreign::Unknown);
    let found = found.ok();
    if let (Some(named), Some(found)) = (named, found)
        && !reads(named, found.dialect, &head, file_len)
    {
        let found = found.dialect;
        return Err(Error::new(ErrorKind::WrongDialect { named, found }, path));
    }
    // RocksDB and Pebble start a new log each time they open a database. In a log with log numbers,
    // readers mistake any bytes after the log's end for the remainder of an older log.
    if let Some(format) = found.filter(|found| found.dialect.has_log_numbers()) {
        return Err(Error::new(ErrorKind::NeverAppended { format }, path));
    }
    let dialect = named.or(found.map(|found| found.dialect));
    if let Some(dialect) = dialect {
        unsupported(check_start(dialect.into(), &head, options.origin), path)?;
    }
    // A torn mark is ignored.
    let states = |found: &LogFormat| {
        file_len >= Mark::FRAGMENT_LEN as u64
            && named.is_none_or(|named| named.is_packed() == found.dialect.is_packed())
    };
    let stating = found.filter(states);
    let format = LogFormat {
        compression: stating.map_or(options.compression, |found| found.compression),
        ..dialect.unwrap_or(LogFormat::unknown().dialect).into()
    };
    Ok((format, foreign))
}

/// Checks whether a log detected as `found` can be read as `named`: each of its fragments must have
/// the same meaning in both dialects. For example, a RocksDB log that is not recycled is detected
/// as a LevelDB log, and a long Pebble log is detected as a recyclable log. However, a log without
/// containers is never accepted as packed, because other programs that read such logs don't support
/// containers.
///
/// `head` is the start of the file. Damage or padding there may have removed the mark or the file
/// header. Such a loss does not contradict `named`.
fn reads(named: Dialect, found: Dialect, head: &[u8], file_len: u64) -> bool {
    let is_start_lost = !starts_undamaged(head);
    let has_lost_mark = is_start_lost && named.is_packed() && found.has_containers();
    if named.is_packed() != found.is_packed() && !has_lost_mark {
        return false;
    }
    let is_same_fragment = |byte: u8| {
        let meaning = found.meaning(byte);
        // A log detected as a LevelDB log contains containers only if its mark is damaged.
        let is_its_own =
            matches!(meaning.role, Role::Fragment(_)) && (meaning.form != Form::Packed || found.is_packed());
        !is_its_own || named.meaning(byte) == meaning
    };
    let has_lost_file_header = is_start_lost && !named.prefix().is_empty() && !found.prefix().is_empty();
    let is_same_file =
        named.checksum() == found.checksum() && (named.prefix() == found.prefix() || has_lost_file_header);
    // Only a file with a second block reveals where blocks start.
    let is_same_grid = named.grid_offset() == found.grid_offset() || file_len <= BLOCK_LEN as u64;
    named.name() == found.name() || is_same_file && is_same_grid && (0..=u8::MAX).all(is_same_fragment)
}

/// Sets the length of a file to `len`, which either truncates the file or pads it with zeros. The
/// new length is synced before any byte is written after the new end. Otherwise, a crash could make
/// old bytes reappear after the new ones. Everything before `known_offset` was on disk.
pub(in crate::writer) fn cut(storage: &dyn Storage, len: u64, known_offset: u64) -> io::Result<()> {
    storage.set_len(len)?;
    storage
        .sync_data()
        .inspect_err(|_| unsynced::remember(storage.identity(), known_offset.min(len)))
}

/// Rewrites the bytes `[start, end)` of the file, so that the next sync writes them to the disk
/// even if the last sync failed.
fn write_again(
    storage: &dyn Storage,
    start: u64,
    end: u64,
    interrupted: &dyn Fn() -> io::Result<()>,
) -> io::Result<()> {
    let mut offset = start;
    while offset < end {
        interrupted()?;
        let bytes = read_at_most(storage, offset, (end - offset).min(BUFFER_LEN as u64))?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(storage, &bytes, offset)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

/// A log before the first append.
struct LogBefore<'a> {
    grid: Grid,
    /// What the file appears to be, if it does not look like a log. Only set if the dialect was
    /// named.
    foreign: Option<Foreign>,
    /// The log offset of the end of the file.
    end: u64,
    storage: &'a dyn Storage,
    options: &'a LogFileOptions,
    path: Option<&'a Path>,
    interrupted: &'a dyn Fn() -> io::Result<()>,
}

impl LogBefore<'_> {
    fn failed(&self, source: io::Error) -> Error {
        Error::io(source, self.path)
    }

    /// Reads `len` bytes from the log offset `start` onward, or fewer at the end of the file.
    fn read(&self, start: u64, len: u64) -> Result<Vec<u8>, Error> {
        read_at_most(self.storage, start - self.grid.origin, len).map_err(|source| self.failed(source))
    }

    /// Returns the error for a damaged log, with the hint to pad it.
    fn corruption(&self, region: SkippedRegion) -> Error {
        Error::new(ErrorKind::Corruption { region }, self.path).with_hint(Some(Hint::Pad))
    }

    /// Returns the file's new end, according to the table in `docs/format/writing.md`. `region` is
    /// the whole tail.
    fn new_end(&self, tail: &Tail, region: SkippedRegion) -> Result<u64, Error> {
        // Without a valid fragment, there is no proof that this file is a log. It may be a log
        // whose first record is torn. If the dialect was named, the file may also be a log whose
        // only records were damaged because a sector never reached the disk.
        let has_lost_sector =
            self.options.on_torn_tail == OnTornTail::PadToBlock && self.options.dialect.is_some() && tail.is_torn();
        let may_be_log = self.foreign.is_none() && (has_lost_sector || self.is_torn_first(tail.start)?);
        let is_log = tail.has_fragment || !tail.has_data || may_be_log || self.options.is_segment;
        if !is_log {
            return Err(match (self.foreign, tail.damage) {
                (None, Some(region)) => {
                    let hint = if tail.is_torn() {
                        Hint::PadWithDialect
                    } else {
                        Hint::CreateLog
                    };
                    self.corruption(region).with_hint(Some(hint))
                }
                (foreign, _) => {
                    let foreign = foreign.unwrap_or(Foreign::Text);
                    let hint = self.options.dialect.is_none().then_some(Hint::NameDialect);
                    Error::new(ErrorKind::Foreign { foreign }, self.path).with_hint(hint)
                }
            });
        }
        match (self.options.on_torn_tail, tail.damage) {
            (OnTornTail::PadToBlock, _) => Ok(match self.grid.block_left(self.end) {
                BLOCK_LEN => self.end,
                left => self.end + left as u64,
            }),
            (OnTornTail::Truncate, None) => Ok(tail.start),
            (OnTornTail::Truncate, Some(_)) if tail.is_torn() => Ok(tail.start),
            (OnTornTail::Refuse, None) => Err(Error::new(ErrorKind::TornTail { region }, self.path)),
            (OnTornTail::Refuse, Some(region)) if tail.is_torn() => {
                Err(self.corruption(region).with_hint(Some(Hint::OnTornTail)))
            }
            (_, Some(region)) => Err(self.corruption(region)),
        }
    }

    /// Returns the first padding byte. The other padding bytes are zeros.
    ///
    /// If the missing part of a torn record is all zeros, padding with zeros alone could complete
    /// the record. It would then reappear after it had been reported as lost. The byte 0xff
    /// followed by zeros could also complete a torn record. If it would, 0xfe is used instead. That
    /// cannot complete the same record, because two payloads that differ in one byte never have the
    /// same checksum.
    fn padding_byte(&self, tail: &Tail) -> Result<u8, Error> {
        let start = tail.start.max(self.grid.block_start(self.end));
        let bytes = self.read(start, self.end - start)?;
        let mut torn = &bytes[..];
        while let Some(whole) = self.grid.dialect.valid(torn, true) {
            torn = &torn[whole.end..];
        }
        if bytes.len() < HEADER_LEN && !tail.has_fragment {
            // The first header's type is missing. Zero is not a type, so it does not complete the
            // header. With any other byte, the file might not look like a log.
            return Ok(0);
        }
        let mut completed = torn.to_vec();
        completed.push(0xff);
        completed.resize(torn.len() + self.grid.block_left(self.end), 0);
        let is_completed = self.grid.dialect.valid(&completed, true).is_some();
        Ok(if is_completed { 0xfe } else { 0xff })
    }

    /// Checks whether everything from `start` onward can be the start of a single record: a
    /// truncated header, or a header whose record extends to or past the end of the file.
    fn is_torn_first(&self, start: u64) -> Result<bool, Error> {
        /// Text that is longer than this is rarely the start of a header. It is probably the entire
        /// contents of a small file that is not a log.
        const TEXT_LEN_MAX: usize = 4;
        let left = self.end - start;
        let bytes = self.read(start, HEADER_LEN as u64)?;
        let Some(header) = bytes.first_chunk().map(Header::decode) else {
            return Ok(start > self.grid.origin || bytes.len() <= TEXT_LEN_MAX || !is_text(&bytes, true));
        };
        if header.kind == 0 && left <= BLOCK_LEN as u64 {
            // The header may have been cut off before its type, then padded with zeros.
            let rest = self.read(start + HEADER_LEN as u64, left)?;
            return Ok(rest.iter().all(|&byte| byte == 0));
        }
        let meaning = self.grid.dialect.meaning(header.kind);
        let starts = matches!(
            meaning.role,
            Role::Fragment(Kind::Full | Kind::First) | Role::Metadata(Metadata::Mark)
        );
        let block_left = self.grid.block_left(start);
        let len = meaning.form.header_len() + usize::from(header.len);
        Ok(starts && is_written(&self.grid.dialect.into(), header, block_left) && len as u64 >= left)
    }

    /// Checks whether there is nothing, or only a trailer, between the checkpoint and `first`. At
    /// `first`, a record starts, an earlier record continues, or the file ends.
    fn is_edge(&self, checkpoint: u64, first: u64) -> bool {
        let left = self.grid.block_left(checkpoint);
        let is_trailer = left < HEADER_LEN && (checkpoint..=checkpoint.saturating_add(left as u64)).contains(&first);
        checkpoint == self.grid.origin || first == checkpoint || is_trailer
    }

    /// Reads the records from the checkpoint onward. Returns `None` if the file ends with a
    /// complete record.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Corruption`] for damage followed by a complete record, unless the
    /// options request padding.
    fn find_tail(&self) -> Result<Option<Tail>, Error> {
        let LogBefore { grid, options, .. } = *self;
        // In a segmented log, everything before this file was on disk when the file was created.
        let checkpoint = options.checkpoint.unwrap_or(0).max(grid.origin);
        // Start reading at the start of the block, so that no bytes inside a record can be mistaken
        // for a record.
        let offset = grid.block_start(checkpoint);
        let read = StorageReader {
            storage: self.storage,
            offset: offset - grid.origin,
            interrupted: self.interrupted,
        };
        let source = StreamSource::new(read, offset)
            .with_len(self.end)
            .with_path(self.path.map(Path::to_owned));
        let mut read_options = ReadOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_range(offset..)
            .with_dialect(grid.dialect)
            .with_record_len_max(options.record_len_max);
        // Records can be appended even if the log contains records longer than the maximum.
        read_options.takes_any_len = true;
        read_options.origin = grid.origin;
        Reader::with_source(source, read_options).without_data(|reader| self.tail_of(reader, checkpoint))
    }

    /// Like [`find_tail`](Self::find_tail), but with a reader that starts at the block of the
    /// checkpoint.
    fn tail_of<S: Source>(&self, reader: &mut Reader<S>, checkpoint: u64) -> Result<Option<Tail>, Error> {
        let LogBefore { grid, options, .. } = *self;
        // The start of the first event that ends after the checkpoint.
        let mut first = None;
        let mut has_fragment = checkpoint > grid.origin;
        let mut tail: Option<Tail> = None;
        loop {
            let step = reader.step()?;
            let (start, end, is_whole) = match step {
                Step::Record(span) => (span.offset, span.end_offset, true),
                // Engine metadata is treated as complete, like a record. So is a container that is
                // too long to decompress, because its checksums are valid.
                Step::Skipped(region) => (
                    region.start,
                    region.end,
                    matches!(region.reason, Reason::Metadata { .. } | Reason::RecordTooLarge),
                ),
                Step::NeedMore | Step::End(_) => break,
            };
            has_fragment |= is_whole;
            if end <= checkpoint {
                continue;
            }
            let first = *first.get_or_insert(start);
            if !self.is_edge(checkpoint, first) {
                break;
            }
            match step {
                _ if is_whole => {
                    let damage = tail.take().and_then(|tail| tail.damage);
                    if let Some(region) = damage
                        && options.on_torn_tail != OnTornTail::PadToBlock
                    {
                        return Err(self.corruption(region));
                    }
                }
                // This region is the unused end of a full block, or a file header that is not
                // followed by a record yet.
                Step::Skipped(SkippedRegion {
                    reason: Reason::NonzeroTrailer | Reason::FileHeader | Reason::UnknownVersion { .. },
                    ..
                }) => {}
                Step::Skipped(region) => {
                    let tail = tail.get_or_insert_with(|| Tail::new(region));
                    tail.add(region, grid, |start, len| self.read(start, len))?;
                }
                Step::Record(_) | Step::NeedMore | Step::End(_) => {}
            }
        }
        if !self.is_edge(checkpoint, first.unwrap_or(self.end)) {
            let text = "no record starts or ends at the checkpoint: the log was cut, or it is another one";
            return Err(self.failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        if let Some(tail) = &mut tail {
            tail.has_fragment |= has_fragment;
        }
        Ok(tail)
    }
}
