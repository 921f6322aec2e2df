//! Tests opening an existing file for append: the dialect in which it continues, the files that are
//! refused, and the bytes that are rewritten after a failed sync.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{self, assert_error};
use crate::double::{Double, EIO, ENOSPC, Fault, Op, until};
use cordwood_log::codec::Encoder;
use cordwood_log::damage::Reason;
use cordwood_log::format::{BLOCK_LEN, HEADER_LEN};
use cordwood_log::write::{FileId, Process};
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, FlushPolicy, Hint, LogFile, LogFileOptions, LogFormat, OnCorruption,
    OnTornTail, ReadOptions, Reader,
};

const POLICIES: [OnTornTail; 3] = [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock];

fn options() -> LogFileOptions {
    LogFileOptions::default()
}

fn log_of<const N: usize>(dialect: LogFormat, records: [&[u8]; N]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, dialect).unwrap();
    for record in records {
        encoder.encode(record, &mut file);
    }
    file
}

fn leveldb_log<const N: usize>(records: [&[u8]; N]) -> Vec<u8> {
    log_of(LogFormat::new(Dialect::LEVELDB), records)
}

/// Returns the records of a file as a reader with default options returns them.
fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut reader = Reader::from_slice(file, options);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("a slice") {
        records.push(record.data.to_vec());
    }
    records
}

/// Opens `file` for append. If that fails, asserts that the file is unchanged.
fn open(file: &[u8], options: LogFileOptions) -> (Double, Result<LogFile, Error>) {
    let double = Double::with_bytes(file);
    let log = LogFile::append_in(double.boxed(), options);
    if log.is_err() {
        assert_eq!(double.ops(), [], "refused, and changed");
    }
    (double, log)
}

// The dialect -----------------------------------------------------------------------------------

/// LevelDB fragments in a file of another dialect would be damage to its readers.
#[test]
fn appending_preserves_the_dialect_of_the_log() {
    let zeros = vec![0; 1200];
    for dialect in [Dialect::LEVELDB, Dialect::WANDB, Dialect::SWANLAB].map(LogFormat::new) {
        let file = log_of(dialect, [&zeros, b"two"]);
        for policy in POLICIES {
            let (double, log) = open(&file, options().with_on_torn_tail(policy));
            let log = log.expect("a whole log");
            assert_eq!(log.format(), dialect);
            log.append(b"three").expect("nothing fails");
            assert_eq!(records(&double.bytes()), [&zeros[..], b"two", b"three"], "{dialect:?}");
        }
    }
}

#[test]
fn an_append_error_states_which_dialect_cannot_read_the_file() {
    let files = [
        (LogFormat::new(Dialect::WANDB), Dialect::LEVELDB),
        (LogFormat::new(Dialect::LEVELDB), Dialect::WANDB),
        (LogFormat::new(Dialect::SWANLAB), Dialect::WANDB),
        (LogFormat::new(Dialect::ROCKSDB).with_log_number(7), Dialect::LEVELDB),
    ];
    for (dialect, named) in files {
        let file = log_of(dialect, [&[0; 1200], b"two"]);
        for policy in POLICIES {
            let (_, log) = open(&file, options().with_on_torn_tail(policy).with_dialect(named));
            assert_error!(log, ErrorKind::WrongDialect { named: shown, .. } if *shown == named, "{dialect:?} as {named:?}");
        }
    }
}

/// A RocksDB log that is not recycled is detected as a LevelDB log.
#[test]
fn appending_accepts_a_dialect_with_identical_fragments() {
    let file = leveldb_log([b"one"]);
    for named in [Dialect::ROCKSDB, Dialect::PEBBLE, Dialect::RECYCLABLE, Dialect::LEVELDB] {
        let (double, log) = open(&file, options().with_dialect(named));
        log.expect("a plain log").append(b"two").expect("nothing fails");
        assert_eq!(double.bytes(), leveldb_log([b"one", b"two"]), "{named:?}");
    }
}

#[test]
fn rejects_appending_to_numbered_or_compressed_logs() {
    let numbered = log_of(
        LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
        [b"one", &[0; 1200]],
    );
    let plain = leveldb_log([b"one"]);
    let cases = [
        (&numbered, None),
        (&numbered, Some(LogFormat::new(Dialect::PEBBLE))),
        (&numbered, Some(LogFormat::new(Dialect::RECYCLABLE))),
        (&plain, Some(LogFormat::new(Dialect::ROCKSDB).with_log_number(7))),
        (
            &plain,
            Some(LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd)),
        ),
        (&Vec::new(), Some(LogFormat::new(Dialect::PEBBLE).with_log_number(7))),
    ];
    for (file, named) in cases {
        for policy in POLICIES {
            let options = options().with_on_torn_tail(policy);
            let options = match named {
                Some(format) => options.with_format(format),
                None => options,
            };
            let (_, log) = open(file, options);
            assert_error!(log, ErrorKind::NeverAppended { .. }, "{named:?}");
        }
    }
}

