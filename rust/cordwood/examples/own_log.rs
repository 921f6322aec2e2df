//! Keeps a log of your own. The program may stop at any moment, and still finds every order that it
//! has taken when it starts again. The log is a directory of files, and the oldest files are
//! removed.
//!
//! ```text
//! cargo run --example own_log -- orders "two coffees"
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::env;

use cordwood_log::{Error, LogFileOptions, OnTornTail, Reader, SegmentedLog, SyncPolicy};

/// How many bytes of older orders to keep.
const KEPT_LEN: u64 = 10 << 20;

fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| "orders".to_owned());

    // After a crash, the log may end in an incomplete record. Its `append` never returned, so it is
    // cut off. When `append` returns, the record is on the disk. A file has at most one megabyte.
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
