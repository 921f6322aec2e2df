//! The reader, which runs the decoder in a loop.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::joint::Joint;
use super::segments::Place;
use super::{Event, FileReader, Record, SeekSource, SliceSource, Source, StreamSource};
use crate::damage::{BitFlip, FragmentPart, Reason, Severity, SkippedRegion, locate_bit_flip, only_difference};
use crate::decode::{Decoder, End, OnCorruption, ReadOptions, RecordSpan, Step};
use crate::dialect::{Dialect, Form, Grid, LogFormat, Role, Valid};
use crate::error::{Error, ErrorKind, Hint, refusal, unsupported};
use crate::format::KIND_AT;
use crate::wal_metadata::LogInfo;

/// Reads the records in a log.
///
/// * [`from_slice`](Reader::from_slice) reads bytes in memory, such as a memory map, and returns
///   single-fragment records without copying them.
/// * [`open`](Reader::open) reads a file.
/// * [`new`](Reader::new) reads any source that implements [`Read`].
///
/// [`next_record`](Reader::next_record) returns the next record, and
/// [`next_event`](Reader::next_event) also returns the regions between records. Both return bytes
/// borrowed from the reader. [`records`](Reader::records) returns an iterator over records that own
/// their bytes. A reader never writes to its source.
///
/// `S` is the type of the source. If you omit it, `Reader` is the type that [`open`](Reader::open)
/// returns.
///
/// ```
/// use cordwood_log::{End, Event, OnCorruption, ReadOptions, Reader};
/// use cordwood_log::damage::Reason;
///
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".to_vec();
/// file[9] ^= 1;
/// let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
/// let mut reader = Reader::from_slice(&file, options);
/// let Some(Event::Skipped(region)) = reader.next_event()? else { panic!() };
/// assert_eq!((region.start, region.end), (0, 10));
/// assert!(matches!(region.reason, Reason::ChecksumMismatch { .. }));
/// assert_eq!(reader.next_event()?, None);
/// assert_eq!(reader.end(), Some(End::Clean { offset: 10 }));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<S = StreamSource<FileReader>> {
    pub(super) source: S,
    /// What the decoder reports about the last step remains valid until the next step.
    pub(crate) decoder: Decoder,
    /// `seek` changes `start`, `seek_range` also changes `end`, and opening a file changes
    /// `origin`.
    pub(crate) options: ReadOptions,
    /// The offset of the last seek.
    sought: Option<u64>,
    /// Whether the format of the file still has to be detected.
    pub(super) is_undetected: bool,
    /// The last detected format.
    pub(super) detected: Option<LogFormat>,
    /// The state of the break before the next file, if another file follows.
    joint: Joint,
    /// How many salvaged records were left out, or `None` if salvaged records are returned.
    left_out_count: Option<u64>,
    end: Option<End>,
    /// The finding that follows the decoder's current run of records, if it hasn't been taken yet.
    /// A finding is a single record, a region, an error or the end.
    pub(super) last: Option<Result<Step, Error>>,
    pub(super) path: Option<PathBuf>,
}

impl<'a> Reader<SliceSource<'a>> {
    /// Creates a reader for bytes in memory. `file[0]` is always at file offset 0, regardless of
    /// the range in `options`.
    pub fn from_slice(file: &'a [u8], options: ReadOptions) -> Self {
        Reader::with_source(SliceSource::new(file), options)
    }
}

impl<R: Read> Reader<StreamSource<R>> {
    /// Creates a reader that reads from `read`, about 256 KiB at a time. The first byte that `read`
    /// returns must be the one at file offset 0. If the range starts later, the bytes before it are
    /// read and discarded. Short reads are allowed: only a read that returns no bytes marks the end
    /// of the file.
    pub fn new(read: R, options: ReadOptions) -> Self {
        Reader::with_source(StreamSource::new(read, 0), options)
    }
}

