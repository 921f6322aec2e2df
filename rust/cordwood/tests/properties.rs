//! Tests `docs/format/reading.md` as properties that hold for every file. The files consist of odd
//! pieces and have random damage.

use std::io::{self, Read, Write};
use std::num::NonZeroUsize;

use crate::common::{Found, assert_error, checksum, fragment, read_all};
use cordwood_log::codec::{Decoder, Encoder, Step, Window};
use cordwood_log::damage::{Reason, Severity};
use cordwood_log::format::{BLOCK_LEN, HEADER_LEN, Header, TRAILER_LEN_MAX, block_left, trailer_len};
use cordwood_log::ops::{stat_file, verify_file};
use cordwood_log::read::{self, Source, StreamSource};
use cordwood_log::{Dialect, End, Error, ErrorKind, OnCorruption, ReadOptions, Reader, Writer, WriterOptions};
use proptest::prelude::*;
use proptest::sample::Index;

// Files -----------------------------------------------------------------------------------------------------------------------

/// A small xorshift generator for bytes and steps. Proptest need not control them one by one.
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Noise(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    /// Returns a number from 1 to `max`.
    fn step(&mut self, max: usize) -> usize {
        1 + (self.next() % max as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(len).collect()
    }
}

/// The length of a piece.
#[derive(Debug, Clone, Copy)]
enum Size {
    Len(usize),
    /// Leaves this many bytes of a block free. Most rules of the format are about the end of a
    /// block.
    Leave(usize),
}

impl Size {
    /// Returns the length of a payload after a header at `offset`. If this block has too little
    /// room for [`Size::Leave`], the payload ends in the next block.
    fn payload_len(self, offset: u64) -> usize {
        match self {
            Size::Len(len) => len,
            Size::Leave(left) => {
                let room = block_left(offset) - HEADER_LEN;
                room.checked_sub(left).unwrap_or(room + BLOCK_LEN - HEADER_LEN - left)
            }
        }
    }
}

/// A part of a file. A writer can leave some of these parts, but no writer would write the others.
#[derive(Debug, Clone)]
enum Piece {
    /// A whole record, in as many fragments as it needs.
    Record(Size),
    /// One fragment of any type with a valid checksum. It is cut to fit into the block.
    Fragment(u8, Size),
    /// One byte, repeated to the end of the block.
    Fill(u8),
    Junk(Vec<u8>),
}

/// A place in a file. Most bytes of a file are payload, where damage only makes a checksum invalid.
/// Most of these places are therefore outside of payloads.
#[derive(Debug, Clone)]
enum Place {
    /// A byte of the first header of a piece, or of the bytes after that header.
    Header(Index, usize),
    /// A byte near the end of a block.
    Edge(Index, usize),
    Any(Index),
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(Place, u8),
    Set(Place, usize, u8),
    /// Another length, type or both, with the old checksum.
    Length(Index, u16),
    /// Another type with a valid checksum, if the header is whole.
    Kind(Index, u8),
    Cut(Place),
    Remove(Place, usize),
    Insert(Place, Vec<u8>),
    SwapBlocks(Index, Index),
    AppendZeros(usize),
}

/// The recipe for a file.
#[derive(Debug, Clone)]
struct Script {
    seed: u64,
    pieces: Vec<Piece>,
    damage: Vec<Damage>,
}

/// The bytes of a file that starts at the offset `base`.
struct File {
    base: u64,
    bytes: Vec<u8>,
    /// The indices in `bytes` at which the pieces start.
    headers: Vec<usize>,
    records: Vec<(u64, Vec<u8>)>,
}

impl File {
    fn new(base: u64, seed: u64, pieces: &[Piece]) -> Self {
        let mut noise = Noise::new(seed);
        let (bytes, headers, records) = Default::default();
        let mut file = File {
            base,
            bytes,
            headers,
            records,
        };
        for piece in pieces {
            file.push(piece, &mut noise);
        }
        file
    }

    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn push(&mut self, piece: &Piece, noise: &mut Noise) {
        let trailer = match piece {
            Piece::Record(_) | Piece::Fragment(..) => trailer_len(self.end()),
            Piece::Fill(_) | Piece::Junk(_) => 0,
        };
        let header = self.end() + trailer as u64;
        self.headers.push(self.bytes.len() + trailer);
        match piece {
            Piece::Record(size) => {
                let data = noise.bytes(size.payload_len(header));
                let offset = Encoder::new(self.end()).encode(&data, &mut self.bytes);
                self.records.push((offset, data));
            }
            Piece::Fragment(kind, size) => {
                let len = size.payload_len(header).min(block_left(header) - HEADER_LEN);
                self.bytes.resize(self.bytes.len() + trailer, 0);
                self.bytes.extend(fragment(*kind, &noise.bytes(len)));
            }
            Piece::Fill(byte) => {
                let len = self.bytes.len() + block_left(self.end());
                self.bytes.resize(len, *byte);
            }
            Piece::Junk(junk) => self.bytes.extend(junk),
        }
    }

    fn at(&self, place: &Place) -> usize {
        let len = self.bytes.len();
        let at = match place {
            Place::Header(piece, behind) => piece.get(&self.headers) + behind,
            Place::Edge(block, behind) => (block.index(len / BLOCK_LEN + 1) * BLOCK_LEN + behind).saturating_sub(8),
            Place::Any(index) => index.index(len),
        };
        at.min(len - 1)
    }

    fn damage(&mut self, damage: &Damage) {
        if self.bytes.is_empty() {
            return;
        }
        let len = self.bytes.len();
        match damage {
            Damage::Flip(place, bit) => {
                let at = self.at(place);
                self.bytes[at] ^= 1 << bit;
            }
            Damage::Set(place, run, byte) => {
                let at = self.at(place);
                self.bytes[at..len.min(at + run)].fill(*byte);
            }
            Damage::Length(piece, length) => {
                let at = *piece.get(&self.headers);
                if let Some(bytes) = self.bytes.get_mut(at + 4..at + 6) {
                    bytes.copy_from_slice(&length.to_le_bytes());
                }
            }
            Damage::Kind(piece, kind) => {
                let at = *piece.get(&self.headers);
                if let Some((header, behind)) = self.bytes.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut)
                    && let Some(payload) = behind.get(..usize::from(Header::decode(header).len))
                {
                    let masked_crc = checksum(*kind, payload);
                    let len = Header::decode(header).len;
                    let kind = *kind;
                    *header = Header { masked_crc, len, kind }.encode();
                }
            }
            Damage::Cut(place) => self.bytes.truncate(self.at(place)),
            Damage::Remove(place, run) => {
                let at = self.at(place);
                self.bytes.drain(at..len.min(at + run));
            }
            Damage::Insert(place, bytes) => {
                let at = self.at(place);
                self.bytes.splice(at..at, bytes.iter().copied());
            }
            Damage::SwapBlocks(one, other) => {
                let blocks = len / BLOCK_LEN;
                if blocks > 0 {
                    let (one, other) = (one.index(blocks), other.index(blocks));
                    for at in 0..BLOCK_LEN {
                        self.bytes.swap(one * BLOCK_LEN + at, other * BLOCK_LEN + at);
                    }
                }
            }
            Damage::AppendZeros(run) => self.bytes.resize(len + run, 0),
        }
    }
}

