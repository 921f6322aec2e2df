//! Batches of records. A batch stores many records in a few buffers, because creating an object per
//! record can take longer than reading the record.

use std::collections::TryReserveError;

use super::{Found, Reader, Source};
use crate::copy::{append, try_reserve};
use crate::decode::{RecordSpan, Rest};
use crate::error::Error;
use crate::format::{BLOCK_LEN, HEADER_LEN};
use crate::fragment::RUN_MAX;

/// Consecutive records in the layout of Arrow's `LargeBinary`: one buffer with the bytes of all
/// records, and another with their offsets.
///
/// Use [`Reader::record_batch`] to fill a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    pub(super) data: Vec<u8>,
    offsets: Vec<i64>,
    record_offsets: Vec<u64>,
    /// The index and end offset of each record that is followed by a gap. The gap is a block
    /// trailer or a skipped region.
    ends: Vec<(usize, u64)>,
    /// The indices of the salvaged records.
    salvaged: Vec<usize>,
    end_offset: u64,
}

impl Default for RecordBatch {
    fn default() -> Self {
        RecordBatch {
            data: Vec::new(),
            offsets: vec![0],
            record_offsets: Vec::new(),
            ends: Vec::new(),
            salvaged: Vec::new(),
            end_offset: 0,
        }
    }
}

