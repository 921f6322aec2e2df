//! `scan` and the class `Scan`: logs as a table, for all that reads Arrow.

use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cordwood::codec::{RecordSpan, Step};
use cordwood::damage::{Finding, Findings, Severity, SkippedRegion};
use cordwood::{End, OnCorruption, ReadOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyBytes, PyCapsule, PyMemoryView, PyTuple};

use crate::arguments::{path_of, refuse_text};
use crate::arrow::{
    Array, Batches, DataType, EINVAL, EIO, ENOMEM, Failure, Field, Memory, asks_for_binary, schema_capsule,
    stream_capsule,
};
use crate::batch_pool::{Pool, PooledBatch};
use crate::buffer::Part;
use crate::error::{to_python, with_path};
use crate::log::{Logged, log_skipped, log_summary};
use crate::options::{
    format_options, number, on_corruption_name, on_corruption_of, optional_number, range_of, threads_of,
};
use crate::outcome::Outcome;
use crate::read_ahead::{Found, ReadAhead, Reading, batch_count_max};
use crate::skipped_region::listed;
use crate::source::{Input, OpenedReader, SourceReader, open_reader};
use crate::value::not_pickled;

/// A batch is closed once it holds this many bytes. Measured: 4 MiB is new memory each time, which
/// costs half as much again.
pub(crate) const TARGET_LEN: usize = 1 << 20;

/// The most rows of a batch without the records themselves.
const ROW_COUNT_MAX: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Offset,
    Record,
    EndOffset,
    Length,
    Path,
    Salvaged,
}

impl Column {
    const ALL: [Column; 6] = [
        Column::Offset,
        Column::Record,
        Column::EndOffset,
        Column::Length,
        Column::Path,
        Column::Salvaged,
    ];

    fn name(self) -> &'static CStr {
        match self {
            Column::Offset => c"offset",
            Column::Record => c"record",
            Column::EndOffset => c"end_offset",
            Column::Length => c"length",
            Column::Path => c"path",
            Column::Salvaged => c"salvaged",
        }
    }

    fn as_str(self) -> &'static str {
        self.name().to_str().unwrap_or_default()
    }

    fn named(name: &str) -> PyResult<Self> {
        let found = Column::ALL.into_iter().find(|column| column.as_str() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Column::ALL
                .iter()
                .map(|column| format!("'{}'", column.as_str()))
                .collect();
            PyValueError::new_err(format!("a column must be one of {}, not '{name}'", names.join(", ")))
        })
    }

    pub(crate) fn field(self, is_binary: bool) -> Field {
        Field {
            name: self.name(),
            data_type: match self {
                Column::Offset | Column::EndOffset | Column::Length => DataType::UInt64,
                Column::Record if is_binary => DataType::Binary,
                Column::Record => DataType::LargeBinary,
                Column::Path => DataType::Dictionary,
                Column::Salvaged => DataType::Bool,
            },
            // A source without a path has none.
            is_nullable: self == Column::Path,
        }
    }
}

/// The records of a batch as a column.
pub(crate) fn record_column(batch: &Arc<PooledBatch>, is_binary: bool) -> Array {
    let offsets = if is_binary {
        Memory::I32(Arc::new(
            batch.records().offsets().iter().map(|&offset| offset as i32).collect(),
        ))
    } else {
        Memory::Batch(Arc::clone(batch), Part::Offsets)
    };
    let data = Memory::Batch(Arc::clone(batch), Part::Data);
    Array::plain(batch.records().len(), vec![Memory::Absent, offsets, data])
}

/// Whether the offsets of the batch have 32 bits.
pub(crate) fn fits_binary(records: &cordwood::read::RecordBatch) -> bool {
    i32::try_from(records.data().len()).is_ok()
}

/// The file offsets of the records of a batch as a column.
pub(crate) fn offset_column(batch: &Arc<PooledBatch>) -> Array {
    let offsets = Memory::Batch(Arc::clone(batch), Part::RecordOffsets);
    Array::plain(batch.records().len(), vec![Memory::Absent, offsets])
}

