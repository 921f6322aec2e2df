//! Tests that packed logs are written byte for byte by the rules for writers in
//! `docs/format/packed.md`, however the records are passed. [`Naive`] is a second implementation of
//! the rules.

use crate::double::Double;
use cordwood_log::codec::Encoder;
use cordwood_log::{
    Compression, Dialect, ErrorKind, FlushPolicy, LogFile, LogFileOptions, LogFormat, ReadOptions, Reader, Writer,
    WriterOptions,
};
use proptest::prelude::*;

const BLOCK: usize = 32_768;
const MARKS: [&[u8]; 2] = [
    b"\x90\x26\x4b\x92\x0a\x00\x48cordwood\x01\x00",
    b"\x47\xca\x52\x8c\x0a\x00\x48cordwood\x01\x01",
];

const ORDINARY: [u8; 4] = [1, 2, 3, 4];
const CONTAINER: [u8; 4] = [0x40, 0x42, 0x44, 0x46];

fn format(is_zstd: bool) -> LogFormat {
    let format = LogFormat::new(Dialect::PACKED);
    if is_zstd {
        format.with_compression(Compression::Zstd)
    } else {
        format
    }
}

fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let covered = [&[kind], payload].concat();
    let masked = crc32c::crc32c(&covered).rotate_right(15).wrapping_add(0xa282_ead8);
    let len = u16::try_from(payload.len()).expect("a payload that a header can state");
    [&masked.to_le_bytes()[..], &len.to_le_bytes(), &covered].concat()
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push((value % 128) as u8 + 128);
        value /= 128;
    }
    bytes.push(value as u8);
    bytes
}

fn zstd(data: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    for parameter in [
        zstd_safe::CParameter::CompressionLevel(1),
        zstd_safe::CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).expect("a parameter that zstd knows");
    }
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(data.len()));
    context.compress2(&mut frame, data).expect("memory");
    frame
}

/// Applies the rules of the page one by one to a list of records.
struct Naive {
    is_zstd: bool,
    file: Vec<u8>,
    open: Vec<Vec<u8>>,
    /// The total length of the records' length fields, and of their data.
    open_len: [usize; 2],
    offsets: Vec<u64>,
}

impl Naive {
    fn new(is_zstd: bool) -> Self {
        Naive {
            is_zstd,
            file: MARKS[usize::from(is_zstd)].to_vec(),
            open: Vec::new(),
            open_len: [0; 2],
            offsets: Vec::new(),
        }
    }

    fn left(&self) -> usize {
        BLOCK - self.file.len() % BLOCK
    }

    /// Returns the offset at which the next fragment starts.
    fn start(&self) -> usize {
        let trailer_len = if self.left() < 7 { self.left() } else { 0 };
        self.file.len() + trailer_len
    }

    fn body(records: &[Vec<u8>]) -> Vec<u8> {
        let lens = records.iter().flat_map(|record| varint(record.len()));
        lens.chain(records.concat()).collect()
    }

    fn container(codec: u8, count: usize, body: &[u8]) -> Vec<u8> {
        [&[codec][..], &varint(count), body].concat()
    }

    /// Appends a payload in fragments of these types, in the order FULL, FIRST, MIDDLE, LAST.
    fn append_cut(&mut self, kinds: [u8; 4], payload: &[u8]) {
        let mut rest = payload;
        let mut is_first = true;
        self.file.resize(self.start(), 0);
        loop {
            let (part, after) = rest.split_at(rest.len().min(self.left() - 7));
            let kind = match (is_first, after.is_empty()) {
                (true, true) => kinds[0],
                (true, false) => kinds[1],
                (false, false) => kinds[2],
                (false, true) => kinds[3],
            };
            self.file.extend(fragment(kind, part));
            if after.is_empty() {
                return;
            }
            (rest, is_first) = (after, false);
        }
    }