impl Script {
    fn build_at(&self, base: u64) -> File {
        let mut file = File::new(base, self.seed, &self.pieces);
        for damage in &self.damage {
            file.damage(damage);
        }
        file
    }

    fn build(&self) -> File {
        self.build_at(0)
    }
}

// These functions generate the inputs of proptest.

fn size() -> impl Strategy<Value = Size> + Clone {
    prop_oneof![
        4 => (0..40_usize).prop_map(Size::Len),
        4 => (0..16_usize).prop_map(Size::Leave),
        1 => (BLOCK_LEN - 20..BLOCK_LEN + 20).prop_map(Size::Len),
        1 => (0..80_000_usize).prop_map(Size::Len),
    ]
}

fn small_size() -> impl Strategy<Value = Size> + Clone {
    (0..40_usize).prop_map(Size::Len)
}

fn kind() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 1..=4_u8, 1 => 0..=8_u8, 1 => any::<u8>()]
}

fn piece<S: Strategy<Value = Size> + Clone + 'static>(size: S) -> impl Strategy<Value = Piece> {
    prop_oneof![
        6 => size.clone().prop_map(Piece::Record),
        3 => (kind(), size).prop_map(|(kind, size)| Piece::Fragment(kind, size)),
        1 => prop_oneof![Just(0), any::<u8>()].prop_map(Piece::Fill),
        1 => junk(20).prop_map(Piece::Junk),
    ]
}

