//! Tests that write sequences of records.

use cordwood::codec::Encoder;
use cordwood::{
    Compression, Dialect, LogFile, LogFileOptions, LogFormat, OnCorruption, ReadOptions, Writer, WriterOptions,
};

use super::append::Memory;
use super::{Set, sequences};
use crate::crate_reads::{records, slice};
use crate::files::each_in_threads;
use crate::model::{self, encode};
use crate::numbered;
use crate::tally::Tally;

pub(super) fn sets(is_full: bool) -> Vec<Set> {
    let lens: Vec<usize> = match is_full {
        true => vec![
            0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 24, 33, 34, 35, 36,
        ],
        false => vec![0, 1, 2, 9, 10, 11, 17, 18, 34, 35],
    };
    let short: Vec<usize> = if is_full {
        (0..=12).collect()
    } else {
        vec![0, 1, 2, 3, 10]
    };
    vec![
        set("write LevelDb", lens.clone(), leveldb),
        set("write Numbered", lens, with_number),
        set("write Packed", short, packed),
        Set {
            name: "write many Packed".to_owned(),
            bound: "up to 80 records of up to 3 bytes, all of the same length".to_owned(),
            run: Box::new(|| {
                let mut tally = Tally::default();
                for len in 0..=3 {
                    for count in 0..=80 {
                        packed(&mut tally, &vec![vec![b'r'; len]; count]);
                    }
                }
                tally
            }),
        },
    ]
}

fn set(name: &str, lens: Vec<usize>, check: fn(&mut Tally, &[Vec<u8>])) -> Set {
    Set {
        name: name.to_owned(),
        bound: format!("at most 4 records, each of one of the lengths {lens:?}"),
        run: Box::new(move || {
            let sequences = sequences(4, &lens);
            Tally::sum(each_in_threads(sequences.len(), Tally::default, |tally, index| {
                let records: Vec<Vec<u8>> = (sequences[index].iter().enumerate())
                    .map(|(seed, &len)| vec![seed as u8 + 1; len])
                    .collect();
                check(tally, &records);
            }))
        }),
    }
}

fn lens(records: &[Vec<u8>]) -> (&'static str, Vec<usize>) {
    ("records of these lengths", records.iter().map(Vec::len).collect())
}

/// The bytes of the file, and the offset of each record.
type Written = (Vec<u8>, Vec<u64>);

fn by_encoder(records: &[Vec<u8>], format: LogFormat) -> Written {
    let mut file = Vec::new();
    let mut encoder = Encoder::with_format(0, format).expect("a format that is written");
    let offsets = records.iter().map(|record| encoder.encode(record, &mut file)).collect();
    let len = encoder.finish(&mut file);
    assert_eq!(len, file.len() as u64, "the length");
    (file, offsets)
}

fn by_extend(records: &[Vec<u8>], format: LogFormat) -> Vec<u8> {
    let options = WriterOptions::default().with_format(format);
    let mut writer = Writer::with_options(Vec::new(), options).expect("a format that is written");
    assert_eq!(writer.extend(records).expect("memory"), records.len() as u64);
    writer.finish().expect("memory")
}

fn by_log_file(records: &[Vec<u8>], format: LogFormat) -> Written {
    let storage = Memory::new(&[]);
    let options = LogFileOptions::default().with_format(format);
    let log = LogFile::create_in(Box::new(storage.clone()), options).expect("memory");
    let offsets = records
        .iter()
        .map(|record| log.append(record).expect("memory"))
        .collect();
    log.close().expect("memory");
    (storage.bytes(), offsets)
}

/// Checks that the bytes and the offsets are the same as from the model's encoder.
fn all_ways(tally: &mut Tally, records: &[Vec<u8>], format: LogFormat, expected: &Written) {
    let how = (lens(records), format);
    tally.files += 1;
    tally.compare(&expected.0, &how, || by_encoder(records, format), expected);
    tally.compare(&expected.0, &how, || by_extend(records, format), &expected.0);
    tally.compare(&expected.0, &how, || by_log_file(records, format), expected);
}

fn leveldb(tally: &mut Tally, records: &[Vec<u8>]) {
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    for record in records {
        let (bytes, offset) = encode(file.len() as u64, record);
        file.extend(bytes);
        offsets.push(offset);
    }
    all_ways(tally, records, Dialect::LEVELDB.into(), &(file, offsets));
}

fn with_number(tally: &mut Tally, records: &[Vec<u8>]) {
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    for record in records {
        let (bytes, offset) = numbered::encode(file.len() as u64, numbered::NUMBER, record);
        file.extend(bytes);
        offsets.push(offset);
    }
    let format = LogFormat::new(Dialect::ROCKSDB).with_log_number(numbered::NUMBER);
    all_ways(tally, records, format, &(file.clone(), offsets.clone()));
    file.extend(vec![0; numbered::trailer(file.len() as u64)]);
    file.extend(numbered::END_TRAILER);
    let format = LogFormat::new(Dialect::PEBBLE).with_log_number(numbered::NUMBER);
    all_ways(tally, records, format, &(file, offsets));
}

/// Writes packed logs. A writer may choose how to group records into containers. The model must
/// find each record at the offset that the writer returned, and no other event except the mark.
fn packed(tally: &mut Tally, written: &[Vec<u8>]) {
    for format in [
        LogFormat::new(Dialect::PACKED),
        LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd),
    ] {
        tally.files += 1;
        let how = (lens(written), format);
        let options = ReadOptions::default()
            .with_dialect(Dialect::PACKED)
            .with_on_corruption(OnCorruption::Fail);
        let read = |file: &[u8]| {
            let (events, end) = model::read(file, &options);
            let end_offset = cordwood::End::Clean {
                offset: file.len() as u64,
            };
            assert_eq!(end, Ok(end_offset), "of {file:02x?}");
            let found = records(&events);
            assert_eq!(events.len(), found.len() + usize::from(!file.is_empty()), "{events:?}");
            found
        };
        let mut bytes = Vec::new();
        tally.check(&[], &how, || {
            let (file, offsets) = by_encoder(written, format);
            let expected: Vec<_> = offsets.into_iter().zip(written.iter().cloned()).collect();
            assert_eq!(read(&file), expected, "of {file:02x?}");
            assert_eq!(slice(&file, &options), model::read(&file, &options));
            assert!(
                format.compression.is_some() || !has_parted_container(&file),
                "{file:02x?}"
            );
            bytes = file;
            Ok(())
        });
        // If all records are passed at once, the containers must be the same. Without a record, the
        // encoder does not write the mark.
        if !written.is_empty() {
            tally.compare(&bytes, &how, || by_extend(written, format), &bytes);
        }
        tally.check(&bytes, &how, || {
            let (file, offsets) = by_log_file(written, format);
            let expected: Vec<_> = offsets.into_iter().zip(written.iter().cloned()).collect();
            assert_eq!(read(&file), expected, "of {file:02x?}");
            Ok(())
        });
    }
}

/// Checks whether a container in this whole log starts in one block and ends in another. An
/// uncompressed container never does.
fn has_parted_container(file: &[u8]) -> bool {
    let mut at = 0;
    while at + 7 <= file.len() {
        let trailer = model::trailer(at as u64);
        match file[at + 6] {
            _ if trailer > 0 => at += trailer,
            0x42 => return true,
            _ => at += 7 + usize::from(file[at + 4]),
        }
    }
    false
}
