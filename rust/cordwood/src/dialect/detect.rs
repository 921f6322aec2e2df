//! Which dialect a log is in, by its content.

use std::path::Path;

use super::{Dialect, Form, Metadata, Role};
use crate::checksum::{crc32c, mask};
use crate::format::{BLOCK_LEN, FRAGMENT_LEN_MAX, HEADER_LEN, Header, Kind};

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
    detect_named(head, None)
}

/// [`detect`] for a log that is in the file `path`, if it is in one: the name of the file says which log it is, before any fragment does.
///
/// ```
/// use std::path::Path;
/// use cordwood::{Dialect, detect_named};
/// // A file that is to hold log 124, and still holds log 123.
/// let head = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";
/// let dialect = Dialect::RECYCLABLE;
/// assert_eq!(detect_named(head, None), Ok(Some(dialect.with_log_number(123))));
/// assert_eq!(detect_named(head, Some(Path::new("000124.log"))), Ok(Some(dialect.with_log_number(124))));
/// ```
///
/// # Errors
///
/// As [`detect`].
pub fn detect_named(head: &[u8], path: Option<&Path>) -> Result<Option<Dialect>, Foreign> {
    match identify(None, path, head, 0, true) {
        Detection::Dialect(dialect) => Ok(Some(dialect)),
        Detection::Foreign(foreign) => Err(foreign),
        Detection::Unclear | Detection::NeedMore => Ok(None),
    }
}

/// Which log this is: its dialect, its number and whether it is compressed. This is the one place that says it, for all that read.
///
/// * The dialect is `named`, or found by [`detect`].
/// * The number is that of `named`; else it is in the name of the file, `path`; else it is that of the first valid fragment of the file, never of a
///   range of it.
///
/// `bytes` are those from the file offset `offset` on; `is_last` says that the file ends where they end.
pub(crate) fn identify(
    named: Option<Dialect>,
    path: Option<&Path>,
    bytes: &[u8],
    offset: u64,
    is_last: bool,
) -> Detection {
    let number = named
        .and_then(Dialect::log_number)
        .or_else(|| path.and_then(log_number_of));
    let numbered = |dialect: Dialect| number.map_or(dialect, |number| dialect.with_log_number(number));
    match named.map(numbered) {
        Some(dialect) if offset > 0 || !is_open(dialect) => Detection::Dialect(dialect),
        Some(dialect) => complete(dialect, bytes, is_last),
        None => match detect_at(bytes, offset, is_last) {
            Detection::Dialect(dialect) => Detection::Dialect(numbered(dialect)),
            detection => detection,
        },
    }
}

/// Whether the file may say more about a log of this dialect than its name does: its number, or that it is compressed.
pub(crate) fn is_open(dialect: Dialect) -> bool {
    let may_be_compressed = dialect.with_zstd() != dialect;
    dialect.has_log_numbers() && (dialect.log_number().is_none() || may_be_compressed)
}

/// The log number in the name of a file, as the engines name their logs: `000123.log`, or `000123-001.log` after a failover of Pebble.
///
/// Source: RocksDB `file/filename.cc`, Pebble `wal/wal.go`.
pub(crate) fn log_number_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let number = match name.split_once('-') {
        Some((number, index)) if index.len() == 3 && is_digits(index) => number,
        Some(_) => return None,
        None => name,
    };
    // They write at least six digits. With fewer it is somebody else's name.
    let number = (number.len() >= 6 && is_digits(number)).then(|| number.parse::<u64>().ok())??;
    // A header has room for the low half.
    Some(number as u32)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The named `dialect` with what the beginning of the file says: up to the first valid fragment of a record, in three blocks.
