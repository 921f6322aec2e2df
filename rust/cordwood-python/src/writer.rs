//! The class `Writer`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::time::Duration;

use cordwood::{BLOCK_LEN, FlushPolicy, LogFile, LogFileOptions, LogStatus, OnTornTail, Process, SyncPolicy};
use pyo3::exceptions::{PyResourceWarning, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyBytes, PyList};

use crate::arguments::{name, number, optional_number, unknown_name};
use crate::bytes::{KeptException, new_int};
use crate::dialect::dialect_of;
use crate::error::{opening_to_python, os_error, to_python};
use crate::event::SkippedRegion;
use crate::exclusive::Exclusive;
use crate::source::{ObjectOutput, bytes_of, path_of, refuse_text};

/// From so many bytes on that wait to be written, `append` releases the interpreter: the buffer is about to be written out.
const DETACH_LEN: usize = (1 << 20) - BLOCK_LEN;

/// What `extend` takes before it appends: little enough to stay in the processor's cache.
const BATCH_LEN: usize = 128 << 10;
const BATCH_COUNT: usize = 1024;

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each writer, and most are files"
)]
enum Sink {
    /// A file that we have opened. It has a lock of its own, which no thread holds while it waits for the disk to sync.
    File(LogFile),
    /// An object with `write`.
    Object(Exclusive<Object>),
}

struct Object {
    /// `None` when it is closed.
    writer: Option<cordwood::Writer<ObjectOutput>>,
    durable_offset: u64,
}

impl Object {
    fn writer(&mut self) -> PyResult<&mut cordwood::Writer<ObjectOutput>> {
        self.writer.as_mut().ok_or_else(closed)
    }

    fn append(&mut self, py: Python<'_>, record: &[u8]) -> PyResult<u64> {
        let writer = self.writer()?;
        let appended = if writer.buffered_len() + record.len() >= DETACH_LEN {
            py.detach(|| writer.append(record))
        } else {
            writer.append(record)
        };
        appended.map_err(|error| append_error(py, error))
    }

    fn sync(&mut self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        let synced = py.detach(|| {
            if !writer.has_failed() {
                writer.get_mut().check_sync()?;
            }
            writer.sync_with(|sink| sink.sync())
        });
        synced.map_err(|error| os_error(error, None))?;
        self.durable_offset = writer.offset();
        Ok(())
    }
}

