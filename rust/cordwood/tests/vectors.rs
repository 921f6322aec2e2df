//! Reads logs that other programs wrote. They are in `tests/vectors` at the root of the repository,
//! and in the directory that `CORDWOOD_CORPUS` names. Without that directory, the test that reads
//! it is ignored.

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};

use common::{Found, read_all};
use cordwood_log::damage::Severity;
use cordwood_log::ops::{DETECT_LEN, Detection, detect};
use cordwood_log::{Dialect, End, LogFormat, OnCorruption, ReadOptions, Reader};

/// The known facts about a file.
struct File {
    name: &'static str,
    dialect: LogFormat,
    /// The dialect that the first 64 bytes show, if they show one.
    by_64_bytes: Option<LogFormat>,
    record_count: usize,
    /// The length of the longest record.
    longest: usize,
    /// Each skipped region has a start offset, an end offset and a reason.
    skipped: &'static [(u64, u64, &'static str)],
}

/// `detect` does not see file names, so the log number comes from the first fragment.
const VECTORS: &[File] = &[
    File {
        by_64_bytes: None,
        ..File::leveldb("appengine/export/output-0", 60, 775)
    },
    File::leveldb("leveldb/plyvel/000003.log", 24, 100_027),
    File::leveldb("leveldb/plyvel/MANIFEST-000002", 2, 28),
    File {
        skipped: &[(185, 32_768, "zero_fill"), (32_768, 65_536, "zero_fill")],
        ..File::leveldb("leveldb/preallocated/000003.log", 5, 30)
    },
    File {
        skipped: &[(50, 32_768, "zero_fill"), (32_768, 65_536, "zero_fill")],
        ..File::leveldb("leveldb/preallocated/MANIFEST-000002", 2, 28)
    },
    File {
        name: "pebble/recyclable-trailer/000002.log",
        dialect: LogFormat::new(Dialect::PEBBLE).with_log_number(2),
        // Only the trailer shows that Pebble wrote the log.
        by_64_bytes: Some(LogFormat::new(Dialect::RECYCLABLE).with_log_number(2)),
        record_count: 51,
        longest: 34_982,
        skipped: &[(37_779, 37_790, "end_trailer")],
    },
    File {
        name: "pebble/walsync/000007.log",
        dialect: LogFormat::new(Dialect::PEBBLE).with_log_number(7),
        by_64_bytes: Some(LogFormat::new(Dialect::PEBBLE).with_log_number(7)),
        record_count: 51,
        longest: 34_574,
        skipped: &[(37_787, 37_798, "end_trailer")],
    },
    // Timestamp lengths follow the first records.
    File {
        skipped: &[(153, 166, "metadata")],
        ..File::leveldb("rocksdb/late-timestamps-plain/000004.log", 43, 76)
    },
    File {
        name: "rocksdb/late-timestamps-recycled/000014.log",
        dialect: LogFormat::new(Dialect::RECYCLABLE).with_log_number(14),
        by_64_bytes: Some(LogFormat::new(Dialect::RECYCLABLE).with_log_number(14)),
        record_count: 43,
        longest: 76,
        skipped: &[(165, 182, "metadata"), (3062, 48_701, "stale")],
    },
    // This log is neither recycled nor compressed, so its bytes are the same as LevelDB's.
    File::leveldb("rocksdb/plain/000004.log", 16, 32_772),
    File {
        name: "rocksdb/recycled/000014.log",
        // No byte distinguishes this log from a Pebble log.
        dialect: LogFormat::new(Dialect::RECYCLABLE).with_log_number(14),
        by_64_bytes: Some(LogFormat::new(Dialect::RECYCLABLE).with_log_number(14)),
        record_count: 14,
        longest: 40_027,
        skipped: &[(41_668, 101_133, "stale")],
    },
    File {
        name: "swanlab/run/run.swanlab",
        dialect: LogFormat::new(Dialect::SWANLAB),
        by_64_bytes: Some(LogFormat::new(Dialect::SWANLAB)),
        record_count: 4,
        longest: 40_000,
        skipped: &[(0, 7, "file_header")],
    },
    File {
        name: "wandb/run/run-1.wandb",
        dialect: LogFormat::new(Dialect::WANDB),
        by_64_bytes: Some(LogFormat::new(Dialect::WANDB)),
        record_count: 16,
        longest: 16_569,
        skipped: &[(0, 7, "file_header")],
    },
];

