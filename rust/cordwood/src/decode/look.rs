//! Decides what the bytes at the decoder's offset mean. Each call returns one event. `fragment.rs`
//! classifies a single fragment, and `log_end.rs` decides where a recycled log ends. Everything
//! else is decided here.

use super::decoder::Growth;
use super::unpack::Failed;
use super::{DataAt, Decoder, End, OnCorruption, RecordSpan, Step, Window};
use crate::assemble::{Interruption, Part, Pushed};
use crate::container::Mark;
use crate::damage::{Reason, Severity, SkippedRegion, resync};
use crate::dialect::{Form, Metadata, Role, Unsupported};
use crate::error::Refused;
use crate::format::{HEADER_LEN, Header, KIND_AT, Kind};
use crate::fragment::{Found, find, find_other};
use crate::trace::trace;

impl Decoder {
    /// Does the work of [`step`](Self::step) once all records in the current run or container have
    /// been returned. If several records are found at once, the first is returned but not yet
    /// taken.
    pub(crate) fn look(&mut self, window: Window<'_>) -> Step {
        self.retry.refused = None;
        if let Some(step) = self.look_in_container() {
            return step;
        }
        if let Some(span) = self.retry.joined.take() {
            if !self.assembler.is_container() {
                return self.unpack(span, &[]);
            }
            if let Some(step) = self.open(span, &[]) {
                return step;
            }
        }
        let window = window.within_offsets();
        let step = self.look_at(window);
        trace!("decode: {step:?}");
        // Some of the pending record's fragments are still in this window, but the next window may
        // start after them.
        if step == Step::NeedMore
            && self.retry.refused.is_none()
            && let Some(range) = self.assembler.pending_in_window()
            && self.join_from(window, range, 0).is_err()
        {
            return self.refuse(Refused::OutOfMemory);
        }
        step
    }

