//! The encoder turns a record into the bytes of its fragments, without any I/O.

mod fragments;
mod packing;

use std::collections::TryReserveError;
use std::convert::Infallible;

pub(crate) use self::fragments::bound_of;
use self::fragments::{Fragments, Plain, append_plain};
use self::packing::Packing;
use crate::checksum::{APPEND_ROOM, Job, Kernel, run};
use crate::compression::{Compressor, RECORD_LEVEL};
use crate::container::STORED_LEN_MAX;
use crate::dialect::{Dialect, LogFormat};
use crate::error::{Error, unsupported};
use crate::format::{FRAGMENT_LEN_MAX, HEADER_LEN, Kind, block_left, encoded_len};

/// Splits records into fragments. Its only state is the length of the file so far and, in the
/// [`PACKED`](Dialect::PACKED) dialect, the open container.
///
/// By default, the encoder writes the same bytes as LevelDB. An encoder created by
/// [`with_format`](Encoder::with_format) writes the same bytes as the engine that uses that format.
/// Source: LevelDB `db/log_writer.cc`.
///
/// ```
/// use cordwood_log::codec::Encoder;
/// let mut file = Vec::new();
/// let mut encoder = Encoder::new(0);
/// assert_eq!(encoder.encode(b"foo", &mut file), 0);
/// assert_eq!(file, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// ```
#[derive(Debug, Clone)]
pub struct Encoder {
    fragments: Fragments,
    /// Whether the format is exactly LevelDB's.
    is_leveldb: bool,
    compressor: Compressor,
    /// The last compressed record, kept to reuse its memory.
    frame: Vec<u8>,
    /// The open container, if the dialect has containers. It starts where the fragments end.
    packing: Option<Box<Packing>>,
}

impl Encoder {
    /// Returns an encoder for a file of `file_len` bytes (0 for a new file), whose last record must
    /// be complete. An offset greater than `u64::MAX` wraps around to 0, but no file is that long.
    pub fn new(file_len: u64) -> Self {
        Encoder::unchecked(file_len, Dialect::LEVELDB.into())
    }

    /// Returns an encoder for a file that has a log number, is compressed, or is in a dialect other
    /// than LevelDB's.
    ///
    /// * With a [log number](LogFormat::log_number), fragments are recyclable (types 5 to 8).
    ///   Without one, they have types 1 to 4.
    /// * [Compression](LogFormat::compression) applies to each record, as with RocksDB's
    ///   `wal_compression`.
    /// * In the [`PACKED`](Dialect::PACKED) dialect, short records are gathered in containers, and
    ///   containers are compressed instead of records. A record's bytes are appended when its
    ///   container is closed: by a later record, by [`end_container`](Encoder::end_container) or by
    ///   [`finish`](Encoder::finish).
    /// * [`start`](Encoder::start) writes the start of a file, and [`finish`](Encoder::finish)
    ///   writes its end.
    ///
    /// ```
    /// use cordwood_log::{Dialect, LogFormat};
    /// use cordwood_log::codec::Encoder;
    /// let mut file = Vec::new();
    /// let mut encoder = Encoder::with_format(0, LogFormat::new(Dialect::ROCKSDB).with_log_number(123))?;
    /// encoder.encode(b"foo", &mut file);
    /// assert_eq!(file, b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo");
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the dialect does not
    /// support the log number or the compression of `format`. Returns the same error if `format` is
    /// compressed and this build lacks the `zstd` feature.
    pub fn with_format(file_len: u64, format: impl Into<LogFormat>) -> Result<Self, Error> {
        let format = format.into();
        unsupported(format.check_to_write(), None)?;
        Ok(Encoder::unchecked(file_len, format))
    }

    /// Like [`with_format`](Self::with_format), but for a format that has already been checked.
    pub(crate) fn unchecked(file_len: u64, format: LogFormat) -> Self {
        let mut encoder = Encoder {
            fragments: Fragments::new(file_len, format),
            is_leveldb: format == Dialect::LEVELDB.into(),
            compressor: Compressor::new(format.has_zstd_records(), RECORD_LEVEL),
            frame: Vec::new(),
            packing: Packing::of(&format),
        };
        if file_len > 0 {
            encoder.use_up_budget();
        }
        encoder
    }

