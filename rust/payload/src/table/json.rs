//! Writes a value as one line of JSON. The naive counterpart is the `to_json` function in
//! `tests/helpers/naive_tables.py`.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::misfit::NotAdded;
use super::tree::plain_len;
use super::view::View;
use crate::{PathElement, PathId};

/// How bytes are converted to text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BytesAs {
    /// The structure `{"base64": "..."}`.
    #[default]
    Object,
    /// Text if the bytes are UTF-8, and the structure otherwise. However, tables omit rows with
    /// bytes that are not UTF-8.
    Text,
    /// Hexadecimal digits.
    Hex,
    /// Base64.
    Base64,
}

impl BytesAs {
    /// Returns the bytes as text, or `None` if they are written as a structure.
    pub(super) fn encode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let mut text = Text::default();
        match self {
            BytesAs::Object => return None,
            BytesAs::Text => return str::from_utf8(bytes).ok().map(Cow::from),
            BytesAs::Hex => bytes
                .iter()
                .for_each(|byte| push(&mut text, format_args!("{byte:02x}"))),
            BytesAs::Base64 => write_base64(&mut text, bytes),
        }
        Some(text.text.into())
    }
}

/// Text being written. Its length depends on the file, so memory may run out. In that case, the
/// text is cut off.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) is_cut: bool,
    pub(super) bytes: BytesAs,
}

impl Text {
    pub(super) fn new(bytes: BytesAs) -> Self {
        Text {
            bytes,
            ..Text::default()
        }
    }

    /// Checks that the text is complete.
    pub(super) fn check(&self) -> Result<(), NotAdded> {
        if self.is_cut { Err(NotAdded::NoMemory) } else { Ok(()) }
    }

    fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn push(&mut self, character: char) {
        if self.reserve(character.len_utf8()) {
            self.text.push(character);
        }
    }

