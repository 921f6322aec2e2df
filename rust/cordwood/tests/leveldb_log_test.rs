//! The cases of LevelDB's `db/log_test.cc` under their upstream names and in our own words, and
//! what else is known about how LevelDB reads a log. `docs/format/leveldb-cases.md` lists them.
//!
//! Each test states the records with their offsets, and the reports that LevelDB makes: bytes and
//! text. Where this crate says more than LevelDB on purpose, a comment says `Exception:`. LevelDB
//! skips damage and continues, so the policy is `Skip` throughout.

mod common;

use std::io::{self, Read};

use common::{Found, checksum, fragment, read_all};
use cordwood_log::codec::Encoder;
use cordwood_log::damage::{Reason, SkippedRegion};
use cordwood_log::format::{BLOCK_LEN, HEADER_LEN, Header};
use cordwood_log::{End, Error, OnCorruption, ReadOptions, Reader};

const B: u64 = BLOCK_LEN as u64;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// What LevelDB calls a region that it reports.
fn message(region: &SkippedRegion) -> Option<&'static str> {
    // Without a byte count LevelDB is silent, whatever the reason: for example, a bad length at the
    // end of the file.
    region.leveldb_len?;
    Some(match region.reason {
        Reason::BadLength { .. } => "bad record length",
        Reason::ChecksumMismatch { .. } => "checksum mismatch",
        Reason::UnknownKind { .. } => "unknown record type",
        Reason::MissingStart => "missing start of fragmented record",
        Reason::MissingEnd => "partial record without end",
        Reason::InterruptedRecord => "error in middle of record",
        reason => panic!("LevelDB has no text for {}", reason.as_str()),
    })
}

/// A log in memory that is written, damaged and read.
struct Log {
    file: Vec<u8>,
    encoder: Encoder,
    written: Vec<(u64, Vec<u8>)>,
}

impl Log {
    fn new() -> Self {
        Log {
            file: Vec::new(),
            encoder: Encoder::new(0),
            written: Vec::new(),
        }
    }

    /// A file made of pieces that no writer need ever have written.
    fn of(pieces: &[&[u8]]) -> Self {
        Log {
            file: pieces.concat(),
            ..Log::new()
        }
    }

    fn write(&mut self, record: impl AsRef<[u8]>) {
        let record = record.as_ref();
        let offset = self.encoder.encode(record, &mut self.file);
        self.written.push((offset, record.to_vec()));
    }

    fn reopen_for_append(&mut self) {
        self.encoder = Encoder::new(self.len());
    }

    fn len(&self) -> u64 {
        self.file.len() as u64
    }

    fn add_to_byte(&mut self, at: usize, delta: u8) {
        self.file[at] = self.file[at].wrapping_add(delta);
    }

    /// Gives the fragment at `header` another type, with a valid checksum.
    fn set_kind(&mut self, header: usize, kind: u8) {
        self.file[header + 6] = kind;
        let bytes = self.file[header..].first_chunk().expect("a header");
        let len = usize::from(Header::decode(bytes).len);
        let masked_crc = checksum(kind, &self.file[header + HEADER_LEN..][..len]);
        self.file[header..][..4].copy_from_slice(&masked_crc.to_le_bytes());
    }

    fn shrink(&mut self, len: usize) {
        self.file.truncate(self.file.len() - len);
    }

    /// Appends zeros up to the end of the block.
    fn pad_block(mut self) -> Self {
        self.file.resize(self.file.len().next_multiple_of(BLOCK_LEN), 0);
        self
    }

    /// Appends a FULL fragment that ends where the block ends.
    fn fill_block(mut self) -> Self {
        let room = BLOCK_LEN - self.file.len() % BLOCK_LEN - HEADER_LEN;
        self.file.extend(fragment(FULL, &vec![b'.'; room]));
        self
    }

    fn then(mut self, pieces: &[&[u8]]) -> Self {
        self.file.extend(pieces.concat());
        self
    }

    fn read(&self) -> Reading {
        self.read_from(0)
    }

    fn read_from(&self, start: u64) -> Reading {
        let options = ReadOptions::default()
            .with_on_corruption(OnCorruption::Skip)
            .with_range(start..);
        let (events, end) = read_all(&mut Reader::from_slice(&self.file, options));
        let mut reading = Reading {
            records: Vec::new(),
            skipped: Vec::new(),
            end,
        };
        for event in events {
            match event {
                Found::Record { offset, data, .. } => reading.records.push((offset, data)),
                Found::Skipped(region) => reading.skipped.push(region),
            }
        }
        reading
    }
}

