//! The rows of write batches.

use std::collections::BTreeMap;

use super::{Decode, Facts, Fault, Note, Record, Sink};
use crate::table::operations::add_parts;
use crate::table::row::Row;
use crate::table::view::View;
use crate::{Engine, WriteBatch, WriteBatchReader};

/// One row for each operation, and one for an empty batch.
#[derive(Debug, Clone)]
pub(super) struct Batches {
    reader: WriteBatchReader,
    families: BTreeMap<u32, Vec<u8>>,
    has_salvaged: bool,
    /// The operation with which to go on in the same record, if some before it have their rows.
    next: Option<Place>,
}

/// The place of an operation in a record.
#[derive(Debug, Clone, Copy)]
struct Place {
    engine: Engine,
    offset: usize,
    /// How many operations before it count.
    count: u64,
}

impl Batches {
    pub(super) fn new(facts: Facts) -> Self {
        Batches {
            reader: WriteBatchReader::new(facts.engine),
            families: facts.families,
            has_salvaged: facts.has_salvaged,
            next: None,
        }
    }

    /// The place of the first operation of a record. Passes on the fault after its first operations.
    fn first(&mut self, record: &[u8], sink: &mut dyn Sink) -> Result<Place, Fault> {
        let (batch, fault) = self.reader.read(record)?;
        if let Some(fault) = fault {
            // Without an operation before it, the fault is that of the record.
            batch.operations().next().transpose()?;
            sink.fault(Fault::rest(fault));
        }
        Ok(Place {
            engine: batch.engine(),
            offset: WriteBatch::HEADER_LEN,
            count: 0,
        })
    }
}

impl Decode for Batches {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let mut place = match self.next.take() {
            Some(place) => place,
            None => self.first(record.data, sink)?,
        };
        let batch = WriteBatch::new(record.data, place.engine)?;
        if record.data.len() == WriteBatch::HEADER_LEN {
            let mut cells = record.place(self.has_salvaged);
            cells.push(("sequence", View::UInt(batch.sequence())));
            return Ok(sink.row(&Row::new(cells)));
        }
        // The fault after the last operation has been passed on.
        while let Ok(Some((operation, end))) = batch.operation_at(place.offset) {
            let is_counted = operation.is_counted();
            let sequence = View::UInt(batch.sequence().saturating_add(place.count));
            let family = operation.parts().column_family;
            let name = family.and_then(|number| self.families.get(&number));
            let mut cells = record.place(self.has_salvaged);
            cells.push(("sequence", if is_counted { sequence } else { View::Null }));
            cells.push(("kind", View::Text(operation.as_str())));
            add_parts(&mut cells, &operation, name.map(Vec::as_slice));
            if !sink.row(&Row::new(cells)) {
                // Without a row, the record starts again, with its fault.
                self.next = (place.offset > WriteBatch::HEADER_LEN).then_some(place);
                return Ok(false);
            }
            place.offset = end;
            place.count += u64::from(is_counted);
        }
        Ok(true)
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
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

    fn note(&self) -> Option<Note> {
        self.reader.is_ambiguous().then_some(Note::Engines)
    }
}
