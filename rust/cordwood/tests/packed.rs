//! Tests packed logs, which are containers of many records. The expected values come from the
//! vectors in `docs/format/packed.md` and from hand-built bytes.

use std::io;

use crate::common::{Found, read_all};
use crate::made::{body, container, frame, mark};
use crate::wire::Wire;
use cordwood_log::ops::{Detection, Stat, detect, fragments, stat, verify};
use cordwood_log::parallel::{Parts, stat_parts};
use cordwood_log::read::{RecordBatch, SliceSource, Source};
use cordwood_log::{
    Compression, Dialect, End, Error, ErrorKind, LogFormat, OnCorruption, ReadOptions, Reader, Unsupported,
};

const BLOCK: usize = 32_768;

/// A record with its offsets, or a skipped region with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Record(u64, u64, Vec<u8>),
    Skipped(u64, u64, &'static str),
}
use Part::{Record, Skipped};

fn record(offset: u64, end_offset: u64, data: &[u8]) -> Part {
    Record(offset, end_offset, data.to_vec())
}

fn parts<S: Source>(reader: &mut Reader<S>) -> Vec<Part> {
    let events = read_all(reader).0.into_iter();
    let parts = events.map(|event| match event {
        Found::Record {
            offset,
            end_offset,
            data,
            ..
        } => Record(offset, end_offset, data),
        Found::Skipped(region) => Skipped(region.start, region.end, region.reason.as_str()),
    });
    parts.collect()
}

fn options() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Skip)
}

/// Returns everything that a reader of a slice returns.
fn read(file: &[u8], options: &ReadOptions) -> Vec<Part> {
    parts(&mut Reader::from_slice(file, options.clone()))
}

/// A source that returns only a few bytes per read.
struct Trickle<'a>(&'a [u8], usize);

impl io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(buffer.len()).min(self.0.len());
        buffer[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        Ok(len)
    }
}

/// Checks that each way of reading returns the same parts.
#[track_caller]
fn check(file: &[u8], expected: &[Part]) {
    assert_eq!(read(file, &options()), expected);
    let named = options().with_dialect(Dialect::PACKED);
    assert_eq!(read(file, &named), expected, "named");
    for step in [1, 3, 7, 4096] {
        if file.len() / step > 50_000 {
            continue;
        }
        assert_eq!(
            parts(&mut Reader::new(Trickle(file, step), options())),
            expected,
            "{step} bytes per read"
        );
    }
    let records: Vec<_> = expected.iter().filter(|part| matches!(part, Record(..))).collect();
    for target_len in [1, 10, 1 << 20] {
        let mut reader = Reader::from_slice(file, options());
        let (mut batch, mut found) = (RecordBatch::default(), Vec::new());
        while reader.record_batch(&mut batch, target_len).unwrap() {
            for (index, data) in batch.iter().enumerate() {
                let offset = batch.record_offsets()[index];
                found.push(record(offset, batch.record_end_offset(index).unwrap(), data));
            }
            batch.clear();
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), records, "batches of {target_len}");
    }
    let report = verify(SliceSource::new(file), &options()).unwrap();
    assert_eq!(report.record_count, records.len() as u64);
    let stat = stat(SliceSource::new(file), &options()).unwrap();
    assert_eq!(stat.record_count, records.len() as u64);
    let whole = stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len;
    assert_eq!(whole, file.len() as u64, "{stat:?}");
    let mut end = 0;
    for fragment in fragments(
        [SliceSource::new(file), SliceSource::new(file)],
        &ReadOptions::default(),
    ) {
        let fragment = fragment.unwrap();
        assert_eq!(fragment.offset, end);
        end = fragment.end_offset;
    }
    assert_eq!(end, file.len() as u64);
}