#[cfg(feature = "fs")]
impl Reader<StreamSource<FileReader>> {
    /// Opens a file, or the directory of a segmented log, for reading with the default options: the
    /// dialect is detected, and damage is returned as an error.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Io`] with the path if the log cannot be opened. The first read may also
    /// fail with an error from [`format`](Reader::format), such as [`ErrorKind::Foreign`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Reader::open_with(path, ReadOptions::default())
    }

    /// Opens a file, or a log in [`segments`](crate::segments), for reading with `options`.
    ///
    /// A segmented log is a directory. The reader reads all files that exist when the log is
    /// opened. To make it find newer files as well, [`seek`](Self::seek) to the end of the log or
    /// beyond. All offsets are log offsets. Any bytes missing between the end of one file and the
    /// start of the next are reported as a skipped region with the reason
    /// [`Reason::MissingSegment`]. If the range starts at 0, reading starts at the first offset of
    /// the log, even if older files have been pruned.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader, segments};
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path();
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
    /// std::fs::write(directory.join(segments::name_of(20)), file)?;
    /// std::fs::write(directory.join(segments::name_of(30)), file)?;
    /// let mut reader = Reader::open(directory)?;
    /// let offsets: Vec<u64> = reader.records().map(|record| record.map(|record| record.offset)).collect::<Result<_, _>>()?;
    /// assert_eq!(offsets, [20, 30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] with the path, if the log cannot be opened or is a directory with no
    ///   segments.
    /// * [`ErrorKind::NotASegment`] if the directory of a segmented log also contains other files.
    /// * [`ErrorKind::Pruned`] if the range starts before the first offset of a segmented log.
    /// * [`ErrorKind::Changed`] if the position in `options` belongs to another log.
    /// * [`ErrorKind::Unsupported`] if `options` names a dialect that doesn't support the given
    ///   number or compression.
    ///
    /// If the dialect must be detected and the range starts after the start of the file, this
    /// call also returns the errors from [`format`](Reader::format), such as
    /// [`ErrorKind::Foreign`]. Otherwise, the first read returns these errors.
    pub fn open_with(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        unsupported(options.named().check(), Some(path))?;
        let mut reader = Reader::with_source(StreamSource::open(path)?, options);
        if let Some(position) = &reader.options.position {
            position.check(path, &reader.options)?;
        }
        reader.start_range()?;
        Ok(reader)
    }

    /// Seeks to the block where the range starts. Earlier bytes are only read if they are needed to
    /// detect the log's format.
    fn start_range(&mut self) -> Result<(), Error> {
        let start = self.options.start;
        // A pipe cannot seek, so it must be read from its first byte. Nothing is read at this
        // point, because opening a pipe must not wait for data.
        if start == 0 || self.source.file_len().is_none() {
            return Ok(());
        }
        self.in_file_of(start, |reader| {
            if reader.is_undetected {
                reader.format()?;
            }
            let block = reader.decoder.grid().block_start(start);
            if let Some(len) = reader.source.file_len() {
                reader.source.seek(block.min(len)).map_err(|source| reader.io(source))?;
            }
            Ok(())
        })
    }

    /// Returns a reader for another range of the same open file, even if the path now refers to
    /// another file. `options` must name the dialect.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use std::thread;
    /// use cordwood_log::{ReadOptions, Reader, Writer, ops};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.log");
    /// # let mut writer = Writer::new(std::fs::File::create(&path)?);
    /// # writer.extend(vec![b"foo"; 10_000])?;
    /// # writer.finish()?;
    /// let mut reader = Reader::open(&path)?;
    /// let options = ReadOptions::default().with_format(reader.format()?);
    /// let ranges = ops::split_ranges(&options, reader.file_len(), NonZeroUsize::new(2).unwrap());
    /// let count = thread::scope(|scope| {
    ///     let threads: Vec<_> = ranges
    ///         .into_iter()
    ///         .map(|range| {
    ///             let mut part = reader.another(range)?;
    ///             Ok(scope.spawn(move || part.records().count()))
    ///         })
    ///         .collect::<Result<_, cordwood_log::Error>>()?;
    ///     Ok::<_, cordwood_log::Error>(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>())
    /// })?;
    /// assert_eq!(count, 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Io`] if the length of the file cannot be read. For a segmented log,
    /// returns the same errors as [`open_with`](Self::open_with).
    pub fn another(&self, options: ReadOptions) -> Result<Self, Error> {
        if self.source.is_segmented()
            && let Some(path) = &self.path
        {
            return Reader::open_with(path, options);
        }
        let start = options
            .dialect
            .map_or(0, |dialect| Grid::new(dialect, 0).block_start(options.start));
        let source = StreamSource::with_file(self.source.get_ref().clone(), start);
        let source = source.map_err(|source| self.io(source))?;
        Ok(Reader::with_source(source.with_path(self.path.clone()), options))
    }
}

