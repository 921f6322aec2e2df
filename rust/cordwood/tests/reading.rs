//! Tests the rules of `docs/format/reading.md` in every dialect with hand-built bytes. The rules
//! are about the log number, salvage and compressed logs.

use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::time::Duration;

use crate::common::{Found, assert_error, fragment, read_all};
use crate::wire::Wire;
use cordwood_log::codec::{Decoder, Encoder, Step, Window};
use cordwood_log::damage::{Reason, Severity, locate_bit_flip};
use cordwood_log::follow::{NotYet, Poll, WaitReason};
use cordwood_log::ops::{self, Detection, SalvageOptions, detect, detect_named};
use cordwood_log::parallel;
use cordwood_log::read::{FileReader, SeekSource, SliceSource, StreamSource};
use cordwood_log::{
    Compression, Dialect, End, Error, ErrorKind, FollowOptions, Follower, LogFile, LogFormat, OnCorruption,
    ReadOptions, Reader, Writer,
};

const BLOCK: usize = 32_768;

fn skip() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Skip)
}

/// Returns the records of a file with their offsets, and the reasons of all skipped regions.
fn read(file: &[u8], options: &ReadOptions) -> (Vec<(u64, Vec<u8>)>, Vec<&'static str>) {
    let (events, _) = read_all(&mut Reader::from_slice(file, options.clone()));
    let (mut records, mut reasons) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Found::Record { offset, data, .. } => records.push((offset, data)),
            Found::Skipped(region) => reasons.push(region.reason.as_str()),
        }
    }
    (records, reasons)
}

/// If a bound is after the largest possible offset, the range excludes no event or all events.
#[test]
fn a_range_can_be_given_with_any_kind_of_bounds() {
    for (start, end, expected) in [
        (Bound::Excluded(9), Bound::Included(19), (10, Some(20))),
        (Bound::Included(9), Bound::Excluded(19), (9, Some(19))),
        (Bound::Unbounded, Bound::Unbounded, (0, None)),
        (Bound::Excluded(u64::MAX), Bound::Included(u64::MAX), (u64::MAX, None)),
    ] {
        let options = ReadOptions::default().with_range((start, end));
        assert_eq!((options.start, options.end), expected);
    }
}

/// Readers, writers and errors can be sent to and shared with other threads.
#[test]
fn readers_writers_and_errors_are_send_and_sync() {
    const fn check<T: Send + Sync>() {}
    const {
        check::<FileReader>();
        check::<Reader<SliceSource<'static>>>();
        check::<Follower>();
        check::<Decoder>();
        check::<Encoder>();
        check::<Writer<std::fs::File>>();
        check::<LogFile>();
        check::<Error>();
        check::<ops::Report>();
    }
}

/// LevelDB treats the end of a file as a clean end if less than a header is left there, or if the
/// stated length exceeds the file.
#[test]
fn leveldb_silently_drops_a_pending_record_at_eof() {
    let first = fragment(2, &[b'x'; BLOCK - 7]);
    // A torn write cannot leave this fragment, because its checksum covers only three bytes.
    let mut wrong_length = fragment(1, b"abc");
    wrong_length[4] = 50;
    for (end, reason) in [(vec![0; 3], "zero_fill"), (wrong_length, "bad_length")] {
        let file = [first.clone(), end].concat();
        let (events, _) = read_all(&mut Reader::from_slice(&file, skip()));
        let regions = events.iter().map(|event| match event {
            Found::Skipped(region) => (region.start, region.reason.as_str(), region.leveldb_len),
            Found::Record { .. } => panic!("{event:?}"),
        });
        let regions: Vec<_> = regions.collect();
        assert_eq!(regions, [(0, "interrupted_record", None), (BLOCK as u64, reason, None)]);
    }
}

/// The trailer of a log without records contains the number of the next log.
#[test]
fn the_decoder_adopts_the_log_number_of_an_end_trailer() {
    let window = Window {
        offset: 0,
        bytes: b"\0\0\0\0\0\0\x05\x0a\0\0\0",
        is_last: true,
    };
    let mut decoder = Decoder::new(&skip().with_format(Dialect::PEBBLE)).unwrap();
    let step = decoder.step(window);
    assert!(
        matches!(step, Step::Skipped(region) if (region.end, region.reason) == (11, Reason::EndTrailer)),
        "{step:?}"
    );
    assert_eq!(decoder.format().log_number, Some(9));
}

/// Zeros in place of the header may be a preallocated file or a destroyed header. The fragments
/// after them in the first block decide.
#[test]
fn the_first_block_determines_whether_a_zeroed_file_header_is_damage() {
    let mut file = vec![0; BLOCK];
    file[200] = 1;
    let mut decoder = Decoder::new(&skip().with_format(Dialect::WANDB)).unwrap();
    let mut step = |len: usize| {
        decoder.step(Window {
            offset: 0,
            bytes: &file[..len],
            is_last: false,
        })
    };
    assert!(matches!(step(100), Step::NeedMore));
    let Step::Skipped(region) = step(BLOCK) else {
        panic!("no region");
    };
    assert_eq!(
        (region.start, region.end, region.reason.as_str()),
        (0, 7, "bad_file_header")
    );
}

/// The debug output shows data like a byte string in source code. Of long data, it shows only the
/// start.
#[test]
fn debug_output_abbreviates_a_long_record() -> Result<(), Error> {
    let file = [fragment(1, b"one\n\xff\""), fragment(1, &[b'x'; 30_000])].concat();
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    let record = reader.next_record()?.expect("a record");
    assert_eq!(
        format!("{record:?}"),
        r#"Record { offset: 0, end_offset: 13, data: b"one\n\xff\"", is_salvaged: false }"#
    );
    let owned = reader.records().next().expect("a record")?;
    assert_eq!(
        format!("{owned:?}"),
        format!(
            r#"OwnedRecord {{ offset: 13, end_offset: 30020, data: <30000 bytes: b"{}"...>, is_salvaged: false }}"#,
            "x".repeat(32)
        )
    );
    Ok(())
}

// Small rules ---------------------------------------------------------------------------------------------------------

/// The blocks of `wandb_old` start at offset 7, so they end 7 bytes later than LevelDB's blocks.
#[test]
fn the_lengths_in_stat_add_up_for_a_torn_wandb_old_log_that_ends_in_a_trailer() -> Result<(), cordwood_log::Error> {
    let file = [
        b":W&B\xe1\xbe\x00".as_slice(),
        &Wire::Ieee.fragment(2, &[b'x'; 32_755]),
        &[0; 6],
    ]
    .concat();
    let options = ReadOptions::default().with_dialect(Dialect::WANDB_OLD);
    let stat = ops::stat(SliceSource::new(&file), &options)?;
    let sum = stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len;
    assert_eq!((sum, stat.file_len), (32_775, Some(32_775)));
    Ok(())
}

/// Preallocated zeros are not damage, even if the named dialect has a file header.
#[test]
fn zeros_in_place_of_a_file_header_count_as_zero_fill() {
    for dialect in [Dialect::WANDB, Dialect::WANDB_OLD, Dialect::SWANLAB] {
        for len in [1, 6, 7, 8, 100, BLOCK, BLOCK + 7, 2 * BLOCK] {
            let (records, reasons) = read(&vec![0; len], &skip().with_format(dialect));
            assert!(records.is_empty());
            assert!(
                reasons.iter().all(|&reason| reason == "zero_fill"),
                "{dialect:?} {len} {reasons:?}"
            );
        }
        // If more bytes follow in the block, the header was destroyed.
        let file = [[0; 7].as_slice(), &Wire::Ieee.full(b"foo")].concat();
        let (records, reasons) = read(&file, &skip().with_format(dialect));
        assert_eq!((records.len(), reasons), (1, vec!["bad_file_header"]), "{dialect:?}");
    }
}

/// A range that starts inside the header returns the first record, and does not report the header.
#[test]
fn a_file_header_is_part_of_the_range_that_contains_its_start() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 0, b"one");
    for (flip, reason) in [(0, "file_header"), (0x40, "bad_file_header")] {
        file[5] ^= flip;
        for split in 1..=7 {
            let options = skip().with_dialect(Dialect::WANDB);
            let before = read(&file, &options.clone().with_range(..split));
            assert_eq!(before, (vec![], vec![reason]), "to {split}");
            let after = read(&file, &options.with_range(split..));
            assert_eq!(after, (vec![(7, b"one".to_vec())], vec![]), "from {split}");
        }
    }
}

#[test]
fn a_follower_waits_while_the_file_header_is_still_zeros() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let header = b":W&B\xe1\xbe\x00";
    for written in [0, 1, 3, 5] {
        let path = directory.path().join(format!("{written}.wandb"));
        let mut file = vec![0; 4096];
        file[..written].copy_from_slice(&header[..written]);
        std::fs::write(&path, &file)?;
        let options = FollowOptions::default()
            .with_dialect(Dialect::WANDB)
            .with_retry(1, Duration::ZERO);
        let mut follower = Follower::open_with(&path, options)?;
        for _ in 0..3 {
            assert!(matches!(follower.poll()?, Poll::NotYet(_)), "{written}");
        }
        let whole = [header.as_slice(), &Wire::Ieee.full(b"foo")].concat();
        file[..whole.len()].copy_from_slice(&whole);
        std::fs::write(&path, &file)?;
        assert!(matches!(follower.poll()?, Poll::Skipped(region) if region.reason.as_str() == "file_header"));
        assert!(matches!(follower.poll()?, Poll::Record(record) if record.data == b"foo"));
    }
    Ok(())
}

