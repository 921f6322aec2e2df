//! Arithmetic on polynomials over GF(2) modulo the polynomial of a CRC. Polynomials are
//! bit-reflected, as CRCs are: the highest bit of a `u32` is the coefficient of x^0.
//!
//! All functions are `const`, so that tables can be computed at compile time.

/// The Castagnoli polynomial, reflected, as used by CRC-32C.
pub(super) const CASTAGNOLI: u32 = 0x82f6_3b78;

/// The polynomial of IEEE 802.3, reflected, as used by zip, PNG and zlib.
pub(super) const IEEE: u32 = 0xedb8_8320;

/// The polynomial x^0.
pub(super) const ONE: u32 = 0x8000_0000;

/// Returns `a` times x, modulo `poly`.
pub(super) const fn times_x(poly: u32, a: u32) -> u32 {
    // This avoids a branch that random bits would make unpredictable.
    (a >> 1) ^ (poly & (a & 1).wrapping_neg())
}

/// Returns `a` times `b`, modulo `poly`.
pub(super) const fn multiply(poly: u32, a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut place = 32;
    while place != 0 {
        place -= 1;
        product ^= b & (a >> place & 1).wrapping_neg();
        b = times_x(poly, b);
    }
    product
}

/// Returns x to the power `n`, modulo `poly`, by repeated squaring.
pub(super) const fn x_to(poly: u32, mut n: u64) -> u32 {
    let mut power = ONE;
    let mut square = times_x(poly, ONE);
    while n != 0 {
        if n & 1 != 0 {
            power = multiply(poly, power, square);
        }
        square = multiply(poly, square, square);
        n >>= 1;
    }
    power
}

/// Returns the factor that shifts a CRC over `n` zero bytes: x^(8n), modulo `poly`.
pub(super) const fn x_to_bytes(poly: u32, n: u64) -> u32 {
    // The power is computed as x^n raised to the eighth power, so that 8n doesn't have to fit in a
    // u64.
    let mut power = x_to(poly, n);
    let mut doubling = 0;
    while doubling < 3 {
        power = multiply(poly, power, power);
        doubling += 1;
    }
    power
}

/// Returns a table of factors. To advance a CRC-32C state over `i` times `unit` zero bytes,
/// multiply the state by entry `i` and reduce the product with the `crc32` instruction.
///
/// Each factor compensates for 33 bits. The instruction advances the product over another 32 bits,
/// and multiplying two reflected numbers shifts the product by one more bit. There is therefore no
/// entry for a distance of less than 33 bits.
#[cfg(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64"))]
pub(super) const fn shifts<const N: usize>(unit: usize) -> [u32; N] {
    let mut shifts = [0; N];
    let over_unit = x_to_bytes(CASTAGNOLI, unit as u64);
    let mut i = 33_usize.div_ceil(8 * unit);
    let mut shift = x_to(CASTAGNOLI, 8 * (i * unit) as u64 - 33);
    while i < N {
        shifts[i] = shift;
        shift = multiply(CASTAGNOLI, shift, over_unit);
        i += 1;
    }
    shifts
}

/// Returns the factors for the two carry-less multiplications that advance 16 bytes of CRC-32C
/// input over `len` bytes. The first factor is for the low half of the 16 bytes, and the second for
/// the high half.
#[cfg(target_arch = "x86_64")]
pub(super) const fn fold_by(len: usize) -> [u64; 2] {
    let bits = 8 * len as u64;
    // The order of x is added to the exponent, so even a distance of less than 33 bits has factors.
    [
        x_to(CASTAGNOLI, bits + 31) as u64,
        x_to(CASTAGNOLI, bits + CASTAGNOLI_ORDER - 33) as u64,
    ]
}

/// Returns a table of the factors of [`fold_by`]. Entry `i` applies to a length of `i` bytes, or of
/// `N` bytes if `i` is 0. It holds the factors for eight lengths, from 48 bytes above this one down
/// to 64 bytes below it, in steps of 16 bytes. A length can be negative.
#[cfg(target_arch = "x86_64")]
pub(super) const fn folds<const N: usize>() -> [[[u64; 2]; 8]; N] {
    const BACK: u32 = x_to(CASTAGNOLI, CASTAGNOLI_ORDER - 8 * 16);
    let mut folds = [[[0; 2]; 8]; N];
    let mut i = 0;
    while i < N {
        // Each entry is computed by multiplication, because computing powers would take the
        // compiler too long.
        let [low, high] = fold_by(48 + if i == 0 { N } else { i });
        let (mut low, mut high) = (low as u32, high as u32);
        let mut column = 0;
        while column < 8 {
            folds[i][column] = [low as u64, high as u64];
            (low, high) = (multiply(CASTAGNOLI, low, BACK), multiply(CASTAGNOLI, high, BACK));
            column += 1;
        }
        i += 1;
    }
    folds
}

/// The smallest power of x that is 1 modulo the Castagnoli polynomial.
pub(super) const CASTAGNOLI_ORDER: u64 = (1 << 31) - 1;

/// The smallest power of x that is 1 modulo the polynomial of IEEE 802.3.
pub(super) const IEEE_ORDER: u64 = (1 << 32) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_match_repeated_multiplication() {
        for poly in [CASTAGNOLI, IEEE] {
            let mut power = ONE;
            for n in 0..200 {
                assert_eq!(x_to(poly, n), power, "x^{n}");
                power = times_x(poly, power);
            }
            assert_eq!(x_to_bytes(poly, 25), power);
        }
    }

    #[test]
    fn powers_of_x_repeat_after_the_order_of_the_polynomial() {
        assert_eq!(x_to(CASTAGNOLI, CASTAGNOLI_ORDER), ONE);
        assert_eq!(x_to(IEEE, IEEE_ORDER), ONE);
        // The order is prime, so no smaller power except x^0 can be 1.
        assert!((2..46_341_u64).all(|n| !CASTAGNOLI_ORDER.is_multiple_of(n)));
        assert_ne!(x_to(CASTAGNOLI, 1), ONE);
    }
}
