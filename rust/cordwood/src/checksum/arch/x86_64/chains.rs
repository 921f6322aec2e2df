//! Uses the `crc32` instruction, which processes 8 bytes in three cycles. A new instruction can
//! start in every cycle, so a long input is split into three parts, each with its own chain of
//! `crc32` instructions. The states of the first two parts are then advanced to the end of the
//! third part. A short input goes through a single chain.

use core::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_xor_si128,
};

use crate::checksum::arch::chains::three_chains;

/// The shortest length for which three chains are faster than one.
const THREE_MIN: usize = 144;

/// Returns `state` advanced over `data`.
#[target_feature(enable = "sse4.2,pclmulqdq")]
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
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline(never)]
fn long(state: u32, data: &[u8]) -> u32 {
    let crc = |state, word| _mm_crc32_u64(state, word);
    let sum_of_products =
        |[a, b]: [u64; 2], [x, y]: [u32; 2]| _mm_cvtsi128_si64(_mm_xor_si128(times(a, x), times(b, y))) as u64;
    let (state, rest) = three_chains(state, data, THREE_MIN, crc, sum_of_products);
    one(state, rest)
}

/// Returns `state` advanced over `data` with one chain.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
fn one(mut state: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    let mut chain = u64::from(state);
    for word in words {
        chain = _mm_crc32_u64(chain, u64::from_le_bytes(*word));
    }
    state = chain as u32;
    if rest.is_empty() {
        return state;
    }
    if let Some(last) = data.last_chunk::<8>() {
        let word = u64::from_le_bytes(*last) >> (64 - 8 * rest.len());
        return part_of_word(state, word, rest.len());
    }
    few(state, rest)
}

/// Handles at most 16 bytes without a loop.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
pub(super) fn short(mut state: u32, data: &[u8]) -> u32 {
    let Some((word, rest)) = data.split_first_chunk::<8>() else {
        return few(state, data);
    };
    state = _mm_crc32_u64(u64::from(state), u64::from_le_bytes(*word)) as u32;
    if rest.is_empty() {
        return state;
    }
    let last = u64::from_le_bytes(*data.last_chunk().expect("8 bytes"));
    if rest.len() == 8 {
        return _mm_crc32_u64(u64::from(state), last) as u32;
    }
    part_of_word(state, last >> (64 - 8 * rest.len()), rest.len())
}

/// Handles at most 7 bytes. It is kept out of line so that `one` can be inlined.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline(never)]
fn few(mut state: u32, mut rest: &[u8]) -> u32 {
    if let Some((four, after)) = rest.split_first_chunk() {
        state = _mm_crc32_u32(state, u32::from_le_bytes(*four));
        rest = after;
    }
    if let Some((two, after)) = rest.split_first_chunk() {
        state = _mm_crc32_u16(state, u16::from_le_bytes(*two));
        rest = after;
    }
    rest.first().map_or(state, |&byte| _mm_crc32_u8(state, byte))
}

/// Returns `state` advanced over the first `len` bytes of `word` in one step. `len` must be 1 to 7.
#[target_feature(enable = "sse4.2")]
#[inline]
fn part_of_word(state: u32, word: u64, len: usize) -> u32 {
    // The bytes are shifted to the top. The zeros below them do not change a state of zero.
    let (state, bits) = (u64::from(state), 8 * len);
    (_mm_crc32_u64(0, (word ^ state) << (64 - bits)) ^ (state >> bits)) as u32
}

/// Returns the unreduced product of a state and a shift.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
fn times(state: u64, shift: u32) -> __m128i {
    _mm_clmulepi64_si128(_mm_cvtsi64_si128(state as i64), _mm_cvtsi64_si128(i64::from(shift)), 0)
}
