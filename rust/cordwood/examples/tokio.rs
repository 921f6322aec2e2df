//! Reads a log with tokio: the decoder does no I/O, so any source of bytes will do.
//!
//! ```text
//! cargo run --example tokio -- orders.log
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;

use cordwood_log::ReadOptions;
use cordwood_log::codec::{Decoder, Step, Window};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "orders.log".to_owned());
    let mut file = File::open(path).await?;
    let mut decoder = Decoder::new(&ReadOptions::default())?;

    // The bytes of the file from `offset` on.
    let (mut bytes, mut offset, mut is_last) = (Vec::new(), 0, false);
    loop {
        let window = Window {
            offset,
            bytes: &bytes,
            is_last,
        };
        match decoder.step(window) {
            Step::Record(span) => println!("{}: {}", span.offset, decoder.data(window, span).escape_ascii()),
            Step::Skipped(region) => eprintln!("skipped: {region}"),
            Step::NeedMore => {
                // What is before the decoder's offset is no longer needed.
                let done = usize::try_from(decoder.offset() - offset)?.min(bytes.len());
                bytes.drain(..done);
                offset += done as u64;
                is_last = (&mut file).take(1 << 20).read_to_end(&mut bytes).await? == 0;
            }
            Step::End(_) => return Ok(()),
        }
    }
}