/// What a reader returned. Each method checks a part of it.
struct Reading {
    records: Vec<(u64, Vec<u8>)>,
    skipped: Vec<SkippedRegion>,
    end: End,
}

impl Reading {
    #[track_caller]
    fn records<D: AsRef<[u8]>>(&self, expected: &[(u64, D)]) -> &Self {
        // Offsets and lengths first: a difference in 100,000 bytes would be unreadable.
        let place = |offset, data: &[u8]| (offset, data.len());
        let found: Vec<_> = self.records.iter().map(|(o, data)| place(*o, data)).collect();
        let wanted: Vec<_> = expected.iter().map(|(o, data)| place(*o, data.as_ref())).collect();
        assert_eq!(found, wanted, "offsets and lengths of the records");
        for ((offset, data), (_, wanted)) in self.records.iter().zip(expected) {
            assert!(
                data == wanted.as_ref(),
                "the record at {offset} is {:?}...",
                &data[..data.len().min(50)]
            );
        }
        self
    }

    /// What LevelDB reports: bytes and text, here in the order of the offsets.
    #[track_caller]
    fn reports(&self, expected: &[(u64, &str)]) -> &Self {
        let told = |region: &SkippedRegion| Some((region.leveldb_len?, message(region)?));
        let found: Vec<_> = self.skipped.iter().filter_map(told).collect();
        assert_eq!(found, expected, "LevelDB's reports");
        self
    }

    /// The regions that LevelDB does not report.
    #[track_caller]
    fn silent(&self, expected: &[(u64, u64, &str)]) -> &Self {
        let silent = self.skipped.iter().filter(|region| region.leveldb_len.is_none());
        let found: Vec<_> = silent.map(|r| (r.begin, r.end, r.reason.as_str())).collect();
        assert_eq!(found, expected, "regions of which LevelDB is silent");
        self
    }

    #[track_caller]
    fn ends_clean(&self, offset: u64) {
        assert_eq!(self.end, End::Clean { offset });
    }

    #[track_caller]
    fn ends_torn(&self, offset: u64) {
        assert_eq!(self.end, End::TornTail { offset });
    }
}

/// `text` repeated up to `len` bytes.
fn big(text: &str, len: u64) -> Vec<u8> {
    text.bytes().cycle().take(len as usize).collect()
}

/// No records.
const NONE: &[(u64, &str)] = &[];

// Writing and reading ---------------------------------------------------------------------------------------------------------

#[test]
fn empty() {
    Log::new().read().records(NONE).reports(&[]).silent(&[]).ends_clean(0);
}

#[test]
fn read_write() {
    let mut log = Log::new();
    for record in ["foo", "bar", "", "xxxx"] {
        log.write(record);
    }
    // That the end stays the end is checked by `read_all` in every test.
    log.read()
        .records(&[(0, "foo"), (10, "bar"), (20, ""), (27, "xxxx")])
        .reports(&[])
        .silent(&[])
        .ends_clean(38);
}

#[test]
fn many_blocks() {
    let mut log = Log::new();
    for number in 0..100_000 {
        log.write(format!("{number}."));
    }
    let reading = log.read();
    reading
        .records(&log.written)
        .reports(&[])
        .silent(&[])
        .ends_clean(log.len());
    assert_eq!(reading.records[99_999].1, b"99999.");
    assert!(log.len() > 30 * B, "many blocks");
}

#[test]
fn fragmentation() {
    let mut log = Log::new();
    log.write("small");
    log.write(big("medium", 50_000));
    log.write(big("large", 100_000));
    log.read()
        .records(&[
            (0, &b"small"[..]),
            (12, &big("medium", 50_000)),
            (50_026, &big("large", 100_000)),
        ])
        .reports(&[])
        .silent(&[])
        .ends_clean(log.len());
}

#[test]
fn marginal_trailer() {
    let mut log = Log::new();
    // Exactly enough room for the header of an empty record.
    let foo = big("foo", B - 14);
    log.write(&foo);
    assert_eq!(log.len(), B - 7);
    log.write("");
    log.write("bar");
    log.read()
        .records(&[(0, &foo[..]), (B - 7, b""), (B, b"bar")])
        .reports(&[])
        .silent(&[])
        .ends_clean(B + 10);
}

