//! The functions `verify`, `salvage` and `stat`, and the classes `Report`, `Stat` and `BitFlip`
//! that they return.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cordwood::damage::Severity;
use cordwood::format::BLOCK_LEN;
use cordwood::read::StreamSource;
use cordwood::verbs::Parts;
use cordwood::{OnCorruption, ReadOptions, verbs};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::arguments::{name, number, optional_number, range_of, unknown_name};
use crate::dialect::{compression_name, format_of, named};
use crate::error::{os_error, to_python};
use crate::event::{Outcome, SkippedRegion, listed, reason_named, reason_object, severity_object};
use crate::reader::threads_of;
use crate::source::{Input, InputSource, Opened, OpenedReader, open, open_reader, path_of, source_at};
use crate::value::{NewArgs, new_args, static_name};

/// A source that checks for Ctrl-C at each read, since the work is done with the interpreter
/// released, and reports its progress. A thread other than Python's main one cannot detect Ctrl-C:
/// it stops when the main one has.
struct Watched {
    input: Box<dyn Input>,
    watch: Arc<Watch>,
}

/// The state shared by all threads that read one log.
struct Watch {
    /// Called with the number of bytes of each read.
    progress: Option<Py<PyAny>>,
    is_stopped: AtomicBool,
    /// The first exception of `progress` or a signal handler.
    raised: Mutex<Option<PyErr>>,
}

impl Watch {
    fn new(progress: Option<&Bound<'_, PyAny>>) -> Arc<Self> {
        Arc::new(Watch {
            progress: progress.map(|progress| progress.clone().unbind()),
            is_stopped: AtomicBool::new(false),
            raised: Mutex::new(None),
        })
    }

    /// If `result` is an exception, fails, and makes all threads fail at their next read.
    fn check(&self, result: PyResult<()>) -> io::Result<()> {
        if let Err(error) = result {
            self.is_stopped.store(true, Ordering::Relaxed);
            self.raised
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
        }
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        Ok(())
    }

    /// Runs `work`, which reads [`Watched`] sources, with the interpreter released. If there are
    /// several, this thread only waits, and checks for Ctrl-C.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        threads: usize,
        work: impl FnOnce() -> Result<T, cordwood::Error> + Send,
    ) -> PyResult<Result<T, cordwood::Error>> {
        let done = if threads == 1 {
            py.detach(work)
        } else {
            py.detach(|| {
                thread::scope(|scope| {
                    let (sender, receiver) = mpsc::channel();
                    let thread = thread::Builder::new().spawn_scoped(scope, move || {
                        let done = work();
                        // The receiver outlives the sender, so this cannot fail.
                        let _ = sender.send(());
                        done
                    });
                    let thread = thread.map_err(|source| cordwood::Error::Io { path: None, source })?;
                    while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PAUSE) {
                        // The threads see the exception.
                        let _ = self.check(Python::attach(|py| py.check_signals()));
                    }
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })
        };
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }
}

/// How long the thread that waits for others waits without a look at Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Watched { input, watch } = self;
        watch.check(Python::attach(|py| py.check_signals()))?;
        let len = input.read(buffer)?;
        if let Some(progress) = &watch.progress {
            watch.check(Python::attach(|py| progress.call1(py, (len,)).map(drop)))?;
        }
        Ok(len)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}

fn watched(source: InputSource, watch: &Arc<Watch>) -> StreamSource<Watched> {
    let watch = Arc::clone(watch);
    source.map(|input| Watched { input, watch })
}

const ON_CORRUPTION: &str = "on_corruption must be 'skip', 'stop' or 'salvage' for a report";

fn on_corruption_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, ON_CORRUPTION)
}

/// The policy of that name. A report raises nothing.
fn on_corruption_of(name: &str) -> PyResult<OnCorruption> {
    match name {
        "skip" => Ok(OnCorruption::Skip),
        "stop" => Ok(OnCorruption::Stop),
        "salvage" => Ok(OnCorruption::Salvage),
        other => Err(unknown_name(ON_CORRUPTION, other)),
    }
}

