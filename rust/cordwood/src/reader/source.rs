//! Where windows of a file come from.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::decode::Window;

/// Bytes that are asked for at a time. Measured: 256 KiB costs a quarter of the speed, 4 MiB gains nothing.
const WINDOW_LEN: usize = 1 << 20;

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
    /// File offset of `buffer[0]`.
    offset: u64,
    /// Empty before the first read, then always as long, so that it is zeroed only once.
    buffer: Vec<u8>,
    /// How much of the buffer holds bytes of the file.
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
            filled,
            is_last,
            file_len,
        } = self;
        StreamSource {
            read: wrap(read),
            offset,
            buffer,
            filled,
            is_last,
            file_len,
        }
    }

    /// One read into the space behind what is filled. A read that is interrupted by a signal is repeated.
    fn read_on(&mut self) -> io::Result<()> {
        self.buffer.resize(WINDOW_LEN, 0);
        if self.filled == WINDOW_LEN {
            // A read into no room gives no bytes, which would be taken for the end of the file.
            return Ok(());
        }
        loop {
            match self.read.read(&mut self.buffer[self.filled..]) {
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
            bytes: &self.buffer[..self.filled],
            is_last: self.is_last,
        }
    }

    fn fill(&mut self, from: u64) -> io::Result<()> {
        loop {
            let done = usize::try_from(from.saturating_sub(self.offset))
                .unwrap_or(usize::MAX)
                .min(self.filled);
            self.buffer.copy_within(done..self.filled, 0);
            self.filled -= done;
            self.offset += done as u64;
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
