//! The cases of LevelDB's `db/log_test.cc` in our own words, under their upstream names. Further
//! cases show how LevelDB reads a log. `docs/format/leveldb-cases.md` lists all of them.
//!
//! Each case states the records with their offsets, and the reports that LevelDB makes, as bytes
//! and text. A comment with `Exception:` marks an intended difference from LevelDB. LevelDB skips
//! damage and continues, so all cases use the policy `Skip`.

use std::io::{self, Read};

use crate::common::{Found, checksum, fragment, read_all};
use cordwood_log::codec::Encoder;
use cordwood_log::damage::{Reason, SkippedRegion};
use cordwood_log::format::{BLOCK_LEN, HEADER_LEN, Header};
use cordwood_log::{Dialect, End, Error, ErrorKind, OnCorruption, ReadOptions, Reader};

const B: u64 = BLOCK_LEN as u64;
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

// These are LevelDB's texts.
const BAD_LENGTH: &str = "bad record length";
const CHECKSUM: &str = "checksum mismatch";
const UNKNOWN_TYPE: &str = "unknown record type";
const NO_START: &str = "missing start of fragmented record";
const NO_END: &str = "partial record without end";
const IN_MIDDLE: &str = "error in middle of record";

/// A log in memory that can be written, damaged and read.
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

    fn write(mut self, record: impl AsRef<[u8]>) -> Self {
        let record = record.as_ref();
        let offset = self.encoder.encode(record, &mut self.file);
        self.written.push((offset, record.to_vec()));
        self
    }

    fn reopen_for_append(mut self) -> Self {
        self.encoder = Encoder::new(self.len());
        self
    }

    /// Appends a fragment that no writer may ever have written.
    fn fragment(self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        self.bytes(fragment(kind, payload.as_ref()))
    }

    fn full(self, payload: impl AsRef<[u8]>) -> Self {
        self.fragment(FULL, payload)
    }

    fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.file.extend(bytes.as_ref());
        self
    }

    /// Appends zeros up to the end of the block.
    fn pad_block(mut self) -> Self {
        self.file.resize(self.file.len().next_multiple_of(BLOCK_LEN), 0);
        self
    }

    /// Appends a FULL fragment that fills the rest of the block.
    fn fill_block(self) -> Self {
        let room = BLOCK_LEN - self.file.len() % BLOCK_LEN - HEADER_LEN;
        self.full(vec![b'.'; room])
    }

    fn add_to_byte(mut self, at: usize, delta: u8) -> Self {
        self.file[at] = self.file[at].wrapping_add(delta);
        self
    }

    /// Changes the type of the fragment at `header`, and makes its checksum valid.
    fn set_kind(mut self, header: usize, kind: u8) -> Self {
        self.file[header + 6] = kind;
        let bytes = self.file[header..].first_chunk().expect("a header");
        let len = usize::from(Header::decode(bytes).len);
        let masked_crc = checksum(kind, &self.file[header + HEADER_LEN..][..len]);
        self.file[header..][..4].copy_from_slice(&masked_crc.to_le_bytes());
        self
    }

    fn shrink(mut self, len: usize) -> Self {
        self.file.truncate(self.file.len() - len);
        self
    }

    fn len(&self) -> u64 {
        self.file.len() as u64
    }

    /// Asserts that the log has this length.
    #[track_caller]
    fn has_len(self, len: u64) -> Self {
        assert_eq!(self.len(), len);
        self
    }

    fn read(&self) -> Reading {
        self.read_from(0)
    }

    fn read_from(&self, start: u64) -> Reading {
        let options = ReadOptions::default()
            // A detected dialect would also include RocksDB's metadata.
            .with_dialect(Dialect::LEVELDB)
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

/// The results of a reader. Each method checks one part of them.
struct Reading {
    records: Vec<(u64, Vec<u8>)>,
    skipped: Vec<SkippedRegion>,
    end: End,
}

impl Reading {
    #[track_caller]
    fn records<D: AsRef<[u8]>>(&self, expected: &[(u64, D)]) -> &Self {
        // Offsets and lengths are compared first, because a difference in 100,000 bytes is hard to
        // read.
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

    /// Checks LevelDB's reports, which are bytes and text. Here, they are in the order of the
    /// offsets.
    #[track_caller]
    fn reports(&self, expected: &[(u64, &str)]) -> &Self {
        let found: Vec<_> = self.skipped.iter().filter_map(report).collect();
        assert_eq!(found, expected, "LevelDB's reports");
        self
    }

    /// Checks the regions that LevelDB does not report.
    #[track_caller]
    fn silent(&self, expected: &[(u64, u64, &str)]) -> &Self {
        let silent = self.skipped.iter().filter(|region| region.leveldb_len.is_none());
        let found: Vec<_> = silent.map(|r| (r.start, r.end, r.reason.as_str())).collect();
        assert_eq!(found, expected, "regions that LevelDB does not report");
        self
    }

    #[track_caller]
    fn ends(&self, end: End) {
        assert_eq!(self.end, end);
    }
}

/// Returns LevelDB's report of a region, or `None` if LevelDB is silent.
fn report(region: &SkippedRegion) -> Option<(u64, &'static str)> {
    // Without a byte count, LevelDB is silent whatever the reason, for example about a bad length
    // at the end of the file.
    let text = |reason| match reason {
        Reason::BadLength { .. } => BAD_LENGTH,
        Reason::ChecksumMismatch { .. } => CHECKSUM,
        Reason::UnknownKind { .. } => UNKNOWN_TYPE,
        Reason::MissingStart => NO_START,
        Reason::MissingEnd => NO_END,
        Reason::InterruptedRecord => IN_MIDDLE,
        reason => panic!("LevelDB has no text for {}", reason.as_str()),
    };
    region.leveldb_len.map(|len| (len, text(region.reason)))
}

/// Repeats `text` up to `len` bytes.
fn big(text: &str, len: u64) -> Vec<u8> {
    text.bytes().cycle().take(len as usize).collect()
}

fn clean(offset: u64) -> End {
    End::Clean { offset }
}

fn torn(offset: u64) -> End {
    End::TornTail { offset }
}

/// Makes a test of each row. A row consists of a log, its records with their offsets, LevelDB's
/// reports, the regions that only this crate reports, and the end. Reports and regions are
/// optional.
macro_rules! cases {
    ($(
        $name:ident: $log:expr,
        records: [$(($offset:expr, $record:expr)),*]
        $(, reports: $reports:expr)?
        $(, silent: $silent:expr)?,
        end: $end:expr;
    )+) => {$(
        #[test]
        fn $name() {
            let records: &[(u64, Vec<u8>)] = &[$(($offset, Vec::from($record))),*];
            let reports = [$(&$reports[..],)? &[]][0];
            let silent = [$(&$silent[..],)? &[]][0];
            $log.read().records(records).reports(reports).silent(silent).ends($end);
        }
    )+};
}

// These cases are about writing and reading. In every test, `read_all` checks that the end is
// final.
cases! {
    empty: Log::new(), records: [], end: clean(0);

    read_write: Log::new().write("foo").write("bar").write("").write("xxxx"),
        records: [(0, "foo"), (10, "bar"), (20, ""), (27, "xxxx")], end: clean(38);

    fragmentation: Log::new().write("small").write(big("medium", 50_000)).write(big("large", 100_000)),
        records: [(0, "small"), (12, big("medium", 50_000)), (50_026, big("large", 100_000))],
        end: clean(150_054);

    // The header of an empty record just fits.
    marginal_trailer: Log::new().write(big("foo", B - 14)).has_len(B - 7).write("").write("bar"),
        records: [(0, big("foo", B - 14)), (B - 7, ""), (B, "bar")], end: clean(B + 10);

    short_trailer: Log::new().write(big("foo", B - 10)).has_len(B - 3).write("").write("bar"),
        records: [(0, big("foo", B - 10)), (B, ""), (B + 7, "bar")], end: clean(B + 17);

    aligned_eof: Log::new().write(big("foo", B - 10)),
        records: [(0, big("foo", B - 10))], end: clean(B - 3);

    open_for_append: Log::new().write("hello").reopen_for_append().write("world"),
        records: [(0, "hello"), (12, "world")], end: clean(24);
}

#[test]
fn many_blocks() {
    let log = (0..100_000).fold(Log::new(), |log, number| log.write(format!("{number}.")));
    let reading = log.read();
    reading
        .records(&log.written)
        .reports(&[])
        .silent(&[])
        .ends(clean(log.len()));
    assert_eq!(reading.records[99_999].1, b"99999.");
    assert!(log.len() > 30 * B, "many blocks");
}

#[test]
fn marginal_trailer2() {
    let foo = big("foo", B - 14);
    let log = Log::new().write(&foo).has_len(B - 7).write("bar");
    // An empty FIRST fragment fills the block, and the whole record is in the next block.
    assert_eq!((log.file[BLOCK_LEN - 1], log.file[BLOCK_LEN + 6]), (FIRST, LAST));
    let reading = log.read();
    reading
        .records(&[(0, &foo[..]), (B - 7, b"bar")])
        .reports(&[])
        .silent(&[]);
    reading.ends(clean(B + 10));
}

#[test]
fn random_read() {
    // This is the "minimal standard" generator of Park and Miller.
    let mut random = 301;
    let mut below = |limit: u64| {
        random = random * 16_807 % 2_147_483_647;
        random % limit
    };
    let mut log = Log::new();
    for number in 0..500 {
        // Short records are as frequent as records of many blocks.
        let digits = below(18);
        log = log.write(big(&format!("{number}."), below(1 << digits)));
    }
    log.read()
        .records(&log.written)
        .reports(&[])
        .silent(&[])
        .ends(clean(log.len()));
}

// These cases are about errors.
cases! {
    bad_record_type: Log::new().write("foo").set_kind(0, FULL + 100),
        records: [], reports: [(3, UNKNOWN_TYPE)], end: clean(10);

    // The payload and one byte of the header are missing. Exception: the bytes are reported as a
    // torn tail, which is not damage. LevelDB is silent.
    truncated_trailing_record_is_ignored: Log::new().write("foo").shrink(4),
        records: [], silent: [(0, 6, "torn_tail")], end: torn(0);

    // This changes the low byte of the length. The record then ends one byte after its block.
    bad_length: Log::new().write(big("bar", B - 7)).write("foo").add_to_byte(4, 1),
        records: [(B, "foo")], reports: [(B, BAD_LENGTH)], end: clean(B + 10);

    // Exception: the bytes are reported as a torn tail. LevelDB is silent.
    bad_length_at_end_is_ignored: Log::new().write("foo").shrink(1),
        records: [], silent: [(0, 9, "torn_tail")], end: torn(0);

    checksum_mismatch: Log::new().write("foo").add_to_byte(0, 10),
        records: [], reports: [(10, CHECKSUM)], end: clean(10);

    unexpected_middle_type: Log::new().write("foo").set_kind(0, MIDDLE),
        records: [], reports: [(3, NO_START)], end: clean(10);

    unexpected_last_type: Log::new().write("foo").set_kind(0, LAST),
        records: [], reports: [(3, NO_START)], end: clean(10);

    unexpected_full_type: Log::new().write("foo").write("bar").set_kind(0, FIRST),
        records: [(10, "bar")], reports: [(3, NO_END)], end: clean(20);

    unexpected_first_type: Log::new().write("foo").write(big("bar", 100_000)).set_kind(0, FIRST),
        records: [(10, big("bar", 100_000))], reports: [(3, NO_END)], end: clean(100_038);

    // The whole LAST fragment is missing, which is a header and 7 bytes. Exception: the bytes are
    // reported as a torn tail. LevelDB is silent.
    missing_last_is_ignored: Log::new().write(big("bar", B)).shrink(14).has_len(B),
        records: [], silent: [(0, B, "torn_tail")], end: torn(0);

    // Exception: FIRST and the rest of LAST are each reported as a torn tail. LevelDB is silent.
    partial_last_is_ignored: Log::new().write(big("bar", B)).shrink(1),
        records: [], silent: [(0, B, "torn_tail"), (B, B + 13, "torn_tail")], end: torn(0);
}

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
    // Exception: this is an error, no byte is dropped, and another call tries again, because a
    // failing disk is not the end of a file. LevelDB reports 32,768 dropped bytes and ends.
    for _ in 0..2 {
        match reader.next_event() {
            Err(Error {
                path: None,
                kind: ErrorKind::Io { source, .. },
                ..
            }) => assert_eq!(source.to_string(), "read error"),
            other => panic!("{other:?}"),
        }
        assert_eq!(reader.end(), None);
    }
}

#[test]
fn skip_into_multi_record() {
    let log = Log::new().write(big("foo", 3 * B)).write("correct");
    // FIRST is before this offset, so the rest of its record is not damage.
    let reading = log.read_from(B);
    reading.records(&[(3 * B + 28, "correct")]).reports(&[]).silent(&[]);
    reading.ends(clean(log.len()));
}

#[test]
fn error_joins_records() {
    let mut log = Log::new().write(big("foo", B)).write(big("bar", B)).write("correct");
    // The second block contains LAST of "foo" and FIRST of "bar". The remaining FIRST and LAST must
    // not be joined.
    log.file[BLOCK_LEN..][..BLOCK_LEN].fill(b'x');
    let reading = log.read();
    // LevelDB makes the same reports, but the second before the first.
    let reports = [(B - 7, IN_MIDDLE), (B, CHECKSUM), (21, NO_START)];
    reading
        .records(&[(2 * B + 28, "correct")])
        .reports(&reports)
        .silent(&[]);
    reading.ends(clean(log.len()));
    let dropped: u64 = reading.skipped.iter().filter_map(|region| region.leveldb_len).sum();
    assert!((2 * B..=2 * B + 100).contains(&dropped), "{dropped} bytes dropped");
}

/// The offset and the length of each of the six records in the log. The next tests read this log
/// from various offsets. The fifth record leaves a trailer of two bytes in its block.
const PLACES: [(u64, u64); 6] = [
    (0, 10_000),
    (10_007, 10_000),
    (20_014, 2 * B - 1_000),
    (84_571, 1),
    (84_579, 13_716),
    (3 * B, B - 7),
];

fn offset_log() -> Log {
    let mut log = Log::new();
    for (letter, (offset, len)) in ["a", "b", "c", "d", "e", "f"].into_iter().zip(PLACES) {
        log = log.write(big(letter, len));
        assert_eq!(log.written.last().map(|(offset, _)| *offset), Some(offset));
    }
    log.has_len(4 * B)
}

/// Makes a test of each row. A row consists of an offset and the number of the first record that is
/// read from there. All later records must be read too, and LevelDB must report nothing.
macro_rules! starts {
    ($($name:ident: $start:expr, first: $first:expr;)+) => {$(
        #[test]
        fn $name() {
            let log = offset_log();
            let reading = log.read_from($start);
            reading.records(&log.written[$first..]).reports(&[]).silent(&[]).ends(clean(4 * B));
        }
    )+};
}

starts! {
    read_start: 0, first: 0;
    read_second_one_off: 1, first: 1;
    read_second_ten_thousand: 10_000, first: 1;
    read_second_start: 10_007, first: 1;
    read_third_one_off: 10_008, first: 2;
    read_third_start: 20_014, first: 2;
    // Exception: this crate reports nothing, because MIDDLE and LAST belong to the record that
    // starts before the range. LevelDB reports them, 32,761 and 19,028 bytes, as "missing start of
    // fragmented record".
    read_fourth_one_off: 20_015, first: 3;
    read_fourth_first_block_trailer: B - 4, first: 3;
    // Exception: this crate reports nothing. LevelDB reports LAST, 19,028 bytes.
    read_fourth_middle_block: B + 1, first: 3;
    read_fourth_last_block: 2 * B + 1, first: 3;
    // Upstream has 1,000 where 10,000 is meant. This offset is therefore not the start of the
    // fourth record (84,571), but inside the LAST fragment before it.
    read_fourth_start: 66_571, first: 3;
    read_fourth_true_start: 84_571, first: 3;
    read_initial_offset_into_block_padding: 3 * B - 3, first: 5;
    read_end: 4 * B, first: 6;
}

#[test]
fn read_past_end() {
    // Exception: a start after the end of the file is an error. LevelDB is silent.
    let options = ReadOptions::default().with_range(4 * B + 5..);
    let error = Reader::from_slice(&offset_log().file, options)
        .next_event()
        .unwrap_err();
    assert!(matches!(
        error.kind,
        ErrorKind::Truncated { offset, file_len, .. } if (offset, file_len) == (4 * B + 5, Some(4 * B))
    ));
}

// These cases are from other tests of LevelDB.

/// LargeManifestCompacted in `recovery_test.cc` pads a MANIFEST with zeros to 3 MiB. It is read
/// like any other MANIFEST.
#[test]
fn large_manifest_compacted() {
    let mut log = Log::new().write("one").write(big("two", 50_000));
    let len = log.len();
    log.file.resize(3 << 20, 0);
    let reading = log.read();
    reading.records(&log.written).reports(&[]).ends(clean(3 << 20));
    // Exception: the zeros are reported block by block, but not as damage. LevelDB is silent.
    assert_eq!(reading.skipped.len() as u64, (3 << 20) / B - len / B);
    let whole = reading
        .skipped
        .iter()
        .copied()
        .reduce(|region, next| region.joined(next).expect("regions that touch"));
    let whole = whole.map(|region| (region.start, region.end, region.reason));
    assert_eq!(whole, Some((len, 3 << 20, Reason::ZeroFill)));
}

/// Recovery in `corruption_test.cc` damages one byte in each of the first two blocks of a log of
/// 100 records.
#[test]
fn recovery_after_corruption() {
    // A batch with a 16-byte key and a 1,000-byte value has 1,032 bytes.
    let mut log = (0..100).fold(Log::new(), |log, number| log.write(big(&format!("{number}."), 1_032)));
    log.file[19] ^= 0x80;
    log.file[BLOCK_LEN + 1_000] ^= 0x80;
    // The 64 records that start in these blocks are lost. The rest of a record that continues in
    // the next block is reported separately.
    let reports = [(B, CHECKSUM), (480, NO_START), (B - 487, CHECKSUM), (967, NO_START)];
    let reading = log.read();
    reading
        .records(&log.written[64..])
        .reports(&reports)
        .silent(&[])
        .ends(clean(log.len()));
}

// In these cases, the engines read the same input differently. The expected values are LevelDB's.
cases! {
    full_empty_full_full: Log::new().full("aaa").full("").full("ccc"),
        records: [(0, "aaa"), (10, ""), (17, "ccc")], end: clean(27);

    orphan_last_then_full: Log::new().fragment(LAST, "aaa").full("bbb"),
        records: [(10, "bbb")], reports: [(3, NO_START)], end: clean(20);

    orphan_middle_then_full: Log::new().fragment(MIDDLE, "aaa").full("bbb"),
        records: [(10, "bbb")], reports: [(3, NO_START)], end: clean(20);

    first_full_full: Log::new().fragment(FIRST, "aaa").full("bbb").full("ccc"),
        records: [(10, "bbb"), (20, "ccc")], reports: [(3, NO_END)], end: clean(30);

    first_first_last: Log::new().fragment(FIRST, "aaa").fragment(FIRST, "bbb").fragment(LAST, "ccc"),
        records: [(10, "bbbccc")], reports: [(3, NO_END)], end: clean(30);

    // Exception: the header is reported, but not as damage. LevelDB is silent.
    empty_first_then_full: Log::new().fragment(FIRST, "").full("bbb"),
        records: [(7, "bbb")], silent: [(0, 7, "empty_first")], end: clean(17);

    // Exception: this is reported as a torn tail. LevelDB is silent.
    full_first_end_of_file: Log::new().full("zzz").fragment(FIRST, "aaa"),
        records: [(0, "zzz")], silent: [(10, 20, "torn_tail")], end: torn(10);

    bad_checksum_more_records_in_block_good_next_block:
        Log::new().full("aaa").full("bbb").full("ccc").fill_block().full("ddd").add_to_byte(10, 1),
        records: [(0, "aaa"), (B, "ddd")], reports: [(32_758, CHECKSUM)], end: clean(B + 10);

    // LevelDB makes the same reports, but the second before the first.
    bad_checksum_inside_first_to_last:
        Log::new().fragment(FIRST, "aaa").fragment(MIDDLE, "bbb").fill_block()
            .fragment(LAST, "ccc").full("ddd").add_to_byte(10, 1),
        records: [(B + 10, "ddd")], reports: [(3, IN_MIDDLE), (32_758, CHECKSUM), (3, NO_START)],
        end: clean(B + 20);

    // Exception: the zeros are reported, but not as damage. LevelDB is silent.
    zeros_to_block_end_good_next_block: Log::new().full("aaa").pad_block().full("bbb"),
        records: [(0, "aaa"), (B, "bbb")], silent: [(10, B, "zero_fill")], end: clean(B + 10);

    // Exception: the zeros are reported, but not as damage. LevelDB is silent about them.
    first_zeros_to_block_end_last_in_next_block:
        Log::new().fragment(FIRST, "aaa").pad_block().fragment(LAST, "bbb").full("ccc"),
        records: [(B + 10, "ccc")], reports: [(3, IN_MIDDLE), (3, NO_START)],
        silent: [(10, B, "zero_fill")], end: clean(B + 20);

    // Exception: this is damage. LevelDB silently loses a valid record.
    zero_header_with_a_checksum_then_a_valid_record:
        Log::new().full("aaa").bytes(b"\x01\x02\x03\x04\0\0\0").full("bbb").pad_block().full("ccc"),
        records: [(0, "aaa"), (B, "ccc")], silent: [(10, B, "zero_header")], end: clean(B + 10);

    // The length becomes 0x8003 bytes.
    length_beyond_block: Log::new().full("aaa").full("bbb").fill_block().full("ccc").add_to_byte(15, 0x80),
        records: [(0, "aaa"), (B, "ccc")], reports: [(32_758, BAD_LENGTH)], end: clean(B + 10);

    // Exception: this is damage, because no torn write leaves a length that does not fit into its
    // block. LevelDB takes it for the end of the file and silently loses the rest.
    length_beyond_block_in_last_partial_block:
        Log::new().full("aaa").full("bbb").full("ccc").add_to_byte(15, 0x80),
        records: [(0, "aaa")], silent: [(10, 30, "bad_length")], end: clean(30);

    // Exception: this is damage. The length alone proves it, without a record after it or a valid
    // checksum.
    length_beyond_block_in_the_last_fragment:
        Log::new().full("aaa").full("bbb").add_to_byte(15, 0x80).add_to_byte(10, 1),
        records: [(0, "aaa")], silent: [(10, 20, "bad_length")], end: clean(20);

    // The length becomes 0x1003 bytes. The block has room for them, but the file ends earlier.
    // Exception: this is damage, because the fragment's own checksum or the record after it proves
    // the length wrong.
    length_beyond_file_with_a_good_record_after:
        Log::new().full("aaa").full("bbb").full("ccc").add_to_byte(15, 0x10),
        records: [(0, "aaa")], silent: [(10, 30, "bad_length")], end: clean(30);

    // Exception: this is damage for the same reason.
    length_beyond_file_and_bad_checksum_with_a_good_record_after:
        Log::new().full("aaa").full("bbb").full("ccc").add_to_byte(15, 0x10).add_to_byte(10, 1),
        records: [(0, "aaa")], silent: [(10, 30, "bad_length")], end: clean(30);

    // LevelDB takes this for the end of the file, and does not report FIRST either. Exception: this
    // is damage.
    bad_length_in_last_partial_block_inside_first_to_last:
        Log::new().fragment(FIRST, "aaa").fragment(LAST, "bbb").full("ccc").add_to_byte(15, 0x80),
        records: [], silent: [(0, 10, "interrupted_record"), (10, 30, "bad_length")], end: clean(30);

    // Exception: both FIRST and the zeros are reported. LevelDB takes the zeros for a truncated
    // header, and does not report FIRST either.
    first_then_less_than_a_header_of_zeros_at_end_of_file: Log::new().fragment(FIRST, "aaa").bytes([0; 6]),
        records: [], silent: [(0, 10, "torn_tail"), (10, 16, "torn_tail")], end: torn(0);

    type_80_between_records: Log::new().full("aaa").fragment(80, "xxx").full("bbb"),
        records: [(0, "aaa"), (20, "bbb")], reports: [(3, UNKNOWN_TYPE)], end: clean(30);

    // Exception: each region is reported with its own reason. LevelDB reports the first two as one,
    // 6 bytes. The sum is the same.
    type_80_inside_first_to_last: Log::new().fragment(FIRST, "aaa").fragment(80, "xxx").fragment(LAST, "ccc"),
        records: [], reports: [(3, IN_MIDDLE), (3, UNKNOWN_TYPE), (3, NO_START)], end: clean(30);

    type_1_flipped_to_5_not_first_record: Log::new().full("aaa").full("bbb").full("ccc").add_to_byte(16, 4),
        records: [(0, "aaa")], reports: [(20, CHECKSUM)], end: clean(30);

    type_1_flipped_to_5_first_record: Log::new().full("aaa").full("bbb").add_to_byte(6, 4),
        records: [], reports: [(20, CHECKSUM)], end: clean(20);

    // Exception: the bytes are reported, but not as damage. LevelDB does not examine them.
    nonzero_trailer_bytes: Log::new().full(big("a", B - 10)).bytes(b"\xff\0\xff").full("bbb"),
        records: [(0, big("a", B - 10)), (B, "bbb")], silent: [(B - 3, B, "nonzero_trailer")],
        end: clean(B + 10);

    // Exception: the bytes are reported, but not as damage. Only the last fragment before a trailer
    // matters, and not the fragment before that one.
    nonzero_trailer_bytes_after_a_record_after_a_middle:
        Log::new().fragment(MIDDLE, "aaa").full(big("b", B - 20)).bytes([0xff; 3]),
        records: [(10, big("b", B - 20))], reports: [(3, NO_START)],
        silent: [(B - 3, B, "nonzero_trailer")], end: clean(B);

    // These bytes are not reported here either, because they are within the span of the record.
    nonzero_trailer_bytes_inside_a_record:
        Log::new().fragment(FIRST, big("a", B - 10)).bytes(b"\xff\0\xff").fragment(LAST, "bbb"),
        records: [(0, [&big("a", B - 10)[..], b"bbb"].concat())], end: clean(B + 10);
}

#[test]
fn one_to_six_header_bytes_at_end_of_file() {
    for len in 1..HEADER_LEN {
        check_torn(len);
    }
}

#[test]
fn payload_cut_at_end_of_file() {
    for len in HEADER_LEN..HEADER_LEN + 3 {
        check_torn(len);
    }
}

/// Asserts which records are read if only `len` bytes of the last record have been written.
#[track_caller]
fn check_torn(len: usize) {
    let reading = Log::new().full("zzz").bytes(&fragment(FULL, b"aaa")[..len]).read();
    reading.records(&[(0, "zzz")]).reports(&[]);
    // Exception: the bytes are reported as a torn tail. LevelDB is silent.
    reading.silent(&[(10, 10 + len as u64, "torn_tail")]).ends(torn(10));
}

// LevelDB has these bugs, and this crate must not have them.

#[test]
fn wire_types_with_a_valid_checksum() {
    for kind in (0..=255).filter(|kind| !(FULL..=LAST).contains(kind)) {
        // Exception: this crate reads "bbb" and reports the right type. LevelDB takes type 5 for
        // the end of the file and silently loses "bbb". It silently skips type 6. From 128 on, it
        // reports a wrong number for the type.
        let reading = Log::new().full("aaa").fragment(kind, "xxx").full("bbb").read();
        reading
            .records(&[(0, "aaa"), (20, "bbb")])
            .reports(&[(3, UNKNOWN_TYPE)])
            .silent(&[]);
        reading.ends(clean(30));
    }
}

#[test]
fn initial_offset_one_byte_into_a_record_of_many_fragments() {
    let log = Log::new().write(big("foo", 100_000)).write("bar");
    // Exception: this crate makes no report. LevelDB makes three false reports of a "missing
    // start": 32,761, 32,761 and 1,717 bytes.
    let reading = log.read_from(1);
    reading
        .records(&[(100_028, "bar")])
        .reports(&[])
        .silent(&[])
        .ends(clean(log.len()));
}
