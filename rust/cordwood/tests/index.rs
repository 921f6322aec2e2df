//! An index returns the same records as iteration, in any order, and never a wrong record.
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::wire::Wire;
use cordwood_log::segments::name_of;
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, LogFileOptions, LogFormat, OnCorruption, ReadOptions, Reader, RecordIndex,
    SegmentedLog, Writer, WriterOptions,
};

const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Fail,
    OnCorruption::Skip,
    OnCorruption::Stop,
    OnCorruption::Salvage,
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Returns mostly short records. Some extend over several blocks, and some are empty. No two
/// records are equal.
fn records(count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let record = |index: usize| {
        let len = match random.below(200) {
            0 => random.below(100_000),
            1..=9 => 0,
            _ => random.below(150),
        };
        let mut record = index.to_le_bytes().to_vec();
        record.extend((0..len).map(|place| (place * 31 + index) as u8));
        record
    };
    (0..count).map(record).collect()
}

fn formats() -> Vec<LogFormat> {
    let mut formats: Vec<LogFormat> = Dialect::ALL.iter().copied().map(LogFormat::new).collect();
    let numbered = Dialect::ALL.iter().filter(|dialect| dialect.has_log_numbers());
    formats.extend(numbered.map(|&dialect| LogFormat::new(dialect).with_log_number(7)));
    if cfg!(feature = "zstd") {
        let zstd = |dialect| LogFormat::new(dialect).with_compression(Compression::Zstd);
        formats.extend([zstd(Dialect::ROCKSDB), zstd(Dialect::PACKED)]);
        formats.push(zstd(Dialect::ROCKSDB).with_log_number(7));
    }
    formats
}

fn log_of(records: &[Vec<u8>], format: LogFormat) -> Vec<u8> {
    let options = WriterOptions::default().with_format(format);
    let mut writer = Writer::with_options(Vec::new(), options).expect("a writer");
    writer.extend(records).expect("records");
    writer.finish().expect("a log")
}

fn all(index: &RecordIndex, indices: &[u64]) -> Result<Vec<Vec<u8>>, Error> {
    let mut records = vec![None; indices.len()];
    index.read(indices, |place, record| {
        assert!(records[place].replace(record.to_vec()).is_none(), "{place} twice");
        Ok::<(), Error>(())
    })?;
    Ok(records.into_iter().map(|record| record.expect("a record")).collect())
}

/// Compares the index of a log with iteration. Reads each record alone, and many records in random
/// order.
#[track_caller]
fn check(path: &Path, options: &ReadOptions, random: &mut Random) -> usize {
    let read: Result<Vec<_>, _> = Reader::open_with(path, options.clone())
        .expect("a log")
        .records()
        .map(|record| record.map(|record| (record.offset, record.data)))
        .collect();
    let (offsets, expected): (Vec<_>, Result<Vec<_>, _>) = match read {
        Ok(records) => {
            let (offsets, records) = records.into_iter().unzip();
            (offsets, Ok(records))
        }
        Err(error) => (Vec::new(), Err(error)),
    };
    let opened = RecordIndex::open([path], options.clone());
    let (expected, index) = match (expected, opened) {
        (Ok(expected), Ok(index)) => (expected, index),
        (Err(expected), Err(error)) => {
            assert_eq!(error.to_string(), expected.to_string());
            return 0;
        }
        (expected, opened) => panic!("{}: {expected:?}, {opened:?}", path.display()),
    };
    let count = expected.len();
    assert_eq!(index.len(), count as u64, "{}", path.display());
    assert_eq!(index.get(count as u64).expect("no error"), None);
    assert_eq!(index.place(count as u64).expect("no error"), None);
    for step in 0..count.min(300) {
        let at = if count <= 300 { step } else { random.below(count) };
        let found = index
            .get(at as u64)
            .unwrap_or_else(|error| panic!("{at} {options:?}: {error}"));
        assert!(found.as_ref() == Some(&expected[at]), "record {at}, {options:?}");
        let place = index.place(at as u64).expect("no error");
        assert_eq!(place, Some((path, offsets[at])), "record {at}, {options:?}");
    }
    for of in [1, 3, 40, 400] {
        let indices: Vec<u64> = (0..(count * 2).min(count / of + 5))
            .map(|_| random.below(count) as u64)
            .collect();
        let found = all(&index, &indices).unwrap_or_else(|error| panic!("{options:?}: {error}"));
        let same = |(&at, record): (&u64, &Vec<u8>)| expected[at as usize] == *record;
        assert!(indices.iter().zip(&found).all(same), "{options:?}");
    }
    count
}

