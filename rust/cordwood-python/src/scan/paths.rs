//! The column with the path of each record's log.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::source::Log;
use crate::arrow::{Array, Memory};

/// The paths of all sources, each once: the dictionary of the column `path`.
pub(super) struct Paths {
    /// For each source, the index of its path.
    numbers: Vec<Option<i32>>,
    count: usize,
    ends: Arc<Vec<i32>>,
    text: Arc<Vec<u8>>,
}

impl Paths {
    pub(super) fn new(logs: &[Log]) -> PyResult<Self> {
        let mut known = HashMap::new();
        let (mut ends, mut text) = (vec![0], Vec::new());
        let numbers = logs.iter().map(|log| {
            let path = log.source.path.as_ref()?;
            let next = known.len() as i32;
            Some(*known.entry(path).or_insert_with(|| {
                text.extend_from_slice(path.to_string_lossy().as_bytes());
                ends.push(text.len() as i32);
                next
            }))
        });
        let numbers = numbers.collect();
        if i32::try_from(text.len()).is_err() {
            return Err(PyValueError::new_err("the paths are longer than 2 GiB in total"));
        }
        Ok(Paths {
            count: known.len(),
            numbers,
            ends: Arc::new(ends),
            text: Arc::new(text),
        })
    }

    /// The column for `len` rows of one source.
    pub(super) fn column(&self, source: usize, len: usize) -> Array {
        let number = self.numbers.get(source).copied().flatten();
        let validity = match number {
            Some(_) => Memory::Absent,
            None => Memory::Bytes(Arc::new(vec![0; len.div_ceil(8)])),
        };
        let numbers = Memory::I32(Arc::new(vec![number.unwrap_or(0); len]));
        let ends = Memory::I32(Arc::clone(&self.ends));
        let text = Memory::Bytes(Arc::clone(&self.text));
        Array {
            null_count: if number.is_none() { len } else { 0 },
            dictionary: Some(Box::new(Array::plain(self.count, vec![Memory::Absent, ends, text]))),
            ..Array::plain(len, vec![validity, numbers])
        }
    }
}
