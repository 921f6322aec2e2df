//! The bytes of a record, either as one slice or as the payloads of fragments in the window.

use std::ops::Range;

use super::Window;
use crate::dialect::{Grid, Role};
use crate::format::{HEADER_LEN, Header};

/// The bytes of a record as one or more slices, in order.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    /// All bytes of the record, if they are contiguous.
    pub(super) one: Option<&'a [u8]>,
    pub(super) grid: Grid,
    pub(super) window: Window<'a>,
    /// The file offsets of the remaining fragments, if the bytes are not contiguous. All these
    /// fragments have been read and are still in the window. Only block trailers can lie between
    /// them, because any other bytes make the decoder abandon the record.
    pub(super) left: Range<u64>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.one.is_some() || self.left.is_empty() {
            return self.one.take();
        }
        self.next_payload()
    }
}

impl<'a> Pieces<'a> {
    /// Returns the payload of the next fragment.
    fn next_payload(&mut self) -> Option<&'a [u8]> {
        while !self.left.is_empty() {
            let block_left = self.grid.block_left(self.left.start);
            let header = self.window.at(self.left.start, block_left.min(HEADER_LEN));
            if let Some(header) = header.first_chunk().map(Header::decode)
                && let meaning = self.grid.dialect.meaning(header.kind)
                && let Role::Fragment(_) = meaning.role
            {
                let start = self.left.start + meaning.form.header_len() as u64;
                let payload = self.window.slice(start, usize::from(header.len));
                self.left.start = start + payload.len() as u64;
                return Some(payload);
            }
            self.left.start += block_left as u64;
        }
        None
    }
}
