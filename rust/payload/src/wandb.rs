//! Decodes a record from the `.wandb` file of a Weights & Biases run.
//!
//! The record is a protocol buffer, `wandb_internal.Record`. This module parses it by hand and only
//! reads a run's logged data. All other fields, such as the messages between wandb's processes, are
//! skipped.

use std::borrow::Cow;

use super::error::{PayloadError, PayloadReason};
use super::proto::{Field, Message, fields};
use super::several::Several;

// These field numbers are from `wandb/proto/wandb_internal.proto` in wandb 0.29.0.

/// The kinds of records. Each `Record` has exactly one (`oneof record_type`).
const HISTORY: u32 = 2;
const SUMMARY: u32 = 3;
const OUTPUT: u32 = 4;
const CONFIG: u32 = 5;
const STATS: u32 = 7;
const OUTPUT_RAW: u32 = 13;
const RUN: u32 = 17;
const EXIT: u32 = 18;
const ENVIRONMENT: u32 = 26;

/// An item of a `HistoryRecord`.
const HISTORY_ITEM: u32 = 1;

/// The default value of `OutputType`, which is omitted from records. The only other value is
/// `STDOUT`.
const STDERR: u64 = 0;

/// A record from a Weights & Biases run.
///
/// ```
/// use cordwood_payload::WandbRecord;
///
/// // A step of the history: loss = 0.5.
/// let record = b"\x12\x0e\x0a\x0c\x12\x04loss\x82\x01\x030.5";
/// let WandbRecord::History { items, .. } = WandbRecord::decode(record)? else { panic!() };
/// let items: Vec<_> = items.collect::<Result<_, _>>()?;
/// assert_eq!((&items[0].path[..], items[0].value_json), (&["loss"][..], "0.5"));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WandbRecord<'a> {
    /// The description of the run. There may be several of these records.
    Run(WandbRun<'a>),
    /// The values logged in a step.
    History {
        /// The values.
        items: WandbItems<'a>,
        /// The step number, or `None` if the record doesn't store it separately from the values.
        step: Option<i64>,
    },
    /// A change to the summary.
    Summary(WandbChange<'a>),
    /// A change to the configuration.
    Config(WandbChange<'a>),
    /// The printed output.
    Output(WandbOutput<'a>),
    /// The output, exactly as printed, including terminal control characters. The text may be split
    /// at any point.
    OutputRaw(WandbOutput<'a>),
    /// System metrics.
    Stats {
        /// The time of the measurement, in microseconds since 1970-01-01 00:00 UTC.
        timestamp: Option<i64>,
        /// The values.
        items: WandbItems<'a>,
    },
    /// Where and how the run was started. There may be several of these records, each with some of
    /// this information.
    Environment(WandbEnvironment<'a>),
    /// The end of the run, with its exit code.
    Exit(i32),
    /// Any other kind of record.
    Other,
}

/// The description of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WandbRun<'a> {
    /// The run's id, which is also part of the file name.
    pub run_id: Option<&'a str>,
    /// The user or team that owns the run.
    pub entity: Option<&'a str>,
    /// The project.
    pub project: Option<&'a str>,
    /// The group that the run belongs to.
    pub group: Option<&'a str>,
    /// The run's purpose within its group, such as `train`.
    pub job_type: Option<&'a str>,
    /// The display name.
    pub display_name: Option<&'a str>,
    /// Notes about the run.
    pub notes: Option<&'a str>,
    /// The run's tags.
    pub tags: Vec<&'a str>,
    /// The name of the machine.
    pub host: Option<&'a str>,
    /// The git commit of the program's repository.
    pub git_commit: Option<&'a str>,
    /// When the run started, in microseconds since 1970-01-01 00:00 UTC.
    pub start_time: Option<i64>,
    /// A change to the configuration.
    pub config: Option<WandbChange<'a>>,
}

/// Where and how a run was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WandbEnvironment<'a> {
    /// The path of the interpreter.
    pub executable: Option<&'a str>,
    /// The path of the program, or `-m` and a module name.
    pub program: Option<&'a str>,
    /// The program's arguments.
    pub args: Vec<&'a str>,
    /// The name of the machine.
    pub host: Option<&'a str>,
    /// The git commit of the program's repository.
    pub git_commit: Option<&'a str>,
}

/// A change to the summary or the configuration. The updates are applied before the removals.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WandbChange<'a> {
    /// The values to set.
    pub update: WandbItems<'a>,
    /// The values to remove. Their JSON is empty.
    pub remove: WandbItems<'a>,
}

/// The printed output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WandbOutput<'a> {
    /// Whether the text was printed to stderr rather than stdout.
    pub is_stderr: bool,
    /// When the text was printed, in microseconds since 1970-01-01 00:00 UTC.
    pub timestamp: Option<i64>,
    /// The text.
    pub line: &'a str,
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WandbItem<'a> {
    /// The names on the path to the value, from the name in the outermost dictionary to the value's
    /// own name. There is at least one name.
    pub path: Several<&'a str>,
    /// The value as JSON.
    pub value_json: &'a str,
}

/// The items in a record, in order. The iterator ends after an error.
#[derive(Debug, Clone)]
pub struct WandbItems<'a> {
    message: Message<'a>,
    /// The number of the field that contains an item.
    number: u32,
}

