//! Copies all readable records of a damaged log to a new one, and lists the losses.
//!
//! ```text
//! cargo run --example salvage -- damaged.log new.log
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::process::ExitCode;

use cordwood_log::Error;
use cordwood_log::ops::{self, SalvageOptions};

fn main() -> Result<ExitCode, Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(damaged), Some(new)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: salvage DAMAGED NEW");
        return Ok(ExitCode::from(2));
    };
    let report = ops::salvage_file(&damaged, &new, &SalvageOptions::default())?;
    println!(
        "{new}: {} records, {} of them after damage in their block",
        report.record_count, report.salvaged_count
    );
    for finding in report.findings.listed() {
        println!("not copied: {}", finding.region);
        if let Some(flip) = finding.bit_flip {
            println!("  bit {} of the byte at offset {} was flipped", flip.bit, flip.offset);
        }
    }
    Ok(if report.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
