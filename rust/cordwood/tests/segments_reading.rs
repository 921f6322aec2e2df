//! Tests that a segmented log is read as one log. To get the expected values, each file is read
//! alone from memory, and its offsets are shifted by the log offset of the file.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::made::mark;
use crate::wire::Wire;
use cordwood_log::codec::Window;
use cordwood_log::damage::{Reason, SkippedRegion};
use cordwood_log::follow::Poll;
use cordwood_log::read::{FileReader, SeekSource, SliceSource, Source, StreamSource};
use cordwood_log::segments::name_of;
use cordwood_log::{
    Compression, Dialect, End, Error, ErrorKind, Event, FollowOptions, Follower, Hint, LogFile, LogFileOptions,
    LogFormat, OnCorruption, ReadOptions, Reader, RecordIndex, SegmentedLog, Writer, WriterOptions, ops,
};

/// Returns the records of three files. There are many short records, some that extend over several
/// blocks, and an empty one.
fn records() -> [Vec<Vec<u8>>; 3] {
    let short = |count: usize, len: usize| (0..count).map(move |index| vec![index as u8; len + index % 7]);
    [
        short(3000, 20).collect(),
        short(5, 40_000).chain([Vec::new()]).collect(),
        short(40, 3_000).collect(),
    ]
}

fn file_of(records: &[Vec<u8>], format: LogFormat) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_format(format)).expect("a writer");
    writer.extend(records).expect("records");
    writer.finish().expect("a log")
}

fn formats() -> Vec<LogFormat> {
    let mut formats = vec![Dialect::LEVELDB.into(), Dialect::PACKED.into()];
    if cfg!(feature = "zstd") {
        formats.push(LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd));
    }
    formats
}

/// A directory with three files, and the log offset and the bytes of each file. The first file
/// starts at the log offset `origin`.
struct Log {
    directory: tempfile::TempDir,
    files: Vec<(u64, Vec<u8>)>,
}

impl Log {
    fn new(origin: u64, format: LogFormat) -> Log {
        let mut offset = origin;
        let mut files = Vec::new();
        for records in records() {
            let file = file_of(&records, format);
            files.push((offset, file));
            offset += files[files.len() - 1].1.len() as u64;
        }
        let log = Log {
            directory: tempfile::tempdir().expect("a directory"),
            files,
        };
        fs::write(log.path().join("LOCK"), "").expect("a file");
        (0..3).for_each(|index| log.write(index));
        log
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, index: usize) {
        let (offset, file) = &self.files[index];
        fs::write(self.path().join(name_of(*offset)), file).expect("a file");
    }

    fn remove(&self, index: usize) {
        fs::remove_file(self.path().join(name_of(self.files[index].0))).expect("a file");
    }

    fn end(&self) -> u64 {
        let (offset, file) = &self.files[2];
        offset + file.len() as u64
    }

    /// Returns the events of the files with these indices.
    fn expected(&self, indices: &[usize], policy: OnCorruption) -> Vec<Seen> {
        let mut all = Vec::new();
        for &index in indices {
            let (origin, file) = &self.files[index];
            let options = ReadOptions::default().with_on_corruption(policy);
            let (seen, _) = events(&mut Reader::from_slice(file, options));
            all.extend(seen.into_iter().map(|event| event.moved(*origin)));
        }
        all
    }

    fn open(&self, policy: OnCorruption) -> Reader {
        Reader::open_with(self.path(), ReadOptions::default().with_on_corruption(policy)).expect("a log")
    }
}

/// An event that owns its bytes.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Seen {
    Record(u64, u64, Vec<u8>, bool),
    Skipped(SkippedRegion),
    Failed(SkippedRegion),
}

impl Seen {
    fn moved(self, by: u64) -> Seen {
        let moved = |region: SkippedRegion| {
            let mut region = region;
            region.start += by;
            region.end += by;
            region
        };
        match self {
            Seen::Record(start, end, data, is_salvaged) => Seen::Record(start + by, end + by, data, is_salvaged),
            Seen::Skipped(region) => Seen::Skipped(moved(region)),
            Seen::Failed(region) => Seen::Failed(moved(region)),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Seen::Record(start, ..) => *start,
            Seen::Skipped(region) | Seen::Failed(region) => region.start,
        }
    }
}