impl<'a> WandbRecord<'a> {
    /// Decodes a record.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a `Record`. Also fails if a value is repeated, because the rules
    /// of [the crate](crate) forbid that. Errors in items aren't detected until the items are read.
    pub fn decode(record: &'a [u8]) -> Result<Self, PayloadError> {
        let Some(field) = content(record)? else {
            return Ok(WandbRecord::Other);
        };
        let message = field.message()?;
        Ok(match field.number {
            HISTORY => read_history(message)?,
            SUMMARY => WandbRecord::Summary(WandbChange::new(message)),
            OUTPUT => WandbRecord::Output(WandbOutput::read(message)?),
            CONFIG => WandbRecord::Config(WandbChange::new(message)),
            STATS => read_stats(message)?,
            OUTPUT_RAW => WandbRecord::OutputRaw(WandbOutput::read(message)?),
            RUN => WandbRecord::Run(WandbRun::read(message)?),
            ENVIRONMENT => WandbRecord::Environment(WandbEnvironment::read(message)?),
            EXIT => read_exit(message)?,
            _ => WandbRecord::Other,
        })
    }
}

/// Returns the field that determines the record's kind, or `None` if this module does not decode
/// that kind.
fn content(record: &[u8]) -> Result<Option<Field<'_>>, PayloadError> {
    let (mut message, mut found) = (Message::new(record), None);
    while let Some(field) = message.next_field()? {
        if let HISTORY | SUMMARY | OUTPUT | CONFIG | STATS | OUTPUT_RAW | RUN | ENVIRONMENT | EXIT = field.number {
            field.set(&mut found, field)?;
        }
    }
    Ok(found)
}

/// Reads a history step. Calls `take` for each item, in order, with the item's names (joined with
/// dots) and its value. The value is not necessarily UTF-8. Returns the step number if the record
/// stores it separately. Returns `None` for any other kind of record.
///
/// [`WandbRecord::decode`] is the naive counterpart. It takes longer, because it searches for the
/// step number before it reads the items.
#[expect(clippy::option_option, reason = "a kind of record, and a number in it")]
pub(crate) fn read_step<'a, E: From<PayloadError>>(
    record: &'a [u8],
    mut take: impl FnMut(Cow<'a, str>, &'a [u8]) -> Result<(), E>,
) -> Result<Option<Option<i64>>, E> {
    let Some(field) = content(record)?.filter(|field| field.number == HISTORY) else {
        return Ok(None);
    };
    let (mut message, mut step) = (field.message()?, None);
    loop {
        let (name, value) = if let Some((name, value, len)) = plain_item(message.rest()) {
            message.skip(len);
            (name.into(), value)
        } else {
            let Some(field) = message.next_field()? else { break };
            match field.number {
                HISTORY_ITEM => {
                    let item = WandbItem::read(field.message()?)?;
                    (item.path.join(".").into(), item.value_json.as_bytes())
                }
                2 => {
                    field.set(&mut step, read_step_number(&field)?)?;
                    continue;
                }
                _ => continue,
            }
        };
        take(name, value)?;
    }
    Ok(Some(step))
}

/// If the fields of a step start with a [plain] item, returns the item's name, its value and the
/// length of its field. The value is not necessarily UTF-8.
#[inline(always)]
fn plain_item(fields: &[u8]) -> Option<(&str, &[u8], usize)> {
    const TAG: u8 = (HISTORY_ITEM as u8) << 3 | 2;
    let [TAG, len @ 0..0x80, rest @ ..] = fields else {
        return None;
    };
    let item = rest.get(..usize::from(*len))?;
    let (name, value) = plain(item)?;
    Some((str::from_utf8(name).ok()?, value, 2 + item.len()))
}

/// Returns the name and value of a plain item. Neither is necessarily UTF-8. A plain item is one
/// name followed by a value, and both have one-byte lengths.
#[inline(always)]
fn plain(item: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x0a | 0x12, len @ 0..0x80, rest @ ..] = item else {
        return None;
    };
    let (name, rest) = rest.split_at_checked(usize::from(*len))?;
    let [0x82, 0x01, len @ 0..0x80, value @ ..] = rest else {
        return None;
    };
    (value.len() == usize::from(*len)).then_some((name, value))
}

