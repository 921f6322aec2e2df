//! Parses JSON text into values. `tests/helpers/naive_json.py` implements the same rules.

use std::borrow::Cow;
use std::collections::{HashMap, TryReserveError};
use std::iter;

use super::fault::{Fault, Part};
use crate::{Item, PayloadError, PayloadReason, Value};

/// How to handle unusual JSON that only some programs write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Refuses duplicate names, numbers outside the range of a double, and integers with more than
    /// [`DIGITS_MAX`] digits.
    Document,
    /// Uses the last of several values with the same name. A number outside the range of a double
    /// becomes infinite, and an integer with too many digits becomes text. The values of a run are
    /// parsed this way.
    Run,
}

/// The maximum nesting depth of arrays and objects.
pub(super) const LEVELS_MAX: usize = 100;

/// The maximum number of digits in an integer. Python has the same limit, because the time to
/// convert an integer is quadratic in the number of digits.
const DIGITS_MAX: usize = 4_300;

/// The length of the escape for a lone surrogate.
const ESCAPE_LEN: usize = 6;

/// Why a value was refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// The text is not JSON. The fields are the offset of the error and the expected syntax.
    Syntax(usize, &'static str),
    /// Two values have this name.
    Twice(Box<str>),
    /// Two names become equal because a lone surrogate in one is replaced with its escape.
    Names,
    /// An integer has this many digits.
    Digits(usize),
    /// The number at this offset is outside the range of a double.
    Range(usize),
    /// There are more than [`LEVELS_MAX`] levels of nesting.
    Levels,
    /// There is not enough memory.
    Memory,
}

impl From<TryReserveError> for Box<Refused> {
    fn from(_: TryReserveError) -> Self {
        Refused::Memory.into()
    }
}

impl Refused {
    /// Returns the fault for text that starts at an offset in a record. If the text is not JSON,
    /// `describe` adds context to the fault's description.
    pub(super) fn in_text(
        &self,
        text: &str,
        offset: usize,
        part: Part,
        describe: impl FnOnce(&str) -> String,
    ) -> Fault {
        let error = |reason, at: usize| PayloadError::new(offset + at, text.len() - at, reason);
        let fault = |reason, at, detail: String| Fault::new(part, error(reason, at), detail);
        match *self {
            Refused::Syntax(at, expected) => fault(
                PayloadReason::NonCanonical,
                at,
                describe(&format!("expected {expected}")),
            ),
            Refused::Twice(ref name) => {
                let detail = describe(&format!("two values have the name '{name}'"));
                fault(PayloadReason::NonCanonical, 0, detail)
            }
            Refused::Names => {
                let detail = "two values have one name in a table, where lone surrogates are escaped";
                fault(PayloadReason::NonCanonical, 0, detail.to_owned())
            }
            Refused::Digits(count) => fault(PayloadReason::TooLarge, 0, format!("an integer of {count} digits")),
            Refused::Range(at) => {
                let number: String = text[at..].chars().take(NUMBER_SHOWN_MAX).collect();
                let number = number.split([',', ']', '}', ' ']).next().unwrap_or_default();
                let detail = format!("the number {number}, which is beyond the range of a double");
                fault(PayloadReason::TooLarge, at, detail)
            }
            Refused::Levels => {
                let detail = format!("JSON of more than {LEVELS_MAX} levels");
                fault(PayloadReason::TooDeep, 0, detail)
            }
            Refused::Memory => error(PayloadReason::OutOfMemory, 0).into(),
        }
    }
}

/// Returns part of a record as text. `offset` is where `bytes` starts in the record.
pub(super) fn utf8(bytes: &[u8], offset: usize) -> Result<&str, PayloadError> {
    str::from_utf8(bytes).map_err(|error| {
        let valid_len = error.valid_up_to();
        PayloadError::new(offset + valid_len, bytes.len() - valid_len, PayloadReason::NotUtf8)
    })
}

