//! Golden vectors of the dialects. The bytes are written as the engines write them. They were
//! computed elsewhere or come from the engines' own tests.

use crate::wire::Wire;
use cordwood_log::codec::Encoder;
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::ops::{Detection, detect};
use cordwood_log::{Compression, Dialect, End, Event, LogFormat, OnCorruption, ReadOptions, Reader};

/// A start offset, an end offset and a reason.
type Skipped = (u64, u64, &'static str);

/// Returns the records of a file and the skipped regions.
fn read(dialect: LogFormat, file: &[u8]) -> (Vec<Vec<u8>>, Vec<Skipped>) {
    let mut reader = Reader::from_slice(file, ReadOptions::default().with_format(dialect));
    let (mut records, mut skipped) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().expect("no damage") {
        match event {
            Event::Record(record) => records.push(record.data.to_vec()),
            Event::Skipped(region) => skipped.push((region.start, region.end, region.reason.as_str())),
        }
    }
    let offset = file.len() as u64;
    assert_eq!(reader.end(), Some(End::Clean { offset }));
    (records, skipped)
}

fn encode(dialect: LogFormat, records: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, dialect).unwrap();
    for record in records {
        encoder.encode(record, &mut file);
    }
    assert_eq!(encoder.offset(), file.len() as u64);
    file
}

/// Checks writing, reading and detection. Detection may only add the log's number.
#[track_caller]
fn check_both_ways(dialect: LogFormat, detected: impl Into<LogFormat>, record: &[u8], file: &[u8]) {
    assert_eq!(encode(dialect, &[record]), file);
    assert_eq!(read(dialect, file).0, [record]);
    assert_eq!(detect(file), Detection::Log(detected.into()));
}

const RECYCLABLE_FOO: &[u8] = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";

#[test]
fn a_recyclable_full_fragment_matches_the_golden_bytes() {
    let detected = LogFormat::new(Dialect::RECYCLABLE).with_log_number(123);
    for dialect in [Dialect::ROCKSDB, Dialect::PEBBLE, Dialect::RECYCLABLE] {
        check_both_ways(
            LogFormat::new(dialect).with_log_number(123),
            detected,
            b"foo",
            RECYCLABLE_FOO,
        );
        // If no number is named, the number of the first fragment is used.
        assert_eq!(read(LogFormat::new(dialect), RECYCLABLE_FOO).0, [b"foo"]);
    }
    assert_eq!(Wire::Recyclable(123).full(b"foo"), RECYCLABLE_FOO);
}

#[test]
fn unnumbered_rocksdb_and_pebble_logs_have_the_same_bytes_as_leveldb_logs() {
    for dialect in [Dialect::ROCKSDB, Dialect::PEBBLE, Dialect::RECYCLABLE] {
        let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
        check_both_ways(LogFormat::new(dialect), Dialect::LEVELDB, b"foo", file);
    }
}

const SET_ZSTD: &[u8] = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";

#[test]
fn a_rocksdb_compression_record_sets_the_compression_of_the_log() {
    let zstd = LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd);
    assert_eq!(detect(SET_ZSTD), Detection::Log(zstd));
    for dialect in [LogFormat::new(Dialect::ROCKSDB), zstd] {
        assert_eq!(read(dialect, SET_ZSTD), (vec![], vec![(0, 11, "metadata")]));
    }
    for verifies in [true, false] {
        let options = ReadOptions::default().with_verify_checksums(verifies);
        let mut reader = Reader::from_slice(SET_ZSTD, options.with_dialect(Dialect::ROCKSDB));
        assert_eq!(reader.info().compression, None);
        assert!(reader.next_record().expect("no damage").is_none());
        assert_eq!(reader.info().compression, Some(Compression::Zstd));
    }
}

#[test]
fn reads_the_golden_bytes_of_a_rocksdb_timestamp_size_record() {
    let file = b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00";
    assert_eq!(detect(file), Detection::Log(Dialect::ROCKSDB.into()));
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let Ok(Some(Event::Skipped(region))) = reader.next_event() else {
        panic!("a record of the engine's own")
    };
    assert_eq!((region.start, region.end, region.reason.as_str()), (0, 13, "metadata"));
    assert_eq!(
        reader.info().timestamp_lens.clone().into_iter().collect::<Vec<_>>(),
        [(1, 8)]
    );
}

#[test]
fn reads_the_golden_bytes_of_a_rocksdb_predecessor_record() {
    let mut file = b"\xd1\x78\xb4\x95\x18\x00\x82".to_vec();
    for number in [4_u64, 130, 5] {
        file.extend(number.to_le_bytes());
    }
    assert_eq!(detect(&file), Detection::Log(Dialect::ROCKSDB.into()));
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    assert!(reader.next_record().expect("no damage").is_none());
    let found = reader.info().predecessor.expect("a predecessor");
    assert_eq!((found.log_number, found.len, found.last_sequence), (4, 130, 5));
}