fn events<S: cordwood_log::read::Source>(reader: &mut Reader<S>) -> (Vec<Seen>, Option<End>) {
    let mut all = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(Event::Record(record))) => all.push(Seen::Record(
                record.offset,
                record.end_offset,
                record.data.to_vec(),
                record.is_salvaged,
            )),
            Ok(Some(Event::Skipped(region))) => all.push(Seen::Skipped(region)),
            Ok(None) => return (all, reader.end()),
            Err(Error {
                kind: ErrorKind::Corruption { region, .. },
                ..
            }) => all.push(Seen::Failed(region)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Separates missing or grown segments from all other events. Returns the other events first.
fn breaks(seen: &[Seen]) -> (Vec<Seen>, Vec<(u64, u64, Reason)>) {
    let is_break = |seen: &Seen| match seen {
        Seen::Skipped(region) | Seen::Failed(region) => {
            matches!(region.reason, Reason::MissingSegment | Reason::GrownSegment)
        }
        Seen::Record(..) => false,
    };
    let (breaks, rest): (Vec<Seen>, Vec<Seen>) = seen.iter().cloned().partition(is_break);
    let regions = breaks.into_iter().map(|seen| match seen {
        Seen::Skipped(region) | Seen::Failed(region) => (region.start, region.end, region.reason),
        Seen::Record(..) => unreachable!(),
    });
    (rest, regions.collect())
}

#[test]
fn segments_are_read_as_one_log_from_any_start_offset() {
    for format in formats() {
        for origin in [0, 1, 32_767, 32_768, 1_000_003] {
            let log = Log::new(origin, format);
            let mut reader = log.open(OnCorruption::Fail);
            let (seen, end) = events(&mut reader);
            assert!(
                seen == log.expected(&[0, 1, 2], OnCorruption::Fail),
                "{format:?} {origin}"
            );
            assert_eq!(end, Some(End::Clean { offset: log.end() }));
            assert_eq!(reader.format().expect("a format"), format);
            assert_eq!(reader.file_len(), Some(log.end()));
            let records: Vec<Vec<u8>> = log
                .open(OnCorruption::Fail)
                .records()
                .map(|record| record.expect("a record").data)
                .collect();
            assert!(records == self::records().concat());
        }
    }
}

#[test]
fn a_missing_segment_is_reported_as_one_region() {
    for policy in [OnCorruption::Fail, OnCorruption::Skip, OnCorruption::Salvage] {
        let log = Log::new(77, Dialect::LEVELDB.into());
        log.remove(1);
        let (seen, end) = events(&mut log.open(policy));
        let (rest, breaks) = breaks(&seen);
        assert!(rest == log.expected(&[0, 2], policy));
        assert_eq!(breaks, [(log.files[1].0, log.files[2].0, Reason::MissingSegment)]);
        let is_error = seen.iter().any(|seen| matches!(seen, Seen::Failed(_)));
        assert_eq!(is_error, policy == OnCorruption::Fail);
        assert_eq!(end, Some(End::Clean { offset: log.end() }));
    }
}

#[test]
fn a_reader_with_the_stop_policy_ends_at_a_missing_segment() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    log.remove(1);
    let (seen, end) = events(&mut log.open(OnCorruption::Stop));
    let (rest, breaks) = breaks(&seen);
    assert_eq!(breaks.len(), 1);
    let Some((Seen::Skipped(not_read), records)) = rest.split_last() else {
        panic!()
    };
    assert!(records == log.expected(&[0], OnCorruption::Stop));
    assert_eq!(
        (not_read.start, not_read.end, not_read.reason),
        (log.files[2].0, log.end(), Reason::NotRead)
    );
    assert_eq!(end, Some(End::Stopped { offset: log.files[1].0 }));
}

#[test]
fn truncating_a_segment_loses_only_the_truncated_records() {
    for format in formats() {
        let mut log = Log::new(5_000, format);
        let (origin, whole) = log.files[1].clone();
        let next = log.files[2].0;
        for len in [
            0,
            3,
            7,
            17,
            100,
            32_768,
            40_000,
            100_000,
            whole.len() - 8,
            whole.len() - 1,
        ] {
            let len = len.min(whole.len() - 1);
            log.files[1].1.truncate(len);
            log.write(1);
            let (seen, end) = events(&mut log.open(OnCorruption::Skip));
            let (rest, breaks) = breaks(&seen);
            // The rest of a record that was cut belongs to the missing part.
            let is_torn = |seen: &Seen| matches!(seen, Seen::Skipped(region) if region.reason == Reason::TornTail);
            let torn = log.expected(&[1], OnCorruption::Skip).into_iter().find(is_torn);
            let start = torn.map_or(origin + len as u64, |torn| torn.offset());
            let expected = log.expected(&[0, 1, 2], OnCorruption::Skip);
            assert!(
                rest == expected.into_iter().filter(|seen| !is_torn(seen)).collect::<Vec<_>>(),
                "{format:?} {len}"
            );
            assert_eq!(breaks, [(start, next, Reason::MissingSegment)], "{format:?} {len}");
            assert_eq!(end, Some(End::Clean { offset: log.end() }));
            log.files[1].1 = whole.clone();
        }
    }
}

#[test]
fn zeros_at_the_end_of_an_older_segment_count_as_missing_bytes() {
    let mut log = Log::new(0, Dialect::LEVELDB.into());
    let len = log.files[0].1.len();
    let last_records = log.expected(&[0], OnCorruption::Skip);
    let start = last_records[last_records.len() - 3].offset();
    log.files[0].1[start as usize..].fill(0);
    log.write(0);
    let (seen, _) = events(&mut log.open(OnCorruption::Skip));
    let (rest, breaks) = breaks(&seen);
    assert_eq!(breaks, [(start, len as u64, Reason::MissingSegment)]);
    let mut expected = last_records[..last_records.len() - 3].to_vec();
    expected.extend(log.expected(&[1, 2], OnCorruption::Skip));
    assert!(rest == expected);
}