/// Returns bytes. Bytes that have a meaning in the format are frequent.
fn junk(len_max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![2 => Just(0), 2 => 0..=8_u8, 1 => any::<u8>()];
    prop::collection::vec(byte, 0..len_max)
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        3 => (any::<Index>(), 0..HEADER_LEN + 3).prop_map(|(piece, behind)| Place::Header(piece, behind)),
        2 => (any::<Index>(), 0..24_usize).prop_map(|(block, behind)| Place::Edge(block, behind)),
        1 => any::<Index>().prop_map(Place::Any),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let run = || prop_oneof![1..20_usize, 1..50_000_usize];
    prop_oneof![
        4 => (place(), 0..8_u8).prop_map(|(place, bit)| Damage::Flip(place, bit)),
        1 => (place(), run(), prop_oneof![Just(0), Just(b'x')]).prop_map(|(place, run, byte)| Damage::Set(place, run, byte)),
        1 => (any::<Index>(), any::<u16>()).prop_map(|(piece, length)| Damage::Length(piece, length)),
        2 => (any::<Index>(), kind()).prop_map(|(piece, kind)| Damage::Kind(piece, kind)),
        3 => place().prop_map(Damage::Cut),
        1 => (place(), run()).prop_map(|(place, run)| Damage::Remove(place, run)),
        1 => (place(), junk(20)).prop_map(|(place, bytes)| Damage::Insert(place, bytes)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Damage::SwapBlocks(one, other)),
        1 => run().prop_map(Damage::AppendZeros),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let pieces = prop::collection::vec(piece(size()), 1..12);
    let damage = prop::collection::vec(damage(), 0..5);
    (any::<u64>(), pieces, damage).prop_map(|(seed, pieces, damage)| Script { seed, pieces, damage })
}

fn record_len_max() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(1 << 30), 1 => 0..40_u64, 1 => 0..100_000_u64]
}

fn policy() -> impl Strategy<Value = OnCorruption> {
    prop_oneof![
        Just(OnCorruption::Fail),
        Just(OnCorruption::Skip),
        Just(OnCorruption::Stop),
        Just(OnCorruption::Salvage)
    ]
}

fn options() -> impl Strategy<Value = ReadOptions> {
    (policy(), record_len_max(), prop::bool::weighted(0.9)).prop_map(|(policy, max, verifies)| {
        ReadOptions::default()
            .with_on_corruption(policy)
            .with_record_len_max(max)
            .with_verify_checksums(verifies)
            // Unlike a reader, a decoder does not detect the dialect.
            .with_dialect(Dialect::LEVELDB)
    })
}

/// Returns a `Config` with this many cases. A failure is printed with its smallest input, and is
/// not stored next to the tests.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

/// Returns the bytes of the file that an event covers.
fn span(event: &Found) -> (u64, u64) {
    match event {
        Found::Record { offset, end_offset, .. } => (*offset, *end_offset),
        Found::Skipped(region) => (region.start, region.end),
    }
}

// The promise -----------------------------------------------------------------------------------------------------------------

/// Returns the type and the payload of each fragment in `[start, end)`. Only trailers may be
/// between them.
///
/// This repeats the reader's work for bytes that the reader says are whole fragments.
fn fragments<'a>(file: &'a [u8], options: &ReadOptions, start: u64, end: u64) -> Vec<(u8, &'a [u8])> {
    let mut found = Vec::new();
    let mut at = start as usize;
    while at < end as usize {
        at += trailer_len(at as u64);
        let (header, behind) = file[at..end as usize].split_first_chunk().expect("a header");
        let header = Header::decode(header);
        let payload = &behind[..usize::from(header.len)];
        assert!(HEADER_LEN + payload.len() <= block_left(at as u64), "within its block");
        if options.verify_checksums {
            assert_eq!(
                header.masked_crc,
                checksum(header.kind, payload),
                "the checksum at {at}"
            );
        }
        found.push((header.kind, payload));
        at += HEADER_LEN + payload.len();
    }
    assert_eq!(at, end as usize, "ends with a fragment");
    found
}

/// Checks whether the reason is about whole fragments that do not make a record. The region then
/// consists of whole fragments.
fn is_of_fragments(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::UnknownKind { .. }
            | Reason::MissingStart
            | Reason::MissingEnd
            | Reason::InterruptedRecord
            | Reason::EmptyFirst
            | Reason::RecordTooLarge
            | Reason::TooLargeRest
    )
}

/// Asserts that the bytes between two spans, or after the last span, are a trailer.
fn check_gap(file: &[u8], options: &ReadOptions, (start, end): (u64, u64), before: Option<&Found>) {
    let gap = &file[start as usize..end as usize];
    if gap.is_empty() {
        return;
    }
    let left = block_left(start);
    assert!(left <= TRAILER_LEN_MAX, "a gap of {} bytes at {start}", gap.len());
    let is_at_end = end == file.len() as u64;
    assert!(gap.len() == left || is_at_end && gap.len() < left, "a gap up to {end}");
    if gap.iter().any(|&byte| byte != 0) {
        // A trailer is not examined only after FIRST or MIDDLE. A record ends with neither.
        let Some(Found::Skipped(region)) = before else {
            panic!("a trailer at {start} that is not zero, after {before:?}");
        };
        let last = fragments(file, options, region.start, region.end).pop();
        assert!(matches!(last, Some((2 | 3, _))), "after {region:?}");
    }
}

