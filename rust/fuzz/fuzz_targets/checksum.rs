//! Checks that each CRC-32C kernel follows the definition, at whatever point the data is divided.

#![no_main]

use arbitrary::Arbitrary;
use cordwood::crc32c::{combine, crc32c, extend, kernels, mask, unmask};
use cordwood_fuzz::file::Payload;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// The checksum of the preceding data.
    crc: u32,
    /// The offset at which to divide the data.
    cut: u32,
    /// The distance from the start of an allocation to the data.
    skip: u8,
    payload: Payload<'a>,
}

/// Computes a CRC-32C bit by bit.
fn oracle(crc: u32, data: &[u8]) -> u32 {
    let mut state = !crc;
    for &byte in data {
        state ^= u32::from(byte);
        for _ in 0..8 {
            // The mask is all ones if the lowest bit is set. A branch for each bit would be slow,
            // and would count as coverage.
            state = (state >> 1) ^ (0x82f6_3b78 & (state & 1).wrapping_neg());
        }
    }
    !state
}

fuzz_target!(|input: Input<'_>| {
    let Input {
        crc,
        cut,
        skip,
        payload,
    } = input;
    let bytes = payload.bytes(0);
    let data = &bytes[usize::from(skip % 64).min(bytes.len())..];
    let (first, second) = data.split_at(cut as usize % (data.len() + 1));

    let of_first = oracle(crc, first);
    let of_both = oracle(of_first, second);
    for (name, extend) in kernels() {
        assert_eq!(extend(crc, first), of_first, "{name}, {} bytes", first.len());
        assert_eq!(
            extend(of_first, second),
            of_both,
            "{name}, the last {} bytes",
            second.len()
        );
        assert_eq!(extend(crc, data), of_both, "{name}, {} bytes", data.len());
    }
    assert_eq!(extend(crc, data), of_both);
    assert_eq!(combine(crc, crc32c(data), data.len() as u64), of_both);
    assert_eq!(combine(of_first, crc32c(second), second.len() as u64), of_both);
    assert_eq!(mask(of_both), of_both.rotate_right(15).wrapping_add(0xa282_ead8));
    assert_eq!(unmask(mask(crc)), crc);
});
