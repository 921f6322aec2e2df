//! Decodes any bytes as records. The record of a write batch or a version edit must encode to the
//! same bytes, up to the position of the first error. In an entity or a record of a run, the
//! position of an error must be within the record, and an additional field must neither be lost nor
//! be mistaken for another field. In a table, each row must be in the output, whatever its form.

#![no_main]

#[path = "../../payload/tests/edits/mod.rs"]
mod edits;

use arbitrary::Arbitrary;
use cordwood_payload::table::{BytesAs, Decoder, Facts, Fault, Form, Limits, Made, Options, Record, Row, Sink, Table};
use cordwood_payload::{
    Engine, Entity, EntityValue, PayloadError, PayloadReason, SwanlabScalar, VersionEdit, WandbItems, WandbRecord,
    WriteBatch,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum As {
    RocksDb,
    Pebble,
    VersionEdit,
    Entity,
    Wandb,
    Swanlab,
    /// A table from the decoder with this index in [`Decoder::names`], modulo their number.
    Table(u8),
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: As,
    // This field comes last, because it consumes all remaining input.
    record: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    match input.kind {
        As::RocksDb => write_batch(input.record, Engine::RocksDb),
        As::Pebble => write_batch(input.record, Engine::Pebble),
        As::VersionEdit => version_edit(input.record),
        As::Entity => entity(input.record),
        As::Wandb => wandb(input.record),
        As::Swanlab => swanlab(input.record),
        As::Table(of) => table(of, input.record),
    }
});

fn write_batch(record: &[u8], engine: Engine) {
    let batch = match WriteBatch::new(record, engine) {
        Ok(batch) => batch,
        Err(error) => return assert_is_after(error, 0, record),
    };
    let mut operations = Vec::new();
    let mut error = None;
    for operation in batch.operations() {
        assert!(error.is_none(), "something behind an error");
        match operation {
            Ok(operation) => operations.push(operation),
            Err(found) => error = Some(found),
        }
    }
    if batch.sequence() >> 55 > 0 {
        // There may not be enough sequence numbers for the operations.
        return;
    }
    let encoded = WriteBatch::encode(batch.sequence(), &operations, engine).expect("it was decoded");
    assert_eq!(encoded[..8], record[..8]);
    assert!(record[12..].starts_with(&encoded[12..]), "{operations:?}");
    match error {
        // The fuzzer seldom guesses the count. All other bytes must be valid.
        Some(error) if matches!(error.reason, PayloadReason::WrongCount { .. }) => {
            assert_eq!((error.offset, error.len), (8, 4));
            assert_ne!(encoded[8..12], record[8..12]);
            assert_eq!(encoded.len(), record.len());
        }
        Some(error) => assert_is_after(error, encoded.len(), record),
        None => assert_eq!(encoded, record),
    }
}

fn version_edit(record: &[u8]) {
    let mut encoded = Vec::new();
    let mut error = None;
    for field in VersionEdit::new(record).fields() {
        assert!(error.is_none(), "something behind an error");
        match field {
            Ok(field) => encoded.extend(edits::encoded(&field)),
            Err(found) => error = Some(found),
        }
    }
    assert!(record.starts_with(&encoded), "{encoded:x?}");
    match error {
        Some(error) => assert_is_after(error, encoded.len(), record),
        None => assert_eq!(encoded, record),
    }
}

fn entity(record: &[u8]) {
    let mut longer = record.to_vec();
    // This is field 1023, and it is empty.
    longer.extend(b"\xfa\x3f\x00");
    let longer = Entity::decode(&longer);
    let entity = match Entity::decode(record) {
        Ok(entity) => entity,
        Err(error) => return assert_is_after(error, 0, record),
    };
    others_are_in(&entity, record);
    let mut longer = longer.expect("it is known without the field");
    let other = longer.other_fields.pop().expect("it is kept");
    assert_eq!((other.number, other.offset, other.bytes.len()), (1023, record.len(), 3));
    // The entities are compared as text, because NaN equals itself in text.
    assert_eq!(format!("{longer:?}"), format!("{entity:?}"));
}

fn others_are_in(entity: &Entity<'_>, record: &[u8]) {
    let mut end = 0;
    for field in &entity.other_fields {
        assert!(field.offset >= end, "{field:?} in front of {end}");
        assert!(record[field.offset..].starts_with(field.bytes));
        // A field may be inside another field, because an unknown `entity_group` is kept whole and
        // may itself contain unknown fields.
        end = field.offset + 1;
    }
    for value in entity.properties.iter().flat_map(|property| &property.values) {
        if let EntityValue::Entity(inner) = &value.value {
            others_are_in(inner, record);
        }
    }
}

