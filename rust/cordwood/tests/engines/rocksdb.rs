//! Cases from RocksDB's `db/log_test.cc`. As upstream, each case runs for both forms of fragments.

use std::fs::File;
use std::io::{self, Read, Write};

#[cfg(feature = "zstd")]
use cordwood_log::Compression;
use cordwood_log::follow::Poll;
use cordwood_log::{Dialect, Error, ErrorKind, FollowOptions, Follower, LogFormat, ReadOptions, Reader};

use super::wire::Wire;
use super::{B, NONE, big, noise, read, write};

/// The two forms of fragments: types 1 to 4, and types 5 to 8 with log number 123.
const MODES: [(LogFormat, Wire); 2] = [
    (LogFormat::new(Dialect::ROCKSDB), Wire::Plain),
    (
        LogFormat::new(Dialect::ROCKSDB).with_log_number(123),
        Wire::Recyclable(123),
    ),
];

#[track_caller]
fn round_trip(dialect: LogFormat, records: &[Vec<u8>]) -> Vec<u8> {
    let file = write(dialect, records);
    read(dialect, &file).records(records).skipped(&[]).ends_clean();
    file
}

/// Changes the type of the fragment at `at`.
fn retype(wire: Wire, file: &mut Vec<u8>, at: usize, kind: u8) {
    let len = usize::from(u16::from_le_bytes([file[at + 4], file[at + 5]]));
    let end = at + wire.header_len() + len;
    let payload = file[end - len..end].to_vec();
    file.splice(at..end, wire.fragment(kind, &payload));
}

/// Returns the number that turns a plain type into a type of this form when added.
fn base(wire: Wire) -> u8 {
    if wire == Wire::Plain { 0 } else { 4 }
}

#[test]
fn empty() {
    for (dialect, _) in MODES {
        read(dialect, b"").records(NONE).skipped(&[]).ends_clean();
    }
}

#[test]
fn read_write() {
    for (dialect, _) in MODES {
        round_trip(
            dialect,
            &["foo", "bar", "", "xxxx"].map(|text| text.as_bytes().to_vec()),
        );
    }
}

#[test]
fn many_blocks() {
    for (dialect, _) in MODES {
        let records: Vec<_> = (0..100_000).map(|number| format!("{number}.").into_bytes()).collect();
        round_trip(dialect, &records);
    }
}

#[test]
fn fragmentation() {
    for (dialect, _) in MODES {
        round_trip(
            dialect,
            &[b"small".to_vec(), big("medium", 50_000), big("large", 100_000)],
        );
    }
}

#[test]
fn marginal_trailer() {
    for (dialect, wire) in MODES {
        let h = wire.header_len();
        let file = round_trip(dialect, &[big("foo", B - 2 * h), Vec::new(), b"bar".to_vec()]);
        assert_eq!(file.len(), B + h + 3);
    }
}

#[test]
fn marginal_trailer2() {
    for (dialect, wire) in MODES {
        let h = wire.header_len();
        let file = round_trip(dialect, &[big("foo", B - 2 * h), b"bar".to_vec()]);
        // The record is an empty FIRST fragment and a LAST fragment.
        assert_eq!((file[B - h + 6], file[B + 6]), (base(wire) + 2, base(wire) + 4));
    }
}

#[test]
fn short_trailer() {
    for (dialect, wire) in MODES {
        let h = wire.header_len();
        let file = round_trip(dialect, &[big("foo", B - 2 * h + 4), Vec::new(), b"bar".to_vec()]);
        assert_eq!(file[B - h + 4..B], vec![0; h - 4]);
    }
}

#[test]
fn aligned_eof() {
    for (dialect, wire) in MODES {
        round_trip(dialect, &[big("foo", B - 2 * wire.header_len() + 4)]);
    }
}

#[test]
fn random_read() {
    for (dialect, _) in MODES {
        let records: Vec<_> = (0..500).map(|seed| noise(1 << (seed % 17), seed)).collect();
        round_trip(dialect, &records);
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("read error"))
    }
}

