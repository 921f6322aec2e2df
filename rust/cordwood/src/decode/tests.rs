//! Tests that decoding gives the same results whether or not it finds runs, and whether or not it
//! keeps the data.

use super::{DataAt, Decoder, OnCorruption, ReadOptions, Step, Window};
use crate::damage::Reason;
use crate::dialect::{Compression, Dialect, LogFormat};
use crate::encode::Encoder;
use crate::format::BLOCK_LEN;

fn steps(file: &[u8], finds_runs: bool, options: &ReadOptions) -> Vec<Step> {
    let window = Window {
        offset: 0,
        bytes: file,
        is_last: true,
    };
    let mut decoder = Decoder::new(options).unwrap();
    decoder.run.is_possible &= finds_runs;
    let mut steps = Vec::new();
    while !matches!(steps.last(), Some(Step::End(_))) {
        steps.push(decoder.step(window));
    }
    steps
}

/// Runs are an optimisation. Without runs, `find` classifies each fragment separately.
#[test]
fn decoding_with_and_without_runs_returns_the_same_records() {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(0);
    for len in (0..3000).map(|i| i * 7919 % 97).chain([32_000, 40_000, 0, 0, 5]) {
        encoder.encode(&vec![b'x'; len], &mut file);
    }
    let damaged = {
        let mut damaged = file.clone();
        for offset in (500..damaged.len()).step_by(9001) {
            damaged[offset] ^= 1;
        }
        damaged
    };
    let skip = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    for file in [&file, &damaged] {
        for options in [
            skip.clone(),
            skip.clone().with_range(10..70_000),
            skip.clone().with_range(32_768..65_536),
            skip.clone().with_record_len_max(50),
            skip.clone().with_verify_checksums(false),
            ReadOptions::default().with_on_corruption(OnCorruption::Stop),
        ] {
            assert_eq!(steps(file, true, &options), steps(file, false, &options), "{options:?}");
        }
    }
    assert!(
        steps(&damaged, true, &skip)
            .iter()
            .any(|step| matches!(step, Step::Skipped(_)))
    );
}

/// A pending record is reread from its start only if the decoder discarded its bytes.
#[test]
fn rereads_a_pending_record_whose_bytes_were_discarded() {
    let data = vec![b'x'; 40_000];
    let mut file = Vec::new();
    Encoder::new(0).encode(&data, &mut file);
    for keeps in [true, false] {
        let mut decoder = Decoder::new(&ReadOptions::default()).unwrap();
        decoder.set_keeps_data(keeps);
        let block = Window {
            offset: 0,
            bytes: &file[..BLOCK_LEN],
            is_last: false,
        };
        assert_eq!(decoder.step(block), Step::NeedMore);
        decoder.set_keeps_data(true);
        assert_eq!(decoder.offset(), if keeps { BLOCK_LEN as u64 } else { 0 });
        let whole = Window {
            bytes: &file,
            is_last: true,
            ..block
        };
        let Step::Record(span) = decoder.step(whole) else {
            panic!("no record");
        };
        assert_eq!(decoder.data(whole, span), data);
        assert!(matches!(decoder.step(whole), Step::End(_)));
    }
}

#[test]
fn a_decoder_waits_for_the_rest_of_a_partial_file_header() {
    let header = b":W&B\xe1\xbe\x00";
    let mut decoder = Decoder::new(&ReadOptions::default().with_dialect(Dialect::WANDB)).unwrap();
    for len in 0..header.len() {
        let window = Window {
            offset: 0,
            bytes: &header[..len],
            is_last: false,
        };
        assert_eq!(decoder.step(window), Step::NeedMore, "{len}");
    }
}

/// If a record is interrupted by enough zeros to fill a header, LevelDB reports the record.
#[test]
fn leveldb_reports_a_record_interrupted_by_seven_zeros() {
    let file = b"\x64\x51\xd0\xe9\x00\x00\x02\0\0\0\0\0\0\0";
    let skip = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
    let Step::Skipped(region) = steps(file, true, &skip)[0] else {
        panic!("the start of the record was not reported");
    };
    assert_eq!((region.start, region.end), (0, 7));
    assert_eq!(
        (region.reason, region.leveldb_len),
        (Reason::InterruptedRecord, Some(0))
    );
}

