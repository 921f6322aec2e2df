//! How to treat bytes that are not a valid fragment while the file is being written.

use std::io;
use std::time::Instant;

use super::Follower;
use super::live_file::Look;
use super::poll::WaitReason;
use crate::detect::{DETECT_LEN, ends_in_first_fragment};
use crate::dialect::{Dialect, Form, Role};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, KIND_AT};
use crate::fragment::{Found, find};

/// The maximum number of blocks that one poll probes, so that no poll takes long: 8 MiB. From the
/// page cache, that is less than a millisecond.
const PROBES_MAX: usize = 256;

/// How to treat bytes that are not a valid fragment.
pub(super) enum AtFault {
    Wait(WaitReason),
    /// They must be read again before they are reported.
    ReadAgain,
    /// They never will be a valid fragment.
    Final,
}

/// What is known about the bytes that have not been reported.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The beginning of the last block that is known to begin with a valid fragment, and the form
    /// of that fragment. Everything before it has been written.
    passed: Option<(u64, Form)>,
    /// For a block that begins with a valid fragment.
    probes: Probes,
    /// For anything after the bytes that show the format of the log.
    head_probes: Probes,
    /// Whether this poll left blocks of a file that has been replaced to the next poll.
    pub(super) is_probing: bool,
    pub(super) suspect: Option<Suspect>,
    /// The offset of bytes that are not a valid fragment and never will be.
    pub(super) condemned: Option<u64>,
}

/// Which blocks polls probe: the first at each poll, because the writer continues there unless a
/// crash left a hole of several blocks, and the others in turn, again and again, because any of them
/// may be begun, or completed, at any time.
///
/// A file that has been replaced may not be polled again after that has been reported, so that all
/// blocks are probed before, and again before it is reported another time: its writer may have
/// continued in the meantime.
#[derive(Debug, Default, Clone, Copy)]
struct Probes {
    /// The next block to probe after the first one. 0 if they begin again.
    next: u64,
    /// Whether all blocks have been probed since the file was seen to be replaced, or since that was
    /// last reported. `None` if they have not begun.
    has_probed_all: Option<bool>,
}

impl Probes {
    /// Whether `is_it` is true of any of the next blocks to probe from `first` on, up to the first
    /// such block. [`is_unfinished`](Self::is_unfinished) says whether there are more.
    fn any(&mut self, first: u64, look: Look, mut is_it: impl FnMut(u64) -> io::Result<bool>) -> io::Result<bool> {
        match self.has_probed_all {
            None if look.is_rotated => (self.next, self.has_probed_all) = (0, Some(false)),
            Some(_) if !look.is_rotated => self.has_probed_all = None,
            _ => {}
        }
        let mut begin = first;
        for _ in 0..PROBES_MAX {
            if begin >= look.file_len {
                self.next = 0;
                self.has_probed_all = self.has_probed_all.map(|_| true);
                break;
            }
            if is_it(begin)? {
                return Ok(true);
            }
            self.next = self.next.max(begin + BLOCK_LEN as u64);
            begin = self.next;
        }
        Ok(false)
    }

    /// Whether further blocks of a file that has been replaced must be probed before that is
    /// reported.
    fn is_unfinished(&self) -> bool {
        self.has_probed_all == Some(false)
    }
}

/// Bytes that look damaged, since when, and how often they were read again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspect {
    offset: u64,
    since: Instant,
    polls: u32,
}

impl Follower {
    /// How to treat the window, which begins at `at` with bytes that are not a valid fragment. The
    /// file was in the state `look` when it was read.
    pub(super) fn judge(&mut self, at: u64, look: Look, is_confirmed: bool) -> io::Result<AtFault> {
        if self.judged.condemned == Some(at) {
            return Ok(AtFault::Final);
        }
        let format = self.decoder.format();
        let left = format.dialect.block_left(at);
        let block_end = at + left as u64;
        let bytes = self.file.window().at(at, left);
        let is_stale = find(&format, bytes, left, false, true) == Found::Stale;
        let is_file_header = at == 0 && !format.dialect.prefix.is_empty();
        if self.is_passed(block_end, look)? {
            // If a write was concurrent with the read, its end may be visible and its beginning
            // not.
            return Ok(if is_confirmed {
                AtFault::Final
            } else {
                AtFault::ReadAgain
            });
        }
        if is_stale {
            // This log will be written over the older one.
            return Ok(AtFault::Wait(WaitReason::Stale));
        }
        let bytes = self.file.window().at(at, left);
        let mut reason = if is_file_header {
            let first_block = self.file.window().at(0, format.dialect.first_block_end());
            reason_to_wait_at_file_header(format.dialect.prefix, first_block)
        } else {
            reason_to_wait(&format.dialect, bytes, left, self.decoder.has_parts())
        };
        let is_undetected =
            self.options.dialect.is_none() && !self.is_identified && !self.has_reported && !is_file_header;
        let is_incomplete_in =
            |dialect: &Dialect| reason_to_wait(dialect, bytes, left, false) == WaitReason::Incomplete;
        let is_begun =
            ends_in_first_fragment(bytes) || [Dialect::ROCKSDB, Dialect::PEBBLE].iter().any(is_incomplete_in);
        if is_undetected && is_begun {
            // The first fragment determines the dialect. Its header may be a longer one that is
            // only partly written.
            reason = WaitReason::Incomplete;
        }
        if reason == WaitReason::Suspect && format.log_number.is_some() {
            // It may be the middle of an older log. Only later fragments of this log show that it
            // is not.
            reason = WaitReason::Stale;
        }
        if reason != WaitReason::Suspect {
            self.judged.suspect = None;
            return Ok(AtFault::Wait(reason));
        }
        let suspect = match self.judged.suspect {
            Some(suspect) if suspect.offset == at => Suspect {
                polls: suspect.polls.saturating_add(1),
                ..suspect
            },
            _ => Suspect {
                offset: at,
                since: Instant::now(),
                polls: 0,
            },
        };
        self.judged.suspect = Some(suspect);
        let is_spent = suspect.polls >= self.options.retry_polls && suspect.since.elapsed() >= self.options.retry_time;
        Ok(if is_spent {
            AtFault::Final
        } else {
            AtFault::Wait(reason)
        })
    }

