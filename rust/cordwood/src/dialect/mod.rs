//! Dialects: plain data that describes how the bytes of a log are laid out.
//!
//! All dialects have 32 KiB blocks, the same layout for a header's first seven bytes, and the same
//! rule for FULL, FIRST, MIDDLE and LAST fragments. They differ in the header length, the checksum,
//! what the type bytes mean, and how a file starts and ends.
//!
//! Each dialect is a constant in its engine's source file and is listed in [`Dialect::ALL`]. This
//! list determines which dialects can be named, detected, and chosen on the command line.

mod grid;
mod leveldb;
mod log_format;
mod packed;
mod pebble;
mod rocksdb;
mod swanlab;
mod wandb;

pub use grid::Grid;
pub(crate) use log_format::GivenFormat;
pub use log_format::{Compression, LogFormat, Unsupported};
pub(crate) use packed::{MARK, MARK_LEN};
pub(crate) use rocksdb::{NO_COMPRESSION, SET_ZSTD, ZSTD};

use crate::checksum::Checksum;
use crate::format::{FragmentKind, HEADER_LEN, Header, KIND_AT, Kind};
use crate::names::{UnknownName, parse};

/// The byte layout of a log. The engines' logs differ only in their dialect.
///
/// A dialect describes the bytes, not the program that wrote them. RocksDB without recycling writes
/// [`LEVELDB`](Self::LEVELDB) logs, byte for byte. So do Datastore, Firestore and App Engine, which
/// pad blocks with zeros. A reader reports these zeros as
/// [`Reason::ZeroFill`](crate::damage::Reason::ZeroFill).
///
/// A log's number and compression are in its [`LogFormat`]. Dialects are equal if they have the
/// same name.
///
/// RocksDB starts its logs with the same bytes as LevelDB and Pebble, and can write its metadata
/// records later in the log. So if [`LEVELDB`](Self::LEVELDB) or [`RECYCLABLE`](Self::RECYCLABLE)
/// was detected, the dialect also includes these records. With the dialect that
/// [`detect`](crate::ops::detect) or a reader returns, they are read as
/// [`Reason::Metadata`](crate::damage::Reason::Metadata). With the constants `LEVELDB` and
/// `RECYCLABLE`, they are read as fragments of an unknown type.
///
/// ```
/// use cordwood_log::{Dialect, ReadOptions, Reader};
/// let mut reader = Reader::from_slice(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo", ReadOptions::default());
/// assert_eq!(reader.format()?.dialect, Dialect::LEVELDB);
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Dialect(&'static Spec);

/// The data describing a dialect. Several values can have the same name. Some dialects have two
/// values: one is used if the dialect is named, the other if it is detected. SwanLab has one value
/// for each version of its file header.
#[derive(Clone, Copy)]
struct Spec {
    name: &'static str,
    kinds: &'static Kinds,
    checksum: Checksum,
    /// The file header, before the first fragment.
    prefix: &'static [u8],
    /// The first bytes of the file header, which identify a file even if the bytes after them are
    /// damaged.
    signature: &'static [u8],
    /// Whether the last byte of the file header is a version.
    has_version: bool,
    /// The file offset of the first block.
    grid_offset: u64,
    /// Whether a closed log ends with a header that has no checksum.
    has_end_trailer: bool,
}

impl Dialect {
    /// All dialects. Later releases may add more.
    ///
    /// ```
    /// use cordwood_log::Dialect;
    /// let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
    /// assert_eq!(names[..3], ["leveldb", "rocksdb", "pebble"]);
    /// ```
    pub const ALL: &'static [Dialect] = &[
        Dialect::LEVELDB,
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
        Dialect::RECYCLABLE,
        Dialect::WANDB,
        Dialect::WANDB_OLD,
        Dialect::SWANLAB,
        Dialect::PACKED,
    ];

    /// The dialects that can be identified by their fragments. For a fragment from an unknown log,
    /// they are tried in this order. Every other dialect uses the same fragments as one of these
    /// and can only be identified by its file header. `RECYCLABLE` is tried before `ROCKSDB` and
    /// `PEBBLE`, because either engine may have written a fragment of a recyclable type.
    pub(crate) const BY_RANK: &'static [Dialect] = &[
        Dialect::LEVELDB,
        Dialect::RECYCLABLE,
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
        Dialect::WANDB,
        Dialect::PACKED,
    ];

    /// Returns a stable name, such as `"leveldb"`. The name is part of the interface and is the
    /// same in Python and on the command line.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the checksum of the dialect's fragments.
    #[inline]
    pub(crate) const fn checksum(self) -> Checksum {
        self.0.checksum
    }

    /// Returns the file header, which precedes the first fragment. It is empty if the dialect has
    /// no file header.
    #[inline]
    pub(crate) const fn prefix(self) -> &'static [u8] {
        self.0.prefix
    }

    /// Returns the first bytes of the file header.
    pub(crate) const fn signature(self) -> &'static [u8] {
        self.0.signature
    }

    /// Returns the file offset of the first block.
    pub(crate) const fn grid_offset(self) -> u64 {
        self.0.grid_offset
    }

    /// Checks whether both dialects use the same fragments.
    pub(crate) fn has_fragments_of(self, other: Dialect) -> bool {
        std::ptr::eq(self.0.kinds, other.0.kinds) && self.checksum() == other.checksum()
    }

    /// Checks whether fragments may carry their log's number, which distinguishes them from stale
    /// fragments. If fragments carry a log number, the end of the log depends on all earlier bytes,
    /// so the log is not read in parallel.
    pub const fn has_log_numbers(self) -> bool {
        self.0.kinds.header_len_max > HEADER_LEN
    }

    /// Checks whether logs may be compressed. A compressed log declares its compression at the
    /// start.
    pub(crate) fn has_compression(self) -> bool {
        self.compresses_records() || self.is_packed()
    }

    /// Checks whether each record in a compressed log is compressed separately.
    pub(crate) const fn compresses_records(self) -> bool {
        matches!(
            self.0.kinds.meanings[SET_ZSTD.0 as usize].role,
            Role::Metadata(Metadata::SetCompression)
        )
    }

    /// Checks whether a FULL fragment of type 1 has the same form as in LevelDB, so that the fast
    /// path can find it.
    pub(crate) const fn has_plain_full(self) -> bool {
        matches!(self.0.checksum, Checksum::MaskedCrc32c)
            && matches!(self.0.kinds.meanings[1].role, Role::Fragment(Kind::Full))
    }

    /// Returns the length of the longest header.
    pub(crate) const fn header_len_max(self) -> usize {
        self.0.kinds.header_len_max
    }

    /// Returns the length of the longest trailer. A trailer consists of zeros and fills a block
    /// that has no room for another header.
    pub(crate) const fn trailer_len_max(self) -> usize {
        self.0.kinds.header_len_max - 1
    }

    /// Returns the meaning of the type byte `byte`.
    #[inline]
    pub(crate) const fn meaning(self, byte: u8) -> Meaning {
        self.0.kinds.meanings[byte as usize]
    }

    /// Returns the kind of a fragment with the type byte `byte`.
    pub(crate) const fn kind_of(self, byte: u8) -> FragmentKind {
        let meaning = self.meaning(byte);
        match (meaning.role, meaning.form) {
            (Role::Fragment(kind), Form::Plain) => FragmentKind::Plain(kind),
            (Role::Fragment(kind), Form::Recyclable) => FragmentKind::Recyclable(kind),
            (Role::Fragment(kind), Form::Synced) => FragmentKind::WalSync(kind),
            (Role::Fragment(kind), Form::Packed) => FragmentKind::Packed(kind),
            (Role::Metadata(Metadata::SetCompression | Metadata::LateSetCompression), _) => {
                FragmentKind::SetCompression
            }
            (Role::Metadata(Metadata::TimestampSizes), _) => FragmentKind::TimestampSizes,
            (Role::Metadata(Metadata::Predecessor), _) => FragmentKind::Predecessor,
            (Role::Metadata(Metadata::Mark), _) => FragmentKind::PackedMark,
            (Role::Ignorable | Role::Unknown, _) if byte == 0 => FragmentKind::Zero,
            (Role::Ignorable | Role::Unknown, _) => FragmentKind::Unknown,
        }
    }

    /// Returns the part of the file header that all versions share.
    pub(crate) const fn magic(self) -> &'static [u8] {
        match self.0.prefix {
            [magic @ .., _] if self.0.has_version => magic,
            prefix => prefix,
        }
    }

    /// Returns the complete fragment with a valid checksum at the start of `bytes`. If
    /// `verify_checksums` is false, any complete fragment is returned. For a type with two forms,
    /// the checksum still determines the form.
    #[inline]
    pub(crate) fn valid(self, bytes: &[u8], verify_checksums: bool) -> Option<Valid> {
        let is_right = |header: Header, covered: &[u8]| header.masked_crc == self.checksum().stored(covered);
        if verify_checksums {
            return self.valid_if(bytes, is_right);
        }
        let has_two_forms = self.other_form(*bytes.get(KIND_AT)?).is_some();
        let by_checksum = if has_two_forms {
            self.valid_if(bytes, is_right)
        } else {
            None
        };
        by_checksum.or_else(|| self.valid_if(bytes, |_, _| true))
    }

    /// Returns the end of the fragment at the start of `bytes`, as stated by `header`. If the type
    /// has two forms, the form with a valid checksum determines the end. If neither checksum is
    /// valid, the first form determines the end.
    pub(crate) fn stated_end(self, header: Header, bytes: &[u8]) -> usize {
        let valid = self.other_form(header.kind).and_then(|_| self.valid(bytes, true));
        valid.map_or(
            self.meaning(header.kind).form.header_len() + usize::from(header.len),
            |valid| valid.end,
        )
    }

    /// Like [`valid`](Self::valid), but calls `is_right` to check whether the header's checksum
    /// matches the bytes it covers.
    #[inline]
    pub(crate) fn valid_if(self, bytes: &[u8], is_right: impl Fn(Header, &[u8]) -> bool) -> Option<Valid> {
        let header = Header::decode(bytes.first_chunk()?);
        let Meaning { role, form } = self.meaning(header.kind);
        let valid_as = |form: Form| {
            let end = form.header_len() + usize::from(header.len);
            let covered = bytes.get(KIND_AT..end)?;
            is_right(header, covered).then_some(Valid { role, form, end })
        };
        if let Some(valid) = valid_as(form) {
            return Some(valid);
        }
        self.other_form(header.kind).and_then(valid_as)
    }

    /// Returns the second form that a fragment with the type byte `kind` can have. By RocksDB's
    /// rule for future types, odd types carry the log number, but some existing types break that
    /// rule, so both forms are tried.
    pub(crate) const fn other_form(self, kind: u8) -> Option<Form> {
        let Meaning { role, form } = self.meaning(kind);
        match (role, form) {
            _ if kind.is_multiple_of(2) => None,
            (Role::Unknown | Role::Ignorable, _) if self.has_log_numbers() => Some(Form::Recyclable),
            (Role::Metadata(Metadata::TimestampSizes | Metadata::Predecessor), Form::Plain) => Some(Form::Recyclable),
            (Role::Metadata(Metadata::TimestampSizes | Metadata::Predecessor), _) => Some(Form::Plain),
            _ => None,
        }
    }

    /// Returns the log number carried by the fragment of this form at the start of `bytes`.
    pub(crate) fn log_number_at(bytes: &[u8], form: Form) -> Option<u32> {
        let number = || bytes[HEADER_LEN..].first_chunk().copied().map(u32::from_le_bytes);
        form.has_log_number().then(number).flatten()
    }

    /// Returns the offset up to which the file had been synced, as stated by the fragment at the
    /// start of `bytes`. `form` is the form of that fragment.
    pub(crate) fn synced_offset_at(bytes: &[u8], form: Form) -> Option<u64> {
        let offset = bytes.get(Form::Recyclable.header_len()..)?.first_chunk()?;
        (form == Form::Synced).then(|| u64::from_le_bytes(*offset))
    }

    /// Returns the log's number if `file` starts with the end-of-log trailer of a log that was
    /// closed without records.
    pub(crate) fn number_of_empty_log(self, file: &[u8]) -> Option<u32> {
        let (zeros, next) = file.split_at_checked(KIND_AT)?;
        let (&kind, next) = next.split_first()?;
        let next = u32::from_le_bytes(*next.first_chunk()?);
        let is_trailer = self.0.has_end_trailer && kind == END_TRAILER_KIND && zeros == [0; KIND_AT];
        is_trailer.then_some(next.wrapping_sub(1))
    }
}

