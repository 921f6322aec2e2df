//! Logs with a file header: which one a damaged header was, and where the blocks begin.

use super::detection::Detection;
use crate::dialect::{Dialect, Role, Valid};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// The kind of run file whose file header is damaged, by the intact bytes of it.
pub(super) fn run_file(head: &[u8], is_all: bool) -> Detection {
    let right_count = |dialect: Dialect| dialect.prefix.iter().zip(head).filter(|(a, b)| a == b).count();
    if right_count(Dialect::SWANLAB) > right_count(Dialect::WANDB) {
        Detection::Log(Dialect::SWANLAB.into())
    } else {
        wandb_grid(head, is_all)
    }
}

/// Whether the blocks of a run file are counted from its beginning or from the end of its header:
/// the second block begins with a valid fragment. If neither does, the first fragment may be too
/// long for a block counted from the beginning.
pub(super) fn wandb_grid(head: &[u8], is_all: bool) -> Detection {
    if !is_all && head.len() < 2 * BLOCK_LEN + HEADER_LEN {
        return Detection::NeedMore;
    }
    let has_second_block_at = |begin: usize| {
        let block = head.get(begin..).unwrap_or_default();
        let block = &block[..block.len().min(BLOCK_LEN)];
        // A FIRST fragment without data occurs only at the end of a block.
        let is_at_end = |valid: &Valid| valid.role == Role::Fragment(Kind::First) && valid.end == HEADER_LEN;
        Dialect::WANDB
            .valid(block, true)
            .is_some_and(|valid| !is_at_end(&valid))
    };
    let prefix_len = Dialect::WANDB.prefix.len();
    let first = head
        .get(prefix_len..)
        .and_then(|after| after.first_chunk())
        .map(Header::decode);
    let is_too_long = first.is_some_and(|Header { len, kind, .. }| {
        let end = HEADER_LEN + usize::from(len);
        matches!(kind, 1 | 2) && end > BLOCK_LEN - prefix_len && end <= BLOCK_LEN
    });
    // A valid fragment of the first block that goes past the end that this block would have.
    let crosses = || {
        let block = head.get(..BLOCK_LEN + prefix_len).unwrap_or(head);
        let mut at = prefix_len;
        while at < BLOCK_LEN
            && let Some(valid) = Dialect::WANDB.valid(block.get(at..).unwrap_or_default(), true)
        {
            at += valid.end;
        }
        at > BLOCK_LEN
    };
    let is_old =
        !has_second_block_at(BLOCK_LEN) && (has_second_block_at(BLOCK_LEN + prefix_len) || is_too_long || crosses());
    let dialect = if is_old { Dialect::WANDB_OLD } else { Dialect::WANDB };
    Detection::Log(dialect.into())
}
