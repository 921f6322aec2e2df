//! The class `Follower` and its iterators. For the steps of a poll, see `state.rs`.

mod state;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use cordwood::{Compression, Dialect, FollowOptions, OnCorruption};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyBytes, PyTuple};

use self::state::{OnRotation, Open, Seen, State, Taken};
use crate::exclusive::Exclusive;
use crate::interpreter::imported;
use crate::interpreter::python_code::{PythonCode, module};
use crate::reader::log::{Logged, log};
use crate::reader::skipped::Skipped;
use crate::values::arguments::{refuse_url, required_path};
use crate::values::error::{check_signals, closed, os_error, to_python};
use crate::values::options::{
    chosen, compression_name, compression_of, dialect_name, dialect_of, in_seconds, named, time_of,
};
use crate::values::position::{Position, Start};
use crate::values::record::Record;
use crate::values::shown::handle_repr;
use crate::values::{NotYet, Outcome};

/// The longest time to sleep before checking again for Ctrl-C and for a closed follower.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Follows a log that is being written. `cordwood.follow` creates a follower.
///
/// Iterating yields each record as `bytes` once it is complete, and then waits for the next one.
/// Iteration also waits at an incomplete record and at the zeros of a preallocated file. A `for`
/// loop blocks the current thread while it waits, but Ctrl-C works and other threads keep running.
/// An `async for` loop waits in the `asyncio` event loop, and reads the file in the event loop's
/// thread. The iteration ends after `timeout` seconds without a record, and a new iteration
/// continues from the same position. `next(follower)` performs one step of the iteration. A `with`
/// or `async with` statement closes the follower; a loop doesn't.
///
/// Threads may share a follower, even while one of them waits. If another thread closes the
/// follower, the waiting thread gets a `ClosedError`. After a fork, both processes can continue
/// following independently. If another thread was polling the file at the time of the fork, the
/// child cannot use its copy of the follower: `close` has no effect, and all other calls raise
/// `OSError`.
///
/// Args:
///     path: The file, which must exist but may be empty, or the directory of a segmented log. With
///         a segmented log, rotations never raise an exception and no record is missed.
///     start: Return only the records that start at or after this offset, which is a file offset in
///         bytes or the `position` of an earlier run. A position also identifies the log. If a
///         record starts before this offset, the rest of it is skipped and not reported, even if it
///         is damaged. Default: 0.
///     timeout: The longest time to wait for a record in each step of the iteration, in seconds.
///         With 0, the iteration returns the records already in the file and never waits. Default:
///         `None`, which waits forever.
///     dialect: Same as for `Reader`. The dialect is detected as soon as the file has a file header
///         or a complete fragment. `"wandb_old"` is never detected, so you must pass it explicitly.
///         Default: `None`.
///     log_number: Same as for `Reader`. Default: `None`.
///     compression: Same as for `Reader`. Default: `None`.
///     on_corruption: Same as for `Reader`, except that `"salvage"` is not supported. Default:
///         `"raise"`.
///     on_rotation: How to react to a rotation. A rotation means that the file at the path has been
///         replaced or removed. The follower reacts to this only after it has returned everything
///         in the old file. `"raise"`: raise `LogRotatedError`. `"reopen"`: wait until there is a
///         file at the path, and read it from its start. `tell`, `skipped` and `outcome` then
///         describe the new file. If a new file appears at the path and is replaced before the next
///         poll, the follower silently misses it. Use `"reopen"` only if the time between rotations
///         is much longer than `poll_interval`. `"stop"`: end the iteration for good, and report
///         the end in `outcome`. With `"reopen"` and `"stop"`, a warning is logged to the
///         `cordwood` logger if the old file ended in an incomplete record. Default: `"raise"`.
///     poll_interval: How long to sleep between polls of the file, in seconds. Default: 0.05.
///     retry_time: Apparent damage may be a write still in progress if no valid block follows it.
///         Before reporting such damage, the follower rereads the bytes at least three times, over
///         at least this many seconds. With 0, the damage is reported at once. Default: 0.1.
///     record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
///
/// Raises:
///     LogChangedError: `start` is a position in another log.
///     OSError: The file cannot be opened, or is not a regular file.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `path` is not a path.
///     ValueError: An option has an invalid value.
///
/// Both `poll` and each step of the iteration can raise:
///
/// * `CorruptionError`, `RecordTooLargeError`: the log is damaged or a record is too long, and the
///   policy is `"raise"`. The next step resumes after the damage or the record.
/// * `DialectError`: the file is not a log.
/// * `LogChangedError`: another log has replaced this one. Every later step raises this again.
/// * `LogTruncatedError`: the file is now shorter than the part already read. Every later step
///   raises this again.
/// * `LogRotatedError`: the file at the path has been replaced or removed, and everything in the
///   old file has been returned. Raised only with `on_rotation="raise"`.
/// * `OSError`: the file cannot be read. The next step tries again.
/// * `ClosedError`: the follower is closed.
///
/// >>> with cordwood.open("live.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> follower = cordwood.follow("live.log", timeout=0)
/// >>> [(record.offset, record.data) for record in follower.records()]
/// [(0, b'one')]
/// >>> follower.waiting
/// NotYet(reason='idle', offset=10, file_len=10)
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct Follower {
    state: Exclusive<State>,
    path: PathBuf,
    timeout: Option<Duration>,
}

