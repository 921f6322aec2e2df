//! Runs the conformance cases in `conformance/`. The README there describes the requests and the
//! answers.
//!
//! ```text
//! cargo build --package cordwood-log --example conformance --features zstd
//! python conformance/suite.py target/debug/examples/conformance
//! ```

#![expect(clippy::print_stdout, reason = "the answers are its output")]

use std::fs::File;
use std::io::stdin;

use cordwood_log::crc32c::crc32c;
use cordwood_log::damage::{Finding, Findings, Severity};
use cordwood_log::ops::{SalvageOptions, salvage_file};
use cordwood_log::{
    Compression, Dialect, Error, ErrorKind, Event, LogFormat, OnCorruption, ReadOptions, Reader, Writer, WriterOptions,
};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    for line in stdin().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = match text(&request, "do")? {
            "describe" => Ok(description()),
            "read" => read(&request),
            "write" => write(&request),
            _ => repair(&request),
        };
        let mut answer = answer.unwrap_or_else(|error| json!({"error": error.to_string()}));
        answer["id"] = request["id"].clone();
        println!("{answer}");
    }
    Ok(())
}

/// Describes the requests that this program answers, which are all of them.
fn description() -> Value {
    json!({
        "dialects": ["leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab", "packed"],
        "policies": ["skip", "stop", "raise", "salvage"],
        "features": [
            "detection", "ranges", "record_len_max", "verify_checksums", "log_number", "compression",
            "zstd", "segments", "segment_ranges", "write", "repair",
        ],
    })
}

fn read(request: &Value) -> Result<Value> {
    let policy: OnCorruption = text(request, "policy")?.parse()?;
    let mut options = ReadOptions::default()
        .with_on_corruption(policy)
        .with_verify_checksums(request["verify_checksums"].as_bool().unwrap_or(true));
    (options.dialect, options.log_number, options.compression) = named(request)?;
    options.start = request["start"].as_u64().unwrap_or(0);
    options.end = request["end"].as_u64();
    options.record_len_max = request["record_len_max"].as_u64().unwrap_or(options.record_len_max);

    let (mut records, mut salvaged, mut raised) = (Vec::new(), Vec::new(), Vec::new());
    let mut findings = Findings::default();
    let refused = |records, error: &Error| json!({"records": records, "end": ["refused", error.offset().unwrap_or(0)]});
    let mut reader = match Reader::open_with(text(request, "path")?, options) {
        Ok(reader) => reader,
        Err(error) => return Ok(refused(records, &error)),
    };
    loop {
        match reader.next_event() {
            Ok(Some(Event::Record(record))) => {
                let crc = format!("{:08x}", crc32c(record.data));
                records.push(json!([record.offset, record.end_offset, record.data.len(), crc]));
                if record.is_salvaged {
                    salvaged.push(record.offset);
                }
            }
            Ok(Some(Event::Skipped(region))) => findings.add(Finding::new(region)),
            Ok(None) => break,
            Err(error) => {
                let ErrorKind::Corruption { region, .. } = error.kind else {
                    return Ok(refused(records, &error));
                };
                raised.push(region.start);
                findings.add(Finding::new(region));
            }
        }
    }
    let end = reader.end().ok_or("a log has an end")?;
    let mut answer = json!({
        "dialect": reader.format()?.dialect.name(),
        "records": records,
        "salvaged": salvaged,
        "regions": regions(&findings),
        "end": [end.as_str(), end.offset()],
        "ok": !findings.has(Severity::Corruption),
        "zeros_offset": reader.file_len().and_then(|len| findings.zeros_before(len)),
    });
    if policy == OnCorruption::Fail {
        answer["raised"] = json!(raised);
    }
    Ok(answer)
}

fn write(request: &Value) -> Result<Value> {
    let (dialect, log_number, compression) = named(request)?;
    let mut format = LogFormat::new(dialect.unwrap_or(Dialect::LEVELDB));
    (format.log_number, format.compression) = (log_number, compression);
    let file = File::create_new(text(request, "path")?)?;
    let mut writer = Writer::with_options(file, WriterOptions::default().with_format(format))?;
    for record in request["records"].as_array().ok_or("no records")? {
        let digits = record.as_str().ok_or("a record is text")?;
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
        writer.append(&bytes.collect::<std::result::Result<Vec<_>, _>>()?)?;
    }
    writer.into_inner()?;
    Ok(json!({}))
}

fn repair(request: &Value) -> Result<Value> {
    let new = text(request, "to")?;
    let mut options = SalvageOptions::default().with_repair_bit_flips(true);
    (options.dialect, options.log_number, options.compression) = named(request)?;
    let report = salvage_file(text(request, "path")?, new, &options)?;
    let mut records = Vec::new();
    for record in Reader::open_with(new, ReadOptions::default().with_dialect(report.format.dialect))?.records() {
        let record = record?;
        records.push(json!([record.data.len(), format!("{:08x}", crc32c(&record.data))]));
    }
    let repaired = report.repaired.listed().iter().map(|Finding { region, bit_flip, .. }| {
        let place = bit_flip.map(|flip| (flip.offset, flip.bit));
        json!([
            region.reason.as_str(),
            region.start,
            region.end,
            place.map(|place| place.0),
            place.map(|place| place.1)
        ])
    });
    Ok(json!({
        "records": records,
        "regions": regions(&report.findings),
        "end": [report.end.as_str(), report.end.offset()],
        "ok": report.is_ok(),
        "repaired": repaired.collect::<Vec<_>>(),
        "repaired_count": report.repaired_count,
    }))
}

/// Converts each region to its reason, its place and its severity.
fn regions(findings: &Findings) -> Vec<Value> {
    let plain = |Finding { region, .. }: &Finding| {
        json!([
            region.reason.as_str(),
            region.start,
            region.end,
            region.reason.severity().as_str()
        ])
    };
    findings.listed().iter().map(plain).collect()
}

/// Returns the dialect, the log number and the compression that the request contains.
fn named(request: &Value) -> Result<(Option<Dialect>, Option<u32>, Option<Compression>)> {
    let dialect = request["dialect"].as_str().map(str::parse).transpose()?;
    let number = request["log_number"].as_u64().map(u32::try_from).transpose()?;
    Ok((
        dialect,
        number,
        request["compression"].as_str().map(str::parse).transpose()?,
    ))
}

fn text<'a>(request: &'a Value, field: &str) -> Result<&'a str> {
    Ok(request[field].as_str().ok_or_else(|| format!("no {field}"))?)
}
