//! Packs records into containers, by the writer's rules in `docs/format/packed.md`.

use std::collections::TryReserveError;
use std::convert::Infallible;

use super::{Encoder, Stopped};
use crate::compression::Compressor;
use crate::container::{Codec, HEAD_LEN_MAX, Head, STORED_LEN_MAX, VARINT_LEN_MAX, ZSTD_LEN_MAX};
use crate::container::{push_varint, varint_len};
use crate::dialect::{Form, LogFormat};
use crate::format::{HEADER_LEN, encoded_len};

/// The open container, or what is needed for the next one.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    codec: Codec,
    count: usize,
    /// The lengths of the records. Their data follows when the container is closed.
    body: Vec<u8>,
    data: Vec<u8>,
    /// The bytes of the block in which it begins, from its beginning on.
    room: usize,
    compressor: Compressor,
    /// The last container that was closed: codec, count, and the body or its frame.
    closed: Vec<u8>,
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
                room: 0,
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
        if self.count == 0 { 0 } else { self.data.len() }
    }

    /// The most bytes that it needs in the file.
    pub(super) fn bound(&self) -> usize {
        match self.count {
            0 => 0,
            // One that is not compressed after all may reach into the next block.
            _ => 2 * HEADER_LEN + HEAD_LEN_MAX + self.body.len() + self.data.len(),
        }
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

    /// Whether a record of this length can be added.
    #[inline]
    fn has_room(&self, record_len: usize) -> bool {
        let len = self.body.len() + self.data.len() + record_len;
        // Nearly always, and decided without the lengths of two varints.
        self.codec == Codec::Zstd
            || HEADER_LEN + HEAD_LEN_MAX + VARINT_LEN_MAX + len <= self.room
            || self.has_exact_room(record_len)
    }

    #[inline(never)]
    fn has_exact_room(&self, record_len: usize) -> bool {
        if self.count == 0 {
            // Alone, it is an ordinary record.
            return HEADER_LEN + record_len <= self.room;
        }
        let head_len = HEADER_LEN + 1 + varint_len(self.count as u64 + 1);
        let body_len = self.body.len() + varint_len(record_len as u64) + self.data.len() + record_len;
        head_len + body_len <= self.room
    }

    #[inline]
    fn add(&mut self, record: &[u8]) {
        push_varint(record.len() as u64, &mut self.body);
        self.data.extend_from_slice(record);
        self.count += 1;
    }

    /// Adds `records` in one loop, for as long as the container is open and none of them can close
    /// it. Returns the one for which that is not known, if there is one.
    fn add_all<R: AsRef<[u8]>>(
        &mut self,
        records: &mut impl Iterator<Item = R>,
        record_len_max: u64,
        added: &mut u64,
    ) -> Stopped<R> {
        let (data_len_max, count_max) = (self.data_len_max(), self.count_max());
        let record_len_max = record_len_max.min(STORED_LEN_MAX as u64 - 1);
        let room = match self.codec {
            Codec::Stored => self.room.saturating_sub(HEADER_LEN + HEAD_LEN_MAX + VARINT_LEN_MAX),
            Codec::Zstd => usize::MAX,
        };
        let Packing { body, data, count, .. } = self;
        loop {
            let Some(record) = records.next() else {
                return Stopped::AtEnd;
            };
            // Called only once: a second call could return other bytes.
            let bytes = record.as_ref();
            let data_len = data.len() + bytes.len();
            let is_open = *count > 0 && data_len < data_len_max && *count + 1 < count_max;
            if !is_open || body.len() + data_len > room || bytes.len() as u64 > record_len_max {
                return Stopped::At(record);
            }
            push_varint(bytes.len() as u64, body);
            data.extend_from_slice(bytes);
            *count += 1;
            *added += 1;
        }
    }

    /// Whether it is closed, whatever follows.
    #[inline]
    fn is_full(&self) -> bool {
        self.data.len() >= self.data_len_max() || self.count >= self.count_max()
    }

    /// The length of data at which it is closed.
    #[inline]
    fn data_len_max(&self) -> usize {
        match self.codec {
            Codec::Stored => STORED_LEN_MAX,
            Codec::Zstd => ZSTD_LEN_MAX,
        }
    }

    /// The count of records at which it is closed: the offset of each is in the block in which the
    /// container begins. A stored one is not longer than its block.
    #[inline]
    fn count_max(&self) -> usize {
        match self.codec {
            Codec::Stored => usize::MAX,
            Codec::Zstd => self.room,
        }
    }

    /// Closes the container, which begins at the offset `begin`, and leaves its bytes in `closed`.
    /// Returns whether they are a container; if not, `data` is an ordinary record.
    fn close(&mut self, begin: u64) -> bool {
        let count = std::mem::take(&mut self.count);
        self.body.extend_from_slice(&self.data);
        if self.compress(count, begin, self.data.len()) {
            return true;
        }
        self.closed.clear();
        Head::encode(Codec::Stored, count, &mut self.closed);
        self.closed.extend_from_slice(&self.body);
        count > 1
    }

    /// Compresses `body`, `count` records with `data_len` bytes of data, into `closed`. Returns
    /// whether that is to be written: if it is shorter than what is written otherwise, and long
    /// enough for an offset for each record.
    fn compress(&mut self, count: usize, begin: u64, data_len: usize) -> bool {
        self.closed.clear();
        Head::encode(Codec::Zstd, count, &mut self.closed);
        let len_before = match count {
            1 => data_len,
            _ => self.closed.len() + self.body.len(),
        };
        self.codec == Codec::Zstd
            && self.compressor.append(&self.body, &mut self.closed)
            && self.closed.len() < len_before
            && encoded_len(begin, self.closed.len() as u64) >= count as u64
    }
}