/// The maximum length of a number in an error message, in characters.
const NUMBER_SHOWN_MAX: usize = 40;

/// Parses JSON text and stores the result in `value`. Accepts `NaN`, `Infinity` and `-Infinity` as
/// numbers, because Python writes them. Keeps a lone surrogate as a six-character escape.
///
/// Values are created in place. Moving a value right after creating it takes longer than parsing a
/// number, because the processor waits until all parts of the value are in memory.
pub(super) fn parse<'v>(text: &'v str, rules: Rules, value: &mut Value<'v>) -> Result<(), Box<Refused>> {
    let mut parser = Parser {
        text,
        at: 0,
        rules,
        surrogates: Vec::new(),
    };
    parser.value(LEVELS_MAX, value)?;
    parser.space();
    if parser.at == text.len() {
        Ok(())
    } else {
        parser.expected("the end of the text")
    }
}

struct Parser<'v> {
    text: &'v str,
    at: usize,
    rules: Rules,
    /// The positions of the escaped lone surrogates in the last text.
    surrogates: Vec<usize>,
}

/// Returns the number of levels left inside a value, or an error if no levels are left.
fn below(level_count: usize) -> Result<usize, Box<Refused>> {
    level_count.checked_sub(1).ok_or(Refused::Levels.into())
}

impl<'v> Parser<'v> {
    /// Returns the error for text that lacks the expected syntax at the current position.
    #[cold]
    fn expected<T>(&self, what: &'static str) -> Result<T, Box<Refused>> {
        Err(Refused::Syntax(self.at, what).into())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips white space. Consumes the next byte if it is `byte`, and returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self, word: &str) -> Result<(), Box<Refused>> {
        if !self.text[self.at..].starts_with(word) {
            return self.expected("a value");
        }
        self.at += word.len();
        Ok(())
    }

    fn value(&mut self, level_count: usize, value: &mut Value<'v>) -> Result<(), Box<Refused>> {
        self.space();
        let (word, named) = match self.peek().unwrap_or_default() {
            b'"' => {
                *value = Value::Text(self.string()?);
                return Ok(());
            }
            b'{' => {
                *value = Value::Object(self.object(below(level_count)?)?);
                return Ok(());
            }
            b'[' => {
                *value = Value::Array(self.array(below(level_count)?)?);
                return Ok(());
            }
            b'n' => ("null", Value::Null),
            b't' => ("true", Value::Bool(true)),
            b'f' => ("false", Value::Bool(false)),
            b'N' => ("NaN", Value::Float(f64::NAN)),
            b'I' => ("Infinity", Value::Float(f64::INFINITY)),
            b'-' if self.text[self.at..].starts_with("-I") => ("-Infinity", Value::Float(f64::NEG_INFINITY)),
            _ => {
                self.at = parse_number(self.text.as_bytes(), self.at, self.rules, value)?;
                return Ok(());
            }
        };
        *value = named;
        self.word(word)
    }