/// The default is [`Dialect::LEVELDB`].
impl Default for Dialect {
    fn default() -> Self {
        Dialect::LEVELDB
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Dialect {}

impl std::hash::Hash for Dialect {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// Shows the [`name`](Dialect::name).
impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0.name)
    }
}

/// Parses the [`name`](Dialect::name).
///
/// ```
/// use cordwood_log::Dialect;
/// assert_eq!("pebble".parse(), Ok(Dialect::PEBBLE));
/// assert!("gzip".parse::<Dialect>().is_err());
/// ```
impl std::str::FromStr for Dialect {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        parse("dialect", Dialect::ALL, Dialect::name, name)
    }
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Dialect").field(&self.0.name).finish()
    }
}

/// The type of the end-of-log trailer. A recyclable FULL fragment has the same type. Source: Pebble
/// `record/log_writer.go`, `emitEOFTrailer`.
const END_TRAILER_KIND: u8 = 5;

/// The form of a fragment, which determines what follows the first seven bytes of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Only the payload follows. It holds record data.
    Plain,
    /// The log number follows.
    Recyclable,
    /// The log number follows, then an offset that shows how far the file had been synced.
    Synced,
    /// Only the payload follows. It holds a container of records.
    Packed,
}

impl Form {
    #[inline]
    pub(crate) const fn header_len(self) -> usize {
        match self {
            Form::Plain | Form::Packed => HEADER_LEN,
            Form::Recyclable => HEADER_LEN + 4,
            Form::Synced => HEADER_LEN + 4 + 8,
        }
    }