impl<S: SeekSource> Reader<S> {
    /// Opens the file that contains the log offset `offset`, then runs `work`. If `work` fails, the
    /// reader returns to the file that was open before.
    fn in_file_of<T>(&mut self, offset: u64, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if !self.source.files().map_or(Ok(false), |files| files.open_at(offset))? {
            return work(self);
        }
        let state = (self.options.origin, self.is_undetected, self.detected, self.joint);
        let decoder = self.start_file();
        let done = work(self);
        if let Some(files) = self.source.files() {
            files.settle(done.is_ok());
        }
        if done.is_err() {
            self.decoder = decoder;
            (self.options.origin, self.is_undetected, self.detected, self.joint) = state;
        }
        done
    }

    /// Moves to `offset`, which must be the start or the end of a record. See [`Decoder::seek`].
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// reader.seek(20)?;
    /// assert_eq!(reader.next_record()?.unwrap().offset, 20);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the seek fails, the reader stays where it was:
    ///
    /// * [`ErrorKind::Io`] if the source cannot be read or cannot seek there.
    /// * [`ErrorKind::Pruned`] if `offset` is before the first offset of a segmented log.
    /// * [`ErrorKind::Foreign`] and [`ErrorKind::Unsupported`], as in [`format`](Reader::format).
    pub fn seek(&mut self, offset: u64) -> Result<(), Error> {
        let start = self.in_file_of(offset, |reader| {
            reader.format()?;
            let start = match reader.options.on_corruption {
                // Whether the record counts as salvaged depends on the bytes before it in the same
                // block.
                OnCorruption::Salvage => reader.decoder.grid().block_start(offset),
                _ => reader.decoder.start_of(offset),
            };
            reader.source.seek(start).map_err(|source| reader.io(source))?;
            Ok(start)
        })?;
        self.decoder.seek_from(start, offset);
        self.options.start = offset;
        self.sought = Some(offset);
        self.joint = Joint::default();
        self.end = None;
        self.last = None;
        Ok(())
    }

    /// Seeks to the start of a range, like [`seek`](Self::seek), but does not read ahead past the
    /// end of the range. The decoder is not given the end of the range, because it does not look
    /// for runs of records in a block where its range ends. The caller must therefore stop at the
    /// end of the range. The reader does not seek if `stays` is true, `range.start` is in the open
    /// container, and the reader is not past `range.start`.
    pub(crate) fn seek_range(&mut self, range: Range<u64>, stays: bool) -> Result<(), Error> {
        let next = self.decoder.peek_of_container();
        // A decoder that was created for a range stops at the end of that range. To read past it,
        // the reader must seek.
        if stays
            && self.decoder.has_no_end()
            && next.is_some_and(|next| next.offset <= range.start)
            && self.decoder.container_at(range.start).is_some()
        {
            self.options.end = Some(range.end);
            return Ok(());
        }
        // If the seek opens another file, that file's decoder must use the end of this range.
        let before = self.options.end.replace(range.end);
        if let Err(error) = self.seek(range.start) {
            self.options.end = before;
            return Err(error);
        }
        // The user did not choose this offset, so damage here cannot be caused by a wrong offset.
        self.sought = None;
        self.decoder.set_end(u64::MAX);
        Ok(())
    }

    /// Restarts on the same source with `options`, which must name the dialect. This lets a reader
    /// read many ranges without allocating a new window for each.
    ///
    /// ```
    /// use cordwood_log::{Dialect, ReadOptions, Reader};
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
    /// let options = ReadOptions::default().with_dialect(Dialect::LEVELDB);
    /// let mut reader = Reader::from_slice(&file, options.clone().with_range(10..20));
    /// assert_eq!(reader.records().count(), 1);
    /// reader.restart(options.with_range(..20))?;
    /// assert_eq!(reader.records().count(), 2);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the source cannot seek to the start of the range.
    /// * [`ErrorKind::Pruned`] if the range starts before the first offset of a segmented log. This
    ///   applies even if the range starts at 0.
    pub fn restart(&mut self, options: ReadOptions) -> Result<(), Error> {
        self.in_file_of(options.start, |reader| {
            let origin = reader.place().map_or(0, |place| place.origin);
            let start = |dialect: Dialect| Grid::new(dialect, origin).block_start(options.start);
            let start = options.dialect.map_or(origin, start);
            reader.source.seek(start).map_err(|source| reader.io(source))
        })?;
        self.options = options;
        self.sought = None;
        self.end = None;
        self.last = None;
        self.decoder.set_keeps_data(true);
        self.start_file();
        Ok(())
    }
}

