//! Arithmetic on polynomials over GF(2) modulo the Castagnoli polynomial, in the bit-reflected form
//! that CRCs use: the highest bit of a `u32` is the coefficient of x^0.
//!
//! All of it is `const`, so that the kernels' tables are computed by the compiler from their
//! definition.

use crate::format::BLOCK_LEN;

/// The Castagnoli polynomial, reflected.
pub(super) const POLY: u32 = 0x82f6_3b78;

/// x^0.
const ONE: u32 = 0x8000_0000;

/// `a` times x.
pub(super) const fn times_x(a: u32) -> u32 {
    times_x_modulo(POLY, a)
}

/// `a` times x modulo another polynomial.
const fn times_x_modulo(poly: u32, a: u32) -> u32 {
    // Without a branch, which random bits would make unpredictable.
    (a >> 1) ^ (poly & (a & 1).wrapping_neg())
}

/// `a` times `b`.
pub(super) const fn multiply(a: u32, b: u32) -> u32 {
    multiply_modulo(POLY, a, b)
}

/// [`multiply`] modulo another polynomial.
const fn multiply_modulo(poly: u32, a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut place = 32;
    while place != 0 {
        place -= 1;
        product ^= b & (a >> place & 1).wrapping_neg();
        b = times_x_modulo(poly, b);
    }
    product
}

/// x to the power `n`, by squaring.
pub(super) const fn x_to(mut n: u64) -> u32 {
    let mut power = ONE;
    let mut square = times_x(ONE);
    while n != 0 {
        if n & 1 != 0 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        n >>= 1;
    }
    power
}

/// The factor that advances a state over `n` zero bytes: x^(8n).
pub(super) const fn x_to_bytes(n: u64) -> u32 {
    // x^n raised to the eighth power, so that 8n need not fit a u64.
    let byte = x_to(n);
    let twice = multiply(byte, byte);
    let four = multiply(twice, twice);
    multiply(four, four)
}

/// The factor that advances a state over `i` times `unit` zero bytes, if the product is then
/// reduced by the `crc32` instruction.
///
/// The instruction advances it over another 32 bits, and the product of two reflected numbers is
/// one bit too low: hence the 33. An advance over fewer bits has no entry.
#[cfg(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64"))]
pub(super) const fn shifts<const N: usize>(unit: usize) -> [u32; N] {
    let mut shifts = [0; N];
    let over_unit = x_to_bytes(unit as u64);
    let mut i = 33_usize.div_ceil(8 * unit);
    let mut shift = x_to(8 * (i * unit) as u64 - 33);
    while i < N {
        shifts[i] = shift;
        shift = multiply(shift, over_unit);
        i += 1;
    }
    shifts
}

/// The two factors that advance 16 bytes over `len` bytes by carry-less multiplication: for their
/// low and their high half.
#[cfg(target_arch = "x86_64")]
pub(super) const fn fold_by(len: usize) -> [u64; 2] {
    let bits = 8 * len as u64;
    [x_to(bits + 31) as u64, x_to(bits - 33) as u64]
}

/// Bytes in a chunk of [`over_chunks`].
pub(crate) const CHUNK_LEN: usize = 16;

/// A CRC advanced over `count` chunks of zeros, at most those of a block: by table look-up.
pub(crate) fn over_chunks(crc: u32, count: usize) -> u32 {
    static TABLES: ChunkTables = ChunkTables::new(POLY);
    TABLES.over_chunks(crc, count)
}

/// [`over_chunks`] for the checksum with the other polynomial.
pub(crate) fn over_chunks_of_crc32(crc: u32, count: usize) -> u32 {
    static TABLES: ChunkTables = ChunkTables::new(CRC32_POLY);
    TABLES.over_chunks(crc, count)
}

struct ChunkTables {
    /// The factors that advance a CRC, by the number of chunks.
    powers: [u32; BLOCK_LEN / CHUNK_LEN + 1],
    /// A state advanced over a word of zeros.
    over_word: WordTables,
}

impl ChunkTables {
    const fn new(poly: u32) -> Self {
        let mut chunk = ONE;
        let mut bit = 0;
        while bit < 8 * CHUNK_LEN {
            chunk = times_x_modulo(poly, chunk);
            bit += 1;
        }
        let mut powers = [ONE; BLOCK_LEN / CHUNK_LEN + 1];
        let mut count = 1;
        while count < powers.len() {
            powers[count] = multiply_modulo(poly, powers[count - 1], chunk);
            count += 1;
        }
        let mut over_word = [[0; 256]; 4];
        let mut index = 0;
        while index < 4 * 256 {
            let mut state = ((index % 256) as u32) << (8 * (index / 256));
            let mut bit = 0;
            while bit < 32 {
                state = times_x_modulo(poly, state);
                bit += 1;
            }
            over_word[index / 256][index % 256] = state;
            index += 1;
        }
        ChunkTables { powers, over_word }
    }