// Files that are not logs, and damaged ones ------------------------------------------------------

#[test]
fn a_file_without_a_valid_fragment_is_not_truncated() {
    let text = b"hello world, this is a plain text file\n".repeat(100);
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    elf.resize(5000, 0);
    elf.resize(100_000, 7);
    for file in [&text[..], &text[..50], &elf] {
        for policy in POLICIES {
            let (_, log) = open(file, options().with_on_torn_tail(policy));
            assert_error!(log, ErrorKind::Foreign { .. }, "{policy:?}");
        }
    }
    let (_, log) = open(
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
        options().with_on_torn_tail(OnTornTail::PadToBlock),
    );
    assert_error!(log, ErrorKind::Foreign { .. });
}

/// The first blocks are damaged, so neither the dialect nor the number of the log can be detected.
/// No reader would read LevelDB fragments after its end.
#[test]
fn does_not_pad_a_log_if_its_dialect_cannot_be_detected() {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, LogFormat::new(Dialect::ROCKSDB).with_log_number(7)).unwrap();
    while file.len() < 10 * BLOCK_LEN {
        encoder.encode(&[b'x'; 5000], &mut file);
    }
    file[..3 * BLOCK_LEN].fill(b'?');
    let (_, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
    assert_error!(log, ErrorKind::Corruption { .. });
}

/// The torn record may be completed by the first bytes of the padding.
#[test]
fn padding_does_not_complete_a_record_ending_in_the_padding_byte() {
    for end in [&[0xff][..], &[0xff, 0, 0, 0], &[0xfe], &[0xff, 0xff], &[0], &[1]] {
        let record = [b"lost", end].concat();
        let whole = leveldb_log([b"one", &record]);
        for missing in 1..=end.len() {
            let torn = &whole[..whole.len() - missing];
            let (double, log) = open(torn, options().with_on_torn_tail(OnTornTail::PadToBlock));
            log.expect("torn").append(b"two").expect("nothing fails");
            assert_eq!(records(&double.bytes()), [b"one", b"two"], "{end:?} {missing}");
        }
    }
}

/// The torn record is now the first one. Only its header is written, and one byte of the block is
/// left.
#[test]
fn padding_does_not_complete_a_torn_first_record() {
    let zeros = leveldb_log([&[0; 3]]);
    let block = leveldb_log([&[0xff; BLOCK_LEN - 7]]);
    for torn in [&zeros[..7], &zeros[..9], &block[..BLOCK_LEN - 1]] {
        let (double, log) = open(torn, options().with_on_torn_tail(OnTornTail::PadToBlock));
        log.expect("torn").append(b"two").expect("nothing fails");
        assert_eq!(records(&double.bytes()), [b"two"], "{} bytes", torn.len());
    }
}

/// A valid MIDDLE fragment without a record is enough to prove a log. A checkpoint up to which the
/// file was on the disk is also enough.
#[test]
fn a_valid_fragment_or_a_checkpoint_proves_that_a_file_is_a_log() {
    let pad = || options().with_on_torn_tail(OnTornTail::PadToBlock);
    let middle = [&common::fragment(3, b"middle")[..], &[0xff; 50]].concat();
    let (double, log) = open(&middle, pad());
    log.expect("a log").append(b"two").expect("nothing fails");
    assert_eq!(records(&double.bytes()), [b"two"]);
    let mut file = leveldb_log([&[1; BLOCK_LEN - 7]]);
    file.extend([0xff; 50]);
    let (double, log) = open(&file, pad().with_checkpoint(Some(BLOCK_LEN as u64)));
    log.expect("a log").append(b"two").expect("nothing fails");
    assert_eq!(records(&double.bytes()).len(), 2);
}

/// In each of these files, the first header could belong to a torn record. It has type 9 in
/// Pebble's dialect, and type 1 in all dialects.
#[test]
fn text_and_gzip_files_are_never_truncated() {
    let text = b"abcdef\tmore text\n".to_vec();
    let gzip = [b"\x1f\x8b\x08\0\0\x10\x01\0\0\x03".as_slice(), &[0xbd; 300]].concat();
    for file in [text, gzip] {
        for &dialect in Dialect::ALL {
            let cutting = options().with_on_torn_tail(OnTornTail::Truncate).with_dialect(dialect);
            let (double, log) = open(&file, cutting);
            assert!(log.is_err(), "{dialect}");
            assert_eq!(double.bytes(), file, "{dialect}");
        }
    }
}

