//! Models how a log in LevelDB's dialect is opened for appending, as `docs/format/writing.md`
//! describes. It works on the events of the [`model`](crate::model).

use cordwood::damage::{Reason, Severity};
use cordwood::{Dialect, Error, ErrorKind, OnCorruption, OnTornTail, ReadOptions};

use crate::BLOCK;
use crate::model::{self, Event, left_in_block};

/// Returns the events of a file as a writer reads it.
pub fn events(file: &[u8], on_corruption: OnCorruption) -> Vec<Event> {
    let options = ReadOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_corruption(on_corruption)
        .with_record_len_max(u64::MAX);
    model::read(file, &options).0
}

/// The facts that a writer sees when it opens a file and reads it from the checkpoint.
#[derive(Debug)]
pub struct Seen {
    first_damage: Option<u64>,
    /// The start of the bytes after the last complete record, if there are any. A trailer does not
    /// count.
    pub tail: Option<u64>,
    has_record: bool,
    ends_in_zeros: bool,
}

impl Seen {
    /// Collects the facts that these events show.
    pub fn new(events: &[Event]) -> Self {
        let start = |event: &Event| event.span().0;
        let is_record = |event: &Event| matches!(event, Event::Record { .. });
        let is_trailer = |event: &Event| {
            let trailer = Reason::NonzeroTrailer;
            matches!(event, Event::Skipped { reason, .. } if *reason == trailer)
        };
        let behind = events.iter().rposition(is_record).map_or(0, |last| last + 1);
        let tail = events[behind..].iter().find(|event| !is_trailer(event));
        let zeros = Reason::ZeroFill;
        Seen {
            first_damage: events.iter().find(|event| event.is(Severity::Corruption)).map(start),
            tail: tail.map(start),
            has_record: events.iter().any(is_record),
            ends_in_zeros: matches!(events.last(), Some(Event::Skipped { reason, .. }) if *reason == zeros),
        }
    }

    /// Checks whether the file may be opened. Damage in the tail may or may not be truncated,
    /// because the crate decides whether a crash can have left it.
    pub fn allows(&self, choice: OnTornTail) -> bool {
        match choice {
            OnTornTail::Refuse => self.first_damage.is_none() && self.tail.is_none(),
            OnTornTail::Truncate => self
                .first_damage
                .is_none_or(|damage| self.tail.is_some_and(|tail| tail <= damage)),
            _ => true,
        }
    }

    /// Asserts that opening this file may fail with this error.
    pub fn assert_refused(&self, choice: OnTornTail, file_len: u64, error: &Error) {
        match error {
            Error {
                kind: ErrorKind::TornTail { region, .. },
                ..
            } => {
                assert_eq!(choice, OnTornTail::Refuse, "{error}");
                assert_eq!(self.first_damage, None, "{error}");
                assert_eq!((Some(region.start), region.end), (self.tail, file_len));
            }
            Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            } => {
                // A file is never written to unless it shows that it is a log.
                let is_no_log = !self.has_record;
                assert!(is_no_log || choice != OnTornTail::PadToBlock, "{choice:?}: {error}");
                // An incomplete record is also damage if another length in its header would
                // complete it.
                let flipped = self.tail.filter(|_| self.first_damage.is_none());
                assert_eq!(Some(region.start), self.first_damage.or(flipped));
            }
            // The file contains no valid fragment.
            Error {
                kind: ErrorKind::Foreign { .. },
                ..
            } => assert!(!self.has_record && self.tail.is_some(), "{choice:?}: {error}"),
            // A damaged fragment may have been a fragment of another dialect.
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

    /// Returns the file as opening should leave it.
    pub fn opened(&self, file: &[u8], choice: OnTornTail) -> Vec<u8> {
        let mut opened = file.to_vec();
        match (choice, self.tail) {
            (OnTornTail::Truncate, Some(tail)) => {
                opened.truncate(tail as usize);
                let is_lost = |event: &Event| matches!(event, Event::Record { end_offset, .. } if *end_offset > tail);
                let lost = events(file, OnCorruption::Salvage).into_iter().find(is_lost);
                assert_eq!(lost, None, "truncated, and could have been salvaged");
            }
            (OnTornTail::PadToBlock, Some(_)) if !file.len().is_multiple_of(BLOCK) => {
                // After only zeros, a header may end before its type byte. The next byte could then
                // be taken for the type.
                let (zeros, header) = file.split_at(file.len() - file.len() % BLOCK);
                let is_first_header = header.len() < 7 && zeros.iter().all(|&byte| byte == 0);
                // Zeros alone could complete a torn record.
                if !self.ends_in_zeros && !is_first_header {
                    opened.push(0xff);
                }
                opened.resize(file.len() + left_in_block(file.len() as u64), 0);
            }
            _ => {}
        }
        opened
    }
}
