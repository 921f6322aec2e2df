//! Cases from Pebble's `record/record_test.go`, `record/log_writer_test.go` and
//! `record/testdata/walSync`.

use cordwood_log::codec::Encoder;
use cordwood_log::{Dialect, ErrorKind, LogFormat, ReadOptions, Reader, Writer};

use super::wire::Wire;
use super::{B, NONE, big, noise, read, write};

const LOG: LogFormat = LogFormat::new(Dialect::PEBBLE).with_log_number(1);

/// Writes the records with the writers for LevelDB's and for recyclable fragments, and as WAL-sync
/// fragments, which only Pebble writes.
#[track_caller]
fn round_trip(records: &[Vec<u8>]) {
    for dialect in [LogFormat::new(Dialect::PEBBLE), LOG] {
        read(dialect, &write(dialect, records))
            .records(records)
            .skipped(&[])
            .ends_clean();
    }
    let mut file = Vec::new();
    for record in records {
        Wire::Synced(1, file.len() as u64).append(&mut file, 0, record);
    }
    read(LOG, &file).records(records).skipped(&[]).ends_clean();
}

#[test]
fn many() {
    let records: Vec<_> = (0..10_000).map(|number| format!("{number}.").into_bytes()).collect();
    round_trip(&records);
}

#[test]
fn random() {
    let records: Vec<_> = (0..40)
        .map(|seed| noise((seed as usize * 40_503) % (2 * B + 16), seed))
        .collect();
    round_trip(&records);
}

#[test]
fn basic() {
    round_trip(&[big("a", 1_000), big("b", 97_270), big("c", 8_000)]);
}

#[test]
fn boundary() {
    for first in (B - 20)..(B + 4) {
        for second in [B - 11, B - 7, B] {
            for between in ["", "x"] {
                round_trip(&[big("1", first), between.into(), big("2", second)]);
            }
        }
    }
}

#[test]
fn flush() -> std::io::Result<()> {
    let mut writer = Writer::new(Vec::new());
    let mut lens = vec![writer.get_mut().len()];
    for len in [1, 2, 10_000, 40_000] {
        writer.append(&big("x", len))?;
        writer.flush()?;
        lens.push(writer.get_mut().len());
    }
    // Upstream, the first two records are flushed together.
    assert_eq!(lens, [0, 8, 17, 10_024, 50_038]);
    Ok(())
}

#[test]
fn basic_reads() {
    round_trip(&[big("0", B - 7), big("1", B - 7), big("2", B - 7)]);
}

#[test]
fn the_encoder_and_the_reader_return_correct_offsets() {
    let records = [3 * B, 3 * (B - 7) - 2 * B - 14, B - 7, B - 7, B / 2].map(|len| big("x", len));
    let mut encoder = Encoder::new(0);
    let mut file = Vec::new();
    for record in &records {
        encoder.encode(record, &mut file);
        assert_eq!(encoder.offset(), file.len() as u64);
    }
    let reading = read(LogFormat::new(Dialect::PEBBLE), &file);
    assert_eq!(reading.offsets, [0, 98_332, 131_072, 163_840, 196_608]);
}

#[test]
fn corrupt_block() {
    let mut file = write(LogFormat::new(Dialect::PEBBLE), &[big("0", 3 * B)]);
    file[3 * B] ^= 0xff;
    let (block, end) = (3 * B as u64, file.len() as u64);
    let skipped = [(0, block, "interrupted_record"), (block, end, "checksum_mismatch")];
    // Exception: this is damage. Pebble returns ErrUnexpectedEOF, because it does not take legacy
    // fragments for proof.
    read(LogFormat::new(Dialect::PEBBLE), &file)
        .records(NONE)
        .skipped(&skipped)
        .ends_clean();
}

/// Returns the offsets of the records that a reader of the range from `start` returns.
fn offsets_from(file: &[u8], start: u64) -> Vec<u64> {
    let options = ReadOptions::default().with_dialect(Dialect::PEBBLE).with_range(start..);
    super::read_with(options, file).offsets
}

#[test]
fn a_range_may_start_inside_a_chunk() {
    let file = write(LogFormat::new(Dialect::PEBBLE), &[big("0", 3 * B), big("1", 100)]);
    let second = 3 * B as u64 + 28;
    assert_eq!(offsets_from(&file, B as u64), [second]);
    // Exception: a range may start at any offset. Pebble fails if the offset is in the middle of a
    // block.
    assert_eq!(offsets_from(&file, B as u64 + 3), [second]);
}