#[test]
fn a_grown_segment_is_read_up_to_the_start_of_the_next_segment() {
    for policy in [OnCorruption::Fail, OnCorruption::Skip] {
        for added in [
            vec![0; 5],
            vec![0; 100_000],
            file_of(&[b"not a part".to_vec()], Dialect::LEVELDB.into()),
        ] {
            let log = Log::new(0, Dialect::LEVELDB.into());
            let mut grown = log.files[0].1.clone();
            grown.extend(added);
            fs::write(log.path().join(name_of(0)), grown).expect("a file");
            let (seen, end) = events(&mut log.open(policy));
            let (rest, breaks) = breaks(&seen);
            assert!(rest == log.expected(&[0, 1, 2], policy));
            let next = log.files[1].0;
            assert_eq!(breaks, [(next, next, Reason::GrownSegment)]);
            assert_eq!(end, Some(End::Clean { offset: log.end() }));
        }
    }
}

#[test]
fn only_the_last_segment_can_end_in_an_incomplete_record() {
    let mut log = Log::new(300, Dialect::LEVELDB.into());
    let len = log.files[2].1.len();
    log.files[2].1.truncate(len - 1);
    log.write(2);
    let (seen, end) = events(&mut log.open(OnCorruption::Fail));
    assert!(seen == log.expected(&[0, 1, 2], OnCorruption::Fail));
    assert!(matches!(end, Some(End::TornTail { .. })));
    let Some(Seen::Skipped(torn)) = seen.last() else {
        panic!()
    };
    assert_eq!((torn.end, torn.reason), (log.end(), Reason::TornTail));
}

#[test]
fn the_log_ends_at_an_empty_last_segment() {
    for format in formats() {
        let log = Log::new(9, format);
        fs::write(log.path().join(name_of(log.end())), "").expect("a file");
        let mut reader = log.open(OnCorruption::Fail);
        let (seen, end) = events(&mut reader);
        assert!(seen == log.expected(&[0, 1, 2], OnCorruption::Fail));
        assert_eq!(end, Some(End::Clean { offset: log.end() }));
        assert_eq!(reader.detect().expect("a format"), Some(format));
    }
}

#[test]
fn damage_in_a_segment_is_reported_relative_to_the_whole_log() {
    for format in formats() {
        let mut log = Log::new(1_234_567, format);
        let (origin, file) = &mut log.files[1];
        let at = file.len() * 2 / 3;
        file[at] ^= 8;
        let flipped = *origin + at as u64;
        log.write(1);
        for policy in [OnCorruption::Fail, OnCorruption::Skip, OnCorruption::Salvage] {
            let (seen, _) = events(&mut log.open(policy));
            assert!(seen == log.expected(&[0, 1, 2], policy), "{format:?}");
        }
        let report = ops::verify_file(log.path(), &ReadOptions::default(), NonZeroUsize::MIN).expect("a report");
        let flip = report
            .findings
            .listed()
            .iter()
            .find_map(|finding| finding.bit_flip)
            .expect("a flipped bit");
        assert_eq!((flip.offset, flip.bit), (flipped, 3));
    }
}

#[test]
fn a_reader_can_start_at_or_seek_to_any_record() {
    for format in formats() {
        let log = Log::new(40_000, format);
        let expected = log.expected(&[0, 1, 2], OnCorruption::Fail);
        let mut reader = log.open(OnCorruption::Fail);
        for (index, event) in expected
            .iter()
            .enumerate()
            .step_by(211)
            .chain(expected.iter().enumerate().rev().step_by(7))
        {
            let options = ReadOptions::default().with_range(event.offset()..);
            let (seen, _) = events(&mut Reader::open_with(log.path(), options).expect("a log"));
            assert!(seen == expected[index..], "{format:?} {}", event.offset());
            reader.seek(event.offset()).expect("a seek");
            if let Seen::Record(start, _, data, _) = event {
                let record = reader.next_record().expect("a record").expect("a record");
                assert!((record.offset, record.data) == (*start, &data[..]));
            }
        }
        // The edges are at files, at blocks and elsewhere.
        let (second, third) = (log.files[1].0, log.files[2].0);
        let edges = [
            0,
            40_001,
            65_536,
            second - 1,
            second,
            second + 1,
            second + 32_768,
            third,
            third + 5_000,
            u64::MAX,
        ];
        let mut edges = edges.map(|edge| if edge < u64::MAX { edge.min(log.end()) } else { edge });
        edges.sort_unstable();
        let mut seen = Vec::new();
        for pair in edges.windows(2) {
            let options = ReadOptions::default().with_range(pair[0]..pair[1]);
            seen.extend(events(&mut Reader::open_with(log.path(), options).expect("a log")).0);
        }
        assert!(seen == expected, "{format:?}");
    }
}

#[test]
fn reading_a_pruned_offset_reports_where_the_log_now_starts() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    log.remove(0);
    let first = log.files[1].0;
    let is_pruned = |error: Error, at: u64| {
        assert_eq!(error.hint, Some(Hint::StartAtFirstOffset));
        let ErrorKind::Pruned {
            offset, first_offset, ..
        } = error.kind
        else {
            panic!("{error}")
        };
        assert_eq!((offset, first_offset), (at, first));
        assert_eq!(error.path.as_deref(), Some(log.path()));
    };
    let options = ReadOptions::default().with_range(10..);
    is_pruned(Reader::open_with(log.path(), options).expect_err("pruned"), 10);
    let mut reader = log.open(OnCorruption::Fail);
    is_pruned(reader.seek(0).expect_err("pruned"), 0);
    // The reader has not moved.
    let (seen, _) = events(&mut reader);
    assert!(seen == log.expected(&[1, 2], OnCorruption::Fail));
}

