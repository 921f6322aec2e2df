//! The `crc32c` instructions, arranged as in the x86-64 kernel of the same name: short data is one
//! chain of them; long data is split into three parts with a chain each, and the states of the
//! first two are then advanced over what follows them.
//!
//! Each instruction waits for the one before it in its chain; meanwhile the processor can run those
//! of other chains. Not benchmarked on AArch64 hardware.

use core::arch::aarch64::{__crc32cb, __crc32cd, __crc32ch, __crc32cw, vmull_p64};

use crate::checksum::polynomial::shifts;

/// The length from which three chains are used. An estimate, not a measurement: more than on
/// x86-64, in case joining them costs more.
const THREE_MIN: usize = 256;

/// The number of 8-byte words in the longest chain.
const WORDS_MAX: usize = 256;

/// `state` advanced over `data`.
#[target_feature(enable = "crc,aes")]
#[inline]
pub(super) fn update(state: u32, data: &[u8]) -> u32 {
    if data.len() < THREE_MIN {
        one(state, data)
    } else {
        long(state, data)
    }
}

/// Not inlined, so that `update` stays small enough to be inlined into every loop over short
/// records.
#[target_feature(enable = "crc,aes")]
#[inline(never)]
fn long(mut state: u32, mut data: &[u8]) -> u32 {
    while data.len() >= THREE_MIN {
        let words = (data.len() / 24).min(WORDS_MAX);
        let (three, rest) = data.split_at(24 * words);
        state = three_chains(state, three, words);
        data = rest;
    }
    one(state, data)
}

/// One chain.
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
        // The last 1 to 7 bytes in one step: shifted to the top of a word, after zeros, which do
        // not change a zero state.
        let bits = 8 * rest.len() as u32;
        let bytes = u64::from_le_bytes(*last) >> (64 - bits);
        let kept = u64::from(state) >> bits;
        return __crc32cd(0, (bytes ^ u64::from(state)) << (64 - bits)) ^ kept as u32;
    }
    few(state, rest)
}

/// At most 7 bytes with nothing before them. Not inlined, so that `one` can be.
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

/// `state` advanced over three parts of `words` words.
#[target_feature(enable = "crc,aes")]
#[inline]
fn three_chains(state: u32, data: &[u8], words: usize) -> u32 {
    let (first, rest) = data.split_at(8 * words);
    let (second, third) = rest.split_at(8 * words);
    let (mut a, mut b, mut c) = (state, 0, 0);
    let words_of_each = first
        .as_chunks::<8>()
        .0
        .iter()
        .zip(second.as_chunks::<8>().0)
        .zip(third.as_chunks::<8>().0);
    for ((of_first, of_second), of_third) in words_of_each {
        a = __crc32cd(a, u64::from_le_bytes(*of_first));
        b = __crc32cd(b, u64::from_le_bytes(*of_second));
        c = __crc32cd(c, u64::from_le_bytes(*of_third));
    }
    // Each product has fewer than 64 bits; the instruction advances their sum over another 32 bits,
    // which reduces it to a state.
    let moved = times(a, SHIFTS[2 * words]) ^ times(b, SHIFTS[words]);
    __crc32cd(0, moved as u64) ^ c
}

/// The factors that advance a state over `i` words of zeros.
static SHIFTS: [u32; 2 * WORDS_MAX + 1] = shifts(8);

/// The product of a state and a shift, not yet reduced.
#[target_feature(enable = "aes")]
#[inline]
fn times(state: u32, shift: u32) -> u128 {
    vmull_p64(u64::from(state), u64::from(shift))
}
