//! A replacement for open files in builds without the `fs` feature.

use std::io;
use std::path::Path;

/// The source type for [`Reader::open`](super::Reader), which requires the `fs` feature. This type
/// has no values.
#[derive(Debug, Clone)]
pub enum FileReader {}

impl FileReader {
    pub(super) fn open(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn file_len(&self) -> io::Result<Option<u64>> {
        match *self {}
    }

    pub(super) fn read_full_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        match *self {}
    }
}