/// Reads a log to its end, and reports what is in it and what is wrong with it.
///
/// Damage is not an error here.
///
/// Args:
///     source: What `Reader` takes.
///     threads: Read it in this many parts at a time, 1 to 256. The report is the same for any
///         number. An object with `read` is read by one thread, and so is anything under the
///         policy `"stop"` and a log with log numbers. Default: 1.
///     dialect: As for `Reader`. Default: `None`.
///     log_number: As for `Reader`. Default: `None`.
///     compression: As for `Reader`. Default: `None`.
///     on_corruption: Continue after damage at the next block (`"skip"`), end there (`"stop"`),
///         or search for valid records in the same block (`"salvage"`). Default: `"skip"`.
///     start: As for `Reader`: a file offset in bytes. Default: 0.
///     end: As for `Reader`: a file offset in bytes. Default: `None`.
///     verify_checksums: As for `Reader`. Default: `True`.
///     record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
///     progress: Called with the number of bytes of each read, up to a few MiB, by the thread
///         that has read them. If it raises, so does this function. Default: `None`.
///
/// Returns:
///     The report. `ok` says whether there is no damage.
///
/// Raises:
///     DialectError: It is not a log.
///     OSError: The source cannot be opened or read.
///     TypeError: `source` is nothing that `Reader` takes.
///     ValueError: An option has no such value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> report = cordwood.verify("example.log")
/// >>> report.ok, report.record_count, report.payload_len, report.file_len
/// (True, 2, 6, 20)
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, log_number = None, compression = None, on_corruption = "skip", start = 0, end = None, verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python function")]
pub(crate) fn verify(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] threads: usize,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = on_corruption_name)] on_corruption: &str,
    #[pyo3(from_py_with = number)] start: u64,
    #[pyo3(from_py_with = optional_number)] end: Option<u64>,
    verify_checksums: bool,
    #[pyo3(from_py_with = number)] record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let py = source.py();
    let on_corruption = on_corruption_of(on_corruption)?;
    let mut options = ReadOptions::default()
        .with_on_corruption(on_corruption)
        .with_range(range_of(start, end))
        .with_verify_checksums(verify_checksums)
        .with_record_len_max(record_len_max);
    (options.dialect, options.log_number, options.compression) = named(dialect, log_number, compression)?;
    let watch = Watch::new(progress);
    let (readers, parts, path) = readers(source, options, threads, &watch)?;
    let report = watch.run(py, readers.len(), || verbs::verify_parts(readers, &parts))?;
    let report = report.map_err(|error| to_python(py, error, path.as_deref()))?;
    Report::of(py, report, path)
}

type WatchedReader = cordwood::Reader<StreamSource<Watched>>;

/// A reader of `source` for each of `threads` threads, or one if more would not be faster; the parts
/// that they read; and the path, if it has one.
fn readers(
    source: &Bound<'_, PyAny>,
    options: ReadOptions,
    threads: usize,
    watch: &Arc<Watch>,
) -> PyResult<(Vec<WatchedReader>, Parts, Option<PathBuf>)> {
    let threads = threads_of(threads)?;
    let py = source.py();
    let OpenedReader {
        reader: mut whole,
        mut options,
        another,
        ..
    } = open_reader(source, options)?;
    let path = whole.path().map(Path::to_owned);
    if threads > NonZeroUsize::MIN && options.dialect.is_none() {
        let format = py.detach(|| whole.format());
        options = options.with_format(format.map_err(|error| to_python(py, error, path.as_deref()))?);
    }
    let parts = Parts::new(&options, whole.file_len(), Parts::LEN);
    let Some(another) = another.filter(|_| parts.are_worth(threads.get())) else {
        return Ok((vec![whole.map_source(|source| watched(source, watch))], parts, path));
    };
    let reader = |_| {
        let input = another.another().ok_or(io::ErrorKind::Unsupported)?;
        let source = watched(source_at(input, 0)?, watch);
        Ok(cordwood::Reader::with_source(source, options.clone()).with_path(path.clone()))
    };
    let readers = (0..threads.get()).map(reader).collect::<io::Result<_>>();
    Ok((readers.map_err(|error| os_error(error, path.as_deref()))?, parts, path))
}

