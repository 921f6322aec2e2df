//! Examines the bytes after apparent damage to distinguish corruption from the end of a recycled
//! log.

use super::decoder::Growth;
use super::recycled::{Ambiguity, Resolution, Seen};
use super::{Decoder, OnCorruption, Step, Window};
use crate::assemble::Interruption;
use crate::damage::resync::{self, Evidence};
use crate::damage::{Reason, SkippedRegion};
use crate::dialect::{Dialect, Form, Role};
use crate::format::Header;
use crate::fragment::Found;

impl Decoder {
    /// Handles a log that may be followed by remnants of an older one. Learns the log's number, and
    /// examines the bytes after apparent damage to decide whether the log ended there. Returns
    /// whether the decoder must look again.
    pub(super) fn disambiguate(&mut self, found: Found, bytes: &[u8]) -> bool {
        if let Found::Fragment(_, valid) | Found::Metadata(_, valid) = found {
            if self.format.log_number.is_none()
                && let Some(number) = Dialect::log_number_at(bytes, valid.form)
                && self.is_evidence(bytes)
            {
                self.format.log_number = Some(number);
            }
            if self.recycled.ambiguity.is_none() {
                self.recycled.is_doubtful &= self.is_salvaged();
                if matches!(found, Found::Fragment(..)) {
                    self.note_own();
                    if self.recycled.form != Some(valid.form) && self.is_evidence(bytes) {
                        self.recycled.form = Some(valid.form);
                    }
                }
                return false;
            }
        }
        let Some(mut ambiguity) = self.recycled.ambiguity else {
            return self.starts_ambiguity(found, bytes);
        };
        if ambiguity.is_salvaged && !self.is_salvaged() {
            self.leave_salvaged(&mut ambiguity, found, bytes);
        }
        if ambiguity.resolution.is_some() {
            self.recycled.ambiguity = Some(ambiguity);
            return true;
        }
        self.look_further(ambiguity, found, bytes)
    }

    /// Reconsiders an ambiguity from the salvaged part of a block, after the decoder has read past
    /// the block. Keeps the ambiguity only if it would also exist without salvaging.
    fn leave_salvaged(&self, ambiguity: &mut Ambiguity, found: Found, bytes: &[u8]) {
        match found {
            Found::Incomplete | Found::Nothing | Found::Trailer { .. } => {}
            Found::Fault {
                reason: Reason::ZeroFill | Reason::TornTail,
                ..
            } => {}
            _ => match self.suspicion(found, bytes) {
                Some((_, evidence)) if evidence != Evidence::OfThisLog => ambiguity.is_salvaged = false,
                _ => ambiguity.resolution = Some(Resolution::Damage),
            },
        }
    }

