//! Determines which dialect a fragment belongs to, and finds fragments after damage.

use std::collections::BTreeSet;

use super::by_file_header::{damaged_bits, nearest_file_header, of_file_header};
use crate::container::{Codec, Mark};
use crate::damage::Scanner;
use crate::dialect::{Compression, Dialect, Form, LogFormat, Metadata, NO_COMPRESSION, Role, Unsupported, Valid, ZSTD};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, KIND_AT, Kind, without_zeros};
use crate::fragment::is_written;

/// Determines the format of a log from the valid fragment at the start of `block`. `find` returns
/// the fragment if it is valid in a given dialect. For a recyclable fragment, the dialect is
/// [`Dialect::RECYCLABLE`].
///
/// If a type byte has different meanings in two dialects, the checksum covers different bytes in
/// each dialect.
pub(super) fn of_fragment(block: &[u8], find: impl Fn(Dialect) -> Option<Valid>) -> Option<LogFormat> {
    for &dialect in Dialect::BY_RANK {
        let Some(valid) = find(dialect) else {
            continue;
        };
        let format = LogFormat::new(dialect).numbered(Dialect::log_number_at(block, valid.form));
        let payload = valid.payload(block);
        let compression = match valid.role {
            Role::Fragment(Kind::Full | Kind::First) if valid.form == Form::Packed => {
                let codec = payload.first().copied().and_then(Codec::from_byte);
                codec.and_then(Codec::compression)
            }
            Role::Metadata(Metadata::Mark) => Mark::decode(payload).and_then(Mark::compression),
            // Only a valid payload distinguishes this fragment from one of the same type in another
            // dialect.
            Role::Metadata(Metadata::SetCompression) => (payload == ZSTD).then_some(Compression::Zstd),
            Role::Fragment(_) | Role::Metadata(_) => None,
            Role::Ignorable | Role::Unknown => continue,
        };
        return Some(LogFormat { compression, ..format });
    }
    None
}

/// Checks that this release can read a log in this format. `head` contains the log's first bytes,
/// which are at the offset `origin`. The first fragment of a packed or compressed log names the
/// codec, and a release that doesn't know this codec can't read any range of the log.
pub(crate) fn check_start(format: LogFormat, head: &[u8], origin: u64) -> Result<(), (Dialect, Unsupported)> {
    let dialect = format.dialect;
    let Some(valid) = dialect.valid(head, true) else {
        return Ok(());
    };
    let payload = valid.payload(head);
    let unsupported = match valid.role {
        Role::Metadata(Metadata::Mark) => Mark::decode(payload).and_then(|mark| mark.unsupported(origin)),
        // A compression given by the caller takes precedence over the one the log declares.
        Role::Metadata(Metadata::SetCompression) if !format.is_zstd() && payload != NO_COMPRESSION => {
            let codec = payload.try_into().map(u32::from_le_bytes);
            codec.ok().map(|codec| Unsupported::Codec { codec, offset: origin })
        }
        _ => None,
    };
    unsupported.map_or(Ok(()), |unsupported| Err((dialect, unsupported)))
}

/// Returns the format of a packed log with a damaged mark, if `head` starts with a mark that has at
/// most eight wrong bits.
pub(super) fn of_damaged_mark(head: &[u8]) -> Option<LogFormat> {
    let near = |codec| Some((damaged_bits(head, &Mark::new(codec).fragment())?, codec));
    let all_near = [Codec::Stored, Codec::Zstd].into_iter().filter_map(near);
    let (_, codec) = all_near.min_by_key(|(count, _)| *count)?;
    Some(LogFormat {
        compression: codec.compression(),
        ..Dialect::PACKED.into()
    })
}

/// Returns the format of a log whose first block starts with damage, and the position where the
/// damage ends. The damage ends where a series of two or more consecutive valid fragments starts.
/// The first series with log numbers is used, unless the first series without log numbers is
/// earlier and longer. If no series has log numbers, the first series is used. All other fragments
/// are probably part of a payload.
pub(super) fn after_damage(block: &[u8]) -> Option<(usize, LogFormat)> {
    let scanner = Scanner::new(block);
    let end_of = |dialect: Dialect, start| scanner.valid(dialect, start).map(|valid| start + valid.end);
    let mut plain = None;
    let mut start = 1;
    while start < block.len() {
        let rest = &block[start..];
        // Most bytes are not valid types, so no checksum is computed for them.
        let may_be = rest.get(KIND_AT).copied().is_some_and(is_written_kind);
        let format = may_be.then(|| of_fragment(rest, |dialect| scanner.valid(dialect, start)));
        let mut next = start + 1;
        if let Some(format) = format.flatten()
            && let Some(end) = end_of(format.dialect, start)
            && end_of(format.dialect, end).is_some()
        {
            let has_number = format.log_number.is_some();
            let (mut end, mut count) = (start, 0);
            while let Some(valid) = scanner.valid(format.dialect, end)
                && valid.form.has_log_number() == has_number
            {
                end += valid.end;
                count += 1;
            }
            let found = (start, format);
            match plain {
                Some((plain_count, plain)) if has_number => {
                    return Some(if plain_count > count { plain } else { found });
                }
                None if has_number => return Some(found),
                None => plain = Some((count, found)),
                Some(_) => {}
            }
            // The payloads of these fragments are not searched.
            next = end;
        }
        start = next;
    }
    plain.map(|(_, found)| found)
}

