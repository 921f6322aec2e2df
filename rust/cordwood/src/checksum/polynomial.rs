//! Arithmetic on polynomials over GF(2) modulo the Castagnoli polynomial, in the bit-reflected form that CRCs use:
//! the highest bit of a `u32` is the coefficient of x^0.
//!
//! All of it is `const`, so that the kernels' tables are computed by the compiler from their definition.

/// The Castagnoli polynomial, reflected.
pub(super) const POLY: u32 = 0x82f6_3b78;

/// x^0.
const ONE: u32 = 0x8000_0000;

/// `a` times x.
pub(super) const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ if a & 1 != 0 { POLY } else { 0 }
}

/// `a` times `b`.
pub(crate) const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = times_x(b);
        bit >>= 1;
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

/// What a state is multiplied by when `n` zero bytes follow it: x^(8n).
pub(super) const fn x_to_bytes(n: u64) -> u32 {
    // x^n raised to the eighth power, so that 8n need not fit a u64.
    let byte = x_to(n);
    let twice = multiply(byte, byte);
    let four = multiply(twice, twice);
    multiply(four, four)
}

/// What a state is multiplied by to move it over `i` times `unit` zero bytes, where the product is then reduced by the `crc32` instruction.
///
/// That moves it over another 32 bits, and the product of two reflected numbers stands one bit too low: hence the 33. A move over fewer
/// bits has no entry.
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

/// The two factors that move 16 bytes over `len` bytes by carry-less multiplication: for their low and their high half.
#[cfg(target_arch = "x86_64")]
pub(super) const fn fold_by(len: usize) -> [u64; 2] {
    let bits = 8 * len as u64;
    [x_to(bits + 31) as u64, x_to(bits - 33) as u64]
}

/// Bytes in a chunk of [`x_to_chunks`].
pub(crate) const CHUNK_LEN: usize = 64;

/// What a CRC is multiplied by when `count` chunks of zeros follow it, of which a block has at most 512: looked up.
pub(crate) fn x_to_chunks(count: usize) -> u32 {
    static POWERS: [u32; 513] = {
        let chunk = x_to_bytes(CHUNK_LEN as u64);
        let mut powers = [ONE; 513];
        let mut count = 1;
        while count < powers.len() {
            powers[count] = multiply(powers[count - 1], chunk);
            count += 1;
        }
        powers
    };
    POWERS[count]
}

/// The state that becomes `state` when it is moved over four zero bytes.
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

/// What a linear map does to each byte of a state, by the place of the byte.
type WordTables = [[u32; 256]; 4];

const fn tables_back_over_word(poly: u32) -> WordTables {
    let mut tables = [[0; 256]; 4];
    let mut index = 0;
    while index < 4 * 256 {
        let (place, byte) = (index / 256, index % 256);
        let mut state = (byte as u32) << (8 * place);
        let mut bit = 0;
        while bit < 32 {
            // A step forward shifts to the right, and adds the polynomial if a one falls out. That has the highest bit, which the shift
            // leaves zero: so that bit tells whether it was added.
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
        assert_eq!(x_to_chunks(0), ONE);
        assert_eq!(x_to_chunks(512), x_to_bytes(32_768));
    }

    #[test]
    fn back_over_a_word_undoes_32_steps() {
        let forward = |state| (0..32).fold(state, |state, _| times_x(state));
        for state in (0..32).map(|bit| 1 << bit).chain([0, !0, 0x1234_5678, POLY]) {
            assert_eq!(back_over_word(forward(state)), state);
        }
    }
}
