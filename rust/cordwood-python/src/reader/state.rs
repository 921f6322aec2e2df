//! The state of a `Reader`, and what has been found in the log but not yet returned.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cordwood::ReadOptions;
use cordwood::codec::{DataAt, RecordSpan, Step};
use cordwood::damage::Severity;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch_pool::Pool;
use crate::buffer::{bytes_of_parts, new_bytes};
use crate::error::{check_signals, no_memory};
use crate::log::Logged;
use crate::outcome::Outcome;
use crate::read_ahead::{Found, ReadAhead, Reading, SharedReadAhead, StopThreadsOnDrop, batch_count_max};
use crate::record::Record;
use crate::skipped_region::Listed;
use crate::source::{self, Input, Referent, SourceReader};

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each reader, and most are open"
)]
pub(crate) enum State {
    Open(Open),
    /// The skipped regions stay readable after `close`.
    Closed {
        skipped: Listed,
        outcome: Outcome,
    },
}

impl State {
    /// Closes the reader, and returns what is to be dropped if it was open.
    pub(crate) fn close(&mut self) -> Option<Box<Open>> {
        let closed = match self {
            State::Open(open) => State::Closed {
                outcome: open.outcome(),
                skipped: std::mem::take(&mut open.skipped),
            },
            State::Closed { .. } => return None,
        };
        match std::mem::replace(self, closed) {
            State::Open(open) => Some(Box::new(open)),
            State::Closed { .. } => None,
        }
    }
}

pub(crate) struct Open {
    pub(crate) reader: SourceReader,
    pub(crate) position: u64,
    pub(crate) skipped: Listed,
    pub(crate) end: Option<cordwood::End>,
    /// The event that ended the last batch, delivered by the next step, since there were records to
    /// return first.
    pub(crate) met: Option<Next>,
    /// What comes after the records, if `met` is [`Next::Made`].
    pub(crate) then: Option<Next>,
    /// For reading in several threads, if the source is a file or memory of known length.
    pub(crate) source: Option<Box<dyn Input>>,
    pub(crate) referent: Option<Referent>,
    pub(crate) options: ReadOptions,
    /// Where `seek` last went: nothing after that offset belongs to a range before it.
    pub(crate) sought: Option<u64>,
    pub(crate) logged: Logged,
    /// The position before the last step for which the interpreter was released. Initially one that
    /// is not near any other, since the first step may have to read.
    pub(crate) released_at: u64,
    /// While a record batch is being filled: where its records begin after damage in their block.
    pub(crate) salvaged: Option<Vec<Range<u64>>>,
    /// Ends the threads that read ahead when this is dropped.
    pub(crate) read_ahead: StopThreadsOnDrop,
}

/// What `record_batches` keeps from one batch to the next.
pub(crate) struct BatchState {
    pub(crate) target_len: usize,
    pub(crate) threads: NonZeroUsize,
    pub(crate) pool: Arc<Pool>,
    /// Locked only while the reader is locked.
    pub(crate) read_ahead: SharedReadAhead,
}

impl BatchState {
    pub(crate) fn new(target_len: usize, threads: NonZeroUsize) -> Self {
        BatchState {
            target_len,
            threads,
            pool: Arc::new(Pool::new(batch_count_max(threads, target_len))),
            read_ahead: Arc::new(Mutex::new(ReadAhead::new(threads))),
        }
    }
}

/// Records that were made but not returned: an interrupt came first, or there was not enough memory
/// for their container.
pub(crate) type Made = VecDeque<Record>;

/// A record batch that was filled but not returned.
pub(crate) struct Held {
    batch: cordwood::read::RecordBatch,
    /// The index of the next record.
    index: usize,
    /// How far the log was read, including what was skipped after the last record.
    read_to: u64,
    /// Where records begin after damage in their block.
    salvaged: Vec<Range<u64>>,
}

impl Held {
    fn next(&self) -> Option<(&[u8], u64, u64)> {
        let offset = *self.batch.record_offsets().get(self.index)?;
        Some((
            self.batch.get(self.index)?,
            offset,
            self.batch.record_end_offset(self.index)?,
        ))
    }
}

/// What comes next in the log.
pub(crate) enum Next {
    Record(RecordSpan),
    /// At least one record.
    Held(Box<Held>),
    /// At least one record. [`Open::then`] comes after them.
    Made(Made),
    Skipped(cordwood::damage::SkippedRegion),
    Failed(cordwood::Error),
    /// An exception from a signal handler, or a `MemoryError`.
    Raised(PyErr),
    /// Reading ahead has moved the position ahead of the decoder: the reader has to seek there first.
    Elsewhere,
    End,
}