fn number_column(numbers: Vec<u64>) -> Array {
    Array::plain(numbers.len(), vec![Memory::Absent, Memory::U64(numbers)])
}

fn bool_column(values: &[bool]) -> Array {
    let bits = values
        .chunks(8)
        .map(|values| values.iter().rev().fold(0, |bits, &value| bits << 1 | u8::from(value)));
    let bits = Memory::Bytes(Arc::new(bits.collect()));
    Array::plain(values.len(), vec![Memory::Absent, bits])
}

/// The paths of all sources, each once: the dictionary of the column `path`.
struct Paths {
    /// Of each source: the number of its path.
    numbers: Vec<Option<i32>>,
    count: usize,
    ends: Arc<Vec<i32>>,
    text: Arc<Vec<u8>>,
}

impl Paths {
    fn new(sources: &[Source]) -> PyResult<Self> {
        let mut known = std::collections::HashMap::new();
        let mut numbers = Vec::new();
        let (mut ends, mut text) = (vec![0], Vec::new());
        for source in sources {
            let Source::Path(path) = source else {
                numbers.push(None);
                continue;
            };
            let number = match known.get(path) {
                Some(&number) => number,
                None => {
                    text.extend_from_slice(path.to_string_lossy().as_bytes());
                    let end = i32::try_from(text.len());
                    ends.push(end.map_err(|_| PyValueError::new_err("the paths have more than 2 GiB together"))?);
                    known.insert(path, ends.len() as i32 - 2);
                    ends.len() as i32 - 2
                }
            };
            numbers.push(Some(number));
        }
        Ok(Paths {
            count: known.len(),
            numbers,
            ends: Arc::new(ends),
            text: Arc::new(text),
        })
    }

    /// The column for `len` rows of one source.
    fn column(&self, source: usize, len: usize) -> Array {
        let number = self.numbers.get(source).copied().flatten();
        let validity = match number {
            Some(_) => Memory::Absent,
            None => Memory::Bytes(Arc::new(vec![0; len.div_ceil(8)])),
        };
        let numbers = Memory::I32(Arc::new(vec![number.unwrap_or(0); len]));
        let ends = Memory::I32(Arc::clone(&self.ends));
        let text = Memory::Bytes(Arc::clone(&self.text));
        Array {
            null_count: if number.is_none() { len } else { 0 },
            dictionary: Some(Box::new(Array::plain(self.count, vec![Memory::Absent, ends, text]))),
            ..Array::plain(len, vec![validity, numbers])
        }
    }
}

/// A source that can be opened again.
enum Source {
    /// Needs no interpreter.
    Path(PathBuf),
    /// `bytes` or another buffer.
    Content(Py<PyAny>),
    /// An object with `read`.
    Object {
        object: Py<PyAny>,
        /// Its position when it was passed in, if it can seek.
        begin: Option<Py<PyAny>>,
    },
}

impl Source {
    /// `None`: it is no source.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Some(path) = path_of(object)? {
            return Ok(Some(Source::Path(path)));
        }
        if object.is_instance_of::<PyBytes>() || PyMemoryView::from(object).is_ok() {
            return Ok(Some(Source::Content(object.clone().unbind())));
        }
        if !object.hasattr(intern!(py, "read"))? {
            return Ok(None);
        }
        refuse_text(object)?;
        let seekable = object.getattr_opt(intern!(py, "seekable"))?;
        let is_seekable = seekable.map_or(Ok(false), |seekable| seekable.call0()?.is_truthy())?;
        let begin = is_seekable
            .then(|| object.call_method0(intern!(py, "tell")))
            .transpose()?;
        Ok(Some(Source::Object {
            object: object.clone().unbind(),
            begin: begin.map(Bound::unbind),
        }))
    }

    /// One source, or several; whether it is a collection of them.
    fn all_of(sources: &Bound<'_, PyAny>) -> PyResult<(Vec<Self>, bool)> {
        if let Some(source) = Source::of(sources)? {
            return Ok((vec![source], false));
        }
        let refused = |object: &Bound<'_, PyAny>| {
            Ok::<_, PyErr>(PyTypeError::new_err(format!(
                "a source must be a path, bytes or another buffer, or an object with read(size), not {}",
                object.get_type().name()?
            )))
        };
        let Ok(items) = sources.try_iter() else {
            return Err(refused(sources)?);
        };
        let sources = items.map(|item| {
            let item = item?;
            Source::of(&item)?.map_or_else(|| Err(refused(&item)?), Ok)
        });
        Ok((sources.collect::<PyResult<_>>()?, true))
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Source::Path(path) => Source::Path(path.clone()),
            Source::Content(object) => Source::Content(object.clone_ref(py)),
            Source::Object { object, begin } => Source::Object {
                object: object.clone_ref(py),
                begin: begin.as_ref().map(|begin| begin.clone_ref(py)),
            },
        }
    }
}

