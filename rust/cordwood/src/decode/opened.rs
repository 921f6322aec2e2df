//! The records in a container. The container is opened once, and its records are returned one by
//! one.

use std::ops::Range;

use super::unpack::Failed;
use super::{DataAt, Decoder, RecordSpan, Step, Window};
use crate::assemble::Stored;
use crate::container::{Codec, Head, read_offsets};
use crate::damage::{Reason, SkippedRegion};
use crate::dialect::Unsupported;
use crate::error::Refused;

/// The last container opened, and how many of its records have been returned so far.
#[derive(Debug)]
pub(super) struct Opened {
    /// File offsets of the container.
    start: u64,
    end: u64,
    data: Data,
    /// The start of each record in the data, followed by the end of the last record.
    offsets: Vec<usize>,
    /// The index of the next record.
    next: usize,
    /// The index of the first record that has not been examined yet.
    found: usize,
    /// The index after the last record in the range.
    limit: usize,
    /// The index of the first record that is returned rather than skipped. In statistics, this
    /// record accounts for all of the container's space. `None` if the container starts before the
    /// range.
    counted: Option<usize>,
    is_salvaged: bool,
    /// Whether any record in the container is longer than the limit.
    has_long: bool,
    record_len_max: u64,
}

/// Where the records' data starts, after their lengths.
#[derive(Debug, Clone, Copy)]
enum Data {
    /// The container is stored in one fragment, so its data is in the window, at this file offset.
    Window(u64),
    /// The container is stored in several fragments, so its data is in the assembler, at this
    /// position.
    Joined(usize),
    /// The container was decompressed, so its data is in the unpacker, at this position.
    Unpacked(usize),
}

#[cfg(test)]
thread_local! {
    /// The number of containers that this thread has opened.
    pub(crate) static OPENED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The records in an opened container that haven't been returned yet. Used by a caller that copies
/// many records at once.
pub(crate) struct Rest<'a> {
    /// The data of the records, in order.
    pub(crate) data: &'a [u8],
    /// The start of each record in the container's data, followed by the end of the last record.
    pub(crate) offsets: &'a [usize],
    /// The file offset of the first record. Each subsequent record's offset is one greater than the
    /// previous one's.
    pub(crate) offset: u64,
    /// The file offset just past the last record.
    pub(crate) end_offset: u64,
}

impl Opened {
    pub(super) fn new(record_len_max: u64) -> Self {
        Opened {
            start: 0,
            end: 0,
            data: Data::Unpacked(0),
            offsets: Vec::new(),
            next: 0,
            found: 0,
            limit: 0,
            counted: None,
            is_salvaged: false,
            has_long: false,
            record_len_max,
        }
    }

    /// Checks whether `offset` is the offset of any record in the container except the first.
    pub(super) fn is_divided_at(&self, offset: u64) -> bool {
        let records = self.start + 1..self.end.min(self.start + self.offsets.len().saturating_sub(1) as u64);
        records.contains(&offset)
    }

    /// Discards the remaining records.
    pub(super) fn clear(&mut self) {
        (self.found, self.limit) = (self.next, self.next);
    }

    #[inline]
    fn is_left(&self) -> bool {
        self.next < self.limit
    }

    #[inline]
    fn is_long(&self, index: usize) -> bool {
        self.has_long && self.place(index).len() as u64 > self.record_len_max
    }

    /// Returns the position of a record in the data.
    #[inline]
    fn place(&self, index: usize) -> Range<usize> {
        // Reading the later entry first lets the compiler use a single bounds check for both
        // entries.
        let end = self.offsets[index + 1];
        self.offsets[index]..end
    }

    /// Returns the file offset just past a record: either the start of the next record or the end
    /// of the container.
    #[inline]
    fn end_offset(&self, index: usize) -> u64 {
        if index + 2 == self.offsets.len() {
            self.end
        } else {
            self.start + index as u64 + 1
        }
    }

    /// Finds the next records, stopping at one that is too long.
    fn find(&mut self) {
        let long = (self.next..self.limit).find(|&index| self.is_long(index));
        self.found = long.unwrap_or(self.limit);
    }

    /// Returns the next record found, without taking it.
    #[inline]
    fn peek(&self) -> Option<RecordSpan> {
        (self.next < self.found).then(|| RecordSpan {
            offset: self.start + self.next as u64,
            end_offset: self.end_offset(self.next),
            data_at: DataAt::Container {
                // The index is at most `COUNT_MAX`.
                index: self.next as u16,
            },
            is_salvaged: self.is_salvaged,
        })
    }

    /// Takes `count` records, and returns the file offset after them.
    #[inline]
    fn take(&mut self, count: usize) -> u64 {
        self.next += count;
        if self.is_left() {
            self.start + self.next as u64
        } else {
            self.end
        }
    }
}

