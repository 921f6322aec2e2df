//! Decides whether a file whose dialect was not detected is a log. A file that could be a damaged
//! log is treated as a log.

use std::io;

use super::by_fragment::{first_fragments, grid_offsets, has_fragment, is_written_kind, of_empty_log, of_fragment};
use super::detection::{DETECT_LEN, PartialDetection};
use super::foreign::{FOOTER_LEN, Foreign, footer, foreign};
use crate::damage::{explanations, place};
use crate::dialect::{Dialect, Form, LogFormat};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, KIND_AT, without_zeros};
use crate::fragment::{is_written, stated_end};
use crate::text::is_text;

/// Returns the format of a file that starts with `head` and whose dialect was not detected. If
/// `head` has [`DETECT_LEN`] bytes, the file may be longer.
///
/// A valid fragment takes precedence over a file signature or text content. A file signature or
/// text content takes precedence over an apparent torn record, because files in other formats can
/// look like one. For example, a gzip file has a timestamp in place of a header's length and type.
/// In a text file, a tab or newline may be in place of the type, and both are valid types.
pub(super) fn no_log(head: &[u8]) -> PartialDetection {
    let is_whole = head.len() < DETECT_LEN;
    let Some(header) = head.first_chunk::<HEADER_LEN>().map(Header::decode) else {
        return PartialDetection::Unclear;
    };
    if has_wrong_type(head) || has_fragment(head) {
        return PartialDetection::Unclear;
    }
    let footer = if is_whole { footer(head) } else { None };
    if let Some(foreign) = foreign(head).or(footer) {
        return PartialDetection::Foreign(foreign);
    }
    let block = &head[..head.len().min(BLOCK_LEN)];
    let weak = if is_text(head, is_whole) {
        Foreign::Text
    } else if let Some(detection) = torn_first(header, head) {
        return detection;
    } else if has_flipped_bit(block)
        || Dialect::BY_RANK
            .iter()
            .any(|&dialect| are_chained(&dialect.into(), block))
    {
        return PartialDetection::Unclear;
    } else {
        Foreign::Unknown
    };
    if is_whole {
        PartialDetection::Foreign(weak)
    } else {
        PartialDetection::Longer(Some(weak))
    }
}

/// Returns the format of a file that ends within its first fragment, according to the fragment's
/// `header`. The first dialect in which the fragment extends past the end of the file determines
/// the format. A header in LevelDB's dialect is not enough to identify a log. The file may also end
/// within the header.
///
/// Zeros at the end may be preallocated space.
fn torn_first(header: Header, head: &[u8]) -> Option<PartialDetection> {
    let written_len = without_zeros(head).len();
    if written_len < HEADER_LEN {
        return Some(PartialDetection::Unclear);
    }
    let is_cut = |len| first_fragments(header, BLOCK_LEN).find(|(.., end)| *end > len);
    let (dialect, ..) = is_cut(head.len()).or_else(|| is_cut(written_len))?;
    Some(if dialect == Dialect::LEVELDB {
        PartialDetection::Unclear
    } else {
        PartialDetection::Log(dialect.into())
    })
}

/// Checks whether each header in the first block leads to the next one, up to the end of the block
/// or the file, whichever comes first. The checksums may be wrong.
fn are_chained(format: &LogFormat, block: &[u8]) -> bool {
    let written_len = without_zeros(block).len();
    let mut end = 0;
    while end < written_len {
        let Some(header) = block[end..].first_chunk().map(Header::decode) else {
            // These bytes are a block's trailer.
            return block.len() == BLOCK_LEN;
        };
        if !is_written(format, header, BLOCK_LEN - end) {
            return false;
        }
        end += stated_end(format, header);
    }
    end <= block.len()
}

/// Checks whether a single flipped bit explains the damage at the start of the block. With this bit
/// flipped back, the block would start with a valid fragment, or with the end-of-log trailer of a
/// log without records.
fn has_flipped_bit(block: &[u8]) -> bool {
    let trailer = &block[..block.len().min(Form::Recyclable.header_len())];
    Dialect::BY_RANK
        .iter()
        .any(|&dialect| !explanations(block, dialect).is_empty())
        || (0..HEADER_LEN as u32 * 8).any(|bit| of_empty_log(&place(0, bit).flipped_in(trailer)).is_some())
}

/// Checks whether the first fragment is valid except for one or more wrong bits in its type.
fn has_wrong_type(head: &[u8]) -> bool {
    let mut block = head[..head.len().min(BLOCK_LEN)].to_vec();
    (0..=u8::MAX).filter(|&kind| is_written_kind(kind)).any(|kind| {
        block[KIND_AT] = kind;
        of_fragment(&block, |dialect| dialect.valid(&block, true)).is_some()
    })
}

/// Returns the format of a file that cannot be recognized as a log by its first [`DETECT_LEN`]
/// bytes. `file_len` is the length of the file. If the file ends with a table's footer, the result
/// is that table's format. Otherwise, the result is `weak`, unless a later block starts with a
/// valid fragment. In a log, every block starts with a valid fragment unless its start is damaged.
///
/// `read_at` reads bytes at an offset in the file. If the last bytes of the file are not available,
/// the file may still be a log.
pub(crate) fn of_rest(
    weak: Option<Foreign>,
    file_len: u64,
    mut read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<Foreign>> {
    let mut end = [0; FOOTER_LEN];
    if read_at(file_len.saturating_sub(FOOTER_LEN as u64), &mut end)? < FOOTER_LEN {
        return Ok(None);
    }
    if let Some(table) = footer(&end) {
        return Ok(Some(table));
    }
    if weak.is_none() {
        return Ok(None);
    }
    let mut bytes = vec![0; BLOCK_LEN];
    let grid_offsets = grid_offsets();
    for block in (DETECT_LEN as u64..file_len).step_by(BLOCK_LEN) {
        for start in grid_offsets.iter().map(|grid_offset| block + grid_offset) {
            let mut header = [0; HEADER_LEN];
            if read_at(start, &mut header)? < HEADER_LEN || !is_written_kind(header[KIND_AT]) {
                continue;
            }
            let len = Form::Synced.header_len() + usize::from(Header::decode(&header).len);
            let bytes = &mut bytes[..len.min(BLOCK_LEN)];
            let len = read_at(start, bytes)?;
            let bytes = &bytes[..len];
            if of_fragment(bytes, |dialect| dialect.valid(bytes, true)).is_some() {
                return Ok(None);
            }
        }
    }
    Ok(weak)
}
