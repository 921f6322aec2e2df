//! Assembles fragments into records and containers, using a state machine over FULL, FIRST, MIDDLE
//! and LAST.
//!
//! Source: LevelDB `db/log_reader.cc`, `ReadRecord`; `docs/format/reading.md`, "Fragments into
//! records".

use std::collections::TryReserveError;
use std::ops::Range;

use crate::container::{self, COUNT_MAX};
use crate::copy::{append, try_reserve};
use crate::damage::{Reason, SkippedRegion};
use crate::format::Kind;

/// A fragment and its position in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) kind: Kind,
    /// The file offset of the header.
    pub(crate) start: u64,
    /// The file offset just past the payload.
    pub(crate) end: u64,
    pub(crate) payload: &'a [u8],
    /// Whether the fragment is part of a container. Record fragments never continue a container,
    /// and container fragments never continue a record.
    pub(crate) is_container: bool,
}

/// The space a record or a container takes up in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) fragment_count: u64,
    /// The total length of the headers, in bytes.
    pub(crate) header_len: u64,
    /// The total length of the payloads, in bytes. This is also the length of the record's data,
    /// unless the record is compressed or stored in a container.
    pub(crate) payload_len: u64,
    /// The total length of the trailers between the fragments, in bytes.
    pub(crate) trailer_len: u64,
}

/// The result of pushing a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The fragment starts or continues a record.
    Pending,
    /// The fragment completes the record that started at `start`. If `is_joined`, the data is in
    /// [`Assembler::joined`]. Otherwise, it is the fragment's own payload.
    Record { start: u64, is_joined: bool },
    /// The fragment is abandoned, along with the pending record.
    Skipped(SkippedRegion),
}

/// The event that interrupts a pending record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// A FULL or FIRST fragment.
    NewRecord,
    /// A skipped region.
    Damage,
    /// The end of the file, with or without a torn tail.
    EndOfFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No record is pending.
    #[default]
    Idle,
    /// A record's FIRST fragment and any MIDDLE fragments have been read. Their payloads, if kept,
    /// are in `joined` or in the window.
    InRecord { start: u64, end: u64 },
    /// A record was refused because it is too large. Some of its remaining fragments may have been
    /// read, but they aren't kept.
    InTooLarge { start: u64, end: u64 },
}

/// The maximum length, in bytes, of a record that is left in the window for the caller to copy. A
/// reader reads this many bytes at a time. Longer data would already have been evicted from the
/// processor's cache by the time it is copied.
const IN_WINDOW_MAX: u64 = 1 << 18;

/// The assembler's state between two fragments.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    state: State,
    /// Whether the pending record, or the last multi-fragment record, is a container. A container's
    /// payloads are always joined, because the container is read even if its records aren't needed.
    is_container: bool,
    /// Whether to keep payloads from now on. If not, they are dropped and just their total length
    /// is kept.
    pub(crate) keeps: bool,
    joined: Vec<u8>,
    /// Whether to leave a record in the window if all of its payloads are there. A change takes
    /// effect at the next record. The payloads can be [joined](Self::join) at any time before the
    /// window changes.
    pub(crate) leaves: bool,
    /// Whether the window contains all payloads of the pending record or, if no record is pending,
    /// of the last multi-fragment record. If true, no part of the record is in `joined`.
    is_in_window: bool,
    /// The space that the fragments of the record take up, whether or not their payloads are kept.
    /// The trailers are counted when the record is complete.
    stored: Stored,
    /// The maximum length of a record, in bytes.
    record_len_max: u64,
    /// The `record_len_max` for compressed frames and for containers. It is separate so that a
    /// reader can lift the limit on records and keep the one on frames and containers.
    frame_len_max: u64,
}

impl Assembler {
    pub(crate) fn new(record_len_max: u64, frame_len_max: u64) -> Self {
        Assembler {
            keeps: true,
            record_len_max,
            frame_len_max,
            ..Assembler::default()
        }
    }

    /// Checks whether the payloads of the pending record, or of the last multi-fragment record, are
    /// in the window rather than in [`joined`](Self::joined).
    pub(crate) fn is_in_window(&self) -> bool {
        self.is_in_window
    }