const CORPUS: &[File] = &[
    File::leveldb("leveldb/plyvel/000003.log", 2_367, 300_020),
    File::leveldb("leveldb/plyvel/MANIFEST-000002", 2, 28),
    File::leveldb("leveldb/100k-keys/000004.log", 17_613, 33),
    File {
        // The first fragment fills the block.
        by_64_bytes: None,
        ..File::leveldb("leveldb/large-record/000003.log", 3, 97_288)
    },
    File::leveldb("leveldb/chrome-indexeddb/000003.log", 18, 624),
    File {
        by_64_bytes: None,
        ..File::leveldb("leveldb/log-only/000003.log", 4, 472)
    },
    File {
        skipped: &[(139, 32_768, "zero_fill"), (32_768, 65_536, "zero_fill")],
        ..File::leveldb("leveldb/preallocated/000003.log", 5, 23)
    },
    File {
        skipped: &[(50, 32_768, "zero_fill"), (32_768, 65_536, "zero_fill")],
        ..File::leveldb("leveldb/preallocated/MANIFEST-000002", 2, 28)
    },
    // This log is neither recycled nor compressed, so its bytes are the same as LevelDB's.
    File::leveldb("rocksdb/plain/000010.log", 300, 5_024),
    File {
        name: "rocksdb/recycled-stale-tail/000010.log",
        // No byte distinguishes this log from a Pebble log.
        dialect: LogFormat::new(Dialect::RECYCLABLE).with_log_number(10),
        by_64_bytes: None,
        record_count: 300,
        longest: 5_024,
        skipped: &[(412_981, 471_062, "stale")],
    },
    File {
        name: "pebble/walsync/000007.log",
        dialect: LogFormat::new(Dialect::PEBBLE).with_log_number(7),
        by_64_bytes: Some(LogFormat::new(Dialect::PEBBLE).with_log_number(7)),
        record_count: 30,
        longest: 30,
        skipped: &[(1_450, 1_461, "end_trailer")],
    },
    File {
        name: "pebble/recyclable-trailer/000002.log",
        dialect: LogFormat::new(Dialect::PEBBLE).with_log_number(2),
        // Only the trailer shows that Pebble wrote the log.
        by_64_bytes: Some(LogFormat::new(Dialect::RECYCLABLE).with_log_number(2)),
        record_count: 50,
        longest: 58,
        skipped: &[(2_998, 3_009, "end_trailer")],
    },
    File {
        name: "wandb/offline-run/run-g9dvvkua.wandb",
        dialect: LogFormat::new(Dialect::WANDB),
        by_64_bytes: Some(LogFormat::new(Dialect::WANDB)),
        record_count: 10,
        longest: 7_211,
        skipped: &[(0, 7, "file_header")],
    },
    File {
        by_64_bytes: None,
        ..File::leveldb("firestore/daily-cat/output-0", 11, 38_539)
    },
    File {
        by_64_bytes: None,
        ..File::leveldb("firestore/swift-guide/output-0", 16, 457)
    },
];

impl File {
    const fn leveldb(name: &'static str, record_count: usize, longest: usize) -> File {
        File {
            name,
            dialect: LogFormat::new(Dialect::LEVELDB),
            by_64_bytes: Some(LogFormat::new(Dialect::LEVELDB)),
            record_count,
            longest,
            skipped: &[],
        }
    }
}

/// The known facts about a file, its path, and its bytes.
type OnDisk = (&'static File, PathBuf, Vec<u8>);

/// Returns each file in a directory, with its path and its bytes.
fn read(directory: &Path, files: &'static [File]) -> Vec<OnDisk> {
    let read = |file: &'static File| {
        let path = directory.join(file.name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (file, path, bytes)
    };
    files.iter().map(read).collect()
}

fn directory_of_vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}

fn vectors() -> Vec<OnDisk> {
    read(&directory_of_vectors(), VECTORS)
}

#[test]
fn detects_every_vector_file() {
    are_detected(&vectors());
}

