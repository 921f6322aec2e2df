//! Computes checksums by folding. Each step uses two carry-less multiplications to advance 16 bytes
//! to a later position, and adds the result to the 16 bytes there. With 512-bit registers, four of
//! these steps are done at once.
//!
//! Leftover bytes don't need a loop. The last 1 to 64 bytes are loaded into a separate register.
//! For each possible length of this tail, a table holds the factors that advance the bytes before
//! the tail.
//!
//! Folding becomes faster than the `crc32` instruction at about 20 bytes. For long inputs, it is
//! twice as fast as three chains of that instruction.
//!
//! Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction", Intel, 2009.

use core::arch::x86_64::{
    __m512i, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_broadcast_i32x4, _mm512_castsi512_si256,
    _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_maskz_loadu_epi8,
    _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
};

use super::chains;
use crate::checksum::kernel::APPEND_ROOM;
use crate::checksum::polynomial::{fold_by, folds};
use crate::copy;

/// For `ONE_MIN` bytes or more, folding one register is faster than two `crc32` instructions. For
/// `FOUR_MIN` bytes or more, four sums are faster than one. Both lengths were measured with
/// `cordwood-compare kernels`.
const ONE_MIN: usize = 17;
const FOUR_MIN: usize = 9 * LANES;

/// The number of bytes in a register.
const LANES: usize = 64;

/// Returns `state` advanced over `data`.
///
/// This function has no `#[target_feature]`, because that attribute can't be combined with
/// `#[inline(always)]`. A function call would take half as long as processing a short record.
///
/// # Safety
///
/// The machine must support the features `avx512bw` and `vpclmulqdq`.
#[inline(always)]
pub(super) unsafe fn update(state: u32, data: &[u8]) -> u32 {
    // SAFETY: the machine supports the required features.
    unsafe { any(state, data, NOT_COPIED) }
}

/// Like [`update`], but also appends `data` to `out`. If `out` has room for the data and one more
/// register, each byte is loaded only once.
///
/// # Safety
///
/// Same as for [`update`].
#[inline(always)]
pub(super) unsafe fn append(state: u32, data: &[u8], out: &mut Vec<u8>) -> u32 {
    const { assert!(APPEND_ROOM >= LANES) };
    if out.capacity() - out.len() < data.len() + APPEND_ROOM {
        // SAFETY: the machine supports the required features.
        let state = unsafe { update(state, data) };
        copy::append(out, data);
        return state;
    }
    let copied = Copied::<true>(out.spare_capacity_mut().as_mut_ptr().cast());
    // SAFETY: the machine supports the required features.
    let state = unsafe { any(state, data, copied) };
    // SAFETY: `out` has room for `data`, and all of `data` has been copied there.
    unsafe { out.set_len(out.len() + data.len()) };
    state
}

/// Returns `state` advanced over `data` of any length.
///
/// # Safety
///
/// Same as for [`update`].
#[inline(always)]
unsafe fn any<const COPY: bool>(state: u32, data: &[u8], copied: Copied<COPY>) -> u32 {
    // SAFETY: the machine supports the required features.
    unsafe {
        match data.len() {
            0..ONE_MIN => none(state, data, copied),
            ONE_MIN..=LANES => one(state, data, copied),
            _ => several(state, data, copied),
        }
    }
}

/// Returns `state` advanced over `data`, which must be shorter than [`ONE_MIN`] bytes.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline]
fn none<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    if COPY && !data.is_empty() {
        copied.load_part(data);
    }
    chains::short(state, data)
}

/// Returns `state` advanced over `data`, which must be 1 to 64 bytes long.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline]
fn one<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    let [_, factors] = over_tail(data.len());
    let [low, high] = products(plus(copied.load_part(data), state), factors);
    reduce(_mm512_xor_si512(low, high))
}

/// Returns `state` advanced over `data`, which must be longer than 64 bytes.
// `#[inline(never)]` on `long` only takes effect if the caller also has the features, so `long` is
// called here rather than in `any`.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline]
fn several<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    if data.len() >= FOUR_MIN {
        return long(state, data, copied);
    }
    let (first, mut rest) = data.split_first_chunk().expect("more than 64 bytes");
    let mut sum = plus(copied.load(first), state);
    if rest.len() > LANES {
        let registers;
        (registers, rest) = before_tail(rest);
        sum = fold_on(sum, registers, &mut copied);
    }
    finish(sum, rest, copied)
}

/// Splits `data`, which must not be empty, into whole registers and a tail of 1 to 64 bytes.
#[inline(always)]
fn before_tail(data: &[u8]) -> (&[[u8; LANES]], &[u8]) {
    let (registers, tail) = data.split_at((data.len() - 1) / LANES * LANES);
    (registers.as_chunks().0, tail)
}