    /// Returns a copy of this encoder, without an open container, for a file of `file_len` bytes.
    pub(crate) fn at(&self, file_len: u64) -> Self {
        let mut encoder = self.clone();
        encoder.fragments.offset = file_len;
        encoder.packing = Packing::of(&self.fragments.format);
        encoder.use_up_budget();
        encoder
    }

    /// Makes the encoder write a packed log's mark before the next record. Intended for a file that
    /// starts with padding up to the start of a block.
    pub(crate) fn start_again(&mut self) {
        if self.packs() {
            self.fragments.start_at = self.fragments.offset;
        }
    }

    /// Makes the encoder assume that a reader has used up its decompression budget, because the
    /// file's earlier bytes are not known.
    pub(crate) fn use_up_budget(&mut self) {
        if let Some(packing) = &mut self.packing {
            packing.use_up_budget(self.fragments.offset);
        }
    }

    /// Reserves room in `out` for a record of `record_len` bytes.
    pub(crate) fn try_reserve(&self, record_len: usize, out: &mut Vec<u8>) -> Result<(), TryReserveError> {
        out.try_reserve(self.bound(record_len).saturating_add(APPEND_ROOM))
    }

    /// Returns the maximum number of bytes that the open container and a record of `record_len`
    /// bytes can take up in the file.
    fn bound(&self, record_len: usize) -> usize {
        let open_len = self.packing.as_ref().map_or(0, |packing| packing.bound());
        bound_of(record_len, self.fragments.form).saturating_add(open_len)
    }

    /// Returns the number of bytes that [`encode`](Self::encode) appends for a record of
    /// `record_len` bytes: the exact number in LevelDB's dialect, and an upper bound in others.
    #[inline]
    pub(crate) fn encoded_len_max(&self, record_len: usize) -> u64 {
        if self.is_leveldb {
            encoded_len(self.fragments.offset, record_len as u64)
        } else {
            self.bound(record_len) as u64
        }
    }

    /// Reserves room for the compressed form of a record, if records are compressed.
    pub(crate) fn try_reserve_frame(&mut self, record_len: usize) -> Result<(), TryReserveError> {
        match &mut self.packing {
            Some(_) if Encoder::shares_container(record_len) => Ok(()),
            Some(packing) => packing.try_reserve(record_len),
            None => self.compressor.try_reserve(record_len, &mut self.frame),
        }
    }

    /// Makes the encoder write the file header of `dialect`, which is another version of the
    /// current dialect.
    pub(crate) fn set_dialect(&mut self, dialect: Dialect) {
        self.fragments.format.dialect = dialect;
    }

    /// Sets the log number for the records that follow. Without a number, fragments have types 1 to
    /// 4.
    pub(crate) fn set_number(&mut self, number: Option<u32>) {
        self.fragments.set_number(number);
    }

    /// Appends a complete fragment unchanged, in the next block if the current one doesn't have
    /// room. The fragment must be in the encoder's dialect.
    pub(crate) fn copy_fragment(&mut self, fragment: &[u8], out: &mut Vec<u8>) {
        self.start(out);
        self.end_container(out);
        let left = self.fragments.block_left();
        if left < fragment.len() {
            out.resize(out.len() + left, 0);
            self.fragments.advance(left);
        }
        out.extend_from_slice(fragment);
        self.fragments.advance(fragment.len());
    }

    pub(crate) fn format(&self) -> LogFormat {
        self.fragments.format
    }

    /// Returns the length of the file in bytes, including everything encoded so far. The length of
    /// an open container is not known yet. Until the container is closed, the result is the lowest
    /// offset that the next record can have.
    #[inline]
    pub fn offset(&self) -> u64 {
        let open_count = self.packing.as_ref().map_or(0, |packing| packing.count());
        self.fragments.offset.wrapping_add(open_count as u64)
    }

    /// Returns the length of the file, excluding an open container.
    #[inline]
    pub(crate) fn closed_offset(&self) -> u64 {
        self.fragments.offset
    }

    /// Returns the length of the file, including everything encoded so far. While a container is
    /// open, this is an upper bound.
    #[inline]
    pub(crate) fn end_max(&self) -> u64 {
        let open_len = self.packing.as_ref().map_or(0, |packing| packing.bound());
        self.fragments.offset.wrapping_add(open_len as u64)
    }

    /// Returns whether records are gathered in containers.
    #[inline]
    pub(crate) fn packs(&self) -> bool {
        self.packing.is_some()
    }

