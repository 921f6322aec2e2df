//! Tests truncations and flipped bits of a three-block log with each kind of fragment, under each
//! policy. All places near the edges of fragments are tested, and some others. With
//! `CORDWOOD_SURVIVAL=full`, every place is tested.

use std::num::NonZeroUsize;
use std::thread;

use crate::common::fragment;
use crate::wire::Wire;
use cordwood_log::codec::Encoder;
use cordwood_log::damage::{BitFlip, Finding, Findings, FragmentPart, Reason, Severity, SkippedRegion};
use cordwood_log::format::{BLOCK_LEN, FRAGMENT_LEN_MAX, HEADER_LEN, Header, TRAILER_LEN_MAX};
use cordwood_log::ops::{self, SalvageOptions};
use cordwood_log::parallel;
use cordwood_log::read::SliceSource;
use cordwood_log::{Dialect, End, Error, ErrorKind, Event, OnCorruption, ReadOptions, Reader, Writer};

const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Fail,
    OnCorruption::Skip,
    OnCorruption::Stop,
    OnCorruption::Salvage,
];

/// A written log, and the positions of its records and fragments.
struct Log {
    bytes: Vec<u8>,
    records: Vec<Written>,
    /// The offset of each header, with the index of its record.
    fragments: Vec<(usize, usize)>,
}

struct Written {
    start: u64,
    end: u64,
    data: Vec<u8>,
}

impl Log {
    fn new(data: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut log = Log {
            bytes: Vec::new(),
            records: Vec::new(),
            fragments: Vec::new(),
        };
        let mut encoder = Encoder::new(0);
        for data in data {
            let start = encoder.encode(&data, &mut log.bytes);
            let end = encoder.offset();
            let mut at = start as usize;
            while at < end as usize {
                log.fragments.push((at, log.records.len()));
                at += HEADER_LEN + usize::from(log.header(at).len);
                if BLOCK_LEN - at % BLOCK_LEN < HEADER_LEN {
                    at = at.next_multiple_of(BLOCK_LEN);
                }
            }
            log.records.push(Written { start, end, data });
        }
        log
    }

    fn header(&self, at: usize) -> Header {
        Header::decode(self.bytes[at..].first_chunk().expect("a header"))
    }