impl Decoder {
    /// Returns the opened container's next record, if any, without taking it.
    #[inline]
    pub(crate) fn peek_of_container(&self) -> Option<RecordSpan> {
        self.opened.peek()
    }

    /// Takes the next `count` records in the opened container.
    #[inline]
    pub(crate) fn take_of_container(&mut self, count: usize) {
        self.offset = self.opened.take(count);
    }

    /// Takes and returns the opened container's next record, if any.
    #[inline]
    pub(crate) fn next_of_container(&mut self) -> Option<RecordSpan> {
        let span = self.opened.peek()?;
        self.take_of_container(1);
        Some(span)
    }

    /// Returns the bytes of the record most recently taken from the opened container.
    #[inline]
    pub(crate) fn data_before_next<'a>(&'a self, window: Window<'a>) -> &'a [u8] {
        self.opened_data(window, self.opened.place(self.opened.next - 1))
    }

    /// Returns the records in the opened container that were found but not taken. Returns `None` if
    /// none are left, or if the container is salvaged.
    pub(crate) fn rest_of_container<'a>(&'a self, window: Window<'a>) -> Option<Rest<'a>> {
        let opened = &self.opened;
        if opened.next >= opened.found || opened.is_salvaged {
            return None;
        }
        let offsets = &opened.offsets[opened.next..=opened.found];
        Some(Rest {
            data: self.opened_data(window, offsets[0]..offsets[offsets.len() - 1]),
            offsets,
            offset: opened.start + opened.next as u64,
            end_offset: opened.end_offset(opened.found - 1),
        })
    }

    /// Returns how many records of the opened container are left, including the one at `span`.
    pub(crate) fn rest_len(&self, span: RecordSpan) -> u64 {
        match span.data_at {
            DataAt::Container { index } => {
                let rest = usize::from(index)..self.opened.limit;
                rest.filter(|&index| !self.opened.is_long(index)).count() as u64
            }
            DataAt::Window { .. } | DataAt::Joined | DataAt::Unpacked => 1,
        }
    }

    /// Returns the file offset of the first header of the record just found. If the record is in a
    /// container, the result is the offset of the container's header.
    pub(crate) fn start_of_record(&self, span: RecordSpan) -> u64 {
        match span.data_at {
            DataAt::Container { .. } => self.opened.start,
            DataAt::Window { .. } | DataAt::Joined | DataAt::Unpacked => span.offset,
        }
    }

    /// Returns the file offset of the first header in the region just found, or of the container's
    /// header if the region is a record in a container. Such a record can be too long even though
    /// the container isn't.
    pub(crate) fn start_of_region(&self, region: SkippedRegion) -> u64 {
        let container = self.container_at(region.start);
        let container = container.filter(|_| region.reason == Reason::RecordTooLarge);
        container.map_or(region.start, |container| container.start)
    }

    /// Returns the opened container's file offsets if they include `offset`, and otherwise `None`.
    pub(crate) fn container_at(&self, offset: u64) -> Option<Range<u64>> {
        let range = self.opened.start..self.opened.end;
        range.contains(&offset).then_some(range)
    }

    /// Returns the bytes of a record in the opened container.
    // Not inlined, because inlining would slow down loops over short records outside containers.
    #[inline(never)]
    pub(super) fn data_in_container<'a>(&'a self, window: Window<'a>, index: u16) -> &'a [u8] {
        self.opened_data(window, self.opened.place(usize::from(index)))
    }

    #[inline(never)]
    pub(super) fn len_in_container(&self, index: u16) -> u64 {
        self.opened.place(usize::from(index)).len() as u64
    }

    /// Returns the data of the opened container at this position.
    #[inline]
    fn opened_data<'a>(&'a self, window: Window<'a>, place: Range<usize>) -> &'a [u8] {
        let (held, start) = match self.opened.data {
            Data::Window(offset) => return window.slice(offset + place.start as u64, place.len()),
            Data::Joined(start) => (self.assembler.joined(), start),
            Data::Unpacked(start) => (self.unpacker.data(), start),
        };
        &held[start + place.start..start + place.end]
    }

    /// Returns the space a record takes up in the file. The first record returned from a container
    /// accounts for all of the container's space. The other records account for none of it.
    pub(super) fn stored_in_container(&self, index: u16) -> Stored {
        if self.opened.counted == Some(usize::from(index)) {
            self.stored
        } else {
            Stored::default()
        }
    }

    /// Returns the opened container's next event, if any. If the next record is too long, the event
    /// is a region. Otherwise, it is the record, which stays in the container.
    #[cold]
    pub(super) fn look_in_container(&mut self) -> Option<Step> {
        if !self.opened.is_left() {
            return None;
        }
        let index = self.opened.next;
        if !self.opened.is_long(index) {
            self.opened.find();
            return self.peek_of_container().map(Step::Record);
        }
        let region = SkippedRegion::new(
            self.opened.start + index as u64..self.opened.end_offset(index),
            Reason::RecordTooLarge,
        );
        self.take_of_container(1);
        Some(self.skip(region))
    }

