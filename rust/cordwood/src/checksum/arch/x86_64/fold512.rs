//! Folding with 512-bit registers: 64 bytes at a time, and no loop over odd bytes, which a masked
//! load puts at the end of a register.
//!
//! This is faster than the `crc32` instruction for most lengths from 17 bytes on, and twice as fast
//! for long data, so doing both at once as in [`fold256`](super::fold256) gains nothing.

use core::arch::x86_64::{
    __m512i, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_add_epi8, _mm512_broadcast_i32x4,
    _mm512_castsi512_si256, _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64, _mm512_loadu_si512,
    _mm512_mask_mov_epi64, _mm512_maskz_loadu_epi8, _mm512_permutexvar_epi8, _mm512_set_epi64, _mm512_set1_epi8,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::chains::{self, finish, times};
use crate::checksum::polynomial::{fold_by, shifts};

/// The length from which on folding is mostly faster than one chain. It and the other lengths here are
/// from `cordwood-compare kernels`, on Sapphire Rapids.
const FOLD_MIN: usize = 17;

/// The length from which on four sums are faster than one.
const FOUR_MIN: usize = 9 * LANES;

/// The length from which on it is worth a tail that no load crosses a line.
const ALIGNED_MIN: usize = 3072;

/// Bytes in a register.
const LANES: usize = 64;

/// The longest data processed in one piece: the longest that a fragment can have.
const PIECE_MAX: usize = 1 << 15;

/// `state` advanced over `data`.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
pub(super) fn update(state: u32, data: &[u8]) -> u32 {
    match data.len() {
        0..FOLD_MIN => chains::one(state, data),
        FOLD_MIN..FOUR_MIN => fold(state, data),
        FOUR_MIN.. => long(state, data),
    }
}

/// `state` advanced over `data`, which has [`FOLD_MIN`] to [`FOUR_MIN`] bytes.
///
/// Not inlined, nor is `long`, so that `update` stays small enough to be inlined into every loop
/// over short records.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline(never)]
fn fold(state: u32, data: &[u8]) -> u32 {
    let (mut sum, registers) = split(data);
    let over_one = constant(const { fold_by(LANES) });
    for next in registers {
        sum = fold_over(sum, over_one, load(next));
    }
    reduce(sum) ^ finish(times(u64::from(state), OVER_BYTES[data.len()]))
}

/// `state` advanced over `data`, which has at least [`FOUR_MIN`] bytes.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline(never)]
fn long(state: u32, data: &[u8]) -> u32 {
    if data.len() < ALIGNED_MIN {
        four(state, data)
    } else {
        aligned(state, data)
    }
}

/// `state` advanced over `data`, which has at least [`ALIGNED_MIN`] bytes.
///
/// A load that crosses a line takes twice as long from the second cache. What is cut into registers
/// ends with the last one, so if it ends at a multiple of 64, they begin at such.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline(never)]
fn aligned(mut state: u32, data: &[u8]) -> u32 {
    let tail_len = data.as_ptr_range().end.addr() % LANES;
    let (data, tail) = data.split_at(data.len() - tail_len);
    // The odd piece comes first, so that the others end at multiples of 64, too.
    let (first, pieces) = data.split_at((data.len() - 1) % PIECE_MAX + 1);
    state = if first.len() < FOUR_MIN {
        update(state, first)
    } else {
        four(state, first)
    };
    for piece in pieces.as_chunks::<PIECE_MAX>().0 {
        state = four(state, piece);
    }
    update(state, tail)
}

/// `state` advanced over `data`, which has [`FOUR_MIN`] to [`PIECE_MAX`] bytes.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn four(state: u32, data: &[u8]) -> u32 {
    let (mut a, registers) = split(data);
    // In two steps, so that the tables are small. The first is over at least one register, since it
    // cannot be over less than 5 bytes.
    let odd = data.len() - LANES * (registers.len() - 1);
    let state = finish(times(u64::from(state), OVER_BYTES[odd]));
    let state = finish(times(u64::from(state), OVER_REGISTERS[registers.len() - 1]));

    // Four sums, since a multiplication takes longer than it takes to start the next.
    let over_four = constant(const { fold_by(4 * LANES) });
    let (three, registers) = registers.split_at(3);
    let (mut b, mut c, mut d) = (load(&three[0]), load(&three[1]), load(&three[2]));
    let (fours, registers) = registers.as_chunks::<4>();
    for four in fours {
        a = fold_over(a, over_four, load(&four[0]));
        b = fold_over(b, over_four, load(&four[1]));
        c = fold_over(c, over_four, load(&four[2]));
        d = fold_over(d, over_four, load(&four[3]));
    }
    let over_one = constant(const { fold_by(LANES) });
    let mut sum = a;
    for next in [b, c, d] {
        sum = fold_over(sum, over_one, next);
    }
    for next in registers {
        sum = fold_over(sum, over_one, load(next));
    }
    reduce(sum) ^ state
}

