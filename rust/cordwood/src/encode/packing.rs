//! Packs records into containers, by the writer's rules in `docs/format/packed.md`.

use std::collections::TryReserveError;
use std::convert::Infallible;

use super::{Encoder, Stopped, append_full};
use crate::compression::{Compressor, lengthen};
use crate::container::{Codec, HEAD_LEN_MAX, Head, STATED_MAX, STORED_LEN_MAX, VARINT_LEN_MAX, ZSTD_LEN_MAX};
use crate::container::{push_varint, varint_len};
use crate::copy::copy_short;
use crate::dialect::{Form, LogFormat};
use crate::format::{BLOCK_LEN, HEADER_LEN, encoded_len};

/// The open container, or the parts needed for the next one.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    codec: Codec,
    count: usize,
    /// The lengths of the records. If the container is to be compressed, their data follows when it
    /// is closed.
    body: Vec<u8>,
    /// The data of the records, and room for more, so that nothing grows when one is added.
    data: Vec<u8>,
    data_len: usize,
    /// The bytes of the block in which it begins, from its beginning on.
    room: usize,
    limits: Limits,
    compressor: Compressor,
    /// The written part of the last container: its codec and count; after them, if it was to be
    /// compressed, its frame or body.
    closed: Vec<u8>,
}

/// The first check of a record: within these limits, it belongs to the open container,
/// and leaves it open.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    /// The data is shorter than this. 0 if no container is open.
    data_len: usize,
    /// The lengths without the new one, and the data, are not longer than this.
    body_len: usize,
    /// There are fewer records than this.
    count: usize,
}

impl Packing {
    /// An empty container, if logs of this format have containers.
    pub(super) fn of(format: &LogFormat) -> Option<Box<Packing>> {
        format.dialect.is_packed().then(|| {
            Box::new(Packing {
                codec: if format.is_zstd() { Codec::Zstd } else { Codec::Stored },
                count: 0,
                body: Vec::new(),
                data: Vec::new(),
                data_len: 0,
                room: 0,
                limits: Limits::default(),
                compressor: Compressor::for_containers(format.is_zstd()),
                closed: Vec::new(),
            })
        })
    }

    /// How many records it has.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many bytes of data it has.
    pub(super) fn data_len(&self) -> usize {
        if self.count == 0 { 0 } else { self.data_len }
    }

    /// The most bytes that it needs in the file.
    pub(super) fn bound(&self) -> usize {
        if self.count == 0 {
            return 0;
        }
        let len = HEAD_LEN_MAX + self.body.len() + self.data_len;
        // One that is not compressed after all may be cut: at the end of the block in which it
        // begins, and of each block that it fills.
        let header_count = len / (BLOCK_LEN - HEADER_LEN) + 2;
        header_count * HEADER_LEN + len
    }

    /// Reserves room for a long record that may be compressed: for a copy of it, and for the frame.
    pub(super) fn try_reserve(&mut self, record_len: usize) -> Result<(), TryReserveError> {
        if self.codec == Codec::Zstd {
            let body_len = record_len.saturating_add(VARINT_LEN_MAX);
            self.body.try_reserve(body_len)?;
            self.closed.clear();
            self.compressor
                .try_reserve(body_len.saturating_add(HEAD_LEN_MAX), &mut self.closed)?;
        }
        Ok(())
    }

    /// Prepares for a container in a block that has `room` bytes left.
    fn begin(&mut self, room: usize) {
        self.room = room;
        self.body.clear();
        self.data_len = 0;
        // The last record is added when the data is still shorter than the limit.
        self.data.resize(self.data_len_max() + STORED_LEN_MAX, 0);
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
        self.limits = match self.codec {
            Codec::Stored => Limits {
                data_len: self.data_len_max(),
                body_len: self.room.saturating_sub(HEADER_LEN + HEAD_LEN_MAX + VARINT_LEN_MAX),
                count: usize::MAX,
            },
            Codec::Zstd => Limits {
                data_len: self.data_len_max(),
                body_len: usize::MAX,
                // The offset of each record is in the block in which the container begins.
                count: self.room - 1,
            },
        };
    }