/// Offsets that are larger than any file must not overflow.
#[test]
fn offsets_near_the_maximum_do_not_overflow() {
    let mut damaged = fragment(1, b"foo");
    damaged[9] ^= 1;
    for bytes in [&fragment(1, b"foo")[..], &damaged, &[0; 20], b"junk", &[]] {
        for offset in [u64::MAX, u64::MAX - 5, u64::MAX - BLOCK as u64] {
            for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
                let options = ReadOptions::default().with_range(offset..).with_on_corruption(policy);
                let mut decoder = Decoder::new(&options).unwrap();
                let window = Window {
                    offset,
                    bytes,
                    is_last: true,
                };
                for _ in 0..20 {
                    if matches!(decoder.step(window), Step::End(_)) {
                        break;
                    }
                }
            }
        }
    }
    let flip = locate_bit_flip(&damaged, u64::MAX, Dialect::LEVELDB).expect("one bit");
    assert_eq!(flip.offset, u64::MAX);
}

/// A seek does not read any byte, so it cannot find the new length.
#[test]
fn seeking_past_the_end_does_not_change_the_file_length() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("000001.log");
    std::fs::write(&path, fragment(1, &[1; 50]))?;
    let mut reader = Reader::open(&path)?;
    reader.seek(1_000_000)?;
    assert_eq!(reader.file_len(), Some(57));
    assert_error!(reader.next_record(), ErrorKind::Truncated { .. });
    assert_eq!(reader.file_len(), Some(57));
    Ok(())
}

/// Records that were appended after the file was opened are counted.
#[test]
fn stat_lengths_add_up_even_if_the_file_grows_later() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("000001.log");
    let first = fragment(1, &[1; 50]);
    // The second record leaves room for a trailer of six bytes, and a torn header follows.
    let second = fragment(1, &vec![2; BLOCK - 6 - first.len() - 7]);
    for torn in [&[][..], &[9; 3]] {
        std::fs::write(&path, &first)?;
        let reader = Reader::open(&path)?;
        let whole = [&first, &second, &[0; 6][..], torn].concat();
        std::fs::write(&path, &whole)?;
        let stat = ops::stat(reader.into_inner(), &ReadOptions::default())?;
        let sum = stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len;
        assert_eq!((sum, stat.file_len), (whole.len() as u64, Some(whole.len() as u64)));
        assert_eq!(stat.record_count, 2);
    }
    Ok(())
}

/// A fragment of more than 32,754 bytes after the file header does not fit into a block that starts
/// at offset 0.
#[test]
fn the_first_length_identifies_a_torn_run_file_in_the_old_format() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 7, &[b'x'; 200_000]);
    for len in (14..3 * BLOCK).step_by(997) {
        let (records, reasons) = read(&file[..len], &skip());
        assert!(records.is_empty());
        assert!(
            reasons
                .iter()
                .all(|&reason| reason == "file_header" || reason == "torn_tail"),
            "{len} {reasons:?}"
        );
        assert_eq!(detect(&file[..len]), Detection::Log(Dialect::WANDB_OLD.into()));
    }
    // A short fragment fits into a block of either dialect.
    let short = [&file[..7], &Wire::Ieee.full(b"foo")].concat();
    assert_eq!(detect(&short), Detection::Log(Dialect::WANDB.into()));
}

/// The last record of the file is at the place where a block that starts at offset 0 would end.
#[test]
fn a_fragment_that_crosses_a_block_boundary_identifies_an_old_run_file() {
    for first_len in 32_741..=32_754 {
        let mut file = b":W&B\xe1\xbe\x00".to_vec();
        Wire::Ieee.append(&mut file, 7, &vec![b'x'; first_len]);
        Wire::Ieee.append(&mut file, 7, &[]);
        let (records, reasons) = read(&file, &skip());
        assert_eq!((records.len(), reasons), (2, vec!["file_header"]), "{first_len}");
    }
}

#[test]
fn matches_a_damaged_file_header_to_the_closest_dialect() {
    for (header, dialect) in [
        (b":SWL\xd6\xe1\x02", Dialect::SWANLAB),
        (b":W&B\xe1\xbe\x00", Dialect::WANDB),
    ] {
        let records: Vec<u8> = [b"one".as_slice(), b"two", b"three"]
            .iter()
            .flat_map(|data| Wire::Ieee.full(data))
            .collect();
        for at in 0..7 {
            let mut file = [header.as_slice(), &records].concat();
            file[at] ^= 4;
            assert_eq!(detect(&file), Detection::Log(dialect.into()), "{at}");
        }
    }
}

/// No engine writes an empty record. Nevertheless, a log that is cut in the header of an empty
/// record is torn, not damaged.
#[test]
fn a_recyclable_log_ending_with_the_header_of_an_empty_record_is_torn() {
    let file = Wire::Recyclable(3).full(b"");
    for len in 1..file.len() {
        let (records, reasons) = read(&file[..len], &skip());
        assert_eq!((records.len(), reasons), (0, vec!["torn_tail"]), "{len}");
    }
}

// Salvage -------------------------------------------------------------------------------------------------------------

fn salvage() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Salvage)
}

/// Only before the first record of a range may a fragment continue a record of the range before.
#[test]
fn a_missing_start_is_damage_except_at_the_beginning_of_a_range() {
    let file = [
        Wire::Plain.full(b"a"),
        Wire::Plain.full(b"b"),
        Wire::Plain.part(4, b"c"),
    ]
    .concat();
    for (start, records) in [(8, vec![(8, b"b".to_vec())]), (16, vec![])] {
        let missing: &[&str] = if records.is_empty() { &[] } else { &["missing_start"] };
        assert_eq!(read(&file, &skip().with_range(start..)), (records, missing.to_vec()));
    }
}

fn window(bytes: &[u8], is_last: bool) -> Window<'_> {
    Window {
        offset: 0,
        bytes,
        is_last,
    }
}

