//! The class `Dialect`, and the function `detect`.

use cordwood::ReadOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::to_python;
use crate::source::{OpenedReader, open_reader};

/// How the bytes of a log are laid out.
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

    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.0.log_number()
    }

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

/// Says which dialect a log is in.
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
