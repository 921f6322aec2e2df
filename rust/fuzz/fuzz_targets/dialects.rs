//! Reads a log of any dialect in every possible way under every policy. All results must agree. The
//! log may be damaged and followed by an older log.

#![no_main]

use std::num::NonZeroUsize;

use arbitrary::Arbitrary;
use cordwood::codec::Grid;
use cordwood::damage::{Reason, Severity};
use cordwood::format::{BLOCK_LEN, FragmentKind};
use cordwood::ops::{self, Detection, detect};
use cordwood::parallel;
use cordwood::read::{SliceSource, StreamSource};
use cordwood::{Compression, Dialect, End, Error, ErrorKind, LogFormat, OnCorruption, ReadOptions, Reader};
use cordwood_fuzz::log::{Log, Script};
use cordwood_fuzz::model::Event;
use cordwood_fuzz::options::Options;
use cordwood_fuzz::read;
use cordwood_fuzz::steps::{Steps, Trickle};
use libfuzzer_sys::fuzz_target;

const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Fail,
    OnCorruption::Skip,
    OnCorruption::Stop,
    OnCorruption::Salvage,
];

/// The dialect that a log is read as.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Named {
    /// The dialect that is detected.
    Not,
    /// The log's own dialect.
    Right,
    /// Any other dialect, with this log number.
    Other(u8, Option<u8>, bool),
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    named: Named,
    options: Options,
    steps: Steps<'a>,
    script: Script<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let mut steps = input.steps;
    let log = input.script.build();
    let file = &log.file.bytes;
    let as_written = ReadOptions::default().with_format(log.format);
    if [&as_written, &ReadOptions::default()]
        .iter()
        .any(|options| read::is_refused(file, options))
    {
        return;
    }
    what_was_written(&log, POLICIES[usize::from(steps.choice()) % POLICIES.len()]);

    let mut options = input.options.of(&log.file);
    match input.named {
        Named::Not => {}
        Named::Right => options = options.with_format(log.format),
        Named::Other(dialect, number, is_zstd) => {
            let other = Dialect::ALL[usize::from(dialect) % Dialect::ALL.len()];
            options = options.with_dialect(other);
            if let Some(number) = number.filter(|_| other.has_log_numbers()) {
                options = options.with_log_number(u32::from(number % 8));
            }
            if is_zstd && other == Dialect::ROCKSDB {
                options = options.with_compression(Compression::Zstd);
            }
        }
    }
    if read::is_refused(file, &options) {
        return;
    }
    let format = match Reader::from_slice(file, options.clone()).format() {
        Ok(format) => format,
        Err(Error {
            kind: ErrorKind::Foreign { .. },
            ..
        }) => return,
        Err(error) => panic!("{error}"),
    };

    if read::starts_after_end(file, &options) {
        return;
    }

    // Reads with one policy in every way, and with all policies in one way.
    let (events, end) = read::slice(file, &options);
    every_way(file, &options, format, &mut steps, &events, end);
    let [raised, skipped, stopped, salvaged] =
        POLICIES.map(|policy| read::slice(file, &options.clone().with_on_corruption(policy)).0);
    assert_eq!(raised, skipped);
    // `stop` returns the events before the first damage, and then the damage itself.
    let is_damage = |event: &Event| event.is(Severity::Corruption);
    let until = skipped.iter().position(is_damage).map_or(skipped.len(), |at| at + 1);
    let is_not_read = |event: &&Event| {
        matches!(
            event,
            Event::Skipped {
                reason: Reason::NotRead,
                ..
            }
        )
    };
    let not_read = stopped.iter().filter(is_not_read).count();
    assert!(not_read <= 1);
    assert_eq!(stopped[..stopped.len() - not_read], skipped[..until]);
    assert_eq!(read::unmarked(salvaged), read::records(skipped));
});

/// Asserts that all records before any damage are read, both if the dialect is named and if it is
/// detected.
fn what_was_written(log: &Log, policy: OnCorruption) {
    let file = &log.file.bytes;
    let intact = &log.records[..log.intact_count];
    let detected = detect(file);
    if !intact.is_empty() {
        assert!(
            matches!(detected, Detection::Log(_)),
            "{detected:?} is {:?}",
            log.format
        );
    }
    for format in [Some(log.format), None] {
        if format.is_none() && intact.is_empty() {
            continue;
        }
        let mut options = ReadOptions::default().with_on_corruption(policy);
        if let Some(format) = format {
            options = options.with_format(format);
        }
        let found = read::records(read::slice(file, &options).0);
        let same = (found.iter().zip(intact)).take_while(|(found, intact)| found == intact);
        assert_eq!(same.count(), intact.len(), "{policy:?}, {format:?}, {:?}", log.format);
        assert!(
            !log.is_whole || found.len() == intact.len(),
            "more records than were written, {policy:?}, {format:?}, {:?}",
            log.format
        );
    }
}