/// The offsets of a region and its reason, or of a record.
fn part(step: Step) -> (u64, u64, &'static str) {
    match step {
        Step::Record(span) => (span.offset, span.end_offset, "record"),
        Step::Skipped(region) => (region.start, region.end, region.reason.as_str()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn seeking_discards_a_pending_record() {
    let file = [
        Wire::Plain.full(b"a"),
        Wire::Plain.part(2, b"b"),
        Wire::Plain.part(4, b"c"),
        vec![0; 3],
    ]
    .concat();
    let start = window(&file[..16], false);
    let mut decoder = Decoder::new(&skip()).unwrap();
    for _ in 0..2 {
        assert_eq!(part(decoder.step(start)), (0, 8, "record"));
        assert_eq!(decoder.step(start), Step::NeedMore);
        decoder.seek(0);
    }
    assert_eq!(part(decoder.step(start)), (0, 8, "record"));
    assert_eq!(decoder.step(start), Step::NeedMore);
    // Zeros at the end are the rest of a record only if it is pending.
    decoder.seek(24);
    assert_eq!(part(decoder.step(window(&file, true))), (24, 27, "zero_fill"));
}

/// Fragments at the start of a range may belong to the range before. Those at another offset do
/// not.
#[test]
fn seeking_into_the_middle_of_a_record_skips_the_fragment_at_that_offset() {
    let file = [
        Wire::Plain.full(b"a"),
        Wire::Plain.part(2, b"b"),
        Wire::Plain.part(4, b"c"),
    ]
    .concat();
    let mut decoder = Decoder::new(&skip().with_range(8..)).unwrap();
    decoder.seek(16);
    assert_eq!(part(decoder.step(window(&file, true))), (16, 24, "missing_start"));
}

#[test]
fn records_after_a_seek_are_not_marked_as_salvaged() {
    let mut damaged = Wire::Plain.full(b"damaged");
    damaged[9] ^= 3;
    let file = [damaged, Wire::Plain.full(b"b"), Wire::Plain.full(b"c")].concat();
    let window = window(&file, true);
    let mut decoder = Decoder::new(&salvage()).unwrap();
    let steps: Vec<Step> = (0..3).map(|_| decoder.step(window)).collect();
    assert!(
        matches!(steps[1..], [Step::Record(b), Step::Record(c)] if b.is_salvaged && c.is_salvaged),
        "{steps:?}"
    );
    decoder.seek(22);
    let step = decoder.step(window);
    assert!(
        matches!(step, Step::Record(c) if c.offset == 22 && !c.is_salvaged),
        "{step:?}"
    );
}

/// The bytes after the first record are damage or an older log, which the next block decides.
#[test]
fn seeking_discards_damage_that_has_not_been_reported_yet() {
    let own = Wire::Recyclable(5);
    let mut file = own.full(b"a");
    file.resize(32_768, 0xff);
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    let mut decoder = Decoder::new(&skip().with_format(format)).unwrap();
    for _ in 0..2 {
        assert_eq!(part(decoder.step(window(&file, false))), (0, 12, "record"));
        assert_eq!(decoder.step(window(&file, false)), Step::NeedMore);
        decoder.seek(0);
    }
}

/// A trailer ends a log, and the bytes after it are an older log.
#[test]
fn seeking_clears_the_detected_end_of_the_log() {
    let trailer = b"\0\0\0\0\0\0\x05\x08\0\0\0";
    let file = [&Wire::Recyclable(7).full(b"one")[..], trailer, &[1; 20]].concat();
    let format = LogFormat::new(Dialect::PEBBLE).with_log_number(7);
    let mut decoder = Decoder::new(&skip().with_format(format)).unwrap();
    for _ in 0..2 {
        assert_eq!(part(decoder.step(window(&file, true))), (0, 14, "record"));
        assert_eq!(part(decoder.step(window(&file, true))), (14, 25, "end_trailer"));
        decoder.seek(0);
    }
}

#[test]
fn seeking_discards_a_rejected_record() {
    let file = Wire::Packed.full(b"\x07\x01\x01a");
    let mut decoder = Decoder::new(&skip().with_dialect(Dialect::PACKED)).unwrap();
    assert_eq!(decoder.step(window(&file, true)), Step::NeedMore);
    assert!(decoder.refused().is_some());
    decoder.seek(0);
    assert_eq!(decoder.refused(), None);
}

/// The checksum proves the real length, wherever the damaged length leads.
#[test]
fn at_most_one_record_is_lost_if_a_length_bit_is_flipped() {
    let file: Vec<u8> = (0..1500)
        .flat_map(|number| Wire::Plain.full(format!("{number:09}").as_bytes()))
        .collect();
    for bit in 0..16 {
        let mut file = file.clone();
        file[48 + 4 + bit / 8] ^= 1 << (bit % 8);
        let (records, reasons) = read(&file, &salvage());
        assert_eq!((records.len(), reasons.len()), (1499, 1), "{bit}");
    }
    // If the record contains another log, the records of that log are not returned either.
    let inner: Vec<u8> = (0..20).flat_map(|_| Wire::Plain.full(b"inner")).collect();
    let mut file = [Wire::Plain.full(&inner), Wire::Plain.full(b"after")].concat();
    file[4] ^= 0x08;
    let (records, _) = read(&file, &salvage());
    assert_eq!(
        records.iter().map(|(_, data)| data.as_slice()).collect::<Vec<_>>(),
        [b"after"]
    );
}

/// After damage, six zeros and a 5 look like an end-of-log trailer. They may be other data whose
/// start is lost.
#[test]
fn an_apparent_end_trailer_after_damage_does_not_end_the_log() {
    let mut file = Wire::Plain.full(&[b'x'; 50]);
    file[3] ^= 1;
    file.extend(Wire::Plain.full(&[b'y'; 50]));
    file.extend([0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4]);
    file.resize(BLOCK, 0);
    for _ in 0..2 {
        for _ in 0..100 {
            file.extend(Wire::Plain.full(b"good"));
        }
        file.resize(file.len().next_multiple_of(BLOCK), 0);
    }
    for dialect in [Dialect::PEBBLE, Dialect::RECYCLABLE].map(LogFormat::new) {
        for dialect in [dialect, dialect.with_log_number(9)] {
            let skipped = read(&file, &skip().with_format(dialect)).0;
            let salvaged = read(&file, &salvage().with_format(dialect)).0;
            assert_eq!((skipped.len(), salvaged.len()), (200, 201), "{dialect:?}");
        }
    }
}

/// A continuation at the start of a file continues no record, so no crash can have left it.
#[test]
fn a_continuation_fragment_at_the_start_of_a_file_is_reported_as_damage() {
    let options = skip().with_dialect(Dialect::LEVELDB);
    let before = Wire::Plain.full(b"one");
    for (kind, reason) in [(1, "torn_tail"), (2, "torn_tail"), (3, "bad_length"), (4, "bad_length")] {
        let cut = |start: usize| Wire::Plain.part(kind, &vec![b'x'; BLOCK - 7 - start])[..100].to_vec();
        assert_eq!(read(&cut(0), &options).1, [reason], "type {kind}");
        let file = [&before[..], &cut(before.len())].concat();
        assert_eq!(read(&file, &options).1, ["torn_tail"], "type {kind}");
    }
    // In a run file, the first fragment comes after the file header.
    let torn = &Wire::Ieee.part(4, &[b'x'; 1000])[..100];
    let file = [b":W&B\xe1\xbe\x00", torn].concat();
    assert_eq!(read(&file, &skip()).1, ["file_header", "bad_length"]);
    // A crash can leave the start of the header, but no other bytes.
    let named = skip().with_dialect(Dialect::WANDB);
    assert_eq!(read(b":W&", &named).1, ["torn_tail"]);
    assert_eq!(read(b"xyz", &named).1, ["bad_file_header"]);
}

/// Without a log number, any four bytes could be the number in a trailer, and a trailer has no
/// checksum. Only the trailer of an empty log is then accepted.
#[test]
fn only_trusts_an_end_trailer_with_the_right_log_number() {
    let trailer = b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00";
    let file = [&Wire::Plain.full(b"one")[..], trailer, &Wire::Plain.full(b"two")].concat();
    assert_eq!(
        read(&file, &skip().with_dialect(Dialect::PEBBLE)).1,
        ["checksum_mismatch"]
    );
    let numbered = skip().with_format(LogFormat::new(Dialect::PEBBLE).with_log_number(1));
    assert_eq!(read(&file, &numbered).1, ["end_trailer", "stale"]);
    // The log was closed after an incomplete record. To Pebble's reader, it ends unexpectedly.
    let file = [&Wire::Plain.part(2, b"one")[..], trailer].concat();
    let (_, end) = read_all(&mut Reader::from_slice(&file, numbered.clone()));
    assert_eq!(read(&file, &numbered).1, ["torn_tail", "end_trailer"]);
    assert_eq!(end, End::TornTail { offset: 0 });
    // If a log was closed without a record, its trailer shows the dialect and the number.
    assert_eq!(
        detect(trailer),
        Detection::Log(LogFormat::new(Dialect::PEBBLE).with_log_number(1))
    );
    for options in [skip(), skip().with_dialect(Dialect::PEBBLE)] {
        assert_eq!(read(trailer, &options), (vec![], vec!["end_trailer"]));
    }
}

/// A range that starts later looks for the declaration in the first fragment, and nowhere else.
#[test]
fn only_the_first_fragment_can_declare_compression() {
    let full = |data: &[u8]| Wire::Plain.full(data);
    let numbers = [&[7, 0, 0, 0][..], &[5, 0, 0, 0], &[0, 0, 0, 0], &[7, 0, 0, 0, 0], &[7]];
    let mut damaged_block = full(&[b'x'; BLOCK - 7]);
    damaged_block[100] ^= 1;
    // The declaration comes after a record, metadata, a record of an older log, or a damaged block.
    let before = [
        full(b"first"),
        Wire::Plain.fragment(10, &[1, 0, 0, 0, 8, 0]),
        Wire::Plain.fragment(200, b"of a later version"),
        Wire::Recyclable(3).full(b"older"),
        damaged_block,
    ];
    for (number, before) in numbers
        .iter()
        .flat_map(|number| before.iter().map(move |before| (number, before)))
    {
        let mut file = [&before[..], &Wire::Plain.fragment(9, number)].concat();
        let start = file.len();
        for record in [b"second", b"third!"] {
            file.extend(full(record));
        }
        let second = (start as u64, b"second".to_vec());
        let third = (start as u64 + 13, b"third!".to_vec());
        let options = skip().with_dialect(Dialect::ROCKSDB);
        let (records, reasons) = read(&file, &options);
        assert!(
            records.ends_with(&[second.clone(), third.clone()]),
            "{number:?} {records:?}"
        );
        assert!(reasons.contains(&"bad_metadata"), "{number:?} {reasons:?}");
        for start in [second.0, third.0] {
            let range = options.clone().with_range(start..);
            let after: Vec<_> = records.iter().filter(|record| record.0 >= start).cloned().collect();
            assert_eq!(read(&file, &range), (after.clone(), vec![]), "{number:?}, from {start}");
            let mut stream = Reader::new(&file[..], range);
            assert_eq!(
                read_all(&mut stream).0.len(),
                after.len(),
                "{number:?}, stream from {start}"
            );
        }
        let parts = ops::split_ranges(&options, Some(file.len() as u64), NonZeroUsize::new(3).unwrap());
        let divided: Vec<_> = parts.iter().flat_map(|part| read(&file, part).0).collect();
        assert_eq!(divided, records, "{number:?}");

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.log");
        std::fs::write(&path, &file).unwrap();
        for start in [0, second.0] {
            let options = FollowOptions::default()
                .with_dialect(Dialect::ROCKSDB)
                .with_on_corruption(OnCorruption::Skip)
                .with_retry(0, Duration::ZERO)
                .with_start(start);
            let mut follower = Follower::open_with(&path, options).unwrap();
            let mut followed = Vec::new();
            loop {
                match follower.poll().unwrap() {
                    Poll::Record(record) => followed.push((record.offset, record.data.to_vec())),
                    Poll::Skipped(_) => {}
                    _ => break,
                }
            }
            assert!(
                followed.ends_with(&[second.clone(), third.clone()]),
                "{number:?}, {start}: {followed:?}"
            );
        }
        let copy = directory.path().join("salvaged.log");
        let options = SalvageOptions::default().with_dialect(Dialect::ROCKSDB);
        ops::salvage_file(&path, &copy, &options).unwrap();
        let salvaged = read(&std::fs::read(&copy).unwrap(), &skip().with_dialect(Dialect::ROCKSDB)).0;
        assert_eq!(
            salvaged.iter().map(|record| &record.1).collect::<Vec<_>>(),
            records.iter().map(|record| &record.1).collect::<Vec<_>>(),
            "{number:?}"
        );
    }
}

/// With an unknown compression, records cannot be distinguished from damage. The log is therefore
/// refused, even for a range that starts after the declaration.
#[test]
fn a_log_that_declares_an_unknown_compression_is_rejected() {
    let file = [Wire::Plain.fragment(9, &[4, 0, 0, 0]), Wire::Plain.full(b"a frame")].concat();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    std::fs::write(&path, &file).unwrap();
    let message = "at offset 0, the codec is 4, which this release does not know";
    for options in [skip(), skip().with_dialect(Dialect::ROCKSDB)] {
        for options in [options.clone(), options.clone().with_range(11..)] {
            let error = Reader::from_slice(&file, options.clone()).next_event().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.offset()), (message, Some(0)));
            let mut reader = Reader::new(&file[..], options.clone());
            assert_eq!(reader.next_event().unwrap_err().to_string(), message);
            assert!(ops::verify(SliceSource::new(&file), &options).is_err());
        }
    }
    let mut follower = Follower::open(&path).unwrap();
    assert!(follower.poll().unwrap_err().to_string().ends_with(message));
    assert!(ops::salvage_file(&path, directory.path().join("new.log"), &SalvageOptions::default()).is_err());
    // In another dialect, the declaration is a fragment of an unknown type.
    let leveldb = read(&file, &skip().with_dialect(Dialect::LEVELDB));
    assert_eq!(leveldb, (vec![(11, b"a frame".to_vec())], vec!["unknown_kind"]));
}

/// The compression is declared once, at the start of the log. Fragments after damage do not change
/// it.
#[test]
fn a_compression_setting_after_damage_does_not_affect_any_record() {
    let set_zstd = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    let mut file = Wire::Plain.full(b"damaged");
    file[8] ^= 1;
    file.extend(set_zstd);
    file.extend(Wire::Plain.full(b"plain"));
    file.resize(BLOCK, 0);
    file.extend(Wire::Plain.full(b"after"));
    let (records, _) = read(&file, &salvage().with_dialect(Dialect::ROCKSDB));
    assert_eq!(
        records.iter().map(|(_, data)| data.as_slice()).collect::<Vec<_>>(),
        [b"plain", b"after"]
    );
}

/// A generator that returns the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % max
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a piece that may occur in a log, or that no writer would write.
    fn piece(&mut self, wires: &[Wire]) -> Vec<u8> {
        let len = self.of(&[0, 1, 4, 30, 300, 3000]);
        let payload = match self.below(8) {
            0 => vec![0; len],
            1 => Wire::Plain.full(&vec![b'i'; len / 2]),
            _ => self.bytes(len),
        };
        let wire = if self.below(12) > 0 { wires[0] } else { self.of(wires) };
        match self.below(40) {
            0 => payload,
            1 => vec![0; self.of(&[1, 7, 11, 19])],
            2 => [&[0, 0, 0, 0, 0, 0, 5], &self.of(&[3_u32, 4, 5, 99]).to_le_bytes()[..]].concat(),
            3 => wire.fragment(self.of(&[9, 10, 11, 77, 130, 131, 200]), &payload),
            4 => Wire::Plain.fragment(9, &[7, 0, 0, 0]),
            5..9 => {
                let mut damaged = wire.part(1, &payload);
                for _ in 0..self.of(&[1, 1, 2, 9]) {
                    let at = self.below(damaged.len());
                    damaged[at] ^= 1 << self.below(8);
                }
                damaged
            }
            9..16 => wire.part(self.below(4) as u8 + 1, &payload),
            _ => wire.full(&payload),
        }
    }

    fn file(&mut self, wires: &[Wire], prefix: &[u8], grid: usize) -> Vec<u8> {
        let mut file = prefix.to_vec();
        for block in 1..self.below(3) + 2 {
            let end = block * BLOCK + grid;
            let fill = self.of(&[100, 2_000, 10_000, 40_000]);
            let start = file.len();
            while file.len() < (start + fill).min(end) {
                file.extend(self.piece(wires));
            }
            file.resize(end, 0);
        }
        if self.below(3) == 0 {
            let len = self.below(file.len());
            file.truncate(len);
        }
        file
    }
}

