//! Reads the write batches of one log, and detects the engine that wrote them.

use super::error::PayloadError;
use super::operation::Engine;
use super::write_batch::WriteBatch;

/// Fully decodes each write batch in a log.
///
/// A few tags mean one thing in RocksDB and another in Pebble, and the dialect of a log does not
/// always reveal which engine wrote it. A Pebble log that was not closed has the layout of a
/// RocksDB log, and an old Pebble log has the layout of a LevelDB log. If it is unclear which
/// engine wrote the log, RocksDB is assumed until there is a batch that only one of the two engines
/// can read. That batch determines the engine.
///
/// ```
/// use cordwood_payload::{Engine, WriteBatchReader};
///
/// let record = b"\x07\0\0\0\0\0\0\0\x01\0\0\0\x16\x01\x05";
/// let mut reader = WriteBatchReader::new(None);
/// let (batch, fault) = reader.read(record)?;
/// assert_eq!((batch.engine(), fault), (Engine::Pebble, None));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WriteBatchReader {
    engine: Engine,
    /// Whether the caller specified the engine. If so, batches cannot change it.
    is_given: bool,
    /// Whether a batch has already determined the engine. Even then, a later batch changes the
    /// engine if only the other engine can read it.
    is_decided: bool,
    is_ambiguous: bool,
}

impl WriteBatchReader {
    /// Creates a reader for a log of this engine. If `engine` is `None`, the reader detects the
    /// engine from the batches.
    pub fn new(engine: Option<Engine>) -> Self {
        WriteBatchReader {
            engine: engine.unwrap_or_default(),
            is_given: engine.is_some(),
            is_decided: false,
            is_ambiguous: false,
        }
    }

    /// Returns the batch in the log's next record, and the batch's fault, if any.
    ///
    /// # Errors
    ///
    /// Fails if the record is shorter than a batch header.
    pub fn read<'a>(&mut self, record: &'a [u8]) -> Result<(WriteBatch<'a>, Option<PayloadError>), PayloadError> {
        let batch = WriteBatch::new(record, self.engine)?;
        let fault = fault_in(&batch);
        if self.is_given || (self.is_decided && fault.is_none()) {
            return Ok((batch, fault));
        }
        let rival = WriteBatch::new(record, self.engine.other())?;
        // Both engines read most batches the same way.
        if batch.operations().eq(rival.operations()) {
            return Ok((batch, fault));
        }
        match (fault, fault_in(&rival)) {
            (Some(_), None) => {
                self.engine = rival.engine();
                self.is_decided = true;
                return Ok((rival, None));
            }
            (None, Some(_)) => self.is_decided = true,
            (None, None) => self.is_ambiguous = true,
            (Some(_), Some(_)) => {}
        }
        Ok((batch, fault))
    }

    /// Returns a message if RocksDB and Pebble read a batch differently and no earlier batch has
    /// determined the engine.
    pub fn note(&self) -> Option<&'static str> {
        let note = "RocksDB and Pebble read this log differently, and it is read as one from RocksDB";
        self.is_ambiguous.then_some(note)
    }
}

fn fault_in(batch: &WriteBatch<'_>) -> Option<PayloadError> {
    batch.operations().find_map(Result::err)
}
