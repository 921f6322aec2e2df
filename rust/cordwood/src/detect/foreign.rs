//! Recognizes files that aren't logs: files with a signature at the start or the end, and text
//! files.

use std::fmt;

use crate::checksum::{crc32c, mask};
use crate::compression::FRAME_MAGIC;
use crate::format::FRAGMENT_LEN_MAX;
use crate::names::named;

named! {
    /// The format of a file that is not a log in any dialect. Most descriptions name a program that
    /// can read the format.
    pub enum Foreign {
        /// A file compressed with gzip.
        Gzip = "gzip", "a file compressed with gzip: decompress it first, with `gunzip`";
        /// A file compressed with zstd.
        Zstd = "zstd", "a file compressed with zstd: decompress it first, with `unzstd`";
        /// A file compressed with LZ4.
        Lz4 = "LZ4", "a file compressed with LZ4: decompress it first, with `unlz4`";
        /// A file compressed with bzip2.
        Bzip2 = "bzip2", "a file compressed with bzip2: decompress it first, with `bunzip2`";
        /// A file compressed with xz.
        Xz = "xz", "a file compressed with xz: decompress it first, with `unxz`";
        /// A ZIP archive.
        Zip = "ZIP", "a ZIP archive: unpack it first, with `unzip`";
        /// Riegeli records.
        Riegeli = "Riegeli", "a file of Riegeli records, which the riegeli library reads";
        /// TensorFlow's TFRecord.
        TfRecord = "TFRecord", "a TFRecord file, which TensorFlow reads with `tf.data.TFRecordDataset`";
        /// A SQLite database.
        Sqlite = "SQLite", "a SQLite database, which `sqlite3` reads";
        /// The write-ahead log of a SQLite database.
        SqliteWal = "SQLite WAL", "a SQLite WAL, which `sqlite3` reads together with its database";
        /// A Prometheus write-ahead log segment.
        Prometheus = "Prometheus WAL", "a segment of a Prometheus WAL, which `promtool tsdb` reads";
        /// A Parquet table.
        Parquet = "Parquet", "a Parquet table, which pyarrow reads with `pyarrow.parquet`";
        /// An Arrow (Feather) table.
        Arrow = "Arrow", "an Arrow table, which pyarrow reads with `pyarrow.feather`";
        /// An Avro container.
        Avro = "Avro", "an Avro container, which the libraries avro and fastavro read";
        /// An ELF program or library.
        Elf = "ELF", "an ELF program or library, which `readelf` reads";
        /// A PNG image.
        Png = "PNG", "a PNG image, which an image viewer shows";
        /// A NumPy array.
        NumPy = "NumPy", "a NumPy array, which `numpy.load` reads";
        /// A Git LFS pointer to a file that was not fetched.
        GitLfs = "Git LFS pointer", "a Git LFS pointer: `git lfs pull` fetches the file itself";
        /// A git-annex pointer to a file that was not fetched.
        GitAnnex = "git-annex pointer", "a git-annex pointer: `git annex get` fetches the file itself";
        /// A file encrypted by NetEase's edition of Minecraft.
        NetEase = "encrypted by NetEase",
            "a file encrypted by NetEase's edition of Minecraft: decrypt it first, as cordwood's guide \"Rescue a \
             LevelDB or RocksDB database\" shows";
        /// The info log of LevelDB or RocksDB: the text file `LOG`.
        InfoLog = "info log", "an info log, the messages of an engine, which a text editor shows";
        /// A LevelDB table (`.ldb`, `.sst`), or an old RocksDB table.
        LevelDbTable = "LevelDB table", "a LevelDB table, which LevelDB reads together with its database";
        /// A RocksDB table (`.sst`).
        RocksDbTable = "RocksDB table", "a RocksDB table, which `sst_dump` of RocksDB reads";
        /// A Pebble table (`.sst`).
        PebbleTable = "Pebble table", "a Pebble table, which `pebble sstable` of Pebble reads";
        /// A RocksDB or Pebble blob file (`.blob`), which stores values separately from their keys.
        BlobFile = "blob file", "a blob file, which RocksDB or Pebble reads together with its tables";
        /// UTF-8 text.
        Text = "text", "text";
        /// The file is in none of the formats above, and nothing suggests that it is a log.
        Unknown = "unknown",
            "in an unknown format: it has no valid fragment, and neither the headers nor the name of a log";
    }
}