/// Reads a log under the policy `"salvage"`, and writes all its records to a new log.
///
/// The source is not changed. The new log is written in the folder of `destination` under a
/// temporary name, synced, and renamed last: a file with the final name is complete. If anything
/// fails, what was written is removed.
///
/// Args:
///     source: What `Reader` takes.
///     destination: The path of the new log. It must not exist. It has the dialect, the log number
///         and the engine's metadata of the source. RocksDB and Pebble look for the number of a log
///         in the name of its file.
///     dialect: As for `Reader`. Default: `None`.
///     log_number: As for `Reader`. Default: `None`.
///     compression: As for `Reader`. Default: `None`.
///     record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
///     progress: As for `verify`. Default: `None`.
///
/// Returns:
///     The report about `source`.
///
/// Raises:
///     DialectError: `source` is not a log.
///     FileExistsError: There is already a file at `destination`. It is not changed.
///     OSError: The source cannot be opened or read, the new log cannot be written, or the number
///         in the name of `destination` is not the one that the records carry.
///     OtherLogError: All of `source` belongs to another log than its name or `log_number` says.
///         Nothing is written.
///     TypeError: `source` is nothing that `Reader` takes, or `destination` is not a path.
///     ValueError: There is no such dialect.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two", b"three"])
/// 3
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(17), file.write(b"T")
/// >>> report = cordwood.salvage("example.log", "clean.log")
/// >>> report.record_count, report.skipped[0].bit_flip
/// (2, BitFlip(offset=17, bit=5, part='payload'))
/// >>> list(cordwood.Reader("clean.log"))
/// [b'one', b'three']
#[pyfunction]
#[pyo3(signature = (source, destination, *, dialect = None, log_number = None, compression = None, record_len_max = 1_073_741_824, progress = None))]
pub(crate) fn salvage(
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = number)] record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let py = source.py();
    let Some(destination) = path_of(destination)? else {
        let name = destination.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "destination must be str or os.PathLike, not {name}"
        )));
    };
    let mut options = ReadOptions::default().with_record_len_max(record_len_max);
    (options.dialect, options.log_number, options.compression) = named(dialect, log_number, compression)?;
    let Opened { source, path, .. } = open(source, 0)?;
    let watch = Watch::new(progress);
    let source = watched(source, &watch);
    let report = watch.run(py, 1, || {
        verbs::salvage_source(source, path.as_deref(), &destination, &options)
    })?;
    let report = report.map_err(|error| match error {
        // The error is about the destination.
        cordwood::Error::Io {
            path: Some(path),
            source,
        } => os_error(source, Some(&path)),
        error => to_python(py, error, path.as_deref()),
    })?;
    Report::of(py, report, path)
}

/// Reads a log to its end, and counts what is in it. Damage is not an error here.
///
/// Args:
///     source: What `Reader` takes.
///     threads: As for `verify`. Default: 1.
///     dialect: As for `Reader`. Default: `None`.
///     log_number: As for `Reader`. Default: `None`.
///     compression: As for `Reader`. Default: `None`.
///     on_corruption: As for `verify`. Default: `"skip"`.
///     verify_checksums: As for `Reader`. Default: `True`.
///     record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
///     progress: As for `verify`. Default: `None`.
///
/// Returns:
///     The numbers.
///
/// Raises:
///     DialectError: It is not a log.
///     OSError: The source cannot be opened or read.
///     TypeError: `source` is nothing that `Reader` takes.
///     ValueError: `threads` is not 1 to 256, or there is no such dialect.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two" * 20_000])
/// 2
/// >>> stat = cordwood.stat("example.log")
/// >>> stat.record_count, stat.record_len_max, stat.full_count, stat.first_count
/// (2, 60000, 1, 1)
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, log_number = None, compression = None, on_corruption = "skip", verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python function")]
pub(crate) fn stat(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] threads: usize,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = on_corruption_name)] on_corruption: &str,
    verify_checksums: bool,
    #[pyo3(from_py_with = number)] record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Stat> {
    let py = source.py();
    let mut options = ReadOptions::default()
        .with_on_corruption(on_corruption_of(on_corruption)?)
        .with_verify_checksums(verify_checksums)
        .with_record_len_max(record_len_max);
    (options.dialect, options.log_number, options.compression) = named(dialect, log_number, compression)?;
    let watch = Watch::new(progress);
    let (readers, parts, path) = readers(source, options, threads, &watch)?;
    let stat = watch.run(py, readers.len(), || verbs::stat_parts(readers, &parts))?;
    match stat {
        Ok(stat) => Ok(Stat::of(stat, path)),
        Err(error) => Err(to_python(py, error, path.as_deref())),
    }
}