#[test]
fn a_range_reports_only_its_own_part_of_a_missing_segment() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    log.remove(1);
    let (missing, next) = (log.files[1].0, log.files[2].0);
    let options = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_range(missing + 9..);
    let (seen, _) = events(&mut Reader::open_with(log.path(), options).expect("a log"));
    let (rest, breaks) = breaks(&seen);
    assert_eq!(breaks, [(missing + 9, next, Reason::MissingSegment)]);
    assert!(rest == log.expected(&[2], OnCorruption::Skip));
}

#[test]
fn each_missing_byte_is_reported_in_exactly_one_range() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    log.remove(1);
    let (missing, next) = (log.files[1].0, log.files[2].0);
    for cut in [missing - 1, missing, missing + 1, missing + 9, next - 1, next, next + 1] {
        let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
        let [before, after] = [options.clone().with_range(..cut), options.with_range(cut..)]
            .map(|options| events(&mut Reader::open_with(log.path(), options).expect("a log")));
        let expected: Vec<_> = [(missing, next.min(cut)), (missing.max(cut), next)]
            .into_iter()
            .filter(|(start, end)| start < end)
            .map(|(start, end)| (start, end, Reason::MissingSegment))
            .collect();
        let (records, breaks) = breaks(&[before.0, after.0].concat());
        assert_eq!(breaks, expected, "cut at {cut}");
        assert!(records == log.expected(&[0, 2], OnCorruption::Skip), "cut at {cut}");
        assert!(
            before.1.is_some_and(|end| end.offset() >= cut.min(next)),
            "cut at {cut}: {:?}",
            before.1
        );
    }
}

#[test]
fn a_reader_fails_if_its_next_segment_was_pruned() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    let mut reader = log.open(OnCorruption::Fail);
    reader.next_record().expect("a record");
    log.remove(0);
    log.remove(1);
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "the log ended"),
            Err(error) => break error,
        }
    };
    let ErrorKind::Pruned {
        offset, first_offset, ..
    } = error.kind
    else {
        panic!("{error}")
    };
    assert_eq!((offset, first_offset), (log.files[1].0, log.files[2].0));
}

/// Pruning removes the oldest segments first, so this segment cannot have been pruned.
#[test]
fn removing_a_middle_segment_causes_an_error_that_contains_the_path_of_the_segment() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    let mut reader = log.open(OnCorruption::Fail);
    log.remove(1);
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "the log ended"),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
    assert_eq!(error.path.as_deref(), Some(&*log.path().join(name_of(log.files[1].0))));
}

#[test]
fn a_segment_that_grew_after_opening_is_read_to_its_new_end() {
    let log = Log::new(107, Dialect::LEVELDB.into());
    let mut reader = log.open(OnCorruption::Fail);
    let writer = SegmentedLog::open(log.path(), LogFileOptions::default()).expect("a writer");
    let offset = writer.append(b"new").expect("a record");
    writer.close().expect("a closed log");
    let (seen, end) = events(&mut reader);
    assert_eq!(seen.last().map(Seen::offset), Some(offset));
    assert_eq!(end, Some(End::Clean { offset: offset + 10 }));
}

#[test]
fn seeking_into_a_new_segment_finds_each_record() {
    let log = Log::new(107, Dialect::LEVELDB.into());
    let mut readers: Vec<Reader> = (0..3).map(|_| log.open(OnCorruption::Fail)).collect();
    let writer = SegmentedLog::open(log.path(), LogFileOptions::default()).expect("a writer");
    writer.rotate().expect("a segment");
    let offsets = [b"one", b"two"].map(|record| writer.append(record).expect("a record"));
    writer.rotate().expect("a segment");
    let last = writer.append(b"three").expect("a record");
    writer.close().expect("a closed log");
    for (reader, (offset, data)) in
        readers
            .iter_mut()
            .zip([(offsets[0], &b"one"[..]), (offsets[1], b"two"), (last, b"three")])
    {
        reader.seek(offset).expect("a record");
        let record = reader.next_record().expect("a record").expect("a record");
        assert_eq!((record.offset, record.data), (offset, data));
    }
}

#[test]
fn seeking_to_the_end_of_the_only_segment_finds_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(name_of(107)), Wire::Plain.full(b"foo")).expect("a file");
    let mut reader = Reader::open(directory.path()).expect("a log");
    reader.seek(117).expect("the end");
    assert!(reader.next_record().expect("the end").is_none());
}

/// An open file can still be read after it was removed.
#[cfg(unix)]
#[test]
fn a_failed_seek_after_all_segments_were_pruned_leaves_the_reader_unchanged() {
    let log = Log::new(107, Dialect::LEVELDB.into());
    let mut reader = log.open(OnCorruption::Fail);
    reader.next_record().expect("a record");
    (0..3).for_each(|index| log.remove(index));
    let first_offset = log.end() + 1_000;
    fs::write(log.path().join(name_of(first_offset)), &log.files[2].1).expect("a file");
    let error = reader.seek(log.end()).expect_err("a pruned log");
    let ErrorKind::Pruned {
        offset,
        first_offset: first,
        ..
    } = error.kind
    else {
        panic!("{error}")
    };
    assert_eq!((offset, first), (log.end(), first_offset));
    let second = &log.expected(&[0], OnCorruption::Fail)[1];
    let record = reader.next_record().expect("a record").expect("a record");
    assert_eq!(record.offset, second.offset());
    // A seek within the open file does not list the directory.
    reader.seek(107).expect("the open file");
    assert_eq!(reader.next_record().expect("a record").expect("a record").offset, 107);
}