    #[inline]
    fn over_chunks(&self, crc: u32, count: usize) -> u32 {
        // The product has 63 bits. A zero below them makes a word of the coefficients up to x^31,
        // above one of those from x^32 on, which is reduced as the state of a CRC is.
        let product = multiply_unreduced(crc, self.powers[count]) << 1;
        (product >> 32) as u32 ^ look_up(&self.over_word, product as u32)
    }
}

/// The unreduced product of two polynomials: by integers of which only every fourth bit is used, so
/// that sums of up to eight bits do not carry into the next one. Faster than bit by bit, and the
/// same on each machine.
#[inline]
fn multiply_unreduced(a: u32, b: u32) -> u64 {
    const FOURTH: u64 = 0x1111_1111_1111_1111;
    let parts = |n: u32| [0, 1, 2, 3].map(|place| u64::from(n) & FOURTH << place);
    let (a, b) = (parts(a), parts(b));
    let mut product = 0;
    for place in 0..4 {
        let mut sum = 0;
        for i in 0..4 {
            sum ^= a[i].wrapping_mul(b[(4 + place - i) % 4]);
        }
        product |= sum & FOURTH << place;
    }
    product
}

/// The state that becomes `state` when advanced over four zero bytes.
pub(crate) fn back_over_word(state: u32) -> u32 {
    static TABLES: WordTables = tables_back_over_word(POLY);
    look_up(&TABLES, state)
}

/// The polynomial of IEEE 802.3, reflected: that of zip, PNG and zlib.
const CRC32_POLY: u32 = 0xedb8_8320;

/// [`back_over_word`] for the checksum with the other polynomial.
pub(crate) fn back_over_word_of_crc32(state: u32) -> u32 {
    static TABLES: WordTables = tables_back_over_word(CRC32_POLY);
    look_up(&TABLES, state)
}

/// A linear map as tables: its value for each byte of a state, by position.
type WordTables = [[u32; 256]; 4];

const fn tables_back_over_word(poly: u32) -> WordTables {
    let mut tables = [[0; 256]; 4];
    let mut index = 0;
    while index < 4 * 256 {
        let (place, byte) = (index / 256, index % 256);
        let mut state = (byte as u32) << (8 * place);
        let mut bit = 0;
        while bit < 32 {
            // A step forward shifts to the right, and adds the polynomial if a one is shifted out.
            // The polynomial has the highest bit, which the shift clears: so that bit shows whether
            // it was added.
            let added = state >> 31;
            state = ((state ^ if added != 0 { poly } else { 0 }) << 1) | added;
            bit += 1;
        }
        tables[place][byte] = state;
        index += 1;
    }
    tables
}

/// The map is linear, so it is the sum of what it does to each byte of the state.
fn look_up(tables: &WordTables, state: u32) -> u32 {
    let [a, b, c, d] = state.to_le_bytes().map(usize::from);
    tables[0][a] ^ tables[1][b] ^ tables[2][c] ^ tables[3][d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_agree_with_repeated_steps() {
        let mut power = ONE;
        for n in 0..200 {
            assert_eq!(x_to(n), power, "x^{n}");
            power = times_x(power);
        }
        assert_eq!(x_to_bytes(25), power);
    }

    #[test]
    fn over_chunks_agrees_with_repeated_steps() {
        for crc in [0, 1, ONE, !0, 0x1234_5678, 0x8888_8888, POLY] {
            for (poly, over_chunks) in [
                (POLY, over_chunks as fn(u32, usize) -> u32),
                (CRC32_POLY, over_chunks_of_crc32),
            ] {
                let mut state = crc;
                for count in 0..=BLOCK_LEN / CHUNK_LEN {
                    assert_eq!(over_chunks(crc, count), state, "{crc:x} over {count}");
                    state = (0..8 * CHUNK_LEN).fold(state, |state, _| times_x_modulo(poly, state));
                }
            }
        }
    }

    #[test]
    fn back_over_a_word_undoes_32_steps() {
        let forward = |state| (0..32).fold(state, |state, _| times_x(state));
        for state in (0..32).map(|bit| 1 << bit).chain([0, !0, 0x1234_5678, POLY]) {
            assert_eq!(back_over_word(forward(state)), state);
        }
    }
}
