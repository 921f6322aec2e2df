//! Packs records into containers, by the writer's rules in `docs/format/packed.md`.

use std::collections::TryReserveError;
use std::convert::Infallible;

use super::{Encoder, Stopped};
use crate::compression::{BUDGET_BASE, BUDGET_RATIO, Compressor, lengthen};
use crate::container::{Codec, HEAD_LEN_MAX, Head, STORED_LEN_MAX, VARINT_LEN_MAX, ZSTD_LEN_MAX};
use crate::container::{push_varint, varint_len};
use crate::copy::{SHORT, copy_short};
use crate::dialect::{Form, LogFormat};
use crate::format::{BLOCK_LEN, HEADER_LEN, encoded_len};

/// Where the data of a container starts in its bytes: after the most that its lengths need. A
/// record has at least one byte there, and of those with a length of two bytes, a container has
/// few.
const DATA_START: usize = HEAD_LEN_MAX + BLOCK_LEN + 2 * (ZSTD_LEN_MAX / SHORT_LEN_MAX + 2);

/// The greatest length whose varint is one byte.
const SHORT_LEN_MAX: usize = 0x7f;

/// The open container, or the memory for the next one.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    codec: Codec,
    /// At the start the lengths of the records; from [`DATA_START`] on their data, and room for
    /// more. When the container is closed, its head and the lengths are moved to before the data.
    bytes: Vec<u8>,
    filled: Filled,
    /// The bytes of the block in which it starts, from its start on.
    room: usize,
    /// A record belongs to the open container, and leaves it open, if the lengths and the data with it,
    /// but without its own length, are shorter than this. 0 if no container is open.
    limit: usize,
    compressor: Compressor,
    /// The last container that was to be compressed: its codec, its count and its frame.
    compressed: Vec<u8>,
    /// The body of the last one with a single long record.
    long_body: Vec<u8>,
    /// The file offset after the last frame.
    frame_end: u64,
    /// How much of the budget a reader has used there in the worst case: what the frames from where it
    /// started state, without 200 times the bytes read.
    used: u64,
}

/// How much the open container has. All are 0 if no container is open.
#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    count: usize,
    /// The lengths of the records, in bytes.
    lens_len: usize,
    data_len: usize,
}

impl Filled {
    /// The lengths and the data in bytes, with the data of one more record.
    #[inline(always)]
    fn len_with(self, record: &[u8]) -> usize {
        self.lens_len + self.data_len + record.len()
    }

    /// Adds a record that [shares a container](Encoder::shares_container): its length is one or two
    /// bytes.
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
    /// An empty container, if logs of this format have containers.
    pub(super) fn of(format: &LogFormat) -> Option<Box<Packing>> {
        format.dialect.is_packed().then(|| {
            Box::new(Packing {
                codec: if format.is_zstd() { Codec::Zstd } else { Codec::Stored },
                bytes: Vec::new(),
                filled: Filled::default(),
                room: 0,
                limit: 0,
                compressor: Compressor::for_containers(format.is_zstd()),
                compressed: Vec::new(),
                long_body: Vec::new(),
                frame_end: 0,
                used: 0,
            })
        })
    }

    /// Counts the budget of a reader as used up by what precedes the file offset `end`.
    pub(super) fn use_up_budget(&mut self, end: u64) {
        (self.frame_end, self.used) = (end, BUDGET_BASE);
    }