#[test]
fn read_error() {
    for (dialect, _) in MODES {
        let mut reader = Reader::new(Broken, ReadOptions::default().with_format(dialect));
        // Exception: this is an error, and another call tries again. RocksDB reports a block as
        // dropped and ends.
        for _ in 0..2 {
            assert!(matches!(
                reader.next_record(),
                Err(Error {
                    kind: ErrorKind::Io { .. },
                    ..
                })
            ));
        }
    }
}

#[test]
fn bad_record_type() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &["foo"]);
        retype(wire, &mut file, 0, base(wire) + 1 + 100);
        let end = file.len() as u64;
        read(dialect, &file)
            .records(NONE)
            .skipped(&[(0, end, "unknown_kind")])
            .ends_clean();
    }
}

#[test]
fn ignorable_record_type() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &["foo"]);
        retype(wire, &mut file, 0, 0x80 + 100);
        // The type is even, so its header is short. In the upstream test, no payload follows a log
        // number either.
        if wire == Wire::Plain {
            read(dialect, &file)
                .records(NONE)
                .skipped(&[(0, 10, "ignored_kind")])
                .ends_clean();
        }
        let file = [Wire::Recyclable(123).fragment(0x80 + 101, b"foo"), wire.full(b"bar")].concat();
        read(dialect, &file)
            .records(&["bar"])
            .skipped(&[(0, 14, "ignored_kind")])
            .ends_clean();
    }
}

/// These are the four cases with "IsIgnored" and the four with "IsNotIgnored". In RocksDB, the
/// result depends on the mode. Here, the end of the log is reported in every mode.
fn torn(make: impl Fn(Wire, &mut Vec<u8>), record: &[u8]) {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &[record]);
        make(wire, &mut file);
        let end = file.len() as u64;
        // Exception: the bytes are also reported as `torn_tail`, which is not damage. RocksDB
        // reports them in two of its four modes, and is silent in the other two.
        read(dialect, &file)
            .records(NONE)
            .skipped(&[(0, end, "torn_tail")])
            .ends_torn(0);
    }
}

#[test]
fn a_truncated_trailing_record_is_a_torn_tail() {
    torn(|_, file| file.truncate(file.len() - 4), b"foo");
}

#[test]
fn a_bad_length_at_the_end_is_a_torn_tail() {
    torn(|_, file| file.truncate(file.len() - 1), b"foo");
}

#[test]
fn a_missing_last_fragment_leaves_a_torn_tail() {
    torn(
        |wire, file| file.truncate(file.len() - 2 * wire.header_len()),
        &big("bar", B),
    );
}

#[test]
fn a_partial_last_fragment_is_a_torn_tail() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &[big("bar", B)]);
        file.truncate(file.len() - 1);
        let (block, end) = (B as u64, file.len() as u64);
        assert!(end > block + wire.header_len() as u64);
        // Exception: each fragment is also reported as `torn_tail`.
        let skipped = [(0, block, "torn_tail"), (block, end, "torn_tail")];
        read(dialect, &file).records(NONE).skipped(&skipped).ends_torn(0);
    }
}

#[test]
fn bad_length() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &[big("bar", B - wire.header_len()), b"foo".to_vec()]);
        file[4] = file[4].wrapping_add(1);
        // Exception for recyclable fragments: "foo" is read, and the damage is reported. RocksDB
        // takes the damage for the end of a recycled log.
        read(dialect, &file)
            .records(&["foo"])
            .skipped(&[(0, B as u64, "bad_length")])
            .ends_clean();
    }
}

#[test]
fn checksum_mismatch() {
    for (dialect, _) in MODES {
        let mut file = write(dialect, &["foooooo"]);
        file[0] = file[0].wrapping_add(14);
        let end = file.len() as u64;
        // Exception for recyclable fragments: this is damage. RocksDB takes it for the end of a
        // recycled log, but no fragment of an older log follows.
        read(dialect, &file)
            .records(NONE)
            .skipped(&[(0, end, "checksum_mismatch")])
            .ends_clean();
    }
}

#[test]
fn unexpected_middle_type_is_reported() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &["foo"]);
        retype(wire, &mut file, 0, base(wire) + 3);
        let end = file.len() as u64;
        read(dialect, &file)
            .records(NONE)
            .skipped(&[(0, end, "missing_start")])
            .ends_clean();
    }
}

