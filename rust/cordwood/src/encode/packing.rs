//! Packs records into containers, following the rules for writers in `docs/format/packed.md`.

use std::collections::TryReserveError;
use std::convert::Infallible;

use super::Encoder;
use super::fragments::{Fragments, codec_of};
use crate::compression::{BUDGET_BASE, BUDGET_RATIO, CONTAINER_LEVEL, Compressor, lengthen};
use crate::container::{Codec, HEAD_LEN_MAX, Head, STORED_LEN_MAX, VARINT_LEN_MAX, ZSTD_LEN_MAX};
use crate::container::{push_varint, varint_len};
use crate::copy::{SHORT, copy_short};
use crate::dialect::{Form, LogFormat};
use crate::format::{BLOCK_LEN, HEADER_LEN, encoded_len};

/// The position in `bytes` where a container's data starts. There is always enough space before it
/// for the lengths. A container has at most one record per byte of a block, and only a few of its
/// records can have a two-byte length.
const DATA_START: usize = HEAD_LEN_MAX + BLOCK_LEN + 2 * (ZSTD_LEN_MAX / SHORT_LEN_MAX + 2);

/// The greatest length that fits in a one-byte varint.
const SHORT_LEN_MAX: usize = 0x7f;

/// The open container, or the memory for the next container.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    codec: Codec,
    /// The bytes of the container: the records' lengths at the start, the data from [`DATA_START`]
    /// onward, and room for more data. When the container is closed, the head and the lengths are
    /// moved to just before the data.
    bytes: Vec<u8>,
    filled: Filled,
    /// The number of bytes from the start of the container to the end of the block it starts in.
    room: usize,
    /// An upper limit on the total size of the records and their length fields. To check a new
    /// record, its data is added to the total, but its length field is not. If the total stays
    /// below the limit, the record goes into the open container, which remains open. The limit is 0
    /// if no container is open.
    limit: usize,
    /// The body of the most recent container that held a single long record.
    long_body: Vec<u8>,
    frames: Frames,
}

/// The frames of compressed containers.
#[derive(Debug, Clone)]
struct Frames {
    compressor: Compressor,
    /// The codec, the count and the frame of the most recently compressed container.
    compressed: Vec<u8>,
    /// The file offset after the last frame.
    end: u64,
    /// The budget that a reader has used up by `end` in the worst case: the sum of the lengths
    /// stated by all frames since the reader started, minus 200 times the number of bytes read.
    used: u64,
}

/// The contents of the open container. All fields are 0 if no container is open.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    count: usize,
    /// The number of bytes taken up by the records' lengths.
    lens_len: usize,
    data_len: usize,
}

impl Filled {
    /// Returns the total size of the records' length fields, the records' data and the data of
    /// `record`.
    #[inline(always)]
    fn len_with(self, record: &[u8]) -> usize {
        self.lens_len + self.data_len + record.len()
    }

    /// Adds a record that [shares a container](Encoder::shares_container). Its length takes one or
    /// two bytes.
    #[inline(always)]
    fn add(&mut self, record: &[u8], bytes: &mut [u8]) {
        let len = record.len();
        copy_short(&mut bytes[DATA_START + self.data_len..], record);
        if len > SHORT_LEN_MAX {
            bytes[self.lens_len] = len as u8 | 0x80;
            self.lens_len += 1;
            bytes[self.lens_len] = (len >> 7) as u8;
        } else {
            bytes[self.lens_len] = len as u8;
        }
        self.lens_len += 1;
        self.data_len += len;
        self.count += 1;
    }
}

impl Packing {
    /// Returns an empty container if logs in this format use containers.
    pub(super) fn of(format: &LogFormat) -> Option<Box<Packing>> {
        format.dialect.is_packed().then(|| {
            Box::new(Packing {
                codec: codec_of(format),
                bytes: Vec::new(),
                filled: Filled::default(),
                room: 0,
                limit: 0,
                long_body: Vec::new(),
                frames: Frames {
                    compressor: Compressor::new(format.is_zstd(), CONTAINER_LEVEL),
                    compressed: Vec::new(),
                    end: 0,
                    used: 0,
                },
            })
        })
    }