    /// Returns whether a record of this length shares a container with other records, if the
    /// dialect has containers.
    pub(crate) const fn shares_container(record_len: usize) -> bool {
        record_len < STORED_LEN_MAX
    }

    /// Returns the number of data bytes in an open container.
    pub(crate) fn open_len(&self) -> usize {
        self.packing.as_ref().map_or(0, |packing| packing.data_len())
    }

    /// Appends the bytes that a file in this dialect starts with: the header of a run file,
    /// RocksDB's record that declares compression, or the mark of a packed log. Doesn't append
    /// anything if the file already has these bytes. [`encode`](Encoder::encode) calls this method
    /// first.
    ///
    /// Like [`Vec::reserve`], aborts the process if there isn't enough memory for `out` to grow.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        self.fragments.start(out);
    }

    /// Ends the file and returns its length. Appends the open container, if any. Also appends
    /// Pebble's end-of-log trailer if the dialect has this trailer and the log has a number.
    /// Consumes the encoder, because no record may follow the trailer.
    ///
    /// Like [`Vec::reserve`], aborts the process if there isn't enough memory for `out` to grow.
    ///
    /// ```
    /// use cordwood_log::{Dialect, LogFormat};
    /// use cordwood_log::codec::Encoder;
    /// let mut file = Vec::new();
    /// let encoder = Encoder::with_format(0, LogFormat::new(Dialect::PEBBLE).with_log_number(1))?;
    /// let file_len = encoder.finish(&mut file);
    /// assert_eq!(file, b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00");
    /// assert_eq!(file_len, 11);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    pub fn finish(mut self, out: &mut Vec<u8>) -> u64 {
        self.end(out);
        self.fragments.offset
    }

    /// Like [`finish`](Self::finish), but keeps the encoder so that its offset can still be read.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        self.end_container(out);
        if let Some(end_trailer) = self.fragments.format.end_trailer() {
            self.fragments.fill_block(out);
            out.extend_from_slice(&end_trailer);
            self.fragments.advance(end_trailer.len());
        }
    }

    /// Appends the record's fragments to `out`, including the trailer of the previous block, and
    /// returns the record's offset. This is the offset of its first header or, for a record in a
    /// container, the container's offset plus the record's index in it.
    ///
    /// In LevelDB's dialect, `out` grows by
    /// [`encoded_len`](crate::format::encoded_len)`(self.offset(), record.len())` bytes.
    ///
    /// Like [`Vec::reserve`], aborts the process if there is not enough memory for `out` or for a
    /// compressed record. Panics if there is not enough memory for zstd's tables, which take about
    /// a megabyte.
    #[inline]
    pub fn encode(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        if self.is_one_full(record) {
            let record_offset = self.fragments.offset;
            self.fragments.plain(Kind::Full as u8, record, out);
            return record_offset;
        }
        match self.add_to_container(record) {
            Some(record_offset) => record_offset,
            None => self.encode_parts(record, out),
        }
    }

    /// Returns whether the record fits in one LevelDB FULL fragment, as most records do.
    #[inline(always)]
    fn is_one_full(&self, record: &[u8]) -> bool {
        self.is_leveldb && HEADER_LEN + record.len() <= block_left(self.fragments.offset)
    }

    /// Like [`encode`](Self::encode), but for consecutive records. Adds the number of encoded
    /// records to `count`, and returns why encoding stopped. If most records are short, this takes
    /// half as long as making separate calls.
    ///
    /// Stops when `out` contains `out_len` bytes or there are no more records. It also stops before
    /// a record of at least `out_len` bytes, unless that record fits in one FULL fragment. An open
    /// container is left open.
    ///
    /// Also stops before a record that is longer than `record_len_max` bytes or needs more memory
    /// than is available. All the records before it are still encoded.
    pub(crate) fn encode_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        out: &mut Vec<u8>,
        out_len: usize,
        record_len_max: u64,
        count: &mut u64,
    ) -> Stopped<R> {
        while out.len() < out_len {
            // Each record in a run fits in one fragment, and a run stays within its block. If there
            // is not enough memory for the rest of the block, there may still be enough for the
            // next record.
            let stopped = if self.is_leveldb
                && record_len_max >= FRAGMENT_LEN_MAX as u64
                && out.try_reserve(block_left(self.fragments.offset) + APPEND_ROOM).is_ok()
            {
                run(EncodeRun {
                    encoder: self,
                    records,
                    out,
                    out_len,
                    count,
                })
            } else {
                let next = match &mut self.packing {
                    Some(packing) => packing.add_all(records, record_len_max, count),
                    None => records.next(),
                };
                next.map_or(Stopped::AtEnd, Stopped::At)
            };
            let record = match stopped {
                Stopped::At(record) => record,
                Stopped::Full => continue,
                stopped => return stopped,
            };
            let bytes = record.as_ref();
            if bytes.len() as u64 > record_len_max {
                return Stopped::TooLarge(bytes.len());
            }
            if bytes.len() >= out_len {
                return Stopped::At(record);
            }
            let reserved = self.try_reserve_frame(bytes.len());
            if let Err(error) = reserved.and_then(|()| self.try_reserve(bytes.len(), out)) {
                return Stopped::NoMemory(error);
            }
            self.encode_parts(bytes, out);
            *count += 1;
        }
        Stopped::Full
    }

    /// The slow path of [`encode`](Self::encode), for other dialects and for a record that reaches
    /// the end of a block or container.
    #[inline(never)]
    fn encode_parts(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        let Ok(record_offset) = self.encode_in_pieces(record, out, |_| Ok::<(), Infallible>(()));
        record_offset
    }

    /// Like [`encode`](Self::encode), but calls `take` after each fragment of the record. `take`
    /// may consume and clear the bytes in `out`, so that `out` never contains the whole record.
    ///
    /// # Errors
    ///
    /// Returns any error from `take`. An error leaves the encoder in the middle of the record.
    pub(crate) fn encode_in_pieces<E>(
        &mut self,
        record: &[u8],
        out: &mut Vec<u8>,
        take: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let file = &mut self.fragments;
        if let Some(packing) = &mut self.packing {
            return packing.pack(file, record, out, take);
        }
        file.start(out);
        file.fill_block(out);
        let record_offset = file.offset;
        let payload = self.compressor.compress(record, &mut self.frame);
        file.fragments(file.form, payload, out, take)?;
        Ok(record_offset)
    }

    /// Closes the open container, if there is one, and appends it to `out`. Later records go into a
    /// new container.
    ///
    /// ```
    /// use cordwood_log::Dialect;
    /// use cordwood_log::codec::Encoder;
    /// let mut file = Vec::new();
    /// let mut encoder = Encoder::with_format(0, Dialect::PACKED)?;
    /// assert_eq!(encoder.encode(b"one", &mut file), 17);
    /// assert_eq!(encoder.encode(b"two", &mut file), 18);
    /// // Only the mark of the file, so far.
    /// assert_eq!((file.len(), encoder.offset()), (17, 19));
    /// encoder.end_container(&mut file);
    /// assert_eq!(&file[17 + 7..], b"\x00\x02\x03\x03onetwo");
    /// assert_eq!(encoder.offset(), file.len() as u64);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    ///
    /// If there is not enough memory, this aborts the process or panics, as
    /// [`encode`](Self::encode) does.
    #[inline]
    pub fn end_container(&mut self, out: &mut Vec<u8>) {
        if let Some(packing) = &mut self.packing {
            packing.end(&mut self.fragments, out);
        }
    }
}

