//! Detection of the dialect of a log from its contents.

use std::io;
use std::path::Path;

use super::{Compression, Dialect, Form, LogFormat, Metadata, Named, Role, Valid};
use crate::checksum::{crc32c, mask};
use crate::damage::Scanner;
use crate::format::{BLOCK_LEN, FRAGMENT_LEN_MAX, HEADER_LEN, Header, Kind};

/// How many bytes of the beginning of a file [`detect`] inspects: three blocks, so that the second
/// one is included even if it begins after a file header.
pub const DETECT_LEN: usize = 3 * BLOCK_LEN;

/// The format of a file that is not a log of any dialect, and what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// A file compressed with gzip.
    Gzip,
    /// A file compressed with zstd.
    Zstd,
    /// A file compressed with LZ4.
    Lz4,
    /// A file compressed with bzip2.
    Bzip2,
    /// A file compressed with xz.
    Xz,
    /// A ZIP archive.
    Zip,
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
    /// A Parquet table.
    Parquet,
    /// An Arrow (Feather) table.
    Arrow,
    /// An Avro container.
    Avro,
    /// A program or library in ELF.
    Elf,
    /// A PNG image.
    Png,
    /// The pointer of Git LFS to a file that was not fetched.
    GitLfs,
    /// The info log of LevelDB or RocksDB, the file `LOG`: lines of text.
    InfoLog,
    /// A table (`.ldb`, `.sst`) of LevelDB, or an old one of RocksDB.
    LevelDbTable,
    /// A table (`.sst`) of RocksDB.
    RocksDbTable,
    /// A table (`.sst`) of Pebble.
    PebbleTable,
    /// UTF-8 text.
    Text,
    /// None of these, and nothing shows that it is a log.
    Unknown,
}

impl Foreign {
    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Foreign::Gzip => "gzip",
            Foreign::Zstd => "zstd",
            Foreign::Lz4 => "LZ4",
            Foreign::Bzip2 => "bzip2",
            Foreign::Xz => "xz",
            Foreign::Zip => "ZIP",
            Foreign::Riegeli => "Riegeli",
            Foreign::TfRecord => "TFRecord",
            Foreign::Sqlite => "SQLite",
            Foreign::SqliteWal => "SQLite WAL",
            Foreign::Prometheus => "Prometheus WAL",
            Foreign::Parquet => "Parquet",
            Foreign::Arrow => "Arrow",
            Foreign::Avro => "Avro",
            Foreign::Elf => "ELF",
            Foreign::Png => "PNG",
            Foreign::GitLfs => "Git LFS pointer",
            Foreign::InfoLog => "info log",
            Foreign::LevelDbTable => "LevelDB table",
            Foreign::RocksDbTable => "RocksDB table",
            Foreign::PebbleTable => "Pebble table",
            Foreign::Text => "text",
            Foreign::Unknown => "unknown",
        }
    }

    /// Which program reads it.
    pub const fn hint(self) -> &'static str {
        match self {
            Foreign::Gzip => "decompress it first, with `gunzip`",
            Foreign::Zstd => "decompress it first, with `unzstd`",
            Foreign::Lz4 => "decompress it first, with `unlz4`",
            Foreign::Bzip2 => "decompress it first, with `bunzip2`",
            Foreign::Xz => "decompress it first, with `unxz`",
            Foreign::Zip => "unpack it first, with `unzip`",
            Foreign::Riegeli => "the riegeli library reads it",
            Foreign::TfRecord => "TensorFlow reads it: `tf.data.TFRecordDataset`",
            Foreign::Sqlite => "`sqlite3` reads it",
            Foreign::SqliteWal => "`sqlite3` reads it, together with its database",
            Foreign::Prometheus => "Prometheus reads it: `promtool tsdb`",
            Foreign::Parquet => "pyarrow reads it: `pyarrow.parquet`",
            Foreign::Arrow => "pyarrow reads it: `pyarrow.feather`",
            Foreign::Avro => "the library avro or fastavro reads it",
            Foreign::Elf => "a program or library: `readelf` reads it",
            Foreign::Png => "an image: an image viewer shows it",
            Foreign::GitLfs => "the file itself comes with `git lfs pull`",
            Foreign::InfoLog => "the engine's messages: a text editor shows it",
            Foreign::LevelDbTable => "LevelDB reads it, together with its database",
            Foreign::RocksDbTable => "`sst_dump` of RocksDB reads it",
            Foreign::PebbleTable => "`pebble sstable` of Pebble reads it",
            Foreign::Text => "a text editor shows it",
            Foreign::Unknown => "it has no valid fragment and no header that a log begins with",
        }
    }

    /// Whether the format was recognised by its signature, rather than by the absence of a log.
    pub(crate) const fn has_signature(self) -> bool {
        !matches!(self, Foreign::Text | Foreign::Unknown)
    }
}