impl<S: Source> Reader<S> {
    /// Creates a reader for a custom source.
    pub fn with_source(mut source: S, mut options: ReadOptions) -> Self {
        if let Some(place) = source.files().and_then(|files| files.place()) {
            options.origin = place.origin;
        }
        Reader {
            path: source.path().map(Path::to_owned),
            source,
            // Errors in the options aren't reported until the format of the log is known.
            decoder: Decoder::unchecked(&options).leaving_in_window(),
            end: None,
            last: None,
            detected: None,
            left_out_count: None,
            is_undetected: options.must_look(),
            joint: Joint::default(),
            sought: None,
            options,
        }
    }

    /// Returns the open file's place in the log, if the log can consist of several files.
    pub(crate) fn place(&mut self) -> Option<Place> {
        self.source.files()?.place()
    }

    /// Starts reading the file the source has just opened. Returns the previous file's decoder.
    fn start_file(&mut self) -> Decoder {
        let keeps_data = self.decoder.keeps_data();
        self.options.origin = self.place().map_or(0, |place| place.origin);
        let decoder = Decoder::unchecked(&self.options).leaving_in_window();
        let before = std::mem::replace(&mut self.decoder, decoder);
        self.decoder.set_keeps_data(keeps_data);
        self.is_undetected = self.options.must_look();
        self.joint = Joint::default();
        before
    }

    /// Handles the end of a segment that is not the last one. Returns the break before the next
    /// segment if it has not been reported. Otherwise, opens the next segment and returns its first
    /// step.
    ///
    /// Writers only append to the newest segment, so if this segment extends past the start of the
    /// next one, the excess bytes do not belong to the log.
    #[cold]
    fn leave_file(&mut self, file_end: End, place: Place, next: u64) -> Result<Step, Error> {
        let range = self.options.start..self.options.end.unwrap_or(u64::MAX);
        let region = self.joint.region(file_end.offset(), next, place.has_grown, range);
        let Some(region) = region.filter(|_| self.joint.reports()) else {
            self.source.files().map_or(Ok(()), |files| files.open_next())?;
            self.start_file();
            return self.look_in_window();
        };
        if self.options.on_corruption == OnCorruption::Stop {
            self.decoder.stop(region);
        }
        self.reported(region)
    }

    /// Returns the step for a region, or an error if the region counts as damage and the options
    /// treat damage as an error.
    #[inline]
    fn reported(&self, region: SkippedRegion) -> Result<Step, Error> {
        if self.options.on_corruption == OnCorruption::Fail && region.reason.severity() == Severity::Corruption {
            let error = Error::new(ErrorKind::Corruption { region }, self.path.as_deref());
            return Err(match error.hint {
                Some(Hint::OnCorruption) if self.sought == Some(region.start) => {
                    error.with_hint(Some(Hint::CheckOffset))
                }
                _ => error,
            });
        }
        Ok(Step::Skipped(region))
    }

    /// Checks whether `region` is at the end of a segment and must be reported as part of the break
    /// before the next segment.
    fn is_of_break(&mut self, region: SkippedRegion) -> bool {
        let place = self.place().filter(|place| place.next.is_some());
        place.is_some_and(|place| self.joint.takes(region, place.end))
    }

    /// Returns a reference to the source. A reader from [`open`](Self::open) or [`new`](Self::new)
    /// has a [`StreamSource`], which has its own `get_ref` method.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// Returns the source, which may already have been read past the last record returned.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// let mut reader = Reader::new(&b"\xdd\x5f\xb3\x7a\x03\x00\x01foo"[..], ReadOptions::default());
    /// assert_eq!(reader.next_record()?.unwrap().data, b"foo");
    /// let rest: &[u8] = reader.into_inner().into_inner();
    /// assert!(rest.is_empty());
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    pub fn into_inner(self) -> S {
        self.source
    }

    /// Returns the path of the file, if known.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Converts an I/O error from the source.
    pub(super) fn io(&self, source: io::Error) -> Error {
        Error::io(source, self.path.as_deref())
    }

