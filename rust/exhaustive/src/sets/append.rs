//! Tests that append to a file with any end.

use std::io;
use std::sync::{Arc, Mutex};

use cordwood::write::Storage;
use cordwood::{Dialect, LogFile, LogFileOptions, OnCorruption, OnTornTail, ReadOptions};

use crate::append::{Seen, events};
use crate::crate_reads::{records, slice};
use crate::files::Alphabet;
use crate::model::encode;
use crate::tally::Tally;

/// A file in memory. All clones share the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Memory(Arc::new(Mutex::new(bytes.to_vec())))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Storage for Memory {
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("no panic").len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock().expect("no panic");
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut own = self.0.lock().expect("no panic");
        assert_eq!(own.len() as u64, offset, "a write at the end");
        own.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().expect("no panic").resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens the file in each way, and appends a short record and a record of two fragments.
pub(crate) fn append(tally: &mut Tally, _: Alphabet, file: &[u8]) {
    let before = events(file, OnCorruption::Skip);
    let seen = Seen::new(&before);
    for choice in [OnTornTail::Refuse, OnTornTail::Truncate, OnTornTail::PadToBlock] {
        tally.check(file, &choice, || append_by(file, &before, &seen, choice));
    }
}

fn append_by(file: &[u8], before: &[crate::model::Event], seen: &Seen, choice: OnTornTail) -> Result<(), String> {
    let storage = Memory::new(file);
    let options = LogFileOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_torn_tail(choice);
    let log = match LogFile::append_in(Box::new(storage.clone()), options) {
        Ok(log) => log,
        Err(error) => {
            seen.assert_refused(choice, file.len() as u64, &error);
            assert_eq!(storage.bytes(), file, "a refused file is unchanged");
            return Ok(());
        }
    };
    assert!(seen.allows(choice), "the file is accepted, and should not be");
    let tail = log.discarded_tail().map(|region| (region.start, region.end));
    assert_eq!(tail, seen.tail.map(|start| (start, file.len() as u64)), "the tail");
    let mut expected = seen.opened(file, choice);
    let mut expected_records = records(before);
    assert_eq!(log.offset(), expected.len() as u64, "the offset");
    for record in [&b"ab"[..], b"abcdefghijklmnopqrstuvwxyz"] {
        let (bytes, offset) = encode(expected.len() as u64, record);
        expected.extend(bytes);
        assert_eq!(
            log.append(record).expect("a file that takes all"),
            offset,
            "the offset of the record"
        );
        expected_records.push((offset, record.to_vec()));
    }
    log.close().expect("a file that takes all");
    assert_eq!(storage.bytes(), expected, "the bytes of the file");
    let skip = ReadOptions::default()
        .with_dialect(Dialect::LEVELDB)
        .with_on_corruption(OnCorruption::Skip);
    assert_eq!(records(&slice(&expected, &skip).0), expected_records, "the records");
    Ok(())
}
