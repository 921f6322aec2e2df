//! Tests verify, stat and salvage for logs in every dialect.

use std::io;

#[cfg(feature = "zstd")]
use cordwood_log::Compression;
#[cfg(not(feature = "zstd"))]
use cordwood_log::Unsupported;
use cordwood_log::codec::Encoder;
use cordwood_log::format::BLOCK_LEN;
use cordwood_log::ops::{self, SalvageOptions};
use cordwood_log::parallel;
use cordwood_log::read::SliceSource;
use cordwood_log::{Dialect, ErrorKind, LogFormat, OnCorruption, ReadOptions, Reader};

const DIALECTS: [LogFormat; 7] = [
    LogFormat::new(Dialect::LEVELDB),
    LogFormat::new(Dialect::ROCKSDB).with_log_number(3),
    LogFormat::new(Dialect::PEBBLE).with_log_number(3),
    LogFormat::new(Dialect::RECYCLABLE).with_log_number(3),
    LogFormat::new(Dialect::WANDB),
    LogFormat::new(Dialect::WANDB_OLD),
    LogFormat::new(Dialect::SWANLAB),
];

fn records() -> Vec<Vec<u8>> {
    (0..300_usize)
        .map(|i| vec![i as u8; i * 7_919 % 1_500])
        .chain([vec![1; 70_000]])
        .collect()
}

/// Returns a closed log of `records`, and the offset at which each record starts.
fn log(dialect: LogFormat) -> (Vec<u8>, Vec<u64>) {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, dialect).unwrap();
    let offsets = records()
        .iter()
        .map(|record| encoder.encode(record, &mut file))
        .collect();
    encoder.finish(&mut file);
    (file, offsets)
}

fn read(file: &[u8], options: ReadOptions) -> Vec<Vec<u8>> {
    let mut reader = Reader::from_slice(file, options);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("no damage") {
        records.push(record.data.to_vec());
    }
    records
}

#[test]
fn the_lengths_in_the_statistics_add_up_to_the_file_length() -> Result<(), cordwood_log::Error> {
    for dialect in DIALECTS {
        let (file, _) = log(dialect);
        let stat = ops::stat(SliceSource::new(&file), &ReadOptions::default())?;
        let header_len = if dialect.log_number.is_some() { 11 } else { 7 };
        let fragments = stat.full_count + stat.first_count + stat.middle_count + stat.last_count;
        assert_eq!(stat.record_count, 301);
        assert_eq!(stat.header_len, header_len * fragments, "{dialect:?}");
        assert_eq!(
            stat.payload_len,
            records().iter().map(|record| record.len() as u64).sum::<u64>()
        );
        assert_eq!(
            stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len,
            file.len() as u64,
            "{dialect:?}"
        );
    }
    Ok(())
}

#[test]
fn verify_returns_the_same_report_with_any_number_of_threads() -> Result<(), cordwood_log::Error> {
    for dialect in DIALECTS {
        let (mut file, offsets) = log(dialect);
        file[offsets[100] as usize + 20] ^= 1;
        let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
        let one = ops::verify(SliceSource::new(&file), &options)?;
        let named = options.with_format(one.format);
        for count in [2, 5] {
            let parts = parallel::Parts::new(&named, Some(file.len() as u64), BLOCK_LEN as u64);
            let readers = (0..count).map(|_| Reader::from_slice(&file, named.clone()));
            assert_eq!(parallel::verify_parts(readers.collect(), &parts)?, one, "{dialect:?}");
        }
        let flips: Vec<_> = one
            .findings
            .listed()
            .iter()
            .filter_map(|finding| finding.bit_flip)
            .collect();
        assert_eq!(flips.len(), 1, "{dialect:?}");
        assert_eq!((flips[0].offset, flips[0].bit), (offsets[100] + 20, 0));
    }
    Ok(())
}