/// If the caller skips bytes, the decoder must not report the end of the log there. The skipped
/// bytes may contain records.
#[test]
fn a_gap_between_two_windows_is_not_mistaken_for_the_end_of_the_log() {
    let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
    let window = |offset: usize| Window {
        offset: offset as u64,
        bytes: &file[offset..],
        is_last: true,
    };
    for lost_to in [11, 20, 30] {
        let mut decoder = Decoder::new(&ReadOptions::default()).unwrap();
        let first = Window {
            bytes: &file[..10],
            is_last: false,
            ..window(0)
        };
        let step = decoder.step(first);
        assert!(matches!(step, Step::Record(span) if span.end_offset == 10), "{step:?}");
        assert_eq!(decoder.step(window(lost_to)), Step::NeedMore, "{lost_to}");
        assert_eq!(decoder.refused(), None);
        assert_eq!(decoder.offset(), 10);
        // The decoder reads the skipped bytes once a window contains them.
        let rest: Vec<Step> = (0..3).map(|_| decoder.step(window(10))).collect();
        assert!(
            matches!(rest[..], [Step::Record(_), Step::Record(_), Step::End(_)]),
            "{rest:?}"
        );
    }
}

#[test]
#[should_panic(expected = "the window does not contain the bytes of the record")]
fn reading_a_record_outside_the_window_panics() {
    let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
    let window = Window {
        offset: 0,
        bytes: file,
        is_last: true,
    };
    let mut decoder = Decoder::new(&ReadOptions::default()).unwrap();
    let Step::Record(span) = decoder.step(window) else {
        panic!("a record")
    };
    let cut = Window {
        bytes: &file[..9],
        ..window
    };
    decoder.data(cut, span);
}

/// Damages a file by flipping bits, or by zeroing, removing or cutting off bytes. `random` chooses
/// the positions and lengths.
fn damage(file: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut damaged = file.to_vec();
    for _ in 0..random(5) {
        let start = random(damaged.len());
        let end = start + random((damaged.len() - start).min(70_000) + 1);
        match random(4) {
            0 => damaged[start] ^= 1 << random(8),
            1 => damaged[start..end].fill(0),
            2 => drop(damaged.drain(start..end)),
            _ => damaged.truncate(damaged.len() - random(40_000).min(damaged.len() - 1)),
        }
    }
    damaged
}

/// Returns formats of each dialect, some with a log number or compression.
fn formats() -> Vec<LogFormat> {
    let mut formats = vec![
        LogFormat::new(Dialect::LEVELDB),
        LogFormat::new(Dialect::ROCKSDB),
        LogFormat::new(Dialect::ROCKSDB).with_log_number(7),
        LogFormat::new(Dialect::PEBBLE).with_log_number(7),
        LogFormat::new(Dialect::RECYCLABLE).with_log_number(7),
        LogFormat::new(Dialect::WANDB),
        LogFormat::new(Dialect::WANDB_OLD),
        LogFormat::new(Dialect::SWANLAB),
    ];
    if cfg!(feature = "zstd") {
        formats.extend([
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            LogFormat::new(Dialect::ROCKSDB)
                .with_log_number(7)
                .with_compression(Compression::Zstd),
        ]);
    }
    formats
}

