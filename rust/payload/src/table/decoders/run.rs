//! The row for a Weights & Biases run. It holds the description of the run, the final summary, or
//! the final configuration. The description says who ran which program, when and where, and how the
//! run ended.

use std::borrow::Cow;
use std::collections::{HashMap, TryReserveError};

use super::wandb::{joined, read_items, read_value, too_deep};
use super::{Decode, Decoded, Facts, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::row::Row;
use crate::table::tree::LEVELS_MAX;
use crate::table::view::View;
use crate::value::copied;
use crate::{Item, PayloadError, PayloadReason, Value, WandbChange, WandbEnvironment, WandbRecord, WandbRun};

/// Decodes a run's description into one row.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Whether there is a row that the sink hasn't taken yet.
    has_row: bool,
    /// The last record that describes the run. Each such record describes the whole run.
    about: Vec<u8>,
    environment: Environment,
    exit_code: Option<i32>,
}

/// The strings from the environment records. Not every record contains all of them. A string is
/// empty until a record contains it.
#[derive(Debug, Clone, Default)]
struct Environment {
    executable: String,
    program: String,
    args: Vec<String>,
    host: String,
    git_commit: String,
}

impl Run {
    pub(super) fn new(facts: &Facts) -> Self {
        Run {
            has_row: facts.is_run,
            about: Vec::new(),
            environment: Environment::default(),
            exit_code: None,
        }
    }
}

impl Environment {
    fn add(&mut self, part: &WandbEnvironment<'_>) -> Result<(), TryReserveError> {
        for (known, text) in [
            (&mut self.executable, part.executable),
            (&mut self.program, part.program),
            (&mut self.host, part.host),
            (&mut self.git_commit, part.git_commit),
        ] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                *known = copied(text)?;
            }
        }
        if !part.args.is_empty() {
            self.args.clear();
            self.args.try_reserve(part.args.len())?;
            for text in &part.args {
                self.args.push(copied(text)?);
            }
        }
        Ok(())
    }

    /// Returns the command in shell syntax, or `None` if the program is unknown.
    fn command(&self) -> Option<String> {
        if self.program.is_empty() {
            return None;
        }
        let executable = match &*self.executable {
            "" => "python",
            path => path,
        };
        let mut command = String::new();
        push_quoted(&mut command, executable);
        // The program may be `-m` followed by a module name.
        if let Some(name) = self.program.strip_prefix("-m ") {
            push_quoted(&mut command, "-m");
            push_quoted(&mut command, name);
        } else {
            push_quoted(&mut command, &self.program);
        }
        for text in &self.args {
            push_quoted(&mut command, text);
        }
        Some(command)
    }
}

/// Appends a word to a command, quoted if necessary, as in Python's `shlex.join`.
fn push_quoted(command: &mut String, word: &str) {
    if !command.is_empty() {
        command.push(' ');
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        command.push_str(word);
    } else {
        command.push('\'');
        command.push_str(&word.replace('\'', r#"'"'"'"#));
        command.push('\'');
    }
}

impl Decode for Run {
    fn record(&mut self, record: &Record<'_>, _sink: &mut dyn Sink) -> Decoded {
        match WandbRecord::decode(record.data)? {
            WandbRecord::Run(_) => {
                self.about.clear();
                self.about.try_reserve(record.data.len())?;
                self.about.extend_from_slice(record.data);
            }
            WandbRecord::Environment(part) => self.environment.add(&part)?,
            WandbRecord::Exit(code) => self.exit_code = Some(code),
            _ => {}
        }
        self.has_row = true;
        Ok(true)
    }

    fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        if !self.has_row {
            return true;
        }
        let about = match WandbRecord::decode(&self.about) {
            Ok(WandbRecord::Run(about)) => about,
            _ => WandbRun::default(),
        };
        let environment = &self.environment;
        let tags: Vec<Value<'_>> = about.tags.iter().map(|&tag| Value::Text(tag.into())).collect();
        let command = environment.command();
        self.has_row = !sink.row(&Row::new(vec![
            ("id", text_of(&[about.run_id])),
            ("name", text_of(&[about.display_name])),
            ("project", text_of(&[about.project])),
            ("entity", text_of(&[about.entity])),
            ("group", text_of(&[about.group])),
            ("job_type", text_of(&[about.job_type])),
            ("tags", View::Values(&tags)),
            ("notes", text_of(&[about.notes])),
            ("state", View::Text(state(self.exit_code))),
            (
                "exit_code",
                self.exit_code.map_or(View::Null, |code| View::Int(code.into())),
            ),
            ("start_time", about.start_time.map_or(View::Null, View::Time)),
            ("host", text_of(&[about.host, Some(&environment.host)])),
            (
                "git_commit",
                text_of(&[about.git_commit, Some(&environment.git_commit)]),
            ),
            ("command", text_of(&[command.as_deref()])),
        ]));
        !self.has_row
    }
}

fn state(exit_code: Option<i32>) -> &'static str {
    match exit_code {
        None => "unfinished",
        Some(0) => "finished",
        Some(_) => "failed",
    }
}

