//! Converts the results of the crate to the model's events.

use std::io::{self, Read};

use cordwood::damage::{Severity, SkippedRegion};
use cordwood::read::{RecordBatch, Source, StreamSource};
use cordwood::{End, Error, ErrorKind, OnCorruption, ReadOptions, Reader, Record, Unsupported};

use crate::model::{Event, Refused};

/// All events, and the end or the error that refuses the log.
pub(crate) type Answer = (Vec<Event>, Result<End, Refused>);

pub(crate) fn record(record: Record<'_>) -> Event {
    Event::Record {
        offset: record.offset,
        end_offset: record.end_offset,
        data: record.data.to_vec(),
        is_salvaged: record.is_salvaged,
    }
}

pub(crate) fn skipped(region: SkippedRegion) -> Event {
    Event::Skipped {
        start: region.start,
        end: region.end,
        reason: region.reason,
        leveldb_len: region.leveldb_len,
    }
}

/// Converts an error that refuses a log.
fn refusal(error: &Error) -> Refused {
    match error.kind {
        ErrorKind::OverBudget(record) => Refused::OverBudget(record.offset),
        ErrorKind::Unsupported {
            unsupported: Unsupported::PackedVersion { version, offset, .. },
            ..
        } => Refused::Version(version, offset),
        ErrorKind::Unsupported {
            unsupported: Unsupported::Codec { codec, offset, .. },
            ..
        } => Refused::Codec(codec, offset),
        _ => panic!("{error}"),
    }
}

/// Reads the whole log. Asserts that damage is an error under the policy `fail`, and is not an
/// error under any other policy.
pub(crate) fn all<S: Source>(mut reader: Reader<S>, options: &ReadOptions, file_len: usize) -> Answer {
    let fails = options.on_corruption == OnCorruption::Fail;
    let mut events = Vec::new();
    loop {
        let event = match reader.next_event() {
            Ok(None) => return (events, Ok(reader.end().expect("an end after the last event"))),
            Ok(Some(cordwood::Event::Record(found))) => record(found),
            Ok(Some(cordwood::Event::Skipped(region))) => {
                assert!(
                    !fails || region.reason.severity() != Severity::Corruption,
                    "no error: {region:?}"
                );
                skipped(region)
            }
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                assert!(fails, "an error: {region:?}");
                skipped(region)
            }
            Err(error) => return (events, Err(refusal(&error))),
        };
        events.push(event);
        assert!(events.len() <= file_len, "no end");
    }
}

pub(crate) fn slice(file: &[u8], options: &ReadOptions) -> Answer {
    all(Reader::from_slice(file, options.clone()), options, file.len())
}

/// Reads a stream that returns one byte at a time.
pub(crate) fn trickle(file: &[u8], options: &ReadOptions) -> Answer {
    let source = StreamSource::new(OneByte(file), 0).with_len(file.len() as u64);
    all(Reader::with_source(source, options.clone()), options, file.len())
}

struct OneByte<'a>(&'a [u8]);

impl Read for OneByte<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.0.len()).min(1);
        let (byte, rest) = self.0.split_at(len);
        buffer[..len].copy_from_slice(byte);
        self.0 = rest;
        Ok(len)
    }
}

/// Returns the records, read in batches of `len` bytes.
pub(crate) fn batches(file: &[u8], options: &ReadOptions, len: usize) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::from_slice(file, options.clone());
    let mut batch = RecordBatch::default();
    let mut records = Vec::new();
    loop {
        let has_more = match reader.record_batch(&mut batch, len) {
            Ok(has_more) => has_more,
            Err(Error {
                kind: ErrorKind::Corruption { .. },
                ..
            }) => true,
            Err(error) => {
                refusal(&error);
                false
            }
        };
        records.extend(
            batch
                .record_offsets()
                .iter()
                .copied()
                .zip(batch.iter().map(<[u8]>::to_vec)),
        );
        batch.clear();
        if !has_more {
            return records;
        }
    }
}

/// Returns only the records.
pub(crate) fn records(events: &[Event]) -> Vec<(u64, Vec<u8>)> {
    let record = |event: &Event| match event {
        Event::Record { offset, data, .. } => Some((*offset, data.clone())),
        Event::Skipped { .. } => None,
    };
    events.iter().filter_map(record).collect()
}
