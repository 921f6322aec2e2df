//! The values in the records of a run of Weights & Biases.

use std::collections::HashSet;

use super::{Fault, Part};
use crate::table::tree::{Item, LEVELS_MAX, Refused, Rules, Value, copied, no_memory, parse, push_item};
use crate::{PayloadError, PayloadReason, WandbItems};

/// Reads the text of a value of a run. Returns the fault of a value that cannot be read.
pub(super) fn read_value<'r>(
    record: &[u8],
    text: &'r [u8],
    name: &str,
    value: &mut Value<'r>,
) -> Result<Option<Fault>, Box<Refused>> {
    let offset = offset_in(record, text);
    let json = str::from_utf8(text).map_err(|error| PayloadError {
        offset: offset + error.valid_up_to(),
        len: text.len() - error.valid_up_to(),
        reason: PayloadReason::NotUtf8,
    })?;
    match parse(json, Rules::Run, value) {
        Ok(()) => Ok(None),
        Err(refused) => match *refused {
            Refused::Names | Refused::Memory => Err(refused),
            Refused::Levels => Ok(Some(too_deep(record, text, name))),
            _ => {
                let describe = |what: &str| format!("the value of '{name}' is not JSON: {what}");
                Ok(Some(refused.in_text(json, offset, Part::Value, describe)))
            }
        },
    }
}

fn offset_in(record: &[u8], text: &[u8]) -> usize {
    text.as_ptr().addr() - record.as_ptr().addr()
}

/// The fault of a value with too many levels, whose text is given.
pub(super) fn too_deep(record: &[u8], text: &[u8], name: &str) -> Fault {
    let error = PayloadError {
        offset: offset_in(record, text),
        len: text.len(),
        reason: PayloadReason::TooDeep,
    };
    Fault::value(
        error,
        format!("the value of '{name}' has more than {LEVELS_MAX} levels"),
    )
}

/// The fault of a value that has the name of an earlier one, which counts.
pub(super) fn same_name(record: &[u8], name: &str) -> Fault {
    let error = PayloadError {
        offset: 0,
        len: record.len(),
        reason: PayloadReason::NonCanonical,
    };
    Fault::value(error, format!("two values have the name '{name}'"))
}

/// The names of a path, joined by dots.
pub(super) fn joined(path: &[&str]) -> Result<String, Box<Refused>> {
    let mut name = String::new();
    for (index, part) in path.iter().enumerate() {
        name.try_reserve(part.len() + 1).map_err(no_memory)?;
        if index > 0 {
            name.push('.');
        }
        name.push_str(part);
    }
    Ok(name)
}

/// The values of items by their names, without those that cannot be read. With a prefix, the names
/// start with it, and dictionaries are flattened, as wandb does with metrics.
pub(super) fn read_items<'r>(
    record: &[u8],
    items: WandbItems<'r>,
    prefix: Option<&str>,
    leave_out: &mut dyn FnMut(Fault),
) -> Result<Vec<Item<'r>>, Box<Refused>> {
    let mut found = Found::default();
    for item in items {
        let (item, mut value) = (item?, Value::Null);
        let mut name = joined(&item.path)?;
        if let Some(prefix) = prefix {
            name = joined(&[prefix, &name])?;
        }
        let mut fault = read_value(record, item.value_json.as_bytes(), &name, &mut value)?;
        if fault.is_none() {
            let twice = found.add(name, value, prefix.is_some())?;
            fault = twice.map(|name| same_name(record, &name));
        }
        if let Some(fault) = fault {
            leave_out(fault);
        }
    }
    Ok(found.items)
}

#[derive(Default)]
struct Found<'v> {
    items: Vec<Item<'v>>,
    names: HashSet<String>,
}

impl<'v> Found<'v> {
    /// Adds a value, or the values in it. It stops at a value whose name another one has, and returns
    /// that name.
    fn add(&mut self, name: String, value: Value<'v>, is_flat: bool) -> Result<Option<String>, Box<Refused>> {
        match value {
            Value::Object(items) if is_flat => {
                for (inside, value) in items {
                    if let Some(twice) = self.add(joined(&[&name, &inside])?, value, true)? {
                        return Ok(Some(twice));
                    }
                }
            }
            value => {
                if self.names.contains(&name) {
                    return Ok(Some(name));
                }
                self.names.try_reserve(1).map_err(no_memory)?;
                self.names.insert(copied(&name)?);
                push_item(&mut self.items, name.into(), || value)?;
            }
        }
        Ok(None)
    }
}