/// For every file in any dialect, `skip` returns the records that `salvage` returns without a mark.
/// A single reading with `salvage` therefore shows which records LevelDB's rule drops.
#[test]
fn skip_returns_the_same_records_as_salvage_except_the_salvaged_ones() {
    let (plain, ieee) = (vec![Wire::Plain], vec![Wire::Ieee]);
    let numbered = |own: Wire| {
        vec![
            own,
            Wire::Recyclable(3),
            Wire::Recyclable(4),
            Wire::Synced(3, 0),
            Wire::Synced(4, 0),
            Wire::Plain,
        ]
    };
    let mut salvaged_count = 0;
    for seed in 0..600 {
        let mut random = Random(seed);
        let dialect = random.of(Dialect::ALL);
        let (wires, prefix, grid) = match dialect.name() {
            "leveldb" => (plain.clone(), &b""[..], 0),
            "wandb" => (ieee.clone(), &b":W&B\xe1\xbe\x00"[..], 0),
            "wandb_old" => (ieee.clone(), &b":W&B\xe1\xbe\x00"[..], 7),
            "swanlab" => (ieee.clone(), &b":SWL\xd6\xe1\x02"[..], 0),
            _ => {
                let own = random.of(&[
                    Wire::Plain,
                    Wire::Recyclable(3),
                    Wire::Recyclable(4),
                    Wire::Synced(3, 0),
                ]);
                (numbered(own), &b""[..], 0)
            }
        };
        let file = random.file(&wires, prefix, grid);
        let format = LogFormat::new(dialect);
        let mut all = vec![skip(), skip().with_format(format)];
        if dialect.has_log_numbers() {
            all.push(skip().with_format(format.with_log_number(3)));
        }
        if dialect.name() == "rocksdb" {
            all.push(skip().with_format(format.with_compression(Compression::Zstd)));
        }
        all.push(skip().with_format(format).with_verify_checksums(false));
        let start = random.below(file.len().max(1)) as u64;
        let end = start + random.below(2 * BLOCK) as u64;
        all.push(skip().with_format(format).with_range(start..end));
        all.push(skip().with_format(format).with_record_len_max(100));
        for options in all {
            if Reader::from_slice(&file, options.clone()).format().is_err() {
                continue; // By chance, this is another format.
            }
            let skipped = read(&file, &options).0;
            let salvage = options.clone().with_on_corruption(OnCorruption::Salvage);
            let mut reader = Reader::from_slice(&file, salvage.clone());
            let (mut unmarked, mut marked_count) = (Vec::new(), 0);
            for event in read_all(&mut reader).0 {
                match event {
                    Found::Record { is_salvaged: true, .. } => marked_count += 1,
                    Found::Record { offset, data, .. } => unmarked.push((offset, data)),
                    Found::Skipped(_) => {}
                }
            }
            assert_eq!(unmarked, skipped, "seed {seed}: {options:?}");
            // The command uses this method.
            let mut reader = Reader::from_slice(&file, salvage.clone());
            reader.leave_out_salvaged();
            let (events, _) = read_all(&mut reader);
            let records = events.iter().filter(|event| matches!(event, Found::Record { .. }));
            assert_eq!(
                (records.count(), reader.left_out_count()),
                (skipped.len(), marked_count)
            );
            let report = ops::verify(SliceSource::new(&file), &salvage).expect("a log");
            assert_eq!(
                report.record_count - report.salvaged_count,
                skipped.len() as u64,
                "seed {seed}: {salvage:?} {report:?}"
            );
            salvaged_count += marked_count;
        }
    }
    assert!(salvaged_count > 1_000, "{salvaged_count}");
}

// The log number ------------------------------------------------------------------------------------------------------

/// A record of log 123, built from the specification of the header: checksum, length 3, type 5,
/// number 123.
const FOO_OF_123: &[u8] = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";

fn numbered_dialects() -> [Option<Dialect>; 4] {
    [
        None,
        Some(Dialect::ROCKSDB),
        Some(Dialect::PEBBLE),
        Some(Dialect::RECYCLABLE),
    ]
}

