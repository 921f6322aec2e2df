//! The `Position` class, and the `start` argument.

use cordwood::{Compression, Dialect, LogFormat, ReadOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::values::arguments::required_path;
use crate::values::error::to_python;
use crate::values::options::{compression_of, dialect_of};

/// An offset in a log, together with marks that identify the log. Returned by `Follower.position`.
///
/// An offset is valid in only one log, so a position also contains checksums. They cover bytes that
/// precede the offset: some in the log's first block, and some in the block before the offset. In a
/// segmented log, a position also contains a checksum of the end of the previous segment. When a
/// log is read or followed from a position, these checksums are compared with those of the log. If
/// any of them differ, the position belongs to a different log, and `LogChangedError` is raised. A
/// log remains the same log even if it grows, is copied or renamed, or loses its oldest segments. A
/// block that contains damage is not compared. A position at offset 0 matches any log.
///
/// `str(position)` returns a short string without line breaks, and `Position(text)` restores the
/// position from it. Positions can be pickled and compared.
///
/// Args:
///     text: A position as text, as returned by `str`.
///
/// Raises:
///     ValueError: The text doesn't represent a position, or was written by a later release.
///
/// >>> with cordwood.open("live.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> with cordwood.follow("live.log", timeout=0) as follower:
/// ...     list(follower)
/// ...     text = str(follower.position())
/// [b'one']
/// >>> with cordwood.open("live.log", "a") as writer:
/// ...     _ = writer.append(b"two")
/// >>> list(cordwood.follow("live.log", start=cordwood.Position(text), timeout=0))
/// [b'two']
#[pyclass(frozen, eq, hash, str = "{0}", module = "cordwood")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Position(pub(crate) cordwood::Position);

#[pymethods]
impl Position {
    #[new]
    pub(crate) fn new(text: &str) -> PyResult<Self> {
        let parsed = text.parse().map(Position);
        parsed.map_err(|error: cordwood::InvalidPosition| PyValueError::new_err(error.to_string()))
    }

    /// The offset in the log, in bytes.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset()
    }

    fn __repr__(&self) -> String {
        format!("Position('{}')", self.0)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (String,)) {
        (slf.get_type().into_any().unbind(), (slf.get().0.to_string(),))
    }
}

/// Returns a position's marks, for Python code that reads the log.
///
/// Args:
///     position: The position.
///
/// Returns:
///     The start, length and checksum of each mark, and the version that the object store has
///     assigned to the log.
#[pyfunction]
pub(crate) fn marks_of(position: &Bound<'_, Position>) -> (Vec<(u64, u32, u32)>, Option<String>) {
    let position = &position.get().0;
    (position.marks().collect(), position.version().map(str::to_owned))
}

/// Returns the position at another offset in the same log.
///
/// Args:
///     position: A position in the log.
///     offset: The offset, in bytes.
///
/// Returns:
///     The `Position`.
#[pyfunction]
pub(crate) fn moved_to(position: &Bound<'_, Position>, offset: u64) -> Position {
    Position(position.get().0.with_offset(offset))
}

/// Returns the position at the start of a log.
///
/// Args:
///     start: The first block of the log, or the whole log if it is shorter.
///     dialect: Same as for `Reader`. If `None`, the start of the log is not compared.
///     log_number: Same as for `Reader`.
///     compression: Same as for `Reader`.
///     version: The version that the object store has assigned to the log.
///
/// Returns:
///     A `Position` at offset 0.
#[pyfunction]
pub(crate) fn start_of(
    start: &[u8],
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    version: Option<String>,
) -> Position {
    let position = dialect.map(|dialect| {
        let mut format = LogFormat::new(dialect);
        (format.log_number, format.compression) = (log_number, compression);
        cordwood::Position::of_start(start, 0, format)
    });
    Position(position.unwrap_or_default().with_version(version))
}

/// Returns the position at the start of a log on disk.
///
/// Args:
///     path: The path of a file or a segmented log.
///     dialect: Same as for `Reader`.
///     log_number: Same as for `Reader`.
///     compression: Same as for `Reader`.
///
/// Returns:
///     A `Position`.
///
/// Raises:
///     OSError: The file cannot be read.
#[pyfunction]
pub(crate) fn start_at(
    path: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
) -> PyResult<Position> {
    let py = path.py();
    let path = required_path("path", path)?;
    let mut format = LogFormat::new(dialect.unwrap_or(Dialect::LEVELDB));
    (format.log_number, format.compression) = (log_number, compression);
    let position = py.detach(|| cordwood::Position::start(&path, format));
    position
        .map(Position)
        .map_err(|error| to_python(py, error, Some(&path)))
}

/// The `start` argument, which is an offset or a `Position`.
#[derive(Default)]
pub(crate) struct Start {
    pub(crate) offset: u64,
    pub(crate) position: Option<cordwood::Position>,
}

impl FromPyObject<'_, '_> for Start {
    type Error = PyErr;

    fn extract(start: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let position = start.cast::<Position>().ok().map(|position| position.get().0.clone());
        let offset = position
            .as_ref()
            .map_or_else(|| start.extract(), |position| Ok(position.offset()))?;
        Ok(Start { offset, position })
    }
}

/// Builds the read options from the arguments that most functions share.
pub(crate) fn read_options(
    (dialect, log_number, compression): (Option<Dialect>, Option<u32>, Option<Compression>),
    (start, end): (Start, Option<u64>),
) -> ReadOptions {
    let mut options = ReadOptions::default();
    (options.start, options.position, options.end) = (start.offset, start.position, end);
    (options.dialect, options.log_number, options.compression) = (dialect, log_number, compression);
    options
}