    /// How many records it has.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.filled.count
    }

    /// How many bytes of data it has.
    pub(super) fn data_len(&self) -> usize {
        self.filled.data_len
    }

    /// The most bytes that it needs in the file.
    pub(super) fn bound(&self) -> usize {
        if self.filled.count == 0 {
            return 0;
        }
        let len = HEAD_LEN_MAX + self.filled.lens_len + self.filled.data_len;
        // One that is not compressed after all may be cut: at the end of the block in which it
        // starts, and of each block that it fills.
        let header_count = len / (BLOCK_LEN - HEADER_LEN) + 2;
        header_count * HEADER_LEN + len
    }

    /// Reserves room for a long record that may be compressed: for a copy of it, and for the frame.
    pub(super) fn try_reserve(&mut self, record_len: usize) -> Result<(), TryReserveError> {
        if self.may_compress(record_len) {
            let body_len = record_len.saturating_add(VARINT_LEN_MAX);
            self.long_body.clear();
            self.long_body.try_reserve(body_len)?;
            self.compressor
                .try_reserve(body_len.saturating_add(HEAD_LEN_MAX), &mut self.compressed)?;
        }
        Ok(())
    }

    /// Whether a container may state a record of this length, alone: if not, it is an ordinary record.
    fn may_compress(&self, record_len: usize) -> bool {
        let body_len = record_len as u64 + varint_len(record_len as u64) as u64;
        self.codec == Codec::Zstd && body_len <= BUDGET_BASE
    }

    /// Prepares for a container in a block that has `room` bytes left.
    fn start(&mut self, room: usize) {
        self.room = room;
        // The last record is added when the data is still shorter than the limit.
        self.bytes.resize(DATA_START + self.data_len_max() + STORED_LEN_MAX, 0);
    }

    /// A container is closed at this length of data, in bytes.
    fn data_len_max(&self) -> usize {
        match self.codec {
            Codec::Stored => STORED_LEN_MAX,
            Codec::Zstd => ZSTD_LEN_MAX,
        }
    }

    /// Adds the first record, which [fits](Self::has_room).
    fn open(&mut self, record: &[u8]) {
        self.add(record);
        self.set_limit();
    }

    /// Sets the limit of the open container by its lengths so far. As further ones are added, the limit is
    /// too low, and the exact rules decide.
    fn set_limit(&mut self) {
        let Filled { lens_len, data_len, .. } = self.filled;
        let room = match self.codec {
            Codec::Stored => self.room.saturating_sub(HEADER_LEN + HEAD_LEN_MAX + VARINT_LEN_MAX),
            // The offset of each record is in the block in which the container starts. There are at
            // least as many bytes of lengths as records.
            Codec::Zstd => self.room - 1,
        };
        // So that no record reaches it that is too long to share a container.
        let data_len_max = self.data_len_max().min(data_len + STORED_LEN_MAX);
        self.limit = room.min(lens_len + data_len_max);
    }

    /// Adds a record to the open container.
    #[inline(never)]
    fn add(&mut self, record: &[u8]) {
        self.filled.add(record, &mut self.bytes);
    }

    /// Adds `records` for as long as they are within the limit, and counts them. Returns the first one that
    /// is not. Adds none if a record within the limit may be longer than `record_len_max`.
    // Inlined, its loop would have too few registers.
    #[inline(never)]
    fn add_all<R: AsRef<[u8]>>(
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
            // Called only once: a second call could return other bytes.
            let bytes = record.as_ref();
            if filling.filled.len_with(bytes) >= limit {
                break Some(record);
            }
            filling.filled.add(bytes, &mut filling.packing.bytes);
        };
        *added += (filling.filled.count - count_before) as u64;
        stopped
    }

    /// Whether a record of this length can be added.
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
            // Alone, it is an ordinary record.
            return HEADER_LEN + record_len <= self.room;
        }
        let head_len = HEADER_LEN + 1 + varint_len(count as u64 + 1);
        let body_len = lens_len + varint_len(record_len as u64) + data_len + record_len;
        head_len + body_len <= self.room
    }

    /// Whether it is closed before any further record. A stored one is not longer than its block.
    fn is_full(&self) -> bool {
        self.filled.data_len >= self.data_len_max() || (self.codec == Codec::Zstd && self.filled.count >= self.room)
    }

    /// Compresses the body of `count` records, which starts at the file offset `start`, into
    /// `compressed`, which becomes long enough for an offset for each record, and for the budget of every
    /// reader. Returns whether that is to be written: if it is shorter than the stored form, of
    /// `stored_len` bytes.
    fn compress(&mut self, body: &[u8], count: usize, start: u64, stored_len: usize) -> bool {
        let compressed = &mut self.compressed;
        compressed.clear();
        Head::encode(Codec::Zstd, count, compressed);
        let frame_start = compressed.len();
        if !self.compressor.append(body, compressed) {
            return false;
        }
        let read_len = start.wrapping_sub(self.frame_end);
        let used = self.used.saturating_sub(read_len.saturating_mul(BUDGET_RATIO)) + body.len() as u64;
        let len_min = (count as u64).max(used.saturating_sub(BUDGET_BASE).div_ceil(BUDGET_RATIO));
        let mut file_len = encoded_len(start, compressed.len() as u64);
        if file_len < len_min {
            lengthen(compressed, frame_start, (len_min - file_len) as usize);
            file_len = encoded_len(start, compressed.len() as u64);
        }
        let is_written = compressed.len() < stored_len;
        if is_written {
            self.frame_end = start.wrapping_add(file_len);
            self.used = used.saturating_sub(file_len.saturating_mul(BUDGET_RATIO));
        }
        is_written
    }
}

/// The open container while records are added in a loop: apart from it, so that the compiler can keep
/// what changes in registers. It is put back, also if `as_ref` panics.
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

const PACKS: &str = "this is called only if there are containers";

impl Encoder {
    /// [`encode_in_pieces`](Self::encode_in_pieces) in a dialect with containers. A short record is
    /// added to the open one, and no bytes are taken.
    pub(super) fn pack<E>(
        &mut self,
        record: &[u8],
        out: &mut Vec<u8>,
        take: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        if Encoder::shares_container(record.len()) {
            return Ok(self.pack_short(record, out));
        }
        self.end_container(out);
        let offset = self.start_container(out);
        let packing = self.packing.as_mut().expect(PACKS);
        let mut body = std::mem::take(&mut packing.long_body);
        body.clear();
        let mut is_compressed = packing.may_compress(record.len());
        if is_compressed {
            push_varint(record.len() as u64, &mut body);
            body.extend_from_slice(record);
            is_compressed = packing.compress(&body, 1, offset, record.len());
        }
        packing.long_body = body;
        let written = self.container(is_compressed, (Form::Plain, record), out, take);
        written.map(|()| offset)
    }

