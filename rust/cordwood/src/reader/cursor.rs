//! Access to findings that a reader has not returned yet. The caller decides when to take a record,
//! so no record is lost if the caller can't use it yet, for example because memory ran out.

use std::fmt;

use super::{Reader, RecordBatch, Source};
use crate::copy::append;
use crate::damage::SkippedRegion;
use crate::decode::{DataAt, Decoder, End, Pieces, RecordSpan, Step, Window};
use crate::error::{Error, Refused, refusal};
use crate::format::BLOCK_LEN;
use crate::fragment::RUN_MAX;

/// The next finding in a log. See [`Reader::found`].
///
/// This enum is exhaustive, so a `match` on it accounts for every byte of the file.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// A record.
    Record(FoundRecord<'a>),
    /// Bytes that were not returned as a record, and the reason.
    Skipped(SkippedRegion),
    /// The error that [`Reader::advance`] will return.
    Failed(&'a Error),
    /// The end of the log.
    End(End),
}

/// A record that has been found but not taken yet. Its bytes are in the window, or in the decoder
/// if they had to be joined or decompressed.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct FoundRecord<'a> {
    /// The file offset of the first fragment's header.
    pub offset: u64,
    /// The file offset just past the last fragment's payload.
    pub end_offset: u64,
    /// Whether the record starts after damage in the same block. See
    /// [`RecordSpan::is_salvaged`](crate::codec::RecordSpan::is_salvaged).
    pub is_salvaged: bool,
    data_at: DataAt,
    decoder: &'a Decoder,
    window: Window<'a>,
}

impl fmt::Debug for FoundRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundRecord")
            .field("offset", &self.offset)
            .field("end_offset", &self.end_offset)
            .field("len", &self.len())
            .field("is_salvaged", &self.is_salvaged)
            .finish_non_exhaustive()
    }
}

impl<'a> FoundRecord<'a> {
    #[inline]
    fn span(&self) -> RecordSpan {
        RecordSpan {
            offset: self.offset,
            end_offset: self.end_offset,
            data_at: self.data_at,
            is_salvaged: self.is_salvaged,
        }
    }

    /// Returns the number of bytes in the record.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty record is a record like any other")]
    pub fn len(&self) -> u64 {
        self.decoder.data_len(self.span())
    }

    /// Returns the bytes of the record if they are contiguous. Otherwise, use
    /// [`pieces`](Self::pieces).
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        self.decoder.data_in_one(self.window, self.span())
    }

    /// Returns the bytes of the record as slices, in order. Most records are returned as a single
    /// slice. If a record has several fragments and all of them are in memory, there is one slice
    /// per fragment, so a caller that copies the bytes doesn't have to join the fragments first.
    #[inline]
    pub fn pieces(&self) -> Pieces<'a> {
        self.decoder.pieces(self.window, self.span())
    }
}