#[test]
fn marginal_trailer2() {
    let mut log = Log::new();
    let foo = big("foo", B - 14);
    log.write(&foo);
    assert_eq!(log.len(), B - 7);
    // An empty FIRST fills the block; all of the record is in the next.
    log.write("bar");
    assert_eq!((log.file[BLOCK_LEN - 1], log.file[BLOCK_LEN + 6]), (FIRST, LAST));
    log.read()
        .records(&[(0, &foo[..]), (B - 7, b"bar")])
        .reports(&[])
        .silent(&[])
        .ends_clean(B + 10);
}

#[test]
fn short_trailer() {
    let mut log = Log::new();
    let foo = big("foo", B - 10);
    log.write(&foo);
    assert_eq!(log.len(), B - 3);
    log.write("");
    log.write("bar");
    log.read()
        .records(&[(0, &foo[..]), (B, b""), (B + 7, b"bar")])
        .reports(&[])
        .silent(&[])
        .ends_clean(B + 17);
}

#[test]
fn aligned_eof() {
    let mut log = Log::new();
    let foo = big("foo", B - 10);
    log.write(&foo);
    assert_eq!(log.len(), B - 3);
    log.read()
        .records(&[(0, &foo)])
        .reports(&[])
        .silent(&[])
        .ends_clean(B - 3);
}

#[test]
fn open_for_append() {
    let mut log = Log::new();
    log.write("hello");
    log.reopen_for_append();
    log.write("world");
    log.read()
        .records(&[(0, "hello"), (12, "world")])
        .reports(&[])
        .silent(&[])
        .ends_clean(24);
}

#[test]
fn random_read() {
    /// The "minimal standard" generator of Park and Miller.
    struct Random(u64);
    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0 * 16_807 % 2_147_483_647;
            self.0 % limit
        }
    }
    let mut random = Random(301);
    let mut log = Log::new();
    for number in 0..500 {
        // Short records are as frequent as those of many blocks.
        let digits = random.below(18);
        let len = random.below(1 << digits);
        log.write(big(&format!("{number}."), len));
    }
    log.read()
        .records(&log.written)
        .reports(&[])
        .silent(&[])
        .ends_clean(log.len());
}

// Errors ----------------------------------------------------------------------------------------------------------------------

#[test]
fn read_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("read error"))
        }
    }
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    let mut reader = Reader::new(Failing, options);
    // Exception: LevelDB reports 32,768 dropped bytes and ends. Here it is an error, nothing is
    // dropped, and another call tries again: a failing disk is not the end of a file.
    for _ in 0..2 {
        match reader.next_event() {
            Err(Error::Io { path: None, source }) => assert_eq!(source.to_string(), "read error"),
            other => panic!("{other:?}"),
        }
        assert_eq!(reader.end(), None);
    }
}

#[test]
fn bad_record_type() {
    let mut log = Log::new();
    log.write("foo");
    log.set_kind(0, FULL + 100);
    log.read()
        .records(NONE)
        .reports(&[(3, "unknown record type")])
        .silent(&[])
        .ends_clean(10);
}

#[test]
fn truncated_trailing_record_is_ignored() {
    let mut log = Log::new();
    log.write("foo");
    // The payload and a byte of the header.
    log.shrink(4);
    let reading = log.read();
    reading.records(NONE).reports(&[]);
    // Exception: LevelDB is silent; here the bytes are reported as a torn tail, which is not damage.
    reading.silent(&[(0, 6, "torn_tail")]).ends_torn(0);
}

#[test]
fn bad_length() {
    let mut log = Log::new();
    log.write(big("bar", B - 7));
    log.write("foo");
    // The low byte of the length: the record goes one byte past the end of its block.
    log.add_to_byte(4, 1);
    log.read()
        .records(&[(B, "foo")])
        .reports(&[(B, "bad record length")])
        .silent(&[])
        .ends_clean(B + 10);
}

#[test]
fn bad_length_at_end_is_ignored() {
    let mut log = Log::new();
    log.write("foo");
    log.shrink(1);
    let reading = log.read();
    reading.records(NONE).reports(&[]);
    // Exception: as in truncated_trailing_record_is_ignored.
    reading.silent(&[(0, 9, "torn_tail")]).ends_torn(0);
}

#[test]
fn checksum_mismatch() {
    let mut log = Log::new();
    log.write("foo");
    log.add_to_byte(0, 10);
    log.read()
        .records(NONE)
        .reports(&[(10, "checksum mismatch")])
        .silent(&[])
        .ends_clean(10);
}

#[test]
fn unexpected_middle_type() {
    let mut log = Log::new();
    log.write("foo");
    log.set_kind(0, MIDDLE);
    log.read()
        .records(NONE)
        .reports(&[(3, "missing start of fragmented record")])
        .silent(&[])
        .ends_clean(10);
}

