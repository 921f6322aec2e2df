//! Cases from wandb's `core/pkg/leveldb/record_internal_test.go` (a copy from golang/leveldb),
//! `core/internal/transactionlog`, `livestore_test.go` and `tests/unit_tests/test_datastore.py`.

use std::fs::File;
use std::io::Write;

use cordwood_log::codec::Encoder;
use cordwood_log::follow::{NotYet, Poll, WaitReason};
use cordwood_log::{Dialect, Error, ErrorKind, Follower, ReadOptions, Reader};

use super::wire::Wire;
use super::{B, NONE, big, noise, read, read_with, write};

const LOG: Dialect = Dialect::WANDB;
const HEADER: (u64, u64, &str) = (0, 7, "file_header");

#[track_caller]
fn round_trip(records: &[Vec<u8>]) -> Vec<u64> {
    let file = write(LOG, records);
    let reading = read(LOG, &file);
    reading.records(records).skipped(&[HEADER]).ends_clean();
    reading.offsets
}

#[test]
fn many() {
    round_trip(
        &(0..50_000)
            .map(|number| format!("{number}.").into_bytes())
            .collect::<Vec<_>>(),
    );
}

#[test]
fn random() {
    round_trip(
        &(0..50)
            .map(|seed| noise((seed as usize * 40_503) % (2 * B + 16), seed))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn basic() {
    round_trip(&[big("a", 1_000), big("b", 97_270), big("c", 8_000)]);
}

#[test]
fn boundary() {
    for first in (B - 30)..(B + 16) {
        round_trip(&[big("1", first), big("2", B - 7), Vec::new()]);
    }
}

#[test]
fn flush() {
    let mut encoder = Encoder::with_format(0, LOG).unwrap();
    let mut file = Vec::new();
    let lens = [1, 2, 10_000, 40_000].map(|len| {
        encoder.encode(&vec![0; len], &mut file);
        file.len()
    });
    assert_eq!(lens, [15, 24, 10_031, 50_045]);
}

#[test]
fn last_record_offset() {
    let lens = [3 * B - 7, 3 * (B - 7) - 2 * B - 14, B - 7, B - 7, B / 2];
    let offsets = round_trip(&lens.map(|len| big("x", len)));
    assert_eq!(offsets[0], 7);
    assert_eq!(offsets[2..], [131_072, 163_840, 196_608]);
}

/// Of three records that fill a block each, the second is corrupt.
#[test]
fn basic_recover() {
    let records = [big("0", B - 14), big("1", B - 7), big("2", B - 7)];
    let mut file = write(LOG, &records);
    assert_eq!(file.len(), 3 * B);
    file[B] ^= 0xff;
    let skipped = [HEADER, (B as u64, 2 * B as u64, "checksum_mismatch")];
    read(LOG, &file).records(&[&records[0], &records[2]]).skipped(&skipped);
}

#[test]
fn recover_single_block() {
    let records = [big("0", B - 14), big("1", 3 * B), big("2", 100)];
    let mut file = write(LOG, &records);
    file[3 * B] ^= 0xff;
    read(LOG, &file).records(&[&records[0], &records[2]]);
}

#[test]
fn recover_multiple_blocks() {
    let records = [
        big("0", B - 14),
        big("1", B - 7),
        big("2", B - 7),
        big("3", B - 7),
        big("4", 100),
    ];
    let mut file = write(LOG, &records);
    for block in 1..4 {
        file[block * B] ^= 0xff;
    }
    read(LOG, &file).records(&[&records[0], &records[4]]);
}

#[test]
fn recover_last_partial_block_and_last_complete_block() {
    for len in [100, B - 7] {
        let records = [big("0", B - 14), big("1", len)];
        let mut file = write(LOG, &records);
        file[B] ^= 0xff;
        read(LOG, &file).records(&records[..1]).ends_clean();
    }
}

#[test]
fn seek_record() {
    let file = write(LOG, &[big("0", 3 * B), big("1", 100)]);
    let from = |start| {
        read_with(ReadOptions::default().with_range(start..), &file)
            .records
            .len()
    };
    assert_eq!((from(0), from(B as u64)), (2, 1));
    let mut reader = Reader::from_slice(&file, ReadOptions::default().with_range(1 << 20..));
    assert!(matches!(
        reader.next_event(),
        Err(Error {
            kind: ErrorKind::Truncated { offset: 0x10_0000, .. },
            ..
        })
    ));
}

#[test]
fn zero_blocks() {
    for blocks in 0..3 {
        let mut file = write(LOG, NONE);
        Encoder::with_format(0, LOG).unwrap().start(&mut file);
        file.resize(7 + blocks * B, 0);
        read(LOG, &file).records(NONE).ends_clean();
    }
}

#[test]
fn truncation_eof() {
    let file = write(LOG, &[big("x", 1), big("y", 2 * B)]);
    for (len, ends_between) in [
        (0, true),
        (3, false),
        (7, true),
        (8, false),
        (14, false),
        (15, true),
        (B, false),
    ] {
        let reading = read(LOG, &file[..len]);
        let is_torn = matches!(reading.end, cordwood_log::End::TornTail { .. });
        // Exception: a truncated file header is torn. To wandb, it is a clean end.
        assert_eq!(is_torn, !ends_between, "{len}");
        assert!(
            reading
                .skipped
                .iter()
                .all(|&(_, _, reason)| reason == "torn_tail" || reason == "file_header")
        );
    }
}

#[test]
fn verify_wandb_header() {
    let good = write(LOG, &["foo"]);
    for (at, reason) in [(0, "bad_file_header"), (4, "bad_file_header"), (6, "bad_file_header")] {
        let mut file = good.clone();
        file[at] ^= 0x10;
        // Exception: the records after the header are read. wandb fails.
        read(LOG, &file).records(&["foo"]).skipped(&[(0, 7, reason)]);
    }
    read(LOG, &good[..5])
        .records(NONE)
        .skipped(&[(0, 5, "torn_tail")])
        .ends_torn(0);
}

#[test]
fn skips_corrupt_data() {
    let mut records = vec![vec![0; 1]];
    // Empty records fill the rest of the block.
    records.extend(vec![Vec::new(); 4_679]);
    records.push(b"block 2".to_vec());
    let mut file = write(LOG, &records);
    file[16] ^= 0xff;
    let reading = read(LOG, &file);
    assert_eq!(reading.records.first(), Some(&vec![0]));
    assert_eq!(reading.records.last(), Some(&b"block 2".to_vec()));
    reading.skipped(&[HEADER, (15, B as u64, "checksum_mismatch")]);
}

/// Checks the sizes of files. B is a block, and the record starts after the file header.
#[test]
fn datastore() {
    for (lens, file_len) in [
        (vec![B - 14], B),
        (vec![B - 13], B + 8),
        (vec![B - 20, 1], B + 8),
        (vec![B - 21, 1], B + 8),
        (vec![B - 22, 2], B + 8),
        (vec![B - 22, 2 + B - 7], 2 * B + 8),
    ] {
        let records: Vec<_> = lens.iter().map(|&len| big("x", len)).collect();
        assert_eq!(write(LOG, &records).len(), file_len, "{lens:?}");
        round_trip(&records);
    }
}

/// In `livestore_test.go`, a file grows in steps, and the dialect is not named.
#[test]
fn live() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.wandb");
    let mut file = File::create(&path).unwrap();
    let records = [b"A".to_vec(), big("B", 5 * B / 2), big("C", 3)];
    let bytes = write(LOG, &records);
    let mut follower = Follower::open(&path).unwrap();
    let mut written = 0;
    let mut grow = |file: &mut File, to: usize| {
        file.write_all(&bytes[written..to]).unwrap();
        written = to;
    };
    // These are a part of the file header, then a part of a fragment's header, and then the whole
    // payload except the last byte.
    for to in [0, 3] {
        grow(&mut file, to);
        assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)), "{to}");
    }
    grow(&mut file, 7);
    let Poll::Skipped(region) = follower.poll().unwrap() else {
        panic!("the file header")
    };
    assert_eq!((region.start, region.end, region.reason.as_str()), HEADER);
    for to in [10, 14] {
        grow(&mut file, to);
        let Poll::NotYet(NotYet { reason, .. }) = follower.poll().unwrap() else {
            panic!("nothing yet at {to}")
        };
        assert_eq!(reason, WaitReason::Incomplete);
    }
    // A is returned while the last byte of B is missing.
    let end = bytes.len() - 11;
    grow(&mut file, end);
    let mut found = Vec::new();
    while let Poll::Record(record) = follower.poll().unwrap() {
        found.push(record.data.to_vec());
    }
    assert_eq!(found, records[..1]);
    grow(&mut file, bytes.len());
    while let Poll::Record(record) = follower.poll().unwrap() {
        found.push(record.data.to_vec());
    }
    assert!(found == records);
}

/// The Go writer writes whole blocks, and the Python writer writes record by record. The bytes are
/// the same.
#[test]
fn a_block_tail_is_padded() {
    let room = B - 7 - 7 - 6;
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 0, &vec![1; room]);
    file.resize(B, 0);
    read(LOG, &file)
        .records(&[vec![1; room]])
        .skipped(&[HEADER])
        .ends_clean();
    Wire::Ieee.append(&mut file, 0, b"2");
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    assert_eq!(reader.next_record().unwrap().unwrap().data.len(), room);
    assert_eq!(reader.next_record().unwrap().unwrap().data, b"2");
}
