//! Sources, which supply readers with windows onto a file.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileReader;
use super::segments::{Place, Segments};
use crate::decode::Window;
use crate::error::{Cut, Error};
use crate::format::BLOCK_LEN;

/// The number of bytes to request per read. The bytes read, and the results created from them,
/// should fit in the processor's cache. On Sapphire Rapids, reading record batches takes 1.05 to
/// 1.15 times as long with windows of 1 MiB; none of the other measurements change.
const WINDOW_LEN: usize = 1 << 18;

/// Each byte's address in the buffer is congruent to its file offset modulo this page size.
///
/// The kernel copies from its pages with `rep movsb`. If the destination's offset in its page is 1
/// to 31 bytes greater than the source's, processors mistake the copy for an overlapping one and
/// copy byte by byte. On Zen 3, this is five times slower. Large allocations start 16 bytes into a
/// page, so without alignment nearly every read would be this slow.
const PAGE_LEN: usize = 4096;

/// Supplies windows onto a file.
pub trait Source {
    /// Returns the bytes that are currently in memory.
    fn window(&self) -> Window<'_>;

    /// Reads more bytes. The new window contains the bytes from the file offset `from` onward, and
    /// either extends further than the old window or is the last window of the file.
    ///
    /// The reader's range ends at the file offset `range_end`, or is unlimited if this is
    /// `u64::MAX`. Bytes after the range are only needed if its last record extends past
    /// `range_end`.
    ///
    /// # Errors
    ///
    /// Returns an error if the read fails. In that case, the window still contains its old bytes
    /// from the file offset `from` onward, and a later call tries again.
    fn fill(&mut self, from: u64, range_end: u64) -> io::Result<()>;

    /// Returns the length of the file in bytes, if known.
    fn file_len(&self) -> Option<u64>;

    /// Returns the path of the file, if known. Errors include this path. If no log number is given,
    /// it is taken from the file name at the end of the path.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Reads into `buffer` from the file offset `offset` until the buffer is full or the file ends.
    /// Returns the number of bytes read, which is zero if the source supports only sequential
    /// reads. The window does not change. A reader uses this to inspect the rest of a long file
    /// that does not start like a log.
    ///
    /// # Errors
    ///
    /// Returns an error if the read fails.
    fn read_aside(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = (offset, buffer);
        Ok(0)
    }

    /// Returns the files of the log, if it can consist of several files.
    // Hidden because only a `StreamSource` reads several files.
    #[doc(hidden)]
    fn files(&mut self) -> Option<&mut dyn Files> {
        None
    }
}

/// The files of a log, which a source reads one at a time.
pub trait Files {
    /// Returns the open file's place in the log, if the log consists of several files.
    fn place(&self) -> Option<Place>;

    /// Opens the next file of the log, if any. On error, the source stays at the end of the current
    /// file.
    fn open_next(&mut self) -> Result<(), Error>;

    /// Opens the file containing `offset`, and returns whether a different file was open before.
    fn open_at(&mut self, offset: u64) -> Result<bool, Error>;

    /// Must be called after [`open_at`](Self::open_at) has opened a different file. If `is_kept` is
    /// true, closes the previous file. Otherwise, goes back to the previous file and its window.
    fn settle(&mut self, is_kept: bool);
}

/// A source that can seek. [`Reader::seek`](super::Reader::seek) requires such a source.
pub trait SeekSource: Source {
    /// Seeks to the file offset `offset`, where the next read will start.
    ///
    /// # Errors
    ///
    /// Returns an error if the seek fails. In that case, the source stays at its old offset.
    fn seek(&mut self, offset: u64) -> io::Result<()>;
}

/// A source for a file that is entirely in memory.
#[derive(Debug, Clone, Copy)]
pub struct SliceSource<'a> {
    file: &'a [u8],
}

impl<'a> SliceSource<'a> {
    /// Creates a source in which `file[0]` is at file offset 0.
    pub fn new(file: &'a [u8]) -> Self {
        SliceSource { file }
    }
}

impl Source for SliceSource<'_> {
    #[inline]
    fn window(&self) -> Window<'_> {
        Window {
            offset: 0,
            bytes: self.file,
            is_last: true,
        }
    }

    fn fill(&mut self, _from: u64, _range_end: u64) -> io::Result<()> {
        Ok(())
    }

    fn file_len(&self) -> Option<u64> {
        Some(self.file.len() as u64)
    }

    fn read_aside(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.file.get(offset..));
        let rest = rest.unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// The window already contains the whole file, so there is no need to seek.
