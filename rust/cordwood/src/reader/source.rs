//! Where windows of a file come from.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::decode::Window;

/// Bytes that are asked for at a time. Measured: 256 KiB costs a quarter of the speed, 4 MiB gains nothing.
const WINDOW_LEN: usize = 1 << 20;

/// A byte of the file lies in memory as far into a page of this length as in the file.
///
/// The kernel copies from its pages with `rep movsb`. Where the copy lies 1 to 31 bytes further into its page than the source, processors take that for an
/// overlap and copy byte by byte: measured on a Zen 3, five times slower. Large allocations begin 16 bytes into a page, so this was the rule.
const PAGE_LEN: usize = 4096;

/// Gives windows of a file.
pub trait Source {
    /// What is in memory now.
    fn window(&self) -> Window<'_>;

    /// Reads on, so that the window holds the bytes from the file offset `from` on and more than before, or is the last.
    ///
    /// # Errors
    ///
    /// What the file says. The window is as it was, and a further call tries again.
    fn fill(&mut self, from: u64) -> io::Result<()>;

    /// The length of the file in bytes, if it is known.
    fn file_len(&self) -> Option<u64>;
}

/// A file that is in memory as a whole.
#[derive(Debug, Clone, Copy)]
pub struct SliceSource<'a> {
    file: &'a [u8],
}

impl<'a> SliceSource<'a> {
    /// `file[0]` is file offset 0.
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

    fn fill(&mut self, _from: u64) -> io::Result<()> {
        Ok(())
    }

    fn file_len(&self) -> Option<u64> {
        Some(self.file.len() as u64)
    }
}

/// A file that is read piece by piece.
#[derive(Debug)]
pub struct StreamSource<R> {
    read: R,
    /// File offset of `buffer[begin]`.
    offset: u64,
    /// Empty before the first read, then always as long, so that it is zeroed only once.
    buffer: Vec<u8>,
    /// Where in the buffer the bytes of the file begin.
    begin: usize,
    /// How many there are.
    filled: usize,
    is_last: bool,
    file_len: Option<u64>,
}

impl StreamSource<File> {
    /// Opens a file and goes to `offset`, or to its end if that is nearer.
    ///
    /// # Errors
    ///
    /// What the operating system says, [`io::ErrorKind::IsADirectory`] for a directory.
    pub fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // A pipe or a device has no length, and cannot seek.
        if metadata.is_file() {
            let offset = file.seek(SeekFrom::Start(offset.min(metadata.len())))?;
            return Ok(StreamSource::new(file, offset).with_len(metadata.len()));
        }
        Ok(StreamSource::new(file, 0))
    }
}

impl<R: Read> StreamSource<R> {
    /// Reads `read`, which stands at the file offset `offset`.
    pub fn new(read: R, offset: u64) -> Self {
        StreamSource {
            read,
            offset,
            buffer: Vec::new(),
            begin: 0,
            filled: 0,
            is_last: false,
            file_len: None,
        }
    }

    /// Says how long the whole file is, in bytes. What [`OnCorruption::Stop`](crate::OnCorruption::Stop) leaves unread can then be told.
    #[must_use]
    pub fn with_len(self, file_len: u64) -> Self {
        StreamSource {
            file_len: Some(file_len),
            ..self
        }
    }

    /// The same source with its reader wrapped in another.
    pub fn map<T>(self, wrap: impl FnOnce(R) -> T) -> StreamSource<T> {
        let StreamSource {
            read,
            offset,
            buffer,
            begin,
            filled,
            is_last,
            file_len,
        } = self;
        StreamSource {
            read: wrap(read),
            offset,
            buffer,
            begin,
            filled,
            is_last,
            file_len,
        }
    }

    /// Lets go of the first `len` bytes, and moves the others to where the buffer has room behind them.
    fn forget(&mut self, len: usize) {
        self.buffer.resize(WINDOW_LEN + 2 * PAGE_LEN, 0);
        let kept = self.begin + len..self.begin + self.filled;
        self.offset += len as u64;
        self.filled -= len;
        let next_page = self.buffer.as_ptr().addr().wrapping_neg() % PAGE_LEN;
        self.begin = next_page + (self.offset % PAGE_LEN as u64) as usize;
        self.buffer.copy_within(kept, self.begin);
    }

    /// One read into the space behind what is filled. A read that is interrupted by a signal is repeated.
    fn read_on(&mut self) -> io::Result<()> {
        if self.filled == WINDOW_LEN {
            // A read into no room gives no bytes, which would be taken for the end of the file.
            return Ok(());
        }
        loop {
            match self.read.read(&mut self.buffer[self.begin..][self.filled..WINDOW_LEN]) {
                Ok(len) => {
                    // A `Read` that claims more than it was given room for must not make us panic later.
                    self.filled = WINDOW_LEN.min(self.filled + len);
                    self.is_last = len == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: Read + Seek> StreamSource<R> {
    /// Goes to the file offset `offset` and forgets what is in memory.
    ///
    /// # Errors
    ///
    /// What the source says. It is then where it was.
    pub fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.offset = self.read.seek(SeekFrom::Start(offset))?;
        self.filled = 0;
        self.is_last = false;
        Ok(())
    }
}

impl<R: Read> Source for StreamSource<R> {
    #[inline]
    fn window(&self) -> Window<'_> {
        Window {
            offset: self.offset,
            bytes: &self.buffer[self.begin..][..self.filled],
            is_last: self.is_last,
        }
    }

    fn fill(&mut self, from: u64) -> io::Result<()> {
        loop {
            let done = usize::try_from(from.saturating_sub(self.offset))
                .unwrap_or(usize::MAX)
                .min(self.filled);
            self.forget(done);
            self.read_on()?;
            if self.is_last || self.offset + self.filled as u64 > from {
                return Ok(());
            }
        }
    }

    fn file_len(&self) -> Option<u64> {
        self.file_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the reads end and whatever is kept, memory and file agree about where a page begins.
    #[test]
    fn bytes_lie_in_memory_as_far_into_a_page_as_in_the_file() -> io::Result<()> {
        let file: Vec<u8> = (0..3 * WINDOW_LEN).map(|byte| (byte % 251) as u8).collect();
        let mut source = StreamSource::new(&file[5..], 5);
        let mut from = 5;
        while !source.is_last {
            source.fill(from)?;
            let Window { offset, bytes, .. } = source.window();
            assert_eq!(bytes.as_ptr().addr() % PAGE_LEN, offset as usize % PAGE_LEN);
            assert_eq!(bytes, &file[offset as usize..][..bytes.len()]);
            from = offset + bytes.len() as u64 * 7 / 8;
        }
        assert_eq!(source.window().bytes.last(), file.last());
        Ok(())
    }
}