    /// Assumes that a reader's budget was used up by the bytes before the file offset `end`.
    pub(super) fn use_up_budget(&mut self, end: u64) {
        (self.frames.end, self.frames.used) = (end, BUDGET_BASE);
    }

    /// Returns the number of records in the open container.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.filled.count
    }

    /// Returns the number of data bytes in the open container.
    pub(super) fn data_len(&self) -> usize {
        self.filled.data_len
    }

    /// Returns the maximum number of bytes that the open container can take up in the file.
    pub(super) fn bound(&self) -> usize {
        if self.filled.count == 0 {
            return 0;
        }
        let len = HEAD_LEN_MAX + self.filled.lens_len + self.filled.data_len;
        // A container that isn't shortened by compression may be split at the end of the block it
        // starts in, and at the end of each block it fills.
        let header_count = len / (BLOCK_LEN - HEADER_LEN) + 2;
        header_count * HEADER_LEN + len
    }

    /// Reserves room for the copy and the frame of a long record that may be compressed.
    pub(super) fn try_reserve(&mut self, record_len: usize) -> Result<(), TryReserveError> {
        if self.may_compress(record_len) {
            let body_len = record_len.saturating_add(VARINT_LEN_MAX);
            self.long_body.clear();
            self.long_body.try_reserve(body_len)?;
            let frames = &mut self.frames;
            let frame_len = body_len.saturating_add(HEAD_LEN_MAX);
            frames.compressor.try_reserve(frame_len, &mut frames.compressed)?;
        }
        Ok(())
    }

    /// Returns whether a record of this length may be the only one in a compressed container. If
    /// not, the record is written as an ordinary record.
    fn may_compress(&self, record_len: usize) -> bool {
        let body_len = record_len as u64 + varint_len(record_len as u64) as u64;
        self.codec == Codec::Zstd && body_len <= BUDGET_BASE
    }

    /// Returns the number of data bytes at which a container is closed.
    fn data_len_max(&self) -> usize {
        match self.codec {
            Codec::Stored => STORED_LEN_MAX,
            Codec::Zstd => ZSTD_LEN_MAX,
        }
    }

    /// Sets the open container's limit from the lengths of its records so far. The limit does not
    /// account for length fields added later, so it becomes stricter than necessary. A record that
    /// reaches it is then checked against the exact rules.
    fn set_limit(&mut self) {
        let Filled { lens_len, data_len, .. } = self.filled;
        let room = match self.codec {
            Codec::Stored => self.room.saturating_sub(HEADER_LEN + HEAD_LEN_MAX + VARINT_LEN_MAX),
            // Each record's offset must be in the block where the container starts. Each record's
            // length takes at least one byte.
            Codec::Zstd => self.room - 1,
        };
        // With this bound, a record that is too long to share a container always reaches the limit.
        let data_len_max = self.data_len_max().min(data_len + STORED_LEN_MAX);
        self.limit = room.min(lens_len + data_len_max);
    }

    /// Adds a record to the open container.
    #[inline(never)]
    fn add(&mut self, record: &[u8]) {
        self.filled.add(record, &mut self.bytes);
    }

    /// Adds and counts records from `records`, stopping before the first one that reaches the
    /// limit. Returns that record. Adds no records if the limit alone could admit a record longer
    /// than `record_len_max`.
    // Inlining this function would leave too few registers for the loop.
    #[inline(never)]
    pub(super) fn add_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        record_len_max: u64,
        added: &mut u64,
    ) -> Option<R> {
        let limit = if record_len_max < STORED_LEN_MAX as u64 {
            0
        } else {
            self.limit
        };
        let mut filling = Filling {
            filled: self.filled,
            packing: self,
        };
        let count_before = filling.filled.count;
        let stopped = loop {
            let Some(record) = records.next() else {
                break None;
            };
            // Call `as_ref` only once: a second call could return different bytes.
            let bytes = record.as_ref();
            if filling.filled.len_with(bytes) >= limit {
                break Some(record);
            }
            filling.filled.add(bytes, &mut filling.packing.bytes);
        };
        *added += (filling.filled.count - count_before) as u64;
        stopped
    }

    /// Returns whether a record of this length can be added.
    fn has_room(&self, record_len: usize) -> bool {
        if self.codec == Codec::Zstd {
            return true;
        }
        let Filled {
            count,
            lens_len,
            data_len,
        } = self.filled;
        if count == 0 {
            // A record that would be the only one in a stored container is written as an ordinary
            // record.
            return HEADER_LEN + record_len <= self.room;
        }
        let head_len = HEADER_LEN + 1 + varint_len(count as u64 + 1);
        let body_len = lens_len + varint_len(record_len as u64) + data_len + record_len;
        head_len + body_len <= self.room
    }

    /// Returns whether the container must be closed before another record is added. With the
    /// `Stored` codec, a container never crosses the end of its block.
    fn is_full(&self) -> bool {
        self.filled.data_len >= self.data_len_max() || (self.codec == Codec::Zstd && self.filled.count >= self.room)
    }

    /// Appends a record. See [`Encoder::encode_in_pieces`](super::Encoder::encode_in_pieces). A
    /// short record is added to the open container without calling `take`.
    pub(super) fn pack<E>(
        &mut self,
        file: &mut Fragments,
        record: &[u8],
        out: &mut Vec<u8>,
        take: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        if Encoder::shares_container(record.len()) {
            return Ok(self.pack_short(file, record, out));
        }
        self.end(file, out);
        let offset = self.start(file, out);
        let mut is_compressed = self.may_compress(record.len());
        if is_compressed {
            self.long_body.clear();
            push_varint(record.len() as u64, &mut self.long_body);
            self.long_body.extend_from_slice(record);
            is_compressed = self.frames.compress(&self.long_body, 1, offset, record.len());
        }
        let (form, payload) = if is_compressed {
            (Form::Packed, &self.frames.compressed[..])
        } else {
            (Form::Plain, record)
        };
        file.fragments(form, payload, out, take)?;
        Ok(offset)
    }

    /// Adds a short record to the open container, or to a new one, and returns its offset.
    fn pack_short(&mut self, file: &mut Fragments, record: &[u8], out: &mut Vec<u8>) -> u64 {
        if self.count() > 0 && self.has_room(record.len()) {
            let offset = file.offset.wrapping_add(self.count() as u64);
            self.add(record);
            if self.is_full() {
                self.close(file, out);
            } else {
                self.set_limit();
            }
            return offset;
        }
        self.end(file, out);
        let offset = self.start(file, out);
        if self.has_room(record.len()) {
            self.add(record);
            self.set_limit();
        } else {
            // A stored container is never split, so a record that doesn't fit in the block isn't
            // packed.
            let Ok(()) = file.fragments(Form::Plain, record, out, |_| Ok::<(), Infallible>(()));
        }
        offset
    }

    /// Prepares a new container and returns the offset where it starts.
    fn start(&mut self, file: &mut Fragments, out: &mut Vec<u8>) -> u64 {
        file.start(out);
        file.fill_block(out);
        self.room = file.block_left();
        // The last record may be added when the data is just below its limit, so there must be room
        // for that record as well.
        self.bytes.resize(DATA_START + self.data_len_max() + STORED_LEN_MAX, 0);
        file.offset
    }

    /// Closes the open container, if there is one.
    #[inline]
    pub(super) fn end(&mut self, file: &mut Fragments, out: &mut Vec<u8>) {
        if self.count() > 0 {
            self.close(file, out);
        }
    }

    #[inline(never)]
    fn close(&mut self, file: &mut Fragments, out: &mut Vec<u8>) {
        self.limit = 0;
        let Filled {
            count,
            lens_len,
            data_len,
        } = std::mem::take(&mut self.filled);
        let (body_start, end) = (DATA_START - lens_len, DATA_START + data_len);
        self.bytes.copy_within(..lens_len, body_start);
        let head = &mut self.frames.compressed;
        head.clear();
        Head::encode(Codec::Stored, count, head);
        let container_start = body_start - head.len();
        self.bytes[container_start..body_start].copy_from_slice(head);
        let stored = match count {
            1 => (Form::Plain, &self.bytes[DATA_START..end]),
            _ => (Form::Packed, &self.bytes[container_start..end]),
        };
        let body = &self.bytes[body_start..end];
        let is_compressed = self.codec == Codec::Zstd && self.frames.compress(body, count, file.offset, stored.1.len());
        let (form, payload) = if is_compressed {
            (Form::Packed, &self.frames.compressed[..])
        } else {
            stored
        };
        let Ok(()) = file.fragments(form, payload, out, |_| Ok::<(), Infallible>(()));
    }
}

