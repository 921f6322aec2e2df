//! Decides whether a file in which no dialect was detected is a log. One that may be a damaged log
//! counts as a log.

use std::io;

use super::by_fragment::{first_fragments, grid_offsets, has_fragment, is_written_kind, of_empty_log, of_fragment};
use super::detection::{DETECT_LEN, PartialDetection};
use super::foreign::{FOOTER_LEN, Foreign, footer, foreign};
use crate::dialect::Dialect;
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, KIND_AT};
use crate::text::is_text;

/// The format of a file that begins with `head`, in which no dialect was detected. A `head` of
/// [`DETECT_LEN`] may be the beginning of a longer file.
///
/// A valid fragment outranks a signature and text. These outrank a header that may be that of a
/// torn record: a gzip file has the time of its data in the place of the length and the type, and
/// a tab or a newline is a type.
pub(super) fn no_log(head: &[u8]) -> PartialDetection {
    let is_whole = head.len() < DETECT_LEN;
    let Some(header) = head.first_chunk::<HEADER_LEN>().map(Header::decode) else {
        return PartialDetection::Unclear;
    };
    if head.iter().all(|&byte| byte == 0) || has_wrong_type(head) || has_fragment(head) {
        return PartialDetection::Unclear;
    }
    if let Some(foreign) = foreign(head) {
        return PartialDetection::Foreign(foreign);
    }
    let is_text = is_text(head, is_whole);
    if !is_text && let Some(detection) = torn_first(header, is_whole.then_some(head.len())) {
        return detection;
    }
    let kind = header.kind;
    let weak = if is_text {
        Some(Foreign::Text)
    } else {
        (kind != 0 && !is_written_kind(kind)).then_some(Foreign::Unknown)
    };
    if is_whole {
        footer(head)
            .or(weak)
            .map_or(PartialDetection::Unclear, PartialDetection::Foreign)
    } else {
        PartialDetection::Longer(weak)
    }
}

/// The format of a file whose first header can be that of an incomplete record: a log in the first
/// dialect in which the file ends in that record. (The header of one in LevelDB's dialect is no
/// evidence.)
///
/// One with a log number may be followed by the rest of an older log.
fn torn_first(header: Header, file_len: Option<usize>) -> Option<PartialDetection> {
    let fragments: Vec<_> = first_fragments(header, BLOCK_LEN).collect();
    let torn = fragments
        .iter()
        .find(|(.., end)| file_len.is_some_and(|len| *end > len));
    match torn {
        Some((dialect, ..)) if *dialect != Dialect::LEVELDB => Some(PartialDetection::Log((*dialect).into())),
        Some(_) => Some(PartialDetection::Unclear),
        None => fragments
            .iter()
            .any(|(_, form, end)| form.has_log_number() || file_len == Some(*end))
            .then_some(PartialDetection::Unclear),
    }
}

/// Whether the first fragment is valid except for one or more wrong bits in its type, or is, except
/// for one bit of its type, the end-of-log trailer of a log without records. A flipped bit
/// elsewhere leaves a known type.
fn has_wrong_type(head: &[u8]) -> bool {
    let mut block = head[..head.len().min(BLOCK_LEN)].to_vec();
    let kind = block[KIND_AT];
    let is_fragment = (0..=u8::MAX).filter(|&kind| is_written_kind(kind)).any(|kind| {
        block[KIND_AT] = kind;
        of_fragment(&block, |dialect| dialect.valid(&block, true)).is_some()
    });
    is_fragment
        || (0..u8::BITS).any(|bit| {
            block[KIND_AT] = kind ^ (1 << bit);
            of_empty_log(&block).is_some()
        })
}

/// The format of a file of `file_len` bytes whose first [`DETECT_LEN`] bytes show no log: a table
/// by its footer, or `weak`, unless a later block begins with a valid fragment. In a log, every
/// block whose beginning is not damaged does. `read_at` reads at an offset of the file; if it reads
/// no byte, the file may be a log.
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
    let header_len_max = Dialect::ALL
        .iter()
        .map(|dialect| dialect.header_len_max())
        .max()
        .unwrap_or(HEADER_LEN);
    for block in (DETECT_LEN as u64..file_len).step_by(BLOCK_LEN) {
        for begin in grid_offsets.iter().map(|grid_offset| block + grid_offset) {
            let mut header = [0; HEADER_LEN];
            if read_at(begin, &mut header)? < HEADER_LEN || !is_written_kind(header[KIND_AT]) {
                continue;
            }
            let len = header_len_max + usize::from(Header::decode(&header).len);
            let bytes = &mut bytes[..len.min(BLOCK_LEN)];
            let len = read_at(begin, bytes)?;
            let bytes = &bytes[..len];
            if of_fragment(bytes, |dialect| dialect.valid(bytes, true)).is_some() {
                return Ok(None);
            }
        }
    }
    Ok(weak)
}
