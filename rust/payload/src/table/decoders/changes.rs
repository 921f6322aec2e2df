//! The summary or the configuration of a run of Weights & Biases, after all changes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::items::{joined, read_items, read_value, too_deep};
use super::{Decode, Facts, Fault, Part, Record, Sink};
use crate::table::row::Row;
use crate::table::tree::{Item, LEVELS_MAX, Refused, Value, copied, no_memory};
use crate::table::view::View;
use crate::{PayloadError, WandbChange, WandbRecord, WandbRun};

/// One row for a run: its summary or its configuration.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// Whether it is the configuration.
    is_config: bool,
    /// The values after the records so far. `None` without a record, unless the log is a run.
    values: Option<Directory>,
    /// The row, until the sink has taken it.
    row: Option<Vec<Item<'static>>>,
}

/// A dictionary that changes. A list of items would be searched for each change.
#[derive(Debug, Clone, Default)]
struct Directory {
    /// The values by their names, each with a number: they are in the order of these.
    values: HashMap<Cow<'static, str>, (u64, Node)>,
    next: u64,
}

#[derive(Debug, Clone)]
enum Node {
    Value(Value<'static>),
    Directory(Directory),
}

impl Changes {
    pub(super) fn new(is_config: bool, facts: &Facts) -> Self {
        Changes {
            is_config,
            values: facts.is_run.then(Directory::default),
            row: None,
        }
    }

    /// The change in a record, if it is of the kind that counts. All of its items can be read.
    fn change_in<'r>(&self, record: &'r [u8]) -> Result<Option<WandbChange<'r>>, PayloadError> {
        let change = match (WandbRecord::decode(record)?, self.is_config) {
            (WandbRecord::Summary(change), false) | (WandbRecord::Config(change), true) => change,
            (
                WandbRecord::Run(WandbRun {
                    config: Some(change), ..
                }),
                true,
            ) => change,
            _ => return Ok(None),
        };
        for item in change.update.clone().chain(change.remove.clone()) {
            item?;
        }
        Ok(Some(change))
    }

    fn apply(&mut self, record: &[u8], sink: &mut dyn Sink) -> Result<(), Box<Refused>> {
        let change = self.change_in(record);
        let values = self.values.get_or_insert_default();
        let Some(change) = change? else { return Ok(()) };
        for item in change.update {
            let item = item?;
            let (name, text, mut value) = (joined(&item.path)?, item.value_json, Value::Null);
            let fault = match read_value(record, text.as_bytes(), &name, &mut value) {
                Ok(None) if item.path.len() > LEVELS_MAX => Some(too_deep(record, text.as_bytes(), &name)),
                Ok(fault) => fault,
                // The values before it are set already: the record cannot be left out.
                Err(refused) if matches!(*refused, Refused::Names) => Some(Fault {
                    part: Part::Value,
                    ..refused.in_record(record)
                }),
                Err(refused) => return Err(refused),
            };
            match fault {
                Some(fault) => sink.fault(fault),
                None => values.set(&item.path, value.into_owned()?)?,
            }
        }
        for item in change.remove {
            values.remove(&item?.path)?;
        }
        Ok(())
    }

    fn value_of(&self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<Result<bool, Fault>, Box<Refused>> {
        let Some(change) = self.change_in(record)? else {
            return Ok(Ok(false));
        };
        let mut first = None;
        let update = read_items(record, change.update, None, &mut |fault| {
            first.get_or_insert(fault);
        })?;
        if let Some(fault) = first {
            return Ok(Err(fault));
        }
        let mut removed = Vec::new();
        for item in change.remove {
            removed.try_reserve(1).map_err(no_memory)?;
            removed.push(Value::Text(joined(&item?.path)?.into()));
        }
        let (update, remove) = (View::Object(&update), View::Values(&removed));
        take(View::Cells(&[("update", update), ("remove", remove)]));
        Ok(Ok(true))
    }
}

impl Decode for Changes {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        match self.apply(record.data, sink) {
            Ok(()) => Ok(true),
            Err(refused) => Err(refused.in_record(record.data)),
        }
    }

    fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        if let Some(values) = self.values.take() {
            self.row = Some(values.into_items());
        }
        if let Some(items) = &self.row
            && !sink.row(&Row::of_items(items))
        {
            return false;
        }
        self.row = None;
        true
    }

    /// The change in the record: the new values by their names, and the names that are removed.
    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        self.value_of(record, take)
            .unwrap_or_else(|refused| Err(refused.in_record(record)))
    }
}

impl Directory {
    /// Sets the value of a path. A value in the way that is not a dictionary becomes one.
    fn set(&mut self, path: &[&str], value: Value<'static>) -> Result<(), Box<Refused>> {
        let Some((name, directories)) = path.split_last() else {
            return Ok(());
        };
        let mut directory = self;
        for name in directories {
            let node = directory.node(name)?;
            if node.directory()?.is_none() {
                *node = Node::Directory(Directory::default());
            }
            let Node::Directory(inside) = node else { return Ok(()) };
            directory = inside;
        }
        *directory.node(name)? = Node::Value(value);
        Ok(())
    }

    /// Removes the value of a path, if it has one.
    fn remove(&mut self, path: &[&str]) -> Result<(), Box<Refused>> {
        let Some((&name, directories)) = path.split_last() else {
            return Ok(());
        };
        let mut directory = self;
        for &name in directories {
            let Some((_, node)) = directory.values.get_mut(name) else {
                return Ok(());
            };
            let Some(inside) = node.directory()? else { return Ok(()) };
            directory = inside;
        }
        directory.values.remove(name);
        Ok(())
    }

    /// The place of a value, which may be new.
    fn node(&mut self, name: &str) -> Result<&mut Node, Box<Refused>> {
        if !self.values.contains_key(name) {
            self.push(copied(name)?.into(), Value::Null)?;
        }
        let place = self.values.get_mut(name);
        place.map(|(_, node)| node).ok_or(Refused::Memory.into())
    }

    fn push(&mut self, name: Cow<'static, str>, value: Value<'static>) -> Result<(), Box<Refused>> {
        self.values.try_reserve(1).map_err(no_memory)?;
        self.values.insert(name, (self.next, Node::Value(value)));
        self.next += 1;
        Ok(())
    }

    fn into_items(self) -> Vec<Item<'static>> {
        let mut values: Vec<_> = self.values.into_iter().collect();
        values.sort_unstable_by_key(|(_, (number, _))| *number);
        let items = values.into_iter().map(|(name, (_, node))| {
            let value = match node {
                Node::Value(value) => value,
                Node::Directory(directory) => Value::Object(directory.into_items()),
            };
            (name, value)
        });
        items.collect()
    }
}

impl Node {
    /// The values by their names, if it is a dictionary.
    fn directory(&mut self) -> Result<Option<&mut Directory>, Box<Refused>> {
        if let Node::Value(Value::Object(items)) = self {
            let mut directory = Directory::default();
            for (name, value) in std::mem::take(items) {
                directory.push(name, value)?;
            }
            *self = Node::Directory(directory);
        }
        Ok(match self {
            Node::Directory(directory) => Some(directory),
            Node::Value(_) => None,
        })
    }
}
