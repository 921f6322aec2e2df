//! Turns records into a table: decodes rows, selects and learns the columns, and writes the rows.

use std::collections::{HashMap, TryReserveError};
use std::mem;

use super::builder::{Batch, Builder};
use super::decoders::{Decoder, Record, Sink};
use super::fault::{Fault, Part};
use super::json::{BytesAs, Text};
use super::learner::{Learner, Limits};
use super::misfit::NotAdded;
use super::names::Names;
use super::print::{Csv, ndjson};
use super::row::Row;
use super::types::Type;
use super::view::View;
use crate::{PayloadError, PayloadReason};

/// The output format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Columns in Arrow's memory layout.
    Columns,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values.
    Csv,
}

/// The options of a table.
#[derive(Debug, Clone)]
pub struct Options {
    /// The output format.
    pub form: Form,
    /// The columns that exist even if no row has a value for them.
    pub always: Vec<(String, Type)>,
    /// The columns to keep, in this order, or `None` for all columns. `a.b` is the field `b` of the
    /// column `a`.
    pub wanted: Option<Vec<String>>,
    /// If the table learns its columns, whether to open it with the columns of the first records.
    pub opens_early: bool,
    /// The maximum number of rows.
    pub row_count_max: Option<u64>,
    /// How bytes are converted to text.
    pub bytes: BytesAs,
    /// Whether to put an apostrophe before CSV text that a spreadsheet would read as a formula.
    pub escapes_formulas: bool,
    /// The limits for learned columns.
    pub limits: Limits,
    /// The maximum number of rows in a batch of columns.
    pub batch_rows_max: usize,
    /// The maximum number of cells in a batch of columns. A single row may exceed this maximum.
    pub batch_cells_max: usize,
}

/// Why a table doesn't accept any more records.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// There are too many columns.
    TooManyColumns,
    /// A row contains a cell with this name, but the table already adds a cell with the same name
    /// at the start of each row.
    HasFirst(String),
    /// A row cannot be written.
    NotAdded(NotAdded),
    /// The table has reached the maximum number of rows.
    Full,
}

/// The output of a table.
#[derive(Debug)]
pub enum Made {
    /// A batch of columns.
    Batch(Batch),
    /// Lines of text.
    Text(String),
}

/// The names of the columns seen in rows so far, and the names of the wanted columns not seen yet.
#[derive(Debug, Default)]
pub struct Missing {
    wanted: Vec<String>,
    seen: Names,
}

impl Missing {
    /// Returns the names of the wanted columns that haven't appeared in any row.
    pub fn wanted(&self) -> &[String] {
        &self.wanted
    }

    /// Returns the names of the existing columns, for a message. They are the columns that always
    /// exist and those that have appeared in rows. If a field of a column is wanted, the names of
    /// all fields in that column are also included.
    pub fn seen(&self) -> impl Iterator<Item = &str> {
        self.seen.iter()
    }

    /// Looks for the wanted columns in a row.
    fn look_for(&mut self, row: &Row<'_>) {
        let Missing { wanted, seen } = self;
        let mut see = |name: &str| {
            if seen.len() < SEEN_MAX && seen.find(name, 0).is_none() {
                seen.add(name);
            }
        };
        for (name, _) in row.cells() {
            see(name);
        }
        wanted.retain(|name| {
            let has = row.has_inside(name);
            let head = name.split_once('.').map_or(name.as_str(), |(head, _)| head);
            if !has && let Some(value) = row.get(head) {
                value.all_fields(|field, _| {
                    see(&format!("{head}.{field}"));
                    true
                });
            }
            !has
        });
    }
}

/// The maximum number of names to keep for a message.
const SEEN_MAX: usize = 10_000;

/// Writes the rows of records.
///
/// If the columns are not known in advance, the table learns them from the rows. It is opened with
/// the columns of the first records, and keeps learning new ones. If a later row needs a new
/// column, the table is no longer [open](Table::is_open): from then on, rows are used to learn
/// columns but are not written. You must then create another table with all columns.
#[derive(Debug)]
pub struct Table {
    /// The wanted columns, or `None` for all columns.
    selection: Option<Names>,
    /// The cells at the start of each row of the current log.
    first: Vec<(String, Option<String>)>,
    missing: Missing,
    rows: Written,
    /// Whether the decision about opening the table has been made.
    is_decided: bool,
    record: Current,
}

/// Handles the rows of a table once the wanted columns have been selected.
#[derive(Debug)]
struct Written {
    options: Options,
    /// The learner, or `None` if the columns are known.
    learner: Option<Learner>,
    output: Output,
    count: u64,
    /// The number of rows without any of the wanted columns. These rows are held back until the
    /// next row is written, because the wanted columns may turn out not to exist.
    held_count: u64,
    stop: Option<Stop>,
}