fn files_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files_below(&path, files),
            false => files.push(path),
        }
    }
}

fn check_directory(directory: &Path) {
    let mut files = Vec::new();
    files_below(directory, &mut files);
    let mut random = Random(1);
    let mut counts = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.extension().is_none_or(|name| name != "md"))
    {
        for policy in POLICIES {
            counts.push(check(
                file,
                &ReadOptions::default().with_on_corruption(policy),
                &mut random,
            ));
        }
    }
    assert!(counts.iter().filter(|&&count| count > 1).count() > 40, "{counts:?}");
}

#[test]
fn logs_written_by_engines_are_indexed() {
    check_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors"));
}

#[test]
#[ignore = "needs CORDWOOD_CORPUS"]
fn logs_from_other_projects_are_indexed() {
    check_directory(Path::new(&std::env::var_os("CORDWOOD_CORPUS").expect("a directory")));
}

#[test]
fn undamaged_and_damaged_logs_of_each_format_are_indexed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let mut random = Random(2);
    for format in formats() {
        let records = records(1500, &mut random);
        let whole = log_of(&records, format);
        for round in 0..12 {
            let mut file = whole.clone();
            for _ in 0..round {
                let start = random.below(file.len());
                match random.below(3) {
                    0 => file[start] ^= 1 << random.below(8),
                    1 => file[start..].iter_mut().take(40_000).for_each(|byte| *byte = 0),
                    _ => file.truncate(start.max(whole.len() / 2)),
                }
            }
            fs::write(&path, &file).expect("a file");
            let policy = POLICIES[round % 4];
            for options in [ReadOptions::default().with_format(format), ReadOptions::default()] {
                // This dialect cannot be detected.
                if format.dialect == Dialect::WANDB_OLD && options.dialect.is_none() {
                    continue;
                }
                let count = check(&path, &options.with_on_corruption(policy), &mut random);
                assert!(round > 0 || count == records.len(), "{format:?}: {count}");
            }
        }
    }
}

/// In a damaged block, the records after the damage depend on all bytes of the block. Some of these
/// records contain fragments.
#[test]
fn salvaged_records_are_indexed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let mut random = Random(2222);
    let inner = log_of(&vec![vec![7; 9]; 40], Dialect::LEVELDB.into());
    for format in formats() {
        // In a log with numbers, more of the log decides which bytes are a log inside a record.
        // Such a log is tested in more rounds.
        let rounds = if format.log_number.is_some() { 3 } else { 1 };
        for damage_count in [10, 25, 40].repeat(rounds) {
            let record = |index: usize| {
                let mut record = index.to_le_bytes().to_vec();
                match random.below(500) {
                    0 => record.extend([1; 40_000]),
                    1..=10 => record.extend(&inner),
                    _ => {}
                }
                record
            };
            let mut file = log_of(&(0..2000).map(record).collect::<Vec<_>>(), format);
            for _ in 0..damage_count {
                let start = random.below(file.len());
                match random.below(3) {
                    0 => file[start] ^= 1 << random.below(8),
                    1 => file[start..].iter_mut().take(100).for_each(|byte| *byte = 0),
                    _ => file[start..].iter_mut().take(30).for_each(|byte| *byte = 0x5a),
                }
            }
            fs::write(&path, &file).expect("a file");
            let options = ReadOptions::default().with_format(format);
            check(&path, &options.with_on_corruption(OnCorruption::Salvage), &mut random);
        }
    }
}

