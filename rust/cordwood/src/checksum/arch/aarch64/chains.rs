//! Uses the `crc32c` instructions in the same arrangement as the x86-64 kernel of the same name. A
//! short input goes through one chain of `crc32c` instructions. A long input is split into three
//! parts, each with its own chain. The states of the first two parts are then advanced to the end
//! of the third part.
//!
//! Each instruction waits for the previous one in its chain, but the processor can run instructions
//! of other chains in the meantime. This kernel has not been benchmarked on AArch64 hardware.

use core::arch::aarch64::{__crc32cb, __crc32cd, __crc32ch, __crc32cw, vmull_p64};

use crate::checksum::arch::chains::three_chains;

/// The shortest length for which three chains are used. This is an estimate, not a measurement. It
/// is greater than on x86-64 because joining the chains may cost more.
const THREE_MIN: usize = 256;

/// Returns `state` advanced over `data`.
#[target_feature(enable = "crc,aes")]
#[inline]
pub(super) fn update(state: u32, data: &[u8]) -> u32 {
    if data.len() < THREE_MIN {
        one(state, data)
    } else {
        long(state, data)
    }
}

/// Handles long inputs. It is kept out of line so that `update` stays small enough to be inlined
/// into every loop over short records.
#[target_feature(enable = "crc,aes")]
#[inline(never)]
fn long(state: u32, data: &[u8]) -> u32 {
    let crc = |state: u64, word| u64::from(__crc32cd(state as u32, word));
    let sum_of_products =
        |[a, b]: [u64; 2], [x, y]: [u32; 2]| (vmull_p64(a, u64::from(x)) ^ vmull_p64(b, u64::from(y))) as u64;
    let (state, rest) = three_chains(state, data, THREE_MIN, crc, sum_of_products);
    one(state, rest)
}

/// Returns `state` advanced over `data` with one chain.
#[target_feature(enable = "crc")]
#[inline]
pub(super) fn one(mut state: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        state = __crc32cd(state, u64::from_le_bytes(*word));
    }
    if rest.is_empty() {
        return state;
    }
    if let Some(last) = data.last_chunk::<8>() {
        // The last 1 to 7 bytes are shifted to the top of a word and handled in one step. The zeros
        // below them do not change a state of zero.
        let bits = 8 * rest.len() as u32;
        let bytes = u64::from_le_bytes(*last) >> (64 - bits);
        let kept = u64::from(state) >> bits;
        return __crc32cd(0, (bytes ^ u64::from(state)) << (64 - bits)) ^ kept as u32;
    }
    few(state, rest)
}

/// Handles at most 7 bytes. It is kept out of line so that `one` can be inlined.
#[target_feature(enable = "crc")]
#[inline(never)]
fn few(mut state: u32, mut rest: &[u8]) -> u32 {
    if let Some((four, after)) = rest.split_first_chunk() {
        state = __crc32cw(state, u32::from_le_bytes(*four));
        rest = after;
    }
    if let Some((two, after)) = rest.split_first_chunk() {
        state = __crc32ch(state, u16::from_le_bytes(*two));
        rest = after;
    }
    rest.first().map_or(state, |&byte| __crc32cb(state, byte))
}
