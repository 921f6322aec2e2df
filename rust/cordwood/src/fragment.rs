//! Parses the bytes of a block as a fragment, or determines why they aren't a fragment. This module
//! is pure: it has no state and does not do any I/O.
//!
//! The checks are in LevelDB's order (`db/log_reader.cc`, `ReadPhysicalRecord`) and are numbered in
//! `docs/format/reading.md`.

use crate::checksum::{Job, Kernel, mask, state_after};
use crate::damage::{Reason, Scanner};
use crate::dialect::{Form, LogFormat, Metadata, Role, Valid};
use crate::format::{HEADER_LEN, Header, KIND_AT, Kind};

/// The result of classifying the bytes at a file offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A fragment of a record or of a container.
    Fragment(Kind, Valid),
    /// An engine's metadata record.
    Metadata(Metadata, Valid),
    /// The block has too few bytes left for a header.
    Trailer { is_zero: bool },
    /// `len` bytes that are not a fragment. `leveldb_len` is the length that LevelDB reports, if it
    /// reports these bytes.
    Fault {
        len: usize,
        reason: Reason,
        leveldb_len: Option<u64>,
    },
    /// The end-of-log trailer. The log ends after these `len` bytes.
    EndTrailer { len: usize },
    /// A valid fragment from another log. This log either ends before the fragment or continues in
    /// a later block.
    Stale,
    /// The end of the file.
    Nothing,
    /// More bytes of the block are needed.
    Incomplete,
}

/// Classifies the bytes at the start of `bytes`. This slice must extend to the end of the block or
/// to the end of the known part of the file, whichever comes first.
///
/// `left` is the number of bytes to the end of the block. `is_last` is true if the file ends where
/// `bytes` ends.
#[inline]
pub(crate) fn find(format: &LogFormat, bytes: &[u8], left: usize, is_last: bool, verify_checksums: bool) -> Found {
    if left >= HEADER_LEN
        && let Some(valid) = format.dialect.valid(bytes, verify_checksums)
        && let Role::Fragment(kind) = valid.role
        // If checksums are not verified, this also excludes the end-of-log trailer, which looks
        // like an empty fragment of the next log.
        && !format.is_stale(bytes, valid.form)
    {
        return Found::Fragment(kind, valid);
    }
    if format.is_end_trailer(bytes) {
        return Found::EndTrailer {
            len: Form::Recyclable.header_len(),
        };
    }
    find_other(format, bytes, left, is_last, verify_checksums)
}

/// Like [`find`], but for bytes that are neither a fragment of a record nor the end-of-log trailer.
#[cold]
pub(crate) fn find_other(
    format: &LogFormat,
    bytes: &[u8],
    left: usize,
    is_last: bool,
    verify_checksums: bool,
) -> Found {
    if bytes.len() >= left || is_last {
        return fault(format, bytes, left, verify_checksums);
    }
    // Other fragments are classified once the whole block is available.
    match special(format, bytes, verify_checksums) {
        Some(found @ Found::Metadata(..)) => found,
        _ => Found::Incomplete,
    }
}

/// Classifies a valid fragment that is not part of a record. Only a fragment with a valid checksum
/// is treated as part of another log, even if checksums are otherwise not verified.
fn special(format: &LogFormat, bytes: &[u8], verify_checksums: bool) -> Option<Found> {
    let valid = format.dialect.valid(bytes, verify_checksums)?;
    if format.is_stale(bytes, valid.form) {
        return format.dialect.valid(bytes, true).map(|_| Found::Stale);
    }
    let kind = bytes[KIND_AT];
    let (reason, leveldb_len) = match valid.role {
        Role::Metadata(metadata) => return Some(Found::Metadata(metadata, valid)),
        Role::Ignorable => (Reason::IgnoredKind { kind }, None),
        Role::Unknown | Role::Fragment(_) => {
            let payload_len = valid.payload(bytes).len() as u64;
            (Reason::UnknownKind { kind }, Some(payload_len))
        }
    };
    Some(Found::Fault {
        len: valid.end,
        reason,
        leveldb_len,
    })
}

/// The maximum number of fragments found at once.
pub(crate) const RUN_MAX: usize = 512;

