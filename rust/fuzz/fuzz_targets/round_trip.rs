//! Writes records from any offset. The bytes must be the same as the model's, and the reader must
//! return the records with their offsets.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use cordwood::codec::{Decoder, Encoder, Step, Window};
use cordwood::format::encoded_len;
use cordwood::{Dialect, End, ReadOptions, Writer, WriterOptions};
use cordwood_fuzz::file::{Payload, several};
use cordwood_fuzz::model::{Event, encode, fragment};
use cordwood_fuzz::read;
use cordwood_fuzz::steps::{ShortSink, Steps};
use libfuzzer_sys::fuzz_target;

const BLOCK: u64 = 32_768;

/// The length of the file before the records are written.
#[derive(Arbitrary, Debug)]
enum Start {
    New,
    Edge { block: u8, behind: u8 },
    Any(u16),
    Far(u64),
}

impl Start {
    fn offset(&self) -> u64 {
        match *self {
            Start::New => 0,
            Start::Edge { block, behind } => (u64::from(block % 3) * BLOCK + u64::from(behind % 32)).saturating_sub(16),
            Start::Any(offset) => offset.into(),
            // Half of the range is left for the records.
            Start::Far(offset) => offset / 2,
        }
    }
}

#[derive(Debug)]
struct Input<'a> {
    start: Start,
    steps: Steps<'a>,
    records: Vec<(Payload<'a>, bool)>,
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Input {
            start: u.arbitrary()?,
            steps: u.arbitrary()?,
            records: several(u)?,
        })
    }
}

/// Returns whole records that fill a file of `len` bytes. Returns `None` if no such file can have
/// this length, because a file ends after a fragment or between two blocks.
fn file_of(len: u64) -> Option<Vec<u8>> {
    let (blocks, rest) = (len / BLOCK, (len % BLOCK) as usize);
    let whole = fragment(1, &[b'.'; BLOCK as usize - 7]);
    let mut file = whole.repeat(usize::try_from(blocks).ok().filter(|&blocks| blocks < 4)?);
    if rest > 0 {
        file.extend(fragment(1, &vec![b'.'; rest.checked_sub(7)?]));
    }
    Some(file)
}

fuzz_target!(|input: Input<'_>| {
    let start = input.start.offset();
    let mut expected = Vec::new();
    let mut records = Vec::new();
    let mut encoder = Encoder::new(start);
    let mut encoded = Vec::new();
    let options = WriterOptions::default().with_file_len(start);
    let mut writer = Writer::with_options(ShortSink::new(input.steps), options).expect("LevelDB's dialect");

    for (payload, is_flushed) in input.records {
        let file_len = start + expected.len() as u64;
        let record = payload.bytes(file_len + 7);
        let (bytes, offset) = encode(file_len, &record);
        assert_eq!(encoded_len(file_len, record.len() as u64), bytes.len() as u64);
        expected.extend(bytes);

        assert_eq!(encoder.encode(&record, &mut encoded), offset);
        assert_eq!(writer.append(&record).expect("a sink that takes all"), offset);
        assert_eq!(writer.offset(), start + expected.len() as u64);
        if is_flushed {
            writer.flush().expect("a sink that takes all");
            assert_eq!(writer.buffered_len(), 0);
        }
        records.push((offset, record));
    }
    assert!(encoded == expected, "the encoder's bytes");
    assert!(
        writer.into_inner().expect("a sink that takes all").written == expected,
        "the writer's bytes"
    );

    decode(start, &expected, &records);
    if let Some(mut file) = file_of(start) {
        file.extend(expected);
        read(start, &file, records);
    }
});

/// Asserts that a decoder that starts where writing started reads the written records.
fn decode(start: u64, bytes: &[u8], records: &[(u64, Vec<u8>)]) {
    let window = Window {
        offset: start,
        bytes,
        is_last: true,
    };
    let mut decoder = Decoder::new(&ReadOptions::default().with_dialect(Dialect::LEVELDB)).unwrap();
    decoder.seek(start);
    for (offset, record) in records {
        let step = decoder.step(window);
        let Step::Record(span) = step else {
            panic!("{step:?} in place of the record at {offset}");
        };
        assert_eq!(span.offset, *offset);
        assert!(decoder.data(window, span) == record, "the record at {offset}");
    }
    let offset = start + bytes.len() as u64;
    assert_eq!(decoder.step(window), Step::End(End::Clean { offset }));
}

/// Asserts that records that were written after whole records are read together with them, and that
/// each record can be read on its own by its offset.
fn read(start: u64, file: &[u8], records: Vec<(u64, Vec<u8>)>) {
    let (events, end) = read::slice(file, &ReadOptions::default().with_dialect(Dialect::LEVELDB));
    assert_eq!(
        end,
        End::Clean {
            offset: file.len() as u64
        }
    );
    read::assert_tiles(file, Dialect::LEVELDB, &events);
    assert!(
        events.iter().all(|event| matches!(event, Event::Record { .. })),
        "whole records only"
    );
    let mut found = read::records(events);
    found.retain(|(offset, _)| *offset >= start);
    assert!(found == records, "the records");

    let starts: Vec<u64> = records.iter().map(|(offset, _)| *offset).collect();
    let ends = starts.iter().copied().skip(1).chain([file.len() as u64]);
    for ((offset, record), next) in records.into_iter().zip(ends) {
        let options = ReadOptions::default()
            .with_dialect(Dialect::LEVELDB)
            .with_range(offset..offset + 1);
        let (events, end) = read::slice(file, &options);
        assert!(
            read::records(events) == [(offset, record)],
            "the record at {offset} alone"
        );
        assert_eq!(end, End::Clean { offset: next });
    }
}