impl Encoder {
    /// Adds a record to the open container, if there is one and it is certain to stay open. Returns
    /// the record's offset if the record was added.
    // Inlined, because it does little work for most records in a packed log.
    #[inline(always)]
    pub(crate) fn add_to_container(&mut self, record: &[u8]) -> Option<u64> {
        let packing = self.packing.as_mut()?;
        let offset = self.fragments.offset.wrapping_add(packing.count() as u64);
        if packing.filled.len_with(record) >= packing.limit {
            return None;
        }
        // A short record is added without a function call, because a call would have to save
        // registers first.
        if SHORT.contains(&record.len()) {
            packing.filled.add(record, &mut packing.bytes);
        } else {
            packing.add(record);
        }
        Some(offset)
    }
}

impl Frames {
    /// Compresses the body of `count` records into `compressed`. The container starts at the file
    /// offset `start`. Lengthens the frame if necessary, so that each record has its own offset and
    /// the frame fits every reader's budget. Returns true if the compressed form must be written
    /// because it is shorter than the stored form of `stored_len` bytes.
    fn compress(&mut self, body: &[u8], count: usize, start: u64, stored_len: usize) -> bool {
        let compressed = &mut self.compressed;
        compressed.clear();
        Head::encode(Codec::Zstd, count, compressed);
        let frame_start = compressed.len();
        if !self.compressor.append(body, compressed) {
            return false;
        }
        let read_len = start.wrapping_sub(self.end);
        let used = self.used.saturating_sub(read_len.saturating_mul(BUDGET_RATIO)) + body.len() as u64;
        let len_min = (count as u64).max(used.saturating_sub(BUDGET_BASE).div_ceil(BUDGET_RATIO));
        let mut file_len = encoded_len(start, compressed.len() as u64);
        if file_len < len_min {
            lengthen(compressed, frame_start, (len_min - file_len) as usize);
            file_len = encoded_len(start, compressed.len() as u64);
        }
        let is_written = compressed.len() < stored_len;
        if is_written {
            self.end = start.wrapping_add(file_len);
            self.used = used.saturating_sub(file_len.saturating_mul(BUDGET_RATIO));
        }
        is_written
    }
}

