//! The function `fragments` and its iterator, whose `next_run` method is used to draw long logs.

use std::path::{Path, PathBuf};
use std::vec;

use cordwood::read::Source as _;
use cordwood::{Compression, Dialect, OnCorruption, ReadOptions, ops};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use crate::exclusive::Exclusive;
use crate::io::source::{self, InputSource, Referent, open, source_at};
use crate::memory::buffer::vec_for;
use crate::values::Fragment;
use crate::values::error::{check_signals, of_call, to_python, unsupported};
use crate::values::options::{compression_name, compression_of, dialect_of};
use crate::values::position::{Start, read_options};

/// The maximum number of fragments to find each time the interpreter lock is released.
const BATCH_MAX: usize = 512;

/// Lists every fragment and gap in a log.
///
/// Each fragment or gap that a reader would skip is listed with the reason.
///
/// Together, the fragments and gaps cover the file: each one starts where the previous one ends,
/// and none crosses the end of a block. Damage does not raise an exception. The list matches the
/// records and regions of `Reader` under the policy `"salvage"`: each fragment in a skipped region
/// has that region's reason. Memory use does not grow with the log.
///
/// Args:
///     source: Same as for `Reader`, but it must be possible to read the source twice. It can be
///         the path of a file, a buffer, an object with `read` and `seek`, a URL, or another source
///         that is read in ranges.
///     dialect: Same as for `Reader`. Default: `None`.
///     log_number: Same as for `Reader`. Default: `None`.
///     compression: Same as for `Reader`. Default: `None`.
///
/// Returns:
///     An iterator of `Fragment`.
///
/// Raises:
///     DialectError: The source is not a log. The first step of the iterator raises this error.
///     OSError: The source cannot be opened or read.
///     io.UnsupportedOperation: The source cannot seek.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `Reader` does not accept `source`.
///     ValueError: An option has an invalid value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> for fragment in cordwood.fragments("example.log"):
/// ...     print(fragment.offset, fragment.kind, fragment.reason)
/// 0 full None
/// 10 full None
#[pyfunction]
#[pyo3(signature = (source, *, dialect = None, log_number = None, compression = None))]
pub(crate) fn fragments(
    source: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
) -> PyResult<Fragments> {
    let options = read_options((dialect, log_number, compression), (Start::default(), None));
    let options = options.with_on_corruption(OnCorruption::Salvage);
    Ok(Fragments(Exclusive::new(FragmentReader::open(source, &options)?)))
}

/// The iterator that `fragments` returns.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct Fragments(Exclusive<FragmentReader>);

#[pymethods]
impl Fragments {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.with_reader(py, |fragments| {
            let Some(found) = fragments.peek(py)? else {
                return Ok(None);
            };
            // Creating the first fragment imports its Python class, and a signal handler may run
            // during the import.
            let fragment = Fragment(found)
                .into_pyobject(py)
                .map_err(|raised| of_call(py, raised))?;
            fragments.found.next();
            Ok(Some(fragment))
        })
    }

    /// Returns the findings so far.
    ///
    /// The findings are a tuple of the dialect, the log number, the compression, the other log
    /// number, and the salvaged count. If the whole file belongs to another log, the other log
    /// number is the number of that log; otherwise, it is `None`. The salvaged count is the number
    /// of records that start after damage in the same block.
    #[getter]
    fn found(&self, py: Python<'_>) -> PyResult<Found> {
        self.with_reader(py, |found| {
            let format = py.detach(|| found.fragments.format());
            let format = format.map_err(|error| to_python(py, error, found.path.as_deref()))?;
            let (dialect, compression) = (format.dialect.name(), compression_name(format));
            let other = found.fragments.info().other_log_number;
            Ok((dialect, format.log_number, compression, other, found.salvaged_count))
        })
    }

    /// Merges the next fragments that are in the same block and have the same kind and reason.
    ///
    /// This method is used to draw long logs.
    ///
    /// Returns:
    ///     A tuple of the offset, the end offset, the kind, the reason, the reason's severity, and
    ///     the number of fragments. `None` at the end of the log.
    fn next_run(&self, py: Python<'_>) -> PyResult<Option<Run>> {
        self.with_reader(py, |fragments| {
            let kind = |fragment: ops::Fragment| {
                let reason = fragment.reason.map(cordwood::damage::Reason::as_str);
                (fragment.block, fragment.kind, reason)
            };
            while let Some(next) = fragments.peek(py)? {
                let (first, end, count) = fragments.started.get_or_insert((next, next.offset, 0));
                if kind(next) != kind(*first) {
                    break;
                }
                (*end, *count) = (next.end_offset, *count + 1);
                fragments.found.next();
            }
            Ok(fragments.started.take().map(|(first, end, count)| {
                let (_, name, reason) = kind(first);
                let severity = first.reason.map(|reason| reason.severity().as_str());
                (first.offset, end, name.as_str(), reason, severity, count)
            }))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If the lock is held, a thread is using the reader and keeps it alive, along with all
        // objects it refers to.
        let reader = self.0.try_lock();
        let referent = reader.as_ref().and_then(|reader| reader.referent.as_ref());
        visit.call(referent.map(|referent| &***referent))
    }
}

impl Fragments {
    fn with_reader<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut FragmentReader) -> PyResult<T>) -> PyResult<T> {
        let mut state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        use_it(&mut state)
    }
}

