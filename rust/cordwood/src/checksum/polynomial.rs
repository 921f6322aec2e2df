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
pub(super) const fn multiply(a: u32, mut b: u32) -> u32 {
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
}
