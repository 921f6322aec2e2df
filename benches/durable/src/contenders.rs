//! The logs, all with the same few calls.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub type Result<T> = std::result::Result<T, String>;

/// A log that threads share.
pub trait Log: Send + Sync {
    /// Appends a record, which survives the end of the process once this has returned.
    fn append(&self, record: &[u8]) -> Result<()>;
    /// Appends a record, which survives a crash of the machine once this has returned.
    fn append_sync(&self, record: &[u8]) -> Result<()>;
    /// Appends records, which survive a crash of the machine once this has returned.
    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()>;
}

pub struct Contender {
    pub name: &'static str,
    /// Opens the log in a directory, or creates it.
    pub open: fn(&Path, Use) -> Result<Box<dyn Log>>,
    /// Passes all records of the log in a directory to a function, up to an error. `None`: the
    /// crate has no reader.
    pub read: Option<fn(&Path, &mut dyn FnMut(&[u8])) -> Result<()>>,
    /// Whether it can write a record to the operating system without a sync.
    pub has_append: bool,
    /// Whether it syncs at all.
    pub syncs: bool,
}

/// The use of a log that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Durable appends, as most users would configure it.
    Durable,
    /// Appends that are not synced.
    Unsynced,
    /// A few records, in files of a MiB where that can be chosen: they are copied hundreds of times.
    Small,
}

pub const CONTENDERS: &[Contender] = &[
    Contender {
        name: "cordwood",
        open: open_cordwood,
        read: Some(read_cordwood),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "cordwood-segments",
        open: open_cordwood_segments,
        read: Some(read_cordwood),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "by-hand",
        open: open_by_hand,
        read: Some(read_by_hand),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "okaywal",
        open: open_okaywal,
        read: Some(read_okaywal),
        has_append: false,
        syncs: true,
    },
    Contender {
        name: "open-wal",
        open: open_open_wal,
        read: Some(read_open_wal),
        has_append: false,
        syncs: true,
    },
    Contender {
        name: "wal-db",
        open: open_wal_db,
        read: Some(read_wal_db),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "raft-engine",
        open: open_raft_engine,
        read: Some(read_raft_engine),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "ironwal",
        open: open_ironwal,
        read: Some(read_ironwal),
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "nano-wal",
        open: open_nano_wal,
        read: None,
        has_append: true,
        syncs: true,
    },
    Contender {
        name: "simple_wal",
        open: open_simple_wal,
        read: Some(read_simple_wal),
        has_append: true,
        syncs: false,
    },
    Contender {
        name: "commitlog",
        open: open_commitlog,
        read: Some(read_commitlog),
        has_append: true,
        syncs: false,
    },
];

fn text(error: impl Debug) -> String {
    format!("{error:?}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// cordwood --------------------------------------------------------------------------------------

fn cordwood_options() -> cordwood::LogFileOptions {
    cordwood::LogFileOptions::default().with_on_torn_tail(cordwood::OnTornTail::Truncate)
}

fn open_cordwood(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    let log = cordwood::LogFile::append_to(directory.join("log"), cordwood_options());
    Ok(Box::new(log.map_err(|error| error.to_string())?))
}

fn open_cordwood_segments(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    let log = cordwood::SegmentedLog::open(directory.join("log"), cordwood_options());
    Ok(Box::new(log.map_err(|error| error.to_string())?))
}

/// A log in one file and one in segments have the same calls.
macro_rules! cordwood_log {
    ($log:ty) => {
        impl Log for $log {
            fn append(&self, record: &[u8]) -> Result<()> {
                <$log>::append(self, record).map(drop).map_err(text)
            }

            fn append_sync(&self, record: &[u8]) -> Result<()> {
                <$log>::append_sync(self, record).map(drop).map_err(text)
            }

            fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
                self.extend(records).map_err(text)?;
                self.sync().map_err(text)
            }
        }
    };
}

cordwood_log!(cordwood::LogFile);
cordwood_log!(cordwood::SegmentedLog);

fn read_cordwood(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let mut reader = cordwood::Reader::open(directory.join("log")).map_err(text)?;
    while let Some(record) = reader.next_record().map_err(text)? {
        each(record.data);
    }
    Ok(())
}

// A log by hand ---------------------------------------------------------------------------------

/// As many programs write one: the length, the checksum and the data of a record in one write, then `fdatasync`, under a
/// lock. Opening it again continues at the end of the file.
struct ByHand(Mutex<(File, Vec<u8>)>);

impl ByHand {
    fn write<'a>(&self, records: impl Iterator<Item = &'a [u8]>, syncs: bool) -> Result<()> {
        let mut state = lock(&self.0);
        let (file, buffer) = &mut *state;
        buffer.clear();
        for record in records {
            buffer.extend_from_slice(&(record.len() as u32).to_le_bytes());
            buffer.extend_from_slice(&crc32c::crc32c(record).to_le_bytes());
            buffer.extend_from_slice(record);
        }
        file.write_all(buffer).map_err(text)?;
        if syncs { file.sync_data().map_err(text) } else { Ok(()) }
    }
}