/// The record whose rows are being written.
#[derive(Debug, Default)]
struct Current {
    index: usize,
    /// The address and length of the record's bytes. The address is 0 for the rows at the end of a
    /// log, because their bytes are not in a record.
    bytes: (usize, usize),
    /// The index of the record to resume with if there was no room for one of its rows. The decoder
    /// reports this record's faults again.
    resumed: Option<usize>,
    faults: Vec<(usize, Fault)>,
    /// The number of faults that were counted but not kept because their record had too many.
    more_fault_count: u64,
}

#[derive(Debug)]
enum Output {
    /// No output. Rows are used to learn columns but are not written.
    None,
    Columns(Box<Builder>),
    /// Lines of NDJSON or CSV.
    Text(Text, Option<Box<Csv>>),
}

/// Roughly how many bytes of text to write at a time.
const TEXT_LEN_MAX: usize = 4 << 20;

/// Once there are this many faults, no more records are accepted until the faults are taken. At
/// most twice as many are kept. Any further faults in a record are counted but not kept.
const FAULT_COUNT_MAX: usize = 1_000;

impl Table {
    /// Creates a table with the given columns. If `columns` is `None`, the table learns its
    /// columns.
    pub fn new(options: Options, columns: Option<&[(String, Type)]>) -> Self {
        let is_known = columns.is_some() || options.form == Form::Ndjson;
        let has_always = |name: &String| options.always.iter().any(|(other, _)| other == name);
        let wanted = options.wanted.iter().flatten();
        let missing = Missing {
            wanted: wanted.filter(|name| !has_always(name)).cloned().collect(),
            seen: options.always.iter().map(|(name, _)| name).collect(),
        };
        let mut table = Table {
            selection: options.wanted.as_ref().map(Names::from_iter),
            first: Vec::new(),
            missing,
            is_decided: is_known || !options.opens_early,
            rows: Written {
                learner: (!is_known).then(|| Learner::new(options.limits)),
                output: Output::None,
                count: 0,
                held_count: 0,
                stop: None,
                options,
            },
            record: Current::default(),
        };
        if is_known {
            table.rows.open(columns.unwrap_or_default());
        }
        table
    }

    /// Returns the columns that always exist and the learned ones, in order.
    pub fn columns(&self) -> Vec<(String, Type)> {
        let Options { always, wanted, .. } = &self.rows.options;
        let all: Vec<_> = always.iter().cloned().chain(self.rows.learned()).collect();
        let Some(wanted) = wanted else { return all };
        let mut types: HashMap<String, Type> = all.into_iter().collect();
        // A wanted column that doesn't exist has no values, so any type will do.
        let column = |name: &String| (name.clone(), types.remove(name).unwrap_or(Type::Text));
        wanted.iter().map(column).collect()
    }

    /// Starts a log. Each row of the log starts with the given cells.
    pub fn start(&mut self, first: Vec<(String, Option<String>)>) {
        self.first = first;
        self.record = Current::default();
    }

