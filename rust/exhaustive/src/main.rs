//! Tests the crate with every small file. Blocks are only 24 bytes long. All files of a few
//! fragments, damaged or not, are read, followed, appended to and written, and each result is
//! compared with an independent model. `make exhaustive` runs these tests.
//!
//! A set contains every file up to its bound, which is printed. No file is chosen at random, and no
//! set ends at a time limit.

#![forbid(unsafe_code)]

#[cfg(not(cordwood_small_blocks))]
compile_error!("it needs RUSTFLAGS=\"--cfg cordwood_small_blocks\": `make exhaustive` sets it");

#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/append.rs"]
pub mod append;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/containers.rs"]
pub mod containers;
mod crate_reads;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/event.rs"]
pub mod event;
mod files;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/model.rs"]
pub mod model;
mod numbered;
mod sets;
mod tally;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/zstd.rs"]
mod zstd;

use std::process::ExitCode;
use std::time::Instant;

use crate::tally::Tally;

/// The length of a block in bytes, for the models.
pub const BLOCK: usize = 24;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_full = match arguments.first().map(String::as_str) {
        Some("small") => false,
        Some("full") => true,
        // `tools/mutants` uses this mode.
        Some("first") => {
            tally::end_at_the_first_difference();
            false
        }
        Some("list") => {
            sets::all(false).iter().for_each(|set| println!("{}", set.name));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("usage: cordwood-exhaustive small|full|first|list [PART OF THE NAME OF A SET]");
            return ExitCode::from(2);
        }
    };
    assert_eq!(
        cordwood::format::BLOCK_LEN,
        BLOCK,
        "the crate and the model agree on the block"
    );
    let part = arguments.get(1).map_or("", String::as_str);
    tally::keep_messages_of_panics();
    let started = Instant::now();
    let mut total = Tally::default();
    for set in sets::all(is_full).into_iter().filter(|set| set.name.contains(part)) {
        let set_started = Instant::now();
        let tally = (set.run)();
        let seconds = set_started.elapsed().as_secs_f32();
        println!("{}: {}: {tally}, {seconds:.1} s", set.name, set.bound);
        total.add(tally);
    }
    println!("together: {total}, {:.0} s", started.elapsed().as_secs_f32());
    for difference in &total.shown {
        println!("\n{difference}");
    }
    let is_right = total.files > 0 && total.differences == 0;
    ExitCode::from(u8::from(!is_right))
}
