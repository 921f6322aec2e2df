//! Prints the records of a log as they are written, until no record has arrived for ten seconds.
//!
//! ```text
//! cargo run --example follow -- orders.log
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::time::Duration;

use cordwood_log::follow::Poll;
use cordwood_log::{Error, Follower};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "orders.log".to_owned());
    let mut follower = Follower::open(&path)?;
    loop {
        match follower.wait(Some(Duration::from_secs(10)))? {
            Poll::Record(record) => println!("{}: {}", record.offset, record.data.escape_ascii()),
            Poll::Skipped(region) => eprintln!("skipped: {region}"),
            // The log may still grow. A later run can start at `follower.offset()`.
            _ => return Ok(()),
        }
    }
}