impl SeekSource for SliceSource<'_> {
    fn seek(&mut self, _offset: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A source that reads a file in chunks.
#[derive(Debug)]
pub struct StreamSource<R> {
    open: Opened<R>,
    file_len: Option<u64>,
    /// The file offset at which the reader's range ends.
    range_end: u64,
    path: Option<PathBuf>,
    /// The files of the log, if it is segmented. In that case, all offsets are log offsets.
    segments: Option<Segments<R>>,
    /// The file that was open before the last [`Files::open_at`]. `None` once [`Files::settle`] is
    /// called.
    before: Option<Box<Opened<R>>>,
}

/// An open log file, and the part of it that is in memory.
#[derive(Debug)]
struct Opened<R> {
    read: R,
    /// The file, if it can be read at any offset.
    aside: Option<FileReader>,
    bytes: Buffer,
}

/// The part of a file that is in memory.
#[derive(Debug, Default)]
struct Buffer {
    /// Empty before the first read. After that, the length is constant, so the buffer is zeroed
    /// only once.
    buffer: Vec<u8>,
    /// The index in `buffer` of the first byte read from the file.
    start: usize,
    /// The number of bytes in `buffer` that were read from the file.
    filled: usize,
    /// The file offset of the byte at `start`.
    offset: u64,
    is_last: bool,
}

impl Buffer {
    /// Creates an empty buffer at the file offset `offset`.
    fn at(offset: u64) -> Self {
        Buffer {
            offset,
            ..Buffer::default()
        }
    }

    /// Returns the file offset just past the last byte in the buffer.
    fn end(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// Discards all bytes, so that the buffer continues at the file offset `offset`.
    fn clear(&mut self, offset: u64) {
        (self.offset, self.filled, self.is_last) = (offset, 0, false);
    }

    /// Discards the first `len` bytes, and moves the rest to the front to make room for more.
    fn forget(&mut self, len: usize) -> io::Result<()> {
        if self.buffer.is_empty() {
            let len = WINDOW_LEN + 2 * PAGE_LEN;
            self.buffer.try_reserve_exact(len)?;
            self.buffer.resize(len, 0);
        }
        let kept = self.start + len..self.start + self.filled;
        self.offset += len as u64;
        self.filled -= len;
        let next_page = self.buffer.as_ptr().addr().wrapping_neg() % PAGE_LEN;
        self.start = next_page + (self.offset % PAGE_LEN as u64) as usize;
        self.buffer.copy_within(kept, self.start);
        Ok(())
    }
}

#[cfg(feature = "fs")]
impl StreamSource<FileReader> {
    /// Opens a file, or the first file of a log in [`segments`](crate::segments).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Reader::open`](crate::Reader::open).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::io(source, Some(path));
        let source = match FileReader::open(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let (segments, file) = Segments::open(path)?;
                let mut source = StreamSource::new(file.clone(), segments.place().origin);
                source.open.aside = Some(file);
                source.segments = Some(segments);
                source
            }
            opened => Self::with_file(opened.map_err(failed)?, 0).map_err(failed)?,
        };
        Ok(source.with_path(Some(path.to_owned())))
    }

    /// Creates a source that reads an open file, starting at `offset`. If the file ends before
    /// `offset`, the source starts at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns the error from the operating system.
    pub fn with_file(mut file: FileReader, offset: u64) -> io::Result<Self> {
        let Some(file_len) = file.file_len()? else {
            return Ok(StreamSource::new(file, 0));
        };
        let offset = file.seek(SeekFrom::Start(offset.min(file_len)))?;
        let mut source = StreamSource::new(file.clone(), offset).with_len(file_len);
        source.open.aside = Some(file);
        Ok(source)
    }
}

impl<R: Read> StreamSource<R> {
    /// Creates a source that reads from `read`, which must be at file offset `offset`.
    pub fn new(read: R, offset: u64) -> Self {
        StreamSource {
            open: Opened {
                read,
                aside: None,
                bytes: Buffer::at(offset),
            },
            file_len: None,
            range_end: u64::MAX,
            path: None,
            segments: None,
            before: None,
        }
    }

    /// Sets the path of the file. See [`Source::path`].
    #[must_use]
    pub fn with_path(self, path: Option<PathBuf>) -> Self {
        StreamSource { path, ..self }
    }

    /// Sets the length of the whole file in bytes. With this length, the reader can report the
    /// unread part of the file if it stops early because of
    /// [`OnCorruption::Stop`](crate::OnCorruption::Stop).
    #[must_use]
    pub fn with_len(self, file_len: u64) -> Self {
        StreamSource {
            file_len: Some(file_len),
            ..self
        }
    }

