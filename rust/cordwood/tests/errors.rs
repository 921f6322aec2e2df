//! Tests each kind of error, for files with hostile names. The path, the kind and the hint must be
//! separate, and each must be short enough for one line. `tests/api/test_error_faces.py` tests the
//! same in Python and on the command line.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood_log::codec::Encoder;
use cordwood_log::ops::{self, PackOptions, SalvageOptions};
use cordwood_log::{
    Dialect, Error, ErrorKind, Hint, LogFile, LogFileOptions, LogFormat, OnTornTail, ReadOptions, Reader, Writer,
    WriterOptions,
};

/// LevelDB's bytes for the record `one`.
const ONE: &[u8] = b"\x7d\xaa\x5c\x84\x03\x00\x01one";

/// The maximum length of a sentence that fits a line of a terminal.
const SENTENCE_LEN_MAX: usize = 120;

fn names() -> Vec<OsString> {
    let mut names: Vec<OsString> = ["the", "a name", "x (os error 9) y", "two\nlines"]
        .map(Into::into)
        .into();
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"not utf-8 \xff".to_vec()));
    names
}

fn numbered(log_number: u32) -> Vec<u8> {
    let mut log = Vec::new();
    let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(log_number);
    Encoder::with_format(0, format).unwrap().encode(b"one", &mut log);
    log
}

fn read(path: &Path, options: ReadOptions) -> Error {
    let mut reader = match Reader::open_with(path, options) {
        Ok(reader) => reader,
        Err(error) => return error,
    };
    loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was read"),
            Err(error) => return error,
        }
    }
}

fn append(path: &Path, options: LogFileOptions) -> Error {
    LogFile::append_to(path, options).unwrap_err()
}

fn pack(path: &Path) -> Error {
    let stored = PackOptions::default().with_format(Dialect::PACKED);
    ops::pack_file(path, path.with_file_name("new.log"), &stored).unwrap_err()
}