impl RecordBatch {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.record_offsets.len()
    }

    /// Returns whether the batch contains no records.
    pub fn is_empty(&self) -> bool {
        self.record_offsets.is_empty()
    }

    /// Returns the bytes of all records.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns where each record starts in [`data`](Self::data), followed by the end of the last
    /// record. There is one more entry than there are records.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Returns the file offset of each record's first header.
    pub fn record_offsets(&self) -> &[u64] {
        &self.record_offsets
    }

    /// Returns the file offset just past the record with the given index, counting from 0. The next
    /// record starts here, unless a block trailer or a skipped region comes first.
    pub fn record_end_offset(&self, index: usize) -> Option<u64> {
        let next = index.checked_add(1)?;
        if next == self.len() {
            return Some(self.end_offset);
        }
        let next = *self.record_offsets.get(next)?;
        let end = self.ends.binary_search_by_key(&index, |&(index, _)| index);
        Some(end.map_or(next, |at| self.ends[at].1))
    }

    /// Returns the [`record_end_offset`](Self::record_end_offset) of each record.
    ///
    /// ```
    /// use cordwood_log::read::RecordBatch;
    /// let mut batch = RecordBatch::default();
    /// batch.push(b"one", 0, 10)?;
    /// batch.push(b"two", 12, 22)?;
    /// assert_eq!(batch.record_end_offsets(), [10, 22]);
    /// # Ok::<(), std::collections::TryReserveError>(())
    /// ```
    pub fn record_end_offsets(&self) -> Vec<u64> {
        let mut ends = self.record_offsets.get(1..).unwrap_or_default().to_vec();
        ends.extend((!self.is_empty()).then_some(self.end_offset));
        for &(index, end) in &self.ends {
            ends[index] = end;
        }
        ends
    }

    /// Returns whether the record with the given index starts after damage in the same block. See
    /// [`RecordSpan::is_salvaged`](crate::codec::RecordSpan::is_salvaged).
    pub fn is_salvaged(&self, index: usize) -> bool {
        self.salvaged.binary_search(&index).is_ok()
    }

    /// Returns the file offset just past the last record, or 0 if the batch is empty. To resume
    /// after the batch, pass this offset to `Reader::seek`.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// Returns the record with the given index, counting from 0.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (&start, &end) = self.offsets.get(index).zip(self.offsets.get(index + 1))?;
        self.data.get(start as usize..end as usize)
    }

    /// Returns an iterator over the records, in order.
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

    /// Checks whether the batch is full. A batch is full once it contains `target_len` bytes of
    /// data. It is also full once it has at least 65,536 records and its offsets (two per record)
    /// take up `target_len` bytes of memory.
    #[inline]
    pub fn is_full(&self, target_len: usize) -> bool {
        self.data.len() >= target_len || self.len() >= count_max(target_len)
    }

    /// Removes all records, but keeps the allocated memory for later ones.
    pub fn clear(&mut self) {
        self.data.clear();
        self.offsets.truncate(1);
        self.record_offsets.clear();
        self.ends.clear();
        self.salvaged.clear();
        self.end_offset = 0;
    }

    /// Removes the first `count` records, or all records if the batch has fewer. Moves the
    /// remaining records to the front without allocating memory.
    ///
    /// ```
    /// use cordwood_log::read::RecordBatch;
    /// let mut batch = RecordBatch::default();
    /// batch.push(b"one", 0, 10)?;
    /// batch.push(b"two", 10, 20)?;
    /// batch.remove_first(1);
    /// assert_eq!((batch.get(0), batch.record_offsets(), batch.len()), (Some(&b"two"[..]), &[10][..], 1));
    /// # Ok::<(), std::collections::TryReserveError>(())
    /// ```
    pub fn remove_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if count >= self.len() {
            return self.clear();
        }
        let start = self.offsets[count];
        self.data.drain(..start as usize);
        self.offsets.drain(..count);
        self.offsets.iter_mut().for_each(|offset| *offset -= start);
        self.record_offsets.drain(..count);
        self.ends.retain(|&(index, _)| index >= count);
        self.ends.iter_mut().for_each(|(index, _)| *index -= count);
        self.salvaged.retain(|&index| index >= count);
        self.salvaged.iter_mut().for_each(|index| *index -= count);
    }

    /// Returns how many bytes of memory are reserved for data and offsets.
    pub fn capacity(&self) -> usize {
        self.data.capacity() + size_of::<u64>() * (self.offsets.capacity() + self.record_offsets.capacity())
    }

    /// Releases unused memory. Even a one-record batch has room for a whole block, so call this if
    /// you keep thousands of batches from short logs.
    ///
    /// ```
    /// use cordwood_log::read::RecordBatch;
    /// let mut batch = RecordBatch::default();
    /// batch.push(&[7; 1000], 0, 1007)?;
    /// batch.remove_first(1);
    /// batch.shrink_to_fit();
    /// assert!(batch.capacity() < 1000);
    /// # Ok::<(), std::collections::TryReserveError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.data.shrink_to_fit();
        self.offsets.shrink_to_fit();
        self.record_offsets.shrink_to_fit();
    }

    /// Adds a record spanning `offset` to `end_offset` in a file.
    ///
    /// # Errors
    ///
    /// Returns an error, without adding the record, if there is not enough memory.
    pub fn push(&mut self, record: &[u8], offset: u64, end_offset: u64) -> Result<(), TryReserveError> {
        self.reserve(1, record.len())?;
        self.keep_end(offset);
        self.add(record, offset, end_offset);
        Ok(())
    }

    /// Adds the remaining records of a container until [`is_full(target_len)`](Self::is_full)
    /// returns true. Also adds their bytes if `keeps_data` is true. Returns the number of records
    /// added, which is at least one. Fails without adding a record if there is not enough memory.
    pub(super) fn push_container(
        &mut self,
        rest: &Rest<'_>,
        keeps_data: bool,
        target_len: usize,
    ) -> Result<usize, TryReserveError> {
        let room = target_len.saturating_sub(self.data.len());
        let (&start, ends) = rest.offsets.split_first().unwrap_or((&0, &[]));
        let until_full = ends.partition_point(|&end| end - start < room) + 1;
        let count = until_full
            .min(count_max(target_len).saturating_sub(self.len()).max(1))
            .min(ends.len());
        let data_len = if keeps_data { rest.offsets[count] - start } else { 0 };
        let data = &rest.data[..data_len];
        self.reserve(count, data.len())?;
        self.keep_end(rest.offset);
        // A buffer is never longer than i64::MAX.
        let moved = self.offsets[self.len()] - start as i64;
        append(&mut self.data, data);
        self.offsets.extend(ends[..count].iter().map(|&end| moved + end as i64));
        self.record_offsets.extend(rest.offset..rest.offset + count as u64);
        self.end_offset = if count == ends.len() {
            rest.end_offset
        } else {
            rest.offset + count as u64
        };
        Ok(count)
    }

    /// Stores where the last record ends, unless the next one starts right there. `offset` is the
    /// start of the next record. The caller must already have reserved room for this entry.
    #[inline]
    pub(super) fn keep_end(&mut self, offset: u64) {
        if let Some(last) = self.len().checked_sub(1)
            && self.end_offset != offset
        {
            self.ends.push((last, self.end_offset));
        }
    }

    /// Adds a record, for which the caller must have reserved room.
    #[inline]
    pub(super) fn add(&mut self, record: &[u8], offset: u64, end_offset: u64) {
        append(&mut self.data, record);
        self.end_record(self.data.len(), offset, end_offset, false);
    }

    /// Adds the offsets and length of a record whose bytes have been either appended or left out.
    /// The caller must have reserved room for this entry.
    #[inline]
    pub(super) fn add_place(&mut self, len: u64, span: RecordSpan) {
        let data_len = self.offsets[self.len()] as usize + len as usize;
        self.end_record(data_len, span.offset, span.end_offset, span.is_salvaged);
    }

    /// Completes a record whose bytes have been appended. `data_len` is the length of the batch's
    /// data, including these bytes.
    #[inline]
    fn end_record(&mut self, data_len: usize, offset: u64, end_offset: u64, is_salvaged: bool) {
        if is_salvaged {
            self.salvaged.push(self.len());
        }
        // A buffer is never longer than i64::MAX.
        self.offsets.push(data_len as i64);
        self.record_offsets.push(offset);
        self.end_offset = end_offset;
    }

    /// Reserves memory for a batch that has no records yet and will contain `target_len` bytes.
    /// `log_len` is the length of the rest of the log. Without this call, or if the memory cannot
    /// be reserved, the batch grows in steps and copies its records each time.
    pub(super) fn start(&mut self, target_len: usize, log_len: u64) {
        let len = log_len.min(target_len.min(START_LEN_MAX) as u64) as usize;
        let count = count_max(len).min(len / HEADER_LEN) + RUN_MAX;
        let _ = self.data.try_reserve_exact(len + BLOCK_LEN);
        let _ = self.offsets.try_reserve_exact(count);
        let _ = self.record_offsets.try_reserve_exact(count);
    }

    /// Makes room for `count` more records with a total of `len` bytes. There may be a gap between
    /// the batch's last record and the first new one.
    pub(super) fn reserve(&mut self, count: usize, len: usize) -> Result<(), TryReserveError> {
        self.offsets.try_reserve(count)?;
        self.record_offsets.try_reserve(count)?;
        self.ends.try_reserve(1)?;
        self.salvaged.try_reserve(1)?;
        try_reserve(&mut self.data, len)
    }
}