/// Detects the format of a log, its dialect, its number and its compression, from `head`: the first
/// [`DETECT_LEN`] bytes of the file, or all of a shorter one.
///
/// `None` if it cannot be determined: `head` is empty, or holds no complete fragment with a valid
/// checksum. A [`Reader`](crate::Reader) then reads [`Dialect::LEVELDB`].
///
/// The first valid fragment decides. It is searched for where a block may begin; then after damage
/// in the first block, where two consecutive ones are required. A random fragment is valid once in
/// four billion tries. The log number is that of the first fragment of a record.
///
/// ```
/// use cordwood_log::Dialect;
/// use cordwood_log::verbs::{Foreign, detect};
/// assert_eq!(detect(b":W&B\xe1\xbe\x00"), Ok(Some(Dialect::WANDB.into())));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo"), Ok(Some(Dialect::LEVELDB.into())));
/// assert_eq!(detect(b"\xdd\x5f\xb3\x7a\x03\x00\x01"), Ok(None));
/// assert_eq!(detect(b"\x1f\x8b\x08\x00\0\0\0\0\0\x03"), Err(Foreign::Gzip));
/// assert_eq!(detect(b"plain text\n"), Err(Foreign::Text));
/// ```
///
/// A file that is longer than `head` is rejected only by a signature: a reader also inspects what
/// follows.
///
/// # Errors
///
/// The format of the file, if it is not a log.
pub fn detect(head: &[u8]) -> Result<Option<LogFormat>, Foreign> {
    detect_named(head, None)
}

/// [`detect`] for a log that may be in the file `path`: the log number in the file's name takes
/// precedence over those in fragments.
///
/// ```
/// use std::path::Path;
/// use cordwood_log::{Dialect, LogFormat};
/// use cordwood_log::verbs::detect_named;
/// // A file that is to hold log 124, and still holds log 123.
/// let head = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";
/// let format = LogFormat::new(Dialect::RECYCLABLE);
/// assert_eq!(detect_named(head, None), Ok(Some(format.with_log_number(123))));
/// assert_eq!(detect_named(head, Some(Path::new("000124.log"))), Ok(Some(format.with_log_number(124))));
/// ```
///
/// # Errors
///
/// As [`detect`].
pub fn detect_named(head: &[u8], path: Option<&Path>) -> Result<Option<LogFormat>, Foreign> {
    match identify(Named::default(), path, head, 0, true) {
        Detection::Log(format) => Ok(Some(format)),
        Detection::Foreign(foreign) => Err(foreign),
        Detection::Unclear | Detection::Longer(_) | Detection::NeedMore => Ok(None),
    }
}

/// The format of a log: its dialect, its number and whether it is compressed. All readers use this
/// function.
///
/// * The dialect is the one in `named`, or found by [`detect`].
/// * The number is the one in `named`; else the one in the name of the file, `path`; else that of
///   the first valid fragment of the file, never of a range of it.
///
/// `bytes` are those from the file offset `offset` on; `is_last` says that the file ends where they
/// end. `named` must be checked: [`Named::check`] before, or [`Named::check_in`] for a dialect that
/// was detected.
pub(crate) fn identify(named: Named, path: Option<&Path>, bytes: &[u8], offset: u64, is_last: bool) -> Detection {
    let number = named.log_number.or_else(|| path.and_then(log_number_of));
    let with_named = |format: LogFormat| LogFormat {
        compression: named.compression.or(format.compression),
        ..format.numbered(number)
    };
    let completed = |known: LogFormat| {
        if offset == 0 && Named::from(known).is_open() {
            complete(known, bytes, is_last)
        } else {
            Detection::Log(known)
        }
    };
    if let Some(dialect) = named.dialect {
        return completed(with_named(dialect.into()));
    }
    match detect_at(bytes, offset, is_last) {
        // In a later block, the number may be that of an older log.
        Detection::Log(format) if offset == 0 => completed(with_named(LogFormat {
            log_number: None,
            ..format
        })),
        Detection::Log(format) => completed(with_named(format)),
        // By its name, an engine wrote a log there, so it is more likely damaged.
        Detection::Foreign(Foreign::Unknown) if path.is_some_and(is_named_by_engine) => Detection::Unclear,
        Detection::Longer(Some(Foreign::Unknown)) if path.is_some_and(is_named_by_engine) => Detection::Longer(None),
        detection => detection,
    }
}