/// What is in a log, and what is wrong with it: what `verify` and `salvage` return.
///
/// The constructor takes the attributes as keywords, without those that follow from the others:
/// `ok`, `skipped_len` and `len_by_severity`. Two reports are equal if everything but the paths is.
/// A notebook shows a table.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> cordwood.verify("example.log")
/// <cordwood.Report: ok=True, record_count=2, skipped=0, outcome=Outcome(kind='clean', offset=20)>
#[pyclass(frozen, module = "cordwood")]
pub(crate) struct Report {
    format: cordwood::LogFormat,
    counts: Counts,
    skipped: Py<PyTuple>,
    /// Bytes in all regions, listed or not, by the name of the reason.
    lens: BTreeMap<&'static str, (Severity, u64)>,
    not_kept: Py<PyTuple>,
    path: Option<PathBuf>,
}

/// The plain numbers of a [`Report`].
#[derive(PartialEq, Eq, Hash)]
struct Counts {
    record_count: u64,
    salvaged_count: u64,
    payload_len: u64,
    file_len: Option<u64>,
    outcome: Outcome,
    other_log_number: Option<u32>,
}

impl Report {
    fn of(py: Python<'_>, report: verbs::Report, path: Option<PathBuf>) -> PyResult<Self> {
        let lens = report.findings.lens();
        let not_kept = report.not_kept.iter().map(|what| what.as_str());
        Ok(Report {
            format: report.format,
            counts: Counts {
                record_count: report.record_count,
                salvaged_count: report.salvaged_count,
                payload_len: report.payload_len,
                file_len: report.file_len,
                outcome: Outcome::from(report.end),
                other_log_number: report.other_log_number,
            },
            skipped: listed(py, &report.findings)?.unbind(),
            lens: lens.map(|(name, severity, len)| (name, (severity, len))).collect(),
            not_kept: PyTuple::new(py, not_kept)?.unbind(),
            path,
        })
    }

    fn len_of(&self, severity: Severity) -> u64 {
        let lens = self.lens.values().filter(|(of_reason, _)| *of_reason == severity);
        lens.map(|(_, len)| len).sum()
    }
}