    fn close(&mut self) {
        let records = std::mem::take(&mut self.open);
        self.open_len = [0; 2];
        if records.is_empty() {
            return;
        }
        let body = Naive::body(&records);
        let stored = Naive::container(0, records.len(), &body);
        if self.is_zstd {
            let frame = Naive::container(1, records.len(), &zstd(&body));
            let otherwise = if records.len() == 1 {
                records[0].len()
            } else {
                stored.len()
            };
            let (len_before, start) = (self.file.len(), self.start());
            // A frame is not longer than its window, so its header has no byte for the window size.
            let content_len_len = match body.len() {
                0..=255 => 1,
                256..=65_791 => 2,
                _ => 4,
            };
            let header_end = frame.len() - zstd(&body).len() + 5 + content_len_len;
            let mut padded = frame.clone();
            loop {
                self.append_cut(CONTAINER, &padded);
                if self.file.len() - start >= records.len() {
                    break;
                }
                self.file.truncate(len_before);
                padded.splice(header_end..header_end, [0; 3]);
            }
            if padded.len() < otherwise {
                return;
            }
            self.file.truncate(len_before);
        }
        match &records[..] {
            [record] => self.append_cut(ORDINARY, record),
            _ => self.append_cut(CONTAINER, &stored),
        }
    }

    fn append(&mut self, record: &[u8]) {
        let head_len = 7 + 1 + varint(self.open.len() + 1).len();
        let own_len = [varint(record.len()).len(), record.len()];
        let stored_len = head_len + self.open_len.iter().chain(&own_len).sum::<usize>();
        if record.len() >= 4096 || (!self.is_zstd && !self.open.is_empty() && stored_len > BLOCK - self.start() % BLOCK)
        {
            self.close();
        }
        let start = self.start();
        let room = BLOCK - start % BLOCK;
        self.offsets.push((start + self.open.len()) as u64);
        self.open.push(record.to_vec());
        self.open_len[0] += own_len[0];
        self.open_len[1] += own_len[1];
        let data_len = self.open_len[1];
        let is_full = match self.is_zstd {
            true => data_len >= 32_768 || self.open.len() >= room,
            // A record that does not fit is cut like an ordinary record.
            false => data_len >= 4096 || (self.open.len() == 1 && 7 + record.len() > room),
        };
        if is_full || record.len() >= 4096 {
            self.close();
        }
    }
}

/// The calls that a program makes to a log.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>),
    Flush,
}

/// Returns bytes that zstd can shorten if `is_text` is true, and other bytes otherwise.
fn record(len: usize, is_text: bool, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let text = b"{\"step\": 12345, \"loss\": 0.125}";
    (0..len)
        .map(|at| if is_text { text[at % text.len()] } else { next() })
        .collect()
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![
        6 => 0_usize..4,
        6 => 10_usize..200,
        3 => 1_000_usize..4_200,
        1 => Just(4_095_usize),
        1 => Just(4_096_usize),
        2 => 5_000_usize..40_000,
        1 => 60_000_usize..110_000,
        // These lengths leave only a few bytes of a block free.
        2 => 32_700_usize..32_768,
    ];
    prop_oneof![
        30 => (len, any::<bool>(), any::<u64>()).prop_map(|(len, is_text, seed)| Step::Append(record(len, is_text, seed))),
        1 => Just(Step::Flush),
    ]
}

/// Returns many short records, so that containers are closed because of their record count or their
/// data length.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let runs = (0_usize..3, 0_usize..34_000, 0_usize..120, any::<bool>()).prop_map(|(kind, count, len, is_text)| {
        let (count, len) = match kind {
            0 => (count, 0),
            1 => (count / 10, len / 10),
            _ => (count / 100, len),
        };
        (0..count)
            .map(|at| Step::Append(record(len, is_text, at as u64)))
            .collect()
    });
    let piece = prop_oneof![3 => prop::collection::vec(step(), 0..30), 1 => runs];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn naive(steps: &[Step], is_zstd: bool) -> Naive {
    let mut naive = Naive::new(is_zstd);
    for step in steps {
        match step {
            Step::Append(record) => naive.append(record),
            Step::Flush => naive.close(),
        }
    }
    naive.close();
    naive
}

fn encoder(steps: &[Step], is_zstd: bool) -> (Vec<u8>, Vec<u64>) {
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    let mut encoder = Encoder::with_format(0, format(is_zstd)).expect("a format that is written");
    encoder.start(&mut file);
    for step in steps {
        match step {
            Step::Append(record) => {
                let before = encoder.offset();
                let offset = encoder.encode(record, &mut file);
                assert!(before <= offset && offset < encoder.offset());
                offsets.push(offset);
            }
            Step::Flush => {
                encoder.end_container(&mut file);
                assert_eq!(encoder.offset(), file.len() as u64);
            }
        }
    }
    let file_len = encoder.finish(&mut file);
    assert_eq!(file_len, file.len() as u64);
    (file, offsets)
}