    /// Uses `found`, which describes the bytes after an ambiguity, to update or resolve the
    /// ambiguity. Returns whether the decoder must look again.
    fn look_further(&mut self, mut ambiguity: Ambiguity, found: Found, bytes: &[u8]) -> bool {
        let is_after_range = self.offset >= self.bounds.end;
        let is_stale = self.is_older(found, bytes);
        let (is_zero, is_one_fragment) = match found {
            Found::Fault { reason, .. } => (
                reason == Reason::ZeroFill,
                matches!(reason, Reason::UnknownKind { .. } | Reason::IgnoredKind { .. }),
            ),
            _ => (false, false),
        };
        let is_own = match found {
            Found::Fragment(..) | Found::Metadata(..) | Found::EndTrailer { .. } => !is_stale,
            // A fragment in this log may have a type that was introduced in a later version.
            _ => is_one_fragment && !is_after_range && self.carries_own_number(bytes),
        };
        let evidence = match found {
            _ if is_after_range || is_zero || is_own => Evidence::None,
            Found::Fault { .. } => resync::evidence(&self.format, self.recycled.form, bytes),
            _ if is_stale && resync::contains_own(&self.format, self.recycled.form, bytes) => Evidence::OfThisLog,
            _ => Evidence::None,
        };
        let contains_own = evidence == Evidence::OfThisLog;
        if is_stale || evidence == Evidence::OfAnother {
            ambiguity.seen = Seen::Stale;
        } else if matches!(found, Found::Fault { .. }) && !is_after_range && !is_zero && has_room(bytes) {
            ambiguity.seen = ambiguity.seen.max(Seen::Room);
        }
        let may_end = ambiguity.seen == Seen::Stale || !has_room(bytes);
        // If only part of the block is lost, the decoder reads the rest of the block.
        let is_read = is_one_fragment || self.policy.on_corruption == OnCorruption::Salvage;

        // These are rules D7b to D7h in `docs/format/numbered.md`. The first matching rule decides
        // how the ambiguity is resolved and whether this block is part of the ambiguity.
        let (resolution, includes) = match found {
            Found::Incomplete => return false,
            Found::Nothing => (Some(Resolution::EndOfFile), false),
            // If the log continues in a later range, that range reports the lost write.
            _ if is_after_range && may_end && !is_own => (Some(Resolution::EndOfFile), false),
            _ if is_after_range => (Some(Resolution::Damage), false),
            Found::Trailer { .. } => return false,
            _ if is_own => (Some(Resolution::Damage), false),
            _ if contains_own => (Some(Resolution::Damage), !is_read),
            _ => (None, true),
        };
        if is_stale && !is_after_range {
            self.note_other_log(bytes);
        }
        if includes {
            self.offset += bytes.len() as u64;
            if !is_zero {
                ambiguity.region.end = self.offset;
            }
        } else if contains_own && is_stale {
            self.doubt_block();
        }
        ambiguity.resolution = resolution;
        self.recycled.ambiguity = Some(ambiguity);
        true
    }

    /// Checks whether `bytes` starts with a valid fragment that carries this log's number.
    fn carries_own_number(&self, bytes: &[u8]) -> bool {
        let valid = self.format.dialect.valid(bytes, self.policy.verify_checksums);
        let number = valid.and_then(|valid| Dialect::log_number_at(bytes, valid.form));
        number.is_some() && number == self.format.log_number
    }

    /// Corrects `found` in a log that may have a number. After a possible end of the log, a
    /// fragment of a different form belongs to an older log. A fragment that appears torn at the
    /// end of the file counts as damage if it was once written completely.
    pub(super) fn correct(&self, found: &mut Found, bytes: &[u8]) {
        match found {
            Found::Fragment(_, valid)
                if (self.recycled.is_doubtful || self.recycled.doubtful_part.contains(&self.offset))
                    && self.recycled.form.is_some_and(|own| own != valid.form)
                    && self.has_valid_checksum(bytes) =>
            {
                *found = Found::Stale;
            }
            Found::Fault {
                reason: reason @ Reason::TornTail,
                ..
            } if self.policy.growth != Growth::WaitAtFaults
                && let Some(header) = bytes.first_chunk().map(Header::decode)
                && resync::written_len(&self.format, self.recycled.form, bytes).is_some() =>
            {
                *reason = Reason::BadLength { len: header.len };
            }
            _ => {}
        }
    }

    /// Checks whether `found`, at the start of `bytes`, is a fragment from an older log. All
    /// fragments in a log have the same form. Therefore, if the log may have ended, a fragment of a
    /// different form is assumed to be from an older log.
    pub(super) fn is_older(&self, found: Found, bytes: &[u8]) -> bool {
        match found {
            Found::Stale => true,
            Found::Fragment(_, valid) => {
                self.recycled.ambiguity.is_some()
                    && self.recycled.form.is_some_and(|own| own != valid.form)
                    && self.has_valid_checksum(bytes)
            }
            _ => false,
        }
    }

