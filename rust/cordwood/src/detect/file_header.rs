//! Logs with a file header: their dialect, even if part of the header is damaged, and where the
//! blocks begin.

use super::detection::Detection;
use crate::dialect::{Dialect, Role, Valid};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// The dialect whose file header `head` begins with: one whose signature is intact, or one of whose
/// bits a few are damaged and which a valid fragment follows.
pub(super) fn of_file_header(head: &[u8]) -> Option<Dialect> {
    let is_it = |dialect: &&Dialect| !dialect.signature.is_empty() && head.starts_with(dialect.signature);
    let is_followed = |dialect: &Dialect| {
        let block = &head[dialect.prefix.len()..];
        dialect.valid(&block[..block.len().min(BLOCK_LEN)], true).is_some()
    };
    let with_signature = Dialect::ALL.iter().find(is_it).copied();
    with_signature.or_else(|| nearest_file_header(head).filter(is_followed))
}

/// The dialect with whose file header `head` begins, if at most eight bits of it are damaged.
pub(super) fn nearest_file_header(head: &[u8]) -> Option<Dialect> {
    const DAMAGED_BITS_MAX: u32 = 8;
    let may_be = |dialect: &&Dialect| !dialect.prefix.is_empty() && dialect.prefix.len() <= head.len();
    let damaged_bits = |dialect: &&Dialect| -> u32 {
        let bytes = dialect.prefix.iter().zip(head);
        bytes.map(|(right, byte)| (right ^ byte).count_ones()).sum()
    };
    let nearest = Dialect::ALL.iter().filter(may_be).min_by_key(damaged_bits)?;
    (damaged_bits(&nearest) <= DAMAGED_BITS_MAX).then_some(*nearest)
}

/// The dialect of a log whose file header is damaged: of the dialects with the same fragments as
/// `found`, the one whose file header it may be with a few damaged bits, or else the one with the
/// most intact bytes.
pub(super) fn of_damaged_file_header(found: Dialect, head: &[u8], is_all: bool) -> Detection {
    let intact_count = |dialect: &&Dialect| dialect.prefix.iter().zip(head).filter(|(a, b)| a == b).count();
    let with_fragments = Dialect::ALL.iter().filter(|dialect| dialect.has_fragments_of(&found));
    // The first of several is found last, and wins.
    let most_intact = with_fragments.rev().max_by_key(intact_count).copied();
    let dialect = nearest_file_header(head).or(most_intact);
    with_grid(dialect.unwrap_or(found), head, is_all)
}

/// `dialect`, or the one with the same file header whose blocks are counted from another offset.
pub(super) fn with_grid(dialect: Dialect, head: &[u8], is_all: bool) -> Detection {
    let Some(grids) = Grids::of(&dialect) else {
        return Detection::Log(dialect.into());
    };
    if !is_all && head.len() < Grids::DECIDE_LEN {
        return Detection::NeedMore;
    }
    Detection::Log(grids.shown(head, true).unwrap_or(dialect).into())
}

/// Two dialects that only differ in where their blocks begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grids {
    /// The one whose first block ends first.
    pub(crate) first: Dialect,
    pub(crate) second: Dialect,
}

impl Grids {
    /// The number of bytes that decide: the second block of both.
    const DECIDE_LEN: usize = 2 * BLOCK_LEN + HEADER_LEN;

    /// The dialects that may be meant where `dialect` has been found. `None` if it is the only one.
    pub(crate) fn of(dialect: &Dialect) -> Option<Self> {
        let is_other = |other: &&Dialect| other.prefix == dialect.prefix && other.grid_offset != dialect.grid_offset;
        let other = Dialect::ALL.iter().find(is_other)?;
        let mut both = [*dialect, *other];
        both.sort_by_key(|dialect| dialect.first_block_end());
        let [first, second] = both;
        Some(Grids { first, second })
    }

    /// The dialect that `head` shows: the one in which the second block begins with a valid
    /// fragment. If it does in neither, the first fragment may be too long for the first block,
    /// whose end comes first.
    ///
    /// `None` if what is still to be written decides: unless `is_all`, the zeros at the end of
    /// `head` may be unwritten space.
    pub(crate) fn shown(&self, head: &[u8], is_all: bool) -> Option<Dialect> {
        let Grids { first, second } = self;
        let written_len = if is_all {
            usize::MAX
        } else {
            head.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
        };
        let (begin, end, other_end) = (first.prefix.len(), first.first_block_end(), second.first_block_end());
        // The valid fragment at the offset `at`, whose block ends at `block_end`. `None` if it may
        // not be written yet.
        let fragment = |at: usize, block_end: usize| {
            let block = head.get(at..block_end.min(head.len())).unwrap_or_default();
            let valid = first.valid(block, true);
            let is_written = || match block.first_chunk().map(Header::decode) {
                Some(header) if matches!(header.kind, 1..=4) => {
                    let fragment_end = at + HEADER_LEN + usize::from(header.len);
                    fragment_end > block_end || fragment_end <= written_len
                }
                // The last byte of a header, its type, is not zero.
                _ => at + HEADER_LEN <= written_len,
            };
            (valid.is_some() || is_written()).then_some(valid)
        };
        let has_block_at = |begin: usize| {
            // A FIRST fragment without data occurs only at the end of a block.
            let is_at_end = |valid: &Valid| valid.role == Role::Fragment(Kind::First) && valid.end == HEADER_LEN;
            fragment(begin, begin + BLOCK_LEN).map(|valid| valid.is_some_and(|valid| !is_at_end(&valid)))
        };
        if has_block_at(end)? {
            return Some(*first);
        }
        let is_too_long = || {
            let header = Header::decode(head.get(begin..)?.first_chunk()?);
            let fragment_end = begin + HEADER_LEN + usize::from(header.len);
            Some(matches!(header.kind, 1 | 2) && fragment_end > end && fragment_end <= other_end)
        };
        // Whether a valid fragment of the first block extends past the end that this block would
        // have.
        let crosses = || {
            let mut at = begin;
            while at < end {
                match fragment(at, other_end)? {
                    Some(valid) => at += valid.end,
                    None => return Some(false),
                }
            }
            Some(at > end)
        };
        let is_second = [has_block_at(other_end), is_too_long(), crosses()];
        if is_second.contains(&Some(true)) {
            Some(*second)
        } else if is_all || !is_second.contains(&None) {
            Some(*first)
        } else {
            None
        }
    }
}
