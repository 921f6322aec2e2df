//! A log of your own: a program that stops at any moment finds every order it has taken when it starts again.
//!
//! ```text
//! cargo run --example own_log -- orders.log "two coffees"
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use cordwood_log::{Error, LogFile, LogFileOptions, OnTornTail, ReadOptions, Reader, SyncPolicy};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "orders.log".to_owned());

    for order in orders(Path::new(&path))? {
        println!("taken before: {order}");
    }

    // A crash may have left an incomplete record at the end, whose `append` never returned: it is cut off. Each record is on the disk when `append`
    // returns.
    let options = LogFileOptions::default()
        .with_on_torn_tail(OnTornTail::Truncate)
        .with_sync(SyncPolicy::EveryAppend);
    let log = LogFile::append_to(&path, options)?;
    for order in arguments {
        let offset = log.append(order.as_bytes())?;
        println!("taken: {order}, at offset {offset}");
    }
    log.close()
}

/// What is in the log, if there is one.
fn orders(path: &Path) -> Result<Vec<String>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::open(path, ReadOptions::default())?;
    let mut orders = Vec::new();
    while let Some(record) = reader.next_record()? {
        orders.push(String::from_utf8_lossy(record.data).into_owned());
    }
    Ok(orders)
}