impl Log for ByHand {
    fn append(&self, record: &[u8]) -> Result<()> {
        self.write([record].into_iter(), false)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        self.write([record].into_iter(), true)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        self.write(records.iter().map(Vec::as_slice), true)
    }
}

fn open_by_hand(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(directory.join("log"))
        .map_err(text)?;
    Ok(Box::new(ByHand(Mutex::new((file, Vec::new())))))
}

fn read_by_hand(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let file = std::fs::read(directory.join("log")).map_err(text)?;
    let mut rest = &file[..];
    while let Some((header, data)) = rest.split_first_chunk::<8>() {
        let (len, checksum) = header.split_at(4);
        let len = u32::from_le_bytes(len.try_into().map_err(text)?) as usize;
        // An incomplete record is the end.
        let Some((data, after)) = data.split_at_checked(len) else {
            break;
        };
        if crc32c::crc32c(data).to_le_bytes() != *checksum {
            return Err("a wrong checksum".to_owned());
        }
        each(data);
        rest = after;
    }
    Ok(())
}

// okaywal ---------------------------------------------------------------------------------------

/// Opening reads the log: the crate has no other way to read all of it.
#[derive(Debug, Default)]
struct Recovering {
    /// The records, if they are wanted.
    records: Option<Arc<Mutex<Vec<Vec<u8>>>>>,
}

impl okaywal::LogManager for Recovering {
    fn recover(&mut self, entry: &mut okaywal::Entry<'_>) -> std::io::Result<()> {
        if let (Some(chunks), Some(records)) = (entry.read_all_chunks()?, &self.records) {
            lock(records).extend(chunks);
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _: okaywal::EntryId,
        _: &mut okaywal::SegmentReader,
        _: &okaywal::WriteAheadLog,
    ) -> std::io::Result<()> {
        Ok(())
    }
}

fn okaywal_in(directory: &Path, manager: Recovering) -> Result<okaywal::WriteAheadLog> {
    // Without a checkpoint, which would remove records.
    let configuration = okaywal::Configuration::default_for(directory).checkpoint_after_bytes(u64::MAX);
    configuration.open(manager).map_err(text)
}

fn open_okaywal(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    Ok(Box::new(okaywal_in(directory, Recovering::default())?))
}

impl Log for okaywal::WriteAheadLog {
    fn append(&self, _: &[u8]) -> Result<()> {
        Err("every commit is synced".to_owned())
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        let mut entry = self.start_entry().map_err(text)?;
        entry.write_chunk(record).map_err(text)?;
        entry.commit().map(drop).map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let mut entry = self.start_entry().map_err(text)?;
        for record in records {
            entry.write_chunk(record).map_err(text)?;
        }
        entry.commit().map(drop).map_err(text)
    }
}

fn read_okaywal(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let records = Arc::default();
    let manager = Recovering {
        records: Some(Arc::clone(&records)),
    };
    let opened = okaywal_in(directory, manager).map(drop);
    lock(&records).iter().for_each(|record| each(record));
    opened
}

// open-wal --------------------------------------------------------------------------------------

/// It has one writer, so threads take turns.
struct OpenWal(Mutex<open_wal::Wal>);

fn open_wal_in(directory: &Path, small: bool) -> Result<open_wal::Wal> {
    let config = match small {
        true => open_wal::WalConfig {
            segment_size: 1 << 20,
            max_record_size: 64 << 10,
        },
        false => open_wal::WalConfig::default(),
    };
    open_wal::Wal::open(directory, config).map(|(log, _)| log).map_err(text)
}

fn open_open_wal(directory: &Path, usage: Use) -> Result<Box<dyn Log>> {
    Ok(Box::new(OpenWal(Mutex::new(open_wal_in(
        directory,
        usage == Use::Small,
    )?))))
}

impl Log for OpenWal {
    fn append(&self, _: &[u8]) -> Result<()> {
        Err("a record stays in memory until it is committed".to_owned())
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        let mut log = lock(&self.0);
        log.append(record).map_err(text)?;
        log.commit().map(drop).map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let mut log = lock(&self.0);
        for record in records {
            log.append(record).map_err(text)?;
        }
        log.commit().map(drop).map_err(text)
    }
}

fn read_open_wal(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let is_segment = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "wal");
    let segments = std::fs::read_dir(directory).map_err(text)?.flatten().filter(is_segment);
    let len_max = segments.filter_map(|entry| Some(entry.metadata().ok()?.len())).max();
    let log = open_wal_in(directory, len_max.is_some_and(|len| len <= 1 << 20))?;
    let mut reader = log.reader_from(open_wal::Lsn(0)).map_err(text)?;
    while let Some(record) = reader.next() {
        each(&record.map_err(text)?.1);
    }
    Ok(())
}