    fn array(&mut self, level_count: usize) -> Result<Vec<Value<'v>>, Box<Refused>> {
        self.at += 1;
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(values);
        }
        loop {
            // The number of values depends on the record, so there may not be enough memory.
            values.try_reserve(1)?;
            values.push(Value::Null);
            let last = values.len() - 1;
            self.value(level_count, &mut values[last])?;
            if self.take(b']') {
                return Ok(values);
            }
            if !self.take(b',') {
                return self.expected("a comma or a bracket");
            }
        }
    }

    fn object(&mut self, level_count: usize) -> Result<Vec<Item<'v>>, Box<Refused>> {
        self.at += 1;
        let mut items: Vec<Item<'v>> = Vec::new();
        // Maps the index of a name to the positions of its lone surrogates.
        let mut surrogates = HashMap::new();
        if self.take(b'}') {
            return Ok(items);
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.expected("a name in quotation marks");
            }
            let name = self.string()?;
            if !self.surrogates.is_empty() {
                surrogates.insert(items.len(), std::mem::take(&mut self.surrogates));
            }
            if !self.take(b':') {
                return self.expected("a colon");
            }
            self.value(level_count, new_item(&mut items, name)?)?;
            if self.take(b'}') {
                break;
            }
            if !self.take(b',') {
                return self.expected("a comma or a brace");
            }
        }
        match (twice(&items)?, self.rules) {
            (None, _) => Ok(items),
            (Some(name), Rules::Document) => Err(Refused::Twice(name.into()).into()),
            (Some(_), Rules::Run) => with_last(items, &surrogates),
        }
    }

    fn string(&mut self) -> Result<Cow<'v, str>, Box<Refused>> {
        self.at += 1;
        self.surrogates.clear();
        let plain = self.plain()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = String::new();
        text.try_reserve(plain.len() + ESCAPE_LEN)?;
        text.push_str(plain);
        while self.peek() != Some(b'"') {
            self.at += 1;
            self.escape(&mut text)?;
            let plain = self.plain()?;
            // The additional memory leaves room for an escape after the text.
            text.try_reserve(plain.len() + ESCAPE_LEN)?;
            text.push_str(plain);
        }
        self.at += 1;
        Ok(Cow::Owned(text))
    }

    /// Returns the text up to the next quotation mark or backslash. Refuses control characters.
    fn plain(&mut self) -> Result<&'v str, Box<Refused>> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = plain_len(rest).unwrap_or(rest.len());
        if rest.get(len).is_none_or(|&byte| byte < 0x20) {
            self.at += len;
            return self.expected("a quotation mark");
        }
        let plain = &self.text[self.at..self.at + len];
        self.at += len;
        Ok(plain)
    }

    fn escape(&mut self, text: &mut String) -> Result<(), Box<Refused>> {
        let letter = self.peek().unwrap_or_default();
        self.at += 1;
        text.push(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(text),
            _ => return Err(Refused::Syntax(self.at - 1, "an escape").into()),
        });
        Ok(())
    }

    fn unicode(&mut self, text: &mut String) -> Result<(), Box<Refused>> {
        let first = self
            .hex(self.at)
            .ok_or(Refused::Syntax(self.at, "four hexadecimal digits"))?;
        self.at += 4;
        if (0xd800..0xdc00).contains(&first)
            && self.text[self.at..].starts_with("\\u")
            && let Some(second) = self.hex(self.at + 2)
            && (0xdc00..0xe000).contains(&second)
        {
            self.at += 6;
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            text.extend(char::from_u32(code));
        } else if let Some(character) = char::from_u32(first) {
            text.push(character);
        } else {
            self.surrogates.push(text.len());
            text.push_str(&format!("\\u{first:04x}"));
        }
        Ok(())
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.as_bytes().get(at..at + 4)?;
        digits
            .iter()
            .try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    }
}

