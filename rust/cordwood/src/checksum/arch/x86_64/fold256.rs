//! Computes checksums by folding. Two carry-less multiplications advance 16 bytes over the bytes
//! that follow them, and the result is added to those bytes. With 256-bit registers, two of these
//! steps are done at once.
//!
//! Long data keeps two of the processor's units busy at once: three chains of `crc32` process the
//! front of the data while folding processes the back.
//!
//! Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction", Intel, 2009.

use core::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_extracti128_si256, _mm256_set_epi64x,
    _mm256_setzero_si256, _mm256_xor_si256,
};

use super::chains::{self, finish, times};
use crate::checksum::polynomial::{fold_by, shifts};

/// For `FOLD_MIN` bytes or more, folding is faster than one chain. For `FUSED_MIN` bytes or more,
/// using chains and folding together is faster than folding alone.
const FOLD_MIN: usize = 128;
const FUSED_MIN: usize = 1024;

/// The number of bytes in a register.
const LANES: usize = 32;

/// Returns `state` advanced over `data`.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
#[inline]
pub(super) fn update(state: u32, data: &[u8]) -> u32 {
    match data.len() {
        0..FOLD_MIN => chains::one(state, data),
        FOLD_MIN..FUSED_MIN => fold(state, data),
        _ => fused(state, data),
    }
}

/// Returns `state` advanced over `data`, which has at least [`LANES`] bytes.
///
/// The functions for long data are not inlined, so `update` stays small enough to be inlined into
/// every loop over short records.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
#[inline(never)]
fn fold(state: u32, data: &[u8]) -> u32 {
    // The odd bytes are processed first, so that only whole registers are left to fold.
    let (odd, lanes) = data.split_at(data.len() % LANES);
    let state = chains::one(state, odd);
    let (first, rest) = lanes.split_at(LANES);
    let first = _mm256_xor_si256(load(first), _mm256_set_epi64x(0, 0, 0, i64::from(state)));
    reduce(fold_on(first, rest))
}

/// Returns `sum` advanced over the whole registers in `data`.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
#[inline]
fn fold_on(mut sum: __m256i, mut data: &[u8]) -> __m256i {
    let over_one = constant(const { fold_by(LANES) });
    if data.len() >= 7 * LANES {
        // There are four sums because the next multiplication can start before the previous one
        // ends.
        let over_four = constant(const { fold_by(4 * LANES) });
        let (three, rest) = data.split_at(3 * LANES);
        let (mut b, mut c, mut d) = (load(three), load(&three[LANES..]), load(&three[2 * LANES..]));
        let (fours, rest) = rest.as_chunks::<{ 4 * LANES }>();
        for four in fours {
            sum = fold_over(sum, over_four, load(four));
            b = fold_over(b, over_four, load(&four[LANES..]));
            c = fold_over(c, over_four, load(&four[2 * LANES..]));
            d = fold_over(d, over_four, load(&four[3 * LANES..]));
        }
        sum = fold_over(sum, over_one, b);
        sum = fold_over(sum, over_one, c);
        sum = fold_over(sum, over_one, d);
        data = rest;
    }
    for one in data.as_chunks::<LANES>().0 {
        sum = fold_over(sum, over_one, load(one));
    }
    sum
}

/// Each step folds `SUMS` registers in the back, while each of the three chains in the front
/// processes `WORDS` words.
const SUMS: usize = 4;
const WORDS: usize = 4;

/// How many bytes each step processes in the front and in the back.
const FRONT: usize = 3 * 8 * WORDS;
const BACK: usize = SUMS * LANES;

/// The maximum length of data processed in one piece. No fragment is longer.
const FUSED_MAX: usize = 1 << 15;

/// Returns `state` advanced over `data`, which has at least [`FUSED_MIN`] bytes.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
#[inline(never)]
fn fused(mut state: u32, mut data: &[u8]) -> u32 {
    while data.len() > FUSED_MAX + FUSED_MIN {
        let (piece, rest) = data.split_at(FUSED_MAX);
        state = fused_piece(state, piece);
        data = rest;
    }
    let (piece, rest) = data.split_at(data.len().min(FUSED_MAX));
    update(fused_piece(state, piece), rest)
}

