//! Any bytes as a write batch or a version edit: decoded records encode to the same bytes, up to
//! the position of the first error. Any bytes as an entity or a record of a run: an error's
//! position is within the record, and an additional field is neither lost nor mistaken for another. Any
//! bytes as the records of a table: each row fits the columns that were learned from all rows.

#![no_main]

use arbitrary::Arbitrary;
use cordwood_payload::table::{Builder, Learner, Limits, Rows};
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
    Table(TableOf),
}

#[derive(Arbitrary, Debug)]
enum TableOf {
    Entities,
    Json,
    Histories,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: As,
    // Last, since it consumes all the remaining input.
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
        // There may be too few sequence numbers for the operations.
        return;
    }
    let encoded = WriteBatch::encode(batch.sequence(), &operations, engine).expect("it was decoded");
    assert_eq!(encoded[..8], record[..8]);
    assert!(record[12..].starts_with(&encoded[12..]), "{operations:?}");
    match error {
        // The fuzzer seldom guesses the count; everything else must be right.
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
    let mut fields = Vec::new();
    let mut error = None;
    for field in VersionEdit::new(record).fields() {
        assert!(error.is_none(), "something behind an error");
        match field {
            Ok(field) => fields.push(field),
            Err(found) => error = Some(found),
        }
    }
    let encoded = VersionEdit::encode(&fields).expect("it was decoded");
    assert!(record.starts_with(&encoded), "{fields:?}");
    match error {
        Some(error) => assert_is_after(error, encoded.len(), record),
        None => assert_eq!(encoded, record),
    }
}

fn entity(record: &[u8]) {
    let mut longer = record.to_vec();
    // Field 1023, empty.
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
    // Compared as text, in which NaN equals itself.
    assert_eq!(format!("{longer:?}"), format!("{entity:?}"));
}

fn others_are_in(entity: &Entity<'_>, record: &[u8]) {
    let mut end = 0;
    for field in &entity.other_fields {
        assert!(field.offset >= end, "{field:?} in front of {end}");
        assert!(record[field.offset..].starts_with(field.bytes));
        // A field may be within another: an `entity_group` that is kept may itself contain such
        // fields.
        end = field.offset + 1;
    }
    for value in entity.properties.iter().flat_map(|property| &property.values) {
        if let EntityValue::Entity(inner) = &value.value {
            others_are_in(inner, record);
        }
    }
}

fn table(of: TableOf, text: &[u8]) {
    let rows = match of {
        TableOf::Entities => Rows::Entity,
        TableOf::Json => Rows::Json,
        TableOf::Histories => Rows::History,
    };
    // Low limits are reached by short records.
    let limits = Limits {
        columns: 20,
        fields: 5,
        levels: 3,
    };
    let mut learner = Learner::new(limits);
    for record in text.split(|&byte| byte == b'\n') {
        if rows.of(record, |row| learner.add(row)).row == Some(false) {
            return;
        }
    }
    let columns = learner.types().into_iter().map(|(name, kind)| (name, Some(kind)));
    let mut builder = Builder::new(columns, 50);
    let mut row_count = 0;
    for record in text.split(|&byte| byte == b'\n') {
        if rows.of(record, |row| builder.add(row)).row == Some(Ok(false)) {
            row_count += builder.take().expect("there is enough memory").row_count;
            assert_eq!(rows.of(record, |row| builder.add(row)).row, Some(Ok(true)));
        }
    }
    row_count += builder.take().expect("there is enough memory").row_count;
    let records = text.split(|&byte| byte == b'\n');
    assert_eq!(
        row_count,
        records.filter(|record| rows.of(record, |_| ()).row.is_some()).count()
    );
}

fn swanlab(record: &[u8]) {
    if let Err(error) = SwanlabScalar::decode(record) {
        assert_is_after(error, 0, record);
    }
}

fn wandb(record: &[u8]) {
    let mut longer = record.to_vec();
    // Field 1023, empty.
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

/// Asserts that the items before an error are in the record, before that error's offset.
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
