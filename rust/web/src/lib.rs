//! The WebAssembly module of the page "Try it here". It reads a log in memory, and answers
//! `worker.js` with lines of tab-separated fields.
//!
//! JavaScript has no references, so the exported functions pass bytes through one buffer that the
//! module owns. No function takes a pointer. The JavaScript code must follow two rules:
//!
//! * Write only to the bytes that the last [`room`] returned, and only until the next call.
//! * Read the answer only until the next call, because memory may move when it grows.

#![expect(unsafe_code, reason = "the name of an exported function must be unique")]

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cordwood_log::codec::Window;
use cordwood_log::damage::{Finding, Reason, Severity, SkippedRegion};
use cordwood_log::ops::{self, SalvageOptions};
use cordwood_log::read::{SliceSource, Source};
use cordwood_log::{Error, Event, OnCorruption, ReadOptions, Reader, Writer};

/// The number of cells in a row of the map, and the maximum number of rows, as in `cordwood map`.
const COLUMNS: u64 = 128;
const ROW_COUNT_MAX: u64 = 64;
const BLOCK_LEN: u64 = 32_768;
/// The maximum number of regions to show, the maximum number of records to show, and the maximum
/// number of bytes to show of each record.
const REGIONS_MAX: usize = 200;
const RECORDS_MAX: u64 = 20;
const SHOWN_LEN: usize = 120;

/// The kinds of bytes in the map. A cell with damage shows the damage. Otherwise, it shows bytes
/// that were lost because of damage, or else a torn tail. A cell without any of these shows the
/// kind with the most bytes.
const RECORD: usize = 0;
const OTHER: usize = 1;
const ZEROS: usize = 2;
const OLDER: usize = 3;
const TORN: usize = 4;
const LOST: usize = 5;
const DAMAGE: usize = 6;
const KINDS: usize = 7;

/// The bytes of a file's name followed by the file, and the answer to the last call.
struct Buffers {
    name_and_file: Vec<u8>,
    answer: Vec<u8>,
}

static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers {
    name_and_file: Vec::new(),
    answer: Vec::new(),
});

fn buffers() -> MutexGuard<'static, Buffers> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address at which to write a name and a file of `len` bytes in total. Returns null if
/// there is not enough memory.
#[unsafe(no_mangle)]
pub extern "C" fn room(len: usize) -> *mut u8 {
    let mut buffers = buffers();
    buffers.name_and_file = Vec::new();
    buffers.answer = Vec::new();
    if buffers.name_and_file.try_reserve_exact(len).is_err() {
        return std::ptr::null_mut();
    }
    buffers.name_and_file.resize(len, 0);
    buffers.name_and_file.as_mut_ptr()
}

/// Answers with a report on the file, whose name has `name_len` bytes. Returns whether the file is
/// a log.
#[unsafe(no_mangle)]
pub extern "C" fn look(name_len: usize) -> bool {
    answer(name_len, |file| report(file).map(String::into_bytes))
}

/// Answers with a new log of the readable records. Returns whether the log could be salvaged.
#[unsafe(no_mangle)]
pub extern "C" fn salvage(name_len: usize) -> bool {
    answer(name_len, |file| {
        let mut log = Vec::new();
        ops::salvage_to(file, &mut log, &SalvageOptions::default()).map(|_| log)
    })
}

/// Answers with the sample log.
#[unsafe(no_mangle)]
pub extern "C" fn sample() {
    buffers().answer = sample_log();
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    buffers().answer.as_ptr()
}

/// Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer_len() -> usize {
    buffers().answer.len()
}

/// Stores the answer of `work`, or the message of its error.
fn answer(name_len: usize, work: impl FnOnce(Named<'_>) -> Result<Vec<u8>, Error>) -> bool {
    let Buffers { name_and_file, answer } = &mut *buffers();
    let (name, file) = name_and_file.split_at(name_len.min(name_and_file.len()));
    let (name, file) = (str::from_utf8(name).unwrap_or_default(), SliceSource::new(file));
    let done = work(Named { name, file });
    let is_done = done.is_ok();
    *answer = done.unwrap_or_else(|error| error.kind.to_string().into_bytes());
    is_done
}

/// A file in memory with a name. Readers take the number of the log from the name.
#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    file: SliceSource<'a>,
}

