//! Uses several threads to read record batches in advance. Each thread reads one part of the file
//! at a time, and the batches are returned in the order of the parts.

use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use cordwood::damage::{Severity, SkippedRegion};
use cordwood::format::BLOCK_LEN;
use cordwood::parallel::{Next, Parts, Pipeline};
use cordwood::read::Found;
use cordwood::{Error, ErrorKind, ReadOptions};
use pyo3::prelude::*;

use crate::interpreter::imported;
use crate::interpreter::kept_exception::KeptException;
use crate::interpreter::python_code::PythonCode;
use crate::interpreter::released;
use crate::io::source::{Input, SourceReader, source_at};
use crate::memory::batch_pool::Pool;
use crate::values::error::{check_signals, check_signals_in_main_thread};

/// The minimum and maximum length of a part in bytes. Longer batches raise these limits. Longer
/// parts are faster to read but need more memory, because all the batches from several parts are in
/// memory at once.
const PART_LENS: RangeInclusive<u64> = *Parts::LENS.start()..=64 * BLOCK_LEN as u64;

/// The minimum `target_len` for reading in several threads. A shorter batch would still need enough
/// memory for a whole block.
const TARGET_LEN_MIN: usize = BLOCK_LEN;

/// Returns how many record batches of `target_len` bytes can be in use at the same time. A single
/// thread fills one batch while the previous one is in use. With several threads, the batches in
/// use are those of the parts that are being read or waiting to be taken, and those of two more
/// parts.
fn batch_count_max(threads: usize, target_len: usize) -> usize {
    match threads {
        1 => 2,
        threads => (threads + 3) * (*PART_LENS.end() as usize / target_len.max(TARGET_LEN_MIN) + 2),
    }
}

/// The settings for gathering records into batches.
#[derive(Clone)]
pub(crate) struct Batches {
    pub(crate) target_len: usize,
    pub(crate) threads: usize,
    pub(crate) pool: Arc<Pool>,
}

impl Batches {
    pub(crate) fn new(target_len: usize, threads: usize) -> Self {
        Batches {
            target_len,
            threads,
            pool: Arc::new(Pool::new(batch_count_max(threads, target_len))),
        }
    }
}

/// The reason a step returns no record.
pub(crate) enum Stop {
    Skipped(SkippedRegion),
    Failed(Error),
    /// An exception from a signal handler, or a `MemoryError`.
    Raised(PyErr),
    End,
}

/// Fails if a signal has arrived and its handler raises an exception, as the handler for Ctrl-C
/// does.
pub(super) fn check_for_interrupt(py: Option<Python<'_>>) -> Result<(), Stop> {
    match py {
        Some(py) => check_signals(py).map_err(Stop::Raised),
        None => check_signals_in_main_thread().map_err(|error| Stop::Failed(error.into())),
    }
}

/// How long to wait for a part before checking for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);

/// A finding from the threads. Findings are returned in order.
pub(super) enum Ahead {
    Records(cordwood::read::RecordBatch),
    Skipped(SkippedRegion),
    Failed(Error),
    /// The threads have finished. The core's reader takes over at this file offset.
    Rest(u64),
}

/// The findings in one part.
#[derive(Default)]
struct Part {
    found: Vec<Ahead>,
    /// The file offset where the thread stopped reading the part: the part's end, or the start of a
    /// torn tail. `None` if a read failed or there was not enough memory. Reading then continues
    /// where the last item of `found` ends.
    end_offset: Option<u64>,
    /// Whether the core's reader has to take over here. This is necessary after a torn tail,
    /// because the tail's extent depends on everything that follows. It is also necessary if a read
    /// failed or there was not enough memory, because the core's reader tries again.
    is_last: bool,
}

/// The threads' findings, starting at a cursor's position.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// The remaining findings of the part most recently taken from `pipeline`.
    found: VecDeque<Ahead>,
    /// The highest `end_offset` of the parts taken from `pipeline`. A block's trailer may lie
    /// between the last item of `found` and this offset.
    end_offset: Option<u64>,
    /// The cursor position where `found` and `pipeline` continue.
    position: Option<u64>,
    /// The pool that the threads take their batches from.
    pool: Option<Arc<Pool>>,
    /// `None` if the core's reader reads the remaining data.
    pipeline: Option<Pipeline<Part>>,
    /// Whether the threads may need the interpreter.
    may_run_python: bool,
}

