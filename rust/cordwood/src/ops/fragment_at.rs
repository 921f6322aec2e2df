//! Finds the fragment or gap at a given position in a log.

use super::fragment::Fragment;
use crate::damage::{Reason, resync};
use crate::dialect::{Dialect, Form, LogFormat};
use crate::format::{FragmentKind, HEADER_LEN, Header, KIND_AT};

/// The reader's classification of a region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: RegionKind,
}

impl Region {
    /// Returns the trailer from `start` to `end`.
    pub(super) fn trailer(start: u64, end: u64) -> Self {
        let kind = RegionKind::Trailer;
        Region { start, end, kind }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum RegionKind {
    Record {
        is_salvaged: bool,
    },
    Skipped(Reason),
    /// The bytes between two events at the end of a block, where there is no room for a header.
    Trailer,
}

/// A position in a region, and the bytes at that position.
pub(super) struct Place<'a> {
    pub(super) format: LogFormat,
    /// The form of the log's fragments, if it is known.
    pub(super) form: Option<Form>,
    pub(super) region: Region,
    pub(super) offset: u64,
    /// The index of the block.
    pub(super) block: u64,
    /// The number of bytes to the end of the block.
    pub(super) left: usize,
    /// The bytes up to the end of the block or the end of the file, whichever comes first.
    pub(super) rest: &'a [u8],
    /// The part of `rest` that is inside the region.
    pub(super) bytes: &'a [u8],
}

impl Place<'_> {
    /// Returns the fragment or gap at this position. `scanned` is the index of the last block that
    /// was searched for fragments byte by byte.
    pub(super) fn look(&self, scanned: &mut Option<u64>) -> Fragment {
        let prefix_len = self.format.dialect.prefix().len();
        if self.offset < prefix_len as u64 {
            return self.bare(FragmentKind::FileHeader, prefix_len);
        }
        if self.reason() == Some(Reason::EndTrailer) {
            let header = self.header(FragmentKind::EndTrailer);
            return header.unwrap_or_else(|| self.bare(FragmentKind::Rest, usize::MAX));
        }
        if self.left >= HEADER_LEN
            && let Some(fragment) = self.valid()
        {
            return fragment;
        }
        let is_zero = self.bytes.iter().all(|&byte| byte == 0);
        let is_trailer = self.left < HEADER_LEN
            || (is_zero && self.left <= self.format.dialect.trailer_len_max() && !self.is_fault());
        if is_trailer {
            return self.bare(FragmentKind::Trailer, usize::MAX);
        }
        if is_zero {
            return self.bare(FragmentKind::Zeros, usize::MAX);
        }
        let len = self.damaged_len(scanned);
        // In a damaged region, the reader looks for a header only at the start. Elsewhere, the
        // bytes are ordinary data.
        let header = (self.offset == self.region.start && self.is_fault())
            .then(|| self.damaged(len))
            .flatten();
        header.unwrap_or_else(|| self.bare(FragmentKind::Rest, len))
    }

    fn reason(&self) -> Option<Reason> {
        match self.region.kind {
            RegionKind::Skipped(reason) => Some(reason),
            RegionKind::Record { .. } | RegionKind::Trailer => None,
        }
    }

    /// Checks whether no valid fragment was found at the start of the region.
    fn is_fault(&self) -> bool {
        matches!(
            self.reason(),
            Some(
                Reason::BadLength { .. }
                    | Reason::ChecksumMismatch { .. }
                    | Reason::ZeroHeader
                    | Reason::ZeroFill
                    | Reason::TornTail
            )
        )
    }

    /// Returns a gap of at most `len` bytes that has no header.
    fn bare(&self, kind: FragmentKind, len: usize) -> Fragment {
        Fragment {
            offset: self.offset,
            end_offset: self.offset + self.bytes.len().min(len) as u64,
            block: self.block,
            kind,
            type_byte: None,
            payload_len: None,
            stored_crc: None,
            computed_crc: None,
            log_number: None,
            synced_offset: None,
            reason: self.reason(),
            record_offset: None,
            is_salvaged: false,
        }
    }

    /// Returns an entry for the header at this position, if the header is complete. The entry spans
    /// the remainder of the region in this block.
    fn header(&self, kind: FragmentKind) -> Option<Fragment> {
        let header = Header::decode(self.bytes.first_chunk()?);
        Some(Fragment {
            type_byte: Some(header.kind),
            payload_len: Some(header.len),
            ..self.bare(kind, usize::MAX)
        })
    }

    /// Returns the fragment at this position, if it lies inside the region and its checksum is
    /// valid.
    fn valid(&self) -> Option<Fragment> {
        let valid = self.format.dialect.valid(self.bytes, true)?;
        let header = Header::decode(self.bytes.first_chunk()?);
        if header.is_zero() {
            // This header represents zeros, even if its checksum is valid.
            return None;
        }
        let (record_offset, is_salvaged) = match self.region.kind {
            RegionKind::Record { is_salvaged } => (Some(self.region.start), is_salvaged),
            _ => (None, false),
        };
        Some(Fragment {
            record_offset,
            is_salvaged,
            ..self.described(header, valid.form, valid.end)?
        })
    }

    /// Returns an entry for the damaged header at this position. The entry covers the `len` bytes
    /// that were lost.
    fn damaged(&self, len: usize) -> Option<Fragment> {
        let header = Header::decode(self.bytes.first_chunk()?);
        self.described(header, self.format.dialect.meaning(header.kind).form, len)
    }

    /// Returns an entry of at most `len` bytes for `header`. The header has the given form and
    /// starts at this position.
    fn described(&self, header: Header, form: Form, len: usize) -> Option<Fragment> {
        let covered = self.rest.get(KIND_AT..form.header_len() + usize::from(header.len));
        let checksum = self.format.dialect.checksum();
        Some(Fragment {
            end_offset: self.offset + self.bytes.len().min(len) as u64,
            stored_crc: Some(checksum.load(header.masked_crc)),
            computed_crc: covered.map(|covered| checksum.crc(covered)),
            log_number: Dialect::log_number_at(self.rest, form),
            synced_offset: Dialect::synced_offset_at(self.rest, form),
            ..self.header(self.format.dialect.kind_of(header.kind))?
        })
    }

    /// Returns the number of bytes from this position onward that are not part of a fragment.
    fn damaged_len(&self, scanned: &mut Option<u64>) -> usize {
        let goes_on = self.bytes.len() < self.rest.len();
        if goes_on || self.reason() == Some(Reason::TornTail) {
            return self.bytes.len();
        }
        let may_scan = || scanned.replace(self.block) != Some(self.block);
        resync::resume(&self.format, self.form, self.rest, self.left, may_scan)
    }
}
