//! Flips back one bit in a damaged fragment. This module is pure and does no I/O. The rule is in
//! `docs/format/damage.md`, "Flipping a bit back".

use super::BitFlip;
use super::bit_flip::{Place, explanations, one_of, only_difference};
use super::resync::can_resume;
use crate::dialect::{Form, LogFormat, Metadata, Role};
use crate::format::{Header, Kind};

/// Information about the log that contains a damaged fragment.
#[derive(Clone, Copy)]
pub(crate) struct Log<'a> {
    pub(crate) format: &'a LogFormat,
    /// The offset of the file's first byte.
    pub(crate) origin: u64,
    /// Whether the end-of-log trailer may be at this position.
    pub(crate) may_end: bool,
    /// The form of the log's other fragments, if known.
    pub(crate) form: Option<Form>,
    /// Whether the log's records are compressed. In a compressed log, a fragment can end anywhere.
    pub(crate) is_compressed: bool,
}

/// A fragment with one bit flipped back.
pub(crate) struct Repaired {
    /// The bytes of the repaired fragment.
    pub(crate) fragment: Vec<u8>,
    /// The bit that was flipped back.
    pub(crate) bit_flip: BitFlip,
}

/// Flips back one bit to turn the damaged bytes at the start of `rest` into a fragment that the
/// log's writer could have written there.
///
/// `rest` starts at the file offset `offset` and extends to the end of its block or of the file.
/// `left` is the number of bytes to the end of the block.
#[cold]
pub(crate) fn repair(log: &Log<'_>, offset: u64, rest: &[u8], left: usize) -> Option<Repaired> {
    let candidates: Vec<Repaired> = explanations(rest, log.format.dialect)
        .into_iter()
        .filter_map(|place| log.repaired(place, offset, rest, left))
        .collect();
    // If the length is wrong, flipping a payload bit may explain the damage by chance. In that
    // case, no fragment follows the repaired one.
    let is_followed = |repaired: &Repaired| can_resume(log.format.dialect, rest, left, repaired.fragment.len());
    if candidates.len() > 1 {
        return one_of(candidates.into_iter().filter(is_followed));
    }
    candidates.into_iter().next().or_else(|| log.end_trailer(offset, rest))
}

impl Log<'_> {
    /// Returns the end-of-log trailer if `rest` starts with a trailer in which one bit is flipped.
    /// The trailer has no checksum.
    fn end_trailer(&self, offset: u64, rest: &[u8]) -> Option<Repaired> {
        let trailer = self.format.end_trailer().filter(|_| self.may_end)?;
        let place = only_difference(rest.get(..trailer.len())?, &trailer)?;
        Some(Repaired {
            fragment: trailer.to_vec(),
            bit_flip: place.flip(offset, trailer.len()),
        })
    }

    /// Returns the fragment at the start of `rest` with this bit flipped back, if the log's writer
    /// could have written it there.
    fn repaired(&self, place: Place, offset: u64, rest: &[u8], left: usize) -> Option<Repaired> {
        let dialect = self.format.dialect;
        let head = place.flipped_in(rest.get(..dialect.header_len_max()).unwrap_or(rest));
        let header = Header::decode(head.first_chunk()?);
        let meaning = dialect.meaning(header.kind);
        let len = meaning.form.header_len() + usize::from(header.len);
        // Record and container fragments have headers of the same length.
        let is_of_form = self
            .form
            .is_none_or(|form| form.header_len() == meaning.form.header_len());
        let is_written = match meaning.role {
            Role::Fragment(Kind::Full | Kind::Last) => is_of_form,
            Role::Fragment(Kind::First | Kind::Middle) => is_of_form && (len == left || self.is_compressed),
            Role::Metadata(Metadata::TimestampSizes | Metadata::Predecessor) => is_of_form,
            Role::Metadata(Metadata::SetCompression | Metadata::Mark) => offset == self.origin,
            Role::Metadata(Metadata::LateSetCompression) | Role::Ignorable | Role::Unknown => false,
        };
        if !is_written || self.format.is_stale(&head, meaning.form) {
            return None;
        }
        Some(Repaired {
            fragment: place.flipped_in(rest.get(..len)?),
            bit_flip: place.flip(offset, meaning.form.header_len()),
        })
    }
}