/// The data that the threads read.
pub(super) struct Reading<'a> {
    pub(super) source: &'a dyn Input,
    /// The options, including the dialect.
    pub(super) options: &'a ReadOptions,
    /// The cursor's position.
    pub(super) position: u64,
    /// Whether `position` is the start of the range in the options. Fragments of a record that
    /// starts before the range are not reported.
    pub(super) starts_range: bool,
    pub(super) batches: &'a Batches,
}

impl ReadAhead {
    /// Returns the next finding. Returns `None` if this object can't, in which case the core's
    /// reader must be used. Fails if a signal handler raises an exception or no thread can be
    /// started. Without `py`, the source must be a file.
    pub(super) fn next(&mut self, py: Option<Python<'_>>, reading: &Reading<'_>) -> Result<Option<Ahead>, Stop> {
        let is_of_this_process = self.pipeline.as_ref().is_none_or(Pipeline::is_of_this_process);
        if self.position != Some(reading.position) || !self.is_for(reading.batches) || !is_of_this_process {
            // No threads are reading ahead for this call. It is the first call, the cursor has been
            // used in another way since the last call, or this process was forked and didn't
            // inherit the threads.
            *self = ReadAhead::default();
            self.pipeline = released(py, || start(reading)).map_err(|error| Stop::Failed(error.into()))?;
            self.position = Some(reading.position);
            self.pool = Some(Arc::clone(&reading.batches.pool));
            self.may_run_python = py.is_some();
        }
        loop {
            if let Some(found) = self.found.pop_front() {
                self.position = end_of(&found);
                return Ok(Some(found));
            }
            let Some(pipeline) = &self.pipeline else {
                return Ok(self.rest(reading.position));
            };
            match released(py, || pipeline.next_within(PAUSE)) {
                Next::Result(part) => {
                    // All findings from the previous part have been returned. This conversion
                    // doesn't allocate memory.
                    self.found = part.found.into();
                    let known = self.end_offset.filter(|_| part.end_offset.is_some());
                    self.end_offset = part.end_offset.max(known);
                    if part.is_last {
                        self.end(py);
                    }
                }
                Next::Waiting => {}
                Next::End => self.end(py),
            }
            // Signals must also be checked after a part, because there may be an endless series of
            // parts that contain only zeros and no records.
            check_for_interrupt(py)?;
        }
    }

    /// Checks whether the threads are reading ahead for these batches.
    pub(super) fn is_for(&self, batches: &Batches) -> bool {
        self.pool.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, &batches.pool))
    }

    /// Returns the offset where the core's reader takes over, or `None` if that offset is
    /// `position`.
    fn rest(&mut self, position: u64) -> Option<Ahead> {
        let end_offset = self.end_offset.take().filter(|&end_offset| end_offset > position)?;
        self.position = Some(end_offset);
        Some(Ahead::Rest(end_offset))
    }

    fn end(&mut self, py: Option<Python<'_>>) {
        let Some(pipeline) = self.pipeline.take() else {
            return;
        };
        if py.is_some_and(is_shutting_down) {
            // During shutdown, a thread that needs the interpreter would never get it.
            pipeline.abandon();
        } else {
            released(py, || drop(pipeline));
        }
    }
}