    pub(super) fn push_str(&mut self, text: &str) {
        if self.reserve(text.len()) {
            self.text.push_str(text);
        }
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> bool {
        self.is_cut = self.is_cut || self.text.try_reserve(len).is_err();
        !self.is_cut
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl View<'_> {
    /// Returns the value as one line of JSON, or `None` if there is not enough memory.
    pub fn to_json(self, bytes: BytesAs) -> Option<String> {
        let mut text = Text::new(bytes);
        write_json(&mut text, self);
        (!text.is_cut).then_some(text.text)
    }
}

/// Appends a value.
pub(super) fn write_json(out: &mut Text, value: View<'_>) {
    match value {
        View::Null => out.push_str("null"),
        View::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        View::Int(value) => push(out, format_args!("{value}")),
        View::UInt(value) => push(out, format_args!("{value}")),
        View::Huge(digits) => out.push_str(digits),
        View::Time(time) => write_time(out, time),
        View::Float(value) => write_float(out, value),
        View::Text(text) => write_text(out, text),
        View::Bytes(bytes) => match out.bytes.encode(bytes) {
            None => {
                out.push_str("{\"base64\":\"");
                write_base64(out, bytes);
                out.push_str("\"}");
            }
            Some(text) => write_text(out, &text),
        },
        View::Path(path) => write_path(out, path),
        list if list.is_list() => {
            out.push('[');
            let start = out.len();
            list.all_items(|value| {
                separate(out, start);
                write_json(out, value);
                true
            });
            out.push(']');
        }
        structure => {
            // Fields without a value are omitted from keys and users, but written as null in maps.
            let has_nulls = matches!(
                structure,
                View::Entity(_) | View::Properties(_) | View::Object(_) | View::Cells(_)
            );
            out.push('{');
            let start = out.len();
            structure.all_fields(|name, value| {
                if has_nulls || !matches!(value, View::Null) {
                    separate(out, start);
                    write_text(out, name);
                    out.push(':');
                    write_json(out, value);
                }
                true
            });
            out.push('}');
        }
    }
}

/// Appends a comma before every item but the first, which is at `start`.
fn separate(out: &mut Text, start: usize) {
    if out.len() > start {
        out.push(',');
    }
}

fn push(out: &mut Text, text: fmt::Arguments<'_>) {
    // The result can be ignored, because `Text` itself records whether it was cut off.
    let _ = out.write_fmt(text);
}

fn write_text(out: &mut Text, text: &str) {
    out.push('"');
    let mut rest = text;
    // Characters that don't need escaping are copied in runs.
    while let Some(at) = plain_len(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x8 => out.push_str("\\b"),
            0xc => out.push_str("\\f"),
            byte => push(out, format_args!("\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Writes a number as Python's `repr` does. Numbers below 0.0001 and numbers of 10¹⁶ or more have
/// an exponent with a sign and at least two digits.
fn write_float(out: &mut Text, value: f64) {
    let size = value.abs();
    if value.is_nan() {
        return out.push_str("\"NaN\"");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    }
    // zmij writes an exponent below 0.00001 and from 10¹⁶: `1.5e-7`, `1.5e+16`.
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    if size == 0.0 || size >= 1e-4 {
        out.push_str(text);
    } else if let Some((digits, exponent)) = text.split_once("e-") {
        push(out, format_args!("{digits}e-{exponent:0>2}"));
    } else {
        let (sign, digits) = text.split_once("0.0000").unwrap_or(("", text));
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        push(out, format_args!("{sign}{first}{point}{rest}e-05"));
    }
}

/// Writes a time in RFC 3339 format.
fn write_time(out: &mut Text, time: i64) {
    let (seconds, microseconds) = (time.div_euclid(1_000_000), time.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    push(
        out,
        format_args!("\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"),
    );
    if microseconds > 0 {
        push(out, format_args!(".{microseconds:06}"));
    }
    out.push_str("Z\"");
}

/// Returns the date this many days after 1970-01-01, in the Gregorian calendar. Years start in
/// March, so that the leap day is the last day of a year.
pub(super) fn date_of(days: i64) -> (i64, i64, i64) {
    // Days are counted from 0000-03-01, and 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // The five months from March to July have 153 days in total, and so do those from August to
    // December.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = 400 * era + year_of_era + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in base64.
pub(super) fn base64(bytes: &[u8]) -> Result<String, NotAdded> {
    let mut text = Text::default();
    write_base64(&mut text, bytes);
    text.check().map(|()| text.text)
}

fn write_base64(out: &mut Text, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

/// Appends the path of a key as one flat list. If the last element has neither a number nor a name,
/// the list ends with a kind.
fn write_path(out: &mut Text, path: &[PathElement<'_>]) {
    out.push('[');
    let start = out.len();
    for (index, element) in path.iter().enumerate() {
        separate(out, start);
        write_text(out, element.kind);
        match element.id {
            PathId::Id(id) => push(out, format_args!(",{id}")),
            PathId::Name(name) => {
                out.push(',');
                write_text(out, name);
            }
            PathId::None if index + 1 < path.len() => out.push_str(",null"),
            PathId::None => {}
        }
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::{Text, write_float};

    #[test]
    fn prints_numbers_with_the_same_digits_as_python() {
        for (value, text) in [
            (2.0_f64.powi(-25), "2.9802322387695312e-08"),
            (-(2.0_f64.powi(-25)), "-2.9802322387695312e-08"),
            (5e-324, "5e-324"),
            (0.1 + 0.2, "0.30000000000000004"),
            // The text ending in 3 is just as close to each of these.
            (257.0 / 2_097_152.0, "0.00012254714965820312"),
            (654_642_191_744_685.0 / 8.0, "81830273968085.62"),
            (1e16, "1e+16"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1.5, "1.5"),
            (-0.0, "-0.0"),
            (1e-5, "1e-05"),
            (-1.5e-5, "-1.5e-05"),
            (9.9e-6, "9.9e-06"),
            (10.000_01, "10.00001"),
            (0.0001, "0.0001"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
        ] {
            let mut out = Text::default();
            write_float(&mut out, value);
            assert_eq!(out.text, text);
        }
    }
}
