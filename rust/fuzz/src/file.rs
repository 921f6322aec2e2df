//! Files made from a fuzzer's bytes: the bytes themselves, or a script of pieces and damage.
//!
//! Mutating bytes never guesses a checksum or fills a block, so raw bytes would never reach most of
//! a reader's code. A script reaches it in a few bytes: records and fragments with valid checksums,
//! sizes that end near the end of a block, and damage aimed at headers and block ends.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::BLOCK;
use crate::model::{self, left_in_block, trailer};

const HEADER: usize = 7;

/// Pieces are added to a file as long as it is shorter than this.
const LEN_MAX: usize = 3 * BLOCK;

/// The maximum number of a script's pieces, of its damages, or of a list's records.
const COUNT_MAX: usize = 24;

/// Bytes of the input, at most 255. A slice would consume all the remaining input.
#[derive(Debug, Clone, Copy)]
pub struct Few<'a>(pub &'a [u8]);

impl<'a> Arbitrary<'a> for Few<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let len = usize::from(u8::arbitrary(u)?);
        u.bytes(len.min(u.len())).map(Few)
    }
}

/// A few items, but not so many that a run takes long.
pub fn several<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    let items = u.arbitrary_iter()?;
    items.take(COUNT_MAX).collect()
}

/// The length of a payload or a run of bytes.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub enum Size {
    /// This many bytes.
    Len(u8),
    /// Enough to leave a few bytes of the block, or of one of the next two: most of the format's
    /// rules are about that.
    Leave {
        /// How many bytes of the block are left, less than 16.
        left: u8,
        /// Whole blocks in between.
        blocks: u8,
    },
    /// Up to two blocks.
    Any(u16),
}

impl Size {
    /// The length of the piece that starts at the file offset `offset`.
    pub fn at(self, offset: u64) -> usize {
        match self {
            Size::Len(len) => usize::from(len),
            Size::Leave { left, blocks } => {
                // More than one additional block is rare, since it takes long.
                let blocks = usize::from(blocks).saturating_sub(127) / 64;
                let room = left_in_block(offset) + blocks * (BLOCK - HEADER);
                room.saturating_sub(usize::from(left % 16))
            }
            // Mostly short, since most runs should be.
            Size::Any(len) => usize::from(len >> (len % 8)),
        }
    }
}

/// The bytes of a record or a fragment.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Bytes of the input.
    Input(Few<'a>),
    /// One repeated byte.
    Repeat(u8, Size),
    /// Bytes without structure.
    Noise(u8, Size),
    /// Whole fragments, as in a log that is stored in a log.
    Log(Few<'a>, Size),
}

impl Payload<'_> {
    /// The bytes, if they start at the file offset `offset`.
    pub fn bytes(self, offset: u64) -> Vec<u8> {
        match self {
            Payload::Input(Few(bytes)) => bytes.to_vec(),
            Payload::Repeat(byte, size) => vec![byte; size.at(offset)],
            Payload::Noise(seed, size) => noise(seed, size.at(offset)),
            Payload::Log(Few(data), size) => {
                let fragment = model::fragment(1, data);
                fragment.iter().copied().cycle().take(size.at(offset)).collect()
            }
        }
    }
}