    /// Accepts the rows of records. The first record has the index `start`. Returns the index of
    /// the record to continue with. Before you continue, take the [output](Table::take) and the
    /// [faults](Table::take_faults).
    pub fn feed<'r>(
        &mut self,
        decoder: &mut Decoder,
        records: impl Iterator<Item = Record<'r>> + Clone,
        start: usize,
    ) -> usize {
        // Any rows counted so far are from the end of earlier logs. The table has learned the
        // columns of these rows but has not written the rows. If there are any, the table must not
        // be opened now, because these rows would be missing from it.
        if !mem::replace(&mut self.is_decided, true) && self.rows.count == 0 {
            let mut trial = decoder.clone();
            let next = self.feed_now(&mut trial, records.clone(), start);
            let columns = self.columns();
            if columns.is_empty() || matches!(self.rows.stop, Some(Stop::TooManyColumns | Stop::HasFirst(_))) {
                *decoder = trial;
                return next;
            }
            self.rows.open(&columns);
            self.rows.count = 0;
            self.rows.stop = None;
            // The second pass finds the same faults again.
            self.record = Current::default();
        }
        self.feed_now(decoder, records, start)
    }

    fn feed_now<'r>(
        &mut self,
        decoder: &mut Decoder,
        records: impl Iterator<Item = Record<'r>>,
        start: usize,
    ) -> usize {
        let mut next = start;
        for record in records {
            if self.rows.stop.is_some() || self.record.faults.len() >= FAULT_COUNT_MAX {
                break;
            }
            self.record.index = next;
            self.record.bytes = (record.data.as_ptr().addr(), record.data.len());
            let decoded = decoder.record(&record, self);
            let is_whole = decoded.unwrap_or_else(|fault| {
                self.record.add(fault);
                true
            });
            // Once the table has reached its maximum number of rows, the remainder of the record
            // isn't needed.
            if !is_whole && self.rows.stop != Some(Stop::Full) {
                self.record.resumed = Some(next);
                return next;
            }
            self.record.resumed = None;
            next += 1;
        }
        next
    }

    /// Accepts the rows that only become complete at the end of a log, and returns whether it
    /// accepted all of them. If not, take the output and call this method again.
    pub fn rest(&mut self, decoder: &mut Decoder) -> bool {
        self.record.bytes.0 = 0;
        self.rows.stop.is_some() || decoder.rest(self)
    }

    /// Accepts the rows that were held back until the end of the last log. Like
    /// [`rest`](Table::rest), returns whether it accepted all of them.
    pub fn end(&mut self) -> bool {
        self.rows.write_held()
    }

    /// Returns the output written since the last call.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn take(&mut self) -> Result<Option<Made>, TryReserveError> {
        Ok(match &mut self.rows.output {
            Output::Columns(builder) if builder.row_count() > 0 => Some(Made::Batch(builder.take()?)),
            Output::Text(text, _) if !text.text.is_empty() => Some(Made::Text(mem::take(&mut text.text))),
            _ => None,
        })
    }

    /// Returns the faults found since the last call, each with the index of its record. Also
    /// returns the number of faults that were counted but not kept because their record had too
    /// many.
    pub fn take_faults(&mut self) -> (Vec<(usize, Fault)>, u64) {
        (
            mem::take(&mut self.record.faults),
            mem::take(&mut self.record.more_fault_count),
        )
    }

    /// Returns the reason why the table doesn't accept any more records.
    pub fn stop(&self) -> Option<&Stop> {
        self.rows.stop.as_ref()
    }

    /// Checks whether the table writes its rows rather than only learning their columns. If it isn't
    /// open at the end, either a later row needed a new column or the first records had no columns.
    /// In that case, create another table with all [columns](Table::columns).
    pub fn is_open(&self) -> bool {
        !matches!(self.rows.output, Output::None)
    }

    /// Stops writing rows, just as if a row had needed a new column. From then on, rows are used to
    /// learn columns but are not written.
    pub fn only_learn(&mut self) {
        self.rows.output = Output::None;
        self.is_decided = true;
    }

    /// Returns the learner, or `None` if the columns were known.
    pub fn learner(&self) -> Option<&Learner> {
        self.rows.learner.as_ref()
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        self.rows.count
    }

    /// Returns the wanted columns that haven't appeared in any row.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }
}

impl Written {
    fn open(&mut self, columns: &[(String, Type)]) {
        let Options {
            bytes,
            escapes_formulas,
            ..
        } = self.options;
        let mut text = Text::new(bytes);
        self.output = match self.options.form {
            Form::Ndjson => Output::Text(text, None),
            Form::Csv => {
                let csv = Csv::new(columns, escapes_formulas, bytes, &mut text);
                Output::Text(text, Some(Box::new(csv)))
            }
            Form::Columns => {
                let columns = columns.iter().cloned();
                Output::Columns(Box::new(Builder::new(columns, self.options.batch_cells_max)))
            }
        };
    }

    fn write_held(&mut self) -> bool {
        while self.held_count > 0 {
            if !self.write(&Row::new(Vec::new())) {
                return false;
            }
            self.held_count -= 1;
        }
        true
    }

    /// Writes a row, and returns whether there was room for it.
    fn write(&mut self, row: &Row<'_>) -> bool {
        let added = match &mut self.output {
            Output::None => Ok(true),
            Output::Columns(builder) if builder.row_count() >= self.options.batch_rows_max => Ok(false),
            Output::Columns(builder) => builder.add(row),
            Output::Text(text, _) if text.text.len() >= TEXT_LEN_MAX => Ok(false),
            Output::Text(text, csv) => {
                let start = text.text.len();
                let added = match csv {
                    Some(csv) => csv.add(row, text),
                    None => ndjson(row, text),
                };
                if added.is_err() {
                    text.text.truncate(start);
                }
                added.map(|()| true)
            }
        };
        added.unwrap_or_else(|error| {
            self.stop = Some(Stop::NotAdded(error));
            false
        })
    }