#[test]
fn an_offset_past_the_end_of_a_segmented_log_causes_an_error() {
    let log = Log::new(0, Dialect::LEVELDB.into());
    let mut reader = log.open(OnCorruption::Fail);
    reader.seek(log.end() + 5).expect("a seek");
    let error = reader.next_record().expect_err("after the end");
    assert!(matches!(error.kind, ErrorKind::Truncated { file_len: Some(len), .. } if len == log.end()));
}

#[test]
fn a_directory_without_segments_is_not_a_log() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["LOCK", "000012.log"] {
        fs::write(directory.path().join(name), "").expect("a file");
        let path = directory.path();
        let writing = LogFileOptions::default;
        let opened = [
            (Reader::open(path).map(drop), Hint::ReadDirectory),
            (Follower::open(path).map(drop), Hint::ReadDirectory),
            (
                ops::salvage_file(path, path.join("new"), &ops::SalvageOptions::default()).map(drop),
                Hint::ReadDirectory,
            ),
            (
                ops::fragments_file(path, &ReadOptions::default()).map(drop),
                Hint::ReadDirectory,
            ),
            (
                RecordIndex::open([path], ReadOptions::default()).map(drop),
                Hint::ReadDirectory,
            ),
            (LogFile::create(path, writing()).map(drop), Hint::SegmentLen),
            (LogFile::append_to(path, writing()).map(drop), Hint::SegmentLen),
        ];
        for (opened, hint) in opened {
            let error = opened.expect_err("a directory");
            assert_eq!((error.path.as_deref(), error.hint), (Some(path), Some(hint)), "{error}");
            assert!(
                matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory)
            );
        }
    }
    fs::write(directory.path().join(name_of(0)), "").expect("a file");
    let error = Reader::open(directory.path()).expect_err("another file");
    assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
}

#[test]
fn whole_log_operations_accept_a_segmented_log_directory() {
    for format in formats() {
        let log = Log::new(12_345, format);
        let count: usize = records().iter().map(Vec::len).sum();
        let options = ReadOptions::default();
        for threads in [1, 4] {
            let threads = NonZeroUsize::new(threads).expect("threads");
            let report = ops::verify_file(log.path(), &options, threads).expect("a report");
            assert!(report.is_ok());
            assert_eq!((report.record_count, report.format), (count as u64, format));
            let stat = ops::stat_file(log.path(), &options, threads).expect("statistics");
            assert_eq!(stat.record_count, count as u64);
        }
        let new = tempfile::tempdir().expect("a directory");
        // The copy is also a directory. It has one segment, so its offsets start again.
        let salvaged = new.path().join("salvaged");
        let report = ops::salvage_file(log.path(), &salvaged, &ops::SalvageOptions::default()).expect("a report");
        assert_eq!(report.record_count, count as u64);
        let packed = new.path().join("packed");
        let options = ops::PackOptions::default().with_format(Dialect::PACKED);
        ops::pack_file(log.path(), &packed, &options).expect("a report");
        let unpacked = new.path().join("unpacked");
        let options = ops::PackOptions::default().with_format(Dialect::LEVELDB);
        ops::pack_file(&packed, &unpacked, &options).expect("a report");
        for copy in [salvaged, packed, unpacked] {
            let names: Vec<_> = fs::read_dir(&copy)
                .expect("a directory")
                .map(|file| file.expect("a file").file_name())
                .collect();
            assert_eq!(names, [&*name_of(0)]);
            let data = Reader::open(&copy)
                .expect("a log")
                .into_iter()
                .map(|record| record.expect("a record").data);
            assert!(data.collect::<Vec<_>>() == records().concat());
        }
        // The destination must not be among the files that are copied.
        let inside = log.path().join("copy");
        let error = ops::salvage_file(log.path(), &inside, &ops::SalvageOptions::default()).expect_err("inside");
        assert!(
            matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput)
        );
        assert_eq!(fs::read_dir(log.path()).expect("a directory").count(), 4);
        // Apart from the copies, no files are left.
        assert_eq!(fs::read_dir(new.path()).expect("a directory").count(), 3);
    }
}

/// A later release may have started the second segment.
#[test]
fn an_unsupported_segment_is_reported_at_its_log_offset() {
    let mut log = Log::new(0, Dialect::PACKED.into());
    log.files[1].1 = mark(2, 0);
    log.write(1);
    fs::remove_file(log.path().join(name_of(log.files[2].0))).expect("a file");
    let offset = log.files[1].0;
    let mut reader = Reader::open(log.path()).expect("a reader");
    let read = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some()),
            Err(error) => break error,
        }
    };
    let mut follower = Follower::open(log.path()).expect("a follower");
    let followed = loop {
        match follower.poll() {
            Ok(poll) => assert!(!matches!(poll, Poll::End(_)), "{poll:?}"),
            Err(error) => break error,
        }
    };
    for error in [read, followed] {
        assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
        assert_eq!(error.offset(), Some(offset), "{error}");
    }
}