const OK: &[u8] = b"\xf6\x9f\xcf\xef\x02\x00\x01ok";
const MARK_STORED: &[u8] = b"\x90\x26\x4b\x92\x0a\x00\x48cordwood\x01\x00";
const MARK_ZSTD: &[u8] = b"\x47\xca\x52\x8c\x0a\x00\x48cordwood\x01\x01";
const STORED: &[u8] = b"\x59\x42\xc1\x06\x09\x00\x40\x00\x03\x01\x00\x03afoo";
const ZSTD: &[u8] =
    b"\xd6\xb3\x37\x9d\x16\x00\x40\x01\x03\x28\xb5\x2f\xfd\x24\x07\x39\x00\x00\x01\x00\x03afoo\x3f\x03\x47\xbd";

fn packed(compression: Option<Compression>) -> LogFormat {
    let format = LogFormat::new(Dialect::PACKED);
    match compression {
        Some(compression) => format.with_compression(compression),
        None => format,
    }
}

#[test]
fn vectors_1_and_2_show_that_a_mark_is_metadata() {
    for (file, compression) in [(MARK_STORED, None), (MARK_ZSTD, Some(Compression::Zstd))] {
        check(file, &[Skipped(0, 17, "metadata")]);
        assert_eq!(detect(file), Detection::Log(packed(compression)));
        let mut reader = Reader::from_slice(file, options());
        while reader.next_event().unwrap().is_some() {}
        assert_eq!(reader.format().unwrap(), packed(compression));
    }
}

#[test]
fn vector_3_a_stored_container_returns_its_records() {
    check(STORED, &[record(0, 1, b"a"), record(1, 2, b""), record(2, 16, b"foo")]);
}

#[test]
#[cfg(feature = "zstd")]
fn vector_4_a_compressed_container_returns_its_records() {
    check(ZSTD, &[record(0, 1, b"a"), record(1, 2, b""), record(2, 29, b"foo")]);
    assert_eq!(detect(ZSTD), Detection::Log(packed(Some(Compression::Zstd))));
}

#[test]
#[cfg(feature = "zstd")]
fn vector_5_a_frame_of_two_blocks_is_decompressed() {
    let file =
        b"\x96\xc8\x36\x75\x14\x00\x40\x01\x01\x28\xb5\x2f\xfd\x24\x15\x08\x00\x00\x14\xa3\x00\x00\x7a\xad\xbe\xad\x00";
    check(file, &[record(0, 27, &[b'z'; 20])]);
}

#[cfg(feature = "zstd")]
fn vector_6() -> Vec<u8> {
    let last = b"\xa1\x97\x32\x6a\x07\x00\x40\x00\x01\x04last";
    [MARK_ZSTD, ZSTD, &b"\x16\x9c\x68\x5c\x28\x00\x01"[..], &[b'z'; 40], last].concat()
}

#[test]
#[cfg(feature = "zstd")]
fn vector_6_shows_that_records_and_containers_can_alternate() {
    check(
        &vector_6(),
        &[
            Skipped(0, 17, "metadata"),
            record(17, 18, b"a"),
            record(18, 19, b""),
            record(19, 46, b"foo"),
            record(46, 93, &[b'z'; 40]),
            record(93, 107, b"last"),
        ],
    );
}

fn vector_7() -> Vec<u8> {
    let mut file = MARK_STORED.to_vec();
    Wire::Plain.append(&mut file, 0, &[b'p'; BLOCK - 7 - 17 - 7]);
    let start = Wire::Packed.append(&mut file, 0, &STORED[7..]);
    assert_eq!((start, file.len()), (32_761, 32_784));
    file
}

#[test]
fn vector_7_a_container_starts_seven_bytes_before_the_end_of_a_block() {
    check(
        &vector_7(),
        &[
            Skipped(0, 17, "metadata"),
            record(17, 32_761, &[b'p'; BLOCK - 7 - 17 - 7]),
            record(32_761, 32_762, b"a"),
            record(32_762, 32_763, b""),
            record(32_763, 32_784, b"foo"),
        ],
    );
}