impl Open {
    /// How reading ended, or that it has not yet.
    pub(crate) fn outcome(&self) -> Outcome {
        let zeros = self.reader.file_len().and_then(|len| self.skipped.zeros_before(len));
        Outcome::at(self.position, self.end, zeros)
    }

    /// The next record, if it has already been found.
    #[inline]
    pub(crate) fn next_found(&mut self) -> Option<RecordSpan> {
        if self.met.is_some() {
            None
        } else {
            self.reader.next_found()
        }
    }

    /// Keeps `records`, which could not be returned, for the next step.
    pub(crate) fn put_back(&mut self, records: Made) {
        let Some(first) = records.front() else { return };
        self.position = first.offset;
        if let Some(Next::Made(rest)) = &mut self.met {
            // They were taken from its front, so it has room for them.
            records.into_iter().rev().for_each(|record| rest.push_front(record));
        } else {
            self.then = self.met.take();
            self.met = Some(Next::Made(records));
        }
    }

    /// Keeps what is left of some records once the first of them have been returned.
    fn keep_rest(&mut self, records: Made) {
        self.met = if records.is_empty() {
            self.then.take()
        } else {
            Some(Next::Made(records))
        };
    }

    /// Keeps a record batch, which could not be returned, for the next step.
    fn hold(&mut self, records: cordwood::read::RecordBatch) {
        if let Some(&offset) = records.record_offsets().first() {
            self.met = Some(Next::Held(Box::new(Held {
                batch: records,
                index: 0,
                read_to: self.position,
                salvaged: self.salvaged.take().unwrap_or_default(),
            })));
            self.position = offset;
        }
    }

    /// Finds what comes next, if nothing more has been found yet: reads on, with the interpreter
    /// released except for short steps. What is found does not yet count as returned.
    pub(crate) fn look(&mut self, py: Python<'_>) -> Next {
        match self.met.take() {
            Some(Next::Elsewhere) => {
                if let Err(failed) = self.come_here(py) {
                    return failed;
                }
            }
            Some(met) => return met,
            None => {}
        }
        while self.end.is_none() {
            let step = match self.short_step() {
                Ok(Step::NeedMore) => py.detach(|| self.without_python(SourceReader::step_buffered)),
                step => step,
            };
            match step {
                Ok(Step::Record(span)) => return Next::Record(span),
                Ok(Step::Skipped(region)) if self.logged.only_counts(region) => self.skip(region),
                Ok(Step::Skipped(region)) => return Next::Skipped(region),
                Ok(Step::NeedMore) => {
                    if let Err(error) = check_signals(py) {
                        return Next::Raised(error);
                    }
                }
                Ok(Step::End(end)) => {
                    self.end = Some(end);
                    self.position = end.offset();
                }
                Err(error) => return Next::Failed(error),
            }
        }
        Next::End
    }

    /// Takes the next step without releasing the interpreter, if the last step for which it was
    /// released is less than 4 KiB before this one. Where every second record is damaged, releasing
    /// it for each would take a quarter of the time. Returns [`Step::NeedMore`] if the interpreter
    /// has to be released: otherwise, for a read, and for a compressed record, which may be as long
    /// as the limit allows.
    fn short_step(&mut self) -> Result<Step, cordwood::Error> {
        const NEAR_LEN: u64 = 1 << 12;
        let is_near = self.position.wrapping_sub(self.released_at) < NEAR_LEN;
        if is_near && self.reader.info().compression.is_none() {
            self.reader.step_buffered()
        } else {
            Ok(Step::NeedMore)
        }
    }

    /// Repeats `step`, which does no I/O, until there is something to report. Regions that are not
    /// logged are only counted here: they may be as short as a header.
    ///
    /// Returns [`Step::NeedMore`] after one read, or after many regions: a long part without a
    /// record must not delay Ctrl-C.
    fn without_python(
        &mut self,
        mut step: impl FnMut(&mut SourceReader) -> Result<Step, cordwood::Error>,
    ) -> Result<Step, cordwood::Error> {
        const REGION_COUNT_MAX: u32 = 1 << 12;
        let position = self.position;
        for _ in 0..REGION_COUNT_MAX {
            match step(&mut self.reader)? {
                Step::NeedMore => {
                    self.reader.fill()?;
                    break;
                }
                Step::Skipped(region) if self.logged.only_counts(region) => {
                    self.skip(region);
                    self.note_salvaged();
                }
                step => {
                    self.released_at = position;
                    return Ok(step);
                }
            }
        }
        Ok(Step::NeedMore)
    }

    /// Notes where records of the batch being filled begin after damage: a part of one block.
    fn note_salvaged(&mut self) {
        let Some(parts) = &mut self.salvaged else { return };
        let part = self.reader.salvaged();
        // After more damage in the same block, the part begins later and has the same end.
        if !part.is_empty() && parts.last().is_none_or(|last| last.end != part.end) {
            parts.push(part);
        }
    }

