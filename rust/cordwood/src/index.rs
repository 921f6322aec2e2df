//! Random access to the records of logs.

use std::collections::TryReserveError;
use std::fmt;
use std::hint;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::decode::{OnCorruption, ReadOptions, RecordSpan, Step};
use crate::error::{Error, ErrorKind};
use crate::reader::{Reader, Source};

/// Of every so many records, the offset of the first one is kept.
const STRIDE: u64 = 16;

/// The readers that are kept open for the next calls, each with a window of 264 KiB. A system
/// allows a process about 1,000 open files.
const IDLE_MAX: usize = 64;

/// The records of logs by their indices, from 0.
///
/// The logs are read once, when the index is made. It keeps 8 bytes for every 16 records, and to return
/// a record, it reads the 16 among which it is, and verifies their checksums. In a packed log it begins
/// with the block of their container.
///
/// Any number of threads may read at a time: each call reads at positions of its own, also in a
/// forked process. The logs must not change: a file that has another length when it is opened, or
/// in which a record does not begin where it did, is an error.
///
/// Do not index a log with [numbers](crate::Dialect::has_log_numbers) under [`OnCorruption::Salvage`] if it
/// is damaged in several blocks: some records after damage depend on the blocks before theirs, which an
/// index does not read, so it may return others. Index a copy that [`salvage`](crate::ops::salvage) has made.
///
/// ```
/// use cordwood_log::{Error, LogFile, LogFileOptions, ReadOptions, RecordIndex};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.log");
/// let log = LogFile::create(&path, LogFileOptions::default())?;
/// for number in 0..200 {
///     log.append(format!("record {number}").as_bytes())?;
/// }
/// log.close()?;
///
/// let index = RecordIndex::open([&path], ReadOptions::default())?;
/// assert_eq!(index.len(), 200);
/// assert_eq!(index.get(150)?.as_deref(), Some(&b"record 150"[..]));
/// assert_eq!(index.get(200)?, None);
///
/// let mut records = vec![Vec::new(); 3];
/// index.read(&[7, 150, 8], |place, record| {
///     records[place] = record.to_vec();
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(records, [&b"record 7"[..], b"record 150", b"record 8"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecordIndex {
    options: ReadOptions,
    logs: Vec<IndexedLog>,
    /// How many records each log and those before it have.
    ends: Vec<u64>,
    /// In the order of their last use.
    idle: Mutex<Vec<Idle>>,
}

/// An open reader, and the number of its log.
struct Idle {
    log: usize,
    reader: Box<Reader>,
}

/// Where the records of one log are.
// Hidden: for the binding, which reads its sources itself, and pickles them.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedLog {
    /// The file, or the folder of a log in segments.
    pub path: PathBuf,
    /// As [`Reader::file_len`].
    pub file_len: u64,
    /// The number of records.
    pub record_count: u64,
    /// The offset of the first of every 16 records, and that after the last record.
    pub offsets: Vec<u64>,
}

impl RecordIndex {
    /// Reads all records of these files and logs in [`segments`](crate::segments), and indexes them in
    /// this order.
    ///
    /// `options` apply to each. The regions that are skipped have no index: under
    /// [`OnCorruption::Fail`], damage is an error.
    ///
    /// # Errors
    ///
    /// As [`Reader::open_with`] and [`Reader::next_event`]. Also [`ErrorKind::Io`] if a source is not a
    /// regular file or a folder.
    pub fn open(paths: impl IntoIterator<Item = impl AsRef<Path>>, options: ReadOptions) -> Result<Self, Error> {
        let index = |path| IndexedLog::of(&mut Reader::open_with(path, options.clone())?);
        let logs = paths.into_iter().map(index).collect::<Result<_, _>>()?;
        Ok(RecordIndex::of_logs(logs, options))
    }

    /// An index of logs that were read before, with the same options.
    #[doc(hidden)]
    pub fn of_logs(logs: Vec<IndexedLog>, options: ReadOptions) -> Self {
        let mut end = 0;
        let ends = logs.iter().map(|log| {
            end = log.record_count.saturating_add(end);
            end
        });
        RecordIndex {
            ends: ends.collect(),
            options,
            logs,
            idle: Mutex::default(),
        }
    }

    /// The logs, in their order.
    #[doc(hidden)]
    pub fn logs(&self) -> &[IndexedLog] {
        &self.logs
    }

    /// The number of records.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record with this index; `None` if there are not so many.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn get(&self, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut found = None;
        if index < self.len() {
            self.read(&[index], |_, record| {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(record.len()).map_err(no_memory)?;
                bytes.extend_from_slice(record);
                found = Some(bytes);
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }

    /// Calls `each` with the records that have these indices, and the place of each in `indices`: in the
    /// order of the indices, so that records which are near each other are read together.
    ///
    /// # Errors
    ///
    /// * The error of `each`, which ends the reading.
    /// * [`ErrorKind::Io`] if a file cannot be opened or read, or an index is not less than
    ///   [`len`](Self::len).
    /// * [`ErrorKind::Changed`] if a log has changed since it was indexed. Do not use the records that
    ///   `each` has got by then: unless damage is an error, they may be others.
    /// * As [`Reader::next_event`].
    pub fn read<E: From<Error>>(
        &self,
        indices: &[u64],
        mut each: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut places = Vec::new();
        places.try_reserve_exact(indices.len()).map_err(no_memory)?;
        places.extend(0..indices.len());
        places.sort_unstable_by_key(|&place| indices[place]);
        let mut places = &places[..];
        while let Some(&first) = places.first() {
            let log = self.ends.partition_point(|&end| end <= indices[first]);
            let Some(&end) = self.ends.get(log) else {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "an index is out of range");
                return Err(Error::io(error, None).into());
            };
            let of_log = places.partition_point(|&place| indices[place] < end);
            let (here, rest) = places.split_at(of_log);
            // It is faster to read on than to begin again, if the next record is so near.
            for near in here.chunk_by(|&place, &next| indices[next] - indices[place] <= STRIDE) {
                let mut reader = self.reader(log)?;
                self.read_near(log, &mut reader, near, indices, &mut each)?;
                self.keep(log, reader);
            }
            places = rest;
        }
        Ok(())
    }

    /// [`read`](Self::read) for records of one log that are near each other.
    fn read_near<E: From<Error>>(
        &self,
        number: usize,
        reader: &mut Reader,
        places: &[usize],
        indices: &[u64],
        each: &mut impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let log = &self.logs[number];
        let first_index = self.ends[number] - log.record_count;
        let within = |place: usize| indices[place] - first_index;
        let (first, last) = (within(places[0]), within(places[places.len() - 1]));
        let range = log.range(first, last).ok_or_else(|| log.changed(None, None))?;
        if self.options.on_corruption == OnCorruption::Salvage {
            // Which records of a damaged block are salvaged depends on the block from its beginning on.
            let format = reader.format()?;
            reader.restart(self.options.clone().with_format(format).with_range(range.clone()))?;
        } else {
            reader.seek_range(range.clone())?;
        }
        let mut next = Next {
            log,
            reader,
            index: first - first % STRIDE,
            begin: Some(range.start),
            end: range.end,
            has_skipped: false,
        };
        for same in places.chunk_by(|&place, &next| indices[place] == indices[next]) {
            while next.index < within(same[0]) {
                next.record()?;
            }
            let span = next.record()?;
            let record = next.reader.data(span);
            same.iter().try_for_each(|&place| each(place, record))?;
        }
        // With damage that is new, the records after it would have had other indices.
        while next.has_skipped && next.index < log.record_count.min((last / STRIDE + 1) * STRIDE) {
            next.record()?;
        }
        Ok(())
    }

    /// A reader of a log: one that is idle, or a new one.
    fn reader(&self, log: usize) -> Result<Box<Reader>, Error> {
        if let Some(mut idle) = self.idle()
            && let Some(at) = idle.iter().rposition(|idle| idle.log == log)
        {
            return Ok(idle.remove(at).reader);
        }
        let log = &self.logs[log];
        let reader = Reader::open_with(&log.path, self.options.clone())?;
        match reader.file_len() {
            Some(file_len) if file_len == log.file_len => Ok(Box::new(reader)),
            file_len => Err(log.changed(None, file_len)),
        }
    }

    /// Keeps a reader for the next call.
    fn keep(&self, log: usize, reader: Box<Reader>) {
        if let Some(mut idle) = self.idle() {
            if idle.len() == IDLE_MAX {
                idle.remove(0);
            }
            idle.push(Idle { log, reader });
        }
    }

    /// Closes the files that are kept open. A further call opens them again.
    pub fn close_files(&self) {
        if let Some(mut idle) = self.idle() {
            idle.clear();
        }
    }

    /// The idle readers. `None` if another thread has held them for too long: in a forked process,
    /// a thread that the process does not have would hold them forever.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<Idle>>> {
        (0..1000).find_map(|_| {
            hint::spin_loop();
            self.idle.try_lock().ok()
        })
    }
}

impl fmt::Debug for RecordIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordIndex")
            .field("len", &self.len())
            .field("logs", &self.logs.iter().map(|log| &log.path).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl IndexedLog {
    /// Reads a log from where its reader is to its end.
    #[doc(hidden)]
    pub fn of<S: Source>(reader: &mut Reader<S>) -> Result<Self, Error> {
        let path = reader.path().map(Path::to_owned);
        let (Some(path), Some(_)) = (path.clone(), reader.file_len()) else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be indexed");
            return Err(Error::io(error, path.as_deref()));
        };
        let (mut record_count, mut offsets, mut end) = (0, Vec::new(), None);
        reader.without_data(|reader| {
            loop {
                match reader.step()? {
                    Step::Record(span) => {
                        if record_count % STRIDE == 0 {
                            offsets.try_reserve(1).map_err(no_memory)?;
                            offsets.push(span.offset);
                        }
                        record_count += 1;
                        end = Some(span.end_offset);
                    }
                    Step::Skipped(_) | Step::NeedMore => {}
                    Step::End(_) => return Ok::<(), Error>(()),
                }
            }
        })?;
        offsets.extend(end);
        offsets.shrink_to_fit();
        Ok(IndexedLog {
            file_len: reader.file_len().unwrap_or(0),
            path,
            record_count,
            offsets,
        })
    }

    /// The offsets between which are the records from `first` to `last`, and their neighbours.
    fn range(&self, first: u64, last: u64) -> Option<Range<u64>> {
        let offset = |at: u64| self.offsets.get(usize::try_from(at).ok()?).copied();
        Some(offset(first / STRIDE)?..offset(last / STRIDE + 1)?)
    }

    #[cold]
    fn changed(&self, offset: Option<u64>, file_len: Option<u64>) -> Error {
        let kind = ErrorKind::Changed {
            offset,
            indexed_len: self.file_len,
            file_len,
        };
        Error::new(kind, Some(&self.path))
    }
}

fn no_memory(error: TryReserveError) -> Error {
    Error::io(error.into(), None)
}

/// The next record that a reader is going to return.
struct Next<'a> {
    log: &'a IndexedLog,
    reader: &'a mut Reader,
    index: u64,
    /// Where it begins, if that is known.
    begin: Option<u64>,
    /// The offset before which all records of this reading begin.
    end: u64,
    /// Whether a region before it was skipped.
    has_skipped: bool,
}

impl Next<'_> {
    /// Takes the record.
    #[inline]
    fn record(&mut self) -> Result<RecordSpan, Error> {
        loop {
            match self.reader.step()? {
                Step::Record(span)
                    if span.offset < self.end && self.begin.take().is_none_or(|begin| begin == span.offset) =>
                {
                    self.index += 1;
                    return Ok(span);
                }
                Step::Skipped(_) => self.has_skipped = true,
                Step::NeedMore => {}
                Step::Record(_) | Step::End(_) => {
                    return Err(self.log.changed(Some(self.reader.offset()), self.reader.file_len()));
                }
            }
        }
    }
}
