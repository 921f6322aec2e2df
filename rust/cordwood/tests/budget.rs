//! Tests how much memory compressed records may use in total, which [`ErrorKind::OverBudget`]
//! limits.

use crate::made::varint;
use cordwood_log::codec::{Encoder, RECORD_LEN_MAX};
use cordwood_log::crc32c::{crc32c, mask};
use cordwood_log::follow::Poll;
use cordwood_log::format::Header;
use cordwood_log::ops::SalvageOptions;
use cordwood_log::read::{SliceSource, StreamSource};
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, Follower, LogFile, LogFileOptions, LogFormat, OnCorruption, OnTornTail,
    ReadOptions, Reader, ops,
};

const MIB: u64 = 1 << 20;
const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Fail,
    OnCorruption::Skip,
    OnCorruption::Stop,
    OnCorruption::Salvage,
];

fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        masked_crc: mask(crc32c(&[&[kind], payload].concat())),
        len: u16::try_from(payload.len()).unwrap(),
        kind,
    };
    [&header.encode(), payload].concat()
}

/// Returns a frame that states a content of `data_len` bytes, in blocks that each repeat one byte.
fn bomb(data_len: u64) -> Vec<u8> {
    let block_len = 128 << 10;
    let mut frame = b"\x28\xb5\x2f\xfd\xe0".to_vec();
    frame.extend(data_len.to_le_bytes());
    let count = data_len / block_len;
    for number in 1..=count {
        let header = u64::from(number == count) | 1 << 1 | block_len << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b'x');
    }
    frame
}

/// Returns an invalid frame that states the same length. Its first block has an unknown type.
fn broken(data_len: u64) -> Vec<u8> {
    let mut frame = bomb(data_len);
    frame[13..].fill(0xff);
    // A block has at least three bytes.
    frame.truncate(13 + (data_len / (128 << 10)) as usize * 3);
    frame
}

const SET_ZSTD: [u8; 4] = [7, 0, 0, 0];

/// Returns a compressed log of these frames, and the offset of each frame. Each frame is in one
/// fragment or in two.
fn log(frames: &[Vec<u8>], are_joined: bool) -> (Vec<u8>, Vec<u64>) {
    let mut file = fragment(9, &SET_ZSTD);
    let mut offsets = Vec::new();
    for frame in frames {
        offsets.push(file.len() as u64);
        if are_joined {
            let (first, last) = frame.split_at(frame.len() / 2);
            file.extend([fragment(2, first), fragment(4, last)].concat());
        } else {
            file.extend(fragment(1, frame));
        }
    }
    assert!(file.len() < 32_768);
    (file, offsets)
}

fn is_refused_at(error: &Error, offset: u64, expected_len: u64) -> bool {
    matches!(error.kind, ErrorKind::OverBudget(record) if (record.offset, record.data_len) == (offset, expected_len))
}

