//! Tests packed logs with hostile and damaged containers, with followers, and with repairs.

use std::fs;
use std::time::Duration;

use crate::common::{Found, read_all};
use crate::made::{body, container, frame, mark};
use crate::wire::Wire;
use cordwood_log::codec::{Decoder, Encoder, Step, Window};
use cordwood_log::follow::Poll;
use cordwood_log::ops::{SalvageOptions, salvage_file, stat, verify};
use cordwood_log::read::{RecordBatch, SliceSource, StreamSource};
use cordwood_log::{
    Dialect, End, Error, ErrorKind, Event, FollowOptions, Follower, OnCorruption, ReadOptions, Reader, Unsupported,
};

const BLOCK: usize = 32_768;

fn options() -> ReadOptions {
    ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_dialect(Dialect::PACKED)
}

/// A start and an end offset, and either the length of a record or the reason of a region.
type Part = (u64, u64, Result<usize, &'static str>);

fn read(file: &[u8], options: &ReadOptions) -> Vec<Part> {
    let mut reader = Reader::from_slice(file, options.clone());
    let parts = read_all(&mut reader).0.into_iter().map(|event| match event {
        Found::Record {
            offset,
            end_offset,
            data,
            ..
        } => (offset, end_offset, Ok(data.len())),
        Found::Skipped(region) => (region.start, region.end, Err(region.reason.as_str())),
    });
    parts.collect()
}

fn full(container: &[u8]) -> Vec<u8> {
    Wire::Packed.fragment(0x40, container)
}

/// Returns the events of a log that consists of one container and an ordinary record.
fn first(container: &[u8]) -> Vec<Part> {
    let file = [full(container), Wire::Plain.fragment(1, b"ok")].concat();
    let parts = read(&file, &options());
    let len = 7 + container.len() as u64;
    assert_eq!(parts.last(), Some(&(len, len + 9, Ok(2))), "{parts:?}");
    parts[..parts.len() - 1].to_vec()
}

#[track_caller]
fn check_bad(container: &[u8], reason: &'static str) {
    assert_eq!(
        first(container),
        [(0, 7 + container.len() as u64, Err(reason))],
        "{container:?}"
    );
}

#[test]
fn an_impossible_container_is_reported_as_damage() {
    let bad = |container: &[u8]| check_bad(container, "bad_container");
    bad(b"");
    bad(b"\x00");
    // These counts are 0, not in the shortest form, cut, too long, and more than the container has
    // bytes.
    bad(b"\x00\x00");
    bad(b"\x00\x81\x00\x01a");
    bad(b"\x00\x80");
    bad(b"\x00\x81\x80\x80\x80\x80\x00\x01a");
    bad(&container(0, 32_769, &vec![0; 32_700]));
    bad(&container(0, 30, &[0; 10]));
    // The lengths or the data are incomplete, too long, or not in the shortest form.
    bad(&container(0, 2, b"\x01"));
    bad(&container(0, 2, b"\x01\x01a"));
    bad(&container(0, 2, b"\x01\x01abc"));
    bad(&container(0, 1, b"\x80"));
    bad(&container(0, 1, b"\x81\x00a"));
    bad(&container(0, 1, b"\x81\x80\x80\x80\x80\x00a"));
    bad(&container(0, 1, b""));
    // The lengths of these three records overflow 32 bits.
    bad(&container(
        0,
        3,
        b"\xff\xff\xff\xff\x7f\xff\xff\xff\xff\x7f\x02\xff\xff",
    ));
    if cfg!(feature = "zstd") {
        // The container has only a codec, and then the same in a frame.
        bad(b"\x01");
        bad(&container(1, 0, &frame(b"")));
        bad(&container(1, 2, &frame(b"\x01\x01a")));
        bad(&container(1, 1, &frame(b"")));
    }
}

#[test]
#[cfg(feature = "zstd")]
fn a_container_must_hold_exactly_one_frame_with_a_stated_length() {
    let one = frame(b"\x03abc");
    assert_eq!(first(&container(1, 1, &one)), [(0, 7 + 2 + one.len() as u64, Ok(3))]);
    let bad = |frame: &[u8]| check_bad(&container(1, 1, frame), "bad_compression");
    let skippable = b"\x50\x2a\x4d\x18\x02\x00\x00\x00xy";
    bad(b"");
    bad(&one[..one.len() - 1]);
    bad(&[&one[..], b"\x00"].concat());
    bad(&[&one[..], &one].concat());
    bad(&[&one[..], &frame(b"")].concat());
    bad(&[&one[..], skippable].concat());
    bad(&[&skippable[..], &one].concat());
    // The frame states no content size. It has a window of 1 KiB and not a single segment.
    bad(b"\x28\xb5\x2f\xfd\x00\x00\x21\x00\x00\x03abc");
    // The frame has a dictionary.
    bad(b"\x28\xb5\x2f\xfd\x21\x07\x04\x21\x00\x00\x03abc");
    // The content size is off by one, or is a gigabyte.
    for size in [3_u32, 5, 1 << 30, 1 << 18] {
        let mut wrong = one.clone();
        wrong[5..9].copy_from_slice(&size.to_le_bytes());
        bad(&wrong);
    }
    // The checksum of the content is wrong.
    bad(b"\x28\xb5\x2f\xfd\x24\x04\x21\x00\x00\x03abc\x01\x02\x03\x04");
}

#[test]
fn a_container_needs_one_offset_per_record() {
    let count = BLOCK - 7 - 4;
    // The container has one byte for each empty record, and more bytes for the header and the
    // count.
    let stored = container(0, count, &vec![0; count]);
    assert_eq!(stored.len(), BLOCK - 7);
    let file = full(&stored);
    let parts = read(&file, &options());
    assert_eq!(parts.len(), count);
    assert_eq!(parts[count - 1], (count as u64 - 1, BLOCK as u64, Ok(0)));

    // The offsets extend to the last byte of the block or of the container, which both allow.
    for (before, count, is_valid) in [(0, 32_768, true), (1, 32_767, true), (1, 32_768, false)] {
        let mut file = vec![0; 0];
        if before > 0 {
            Wire::Plain.append(&mut file, 0, b"");
        }
        let start = file.len();
        let count = count - if before > 0 { 6 } else { 0 };
        Wire::Packed.append(&mut file, 0, &container(0, count, &vec![0; count]));
        let parts = read(&file, &options());
        let found = parts.iter().filter(|part| part.0 >= start as u64).count();
        assert_eq!(found, if is_valid { count } else { 1 }, "{before} {count}");
        if is_valid {
            assert_eq!(parts.last().map(|part| part.0), Some(BLOCK as u64 - 1));
        } else {
            assert_eq!(
                parts.last(),
                Some(&(start as u64, file.len() as u64, Err("bad_container")))
            );
        }
    }
}

#[test]
fn fragments_of_a_container_are_never_joined_with_fragments_of_a_record() {
    let whole = container(0, 2, &body(&[b"ab", b"cd"]));
    let (head, tail) = whole.split_at(3);
    let plain = |kind, payload: &[u8]| Wire::Plain.fragment(kind, payload);
    let packed = |kind: u8, payload: &[u8]| Wire::Packed.fragment(0x3e + 2 * kind, payload);
    for (file, expected) in [
        (
            [packed(2, head), plain(4, tail)].concat(),
            vec![(0, 10, Err("missing_end")), (10, 22, Err("missing_start"))],
        ),
        (
            [plain(2, head), packed(4, tail)].concat(),
            vec![(0, 10, Err("missing_end")), (10, 22, Err("missing_start"))],
        ),
        (
            [packed(2, head), plain(1, b"x"), packed(4, tail)].concat(),
            vec![
                (0, 10, Err("missing_end")),
                (10, 18, Ok(1)),
                (18, 30, Err("missing_start")),
            ],
        ),
        (
            [packed(2, head), mark(1, 0), packed(4, tail)].concat(),
            vec![
                (0, 10, Err("interrupted_record")),
                (10, 27, Err("metadata")),
                (27, 39, Err("missing_start")),
            ],
        ),
        (
            [
                packed(2, b""),
                packed(3, &whole[..2]),
                packed(3, b""),
                packed(4, &whole[2..]),
            ]
            .concat(),
            vec![(0, 1, Ok(2)), (1, 7 * 4 + whole.len() as u64, Ok(2))],
        ),
    ] {
        assert_eq!(read(&file, &options()), expected);
        for split in 0..=file.len() as u64 {
            let before = read(&file, &options().with_range(..split));
            let after = read(&file, &options().with_range(split..));
            assert_eq!([before, after].concat(), expected, "{split}");
        }
    }
}

/// A reader that continues where the range ended must return the rest of the container.
#[test]
fn a_range_can_end_inside_a_container() {
    let file = [
        full(&container(0, 4, &body(&[b"aa", b"bb", b"cc", b"dd"]))),
        full(b"\x00\x01\x01e"),
    ]
    .concat();
    let end = |range| {
        let mut reader = Reader::from_slice(&file, options().with_range(range));
        while reader.next_record().unwrap().is_some() {}
        reader.end()
    };
    let clean = |offset| Some(End::Clean { offset });
    for inside in 1..4 {
        assert_eq!(end(0..inside), clean(inside));
        assert_eq!(end(1..inside), clean(inside));
    }
    // These ends are after the records of the container, but before the next container.
    for after in [4, 5, 21] {
        assert_eq!(end(0..after), clean(21));
    }
    assert_eq!(end(0..22), clean(file.len() as u64));
    // The last record of the container extends past such an end, so no trailer is between them.
    assert_eq!(end(1..5), clean(5));
    let stat = stat(SliceSource::new(&file), &options().with_range(1..5)).unwrap();
    assert_eq!((stat.record_count, stat.trailer_len), (3, 0));
}

#[test]
fn an_overlong_record_does_not_affect_the_rest_of_its_container() {
    let records: [&[u8]; 4] = [b"aaaa", b"b", b"ccccc", b""];
    for codec in 0..=u8::from(cfg!(feature = "zstd")) {
        let body = body(&records);
        let stored = if codec == 1 { frame(&body) } else { body };
        let file = full(&container(codec, 4, &stored));
        let end = file.len() as u64;
        let too_long = Err("record_too_large");
        let expected = [(0, 1, too_long), (1, 2, Ok(1)), (2, 3, too_long), (3, end, Ok(0))];
        let options = options().with_record_len_max(3);
        assert_eq!(read(&file, &options), expected);
        for split in 0..=end {
            let before = read(&file, &options.clone().with_range(..split));
            let after = read(&file, &options.clone().with_range(split..));
            assert_eq!([before, after].concat(), expected, "{split}");
        }
        let mut reader = Reader::from_slice(&file, options.clone());
        let mut batch = RecordBatch::default();
        assert!(reader.record_batch(&mut batch, 1 << 20).unwrap());
        assert_eq!(batch.record_offsets(), [1, 3]);
        assert_eq!(
            (batch.record_end_offset(0), batch.record_end_offset(1)),
            (Some(2), Some(end))
        );
        let stop = options.with_on_corruption(OnCorruption::Stop);
        assert_eq!(read(&file, &stop)[..2], [(0, 1, too_long), (1, end, Err("not_read"))]);
    }
}

/// Also to the last one, and to those of a container after another one.
#[test]
fn the_length_limit_applies_to_every_record_in_a_container() {
    let last = full(&container(0, 3, &body(&[&b"a"[..], b"b", b"long"])));
    let long = full(&container(0, 4, &body(&[&b"long"[..], b"long", b"max", b"long"])));
    let (start, end) = (last.len() as u64, (last.len() + long.len()) as u64);
    let parts = read(&[last, long].concat(), &options().with_record_len_max(3));
    let too_long = Err("record_too_large");
    assert_eq!(
        parts[2..],
        [
            (2, start, too_long),
            (start, start + 1, too_long),
            (start + 1, start + 2, too_long),
            (start + 2, start + 3, Ok(3)),
            (start + 3, end, too_long),
        ]
    );
}

/// A container of two records with a codec that does not exist.
fn unknown_codec() -> Vec<u8> {
    full(&container(7, 2, &body(&[b"a", b"b"])))
}

fn is_unknown_codec(event: &Result<Option<Event<'_>>, Error>) -> bool {
    let Err(Error {
        kind: ErrorKind::Unsupported { unsupported, .. },
        ..
    }) = event
    else {
        return false;
    };
    matches!(
        unsupported,
        Unsupported::Codec {
            codec: 7,
            offset: 0,
            ..
        }
    )
}

#[test]
fn an_unknown_codec_is_rejected_only_if_its_container_overlaps_the_range() {
    let unknown = unknown_codec();
    let end = unknown.len() as u64;
    let file = [unknown, Wire::Plain.full(b"ok")].concat();
    assert_eq!(read(&file, &options().with_range(end..)), [(end, end + 9, Ok(2))]);
    for start in 0..end {
        let mut reader = Reader::from_slice(&file, options().with_range(start..));
        let event = reader.next_event();
        assert!(is_unknown_codec(&event), "{start}: {event:?}");
    }
}

/// A stream cannot go back to the first fragment.
#[test]
fn a_container_of_several_fragments_is_rejected_on_every_read() {
    let mut file = Vec::new();
    Wire::Packed.append(&mut file, 0, &container(7, 1, &body(&[vec![b'x'; 4 << 20]])));
    let mut reader = Reader::with_source(StreamSource::new(&file[..], 0), options());
    for _ in 0..2 {
        let event = reader.next_event();
        assert!(is_unknown_codec(&event), "{event:?}");
    }
}

/// In both cases, the byte that names the codec may be wrong.
#[test]
fn an_unknown_codec_is_damage_if_other_damage_precedes_it_or_checksums_are_not_verified() {
    let mut damaged = Wire::Plain.full(&[b'x'; 20]);
    damaged[10] ^= 3;
    let unknown = unknown_codec();
    let ok = Wire::Plain.full(b"ok");
    let (start, end) = (damaged.len() as u64, (damaged.len() + unknown.len()) as u64);
    assert_eq!(
        read(
            &[&damaged[..], &unknown, &ok].concat(),
            &options().with_on_corruption(OnCorruption::Salvage)
        ),
        [
            (0, start, Err("checksum_mismatch")),
            (start, end, Err("unsupported_compression")),
            (end, end + 9, Ok(2))
        ]
    );
    let end = end - start;
    assert_eq!(
        read(&[&unknown[..], &ok].concat(), &options().with_verify_checksums(false)),
        [(0, end, Err("unsupported_compression")), (end, end + 9, Ok(2))]
    );
}

/// A container may start before the offset, so the block is read from its start.
#[test]
fn damage_before_a_seek_target_does_not_lose_the_record() {
    let mut damaged = Wire::Plain.full(b"damaged");
    damaged[9] ^= 3;
    let file = [damaged, Wire::Plain.full(b"sought")].concat();
    let window = Window {
        offset: 0,
        bytes: &file,
        is_last: true,
    };
    let mut decoder = Decoder::new(&options()).unwrap();
    decoder.seek(14);
    let step = decoder.step(window);
    assert!(matches!(step, Step::Record(span) if span.offset == 14), "{step:?}");
}

/// The next byte to read is the offset of the next record.
#[test]
fn decoder_stops_after_each_record_in_a_container() {
    let file = full(&container(0, 3, &body(&[b"a", b"b", b"c"])));
    let window = Window {
        offset: 0,
        bytes: &file,
        is_last: true,
    };
    let mut decoder = Decoder::new(&options()).unwrap();
    for expected in [1, 2, file.len() as u64] {
        assert!(matches!(decoder.step(window), Step::Record(_)));
        assert_eq!(decoder.offset(), expected);
    }
}

#[test]
fn a_container_longer_than_the_limit_is_reported_as_too_large() {
    let long = vec![b'x'; 2 << 20];
    let mut file = Vec::new();
    Wire::Packed.append(&mut file, 0, &container(0, 1, &body(&[&long])));
    let end = file.len() as u64;
    let parts = read(&file, &options().with_record_len_max(1000));
    assert_eq!(parts.len(), 2);
    assert_eq!((parts[0].0, parts[0].2), (0, Err("record_too_large")));
    assert_eq!((parts[1].1, parts[1].2), (end, Err("too_large_rest")));
    assert_eq!(read(&file, &options()), [(0, end, Ok(long.len()))]);
}

/// Returns a frame that states 100 MiB in a few bytes, and the length of the only record in it.
#[cfg(feature = "zstd")]
fn bomb() -> (Vec<u8>, usize) {
    use crate::made::varint;

    let mut bomb = b"\x28\xb5\x2f\xfd\xa0".to_vec();
    let len = 100_u32 << 20;
    let content = len + 4;
    bomb.extend(content.to_le_bytes());
    let block = |len: u32, kind: u32, is_last: u32| (len << 3 | kind << 1 | is_last).to_le_bytes()[..3].to_vec();
    bomb.extend(block(4, 0, 0));
    bomb.extend(varint(len as usize));
    for index in 0..len >> 17 {
        bomb.extend(block(1 << 17, 1, u32::from(index + 1 == len >> 17)));
        bomb.push(b'z');
    }
    (bomb, len as usize)
}

/// Together, these frames state more than the file may contain.
#[test]
#[cfg(feature = "zstd")]
fn compressed_containers_count_against_the_decompression_budget() {
    let (bomb, len) = bomb();
    let whole = container(1, 1, &bomb);
    let (first, last) = whole.split_at(whole.len() / 2);
    let joined = [Wire::Packed.part(2, first), Wire::Packed.part(4, last)].concat();
    for one in [full(&whole), joined] {
        let file = one.repeat(4);
        let mut reader = Reader::from_slice(&file, options());
        for _ in 0..2 {
            assert_eq!(reader.next_record().unwrap().unwrap().data.len(), len);
        }
        for _ in 0..2 {
            let error = reader.next_record().unwrap_err();
            assert!(matches!(error.kind, ErrorKind::OverBudget(_)), "{error}");
            assert_eq!(error.offset(), Some(file.len() as u64 / 2));
        }
        // A seek starts a new count.
        reader.seek(0).unwrap();
        for _ in 0..2 {
            assert_eq!(reader.next_record().unwrap().unwrap().data.len(), len);
        }
    }
}

#[test]
#[cfg(feature = "zstd")]
fn damaged_frames_count_against_the_decompression_budget() {
    let (bomb, _) = bomb();
    let file = full(&container(1, 1, &[&bomb[..], b"\x00"].concat())).repeat(4);
    let mut reader = Reader::from_slice(&file, options());
    for _ in 0..2 {
        assert!(matches!(
            reader.next_event().unwrap(),
            Some(cordwood_log::Event::Skipped(_))
        ));
    }
    let error = reader.next_event().unwrap_err();
    assert!(matches!(error.kind, ErrorKind::OverBudget(_)), "{error}");
}

/// Returns a log of a mark, records and containers, in two blocks.
fn log() -> Vec<u8> {
    let mut file = mark(1, u8::from(cfg!(feature = "zstd")));
    for seed in 0_usize.. {
        if file.len() > BLOCK + 8_000 {
            break;
        }
        let records: Vec<Vec<u8>> = (0..1 + seed * 7 % 20)
            .map(|at| vec![seed as u8; at * at % 300])
            .collect();
        let body = body(&records);
        match seed % 3 {
            2 => Wire::Plain.append(&mut file, 0, &records.concat()),
            1 if cfg!(feature = "zstd") => {
                Wire::Packed.append(&mut file, 0, &container(1, records.len(), &frame(&body)))
            }
            _ => Wire::Packed.append(&mut file, 0, &container(0, records.len(), &body)),
        };
    }
    file
}

#[test]
fn a_follower_can_start_at_any_record_offset() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.log");
    let file = log();
    fs::write(&path, &file).unwrap();
    for dialect in [None, Some(Dialect::PACKED)] {
        let all: Vec<Part> = read(&file, &options());
        for (index, part) in all.iter().enumerate().filter(|(_, part)| part.2.is_ok()) {
            for (start, rest) in [(part.0, &all[index..]), (part.1, &all[index + 1..])] {
                let options = FollowOptions::default().with_start(start).with_dialect(dialect);
                let mut follower = Follower::open_with(&path, options).unwrap();
                for expected in rest.iter().take(2) {
                    match follower.poll().unwrap() {
                        Poll::Record(record) => {
                            let found = (record.offset, record.end_offset, Ok(record.data.len()));
                            assert_eq!(&found, expected, "from {start}");
                        }
                        other => panic!("{other:?} from {start}"),
                    }
                }
            }
        }
    }
}

