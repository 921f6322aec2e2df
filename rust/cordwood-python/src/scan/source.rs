//! A scan's sources, which can be reopened.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use cordwood::ReadOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use crate::arrow::Failure;
use crate::arrow::failure::{attached, failure};
use crate::interpreter::python_code::{Held, PythonCode};
use crate::interpreter::{imported, interned};
use crate::io::source::{OpenedReader, is_seekable, open_path, open_reader, ranges_of};
use crate::values::arguments::{path_of, refuse_text};
use crate::values::error::of_call;
use crate::values::options::{compression_of, dialect_of};
use crate::values::position::Position;

/// A source that can be reopened.
pub(super) struct Source {
    pub(super) object: Held,
    /// The source's path, or its name if it is read in ranges.
    pub(super) path: Option<PathBuf>,
    kind: Kind,
    /// The options, which may limit reading to part of the log.
    options: ReadOptions,
    /// How many times the source has been opened.
    opening_count: AtomicU64,
}

enum Kind {
    /// A path.
    Path,
    /// `bytes` or another buffer, or a source read in ranges.
    Content,
    /// An object with `read`. The value is the position that the object had when it was passed in,
    /// or `None` if it cannot seek.
    Object(Option<Py<PyAny>>),
}

/// A source, or an object that may be a source, paired with its `Split` or `None`.
type WithSplit<'py, S> = (S, Bound<'py, PyAny>);

impl Source {
    /// Returns `None` if the object is not a source.
    fn of(object: &Bound<'_, PyAny>, options: ReadOptions) -> PyResult<Option<Self>> {
        Source::of_any(object, options).map_err(|error| of_call(object.py(), error))
    }

    fn of_any(object: &Bound<'_, PyAny>, options: ReadOptions) -> PyResult<Option<Self>> {
        let py = object.py();
        let source = |object: &Bound<'_, PyAny>, path, kind| {
            Ok(Some(Source {
                object: Held::new(object),
                path,
                kind,
                options,
                opening_count: AtomicU64::new(0),
            }))
        };
        if let Some(ranges) = ranges_of(object)? {
            let name = ranges.attribute(interned!(py, "name")?)?;
            let name = name.map_or(Ok(None), |name| name.extract())?;
            return source(&ranges, name, Kind::Content);
        }
        if let Some(path) = path_of(object)? {
            return source(object, Some(path), Kind::Path);
        }
        if object.is_instance_of::<PyBytes>() || PyMemoryView::from(object).is_ok() {
            return source(object, None, Kind::Content);
        }
        if object.attribute(interned!(py, "read")?)?.is_none() {
            return Ok(None);
        }
        refuse_text(object)?;
        let start = is_seekable(object)?
            .then(|| object.run_method(interned!(py, "tell")?, ()))
            .transpose()?;
        source(object, None, Kind::Object(start.map(Bound::unbind)))
    }

    /// Returns the sources, each with its `Split` if it has one. The second value says whether
    /// `sources` names several sources. `decode` and `reading` are the scan's options, and
    /// determine which logs in directories are left out.
    pub(super) fn all_of<'py>(
        sources: &Bound<'py, PyAny>,
        options: &ReadOptions,
        decode: Option<&Bound<'py, PyAny>>,
        reading: &Bound<'py, PyDict>,
    ) -> PyResult<(Vec<WithSplit<'py, Self>>, bool)> {
        let logs_of = imported!(sources.py(), "cordwood._many", "logs_of")?;
        let (items, are_several): (Vec<WithSplit<'_, Bound<'_, PyAny>>>, bool) =
            logs_of.run((sources, decode, reading))?.extract()?;
        let found = items.into_iter().map(|(item, split)| match Source::of(&item, options_of_part(&split, options)?)? {
            Some(source) => Ok((source, split)),
            None => Err(PyTypeError::new_err(format!(
                "a source must be a path, a URL, bytes or another buffer, a Split, or an object with read(size) or read_range(start, end), not {}",
                item.get_type().name()?
            ))),
        });
        Ok((found.collect::<PyResult<_>>()?, are_several))
    }

    /// Returns the argument for `Reader`, the position (if any) to seek to first, and whether the
    /// source can be read only once.
    pub(super) fn to_reopen(&self) -> (&Py<PyAny>, Option<&Py<PyAny>>, bool) {
        match &self.kind {
            Kind::Object(start) => (&self.object, start.as_ref(), start.is_none()),
            _ => (&self.object, None, false),
        }
    }

    /// Opens the source for reading from its start. Also returns how many times it has been opened,
    /// including this time.
    pub(super) fn open(&self) -> Result<(OpenedReader, u64), Failure> {
        let opening = self.opening_count.fetch_add(1, Ordering::Relaxed) + 1;
        let opened = match (&self.kind, &self.path) {
            (Kind::Path, Some(path)) => {
                open_path(path, self.options.clone()).map_err(|error| failure(error, Some(path)))
            }
            _ => attached(|py| self.open_object(py, opening > 1)),
        };
        Ok((opened?, opening))
    }

    fn open_object(&self, py: Python<'_>, is_again: bool) -> PyResult<OpenedReader> {
        let object = self.object.bind(py);
        match &self.kind {
            Kind::Object(Some(start)) => drop(object.run_method(interned!(py, "seek")?, (start,))?),
            Kind::Object(None) if is_again => {
                return Err(PyValueError::new_err(
                    "the source was read once, and cannot seek: pass a path, or a file object that can",
                ));
            }
            _ => {}
        }
        // Only one thread reads this source. Threads that read ahead can't wait for the interpreter
        // lock, which the consumer may hold, so they read only files.
        let mut opened = open_reader(object, self.options.clone())?;
        opened.another = None;
        Ok(opened)
    }

    /// Checks whether another stream has moved the file object's position since this stream opened
    /// the object. `opening` is the count that [`open`](Self::open) returned to this stream.
    pub(super) fn is_shared(&self, opening: u64) -> bool {
        matches!(self.kind, Kind::Object(_)) && self.opening_count.load(Ordering::Relaxed) != opening
    }
}

/// Returns the options for one source. The options of its `Split`, if it has one, take precedence
/// over those of the scan.
fn options_of_part(split: &Bound<'_, PyAny>, options: &ReadOptions) -> PyResult<ReadOptions> {
    if split.is_none() {
        return Ok(options.clone());
    }
    let mut own = options.clone();
    own.start = split.getattr("start")?.extract()?;
    own.end = split.getattr("end")?.extract()?;
    if let Ok(position) = split.getattr("position")?.cast::<Position>() {
        own.position = Some(position.get().0.with_offset(own.start));
    }
    own.dialect = dialect_of(&split.getattr("dialect")?)?.or(own.dialect);
    own.log_number = split
        .getattr("log_number")?
        .extract::<Option<u32>>()?
        .or(own.log_number);
    own.compression = compression_of(&split.getattr("compression")?)?.or(own.compression);
    Ok(own)
}