/// A job that encodes consecutive records in one loop. Each record is
/// [one FULL fragment](Encoder::is_one_full), and all are in the same block.
struct EncodeRun<'a, I> {
    encoder: &'a mut Encoder,
    records: &'a mut I,
    out: &'a mut Vec<u8>,
    out_len: usize,
    count: &'a mut u64,
}

/// Why a run or [`Encoder::encode_all`] ended.
pub(crate) enum Stopped<R> {
    /// There are no more records.
    AtEnd,
    /// `out` has reached its limit.
    Full,
    /// This record has not been encoded yet. It is not
    /// [one LevelDB FULL fragment](Encoder::is_one_full). A record returned by `encode_all` is also
    /// at least `out_len` bytes long.
    At(R),
    /// The next record is too long. This is its length in bytes.
    TooLarge(usize),
    /// There is not enough memory for the next record.
    NoMemory(TryReserveError),
}

impl<R: AsRef<[u8]>, I: Iterator<Item = R>> Job for EncodeRun<'_, I> {
    type Output = Stopped<R>;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> Stopped<R> {
        let block_end = self.out.len() + block_left(self.encoder.fragments.offset);
        let mut taken = Taken::new(self.out, &mut self.encoder.fragments.offset);
        let mut count = 0;
        let stopped = loop {
            let Some(record) = self.records.next() else {
                break Stopped::AtEnd;
            };
            // Call `as_ref` only once: a second call could return different bytes, and the header
            // would be wrong.
            let bytes = record.as_ref();
            let len = HEADER_LEN + bytes.len();
            // Room for the rest of the block is already reserved. This check shows the compiler
            // that the loop does not allocate.
            let room = taken.out.capacity() - taken.out.len();
            if len > block_end - taken.out.len() || len + APPEND_ROOM > room {
                break Stopped::At(record);
            }
            append_plain(
                kernel,
                Plain {
                    kind: Kind::Full as u8,
                    payload: bytes,
                    out: &mut taken.out,
                },
            );
            count += 1;
            if taken.out.len() >= self.out_len {
                break Stopped::Full;
            }
        };
        *self.count += count;
        stopped
    }
}