#[pymethods]
impl Report {
    #[new]
    #[pyo3(signature = (
        *, dialect, record_count, payload_len, file_len, outcome, log_number = None, compression = None,
        salvaged_count = 0, skipped = None, len_by_reason = None, other_log_number = None, not_kept = None, path = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        py: Python<'_>,
        dialect: &str,
        record_count: u64,
        payload_len: u64,
        file_len: Option<u64>,
        outcome: Outcome,
        log_number: Option<u32>,
        compression: Option<&str>,
        salvaged_count: u64,
        skipped: Option<Vec<SkippedRegion>>,
        len_by_reason: Option<BTreeMap<String, u64>>,
        other_log_number: Option<u32>,
        not_kept: Option<Vec<String>>,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let skipped = skipped.unwrap_or_default();
        let mut lens = BTreeMap::new();
        let mut add = |reason: cordwood::damage::Reason, len: u64| {
            let (_, sum): &mut (_, u64) = lens.entry(reason.as_str()).or_insert((reason.severity(), 0));
            *sum = sum.saturating_add(len);
        };
        match len_by_reason {
            Some(lens) => lens
                .iter()
                .try_for_each(|(name, &len)| reason_named(name).map(|reason| add(reason, len)))?,
            None => skipped.iter().for_each(|region| add(region.reason, region.len())),
        }
        Ok(Report {
            format: format_of(dialect, log_number, compression)?,
            counts: Counts {
                record_count,
                salvaged_count,
                payload_len,
                file_len,
                outcome,
                other_log_number,
            },
            skipped: PyTuple::new(py, skipped)?.unbind(),
            lens,
            not_kept: PyTuple::new(py, not_kept.unwrap_or_default())?.unbind(),
            path,
        })
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<NewArgs<'py>> {
        new_args(
            slf,
            &[
                "dialect",
                "record_count",
                "payload_len",
                "file_len",
                "outcome",
                "log_number",
                "compression",
                "salvaged_count",
                "skipped",
                "len_by_reason",
                "other_log_number",
                "not_kept",
                "path",
            ],
        )
    }

    /// The dialect of the log, such as `"leveldb"`.
    #[getter]
    fn dialect(&self) -> &'static str {
        self.format.dialect.name()
    }

    /// The number of the log; `None` if the dialect has none or it is not known.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.format.log_number
    }

    /// How each record is compressed: `"zstd"`; `None`: not at all.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        compression_name(self.format)
    }

    /// Whether no damage was found: no region of severity `"corruption"`. Torn tails do not count.
    #[getter]
    fn ok(&self) -> bool {
        self.len_of(Severity::Corruption) == 0
    }

    /// Records that were returned.
    #[getter]
    fn record_count(&self) -> u64 {
        self.counts.record_count
    }

    /// How many of these begin after damage in the same block: only under the policy `"salvage"`.
    #[getter]
    fn salvaged_count(&self) -> u64 {
        self.counts.salvaged_count
    }

    /// Bytes of data in the records, without headers and trailers.
    #[getter]
    fn payload_len(&self) -> u64 {
        self.counts.payload_len
    }

    /// The length of the whole file, including what is not in the range.
    ///
    /// `None` if it is not known: for an object with `read` that was not read to its end.
    #[getter]
    fn file_len(&self) -> Option<u64> {
        self.counts.file_len
    }

    /// What was not returned, in the order of the offsets: the first 100,000 regions.
    ///
    /// Each has its `bit_flip`, if one flipped bit explains it.
    ///
    /// Adjacent regions are one, if the reason with all its details is the same and no flipped bit
    /// explains either.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> Py<PyTuple> {
        self.skipped.clone_ref(py)
    }

    /// Bytes in all regions, listed or not.
    #[getter]
    fn skipped_len(&self) -> u64 {
        self.lens.values().map(|(_, len)| len).sum()
    }

    /// Bytes in the regions of each severity that occurs.
    #[getter]
    fn len_by_severity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for severity in [Severity::Info, Severity::TornTail, Severity::Corruption] {
            let len = self.len_of(severity);
            if len > 0 {
                lens.set_item(severity_object(py, severity)?, len)?;
            }
        }
        Ok(lens)
    }

    /// Bytes in the regions with each reason that occurs.
    #[getter]
    fn len_by_reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for (name, (_, len)) in &self.lens {
            lens.set_item(reason_object(py, name)?, len)?;
        }
        Ok(lens)
    }

    /// How reading ended.
    #[getter]
    fn outcome(&self) -> Outcome {
        self.counts.outcome
    }

    /// The number of another log, if the whole file belongs to it; else `None`.
    ///
    /// The file's name, or `log_number`, has this log's number: the file was recycled and nothing
    /// has been written to this log yet, or it was renamed or copied.
    #[getter]
    fn other_log_number(&self) -> Option<u32> {
        self.counts.other_log_number
    }

    /// What `salvage` could not keep in the new log; empty after `verify`.
    ///
    /// `"synced_offsets"`: how far the file had been synced, as some records of Pebble state.
    /// `"bad_metadata"` and `"ignored_kinds"`: metadata that no engine writes like this, or of an
    /// unknown type. `"compression"`: this build does not compress.
    #[getter]
    fn not_kept(&self, py: Python<'_>) -> Py<PyTuple> {
        self.not_kept.clone_ref(py)
    }

    /// The path, if the source was one; else `None`.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    /// What a notebook shows: a table, in HTML.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf, "of_report")
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Report>() else {
            return Ok(false);
        };
        let other = other.get();
        Ok(self.format == other.format
            && self.counts == other.counts
            && self.lens == other.lens
            && self.not_kept.bind(py).eq(&other.not_kept)?
            && self.skipped.bind(py).eq(&other.skipped)?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.counts.hash(&mut hasher);
        self.skipped.bind(py).hash()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Report { counts, skipped, .. } = self;
        let ok = if self.ok() { "True" } else { "False" };
        format!(
            "<cordwood.Report: ok={ok}, record_count={}, skipped={}, outcome={}>",
            counts.record_count,
            skipped.bind(py).len(),
            counts.outcome.__repr__()
        )
    }
}

/// The HTML of a report for a notebook.
fn html<'py>(report: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = report.py().import("cordwood._html")?;
    module.getattr(function)?.call1((report,))
}