impl Source for Named<'_> {
    fn window(&self) -> Window<'_> {
        self.file.window()
    }

    fn fill(&mut self, from: u64, range_end: u64) -> io::Result<()> {
        self.file.fill(from, range_end)
    }

    fn file_len(&self) -> Option<u64> {
        self.file.file_len()
    }

    fn path(&self) -> Option<&Path> {
        Some(Path::new(self.name))
    }

    fn read_aside(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_aside(offset, buffer)
    }
}

/// Returns the lines about a log. The first is `log`. Then there is a `region` line for each of the
/// first regions, a `more` line with the number of other regions, and a `record` line for each of
/// the first records. The last lines are `cells` and `totals`. No field contains a tab or a line
/// break.
fn report(file: Named<'_>) -> Result<String, Error> {
    let report = ops::verify(file, &ReadOptions::default())?;
    let (findings, file_len) = (&report.findings, file.file.window().bytes.len() as u64);
    let (dialect, end) = (report.format.dialect, report.end.as_str());
    let (is_known, is_ok) = (u8::from(report.is_dialect_known), u8::from(report.is_ok()));
    let (records, salvaged, data_len) = (report.record_count, report.salvaged_count, report.payload_len);
    let damaged_len = findings.len_of(Severity::Corruption);
    let [own, other] = [report.format.log_number, report.other_log_number].map(shown_number);
    let zeros = shown_number(report.zeros_offset());
    let mut out = format!(
        "log\t{dialect}\t{is_known}\t{is_ok}\t{end}\t{records}\t{salvaged}\t{data_len}\t{file_len}\t{damaged_len}\t{zeros}\t\
         {own}\t{other}\n"
    );
    let is_shown = |reason: Reason| match reason {
        Reason::Stale | Reason::ZeroFill | Reason::UnknownVersion { .. } => true,
        _ => reason.severity() != Severity::Info,
    };
    let mut more = 0;
    for Finding { region, bit_flip, .. } in findings.listed() {
        let (SkippedRegion { start, end, reason, .. }, severity) = (*region, region.reason.severity());
        let [byte, bit] = [bit_flip.map(|flip| flip.offset), bit_flip.map(|flip| flip.bit.into())].map(shown_number);
        let is_shown = is_shown(reason);
        more += usize::from(is_shown);
        if is_shown && more <= REGIONS_MAX {
            _ = writeln!(out, "region\t{start}\t{end}\t{severity}\t{reason}\t{byte}\t{bit}");
        }
    }
    _ = writeln!(out, "more\t{}", more.saturating_sub(REGIONS_MAX));

    let mut cells = Cells::new(file_len);
    let options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    let mut reader = Reader::with_source(file, options);
    let mut count = 0;
    while let Some(event) = reader.next_event()? {
        match event {
            Event::Record(record) => {
                cells.add(record.offset, record.end_offset, RECORD);
                count += 1;
                if count <= RECORDS_MAX {
                    let (len, is_salvaged) = (record.data.len(), u8::from(record.is_salvaged));
                    let text = shown_text(record.data);
                    _ = writeln!(out, "record\t{}\t{len}\t{is_salvaged}\t{text}", record.offset);
                }
            }
            Event::Skipped(region) => cells.add(region.start, region.end, kind_of(region.reason)),
        }
    }
    cells.add(file_len, file_len, OTHER);
    _ = writeln!(out, "cells\t{}\t{}", cells.cell_len, cells.shown());
    out += "totals";
    for kind in 0..KINDS {
        _ = write!(out, "\t{}", cells.sums.iter().map(|sums| sums[kind]).sum::<u64>());
    }
    Ok(out)
}

