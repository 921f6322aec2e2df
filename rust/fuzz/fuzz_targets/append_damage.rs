//! A damaged log, opened twice for appending: opening follows the model's reading, the file is then
//! byte for byte the old one followed by the appended records, and no record is lost, not even one
//! that only salvage would find.

#![no_main]

use std::fs;
use std::path::Path;

use arbitrary::Arbitrary;
use cordwood::damage::{Reason, Severity};
use cordwood::{Dialect, Error, ErrorKind, LogFile, LogFileOptions, OnCorruption, ReadOptions};
use cordwood_fuzz::file::Script;
use cordwood_fuzz::model::{self, Event, encode, left_in_block};
use cordwood_fuzz::read;
use cordwood_fuzz::session::{Choice, Session};
use libfuzzer_sys::fuzz_target;

const BLOCK: u64 = 32_768;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    sessions: [Session<'a>; 2],
    // Last, since it consumes all the remaining input.
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    fs::write(&path, input.script.build().bytes).expect("a file");
    for session in input.sessions {
        run(&path, session);
    }
});

fn events(file: &[u8], on_corruption: OnCorruption) -> Vec<Event> {
    let options = ReadOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_corruption(on_corruption)
        .with_record_len_max(u64::MAX);
    model::read(file, &options).0
}

/// The input of opening: the bytes from the checkpoint onwards.
struct Seen {
    first_damage: Option<u64>,
    /// Where the bytes after the last complete record begin, ignoring a trailer.
    tail: Option<u64>,
    has_record: bool,
}

impl Seen {
    fn new(events: &[Event]) -> Self {
        let begin = |event: &Event| event.span().0;
        let is_record = |event: &Event| matches!(event, Event::Record { .. });
        let is_trailer = |event: &Event| {
            let trailer = Reason::NonzeroTrailer;
            matches!(event, Event::Skipped { reason, .. } if *reason == trailer)
        };
        let behind = events.iter().rposition(is_record).map_or(0, |last| last + 1);
        let tail = events[behind..].iter().find(|event| !is_trailer(event));
        Seen {
            first_damage: events.iter().find(|event| event.is(Severity::Corruption)).map(begin),
            tail: tail.map(begin),
            has_record: events.iter().any(is_record),
        }
    }

    /// Whether the file may be opened. Damage in the tail may or may not be cut: the crate decides
    /// whether a crash can have left it.
    fn allows(&self, choice: Choice) -> bool {
        match choice {
            Choice::Refuse => self.first_damage.is_none() && self.tail.is_none(),
            Choice::Truncate => self
                .first_damage
                .is_none_or(|damage| self.tail.is_some_and(|tail| tail <= damage)),
            Choice::PadToBlock => true,
        }
    }

    fn assert_refused(&self, choice: Choice, file_len: u64, error: &Error) {
        match error {
            Error {
                kind: ErrorKind::TornTail { region, .. },
                ..
            } => {
                assert!(matches!(choice, Choice::Refuse), "{choice:?}: {error}");
                assert_eq!(self.first_damage, None, "{error}");
                assert_eq!((Some(region.begin), region.end), (self.tail, file_len));
            }
            Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            } => {
                // If the file does not show that it is a log, no byte is written to it.
                let is_no_log = !self.has_record;
                assert!(
                    is_no_log || !matches!(choice, Choice::PadToBlock),
                    "{choice:?}: {error}"
                );
                // An incomplete record that another length in its header would complete is also
                // damage.
                let flipped = self.tail.filter(|_| self.first_damage.is_none());
                assert_eq!(Some(region.begin), self.first_damage.or(flipped));
            }
            // It contains no valid fragment.
            Error {
                kind: ErrorKind::Foreign { .. },
                ..
            } => assert!(!self.has_record && self.tail.is_some(), "{choice:?}: {error}"),
            // A fragment that the script damaged can be one of another dialect.
            Error {
                kind: ErrorKind::WrongDialect { .. },
                ..
            }
            | Error {
                kind: ErrorKind::NeverAppended { .. },
                ..
            } => {}
            _ => panic!("{error}"),
        }
    }
}

fn run(path: &Path, session: Session<'_>) {
    let Session {
        choice,
        checkpoint,
        records,
    } = session;
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
        .with_on_torn_tail(choice.into());
    let log = match LogFile::append_to(path, options) {
        Ok(log) => log,
        Err(error) => {
            seen.assert_refused(choice, file_len, &error);
            assert!(fs::read(path).expect("a file") == before, "a refused file was changed");
            return;
        }
    };
    assert!(seen.allows(choice), "{choice:?} has accepted a file that it should not");
    let recovered = log.discarded_tail().map(|region| (region.begin, region.end));
    assert_eq!(recovered, seen.tail.map(|begin| (begin, file_len)), "the tail");

    // The file as opening should have left it.
    let mut expected = before.clone();
    match (choice, seen.tail) {
        (Choice::Truncate, Some(tail)) => {
            expected.truncate(tail as usize);
            let is_lost = |event: &Event| matches!(event, Event::Record { end_offset, .. } if *end_offset > tail);
            let lost = events(&before, OnCorruption::Salvage).into_iter().find(is_lost);
            assert_eq!(lost, None, "cut, and could have been salvaged");
        }
        (Choice::PadToBlock, Some(_)) if !file_len.is_multiple_of(BLOCK) => {
            // Zeros alone could complete a torn record.
            let ends_in_zeros = matches!(
                events_before.last(),
                Some(Event::Skipped {
                    reason: Reason::ZeroFill,
                    ..
                })
            );
            // After only zeros, a header that ends before its type: an additional byte could be
            // taken for the type.
            let (zeros, header) = before.split_at((file_len - file_len % BLOCK) as usize);
            let is_first_header = header.len() < 7 && zeros.iter().all(|&byte| byte == 0);
            if !ends_in_zeros && !is_first_header {
                expected.push(0xff);
            }
            expected.resize(before.len() + left_in_block(file_len), 0);
        }
        _ => {}
    }
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
    // Only offsets are printed: the bytes would hide the missing ones.
    let offsets = |records: &[(u64, Vec<u8>)]| records.iter().map(|(offset, _)| *offset).collect::<Vec<_>>();
    assert_eq!(
        offsets(&found),
        offsets(&expected_records),
        "the offsets of the records"
    );
    assert!(found == expected_records, "the bytes of the records");
}