/// Returns `sum` advanced over fewer than 8 `registers`.
///
/// If this were a loop, the compiler would move the copies out of it and call `memcpy`.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline]
fn fold_on<const COPY: bool>(mut sum: __m512i, registers: &[[u8; LANES]], copied: &mut Copied<COPY>) -> __m512i {
    debug_assert!(registers.len() < 8, "{} registers", registers.len());
    let over_one = constant(const { fold_by(LANES) });
    let (fours, registers) = registers.as_chunks::<4>();
    let (twos, ones) = registers.as_chunks::<2>();
    if let Some(four) = fours.first() {
        sum = fold_over(sum, over_one, copied.load(&four[0]));
        sum = fold_over(sum, over_one, copied.load(&four[1]));
        sum = fold_over(sum, over_one, copied.load(&four[2]));
        sum = fold_over(sum, over_one, copied.load(&four[3]));
    }
    if let Some(two) = twos.first() {
        sum = fold_over(sum, over_one, copied.load(&two[0]));
        sum = fold_over(sum, over_one, copied.load(&two[1]));
    }
    if let Some(one) = ones.first() {
        sum = fold_over(sum, over_one, copied.load(one));
    }
    sum
}

/// Returns `state` advanced over `data`, which must be at least [`FOUR_MIN`] bytes long.
///
/// A load from the second-level cache takes twice as long if it crosses a cache line, so the bytes
/// before the first 64-byte boundary are also loaded into a separate register.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline(never)]
fn long<const COPY: bool>(state: u32, data: &[u8], mut copied: Copied<COPY>) -> u32 {
    let (front, rest) = data.split_at(LANES - data.as_ptr().addr() % LANES);
    let (registers, tail) = before_tail(rest);
    let (first, registers) = registers.split_at(4);

    let over_front = constant(OVER_TAIL.0[front.len() % LANES][OVER_ALL]);
    let front = plus(copied.load_part(front), state);
    // There are four sums because the next multiplication can start before the previous one ends.
    let mut a = fold_over(front, over_front, copied.load(&first[0]));
    let (mut b, mut c, mut d) = (copied.load(&first[1]), copied.load(&first[2]), copied.load(&first[3]));
    let over_four = constant(const { fold_by(4 * LANES) });
    let (fours, registers) = registers.as_chunks::<4>();
    for four in fours {
        a = fold_over(a, over_four, copied.load(&four[0]));
        b = fold_over(b, over_four, copied.load(&four[1]));
        c = fold_over(c, over_four, copied.load(&four[2]));
        d = fold_over(d, over_four, copied.load(&four[3]));
    }
    // Each sum is advanced over all the data that follows it, not just over the next sum, so that
    // the multiplications don't have to wait for each other.
    let mut sum = fold_over(c, constant(const { fold_by(LANES) }), d);
    sum = fold_over(b, constant(const { fold_by(2 * LANES) }), sum);
    sum = fold_over(a, constant(const { fold_by(3 * LANES) }), sum);
    finish(fold_on(sum, registers, &mut copied), tail, copied)
}

/// Returns the state after `sum` followed by `tail`, which must be 1 to 64 bytes long.
#[target_feature(enable = "avx512bw,vpclmulqdq")]
#[inline]
fn finish<const COPY: bool>(sum: __m512i, tail: &[u8], mut copied: Copied<COPY>) -> u32 {
    let [of_sum, of_tail] = over_tail(tail.len());
    let [a, b] = products(sum, of_sum);
    let [c, d] = products(copied.load_part(tail), of_tail);
    reduce(_mm512_xor_si512(_mm512_ternarylogic_epi64(a, b, c, XOR), d))
}

/// The destination for consecutive bytes that are copied as they are loaded. Without `COPY`,
/// nothing is copied.
///
/// With `COPY`, there must be room for all the bytes that will be loaded plus one more register.
/// The contents of that extra room are meaningless.
struct Copied<const COPY: bool>(*mut u8);

const NOT_COPIED: Copied<false> = Copied(std::ptr::null_mut());

