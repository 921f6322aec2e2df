//! The rows of version edits: the edits, or the tables that a database has after all of them.

use super::{Decode, Facts, Fault, Record, Sink};
use crate::table::row::Row;
use crate::table::view::View;
use crate::{PayloadError, VersionEdit, VersionState};

/// One row for each edit.
#[derive(Debug, Clone)]
pub(super) struct Edits {
    has_salvaged: bool,
}

impl Edits {
    pub(super) fn new(facts: &Facts) -> Self {
        Edits {
            has_salvaged: facts.has_salvaged,
        }
    }
}

impl Decode for Edits {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let mut cells = record.place(self.has_salvaged);
        cells.push(("fields", fields(record.data)?));
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        take(View::Cells(&[("fields", fields(record)?)]));
        Ok(true)
    }
}

/// The fields of an edit, each of which is decoded to find a fault in it.
fn fields(record: &[u8]) -> Result<View<'_>, PayloadError> {
    // One field at a time: a decoded field takes up many times its size in the record.
    VersionEdit::new(record)
        .fields()
        .try_for_each(|field| field.map(drop))?;
    Ok(View::EditFields(record))
}

/// One row for each table that is live after all edits.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveFiles(VersionState);

impl Decode for LiveFiles {
    fn record(&mut self, record: &Record<'_>, _sink: &mut dyn Sink) -> Result<bool, Fault> {
        self.0.apply(record.data)?;
        Ok(true)
    }

    fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        let LiveFiles(state) = self;
        loop {
            let first = state.tables().next();
            let Some((family, file)) = first else { return true };
            let (smallest_sequence, largest_sequence) = file.sequences().unzip();
            let row = Row::new(vec![
                ("column_family", View::UInt(family.into())),
                ("column_family_name", state.name(family).map_or(View::Null, View::Bytes)),
                ("level", View::UInt(file.level.into())),
                ("file_number", View::UInt(file.file_number)),
                ("file_len", View::UInt(file.file_len)),
                ("smallest_key", View::Bytes(file.smallest.user_key)),
                ("largest_key", View::Bytes(file.largest.user_key)),
                ("smallest_sequence", smallest_sequence.map_or(View::Null, View::UInt)),
                ("largest_sequence", largest_sequence.map_or(View::Null, View::UInt)),
                ("path_id", View::UInt(file.path_id().into())),
            ]);
            if !sink.row(&row) {
                return false;
            }
            // Which row is the next is then known without a count.
            state.remove_first_table();
        }
    }

    fn value(&mut self, _record: &[u8], _take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        Ok(false)
    }
}
