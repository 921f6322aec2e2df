//! Where a log can be appended to: the rule of `docs/format/writing.md`.

use std::io::{self, Read};
use std::path::Path;

use super::options::{LogFileOptions, OnTornTail};
use super::storage::{Storage, StorageReader};
use crate::decode::{OnCorruption, ReadOptions};
use crate::dialect::Dialect;
use crate::error::{Error, Reason, Severity, SkippedRegion};
use crate::format::{BLOCK_LEN, Kind};
use crate::fragment::{Found, find};
use crate::reader::{Event, Reader, StreamSource};

/// What a disk writes as one. Only a hint as to what a crash can have left; etcd takes the same length (`wal/decoder.go`).
const SECTOR_LEN: u64 = 512;

/// Where the next record goes, and what stood behind the last whole one.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) file_len: u64,
    pub(super) tail: Option<SkippedRegion>,
}

/// Finds the end of the last whole record, and makes the file end where another one can follow.
pub(super) fn recover(
    storage: &dyn Storage,
    options: &LogFileOptions,
    path: Option<&Path>,
) -> Result<Recovered, Error> {
    let failed = |source| Error::Io {
        path: path.map(Path::to_owned),
        source,
    };
    let file_len = storage.file_len().map_err(failed)?;
    let Some(tail) = find_tail(storage, options, path, file_len)? else {
        return Ok(Recovered { file_len, tail: None });
    };
    let region = SkippedRegion {
        begin: tail.begin,
        end: file_len,
        reason: tail.reason,
        leveldb_len: None,
    };
    let path = path.map(Path::to_owned);
    let new_len = match (options.on_torn_tail, tail.damage) {
        (OnTornTail::PadToBlock, _) => match options.dialect.block_left(file_len) {
            BLOCK_LEN => file_len,
            left => file_len + left as u64,
        },
        (OnTornTail::Truncate, None) => tail.begin,
        (OnTornTail::Truncate, Some(_)) if tail.is_torn() => tail.begin,
        (OnTornTail::Refuse, None) => return Err(Error::TornTail { path, region }),
        (_, Some(region)) => return Err(Error::Corruption { path, region }),
    };
    if new_len > file_len && tail.last != Reason::ZeroFill {
        // Zeros alone could complete the torn record, if what is missing of it is zeros: it would come up after it was said to be lost. No
        // checksum is right for two payloads that differ in one byte.
        write_all(storage, &[0xff], file_len).map_err(failed)?;
    }
    if new_len != file_len {
        cut(storage, new_len).map_err(failed)?;
    }
    Ok(Recovered {
        file_len: new_len,
        tail: Some(region),
    })
}

/// Sets the length of a file that something stood in. It is on the disk before anything is written there: otherwise a crash could bring back the
/// old bytes behind new ones.
pub(super) fn cut(storage: &dyn Storage, len: u64) -> io::Result<()> {
    storage.set_len(len)?;
    storage.sync_data()
}

