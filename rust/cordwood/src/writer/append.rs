//! Opening a file to append to it.

use std::fs::{File, OpenOptions};
use std::path::Path;

use super::Writer;
use crate::decode::{End, ReadOptions};
use crate::dialect::Dialect;
use crate::error::{Error, Reason, SkippedRegion};
use crate::reader::{Event, Reader};

impl Writer<File> {
    /// Opens a file to append to it; makes a new one if there is none.
    ///
    /// The whole file is read first. Its end must be the end of a whole record: LevelDB itself appends behind a torn record, and every
    /// record that follows in that block is lost.
    ///
    /// # Errors
    ///
    /// * [`Error::Io`] if the file cannot be opened or read.
    /// * [`Error::TornTail`] if it ends in an incomplete record or in zeros.
    /// * [`Error::Corruption`] if it is damaged anywhere.
    ///
    /// ```
    /// use cordwood::Writer;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("example.log");
    /// let mut writer = Writer::open_append(&path)?;
    /// writer.append(b"one")?;
    /// writer.flush()?;
    /// assert_eq!(Writer::open_append(&path)?.offset(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_append(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|source| Error::Io {
            path: Some(path.to_owned()),
            source,
        })?;
        Ok(Writer::with_len(file, append_offset(path)?))
    }
}

/// The file offset at which a log can be appended to: its length, if it ends with a whole record. The whole file is read.
///
/// # Errors
///
/// As [`Writer::open_append`].
pub fn append_offset(path: impl AsRef<Path>) -> Result<u64, Error> {
    let path = path.as_ref();
    let options = ReadOptions::default().with_dialect(Dialect::LEVELDB);
    let mut reader = Reader::open(path, options)?;
    let mut last: Option<SkippedRegion> = None;
    while let Some(event) = reader.next_event()? {
        last = match (event, last) {
            (Event::Skipped(region), Some(last)) => Some(last.joined(region).unwrap_or(region)),
            (Event::Skipped(region), None) => Some(region),
            (Event::Record(_), _) => None,
        };
    }
    match last {
        Some(region) if matches!(region.reason, Reason::TornTail | Reason::ZeroFill) => Err(Error::TornTail {
            path: Some(path.to_owned()),
            region,
        }),
        _ => Ok(reader.end().map_or(0, End::offset)),
    }
}