/// Counts the rows that a sink with enough room gets.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn row(&mut self, _: &Row<'_>) -> bool {
        self.0 += 1;
        true
    }

    fn fault(&mut self, _: Fault) {}
}

fn table(of: u8, text: &[u8]) {
    let mut names = Decoder::names();
    let rows = names
        .nth(usize::from(of) % names.len())
        .expect("the index is below the length");
    let records = || text.split(|&byte| byte == b'\n').map(Record::of);
    let mut count = Count::default();
    let mut decoder = Decoder::named(rows, Facts::default()).expect("it is a name");
    for record in records() {
        let _ = decoder.record(&record, &mut count);
    }
    decoder.rest(&mut count);
    for form in [Form::Ndjson, Form::Csv, Form::Columns] {
        // The limits are low, so that short records reach them.
        let options = Options {
            form,
            always: Vec::new(),
            wanted: None,
            opens_early: true,
            row_count_max: None,
            bytes: BytesAs::Object,
            escapes_formulas: true,
            limits: Limits {
                columns: 20,
                fields: 5,
                levels: 3,
            },
            batch_rows_max: 7,
            batch_cells_max: 50,
        };
        let mut table = Table::new(options.clone(), None);
        let mut made_count = fill(&mut table, rows, records);
        if table.stop().is_none() && !table.is_open() {
            table = Table::new(options, Some(&table.columns()));
            made_count = fill(&mut table, rows, records);
            assert_eq!(table.stop(), None);
        }
        if table.stop().is_none() {
            assert_eq!(table.row_count(), count.0);
            // A CSV row may take several lines, and a table without columns has no rows in CSV.
            assert!(form == Form::Csv || made_count == count.0);
        }
    }
}

/// Feeds a table, and returns the number of rows in what it made.
fn fill<'r, R: Iterator<Item = Record<'r>> + Clone>(table: &mut Table, rows: &str, records: impl Fn() -> R) -> u64 {
    let mut count = 0;
    let mut take = |table: &mut Table| {
        if let Some(made) = table.take().expect("there is enough memory") {
            count += match made {
                Made::Batch(batch) => batch.row_count as u64,
                Made::Text(text) => text.lines().count() as u64,
            };
        }
    };
    let mut decoder = Decoder::named(rows, Facts::default()).expect("it is a name");
    table.start(Vec::new());
    let mut next = 0;
    while next < records().count() && table.stop().is_none() {
        next = table.feed(&mut decoder, records().skip(next), next);
        take(table);
        table.take_faults();
    }
    while !table.rest(&mut decoder) {
        take(table);
    }
    take(table);
    count
}

fn swanlab(record: &[u8]) {
    if let Err(error) = SwanlabScalar::decode(record) {
        assert_is_after(error, 0, record);
    }
}

fn wandb(record: &[u8]) {
    let mut longer = record.to_vec();
    // This is field 1023, and it is empty.
    longer.extend(b"\xfa\x3f\x00");
    let decoded = match WandbRecord::decode(record) {
        Ok(decoded) => decoded,
        Err(error) => return assert_is_after(error, 0, record),
    };
    let longer = WandbRecord::decode(&longer).expect("it is known without the field");
    assert_eq!(std::mem::discriminant(&longer), std::mem::discriminant(&decoded));
    match decoded {
        WandbRecord::History { items, .. } | WandbRecord::Stats { items, .. } => wandb_items(items, record),
        WandbRecord::Summary(change) | WandbRecord::Config(change) => {
            wandb_items(change.update, record);
            wandb_items(change.remove, record);
        }
        _ => {}
    }
}

/// Asserts that the items before an error are in the record, and before the error's offset.
fn wandb_items(mut items: WandbItems<'_>, record: &[u8]) {
    let mut len = 0;
    while let Some(item) = items.next() {
        match item {
            Ok(item) => {
                assert!(!item.path.is_empty());
                len += item.value_json.len();
            }
            Err(error) => {
                assert!(items.next().is_none(), "something behind an error");
                assert_is_after(error, len, record);
            }
        }
    }
    assert!(len <= record.len());
}

/// Asserts that the error is after the decoded part, and within the record.
fn assert_is_after(error: PayloadError, offset: usize, record: &[u8]) {
    assert!(error.offset >= offset, "{error} in front of {offset}");
    assert!(error.offset + error.len <= record.len(), "{error} of {}", record.len());
}