/// Finds consecutive FULL fragments, which make up most files. Repeated calls to [`find`] would
/// give the same result, but this loop is compiled with the checksum kernel's instructions. The
/// loop stops at any bytes that are not a FULL fragment.
pub(crate) struct FullRun<'a> {
    /// The bytes from the first header to the end of the block or to the end of the known part of
    /// the file, whichever comes first.
    pub(crate) bytes: &'a [u8],
    /// Output: the ends of the fragments, relative to the start of `bytes`.
    pub(crate) ends: &'a mut [u16; RUN_MAX],
    pub(crate) verify_checksums: bool,
}

impl Job for FullRun<'_> {
    /// The number of fragments found.
    type Output = usize;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> usize {
        const STATE: u32 = state_after(Kind::Full as u8);
        let mut rest = self.bytes;
        for (count, end) in self.ends.iter_mut().enumerate() {
            let Some((header, after)) = rest.split_first_chunk() else {
                return count;
            };
            let header = Header::decode(header);
            let Some((payload, after)) = after.split_at_checked(usize::from(header.len)) else {
                return count;
            };
            let is_good = header.kind == Kind::Full as u8
                && (!self.verify_checksums || header.masked_crc == mask(!kernel.update(STATE, payload)));
            if !is_good {
                return count;
            }
            rest = after;
            // The end is at most the block length, which fits in a u16.
            *end = (self.bytes.len() - rest.len()) as u16;
        }
        RUN_MAX
    }
}

/// Does the work of [`find_other`] for bytes that do not start with a valid fragment. `bytes`
/// contains the remaining bytes of the block, up to the end of the file.
fn fault(format: &LogFormat, bytes: &[u8], left: usize, verify_checksums: bool) -> Found {
    let is_zero = bytes.iter().all(|&byte| byte == 0);
    let rest = |reason, leveldb_len| Found::Fault {
        len: bytes.len(),
        reason,
        leveldb_len,
    };
    let rest_len = Some(bytes.len() as u64);

    if bytes.is_empty() {
        return Found::Nothing;
    }
    // Dialects with longer headers have longer trailers. No fragment is lost, because zeros cannot
    // be a fragment.
    if left < HEADER_LEN || (is_zero && bytes.len() == left && left <= format.dialect.trailer_len_max()) {
        return Found::Trailer { is_zero };
    }
    let Some(header) = bytes.first_chunk().map(Header::decode) else {
        return rest(if is_zero { Reason::ZeroFill } else { Reason::TornTail }, None);
    };
    let bad_length = Reason::BadLength { len: header.len };
    let end = format.dialect.stated_end(header, bytes);
    let Some(covered) = bytes.get(KIND_AT..end) else {
        // If a fragment would extend past the end of the file, LevelDB assumes a torn write and
        // silently ends the log there.
        let is_at_end = bytes.len() < left;
        return if !is_at_end {
            rest(bad_length, rest_len)
        } else if !may_be_torn(format, header, bytes, left) || length_is_proved_wrong(format, header, bytes) {
            rest(bad_length, None)
        } else {
            rest(Reason::TornTail, None)
        };
    };
    if header.is_zero() {
        return rest(if is_zero { Reason::ZeroFill } else { Reason::ZeroHeader }, None);
    }
    special(format, bytes, verify_checksums).unwrap_or_else(|| {
        rest(
            Reason::ChecksumMismatch {
                stored: format.dialect.checksum().load(header.masked_crc),
                computed: format.dialect.checksum().crc(covered),
            },
            rest_len,
        )
    })
}

/// Checks whether `header` could come from a torn write. Its fragment would extend past the end of
/// the file.
///
/// A log with a number may be followed by the remains of an older log, which can contain any
/// header. If a header's type byte is in the next sector and that sector was not written, only
/// zeros follow.
fn may_be_torn(format: &LogFormat, header: Header, bytes: &[u8], left: usize) -> bool {
    let is_cut_before_type = || header.kind == 0 && bytes[HEADER_LEN..].iter().all(|&byte| byte == 0);
    stated_end(format, header) <= left
        && (format.log_number.is_some() || is_written(format, header, left) || is_cut_before_type())
}

