//! Reads any file with any options. The reader must report the same as the model, and must account
//! for every byte.

#![no_main]

use arbitrary::Arbitrary;
use cordwood::{Dialect, OnCorruption};
use cordwood_fuzz::file::Script;
use cordwood_fuzz::options::Options;
use cordwood_fuzz::{model, read};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    options: Options,
    // This field comes last, because it consumes all remaining input.
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let file = input.script.build();
    let options = input.options.of(&file);
    if read::starts_after_end(&file.bytes, &options) {
        return;
    }
    let (events, end) = read::slice(&file.bytes, &options);
    let (expected, expected_end) = model::read(&file.bytes, &options);
    // The events are compared one by one, so that the first difference is printed.
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!(event, expected, "{options:?}");
    }
    assert_eq!(events.len(), expected.len(), "{options:?}");
    assert_eq!(Ok(end), expected_end, "{options:?}");
    if (options.start, options.end) == (0, None) {
        read::assert_tiles(&file.bytes, Dialect::LEVELDB, &events);
    }
    if options.on_corruption == OnCorruption::Salvage {
        let (without, _) = read::slice(&file.bytes, &options.clone().with_on_corruption(OnCorruption::Skip));
        assert_eq!(read::unmarked(events), read::records(without));
    }
});
