use std::io::Write;

use super::kernel::Kernel;
use super::*;

/// Fixed pseudo-random bytes (xorshift).
fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_u32;
    let next = move || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 9) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The other tests skip kernels whose instructions this processor lacks. This test prints their
/// names.
#[test]
fn kernels_unsupported_by_the_processor_are_printed() {
    let mut tested: Vec<_> = dispatch::Available::all()
        .map(|kernel| kernel.run(dispatch::Name))
        .collect();
    assert_eq!(tested.pop(), Some(portable::Portable::NAME));
    for name in arch::Kernels::NAMES {
        if tested.first() == Some(name) {
            tested.remove(0);
        } else {
            // The output of `eprintln!` isn't shown when a test passes.
            writeln!(
                std::io::stderr(),
                "not tested, for want of a processor: the kernel {name}"
            )
            .unwrap();
        }
    }
    assert_eq!(tested, [""; 0], "kernels that are not listed, or not in this order");
}

#[test]
fn kernels_match_the_oracle_at_every_short_length() {
    let data = noise(1024 + 64);
    for kernel in dispatch::Available::all() {
        let (name, update) = (kernel.run(dispatch::Name), |state, data| {
            kernel.run(dispatch::Update(state, data))
        });
        for len in 0..=1024 {
            let data = &data[len % 64..][..len];
            for state in [0, !0, 0x1234_5678] {
                assert_eq!(update(state, data), naive::update(state, data), "{}, {len} bytes", name);
            }
        }
    }
}

/// A job that calls [`Kernel::append`].
struct Append<'a>(u32, &'a [u8], &'a mut Vec<u8>);

impl Job for Append<'_> {
    type Output = u32;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> u32 {
        let Append(state, data, out) = self;
        kernel.append(state, data, out)
    }
}

#[test]
fn kernels_match_the_oracle_when_appending() {
    let data = noise(34_000 + 64);
    for kernel in dispatch::Available::all() {
        let name = kernel.run(dispatch::Name);
        for len in (0..=1024).chain([1025, 3072, 5000, 32_761, 32_769, 32_840, 33_000, 33_400]) {
            let data = &data[len % 61..][..len];
            // The output has either much more room than needed or no room at all.
            for (room, start) in [(0, &b""[..]), (4096, b"before")] {
                let mut out = Vec::with_capacity(room);
                out.extend_from_slice(start);
                let state = kernel.run(Append(0x1234_5678, data, &mut out));
                assert_eq!(state, naive::update(0x1234_5678, data), "{name}, {len} bytes");
                assert_eq!(out, [start, data].concat(), "{name}, {len} bytes");
            }
        }
    }
}

/// Tests lengths close to that of the longest piece, and close to the thresholds at which a kernel
/// switches methods.
#[test]
fn kernels_match_the_oracle_at_every_alignment() {
    let data = noise(34_000 + 64);
    let short = [
        15, 16, 17, 63, 64, 65, 96, 97, 100, 127, 128, 136, 137, 143, 144, 255, 256, 575, 576,
    ];
    let long = [1023, 1024, 3072, 5000, 32_767, 32_769, 32_800, 33_400];
    // With these lengths, any number of bytes can precede the first aligned group of 64 bytes or
    // follow the last group.
    let aligned = 577..=704;
    for start in 0..64 {
        for len in short.into_iter().chain(aligned.clone()).chain(long) {
            let data = &data[start..][..len];
            let expected = naive::update(!0, data);
            for kernel in dispatch::Available::all() {
                let name = kernel.run(dispatch::Name);
                let found = kernel.run(dispatch::Update(!0, data));
                assert_eq!(found, expected, "{name}, {start} + {len}");
                let mut out = b"before".to_vec();
                let found = kernel.run(Append(!0, data, &mut out));
                assert_eq!(found, expected, "{name}, appended, {start} + {len}");
                assert!(out == [b"before", data].concat(), "{name}, {start} + {len}");
            }
        }
    }
}

#[test]
fn the_portable_kernel_is_always_available() {
    assert_eq!(
        dispatch::Available::all().last().unwrap().run(dispatch::Name),
        "portable"
    );
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        assert_ne!(crc32c_kernel(), "portable");
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    if std::arch::is_aarch64_feature_detected!("crc") && std::arch::is_aarch64_feature_detected!("aes") {
        let names: Vec<_> = dispatch::Available::all()
            .map(|kernel| kernel.run(dispatch::Name))
            .collect();
        assert_eq!(names, ["CRC, PMULL", "CRC", "portable"]);
    }
}

#[test]
fn kernels_match_the_crc32c_crate_on_long_inputs() {
    let data = noise(3 << 20);
    for kernel in dispatch::Available::all() {
        let (name, update) = (kernel.run(dispatch::Name), |state, data| {
            kernel.run(dispatch::Update(state, data))
        });
        for len in [
            6_145,
            32_761,
            32_768,
            32_769,
            33_343,
            33_344,
            33_345,
            33_791,
            33_792,
            33_793,
            65_536,
            1_000_003,
            data.len(),
        ] {
            let data = &data[1..][..len - 1];
            assert_eq!(!update(!0, data), ::crc32c::crc32c(data), "{}, {len} bytes", name);
        }
    }
}

/// Source: RFC 3720 B.4, and LevelDB `util/crc32c_test.cc`, StandardResults.
#[test]
fn matches_the_published_check_values() {
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(&ascending), 0x46dd_794e);
    assert_eq!(crc32c(&descending), 0x113f_db5c);
    assert_eq!(crc32c(b""), 0);
}

/// Source: LevelDB `util/crc32c_test.cc`, Mask.
#[test]
fn unmasking_reverses_masking() {
    let crc = crc32c(b"foo");
    assert_eq!(
        (crc, mask(crc), mask(mask(crc))),
        (0xcfc4_ae1d, 0xfebe_8a61, 0xb746_e855)
    );
    assert_eq!(unmask(unmask(mask(mask(crc)))), crc);
    assert_eq!((mask(0), unmask(0)), (0xa282_ead8, 0x8a94_2ebe));
}

#[test]
fn combined_checksums_match_a_single_pass() {
    let data = noise(70_000);
    for cut in [0, 1, 7, 4096, 69_999, 70_000] {
        let (first, second) = data.split_at(cut);
        assert_eq!(
            combine(crc32c(first), crc32c(second), second.len() as u64),
            crc32c(&data),
            "{cut}"
        );
    }
}

#[test]
fn single_byte_updates_match_the_oracle() {
    for byte in 0..=255 {
        assert_eq!(state_after(byte), naive::update(!0, &[byte]));
    }
}
