//! Reads the fields of a protocol buffer (<https://protobuf.dev/programming-guides/encoding>),
//! including groups.

use super::error::{PayloadError, PayloadReason};
use super::wire::Cursor;

/// A message or a group, as a range of bytes in the record. Offsets are relative to the start of
/// the record.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    /// The record, up to the end of this message.
    record: &'a [u8],
    start: usize,
    cursor: Cursor<'a>,
}

/// A field, including its number, content and position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) number: u32,
    data: Data<'a>,
    offset: usize,
    /// The record, up to the end of the field.
    record: &'a [u8],
}

/// The contents of a field, depending on its wire type.
#[derive(Debug, Clone, Copy)]
enum Data<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    /// Text, bytes or a message, without the length prefix.
    Bytes(&'a [u8]),
    /// A group: the range of bytes between its start tag and its end tag.
    Group {
        start: usize,
        end: usize,
    },
}

/// A field that is kept but not interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OtherField<'a> {
    /// The name of the message that contains the field, such as `"EntityProto"` or `"Property"`.
    pub message: &'static str,
    /// The number of the field.
    pub number: u32,
    /// The byte offset in the record where the field starts.
    pub offset: usize,
    /// The whole field: its tag and its contents.
    pub bytes: &'a [u8],
}

/// Reads the fields of a message. Each field listed before the semicolon sets a variable and may
/// appear only once. Fields listed after the semicolon may be repeated. All other fields are either
/// skipped, or kept in a list along with the name of the message.
macro_rules! fields {
    (
        $message:expr, $field:ident => {
            $($number:literal => $place:expr, $value:expr),* $(,)?
            $(; $($each:literal => $read:expr),* $(,)?)?
        }
        $(, $others:expr, $name:expr)?
    ) => {
        while let Some($field) = $message.next_field()? {
            match $field.number {
                $($number => $field.set(&mut $place, $value?)?,)*
                $($($each => $read,)*)?
                _ => {
                    $($others.push($field.other($name));)?
                }
            }
        }
    };
}

pub(super) use fields;

const START_GROUP: u32 = 3;
const END_GROUP: u32 = 4;

/// The maximum depth of nested groups in skipped fields.
const GROUP_DEPTH_MAX: usize = 100;

impl<'a> Message<'a> {
    pub(super) fn new(record: &'a [u8]) -> Self {
        Message::at(record, 0)
    }

    fn at(record: &'a [u8], start: usize) -> Self {
        Message {
            record,
            start,
            cursor: Cursor::new(record, start),
        }
    }