fn writer_options(is_zstd: bool) -> WriterOptions {
    WriterOptions::default().with_format(format(is_zstd))
}

fn writer(steps: &[Step], is_zstd: bool) -> (Vec<u8>, Vec<u64>) {
    let mut writer = Writer::with_options(Vec::new(), writer_options(is_zstd)).expect("a format that is written");
    let mut offsets = Vec::new();
    for step in steps {
        match step {
            Step::Append(record) => offsets.push(writer.append(record).expect("a write to memory")),
            Step::Flush => writer.flush().expect("a write to memory"),
        }
    }
    (writer.finish().expect("a write to memory"), offsets)
}

/// Writes all records up to the next flush with a single `extend`. The maximum record length is the
/// length of the longest record.
fn extended(steps: &[Step], is_zstd: bool) -> Vec<u8> {
    let lens = steps.iter().map(|step| match step {
        Step::Append(record) => record.len(),
        Step::Flush => 0,
    });
    let options = writer_options(is_zstd).with_record_len_max(lens.max().unwrap_or_default() as u64);
    let mut writer = Writer::with_options(Vec::new(), options).expect("a format that is written");
    for part in steps.split(|step| matches!(step, Step::Flush)) {
        let records = part.iter().filter_map(|step| match step {
            Step::Append(record) => Some(record),
            Step::Flush => None,
        });
        assert_eq!(writer.extend(records).expect("a write to memory"), part.len() as u64);
        writer.flush().expect("a write to memory");
    }
    writer.finish().expect("a write to memory")
}

fn options(is_zstd: bool) -> LogFileOptions {
    LogFileOptions::default().with_format(format(is_zstd))
}

fn log_file(steps: &[Step], is_zstd: bool) -> (Vec<u8>, Vec<u64>) {
    let double = Double::default();
    let options = options(is_zstd).with_flush(FlushPolicy::OnClose);
    let log = LogFile::create_in(double.boxed(), options).expect("a file that can be written");
    let mut offsets = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Append(record) => {
                let before = log.offset();
                let tried = (at % 2 == 0).then(|| log.try_append(record).expect("no failure"));
                let offset = tried
                    .flatten()
                    .unwrap_or_else(|| log.append(record).expect("no failure"));
                assert!(before <= offset && offset < log.offset());
                offsets.push(offset);
            }
            Step::Flush => log.flush().expect("no failure"),
        }
    }
    log.close().expect("no failure");
    (double.bytes(), offsets)
}

fn leveldb_len(steps: &[Step]) -> u64 {
    let records = steps.iter().filter_map(|step| match step {
        Step::Append(record) => Some(record.len() as u64),
        Step::Flush => None,
    });
    records.fold(0, |offset, len| offset + cordwood_log::format::encoded_len(offset, len))
}