    /// Returns the fragment that contains the byte at `offset`, as the offset of its header and the
    /// index of its record. Returns `None` in a trailer.
    fn fragment_at(&self, offset: usize) -> Option<(usize, usize)> {
        let (at, record) = self.fragments[self.fragments.partition_point(|&(at, _)| at <= offset).checked_sub(1)?];
        let end = at + HEADER_LEN + usize::from(self.header(at).len);
        (offset < end).then_some((at, record))
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns a log of three blocks and one more record. It contains short and empty records, a record
/// of FIRST, MIDDLE and LAST, and a six-byte trailer before the last record.
fn three_blocks() -> Log {
    three_blocks_with(noise(17, 3))
}

fn three_blocks_with(odd: Vec<u8>) -> Log {
    let lens = [3, 100, 0, 1000, 17, 5000, 0, 2000, 64, 4000];
    let mut data: Vec<_> = lens.into_iter().map(|len| noise(len, len as u64)).collect();
    data.insert(4, odd);
    let room = BLOCK_LEN - HEADER_LEN - Log::new(data.clone()).bytes.len();
    data.push(noise(room + FRAGMENT_LEN_MAX + 3000, 1));
    data.extend([7, 0, 250, 3000].map(|len| noise(len, len as u64)));
    let room = 3 * BLOCK_LEN - HEADER_LEN - Log::new(data.clone()).bytes.len();
    data.push(noise(room - TRAILER_LEN_MAX, 2));
    data.push(b"behind a trailer".to_vec());
    Log::new(data)
}

/// Returns a log with a block that ends with an empty FIRST fragment.
fn empty_first() -> Log {
    Log::new([
        noise(BLOCK_LEN - 3 * HEADER_LEN, 1),
        Vec::new(),
        noise(100, 2),
        b"last".to_vec(),
    ])
}

/// A record's index and whether it is salvaged, or the skipped region.
type Seen = Result<(usize, bool), SkippedRegion>;

/// Returns all events, in a form that is cheap to create.
fn read(log: &Log, bytes: &[u8], policy: OnCorruption) -> (Vec<Seen>, End) {
    let mut reader = Reader::from_slice(bytes, ReadOptions::default().with_on_corruption(policy));
    let mut events = Vec::new();
    let mut position = 0;
    loop {
        let (event, start, end) = match reader.next_event() {
            Ok(Some(Event::Record(record))) => {
                let index = log
                    .records
                    .binary_search_by_key(&record.offset, |written| written.start);
                let index = index.unwrap_or_else(|_| panic!("no record was written at {}", record.offset));
                let written = &log.records[index];
                assert_eq!(record.end_offset, written.end);
                assert!(record.data == written.data, "a wrong record at {}", record.offset);
                assert!(!record.is_salvaged || policy == OnCorruption::Salvage);
                (Ok((index, record.is_salvaged)), record.offset, record.end_offset)
            }
            Ok(Some(Event::Skipped(region))) => {
                assert!(policy != OnCorruption::Fail || region.reason.severity() != Severity::Corruption);
                (Err(region), region.start, region.end)
            }
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) if policy == OnCorruption::Fail => (Err(region), region.start, region.end),
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        };
        check_gap(bytes, position, start);
        assert!(start < end);
        events.push(event);
        position = end;
    }
    check_gap(bytes, position, bytes.len() as u64);
    (events, reader.end().expect("an end, behind the last event"))
}

/// Asserts that the bytes between two events are a trailer.
fn check_gap(bytes: &[u8], start: u64, end: u64) {
    assert!(start <= end, "events overlap: {start}, {end}");
    let is_trailer =
        end - start <= TRAILER_LEN_MAX as u64 && (end.is_multiple_of(BLOCK_LEN as u64) || end == bytes.len() as u64);
    assert!(start == end || is_trailer, "{start} to {end} is unaccounted for");
}

fn records(events: &[Seen]) -> Vec<usize> {
    events.iter().flatten().map(|&(index, _)| index).collect()
}

/// Returns the offsets to test, including the end of the file. These are the offsets near the edges
/// of fragments, and every 61st of the others, which are in the middle of a payload. With
/// `CORDWOOD_SURVIVAL=full`, these are all offsets.
fn offsets(log: &Log) -> Vec<usize> {
    let is_full = std::env::var_os("CORDWOOD_SURVIVAL").is_some_and(|value| value == "full");
    let is_near_edge = |offset: usize| {
        let edges = [offset.saturating_sub(HEADER_LEN + 8), offset, offset + 8];
        edges
            .iter()
            .any(|&edge| log.fragment_at(edge) != log.fragment_at(offset))
    };
    (0..=log.bytes.len())
        .filter(|&offset| is_full || offset % 61 == 0 || is_near_edge(offset))
        .collect()
}

/// Runs `check` for each of the [`offsets`], on all processors.
fn for_each_offset(log: &Log, check: impl Fn(usize) + Sync) {
    let offsets = offsets(log);
    let count = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let check = &check;
    thread::scope(|scope| {
        for part in offsets.chunks(offsets.len().div_ceil(count)) {
            scope.spawn(move || part.iter().for_each(|&offset| check(offset)));
        }
    });
}

#[test]
fn the_test_log_contains_each_kind_of_fragment() {
    let log = three_blocks();
    let kinds = |log: &Log| -> Vec<u8> { log.fragments.iter().map(|&(at, _)| log.header(at).kind).collect() };
    assert!([1, 2, 3, 4].iter().all(|kind| kinds(&log).contains(kind)));
    assert_eq!(log.fragment_at(3 * BLOCK_LEN - 1), None, "a trailer");
    let empty = empty_first();
    assert_eq!(kinds(&empty), [1, 1, 2, 4, 1]);
    assert_eq!(empty.header(empty.fragments[2].0).len, 0);
    let (events, end) = read(&log, &log.bytes, OnCorruption::Fail);
    assert_eq!(records(&events).len(), log.records.len());
    assert_eq!(
        end,
        End::Clean {
            offset: log.bytes.len() as u64
        }
    );
}

/// A truncated file is never damaged. It contains the complete records, and a torn tail if a record
/// is incomplete.
#[test]
fn a_reader_returns_the_complete_records_and_torn_tail_of_a_truncated_log() {
    let log = three_blocks();
    for_each_offset(&log, |len| {
        for policy in POLICIES {
            let (events, end) = read(&log, &log.bytes[..len], policy);
            let whole = log.records.partition_point(|written| written.end <= len as u64);
            assert_eq!(records(&events), (0..whole).collect::<Vec<_>>(), "{len} {policy:?}");
            assert!(events.iter().flatten().all(|&(_, is_salvaged)| !is_salvaged));
            let regions = || events.iter().filter_map(|event| event.err());
            let is_harmless = |region: SkippedRegion| {
                // The first bytes of a checksum may be zeros, which do not show that they belong to
                // a header.
                matches!(region.reason, Reason::TornTail | Reason::ZeroFill)
            };
            assert!(regions().all(is_harmless), "{len} {policy:?}");
            let is_torn = log.records.get(whole).is_some_and(|next| next.start < len as u64);
            assert_eq!(matches!(end, End::TornTail { .. }), is_torn, "{len} {policy:?}");
            assert_eq!(regions().next().is_some(), is_torn);
        }
    });
}

/// A flipped bit must not cost more than necessary, and must be located.
#[test]
fn each_flipped_bit_is_located_and_only_a_few_records_are_lost() {
    // One payload consists of whole fragments, which must not be taken for records.
    let inner = Log::new([b"inner".to_vec(), Vec::new(), vec![0; 9]]).bytes;
    every_flipped_bit_from(&three_blocks_with(inner), 0);
    every_flipped_bit_from(&empty_first(), BLOCK_LEN - 1000);
}

fn every_flipped_bit_from(log: &Log, start: usize) {
    for_each_offset(log, |offset| {
        if (start..log.bytes.len()).contains(&offset) {
            let mut bytes = log.bytes.clone();
            for bit in 0..8 {
                bytes[offset] ^= 1 << bit;
                check_flip(log, &bytes, offset, bit);
                bytes[offset] ^= 1 << bit;
            }
        }
    });
}

fn check_flip(log: &Log, bytes: &[u8], offset: usize, bit: u8) {
    let hit = log.fragment_at(offset);
    let hit_record = hit.map(|(_, record)| record);
    let all = 0..log.records.len();
    let block_end = (offset as u64 + 1).next_multiple_of(BLOCK_LEN as u64);

    let (raised, _) = read(log, bytes, OnCorruption::Fail);
    let (skipped, end) = read(log, bytes, OnCorruption::Skip);
    assert_eq!(raised, skipped, "{offset} {bit}");
    assert!(
        matches!(end, End::Clean { .. }),
        "{offset} {bit}: damage is no torn tail"
    );
    // The rest of the block is lost, with every record that starts in it.
    let is_lost = |index: &usize| hit_record.is_some_and(|hit| *index >= hit) && log.records[*index].start < block_end;
    assert_eq!(
        records(&skipped),
        all.clone().filter(|index| !is_lost(index)).collect::<Vec<_>>(),
        "{offset} {bit}"
    );

    let (stopped, _) = read(log, bytes, OnCorruption::Stop);
    assert_eq!(
        records(&stopped),
        (0..hit_record.unwrap_or(all.end)).collect::<Vec<_>>(),
        "{offset} {bit}"
    );

    // Under the policy `salvage`, only the damaged record is lost.
    let (salvaged, _) = read(log, bytes, OnCorruption::Salvage);
    assert_eq!(
        records(&salvaged),
        all.filter(|&index| Some(index) != hit_record).collect::<Vec<_>>(),
        "{offset} {bit}"
    );
    for (index, is_salvaged) in salvaged.iter().flatten() {
        assert_eq!(*is_salvaged, is_lost(index), "{offset} {bit}: record {index}");
    }
    let damage = |event: &Result<_, SkippedRegion>| event.err().filter(|region| flip_shows_as(region.reason));
    let Some((at, _)) = hit else {
        assert_eq!(salvaged.iter().find_map(damage), None, "{offset} {bit}");
        return;
    };
    let region = salvaged.iter().find_map(damage).expect("a flip that shows");
    let end = at + HEADER_LEN + usize::from(log.header(at).len);
    assert_eq!(
        (region.start, region.end),
        (at as u64, end as u64),
        "{offset} {bit}: that fragment and no more"
    );

    let left = BLOCK_LEN - at % BLOCK_LEN;
    let rest = &bytes[at..bytes.len().min(at + left)];
    let part = match offset - at {
        0..4 => FragmentPart::Checksum,
        4..6 => FragmentPart::Length,
        6 => FragmentPart::Kind,
        _ => FragmentPart::Payload,
    };
    let found = cordwood_log::damage::locate_bit_flip(rest, at as u64, Dialect::LEVELDB);
    let found = found.map(|BitFlip { offset, bit, part, .. }| (offset, bit, part));
    assert_eq!(found, Some((offset as u64, bit, part)));
}

fn flip_shows_as(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ChecksumMismatch { .. } | Reason::BadLength { .. } | Reason::ZeroHeader
    )
}