    /// Seeks to the position to which threads have read ahead.
    fn come_here(&mut self, py: Python<'_>) -> Result<(), Next> {
        let position = self.position;
        let moved = py.detach(|| self.reader.seek(position));
        moved.map_err(|error| {
            self.met = Some(Next::Elsewhere);
            Next::Failed(error)
        })
    }

    /// [`fill`](Self::fill) for `record_batches`, with records read ahead where possible.
    pub(crate) fn fill_with_threads(
        &mut self,
        py: Python<'_>,
        batch: &mut cordwood::read::RecordBatch,
        batches: &BatchState,
    ) -> Option<Next> {
        if batches.threads == NonZeroUsize::MIN {
            return self.fill(py, batch, batches.target_len);
        }
        if !self.read_ahead.is_of(&batches.read_ahead) {
            // Ends the threads of another iterator.
            self.read_ahead = StopThreadsOnDrop::new(&batches.read_ahead);
        }
        let mut read_ahead = batches.read_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if self.options.dialect.is_none() {
            match py.detach(|| self.reader.format()) {
                Ok(format) => self.options = self.options.clone().with_format(format),
                Err(error) => return Some(Next::Failed(error)),
            }
        }
        let found = match &self.source {
            // Nothing that was found earlier is waiting to be returned.
            Some(source) if self.end.is_none() && matches!(self.met, None | Some(Next::Elsewhere)) => {
                let reading = Reading {
                    source: source.as_ref(),
                    options: &self.options,
                    position: self.position,
                    begins_range: self.sought.is_none() && self.position == self.options.start,
                    pool: &batches.pool,
                    target_len: batches.target_len,
                };
                read_ahead.next(py, &reading)
            }
            _ => Ok(None),
        };
        match found {
            Ok(Some(Found::RecordBatch(found))) => {
                self.position = found.end_offset();
                self.met = Some(Next::Elsewhere);
                batches.pool.put(std::mem::replace(batch, found));
                None
            }
            Ok(Some(Found::Skipped(region))) => {
                self.met = Some(Next::Elsewhere);
                Some(Next::Skipped(region))
            }
            Ok(Some(Found::Failed(error))) => {
                self.met = Some(Next::Elsewhere);
                Some(Next::Failed(error))
            }
            Ok(Some(Found::Rest(offset))) => {
                self.position = offset;
                self.met = Some(Next::Elsewhere);
                self.fill(py, batch, batches.target_len)
            }
            Ok(None) => self.fill(py, batch, batches.target_len),
            Err(error) => Some(Next::Raised(error)),
        }
    }

    /// Adds the next records to `batch`, with the interpreter released, until it contains `len_max`
    /// bytes or something else comes, which is returned if there is no record before it.
    fn fill(&mut self, py: Python<'_>, batch: &mut cordwood::read::RecordBatch, len_max: usize) -> Option<Next> {
        self.salvaged = Some(vec![self.reader.salvaged()]);
        let stopped_by = self.fill_up(py, batch, len_max);
        self.salvaged = None;
        stopped_by
    }

    fn fill_up(&mut self, py: Python<'_>, batch: &mut cordwood::read::RecordBatch, len_max: usize) -> Option<Next> {
        let stopped_by = loop {
            match self.met.take() {
                // Left over from `batches`.
                Some(Next::Record(span)) => self.reader.put_back(span),
                Some(Next::Made(mut records)) => {
                    while let Some(record) = records.front() {
                        let data = record.data.as_bytes(py);
                        if batch.is_full(len_max) || batch.push(data, record.offset, record.end_offset).is_err() {
                            break;
                        }
                        records.pop_front();
                    }
                    let is_stopped = !records.is_empty();
                    self.keep_rest(records);
                    if is_stopped && batch.is_empty() {
                        return Some(Next::Raised(no_memory()));
                    }
                    if is_stopped || batch.is_full(len_max) {
                        self.position = batch.end_offset();
                        return None;
                    }
                }
                Some(Next::Held(mut held)) => {
                    self.salvaged.get_or_insert_default().extend_from_slice(&held.salvaged);
                    let read_to = held.read_to;
                    while let Some((record, offset, end_offset)) = held.next() {
                        if batch.is_full(len_max) || batch.push(record, offset, end_offset).is_err() {
                            break;
                        }
                        held.index += 1;
                    }
                    if held.next().is_some() {
                        self.met = Some(Next::Held(held));
                        if batch.is_empty() {
                            return Some(Next::Raised(no_memory()));
                        }
                        self.position = batch.end_offset();
                        return None;
                    }
                    self.position = read_to.max(batch.end_offset());
                    if batch.is_full(len_max) {
                        return None;
                    }
                }
                Some(Next::Elsewhere) => {
                    if let Err(failed) = self.come_here(py) {
                        break failed;
                    }
                }
                Some(other) => break other,
                None => {}
            }
            if self.end.is_some() {
                break Next::End;
            }
            let step = py.detach(|| self.without_python(|reader| reader.record_batch_buffered(batch, len_max)));
            match step {
                Ok(Step::Record(span)) => {
                    self.position = span.end_offset;
                    return None;
                }
                Ok(Step::Skipped(region)) => break Next::Skipped(region),
                Ok(Step::NeedMore) => {
                    if let Err(error) = check_signals(py) {
                        break Next::Raised(error);
                    }
                }
                Ok(Step::End(end)) => {
                    self.end = Some(end);
                    self.position = end.offset();
                }
                Err(error) => break Next::Failed(error),
            }
        };
        if batch.is_empty() {
            return Some(stopped_by);
        }
        if is_interrupt(py, &stopped_by) {
            self.hold(std::mem::take(batch));
            return Some(stopped_by);
        }
        // Regions skipped after the last record have already advanced the position.
        self.position = self.position.max(batch.end_offset());
        self.met = Some(stopped_by);
        None
    }