/// The vectors are written by hand, from the page.
#[test]
fn encoder_output_matches_the_vectors_on_the_format_page() {
    let packed = |records: &[&[u8]]| {
        let steps: Vec<_> = records.iter().map(|record| Step::Append(record.to_vec())).collect();
        encoder(&steps, false)
    };
    // These are vectors 1 and 2.
    assert_eq!(packed(&[]).0, MARKS[0]);
    assert_eq!(encoder(&[], true).0, MARKS[1]);
    // This is vector 3.
    let (file, offsets) = packed(&[b"a", b"", b"foo"]);
    assert_eq!(file[17..], *b"\x59\x42\xc1\x06\x09\x00\x40\x00\x03\x01\x00\x03afoo");
    assert_eq!(offsets, [17, 18, 19]);
    // A container with a single record is stored as an ordinary record.
    let (file, offsets) = packed(&[b"foo"]);
    assert_eq!(file[17..], *b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
    assert_eq!(offsets, [17]);
}

/// This is also true for a record that could share the open container.
#[test]
fn extend_writes_the_records_before_an_overlong_record() {
    for (record_len_max, too_long) in [(3, 4), (3, 5000), (4094, 4095), (4095, 4096), (5000, 5001)] {
        let records = [b"one".to_vec(), b"two".to_vec(), record(too_long, false, 0)];
        let options = writer_options(false).with_record_len_max(record_len_max);
        for extends in [false, true] {
            let mut writer = Writer::with_options(Vec::new(), options.clone()).expect("a format that is written");
            let result = if extends {
                writer.extend(&records)
            } else {
                records.iter().try_fold(0, |_, record| writer.append(record))
            };
            let error = result.expect_err("a record that is too long");
            assert!(
                matches!(error.kind, ErrorKind::RecordTooLarge { offset: 19, record_len, .. } if record_len == too_long as u64),
                "{error:?}"
            );
            let steps = records[..2].iter().cloned().map(Step::Append).collect::<Vec<_>>();
            assert_eq!(writer.finish().expect("a write to memory"), naive(&steps, false).file);
        }
    }
}

/// The open container counts uncompressed, after the mark.
#[test]
fn buffered_length_includes_the_open_container() {
    for is_zstd in [false, true] {
        let mut writer = Writer::with_options(Vec::new(), writer_options(is_zstd)).expect("a dialect that is written");
        writer.append(b"one").expect("a vector");
        writer.append(b"three").expect("a vector");
        assert_eq!(writer.buffered_len(), 17 + 3 + 5);
    }
}

/// A counter and a constant compress to less than a byte for each record. Uncompressed, they would
/// take up 20 times as many bytes.
#[test]
fn a_frame_is_lengthened_until_each_record_has_its_own_offset() {
    let records: Vec<_> = (0..5000)
        .map(|step| format!("{{\"step\": {step}, \"loss\": 0.25}}").into_bytes())
        .collect();
    let steps: Vec<_> = records.iter().cloned().map(Step::Append).collect();
    let (file, offsets) = encoder(&steps, true);
    assert!(file.len() < 5_500, "{}", file.len());
    assert_eq!(file, naive(&steps, true).file);
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    for (record, offset) in records.iter().zip(offsets) {
        let found = reader.next_record().expect("no damage").expect("a record");
        assert_eq!((found.data, found.offset), (&record[..], offset));
    }
    assert!(reader.next_record().expect("no damage").is_none());
}

/// With any codec, the offset of each record of a container is in the block in which the container
/// starts.
#[test]
fn the_first_block_limits_how_many_records_a_container_holds() {
    for left in [7, 8, 20, 300] {
        let first = record(BLOCK - 17 - 7 - left, false, 1);
        let mut steps = vec![Step::Append(first)];
        steps.extend((0..1000).map(|at| Step::Append(record(at % 3, true, 1))));
        let (file, offsets) = encoder(&steps, true);
        let start = BLOCK - left;
        let container: Vec<u64> = (start as u64..BLOCK as u64).collect();
        assert_eq!(offsets[1..=left], container);
        assert!(offsets[left + 1] > BLOCK as u64, "{left}");
        assert_eq!(file, naive(&steps, true).file);
    }
}

/// The count takes one byte for up to 127 records.
#[test]
fn a_container_of_127_records_fills_its_block_to_the_last_byte() {
    for left in 7 + 2 + 127 * 11 - 1..=7 + 2 + 127 * 11 + 1 {
        let mut steps = vec![Step::Append(record(BLOCK - 17 - 7 - left, false, 1))];
        steps.extend((0..130).map(|at| Step::Append(record(10, true, at))));
        assert!(encoder(&steps, false).0 == naive(&steps, false).file, "{left}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_sequence_of_calls_writes_the_specified_bytes(steps in steps(), is_zstd: bool) {
        let naive = naive(&steps, is_zstd);
        prop_assert!(encoder(&steps, is_zstd) == (naive.file.clone(), naive.offsets.clone()), "encoder");
        prop_assert!(writer(&steps, is_zstd) == (naive.file.clone(), naive.offsets.clone()), "writer");
        prop_assert!(extended(&steps, is_zstd) == naive.file, "extend");
        prop_assert!(log_file(&steps, is_zstd) == (naive.file, naive.offsets), "log file");
    }

    /// With any records and any flushes, packing adds a mark and at most one more header in each
    /// block.
    #[test]
    fn packing_adds_at_most_one_mark_and_one_header_per_block(
        steps in steps(),
        is_zstd: bool,
    ) {
        let (file, _) = encoder(&steps, is_zstd);
        let blocks = file.len().div_ceil(BLOCK);
        prop_assert!(file.len() as u64 <= leveldb_len(&steps) + 17 + 7 * blocks as u64);
    }
}