/// What is read, and how: the same for all streams of a scan.
struct Plan {
    columns: Vec<Column>,
    options: ReadOptions,
    threads: NonZeroUsize,
    paths: Paths,
    /// How often each source was opened.
    openings: Vec<AtomicU64>,
    latest: Mutex<Latest>,
}

/// What the reading that began last has found.
#[derive(Default)]
struct Latest {
    number: u64,
    logs: Vec<LogState>,
}

#[derive(Default, Clone)]
struct LogState {
    findings: Findings,
    position: u64,
    end: Option<End>,
}

impl Plan {
    fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a reading, and returns its number.
    fn begin(&self) -> u64 {
        let mut latest = self.latest();
        latest.number += 1;
        latest.logs = vec![LogState::default(); self.openings.len()];
        latest.number
    }

    /// Notes what the reading of this number has found in a log, unless another has begun.
    fn note(&self, reading: u64, source: usize, change: impl FnOnce(&mut LogState)) {
        let mut latest = self.latest();
        if latest.number == reading
            && let Some(log) = latest.logs.get_mut(source)
        {
            change(log);
        }
    }
}

/// A reading of all sources.
struct Stream {
    plan: Arc<Plan>,
    /// References of its own: the garbage collector must not take those of the scan for all.
    sources: Vec<Source>,
    is_binary: bool,
    pool: Arc<Pool>,
    /// The number of this reading; `None`: it has not begun.
    reading: Option<u64>,
    /// The number of the source that is read, or read next.
    source: usize,
    log: Option<OpenLog>,
    /// How it has failed: each further call fails in the same way.
    failed: Option<Failure>,
}

impl Batches for Stream {
    fn fields(&self) -> Vec<Field> {
        let columns = self.plan.columns.iter();
        columns.map(|column| column.field(self.is_binary)).collect()
    }

    fn next(&mut self) -> Result<Option<Array>, Failure> {
        let plan = Arc::clone(&self.plan);
        let reading = *self.reading.get_or_insert_with(|| plan.begin());
        while self.failed.is_none() && self.source < self.sources.len() {
            let mut rows = Rows {
                records: self.pool.take(),
                ..Rows::default()
            };
            let filled = self.fill(reading, &mut rows);
            let source = self.source;
            match filled {
                Ok(true) => {}
                Ok(false) => {
                    self.log = None;
                    self.source += 1;
                }
                Err(failure) => {
                    self.log = None;
                    self.failed = Some(failure);
                }
            }
            if rows.len() > 0 {
                return Ok(Some(self.table(source, rows)));
            }
            self.pool.put(rows.records);
        }
        self.failed.clone().map_or(Ok(None), Err)
    }
}

