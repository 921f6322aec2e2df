//! Detects logs with a file header, and determines their dialect and where their blocks start, even
//! if part of the header is damaged.

use super::detection::PartialDetection;
use crate::dialect::{Dialect, Grid, Role, Valid};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// Returns the dialect of the file header at the start of `head`. The header is recognized if its
/// signature is intact, or if only a few of its bits are damaged and a valid fragment follows.
pub(super) fn of_file_header(head: &[u8]) -> Option<Dialect> {
    let is_it = |dialect: &&Dialect| !dialect.signature().is_empty() && head.starts_with(dialect.signature());
    let is_followed = |dialect: &Dialect| {
        let block = &head[dialect.prefix().len()..];
        dialect.valid(&block[..block.len().min(BLOCK_LEN)], true).is_some()
    };
    let with_signature = Dialect::ALL.iter().find(is_it).copied();
    with_signature.or_else(|| nearest_file_header(head).filter(is_followed))
}

/// Returns the dialect of the file header at the start of `head` if at most eight bits of the
/// header are damaged.
pub(super) fn nearest_file_header(head: &[u8]) -> Option<Dialect> {
    let may_be = |dialect: &&Dialect| !dialect.prefix().is_empty() && dialect.prefix().len() <= head.len();
    let near = |dialect: &Dialect| Some((damaged_bits(head, dialect.magic())?, *dialect));
    let all_near = Dialect::ALL.iter().filter(may_be).filter_map(near);
    all_near.min_by_key(|(count, _)| *count).map(|(_, dialect)| dialect)
}

/// Returns the number of bits in which the start of `head` differs from `expected`. Returns `None`
/// if more than eight bits differ, or if `head` is too short.
pub(super) fn damaged_bits(head: &[u8], expected: &[u8]) -> Option<u32> {
    let pairs = head.get(..expected.len())?.iter().zip(expected);
    let count = pairs.map(|(byte, right)| (byte ^ right).count_ones()).sum();
    (count <= 8).then_some(count)
}

/// Returns the dialect of a log with a damaged file header. This is the dialect whose file header
/// differs from `head` in only a few bits. If there is no such dialect, it is the dialect whose
/// file header has the most intact bytes, among those with the same fragments as `found`.
pub(super) fn of_damaged_file_header(found: Dialect, head: &[u8], is_all: bool) -> PartialDetection {
    let intact_count = |dialect: &&Dialect| dialect.magic().iter().zip(head).filter(|(a, b)| a == b).count();
    let with_fragments = Dialect::ALL.iter().filter(|dialect| dialect.has_fragments_of(found));
    // `max_by_key` returns the last of several equal elements, so the order is reversed to prefer
    // the first dialect.
    let most_intact = with_fragments.rev().max_by_key(intact_count).copied();
    let dialect = nearest_file_header(head).or(most_intact);
    with_grid(dialect.unwrap_or(found), head, is_all)
}

/// The number of bytes needed to determine where a log's blocks start. They include the second
/// block, regardless of where it starts.
const GRID_LEN: usize = 2 * BLOCK_LEN + HEADER_LEN;

/// Returns `dialect`, or the dialect that has the same file header but counts blocks from a
/// different offset.
pub(super) fn with_grid(dialect: Dialect, head: &[u8], is_all: bool) -> PartialDetection {
    let is_other =
        |other: &&Dialect| other.prefix() == dialect.prefix() && other.grid_offset() != dialect.grid_offset();
    let Some(other) = Dialect::ALL.iter().find(is_other) else {
        return PartialDetection::Log(dialect.into());
    };
    if !is_all && head.len() < GRID_LEN {
        return PartialDetection::NeedMore;
    }
    let mut both = [Grid::new(dialect, 0), Grid::new(*other, 0)];
    both.sort_by_key(|grid| grid.first_block_len());
    PartialDetection::Log(grid_of(both, head).dialect.into())
}

/// Decides between two dialects that differ only in where their blocks start. In the correct
/// dialect, the second block starts with a valid fragment. If neither dialect has a valid fragment
/// there, the length of the first fragment is considered. The first block is shorter in `first`
/// than in `second`, so a long fragment might fit in `second` but not in `first`.
fn grid_of([first, second]: [Grid; 2], head: &[u8]) -> Grid {
    let start = first.dialect.prefix().len();
    let (end, second_end) = (first.first_block_len(), second.first_block_len());
    // Returns the valid fragment at the offset `at`, whose block ends at `block_end`.
    let fragment = |at: usize, block_end: usize| {
        let block = head.get(at..block_end.min(head.len()))?;
        first.dialect.valid(block, true)
    };
    let has_block_at = |start: usize| {
        // A FIRST fragment without data appears only at the end of a block.
        let is_at_end = |valid: &Valid| valid.role == Role::Fragment(Kind::First) && valid.end == HEADER_LEN;
        fragment(start, start + BLOCK_LEN).is_some_and(|valid| !is_at_end(&valid))
    };
    let is_too_long = || {
        let header = head.get(start..).and_then(|block| block.first_chunk());
        header.map(Header::decode).is_some_and(|header| {
            let fragment_end = start + HEADER_LEN + usize::from(header.len);
            matches!(header.kind, 1 | 2) && fragment_end > end && fragment_end <= second_end
        })
    };
    // Checks whether a valid fragment extends past `end`, the end of the first block in the dialect
    // `first`.
    let crosses = || {
        let mut at = start;
        while at < end {
            match fragment(at, second_end) {
                Some(valid) => at += valid.end,
                None => return false,
            }
        }
        at > end
    };
    if !has_block_at(end) && (has_block_at(second_end) || is_too_long() || crosses()) {
        second
    } else {
        first
    }
}
