//! The columns of the records: their names and types, and how each one is created from a batch.

use std::ffi::CString;
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
    /// Each column and its name, in the order of the variants.
    const NAMES: [(&str, Column); 6] = [
        ("offset", Column::Offset),
        ("record", Column::Record),
        ("end_offset", Column::EndOffset),
        ("length", Column::Length),
        ("path", Column::Path),
        ("salvaged", Column::Salvaged),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Column::NAMES[self as usize].0
    }

    pub(crate) fn named(name: &str) -> PyResult<Self> {
        chosen("a column", Column::NAMES, name)
    }

    pub(crate) fn field(self) -> Field {
        Field {
            name: CString::new(self.as_str()).unwrap_or_default().into(),
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

    fn array(self, batch: &Arc<PooledBatch>, path: Option<&Path>) -> Array {
        let records = batch.records();
        let len = records.len();
        let shared = |part| Memory::Batch(Arc::clone(batch), part);
        let buffers = match self {
            Column::Offset => vec![shared(BatchBuffer::RecordOffsets)],
            Column::Record => vec![shared(BatchBuffer::Offsets), shared(BatchBuffer::Data)],
            Column::EndOffset => vec![Memory::U64(records.record_end_offsets())],
            Column::Length => {
                let ends = records.offsets().windows(2);
                vec![Memory::U64(ends.map(|ends| (ends[1] - ends[0]) as u64).collect())]
            }
            Column::Path => return path_column(path, len),
            Column::Salvaged => {
                let mut bits = vec![0; len.div_ceil(8)];
                for index in (0..len).filter(|&index| records.is_salvaged(index)) {
                    bits[index / 8] |= 1 << (index % 8);
                }
                vec![Memory::Bytes(bits)]
            }
        };
        Array::plain(len, buffers)
    }
}

/// Returns the given columns of a batch as a table. `path` is the path of the log that contains the
/// records.
pub(crate) fn table(columns: &[Column], batch: &Arc<PooledBatch>, path: Option<&Path>) -> Array {
    let columns = columns.iter().map(|column| column.array(batch, path));
    Array::table(batch.records().len(), columns.collect())
}

/// Returns the path column of a batch. Its dictionary holds only the path of the batch's log,
/// because a dictionary with the paths of all logs could take more space than the batch's records.
fn path_column(path: Option<&Path>, len: usize) -> Array {
    let text = path.map_or_else(Vec::new, |path| path.to_string_lossy().into_owned().into_bytes());
    let ends = Memory::I32(vec![0, text.len() as i32]);
    let text = Array::plain(1, vec![ends, Memory::Bytes(text)]);
    Array {
        null_count: if path.is_none() { len } else { 0 },
        validity: path.is_none().then(|| Memory::Bytes(vec![0; len.div_ceil(8)])),
        dictionary: Some(Box::new(text)),
        ..Array::plain(len, vec![Memory::I32(vec![0; len])])
    }
}