/// The log number is the named number, or else the number in the file's name, or else the number of
/// the file's first valid fragment. This is the same for all readers.
#[test]
fn all_readers_detect_the_same_log_number() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    for (name, named, number) in [
        ("copy.log", None, 123),
        ("000123.log", None, 123),
        ("000124.log", None, 124),
        ("000124-001.log", None, 124),
        ("000124.log", Some(123), 123),
        ("copy.log", Some(124), 124),
    ] {
        for dialect in numbered_dialects() {
            let mut options = skip();
            let mut follow = FollowOptions::default();
            options.dialect = dialect;
            options.log_number = named;
            (follow.dialect, follow.log_number) = (options.dialect, options.log_number);
            let path = directory.path().join(name);
            std::fs::write(&path, FOO_OF_123)?;
            let count = u64::from(number == 123);
            let other = (number != 123).then_some(123);

            let mut reader = Reader::open_with(&path, options.clone())?;
            assert_eq!(reader.format()?.log_number, Some(number), "{name} {options:?}");
            let (events, _) = read_all(&mut reader);
            assert_eq!(
                events
                    .iter()
                    .filter(|event| matches!(event, Found::Record { .. }))
                    .count() as u64,
                count
            );
            let threads = std::num::NonZeroUsize::MIN;
            let report = ops::verify_file(&path, &options, threads)?;
            assert_eq!(
                (
                    report.record_count,
                    report.format.log_number,
                    report.other_log_number,
                    report.is_ok()
                ),
                (count, Some(number), other, true)
            );
            let stat = ops::stat_file(&path, &options, NonZeroUsize::MIN)?;
            assert_eq!((stat.record_count, stat.other_log_number), (count, other));
            if dialect.is_some() || named.is_none() {
                let mut fragments = ops::fragments_file(&path, &options)?;
                let reason = fragments
                    .next()
                    .transpose()?
                    .expect("a fragment")
                    .reason
                    .map(|reason| reason.as_str());
                assert_eq!(reason, other.map(|_| "stale"));
            }
            if named.is_none() {
                let Detection::Log(detected) = detect_named(FOO_OF_123, Some(&path)) else {
                    panic!("it is a log")
                };
                assert_eq!(detected.log_number, Some(number));
            }
            let mut follower = Follower::open_with(&path, follow)?;
            let is_record = matches!(follower.poll()?, Poll::Record(record) if record.data == b"foo");
            assert_eq!(is_record, count == 1, "{name} {options:?}");

            let destination = directory.path().join("salvaged");
            let salvaged = ops::salvage_file(
                &path,
                &destination,
                &SalvageOptions::default().with_dialect(dialect).with_log_number(named),
            );
            match other {
                None => {
                    assert_eq!(salvaged?.record_count, 1);
                    std::fs::remove_file(&destination)?;
                }
                Some(other) => {
                    let error = salvaged.expect_err("nothing to salvage");
                    let message = error.to_string();
                    assert!(
                        matches!(error.kind, ErrorKind::OtherLog { log_number, other_log_number, .. }
                            if (log_number, other_log_number) == (number, other)),
                        "{message}"
                    );
                    assert!(message.contains(name) && message.contains("123") && message.contains("124"));
                    assert_eq!(std::fs::read_dir(directory.path())?.count(), 1, "nothing is left");
                }
            }
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// If a follower returned records of the old log, it would take their number for its own and wait
/// forever.
#[test]
fn a_follower_of_a_recycled_file_waits_for_the_new_log() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    for dialect in numbered_dialects() {
        let path = directory.path().join("000124.log");
        std::fs::write(&path, FOO_OF_123)?;
        let mut options = FollowOptions::default();
        options.dialect = dialect;
        let mut follower = Follower::open_with(&path, options)?;
        for _ in 0..2 {
            let Poll::NotYet(NotYet { reason, .. }) = follower.poll()? else {
                panic!("{dialect:?}: a record of another log")
            };
            assert_eq!(reason, WaitReason::Stale);
        }
        let new = Wire::Recyclable(124);
        std::fs::write(&path, [new.full(b"new"), new.full(b"new2")].concat())?;
        assert!(
            matches!(follower.poll()?, Poll::Record(record) if record.data == b"new"),
            "{dialect:?}"
        );
        assert!(matches!(follower.poll()?, Poll::Record(record) if record.data == b"new2"));
    }
    Ok(())
}

/// Returns a recycled file. At least `own_len` bytes of log 7 are written over an older log of ten
/// blocks.
fn recycled(own_len: usize) -> (Vec<u8>, usize) {
    let (mut old, mut own) = (Vec::new(), Vec::new());
    while old.len() < 10 * BLOCK {
        Wire::Recyclable(6).append(&mut old, 0, &[b'o'; 901]);
    }
    let mut count = 0;
    while own.len() < own_len {
        Wire::Recyclable(7).append(&mut own, 0, &[b'n'; 777]);
        count += 1;
    }
    let len = own.len();
    old.splice(..len, own);
    (old, count)
}

/// The last record of a log is torn over an older log. Its header contains the number of the newer
/// log, so the damage there was not left over from the older log.
#[test]
fn a_torn_record_that_overwrites_an_older_log_is_a_torn_tail() {
    let mut older = Vec::new();
    for _ in 0..300 {
        Wire::Recyclable(6).append(&mut older, 0, &[b'o'; 321]);
    }
    for own in [Wire::Recyclable(7), Wire::Synced(7, 0)] {
        let first = own.full(b"first");
        // Each byte differs in several bits from the byte of the older log at the same place.
        let last = own.full(&[b'1'; 500]);
        let (start, end) = (first.len(), first.len() + last.len());
        let written_over = |own: &[u8]| [own, &older[own.len()..]].concat();
        let torn = (own.header_len()..last.len()).map(|len| [&first, &last[..len]].concat());
        let format = LogFormat::new(Dialect::PEBBLE).with_log_number(7);
        for written in torn {
            let file = written_over(&written);
            let mut reader = Reader::from_slice(&file, skip().with_format(format));
            let (found, log_end) = read_all(&mut reader);
            let [Found::Record { .. }, Found::Skipped(tail), Found::Skipped(rest)] = found.as_slice() else {
                panic!("{} bytes: {found:?}", written.len());
            };
            assert_eq!(
                (tail.start, tail.end, tail.reason),
                (start as u64, end as u64, Reason::TornTail)
            );
            assert_eq!(
                (rest.start, rest.end, rest.reason),
                (end as u64, file.len() as u64, Reason::Stale)
            );
            assert_eq!(log_end, End::TornTail { offset: start as u64 });
        }
        // One flipped bit is damage, because the whole record had been written. In the form that
        // states how much was synced, only a later fragment could show that this record was.
        for at in start..end {
            let mut file = written_over(&[&first[..], &last].concat());
            file[at] ^= 1 << (at % 8);
            let options = skip().with_format(format);
            let reasons = read(&file, &options.clone().with_on_corruption(OnCorruption::Salvage)).1;
            let Wire::Recyclable(_) = own else {
                assert!(
                    reasons.iter().all(|&reason| ["torn_tail", "stale"].contains(&reason)),
                    "{at}: {reasons:?}"
                );
                continue;
            };
            assert!(
                ["checksum_mismatch", "bad_length"].contains(&reasons[0]),
                "{at}: {reasons:?}"
            );
            let found = read_all(&mut Reader::from_slice(
                &file,
                options.with_on_corruption(OnCorruption::Salvage),
            ))
            .0;
            let [Found::Record { .. }, Found::Skipped(damage), Found::Skipped(rest)] = found.as_slice() else {
                panic!("{at}: {found:?}");
            };
            assert_eq!((damage.start, damage.end), (start as u64, end as u64), "{at}");
            assert_eq!((rest.end, rest.reason), (file.len() as u64, Reason::Stale), "{at}");
        }
        // The written bytes end before the number, so they do not show to which log they belong.
        let file = written_over(&[&first[..], &last[..7]].concat());
        let found = read(&file, &skip().with_format(format));
        assert_eq!((found.0.len(), found.1), (1, vec!["stale"]));
    }
}

/// The record that declares the compression has no log number, and its header has the short form.
#[cfg(feature = "zstd")]
#[test]
fn a_torn_first_record_that_overwrites_an_older_log_is_a_torn_tail() {
    let metadata = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    let mut older = Vec::new();
    for _ in 0..300 {
        Wire::Recyclable(6).append(&mut older, 0, &[b'o'; 321]);
    }
    let first = Wire::Recyclable(7).full(&[b'1'; 500]);
    let (start, end) = (metadata.len(), metadata.len() + first.len());
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(7);
    for len in Wire::Recyclable(7).header_len()..first.len() {
        let written = [&metadata[..], &first[..len]].concat();
        let file = [&written[..], &older[written.len()..]].concat();
        let options = skip().with_format(format.with_compression(Compression::Zstd));
        let (found, _) = read_all(&mut Reader::from_slice(&file, options));
        let [Found::Skipped(_), Found::Skipped(tail), Found::Skipped(rest)] = found.as_slice() else {
            panic!("{len} bytes: {found:?}");
        };
        assert_eq!(
            (tail.start, tail.end, tail.reason),
            (start as u64, end as u64, Reason::TornTail)
        );
        let expected = (end as u64, file.len() as u64, Reason::Stale);
        assert_eq!((rest.start, rest.end, rest.reason), expected);
    }
}

/// A file that changes after its first `seen` bytes have been read.
struct Live {
    before: Vec<u8>,
    after: Vec<u8>,
    position: usize,
    seen: usize,
    is_written: bool,
}

impl Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_written |= self.position >= self.seen;
        let file = if self.is_written { &self.after } else { &self.before };
        let len = buffer.len().min(self.seen).min(file.len() - self.position);
        buffer[..len].copy_from_slice(&file[self.position..][..len]);
        self.position += len;
        Ok(len)
    }
}

impl io::Seek for Live {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let io::SeekFrom::Start(offset) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        self.position = offset as usize;
        Ok(offset)
    }
}

/// The end of the log is read before a write, and the bytes after it are read after the write. Only
/// a second reading shows the log as it is.
#[test]
fn verifying_a_log_during_writes_reports_no_damage() -> Result<(), cordwood_log::Error> {
    let (before, _) = recycled(20_000);
    let (after, count) = recycled(100_000);
    let mut damaged = after.clone();
    damaged[50_000] ^= 1;
    for (after, is_ok) in [(&after, true), (&damaged, false)] {
        let live = || Live {
            before: before.clone(),
            after: after.clone(),
            position: 0,
            seen: BLOCK,
            is_written: false,
        };
        let options = ReadOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_format(LogFormat::new(Dialect::RECYCLABLE).with_log_number(7));
        let source = || StreamSource::new(live(), 0);
        let reader = || Reader::with_source(source(), options.clone());
        assert!(!ops::verify(source(), &options)?.is_ok(), "what one reading sees");
        let parts = parallel::Parts::new(&options, Some(after.len() as u64), BLOCK as u64);
        let report = parallel::verify_parts(vec![reader()], &parts)?;
        assert_eq!(report.is_ok(), is_ok);
        assert!(!is_ok || report.record_count == count as u64);
    }
    Ok(())
}