/// The expected lengths are the payload lengths in the vectors.
#[test]
fn the_statistics_count_each_container_once() -> Result<(), Error> {
    let fragments = |stat: &Stat| [stat.full_count, stat.first_count, stat.middle_count, stat.last_count];
    let containers = |stat: &Stat| {
        [
            stat.container_count,
            stat.container_len,
            stat.packed_count,
            stat.packed_len,
        ]
    };
    for (file, format, expected) in [
        #[cfg(feature = "zstd")]
        (
            vector_6(),
            packed(Some(Compression::Zstd)),
            ([3, 0, 0, 0], [2, 22 + 7, 4, 4 + 4]),
        ),
        (vector_7(), packed(None), ([1, 1, 0, 1], [1, 9, 3, 4])),
        (OK.repeat(2), Dialect::LEVELDB.into(), ([2, 0, 0, 0], [0; 4])),
    ] {
        let whole = stat(SliceSource::new(&file), &options())?;
        assert_eq!((fragments(&whole), containers(&whole)), expected);
        let named = options().with_format(format);
        let parts = Parts::new(&named, Some(file.len() as u64), BLOCK as u64);
        let readers = [(); 2].map(|()| Reader::from_slice(&file, named.clone()));
        assert_eq!(stat_parts(readers.into(), &parts)?, whole);
    }
    Ok(())
}

#[test]
#[cfg(feature = "zstd")]
fn vector_8_every_record_in_a_container_needs_its_own_offset() {
    let file = b"\x7b\xdd\x78\xd6\x12\x00\x40\x01\xac\x02\x28\xb5\x2f\xfd\x64\x2c\x00\x63\x09\x00\x00\x90\xea\x00\x3a";
    check(
        &[file, OK].concat(),
        &[Skipped(0, 25, "bad_container"), record(25, 34, b"ok")],
    );
}

#[test]
fn vector_9_a_container_with_inconsistent_lengths_is_skipped() {
    let file = b"\x7b\x12\xe9\x5d\x09\x00\x40\x00\x03\x01\x00\x02afoo";
    check(
        &[file, OK].concat(),
        &[Skipped(0, 16, "bad_container"), record(16, 25, b"ok")],
    );
}

/// Returns the error of a reader and its offset. Checks that it is the same under each policy, and
/// that a further call returns it again.
fn refused(file: &[u8]) -> (Unsupported, Option<u64>) {
    use OnCorruption::{Fail, Salvage, Skip, Stop};
    let refused = [Fail, Skip, Stop, Salvage].map(|policy| {
        let options = ReadOptions::default().with_on_corruption(policy);
        let mut reader = Reader::from_slice(file, options.clone());
        let errors = [(); 2].map(|()| reader.next_record().unwrap_err());
        assert_eq!(errors[0].to_string(), errors[1].to_string());
        let verified = verify(SliceSource::new(file), &options).unwrap_err();
        assert_eq!(verified.to_string(), errors[0].to_string());
        match errors[0] {
            Error {
                kind: ErrorKind::Unsupported { unsupported, .. },
                ..
            } => (unsupported, errors[0].offset()),
            ref error => panic!("{error}"),
        }
    });
    assert!(refused.iter().all(|other| *other == refused[0]));
    refused[0]
}

#[test]
fn vector_10_an_unknown_codec_is_rejected_under_every_policy() {
    let file = b"\x7a\x77\x80\x73\x09\x00\x40\x02\x03\x01\x00\x03afoo";
    let found = refused(&[file, OK].concat());
    assert!(
        matches!(
            found,
            (
                Unsupported::Codec {
                    codec: 2,
                    offset: 0,
                    ..
                },
                Some(0)
            )
        ),
        "{found:?}"
    );
}

#[test]
fn vector_11_a_newer_format_version_is_rejected_under_every_policy() {
    let file = b"\x4f\x3d\x7d\x61\x0a\x00\x48cordwood\x02\x00";
    let found = refused(&[file, OK].concat());
    assert!(
        matches!(
            found,
            (
                Unsupported::PackedVersion {
                    version: 2,
                    offset: 0,
                    ..
                },
                Some(0)
            )
        ),
        "{found:?}"
    );
}

