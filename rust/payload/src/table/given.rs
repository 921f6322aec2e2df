//! The types of a given schema. A column only accepts values that fit its type.

use super::names::Names;
use super::types::{Fits, Given, Type};
use super::view::View;

impl Given {
    /// Returns the value in the form that its column requires, or `None` if it does not fit the
    /// type.
    pub(super) fn fit<'v>(&self, value: View<'v>) -> Option<View<'v>> {
        let fits = match (self.fits, value) {
            (Fits::Integers(bits), _) => return integer(value, bits, self.made_as == Type::UInt),
            (Fits::Digits(count), View::Int(value)) => digit_count(&value.unsigned_abs().to_string()) <= count,
            (Fits::Digits(count), View::UInt(value)) => digit_count(&value.to_string()) <= count,
            (Fits::Digits(count), View::Huge(digits)) => digit_count(digits) <= count,
            // These conversions are exact, because the numbers have at most 53 bits.
            (Fits::Floats(bits), View::Int(value)) => is_float_of(value as f64, bits),
            (Fits::Floats(bits), View::UInt(value)) => is_float_of(value as f64, bits),
            (Fits::Floats(bits), View::Float(value)) => is_float_of(value, bits),
            (Fits::Bytes, View::Text(text)) => return Some(View::Bytes(text.as_bytes())),
            (Fits::Count(count), _) => count_of(value) == count,
            (Fits::Times(unit), View::Time(time)) => {
                let (time, unit) = (i128::from(time) * 1_000, i128::from(unit));
                time % unit == 0 && i64::try_from(time / unit).is_ok()
            }
            _ => true,
        };
        fits.then_some(value)
    }

    /// Returns the reason why a value does not fit the type.
    pub(super) fn why_not(&self, value: View<'_>) -> String {
        if let Fits::Count(_) = self.fits {
            let what = if value.is_list() { "items" } else { "bytes" };
            return format!("it has {} {what}", count_of(value));
        }
        let text = value.to_json(Default::default()).filter(|text| text.len() <= 40);
        format!("{} would be changed", text.as_deref().unwrap_or("it"))
    }
}

/// Like [`Names::find`], but for names in their Arrow form.
pub(super) fn find(names: &Names, name: &str, hint: usize) -> Option<usize> {
    let found = names.find(name, hint);
    found.or_else(|| name.contains('\0').then(|| names.find(&arrow_name(name), hint))?)
}

/// Returns a name in its Arrow form, with each NUL escaped as four characters.
pub(super) fn arrow_name(name: &str) -> String {
    name.replace('\0', "\\x00")
}

fn integer(value: View<'_>, bits: u64, is_unsigned: bool) -> Option<View<'_>> {
    let number = match value {
        View::Int(number) => i128::from(number),
        View::UInt(number) => i128::from(number),
        View::Huge(digits) => digits.parse().ok()?,
        // The conversion saturates, but only far outside the 64-bit range.
        View::Float(number) if number.fract() == 0.0 => number as i128,
        _ => return None,
    };
    let end = 1_i128 << if is_unsigned { bits } else { bits - 1 };
    let start = if is_unsigned { 0 } else { -end };
    if !(start..end).contains(&number) {
        return None;
    }
    let signed = i64::try_from(number).map(View::Int);
    signed.or_else(|_| u64::try_from(number).map(View::UInt)).ok()
}

fn digit_count(digits: &str) -> u64 {
    digits.trim_start_matches(['-', '0']).len() as u64
}

/// Checks whether a floating-point type of 16, 32 or 64 bits can represent the number exactly.
fn is_float_of(number: f64, bits: u64) -> bool {
    match bits {
        _ if number.is_nan() || number.is_infinite() => true,
        // A 16-bit float has ten bits after the leading bit. The last of the ten is worth at least
        // 2^-24.
        16 => number.abs() <= 65_504.0 && number.to_bits() << 22 == 0 && (number * 16_777_216.0).fract() == 0.0,
        32 => f64::from(number as f32) == number,
        _ => true,
    }
}

fn count_of(value: View<'_>) -> u64 {
    if let View::Bytes(bytes) = value {
        return bytes.len() as u64;
    }
    let mut count = 0;
    value.all_items(|_| {
        count += 1;
        true
    });
    count
}
