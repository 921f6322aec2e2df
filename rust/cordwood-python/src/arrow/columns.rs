//! The columns of records: their names and types, and how each one is created from a batch.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;

use super::{Array, DataType, Field, Memory};
use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::BatchBuffer;
use crate::values::options::chosen;

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
    /// Each column's name, in the order of the variants.
    const NAMES: [(Column, &CStr); 6] = [
        (Column::Offset, c"offset"),
        (Column::Record, c"record"),
        (Column::EndOffset, c"end_offset"),
        (Column::Length, c"length"),
        (Column::Path, c"path"),
        (Column::Salvaged, c"salvaged"),
    ];

    pub(crate) fn name(self) -> &'static CStr {
        Column::NAMES[self as usize].1
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.name().to_str().unwrap_or_default()
    }

    pub(crate) fn named(name: &str) -> PyResult<Self> {
        chosen(
            "a column",
            Column::NAMES.map(|(column, _)| (column.as_str(), column)),
            name,
        )
    }

    pub(crate) fn field(self) -> Field {
        Field {
            name: self.name().into(),
            data_type: match self {
                Column::Offset | Column::EndOffset | Column::Length => DataType::UINT64,
                Column::Record => DataType::LARGE_BINARY,
                Column::Path => DataType::DICTIONARY,
                Column::Salvaged => DataType::BOOL,
            },
            // The path column is null if the source has no path.
            is_nullable: self == Column::Path,
            children: Vec::new(),
        }
    }
}

/// Returns the records of a batch as a column.
pub(crate) fn record_column(batch: &Arc<PooledBatch>) -> Array {
    let buffer = |part| Memory::Batch(Arc::clone(batch), part);
    let buffers = vec![Memory::Absent, buffer(BatchBuffer::Offsets), buffer(BatchBuffer::Data)];
    Array::plain(batch.records().len(), buffers)
}

/// Returns the file offsets of a batch's records as a column.
pub(crate) fn offset_column(batch: &Arc<PooledBatch>) -> Array {
    let offsets = Memory::Batch(Arc::clone(batch), BatchBuffer::RecordOffsets);
    Array::plain(batch.records().len(), vec![Memory::Absent, offsets])
}

/// Returns a column with the path of the log that contains these records. Its dictionary holds only
/// this path, because a dictionary with the paths of all logs could be longer than the batch's
/// records.
pub(crate) fn path_column(path: Option<&Path>, len: usize) -> Array {
    let text = path.map_or_else(Vec::new, |path| path.to_string_lossy().into_owned().into_bytes());
    let validity = match path {
        Some(_) => Memory::Absent,
        None => Memory::Bytes(Arc::new(vec![0; len.div_ceil(8)])),
    };
    let ends = Memory::I32(Arc::new(vec![0, text.len() as i32]));
    let text = vec![Memory::Absent, ends, Memory::Bytes(Arc::new(text))];
    Array {
        null_count: if path.is_none() { len } else { 0 },
        dictionary: Some(Box::new(Array::plain(1, text))),
        ..Array::plain(len, vec![validity, Memory::I32(Arc::new(vec![0; len]))])
    }
}

pub(crate) fn number_column(numbers: Vec<u64>) -> Array {
    Array::plain(numbers.len(), vec![Memory::Absent, Memory::U64(numbers)])
}

pub(crate) fn bool_column(values: &[bool]) -> Array {
    let byte_of = |bits: &[bool]| (0..).zip(bits).fold(0, |byte, (at, &bit)| byte | u8::from(bit) << at);
    let bits = values.chunks(8).map(byte_of).collect();
    Array::plain(values.len(), vec![Memory::Absent, Memory::Bytes(Arc::new(bits))])
}
