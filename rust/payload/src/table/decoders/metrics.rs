//! The rows of the measurements of the machine during a run of Weights & Biases.

use super::items::read_items;
use super::{Decode, Fault, Record, Sink, value_of_row};
use crate::WandbRecord;
use crate::table::row::Row;
use crate::table::tree::{Item, Refused, Value};
use crate::table::view::View;

/// One row for each measurement.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    /// When the run started, in microseconds since 1970.
    start: Option<i64>,
}

impl Metrics {
    fn items<'r>(&mut self, record: &'r [u8], sink: &mut dyn Sink) -> Result<Option<Vec<Item<'r>>>, Box<Refused>> {
        let (timestamp, items) = match WandbRecord::decode(record)? {
            WandbRecord::Run(run) => {
                self.start = run.start_time.or(self.start);
                return Ok(None);
            }
            WandbRecord::Stats { timestamp, items } => (timestamp, items),
            _ => return Ok(None),
        };
        let mut found: Vec<Item<'r>> = Vec::new();
        if let Some(timestamp) = timestamp {
            found.push(("_timestamp".into(), seconds(timestamp)));
            if let Some(start) = self.start {
                found.push(("_runtime".into(), seconds(timestamp - start)));
            }
        }
        found.append(&mut read_items(record, items, Some("system"), &mut |fault| {
            sink.fault(fault);
        })?);
        Ok(Some(found))
    }
}

fn seconds(microseconds: i64) -> Value<'static> {
    Value::Float(microseconds as f64 / 1e6)
}

impl Decode for Metrics {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        match self.items(record.data, sink) {
            Ok(Some(items)) => Ok(sink.row(&Row::of_items(&items))),
            Ok(None) => Ok(true),
            Err(refused) => Err(refused.in_record(record.data)),
        }
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        value_of_row(self, record, take)
    }
}
