//! The fragments that the decoder repairs if `ops/salvage.rs` requests repairs.

use super::Decoder;
use crate::damage::repair::{Log, Repaired, repair};
use crate::damage::{BitFlip, Finding, Findings, FragmentPart, Reason, SkippedRegion, only_difference};
use crate::format::Header;

/// The fragments that were repaired by flipping back one bit.
#[derive(Debug)]
pub(super) struct Repairs {
    /// Whether the decoder repairs fragments.
    pub(super) is_on: bool,
    /// The findings about the fragments repaired since the last call to `take_repairs`, except for
    /// the last finding.
    findings: Findings,
    /// The finding about the last repaired fragment, until it is added to `findings`.
    last: Option<Finding>,
    /// The file offset of the last repaired fragment. The window still contains the unrepaired
    /// bytes.
    pub(super) start: u64,
    /// The repaired bytes of the last fragment.
    fragment: Vec<u8>,
}

impl Repairs {
    pub(super) fn new(is_on: bool) -> Self {
        Repairs {
            is_on,
            findings: Findings::default(),
            last: None,
            start: u64::MAX,
            fragment: Vec::new(),
        }
    }

    /// Stores a repaired fragment that is about to be processed.
    fn start(&mut self, start: u64, fragment: Vec<u8>, reason: Reason, bit_flip: BitFlip) {
        let region = SkippedRegion::new(start..start + fragment.len() as u64, reason);
        let bit_flip = Some(bit_flip);
        self.last = Some(Finding { region, bit_flip });
        (self.start, self.fragment) = (start, fragment);
    }

    /// Adds the last finding to `findings` if the decoder's `offset` is past the start of the
    /// repaired fragment. Otherwise, the finding is dropped, because the decoder will read the
    /// fragment again.
    fn settle(&mut self, offset: u64) {
        if let Some(last) = self.last.take()
            && last.region.start < offset
        {
            self.findings.add(last);
        }
    }
}

impl Decoder {
    /// If one flipped bit explains the fault, returns the fragment at the start of `bytes` with
    /// that bit flipped back.
    #[cold]
    pub(super) fn repair(&mut self, reason: Reason, bytes: &[u8], left: usize) -> Option<Vec<u8>> {
        let reason = match reason {
            Reason::BadLength { .. } | Reason::ChecksumMismatch { .. } | Reason::ZeroHeader => reason,
            // The repair may change the fragment's type, and with it the length of the header.
            Reason::TornTail => Reason::BadLength {
                len: Header::decode(bytes.first_chunk()?).len,
            },
            _ => return None,
        };
        let Repaired { fragment, bit_flip } = repair(&self.repaired_log(), self.offset, bytes, left)?;
        self.repairs.settle(self.offset);
        self.repairs.start(self.offset, fragment.clone(), reason, bit_flip);
        Some(fragment)
    }

    fn repaired_log(&self) -> Log<'_> {
        Log {
            format: &self.format,
            origin: self.origin,
            // A fragment after damage cannot end the log. `look.rs` follows the same rule.
            may_end: !self.is_salvaged(),
            form: self.recycled.form,
            is_compressed: self.info.is_compressed(),
        }
    }

    /// Returns the file header, followed by the repaired fragment, if the first record in the file
    /// can be repaired. This record shows which version of the file header is correct.
    pub(super) fn repaired_first_block(&self, first_block: &[u8]) -> Option<Vec<u8>> {
        let dialect = self.format.dialect;
        let (prefix, block) = first_block.split_at_checked(dialect.prefix().len())?;
        if !self.repairs.is_on || dialect.version().is_none() || dialect.valid(block, true).is_some() {
            return None;
        }
        let offset = self.offset + prefix.len() as u64;
        let Repaired { fragment, .. } = repair(&self.repaired_log(), offset, block, self.grid().block_left(offset))?;
        Some([prefix, &fragment].concat())
    }

    /// Repairs the file header if `bytes` differs from the expected header `prefix` by one flipped
    /// bit. Returns whether the header was repaired.
    pub(super) fn repairs_prefix(&mut self, bytes: &[u8], prefix: &[u8]) -> bool {
        match only_difference(bytes, prefix) {
            Some(place) if self.repairs.is_on => {
                let bit_flip = place.flip_in(self.origin, FragmentPart::FileHeader);
                self.repairs
                    .start(self.origin, prefix.to_vec(), Reason::BadFileHeader, bit_flip);
                true
            }
            _ => false,
        }
    }

    /// Returns the findings about the fragments repaired since the last call, if any. This function
    /// is called for each record but nearly always returns `None`, because few decoders repair
    /// fragments.
    #[inline]
    pub(crate) fn take_repairs(&mut self) -> Option<Findings> {
        if !self.repairs.is_on {
            return None;
        }
        self.repairs.settle(self.offset);
        (!self.repairs.findings.is_empty()).then(|| std::mem::take(&mut self.repairs.findings))
    }

    /// Returns the bytes of the last repaired fragment, if it starts at `start`.
    pub(crate) fn repaired_at(&self, start: u64) -> Option<&[u8]> {
        (self.repairs.start == start).then_some(&self.repairs.fragment)
    }
}