#[test]
fn seek_record_end_of_file() {
    let file = write(
        LogFormat::new(Dialect::PEBBLE),
        &[big("0", 3 * B), big("1", B), big("2", 10)],
    );
    assert_eq!(offsets_from(&file, 3 * B as u64).len(), 2);
    assert_eq!(offsets_from(&file, 4 * B as u64).len(), 1);
    // Pebble returns ErrUnexpectedEOF.
    let options = ReadOptions::default()
        .with_format(Dialect::PEBBLE)
        .with_range(1 << 20..);
    let error = Reader::from_slice(&file, options).next_event().unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Truncated { offset: 0x10_0000, .. }));
}

#[test]
fn invalid_log_num() {
    let file = write(LOG, &(0..10).map(|seed| noise(50, seed)).collect::<Vec<_>>());
    assert_eq!(read(LOG, &file).records.len(), 10);
    // Exception: this is the end of the log, and is reported as `stale`. Pebble returns
    // ErrUnexpectedEOF.
    let skipped = [(0, file.len() as u64, "stale")];
    read(LogFormat::new(Dialect::PEBBLE).with_log_number(2), &file)
        .records(NONE)
        .skipped(&skipped)
        .ends_clean();
}

#[test]
fn truncated_log() {
    let file = write(LOG, &[big("x", B + 100)]);
    read(LOG, &file[..B])
        .records(NONE)
        .skipped(&[(0, B as u64, "torn_tail")])
        .ends_torn(0);
}

/// Writes log `number` over the rest of other logs in a buffer of 1 MiB. The log is closed with a
/// trailer or cut.
#[test]
fn recycle_log() {
    let mut buffer = vec![0; 1 << 20];
    for number in 1..40_u32 {
        let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(number);
        let records: Vec<_> = (0..number % 7 + 1)
            .map(|seed| noise((number * 7_919 * (seed + 1)) as usize % 60_000, number ^ seed << 8))
            .collect();
        let mut log = write(dialect, &records);
        let is_closed = number % 3 > 0;
        if is_closed {
            let encoder = Encoder::with_format(log.len() as u64, dialect).unwrap();
            encoder.finish(&mut log);
        }
        buffer[..log.len()].copy_from_slice(&log);
        let reading = read(dialect, &buffer);
        reading.records(&records).ends_clean();
        assert!(!is_closed || reading.skipped[0].2 == "end_trailer");
        let told = |reason| ["end_trailer", "stale", "zero_fill"].contains(&reason);
        assert!(
            reading.skipped.iter().all(|&(_, _, reason)| told(reason)),
            "{number}: {:?}",
            reading.skipped
        );
    }
}

fn recycled_short(number: u32) {
    let old = write(
        LogFormat::new(Dialect::PEBBLE).with_log_number(number.wrapping_sub(1)),
        &["aaaaa"],
    );
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(number);
    let mut file = write(dialect, &["a"]);
    Encoder::with_format(12, dialect).unwrap().finish(&mut file);
    let len = file.len() as u64;
    let file = [&file[..], &[0; 4]].concat();
    assert!(old.len() < file.len());
    // Exception: the bytes after the trailer are reported. Pebble is silent.
    let skipped = [(12, len, "end_trailer"), (len, len + 4, "stale")];
    read(dialect, &file).records(&["a"]).skipped(&skipped).ends_clean();
}

#[test]
fn recycle_log_with_partial_block() {
    recycled_short(2);
}

#[test]
fn recycle_log_number_overflow() {
    recycled_short(u32::MAX);
    recycled_short(0);
}

#[test]
fn recycle_log_with_partial_record() {
    let old = write(LOG, &[noise(B + 100, 1)]);
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(2);
    let new = write(dialect, &[noise(B + 100, 2)]);
    let file = [&new[..B], &old[B..]].concat();
    let (block, end) = (B as u64, file.len() as u64);
    read(dialect, &file)
        .records(NONE)
        .skipped(&[(0, block, "torn_tail"), (block, end, "stale")])
        .ends_torn(0);
}

/// A block of the older log is in the middle of the new log, because the new block was never
/// written.
#[test]
fn a_lost_write() {
    let old = write(LOG, &vec![noise(500, 1); 300]);
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(2);
    let new = write(dialect, &vec![noise(500, 2); 300]);
    let file = [&new[..B], &old[B..2 * B], &new[2 * B..]].concat();
    let reading = read(dialect, &file);
    assert!(reading.skipped.contains(&(B as u64, 2 * B as u64, "lost_write")));
    // The lost records are the 63 records in the block, and the two records at its edges.
    assert_eq!(reading.records.len(), 300 - 65);
    assert_eq!(reading.records.last(), Some(&noise(500, 2)));
}

