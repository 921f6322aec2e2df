//! The rows of the history of a run of Weights & Biases.

use std::collections::HashSet;

use super::items::{read_value, same_name};
use super::{Decode, Fault, Record, Sink, value_of_row};
use crate::table::number::{Number, plain_number};
use crate::table::row::Row;
use crate::table::tree::{Item, Refused, Value, new_item, push_item, twice};
use crate::table::view::View;
use crate::wandb::read_step;

/// One row for each step.
#[derive(Debug, Clone)]
pub(super) struct History;

impl Decode for History {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        match history(record.data, sink) {
            Ok(Some(items)) => Ok(sink.row(&Row::of_items(&items))),
            Ok(None) => Ok(true),
            Err(refused) => Err(refused.in_record(record.data)),
        }
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        value_of_row(self, record, take)
    }
}

/// The values of a step, without those that cannot be read. `None` for any other kind of record.
fn history<'r>(record: &'r [u8], sink: &mut dyn Sink) -> Result<Option<Vec<Item<'r>>>, Box<Refused>> {
    let mut found: Vec<Item<'_>> = Vec::new();
    let step = read_step(record, |name, value| {
        match plain_number(value) {
            Some((Number::Int(number), len)) if len == value.len() => {
                return push_item(&mut found, name, || Value::Int(number));
            }
            Some((Number::Float(number), len)) if len == value.len() => {
                return push_item(&mut found, name, || Value::Float(number));
            }
            _ => {}
        }
        if let Some(fault) = read_value(record, value, &name.clone(), new_item(&mut found, name)?)? {
            sink.fault(fault);
            found.pop();
        }
        Ok(())
    })?;
    let Some(step) = step else { return Ok(None) };
    if twice(&found)?.is_some() {
        let mut names = HashSet::new();
        found.retain(|(name, _)| {
            let is_first = names.insert(name.clone());
            if !is_first {
                sink.fault(same_name(record, name));
            }
            is_first
        });
    }
    // In old files, the step is not among the items.
    let at = found.iter().position(|(name, _)| name == "_step");
    match (at, step) {
        (Some(at), _) => found[..=at].rotate_right(1),
        (None, Some(step)) => found.insert(0, ("_step".into(), Value::Int(step))),
        (None, None) => {}
    }
    Ok(Some(found))
}
