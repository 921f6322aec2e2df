//! Reading and writing a log in memory, compared with the log module of rusty-leveldb.

use std::hint::black_box;

use cordwood::codec::Encoder;
use cordwood::{ReadOptions, Reader};
use cordwood_bench::{SIZES, noise, records};

use crate::rusty_leveldb::log::{LogReader, LogWriter};
use crate::turns::{Contender, take_turns};

pub(crate) fn compare() {
    let data = noise(4 << 20);
    for size in SIZES {
        let records = records(size, &data);
        let mut file = Vec::new();
        write(&records, &mut file);
        let mut theirs = Vec::new();
        write_rusty(&records, &mut theirs);
        assert!(file == theirs, "rusty-leveldb writes other bytes");
        let expected = sum(&records);
        assert_eq!(read(&file), expected);
        assert_eq!(read_rusty(&file), expected);

        let file = file.as_slice();
        take_turns(
            "read",
            size.name,
            records.len(),
            &mut [
                Contender::new("cordwood", || assert_eq!(read(black_box(file)), expected)),
                Contender::new("rusty-leveldb", || assert_eq!(read_rusty(black_box(file)), expected)),
            ],
        );
        // The buffers are allocated beforehand: fresh memory costs more than either writer.
        let (mut ours, mut theirs) = (file.to_vec(), theirs);
        take_turns(
            "write",
            size.name,
            records.len(),
            &mut [
                Contender::new("cordwood", || write(black_box(&records), &mut ours)),
                Contender::new("rusty-leveldb", || write_rusty(black_box(&records), &mut theirs)),
            ],
        );
    }
}

/// The result of a pass over the records: their lengths plus the first byte of each.
fn sum(records: &[&[u8]]) -> usize {
    records.iter().map(|record| record.len() + usize::from(record[0])).sum()
}

fn read(file: &[u8]) -> usize {
    let mut reader = Reader::from_slice(file, ReadOptions::default());
    let mut sum = 0;
    while let Some(record) = reader.next_record().expect("a valid log") {
        sum += record.data.len() + usize::from(record.data[0]);
    }
    sum
}

fn read_rusty(file: &[u8]) -> usize {
    let mut reader = LogReader::new(file, true);
    let mut record = Vec::new();
    let mut sum = 0;
    while reader.read(&mut record).expect("a valid log") > 0 {
        sum += record.len() + usize::from(record[0]);
    }
    sum
}

fn write(records: &[&[u8]], file: &mut Vec<u8>) {
    file.clear();
    let mut encoder = Encoder::new(0);
    for record in records {
        encoder.encode(record, file);
    }
}

fn write_rusty(records: &[&[u8]], file: &mut Vec<u8>) {
    file.clear();
    let mut writer = LogWriter::new(file);
    for record in records {
        writer.add_record(record).expect("memory takes it");
    }
}