    /// Checks whether `found` looks like damage but can be judged only from the following bytes.
    fn starts_ambiguity(&mut self, found: Found, bytes: &[u8]) -> bool {
        if self.policy.growth == Growth::WaitAtFaults || !matches!(found, Found::Stale | Found::Fault { .. }) {
            return false;
        }
        let suspicion = self.suspicion(found, bytes);
        // If a log's fragments don't carry a number, the log was not written over an older one.
        let is_recycled = found == Found::Stale || self.recycled.form != Some(Form::Plain);
        let is_held_back = self.policy.growth == Growth::Ended && self.offset >= self.bounds.start && is_recycled;
        let is_salvaged = self.is_salvaged();
        let lost_fragment = suspicion.and_then(|(_, evidence)| self.lost_fragment(found, evidence, bytes));
        if let Some(end) = lost_fragment {
            self.salvage_from(end);
            self.doubt_block();
        }
        if !is_held_back {
            if let Some(end) = lost_fragment {
                self.offset = end;
                return true;
            }
            let may_end = suspicion.is_some_and(|(_, evidence)| evidence != Evidence::OfThisLog);
            self.recycled.is_doubtful = may_end || (self.recycled.is_doubtful && found == Found::Stale);
            return false;
        }
        let Some((mut region, evidence)) = suspicion else {
            return false;
        };
        if found == Found::Stale {
            self.note_other_log(bytes);
        }
        region.end = lost_fragment.unwrap_or(region.end);
        self.recycled.ambiguity = Some(Ambiguity {
            region,
            own_end: self.own_end(bytes).filter(|_| found != Found::Stale),
            seen: if found == Found::Stale || evidence == Evidence::OfAnother {
                Seen::Stale
            } else {
                Seen::NoRoom
            },
            is_salvaged,
            resolution: (evidence == Evidence::OfThisLog).then_some(Resolution::Damage),
        });
        self.offset = region.end;
        true
    }

    /// If only the stale fragment at the start of `bytes` is lost, returns the offset of its end.
    /// This is the case if the policy is `salvage` and a fragment of this log follows in the same
    /// block.
    fn lost_fragment(&self, found: Found, evidence: Evidence, bytes: &[u8]) -> Option<u64> {
        let is_read = self.policy.growth == Growth::Ended && self.policy.on_corruption == OnCorruption::Salvage;
        if !is_read || found != Found::Stale || evidence != Evidence::OfThisLog {
            return None;
        }
        let stale = self.format.dialect.valid(bytes, true)?;
        Some(self.offset + stale.end as u64)
    }

    /// Marks the rest of this block as doubtful. In a doubtful part, a fragment is accepted as part
    /// of this log only if it has the same form as the earlier ones.
    fn doubt_block(&mut self) {
        let left = self.grid().block_left(self.offset);
        self.recycled.doubtful_part = self.offset..self.offset.saturating_add(left as u64);
    }

    /// Returns the offset where the fragment at the start of `bytes` ends, if its header carries
    /// this log's number. The fragment's checksum doesn't have to be valid.
    fn own_end(&self, bytes: &[u8]) -> Option<u64> {
        let header = Header::decode(bytes.first_chunk()?);
        let meaning = self.format.dialect.meaning(header.kind);
        let number = Dialect::log_number_at(bytes, meaning.form)?;
        let is_own = matches!(meaning.role, Role::Fragment(_))
            && Some(number) == self.format.log_number
            && self.recycled.form.is_none_or(|own| own == meaning.form);
        let len = meaning.form.header_len() + usize::from(header.len);
        is_own.then(|| self.offset + len.min(bytes.len()) as u64)
    }

    /// Notes that a fragment from this log has been found.
    pub(super) fn note_own(&mut self) {
        self.recycled.has_own = true;
        self.info.other_log_number = None;
    }

    /// If the stale fragment at the start of `bytes` is the first in the file, notes which log it
    /// belongs to.
    fn note_other_log(&mut self, bytes: &[u8]) {
        if !self.recycled.has_own && self.info.other_log_number.is_none() {
            let valid = self.format.dialect.valid(bytes, self.policy.verify_checksums);
            self.info.other_log_number = valid.and_then(|valid| Dialect::log_number_at(bytes, valid.form));
        }
    }

    /// Returns the region to report if `found` turns out to be damage, along with the evidence in
    /// the rest of the block. The region extends to the end of `bytes`. Returns `None` if there is
    /// no doubt whether `found` is damage.
    fn suspicion(&self, found: Found, bytes: &[u8]) -> Option<(SkippedRegion, Evidence)> {
        let (reason, leveldb_len) = match found {
            Found::Fault {
                reason: reason @ (Reason::BadLength { .. } | Reason::ChecksumMismatch { .. } | Reason::ZeroHeader),
                leveldb_len,
                ..
            } => (reason, leveldb_len),
            Found::Stale => (Reason::LostWrite, None),
            _ => return None,
        };
        if self.offset >= self.bounds.end || self.format.log_number.is_none() {
            return None;
        }
        let evidence = resync::evidence(&self.format, self.recycled.form, bytes);
        let end = self.offset + bytes.len() as u64;
        let region = SkippedRegion::new(self.offset..end, reason).with_leveldb_len(leveldb_len);
        (evidence != Evidence::OfThisLog || found == Found::Stale).then_some((region, evidence))
    }