#[test]
fn an_oversized_record_is_rejected_on_every_read() {
    for are_joined in [false, true] {
        let (file, offsets) = log(&[bomb(MIB), bomb(300 * MIB), bomb(MIB)], are_joined);
        let is_refused = |error: &Error| is_refused_at(error, offsets[1], 300 * MIB);
        for policy in POLICIES {
            let options = ReadOptions::default().with_on_corruption(policy);
            let mut reader = Reader::from_slice(&file, options.clone());
            for _ in 0..2 {
                assert_eq!(reader.next_record().unwrap().unwrap().data.len() as u64, MIB);
                for _ in 0..3 {
                    let error = reader.next_record().unwrap_err();
                    assert!(is_refused(&error), "{error}");
                    assert!(
                        error.to_string().ends_with("unless the limit is 1073741825 or more"),
                        "{error}"
                    );
                }
                reader.seek(offsets[0]).unwrap();
            }
            let error = ops::verify(SliceSource::new(&file), &options).unwrap_err();
            assert!(is_refused(&error), "{error}");
            let error = ops::stat(SliceSource::new(&file), &options).unwrap_err();
            assert!(is_refused(&error), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        let clean = directory.path().join("clean.log");
        let source = SliceSource::new(&file);
        let error = ops::salvage(source, &clean, &SalvageOptions::default()).unwrap_err();
        assert!(is_refused(&error), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);

        let path = directory.path().join("live.log");
        std::fs::write(&path, &file).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        while !matches!(follower.poll().unwrap(), Poll::Record(_)) {}
        for _ in 0..3 {
            let error = follower.poll().unwrap_err();
            assert!(is_refused(&error), "{error}");
            assert_eq!(follower.offset(), offsets[1]);
        }

        let options = ReadOptions::default().with_record_len_max(RECORD_LEN_MAX + 1);
        let stat = ops::stat(SliceSource::new(&file), &options).unwrap();
        assert_eq!((stat.record_count, stat.record_len_max), (3, Some(300 * MIB)));
    }
}

/// The error names the smallest value that is enough. Frames that cannot be decompressed count too.
#[test]
fn the_suggested_record_limit_is_the_smallest_that_fits_the_budget() {
    let (file, offsets) = log(&[broken(200 * MIB), broken(200 * MIB)], false);
    let error = ops::verify(SliceSource::new(&file), &ReadOptions::default()).unwrap_err();
    assert!(is_refused_at(&error, offsets[1], 200 * MIB), "{error}");

    let frame = broken(1 << 30);
    let (one, _) = log(std::slice::from_ref(&frame), false);
    // Each frame is in its own block.
    let mut file = one;
    file.resize(32_768, 0);
    file.extend(fragment(1, &frame));
    let read_len = file.len() as u64;
    let options = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_dialect(Dialect::ROCKSDB)
        .with_record_len_max(RECORD_LEN_MAX + 1);
    let error = ops::verify(SliceSource::new(&file), &options).unwrap_err();
    let ErrorKind::OverBudget(record) = error.kind else {
        panic!("{error}")
    };
    let record_len_max = record.record_len_max;
    assert_eq!(record_len_max, 2 * RECORD_LEN_MAX - 200 * read_len);
    for (record_len_max, is_read) in [(record_len_max, true), (record_len_max - 1, false)] {
        let options = options.clone().with_record_len_max(record_len_max);
        assert_eq!(ops::verify(SliceSource::new(&file), &options).is_ok(), is_read);
    }
}

/// Data that compresses well reaches the limit only after 256 MiB.
#[test]
fn real_engine_logs_fit_within_the_budget() {
    let mut file = Vec::new();
    let mut encoder =
        Encoder::with_format(0, LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd)).unwrap();
    for _ in 0..200 {
        encoder.encode(&vec![0; MIB as usize], &mut file);
    }
    let stat = ops::stat(SliceSource::new(&file), &ReadOptions::default()).unwrap();
    assert_eq!((stat.record_count, stat.payload_len), (200, 200 * MIB));
}

#[test]
fn budget_errors_include_the_path() {
    let (file, _) = log(&[bomb(300 * MIB)], false);
    let mut reader = Reader::with_source(
        StreamSource::new(&file[..], 0).with_path(Some("a.log".into())),
        ReadOptions::default(),
    );
    assert!(
        reader
            .next_record()
            .unwrap_err()
            .to_string()
            .starts_with("a.log: the compressed record at offset 11 has ")
    );
}

/// Returns a packed log of one container, which is cut into fragments of whole blocks.
fn packed(container: &[u8]) -> Vec<u8> {
    let mut file = fragment(0x48, b"cordwood\x01\x01");
    let (first, mut rest) = container.split_at(container.len().min(32_768 - 17 - 7));
    file.extend(fragment(if rest.is_empty() { 0x40 } else { 0x42 }, first));
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(32_761));
        file.extend(fragment(if after.is_empty() { 0x46 } else { 0x44 }, part));
        rest = after;
    }
    file
}

/// Opens the log to append records of at most `record_len_max` bytes, and returns its length
/// afterwards.
fn len_after_opening(file: &[u8], record_len_max: u64) -> Result<u64, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("packed.log");
    std::fs::write(&path, file).unwrap();
    let mut options = LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate);
    options.record_len_max = record_len_max;
    LogFile::append_to(&path, options)?.close()?;
    Ok(std::fs::metadata(&path).unwrap().len())
}

#[test]
fn opening_for_append_uses_the_same_decompression_budget_as_reading() {
    let file = packed(&[b"\x01\x01".to_vec(), bomb(300 * MIB)].concat());
    let error = len_after_opening(&file, RECORD_LEN_MAX).unwrap_err();
    assert!(is_refused_at(&error, 17, 300 * MIB), "{error}");
    // This frame is longer than the limit, so it is not decompressed, and its container counts as
    // whole.
    assert_eq!(len_after_opening(&file, 1000).unwrap(), file.len() as u64);
}