/// After damage, the next block also starts with damage, but contains a fragment of the log. This
/// proves that the log had not ended there. An older log follows later.
#[test]
fn a_fragment_inside_a_later_block_proves_that_the_log_continues() {
    let old = write(LOG, &vec![noise(500, 1); 300]);
    let dialect = LogFormat::new(Dialect::PEBBLE).with_log_number(2);
    let new = write(dialect, &vec![noise(500, 2); 300]);
    let mut file = [&new[..2 * B], &old[2 * B..]].concat();
    // The damage extends from the middle of the first block to a little after the start of the
    // second.
    file[20_000..B + 100].fill(0xee);
    let reading = read(dialect, &file);
    let first = reading.skipped[0];
    assert_eq!((first.1, first.2), (2 * B as u64, "checksum_mismatch"));
    assert_eq!(
        reading.skipped.last().map(|last| (last.1, last.2)),
        Some((file.len() as u64, "stale"))
    );
    // If an older log is in place of the second block, the log had ended in a record whose header
    // is still there.
    file[B + 100..2 * B].copy_from_slice(&old[B + 100..2 * B]);
    let reading = read(dialect, &file);
    let torn_end = first.0 + 511;
    let skipped = [(first.0, torn_end, "torn_tail"), (torn_end, file.len() as u64, "stale")];
    assert_eq!(reading.skipped, skipped);
}

/// A trailer belongs to a log only if it contains the log's number plus one.
#[test]
fn a_trailer_from_another_log_does_not_end_the_current_log() {
    let mut file = write(LOG, &["one"]);
    let start = file.len() as u64;
    file.extend(b"\0\0\0\0\0\0\x05\x09\0\0\0");
    let reading = read(LOG, &[&file[..], &Wire::Recyclable(1).full(b"two")].concat());
    assert_eq!(
        (reading.skipped[0].0, reading.skipped[0].2),
        (start, "checksum_mismatch")
    );
}

// TestWALSync -------------------------------------------------------------------------------------------------------------------

/// The fault of a bad fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bad {
    Checksum,
    LogNumber,
    WireFormat,
    Zeroed,
    TooLong,
    InvalidType,
    HeaderTooBig,
}

const BAD: [Bad; 7] = [
    Bad::Checksum,
    Bad::LogNumber,
    Bad::WireFormat,
    Bad::Zeroed,
    Bad::TooLong,
    Bad::InvalidType,
    Bad::HeaderTooBig,
];

/// Returns a fragment with `len` bytes of payload and this fault. It states that `synced` bytes had
/// been synced.
fn bad_chunk(bad: Bad, len: usize, synced: u64) -> Vec<u8> {
    let payload = vec![0xab; len];
    let mut chunk = Wire::Synced(1, synced).full(&payload);
    match bad {
        Bad::Checksum => chunk[0] ^= 0xff,
        Bad::LogNumber => chunk = Wire::Synced(5, synced).full(&payload),
        Bad::WireFormat => chunk[6] = 0,
        Bad::Zeroed => chunk.fill(0),
        Bad::TooLong => chunk[4..6].copy_from_slice(&[0xff, 0xff]),
        Bad::InvalidType => chunk[6] = 100,
        // This is shorter than a header of 19 bytes.
        Bad::HeaderTooBig => chunk.truncate(15),
    }
    chunk
}

fn good(synced: u64, len: usize) -> Vec<u8> {
    Wire::Synced(1, synced).full(&vec![1; len])
}

/// Returns a log with a valid fragment, a bad fragment that `in_block` follows, and the bytes of
/// `behind` in the next block.
fn sync_log(bad: Bad, in_block: &[u8], behind: &[u8]) -> (Vec<u8>, u64) {
    let mut file = good(0, 10);
    let start = if bad == Bad::HeaderTooBig && !behind.is_empty() {
        // A header can be too long for its block only at the end of the block.
        file = good(0, B - 19 - 15);
        B as u64 - 15
    } else {
        file.len() as u64
    };
    file.extend(bad_chunk(bad, 20, 0));
    file.extend(in_block);
    if !behind.is_empty() {
        file.resize(B, if bad == Bad::Zeroed { 0 } else { 7 });
        file.extend(behind);
    }
    (file, start)
}

/// The records before the bad fragment are always returned. Pebble returns ErrUnexpectedEOF.
#[test]
fn wal_sync_bad_chunk_alone() {
    for bad in BAD {
        let (file, start) = sync_log(bad, &[], &[]);
        let reading = read(LOG, &file);
        reading.records(&[[1; 10]]);
        let reason = match bad {
            // Exceptions: these are not damage either, but have another name.
            Bad::LogNumber => "stale",
            Bad::Zeroed => "zero_fill",
            _ => "torn_tail",
        };
        reading.skipped(&[(start, file.len() as u64, reason)]);
    }
}

