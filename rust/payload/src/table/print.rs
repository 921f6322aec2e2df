//! Writes rows as NDJSON and CSV text. The naive counterpart is in `tests/helpers/naive_tables.py`.

use super::json::{BytesAs, Text, write_json};
use super::misfit::NotAdded;
use super::row::Row;
use super::types::{Fields, Type};
use super::view::View;

/// Appends a row to `out` as one line of NDJSON.
pub(super) fn ndjson(row: &Row<'_>, out: &mut Text) -> Result<(), NotAdded> {
    write_json(out, View::Cells(row.cells()));
    out.push('\n');
    out.check()
}

/// Comma-separated values in PostgreSQL's format, where an empty field means no value, and `""`
/// means empty text.
#[derive(Debug)]
pub(super) struct Csv {
    columns: Fields,
    escapes_formulas: bool,
    /// The non-null cells of a row, each as a column number and an index into the row.
    cells: Vec<(usize, usize)>,
    /// The text of a cell before quoting.
    text: Text,
}

impl Csv {
    /// Creates a writer for columns with these names and types, and appends the header to `out`.
    pub(super) fn new(columns: &[(String, Type)], escapes_formulas: bool, bytes: BytesAs, out: &mut Text) -> Self {
        let csv = Csv {
            columns: columns.iter().cloned().collect(),
            escapes_formulas,
            cells: Vec::new(),
            text: Text::new(bytes),
        };
        for (number, (name, _)) in columns.iter().enumerate() {
            commas(out, number.min(1));
            csv.plain_text(name, out);
        }
        // Without columns, there is no table and therefore no header.
        if !columns.is_empty() {
            out.push('\n');
        }
        csv
    }

    /// Returns the columns.
    pub(super) fn columns(&self) -> &Fields {
        &self.columns
    }

    /// Appends a row to `out`. The time this takes depends on the number of values in the row, not
    /// on the number of columns.
    pub(super) fn add(&mut self, row: &Row<'_>, out: &mut Text) -> Result<(), NotAdded> {
        self.cells.clear();
        let mut hint = 0;
        for (index, &(name, value)) in row.cells().iter().enumerate() {
            let Some(number) = self.columns.names.find(name, hint) else {
                return Err(NotAdded::misfit(None, value).within(name));
            };
            hint = number + 1;
            if !matches!(value, View::Null) {
                self.cells.push((number, index));
            }
        }
        let Some(last) = self.columns.names.len().checked_sub(1) else {
            return Ok(());
        };
        if !self.cells.is_sorted() {
            self.cells.sort_unstable();
        }
        let mut at = 0;
        let cells = std::mem::take(&mut self.cells);
        for &(number, index) in &cells {
            commas(out, number - at);
            at = number;
            self.cell(row.cells()[index].1, number, out);
        }
        self.cells = cells;
        commas(out, last - at);
        out.push('\n');
        out.check()
    }

    fn cell(&mut self, value: View<'_>, number: usize, out: &mut Text) {
        if self.columns.types[number] != Type::Json {
            match value {
                View::Text(text) => return self.plain_text(text, out),
                View::Int(_) | View::UInt(_) | View::Bool(_) => return write_json(out, value),
                View::Float(number) if number.is_finite() => return write_json(out, value),
                View::Bytes(bytes) => {
                    if let Some(text) = self.text.bytes.encode(bytes) {
                        return self.plain_text(&text, out);
                    }
                }
                _ => {}
            }
        }
        self.text.text.clear();
        write_json(&mut self.text, value);
        let text = &self.text.text[..];
        // Times and non-finite numbers are quoted in JSON, but not in CSV.
        let is_plain = matches!(value, View::Float(_) | View::Time(_)) && self.columns.types[number] != Type::Json;
        quoted(if is_plain { text.trim_matches('"') } else { text }, out);
        out.is_cut |= self.text.is_cut;
    }

    fn plain_text(&self, text: &str, out: &mut Text) {
        if self.escapes_formulas && text.starts_with(FORMULA) {
            quoted(&format!("'{text}"), out);
        } else {
            quoted(text, out);
        }
    }
}

/// The characters that spreadsheets interpret as the start of a formula. The last four are the
/// full-width forms of the first four.
const FORMULA: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

fn commas(out: &mut Text, count: usize) {
    for _ in 0..count {
        out.push(',');
    }
}

/// Appends a field. It is quoted if it is empty, contains a character that must be quoted, or
/// starts or ends with white space.
fn quoted(text: &str, out: &mut Text) {
    // Python also counts four separators as white space.
    let is_space = |character: char| character.is_whitespace() || ('\x1c'..='\x1f').contains(&character);
    let needs_marks = |byte: u8| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if !text.is_empty() && !text.bytes().any(needs_marks) && !text.starts_with(is_space) && !text.ends_with(is_space) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.push_str("\"\"");
        }
        out.push_str(part);
    }
    out.push('"');
}
