//! Fragments with a log number, of types 5 to 8, and an encoder that is independent of the crate:
//! `docs/format/numbered.md`.

use crate::model::{fragment as plain, left_in_block};

/// Bytes in a header.
pub(crate) const HEADER: usize = 11;
/// The number of the log.
pub(crate) const NUMBER: u32 = 0x9655_330f;
/// The number of an older log in the same file. One flipped bit makes no byte of the two numbers
/// another one.
pub(crate) const OTHER: u32 = 0x9655_3369;
/// That of the log.
pub(crate) const END_TRAILER: [u8; 11] = [0, 0, 0, 0, 0, 0, 5, 0x10, 0x33, 0x55, 0x96];
/// A fragment with a valid checksum.
pub(crate) fn fragment(kind: u8, number: u32, payload: &[u8]) -> Vec<u8> {
    let covered = [&number.to_le_bytes()[..], payload].concat();
    let mut bytes = plain(kind, &covered);
    bytes[4..6].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    bytes
}
/// The number of zero bytes before a header that is written at `offset`.
pub(crate) fn trailer(offset: u64) -> usize {
    let left = left_in_block(offset);
    if left < HEADER { left } else { 0 }
}
/// The bytes that writing `record` adds to a file of `file_len` bytes, and the offset of its first
/// header.
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