#[test]
fn unexpected_last_type_is_reported() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &["foo"]);
        retype(wire, &mut file, 0, base(wire) + 4);
        let end = file.len() as u64;
        read(dialect, &file)
            .records(NONE)
            .skipped(&[(0, end, "missing_start")])
            .ends_clean();
    }
}

#[test]
fn unexpected_full_type_marks_the_previous_record_as_incomplete() {
    for (dialect, wire) in MODES {
        let mut file = write(dialect, &["foo", "bar"]);
        retype(wire, &mut file, 0, base(wire) + 2);
        let first = wire.header_len() as u64 + 3;
        read(dialect, &file)
            .records(&["bar"])
            .skipped(&[(0, first, "missing_end")])
            .ends_clean();
    }
}

#[test]
fn unexpected_first_type_marks_the_previous_record_as_incomplete() {
    for (dialect, wire) in MODES {
        let long = big("bar", 100_000);
        let mut file = write(dialect, &[b"foo", long.as_slice()]);
        retype(wire, &mut file, 0, base(wire) + 2);
        let first = wire.header_len() as u64 + 3;
        read(dialect, &file)
            .records(&[long])
            .skipped(&[(0, first, "missing_end")])
            .ends_clean();
    }
}

#[test]
fn error_joins_records() {
    for (dialect, _) in MODES {
        let mut file = write(dialect, &[big("foo", B), big("bar", B), b"correct".to_vec()]);
        file[B..2 * B].fill(b'x');
        let reading = read(dialect, &file);
        // Exception for recyclable fragments: "correct" is read. RocksDB takes the damage for the
        // end of a recycled log.
        let (first, second) = (B as u64, 2 * B as u64);
        reading.records(&["correct"]).ends_clean();
        assert_eq!(
            reading.skipped[..2],
            [(0, first, "interrupted_record"), (first, second, "checksum_mismatch")]
        );
        assert_eq!(reading.skipped[2].2, "missing_start");
    }
}

/// Returns a record of timestamp sizes in the form in which RocksDB writes it.
fn timestamp_sizes(wire: Wire, sizes: &[(u32, u16)]) -> Vec<u8> {
    let pairs = sizes.iter().flat_map(|(family, len)| {
        let pair = [&family.to_le_bytes()[..], &len.to_le_bytes()].concat();
        pair.into_iter()
    });
    wire.fragment(if wire == Wire::Plain { 10 } else { 11 }, &pairs.collect::<Vec<_>>())
}

#[test]
fn read_write_with_timestamp_size() {
    for (dialect, wire) in MODES {
        let file = [
            timestamp_sizes(wire, &[(1, 8)]),
            wire.full(b"foo"),
            timestamp_sizes(wire, &[(2, 4), (3, 16)]),
            wire.full(b"bar"),
        ]
        .concat();
        let mut reader = Reader::from_slice(&file, ReadOptions::default().with_format(dialect));
        let sizes =
            |reader: &Reader<cordwood_log::read::SliceSource<'_>>| Vec::from_iter(reader.info().timestamp_lens.clone());
        assert_eq!(reader.next_record().unwrap().unwrap().data, b"foo");
        assert_eq!(sizes(&reader), [(1, 8)]);
        assert_eq!(reader.next_record().unwrap().unwrap().data, b"bar");
        assert_eq!(sizes(&reader), [(1, 8), (2, 4), (3, 16)]);
        assert_eq!(reader.next_record().unwrap(), None);
    }
}

#[test]
fn a_record_with_a_timestamp_size_of_zero_is_not_applied() {
    for (dialect, wire) in MODES {
        // RocksDB's writer leaves out a size of 0. If a record contains a size of 0, the record is
        // not applied.
        let file = [timestamp_sizes(wire, &[(1, 0), (2, 8)]), wire.full(b"foo")].concat();
        let end = file.len() as u64 - wire.header_len() as u64 - 3;
        read(dialect, &file)
            .records(&["foo"])
            .skipped(&[(0, end, "bad_metadata")])
            .ends_clean();
    }
}

