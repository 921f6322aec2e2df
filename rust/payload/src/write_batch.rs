//! Decodes and builds write-ahead log records, which are batches of operations.

use std::iter;

use super::error::{PayloadError, PayloadReason};
use super::operation::{Engine, Operation};
use super::wire::{Cursor, too_large};

/// A record in a LevelDB, RocksDB or Pebble write-ahead log. Its operations take effect together.
///
/// The record starts with a 12-byte header: the sequence number as a fixed64 and the count as a
/// fixed32 (`db/write_batch.cc` in LevelDB and RocksDB, `batchrepr/reader.go` in Pebble). The
/// operations follow, and are read lazily by [`operations`](WriteBatch::operations).
///
/// ```
/// use cordwood_payload::{Engine, Operation, WriteBatch};
///
/// let operations = [
///     Operation::Put { column_family: 0, key: b"a", value: b"1" },
///     Operation::DeleteRange { column_family: 3, key: b"b", end_key: b"d" },
/// ];
/// let record = WriteBatch::encode(100, &operations, Engine::RocksDb)?;
/// let batch = WriteBatch::new(&record, Engine::RocksDb)?;
/// assert_eq!((batch.sequence(), batch.count()), (100, 2));
/// assert!(batch.operations().eq(operations.map(Ok)));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBatch<'a> {
    record: &'a [u8],
    engine: Engine,
    sequence: u64,
    count: u32,
}

impl<'a> WriteBatch<'a> {
    /// The length of the header in bytes, which is also the offset of the first operation in the
    /// record.
    pub const HEADER_LEN: usize = 12;

    /// Reads the header of a record.
    ///
    /// # Errors
    ///
    /// Returns [`Truncated`](PayloadReason::Truncated) if the record is shorter than the header.
    pub fn new(record: &'a [u8], engine: Engine) -> Result<Self, PayloadError> {
        let mut cursor = Cursor::new(record, 0);
        Ok(WriteBatch {
            record,
            engine,
            sequence: cursor.fixed64()?,
            count: cursor.fixed32()?,
        })
    }

    /// Returns the sequence number of the first operation. Each later
    /// [counted](Operation::is_counted) operation has the next number.
    ///
    /// RocksDB's `WritePrepared` and `WriteUnprepared` write policies give all operations in a
    /// batch the same number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the number of [counted](Operation::is_counted) operations, as stated in the header.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the engine whose tags are used to read the batch.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns the operations, in order. The iterator ends after the first error. After the last
    /// operation, it returns an error if the header has a [wrong count](PayloadReason::WrongCount)
    /// or if a sequence number would have more than 56 bits.
    pub fn operations(&self) -> impl Iterator<Item = Result<Operation<'a>, PayloadError>> + use<'a> {
        let (batch, mut next) = (*self, Some(Position::START));
        iter::from_fn(move || {
            let mut at = next.take()?;
            let step = batch.next_operation(&mut at).transpose()?;
            Some(step.map(|(operation, _)| {
                next = Some(at);
                operation
            }))
        })
    }

    /// Decodes the operation at a position and advances the position past it. Returns the operation
    /// and, if it is [counted](Operation::is_counted), its sequence number. Returns `None` at the
    /// end of the record.
    ///
    /// To decode all operations, use [`operations`](WriteBatch::operations). This method is for
    /// callers that cannot keep the record borrowed between calls.
    ///
    /// # Errors
    ///
    /// Returns the fault in the operation. At the end of the record, returns the fault in the
    /// header instead. The header's fault is [`WrongCount`](PayloadReason::WrongCount) if the
    /// stated count differs from the number of counted operations. LevelDB and RocksDB refuse such
    /// a batch. The fault is [`NonCanonical`](PayloadReason::NonCanonical) if a sequence number
    /// would have more than 56 bits.
    pub fn next_operation(&self, at: &mut Position) -> Result<Option<(Operation<'a>, Option<u64>)>, PayloadError> {
        let mut cursor = Cursor::new(self.record, at.offset);
        if cursor.is_at_end() {
            return self.check_count(at.count).map(|()| None);
        }
        let operation = Operation::decode(&mut cursor, self.engine)?;
        let sequence = operation.is_counted().then(|| self.sequence.saturating_add(at.count));
        at.offset = cursor.offset();
        at.count += u64::from(sequence.is_some());
        Ok(Some((operation, sequence)))
    }

    fn check_count(&self, found: u64) -> Result<(), PayloadError> {
        if found != u64::from(self.count) {
            let stated = self.count;
            return Err(PayloadError::new(8, 4, PayloadReason::WrongCount { stated, found }));
        }
        if !has_room(self.sequence, self.count) {
            return Err(PayloadError::new(0, 8, PayloadReason::NonCanonical));
        }
        Ok(())
    }

    /// Builds a record from the given operations, which also determine the count in its header.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownTag`](PayloadReason::UnknownTag) for an operation unknown to `engine`.
    /// Returns [`TooLarge`](PayloadReason::TooLarge) for a string of 2^32 bytes or more, for 2^32
    /// operations or more, or for a sequence number of more than 56 bits. Returns
    /// [`OutOfMemory`](PayloadReason::OutOfMemory) if there is not enough memory.
    pub fn encode<'b>(
        sequence: u64,
        operations: impl IntoIterator<Item = &'b Operation<'b>>,
        engine: Engine,
    ) -> Result<Vec<u8>, PayloadError> {
        let mut record = sequence.to_le_bytes().to_vec();
        record.extend([0; 4]);
        let mut count = 0_u32;
        for operation in operations {
            if operation.is_counted() {
                count = count.checked_add(1).ok_or_else(|| too_large(&record, 0))?;
            }
            operation.encode(&mut record, engine)?;
        }
        if !has_room(sequence, count) {
            return Err(too_large(&[], 8));
        }
        record[8..Self::HEADER_LEN].copy_from_slice(&count.to_le_bytes());
        Ok(record)
    }
}

/// The largest sequence number. Internal keys store sequence numbers in 56 bits.
const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// Checks whether `count` operations can be numbered consecutively from `sequence`.
fn has_room(sequence: u64, count: u32) -> bool {
    sequence.saturating_add(u64::from(count.saturating_sub(1))) <= SEQUENCE_MAX
}

/// A position between two operations in a batch record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    offset: usize,
    /// The number of counted operations before this position.
    count: u64,
}

impl Position {
    /// The position before the first operation.
    pub const START: Self = Position {
        offset: WriteBatch::HEADER_LEN,
        count: 0,
    };
}