#[test]
fn unexpected_last_type() {
    let mut log = Log::new();
    log.write("foo");
    log.set_kind(0, LAST);
    log.read()
        .records(NONE)
        .reports(&[(3, "missing start of fragmented record")])
        .silent(&[])
        .ends_clean(10);
}

#[test]
fn unexpected_full_type() {
    let mut log = Log::new();
    log.write("foo");
    log.write("bar");
    log.set_kind(0, FIRST);
    log.read()
        .records(&[(10, "bar")])
        .reports(&[(3, "partial record without end")])
        .silent(&[])
        .ends_clean(20);
}

#[test]
fn unexpected_first_type() {
    let mut log = Log::new();
    log.write("foo");
    log.write(big("bar", 100_000));
    log.set_kind(0, FIRST);
    log.read()
        .records(&[(10, big("bar", 100_000))])
        .reports(&[(3, "partial record without end")])
        .silent(&[])
        .ends_clean(log.len());
}

#[test]
fn missing_last_is_ignored() {
    let mut log = Log::new();
    log.write(big("bar", B));
    // All of LAST: a header and 7 bytes.
    log.shrink(14);
    assert_eq!(log.len(), B);
    let reading = log.read();
    reading.records(NONE).reports(&[]);
    // Exception: as in truncated_trailing_record_is_ignored.
    reading.silent(&[(0, B, "torn_tail")]).ends_torn(0);
}

#[test]
fn partial_last_is_ignored() {
    let mut log = Log::new();
    log.write(big("bar", B));
    log.shrink(1);
    let reading = log.read();
    reading.records(NONE).reports(&[]);
    // Exception: as in truncated_trailing_record_is_ignored; FIRST and the rest of LAST are a
    // region each.
    reading
        .silent(&[(0, B, "torn_tail"), (B, B + 13, "torn_tail")])
        .ends_torn(0);
}

#[test]
fn skip_into_multi_record() {
    let mut log = Log::new();
    log.write(big("foo", 3 * B));
    log.write("correct");
    // FIRST lies before this offset; the rest of its record is not damage.
    log.read_from(B)
        .records(&[(3 * B + 28, "correct")])
        .reports(&[])
        .silent(&[])
        .ends_clean(log.len());
}

#[test]
fn error_joins_records() {
    let mut log = Log::new();
    log.write(big("foo", B));
    log.write(big("bar", B));
    log.write("correct");
    // The second block contains LAST of "foo" and FIRST of "bar". The remaining ends must not be
    // joined.
    log.file[BLOCK_LEN..][..BLOCK_LEN].fill(b'x');
    let reading = log.read();
    reading
        .records(&[(2 * B + 28, "correct")])
        // LevelDB makes the same reports, the second before the first.
        .reports(&[
            (B - 7, "error in middle of record"),
            (B, "checksum mismatch"),
            (21, "missing start of fragmented record"),
        ])
        .silent(&[])
        .ends_clean(log.len());
    let dropped: u64 = reading.skipped.iter().filter_map(|region| region.leveldb_len).sum();
    assert!((2 * B..=2 * B + 100).contains(&dropped), "{dropped} bytes dropped");
}

// Where to begin --------------------------------------------------------------------------------------------------------------

/// Offset and length of the six records in the log that the next tests read from various offsets.
/// The fifth leaves a trailer of two bytes in its block.
const PLACES: [(u64, u64); 6] = [
    (0, 10_000),
    (10_007, 10_000),
    (20_014, 2 * B - 1_000),
    (84_571, 1),
    (84_579, 13_716),
    (3 * B, B - 7),
];

/// Asserts that reading from `start` returns the records from number `first` on, and nothing else.
#[track_caller]
fn offset_log() -> Log {
    let mut log = Log::new();
    for (letter, (offset, len)) in ["a", "b", "c", "d", "e", "f"].into_iter().zip(PLACES) {
        log.write(big(letter, len));
        assert_eq!(log.written.last().map(|(offset, _)| *offset), Some(offset));
    }
    assert_eq!(log.len(), 4 * B);
    log
}

fn check_initial_offset(start: u64, first: usize) {
    let log = offset_log();
    log.read_from(start)
        .records(&log.written[first..])
        .reports(&[])
        .silent(&[])
        .ends_clean(4 * B);
}

#[test]
fn read_start() {
    check_initial_offset(0, 0);
}

#[test]
fn read_second_one_off() {
    check_initial_offset(1, 1);
}