/// Whether this is an engine's name for a log: `000123.log`, or `MANIFEST-000001`.
fn is_named_by_engine(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_manifest = |number: &str| number.len() >= 6 && is_digits(number);
    log_number_of(path).is_some() || name.strip_prefix("MANIFEST-").is_some_and(is_manifest)
}

/// The log number in the name of a file, as the engines name their logs: `000123.log`, or
/// `000123-001.log` after a failover of Pebble.
///
/// Source: RocksDB `file/filename.cc`, Pebble `wal/wal.go`.
pub(crate) fn log_number_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let number = match name.split_once('-') {
        Some((number, index)) if index.len() == 3 && is_digits(index) => number,
        Some(_) => return None,
        None => name,
    };
    // They write at least six digits. A name with fewer is not theirs.
    let number = (number.len() >= 6 && is_digits(number)).then(|| number.parse::<u64>().ok())??;
    // A header has room for the low half.
    Some(number as u32)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The format that is `known`, completed from the beginning of the file: up to the first valid
/// record fragment at the beginning of a block, in three blocks.
fn complete(known: LogFormat, bytes: &[u8], is_last: bool) -> Detection {
    let dialect = known.dialect;
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if known.log_number.is_none()
        && let Some(number) = dialect.number_of_empty_log(head)
    {
        return Detection::Log(known.with_log_number(number));
    }
    let mut found = known;
    let (mut number, mut number_after_damage) = (None, None);
    let mut begin = 0;
    let mut is_found = false;
    while begin < head.len() && !is_found {
        let left = dialect.block_left(begin as u64);
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        let Some(valid) = dialect.valid(block, true) else {
            if block.len() < left && !is_all {
                return Detection::NeedMore;
            }
            let after_damage = behind_damage(block).and_then(|(_, format)| format.log_number);
            number_after_damage = number_after_damage.or(after_damage);
            begin += left;
            continue;
        };
        number = number.or_else(|| Dialect::log_number_at(block, valid.form));
        if valid.role == Role::Metadata(Metadata::SetCompression)
            && block[HEADER_LEN..valid.end] == super::rocksdb::ZSTD
        {
            found = found.with_compression(Compression::Zstd);
        }
        is_found = matches!(valid.role, Role::Fragment(_));
        begin += valid.end;
    }
    if !is_found && !is_all {
        return Detection::NeedMore;
    }
    // What follows damage may belong to a log inside a record, so the beginning of a block outranks
    // it. But a block after the damage may be left from an older log, and log numbers increase.
    let is_unnumbered = is_found && number.is_none();
    if known.log_number.is_none() && !is_unnumbered {
        found = found.numbered(number.max(number_after_damage));
    }
    if !is_found || dialect.valid(head, true).is_some() {
        Detection::Log(found)
    } else if is_all {
        Detection::Log(with_compression(found, head))
    } else {
        Detection::NeedMore
    }
}

/// The result of detection in a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detection {
    Log(LogFormat),
    Foreign(Foreign),
    /// It cannot be determined.
    Unclear,
    /// The file continues after these bytes, and nothing in them shows that it is a log. The rest
    /// decides: see [`of_rest`].
    Longer(Option<Foreign>),
    /// More bytes are needed.
    NeedMore,
}

