//! Shifts CRCs over zeros by table lookup, which works the same on every machine.
//!
//! To combine the CRCs of two pieces, shift the first CRC over one zero byte for each byte of the
//! second piece. Then add the second CRC.

use super::polynomial::{CASTAGNOLI, CASTAGNOLI_ORDER, IEEE, IEEE_ORDER, ONE, multiply, x_to, x_to_bytes};
use crate::format::BLOCK_LEN;

/// The chunk length used by [`shift`](ZeroTables::shift), in bytes.
pub(super) const CHUNK_LEN: usize = 16;

/// The tables for one polynomial.
pub(super) struct ZeroTables {
    /// The factors that shift a CRC, indexed by the number of chunks.
    powers: [u32; BLOCK_LEN / CHUNK_LEN + 1],
    /// The tables that shift a CRC over a word of zeros.
    word: WordTables,
    /// The tables that undo a shift over a word of zeros.
    back_word: WordTables,
}

pub(super) static OF_CASTAGNOLI: ZeroTables = ZeroTables::new(CASTAGNOLI, CASTAGNOLI_ORDER);
pub(super) static OF_IEEE: ZeroTables = ZeroTables::new(IEEE, IEEE_ORDER);

impl ZeroTables {
    /// Creates the tables for a polynomial, given the order of x modulo the polynomial.
    const fn new(poly: u32, order: u64) -> Self {
        let chunk = x_to_bytes(poly, CHUNK_LEN as u64);
        let mut powers = [ONE; BLOCK_LEN / CHUNK_LEN + 1];
        let mut count = 1;
        while count < powers.len() {
            powers[count] = multiply(poly, powers[count - 1], chunk);
            count += 1;
        }
        ZeroTables {
            powers,
            word: word_tables(poly, x_to(poly, 32)),
            back_word: word_tables(poly, x_to(poly, order - 32)),
        }
    }

    /// Returns `crc` shifted over `count` chunks of zeros. The chunks may take up at most one block
    /// in total.
    #[inline]
    pub(super) fn shift(&self, crc: u32, count: usize) -> u32 {
        // The product has 63 bits. With a zero bit added at the bottom, the high word contains the
        // coefficients up to x^31. The low word contains those from x^32 upward, and is reduced in
        // the same way as the state of a CRC.
        let product = multiply_unreduced(crc, self.powers[count]) << 1;
        (product >> 32) as u32 ^ look_up(&self.word, product as u32)
    }

    /// Returns the value that becomes `crc` when shifted over four zero bytes.
    #[inline]
    pub(super) fn unshift_word(&self, crc: u32) -> u32 {
        look_up(&self.back_word, crc)
    }
}

/// A linear map, stored as a set of tables, one for each byte position in a state. Each table holds
/// the map's value for every possible byte at that position.
type WordTables = [[u32; 256]; 4];

/// Returns the tables that multiply a CRC by `factor`.
const fn word_tables(poly: u32, factor: u32) -> WordTables {
    let mut tables = [[0; 256]; 4];
    let mut index = 0;
    while index < 4 * 256 {
        let (place, byte) = (index / 256, index % 256);
        tables[place][byte] = multiply(poly, (byte as u32) << (8 * place), factor);
        index += 1;
    }
    tables
}

/// Applies a linear map by adding up its values for the bytes of the state.
fn look_up(tables: &WordTables, state: u32) -> u32 {
    let [a, b, c, d] = state.to_le_bytes().map(usize::from);
    tables[0][a] ^ tables[1][b] ^ tables[2][c] ^ tables[3][d]
}

/// Returns the unreduced product of two polynomials. It is computed with integers that use only
/// every fourth bit, so a sum of up to eight bits doesn't carry into the next bit in use. This is
/// faster than multiplying bit by bit, and works the same on every machine.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::polynomial::times_x;

    const VALUES: [u32; 8] = [0, 1, ONE, !0, 0x1234_5678, 0x8888_8888, CASTAGNOLI, IEEE];

    fn shifted_by_bits(poly: u32, crc: u32, count: usize) -> u32 {
        (0..count).fold(crc, |crc, _| times_x(poly, crc))
    }

    #[test]
    fn shifting_over_many_zeros_matches_shifting_bit_by_bit() {
        for (poly, tables) in [(CASTAGNOLI, &OF_CASTAGNOLI), (IEEE, &OF_IEEE)] {
            for crc in VALUES {
                let mut expected = crc;
                for count in 0..=BLOCK_LEN / CHUNK_LEN {
                    assert_eq!(tables.shift(crc, count), expected, "{crc:x} over {count}");
                    expected = shifted_by_bits(poly, expected, 8 * CHUNK_LEN);
                }
            }
        }
    }

    #[test]
    fn unshifting_a_word_undoes_a_32_bit_shift() {
        for (poly, tables) in [(CASTAGNOLI, &OF_CASTAGNOLI), (IEEE, &OF_IEEE)] {
            for crc in (0..32).map(|bit| 1 << bit).chain(VALUES) {
                assert_eq!(tables.unshift_word(shifted_by_bits(poly, crc, 32)), crc);
            }
        }
    }
}
