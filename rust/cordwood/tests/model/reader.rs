//! A reader of logs that shares no code with the crate. It is the oracle for the contents of a
//! file.
//!
//! The rules are the same as in LevelDB's `log_reader.cc`: damage costs the rest of its block. A
//! log with log numbers (RocksDB's recycled logs, Pebble) ends at bytes that are not one of its
//! fragments. A run file of Weights & Biases is recognised by its first bytes. The log number is
//! taken from the first complete fragment. The records of a container in a packed log are returned
//! with the place of the whole container.

const BLOCK_LEN: usize = 32_768;
/// The FULL, FIRST, MIDDLE and LAST types of a container. The mark of a packed log has another
/// type, and is not part of a record.
const CONTAINER_KINDS: [u8; 4] = [0x40, 0x42, 0x44, 0x46];
pub(crate) const WANDB_HEADER: &[u8] = b":W&B\xe1\xbe\x00";

const CRC_32C: [u32; 256] = table(0x82f6_3b78);
const CRC_32: [u32; 256] = table(0xedb8_8320);

/// Computes the remainder of each byte, bit by bit.
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = if rest & 1 == 1 {
                rest >> 1 ^ polynomial
            } else {
                rest >> 1
            };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

fn crc(table: &[u32; 256], bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc, &byte| crc >> 8 ^ table[(crc as u8 ^ byte) as usize])
}

/// Returns the checksum that the header of a fragment contains.
fn checksum(is_wandb: bool, type_and_rest: &[u8]) -> u32 {
    match is_wandb {
        true => crc(&CRC_32, type_and_rest),
        false => crc(&CRC_32C, type_and_rest).rotate_right(15).wrapping_add(0xa282_ead8),
    }
}

/// Returns a fragment with a FULL record. It has a log number if one is passed.
pub(crate) fn full(is_wandb: bool, number: Option<u32>, payload: &[u8]) -> Vec<u8> {
    let mut rest = vec![if number.is_some() { 5 } else { 1 }];
    rest.extend(number.iter().flat_map(|number| number.to_le_bytes()));
    rest.extend_from_slice(payload);
    let mut bytes = checksum(is_wandb, &rest).to_le_bytes().to_vec();
    bytes.extend((payload.len() as u16).to_le_bytes());
    bytes.append(&mut rest);
    bytes
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) payload: Vec<u8>,
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file ends with a whole record, or has no record.
    Whole,
    /// The file ends with a part of a record or with zeros, without damage before them.
    Torn,
    /// The file is damaged, or is not a LevelDB log.
    Other,
}

/// Parses the fragment at the start of `block`. Returns its length, its type (1 to 4), its log
/// number and its payload.
fn fragment(is_wandb: bool, block: &[u8]) -> Option<(usize, u8, Option<u32>, &[u8])> {
    let header = block.get(..7)?;
    let header_len = if (5..=8).contains(&header[6]) { 11 } else { 7 };
    let end = header_len + usize::from(u16::from_le_bytes([header[4], header[5]]));
    let rest = block.get(6..end)?;
    let stored = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let number = (header_len == 11).then(|| u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]));
    let kind = if number.is_some() { rest[0] - 4 } else { rest[0] };
    (stored == checksum(is_wandb, rest)).then_some((end, kind, number, &block[header_len..end]))
}

/// Parses a varint, and returns the bytes after it.
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&byte, rest) = bytes.split_first()?;
    if byte < 0x80 {
        return Some((usize::from(byte), rest));
    }
    let (more, rest) = varint(rest)?;
    Some((usize::from(byte & 0x7f) | more << 7, rest))
}

/// Returns the records of a container that has been joined from its fragments.
fn records_of(container: &Found) -> Option<Vec<Found>> {
    let (&codec, rest) = container.payload.split_first()?;
    let (count, stored) = varint(rest)?;
    let body = match codec {
        0 => stored.to_vec(),
        _ => {
            let len = zstd_safe::get_frame_content_size(stored).ok()??;
            let mut body = Vec::with_capacity(len as usize);
            zstd_safe::decompress(&mut body, stored).ok()?;
            body
        }
    };
    let (mut lens, mut data) = (Vec::new(), &body[..]);
    for _ in 0..count {
        let len;
        (len, data) = varint(data)?;
        lens.push(len);
    }
    let records = lens.into_iter().map(|len| {
        let payload;
        (payload, data) = data.split_at_checked(len)?;
        Some(Found {
            payload: payload.to_vec(),
            ..*container
        })
    });
    records.collect()
}

/// Returns all records of a file.
pub(crate) fn read(file: &[u8]) -> (Vec<Found>, Tail) {
    let is_wandb = file.starts_with(WANDB_HEADER);
    let blocks = || (0..file.len()).step_by(BLOCK_LEN);
    let number = blocks()
        .find_map(|start| fragment(is_wandb, &file[start..]))
        .and_then(|first| first.2);
    if number.is_none() && file.starts_with(b"\0\0\0\0\0\0\x05") {
        // This is Pebble's end trailer, which means that the log was closed without a record.
        return (Vec::new(), Tail::Other);
    }
    let (mut records, mut pending, mut tail) = (Vec::new(), None::<Found>, Tail::Whole);
    for block_start in blocks() {
        let block = &file[block_start..file.len().min(block_start + BLOCK_LEN)];
        let mut at = if is_wandb && block_start == 0 {
            WANDB_HEADER.len()
        } else {
            0
        };
        while at < block.len() {
            let rest = &block[at..];
            let start = block_start + at;
            let Some((len, kind, own_number, payload)) = fragment(is_wandb, rest) else {
                let is_trailer = block_start + BLOCK_LEN - start < 7 && rest.iter().all(|&byte| byte == 0);
                let stated_end = rest
                    .get(4..6)
                    .map(|len| 7 + usize::from(u16::from_le_bytes([len[0], len[1]])));
                let is_cut = stated_end.is_none_or(|end| end > rest.len() && at + end <= BLOCK_LEN);
                let is_zero = file[start..].iter().all(|&byte| byte == 0);
                if number.is_some() {
                    return (records, Tail::Other);
                }
                if !is_trailer {
                    pending = None;
                    tail = if tail != Tail::Other && (is_cut || is_zero) {
                        Tail::Torn
                    } else {
                        Tail::Other
                    };
                }
                break;
            };
            if own_number != number && number.is_some() {
                return (records, Tail::Other);
            }
            tail = if tail == Tail::Whole { tail } else { Tail::Other };
            at += len;
            let place = CONTAINER_KINDS.iter().position(|own| *own == kind);
            let kind = place.map_or(kind, |place| place as u8 + 1);
            pending = match (kind, pending) {
                (1 | 2, _) => Some(Found {
                    start,
                    end: 0,
                    payload: payload.to_vec(),
                }),
                (3 | 4, Some(mut found)) => {
                    found.payload.extend_from_slice(payload);
                    Some(found)
                }
                _ => None,
            };
            if let (1 | 4, Some(mut found)) = (kind, pending.take_if(|_| matches!(kind, 1 | 4))) {
                found.end = block_start + at;
                match place {
                    None => records.push(found),
                    Some(_) => match records_of(&found) {
                        Some(found) => records.extend(found),
                        None => tail = Tail::Other,
                    },
                }
            }
        }
    }
    if pending.is_some() && tail == Tail::Whole {
        tail = Tail::Torn;
    }
    let is_plain = number.is_none() && !is_wandb;
    (records, if is_plain { tail } else { Tail::Other })
}
