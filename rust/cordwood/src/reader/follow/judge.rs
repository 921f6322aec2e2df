//! Decides how to treat bytes that are not a valid fragment while the file is still being written.

use std::io;
use std::time::Instant;

use Answer::{Final, ReadAgain, Wait};

use super::Follower;
use super::follower::{Last, State};
use super::live_file::FileStatus;
use super::poll::WaitReason::{Idle, Incomplete, Stale, Suspect, Zeros};
use super::unreported::{Answer, Probes, Retrying, Seen};
use crate::damage::resync::written_len;
use crate::detect::{DETECT_LEN, ends_in_first_fragment};
use crate::dialect::{Dialect, Form, LogFormat, Role};
use crate::error::Error;
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, KIND_AT, without_zeros};
use crate::fragment::{Found, find, is_written, stated_end};
use crate::trace::trace;

/// What is known about the bytes at the point where the decoder stopped.
#[derive(Debug, Default)]
struct Place {
    /// Whether a later block starts with a valid fragment.
    is_passed: bool,
    /// Whether the bytes are a fragment from another log.
    is_stale: bool,
    /// Whether the bytes may be an incomplete first fragment. This is possible if the dialect of
    /// the log is not known and, in at least one dialect, the fragment would extend past the
    /// written bytes.
    may_be_first: bool,
    /// Whether the bytes follow the start of an incomplete record.
    is_in_record: bool,
    /// Whether the file ends at this point, or only the block's trailer is left.
    is_edge: bool,
    /// Whether the bytes are all zeros.
    is_zero: bool,
    /// Whether the bytes are an incomplete fragment header, or part of the file header.
    is_part_of_header: bool,
    /// Whether the bytes are a header of type 0 and length 0.
    is_hole: bool,
    /// Whether the bytes are an incomplete fragment: a writer of the dialect could have written its
    /// header, and the fragment extends past the written bytes.
    is_part_of_fragment: bool,
    /// Whether the bytes may be left over from an older log, which is only possible in a log with a
    /// number. In such a log, the bytes are treated as damage only once a later fragment from the
    /// same log has been found.
    may_be_older: bool,
}

/// A line of the table: a number, a condition and an answer.
type Line = (u8, fn(&Place) -> bool, Answer);

/// The table in `docs/format/following.md`, section "The answer of a poll". The first line whose
/// condition holds gives the answer. Line 1 is checked before the facts about the bytes are
/// gathered. `following.md` describes two exceptions: one below its table, the other under
/// "Dialects". In this code, each exception comes before the line that it overrides.
const TABLE: [Line; 11] = [
    (2, |place| place.is_passed, Final),
    (3, |place| place.is_stale, Wait(Stale)),
    (8, |place| place.may_be_first, Wait(Incomplete)),
    (4, |place| place.is_zero && place.is_in_record, Wait(Incomplete)),
    (4, |place| place.is_edge, Wait(Idle)),
    (5, |place| place.is_zero, Wait(Zeros)),
    (6, |place| place.is_part_of_header, Wait(Incomplete)),
    (7, |place| place.is_hole, Wait(Zeros)),
    (8, |place| place.is_part_of_fragment, Wait(Incomplete)),
    (9, |place| place.may_be_older, Wait(Stale)),
    (9, |_| true, Wait(Suspect)),
];

impl Follower {
    /// Decides how to treat the bytes at the start of the window, which are not a valid fragment.
    pub(super) fn judge(&mut self, seen: Seen) -> io::Result<Answer> {
        if self.unreported.known_bad == Some(seen.at) {
            return Ok(Final);
        }
        let place = self.place(seen)?;
        let line = TABLE.iter().find(|(_, applies, _)| applies(&place));
        let &(line, _, answer) = line.expect("the last line applies to all");
        trace!("follow: at {}, line {line}: {answer:?}; {place:?}", seen.at);
        let is_suspect = answer == Wait(Suspect);
        if !is_suspect {
            self.unreported.retrying = None;
        }
        Ok(match answer {
            // If a write was in progress during the read, the read may have returned the end of
            // that write but not its start.
            Final if !seen.is_read_again => ReadAgain,
            _ if is_suspect && self.has_retried(seen.at) => Final,
            answer => answer,
        })
    }

    /// Counts how often the bytes at `at`, which look damaged, are reread. Returns whether they
    /// have been reread often enough and for long enough.
    fn has_retried(&mut self, at: u64) -> bool {
        let retrying = match self.unreported.retrying {
            Some(retrying) if retrying.offset == at => Retrying {
                polls: retrying.polls.saturating_add(1),
                ..retrying
            },
            _ => Retrying {
                offset: at,
                since: Instant::now(),
                polls: 0,
            },
        };
        self.unreported.retrying = Some(retrying);
        retrying.polls >= self.options.retry_polls && retrying.since.elapsed() >= self.options.retry_time
    }