/// Two flipped bits in a block are two damaged places. The records between them are kept, too.
#[test]
fn two_flipped_bits_in_a_block_lose_two_records() {
    let log = three_blocks();
    let in_first_block = log.fragments.iter().filter(|&&(at, _)| at < BLOCK_LEN);
    let places: Vec<usize> = in_first_block.flat_map(|&(at, _)| [at, at + 6]).collect();
    for &one in &places {
        for &other in &places {
            let mut bytes = log.bytes.clone();
            bytes[one] ^= 2;
            bytes[other] ^= 4;
            let hit = [one, other].map(|offset| log.fragment_at(offset).expect("no trailer").1);
            let (events, _) = read(&log, &bytes, OnCorruption::Salvage);
            let expected = (0..log.records.len()).filter(|index| !hit.contains(index));
            assert_eq!(records(&events), expected.collect::<Vec<_>>(), "{one} {other}");
        }
    }
}

/// If a header is completely destroyed, the later fragments of the block are searched for. LevelDB
/// abandons the block at its first damage, so it does not report the second damage.
#[test]
fn leveldb_reports_only_the_first_damaged_region_in_a_block() -> Result<(), Error> {
    let mut log = Log::new([3, 4, 5, 6, 7].map(|len| noise(len, 1)));
    for damaged in [0, 2, 4] {
        log.bytes[log.records[damaged].start as usize + HEADER_LEN] ^= 1;
    }
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    let mut reader = Reader::from_slice(&log.bytes, options);
    let mut leveldb_lens = Vec::new();
    while let Some(event) = reader.next_event()? {
        if let Event::Skipped(region) = event {
            leveldb_lens.push(region.leveldb_len);
        }
    }
    assert_eq!(leveldb_lens, [Some(log.bytes.len() as u64), None, None]);
    Ok(())
}