/// The second of two bad fragments would promise more if it were valid. Pebble returns
/// ErrUnexpectedEOF.
#[test]
fn wal_sync_two_bad_chunks() {
    for (bad, other) in BAD.into_iter().flat_map(|bad| [(bad, bad), (bad, Bad::Checksum)]) {
        let (file, start) = sync_log(bad, &[], &bad_chunk(other, 20, 1 << 40));
        let reading = read(LOG, &file);
        assert_eq!(reading.records.len(), 1);
        assert!(
            reading
                .skipped
                .iter()
                .all(|&(_, _, reason)| ["torn_tail", "stale", "zero_fill"].contains(&reason)),
            "{bad:?} {other:?} {:?}",
            reading.skipped
        );
        assert_eq!(reading.skipped[0].0, start);
    }
}

/// A valid fragment in a later block states that everything before it had been synced, which proves
/// corruption. Pebble returns the error itself.
#[test]
fn wal_sync_bad_chunk_is_damage_if_a_later_chunk_promises_that_it_was_synced() {
    for bad in BAD {
        let (file, start) = sync_log(bad, &[], &good(B as u64, 30));
        let reading = read(LOG, &file);
        // Exception: the records after the damage are returned. Pebble stops.
        assert_eq!(reading.records.len(), 2, "{bad:?}");
        let reason = match bad {
            Bad::Checksum | Bad::InvalidType => "checksum_mismatch",
            Bad::LogNumber => "lost_write",
            Bad::WireFormat => "checksum_mismatch",
            // Exception: a preallocated file has zeros up to the end of a block. To Pebble, they
            // are corruption.
            Bad::Zeroed => "zero_fill",
            Bad::TooLong | Bad::HeaderTooBig => "bad_length",
        };
        reading.skipped(&[(start, B as u64, reason)]);
    }
}

/// Exception: the result is the same as if the promise were large enough. Pebble returns
/// ErrUnexpectedEOF because the promise is too small. However, its writer promises too little, so
/// this is no proof, and the next record would be lost silently.
#[test]
fn wal_sync_bad_chunk_is_damage_even_if_a_later_chunk_promises_too_little() {
    for bad in BAD {
        let promise = |synced| {
            let (file, _) = sync_log(bad, &[], &good(synced, 30));
            let reading = read(LOG, &file);
            (reading.records, reading.skipped)
        };
        assert_eq!(promise(0), promise(B as u64), "{bad:?}");
    }
}

/// Exception: this is damage. Pebble does not examine the rest of the same block, and returns
/// ErrUnexpectedEOF.
#[test]
fn wal_sync_bad_chunk_is_damage_if_a_promise_follows_in_the_same_block() {
    for bad in [Bad::Checksum, Bad::TooLong, Bad::InvalidType, Bad::LogNumber] {
        let (file, start) = sync_log(bad, &good(1 << 20, 30), &[]);
        let reading = read(LOG, &file);
        assert_eq!(reading.records.len(), 1, "{bad:?}");
        assert_eq!(reading.skipped[0].0, start);
        assert!(
            ["checksum_mismatch", "bad_length", "lost_write"].contains(&reading.skipped[0].2),
            "{bad:?} {:?}",
            reading.skipped
        );
    }
}

/// Without a trailer and after a hole of many blocks, later records are found, however far away
/// they are.
#[test]
fn wal_sync_chunk_is_found_after_many_damaged_blocks() {
    let mut file = good(0, 10);
    file.extend(noise(5 * B, 9));
    file.resize(6 * B, 3);
    file.extend(good(1 << 20, 10));
    let reading = read(LOG, &file);
    assert_eq!(reading.records.len(), 2);
    assert_eq!(reading.skipped.len(), 1);
    assert_eq!(reading.skipped[0].1, 6 * B as u64);
}

/// The file arrives in pieces, as from a pipe.
#[test]
fn bad_chunks_are_judged_the_same_in_any_window() {
    struct Slow<'a>(&'a [u8]);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = buffer.len().min(777);
            self.0.read(&mut buffer[..len])
        }
    }
    for bad in BAD {
        for behind in [good(B as u64, 30), bad_chunk(bad, 20, 0), Vec::new()] {
            let (file, _) = sync_log(bad, &[], &behind);
            let options = ReadOptions::default()
                .with_format(LOG)
                .with_on_corruption(cordwood_log::OnCorruption::Skip);
            let mut reader = Reader::new(Slow(&file), options);
            let mut events = Vec::new();
            while let Some(event) = reader.next_event().unwrap() {
                if let cordwood_log::Event::Skipped(region) = event {
                    events.push((region.start, region.end, region.reason.as_str()));
                }
            }
            assert_eq!(events, read(LOG, &file).skipped, "{bad:?}");
        }
    }
}