    fn place(&mut self, seen: Seen) -> io::Result<Place> {
        let (format, grid) = (self.decoder.format(), self.decoder.grid());
        let dialect = format.dialect;
        let left = grid.block_left(seen.at);
        let is_passed = self.is_passed(seen.at + left as u64, seen.status)?;
        let bytes = self.file.window().at(seen.at, left);
        let place = Place {
            is_passed,
            is_stale: find(&format, bytes, left, true, true) == Found::Stale,
            may_be_older: format.log_number.is_some() && written_len(&format, self.decoder.form(), bytes).is_none(),
            ..Place::default()
        };
        if seen.at == grid.origin && !dialect.prefix().is_empty() {
            let first_block = self.file.window().at(seen.at, grid.first_block_len());
            let written = without_zeros(first_block);
            return Ok(Place {
                is_edge: first_block.is_empty(),
                is_zero: written.is_empty(),
                is_part_of_header: first_block.len() < dialect.prefix().len() || dialect.prefix().starts_with(written),
                ..place
            });
        }
        let written = without_zeros(bytes);
        let header = written.first_chunk().map(Header::decode);
        let is_edge = left < HEADER_LEN || bytes.is_empty();
        let is_part_of_header = !is_edge && !written.is_empty() && header.is_none();
        let is_part_in = |format: &LogFormat| {
            let is_part = |header| is_part_of_fragment(format, header, written.len(), left);
            !is_edge && header.is_some_and(|header| is_part(header) && !self.decoder.is_misplaced(header))
        };
        let is_undetected = matches!(self.state, State::Identifying) && self.options.dialect.is_none();
        Ok(Place {
            may_be_first: is_undetected
                && self.last == Last::Nothing
                && (ends_in_first_fragment(bytes)
                    || is_part_of_header
                    || [Dialect::ROCKSDB, Dialect::PEBBLE]
                        .map(LogFormat::new)
                        .iter()
                        .any(is_part_in)),
            is_in_record: self.decoder.has_parts(),
            is_edge,
            is_zero: written.is_empty(),
            is_part_of_header,
            is_hole: header.is_some_and(Header::is_zero),
            is_part_of_fragment: is_part_in(&format),
            ..place
        })
    }

    /// Checks whether any block from `block_end` onward starts with a valid fragment.
    fn is_passed(&mut self, block_end: u64, status: FileStatus) -> io::Result<bool> {
        let mut block = vec![0; BLOCK_LEN];
        let format = self.decoder.format();
        // All fragments in a log with a number have the same form, so a fragment of any other form
        // is left over from an older log.
        let own_form = self.decoder.form().filter(|_| format.log_number.is_some());
        let is_own = |form| own_form.is_none_or(|own| own == form);
        if self.unreported.passed.is_some_and(|(_, form)| !is_own(form)) {
            // These blocks were probed before the form of the log's fragments was known.
            (self.unreported.passed, self.unreported.probes) = (None, Probes::default());
        }
        if self.unreported.passed.is_some_and(|(passed, _)| passed >= block_end) {
            return Ok(true);
        }
        let (file, passed) = (&self.file, &mut self.unreported.passed);
        let is_passed = self.unreported.probes.any(block_end, status, |start| {
            // At first, only the header is read. Most of these blocks contain zeros or the remains
            // of an older log, and reading a gigabyte of them would fill the page cache.
            let mut len = file.read_at(start, &mut block[..Form::Synced.header_len()])?;
            let meaning = format.dialect.meaning(block[KIND_AT]);
            let is_fragment = matches!(meaning.role, Role::Fragment(_));
            if is_fragment && is_own(meaning.form) && !format.is_stale(&block, meaning.form) {
                len = file.read_at(start, &mut block)?;
            }
            let found = find(&format, &block[..len], BLOCK_LEN, false, true);
            if let Found::Fragment(_, valid) = found
                && is_own(valid.form)
            {
                *passed = Some((start, valid.form));
                return Ok(true);
            }
            Ok(false)
        })?;
        self.unreported.is_probing |= !is_passed && self.unreported.probes.is_unfinished();
        Ok(is_passed)
    }

    /// Checks whether all bytes that determine the log's format have been written. This is the case
    /// if data follows these bytes, even after a long run of zeros.
    pub(super) fn is_head_written(&mut self) -> Result<bool, Error> {
        let status = self.file.status()?;
        let file = &self.file;
        let first = file.origin + DETECT_LEN as u64;
        let is_written = self.unreported.head_probes.any(first, status, |start| {
            // The positions of the blocks are unknown. However, a block starts less than one header
            // length after `start`, and every header contains a nonzero byte.
            let mut bytes = [0; 2 * HEADER_LEN];
            file.read_at(start, &mut bytes)?;
            Ok(bytes.iter().any(|&byte| byte != 0))
        })?;
        self.unreported.is_probing |= !is_written && self.unreported.head_probes.is_unfinished();
        Ok(is_written)
    }
}

/// Checks whether a fragment extends past the `written_len` bytes written so far. `left` is the
/// number of bytes to the end of the block. In a dialect that may gain new types, a fragment of
/// unknown type may have a header of either form.
fn is_part_of_fragment(format: &LogFormat, header: Header, written_len: usize, left: usize) -> bool {
    let LogFormat { dialect, .. } = format;
    let is_to_come = || {
        let forms = [Some(dialect.meaning(header.kind).form), dialect.other_form(header.kind)];
        let mut ends = forms
            .into_iter()
            .flatten()
            .map(|form| form.header_len() + usize::from(header.len));
        let is_unknown = matches!(dialect.meaning(header.kind).role, Role::Unknown | Role::Ignorable);
        is_unknown && dialect.has_log_numbers() && !header.is_zero() && ends.any(|end| written_len < end && end <= left)
    };
    (written_len < stated_end(format, header) && is_written(format, header, left)) || is_to_come()
}