#[test]
fn a_record_is_lost_if_its_header_is_destroyed() {
    let log = three_blocks();
    for &(at, record) in &log.fragments {
        for fill in [0, 0xff] {
            let mut bytes = log.bytes.clone();
            bytes[at..at + HEADER_LEN].fill(fill);
            let (events, _) = read(&log, &bytes, OnCorruption::Salvage);
            let expected = (0..log.records.len()).filter(|&index| index != record);
            assert_eq!(records(&events), expected.collect::<Vec<_>>(), "{at} {fill}");
        }
    }
}

#[test]
fn every_flipped_bit_is_reported_with_any_number_of_threads() -> Result<(), Box<dyn std::error::Error>> {
    let log = three_blocks();
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("damaged.log");
    for (offset, cut) in [
        (3, 0),
        (BLOCK_LEN + 10, 3),
        (2 * BLOCK_LEN + 5000, 20_000),
        (50, 40_000),
        (70, 90_000),
    ] {
        let mut bytes = log.bytes[..log.bytes.len() - cut].to_vec();
        bytes[offset] ^= 0x20;
        std::fs::write(&path, &bytes)?;
        for policy in POLICIES {
            let options = ReadOptions::default().with_on_corruption(policy);
            let one = ops::verify(SliceSource::new(&bytes), &options)?;
            for threads in 2..6 {
                let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
                assert_eq!(ops::verify_file(&path, &options, threads)?, one);
            }
            assert_eq!(one.file_len, Some(bytes.len() as u64));
            // `verify` does not fail at damage, and reads as under the policy `salvage`.
            let seen = if policy == OnCorruption::Fail {
                OnCorruption::Salvage
            } else {
                policy
            };
            let (events, end) = read(&log, &bytes, seen);
            assert_eq!(one.record_count, records(&events).len() as u64);
            assert_eq!(one.end, end);
            let flips: Vec<_> = one
                .findings
                .listed()
                .iter()
                .filter_map(|finding| finding.bit_flip)
                .collect();
            let found: Vec<u64> = flips.iter().map(|flip| flip.offset).collect();
            // Under the policy `stop`, reading ends at the record that the damage interrupts. That
            // record may start in an earlier block.
            let stops_before =
                matches!(end, End::Stopped { offset: at } if at < cordwood_log::format::block_start(offset as u64));
            assert_eq!(found, if stops_before { vec![] } else { vec![offset as u64] });
            assert!(!one.is_ok());
        }
    }
    Ok(())
}