/// Checks whether the dialect's writers would write this header when `left` bytes of the block
/// remain.
pub(crate) fn is_written(format: &LogFormat, header: Header, left: usize) -> bool {
    let end = stated_end(format, header);
    match format.dialect.meaning(header.kind).role {
        // No header follows a FIRST or MIDDLE fragment in the same block. Compressed records are
        // the exception: their fragments end where the compressor filled a buffer.
        Role::Fragment(Kind::First | Kind::Middle) if !format.has_zstd_records() => {
            left.checked_sub(end).is_some_and(|rest| rest < HEADER_LEN)
        }
        Role::Fragment(_) => end <= left,
        Role::Metadata(metadata) => end <= left && metadata.may_have_len(header.len),
        Role::Unknown | Role::Ignorable => false,
    }
}

/// Returns the end of the fragment with this header, relative to the fragment's first byte. If the
/// type has two forms, this is the end in the first form.
pub(crate) fn stated_end(format: &LogFormat, header: Header) -> usize {
    format.dialect.meaning(header.kind).form.header_len() + usize::from(header.len)
}

/// Checks whether the bytes after `header` rule out a torn write. The fragment of `header` would
/// extend past the end of the file.
///
/// (a) The checksum does not cover the length. If the checksum is valid for a shorter payload, the
/// length was damaged. (b) If a complete, valid fragment follows, this header's payload must have
/// been written first.
///
/// If a payload itself contains log fragments, (b) can report a torn tail as damage. A false alarm
/// is better than a silent loss.
fn length_is_proved_wrong(format: &LogFormat, header: Header, bytes: &[u8]) -> bool {
    // The checksum covers everything from this byte onward.
    let (head, payload) = bytes[KIND_AT..]
        .split_at_checked(format.dialect.meaning(header.kind).form.header_len() - HEADER_LEN + 1)
        .unwrap_or_default();
    let checksum = format.dialect.checksum();
    let stated = checksum.load(header.masked_crc);
    !head.is_empty() && checksum.prefix_with(stated, checksum.crc(head), payload).is_some() || {
        let scanner = Scanner::new(bytes);
        (HEADER_LEN..bytes.len()).any(|at| scanner.fragment(format, at, false).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::format::BLOCK_LEN;

    /// Creates a fragment of any type with a valid checksum.
    fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
        let masked_crc = Dialect::LEVELDB.checksum().stored(&[&[kind], payload].concat());
        let header = Header {
            masked_crc,
            len: payload.len() as u16,
            kind,
        };
        [&header.encode(), payload].concat()
    }

    fn find_at_end(bytes: &[u8]) -> Found {
        find(&Dialect::LEVELDB.into(), bytes, BLOCK_LEN, true, true)
    }

    /// Creates the expected result for a plain fragment.
    fn plain(kind: Kind, payload_len: usize) -> Found {
        let valid = Valid {
            role: Role::Fragment(kind),
            form: Form::Plain,
            end: HEADER_LEN + payload_len,
        };
        Found::Fragment(kind, valid)
    }

    fn reason(found: Found) -> Option<Reason> {
        match found {
            Found::Fault { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// RocksDB writes type 11 with both 7-byte and 11-byte headers. If no bytes follow, only a
    /// 7-byte header fits here.
    #[test]
    fn reads_a_short_header_if_a_long_header_does_not_fit() {
        let bytes = fragment(11, b"\x01\0\0\0\x08\0");
        for verify_checksums in [true, false] {
            assert_eq!(
                find(&Dialect::ROCKSDB.into(), &bytes, BLOCK_LEN, true, verify_checksums),
                Found::Metadata(
                    Metadata::TimestampSizes,
                    Valid {
                        role: Role::Metadata(Metadata::TimestampSizes),
                        form: Form::Plain,
                        end: bytes.len(),
                    }
                )
            );
        }
    }

    /// Checks the golden vectors of `docs/format`.
    #[test]
    fn decodes_golden_fragments() {
        for (kind, payload, bytes) in [
            (1, "", b"\x05\x2b\x28\x43\x00\x00\x01".as_slice()),
            (2, "", b"\x64\x51\xd0\xe9\x00\x00\x02"),
            (3, "", b"\x33\x6d\xcd\xe3\x00\x00\x03"),
            (4, "", b"\xa7\x16\x20\x2b\x00\x00\x04"),
            (1, "foo", b"\xdd\x5f\xb3\x7a\x03\x00\x01foo"),
            (4, "bar", b"\x05\x9e\x81\x37\x03\x00\x04bar"),
            (1, "bar", b"\xba\xea\xec\x44\x03\x00\x01bar"),
        ] {
            assert_eq!(fragment(kind, payload.as_bytes()), bytes);
            let kind = Kind::from_wire(kind).unwrap();
            assert_eq!(find_at_end(bytes), plain(kind, payload.len()));
        }
    }

    /// LevelDB's internal codes 5 and 6 clash with type bytes. In this crate, an unexpected type
    /// byte must never stop a read, and must always be reported.
    #[test]
    fn classifies_every_type_byte_with_valid_and_invalid_checksums() {
        for kind in 0..=255 {
            let mut bytes = fragment(kind, b"abc");
            match Kind::from_wire(kind) {
                Some(kind) => assert_eq!(find_at_end(&bytes), plain(kind, 3)),
                None => assert_eq!(reason(find_at_end(&bytes)), Some(Reason::UnknownKind { kind })),
            }
            bytes[0] ^= 1;
            assert!(
                matches!(reason(find_at_end(&bytes)), Some(Reason::ChecksumMismatch { .. })),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_header_with_zero_type_and_length_ends_the_block_regardless_of_its_checksum() {
        let zeros = [0; 100];
        assert_eq!(reason(find_at_end(&zeros)), Some(Reason::ZeroFill));
        let mut hidden = zeros.to_vec();
        hidden[7..17].copy_from_slice(&fragment(1, b"foo"));
        assert_eq!(reason(find_at_end(&hidden)), Some(Reason::ZeroHeader));
        assert_eq!(reason(find_at_end(b"\x01\0\0\0\0\0\0")), Some(Reason::ZeroHeader));
    }

    #[test]
    fn a_fragment_that_extends_past_the_end_of_the_file_is_torn_unless_it_exceeds_its_block() {
        let whole = fragment(1, &[b'x'; 200]);
        assert_eq!(reason(find_at_end(&whole[..150])), Some(Reason::TornTail));
        let mut damaged = whole.clone();
        damaged[5] = 0xff; // 65,480 bytes
        assert_eq!(
            reason(find_at_end(&damaged[..150])),
            Some(Reason::BadLength { len: 0xffc8 })
        );
        // In a full block, these bytes are always damage.
        assert_eq!(
            reason(find(&Dialect::LEVELDB.into(), &whole[..150], 150, false, true)),
            Some(Reason::BadLength { len: 200 })
        );
    }

    /// If a length in the last block has a flipped bit, LevelDB silently loses the later records.
    #[test]
    fn a_length_contradicted_by_the_following_bytes_counts_as_damage() {
        let mut flipped = fragment(1, b"foo");
        flipped[4] |= 0x40; // now 67 bytes, but only 3 exist, and the checksum fits those 3
        assert_eq!(reason(find_at_end(&flipped)), Some(Reason::BadLength { len: 67 }));
        flipped[0] ^= 1; // the checksum fits no length
        assert_eq!(reason(find_at_end(&flipped)), Some(Reason::TornTail));
        flipped.extend(fragment(1, b"bar"));
        assert_eq!(reason(find_at_end(&flipped)), Some(Reason::BadLength { len: 67 }));
    }

    #[test]
    fn a_partial_block_yields_only_valid_fragments() {
        let whole = fragment(1, b"foo");
        assert!(matches!(
            find(&Dialect::LEVELDB.into(), &whole, BLOCK_LEN, false, true),
            Found::Fragment(..)
        ));
        for len in 0..whole.len() {
            assert_eq!(
                find(&Dialect::LEVELDB.into(), &whole[..len], BLOCK_LEN, false, true),
                Found::Incomplete,
                "{len}"
            );
        }
        assert_eq!(
            find(&Dialect::LEVELDB.into(), &[0; 100], BLOCK_LEN, false, true),
            Found::Incomplete
        );
    }
}