#[test]
fn read_second_ten_thousand() {
    check_initial_offset(10_000, 1);
}

#[test]
fn read_second_start() {
    check_initial_offset(10_007, 1);
}

#[test]
fn read_third_one_off() {
    check_initial_offset(10_008, 2);
}

#[test]
fn read_third_start() {
    check_initial_offset(20_014, 2);
}

#[test]
fn read_fourth_one_off() {
    // Exception: LevelDB reports MIDDLE and LAST, 32,761 and 19,028 bytes, as "missing start of
    // fragmented record". They belong to the record that begins before the range: no damage, no
    // report.
    check_initial_offset(20_015, 3);
}

#[test]
fn read_fourth_first_block_trailer() {
    check_initial_offset(B - 4, 3);
}

#[test]
fn read_fourth_middle_block() {
    // Exception: LevelDB reports LAST, 19,028 bytes; as in read_fourth_one_off.
    check_initial_offset(B + 1, 3);
}

#[test]
fn read_fourth_last_block() {
    check_initial_offset(2 * B + 1, 3);
}

#[test]
fn read_fourth_start() {
    // Upstream has 1,000 where 10,000 is meant, so this is not where the fourth record begins
    // (84,571), but lies in the LAST before it.
    check_initial_offset(66_571, 3);
    check_initial_offset(84_571, 3);
}

#[test]
fn read_initial_offset_into_block_padding() {
    check_initial_offset(3 * B - 3, 5);
}

#[test]
fn read_end() {
    check_initial_offset(4 * B, 6);
}

#[test]
fn read_past_end() {
    // Exception: LevelDB is silent; here a start after the end of the file is an error.
    let options = ReadOptions::default().with_range(4 * B + 5..);
    let error = Reader::from_slice(&offset_log().file, options)
        .next_event()
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Truncated { offset, file_len, .. } if (offset, file_len) == (4 * B + 5, Some(4 * B))
    ));
}

// Elsewhere in LevelDB's tests ------------------------------------------------------------------------------------------------

/// `recovery_test.cc`, LargeManifestCompacted: a MANIFEST padded with zeros to 3 MiB is read like any other.
#[test]
fn large_manifest_compacted() {
    let mut log = Log::new();
    log.write("one");
    log.write(big("two", 50_000));
    let len = log.len();
    log.file.resize(3 << 20, 0);
    let reading = log.read();
    reading.records(&log.written).reports(&[]).ends_clean(3 << 20);
    // Exception: LevelDB is silent; here the zeros are reported block by block, not as damage.
    assert_eq!(reading.skipped.len() as u64, (3 << 20) / B - len / B);
    let whole = reading
        .skipped
        .iter()
        .copied()
        .reduce(|region, next| region.joined(next).expect("regions that touch"));
    let whole = whole.map(|region| (region.begin, region.end, region.reason));
    assert_eq!(whole, Some((len, 3 << 20, Reason::ZeroFill)));
}

/// `corruption_test.cc`, Recovery: 100 records, a byte damaged in each of the first two blocks.
#[test]
fn recovery_after_corruption() {
    let mut log = Log::new();
    for number in 0..100 {
        // A batch with a 16-byte key and a 1,000-byte value has 1,032 bytes.
        log.write(big(&format!("{number}."), 1_032));
    }
    log.file[19] ^= 0x80;
    log.file[BLOCK_LEN + 1_000] ^= 0x80;
    // The 64 records that begin in these blocks are lost. The rest of a record that continues in
    // the next block is reported separately.
    log.read()
        .records(&log.written[64..])
        .reports(&[
            (B, "checksum mismatch"),
            (480, "missing start of fragmented record"),
            (B - 487, "checksum mismatch"),
            (967, "missing start of fragmented record"),
        ])
        .silent(&[])
        .ends_clean(log.len());
}

// Inputs that the engines read differently, and what LevelDB makes of them ---------------------------------------------------

#[test]
fn full_empty_full_full() {
    Log::of(&[&fragment(FULL, b"aaa"), &fragment(FULL, b""), &fragment(FULL, b"ccc")])
        .read()
        .records(&[(0, "aaa"), (10, ""), (17, "ccc")])
        .reports(&[])
        .silent(&[])
        .ends_clean(27);
}

#[test]
fn orphan_last_then_full() {
    Log::of(&[&fragment(LAST, b"aaa"), &fragment(FULL, b"bbb")])
        .read()
        .records(&[(10, "bbb")])
        .reports(&[(3, "missing start of fragmented record")])
        .silent(&[])
        .ends_clean(20);
}