/// `len` bytes without structure (xorshift).
pub fn noise(seed: u8, len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15 ^ u64::from(seed) << 32;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend(x.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A part of a file, as a writer leaves it or as no writer does.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Piece<'a> {
    /// A whole record, in as many fragments as it needs.
    Record(Payload<'a>),
    /// One fragment with a valid checksum and a type of 0 to 7, that fits into the block.
    Fragment(u8, Payload<'a>),
    /// The same, of any type.
    Odd(u8, Payload<'a>),
    /// FIRST without payload, as old versions of LevelDB wrote it. This and the next two make a log
    /// odd but not damaged.
    EmptyFirst,
    /// Zeros to the end of the block.
    Zeros,
    /// As many bytes of this value as a trailer here would have.
    Trailer(u8),
    /// A few bytes as they are.
    Bytes(Few<'a>),
    /// The same byte, repeated.
    Fill(u8, Size),
}

/// A place in a file. Most bytes are payload, where only a checksum can become invalid, so the
/// others are aimed at.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub enum Place {
    /// A byte of a piece's first header, or of the bytes after it.
    Header(u8, u8),
    /// A byte near the end of a block.
    Edge(u8, u8),
    /// Any place, even slightly after the end.
    Any(u32),
}

/// The changes to a file.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub(crate) enum Damage<'a> {
    Flip(Place, u8),
    Set(Place, u8, Size),
    Overwrite(Place, Few<'a>),
    /// Another length under the old checksum.
    Length(u8, u16),
    /// Another type with a valid checksum, if the fragment is whole.
    Kind(u8, u8),
    Cut(Place),
    Remove(Place, Size),
    Insert(Place, Few<'a>),
    SwapBlocks(u8, u8),
    AppendZeros(Size),
}

/// Where a file comes from.
#[derive(Debug, Clone)]
pub enum Script<'a> {
    /// The file itself.
    Bytes(&'a [u8]),
    /// Its recipe.
    Pieces(Pieces<'a>),
}

/// The recipe for a file.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    pieces: Vec<Piece<'a>>,
    damage: Vec<Damage<'a>>,
}

impl<'a> Arbitrary<'a> for Script<'a> {
    /// Consumes all the remaining input, so that a file in a corpus can be a log after a few zeros.
    /// See `examples/seeds.rs`.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let how = u8::arbitrary(u)? % 4;
        if how == 0 {
            return u.bytes(u.len()).map(Script::Bytes);
        }
        let pieces = several(u)?;
        // Most logs are only slightly damaged: heavy damage would hide the cases with a little of
        // it.
        let mut damage = several(u)?;
        damage.truncate(match how {
            1 => 0,
            2 => 1,
            _ => COUNT_MAX,
        });
        Ok(Script::Pieces(Pieces { pieces, damage }))
    }
}

/// A file, and the places in it that are worth aiming at.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct File {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Where the pieces' first headers are.
    headers: Vec<usize>,
    /// The length of the data of each record or fragment.
    data_lens: Vec<usize>,
}

impl Script<'_> {
    /// The file.
    pub fn build(&self) -> File {
        let mut file = File::default();
        match self {
            Script::Bytes(bytes) => file.bytes.extend_from_slice(bytes),
            Script::Pieces(Pieces { pieces, damage }) => {
                for &piece in pieces {
                    if file.bytes.len() < LEN_MAX {
                        file.push(piece);
                    }
                }
                for &damage in damage {
                    file.damage(damage);
                }
            }
        }
        file
    }
}

impl File {
    /// A file of these bytes, with these places to aim at.
    pub(crate) fn new(bytes: Vec<u8>, headers: Vec<usize>, data_lens: Vec<usize>) -> Self {
        File {
            bytes,
            headers,
            data_lens,
        }
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn push(&mut self, piece: Piece<'_>) {
        let trailer = match piece {
            Piece::Record(_) | Piece::Fragment(..) | Piece::Odd(..) | Piece::EmptyFirst => trailer(self.len()),
            Piece::Zeros | Piece::Trailer(_) | Piece::Bytes(_) | Piece::Fill(..) => 0,
        };
        let header = self.bytes.len() + trailer;
        self.headers.push(header);
        // After a header: `Size::Leave` is about where the payload ends.
        let payload_offset = (header + HEADER) as u64;
        match piece {
            Piece::Record(payload) => {
                let data = payload.bytes(payload_offset);
                let (bytes, _) = model::encode(self.len(), &data);
                self.bytes.extend(bytes);
                self.data_lens.push(data.len());
            }
            Piece::Fragment(kind, payload) => self.push_fragment(header, kind % 8, payload),
            Piece::Odd(kind, payload) => self.push_fragment(header, kind, payload),
            Piece::EmptyFirst => self.push_fragment(header, 2, Payload::Input(Few(&[]))),
            Piece::Zeros => self.bytes.resize(header + left_in_block(header as u64), 0),
            Piece::Trailer(byte) => self.bytes.resize(header + self::trailer(header as u64), byte),
            Piece::Bytes(Few(bytes)) => self.bytes.extend_from_slice(bytes),
            Piece::Fill(byte, size) => {
                let len = size.at(self.len());
                self.bytes.resize(header + len, byte);
            }
        }
    }

    fn push_fragment(&mut self, header: usize, kind: u8, payload: Payload<'_>) {
        let mut payload = payload.bytes((header + HEADER) as u64);
        payload.truncate(left_in_block(header as u64) - HEADER);
        self.bytes.resize(header, 0);
        self.bytes.extend(model::fragment(kind, &payload));
        self.data_lens.push(payload.len());
    }

    /// The length of a record's or fragment's data, before any damage; 0 if there is none.
    pub(crate) fn piece_len(&self, piece: u8) -> u64 {
        let len = self.data_lens.get(usize::from(piece) % self.data_lens.len().max(1));
        len.copied().unwrap_or_default() as u64
    }

    /// The place as an offset, which may be slightly after the end of the file.
    pub fn at(&self, place: Place) -> usize {
        match place {
            Place::Header(piece, behind) => {
                let header = self.headers.get(usize::from(piece) % self.headers.len().max(1));
                header.copied().unwrap_or_default() + usize::from(behind % 12)
            }
            Place::Edge(block, behind) => {
                let blocks = self.bytes.len() / BLOCK + 2;
                (usize::from(block) % blocks * BLOCK + usize::from(behind % 32)).saturating_sub(16)
            }
            Place::Any(offset) => offset as usize % (self.bytes.len() + 16),
        }
    }

    /// The part of the file starting at `place`, at most `len` bytes.
    fn range(&self, place: Place, len: usize) -> std::ops::Range<usize> {
        let start = self.at(place).min(self.bytes.len());
        start..self.bytes.len().min(start + len)
    }

    pub(crate) fn damage(&mut self, damage: Damage<'_>) {
        if self.bytes.is_empty() {
            return;
        }
        let header = |piece: u8| {
            self.headers
                .get(usize::from(piece) % self.headers.len().max(1))
                .copied()
        };
        match damage {
            Damage::Flip(place, bit) => {
                let range = self.range(place, 1);
                for byte in &mut self.bytes[range] {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Damage::Set(place, byte, size) => {
                let range = self.range(place, size.at(self.at(place) as u64));
                self.bytes[range].fill(byte);
            }
            Damage::Overwrite(place, Few(bytes)) => {
                let range = self.range(place, bytes.len());
                let len = range.len();
                self.bytes[range].copy_from_slice(&bytes[..len]);
            }
            Damage::Length(piece, len) => {
                if let Some(stated) = header(piece).and_then(|at| self.bytes.get_mut(at + 4..at + 6)) {
                    stated.copy_from_slice(&len.to_le_bytes());
                }
            }
            Damage::Kind(piece, kind) => {
                if let Some(at) = header(piece) {
                    self.set_kind(at, kind);
                }
            }
            Damage::Cut(place) => {
                let start = self.range(place, 0).start;
                self.bytes.truncate(start);
            }
            Damage::Remove(place, size) => {
                let range = self.range(place, size.at(self.at(place) as u64));
                self.bytes.drain(range);
            }
            Damage::Insert(place, Few(bytes)) => {
                let start = self.range(place, 0).start;
                self.bytes.splice(start..start, bytes.iter().copied());
            }
            Damage::SwapBlocks(one, other) => {
                let blocks = self.bytes.len() / BLOCK;
                if blocks > 0 {
                    let (one, other) = (usize::from(one) % blocks, usize::from(other) % blocks);
                    for at in 0..BLOCK {
                        self.bytes.swap(one * BLOCK + at, other * BLOCK + at);
                    }
                }
            }
            Damage::AppendZeros(size) => {
                let len = self.bytes.len() + size.at(self.len());
                self.bytes.resize(len, 0);
            }
        }
    }

    fn set_kind(&mut self, at: usize, kind: u8) {
        let Some(bytes) = self.bytes.get_mut(at..).filter(|bytes| bytes.len() >= HEADER) else {
            return;
        };
        let (header, behind) = bytes.split_at_mut(HEADER);
        let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
        if let Some(payload) = behind.get(..len) {
            header[..4].copy_from_slice(&model::stored_checksum(kind, payload).to_le_bytes());
            header[6] = kind;
        }
    }
}
