//! Reads a log with tokio. The decoder does no I/O, so it works with any source of bytes.
//!
//! ```text
//! cargo run --example tokio -- orders.log
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::error::Error;

use cordwood_log::ReadOptions;
use cordwood_log::codec::{Decoder, Step, Window};
use cordwood_log::ops::{DETECT_LEN, Detection, detect};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "orders.log".to_owned());
    let mut file = File::open(path).await?;

    // These are the bytes of the file from `offset` on.
    let (mut bytes, mut offset, mut is_last) = (Vec::new(), 0, false);
    (&mut file).take(DETECT_LEN as u64).read_to_end(&mut bytes).await?;
    // A decoder does not detect the dialect, so this is done first.
    let mut options = ReadOptions::default();
    match detect(&bytes) {
        Detection::Log(format) => options = options.with_format(format),
        Detection::Foreign(foreign) => return Err(foreign.into()),
        // An undetected log is read as `leveldb`, which is the default.
        Detection::Unclear => {}
    }
    let mut decoder = Decoder::new(&options)?;
    loop {
        let window = Window {
            offset,
            bytes: &bytes,
            is_last,
        };
        match decoder.step(window) {
            Step::Record(span) => println!("{}: {}", span.offset, decoder.data(window, span).escape_ascii()),
            Step::Skipped(region) => eprintln!("skipped: {region}"),
            // The end of the file is reached, but the decoder needs more bytes.
            Step::NeedMore if is_last => {
                let offset = decoder.offset();
                return Err(match decoder.refused() {
                    Some(refused) => format!("cannot read the record at offset {offset}: {refused}").into(),
                    None => format!("the bytes from offset {offset} on are missing").into(),
                });
            }
            Step::NeedMore => {
                // The bytes before the decoder's offset are no longer needed.
                let done = usize::try_from(decoder.offset() - offset)?.min(bytes.len());
                bytes.drain(..done);
                offset += done as u64;
                is_last = (&mut file).take(1 << 20).read_to_end(&mut bytes).await? == 0;
            }
            Step::End(_) => return Ok(()),
        }
    }
}
