//! Reads a packed log with any options. Its containers have valid checksums, but may contain any
//! values. The reader must report the same as the model, and so must each other way of reading.

#![no_main]

use arbitrary::Arbitrary;
use cordwood::read::{RecordBatch, StreamSource};
use cordwood::{Dialect, Error, ErrorKind, OnCorruption, ReadOptions, Reader};
use cordwood_fuzz::options::Options;
use cordwood_fuzz::packed::Script;
use cordwood_fuzz::steps::{Steps, Trickle};
use cordwood_fuzz::{model, read};
use libfuzzer_sys::fuzz_target;

/// Longer records are refused, and so are frames that state a longer content. Many records of this
/// length fit into memory.
const RECORD_LEN_MAX: u64 = 2 << 20;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    options: Options,
    steps: Steps<'a>,
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let file = input.script.build();
    let mut options = input.options.of(&file).with_dialect(Dialect::PACKED);
    options.record_len_max = options.record_len_max.min(RECORD_LEN_MAX);
    let file = &file.bytes;
    let whole = options.clone().with_range(..).with_on_corruption(OnCorruption::Skip);
    if model::read(file, &whole).1.is_err() {
        // If a log is refused, the format does not define how much of it a range reads.
        options = options.with_range(..);
    }
    if read::starts_after_end(file, &options) {
        return;
    }
    let (events, end) = read::attempt(&mut Reader::from_slice(file, options.clone()), &options, file.len());
    let (expected, expected_end) = model::read(file, &options);
    // The events are compared one by one, so that the first difference is printed.
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!(event, expected, "{options:?}");
    }
    assert_eq!(events.len(), expected.len(), "{options:?}");
    assert_eq!(end, expected_end, "{options:?}");
    let Ok(end) = end else { return };

    if (options.start, options.end) == (0, None) {
        read::assert_tiles(file, Dialect::PACKED, &events);
    }
    let source = StreamSource::new(Trickle::new(file, 0, input.steps.clone()), 0).with_len(file.len() as u64);
    let (in_steps, end_in_steps) = read::patiently(&mut Reader::with_source(source, options.clone()));
    assert_eq!((in_steps, end_in_steps), (events.clone(), end), "short reads");
    let records = read::records(events.clone());
    assert_eq!(in_batches(file, &options, input.steps), records, "batches");
    if options.on_corruption == OnCorruption::Salvage {
        let (without, _) = read::slice(file, &options.clone().with_on_corruption(OnCorruption::Skip));
        assert_eq!(read::unmarked(events), read::records(without));
    }
});

/// Returns the records of batches of various lengths, each with its offset.
fn in_batches(file: &[u8], options: &ReadOptions, mut steps: Steps<'_>) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::from_slice(file, options.clone());
    let mut batch = RecordBatch::default();
    let mut records = Vec::new();
    loop {
        let is_end = match reader.record_batch(&mut batch, steps.step()) {
            Ok(has_more) => !has_more,
            Err(Error {
                kind: ErrorKind::Corruption { .. },
                ..
            }) => false,
            Err(error) => panic!("{error}"),
        };
        for (index, record) in batch.iter().enumerate() {
            records.push((batch.record_offsets()[index], record.to_vec()));
        }
        batch.clear();
        if is_end {
            return records;
        }
    }
}
