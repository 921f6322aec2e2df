//! Verify, stat and salvage of logs in every dialect.

use std::num::NonZeroUsize;

use cordwood::{Dialect, Encoder, OnCorruption, ReadOptions, Reader, SliceSource, verbs};

const DIALECTS: [Dialect; 7] = [
    Dialect::LEVELDB,
    Dialect::ROCKSDB.with_log_number(3),
    Dialect::PEBBLE.with_log_number(3),
    Dialect::RECYCLABLE.with_log_number(3),
    Dialect::WANDB,
    Dialect::WANDB_OLD,
    Dialect::SWANLAB,
];

fn records() -> Vec<Vec<u8>> {
    (0..300_usize)
        .map(|i| vec![i as u8; i * 7_919 % 1_500])
        .chain([vec![1; 70_000]])
        .collect()
}

/// A closed log of `records`, and where each begins.
fn log(dialect: Dialect) -> (Vec<u8>, Vec<u64>) {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_dialect(0, dialect);
    let offsets = records()
        .iter()
        .map(|record| encoder.encode(record, &mut file))
        .collect();
    encoder.finish(&mut file);
    (file, offsets)
}

fn read(file: &[u8], options: ReadOptions) -> Vec<Vec<u8>> {
    let mut reader = Reader::from_slice(file, options);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("no damage") {
        records.push(record.data.to_vec());
    }
    records
}

#[test]
fn stat_adds_up() -> Result<(), cordwood::Error> {
    for dialect in DIALECTS {
        let (file, _) = log(dialect);
        let stat = verbs::stat(&mut Reader::from_slice(&file, ReadOptions::default()))?;
        let header_len = if dialect.log_number().is_some() { 11 } else { 7 };
        let fragments = stat.full_count + stat.first_count + stat.middle_count + stat.last_count;
        assert_eq!(stat.record_count, 301);
        assert_eq!(stat.header_len, header_len * fragments, "{dialect:?}");
        assert_eq!(
            stat.payload_len,
            records().iter().map(|record| record.len() as u64).sum::<u64>()
        );
        assert_eq!(
            stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len,
            file.len() as u64,
            "{dialect:?}"
        );
    }
    Ok(())
}

#[test]
fn verify_says_the_same_for_any_number_of_threads() -> Result<(), cordwood::Error> {
    for dialect in DIALECTS {
        let (mut file, offsets) = log(dialect);
        file[offsets[100] as usize + 20] ^= 1;
        let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip);
        let reports =
            [1, 2, 5].map(|threads| verbs::verify_slice(&file, &options, NonZeroUsize::new(threads).unwrap()));
        let [one, two, five] = reports;
        let one = one?;
        assert_eq!((&one, &one), (&two?, &five?), "{dialect:?}");
        let flips: Vec<_> = one
            .findings
            .listed()
            .iter()
            .filter_map(|finding| finding.bit_flip)
            .collect();
        assert_eq!(flips.len(), 1, "{dialect:?}");
        assert_eq!((flips[0].offset, flips[0].bit), (offsets[100] + 20, 0));
    }
    Ok(())
}

/// What is salvaged is a log of the same engine.
#[test]
fn salvage_keeps_the_dialect() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let (mut file, offsets) = log(dialect);
        file[offsets[100] as usize + 20] ^= 1;
        let destination = folder.path().join(number.to_string());
        let report = verbs::salvage_source(SliceSource::new(&file), &destination, &ReadOptions::default())?;
        assert_eq!(report.record_count, 300);
        let mut expected = records();
        expected.remove(100);
        let salvaged = std::fs::read(destination)?;
        assert!(read(&salvaged, ReadOptions::default()) == expected);
        let again = Reader::from_slice(&salvaged, ReadOptions::default()).dialect()?;
        let was = Reader::from_slice(&log(dialect).0, ReadOptions::default()).dialect()?;
        assert_eq!(again, was);
    }
    Ok(())
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_log() -> Result<(), Box<dyn std::error::Error>> {
    let dialect = Dialect::ROCKSDB.with_log_number(3).with_zstd();
    let (file, _) = log(dialect);
    assert!(read(&file, ReadOptions::default()) == records());
    let stat = verbs::stat(&mut Reader::from_slice(&file, ReadOptions::default()))?;
    assert!(stat.stored_len < stat.payload_len / 2);
    assert_eq!(
        stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len,
        file.len() as u64
    );
    // A range that begins later cannot see how records are compressed, so the beginning of the file is looked at for it.
    let options = ReadOptions::default().with_range(40_000, None);
    assert!(records().ends_with(&read(&file, options)));
    Ok(())
}
