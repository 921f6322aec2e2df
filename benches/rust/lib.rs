//! What the benchmarks share. Run them with `make bench`.

use std::time::Duration;

use criterion::Criterion;

/// The lengths of records and of checksummed data, in bytes.
pub const LENS: [usize; 6] = [16, 100, 256, 1024, 10_240, 32_761];

/// Enough for a spread of a few per cent, and not more: there are many cases.
pub fn config() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

/// A stretch of bytes without structure, the same each time (xorshift).
pub fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_u32;
    let next = move || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 9) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