    /// Joins the payloads that `payloads` yields from the window, and makes room for `more_len`
    /// more bytes. If there isn't enough memory, the state does not change.
    pub(crate) fn join<'a>(
        &mut self,
        payloads: impl Iterator<Item = &'a [u8]>,
        more_len: usize,
    ) -> Result<(), TryReserveError> {
        self.joined.clear();
        if self.keeps_pending() {
            try_reserve(&mut self.joined, self.stored.payload_len as usize + more_len)?;
            payloads.for_each(|payload| append(&mut self.joined, payload));
        }
        self.is_in_window = false;
        Ok(())
    }

    /// Returns the range of file offsets from the start of the pending record to the end of its
    /// latest fragment, if the record's payloads are in the window.
    pub(crate) fn pending_in_window(&self) -> Option<Range<u64>> {
        match self.state {
            State::InRecord { start, end } if self.is_in_window => Some(start..end),
            _ => None,
        }
    }

    /// Like [`pending_in_window`](Self::pending_in_window), but returns the range only if
    /// `payload_len` more bytes would make the record longer than [`IN_WINDOW_MAX`].
    pub(crate) fn outgrows_window(&self, payload_len: usize) -> Option<Range<u64>> {
        self.pending_in_window()
            .filter(|_| self.stored.payload_len + payload_len as u64 > IN_WINDOW_MAX)
    }

    /// Abandons the pending record if some of its bytes were not kept, and returns its start.
    pub(crate) fn take_unkept(&mut self) -> Option<u64> {
        match self.state {
            State::InRecord { start, .. }
                if !self.is_in_window && self.joined.len() as u64 != self.stored.payload_len =>
            {
                self.state = State::Idle;
                Some(start)
            }
            _ => None,
        }
    }

    /// Checks whether the pending record's payloads are kept.
    fn keeps_pending(&self) -> bool {
        self.keeps || self.is_container
    }

    /// Returns the maximum data length of a joined container or record.
    fn joined_len_max(&self, is_container: bool) -> u64 {
        if is_container {
            container::len_max(self.frame_len_max, COUNT_MAX)
        } else {
            self.record_len_max
        }
    }

    /// Checks whether a MIDDLE or LAST fragment may continue the pending record or container.
    /// `is_container` is true if the fragment belongs to a container.
    #[inline]
    pub(crate) fn is_continued_by(&self, is_container: bool) -> bool {
        self.is_idle() || self.is_container == is_container
    }

    /// Checks whether the pending record, or the last multi-fragment record, is a container.
    pub(crate) fn is_container(&self) -> bool {
        self.is_container
    }

    /// Returns the start of the pending container, if there is one.
    #[inline]
    pub(crate) fn pending_container(&self) -> Option<u64> {
        match self.state {
            State::InRecord { start, .. } if self.is_container => Some(start),
            _ => None,
        }
    }

    /// Returns true if no record is pending.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Checks whether a record is pending, meaning that its first fragments have been read.
    pub(crate) fn has_parts(&self) -> bool {
        matches!(self.state, State::InRecord { .. })
    }

    /// Returns true if a record was refused because it is too large, and its end hasn't been read.
    pub(crate) fn is_in_too_large(&self) -> bool {
        matches!(self.state, State::InTooLarge { .. })
    }

    /// Tells the assembler that a record was refused because it is too large, and that its
    /// remainder starts at the file offset `start`.
    pub(crate) fn expect_rest(&mut self, start: u64) {
        self.state = State::InTooLarge { start, end: start };
    }

    /// Returns the data of the last multi-fragment record. The data must have been kept, and
    /// remains available until the next fragment is pushed.
    pub(crate) fn joined(&self) -> &[u8] {
        debug_assert!(!self.is_in_window);
        debug_assert_eq!(self.joined.len() as u64, self.stored.payload_len);
        &self.joined
    }

    /// Returns the space that the last multi-fragment record takes up, even if its data was not
    /// kept. The value remains available until the next fragment is pushed.
    pub(crate) fn stored(&self) -> Stored {
        self.stored
    }

    /// Abandons the pending record, if any, because the next event interrupts it. Call this before
    /// every event other than a MIDDLE or LAST fragment.
    pub(crate) fn abandon(&mut self, interruption: Interruption) -> Option<SkippedRegion> {
        let state = std::mem::replace(&mut self.state, State::Idle);
        let len = Some(self.stored.payload_len);
        match state {
            State::Idle => None,
            State::InTooLarge { start, end } => {
                (start < end).then_some(SkippedRegion::new(start..end, Reason::TooLargeRest))
            }
            State::InRecord { start, end } => {
                let (reason, leveldb_len) = match interruption {
                    Interruption::EndOfFile => (Reason::TornTail, None),
                    Interruption::Damage => (Reason::InterruptedRecord, len),
                    Interruption::NewRecord if self.stored.payload_len == 0 => (Reason::EmptyFirst, None),
                    Interruption::NewRecord => (Reason::MissingEnd, len),
                };
                Some(SkippedRegion::new(start..end, reason).with_leveldb_len(leveldb_len))
            }
        }
    }

    /// Adds the next fragment. If a record is pending, this must be a MIDDLE or LAST fragment that
    /// [continues](Self::is_continued_by) it. Fails if there isn't enough memory to join the
    /// payloads. The same fragment can then be pushed again.
    #[inline]
    pub(crate) fn push(&mut self, fragment: Part<'_>) -> Result<Pushed, TryReserveError> {
        debug_assert!(self.is_idle() || matches!(fragment.kind, Kind::Middle | Kind::Last));
        debug_assert!(self.is_continued_by(fragment.is_container));
        let len_max = self.joined_len_max(fragment.is_container);
        if fragment.kind == Kind::Full && fragment.payload.len() as u64 <= len_max {
            return Ok(Pushed::Record {
                start: fragment.start,
                is_joined: false,
            });
        }
        self.push_part(fragment)
    }

    /// Like [`push`](Self::push), but also joins the payload of a FULL fragment, because the window
    /// doesn't contain it.
    pub(crate) fn push_part(&mut self, fragment: Part<'_>) -> Result<Pushed, TryReserveError> {
        let Part {
            kind,
            start,
            end,
            payload,
            is_container,
        } = fragment;
        let is_end = matches!(kind, Kind::Full | Kind::Last);
        let start = match (kind, self.state) {
            (Kind::Full | Kind::First, _) => {
                self.joined.clear();
                self.is_container = is_container;
                self.is_in_window = self.leaves && self.keeps && !is_container;
                self.stored = Stored::default();
                start
            }
            (_, State::InRecord { start, .. }) => start,
            (_, State::Idle) => {
                let leveldb_len = Some(payload.len() as u64);
                let region = SkippedRegion::new(start..end, Reason::MissingStart).with_leveldb_len(leveldb_len);
                return Ok(Pushed::Skipped(region));
            }
            (_, State::InTooLarge { start: from, end: to }) => {
                let start = if from == to { start } else { from };
                self.state = State::InTooLarge { start, end };
                let region = is_end.then(|| self.abandon(Interruption::EndOfFile)).flatten();
                return Ok(region.map_or(Pushed::Pending, Pushed::Skipped));
            }
        };
        let payload_len = self.stored.payload_len + payload.len() as u64;
        if payload_len > self.joined_len_max(is_container) {
            self.joined = Vec::new();
            if self.record_len_max == u64::MAX && !is_end {
                // The record isn't refused until its last fragment has been read, because its end
                // isn't known until then. No payload is kept in the meantime.
                self.stored.payload_len = payload_len;
                self.state = State::InRecord { start, end };
                return Ok(Pushed::Pending);
            }
            self.is_in_window = false;
            self.stored.payload_len = 0;
            self.state = if is_end {
                State::Idle
            } else {
                State::InTooLarge { start: end, end }
            };
            return Ok(Pushed::Skipped(SkippedRegion::new(start..end, Reason::RecordTooLarge)));
        }
        if self.keeps_pending() && !self.is_in_window {
            try_reserve(&mut self.joined, payload.len())?;
            append(&mut self.joined, payload);
        }
        self.stored.fragment_count += 1;
        self.stored.header_len += end - fragment.start - payload.len() as u64;
        self.stored.payload_len = payload_len;
        if !is_end {
            self.state = State::InRecord { start, end };
            return Ok(Pushed::Pending);
        }
        self.stored.trailer_len = end - start - self.stored.header_len - payload_len;
        self.state = State::Idle;
        Ok(Pushed::Record { start, is_joined: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_to(len_max: u64) -> Assembler {
        Assembler::new(len_max, len_max)
    }

    fn part(kind: Kind, start: u64, payload: &[u8]) -> Part<'_> {
        Part {
            kind,
            start,
            end: start + 7 + payload.len() as u64,
            payload,
            is_container: false,
        }
    }

    fn push(assembler: &mut Assembler, kind: Kind, start: u64, payload: &[u8]) -> Pushed {
        assembler.push(part(kind, start, payload)).expect("memory")
    }

    #[test]
    fn pieces_are_joined_in_order() {
        let mut assembler = limited_to(100);
        assert_eq!(push(&mut assembler, Kind::First, 0, b"ab"), Pushed::Pending);
        assert_eq!(push(&mut assembler, Kind::Middle, 9, b""), Pushed::Pending);
        assert_eq!(
            push(&mut assembler, Kind::Last, 16, b"c"),
            Pushed::Record {
                start: 0,
                is_joined: true
            }
        );
        assert_eq!(assembler.joined(), b"abc");
        assert!(assembler.is_idle());
        assert_eq!(
            push(&mut assembler, Kind::Full, 24, b"d"),
            Pushed::Record {
                start: 24,
                is_joined: false
            }
        );
    }

    #[test]
    fn the_reported_reason_depends_on_what_interrupts_the_record() {
        for (interruption, payload, reason) in [
            (Interruption::NewRecord, b"a".as_slice(), Reason::MissingEnd),
            (Interruption::NewRecord, b"", Reason::EmptyFirst),
            (Interruption::Damage, b"a", Reason::InterruptedRecord),
            (Interruption::Damage, b"", Reason::InterruptedRecord),
            (Interruption::EndOfFile, b"a", Reason::TornTail),
        ] {
            let mut assembler = limited_to(100);
            push(&mut assembler, Kind::First, 7, payload);
            let region = assembler.abandon(interruption).unwrap();
            assert_eq!(
                (region.start, region.end, region.reason),
                (7, 14 + payload.len() as u64, reason)
            );
            assert_eq!(assembler.abandon(interruption), None);
        }
    }

    #[test]
    fn all_parts_of_an_oversized_record_are_discarded() {
        let mut assembler = limited_to(3);
        let region = |start, end, reason| Pushed::Skipped(SkippedRegion::new(start..end, reason));
        assert_eq!(push(&mut assembler, Kind::First, 0, b"abc"), Pushed::Pending);
        assert_eq!(
            push(&mut assembler, Kind::Middle, 10, b"d"),
            region(0, 18, Reason::RecordTooLarge)
        );
        assert_eq!(assembler.joined.capacity(), 0);
        assert_eq!(push(&mut assembler, Kind::Middle, 18, b"ef"), Pushed::Pending);
        assert_eq!(
            push(&mut assembler, Kind::Last, 27, b"g"),
            region(18, 35, Reason::TooLargeRest)
        );
        assert_eq!(
            push(&mut assembler, Kind::Full, 35, b"abcd"),
            region(35, 46, Reason::RecordTooLarge)
        );
        assert_eq!(
            push(&mut assembler, Kind::Full, 46, b"abc"),
            Pushed::Record {
                start: 46,
                is_joined: false
            }
        );
    }

    #[test]
    fn an_unfinished_oversized_record_is_reported_as_one_region() {
        for interruption in [Interruption::NewRecord, Interruption::Damage, Interruption::EndOfFile] {
            let mut assembler = limited_to(3);
            assert!(matches!(
                push(&mut assembler, Kind::First, 0, b"abcd"),
                Pushed::Skipped(_)
            ));
            assert_eq!(assembler.abandon(interruption), None);
        }
    }

    #[test]
    fn only_joined_payloads_reserve_memory() {
        let reserved = |leaves, kind, is_container, len| {
            let mut assembler = limited_to(1_000);
            assembler.leaves = leaves;
            let payload = vec![7; len];
            let part = Part {
                is_container,
                ..part(kind, 0, &payload)
            };
            assembler.push(part).unwrap();
            assembler.joined.capacity()
        };
        for leaves in [false, true] {
            assert_eq!(reserved(leaves, Kind::Full, false, 500), 0);
            assert_eq!(reserved(leaves, Kind::Last, false, 500), 0, "no record is pending");
            assert_eq!(reserved(leaves, Kind::First, false, 1_001), 0, "it is too large");
            assert!(reserved(leaves, Kind::First, true, 500) >= 500);
        }
        assert_eq!(reserved(true, Kind::First, false, 500), 0);
        assert!(reserved(false, Kind::First, false, 1_000) >= 1_000);

        let mut assembler = limited_to(1_000);
        push(&mut assembler, Kind::First, 0, &[7; 300]);
        push(&mut assembler, Kind::Last, 307, &[7; 600]);
        assert!(assembler.joined.capacity() >= 900);
        let capacity = assembler.joined.capacity();
        push(&mut assembler, Kind::First, 914, &[7; 600]);
        assert_eq!(assembler.joined.capacity(), capacity, "the memory is used again");

        let mut assembler = limited_to(1_000);
        assembler.leaves = true;
        push(&mut assembler, Kind::First, 0, &[7; 300]);
        assembler.join([[7; 300].as_slice()].into_iter(), 200).unwrap();
        assert!((500..1_000).contains(&assembler.joined.capacity()));
    }
}