/// If a log is read in ranges, as workers do, each record is returned once. The rest of the older
/// log is not damage.
#[test]
fn reading_ranges_of_a_recycled_log_reports_no_damage() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    for (name, own_len) in [
        ("copy.log", 70_000),
        ("copy.log", 3 * BLOCK),
        ("000007.log", 70_000),
        ("000007.log", 0),
    ] {
        let (file, count) = recycled(own_len);
        let path = directory.path().join(name);
        std::fs::write(&path, &file)?;
        for dialect in numbered_dialects() {
            for step in [BLOCK, 2 * BLOCK, 50_000, file.len()] {
                let mut found = 0;
                for start in (0..file.len()).step_by(step) {
                    let mut options = skip().with_range(start as u64..(start + step) as u64);
                    options.dialect = dialect;
                    let (events, end) = read_all(&mut Reader::open_with(&path, options.clone())?);
                    for event in &events {
                        match event {
                            Found::Record { data, .. } => {
                                assert_eq!(data, &[b'n'; 777]);
                                found += 1;
                            }
                            Found::Skipped(region) => {
                                // At the place where the new log ends and the old log continues, a
                                // record can at most be torn.
                                assert_ne!(
                                    region.reason.severity(),
                                    Severity::Corruption,
                                    "{name} {start} {region:?}"
                                );
                            }
                        }
                    }
                    assert!(end.offset() >= start as u64);
                }
                assert_eq!(found, count, "{name} {own_len} {dialect:?} {step}");
            }
        }
    }
    Ok(())
}

/// A write that never reached the disk is damage. The range in which the log continues reports it,
/// unless an earlier range does.
#[test]
fn a_lost_write_is_reported_by_at_least_one_range() {
    let (mut file, _) = recycled(9 * BLOCK);
    let (old, _) = recycled(0);
    file[2 * BLOCK..5 * BLOCK].copy_from_slice(&old[2 * BLOCK..5 * BLOCK]);
    let options = |start: usize, end: usize| {
        skip()
            .with_format(LogFormat::new(Dialect::RECYCLABLE).with_log_number(7))
            .with_range(start as u64..end as u64)
    };
    let has_lost = |start, end| read(&file, &options(start, end)).1.contains(&"lost_write");
    assert!(has_lost(0, file.len()));
    for step in [BLOCK, 2 * BLOCK, 3 * BLOCK] {
        let edges: Vec<usize> = (0..file.len()).step_by(step).collect();
        assert!(edges.iter().any(|&start| has_lost(start, start + step)), "{step}");
    }
}

/// The log number is the number of the whole file, not of the range. In this file, the second half
/// belongs to an older log.
#[test]
fn reading_a_range_uses_the_log_number_of_the_file() -> Result<(), cordwood_log::Error> {
    let (file, _) = recycled(70_000);
    for dialect in numbered_dialects() {
        let mut options = skip().with_range(5 * BLOCK as u64..);
        options.dialect = dialect;
        let slice = read_all(&mut Reader::from_slice(&file, options.clone())).0;
        let stream = read_all(&mut Reader::new(file.as_slice(), options)).0;
        for events in [slice, stream] {
            let [Found::Skipped(region)] = events.as_slice() else {
                panic!("{dialect:?}: {events:?}")
            };
            assert_eq!(region.reason.as_str(), "stale");
        }
    }
    Ok(())
}

/// An older log of another form follows damage in the block in which a range starts. The bytes
/// before the range show that it is another log.
#[test]
fn range_reads_skip_an_older_log_with_a_different_fragment_form() {
    let mut older = Vec::new();
    for _ in 0..300 {
        Wire::Plain.append(&mut older, 0, &[b'o'; 321]);
    }
    for own in [Wire::Recyclable(5), Wire::Synced(5, 0)] {
        let mut file = own.full(b"own");
        file.resize(100, 0xff);
        file.extend(&older[100..]);
        let format = LogFormat::new(Dialect::PEBBLE).with_log_number(5);
        for policy in [OnCorruption::Skip, OnCorruption::Salvage, OnCorruption::Stop] {
            let options = skip().with_format(format).with_on_corruption(policy);
            assert_eq!(
                read(&file, &options),
                (vec![(0, b"own".to_vec())], vec!["stale"]),
                "{policy:?}"
            );
            for start in [50, 100, 20_000, BLOCK as u64 - 1] {
                let range = options.clone().with_range(start..);
                assert_eq!(read(&file, &range).0, [], "{own:?}, {policy:?}, from {start}");
            }
        }
    }
}

/// Returns a file of log 7 with damage in its first block. The second block starts with a fragment
/// of an older log, which fragments of log 7 follow.
fn continued_after(older: Wire) -> Vec<u8> {
    let own = Wire::Recyclable(7);
    let mut file = own.full(b"own");
    file.resize(BLOCK, 0xee);
    file.extend(older.full(&[1; 100]));
    for _ in 0..10 {
        file.extend(own.full(&[2; 200]));
    }
    file.resize(2 * BLOCK, 0xee);
    file
}

/// A reader that returns at most `len` bytes at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.len.min(buffer.len());
        self.rest.read(&mut buffer[..len])
    }
}

/// A fragment that ends the log is skipped together with its block, even if only the start of the
/// block has arrived.
#[test]
fn read_sizes_do_not_affect_the_detected_end_of_a_recycled_log() {
    for older in [Wire::Plain, Wire::Recyclable(6)] {
        let file = continued_after(older);
        for policy in [OnCorruption::Skip, OnCorruption::Salvage, OnCorruption::Stop] {
            let options = skip()
                .with_format(LogFormat::new(Dialect::ROCKSDB).with_log_number(7))
                .with_on_corruption(policy);
            let expected = read_all(&mut Reader::from_slice(&file, options.clone()));
            for len in [1, 107, 300, 1000] {
                let rest = file.as_slice();
                let found = read_all(&mut Reader::new(Pieces { rest, len }, options.clone()));
                assert_eq!(found, expected, "{older:?}, {policy:?}, {len}");
            }
        }
    }
}

/// If a block starts with a fragment of an older log and contains a fragment of this log, it is
/// damaged. The log continued there, so a write to the start of the block was lost.
#[test]
fn a_stale_fragment_before_a_current_fragment_is_reported_as_damage() {
    let own = Wire::Recyclable(7);
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(7);
    for older in [Wire::Plain, Wire::Recyclable(6)] {
        let mut file = continued_after(older);
        let (records, reasons) = read(&file, &skip().with_format(format));
        assert_eq!(records, [(0, b"own".to_vec())], "{older:?}");
        assert_eq!(reasons, ["bad_length"], "{older:?}");
        // Under the policy `salvage`, the older fragment costs only itself, as in RocksDB.
        let (records, reasons) = read(&file, &salvage().with_format(format));
        assert_eq!(records.len(), 1 + 10, "{older:?}");
        assert!(records[1..].iter().all(|(_, record)| record == &[2; 200]), "{older:?}");
        assert_eq!(reasons, ["bad_length", "lost_write", "stale"], "{older:?}");
        // Reading continues in the next block.
        let start = file.len() as u64;
        file.extend(own.full(b"later"));
        let expected = vec![(0, b"own".to_vec()), (start, b"later".to_vec())];
        let options = skip().with_format(format);
        assert_eq!(read(&file, &options), (expected, vec!["bad_length"]), "{older:?}");
    }
    // The first block contains a stale fragment, and the second block starts with one too.
    let mut file = own.full(b"own");
    file.extend(Wire::Recyclable(6).full(b"older"));
    file.resize(BLOCK, 0xee);
    file.extend(&continued_after(Wire::Recyclable(6))[BLOCK..]);
    let expected = vec![(0, b"own".to_vec())];
    let options = skip().with_format(format);
    assert_eq!(read(&file, &options), (expected, vec!["lost_write"]));
}

/// The events of a file from the offset of the second record on.
fn parts(file: &[u8], options: ReadOptions) -> Vec<(u64, u64, &'static str)> {
    let mut reader = Reader::from_slice(file, options);
    let parts = read_all(&mut reader).0.into_iter().map(|event| match event {
        Found::Record { offset, end_offset, .. } => (offset, end_offset, "record"),
        Found::Skipped(region) => (region.start, region.end, region.reason.as_str()),
    });
    parts.skip(1).collect()
}

/// A block of log 5 whose bytes after the first record are damaged, and the bytes after that block.
/// Rules D7b to D7g of `docs/format/numbered.md`.
#[test]
fn the_blocks_after_damage_determine_whether_the_log_has_ended() {
    const END: u64 = BLOCK as u64;
    let (own, older) = (Wire::Recyclable(5), Wire::Recyclable(6));
    let (damage, zeros) = ([0xee; BLOCK], [0; BLOCK]);
    let unknown = Wire::Plain.fragment(0x40, b"unknown");
    let mut flipped = own.full(b"later");
    flipped[12] ^= 1;
    let one = |end, reason| vec![(14, END + end, reason)];
    let cases = [
        (vec![], one(0, "stale")),
        (damage[..11].to_vec(), one(11, "stale")),
        (damage[..12].to_vec(), one(12, "bad_length")),
        (zeros[..100].to_vec(), one(100, "stale")),
        (zeros.to_vec(), one(END, "stale")),
        ([&zeros[..], &damage[..11]].concat(), one(END + 11, "stale")),
        ([&zeros[..], &damage[..12]].concat(), one(END + 12, "bad_length")),
        (
            [&damage[..], &zeros[..100]].concat(),
            vec![(14, 2 * END, "bad_length"), (2 * END, 2 * END + 100, "zero_fill")],
        ),
        (older.full(b"older"), one(16, "stale")),
        (older.fragment(41, b"older"), one(16, "stale")),
        ([&damage[..20], &older.full(b"older")].concat(), one(36, "stale")),
        ([&damage[..20], &own.full(b"later")].concat(), one(36, "bad_length")),
        (
            [older.full(b"older"), own.full(b"later")].concat(),
            one(32, "bad_length"),
        ),
        (flipped, one(16, "bad_length")),
        (unknown.clone(), one(14, "bad_length")),
        (
            own.full(b"later"),
            vec![(14, END, "bad_length"), (END, END + 16, "record")],
        ),
        (
            own.fragment(41, b"later"),
            vec![(14, END, "bad_length"), (END, END + 16, "unknown_kind")],
        ),
        (
            [unknown, own.full(b"later")].concat(),
            vec![
                (14, END, "bad_length"),
                (END, END + 14, "unknown_kind"),
                (END + 14, END + 30, "record"),
            ],
        ),
    ];
    for dialect in [Dialect::RECYCLABLE, Dialect::PEBBLE] {
        let format = LogFormat::new(dialect).with_log_number(5);
        for (after, expected) in &cases {
            let mut file = own.full(b"own");
            file.resize(BLOCK, 0xee);
            file.extend(after);
            let start = &after[..after.len().min(20)];
            assert_eq!(
                parts(&file, skip().with_format(format)),
                *expected,
                "{dialect:?}, {start:x?}"
            );
        }
    }
}