/// Returns the first non-empty text.
fn text_of<'t>(texts: &[Option<&'t str>]) -> View<'t> {
    let mut stated = texts.iter().flatten().filter(|text| !text.is_empty());
    stated.next().map_or(View::Null, |text| View::Text(text))
}

/// Decodes a run's summary or configuration into one row.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// Whether the row is the configuration.
    is_config: bool,
    /// The values after all records so far. Before the first record, this is `None` unless the log
    /// is known to be a run.
    values: Option<Directory>,
    /// The row, until the sink has taken it.
    row: Option<Vec<Item<'static>>>,
}

/// A dictionary whose values change. If it were a list of items, each change would require a
/// search.
#[derive(Debug, Clone, Default)]
struct Directory {
    /// The values by name, each with a number that determines its position in the row.
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

    /// Returns the change that a record makes to the values, or `None` if it is a record of another
    /// kind. Fails unless all items of the change can be read.
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
}

impl Decode for Changes {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let record = record.data;
        let change = self.change_in(record);
        let values = self.values.get_or_insert_default();
        let Some(change) = change? else { return Ok(true) };
        for item in change.update {
            let item = item?;
            let (name, text, mut value) = (joined(&item.path)?, item.value_json, Value::Null);
            let fault = match read_value(record, text.as_bytes(), &name, &mut value) {
                Ok(None) if item.path.len() > LEVELS_MAX => Some(too_deep(record, text.as_bytes(), &name).into()),
                Ok(fault) => fault,
                // Earlier values from the record are already set, so the record can no longer be
                // omitted.
                Err(fault) if fault.error.reason != PayloadReason::OutOfMemory => Some(Box::new(Fault {
                    part: Part::Value,
                    ..*fault
                })),
                Err(fault) => return Err(fault),
            };
            match fault {
                Some(fault) => sink.fault(*fault),
                None => values.set(&item.path, value.into_owned()?)?,
            }
        }
        for item in change.remove {
            values.remove(&item?.path)?;
        }
        Ok(true)
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

    /// Passes the changes in the record to `take`: the new values by name, and the names of the
    /// removed values.
    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let Some(change) = self.change_in(record)? else {
            return Ok(false);
        };
        let mut first = None;
        let update = read_items(record, change.update, None, &mut |fault| {
            first.get_or_insert(fault);
        })?;
        if let Some(fault) = first {
            return Err(fault.into());
        }
        let mut removed = Vec::new();
        for item in change.remove {
            removed.try_reserve(1)?;
            removed.push(Value::Text(joined(&item?.path)?.into()));
        }
        let (update, remove) = (View::Object(&update), View::Values(&removed));
        take(View::Cells(&[("update", update), ("remove", remove)]));
        Ok(true)
    }
}

impl Directory {
    /// Sets the value at a path. Any values along the way that aren't dictionaries are replaced
    /// with dictionaries.
    fn set(&mut self, path: &[&str], value: Value<'static>) -> Result<(), TryReserveError> {
        let Some((name, directories)) = path.split_last() else {
            return Ok(());
        };
        let mut directory = self;
        for name in directories {
            let node = directory.node(copied(name)?.into())?;
            if node.directory()?.is_none() {
                *node = Node::Directory(Directory::default());
            }
            let Node::Directory(inside) = node else { return Ok(()) };
            directory = inside;
        }
        *directory.node(copied(name)?.into())? = Node::Value(value);
        Ok(())
    }

    /// Removes the value at a path, if any.
    fn remove(&mut self, path: &[&str]) -> Result<(), TryReserveError> {
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

    /// Returns the node with this name, adding it if it doesn't exist.
    fn node(&mut self, name: Cow<'static, str>) -> Result<&mut Node, TryReserveError> {
        self.values.try_reserve(1)?;
        let place = self.values.entry(name);
        let (_, node) = place.or_insert_with(|| {
            self.next += 1;
            (self.next, Node::Value(Value::Null))
        });
        Ok(node)
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
    /// Returns the values by name if the node is a dictionary.
    fn directory(&mut self) -> Result<Option<&mut Directory>, TryReserveError> {
        if let Node::Value(Value::Object(items)) = self {
            let mut directory = Directory::default();
            for (name, value) in std::mem::take(items) {
                *directory.node(name)? = Node::Value(value);
            }
            *self = Node::Directory(directory);
        }
        Ok(match self {
            Node::Directory(directory) => Some(directory),
            Node::Value(_) => None,
        })
    }
}