/// [`detect`] in a part of a file: `bytes`, which begin at the file offset `offset`. `is_last` says
/// that the file ends where they end.
pub(crate) fn detect_at(bytes: &[u8], offset: u64, is_last: bool) -> Detection {
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if offset == 0 {
        // Only the four letters: what follows may be damaged.
        let has_prefix_of = |dialect: Dialect| head.starts_with(&dialect.prefix[..4]);
        if has_prefix_of(Dialect::WANDB) {
            return wandb_grid(head, is_all);
        }
        if has_prefix_of(Dialect::SWANLAB) {
            return Detection::Log(Dialect::SWANLAB.into());
        }
        if let Some(number) = Dialect::PEBBLE.number_of_empty_log(head) {
            return Detection::Log(LogFormat::new(Dialect::PEBBLE).with_log_number(number));
        }
    }
    let in_block = (offset % BLOCK_LEN as u64) as usize;
    // A reader may begin at a record, so the first candidate is the reader's own position.
    let blocks = (BLOCK_LEN - in_block..head.len()).step_by(BLOCK_LEN);
    for begin in [0].into_iter().chain(blocks) {
        let left = BLOCK_LEN - (in_block + begin) % BLOCK_LEN;
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        if let Some(format) = of_fragment(block, |dialect| dialect.valid(block, true)) {
            return if offset > 0 && format.dialect.has_log_numbers() {
                // The first fragment here may belong to an older log. Only the beginning of the
                // file shows which is which.
                Detection::Unclear
            } else if offset == 0 && begin > 0 && !is_all {
                // The first block is damaged: whether records are compressed has to be inferred
                // from their contents.
                Detection::NeedMore
            } else if offset == 0 && begin > 0 && is_compressed(format, head) {
                Detection::Log(compressed(format))
            } else if format.dialect == Dialect::RECYCLABLE {
                recyclable(format, head, begin, is_all)
            } else if format.dialect == Dialect::WANDB && offset == 0 {
                run_file(head, is_all)
            } else {
                Detection::Log(format)
            };
        }
        if block.len() < left && !is_all {
            return Detection::NeedMore;
        }
    }
    if offset > 0 {
        return Detection::Unclear;
    }
    match behind_damage(&head[..head.len().min(BLOCK_LEN)]).map(|(_, format)| format) {
        Some(format) if format.dialect == Dialect::WANDB => run_file(head, is_all),
        None if is_cut_recyclable(head) => Detection::Log(Dialect::RECYCLABLE.into()),
        Some(format) => Detection::Log(with_compression(format, head)),
        None => no_log(head),
    }
}

/// The format of a file that begins with `head`, in which no dialect was detected. A `head` of
/// [`DETECT_LEN`] may be the beginning of a longer file.
///
/// A valid fragment, or a first header that may be that of a torn or damaged record, outranks
/// signatures and text.
fn no_log(head: &[u8]) -> Detection {
    let is_whole = head.len() < DETECT_LEN;
    if may_be_log(head, is_whole) {
        return Detection::Unclear;
    }
    if let Some(foreign) = foreign(head) {
        return Detection::Foreign(foreign);
    }
    // There are seven bytes: with fewer, it may be a log.
    let kind = head[HEADER_LEN - 1];
    let weak = if is_text(head) {
        Some(Foreign::Text)
    } else {
        (kind != 0 && !is_written(kind)).then_some(Foreign::Unknown)
    };
    if is_whole {
        footer(head).or(weak).map_or(Detection::Unclear, Detection::Foreign)
    } else {
        Detection::Longer(weak)
    }
}

/// Whether any dialect writes fragments of this type.
fn is_written(kind: u8) -> bool {
    [Dialect::ROCKSDB, Dialect::PEBBLE]
        .iter()
        .any(|dialect| matches!(dialect.meaning(kind).role, Role::Fragment(_) | Role::Metadata(_)))
}

/// Whether a file that begins with `head` may be a log whose first fragment is torn or damaged.
fn may_be_log(head: &[u8], is_whole: bool) -> bool {
    let Some(header) = head.first_chunk().map(Header::decode) else {
        return true;
    };
    may_be_torn(header, is_whole.then_some(head.len()))
        || head.iter().all(|&byte| byte == 0)
        || has_wrong_type(head)
        || has_fragment(head)
}

/// Whether this can be the first header of an incomplete record. One with a log number may be
/// followed by the rest of an older log; any other record is torn at the end of the file.
fn may_be_torn(header: Header, file_len: Option<usize>) -> bool {
    first_fragments(header).any(|(form, end)| form != Form::Plain || file_len.is_some_and(|len| end >= len))
}

/// The form and the length of the fragment at the beginning of a file, by its header, in each
/// dialect in which it can begin a record.
fn first_fragments(header: Header) -> impl Iterator<Item = (Form, usize)> {
    [Dialect::ROCKSDB, Dialect::PEBBLE]
        .into_iter()
        .filter_map(move |dialect| {
            let meaning = dialect.meaning(header.kind);
            let end = meaning.form.header_len() + usize::from(header.len);
            let fits = match meaning.role {
                Role::Fragment(Kind::Full) | Role::Metadata(_) => end <= BLOCK_LEN,
                // The first part of a record goes to the end of its block.
                Role::Fragment(Kind::First) => end == BLOCK_LEN,
                _ => false,
            };
            fits.then_some((meaning.form, end))
        })
}

