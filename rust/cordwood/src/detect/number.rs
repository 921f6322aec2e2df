//! Finds the log number in a file name.
//!
//! Source: RocksDB `file/filename.cc`, Pebble `wal/wal.go`.

use std::io;
use std::path::Path;

/// Returns the log number in a file name. The engines name their logs `000123.log`, or
/// `000123-001.log` after a Pebble failover.
pub(crate) fn log_number_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let number = match name.split_once('-') {
        Some((number, index)) if index.len() == 3 && is_digits(index) => number,
        Some(_) => return None,
        None => name,
    };
    // The engines pad the number with zeros to six digits. Other names, such as those of segments,
    // don't come from an engine.
    let is_theirs = number.len() == 6 || number.len() > 6 && !number.starts_with('0');
    let number = (is_theirs && is_digits(number)).then(|| number.parse::<u64>().ok())??;
    // A header has room for only the low half of the number.
    Some(number as u32)
}

/// Checks that the log number of the records to be written matches `named`, the number in the file
/// name. If the two differed, every reader would treat the records as stale.
pub(crate) fn check_number(named: Option<u32>, number: u32) -> io::Result<()> {
    match named {
        Some(named) if named != number => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "the records belong to log {number}, but the file name says {named}: readers would treat them as stale; \
                 name the file {number:06}.log"
            ),
        )),
        _ => Ok(()),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
