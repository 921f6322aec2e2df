//! The columns of a scan: their names, their types, and how each is made from a batch.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::TARGET_LEN;
use super::source::Source;
use crate::arrow::{Array, DataType, Field, Memory};
use crate::batch_pool::PooledBatch;
use crate::bits::Bits;
use crate::buffer::BatchBuffer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Offset,
    Record,
    EndOffset,
    Length,
    Path,
    Salvaged,
}

impl Column {
    const ALL: [Column; 6] = [
        Column::Offset,
        Column::Record,
        Column::EndOffset,
        Column::Length,
        Column::Path,
        Column::Salvaged,
    ];

    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Column::Offset => c"offset",
            Column::Record => c"record",
            Column::EndOffset => c"end_offset",
            Column::Length => c"length",
            Column::Path => c"path",
            Column::Salvaged => c"salvaged",
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        self.name().to_str().unwrap_or_default()
    }

    pub(super) fn named(name: &str) -> PyResult<Self> {
        let found = Column::ALL.into_iter().find(|column| column.as_str() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Column::ALL
                .iter()
                .map(|column| format!("'{}'", column.as_str()))
                .collect();
            PyValueError::new_err(format!("a column must be one of {}, not '{name}'", names.join(", ")))
        })
    }

    pub(crate) fn field(self, is_binary: bool) -> Field {
        Field {
            name: self.name().into(),
            data_type: match self {
                Column::Offset | Column::EndOffset | Column::Length => DataType::UInt64,
                Column::Record if is_binary => DataType::Binary,
                Column::Record => DataType::LargeBinary,
                Column::Path => DataType::Dictionary,
                Column::Salvaged => DataType::Bool,
            },
            // A source without a path has a null there.
            is_nullable: self == Column::Path,
            children: Vec::new(),
        }
    }
}

/// The records of a batch as a column.
pub(crate) fn record_column(batch: &Arc<PooledBatch>, is_binary: bool) -> Array {
    let offsets = if is_binary {
        Memory::I32(Arc::new(
            batch.records().offsets().iter().map(|&offset| offset as i32).collect(),
        ))
    } else {
        Memory::Batch(Arc::clone(batch), BatchBuffer::Offsets)
    };
    let data = Memory::Batch(Arc::clone(batch), BatchBuffer::Data);
    Array::plain(batch.records().len(), vec![Memory::Absent, offsets, data])
}

/// Whether the offsets of the batch fit in 32 bits.
pub(crate) fn fits_binary(records: &cordwood::read::RecordBatch) -> bool {
    i32::try_from(records.data().len()).is_ok()
}

/// Whether the offsets of all batches of [`TARGET_LEN`] fit in 32 bits: the last record of a batch
/// may have any length that is accepted.
pub(crate) fn all_fit_binary(record_len_max: u64) -> bool {
    record_len_max <= i32::MAX as u64 - TARGET_LEN as u64
}

/// The file offsets of the records of a batch as a column.
pub(crate) fn offset_column(batch: &Arc<PooledBatch>) -> Array {
    let offsets = Memory::Batch(Arc::clone(batch), BatchBuffer::RecordOffsets);
    Array::plain(batch.records().len(), vec![Memory::Absent, offsets])
}

pub(super) fn number_column(numbers: Vec<u64>) -> Array {
    Array::plain(numbers.len(), vec![Memory::Absent, Memory::U64(numbers)])
}

pub(super) fn bool_column(values: &[bool]) -> Array {
    let mut bits = Bits::default();
    values.iter().for_each(|&value| bits.push(value));
    let bits = Memory::Bytes(Arc::new(bits.into_bytes()));
    Array::plain(values.len(), vec![Memory::Absent, bits])
}

/// The paths of all sources, each once: the dictionary of the column `path`.
pub(super) struct Paths {
    /// For each source, the index of its path.
    numbers: Vec<Option<i32>>,
    count: usize,
    ends: Arc<Vec<i32>>,
    text: Arc<Vec<u8>>,
}

impl Paths {
    pub(super) fn new(sources: &[Source]) -> PyResult<Self> {
        let mut known = HashMap::new();
        let mut numbers = Vec::new();
        let (mut ends, mut text) = (vec![0], Vec::new());
        for source in sources {
            let Some(path) = source.path() else {
                numbers.push(None);
                continue;
            };
            let number = match known.get(path) {
                Some(&number) => number,
                None => {
                    text.extend_from_slice(path.to_string_lossy().as_bytes());
                    let end = i32::try_from(text.len());
                    ends.push(end.map_err(|_| PyValueError::new_err("the paths are longer than 2 GiB in total"))?);
                    known.insert(path, ends.len() as i32 - 2);
                    ends.len() as i32 - 2
                }
            };
            numbers.push(Some(number));
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