    /// Returns the type byte of a fragment of this kind.
    #[inline]
    pub(crate) const fn kind_byte(self, kind: Kind) -> u8 {
        match self {
            Form::Plain => kind as u8,
            Form::Recyclable => 4 + kind as u8,
            Form::Synced => 8 + kind as u8,
            Form::Packed => packed::FULL + 2 * (kind as u8 - Kind::Full as u8),
        }
    }

    /// Checks whether the header carries the log number.
    #[inline]
    pub(crate) const fn has_log_number(self) -> bool {
        matches!(self, Form::Recyclable | Form::Synced)
    }
}

/// A metadata record that an engine writes for its own use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// Declares that all records are compressed.
    SetCompression,
    /// A `SetCompression` record in a log that cannot start with one. It does not mean that other
    /// records are compressed.
    LateSetCompression,
    /// Declares the lengths of the timestamps in the keys of some column families.
    TimestampSizes,
    /// Identifies the previous log.
    Predecessor,
    /// The mark at the start of a packed log.
    Mark,
}

impl Metadata {
    /// Checks whether an engine would write this metadata record with a payload of this length.
    pub(crate) const fn may_have_len(self, len: u16) -> bool {
        match self {
            Metadata::SetCompression => len == 4,
            Metadata::LateSetCompression => false,
            // The payload is a list of pairs, each consisting of a column family and a length.
            Metadata::TimestampSizes => len > 0 && len.is_multiple_of(6),
            Metadata::Predecessor => len == 24,
            // A later version may add bytes to the mark.
            Metadata::Mark => len as usize >= MARK_LEN,
        }
    }
}

