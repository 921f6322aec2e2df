//! Any bytes as a write batch or a version edit: what decodes, encodes to the same bytes, up to where the first error says that it stands.

#![no_main]

use arbitrary::Arbitrary;
use cordwood::payload::{Engine, PayloadError, PayloadReason, VersionEdit, WriteBatch};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum As {
    RocksDb,
    Pebble,
    VersionEdit,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: As,
    // The last, since it takes all that is left.
    record: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    match input.kind {
        As::RocksDb => write_batch(input.record, Engine::RocksDb),
        As::Pebble => write_batch(input.record, Engine::Pebble),
        As::VersionEdit => version_edit(input.record),
    }
});

fn write_batch(record: &[u8], engine: Engine) {
    let batch = match WriteBatch::new(record, engine) {
        Ok(batch) => batch,
        Err(error) => return is_behind(error, 0, record),
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
    let encoded = WriteBatch::encode(batch.sequence(), &operations, engine).expect("it was decoded");
    assert_eq!(encoded[..8], record[..8]);
    assert!(record[12..].starts_with(&encoded[12..]), "{operations:?}");
    match error {
        // The fuzzer seldom guesses the count; all the rest must be right.
        Some(error) if matches!(error.reason, PayloadReason::WrongCount { .. }) => {
            assert_eq!((error.offset, error.len), (8, 4));
            assert_ne!(encoded[8..12], record[8..12]);
            assert_eq!(encoded.len(), record.len());
        }
        Some(error) => is_behind(error, encoded.len(), record),
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
        Some(error) => is_behind(error, encoded.len(), record),
        None => assert_eq!(encoded, record),
    }
}

/// What is wrong is behind what decoded, and in the record.
fn is_behind(error: PayloadError, offset: usize, record: &[u8]) {
    assert!(error.offset >= offset, "{error} in front of {offset}");
    assert!(error.offset + error.len <= record.len(), "{error} of {}", record.len());
}