/// Returns the format of a log that was closed without any records, and therefore starts with the
/// end-of-log trailer.
pub(super) fn of_empty_log(head: &[u8]) -> Option<LogFormat> {
    Dialect::ALL.iter().find_map(|&dialect| {
        let number = dialect.number_of_empty_log(head)?;
        Some(LogFormat::new(dialect).with_log_number(number))
    })
}

/// Checks whether any of the dialects writes fragments of this type.
pub(super) fn is_written_kind(kind: u8) -> bool {
    const IS_WRITTEN: [bool; 256] = {
        let mut is_written = [false; 256];
        let mut index = 0;
        while index < 256 * Dialect::BY_RANK.len() {
            let kind = index % 256;
            let role = Dialect::BY_RANK[index / 256].meaning(kind as u8).role;
            is_written[kind] |= matches!(role, Role::Fragment(_) | Role::Metadata(_));
            index += 1;
        }
        is_written
    };
    IS_WRITTEN[usize::from(kind)]
}

/// Returns each dialect in which a file can start with this header, along with the fragment's form
/// and length in that dialect. `left` is the number of bytes left in the header's block.
pub(super) fn first_fragments(header: Header, left: usize) -> impl Iterator<Item = (Dialect, Form, usize)> {
    Dialect::BY_RANK.iter().filter_map(move |dialect| {
        let meaning = dialect.meaning(header.kind);
        let end = meaning.form.header_len() + usize::from(header.len);
        let starts = !matches!(meaning.role, Role::Fragment(Kind::Middle | Kind::Last));
        let is_written = starts && is_written(&LogFormat::new(*dialect), header, left);
        is_written.then_some((*dialect, meaning.form, end))
    })
}

/// Checks whether `head` may end within the first fragment of a log that is still being written.
/// That fragment's contents are not evidence about the log, because a record may itself contain a
/// log. Zeros at the end of `head` may be preallocated space.
pub(crate) fn ends_in_first_fragment(head: &[u8]) -> bool {
    if of_file_header(head).is_some() {
        return false;
    }
    let metadata_len = head.len() - after_metadata(head).len();
    let head = &head[metadata_len..];
    let written_len = without_zeros(head).len();
    match head.first_chunk().map(Header::decode) {
        Some(header) if written_len >= HEADER_LEN => {
            let left = BLOCK_LEN - metadata_len % BLOCK_LEN;
            let is_whole = of_fragment(head, |dialect| dialect.valid(head, true)).is_some();
            !is_whole && first_fragments(header, left).any(|(.., end)| end > written_len)
        }
        // The metadata, if any, is not followed by a complete header.
        _ => metadata_len > 0,
    }
}

/// Returns `head` from the first record onward. RocksDB's metadata precedes all records and has no
/// log number.
fn after_metadata(mut head: &[u8]) -> &[u8] {
    while let Some(valid) = Dialect::ROCKSDB.valid(head, true)
        && matches!(valid.role, Role::Metadata(_))
    {
        head = &head[valid.end..];
    }
    head
}

/// Returns the dialect that `head` identifies by its metadata or file header, without examining
/// fragments. Metadata and file headers don't show the log's number or where blocks start.
pub(crate) fn shown_dialect(head: &[u8]) -> Option<Dialect> {
    if after_metadata(head).len() < head.len() {
        return Some(Dialect::ROCKSDB);
    }
    nearest_file_header(head)
}

/// Checks whether `head` starts with something that identifies the log: a file header, the
/// end-of-log trailer, or a valid fragment after any metadata.
pub(crate) fn starts_undamaged(head: &[u8]) -> bool {
    let block = after_metadata(&head[..head.len().min(BLOCK_LEN)]);
    of_file_header(head).is_some()
        || of_empty_log(head).is_some()
        || of_fragment(block, |dialect| dialect.valid(block, true)).is_some()
}

/// Checks whether there is a valid fragment anywhere in `head`, or a valid fragment of an unknown
/// type at the start of `head`.
pub(super) fn has_fragment(head: &[u8]) -> bool {
    let first = &head[..head.len().min(BLOCK_LEN)];
    let is_of_unknown_type = Dialect::BY_RANK
        .iter()
        .any(|dialect| dialect.valid(first, true).is_some());
    let mut blocks = grid_offsets()
        .into_iter()
        .flat_map(|start| head.get(start as usize..).unwrap_or_default().chunks(BLOCK_LEN));
    is_of_unknown_type || blocks.any(has_fragment_in)
}

/// Checks whether there is a valid fragment anywhere in this block.
fn has_fragment_in(block: &[u8]) -> bool {
    let scanner = Scanner::new(block);
    (0..block.len().saturating_sub(KIND_AT)).any(|start| {
        let rest = &block[start..];
        is_written_kind(rest[KIND_AT]) && of_fragment(rest, |dialect| scanner.valid(dialect, start)).is_some()
    })
}

/// Returns the offsets at which the first block may start.
pub(super) fn grid_offsets() -> BTreeSet<u64> {
    Dialect::ALL.iter().map(|dialect| dialect.grid_offset()).collect()
}
