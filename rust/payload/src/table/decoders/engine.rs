//! Decodes the logs of database engines. The rows are those of write batches, of version edits, or
//! of the tables that a database has after all edits.

use std::collections::BTreeMap;

use super::{Decode, Decoded, Facts, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::row::Row;
use crate::table::view::{View, add_parts};
use crate::{Engine, PayloadError, VersionEdit, VersionState, WriteBatch, WriteBatchReader};

/// Decodes write batches. There is one row for each operation, and one for an empty batch.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    reader: WriteBatchReader,
    families: BTreeMap<u32, Vec<u8>>,
    /// The operation to continue with in the same record, if earlier ones already have their rows.
    next: Option<Place>,
}

/// The place of an operation in a record.
#[derive(Debug, Clone, Copy)]
struct Place {
    engine: Engine,
    offset: usize,
    /// The number of operations before it that count.
    count: u64,
}

impl Batches {
    pub(super) fn new(facts: Facts) -> Self {
        Batches {
            reader: WriteBatchReader::new(facts.engine),
            families: facts.families,
            next: None,
        }
    }

    /// Returns the place of the first operation of a record. If there is a fault after some
    /// operations, passes it to `sink`.
    fn first(&mut self, record: &[u8], sink: &mut dyn Sink) -> Result<Place, PayloadError> {
        let (batch, fault) = self.reader.read(record)?;
        if let Some(fault) = fault {
            // If there is no operation before the fault, it is the fault of the record.
            batch.operations().next().transpose()?;
            sink.fault(Fault {
                part: Part::Rest,
                ..fault.into()
            });
        }
        Ok(Place {
            engine: batch.engine(),
            offset: WriteBatch::HEADER_LEN,
            count: 0,
        })
    }
}

impl Decode for Batches {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let mut place = match self.next.take() {
            Some(place) => place,
            None => self.first(record.data, sink)?,
        };
        let batch = WriteBatch::new(record.data, place.engine)?;
        if record.data.len() == WriteBatch::HEADER_LEN {
            let mut cells = record.cells();
            cells.push(("sequence", View::UInt(batch.sequence())));
            return Ok(sink.row(&Row::new(cells)));
        }
        // A fault after the last operation has already been passed to the sink.
        while let Ok(Some((operation, end))) = batch.operation_at(place.offset) {
            let is_counted = operation.is_counted();
            let sequence = View::UInt(batch.sequence().saturating_add(place.count));
            let family = operation.parts().column_family;
            let name = family.and_then(|number| self.families.get(&number));
            let mut cells = record.cells();
            cells.push(("sequence", if is_counted { sequence } else { View::Null }));
            cells.push(("kind", View::Text(operation.as_str())));
            add_parts(&mut cells, &operation, name.map(Vec::as_slice));
            if !sink.row(&Row::new(cells)) {
                // If no row was taken, the record starts again, with its fault.
                self.next = (place.offset > WriteBatch::HEADER_LEN).then_some(place);
                return Ok(false);
            }
            place.offset = end;
            place.count += u64::from(is_counted);
        }
        Ok(true)
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let (batch, fault) = self.reader.read(record)?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        take(View::Cells(&[
            ("sequence", View::UInt(batch.sequence())),
            ("count", View::UInt(batch.count().into())),
            ("operations", View::Operations(&batch)),
        ]));
        Ok(true)
    }

    fn note(&self) -> Option<&'static str> {
        self.reader.note()
    }
}

/// Decodes version edits. There is one row for each edit.
#[derive(Debug, Clone)]
pub(super) struct Edits;

impl Decode for Edits {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let mut cells = record.cells();
        cells.push(("fields", fields(record.data)?));
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        take(View::Cells(&[("fields", fields(record)?)]));
        Ok(true)
    }
}

/// Returns the fields of an edit. Each is decoded to detect a fault in it.
fn fields(record: &[u8]) -> Result<View<'_>, PayloadError> {
    // The fields are decoded one at a time because a decoded field is many times larger than in the
    // record.
    VersionEdit::new(record)
        .fields()
        .try_for_each(|field| field.map(drop))?;
    Ok(View::EditFields(record))
}

/// Decodes version edits. There is one row for each table that is live after all edits.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveFiles(VersionState);

impl Decode for LiveFiles {
    fn record(&mut self, record: &Record<'_>, _sink: &mut dyn Sink) -> Decoded {
        self.0.apply(record.data)?;
        Ok(true)
    }

    fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        let LiveFiles(state) = self;
        loop {
            let first = state.tables().next();
            let Some((family, file)) = first else { return true };
            let part = |name: &str| file.get(name).map_or(View::Null, View::of_value);
            let user_key = |name: &str| {
                let key = file.get(name).and_then(|key| key.get("user_key"));
                key.map_or(View::Null, View::of_value)
            };
            let row = Row::new(vec![
                ("column_family", View::UInt(family)),
                ("column_family_name", state.name(family).map_or(View::Null, View::Bytes)),
                ("level", part("level")),
                ("file_number", part("file_number")),
                ("file_len", part("file_len")),
                ("smallest_key", user_key("smallest")),
                ("largest_key", user_key("largest")),
                ("smallest_sequence", part("smallest_sequence")),
                ("largest_sequence", part("largest_sequence")),
                ("path_id", part("path_id")),
            ]);
            if !sink.row(&row) {
                return false;
            }
            // The first table is then always the next row, and no count is needed.
            state.remove_first_table();
        }
    }
}