    fn look_at(&mut self, window: Window<'_>) -> Step {
        loop {
            if let Some(end) = self.ending.end {
                return Step::End(end);
            }
            if window.offset > self.offset {
                return Step::NeedMore;
            }
            if self.is_at_origin() && !self.format.dialect.prefix().is_empty() {
                match self.prefix(window) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            if self.is_before_sought() && self.format.dialect.has_log_numbers() {
                match self.pass_to_sought(window) {
                    true => continue,
                    false => return Step::NeedMore,
                }
            }
            if let Some(start) = self.recycled.log_end {
                return self.after_log_end(start, window);
            }
            if let Some(ambiguity) = self.recycled.ambiguity
                && let Some(resolution) = ambiguity.resolution
            {
                return self.resolve(ambiguity, resolution);
            }
            let left = self.grid().block_left(self.offset);
            let mut bytes = window.at(self.offset, left);
            if self.is_at_origin()
                && self.format.log_number.is_none()
                && let Some(number) = self.format.dialect.number_of_empty_log(bytes)
            {
                self.format.log_number = Some(number);
            }
            if let Some(span) = self.find_run(bytes, left) {
                return Step::Record(span);
            }
            let mut found = find(&self.format, bytes, left, window.is_last, self.policy.verify_checksums);
            if matches!(found, Found::EndTrailer { .. }) && self.is_salvaged() {
                found = find_other(&self.format, bytes, left, window.is_last, self.policy.verify_checksums);
            }
            // If a fragment was repaired, the window still contains its damaged bytes.
            let repaired;
            if let Found::Fault { reason, .. } = found
                && self.repairs.is_on
                && let Some(fragment) = self.repair(reason, bytes, left)
            {
                repaired = fragment;
                bytes = &repaired;
                found = find(&self.format, bytes, left, true, true);
            }
            if self.format.dialect.has_log_numbers() {
                self.correct(&mut found, bytes);
                // A fragment from an older log would make the decoder skip the whole block, so wait
                // until the whole block can be examined.
                if bytes.len() < left && !window.is_last && self.is_older(found, bytes) {
                    found = Found::Incomplete;
                }
                if self.disambiguate(found, bytes) {
                    continue;
                }
            }
            trace!("decode: at {}, {found:?}; {:?}", self.offset, self.recycled);
            let step = if let Found::Fragment(kind, valid) = found
                && ((self.bounds.start..self.bounds.end).contains(&self.offset)
                    && !(self.bounds.is_before_first && matches!(kind, Kind::Middle | Kind::Last))
                    || valid.form == Form::Packed && self.is_of_early_container(kind))
            {
                self.fragment(kind, valid.form, valid.payload(bytes), window)
            } else if found == Found::Incomplete
                || (self.policy.growth == Growth::WaitAtFaults
                    && matches!(found, Found::Fault { .. } | Found::Stale)
                    && !self.is_before_sought())
            {
                Some(Step::NeedMore)
            } else {
                self.other(self.at_its_place(found, bytes), bytes, window)
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Returns true if no bytes of the file have been read.
    fn is_at_origin(&self) -> bool {
        self.offset == self.origin
    }

    /// Reads this dialect's file header. Returns `None` if the caller must look again.
    #[cold]
    fn prefix(&mut self, window: Window<'_>) -> Option<Step> {
        let (prefix, origin) = (self.format.dialect.prefix(), self.offset);
        let bytes = window.at(origin, prefix.len());
        if bytes.len() < prefix.len() && !window.is_last {
            return Some(Step::NeedMore);
        }
        // If the entire first block is zeros, the zeros in the header were preallocated. If the
        // block contains a non-zero byte, the header was destroyed.
        let block_end = self.grid().first_block_len();
        let first_block = window.at(origin, block_end);
        let is_zero = first_block.iter().all(|&byte| byte == 0);
        let has_first_block = first_block.len() == block_end || window.is_last;
        let repaired = has_first_block
            .then(|| self.repaired_first_block(first_block))
            .flatten();
        let dialect = self
            .format
            .dialect
            .in_version_of(repaired.as_deref().unwrap_or(first_block));
        let is_intact = bytes == dialect.prefix();
        let may_change = match self.policy.growth {
            Growth::WaitAtFaults => {
                // A version of 0 may mean that no version has been written yet.
                let is_unwritten =
                    dialect.version().is_some() && first_block[dialect.magic().len()..].iter().all(|&byte| byte == 0);
                !is_intact || is_unwritten
            }
            // The first record shows whether the version is correct.
            Growth::Ended => dialect.version().is_some() && !has_first_block,
            Growth::SkipFaults => false,
        };
        if may_change || (is_zero && !has_first_block) {
            return Some(Step::NeedMore);
        }
        if bytes.is_empty() || self.bounds.end <= origin {
            return self.finish(Found::Nothing, origin);
        }
        let reason = if is_intact && dialect.has_known_version() {
            Reason::FileHeader
        } else if is_intact && let Some(version) = dialect.version() {
            Reason::UnknownVersion { version }
        } else if is_zero {
            Reason::ZeroFill
        } else if bytes.len() < prefix.len() && prefix.starts_with(bytes) {
            Reason::TornTail
        } else if self.repairs_prefix(bytes, dialect.prefix()) {
            Reason::FileHeader
        } else {
            Reason::BadFileHeader
        };
        if !is_zero {
            self.format.dialect = dialect;
        }
        self.offset = origin + bytes.len() as u64;
        let region = SkippedRegion::new(origin..self.offset, reason);
        if self.bounds.start <= origin {
            return Some(self.skip(region));
        }
        // The file header is final, but the bytes after it are not.
        (self.policy.growth == Growth::SkipFaults).then_some(Step::NeedMore)
    }

    /// Returns true if a fragment with this header can't be at the decoder's offset. The first
    /// fragment in a file can't continue a record.
    pub(crate) fn is_misplaced(&self, header: Header) -> bool {
        let dialect = self.format.dialect;
        let role = dialect.meaning(header.kind).role;
        let continues = matches!(role, Role::Fragment(Kind::Middle | Kind::Last));
        // If the log has a number, the header may be left over from an older log.
        continues && self.offset == self.origin + dialect.prefix().len() as u64 && self.format.log_number.is_none()
    }

    /// Corrects `found`, which was determined without the preceding bytes.
    ///
    /// A run of zeros at the end of the file is normally padding if it is shorter than a header. If
    /// it follows a FIRST or MIDDLE fragment in the same block, however, it is the torn remainder
    /// of that fragment's record. A fragment in the previous block is ignored, so that the region
    /// is the same in a range that starts with this block.
    fn at_its_place(&self, mut found: Found, bytes: &[u8]) -> Found {
        if let Found::Fault { reason, len, .. } = &mut found {
            let is_in_block = self.offset > self.grid().block_start(self.offset);
            let header = bytes.first_chunk().map(Header::decode);
            match (*reason, header) {
                (Reason::ZeroFill, _) if *len < HEADER_LEN && self.is_inside && is_in_block => {
                    *reason = Reason::TornTail;
                }
                (Reason::TornTail, Some(header)) if self.is_misplaced(header) => {
                    *reason = Reason::BadLength { len: header.len };
                }
                _ => {}
            }
        }
        found
    }

    /// Checks whether the fragment belongs to a container that starts before the range but may
    /// contain records in the range.
    fn is_of_early_container(&self, kind: Kind) -> bool {
        match kind {
            Kind::Full | Kind::First => self.offset < self.bounds.start,
            Kind::Middle | Kind::Last => self
                .assembler
                .pending_container()
                .is_some_and(|start| start < self.bounds.start),
        }
    }

    /// Checks whether the decoder is still before the target of the seek. The bytes before the
    /// target are read, but only to find damage and any container that may hold the target record.
    fn is_before_sought(&self) -> bool {
        self.bounds.is_sought && self.offset < self.bounds.start
    }

    /// Reads up to the target of the seek, to determine whether the record there is salvaged. This
    /// is for logs that may contain remnants of an older log. The bytes before the record are not
    /// used as evidence of where the log ends or which form its fragments have. Returns whether the
    /// window contains enough bytes.
    #[cold]
    fn pass_to_sought(&mut self, window: Window<'_>) -> bool {
        while self.is_before_sought() {
            let left = self.grid().block_left(self.offset);
            let bytes = window.at(self.offset, left);
            let len = match find(&self.format, bytes, left, window.is_last, self.policy.verify_checksums) {
                Found::Fragment(_, valid) | Found::Metadata(_, valid) => valid.end,
                Found::Fault { reason, len, .. } => self.lost_len(reason, bytes, len),
                Found::Incomplete => return false,
                Found::Trailer { .. } | Found::EndTrailer { .. } | Found::Stale | Found::Nothing => left,
            };
            // The record is known to start at the target, even if an earlier fragment seems to
            // contain the record.
            self.offset = self.bounds.start.min(self.offset + len as u64);
        }
        true
    }

    /// Processes a fragment in the range, or in a container that may contain records in the range.
    fn fragment(&mut self, kind: Kind, form: Form, payload: &[u8], window: Window<'_>) -> Option<Step> {
        let is_container = form == Form::Packed;
        let starts = matches!(kind, Kind::Full | Kind::First);
        if !(is_container && self.is_of_early_container(kind)) {
            self.bounds.is_before_first = false;
        }
        if !self.assembler.is_idle() && (starts || !self.assembler.is_continued_by(is_container)) {
            // The next call will read this fragment again.
            let region = self.assembler.abandon(Interruption::NewRecord);
            return region.and_then(|region| self.skip_own(region));
        }
        // If a fragment was repaired, the window still contains its damaged bytes.
        let is_joined = self.repairs.start == self.offset;
        if let Some(range) = self.assembler.outgrows_window(payload.len())
            && self.join_from(window, range, payload.len()).is_err()
        {
            return Some(self.refuse(Refused::OutOfMemory));
        }
        let start = self.offset;
        let end = start + (form.header_len() + payload.len()) as u64;
        let part = Part {
            kind,
            start,
            end,
            payload,
            is_container,
        };
        let pushed = if is_joined {
            self.assembler.push_part(part)
        } else {
            self.assembler.push(part)
        };
        let Ok(pushed) = pushed else {
            return Some(self.refuse(Refused::OutOfMemory));
        };
        self.offset = end;
        self.is_inside = matches!(kind, Kind::First | Kind::Middle);
        match pushed {
            Pushed::Pending => None,
            Pushed::Record { start, is_joined } => {
                self.ending.torn_since = None;
                self.record_form = form;
                let header_len = form.header_len() as u8;
                let span = RecordSpan {
                    offset: start,
                    end_offset: end,
                    data_at: match is_joined {
                        true => DataAt::Joined,
                        false => DataAt::Window { header_len },
                    },
                    is_salvaged: self.salvaged.part.contains(&start),
                };
                if !is_container && !self.info.is_compressed() {
                    return Some(Step::Record(span));
                }
                self.stored = self.stored(span);
                if is_container {
                    self.open(span, payload)
                } else {
                    Some(self.unpack(span, payload))
                }
            }
            Pushed::Skipped(region) => self.skip_own(region),
        }
    }

    /// Unpacks a record in a compressed log. `payload` is the payload of the record's last
    /// fragment.
    #[cold]
    fn unpack(&mut self, span: RecordSpan, payload: &[u8]) -> Step {
        let frame = match span.data_at {
            DataAt::Joined => self.assembler.joined(),
            DataAt::Window { .. } => payload,
            DataAt::Unpacked | DataAt::Container { .. } => {
                unreachable!("a compressed record is joined, and unpacked once")
            }
        };
        match self.unpacker.unpack(span, frame) {
            Ok(()) => Step::Record(RecordSpan {
                data_at: DataAt::Unpacked,
                ..span
            }),
            Err(Failed::Bad(reason)) => self.skip(SkippedRegion::new(span.offset..span.end_offset, reason)),
            Err(Failed::Refused(refused)) => self.refuse_again(span, refused),
        }
    }

    #[cold]
    pub(super) fn refuse(&mut self, refused: Refused) -> Step {
        self.retry.refused = Some(refused);
        Step::NeedMore
    }

    /// Handles the rare cases: the edges of the range, trailers, faults and the end of the file.
    fn other(&mut self, found: Found, bytes: &[u8], window: Window<'_>) -> Option<Step> {
        let start = self.offset;
        let (continues, len) = match found {
            Found::Fragment(kind, valid) => (matches!(kind, Kind::Middle | Kind::Last), valid.end),
            Found::Trailer { is_zero } if is_zero || self.is_inside => {
                self.offset += bytes.len() as u64;
                return None;
            }
            Found::Trailer { .. } | Found::Stale => (false, bytes.len()),
            Found::Metadata(_, valid) => (false, valid.end),
            Found::Fault { len, .. } | Found::EndTrailer { len } => (false, len),
            Found::Nothing | Found::Incomplete => (false, 0),
        };
        if start >= self.bounds.end {
            if self.bounds.is_before_first {
                self.ending.end = Some(End::Clean {
                    offset: self.bounds.end,
                });
                return None;
            }
            if !continues {
                // The rest of the container belongs to the next range.
                let is_in_container = self.opened.is_divided_at(self.bounds.end);
                let end = if is_in_container { self.bounds.end } else { start };
                return self.finish(found, end);
            }
        }
        let is_ours = start >= self.bounds.start && !(self.bounds.is_before_first && continues);
        match found {
            Found::Nothing => return self.finish(found, window.end_offset()),
            Found::Fragment(kind, valid) if is_ours => {
                return self.fragment(kind, valid.form, valid.payload(bytes), window);
            }
            _ => {}
        }
        if is_ours {
            self.bounds.is_before_first = false;
            if !self.assembler.is_idle() {
                // The next call will read these bytes again.
                return self.abandon(found);
            }
        } else {
            // The container started before the range.
            self.assembler.abandon(Interruption::Damage);
        }
        if let Found::Metadata(Metadata::Mark, valid) = found
            && let Some(unsupported) = self.unsupported_mark(bytes, valid.payload(bytes))
        {
            return Some(self.refuse(Refused::Unsupported(unsupported)));
        }
        let passed = match found {
            Found::Fault { reason, .. } if self.policy.on_corruption == OnCorruption::Salvage => {
                self.lost_len(reason, bytes, len)
            }
            _ => len,
        };
        if matches!(found, Found::Fault { .. }) && self.is_before_sought() {
            // The bytes from the target of the seek onward have been read before, so only bytes
            // before the target can be lost.
            self.offset = self.bounds.start.min(self.offset + passed as u64);
            self.is_inside = false;
            return None;
        }
        self.offset += passed as u64;
        self.is_inside = matches!(found, Found::Fragment(Kind::First | Kind::Middle, _));
        let (reason, leveldb_len) = match found {
            Found::Fault {
                reason, leveldb_len, ..
            } => (reason, leveldb_len),
            Found::Metadata(metadata, valid) => {
                let kind = bytes[KIND_AT];
                let is_canonical = self.apply(metadata, start, bytes, valid.payload(bytes));
                let reason = if is_canonical {
                    Reason::Metadata { kind }
                } else {
                    Reason::BadMetadata { kind }
                };
                (reason, None)
            }
            Found::EndTrailer { .. } => {
                self.recycled.log_end = Some(self.offset);
                (Reason::EndTrailer, None)
            }
            Found::Stale => (Reason::LostWrite, None),
            _ => (Reason::NonzeroTrailer, None),
        };
        let region = SkippedRegion::new(start..self.offset, reason).with_leveldb_len(leveldb_len);
        is_ours.then(|| self.skip(region))
    }

    /// Returns why a log with this mark can't be read, or `None` if it can. `bytes` starts with the
    /// mark, whose payload is `payload`. A mark after damage is ignored, because it may be part of
    /// another record's payload.
    #[cold]
    fn unsupported_mark(&self, bytes: &[u8], payload: &[u8]) -> Option<Unsupported> {
        let mark = Mark::decode(payload).filter(|_| self.is_evidence(bytes))?;
        mark.unsupported(self.offset)
    }

    /// Applies the metadata record at the start of `bytes`. `start` is the record's file offset.
    /// Returns whether the record has the form that an engine writes.
    fn apply(&mut self, metadata: Metadata, start: u64, bytes: &[u8], payload: &[u8]) -> bool {
        // Metadata after damage must not change how the following blocks are read. The same applies
        // to metadata with a wrong checksum, which is read if verification is off. A log's
        // compression is stored in the first fragment of the file, where a reader of a later range
        // looks for it.
        let is_valid = self.has_valid_checksum(bytes);
        let is_salvaged = self.salvaged.part.contains(&start);
        let is_believed = match metadata {
            Metadata::SetCompression => is_valid && start == self.origin,
            Metadata::Mark => is_valid && !is_salvaged,
            Metadata::LateSetCompression | Metadata::TimestampSizes | Metadata::Predecessor => true,
        };
        let is_canonical = is_believed && self.info.apply(metadata, payload);
        if metadata == Metadata::Mark {
            // Only the mark at the start of the file sets the compression. A later mark comes from
            // another file that was appended to this one.
            if is_canonical && start == self.origin && self.format.dialect.is_packed() {
                self.format.compression = Mark::decode(payload).and_then(Mark::compression);
            }
            return is_canonical;
        }
        self.format.compression = self.format().compression;
        self.update_assembler();
        is_canonical
    }

    /// Returns how many of a fault's `len` bytes are lost. `bytes` is the rest of the block,
    /// starting with the fault.
    #[cold]
    fn lost_len(&mut self, reason: Reason, bytes: &[u8], len: usize) -> usize {
        if !matches!(
            reason,
            Reason::BadLength { .. } | Reason::ChecksumMismatch { .. } | Reason::ZeroHeader
        ) {
            return len;
        }
        let block = self.grid().block_start(self.offset);
        let left = self.grid().block_left(self.offset);
        let may_scan = || self.salvaged.scanned.replace(block) != Some(block);
        let lost_len = resync::resume(&self.format, self.recycled.form, bytes, left, may_scan);
        self.salvage_from(self.offset + lost_len as u64);
        lost_len
    }

    /// Marks the rest of this block, from `start` onward, as salvaged. Further damage in the block
    /// does not shrink the salvaged part.
    pub(super) fn salvage_from(&mut self, start: u64) {
        let left = self.grid().block_left(self.offset);
        if !self.salvaged.part.contains(&self.offset) {
            self.salvaged.part = start..self.offset.saturating_add(left as u64);
        }
    }

    /// Checks whether the fragment at the start of `bytes` has a valid checksum in this dialect.
    /// The checksum is verified even if the policy turns verification off.
    pub(super) fn has_valid_checksum(&self, bytes: &[u8]) -> bool {
        self.policy.verify_checksums || self.format.dialect.valid(bytes, true).is_some()
    }

    /// Checks whether this fragment may determine how the rest of the log is read.
    pub(super) fn is_evidence(&self, bytes: &[u8]) -> bool {
        !self.is_salvaged() && self.has_valid_checksum(bytes)
    }

    /// Checks whether the decoder's offset is after damage in the same block. Bytes after damage
    /// may be part of a payload, so they must not change how the rest of the log is read. They
    /// aren't evidence of the log's number, the form of its fragments, its compression or its end.
    pub(super) fn is_salvaged(&self) -> bool {
        self.salvaged.part.contains(&self.offset)
    }

    /// Abandons the pending record, because `next` does not continue it.
    pub(super) fn abandon(&mut self, next: Found) -> Option<Step> {
        let interruption = match next {
            Found::Nothing
            | Found::EndTrailer { .. }
            | Found::Fault {
                reason: Reason::TornTail,
                ..
            } => Interruption::EndOfFile,
            Found::Fragment(..) => Interruption::NewRecord,
            _ => Interruption::Damage,
        };
        let mut region = self.assembler.abandon(interruption)?;
        // If the file ends with an incomplete header, or with a fragment that extends past the end
        // of the file, LevelDB assumes a clean end and silently drops the pending record.
        if let Found::Fault {
            len,
            reason,
            leveldb_len: None,
        } = next
            && (len < HEADER_LEN || matches!(reason, Reason::BadLength { .. }))
        {
            region.leveldb_len = None;
        }
        self.skip_own(region)
    }

    /// Reports `region` unless it starts before the range. A region that starts earlier comes from
    /// a container that belongs to the previous range.
    pub(super) fn skip_own(&mut self, region: SkippedRegion) -> Option<Step> {
        (region.start >= self.bounds.start).then(|| self.skip(region))
    }

    /// Abandons the pending record, and ends reading at `offset`, where `next` was found.
    fn finish(&mut self, next: Found, offset: u64) -> Option<Step> {
        if let Some(step) = self.abandon(next) {
            return Some(step);
        }
        self.ending.finish(offset);
        None
    }

    /// Reports `region`. Stops reading if the region is damage and the policy is to stop there.
    pub(super) fn skip(&mut self, mut region: SkippedRegion) -> Step {
        if self.salvaged.part.contains(&region.start) {
            // LevelDB has already abandoned this block.
            region.leveldb_len = None;
        }
        match region.reason.severity() {
            Severity::TornTail => self.ending.torn_since = self.ending.torn_since.or(Some(region.start)),
            // These regions come after the end of the log, so they don't affect how it ended.
            _ if matches!(region.reason, Reason::Stale | Reason::EndTrailer) => {}
            _ => self.ending.torn_since = None,
        }
        if self.policy.on_corruption == OnCorruption::Stop && region.reason.severity() == Severity::Corruption {
            self.offset = region.end;
            self.opened.clear();
            self.ending.end = Some(End::Stopped { offset: region.start });
        }
        Step::Skipped(region)
    }
}
