//! The parts that the benchmarks share. Run them with `make bench`.

use std::time::Duration;

use criterion::Criterion;

/// The lengths of checksummed data, in bytes. The last is the most that fits into a block.
pub const CHECKSUM_LENS: [usize; 8] = [16, 64, 100, 256, 1024, 4096, 10_240, 32_761];

/// The kind of records in a log.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// As in `benches/python/workload.py`.
    pub name: &'static str,
    /// Each record's length in bytes; `None` for the mix.
    pub len: Option<usize>,
}

/// The sizes of records. The mix is log-normal: most records are short, but most bytes are in long
/// ones.
pub const SIZES: [Size; 6] = [
    Size {
        name: "16",
        len: Some(16),
    },
    Size {
        name: "100",
        len: Some(100),
    },
    Size {
        name: "1024",
        len: Some(1024),
    },
    Size {
        name: "10240",
        len: Some(10_240),
    },
    Size {
        name: "102400",
        len: Some(102_400),
    },
    Size { name: "mix", len: None },
];

/// Long enough for a spread of a few per cent, but no longer: there are many cases.
pub fn config() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

/// Bytes without structure, the same each time (xorshift).
pub fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_u32;
    std::iter::repeat_with(|| (xorshift(&mut x) >> 9) as u8)
        .take(len)
        .collect()
}

/// Lines of a log of requests, about 100 bytes each, the same each time.
pub fn json_lines(count: usize) -> Vec<String> {
    let mut x = 0x9e37_79b9_u32;
    let mut below = |max| xorshift(&mut x) % max;
    let line = |index: usize| {
        let level = ["info", "info", "info", "warning", "error"][below(5) as usize];
        let path = ["items", "orders", "users"][below(3) as usize];
        let (user, id, ms) = (below(5000), below(100_000), below(2000));
        format!(
            r#"{{"time":{},"level":"{level}","user":{user},"path":"/api/v1/{path}/{id}","status":200,"ms":{ms}}}"#,
            1_700_000_000_000 + 7 * index
        )
    };
    (0..count).map(line).collect()
}

/// The data, cut into records of this size.
pub fn records(size: Size, data: &[u8]) -> Vec<&[u8]> {
    let mut x = 0x9e37_79b9_u32;
    let mut rest = data;
    let next = || {
        let len = size.len.unwrap_or_else(|| mixed_len(&mut x));
        let (record, behind) = rest.split_at_checked(len)?;
        rest = behind;
        Some(record)
    };
    std::iter::from_fn(next).collect()
}

/// Log-normal: median 300 bytes, mean about 900, at least 1, at most 1 MiB.
fn mixed_len(x: &mut u32) -> usize {
    // The sum of twelve uniform numbers is close to normal, with a variance of 1.
    let normal = (0..12)
        .map(|_| f64::from(xorshift(x)) / f64::from(u32::MAX))
        .sum::<f64>()
        - 6.0;
    (300.0 * (1.5 * normal).exp()).clamp(1.0, f64::from(1 << 20)) as usize
}

fn xorshift(x: &mut u32) -> u32 {
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    *x
}