/// Writes records to a log.
#[pyclass(frozen, weakref, subclass, module = "cordwood")]
pub(crate) struct Writer {
    sink: Sink,
    path: Option<PathBuf>,
    recovered_tail: Option<cordwood::SkippedRegion>,
    /// The process that opened it.
    owner: u64,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        sink, mode = "x", *, dialect = None, flush = None, sync = "never", sync_len = None, sync_interval = None, on_torn_tail = "refuse", checkpoint = None,
        preallocate_len = 0, record_len_max = 1_073_741_824
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        sink: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = mode_name)] mode: &str,
        dialect: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = flush_name)] flush: Option<&str>,
        #[pyo3(from_py_with = sync_name)] sync: &str,
        #[pyo3(from_py_with = optional_number)] sync_len: Option<u64>,
        sync_interval: Option<f64>,
        #[pyo3(from_py_with = on_torn_tail_name)] on_torn_tail: &str,
        #[pyo3(from_py_with = optional_number)] checkpoint: Option<u64>,
        #[pyo3(from_py_with = number)] preallocate_len: u64,
        #[pyo3(from_py_with = number)] record_len_max: u64,
    ) -> PyResult<Self> {
        if !matches!(mode, "x" | "w" | "a") {
            return Err(unknown_name(MODE, mode));
        }
        let options = LogFileOptions::default()
            .with_sync(sync_policy_of(sync, sync_len, sync_interval)?)
            .with_on_torn_tail(on_torn_tail_of(on_torn_tail)?)
            .with_checkpoint(checkpoint)
            .with_preallocate_len(preallocate_len)
            .with_record_len_max(record_len_max)
            .with_dialect(dialect_of(dialect)?);
        if mode != "a" && (options.on_torn_tail != OnTornTail::Refuse || checkpoint.is_some()) {
            return Err(PyValueError::new_err(
                "on_torn_tail and checkpoint are for mode 'a', which reads the log that is there",
            ));
        }
        let flush = flush.map(flush_policy_of).transpose()?;
        match path_of(sink)? {
            Some(path) => Self::open(sink.py(), path, mode, options.with_flush(flush.unwrap_or_default())),
            None if flush.is_some() => Err(PyValueError::new_err(NEEDS_A_PATH)),
            None => Self::with_object(sink, mode, &options),
        }
    }

    #[pyo3(signature = (record, /, *, sync = false))]
    pub(crate) fn append<'py>(&self, record: &Bound<'py, PyAny>, sync: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = record.py();
        let offset = match record.cast::<PyBytes>() {
            Ok(bytes) => self.append_bytes(py, bytes.as_bytes(), sync)?,
            Err(_) => self.append_bytes(py, &bytes_of(record)?, sync)?,
        };
        new_int(py, offset)
    }

    #[pyo3(signature = (records, /))]
    fn extend(&self, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = records.py();
        // What a list gives is known without asking it, which costs as much as a short record.
        match records.cast_exact::<PyList>() {
            Ok(list) => self.extend_from(py, list.iter().map(Ok)),
            Err(_) => self.extend_from(py, records.try_iter()?),
        }
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        match &self.sink {
            Sink::File(log) => match status(py, log) {
                LogStatus { is_closed: true, .. } => Err(closed()),
                LogStatus { offset, .. } => Ok(offset),
            },
            Sink::Object(object) => Ok(self.asked(py, object)?.writer()?.offset()),
        }
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        match &self.sink {
            Sink::File(log) => py.detach(|| log.flush()).map_err(|error| self.raised(py, error)),
            Sink::Object(object) => {
                let mut state = self.object(py, object)?;
                let _owner = object.may_run_python();
                let writer = state.writer()?;
                py.detach(|| writer.flush()).map_err(|error| os_error(error, None))
            }
        }
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        match &self.sink {
            Sink::File(log) => py.detach(|| log.sync()).map_err(|error| self.raised(py, error)),
            Sink::Object(object) => {
                let mut state = self.object(py, object)?;
                let _owner = object.may_run_python();
                state.sync(py)
            }
        }
    }

    #[getter]
    fn durable_offset(&self, py: Python<'_>) -> PyResult<u64> {
        match &self.sink {
            Sink::File(log) => Ok(status(py, log).durable_offset),
            Sink::Object(object) => Ok(self.asked(py, object)?.durable_offset),
        }
    }

    #[getter]
    fn recovered_tail(&self) -> Option<SkippedRegion> {
        self.recovered_tail.map(SkippedRegion::from)
    }

    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.sink {
            Sink::File(log) => Ok(status(py, log).is_closed),
            Sink::Object(object) => Ok(self.asked(py, object)?.writer.is_none()),
        }
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match &self.sink {
            Sink::File(log) => py.detach(|| log.close()).map_err(|error| self.raised(py, error)),
            // A copy in a forked child: what it holds is for the process that opened it to write.
            Sink::Object(object) if self.is_forked() => {
                if let Some(mut state) = object.try_lock() {
                    state.writer = None;
                }
                Ok(())
            }
            Sink::Object(object) => {
                let writer = object.lock(py)?.writer.take();
                match writer {
                    // Without the lock: to write to an object runs Python code. And attached, because at the end of the program, when the garbage
                    // collector finds what nobody closed, whoever lets go of the interpreter does not get it back.
                    Some(mut writer) => writer.finish().map_err(|error| os_error(error, None)),
                    None => Ok(()),
                }
            }
        }
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().tell(py)?;
        Ok(slf)
    }

    /// The garbage collector calls it for objects of a cycle while all of them are still whole: a sink that holds its writer can be
    /// written to. What is not in a cycle is [dropped](Drop).
    fn __del__(&self, py: Python<'_>) {
        if self.is_unclosed() {
            self.finalize(py);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.sink {
            Sink::File(_) => Ok(()),
            // Who uses the writer now holds it, and so all that it refers to.
            Sink::Object(object) => match object.try_lock().as_deref_mut() {
                Some(Object {
                    writer: Some(writer), ..
                }) => visit.call(&writer.get_mut().0),
                _ => Ok(()),
            },
        }
    }

    fn __clear__(&self) {
        if let Sink::Object(object) = &self.sink {
            let writer = object.try_lock().and_then(|mut object| object.writer.take());
            // Without the lock: to drop an object may run Python code.
            drop(writer);
        }
    }

    #[pyo3(signature = (exc_type, _exc, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let had_failed = match &self.sink {
            Sink::File(log) => status(py, log).has_failed,
            // Closing a copy does nothing, and cannot fail.
            Sink::Object(_) if self.is_forked() => false,
            Sink::Object(object) => object
                .lock(py)?
                .writer
                .as_ref()
                .is_some_and(cordwood::Writer::has_failed),
        };
        match self.close(py) {
            // What failed has been raised already, and is on its way.
            Err(_) if had_failed && !exc_type.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        match &self.path {
            Some(path) => format!("<cordwood.Writer of {:?}>", path.display().to_string()),
            None => "<cordwood.Writer>".to_owned(),
        }
    }
}

