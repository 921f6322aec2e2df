//! A second, plain implementation of the format. It follows `docs/format/reading.md` line by line,
//! and keeps the whole file in memory. It knows LevelDB's dialect and, with
//! [`containers`](crate::containers), packed logs.
//!
//! The model shares types with the crate (reasons, options, ends), but no code. To read a range,
//! the model selects from the events of the whole file, while the crate starts in the middle of the
//! file.

use std::ops::Range;

use cordwood::damage::{Reason, Severity};
use cordwood::{Dialect, End, OnCorruption, ReadOptions};
use crc32c::{crc32c, crc32c_append};

use crate::BLOCK;
use crate::containers::{self, Budget, MARK};
pub use crate::event::{Event, Refused};

const HEADER: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Returns the place of a fragment of this type (FULL, FIRST, MIDDLE or LAST), and whether it
/// belongs to a container. Returns `None` for any other type.
fn place_of(kind: u8, is_packed: bool) -> Option<(u8, bool)> {
    match kind {
        FULL..=LAST => Some((kind, false)),
        0x40 | 0x42 | 0x44 | 0x46 if is_packed => Some(((kind - 0x40) / 2 + FULL, true)),
        _ => None,
    }
}

// Writing ---------------------------------------------------------------------------------------------------------------------

/// Computes the checksum that a fragment's header contains.
pub fn stored_checksum(kind: u8, payload: &[u8]) -> u32 {
    mask(crc32c_append(crc32c(&[kind]), payload))
}

/// Returns a checksum in the form in which a header stores it.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

/// Returns a fragment with a valid checksum. `payload` may have up to 65,535 bytes, even if a block
/// has less room.
pub fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("a length that a header can state");
    let mut bytes = stored_checksum(kind, payload).to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.push(kind);
    bytes.extend(payload);
    bytes
}

/// Returns the number of bytes from `offset` to the end of its block.
pub fn left_in_block(offset: u64) -> usize {
    BLOCK - (offset % BLOCK as u64) as usize
}

/// Returns the number of zero bytes that precede a header written at `offset`.
pub fn trailer(offset: u64) -> usize {
    let left = left_in_block(offset);
    if left < HEADER { left } else { 0 }
}

/// Returns the bytes that writing `record` adds to a file of `file_len` bytes, and the offset of
/// the record's first header.
pub fn encode(file_len: u64, record: &[u8]) -> (Vec<u8>, u64) {
    let mut bytes = vec![0; trailer(file_len)];
    let record_offset = file_len + bytes.len() as u64;
    let mut done = 0;
    loop {
        let room = left_in_block(file_len + bytes.len() as u64) - HEADER;
        let start = done;
        done = record.len().min(start + room);
        let kind = match (bytes.len() < HEADER, done == record.len()) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        bytes.extend(fragment(kind, &record[start..done]));
        if done == record.len() {
            return (bytes, record_offset);
        }
    }
}

// Reading, step 1: "One fragment" ---------------------------------------------------------------------------------------------

/// A part of the file that is not a trailer.
struct Item<'a> {
    start: usize,
    end: usize,
    what: What<'a>,
}

enum What<'a> {
    /// A valid fragment (rule F8).
    Fragment {
        kind: u8,
        payload: &'a [u8],
        is_container: bool,
    },
    /// A mark with an unknown version or codec.
    Refused(Refused),
    /// A skipped region (rules F1 to F7).
    Skip {
        reason: Reason,
        leveldb_len: Option<u64>,
        /// By rules F2 and F4, the bytes end too early for LevelDB. It stops there and silently
        /// drops the pending record.
        ends_leveldb: bool,
    },
}

impl Item<'_> {
    fn continues(&self) -> bool {
        matches!(
            self.what,
            What::Fragment {
                kind: MIDDLE | LAST,
                ..
            }
        )
    }
}

/// Options for reading fragments.
#[derive(Clone, Copy)]
struct How {
    verifies: bool,
    salvages: bool,
    is_packed: bool,
}