/// The salvaged log must belong to the same engine as the source.
#[test]
fn salvaging_preserves_the_dialect_of_a_log() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let (mut file, offsets) = log(dialect);
        file[offsets[100] as usize + 20] ^= 1;
        let destination = directory.path().join(number.to_string());
        let report = ops::salvage(SliceSource::new(&file), &destination, &SalvageOptions::default())?;
        assert_eq!(report.record_count, 300);
        let mut expected = records();
        expected.remove(100);
        let salvaged = std::fs::read(destination)?;
        assert!(read(&salvaged, ReadOptions::default()) == expected);
        let again = Reader::from_slice(&salvaged, ReadOptions::default()).format()?;
        let was = Reader::from_slice(&log(dialect).0, ReadOptions::default()).format()?;
        assert_eq!(again, was);
    }
    Ok(())
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_log_can_be_verified_summarized_and_salvaged() -> Result<(), Box<dyn std::error::Error>> {
    let dialect = LogFormat::new(Dialect::ROCKSDB)
        .with_log_number(3)
        .with_compression(Compression::Zstd);
    let (file, _) = log(dialect);
    assert!(read(&file, ReadOptions::default()) == records());
    let stat = ops::stat(SliceSource::new(&file), &ReadOptions::default())?;
    assert!(stat.stored_len < stat.payload_len / 2);
    assert_eq!(
        stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len,
        file.len() as u64
    );
    // A range that starts later does not show how records are compressed, so the start of the file
    // is also read.
    let options = ReadOptions::default().with_range(file.len() as u64 / 2..);
    let found = read(&file, options);
    assert!(!found.is_empty() && records().ends_with(&found));
    Ok(())
}

/// Salvages `file` under the name `name` in an empty directory. Returns the new log and the report.
/// Asserts that a copy in memory gives the same result.
fn salvage_as(
    file: &[u8],
    name: &str,
    options: &SalvageOptions,
) -> Result<(Vec<u8>, ops::Report), cordwood_log::Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let destination = directory.path().join(name);
    let report = ops::salvage(SliceSource::new(file), &destination, options)?;
    let copy = std::fs::read(destination).expect("a new log");
    let mut in_memory = Vec::new();
    let again = ops::salvage_to(SliceSource::new(file), &mut in_memory, options)?;
    assert!((&in_memory, &again) == (&copy, &report));
    Ok((copy, report))
}

/// A destination that is full is an error, and so is a destination that cannot be flushed.
#[test]
fn salvaging_returns_the_error_of_a_failing_writer() {
    struct Full {
        is_flushed: bool,
    }
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.is_flushed {
                Ok(bytes.len())
            } else {
                Err(std::io::ErrorKind::StorageFull.into())
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
    }
    for is_flushed in [false, true] {
        let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
        let error = ops::salvage_to(source, Full { is_flushed }, &SalvageOptions::default()).unwrap_err();
        let is_full = |source: &std::io::Error| source.kind() == std::io::ErrorKind::StorageFull;
        assert!(
            matches!(&error.kind, ErrorKind::Io { source, .. } if is_full(source)),
            "{error}"
        );
    }
}

/// An undamaged log must be copied byte for byte. No trailer is added, and no log number is lost or
/// added.
#[test]
fn salvaging_an_undamaged_log_produces_an_identical_log() -> Result<(), Box<dyn std::error::Error>> {
    for dialect in DIALECTS {
        let mut file = Vec::new();
        let mut encoder = Encoder::with_format(0, dialect).unwrap();
        for record in records() {
            encoder.encode(&record, &mut file);
        }
        // The source is the log as its writer left it, both open and closed.
        let open = file.clone();
        encoder.finish(&mut file);
        for file in [open, file] {
            for options in [
                SalvageOptions::default(),
                SalvageOptions::default().with_format(dialect),
            ] {
                let (saved, report) = salvage_as(&file, "saved.log", &options)?;
                assert!(saved == file, "{dialect:?}");
                assert_eq!(report.not_kept, []);
            }
        }
    }
    Ok(())
}

/// This build cannot read any record of such a log. A new log would be empty, and would look as if
/// it contained everything that could be saved.
#[cfg(not(feature = "zstd"))]
#[test]
fn salvaging_compressed_logs_requires_zstd() -> Result<(), Box<dyn std::error::Error>> {
    // These are RocksDB's record that declares the compression, and a fragment.
    let file = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00\xdd\x5f\xb3\x7a\x03\x00\x01foo";
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("damaged.log");
    std::fs::write(&source, file)?;
    let destination = directory.path().join("saved.log");
    let refused = ops::salvage_file(&source, &destination, &SalvageOptions::default()).unwrap_err();
    let unsupported = Unsupported::ZstdFeature;
    assert!(
        matches!(&refused.kind, ErrorKind::Unsupported { unsupported: found, .. } if *found == unsupported),
        "{refused:?}"
    );
    assert_eq!(refused.path.as_deref(), Some(source.as_path()));
    assert!(!destination.exists());
    assert_eq!(directory.path().read_dir()?.count(), 1);
    Ok(())
}