#[test]
fn padding_before_a_timestamp_size_record_is_not_damage() {
    for (dialect, wire) in MODES {
        let long = big("foo", B - 2 * wire.header_len());
        let mut file = wire.full(&long);
        file.resize(B, 0);
        file.extend(timestamp_sizes(wire, &[(1, 8)]));
        file.extend(wire.full(b"bar"));
        let reading = read(dialect, &file);
        reading.records(&[long, b"bar".to_vec()]).ends_clean();
        let (block, header) = (B as u64, wire.header_len() as u64);
        let metadata = (block, block + header + 6, "metadata");
        // If the longest header would fit, zeros at the end of a block are a fill and not a
        // trailer. Neither is damage.
        let fill = (block - header, block, "zero_fill");
        let skipped = if wire == Wire::Plain {
            vec![metadata]
        } else {
            vec![fill, metadata]
        };
        reading.skipped(&skipped);
    }
}

#[test]
fn recycle() {
    let old = write(
        LogFormat::new(Dialect::ROCKSDB).with_log_number(122),
        &vec!["xxxxxxxxxxxxxxxx"; 3_000],
    );
    assert!(old.len() >= 2 * B);
    let dialect = LogFormat::new(Dialect::ROCKSDB).with_log_number(123);
    let new = write(dialect, &["foooo", "bar"]);
    let file = [&new[..], &old[new.len()..]].concat();
    // Exception: the rest of the older log is reported as `stale`, which is not damage. RocksDB is
    // silent.
    let skipped = [(new.len() as u64, file.len() as u64, "stale")];
    read(dialect, &file)
        .records(&["foooo", "bar"])
        .skipped(&skipped)
        .ends_clean();
    // The result is the same if the number is not named.
    read(LogFormat::new(Dialect::ROCKSDB), &file)
        .records(&["foooo", "bar"])
        .skipped(&skipped);
}

#[test]
fn recycle_with_timestamp_size() {
    let sizes = |number, family| timestamp_sizes(Wire::Recyclable(number), &[(family, 8)]);
    let old = [
        sizes(122, 1),
        write(LogFormat::new(Dialect::ROCKSDB).with_log_number(122), &vec!["x"; 8_000]),
    ]
    .concat();
    let new = [sizes(123, 2), Wire::Recyclable(123).full(b"foooo")].concat();
    let file = [&new[..], &old[new.len()..]].concat();
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    assert_eq!(reader.next_record().unwrap().unwrap().data, b"foooo");
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(Vec::from_iter(reader.info().timestamp_lens.clone()), [(2, 8)]);
}

/// These are the ClearEof cases and the cases of the reader that waits for the rest of a record.
/// Here, a follower does that.
fn follow(first_len: impl Fn(Wire) -> usize, record: &[u8]) {
    for (dialect, wire) in MODES {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("000123.log");
        let mut file = File::create(&path).unwrap();
        let bytes = write(dialect, &[record, b"xxx"]);
        let (first, rest) = bytes.split_at(first_len(wire));
        file.write_all(first).unwrap();
        let options = FollowOptions::default().with_format(dialect);
        let mut follower = Follower::open_with(&path, options).unwrap();
        assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)));
        file.write_all(rest).unwrap();
        for expected in [record, b"xxx"] {
            let Poll::Record(found) = follower.wait(None).unwrap() else {
                panic!("a record")
            };
            assert!(found.data == expected);
        }
        assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)));
    }
}

#[test]
fn tail_log_partial_header() {
    follow(|wire| wire.header_len() - 1, b"foo");
}

#[test]
fn tail_log_full_header() {
    follow(|wire| wire.header_len() + 1, b"foo");
}

#[test]
fn non_blocking_read_full_record() {
    follow(|wire| wire.header_len() - 1, b"foo-bar");
}

#[test]
fn a_follower_waits_for_the_rest_of_a_record_in_one_block() {
    follow(|wire| wire.header_len() + 2, &big("bar", 1_000));
}

#[test]
fn a_follower_waits_for_the_rest_of_a_record_in_several_blocks() {
    follow(|_| 5 * B + 25, &big("foo", 6 * B));
}

