//! Many records in a few buffers, for callers where one value per record costs more than the record
//! itself.

use std::collections::TryReserveError;

use super::{Reader, Source};
use crate::copy::{append, try_reserve};
use crate::decode::{DataAt, Step};
use crate::error::Error;
use crate::format::BLOCK_LEN;
use crate::fragment::RUN_MAX;

/// Consecutive records: their bytes in one buffer, their offsets in another. This is the layout of
/// Arrow's `LargeBinary`.
///
/// [`Reader::record_batch`] fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    data: Vec<u8>,
    offsets: Vec<i64>,
    record_offsets: Vec<u64>,
    /// The index and the end of each record that is not immediately followed by the next one: a
    /// block trailer or a skipped region is between them.
    ends: Vec<(usize, u64)>,
    end_offset: u64,
}

impl Default for RecordBatch {
    fn default() -> Self {
        RecordBatch {
            data: Vec::new(),
            offsets: vec![0],
            record_offsets: Vec::new(),
            ends: Vec::new(),
            end_offset: 0,
        }
    }
}

impl RecordBatch {
    /// The number of records.
    pub fn len(&self) -> usize {
        self.record_offsets.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.record_offsets.is_empty()
    }

    /// The bytes of all records.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Where each record begins in [`data`](Self::data), followed by where the last one ends: one
    /// more entry than there are records.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The file offset of each record's first header.
    pub fn record_offsets(&self) -> &[u64] {
        &self.record_offsets
    }

    /// The file offset after the record with this index, counted from 0. The next record begins
    /// there, or after a block trailer or a skipped region.
    pub fn record_end_offset(&self, index: usize) -> Option<u64> {
        let next = index.checked_add(1)?;
        if next == self.len() {
            return Some(self.end_offset);
        }
        let next = *self.record_offsets.get(next)?;
        let end = self.ends.binary_search_by_key(&index, |&(index, _)| index);
        Some(end.map_or(next, |at| self.ends[at].1))
    }

    /// The file offset after the last record: `Reader::seek` there resumes after it. 0 if there is
    /// no record.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// The record with this index, counted from 0.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (&begin, &end) = self.offsets.get(index).zip(self.offsets.get(index + 1))?;
        self.data.get(begin as usize..end as usize)
    }

    /// The records, in order.
    ///
    /// ```
    /// use cordwood_log::read::RecordBatch;
    /// let mut batch = RecordBatch::default();
    /// batch.push(b"one", 0, 10)?;
    /// batch.push(b"", 10, 17)?;
    /// assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"one"[..], b""]);
    /// # Ok::<(), std::collections::TryReserveError>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator {
        self.offsets
            .windows(2)
            .map(|ends| &self.data[ends[0] as usize..ends[1] as usize])
    }

    /// Whether it contains `target_len` bytes of data, or so many records that their offsets alone
    /// take as much memory; up to 65,536 records are always allowed.
    #[inline]
    pub fn is_full(&self, target_len: usize) -> bool {
        self.data.len() >= target_len || self.len() >= count_max(target_len)
    }

    /// Removes all records. The memory is kept for the next ones.
    pub fn clear(&mut self) {
        self.data.clear();
        self.offsets.truncate(1);
        self.record_offsets.clear();
        self.ends.clear();
        self.end_offset = 0;
    }

    /// Bytes of memory reserved for data.
    pub fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Adds a record that spans `offset` to `end_offset` in a file.
    ///
    /// # Errors
    ///
    /// There is not enough memory. Nothing was added.
    pub fn push(&mut self, record: &[u8], offset: u64, end_offset: u64) -> Result<(), TryReserveError> {
        self.reserve(1, record.len())?;
        self.keep_end(offset);
        self.add(record, offset, end_offset);
        Ok(())
    }

    /// Keeps the end of the last record if the next one, which begins at `offset`, does not begin
    /// there. There must be room for it.
    #[inline]
    fn keep_end(&mut self, offset: u64) {
        if let Some(last) = self.len().checked_sub(1)
            && self.end_offset != offset
        {
            self.ends.push((last, self.end_offset));
        }
    }

    /// Adds a record for which there is room.
    #[inline]
    fn add(&mut self, record: &[u8], offset: u64, end_offset: u64) {
        append(&mut self.data, record);
        self.end_record(offset, end_offset);
    }

    /// Ends a record whose bytes have been appended.
    #[inline]
    fn end_record(&mut self, offset: u64, end_offset: u64) {
        // A buffer is never longer than i64::MAX.
        self.offsets.push(self.data.len() as i64);
        self.record_offsets.push(offset);
        self.end_offset = end_offset;
    }

    /// Makes room for `count` more records of `len` bytes in total, the first of which need not
    /// immediately follow the last one in the batch.
    fn reserve(&mut self, count: usize, len: usize) -> Result<(), TryReserveError> {
        self.offsets.try_reserve(count)?;
        self.record_offsets.try_reserve(count)?;
        self.ends.try_reserve(1)?;
        try_reserve(&mut self.data, len)
    }
}

