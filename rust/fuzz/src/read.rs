//! Converts the results of the crate's readers to the model's events.

use cordwood::codec::RecordSpan;
use cordwood::damage::{Severity, SkippedRegion};
use cordwood::format::BLOCK_LEN;
use cordwood::read::Source;
use cordwood::{Dialect, End, Error, ErrorKind, OnCorruption, ReadOptions, Reader, Record, Unsupported};

use crate::log::{header_len_max, layout};
use crate::model::{Event, Refused};

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
    /// Returns the record at `span` as an event.
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
            start,
            end,
            reason,
            leveldb_len,
            ..
        } = region;
        Event::Skipped {
            start,
            end,
            reason,
            leveldb_len,
        }
    }
}

/// Returns the next event, or `None` at the end. Asserts that damage is an error under the policy
/// `raise`, and is not an error under any other policy. Every other error must refuse the log.
pub fn next<S: Source>(reader: &mut Reader<S>, options: &ReadOptions) -> Result<Option<Event>, Refused> {
    let raises = options.on_corruption == OnCorruption::Fail;
    match reader.next_event() {
        Ok(None) => Ok(None),
        Ok(Some(event)) => {
            let event = match event {
                cordwood::Event::Record(record) => record.into(),
                cordwood::Event::Skipped(region) => Event::from(region),
            };
            assert!(!(raises && event.is(Severity::Corruption)), "not raised: {event:?}");
            Ok(Some(event))
        }
        Err(Error {
            kind: ErrorKind::Corruption { region, .. },
            ..
        }) => {
            let event = Event::from(region);
            assert!(raises && event.is(Severity::Corruption), "raised: {event:?}");
            Ok(Some(event))
        }
        Err(error) => Err(refusal(&error).unwrap_or_else(|| panic!("{error}"))),
    }
}

/// Converts an error that refuses a log. Returns `None` for damage and other errors.
pub fn refusal(error: &Error) -> Option<Refused> {
    match error.kind {
        ErrorKind::OverBudget(record) => Some(Refused::OverBudget(record.offset)),
        ErrorKind::Unsupported { unsupported, .. } => match unsupported {
            Unsupported::PackedVersion { version, offset, .. } => Some(Refused::Version(version, offset)),
            Unsupported::Codec { codec, offset, .. } => Some(Refused::Codec(codec, offset)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns all events, and the end or the error that refuses the log.
pub fn attempt<S: Source>(
    reader: &mut Reader<S>,
    options: &ReadOptions,
    file_len: usize,
) -> (Vec<Event>, Result<End, Refused>) {
    let mut events = Vec::new();
    loop {
        match next(reader, options) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break,
            Err(refused) => {
                assert_eq!(next(reader, options), Err(refused), "another refusal");
                return (events, Err(refused));
            }
        }
        // Each event covers at least one byte that no other event covers.
        assert!(events.len() <= file_len, "no end");
    }
    let end = reader.end().expect("an end behind the last event");
    assert_eq!(next(reader, options), Ok(None), "an event behind the end");
    assert_eq!(reader.end(), Some(end), "another end");
    (events, Ok(end))
}

/// Returns all events and the end of a log that must not be refused.
pub fn all<S: Source>(reader: &mut Reader<S>, options: &ReadOptions, file_len: usize) -> (Vec<Event>, End) {
    let (events, end) = attempt(reader, options, file_len);
    (events, end.expect("a log that is read"))
}

/// Checks whether the log is refused. Damage may have created a container or a mark with an unknown
/// codec.
pub fn is_refused(file: &[u8], options: &ReadOptions) -> bool {
    let options = options.clone().with_range(..).with_on_corruption(OnCorruption::Skip);
    let mut reader = Reader::from_slice(file, options.clone());
    match reader.format() {
        Ok(_) => attempt(&mut reader, &options, file.len()).1.is_err(),
        Err(error) => refusal(&error).is_some(),
    }
}

/// Returns all events of a reader whose reads sometimes fail.
pub fn patiently<S: Source>(reader: &mut Reader<S>) -> (Vec<Event>, End) {
    let mut events = Vec::new();
    let mut errors = 0;
    loop {
        match reader.next_event() {
            Ok(Some(cordwood::Event::Record(record))) => events.push(record.into()),
            Ok(Some(cordwood::Event::Skipped(region)))
            | Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                events.push(region.into());
            }
            Ok(None) => return (events, reader.end().expect("an end")),
            Err(Error {
                kind: ErrorKind::Io { .. },
                ..
            }) => {
                errors += 1;
                assert!(errors < 10_000, "no end");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks whether the range starts after the end of the file. Asserts that each read of such a
/// range is an error.
pub fn starts_after_end(file: &[u8], options: &ReadOptions) -> bool {
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

/// Returns all events of bytes in memory, and the end.
pub fn slice(file: &[u8], options: &ReadOptions) -> (Vec<Event>, End) {
    all(&mut Reader::from_slice(file, options.clone()), options, file.len())
}

/// Returns only the records, each with its offset.
pub fn records(events: Vec<Event>) -> Vec<(u64, Vec<u8>)> {
    let records = events.into_iter().filter_map(|event| match event {
        Event::Record { offset, data, .. } => Some((offset, data)),
        Event::Skipped { .. } => None,
    });
    records.collect()
}

/// Returns the records that the policy `salvage` does not mark as salvaged. The policy `skip`
/// returns the same records.
pub fn unmarked(salvaged: Vec<Event>) -> Vec<(u64, Vec<u8>)> {
    let is_marked = |event: &Event| matches!(event, Event::Record { is_salvaged: true, .. });
    records(salvaged.into_iter().filter(|event| !is_marked(event)).collect())
}

/// Asserts "The promise": the spans ascend and do not overlap, and only trailers are between them
/// or after the last span.
///
/// `events` must be the events of the whole file.
pub fn assert_tiles(file: &[u8], dialect: Dialect, events: &[Event]) {
    let mut at = 0;
    let mut before = None;
    for event in events {
        let (start, end) = event.span();
        assert!(at <= start && start < end, "{event:?} after {at}");
        assert_trailer(file, dialect, at, start, before);
        at = end;
        before = Some(event);
    }
    assert_trailer(file, dialect, at, file.len() as u64, before);
}

fn assert_trailer(file: &[u8], dialect: Dialect, start: u64, end: u64, before: Option<&Event>) {
    assert!(end <= file.len() as u64, "{end} is after the end of the file");
    let Some(bytes) = file.get(start as usize..end as usize).filter(|bytes| !bytes.is_empty()) else {
        return;
    };
    let (_, grid) = layout(dialect);
    let left = BLOCK_LEN as u64 - start.wrapping_sub(grid as u64) % BLOCK_LEN as u64;
    let is_to_its_end = end - start == left || (end - start < left && end == file.len() as u64);
    assert!(
        left < header_len_max(dialect) as u64 && is_to_its_end,
        "[{start}, {end}) is no trailer"
    );
    // A trailer that is not zero can only follow a FIRST or MIDDLE fragment. A complete record ends
    // with neither.
    let is_inside = left < 7 && matches!(before, Some(Event::Skipped { .. }));
    assert!(
        is_inside || bytes.iter().all(|&byte| byte == 0),
        "[{start}, {end}) is not zero, after {before:?}"
    );
}
