//! Reads containers of packed logs. It follows `docs/format/packed.md` line by line. It shares no
//! code with the crate, except that the same library decompresses the content of a zstd frame.

use cordwood::damage::Reason;

use crate::event::{Event, Refused};
use crate::zstd::FrameHeader;

/// The type of the mark at the start of a packed log.
pub const MARK: u8 = 0x48;

const BLOCK: u64 = crate::BLOCK as u64;
/// The records of a container have different offsets within one block.
const COUNT_MAX: u64 = BLOCK;
const STORED: u8 = 0;
const ZSTD: u8 = 1;

/// The place of a container in the file.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// File offset of the container's first header.
    pub start: u64,
    /// File offset after the container's last payload.
    pub end: u64,
    /// Whether the container's checksums were verified and no damage precedes it in its block.
    pub is_trusted: bool,
}

/// Limits the content length that one frame of a log may state, and the total that all frames may
/// state.
#[derive(Debug)]
pub struct Budget {
    base: u64,
    total: u64,
}

impl Budget {
    /// Returns the budget of a log that is read from its start.
    pub fn new(record_len_max: u64) -> Self {
        let base = if record_len_max > 1 << 30 {
            record_len_max
        } else {
            256 << 20
        };
        Budget { base, total: 0 }
    }
}

/// Returns the maximum length of a container that is joined from its fragments.
pub fn joined_len_max(record_len_max: u64) -> u64 {
    body_len_max(record_len_max, COUNT_MAX)
}

fn body_len_max(record_len_max: u64, count: u64) -> u64 {
    record_len_max.max(1 << 20).saturating_add(5 * count)
}

/// Parses a varint at the start of `bytes`, and returns the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1 + bytes.iter().take(5).position(|byte| *byte < 128)?;
    let (own, rest) = bytes.split_at(len);
    // A varint must have its shortest form, so its last byte is zero only if it is its only byte.
    if len > 1 && own[len - 1] == 0 {
        return None;
    }
    let value = own
        .iter()
        .rev()
        .fold(0, |value, byte| value << 7 | u64::from(byte & 127));
    Some((value, rest))
}

/// Implements the table "Reading a container". Returns the events of a container that has been
/// joined from its fragments.
pub fn open(container: &[u8], place: Place, record_len_max: u64, budget: &mut Budget) -> Result<Vec<Event>, Refused> {
    let Place { start, end, is_trusted } = place;
    let whole = |reason| {
        Ok(vec![Event::Skipped {
            start,
            end,
            reason,
            leveldb_len: None,
        }])
    };
    // Implements rule C2.
    let Some((&codec, rest)) = container.split_first() else {
        return whole(Reason::BadContainer);
    };
    if codec != STORED && codec != ZSTD {
        return match is_trusted {
            true => Err(Refused::Codec(codec.into(), start)),
            false => whole(Reason::UnsupportedCompression),
        };
    }
    // Implements rule C3.
    let block_end = start / BLOCK * BLOCK + BLOCK;
    let Some((count, stored)) = varint(rest)
        .filter(|(count, _)| (1..=COUNT_MAX).contains(count) && start + count <= end && start + count <= block_end)
    else {
        return whole(Reason::BadContainer);
    };
    let content;
    let body = if codec == ZSTD {
        content = match decompress(stored, body_len_max(record_len_max, count), place, budget)? {
            Ok(content) => content,
            Err(reason) => return whole(reason),
        };
        &content
    } else {
        stored
    };
    // Implements rule C8.
    let mut data = body;
    let mut lens = Vec::new();
    for _ in 0..count {
        let Some((len, rest)) = varint(data) else {
            return whole(Reason::BadContainer);
        };
        lens.push(len);
        data = rest;
    }
    if lens.iter().sum::<u64>() != data.len() as u64 {
        return whole(Reason::BadContainer);
    }
    // Implements rule C9.
    let mut events = Vec::new();
    for (offset, len) in (start..).zip(lens) {
        let (record, rest) = data.split_at(len as usize);
        data = rest;
        let end_offset = if offset + 1 == start + count { end } else { offset + 1 };
        events.push(match len > record_len_max {
            true => Event::Skipped {
                start: offset,
                end: end_offset,
                reason: Reason::RecordTooLarge,
                leveldb_len: None,
            },
            false => Event::Record {
                offset,
                end_offset,
                data: record.to_vec(),
                is_salvaged: false,
            },
        });
    }
    Ok(events)
}

/// Implements rules C4 to C7. Returns the content of the frame, or the reason why the frame is
/// damaged, or the error that refuses the log.
fn decompress(
    frame: &[u8],
    len_max: u64,
    place: Place,
    budget: &mut Budget,
) -> Result<Result<Vec<u8>, Reason>, Refused> {
    let Some(header) = FrameHeader::of(frame) else {
        return Ok(Err(Reason::BadCompression));
    };
    // A block of a frame has at least three bytes, and at most 128 KiB of content.
    if header.content_len > (frame.len() as u64 / 3 + 1) << 17 {
        return Ok(Err(Reason::BadCompression));
    }
    if header.content_len > len_max {
        return Ok(Err(Reason::RecordTooLarge));
    }
    let len = header.content_len;
    if len > budget.base || budget.total + len > budget.base.saturating_add(200 * place.end) {
        return Err(Refused::OverBudget(place.start));
    }
    budget.total += len;
    if header.end(frame) != Some(frame.len()) {
        return Ok(Err(Reason::BadCompression));
    }
    let mut content = Vec::with_capacity(header.content_len as usize);
    let len = zstd_safe::decompress(&mut content, frame);
    Ok(match len {
        Ok(len) if len as u64 == header.content_len => Ok(content),
        _ => Err(Reason::BadCompression),
    })
}