impl Foreign {
    /// Checks whether the format was recognized by its signature. Files without a signature are
    /// rejected because no log was found in them.
    pub(crate) const fn has_signature(self) -> bool {
        !matches!(self, Foreign::Text | Foreign::Unknown)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a log, but {}", self.description())
    }
}

impl std::error::Error for Foreign {}

/// Returns the format of a file that isn't a log, based on its start.
pub(super) fn foreign(head: &[u8]) -> Option<Foreign> {
    let by_magic = [
        (b"\x1f\x8b\x08".as_slice(), Foreign::Gzip),
        (FRAME_MAGIC, Foreign::Zstd),
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
        (b"\x93NUMPY", Foreign::NumPy),
        (b"\xfd7zXZ\0", Foreign::Xz),
        (b"version https://git-lfs.github.com/spec/", Foreign::GitLfs),
        (b"/annex/objects/", Foreign::GitAnnex),
        (b"\x80\x1d\x30\x01", Foreign::NetEase),
        // RocksDB `db/blob/blob_log_format.h`: the magic number and version 1.
        (b"\x37\x8f\x24\0\x01\0\0\0", Foreign::BlobFile),
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
    // A TFRecord consists of the length as a u64, the length's checksum, the data, and the data's
    // checksum.
    if let Some((len, after)) = head.split_first_chunk::<8>()
        && let Some(stored) = after.first_chunk()
        && mask(crc32c(len)) == u32::from_le_bytes(*stored)
    {
        return Some(Foreign::TfRecord);
    }
    prometheus(head).then_some(Foreign::Prometheus)
}

/// Checks whether `head` starts with a line of LevelDB's or RocksDB's `LOG`:
/// `2026/01/31-23:59:59.999999 `.
fn is_info_log(head: &[u8]) -> bool {
    let pattern = b"0000/00/00-00:00:00.000000 ";
    let is_like = |(byte, like): (&u8, &u8)| byte == like || *like == b'0' && byte.is_ascii_digit();
    head.len() >= pattern.len() && head.iter().zip(pattern).all(is_like)
}

/// Checks whether the file starts with a Prometheus log record. A record starts with its type,
/// followed by the length and the checksum of its payload, in big-endian order. Source: prometheus
/// `tsdb/wlog/wlog.go`.
fn prometheus(head: &[u8]) -> bool {
    let Some((&[flags, l0, l1, c0, c1, c2, c3], after)) = head.split_first_chunk() else {
        return false;
    };
    let len = usize::from(l0) << 8 | usize::from(l1);
    let stored = [c3, c2, c1, c0];
    // The low three bits give the position in the record, and the next two bits give the
    // compression.
    let is_kind = matches!(flags & 7, 1..=4) && flags < 32 && (1..=FRAGMENT_LEN_MAX).contains(&len);
    is_kind
        && after
            .get(..len)
            .is_some_and(|payload| crc32c(payload) == u32::from_le_bytes(stored))
}

/// The length of the magic number at the end of a table.
pub(super) const FOOTER_LEN: usize = 8;

/// Returns the format whose files end with this footer. Source: LevelDB `table/format.h`, RocksDB
/// `table/block_based/block_based_table_builder.cc`, `table/plain/plain_table_builder.cc`,
/// `table/cuckoo/cuckoo_table_builder.cc`, Pebble `sstable/table.go`, `sstable/blob/blob.go`.
pub(super) fn footer(file: &[u8]) -> Option<Foreign> {
    match u64::from_le_bytes(*file.last_chunk::<FOOTER_LEN>()?) {
        0xdb47_7524_8b80_fb57 => Some(Foreign::LevelDbTable),
        0x88e2_41b7_85f4_cff7 | 0x8242_2296_63bf_9564 | 0x4f34_18eb_7a8f_13b8 | 0x9267_89d0_c5f1_7873 => {
            Some(Foreign::RocksDbTable)
        }
        0xb3aa_9ff0_b3aa_9ff0 => Some(Foreign::PebbleTable),
        0x82a6_9ff0_b3aa_9ff0 => Some(Foreign::BlobFile),
        _ => None,
    }
}