/// The role of a type byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Fragment(Kind),
    Metadata(Metadata),
    /// The type is unknown, and its fragments are safe to ignore.
    Ignorable,
    Unknown,
}

/// The meaning of a type byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) role: Role,
    pub(crate) form: Form,
}

/// The meaning of each type byte.
struct Kinds {
    meanings: [Meaning; 256],
    /// The length of the longest fragment header.
    header_len_max: usize,
}

impl Kinds {
    /// Returns a table that contains only LevelDB's four types.
    const fn plain() -> Kinds {
        let unknown = Meaning {
            role: Role::Unknown,
            form: Form::Plain,
        };
        Kinds {
            meanings: [unknown; 256],
            header_len_max: HEADER_LEN,
        }
        .with_fragments(Form::Plain)
    }

    /// Adds the types of FULL, FIRST, MIDDLE and LAST fragments of this form.
    const fn with_fragments(mut self, form: Form) -> Kinds {
        let kinds = [Kind::Full, Kind::First, Kind::Middle, Kind::Last];
        let mut place = 0;
        while place < kinds.len() {
            let kind = kinds[place];
            self = self.with(form.kind_byte(kind), Role::Fragment(kind), form);
            place += 1;
        }
        if form.header_len() > self.header_len_max {
            self.header_len_max = form.header_len();
        }
        self
    }

    const fn with(mut self, byte: u8, role: Role, form: Form) -> Kinds {
        self.meanings[byte as usize] = Meaning { role, form };
        self
    }
}

/// A complete fragment, of any type, with a valid checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Valid {
    pub(crate) role: Role,
    pub(crate) form: Form,
    /// The end of the fragment, relative to its first byte.
    pub(crate) end: usize,
}

impl Valid {
    /// Returns the payload of this fragment. `bytes` starts with the fragment.
    #[inline]
    pub(crate) fn payload(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.form.header_len()..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_type_byte_means_different_things_to_different_engines() {
        let names =
            |byte| [Dialect::LEVELDB, Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| dialect.kind_of(byte).as_str());
        assert_eq!(names(0), ["zero"; 3]);
        assert_eq!(names(2), ["first"; 3]);
        assert_eq!(names(8), ["unknown", "recyclable_last", "recyclable_last"]);
        assert_eq!(names(9), ["unknown", "set_compression", "wal_sync_full"]);
        assert_eq!(names(131), ["unknown", "predecessor", "unknown"]);
    }

    #[test]
    fn dialect_names_are_unique() {
        for dialect in Dialect::ALL {
            assert_eq!(
                Dialect::ALL.iter().filter(|other| *other == dialect).count(),
                1,
                "{dialect:?}"
            );
        }
    }

    /// A dialect is identified by its fragments or by its file header.
    #[test]
    fn each_dialect_has_a_unique_combination_of_rank_and_signature() {
        for dialect in Dialect::ALL {
            assert!(dialect.prefix().starts_with(dialect.signature()), "{dialect:?}");
            assert_eq!(
                dialect.prefix().is_empty(),
                dialect.signature().is_empty(),
                "{dialect:?}"
            );
            assert!(
                Dialect::BY_RANK.contains(dialect) || !dialect.signature().is_empty(),
                "{dialect:?}"
            );
        }
    }
}
