//! The sources of a scan, each of which can be opened again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use cordwood::ReadOptions;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use crate::arrow::Failure;
use crate::arrow::failure::{attached, failure};
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::io::source::{OpenedReader, is_seekable, open_path, open_reader, ranges_of};
use crate::values::arguments::{path_of, refuse_text};
use crate::values::error::of_call;

/// A source that can be opened again.
pub(super) enum Source {
    /// Needs no interpreter.
    Path(PathBuf),
    /// `bytes` or another buffer, or a source that is read in ranges, with its name.
    Content { object: Py<PyAny>, path: Option<PathBuf> },
    /// An object with `read`.
    Object {
        object: Py<PyAny>,
        /// Its position when it was passed in, if it can seek.
        begin: Option<Py<PyAny>>,
    },
}

/// A source of a scan, with the options for it.
pub(super) struct Log {
    pub(super) source: Source,
    /// It may be a part of a log.
    pub(super) options: ReadOptions,
    /// How many times it was opened.
    pub(super) opening_count: AtomicU64,
}

impl Log {
    /// Opens the source from its beginning. Also returns how many times it has been opened, this time
    /// included.
    pub(super) fn open(&self) -> Result<(OpenedReader, u64), Failure> {
        let opening = self.opening_count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok((self.source.open(&self.options, opening > 1)?, opening))
    }

    /// Whether another stream has moved the file object that was opened at this count.
    pub(super) fn is_shared(&self, opening: u64) -> bool {
        matches!(self.source, Source::Object { .. }) && self.opening_count.load(Ordering::Relaxed) != opening
    }
}

/// A source, or the object that may be one, and its `Split`; `None` if it has none.
type WithSplit<'py, S> = (S, Bound<'py, PyAny>);

impl Source {
    /// Returns `None` if the object is not a source.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Source::of_any(object).map_err(|error| of_call(object.py(), error))
    }

    fn of_any(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Some(ranges) = ranges_of(object)? {
            let name = ranges.attribute(intern!(py, "name"))?;
            return Ok(Some(Source::Content {
                path: name.map_or(Ok(None), |name| name.extract())?,
                object: ranges.unbind(),
            }));
        }
        if let Some(path) = path_of(object)? {
            return Ok(Some(Source::Path(path)));
        }
        if object.is_instance_of::<PyBytes>() || PyMemoryView::from(object).is_ok() {
            return Ok(Some(Source::Content {
                object: object.clone().unbind(),
                path: None,
            }));
        }
        if object.attribute(intern!(py, "read"))?.is_none() {
            return Ok(None);
        }
        refuse_text(object)?;
        let begin = is_seekable(object)?
            .then(|| object.run_method(intern!(py, "tell"), ()))
            .transpose()?;
        Ok(Some(Source::Object {
            object: object.clone().unbind(),
            begin: begin.map(Bound::unbind),
        }))
    }

    /// Returns one source, or several, each with its `Split`, if it has one, and whether `sources`
    /// stands for several. `decode` and `reading`: the options of the scan, which decide which logs
    /// in folders are left out.
    pub(super) fn all_of<'py>(
        sources: &Bound<'py, PyAny>,
        decode: Option<&Bound<'py, PyAny>>,
        reading: &Bound<'py, PyDict>,
    ) -> PyResult<(Vec<WithSplit<'py, Self>>, bool)> {
        let logs_of = imported!(sources.py(), "cordwood._inputs.many", "logs_of")?;
        let (items, are_several): (Vec<WithSplit<'_, Bound<'_, PyAny>>>, bool) =
            logs_of.run((sources, decode, reading))?.extract()?;
        let found = items.into_iter().map(|(item, split)| match Source::of(&item)? {
            Some(source) => Ok((source, split)),
            None => Err(PyTypeError::new_err(format!(
                "a source must be a path, a URL, bytes or another buffer, a Split, or an object with read(size) or read_range(start, end), not {}",
                item.get_type().name()?
            ))),
        });
        Ok((found.collect::<PyResult<_>>()?, are_several))
    }

    /// For Python: the argument for `Reader`, the position to seek to first, if any, and whether it
    /// can be read only once.
    pub(super) fn to_reopen<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, bool)> {
        Ok(match self {
            Source::Path(path) => (path.as_os_str().into_bound_py_any(py)?, None, false),
            Source::Content { object, .. } => (object.bind(py).clone(), None, false),
            Source::Object { object, begin } => {
                let begin = begin.as_ref().map(|begin| begin.bind(py).clone());
                let is_read_once = begin.is_none();
                (object.bind(py).clone(), begin, is_read_once)
            }
        })
    }

    /// Opens the source from its beginning. `is_again`: whether it has been opened before.
    fn open(&self, options: &ReadOptions, is_again: bool) -> Result<OpenedReader, Failure> {
        match self {
            Source::Path(path) => open_path(path, options.clone()).map_err(|error| failure(error, Some(path))),
            Source::Content { object, .. } => attached(|py| open_reader(object.bind(py), options.clone())),
            Source::Object { object, begin } => attached(|py| {
                let object = object.bind(py);
                match begin {
                    Some(begin) => drop(object.run_method(intern!(py, "seek"), (begin,))?),
                    None if is_again => {
                        return Err(PyValueError::new_err(
                            "the source was read once, and cannot seek: pass a path, or a file object that can",
                        ));
                    }
                    None => {}
                }
                open_reader(object, options.clone())
            }),
        }
    }

    /// Its path, or its name if it is read in ranges.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Source::Path(path) => Some(path),
            Source::Content { path, .. } => path.as_ref(),
            Source::Object { .. } => None,
        }
    }
}
