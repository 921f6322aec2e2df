//! What the crate's readers report, as the model's events.

use cordwood::codec::RecordSpan;
use cordwood::damage::{Severity, SkippedRegion};
use cordwood::format::BLOCK_LEN;
use cordwood::read::Source;
use cordwood::{Dialect, End, Error, ErrorKind, OnCorruption, ReadOptions, Reader, Record};

use crate::log::{header_len_max, layout};
use crate::model::Event;

impl From<Record<'_>> for Event {
    fn from(record: Record<'_>) -> Self {
        let Record {
            offset,
            end_offset,
            data,
            is_salvaged,
            ..
        } = record;
        Event::Record {
            offset,
            end_offset,
            data: data.to_vec(),
            is_salvaged,
        }
    }
}

impl Event {
    /// The record at `span`.
    pub fn of(span: RecordSpan, data: Vec<u8>) -> Self {
        let RecordSpan {
            offset,
            end_offset,
            is_salvaged,
            ..
        } = span;
        Event::Record {
            offset,
            end_offset,
            data,
            is_salvaged,
        }
    }
}

impl From<SkippedRegion> for Event {
    fn from(region: SkippedRegion) -> Self {
        let SkippedRegion {
            begin,
            end,
            reason,
            leveldb_len,
            ..
        } = region;
        Event::Skipped {
            begin,
            end,
            reason,
            leveldb_len,
        }
    }
}

/// The next event; `None` at the end. Damage is an error under the policy `raise` and no other, and
/// every error is damage.
pub fn next<S: Source>(reader: &mut Reader<S>, options: &ReadOptions) -> Option<Event> {
    let raises = options.on_corruption == OnCorruption::Fail;
    match reader.next_event() {
        Ok(event) => {
            let event = match event? {
                cordwood::Event::Record(record) => record.into(),
                cordwood::Event::Skipped(region) => Event::from(region),
            };
            assert!(!(raises && event.is(Severity::Corruption)), "not raised: {event:?}");
            Some(event)
        }
        Err(Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => {
            let event = Event::from(region);
            assert!(raises && event.is(Severity::Corruption), "raised: {event:?}");
            Some(event)
        }
        Err(error) => panic!("{error}"),
    }
}

/// All events and the end.
pub fn all<S: Source>(reader: &mut Reader<S>, options: &ReadOptions, file_len: usize) -> (Vec<Event>, End) {
    let mut events = Vec::new();
    while let Some(event) = next(reader, options) {
        events.push(event);
        // Each event has at least one byte of its own.
        assert!(events.len() <= file_len, "no end");
    }
    let end = reader.end().expect("an end behind the last event");
    assert_eq!(next(reader, options), None, "an event behind the end");
    assert_eq!(reader.end(), Some(end), "another end");
    (events, end)
}

/// Whether the range begins after the end of the file, which is an error each time it is read.
pub fn begins_after_end(file: &[u8], options: &ReadOptions) -> bool {
    let is_after_end = options.start > file.len() as u64;
    if is_after_end {
        let mut reader = Reader::from_slice(file, options.clone());
        for _ in 0..2 {
            let found = reader.next_event();
            assert!(
                matches!(
                    found,
                    Err(Error {
                        kind: ErrorKind::Truncated { .. },
                        ..
                    })
                ),
                "{found:?}"
            );
        }
    }
    is_after_end
}

/// All events of bytes in memory, and the end.
pub fn slice(file: &[u8], options: &ReadOptions) -> (Vec<Event>, End) {
    all(&mut Reader::from_slice(file, options.clone()), options, file.len())
}

/// Only the records: offset and bytes.
pub fn records(events: Vec<Event>) -> Vec<(u64, Vec<u8>)> {
    let records = events.into_iter().filter_map(|event| match event {
        Event::Record { offset, data, .. } => Some((offset, data)),
        Event::Skipped { .. } => None,
    });
    records.collect()
}

/// The records that the policy `salvage` does not mark: those that `skip` returns.
pub fn unmarked(salvaged: Vec<Event>) -> Vec<(u64, Vec<u8>)> {
    let is_marked = |event: &Event| matches!(event, Event::Record { is_salvaged: true, .. });
    records(salvaged.into_iter().filter(|event| !is_marked(event)).collect())
}

/// Asserts "The promise": the spans ascend and do not overlap, and only trailers lie between them,
/// or after the last.
///
/// `events` are those of the whole file.
pub fn assert_tiles(file: &[u8], dialect: Dialect, events: &[Event]) {
    let mut at = 0;
    let mut before = None;
    for event in events {
        let (begin, end) = event.span();
        assert!(at <= begin && begin < end, "{event:?} after {at}");
        assert_trailer(file, dialect, at, begin, before);
        at = end;
        before = Some(event);
    }
    assert_trailer(file, dialect, at, file.len() as u64, before);
}

fn assert_trailer(file: &[u8], dialect: Dialect, begin: u64, end: u64, before: Option<&Event>) {
    assert!(end <= file.len() as u64, "{end} is after the end of the file");
    let Some(bytes) = file.get(begin as usize..end as usize).filter(|bytes| !bytes.is_empty()) else {
        return;
    };
    let (_, grid) = layout(dialect);
    let left = BLOCK_LEN as u64 - begin.wrapping_sub(grid as u64) % BLOCK_LEN as u64;
    let is_to_its_end = end - begin == left || (end - begin < left && end == file.len() as u64);
    assert!(
        left < header_len_max(dialect) as u64 && is_to_its_end,
        "[{begin}, {end}) is no trailer"
    );
    // A record ends with neither FIRST nor MIDDLE.
    let is_inside = left < 7 && matches!(before, Some(Event::Skipped { .. }));
    assert!(
        is_inside || bytes.iter().all(|&byte| byte == 0),
        "[{begin}, {end}) is not zero, after {before:?}"
    );
}