/// Parses the JSON number at `start` and stores it in `value`. Returns the offset where the number
/// ends.
#[inline(always)]
pub(super) fn parse_number<'v>(
    text: &'v [u8],
    start: usize,
    rules: Rules,
    value: &mut Value<'v>,
) -> Result<usize, Box<Refused>> {
    let expected = |at, what| Err(Refused::Syntax(at, what).into());
    let is_negative = text.get(start) == Some(&b'-');
    let first = start + usize::from(is_negative);
    let mut digits = 0;
    let point = digits_end(text, first, &mut digits);
    let digit_count = point - first;
    if digit_count == 0 {
        return expected(first, "a value");
    }
    if text[first] == b'0' && digit_count > 1 {
        return expected(first + 1, "no digit after a 0");
    }
    let (mut end, mut fraction_len) = (point, 0);
    if text.get(point) == Some(&b'.') {
        end = digits_end(text, point + 1, &mut digits);
        fraction_len = end - point - 1;
        if fraction_len == 0 {
            return expected(end, "a digit");
        }
    }
    let has_exponent = matches!(text.get(end), Some(b'e' | b'E'));
    if has_exponent {
        let exponent = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        end = digits_end(text, exponent, &mut 0);
        if end == exponent {
            return expected(end, "a digit");
        }
    }
    // A number with so few digits cannot have overflowed. A double holds both the digits and the
    // power of ten exactly, so only the division rounds.
    if digit_count + fraction_len < TENS.len() && !has_exponent && digits <= 1 << f64::MANTISSA_DIGITS {
        *value = if end == point {
            let number = digits as i64;
            Value::Int(if is_negative { -number } else { number })
        } else {
            let number = digits as f64 / TENS[fraction_len];
            Value::Float(if is_negative { -number } else { number })
        };
        return Ok(end);
    }
    let number = str::from_utf8(&text[start..end]).unwrap_or_default();
    *value = if end > point {
        let number: f64 = number.parse().map_err(|_| Refused::Syntax(start, "a number"))?;
        if number.is_infinite() && rules == Rules::Document {
            return Err(Refused::Range(start).into());
        }
        Value::Float(number)
    } else {
        match number.parse() {
            Ok(number) => Value::Int(number),
            Err(_) if digit_count <= DIGITS_MAX => Value::Huge(number.into()),
            Err(_) if rules == Rules::Run => Value::Text(number.into()),
            Err(_) => return Err(Refused::Digits(digit_count).into()),
        }
    };
    Ok(end)
}

/// Powers of ten. Any number with fewer digits than this table has entries fits in a `u64`.
static TENS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
];

/// Returns the end of the digits at `start`. Appends the digits to `number`, which wraps around on
/// overflow.
#[inline(always)]
fn digits_end(text: &[u8], start: usize, number: &mut u64) -> usize {
    let mut end = start;
    while let Some(&digit @ b'0'..=b'9') = text.get(end) {
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        end += 1;
    }
    end
}

/// Returns the length of the text before the first quotation mark, backslash or control character,
/// or `None` if there is none. Checks eight bytes at a time.
pub(super) fn plain_len(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    // Sets the highest bit of each byte below `limit`. After the first such byte, the highest bit
    // of other bytes may be set as well.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let is_end = |&byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let (words, _) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let bytes = u64::from_le_bytes(*word);
        let quotes = below(bytes ^ (ONES * u64::from(b'"')), 1);
        let backslashes = below(bytes ^ (ONES * u64::from(b'\\')), 1);
        let ends = quotes | backslashes | below(bytes, 0x20);
        if ends != 0 {
            return Some(index * 8 + ends.trailing_zeros() as usize / 8);
        }
    }
    let start = words.len() * 8;
    text[start..].iter().position(is_end).map(|len| start + len)
}

/// Appends an item without a value, and returns a reference for storing the value.
#[inline(always)]
pub(super) fn new_item<'i, 'v>(
    items: &'i mut Vec<Item<'v>>,
    name: Cow<'v, str>,
) -> Result<&'i mut Value<'v>, TryReserveError> {
    push_item(items, name, || Value::Null)?;
    let last = items.len() - 1;
    Ok(&mut items[last].1)
}

/// Appends an item.
#[inline(always)]
pub(super) fn push_item<'v>(
    items: &mut Vec<Item<'v>>,
    name: Cow<'v, str>,
    value: impl FnOnce() -> Value<'v>,
) -> Result<(), TryReserveError> {
    // Most objects have a few items, which would be copied several times if the vector grew by one
    // item at a time.
    let count = if items.capacity() == 0 { 8 } else { 1 };
    items.try_reserve(count)?;
    // The item is created in place, whereas `push` would move it.
    items.extend(iter::once_with(|| (name, value())));
    Ok(())
}

/// Returns a name shared by two items, if any.
pub(super) fn twice<'i>(items: &'i [Item<'_>]) -> Result<Option<&'i str>, TryReserveError> {
    if items.len() <= 16 {
        return Ok(twice_of_few(items));
    }
    let mut names: Vec<&str> = Vec::new();
    names.try_reserve(items.len())?;
    names.extend(items.iter().map(|(name, _)| name.as_ref()));
    names.sort_unstable();
    Ok(names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]))
}

