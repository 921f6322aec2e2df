//! The rules of `docs/format/reading.md` in every dialect, each with bytes made by hand: the log number, salvage, compressed logs.

mod common;
#[path = "common/wire.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod wire;

use std::time::Duration;

use common::{Found, fragment, read_all};
use cordwood::{
    Decoder, Dialect, FollowOptions, Follower, OnCorruption, Poll, ReadOptions, Reader, Step, Window, detect,
    locate_bit_flip, verbs,
};
use wire::Wire;

const BLOCK: usize = 32_768;

fn skip() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Skip)
}

/// The records of a file, with their offsets, and the reasons of the regions between them.
fn read(file: &[u8], options: &ReadOptions) -> (Vec<(u64, Vec<u8>)>, Vec<&'static str>) {
    let (events, _) = read_all(&mut Reader::from_slice(file, options.clone()));
    let (mut records, mut reasons) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Found::Record { offset, data, .. } => records.push((offset, data)),
            Found::Skipped(region) => reasons.push(region.reason.as_str()),
        }
    }
    (records, reasons)
}

// Small rules ---------------------------------------------------------------------------------------------------------

/// The grid of `wandb_old` begins at offset 7, so its blocks end 7 bytes later than LevelDB's.
#[test]
fn stat_adds_up_where_an_old_run_file_is_torn_in_a_trailer() -> Result<(), cordwood::Error> {
    let file = [
        b":W&B\xe1\xbe\x00".as_slice(),
        &Wire::Ieee.fragment(2, &[b'x'; 32_755]),
        &[0; 6],
    ]
    .concat();
    let options = ReadOptions::default().with_dialect(Dialect::WANDB_OLD);
    let stat = verbs::stat(&mut Reader::from_slice(&file, options))?;
    let sum = stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len;
    assert_eq!((sum, stat.file_len), (32_775, Some(32_775)));
    Ok(())
}

/// Room that a writer has preallocated is no damage, also where the dialect that was named has a file header.
#[test]
fn zeros_where_a_file_header_belongs_are_zero_fill() {
    for dialect in [Dialect::WANDB, Dialect::WANDB_OLD, Dialect::SWANLAB] {
        for len in [1, 6, 7, 8, 100, BLOCK, BLOCK + 7, 2 * BLOCK] {
            let (records, reasons) = read(&vec![0; len], &skip().with_dialect(dialect));
            assert!(records.is_empty());
            assert!(
                reasons.iter().all(|&reason| reason == "zero_fill"),
                "{dialect:?} {len} {reasons:?}"
            );
        }
        // Not if something follows in the block: then the header was destroyed.
        let file = [[0; 7].as_slice(), &Wire::Ieee.full(b"foo")].concat();
        let (records, reasons) = read(&file, &skip().with_dialect(dialect));
        assert_eq!((records.len(), reasons), (1, vec!["bad_file_header"]), "{dialect:?}");
    }
}

#[test]
fn a_follower_waits_for_a_file_header_that_is_zeros_so_far() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let header = b":W&B\xe1\xbe\x00";
    for written in [0, 1, 3, 5] {
        let path = folder.path().join(format!("{written}.wandb"));
        let mut file = vec![0; 4096];
        file[..written].copy_from_slice(&header[..written]);
        std::fs::write(&path, &file)?;
        let options = FollowOptions::default()
            .with_dialect(Dialect::WANDB)
            .with_retry(1, Duration::ZERO);
        let mut follower = Follower::open(&path, options)?;
        for _ in 0..3 {
            assert!(matches!(follower.poll()?, Poll::NotYet(_)), "{written}");
        }
        let whole = [header.as_slice(), &Wire::Ieee.full(b"foo")].concat();
        file[..whole.len()].copy_from_slice(&whole);
        std::fs::write(&path, &file)?;
        assert!(matches!(follower.poll()?, Poll::Skipped(region) if region.reason.as_str() == "file_header"));
        assert!(matches!(follower.poll()?, Poll::Record(record) if record.data == b"foo"));
    }
    Ok(())
}

/// Offsets that no file has: no overflow.
#[test]
fn a_window_at_the_end_of_all_offsets() {
    let mut damaged = fragment(1, b"foo");
    damaged[9] ^= 1;
    for bytes in [&fragment(1, b"foo")[..], &damaged, &[0; 20], b"junk", &[]] {
        for offset in [u64::MAX, u64::MAX - 5, u64::MAX - BLOCK as u64] {
            for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
                let options = ReadOptions::default()
                    .with_range(offset, None)
                    .with_on_corruption(policy);
                let mut decoder = Decoder::new(&options);
                let window = Window {
                    offset,
                    bytes,
                    is_last: true,
                };
                for _ in 0..20 {
                    if matches!(decoder.step(window), Step::End(_)) {
                        break;
                    }
                }
            }
        }
    }
    let flip = locate_bit_flip(&damaged, u64::MAX).expect("one bit");
    assert_eq!(flip.offset, u64::MAX);
}

/// A fragment of more than 32,754 bytes behind the file header has no room in a block that begins at offset 0.
#[test]
fn a_torn_run_file_of_the_old_grid_is_told_by_the_length_of_its_first_fragment() {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    Wire::Ieee.append(&mut file, 7, &[b'x'; 200_000]);
    for len in (14..3 * BLOCK).step_by(997) {
        let (records, reasons) = read(&file[..len], &skip());
        assert!(records.is_empty());
        assert!(
            reasons
                .iter()
                .all(|&reason| reason == "file_header" || reason == "torn_tail"),
            "{len} {reasons:?}"
        );
        assert_eq!(detect(&file[..len]), Ok(Some(Dialect::WANDB_OLD)));
    }
    // A short one fits both.
    let short = [&file[..7], &Wire::Ieee.full(b"foo")].concat();
    assert_eq!(detect(&short), Ok(Some(Dialect::WANDB)));
}

#[test]
fn a_damaged_file_header_is_that_which_it_is_closest_to() {
    for (header, dialect) in [
        (b":SWL\xd6\xe1\x02", Dialect::SWANLAB),
        (b":W&B\xe1\xbe\x00", Dialect::WANDB),
    ] {
        let records: Vec<u8> = [b"one".as_slice(), b"two", b"three"]
            .iter()
            .flat_map(|data| Wire::Ieee.full(data))
            .collect();
        for at in 0..7 {
            let mut file = [header.as_slice(), &records].concat();
            file[at] ^= 4;
            assert_eq!(detect(&file), Ok(Some(dialect)), "{at}");
        }
    }
}

/// No engine writes an empty record, but a log that was cut in its header is torn, and not damaged.
#[test]
fn a_recyclable_log_cut_in_the_header_of_an_empty_record_is_torn() {
    let file = Wire::Recyclable(3).full(b"");
    for len in 1..file.len() {
        let (records, reasons) = read(&file[..len], &skip());
        assert_eq!((records.len(), reasons), (0, vec!["torn_tail"]), "{len}");
    }
}