    /// Returns the whole message.
    #[inline]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.record.get(self.start..).unwrap_or_default()
    }

    /// Returns the bytes of the fields not yet read.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// Skips `len` bytes, which must end at a field boundary.
    #[inline]
    pub(super) fn skip(&mut self, len: usize) {
        self.cursor.skip(len);
    }

    /// Returns the last `len` bytes of this message as a message or a group.
    #[inline]
    pub(super) fn tail(&self, len: usize) -> Message<'a> {
        Message::at(self.record, self.record.len().saturating_sub(len))
    }

    /// Returns an error about the whole message.
    pub(super) fn error(&self, reason: PayloadReason) -> PayloadError {
        PayloadError::new(self.start, self.record.len() - self.start, reason)
    }

    /// Returns the error for a missing required field.
    pub(super) fn missing(&self, tag: u32) -> PayloadError {
        self.error(PayloadReason::MissingField { tag })
    }

    // This function is inlined into each loop over fields. Otherwise each field would be assembled
    // in memory only to be taken apart again. Inlining makes decoding an entity almost twice as
    // fast.
    #[inline(always)]
    pub(super) fn next_field(&mut self) -> Result<Option<Field<'a>>, PayloadError> {
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        let offset = self.cursor.offset();
        let (number, wire_type) = self.tag()?;
        let data = match wire_type {
            0 => Data::Varint(self.cursor.varint64()?),
            2 => Data::Bytes(self.cursor.string()?),
            1 => Data::Fixed64(self.cursor.fixed64()?),
            _ => self.rare_data(offset, number, wire_type)?,
        };
        Ok(Some(Field {
            number,
            data,
            offset,
            record: &self.record[..self.cursor.offset()],
        }))
    }

    #[inline(never)]
    fn rare_data(&mut self, offset: usize, number: u32, wire_type: u32) -> Result<Data<'a>, PayloadError> {
        match wire_type {
            START_GROUP => {
                let start = self.cursor.offset();
                let end = self.skip_group(number)?;
                Ok(Data::Group { start, end })
            }
            5 => {
                self.cursor.fixed32()?;
                Ok(Data::Fixed32)
            }
            _ => Err(self.cursor.error(offset, PayloadReason::BadWireType)),
        }
    }

    #[inline(always)]
    fn tag(&mut self) -> Result<(u32, u32), PayloadError> {
        let offset = self.cursor.offset();
        let tag = self.cursor.varint32()?;
        if tag >> 3 == 0 {
            return Err(self.cursor.error(offset, PayloadReason::UnknownTag { tag: 0 }));
        }
        Ok((tag >> 3, tag & 7))
    }

    /// Skips a group, including its end tag, and returns the offset of that tag. Groups can contain
    /// groups, but this function is not recursive.
    fn skip_group(&mut self, number: u32) -> Result<usize, PayloadError> {
        // The field numbers of the open groups inside this group.
        let mut open = Vec::new();
        let outermost = number;
        loop {
            let offset = self.cursor.offset();
            let (number, wire_type) = self.tag()?;
            match wire_type {
                0 => drop(self.cursor.varint64()?),
                1 => drop(self.cursor.fixed64()?),
                2 => drop(self.cursor.string()?),
                5 => drop(self.cursor.fixed32()?),
                START_GROUP if open.len() + 1 == GROUP_DEPTH_MAX => {
                    return Err(self.cursor.error(offset, PayloadReason::TooDeep));
                }
                START_GROUP => open.push(number),
                END_GROUP if open.is_empty() && number == outermost => return Ok(offset),
                END_GROUP if open.pop() == Some(number) => {}
                _ => return Err(self.cursor.error(offset, PayloadReason::BadWireType)),
            }
        }
    }
}

impl<'a> Field<'a> {
    pub(super) fn error(&self, reason: PayloadReason) -> PayloadError {
        PayloadError::new(self.offset, self.record.len() - self.offset, reason)
    }

    /// Sets the value. Fails if it is already set. A general reader would instead use the last
    /// value of a repeated field.
    #[inline]
    pub(super) fn set<T>(&self, place: &mut Option<T>, value: T) -> Result<(), PayloadError> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.error(PayloadReason::NonCanonical)),
        }
    }

    #[inline]
    pub(super) fn varint(&self) -> Result<u64, PayloadError> {
        match self.data {
            Data::Varint(value) => Ok(value),
            _ => Err(self.error(PayloadReason::BadWireType)),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, PayloadError> {
        match self.varint()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error(PayloadReason::NonCanonical)),
        }
    }

    pub(super) fn double(&self) -> Result<f64, PayloadError> {
        match self.data {
            Data::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(self.error(PayloadReason::BadWireType)),
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> Result<&'a [u8], PayloadError> {
        match self.data {
            Data::Bytes(bytes) => Ok(bytes),
            _ => Err(self.error(PayloadReason::BadWireType)),
        }
    }

    pub(super) fn text(&self) -> Result<&'a str, PayloadError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.error(PayloadReason::NotUtf8))
    }

    #[inline]
    pub(super) fn message(&self) -> Result<Message<'a>, PayloadError> {
        Ok(Message::at(self.record, self.record.len() - self.bytes()?.len()))
    }

    pub(super) fn group(&self) -> Result<Message<'a>, PayloadError> {
        match self.data {
            Data::Group { start, end } => Ok(Message::at(&self.record[..end], start)),
            _ => Err(self.error(PayloadReason::BadWireType)),
        }
    }

    pub(super) fn other(&self, message: &'static str) -> OtherField<'a> {
        OtherField {
            message,
            number: self.number,
            offset: self.offset,
            bytes: &self.record[self.offset..],
        }
    }
}