impl Stream {
    /// Adds rows of the present source. `false`: it has no more.
    fn fill(&mut self, reading: u64, rows: &mut Rows) -> Result<bool, Failure> {
        let mut log = match self.log.take() {
            Some(log) => log,
            None => self.open(reading)?,
        };
        if log.opening != self.plan.openings[self.source].load(Ordering::Relaxed)
            && !matches!(self.sources[self.source], Source::Path(_) | Source::Content(_))
        {
            return Err(io_failure(
                "another stream has begun to read the same file object: read one after the other, or scan a path",
            ));
        }
        let filled = log.fill(&self.plan, &self.pool, rows);
        let (position, end) = (log.position, log.reader.end());
        self.plan.note(reading, self.source, |found| {
            found.position = position;
            found.end = end;
        });
        let filled = filled?;
        self.log = Some(log);
        Ok(filled)
    }

    fn open(&self, reading: u64) -> Result<OpenLog, Failure> {
        let plan = &self.plan;
        let opening = plan.openings[self.source].fetch_add(1, Ordering::Relaxed) + 1;
        let opened = match &self.sources[self.source] {
            Source::Path(path) => {
                let reader =
                    cordwood::Reader::open(path, plan.options.clone()).map_err(|error| failure(error, Some(path)))?;
                let another = Input::another(reader.get_ref().get_ref());
                OpenedReader {
                    reader: reader.map_source(|source| source.map(|file| Box::new(file) as Box<dyn Input>)),
                    options: plan.options.clone(),
                    another,
                    referent: None,
                }
            }
            Source::Content(object) => attached(|py| open_reader(object.bind(py), plan.options.clone()))?,
            Source::Object { object, begin } => attached(|py| {
                let object = object.bind(py);
                match begin {
                    Some(begin) => drop(object.call_method1(intern!(py, "seek"), (begin,))?),
                    None if opening > 1 => {
                        return Err(PyValueError::new_err(
                            "the source was read once, and cannot seek: pass a path, or a file object that can",
                        ));
                    }
                    None => {}
                }
                open_reader(object, plan.options.clone())
            })?,
        };
        // Threads cannot wait for the interpreter, which the consumer may hold: they read files.
        // They return no mark of salvaged records, and are not worth it without the records.
        let is_ahead = plan.threads > NonZeroUsize::MIN && plan.has(Column::Record) && !plan.has(Column::Salvaged);
        let is_file = matches!(self.sources[self.source], Source::Path(_));
        Ok(OpenLog {
            reading,
            source: self.source,
            opening,
            position: plan.options.start,
            another: opened.another.filter(|_| is_ahead && is_file),
            options: opened.options,
            reader: opened.reader,
            read_ahead: ReadAhead::new(plan.threads),
            is_elsewhere: false,
            logged: Logged::default(),
        })
    }

    fn table(&self, source: usize, mut rows: Rows) -> Array {
        let len = rows.len();
        let plan = &self.plan;
        let records = &rows.records;
        if records.len() == len {
            if plan.has(Column::EndOffset) && rows.end_offsets.is_empty() {
                let ends = (0..len).map(|row| records.record_end_offset(row).unwrap_or_default());
                rows.end_offsets = ends.collect();
            }
            if plan.has(Column::Length) && rows.lens.is_empty() {
                let lens = records.offsets().windows(2).map(|ends| (ends[1] - ends[0]) as u64);
                rows.lens = lens.collect();
            }
        }
        let batch = Arc::new(PooledBatch::new(rows.records, Arc::clone(&self.pool)));
        let columns = plan.columns.iter().map(|column| match column {
            Column::Offset if batch.records().is_empty() => number_column(std::mem::take(&mut rows.offsets)),
            Column::Offset => offset_column(&batch),
            Column::Record => record_column(&batch, self.is_binary),
            Column::EndOffset => number_column(std::mem::take(&mut rows.end_offsets)),
            Column::Length => number_column(std::mem::take(&mut rows.lens)),
            Column::Path => plan.paths.column(source, len),
            Column::Salvaged => bool_column(&rows.salvaged),
        });
        Array::table(len, columns.collect())
    }
}

/// Python's objects are released at once, and not when the interpreter is used next.
impl Drop for Stream {
    fn drop(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        self.log = None;
        if sources.iter().any(|source| !matches!(source, Source::Path(_))) {
            let _ = attached(|_| {
                drop(sources);
                Ok(())
            });
        }
    }
}