fn write_all(storage: &dyn Storage, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match storage.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What stands behind the last whole record.
#[derive(Debug)]
struct Tail {
    begin: u64,
    /// The first reason of the worst severity.
    reason: Reason,
    /// That of the last region.
    last: Reason,
    /// The first region that is damage.
    damage: Option<SkippedRegion>,
    /// A sector, or the part of it that is damaged, is all zero: it was not written, though the file had its new length already.
    has_zero_sector: bool,
    /// Something in it cannot be the rest of a write that was cut short.
    has_whole_record: bool,
}

impl Tail {
    fn new(region: SkippedRegion) -> Self {
        Tail {
            begin: region.begin,
            reason: region.reason,
            last: region.reason,
            damage: None,
            has_zero_sector: false,
            has_whole_record: false,
        }
    }

    /// Whether a crash can have left it, although it reads as damage.
    fn is_torn(&self) -> bool {
        self.has_zero_sector && !self.has_whole_record
    }

    fn add(&mut self, region: SkippedRegion, storage: &dyn Storage, dialect: Dialect) -> io::Result<()> {
        self.last = region.reason;
        if rank(region.reason) > rank(self.reason) {
            self.reason = region.reason;
        }
        if region.reason.severity() == Severity::Corruption {
            self.damage = self.damage.or(Some(region));
        }
        match region.reason {
            Reason::ZeroFill => self.has_zero_sector = true,
            // Its checksum is right: it was written as a whole.
            Reason::UnknownKind { .. } => self.has_whole_record = true,
            Reason::ChecksumMismatch { .. } | Reason::BadLength { .. } | Reason::ZeroHeader => {
                let bytes = read_region(storage, region)?;
                self.has_zero_sector |= has_zero_sector(&bytes, region.begin);
                self.has_whole_record |= hides_record(dialect, &bytes);
            }
            _ => {}
        }
        Ok(())
    }
}

fn rank(reason: Reason) -> u8 {
    match reason.severity() {
        Severity::Info => 0,
        Severity::TornTail => 1,
        Severity::Corruption => 2,
    }
}

/// Reads the records from the checkpoint on. `None`: the file ends with a whole one.
///
/// # Errors
///
/// [`Error::Corruption`] for damage with a whole record behind it, unless the choice is to pad.
fn find_tail(
    storage: &dyn Storage,
    options: &LogFileOptions,
    path: Option<&Path>,
    file_len: u64,
) -> Result<Option<Tail>, Error> {
    let failed = |source| Error::Io {
        path: path.map(Path::to_owned),
        source,
    };
    let checkpoint = options.checkpoint.unwrap_or(0);
    // From the beginning of the block on, so that nothing in the middle of a record can be taken for one.
    let offset = options.dialect.block_begin(checkpoint);
    let source = StreamSource::new(StorageReader { storage, offset }, offset).with_len(file_len);
    let read_options = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_range(offset, None)
        .with_dialect(options.dialect)
        // What could be written can be appended to.
        .with_record_len_max(u64::MAX);
    let mut reader = Reader::with_source(source, read_options);

    let mut has_checkpoint = checkpoint == 0;
    let mut tail: Option<Tail> = None;
    while let Some(event) = reader.next_event().map_err(|error| with_path(error, path))? {
        let (begin, end, is_record) = match event {
            Event::Record(record) => (record.offset, record.end_offset, true),
            Event::Skipped(region) => (region.begin, region.end, false),
        };
        if end <= checkpoint {
            continue;
        }
        has_checkpoint |= is_record && begin == checkpoint;
        if !has_checkpoint {
            break;
        }
        match event {
            Event::Record(_) => {
                let damage = tail.take().and_then(|tail| tail.damage);
                if let Some(region) = damage
                    && options.on_torn_tail != OnTornTail::PadToBlock
                {
                    return Err(Error::Corruption {
                        path: path.map(Path::to_owned),
                        region,
                    });
                }
            }
            // The block is full, and nobody looks at these bytes; or the file has begun, and no record has.
            Event::Skipped(region)
                if matches!(region.reason, Reason::NonzeroTrailer | Reason::FileHeader) && tail.is_none() => {}
            Event::Skipped(region) => {
                let tail = tail.get_or_insert_with(|| Tail::new(region));
                tail.add(region, storage, options.dialect).map_err(failed)?;
            }
        }
    }
    if !has_checkpoint {
        return Err(failed(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no record begins at the checkpoint {checkpoint} of this file of {file_len} bytes"),
        )));
    }
    Ok(tail)
}

fn with_path(error: Error, path: Option<&Path>) -> Error {
    match error {
        Error::Io { source, .. } => Error::Io {
            path: path.map(Path::to_owned),
            source,
        },
        other => other,
    }
}

/// The bytes of a region that lies in one block.
fn read_region(storage: &dyn Storage, region: SkippedRegion) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader = StorageReader {
        storage,
        offset: region.begin,
    };
    reader.take(region.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a sector of the file is all zero, as far as it lies in `bytes`, which begin at the file offset `begin`.
fn has_zero_sector(bytes: &[u8], begin: u64) -> bool {
    let first_len = (SECTOR_LEN - begin % SECTOR_LEN) as usize;
    let (first, rest) = bytes.split_at(first_len.min(bytes.len()));
    std::iter::once(first)
        .chain(rest.chunks(SECTOR_LEN as usize))
        .any(|sector| !sector.is_empty() && sector.iter().all(|&byte| byte == 0))
}

/// Whether a whole record, or the beginning of one that may be whole, stands behind damage in its block, where no reader looks for it.
///
/// A damaged record whose data holds log fragments itself is taken for one: rather a false alarm than a silent loss.
fn hides_record(dialect: Dialect, bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|begin| {
        // A fragment that passes the end of the bytes is not whole, wherever the block ends.
        matches!(
            find(&dialect, &bytes[begin..], usize::MAX, false, true),
            Found::Fragment {
                kind: Kind::Full | Kind::First,
                ..
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_those_of_the_file() {
        let mut bytes = vec![1; 2000];
        assert!(!has_zero_sector(&bytes, 100));
        bytes[412..924].fill(0);
        assert!(has_zero_sector(&bytes, 100));
        assert!(!has_zero_sector(&bytes, 101));
        bytes[412] = 1;
        assert!(!has_zero_sector(&bytes, 100));
        // Parts of a sector at both ends.
        assert!(has_zero_sector(&[0, 0, 1], 510));
        assert!(has_zero_sector(&[1, 1, 0], 510));
        assert!(!has_zero_sector(&[1, 0, 0, 1], 510));
        assert!(!has_zero_sector(&[], 0));
    }

    #[test]
    fn a_record_behind_damage_is_seen() {
        let mut file = vec![7; 100];
        assert!(!hides_record(Dialect::LEVELDB, &file));
        crate::Encoder::new(0).encode(b"whole", &mut file);
        assert!(hides_record(Dialect::LEVELDB, &file));
        file.pop();
        assert!(!hides_record(Dialect::LEVELDB, &file));
    }
}