/// Asserts that spans ascend and do not overlap, that only trailers are between them, and that
/// together they cover the file. Also asserts that each event is correct.
fn check_promise(file: &[u8], options: &ReadOptions, events: &[Found], end: End) {
    let mut at = 0;
    for (number, event) in events.iter().enumerate() {
        let (start, end) = span(event);
        assert!(at <= start && start < end, "{event:?} after {at}");
        let before = number.checked_sub(1).map(|number| &events[number]);
        check_gap(file, options, (at, start), before);
        at = end;
        check_event(file, options, event);
    }
    assert!(at <= file.len() as u64);
    check_gap(file, options, (at, file.len() as u64), events.last());
    check_end(file, options, events, end);
}

fn check_event(file: &[u8], options: &ReadOptions, event: &Found) {
    let (start, end) = span(event);
    match event {
        Found::Record { data, .. } => {
            assert!(data.len() as u64 <= options.record_len_max);
            let parts = fragments(file, options, start, end);
            let kinds: Vec<u8> = parts.iter().map(|(kind, _)| *kind).collect();
            let is_whole = match kinds.as_slice() {
                [1] => true,
                [2, middle @ .., 4] => middle.iter().all(|&kind| kind == 3),
                _ => false,
            };
            assert!(is_whole, "{kinds:?} make no record");
            let joined: Vec<u8> = parts.iter().flat_map(|(_, payload)| *payload).copied().collect();
            assert!(*data == joined, "the data of the record at {start}");
        }
        Found::Skipped(region) if is_of_fragments(region.reason) => {
            let parts = fragments(file, options, start, end);
            let len: usize = parts.iter().map(|(_, payload)| payload.len()).sum();
            match region.reason {
                Reason::RecordTooLarge => assert!(len as u64 > options.record_len_max),
                Reason::EmptyFirst => assert_eq!(len, 0),
                // LevelDB counts only the payload.
                Reason::MissingStart | Reason::MissingEnd | Reason::UnknownKind { .. } => {
                    // LevelDB does not report salvaged records.
                    let is_unknown = options.on_corruption == OnCorruption::Salvage && region.leveldb_len.is_none();
                    assert!(is_unknown || region.leveldb_len == Some(len as u64));
                }
                _ => {}
            }
        }
        Found::Skipped(region) => {
            let bytes = &file[start as usize..end as usize];
            match region.reason {
                Reason::ZeroFill => assert!(bytes.iter().all(|&byte| byte == 0)),
                // The bytes that are not zero may have been salvaged.
                Reason::ZeroHeader if options.on_corruption == OnCorruption::Salvage => {}
                Reason::ZeroHeader | Reason::NonzeroTrailer => assert!(bytes.iter().any(|&byte| byte != 0)),
                Reason::NotRead => assert_eq!(options.on_corruption, OnCorruption::Stop),
                Reason::ChecksumMismatch { stored, computed } => {
                    assert!(options.verify_checksums && stored != computed)
                }
                _ => {}
            }
        }
    }
}

fn check_end(file: &[u8], options: &ReadOptions, events: &[Found], end: End) {
    let severity = |event: &Found| match event {
        Found::Skipped(region) => Some(region.reason.severity()),
        Found::Record { .. } => None,
    };
    // Under the policy `Stop`, the damage is the last event, or the unread bytes follow it as one
    // more event.
    let is_not_read = |event: &Found| matches!(event, Found::Skipped(region) if region.reason == Reason::NotRead);
    let damage = events
        .iter()
        .position(|event| severity(event) == Some(Severity::Corruption));
    if options.on_corruption == OnCorruption::Stop
        && let Some(damage) = damage
    {
        let (offset, behind) = span(&events[damage]);
        assert_eq!(end, End::Stopped { offset });
        let not_read: Vec<_> = events[damage + 1..]
            .iter()
            .map(|event| (is_not_read(event), span(event)))
            .collect();
        let is_all_read = behind == file.len() as u64;
        let expected = (!is_all_read).then_some((true, (behind, file.len() as u64)));
        assert_eq!(not_read, Vec::from_iter(expected));
        return;
    }
    let torn = events
        .iter()
        .rev()
        .take_while(|event| severity(event) == Some(Severity::TornTail));
    let expected = match torn.last() {
        Some(first) => End::TornTail { offset: span(first).0 },
        None => End::Clean {
            offset: file.len() as u64,
        },
    };
    assert_eq!(end, expected);
}

