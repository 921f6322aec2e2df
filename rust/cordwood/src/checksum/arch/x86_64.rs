//! x86-64: the `crc32` instruction of SSE4.2 in three chains, joined by carry-less multiplication.
//!
//! One `crc32` takes three cycles but the CPU starts one every cycle, so a single chain runs at a third of the speed. The
//! data is cut in three, each third is summed by itself, and the first two states are moved over what follows them.

#![expect(
    unsafe_code,
    reason = "calls a #[target_feature] function behind a check of the features"
)]

use core::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_xor_si128,
};

use crate::checksum::dispatch::Kernel;
use crate::checksum::polynomial::x_to;

/// The kernels of this architecture that the machine can run, best first.
pub(in crate::checksum) fn kernels() -> Option<Kernel> {
    let there = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
    there.then_some(Kernel {
        name: "sse4.2 + pclmulqdq",
        // SAFETY: the features that `update` is compiled for have just been found on this machine.
        update: |state, data| unsafe { update(state, data) },
    })
}

/// Bytes of one chain in the long and in the short three-chain step.
const LONG: usize = 1024;
const SHORT: usize = 128;

/// `state` moved over `data`.
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn update(mut state: u32, mut data: &[u8]) -> u32 {
    while let Some((three, rest)) = data.split_first_chunk::<{ 3 * LONG }>() {
        state = three_chains::<LONG>(state, three, const { [shift(2 * LONG), shift(LONG)] });
        data = rest;
    }
    while let Some((three, rest)) = data.split_first_chunk::<{ 3 * SHORT }>() {
        state = three_chains::<SHORT>(state, three, const { [shift(2 * SHORT), shift(SHORT)] });
        data = rest;
    }
    let (words, rest) = data.as_chunks::<8>();
    let mut chain = u64::from(state);
    for word in words {
        chain = _mm_crc32_u64(chain, u64::from_le_bytes(*word));
    }
    state = chain as u32;
    for &byte in rest {
        state = _mm_crc32_u8(state, byte);
    }
    state
}

/// What a state is multiplied by to move it over `len` zero bytes, where the product is then reduced by one `crc32`
/// instruction: that moves it over another 32 bits, and the reflected product stands one bit too low. Hence the 33.
const fn shift(len: usize) -> u32 {
    x_to(8 * len as u64 - 33)
}

/// `state` moved over three stretches of `LEN` bytes; `shifts` move a state over two stretches and over one.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
fn three_chains<const LEN: usize>(state: u32, data: &[u8], shifts: [u32; 2]) -> u32 {
    let (first, rest) = data.split_at(LEN);
    let (second, third) = rest.split_at(LEN);
    let (mut a, mut b, mut c) = (u64::from(state), 0, 0);
    let words = first
        .as_chunks::<8>()
        .0
        .iter()
        .zip(second.as_chunks::<8>().0)
        .zip(third.as_chunks::<8>().0);
    for ((of_first, of_second), of_third) in words {
        a = _mm_crc32_u64(a, u64::from_le_bytes(*of_first));
        b = _mm_crc32_u64(b, u64::from_le_bytes(*of_second));
        c = _mm_crc32_u64(c, u64::from_le_bytes(*of_third));
    }
    let product = |state: u64, shift: u32| {
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(state as i64), _mm_cvtsi64_si128(i64::from(shift)), 0)
    };
    let moved = _mm_xor_si128(product(a, shifts[0]), product(b, shifts[1]));
    (_mm_crc32_u64(0, _mm_cvtsi128_si64(moved) as u64) ^ c) as u32
}