impl Writer {
    fn open(py: Python<'_>, path: PathBuf, mode: &str, options: LogFileOptions) -> PyResult<Self> {
        // The file is read, which may take long.
        let interrupted = || Python::attach(|py| py.check_signals().map_err(io::Error::from));
        let log = py
            .detach(|| match mode {
                "x" => LogFile::create_new(&path, options),
                "w" => LogFile::create(&path, options),
                _ => LogFile::append_to_unless(&path, options, &interrupted),
            })
            .map_err(|error| opening_to_python(py, error, &path))?;
        Ok(Writer {
            owner: Process::current().number(),
            recovered_tail: log.recovered_tail(),
            sink: Sink::File(log),
            path: Some(path),
        })
    }

    fn with_object(sink: &Bound<'_, PyAny>, mode: &str, options: &LogFileOptions) -> PyResult<Self> {
        if !sink.hasattr(intern!(sink.py(), "write"))? {
            let name = sink.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "sink must be a path or an object with write(data), not {name}"
            )));
        }
        if mode == "a" {
            return Err(PyValueError::new_err(
                "mode 'a' needs a path: the log has to be read before it is appended to",
            ));
        }
        let for_any_sink = LogFileOptions::default()
            .with_dialect(options.dialect)
            .with_record_len_max(options.record_len_max);
        if *options != for_any_sink {
            return Err(PyValueError::new_err(NEEDS_A_PATH));
        }
        refuse_text(sink)?;
        let dialect = options.dialect.unwrap_or(cordwood::Dialect::LEVELDB);
        let writer = cordwood::Writer::with_dialect(ObjectOutput(sink.clone().unbind()), 0, dialect);
        Ok(Writer {
            sink: Sink::Object(Exclusive::new(Object {
                writer: Some(writer.with_record_len_max(options.record_len_max)),
                durable_offset: 0,
            })),
            path: None,
            recovered_tail: None,
            owner: Process::current().number(),
        })
    }

    fn extend_from<'py>(
        &self,
        py: Python<'py>,
        mut records: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<u64> {
        let mut count = 0;
        loop {
            // Taken from the iterable without the lock, since that runs Python code; then appended in one go.
            let mut batch = Batch::default();
            let taken = batch.take_from(&mut records);
            if !batch.records.is_empty() {
                let slices: Vec<&[u8]> = batch.records.iter().map(|record| record.as_bytes()).collect();
                self.append_all(py, &slices)?;
                count += slices.len() as u64;
            }
            if taken? {
                return Ok(count);
            }
            // A long list is appended without running Python code.
            py.check_signals()?;
        }
    }

    /// Appends a record to a file if that takes no waiting; else `None`, and nothing is appended. So it is if it cannot be appended at all.
    #[inline]
    pub(crate) fn append_now(&self, record: &[u8]) -> Option<u64> {
        match &self.sink {
            Sink::File(log) => log.try_append(record).ok().flatten(),
            Sink::Object(_) => None,
        }
    }

    fn append_bytes(&self, py: Python<'_>, record: &[u8], sync: bool) -> PyResult<u64> {
        match if sync { None } else { self.append_now(record) } {
            Some(offset) => Ok(offset),
            None => self.append_slowly(py, record, sync),
        }
    }

    fn append_slowly(&self, py: Python<'_>, record: &[u8], sync: bool) -> PyResult<u64> {
        match &self.sink {
            Sink::File(log) => py
                .detach(|| {
                    if sync {
                        log.append_sync(record)
                    } else {
                        log.append(record)
                    }
                })
                .map_err(|error| self.raised(py, error)),
            Sink::Object(object) => {
                let mut state = self.object(py, object)?;
                let _owner = object.may_run_python();
                let offset = state.append(py, record)?;
                if sync {
                    state.sync(py)?;
                }
                Ok(offset)
            }
        }
    }

    fn append_all(&self, py: Python<'_>, records: &[&[u8]]) -> PyResult<()> {
        match &self.sink {
            Sink::File(log) => {
                py.detach(|| log.extend(records))
                    .map_err(|error| self.raised(py, error))?;
                Ok(())
            }
            Sink::Object(object) => {
                let mut state = self.object(py, object)?;
                let _owner = object.may_run_python();
                let writer = state.writer()?;
                py.detach(|| records.iter().try_for_each(|record| writer.append(record).map(drop)))
                    .map_err(|error| append_error(py, error))
            }
        }
    }

    /// Whether this is the copy that a forked child has.
    fn is_forked(&self) -> bool {
        Process::current().number() != self.owner
    }

    /// The writer to an object, in the process that opened it.
    fn object<'a>(&self, py: Python<'_>, object: &'a Exclusive<Object>) -> PyResult<MutexGuard<'a, Object>> {
        if self.is_forked() {
            return Err(self.raised(py, cordwood::Error::Forked { path: None }));
        }
        object.lock(py)
    }

    /// The state of the writer to an object, to be looked at: in a forked child, too, unless another thread of the process that was copied held it,
    /// for which nobody would ever give it up.
    fn asked<'a>(&self, py: Python<'_>, object: &'a Exclusive<Object>) -> PyResult<MutexGuard<'a, Object>> {
        match object.try_lock() {
            Some(state) => Ok(state),
            None => self.object(py, object),
        }
    }

    /// Whether there is somebody left who has to close it; not if somebody uses it now, nor in a forked child.
    fn is_unclosed(&self) -> bool {
        if self.is_forked() {
            return false;
        }
        match &self.sink {
            Sink::File(log) => !log.is_closed(),
            Sink::Object(object) => object.try_lock().is_some_and(|object| object.writer.is_some()),
        }
    }

    /// Closes a writer that nobody closed, and warns. What fails is shown, since nobody is there to raise it to.
    fn finalize(&self, py: Python<'_>) {
        let closed = self.close(py);
        let message = format!("unclosed writer {}\0", self.__repr__());
        let warned = std::ffi::CStr::from_bytes_until_nul(message.as_bytes()).map_or(Ok(()), |message| {
            PyErr::warn(py, &py.get_type::<PyResourceWarning>(), message, 1)
        });
        for error in [closed, warned].into_iter().filter_map(Result::err) {
            error.write_unraisable(py, None);
        }
    }

    #[cold]
    fn raised(&self, py: Python<'_>, error: cordwood::Error) -> PyErr {
        to_python(py, error, self.path.as_deref())
    }
}

