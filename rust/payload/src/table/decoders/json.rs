//! The rows of JSON text.

use super::{Decode, Fault, Part, Record, Sink};
use crate::table::row::Row;
use crate::table::tree::{Rules, Value, parse};
use crate::table::view::View;
use crate::{PayloadError, PayloadReason};

/// One row for each document: the values of an object by their names, any other value as
/// `__value__`.
#[derive(Debug, Clone)]
pub(super) struct Json;

impl Decode for Json {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let items = match document(record.data)? {
            Value::Object(items) => items,
            value => vec![("__value__".into(), value)],
        };
        Ok(sink.row(&Row::of_items(&items)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        take(View::of_json(&document(record)?));
        Ok(true)
    }
}

/// One row for each record of which JSON text was made: its offset, and the values of the object.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) has_salvaged: bool,
}

impl Decode for Message {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let value = document(record.data)?;
        let mut cells = record.place(self.has_salvaged);
        View::of_json(&value).all_fields(|name, value| {
            cells.push((name, value));
            true
        });
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        Json.value(record, take)
    }
}

/// The value of a record that is JSON text.
pub(super) fn document(record: &[u8]) -> Result<Value<'_>, Fault> {
    let text = str::from_utf8(record).map_err(|error| PayloadError {
        offset: error.valid_up_to(),
        len: record.len() - error.valid_up_to(),
        reason: PayloadReason::NotUtf8,
    })?;
    let mut value = Value::Null;
    match parse(text, Rules::Document, &mut value) {
        Ok(()) => Ok(value),
        Err(refused) => Err(refused.in_text(text, 0, Part::Record, |what| format!("not JSON: {what}"))),
    }
}
