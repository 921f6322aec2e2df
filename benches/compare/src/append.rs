//! Appending to a file, compared with rusty-leveldb and bare writes of the same bytes. Only rows of
//! the same policy are compared:
//!
//! * `each record written`: the operating system has it when its append returns. One write each.
//! * `gathered`: records wait in memory until there is a mebibyte of them, or the file is closed.
//!
//! The bare writes show the cost of the system: the record's bytes are ready, including the header.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;

use cordwood::codec::Encoder;
use cordwood::{FlushPolicy, LogFile, LogFileOptions};
use cordwood_bench::{SIZES, noise, records};

use crate::rusty_leveldb::log::LogWriter;
use crate::turns::{Contender, take_turns};

/// Enough records to make the cost of creating a file negligible.
const COUNT_MAX: usize = 20_000;

/// How much cordwood's writer gathers.
const BUFFER_LEN: usize = 1 << 18;

pub(crate) fn compare() {
    let data = noise(4 << 20);
    // In memory if the system has a directory for that: the disk is the same for all.
    let memory = Path::new("/dev/shm");
    let directory =
        tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).expect("a directory");
    let path = directory.path().join("example.log");
    let path = path.as_path();
    for size in SIZES {
        let mut records = records(size, &data);
        records.truncate(COUNT_MAX);
        let framed = framed(&records);
        let expected = framed.concat();
        let check = |write: &dyn Fn()| {
            write();
            assert!(std::fs::read(path).expect("a file") == expected, "other bytes");
        };
        check(&|| append_with(FlushPolicy::EveryAppend, path, &records));
        check(&|| append_each_rusty(path, &records));
        check(&|| write_each(path, &framed));
        check(&|| append_with(FlushPolicy::OnClose, path, &records));
        check(&|| append_gathered_rusty(path, &records));
        check(&|| write_gathered(path, &framed));

        take_turns(
            "append, each record written",
            size.name,
            records.len(),
            &mut [
                Contender::new("cordwood", || {
                    append_with(FlushPolicy::EveryAppend, path, black_box(&records))
                }),
                Contender::new("bare-writes", || write_each(path, black_box(&framed))),
                Contender::new("rusty-leveldb", || append_each_rusty(path, black_box(&records))),
            ],
        );
        take_turns(
            "append, gathered",
            size.name,
            records.len(),
            &mut [
                Contender::new("cordwood", || {
                    append_with(FlushPolicy::OnClose, path, black_box(&records))
                }),
                Contender::new("bare-writes", || write_gathered(path, black_box(&framed))),
                Contender::new("rusty-leveldb", || append_gathered_rusty(path, black_box(&records))),
            ],
        );
    }
}

/// The bytes that each record adds to the file.
fn framed(records: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(0);
    let frame = |record: &&[u8]| {
        let mut bytes = Vec::new();
        encoder.encode(record, &mut bytes);
        bytes
    };
    records.iter().map(frame).collect()
}

fn append_with(flush: FlushPolicy, path: &Path, records: &[&[u8]]) {
    let log = LogFile::create(path, LogFileOptions::default().with_flush(flush)).expect("a file");
    for record in records {
        log.append(record).expect("the file takes it");
    }
    log.close().expect("the file takes it");
}

fn write_each(path: &Path, framed: &[Vec<u8>]) {
    let mut file = File::create(path).expect("a file");
    for bytes in framed {
        file.write_all(bytes).expect("the file takes it");
    }
}

fn write_gathered(path: &Path, framed: &[Vec<u8>]) {
    let mut file = BufWriter::with_capacity(BUFFER_LEN, File::create(path).expect("a file"));
    for bytes in framed {
        file.write_all(bytes).expect("the file takes it");
    }
    file.flush().expect("the file takes it");
}

fn append_each_rusty(path: &Path, records: &[&[u8]]) {
    let mut writer = rusty_writer(path);
    for record in records {
        writer.add_record(record).expect("the file takes it");
        writer.flush().expect("the file takes it");
    }
}

fn append_gathered_rusty(path: &Path, records: &[&[u8]]) {
    let mut writer = rusty_writer(path);
    for record in records {
        writer.add_record(record).expect("the file takes it");
    }
    writer.flush().expect("the file takes it");
}

/// It writes a header in four pieces, so it needs a buffer.
fn rusty_writer(path: &Path) -> LogWriter<BufWriter<File>> {
    LogWriter::new(BufWriter::with_capacity(
        BUFFER_LEN,
        File::create(path).expect("a file"),
    ))
}
