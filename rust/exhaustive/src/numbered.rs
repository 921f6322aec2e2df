//! Builds fragments with a log number, of types 5 to 8. The encoder follows
//! `docs/format/numbered.md` and is independent of the crate.

use crate::model::{fragment as plain, left_in_block};

/// The length of a header in bytes.
pub(crate) const HEADER: usize = 11;
/// The number of the log.
pub(crate) const NUMBER: u32 = 0x9655_330f;
/// The number of an older log in the same file. No byte of either number becomes a byte of the
/// other number by one flipped bit.
pub(crate) const OTHER: u32 = 0x9655_3369;
/// The end trailer of the log.
pub(crate) const END_TRAILER: [u8; 11] = [0, 0, 0, 0, 0, 0, 5, 0x10, 0x33, 0x55, 0x96];
/// Returns a fragment with a valid checksum.
pub(crate) fn fragment(kind: u8, number: u32, payload: &[u8]) -> Vec<u8> {
    let covered = [&number.to_le_bytes()[..], payload].concat();
    let mut bytes = plain(kind, &covered);
    bytes[4..6].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    bytes
}
/// Returns the number of zero bytes that precede a header written at `offset`.
pub(crate) fn trailer(offset: u64) -> usize {
    let left = left_in_block(offset);
    if left < HEADER { left } else { 0 }
}
/// Returns the bytes that writing `record` adds to a file of `file_len` bytes, and the offset of
/// the record's first header.
pub(crate) fn encode(file_len: u64, number: u32, record: &[u8]) -> (Vec<u8>, u64) {
    let mut bytes = vec![0; trailer(file_len)];
    let record_offset = file_len + bytes.len() as u64;
    let mut rest = record;
    let mut is_first = true;
    loop {
        let room = left_in_block(file_len + bytes.len() as u64) - HEADER;
        let (part, after) = rest.split_at(rest.len().min(room));
        let kind = match (is_first, after.is_empty()) {
            (true, true) => 5,
            (true, false) => 6,
            (false, false) => 7,
            (false, true) => 8,
        };
        bytes.extend(fragment(kind, number, part));
        if after.is_empty() {
            return (bytes, record_offset);
        }
        rest = after;
        is_first = false;
    }
}
