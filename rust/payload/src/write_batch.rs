//! Decodes and builds the record of a write-ahead log, which is a batch of operations.

use super::error::{PayloadError, PayloadReason};
use super::operation::{Engine, Operation};
use super::wire::{Cursor, too_large};

/// The record of a write-ahead log of LevelDB, RocksDB or Pebble. Its operations take effect
/// together.
///
/// The record starts with 12 bytes: the sequence number as a fixed64 and the count as a fixed32
/// (`db/write_batch.cc` in LevelDB and RocksDB, `batchrepr/reader.go` in Pebble). The operations
/// follow. [`operations`](WriteBatch::operations) reads them lazily.
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
    /// The length of the header in bytes, which is the offset of the first operation in the record.
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

    /// Returns the sequence number of the first operation. Each operation that
    /// [counts](Operation::is_counted) has the next number.
    ///
    /// RocksDB's write policies `WritePrepared` and `WriteUnprepared` give the same number to all
    /// operations of a batch.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the number of [counted](Operation::is_counted) operations that the header states.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the engine whose tags are used to read the batch.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns the operations, in order.
    pub fn operations(&self) -> Operations<'a> {
        Operations {
            batch: *self,
            offset: Self::HEADER_LEN,
            found: 0,
        }
    }

    /// Decodes the operation at an offset in the record. Returns it with the offset after it, or
    /// `None` if the record ends there.
    ///
    /// [`operations`](WriteBatch::operations) does this for all operations. This method is for
    /// callers that cannot keep a borrow of the record between steps.
    ///
    /// # Errors
    ///
    /// Fails if there is no operation at `offset`.
    pub fn operation_at(&self, offset: usize) -> Result<Option<(Operation<'a>, usize)>, PayloadError> {
        let mut cursor = Cursor::new(self.record, offset);
        if cursor.is_at_end() {
            return Ok(None);
        }
        let operation = Operation::decode(&mut cursor, self.engine)?;
        Ok(Some((operation, cursor.offset())))
    }

    /// Makes the check at the end of the record: compares the count in the header with `found`, the
    /// number of counted operations found, and checks that all of them have a sequence number.
    ///
    /// # Errors
    ///
    /// Returns [`WrongCount`](PayloadReason::WrongCount) if the counts differ. LevelDB and RocksDB
    /// then refuse the batch. Returns [`NonCanonical`](PayloadReason::NonCanonical) if a sequence
    /// number would have more than 56 bits.
    pub fn check_count(&self, found: u64) -> Result<(), PayloadError> {
        if found != u64::from(self.count) {
            let stated = self.count;
            return Err(PayloadError::new(8, 4, PayloadReason::WrongCount { stated, found }));
        }
        if !has_room(self.sequence, self.count) {
            return Err(PayloadError::new(0, 8, PayloadReason::NonCanonical));
        }
        Ok(())
    }

    /// Builds the record with these operations. The count is derived from them.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownTag`](PayloadReason::UnknownTag) for an operation that `engine` does not
    /// know. Returns [`TooLarge`](PayloadReason::TooLarge) for a string of 2^32 bytes or more, for
    /// 2^32 operations or more, or for a sequence number of more than 56 bits. Returns
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

/// The last sequence number. Internal keys have 56 bits for it.
const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// Checks whether this number of operations can all have a sequence number, starting with this one.
fn has_room(sequence: u64, count: u32) -> bool {
    sequence.saturating_add(u64::from(count.saturating_sub(1))) <= SEQUENCE_MAX
}

/// The operations of a batch. Iteration ends at the first error. A [wrong
/// count](PayloadReason::WrongCount) is an error after the last operation, and so are sequence
/// numbers of more than 56 bits.
#[derive(Debug, Clone)]
pub struct Operations<'a> {
    batch: WriteBatch<'a>,
    offset: usize,
    found: u64,
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The iteration has reached the end or an error.
        if self.offset == usize::MAX {
            return None;
        }
        match self.batch.operation_at(self.offset) {
            Ok(Some((operation, end_offset))) => {
                self.offset = end_offset;
                self.found += u64::from(operation.is_counted());
                Some(Ok(operation))
            }
            Ok(None) => {
                self.offset = usize::MAX;
                self.batch.check_count(self.found).err().map(Err)
            }
            Err(error) => {
                self.offset = usize::MAX;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Operations<'_> {}