// wal-db ----------------------------------------------------------------------------------------

struct WalDb<S: wal_db::WalStore>(wal_db::Wal<S>);

fn open_wal_db(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    Ok(Box::new(WalDb(wal_db::Wal::open(directory.join("log")).map_err(text)?)))
}

impl<S: wal_db::WalStore + Send + Sync> Log for WalDb<S> {
    fn append(&self, record: &[u8]) -> Result<()> {
        self.0.append(record).map(drop).map_err(text)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        self.0.append_and_sync(record).map(drop).map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        for record in records {
            let _lsn = self.0.append(record).map_err(text)?;
        }
        self.0.sync().map(drop).map_err(text)
    }
}

fn read_wal_db(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let log = wal_db::Wal::open(directory.join("log")).map_err(text)?;
    for record in log.iter().map_err(text)? {
        each(record.map_err(text)?.data());
    }
    Ok(())
}

// raft-engine -----------------------------------------------------------------------------------

/// Its records have keys; here the key is a number that rises.
struct RaftEngine {
    engine: raft_engine::Engine,
    next: AtomicU64,
}

const RAFT_GROUP: u64 = 1;

fn raft_engine_in(directory: &Path) -> Result<raft_engine::Engine> {
    let config = raft_engine::Config {
        dir: directory.to_str().ok_or("a path that is not text")?.to_owned(),
        // The records cannot be compressed.
        batch_compression_threshold: raft_engine::ReadableSize(0),
        ..Default::default()
    };
    raft_engine::Engine::open(config).map_err(text)
}

fn open_raft_engine(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    let engine = raft_engine_in(directory)?;
    let mut next = 0;
    let newest_first = true;
    engine
        .scan_raw_messages(RAFT_GROUP, None, None, newest_first, |key, _| {
            next = key.try_into().map_or(0, u64::from_be_bytes) + 1;
            false
        })
        .map_err(text)?;
    Ok(Box::new(RaftEngine {
        engine,
        next: next.into(),
    }))
}

impl RaftEngine {
    fn write<'a>(&self, records: impl ExactSizeIterator<Item = &'a [u8]>, syncs: bool) -> Result<()> {
        let mut batch = raft_engine::LogBatch::with_capacity(records.len());
        for record in records {
            let key = self.next.fetch_add(1, Relaxed).to_be_bytes();
            batch.put(RAFT_GROUP, key.to_vec(), record.to_vec()).map_err(text)?;
        }
        self.engine.write(&mut batch, syncs).map(drop).map_err(text)
    }
}

impl Log for RaftEngine {
    fn append(&self, record: &[u8]) -> Result<()> {
        self.write([record].into_iter(), false)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        self.write([record].into_iter(), true)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        self.write(records.iter().map(Vec::as_slice), true)
    }
}

fn read_raft_engine(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let newest_first = false;
    raft_engine_in(directory)?
        .scan_raw_messages(RAFT_GROUP, None, None, newest_first, |_, record| {
            each(record);
            true
        })
        .map_err(text)
}

// ironwal ---------------------------------------------------------------------------------------

const IRON_STREAM: &str = "log";

fn open_ironwal(directory: &Path, usage: Use) -> Result<Box<dyn Log>> {
    let mut options = ironwal::WalOptions::new(directory);
    options.sync_mode = match usage {
        Use::Unsynced => ironwal::SyncMode::Async,
        Use::Durable | Use::Small => ironwal::SyncMode::Strict,
    };
    Ok(Box::new(ironwal::Wal::new(options).map_err(text)?))
}