#[test]
fn threads_can_read_a_log_whose_oldest_segments_were_pruned() {
    let directory = tempfile::tempdir().expect("a directory");
    // The log is long enough for two threads.
    let log = SegmentedLog::open(directory.path(), LogFileOptions::default().with_segment_len(2 << 20)).expect("a log");
    let offsets = [0u8; 100].map(|byte| log.append(&[byte; 100_000]).expect("an append"));
    let first = log.prune_before(5 << 20).expect("it is pruned");
    let count = offsets.iter().filter(|&&offset| offset >= first).count() as u64;
    assert!(first > 3 << 20 && count > 50, "{first}");
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).expect("threads");
        for start in [0, first] {
            let options = ReadOptions::default().with_range(start..);
            let report = ops::verify_file(directory.path(), &options, threads).expect("a report");
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            assert_eq!(report.record_count, count);
            let stat = ops::stat_file(directory.path(), &options, threads).expect("statistics");
            assert_eq!(stat.record_count, count);
        }
    }
}

#[test]
fn a_missing_segment_is_reported_the_same_way_with_any_number_of_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = SegmentedLog::open(directory.path(), LogFileOptions::default().with_segment_len(2 << 20)).expect("a log");
    let offsets = [0u8; 100].map(|byte| log.append(&[byte; 100_000]).expect("an append"));
    log.close().expect("it is closed");
    // Each file contains twenty records of a little more than 100,000 bytes.
    let (start, end) = (offsets[40], offsets[60]);
    fs::remove_file(directory.path().join(name_of(start))).expect("it is removed");
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).expect("threads");
        let report = ops::verify_file(directory.path(), &ReadOptions::default(), threads).expect("a report");
        assert_eq!((report.record_count, report.findings.len()), (80, end - start));
        let stat = ops::stat_file(directory.path(), &ReadOptions::default(), threads).expect("statistics");
        assert_eq!(stat.record_count, 80);
    }
}