/// Returns a container of one record of this length.
fn container_of(record_len: u64) -> Vec<u8> {
    let varint = varint(record_len as usize);
    let body_len = record_len + varint.len() as u64;
    let extra = body_len % (128 << 10);
    let mut frame = bomb(body_len - extra);
    frame[5..13].copy_from_slice(&body_len.to_le_bytes());
    // The first block becomes a raw block with the varint, followed by the rest of the repeated
    // bytes.
    let run_len = (128 << 10) + extra - varint.len() as u64;
    let block = |kind: u64, len: u64| (kind << 1 | len << 3).to_le_bytes()[..3].to_vec();
    let first = [block(0, varint.len() as u64), varint, block(1, run_len), b"x".to_vec()].concat();
    frame.splice(13..17, first);
    [b"\x01\x01".to_vec(), frame].concat()
}

/// Rule C6 limits each container, however many bytes of the file precede it.
#[test]
fn a_container_can_declare_at_most_256_mib() {
    let fits = packed(&container_of(256 * MIB - 4));
    let mut reader = Reader::from_slice(&fits, ReadOptions::default());
    assert_eq!(reader.next_record().unwrap().unwrap().data.len() as u64, 256 * MIB - 4);
    assert_eq!(len_after_opening(&fits, RECORD_LEN_MAX).unwrap(), fits.len() as u64);

    let file = packed(&container_of(256 * MIB - 3));
    // The budget of all frames together would allow this container.
    assert!(200 * file.len() as u64 > MIB);
    let error = Reader::from_slice(&file, ReadOptions::default())
        .next_record()
        .unwrap_err();
    assert!(is_refused_at(&error, 17, 256 * MIB + 1), "{error}");
    let error = len_after_opening(&file, RECORD_LEN_MAX).unwrap_err();
    assert!(is_refused_at(&error, 17, 256 * MIB + 1), "{error}");
    let error = ops::verify(SliceSource::new(&file), &ReadOptions::default()).unwrap_err();
    let ErrorKind::OverBudget(record) = error.kind else {
        panic!("{error}")
    };
    let options = ReadOptions::default().with_record_len_max(record.record_len_max);
    assert_eq!(ops::verify(SliceSource::new(&file), &options).unwrap().record_count, 1);
    assert_eq!(record.record_len_max, RECORD_LEN_MAX + 1);
}

/// The option that the error names must be enough for both limits of rule C6.
#[test]
fn the_suggested_record_limit_also_suffices_for_a_container() {
    let bomb = container_of((2 << 30) - 4);
    let file = packed(&bomb);
    let options = ReadOptions::default().with_record_len_max((2 << 30) - 1);
    let error = ops::verify(SliceSource::new(&file), &options).unwrap_err();
    let ErrorKind::OverBudget(record) = error.kind else {
        panic!("{error}")
    };
    assert_eq!(record.record_len_max, (2 << 30) + 1);
}

/// A record that is too long for the limit of a container is stored as an ordinary record.
#[test]
fn a_record_too_long_for_a_container_is_stored_as_an_ordinary_record() {
    let format = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd);
    // The length of the record takes up four bytes of the body.
    for (len, is_packed) in [(256 * MIB - 4, true), (256 * MIB - 3, false)] {
        let mut file = Vec::new();
        Encoder::with_format(0, format)
            .unwrap()
            .encode(&vec![0; len as usize], &mut file);
        // This is the type of the first fragment after the mark.
        assert_eq!(file[17 + 6] == 0x40 || file[17 + 6] == 0x42, is_packed);
        let stat = ops::stat(SliceSource::new(&file), &ReadOptions::default()).unwrap();
        assert_eq!((stat.record_count, stat.payload_len), (1, len));
    }
}

#[test]
fn opening_for_append_does_not_truncate_a_complete_oversized_container() {
    let container = [&b"\x00\x01\x80\x80\x80\x01"[..], &vec![0; 2 << 20]].concat();
    let file = packed(&container);
    assert_eq!(len_after_opening(&file, 1000).unwrap(), file.len() as u64);
    for end in [17 + 7, 40_000, 1 << 20, 3 * 32_768, (5 << 18) + 5, file.len() - 1] {
        assert_eq!(len_after_opening(&file[..end], 1000).unwrap(), 17, "{end}");
    }
}