/// A follower of a file that is being recycled waits as long as the older log is still there.
#[test]
fn a_recycled_log_that_is_being_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000123.log");
    let old = write(
        LogFormat::new(Dialect::ROCKSDB).with_log_number(122),
        &vec!["xxxxxxxxxxxxxxxx"; 3_000],
    );
    let dialect = LogFormat::new(Dialect::ROCKSDB).with_log_number(123);
    let mut follower = None;
    for count in 1..40 {
        let new = write(dialect, &vec!["foo"; count]);
        std::fs::write(&path, [&new[..], &old[new.len()..]].concat()).unwrap();
        let options = FollowOptions::default().with_format(dialect);
        let follower = follower.get_or_insert_with(|| Follower::open_with(&path, options).unwrap());
        let Poll::Record(record) = follower.poll().unwrap() else {
            panic!("record {count}")
        };
        assert_eq!(record.data, b"foo");
        assert!(matches!(follower.poll().unwrap(), Poll::NotYet(_)));
    }
}

/// A flipped bit in the type of a legacy record makes RocksDB hang. If it is the first record,
/// RocksDB opens an empty database.
#[test]
fn type_1_flipped_to_5() {
    let good = Wire::Plain.full(b"good");
    for at in [0, 1] {
        let mut file = good.repeat(3);
        file[at * good.len() + 6] ^= 4;
        let reading = read(LogFormat::new(Dialect::ROCKSDB), &file);
        assert_eq!(reading.skipped[0].2, "checksum_mismatch");
        assert_eq!(reading.records.len(), at);
        assert!(matches!(reading.end, cordwood_log::End::Clean { .. }));
    }
}

/// RocksDB's writer leaves up to 10 zeros at the end of a block. Its reader expects at most 6
/// zeros, and drops the record that contains more.
#[test]
fn zeros_for_a_long_header_inside_a_record() {
    let wire = Wire::Recyclable(123);
    for zeros in 0..11 {
        let first = wire.part(2, &vec![1; B - 11 - zeros]);
        let file = [first, vec![0; zeros], wire.part(4, b"end")].concat();
        let reading = read(LogFormat::new(Dialect::ROCKSDB), &file);
        assert_eq!(reading.records.len(), 1, "{zeros}");
        reading.skipped(&[]).ends_clean();
    }
}

#[cfg(feature = "zstd")]
mod compression {
    use super::*;

    const ZSTD: [(LogFormat, Wire); 2] = [
        (
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            Wire::Plain,
        ),
        (
            LogFormat::new(Dialect::ROCKSDB)
                .with_log_number(123)
                .with_compression(Compression::Zstd),
            Wire::Recyclable(123),
        ),
    ];

    fn check(records: &[Vec<u8>]) {
        for (dialect, _) in ZSTD {
            let file = write(dialect, records);
            for dialect in [dialect, LogFormat::new(Dialect::ROCKSDB)] {
                read(dialect, &file)
                    .records(records)
                    .skipped(&[(0, 11, "metadata")])
                    .ends_clean();
            }
        }
    }

    #[test]
    fn empty() {
        for (dialect, _) in ZSTD {
            let mut file = Vec::new();
            cordwood_log::codec::Encoder::with_format(0, dialect)
                .unwrap()
                .start(&mut file);
            assert_eq!(file.len(), 11);
            read(dialect, &file)
                .records(NONE)
                .skipped(&[(0, 11, "metadata")])
                .ends_clean();
        }
    }

    #[test]
    fn read_write() {
        check(&["foo", "bar", "", "xxxx"].map(|text| text.as_bytes().to_vec()));
    }

    #[test]
    fn many_blocks() {
        check(
            &(0..20_000)
                .map(|number| format!("{number}.").into_bytes())
                .collect::<Vec<_>>(),
        );
    }

    #[test]
    fn fragmentation() {
        check(&[b"small".to_vec(), noise(3 * B / 2, 1), noise(3 * B, 2)]);
    }

