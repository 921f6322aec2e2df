//! Tests damage in every dialect: every truncation and every flipped bit of a small log, and all
//! types with valid and invalid checksums. No record may be wrong, every byte must be accounted
//! for, and the reader must neither panic nor hang.

use crate::wire::Wire;
use cordwood_log::damage::{Severity, SkippedRegion};
use cordwood_log::{Dialect, End, Error, ErrorKind, Event, LogFormat, OnCorruption, ReadOptions, Reader};

const BLOCK: usize = 32_768;
const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Fail,
    OnCorruption::Skip,
    OnCorruption::Stop,
    OnCorruption::Salvage,
];

struct Log {
    dialect: LogFormat,
    wire: Wire,
    bytes: Vec<u8>,
    /// The start, the end and the data of each record.
    records: Vec<(u64, u64, Vec<u8>)>,
    /// The length of the file header.
    prefix_len: usize,
}

impl Log {
    fn new(dialect: LogFormat, wire: Wire, prefix: &[u8], records: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let grid = if dialect == LogFormat::new(Dialect::WANDB_OLD) {
            7
        } else {
            0
        };
        let mut log = Log {
            dialect,
            wire,
            bytes: prefix.to_vec(),
            records: Vec::new(),
            prefix_len: prefix.len(),
        };
        for data in records {
            let start = wire.append(&mut log.bytes, grid, &data);
            log.records.push((start, log.bytes.len() as u64, data));
        }
        log
    }

    /// Returns options that name the dialect, and options that leave it to be detected.
    fn options(&self) -> [ReadOptions; 2] {
        [ReadOptions::default().with_format(self.dialect), ReadOptions::default()]
    }
}

const WANDB_HEADER: &[u8] = b":W&B\xe1\xbe\x00";

/// Returns one log in each dialect and form.
fn logs(records: impl Fn(Wire, usize) -> Vec<Vec<u8>>) -> Vec<Log> {
    let log =
        |dialect: LogFormat, wire: Wire, prefix: &[u8]| Log::new(dialect, wire, prefix, records(wire, prefix.len()));
    vec![
        log(LogFormat::new(Dialect::LEVELDB), Wire::Plain, b""),
        log(LogFormat::new(Dialect::ROCKSDB), Wire::Plain, b""),
        log(
            LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
            Wire::Recyclable(7),
            b"",
        ),
        log(
            LogFormat::new(Dialect::RECYCLABLE).with_log_number(7),
            Wire::Recyclable(7),
            b"",
        ),
        log(
            LogFormat::new(Dialect::PEBBLE).with_log_number(7),
            Wire::Recyclable(7),
            b"",
        ),
        log(
            LogFormat::new(Dialect::PEBBLE).with_log_number(7),
            Wire::Synced(7, 0),
            b"",
        ),
        log(LogFormat::new(Dialect::WANDB), Wire::Ieee, WANDB_HEADER),
        log(LogFormat::new(Dialect::WANDB_OLD), Wire::Ieee, WANDB_HEADER),
        log(LogFormat::new(Dialect::SWANLAB), Wire::Ieee, b":SWL\xd6\xe1\x02"),
    ]
}

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 9) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn small(_: Wire, _: usize) -> Vec<Vec<u8>> {
    [3, 0, 40, 17, 0, 100, 9]
        .into_iter()
        .enumerate()
        .map(|(seed, len)| noise(len, 77 + seed as u32))
        .collect()
}

/// Returns small records. One block ends between two of them, or inside one of them.
fn at_a_block_end(wire: Wire, prefix_len: usize) -> Vec<Vec<u8>> {
    let room = BLOCK - prefix_len - 5 * wire.header_len() - 63;
    vec![
        noise(3, 1),
        noise(room, 2),
        noise(20, 3),
        Vec::new(),
        noise(90, 4),
        noise(5, 5),
        noise(30, 6),
    ]
}

struct Seen {
    /// The indices of the records that were read, in order.
    records: Vec<usize>,
    skipped: Vec<SkippedRegion>,
    end: End,
}

