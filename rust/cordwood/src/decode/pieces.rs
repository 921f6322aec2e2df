//! The bytes of a record, either as one slice or as the payloads of fragments in the window.

use std::ops::Range;

use super::Window;
use crate::dialect::{Grid, Role};
use crate::format::{HEADER_LEN, Header};

/// The bytes of a record as one or more slices, in order.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    one: Option<&'a [u8]>,
    several: Option<Payloads<'a>>,
}

impl<'a> Pieces<'a> {
    #[inline]
    pub(super) fn one(bytes: &'a [u8]) -> Self {
        Pieces {
            one: Some(bytes),
            several: None,
        }
    }

    pub(super) fn several(payloads: Payloads<'a>) -> Self {
        Pieces {
            one: None,
            several: Some(payloads),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.one.take().or_else(|| self.several.as_mut()?.next())
    }
}

/// The payloads of one record's fragments, which have all been read and are still in the window.
/// Only block trailers can lie between the fragments, because any other bytes make the decoder
/// abandon the record.
#[derive(Debug, Clone)]
pub(super) struct Payloads<'a> {
    grid: Grid,
    window: Window<'a>,
    /// The file offsets of the remaining bytes, which start at the next fragment or at a block
    /// trailer before it.
    left: Range<u64>,
}

impl<'a> Payloads<'a> {
    /// Creates the payloads. `range` extends from the header of the first fragment to the end of
    /// the last payload.
    pub(super) fn new(grid: Grid, window: Window<'a>, range: Range<u64>) -> Self {
        Payloads {
            grid,
            window,
            left: range,
        }
    }
}

impl<'a> Iterator for Payloads<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.left.start < self.left.end {
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
