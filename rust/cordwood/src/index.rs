//! Random access to log records.

use std::collections::TryReserveError;
use std::fmt;
use std::hint;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::damage::{Severity, SkippedRegion};
use crate::decode::{ReadOptions, RecordSpan, Step};
use crate::error::{Error, ErrorKind};
use crate::position::Position;
use crate::reader::{Reader, Source};

/// The number of records in a group. The index keeps the offset of each group's first record.
const STRIDE: u64 = 16;

/// The maximum number of readers kept open for later calls. Each has an open file and a window of
/// 264 KiB. Operating systems often limit a process to about 1,000 open files.
const IDLE_MAX: usize = 64;

/// A call that reads a large share of the records sorts this many of their indices at a time.
const PIECE_LEN: usize = 1 << 12;

/// Looks up log records by their index. Indices start at 0.
///
/// Creating the index reads the logs once. The index keeps 8 bytes for every 16 records. To return
/// a record, it reads the group of 16 that contains the record and verifies the group's checksums.
/// Near damage, it keeps 8 bytes for each record and reads each record separately. In a packed log,
/// reading starts at the block where the container starts, and each call to [`read`](Self::read)
/// opens each container only once.
///
/// Any number of threads and forked processes can use the index at the same time, because each call
/// reads at its own position. A log may grow (the new records are not in the index), but must not
/// change in any other way. The index returns an error if a path no longer names the indexed log
/// when the file is opened, or if a record no longer starts at its indexed offset. The index keeps
/// files open for later calls, and does not check an open file again.
///
/// ```
/// use cordwood_log::{Error, LogFile, LogFileOptions, ReadOptions, RecordIndex};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.log");
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
    /// For each log, the total number of records in it and in all earlier logs.
    ends: Vec<u64>,
    /// The idle readers, ordered by when they were last used.
    idle: Mutex<Vec<Open>>,
}

/// The number of a log, and an open reader for it.
type Open = (usize, Box<Reader>);

/// The locations of the records in one log. A program can store this part of a [`RecordIndex`].
///
/// ```
/// use cordwood_log::{ReadOptions, Reader, RecordIndex};
/// use cordwood_log::read::IndexedLog;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let log = IndexedLog::of(&mut Reader::open(&path)?)?;
/// assert_eq!((log.record_count, log.position.offset()), (1, 10));
/// let index = RecordIndex::of_logs(vec![log], ReadOptions::default());
/// assert_eq!(index.get(0)?.as_deref(), Some(&b"foo"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexedLog {
    /// The path of the file, or of the directory of a segmented log.
    pub path: PathBuf,
    /// The position after the last record.
    pub position: Position,
    /// The number of records.
    pub record_count: u64,
    /// The offset of every 16th record, starting with the first. The last entry is the offset just
    /// past the last record.
    pub offsets: Vec<u64>,
    /// The indices of the 16-record groups near damage. A group is near damage if bytes were lost
    /// within it or between it and the previous group. It is also near damage if it contains a
    /// salvaged record, that is, a record that follows lost bytes in the same block. In such
    /// groups, a reader that starts elsewhere may find different records.
    pub near_damage: Vec<u64>,
    /// The offsets of all records in the groups of `near_damage`.
    pub exact_offsets: Vec<u64>,
}

impl RecordIndex {
    /// Reads and indexes all records from these files and [segmented](crate::segments) logs, in the
    /// given order.
    ///
    /// `options` apply to each log. Skipped regions are not indexed. Under
    /// [`OnCorruption::Fail`](crate::OnCorruption::Fail), damage is an error.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Reader::open_with`] and [`Reader::next_event`], and
    /// [`ErrorKind::Io`] if a source is neither a regular file nor a directory.
    pub fn open(paths: impl IntoIterator<Item = impl AsRef<Path>>, options: ReadOptions) -> Result<Self, Error> {
        let index = |path| IndexedLog::of(&mut Reader::open_with(path, options.clone())?);
        let logs = paths.into_iter().map(index).collect::<Result<_, _>>()?;
        Ok(RecordIndex::of_logs(logs, options))
    }

    /// Creates an index of logs that have already been read. The logs must have been read with
    /// `options`.
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