    /// Returns the contents of the metadata records read so far.
    pub fn info(&self) -> &LogInfo {
        self.decoder.info()
    }

    /// Returns how reading ended, or `None` if there may be more events.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns the next event, or `None` at the end.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Io`] if the source cannot be read or if there is not enough memory for a
    ///   record. If memory runs out, the I/O error has the kind
    ///   [`OutOfMemory`](std::io::ErrorKind::OutOfMemory). A later call tries again.
    /// * [`ErrorKind::OverBudget`] if the next record in a compressed log decompresses to too many
    ///   bytes. A later call returns the same error.
    /// * [`ErrorKind::Corruption`] for damage, if the policy is [`OnCorruption::Fail`]. There is no
    ///   event for this damage. A later call resumes after the damage.
    /// * [`ErrorKind::Truncated`] at the end of the file, if the file ends before the start of the
    ///   range or before the offset of a seek.
    /// * [`ErrorKind::Foreign`] before the first event, as in [`format`](Self::format).
    /// * [`ErrorKind::Unsupported`] before the first event, as in [`format`](Self::format). This
    ///   error is also returned where a packed log switches to a later version or to an unknown
    ///   compression method. A later call returns the same error.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        match self.step()? {
            Step::Record(span) => Ok(Some(Event::Record(self.record(span)))),
            Step::Skipped(region) => Ok(Some(Event::Skipped(region))),
            Step::NeedMore | Step::End(_) => Ok(None),
        }
    }

    /// Returns the next record, or `None` at the end. Skips any regions before the record; to get
    /// those as well, use [`next_event`](Self::next_event).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_event`](Self::next_event).
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self.decoder.next_of_run() {
            Some(span) => Ok(Some(self.record(span))),
            None => self.next_in_container(),
        }
    }

    /// Does the work of [`next_record`](Self::next_record) once all records in a run have been
    /// returned.
    // Not inlined, for the same reason as `look`. The loop is in a separate function because it
    // needs more registers than this function.
    #[inline(never)]
    fn next_in_container(&mut self) -> Result<Option<Record<'_>>, Error> {
        let Some(span) = self.decoder.next_of_container() else {
            return self.look_for_record();
        };
        let data = self.decoder.data_before_next(self.source.window());
        Ok(Some(Record::new(span, data)))
    }

    #[inline(never)]
    fn look_for_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        loop {
            match self.step()? {
                Step::Record(span) => return Ok(Some(self.record(span))),
                Step::Skipped(_) => {}
                Step::NeedMore | Step::End(_) => return Ok(None),
            }
        }
    }

    #[inline]
    fn record(&self, span: RecordSpan) -> Record<'_> {
        Record::new(span, self.data(span))
    }

    /// Takes and returns the next step. Reads from the source as needed, so the result is never
    /// [`Step::NeedMore`].
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Step, Error> {
        match self.decoder.next_of_run() {
            Some(span) => Ok(Step::Record(span)),
            None => self.look(),
        }
    }

    // Not inlined, because inlining it would make `step` too large to be inlined into loops over
    // short records.
    #[inline(never)]
    fn look(&mut self) -> Result<Step, Error> {
        while !self.find() {
            self.read_more();
        }
        if let Some(span) = self.decoder.next_of_several() {
            return Ok(Step::Record(span));
        }
        if let Some(Ok(Step::Record(span))) = self.last
            && self.decoder.join(self.source.window(), span).is_err()
        {
            return Err(self.out_of_memory());
        }
        self.last.take().unwrap_or(Ok(Step::NeedMore))
    }

    /// Returns the decoder's next step for the bytes read so far. Does not take records from a run
    /// or container.
    pub(super) fn look_in_window(&mut self) -> Result<Step, Error> {
        if self.is_undetected && !self.is_detected()? {
            return Ok(Step::NeedMore);
        }
        match self.next_not_left_out() {
            Step::Skipped(region) if self.is_of_break(region) => self.look_in_window(),
            Step::Skipped(region) => self.reported(region),
            Step::End(end @ (End::Clean { .. } | End::TornTail { .. }))
                if let Some(place) = self.place()
                    && let Some(next) = place.next
                    && self.options.end.is_none_or(|range_end| end.offset() < range_end) =>
            {
                self.leave_file(end, place, next)
            }
            Step::End(end) if self.end.is_none() => {
                self.check_start()?;
                self.end = Some(end);
                Ok(self.not_read(end).map_or(Step::End(end), Step::Skipped))
            }
            Step::NeedMore => match self.decoder.refused() {
                Some(refused) => Err(refusal(refused, self.path.as_deref())),
                None => Ok(Step::NeedMore),
            },
            step => Ok(step),
        }
    }

    /// Returns the decoder's next step, leaving out salvaged records if `leave_out_salvaged` has
    /// been called.
    #[inline]
    fn next_not_left_out(&mut self) -> Step {
        loop {
            match (self.decoder.look(self.source.window()), &mut self.left_out_count) {
                (step @ Step::Record(span), Some(count)) if span.is_salvaged => {
                    *count += 1;
                    self.decoder.take_first(step);
                }
                (step, _) => return step,
            }
        }
    }

    /// Leaves out and counts the records that [`OnCorruption::Salvage`] marks as salvaged. The
    /// reader then returns the same records as under [`OnCorruption::Skip`].
    // Hidden because only the command-line tool uses it, to report how many more records `salvage`
    // would return.
    #[doc(hidden)]
    pub fn leave_out_salvaged(&mut self) {
        self.left_out_count.get_or_insert(0);
    }

    /// Returns how many records have been [left out](Self::leave_out_salvaged).
    // Hidden: see `leave_out_salvaged`.
    #[doc(hidden)]
    pub fn left_out_count(&self) -> u64 {
        self.left_out_count.unwrap_or(0)
    }

    /// Runs `work` with [`OnCorruption::Salvage`] if the policy is [`OnCorruption::Fail`].
    pub(crate) fn without_failing<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        if self.options.on_corruption != OnCorruption::Fail {
            return work(self);
        }
        self.set_policy(OnCorruption::Salvage);
        let done = work(self);
        self.set_policy(OnCorruption::Fail);
        done
    }

    fn set_policy(&mut self, policy: OnCorruption) {
        self.decoder.set_policy(policy);
        self.options.on_corruption = policy;
    }

    /// At the end of the log, checks that the file does not end before the offset where reading was
    /// supposed to start.
    fn check_start(&self) -> Result<(), Error> {
        let (window, offset) = (self.source.window(), self.decoder.start());
        if !window.is_last || window.end_offset() >= offset {
            return Ok(());
        }
        let file_len = self.source.file_len().filter(|&file_len| file_len < offset);
        let kind = ErrorKind::Truncated { offset, file_len };
        Err(Error::new(kind, self.path.as_deref()))
    }

    /// Reads more bytes from the source. If this fails, a later call tries again.
    pub(super) fn fill(&mut self) -> Result<(), Error> {
        let (from, end) = if self.is_undetected {
            // The format can only be detected if the start of the file is in a single window.
            (self.source.window().offset, u64::MAX)
        } else {
            (self.decoder.offset(), self.options.end.unwrap_or(u64::MAX))
        };
        self.source.fill(from, end).map_err(|source| self.io(source))
    }

    /// Returns the bytes of the record that the last [`step`](Self::step) returned.
    #[inline]
    pub(crate) fn data(&self, span: RecordSpan) -> &[u8] {
        self.decoder.data(self.source.window(), span)
    }

    /// Runs `work` without keeping the bytes of records, so `work` must not access them. This way,
    /// a fragmented record doesn't take up any memory, no matter how long it is.
    pub(crate) fn without_data<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.set_keeps_data(false);
        let done = work(self);
        self.set_keeps_data(true);
        done
    }

    /// Sets whether to keep the bytes of fragmented records. Without them, only the length of a
    /// [found](Self::found) record is available, and [`move_found`](Self::move_found) moves only
    /// the offsets and lengths of records.
    // Hidden because, outside this crate, only the Python binding uses it, to create tables without
    // the record column.
    #[doc(hidden)]
    pub fn set_keeps_data(&mut self, keeps_data: bool) {
        self.decoder.set_keeps_data(keeps_data);
    }

    /// Returns the form of the log's fragments, which is determined by the first block in memory
    /// that starts with a valid fragment.
    pub(crate) fn form_in_memory(&self) -> Option<Form> {
        let (format, grid, window) = (self.decoder.format(), self.decoder.grid(), self.source.window());
        let mut start = grid.block_start(window.offset);
        while start < window.end_offset() {
            let left = grid.block_left(start);
            let bytes = window.at(start, left);
            let valid = format.dialect.valid(bytes, true);
            if let Some(Valid {
                role: Role::Fragment(_),
                form,
                ..
            }) = valid
                && !format.is_stale(bytes, form)
            {
                return Some(form);
            }
            start = start.saturating_add(left as u64);
        }
        None
    }

    /// Returns the bytes of `region`, which must be the last region returned. Only bytes in memory
    /// are included; the region's last block is always in memory. If a flipped bit was repaired,
    /// returns the repaired bytes.
    pub(crate) fn bytes(&self, region: SkippedRegion) -> &[u8] {
        if let Some(repaired) = self.decoder.repaired_at(region.start) {
            return repaired;
        }
        let len = usize::try_from(region.len()).unwrap_or(usize::MAX);
        self.source.window().at(region.start, len)
    }

    /// Returns the length of the whole file in bytes. Returns `None` if the source's length is not
    /// known and the end of the file has not been reached. For a log in
    /// [`segments`](crate::segments), returns the offset of the end of the log. If the file has
    /// grown since it was opened, the result includes at least the bytes that have been read.
    pub fn file_len(&self) -> Option<u64> {
        let window = self.source.window();
        let seen = window.is_last.then(|| window.end_offset());
        match self.source.file_len() {
            // After a seek past the end of the file, no bytes have been read at that offset.
            Some(file_len) if window.bytes.is_empty() && self.decoder.start() > file_len => Some(file_len),
            Some(file_len) => Some(file_len.max(window.end_offset())),
            None => seen,
        }
    }

    /// Returns the flipped bit if a single flipped bit explains `region`. `region` must be the last
    /// region returned, either in an event or in an error.
    ///
    /// Returns `None` if a flipped bit cannot cause this kind of damage, or if
    /// [`locate_bit_flip`](crate::damage::locate_bit_flip) finds no such bit. Each call repeats the
    /// search, which takes as long as [`locate_bit_flip`](crate::damage::locate_bit_flip).
    ///
    /// ```
    /// use cordwood_log::{Error, ErrorKind, ReadOptions, Reader};
    /// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".to_vec();
    /// file[7] ^= 0x80;
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// let Err(Error { kind: ErrorKind::Corruption { region, .. }, .. }) = reader.next_record() else { panic!() };
    /// let flip = reader.bit_flip(region).unwrap();
    /// assert_eq!((flip.offset, flip.bit), (7, 7));
    /// ```
    pub fn bit_flip(&self, region: SkippedRegion) -> Option<BitFlip> {
        let grid = self.decoder.grid();
        match region.reason {
            Reason::BadFileHeader => {
                let place = only_difference(self.bytes(region), grid.dialect.prefix())?;
                Some(place.flip_in(region.start, FragmentPart::FileHeader))
            }
            Reason::ChecksumMismatch { .. } | Reason::BadLength { .. } | Reason::ZeroHeader => {
                // The whole block is in memory, because the decoder needed it to analyse the
                // damage.
                let rest = self.source.window().at(region.start, grid.block_left(region.start));
                locate_bit_flip(rest, region.start, grid.dialect)
            }
            _ => None,
        }
    }

    /// Returns the original type of the fragment at the start of `region` if a single flipped bit
    /// explains the damage. As with [`bit_flip`](Self::bit_flip), `region` must be the last region
    /// returned.
    pub(crate) fn damaged_kind(&self, region: SkippedRegion) -> Option<u8> {
        let flip = self.bit_flip(region)?;
        let kind = *self.bytes(region).get(KIND_AT)?;
        let is_in_kind = flip.offset == region.start + KIND_AT as u64;
        Some(if is_in_kind { kind ^ 1 << flip.bit } else { kind })
    }

    /// Returns the unread part of the range if the reader stopped at damage and the length of the
    /// file is known.
    fn not_read(&self, end: End) -> Option<SkippedRegion> {
        let (End::Stopped { .. }, Some(file_len)) = (end, self.source.file_len()) else {
            return None;
        };
        let start = self.decoder.offset();
        let end = self.options.end.unwrap_or(u64::MAX).min(file_len);
        (start < end).then_some(SkippedRegion::new(start..end, Reason::NotRead))
    }
}
