//! Builds logs of every dialect from a fuzzer's bytes. A file contains the log that a writer
//! leaves, followed by an older log, with damage.

use arbitrary::{Arbitrary, Result, Unstructured};
use cordwood::codec::Encoder;
use cordwood::{Compression, Dialect, LogFormat};
use crc32c::{crc32c, crc32c_append};

use crate::BLOCK;
use crate::file::{Damage, Few, File, Payload, several};
use crate::model;

/// No record is added to a file that is longer than this.
const LEN_MAX: usize = 2 * BLOCK;

/// The maximum number of damaged places in a file.
const DAMAGE_MAX: usize = 5;

/// The numbers that the logs can have. They are consecutive, because the trailer of a closed log
/// contains the number after its own.
const NUMBERS: [u32; 4] = [3, 4, 5, 6];

/// How a fragment is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Types 1 to 4, with a CRC-32C.
    Plain,
    /// Types 5 to 8, with a log number.
    Recyclable(u32),
    /// Types 9 to 12, with a log number and a synced offset.
    Synced(u32, u64),
    /// Types 1 to 4, with the CRC-32 that zip uses.
    Ieee,
}

impl Form {
    /// Returns the fields of the header after the type byte.
    fn rest(self) -> Vec<u8> {
        match self {
            Form::Plain | Form::Ieee => Vec::new(),
            Form::Recyclable(number) => number.to_le_bytes().to_vec(),
            Form::Synced(number, synced) => [&number.to_le_bytes()[..], &synced.to_le_bytes()].concat(),
        }
    }

    fn header_len(self) -> usize {
        7 + self.rest().len()
    }

    /// Returns a fragment of any type with a valid checksum.
    fn fragment(self, kind: u8, payload: &[u8]) -> Vec<u8> {
        let covered = [&[kind], &self.rest()[..], payload].concat();
        let stored = match self {
            Form::Ieee => crc32_ieee(&covered),
            _ => model::mask(crc32c_append(crc32c(&covered[..1]), &covered[1..])),
        };
        let len = u16::try_from(payload.len()).expect("a length that a header can state");
        [&stored.to_le_bytes()[..], &len.to_le_bytes(), &covered].concat()
    }

    /// Returns a FULL, FIRST, MIDDLE or LAST fragment for a `place` of 1, 2, 3 or 4.
    fn part(self, place: u8, payload: &[u8]) -> Vec<u8> {
        let before = match self {
            Form::Plain | Form::Ieee => 0,
            Form::Recyclable(_) => 4,
            Form::Synced(..) => 8,
        };
        self.fragment(before + place, payload)
    }

    /// Appends a record as a writer does, and returns the offset of its first header. The first
    /// block starts at `grid`.
    fn append(self, file: &mut Vec<u8>, grid: usize, record: &[u8]) -> u64 {
        self.pad(file, grid);
        let start = file.len() as u64;
        let (mut rest, mut is_first) = (record, true);
        loop {
            let room = left(file.len(), grid) - self.header_len();
            let (payload, after) = rest.split_at(rest.len().min(room));
            let place = match (is_first, after.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            file.extend(self.part(place, payload));
            if after.is_empty() {
                return start;
            }
            (rest, is_first) = (after, false);
        }
    }

    /// Fills the block with zeros if it has no room for a header.
    fn pad(self, file: &mut Vec<u8>, grid: usize) {
        let left = left(file.len(), grid);
        if left < self.header_len() {
            file.resize(file.len() + left, 0);
        }
    }
}

/// Sets the ends of the records from `open` on that have been written to the file. The other
/// records are in the open container, which will start at the end of the file. The ends are upper
/// bounds.
fn end_records(records: &mut [(u64, usize, Vec<u8>)], open: &mut usize, file_len: usize) {
    while let Some((offset, end, _)) = records.get_mut(*open)
        && *offset < file_len as u64
    {
        *end = file_len;
        *open += 1;
    }
}

fn left(offset: usize, grid: usize) -> usize {
    BLOCK - (offset - grid) % BLOCK
}

/// Computes the CRC-32 that zip uses from its definition, four bits at a time.
fn crc32_ieee(bytes: &[u8]) -> u32 {
    let step = |state: u32| {
        (0..4).fold(state, |state, _| {
            (state >> 1) ^ if state & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    };
    let table: [u32; 16] = std::array::from_fn(|nibble| step(nibble as u32));
    !bytes.iter().fold(!0, |state, &byte| {
        let state = table[((state ^ u32::from(byte)) & 15) as usize] ^ (state >> 4);
        table[((state ^ u32::from(byte >> 4)) & 15) as usize] ^ (state >> 4)
    })
}

/// An addition to a log.
#[derive(Debug, Clone, Copy)]
enum Entry<'a> {
    Record(Payload<'a>),
    /// One fragment of any form and type, with a valid checksum.
    Odd(u8, u8, Few<'a>),
    /// Bytes, unchanged.
    Bytes(Few<'a>),
    /// Zeros up to the end of the block.
    Zeros,
}

impl<'a> Arbitrary<'a> for Entry<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u8::arbitrary(u)? {
            // Most entries are records, because bytes that no writer writes hide the records after
            // them.
            0..=223 => Entry::Record(u.arbitrary()?),
            224..=239 => Entry::Odd(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?),
            240..=247 => Entry::Bytes(u.arbitrary()?),
            248..=255 => Entry::Zeros,
        })
    }
}

/// The recipe for a log.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    dialect: u8,
    how: u8,
    number: u8,
    entries: Vec<Entry<'a>>,
    is_closed: bool,
    /// The log that was in the file before, with the form in which it was written and its records.
    older: Option<(u8, Vec<Payload<'a>>)>,
    damage: Vec<Damage<'a>>,
}

impl<'a> Arbitrary<'a> for Script<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let older = |u: &mut Unstructured<'a>| Ok((u.arbitrary()?, several(u)?));
        let (dialect, how, number) = u.arbitrary()?;
        let flags = u8::arbitrary(u)?;
        Ok(Script {
            dialect,
            how,
            number,
            entries: several(u)?,
            is_closed: flags & 1 == 1,
            older: if flags & 2 == 2 { Some(older(u)?) } else { None },
            damage: match flags >> 2 & 3 {
                0 => Vec::new(),
                1 => vec![u.arbitrary()?],
                _ => several(u)?.into_iter().take(DAMAGE_MAX).collect(),
            },
        })
    }
}