/// Returns the items of the file in order. Under the policy `salvage`, also returns the parts of
/// the file in which records are salvaged.
fn items(file: &[u8], how: How) -> (Vec<Item<'_>>, Vec<Range<usize>>) {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut salvaged: Vec<Range<usize>> = Vec::new();
    // The block that has already been searched for a chain.
    let mut searched = None;
    let mut p = 0;
    while p < file.len() {
        let left = BLOCK - p % BLOCK;
        let rest = &file[p..file.len().min(p + left)];
        let before = items.last().filter(|item| item.end == p);
        let is_inside = matches!(
            before,
            Some(Item {
                what: What::Fragment {
                    kind: FIRST | MIDDLE,
                    ..
                },
                ..
            })
        );
        let (mut len, mut what) = one(rest, left, p == 0, is_inside, how);
        if how.is_packed
            && matches!(
                what,
                Some(What::Skip {
                    reason: Reason::UnknownKind { kind: MARK },
                    ..
                })
            )
        {
            let is_trusted = is_valid(rest, 0) && !salvaged.iter().any(|part| part.contains(&p));
            what = Some(mark(&rest[HEADER..len], p as u64, is_trusted));
        }
        if how.salvages && what.as_ref().is_some_and(can_salvage_after) {
            let block = Some(p / BLOCK);
            let lost = lost_len(rest, left, searched != block, how.is_packed);
            searched = if lost.has_searched { block } else { searched };
            len = lost.len;
            salvaged.push(p + len..p + left);
        }
        if let Some(what) = what {
            items.push(Item {
                start: p,
                end: p + len,
                what,
            });
        }
        p += len;
    }
    (items, salvaged)
}

/// Applies the table "One fragment" to the start of `rest`. Returns the number of bytes that this
/// decides, and their meaning. The meaning is `None` for a trailer.
fn one(rest: &[u8], left: usize, is_first: bool, is_inside: bool, how: How) -> (usize, Option<What<'_>>) {
    let avail = rest.len();
    let is_zero = rest.iter().all(|&byte| byte == 0);
    let skip = |len, reason, leveldb_len, ends_leveldb| {
        (
            len,
            Some(What::Skip {
                reason,
                leveldb_len,
                ends_leveldb,
            }),
        )
    };
    let whole_rest = Some(avail as u64);
    // Implements rule F1.
    if left < HEADER {
        return match is_zero || is_inside {
            true => (avail, None),
            false => skip(avail, Reason::NonzeroTrailer, None, false),
        };
    }
    // Implements rule F2.
    if avail < HEADER {
        let is_fill = is_zero && !(is_inside && left < BLOCK);
        let reason = if is_fill { Reason::ZeroFill } else { Reason::TornTail };
        return skip(avail, reason, None, true);
    }
    let (stored, length, kind) = header(rest);
    // Implements rule F3. LevelDB does not report the region if it might be a torn write, which is
    // the case in the block in which the file ends.
    if HEADER + length > left {
        let reason = Reason::BadLength { len: length as u16 };
        return match avail < left {
            true => skip(avail, reason, None, true),
            false => skip(avail, reason, whole_rest, false),
        };
    }
    // Implements rule F4.
    if HEADER + length > avail {
        // At most a trailer is left in the block.
        let ends_block = left - (HEADER + length) < HEADER;
        let is_possible = match (kind, place_of(kind, how.is_packed)) {
            // The type byte may be in a sector that was never written.
            (0, _) => rest[HEADER..].iter().all(|&byte| byte == 0),
            (_, Some((FULL, _))) => true,
            (_, Some((FIRST, _))) => ends_block,
            (_, Some((MIDDLE, _))) => ends_block && !is_first,
            (_, Some((LAST, _))) => !is_first,
            (MARK, _) => how.is_packed && length >= 10,
            _ => false,
        };
        return match is_possible && !is_proved_wrong(rest, how.is_packed) {
            true => skip(avail, Reason::TornTail, None, true),
            false => skip(avail, Reason::BadLength { len: length as u16 }, None, true),
        };
    }
    // Implements rule F5.
    if kind == 0 && length == 0 {
        return skip(
            avail,
            if is_zero { Reason::ZeroFill } else { Reason::ZeroHeader },
            None,
            false,
        );
    }
    let payload = &rest[HEADER..HEADER + length];
    let computed = crc32c_append(crc32c(&[kind]), payload);
    // Implements rule F6.
    if how.verifies && computed != unmask(stored) {
        let stored = unmask(stored);
        return skip(avail, Reason::ChecksumMismatch { stored, computed }, whole_rest, false);
    }
    let len = HEADER + length;
    match place_of(kind, how.is_packed) {
        Some((kind, is_container)) => (
            len,
            Some(What::Fragment {
                kind,
                payload,
                is_container,
            }),
        ),
        // Implements rule F7.
        None => skip(len, Reason::UnknownKind { kind }, Some(length as u64), false),
    }
}

