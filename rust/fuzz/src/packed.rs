//! Builds packed logs from a fuzzer's bytes. The values in a container are mutated before the
//! checksums are computed, because a mutation of the finished file would only cause a checksum
//! mismatch.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::BLOCK;
use crate::containers::MARK;
use crate::file::{Damage, Few, File, Payload, Size, several};
use crate::model;
use crate::zstd::{Descriptor, MAGIC};

const HEADER: usize = 7;

/// No piece is added to a file that is longer than this.
const LEN_MAX: usize = 2 * BLOCK;

/// The maximum number of damaged places in a file.
const DAMAGE_MAX: usize = 4;

/// The maximum number of bytes that one block of a frame repeats. Even a few hundred such blocks do
/// not fill memory.
const RUN_MAX: usize = 4096;

/// The types of FULL, FIRST, MIDDLE and LAST fragments.
const PLAIN: [u8; 4] = [1, 2, 3, 4];
const PACKED: [u8; 4] = [0x40, 0x42, 0x44, 0x46];

/// A part of a zstd frame's content.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Block<'a> {
    Raw(Few<'a>),
    Repeated(u8, u16),
    /// This header unchanged, followed by these bytes.
    Odd([u8; 3], Few<'a>),
}

/// A zstd frame that is built by hand.
#[derive(Debug, Clone)]
struct Frame<'a> {
    /// The descriptor of the header, without its reserved bits.
    descriptor: u8,
    /// How much larger the stated length of the content is than its real length.
    more: i8,
    blocks: Vec<Block<'a>>,
}

impl<'a> Arbitrary<'a> for Frame<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Frame {
            // Most descriptors state the length in four bytes and have a single segment.
            descriptor: u8::arbitrary(u)? ^ 0xa0,
            more: if u8::arbitrary(u)? < 200 { 0 } else { i8::arbitrary(u)? },
            blocks: several(u)?,
        })
    }
}

impl Frame<'_> {
    /// Returns a frame that contains the bytes of `start` and then its own blocks.
    fn bytes(&self, start: &[u8]) -> Vec<u8> {
        let mut content_len = start.len();
        let mut parts = vec![(0, start.len(), start.to_vec())];
        let mut blocks = self.blocks.iter();
        let mut odd = Vec::new();
        for block in &mut blocks {
            match *block {
                Block::Raw(Few(data)) => {
                    content_len += data.len();
                    parts.push((0, data.len(), data.to_vec()));
                }
                Block::Repeated(byte, len) => {
                    let len = usize::from(len) % RUN_MAX;
                    content_len += len;
                    parts.push((1, len, vec![byte]));
                }
                Block::Odd(header, Few(data)) => {
                    odd.extend(header);
                    odd.extend(data);
                    break;
                }
            }
        }
        let descriptor = Descriptor(self.descriptor);
        let mut frame = MAGIC.to_vec();
        frame.push(descriptor.0);
        if descriptor.has_window() {
            // The window size is 128 KiB.
            frame.push(0x38);
        }
        frame.extend(&[0; 4][..descriptor.dictionary_len()]);
        let size_len = descriptor.size_len();
        let stated = (content_len as i64 + i64::from(self.more)) - if size_len == 2 { 256 } else { 0 };
        frame.extend(&stated.to_le_bytes()[..size_len]);
        let count = parts.len();
        for (index, (kind, len, data)) in parts.into_iter().enumerate() {
            let is_last = index + 1 == count && odd.is_empty();
            let header = (len as u32) << 3 | kind << 1 | u32::from(is_last);
            frame.extend(&header.to_le_bytes()[..3]);
            frame.extend(data);
        }
        frame.extend(odd);
        if descriptor.has_checksum() {
            // This checksum is wrong.
            frame.extend([0; 4]);
        }
        frame
    }
}

/// A change to the bytes of a container.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Edit<'a> {
    Set(u16, u8),
    Flip(u16, u8),
    Insert(u16, Few<'a>),
    Remove(u16, u8),
    Cut(u16),
}