/// Returns the number as text, or an empty field without a number.
fn shown_number<N: ToString>(number: Option<N>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// Returns the start of a record as text, or as an escaped byte literal if it is not text. Control
/// characters are escaped, so they have no effect on the page.
fn shown_text(data: &[u8]) -> String {
    let start = &data[..data.len().min(SHOWN_LEN)];
    let cut = if start.len() < data.len() { "\u{2026}" } else { "" };
    let text = match str::from_utf8(start) {
        Ok(text) => text,
        // The cut may be inside a character, which is then left out.
        Err(error) if !cut.is_empty() && error.error_len().is_none() => {
            str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return format!("{}{cut}", start.escape_ascii()),
    };
    // Quotes need not be escaped.
    let parts = text.split_inclusive(['"', '\'']);
    let parts = parts.map(|part| match part.strip_suffix(['"', '\'']) {
        Some(before) => format!("{}{}", before.escape_debug(), &part[before.len()..]),
        None => part.escape_debug().to_string(),
    });
    parts.chain([cut.to_owned()]).collect()
}

fn kind_of(reason: Reason) -> usize {
    match reason {
        Reason::MissingStart | Reason::MissingEnd | Reason::InterruptedRecord => LOST,
        Reason::ZeroFill => ZEROS,
        Reason::Stale => OLDER,
        Reason::TornTail => TORN,
        reason if reason.severity() == Severity::Corruption => DAMAGE,
        _ => OTHER,
    }
}

/// The bytes of a file, divided into cells. All cells have the same length, which is a power of
/// two.
struct Cells {
    cell_len: u64,
    /// The number of bytes of each kind, for each cell.
    sums: Vec<[u64; KINDS]>,
    /// The file offset up to which bytes have been added.
    end: u64,
}

impl Cells {
    fn new(file_len: u64) -> Self {
        // A row covers one block. In a long file, it covers more than a block, and in a short file
        // less.
        let row_len = if file_len > BLOCK_LEN / 2 { BLOCK_LEN } else { file_len };
        let cell_len = file_len
            .div_ceil(COLUMNS * ROW_COUNT_MAX)
            .max(row_len.div_ceil(COLUMNS));
        let cell_len = cell_len.next_power_of_two();
        let sums = vec![[0; KINDS]; file_len.div_ceil(cell_len) as usize];
        Cells { cell_len, sums, end: 0 }
    }

    /// Adds the bytes `[start, end)`. Earlier bytes that were never added do not belong to a record
    /// or region, and count as `OTHER`. Bytes that the records of a container share are added once.
    fn add(&mut self, start: u64, end: u64, kind: usize) {
        let gap = (self.end, start, OTHER);
        for (mut start, end, kind) in [gap, (start.max(self.end), end, kind)] {
            while start < end {
                let index = start / self.cell_len;
                let cell_end = end.min((index + 1) * self.cell_len);
                let Some(sums) = self.sums.get_mut(index as usize) else {
                    break;
                };
                sums[kind] += cell_end - start;
                start = cell_end;
            }
        }
        self.end = self.end.max(end);
    }

    /// Returns one digit for each cell, which is the kind that the cell shows.
    fn shown(&self) -> String {
        let kind_of = |sums: &[u64; KINDS]| {
            let first = [DAMAGE, LOST, TORN].into_iter().find(|&kind| sums[kind] > 0);
            first
                .or_else(|| (0..sums.len()).rev().max_by_key(|&kind| sums[kind]))
                .unwrap_or(OTHER)
        };
        let kinds = self.sums.iter().map(kind_of);
        kinds.map(|kind| char::from(b'0' + kind as u8)).collect()
    }
}

/// Returns a log with a flipped bit, a page of zeros instead of records, and an incomplete record
/// at the end.
fn sample_log() -> Vec<u8> {
    const TREES: [&str; 5] = ["oak", "ash", "birch", "larch", "spruce"];
    let mut writer = Writer::new(Vec::new());
    for order in 1..=4_000 {
        let (tree, cords) = (TREES[order * order / 7 % 5], order * 7 % 11 + 1);
        // Writing to a vector does not fail.
        _ = writer.append(format!(r#"{{"order": {order}, "tree": "{tree}", "cords": {cords}}}"#).as_bytes());
    }
    let mut log = writer.finish().unwrap_or_default();
    log[40_001] ^= 0x10;
    log[3 * 32_768 + 8_192..][..4_096].fill(0);
    log.truncate(log.len() - 9);
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOO: &[u8] = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";

    /// Returns the answer as the page reads it.
    fn answered() -> Vec<u8> {
        let len = answer_len();
        // SAFETY: the answer stays until the next call, and no other test calls.
        unsafe { std::slice::from_raw_parts(answer_at(), len) }.to_vec()
    }

    /// Passes a file to the module, as the page does.
    fn give(name: &str, file: &[u8]) {
        let at = room(name.len() + file.len());
        // SAFETY: `room` returned room for this many bytes, and no other test calls.
        unsafe { std::slice::from_raw_parts_mut(at, name.len() + file.len()) }
            .copy_from_slice(&[name.as_bytes(), file].concat());
    }

    /// All calls are in one test, because the buffers are shared.
    #[test]
    fn every_call_from_the_page_returns_a_result() {
        let mut file = FOO.repeat(3);
        file[17] ^= 1;
        give("a.log", &file);
        assert!(look(5));
        let text = String::from_utf8(answered()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "log\tleveldb\t1\t0\tclean\t2\t1\t6\t30\t10\t\t\t");
        assert!(
            lines[1].starts_with("region\t10\t20\tcorruption\tchecksum mismatch"),
            "{text}"
        );
        assert!(lines[1].ends_with("\t17\t0"), "{text}");
        let rest = [
            "more\t0",
            "record\t0\t3\t0\tfoo",
            "record\t20\t3\t1\tfoo",
            "cells\t1\t000000000066666666660000000000",
            "totals\t20\t0\t0\t0\t0\t0\t10",
        ];
        assert_eq!(lines[2..], rest);
        assert!(salvage(5));
        assert_eq!(answered(), FOO.repeat(2));

        // The number of the log is taken from the file's name.
        give("000007.log", b"");
        assert!(look(10));
        let text = String::from_utf8(answered()).unwrap();
        assert!(
            text.starts_with("log\tleveldb\t0\t1\tclean\t0\t0\t0\t0\t0\t\t"),
            "{text}"
        );

        for (name_len, is_log) in [(0, false), (usize::MAX, true)] {
            give("", b"\x89PNG\r\n\x1a\n and more, which is in another format");
            assert_eq!(look(name_len), is_log, "{name_len}");
        }
        assert!(room(isize::MAX as usize).is_null());
        assert!(look(0), "an empty file");

        sample();
        give("sample.log", &answered());
        assert!(look(10));
        let text = String::from_utf8(answered()).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("record\t")).count(), 20);
    }

    #[test]
    fn escapes_special_characters_for_the_page() {
        let euros = |count| "\u{20ac}".repeat(count);
        let cases: [(Vec<u8>, String); 7] = [
            (b"".into(), String::new()),
            (b"{\"a\": 'b'}\n\t\x1b".into(), r#"{"a": 'b'}\n\t\u{1b}"#.into()),
            (b"\xff\n\"".into(), r#"\xff\n\""#.into()),
            ("\u{202e}\u{e4}".into(), "\\u{202e}\u{e4}".into()),
            ([b'x'; 121].into(), format!("{}\u{2026}", "x".repeat(120))),
            (euros(99).into(), format!("{}\u{2026}", euros(40))),
            (format!("x{}", euros(50)).into(), format!("x{}\u{2026}", euros(39))),
        ];
        for (data, expected) in cases {
            assert_eq!(shown_text(&data), expected);
        }
    }

    #[test]
    fn map_cells_show_damage_first_then_the_largest_category() {
        let mut cells = Cells::new(256);
        assert_eq!((cells.cell_len, cells.sums.len()), (2, 128));
        cells.add(1, 7, RECORD);
        cells.add(8, 9, DAMAGE);
        cells.add(9, 11, LOST);
        // The records of a container share its bytes, which count once.
        cells.add(12, 20, RECORD);
        cells.add(12, 20, RECORD);
        cells.add(20, 256, ZEROS);
        assert_eq!(&cells.shown()[..12], "000065000022");
        let lens = [100, 32_768, 3 << 20, 1 << 30].map(|len| (Cells::new(len).cell_len, Cells::new(len).sums.len()));
        assert_eq!(lens, [(1, 100), (256, 128), (512, 6_144), (131_072, 8_192)]);
    }
}