/// Reads the mark of a packed log at the offset `start`. The mark is trusted if its checksum is
/// valid and no damage precedes it in its block.
fn mark(payload: &[u8], start: u64, is_trusted: bool) -> What<'static> {
    let skip = |reason| What::Skip {
        reason,
        leveldb_len: None,
        ends_leveldb: false,
    };
    match payload {
        [b'c', b'o', b'r', b'd', b'w', b'o', b'o', b'd', version, codec, ..] if is_trusted => match (version, codec) {
            (1, 0 | 1) => skip(Reason::Metadata { kind: MARK }),
            (1, &codec) => What::Refused(Refused::Codec(codec.into(), start)),
            (&version, _) => What::Refused(Refused::Version(version, start)),
        },
        _ => skip(Reason::BadMetadata { kind: MARK }),
    }
}

/// Returns the stored checksum, the length and the type.
fn header(bytes: &[u8]) -> (u32, usize, u8) {
    let stored = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    (stored, usize::from(bytes[4]) + 256 * usize::from(bytes[5]), bytes[6])
}

/// Checks rules F4a and F4b.
fn is_proved_wrong(rest: &[u8], is_packed: bool) -> bool {
    let (stored, _, kind) = header(rest);
    let mut crc = crc32c(&[kind]);
    for &byte in &rest[HEADER..] {
        if mask(crc) == stored {
            return true;
        }
        crc = crc32c_append(crc, &[byte]);
    }
    if mask(crc) == stored {
        return true;
    }
    (HEADER..rest.len().saturating_sub(HEADER - 1)).any(|start| {
        let (stored, length, kind) = header(&rest[start..]);
        let payload = rest.get(start + HEADER..start + HEADER + length);
        // The type is checked first, because most bytes are not a valid type and computing a
        // checksum takes time.
        place_of(kind, is_packed).is_some() && payload.is_some_and(|payload| stored_checksum(kind, payload) == stored)
    })
}

// Reading, step 1 with the policy salvage: "Salvage" --------------------------------------------------------------------------

/// Checks whether records can be salvaged after a region. This is so for rules F3 to F6, but not
/// for zeros and torn fragments.
fn can_salvage_after(what: &What<'_>) -> bool {
    let What::Skip { reason, .. } = what else {
        return false;
    };
    matches!(
        reason,
        Reason::BadLength { .. } | Reason::ZeroHeader | Reason::ChecksumMismatch { .. }
    )
}

struct Lost {
    len: usize,
    has_searched: bool,
}

/// Returns how much of `rest` is lost to the damage at its start. Where a rule says `p + n`, this
/// returns `n`.
fn lost_len(rest: &[u8], left: usize, may_search: bool, is_packed: bool) -> Lost {
    let found = |len| Lost {
        len,
        has_searched: false,
    };
    let (stored, length, kind) = header(rest);
    let stated = HEADER + length;
    // Implements rule S1.
    let mut flipped: Vec<usize> = (0..16).map(|bit| length ^ 1 << bit).collect();
    flipped.sort_unstable();
    let true_len = flipped.into_iter().find(|n| {
        let payload = rest.get(HEADER..HEADER + n);
        payload.is_some_and(|payload| stored_checksum(kind, payload) == stored)
    });
    if let Some(n) = true_len
        && (is_valid(rest, HEADER + n) || is_end(rest, left, HEADER + n))
    {
        return found(HEADER + n);
    }
    // Implements rule S2.
    if is_valid(rest, stated) {
        return found(stated);
    }
    // Implements rule S3.
    if place_of(kind, is_packed).is_some() && is_hard_end(rest, left, stated) {
        return found(stated);
    }
    // Implements rules S4 and S5.
    let chain = if may_search { first_chain(rest, left) } else { None };
    let end = Some(stated).filter(|&end| is_end(rest, left, end));
    Lost {
        len: chain.or(end).unwrap_or(rest.len()),
        has_searched: may_search,
    }
}

