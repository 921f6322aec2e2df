//! Decodes records into the rows of a table. Each file contains the decoders for the records of one
//! kind of program.

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
use super::view::View;

/// A record from a reader.
#[derive(Debug, Clone, Copy)]
pub struct Record<'r> {
    /// The file offset where the record's first fragment starts.
    pub offset: u64,
    /// The file offset where the record's last fragment ends.
    pub end_offset: u64,
    /// Whether the record starts after damage in its block. Rows that contain the record's offset
    /// also contain this value, unless it is `None`.
    pub is_salvaged: Option<bool>,
    /// The bytes of the record.
    pub data: &'r [u8],
}

impl<'r> Record<'r> {
    /// Returns a record whose offsets aren't known.
    pub fn of(data: &'r [u8]) -> Self {
        Record {
            offset: 0,
            end_offset: 0,
            is_salvaged: None,
            data,
        }
    }

    /// Returns the cell for the offset. If `is_salvaged` is `Some`, also returns a cell for it.
    fn cells<'n>(&self) -> Vec<(&'n str, View<'n>)> {
        // This capacity is enough for most rows. Growing the vector takes as long as decoding a
        // short row.
        let mut cells = Vec::with_capacity(8);
        cells.push(("offset", View::UInt(self.offset)));
        cells.extend(self.is_salvaged.map(|is| ("salvaged", View::Bool(is))));
        cells
    }
}

/// What a decoder needs to know about a log besides its records.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// The engine that wrote the write batches, if the dialect of the log identifies it.
    pub engine: Option<crate::Engine>,
    /// Column family names by number, from the MANIFEST files next to the log.
    pub families: BTreeMap<u32, Vec<u8>>,
    /// Whether the dialect or the file name identifies the log as a Weights & Biases run. A run has
    /// a row even if it was killed before its first record.
    pub is_run: bool,
}

/// Receives the rows and the faults of a record.
pub trait Sink {
    /// Receives a row, and returns whether there was room for it. If not, the decoder stops. When
    /// the decoder is given the same record again, it resumes with this row.
    fn row(&mut self, row: &Row<'_>) -> bool;

    /// Receives a fault in the record. Faults are passed before the record's first row. If there
    /// was no room for that row, the faults are passed again the next time the record is decoded.
    fn fault(&mut self, fault: Fault);
}

/// The result of a decoder.
type Decoded = Result<bool, Box<Fault>>;

/// A sink for a record with only one row. It passes the record's faults to `fault`, and then the
/// row, as an object, to `take`.
pub struct OneRow<'t> {
    /// Called with the row.
    pub take: &'t mut dyn FnMut(View<'_>),
    /// Called with each fault, before `take` is called with the row.
    pub fault: &'t mut dyn FnMut(Fault),
}

impl Sink for OneRow<'_> {
    fn row(&mut self, row: &Row<'_>) -> bool {
        (self.take)(View::Cells(row.cells()));
        true
    }

    fn fault(&mut self, fault: Fault) {
        (self.fault)(fault);
    }
}

/// Decodes the records of one log, in order.
#[derive(Debug)]
pub struct Decoder(Box<dyn Decode>);

impl Clone for Decoder {
    fn clone(&self) -> Self {
        Decoder(self.0.another())
    }
}

/// A [`Decoder`] for one kind of record.
trait Decode: Another + fmt::Debug + Send + Sync {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded;

    fn rest(&mut self, _sink: &mut dyn Sink) -> bool {
        true
    }

    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Passes a record's value to `take`, and returns whether the record has one. By default, the
    /// value is an object with the cells of the record's only row.
    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let (mut is_taken, mut first) = (false, None);
        let mut sink = OneRow {
            take: &mut |row| {
                is_taken = true;
                take(row);
            },
            fault: &mut |fault| _ = first.get_or_insert(fault),
        };
        self.record(&Record::of(record), &mut sink)?;
        first.map_or(Ok(is_taken), |fault| Err(fault.into()))
    }
}