    /// Adds a record if the container is open, and certainly stays so. Most records are added here.
    #[inline(always)]
    pub(super) fn add_within_limits(&mut self, record: &[u8]) -> bool {
        let Limits {
            data_len,
            body_len,
            count,
        } = self.limits;
        let end = self.data_len + record.len();
        let is_within = Encoder::shares_container(record.len())
            && end < data_len
            && self.body.len() + end <= body_len
            && self.count < count;
        if is_within {
            self.add(record);
        }
        is_within
    }

    #[inline(always)]
    fn add(&mut self, record: &[u8]) {
        push_varint(record.len() as u64, &mut self.body);
        copy_short(&mut self.data[self.data_len..], record);
        self.data_len += record.len();
        self.count += 1;
    }

    /// Whether a record of this length can be added.
    fn has_room(&self, record_len: usize) -> bool {
        if self.codec == Codec::Zstd {
            return true;
        }
        if self.count == 0 {
            // Alone, it is an ordinary record.
            return HEADER_LEN + record_len <= self.room;
        }
        let head_len = HEADER_LEN + 1 + varint_len(self.count as u64 + 1);
        let body_len = self.body.len() + varint_len(record_len as u64) + self.data_len + record_len;
        head_len + body_len <= self.room
    }

    /// Whether it is closed before any further record. A stored one is not longer than its block.
    fn is_full(&self) -> bool {
        self.data_len >= self.data_len_max() || (self.codec == Codec::Zstd && self.count >= self.room)
    }

    /// Compresses `body`, `count` records with `data_len` bytes of data, into `closed`, which becomes
    /// long enough for an offset for each record. Returns whether that is to be written: if it is
    /// shorter than the stored form.
    fn compress(&mut self, count: usize, begin: u64, data_len: usize) -> bool {
        self.closed.clear();
        Head::encode(Codec::Zstd, count, &mut self.closed);
        let len_before = match count {
            1 => data_len,
            _ => self.closed.len() + self.body.len(),
        };
        let frame_begin = self.closed.len();
        if self.codec != Codec::Zstd || !self.compressor.append(&self.body, &mut self.closed) {
            return false;
        }
        let file_len = encoded_len(begin, self.closed.len() as u64);
        if file_len < count as u64 {
            lengthen(&mut self.closed, frame_begin, count - file_len as usize);
        }
        self.closed.len() < len_before
    }

    /// Adds `records` for as long as their lengths are one byte each and they are
    /// [within the limits](Self::add_within_limits). Returns the first one that is not.
    fn add_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        record_len_max: u64,
        added: &mut u64,
    ) -> Option<R> {
        let limits = self.limits;
        let mut taken = Taken::new(self);
        let count_before = taken.count;
        let stopped = loop {
            let Some(record) = records.next() else {
                break None;
            };
            // Called only once: a second call could return other bytes.
            let bytes = record.as_ref();
            let end = taken.data_len + bytes.len();
            let is_within = bytes.len() as u64 <= record_len_max.min(SHORT_LEN_MAX)
                && end < limits.data_len
                && taken.body.len() + end <= limits.body_len
                && taken.count < limits.count
                // Shows the compiler that nothing is allocated in the loop.
                && taken.body.len() < taken.body.capacity();
            if !is_within {
                break Some(record);
            }
            taken.body.push(bytes.len() as u8);
            copy_short(&mut taken.packing.data[taken.data_len..], bytes);
            taken.data_len = end;
            taken.count += 1;
        };
        *added += (taken.count - count_before) as u64;
        stopped
    }
}

/// The greatest length whose varint is one byte.
const SHORT_LEN_MAX: u64 = 0x7f;

/// What grows with each record of an open container, taken out of its place so that the compiler can
/// keep it in registers. It is put back, also if `as_ref` panics.
struct Taken<'a> {
    body: Vec<u8>,
    data_len: usize,
    count: usize,
    packing: &'a mut Packing,
}

