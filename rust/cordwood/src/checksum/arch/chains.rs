//! Three chains of CRC instructions, for long data. Each instruction waits for the one before it in
//! its chain; meanwhile the processor can run those of other chains.

use crate::checksum::polynomial::shifts;

/// The number of 8-byte words in the longest chain.
const WORDS_MAX: usize = 256;

/// Factors that advance a state over words.
static SHIFTS: [u32; 2 * WORDS_MAX + 1] = shifts(8);

/// `state` advanced over `data`, except for the last bytes, fewer than `min_len`; also returns
/// these.
///
/// The data is split into three parts with a chain each, and the states of the first two are then
/// advanced over the bytes after them.
///
/// `crc` advances a state over a word; both states have 64 bits, and the upper 32 are zero. On
/// x86-64 an instruction that clears them would lengthen a chain by a third. `sum_of_products` is
/// `a * x + b * y` for `[a, b]` and `[x, y]`, not yet reduced. Both are closures made in a function
/// with `#[target_feature]`, so that they may use its instructions. This function is inlined into
/// that one, and they into it.
#[inline(always)]
pub(super) fn three_chains(
    mut state: u32,
    mut data: &[u8],
    min_len: usize,
    crc: impl Fn(u64, u64) -> u64,
    sum_of_products: impl Fn([u64; 2], [u32; 2]) -> u64,
) -> (u32, &[u8]) {
    while data.len() >= min_len {
        let words = (data.len() / 24).min(WORDS_MAX);
        let (three, rest) = data.split_at(24 * words);
        let (first, three) = three.split_at(8 * words);
        let (second, third) = three.split_at(8 * words);
        let (mut a, mut b, mut c) = (u64::from(state), 0, 0);
        let words_of_each = first
            .as_chunks::<8>()
            .0
            .iter()
            .zip(second.as_chunks::<8>().0)
            .zip(third.as_chunks::<8>().0);
        for ((of_first, of_second), of_third) in words_of_each {
            a = crc(a, u64::from_le_bytes(*of_first));
            b = crc(b, u64::from_le_bytes(*of_second));
            c = crc(c, u64::from_le_bytes(*of_third));
        }
        // Each product has fewer than 64 bits; the instruction advances their sum over another 32
        // bits, which reduces it to a state.
        state = (crc(0, sum_of_products([a, b], [SHIFTS[2 * words], SHIFTS[words]])) ^ c) as u32;
        data = rest;
    }
    (state, data)
}