fn complete(dialect: Dialect, bytes: &[u8], is_last: bool) -> Detection {
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if dialect.log_number().is_none()
        && let Some(number) = dialect.number_of_empty_log(head)
    {
        return Detection::Dialect(dialect.with_log_number(number));
    }
    let mut found = dialect;
    let mut begin = 0;
    while begin < head.len() {
        let left = dialect.block_left(begin as u64);
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        let Some(sound) = dialect.sound(block, true) else {
            if block.len() < left && !is_all {
                return Detection::NeedMore;
            }
            begin += left;
            continue;
        };
        if found.log_number().is_none()
            && let Some(number) = Dialect::log_number_at(block, sound.form)
        {
            found = found.with_log_number(number);
        }
        if sound.role == Role::Metadata(Metadata::SetCompression)
            && block[HEADER_LEN..sound.end] == super::rocksdb::ZSTD
        {
            found = found.with_zstd();
        }
        if matches!(sound.role, Role::Fragment(_)) {
            return if dialect.sound(head, true).is_some() {
                Detection::Dialect(found)
            } else if is_all {
                Detection::Dialect(with_compression(found, head))
            } else {
                Detection::NeedMore
            };
        }
        begin += sound.end;
    }
    if is_all {
        Detection::Dialect(found)
    } else {
        Detection::NeedMore
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
            } else if offset == 0 && begin > 0 && !is_all {
                // The first block is damaged: whether records are compressed has to be seen by what they hold.
                Detection::NeedMore
            } else if offset == 0 && begin > 0 && is_compressed(dialect, head) {
                Detection::Dialect(Dialect::ROCKSDB.with_number_of(dialect).with_zstd())
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
    match behind_damage(&head[..head.len().min(BLOCK_LEN)]).map(|(_, dialect)| dialect) {
        Some(Dialect { name, .. }) if name == Dialect::WANDB.name => run_file(head, is_all),
        None if is_cut_recyclable(head) => Detection::Dialect(Dialect::RECYCLABLE),
        Some(dialect) => Detection::Dialect(with_compression(dialect, head)),
        None => Detection::Unclear,
    }
}

/// `dialect`, or RocksDB's if the first fragment is damaged and the log is a compressed one.
fn with_compression(dialect: Dialect, head: &[u8]) -> Dialect {
    if is_compressed(dialect, head) {
        Dialect::ROCKSDB.with_number_of(dialect).with_zstd()
    } else {
        dialect
    }
}

/// Whether a log that begins with damage is one of RocksDB's that are compressed. The first fragment says so, which is the same eleven bytes in all of
/// them. A frame must not be taken for a record.
///
/// * At most eight bits of these bytes are damaged; or
/// * what is damaged is not plainly another fragment, which the next one follows, and the first records that can be read are zstd frames.
fn is_compressed(dialect: Dialect, head: &[u8]) -> bool {
    const DAMAGED_BITS_MAX: u32 = 8;
    let may_be = [Dialect::LEVELDB.name, Dialect::RECYCLABLE.name, Dialect::ROCKSDB.name].contains(&dialect.name);
    if !may_be || Dialect::ROCKSDB.sound(head, true).is_some() {
        return false;
    }
    let Some(first) = head.first_chunk::<{ FIRST_COMPRESSED.len() }>() else {
        return false;
    };
    let damaged_bits: u32 = first
        .iter()
        .zip(FIRST_COMPRESSED)
        .map(|(byte, right)| (byte ^ right).count_ones())
        .sum();
    if damaged_bits <= DAMAGED_BITS_MAX {
        return true;
    }
    let dialect = Dialect::ROCKSDB.with_number_of(dialect);
    let header = Header::decode(first.first_chunk().unwrap_or(&[0; HEADER_LEN]));
    let end = dialect.meaning(header.kind).form.header_len() + usize::from(header.len);
    let rest = head[..head.len().min(BLOCK_LEN)].get(end..);
    let is_another = end != FIRST_COMPRESSED.len() && rest.is_some_and(|rest| dialect.sound(rest, true).is_some());
    !is_another && begins_with_frames(dialect, head)
}

/// Whether the records that begin in `head`, as far as they can be found at the beginnings of blocks and after them, are zstd frames.
fn begins_with_frames(dialect: Dialect, head: &[u8]) -> bool {
    let first_block = &head[..head.len().min(BLOCK_LEN)];
    are_frames(dialect, head, BLOCK_LEN)
        .or_else(|| are_frames(dialect, first_block, FIRST_COMPRESSED.len()))
        .or_else(|| are_frames(dialect, first_block, behind_damage(first_block)?.0))
        .unwrap_or(false)
}

/// Whether all records in `head` that begin at `begin` or after it are zstd frames; `None` if there is none.
fn are_frames(dialect: Dialect, head: &[u8], mut begin: usize) -> Option<bool> {
    let mut found = None;
    while begin < head.len() {
        let left = dialect.block_left(begin as u64);
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        let Some(sound) = dialect
            .sound(block, true)
            .filter(|sound| !dialect.is_stale(block, sound.form))
        else {
            begin += left;
            continue;
        };
        let payload = &block[sound.form.header_len()..sound.end];
        // An empty record is no frame, and a FIRST may end within the four bytes.
        if matches!(sound.role, Role::Fragment(Kind::Full | Kind::First)) && payload.len() >= ZSTD_MAGIC.len() {
            if !payload.starts_with(ZSTD_MAGIC) {
                return Some(false);
            }
            found = Some(true);
        }
        begin += sound.end;
    }
    found
}

/// What each compressed log of RocksDB begins with.
const FIRST_COMPRESSED: [u8; 11] = *b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";

/// What a zstd frame begins with.
const ZSTD_MAGIC: &[u8; 4] = b"\x28\xb5\x2f\xfd";

/// The dialect of a first block that begins with damage, and where that ends: at the first two sound fragments in it, one behind the other.
fn behind_damage(block: &[u8]) -> Option<(usize, Dialect)> {
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
        dialect.sound(&rest[end..], true).map(|_| (begin, dialect))
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
    // A valid fragment of the first block that passes the end that this block would have.
    let crosses = || {
        let block = head.get(..BLOCK_LEN + prefix_len).unwrap_or(head);
        let mut at = prefix_len;
        while at < BLOCK_LEN
            && let Some(sound) = Dialect::WANDB.sound(block.get(at..).unwrap_or_default(), true)
        {
            at += sound.end;
        }
        at > BLOCK_LEN
    };
    let is_old =
        !has_second_block_at(BLOCK_LEN) && (has_second_block_at(BLOCK_LEN + prefix_len) || is_too_long || crosses());
    Detection::Dialect(if is_old { Dialect::WANDB_OLD } else { Dialect::WANDB })
}

/// What else the file is, by how it begins.
fn foreign(head: &[u8]) -> Option<Foreign> {
    let by_magic = [
        (b"\x1f\x8b\x08".as_slice(), Foreign::Gzip),
        (ZSTD_MAGIC, Foreign::Zstd),
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