/// Asserts that each way of reading the file agrees with a reader of the whole file.
fn every_way(
    file: &[u8],
    options: &ReadOptions,
    format: LogFormat,
    steps: &mut Steps<'_>,
    expected: &[Event],
    end: End,
) {
    let source = StreamSource::new(Trickle::new(file, 0, steps.clone()), 0).with_len(file.len() as u64);
    let (events, short_end) = read::patiently(&mut Reader::with_source(source, options.clone()));
    assert_eq!(events, expected, "short reads");
    assert_eq!(short_end, end, "short reads");

    let count = NonZeroUsize::MIN.saturating_add(usize::from(steps.choice() % 4));
    let mut one = ops::verify(SliceSource::new(file), options).expect("no foreign file");
    // `verify` does not fail at damage, and reads as under the policy `salvage`.
    let returned_count = match options.on_corruption {
        OnCorruption::Fail => one.record_count - one.salvaged_count,
        _ => one.record_count,
    };
    assert_eq!(returned_count, read::records(expected.to_vec()).len() as u64);
    // The readers below get the dialect by name.
    one.is_dialect_known = true;

    let named = options.clone().with_format(format);
    // Each part is one block, and the threads may read the parts in any order.
    let in_blocks = parallel::Parts::new(&named, Some(file.len() as u64), BLOCK_LEN as u64);
    let readers = || {
        (0..count.get())
            .map(|_| Reader::from_slice(file, named.clone()))
            .collect()
    };
    let several = parallel::verify_parts(readers(), &in_blocks).expect("no foreign file");
    assert_eq!(one, several, "{count} threads");
    let parts = ops::split_ranges(&named, Some(file.len() as u64), count);
    let joined: Vec<Event> = parts.iter().flat_map(|part| read::slice(file, part).0).collect();
    assert_eq!(joined, expected, "{count} parts");
    let stat = ops::stat(SliceSource::new(file), &named).expect("a log");
    let stat_of_parts = parallel::stat_parts(readers(), &in_blocks).expect("a log");
    assert_eq!(stat, stat_of_parts, "{count} parts");

    if (options.start, options.end) == (0, None) {
        read::assert_tiles(file, format.dialect, expected);
        let sum = stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len;
        // If a record of a container is too long, it counts both as stored and as skipped. The same
        // is true of the records after it that are not read. `stat` does not fail at damage, and
        // reads as under the policy `salvage`.
        let counted = match options.on_corruption {
            OnCorruption::Fail => read::slice(file, &named.clone().with_on_corruption(OnCorruption::Salvage)).0,
            _ => expected.to_vec(),
        };
        let too_long = counted.iter().map(|event| match event {
            Event::Skipped {
                start,
                end,
                reason: Reason::RecordTooLarge | Reason::NotRead,
                ..
            } if stat.container_count > 0 => end - start,
            _ => 0,
        });
        let (len, too_long_len) = (file.len() as u64, too_long.sum::<u64>());
        assert!((len..=len + too_long_len).contains(&sum), "{sum} of {len}, {stat:?}");
        if options.on_corruption == OnCorruption::Salvage && *options == all_of(options) {
            let named = options.dialect.map(|dialect| {
                let mut named = LogFormat::new(dialect);
                (named.log_number, named.compression) = (options.log_number, options.compression);
                named
            });
            fragments(file, named, expected);
        }
        if options.on_corruption != OnCorruption::Stop {
            two_ranges(file, &named, steps, expected);
        }
    }
}

/// Returns the options that `fragments` supports.
fn all_of(options: &ReadOptions) -> ReadOptions {
    let mut all = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
    (all.dialect, all.log_number, all.compression) = (options.dialect, options.log_number, options.compression);
    all
}

