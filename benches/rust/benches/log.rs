//! Reading and writing a log in memory, by record length. The time is for one pass over 4 MiB of
//! records. An index reads a file, by 200,000 numbers at once.

use std::hint::black_box;

use cordwood::codec::Encoder;
use cordwood::read::RecordBatch;
use cordwood::{Compression, Dialect, Error, LogFormat, ReadOptions, Reader, RecordIndex, Writer, WriterOptions};
use cordwood_bench::{SIZES, json_lines, noise, records};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const TOTAL: usize = 4 << 20;

fn encoded(records: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::with_capacity(TOTAL + TOTAL / 2);
    let mut encoder = Encoder::new(0);
    for record in records {
        encoder.encode(record, &mut file);
    }
    file
}

/// Reads all records; returns how many there are, and a sum over them.
fn read(file: &[u8], verify_checksums: bool) -> (usize, usize) {
    let options = ReadOptions::default().with_verify_checksums(verify_checksums);
    let mut reader = Reader::from_slice(file, options);
    let (mut count, mut sum) = (0, 0);
    while let Some(record) = reader.next_record().expect("a valid log") {
        count += 1;
        sum += record.data.len() + usize::from(record.data[0]);
    }
    (count, sum)
}

fn log(criterion: &mut Criterion) {
    let data = noise(TOTAL);
    for size in SIZES {
        let records = records(size, &data);
        let file = encoded(&records);
        let expected = (
            records.len(),
            records.iter().map(|record| record.len() + usize::from(record[0])).sum(),
        );
        assert_eq!(read(&file, true), expected);

        let mut group = criterion.benchmark_group("log");
        group.throughput(Throughput::Elements(records.len() as u64));
        group.bench_function(BenchmarkId::new("encode", size.name), |bencher| {
            bencher.iter(|| black_box(encoded(black_box(&records))));
        });
        group.bench_function(BenchmarkId::new("decode", size.name), |bencher| {
            bencher.iter(|| read(black_box(&file), true));
        });
        group.bench_function(BenchmarkId::new("decode, checksums off", size.name), |bencher| {
            bencher.iter(|| read(black_box(&file), false));
        });
        group.finish();
    }
}

/// The file that a writer makes of the records, all at once.
fn extended(records: &[&[u8]], format: LogFormat) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_format(format))
        .expect("a format that can be written");
    writer.extend(records).expect("a write to memory");
    writer.finish().expect("a write to memory")
}

/// The same, one record after another.
fn appended(records: &[&[u8]], format: LogFormat) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriterOptions::default().with_format(format))
        .expect("a format that can be written");
    for record in records {
        writer.append(record).expect("a write to memory");
    }
    writer.finish().expect("a write to memory")
}

/// Reads all records in batches, whose memory is reused; returns how many there are, and their
/// length.
fn read_batches(file: &[u8], batch: &mut RecordBatch) -> (usize, usize) {
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let (mut count, mut len) = (0, 0);
    while reader.record_batch(batch, 1 << 20).expect("a valid log") {
        (count, len) = (count + batch.len(), len + batch.data().len());
        batch.clear();
    }
    (count, len)
}

/// Packed logs beside plain ones, of the same records: short ones without structure, and lines of
/// JSON.
fn packed(criterion: &mut Criterion) {
    let stored = LogFormat::new(Dialect::PACKED);
    let formats = [
        ("plain", LogFormat::new(Dialect::LEVELDB)),
        ("packed", stored),
        ("packed, zstd", stored.with_compression(Compression::Zstd)),
    ];
    let data = noise(TOTAL);
    let short: Vec<&[u8]> = data.chunks_exact(16).collect();
    let lines = json_lines(TOTAL / 100);
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    for (of, records) in [("16", &short), ("json", &lines)] {
        let len: usize = records.iter().map(|record| record.len()).sum();
        let sum: usize = records.iter().map(|record| usize::from(record[0])).sum();
        let mut group = criterion.benchmark_group(format!("packed, {of}"));
        group.throughput(Throughput::Elements(records.len() as u64));
        for (name, format) in formats {
            let mut batch = RecordBatch::default();
            let file = extended(records, format);
            assert!(appended(records, format) == file, "{name}");
            assert_eq!(read(&file, true), (records.len(), len + sum), "{name}");
            assert_eq!(read_batches(&file, &mut batch), (records.len(), len), "{name}");
            group.bench_function(BenchmarkId::new("extend", name), |bencher| {
                bencher.iter(|| black_box(extended(black_box(records), format)));
            });
            group.bench_function(BenchmarkId::new("append", name), |bencher| {
                bencher.iter(|| black_box(appended(black_box(records), format)));
            });
            group.bench_function(BenchmarkId::new("next_record", name), |bencher| {
                bencher.iter(|| read(black_box(&file), true));
            });
            group.bench_function(BenchmarkId::new("record_batch", name), |bencher| {
                bencher.iter(|| read_batches(black_box(&file), &mut batch));
            });
        }
        group.finish();
    }
}

/// Lines of JSON, each as often as makes this length.
fn long_lines(len: usize) -> Vec<Vec<u8>> {
    let lines = json_lines(200_000);
    let line = |line: &String| line.bytes().cycle().take(len).collect();
    lines.iter().map(line).collect()
}

/// All records of a compressed packed log by their numbers, beside one pass over it, which opens the
/// same containers.
fn index(criterion: &mut Criterion) {
    let format = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd);
    let path = std::env::temp_dir().join(format!("cordwood-bench-{}.log", std::process::id()));
    for len in [50, 150, 1_500] {
        let records = long_lines(len);
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        std::fs::write(&path, extended(&slices, format)).expect("room for a file");
        let index = RecordIndex::open([&path], ReadOptions::default()).expect("a valid log");
        let in_order: Vec<u64> = (0..records.len() as u64).collect();
        // A congruential generator of 18 bits returns each number below 2^18 once.
        let mut number = 0;
        let shuffled: Vec<u64> = std::iter::repeat_with(|| {
            number = (number * 1_664_525 + 1_013_904_223) % (1 << 18);
            number
        })
        .take(1 << 18)
        .filter(|&number| number < in_order.len() as u64)
        .collect();
        let mut group = criterion.benchmark_group(format!("index, {len}"));
        group
            .sample_size(10)
            .throughput(Throughput::Elements(records.len() as u64));
        group.bench_function("one pass", |bencher| {
            bencher.iter(|| {
                let mut reader = Reader::open_with(&path, ReadOptions::default()).expect("a file");
                let mut total = 0;
                while let Some(record) = reader.next_record().expect("a valid log") {
                    total += record.data.len();
                }
                total
            });
        });
        for (name, numbers) in [("in order", &in_order), ("shuffled", &shuffled)] {
            let mut seen = vec![false; numbers.len()];
            let checked = index.read(numbers, |place, record| {
                assert_eq!(record, records[numbers[place] as usize]);
                seen[place] = true;
                Ok::<(), Error>(())
            });
            assert!(checked.is_ok() && seen.iter().all(|seen| *seen));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    let mut total = 0;
                    let read = index.read(black_box(numbers), |_, record| {
                        total += record.len();
                        Ok::<(), Error>(())
                    });
                    read.map(|()| total).expect("a valid log")
                });
            });
        }
        group.finish();
    }
    std::fs::remove_file(&path).expect("a file");
}

criterion_group!(name = benches; config = cordwood_bench::config(); targets = log, packed, index);
criterion_main!(benches);
