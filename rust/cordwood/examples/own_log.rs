//! A log of your own: a program that may stop at any moment finds every order it has taken when it
//! starts again. A long log is rotated. `follow.rs` prints the orders as they are taken.
//!
//! ```text
//! cargo run --example own_log -- orders.log "two coffees"
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::{Path, PathBuf};
use std::{fs, io};

use cordwood_log::{Error, LogFile, LogFileOptions, OnTornTail, ReadOptions, Reader, SyncPolicy};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "orders.log".to_owned());
    let path = Path::new(&path);

    // Older files are `orders.1.log`, `orders.2.log` and so on.
    let numbered = |number: usize| path.with_extension(format!("{number}.log"));
    let older: Vec<_> = (1..).map(numbered).take_while(|path| path.exists()).collect();
    for path in older.iter().map(PathBuf::as_path).chain([path]) {
        for order in orders(path)? {
            println!("taken before: {order}");
        }
    }

    // Begins a new file once this one exceeds a megabyte. A crash after the rename leaves no file
    // at the path; it is then created below.
    if fs::metadata(path).is_ok_and(|file| file.len() > 1_000_000) {
        fs::rename(path, numbered(older.len() + 1))?;
    }
    // A crash may have left an incomplete record at the end, whose `append` never returned: it is
    // cut off. Each record is on the disk when `append` returns.
    let options = LogFileOptions::default()
        .with_on_torn_tail(OnTornTail::Truncate)
        .with_sync(SyncPolicy::EveryAppend);
    let log = LogFile::append_to(path, options)?;
    for order in arguments {
        let offset = log.append(order.as_bytes())?;
        println!("taken: {order}, at offset {offset}");
    }
    Ok(log.close()?)
}

/// The orders in the log, if there is one.
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