/// Less than a header may be a torn record. Five or more printable bytes are more likely a text.
#[test]
fn never_truncates_a_short_text_file() {
    for (text, is_cut) in [("note", true), ("notes", false), ("notes\n", false)] {
        let (double, log) = open(text.as_bytes(), options().with_on_torn_tail(OnTornTail::Truncate));
        assert_eq!(log.is_ok(), is_cut, "{text}");
        assert_eq!(double.bytes().is_empty(), is_cut, "{text}");
    }
}

/// The error names the format of the file, not only the damage. It does so even if the file is
/// longer than the bytes that detection reads, or if a dialect is named.
#[test]
fn append_errors_name_the_format_of_a_file_that_is_not_a_log() {
    let text = b"hello world, this is a plain text file\n".repeat(4000);
    for policy in POLICIES {
        let (_, log) = open(&text, options().with_on_torn_tail(policy));
        assert_error!(log, ErrorKind::Foreign { .. }, "{policy:?}");
        let leveldb = options().with_on_torn_tail(policy).with_dialect(Dialect::LEVELDB);
        let (_, log) = open(&text[..50], leveldb);
        assert_error!(log, ErrorKind::Foreign { .. }, "{policy:?}");
        let recyclable = log_of(LogFormat::new(Dialect::RECYCLABLE).with_log_number(7), [&[b'x'; 100]]);
        let (_, log) = open(&recyclable[..50], options().with_on_torn_tail(policy));
        assert_error!(log, ErrorKind::NeverAppended { .. }, "{policy:?}");
    }
}

/// The dialects differ only from the second block on. In the first block, the two layouts of run
/// files are the same.
#[test]
fn rejects_a_dialect_with_a_visibly_different_block_grid() {
    // The second file is exactly one block long.
    for len in [100, BLOCK_LEN - 14, 40_000] {
        let file = log_of(LogFormat::new(Dialect::WANDB), [&vec![b'x'; len]]);
        let (_, log) = open(&file, options().with_dialect(Dialect::WANDB_OLD));
        let is_refused = matches!(
            log,
            Err(Error {
                kind: ErrorKind::WrongDialect { .. },
                ..
            })
        );
        assert_eq!(is_refused, len > BLOCK_LEN, "{len}: {log:?}");
        let file = leveldb_log([&vec![b'x'; len]]);
        let (_, log) = open(&file, options().with_dialect(Dialect::ROCKSDB));
        assert!(log.is_ok(), "{len}: {log:?}");
    }
}

