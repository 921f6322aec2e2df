//! The class `Dialect`, and the function `detect`.

use cordwood::ReadOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::to_python;
use crate::source::{OpenedReader, open_reader};
use crate::value::{NewArgs, new_args};

/// How the bytes of a log are laid out: what the engines' logs differ in.
///
/// It says what the bytes are, not which program wrote them: RocksDB without recycling,
/// Datastore, Firestore and App Engine write `"leveldb"`, byte for byte.
///
/// Args:
///     name: `"leveldb"`; `"rocksdb"`: a write-ahead log with all that it may hold; `"pebble"`:
///         the same of Pebble; `"recyclable"`: what the two have in common; `"wandb"`: a run
///         file of Weights & Biases; `"wandb_old"`: one of wandb-core before 0.17.6;
///         `"swanlab"`: a run file of SwanLab.
///     log_number: Which log it is, if `name` is `"rocksdb"`, `"pebble"` or `"recyclable"`: the
///         number in the file's name. Fragments with another number are left over from an older
///         log. When reading, it is detected if it is not given. When writing, it goes into
///         each fragment. Default: `None`.
///     zstd: Each record is compressed, as by RocksDB's `wal_compression`. A reader detects
///         that at the beginning of a file. Default: `False`.
///
/// Raises:
///     ValueError: There is no such dialect, or its logs have no number or no compression.
///     OverflowError: `log_number` is not a number of 32 bits.
///
/// >>> cordwood.Dialect("rocksdb", log_number=10)
/// Dialect('rocksdb', log_number=10)
#[pyclass(frozen, module = "cordwood", eq, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect(pub(crate) cordwood::Dialect);

#[pymethods]
impl Dialect {
    #[new]
    #[pyo3(signature = (name, *, log_number = None, zstd = false))]
    fn new(name: &str, log_number: Option<u32>, zstd: bool) -> PyResult<Self> {
        let plain = by_name(name)?;
        let mut dialect = plain;
        if let Some(number) = log_number {
            dialect = dialect.with_log_number(number);
        }
        if log_number.is_some() && dialect == plain {
            return Err(PyValueError::new_err(format!(
                "logs of the dialect '{name}' have no number"
            )));
        }
        if zstd && dialect == dialect.with_zstd() {
            return Err(PyValueError::new_err(format!(
                "logs of the dialect '{name}' are not compressed"
            )));
        }
        Ok(Dialect(if zstd { dialect.with_zstd() } else { dialect }))
    }

    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("name",)
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<NewArgs<'py>> {
        new_args(slf, &["name", "log_number", "zstd"])
    }

    /// The name, such as `"leveldb"`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The number of the log; `None` where it has none or it is not known.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.0.log_number()
    }

    /// Whether each record is compressed with Zstandard.
    #[getter]
    fn zstd(&self) -> bool {
        self.0.is_zstd()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.0.name(), self.0.log_number(), self.0.is_zstd()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let number = self.0.log_number().map(|number| format!(", log_number={number}"));
        let zstd = if self.0.is_zstd() { ", zstd=True" } else { "" };
        format!("Dialect('{}'{}{zstd})", self.0.name(), number.unwrap_or_default())
    }
}

fn by_name(name: &str) -> PyResult<cordwood::Dialect> {
    cordwood::Dialect::from_name(name).ok_or_else(|| {
        let names = cordwood::Dialect::ALL
            .iter()
            .map(|dialect| format!("'{}'", dialect.name()));
        let names: Vec<String> = names.collect();
        PyValueError::new_err(format!("dialect must be one of {}, not '{name}'", names.join(", ")))
    })
}

/// A dialect or its name; `None` for `"auto"`, which is also the default.
pub(crate) fn dialect_of(dialect: Option<&Bound<'_, PyAny>>) -> PyResult<Option<cordwood::Dialect>> {
    let Some(dialect) = dialect else { return Ok(None) };
    if let Ok(dialect) = dialect.cast::<Dialect>() {
        return Ok(Some(dialect.get().0));
    }
    if let Ok(name) = dialect.cast::<PyString>() {
        let name = name.to_str()?;
        return if name == "auto" {
            Ok(None)
        } else {
            by_name(name).map(Some)
        };
    }
    let name = dialect.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "dialect must be str or Dialect, not {name}"
    )))
}

/// Says which dialect a log is in, by what it begins with.
///
/// Args:
///     source: What `Reader` takes. Its first 96 KiB are read; if they do not show a log, and
///         it is a longer file, also its end and the beginnings of its blocks.
///
/// Returns:
///     The dialect, with the log number if its logs have one: that in the name of the file, or
///     else that of the first fragment. `None` if it cannot be detected: the file is empty, or
///     its beginning holds no whole fragment with a right checksum. `Reader` then reads
///     `"leveldb"`.
///
/// Raises:
///     DialectError: It is no log.
///     OSError: The source cannot be opened or read.
///     TypeError: `source` is nothing that `Reader` takes.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> cordwood.detect("example.log")
/// Dialect('leveldb')
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(crate) fn detect(source: &Bound<'_, PyAny>) -> PyResult<Option<Dialect>> {
    let py = source.py();
    let OpenedReader { mut reader, .. } = open_reader(source, ReadOptions::default())?;
    let detected = py.detach(|| reader.detect());
    let path = reader.path();
    let detected = detected.map_err(|error| to_python(py, error, path))?;
    Ok(detected.map(Dialect))
}