/// The rows of a batch. Without the records, the other columns are in vectors of their own; what
/// follows from the records is made of them.
#[derive(Default)]
struct Rows {
    records: cordwood::read::RecordBatch,
    offsets: Vec<u64>,
    end_offsets: Vec<u64>,
    lens: Vec<u64>,
    salvaged: Vec<bool>,
}

impl Rows {
    fn len(&self) -> usize {
        self.records.len().max(self.offsets.len())
    }
}

/// A log that is being read.
struct OpenLog {
    /// The numbers of the reading and of the source.
    reading: u64,
    source: usize,
    /// How often the source had been opened then.
    opening: u64,
    reader: SourceReader,
    /// With the format, if it had to be detected.
    options: ReadOptions,
    /// What threads read, if they may.
    another: Option<Box<dyn Input>>,
    read_ahead: ReadAhead,
    /// Threads have read on up to `position`: the reader has to seek there first.
    is_elsewhere: bool,
    position: u64,
    logged: Logged,
}

impl OpenLog {
    /// Adds rows until the batch is full; `false`: the log has no more.
    fn fill(&mut self, plan: &Plan, pool: &Arc<Pool>, rows: &mut Rows) -> Result<bool, Failure> {
        if self.another.is_some()
            && let Some(is_full) = self.fill_from_threads(plan, pool, rows)?
        {
            return Ok(is_full);
        }
        if plan.has(Column::Record) && !plan.has(Column::Salvaged) {
            self.fill_batch(plan, rows)
        } else if plan.has(Column::Record) {
            self.fill_rows(plan, rows, true)
        } else {
            self.reader.set_keeps_data(false);
            self.fill_rows(plan, rows, false)
        }
    }

    /// The next batch that threads have read. `None`: the reader itself reads on.
    fn fill_from_threads(&mut self, plan: &Plan, pool: &Arc<Pool>, rows: &mut Rows) -> Result<Option<bool>, Failure> {
        if self.options.dialect.is_none() {
            let format = self.reader.format().map_err(|error| self.failed(plan, error))?;
            self.options = self.options.clone().with_format(format);
        }
        while let Some(another) = &self.another {
            let reading = Reading {
                source: another.as_ref(),
                options: &self.options,
                position: self.position,
                begins_range: self.position == self.options.start,
                pool,
                target_len: TARGET_LEN,
            };
            match self.read_ahead.next_of_file(&reading) {
                Some(Found::RecordBatch(batch)) => {
                    self.is_elsewhere = true;
                    self.position = batch.end_offset();
                    pool.put(std::mem::replace(&mut rows.records, batch));
                    return Ok(Some(true));
                }
                Some(Found::Skipped(region)) => {
                    self.is_elsewhere = true;
                    self.skip(plan, region)?;
                }
                Some(Found::Failed(error)) => return Err(self.failed(plan, error)),
                Some(Found::Rest(offset)) => {
                    self.is_elsewhere = true;
                    self.position = offset;
                    self.another = None;
                }
                None => self.another = None,
            }
        }
        if std::mem::take(&mut self.is_elsewhere) {
            self.reader
                .seek(self.position)
                .map_err(|error| self.failed(plan, error))?;
        }
        Ok(None)
    }