/// Several threads read ranges in parts of one or two blocks. The report must be the same as from
/// one reader.
#[test]
fn reading_a_range_in_parts_does_not_change_the_report() -> Result<(), Error> {
    let log = three_blocks();
    let mut bytes = log.bytes;
    bytes[40] ^= 1;
    bytes.truncate(85_000);
    let edges = [
        0,
        1,
        5000,
        BLOCK_LEN,
        BLOCK_LEN + 1,
        60_000,
        2 * BLOCK_LEN,
        70_000,
        85_000,
        99_999,
    ];
    for start in edges.into_iter().filter(|&start| start <= bytes.len()) {
        for end in edges.map(Some).into_iter().chain([None]) {
            let end = end.map(|end| end as u64);
            let mut options = ReadOptions::default().with_range(start as u64..);
            options.end = end;
            let one = ops::verify(SliceSource::new(&bytes), &options)?;
            let stat = ops::stat(SliceSource::new(&bytes), &options)?;
            for (count, part_blocks) in [(2, 1), (2, 2), (3, 1), (4, 1)] {
                let parts = parallel::Parts::new(&options, Some(bytes.len() as u64), part_blocks * BLOCK_LEN as u64);
                let readers = || {
                    (0..count)
                        .map(|_| Reader::from_slice(&bytes, options.clone()))
                        .collect()
                };
                let of = format!("{start} {end:?} {count} {part_blocks}");
                assert_eq!(parallel::verify_parts(readers(), &parts)?, one, "{of}");
                assert_eq!(parallel::stat_parts(readers(), &parts)?, stat, "{of}");
            }
        }
    }
    Ok(())
}

/// The file ends with its block. It has a record with only an empty FIRST fragment, and a trailer.
#[test]
fn stats_count_a_trailer_after_a_torn_record() -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = Writer::new(Vec::new());
    writer.append(&[0; BLOCK_LEN - 7 - 8])?;
    let mut bytes = writer.into_inner()?;
    bytes.extend(cordwood_log::crc32c::mask(cordwood_log::crc32c::crc32c(&[2])).to_le_bytes());
    bytes.extend([0, 0, 2, 0]);
    let stat = ops::stat(SliceSource::new(&bytes), &ReadOptions::default())?;
    assert_eq!((stat.record_count, stat.skipped_len, stat.trailer_len), (1, 7, 1));
    Ok(())
}

#[test]
fn the_lengths_in_the_statistics_add_up_to_the_file_length() -> Result<(), Error> {
    let log = three_blocks();
    let mut bytes = log.bytes.clone();
    for damage in [None, Some(20), Some(40_000)] {
        if let Some(offset) = damage {
            bytes[offset] ^= 1;
        }
        for cut in [0, 1, 5, 100, 32_000] {
            let bytes = &bytes[..bytes.len() - cut];
            let stat = ops::stat(SliceSource::new(bytes), &ReadOptions::default())?;
            let fragment_count = stat.full_count + stat.first_count + stat.middle_count + stat.last_count;
            let len = stat.payload_len + 7 * fragment_count + stat.trailer_len + stat.skipped_len;
            assert_eq!(len, bytes.len() as u64, "{damage:?} {cut}");
            assert_eq!(stat.file_len, Some(len));
            assert_eq!(stat.first_count, stat.last_count);
        }
    }
    let stat = ops::stat(SliceSource::new(&log.bytes), &ReadOptions::default())?;
    assert_eq!(stat.record_count, log.records.len() as u64);
    assert_eq!(
        (stat.record_len_min, stat.record_len_max),
        (
            Some(0),
            log.records.iter().map(|written| written.data.len() as u64).max()
        )
    );
    assert_eq!(
        (stat.first_count, stat.middle_count, stat.block_count()),
        (1, 1, Some(4))
    );
    assert_eq!(stat.trailer_len, TRAILER_LEN_MAX as u64);
    let counted = |kind| {
        log.fragments
            .iter()
            .filter(|&&(at, _)| log.header(at).kind == kind)
            .count() as u64
    };
    assert_eq!((stat.full_count, stat.middle_count), (counted(1), counted(3)));
    Ok(())
}