impl Edit<'_> {
    fn apply(self, bytes: &mut Vec<u8>) {
        let at = |place: u16| usize::from(place) % (bytes.len() + 1);
        match self {
            Edit::Set(place, byte) => {
                let at = at(place);
                bytes[at..].iter_mut().take(1).for_each(|old| *old = byte);
            }
            Edit::Flip(place, bit) => {
                let at = at(place);
                bytes[at..].iter_mut().take(1).for_each(|old| *old ^= 1 << (bit % 8));
            }
            Edit::Insert(place, Few(new)) => {
                let at = at(place);
                bytes.splice(at..at, new.iter().copied());
            }
            Edit::Remove(place, len) => {
                let at = at(place);
                bytes.drain(at..bytes.len().min(at + usize::from(len % 8)));
            }
            Edit::Cut(place) => {
                let at = at(place);
                bytes.truncate(at);
            }
        }
    }
}

/// How the body of a container is stored.
#[derive(Arbitrary, Debug, Clone)]
enum Stored<'a> {
    Plain,
    Made(Frame<'a>),
    /// Compressed by the zstd library.
    Compressed,
    /// Stored uncompressed, under any codec.
    Odd(u8),
}

/// A container as a writer writes it, except for the edits.
#[derive(Arbitrary, Debug, Clone)]
struct Container<'a> {
    stored: Stored<'a>,
    records: Records<'a>,
    /// How many more records the container states than it has.
    more: Option<i16>,
    edits: Edits<'a>,
}

/// The records of a container: a few, a long one, or many empty ones.
#[derive(Debug, Clone)]
enum Records<'a> {
    Few(Vec<Few<'a>>),
    Long(Payload<'a>),
    Empty(u16),
}

impl<'a> Arbitrary<'a> for Records<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u8::arbitrary(u)? {
            0..=223 => Records::Few(several(u)?),
            224..=239 => Records::Long(u.arbitrary()?),
            240..=255 => Records::Empty(u.arbitrary()?),
        })
    }
}

/// The edits of a container. Most containers have no edits.
#[derive(Debug, Clone)]
struct Edits<'a>(Vec<Edit<'a>>);

impl<'a> Arbitrary<'a> for Edits<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Edits(match u8::arbitrary(u)? {
            0..=127 => Vec::new(),
            128..=223 => vec![u.arbitrary()?],
            224..=255 => several(u)?.into_iter().take(4).collect(),
        }))
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

impl Container<'_> {
    fn bytes(&self, offset: u64) -> Vec<u8> {
        let records: Vec<Vec<u8>> = match &self.records {
            Records::Few(records) => records.iter().map(|record| record.0.to_vec()).collect(),
            Records::Long(payload) => vec![payload.bytes(offset)],
            Records::Empty(count) => vec![Vec::new(); usize::from(*count)],
        };
        let lens = records.iter().flat_map(|record| varint(record.len() as u64));
        let body: Vec<u8> = lens.chain(records.concat()).collect();
        let count = (records.len() as i64 + i64::from(self.more.unwrap_or(0))).max(0);
        let (codec, stored) = match &self.stored {
            Stored::Plain => (0, body),
            Stored::Made(frame) => (1, frame.bytes(&body)),
            Stored::Compressed => {
                let mut frame = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
                zstd_safe::compress(&mut frame, &body, 1).expect("room for a frame");
                (1, frame)
            }
            Stored::Odd(codec) => (*codec, body),
        };
        let mut bytes = [vec![codec], varint(count as u64), stored].concat();
        for edit in &self.edits.0 {
            edit.apply(&mut bytes);
        }
        bytes
    }
}