/// Returns `state` advanced over `data`, which has [`FUSED_MIN`] to [`FUSED_MAX`] bytes: some odd
/// bytes, three parts for the chains, and the back.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
#[inline]
fn fused_piece(state: u32, data: &[u8]) -> u32 {
    let (odd, data) = data.split_at(data.len() % LANES);
    let rounds = (data.len() - BACK) / (FRONT + BACK);
    let (front, back) = data.split_at(rounds * FRONT);
    let stretch = front.len() / 3;
    let (first, rest) = front.split_at(stretch);
    let (second, third) = rest.split_at(stretch);
    let (start, rest) = back.split_at(BACK);

    let over_all = constant(const { fold_by(BACK) });
    let mut sums = [_mm256_setzero_si256(); SUMS];
    for (sum, lanes) in sums.iter_mut().zip(start.as_chunks::<LANES>().0) {
        *sum = load(lanes);
    }
    let (mut a, mut b, mut c) = (u64::from(chains::one(state, odd)), 0, 0);
    let fronts = words(first).iter().zip(words(second)).zip(words(third));
    for (((of_first, of_second), of_third), of_back) in fronts.zip(rest.as_chunks::<BACK>().0) {
        for (sum, lanes) in sums.iter_mut().zip(of_back.as_chunks::<LANES>().0) {
            *sum = fold_over(*sum, over_all, load(lanes));
        }
        for i in 0..WORDS {
            a = _mm_crc32_u64(a, u64::from_le_bytes(of_first[i]));
            b = _mm_crc32_u64(b, u64::from_le_bytes(of_second[i]));
            c = _mm_crc32_u64(c, u64::from_le_bytes(of_third[i]));
        }
    }
    let over_one = constant(const { fold_by(LANES) });
    let mut sum = sums[0];
    for &next in &sums[1..] {
        sum = fold_over(sum, over_one, next);
    }
    let of_back = reduce(fold_on(sum, &rest[rounds * BACK..]));

    // Each chain's state is advanced over all the bytes that follow its part.
    let (stretch, back) = (stretch / LANES, back.len() / LANES);
    let ab = _mm_xor_si128(times(a, SHIFTS[2 * stretch + back]), times(b, SHIFTS[stretch + back]));
    of_back ^ finish(_mm_xor_si128(ab, times(c, SHIFTS[back])))
}

/// `SHIFTS[n]` is the factor that advances a state over `n` registers.
static SHIFTS: [u32; FUSED_MAX / LANES + 1] = shifts(LANES);

fn words(stretch: &[u8]) -> &[[[u8; 8]; WORDS]] {
    stretch.as_chunks::<8>().0.as_chunks::<WORDS>().0
}

#[target_feature(enable = "avx2")]
#[inline]
fn constant([low, high]: [u64; 2]) -> __m256i {
    _mm256_set_epi64x(high as i64, low as i64, high as i64, low as i64)
}

/// Loads the first [`LANES`] bytes of `bytes`.
#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8]) -> __m256i {
    let word = |i: usize| i64::from_le_bytes(*bytes[8 * i..].first_chunk().expect("at least LANES bytes"));
    _mm256_set_epi64x(word(3), word(2), word(1), word(0))
}

/// Returns `sum` advanced by `factors`, plus `next`.
#[target_feature(enable = "avx2,vpclmulqdq")]
#[inline]
fn fold_over(sum: __m256i, factors: __m256i, next: __m256i) -> __m256i {
    let low = _mm256_clmulepi64_epi128(sum, factors, 0x00);
    let high = _mm256_clmulepi64_epi128(sum, factors, 0x11);
    _mm256_xor_si256(_mm256_xor_si256(low, high), next)
}

/// Returns the state that is equivalent to these 32 bytes.
#[target_feature(enable = "sse4.2,pclmulqdq,avx2")]
#[inline]
fn reduce(sum: __m256i) -> u32 {
    let (first, second) = (_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    let [low, high] = const { fold_by(16) };
    let factors = _mm_set_epi64x(high as i64, low as i64);
    let low = _mm_clmulepi64_si128(first, factors, 0x00);
    let high = _mm_clmulepi64_si128(first, factors, 0x11);
    let sum = _mm_xor_si128(_mm_xor_si128(low, high), second);
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(sum) as u64);
    _mm_crc32_u64(state, _mm_extract_epi64(sum, 1) as u64) as u32
}