/// The follower must not go back to the start of the block, where the same damage is.
#[test]
fn a_follower_continues_after_damage_in_the_same_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.log");
    let unknown = Wire::Plain.fragment(0x34, b"unknown");
    let container = full(&container(0, 3, &body(&[b"a", b"b", b"c"])));
    let file = [&mark(1, 0)[..], &unknown, &container, &unknown, &container].concat();
    fs::write(&path, &file).unwrap();
    let [first, second] = [17 + 14, 17 + 28 + container.len() as u64];
    for start in [0, 17, first, first + 2, second, second + 1] {
        let options = FollowOptions::default()
            .with_start(start)
            .with_dialect(Dialect::PACKED)
            .with_on_corruption(OnCorruption::Skip)
            .with_retry(0, Duration::ZERO);
        let mut follower = Follower::open_with(&path, options).unwrap();
        let mut found = Vec::new();
        loop {
            match follower.poll().unwrap() {
                Poll::Record(record) => found.push(record.offset),
                Poll::Skipped(_) => {}
                Poll::NotYet(_) => break,
                other => panic!("{other:?}"),
            }
        }
        let offsets = (first..first + 3).chain(second..second + 3);
        assert_eq!(
            found,
            offsets.filter(|offset| *offset >= start).collect::<Vec<_>>(),
            "{start}"
        );
    }
}