/// Factors that advance a state over bytes, and over registers.
static OVER_BYTES: [u32; FOUR_MIN] = shifts(1);
static OVER_REGISTERS: [u32; PIECE_MAX / LANES + 1] = shifts(LANES);

/// The first 1 to 64 bytes of `data`, which is not empty, at the end of a register; and the rest,
/// which is whole registers.
///
/// The zeros before them change nothing, since a state of zero stays zero over them. The start
/// state is added to the result instead.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn split(data: &[u8]) -> (__m512i, &[[u8; LANES]]) {
    let odd = (data.len() - 1) % LANES + 1;
    let (front, rest) = data.split_at(odd);
    // Loaded in place, and then rotated. To load the 64 bytes that end with it would save a step,
    // but these may begin with bytes just written (the reference count of a Python object), and a
    // load waits for such a store. SAFETY: only the bytes of the mask are accessed, and these are
    // the `odd` bytes of `front`.
    let front = unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (LANES - odd), front.as_ptr().cast()) };
    let places = _mm512_add_epi8(load(&PLACES), _mm512_set1_epi8(odd as i8));
    (_mm512_permutexvar_epi8(places, front), rest.as_chunks().0)
}

/// The position of each byte of a register.
static PLACES: [u8; LANES] = {
    let mut places = [0; LANES];
    let mut place = 0;
    while place < LANES {
        places[place] = place as u8;
        place += 1;
    }
    places
};

/// The two factors in each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn constant([low, high]: [u64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[u8; LANES]) -> __m512i {
    // SAFETY: the reference is to as many bytes as are loaded, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// `sum` advanced by `factors`, plus `next`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn fold_over(sum: __m512i, factors: __m512i, next: __m512i) -> __m512i {
    let low = _mm512_clmulepi64_epi128(sum, factors, 0x00);
    let high = _mm512_clmulepi64_epi128(sum, factors, 0x11);
    _mm512_ternarylogic_epi64(low, high, next, XOR)
}

/// The truth table of the exclusive or of three.
const XOR: i32 = 0b1001_0110;

/// The state that is equivalent to 64 bytes.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn reduce(sum: __m512i) -> u32 {
    // The first three lanes are advanced to the last, and all four added.
    let factors = const { [fold_by(48), fold_by(32), fold_by(16)] };
    let factor = |lane: usize, half: usize| factors[lane][half] as i64;
    let factors = _mm512_set_epi64(
        0,
        0,
        factor(2, 1),
        factor(2, 0),
        factor(1, 1),
        factor(1, 0),
        factor(0, 1),
        factor(0, 0),
    );
    let low = _mm512_clmulepi64_epi128(sum, factors, 0x00);
    let high = _mm512_clmulepi64_epi128(sum, factors, 0x11);
    let lanes = _mm512_mask_mov_epi64(_mm512_xor_si512(low, high), 0b1100_0000, sum);
    let two = _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
    let one = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(one) as u64);
    _mm_crc32_u64(state, _mm_extract_epi64(one, 1) as u64) as u32
}
