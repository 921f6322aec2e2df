//! The rows that the records of a table become: a file for each program that writes them.

mod engine;
mod entity;
mod json;
mod run;
mod swanlab;
mod wandb;

use std::collections::BTreeMap;
use std::fmt;

use super::fault::Fault;
use super::row::Row;
use super::tree::Refused;
use super::view::View;

/// The kind of the records of a table, and so of the rows that they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rows {
    /// The bytes of any record.
    Raw,
    /// Write batches of LevelDB, RocksDB or Pebble, whose operations are the rows.
    WriteBatch,
    /// Version edits of LevelDB or RocksDB.
    VersionEdit,
    /// Version edits; the rows are the tables that the database has after all of them.
    LiveFiles,
    /// Entities of Datastore or Firestore.
    Entity,
    /// JSON text.
    Json,
    /// JSON text that was made of a record, with the offset of the record.
    Message,
    /// Records of a run of Weights & Biases, whose steps are the rows.
    History,
    /// Such records, whose only row describes the run.
    Run,
    /// Such records, whose only row is the summary of the run.
    Summary,
    /// Such records, whose only row is the configuration of the run.
    Config,
    /// Such records, whose measurements of the machine are the rows.
    Metrics,
    /// Such records, whose printed lines are the rows.
    Output,
    /// Records of a run of SwanLab, whose logged numbers are the rows.
    Swanlab,
}

/// A record, as a reader returns it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'r> {
    /// The offset of its first fragment in the file.
    pub offset: u64,
    /// The offset of the end of its last fragment.
    pub end_offset: u64,
    /// Whether it starts after damage in its block, if rows with its offset are to say so.
    pub is_salvaged: Option<bool>,
    /// Its bytes.
    pub data: &'r [u8],
}

impl<'r> Record<'r> {
    /// A record of which only the bytes are known.
    pub fn of(data: &'r [u8]) -> Self {
        Record {
            offset: 0,
            end_offset: 0,
            is_salvaged: None,
            data,
        }
    }

    /// The cells of its offset and, if wanted, of whether it is salvaged.
    fn cells<'n>(&self) -> Vec<(&'n str, View<'n>)> {
        // With room for most rows: growing takes as long as a short row.
        let mut cells = Vec::with_capacity(8);
        cells.push(("offset", View::UInt(self.offset)));
        cells.extend(self.is_salvaged.map(|is| ("salvaged", View::Bool(is))));
        cells
    }
}

/// What a decoder must know about a log besides its records.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// The engine that wrote the write batches, if the dialect of the log says so.
    pub engine: Option<crate::Engine>,
    /// The names of the column families by their numbers, from the MANIFESTs beside the log.
    pub families: BTreeMap<u32, Vec<u8>>,
    /// Whether the dialect or the name of the file says that this is a run of Weights & Biases. Such
    /// a run has a row even if it was killed before its first record.
    pub is_run: bool,
}

/// Takes the rows and the faults of a record.
pub trait Sink {
    /// Takes a row. Returns whether there was room for it: if not, the decoder stops, and starts
    /// with the same row when it gets the same record again.
    fn row(&mut self, row: &Row<'_>) -> bool;

    /// Takes a fault of the record, before its first row. It comes again with a row for which there was
    /// no room.
    fn fault(&mut self, fault: Fault);
}

/// The result of a decoder.
type Decoded = Result<bool, Box<Refused>>;

/// Takes the only row of a record as an object, and the first fault.
struct OneRow<'t> {
    take: &'t mut dyn FnMut(View<'_>),
    is_taken: bool,
    fault: Option<Fault>,
}

impl Sink for OneRow<'_> {
    fn row(&mut self, row: &Row<'_>) -> bool {
        if self.fault.is_none() {
            (self.take)(View::Cells(row.cells()));
            self.is_taken = true;
        }
        true
    }

    fn fault(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}

/// Decodes the records of one log, in their order.
#[derive(Debug)]
pub struct Decoder(Box<dyn Decode>);

impl Clone for Decoder {
    fn clone(&self) -> Self {
        Decoder(self.0.another())
    }
}

/// What [`Decoder`] does, for one kind of record.
trait Decode: Another + fmt::Debug + Send + Sync {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded;

    fn rest(&mut self, _sink: &mut dyn Sink) -> bool {
        true
    }

    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Passes the value of a record to `take`: its only row as an object, unless the decoder says
    /// otherwise. Returns whether the record has one.
    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let mut sink = OneRow {
            take,
            is_taken: false,
            fault: None,
        };
        self.record(&Record::of(record), &mut sink)?;
        sink.fault.map_or(Ok(sink.is_taken), |fault| Err(fault.into()))
    }
}

/// A copy of a decoder, for a trait object.
trait Another {
    fn another(&self) -> Box<dyn Decode>;
}

impl<D: Decode + Clone + 'static> Another for D {
    fn another(&self) -> Box<dyn Decode> {
        Box::new(self.clone())
    }
}

impl Decoder {
    /// A decoder that has seen no record of the log with these facts.
    pub fn new(rows: Rows, facts: Facts) -> Self {
        Decoder(match rows {
            Rows::Raw => Box::new(json::Raw),
            Rows::WriteBatch => Box::new(engine::Batches::new(facts)),
            Rows::VersionEdit => Box::new(engine::Edits),
            Rows::LiveFiles => Box::new(engine::LiveFiles::default()),
            Rows::Entity => Box::new(entity::Entities),
            Rows::Json => Box::new(json::Json),
            Rows::Message => Box::new(json::Message),
            Rows::History => Box::new(wandb::History),
            Rows::Run => Box::new(run::Run::new(&facts)),
            Rows::Summary => Box::new(run::Changes::new(false, &facts)),
            Rows::Config => Box::new(run::Changes::new(true, &facts)),
            Rows::Metrics => Box::new(wandb::Metrics::default()),
            Rows::Output => Box::new(wandb::Output::default()),
            Rows::Swanlab => Box::new(swanlab::Swanlab),
        })
    }

    /// Passes the rows of a record to `sink`, and its faults. Returns whether there was room for all
    /// rows: if not, the next call must be for the same record.
    ///
    /// # Errors
    ///
    /// A fault for which the record has no row.
    pub fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let has_room = self.0.record(record, sink);
        has_room.map_err(|refused| refused.in_record(record.data))
    }

    /// Passes the value of a record to `take`, all of it. Returns whether the record has one: others
    /// are of a kind that the rows are not about.
    ///
    /// # Errors
    ///
    /// The record, or a value in it, cannot be read.
    pub fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        let value = self.0.value(record, take);
        value.map_err(|refused| refused.in_record(record))
    }

    /// Passes the rows that are complete only after the last record to `sink`. Returns whether there
    /// was room for all of them: if not, it must be called again.
    pub fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        self.0.rest(sink)
    }

    /// The uncertain point that the records so far have shown, in words. It stays.
    pub fn note(&self) -> Option<&'static str> {
        self.0.note()
    }
}