/// Damage makes the later records of its block salvaged, even for a reader that has not read the
/// damage.
#[test]
fn seeking_and_iterating_mark_the_same_records_as_salvaged() {
    let (mut random, mut salvaged_count) = (Random(7), 0);
    for format in formats() {
        let mut file = log_of(&records(400, &mut random), format);
        for _ in 0..3 {
            let damaged = random.below(file.len());
            file[damaged] ^= 1 << random.below(8);
        }
        let options = ReadOptions::default().with_format(format);
        let options = options.with_on_corruption(OnCorruption::Salvage);
        let all: Vec<_> = Reader::from_slice(&file, options.clone())
            .records()
            .collect::<Result<_, _>>()
            .expect("records");
        salvaged_count += all.iter().filter(|record| record.is_salvaged).count();
        for expected in &all {
            let mut reader = Reader::from_slice(&file, options.clone());
            reader.seek(expected.offset).expect("a record");
            let found = reader.next_record().expect("no error").expect("a record");
            assert_eq!(
                (found.offset, found.data, found.is_salvaged),
                (expected.offset, &expected.data[..], expected.is_salvaged),
                "{format:?}"
            );
        }
    }
    assert!(salvaged_count > 100, "{salvaged_count}");
}

/// Writes a segmented log, and returns its records.
fn segments(directory: &Path, format: LogFormat, random: &mut Random) -> Vec<Vec<u8>> {
    let records = records(2000, random);
    let options = LogFileOptions::default().with_format(format).with_segment_len(50_000);
    let log = SegmentedLog::open(directory, options).expect("a log");
    records.iter().for_each(|record| {
        log.append(record).expect("room");
    });
    log.close().expect("a log");
    records
}

#[test]
fn a_segmented_log_with_pruned_or_missing_segments_is_indexed() {
    let mut random = Random(3);
    for format in [LogFormat::new(Dialect::LEVELDB), LogFormat::new(Dialect::PACKED)] {
        let directory = tempfile::tempdir().expect("a directory");
        let written = segments(directory.path(), format, &mut random);
        assert_eq!(
            check(directory.path(), &ReadOptions::default(), &mut random),
            written.len()
        );
        let mut names: Vec<PathBuf> = Vec::new();
        files_below(directory.path(), &mut names);
        names.retain(|name| name.extension().is_some());
        names.sort();
        assert!(names.len() > 4, "{names:?}");
        fs::remove_file(&names[0]).expect("a segment");
        check(directory.path(), &ReadOptions::default(), &mut random);
        fs::remove_file(&names[2]).expect("a segment");
        for policy in POLICIES {
            let options = ReadOptions::default().with_on_corruption(policy);
            check(directory.path(), &options, &mut random);
        }
    }
}

/// Records that are read together may be in two segments. The next records may be in a container of
/// the second segment, and that container has been opened only up to the last record read.
#[test]
fn every_record_of_a_container_in_the_next_segment_is_indexed() {
    let mut random = Random(8);
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogFileOptions::default().with_format(Dialect::PACKED);
    let log = SegmentedLog::open(directory.path(), options.with_segment_len(64 << 10)).expect("a log");
    let records: Vec<Vec<u8>> = (0..3000_usize)
        .map(|index| [&index.to_le_bytes()[..], &vec![7; random.below(400)]].concat())
        .collect();
    for some in records.chunks(15) {
        log.extend(some).expect("room");
    }
    log.close().expect("a log");
    let index = RecordIndex::open([directory.path()], ReadOptions::default()).expect("a log");
    for _ in 0..300 {
        let indices: Vec<u64> = (0..200).map(|_| random.below(records.len()) as u64).collect();
        let found = all(&index, &indices).expect("records");
        assert!(
            indices
                .iter()
                .zip(found)
                .all(|(&at, record)| records[at as usize] == record)
        );
    }
}

