//! Logs with a file header: their dialect, even if part of the header is damaged, and where the
//! blocks begin.

use super::detection::Detection;
use crate::dialect::{Dialect, Role, Valid};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// The dialect whose signature begins the file. What follows the signature may be damaged.
pub(super) fn of_file_header(head: &[u8]) -> Option<Dialect> {
    let is_it = |dialect: &&Dialect| !dialect.signature.is_empty() && head.starts_with(dialect.signature);
    Dialect::ALL.iter().find(is_it).copied()
}

/// The dialect whose file header `head` begins with, if at most eight bits of it are damaged.
pub(crate) fn nearest_file_header(head: &[u8]) -> Option<Dialect> {
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
/// `found`, the one whose file header has the most intact bytes.
pub(super) fn of_damaged_file_header(found: Dialect, head: &[u8], is_all: bool) -> Detection {
    let intact_count = |dialect: &&Dialect| dialect.prefix.iter().zip(head).filter(|(a, b)| a == b).count();
    let with_fragments = Dialect::ALL.iter().filter(|dialect| dialect.has_fragments_of(&found));
    // The first of several is found last, and wins.
    let dialect = with_fragments.rev().max_by_key(intact_count).copied();
    with_grid(dialect.unwrap_or(found), head, is_all)
}

/// `dialect`, or the one with the same file header whose blocks are counted from another offset:
/// the one in which the second block begins with a valid fragment. If it does in neither, the first
/// fragment may be too long for the first block of `dialect`, whose end comes first.
pub(super) fn with_grid(dialect: Dialect, head: &[u8], is_all: bool) -> Detection {
    let is_other = |other: &&Dialect| other.prefix == dialect.prefix && other.grid_offset != dialect.grid_offset;
    let Some(&other) = Dialect::ALL.iter().find(is_other) else {
        return Detection::Log(dialect.into());
    };
    if !is_all && head.len() < 2 * BLOCK_LEN + HEADER_LEN {
        return Detection::NeedMore;
    }
    let has_block_at = |begin: usize| {
        let block = head.get(begin..).unwrap_or_default();
        let block = &block[..block.len().min(BLOCK_LEN)];
        // A FIRST fragment without data occurs only at the end of a block.
        let is_at_end = |valid: &Valid| valid.role == Role::Fragment(Kind::First) && valid.end == HEADER_LEN;
        dialect.valid(block, true).is_some_and(|valid| !is_at_end(&valid))
    };
    let begin = dialect.prefix.len();
    let (end, other_end) = (dialect.first_block_end(), other.first_block_end());
    let first = head
        .get(begin..)
        .and_then(|after| after.first_chunk())
        .map(Header::decode);
    let is_too_long = first.is_some_and(|Header { len, kind, .. }| {
        let fragment_end = begin + HEADER_LEN + usize::from(len);
        matches!(kind, 1 | 2) && fragment_end > end && fragment_end <= other_end
    });
    // Whether a valid fragment of the first block extends past the end that this block would have.
    let crosses = || {
        let block = head.get(..other_end).unwrap_or(head);
        let mut at = begin;
        while at < end
            && let Some(valid) = dialect.valid(block.get(at..).unwrap_or_default(), true)
        {
            at += valid.end;
        }
        at > end
    };
    let is_other = !has_block_at(end) && (has_block_at(other_end) || is_too_long || crosses());
    Detection::Log(if is_other { other } else { dialect }.into())
}