/// The result of `next_run`: the offset, the end offset, the kind, the reason, the reason's
/// severity, and the number of fragments.
type Run = (u64, u64, &'static str, Option<&'static str>, Option<&'static str>, u64);

/// The result of `found`: the dialect, the log number, the compression, the other log number, and
/// the salvaged count.
type Found = (&'static str, Option<u32>, Option<&'static str>, Option<u32>, u64);

/// Finds fragments in batches.
struct FragmentReader {
    fragments: ops::Fragments<InputSource>,
    path: Option<PathBuf>,
    referent: Option<Referent>,
    found: vec::IntoIter<ops::Fragment>,
    /// The error that occurred after the fragments in `found`.
    failed: Option<cordwood::Error>,
    /// The number of records that start after damage in the same block. `Fragments::found` returns
    /// it.
    salvaged_count: u64,
    /// A run that hasn't been returned yet: its first fragment, its end offset so far, and its
    /// number of fragments.
    started: Option<(ops::Fragment, u64, u64)>,
}

impl FragmentReader {
    fn open(source: &Bound<'_, PyAny>, options: &ReadOptions) -> PyResult<Self> {
        let (mut ahead, referent) = open(source, 0, options)?;
        let path = ahead.path().map(Path::to_owned);
        let Some(behind) = ahead.get_mut().twin() else {
            return Err(unsupported(source.py(), "the source cannot seek"));
        };
        Ok(FragmentReader {
            fragments: ops::fragments([ahead, source_at(behind, 0)?], options),
            path,
            referent,
            found: Vec::new().into_iter(),
            failed: None,
            salvaged_count: 0,
            started: None,
        })
    }

    /// Returns the next fragment without removing it from `found`.
    #[inline]
    fn peek(&mut self, py: Python<'_>) -> PyResult<Option<ops::Fragment>> {
        if self.found.as_slice().is_empty() {
            self.find(py)?;
        }
        Ok(self.found.as_slice().first().copied())
    }

    /// Finds the next fragments. An error is raised only after all fragments before it have been
    /// returned, but a `KeyboardInterrupt` is raised at once.
    fn find(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.failed.is_none() {
            check_signals(py)?;
            let mut found = vec_for(BATCH_MAX)?;
            let (fragments, failed) = (&mut self.fragments, &mut self.failed);
            let is_salvaged = |found: &&ops::Fragment| found.is_salvaged && found.record_offset == Some(found.offset);
            py.detach(|| {
                let next = fragments.by_ref().take(BATCH_MAX);
                found.extend(next.map_while(|next| next.map_err(|error| *failed = Some(error)).ok()));
            });
            self.salvaged_count += found.iter().filter(is_salvaged).count() as u64;
            self.found = found.into_iter();
        }
        let has_found = !self.found.as_slice().is_empty();
        match self
            .failed
            .take_if(|error| !has_found || source::is_interrupt(py, error))
        {
            Some(error) => Err(to_python(py, error, self.path.as_deref())),
            None => Ok(()),
        }
    }
}