    /// The bytes of a record, copied once even if they are in several fragments in the window.
    /// `None`, with an exception set, if there is not enough memory.
    #[inline(always)]
    pub(crate) fn bytes<'py>(&self, py: Python<'py>, span: RecordSpan) -> Option<Bound<'py, PyBytes>> {
        if span.data_at == DataAt::Parts {
            bytes_of_parts(py, self.reader.parts(span))
        } else {
            new_bytes(py, self.reader.data(span))
        }
    }

    /// Returns a record. `None`, with an exception set, if there is not enough memory: then the
    /// next step finds the same record.
    #[inline(always)]
    pub(crate) fn take(&mut self, py: Python<'_>, span: RecordSpan) -> Option<Py<PyBytes>> {
        match self.bytes(py, span) {
            Some(bytes) => {
                self.position = span.end_offset;
                Some(bytes.unbind())
            }
            None => {
                self.reader.put_back(span);
                None
            }
        }
    }

    /// Returns the next record, or whatever else comes next.
    pub(crate) fn hand_out(&mut self, py: Python<'_>, next: Next) -> Result<Record, Next> {
        match next {
            Next::Record(span) => match self.take(py, span) {
                Some(data) => Ok(record_of(span, data)),
                None => Err(Next::Raised(PyErr::fetch(py))),
            },
            Next::Made(mut records) => {
                let Some(record) = records.pop_front() else {
                    return Err(Next::Elsewhere);
                };
                self.position = record.end_offset;
                self.keep_rest(records);
                Ok(record)
            }
            Next::Held(mut held) => {
                let Some((record, offset, end_offset)) = held.next() else {
                    return Err(Next::Elsewhere);
                };
                let Some(data) = new_bytes(py, record) else {
                    self.met = Some(Next::Held(held));
                    return Err(Next::Raised(PyErr::fetch(py)));
                };
                held.index += 1;
                let salvaged = held.salvaged.iter().any(|part| part.contains(&offset));
                if held.next().is_some() {
                    self.position = end_offset;
                    self.met = Some(Next::Held(held));
                } else {
                    self.position = held.read_to.max(end_offset);
                }
                Ok(Record {
                    offset,
                    end_offset,
                    data: data.unbind(),
                    salvaged,
                })
            }
            other => Err(other),
        }
    }

    /// The number of bytes of the next record; `None` if something else comes next.
    pub(crate) fn len_of(&self, py: Python<'_>, next: &Next) -> Option<usize> {
        match next {
            Next::Made(records) => records.front().map(|record| record.data.as_bytes(py).len()),
            Next::Record(span) => Some(self.reader.data_len(*span) as usize),
            Next::Held(held) => held.next().map(|(record, ..)| record.len()),
            _ => None,
        }
    }

    pub(crate) fn skip(&mut self, region: cordwood::damage::SkippedRegion) {
        if region.reason.severity() != Severity::TornTail {
            self.position = region.end;
        }
        self.skipped.add(region);
    }
}

#[inline]
pub(crate) fn record_of(span: RecordSpan, data: Py<PyBytes>) -> Record {
    Record {
        offset: span.offset,
        end_offset: span.end_offset,
        data,
        salvaged: span.is_salvaged,
    }
}

/// Whether this must be raised at once: Ctrl-C, or another exception from a signal handler.
/// Exceptions from a source may wait until the records before them have been returned.
pub(crate) fn is_interrupt(py: Python<'_>, next: &Next) -> bool {
    match next {
        Next::Raised(_) => true,
        Next::Failed(cordwood::Error::Io { source: error, .. }) => source::is_interrupt(py, error),
        _ => false,
    }
}
