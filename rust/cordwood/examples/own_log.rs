//! A log of your own: a program that may stop at any moment finds every order it has taken when it
//! starts again. The log is a directory of files, of which the oldest are removed.
//!
//! ```text
//! cargo run --example own_log -- orders "two coffees"
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::env;

use cordwood_log::{Error, LogFileOptions, OnTornTail, Reader, SegmentedLog, SyncPolicy};

/// Older orders are not needed any more, in bytes of the log.
const KEPT_LEN: u64 = 10 << 20;

fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| "orders".to_owned());

    // A crash may have left an incomplete record at the end, whose `append` never returned: it is
    // cut off. Each record is on the disk when `append` returns. A file has at most a megabyte.
    let options = LogFileOptions::default()
        .with_on_torn_tail(OnTornTail::Truncate)
        .with_sync(SyncPolicy::EveryAppend)
        .with_segment_len(1 << 20);
    let log = SegmentedLog::open(&directory, options)?;

    let mut reader = Reader::open(&directory)?;
    while let Some(record) = reader.next_record()? {
        println!("taken before: {}", String::from_utf8_lossy(record.data));
    }
    for order in arguments {
        let offset = log.append(order.as_bytes())?;
        println!("taken: {order}, at offset {offset}");
    }
    log.prune_before(log.offset().saturating_sub(KEPT_LEN))?;
    log.close()
}