/// The path of a log, which does not count for equality.
struct Source(Option<PathBuf>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

/// What is in a log, in numbers: what `stat` returns.
///
/// `stored_len`, `header_len`, `trailer_len` and `skipped_len` add up to `file_len`. The
/// constructor takes the attributes as keywords, without `record_len_mean` and `block_count`, which
/// follow from the others. Two are equal if everything but the paths is. A notebook shows a table.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> stat = cordwood.stat("example.log")
/// >>> stat
/// <cordwood.Stat: record_count=2, payload_len=6, outcome=Outcome(kind='clean', offset=20)>
/// >>> stat.stored_len, stat.header_len, stat.file_len
/// (6, 14, 20)
#[pyclass(frozen, module = "cordwood", eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct Stat {
    format: cordwood::LogFormat,
    /// Records that were returned.
    #[pyo3(get)]
    record_count: u64,
    /// Bytes of data in the records.
    #[pyo3(get)]
    payload_len: u64,
    /// Bytes of data as they are stored: fewer than `payload_len` in a compressed log.
    #[pyo3(get)]
    stored_len: u64,
    /// Bytes of the headers of the records' fragments.
    #[pyo3(get)]
    header_len: u64,
    /// Bytes of the shortest record; `None` if there is none.
    #[pyo3(get)]
    record_len_min: Option<u64>,
    /// Bytes of the longest record; `None` if there is none.
    #[pyo3(get)]
    record_len_max: Option<u64>,
    /// FULL fragments of the records: records in one piece.
    #[pyo3(get)]
    full_count: u64,
    /// FIRST fragments of the records.
    #[pyo3(get)]
    first_count: u64,
    /// MIDDLE fragments of the records.
    #[pyo3(get)]
    middle_count: u64,
    /// LAST fragments of the records.
    #[pyo3(get)]
    last_count: u64,
    /// Bytes of trailers: at the ends of blocks, too few for a header.
    #[pyo3(get)]
    trailer_len: u64,
    /// Bytes that were not returned, for whatever reason: `verify` says which.
    #[pyo3(get)]
    skipped_len: u64,
    /// Bytes of these in regions of `Severity.CORRUPTION`.
    #[pyo3(get)]
    damaged_len: u64,
    /// The length of the file in bytes; `None` if it is not known.
    #[pyo3(get)]
    file_len: Option<u64>,
    /// How reading ended.
    #[pyo3(get)]
    outcome: Outcome,
    /// The number of another log, if the whole file belongs to it; else `None`.
    ///
    /// The file's name, or `log_number`, has this log's number: the file was recycled and nothing
    /// has been written to this log yet, or it was renamed or copied.
    #[pyo3(get)]
    other_log_number: Option<u32>,
    path: Source,
}

impl Stat {
    fn of(stat: verbs::Stat, path: Option<PathBuf>) -> Self {
        Stat {
            format: stat.format,
            record_count: stat.record_count,
            payload_len: stat.payload_len,
            stored_len: stat.stored_len,
            header_len: stat.header_len,
            record_len_min: stat.record_len_min,
            record_len_max: stat.record_len_max,
            full_count: stat.full_count,
            first_count: stat.first_count,
            middle_count: stat.middle_count,
            last_count: stat.last_count,
            trailer_len: stat.trailer_len,
            skipped_len: stat.skipped_len,
            damaged_len: stat.damaged_len,
            file_len: stat.file_len,
            outcome: Outcome::from(stat.end),
            other_log_number: stat.other_log_number,
            path: Source(path),
        }
    }
}

