//! What has been repaired, for `verbs/salvage.rs`, which asks for it.

use super::{Decoder, Step, Window};
use crate::damage::repair::{Log, Repaired, repair};
use crate::damage::{BitFlip, Finding, Findings, FragmentPart, Reason, SkippedRegion, only_difference};
use crate::format::Header;
use crate::fragment::find;

/// The fragments in which a bit is flipped back.
#[derive(Debug)]
pub(super) struct Repairs {
    /// Whether any is.
    pub(super) is_on: bool,
    /// Whether the fragment that is being processed is one: its bytes are not those in the window.
    pub(super) is_current: bool,
    /// Those that have been processed since they were last taken.
    findings: Findings,
    /// The last one: its file offset and its bytes.
    begin: u64,
    fragment: Vec<u8>,
}

impl Repairs {
    pub(super) fn new(is_on: bool) -> Self {
        Repairs {
            is_on,
            is_current: false,
            findings: Findings::default(),
            begin: 0,
            fragment: Vec::new(),
        }
    }

    fn add(&mut self, begin: u64, fragment: Vec<u8>, reason: Reason, bit_flip: BitFlip) {
        let region = SkippedRegion {
            begin,
            end: begin + fragment.len() as u64,
            reason,
            leveldb_len: None,
        };
        let bit_flip = Some(bit_flip);
        self.findings.add(Finding { region, bit_flip });
        (self.begin, self.fragment) = (begin, fragment);
    }
}

impl Decoder {
    /// [Processes](Self::process) a fault at the beginning of `bytes` as the fragment that it is
    /// without one flipped bit. Returns `None` if there is no such bit.
    #[cold]
    pub(super) fn repaired(
        &mut self,
        reason: Reason,
        bytes: &[u8],
        left: usize,
        window: Window<'_>,
    ) -> Option<Option<Step>> {
        let reason = match reason {
            Reason::BadLength { .. } | Reason::ChecksumMismatch { .. } | Reason::ZeroHeader => reason,
            // With another type, the header has another length.
            Reason::TornTail => Reason::BadLength {
                len: Header::decode(bytes.first_chunk()?).len,
            },
            _ => return None,
        };
        // As in `look.rs`: what is found after damage does not end the log.
        let format = if self.is_salvaged() {
            self.format.without_end_trailer()
        } else {
            self.format
        };
        let log = Log {
            format: &format,
            form: self.recycled.form,
            is_compressed: self.info.is_compressed(),
        };
        let Repaired { fragment, bit_flip } = repair(&log, self.offset, bytes, left)?;
        let begin = self.offset;
        let found = find(&self.format, &fragment, left, true, true);
        self.repairs.is_current = true;
        let step = self.process(found, &fragment, left, window);
        self.repairs.is_current = false;
        // If it has not moved on, the next call reads these bytes again.
        if self.offset > begin {
            self.repairs.add(begin, fragment, reason, bit_flip);
        }
        Some(step)
    }

    /// Whether one flipped bit explains why `bytes` are not the file header `prefix`. If so, it is
    /// repaired.
    pub(super) fn repairs_prefix(&mut self, bytes: &[u8], prefix: &[u8]) -> bool {
        match only_difference(bytes, prefix) {
            Some(place) if self.repairs.is_on => {
                let bit_flip = place.flip_in(0, FragmentPart::FileHeader);
                self.repairs.add(0, prefix.to_vec(), Reason::BadFileHeader, bit_flip);
                true
            }
            _ => false,
        }
    }

    /// The fragments repaired since the last call.
    pub(crate) fn take_repairs(&mut self) -> Findings {
        std::mem::take(&mut self.repairs.findings)
    }

    /// The bytes of the last fragment that was repaired, if it begins at `begin`.
    pub(crate) fn repaired_at(&self, begin: u64) -> Option<&[u8]> {
        let Repairs {
            begin: last, fragment, ..
        } = &self.repairs;
        (*last == begin && !fragment.is_empty()).then_some(fragment)
    }
}