/// The reason of the tail is the first reason of the worst severity, wherever it is in the tail.
#[test]
fn opening_for_append_reports_the_worst_damage_in_the_tail() {
    let one = leveldb_log([b"one"]);
    let mut damaged = common::fragment(1, &[b'x'; 40]);
    damaged[20..30].fill(b'?');
    let zero_header = [[0; 20], [1; 20]].concat();
    let tails: [[&[u8]; 2]; 3] = [[&[], &damaged], [&damaged, &zero_header], [&damaged, &damaged[..20]]];
    for [first, second] in tails {
        let mut file = [&one, first].concat();
        file.resize(BLOCK_LEN, 0);
        file.extend(second);
        let (_, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
        let tail = log.expect("a log").discarded_tail().expect("a tail");
        assert_eq!((tail.start, tail.end), (one.len() as u64, file.len() as u64));
        assert!(matches!(tail.reason, Reason::ChecksumMismatch { .. }), "{tail:?}");
    }
}

/// A torn record after zeros is worse than the zeros, so it is reported.
#[test]
fn a_torn_record_after_zeros_is_reported_as_torn() {
    let mut file = leveldb_log([b"one"]);
    let start = file.len() as u64;
    file.resize(BLOCK_LEN, 0);
    file.extend(&common::fragment(1, b"torn")[..10]);
    for policy in [OnTornTail::Truncate, OnTornTail::PadToBlock] {
        let (_, log) = open(&file, options().with_on_torn_tail(policy));
        let tail = log.expect("torn").discarded_tail().expect("a tail");
        let expected = (start, file.len() as u64, Reason::TornTail);
        assert_eq!((tail.start, tail.end, tail.reason), expected, "{policy:?}");
    }
}

/// Normally, the first byte of the padding prevents it from completing a torn record. Zeros before
/// the padding are not a torn record.
#[test]
fn damage_followed_by_zeros_is_padded_with_zeros() {
    let mut file = leveldb_log([b"one"]);
    file.resize(BLOCK_LEN, 0xff);
    file.resize(BLOCK_LEN + 600, 0);
    let (double, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
    drop(log.expect("a log"));
    file.resize(2 * BLOCK_LEN, 0);
    assert!(double.bytes() == file);
}

/// The first fragment is valid, so it proves a log although the record is torn.
#[test]
fn a_torn_record_spanning_two_blocks_is_truncated_if_it_is_the_only_record() {
    let whole = leveldb_log([&[b'x'; 40_000]]);
    for len in [BLOCK_LEN, BLOCK_LEN + 3, BLOCK_LEN + 5_000] {
        let (double, log) = open(&whole[..len], options().with_on_torn_tail(OnTornTail::Truncate));
        drop(log.expect("torn"));
        assert_eq!(double.bytes(), [], "{len}");
    }
}

/// Of two blocks, the disk wrote a part of the first and none of the second.
#[test]
fn zeros_in_the_next_block_indicate_a_torn_write() {
    let one = leveldb_log([b"one"]);
    let mut file = leveldb_log([b"one".as_slice(), &[b'x'; 40_000]]);
    file[100..200].fill(b'?');
    file.truncate(BLOCK_LEN);
    file.resize(BLOCK_LEN + 600, 0);
    let (double, log) = open(&file, options().with_on_torn_tail(OnTornTail::Truncate));
    drop(log.expect("torn"));
    assert_eq!(double.bytes(), one);
}

/// If no sector after the first one was written, the hint suggests the option that truncates the
/// file. If a bit was flipped, it suggests the option that keeps the bytes.
#[test]
fn opening_a_damaged_log_for_append_fails_and_suggests_an_option() {
    let file = leveldb_log([b"one".as_slice(), &[b'x'; 3000]]);
    let (mut unwritten, mut flipped) = (file.clone(), file);
    unwritten[512..].fill(0);
    flipped[600] ^= 1;
    for (file, hint) in [(unwritten, Hint::OnTornTail), (flipped, Hint::Pad)] {
        let (_, log) = open(&file, options());
        let error = log.expect_err("damage");
        assert!(
            matches!(error.kind, ErrorKind::Corruption { region, .. } if region.start == 10),
            "{error}"
        );
        assert_eq!(error.hint, Some(hint));
    }
}

/// A crash may happen after the padding and before the next record.
#[test]
fn a_padded_first_header_still_proves_that_a_file_is_a_log() {
    let whole = leveldb_log([b"one"]);
    for len in 1..7 {
        let (padded, log) = open(&whole[..len], options().with_on_torn_tail(OnTornTail::PadToBlock));
        drop(log.expect("torn"));
        let padded = padded.bytes();
        assert_eq!(padded.len(), BLOCK_LEN, "{len}");
        let (double, log) = open(&padded, options().with_on_torn_tail(OnTornTail::PadToBlock));
        log.expect("padded").append(b"two").expect("nothing fails");
        assert_eq!(records(&double.bytes()), [b"two"], "{len}");
    }
}

/// A valid fragment before the damage proves that the file is a log. An apparent header does not,
/// if more bytes follow its record.
#[test]
fn pads_damage_only_after_a_valid_fragment() {
    let whole = leveldb_log([b"one"]);
    let pad = || options().with_on_torn_tail(OnTornTail::PadToBlock);
    let (double, log) = open(&[&whole[..], &[0xff; 50]].concat(), pad());
    log.expect("a log").append(b"two").expect("nothing fails");
    assert_eq!(records(&double.bytes()), [b"one", b"two"]);
    let mut damaged = [&whole[..], &[0xff; 50]].concat();
    damaged[8] ^= 0xff;
    let (_, log) = open(&damaged, pad());
    assert_error!(log, ErrorKind::Corruption { .. } | ErrorKind::Foreign { .. });
}

/// If the first record is torn, it must extend to the end of the file.
#[test]
fn a_first_record_that_ends_inside_the_file_is_not_torn() {
    for (record_len, is_torn) in [(73, true), (72, false)] {
        // The checksum is wrong, but the length and the type could belong to a record.
        let file = [&[0x81, 0x82, 0x83, 0x84, record_len, 0, 1][..], &[0xff; 73]].concat();
        let (_, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
        assert_eq!(log.is_ok(), is_torn, "{record_len}");
    }
    // No writer writes these headers. The first record would not fit into the block, and the second
    // fragment continues no record.
    for [len, more, kind] in [[0xff, 0xff, 1], [73, 0, 4]] {
        let file = [&[0x81, 0x82, 0x83, 0x84, len, more, kind][..], &[0xff; 73]].concat();
        let (_, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
        assert!(log.is_err(), "{len} {more} {kind}");
    }
}

/// A user who names the dialect knows that the file is a log, and a crash may have destroyed its
/// only records. A file with a signature is still not a log, and bytes that no crash can leave are
/// not padded.
#[test]
fn a_file_without_a_valid_fragment_is_padded_if_the_dialect_is_specified() {
    let pad = || {
        options()
            .with_on_torn_tail(OnTornTail::PadToBlock)
            .with_dialect(Dialect::LEVELDB)
    };
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    elf.resize(5000, 0);
    elf.resize(100_000, 7);
    let mut table = [&[0; 512][..], &[b'x'; 200_000]].concat();
    table.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    for file in [&elf, &table, &vec![b'x'; 5000]] {
        let (_, log) = open(file, pad());
        assert_error!(log, ErrorKind::Corruption { .. } | ErrorKind::Foreign { .. });
    }
    let mut file = leveldb_log([&[b'x'; 3000]]);
    file[..512].fill(0);
    for policy in POLICIES {
        let (_, log) = open(&file, options().with_on_torn_tail(policy));
        assert_error!(log, ErrorKind::Foreign { .. }, "{policy:?}");
        let named = options().with_on_torn_tail(policy).with_dialect(Dialect::LEVELDB);
        let (double, log) = open(&file, named);
        if policy != OnTornTail::PadToBlock {
            assert_error!(log, ErrorKind::Corruption { .. }, "{policy:?}");
            continue;
        }
        assert_eq!(
            log.expect("padded").append(b"two").expect("nothing fails"),
            BLOCK_LEN as u64
        );
        assert_eq!(double.bytes()[..file.len()], file);
        assert_eq!(records(&double.bytes()), [b"two"]);
    }
}

/// A log with a checkpoint must exist. If it is lost, creating a new log would conceal the loss.
#[test]
fn opening_for_append_with_a_checkpoint_does_not_create_a_log() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("example.log");
    let log = LogFile::append_to(&path, options().with_checkpoint(10));
    assert_error!(log, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
    assert!(!path.exists());
    LogFile::append_to(&path, options().with_checkpoint(0))?.close()?;
    assert!(path.exists());
    Ok(())
}

/// The header of a run file is not a torn tail, and the first record starts after it.
#[test]
fn can_append_to_a_run_file_that_contains_no_complete_record() {
    let whole = log_of(LogFormat::new(Dialect::WANDB), [b"one"]);
    let (double, log) = open(&whole[..7], options().with_on_torn_tail(OnTornTail::Refuse));
    log.expect("no record").append(b"one").expect("nothing fails");
    assert_eq!(double.bytes(), whole);
    // By chance, the first bytes of a header may be text.
    let text = [&whole[..7], b"hello"].concat();
    for torn in (8..whole.len()).map(|len| &whole[..len]).chain([&text[..]]) {
        let (double, log) = open(torn, options().with_on_torn_tail(OnTornTail::Truncate));
        log.expect("torn").append(b"one").expect("nothing fails");
        assert_eq!(double.bytes(), whole, "{torn:?}");
    }
}

#[test]
fn zeros_and_a_torn_first_record_are_truncated() {
    let file = leveldb_log([&[b'x'; 40_000]]);
    let mut unwritten = file[..3000].to_vec();
    unwritten[600..].fill(0);
    let mut whole = leveldb_log([&[b'x'; 3000]]);
    whole[512..].fill(0);
    let torn_later = &file[..35_000];
    for torn in [
        &file[..5],
        &file[..7],
        &file[..3000],
        torn_later,
        &[0; 5000],
        &unwritten,
        &whole,
    ] {
        let (double, log) = open(torn, options().with_on_torn_tail(OnTornTail::Truncate));
        log.expect("torn").append(b"one").expect("nothing fails");
        assert_eq!(double.bytes(), leveldb_log([b"one"]));
    }
}

/// Each bit of the record is flipped in turn. Some of the records contain many zeros.
#[test]
fn does_not_truncate_damage_explained_by_a_flipped_bit() {
    let half = [[1; 750], [0; 750]].concat();
    for record in [&[0; 600][..], &[0; 2000], &half, b"\x55"] {
        let file = leveldb_log([b"before", record]);
        for bit in 13 * 8..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (_, log) = open(&flipped, options().with_on_torn_tail(OnTornTail::Truncate));
            assert_error!(log, ErrorKind::Corruption { region, .. } if region.start == 13, "{} bytes, bit {bit}", record.len());
        }
    }
}

/// With the flipped type, the header is longer than the rest of the file.
#[test]
fn a_flipped_type_bit_does_not_truncate_the_last_record() {
    let mut file = leveldb_log([b"before", b"foo"]);
    file[13 + 6] ^= 4;
    let cutting = options().with_on_torn_tail(OnTornTail::Truncate);
    let (_, log) = open(&file, cutting.with_dialect(Dialect::ROCKSDB));
    assert_error!(log, ErrorKind::Corruption { region, .. } if (region.start, region.end) == (13, 23));
}

// A sync that failed ----------------------------------------------------------------------------

fn file_id(inode: u64) -> Option<FileId> {
    // No device has this number.
    Some(FileId {
        device: u64::MAX,
        inode,
    })
}

/// A new log in a file whose failed syncs are remembered.
fn create_known(inode: u64) -> (Double, LogFile) {
    let double = Double::default();
    double.state().identity = file_id(inode);
    let log = LogFile::create_in(double.boxed(), options()).expect("an empty file");
    (double, log)
}

/// After a failed sync, Linux marks the pages as clean. The bytes can still be read, but are not on
/// the disk, and another sync succeeds.
#[test]
fn rewrites_bytes_left_unsynced_by_a_failed_sync() -> Result<(), Error> {
    let (double, log) = create_known(1);
    log.append_sync(b"one")?;
    log.append(b"two")?;
    double.state().sync_faults = [Fault::Error(EIO)].into();
    assert!(log.sync().is_err());
    let _ = log.close();
    let whole = double.bytes();
    let again = Op::Write {
        offset: 10,
        bytes: whole[10..].to_vec(),
    };

    // The bytes are written again at each opening, until a sync succeeds.
    double.state().sync_faults = [Fault::Error(EIO)].into();
    for is_last in [false, true] {
        double.state().ops.clear();
        let log = LogFile::append_in(double.boxed(), options())?;
        assert_eq!((log.durable_offset(), double.ops()), (0, vec![again.clone()]));
        assert_eq!(log.sync().is_ok(), is_last);
        assert_eq!(log.durable_offset(), if is_last { 20 } else { 0 });
        let _ = log.close();
    }

    double.state().ops.clear();
    LogFile::append_in(double.boxed(), options())?.close()?;
    assert_eq!(
        double.ops(),
        [],
        "it is on the disk, and there is nothing to write again"
    );
    assert_eq!(double.bytes(), whole);
    Ok(())
}

#[test]
fn ignores_an_earlier_failed_sync_if_the_file_shrank_or_was_recreated() -> Result<(), Error> {
    for is_new in [false, true] {
        let (double, log) = create_known(2);
        log.append_sync(&[7; 100])?;
        double.state().sync_faults = [Fault::Error(EIO)].into();
        assert!(log.append_sync(b"two").is_err());
        let _ = log.close();
        if is_new {
            let log = LogFile::create_in(double.boxed(), options()).expect("a file that can be emptied");
            log.append(&[8; 200])?;
        } else {
            double.state().bytes = leveldb_log([b"other"]);
        }
        double.state().ops.clear();
        let log = LogFile::append_in(double.boxed(), options())?;
        assert_eq!(double.ops(), [], "{is_new}");
        // The durable offset of the previous file does not apply to this file.
        double.state().sync_faults = [Fault::Error(EIO)].into();
        assert!(log.append_sync(b"three").is_err());
        let _ = log.close();
        double.state().ops.clear();
        let log = LogFile::append_in(double.boxed(), options())?;
        let (offset, bytes) = (0, double.bytes());
        assert_eq!(double.ops(), [Op::Write { offset, bytes }], "{is_new}");
        log.append_sync(b"four")?;
    }
    Ok(())
}

/// Another process knows only from its checkpoint which bytes are on the disk.
#[test]
fn the_bytes_after_a_checkpoint_are_rewritten() -> Result<(), Error> {
    let file = leveldb_log([b"one", b"two", b"three"]);
    let (double, log) = open(&file, options().with_checkpoint(Some(10)));
    let log = log?;
    let [Op::Write { offset: 10, bytes }] = &double.ops()[..] else {
        panic!("{:?}", double.ops());
    };
    assert_eq!(*bytes, file[10..]);
    log.sync()?;
    assert_eq!(log.durable_offset(), file.len() as u64);
    Ok(())
}

/// A checkpoint after the end of the file is refused, however large it is.
#[test]
fn a_checkpoint_past_the_end_of_the_file_is_rejected() {
    let file = leveldb_log([b"one"]);
    for checkpoint in [
        11,
        BLOCK_LEN as u64 - 1,
        u64::MAX - BLOCK_LEN as u64,
        u64::MAX - 1,
        u64::MAX,
    ] {
        let (_, log) = open(&file, options().with_checkpoint(checkpoint));
        assert_error!(log, ErrorKind::Io { .. }, "{checkpoint}");
    }
}

/// A checkpoint may be the end of a record, as `durable_offset` is. The file may end there, or
/// continue with a trailer or a torn record.
#[test]
fn a_durable_offset_can_be_used_as_a_checkpoint() -> Result<(), Error> {
    for first_len in [3, 40_000, BLOCK_LEN - 7 - 5, BLOCK_LEN - 7, 2 * BLOCK_LEN - 14] {
        let double = Double::default();
        let log = LogFile::create_in(double.boxed(), options()).expect("an empty file");
        log.append_sync(&vec![b'x'; first_len])?;
        let durable_offset = log.durable_offset();
        log.close()?;
        let whole = double.bytes();
        for (tail, is_torn) in [(0, false), (1, false), (1, true)] {
            let mut file = whole.clone();
            let mut encoder = Encoder::new(file.len() as u64);
            for _ in 0..tail {
                encoder.encode(b"after", &mut file);
            }
            file.truncate(file.len() - usize::from(is_torn));
            let options = options()
                .with_checkpoint(Some(durable_offset))
                .with_on_torn_tail(OnTornTail::Truncate);
            let (double, log) = open(&file, options.clone());
            log?.append(b"new")?;
            let found = records(&double.bytes());
            assert_eq!(
                found.len(),
                1 + usize::from(tail > 0 && !is_torn) + 1,
                "{first_len} {tail} {is_torn}"
            );
            assert_eq!(found.last().map(Vec::as_slice), Some(&b"new"[..]));
            // This offset is inside a record, so it is not a record boundary.
            let (_, log) = open(&file, options.with_checkpoint(Some(durable_offset - 8)));
            assert_error!(log, ErrorKind::Io { .. }, "{first_len} {tail} {is_torn}");
        }
    }
    Ok(())
}

/// Only 0 is always a valid checkpoint. No record starts or ends within the first header.
#[test]
fn a_checkpoint_inside_the_first_header_is_rejected() {
    let file = leveldb_log([b"one"]);
    for checkpoint in 1..HEADER_LEN as u64 {
        let (_, log) = open(&file, options().with_checkpoint(Some(checkpoint)));
        assert!(log.is_err(), "{checkpoint}: {log:?}");
    }
}

/// With a checkpoint in a later block, the mark at the start of the file is not read.
#[test]
fn a_log_with_a_newer_format_version_is_rejected_at_any_checkpoint() {
    let mark = common::fragment(0x48, b"cordwood\x02\0");
    let rest = common::fragment(1, &vec![b'x'; BLOCK_LEN - mark.len() - HEADER_LEN]);
    let file = [mark, rest, common::fragment(1, b"one")].concat();
    for checkpoint in [0, BLOCK_LEN as u64, file.len() as u64] {
        let (_, log) = open(&file, options().with_checkpoint(Some(checkpoint)));
        assert_error!(log, ErrorKind::Unsupported { .. }, "{checkpoint}");
    }
}

/// If a tail ends with its block, the next record follows without any padding.
#[test]
fn a_torn_tail_that_fills_its_block_is_not_padded() {
    let mut file = leveldb_log([b"one"]);
    file.resize(BLOCK_LEN, 0);
    let (double, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
    assert!(log.expect("a log").discarded_tail().is_some());
    assert_eq!(double.ops(), []);
}

/// The padding must not complete the torn fragment. A valid fragment before it does not matter.
#[test]
fn the_padding_byte_depends_only_on_the_torn_fragment() {
    let one = leveldb_log([b"one"]);
    let torn = common::fragment(4, b"the end");
    let file = [one, common::fragment(2, b"start"), torn[..9].to_vec()].concat();
    let (double, log) = open(&file, options().with_on_torn_tail(OnTornTail::PadToBlock));
    assert!(log.is_ok(), "{log:?}");
    assert_eq!(double.bytes()[file.len()], 0xff);
}

/// The earlier of the two offsets counts, and every byte of a long file after it is written again.
#[test]
fn rewrites_everything_after_the_earlier_of_two_unsynced_offsets() -> Result<(), Error> {
    let (double, log) = create_known(3);
    log.append_sync(b"one")?;
    for _ in 0..3 {
        log.append(&[7; 1 << 20])?;
    }
    double.state().sync_faults = [Fault::Error(EIO)].into();
    assert!(log.sync().is_err());
    let end = log.offset();
    let _ = log.close();
    double.state().ops.clear();
    let log = LogFile::append_in(double.boxed(), options().with_checkpoint(Some(end)))?;
    let mut at = 10;
    for op in double.ops() {
        let Op::Write { offset, bytes } = op else {
            panic!("{op:?}")
        };
        assert_eq!(offset, at);
        at += bytes.len() as u64;
    }
    assert_eq!(at, end);
    log.sync()?;
    Ok(())
}

/// A failed sync of a truncation is treated like any other failed sync.
#[test]
fn a_failed_sync_after_truncation_is_remembered() -> Result<(), Error> {
    let mut file = leveldb_log([b"one", b"two"]);
    file.pop();
    let double = Double::with_bytes(&file);
    double.state().identity = file_id(4);
    double.state().sync_faults = [Fault::Error(EIO)].into();
    let options = options().with_on_torn_tail(OnTornTail::Truncate);
    assert!(LogFile::append_in(double.boxed(), options.clone()).is_err());
    double.state().ops.clear();
    let _log = LogFile::append_in(double.boxed(), options)?;
    let again = Op::Write {
        offset: 0,
        bytes: file[..10].to_vec(),
    };
    assert_eq!(double.ops(), [again]);
    Ok(())
}

/// The system reports only once that it could not write. If the truncation after a failed write
/// receives that error, a sync in another thread succeeds, but does not prove that the bytes are on
/// the disk.
#[test]
fn a_sync_is_not_trusted_if_its_error_was_reported_to_a_truncation() -> Result<(), Error> {
    let (double, log) = create_known(5);
    double.state().held_sync = Some(1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.append_sync(b"one"));
        until(|| double.state().started_syncs == 1);
        let mut state = double.state();
        state.sync_faults = [Fault::Error(EIO)].into();
        state.write_faults = [Fault::Error(ENOSPC)].into();
        drop(state);
        assert!(log.append(b"two").is_err());
        double.state().held_sync = None;
        assert!(waiting.join().expect("no panic").is_err());
    });
    assert_eq!(log.durable_offset(), 0);
    drop(log);
    double.state().ops.clear();
    let _log = LogFile::append_in(double.boxed(), options())?;
    let again = Op::Write {
        offset: 0,
        bytes: double.bytes(),
    };
    assert_eq!(double.ops(), [again]);
    Ok(())
}

// A fork ----------------------------------------------------------------------------------------

/// In the child, every call fails, and closing the copy has no effect.
#[test]
fn a_writer_inherited_by_a_forked_child_never_touches_the_file() -> Result<(), Error> {
    for flush in [FlushPolicy::EveryAppend, FlushPolicy::OnClose] {
        let double = Double::default();
        let process = Arc::new(AtomicU32::new(1));
        double.state().process = Process::simulated(Arc::clone(&process));
        let options = options()
            .with_flush(flush)
            .with_format(LogFormat::new(Dialect::PEBBLE).with_log_number(3));
        let log = LogFile::create_in(double.boxed(), options).expect("an empty file");
        log.append(b"one")?;
        let before = double.ops();

        process.store(2, Ordering::Relaxed);
        for result in [
            log.append(b"two").map(drop),
            log.append_sync(b"two").map(drop),
            log.extend([b"two"]).map(drop),
            log.flush(),
            log.sync(),
        ] {
            let error = result.expect_err("another process");
            assert!(matches!(error.kind, ErrorKind::Forked), "{error}");
            assert_eq!(error.hint, Some(Hint::Reopen));
        }
        assert_eq!(log.try_append(b"two").is_ok(), flush == FlushPolicy::EveryAppend);

        process.store(1, Ordering::Relaxed);
        log.append(b"two")?;
        process.store(2, Ordering::Relaxed);
        log.close()?;
        assert!(log.status().is_closed);
        let after = double.ops();
        assert_eq!(
            after.len(),
            if flush == FlushPolicy::EveryAppend { 2 } else { 0 },
            "{before:?} {after:?}"
        );
    }
    Ok(())
}