/// The hand-built bytes are the lengths of timestamps (type 10), without which keys cannot be read,
/// and records of type 1. The file has a log number in its name.
#[test]
fn salvaging_preserves_engine_metadata() -> Result<(), Box<dyn std::error::Error>> {
    let timestamps = b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00";
    let foo = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
    let bar = b"\xba\xea\xec\x44\x03\x00\x01bar";
    let file = [timestamps.as_slice(), foo, bar].concat();
    let directory = tempfile::tempdir()?;
    let (source, destination) = (directory.path().join("000010.log"), directory.path().join("000011.log"));
    std::fs::write(&source, &file)?;
    ops::salvage_file(&source, &destination, &SalvageOptions::default())?;
    assert_eq!(std::fs::read(&destination)?, file);

    // If a block has no room for the metadata, the metadata starts the next block.
    let mut long = vec![0; 32_768 - 5];
    let len = long.len() - 7;
    long[..7].copy_from_slice(b"\0\0\0\0\0\0\x01");
    long[4..6].copy_from_slice(&(len as u16).to_le_bytes());
    let crc = cordwood_log::crc32c::mask(cordwood_log::crc32c::crc32c(&long[6..]));
    long[..4].copy_from_slice(&crc.to_le_bytes());
    let file = [
        timestamps.as_slice(),
        &[0; 32_768 - 13],
        &long,
        &[0; 5],
        timestamps,
        foo,
    ]
    .concat();
    let (saved, report) = salvage_as(
        &file,
        "saved.log",
        &SalvageOptions::default().with_dialect(Dialect::ROCKSDB),
    )?;
    let mut reader = Reader::from_slice(&saved, ReadOptions::default());
    assert_eq!(reader.next_record()?.map(|record| record.data.len()), Some(len));
    assert_eq!(
        reader.next_record()?.map(|record| record.data.to_vec()),
        Some(b"foo".to_vec())
    );
    assert_eq!(reader.info().timestamp_lens.get(&1), Some(&8));
    assert_eq!(report.record_count, 2);
    Ok(())
}

/// The copy must be the same as the log, byte for byte. The metadata starts the next block if it
/// does not fit, and ends the block if it just fits.
#[test]
fn salvaging_preserves_metadata_at_the_end_of_a_block() -> Result<(), Box<dyn std::error::Error>> {
    let timestamps = b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00";
    for left in [0, 1, 6, 7, 12, 13, 14, 20] {
        let mut file = timestamps.to_vec();
        let mut encoder = Encoder::new(timestamps.len() as u64);
        encoder.encode(&vec![1; BLOCK_LEN - left - timestamps.len() - 7], &mut file);
        assert_eq!(file.len(), BLOCK_LEN - left);
        if left < timestamps.len() {
            file.resize(BLOCK_LEN, 0);
        }
        file.extend(timestamps);
        let mut encoder = Encoder::new(file.len() as u64);
        for record in [&b"foo"[..], &[2; 40_000]] {
            encoder.encode(record, &mut file);
        }
        let options = SalvageOptions::default().with_dialect(Dialect::ROCKSDB);
        let (saved, report) = salvage_as(&file, "saved.log", &options)?;
        assert!(saved == file, "{left}");
        assert_eq!(report.not_kept, []);
    }
    Ok(())
}

/// The record that declares the compression must come first.
#[cfg(feature = "zstd")]
#[test]
fn salvaging_preserves_the_metadata_of_a_compressed_log() -> Result<(), Box<dyn std::error::Error>> {
    let timestamps = b"\x3a\x99\xa1\x6e\x06\x00\x0a\x01\x00\x00\x00\x08\x00";
    let mut compressed = Vec::new();
    let format = LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd);
    Encoder::with_format(0, format)?.encode(b"foo", &mut compressed);
    let (declaration, foo) = compressed.split_at(11);
    let file = [declaration, timestamps, foo].concat();
    let (saved, _) = salvage_as(&file, "saved.log", &SalvageOptions::default())?;
    assert_eq!(saved, file);
    Ok(())
}

#[test]
fn salvaging_preserves_the_version_in_the_file_header() -> Result<(), Box<dyn std::error::Error>> {
    for version in [0, 1] {
        let mut file = Vec::new();
        Encoder::with_format(0, Dialect::SWANLAB)?.encode(b"{\"model_type\": 1}", &mut file);
        file[6] = version;
        let (saved, _) = salvage_as(&file, "saved.swanlab", &SalvageOptions::default())?;
        assert_eq!(saved, file);
    }
    Ok(())
}