/// Makes decoders cloneable as trait objects.
trait Another {
    fn another(&self) -> Box<dyn Decode>;
}

impl<D: Decode + Clone + 'static> Another for D {
    fn another(&self) -> Box<dyn Decode> {
        Box::new(self.clone())
    }
}

/// A function that creates a decoder.
type Create = fn(Facts) -> Box<dyn Decode>;

/// All decoders, each with its name.
const DECODERS: [(&str, Create); 14] = [
    ("raw", |_| Box::new(json::Raw)),
    ("write-batch", |facts| Box::new(engine::Batches::new(facts))),
    ("version-edit", |_| Box::new(engine::Edits)),
    ("live-files", |_| Box::new(engine::LiveFiles::default())),
    ("entity", |_| Box::new(entity::Entities)),
    ("json", |_| Box::new(json::Json { has_offset: false })),
    ("wandb", |_| Box::new(json::Json { has_offset: true })),
    ("wandb-history", |_| Box::new(wandb::History)),
    ("wandb-run", |facts| Box::new(run::Run::new(&facts))),
    ("wandb-summary", |facts| Box::new(run::Changes::new(false, &facts))),
    ("wandb-config", |facts| Box::new(run::Changes::new(true, &facts))),
    ("wandb-metrics", |_| Box::new(wandb::Metrics::default())),
    ("wandb-output", |_| Box::new(wandb::Output::default())),
    ("swanlab-history", |_| Box::new(swanlab::Swanlab)),
];

impl Decoder {
    /// Returns the names of all decoders:
    ///
    /// - `raw`: any records. The row contains the bytes.
    /// - `write-batch`: LevelDB, RocksDB or Pebble write batches. Each operation is a row.
    /// - `version-edit`: LevelDB or RocksDB version edits. Each edit is a row.
    /// - `live-files`: version edits. The rows are the tables that are still live after all edits.
    /// - `entity`: Datastore or Firestore entities.
    /// - `json`: JSON text.
    /// - `wandb`: JSON text made from a record. Rows start with the record's offset.
    /// - `wandb-history`: records from a Weights & Biases run. Each step is a row.
    /// - `wandb-run`, `wandb-summary`, `wandb-config`: records from a Weights & Biases run. The
    ///   only row is the run's description, summary or configuration.
    /// - `wandb-metrics`: records from a Weights & Biases run. Each set of system metrics is a row.
    /// - `wandb-output`: records from a Weights & Biases run. Each line of console output is a row.
    /// - `swanlab-history`: records from a SwanLab run. Each logged number is a row.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        DECODERS.iter().map(|&(name, _)| name)
    }

    /// Creates the decoder with this [name](Self::names), given these facts about the log. Returns
    /// `None` if the name is unknown.
    pub fn named(name: &str, facts: Facts) -> Option<Self> {
        let (_, create) = DECODERS.iter().find(|&&(other, _)| other == name)?;
        Some(Decoder(create(facts)))
    }

    /// Passes the rows and the faults of a record to `sink`. Returns whether there was room for all
    /// rows. If not, the next call must be for the same record.
    ///
    /// # Errors
    ///
    /// Returns the fault if the record has no rows.
    pub fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        self.0.record(record, sink).map_err(|fault| *fault)
    }

    /// Passes the whole value of a record to `take`, and returns whether the record has one. A
    /// record has no value if the decoder doesn't turn records of its kind into rows.
    ///
    /// # Errors
    ///
    /// Returns a fault if the record, or a value in it, cannot be read.
    pub fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        self.0.value(record, take).map_err(|fault| *fault)
    }

    /// Passes `sink` the rows that only become complete after the last record. Returns whether
    /// there was room for all of them. If not, call this method again.
    pub fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        self.0.rest(sink)
    }

    /// Returns a message if the records so far can be read in more than one way. Later records do
    /// not change this.
    pub fn note(&self) -> Option<&'static str> {
        self.0.note()
    }
}
