//! Tests `ops::pack`, which makes a strict copy of a log as a packed log, and back.

#![cfg(feature = "fs")]

use std::io;
use std::path::Path;

use cordwood_log::codec::Encoder;
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::ops::{self, PackOptions, Report, SalvageOptions};
use cordwood_log::read::SliceSource;
use cordwood_log::segments::name_of;
use cordwood_log::{Compression, Dialect, Error, ErrorKind, Hint, LogFormat, ReadOptions, Reader, Unsupported};

const FOO: &[u8] = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
const MARK_STORED: &[u8] = b"\x90\x26\x4b\x92\x0a\x00\x48cordwood\x01\x00";
const STORED: LogFormat = LogFormat::new(Dialect::PACKED);
const ZSTD: LogFormat = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd);

/// The packed formats that this build can write.
const PACKED: &[LogFormat] = if cfg!(feature = "zstd") {
    &[STORED, ZSTD]
} else {
    &[STORED]
};

/// Returns short and long records. zstd makes some of them shorter.
fn records() -> Vec<Vec<u8>> {
    let noise = |seed: usize, at: usize| (((seed * 7_919 + at) * 2_654_435_761) >> 13) as u8;
    let lens = (0..3000).map(|number| number * 7_919 % 150).chain([5_000, 70_000, 0]);
    let record = |(number, len): (usize, usize)| match number % 3 {
        0 => (0..len).map(|at| noise(number, at)).collect(),
        _ => vec![number as u8; len],
    };
    lens.enumerate().map(record).collect()
}

fn log(format: impl Into<LogFormat>, records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, format).expect("a format that is written");
    for record in records {
        encoder.encode(record, &mut file);
    }
    encoder.start(&mut file);
    encoder.finish(&mut file);
    file
}

/// Packs `file` in its own directory, and returns the new log. Asserts that no file exists after a
/// failure.
fn pack(file: &[u8], format: impl Into<LogFormat>) -> Result<(Vec<u8>, Report), Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let destination = directory.path().join("new.log");
    let options = PackOptions::default().with_format(format);
    let packed = ops::pack(SliceSource::new(file), &destination, &options);
    let entries = directory.path().read_dir().expect("the directory").count();
    assert_eq!(entries, usize::from(packed.is_ok()));
    packed.map(|report| (std::fs::read(destination).expect("the new log"), report))
}

fn refused(file: &[u8]) -> Error {
    pack(file, STORED).expect_err("it is refused")
}

#[test]
fn unpacking_a_packed_log_restores_the_file() -> Result<(), Error> {
    for dialect in [Dialect::LEVELDB, Dialect::WANDB, Dialect::SWANLAB] {
        for records in [records(), Vec::new()] {
            let file = log(dialect, &records);
            let payload_len: usize = records.iter().map(Vec::len).sum();
            for &format in PACKED {
                let (packed, report) = pack(&file, format)?;
                assert_eq!(
                    (report.record_count, report.payload_len),
                    (records.len() as u64, payload_len as u64)
                );
                assert_eq!(report.file_len, Some(file.len() as u64));
                let mut reader = Reader::from_slice(&packed, ReadOptions::default());
                assert_eq!(reader.format()?, format);
                for record in &records {
                    assert!(reader.next_record()?.is_some_and(|found| found.data == record));
                }
                assert!(reader.next_record()?.is_none());
                assert!(pack(&packed, dialect)?.0 == file, "{dialect} {format:?}");
                // A packed log can also be copied from one codec to the other.
                assert!(
                    pack(&packed, STORED)?.0 == pack(&file, STORED)?.0,
                    "{dialect} {format:?}"
                );
            }
        }
    }
    Ok(())
}

/// The expected bytes are built by hand.
#[test]
fn a_packed_log_consists_of_a_mark_and_containers() -> Result<(), Error> {
    assert_eq!(pack(b"", STORED)?.0, MARK_STORED);
    assert_eq!(pack(FOO, STORED)?.0, [MARK_STORED, FOO].concat());
    let container = pack(&FOO.repeat(2), STORED)?.0;
    assert_eq!(container[17 + 4..], *b"\x0a\x00\x40\x00\x02\x03\x03foofoo");
    Ok(())
}