    /// Returns the logs, in order.
    pub fn logs(&self) -> &[IndexedLog] {
        &self.logs
    }

    /// Returns the number of records.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the record with this index, or `None` if the index is out of range.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read).
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

    /// Returns the place of the record with this index, or `None` if the index is out of range. The
    /// place is the path of the log (for a segmented log, its directory) and the log offset of the
    /// record. This call reads the record.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read).
    pub fn place(&self, index: u64) -> Result<Option<(&Path, u64)>, Error> {
        let mut found = None;
        if index < self.len() {
            self.visit(&[index], |_, log, offset, _| {
                found = Some((self.logs[log].path.as_path(), offset));
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }

    /// Calls `each` once for each entry of `indices`, passing the entry's position in the slice and
    /// the record. Visits the indices in ascending order, so that nearby records are read together.
    ///
    /// # Errors
    ///
    /// * Any error that `each` returns. Reading stops at the first error.
    /// * [`ErrorKind::Io`] if a file cannot be opened or read, or if an index is out of range
    ///   ([`len`](Self::len) or more).
    /// * [`ErrorKind::Changed`] if a log has changed since it was indexed. Discard the records that
    ///   `each` has already received. They may differ from the indexed records, unless the policy
    ///   is [`OnCorruption::Fail`](crate::OnCorruption::Fail).
    /// * Any error that [`Reader::next_event`] returns.
    pub fn read<E: From<Error>>(
        &self,
        indices: &[u64],
        mut each: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(indices, |place, _, _, record| each(place, record))
    }

    /// Like [`read`](Self::read), but also passes the number of the log and the offset of each
    /// record.
    fn visit<E: From<Error>>(
        &self,
        indices: &[u64],
        mut each: impl FnMut(usize, usize, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open = None;
        in_order(indices, self.len(), |places| {
            self.visit_sorted(places, &mut open, &mut each)
        })?;
        self.keep(open);
        Ok(())
    }

    /// Implements [`visit`](Self::visit) for sorted indices, each paired with its place in the
    /// caller's slice. `open` is the most recently used reader.
    fn visit_sorted<E: From<Error>>(
        &self,
        mut places: &[(u64, usize)],
        open: &mut Option<Open>,
        each: &mut impl FnMut(usize, usize, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let first_of = |log: usize| self.ends[log] - self.logs[log].record_count;
        while let Some(&(first, _)) = places.first() {
            let log = self.ends.partition_point(|&end| end <= first);
            let Some(&end) = self.ends.get(log) else {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "an index is out of range");
                return Err(Error::io(error, None).into());
            };
            let of_log = places.partition_point(|&(index, _)| index < end);
            let (here, rest) = places.split_at(of_log);
            let is_whole = self.logs[log].near_damage.is_empty();
            let is_alone = |index: u64| self.logs[log].exact_offset(index - first_of(log)).is_some();
            // If the next record is at most this many bytes away, it is faster to keep reading than
            // to seek.
            let are_near = |&(index, _): &(u64, usize), &(next, _): &(u64, usize)| {
                next - index <= STRIDE && (is_whole || next == index || !(is_alone(index) || is_alone(next)))
            };
            let (mut reader, mut stays) = match open.take() {
                Some((number, reader)) if number == log => (reader, true),
                before => {
                    self.keep(before);
                    (self.reader(log)?, false)
                }
            };
            for near in here.chunk_by(are_near) {
                self.read_near(log, &mut reader, stays, near, each)?;
                stays = true;
            }
            *open = Some((log, reader));
            places = rest;
        }
        Ok(())
    }

    /// Implements [`visit`](Self::visit) for nearby records in one log. If `stays` is true, the
    /// reader may continue in the container that is already open.
    fn read_near<E: From<Error>>(
        &self,
        number: usize,
        reader: &mut Reader,
        stays: bool,
        places: &[(u64, usize)],
        each: &mut impl FnMut(usize, usize, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let log = &self.logs[number];
        let first_index = self.ends[number] - log.record_count;
        let (first, last) = (places[0].0 - first_index, places[places.len() - 1].0 - first_index);
        let range = log.range(first, last).ok_or_else(|| log.changed(0..0))?;
        let exact = log.exact_offset(first);
        let start = exact.unwrap_or(range.start);
        if !range.contains(&start) {
            return Err(log.changed(range).into());
        }
        reader.seek_range(start..range.end, stays)?;
        let mut next = Next {
            log,
            reader,
            index: if exact.is_some() { first } else { first - first % STRIDE },
            start: Some(start),
            end: range.end,
        };
        for same in places.chunk_by(|one, next| one.0 == next.0) {
            let span = loop {
                let span = next.record()?;
                if next.index > same[0].0 - first_index {
                    break span;
                }
            };
            let record = next.reader.data(span);
            same.iter()
                .try_for_each(|&(_, place)| each(place, number, span.offset, record))?;
        }
        Ok(())
    }

    /// Returns an idle reader for a log, or opens a new one if there is none.
    fn reader(&self, log: usize) -> Result<Box<Reader>, Error> {
        if let Some(mut idle) = self.idle()
            && let Some(at) = idle.iter().rposition(|&(number, _)| number == log)
        {
            return Ok(idle.remove(at).1);
        }
        let log = &self.logs[log];
        let reader = Reader::open_with(&log.path, self.options.clone())?;
        let end = log.position.offset();
        if let Some(file_len) = reader.file_len().filter(|&file_len| file_len < end) {
            return Err(log.changed(file_len..end));
        }
        log.position.check(&log.path, &self.options)?;
        Ok(Box::new(reader))
    }

    /// Keeps a reader, if there is one, for later calls.
    fn keep(&self, open: Option<Open>) {
        if let Some(open) = open
            && let Some(mut idle) = self.idle()
        {
            if idle.len() == IDLE_MAX {
                idle.remove(0);
            }
            idle.push(open);
        }
    }

    /// Closes the files that the index keeps open. A later call opens them again.
    pub fn close_files(&self) {
        if let Some(mut idle) = self.idle() {
            idle.clear();
        }
    }

    /// Returns the idle readers, or `None` if another thread holds the lock for too long. In a
    /// forked process, a thread that exists only in the parent process may hold the lock forever.
    fn idle(&self) -> Option<MutexGuard<'_, Vec<Open>>> {
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
    /// Reads a log from its reader's position to the end of the log.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`RecordIndex::open`].
    pub fn of<S: Source>(reader: &mut Reader<S>) -> Result<Self, Error> {
        let path = reader.path().map(Path::to_owned);
        let (Some(path), Some(_)) = (path.clone(), reader.file_len()) else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be indexed");
            return Err(Error::io(error, path.as_deref()));
        };
        let mut log = IndexedLog {
            path,
            ..IndexedLog::default()
        };
        let start = Position::start(&log.path, reader.format()?)?;
        let mut group = Group::default();
        let mut end = None;
        reader.without_data(|reader| {
            loop {
                match reader.step()? {
                    Step::Record(span) => {
                        log.end_full(&mut group)?;
                        group.offsets[group.count] = span.offset;
                        group.count += 1;
                        group.is_near_damage |= span.is_salvaged;
                        end = Some(span.end_offset);
                    }
                    Step::Skipped(region) if is_loss(region) => {
                        log.end_full(&mut group)?;
                        group.is_near_damage = true;
                    }
                    Step::Skipped(_) | Step::NeedMore => {}
                    Step::End(_) => return log.end_group(&mut group),
                }
            }
        })?;
        log.offsets.extend(end);
        log.offsets.shrink_to_fit();
        // The records come from the reader's open file, but by now, the path may name a different
        // file.
        start.check(&log.path, &reader.options)?;
        log.position = Position::of(&log.path, end.unwrap_or(0))?;
        Ok(log)
    }

    /// Stores the group if it is complete.
    fn end_full(&mut self, group: &mut Group) -> Result<(), Error> {
        match group.count == group.offsets.len() {
            true => self.end_group(group),
            false => Ok(()),
        }
    }

    /// Stores the offsets of a group of records, and empties the group.
    fn end_group(&mut self, group: &mut Group) -> Result<(), Error> {
        let group = std::mem::take(group);
        let offsets = &group.offsets[..group.count];
        let Some(&first) = offsets.first() else {
            return Ok(());
        };
        self.offsets.try_reserve(1).map_err(no_memory)?;
        if group.is_near_damage {
            self.near_damage.try_reserve(1).map_err(no_memory)?;
            self.exact_offsets.try_reserve(offsets.len()).map_err(no_memory)?;
            self.near_damage.push(self.offsets.len() as u64);
            self.exact_offsets.extend_from_slice(offsets);
        }
        self.offsets.push(first);
        self.record_count += offsets.len() as u64;
        Ok(())
    }

    /// Returns the offset of a record near damage, or `None` for any other record.
    fn exact_offset(&self, record: u64) -> Option<u64> {
        let group = self.near_damage.binary_search(&(record / STRIDE)).ok()?;
        self.exact_offsets
            .get(group * STRIDE as usize + (record % STRIDE) as usize)
            .copied()
    }

    /// Returns a range of offsets containing the records from `first` to `last`, and possibly some
    /// neighbouring records.
    fn range(&self, first: u64, last: u64) -> Option<Range<u64>> {
        let offset = |at: u64| self.offsets.get(usize::try_from(at).ok()?).copied();
        Some(offset(first / STRIDE)?..offset(last / STRIDE + 1)?)
    }

    #[cold]
    fn changed(&self, bytes: Range<u64>) -> Error {
        let kind = ErrorKind::Changed {
            offset: bytes.start,
            end_offset: bytes.end,
        };
        Error::new(kind, Some(&self.path))
    }
}

/// Passes the indices to `each` in ascending order, paired with their places, in one or more calls.
/// `len` is the number of records.
fn in_order<E: From<Error>>(
    indices: &[u64],
    len: u64,
    mut each: impl FnMut(&[(u64, usize)]) -> Result<(), E>,
) -> Result<(), E> {
    let mut places = Vec::new();
    let are_dense = indices.len() > PIECE_LEN && indices.len() as u64 > len / 4;
    let are_listed = are_dense && indices.len() < u32::MAX as usize && !indices.is_sorted();
    if !are_listed || indices.iter().any(|&index| index >= len) {
        // Each place is sorted along with its index, so the sort and the later steps read memory in
        // order.
        places.try_reserve_exact(indices.len()).map_err(no_memory)?;
        places.extend(indices.iter().copied().zip(0..));
        places.sort_unstable();
        return each(&places);
    }
    // Sorting the indices by comparison would make reading short records take 50% longer. Instead,
    // the places of each index form a linked list: `firsts` contains the first place of each list,
    // and `nexts` contains, for each place, the next place in its list. Places are counted from 1,
    // because 0 marks the end of a list.
    let (mut firsts, mut nexts) = (Vec::new(), Vec::new());
    firsts.try_reserve_exact(len as usize).map_err(no_memory)?;
    firsts.resize(len as usize, 0_u32);
    nexts.try_reserve_exact(indices.len()).map_err(no_memory)?;
    nexts.resize(indices.len(), 0_u32);
    for ((place, &index), next) in indices.iter().enumerate().zip(&mut nexts).rev() {
        *next = std::mem::replace(&mut firsts[index as usize], place as u32 + 1);
    }
    let mut index = 0;
    for piece in firsts.chunks(PIECE_LEN) {
        places.clear();
        for &first in piece {
            let mut place = first as usize;
            while place > 0 {
                places.try_reserve(1).map_err(no_memory)?;
                places.push((index, place - 1));
                place = nexts[place - 1] as usize;
            }
            index += 1;
        }
        each(&places)?;
    }
    Ok(())
}

fn no_memory(error: TryReserveError) -> Error {
    Error::io(error.into(), None)
}

/// The group of records that is currently being filled.
#[derive(Default)]
struct Group {
    offsets: [u64; STRIDE as usize],
    count: usize,
    /// Whether the group is near damage. See [`IndexedLog::near_damage`].
    is_near_damage: bool,
}

/// Checks whether a skipped region may have contained records. Metadata and padding never do.
fn is_loss(region: SkippedRegion) -> bool {
    !matches!(region.reason.severity(), Severity::Info)
}

/// The next record expected from a reader.
struct Next<'a> {
    log: &'a IndexedLog,
    reader: &'a mut Reader,
    index: u64,
    /// The offset where the record starts, if known.
    start: Option<u64>,
    /// Every expected record starts before this offset.
    end: u64,
}

impl Next<'_> {
    /// Takes and returns the next record, which must be at the expected offset.
    // Without inlining, the span would be written to memory and read back in pieces of different
    // sizes, which would stall the processor for each record.
    #[inline(always)]
    fn record(&mut self) -> Result<RecordSpan, Error> {
        loop {
            match self.reader.step()? {
                // The record precedes the expected record in an open container.
                Step::Record(span) if self.start.is_some_and(|start| span.offset < start) => {}
                Step::Record(span)
                    if span.offset < self.end && self.start.take().is_none_or(|start| start == span.offset) =>
                {
                    self.index += 1;
                    return Ok(span);
                }
                Step::Skipped(region) if !is_loss(region) => {}
                Step::NeedMore => {}
                // The log was damaged or replaced, so later records would have different indices.
                Step::Skipped(_) | Step::Record(_) | Step::End(_) => {
                    let from = self.start.unwrap_or(self.reader.decoder.offset());
                    return Err(self.log.changed(from.min(self.end)..self.end));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::OPENED;
    use crate::dialect::Dialect;
    use crate::writer::{LogFile, LogFileOptions};

    #[test]
    fn opens_each_container_once_per_read() {
        // All containers are in one block, because a block boundary could split a container.
        const CONTAINERS: u64 = 150;
        const RECORDS_EACH: u64 = 30;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("packed.log");
        let log = LogFile::create(&path, LogFileOptions::default().with_format(Dialect::PACKED)).expect("a log");
        for container in 0..CONTAINERS {
            let records = (0..RECORDS_EACH).map(|place| ((RECORDS_EACH * container + place) as u16).to_le_bytes());
            log.extend(records.collect::<Vec<_>>()).expect("room");
            log.flush().expect("room");
        }
        log.close().expect("a log");
        let index = RecordIndex::open([&path], ReadOptions::default()).expect("a log");
        let len = CONTAINERS * RECORDS_EACH;
        assert_eq!(index.len(), len);
        // The step (7) and the length have no common divisor, so each index is visited once.
        let shuffled: Vec<u64> = (0..len).map(|at| at * 7 % len).collect();
        let in_order: Vec<u64> = (0..len).collect();
        // Reads the last record of each container, starting with the last container.
        let few: Vec<u64> = in_order.iter().copied().rev().step_by(RECORDS_EACH as usize).collect();
        for indices in [in_order, shuffled, few] {
            OPENED.set(0);
            let mut count = 0;
            let read = index.read(&indices, |place, record| {
                count += 1;
                assert_eq!(record, (indices[place] as u16).to_le_bytes());
                Ok::<(), Error>(())
            });
            assert!(read.is_ok() && count == indices.len());
            assert_eq!(OPENED.get() as u64, CONTAINERS);
        }
    }

    #[test]
    fn radix_sort_matches_comparison_sort() {
        let mut state = 1_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let many = PIECE_LEN * 5 / 2;
        for (len, count, is_at_once) in [
            (1, 0, true),
            (1, 1, true),
            (1, PIECE_LEN + 1, false),
            (many, PIECE_LEN, true),
            (many, PIECE_LEN + 1, false),
            (many, many, false),
            (many, 2 * many, false),
            (5 * many, many, true),
        ] {
            for (excess, is_sorted) in [(0, false), (1, false), (0, true), (1, true)] {
                let mut indices: Vec<u64> = (0..count).map(|_| random() % (len + excess) as u64).collect();
                if is_sorted {
                    indices.sort_unstable();
                }
                let mut expected: Vec<(u64, usize)> = indices.iter().copied().zip(0..).collect();
                expected.sort();
                let (mut found, mut piece_count) = (Vec::new(), 0);
                let done: Result<(), Error> = in_order(&indices, len as u64, |piece| {
                    found.extend_from_slice(piece);
                    piece_count += 1;
                    Ok(())
                });
                assert!(done.is_ok() && found == expected, "{count} of {len}");
                let is_beyond = expected.last().is_some_and(|&(index, _)| index == len as u64);
                let expected_count = if is_at_once || is_beyond || is_sorted {
                    1
                } else {
                    len.div_ceil(PIECE_LEN)
                };
                assert_eq!(piece_count, expected_count, "{count} of {len}");
            }
        }
    }
}
