//! A value as JSON in one line: the output of `to_json` of a payload in
//! `python/cordwood/_tables/payloads.py`, as `json_text` writes it. Those are the naive counterpart.

use std::fmt::{self, Write};

use super::view::View;
use crate::{EntityKey, PathId};

/// Text under construction. Its length comes from a file: if there is not enough memory, it is cut.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) is_cut: bool,
}

impl Text {
    fn len(&self) -> usize {
        self.text.len()
    }

    fn push(&mut self, character: char) {
        if self.reserve(character.len_utf8()) {
            self.text.push(character);
        }
    }

    fn push_str(&mut self, text: &str) {
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

/// Appends a value.
pub(super) fn write_json(out: &mut Text, value: View<'_>) {
    match value {
        View::Null => out.push_str("null"),
        View::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        View::Int(value) => push(out, format_args!("{value}")),
        View::Huge(digits) => out.push_str(digits),
        View::Time(time) => write_time(out, time),
        View::Float(value) => write_float(out, value),
        View::Text(text) => write_text(out, text),
        View::Bytes(bytes) => write_json(out, View::Data(bytes)),
        View::Base64(bytes) => {
            out.push('"');
            write_base64(out, bytes);
            out.push('"');
        }
        View::Key(key) => write_key(out, key),
        list if list.is_list() => {
            out.push('[');
            let begin = out.len();
            list.all_items(|value| {
                separate(out, begin);
                write_json(out, value);
                true
            });
            out.push(']');
        }
        structure => {
            // Fields that a user lacks are left out; those that a map lacks are null.
            let has_nulls = matches!(structure, View::Entity(_) | View::Object(_));
            out.push('{');
            let begin = out.len();
            structure.all_fields(|name, value| {
                if has_nulls || !matches!(value, View::Null) {
                    separate(out, begin);
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

/// Appends a comma before every item except the first, which is at `begin`.
fn separate(out: &mut Text, begin: usize) {
    if out.len() > begin {
        out.push(',');
    }
}

fn push(out: &mut Text, text: fmt::Arguments<'_>) {
    // `Text` remembers that it is cut.
    let _ = out.write_fmt(text);
}

fn write_text(out: &mut Text, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..'\x20' => push(out, format_args!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// As Python's `repr`, whose exponents have a sign and at least two digits.
fn write_float(out: &mut Text, value: f64) {
    let size = value.abs();
    if value.is_nan() {
        out.push_str("\"NaN\"");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    } else if size == 0.0 || (1e-4..1e16).contains(&size) {
        push(out, format_args!("{value:?}"));
    } else {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if exponent.starts_with('-') { '-' } else { '+' };
        push(
            out,
            format_args!("{digits}e{sign}{:0>2}", exponent.trim_start_matches('-')),
        );
    }
}

/// As in RFC 3339.
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

/// The date this many days after 1970-01-01, in the Gregorian calendar. Years are counted from
/// March, so that the leap day is the last day of a year.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Since 0000-03-01; 400 years are 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // The five months from March, or from August, have 153 days.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = 400 * era + year_of_era + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn write_base64(out: &mut Text, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

/// Appends a key. Its path is one flat list; a missing number or name at its end is left out.
fn write_key(out: &mut Text, key: &EntityKey<'_>) {
    out.push_str("{\"app\":");
    write_text(out, key.app);
    out.push_str(",\"path\":[");
    for (index, element) in key.path.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(out, element.kind);
        match element.id {
            PathId::Id(id) => push(out, format_args!(",{id}")),
            PathId::Name(name) => {
                out.push(',');
                write_text(out, name);
            }
            PathId::None if index + 1 < key.path.len() => out.push_str(",null"),
            PathId::None => {}
        }
    }
    out.push(']');
    for (name, text) in [("namespace", key.namespace), ("database", key.database)] {
        if let Some(text) = text {
            push(out, format_args!(",\"{name}\":"));
            write_text(out, text);
        }
    }
    out.push('}');
}