/// The limit on a batch's record count is never lower than this, no matter how small `target_len`
/// is. Each record takes 16 bytes of memory in addition to its data.
const COUNT_MAX: usize = 1 << 16;

/// An empty batch reserves memory for at most this many bytes of data, plus one block. The part to
/// read may be much shorter than the file, so no more is reserved than a typical batch needs.
const START_LEN_MAX: usize = 1 << 20;

fn count_max(target_len: usize) -> usize {
    COUNT_MAX.max(target_len / 16)
}

impl<S: Source> Reader<S> {
    /// Adds records to `batch` until it [is full](RecordBatch::is_full) or the log ends, skipping
    /// any regions between them. The last record may take the batch past `target_len`. Returns
    /// whether any records were added.
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
    /// Returns the same errors as [`next_event`](Reader::next_event). The records before the error
    /// are already in `batch`. If there is not enough memory for a record, a later call starts with
    /// that record.
    pub fn record_batch(&mut self, batch: &mut RecordBatch, target_len: usize) -> Result<bool, Error> {
        let len_before = batch.len();
        loop {
            self.move_found(batch, target_len)?;
            if batch.len() > len_before && batch.is_full(target_len) {
                return Ok(true);
            }
            match self.found() {
                Some(Found::Record(_)) => {}
                Some(Found::End(_)) => return Ok(batch.len() > len_before),
                Some(Found::Skipped(_) | Found::Failed(_)) => self.advance()?,
                None => self.read_more(),
            }
        }
    }
}
