//! Builds containers and frames without the crate under test.

use super::wire::Wire;

/// Encodes a number in LEB128.
pub(crate) fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 128 {
        out.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Returns the body of a container, which consists of the lengths followed by the data.
pub(crate) fn body<R: AsRef<[u8]>>(records: &[R]) -> Vec<u8> {
    let lens = records.iter().flat_map(|record| varint(record.as_ref().len()));
    let data = records.iter().flat_map(|record| record.as_ref().iter().copied());
    lens.chain(data).collect()
}

/// Returns a container. The codec has already turned its body into `stored`.
pub(crate) fn container(codec: u8, count: usize, stored: &[u8]) -> Vec<u8> {
    [&[codec], &varint(count)[..], stored].concat()
}

/// Returns a zstd frame of raw blocks. The frame states the length of its content and has no
/// checksum.
pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    let mut out = b"\x28\xb5\x2f\xfd\xa0".to_vec();
    out.extend(u32::try_from(content.len()).expect("short content").to_le_bytes());
    let mut blocks = content.chunks(1 << 17).peekable();
    if content.is_empty() {
        out.extend([1, 0, 0]);
    }
    while let Some(block) = blocks.next() {
        let header = (block.len() as u32) << 3 | u32::from(blocks.peek().is_none());
        out.extend(&header.to_le_bytes()[..3]);
        out.extend(block);
    }
    out
}

/// Returns the mark at the start of a packed log.
pub(crate) fn mark(version: u8, codec: u8) -> Vec<u8> {
    Wire::Plain.fragment(0x48, &[&b"cordwood"[..], &[version, codec]].concat())
}