const NEEDS_A_PATH: &str = "flush, sync, sync_len, sync_interval and preallocate_len need a path: they are about a file on disk; \
     flush() and sync() work for an object";

/// Why a record was not appended to an object.
#[cold]
fn append_error(py: Python<'_>, error: io::Error) -> PyErr {
    match error.downcast::<cordwood::Error>() {
        Ok(error) => to_python(py, error, None),
        Err(error) => os_error(error, None),
    }
}

#[cold]
fn closed() -> PyErr {
    PyValueError::new_err("the writer is closed")
}

/// Another thread may have the log while it writes. The interpreter is only given up for that: whoever gives it up may wait for long to get it back.
fn status(py: Python<'_>, log: &LogFile) -> LogStatus {
    log.try_status().unwrap_or_else(|| py.detach(|| log.status()))
}

/// The policy that the three options name together.
const MODE: &str = "mode must be 'r', 'w', 'x' or 'a' to open a log";
const SYNC: &str = "sync must be 'never', 'close' or 'append'";
const FLUSH: &str = "flush must be 'append' or 'close'";
const ON_TORN_TAIL: &str = "on_torn_tail must be 'refuse', 'truncate' or 'pad'";

fn mode_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, MODE)
}

fn sync_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, SYNC)
}

fn flush_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a str>> {
    (!value.is_none()).then(|| name(value, FLUSH)).transpose()
}

