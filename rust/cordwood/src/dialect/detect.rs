//! Which dialect a log is in, by its content.

use super::{Dialect, Form, Metadata, Role};
use crate::checksum::{crc32c, mask};
use crate::format::{BLOCK_LEN, FRAGMENT_LEN_MAX, HEADER_LEN, Header};

/// As many bytes of the beginning of a file as [`detect`] may look at: three blocks, so that the second one is there even if it begins
/// behind a file header.
pub const DETECT_LEN: usize = 3 * BLOCK_LEN;

/// A file of another format, and what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// A file compressed with gzip.
    Gzip,
    /// A file compressed with zstd.
    Zstd,
    /// A file compressed with LZ4.
    Lz4,
    /// Riegeli records.
    Riegeli,
    /// TensorFlow's TFRecord.
    TfRecord,
    /// A SQLite database.
    Sqlite,
    /// The write-ahead log of a SQLite database.
    SqliteWal,
    /// A segment of a Prometheus write-ahead log.
    Prometheus,
}

impl Foreign {
    /// What the format is called.
    pub const fn name(self) -> &'static str {
        match self {
            Foreign::Gzip => "gzip",
            Foreign::Zstd => "zstd",
            Foreign::Lz4 => "LZ4",
            Foreign::Riegeli => "Riegeli",
            Foreign::TfRecord => "TFRecord",
            Foreign::Sqlite => "SQLite",
            Foreign::SqliteWal => "SQLite WAL",
            Foreign::Prometheus => "Prometheus WAL",
        }
    }

    /// What would read it.
    pub const fn hint(self) -> &'static str {
        match self {
            Foreign::Gzip => "decompress it first, with `gunzip`",
            Foreign::Zstd => "decompress it first, with `unzstd`",
            Foreign::Lz4 => "decompress it first, with `unlz4`",
            Foreign::Riegeli => "the riegeli library reads it",
            Foreign::TfRecord => "TensorFlow reads it: `tf.data.TFRecordDataset`",
            Foreign::Sqlite => "`sqlite3` reads it",
            Foreign::SqliteWal => "`sqlite3` reads it, together with its database",
            Foreign::Prometheus => "Prometheus reads it: `promtool tsdb`",
        }
    }
}

/// Says which dialect the log is in that begins with `head`: the first [`DETECT_LEN`] bytes of a file, or all of a shorter one.
///
/// `None` if it cannot be told: `head` is empty, or holds no whole fragment with a right checksum. A [`Reader`](crate::Reader) then reads
/// [`Dialect::LEVELDB`].
///
/// The first sound fragment decides, and it is looked for where a block may begin; then behind damage in the first block, where two must follow one
/// another. A fragment that is right by chance is met once in four billion
/// tries. The log number is that of the fragment.
///
/// ```
/// use cordwood::{Dialect, Foreign, detect};
/// assert_eq!(detect(b":W&B\xe1\xbe\x00"), Ok(Some(Dialect::WANDB)));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo"), Ok(Some(Dialect::LEVELDB)));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01"), Ok(None));
/// assert_eq!(detect(b"\x1f\x8b\x08\x00"), Err(Foreign::Gzip));
/// ```
///
/// # Errors
///
/// What the file is, if it is none of these logs and known.
pub fn detect(head: &[u8]) -> Result<Option<Dialect>, Foreign> {
    match detect_at(head, 0, true) {
        Detection::Dialect(dialect) => Ok(Some(dialect)),
        Detection::Foreign(foreign) => Err(foreign),
        Detection::Unclear | Detection::NeedMore => Ok(None),
    }
}

/// What is found out by a look at a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detection {
    Dialect(Dialect),
    Foreign(Foreign),
    /// It cannot be told.
    Unclear,
    /// It can be told with more bytes.
    NeedMore,
}

