//! Reading and writing a log in memory, by record length. The time is for one pass over 4 MiB of
//! records.

use std::hint::black_box;

use cordwood::codec::Encoder;
use cordwood::{ReadOptions, Reader};
use cordwood_bench::{SIZES, noise, records};
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

criterion_group!(name = benches; config = cordwood_bench::config(); targets = log);
criterion_main!(benches);