    /// Returns a reference to the underlying reader.
    pub fn get_ref(&self) -> &R {
        &self.open.read
    }

    /// Returns a mutable reference to the underlying reader. Don't read from it or change its
    /// position.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.open.read
    }

    /// Returns the underlying reader, positioned after all buffered bytes, even those that haven't
    /// been returned as records yet.
    pub fn into_inner(self) -> R {
        self.open.read
    }

    /// Returns whether the log consists of several files.
    pub fn is_segmented(&self) -> bool {
        self.segments.is_some()
    }

    /// Wraps the underlying reader in another reader, which must return the same bytes.
    ///
    /// ```
    /// use std::io::BufReader;
    /// use std::path::Path;
    /// use cordwood_log::{ReadOptions, Reader};
    /// use cordwood_log::read::StreamSource;
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.log");
    /// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
    /// let source = StreamSource::open(&path)?.map(BufReader::new);
    /// let mut reader = Reader::with_source(source, ReadOptions::default());
    /// assert_eq!(reader.next_record()?.unwrap().data, b"foo");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn map<T>(self, wrap: impl Fn(R) -> T + Send + Sync + 'static) -> StreamSource<T>
    where
        R: 'static,
    {
        let wrap = Arc::new(wrap);
        let Opened { read, aside, bytes } = self.open;
        StreamSource {
            open: Opened {
                read: wrap(read),
                aside,
                bytes,
            },
            file_len: self.file_len,
            range_end: self.range_end,
            path: self.path,
            segments: self.segments.map(|segments| segments.map(wrap)),
            before: None,
        }
    }

    /// Returns the log offset of the first byte of the open file.
    fn origin(&self) -> u64 {
        self.place().map_or(0, |place| place.origin)
    }

    /// Returns how many bytes to request in the next read. Until the end of the range is reached,
    /// this is the number of bytes left in the range. The last record may extend far past the end
    /// of the range, so reading continues there. The first read past the end requests one block,
    /// and each later one requests as many bytes as have already been read past the end.
    fn len_to_read(&self) -> usize {
        let offset = self.open.bytes.end();
        let len = match self.range_end.checked_sub(offset) {
            Some(rest) if rest > 0 => rest,
            _ => (offset - self.range_end).max(BLOCK_LEN as u64),
        };
        usize::try_from(len).unwrap_or(usize::MAX)
    }

    /// Fails if the file has become shorter since it was opened. Without this check, the records
    /// that were cut off would be lost silently.
    fn check_end(&self) -> io::Result<()> {
        let end = self.open.bytes.end();
        match self.place().map_or(self.file_len, |place| Some(place.end)) {
            Some(file_len) if end < file_len => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, Cut { file_len, end }))
            }
            _ => Ok(()),
        }
    }

    /// Reads once into the free space of the buffer, retrying if a signal interrupts the read.
    fn read_on(&mut self) -> io::Result<()> {
        let filled = self.open.bytes.filled;
        if filled == WINDOW_LEN {
            // Reading into an empty slice returns no bytes, which would look like the end of the
            // file.
            return Ok(());
        }
        let mut len = self.len_to_read().min(WINDOW_LEN - filled);
        if let Some(Place { next: Some(_), end, .. }) = self.place() {
            let rest = end.saturating_sub(self.open.bytes.end());
            len = len.min(usize::try_from(rest).unwrap_or(usize::MAX));
        }
        loop {
            let Opened { read, bytes, .. } = &mut self.open;
            match read.read(&mut bytes.buffer[bytes.start..][filled..][..len]) {
                Ok(len) => {
                    // A faulty `Read` may claim to have read more bytes than fit in the slice. This
                    // must not cause a panic later.
                    bytes.filled = WINDOW_LEN.min(filled + len);
                    if len == 0 {
                        self.check_end()?;
                    }
                    self.open.bytes.is_last = len == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: Read + Seek> SeekSource for StreamSource<R> {
    /// Discards the buffered bytes and seeks so that the window will start one byte before
    /// `offset`. If that byte doesn't exist, the file ends before `offset`.
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let origin = self.origin();
        let before = offset.saturating_sub(1).saturating_sub(origin);
        let offset = origin + self.open.read.seek(SeekFrom::Start(before))?;
        self.open.bytes.clear(offset);
        Ok(())
    }
}

impl<R: Read> Files for StreamSource<R> {
    fn place(&self) -> Option<Place> {
        self.segments.as_ref().map(Segments::place)
    }

    fn open_next(&mut self) -> Result<(), Error> {
        let opened = self.segments.as_mut().map_or(Ok(None), Segments::open_next)?;
        if let Some((read, file)) = opened {
            (self.open.read, self.open.aside) = (read, Some(file));
            self.open.bytes.clear(self.origin());
        }
        Ok(())
    }

    fn open_at(&mut self, offset: u64) -> Result<bool, Error> {
        let opened = self
            .segments
            .as_mut()
            .map_or(Ok(None), |segments| segments.open_at(offset))?;
        let Some((read, file)) = opened else { return Ok(false) };
        let opened = Opened {
            read,
            aside: Some(file),
            bytes: Buffer::at(self.origin()),
        };
        self.before = Some(Box::new(std::mem::replace(&mut self.open, opened)));
        Ok(true)
    }

    fn settle(&mut self, is_kept: bool) {
        let Some(before) = self.before.take() else { return };
        if is_kept {
            if self.open.bytes.buffer.is_empty() {
                self.open.bytes.buffer = before.bytes.buffer;
            }
            return;
        }
        if let Some(segments) = &mut self.segments {
            segments.go_back();
        }
        self.open = *before;
    }
}

impl<R: Read> Source for StreamSource<R> {
    #[inline]
    fn window(&self) -> Window<'_> {
        let bytes = &self.open.bytes;
        Window {
            offset: bytes.offset,
            bytes: &bytes.buffer[bytes.start..][..bytes.filled],
            is_last: bytes.is_last,
        }
    }

    fn fill(&mut self, from: u64, range_end: u64) -> io::Result<()> {
        self.range_end = range_end;
        if from < self.open.bytes.offset {
            return Err(starts_after(self.open.bytes.offset, from));
        }
        loop {
            let bytes = &mut self.open.bytes;
            let done = usize::try_from(from.saturating_sub(bytes.offset)).unwrap_or(usize::MAX);
            bytes.forget(done.min(bytes.filled))?;
            self.read_on()?;
            if self.open.bytes.is_last || self.open.bytes.end() > from {
                return Ok(());
            }
        }
    }

    fn file_len(&self) -> Option<u64> {
        self.segments
            .as_ref()
            .map_or(self.file_len, |segments| Some(segments.log_end()))
    }

    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn read_aside(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &self.open.aside else { return Ok(0) };
        file.read_full_at(buffer, offset - self.origin())
    }

    fn files(&mut self) -> Option<&mut dyn Files> {
        Some(self)
    }
}

/// Returns the error for a source that starts after the first byte to be read.
#[cold]
pub(super) fn starts_after(offset: u64, wanted: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("the source starts at offset {offset}, after offset {wanted} where reading starts"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Encoder;
    use crate::error::{Error, ErrorKind};
    use crate::read::Found;
    use crate::{Dialect, End, ReadOptions, Reader};

    /// Without this check, reading a file longer than a window would never end, and reading a
    /// shorter one would end cleanly without any events.
    #[test]
    fn rejects_a_source_that_starts_past_the_requested_offset() {
        for count in [1, 100_000] {
            let mut file = Vec::new();
            let mut encoder = Encoder::new(0);
            for _ in 0..count {
                encoder.encode(b"twenty bytes of data", &mut file);
            }
            for options in [
                ReadOptions::default(),
                ReadOptions::default().with_dialect(Dialect::LEVELDB),
            ] {
                let mut reader = Reader::with_source(StreamSource::new(&file[5..], 5), options);
                for _ in 0..2 {
                    let error = reader.next_event().unwrap_err();
                    let message = "the source starts at offset 5, after offset 0 where reading starts";
                    assert_eq!(error.to_string(), message);
                    assert!(
                        matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput)
                    );
                }
            }
        }
    }

    /// A finding stays available until it is taken, and no more bytes are read in the meantime.
    /// Every kind of finding is tested: a record in a run, a single record, a record in pieces, and
    /// the end.
    #[test]
    fn a_found_record_stays_available_until_it_is_taken() -> Result<(), Error> {
        let lens = [3, 5, 0, 40_000, 7, 100_000, 40_000, 1, 32_761];
        let mut file = Vec::new();
        let mut encoder = Encoder::new(0);
        let records: Vec<Vec<u8>> = (0..).zip(lens).map(|(byte, len)| vec![byte; len]).collect();
        for record in &records {
            encoder.encode(record, &mut file);
        }
        let recyclable = crate::LogFormat::new(Dialect::RECYCLABLE).with_log_number(7);
        let mut numbered = Vec::new();
        let mut encoder = Encoder::with_format(0, recyclable).unwrap();
        for record in &records {
            encoder.encode(record, &mut numbered);
        }
        for (file, dialect) in [(file, Dialect::LEVELDB.into()), (numbered, recyclable)] {
            let options = ReadOptions::default().with_format(dialect);
            let mut reader = Reader::with_source(StreamSource::new(file.as_slice(), 0), options);
            let mut found = Vec::new();
            loop {
                if !reader.find() {
                    assert!(reader.found().is_none());
                    reader.read_more();
                    continue;
                }
                let mut seen = Vec::new();
                for _ in 0..3 {
                    assert!(reader.find());
                    reader.read_more();
                    seen.push(match reader.found() {
                        Some(Found::Record(record)) => {
                            let bytes = record.pieces().collect::<Vec<_>>().concat();
                            assert_eq!(bytes.len() as u64, record.len());
                            Some((record.offset, record.end_offset, bytes))
                        }
                        Some(Found::End(_)) => None,
                        other => panic!("{other:?}"),
                    });
                }
                assert!(seen[0] == seen[1] && seen[0] == seen[2]);
                let Some((offset, end_offset, bytes)) = seen.swap_remove(0) else {
                    break;
                };
                // Calls that return a record also take the finding.
                if found.len() % 2 == 0 {
                    reader.advance()?;
                } else {
                    let record = reader.next_record()?.unwrap();
                    assert_eq!((record.offset, record.end_offset), (offset, end_offset));
                    assert!(record.data == bytes);
                }
                found.push(bytes);
            }
            assert!(found == records);
            assert_eq!(reader.next_record()?, None);
            assert_eq!(
                reader.end(),
                Some(End::Clean {
                    offset: file.len() as u64
                })
            );
        }
        Ok(())
    }

    /// A source whose read fails once, after `left` bytes.
    struct Failing<'a> {
        file: io::Cursor<&'a [u8]>,
        left: usize,
        has_failed: bool,
    }

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.left == 0 && !std::mem::replace(&mut self.has_failed, true) {
                return Err(io::Error::other("once"));
            }
            let len = if self.has_failed {
                buffer.len()
            } else {
                buffer.len().min(self.left)
            };
            let len = self.file.read(&mut buffer[..len])?;
            self.left = self.left.saturating_sub(len);
            Ok(len)
        }
    }

    impl Seek for Failing<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    /// `verify` and `stat` do not keep the bytes of records. If the source fails inside a record,
    /// the record must not be returned later without its first bytes.
    #[test]
    fn rereads_a_record_from_its_start_after_counting_fails() {
        for (record_len, left) in [(200_000, 150_000), (3_000_000, 2_500_000)] {
            let record: Vec<u8> = (0..record_len).map(|byte| (byte % 251) as u8).collect();
            let mut file = Vec::new();
            let mut encoder = Encoder::new(0);
            encoder.encode(b"first", &mut file);
            encoder.encode(&record, &mut file);
            for operation in [
                |reader: &mut Reader<_>| crate::ops::verify_from(reader).map(drop),
                |reader: &mut Reader<_>| crate::ops::stat_from(reader).map(drop),
            ] {
                let read = Failing {
                    file: io::Cursor::new(&file),
                    left,
                    has_failed: false,
                };
                let mut reader = Reader::with_source(StreamSource::new(read, 0), ReadOptions::default());
                assert_eq!(operation(&mut reader).unwrap_err().to_string(), "once");
                // The bytes of the record read so far are lost, because a reader never seeks back
                // on its own.
                for _ in 0..2 {
                    let error = reader.next_record().unwrap_err();
                    assert!(
                        matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput)
                    );
                }
                reader.seek(12).unwrap();
                assert!(reader.next_record().unwrap().unwrap().data == record);
                assert_eq!(reader.next_record().unwrap(), None);
            }
        }
    }

    /// Page boundaries in memory match those in the file, no matter where reads end or how many
    /// bytes are kept.
    #[test]
    fn the_window_is_aligned_to_file_pages() -> io::Result<()> {
        let file: Vec<u8> = (0..3 * WINDOW_LEN).map(|byte| (byte % 251) as u8).collect();
        let mut source = StreamSource::new(&file[5..], 5);
        let mut from = 5;
        while !source.open.bytes.is_last {
            source.fill(from, u64::MAX)?;
            let Window { offset, bytes, .. } = source.window();
            assert_eq!(bytes.as_ptr().addr() % PAGE_LEN, offset as usize % PAGE_LEN);
            assert_eq!(bytes, &file[offset as usize..][..bytes.len()]);
            from = offset + bytes.len() as u64 * 7 / 8;
        }
        assert_eq!(source.window().bytes.last(), file.last());
        Ok(())
    }
}
