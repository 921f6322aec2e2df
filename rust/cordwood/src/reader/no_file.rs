//! The substitute for an open file in a build without the feature `fs`.

use std::io;

/// The source of [`Reader::open`](super::Reader), which needs the feature `fs`: there is no value
/// of this type.
#[derive(Debug, Clone)]
pub enum FileReader {}

impl FileReader {
    pub(super) fn read_full_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        match *self {}
    }
}