/// Two packed logs that were joined have a mark in the middle. The mark is not a record, so
/// unpacking drops it.
#[test]
fn unpacking_drops_a_mark_in_the_middle_of_a_log() -> Result<(), Error> {
    assert_eq!(
        pack(&[MARK_STORED, FOO, MARK_STORED, FOO].concat(), Dialect::LEVELDB)?.0,
        FOO.repeat(2)
    );
    Ok(())
}

/// Each case has a region that may have been a record: its start, its end, and its reason.
#[test]
fn pack_rejects_regions_that_may_have_been_records() {
    let zeros = |len| vec![0; len];
    let flipped = [b"\xdd\x5f\xb3\x7a\x03\x00\x01fog", FOO].concat();
    let two_blocks = |last: &[u8]| [FOO, &zeros(BLOCK_LEN - 10), last].concat();
    for (file, start, end, reason) in [
        (flipped, 0, 10, "checksum_mismatch"),
        ([FOO, b"torn"].concat(), 10, 14, "torn_tail"),
        (b"torn".to_vec(), 0, 4, "torn_tail"),
        // These zeros do not extend to the end of a block.
        ([FOO, &zeros(90)].concat(), 10, 100, "zero_fill"),
        // These zeros are longer than the rest of a block, as in a preallocated file.
        (
            [FOO, &zeros(2 * BLOCK_LEN - 10)].concat(),
            10,
            2 * BLOCK_LEN as u64,
            "zero_fill",
        ),
        // This block does not contain a record.
        (zeros(BLOCK_LEN), 0, BLOCK_LEN as u64, "zero_fill"),
        // These zeros are before another record, or before damage.
        (two_blocks(FOO), 10, BLOCK_LEN as u64, "zero_fill"),
        (two_blocks(b"torn"), 10, BLOCK_LEN as u64, "zero_fill"),
        (
            [MARK_STORED, b"\x59\x42\xc1\x06\x09\x00\x40\x00\x03\x01\x00\x03afoe"].concat(),
            17,
            33,
            "checksum_mismatch",
        ),
    ] {
        let error = refused(&file);
        let ErrorKind::Corruption { region, .. } = error.kind else {
            panic!("{error}");
        };
        assert_eq!((region.start, region.end, region.reason.as_str()), (start, end, reason));
        assert_eq!(error.hint, Some(Hint::Salvage));
    }
}

#[test]
fn packing_drops_the_padding_of_the_log() -> Result<(), Error> {
    let padded = [FOO, &vec![0; BLOCK_LEN - 10]].concat();
    let (packed, report) = pack(&padded, STORED)?;
    assert_eq!(packed, [MARK_STORED, FOO].concat());
    assert_eq!(
        (report.file_len, report.zeros_offset()),
        (Some(BLOCK_LEN as u64), Some(10))
    );
    Ok(())
}

/// No data is lost by dropping these bytes. They are fragments that old versions of LevelDB wrote,
/// and trailers that no engine reads.
#[test]
fn packing_drops_empty_first_fragments_and_nonzero_trailers() -> Result<(), Error> {
    let crc = crc32c::crc32c(&[2])
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
        .to_le_bytes();
    let empty_first = [&crc[..], b"\x00\x00\x02"].concat();
    for end in [&b"\x01\x02\x03"[..], &empty_first] {
        let len = BLOCK_LEN - end.len();
        let record = log(Dialect::LEVELDB, &[vec![1; len - 7]]);
        let (packed, report) = pack(&[&record, end, FOO].concat(), STORED)?;
        assert_eq!((report.record_count, report.findings.len()), (2, end.len() as u64));
        let again = pack(&packed, Dialect::LEVELDB)?.0;
        assert_eq!(again, log(Dialect::LEVELDB, &[vec![1; len - 7], b"foo".to_vec()]));
    }
    Ok(())
}

