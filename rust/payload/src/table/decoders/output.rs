//! The lines that a run of Weights & Biases printed.

use std::borrow::Cow;

use super::{Decode, Fault, Record, Sink};
use crate::table::row::Row;
use crate::table::tree::{Refused, copied, no_memory};
use crate::table::view::View;
use crate::{WandbOutput, WandbRecord};

/// One row for each line, with the time of its start. The end of the log also ends a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The last line of each stream, if it is unfinished, in the order in which they started.
    unfinished: Vec<Line>,
    /// Up to where the rows of the record are taken already: the sink had no room for the next.
    taken_len: usize,
}

#[derive(Debug, Clone)]
struct Line {
    is_stderr: bool,
    /// When its start was printed.
    timestamp: Option<i64>,
    text: String,
}

impl Output {
    fn lines(&mut self, output: &WandbOutput<'_>, sink: &mut dyn Sink) -> Result<bool, Box<Refused>> {
        // Only a newline ends a line: a carriage return overwrites it.
        let mut rest = output.line.get(self.taken_len..).unwrap_or_default();
        while let Some((end, after)) = rest.split_once('\n') {
            let started = self.line_of(output.is_stderr);
            let (timestamp, line) = match started {
                None => (output.timestamp, Cow::Borrowed(end)),
                Some(at) => {
                    let Line { timestamp, text, .. } = &self.unfinished[at];
                    let mut line = copied(text)?;
                    line.try_reserve(end.len()).map_err(no_memory)?;
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
                text.try_reserve(rest.len()).map_err(no_memory)?;
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

    /// The index of the unfinished line of a stream.
    fn line_of(&self, is_stderr: bool) -> Option<usize> {
        self.unfinished.iter().position(|line| line.is_stderr == is_stderr)
    }
}

/// The cells of a text that was printed.
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

/// The text that was printed, in a record of that kind.
fn output_in(record: &[u8]) -> Result<Option<WandbOutput<'_>>, Fault> {
    match WandbRecord::decode(record)? {
        WandbRecord::Output(output) | WandbRecord::OutputRaw(output) => Ok(Some(output)),
        _ => Ok(None),
    }
}

impl Decode for Output {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Result<bool, Fault> {
        let Some(output) = output_in(record.data)? else {
            return Ok(true);
        };
        let has_room = self.lines(&output, sink);
        if !matches!(has_room, Ok(false)) {
            self.taken_len = 0;
        }
        has_room.map_err(|refused| refused.in_record(record.data))
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

    fn value(&mut self, record: &[u8], take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
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
