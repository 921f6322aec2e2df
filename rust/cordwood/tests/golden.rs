//! Golden vectors that were computed elsewhere. Every engine of this format writes these bytes for
//! the same records.
//!
//! The example is from LevelDB's `doc/log_format.md`. An independent script generated its bytes,
//! and the engines write the same bytes.

use cordwood_log::codec::Encoder;
use cordwood_log::crc32c::{crc32c, mask, unmask};
use cordwood_log::format::{HEADER_LEN, Header, encoded_len};
use cordwood_log::{ReadOptions, Reader, Writer};
use sha2::{Digest, Sha256};

/// Returns the bytes of `records` as appended to a file of `start` bytes, and the offset of each
/// record.
fn encode(start: u64, records: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
    let mut encoder = Encoder::new(start);
    let mut bytes = Vec::new();
    let offsets = records
        .iter()
        .map(|record| encoder.encode(record, &mut bytes))
        .collect();
    (bytes, offsets)
}

/// Returns the example of the format page: A of 1,000, B of 97,270 and C of 8,000 bytes.
fn example() -> [Vec<u8>; 3] {
    [vec![b'a'; 1_000], vec![b'b'; 97_270], vec![b'c'; 8_000]]
}

#[test]
fn the_format_page_example_has_the_documented_bytes() {
    let [a, b, c] = example();
    let (file, offsets) = encode(0, &[&a, &b, &c]);
    assert_eq!(offsets, [0, 1_007, 98_304]);
    assert_eq!(file.len(), 106_311);
    // Each tuple has an offset, a header and the end of the payload.
    for (start, header, end) in [
        (0, *b"\x34\x47\xde\x97\xe8\x03\x01", 1_007),
        (1_007, *b"\xc4\x36\x75\x71\x0a\x7c\x02", 32_768),
        (32_768, *b"\xf5\xb6\x29\x97\xf9\x7f\x03", 65_536),
        (65_536, *b"\x1c\x51\xd6\x9b\xf3\x7f\x04", 98_298),
        (98_304, *b"\x8f\xaa\x51\xd5\x40\x1f\x01", 106_311),
    ] {
        assert_eq!(file[start..][..HEADER_LEN], header, "the header at {start}");
        let len = usize::from(Header::decode(&header).len);
        assert_eq!(start + HEADER_LEN + len, end, "the end of what starts at {start}");
    }
    assert_eq!(file[98_298..98_304], [0; 6], "the trailer");
    let digest: String = Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        digest,
        "978db1f41c6ccc2bd1a2bee31f9307ea905f09ba066c9e8b2a8cfd2cac0049a9"
    );
}

#[test]
fn reads_the_records_of_the_format_page_example() -> Result<(), Box<dyn std::error::Error>> {
    let [a, b, c] = example();
    let mut writer = Writer::new(Vec::new());
    for record in [&a, &b, &c] {
        writer.append(record)?;
    }
    let file = writer.into_inner()?;
    let mut reader = Reader::from_slice(&file, ReadOptions::default());
    for (offset, end_offset, data) in [(0, 1_007, &a), (1_007, 98_298, &b), (98_304, 106_311, &c)] {
        let record = reader.next_record()?.ok_or("a record")?;
        assert_eq!((record.offset, record.end_offset), (offset, end_offset));
        assert!(record.data == data, "the data of the record at {offset}");
    }
    assert_eq!(reader.next_event()?, None);
    Ok(())
}

#[test]
fn a_three_byte_record_has_the_expected_encoding() {
    assert_eq!(
        encode(0, &[b"foo"]),
        (b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".to_vec(), vec![0])
    );
}

#[test]
fn an_empty_record_has_the_expected_encoding() {
    assert_eq!(encode(0, &[b""]), (b"\x05\x2b\x28\x43\x00\x00\x01".to_vec(), vec![0]));
}

#[test]
fn a_record_starts_with_an_empty_first_fragment_if_seven_bytes_are_left() {
    let (bytes, offsets) = encode(32_761, &[b"bar"]);
    assert_eq!(bytes, b"\x64\x51\xd0\xe9\x00\x00\x02\x05\x9e\x81\x37\x03\x00\x04bar");
    assert_eq!(offsets, [32_761]);
}

#[test]
fn an_empty_record_fits_in_the_last_seven_bytes_of_a_block() {
    let (bytes, offsets) = encode(32_761, &[b"", b"bar"]);
    assert_eq!(bytes, b"\x05\x2b\x28\x43\x00\x00\x01\xba\xea\xec\x44\x03\x00\x01bar");
    assert_eq!(offsets, [32_761, 32_768]);
}

#[test]
fn the_last_six_bytes_of_a_block_become_a_trailer() {
    let (bytes, offsets) = encode(32_762, &[b"bar"]);
    assert_eq!(bytes, b"\0\0\0\0\0\0\xba\xea\xec\x44\x03\x00\x01bar");
    assert_eq!(offsets, [32_768]);
}

/// A record may contain log fragments with their masked checksums, so masking twice must not return
/// the original checksum.
#[test]
fn masking_a_checksum_twice_does_not_undo_the_mask() {
    let crc = crc32c(b"foo");
    assert_eq!(crc, 0xcfc4_ae1d);
    assert_eq!((mask(crc), mask(mask(crc))), (0xfebe_8a61, 0xb746_e855));
    assert_eq!(unmask(unmask(0xb746_e855)), crc);
    assert_eq!((mask(0), unmask(0)), (0xa282_ead8, 0x8a94_2ebe));
}

/// The source is RFC 3720, B.4.
#[test]
fn crc32c_matches_the_examples_of_the_rfc() {
    let up: Vec<u8> = (0..32).collect();
    let down: Vec<u8> = (0..32).rev().collect();
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(&up), 0x46dd_794e);
    assert_eq!(crc32c(&down), 0x113f_db5c);
}

#[test]
fn the_computed_length_matches_what_the_encoder_writes() {
    const BLOCK: u64 = 32_768;
    // Each distance from the edge of a block at which the bytes change is tested, and a few others.
    let near = |edge: u64| (edge.saturating_sub(15)..edge + 9).chain([edge + 1_000]);
    let offsets: Vec<u64> = near(0).chain(near(BLOCK)).chain(near(7 * BLOCK)).collect();
    let lens: Vec<u64> = near(0).chain(near(BLOCK)).chain(near(2 * BLOCK)).collect();
    let longest = vec![b'x'; 3 * BLOCK as usize];
    let mut bytes = Vec::new();
    let mut pairs = 0;
    for &offset in &offsets {
        for &len in &lens {
            let mut encoder = Encoder::new(offset);
            bytes.clear();
            encoder.encode(&longest[..len as usize], &mut bytes);
            assert_eq!(encoded_len(offset, len), bytes.len() as u64, "{len} bytes at {offset}");
            assert_eq!(encoder.offset(), offset + bytes.len() as u64);
            pairs += 1;
        }
    }
    assert!(pairs > 3_000, "{pairs} pairs");
}

#[test]
fn the_computed_length_does_not_overflow_at_any_offset() {
    for offset in [u64::MAX - 7, u64::MAX - 6, u64::MAX] {
        for len in [0, 1, u64::MAX] {
            assert!(encoded_len(offset, len) >= len, "{len} bytes at {offset}");
        }
    }
}