#[test]
fn reads_the_golden_bytes_of_a_pebble_synced_full_fragment() {
    let file = b"\x90\x5d\x84\xdc\x01\x00\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    assert_eq!(
        detect(file),
        Detection::Log(LogFormat::new(Dialect::PEBBLE).with_log_number(1))
    );
    assert_eq!(read(LogFormat::new(Dialect::PEBBLE), file), (vec![vec![0]], vec![]));
    assert_eq!(Wire::Synced(1, 0).full(b"\0"), file);
}

#[test]
fn a_pebble_end_trailer_matches_the_golden_bytes() {
    let trailer = b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00";
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(1);
    let mut file = Vec::new();
    Encoder::with_format(0, dialect).unwrap().finish(&mut file);
    assert_eq!(file, trailer);
    assert_eq!(read(dialect, trailer), (vec![], vec![(0, 11, "end_trailer")]));
    assert_eq!(
        detect(trailer),
        Detection::Log(LogFormat::new(Dialect::PEBBLE).with_log_number(1))
    );

    // The log ends at the trailer, whatever bytes follow.
    let file = [trailer.as_slice(), &Wire::Recyclable(1).full(b"old"), b"junk"].concat();
    let end = file.len() as u64;
    let skipped = vec![(0, 11, "end_trailer"), (11, end, "stale")];
    assert_eq!(read(dialect, &file), (vec![], skipped));
}

/// The source is Pebble's TestRecycleLogNumberOverflow.
#[test]
fn a_pebble_log_with_the_highest_number_has_an_end_trailer() {
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(u32::MAX);
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, dialect).unwrap();
    encoder.encode(b"a", &mut file);
    encoder.finish(&mut file);
    assert_eq!(file[12..], [0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
    assert_eq!(
        read(dialect, &file),
        (vec![b"a".to_vec()], vec![(12, 23, "end_trailer")])
    );
}

#[test]
fn a_wandb_header_and_full_fragment_match_the_golden_bytes() {
    let file = b":W&B\xe1\xbe\x00\x4a\x04\xca\xea\x03\x00\x01foo";
    check_both_ways(LogFormat::new(Dialect::WANDB), Dialect::WANDB, b"foo", file);
    assert_eq!(read(LogFormat::new(Dialect::WANDB), file).1, [(0, 7, "file_header")]);
    check_both_ways(
        LogFormat::new(Dialect::WANDB),
        Dialect::WANDB,
        b"",
        b":W&B\xe1\xbe\x00\x1b\xdf\x05\xa5\x00\x00\x01",
    );
    // Without the preceding file header, this is a fragment as in the middle of a file.
    assert_eq!(detect(&file[7..]), Detection::Log(Dialect::WANDB.into()));
}

#[test]
fn a_swanlab_header_and_full_fragment_match_the_golden_bytes() {
    let file = b":SWL\xd6\xe1\x02\x4a\x04\xca\xea\x03\x00\x01foo";
    check_both_ways(LogFormat::new(Dialect::SWANLAB), Dialect::SWANLAB, b"foo", file);
}

/// If a record ends seven bytes before the end of a block, the next record starts with a FIRST
/// fragment without data. In a run file from before wandb-core 0.17.6, this fragment is at the
/// place where a block of a newer file starts. A block of a newer file never starts with such a
/// fragment.
#[test]
fn an_empty_first_fragment_identifies_an_old_run_file() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    file.extend(Wire::Ieee.full(&[b'x'; 32_754]));
    file.extend(Wire::Ieee.part(2, b""));
    assert_eq!(file.len(), 32_768 + 7);
    file.extend(Wire::Ieee.part(4, b"data"));
    assert_eq!(detect(&file), Detection::Log(Dialect::WANDB_OLD.into()));
}

/// The file header takes up seven bytes of the first block. Before wandb-core 0.17.6, it preceded
/// that block.
#[test]
fn run_files_match_the_golden_bytes_for_both_block_grids() {
    let long = vec![b'x'; 40_000];
    for (dialect, grid, first) in [(Dialect::WANDB, 0, 32_754_u16), (Dialect::WANDB_OLD, 7, 32_761)] {
        let mut file = b":W&B\xe1\xbe\x00".to_vec();
        assert_eq!(Wire::Ieee.append(&mut file, grid, &long), 7);
        assert_eq!(file[11..13], first.to_le_bytes());
        check_both_ways(LogFormat::new(dialect), dialect, &long, &file);
        for other in [Dialect::WANDB, Dialect::WANDB_OLD] {
            let mut reader = Reader::from_slice(&file, ReadOptions::default().with_dialect(other));
            assert_eq!(reader.next_record().is_ok(), other == dialect);
        }
    }
}