#[test]
fn orphan_middle_then_full() {
    Log::of(&[&fragment(MIDDLE, b"aaa"), &fragment(FULL, b"bbb")])
        .read()
        .records(&[(10, "bbb")])
        .reports(&[(3, "missing start of fragmented record")])
        .silent(&[])
        .ends_clean(20);
}

#[test]
fn first_full_full() {
    Log::of(&[
        &fragment(FIRST, b"aaa"),
        &fragment(FULL, b"bbb"),
        &fragment(FULL, b"ccc"),
    ])
    .read()
    .records(&[(10, "bbb"), (20, "ccc")])
    .reports(&[(3, "partial record without end")])
    .silent(&[])
    .ends_clean(30);
}

#[test]
fn first_first_last() {
    Log::of(&[
        &fragment(FIRST, b"aaa"),
        &fragment(FIRST, b"bbb"),
        &fragment(LAST, b"ccc"),
    ])
    .read()
    .records(&[(10, "bbbccc")])
    .reports(&[(3, "partial record without end")])
    .silent(&[])
    .ends_clean(30);
}

#[test]
fn empty_first_then_full() {
    let reading = Log::of(&[&fragment(FIRST, b""), &fragment(FULL, b"bbb")]).read();
    reading.records(&[(7, "bbb")]).reports(&[]);
    // Exception: LevelDB is silent; here the header is reported, not as damage.
    reading.silent(&[(0, 7, "empty_first")]).ends_clean(17);
}

#[test]
fn full_first_end_of_file() {
    let reading = Log::of(&[&fragment(FULL, b"zzz"), &fragment(FIRST, b"aaa")]).read();
    reading.records(&[(0, "zzz")]).reports(&[]);
    // Exception: LevelDB is silent; here it is reported as a torn tail.
    reading.silent(&[(10, 20, "torn_tail")]).ends_torn(10);
}

#[test]
fn one_to_six_header_bytes_at_end_of_file() {
    for len in 1..HEADER_LEN {
        let reading = Log::of(&[&fragment(FULL, b"zzz"), &fragment(FULL, b"aaa")[..len]]).read();
        reading.records(&[(0, "zzz")]).reports(&[]);
        // Exception: LevelDB is silent; here it is reported as a torn tail.
        reading.silent(&[(10, 10 + len as u64, "torn_tail")]).ends_torn(10);
    }
}

#[test]
fn payload_cut_at_end_of_file() {
    for len in HEADER_LEN..HEADER_LEN + 3 {
        let reading = Log::of(&[&fragment(FULL, b"zzz"), &fragment(FULL, b"aaa")[..len]]).read();
        reading.records(&[(0, "zzz")]).reports(&[]);
        // Exception: LevelDB is silent; here it is reported as a torn tail.
        reading.silent(&[(10, 10 + len as u64, "torn_tail")]).ends_torn(10);
    }
}

#[test]
fn bad_checksum_more_records_in_block_good_next_block() {
    let mut log = Log::of(&[
        &fragment(FULL, b"aaa"),
        &fragment(FULL, b"bbb"),
        &fragment(FULL, b"ccc"),
    ])
    .fill_block()
    .then(&[&fragment(FULL, b"ddd")]);
    log.add_to_byte(10, 1);
    log.read()
        .records(&[(0, "aaa"), (B, "ddd")])
        .reports(&[(32_758, "checksum mismatch")])
        .silent(&[])
        .ends_clean(B + 10);
}

#[test]
fn bad_checksum_inside_first_to_last() {
    let mut log = Log::of(&[&fragment(FIRST, b"aaa"), &fragment(MIDDLE, b"bbb")])
        .fill_block()
        .then(&[&fragment(LAST, b"ccc"), &fragment(FULL, b"ddd")]);
    log.add_to_byte(10, 1);
    log.read()
        .records(&[(B + 10, "ddd")])
        // LevelDB makes the same reports, the second before the first.
        .reports(&[
            (3, "error in middle of record"),
            (32_758, "checksum mismatch"),
            (3, "missing start of fragmented record"),
        ])
        .silent(&[])
        .ends_clean(B + 20);
}

#[test]
fn zeros_to_block_end_good_next_block() {
    let reading = Log::of(&[&fragment(FULL, b"aaa")])
        .pad_block()
        .then(&[&fragment(FULL, b"bbb")])
        .read();
    reading.records(&[(0, "aaa"), (B, "bbb")]).reports(&[]);
    // Exception: LevelDB is silent; here the zeros are reported, not as damage.
    reading.silent(&[(10, B, "zero_fill")]).ends_clean(B + 10);
}