#[pymethods]
impl Stat {
    #[new]
    #[pyo3(signature = (
        *, dialect, record_count, payload_len, file_len, outcome, log_number = None, compression = None, stored_len = 0,
        header_len = 0, record_len_min = None, record_len_max = None, full_count = 0, first_count = 0, middle_count = 0, last_count = 0, trailer_len = 0,
        skipped_len = 0, damaged_len = 0, other_log_number = None, path = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        dialect: &str,
        record_count: u64,
        payload_len: u64,
        file_len: Option<u64>,
        outcome: Outcome,
        log_number: Option<u32>,
        compression: Option<&str>,
        stored_len: u64,
        header_len: u64,
        record_len_min: Option<u64>,
        record_len_max: Option<u64>,
        full_count: u64,
        first_count: u64,
        middle_count: u64,
        last_count: u64,
        trailer_len: u64,
        skipped_len: u64,
        damaged_len: u64,
        other_log_number: Option<u32>,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        Ok(Stat {
            format: format_of(dialect, log_number, compression)?,
            record_count,
            payload_len,
            stored_len,
            header_len,
            record_len_min,
            record_len_max,
            full_count,
            first_count,
            middle_count,
            last_count,
            trailer_len,
            skipped_len,
            damaged_len,
            file_len,
            outcome,
            other_log_number,
            path: Source(path),
        })
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<NewArgs<'py>> {
        new_args(
            slf,
            &[
                "dialect",
                "record_count",
                "payload_len",
                "file_len",
                "outcome",
                "log_number",
                "compression",
                "stored_len",
                "header_len",
                "record_len_min",
                "record_len_max",
                "full_count",
                "first_count",
                "middle_count",
                "last_count",
                "trailer_len",
                "skipped_len",
                "damaged_len",
                "other_log_number",
                "path",
            ],
        )
    }

    /// The dialect of the log, such as `"leveldb"`.
    #[getter]
    fn dialect(&self) -> &'static str {
        self.format.dialect.name()
    }

    /// The number of the log; `None` if the dialect has none or it is not known.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.format.log_number
    }

    /// How each record is compressed: `"zstd"`; `None`: not at all.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        compression_name(self.format)
    }

    /// Mean length of a record in bytes; `None` if there is none.
    #[getter]
    fn record_len_mean(&self) -> Option<f64> {
        (self.record_count > 0).then(|| self.payload_len as f64 / self.record_count as f64)
    }

    /// Blocks of 32 KiB in the file, including a partial last one; `None` if `file_len` is.
    #[getter]
    fn block_count(&self) -> Option<u64> {
        self.file_len.map(|len| len.div_ceil(BLOCK_LEN as u64))
    }

    /// The path, if the source was one; else `None`.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.0.as_deref().map(Path::as_os_str)
    }

    /// What a notebook shows: a table, in HTML.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf, "of_stat")
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let lens = (self.payload_len, self.header_len, self.skipped_len, self.file_len);
        (self.record_count, lens, self.outcome).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Stat {
            record_count,
            payload_len,
            outcome,
            ..
        } = self;
        let outcome = outcome.__repr__();
        format!("<cordwood.Stat: record_count={record_count}, payload_len={payload_len}, outcome={outcome}>")
    }
}

/// The one bit that explains damage: flipped back, it makes the fragment's checksum valid.
///
/// `SkippedRegion.bit_flip` gives it. The constructor takes the attributes as keywords.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(7), file.write(b"O")
/// >>> cordwood.verify("example.log").skipped[0].bit_flip
/// BitFlip(offset=7, bit=5, part='payload')
#[pyclass(frozen, module = "cordwood", eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BitFlip {
    offset: u64,
    bit: u8,
    part: &'static str,
}

impl From<cordwood::damage::BitFlip> for BitFlip {
    fn from(flip: cordwood::damage::BitFlip) -> Self {
        BitFlip {
            offset: flip.offset,
            bit: flip.bit,
            part: flip.part.as_str(),
        }
    }
}

#[pymethods]
impl BitFlip {
    #[new]
    #[pyo3(signature = (*, offset, bit, part))]
    fn new(offset: u64, bit: u8, part: &str) -> PyResult<Self> {
        if bit > 7 {
            return Err(PyValueError::new_err(format!("bit must be from 0 to 7, not {bit}")));
        }
        let parts = ["checksum", "length", "kind", "log_number", "synced_offset", "payload"];
        let part = static_name(&parts, part, "part of a fragment")?;
        Ok(BitFlip { offset, bit, part })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "bit", "part")
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<NewArgs<'py>> {
        new_args(slf, &["offset", "bit", "part"])
    }

    /// File offset of the byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// Which bit of it: 0 is the lowest, 7 the highest.
    #[getter]
    fn bit(&self) -> u8 {
        self.bit
    }

    /// The part of the fragment to which the byte belongs.
    #[getter]
    fn part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static PART: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        PART.import(py, "cordwood.types", "FragmentPart")?.call1((self.part,))
    }

    fn __repr__(&self) -> String {
        let BitFlip { offset, bit, part } = self;
        format!("BitFlip(offset={offset}, bit={bit}, part='{part}')")
    }
}