impl Log for ironwal::Wal {
    fn append(&self, record: &[u8]) -> Result<()> {
        ironwal::Wal::append(self, IRON_STREAM, record).map(drop).map_err(text)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        ironwal::Wal::append(self, IRON_STREAM, record).map(drop).map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        self.append_batch(IRON_STREAM, &records).map(drop).map_err(text)
    }
}

fn read_ironwal(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let log = ironwal::Wal::new(ironwal::WalOptions::new(directory)).map_err(text)?;
    for record in log.iter(IRON_STREAM, 0).map_err(text)? {
        each(&record.map_err(text)?);
    }
    Ok(())
}

// nano-wal --------------------------------------------------------------------------------------

/// The time that it demands with each record, and which decides the file.
struct NanoWal(nano_wal::Wal, i64);

fn open_nano_wal(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    let day = Duration::from_secs(24 * 3600);
    let options = nano_wal::WalOptions {
        retention: day,
        segment_duration: day,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(text)?.as_millis();
    let log = nano_wal::Wal::new(directory, "log", options).map_err(text)?;
    Ok(Box::new(NanoWal(log, now as i64)))
}

impl Log for NanoWal {
    fn append(&self, record: &[u8]) -> Result<()> {
        self.0.append(None, record, self.1, false).map(drop).map_err(text)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        self.0.append(None, record, self.1, true).map(drop).map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let entries: Vec<_> = records
            .iter()
            .map(|content| nano_wal::WriteEntry { header: None, content })
            .collect();
        self.0.append_batch(&entries, self.1, true).map(drop).map_err(text)
    }
}

// simple_wal ------------------------------------------------------------------------------------

fn open_simple_wal(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    Ok(Box::new(Mutex::new(
        simple_wal::LogFile::open(directory.join("log")).map_err(text)?,
    )))
}

impl Log for Mutex<simple_wal::LogFile> {
    fn append(&self, record: &[u8]) -> Result<()> {
        lock(self).write(&mut record.to_vec()).map_err(text)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        let mut log = lock(self);
        log.write(&mut record.to_vec()).map_err(text)?;
        log.flush().map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let mut log = lock(self);
        for record in records {
            log.write(&mut record.clone()).map_err(text)?;
        }
        log.flush().map_err(text)
    }
}

fn read_simple_wal(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    let mut log = simple_wal::LogFile::open(directory.join("log")).map_err(text)?;
    for record in log.iter(..).map_err(text)? {
        each(&record.map_err(text)?);
    }
    Ok(())
}

// commitlog -------------------------------------------------------------------------------------

fn commitlog_in(directory: &Path) -> Result<commitlog::CommitLog> {
    let mut options = commitlog::LogOptions::new(directory);
    // For batches of 100 records of 10 KiB.
    options.message_max_bytes(16 << 20);
    commitlog::CommitLog::new(options).map_err(text)
}

fn open_commitlog(directory: &Path, _: Use) -> Result<Box<dyn Log>> {
    Ok(Box::new(Mutex::new(commitlog_in(directory)?)))
}

impl Log for Mutex<commitlog::CommitLog> {
    fn append(&self, record: &[u8]) -> Result<()> {
        lock(self).append_msg(record).map(drop).map_err(text)
    }

    fn append_sync(&self, record: &[u8]) -> Result<()> {
        let mut log = lock(self);
        log.append_msg(record).map_err(text)?;
        log.flush().map_err(text)
    }

    fn extend_sync(&self, records: &[Vec<u8>]) -> Result<()> {
        let mut messages = commitlog::message::MessageBuf::default();
        for record in records {
            messages.push(record).map_err(text)?;
        }
        let mut log = lock(self);
        log.append(&mut messages).map_err(text)?;
        log.flush().map_err(text)
    }
}

fn read_commitlog(directory: &Path, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    use commitlog::message::MessageSet;
    let log = commitlog_in(directory)?;
    let mut next = 0;
    loop {
        let messages = log.read(next, commitlog::ReadLimit::max_bytes(1 << 20)).map_err(text)?;
        if messages.len() == 0 {
            return Ok(());
        }
        for message in messages.iter() {
            each(message.payload());
            next = message.offset() + 1;
        }
    }
}