#[test]
fn an_index_can_cover_more_logs_than_it_keeps_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(4);
    let (mut paths, mut expected) = (Vec::new(), Vec::new());
    for number in 0..90 {
        let records = records(random.below(70), &mut random);
        let path = directory.path().join(format!("{number}.log"));
        let dialect = [Dialect::LEVELDB, Dialect::WANDB, Dialect::PACKED][number % 3];
        fs::write(&path, log_of(&records, dialect.into())).expect("a file");
        paths.push(path);
        expected.extend(records);
    }
    let index = RecordIndex::open(&paths, ReadOptions::default()).expect("logs");
    assert_eq!(index.len(), expected.len() as u64);
    for _ in 0..3000 {
        let at = random.below(expected.len());
        assert!(
            index.get(at as u64).expect("a record").as_ref() == Some(&expected[at]),
            "{at}"
        );
    }
    let indices: Vec<u64> = (0..expected.len() as u64).rev().collect();
    expected.reverse();
    assert!(all(&index, &indices).expect("records") == expected);
}

/// There are so many indices that they are not compared, and are sorted in pieces. The pieces do
/// not end where a log or a container ends.
#[test]
fn the_records_of_several_logs_can_be_read_in_any_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(5);
    let packed = LogFormat::new(Dialect::PACKED);
    let compressed = cfg!(feature = "zstd").then(|| packed.with_compression(Compression::Zstd));
    for format in [Some(LogFormat::new(Dialect::LEVELDB)), Some(packed), compressed]
        .into_iter()
        .flatten()
    {
        let (mut paths, mut expected) = (Vec::new(), Vec::new());
        for (number, count) in [3_000, 1, 9_000].into_iter().enumerate() {
            let records = records(count, &mut random);
            let path = directory.path().join(format!("{number}.log"));
            fs::write(&path, log_of(&records, format)).expect("a file");
            paths.push(path);
            expected.extend(records);
        }
        let index = RecordIndex::open(&paths, ReadOptions::default()).expect("logs");
        for count in [5_000, expected.len(), 20_000] {
            let indices: Vec<u64> = (0..count).map(|_| random.below(expected.len()) as u64).collect();
            let found = all(&index, &indices).expect("records");
            let is_same = |(&at, record): (&u64, &Vec<u8>)| expected[at as usize] == *record;
            assert!(indices.iter().zip(&found).all(is_same), "{format:?}, {count}");
            let mut beyond = indices;
            beyond[count / 2] = expected.len() as u64;
            let error = all(&index, &beyond).expect_err("an index that no record has");
            assert!(matches!(error.kind, ErrorKind::Io { .. }), "{error}");
        }
    }
}