#[test]
fn pack_rejects_logs_that_unpacking_could_not_restore() {
    let numbered = |dialect| log(LogFormat::new(dialect).with_log_number(7), &[b"foo".to_vec()]);
    // SwanLab's versions differ only in the last byte of the file header.
    let swanlab = |version| {
        let mut file = log(Dialect::SWANLAB, &[b"{\"model_type\": 1}".to_vec()]);
        file[6] = version;
        file
    };
    let timestamp_sizes = b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00";
    let compressed = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    for (file, text, metadata_offset) in [
        (numbered(Dialect::RECYCLABLE), "with a log number", None),
        (numbered(Dialect::PEBBLE), "with a log number", None),
        // This dialect differs from `WANDB` only where a block ends.
        (log(Dialect::WANDB_OLD, &[vec![1; BLOCK_LEN]]), "wandb_old logs", None),
        (swanlab(0), "swanlab logs of version 0", None),
        (swanlab(1), "swanlab logs of version 1", None),
        (
            [FOO, timestamp_sizes].concat(),
            "leveldb logs with metadata (at offset 10)",
            Some(10),
        ),
        ([&compressed[..], FOO].concat(), "rocksdb logs with compression", None),
    ] {
        let error = refused(&file);
        assert!(error.to_string().contains(text), "{error}");
        let ErrorKind::NeverPacked {
            metadata_offset: found, ..
        } = error.kind
        else {
            panic!("{error}");
        };
        assert_eq!((found, error.hint), (metadata_offset, None));
        assert_eq!(error.offset(), metadata_offset);
    }
}

#[test]
fn pack_rejects_unsupported_formats() {
    let unsupported = |format: LogFormat| match pack(FOO, format).map(drop) {
        Err(Error {
            kind: ErrorKind::Unsupported { unsupported, .. },
            ..
        }) => unsupported,
        other => panic!("{other:?}"),
    };
    for dialect in [
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
        Dialect::RECYCLABLE,
        Dialect::WANDB_OLD,
    ] {
        assert_eq!(unsupported(dialect.into()), Unsupported::Packing);
    }
    assert_eq!(unsupported(STORED.with_log_number(1)), Unsupported::LogNumber);
    let compressed = LogFormat::new(Dialect::LEVELDB).with_compression(Compression::Zstd);
    assert_eq!(unsupported(compressed), Unsupported::Compression);
    if cfg!(not(feature = "zstd")) {
        assert_eq!(unsupported(ZSTD), Unsupported::ZstdFeature);
    }
}

#[test]
fn pack_rejects_records_over_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = PackOptions::default().with_format(STORED).with_record_len_max(2);
    let error = ops::pack(SliceSource::new(FOO), directory.path().join("new.log"), &options).unwrap_err();
    assert!(error.to_string().contains("a record longer than the limit"), "{error}");
    assert_eq!(error.hint, Some(Hint::RaiseRecordLenMax));
}

#[test]
fn packing_never_replaces_an_existing_file() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let [log, packed] = ["a.log", "packed.log"].map(|name| directory.path().join(name));
    std::fs::write(&log, FOO)?;
    let options = PackOptions::default().with_format(STORED);
    ops::pack_file(&log, &packed, &options)?;
    for destination in [&log, &packed] {
        let error = ops::pack_file(&log, destination, &options).unwrap_err();
        assert_eq!(error.path.as_deref(), Some(destination.as_path()));
        assert!(matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists));
    }
    assert_eq!(std::fs::read(&packed)?, [MARK_STORED, FOO].concat());
    Ok(())
}

#[test]
fn salvage_and_pack_reject_segment_names_as_targets() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let copies = |destination: &Path| {
        let salvaged = ops::salvage(SliceSource::new(FOO), destination, &SalvageOptions::default());
        let options = PackOptions::default().with_format(STORED);
        [salvaged, ops::pack(SliceSource::new(FOO), destination, &options)]
    };
    let segment = directory.path().join(name_of(99));
    for error in copies(&segment).map(Result::unwrap_err) {
        assert_eq!(
            (error.path.as_deref(), error.hint),
            (Some(&*segment), Some(Hint::OtherName))
        );
        assert!(matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput));
    }
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 0);
    // This name is the name of a LevelDB log.
    assert!(copies(&directory.path().join("000099.log"))[0].is_ok());
    Ok(())
}