    fn fill_batch(&mut self, plan: &Plan, rows: &mut Rows) -> Result<bool, Failure> {
        loop {
            let step = self.reader.record_batch_buffered(&mut rows.records, TARGET_LEN);
            if !rows.records.is_empty() {
                self.position = rows.records.end_offset();
            }
            match step.map_err(|error| self.failed(plan, error))? {
                Step::Record(_) => return Ok(true),
                other => {
                    if !self.go_on(plan, other)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// One record after the other: for what a batch does not hold.
    fn fill_rows(&mut self, plan: &Plan, rows: &mut Rows, with_records: bool) -> Result<bool, Failure> {
        loop {
            let step = match self.reader.next_found() {
                Some(span) => Step::Record(span),
                None => self.reader.step_buffered().map_err(|error| self.failed(plan, error))?,
            };
            match step {
                Step::Record(span) => {
                    self.position = span.end_offset;
                    if self.add(plan, span, rows, with_records)? {
                        return Ok(true);
                    }
                }
                other => {
                    if !self.go_on(plan, other)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Adds a row, and returns whether the batch is full.
    fn add(&mut self, plan: &Plan, span: RecordSpan, rows: &mut Rows, with_record: bool) -> Result<bool, Failure> {
        if with_record {
            let pushed = rows.records.push(self.reader.data(span), span.offset, span.end_offset);
            pushed.map_err(|_| failure(self.reader.out_of_memory(), self.reader.path()))?;
            rows.salvaged.push(span.is_salvaged);
            return Ok(rows.records.is_full(TARGET_LEN));
        }
        rows.offsets.push(span.offset);
        if plan.has(Column::EndOffset) {
            rows.end_offsets.push(span.end_offset);
        }
        if plan.has(Column::Length) {
            rows.lens.push(self.reader.data_len(span));
        }
        if plan.has(Column::Salvaged) {
            rows.salvaged.push(span.is_salvaged);
        }
        Ok(rows.offsets.len() >= ROW_COUNT_MAX)
    }

    /// What follows after a step without a record. `false`: the log has ended.
    fn go_on(&mut self, plan: &Plan, step: Step) -> Result<bool, Failure> {
        match step {
            Step::Record(_) => {}
            Step::NeedMore => self.reader.fill().map_err(|error| self.failed(plan, error))?,
            Step::Skipped(region) => self.skip(plan, region)?,
            Step::End(end) => {
                self.position = end.offset();
                let summary = self.logged.summary();
                if summary.is_some() {
                    let path = self.reader.path();
                    attached(|py| log_summary(py, summary, path))?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes, and logs, what is skipped.
    fn skip(&mut self, plan: &Plan, region: SkippedRegion) -> Result<(), Failure> {
        plan.note(self.reading, self.source, |log| log.findings.add(Finding::new(region)));
        let severity = region.reason.severity();
        if severity != Severity::TornTail {
            self.position = region.end;
        }
        if severity == Severity::Corruption && self.logged.add(region) {
            let path = self.reader.path();
            attached(|py| log_skipped(py, region, path))?;
        }
        Ok(())
    }

    /// The failure for an error in reading the log. Damage is listed as skipped, too.
    fn failed(&mut self, plan: &Plan, error: cordwood::Error) -> Failure {
        if let cordwood::Error::Corruption { region, .. } = error {
            plan.note(self.reading, self.source, |log| log.findings.add(Finding::new(region)));
            self.position = region.end;
        }
        failure(error, self.reader.path())
    }
}

/// The threads read files and need no interpreter, so they can be waited for without it.
impl Drop for OpenLog {
    fn drop(&mut self) {
        self.read_ahead.stop(None);
    }
}

fn io_failure(message: impl Into<String>) -> Failure {
    Failure {
        errno: EIO,
        message: message.into(),
    }
}

/// An error of the core, as a consumer of Arrow gets it.
fn failure(error: cordwood::Error, path: Option<&Path>) -> Failure {
    let errno = match &error {
        cordwood::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory => ENOMEM,
        cordwood::Error::Unsupported { .. } => EINVAL,
        _ => EIO,
    };
    Failure {
        errno,
        message: with_path(error.to_string(), path),
    }
}

/// An exception, as a consumer of Arrow gets it.
pub(crate) fn failure_of(py: Python<'_>, error: &PyErr) -> Failure {
    let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let name = error
        .get_type(py)
        .name()
        .map(|name| name.to_string())
        .unwrap_or_default();
    io_failure(if text.is_empty() { name } else { text })
}

/// Does what needs the interpreter.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Failure> {
    let done = Python::try_attach(|py| work(py).map_err(|error| failure_of(py, &error)));
    done.unwrap_or_else(|| Err(io_failure("Python has ended, and the source needs it")))
}

/// The records of logs as a table, for everything that reads Arrow: what `scan` returns.
///
/// pyarrow, polars, DuckDB, pandas, DataFusion and others take it as it is, by its
/// `__arrow_c_stream__`. Each reading opens the sources again, so it can be read any number of
/// times; making it opens nothing.
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct Scan {
    plan: Arc<Plan>,
    sources: Vec<Source>,
}

#[pymethods]
impl Scan {
    /// The table as a stream of Arrow batches: a capsule of the Arrow C stream interface.
    ///
    /// Args:
    ///     requested_schema: A capsule of an Arrow schema. If its column `record` is `binary`, that
    ///         is what the stream has; nothing else of it is regarded. Default: `None`.
    ///
    /// Returns:
    ///     The capsule, which reads the sources from their beginning.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The longest batch that a record of the longest length allows has 32-bit offsets.
        let is_binary = asks_for_binary(requested_schema, Column::Record.name())?;
        let stream = Stream {
            plan: Arc::clone(&self.plan),
            sources: self.sources.iter().map(|source| source.clone_ref(py)).collect(),
            is_binary,
            pool: Arc::new(Pool::new(batch_count_max(self.plan.threads, TARGET_LEN))),
            reading: None,
            source: 0,
            log: None,
            failed: None,
        };
        stream_capsule(py, stream)
    }

    /// The columns and their types: a capsule of the Arrow C schema interface.
    ///
    /// Returns:
    ///     The capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let fields: Vec<_> = self.plan.columns.iter().map(|column| column.field(false)).collect();
        schema_capsule(py, &fields)
    }

    /// The names of the columns.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.plan.columns.iter().map(|column| column.as_str()))
    }

    /// What was not returned: a tuple of `SkippedRegion` for each source, in their order.
    ///
    /// Of the reading that began last, as far as it has come; empty if none has begun. Of each
    /// source, the first 100,000 regions are listed.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let findings: Vec<_> = self.plan.latest().logs.iter().map(|log| log.findings.clone()).collect();
        let listed: PyResult<Vec<_>> = findings.iter().map(|findings| listed(py, findings)).collect();
        PyTuple::new(py, listed?)
    }

    /// How reading each source has ended: an `Outcome` for each, in their order.
    ///
    /// Of the reading that began last; `"unfinished"` for a source of which it has not reached the
    /// end. Empty if none has begun.
    #[getter]
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let outcomes: Vec<_> = {
            let latest = self.plan.latest();
            latest
                .logs
                .iter()
                .map(|log| Outcome::at(log.position, log.end))
                .collect()
        };
        PyTuple::new(py, outcomes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for source in &self.sources {
            if let Source::Content(object) | Source::Object { object, .. } = source {
                visit.call(object)?;
            }
        }
        Ok(())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Scan", "pass the arguments of scan, and call it there"))
    }

    fn __repr__(&self) -> String {
        let columns: Vec<_> = self.plan.columns.iter().map(|column| column.as_str()).collect();
        let columns = columns.join(", ");
        match self.sources.as_slice() {
            [Source::Path(path)] => format!("<cordwood.Scan of {:?}: {columns}>", path.display().to_string()),
            [_] => format!("<cordwood.Scan of 1 source: {columns}>"),
            sources => format!("<cordwood.Scan of {} sources: {columns}>", sources.len()),
        }
    }
}

/// The records of one log or many as a table, for everything that reads Arrow.
///
/// Pass it to `pyarrow.table`, `polars.DataFrame`, `pandas.DataFrame.from_arrow`, DuckDB, DataFusion
/// and others. Each reads the sources again, in batches of about 1 MiB, of which one is in memory at
/// a time unless the reader keeps them. Nothing is opened before.
///
/// What goes wrong is raised by the one that reads, as an exception of its own, with our message.
/// After an error, a stream returns nothing more.
///
/// Args:
///     sources: What `Reader` takes: a path, bytes, or an object with `read`, which must be able to
///         seek in order to be read twice. Or an iterable of these, which are read in its order.
///     columns: Which columns, in this order. `"offset"`: the file offset of the record, `uint64`;
///         `"record"`: its bytes, `large_binary`; `"end_offset"`: the file offset after it;
///         `"length"`: its number of bytes; `"path"`: the path of its log, a dictionary of text,
///         null without one; `"salvaged"`: whether it begins after damage in its block. Without
///         `"record"`, records are checked and not copied. Default: `None`: offset and record, and
///         path if `sources` is an iterable.
///     dialect: As for `Reader`.
///     log_number: As for `Reader`.
///     compression: As for `Reader`.
///     on_corruption: As for `Reader`: `"raise"`, `"skip"`, `"stop"` or `"salvage"`. Under all but
///         the first, `Scan.skipped` lists afterwards what is missing. Default: `"raise"`.
///     threads: Read each file ahead in this many threads, 1 to 256. One thread reads what is not a
///         path, what `Reader.record_batches` reads in one, and anything without the column
///         `"record"` or with `"salvaged"`. Default: 1.
///     start: As for `Reader`, in each source.
///     end: As for `Reader`, in each source.
///
/// Returns:
///     A `Scan`: an object with `__arrow_c_stream__` and `__arrow_c_schema__`.
///
/// Raises:
///     OverflowError: `log_number` is not a number of 32 bits.
///     TypeError: A source is none of the above, or is a text file.
///     ValueError: An option has no such value, or a column is unknown or named twice.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> cordwood.scan("example.log")
/// <cordwood.Scan of "example.log": offset, record>
/// >>> import pyarrow
/// >>> pyarrow.table(cordwood.scan("example.log")).to_pydict()
/// {'offset': [0, 10], 'record': [b'one', b'two']}
#[pyfunction]
#[pyo3(signature = (
    sources, *, columns = None, dialect = None, log_number = None, compression = None, on_corruption = "raise", threads = 1, start = 0, end = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python function")]
pub(crate) fn scan(
    sources: &Bound<'_, PyAny>,
    columns: Option<Vec<String>>,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = on_corruption_name)] on_corruption: &str,
    #[pyo3(from_py_with = number)] threads: usize,
    #[pyo3(from_py_with = number)] start: u64,
    #[pyo3(from_py_with = optional_number)] end: Option<u64>,
) -> PyResult<Scan> {
    let py = sources.py();
    let on_corruption: OnCorruption = on_corruption_of(on_corruption)?;
    let mut options = ReadOptions::default()
        .with_on_corruption(on_corruption)
        .with_range(range_of(start, end));
    (options.dialect, options.log_number, options.compression) = format_options(dialect, log_number, compression)?;
    options.check().map_err(|error| to_python(py, error, None))?;
    let threads = threads_of(threads)?;
    let columns = columns.map(|names| columns_of(&names)).transpose()?;
    let (sources, are_several) = Source::all_of(sources)?;
    let columns = columns.unwrap_or_else(|| {
        let path = are_several.then_some(Column::Path);
        [Column::Offset, Column::Record].into_iter().chain(path).collect()
    });
    Ok(Scan {
        plan: Arc::new(Plan {
            columns,
            options,
            threads,
            paths: Paths::new(&sources)?,
            openings: sources.iter().map(|_| AtomicU64::new(0)).collect(),
            latest: Mutex::default(),
        }),
        sources,
    })
}

fn columns_of(names: &[String]) -> PyResult<Vec<Column>> {
    let mut columns = Vec::new();
    for name in names {
        let column = Column::named(name)?;
        if columns.contains(&column) {
            return Err(PyValueError::new_err(format!("columns names '{name}' twice")));
        }
        columns.push(column);
    }
    if columns.is_empty() {
        return Err(PyValueError::new_err("columns must name at least one column"));
    }
    Ok(columns)
}