#[test]
fn first_zeros_to_block_end_last_in_next_block() {
    let reading = Log::of(&[&fragment(FIRST, b"aaa")])
        .pad_block()
        .then(&[&fragment(LAST, b"bbb"), &fragment(FULL, b"ccc")])
        .read();
    reading.records(&[(B + 10, "ccc")]).reports(&[
        (3, "error in middle of record"),
        (3, "missing start of fragmented record"),
    ]);
    // Exception: LevelDB is silent about the zeros; here they are reported, not as damage.
    reading.silent(&[(10, B, "zero_fill")]).ends_clean(B + 20);
}

#[test]
fn zero_header_with_a_checksum_then_a_valid_record() {
    let reading = Log::of(&[
        &fragment(FULL, b"aaa"),
        b"\x01\x02\x03\x04\0\0\0",
        &fragment(FULL, b"bbb"),
    ])
    .pad_block()
    .then(&[&fragment(FULL, b"ccc")])
    .read();
    reading.records(&[(0, "aaa"), (B, "ccc")]).reports(&[]);
    // Exception: LevelDB loses a valid record silently; here this is damage.
    reading.silent(&[(10, B, "zero_header")]).ends_clean(B + 10);
}

#[test]
fn length_beyond_block() {
    let mut log = Log::of(&[&fragment(FULL, b"aaa"), &fragment(FULL, b"bbb")])
        .fill_block()
        .then(&[&fragment(FULL, b"ccc")]);
    // 0x8003 bytes.
    log.add_to_byte(15, 0x80);
    log.read()
        .records(&[(0, "aaa"), (B, "ccc")])
        .reports(&[(32_758, "bad record length")])
        .silent(&[])
        .ends_clean(B + 10);
}

#[test]
fn length_beyond_block_in_last_partial_block() {
    let mut log = Log::of(&[
        &fragment(FULL, b"aaa"),
        &fragment(FULL, b"bbb"),
        &fragment(FULL, b"ccc"),
    ]);
    log.add_to_byte(15, 0x80);
    let reading = log.read();
    reading.records(&[(0, "aaa")]).reports(&[]);
    // Exception: LevelDB takes it for the end of the file and silently loses what follows. No torn
    // write leaves a length that does not fit into its block; here this is damage.
    reading.silent(&[(10, 30, "bad_length")]).ends_clean(30);

    // The length on its own is enough, without a record after it or a valid checksum.
    log.shrink(10);
    log.add_to_byte(10, 1);
    let reading = log.read();
    reading.silent(&[(10, 20, "bad_length")]).ends_clean(20);
}

#[test]
fn length_beyond_file_with_a_good_record_after() {
    let mut log = Log::of(&[
        &fragment(FULL, b"aaa"),
        &fragment(FULL, b"bbb"),
        &fragment(FULL, b"ccc"),
    ]);
    // 0x1003 bytes: the block has room for them, but the file ends earlier.
    log.add_to_byte(15, 0x10);
    let reading = log.read();
    reading.records(&[(0, "aaa")]).reports(&[]);
    // Exception: as before. What proves the length wrong is its own checksum, or the record after it.
    reading.silent(&[(10, 30, "bad_length")]).ends_clean(30);

    log.add_to_byte(10, 1);
    let reading = log.read();
    reading.silent(&[(10, 30, "bad_length")]).ends_clean(30);
}

#[test]
fn bad_length_in_last_partial_block_inside_first_to_last() {
    let mut log = Log::of(&[
        &fragment(FIRST, b"aaa"),
        &fragment(LAST, b"bbb"),
        &fragment(FULL, b"ccc"),
    ]);
    log.add_to_byte(15, 0x80);
    let reading = log.read();
    // LevelDB takes it for the end of the file, and does not report FIRST either.
    reading.records(NONE).reports(&[]);
    // Exception: as before.
    reading
        .silent(&[(0, 10, "interrupted_record"), (10, 30, "bad_length")])
        .ends_clean(30);
}

#[test]
fn first_then_less_than_a_header_of_zeros_at_end_of_file() {
    let reading = Log::of(&[&fragment(FIRST, b"aaa"), &[0; 6]]).read();
    // LevelDB takes it for a truncated header, and does not report FIRST either.
    reading.records(NONE).reports(&[]);
    // Exception: here both are reported.
    reading
        .silent(&[(0, 10, "torn_tail"), (10, 16, "torn_tail")])
        .ends_torn(0);
}

