//! A damaged log, opened to append to it: if it is accepted, what was readable before is read afterwards, and what was appended behind it.

#![no_main]

use std::fs;
use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use cordwood::{Error, OnCorruption, ReadOptions, Writer};
use cordwood_fuzz::file::{Payload, Script, several};
use cordwood_fuzz::model::{self, Event};
use cordwood_fuzz::read;
use libfuzzer_sys::fuzz_target;

#[derive(Debug)]
struct Input<'a> {
    /// What is appended at a time, each with the file opened anew.
    sessions: [Vec<Payload<'a>>; 2],
    script: Script<'a>,
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Input {
            sessions: [several(u)?, several(u)?],
            script: u.arbitrary()?,
        })
    }
}

/// Appends records to the log and returns their offsets. Only here it is said how a log is opened.
fn append(path: &Path, records: &[Vec<u8>]) -> Result<Vec<u64>, Error> {
    let mut writer = Writer::open_append(path)?;
    let offsets = records
        .iter()
        .map(|record| writer.append(record).expect("a file that takes all"))
        .collect();
    writer.flush().expect("a file that takes all");
    Ok(offsets)
}

fuzz_target!(|input: Input<'_>| {
    let before = input.script.build().bytes;
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    let (events, _) = model::read(&before, &options);
    let is_whole = events.iter().all(|event| matches!(event, Event::Record { .. }));
    let mut expected = read::records(events);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    fs::write(&path, &before).expect("a file");
    let mut accepts = is_whole;
    for session in input.sessions {
        let file_len = fs::metadata(&path).expect("a file").len();
        let records: Vec<Vec<u8>> = session.iter().map(|payload| payload.bytes(file_len + 7)).collect();
        match append(&path, &records) {
            Ok(offsets) => {
                expected.extend(offsets.into_iter().zip(records));
                // Then it is a log that cordwood wrote.
                accepts = true;
            }
            Err(error) => {
                assert!(!accepts, "a log was refused of which nothing is lost: {error}");
                assert!(fs::read(&path).expect("a file") == before, "a refused file was changed");
                return;
            }
        }
        let after = fs::read(&path).expect("a file");
        let (events, _) = read::slice(&after, &options);
        read::assert_tiles(&after, &events);
        let found = read::records(events);
        // Not `assert_eq!`: the bytes would hide what is missing.
        let offsets = |records: &[(u64, Vec<u8>)]| records.iter().map(|(offset, _)| *offset).collect::<Vec<_>>();
        assert_eq!(offsets(&found), offsets(&expected), "the offsets of the records");
        assert!(found == expected, "the bytes of the records");
    }
});