/// Whether `head` may end within the first fragment of a log that is still being written. The
/// contents of that fragment say nothing about the log: a record may itself hold a log. Zeros at
/// the end of `head` may be a preallocated part of the file.
pub(crate) fn ends_in_first_fragment(mut head: &[u8]) -> bool {
    let len = head.len();
    // RocksDB's metadata comes before all records, and has no log number.
    while let Some(valid) = Dialect::ROCKSDB.valid(head, true)
        && matches!(valid.role, Role::Metadata(_))
    {
        head = &head[valid.end..];
    }
    let has_metadata = head.len() < len;
    let written_len = head.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match head.first_chunk().map(Header::decode) {
        Some(header) if written_len > 0 => {
            let is_whole = of_fragment(head, |dialect| dialect.valid(head, true)).is_some();
            !is_whole && first_fragments(header).any(|(_, end)| end > written_len)
        }
        // Only metadata.
        _ => has_metadata,
    }
}

/// Whether the first fragment is valid but for one or more wrong bits in its type, or the
/// end-of-log trailer of a log without records but for one bit. A flipped bit elsewhere leaves a
/// known type.
fn has_wrong_type(head: &[u8]) -> bool {
    let mut block = head[..head.len().min(BLOCK_LEN)].to_vec();
    let kind = block[HEADER_LEN - 1];
    let is_fragment = (0..=u8::MAX).filter(|&kind| is_written(kind)).any(|kind| {
        block[HEADER_LEN - 1] = kind;
        of_fragment(&block, |dialect| dialect.valid(&block, true)).is_some()
    });
    is_fragment
        || (0..u8::BITS).any(|bit| {
            block[HEADER_LEN - 1] = kind ^ (1 << bit);
            Dialect::PEBBLE.number_of_empty_log(&block).is_some()
        })
}

/// Whether there is a valid fragment anywhere in `head`, or one of an unknown type at its
/// beginning.
fn has_fragment(head: &[u8]) -> bool {
    let first = &head[..head.len().min(BLOCK_LEN)];
    let is_of_unknown_type = [Dialect::ROCKSDB, Dialect::WANDB]
        .iter()
        .any(|dialect| dialect.valid(first, true).is_some());
    // Also the blocks of a run file, which may begin after its header.
    let mut blocks = [0, Dialect::WANDB.prefix.len()]
        .into_iter()
        .flat_map(|begin| head.get(begin..).unwrap_or_default().chunks(BLOCK_LEN));
    is_of_unknown_type || blocks.any(has_fragment_in)
}

/// Whether there is a valid fragment anywhere in this block.
fn has_fragment_in(block: &[u8]) -> bool {
    let scanner = Scanner::new(block);
    (0..block.len().saturating_sub(HEADER_LEN - 1)).any(|begin| {
        let rest = &block[begin..];
        is_written(rest[HEADER_LEN - 1]) && of_fragment(rest, |dialect| scanner.valid(dialect, begin)).is_some()
    })
}

