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

// Salvage -------------------------------------------------------------------------------------------------------------

fn salvage() -> ReadOptions {
    ReadOptions::default().with_on_corruption(OnCorruption::Salvage)
}

/// The checksum proves the true length, whatever the damaged one leads to.
#[test]
fn a_flipped_bit_of_a_length_that_leads_to_another_fragment_costs_one_record() {
    let file: Vec<u8> = (0..1500)
        .flat_map(|number| Wire::Plain.full(format!("{number:09}").as_bytes()))
        .collect();
    for bit in 0..16 {
        let mut file = file.clone();
        file[48 + 4 + bit / 8] ^= 1 << (bit % 8);
        let (records, reasons) = read(&file, &salvage());
        assert_eq!((records.len(), reasons.len()), (1499, 1), "{bit}");
    }
    // Nor are the records of a log inside of the record returned.
    let inner: Vec<u8> = (0..20).flat_map(|_| Wire::Plain.full(b"inner")).collect();
    let mut file = [Wire::Plain.full(&inner), Wire::Plain.full(b"after")].concat();
    file[4] ^= 0x08;
    let (records, _) = read(&file, &salvage());
    assert_eq!(
        records.iter().map(|(_, data)| data.as_slice()).collect::<Vec<_>>(),
        [b"after"]
    );
}

/// Six zeros and a 5 are what the end of a block and an empty record of type 1 look like once their beginning is lost.
#[test]
fn what_looks_like_an_end_trailer_behind_damage_does_not_end_the_log() {
    let mut file = Wire::Plain.full(&[b'x'; 50]);
    file[3] ^= 1;
    file.extend(Wire::Plain.full(&[b'y'; 50]));
    file.extend([0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4]);
    file.resize(BLOCK, 0);
    for _ in 0..2 {
        for _ in 0..100 {
            file.extend(Wire::Plain.full(b"good"));
        }
        file.resize(file.len().next_multiple_of(BLOCK), 0);
    }
    for dialect in [Dialect::PEBBLE, Dialect::RECYCLABLE] {
        for dialect in [dialect, dialect.with_log_number(9)] {
            let skipped = read(&file, &skip().with_dialect(dialect)).0;
            let salvaged = read(&file, &salvage().with_dialect(dialect)).0;
            assert_eq!((skipped.len(), salvaged.len()), (200, 201), "{dialect:?}");
        }
    }
}

/// Without a number any four bytes would do, and there is no checksum: only the trailer of an empty log is believed.
#[test]
fn an_end_trailer_is_believed_only_with_its_number() {
    let trailer = b"\x00\x00\x00\x00\x00\x00\x05\x02\x00\x00\x00";
    let file = [&Wire::Plain.full(b"one")[..], trailer, &Wire::Plain.full(b"two")].concat();
    assert_eq!(
        read(&file, &skip().with_dialect(Dialect::PEBBLE)).1,
        ["checksum_mismatch"]
    );
    let numbered = skip().with_dialect(Dialect::PEBBLE.with_log_number(1));
    assert_eq!(read(&file, &numbered).1, ["end_trailer", "stale"]);
    // A log that was closed without a record: its trailer says which it is.
    assert_eq!(detect(trailer), Ok(Some(Dialect::PEBBLE.with_log_number(1))));
    for options in [skip(), skip().with_dialect(Dialect::PEBBLE)] {
        assert_eq!(read(trailer, &options), (vec![], vec!["end_trailer"]));
    }
}

/// How records are compressed is said once, at the beginning. What was found behind damage does not change it.
#[test]
fn a_compression_that_is_found_behind_damage_changes_no_record() {
    let set_zstd = b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
    let mut file = Wire::Plain.full(b"damaged");
    file[8] ^= 1;
    file.extend(set_zstd);
    file.extend(Wire::Plain.full(b"plain"));
    file.resize(BLOCK, 0);
    file.extend(Wire::Plain.full(b"after"));
    let (records, _) = read(&file, &salvage().with_dialect(Dialect::ROCKSDB));
    assert_eq!(
        records.iter().map(|(_, data)| data.as_slice()).collect::<Vec<_>>(),
        [b"plain", b"after"]
    );
}

