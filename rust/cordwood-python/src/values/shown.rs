//! One-line representations of objects.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Returns the `repr` of an object that reads or writes a log, such as a `Reader`.
pub(crate) fn handle_repr(class: &str, path: Option<&Path>, is_closed: bool) -> String {
    let of = path.map_or(String::new(), |path| format!(" of {:?}", path.display().to_string()));
    let closed = if is_closed { ", closed" } else { "" };
    format!("<cordwood.{class}{of}{closed}>")
}

/// The maximum number of bytes that `repr` shows in full.
const SHOWN_MAX: usize = 64;

/// Returns the `repr` of bytes, shortened if there are more than `SHOWN_MAX` bytes.
pub(crate) fn short_repr(py: Python<'_>, bytes: &[u8]) -> PyResult<String> {
    let shown = |bytes| PyBytes::new(py, bytes).repr().map(|text| text.to_string());
    if bytes.len() <= SHOWN_MAX {
        return shown(bytes);
    }
    let first = shown(&bytes[..SHOWN_MAX / 2])?;
    Ok(format!("<{} bytes: {first}...>", bytes.len()))
}