type Case = (&'static str, Vec<u8>, fn(&Path) -> Error, Option<Hint>);

/// Returns the cases. Each has the text of the kind or its start, the file, the failing call, and
/// the hint.
fn cases() -> Vec<Case> {
    let mut damaged = ONE.to_vec();
    damaged[7] ^= 1;
    let mut damaged_block = damaged.clone();
    damaged_block.resize(cordwood_log::format::BLOCK_LEN, 0);
    vec![
        (
            "10 bytes at offset 0: checksum mismatch: the header states ",
            damaged.clone(),
            |path| read(path, ReadOptions::default()),
            Some(Hint::OnCorruption),
        ),
        (
            "15 bytes at offset 5: ",
            ONE.repeat(2),
            |path| {
                let mut reader = Reader::open(path).unwrap();
                reader.seek(5).unwrap();
                reader.next_record().unwrap_err()
            },
            Some(Hint::CheckOffset),
        ),
        (
            "10 bytes at offset 10: checksum mismatch: the header states ",
            [ONE, &damaged].concat(),
            |path| {
                let mut reader = Reader::open(path).unwrap();
                reader.seek(0).unwrap();
                reader.next_record().unwrap();
                reader.next_record().unwrap_err()
            },
            Some(Hint::OnCorruption),
        ),
        (
            "10 bytes at offset 0: a record longer than the limit",
            ONE.to_vec(),
            |path| read(path, ReadOptions::default().with_record_len_max(2)),
            Some(Hint::RaiseRecordLenMax),
        ),
        (
            "cannot write a record of 4 bytes: the limit is 3",
            ONE.to_vec(),
            |path| {
                let log = LogFile::append_to(path, LogFileOptions::default().with_record_len_max(3)).unwrap();
                log.append(b"four").unwrap_err()
            },
            Some(Hint::RaiseRecordLenMax),
        ),
        (
            "offset 11 is past the end of the file (10 bytes): it was truncated, or the offset belongs to another file",
            ONE.to_vec(),
            |path| read(path, ReadOptions::default().with_range(11..)),
            None,
        ),
        (
            "not a log, but a ZIP archive: unpack it first, with `unzip`",
            b"PK\x03\x04 and more".to_vec(),
            |path| read(path, ReadOptions::default()),
            Some(Hint::NameDialect),
        ),
        (
            "the whole file belongs to log 6; expected log 9 (from the file's name or an option)",
            numbered(6),
            |path| {
                let mut options = SalvageOptions::default();
                options.log_number = Some(9);
                ops::salvage_file(path, path.with_file_name("new.log"), &options).unwrap_err()
            },
            Some(Hint::NameLogNumber),
        ),
        (
            "4 bytes at offset 10: an incomplete record at the end of the file; records appended after it would be lost",
            [ONE, b"torn"].concat(),
            |path| append(path, LogFileOptions::default()),
            Some(Hint::OnTornTail),
        ),
        (
            "32768 bytes at offset 0: checksum mismatch: the header states ",
            [&damaged_block, ONE].concat(),
            |path| append(path, LogFileOptions::default().with_on_torn_tail(OnTornTail::Truncate)),
            Some(Hint::Pad),
        ),
        (
            "20 bytes at offset 0: checksum mismatch: the header states ",
            [&damaged, ONE].concat(),
            |path| append(path, LogFileOptions::default()),
            Some(Hint::CreateLog),
        ),
        (
            "cannot append in dialect wandb: readers of this leveldb log would not find the record",
            ONE.to_vec(),
            |path| append(path, LogFileOptions::default().with_dialect(Some(Dialect::WANDB))),
            Some(Hint::NameDetectedDialect),
        ),
        (
            "recyclable logs with a log number are never appended to: readers take the bytes after their end for an older log",
            numbered(6),
            |path| append(path, LogFileOptions::default()),
            Some(Hint::CreateLog),
        ),
        (
            "10 bytes at offset 0: checksum mismatch: the header states ",
            damaged.clone(),
            pack,
            Some(Hint::Salvage),
        ),
        (
            "cannot pack recyclable logs with a log number: they could not be restored from the packed copy",
            numbered(6),
            pack,
            None,
        ),
        (
            "leveldb logs have no log number",
            ONE.to_vec(),
            |path| {
                let options = LogFileOptions::default().with_dialect(Some(Dialect::LEVELDB));
                append(path, options.with_log_number(Some(6)))
            },
            Some(Hint::OmitLogNumber),
        ),
        (
            "another writer has this log open; a log can have only one writer at a time",
            ONE.to_vec(),
            |path| {
                let _log = LogFile::append_to(path, LogFileOptions::default()).unwrap();
                append(path, LogFileOptions::default())
            },
            None,
        ),
        (
            "the log is closed",
            ONE.to_vec(),
            |path| {
                let log = LogFile::append_to(path, LogFileOptions::default()).unwrap();
                log.close().unwrap();
                log.append(b"").unwrap_err()
            },
            None,
        ),
        (
            "No such file or directory",
            Vec::new(),
            |path| {
                fs::remove_file(path).unwrap();
                read(path, ReadOptions::default())
            },
            None,
        ),
    ]
}

fn fails(path: &Path, (expected, file, fail, hint): &Case) {
    fs::write(path, file).unwrap();
    let error = fail(path);
    assert_eq!(error.path.as_deref(), Some(path));
    let text = error.kind.to_string();
    assert!(text.starts_with(expected), "{text}");
    assert!(text.len() <= SENTENCE_LEN_MAX, "{text}");
    assert_eq!(error.to_string(), format!("{}: {text}", path.display()));
    assert_eq!(error.hint, *hint, "{text}");
    let words = hint.map(|hint| hint.to_string()).unwrap_or_default();
    assert!(words.len() <= SENTENCE_LEN_MAX, "{words}");
}

#[test]
fn errors_have_separate_path_kind_and_hint_fields() {
    let directory = tempfile::tempdir().unwrap();
    for name in names() {
        for (number, case) in cases().iter().enumerate() {
            let directory: PathBuf = directory.path().join(number.to_string());
            fs::create_dir_all(&directory).unwrap();
            fails(&directory.join(&name), case);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_error_reports_how_much_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    for name in names() {
        let path = directory.path().join(name);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let log = LogFile::create(&path, LogFileOptions::default()).unwrap();
        for earlier in ["", "an earlier write failed; "] {
            let error = log.append(b"one").unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Write { .. }), "{error:?}");
            let start = format!("{}: No space left on device (os error 28); {earlier}", path.display());
            assert!(error.to_string().starts_with(&start), "{error}");
            assert_eq!(error.hint, Some(Hint::Reopen));
        }
    }
}

type Fails = fn() -> std::io::Error;

/// A sink that fails in the given way.
struct Failing(Fails);

impl std::io::Write for Failing {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(self.0())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A writer must return the same errors as a log file, both its own errors and those of its sink.
#[test]
fn a_writer_and_a_log_file_return_the_same_errors() {
    let full = || std::io::Error::from_raw_os_error(28);
    let mine = || std::io::Error::other("mine");
    let texts: [(Fails, [&str; 2]); 2] = [
        (full, ["No space left on device (os error 28); "; 2]),
        (mine, ["mine; ", "the log cannot be continued; "]),
    ];
    for (fails, texts) in texts {
        let options = WriterOptions::default().with_record_len_max(3);
        let mut writer = Writer::with_options(Failing(fails), options).unwrap();
        let too_large = writer.append(b"four").unwrap_err();
        assert_eq!(too_large.hint, Some(Hint::RaiseRecordLenMax));
        assert!(!writer.has_failed());
        writer.append(b"one").unwrap();
        for (number, text) in texts.into_iter().enumerate() {
            let error = writer.flush().unwrap_err();
            assert!(writer.has_failed());
            let ErrorKind::Write { source, failure, .. } = &error.kind else {
                panic!("{error:?}");
            };
            assert_eq!(source.raw_os_error(), fails().raw_os_error());
            assert_eq!(failure.earlier, [None, Some("write")][number]);
            assert!(!failure.is_undone);
            assert_eq!((error.path.as_deref(), error.hint), (None, Some(Hint::Reopen)));
            let earlier = ["", "an earlier write failed; "][number];
            let expected = format!("{text}{earlier}no byte is known to be on the disk, and later records may be lost");
            if cfg!(unix) || fails().raw_os_error().is_none() {
                assert_eq!(error.to_string(), expected);
            }
        }
    }
}

/// A failed sync cannot be repeated. Its error says how many bytes an earlier sync has put on the
/// disk.
#[test]
fn a_sync_error_reports_how_much_is_on_disk() {
    let mut writer = Writer::new(Vec::new());
    writer.append(b"one").unwrap();
    writer.sync_with(|_| Ok(())).unwrap();
    writer.append(b"two").unwrap();
    let failed = writer.sync_with(|_| Err(std::io::Error::other("mine"))).unwrap_err();
    let later = writer.append(b"three").unwrap_err();
    for (error, expected) in [(failed, None), (later, Some("sync"))] {
        let ErrorKind::Write { failure, .. } = error.kind else {
            panic!("{error:?}");
        };
        assert_eq!((failure.earlier, failure.durable_offset), (expected, 10));
    }
}