/// Reads in LevelDB's dialect. It must be named, because some of the files do not show that they
/// are logs.
fn read_slice(file: &[u8], options: &ReadOptions) -> (Vec<Found>, End) {
    let options = options.clone().with_dialect(Dialect::LEVELDB);
    read_all(&mut Reader::from_slice(file, options))
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn returns_exactly_the_records_that_were_written(seed: u64, sizes in prop::collection::vec(size(), 0..30)) {
        let pieces: Vec<Piece> = sizes.into_iter().map(Piece::Record).collect();
        let file = File::new(0, seed, &pieces);
        let mut reader = Reader::from_slice(&file.bytes, ReadOptions::default());
        for (offset, data) in &file.records {
            let record = reader.next_record().unwrap().unwrap();
            prop_assert_eq!(record.offset, *offset);
            prop_assert!(record.data == data, "the data of the record at {}", offset);
        }
        // The events must contain only records, with no region after them.
        let (events, end) = read_slice(&file.bytes, &ReadOptions::default());
        prop_assert_eq!(events.len(), file.records.len());
        prop_assert_eq!(end, End::Clean { offset: file.end() });
    }

    #[test]
    fn every_byte_of_a_log_is_accounted_for(script in script(), options in options()) {
        let file = script.build().bytes;
        let (events, end) = read_slice(&file, &options);
        check_promise(&file, &options, &events, end);
    }

    #[test]
    fn returns_a_record_exactly_as_long_as_the_limit(seed: u64, before in size(), size in size()) {
        let file = File::new(0, seed, &[Piece::Record(before), Piece::Record(size)]);
        let Some((offset, data)) = file.records.last() else { panic!("two records were written") };
        let starts_last = |max| {
            let options = ReadOptions::default().with_range(*offset..).with_record_len_max(max);
            read_slice(&file.bytes, &options).0.first().cloned()
        };
        let len = data.len() as u64;
        let is_returned = matches!(starts_last(len), Some(Found::Record { .. }));
        prop_assert!(is_returned);
        if len > 0 {
            let first = starts_last(len - 1);
            let is_refused = matches!(&first, Some(Found::Skipped(region)) if region.reason == Reason::RecordTooLarge);
            prop_assert!(is_refused, "{first:?}");
        }
    }

    #[test]
    fn the_corruption_policy_only_affects_where_reading_ends(script in script(), max in record_len_max()) {
        let file = script.build().bytes;
        let options = ReadOptions::default().with_record_len_max(max);
        let with = |policy| read_slice(&file, &options.clone().with_on_corruption(policy));
        let skipped = with(OnCorruption::Skip);
        prop_assert!(with(OnCorruption::Fail) == skipped);
        let (mut stopped, end) = with(OnCorruption::Stop);
        if let Some(Found::Skipped(region)) = stopped.last()
            && region.reason == Reason::NotRead
        {
            stopped.pop();
        }
        prop_assert!(skipped.0.starts_with(&stopped));
        let is_stopped = matches!(end, End::Stopped { .. });
        prop_assert!(is_stopped || (&skipped.0, skipped.1) == (&stopped, end));
        // `Salvage` adds records, each of them marked, and removes none.
        let is_record = |event: &Found| matches!(event, Found::Record { is_salvaged: false, .. });
        let mut salvaged = with(OnCorruption::Salvage).0;
        salvaged.retain(is_record);
        let mut records = skipped.0;
        records.retain(|event| matches!(event, Found::Record { .. }));
        prop_assert!(records == salvaged);
    }
}

// Sources ---------------------------------------------------------------------------------------------------------------------

/// A source that returns few bytes at a time and is sometimes interrupted, like a pipe or a network
/// file.
struct Trickle<'a> {
    rest: &'a [u8],
    noise: Noise,
    step_max: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.noise.step(8) == 8 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.noise.step(self.step_max).min(buffer.len()).min(self.rest.len());
        let (bytes, rest) = self.rest.split_at(len);
        buffer[..len].copy_from_slice(bytes);
        self.rest = rest;
        Ok(len)
    }
}

fn trickle<'a>(file: &'a [u8], options: &ReadOptions, seed: u64, step_max: usize) -> Reader<StreamSource<Trickle<'a>>> {
    let trickle = Trickle {
        rest: file,
        noise: Noise::new(seed),
        step_max,
    };
    // If the length were unknown, the bytes that the policy `Stop` leaves unread could not be
    // reported.
    let source = StreamSource::new(trickle, 0).with_len(file.len() as u64);
    Reader::with_source(source, options.clone())
}

fn read_trickle(file: &[u8], options: &ReadOptions, seed: u64, step_max: usize) -> (Vec<Found>, End) {
    read_all(&mut trickle(file, options, seed, step_max))
}

fn event_of(record: read::FoundRecord<'_>) -> Found {
    Found::Record {
        offset: record.offset,
        end_offset: record.end_offset,
        data: record.pieces().collect::<Vec<_>>().concat(),
        is_salvaged: record.is_salvaged,
    }
}