#[test]
fn salvaging_writes_the_readable_records() -> Result<(), Box<dyn std::error::Error>> {
    let log = three_blocks();
    let directory = tempfile::tempdir()?;
    let (source, destination) = (directory.path().join("damaged.log"), directory.path().join("clean.log"));
    let mut bytes = log.bytes.clone();
    bytes[30] ^= 1;
    bytes.truncate(bytes.len() - 2);
    std::fs::write(&source, &bytes)?;
    let options = SalvageOptions::default();
    let report = ops::salvage_file(&source, &destination, &options)?;
    let expected = Log::new(
        (0..log.records.len() - 1)
            .filter(|&index| index != 1)
            .map(|index| log.records[index].data.clone()),
    );
    assert_eq!(std::fs::read(&destination)?, expected.bytes);
    assert_eq!(report.record_count, expected.records.len() as u64);
    assert_eq!(
        report.salvaged_count,
        log.fragments.iter().filter(|&&(at, _)| at < BLOCK_LEN).count() as u64 - 2
    );
    assert_eq!(std::fs::read(&source)?, bytes, "the source is as it was");

    for path in [&source, &destination] {
        let before = std::fs::read(path)?;
        let Err(Error {
            path: Some(named),
            kind: ErrorKind::Io { source: error, .. },
            ..
        }) = ops::salvage_file(&source, path, &options)
        else {
            panic!("it was overwritten")
        };
        assert_eq!(
            (&*named, error.kind()),
            (path.as_path(), std::io::ErrorKind::AlreadyExists)
        );
        assert_eq!(std::fs::read(path)?, before);
    }
    let missing = directory.path().join("missing").join("clean.log");
    assert!(ops::salvage_file(&source, &missing, &options).is_err());
    assert!(
        ops::salvage_file(
            directory.path().join("no.log"),
            directory.path().join("new.log"),
            &options
        )
        .is_err()
    );
    assert_eq!(
        std::fs::read_dir(directory.path())?.count(),
        2,
        "nothing is left behind"
    );
    Ok(())
}

/// Returns the skipped regions of a file.
fn regions_of(file: &[u8]) -> Vec<SkippedRegion> {
    let mut reader = Reader::from_slice(file, ReadOptions::default().with_on_corruption(OnCorruption::Skip));
    let mut regions = Vec::new();
    while let Some(event) = reader.next_event().expect("a slice") {
        if let Event::Skipped(region) = event {
            regions.push(region);
        }
    }
    regions
}

#[test]
fn a_one_byte_region_is_described_in_the_singular() {
    for (len, words) in [(1, "1 byte at offset 0: "), (2, "2 bytes at offset 0: ")] {
        let text = regions_of(&[0, 0][..len])[0].to_string();
        assert!(text.starts_with(words), "{text}");
    }
}

/// If findings are appended, the zeros at the end of the log may extend over several parts.
#[test]
fn appending_findings_preserves_the_trailing_zeros() {
    let mut file = vec![0; 2 * BLOCK_LEN];
    Encoder::new(file.len() as u64).encode(b"one", &mut file);
    file.resize(3 * BLOCK_LEN, 0);
    let record_end = (2 * BLOCK_LEN + HEADER_LEN + 3) as u64;
    let mut findings = Findings::default();
    for (region, start) in regions_of(&file).into_iter().zip([0, 0, record_end]) {
        let mut next = Findings::default();
        next.add(Finding::new(region));
        findings.append(next);
        assert_eq!(findings.zeros_before(region.end), Some(start));
        assert_eq!(findings.zeros_before(region.end - 1), None);
    }
    assert_eq!(findings.len_of(Severity::Info), file.len() as u64 - 10);
    assert_eq!(findings.len_of(Severity::Corruption), 0);
    assert_eq!(findings.len_by("bad_length"), 0);
}