fn read_history(mut message: Message<'_>) -> Result<WandbRecord<'_>, PayloadError> {
    let items = WandbItems::new(&message, HISTORY_ITEM);
    let mut step = None;
    fields!(message, field => { 2 => step, read_step_number(&field) });
    Ok(WandbRecord::History { items, step })
}

/// Reads the step number in a `HistoryStep`.
fn read_step_number(field: &Field<'_>) -> Result<i64, PayloadError> {
    let (mut message, mut num) = (field.message()?, None);
    fields!(message, field => { 1 => num, field.varint() });
    Ok(num.unwrap_or(0) as i64)
}

fn read_stats(mut message: Message<'_>) -> Result<WandbRecord<'_>, PayloadError> {
    let items = WandbItems::new(&message, 3);
    let mut timestamp = None;
    fields!(message, field => { 2 => timestamp, microseconds(&field) });
    Ok(WandbRecord::Stats { timestamp, items })
}

fn read_exit(mut message: Message<'_>) -> Result<WandbRecord<'_>, PayloadError> {
    let mut code = None;
    fields!(message, field => { 1 => code, field.varint() });
    Ok(WandbRecord::Exit(code.unwrap_or(0) as i32))
}

/// Reads a `google.protobuf.Timestamp`, dropping fractions of a microsecond.
pub(super) fn microseconds(field: &Field<'_>) -> Result<i64, PayloadError> {
    let (mut message, mut seconds, mut nanos) = (field.message()?, None, None);
    fields!(message, field => {
        1 => seconds, field.varint(),
        2 => nanos, field.varint(),
    });
    let (seconds, nanos) = (seconds.unwrap_or(0) as i64, nanos.unwrap_or(0) as i64);
    // `Timestamp` itself requires a year from 1 to 9999, and 0 to 999,999,999 nanoseconds.
    if (-62_135_596_800..253_402_300_800).contains(&seconds) && (0..1_000_000_000).contains(&nanos) {
        Ok(seconds * 1_000_000 + nanos / 1_000)
    } else {
        Err(field.error(PayloadReason::NonCanonical))
    }
}

impl<'a> WandbRun<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, PayloadError> {
        let mut run = WandbRun::default();
        fields!(message, field => {
            1 => run.run_id, field.text(),
            2 => run.entity, field.text(),
            3 => run.project, field.text(),
            4 => run.config, field.message().map(WandbChange::new),
            6 => run.group, field.text(),
            7 => run.job_type, field.text(),
            8 => run.display_name, field.text(),
            9 => run.notes, field.text(),
            13 => run.host, field.text(),
            17 => run.start_time, microseconds(&field),
            ;
            10 => run.tags.push(field.text()?),
            21 => read_git_commit(&field, &mut run.git_commit)?,
        });
        Ok(run)
    }
}

impl<'a> WandbEnvironment<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, PayloadError> {
        let mut environment = WandbEnvironment::default();
        fields!(message, field => {
            6 => environment.program, field.text(),
            12 => environment.host, field.text(),
            14 => environment.executable, field.text(),
            ;
            5 => environment.args.push(field.text()?),
            9 => read_git_commit(&field, &mut environment.git_commit)?,
        });
        Ok(environment)
    }
}

/// Reads the commit from a `GitRepoRecord`.
fn read_git_commit<'a>(field: &Field<'a>, commit: &mut Option<&'a str>) -> Result<(), PayloadError> {
    let mut message = field.message()?;
    fields!(message, field => { 2 => *commit, field.text() });
    Ok(())
}

impl<'a> WandbChange<'a> {
    fn new(message: Message<'a>) -> Self {
        WandbChange {
            update: WandbItems::new(&message, 1),
            remove: WandbItems::new(&message, 2),
        }
    }
}

impl<'a> WandbOutput<'a> {
    fn read(mut message: Message<'a>) -> Result<Self, PayloadError> {
        let (mut output_type, mut timestamp, mut line) = (None, None, None);
        fields!(message, field => {
            1 => output_type, field.varint(),
            2 => timestamp, microseconds(&field),
            3 => line, field.text(),
        });
        Ok(WandbOutput {
            is_stderr: output_type.unwrap_or(STDERR) == STDERR,
            timestamp,
            line: line.unwrap_or_default(),
        })
    }
}

impl<'a> WandbItems<'a> {
    fn new(message: &Message<'a>, number: u32) -> Self {
        let message = message.clone();
        WandbItems { message, number }
    }

