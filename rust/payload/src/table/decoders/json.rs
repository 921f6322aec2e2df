//! Decoders for arbitrary records and for records that are JSON text.

use super::{Decode, Decoded, Record, Sink};
use crate::Value;
use crate::table::fault::{Fault, Part};
use crate::table::row::Row;
use crate::table::tree::{Rules, parse, utf8};
use crate::table::view::View;

/// Decodes arbitrary records. Each row contains the offsets and the bytes of one record.
#[derive(Debug, Clone)]
pub(super) struct Raw;

impl Decode for Raw {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let mut cells = record.cells();
        cells.push(("end_offset", View::UInt(record.end_offset)));
        cells.push(("data", View::Bytes(record.data)));
        Ok(sink.row(&Row::new(cells)))
    }
}

/// Decodes each JSON document into one row. Each value in an object goes into the column of the
/// same name. A document that isn't an object goes into the `__value__` column.
#[derive(Debug, Clone)]
pub(super) struct Json {
    /// Whether rows start with the offset of their record.
    pub(super) has_offset: bool,
}

impl Decode for Json {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let items = match document(record.data)? {
            Value::Object(items) => items,
            value => vec![("__value__".into(), value)],
        };
        let mut cells = if self.has_offset { record.cells() } else { Vec::new() };
        cells.extend(items.iter().map(|(name, value)| (name.as_ref(), View::of_value(value))));
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        take(View::of_value(&document(record)?));
        Ok(true)
    }
}

/// Returns the value of a JSON record.
pub(super) fn document(record: &[u8]) -> Result<Value<'_>, Box<Fault>> {
    let text = utf8(record, 0)?;
    let mut value = Value::Null;
    let parsed = parse(text, Rules::Document, &mut value);
    parsed.map_err(|refused| refused.in_text(text, 0, Part::Record, |what| format!("not JSON: {what}")))?;
    Ok(value)
}