/// The same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % max
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Something that may be found in a log, or in none.
    fn piece(&mut self, wires: &[Wire]) -> Vec<u8> {
        let len = self.of(&[0, 1, 4, 30, 300, 3000]);
        let payload = match self.below(8) {
            0 => vec![0; len],
            1 => Wire::Plain.full(&vec![b'i'; len / 2]),
            _ => self.bytes(len),
        };
        let wire = if self.below(12) > 0 { wires[0] } else { self.of(wires) };
        match self.below(40) {
            0 => payload,
            1 => vec![0; self.of(&[1, 7, 11, 19])],
            2 => [&[0, 0, 0, 0, 0, 0, 5], &self.of(&[3_u32, 4, 5, 99]).to_le_bytes()[..]].concat(),
            3 => wire.fragment(self.of(&[9, 10, 11, 77, 130, 131, 200]), &payload),
            4 => Wire::Plain.fragment(9, &[7, 0, 0, 0]),
            5..9 => {
                let mut damaged = wire.part(1, &payload);
                for _ in 0..self.of(&[1, 1, 2, 9]) {
                    let at = self.below(damaged.len());
                    damaged[at] ^= 1 << self.below(8);
                }
                damaged
            }
            9..16 => wire.part(self.below(4) as u8 + 1, &payload),
            _ => wire.full(&payload),
        }
    }

    fn file(&mut self, wires: &[Wire], prefix: &[u8], grid: usize) -> Vec<u8> {
        let mut file = prefix.to_vec();
        for block in 1..self.below(3) + 2 {
            let end = block * BLOCK + grid;
            let fill = self.of(&[100, 2_000, 10_000, 40_000]);
            let begin = file.len();
            while file.len() < (begin + fill).min(end) {
                file.extend(self.piece(wires));
            }
            file.resize(end, 0);
        }
        if self.below(3) == 0 {
            let len = self.below(file.len());
            file.truncate(len);
        }
        file
    }
}

/// Whatever is in a file, of whatever dialect: what `skip` returns, `salvage` returns, too.
#[test]
fn salvage_returns_a_superset_of_skip() {
    let (plain, ieee) = (vec![Wire::Plain], vec![Wire::Ieee]);
    let numbered = |own: Wire| {
        vec![
            own,
            Wire::Recyclable(3),
            Wire::Recyclable(4),
            Wire::Synced(3, 0),
            Wire::Synced(4, 0),
            Wire::Plain,
        ]
    };
    let mut salvaged_count = 0;
    for seed in 0..600 {
        let mut random = Random(seed);
        let dialect = random.of(&Dialect::ALL);
        let (wires, prefix, grid) = match dialect.name() {
            "leveldb" => (plain.clone(), &b""[..], 0),
            "wandb" => (ieee.clone(), &b":W&B\xe1\xbe\x00"[..], 0),
            "wandb_old" => (ieee.clone(), &b":W&B\xe1\xbe\x00"[..], 7),
            "swanlab" => (ieee.clone(), &b":SWL\xd6\xe1\x02"[..], 0),
            _ => {
                let own = random.of(&[
                    Wire::Plain,
                    Wire::Recyclable(3),
                    Wire::Recyclable(4),
                    Wire::Synced(3, 0),
                ]);
                (numbered(own), &b""[..], 0)
            }
        };
        let file = random.file(&wires, prefix, grid);
        let named = [dialect, dialect.with_log_number(3), dialect.with_zstd()];
        let mut all: Vec<_> = named.map(|dialect| skip().with_dialect(dialect)).into();
        all.push(skip());
        all.push(skip().with_dialect(dialect).with_verify_checksums(false));
        let start = random.below(file.len().max(1)) as u64;
        let end = start + random.below(2 * BLOCK) as u64;
        all.push(skip().with_dialect(dialect).with_range(start, Some(end)));
        all.push(skip().with_dialect(dialect).with_record_len_max(100));
        for options in all {
            if Reader::from_slice(&file, options.clone()).dialect().is_err() {
                continue; // Of another format, by chance.
            }
            let skipped = read(&file, &options).0;
            let salvaged = read(&file, &options.clone().with_on_corruption(OnCorruption::Salvage)).0;
            let mut rest = salvaged.iter();
            for record in &skipped {
                assert!(
                    rest.any(|found| found == record),
                    "seed {seed}: the record at {} is lost, {options:?}",
                    record.0
                );
            }
            salvaged_count += salvaged.len() - skipped.len();
        }
    }
    assert!(salvaged_count > 1_000, "{salvaged_count}");
}