    #[test]
    fn aligned_fragmentation() {
        for (dialect, wire) in ZSTD {
            let mut records = Vec::new();
            while B - write(dialect, &records).len() % B >= wire.header_len() + 14 {
                records.push(if records.is_empty() {
                    noise(B - 100, 3)
                } else {
                    b"a".to_vec()
                });
            }
            records.push(noise(3 * B, 4));
            let file = write(dialect, &records);
            read(dialect, &file).records(&records).ends_clean();
        }
    }

    #[test]
    fn checksum_mismatch() {
        for (dialect, wire) in ZSTD {
            let mut file = write(dialect, &["foooooo"]);
            let at = 11 + wire.header_len() + 1;
            file[at] = file[at].wrapping_add(14);
            let end = file.len() as u64;
            // Exception for recyclable fragments: the result is the same as without compression.
            read(dialect, &file)
                .records(NONE)
                .skipped(&[(0, 11, "metadata"), (11, end, "checksum_mismatch")]);
        }
    }

    #[test]
    fn streaming_compression_basic() {
        check(&[10, 100, 1_000, B, 2 * B].map(|len| noise(len, len as u32)));
    }

    /// In a compressed log, FIRST and MIDDLE fragments may end in the middle of a block.
    #[test]
    fn fragments_may_end_in_the_middle_of_a_block() {
        let frame = write(
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            &["foo"],
        )[11 + 7..]
            .to_vec();
        let (a, rest) = frame.split_at(3);
        let (b, c) = rest.split_at(4);
        let set = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
        let file = [
            &set[..],
            &Wire::Plain.part(2, a),
            &Wire::Plain.part(3, b),
            &Wire::Plain.part(4, c),
        ]
        .concat();
        read(LogFormat::new(Dialect::ROCKSDB), &file)
            .records(&["foo"])
            .ends_clean();
    }

    #[test]
    fn a_record_that_is_not_a_frame_is_reported_and_lost() {
        let file = write(
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            &["foo", "bar"],
        );
        let set = &file[..11];
        // The frame states a length of 1 GiB but has only five bytes. No memory is allocated for
        // it.
        let bomb = b"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x40\x01\x00\x00";
        for junk in [b"junk".as_slice(), bomb] {
            let bad = Wire::Plain.full(junk);
            let file = [set, &bad, &file[11..]].concat();
            let skipped = [(0, 11, "metadata"), (11, 11 + bad.len() as u64, "bad_compression")];
            read(LogFormat::new(Dialect::ROCKSDB), &file)
                .records(&["foo", "bar"])
                .skipped(&skipped)
                .ends_clean();
        }
        // The frame states a length that no machine can hold, and is read without a limit.
        let bomb = Wire::Plain.full(b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x40\x01\0\0");
        let options = ReadOptions::default().with_record_len_max(u64::MAX);
        let reading = crate::read_with(options, &[set, &bomb].concat());
        assert_eq!(reading.skipped[1].2, "bad_compression");
        let options = ReadOptions::default().with_record_len_max(2);
        let reading = crate::read_with(options, &file);
        assert_eq!(reading.skipped[1].2, "record_too_large");
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn without_the_feature_compressed_records_are_reported() {
    let set = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    let file = [&set[..], &Wire::Plain.full(b"a frame"), &Wire::Plain.full(b"")].concat();
    let skipped = [(0, 11, "metadata"), (11, 25, "unsupported_compression")];
    read(Dialect::ROCKSDB, &file)
        .records(&[""])
        .skipped(&skipped)
        .ends_clean();
}

/// The compression is declared twice, or too late.
#[test]
fn a_set_compression_record_that_is_repeated_or_late_is_reported() {
    let set = |number: u32| Wire::Plain.fragment(9, &number.to_le_bytes());
    let none = [set(0), set(0), Wire::Plain.full(b"foo")].concat();
    read(LogFormat::new(Dialect::ROCKSDB), &none)
        .records(&["foo"])
        .skipped(&[(0, 11, "metadata"), (11, 22, "bad_metadata")]);
    for number in [0, 1, 7] {
        let late = [Wire::Plain.full(b"foo"), set(number), Wire::Plain.full(b"bar")].concat();
        read(LogFormat::new(Dialect::ROCKSDB), &late)
            .records(&["foo", "bar"])
            .skipped(&[(10, 21, "bad_metadata")]);
    }
}