    /// Whether any block from `block_end` on begins with a valid fragment.
    fn is_passed(&mut self, block_end: u64, look: Look) -> io::Result<bool> {
        let mut block = vec![0; BLOCK_LEN];
        let format = self.decoder.format();
        // A log with a number has fragments of one form: those of another form are left over from
        // an older log.
        let own_form = self.decoder.form().filter(|_| format.log_number.is_some());
        let is_own = |form| own_form.is_none_or(|own| own == form);
        if self.judged.passed.is_some_and(|(_, form)| !is_own(form)) {
            // The form was not known when these blocks were probed.
            (self.judged.passed, self.judged.probes) = (None, Probes::default());
        }
        if self.judged.passed.is_some_and(|(passed, _)| passed >= block_end) {
            return Ok(true);
        }
        let (file, passed) = (&self.file, &mut self.judged.passed);
        let is_passed = self.judged.probes.any(block_end, look, |begin| {
            // Most blocks are zeros or left over from an older log, and reading a gigabyte of them
            // would fill the page cache.
            let mut len = file.read_at(begin, &mut block[..Form::Synced.header_len()])?;
            let meaning = format.dialect.meaning(block[KIND_AT]);
            let is_fragment = matches!(meaning.role, Role::Fragment(_));
            if is_fragment && is_own(meaning.form) && !format.is_stale(&block, meaning.form) {
                len = file.read_at(begin, &mut block)?;
            }
            let found = find(&format, &block[..len], BLOCK_LEN, false, true);
            if let Found::Fragment { form, .. } = found
                && is_own(form)
            {
                *passed = Some((begin, form));
                return Ok(true);
            }
            Ok(false)
        })?;
        self.judged.is_probing |= !is_passed && self.judged.probes.is_unfinished();
        Ok(is_passed)
    }

    /// Whether anything is written after the bytes that show the format of the log, however many
    /// zeros are between: if so, all of these bytes are written.
    pub(super) fn is_head_written(&mut self) -> io::Result<bool> {
        let look = self.file.look()?;
        let file = &self.file;
        let is_written = self.judged.head_probes.any(DETECT_LEN as u64, look, |begin| {
            // Where blocks begin is not known, but they do so less than a header after `begin`, and
            // each header has a byte that is not zero.
            let mut bytes = [0; 2 * HEADER_LEN];
            file.read_at(begin, &mut bytes)?;
            Ok(bytes.iter().any(|&byte| byte != 0))
        })?;
        self.judged.is_probing |= !is_written && self.judged.head_probes.is_unfinished();
        Ok(is_written)
    }

    /// Whether the rotation may be reported: all blocks of the old file have been probed. If so, they
    /// are probed again before it is reported another time.
    pub(super) fn may_report_rotation(&mut self) -> bool {
        if self.judged.is_probing {
            return false;
        }
        self.judged.probes.has_probed_all = None;
        self.judged.head_probes.has_probed_all = None;
        true
    }
}

/// Why to wait at a file header that is not `prefix`, or not yet: it begins `first_block`, the part
/// written so far of the file up to the end of the first block.
fn reason_to_wait_at_file_header(prefix: &[u8], first_block: &[u8]) -> WaitReason {
    let written_len = first_block
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    match &first_block[..written_len] {
        _ if first_block.is_empty() => WaitReason::Idle,
        [] => WaitReason::Zeros,
        // Zeros from some byte on may be unwritten space.
        written if first_block.len() < prefix.len() || prefix.starts_with(written) => WaitReason::Incomplete,
        _ => WaitReason::Suspect,
    }
}

/// Why to wait at `bytes`, which are not a valid fragment: the part written so far of the last
/// `left` bytes of a block.
///
/// Zeros at the end of `bytes` may be unwritten space, as in a preallocated file. Writes become
/// visible in order, so a fragment is complete if its last byte, or any byte after it, is not zero.
fn reason_to_wait(dialect: &Dialect, bytes: &[u8], left: usize, has_parts: bool) -> WaitReason {
    let written_len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match bytes.split_first_chunk().map(|(header, _)| Header::decode(header)) {
        _ if has_parts && written_len == 0 => WaitReason::Incomplete,
        _ if left < HEADER_LEN || bytes.is_empty() => WaitReason::Idle,
        _ if written_len == 0 => WaitReason::Zeros,
        // The last byte of a header, its type, is not zero, so it shows that the header is
        // complete.
        _ if written_len < HEADER_LEN => WaitReason::Incomplete,
        Some(Header { kind: 0, len: 0, .. }) => WaitReason::Zeros,
        Some(header) => {
            let forms = [Some(dialect.meaning(header.kind).form), dialect.other_form(header.kind)];
            let is_incomplete = forms.into_iter().flatten().any(|form| {
                let len = form.header_len() + usize::from(header.len);
                written_len < len && len <= left
            });
            if is_incomplete {
                WaitReason::Incomplete
            } else {
                WaitReason::Suspect
            }
        }
        None => WaitReason::Incomplete,
    }
}
