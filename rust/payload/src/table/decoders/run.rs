//! The row of a run of Weights & Biases: who ran which program, where, when, and how it ended.

use super::{Decode, Facts, Fault, Record, Sink};
use crate::table::row::Row;
use crate::table::tree::{Refused, Value, copied, no_memory};
use crate::table::view::View;
use crate::{WandbEnvironment, WandbRecord, WandbRun};

/// One row for a run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Whether there is a row that the sink has not taken.
    has_row: bool,
    /// The last record that describes the run: each describes all of it.
    about: Vec<u8>,
    environment: Environment,
    exit_code: Option<i32>,
}

/// What the records of the environment state, each a part. A text that none states is empty.
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

    fn take(&mut self, record: &[u8]) -> Result<(), Box<Refused>> {
        match WandbRecord::decode(record)? {
            WandbRecord::Run(_) => {
                self.about.clear();
                self.about.try_reserve(record.len()).map_err(no_memory)?;
                self.about.extend_from_slice(record);
            }
            WandbRecord::Environment(part) => self.environment.add(&part)?,
            WandbRecord::Exit(code) => self.exit_code = Some(code),
            _ => {}
        }
        self.has_row = true;
        Ok(())
    }
}

impl Environment {
    fn add(&mut self, part: &WandbEnvironment<'_>) -> Result<(), Box<Refused>> {
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
            self.args.try_reserve(part.args.len()).map_err(no_memory)?;
            for text in &part.args {
                self.args.push(copied(text)?);
            }
        }
        Ok(())
    }

    /// The command as a shell reads it; `None` if the program is not known.
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
        // The program may be `-m` and the name of a module.
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

/// Appends a word to a command, in quotes if it needs them: as `shlex.join` of Python does.
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
    fn record(&mut self, record: &Record<'_>, _sink: &mut dyn Sink) -> Result<bool, Fault> {
        match self.take(record.data) {
            Ok(()) => Ok(true),
            Err(refused) => Err(refused.in_record(record.data)),
        }
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

    /// No record is about the whole run.
    fn value(&mut self, _record: &[u8], _take: &mut dyn FnMut(View<'_>)) -> Result<bool, Fault> {
        Ok(false)
    }
}

fn state(exit_code: Option<i32>) -> &'static str {
    match exit_code {
        None => "unfinished",
        Some(0) => "finished",
        Some(_) => "failed",
    }
}

/// The first of these texts that is not empty.
fn text_of<'t>(texts: &[Option<&'t str>]) -> View<'t> {
    let mut stated = texts.iter().flatten().filter(|text| !text.is_empty());
    stated.next().map_or(View::Null, |text| View::Text(text))
}
