//! Folding with 512-bit registers: 64 bytes at a time, and no loop over odd bytes, which a masked
//! load and a rotation put at the end of a register.
//!
//! This is faster than the `crc32` instruction for most lengths from 17 bytes on, and twice as fast
//! for long data, so doing both at once, as in [`fold256`](super::fold256), gains nothing.

use core::arch::x86_64::{
    __m512i, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_broadcast_i32x4, _mm512_castsi512_si256,
    _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_mask_mov_epi8,
    _mm512_maskz_loadu_epi8, _mm512_maskz_mov_epi8, _mm512_permutexvar_epi8, _mm512_set_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
};

use super::chains;
use crate::checksum::kernel::APPEND_ROOM;
use crate::checksum::polynomial::fold_by;

/// The length from which folding is mostly faster than one chain. This and the other lengths here
/// were measured with `cordwood-compare kernels` on Sapphire Rapids.
const FOLD_MIN: usize = 17;

/// The length from which four sums are faster than one.
const FOUR_MIN: usize = 9 * LANES;

/// Bytes in a register.
const LANES: usize = 64;

/// `state` advanced over `data`.
///
/// Without `#[target_feature]`, which would not allow `#[inline(always)]`: a call would take as long
/// as half of the work on a short record.
///
/// # Safety
///
/// The machine must have the features `avx512vbmi` and `vpclmulqdq`.
#[inline(always)]
pub(super) unsafe fn update(state: u32, data: &[u8]) -> u32 {
    // SAFETY: the machine has the features.
    unsafe { any(state, data, NOT_COPIED) }
}

/// As [`update`], and appends `data` to `out`: each byte is loaded once for both.
///
/// # Safety
///
/// As [`update`].
#[inline(always)]
pub(super) unsafe fn append(state: u32, data: &[u8], out: &mut Vec<u8>) -> u32 {
    const { assert!(APPEND_ROOM >= LANES) };
    out.reserve(data.len() + APPEND_ROOM);
    let copied = Copied::<true>(out.spare_capacity_mut().as_mut_ptr().cast());
    // SAFETY: the machine has the features.
    let state = unsafe { any(state, data, copied) };
    // SAFETY: there is room for `data`, and all of it has been copied there.
    unsafe { out.set_len(out.len() + data.len()) };
    state
}

/// `state` advanced over `data` of any length.
///
/// # Safety
///
/// As [`update`].
#[inline(always)]
unsafe fn any<const COPY: bool>(state: u32, data: &[u8], copied: Copied<COPY>) -> u32 {
    // SAFETY: the machine has the features.
    unsafe {
        match data.len() {
            0..FOLD_MIN => short(state, data, copied),
            FOLD_MIN..FOUR_MIN => fold(state, data, copied),
            FOUR_MIN.. => long(state, data, copied),
        }
    }
}

/// `state` advanced over `data`, which has fewer than [`FOLD_MIN`] bytes.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn short<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    copied.bytes(data);
    chains::short(state, data)
}

/// `state` advanced over `data`, which has [`FOLD_MIN`] to [`FOUR_MIN`] bytes.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn fold<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    // All other bytes are whole registers.
    let odd = (data.len() - 1) % LANES + 1;
    let (sum, rest) = begin(state, data, odd, &mut copied);
    reduce(fold_on(sum, rest.as_chunks().0, &mut copied))
}

/// `sum` advanced over `registers`.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn fold_on<const COPY: bool>(mut sum: __m512i, registers: &[[u8; LANES]], copied: &mut Copied<COPY>) -> __m512i {
    let over_one = constant(const { fold_by(LANES) });
    // Two per iteration: if an iteration copies one, the compiler moves the copies out of the loop
    // and calls `memcpy`.
    let (first, twos) = registers.as_rchunks::<2>();
    if let Some(next) = first.first() {
        sum = fold_over(sum, over_one, copied.load(next));
    }
    for two in twos {
        sum = fold_over(sum, over_one, copied.load(&two[0]));
        sum = fold_over(sum, over_one, copied.load(&two[1]));
    }
    sum
}

/// `state` advanced over `data`, which has at least [`FOUR_MIN`] bytes.
///
/// A load that crosses a cache line takes twice as long from the second-level cache. So the odd
/// bytes at the front are those before a multiple of 64, and there are others at the end.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline(never)]
fn long<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    let odd = LANES - data.as_ptr().addr() % LANES;
    let (mut a, rest) = begin(state, data, odd, &mut copied);
    let (registers, tail) = rest.as_chunks();

    // Four sums, since the next multiplication can start before one ends.
    let over_four = constant(const { fold_by(4 * LANES) });
    let (three, registers) = registers.split_at(3);
    let (mut b, mut c, mut d) = (copied.load(&three[0]), copied.load(&three[1]), copied.load(&three[2]));
    let (fours, registers) = registers.as_chunks::<4>();
    for four in fours {
        a = fold_over(a, over_four, copied.load(&four[0]));
        b = fold_over(b, over_four, copied.load(&four[1]));
        c = fold_over(c, over_four, copied.load(&four[2]));
        d = fold_over(d, over_four, copied.load(&four[3]));
    }
    let over_one = constant(const { fold_by(LANES) });
    let mut sum = a;
    for next in [b, c, d] {
        sum = fold_over(sum, over_one, next);
    }
    sum = fold_on(sum, registers, &mut copied);
    if !tail.is_empty() {
        sum = fold_tail(sum, data.last_chunk().expect("FOUR_MIN bytes"), tail.len());
        copied.bytes(tail);
    }
    reduce(sum)
}