fn on_torn_tail_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, ON_TORN_TAIL)
}

fn sync_policy_of(sync: &str, sync_len: Option<u64>, sync_interval: Option<f64>) -> PyResult<SyncPolicy> {
    let policy = match sync {
        "never" => SyncPolicy::Never,
        "close" => SyncPolicy::OnClose,
        "append" => SyncPolicy::EveryAppend,
        other => return Err(unknown_name(SYNC, other)),
    };
    match (policy, sync_len, sync_interval) {
        (_, None, None) => Ok(policy),
        (SyncPolicy::Never, Some(len), None) => Ok(SyncPolicy::EveryBytes(len)),
        (SyncPolicy::Never, None, Some(seconds)) => match Duration::try_from_secs_f64(seconds) {
            Ok(interval) => Ok(SyncPolicy::EveryInterval(interval)),
            Err(_) => Err(PyValueError::new_err(format!(
                "sync_interval must be a number of seconds, not {seconds}"
            ))),
        },
        _ => Err(PyValueError::new_err(
            "of sync, sync_len and sync_interval only one can be given",
        )),
    }
}

fn flush_policy_of(name: &str) -> PyResult<FlushPolicy> {
    match name {
        "append" => Ok(FlushPolicy::EveryAppend),
        "close" => Ok(FlushPolicy::OnClose),
        other => Err(unknown_name(FLUSH, other)),
    }
}

fn on_torn_tail_of(name: &str) -> PyResult<OnTornTail> {
    match name {
        "refuse" => Ok(OnTornTail::Refuse),
        "truncate" => Ok(OnTornTail::Truncate),
        "pad" => Ok(OnTornTail::PadToBlock),
        other => Err(unknown_name(ON_TORN_TAIL, other)),
    }
}

/// Records that `extend` appends in one go, with the interpreter released.
#[derive(Default)]
struct Batch<'py> {
    records: Vec<Bound<'py, PyBytes>>,
    len: usize,
}

impl<'py> Batch<'py> {
    /// Takes some records, and says whether there are no more. If taking one fails, those before are there.
    fn take_from(&mut self, records: &mut impl Iterator<Item = PyResult<Bound<'py, PyAny>>>) -> PyResult<bool> {
        self.records.reserve(records.size_hint().0.min(BATCH_COUNT));
        while self.len < BATCH_LEN && self.records.len() < BATCH_COUNT {
            let Some(record) = records.next() else { return Ok(true) };
            let record = record?;
            let bytes = match record.cast_into::<PyBytes>() {
                Ok(bytes) => bytes,
                Err(other) => {
                    let other = other.into_inner();
                    PyBytes::new(other.py(), &bytes_of(&other)?)
                }
            };
            self.len += bytes.as_bytes().len();
            self.records.push(bytes);
        }
        Ok(false)
    }
}

/// A writer that nobody closed writes what it has, as Python's own files do, and warns.
impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_unclosed() {
            return;
        }
        // At the very end of the interpreter there is nobody left to warn.
        let _ = Python::try_attach(|py| {
            // A writer may be dropped because an exception is on its way. Python allows no call while one is set.
            let _kept = KeptException::new(py);
            self.finalize(py);
        });
    }
}