/// The number of records that fill a record batch, however short they are. Each takes 16 bytes of
/// memory in addition to its data.
const COUNT_MAX: usize = 1 << 16;

fn count_max(target_len: usize) -> usize {
    COUNT_MAX.max(target_len / 16)
}

impl<S: Source> Reader<S> {
    /// Adds records to `batch` until it [is full](RecordBatch::is_full) or the log ends; the last
    /// record may make it exceed `target_len`. Returns whether any were added. Regions between the
    /// records are skipped.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// use cordwood_log::read::RecordBatch;
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// let mut batch = RecordBatch::default();
    /// while reader.record_batch(&mut batch, 1 << 20)? {
    ///     assert_eq!((batch.data(), batch.offsets(), batch.record_offsets()), (&b"foofoofoo"[..], &[0, 3, 6, 9][..], &[0, 10, 20][..]));
    ///     batch.clear();
    /// }
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`next_event`](Reader::next_event); the records before it are in `batch`. If there is not
    /// enough memory for a record, a further call begins with that record.
    pub fn record_batch(&mut self, batch: &mut RecordBatch, target_len: usize) -> Result<bool, Error> {
        let len_before = batch.len();
        loop {
            match self.record_batch_buffered(batch, target_len)? {
                Step::Record(_) | Step::End(_) => return Ok(batch.len() > len_before),
                Step::NeedMore => self.fill()?,
                Step::Skipped(_) => {}
            }
        }
    }

    /// Like [`record_batch`](Self::record_batch), but without I/O: returns the first step that is
    /// not a record, or the record that filled `batch`, which is the last in it.
    ///
    /// # Errors
    ///
    /// As [`record_batch`](Self::record_batch).
    #[doc(hidden)]
    pub fn record_batch_buffered(&mut self, batch: &mut RecordBatch, target_len: usize) -> Result<Step, Error> {
        // Reserves for all records of a run at once: they are in one block.
        if batch.reserve(RUN_MAX, BLOCK_LEN).is_err() {
            return Err(self.out_of_memory());
        }
        // Another caller may have taken records between those in the batch and the rest of a run.
        if !batch.is_empty()
            && let Some(span) = self.next_found()
        {
            batch.keep_end(span.offset);
            self.put_back(span);
        }
        loop {
            let span = match self.next_found() {
                Some(span) => span,
                None => match self.step_buffered()? {
                    Step::Record(span) => {
                        if batch
                            .reserve(1 + RUN_MAX, self.data_len(span) as usize + BLOCK_LEN)
                            .is_err()
                        {
                            self.put_back(span);
                            return Err(self.out_of_memory());
                        }
                        // Only here: the other records of a run are adjacent.
                        batch.keep_end(span.offset);
                        span
                    }
                    other => return Ok(other),
                },
            };
            if span.data_at == DataAt::Parts {
                self.parts(span).for_each(|part| append(&mut batch.data, part));
                batch.end_record(span.offset, span.end_offset);
            } else {
                batch.add(self.data(span), span.offset, span.end_offset);
            }
            if batch.is_full(target_len) {
                return Ok(Step::Record(span));
            }
        }
    }
}