/// `sum` advanced over the last `count` bytes of `last`: 1 to 63 of them.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn fold_tail(sum: __m512i, last: &[u8; LANES], count: usize) -> __m512i {
    // The bytes of `sum` and the tail, divided differently: the first `count` of them at the end of
    // one register, and all others in a second.
    let (is_last, rotated) = (u64::MAX << (LANES - count), to_end(sum, count));
    let first = _mm512_maskz_mov_epi8(is_last, rotated);
    let second = _mm512_mask_mov_epi8(rotated, is_last, load(last));
    fold_over(first, constant(const { fold_by(LANES) }), second)
}

/// The first `odd` bytes of `data`, with `state` added, at the end of a register; and the rest. If
/// `odd` is less than 4, it is the 64 bytes after those. `data` has at least [`FOLD_MIN`] bytes.
///
/// The zeros before the bytes change nothing, since a state of zero stays zero over them.
#[target_feature(enable = "avx512vbmi,vpclmulqdq")]
#[inline]
fn begin<'a, const COPY: bool>(
    mut state: u32,
    mut data: &'a [u8],
    mut odd: usize,
    copied: &mut Copied<COPY>,
) -> (__m512i, &'a [u8]) {
    if odd < size_of::<u32>() {
        // The odd bytes have no room for the state.
        let word = u32::from_le_bytes(*data.first_chunk().expect("FOLD_MIN bytes"));
        state = chains::part_of_word(state, word.into(), odd);
        let few;
        (few, data) = data.split_at(odd);
        copied.bytes(few);
        odd = LANES;
    }
    let (front, rest) = data.split_at(odd);
    // Loaded in place, and then rotated. Loading the 64 bytes that end with it would save a step,
    // but these may begin with bytes just written (the reference count of a Python object), and a
    // load waits for such a store.
    let front = copied.load_front(front);
    let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state.cast_signed()));
    (to_end(_mm512_xor_si512(front, state), odd), rest)
}

/// Where consecutive bytes are copied to as they are loaded; without `COPY`, nowhere.
///
/// With `COPY`, there must be room for all bytes that a value will load, and for one more register,
/// whose content is meaningless.
#[derive(Clone, Copy)]
struct Copied<const COPY: bool>(*mut u8);

const NOT_COPIED: Copied<false> = Copied(std::ptr::null_mut());

impl<const COPY: bool> Copied<COPY> {
    /// Loads a whole register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(&mut self, bytes: &[u8; LANES]) -> __m512i {
        let register = load(bytes);
        if COPY {
            // SAFETY: there is room for them. The store needs no alignment.
            unsafe { _mm512_storeu_si512(self.0.cast(), register) };
        }
        self.skip(LANES);
        register
    }

    /// Loads 1 to 64 bytes to the beginning of a register, with zeros after them.
    #[target_feature(enable = "avx512bw")]
    #[inline]
    fn load_front(&mut self, bytes: &[u8]) -> __m512i {
        let mask = u64::MAX >> (LANES - bytes.len());
        // SAFETY: only the bytes of the mask are accessed, and these are exactly the bytes of the
        // slice.
        let register = unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
        if COPY {
            // All 64 are stored, since a store with a mask takes much longer.
            // SAFETY: there is room for a register.
            unsafe { _mm512_storeu_si512(self.0.cast(), register) };
        }
        self.skip(bytes.len());
        register
    }

    /// Copies at most 64 bytes that are loaded by other means.
    #[target_feature(enable = "avx512bw")]
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        if COPY && !bytes.is_empty() {
            self.load_front(bytes);
        }
    }

    /// Continues after bytes that were copied by another value.
    #[inline]
    fn skip(&mut self, len: usize) {
        if COPY {
            // SAFETY: there is room for them, so this is at most one past its end.
            self.0 = unsafe { self.0.add(len) };
        }
    }
}

/// A rotation that puts the first `count` bytes of a register, 1 to 64, at its end.
#[target_feature(enable = "avx512vbmi")]
#[inline]
fn to_end(register: __m512i, count: usize) -> __m512i {
    let places = PLACES[count - 1..].first_chunk().expect("count <= LANES");
    _mm512_permutexvar_epi8(load(places), register)
}

/// From index `count - 1` on, the place that each byte comes from in [`to_end`].
static PLACES: [u8; 2 * LANES - 1] = {
    let mut places = [0; 2 * LANES - 1];
    let mut i = 0;
    while i < places.len() {
        places[i] = ((i + 1) % LANES) as u8;
        i += 1;
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
    // SAFETY: the reference is to exactly the bytes that are loaded, and the load needs no
    // alignment.
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

/// The truth table of the exclusive or of three operands.
const XOR: i32 = 0b1001_0110;

/// The state that is equivalent to 64 bytes.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn reduce(sum: __m512i) -> u32 {
    // Each lane is advanced to the end of the last one, and all four are added. (The last is only
    // multiplied by 1, which is faster than to leave it out.)
    let factors = const { [fold_by(48), fold_by(32), fold_by(16), fold_by(0)] };
    let factor = |lane: usize, half: usize| factors[lane][half] as i64;
    let factors = _mm512_set_epi64(
        factor(3, 1),
        factor(3, 0),
        factor(2, 1),
        factor(2, 0),
        factor(1, 1),
        factor(1, 0),
        factor(0, 1),
        factor(0, 0),
    );
    let low = _mm512_clmulepi64_epi128(sum, factors, 0x00);
    let high = _mm512_clmulepi64_epi128(sum, factors, 0x11);
    let lanes = _mm512_xor_si512(low, high);
    let two = _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
    let one = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(one) as u64);
    _mm_crc32_u64(state, _mm_extract_epi64(one, 1) as u64) as u32
}