/// The minimum number of polls before damage is reported. Even if `retry_time` is very short, a
/// partly visible write still gets time to become fully visible.
const RETRY_POLLS: u32 = 3;

#[pymethods]
impl Follower {
    #[new]
    #[pyo3(signature = (
        path, *, start = Start::default(), timeout = None, dialect = None, log_number = None, compression = None,
        on_corruption = "raise", on_rotation = "raise", poll_interval = 0.05, retry_time = 0.1,
        record_len_max = 1_073_741_824
    ), text_signature = "(path, *, start=0, timeout=None, dialect=None, log_number=None, compression=None, \
        on_corruption=\"raise\", on_rotation=\"raise\", poll_interval=0.05, retry_time=0.1, \
        record_len_max=1073741824)")]
    fn new(
        path: &Bound<'_, PyAny>,
        start: Start,
        timeout: Option<f64>,
        #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
        log_number: Option<u32>,
        #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
        on_corruption: &str,
        on_rotation: &str,
        poll_interval: f64,
        retry_time: f64,
        record_len_max: u64,
    ) -> PyResult<Self> {
        let py = path.py();
        refuse_url(path, "only a file on this machine can be followed: name its path")?;
        let path = required_path("path", path)?;
        let on_corruption = match named("on_corruption", on_corruption)? {
            OnCorruption::Salvage => {
                return Err(PyValueError::new_err(
                    "on_corruption must not be 'salvage' for a log that is still being written",
                ));
            }
            policy => policy,
        };
        let retry_time = time_of("retry_time", retry_time)?;
        let mut options = FollowOptions::default()
            .with_start(start.offset)
            .with_on_corruption(on_corruption)
            .with_poll_interval(time_of("poll_interval", poll_interval)?)
            .with_retry(if retry_time.is_zero() { 0 } else { RETRY_POLLS }, retry_time)
            .with_record_len_max(record_len_max);
        options.position = start.position;
        (options.dialect, options.log_number, options.compression) = (dialect, log_number, compression);
        let reactions = [
            ("raise", OnRotation::Raise),
            ("reopen", OnRotation::Reopen),
            ("stop", OnRotation::Stop),
        ];
        let on_rotation = chosen("on_rotation", reactions, on_rotation)?;
        let timeout = timeout.map(|timeout| time_of("timeout", timeout)).transpose()?;
        let follower = py
            .detach(|| cordwood::Follower::open_with(&path, options.clone()))
            .map_err(|error| to_python(py, error, Some(&path)))?;
        // A relative path is resolved now, so that changing the working directory later does not
        // affect which file is opened next.
        let absolute = std::path::absolute(&path).map_err(|error| os_error(py, error, Some(&path)))?;
        Ok(Follower {
            state: Exclusive::new(State::Open(Box::new(Open {
                follower,
                skipped: Skipped::default(),
                waiting: None,
                end: None,
                options: options.with_start(0),
                on_rotation,
                path: absolute,
                next: None,
                logged: Logged::default(),
            }))),
            path,
            timeout,
        })
    }

    fn __iter__(slf: Py<Self>, py: Python<'_>) -> PyResult<FollowerRecords> {
        Follower::iterator(slf, py, false)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        self.next(py, |record| Ok(record.data))
    }

    fn __aiter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Follower::iterator(slf, py, false)?.__aiter__(py)
    }

    /// Returns an iterator over the records and their offsets. It also works with `async for`.
    ///
    /// The iterator shares the follower's position.
    ///
    /// Returns:
    ///     An object that is both an iterator and an asynchronous iterator of `Record`.
    ///
    /// Raises:
    ///     ClosedError: The follower is closed.
    ///
    /// >>> with cordwood.open("live.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// >>> with cordwood.follow("live.log", timeout=0) as follower:
    /// ...     [record.end_offset for record in follower.records()]
    /// [10]
    fn records(slf: Py<Self>, py: Python<'_>) -> PyResult<FollowerRecords> {
        Follower::iterator(slf, py, true)
    }

    /// Returns the next record if it is complete, without waiting.
    ///
    /// Returns:
    ///     The record, or `None`. After `None`, `waiting` says why there is no record, and
    ///     `outcome` says whether more can follow.
    ///
    /// Raises:
    ///     CordwoodError: The log is damaged or the file has changed. Iteration raises the same
    ///         exceptions.
    ///     OSError: The file cannot be read.
    ///     ClosedError: The follower is closed.
    ///
    /// >>> with cordwood.open("live.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// >>> with cordwood.follow("live.log") as follower:
    /// ...     follower.poll(), follower.poll()
    /// (Record(offset=0, end_offset=10, data=b'one'), None)
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        Ok(self.take(py, &|record| Py::new(py, record))?.ok())
    }

    /// Returns the end of the data returned or skipped so far, as a file offset.
    ///
    /// A new follower whose `start` is this offset continues where this one left off. However, if a
    /// record starts before this offset and the start of the record was damaged, the new follower
    /// doesn't report the rest of that record.
    ///
    /// Returns:
    ///     The offset in bytes.
    ///
    /// Raises:
    ///     ClosedError: The follower is closed.
    ///
    /// >>> with cordwood.open("live.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// >>> with cordwood.follow("live.log", timeout=0) as follower:
    /// ...     list(follower), follower.tell()
    /// ([b'one'], 10)
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_state(py, |state| state.follower.offset())
    }

    /// Returns the position at the end of the data returned or skipped so far.
    ///
    /// A position contains the offset that `tell` returns, and also identifies the log. To continue
    /// at that offset later, pass the position to a new follower as `start`. If there is a
    /// different log at the path by then, the new follower raises `LogChangedError`. To store a
    /// position, convert it with `str`.
    ///
    /// Returns:
    ///     A `Position`. To determine it, at most two blocks of the file are read.
    ///
    /// Raises:
    ///     ClosedError: The follower is closed.
    ///     LogTruncatedError: The file has shrunk.
    ///     OSError: The file cannot be read.
    ///
    /// >>> with cordwood.open("live.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// >>> with cordwood.follow("live.log", timeout=0) as follower:
    /// ...     list(follower), follower.position().offset
    /// ([b'one'], 10)
    fn position(&self, py: Python<'_>) -> PyResult<Position> {
        let position = self.with_state(py, |state| state.follower.position())?;
        position
            .map(Position)
            .map_err(|error| to_python(py, error, Some(&self.path)))
    }

    /// Where and why the last step or `poll` found no record.
    ///
    /// `None` if it found a record, raised an exception or reached the end of the log.
    #[getter]
    fn waiting(&self, py: Python<'_>) -> PyResult<Option<NotYet>> {
        self.with_state(py, |state| state.waiting)
    }

    /// The time to wait before the next `poll` in your own loop, in seconds.
    ///
    /// This is `poll_interval`, or less while bytes that look damaged are being reread.
    #[getter]
    fn delay(&self, py: Python<'_>) -> PyResult<f64> {
        self.with_state(py, |state| in_seconds(state.follower.delay()))
    }

    /// The longest time to wait for a record in each step, in seconds, or `None` for no limit.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout.map(in_seconds)
    }

    /// The regions found but not returned so far, up to the first 100,000, ordered by offset.
    ///
    /// Adjacent regions are merged if their reasons are identical, including all details.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        self.seen(py)?.skipped.tuple(py)
    }

    /// True if no damage has been found so far.
    ///
    /// Only regions with severity `"corruption"` count as damage; a torn tail doesn't.
    #[getter]
    fn ok(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.seen(py)?.skipped.is_ok())
    }

    /// The number of bytes not returned so far, including any regions that aren't in `skipped`.
    #[getter]
    fn skipped_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.seen(py)?.skipped.len())
    }

    /// How the follower finished, or `"unfinished"` if it hasn't finished yet.
    ///
    /// The outcome is `"stopped"` if the follower found damage and the policy is `"stop"`. It is
    /// `"clean"` if the follower reached the trailer of a closed Pebble log. After a rotation with
    /// `on_rotation="stop"`, it is `"torn_tail"` if the old file ends with bytes that are not a
    /// complete record, and otherwise `"clean"`.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> PyResult<Outcome> {
        Ok(self.seen(py)?.outcome)
    }

    /// The log's dialect: `"leveldb"` until another dialect is detected.
    #[getter]
    fn dialect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dialect_name(py, self.seen(py)?.format.dialect)
    }

    /// The log's number, or `None` if the log has no number or the number isn't known yet.
    #[getter]
    fn log_number(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.seen(py)?.format.log_number)
    }

    /// The records' compression: `"zstd"`, or `None` if there is none or it isn't known yet.
    #[getter]
    fn compression(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(compression_name(self.seen(py)?.format))
    }

    /// The file's path.
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Whether `close` has been called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(&*self.state.lock(py)?, State::Closed(_)))
    }

    /// Closes the file. Closing twice is allowed.
    ///
    /// You can still read `skipped`, `skipped_len`, `outcome`, `dialect`, `log_number` and
    /// `compression`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // If a forked child can never use its copy of the follower, the copy is left as it is.
        let Some(mut state) = self.state.lock_unless_lost(py)? else {
            return Ok(());
        };
        let State::Open(open) = &mut *state else { return Ok(()) };
        let messages = [open.logged.summary(), None];
        *state = State::Closed(state.seen());
        drop(state);
        log(py, messages, Some(&self.path))
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().check_open(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised), text_signature = "($self, exc_type, exc, traceback, /)")]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        imported!(slf.py(), "cordwood._follow", "entered")?.run((slf,))
    }

    #[pyo3(signature = (*_raised), text_signature = "($self, exc_type, exc, traceback, /)")]
    fn __aexit__<'py>(slf: Bound<'py, Self>, _raised: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        imported!(slf.py(), "cordwood._follow", "left")?.run((slf,))
    }

    fn __repr__(&self) -> String {
        // A follower is not closed while another thread is using it.
        let is_closed = matches!(self.state.try_lock().as_deref(), Some(State::Closed(_)));
        handle_repr("Follower", Some(&self.path), is_closed)
    }
}