/// The bytes at the end of a range decide whether the damage before it is the end of the log. Rule
/// D7h.
#[test]
fn the_bytes_after_a_range_determine_whether_the_log_has_ended() {
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    for (after, reason) in [
        (Wire::Recyclable(5).full(b"later"), "bad_length"),
        (Wire::Recyclable(6).full(b"older"), "stale"),
        (vec![0xee; 11], "stale"),
        (vec![0xee; 12], "bad_length"),
    ] {
        let mut file = Wire::Recyclable(5).full(b"own");
        file.resize(BLOCK, 0xee);
        file.extend(after);
        let options = skip().with_format(format).with_range(..BLOCK as u64);
        assert_eq!(parts(&file, options), [(14, BLOCK as u64, reason)]);
    }
}

/// A log whose fragments state how far it had been synced ends without a stale fragment. Rule D7g.
#[test]
fn damage_at_the_end_of_a_log_with_synced_offsets_is_reported_as_a_torn_tail() {
    let mut file = Wire::Synced(5, 0).full(b"own");
    file.resize(BLOCK, 0xee);
    file.resize(BLOCK + 100, 0);
    let format = LogFormat::new(Dialect::PEBBLE).with_log_number(5);
    let (end, zeros) = (BLOCK as u64, BLOCK as u64 + 100);
    let expected = [(22, end, "torn_tail"), (end, zeros, "zero_fill")];
    assert_eq!(parts(&file, skip().with_format(format)), expected);
}

/// Its checksum is valid for the length before a bit was flipped, so it is not torn.
#[test]
fn a_last_fragment_with_a_flipped_length_bit_counts_as_damaged_rather_than_torn() {
    let mut last = Wire::Recyclable(5).full(b"last");
    last[4] ^= 0x40;
    let file = [Wire::Recyclable(5).full(b"own"), last].concat();
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    assert_eq!(parts(&file, skip().with_format(format)), [(14, 29, "bad_length")]);
}

/// Its fragments without a number are of this log and have the form of all its fragments, also if
/// there are several in a row.
#[test]
fn a_numbered_log_can_contain_fragments_without_a_number() {
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    let own = Wire::Plain.full(b"own").repeat(2);
    let mut file = own.clone();
    file.resize(BLOCK, 0xee);
    file.extend(Wire::Recyclable(6).full(b"older"));
    let end = BLOCK as u64;
    assert_eq!(
        parts(&file, skip().with_format(format)),
        [(10, 20, "record"), (20, end, "bad_length"), (end, end + 16, "stale")]
    );
    // So it is not only an older log.
    let file = [own.clone(), Wire::Recyclable(6).full(b"older")].concat();
    let options = SalvageOptions::default()
        .with_dialect(Dialect::RECYCLABLE)
        .with_log_number(5);
    let mut new = Vec::new();
    ops::salvage_to(SliceSource::new(&file), &mut new, &options).expect("a log");
    assert_eq!(new, own);
}

/// Unless it has a fragment of this log. A range says so only if it contains the older log.
#[test]
fn reports_the_number_of_an_older_log_in_the_file() {
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    let older = Wire::Recyclable(6).full(b"older");
    let after_damage = [&[0xee; BLOCK][..], &older].concat();
    let after_own = [Wire::Recyclable(5).full(b"own"), older.clone()].concat();
    let all = skip().with_format(format);
    let first_block = all.clone().with_range(..BLOCK as u64);
    for (file, options, expected) in [
        (&older, &all, Some(6)),
        (&after_damage, &all, Some(6)),
        (&after_damage, &first_block, None),
        (&after_own, &all, None),
    ] {
        let mut reader = Reader::from_slice(file, options.clone());
        read_all(&mut reader);
        assert_eq!(reader.info().other_log_number, expected);
    }
}

#[test]
fn salvaging_preserves_the_fragment_form_of_each_record() {
    let plain = Wire::Plain.full(b"one");
    let file = [plain.clone(), Wire::Recyclable(5).full(b"two"), plain].concat();
    let options = SalvageOptions::default()
        .with_dialect(Dialect::RECYCLABLE)
        .with_log_number(5);
    let mut new = Vec::new();
    ops::salvage_to(SliceSource::new(&file), &mut new, &options).expect("a log");
    assert_eq!(new, file);
}

/// The policy `salvage` loses only the stale fragments before a fragment of this log. One without a
/// number is stale there, because the other fragments of this log have one.
#[test]
fn salvaging_continues_after_a_stale_fragment() {
    let (own, older) = (Wire::Recyclable(5), Wire::Recyclable(6));
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(5);
    let options = || salvage().with_format(format);
    let plain = Wire::Plain.full(b"plain");
    let file = [own.full(b"own"), older.full(b"older"), plain, own.full(b"later")].concat();
    assert_eq!(
        parts(&file, options()),
        [(14, 30, "lost_write"), (30, 42, "lost_write"), (42, 58, "record")]
    );
    let mut file = [own.full(b"own"), older.full(b"older"), own.full(b"later")].concat();
    assert_eq!(parts(&file, skip().with_format(format)), [(14, 46, "lost_write")]);
    assert_eq!(parts(&file, options()), [(14, 30, "lost_write"), (30, 46, "record")]);
    for start in [0, 30] {
        let (events, _) = read_all(&mut Reader::from_slice(&file, options().with_range(start..)));
        let last = events.last().expect("a record");
        assert!(
            matches!(
                last,
                Found::Record {
                    offset: 30,
                    is_salvaged: true,
                    ..
                }
            ),
            "from {start}: {last:?}"
        );
    }
    // In the block after damage.
    file.splice(14..14, vec![0xee; BLOCK - 14]);
    let end = BLOCK as u64;
    assert_eq!(
        parts(&file, options()),
        [
            (14, end, "bad_length"),
            (end, end + 16, "lost_write"),
            (end + 16, end + 32, "record")
        ]
    );
}

/// Without verification, a fragment with a wrong checksum shows neither the number of the log nor
/// the form of its fragments. Fragments after damage must not be taken for fragments of an older
/// log, not even by a range that starts with them.
#[test]
fn a_bad_checksum_does_not_make_later_fragments_stale_if_verification_is_off() {
    for wire in [Wire::Recyclable(5), Wire::Synced(5, 0)] {
        let mut file = wire.full(b"first");
        file[0] ^= 1;
        file.resize(BLOCK, 0xee);
        file.extend(Wire::Plain.full(b"later"));
        let options = skip().with_format(Dialect::PEBBLE).with_verify_checksums(false);
        let expected = vec![(0, b"first".to_vec()), (BLOCK as u64, b"later".to_vec())];
        assert_eq!(
            read(&file, &options),
            (expected.clone(), vec!["bad_length"]),
            "{wire:?}"
        );
        assert_eq!(
            read(&file, &options.clone().with_range(BLOCK as u64..)).0,
            expected[1..]
        );

        // A bit is flipped in the number of the first fragment. Only this fragment shows the
        // number.
        let mut file = wire.full(b"first");
        file[7] ^= 8;
        let second = file.len() as u64;
        file.extend(wire.full(b"later"));
        let expected = vec![(0, b"first".to_vec()), (second, b"later".to_vec())];
        assert_eq!(read(&file, &options), (expected, vec![]), "{wire:?}");
    }
    // After damage in the previous block, a flipped bit turns a type into a type of another form.
    let own = Wire::Recyclable(5);
    let mut file = own.full(b"first");
    file.resize(BLOCK, 0xee);
    file.extend(own.full(b"later"));
    file[BLOCK + 6] ^= 4;
    let format = LogFormat::new(Dialect::PEBBLE).with_log_number(5);
    let options = skip().with_format(format).with_verify_checksums(false);
    assert_eq!(read(&file, &options).1, ["bad_length", "torn_tail"]);
    assert_eq!(read(&file, &options.with_range(BLOCK as u64 - 1..)).1, ["torn_tail"]);
}