/// In each dialect, the encoder writes the same bytes as a second writer that shares no code with
/// it.
#[test]
fn the_encoder_and_the_test_writer_write_the_same_bytes() {
    let cases = [
        (LogFormat::new(Dialect::LEVELDB), Wire::Plain, 0),
        (
            LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
            Wire::Recyclable(7),
            0,
        ),
        (
            LogFormat::new(Dialect::PEBBLE).with_log_number(7),
            Wire::Recyclable(7),
            0,
        ),
        (LogFormat::new(Dialect::WANDB), Wire::Ieee, 0),
        (LogFormat::new(Dialect::WANDB_OLD), Wire::Ieee, 7),
        (LogFormat::new(Dialect::SWANLAB), Wire::Ieee, 0),
    ];
    for (dialect, wire, grid) in cases {
        for room in 0..30 {
            // The second record starts when the block has `room` bytes left.
            let prefix = match dialect.dialect.name() {
                "swanlab" => b":SWL\xd6\xe1\x02".to_vec(),
                _ if wire == Wire::Ieee => b":W&B\xe1\xbe\x00".to_vec(),
                _ => Vec::new(),
            };
            let first = vec![1; 32_768 + grid - prefix.len() - wire.header_len() - room];
            let records = [&first[..], b"", b"bar", &[2; 70_000], b"end"];
            let mut file = prefix;
            for record in records {
                wire.append(&mut file, grid, record);
            }
            assert!(encode(dialect, &records) == file, "{dialect:?}, {room} bytes left");
            assert!(read(dialect, &file).0 == records, "{dialect:?}, {room} bytes left");
        }
    }
}

#[cfg(feature = "zstd")]
mod zstd {
    use super::*;

    /// A hand-built frame with one uncompressed block. It consists of a magic number, a header, a
    /// length, a block header and data (RFC 8878, 3.1.1).
    #[test]
    fn a_handmade_zstd_frame_decodes_to_its_record() {
        let frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00foo";
        let file = [SET_ZSTD, &Wire::Plain.full(frame)].concat();
        assert_eq!(read(LogFormat::new(Dialect::ROCKSDB), &file).0, [b"foo"]);
    }

    /// Each record is one frame, with its length and a checksum.
    #[test]
    fn each_compressed_record_is_one_zstd_frame() {
        let record = b"foo".repeat(100);
        for dialect in [
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            LogFormat::new(Dialect::ROCKSDB)
                .with_log_number(9)
                .with_compression(Compression::Zstd),
        ] {
            let file = encode(dialect, &[&record, b"", &record]);
            assert_eq!(file[..11], *SET_ZSTD);
            let header_len = if dialect.log_number.is_some() { 11 } else { 7 };
            let frame = &file[11 + header_len..];
            // These are the magic number, a descriptor for a single segment, a two-byte length and
            // a checksum, and the length minus 256 (RFC 8878, 3.1.1.1).
            assert_eq!(frame[..7], [0x28, 0xb5, 0x2f, 0xfd, 0x64, 44, 0]);
            let (records, skipped) = read(LogFormat::new(Dialect::ROCKSDB), &file);
            assert_eq!(records, [record.clone(), vec![], record.clone()]);
            assert_eq!(skipped, [(0, 11, "metadata")]);
            assert_eq!(detect(&file), Detection::Log(dialect));
        }
    }

    /// If the compression were not found, frames would be returned as records. This must hold
    /// whether or not the dialect is named.
    #[test]
    fn compression_is_detected_despite_a_damaged_setting() {
        let frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00foo";
        for count in [1, 2, 3, 50, 4000] {
            for wire in [Wire::Plain, Wire::Recyclable(9)] {
                let mut whole = SET_ZSTD.to_vec();
                for _ in 0..count {
                    wire.append(&mut whole, 0, frame);
                }
                let flips = (0..SET_ZSTD.len() * 8).map(|bit| {
                    let mut file = whole.clone();
                    file[bit / 8] ^= 1 << (bit % 8);
                    file
                });
                // If the first bytes are missing, the first block does not show any fragment.
                let is_long = whole.len() > 3 * BLOCK_LEN;
                let zeros = is_long.then(|| [&[0; 60][..], &whole[60..]].concat());
                for file in flips.chain(zeros) {
                    for options in [
                        ReadOptions::default(),
                        ReadOptions::default().with_dialect(Dialect::ROCKSDB),
                    ] {
                        let options = options.with_on_corruption(OnCorruption::Salvage);
                        let records: Vec<_> = Reader::from_slice(&file, options.clone())
                            .records()
                            .collect::<Result<_, _>>()
                            .unwrap();
                        assert!(records.len() + 4 >= count, "{count} {options:?}: {}", records.len());
                        assert!(
                            records.iter().all(|record| record.data == b"foo"),
                            "{count} {options:?}"
                        );
                    }
                }
            }
        }
    }
}