impl<const COPY: bool> Copied<COPY> {
    /// Loads a whole register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(&mut self, bytes: &[u8; LANES]) -> __m512i {
        let register = load(bytes);
        if COPY {
            // SAFETY: there is room for the bytes. The store doesn't require alignment.
            unsafe { _mm512_storeu_si512(self.0.cast(), register) };
        }
        self.skip(LANES);
        register
    }

    /// Loads 1 to 64 bytes into the start of a register and fills the rest with zeros.
    ///
    /// A 64-byte load that ends with the last of these bytes wouldn't require a mask. However, it
    /// would also load the bytes before them. If those have just been written, as a Python object's
    /// reference count may have been, the load would have to wait for the store.
    #[target_feature(enable = "avx512bw")]
    #[inline]
    fn load_part(&mut self, bytes: &[u8]) -> __m512i {
        let mask = u64::MAX >> (LANES - bytes.len());
        // SAFETY: only the bytes that the mask selects are accessed, and these are exactly the
        // bytes of the slice.
        let register = unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
        if COPY {
            // All 64 bytes are stored, because a masked store takes much longer.
            // SAFETY: there is room for a register.
            unsafe { _mm512_storeu_si512(self.0.cast(), register) };
        }
        self.skip(bytes.len());
        register
    }

    /// Moves past bytes that have been copied.
    #[inline]
    fn skip(&mut self, len: usize) {
        if COPY {
            // SAFETY: there is room for the copied bytes, so the new pointer is at most one past
            // the end of the allocation.
            self.0 = unsafe { self.0.add(len) };
        }
    }
}

/// Adds `state` to the start of a register. This is correct even if fewer than 4 bytes were loaded,
/// because the rest of the state belongs to the bytes that follow.
#[target_feature(enable = "avx512f")]
#[inline]
fn plus(register: __m512i, state: u32) -> __m512i {
    let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state.cast_signed()));
    _mm512_xor_si512(register, state)
}

/// The factors that advance each lane to the last 16 bytes of the data. The index is the length of
/// the tail in bytes, modulo 64. Each entry has four pairs of factors for the register before the
/// tail, followed by four pairs for the register that holds the tail. The lanes after the tail are
/// zero, so their factors, which correspond to a negative distance, have no effect.
///
/// The table is aligned so that no load crosses a cache line.
static OVER_TAIL: Aligned<[[[u64; 2]; 8]; LANES]> = Aligned(folds());

#[repr(align(64))]
struct Aligned<T>(T);

/// The index of the last lane of the register before the tail. This lane is advanced over the whole
/// tail.
const OVER_ALL: usize = 3;

/// Returns the factors in [`OVER_TAIL`] for a tail of 1 to 64 bytes.
#[target_feature(enable = "avx512f")]
#[inline]
fn over_tail(tail_len: usize) -> [__m512i; 2] {
    let (factors, _) = OVER_TAIL.0[tail_len % LANES].as_chunks::<4>();
    // SAFETY: each reference covers exactly the bytes that are loaded, and the load doesn't require
    // alignment.
    [0, 1].map(|register| unsafe { _mm512_loadu_si512(factors[register].as_ptr().cast()) })
}

/// Puts the two factors into every lane of a register.
#[target_feature(enable = "avx512f")]
#[inline]
fn constant([low, high]: [u64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(high as i64, low as i64))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[u8; LANES]) -> __m512i {
    // SAFETY: the reference covers exactly the bytes that are loaded, and the load doesn't require
    // alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Multiplies both halves of each lane by the lane's factors.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn products(sum: __m512i, factors: __m512i) -> [__m512i; 2] {
    [
        _mm512_clmulepi64_epi128(sum, factors, 0x00),
        _mm512_clmulepi64_epi128(sum, factors, 0x11),
    ]
}

/// Returns `sum` advanced by `factors`, plus `next`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn fold_over(sum: __m512i, factors: __m512i, next: __m512i) -> __m512i {
    let [low, high] = products(sum, factors);
    _mm512_ternarylogic_epi64(low, high, next, XOR)
}

/// The truth table for the exclusive or of three operands.
const XOR: i32 = 0b1001_0110;

/// Reduces the lanes of `sum` to a state. All lanes must already have been advanced to the last 16
/// bytes.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn reduce(sum: __m512i) -> u32 {
    let two = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    let one = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(one) as u64);
    _mm_crc32_u64(state, _mm_extract_epi64(one, 1) as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::arch::Kernels;

    /// The caller has reserved room for only one register after the data.
    #[test]
    fn append_writes_at_most_one_register_past_the_end() {
        const SPARE: u8 = 0xa5;
        if !Kernels::all().any(|kernel| matches!(kernel, Kernels::Fold512(_))) {
            // The test `kernels_unsupported_by_the_processor_are_printed` reports the skipped
            // kernel.
            return;
        }
        for len in (0..=1024).chain([4096, 4097, 32_761]) {
            let data = vec![0x5a; len + 64];
            let mut out = vec![SPARE; len + 3 * APPEND_ROOM];
            out.clear();
            for start in [0, 1, 63] {
                // SAFETY: the machine supports the required features.
                unsafe { append(0, &data[start..start + len], &mut out) };
                assert_eq!(out, data[..len]);
                // SAFETY: the whole allocation was initialized above.
                unsafe { out.set_len(len + 3 * APPEND_ROOM) };
                assert_eq!(out[len + APPEND_ROOM..], [SPARE; 2 * APPEND_ROOM], "{len} bytes");
                out.clear();
            }
        }
    }
}