/// Returns all events after checking each one. Every record must be one that was written, and every
/// byte must be covered exactly once.
fn read(log: &Log, bytes: &[u8], options: ReadOptions) -> Seen {
    let policy = options.on_corruption;
    let mut reader = Reader::from_slice(bytes, options);
    let mut seen = Seen {
        records: Vec::new(),
        skipped: Vec::new(),
        end: End::Clean { offset: 0 },
    };
    let mut position = 0;
    // At most one event per byte and one for the end are possible. More events would mean that
    // reading never ends.
    for _ in 0..=bytes.len() + 1 {
        let (start, end) = match reader.next_event() {
            Ok(Some(Event::Record(record))) => {
                let at = log.records.binary_search_by_key(&record.offset, |&(start, ..)| start);
                let at = at.unwrap_or_else(|_| panic!("no record was written at {}", record.offset));
                assert_eq!(record.end_offset, log.records[at].1);
                assert!(record.data == log.records[at].2, "a wrong record at {}", record.offset);
                assert!(!record.is_salvaged || policy == OnCorruption::Salvage);
                seen.records.push(at);
                (record.offset, record.end_offset)
            }
            Ok(Some(Event::Skipped(region)))
            | Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => {
                seen.skipped.push(region);
                (region.start, region.end)
            }
            Ok(None) => {
                seen.end = reader.end().expect("an end");
                let is_trailer = trailer(bytes, position, bytes.len() as u64);
                assert!(is_trailer, "{position} to the end is not accounted for");
                return seen;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(start < end, "an empty event at {start}");
        assert!(
            trailer(bytes, position, start),
            "{position} to {start} is not accounted for"
        );
        position = end;
    }
    panic!("more events than bytes");
}

/// Checks that two events are adjacent, or that only the end of a block is between them and is too
/// short for a header.
fn trailer(bytes: &[u8], start: u64, end: u64) -> bool {
    start == end
        || (start < end && end - start < 19 && bytes[start as usize..end as usize].iter().all(|&byte| byte == 0))
}

/// Checks whether a region more severe than information is reported.
fn has_findings(seen: &Seen) -> bool {
    seen.skipped
        .iter()
        .any(|region| region.reason.severity() != Severity::Info)
}

#[test]
fn reading_undamaged_logs_returns_every_record() {
    for log in logs(small).into_iter().chain(logs(at_a_block_end)) {
        for options in log.options() {
            for policy in POLICIES {
                let seen = read(&log, &log.bytes, options.clone().with_on_corruption(policy));
                assert_eq!(
                    seen.records,
                    Vec::from_iter(0..log.records.len()),
                    "{:?} {options:?}",
                    log.wire
                );
                assert!(!has_findings(&seen));
                assert_eq!(seen.skipped.len(), usize::from(log.prefix_len > 0));
            }
        }
    }
}

fn check_truncation(log: &Log, len: usize) {
    let bytes = &log.bytes[..len];
    let whole: Vec<usize> = (0..log.records.len())
        .filter(|&at| log.records[at].1 <= len as u64)
        .collect();
    let ends_between = whole.last().map_or(log.prefix_len, |&at| log.records[at].1 as usize);
    for policy in POLICIES {
        let [known, unknown] = log
            .options()
            .map(|options| read(log, bytes, options.with_on_corruption(policy)));
        assert_eq!(known.records, whole, "{:?} cut to {len}", log.dialect);
        let is_damage = |region: &SkippedRegion| region.reason.severity() == Severity::Corruption;
        assert!(
            !known.skipped.iter().any(is_damage),
            "{:?} cut to {len}: {:?}",
            log.dialect,
            known.skipped
        );
        let is_torn = matches!(known.end, End::TornTail { .. });
        // The rest may consist of the zeros of a trailer.
        let rest = &bytes[ends_between.min(len)..];
        assert_eq!(
            is_torn,
            rest.iter().any(|&byte| byte != 0) || (len < log.prefix_len && len > 0),
            "{:?} {len}",
            log.dialect
        );
        // Without a whole fragment, no dialect is detected, and the file is read as `leveldb`.
        assert!(unknown.records == whole || whole.is_empty());
    }
}

#[test]
fn a_reader_returns_the_complete_records_and_torn_tail_of_a_truncated_log() {
    for log in logs(small) {
        for len in 0..=log.bytes.len() {
            check_truncation(&log, len);
        }
    }
}

#[test]
fn a_log_truncated_near_a_block_end_yields_complete_records_and_a_torn_tail() {
    for log in logs(at_a_block_end) {
        // Every length is tested, except in the middle of the long record.
        for len in (0..100).chain((BLOCK - 220)..=log.bytes.len()) {
            check_truncation(&log, len);
        }
    }
}

fn check_flip(log: &Log, bytes: &[u8], at: usize) {
    let hit = log
        .records
        .iter()
        .position(|&(start, end, _)| (start..end).contains(&(at as u64)));
    let others: Vec<usize> = (0..log.records.len()).filter(|&record| Some(record) != hit).collect();
    let [known, unknown] = log.options();
    for options in [known.clone(), unknown.clone()] {
        for policy in POLICIES {
            let seen = read(log, bytes, options.clone().with_on_corruption(policy));
            // A damaged record must never be returned, and never be lost silently.
            assert!(
                hit.is_none_or(|hit| !seen.records.contains(&hit)),
                "{:?} {at}",
                log.wire
            );
            assert!(
                hit.is_none() || has_findings(&seen),
                "{:?} {at}: {:?}",
                log.wire,
                seen.skipped
            );
        }
    }
    for options in [known, unknown] {
        let salvaged = read(log, bytes, options.with_on_corruption(OnCorruption::Salvage));
        assert_eq!(salvaged.records, others, "{:?} {at}: {:?}", log.wire, salvaged.skipped);
    }
}

#[test]
fn each_flipped_bit_is_located_and_only_a_few_records_are_lost() {
    for log in logs(small) {
        let mut bytes = log.bytes.clone();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                check_flip(&log, &bytes, at);
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn every_flipped_bit_near_a_block_end_is_reported() {
    for log in logs(at_a_block_end) {
        let mut bytes = log.bytes.clone();
        for at in (0..40).chain((BLOCK - 220)..bytes.len()) {
            // One bit of each byte is tested here. The log above is tested with every bit.
            let bit = at % 8;
            bytes[at] ^= 1 << bit;
            check_flip(&log, &bytes, at);
            bytes[at] ^= 1 << bit;
        }
    }
}

/// A fragment is inserted between two records, in each dialect. It has each type, each form of
/// header, and a valid or invalid checksum.
#[test]
fn handles_any_type_byte_between_records_in_every_dialect() {
    for log in logs(small) {
        let wires = [
            Wire::Plain,
            Wire::Recyclable(7),
            Wire::Recyclable(8),
            Wire::Synced(7, 0),
            Wire::Ieee,
        ];
        // A container with an unknown codec is an error, which `packed.rs` tests.
        const CONTAINER: u8 = 0x40;
        let kinds = (0..=255_u8).filter(|&kind| kind != CONTAINER);
        for (kind, wire) in kinds.flat_map(|kind| wires.map(|wire| (kind, wire))) {
            let mut between = wire.fragment(kind, b"abc");
            for is_right in [true, false] {
                between[0] ^= u8::from(!is_right);
                let first = log.records[2].1 as usize;
                let bytes = [&log.bytes[..first], &between, &log.bytes[first..]].concat();
                // The expected records are the same, but some are moved. If the inserted bytes are
                // a record, it is included.
                let mut records = log.records.clone();
                records[3..].iter_mut().for_each(|(start, end, _)| {
                    *start += between.len() as u64;
                    *end += between.len() as u64;
                });
                records.insert(3, (first as u64, (first + between.len()) as u64, b"abc".to_vec()));
                let shifted = Log {
                    records,
                    bytes,
                    ..Log::new(log.dialect, log.wire, b"", [])
                };
                for policy in POLICIES {
                    for options in log.options() {
                        let seen = read(&shifted, &shifted.bytes, options.with_on_corruption(policy));
                        assert!(seen.records.starts_with(&[0, 1, 2]));
                        assert!(is_right || !seen.records.contains(&3));
                        if !is_right {
                            assert!(has_findings(&seen), "{kind} {wire:?} in {:?}", log.wire);
                        }
                    }
                }
            }
        }
    }
}

/// Two adjacent blocks are damaged. The records after the damage in the second block must also be
/// salvaged if the log has a number, although another log might follow the damage in the first
/// block.
#[test]
fn records_after_damage_in_two_blocks_are_salvaged() {
    let records = |_: Wire, _: usize| {
        let small = (0..1_000).map(|number| noise(100, number));
        [noise(50_000, 8)].into_iter().chain(small).collect()
    };
    for log in logs(records) {
        let mut bytes = log.bytes.clone();
        bytes[32_700] ^= 1;
        bytes[32_800] ^= 1;
        for options in log.options() {
            let seen = read(&log, &bytes, options.with_on_corruption(OnCorruption::Salvage));
            assert_eq!(seen.records, Vec::from_iter(1..log.records.len()), "{:?}", log.wire);
            let skipped_len: u64 = seen.skipped.iter().map(|region| region.end - region.start).sum();
            assert_eq!(skipped_len, log.records[0].1, "{:?}", log.wire);
        }
    }
}