/// Like [`twice`], but for a few items. Most names differ in their length or last byte, so only a
/// few names have to be compared.
fn twice_of_few<'i>(items: &'i [Item<'_>]) -> Option<&'i str> {
    let mut seen = 0_u64;
    let found = items.iter().enumerate().find(|(at, (name, _))| {
        let last = name.as_bytes().last().copied().unwrap_or_default();
        let bit = 1 << ((name.len() * 5 + usize::from(last)) % 64);
        let is_new = seen & bit == 0;
        seen |= bit;
        !is_new && items[..*at].iter().any(|(earlier, _)| earlier == name)
    });
    found.map(|(_, (name, _))| name.as_ref())
}

/// Returns one item per name, with that name's last value, in order of first appearance.
fn with_last<'v>(items: Vec<Item<'v>>, surrogates: &HashMap<usize, Vec<usize>>) -> Result<Vec<Item<'v>>, Box<Refused>> {
    let mut numbers = HashMap::new();
    let mut kept: Vec<Item<'v>> = Vec::new();
    numbers.try_reserve(items.len())?;
    kept.try_reserve(items.len())?;
    for (index, (name, value)) in items.into_iter().enumerate() {
        match numbers.get(&name) {
            Some(&(number, first)) => {
                if surrogates.get(&first) != surrogates.get(&index) {
                    return Err(Refused::Names.into());
                }
                let (_, earlier): &mut Item<'v> = &mut kept[number];
                *earlier = value;
            }
            None => {
                numbers.insert(name.clone(), (kept.len(), index));
                kept.push((name, value));
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::{Rules, parse_number, plain_len};
    use crate::Value;

    #[test]
    fn finding_the_end_of_plain_text_matches_a_byte_by_byte_search() {
        let naive = |text: &[u8]| text.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        for len in 0..20 {
            for at in 0..len {
                for byte in 0..=255 {
                    for other in [0, 1, 0x1f, 0x20, b'"', b'#', b'\\', b'a', 0x80, 0xff] {
                        let mut text = vec![b'a'; len];
                        text[at] = byte;
                        text[len - 1 - at] = other;
                        assert_eq!(plain_len(&text), naive(&text), "{text:?}");
                    }
                }
            }
        }
    }

    /// The standard library is the naive counterpart.
    #[test]
    fn numbers_are_rounded_as_in_the_standard_library() {
        let (mut state, mut float_count) = (1_u64, 0);
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let few = u128::from((state >> 3) / 10_u64.pow((state >> 4) as u32 % 16));
            // Some of the numbers do not fit in a `u64`.
            let digits = if state % 3 == 0 { few + (1 << 64) } else { few };
            for point in 0..20 {
                let mut text = format!("{digits:020}");
                text.insert(20 - point, '.');
                let text = text.trim_start_matches('0').trim_end_matches('.');
                for text in [
                    text.to_owned(),
                    format!("0{text}"),
                    format!("-{text}"),
                    format!("-0{text}"),
                ] {
                    let mut value = Value::Null;
                    let Ok(end) = parse_number(text.as_bytes(), 0, Rules::Document, &mut value) else {
                        continue;
                    };
                    assert_eq!(end, text.len(), "{text}");
                    match value {
                        Value::Int(number) => assert_eq!(Ok(number), text.parse(), "{text}"),
                        Value::Float(number) => {
                            let naive: f64 = text.parse().unwrap();
                            assert_eq!(number.to_bits(), naive.to_bits(), "{text}");
                            float_count += 1;
                        }
                        Value::Huge(digits) => assert_eq!(digits, text),
                        value => panic!("{text} is {value:?}"),
                    }
                }
            }
        }
        assert!(float_count > 50_000, "{float_count}");
    }
}
