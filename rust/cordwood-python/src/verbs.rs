//! The functions `verify`, `salvage` and `stat`, and the classes `Report`, `Stat` and `BitFlip` that they return.

use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cordwood::{OnCorruption, ReadOptions, Severity, StreamSource, verbs};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::arguments::{name, number, optional_number, unknown_name};
use crate::dialect::{Dialect, dialect_of};
use crate::error::{os_error, to_python};
use crate::event::{End, SkippedRegion, listed, reason_object, severity_object};
use crate::reader::threads_of;
use crate::source::{Input, InputSource, Opened, OpenedReader, open, open_reader, path_of, source_at};

/// A source that looks for Ctrl-C at each read, since the work is done with the interpreter released, and tells how far it has come. In a thread that is
/// not Python's main one there is no Ctrl-C to see: it stops when another one has seen it.
struct Watched {
    input: Box<dyn Input>,
    watch: Arc<Watch>,
}

/// What all threads that read one log have in common.
struct Watch {
    /// Called with the number of bytes of each read.
    progress: Option<Py<PyAny>>,
    is_stopped: AtomicBool,
    /// What `progress` or a signal's handler raised first.
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

    /// Fails, and lets all threads fail at their next read, if `result` is an exception.
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

    /// Does `work`, which reads [`Watched`] sources, with the interpreter released. If there are several, this thread only waits, and looks for
    /// Ctrl-C.
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
                        // Nobody waits if there is nobody: that cannot be.
                        let _ = sender.send(());
                        done
                    });
                    let thread = thread.map_err(|source| cordwood::Error::Io { path: None, source })?;
                    while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PAUSE) {
                        // The threads see what was raised.
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
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, on_corruption = "skip", start = 0, end = None, verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python function")]
pub(crate) fn verify(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] threads: usize,
    dialect: Option<&Bound<'_, PyAny>>,
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
        .with_range(start, end)
        .with_verify_checksums(verify_checksums)
        .with_record_len_max(record_len_max);
    options.dialect = dialect_of(dialect)?;
    let watch = Watch::new(progress);
    let (readers, path) = readers(source, options, threads, &watch)?;
    let report = watch.run(py, readers.len(), || verbs::verify_ranges(readers))?;
    report
        .map(Report)
        .map_err(|error| to_python(py, error, path.as_deref()))
}

type WatchedReader = cordwood::Reader<StreamSource<Watched>>;

/// A reader for each of `threads` parts of `source`, or one for all of it if its length is not known; and its path, if it has one.
fn readers(
    source: &Bound<'_, PyAny>,
    options: ReadOptions,
    threads: usize,
    watch: &Arc<Watch>,
) -> PyResult<(Vec<WatchedReader>, Option<PathBuf>)> {
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
        let dialect = py.detach(|| whole.dialect());
        options.dialect = Some(dialect.map_err(|error| to_python(py, error, path.as_deref()))?);
    }
    let ranges = verbs::split_ranges(&options, whole.file_len(), threads);
    let Some(another) = another.filter(|_| ranges.len() > 1) else {
        return Ok((vec![whole.map_source(|source| watched(source, watch))], path));
    };
    let dialect = whole.dialect();
    let dialect = dialect.map_err(|error| to_python(py, error, path.as_deref()))?;
    let part = |range: ReadOptions| {
        let input = another.another().ok_or(io::ErrorKind::Unsupported)?;
        let source = source_at(input, dialect.block_begin(range.start))?;
        Ok(cordwood::Reader::with_source(watched(source, watch), range).with_path(path.clone()))
    };
    let parts = ranges.into_iter().map(part).collect::<io::Result<_>>();
    Ok((parts.map_err(|error| os_error(error, path.as_deref()))?, path))
}

/// Writes what can be read of a damaged log to a new one.
#[pyfunction]
#[pyo3(signature = (source, destination, *, dialect = None, record_len_max = 1_073_741_824, progress = None))]
pub(crate) fn salvage(
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    dialect: Option<&Bound<'_, PyAny>>,
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
    options.dialect = dialect_of(dialect)?;
    let Opened { source, path, .. } = open(source, 0)?;
    let watch = Watch::new(progress);
    let source = watched(source, &watch);
    let report = watch.run(py, 1, || {
        verbs::salvage_source(source, path.as_deref(), &destination, &options)
    })?;
    report.map(Report).map_err(|error| match error {
        // It concerns the destination.
        cordwood::Error::Io {
            path: Some(path),
            source,
        } => os_error(source, Some(&path)),
        error => to_python(py, error, path.as_deref()),
    })
}

/// Counts what is in a log.
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, on_corruption = "skip", verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
))]
pub(crate) fn stat(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] threads: usize,
    dialect: Option<&Bound<'_, PyAny>>,
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
    options.dialect = dialect_of(dialect)?;
    let watch = Watch::new(progress);
    let (readers, path) = readers(source, options, threads, &watch)?;
    let stat = watch.run(py, readers.len(), || verbs::stat_ranges(readers))?;
    stat.map(Stat).map_err(|error| to_python(py, error, path.as_deref()))
}

