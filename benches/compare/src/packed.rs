//! Packed logs beside plain ones, Riegeli's files and one stream of zstd, in memory: what short
//! records and lines of JSON take in the file, and the time to write and to read them.

use std::hint::black_box;
use std::io::Cursor;

use cordwood::read::RecordBatch;
use cordwood::{Compression, Dialect, LogFormat, ReadOptions, Reader, Writer, WriterOptions};
use cordwood_bench::{json_lines, noise};
use riegeli::{CompressionType, ReaderOptions, RecordReader, RecordWriter, WriterOptions as RiegeliOptions};

use crate::turns::{Contender, take_turns};

const TOTAL_LEN: usize = 4 << 20;

/// The level of zstd that packed logs use, and so the one of the stream.
const ZSTD_LEVEL: i32 = 1;

/// The number of records, and the sum of their lengths and first bytes.
type Sum = (usize, usize);

fn add(sum: &mut Sum, record: &[u8]) {
    sum.0 += 1;
    sum.1 += record.len() + usize::from(record[0]);
}

/// A way to write records into memory, and to read them.
struct Way {
    name: &'static str,
    write: Box<dyn Fn(&[&[u8]], &mut Vec<u8>)>,
    read: Box<dyn Fn(&[u8]) -> Sum>,
}

impl Way {
    fn new(
        name: &'static str,
        write: impl Fn(&[&[u8]], &mut Vec<u8>) + 'static,
        read: impl Fn(&[u8]) -> Sum + 'static,
    ) -> Way {
        Way {
            name,
            write: Box::new(write),
            read: Box::new(read),
        }
    }
}

fn ways() -> [Way; 7] {
    let packed = LogFormat::new(Dialect::PACKED);
    let append = |format| move |records: &[&[u8]], file: &mut Vec<u8>| append(format, records, file);
    [
        Way::new("cordwood", append(LogFormat::new(Dialect::LEVELDB)), read),
        Way::new("cordwood packed", append(packed), read),
        Way::new(
            "cordwood packed, batches, extend",
            move |records, file| extend(packed, records, file),
            read_batches,
        ),
        Way::new(
            "cordwood packed, zstd",
            append(packed.with_compression(Compression::Zstd)),
            read,
        ),
        Way::new(
            "riegeli",
            |records, file| write_riegeli(CompressionType::None, records, file),
            read_riegeli,
        ),
        Way::new(
            "riegeli, zstd",
            |records, file| write_riegeli(CompressionType::Zstd, records, file),
            read_riegeli,
        ),
        Way::new("one zstd stream", write_stream, read_stream),
    ]
}

pub(crate) fn compare() {
    let data = noise(TOTAL_LEN);
    let lines = json_lines(TOTAL_LEN / 100);
    let short: Vec<&[u8]> = data.chunks_exact(16).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    for (size, records) in [("16", &short), ("json", &lines)] {
        let mut expected = (0, 0);
        records.iter().for_each(|record| add(&mut expected, record));
        let data_len: usize = records.iter().map(|record| record.len()).sum();
        let ways = ways();
        let mut files = Vec::new();
        for way in &ways {
            let mut file = Vec::new();
            (way.write)(records, &mut file);
            assert_eq!((way.read)(&file), expected, "{}", way.name);
            println!(
                "file_share\t{size}\t{}\t{:.4}",
                way.name,
                file.len() as f64 / data_len as f64
            );
            files.push(file);
        }
        let mut readers: Vec<Contender<'_>> = ways
            .iter()
            .zip(&files)
            .map(|(way, file)| Contender::new(way.name, || assert_eq!((way.read)(black_box(file)), expected)))
            .collect();
        take_turns("packed, read", size, records.len(), &mut readers);
        drop(readers);
        // The files stay allocated: fresh memory costs more than some of the writers.
        let mut writers: Vec<Contender<'_>> = ways
            .iter()
            .zip(&mut files)
            .map(|(way, file)| {
                Contender::new(way.name, || {
                    file.clear();
                    (way.write)(black_box(records), file);
                })
            })
            .collect();
        take_turns("packed, write", size, records.len(), &mut writers);
    }
}

fn writer(format: LogFormat, file: &mut Vec<u8>) -> Writer<&mut Vec<u8>> {
    Writer::with_options(file, WriterOptions::default().with_format(format)).expect("a format that can be written")
}

fn append(format: LogFormat, records: &[&[u8]], file: &mut Vec<u8>) {
    let mut writer = writer(format, file);
    for record in records {
        writer.append(record).expect("memory takes it");
    }
    writer.finish().expect("memory takes it");
}

fn extend(format: LogFormat, records: &[&[u8]], file: &mut Vec<u8>) {
    let mut writer = writer(format, file);
    writer.extend(records).expect("memory takes it");
    writer.finish().expect("memory takes it");
}

fn read(file: &[u8]) -> Sum {
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let mut sum = (0, 0);
    while let Some(record) = reader.next_record().expect("a valid log") {
        add(&mut sum, record.data);
    }
    sum
}

fn read_batches(file: &[u8]) -> Sum {
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let mut batch = RecordBatch::default();
    let mut sum = (0, 0);
    while reader.record_batch(&mut batch, 1 << 20).expect("a valid log") {
        batch.iter().for_each(|record| add(&mut sum, record));
        batch.clear();
    }
    sum
}

fn write_riegeli(compression: CompressionType, records: &[&[u8]], file: &mut Vec<u8>) {
    let options = RiegeliOptions::new().compression(compression);
    let mut writer = RecordWriter::new(file, options).expect("memory takes it");
    for record in records {
        writer.write_record(record).expect("memory takes it");
    }
    writer.close().expect("memory takes it");
}

fn read_riegeli(file: &[u8]) -> Sum {
    let mut reader = RecordReader::new(Cursor::new(file), ReaderOptions::new()).expect("a valid file");
    let mut sum = (0, 0);
    while let Some(record) = reader.read_record().expect("a valid file") {
        add(&mut sum, &record);
    }
    sum
}

/// Each record after its length, in four bytes, and all of it compressed as one frame.
fn write_stream(records: &[&[u8]], file: &mut Vec<u8>) {
    let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL).expect("a known level");
    for record in records {
        std::io::Write::write_all(&mut encoder, &(record.len() as u32).to_le_bytes()).expect("memory takes it");
        std::io::Write::write_all(&mut encoder, record).expect("memory takes it");
    }
    encoder.finish().expect("memory takes it");
}

fn read_stream(file: &[u8]) -> Sum {
    let bytes = zstd::decode_all(file).expect("a valid stream");
    let mut rest = bytes.as_slice();
    let mut sum = (0, 0);
    while let Some((len, after)) = rest.split_first_chunk() {
        let (record, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        add(&mut sum, record);
        rest = after;
    }
    sum
}
