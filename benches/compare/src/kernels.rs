//! Each CRC-32C kernel compared with the others and with other crates, by length, alignment and
//! cache. The kernels' thresholds come from here.
//!
//! Each time is the minimum of many short turns, so that other load on the machine matters little.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cordwood_bench::noise;

/// Turns per contender; longer turns meet more interruptions.
const ROUNDS: usize = 25;
const TURN: Duration = Duration::from_micros(60);

/// Where the data lies, by the bytes that a pass goes through.
const CACHES: [(&str, usize); 2] = [("L1", 24 << 10), ("L2", 384 << 10)];

/// Where data starts, counted from a multiple of 64.
const ALIGNMENTS: [usize; 4] = [0, 1, 7, 40];

/// The most that another may be ahead, as a fraction of the time: the spread of identical code.
const TOLERANCE: f64 = 0.03;

/// The lengths in bytes at which a kernel takes a different path, and some in between.
fn lens() -> Vec<usize> {
    let short = (0..160).step_by(3).chain([8, 16, 17, 32, 64, 127, 128, 143, 144]);
    let long = [
        200, 255, 256, 320, 384, 448, 512, 575, 576, 640, 768, 1023, 1024, 1280, 1536, 2048, 2560, 3072, 4096,
    ];
    let mut lens: Vec<usize> = short
        .chain(long)
        .chain([6144, 8192, 10_240, 16_384, 32_761, 65_536])
        .collect();
    lens.sort_unstable();
    lens.dedup();
    lens
}

type Checksum = Box<dyn Fn(&[u8]) -> u32>;

struct Contender {
    name: &'static str,
    checksum: Checksum,
}

/// First the function that a user calls, then its kernels, then the other crates.
fn contenders() -> Vec<Contender> {
    let new = |name, checksum: Checksum| Contender { name, checksum };
    let mut contenders = vec![new("cordwood", Box::new(cordwood::crc32c::crc32c))];
    for (name, extend) in cordwood::crc32c::kernels() {
        contenders.push(new(name, Box::new(move |data| extend(0, data))));
    }
    contenders.push(new("crc32c", Box::new(crc32c::crc32c)));
    contenders.push(new(
        "crc-fast",
        Box::new(|data| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, data) as u32),
    ));
    contenders
}

/// Prints the nanoseconds of one checksum, a line for each length, alignment and cache.
pub(crate) fn compare() {
    let contenders = contenders();
    print!("cache\talignment\tlength");
    contenders.iter().for_each(|contender| print!("\t{}", contender.name));
    println!();
    for_each_cell(&lens(), &contenders, |cell, times| {
        print!("{cell}");
        times.iter().for_each(|time| print!("\t{time:.2}"));
        println!();
    });
}

/// Prints the cells in which another crate is ahead: for each length up to 256 bytes, and for 64
/// lengths up to 64 KiB.
pub(crate) fn check() {
    let contenders: Vec<Contender> = contenders()
        .into_iter()
        .filter(|contender| ["cordwood", "crc32c", "crc-fast"].contains(&contender.name))
        .collect();
    let mut lens: Vec<usize> = (0..=256).collect();
    lens.extend((1..=64).map(|step| (256.0 * 256_f64.powf(f64::from(step) / 64.0)) as usize));
    let (mut count, mut behind_count) = (0, 0);
    for_each_cell(&lens, &contenders, |cell, times| {
        count += 1;
        let best = times[1..].iter().copied().fold(f64::INFINITY, f64::min);
        if times[0] > best * (1.0 + TOLERANCE) {
            behind_count += 1;
            println!("{cell}\t{times:.2?}");
        }
    });
    println!("in {behind_count} of {count} cells another crate is ahead by more than {TOLERANCE}");
}

fn for_each_cell(lens: &[usize], contenders: &[Contender], mut found: impl FnMut(&str, &[f64])) {
    for (cache, window) in CACHES {
        for alignment in ALIGNMENTS {
            for &len in lens {
                // Consecutive, except for bytes that keep the alignment.
                let stride = (len + 7).next_multiple_of(64);
                let count = (window / stride).max(1);
                let data = noise(count * stride + 128 + alignment + len);
                let start = data.as_ptr().align_offset(64) + alignment;
                let pieces: Vec<&[u8]> = (0..count).map(|i| &data[start + i * stride..][..len]).collect();
                for Contender { name, checksum } in contenders {
                    let agrees = pieces.iter().all(|piece| checksum(piece) == crc32c::crc32c(piece));
                    assert!(agrees, "{name}, {len} bytes");
                }
                found(
                    &format!("{cache}\t{alignment}\t{len}"),
                    &least_times(&pieces, contenders),
                );
            }
        }
    }
}

/// Nanoseconds for one checksum, for each contender; they take turns.
fn least_times(pieces: &[&[u8]], contenders: &[Contender]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; contenders.len()];
    let mut passes = vec![1; contenders.len()];
    // The first round determines how many passes a turn has.
    for round in 0..=ROUNDS {
        for (index, contender) in contenders.iter().enumerate() {
            let start = Instant::now();
            for _ in 0..passes[index] {
                for piece in pieces {
                    black_box((contender.checksum)(black_box(piece)));
                }
            }
            let time = start.elapsed();
            if round == 0 {
                passes[index] = (TURN.as_nanos() / time.as_nanos().max(1)).max(1) as usize;
            } else {
                let ns = time.as_secs_f64() * 1e9 / (passes[index] * pieces.len()) as f64;
                least[index] = least[index].min(ns);
            }
        }
    }
    least
}