/// Returns contents that do not show that a file is a segment.
fn destroyed(mut file: Vec<u8>) -> [(&'static str, Vec<u8>); 4] {
    let len = file.len();
    let repeated = |start: &[u8]| start.iter().copied().cycle().take(len).collect();
    let (gzip, text) = (repeated(b"\x1f\x8b\x08\x00\0\0\0\0\0\x03"), repeated(b"a text\n"));
    let noise: Vec<u8> = (0..len).map(|at| (at * at / 7 + at / 3) as u8 | 0x80).collect();
    file[..8].copy_from_slice(b"\x9f\x13\xa2\x77\xc0\x55\x11\xaa");
    [("header", file), ("noise", noise), ("gzip", gzip), ("text", text)]
}

#[test]
fn the_segments_after_a_destroyed_one_are_still_read() {
    let one = |data: &[u8]| file_of(&[data.to_vec()], Dialect::LEVELDB.into());
    let (first, second, third) = (one(&[1; 100]), one(&[2; 600]), one(&[3; 100]));
    let (at_second, at_third) = (first.len() as u64, (first.len() + second.len()) as u64);
    for (name, contents) in destroyed(second) {
        let directory = tempfile::tempdir().expect("a directory");
        let orders = directory.path().join("orders");
        fs::create_dir(&orders).expect("a directory");
        for (offset, file) in [(0, &first), (at_second, &contents), (at_third, &third)] {
            fs::write(orders.join(name_of(offset)), file).expect("a segment");
        }
        let expected = [(0, vec![1; 100]), (at_third, vec![3; 100])];
        for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
            let options = ReadOptions::default().with_on_corruption(policy);
            let mut reader = Reader::open_with(&orders, options).expect("a log");
            let records: Result<Vec<_>, _> = reader.records().collect();
            let records = records
                .expect("records")
                .into_iter()
                .map(|record| (record.offset, record.data));
            assert_eq!(records.collect::<Vec<_>>(), expected, "{name}");
        }
        let mut reader = Reader::open(&orders).expect("a log");
        reader.next_record().expect("a record");
        let error = reader.next_record().expect_err("damage");
        assert!(matches!(error.kind, ErrorKind::Corruption { .. }), "{name}: {error}");
        assert_eq!(error.offset(), Some(at_second), "{name}");

        let options = FollowOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(0, Duration::ZERO);
        let mut follower = Follower::open_with(&orders, options).expect("a follower");
        let mut followed = Vec::new();
        loop {
            match follower.poll().expect("a poll") {
                Poll::Record(record) => followed.push((record.offset, record.data.to_vec())),
                Poll::Skipped(_) => {}
                Poll::NotYet(not_yet) if not_yet.offset == not_yet.file_len => break,
                Poll::NotYet(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(followed, expected, "{name}");
    }
}

#[test]
fn open_reports_a_destroyed_last_segment_in_any_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let orders = directory.path().join("orders");
    fs::create_dir(&orders).expect("a directory");
    let file = file_of(&[vec![1; 600]], Dialect::LEVELDB.into());
    let len = file.len() as u64;
    fs::write(orders.join(name_of(0)), &file).expect("a segment");
    let [(_, destroyed), ..] = destroyed(file);
    fs::write(orders.join(name_of(len)), destroyed).expect("a segment");
    let error = SegmentedLog::open(&orders, LogFileOptions::default()).expect_err("damage");
    assert!(matches!(error.kind, ErrorKind::Corruption { .. }), "{error}");
    assert_eq!((error.offset(), error.path.as_deref()), (Some(len), Some(&*orders)));
}

#[test]
fn a_stray_file_prevents_opening_a_log_but_does_not_affect_open_logs() {
    let log = Log::new(107, Dialect::LEVELDB.into());
    let writer = SegmentedLog::open(log.path(), LogFileOptions::default()).expect("a writer");
    let mut reader = log.open(OnCorruption::Fail);
    let mut follower = Follower::open(log.path()).expect("a follower");
    for name in [".nfs0000000000000001", ".DS_Store"] {
        fs::write(log.path().join(name), "").expect("a file");
    }
    fs::create_dir(log.path().join("lost+found")).expect("a directory");
    log.open(OnCorruption::Fail);
    Follower::open(log.path()).expect("a follower");

    fs::write(log.path().join("stray"), "").expect("a file");
    let end = log.end();
    writer.rotate().expect("a segment");
    assert_eq!(writer.append(b"new").expect("a record"), end);
    writer.prune_before(log.files[1].0).expect("a segment fewer");
    reader.seek(end).expect("the new segment");
    assert_eq!(reader.next_record().expect("a record").expect("a record").data, b"new");
    while let Poll::Record(_) = follower.poll().expect("a poll") {}
    assert_eq!(follower.offset(), end + 7 + 3);
    writer.close().expect("a closed log");
    drop(writer);

    let opened = [
        Reader::open(log.path()).map(drop),
        Follower::open(log.path()).map(drop),
        SegmentedLog::open(log.path(), LogFileOptions::default()).map(drop),
    ];
    for opened in opened {
        let error = opened.expect_err("a stray file");
        assert!(matches!(error.kind, ErrorKind::NotASegment), "{error}");
        assert_eq!(error.path.as_deref(), Some(&*log.path().join("stray")));
    }
}

/// A file whose reads and seeks fail on request.
#[derive(Debug)]
struct Failing {
    file: FileReader,
    fails_to_read: Arc<AtomicBool>,
    fails_to_seek: Arc<AtomicBool>,
}

impl Failing {
    fn check(is_failing: &AtomicBool) -> io::Result<()> {
        match is_failing.load(Relaxed) {
            true => Err(io::Error::other("it fails")),
            false => Ok(()),
        }
    }
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Failing::check(&self.fails_to_read)?;
        self.file.read(buffer)
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        Failing::check(&self.fails_to_seek)?;
        self.file.seek(to)
    }
}

/// A call that must not change the reader if the call fails.
type Call = fn(&mut Reader<StreamSource<Failing>>, u64) -> Result<(), Error>;

#[test]
fn a_failed_seek_or_restart_leaves_the_reader_unchanged() {
    let log = Log::new(107, Dialect::LEVELDB.into());
    let expected = log.expected(&[0, 1, 2], OnCorruption::Fail);
    let seek: Call = |reader, offset| reader.seek(offset);
    let restart: Call = |reader, offset| {
        let options = ReadOptions::default().with_dialect(Dialect::LEVELDB);
        reader.restart(options.with_range(offset..))
    };
    // A restart does not read any byte.
    for (call, fails_to_read) in [(seek, true), (seek, false), (restart, false)] {
        for segment in [0, 1, 2] {
            for is_found in [false, true] {
                let (reads, seeks) = (Arc::default(), Arc::default());
                let (fails_to_read_now, fails_to_seek_now) = (Arc::clone(&reads), Arc::clone(&seeks));
                let source = StreamSource::open(log.path()).expect("a log").map(move |file| Failing {
                    file,
                    fails_to_read: Arc::clone(&reads),
                    fails_to_seek: Arc::clone(&seeks),
                });
                let mut reader = Reader::with_source(source, ReadOptions::default());
                // The reader reads up to a record in the second segment.
                let count = 3002;
                for expected in &expected[..count] {
                    let record = reader.next_record().expect("an event").expect("a record");
                    assert_eq!(record.offset, expected.offset());
                }
                while is_found && !reader.find() {
                    reader.read_more();
                }
                let target = log.files[segment].0;
                let switch = if fails_to_read {
                    &fails_to_read_now
                } else {
                    &fails_to_seek_now
                };
                switch.store(true, Relaxed);
                let called = call(&mut reader, target);
                switch.store(false, Relaxed);
                // The call does not read the open segment again, so it succeeds.
                if fails_to_read && segment == 1 {
                    continue;
                }
                called.expect_err("a source that fails");
                let (rest, end) = events(&mut reader);
                assert_eq!(rest, expected[count..], "{segment} {is_found}");
                assert_eq!(end, Some(End::Clean { offset: log.end() }));
            }
        }
    }
}

/// A file in memory that cannot seek.
struct NoSeek<'a>(SliceSource<'a>);

impl Source for NoSeek<'_> {
    fn window(&self) -> Window<'_> {
        self.0.window()
    }

    fn fill(&mut self, from: u64, range_end: u64) -> io::Result<()> {
        self.0.fill(from, range_end)
    }

    fn file_len(&self) -> Option<u64> {
        self.0.file_len()
    }
}