/// The open container that a loop is adding records to. The `filled` field is a copy, which the
/// compiler can keep in registers. Dropping this value stores the copy back, even if `as_ref`
/// panics.
struct Filling<'a> {
    filled: Filled,
    packing: &'a mut Packing,
}

impl Drop for Filling<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.packing.filled = self.filled;
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::dialect::{Compression, Dialect};

    /// Without the reservation, running out of memory for the record would abort the process.
    #[test]
    fn reserves_memory_for_every_long_compressible_record() {
        let stored = LogFormat::new(Dialect::PACKED);
        let zstd = stored.with_compression(Compression::Zstd);
        let reserved = |format, record_len| {
            let mut encoder = Encoder::unchecked(0, format);
            encoder.try_reserve_frame(record_len).expect("memory");
            let packing = encoder.packing.expect("a packed log");
            (packing.long_body.capacity(), packing.frames.compressed.capacity())
        };
        // The longest record and its four-byte length use up the whole budget.
        let longest = (256 << 20) - 4;
        for record_len in [STORED_LEN_MAX, 100_000, longest] {
            let (body_len, frame_len) = reserved(zstd, record_len);
            assert!(body_len > record_len && frame_len > record_len, "{record_len}");
        }
        for (format, record_len) in [(zstd, STORED_LEN_MAX - 1), (zstd, longest + 1), (stored, 100_000)] {
            assert_eq!(reserved(format, record_len), (0, 0), "{record_len}");
        }
    }
}