/// If all threads moved a single reader, this test would get wrong records.
#[test]
fn sixteen_threads_each_read_the_requested_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(5);
    for format in [
        LogFormat::new(Dialect::LEVELDB),
        LogFormat::new(Dialect::WANDB),
        LogFormat::new(Dialect::PACKED),
    ] {
        let records = records(3000, &mut random);
        let path = directory.path().join("a.log");
        fs::write(&path, log_of(&records, format)).expect("a file");
        let index = RecordIndex::open([&path], ReadOptions::default()).expect("a log");
        thread::scope(|scope| {
            for seed in 1..=16 {
                let (index, records) = (&index, &records);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    for round in 0..300 {
                        let at = random.below(records.len());
                        assert!(index.get(at as u64).expect("a record").as_ref() == Some(&records[at]));
                        if round % 50 == 0 {
                            let indices: Vec<u64> = (0..100).map(|_| random.below(records.len()) as u64).collect();
                            let found = all(index, &indices).expect("records");
                            assert!(
                                indices
                                    .iter()
                                    .zip(found)
                                    .all(|(&at, record)| records[at as usize] == record)
                            );
                            index.close_files();
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn reading_after_truncation_reports_the_missing_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let log = log_of(&records(100, &mut Random(6)), Dialect::LEVELDB.into());
    fs::write(&path, &log).expect("a file");
    let index = RecordIndex::open([&path], ReadOptions::default()).expect("a log");
    fs::write(&path, &log[..log.len() - 1]).expect("a file");
    let error = index.get(0).expect_err("a log that was cut");
    let ErrorKind::Changed { offset, end_offset, .. } = error.kind else {
        panic!("{error}");
    };
    assert_eq!((offset, end_offset), (log.len() as u64 - 1, log.len() as u64));
    assert_eq!(error.path.as_deref(), Some(path.as_path()));

    fs::write(&path, &log).expect("a file");
    let index = RecordIndex::open([&path], ReadOptions::default().with_on_corruption(OnCorruption::Skip));
    let index = index.expect("a log");
    index.get(0).expect("a record");
    // The open file is truncated.
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("a file")
        .set_len(500)
        .expect("room");
    index.get(99).expect_err("a file that was cut");
}

#[test]
fn an_index_still_returns_its_records_after_the_log_grows() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let written = records(100, &mut Random(6));
    let log = log_of(&written, Dialect::LEVELDB.into());
    fs::write(&path, &log).expect("a file");
    let index = RecordIndex::open([&path], ReadOptions::default()).expect("a log");
    let grown = [&log[..], b"the start of a record"].concat();
    fs::write(&path, &grown).expect("a file");
    for (at, record) in written.iter().enumerate() {
        assert_eq!(index.get(at as u64).expect("a record").as_ref(), Some(record));
    }
    assert_eq!(index.get(100).expect("no error"), None);
}

/// If a record was damaged after indexing, no policy returns another record in its place.
#[test]
fn reading_a_record_fails_if_it_was_damaged_after_indexing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let mut random = Random(7);
    let written = records(300, &mut random);
    for format in [LogFormat::new(Dialect::LEVELDB), LogFormat::new(Dialect::PACKED)] {
        let log = log_of(&written, format);
        for policy in POLICIES {
            let mut failed = 0;
            for _ in 0..60 {
                fs::write(&path, &log).expect("a file");
                let options = ReadOptions::default().with_on_corruption(policy);
                let index = RecordIndex::open([&path], options).expect("a log");
                let mut damaged = log.clone();
                damaged[random.below(log.len())] ^= 1 << random.below(8);
                fs::write(&path, &damaged).expect("a file");
                for (at, record) in written.iter().enumerate() {
                    match index.get(at as u64) {
                        Ok(found) => assert!(found.as_ref() == Some(record), "{policy:?}: {at}"),
                        Err(error) => {
                            let is_right = match policy {
                                OnCorruption::Fail => matches!(error.kind, ErrorKind::Corruption { .. }),
                                _ => matches!(error.kind, ErrorKind::Changed { .. }),
                            };
                            assert!(is_right, "{policy:?}: {error}");
                            failed += 1;
                        }
                    }
                }
                // Records that are read together are found by reading on from one to the next, over
                // several groups.
                let indices: Vec<u64> = (0..written.len() as u64).step_by(3).collect();
                if let Ok(found) = all(&index, &indices) {
                    let same = |(&at, record): (&u64, &Vec<u8>)| written[at as usize] == *record;
                    assert!(indices.iter().zip(&found).all(same), "{policy:?}");
                }
            }
            assert!(failed > 30, "{policy:?}: {failed}");
        }
    }
}

/// Under this policy, reading from another place would return other records.
#[test]
fn reading_fails_if_the_log_was_replaced_by_another_log_of_the_same_length() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    let log = log_of(&vec![vec![b'x'; 10]; 3000], Dialect::LEVELDB.into());
    fs::write(&path, &log).expect("a file");
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    let index = RecordIndex::open([&path], options).expect("a log");
    let other = [log_of(&[b"other".to_vec()], Dialect::LEVELDB.into()), log.clone()].concat();
    fs::write(&path, &other[..log.len()]).expect("a file");
    for at in [32, 40, 1000, 2999] {
        let error = index.get(at).expect_err("another log");
        assert!(matches!(error.kind, ErrorKind::Changed { .. }), "{error}");
    }
}

#[test]
fn an_index_of_logs_without_records_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    fs::write(&path, b"").expect("a file");
    for paths in [vec![], vec![&path], vec![&path, &path]] {
        let index = RecordIndex::open(paths, ReadOptions::default()).expect("logs");
        assert!(index.is_empty());
        assert_eq!(index.get(0).expect("no error"), None);
        assert_eq!(index.get(u64::MAX).expect("no error"), None);
        assert_eq!(all(&index, &[]).expect("no error"), Vec::<Vec<u8>>::new());
        let error = all(&index, &[0]).expect_err("an index");
        assert_eq!(error.to_string(), "an index is out of range");
    }
    let missing = RecordIndex::open([directory.path().join(name_of(0))], ReadOptions::default());
    assert!(matches!(missing.expect_err("no file").kind, ErrorKind::Io { .. }));
}

#[test]
fn an_error_returned_by_the_callback_stops_reading() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.log");
    fs::write(&path, log_of(&records(100, &mut Random(8)), Dialect::LEVELDB.into())).expect("a file");
    let index = RecordIndex::open([&path], ReadOptions::default()).expect("a log");
    let mut seen = 0;
    let result = index.read(&[5, 6, 7], |_, _| {
        seen += 1;
        if seen < 2 {
            Ok(())
        } else {
            Err(std::io::Error::other("enough").into())
        }
    });
    let error: Error = result.expect_err("an error");
    assert_eq!((error.to_string().as_str(), seen), ("enough", 2));
}