impl SeekSource for NoSeek<'_> {
    fn seek(&mut self, _offset: u64) -> io::Result<()> {
        Err(io::Error::other("no seek"))
    }
}

/// Makes a call that must fail, and asserts that the reader stays where it was. The call is made
/// before each of the records at `offsets`, which all contain `data`, both before and after the
/// reader has found the record. If only the end follows these records, the call is also made at the
/// end.
fn stays<S: SeekSource>(
    open: impl Fn() -> Reader<S>,
    (offsets, data, has_end): (&[u64], &[u8], bool),
    fails: impl Fn(&mut Reader<S>) -> Result<(), Error>,
) {
    let next = |reader: &mut Reader<S>| {
        let record = reader.next_record().expect("a record or the end")?;
        assert!(record.data == data, "{} bytes at {}", record.data.len(), record.offset);
        Some(record.offset)
    };
    let state = |reader: &Reader<S>| {
        let found = reader.found().map(|found| match found {
            cordwood_log::read::Found::Record(record) => Some((record.offset, record.len())),
            _ => None,
        });
        (found, reader.end())
    };
    for taken in 0..offsets.len() + usize::from(has_end) {
        for is_found in [false, true] {
            let mut reader = open();
            for &offset in &offsets[..taken] {
                assert_eq!(next(&mut reader), Some(offset));
            }
            if taken == offsets.len() {
                assert_eq!(next(&mut reader), None);
            }
            while is_found && !reader.find() {
                reader.read_more();
            }
            let before = state(&reader);
            fails(&mut reader).expect_err("a failure");
            assert_eq!(state(&reader), before, "after {taken} records, {is_found}");
            for &offset in &offsets[taken..] {
                assert_eq!(next(&mut reader), Some(offset), "after {taken} records, {is_found}");
            }
        }
    }
}

#[test]
fn a_failed_call_does_not_change_the_position_of_the_reader() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = [7; 20];
    let file = Wire::Plain.full(&data).repeat(2);
    let [later, pruned] = ["later.log", "pruned.log"].map(|name| directory.path().join(name));
    for path in [&later, &pruned] {
        fs::create_dir(path).expect("a directory");
    }
    fs::write(later.join(name_of(0)), &file).expect("a file");
    fs::write(later.join(name_of(54)), mark(9, 0)).expect("a file");
    for offset in [300, 354] {
        fs::write(pruned.join(name_of(offset)), &file).expect("a file");
    }
    let options = || ReadOptions::default().with_dialect(Dialect::LEVELDB);
    let open = |path: &Path, options: ReadOptions| Reader::open_with(path, options).expect("a log");
    let no_seek = || Reader::with_source(NoSeek(SliceSource::new(&file)), options());
    let [one, two]: [&[u64]; 2] = [&[0, 27], &[300, 327, 354, 381]];
    let cases: [(&str, &dyn Fn()); 7] = [
        ("seek to a later version", &|| {
            stays(
                || open(&later, ReadOptions::default()),
                (one, &data, false),
                |reader| reader.seek(54),
            );
        }),
        ("seek before the log", &|| {
            stays(
                || open(&pruned, ReadOptions::default()),
                (two, &data, true),
                |reader| reader.seek(10),
            );
        }),
        ("seek before the log from a range", &|| {
            let range = || open(&pruned, options().with_range(327..381));
            stays(range, (&two[1..3], &data, true), |reader| reader.seek(10));
        }),
        ("seek that the source refuses", &|| {
            stays(no_seek, (one, &data, true), |reader| reader.seek(27));
        }),
        ("restart before the log", &|| {
            let call = |reader: &mut Reader| reader.restart(options().with_range(10..));
            stays(|| open(&pruned, ReadOptions::default()), (two, &data, true), call);
        }),
        ("restart that the source refuses", &|| {
            stays(no_seek, (one, &data, true), |reader| {
                reader.restart(options().with_range(27..))
            });
        }),
        ("another range before the log", &|| {
            let call = |reader: &mut Reader| reader.another(options().with_range(10..)).map(drop);
            stays(|| open(&pruned, ReadOptions::default()), (two, &data, true), call);
        }),
    ];
    for (name, check) in cases {
        #[allow(clippy::print_stderr, reason = "the output of a failed test ends with its case")]
        {
            eprintln!("{name}");
        }
        check();
    }
}

/// If a poll fails because a segment cannot be read, it must not take a record.
#[cfg(unix)]
#[test]
fn a_failed_poll_does_not_change_the_position_of_the_follower() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, link) = (Wire::Plain.full(&[7; 20]), directory.path().join(name_of(400)));
    fs::write(directory.path().join(name_of(300)), &file).expect("a file");
    let mut follower = Follower::open(directory.path()).expect("a follower");
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.offset == 300));
    std::os::unix::fs::symlink("missing", &link).expect("a link");
    // The directory is not listed at every poll.
    let error = (0..100).find_map(|_| follower.poll().err()).expect("a link to no file");
    assert!(matches!(error.kind, ErrorKind::Io { .. }), "{error}");
    assert_eq!((follower.offset(), follower.has_found()), (327, false));
    fs::remove_file(&link).expect("a file");
    fs::write(directory.path().join(name_of(327)), &file).expect("a file");
    assert!(matches!(follower.poll(), Ok(Poll::Record(record)) if record.offset == 327));
}
