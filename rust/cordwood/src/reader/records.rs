//! Iterators over owned records, for use with loops, iterator adapters and collections.

use std::fmt;
use std::iter::FusedIterator;

use super::event::show;
use super::{FileReader, Reader, Record, Source, StreamSource};
use crate::error::{Error, ErrorKind};

/// A record that owns its bytes, as returned by the iterator from [`Reader::records`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedRecord {
    /// File offset of the first fragment header.
    pub offset: u64,
    /// File offset just past the last fragment's payload.
    pub end_offset: u64,
    /// The record's bytes, as they were written.
    pub data: Vec<u8>,
    /// Whether the record starts after damage in the same block. See
    /// [`RecordSpan::is_salvaged`](crate::codec::RecordSpan::is_salvaged).
    pub is_salvaged: bool,
}

/// Formats the record like [`Record`].
impl fmt::Debug for OwnedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = Record {
            offset: self.offset,
            end_offset: self.end_offset,
            data: &self.data,
            is_salvaged: self.is_salvaged,
        };
        show("OwnedRecord", record, f)
    }
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> Self {
        OwnedRecord {
            offset: record.offset,
            end_offset: record.end_offset,
            data: record.data.to_vec(),
            is_salvaged: record.is_salvaged,
        }
    }
}

/// An iterator over the records of a [`Reader`], starting at the reader's position. See
/// [`Reader::records`].
#[derive(Debug)]
pub struct Records<'a, S> {
    reader: &'a mut Reader<S>,
    has_failed: bool,
}

impl<S: Source> Iterator for Records<'_, S> {
    type Item = Result<OwnedRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        next_owned(self.reader, &mut self.has_failed)
    }
}

impl<S: Source> FusedIterator for Records<'_, S> {}

/// An iterator that owns a [`Reader`] and returns its records, starting at the reader's position.
/// See [`Reader::records`].
#[derive(Debug)]
pub struct IntoRecords<S = StreamSource<FileReader>> {
    reader: Reader<S>,
    has_failed: bool,
}

impl<S: Source> Iterator for IntoRecords<S> {
    type Item = Result<OwnedRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        next_owned(&mut self.reader, &mut self.has_failed)
    }
}

impl<S: Source> FusedIterator for IntoRecords<S> {}

fn next_owned<S: Source>(reader: &mut Reader<S>, has_failed: &mut bool) -> Option<Result<OwnedRecord, Error>> {
    if *has_failed {
        return None;
    }
    let next = reader.next_record();
    // After damage, there may be more records. Any other error might be returned again by every
    // later call.
    *has_failed = matches!(&next, Err(error) if !matches!(error.kind, ErrorKind::Corruption { .. }));
    next.map(|record| record.map(OwnedRecord::from)).transpose()
}

/// Like [`Reader::records`], but the iterator owns the reader, so a function can return the
/// iterator.
///
/// ```
/// use cordwood_log::{Error, Reader};
/// fn records(path: &str) -> Result<impl Iterator<Item = Result<Vec<u8>, Error>>, Error> {
///     let reader = Reader::open(path)?;
///     Ok(reader.into_iter().map(|record| Ok(record?.data)))
/// }
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.log");
/// # let path = path.to_str().unwrap();
/// std::fs::write(path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// assert_eq!(records(path)?.collect::<Result<Vec<_>, _>>()?, [b"foo"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: Source> IntoIterator for Reader<S> {
    type Item = Result<OwnedRecord, Error>;
    type IntoIter = IntoRecords<S>;

    fn into_iter(self) -> IntoRecords<S> {
        IntoRecords {
            reader: self,
            has_failed: false,
        }
    }
}

impl<'a, S: Source> IntoIterator for &'a mut Reader<S> {
    type Item = Result<OwnedRecord, Error>;
    type IntoIter = Records<'a, S>;

    fn into_iter(self) -> Records<'a, S> {
        self.records()
    }
}

impl<S: Source> Reader<S> {
    /// Returns an iterator over the remaining records, each owning its bytes. Skips regions between
    /// records. To read records without copying them, use [`next_record`](Reader::next_record).
    ///
    /// Under [`OnCorruption::Fail`](crate::OnCorruption::Fail), the iterator returns damage as an
    /// error, then resumes after it. After any other error, the iterator ends.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// let records: Vec<Vec<u8>> = reader.records().map(|record| Ok(record?.data)).collect::<Result<_, cordwood_log::Error>>()?;
    /// assert_eq!(records, [b"foo", b"foo", b"foo"]);
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    pub fn records(&mut self) -> Records<'_, S> {
        Records {
            reader: self,
            has_failed: false,
        }
    }
}