#[test]
#[cfg(feature = "zstd")]
fn vector_12_a_container_over_256_mib_is_rejected_under_every_policy() {
    let start = b"\xb7\x5b\xd2\x2d\x12\x20\x40\x01\x01\x28\xb5\x2f\xfd\xa0\x01\x00\x00\x10";
    let blocks = b"\x20\x00\x00\xfd\xff\xff\x7f\xea\xff\x0f\x00";
    let runs = b"\x02\x00\x10\x00".repeat(2_046);
    let file = [start, &blocks[..], &runs, b"\x03\x00\x10\x00", OK].concat();
    for policy in [
        OnCorruption::Fail,
        OnCorruption::Skip,
        OnCorruption::Stop,
        OnCorruption::Salvage,
    ] {
        let options = ReadOptions::default().with_on_corruption(policy);
        let error = Reader::from_slice(&file, options.clone()).next_record().unwrap_err();
        assert!(
            matches!(
                error.kind,
                cordwood_log::ErrorKind::OverBudget(record) if (record.offset, record.end_offset) == (0, 8217)
            ),
            "{error}"
        );
        let mut reader = Reader::from_slice(&file, options.with_record_len_max((1 << 30) + 1));
        assert_eq!(reader.next_record().unwrap().unwrap().data.len(), (256 << 20) - 3);
        assert_eq!(reader.next_record().unwrap().unwrap().data, b"ok");
    }
}

/// The rest of the log may have been written in the later version.
#[test]
fn a_newer_mark_after_a_record_causes_an_error_at_the_offset_of_the_mark() {
    let file = [&mark(1, 0)[..], OK, &mark(2, 0), OK].concat();
    for policy in [
        OnCorruption::Fail,
        OnCorruption::Skip,
        OnCorruption::Stop,
        OnCorruption::Salvage,
    ] {
        let mut reader = Reader::from_slice(&file, ReadOptions::default().with_on_corruption(policy));
        assert_eq!(reader.next_record().unwrap().unwrap().data, b"ok");
        let error = reader.next_record().unwrap_err();
        let offset = 17 + OK.len() as u64;
        assert!(
            matches!(
                error.kind,
                ErrorKind::Unsupported { unsupported: Unsupported::PackedVersion { version: 2, offset: found, .. }, .. }
                    if found == offset
            ),
            "{policy:?}: {error}"
        );
    }
}

/// Another build may support the compression, so it is refused instead of skipped.
#[test]
#[cfg(not(feature = "zstd"))]
fn compression_without_zstd_is_rejected_under_every_policy() {
    let found = refused(&[ZSTD, OK].concat());
    assert!(matches!(found, (Unsupported::ZstdFeature, None)), "{found:?}");
}

/// Returns records of many lengths, some of them empty.
fn records(seed: usize, count: usize, len_max: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|index| {
            let len = (seed * 31 + index * index * 7) % (len_max + 1);
            (0..len).map(|at| (seed + index * 5 + at) as u8).collect()
        })
        .collect()
}

/// Returns a log of more than three blocks. It contains the mark, records, and containers with and
/// without compression. Some of them cross the ends of blocks.
fn three_blocks() -> Vec<u8> {
    let mut file = mark(1, 1);
    for seed in 0.. {
        if file.len() > 3 * BLOCK {
            return file;
        }
        let records = records(seed, 1 + seed * 13 % 60, [3, 40, 400, 9000][seed % 4] / (1 + seed % 3));
        let body = body(&records);
        match seed % 5 {
            2 => Wire::Plain.append(&mut file, 0, &records.concat()),
            1 | 4 if cfg!(feature = "zstd") => {
                Wire::Packed.append(&mut file, 0, &container(1, records.len(), &frame(&body)))
            }
            _ => Wire::Packed.append(&mut file, 0, &container(0, records.len(), &body)),
        };
    }
    unreachable!()
}

#[test]
fn all_readers_read_a_file_of_three_blocks_the_same_way() {
    let file = three_blocks();
    let all = read(&file, &options());
    assert!(
        all.iter()
            .all(|part| matches!(part, Record(..) | Skipped(0, 17, "metadata")))
    );
    check(&file, &all);
}

fn start(part: &Part) -> u64 {
    match part {
        Record(start, ..) | Skipped(start, ..) => *start,
    }
}