#[test]
fn every_reason_has_a_description() {
    let words = [
        (
            Reason::BadLength { len: 7 },
            "the header states a length of 7 bytes, which is impossible here",
        ),
        (
            Reason::ChecksumMismatch {
                stored: 1,
                computed: 0xabcd_ef01,
            },
            "checksum mismatch: the header states 00000001, the data has abcdef01",
        ),
        (
            Reason::UnknownKind { kind: 200 },
            "unknown fragment type 200, with a valid checksum: a newer engine may have written it",
        ),
        (
            Reason::MissingStart,
            "a fragment of a record whose first fragment is missing",
        ),
        (Reason::MissingEnd, "a record whose last fragment is missing"),
        (Reason::InterruptedRecord, "a record interrupted by the damage after it"),
        (Reason::ZeroHeader, "a header of zeros before data that is not zero"),
        (Reason::RecordTooLarge, "a record longer than the limit"),
        (Reason::TooLargeRest, "the rest of a record longer than the limit"),
        (Reason::ZeroFill, "zeros up to the end of the block"),
        (Reason::NonzeroTrailer, "a block trailer that is not zero"),
        (Reason::EmptyFirst, "an empty first fragment without a continuation"),
        (Reason::TornTail, "an incomplete record at the end of the file"),
        (Reason::FileHeader, "the file header"),
        (
            Reason::UnknownVersion { version: 9 },
            "the file header states version 9, which is not known",
        ),
        (Reason::BadFileHeader, "not the file header of this dialect"),
        (Reason::Metadata { kind: 9 }, "engine metadata of type 9"),
        (
            Reason::BadMetadata { kind: 9 },
            "engine metadata of type 9, in a form or place that no engine uses",
        ),
        (
            Reason::IgnoredKind { kind: 128 },
            "an unknown fragment of type 128, which readers may skip",
        ),
        (Reason::EndTrailer, "the trailer of a closed log"),
        (Reason::Stale, "left over from an older log, after the end of this one"),
        (
            Reason::LostWrite,
            "left over from an older log, in the middle of this one",
        ),
        (
            Reason::UnsupportedCompression,
            "a compressed record; only zstd is read, by builds with the feature `zstd`",
        ),
        (Reason::BadCompression, "a record that cannot be decompressed"),
        (Reason::BadContainer, "a container of records that no writer writes"),
        (
            Reason::MissingSegment,
            "no segment has these bytes: a file was removed or cut",
        ),
        (
            Reason::GrownSegment,
            "the segment before has bytes after this offset, where the next one starts",
        ),
        (Reason::NotRead, "after the damage at which reading stopped"),
    ];
    let names = |reasons: &[Reason]| reasons.iter().map(|reason| reason.as_str()).collect::<Vec<_>>();
    assert_eq!(names(&words.map(|(reason, _)| reason)), names(Reason::ALL));
    for (reason, text) in words {
        assert_eq!(reason.to_string(), text);
    }
}

/// Returns six records of 20 bytes. With its header, each has 27 bytes.
fn six() -> Vec<u8> {
    (1..=6).flat_map(|byte| fragment(1, &[byte; 20])).collect()
}

/// Returns the events under the policy `Salvage`. A record is its offset and whether it is
/// salvaged, and a region is its start and end.
fn salvaged(reader: &mut Reader<SliceSource<'_>>) -> Vec<Result<(u64, bool), (u64, u64)>> {
    let mut all = Vec::new();
    while let Some(event) = reader.next_event().expect("an event") {
        all.push(match event {
            Event::Record(record) => Ok((record.offset, record.is_salvaged)),
            Event::Skipped(region) => Err((region.start, region.end)),
        });
    }
    all
}

/// By rule S1, a flipped bit of a length is corrected only if a valid fragment or an end follows.
#[test]
fn a_flipped_length_bit_is_not_corrected_if_damage_follows() {
    let mut file = six();
    file[27 + 4] ^= 8; // the length of the second record
    file[54] ^= 0x55; // the checksum of the third one
    file[57] ^= 0x3c;
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    let expected = [
        Ok((0, false)),
        Err((27, 81)),
        Ok((81, true)),
        Ok((108, true)),
        Ok((135, true)),
    ];
    assert_eq!(salvaged(&mut Reader::from_slice(&file, options)), expected);
}

/// After a seek, the record is the same, and the damage before it in its block is, too.
#[test]
fn records_after_damage_are_still_marked_as_salvaged_after_a_seek() {
    let mut file = six();
    file[40] ^= 1;
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    let mut reader = Reader::from_slice(&file, options);
    let after = [Ok((81, true)), Ok((108, true)), Ok((135, true))];
    assert_eq!(salvaged(&mut reader)[3..], after);
    reader.seek(81).expect("a seek");
    assert_eq!(salvaged(&mut reader), after);
}