const PACKS: &str = "this is called only if there are containers";

impl Encoder {
    /// [`encode_in_pieces`](Self::encode_in_pieces) in a dialect with containers. A short record is
    /// added to the open one, and nothing is taken.
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
        if packing.codec == Codec::Zstd {
            push_varint(record.len() as u64, &mut packing.body);
            packing.body.extend_from_slice(record);
        }
        if !packing.compress(1, offset, record.len()) {
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
            let stopped = self
                .packing
                .as_mut()
                .expect(PACKS)
                .add_all(records, record_len_max, count);
            let Stopped::At(record) = stopped else {
                return stopped;
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

    /// Adds a record to the open container, or to a new one, and returns its offset.
    #[inline]
    fn pack_short(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.count == 0 || !packing.has_room(record.len()) {
            return self.pack_first(record, out);
        }
        let offset = self.offset.wrapping_add(packing.count as u64);
        packing.add(record);
        if packing.is_full() {
            self.close_container(out);
        }
        offset
    }

    /// [`pack_short`](Self::pack_short) for the first record of a container.
    #[inline(never)]
    fn pack_first(&mut self, record: &[u8], out: &mut Vec<u8>) -> u64 {
        self.end_container(out);
        let offset = self.begin_container(out);
        let packing = self.packing.as_mut().expect(PACKS);
        if packing.has_room(record.len()) {
            packing.add(record);
            if packing.is_full() {
                self.close_container(out);
            }
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
        let packing = self.packing.as_mut().expect(PACKS);
        packing.room = room;
        packing.body.clear();
        packing.data.clear();
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
        let (form, payload) = match packing.close(self.offset) {
            true => (Form::Packed, &mut packing.closed),
            false => (Form::Plain, &mut packing.data),
        };
        // Taken out while it is read, and put back to reuse its memory.
        let bytes = std::mem::take(payload);
        let Ok(()) = self.fragments(form, &bytes, out, |_| Ok::<(), Infallible>(()));
        let packing = self.packing.as_mut().expect(PACKS);
        match form {
            Form::Packed => packing.closed = bytes,
            _ => packing.data = bytes,
        }
    }
}