    /// Learns the columns of a row. Returns `false` if there would be too many columns.
    fn learn(&mut self, row: &Row<'_>) -> bool {
        let Some(learner) = &mut self.learner else { return true };
        if !learner.add(row) {
            self.stop = Some(Stop::TooManyColumns);
            return false;
        }
        let has_changed = learner.take_has_changed();
        if has_changed && !self.has_all() {
            self.output = Output::None;
        }
        true
    }

    /// Returns the learned columns, except those that always exist.
    fn learned(&self) -> Vec<(String, Type)> {
        let mut learned = self.learner.as_ref().map(Learner::types).unwrap_or_default();
        let always = &self.options.always;
        learned.retain(|(name, _)| always.iter().all(|(other, _)| other != name));
        learned
    }

    /// Checks whether the output includes all learned columns.
    fn has_all(&self) -> bool {
        let learned = self.learned();
        match &self.output {
            Output::Columns(builder) => builder.columns().has_all(&learned),
            Output::Text(_, Some(csv)) => csv.columns().has_all(&learned),
            Output::None | Output::Text(_, None) => true,
        }
    }

    /// Accepts a row whose columns have been selected, and returns whether there was room for it.
    /// `is_incomplete` is true if at least one wanted column hasn't appeared in any row so far.
    fn add(&mut self, row: &Row<'_>, is_incomplete: bool) -> bool {
        if !self.learn(row) {
            return false;
        }
        if is_incomplete && self.options.form == Form::Ndjson && row.cells().is_empty() {
            self.held_count += 1;
        } else if !(self.write_held() && self.write(row)) {
            return false;
        }
        self.count += 1;
        if self.options.row_count_max == Some(self.count) {
            self.stop = Some(Stop::Full);
        }
        true
    }
}

impl Sink for Table {
    fn row(&mut self, row: &Row<'_>) -> bool {
        let Table {
            selection,
            first,
            missing,
            rows,
            ..
        } = self;
        if rows.stop.is_some() {
            return false;
        }
        if let Some((name, _)) = first.iter().find(|(name, _)| row.has(name)) {
            rows.stop = Some(Stop::HasFirst(name.clone()));
            return false;
        }
        let with_first = (!first.is_empty()).then(|| row.after(first));
        let row = with_first.as_ref().unwrap_or(row);
        if !missing.wanted.is_empty() {
            missing.look_for(row);
        }
        let is_incomplete = !missing.wanted.is_empty();
        let selected = selection.as_ref().map(|selection| row.select(selection));
        let row = selected.as_ref().unwrap_or(row);
        if rows.options.bytes == BytesAs::Text
            && let Some(fault) = self.record.not_utf8(row)
        {
            self.record.add(fault);
            return true;
        }
        rows.add(row, is_incomplete)
    }

    fn fault(&mut self, fault: Fault) {
        if self.record.resumed != Some(self.record.index) {
            self.record.add(fault);
        }
    }
}

impl Current {
    /// Returns the fault for a row containing bytes that are not UTF-8.
    fn not_utf8(&self, row: &Row<'_>) -> Option<Fault> {
        let (start, record_len) = self.bytes;
        let mut cells = row.cells().iter();
        let (name, address, len) = cells.find_map(|&(name, value)| {
            let (address, len) = not_utf8(value)?;
            Some((name, address, len))
        })?;
        let offset = address.checked_sub(start).filter(|&offset| offset < record_len);
        let (offset, len) = offset.map_or((0, record_len), |offset| (offset, len));
        let error = PayloadError::new(offset, len, PayloadReason::NotUtf8);
        let detail = format!("bytes in the column {name} are not UTF-8");
        Some(Fault::new(Part::Row, error, detail))
    }

    fn add(&mut self, fault: Fault) {
        if self.faults.len() < 2 * FAULT_COUNT_MAX {
            self.faults.push((self.index, fault));
        } else {
            self.more_fault_count += 1;
        }
    }
}

/// Returns the address and length of the first invalid UTF-8 sequence in a value.
fn not_utf8(value: View<'_>) -> Option<(usize, usize)> {
    let mut found = None;
    let mut look_in = |value: View<'_>| {
        found = not_utf8(value);
        found.is_none()
    };
    match value {
        View::Bytes(bytes) => {
            let error = str::from_utf8(bytes).err()?;
            let rest = &bytes[error.valid_up_to()..];
            return Some((rest.as_ptr().addr(), error.error_len().unwrap_or(rest.len())));
        }
        list if list.is_list() => list.all_items(look_in),
        structure => structure.all_fields(|_, value| look_in(value)),
    };
    found
}