/// A bit is flipped in records of several fragments. One of the records is much longer than all
/// records before it.
#[test]
fn a_flipped_bit_in_any_fragment_is_repaired() {
    let long: Vec<u8> = (0..70_000_u32).map(|index| (index % 251) as u8).collect();
    let records = [
        vec![1; BLOCK_LEN - HEADER_LEN - 100],
        long,
        vec![2; 300],
        b"last".to_vec(),
    ];
    let log = Log::new(records);
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(log.fragments.len(), 7);
    for &(at, _) in &log.fragments {
        let mut damaged = log.bytes.clone();
        damaged[at + HEADER_LEN + 2] ^= 0x20;
        let destination = directory.path().join(format!("{at}.log"));
        let options = SalvageOptions::default().with_repair_bit_flips(true);
        let report = ops::salvage(SliceSource::new(&damaged), &destination, &options).expect("a log");
        assert_eq!((report.record_count, report.repaired_count), (4, 1), "{at}");
        assert!(std::fs::read(&destination).expect("a log") == log.bytes, "{at}");
    }
}

/// The findings of repairing `file`, and the new file.
fn repaired(file: &[u8], dialect: Dialect) -> (Vec<Finding>, Vec<u8>) {
    let options = SalvageOptions::default()
        .with_dialect(dialect)
        .with_repair_bit_flips(true);
    let mut new = Vec::new();
    let report = ops::salvage_to(SliceSource::new(file), &mut new, &options).expect("a log");
    (report.repaired.listed().to_vec(), new)
}

#[test]
fn every_repaired_fragment_of_a_record_is_reported() {
    let log = Log::new([vec![b'x'; 70_000]]);
    let mut damaged = log.bytes.clone();
    for &(at, _) in &log.fragments {
        damaged[at] ^= 1;
    }
    let (findings, new) = repaired(&damaged, Dialect::LEVELDB);
    let starts: Vec<u64> = findings.iter().map(|finding| finding.region.start).collect();
    assert_eq!(starts, [0, 32_768, 65_536]);
    assert!(new == log.bytes);
}

#[test]
fn a_flipped_bit_in_a_file_header_is_repaired() {
    let file = [b":W&B\xe1\xbe\x00", &Wire::Ieee.full(b"one")[..]].concat();
    for at in 0..7 {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            let (findings, new) = repaired(&damaged, Dialect::WANDB);
            let [Finding { region, bit_flip, .. }] = findings[..] else {
                panic!("{findings:?}");
            };
            assert_eq!((region.start, region.end, region.reason), (0, 7, Reason::BadFileHeader));
            let flip = bit_flip.expect("a flipped bit");
            assert_eq!(
                (flip.offset, flip.bit, flip.part),
                (at as u64, bit, FragmentPart::FileHeader)
            );
            assert_eq!(new, file);
        }
    }
}

/// It is copied as it was before the damage.
#[test]
fn a_flipped_bit_in_metadata_is_repaired() {
    let metadata = Wire::Plain.fragment(130, &[1; 24]);
    let file = [Wire::Plain.full(b"one"), metadata, Wire::Plain.full(b"two")].concat();
    let mut damaged = file.clone();
    damaged[20] ^= 1;
    let (findings, new) = repaired(&damaged, Dialect::ROCKSDB);
    assert_eq!(findings.len(), 1);
    assert_eq!(new, file);
}

/// A log of SwanLab is of an old version if its records are JSON.
#[test]
fn takes_the_file_header_version_from_a_repaired_first_record() {
    let record = Wire::Ieee.full(b"{\"model_type\": \"run\"}");
    let file = [b":SWL\xd6\xe1\x00", &record[..]].concat();
    let mut damaged = file.clone();
    damaged[6] ^= 0x40;
    damaged[8] ^= 1;
    let (findings, new) = repaired(&damaged, Dialect::SWANLAB);
    let flips: Vec<_> = findings.iter().filter_map(|finding| finding.bit_flip).collect();
    assert_eq!(
        flips.iter().map(|flip| (flip.offset, flip.bit)).collect::<Vec<_>>(),
        [(6, 6), (8, 0)]
    );
    assert_eq!(new, file);
    // A reader that repairs no record takes the version as it is.
    let mut reader = Reader::from_slice(&damaged, ReadOptions::default().with_dialect(Dialect::SWANLAB));
    let event = reader.next_event().expect("an event");
    let version = 0x40;
    assert!(
        matches!(event, Some(Event::Skipped(region)) if region.reason == Reason::UnknownVersion { version }),
        "{event:?}"
    );
}
