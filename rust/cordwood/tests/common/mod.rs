#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test program uses a part of it"
)]
//! Code that several test files share. It builds fragments of any type, collects all events of a
//! file as values that outlive the reader, and checks the kind of an error.

use cordwood_log::crc32c::{crc32c, extend, mask};
use cordwood_log::damage::SkippedRegion;
use cordwood_log::format::{HEADER_LEN, Header};
use cordwood_log::read::Source;
use cordwood_log::{End, Error, ErrorKind, Event, Reader};

/// An [`Event`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Record {
        offset: u64,
        end_offset: u64,
        data: Vec<u8>,
        is_salvaged: bool,
    },
    Skipped(SkippedRegion),
}

/// Returns all events and the end. If the policy `Fail` returns an error for a region, the region
/// counts as an event.
pub(crate) fn read_all<S: Source>(reader: &mut Reader<S>) -> (Vec<Found>, End) {
    let mut events = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(Event::Record(record))) => events.push(Found::Record {
                offset: record.offset,
                end_offset: record.end_offset,
                data: record.data.to_vec(),
                is_salvaged: record.is_salvaged,
            }),
            Ok(Some(Event::Skipped(region)))
            | Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                events.push(Found::Skipped(region));
            }
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let end = reader.end().expect("an end, behind the last event");
    // The end is final. LevelDB's ReadWrite test also reads again after the end.
    assert_eq!(reader.next_event().expect("no error after the end"), None);
    assert_eq!(reader.end(), Some(end));
    (events, end)
}

#[allow(dead_code, reason = "not every test file makes fragments")]
/// Returns the checksum that a fragment with this type and payload contains.
pub(crate) fn checksum(kind: u8, payload: &[u8]) -> u32 {
    mask(extend(crc32c(&[kind]), payload))
}

#[allow(dead_code, reason = "not every test file makes fragments")]
/// Returns a fragment of any type with a valid checksum.
pub(crate) fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        masked_crc: checksum(kind, payload),
        len: u16::try_from(payload.len()).expect("a payload that a header can state"),
        kind,
    };
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    bytes.extend_from_slice(&header.encode());
    bytes.extend_from_slice(payload);
    bytes
}

/// Asserts that a result is an error of this kind. If it is not, the panic shows the result, after
/// the context.
macro_rules! assert_error {
    ($result:expr, $kind:pat $(if $condition:expr)? $(, $($context:tt)+)?) => {
        // In `let`, the temporaries of the expression would be dropped.
        match &$result {
            Err(cordwood_log::Error { kind: $kind, .. }) $(if $condition)? => {}
            other => panic!("{}{other:?}", String::new() $(+ &format!($($context)+) + ": ")?),
        }
    };
}
pub(crate) use assert_error;