#[test]
fn the_first_64_bytes_of_a_file_either_identify_its_dialect_or_are_inconclusive() {
    are_detected_by_64_bytes_or_unclear(&vectors());
}

#[test]
fn every_vector_file_can_be_read_without_naming_its_dialect() {
    are_read_without_a_hint(&vectors());
}

#[test]
fn slow_reads_do_not_change_the_detected_dialect() {
    are_read_slowly(&vectors());
}

#[test]
#[ignore = "needs the directory that CORDWOOD_CORPUS names: see tests/vectors/README.md"]
fn corpus_files_can_be_detected_and_read_without_naming_a_dialect() {
    let directory = std::env::var_os("CORDWOOD_CORPUS").expect("CORDWOOD_CORPUS names a directory");
    let files = read(Path::new(&directory), CORPUS);
    are_detected(&files);
    are_detected_by_64_bytes_or_unclear(&files);
    are_read_without_a_hint(&files);
    are_read_slowly(&files);
}

fn are_detected(files: &[OnDisk]) {
    for (file, _, bytes) in files {
        let head = &bytes[..bytes.len().min(DETECT_LEN)];
        assert_eq!(detect(head), Detection::Log(file.dialect), "{}", file.name);
    }
}

fn are_detected_by_64_bytes_or_unclear(files: &[OnDisk]) {
    for (file, _, bytes) in files {
        let head = &bytes[..bytes.len().min(64)];
        let shown = file.by_64_bytes.map_or(Detection::Unclear, Detection::Log);
        assert_eq!(detect(head), shown, "{}", file.name);
    }
}

/// Reads each file by its path, and again from its bytes, which have no name with a log number.
fn are_read_without_a_hint(files: &[OnDisk]) {
    for (file, path, bytes) in files {
        for policy in [OnCorruption::Fail, OnCorruption::Stop, OnCorruption::Salvage] {
            let options = ReadOptions::default().with_on_corruption(policy);
            let mut by_path = Reader::open_with(path, options.clone()).expect(file.name);
            check(file, read_all(&mut by_path), bytes.len() as u64);
            assert_eq!(by_path.format().expect(file.name), file.dialect);
            check(
                file,
                read_all(&mut Reader::from_slice(bytes, options)),
                bytes.len() as u64,
            );
        }
    }
}

fn check(file: &File, (events, end): (Vec<Found>, End), file_len: u64) {
    let mut lens = Vec::new();
    let mut skipped = Vec::new();
    for event in events {
        match event {
            Found::Record { data, .. } => lens.push(data.len()),
            Found::Skipped(region) => {
                assert_eq!(region.reason.severity(), Severity::Info, "{}: {region}", file.name);
                skipped.push((region.start, region.end, region.reason.as_str()));
            }
        }
    }
    assert_eq!(lens.len(), file.record_count, "{}", file.name);
    assert_eq!(lens.into_iter().max(), Some(file.longest), "{}", file.name);
    assert_eq!(skipped, file.skipped, "{}", file.name);
    assert_eq!(end, End::Clean { offset: file_len }, "{}", file.name);
}

/// Reads at most 1,000 bytes at a time, as a slow pipe does.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1_000);
        self.0.read(&mut buffer[..len])
    }
}

fn are_read_slowly(files: &[OnDisk]) {
    for (file, _, bytes) in files {
        let mut reader = Reader::new(Slow(bytes), ReadOptions::default());
        check(file, read_all(&mut reader), bytes.len() as u64);
        assert_eq!(reader.format().expect(file.name), file.dialect);
    }
}

/// The name of the file states which log it is. The contents do not, because the file was renamed
/// to be recycled and has not been written to yet.
#[test]
fn a_file_renamed_for_recycling_contains_only_stale_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let renamed = directory.path().join("000015.log");
    std::fs::copy(directory_of_vectors().join("rocksdb/recycled/000014.log"), &renamed).expect("a copy");
    let (events, end) = read_all(&mut Reader::open(&renamed).expect("a file"));
    let [Found::Skipped(region)] = events[..] else {
        panic!("{} events", events.len())
    };
    assert_eq!(
        (region.start, region.end, region.reason.as_str()),
        (0, 101_133, "stale")
    );
    assert_eq!(end, End::Clean { offset: 101_133 });
}
