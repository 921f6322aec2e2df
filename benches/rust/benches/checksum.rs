//! CRC-32C by length. The data lies as records in a log do: consecutive, unaligned, in the
//! processor's cache. The time is for one checksum. `benches/compare` compares it with other
//! crates.

use std::hint::black_box;

use cordwood_bench::{CHECKSUM_LENS, noise};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn checksum(criterion: &mut Criterion) {
    let data = noise(1 << 17);
    let mut group = criterion.benchmark_group("checksum");
    for len in CHECKSUM_LENS {
        assert_eq!(
            cordwood::crc32c::crc32c(&data[7..][..len]),
            crc32c::crc32c(&data[7..][..len]),
            "{len} bytes"
        );
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(BenchmarkId::new("cordwood", len), |bencher| {
            let mut start = 7;
            bencher.iter(|| {
                start = if start + 2 * (len + 7) < data.len().min(40_000 + len) {
                    start + len + 7
                } else {
                    7
                };
                black_box(cordwood::crc32c::crc32c)(&data[start..start + len])
            });
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = cordwood_bench::config(); targets = checksum);
criterion_main!(benches);