impl<'a> Taken<'a> {
    #[inline(always)]
    fn new(packing: &'a mut Packing) -> Self {
        Taken {
            body: std::mem::take(&mut packing.body),
            data_len: packing.data_len,
            count: packing.count,
            packing,
        }
    }
}

impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.packing.body = std::mem::take(&mut self.body);
        self.packing.data_len = self.data_len;
        self.packing.count = self.count;
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
        let offset = self.begin_container(out);
        let packing = self.packing.as_mut().expect(PACKS);
        let may_be_compressed = packing.codec == Codec::Zstd && record.len() as u64 <= STATED_MAX;
        if may_be_compressed {
            push_varint(record.len() as u64, &mut packing.body);
            packing.body.extend_from_slice(record);
        }
        if !(may_be_compressed && packing.compress(1, offset, record.len())) {
            return self.fragments(Form::Plain, record, out, take).map(|()| offset);
        }
        let closed = std::mem::take(&mut packing.closed);
        let written = self.fragments(Form::Packed, &closed, out, take);
        self.packing.as_mut().expect(PACKS).closed = closed;
        written.map(|()| offset)
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
        let offset = self.offset.wrapping_add(packing.count as u64);
        packing.add_within_limits(record).then_some(offset)
    }

    /// Adds a short record to the open container, or to a new one, and returns its offset.
    fn pack_short(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        if let Some(offset) = self.add_to_container(record) {
            return offset;
        }
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.count > 0 && packing.has_room(record.len()) {
            let offset = self.offset.wrapping_add(packing.count as u64);
            packing.add(record);
            if packing.is_full() {
                self.close_container(out);
            }
            return offset;
        }
        self.end_container(out);
        let offset = self.begin_container(out);
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.has_room(record.len()) {
            packing.open(record);
        } else {
            // It does not fit in the block, and no stored container is cut.
            let Ok(()) = self.fragments(Form::Plain, record, out, |_| Ok::<(), Infallible>(()));
        }
        offset
    }

    /// Prepares for a new container, and returns where it begins.
    fn begin_container(&mut self, out: &mut Vec<u8>) -> u64 {
        self.begin(out);
        self.fill_block(out);
        let room = self.format.dialect.block_left(self.offset);
        self.packing.as_mut().expect(PACKS).begin(room);
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
        if self.packing.as_ref().is_some_and(|packing| packing.count > 0) {
            self.close_container(out);
        }
    }

    #[inline(never)]
    fn close_container(&mut self, out: &mut Vec<u8>) {
        let packing = self.packing.as_mut().expect(PACKS);
        let count = std::mem::take(&mut packing.count);
        packing.limits = Limits::default();
        if packing.codec == Codec::Stored {
            let Packing {
                body,
                data,
                data_len,
                closed,
                ..
            } = &mut **packing;
            let data = &data[..*data_len];
            // It does not leave its block, so it is not cut.
            let len = if count == 1 {
                append_full(Form::Plain, [data], out)
            } else {
                closed.clear();
                Head::encode(Codec::Stored, count, closed);
                append_full(Form::Packed, [closed, body, data], out)
            };
            return self.advance(len);
        }
        let data_len = packing.data_len;
        packing.body.extend_from_slice(&packing.data[..data_len]);
        let is_compressed = packing.compress(count, self.offset, data_len);
        if !is_compressed && count > 1 {
            packing.closed.clear();
            Head::encode(Codec::Stored, count, &mut packing.closed);
            packing.closed.extend_from_slice(&packing.body);
        }
        let (form, payload, len) = match is_compressed || count > 1 {
            true => (Form::Packed, &mut packing.closed, None),
            false => (Form::Plain, &mut packing.data, Some(data_len)),
        };
        // Taken out while it is read, and put back to reuse its memory.
        let bytes = std::mem::take(payload);
        let Ok(()) = self.fragments(form, &bytes[..len.unwrap_or(bytes.len())], out, |_| {
            Ok::<(), Infallible>(())
        });
        let packing = self.packing.as_mut().expect(PACKS);
        match form {
            Form::Packed => packing.closed = bytes,
            _ => packing.data = bytes,
        }
    }
}