    /// Opens the container at `span`. `payload` is the payload of its last fragment. Returns the
    /// container's first event in the range, or `None` if the caller must look again.
    ///
    /// A container that starts before the range may contain records in the range, but faults in the
    /// container belong to the previous range.
    pub(super) fn open(&mut self, span: RecordSpan, payload: &[u8]) -> Option<Step> {
        let is_joined = span.data_at == DataAt::Joined;
        let container = if is_joined { self.assembler.joined() } else { payload };
        let (start, end) = (span.offset, span.end_offset);
        let is_early = start < self.bounds.start;
        let before = self.bounds.start.saturating_sub(start);

        let bad = |reason| SkippedRegion::new(start..end, reason);
        let Some(&byte) = container.first() else {
            return self.skip_own(bad(Reason::BadContainer));
        };
        let codec = Codec::from_byte(byte);
        let is_readable = codec == Some(Codec::Stored) || (codec.is_some() && cfg!(feature = "zstd"));
        if !is_readable {
            if is_early && end <= self.bounds.start {
                return None;
            }
            // An apparent container after damage may be part of another record's payload. If
            // checksums are not verified, damage to the codec byte goes unnoticed.
            if span.is_salvaged || !self.policy.verify_checksums {
                return self.skip_own(bad(Reason::UnsupportedCompression));
            }
            let unsupported = match codec {
                Some(_) => Unsupported::ZstdFeature,
                None => Unsupported::Codec {
                    codec: byte.into(),
                    offset: start,
                },
            };
            return Some(self.refuse_again(span, Refused::Unsupported(unsupported)));
        }
        let block_end = start.saturating_add(self.grid().block_left(start) as u64);
        let head = Head::decode(container).filter(|head| head.has_offsets(start, end, block_end));
        let Some(head) = head else {
            return self.skip_own(bad(Reason::BadContainer));
        };
        // A container with no records in the range is not opened.
        if before >= head.count as u64 {
            return None;
        }
        #[cfg(test)]
        OPENED.set(OPENED.get() + 1);
        let stored_body = &container[head.len..];
        let is_unpacked = codec == Some(Codec::Zstd);
        let body = if is_unpacked {
            match self.unpacker.unpack_container(span, stored_body, head.count) {
                Ok(()) => self.unpacker.data(),
                Err(Failed::Bad(reason)) => return self.skip_own(bad(reason)),
                Err(Failed::Refused(refused)) => return Some(self.refuse_again(span, refused)),
            }
        } else {
            stored_body
        };
        if self.opened.offsets.try_reserve(head.count + 1).is_err() {
            return Some(self.refuse_again(span, Refused::OutOfMemory));
        }
        let Some(data_start) = read_offsets(body, head.count, &mut self.opened.offsets) else {
            return self.skip_own(bad(Reason::BadContainer));
        };

        let opened = &mut self.opened;
        let len_max = opened.record_len_max;
        let is_long = |place: &[usize]| (place[1] - place[0]) as u64 > len_max;
        opened.has_long = body.len() as u64 > len_max && opened.offsets.windows(2).any(is_long);
        opened.data = match is_unpacked {
            true => Data::Unpacked(data_start),
            false if is_joined => Data::Joined(head.len + data_start),
            false => Data::Window(end - (body.len() - data_start) as u64),
        };
        (opened.start, opened.end) = (start, end);
        // `before` is less than `count`, because it is the index of the first record in the range.
        opened.next = before as usize;
        opened.found = opened.next;
        let limit = self.bounds.end.saturating_sub(start);
        opened.limit = head.count.min(usize::try_from(limit).unwrap_or(usize::MAX));
        opened.is_salvaged = span.is_salvaged;
        opened.counted = (0..opened.limit)
            .find(|&index| !opened.is_long(index))
            .filter(|_| !is_early);
        self.offset = opened.take(0);
        self.look_in_container()
    }

    /// Refuses the record or container at `span`. The next call tries again to unpack it.
    #[cold]
    pub(super) fn refuse_again(&mut self, span: RecordSpan, refused: Refused) -> Step {
        if span.data_at == DataAt::Joined {
            self.retry.joined = Some(span);
        } else {
            // The record is in the window, so the decoder can read it again.
            self.offset = span.offset;
        }
        self.refuse(refused)
    }

    /// Returns where to start reading to find the event at `offset`. A record must start or end at
    /// `offset`. If the record may be in a container, the result is the start of the block.
    pub(crate) fn start_of(&self, offset: u64) -> u64 {
        let dialect = self.format.dialect;
        if dialect.is_packed() || (dialect.has_containers() && self.opened.end > 0) {
            self.grid().block_start(offset)
        } else {
            offset
        }
    }
}