impl<S: Source> Reader<S> {
    /// Returns the next finding, if there is one. [`find`](Self::find) and
    /// [`read_more`](Self::read_more) look for a finding, and [`advance`](Self::advance) takes it.
    /// Until `advance` is called, this function returns the same finding.
    ///
    /// Use this function if your program has its own way of waiting for the source, or if
    /// processing a record can fail. For other programs, [`next_event`](Self::next_event) is
    /// simpler. You can mix calls to the two functions. A record is found as soon as the source has
    /// returned the record's last byte; no further bytes are read.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// use cordwood_log::read::Found;
    ///
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// let mut records: Vec<Vec<u8>> = Vec::new();
    /// loop {
    ///     match reader.found() {
    ///         Some(Found::Record(record)) => {
    ///             let mut bytes = Vec::new();
    ///             // If there is not enough memory, the record is not lost.
    ///             bytes.try_reserve_exact(record.len() as usize)?;
    ///             record.pieces().for_each(|piece| bytes.extend_from_slice(piece));
    ///             records.push(bytes);
    ///         }
    ///         Some(Found::Skipped(region)) => eprintln!("skipped {region:?}"),
    ///         Some(Found::Failed(_)) => {}
    ///         Some(Found::End(_)) => break,
    ///         None => {
    ///             // Reading may take long: a program with an event loop would do it elsewhere.
    ///             if !reader.find() {
    ///                 reader.read_more();
    ///             }
    ///             continue;
    ///         }
    ///     }
    ///     reader.advance()?;
    /// }
    /// assert_eq!(records, [b"foo", b"foo"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn found(&self) -> Option<Found<'_>> {
        if let Some(span) = self.decoder.peek_of_several() {
            return Some(Found::Record(self.found_record(span)));
        }
        Some(match self.last.as_ref()? {
            Ok(Step::Record(span)) => Found::Record(self.found_record(*span)),
            Ok(Step::Skipped(region)) => Found::Skipped(*region),
            Ok(Step::End(end)) => Found::End(*end),
            Ok(Step::NeedMore) => return None,
            Err(error) => Found::Failed(error),
        })
    }

    #[inline(always)]
    fn found_record(&self, span: RecordSpan) -> FoundRecord<'_> {
        FoundRecord {
            offset: span.offset,
            end_offset: span.end_offset,
            is_salvaged: span.is_salvaged,
            data_at: span.data_at,
            decoder: &self.decoder,
            window: self.source.window(),
        }
    }

    /// If the next record [has been found](Self::found), passes it to `make` and returns the
    /// result. If `make` returns `None`, the record is not taken and remains the next one. Use this
    /// function if you look at each record only once.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    ///
    /// let mut reader = Reader::from_slice(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo", ReadOptions::default());
    /// assert!(reader.find());
    /// assert_eq!(reader.take_record(|_| None::<usize>), None);
    /// assert_eq!(reader.take_record(|record| Some(record.len())), Some(3));
    /// assert_eq!(reader.take_record(|record| Some(record.len())), None);
    /// ```
    // Records in a run, which are the most common, are handled separately, so that the compiler
    // knows where their bytes are.
    #[inline(always)]
    pub fn take_record<T>(&mut self, make: impl FnOnce(FoundRecord<'_>) -> Option<T>) -> Option<T> {
        let Some(span) = self.decoder.peek_of_run() else {
            return self.take_other(make);
        };
        let made = make(self.found_record(span))?;
        self.decoder.take_of_run(span);
        Some(made)
    }

    #[inline(never)]
    fn take_other<T>(&mut self, make: impl FnOnce(FoundRecord<'_>) -> Option<T>) -> Option<T> {
        if let Some(span) = self.decoder.peek_of_container() {
            let made = make(self.found_record(span))?;
            self.decoder.take_of_container(1);
            return Some(made);
        }
        let Some(Ok(Step::Record(span))) = self.last else {
            return None;
        };
        let made = make(self.found_record(span))?;
        self.last = None;
        Some(made)
    }

    /// Takes the finding that [`found`](Self::found) returns, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the finding if it is an error. See [`next_event`](Self::next_event) for the possible
    /// errors.
    pub fn advance(&mut self) -> Result<(), Error> {
        if self.decoder.next_of_several().is_some() {
            return Ok(());
        }
        self.last.take().map_or(Ok(()), |last| last.map(drop))
    }

    /// Looks for the next finding in the bytes read so far, unless one [already
    /// exists](Self::found). Returns whether there is one now. If the result is `false`, more bytes
    /// must be read. This function does not read the next bytes from the source. It does I/O in
    /// only two cases: to inspect the rest of a long file that does not start like a log, and to
    /// open the next file of a segmented log.
    pub fn find(&mut self) -> bool {
        if self.has_found() {
            return true;
        }
        match self.look_in_window() {
            Ok(Step::NeedMore) => return false,
            Ok(Step::Record(_)) if self.has_several() => {}
            last => self.last = Some(last),
        }
        true
    }

    #[inline]
    fn has_found(&self) -> bool {
        self.has_several() || self.last.is_some()
    }

    /// Returns whether the next record is one of several that the decoder found together.
    #[inline]
    fn has_several(&self) -> bool {
        self.decoder.peek_of_several().is_some()
    }

    /// Reads once from the source. Call this function after [`find`](Self::find) has returned
    /// `false`. If the read fails, the error becomes the next [finding](Self::found), and a later
    /// call tries again. Does nothing if something has already been found.
    pub fn read_more(&mut self) {
        if !self.has_found()
            && let Err(error) = self.fill()
        {
            self.last = Some(Err(error));
        }
    }

    /// Moves records to `batch` without reading from the source. Moves at least one record if any
    /// is available. Stops when the batch [is full](RecordBatch::is_full), when it
    /// [finds](Self::found) an event other than a record, or when more bytes must be read.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Io`](crate::ErrorKind::Io) with the kind
    /// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if there is not enough memory for the next
    /// record. That record is not lost and can still be found.
    pub fn move_found(&mut self, batch: &mut RecordBatch, target_len: usize) -> Result<(), Error> {
        let keeps_data = self.decoder.keeps_data();
        if keeps_data
            && batch.is_empty()
            && let Some(file_len) = self.file_len()
        {
            batch.start(target_len, file_len.saturating_sub(self.decoder.offset()));
        }
        let run_len = if keeps_data { BLOCK_LEN } else { 0 };
        loop {
            if let Some(span) = self.decoder.peek_of_run() {
                // Reserves room for all records in a run at once, because they are in one block.
                if batch.reserve(RUN_MAX, run_len).is_err() {
                    return Err(self.out_of_memory());
                }
                batch.keep_end(span.offset);
                while let Some(span) = self.decoder.next_of_run() {
                    if keeps_data {
                        batch.add(self.data(span), span.offset, span.end_offset);
                    } else {
                        batch.add_place(self.decoder.data_len(span), span);
                    }
                    if batch.is_full(target_len) {
                        return Ok(());
                    }
                }
            }
            if let Some(rest) = self.decoder.rest_of_container(self.source.window()) {
                let Ok(count) = batch.push_container(&rest, keeps_data, target_len) else {
                    return Err(self.out_of_memory());
                };
                self.decoder.take_of_container(count);
            } else if let Some(span) = self.decoder.peek_of_container() {
                // Salvaged records are moved one at a time.
                self.push_found(batch, span)?;
                self.decoder.take_of_container(1);
            } else if let Some(Ok(Step::Record(span))) = self.last {
                self.push_found(batch, span)?;
                self.last = None;
            } else if self.has_found() || !self.find() {
                return Ok(());
            } else {
                continue;
            }
            if batch.is_full(target_len) {
                return Ok(());
            }
        }
    }

    /// Copies a record to `batch`, but does not take it from the reader.
    fn push_found(&self, batch: &mut RecordBatch, span: RecordSpan) -> Result<(), Error> {
        let (len, keeps_data) = (self.decoder.data_len(span), self.decoder.keeps_data());
        if batch.reserve(1, if keeps_data { len as usize } else { 0 }).is_err() {
            return Err(self.out_of_memory());
        }
        batch.keep_end(span.offset);
        if keeps_data {
            let pieces = self.decoder.pieces(self.source.window(), span);
            pieces.for_each(|piece| append(&mut batch.data, piece));
        }
        batch.add_place(len, span);
        Ok(())
    }

    /// Returns the error for a record that does not fit in memory.
    #[cold]
    pub(crate) fn out_of_memory(&self) -> Error {
        refusal(Refused::OutOfMemory, self.path.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{OnCorruption, ReadOptions};
    use crate::dialect::Dialect;
    use crate::writer::{Writer, WriterOptions};

    /// A reader must move the same offsets and lengths to a batch whether or not it keeps the bytes
    /// of records.
    #[test]
    fn batch_offsets_are_the_same_with_or_without_record_bytes() {
        for dialect in [Dialect::LEVELDB, Dialect::PACKED] {
            let options = WriterOptions::default().with_dialect(Some(dialect));
            let mut writer = Writer::with_options(Vec::new(), options).expect("the options are valid");
            for number in 0..3000 {
                let len = if number % 700 == 5 { 70_000 } else { number % 50 };
                writer.append(&vec![number as u8; len]).expect("it is written");
            }
            let mut file = writer.finish().expect("it is written");
            file[80_000] ^= 1;
            let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
            let batches = [true, false].map(|keeps_data| {
                let mut reader = Reader::from_slice(&file, options.clone());
                reader.set_keeps_data(keeps_data);
                let mut batch = RecordBatch::default();
                while reader.record_batch(&mut batch, 1 << 16).expect("damage is skipped") {}
                batch
            });
            let [whole, places] = batches;
            assert!(whole.len() > 2000 && places.data().is_empty(), "{}", whole.len());
            // `assert_eq!` would print all offsets on failure.
            assert!(places.offsets() == whole.offsets());
            assert!(places.record_offsets() == whole.record_offsets());
            assert!(places.record_end_offsets() == whole.record_end_offsets());
            for index in 0..whole.len() {
                assert_eq!(Some(whole.record_end_offsets()[index]), whole.record_end_offset(index));
                assert_eq!(places.is_salvaged(index), whole.is_salvaged(index));
            }
            assert!((0..whole.len()).any(|index| whole.is_salvaged(index)));
        }
    }

    /// If the batch grew in steps, its records would be moved several times.
    #[test]
    fn a_batch_allocates_once_if_the_log_length_is_known() {
        let mut writer = Writer::new(Vec::new());
        writer.extend([[7; 100]; 5000]).expect("it is written");
        let file = writer.finish().expect("it is written");
        for (target_len, log_len) in [(1 << 20, file.len()), (200_000, 200_000)] {
            let mut reader = Reader::from_slice(&file, ReadOptions::default());
            let mut batch = RecordBatch::default();
            assert!(reader.record_batch(&mut batch, target_len).expect("a valid log"));
            assert_eq!(batch.data.capacity(), log_len + BLOCK_LEN);
        }
    }
}
