//! Parses numbers in JSON text, in one pass.

/// The maximum number of digits of a number that is parsed here. The value of this many digits fits
/// in 64 bits.
const DIGITS_MAX: usize = 19;

const POWERS: [u64; DIGITS_MAX + 1] = {
    let mut powers = [1; DIGITS_MAX + 1];
    let mut exponent = 1;
    while exponent <= DIGITS_MAX {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A number. A `Value` would be moved after it was created.
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

/// Parses the number at the start of a text, and returns it with its length. Returns `None` if it
/// has an exponent, many digits or another form. The naive counterpart `Parser::any_number` parses
/// all numbers.
#[inline(always)]
pub(super) fn plain_number(text: &[u8]) -> Option<(Number, usize)> {
    let start = usize::from(text.first() == Some(&b'-'));
    let is_negative = start > 0;
    let (whole, point) = digits(text, start, 0);
    let whole_count = point - start;
    if whole_count == 0 || whole_count > 1 && text[start] == b'0' {
        return None;
    }
    let (number, end) = if text.get(point) == Some(&b'.') {
        let (number, end) = digits(text, point + 1, whole);
        let count = end - point - 1;
        if count == 0 || whole_count + count > DIGITS_MAX {
            return None;
        }
        let number = quotient(number, POWERS[count]);
        (Number::Float(if is_negative { -number } else { number }), end)
    } else {
        if whole_count > DIGITS_MAX {
            return None;
        }
        let number = i64::try_from(whole).ok()?;
        (Number::Int(if is_negative { -number } else { number }), point)
    };
    (!matches!(text.get(end), Some(b'e' | b'E'))).then_some((number, end))
}

/// Appends the digits from `at` to those of `value`. Returns the new value and the end of the
/// digits. The value is valid only if there are at most [`DIGITS_MAX`] digits in total.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    loop {
        // Eight digits are converted at a time. The first one is in the lowest byte.
        let word = word(text, at) ^ (ONES * u64::from(b'0'));
        let others = (((word & (ONES * 0x7f)) + ONES * (0x7f - 9)) | word) & (ONES * 0x80);
        let count = others.trailing_zeros() as usize / 8;
        if count == 0 {
            return (value, at);
        }
        // Fewer digits are padded with zeros in front to make eight.
        let mut eight = word << (64 - 8 * count);
        eight = (eight * 10 + (eight >> 8)) & 0x00ff_00ff_00ff_00ff;
        eight = (eight * 100 + (eight >> 16)) & 0x0000_ffff_0000_ffff;
        eight = (eight * 10_000 + (eight >> 32)) & 0xffff_ffff;
        value = value.wrapping_mul(POWERS[count]).wrapping_add(eight);
        at += count;
        if count < 8 {
            return (value, at);
        }
    }
}

const ONES: u64 = u64::MAX / 255;

/// Returns the eight bytes of a text from `at`, with the first one as the lowest, and zeros after
/// the end of the text.
#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match (rest.first_chunk(), text.last_chunk()) {
        (Some(&word), _) => u64::from_le_bytes(word),
        (None, Some(&word)) if !rest.is_empty() => u64::from_le_bytes(word) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Returns the floating-point number nearest to `dividend / divisor`. If two are equally near,
/// returns the even one. Both operands have at most 64 bits, so one division is enough and no table
/// is needed.
#[inline(always)]
fn quotient(dividend: u64, divisor: u64) -> f64 {
    if dividend == 0 {
        return 0.0;
    }
    let (up, down) = (dividend.leading_zeros(), divisor.leading_zeros());
    let (dividend, divisor) = (u128::from(dividend << up) << 62, divisor << down);
    // The quotient has 62 or 63 bits, and a floating-point number keeps 53 of them. Its lowest bit
    // shows whether there is a remainder.
    let quotient = (dividend / u128::from(divisor)) as u64;
    let is_exact = quotient.wrapping_mul(divisor) == dividend as u64;
    let exponent = 1023 + u64::from(down) - u64::from(up) - 62;
    (quotient | u64::from(!is_exact)) as i64 as f64 * f64::from_bits(exponent << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_rounded_as_the_standard_library_rounds_the_decimal_number() {
        // This is a generator of random numbers (SplitMix64).
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        };
        for round in 0..200_000_u64 {
            for (count, &divisor) in POWERS.iter().enumerate().skip(1) {
                // The numbers have few bits, are close to half of the lowest bit, or are arbitrary.
                let dividend = match round % 4 {
                    0 => random() >> (random() % 64),
                    1 => (random() >> 11) * 2 + 1,
                    2 => ((random() >> 12) * 2 + 1) << (random() % 11),
                    _ => random(),
                } % POWERS[DIGITS_MAX];
                let text = format!("{dividend}e-{count}");
                let expected: f64 = text.parse().unwrap();
                assert_eq!(quotient(dividend, divisor).to_bits(), expected.to_bits(), "{text}");
            }
        }
    }
}