/// [`detect`] in a part of a file: `bytes`, which begin at the file offset `offset`. `is_last` says that the file ends where they end.
pub(crate) fn detect_at(bytes: &[u8], offset: u64, is_last: bool) -> Detection {
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if offset == 0 {
        // The four letters: what follows may be damaged.
        let has_prefix_of = |dialect: Dialect| head.starts_with(&dialect.prefix[..4]);
        if has_prefix_of(Dialect::WANDB) {
            return wandb_grid(head, is_all);
        }
        if has_prefix_of(Dialect::SWANLAB) {
            return Detection::Dialect(Dialect::SWANLAB);
        }
        if let Some(number) = Dialect::PEBBLE.number_of_empty_log(head) {
            return Detection::Dialect(Dialect::PEBBLE.with_log_number(number));
        }
    }
    let in_block = (offset % BLOCK_LEN as u64) as usize;
    // A reader may begin at a record, so the first place is where it begins.
    let blocks = (BLOCK_LEN - in_block..head.len()).step_by(BLOCK_LEN);
    for begin in [0].into_iter().chain(blocks) {
        let left = BLOCK_LEN - (in_block + begin) % BLOCK_LEN;
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        if let Some(dialect) = of_fragment(block) {
            return if offset > 0 && dialect.has_log_numbers() {
                // The first fragment here may be one of an older log. Only the beginning of a file tells which is which.
                Detection::Unclear
            } else if dialect.name == Dialect::RECYCLABLE.name {
                recyclable(dialect, head, begin, is_all)
            } else if dialect.name == Dialect::WANDB.name && offset == 0 {
                run_file(head, is_all)
            } else {
                Detection::Dialect(dialect)
            };
        }
        if block.len() < left && !is_all {
            return Detection::NeedMore;
        }
    }
    if offset > 0 {
        return Detection::Unclear;
    }
    if let Some(foreign) = foreign(head) {
        return Detection::Foreign(foreign);
    }
    match behind_damage(&head[..head.len().min(BLOCK_LEN)]) {
        Some(Dialect { name, .. }) if name == Dialect::WANDB.name => run_file(head, is_all),
        None if is_cut_recyclable(head) => Detection::Dialect(Dialect::RECYCLABLE),
        found => found.map_or(Detection::Unclear, Detection::Dialect),
    }
}

/// The dialect of a first block that begins with damage: that of the first two sound fragments in it, one behind the other.
fn behind_damage(block: &[u8]) -> Option<Dialect> {
    // Most bytes are no type, and need no checksum.
    let is_type = |byte| {
        let roles = [Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| dialect.meaning(byte).role);
        roles
            .iter()
            .any(|role| matches!(role, Role::Fragment(_) | Role::Metadata(_)))
    };
    (1..block.len()).find_map(|begin| {
        let rest = &block[begin..];
        if !rest.get(HEADER_LEN - 1).copied().is_some_and(is_type) {
            return None;
        }
        let dialect = of_fragment(rest)?;
        let end = dialect.sound(rest, true)?.end;
        dialect.sound(&rest[end..], true).map(|_| dialect)
    })
}

impl Dialect {
    /// This dialect with the log number of another one.
    fn with_number_of(self, other: Dialect) -> Dialect {
        Dialect {
            log_number: other.log_number,
            ..self
        }
    }
}

/// The dialect of the sound fragment that `block` begins with. Of a recyclable one, [`Dialect::RECYCLABLE`].
///
/// Type bytes mean different things in different dialects, but no two of them compute the checksum over the same bytes.
fn of_fragment(block: &[u8]) -> Option<Dialect> {
    let order = [
        Dialect::LEVELDB,
        Dialect::RECYCLABLE,
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
        Dialect::WANDB,
    ];
    for dialect in order {
        let Some(sound) = dialect.sound(block, true) else {
            continue;
        };
        let dialect = match Dialect::log_number_at(block, sound.form) {
            Some(number) => dialect.with_log_number(number),
            None => dialect,
        };
        match sound.role {
            Role::Fragment(_) => return Some(dialect),
            Role::Metadata(Metadata::SetCompression) => {
                // Without a sound payload there is no telling it from what another dialect may mean by the type.
                let is_zstd = block[HEADER_LEN..sound.end] == super::rocksdb::ZSTD;
                return Some(if is_zstd { dialect.with_zstd() } else { dialect });
            }
            Role::Metadata(_) => return Some(dialect),
            Role::Ignorable | Role::Unknown => {}
        }
    }
    None
}

/// Whether a log that begins with recyclable fragments, at `begin`, is Pebble's: if a trailer ends it. RocksDB's has nothing that shows it.
fn recyclable(dialect: Dialect, head: &[u8], mut begin: usize, is_all: bool) -> Detection {
    if !is_all {
        return Detection::NeedMore;
    }
    while begin < head.len() {
        let left = BLOCK_LEN - begin % BLOCK_LEN;
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        begin += match dialect.sound(block, true) {
            _ if dialect.is_end_trailer(block) => {
                return Detection::Dialect(Dialect::PEBBLE.with_number_of(dialect));
            }
            Some(sound) if !dialect.is_stale(block, sound.form) => sound.end,
            Some(_) => break,
            None => left,
        };
    }
    Detection::Dialect(dialect)
}