/// Two blocks start with a destroyed header, within the records that the index reads together. In
/// the second block, a value contains a log of another form.
#[test]
fn an_index_matches_iteration_after_two_destroyed_headers() {
    const BLOCK: usize = 32_768;
    let (wire, mut random) = (Wire::Recyclable(9), Random(1));
    let (mut file, mut count) = (Vec::new(), 0);
    let mut noise = |len: usize| (0..len).map(|_| random.below(256) as u8).collect::<Vec<_>>();
    let mut put = |file: &mut Vec<u8>, data: &[u8]| {
        count += 1;
        (wire.append(file, 0, data) as usize, count)
    };
    let mut written = 0;
    while file.len() < BLOCK - 3000 {
        written = put(&mut file, format!("own {written} ").repeat(10).as_bytes()).1;
    }
    while written % 16 != 0 {
        written = put(&mut file, b"fill").1;
    }
    // The record extends into the second block.
    let len = BLOCK - file.len() - 11 + 2000;
    written = put(&mut file, &noise(len)).1;
    while file.len() < 2 * BLOCK - 3000 {
        written = put(&mut file, format!("own {written} ").repeat(100).as_bytes()).1;
    }
    while written % 16 != 0 {
        written = put(&mut file, b"fill").1;
    }
    put(&mut file, b"the first record of a group");
    let len = 2 * BLOCK - file.len() - 11 + 5;
    put(&mut file, &noise(len));
    while file.len() < 2 * BLOCK + 100 {
        put(&mut file, b"x");
    }
    let room = 3 * BLOCK - file.len() - 11;
    let mut inner = Vec::new();
    while room - inner.len() > 100 {
        inner.extend(Wire::Plain.full(b"inner"));
    }
    let rest = room - inner.len() - 7;
    inner.extend(Wire::Plain.full(&vec![b'i'; rest]));
    inner.extend(b"rest".repeat(10));
    let (start, _) = put(&mut file, &inner);
    while file.len() < 3 * BLOCK + 900 {
        written = put(&mut file, format!("late {written} ").repeat(10).as_bytes()).1;
    }
    file[BLOCK..BLOCK + 11].fill(0xa5);
    file[2 * BLOCK..start + 11].fill(0x5a);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app.log");
    fs::write(&path, &file).expect("a file");
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    check(&path, &options, &mut Random(2));
}