    fn read_next(&mut self) -> Result<Option<WandbItem<'a>>, PayloadError> {
        while let Some(field) = self.message.next_field()? {
            if field.number == self.number {
                return WandbItem::read(field.message()?).map(Some);
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for WandbItems<'a> {
    type Item = Result<WandbItem<'a>, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.read_next();
        if item.is_err() {
            self.message = Message::new(&[]);
        }
        item.transpose()
    }
}

impl<'a> WandbItem<'a> {
    /// Reads an item and its value. Most programs write the name as either a key or a path with one
    /// name.
    #[inline]
    fn read(message: Message<'a>) -> Result<Self, PayloadError> {
        match Self::plain(message.bytes()) {
            Some(item) => Ok(item),
            None => Self::read_fields(message),
        }
    }

    /// Reads a [plain] item.
    #[inline]
    fn plain(item: &'a [u8]) -> Option<Self> {
        let (name, value) = plain(item)?;
        Some(WandbItem {
            path: Several::one(str::from_utf8(name).ok()?),
            value_json: str::from_utf8(value).ok()?,
        })
    }

    /// Reads an item in any encoding. This is the naive counterpart of [`WandbItem::plain`].
    fn read_fields(mut message: Message<'a>) -> Result<Self, PayloadError> {
        let (mut key, mut value_json) = (None, None);
        let mut path: Option<Several<&'a str>> = None;
        fields!(message, field => {
            1 => key, field.text(),
            16 => value_json, field.text(),
            ;
            2 => match &mut path {
                None => path = Some(Several::one(field.text()?)),
                Some(names) => names.push(field.text()?),
            },
        });
        Ok(WandbItem {
            path: path.unwrap_or(Several::one(key.unwrap_or_default())),
            // A missing value is replaced with empty text at the end of the item, because the text
            // must lie inside the record.
            value_json: value_json.unwrap_or(str::from_utf8(message.rest()).unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_a_history_step_in_one_pass_matches_decoding_the_record() {
        // The record has an item with two names, an item with a key, another field between the
        // items, and the step number.
        let items: &[u8] = b"\x0a\x0d\x12\x01a\x12\x02bc\x82\x01\x030.5\x0a\x07\x0a\x01k\x82\x01\x0112\x00\x0a\x07\x12\x01n\x82\x01\x012";
        let record = [b"\x12", &[items.len() as u8 + 4][..], items, b"\x12\x02\x08\x07"].concat();
        let one_pass = |record: &[u8]| {
            let mut items = Vec::new();
            let step = read_step(record, |name, value| {
                let value = str::from_utf8(value).map_err(|_| Message::new(value).error(PayloadReason::NotUtf8))?;
                items.push((name.into_owned(), value.to_owned()));
                Ok::<_, PayloadError>(())
            });
            step.ok().map(|step| step.map(|step| (items, step)))
        };
        let naive = |record: &[u8]| match WandbRecord::decode(record) {
            Ok(WandbRecord::History { items, step }) => {
                let items = items.map(|item| item.map(|item| (item.path.join("."), item.value_json.to_owned())));
                Some(Some((items.collect::<Result<Vec<_>, _>>().ok()?, step)))
            }
            decoded => decoded.ok().map(|_| None),
        };
        assert_eq!(one_pass(&record).unwrap().unwrap().0.len(), 3);
        let mut read_count = 0;
        // Changes each byte in turn, except the first one, which marks a step.
        for at in 1..record.len() {
            for byte in 0..=255 {
                let mut changed = record.clone();
                changed[at] = byte;
                for record in [&changed[..], &changed[..changed.len() - 1]] {
                    let found = one_pass(record);
                    assert_eq!(found, naive(record), "{record:x?}");
                    read_count += usize::from(found.flatten().is_some());
                }
            }
        }
        assert!(read_count > 1_000, "{read_count}");
    }

    #[test]
    fn the_fast_path_for_plain_items_matches_the_general_decoder() {
        let mut plain_count = 0;
        for (name_len, value_len) in [(0, 0), (4, 3), (127, 127), (128, 1), (1, 128)] {
            for tag in [0x0a, 0x12, 0x1a] {
                let mut item = vec![tag, name_len, 0x82, 0x01, value_len];
                item.splice(2..2, vec![b'n'; name_len.into()]);
                item.resize(item.len() + usize::from(value_len), b'1');
                // Changes each byte in turn, and tests the item with and without its last byte.
                for at in 0..item.len() {
                    for byte in [item[at], 0, 1, 3, 5, 0x0a, 0x12, 0x82, 0xc3, 0xff] {
                        let mut changed = item.clone();
                        changed[at] = byte;
                        for bytes in [&changed[..], &changed[..changed.len() - 1]] {
                            if let Some(plain) = WandbItem::plain(bytes) {
                                assert_eq!(WandbItem::read_fields(Message::new(bytes)), Ok(plain), "{bytes:x?}");
                                plain_count += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(plain_count > 1_000, "{plain_count}");
    }
}