/// Reads intact and damaged files of every dialect, under every policy. A decoder that does not
/// keep record bytes must return the same record lengths as one that does.
#[test]
fn discarding_bytes_does_not_change_record_lengths() {
    let formats = formats();
    let mut joined_count = 0;
    for format in formats {
        for seed in 0..60_u64 {
            let mut state = seed;
            let mut random = |max: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % max
            };
            let mut file = Vec::new();
            let mut encoder = Encoder::with_format(0, format).unwrap();
            for _ in 0..random(40) {
                let len_max = [1, 300, 40_000, 150_000][random(4)];
                let record: Vec<u8> = (0..=random(len_max)).map(|_| random(256) as u8).collect();
                encoder.encode(&record, &mut file);
            }
            if random(2) == 0 {
                encoder.finish(&mut file);
            }
            let file = if seed % 3 == 0 || file.is_empty() {
                file
            } else {
                damage(&file, &mut random)
            };
            let policies = [OnCorruption::Skip, OnCorruption::Stop, OnCorruption::Salvage];
            let mut options = ReadOptions::default().with_format(format);
            // The decoder must learn from the log's contents that the log is compressed.
            options.compression = None;
            let options = options
                .with_on_corruption(policies[random(3)])
                .with_record_len_max([1 << 30, 1 << 30, 50_000, 0][random(4)]);
            let window = Window {
                offset: 0,
                bytes: &file,
                is_last: true,
            };
            let (mut keeping, mut counting) = (Decoder::new(&options).unwrap(), Decoder::new(&options).unwrap());
            counting.set_keeps_data(false);
            loop {
                let step = keeping.step(window);
                assert_eq!(counting.step(window), step, "{format:?} {seed}");
                match step {
                    Step::Record(span) => {
                        let len = keeping.data(window, span).len() as u64;
                        assert_eq!(keeping.data_len(span), len);
                        assert_eq!(counting.data_len(span), len, "{format:?} {seed}");
                        assert_eq!(counting.stored(span), keeping.stored(span), "{format:?} {seed}");
                        joined_count += u32::from(!matches!(span.data_at, DataAt::Window { .. }));
                    }
                    Step::Skipped(_) => {}
                    Step::NeedMore => panic!("the window is the last"),
                    Step::End(_) => break,
                }
            }
            assert_eq!(counting.info(), keeping.info());
        }
    }
    assert!(joined_count > 400, "{joined_count}");
}

/// The data of a single-fragment record is in the window, after the header. The data of a
/// multi-fragment record is joined. A compressed record is always decompressed, however many
/// fragments it has.
#[test]
fn the_span_points_into_the_window_or_the_joined_buffer() {
    let in_window = |header_len| DataAt::Window { header_len };
    let numbered = LogFormat::new(Dialect::ROCKSDB).with_log_number(7);
    let mut cases = vec![
        (LogFormat::new(Dialect::LEVELDB), [in_window(7), DataAt::Joined]),
        (numbered, [in_window(11), DataAt::Joined]),
    ];
    if cfg!(feature = "zstd") {
        cases.push((
            LogFormat::new(Dialect::ROCKSDB).with_compression(Compression::Zstd),
            [DataAt::Unpacked; 2],
        ));
    }
    // These bytes are incompressible, so the second record always has several fragments.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(70_000)
    .collect();
    for (format, expected) in cases {
        let mut file = Vec::new();
        let mut encoder = Encoder::with_format(0, format).unwrap();
        encoder.encode(b"short", &mut file);
        encoder.encode(&noise, &mut file);
        let window = Window {
            offset: 0,
            bytes: &file,
            is_last: true,
        };
        let mut decoder = Decoder::new(&ReadOptions::default().with_format(format)).unwrap();
        let mut found = Vec::new();
        loop {
            match decoder.step(window) {
                Step::Record(span) => found.push((span.data_at, decoder.data(window, span).to_vec())),
                Step::Skipped(_) => {}
                Step::NeedMore => panic!("the window is the last"),
                Step::End(_) => break,
            }
        }
        let [short, long] = expected;
        assert_eq!(found, [(short, b"short".to_vec()), (long, noise.clone())], "{format:?}");
    }
}