/// Returns the end of the fragment at `at` by its length, if the end is within `rest`.
fn stated_end(rest: &[u8], at: usize) -> Option<usize> {
    let (_, length, _) = header(rest.get(at..at + HEADER)?);
    Some(at + HEADER + length).filter(|&end| end <= rest.len())
}

fn is_valid(rest: &[u8], at: usize) -> bool {
    stated_end(rest, at).is_some_and(|end| {
        let (stored, length, kind) = header(&rest[at..]);
        (kind, length) != (0, 0) && stored_checksum(kind, &rest[at + HEADER..end]) == stored
    })
}

fn is_hard_end(rest: &[u8], left: usize, at: usize) -> bool {
    at == rest.len() || (at < rest.len() && left - at < HEADER)
}

fn is_end(rest: &[u8], left: usize, at: usize) -> bool {
    is_hard_end(rest, left, at) || (at < rest.len() && rest[at..].iter().all(|&byte| byte == 0))
}

/// Checks rules F2 and F4, but not whether the length is proved wrong.
fn is_torn(rest: &[u8], left: usize, at: usize) -> bool {
    let is_cut = rest.get(at..at + HEADER).is_none_or(|bytes| {
        let (_, length, _) = header(bytes);
        (rest.len() + 1..=left).contains(&(at + HEADER + length))
    });
    rest.len() < left && is_cut
}

/// Returns the first position after the first byte at which a chain starts. The search runs
/// backwards, because each position depends on the bytes after it.
fn first_chain(rest: &[u8], left: usize) -> Option<usize> {
    let zeros = rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let mut starts_chain = vec![false; rest.len() + 1];
    let is_end_or_chain = |chains: &[bool], at| chains[at] || at >= zeros || is_hard_end(rest, left, at);
    let is_passable = |chains: &[bool], at| {
        is_torn(rest, left, at) || stated_end(rest, at).is_some_and(|end| is_end_or_chain(chains, end))
    };
    for at in (1..rest.len()).rev() {
        let ends_well = |end| is_end_or_chain(&starts_chain, end) || is_passable(&starts_chain, end);
        starts_chain[at] = stated_end(rest, at).is_some_and(ends_well) && is_valid(rest, at);
    }
    starts_chain.iter().position(|&starts| starts)
}

// Reading, step 2: "Fragments into records" -----------------------------------------------------------------------------------

/// A record or container that has started and may continue.
enum Pending {
    Nothing,
    Record {
        start: usize,
        end: usize,
        data: Vec<u8>,
        is_container: bool,
    },
    /// The rest of a record or container that was too large, with its span so far.
    Rest {
        span: Option<(usize, usize)>,
        is_container: bool,
    },
}

impl Pending {
    /// Checks whether a MIDDLE or LAST fragment of this sort continues the pending record.
    /// Fragments of records and of containers never continue each other.
    fn goes_on_with(&self, is_other: bool) -> bool {
        match self {
            Pending::Nothing => true,
            Pending::Record { is_container, .. } | Pending::Rest { is_container, .. } => *is_container == is_other,
        }
    }
}

/// An event, with the offset that decides which range owns it.
struct Owned {
    /// The start of the last item at or before the event that is not MIDDLE or LAST. A MIDDLE or
    /// LAST fragment belongs to the bytes before it.
    owner: usize,
    event: Event,
}

fn skipped(start: usize, end: usize, reason: Reason, leveldb_len: Option<u64>) -> Event {
    Event::Skipped {
        start: start as u64,
        end: end as u64,
        reason,
        leveldb_len,
    }
}

/// The events that were found, and the error that then ends reading under every policy.
type Events = (Vec<Owned>, Result<(), Refused>);