impl Follower {
    fn iterator(slf: Py<Self>, py: Python<'_>, has_offsets: bool) -> PyResult<FollowerRecords> {
        slf.get().check_open(py)?;
        Ok(FollowerRecords {
            follower: slf,
            has_offsets,
        })
    }

    /// Returns the follower's findings and position, even after it has been closed.
    fn seen(&self, py: Python<'_>) -> PyResult<Seen> {
        Ok(self.state.lock(py)?.seen())
    }

    /// Fails if the follower is closed.
    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        self.with_state(py, |_| ())
    }

    fn with_state<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut Open) -> T) -> PyResult<T> {
        let used = match &mut *self.state.lock(py)? {
            State::Open(state) => Some(use_it(state)),
            State::Closed(_) => None,
        };
        used.ok_or_else(|| closed(py, "follower", Some(&self.path)))
    }

    /// Returns the next record, converted by `make`. If there is no record yet, returns how long to
    /// wait. Returns `None` at the end.
    fn take<T>(&self, py: Python<'_>, make: &impl Fn(Record) -> PyResult<T>) -> PyResult<Result<T, Option<Duration>>> {
        loop {
            let taken = self.with_state(py, |state| {
                let _owner = self.state.may_run_python();
                state.take(py, &self.path, make)
            })?;
            match taken? {
                Taken::Record(record) => return Ok(Ok(record)),
                Taken::Again(messages) => {
                    log(py, messages, Some(&self.path))?;
                    check_signals(py)?;
                }
                Taken::Wait(delay) => return Ok(Err(Some(delay))),
                Taken::End(messages) => {
                    log(py, messages, Some(&self.path))?;
                    return Ok(Err(None));
                }
            }
        }
    }

    /// Waits for the next record and returns it. Returns `None` after the timeout or at the end.
    fn next<T>(&self, py: Python<'_>, make: impl Fn(Record) -> PyResult<T>) -> PyResult<Option<T>> {
        // If the clock cannot represent the deadline, there is no deadline.
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let delay = match self.take(py, &make)? {
                Ok(record) => return Ok(Some(record)),
                Err(Some(delay)) => delay,
                Err(None) => return Ok(None),
            };
            let now = Instant::now();
            let wanted = now.checked_add(delay);
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(None);
            }
            // No lock is held during the sleep, so other threads can use the follower. Closing it
            // ends the wait.
            let until = [wanted, deadline].into_iter().flatten().min();
            loop {
                check_signals(py)?;
                self.check_open(py)?;
                let left = until.map_or(PAUSE_MAX, |until| until.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    break;
                }
                py.detach(|| thread::sleep(left.min(PAUSE_MAX)));
            }
        }
    }
}

/// An iterator of `Record` that also works with `async for`. Returned by `Follower.records`.
// `iter(follower)` also returns an instance of this class, which yields `bytes` without offsets.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct FollowerRecords {
    follower: Py<Follower>,
    has_offsets: bool,
}

#[pymethods]
impl FollowerRecords {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.follower)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.follower.get().next(py, |record| record.item(py, self.has_offsets))
    }

    fn __aiter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.follower.get().check_open(py)?;
        // `asyncio` is imported only here, because the module is large.
        let class = module(py, "cordwood._follow")?.getattr("FollowerRecords")?;
        class.run((&self.follower, self.has_offsets))
    }
}