/// The output of a run. The output buffer is moved here so that the compiler can keep its length in
/// a register. Dropping this value moves the buffer back and advances the encoder's offset, even if
/// `as_ref` panics.
struct Taken<'a> {
    out: Vec<u8>,
    len_before: usize,
    place: &'a mut Vec<u8>,
    offset: &'a mut u64,
}

impl<'a> Taken<'a> {
    #[inline(always)]
    fn new(place: &'a mut Vec<u8>, offset: &'a mut u64) -> Self {
        Taken {
            len_before: place.len(),
            out: std::mem::take(place),
            place,
            offset,
        }
    }
}

impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let encoded_len = self.out.len() - self.len_before;
        *self.place = std::mem::take(&mut self.out);
        *self.offset = self.offset.wrapping_add(encoded_len as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::BLOCK_LEN;

    /// The upper bound for an open container also holds for an uncompressed container that spans
    /// several blocks.
    #[test]
    fn an_encoded_container_never_exceeds_its_upper_bound() {
        use crate::dialect::Compression;
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut noise = |len: usize| -> Vec<u8> {
            let mut next = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random as u8
            };
            (0..len).map(|_| next()).collect()
        };
        let stored = LogFormat::new(Dialect::PACKED);
        for format in [stored, stored.with_compression(Compression::Zstd)] {
            for left in [7, 8, 9, 20, 5000, BLOCK_LEN as u64] {
                for (count, record_len) in [(1, 4095), (8, 4094), (8, 4095), (300, 100), (32_000, 1), (32_000, 0)] {
                    let mut encoder = Encoder::unchecked(BLOCK_LEN as u64 - left, format);
                    let mut out = Vec::new();
                    for _ in 0..count {
                        encoder.encode(&noise(record_len), &mut out);
                    }
                    let end_max = encoder.end_max();
                    encoder.end_container(&mut out);
                    assert_eq!(encoder.offset(), BLOCK_LEN as u64 - left + out.len() as u64);
                    assert_eq!(encoder.end_max(), encoder.offset(), "no container is open");
                    assert!(
                        encoder.offset() <= end_max,
                        "{format:?}, {left}, {count} of {record_len}"
                    );
                }
            }
        }
    }

    /// A reader may decompress 256 MiB, plus 200 bytes for each byte read. A writer that appends
    /// does not know how much of this budget earlier records have used. Source:
    /// `docs/format/packed.md`.
    #[test]
    #[cfg(feature = "zstd")]
    fn appended_containers_never_compress_more_than_200_to_1() {
        use crate::dialect::Compression;
        let format = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd);
        let expands_more = |mut encoder: Encoder| {
            let mut out = Vec::new();
            encoder.encode(&[0; 30_000], &mut out);
            out.len() * 200 < 30_000
        };
        let new = Encoder::unchecked(0, format);
        assert!(expands_more(new.clone()));
        assert!(!expands_more(new.at(17)), "after a write that failed");
        let mut after_another = new;
        after_another.use_up_budget();
        assert!(!expands_more(after_another), "after another segment");
        for file_len in [1, 17, 1 << 20] {
            assert!(!expands_more(Encoder::unchecked(file_len, format)), "{file_len}");
        }
    }

    /// Each frame may use the budget left by the bytes before it, and is lengthened only as much as
    /// the budget requires.
    #[test]
    #[cfg(feature = "zstd")]
    fn frames_are_lengthened_only_as_much_as_the_budget_requires() {
        use crate::dialect::Compression;
        let format = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd);
        let mut random = 1_u64;
        let mut noise = |len: usize| -> Vec<u8> {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            };
            (0..len).map(|_| next()).collect()
        };
        let appended = |encoder: &mut Encoder, record: &[u8]| -> usize {
            let mut out = Vec::new();
            encoder.encode(record, &mut out);
            out.len()
        };
        // The budget is already used up at the start, so each frame needs one byte for every 200
        // bytes of data.
        let mut encoder = Encoder::unchecked(17, format);
        for _ in 0..3 {
            let len = appended(&mut encoder, &[0; 30_000]);
            assert!((30_003..30_003 + 3 * 200).contains(&(len * 200)), "{len}");
        }
        // If a frame is longer than its budget requires, the rest of the budget is left for the
        // next frame.
        let half = [noise(10_000), vec![0; 20_000]].concat();
        assert!((10_000..11_000).contains(&appended(&mut encoder, &half)));
        assert!(appended(&mut encoder, &[0; 30_000]) < 100);
        // An uncompressed record also leaves some budget for the next frame.
        let mut encoder = Encoder::unchecked(17, format);
        let stored = noise(5_000);
        assert_eq!(appended(&mut encoder, &stored), 7 + 5_000);
        let natural_len = appended(&mut Encoder::unchecked(0, format), &vec![0; 1_000_000]) - 17;
        let enough = 200 * (7 + 5_000 + natural_len) - 3;
        assert_eq!(appended(&mut encoder.clone(), &vec![0; enough]), natural_len);
        assert!(appended(&mut encoder, &vec![0; enough + 1]) > natural_len);
    }

    /// After the offset wraps around, block boundaries are where they would be with wider offsets.
    #[test]
    fn the_encoder_offset_wraps_around_to_zero() {
        for format in [
            LogFormat::new(Dialect::LEVELDB),
            LogFormat::new(Dialect::RECYCLABLE).with_log_number(7),
        ] {
            for left in [1, 7, 20] {
                let mut wrapped = Encoder::unchecked(0_u64.wrapping_sub(left), format);
                let mut plain = Encoder::unchecked(BLOCK_LEN as u64 - left, format);
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                let records = [&b"one"[..], b"", &[7; 40_000], b"two"];
                for record in records {
                    wrapped.encode(record, &mut out);
                    plain.encode(record, &mut expected);
                }
                let _ = wrapped.encode_all(&mut records.into_iter(), &mut out, usize::MAX, u64::MAX, &mut 0);
                let _ = plain.encode_all(&mut records.into_iter(), &mut expected, usize::MAX, u64::MAX, &mut 0);
                assert_eq!(out, expected);
                assert_eq!(wrapped.offset(), plain.offset() - BLOCK_LEN as u64);
            }
        }
    }

    #[test]
    fn encoding_several_records_stops_when_the_output_is_full() {
        let records = [[1; 100]; 5];
        for (format, record_len) in [(Dialect::LEVELDB, 107), (Dialect::WANDB, 107)] {
            let mut encoder = Encoder::unchecked(0, format.into());
            let mut out = Vec::new();
            encoder.start(&mut out);
            let out_len = out.len() + 2 * record_len;
            let mut count = 0;
            let stopped = encoder.encode_all(&mut records.iter(), &mut out, out_len, 1 << 30, &mut count);
            assert!(count == 2 && matches!(stopped, Stopped::Full), "{format:?} {count}");
            assert_eq!(out.len(), out_len);
            // `out` already contains `out_len` bytes.
            let stopped = encoder.encode_all(&mut records.iter(), &mut out, out_len, 1 << 30, &mut count);
            assert!(count == 2 && matches!(stopped, Stopped::Full), "{format:?} {count}");
        }
        // A container is closed once it holds 4,096 bytes of data. The limit below also includes
        // the mark, the head and 41 lengths.
        let (mut encoder, mut out) = (Encoder::unchecked(0, Dialect::PACKED.into()), Vec::new());
        let records = [[1; 100]; 100];
        let (out_len, mut count) = (17 + 7 + 2 + 41 + 4_100, 0);
        let stopped = encoder.encode_all(&mut records.iter(), &mut out, out_len, 1 << 30, &mut count);
        assert!(count == 41 && matches!(stopped, Stopped::Full), "{count}");
        assert_eq!(encoder.open_len(), 0);
        for format in [Dialect::LEVELDB, Dialect::WANDB, Dialect::PACKED] {
            for (len, is_encoded) in [(39_999, true), (40_000, false)] {
                let (mut encoder, mut out) = (Encoder::unchecked(0, format.into()), Vec::new());
                let record = vec![1; len];
                let mut count = 0;
                let _ = encoder.encode_all(&mut [&record].into_iter(), &mut out, 40_000, 1 << 30, &mut count);
                assert_eq!(count == 1, is_encoded, "{format:?} {len}");
            }
        }
    }

    /// After a panic in `as_ref`, the encoder is still usable, and the records encoded before the
    /// panic are kept.
    #[test]
    fn earlier_records_survive_a_panic_during_encoding() {
        struct Record(&'static [u8]);
        impl AsRef<[u8]> for Record {
            fn as_ref(&self) -> &[u8] {
                assert!(!self.0.is_empty(), "this record panics");
                self.0
            }
        }
        let mut encoder = Encoder::new(0);
        let mut out = Vec::new();
        let encoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut records = [&b"one"[..], b"two", b"", b"three"].map(Record).into_iter();
            let _ = encoder.encode_all(&mut records, &mut out, usize::MAX, 1 << 30, &mut 0);
        }));
        assert!(encoded.is_err());
        encoder.encode(b"four", &mut out);

        let mut expected = Vec::new();
        let mut one = Encoder::new(0);
        for record in ["one", "two", "four"] {
            one.encode(record.as_bytes(), &mut expected);
        }
        assert_eq!(out, expected);
        assert_eq!(encoder.offset(), one.offset());
    }

    #[test]
    fn a_record_exactly_fills_a_buffer_of_its_encoded_length() {
        for len in [0, 16, 17, 100, 1000, 32_761, 32_762, 100_000] {
            let record = vec![1; len];
            let encoded_len = crate::format::encoded_len(0, len as u64) as usize;
            let mut out = Vec::with_capacity(encoded_len);
            let capacity = out.capacity();
            Encoder::new(0).encode(&record, &mut out);
            assert_eq!((out.len(), out.capacity()), (encoded_len, capacity), "{len} bytes");
        }
    }

    /// In LevelDB's dialect and in others, a run writes the same bytes as separate calls would,
    /// regardless of the records' lengths, their place in a block, and the limit on `out`.
    #[test]
    fn encode_all_produces_the_same_bytes_as_separate_calls_to_encode() {
        let dialects = [
            LogFormat::new(Dialect::LEVELDB),
            LogFormat::new(Dialect::WANDB),
            LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
        ];
        for dialect in dialects {
            for seed in 0..60_u64 {
                let mut random = seed;
                let mut next = |max: u64| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 33) % max
                };
                let records: Vec<Vec<u8>> = (0..300)
                    .map(|_| {
                        let len_max = [1, 40, 300, 40_000][next(4) as usize];
                        vec![next(256) as u8; next(len_max) as usize]
                    })
                    .collect();
                let (mut expected, mut one) = (Vec::new(), Encoder::with_format(0, dialect).unwrap());
                for record in &records {
                    one.encode(record, &mut expected);
                }
                let (mut out, mut all) = (Vec::new(), Encoder::with_format(0, dialect).unwrap());
                let mut rest = records.iter();
                let mut sum = 0;
                loop {
                    let out_len = out.len() + next(100_000) as usize;
                    let record_len_max = [1 << 30, 40_000][next(2) as usize];
                    match all.encode_all(&mut rest, &mut out, out_len, record_len_max, &mut sum) {
                        Stopped::AtEnd => break,
                        Stopped::Full => assert!(out.len() >= out_len),
                        Stopped::At(record) => {
                            assert!(record.len() >= out_len);
                            let mut pieces = Vec::new();
                            let Ok(_) = all.encode_in_pieces(record, &mut pieces, |piece| {
                                out.append(piece);
                                Ok::<(), Infallible>(())
                            });
                            sum += 1;
                        }
                        Stopped::TooLarge(_) | Stopped::NoMemory(_) => panic!("every record is accepted"),
                    }
                    assert_eq!(sum as usize + rest.len(), records.len());
                }
                assert_eq!((sum as usize, all.offset()), (records.len(), one.offset()));
                assert!(out == expected, "{dialect:?} {seed}");
            }
        }
    }
}