/// Returns the events of the whole file. `is_trusted` gets the start of a container, and decides
/// whether an unknown codec in the container is believed.
fn assemble(items: &[Item<'_>], record_len_max: u64, is_trusted: impl Fn(usize) -> bool) -> Events {
    let mut events = Vec::new();
    let mut pending = Pending::Nothing;
    let mut owner = 0;
    let mut budget = Budget::new(record_len_max);
    for item in items {
        let continues = match item.what {
            What::Fragment { is_container, .. } => item.continues() && pending.goes_on_with(is_container),
            What::Skip { .. } | What::Refused(_) => false,
        };
        if !continues {
            let given_up = give_up(std::mem::replace(&mut pending, Pending::Nothing), Some(&item.what));
            events.extend(given_up.map(|event| Owned { owner, event }));
        }
        if !item.continues() {
            owner = item.start;
        }
        match item.what {
            What::Skip {
                reason, leveldb_len, ..
            } => {
                let event = skipped(item.start, item.end, reason, leveldb_len);
                events.push(Owned { owner, event });
            }
            What::Refused(refused) => return (events, Err(refused)),
            What::Fragment {
                kind,
                payload,
                is_container,
            } => {
                let (next, joined) = join(pending, item, kind, payload, is_container, record_len_max);
                pending = next;
                match joined {
                    None => {}
                    Some(Joined::Event(event)) => events.push(Owned { owner, event }),
                    Some(Joined::Container { start, bytes }) => {
                        let place = containers::Place {
                            start: start as u64,
                            end: item.end as u64,
                            is_trusted: is_trusted(start),
                        };
                        match containers::open(&bytes, place, record_len_max, &mut budget) {
                            // Each record has its own offset, which decides the range that owns it.
                            Ok(parts) => events.extend(parts.into_iter().map(|event| Owned {
                                owner: event.span().0 as usize,
                                event,
                            })),
                            Err(refused) => return (events, Err(refused)),
                        }
                    }
                }
            }
        }
    }
    events.extend(give_up(pending, None).map(|event| Owned { owner, event }));
    (events, Ok(()))
}

/// A record or container that a fragment completes.
enum Joined {
    Event(Event),
    Container { start: usize, bytes: Vec<u8> },
}

/// Implements the columns of the table for FULL, FIRST, MIDDLE and LAST. Before a FULL or FIRST,
/// the caller abandons the pending record, so `pending` is `Nothing`.
fn join(
    pending: Pending,
    item: &Item<'_>,
    kind: u8,
    payload: &[u8],
    is_container: bool,
    record_len_max: u64,
) -> (Pending, Option<Joined>) {
    let is_last = matches!(kind, FULL | LAST);
    let region = |start, reason, leveldb_len| Some(Joined::Event(skipped(start, item.end, reason, leveldb_len)));
    let (start, mut data) = match pending {
        Pending::Nothing if matches!(kind, MIDDLE | LAST) => {
            let region = region(item.start, Reason::MissingStart, Some(payload.len() as u64));
            return (Pending::Nothing, region);
        }
        Pending::Nothing => (item.start, Vec::new()),
        Pending::Record { start, data, .. } => (start, data),
        Pending::Rest { span, .. } => {
            let start = span.map_or(item.start, |(start, _)| start);
            return match is_last {
                true => (Pending::Nothing, region(start, Reason::TooLargeRest, None)),
                false => (
                    Pending::Rest {
                        span: Some((start, item.end)),
                        is_container,
                    },
                    None,
                ),
            };
        }
    };
    data.extend(payload);
    let len_max = match is_container {
        true => containers::joined_len_max(record_len_max),
        false => record_len_max,
    };
    if data.len() as u64 > len_max {
        let next = match is_last {
            true => Pending::Nothing,
            false => Pending::Rest {
                span: None,
                is_container,
            },
        };
        return (next, region(start, Reason::RecordTooLarge, None));
    }
    if !is_last {
        let pending = Pending::Record {
            start,
            end: item.end,
            data,
            is_container,
        };
        return (pending, None);
    }
    let joined = match is_container {
        true => Joined::Container { start, bytes: data },
        false => Joined::Event(Event::Record {
            offset: start as u64,
            end_offset: item.end as u64,
            data,
            is_salvaged: false,
        }),
    };
    (Pending::Nothing, Some(joined))
}

/// Returns the event for `pending` if `next` does not continue it. `next` is `None` at the end of
/// the file.
fn give_up(pending: Pending, next: Option<&What<'_>>) -> Option<Event> {
    let (start, end, data) = match pending {
        Pending::Nothing | Pending::Rest { span: None, .. } => return None,
        Pending::Rest {
            span: Some((start, end)),
            ..
        } => return Some(skipped(start, end, Reason::TooLargeRest, None)),
        Pending::Record { start, end, data, .. } => (start, end, data),
    };
    let payload_len = Some(data.len() as u64);
    let (reason, leveldb_len) = match next {
        None
        | Some(What::Skip {
            reason: Reason::TornTail,
            ..
        }) => (Reason::TornTail, None),
        Some(What::Skip { ends_leveldb: true, .. }) => (Reason::InterruptedRecord, None),
        Some(What::Skip { .. } | What::Refused(_)) => (Reason::InterruptedRecord, payload_len),
        Some(What::Fragment { .. }) if data.is_empty() => (Reason::EmptyFirst, None),
        Some(What::Fragment { .. }) => (Reason::MissingEnd, payload_len),
    };
    Some(skipped(start, end, reason, leveldb_len))
}

/// Marks a salvaged record. For a salvaged region, LevelDB reports nothing, because it has already
/// abandoned the block.
fn mark_salvaged(event: &mut Event, in_salvaged: bool) {
    match event {
        Event::Record { is_salvaged, .. } => *is_salvaged = in_salvaged,
        Event::Skipped { leveldb_len, .. } => *leveldb_len = leveldb_len.filter(|_| !in_salvaged),
    }
}

// Reading, step 3: "Ranges", "How a file ends", "Policies" --------------------------------------------------------------------

/// Returns everything that a reader reports about `file`: the events, and then the end or the
/// error. The dialect is the one that `options` name.
pub fn read(file: &[u8], options: &ReadOptions) -> (Vec<Event>, Result<End, Refused>) {
    let file_len = file.len() as u64;
    let limit = options.end.unwrap_or(file_len);
    let how = How {
        verifies: options.verify_checksums,
        salvages: options.on_corruption == OnCorruption::Salvage,
        is_packed: options.dialect == Some(Dialect::PACKED),
    };
    let (items, salvaged) = items(file, how);
    let is_in_salvaged = |offset: usize| salvaged.iter().any(|part| part.contains(&offset));
    let is_in_range = |offset: usize| options.start <= offset as u64 && (offset as u64) < limit;
    let (owned, refused) = assemble(&items, options.record_len_max, |start| {
        how.verifies && !is_in_salvaged(start)
    });
    let is_at_event = owned.iter().any(|owned| owned.owner as u64 == limit);
    let mut events: Vec<Event> = owned
        .into_iter()
        .filter_map(|owned| is_in_range(owned.owner).then_some(owned.event))
        .collect();
    for event in &mut events {
        let (start, _) = event.span();
        mark_salvaged(event, is_in_salvaged(start as usize));
    }

    let damage = events.iter().position(|event| event.is(Severity::Corruption));
    if options.on_corruption == OnCorruption::Stop
        && let Some(damage) = damage
    {
        events.truncate(damage + 1);
        let (offset, behind) = events[damage].span();
        let range_end = limit.min(file_len);
        if behind < range_end {
            events.push(skipped(behind as usize, range_end as usize, Reason::NotRead, None));
        }
        return (events, Ok(End::Stopped { offset }));
    }
    if let Err(refused) = refused {
        return (events, Err(refused));
    }
    let torn = events
        .iter()
        .rev()
        .take_while(|event| event.is(Severity::TornTail))
        .last();
    let starts_nothing = options.start > 0 && !items.iter().any(|item| is_in_range(item.start) && !item.continues());
    let end = match torn {
        Some(torn) => End::TornTail { offset: torn.span().0 },
        // Either no event starts in the range, or an event starts exactly at its end, perhaps
        // inside a container.
        None if events.is_empty() || starts_nothing || is_at_event => End::Clean {
            offset: limit.min(file_len),
        },
        None => {
            let behind = items
                .iter()
                .find(|item| item.start as u64 >= limit && !item.continues());
            End::Clean {
                offset: behind.map_or(file_len, |item| item.start as u64),
            }
        }
    };
    (events, Ok(end))
}
