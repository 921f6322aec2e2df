//! Opens a damaged log twice for appending. Opening must agree with the model. Afterwards, the file
//! must be byte for byte the old file followed by the appended records. No record may be lost, not
//! even a record that only salvage would find.

#![no_main]

use std::fs;
use std::path::Path;

use arbitrary::Arbitrary;
use cordwood::{Dialect, LogFile, LogFileOptions, OnCorruption, OnTornTail, ReadOptions};
use cordwood_fuzz::append::{Seen, events};
use cordwood_fuzz::file::Script;
use cordwood_fuzz::model::encode;
use cordwood_fuzz::read;
use cordwood_fuzz::session::Session;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    sessions: [Session<'a>; 2],
    // This field comes last, because it consumes all remaining input.
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    fs::write(&path, input.script.build().bytes).expect("a file");
    for session in input.sessions {
        run(&path, session);
    }
});

fn run(path: &Path, session: Session<'_>) {
    let Session {
        choice,
        checkpoint,
        records,
    } = session;
    let choice = OnTornTail::from(choice);
    let before = fs::read(path).expect("a file");
    let file_len = before.len() as u64;
    let mut events_before = events(&before, OnCorruption::Skip);
    let mut expected_records = read::records(events_before.clone());
    let checkpoint = checkpoint.and_then(|number| {
        let number = usize::from(number) % expected_records.len().max(1);
        expected_records.get(number).map(|(offset, _)| *offset)
    });
    events_before.retain(|event| event.span().1 > checkpoint.unwrap_or(0));
    let seen = Seen::new(&events_before);

    let options = LogFileOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_checkpoint(checkpoint)
        .with_on_torn_tail(choice);
    let log = match LogFile::append_to(path, options) {
        Ok(log) => log,
        Err(error) => {
            seen.assert_refused(choice, file_len, &error);
            assert!(fs::read(path).expect("a file") == before, "a refused file was changed");
            return;
        }
    };
    assert!(seen.allows(choice), "{choice:?} has accepted a file that it should not");
    let recovered = log.discarded_tail().map(|region| (region.start, region.end));
    assert_eq!(recovered, seen.tail.map(|start| (start, file_len)), "the tail");

    let mut expected = seen.opened(&before, choice);
    assert_eq!(log.offset(), expected.len() as u64);

    for payload in records {
        let record = payload.bytes(expected.len() as u64 + 7);
        let (bytes, offset) = encode(expected.len() as u64, &record);
        expected.extend(bytes);
        assert_eq!(log.append(&record).expect("a file that takes all"), offset);
        expected_records.push((offset, record));
    }
    log.close().expect("a file that takes all");
    drop(log);

    let after = fs::read(path).expect("a file");
    assert!(after == expected, "the bytes of the file");
    let skip = ReadOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_corruption(OnCorruption::Skip);
    let (events_after, _) = read::slice(&after, &skip);
    read::assert_tiles(&after, Dialect::LEVELDB, &events_after);
    let found = read::records(events_after);
    // Only offsets are printed, because missing offsets are hard to see among all the bytes.
    let offsets = |records: &[(u64, Vec<u8>)]| records.iter().map(|(offset, _)| *offset).collect::<Vec<_>>();
    assert_eq!(
        offsets(&found),
        offsets(&expected_records),
        "the offsets of the records"
    );
    assert!(found == expected_records, "the bytes of the records");
}