/// What is in a log, and what is wrong with it.
#[pyclass(frozen, module = "cordwood", eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct Report(verbs::Report);

#[pymethods]
impl Report {
    #[getter]
    fn dialect(&self) -> Dialect {
        Dialect(self.0.dialect)
    }

    #[getter]
    fn ok(&self) -> bool {
        self.0.is_ok()
    }

    #[getter]
    fn record_count(&self) -> u64 {
        self.0.record_count
    }

    #[getter]
    fn salvaged_count(&self) -> u64 {
        self.0.salvaged_count
    }

    #[getter]
    fn payload_len(&self) -> u64 {
        self.0.payload_len
    }

    #[getter]
    fn file_len(&self) -> Option<u64> {
        self.0.file_len
    }

    #[getter]
    fn skipped(&self) -> Vec<SkippedRegion> {
        listed(&self.0.findings)
    }

    #[getter]
    fn skipped_len(&self) -> u64 {
        self.0.findings.len()
    }

    #[getter]
    fn len_by_severity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for severity in [Severity::Info, Severity::TornTail, Severity::Corruption] {
            let len = self.0.findings.len_of(severity);
            if len > 0 {
                lens.set_item(severity_object(py, severity)?, len)?;
            }
        }
        Ok(lens)
    }

    #[getter]
    fn len_by_reason<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lens = PyDict::new(py);
        for (name, _, len) in self.0.findings.lens() {
            lens.set_item(reason_object(py, name)?, len)?;
        }
        Ok(lens)
    }

    #[getter]
    fn end(&self) -> End {
        End::from(self.0.end)
    }

    #[getter]
    fn other_log_number(&self) -> Option<u32> {
        self.0.other_log_number
    }

    #[getter]
    fn not_kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.not_kept.iter().map(|what| what.as_str()))
    }

    fn __repr__(&self) -> String {
        let verbs::Report {
            record_count, findings, ..
        } = &self.0;
        let ok = if self.ok() { "True" } else { "False" };
        format!(
            "<cordwood.Report: ok={ok}, record_count={record_count}, skipped={}, end={}>",
            findings.listed().len(),
            self.end().__repr__()
        )
    }
}

/// What is in a log, in numbers.
#[pyclass(frozen, module = "cordwood", eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct Stat(verbs::Stat);

#[pymethods]
impl Stat {
    #[getter]
    fn dialect(&self) -> Dialect {
        Dialect(self.0.dialect)
    }

    #[getter]
    fn record_count(&self) -> u64 {
        self.0.record_count
    }

    #[getter]
    fn payload_len(&self) -> u64 {
        self.0.payload_len
    }

    #[getter]
    fn record_len_min(&self) -> Option<u64> {
        self.0.record_len_min
    }

    #[getter]
    fn record_len_max(&self) -> Option<u64> {
        self.0.record_len_max
    }

    #[getter]
    fn record_len_mean(&self) -> Option<f64> {
        self.0.record_len_mean()
    }

    #[getter]
    fn full_count(&self) -> u64 {
        self.0.full_count
    }

    #[getter]
    fn first_count(&self) -> u64 {
        self.0.first_count
    }

    #[getter]
    fn middle_count(&self) -> u64 {
        self.0.middle_count
    }

    #[getter]
    fn last_count(&self) -> u64 {
        self.0.last_count
    }

    #[getter]
    fn block_count(&self) -> Option<u64> {
        self.0.block_count()
    }

    #[getter]
    fn trailer_len(&self) -> u64 {
        self.0.trailer_len
    }

    #[getter]
    fn skipped_len(&self) -> u64 {
        self.0.skipped_len
    }

    #[getter]
    fn damaged_len(&self) -> u64 {
        self.0.damaged_len
    }

    #[getter]
    fn file_len(&self) -> Option<u64> {
        self.0.file_len
    }

    #[getter]
    fn end(&self) -> End {
        End::from(self.0.end)
    }

    #[getter]
    fn other_log_number(&self) -> Option<u32> {
        self.0.other_log_number
    }

    fn __repr__(&self) -> String {
        let verbs::Stat {
            record_count,
            payload_len,
            ..
        } = self.0;
        let end = self.end().__repr__();
        format!("<cordwood.Stat: record_count={record_count}, payload_len={payload_len}, end={end}>")
    }
}

/// The one bit that explains damage.
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BitFlip(pub(crate) cordwood::BitFlip);

#[pymethods]
impl BitFlip {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "bit", "part")
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    #[getter]
    fn bit(&self) -> u8 {
        self.0.bit
    }

    #[getter]
    fn part<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static PART: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        PART.import(py, "cordwood.types", "FragmentPart")?
            .call1((self.0.part.as_str(),))
    }

    fn __repr__(&self) -> String {
        let cordwood::BitFlip { offset, bit, part, .. } = self.0;
        format!("BitFlip(offset={offset}, bit={bit}, part='{}')", part.as_str())
    }
}