/// Starts threads at the cursor's position. Returns `None` if a single thread is at least as fast.
fn start(reading: &Reading<'_>) -> io::Result<Option<Pipeline<Part>>> {
    let (target_len, threads) = (reading.batches.target_len, reading.batches.threads);
    let batch_len = (target_len as u64).min(4 * PART_LENS.end());
    let batch_len = batch_len.next_multiple_of(BLOCK_LEN as u64);
    let mut rest = reading.options.clone();
    rest.start = reading.position;
    let parts = Parts::for_threads(
        &rest,
        reading.source.len()?,
        threads,
        batch_len.max(*PART_LENS.start())..=batch_len.max(*PART_LENS.end()),
    );
    if target_len < TARGET_LEN_MIN || !parts.are_worth(threads) {
        return Ok(None);
    }
    let workers = (0..threads).map(|_| {
        let input = reading.source.another().ok_or(io::ErrorKind::Unsupported)?;
        let mut reader = SourceReader::with_source(source_at(input, 0)?, parts.options(0));
        let (parts, batches, starts_range) = (parts.clone(), reading.batches.clone(), reading.starts_range);
        // The same reader is used for every part, so that its window is allocated only once.
        Ok(move |number| {
            let mut part = Part::default();
            let options = parts.options(number);
            let start = options.start;
            let mut started = reader.restart(options);
            if number == 0 && !starts_range && started.is_ok() {
                // At the start of a range, the reader skips the remainder of a record that starts
                // before the range, without reporting it. Here, that remainder must be reported.
                started = reader.seek(start);
            }
            match started {
                Ok(()) => read_all(&mut reader, &batches, &mut part),
                Err(error) => {
                    if part.found.try_reserve(1).is_ok() {
                        part.found.push(Ahead::Failed(error));
                    }
                    part.is_last = true;
                }
            }
            part
        })
    });
    Pipeline::start(parts.count(), workers.collect::<io::Result<_>>()?).map(Some)
}

/// Checks whether the interpreter is shutting down. During shutdown, Python destroys global
/// variables.
fn is_shutting_down(py: Python<'_>) -> bool {
    let asked = imported!(py, "sys", "is_finalizing").and_then(|ask| ask.run(())?.is_truthy());
    // If the call fails, it may be too late to check, so a shutdown is assumed.
    asked.unwrap_or(true)
}

/// Returns the position of a cursor that has returned `found`.
fn end_of(found: &Ahead) -> Option<u64> {
    match found {
        Ahead::Records(batch) => Some(batch.end_offset()),
        Ahead::Skipped(region)
        | Ahead::Failed(cordwood::Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => Some(region.end),
        // The read is tried again from the cursor's position.
        Ahead::Failed(_) => None,
        Ahead::Rest(offset) => Some(*offset),
    }
}

/// Stops the threads before the fields are dropped, because a thread may need the interpreter in
/// order to finish.
impl Drop for ReadAhead {
    fn drop(&mut self) {
        if self.pipeline.is_none() || !self.may_run_python {
            return;
        }
        let ended = Python::try_attach(|py| {
            let _kept = KeptException::new(py);
            self.end(Some(py));
        });
        if let (None, Some(pipeline)) = (ended, self.pipeline.take()) {
            // The interpreter has shut down, and the process is about to exit.
            pipeline.abandon();
        }
    }
}

/// Reads the reader's whole range, up to a torn tail.
fn read_all(reader: &mut SourceReader, batches: &Batches, part: &mut Part) {
    let (pool, target_len) = (&batches.pool, batches.target_len);
    let mut batch = pool.take();
    loop {
        // Reserves room for a record batch and the event after it. If there is not enough
        // memory, the core's reader takes over here.
        if part.found.try_reserve(2).is_err() {
            part.is_last = true;
            break;
        }
        let moved = reader.move_found(&mut batch, target_len);
        if moved.is_ok() && reader.found().is_none() && !batch.is_full(target_len) {
            reader.read_more();
            continue;
        }
        let is_full = batch.is_full(target_len);
        if !batch.is_empty() {
            let full = std::mem::replace(&mut batch, pool.take());
            part.found.push(Ahead::Records(full));
        }
        if is_full && moved.is_ok() {
            continue;
        }
        let found = match reader.found() {
            Some(Found::Skipped(region)) if region.reason.severity() == Severity::TornTail => {
                part.end_offset = Some(region.start);
                part.is_last = true;
                break;
            }
            Some(Found::Skipped(region)) => Some(region),
            Some(Found::End(end)) => {
                part.end_offset = Some(end.offset());
                break;
            }
            Some(Found::Record(_) | Found::Failed(_)) | None => None,
        };
        match (moved.and_then(|()| reader.advance()), found) {
            (Ok(()), Some(region)) => part.found.push(Ahead::Skipped(region)),
            (Ok(()), None) => {}
            (Err(error), _) => {
                part.is_last = !matches!(error.kind, ErrorKind::Corruption { .. });
                part.found.push(Ahead::Failed(error));
                if part.is_last {
                    break;
                }
            }
        }
    }
    pool.put(batch);
}