    /// Appends the container that was compressed last or, if it is not to be written, this.
    fn container<E>(
        &mut self,
        is_compressed: bool,
        otherwise: (Form, &[u8]),
        out: &mut Vec<u8>,
        take: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !is_compressed {
            return self.fragments(otherwise.0, otherwise.1, out, take);
        }
        let compressed = std::mem::take(&mut self.packing.as_mut().expect(PACKS).compressed);
        let written = self.fragments(Form::Packed, &compressed, out, take);
        self.packing.as_mut().expect(PACKS).compressed = compressed;
        written
    }

    /// Adds the short ones of `records` to containers: see [`encode_all`](Self::encode_all).
    pub(super) fn pack_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        out: &mut Vec<u8>,
        out_len: usize,
        record_len_max: u64,
        count: &mut u64,
    ) -> Stopped<R> {
        while out.len() < out_len {
            let packing = self.packing.as_mut().expect(PACKS);
            let Some(record) = packing.add_all(records, record_len_max, count) else {
                return Stopped::AtEnd;
            };
            let bytes = record.as_ref();
            if !Encoder::shares_container(bytes.len()) || bytes.len() as u64 > record_len_max {
                return Stopped::At(record);
            }
            self.pack_short(bytes, out);
            *count += 1;
        }
        Stopped::Full
    }

    /// Adds a record to the open container, if there is one, and it certainly stays open. Returns
    /// the offset of the record if it was added.
    // Inlined, as it is little work for most records of a packed log.
    #[inline(always)]
    pub(crate) fn add_to_container(&mut self, record: &[u8]) -> Option<u64> {
        let packing = self.packing.as_mut()?;
        let offset = self.offset.wrapping_add(packing.count() as u64);
        if packing.filled.len_with(record) >= packing.limit {
            return None;
        }
        // A short record is added without a call, before which registers would have to be saved.
        if SHORT.contains(&record.len()) {
            packing.filled.add(record, &mut packing.bytes);
        } else {
            packing.add(record);
        }
        Some(offset)
    }

    /// Adds a short record to the open container, or to a new one, and returns its offset.
    fn pack_short(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        if let Some(offset) = self.add_to_container(record) {
            return offset;
        }
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.count() > 0 && packing.has_room(record.len()) {
            let offset = self.offset.wrapping_add(packing.count() as u64);
            packing.add(record);
            if packing.is_full() {
                self.close_container(out);
            } else {
                packing.set_limit();
            }
            return offset;
        }
        self.end_container(out);
        let offset = self.start_container(out);
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.has_room(record.len()) {
            packing.open(record);
        } else {
            // It does not fit in the block, and no stored container is cut.
            let Ok(()) = self.fragments(Form::Plain, record, out, |_| Ok::<(), Infallible>(()));
        }
        offset
    }

    /// Prepares for a new container, and returns where it starts.
    fn start_container(&mut self, out: &mut Vec<u8>) -> u64 {
        self.start(out);
        self.fill_block(out);
        let room = self.block_left();
        self.packing.as_mut().expect(PACKS).start(room);
        self.offset
    }

    /// Closes the open container, if there is one, and appends it to `out`. The records that follow
    /// are in another one.
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
    /// If there is no memory, this aborts the process or panics as [`encode`](Self::encode) does.
    #[inline]
    pub fn end_container(&mut self, out: &mut Vec<u8>) {
        if self.packing.as_ref().is_some_and(|packing| packing.count() > 0) {
            self.close_container(out);
        }
    }

    #[inline(never)]
    fn close_container(&mut self, out: &mut Vec<u8>) {
        let start = self.offset;
        let packing = self.packing.as_mut().expect(PACKS);
        packing.limit = 0;
        let Filled {
            count,
            lens_len,
            data_len,
        } = std::mem::take(&mut packing.filled);
        // Taken out while it is read, and put back to reuse its memory.
        let mut bytes = std::mem::take(&mut packing.bytes);
        let (body_start, end) = (DATA_START - lens_len, DATA_START + data_len);
        bytes.copy_within(..lens_len, body_start);
        let head = &mut packing.compressed;
        head.clear();
        Head::encode(Codec::Stored, count, head);
        let container_start = body_start - head.len();
        bytes[container_start..body_start].copy_from_slice(head);
        let stored = match count {
            1 => (Form::Plain, &bytes[DATA_START..end]),
            _ => (Form::Packed, &bytes[container_start..end]),
        };
        let is_compressed =
            packing.codec == Codec::Zstd && packing.compress(&bytes[body_start..end], count, start, stored.1.len());
        let Ok(()) = self.container(is_compressed, stored, out, |_| Ok::<(), Infallible>(()));
        self.packing.as_mut().expect(PACKS).bytes = bytes;
    }
}
