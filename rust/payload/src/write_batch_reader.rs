//! Reads the write batches of one log, and detects the engine that wrote them.

use super::error::PayloadError;
use super::operation::Engine;
use super::write_batch::WriteBatch;

/// Reads the write batches of one log, each to its end.
///
/// A few tags have one meaning in RocksDB and another in Pebble. The dialect of a log does not
/// always show which of the two wrote it. A Pebble log that was not closed has the layout of a
/// RocksDB log, and an old one that of a LevelDB log. In this case, the engine is decided by the
/// first batch that only one of the two can read. Until then, RocksDB is assumed.
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
    /// Whether the engine was given. If it was, no batch can change it.
    is_given: bool,
    /// Whether a batch has decided the engine. A batch that only the other engine can read still
    /// changes it.
    is_decided: bool,
    is_ambiguous: bool,
}

impl WriteBatchReader {
    /// Creates a reader for a log of this engine. If it is `None`, the batches decide.
    pub fn new(engine: Option<Engine>) -> Self {
        WriteBatchReader {
            engine: engine.unwrap_or_default(),
            is_given: engine.is_some(),
            is_decided: false,
            is_ambiguous: false,
        }
    }

    /// Returns the batch in the next record of the log, and the fault after its first operations.
    ///
    /// # Errors
    ///
    /// Fails if the record is shorter than the header of a batch.
    pub fn read<'a>(&mut self, record: &'a [u8]) -> Result<(WriteBatch<'a>, Option<PayloadError>), PayloadError> {
        let batch = WriteBatch::new(record, self.engine)?;
        let fault = fault_in(&batch);
        if self.is_given || (self.is_decided && fault.is_none()) {
            return Ok((batch, fault));
        }
        let rival = WriteBatch::new(record, self.engine.other())?;
        // Most batches are the same for both engines.
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

    /// Returns the uncertain point that the batches so far have shown, in words. It arises if
    /// RocksDB and Pebble read a batch differently and no earlier batch has decided the engine.
    pub fn note(&self) -> Option<&'static str> {
        let note = "RocksDB and Pebble read this log differently, and it is read as one from RocksDB";
        self.is_ambiguous.then_some(note)
    }
}

fn fault_in(batch: &WriteBatch<'_>) -> Option<PayloadError> {
    batch.operations().find_map(Result::err)
}