/// Under every policy, a fragment of an unknown type costs only itself and not the rest of its
/// block.
#[test]
fn a_reader_can_seek_into_a_container_after_damage() {
    let unknown = Wire::Plain.fragment(0x34, b"unknown");
    let container = full(&container(0, 3, &body(&[b"a", b"b", b"c"])));
    let file = [&mark(1, 0)[..], &unknown, &container, &unknown, &container].concat();
    let [first, second] = [17 + 14, 17 + 28 + container.len() as u64];
    let offsets: Vec<u64> = (first..first + 3).chain(second..second + 3).collect();
    for policy in [
        OnCorruption::Fail,
        OnCorruption::Skip,
        OnCorruption::Salvage,
        OnCorruption::Stop,
    ] {
        for &start in &offsets {
            let mut reader = Reader::from_slice(&file, options().with_on_corruption(policy));
            reader.seek(start).unwrap();
            let is_before_damage = start < second;
            let mut found = Vec::new();
            loop {
                match reader.next_event() {
                    Ok(Some(Event::Record(record))) => found.push(record.offset),
                    Ok(Some(Event::Skipped(_))) => {}
                    Ok(None) => break,
                    Err(Error {
                        kind: ErrorKind::Corruption { .. },
                        ..
                    }) if policy == OnCorruption::Fail && is_before_damage => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let end = if policy == OnCorruption::Stop && is_before_damage {
                second
            } else {
                u64::MAX
            };
            let expected: Vec<u64> = offsets
                .iter()
                .copied()
                .filter(|offset| (start..end).contains(offset))
                .collect();
            assert_eq!(found, expected, "{policy:?}, {start}");
        }
    }
}

#[test]
fn seeking_to_a_damaged_region_reports_the_damage() {
    let unknown = Wire::Plain.fragment(0x34, b"unknown");
    let container = full(&container(0, 1, &body(&[b"a"])));
    let file = [&mark(1, 0)[..], &container, &unknown].concat();
    let damage = 17 + container.len() as u64;
    let mut reader = Reader::from_slice(&file, options().with_on_corruption(OnCorruption::Skip));
    reader.seek(damage).unwrap();
    let Ok(Some(Event::Skipped(region))) = reader.next_event() else {
        panic!("the damage is not reported");
    };
    assert_eq!((region.start, region.end), (damage, file.len() as u64));
}

#[test]
fn a_follower_returns_a_container_once_it_is_fully_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.log");
    let file = log();
    let all: Vec<Part> = read(&file, &options());
    fs::write(&path, b"").unwrap();
    let mut follower = Follower::open_with(&path, FollowOptions::default()).unwrap();
    let mut found: Vec<Part> = Vec::new();
    for len in (0..=file.len()).step_by(97).chain([file.len()]) {
        let append = &file[fs::metadata(&path).unwrap().len() as usize..len];
        let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut writer, append).unwrap();
        loop {
            match follower.poll().unwrap() {
                Poll::Record(record) => found.push((record.offset, record.end_offset, Ok(record.data.len()))),
                Poll::Skipped(region) => found.push((region.start, region.end, Err(region.reason.as_str()))),
                Poll::NotYet(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(found.iter().all(|part| part.1 <= len as u64));
    }
    assert_eq!(found, all);
}

#[test]
fn flipping_a_bit_back_restores_every_record_in_the_container() {
    let directory = tempfile::tempdir().unwrap();
    let file = log();
    let all = verify(SliceSource::new(&file), &ReadOptions::default()).unwrap();
    for at in (20..file.len()).step_by(1_931) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let source = directory.path().join(format!("{at}.old"));
        fs::write(&source, &damaged).unwrap();
        let verified = verify(SliceSource::new(&damaged), &ReadOptions::default()).unwrap();
        assert!(!verified.is_ok(), "{at}");
        let destination = directory.path().join(format!("{at}.new"));
        let repairing = SalvageOptions::default().with_repair_bit_flips(true);
        let report = salvage_file(&source, &destination, &repairing).unwrap();
        assert_eq!(report.record_count, all.record_count, "{at}");
        assert_eq!(report.repaired_count, all.record_count - verified.record_count, "{at}");
        let new = fs::read(&destination).unwrap();
        let lens = |file: &[u8]| -> Vec<_> {
            let parts = read(file, &options()).into_iter();
            parts.filter_map(|(.., part)| part.ok()).collect()
        };
        assert_eq!(lens(&new), lens(&file), "{at}");
    }
}

#[test]
fn a_packed_log_without_its_mark_still_returns_every_record() {
    let file = log();
    let all = read(&file, &options());
    for damage in 1..=17 {
        let mut damaged = file.clone();
        damaged[..damage].iter_mut().for_each(|byte| *byte ^= 0xa5);
        let salvaging = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
        let parts = read(&damaged, &salvaging);
        assert_eq!(parts[1..], all[1..], "{damage} bytes");
    }
}

/// A part of a record ends in the middle of a block only if each record is a zstd frame.
#[test]
fn the_codec_of_the_mark_does_not_apply_to_ordinary_records() {
    let middle = Wire::Packed.fragment(0x44, &[b'x'; 1000]);
    let file = [&mark(1, 1)[..], &middle[..500]].concat();
    for dialect in [Dialect::PACKED, Dialect::LEVELDB.detected()] {
        let mut reader = Reader::from_slice(&file, options().with_dialect(dialect));
        let (events, _) = read_all(&mut reader);
        assert!(
            matches!(&events[1], Found::Skipped(region) if region.reason.as_str() == "bad_length"),
            "{events:?}"
        );
        assert_eq!(
            reader.format().unwrap().compression.is_some(),
            dialect == Dialect::PACKED
        );
    }
}

#[test]
fn readers_ignore_a_mark_in_the_middle_of_a_log() {
    let mut file = log();
    let before = read(&file, &options());
    file.resize(2 * BLOCK, 0);
    file.extend(log());
    let parts = read(&file, &options());
    let is_record = |part: &&Part| part.2.is_ok();
    assert_eq!(
        parts.iter().filter(is_record).count(),
        2 * before.iter().filter(is_record).count()
    );
    let marks: Vec<_> = parts.iter().filter(|part| part.2 == Err("metadata")).collect();
    assert_eq!(marks.len(), 2);

    // The second mark states another codec.
    let file = [mark(1, 0), Wire::Plain.full(b"one"), mark(1, 1)].concat();
    let mut reader = Reader::from_slice(&file, options());
    read_all(&mut reader);
    assert_eq!(reader.format().unwrap().compression, None);
}

/// After damage in the same block, a mark may be part of a payload. If its checksum is wrong, it
/// may not be a mark.
#[test]
fn a_mark_after_damage_or_with_a_wrong_checksum_is_reported_as_damage() {
    let mut file = [
        mark(1, 0),
        Wire::Plain.full(b"one"),
        mark(1, 0),
        Wire::Plain.full(b"two"),
    ]
    .concat();
    file[17] ^= 1;
    let salvaging = options().with_on_corruption(OnCorruption::Salvage);
    let expected = [
        (0, 17, Err("metadata")),
        (17, 27, Err("checksum_mismatch")),
        (27, 44, Err("bad_metadata")),
        (44, 54, Ok(3)),
    ];
    assert_eq!(read(&file, &salvaging), expected);

    file[0] ^= 1;
    let expected = [
        (0, 17, Err("bad_metadata")),
        (17, 27, Ok(3)),
        (27, 44, Err("metadata")),
        (44, 54, Ok(3)),
    ];
    assert_eq!(read(&file, &options().with_verify_checksums(false)), expected);
}

/// No part of a log of a later version may be read, wherever the range starts.
#[test]
fn a_newer_format_version_is_rejected_at_any_start_offset() {
    let mut file = log();
    file[..17].copy_from_slice(&mark(2, 1));
    for start in [0, 5, 17, 100, BLOCK as u64, BLOCK as u64 + 500] {
        let options = ReadOptions::default().with_range(start..);
        let mut reader = Reader::from_slice(&file, options);
        let error = reader.next_record().unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{start}: {error}");
    }
}

/// Salvaged containers are left out as a whole, and their records are counted.
#[test]
fn skip_returns_the_same_records_as_salvage_except_the_salvaged_ones() {
    let file = log();
    let salvaging = options().with_on_corruption(OnCorruption::Salvage);
    for at in (20..file.len()).step_by(1_931) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let skipped: Vec<_> = read(&damaged, &options())
            .into_iter()
            .filter(|part| part.2.is_ok())
            .collect();
        let all = read(&damaged, &salvaging)
            .into_iter()
            .filter(|part| part.2.is_ok())
            .count();
        let mut reader = Reader::from_slice(&damaged, salvaging.clone());
        reader.leave_out_salvaged();
        let (events, _) = read_all(&mut reader);
        let is_record = |event: &&Found| matches!(event, Found::Record { .. });
        assert_eq!(events.iter().filter(is_record).count(), skipped.len(), "{at}");
        assert_eq!(reader.left_out_count(), (all - skipped.len()) as u64, "{at}");
        let regions = events.iter().filter(|event| matches!(event, Found::Skipped(_))).count();
        assert_eq!(
            regions,
            read(&damaged, &salvaging).iter().filter(|part| part.2.is_err()).count()
        );

        let mut batched = 0;
        let mut reader = Reader::from_slice(&damaged, salvaging.clone());
        let mut batch = RecordBatch::default();
        while reader.record_batch(&mut batch, 5_000).unwrap() {
            batched += batch.len();
            batch.clear();
        }
        assert_eq!(batched, all, "{at}");
    }
}

/// The number of records is a varint, and the 128th record needs another byte. If an uncompressed
/// container would exceed its block with that byte, the container ends before the record.
#[test]
fn a_stored_container_never_exceeds_its_block() {
    const FIRST: u8 = 0x42;
    for filler in 0..600 {
        let mut file = Vec::new();
        let mut encoder = Encoder::with_format(0, Dialect::PACKED).expect("a format");
        encoder.encode(&vec![1; BLOCK - 324 - filler], &mut file);
        (0..300).for_each(|_| _ = encoder.encode(b"abc", &mut file));
        encoder.end_container(&mut file);
        let (mut at, mut containers) = (0, 0);
        while at < file.len() {
            let left = BLOCK - at % BLOCK;
            if left < 7 {
                at += left;
                continue;
            }
            assert_ne!(file[at + 6], FIRST, "after a filler of {filler} bytes, at {at}");
            containers += 1;
            at += 7 + usize::from(u16::from_le_bytes([file[at + 4], file[at + 5]]));
        }
        assert!(containers > 2, "the mark and the containers of two blocks");
    }
}
