//! Passes records to the payload decoders, and detects the kinds of data in records.

use std::collections::HashMap;
use std::sync::Arc;

use cordwood_payload::table::{Decoder, Facts, OneRow, Record, View};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;

use super::write_batch::engine_of_log;
use crate::interpreter::interned;
use crate::memory::batch_pool::PooledBatch;
use crate::reader::record_batch::RecordBatch;

/// Returns the decoder for a payload, given the facts about its log.
pub(super) fn decoder_of(payload: &str, facts: Facts) -> PyResult<Decoder> {
    let decoder = Decoder::named(payload, facts);
    decoder.ok_or_else(|| PyValueError::new_err(format!("'{payload}' is not known")))
}

/// Returns the facts that follow from a log's dialect.
pub(super) fn facts_of(dialect: Option<&str>) -> Facts {
    let mut facts = Facts::default();
    facts.engine = engine_of_log(dialect);
    facts
}

/// The records of a batch or list.
pub(super) enum Records {
    Batch(Arc<PooledBatch>),
    List(Vec<(u64, u64, Option<bool>, PyBackedBytes)>),
}

impl Records {
    /// Converts a `RecordBatch`, or a list of `Record`. If `has_salvaged` is true, each record of a
    /// list also says whether it is salvaged.
    pub(super) fn of(records: &Bound<'_, PyAny>, has_salvaged: bool) -> PyResult<Self> {
        if let Ok(batch) = records.cast::<RecordBatch>() {
            return Ok(Records::Batch(batch.get().shared()));
        }
        let py = records.py();
        let (offset, end_offset) = (interned!(py, "offset")?, interned!(py, "end_offset")?);
        let (salvaged, data) = (interned!(py, "salvaged")?, interned!(py, "data")?);
        let records = records.cast::<PyList>()?.iter().map(|record| {
            Ok((
                record.getattr(offset)?.extract()?,
                record.getattr(end_offset)?.extract()?,
                has_salvaged.then(|| record.getattr(salvaged)?.extract()).transpose()?,
                record.getattr(data)?.extract()?,
            ))
        });
        Ok(Records::List(records.collect::<PyResult<_>>()?))
    }

    pub(super) fn get(&self, index: usize) -> Option<Record<'_>> {
        match self {
            Records::Batch(batch) => Some(Record {
                offset: batch.records().record_offsets().get(index).copied()?,
                ..Record::of(batch.records().get(index)?)
            }),
            Records::List(records) => records
                .get(index)
                .map(|(offset, end_offset, is_salvaged, data)| Record {
                    offset: *offset,
                    end_offset: *end_offset,
                    is_salvaged: *is_salvaged,
                    data,
                }),
        }
    }
}

/// Returns the kinds of the entities in records.
///
/// Args:
///     source: A `RecordBatch`, or a list of `Record`.
///
/// Returns:
///     A pair: a list of each kind of entity with the indices of its records, and a list of the
///     indices of the unreadable records. The kind of an entity without a key is `None`.
#[pyfunction]
#[pyo3(signature = (source, /))]
#[expect(clippy::type_complexity, reason = "a tuple of Python")]
pub(crate) fn entity_kinds(source: &Bound<'_, PyAny>) -> PyResult<(Vec<(Option<String>, Vec<usize>)>, Vec<usize>)> {
    let records = Records::of(source, false)?;
    let mut decoder = decoder_of("entity", Facts::default())?;
    Ok(source.py().detach(|| {
        let mut numbers = HashMap::new();
        let mut kinds: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        let mut left_out = Vec::new();
        for (index, record) in (0..).map_while(|index| Some((index, records.get(index)?))) {
            let mut kind = None;
            let mut sink = OneRow {
                take: &mut |row| {
                    if let Some(View::Text(text)) = row.field("__kind__") {
                        kind = Some(text.to_owned());
                    }
                },
                fault: &mut drop,
            };
            if decoder.record(&record, &mut sink).is_err() {
                left_out.push(index);
                continue;
            }
            let number = *numbers.entry(kind).or_insert_with_key(|kind| {
                kinds.push((kind.clone(), Vec::new()));
                kinds.len() - 1
            });
            kinds[number].1.push(index);
        }
        (kinds, left_out)
    }))
}

/// Checks whether an entire record can be decoded as this payload.
///
/// Args:
///     payload: The name of the payload.
///     record: The record.
///     dialect: The dialect of the log, if it is known.
///
/// Returns:
///     True if the record can be decoded without a fault.
#[pyfunction]
#[pyo3(signature = (payload, record, dialect, /))]
pub(crate) fn is_decoded(payload: &str, record: &[u8], dialect: Option<&str>) -> PyResult<bool> {
    let mut decoder = decoder_of(payload, facts_of(dialect))?;
    Ok(matches!(decoder.value(record, &mut |_| ()), Ok(true)))
}