#[test]
fn type_80_between_records() {
    Log::of(&[&fragment(FULL, b"aaa"), &fragment(80, b"xxx"), &fragment(FULL, b"bbb")])
        .read()
        .records(&[(0, "aaa"), (20, "bbb")])
        .reports(&[(3, "unknown record type")])
        .silent(&[])
        .ends_clean(30);
}

#[test]
fn type_80_inside_first_to_last() {
    let reading = Log::of(&[&fragment(FIRST, b"aaa"), &fragment(80, b"xxx"), &fragment(LAST, b"ccc")]).read();
    // Exception: LevelDB reports the first two as one, 6 bytes. Here each region has its own
    // reason; the sum is the same.
    reading
        .records(NONE)
        .reports(&[
            (3, "error in middle of record"),
            (3, "unknown record type"),
            (3, "missing start of fragmented record"),
        ])
        .silent(&[])
        .ends_clean(30);
}

#[test]
fn type_1_flipped_to_5_not_first_record() {
    let mut log = Log::of(&[
        &fragment(FULL, b"aaa"),
        &fragment(FULL, b"bbb"),
        &fragment(FULL, b"ccc"),
    ]);
    log.file[16] ^= 4;
    log.read()
        .records(&[(0, "aaa")])
        .reports(&[(20, "checksum mismatch")])
        .silent(&[])
        .ends_clean(30);
}

#[test]
fn type_1_flipped_to_5_first_record() {
    let mut log = Log::of(&[&fragment(FULL, b"aaa"), &fragment(FULL, b"bbb")]);
    log.file[6] ^= 4;
    log.read()
        .records(NONE)
        .reports(&[(20, "checksum mismatch")])
        .silent(&[])
        .ends_clean(20);
}

#[test]
fn nonzero_trailer_bytes() {
    let reading = Log::of(&[
        &fragment(FULL, &big("a", B - 10)),
        b"\xff\0\xff",
        &fragment(FULL, b"bbb"),
    ])
    .read();
    reading.records(&[(0, &big("a", B - 10)[..]), (B, b"bbb")]).reports(&[]);
    // Exception: LevelDB does not examine them; here they are reported, not as damage.
    reading.silent(&[(B - 3, B, "nonzero_trailer")]).ends_clean(B + 10);
}

#[test]
fn nonzero_trailer_bytes_after_a_record_after_a_middle() {
    let pieces = [
        fragment(MIDDLE, b"aaa"),
        fragment(FULL, &big("b", B - 20)),
        vec![0xff; 3],
    ];
    let reading = Log::of(&pieces.each_ref().map(Vec::as_slice)).read();
    reading
        .records(&[(10, &big("b", B - 20))])
        .reports(&[(3, "missing start of fragmented record")]);
    // Exception: as before. Only the last fragment before a trailer matters, not the one before it.
    reading.silent(&[(B - 3, B, "nonzero_trailer")]).ends_clean(B);
}

#[test]
fn nonzero_trailer_bytes_inside_a_record() {
    // Not reported here either: they lie within the span of the record.
    Log::of(&[
        &fragment(FIRST, &big("a", B - 10)),
        b"\xff\0\xff",
        &fragment(LAST, b"bbb"),
    ])
    .read()
    .records(&[(0, [&big("a", B - 10)[..], b"bbb"].concat())])
    .reports(&[])
    .silent(&[])
    .ends_clean(B + 10);
}

// Traps in LevelDB that this crate must not share -------------------------------------------------------------------------------

#[test]
fn wire_types_with_a_right_checksum() {
    for kind in (0..=255).filter(|kind| !(FULL..=LAST).contains(kind)) {
        // Exception: LevelDB takes type 5 for the end of the file and silently loses "bbb"; it
        // silently skips type 6; from 128 on it reports a number that is not the type's.
        Log::of(&[
            &fragment(FULL, b"aaa"),
            &fragment(kind, b"xxx"),
            &fragment(FULL, b"bbb"),
        ])
        .read()
        .records(&[(0, "aaa"), (20, "bbb")])
        .reports(&[(3, "unknown record type")])
        .silent(&[])
        .ends_clean(30);
    }
}

#[test]
fn initial_offset_one_byte_into_a_record_of_many_fragments() {
    let mut log = Log::new();
    log.write(big("foo", 100_000));
    log.write("bar");
    // Exception: LevelDB makes three false reports of a "missing start": 32,761, 32,761 and 1,717 bytes.
    log.read_from(1)
        .records(&[(100_028, "bar")])
        .reports(&[])
        .silent(&[])
        .ends_clean(log.len());
}