/// Checks that if a file is divided at each of these offsets, both parts together are the whole.
#[track_caller]
fn check_splits(file: &[u8], options: &ReadOptions, splits: impl Iterator<Item = u64>) {
    let all = read(file, options);
    for split in splits {
        let before = read(file, &options.clone().with_range(..split));
        let after = read(file, &options.clone().with_range(split..));
        // Fragments with a missing start belong to the first range if they directly follow its end.
        let is_before = |part: &Part| start(part) < split || matches!(part, Skipped(.., "missing_start"));
        let edge = all
            .iter()
            .rposition(|part| start(part) < split)
            .map_or(0, |last| last + 1);
        let orphans = all[edge..].iter().take_while(|part| is_before(part)).count();
        let edges = [edge, edge + orphans].map(|edge| all.split_at(edge));
        assert!(
            edges.contains(&(&before[..], &after[..])),
            "split at {split}: {before:?} {after:?}"
        );
    }
}

#[test]
fn splitting_a_packed_log_at_any_offset_loses_no_records() {
    let file = three_blocks();
    check_splits(&file, &options(), 0..=file.len() as u64);
}

/// Returns copies of a file, each with damage in a different part.
fn damaged_files() -> Vec<Vec<u8>> {
    let file = three_blocks();
    let mut files: Vec<_> = (0..file.len())
        .step_by(1_733)
        .map(|at| {
            let mut file = file.clone();
            file[at] ^= 0x20;
            file
        })
        .collect();
    // Whole blocks are missing or zero.
    files.push([&file[..BLOCK], &file[2 * BLOCK..]].concat());
    files.push([&file[..BLOCK], &vec![0; BLOCK], &file[2 * BLOCK..]].concat());
    files.push(file[BLOCK..].to_vec());
    files.push(file[..2 * BLOCK + 4_000].to_vec());
    files
}

#[test]
fn splitting_a_damaged_packed_log_anywhere_yields_the_same_records() {
    for (index, file) in damaged_files().iter().enumerate() {
        for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
            let options = options().with_on_corruption(policy).with_dialect(Dialect::PACKED);
            check_splits(file, &options, (0..file.len() as u64).step_by(577 + index));
        }
    }
}

#[test]
fn after_a_seek_the_record_at_that_offset_is_returned_next() {
    let file = three_blocks();
    for detected in [None, Some(Dialect::PACKED)] {
        let options = options().with_dialect(detected);
        let all = read(&file, &options);
        let mut slice = Reader::from_slice(&file, options.clone());
        let mut stream = Reader::new(io::Cursor::new(&file), options);
        for (index, part) in all.iter().enumerate() {
            let &Record(offset, end_offset, _) = part else {
                continue;
            };
            for (to, rest) in [(offset, &all[index..]), (end_offset, &all[index + 1..])] {
                slice.seek(to).unwrap();
                stream.seek(to).unwrap();
                let next: Vec<_> = rest.iter().take(3).cloned().collect();
                let found = |reader: &mut dyn FnMut() -> Option<Part>| -> Vec<_> {
                    (0..next.len()).map_while(|_| reader()).collect()
                };
                assert_eq!(found(&mut || next_of(&mut slice)), next, "slice, {to}");
                assert_eq!(found(&mut || next_of(&mut stream)), next, "stream, {to}");
            }
        }
    }
}

fn next_of<S: Source>(reader: &mut Reader<S>) -> Option<Part> {
    let found = reader.next_record().unwrap()?;
    Some(record(found.offset, found.end_offset, found.data))
}

#[test]
fn the_end_of_a_packed_log_is_the_end_of_its_last_container() {
    let mut reader = Reader::from_slice(STORED, options());
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.end(), Some(End::Clean { offset: 16 }));
    // The container is torn in its header, in its count, and in its data.
    for len in [3, 8, 15] {
        let file = [OK, &STORED[..len]].concat();
        let mut reader = Reader::from_slice(&file, options());
        assert_eq!(
            parts(&mut reader),
            [record(0, 9, b"ok"), Skipped(9, 9 + len as u64, "torn_tail")]
        );
        assert_eq!(reader.end(), Some(End::TornTail { offset: 9 }));
    }
}