/// A log in a file.
#[derive(Debug, Clone)]
pub struct Log {
    /// The dialect, the number and the compression with which the log was written.
    pub format: LogFormat,
    /// The damaged file.
    pub file: File,
    /// The records as they were written, each with its offset.
    pub records: Vec<(u64, Vec<u8>)>,
    /// The number of records before any damage and before any bytes that no writer would write.
    pub intact_count: usize,
    /// Whether all records are intact. No bytes follow them, except possibly an older log of the
    /// same form that readers can recognise.
    pub is_whole: bool,
    /// The length of the log, without damage and without the older log.
    pub own_len: usize,
    /// The whole older log, if its fragments have the same form.
    pub older: Vec<u8>,
}

impl Script<'_> {
    /// Builds the log.
    pub fn build(&self) -> Log {
        let dialect = Dialect::ALL[usize::from(self.dialect) % Dialect::ALL.len()];
        let number = NUMBERS[usize::from(self.number) % NUMBERS.len()];
        let (prefix, grid) = layout(dialect);
        // The form decides whether the log has a number.
        let plain = LogFormat::new(dialect);
        let (form, format) = match (dialect.name(), self.how % 4) {
            ("wandb" | "wandb_old" | "swanlab", _) => (Form::Ieee, plain),
            ("rocksdb" | "pebble" | "recyclable", 1) => (Form::Recyclable(number), plain.with_log_number(number)),
            ("pebble", 2 | 3) => {
                let synced = u64::from(self.how / 4) << 8;
                (Form::Synced(number, synced), plain.with_log_number(number))
            }
            ("packed", 1 | 3) => (Form::Plain, plain.with_compression(Compression::Zstd)),
            ("rocksdb", 2) => (Form::Plain, plain.with_compression(Compression::Zstd)),
            ("rocksdb", 3) => (
                Form::Recyclable(number),
                plain.with_compression(Compression::Zstd).with_log_number(number),
            ),
            _ => (Form::Plain, plain),
        };

        let mut bytes = prefix.to_vec();
        // Only the crate can write compressed records and containers. For all other logs, the
        // crate's output is compared with the output of this file.
        let mut encoder = Encoder::with_format(0, format).unwrap();
        let mut encoded = Vec::new();
        encoder.start(&mut encoded);
        let is_encoders = !matches!(form, Form::Synced(..));
        let is_only_encoders = format.compression.is_some() || dialect == Dialect::PACKED;
        if is_only_encoders {
            bytes.clone_from(&encoded);
        }
        let (mut records, mut headers, mut lens) = (Vec::new(), Vec::new(), Vec::new());
        // The first record that may be in the open container.
        let mut open = 0;
        let mut intact_len = None;
        for entry in &self.entries {
            if bytes.len() > LEN_MAX {
                break;
            }
            if !matches!(entry, Entry::Record(_)) {
                encoder.end_container(&mut bytes);
                end_records(&mut records, &mut open, bytes.len());
            }
            headers.push(bytes.len());
            match *entry {
                Entry::Record(payload) => {
                    let data = payload.bytes((bytes.len() - grid + form.header_len()) as u64);
                    lens.push(data.len());
                    let start = bytes.len();
                    let offset = if is_only_encoders {
                        encoder.encode(&data, &mut bytes)
                    } else {
                        form.append(&mut bytes, grid, &data)
                    };
                    if is_encoders && !is_only_encoders && intact_len.is_none() {
                        encoded.clear();
                        assert_eq!(encoder.encode(&data, &mut encoded), offset, "{format:?}");
                        assert!(encoded == bytes[start..], "the record at {offset}, {format:?}");
                    }
                    records.push((offset, bytes.len(), data));
                    if self.number > 127 {
                        encoder.end_container(&mut bytes);
                    }
                    end_records(&mut records, &mut open, bytes.len());
                    continue;
                }
                Entry::Odd(odd, kind, Few(payload)) => {
                    let forms = [
                        form,
                        Form::Plain,
                        Form::Recyclable(NUMBERS[usize::from(kind) % 4]),
                        Form::Ieee,
                    ];
                    let odd = forms[usize::from(odd) % forms.len()];
                    odd.pad(&mut bytes, grid);
                    let room = left(bytes.len(), grid) - odd.header_len();
                    let fragment = odd.fragment(kind % 16, &payload[..payload.len().min(room)]);
                    intact_len.get_or_insert(headers[headers.len() - 1]);
                    bytes.extend(fragment);
                }
                Entry::Bytes(Few(piece)) => {
                    intact_len.get_or_insert(bytes.len());
                    bytes.extend_from_slice(piece);
                }
                Entry::Zeros => {
                    intact_len.get_or_insert(bytes.len());
                    bytes.resize(bytes.len() + left(bytes.len(), grid), 0);
                }
            }
            encoder = Encoder::with_format(bytes.len() as u64, format).unwrap();
        }
        encoder.end_container(&mut bytes);
        end_records(&mut records, &mut open, bytes.len());
        if self.is_closed {
            encoded.clear();
            let encoder = Encoder::with_format(bytes.len() as u64, format).unwrap();
            encoder.finish(&mut encoded);
            bytes.extend(&encoded);
        }
        let own_len = bytes.len();
        let (older, older_form) = self.older(number, form, grid);
        bytes.extend(older.get(own_len..).unwrap_or_default());

        let is_seen = older.len() <= own_len || (older_form.is_some() && format.log_number.is_some());
        let mut file = File::new(bytes, headers, lens);
        let before = file.bytes.clone();
        for &damage in &self.damage {
            file.damage(damage);
        }
        let same = (before.iter().zip(&file.bytes)).take_while(|(a, b)| a == b).count();
        let is_same = before == file.bytes;
        let intact_len = intact_len
            .unwrap_or(usize::MAX)
            .min(if is_same { usize::MAX } else { same });
        let intact_count = records.iter().take_while(|(_, end, _)| *end <= intact_len).count();
        Log {
            format,
            is_whole: intact_len == usize::MAX && is_seen,
            intact_count,
            records: records.into_iter().map(|(offset, _, data)| (offset, data)).collect(),
            file,
            own_len,
            // If the older fragments have no number, a reader may take them for fragments of this
            // log as long as nothing of it has been written.
            older: if older_form.is_some() { older } else { Vec::new() },
        }
    }

    /// Returns an older log. Also returns its form, if a reader of the new log recognises it as the
    /// form of another log.
    fn older(&self, number: u32, own: Form, grid: usize) -> (Vec<u8>, Option<Form>) {
        let Some((how, records)) = &self.older else {
            return (Vec::new(), Some(own));
        };
        let other = NUMBERS[(usize::from(how / 4) % 3 + 1 + (number - NUMBERS[0]) as usize) % NUMBERS.len()];
        let form = match (how % 4, own) {
            (0, _) => Form::Plain,
            (1, _) => Form::Recyclable(other),
            (_, Form::Synced(_, synced)) => Form::Synced(other, synced),
            (_, Form::Recyclable(_)) => Form::Recyclable(other),
            (_, form) => form,
        };
        let mut bytes = Vec::new();
        for payload in records {
            if bytes.len() > LEN_MAX {
                break;
            }
            // A nested fragment without a number may start exactly where the new log ends. A reader
            // would take it for a part of the new log, so payloads of the older log contain no
            // fragments.
            let payload = match *payload {
                Payload::Log(_, size) => Payload::Noise(0, size),
                payload => payload,
            };
            let data = payload.bytes((bytes.len() + form.header_len()) as u64);
            form.append(&mut bytes, 0, &data);
        }
        let is_seen = grid == 0 && std::mem::discriminant(&form) == std::mem::discriminant(&own);
        (bytes, is_seen.then_some(form))
    }
}

/// Returns the first bytes of a file of this dialect, and the offset of its first block.
pub fn layout(dialect: Dialect) -> (&'static [u8], usize) {
    match dialect.name() {
        "wandb" => (b":W&B\xe1\xbe\x00", 0),
        "wandb_old" => (b":W&B\xe1\xbe\x00", 7),
        "swanlab" => (b":SWL\xd6\xe1\x02", 0),
        _ => (b"", 0),
    }
}

/// Returns the length of the longest header of a dialect. If fewer zeros than this are left at the
/// end of a block, they are a trailer.
pub fn header_len_max(dialect: Dialect) -> usize {
    match dialect.name() {
        "rocksdb" | "recyclable" => 11,
        "pebble" => 19,
        _ => 7,
    }
}