/// Asserts that if a file is divided into two ranges anywhere, each record is in exactly one of
/// them.
fn two_ranges(file: &[u8], options: &ReadOptions, steps: &mut Steps<'_>, expected: &[Event]) {
    let is_end = |event: &Event| {
        matches!(
            event,
            Event::Skipped {
                reason: Reason::EndTrailer,
                ..
            }
        )
    };
    if expected.iter().any(is_end) {
        return;
    }
    // If no fragment has the log's number, everything after damage may belong to another log. A
    // range that starts later does not know about the damage.
    let is_record = |event: &Event| matches!(event, Event::Record { .. });
    if options.log_number.is_some() && !expected.iter().any(is_record) {
        return;
    }
    let edge = file.len() as u64 * u64::from(steps.choice()) / 255;
    let halves = [options.clone().with_range(..edge), options.clone().with_range(edge..)]
        .map(|half| read::records(read::slice(file, &half).0));
    let expected = read::records(expected.to_vec());
    if !has_another_form(file, options, &expected, edge) {
        assert_eq!(halves.concat(), expected, "cut at {edge}");
        return;
    }
    // Some records may be returned only by the second range, and others only by a reader of the
    // whole file. Their forms must differ.
    let [before, after] = &halves;
    let (before_edge, after_edge) = expected.split_at(expected.partition_point(|record| record.0 < edge));
    assert_eq!(before, before_edge, "before {edge}");
    let only_in = |these: &[(u64, Vec<u8>)], others: &[(u64, Vec<u8>)]| {
        let only = these.iter().filter(|record| !others.contains(record));
        only.map(|record| form_of(file[record.0 as usize + 6]))
            .collect::<Vec<_>>()
    };
    let (lost, more) = (only_in(after_edge, after), only_in(after, after_edge));
    assert!(
        lost.iter().all(|form| !more.contains(form)),
        "cut at {edge}: {lost:?}, {more:?}"
    );
}

/// Checks whether the form of the log changes at the second range. Compares the first fragment from
/// its first block on with the form that the log has there for a reader of the whole file
/// (reading.md, "Ranges").
fn has_another_form(file: &[u8], options: &ReadOptions, expected: &[(u64, Vec<u8>)], edge: u64) -> bool {
    let (Some(dialect), Some(number)) = (options.dialect, options.log_number) else {
        return false;
    };
    let format = LogFormat::new(dialect).with_log_number(number);
    let start = Grid::new(dialect, 0).block_start(edge);
    let own = expected
        .iter()
        .rev()
        .find(|record| record.0 < start)
        .or(expected.first());
    let first = ops::fragments([SliceSource::new(file); 2], &ReadOptions::default().with_format(format))
        .filter_map(Result::ok)
        .find(|fragment| {
            let is_part = matches!(
                fragment.kind,
                FragmentKind::Plain(_) | FragmentKind::Recyclable(_) | FragmentKind::WalSync(_)
            );
            let is_valid = fragment.stored_crc == fragment.computed_crc;
            let is_stale = fragment.log_number.is_some_and(|other| other != number);
            fragment.offset >= start && is_part && is_valid && !is_stale
        });
    match (own, first.and_then(|first| first.type_byte)) {
        (Some(own), Some(first)) => form_of(file[own.0 as usize + 6]) != form_of(first),
        _ => false,
    }
}

/// Returns which length of header the type has. Types 1 to 4 have one length, types 5 to 8 another,
/// and types 9 to 12 another.
fn form_of(kind: u8) -> u8 {
    (kind - 1) / 4
}

/// Asserts that each byte of the file belongs to one entry. Also asserts that the records are the
/// same as under the policy `salvage`, except that only the first record of each container is
/// listed.
fn fragments(file: &[u8], format: Option<LogFormat>, expected: &[Event]) {
    let mut options = ReadOptions::default();
    if let Some(format) = format {
        options = options.with_format(format);
    }
    let mut fragments = ops::fragments([SliceSource::new(file); 2], &options);
    let grid = match fragments.format().map(|format| format.dialect.name()) {
        Ok("wandb_old") => 7,
        _ => 0,
    };
    let mut at = 0;
    let (mut records, mut spans) = (Vec::new(), Vec::new());
    for fragment in fragments {
        let fragment = fragment.expect("a log");
        let (start, end) = (fragment.offset, fragment.end_offset);
        assert!(start == at && start < end, "{fragment:?} after {at}");
        let block = |offset: u64| (offset + 32_768 - grid) / 32_768;
        assert!(block(start) == block(end - 1), "{fragment:?} in two blocks");
        at = end;
        if let Some(record) = fragment.record_offset {
            spans.push(start + 1..end);
            if records.last() != Some(&record) {
                records.push(record);
            }
        }
    }
    assert_eq!(at, file.len() as u64, "fragments");
    // Only the first record of a container is listed. The offsets of the other records are inside
    // the container's fragments.
    let mut expected: Vec<u64> = read::records(expected.to_vec()).iter().map(|record| record.0).collect();
    expected.retain(|offset| records.contains(offset) || !spans.iter().any(|span| span.contains(offset)));
    assert_eq!(records, expected);
}
