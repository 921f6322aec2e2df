//! A log of your own: a program that may stop at any moment finds every order it has taken when it
//! starts again. A long log is rotated. `follow.rs` prints the orders as they are taken.
//!
//! ```text
//! cargo run --example own_log -- orders.log "two coffees"
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use cordwood_log::{Error, LogFile, LogFileOptions, OnTornTail, Reader, SyncPolicy};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "orders.log".to_owned());
    let path = Path::new(&path);

    // A crash may have left an incomplete record at the end, whose `append` never returned: it is
    // cut off. Each record is on the disk when `append` returns. The open log keeps out any other
    // writer, so nobody else renames a file below.
    let options = LogFileOptions::default()
        .with_on_torn_tail(OnTornTail::Truncate)
        .with_sync(SyncPolicy::EveryAppend);
    let mut log = LogFile::append_to(path, options.clone())?;

    let older = older_files(path)?;
    for path in older.iter().map(|(_, path)| path.as_path()).chain([path]) {
        for order in orders(path)? {
            println!("taken before: {order}");
        }
    }

    // Begins a new file once this one exceeds a megabyte. A crash after the rename leaves no file
    // at the path; the next start creates it.
    if fs::metadata(path)?.len() > 1_000_000 {
        let number = older.last().map_or(0, |(number, _)| *number) + 1;
        fs::rename(path, path.with_extension(format!("{number}.log")))?;
        log = LogFile::create_new(path, options)?;
    }
    for order in arguments {
        let offset = log.append(order.as_bytes())?;
        println!("taken: {order}, at offset {offset}");
    }
    Ok(log.close()?)
}

/// The older files, `orders.1.log`, `orders.2.log` and so on, in the order of their numbers. The
/// first ones may have been removed.
fn older_files(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let other = path.with_file_name(entry?.file_name());
        let number = other.file_stem().and_then(|name| Path::new(name).extension());
        if let Some(number) = number.and_then(|number| number.to_str()?.parse().ok())
            && other == path.with_extension(format!("{number}.log"))
        {
            found.push((number, other));
        }
    }
    found.sort();
    Ok(found)
}

/// The orders in a log.
fn orders(path: &Path) -> Result<Vec<String>, Error> {
    let mut reader = Reader::open(path)?;
    let mut orders = Vec::new();
    while let Some(record) = reader.next_record()? {
        orders.push(String::from_utf8_lossy(record.data).into_owned());
    }
    Ok(orders)
}
