//! The engines' own test cases, in our own words and mostly under their own names.
//! `docs/format/<engine>-cases.md` lists them, and says where this crate differs.
//!
//! The policy is `Skip` unless a test says otherwise. Each case lists all records and all skipped
//! regions. A comment with `Exception:` marks an intended difference from the engine.

mod appengine;
mod goleveldb;
mod pebble;
mod rocksdb;
mod wandb;
#[path = "../common/wire.rs"]
mod wire;

use cordwood_log::codec::Encoder;
use cordwood_log::{End, Event, LogFormat, OnCorruption, ReadOptions, Reader};

/// The length of a block in bytes.
const B: usize = 32_768;

/// The results of a reader.
#[derive(Debug)]
struct Reading {
    records: Vec<Vec<u8>>,
    offsets: Vec<u64>,
    /// Each region has a start offset, an end offset and a reason.
    skipped: Vec<(u64, u64, &'static str)>,
    end: End,
}

impl Reading {
    #[track_caller]
    fn records<D: AsRef<[u8]>>(&self, expected: &[D]) -> &Self {
        let lens = |records: &[&[u8]]| records.iter().map(|record| record.len()).collect::<Vec<_>>();
        let found: Vec<&[u8]> = self.records.iter().map(Vec::as_slice).collect();
        let expected: Vec<&[u8]> = expected.iter().map(AsRef::as_ref).collect();
        assert_eq!(lens(&found), lens(&expected), "lengths of the records");
        assert!(found == expected, "records of the right lengths that differ");
        self
    }

    #[track_caller]
    fn skipped(&self, expected: &[(u64, u64, &str)]) -> &Self {
        assert_eq!(self.skipped, expected);
        self
    }

    #[track_caller]
    fn ends_clean(&self) {
        assert!(matches!(self.end, End::Clean { .. }), "{:?}", self.end);
    }

    #[track_caller]
    fn ends_torn(&self, offset: usize) {
        assert_eq!(self.end, End::TornTail { offset: offset as u64 });
    }
}

const NONE: &[&str] = &[];

fn read(dialect: impl Into<LogFormat>, file: &[u8]) -> Reading {
    read_with(ReadOptions::default().with_format(dialect), file)
}

fn read_with(options: ReadOptions, file: &[u8]) -> Reading {
    let mut reader = Reader::from_slice(file, options.with_on_corruption(OnCorruption::Skip));
    let (mut records, mut offsets, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().expect("a slice can be read") {
        match event {
            Event::Record(record) => {
                records.push(record.data.to_vec());
                offsets.push(record.offset);
            }
            Event::Skipped(region) => skipped.push((region.start, region.end, region.reason.as_str())),
        }
    }
    Reading {
        records,
        offsets,
        skipped,
        end: reader.end().expect("an end"),
    }
}

fn write<D: AsRef<[u8]>>(dialect: impl Into<LogFormat>, records: &[D]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, dialect).unwrap();
    for record in records {
        encoder.encode(record.as_ref(), &mut file);
    }
    file
}

/// Repeats `text` up to `len` bytes.
fn big(text: &str, len: usize) -> Vec<u8> {
    text.bytes().cycle().take(len).collect()
}

/// Returns unstructured bytes that are the same each time.
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 9) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
