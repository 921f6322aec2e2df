//! The rows of any records: their bytes.

use super::{Decode, Facts, Fault, Record, Sink};
use crate::table::row::Row;
use crate::table::view::View;

/// One row for each record.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    has_salvaged: bool,
}

impl Raw {
    pub(super) fn new(facts: &Facts) -> Self {
        Raw {
            has_salvaged: facts.has_salvaged,
        }
    }
}

impl Decode for Raw {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let mut cells = record.place(self.has_salvaged);
        cells.push(("end_offset", View::UInt(record.end_offset)));
        cells.push(("data", View::Bytes(record.data)));
        Ok(sink.row(&Row::new(cells)))
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        take(View::Bytes(record));
        Ok(true)
    }
}