    /// Checks whether the log may have ended where `ambiguity` starts, even though no fragment of
    /// an older log was found in the rest of the file. This is possible only if the rest of the
    /// file has no room for a fragment and this log's fragments carry a log number. The file of
    /// such a log may have been recycled.
    fn may_end_unseen(&self, ambiguity: &Ambiguity) -> bool {
        let has_number = match self.recycled.form {
            Some(form) => form == Form::Recyclable,
            None => ambiguity.own_end.is_some(),
        };
        // If a fragment of this log extends to the end of the file, it did not overwrite older
        // bytes.
        let is_last = ambiguity.own_end == Some(self.offset);
        has_number && !is_last && ambiguity.seen == Seen::NoRoom
    }

    /// Reports the parts of a resolved ambiguity in order: the pending record, the damage, and then
    /// the zeros or the older log.
    #[cold]
    pub(super) fn resolve(&mut self, ambiguity: Ambiguity, resolution: Resolution) -> Step {
        self.bounds.is_before_first = false;
        self.is_inside = false;
        let has_ended = resolution == Resolution::EndOfFile;
        let is_stale = has_ended && (ambiguity.seen == Seen::Stale || self.may_end_unseen(&ambiguity));
        // In the synced form, each fragment shows how far the file had been synced. No later
        // fragment shows that these bytes were synced, so a crash ended the log here. Source:
        // Pebble `record/record.go`, and the test TestWALSync.
        let is_unsynced = has_ended && !is_stale && self.recycled.form == Some(Form::Synced);
        let interruption = if is_stale || is_unsynced {
            Interruption::EndOfFile
        } else {
            Interruption::Damage
        };
        if let Some(region) = self.assembler.abandon(interruption) {
            return self.skip(region);
        }
        let SkippedRegion { start, end, .. } = ambiguity.region;
        let region = match ambiguity.own_end {
            // After a crash, the start of the new record is followed by remnants of the older log.
            Some(end) if is_stale => SkippedRegion::new(start..end, Reason::TornTail),
            None if is_stale => SkippedRegion::new(start..self.offset, Reason::Stale),
            _ if is_unsynced => SkippedRegion::new(start..end, Reason::TornTail),
            _ => ambiguity.region,
        };
        let reason_after = if is_stale { Reason::Stale } else { Reason::ZeroFill };
        self.recycled.ambiguity = (region.end < self.offset).then_some(Ambiguity {
            region: SkippedRegion::new(region.end..self.offset, reason_after),
            resolution: Some(Resolution::Damage),
            ..ambiguity
        });
        self.skip(region)
    }

    /// Skips the bytes after the log, which ends at `start`, and returns the next step.
    #[cold]
    pub(super) fn after_log_end(&mut self, start: u64, window: Window<'_>) -> Step {
        if let Some(region) = self.assembler.abandon(Interruption::EndOfFile) {
            return self.skip(region);
        }
        self.offset = self.offset.max(window.end_offset());
        if !window.is_last {
            return Step::NeedMore;
        }
        let end = self.ending.finish(self.offset);
        let start = start.max(self.bounds.start);
        if start >= self.offset {
            return Step::End(end);
        }
        Step::Skipped(SkippedRegion::new(start..self.offset, Reason::Stale))
    }
}

/// Checks whether `bytes` has room for a fragment that carries a log number and contains data.
/// `bytes` is a whole block, or the part of a block before the end of the file. Even if there is no
/// room, the bytes may be left over from an older log: Pebble's end trailer is as long as a header.
fn has_room(bytes: &[u8]) -> bool {
    bytes.len() > Form::Recyclable.header_len()
}
