//! The block grid of a file: where its blocks start.

use super::Dialect;
use crate::format::BLOCK_LEN;

/// Where a file's blocks start and end.
///
/// A [`Dialect`] specifies only where the first block of a file starts. In a [segmented
/// log](crate::segments), offsets are counted from the start of the log, but blocks are counted
/// from the start of each segment. As a result, only a grid, which also knows its file's origin,
/// can compute where a block starts.
///
/// ```
/// use cordwood_log::Dialect;
/// use cordwood_log::codec::Grid;
/// assert_eq!(Grid::new(Dialect::LEVELDB, 0).block_start(40_000), 32_768);
/// assert_eq!(Grid::new(Dialect::LEVELDB, 100).block_start(40_000), 32_868);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub(crate) dialect: Dialect,
    /// The offset of the first byte of the file.
    pub(crate) origin: u64,
}

impl Grid {
    /// Creates the grid of a file in this dialect. The file's first byte is at offset `origin`,
    /// which is 0 unless the file is a segment.
    #[inline]
    pub const fn new(dialect: Dialect, origin: u64) -> Self {
        Grid { dialect, origin }
    }

    /// Returns the offset of the start of the block containing `offset`.
    #[inline]
    pub const fn block_start(self, offset: u64) -> u64 {
        let start = offset.saturating_sub((BLOCK_LEN - self.block_left(offset)) as u64);
        if start < self.origin { self.origin } else { start }
    }

    /// Returns the index of the block containing `offset`, counted from 0. Any bytes before the
    /// first block count as part of that block.
    pub(crate) const fn block_of(self, offset: u64) -> u64 {
        offset.saturating_sub(self.origin + self.dialect.grid_offset()) / BLOCK_LEN as u64
    }

    /// Returns the number of bytes from the start of the file to the end of its first block.
    pub(crate) const fn first_block_len(self) -> usize {
        let prefix_len = self.dialect.prefix().len();
        prefix_len + self.block_left(self.origin + prefix_len as u64)
    }

    /// Returns the number of bytes from `offset` to the end of its block.
    #[inline]
    pub(crate) const fn block_left(self, offset: u64) -> usize {
        // 2^64 is a multiple of the block length, so the result is correct even before the first
        // block.
        let in_file = offset.wrapping_sub(self.origin);
        BLOCK_LEN - (in_file.wrapping_sub(self.dialect.grid_offset()) % BLOCK_LEN as u64) as usize
    }
}
