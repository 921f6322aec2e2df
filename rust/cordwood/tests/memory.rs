//! Tests operations that need little memory, however long a record is. This test has its own
//! process, because the peak of memory use is measured for the whole process.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;

use cordwood_log::crc32c::{crc32c, mask};
use cordwood_log::format::{BLOCK_LEN, FRAGMENT_LEN_MAX, Header, Kind};
use cordwood_log::{Dialect, LogFile, LogFileOptions, ReadOptions, Writer, ops};

const MIB: u64 = 1 << 20;

/// Returns the peak of resident memory.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn reading_a_long_record_uses_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.log");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let block_count = 64 * MIB / BLOCK_LEN as u64;
    for block in 0..block_count {
        let kind = match block {
            0 => Kind::First,
            _ if block == block_count - 1 => Kind::Last,
            _ => Kind::Middle,
        };
        let payload = [0; FRAGMENT_LEN_MAX];
        let header = Header {
            masked_crc: mask(crc32c(&[&[kind as u8], &payload[..]].concat())),
            len: payload.len() as u16,
            kind: kind as u8,
        };
        file.write_all(&header.encode()).unwrap();
        file.write_all(&payload).unwrap();
    }
    drop(file.into_inner().unwrap());
    let record_len = block_count * FRAGMENT_LEN_MAX as u64;

    let before = peak();
    let threads = NonZeroUsize::new(2).unwrap();
    let report = ops::verify_file(&path, &ReadOptions::default(), threads).unwrap();
    assert_eq!((report.record_count, report.payload_len), (1, record_len));
    let stat = ops::stat_file(&path, &ReadOptions::default(), threads).unwrap();
    assert_eq!(
        (stat.record_len_max, stat.first_count, stat.last_count),
        (Some(record_len), 1, 1)
    );
    assert_eq!((stat.middle_count, stat.stored_len), (block_count - 2, record_len));
    let fragments = ops::fragments_file(&path, &ReadOptions::default()).unwrap();
    assert_eq!(fragments.map(Result::unwrap).count() as u64, block_count);
    let log = LogFile::append_to(&path, LogFileOptions::default()).unwrap();
    assert_eq!(log.append(b"appended").unwrap(), 64 * MIB);
    log.close().unwrap();
    let grown = peak() - before;
    assert!(grown < 16 * MIB, "{grown}");

    // Writing a record must not copy it as a whole either.
    let record = vec![7; 64 << 20];
    let before = peak();
    let log = LogFile::create(&path, LogFileOptions::default()).unwrap();
    log.append(&record).unwrap();
    log.extend([&record]).unwrap();
    log.close().unwrap();
    let mut writer = Writer::new(File::create(&path).unwrap());
    writer.append(&record).unwrap();
    writer.extend([&record]).unwrap();
    writer.finish().unwrap();
    let grown = peak() - before;
    assert!(grown < 4 * MIB, "{grown}");

    // Short records must not be kept in memory until all of them are packed or salvaged.
    let mut writer = Writer::new(File::create(&path).unwrap());
    writer.extend(std::iter::repeat_n([7; 1000], 64_000)).unwrap();
    writer.finish().unwrap();
    let before = peak();
    let stored = ops::PackOptions::default().with_format(Dialect::PACKED);
    let report = ops::pack_file(&path, directory.path().join("packed.log"), &stored).unwrap();
    assert_eq!(report.record_count, 64_000);
    ops::salvage_file(
        &path,
        directory.path().join("salvaged.log"),
        &ops::SalvageOptions::default(),
    )
    .unwrap();
    let grown = peak() - before;
    assert!(grown < 16 * MIB, "{grown}");
}
