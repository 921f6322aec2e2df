//! Tests that a file of another format is reported under its name, and that an undetectable file is
//! reported as unclear. A named dialect always takes precedence.

use std::io::Read;

use crate::common::assert_error;
use crate::wire::Wire;
use cordwood_log::ops::{DETECT_LEN, Detection, Foreign, detect};
use cordwood_log::{Compression, Dialect, Error, ErrorKind, LogFormat, ReadOptions, Reader};

/// Returns the starts of files. They come from the specifications of their formats, or their
/// programs wrote them.
fn foreign() -> Vec<(Foreign, Vec<u8>)> {
    let riegeli = [
        b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0".as_slice(),
        b"\x91\xba\xc2\x3c\x92\x87\xe1\xa9\0\0\0\0\0\0\0\0\xe1\x9f\x13\xc0\xe9\xb1\xc3\x72\x73\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ]
    .concat();
    // These are the length 3, its masked checksum, "foo", and the masked checksum of "foo". A
    // script computed the checksums.
    let tf_record = b"\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0efoo\x61\x8a\xbe\xfe".to_vec();
    // These are FULL, the length 3, and the unmasked checksum of "foo", in big-endian order.
    let prometheus = b"\x01\x00\x03\xcf\xc4\xae\x1dfoo".to_vec();
    vec![
        (Foreign::Gzip, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
        (Foreign::Zstd, b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00foo".to_vec()),
        (Foreign::Lz4, b"\x04\x22\x4d\x18\x64\x40\xa7".to_vec()),
        (Foreign::Riegeli, riegeli),
        (Foreign::TfRecord, tf_record),
        (Foreign::Sqlite, b"SQLite format 3\0\x10\0\x01\x01".to_vec()),
        (Foreign::SqliteWal, b"\x37\x7f\x06\x82\0\x2d\xe2\x18".to_vec()),
        (Foreign::SqliteWal, b"\x37\x7f\x06\x83\0\x2d\xe2\x18".to_vec()),
        (Foreign::Prometheus, prometheus),
        (Foreign::Bzip2, b"BZh91AY&SY\x12\x34".to_vec()),
        (Foreign::Xz, b"\xfd7zXZ\0\0\x04\xe6\xd6".to_vec()),
        (Foreign::Zip, b"PK\x03\x04\x14\0\0\0\x08\0".to_vec()),
        (Foreign::Parquet, b"PAR1\x15\x04\x15\x10\x15".to_vec()),
        (Foreign::Arrow, b"ARROW1\0\0\xff\xff\xff\xff".to_vec()),
        (Foreign::Avro, b"Obj\x01\x04\x14avro.codec".to_vec()),
        (Foreign::Elf, [b"\x7fELF\x02\x01\x01\0".as_slice(), &[7; 300]].concat()),
        (Foreign::Png, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        (Foreign::NumPy, b"\x93NUMPY\x01\0v\0{'descr': '<f8'".to_vec()),
        (
            Foreign::GitLfs,
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n".to_vec(),
        ),
        (Foreign::GitAnnex, b"/annex/objects/SHA256E-s123--00.wandb\n".to_vec()),
        (
            Foreign::NetEase,
            b"\x80\x1d\x30\x01\x5e\x11\x2c\x0a\x93\x40\x77\x2f".to_vec(),
        ),
        (
            Foreign::InfoLog,
            b"2026/01/31-23:59:59.999999 7f00 RocksDB version: 9.8.4\n".to_vec(),
        ),
        (Foreign::LevelDbTable, table(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", 100)),
        (
            Foreign::LevelDbTable,
            table(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", 200_000),
        ),
        (Foreign::RocksDbTable, table(b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88", 100)),
        (Foreign::RocksDbTable, table(b"\x64\x95\xbf\x63\x96\x22\x42\x82", 100)),
        (Foreign::PebbleTable, table(b"\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3", 100)),
        (Foreign::BlobFile, table(b"\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x82", 100)),
        (Foreign::Text, b"hello world, this is a plain text file\n".to_vec()),
        (Foreign::Text, "{\"größe\": 1}\n".repeat(20_000).into_bytes()),
        (Foreign::Unknown, b"\x01\xff\x02\xfe\x03\xfd\x4d\x05\x06".to_vec()),
        (Foreign::Unknown, [0x4d, 0xff].repeat(100_000)),
        // These are the starts of compiled Python, of a TrueType font and of WebAssembly. Byte 6 is
        // 0, or a type that a dialect writes.
        (
            Foreign::Unknown,
            b"\xa7\x0d\x0d\x0a\0\0\0\0\x83\x9e\x1b\x65\xc4\x08".to_vec(),
        ),
        (
            Foreign::Unknown,
            [b"\0\x01\0\0\0\x11\x01\0\0\x04\0\x10GDEF".as_slice(), &[7; 6_000]].concat(),
        ),
        (
            Foreign::Unknown,
            [b"\0asm\x01\0\0\0".as_slice(), &[1; 200_000]].concat(),
        ),
    ]
}

/// Returns a table of this length, which is recognised by the magic number at its end.
fn table(magic: &[u8; 8], len: usize) -> Vec<u8> {
    [&vec![0x55; len - 8], &magic[..]].concat()
}

#[test]
fn identifies_other_file_formats() {
    for (format, bytes) in foreign() {
        if bytes.len() < DETECT_LEN {
            assert_eq!(detect(&bytes), Detection::Foreign(format));
        }
        let mut reader = Reader::from_slice(&bytes, ReadOptions::default());
        // A second call returns the same error.
        for _ in 0..2 {
            let Err(
                error @ Error {
                    kind: ErrorKind::Foreign { foreign, .. },
                    ..
                },
            ) = reader.next_record()
            else {
                panic!("{format:?} is not a log")
            };
            assert_eq!(foreign, format);
            let message = error.to_string();
            assert!(
                message.contains("not a log, but ")
                    && message.contains(format.as_str())
                    && message.contains(format.description()),
                "{message}"
            );
        }
        assert_error!(reader.format(), ErrorKind::Foreign { .. });
    }
}

#[test]
fn detection_errors_include_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000001.log");
    std::fs::write(&path, b"SQLite format 3\0").unwrap();
    let error = Reader::open(&path).unwrap().next_record().unwrap_err();
    assert!(error.to_string().contains("000001.log"));
}

#[test]
fn an_explicit_dialect_overrides_detection() {
    for (_, bytes) in foreign() {
        for &dialect in Dialect::ALL {
            let mut reader = Reader::from_slice(&bytes, ReadOptions::default().with_format(dialect));
            assert_eq!(reader.format().unwrap(), LogFormat::new(dialect));
            loop {
                match reader.next_event() {
                    Ok(None) => break,
                    Ok(Some(_))
                    | Err(Error {
                        kind: ErrorKind::Corruption { .. },
                        ..
                    }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    let run_file = [b":W&B\xe1\xbe\x00".as_slice(), &Wire::Ieee.full(b"foo")].concat();
    let mut reader = Reader::from_slice(&run_file, ReadOptions::default().with_dialect(Dialect::LEVELDB));
    assert_error!(reader.next_record(), ErrorKind::Corruption { .. });
}

#[test]
fn detection_is_unclear_without_evidence() {
    let fragments = [
        (Wire::Plain.full(b"foo"), None),
        (Wire::Recyclable(1).full(b"foo"), Some(Dialect::RECYCLABLE)),
        (Wire::Synced(1, 0).full(b"foo"), Some(Dialect::PEBBLE)),
        (Wire::Ieee.full(b"foo"), None),
    ];
    for (fragment, shown) in fragments {
        for len in 0..fragment.len() {
            // The type is only evidence if the header is complete.
            let shown = shown.filter(|_| len >= 7).map(LogFormat::new);
            let shown = shown.map_or(Detection::Unclear, Detection::Log);
            assert_eq!(detect(&fragment[..len]), shown, "{len}");
        }
        assert!(matches!(detect(&fragment), Detection::Log(_)));
    }
    assert_eq!(detect(&[0; 100_000]), Detection::Unclear);
}

/// The first block is zeros or damaged, and a later block shows the dialect.
#[test]
fn the_dialect_can_be_detected_from_a_later_block() {
    for (wire, dialect) in [
        (Wire::Plain, LogFormat::new(Dialect::LEVELDB)),
        (
            Wire::Recyclable(3),
            LogFormat::new(Dialect::RECYCLABLE).with_log_number(3),
        ),
        (Wire::Synced(3, 0), LogFormat::new(Dialect::PEBBLE).with_log_number(3)),
    ] {
        for fill in [0, 7] {
            for blocks in 1..3 {
                let file = [vec![fill; blocks * 32_768], wire.full(b"foo")].concat();
                let file = &file[..file.len().min(DETECT_LEN)];
                assert_eq!(detect(file), Detection::Log(dialect), "{wire:?} {fill} {blocks}");
            }
        }
    }
}

/// The only block starts with damage. Two consecutive valid fragments after it show the dialect.
#[test]
fn the_dialect_is_detected_from_fragments_after_damage() {
    for (wire, dialect) in [
        (Wire::Plain, LogFormat::new(Dialect::LEVELDB)),
        (
            Wire::Recyclable(3),
            LogFormat::new(Dialect::RECYCLABLE).with_log_number(3),
        ),
        (Wire::Synced(3, 0), LogFormat::new(Dialect::PEBBLE).with_log_number(3)),
        (Wire::Ieee, LogFormat::new(Dialect::WANDB)),
    ] {
        let mut file = [wire.full(b"damaged"), wire.full(b"foo"), wire.full(b"bar")].concat();
        file[0] ^= 1;
        assert_eq!(detect(&file), Detection::Log(dialect), "{wire:?}");
        assert_eq!(detect(&file[..file.len() - 1]), Detection::Unclear, "{wire:?}");
    }
}

/// Bytes were inserted at the start. The first valid fragment after them decides, so a flipped type
/// byte does not change the dialect of a log.
#[test]
fn detects_the_dialect_after_a_few_inserted_bytes() {
    let fragments = [Wire::Plain.full(b"foo"), Wire::Plain.full(b"bar")].concat();
    for len in 1..20 {
        assert_eq!(
            detect(&[vec![0xff; len], fragments.clone()].concat()),
            Detection::Log(Dialect::LEVELDB.into()),
            "{len}"
        );
    }
}

/// By "Which dialect" in `reading.md`, the first two fragments with a number after damage decide,
/// unless more fragments without a number come before them. Payloads are not searched.
#[test]
fn the_log_number_is_detected_from_the_first_numbered_fragments_after_damage() {
    let plain = |count: usize| Wire::Plain.full(b"plain").repeat(count);
    let numbered = |number: u32, count: usize| Wire::Recyclable(number).full(b"numbered").repeat(count);
    let damage = || vec![0xff; 20];
    let of = |groups: &[Vec<u8>]| {
        let Detection::Log(format) = detect(&groups.concat()) else {
            panic!("no log in {} groups", groups.len())
        };
        format.log_number
    };
    assert_eq!(
        of(&[damage(), plain(2), damage(), plain(3), damage(), numbered(7, 4)]),
        Some(7)
    );
    assert_eq!(
        of(&[damage(), plain(5), damage(), plain(3), damage(), numbered(7, 4)]),
        None
    );
    assert_eq!(of(&[damage(), numbered(7, 2), damage(), numbered(8, 3)]), Some(7));
    let nested = Wire::Plain.full(&numbered(7, 5));
    assert_eq!(of(&[damage(), nested, plain(1)]), None);
}

/// The fragment is in the second of two blocks. The rest of these blocks does not show a log.
#[test]
fn a_valid_fragment_in_any_block_suggests_a_log() {
    let noise = |len: usize| [0x4d, 0xff].repeat(len / 2);
    assert_eq!(detect(&noise(60_000)), Detection::Foreign(Foreign::Unknown));
    let file = [noise(40_000), Wire::Plain.full(b"foo"), noise(20_000)].concat();
    assert_eq!(detect(&file), Detection::Unclear);
}

/// Returns bytes that are not text, and that contain no type that a dialect writes.
fn noise(len: usize) -> Vec<u8> {
    [0x4d, 0xff].iter().copied().cycle().take(len).collect()
}

/// A reader also examines the blocks after those that detection reads.
#[test]
fn a_valid_fragment_at_any_block_start_suggests_a_log() {
    const BLOCK: usize = 32_768;
    let is_log = |file: &[u8]| Reader::from_slice(file, ReadOptions::default()).format().is_ok();
    for len in [7, 8, 100, DETECT_LEN, 6 * BLOCK] {
        assert!(!is_log(&noise(len)), "{len}");
    }
    for (wire, grid_offset) in [
        (Wire::Plain, 0),
        (Wire::Recyclable(5), 0),
        (Wire::Synced(5, 9), 0),
        (Wire::Ieee, 7),
    ] {
        for block in [3, 5] {
            for payload in [&b"foo"[..], &[b'x'; BLOCK - 30]] {
                let fragment = wire.full(payload);
                let at = block * BLOCK + grid_offset;
                let with = |fragment: &[u8], at: usize| {
                    let mut file = noise(7 * BLOCK);
                    file[at..at + fragment.len()].copy_from_slice(fragment);
                    file
                };
                let what = format!("{wire:?}, block {block}, {} bytes", payload.len());
                assert!(is_log(&with(&fragment, at)), "{what}");
                assert!(!is_log(&with(&fragment, at + 1)), "{what}: not at its start");
                let mut damaged = fragment.clone();
                damaged[0] ^= 1;
                assert!(!is_log(&with(&damaged, at)), "{what}: damaged");
            }
        }
    }
    // The length in this header is greater than any length in a log.
    let mut file = noise(5 * BLOCK);
    file[3 * BLOCK..][4..7].copy_from_slice(&[0xff, 0xff, 1]);
    assert!(!is_log(&file));
}

/// Each header leads to the next, although no checksum is valid. This suggests a damaged log.
#[test]
fn a_chain_of_headers_suggests_a_log() {
    const BLOCK: usize = 32_768;
    let damaged = |kind: u8, len: usize| {
        let mut fragment = Wire::Plain.fragment(kind, &noise(len));
        fragment[0] ^= 0xff;
        fragment
    };
    let unknown = Detection::Foreign(Foreign::Unknown);
    let chain = [damaged(1, 30), damaged(1, 0), damaged(1, 50)].concat();
    assert_eq!(detect(&chain), Detection::Unclear);
    assert_eq!(detect(&[&chain[..], &[0; 90]].concat()), Detection::Unclear);
    // The last fragment is not whole, or is followed by less than a header or by bytes that are not
    // a header.
    assert_eq!(detect(&chain[..chain.len() - 1]), unknown);
    for len in [1, 6, 7, 60] {
        assert_eq!(detect(&[&chain[..], &noise(len)].concat()), unknown, "{len}");
    }
    // A writer starts a record that continues in another fragment only at the end of a block.
    assert_eq!(detect(&[damaged(1, 30), damaged(2, 50)].concat()), unknown);
    // The rest of the file does not show a log, but the first block does.
    let rest = noise(1_000);
    for trailer_len in [0, 6] {
        let first = damaged(1, 30);
        let second = damaged(2, BLOCK - first.len() - 7 - trailer_len);
        let file = [&first[..], &second, &noise(trailer_len), &rest].concat();
        assert_eq!(detect(&file), Detection::Unclear, "{trailer_len}");
    }
    let first = damaged(1, 30);
    let second = damaged(2, BLOCK - first.len() - 7 + 1);
    assert_eq!(
        detect(&[first, second, rest].concat()),
        unknown,
        "past the end of the block"
    );
}

/// The last fragment is damaged but not torn. The type of a torn fragment would show the dialect.
#[test]
fn a_damaged_last_fragment_does_not_determine_the_dialect() {
    let mut file = Wire::Recyclable(5).full(b"foo");
    file[0] ^= 0xff;
    assert_eq!(detect(&file), Detection::Unclear);
    assert_eq!(
        detect(&file[..file.len() - 1]),
        Detection::Log(Dialect::RECYCLABLE.into())
    );
}

/// A table ends with a magic number. At the end of the bytes that detection reads, the same number
/// does not count.
#[test]
fn a_table_magic_number_counts_only_at_the_end_of_the_file() {
    let mut file = noise(DETECT_LEN + 100);
    file[DETECT_LEN - 8..DETECT_LEN].copy_from_slice(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb");
    let of = |file: &[u8]| match Reader::from_slice(file, ReadOptions::default()).format() {
        Err(Error {
            kind: ErrorKind::Foreign { foreign, .. },
            ..
        }) => foreign,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&file), Foreign::Unknown);
    assert_eq!(of(&file[..DETECT_LEN]), Foreign::LevelDbTable);
}

/// The trailer contains the number of the next log. This is true whether or not the dialect is
/// named.
#[test]
fn the_log_number_of_an_empty_log_is_read_from_its_trailer() {
    for named in [None, Some(Dialect::PEBBLE)] {
        let options = ReadOptions::default().with_dialect(named);
        let format = Reader::from_slice(b"\0\0\0\0\0\0\x05\x02\0\0\0", options).format();
        assert_eq!(format.expect("a log").log_number, Some(1), "{named:?}");
    }
}

/// One bit of the trailer is flipped, and the bytes after it do not show a log.
#[test]
fn a_damaged_trailer_suggests_an_empty_log() {
    let file = [&b"\0\0\0\0\0\0\x05\x02\0\0\0"[..], &noise(60)].concat();
    for bit in 0..7 * 8 {
        let mut file = file.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        assert_may_be_log(&file);
    }
}

/// The bytes that declare the compression may also be the bytes of a record.
#[test]
fn a_record_that_looks_like_a_compression_setting_is_still_a_record() {
    let options = || ReadOptions::default().with_dialect(Dialect::ROCKSDB);
    let record = Wire::Plain.full(b"\x07\0\0\0");
    for (file, compression) in [(&record[..], None), (&COMPRESSED[..], Some(Compression::Zstd))] {
        let format = Reader::from_slice(file, options()).format();
        assert_eq!(format.expect("a log").compression, compression);
    }
}

/// In the middle of a file, the first fragment may belong to an older log.
#[test]
fn range_detection_does_not_use_the_first_log_number() {
    const BLOCK: usize = 32_768;
    let mut file = Vec::new();
    while file.len() < 2 * BLOCK {
        Wire::Recyclable(5).append(&mut file, 0, &[b'x'; 6_000]);
    }
    for (start, number) in [(0, Some(5)), (BLOCK, None)] {
        let source = cordwood_log::read::StreamSource::new(&file[start..], start as u64);
        let options = ReadOptions::default()
            .with_range(start as u64..)
            .with_dialect(Dialect::RECYCLABLE);
        let format = Reader::with_source(source, options).format();
        assert_eq!(format.expect("a log").log_number, number, "{start}");
    }
}

/// Only a packed log has containers, in which the first byte is the number of a codec.
#[test]
fn the_first_payload_byte_is_not_mistaken_for_a_codec() {
    for first in 0..3 {
        assert_eq!(
            detect(&Wire::Plain.full(&[first, 1, 2])),
            Detection::Log(Dialect::LEVELDB.into())
        );
    }
}

#[test]
fn a_damaged_file_header_alone_identifies_the_dialect() {
    assert_eq!(detect(b":W&B\xe0\xbe\x00"), Detection::Log(Dialect::WANDB.into()));
    assert_eq!(detect(b":V&B\xe1\xbe\x00"), Detection::Log(Dialect::WANDB.into()));
}

/// In such a log, no second block shows that the blocks are counted from the first byte.
#[test]
fn a_run_file_of_exactly_one_block_uses_the_newer_block_grid() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 0, &[b'x'; 32_768 - 7 - 7]);
    assert_eq!(file.len(), 32_768);
    assert_eq!(detect(&file), Detection::Log(Dialect::WANDB.into()));
}

#[test]
fn the_block_grid_is_detected_despite_a_short_read() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    while file.len() < 3 * 32_768 {
        Wire::Ieee.append(&mut file, 7, &[b'x'; 6_000]);
    }
    for first in [1, 6, 7, 8, 20, 6_021, 32_767, 32_768, 32_774, 32_775, 32_782, 65_543] {
        let (start, rest) = file.split_at(first);
        let format = Reader::new(start.chain(rest), ReadOptions::default()).format();
        assert_eq!(format.expect("a log").dialect, Dialect::WANDB_OLD, "{first}");
    }
}

#[test]
fn detection_ignores_a_type_byte_with_a_wrong_checksum() {
    let file = Wire::Plain.full(b"foo");
    for kind in (0..=255).filter(|&kind| kind != 1) {
        let mut file = file.clone();
        file[6] = kind;
        assert_eq!(detect(&file), Detection::Unclear, "{kind}");
    }
}

/// In the middle of a file, the first fragment may belong to an older log, so a dialect with log
/// numbers is not guessed there.
#[test]
fn range_detection_never_guesses_a_numbered_dialect() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = Vec::new();
    for (number, blocks) in [(5, 3), (4, 6)] {
        while file.len() < blocks * 32_768 {
            Wire::Recyclable(number).append(&mut file, 0, &number.to_le_bytes());
        }
        file.truncate(blocks * 32_768);
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a.log");
    std::fs::write(&path, &file)?;
    let options = ReadOptions::default().with_range(4 * 32_768..);
    // If a file is opened by its path or is in memory, its start can be read.
    let readers: [&mut dyn FnMut() -> Result<Option<Vec<u8>>, Error>; 2] = [
        &mut || {
            Ok(Reader::open_with(&path, options.clone())?
                .next_record()?
                .map(|record| record.data.to_vec()))
        },
        &mut || {
            Ok(Reader::from_slice(&file, options.clone())
                .next_record()?
                .map(|record| record.data.to_vec()))
        },
    ];
    for read in readers {
        assert_eq!(read()?, None, "stale records");
    }
    // A source that starts later cannot return earlier bytes.
    let source = cordwood_log::read::StreamSource::new(&file[4 * 32_768..], 4 * 32_768);
    assert_error!(
        Reader::with_source(source, options).next_record(),
        ErrorKind::Corruption { .. }
    );
    Ok(())
}

#[test]
fn dialect_names_can_be_parsed() {
    for &dialect in Dialect::ALL {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
    }
}

/// Asserts that a possible start of a log, or a damaged log, is not detected as another format.
#[track_caller]
fn assert_may_be_log(file: &[u8]) {
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let dialect = reader.format();
    let head = &file[..file.len().min(40)];
    assert!(dialect.is_ok(), "{dialect:?}, {} bytes: {head:02x?}", file.len());
}

fn vectors() -> Vec<Vec<u8>> {
    let record = |len: usize| vec![b'x'; len];
    let mut files = Vec::new();
    for len in [0, 3, 300, 40_000] {
        for (prefix, wire) in [
            (&b""[..], Wire::Plain),
            (b"", Wire::Recyclable(7)),
            (b"", Wire::Synced(7, 0)),
            (b":W&B\xe1\xbe\x00", Wire::Ieee),
            (b":SWL\xd6\xe1\x02", Wire::Ieee),
        ] {
            let mut file = prefix.to_vec();
            wire.append(&mut file, 0, &record(len));
            files.push(file);
        }
        // The engine's metadata records come first.
        let zstd = LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd);
        for dialect in [
            LogFormat::new(Dialect::ROCKSDB),
            LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
            zstd,
        ] {
            if dialect.compression.is_some() && !cfg!(feature = "zstd") {
                continue;
            }
            let mut file = Vec::new();
            let mut encoder = cordwood_log::codec::Encoder::with_format(0, dialect).unwrap();
            encoder.encode(&record(len), &mut file);
            files.push(file);
        }
    }
    files
}

#[test]
fn every_prefix_of_a_log_is_detected() {
    for file in vectors() {
        for len in (0..file.len()).step_by(1 + file.len() / 1000) {
            assert_may_be_log(&file[..len]);
            // The rest of the file is preallocated.
            assert_may_be_log(&[&file[..len], &[0; 100]].concat());
        }
    }
    // The first record is torn, and the rest of an older log follows in the same file.
    for (kind, [l0, l1]) in [(5, 1_000_u16), (6, 32_757)].map(|(kind, len)| (kind, len.to_le_bytes())) {
        let mut older = Vec::new();
        while older.len() < 100_000 {
            Wire::Recyclable(8).append(&mut older, 0, &[0x55; 150]);
        }
        let header = [0x4d, 0x3c, 0x2b, 0x1a, l0, l1, kind, 9, 0, 0, 0];
        older[..header.len()].copy_from_slice(&header);
        for len in [11, 16, 500, 50_000, 100_000] {
            assert_may_be_log(&older[..len]);
        }
    }
    for file in [&b""[..], b"x", &[0; 100_000], b":W&B\xe1\xbe\x00", b":SWL\xd6\xe1\x02"] {
        assert_may_be_log(file);
    }
    assert_may_be_log(b"\0\0\0\0\0\0\x05\x08\0\0\0");
}

/// Returns the golden vectors of `golden.rs` and `dialect_golden.rs` as literal bytes. If a vector
/// starts at the end of a block, zeros precede it.
fn golden_vectors() -> Vec<Vec<u8>> {
    let at = |start: usize, bytes: &[u8]| [&vec![0; start], bytes].concat();
    let mut predecessor = b"\xd1\x78\xb4\x95\x18\x00\x82".to_vec();
    for number in [4_u64, 130, 5] {
        predecessor.extend(number.to_le_bytes());
    }
    let mut files = vec![
        b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".to_vec(),
        b"\x05\x2b\x28\x43\x00\x00\x01".to_vec(),
        b"\x05\x2b\x28\x43\x00\x00\x01\xdd\x5f\xb3\x7a\x03\x00\x01foo\x05\x2b\x28\x43\x00\x00\x01".to_vec(),
        at(32_761, b"\x64\x51\xd0\xe9\x00\x00\x02\x05\x9e\x81\x37\x03\x00\x04bar"),
        at(32_761, b"\x05\x2b\x28\x43\x00\x00\x01\xba\xea\xec\x44\x03\x00\x01bar"),
        at(32_768, b"\xba\xea\xec\x44\x03\x00\x01bar"),
        b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo".to_vec(),
        b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00".to_vec(),
        b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00".to_vec(),
        predecessor,
        b"\x90\x5d\x84\xdc\x01\x00\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00".to_vec(),
        b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00".to_vec(),
        b":W&B\xe1\xbe\x00\x4a\x04\xca\xea\x03\x00\x01foo".to_vec(),
        b":W&B\xe1\xbe\x00\x1b\xdf\x05\xa5\x00\x00\x01".to_vec(),
        b":SWL\xd6\xe1\x02\x4a\x04\xca\xea\x03\x00\x01foo".to_vec(),
    ];
    // These files contain records of a compressed log, which are frames, and a record in two
    // blocks, in both block layouts of a run file.
    let set_zstd = files[7].clone();
    let frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00foo";
    files.push([&set_zstd[..], &Wire::Plain.full(frame)].concat());
    files.push([&set_zstd[..], &Wire::Recyclable(9).full(frame)].concat());
    for grid in [0, 7] {
        let mut file = b":W&B\xe1\xbe\x00".to_vec();
        Wire::Ieee.append(&mut file, grid, &[b'x'; 40_000]);
        files.push(file);
    }
    // This is the example on LevelDB's format page.
    let mut example = Vec::new();
    for (record, len) in [(b'a', 1_000), (b'b', 97_270), (b'c', 8_000)] {
        Wire::Plain.append(&mut example, 0, &vec![record; len]);
    }
    assert_eq!(example.len(), 106_311);
    files.push(example);
    files
}

#[test]
fn every_part_of_a_golden_vector_is_detected() {
    for file in golden_vectors() {
        // Zeros and a part of a header do not show a log.
        let zeros_len = file.iter().take_while(|&&byte| byte == 0).count();
        let parts = (0..=zeros_len).chain(zeros_len + usize::from(zeros_len > 7) * 11..=file.len());
        for len in parts {
            assert_may_be_log(&file[..len]);
        }
    }
}

/// Returns logs of one record in each dialect, written without the crate under test. The record is
/// alone in its log, or follows the engine's first records.
fn logs_of_one_record() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = golden_vectors().into_iter().filter(|file| file.len() < 100).collect();
    let set_zstd = files[7].clone();
    for record in [
        vec![],
        b"foo".to_vec(),
        vec![0; 30],
        vec![b'x'; 300],
        (0..=255).collect(),
    ] {
        for (prefix, wire) in [
            (&b""[..], Wire::Plain),
            (b"", Wire::Recyclable(7)),
            (b"", Wire::Synced(7, 0)),
            (b":W&B\xe1\xbe\x00", Wire::Ieee),
            (b":SWL\xd6\xe1\x02", Wire::Ieee),
            (&set_zstd, Wire::Plain),
            (&set_zstd, Wire::Recyclable(7)),
        ] {
            files.push([prefix, &wire.full(&record)].concat());
        }
    }
    files
}

#[test]
fn a_log_with_a_single_record_is_detected_whichever_bit_is_flipped() {
    for file in logs_of_one_record() {
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_may_be_log(&flipped);
        }
    }
    // For a record in two blocks, each bit of both headers is flipped. A flipped bit in one part
    // leaves the other part valid.
    for (prefix, wire, grid) in [
        (&b""[..], Wire::Plain, 0),
        (b"", Wire::Recyclable(7), 0),
        (b"", Wire::Synced(7, 0), 0),
        (b":W&B\xe1\xbe\x00", Wire::Ieee, 0),
        (b":W&B\xe1\xbe\x00", Wire::Ieee, 7),
        (b":SWL\xd6\xe1\x02", Wire::Ieee, 0),
    ] {
        let mut file = prefix.to_vec();
        wire.append(&mut file, grid, &[b'x'; 40_000]);
        let len = prefix.len() + wire.header_len();
        for bit in (0..len * 8).chain((32_768 * 8)..(32_768 + grid + 30) * 8) {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_may_be_log(&flipped);
        }
    }
}

#[test]
fn a_log_is_detected_whichever_bit_is_flipped() {
    for file in vectors().into_iter().filter(|file| file.len() < 1000) {
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_may_be_log(&flipped);
        }
    }
}

/// A log of one block has no valid fragment, because two bits of each checksum are wrong. Its
/// headers lead to the end of the block or of the file, which shows that it is a log.
#[test]
fn a_chain_of_headers_that_extends_to_the_end_indicates_a_damaged_log() {
    for wire in [Wire::Plain, Wire::Recyclable(7), Wire::Synced(7, 0), Wire::Ieee] {
        for (record_len, count) in [(30, 1), (30, 3), (0, 3), (40_000, 1), (32_700, 2)] {
            let (mut file, mut headers) = (Vec::new(), Vec::new());
            for _ in 0..count {
                if 32_768 - file.len() % 32_768 < wire.header_len() {
                    file.resize(file.len().next_multiple_of(32_768), 0);
                }
                headers.push(file.len());
                wire.append(&mut file, 0, &vec![0xd0; record_len]);
            }
            file.truncate(32_768);
            for &at in &headers {
                file[at] ^= 0b11;
            }
            assert_eq!(detect(&file), Detection::Unclear, "{wire:?} {record_len} {count}");
            // The file is preallocated.
            let preallocated = [&file[..], &[0; 500]].concat();
            assert_eq!(
                detect(&preallocated),
                Detection::Unclear,
                "{wire:?} {record_len} {count}"
            );
            let last = *headers.last().unwrap();
            if file.len() < 32_768 {
                file.push(0xd0);
                assert_eq!(
                    detect(&file),
                    Detection::Foreign(Foreign::Unknown),
                    "{wire:?}, a byte more"
                );
                file.pop();
                file[last + 4] ^= 1;
                file[last + 6] = 0x4d;
                assert_eq!(
                    detect(&file),
                    Detection::Foreign(Foreign::Unknown),
                    "{wire:?}, no header"
                );
            }
        }
    }
}

/// A file is a torn log if it ends in its first fragment, according to the length in the header, or
/// if its zeros start there. A FIRST fragment must fill its block.
#[test]
fn a_truncated_first_fragment_indicates_a_torn_log() {
    let header = |len: u16, kind| [&[0x9d, 0xff, 0xfe, 0xfd], &len.to_le_bytes()[..], &[kind]].concat();
    let unknown = Detection::Foreign(Foreign::Unknown);
    for (len, kind, written_len, zeros, expected) in [
        (100, 1, 100, 0, Detection::Unclear),
        (100, 1, 100, 50_000, Detection::Unclear),
        (100, 1, 102, 0, unknown),
        (32_761, 1, 100, 0, Detection::Unclear),
        (32_762, 1, 100, 0, unknown),
        (32_761, 2, 100, 0, Detection::Unclear),
        (20_000, 2, 100, 0, unknown),
        (100, 3, 100, 0, unknown),
        (100, 4, 100, 0, unknown),
        (100, 5, 100, 0, Detection::Log(Dialect::RECYCLABLE.into())),
        (100, 5, 100, 50_000, Detection::Log(Dialect::RECYCLABLE.into())),
        (100, 9, 100, 0, Detection::Log(Dialect::PEBBLE.into())),
        (100, 0, 100, 0, unknown),
    ] {
        let written = [header(len, kind), vec![0xd0; written_len - 1]].concat();
        let file = [written, vec![0; zeros]].concat();
        // The last byte before the zeros is missing.
        assert_eq!(detect(&file), expected, "{len} {kind} {written_len} {zeros}");
    }
}

/// A valid fragment outranks a signature, text, and a type that no dialect writes, wherever in the
/// log the fragment is.
#[test]
fn a_valid_fragment_takes_precedence_over_the_bytes_before_it() {
    for before in [
        &b"PK\x03\x04\x14\0\0\0\x08\0"[..],
        b"plain text, no log\n",
        b"\x01\xff\x02\xfe\x03\xfd\x4d",
    ] {
        assert_may_be_log(&[before, &Wire::Plain.full(b"foo")].concat());
    }
    // This is also true for a fragment after the part that detection reads.
    for byte in *b"a\xfe" {
        for blocks in [4, 9] {
            let file = [vec![byte; blocks * 32_768], Wire::Plain.full(b"foo")].concat();
            assert_may_be_log(&file);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.bin");
            std::fs::write(&path, &file).unwrap();
            assert!(Reader::open(&path).unwrap().format().is_ok());
            std::fs::write(&path, &file[..file.len() - 1]).unwrap();
            let dialect = Reader::open(&path).unwrap().format();
            assert_error!(dialect, ErrorKind::Foreign { .. });
        }
    }
}

/// A gzip file contains the time of its data where a fragment has its length and its type. With
/// some times, the start of the file could be the header of a torn record.
#[test]
fn a_signature_takes_precedence_over_a_possibly_torn_header() {
    for kind in 0..=255 {
        for (length, file_len) in [(0_u16, 30), (20, 30), (3_000, 30), (3_000, 4_000), (3_000, 200_000)] {
            let [l0, l1] = length.to_le_bytes();
            let mut file = vec![0x1f, 0x8b, 0x08, 0x08, l0, l1, kind, 0x6b, 0x00, 0x03];
            file.extend(b"log\0");
            file.resize(file_len, b'x');
            assert_eq!(
                detect(&file[..file_len.min(DETECT_LEN)]),
                Detection::Foreign(Foreign::Gzip),
                "{kind} {length} {file_len}"
            );
        }
    }
}

/// A tab, a line feed and a form feed are types that an engine writes.
#[test]
fn text_takes_precedence_over_a_possibly_torn_header() {
    for text in ["step 0\nstep 50\n", "offset\tlen\n", "29320z\n", "29320z\x0c"] {
        assert_eq!(detect(text.as_bytes()), Detection::Foreign(Foreign::Text), "{text:?}");
        let long = format!("{text}{}", "1\t20\n".repeat(4_000));
        assert_eq!(detect(long.as_bytes()), Detection::Foreign(Foreign::Text), "{text:?}");
    }
}

/// A file with the name of a log is taken for a damaged log, unless it has another known format.
#[test]
fn a_damaged_file_named_like_a_log_is_detected_as_a_damaged_log() {
    let directory = tempfile::tempdir().unwrap();
    for (name, is_believed) in [
        ("000123.log", true),
        ("run-1.wandb", true),
        ("output-0", true),
        ("file.bin", false),
    ] {
        let path = directory.path().join(name);
        let open = || Reader::open(&path).unwrap();
        for count in [1_000, 100_000] {
            std::fs::write(&path, [0x4d, 0xff].repeat(count)).unwrap();
            assert_eq!(open().format().is_ok(), is_believed, "{name}, {count}");
        }
        std::fs::write(&path, b"plain text, no log\n").unwrap();
        assert!(open().format().is_err(), "{name}");
    }
}

/// If several dialects write the same bytes, the first of these dialects is detected.
#[test]
fn detects_logs_of_every_dialect() {
    let log_in = |dialect: Dialect, record_len: usize| {
        let mut file = Vec::new();
        let mut encoder = cordwood_log::codec::Encoder::with_format(0, dialect).unwrap();
        encoder.encode(&vec![b'x'; record_len], &mut file);
        encoder.encode(b"next", &mut file);
        file
    };
    for record_len in [0, 100, DETECT_LEN, 2 * DETECT_LEN] {
        for &dialect in Dialect::ALL {
            let file = log_in(dialect, record_len);
            let mut dialects = Dialect::ALL.iter();
            let first = dialects.find(|&&other| log_in(other, record_len) == file);
            let head = &file[..file.len().min(DETECT_LEN)];
            assert_eq!(
                detect(head),
                first.map_or(Detection::Unclear, |&first| Detection::Log(first.into())),
                "{dialect:?}"
            );
        }
    }
}

/// The first read of a stream may return one byte or all bytes.
#[test]
fn a_short_read_does_not_change_the_detected_format() {
    const BLOCK: usize = 32_768;
    let firsts = |len: usize| {
        (1..40)
            .chain((1..4).flat_map(|block| block * BLOCK - 20..block * BLOCK + 40))
            .filter(move |&first| first < len)
    };
    let dialects = [
        (Wire::Plain, &b""[..], Dialect::LEVELDB),
        (Wire::Recyclable(5), b"", Dialect::RECYCLABLE),
        (Wire::Synced(5, 9), b"", Dialect::PEBBLE),
        (Wire::Ieee, b":W&B\xe1\xbe\x00", Dialect::WANDB),
        (Wire::Ieee, b":SWL\xd6\xe1\x02", Dialect::SWANLAB),
    ];
    for (wire, header, dialect) in dialects {
        // With the longer records, the first block contains only one whole fragment after the
        // damage. That is not enough to show the dialect.
        let lens = [100, BLOCK + 500, 2 * BLOCK + 500, 4 * BLOCK];
        for (len, record_len) in lens.into_iter().flat_map(|len| [(len, 6_000), (len, 20_000)]) {
            let mut file = header.to_vec();
            while file.len() < len {
                wire.append(&mut file, 0, &vec![b'x'; record_len]);
            }
            for is_damaged in [false, true] {
                if is_damaged {
                    file[header.len() + 20] ^= 1;
                }
                for first in firsts(file.len()) {
                    let (start, rest) = file.split_at(first);
                    let format = Reader::new(start.chain(rest), ReadOptions::default()).format();
                    let what = format!("{dialect:?}, {len} bytes, {first} of them first, damaged: {is_damaged}");
                    // The dialect cannot be detected if the only record is damaged.
                    if !is_damaged || len > BLOCK {
                        assert_eq!(format.expect("a log").dialect, dialect, "{what}");
                    } else {
                        assert!(format.is_ok(), "{what}");
                    }
                }
            }
        }
    }
    for (expected, file) in foreign() {
        // The end of a longer stream cannot be examined.
        if file.len() < DETECT_LEN {
            for first in firsts(file.len()) {
                let (start, rest) = file.split_at(first);
                let Err(Error {
                    kind: ErrorKind::Foreign { foreign, .. },
                    ..
                }) = Reader::new(start.chain(rest), ReadOptions::default()).format()
                else {
                    panic!("{expected:?}, {first} bytes first")
                };
                assert_eq!(foreign, expected);
            }
        }
    }
}

// Where a reader starts in the middle -------------------------------------------------------------

/// Returns the format that a reader of the blocks after the first one detects if its source starts
/// at `start`.
fn format_from(file: &[u8], start: usize) -> LogFormat {
    let source = cordwood_log::read::StreamSource::new(&file[start..], start as u64);
    let options = ReadOptions::default().with_range(32_768..);
    Reader::with_source(source, options).format().expect("a log")
}

/// The header of a run file only counts at the start of a file.
#[test]
fn a_file_header_inside_a_record_is_ignored() {
    let mut record = vec![b'x'; 40_000];
    record[993..1_000].copy_from_slice(b":W&B\xe1\xbe\x00");
    let mut file = Vec::new();
    Wire::Plain.append(&mut file, 0, &record);
    assert!(file[1_000..].starts_with(b":W&B"));
    assert_eq!(format_from(&file, 1_000), Dialect::LEVELDB.into());
}

#[test]
fn range_detection_uses_the_next_block() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 0, &[b'x'; 40_000]);
    for start in [1_000, 32_767, 32_768] {
        assert_eq!(format_from(&file, start), Dialect::WANDB.into(), "{start}");
    }
}

/// At the end of a block, a record contains the bytes of a valid fragment of another dialect. That
/// fragment would end in the next block, which is impossible.
#[test]
fn a_fragment_that_crosses_a_block_boundary_does_not_determine_the_dialect() {
    const BLOCK: usize = 32_768;
    let last = Wire::Plain.part(4, &[b'y'; 100]);
    let crossing = Wire::Ieee.full(&last[..33]);
    let first = [vec![b'x'; BLOCK - 7 - 7], crossing[..7].to_vec()].concat();
    let file = [Wire::Plain.part(2, &first), last].concat();
    assert_eq!(file[BLOCK - 7..][..crossing.len()], crossing);
    assert_eq!(format_from(&file, BLOCK - 7), Dialect::LEVELDB.into());
}

/// In the middle of a file, a fragment may belong to an older log.
#[test]
fn a_numbered_fragment_at_offset_1_does_not_determine_the_dialect() {
    let file = [&[0][..], &Wire::Recyclable(5).full(&[b'x'; 32_768 - 1 - 11])].concat();
    assert_eq!(format_from(&file, 1), Dialect::LEVELDB.into());
    assert_eq!(
        detect(&file[1..]),
        Detection::Log(LogFormat::new(Dialect::RECYCLABLE).with_log_number(5))
    );
}

/// The first bytes of a compressed or packed log may be damaged. They are then evidence only at the
/// start of a file.
#[test]
fn detection_ignores_the_damaged_start_of_another_log() {
    const BLOCK: usize = 32_768;
    let mut packed = Vec::new();
    let mut encoder = cordwood_log::codec::Encoder::with_format(0, Dialect::PACKED).unwrap();
    encoder.start(&mut packed);
    for mut start in [packed, COMPRESSED.to_vec()] {
        start[0] ^= 1;
        let at_first = [&start[..], &[0; 100]].concat();
        assert_ne!(detect(&at_first), Detection::Unclear, "{start:02x?}");
        start.resize(BLOCK, 0);
        let file = [vec![0; BLOCK], start.clone(), Wire::Plain.full(b"foo")].concat();
        assert_eq!(
            detect(&file),
            Detection::Log(Dialect::LEVELDB.into()),
            "{:02x?}",
            &start[..20]
        );
        assert_eq!(format_from(&file, BLOCK), Dialect::LEVELDB.into());
    }
}

// Whether a log is compressed ---------------------------------------------------------------------

/// The record at the start of a compressed RocksDB log. It has type 9 and the payload 7, 0, 0, 0.
const COMPRESSED: &[u8; 11] = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";

/// Returns the start of a zstd frame.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = b"\x28\xb5\x2f\xfd".to_vec();
    frame.resize(len, b'x');
    frame
}

/// Returns a log that starts in the middle of a record. The record ends in the second block.
/// `fragments` follow, and fill the rest of the second block.
fn from_the_middle(fragments: &[(u8, Vec<u8>)]) -> Vec<u8> {
    const BLOCK: usize = 32_768;
    let after: Vec<u8> = fragments
        .iter()
        .flat_map(|(place, payload)| Wire::Plain.part(*place, payload))
        .collect();
    let last = Wire::Plain.part(4, &vec![b'x'; BLOCK - 7 - after.len()]);
    let file = [Wire::Plain.part(3, &[b'x'; BLOCK - 7]), last, after].concat();
    assert_eq!(file.len(), 2 * BLOCK);
    file
}

fn compressed() -> Detection {
    Detection::Log(LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd))
}

#[test]
fn one_record_that_is_not_a_frame_rules_out_compression() {
    let text = b"text".to_vec();
    let magic = |len: usize| frame(4)[..len].to_vec();
    for (fragments, is_compressed) in [
        (vec![(1, frame(100))], true),
        (vec![(1, frame(100)), (1, text.clone())], false),
        (vec![(1, text.clone()), (1, frame(100))], false),
        (vec![(1, frame(100)), (1, vec![])], true),
        // A part of the magic number is not a frame, unless the record continues in the next block.
        (vec![(1, frame(100)), (1, magic(1))], false),
        (vec![(1, frame(100)), (2, magic(1))], true),
        (vec![(1, frame(100)), (2, magic(3))], true),
        (vec![(1, frame(100)), (2, text)], false),
        (vec![(2, frame(100))], true),
    ] {
        let file = from_the_middle(&fragments);
        let expected = if is_compressed {
            compressed()
        } else {
            Detection::Log(Dialect::LEVELDB.into())
        };
        assert_eq!(detect(&file), expected, "{fragments:?}");
    }
}

/// The first read may end before the block that shows the compression.
#[cfg(feature = "zstd")]
#[test]
fn compression_is_detected_despite_a_short_read() {
    let file = from_the_middle(&[(1, frame(100))]);
    for first in [1, 7, 11, 32_767, 32_768, 32_769, 32_780, 65_535] {
        let (start, rest) = file.split_at(first);
        let format = Reader::new(start.chain(rest), ReadOptions::default()).format();
        assert_eq!(format.expect("a log").compression, Some(Compression::Zstd), "{first}");
    }
}

/// A program may store zstd frames in a LevelDB log.
#[test]
fn zstd_frames_stored_as_records_are_not_mistaken_for_compression() {
    let mut file = Vec::new();
    while file.len() < 70_000 {
        Wire::Plain.append(&mut file, 0, &frame(1_000));
    }
    assert_eq!(detect(&file), Detection::Log(Dialect::LEVELDB.into()));
}

#[test]
fn compression_is_detected_even_if_the_first_two_blocks_are_swapped() {
    let first = [&COMPRESSED[..], &Wire::Plain.part(2, &frame(32_768 - 11 - 7))].concat();
    for second in [
        Wire::Plain.part(2, &frame(32_768 - 7)),
        Wire::Plain.part(3, &[b'x'; 32_768 - 7]),
        [
            Wire::Plain.full(&frame(100)),
            Wire::Plain.part(2, &frame(32_768 - 7 - 107)),
        ]
        .concat(),
    ] {
        assert_eq!(detect(&[second, first.clone()].concat()), compressed());
    }
    let text = Wire::Plain.part(2, &[b'x'; 32_768 - 7]);
    let leveldb = Detection::Log(Dialect::LEVELDB.into());
    assert_eq!(detect(&[text, first].concat()), leveldb);
}

/// Up to eight bits of the first bytes of the log may be damaged.
#[test]
fn compression_is_detected_from_a_damaged_start() {
    for bits in 1_u32..=9 {
        let mut file = COMPRESSED.to_vec();
        for bit in 0..bits {
            file[bit as usize] ^= 1;
        }
        let named = ReadOptions::default().with_dialect(Dialect::ROCKSDB);
        let format = Reader::from_slice(&file, named).format();
        let compression = (bits <= 8).then_some(Compression::Zstd);
        assert_eq!(format.expect("a log").compression, compression, "{bits}");
        // A single whole fragment after the damage does not show a dialect.
        file.extend(Wire::Plain.full(&frame(20)));
        assert_eq!(detect(&file) == compressed(), bits <= 8, "{bits}");
    }
}

// By name and by signature ------------------------------------------------------------------------

/// The engines write six digits, or more if the number is longer.
#[test]
fn the_log_number_is_detected_from_the_file_name() {
    let head = Wire::Recyclable(5).full(b"foo");
    for (name, number) in [
        ("000123.log", 123),
        ("123456.log", 123_456),
        ("1234567.log", 1_234_567),
        ("000123-001.log", 123),
        // A header has room only for the lower half of the number.
        ("4294967303.log", 7),
        // None of these names contains a log number, so the number of the first fragment counts.
        ("0123456.log", 5),
        ("12345.log", 5),
        ("00012a.log", 5),
        ("000123-01.log", 5),
        ("000123-0001.log", 5),
        ("000123-00a.log", 5),
        ("000123.txt", 5),
    ] {
        let Detection::Log(format) = cordwood_log::ops::detect_named(&head, Some(name.as_ref())) else {
            panic!("{name} is a log")
        };
        assert_eq!(format.log_number, Some(number), "{name}");
    }
}

#[test]
fn a_partial_signature_does_not_determine_the_format() {
    let texts = [
        "BZh, and more text",
        "abcd1AY&SY, and more text",
        "aaaa/bb/cc-dd:ee:ff.gggggg and more text",
        "2026-01-31 23:59:59.999999 and more text",
    ];
    for text in texts {
        assert_eq!(detect(text.as_bytes()), Detection::Foreign(Foreign::Text), "{text}");
    }
    // This line is detected even if no other character follows.
    let line = b"2026/01/31-23:59:59.999999 ";
    assert_eq!(detect(line), Detection::Foreign(Foreign::InfoLog));
}

/// A script computed the checksums.
#[test]
fn detects_prometheus_records() {
    let prometheus = Detection::Foreign(Foreign::Prometheus);
    // Prometheus writes big-endian numbers.
    let record = |flags: u8, len: u16, checksum: u32, payload: &[u8]| {
        let reversed = |mut bytes: Vec<u8>| {
            bytes.reverse();
            bytes
        };
        let (len, checksum) = (len.to_le_bytes().to_vec(), checksum.to_le_bytes().to_vec());
        [&[flags][..], &reversed(len), &reversed(checksum), payload].concat()
    };
    for flags in [1, 4, 8 + 1, 16 + 4] {
        assert_eq!(detect(&record(flags, 3, 0xcfc4_ae1d, b"foo")), prometheus, "{flags}");
    }
    for flags in [0, 5, 7, 32 + 1, 64 + 2] {
        assert_ne!(detect(&record(flags, 3, 0xcfc4_ae1d, b"foo")), prometheus, "{flags}");
    }
    assert_ne!(detect(&record(1, 3, 0xcfc4_ae1e, b"foo")), prometheus);
    assert_ne!(detect(&record(1, 4, 0xcfc4_ae1d, b"foo")), prometheus);
    assert_eq!(detect(&record(1, 1, 0x151a_27db, b"f")), prometheus);
    assert_eq!(detect(&record(1, 300, 0xcbfa_bf88, &[b'x'; 300])), prometheus);
}
