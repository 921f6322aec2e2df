//! Decodes the records of a Weights & Biases run: its steps, its system metrics, and its console
//! output.

use std::borrow::Cow;
use std::collections::{HashSet, TryReserveError};

use super::{Decode, Decoded, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::row::Row;
use crate::table::tree::{LEVELS_MAX, Refused, Rules, new_item, parse, parse_number, push_item, twice, utf8};
use crate::table::view::View;
use crate::value::copied;
use crate::wandb::read_step;
use crate::{Item, PayloadError, PayloadReason, Value, WandbItems, WandbOutput, WandbRecord};

/// Decodes each step into one row with the step's values. Unreadable values are omitted.
#[derive(Debug, Clone)]
pub(super) struct History;

impl Decode for History {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let record = record.data;
        let mut found: Vec<Item<'_>> = Vec::new();
        let step = read_step::<Box<Fault>>(record, |name, value| {
            if let Some(fault) = read_value(record, value, &name.clone(), new_item(&mut found, name)?)? {
                sink.fault(*fault);
                found.pop();
            }
            Ok(())
        })?;
        let Some(step) = step else { return Ok(true) };
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
        // In old files, the step number isn't one of the items.
        let at = found.iter().position(|(name, _)| name == "_step");
        match (at, step) {
            (Some(at), _) => found[..=at].rotate_right(1),
            (None, Some(step)) => found.insert(0, ("_step".into(), Value::Int(step))),
            (None, None) => {}
        }
        Ok(sink.row(&Row::of_items(&found)))
    }
}

/// Decodes each set of system metrics into one row.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    /// When the run started, in microseconds since 1970.
    start: Option<i64>,
}

impl Decode for Metrics {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let (timestamp, items) = match WandbRecord::decode(record.data)? {
            WandbRecord::Run(run) => {
                self.start = run.start_time.or(self.start);
                return Ok(true);
            }
            WandbRecord::Stats { timestamp, items } => (timestamp, items),
            _ => return Ok(true),
        };
        let mut found: Vec<Item<'_>> = Vec::new();
        if let Some(timestamp) = timestamp {
            found.push(("_timestamp".into(), seconds(timestamp)));
            if let Some(start) = self.start {
                found.push(("_runtime".into(), seconds(timestamp - start)));
            }
        }
        found.append(&mut read_items(record.data, items, Some("system"), &mut |fault| {
            sink.fault(fault);
        })?);
        Ok(sink.row(&Row::of_items(&found)))
    }
}

fn seconds(microseconds: i64) -> Value<'static> {
    Value::Float(microseconds as f64 / 1e6)
}

/// Decodes each printed line into one row. The row contains the time when the start of the line was
/// printed. The end of the log also ends a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The unfinished lines of the streams, oldest first.
    unfinished: Vec<Line>,
    /// How many bytes of the record's text the sink has already taken. This is 0 unless the sink
    /// ran out of room.
    taken_len: usize,
}

#[derive(Debug, Clone)]
struct Line {
    is_stderr: bool,
    /// The time when the start of the line was printed.
    timestamp: Option<i64>,
    text: String,
}

impl Output {
    fn lines(&mut self, output: &WandbOutput<'_>, sink: &mut dyn Sink) -> Decoded {
        // Only a newline ends a line. On a terminal, the text after a carriage return overwrites
        // the line.
        let mut rest = output.line.get(self.taken_len..).unwrap_or_default();
        while let Some((end, after)) = rest.split_once('\n') {
            let started = self.line_of(output.is_stderr);
            let (timestamp, line) = match started {
                None => (output.timestamp, Cow::Borrowed(end)),
                Some(at) => {
                    let Line { timestamp, text, .. } = &self.unfinished[at];
                    let mut line = copied(text)?;
                    line.try_reserve(end.len())?;
                    line.push_str(end);
                    (*timestamp, Cow::Owned(line))
                }
            };
            if !sink.row(&Row::new(cells(output.is_stderr, timestamp, "line", &line).into())) {
                self.taken_len = output.line.len() - rest.len();
                return Ok(false);
            }
            started.map(|at| self.unfinished.remove(at));
            rest = after;
        }
        if rest.is_empty() {
            return Ok(true);
        }
        match self.line_of(output.is_stderr) {
            Some(at) => {
                let text = &mut self.unfinished[at].text;
                text.try_reserve(rest.len())?;
                text.push_str(rest);
            }
            None => self.unfinished.push(Line {
                is_stderr: output.is_stderr,
                timestamp: output.timestamp,
                text: copied(rest)?,
            }),
        }
        Ok(true)
    }

    /// Returns the index of a stream's unfinished line.
    fn line_of(&self, is_stderr: bool) -> Option<usize> {
        self.unfinished.iter().position(|line| line.is_stderr == is_stderr)
    }
}

/// Returns the cells for printed text.
fn cells<'t>(
    is_stderr: bool,
    timestamp: Option<i64>,
    name: &'static str,
    text: &'t str,
) -> [(&'static str, View<'t>); 3] {
    let seconds = |time| View::Float(time as f64 / 1e6);
    [
        ("_timestamp", timestamp.map_or(View::Null, seconds)),
        ("stream", View::Text(if is_stderr { "stderr" } else { "stdout" })),
        (name, View::Text(text)),
    ]
}

