//! Runs three chains of CRC instructions for long inputs. Each instruction waits for the previous
//! one in its chain, but the processor can run instructions of other chains in the meantime.

use crate::checksum::polynomial::shifts;

/// The number of 8-byte words in the longest chain.
const WORDS_MAX: usize = 256;

/// `SHIFTS[n]` is the factor that advances a state over `n` words.
static SHIFTS: [u32; 2 * WORDS_MAX + 1] = shifts(8);

/// Advances `state` over `data`, except for the last few bytes. Returns the new state and the
/// remaining bytes, which are fewer than `min_len`.
///
/// The data is split into three parts, each processed by its own chain. The states of the first two
/// parts are then advanced to the end of the third part.
///
/// `crc` advances a state over a word. The old and new states are 64-bit numbers whose upper 32
/// bits are zero. With 32-bit states, x86-64 would need an extra instruction to clear those bits,
/// which would lengthen a chain by a third.
///
/// `sum_of_products` returns the unreduced sum `a * x + b * y` for `[a, b]` and `[x, y]`.
///
/// Create both closures in a function with `#[target_feature]`, so that the closures can use its
/// instructions. `three_chains` is inlined into that function, and the closures are inlined into
/// `three_chains`.
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
        // Each product has fewer than 64 bits. The CRC instruction reduces their sum to a state,
        // and also advances it over another 32 bits.
        state = (crc(0, sum_of_products([a, b], [SHIFTS[2 * words], SHIFTS[words]])) ^ c) as u32;
        data = rest;
    }
    (state, data)
}