/// Whether `head` is all of a log that was cut in the header of an empty recyclable record, in which LevelDB sees a whole fragment.
fn is_cut_recyclable(head: &[u8]) -> bool {
    let header = head.first_chunk().map(Header::decode);
    let form = header.map(|header| (header.len, Dialect::RECYCLABLE.meaning(header.kind).form));
    form == Some((0, Form::Recyclable)) && head.len() < Form::Recyclable.header_len()
}

/// Which run file has a damaged file header, by the bytes of it that are right.
fn run_file(head: &[u8], is_all: bool) -> Detection {
    let right_count = |dialect: Dialect| dialect.prefix.iter().zip(head).filter(|(a, b)| a == b).count();
    if right_count(Dialect::SWANLAB) > right_count(Dialect::WANDB) {
        Detection::Dialect(Dialect::SWANLAB)
    } else {
        wandb_grid(head, is_all)
    }
}

/// Whether the blocks of a run file begin at its beginning or behind its header: a sound fragment stands at the beginning of the second one. If neither
/// is there, the first fragment may be too long for a block that begins at the beginning.
fn wandb_grid(head: &[u8], is_all: bool) -> Detection {
    if !is_all && head.len() < 2 * BLOCK_LEN + HEADER_LEN {
        return Detection::NeedMore;
    }
    let has_second_block_at = |begin: usize| {
        let block = head.get(begin..).unwrap_or_default();
        let block = &block[..block.len().min(BLOCK_LEN)];
        Dialect::WANDB.sound(block, true).is_some()
    };
    let prefix_len = Dialect::WANDB.prefix.len();
    let first = head
        .get(prefix_len..)
        .and_then(|behind| behind.first_chunk())
        .map(Header::decode);
    let is_too_long = first.is_some_and(|Header { len, kind, .. }| {
        let end = HEADER_LEN + usize::from(len);
        matches!(kind, 1 | 2) && end > BLOCK_LEN - prefix_len && end <= BLOCK_LEN
    });
    let is_old = !has_second_block_at(BLOCK_LEN) && (has_second_block_at(BLOCK_LEN + prefix_len) || is_too_long);
    Detection::Dialect(if is_old { Dialect::WANDB_OLD } else { Dialect::WANDB })
}

/// What else the file is, by how it begins.
fn foreign(head: &[u8]) -> Option<Foreign> {
    let by_magic = [
        (b"\x1f\x8b\x08".as_slice(), Foreign::Gzip),
        (b"\x28\xb5\x2f\xfd", Foreign::Zstd),
        (b"\x04\x22\x4d\x18", Foreign::Lz4),
        (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", Foreign::Riegeli),
        (b"SQLite format 3\0", Foreign::Sqlite),
        (b"\x37\x7f\x06\x82", Foreign::SqliteWal),
        (b"\x37\x7f\x06\x83", Foreign::SqliteWal),
    ]
    .into_iter()
    .find(|(magic, _)| head.starts_with(magic));
    if let Some((_, foreign)) = by_magic {
        return Some(foreign);
    }
    // TFRecord: the length as a u64, its checksum, the data, its checksum.
    if let Some((len, behind)) = head.split_first_chunk::<8>()
        && let Some(stored) = behind.first_chunk()
        && mask(crc32c(len)) == u32::from_le_bytes(*stored)
    {
        return Some(Foreign::TfRecord);
    }
    prometheus(head).then_some(Foreign::Prometheus)
}

/// Whether a record of a Prometheus log stands here: type, length and checksum of the payload, big endian.
/// Source: prometheus `tsdb/wlog/wlog.go`.
fn prometheus(head: &[u8]) -> bool {
    let Some((&[flags, l0, l1, c0, c1, c2, c3], behind)) = head.split_first_chunk() else {
        return false;
    };
    let len = usize::from(l0) << 8 | usize::from(l1);
    let stored = [c3, c2, c1, c0];
    // The low three bits are the place in the record, the next two the compression.
    let is_kind = matches!(flags & 7, 1..=4) && flags < 32 && (1..=FRAGMENT_LEN_MAX).contains(&len);
    is_kind
        && behind
            .get(..len)
            .is_some_and(|payload| crc32c(payload) == u32::from_le_bytes(stored))
}