/// Does the same as [`read_all`], through `found` and `advance`. For every second record, it uses
/// `take_record`.
fn read_found<S: Source>(reader: &mut Reader<S>) -> (Vec<Found>, End) {
    let mut events = Vec::new();
    loop {
        if events.len() % 2 == 1
            && let Some(event) = reader.take_record(|record| Some(event_of(record)))
        {
            events.push(event);
            continue;
        }
        let event = match reader.found() {
            None => {
                if !reader.find() {
                    reader.read_more();
                }
                continue;
            }
            Some(read::Found::End(end)) => return (events, end),
            Some(read::Found::Record(record)) => Some(event_of(record)),
            Some(read::Found::Skipped(region)) => Some(Found::Skipped(region)),
            Some(read::Found::Failed(_)) => None,
        };
        match (reader.advance(), event) {
            (Ok(()), Some(event)) => events.push(event),
            (
                Err(Error {
                    kind: ErrorKind::Corruption { region, .. },
                    ..
                }),
                None,
            ) => events.push(Found::Skipped(region)),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn short_reads_return_the_same_events(
        script in script(),
        options in options(),
        range in any::<Option<(Index, Index)>>(),
        seed: u64,
        step_max in prop_oneof![200..3_000_usize, 200..70_000_usize],
    ) {
        let file = script.build().bytes;
        let place = |index: Index| index.index(file.len() + 1) as u64;
        let options = match range {
            Some((start, len)) => options.with_range(place(start)..place(start) + place(len)),
            None => options,
        };
        let expected = read_slice(&file, &options);
        prop_assert!(read_trickle(&file, &options, seed, step_max) == expected);
        prop_assert!(read_found(&mut trickle(&file, &options, seed, step_max)) == expected);
    }

    #[test]
    fn reads_of_one_to_three_bytes_return_the_same_events(
        seed: u64,
        pieces in prop::collection::vec(piece(small_size()), 1..12),
        damage in prop::collection::vec(damage(), 0..3),
        options in options(),
    ) {
        let mut file = Script { seed, pieces, damage }.build().bytes;
        // The file is short, to limit the number of reads. At each read, damage is examined again
        // until its block is complete.
        file.truncate(2_000);
        prop_assert!(read_trickle(&file, &options, seed, 3) == read_slice(&file, &options));
    }
}

proptest! {
    #![proptest_config(cases(6))]

    /// The files have several windows of 256 KiB, and records that are longer than a window.
    #[test]
    fn a_stream_of_several_windows_returns_the_same_events(
        seed: u64,
        lens in prop::collection::vec(prop_oneof![0..5_000_usize, 0..1_500_000_usize], 3..12),
        damage in prop::collection::vec(damage(), 0..4),
        options in options(),
        step_max in 50_000..3_000_000_usize,
    ) {
        let pieces = lens.into_iter().map(|len| Piece::Record(Size::Len(len))).collect();
        let file = Script { seed, pieces, damage }.build().bytes;
        prop_assert!(read_trickle(&file, &options, seed, step_max) == read_slice(&file, &options));
    }
}

/// `read_more` may be called at any time, even if no more bytes are needed. It must not take a full
/// buffer for the end of the file.
#[test]
fn unnecessary_calls_to_read_more_have_no_effect() {
    let pieces = [Piece::Record(Size::Len(1_000_000)), Piece::Record(Size::Len(1_000_000))];
    let file = File::new(0, 1, &pieces);
    let mut reader = Reader::new(&file.bytes[..], ReadOptions::default());
    for _ in 0..3 {
        reader.read_more();
    }
    assert!(read_all(&mut reader) == read_slice(&file.bytes, &ReadOptions::default()));
}

#[test]
fn every_source_rejects_a_range_past_the_end() -> Result<(), Box<dyn std::error::Error>> {
    fn check<S: Source>(reader: &mut Reader<S>, start: u64, known: Option<u64>) {
        for _ in 0..2 {
            let error = reader.next_event().unwrap_err();
            let Error {
                kind: ErrorKind::Truncated { offset, file_len, .. },
                ..
            } = error
            else {
                panic!("{error}")
            };
            assert_eq!((offset, file_len), (start, known));
            assert_eq!(reader.end(), None);
        }
    }
    let file = fragment(1, b"foo");
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("short.log");
    std::fs::write(&path, &file)?;
    for start in [11, BLOCK_LEN as u64, 3 * BLOCK_LEN as u64, 3 * BLOCK_LEN as u64 + 1] {
        for dialect in [None, Some(Dialect::LEVELDB)] {
            let mut options = ReadOptions::default().with_range(start..);
            options.dialect = dialect;
            check(&mut Reader::from_slice(&file, options.clone()), start, Some(10));
            check(&mut Reader::new(&file[..], options.clone()), start, None);
            check(&mut Reader::open_with(&path, options.clone())?, start, Some(10));
            for count in 1..3 {
                let count = NonZeroUsize::new(count).unwrap();
                assert_error!(verify_file(&path, &options, count), ErrorKind::Truncated { .. });
                assert_error!(stat_file(&path, &options, count), ErrorKind::Truncated { .. });
            }
        }
        // Seeks in memory, in a file, and in another source that can seek.
        let mut reader = Reader::from_slice(&file, ReadOptions::default());
        reader.seek(start)?;
        check(&mut reader, start, Some(10));
        let mut reader = Reader::open(&path)?;
        reader.seek(start)?;
        check(&mut reader, start, Some(10));
        reader.seek(0)?;
        assert_eq!(
            reader.next_record()?.map(|record| record.data.to_vec()),
            Some(b"foo".to_vec())
        );
        let source = StreamSource::new(std::io::Cursor::new(&file), 0);
        let mut reader = Reader::with_source(source, ReadOptions::default());
        reader.seek(start)?;
        check(&mut reader, start, None);
    }
    // At the end, there is no event, which is not an error.
    let mut reader = Reader::open(&path)?;
    reader.seek(10)?;
    assert!(reader.next_event()?.is_none());
    assert_eq!(reader.end(), Some(End::Clean { offset: 10 }));
    let mut reader = Reader::open_with(&path, ReadOptions::default().with_range(10..))?;
    assert!(reader.next_event()?.is_none());
    Ok(())
}

// Ranges ----------------------------------------------------------------------------------------------------------------------

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn adjacent_ranges_add_up_to_the_events_of_the_whole_file(
        script in script(),
        cuts in prop::collection::vec(place(), 1..6),
        max in record_len_max(),
        policy in prop_oneof![Just(OnCorruption::Fail), Just(OnCorruption::Skip), Just(OnCorruption::Salvage)],
    ) {
        let file = script.build();
        prop_assume!(!file.bytes.is_empty());
        let mut cuts: Vec<u64> = cuts.iter().map(|place| file.at(place) as u64).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().map(Some).chain([None]);
        let options = ReadOptions::default().with_on_corruption(policy).with_record_len_max(max);
        let (whole, whole_end) = read_slice(&file.bytes, &options);
        let mut together = Vec::new();
        for (start, end) in starts.zip(ends) {
            let mut range = options.clone().with_range(start..);
            range.end = end;
            let (events, how) = read_slice(&file.bytes, &range);
            for event in &events {
                let (offset, _) = span(event);
                // A MIDDLE or LAST fragment without a start belongs to the bytes before it, like
                // one that continues a record.
                let is_rest = matches!(
                    event,
                    Found::Skipped(region) if matches!(region.reason, Reason::MissingStart | Reason::TooLargeRest)
                );
                let is_before_end = end.is_none_or(|end| offset < end);
                prop_assert!(start <= offset && (is_before_end || is_rest), "{event:?} in {start}..{end:?}");
            }
            // A range that owns torn regions ends torn. A range that owns none ends clean.
            let is_torn = matches!(
                events.last(),
                Some(Found::Skipped(region)) if region.reason == Reason::TornTail
            );
            prop_assert_eq!(matches!(how, End::TornTail { .. }), is_torn);
            if events.iter().any(|event| span(event).0 == whole_end.offset()) {
                prop_assert_eq!(how, whole_end);
            }
            together.extend(events);
        }
        prop_assert!(together == whole, "{cuts:?}: {together:?} is not {whole:?}");
    }
}

// Windows ---------------------------------------------------------------------------------------------------------------------

/// Returns all events of `decoder`. It gets windows of a file whose bytes start at the offset
/// `base`. `next` chooses each window from the range of the previous window and the decoder's
/// offset, both counted from `base`.
fn decode(
    decoder: &mut Decoder,
    base: u64,
    bytes: &[u8],
    mut next: impl FnMut((usize, usize), usize) -> (usize, usize),
) -> (Vec<Found>, End) {
    let mut events = Vec::new();
    let (mut from, mut to, mut is_last) = (0, 0, false);
    loop {
        let window = Window {
            offset: base + from as u64,
            bytes: &bytes[from..to],
            is_last,
        };
        match decoder.step(window) {
            Step::NeedMore => {
                assert!(!is_last, "no more can be had");
                // A caller does not always know at once that the file ends where its bytes end.
                is_last = to == bytes.len();
                let at = (decoder.offset() - base) as usize;
                (from, to) = next((from, to), at);
            }
            Step::Record(span) => events.push(Found::Record {
                offset: span.offset,
                end_offset: span.end_offset,
                data: decoder.data(window, span).to_vec(),
                is_salvaged: span.is_salvaged,
            }),
            Step::Skipped(region) => events.push(Found::Skipped(region)),
            Step::End(end) => return (events, end),
        }
        // Each event covers at least one byte that no other event covers.
        assert!(events.len() <= bytes.len(), "no end");
    }
}

/// Returns windows that start anywhere up to the decoder's offset, and advance by 1 to `step_max`
/// bytes.
fn random_windows(bytes: &[u8], seed: u64, step_max: usize) -> impl FnMut((usize, usize), usize) -> (usize, usize) {
    let mut noise = Noise::new(seed);
    let len = bytes.len();
    move |(from, to), at| {
        let at = at.min(len);
        let from = from + noise.step(at - from + 1) - 1;
        (from, len.min(to.max(at) + noise.step(step_max)))
    }
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn accounts_for_every_byte_of_arbitrary_input(
        seed: u64,
        parts in prop::collection::vec(
            prop_oneof![
                junk(60),
                (any::<u64>(), 0..5_000_usize).prop_map(|(seed, len)| Noise::new(seed).bytes(len)),
                (any::<u8>(), 0..40_000_usize).prop_map(|(byte, len)| vec![byte; len]),
                (kind(), junk(60)).prop_map(|(kind, payload)| fragment(kind, &payload)),
            ],
            0..20,
        ),
        options in options(),
        step_max in 500..60_000_usize,
    ) {
        let file = parts.concat();
        let (mut events, end) = decode(&mut Decoder::new(&options).unwrap(), 0, &file, random_windows(&file, seed, step_max));
        let whole = read_slice(&file, &options);
        check_promise(&file, &options, &whole.0, whole.1);
        if let End::Stopped { .. } = end {
            // The reader also reports the unread bytes.
            events.extend(whole.0.last().filter(|event| {
                matches!(event, Found::Skipped(region) if region.reason == Reason::NotRead)
            }).cloned());
        }
        prop_assert!((events, end) == whole);
    }

    /// A block ends within the first bytes, so that all rules apply in a small file.
    #[test]
    fn growing_the_window_one_byte_at_a_time_returns_the_same_events(
        left in 0..90_usize,
        seed: u64,
        pieces in prop::collection::vec(piece(small_size()), 1..12),
        damage in prop::collection::vec(damage(), 0..3),
        options in options(),
    ) {
        let base = (BLOCK_LEN - left) as u64;
        let mut file = Script { seed, pieces, damage }.build_at(base).bytes;
        file.truncate(1_000);
        let decoder = || {
            let mut decoder = Decoder::new(&options).unwrap();
            decoder.seek(base);
            decoder
        };
        let whole = decode(&mut decoder(), base, &file, |_, _| (0, file.len()));
        let grown = decode(&mut decoder(), base, &file, |(from, to), _| (from, file.len().min(to + 1)));
        prop_assert!(grown == whole);
        let slid = decode(&mut decoder(), base, &file, |(_, to), at| (at, file.len().min(to + 1)));
        prop_assert!(slid == whole);
    }
}

// Writing ---------------------------------------------------------------------------------------------------------------------

/// A sink that accepts few bytes at a time and is sometimes interrupted.
struct ShortSink {
    written: Vec<u8>,
    noise: Noise,
    step_max: usize,
}

impl Write for ShortSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.noise.step(8) == 8 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.noise.step(self.step_max).min(bytes.len());
        self.written.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn short_writes_produce_the_same_file(
        seed: u64,
        // Some records are longer than the writer's buffer of 256 KiB.
        sizes in prop::collection::vec((prop_oneof![20 => size(), 1 => Just(Size::Len(1_100_000))], any::<bool>()), 0..20),
        file_len in prop_oneof![Just(0), 32_750..32_780_u64, any::<u32>().prop_map(u64::from)],
        step_max in 1..20_000_usize,
    ) {
        let mut noise = Noise::new(seed);
        let mut encoder = Encoder::new(file_len);
        let mut encoded = Vec::new();
        let sink = ShortSink { written: Vec::new(), noise: Noise::new(!seed), step_max };
        let mut writer = Writer::with_options(sink, WriterOptions::default().with_file_len(file_len)).unwrap();
        for (size, is_flushed) in sizes {
            let record = noise.bytes(size.payload_len(encoder.offset() + trailer_len(encoder.offset()) as u64));
            prop_assert_eq!(writer.append(&record).unwrap(), encoder.encode(&record, &mut encoded));
            prop_assert_eq!(writer.offset(), encoder.offset());
            if is_flushed {
                writer.flush().unwrap();
                prop_assert_eq!(writer.buffered_len(), 0);
            }
        }
        prop_assert!(writer.into_inner().unwrap().written == encoded);
    }
}