/// Returns the printed text that a record contains, or `None` if it contains none.
fn output_in(record: &[u8]) -> Result<Option<WandbOutput<'_>>, PayloadError> {
    match WandbRecord::decode(record)? {
        WandbRecord::Output(output) | WandbRecord::OutputRaw(output) => Ok(Some(output)),
        _ => Ok(None),
    }
}

impl Decode for Output {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        let Some(output) = output_in(record.data)? else {
            return Ok(true);
        };
        let has_room = self.lines(&output, sink);
        if !matches!(has_room, Ok(false)) {
            self.taken_len = 0;
        }
        has_room
    }

    fn rest(&mut self, sink: &mut dyn Sink) -> bool {
        while let Some(line) = self.unfinished.first() {
            if !sink.row(&Row::new(
                cells(line.is_stderr, line.timestamp, "line", &line.text).into(),
            )) {
                return false;
            }
            self.unfinished.remove(0);
        }
        true
    }

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Decoded {
        let Some(output) = output_in(record)? else {
            return Ok(false);
        };
        take(View::Cells(&cells(
            output.is_stderr,
            output.timestamp,
            "text",
            output.line,
        )));
        Ok(true)
    }
}

/// Parses a run value's JSON text. Returns a fault if the value cannot be read.
pub(super) fn read_value<'r>(
    record: &[u8],
    text: &'r [u8],
    name: &str,
    value: &mut Value<'r>,
) -> Result<Option<Box<Fault>>, Box<Fault>> {
    // Most values are numbers. Parsing a number is faster than checking whether its text is UTF-8.
    if let [b'-' | b'0'..=b'9', ..] = text
        && parse_number(text, 0, Rules::Run, value).is_ok_and(|end| end == text.len())
    {
        return Ok(None);
    }
    let json = utf8(text, offset_in(record, text))?;
    parse(json, Rules::Run, value).map_or_else(|refused| fault_of(record, json, name, &refused), |()| Ok(None))
}

/// Returns the fault for a refused value. If the whole record is refused, the fault is an `Err`.
#[cold]
fn fault_of(record: &[u8], json: &str, name: &str, refused: &Refused) -> Result<Option<Box<Fault>>, Box<Fault>> {
    let offset = offset_in(record, json.as_bytes());
    let describe = |what: &str| format!("the value of '{name}' is not JSON: {what}");
    let fault = refused.in_text(json, offset, Part::Value, describe);
    match refused {
        // The whole record is omitted.
        Refused::Names => {
            let (part, error) = (Part::Record, PayloadError::new(0, record.len(), fault.error.reason));
            Err(Fault { part, error, ..fault }.into())
        }
        Refused::Memory => Err(fault.into()),
        Refused::Levels => Ok(Some(too_deep(record, json.as_bytes(), name).into())),
        _ => Ok(Some(fault.into())),
    }
}

fn offset_in(record: &[u8], text: &[u8]) -> usize {
    text.as_ptr().addr() - record.as_ptr().addr()
}

/// Returns the fault for a value whose text is too deeply nested.
pub(super) fn too_deep(record: &[u8], text: &[u8], name: &str) -> Fault {
    let error = PayloadError::new(offset_in(record, text), text.len(), PayloadReason::TooDeep);
    let detail = format!("the value of '{name}' has more than {LEVELS_MAX} levels");
    Fault::new(Part::Value, error, detail)
}

/// Returns the fault for a value whose name was already used. The earlier value is kept.
fn same_name(record: &[u8], name: &str) -> Fault {
    let detail = format!("two values have the name '{name}'");
    Fault::whole(Part::Value, record, PayloadReason::NonCanonical, detail)
}

/// Returns the names in a path, joined with dots.
pub(super) fn joined(path: &[&str]) -> Result<String, TryReserveError> {
    let mut name = String::new();
    for (index, part) in path.iter().enumerate() {
        name.try_reserve(part.len() + 1)?;
        if index > 0 {
            name.push('.');
        }
        name.push_str(part);
    }
    Ok(name)
}

/// Returns the items' values by name. Unreadable values are omitted. If a prefix is given, each
/// name starts with it, and dictionaries are flattened the way wandb flattens metrics.
pub(super) fn read_items<'r>(
    record: &[u8],
    items: WandbItems<'r>,
    prefix: Option<&str>,
    leave_out: &mut dyn FnMut(Fault),
) -> Result<Vec<Item<'r>>, Box<Fault>> {
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
            fault = twice.map(|name| same_name(record, &name).into());
        }
        if let Some(fault) = fault {
            leave_out(*fault);
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
    /// Adds a value, or the values inside a dictionary. Stops at the first name already in use, and
    /// returns that name.
    fn add(&mut self, name: String, value: Value<'v>, is_flat: bool) -> Result<Option<String>, TryReserveError> {
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
                self.names.try_reserve(1)?;
                self.names.insert(copied(&name)?);
                push_item(&mut self.items, name.into(), || value)?;
            }
        }
        Ok(None)
    }
}