/// The first blocks would normally show the number, but they are destroyed.
#[test]
fn salvaging_preserves_a_log_number_found_in_a_later_block() -> Result<(), Box<dyn std::error::Error>> {
    let numbered = LogFormat::new(Dialect::RECYCLABLE).with_log_number(3);
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, numbered)?;
    let records: Vec<Vec<u8>> = (0..3000).map(|number: u32| vec![number as u8; 100]).collect();
    let offsets: Vec<u64> = records.iter().map(|record| encoder.encode(record, &mut file)).collect();
    let start = 4 * BLOCK_LEN;
    file[..start].fill(0xff);
    let options = SalvageOptions::default().with_dialect(Dialect::RECYCLABLE);
    let (saved, _) = salvage_as(&file, "saved.log", &options)?;
    let first = offsets.partition_point(|&offset| offset < start as u64);
    let mut expected = Vec::new();
    let mut encoder = Encoder::with_format(0, numbered)?;
    for record in &records[first..] {
        encoder.encode(record, &mut expected);
    }
    assert!(saved == expected);
    Ok(())
}

/// The report names the properties that the new log cannot have.
#[test]
fn salvage_reports_properties_it_cannot_preserve() -> Result<(), Box<dyn std::error::Error>> {
    // This is Pebble's type 9, with log number 1, synced up to 0, and one byte of data.
    let synced = b"\x90\x5d\x84\xdc\x01\x00\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let (saved, report) = salvage_as(synced, "000001.log", &SalvageOptions::default())?;
    assert_eq!(
        report.not_kept.iter().map(|what| what.as_str()).collect::<Vec<_>>(),
        ["synced_offsets"]
    );
    assert_eq!((saved[6], saved.len()), (5, 12));
    Ok(())
}

/// All fragments of the new log have the same form, although a salvaged record may have had another
/// form. Here, a payload that fills its block contains a log, and the header of the payload is
/// destroyed. If the forms were mixed, readers would take one part of the new log for an older log.
#[test]
fn salvaged_records_are_written_in_the_fragment_form_of_the_log() -> Result<(), Box<dyn std::error::Error>> {
    let plain = LogFormat::new(Dialect::ROCKSDB);
    let numbered = plain.with_log_number(7);
    for (own, inner) in [(numbered, plain), (plain, numbered)] {
        let mut encoder = Encoder::with_format(0, inner)?;
        let mut inner = Vec::new();
        for record in [b"inner one", b"inner two"] {
            encoder.encode(record, &mut inner);
        }
        let header_len = if own == numbered { 11 } else { 7 };
        let payload = [vec![0x55; BLOCK_LEN - header_len - inner.len()], inner].concat();
        let mut file = Vec::new();
        let mut encoder = Encoder::with_format(0, own)?;
        encoder.encode(&payload, &mut file);
        for number in 0..3000 {
            encoder.encode(format!("own record {number}").as_bytes(), &mut file);
        }
        file[..20].fill(0xff);
        let (saved, report) = salvage_as(&file, "000007.log", &SalvageOptions::default().with_format(numbered))?;
        assert_eq!(report.record_count, 3002);
        for options in [ReadOptions::default(), ReadOptions::default().with_format(numbered)] {
            let found = read(&saved, options);
            assert_eq!(found[..2], [b"inner one", b"inner two"]);
            assert_eq!(found.len(), 3002);
        }
    }
    Ok(())
}

/// Every reader of a file with this name would take the records for remains of an older log.
#[test]
fn salvage_rejects_a_file_name_with_a_different_log_number() -> Result<(), Box<dyn std::error::Error>> {
    let file = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";
    for (name, is_right) in [("000123.log", true), ("saved.log", true), ("000124.log", false)] {
        match salvage_as(file, name, &SalvageOptions::default()) {
            Ok((saved, _)) => assert!(is_right && saved == file, "{name}"),
            Err(error) => assert!(!is_right && error.to_string().contains("000123.log"), "{error}"),
        }
    }
    Ok(())
}

/// One of the calls succeeds, and the others report that the file exists.
#[test]
fn concurrent_salvages_to_the_same_file_leave_exactly_one_log() -> Result<(), Box<dyn std::error::Error>> {
    let (file, _) = log(LogFormat::new(Dialect::LEVELDB));
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("source.log");
    std::fs::write(&source, &file)?;
    // This is the longest possible file name.
    let name = "n".repeat(255);
    for _ in 0..10 {
        let destination = directory.path().join(&name);
        let results: Vec<_> = std::thread::scope(|scope| {
            let run = || ops::salvage_file(&source, &destination, &SalvageOptions::default());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        for error in results.into_iter().filter_map(Result::err) {
            assert!(error.to_string().contains(&name), "{error}");
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(std::fs::read(&destination)? == file);
        std::fs::remove_file(&destination)?;
        assert_eq!(std::fs::read_dir(directory.path())?.count(), 1, "nothing else is left");
    }
    Ok(())
}