/// The format of a file of `file_len` bytes whose first [`DETECT_LEN`] bytes show no log: a table
/// by its footer, or `weak`, unless a later block begins with a valid fragment. In a log, every
/// block does whose beginning is not damaged. `read_at` reads at an offset of the file; if it
/// returns nothing there, the file may be a log.
pub(crate) fn of_rest(
    weak: Option<Foreign>,
    file_len: u64,
    mut read_at: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<Foreign>> {
    let mut end = [0; FOOTER_LEN];
    if read_at(file_len.saturating_sub(FOOTER_LEN as u64), &mut end)? < FOOTER_LEN {
        return Ok(None);
    }
    if let Some(table) = footer(&end) {
        return Ok(Some(table));
    }
    if weak.is_none() {
        return Ok(None);
    }
    let mut bytes = vec![0; BLOCK_LEN];
    for block in (DETECT_LEN as u64..file_len).step_by(BLOCK_LEN) {
        // Blocks may begin after a file header.
        for begin in [block, block + Dialect::WANDB.prefix.len() as u64] {
            let mut header = [0; HEADER_LEN];
            if read_at(begin, &mut header)? < HEADER_LEN || !is_written(header[HEADER_LEN - 1]) {
                continue;
            }
            let len = Form::Synced.header_len() + usize::from(Header::decode(&header).len);
            let bytes = &mut bytes[..len.min(BLOCK_LEN)];
            let len = read_at(begin, bytes)?;
            let bytes = &bytes[..len];
            if of_fragment(bytes, |dialect| dialect.valid(bytes, true)).is_some() {
                return Ok(None);
            }
        }
    }
    Ok(weak)
}

/// The length of the magic number at the end of a table.
const FOOTER_LEN: usize = 8;

/// The table format with this footer. Source: LevelDB `table/format.h`, RocksDB
/// `table/block_based/block_based_table_builder.cc`, `table/plain/plain_table_builder.cc`,
/// `table/cuckoo/cuckoo_table_builder.cc`, Pebble `sstable/table.go`.
fn footer(file: &[u8]) -> Option<Foreign> {
    match u64::from_le_bytes(*file.last_chunk::<FOOTER_LEN>()?) {
        0xdb47_7524_8b80_fb57 => Some(Foreign::LevelDbTable),
        0x88e2_41b7_85f4_cff7 | 0x8242_2296_63bf_9564 | 0x4f34_18eb_7a8f_13b8 | 0x9267_89d0_c5f1_7873 => {
            Some(Foreign::RocksDbTable)
        }
        0xb3aa_9ff0_b3aa_9ff0 => Some(Foreign::PebbleTable),
        _ => None,
    }
}

/// Whether `head` is UTF-8 without control bytes; the head of a longer file may end in the middle
/// of a character.
fn is_text(head: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => head.len() == DETECT_LEN && error.error_len().is_none(),
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c');
    is_utf8 && !head.iter().any(is_control)
}

/// `format`, or that of a compressed RocksDB log if the first fragment is damaged and the log is
/// one.
fn with_compression(format: LogFormat, head: &[u8]) -> LogFormat {
    if is_compressed(format, head) {
        compressed(format)
    } else {
        format
    }
}

/// The format of a compressed RocksDB log with the number of `format`.
fn compressed(format: LogFormat) -> LogFormat {
    LogFormat {
        dialect: Dialect::ROCKSDB,
        compression: Some(Compression::Zstd),
        ..format
    }
}

/// Whether a log that begins with damage is a compressed RocksDB log, so that no frame is mistaken
/// for a record. The first fragment, the same eleven bytes in all such logs, would say so. The log
/// is taken to be compressed if
///
/// * at most eight bits of these bytes are damaged; or
/// * the damaged bytes are not clearly another fragment that the next one follows, and the first
///   readable records are zstd frames.
fn is_compressed(format: LogFormat, head: &[u8]) -> bool {
    const DAMAGED_BITS_MAX: u32 = 8;
    let may_be = [Dialect::LEVELDB, Dialect::RECYCLABLE, Dialect::ROCKSDB].contains(&format.dialect);
    if !may_be || Dialect::ROCKSDB.valid(head, true).is_some() {
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
    let dialect = Dialect::ROCKSDB;
    let header = Header::decode(first.first_chunk().unwrap_or(&[0; HEADER_LEN]));
    let end = dialect.meaning(header.kind).form.header_len() + usize::from(header.len);
    let rest = head[..head.len().min(BLOCK_LEN)].get(end..);
    let is_another = end != FIRST_COMPRESSED.len() && rest.is_some_and(|rest| dialect.valid(rest, true).is_some());
    !is_another && begins_with_frames(LogFormat { dialect, ..format }, head)
}

/// Whether the records in `head`, as far as they can be found from the beginnings of blocks on, are
/// zstd frames.
fn begins_with_frames(format: LogFormat, head: &[u8]) -> bool {
    let first_block = &head[..head.len().min(BLOCK_LEN)];
    are_frames(format, head, BLOCK_LEN)
        .or_else(|| are_frames(format, first_block, FIRST_COMPRESSED.len()))
        .or_else(|| are_frames(format, first_block, behind_damage(first_block)?.0))
        .unwrap_or(false)
}

/// Whether all records in `head` that begin at or after `begin` are zstd frames; `None` if there is
/// none.
fn are_frames(format: LogFormat, head: &[u8], mut begin: usize) -> Option<bool> {
    let mut found = None;
    while begin < head.len() {
        let left = format.dialect.block_left(begin as u64);
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        let Some(valid) = format
            .dialect
            .valid(block, true)
            .filter(|valid| !format.is_stale(block, valid.form))
        else {
            begin += left;
            continue;
        };
        let payload = &block[valid.form.header_len()..valid.end];
        // An empty record is not a frame, and a FIRST may end within the four bytes.
        if matches!(valid.role, Role::Fragment(Kind::Full | Kind::First)) && payload.len() >= ZSTD_MAGIC.len() {
            if !payload.starts_with(ZSTD_MAGIC) {
                return Some(false);
            }
            found = Some(true);
        }
        begin += valid.end;
    }
    found
}

/// The beginning of every compressed RocksDB log.
const FIRST_COMPRESSED: [u8; 11] = *b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";

/// The magic number of a zstd frame.
const ZSTD_MAGIC: &[u8; 4] = b"\x28\xb5\x2f\xfd";

/// The format of a log whose first block begins with damage, and where the damage ends: at the
/// first two consecutive valid fragments in the block.
fn behind_damage(block: &[u8]) -> Option<(usize, LogFormat)> {
    // Most bytes are not a type, and need no checksum.
    let is_type = |byte| {
        let roles = [Dialect::ROCKSDB, Dialect::PEBBLE].map(|dialect| dialect.meaning(byte).role);
        roles
            .iter()
            .any(|role| matches!(role, Role::Fragment(_) | Role::Metadata(_)))
    };
    let scanner = Scanner::new(block);
    (1..block.len()).find_map(|begin| {
        let rest = &block[begin..];
        if !rest.get(HEADER_LEN - 1).copied().is_some_and(is_type) {
            return None;
        }
        let format = of_fragment(rest, |dialect| scanner.valid(dialect, begin))?;
        let end = begin + scanner.valid(&format.dialect, begin)?.end;
        scanner.valid(&format.dialect, end).map(|_| (begin, format))
    })
}

/// The format of the log to which the valid fragment at the beginning of `block` belongs, as `find`
/// finds it in a dialect. For a recyclable one, [`Dialect::RECYCLABLE`].
///
/// Type bytes mean different things in different dialects, but no two of them compute the checksum
/// over the same bytes.
fn of_fragment(block: &[u8], find: impl Fn(&Dialect) -> Option<Valid>) -> Option<LogFormat> {
    let order = [
        Dialect::LEVELDB,
        Dialect::RECYCLABLE,
        Dialect::ROCKSDB,
        Dialect::PEBBLE,
        Dialect::WANDB,
    ];
    for dialect in order {
        let Some(valid) = find(&dialect) else {
            continue;
        };
        let format = LogFormat::new(dialect).numbered(Dialect::log_number_at(block, valid.form));
        match valid.role {
            Role::Fragment(_) => return Some(format),
            Role::Metadata(Metadata::SetCompression) => {
                // Without a valid payload it cannot be distinguished from what other dialects may
                // mean by the type.
                let is_zstd = block[HEADER_LEN..valid.end] == super::rocksdb::ZSTD;
                return Some(if is_zstd {
                    format.with_compression(Compression::Zstd)
                } else {
                    format
                });
            }
            Role::Metadata(_) => return Some(format),
            Role::Ignorable | Role::Unknown => {}
        }
    }
    None
}

/// Distinguishes the logs that begin with recyclable fragments, at `begin`: one that a trailer ends
/// is Pebble's. Nothing shows that one is RocksDB's.
fn recyclable(format: LogFormat, head: &[u8], mut begin: usize, is_all: bool) -> Detection {
    if !is_all {
        return Detection::NeedMore;
    }
    while begin < head.len() {
        let left = BLOCK_LEN - begin % BLOCK_LEN;
        let block = &head[begin..];
        let block = &block[..block.len().min(left)];
        begin += match format.dialect.valid(block, true) {
            _ if format.is_end_trailer(block) => {
                return Detection::Log(LogFormat {
                    dialect: Dialect::PEBBLE,
                    ..format
                });
            }
            Some(valid) if !format.is_stale(block, valid.form) => valid.end,
            Some(_) => break,
            None => left,
        };
    }
    Detection::Log(format)
}

/// Whether `head` is a whole log, truncated in the header of an empty recyclable record, which
/// LevelDB takes for a complete fragment.
fn is_cut_recyclable(head: &[u8]) -> bool {
    let header = head.first_chunk().map(Header::decode);
    let form = header.map(|header| (header.len, Dialect::RECYCLABLE.meaning(header.kind).form));
    form == Some((0, Form::Recyclable)) && head.len() < Form::Recyclable.header_len()
}

/// The kind of run file whose file header is damaged, by the intact bytes of it.
fn run_file(head: &[u8], is_all: bool) -> Detection {
    let right_count = |dialect: Dialect| dialect.prefix.iter().zip(head).filter(|(a, b)| a == b).count();
    if right_count(Dialect::SWANLAB) > right_count(Dialect::WANDB) {
        Detection::Log(Dialect::SWANLAB.into())
    } else {
        wandb_grid(head, is_all)
    }
}

/// Whether the blocks of a run file are counted from its beginning or from the end of its header:
/// the second block begins with a valid fragment. If neither does, the first fragment may be too
/// long for a block counted from the beginning.
fn wandb_grid(head: &[u8], is_all: bool) -> Detection {
    if !is_all && head.len() < 2 * BLOCK_LEN + HEADER_LEN {
        return Detection::NeedMore;
    }
    let has_second_block_at = |begin: usize| {
        let block = head.get(begin..).unwrap_or_default();
        let block = &block[..block.len().min(BLOCK_LEN)];
        // A FIRST fragment without data occurs only at the end of a block.
        let is_at_end = |valid: &Valid| valid.role == Role::Fragment(Kind::First) && valid.end == HEADER_LEN;
        Dialect::WANDB
            .valid(block, true)
            .is_some_and(|valid| !is_at_end(&valid))
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
    // A valid fragment of the first block that goes past the end that this block would have.
    let crosses = || {
        let block = head.get(..BLOCK_LEN + prefix_len).unwrap_or(head);
        let mut at = prefix_len;
        while at < BLOCK_LEN
            && let Some(valid) = Dialect::WANDB.valid(block.get(at..).unwrap_or_default(), true)
        {
            at += valid.end;
        }
        at > BLOCK_LEN
    };
    let is_old =
        !has_second_block_at(BLOCK_LEN) && (has_second_block_at(BLOCK_LEN + prefix_len) || is_too_long || crosses());
    let dialect = if is_old { Dialect::WANDB_OLD } else { Dialect::WANDB };
    Detection::Log(dialect.into())
}

/// The format of a file that is not a log, by its beginning.
fn foreign(head: &[u8]) -> Option<Foreign> {
    let by_magic = [
        (b"\x1f\x8b\x08".as_slice(), Foreign::Gzip),
        (ZSTD_MAGIC, Foreign::Zstd),
        (b"\x04\x22\x4d\x18", Foreign::Lz4),
        (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", Foreign::Riegeli),
        (b"SQLite format 3\0", Foreign::Sqlite),
        (b"\x37\x7f\x06\x82", Foreign::SqliteWal),
        (b"\x37\x7f\x06\x83", Foreign::SqliteWal),
        (b"PAR1", Foreign::Parquet),
        (b"ARROW1\0\0", Foreign::Arrow),
        (b"PK\x03\x04", Foreign::Zip),
        (b"PK\x05\x06", Foreign::Zip),
        (b"Obj\x01", Foreign::Avro),
        (b"\x7fELF", Foreign::Elf),
        (b"\x89PNG\r\n\x1a\n", Foreign::Png),
        (b"\xfd7zXZ\0", Foreign::Xz),
        (b"version https://git-lfs.github.com/spec/", Foreign::GitLfs),
    ]
    .into_iter()
    .find(|(magic, _)| head.starts_with(magic));
    if let Some((_, foreign)) = by_magic {
        return Some(foreign);
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Some(Foreign::Bzip2);
    }
    if is_info_log(head) {
        return Some(Foreign::InfoLog);
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

/// Whether `head` begins with a line of LevelDB's or RocksDB's `LOG`: `2026/01/31-23:59:59.999999
/// `.
fn is_info_log(head: &[u8]) -> bool {
    let pattern = b"0000/00/00-00:00:00.000000 ";
    let is_like = |(byte, like): (&u8, &u8)| byte == like || *like == b'0' && byte.is_ascii_digit();
    head.len() >= pattern.len() && head.iter().zip(pattern).all(is_like)
}

/// Whether this is a record of a Prometheus log: type, length and checksum of the payload, big
/// endian. Source: prometheus `tsdb/wlog/wlog.go`.
fn prometheus(head: &[u8]) -> bool {
    let Some((&[flags, l0, l1, c0, c1, c2, c3], behind)) = head.split_first_chunk() else {
        return false;
    };
    let len = usize::from(l0) << 8 | usize::from(l1);
    let stored = [c3, c2, c1, c0];
    // The low three bits are the position in the record, the next two the compression.
    let is_kind = matches!(flags & 7, 1..=4) && flags < 32 && (1..=FRAGMENT_LEN_MAX).contains(&len);
    is_kind
        && behind
            .get(..len)
            .is_some_and(|payload| crc32c(payload) == u32::from_le_bytes(stored))
}
