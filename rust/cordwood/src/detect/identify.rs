//! Determines the format of a log: its dialect, its number and its compression.

use std::path::Path;

use super::by_fragment::after_damage;
use super::by_frame::with_compression;
use super::detect_at::detect_at;
use super::detection::{DETECT_LEN, Detection, PartialDetection};
use super::foreign::Foreign;
use super::name::is_log_name;
use super::number::log_number_of;
use crate::dialect::{Compression, Dialect, GivenFormat, Grid, LogFormat, Metadata, Role, ZSTD};

/// Detects the format of a log (its dialect, number and compression) from `head`. Pass the first
/// [`DETECT_LEN`] bytes of the file, or the whole file if it is shorter.
///
/// The first valid fragment determines the format. The search starts where a block may start. If
/// the first block starts with damage, the search continues after the damage and requires two
/// consecutive valid fragments. Random bytes have a one in four billion chance of looking like a
/// valid fragment. The log number is taken from the first fragment of a record.
///
/// ```
/// use cordwood_log::Dialect;
/// use cordwood_log::ops::{Detection, Foreign, detect};
/// assert_eq!(detect(b":W&B\xe1\xbe\x00"), Detection::Log(Dialect::WANDB.into()));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo"), Detection::Log(Dialect::LEVELDB.into()));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01"), Detection::Unclear);
/// assert_eq!(detect(b"\x1f\x8b\x08\x00\0\0\0\0\0\x03"), Detection::Foreign(Foreign::Gzip));
/// assert_eq!(detect(b"plain text\n"), Detection::Foreign(Foreign::Text));
/// ```
///
/// If the file is longer than `head`, the result is `Detection::Foreign` only if the file has a
/// signature. A reader also inspects the bytes after `head`.
pub fn detect(head: &[u8]) -> Detection {
    detect_named(head, None)
}

/// Like [`detect`], but also uses the name of the log's file if `path` is given. The log number in
/// this name takes precedence over those in fragments.
///
/// ```
/// use std::path::Path;
/// use cordwood_log::{Dialect, LogFormat};
/// use cordwood_log::ops::{Detection, detect_named};
/// // A file that is to hold log 124, and still holds log 123.
/// let head = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";
/// let format = LogFormat::new(Dialect::RECYCLABLE);
/// assert_eq!(detect_named(head, None), Detection::Log(format.with_log_number(123)));
/// assert_eq!(detect_named(head, Some(Path::new("000124.log"))), Detection::Log(format.with_log_number(124)));
/// ```
pub fn detect_named(head: &[u8], path: Option<&Path>) -> Detection {
    match identify(GivenFormat::default(), path, head, 0, true) {
        PartialDetection::Log(format) => Detection::Log(format),
        PartialDetection::Foreign(foreign) => Detection::Foreign(foreign),
        PartialDetection::Unclear | PartialDetection::Longer(_) | PartialDetection::NeedMore => Detection::Unclear,
    }
}

/// Returns the format of a log: its dialect, its number and its compression. All readers use this
/// function.
///
/// * The dialect is the one in `named` or, failing that, the one that [`detect`] finds.
/// * The log number comes from the first of these that has one: `named`, the file name in `path`,
///   and the file's first valid fragment. The first fragment of a range is not used.
///
/// `bytes` starts at the file offset `offset`. `is_last` is true if the file ends where `bytes`
/// ends. The caller must check `named` with [`GivenFormat::check`], either before calling this
/// function, or afterwards with the detected dialect.
pub(crate) fn identify(
    named: GivenFormat,
    path: Option<&Path>,
    bytes: &[u8],
    offset: u64,
    is_last: bool,
) -> PartialDetection {
    let number = named.log_number.or_else(|| path.and_then(log_number_of));
    let with_named = |format: LogFormat| LogFormat {
        compression: named.compression.or(format.compression),
        ..format.numbered(number)
    };
    let completed = |known: LogFormat| {
        if offset == 0 && GivenFormat::from(known).may_be_completed() {
            complete(known, bytes, is_last)
        } else {
            PartialDetection::Log(known)
        }
    };
    if let Some(dialect) = named.dialect {
        return completed(with_named(dialect.into()));
    }
    match detect_at(bytes, offset, is_last) {
        PartialDetection::Log(format) => completed(with_named(LogFormat {
            dialect: format.dialect.detected(),
            // A number found in a later block may belong to an older log.
            log_number: format.log_number.filter(|_| offset > 0),
            ..format
        })),
        PartialDetection::Foreign(Foreign::Unknown) if path.is_some_and(is_log_name) => PartialDetection::Unclear,
        PartialDetection::Longer(Some(Foreign::Unknown)) if path.is_some_and(is_log_name) => {
            PartialDetection::Longer(None)
        }
        detection => detection,
    }
}

/// Fills in the missing parts of the `known` format by reading the start of the file. Reads at most
/// three blocks, and stops at the first block that starts with a valid record fragment, or with
/// metadata followed by such a fragment.
fn complete(known: LogFormat, bytes: &[u8], is_last: bool) -> PartialDetection {
    let dialect = known.dialect;
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if known.log_number.is_none()
        && let Some(number) = dialect.number_of_empty_log(head)
    {
        return PartialDetection::Log(known.with_log_number(number));
    }
    let mut found = known;
    let (mut number, mut number_after_damage) = (None, None);
    let mut start = 0;
    let mut is_found = false;
    while start < head.len() && !is_found {
        let left = Grid::new(dialect, 0).block_left(start as u64);
        let block = &head[start..head.len().min(start + left)];
        let Some(valid) = dialect.valid(block, true) else {
            let after_damage = after_damage(block).and_then(|(_, format)| format.log_number);
            number_after_damage = number_after_damage.or(after_damage);
            start += left;
            continue;
        };
        number = number.or_else(|| Dialect::log_number_at(block, valid.form));
        let is_first = start == 0;
        if is_first && valid.role == Role::Metadata(Metadata::SetCompression) && valid.payload(block) == ZSTD {
            found = found.with_compression(Compression::Zstd);
        }
        is_found = matches!(valid.role, Role::Fragment(_));
        start += valid.end;
    }
    if !is_found && !is_all {
        return PartialDetection::NeedMore;
    }
    // A fragment after damage may belong to a log stored in a record, so a fragment at the start of
    // a block takes precedence. However, a block after the damage may be left over from an older
    // log. Log numbers increase, so the higher number is used.
    let is_unnumbered = is_found && number.is_none();
    if known.log_number.is_none() && !is_unnumbered {
        found = found.numbered(number.max(number_after_damage));
    }
    if found.compression.is_some() {
        PartialDetection::Log(found)
    } else {
        with_compression(found, head, is_all)
    }
}