/// A part of a file.
#[derive(Arbitrary, Debug, Clone)]
enum Piece<'a> {
    /// A container in as many fragments as it needs.
    Container(Container<'a>),
    /// A container in two fragments of any types, cut at this place.
    Parts(Container<'a>, u8, u8, u16),
    Record(Payload<'a>),
    Mark(u8, u8, Few<'a>),
    /// A fragment of any type with any payload.
    Odd(u8, Payload<'a>),
    /// A record that leaves a few bytes of the block free.
    Fill(u8),
    Zeros,
    Bytes(Few<'a>),
}

/// The recipe for a packed log.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    pieces: Vec<Piece<'a>>,
    damage: Vec<Damage<'a>>,
}

impl<'a> Arbitrary<'a> for Script<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let how = u8::arbitrary(u)?;
        let pieces = several(u)?;
        let damage = several(u)?.into_iter();
        Ok(Script {
            pieces,
            // Half of the logs have no damage, because damage hides the values in the containers.
            damage: damage
                .take(usize::from(how / 2) % (2 * DAMAGE_MAX) * usize::from(how % 2) / 2)
                .collect(),
        })
    }
}

impl Script<'_> {
    /// Builds the log.
    pub fn build(&self) -> File {
        let mut bytes = Vec::new();
        let (mut headers, mut lens) = (Vec::new(), Vec::new());
        for piece in &self.pieces {
            if bytes.len() > LEN_MAX {
                break;
            }
            if !matches!(piece, Piece::Zeros | Piece::Bytes(_)) {
                let trailer = model::trailer(bytes.len() as u64);
                bytes.resize(bytes.len() + trailer, 0);
            }
            headers.push(bytes.len());
            let offset = (bytes.len() + HEADER) as u64;
            match piece {
                Piece::Container(container) => {
                    let payload = container.bytes(offset);
                    lens.push(payload.len());
                    append(&mut bytes, PACKED, &payload);
                }
                Piece::Parts(container, one, other, cut) => {
                    let payload = container.bytes(offset);
                    let (head, tail) = payload.split_at(usize::from(*cut) % (payload.len() + 1));
                    append_part(&mut bytes, kind_of(*one), head);
                    headers.push(bytes.len());
                    append_part(&mut bytes, kind_of(*other), tail);
                }
                Piece::Record(payload) => {
                    let payload = payload.bytes(offset);
                    lens.push(payload.len());
                    append(&mut bytes, PLAIN, &payload);
                }
                Piece::Mark(version, codec, Few(more)) => {
                    // Most marks state the current version and a known codec.
                    let version = if *version < 240 { 1 } else { version % 4 };
                    let codec = if *codec < 240 { codec % 2 } else { *codec };
                    let payload = [b"cordwood", &[version, codec][..], more].concat();
                    append_part(&mut bytes, MARK, &payload);
                }
                Piece::Odd(kind, payload) => append_part(&mut bytes, kind_of(*kind), &payload.bytes(offset)),
                Piece::Fill(left) => {
                    let size = Size::Leave { left: *left, blocks: 0 };
                    append(&mut bytes, PLAIN, &Payload::Noise(*left, size).bytes(offset));
                }
                Piece::Zeros => bytes.resize(bytes.len() + model::left_in_block(bytes.len() as u64), 0),
                Piece::Bytes(Few(few)) => bytes.extend(*few),
            }
        }
        let mut file = File::new(bytes, headers, lens);
        for &damage in &self.damage {
            file.damage(damage);
        }
        file
    }
}

/// Converts a byte to a fragment type. Most results are types of a packed log.
fn kind_of(byte: u8) -> u8 {
    match byte {
        0..=127 => PACKED[usize::from(byte % 4)],
        128..=191 => PLAIN[usize::from(byte % 4)],
        192..=223 => MARK,
        byte => byte % 0x50,
    }
}

/// Appends a fragment. The payload is cut at the end of the block.
fn append_part(file: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let trailer = model::trailer(file.len() as u64);
    file.resize(file.len() + trailer, 0);
    let room = model::left_in_block(file.len() as u64) - HEADER;
    file.extend(model::fragment(kind, &payload[..payload.len().min(room)]));
}

/// Appends a record or a container in fragments of these types.
fn append(file: &mut Vec<u8>, kinds: [u8; 4], payload: &[u8]) {
    let trailer = model::trailer(file.len() as u64);
    file.resize(file.len() + trailer, 0);
    let (mut rest, mut is_first) = (payload, true);
    loop {
        let room = model::left_in_block(file.len() as u64) - HEADER;
        let (part, after) = rest.split_at(rest.len().min(room));
        let place = match (is_first, after.is_empty()) {
            (true, true) => 0,
            (true, false) => 1,
            (false, false) => 2,
            (false, true) => 3,
        };
        file.extend(model::fragment(kinds[place], part));
        if after.is_empty() {
            return;
        }
        (rest, is_first) = (after, false);
    }
}