/// Without verification, a flipped bit in a header must not cost records of later blocks. A
/// fragment with a wrong checksum does not show the number of the log or the form of its fragments.
/// It also does not show that a fragment belongs to an older log.
#[test]
fn a_reader_that_does_not_verify_checksums_reads_the_blocks_after_a_flipped_bit() {
    for (dialect, wire) in [
        (Dialect::RECYCLABLE, Wire::Recyclable(5)),
        (Dialect::ROCKSDB, Wire::Recyclable(5)),
        (Dialect::PEBBLE, Wire::Recyclable(5)),
        (Dialect::PEBBLE, Wire::Synced(5, 0)),
    ] {
        let mut file = Vec::new();
        for _ in 0..3 {
            for len in [8, 9, 10] {
                file.extend(wire.full(&vec![b'x'; len]));
            }
            let rest = BLOCK - file.len() % BLOCK - wire.header_len();
            file.extend(wire.full(&vec![b'x'; rest]));
        }
        let named = skip().with_format(dialect).with_verify_checksums(false);
        let (records, reasons) = read(&file, &named);
        assert_eq!((records.len(), reasons.len()), (12, 0));
        let is_later = |block: usize| {
            let later = records
                .iter()
                .filter(move |record| record.0 >= ((block + 1) * BLOCK) as u64);
            later.cloned().collect::<Vec<_>>()
        };
        for (block, record) in [(0, 0), (0, 1), (1, 4), (1, 5)] {
            let start = records[record].0 as usize;
            for bit in 32..8 * wire.header_len() {
                let mut damaged = file.clone();
                damaged[start + bit / 8] ^= 1 << (bit % 8);
                for policy in [OnCorruption::Fail, OnCorruption::Skip, OnCorruption::Salvage] {
                    let options = named.clone().with_on_corruption(policy);
                    let (mut found, reasons) = read(&damaged, &options);
                    found.retain(|record| record.0 >= ((block + 1) * BLOCK) as u64);
                    let place = format!("{dialect:?}, {wire:?}, {policy:?}, record {record}, bit {bit}: {reasons:?}");
                    assert!(found == is_later(block), "{place}");
                    assert!(
                        !reasons.contains(&"stale") && !reasons.contains(&"lost_write"),
                        "{place}"
                    );
                }
            }
        }
    }
}

/// After damage, a valid fragment of an unknown type costs no more than elsewhere. The later
/// fragments of this log in the block are returned under each policy, and are not marked as
/// salvaged.
#[test]
fn reads_a_block_that_starts_with_an_unknown_type_after_damage() {
    let own = Wire::Recyclable(5);
    for before in [own.full(b"first"), Vec::new()] {
        let mut file = before.clone();
        file.resize(BLOCK, 0xee);
        file.extend(Wire::Plain.fragment(0x40, b"unknown"));
        let start = file.len() as u64;
        file.extend(own.full(b"later"));
        let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(5);
        for policy in [OnCorruption::Fail, OnCorruption::Skip, OnCorruption::Salvage] {
            let options = skip().with_format(format).with_on_corruption(policy);
            let (events, _) = read_all(&mut Reader::from_slice(&file, options.clone()));
            let last = events.last().expect("a record");
            assert!(
                matches!(last, Found::Record { offset, is_salvaged: false, .. } if *offset == start),
                "{policy:?}: {last:?}"
            );
            assert_eq!(read(&file, &options).1, ["bad_length", "unknown_kind"], "{policy:?}");
        }
    }
}

// Compressed logs -----------------------------------------------------------------------------------------------------

/// Without verification, an apparent declaration of the compression has no effect unless its
/// checksum is valid. A range that starts after it does not see it at all.
#[test]
fn a_damaged_compression_setting_is_ignored_even_without_checksum_verification() {
    let mut file = Wire::Plain.fragment(9, b"\x63\x00\x00\x00");
    file[0] ^= 1;
    let start = file.len() as u64;
    file.extend(Wire::Plain.full(b"record"));
    let options = skip()
        .with_format(LogFormat::new(Dialect::ROCKSDB))
        .with_verify_checksums(false);
    let expected = vec![(start, b"record".to_vec())];
    assert_eq!(read(&file, &options), (expected.clone(), vec!["bad_metadata"]));
    assert_eq!(read(&file, &options.with_range(start..)).0, expected);
}

#[cfg(feature = "zstd")]
mod compressed {
    use super::*;
    use cordwood_log::codec::Encoder;

    fn log(number: Option<u32>, records: &[Vec<u8>]) -> Vec<u8> {
        let mut format = LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd);
        format.log_number = number;
        let mut encoder = Encoder::with_format(0, format).unwrap();
        let mut file = Vec::new();
        for record in records {
            encoder.encode(record, &mut file);
        }
        file
    }

    fn records() -> Vec<Vec<u8>> {
        let mut random = Random(1);
        (0..250).map(|_| random.bytes(500)).collect()
    }

    /// Asserts that only written records are returned under each policy. Returns the maximum number
    /// of records found.
    #[track_caller]
    fn check(file: &[u8], records: &[Vec<u8>], what: &str) -> usize {
        let written: std::collections::HashSet<_> = records.iter().collect();
        let mut count = 0;
        for policy in [
            OnCorruption::Fail,
            OnCorruption::Skip,
            OnCorruption::Stop,
            OnCorruption::Salvage,
        ] {
            let options = ReadOptions::default().with_on_corruption(policy);
            for options in [options.clone(), options.clone().with_dialect(Dialect::ROCKSDB)] {
                for options in [options.clone(), options.with_range(70_000..)] {
                    let found = read(file, &options).0;
                    for (offset, data) in &found {
                        assert!(written.contains(data), "{what}: {policy:?} returns a frame at {offset}");
                    }
                    count = count.max(found.len());
                }
            }
        }
        count
    }

    /// The first fragment declares that records are compressed. Without it, records are returned as
    /// they are stored.
    #[test]
    fn never_returns_raw_frames_from_a_compressed_log_with_a_damaged_start() {
        let records = records();
        for number in [None, Some(7)] {
            let file = log(number, &records);
            assert_eq!(check(&file, &records, "whole"), 250);
            let step = if number.is_some() { 29 } else { 3 };
            for bit in (0..88).step_by(step) {
                let mut damaged = file.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let count = check(&damaged, &records, &format!("{number:?} bit {bit}"));
                assert!(count > 240, "{bit} {count}");
            }
            // Destroys the first block, the first fragment, or enough of the fragment to make it
            // unreadable.
            for len in [1, 11, 300, BLOCK] {
                for fill in [0, 0xff] {
                    let mut damaged = file.clone();
                    damaged[..len].fill(fill);
                    let count = check(&damaged, &records, &format!("{number:?} {len} bytes of {fill}"));
                    assert!(count > 150, "{number:?} {len} {fill} {count}");
                }
            }
        }
    }

    /// If a user stores zstd frames in a log, they are returned unchanged, even if the first one is
    /// damaged.
    #[test]
    fn zstd_frames_stored_as_records_are_returned_unchanged() {
        let frames: Vec<Vec<u8>> = records()
            .iter()
            .map(|record| [b"\x28\xb5\x2f\xfd".as_slice(), record].concat())
            .collect();
        let file: Vec<u8> = frames[..50].iter().flat_map(|frame| Wire::Plain.full(frame)).collect();
        for at in [0, 8, 300] {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            let found = read(&damaged, &salvage()).0;
            assert_eq!(found.len(), 49);
            assert!(found.iter().all(|(_, data)| frames.contains(data)));
        }
    }
}

/// If an error is printed with its causes, as `anyhow` does, no message appears twice.
#[test]
fn error_messages_do_not_repeat_their_causes() {
    let missing = Reader::open("no such file").unwrap_err();
    assert!(std::error::Error::source(&missing).is_none());
    let as_io = std::io::Error::from(missing);
    assert_eq!(as_io.kind(), std::io::ErrorKind::NotFound);
    assert!(as_io.to_string().starts_with("no such file: "), "{as_io}");
}

/// Damage is one item of the iterator, and the next event follows. Any other error would recur, so
/// it is the last item.
#[test]
fn iteration_continues_past_damage_but_stops_at_other_errors() {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(0);
    let mut starts = Vec::new();
    for byte in 0..3 {
        starts.push(encoder.encode(&[byte; 20_000], &mut file));
    }
    file[20_000] ^= 1;
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    let mut items = reader.records();
    // The first item is the damaged block, and the second is the rest of the record that started in
    // it.
    for _ in 0..2 {
        assert!(matches!(
            items.next(),
            Some(Err(Error {
                kind: ErrorKind::Corruption { .. },
                ..
            }))
        ));
    }
    let found: Vec<_> = items.by_ref().map(Result::unwrap).collect();
    let [third] = &found[..] else { panic!("{found:?}") };
    assert_eq!((third.offset, third.end_offset), (starts[2], file.len() as u64));
    assert!(third.data == [2; 20_000] && !third.is_salvaged);
    assert!(items.next().is_none());

    let mut reader = Reader::from_slice(
        b"%PDF-1.7 and more, which is not a log of any dialect",
        ReadOptions::default(),
    );
    let mut items = reader.records();
    assert!(matches!(
        items.next(),
        Some(Err(Error {
            kind: ErrorKind::Foreign { .. },
            ..
        }))
    ));
    assert!(items.next().is_none());
    assert!(reader.next_record().is_err());
}

/// The same call works for a file in memory, a stream and a file on disk.
#[test]
fn every_source_returns_the_same_events_after_a_seek() -> Result<(), Error> {
    fn third<S: SeekSource>(mut reader: Reader<S>) -> Result<Vec<u8>, Error> {
        while reader.next_record()?.is_some() {}
        reader.seek(20)?;
        let record = reader.next_record()?.expect("three records");
        assert_eq!(record.offset, 20);
        Ok(record.data.to_vec())
    }
    let mut file = Vec::new();
    let mut encoder = Encoder::new(0);
    for record in ["one", "two", "abc"] {
        encoder.encode(record.as_bytes(), &mut file);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("example.log");
    std::fs::write(&path, &file).unwrap();
    let options = ReadOptions::default();
    assert_eq!(third(Reader::from_slice(&file, options.clone()))?, b"abc");
    assert_eq!(
        third(Reader::new(std::io::Cursor::new(&file), options.clone()))?,
        b"abc"
    );
    assert_eq!(third(Reader::open_with(&path, options)?)?, b"abc");
    Ok(())
}
