//! Decodes the logs of database engines. A row describes a version edit, an operation in a write
//! batch, or a table that is still live after all edits.

use std::collections::BTreeMap;

use super::{Decode, Decoded, Facts, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::row::Row;
use crate::table::view::{View, add_parts};
use crate::{Engine, PayloadError, Position, VersionEdit, VersionState, WriteBatch, WriteBatchReader};

/// Decodes write batches into one row per operation. An empty batch also gets one row.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    reader: WriteBatchReader,
    families: BTreeMap<u32, Vec<u8>>,
    /// If the sink has taken only some rows of a record, this is the operation to resume at.
    next: Option<(Engine, Position)>,
}

impl Batches {
    pub(super) fn new(facts: Facts) -> Self {
        Batches {
            reader: WriteBatchReader::new(facts.engine),
            families: facts.families,
            next: None,
        }
    }

    /// Returns the engine of a record. A fault that follows at least one operation is passed to
    /// `sink`.
    fn engine_of(&mut self, record: &[u8], sink: &mut dyn Sink) -> Result<Engine, PayloadError> {
        let (batch, fault) = self.reader.read(record)?;
        if let Some(fault) = fault {
            // If no operation precedes the fault, it applies to the whole record.
            batch.operations().next().transpose()?;
            sink.fault(Fault {
                part: Part::Rest,
                ..fault.into()
            });
        }
        Ok(batch.engine())
    }
}

impl Decode for Batches {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let (engine, mut next) = match self.next.take() {
            Some(place) => place,
            None => (self.engine_of(record.data, sink)?, Position::START),
        };
        let batch = WriteBatch::new(record.data, engine)?;
        if record.data.len() == WriteBatch::HEADER_LEN {
            let mut cells = record.cells();
            cells.push(("sequence", View::UInt(batch.sequence())));
            return Ok(sink.row(&Row::new(cells)));
        }
        // A fault after the last operation has already been passed to the sink.
        let mut at = next;
        while let Ok(Some((operation, sequence))) = batch.next_operation(&mut next) {
            let family = operation.parts().column_family;
            let name = family.and_then(|number| self.families.get(&number));
            let mut cells = record.cells();
            cells.push(("sequence", sequence.map_or(View::Null, View::UInt)));
            cells.push(("kind", View::Text(operation.as_str())));
            add_parts(&mut cells, &operation, name.map(Vec::as_slice));
            if !sink.row(&Row::new(cells)) {
                // If no row was taken, the record is decoded from the start again, so its fault is
                // reported again.
                self.next = (at != Position::START).then_some((engine, at));
                return Ok(false);
            }
            at = next;
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

/// Decodes each version edit into one row.
#[derive(Debug, Clone)]
pub(super) struct Edits;

impl Decode for Edits {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let mut cells = record.cells();
        VersionEdit::new(record.data).check()?;
        cells.push(("fields", View::EditFields(record.data)));
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        VersionEdit::new(record).check()?;
        take(View::Cells(&[("fields", View::EditFields(record))]));
        Ok(true)
    }
}

/// Decodes version edits into one row for each table that is still live after all edits.
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
            // Once this table is removed, the next row's table is the first one, so there is no
            // position to keep.
            state.remove_first_table();
        }
    }
}