/// Reads the same files in windows of random lengths, without keeping any window. A record's pieces
/// must contain the same bytes as the joined record, even if part of the record is in an earlier
/// window. Joining a record after it was found must also give the same bytes.
#[test]
fn the_pieces_of_a_record_add_up_to_the_joined_record() {
    let (mut pieces_count, mut joined_count) = (0, 0);
    for format in formats() {
        for seed in 0..8_u64 {
            let mut state = seed;
            let mut random = |max: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % max
            };
            let mut file = Vec::new();
            let mut encoder = Encoder::with_format(0, format).unwrap();
            let mut start = 0;
            for _ in 0..random(30) {
                let len_max = [1, 300, 40_000, 150_000, 150_000, 2_000_000][random(6)];
                let first = random(256);
                let record: Vec<u8> = (0..=random(len_max))
                    .map(|at| (first + ((at * at) >> 8)) as u8)
                    .collect();
                let offset = encoder.encode(&record, &mut file);
                start = [start, offset][random(2)];
            }
            if seed % 3 > 0 && !file.is_empty() {
                file = damage(&file, &mut random);
            }
            let policies = [OnCorruption::Skip, OnCorruption::Stop, OnCorruption::Salvage];
            let mut options = ReadOptions::default()
                .with_format(format)
                .with_on_corruption(policies[random(3)])
                .with_record_len_max([1 << 30, 1 << 30, 50_000][random(3)]);
            if random(2) == 0 {
                // The range may skip the start of the log. As after a seek, the options must then
                // supply whatever the decoder would have read there.
                options = options.with_range(start.min(file.len() as u64)..);
            } else {
                options.compression = None;
            }
            let whole = Window {
                offset: 0,
                bytes: &file,
                is_last: true,
            };
            let window_max = [1_000, 100_000, 1 << 20, file.len() + 1][random(4)];
            let mut window = Window {
                offset: 0,
                bytes: &file[..0],
                is_last: file.is_empty(),
            };
            let mut joining = Decoder::new(&options).unwrap();
            let mut leaving = Decoder::new(&options).unwrap().leaving_in_window();
            loop {
                let step = leaving.step(window);
                if step == Step::NeedMore {
                    let start = (leaving.offset() as usize).min(file.len());
                    let end = start.max(window.end_offset() as usize) + 1 + random(window_max);
                    let end = end.min(file.len());
                    window = Window {
                        offset: start as u64,
                        bytes: &file[start..end],
                        is_last: end == file.len(),
                    };
                    continue;
                }
                let expected = joining.step(whole);
                let (Step::Record(span), Step::Record(joined)) = (step, expected) else {
                    assert_eq!(step, expected, "{format:?} {seed}");
                    if matches!(step, Step::End(_)) {
                        break;
                    }
                    continue;
                };
                let pieces = leaving.pieces(window, span).collect::<Vec<_>>();
                let is_in_window = |piece: &&[u8]| whole.bytes.as_ptr_range().contains(&piece.as_ptr());
                if pieces.len() > 1 {
                    assert!(pieces.iter().all(is_in_window));
                    pieces_count += 1;
                } else {
                    joined_count += u32::from(span.data_at == DataAt::Joined);
                }
                let found = pieces.concat();
                assert!(found == joining.data(whole, joined), "{format:?} {seed} {span:?}");
                assert_eq!(span, joined);
                assert_eq!(leaving.data_len(span), joining.data_len(joined));
                assert_eq!(leaving.stored(span), joining.stored(joined));
                leaving.join(window, span).unwrap();
                assert!(leaving.data(window, span) == found);
            }
        }
    }
    assert!(pieces_count > 80 && joined_count > 80, "{pieces_count} {joined_count}");
}

/// The file may consist of empty fragments, and the record may be longer than the rest of the
/// window.
#[test]
fn a_short_record_remains_in_the_window_even_if_it_has_many_fragments() {
    let build = |payloads: &[&[u8]]| {
        let mut file = Vec::new();
        for (index, payload) in payloads.iter().enumerate() {
            let kind = match index {
                0 => 2,
                _ if index + 1 == payloads.len() => 4,
                _ => 3,
            };
            let crc = crate::checksum::mask(crate::crc32c::extend(crate::crc32c::crc32c(&[kind]), payload));
            file.extend_from_slice(&crc.to_le_bytes());
            file.extend_from_slice(&(payload.len() as u16).to_le_bytes());
            file.push(kind);
            file.extend_from_slice(payload);
        }
        file
    };
    let block = [7; 32_761];
    let empty: Vec<&[u8]> = (0..1_000)
        .map(|index| [&b""[..], b"a"][usize::from(index % 500 == 3)])
        .collect();
    for (payloads, pieces_count) in [(empty, 1_000), (vec![&block[..]; 8], 8), (vec![&block[..]; 9], 1)] {
        let file = build(&payloads);
        let window = Window {
            offset: 0,
            bytes: &file,
            is_last: true,
        };
        let mut decoder = Decoder::new(&ReadOptions::default()).unwrap().leaving_in_window();
        let Step::Record(span) = decoder.step(window) else {
            panic!("the file is one record");
        };
        let pieces: Vec<&[u8]> = decoder.pieces(window, span).collect();
        assert_eq!(pieces.len(), pieces_count);
        assert!(pieces.concat() == payloads.concat());
    }
}
