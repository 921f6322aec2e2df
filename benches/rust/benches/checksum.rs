//! CRC-32C by length, beside the two crates that people use. The data lies as records in a log do: one behind the other, unaligned, in the
//! processor's cache. The time is that of one checksum.

use std::hint::black_box;

use cordwood_bench::{LENS, noise};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

type Checksum = fn(&[u8]) -> u32;

const CONTENDERS: [(&str, Checksum); 3] = [
    ("cordwood", cordwood::crc32c),
    ("crc32c", crc32c::crc32c),
    ("crc-fast", |data| {
        crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, data) as u32
    }),
];

fn checksum(criterion: &mut Criterion) {
    let data = noise(1 << 17);
    let mut group = criterion.benchmark_group("checksum");
    for len in LENS {
        for (name, checksum) in CONTENDERS {
            assert_eq!(
                checksum(&data[1..][..len]),
                cordwood::crc32c(&data[1..][..len]),
                "{name}, {len} bytes"
            );
            group.throughput(Throughput::Bytes(len as u64));
            group.bench_function(BenchmarkId::new(name, len), |bencher| {
                let mut begin = 7;
                bencher.iter(|| {
                    begin = if begin + 2 * (len + 7) < data.len().min(40_000 + len) {
                        begin + len + 7
                    } else {
                        7
                    };
                    black_box(checksum)(&data[begin..begin + len])
                });
            });
        }
    }
    group.finish();
}

criterion_group!(name = benches; config = cordwood_bench::config(); targets = checksum);
criterion_main!(benches);
