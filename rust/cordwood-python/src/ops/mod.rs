//! Functions that process whole logs. Defines `verify`, `salvage`, `pack` and `stat`.

pub(crate) mod detect;
pub(crate) mod fragments;
mod manifest;
pub(crate) mod watched;

use std::io;
use std::path::{Path, PathBuf};

use cordwood::ops::{self, PackOptions, SalvageOptions};
use cordwood::parallel::{self, Parts};
use cordwood::read::{Source as _, StreamSource};
use cordwood::{Compression, Dialect, Error, LogFormat, ReadOptions, Reader};
use pyo3::prelude::*;

use self::manifest::lacks_an_edit;
use self::watched::{Watch, Watched, watched};
use crate::io::source::{OpenedReader, open, open_reader, source_at};
use crate::values::arguments::{refuse_url, required_path};
use crate::values::error::{os_error, to_python};
use crate::values::options::{compression_of, dialect_of, named, threads_of};
use crate::values::position::{Start, read_options};
use crate::values::{Report, Stat};

/// Reads a log to the end, and reports on its contents and any damage.
///
/// Damage does not raise an exception. The log is read with the policy `"salvage"`, so the report
/// covers only the damage itself, not the rest of the block. `Report.salvaged_count` is the number
/// of records that LevelDB and the policy `"skip"` would drop.
///
/// If damage is found in a log with a log number, and the source can seek, the log is read a second
/// time. The report then describes the second pass. This matters while RocksDB or Pebble is
/// overwriting an older log with a new one. The first pass may see bytes of the older log where a
/// new record is written a moment later.
///
/// Args:
///     source: Any source that `Reader` accepts, or a `Split`. To read many logs, pass a directory,
///         a pattern such as `"*.log"`, or a list of paths, URLs, directories, patterns and splits.
///         A directory stands for all logs in it and its subdirectories.
///     threads: The number of threads to read with, from 1 to 256. The report is the same for any
///         number of threads. Only one thread is used for an object with `read`, a log with log
///         numbers, or a file with less than about 2 MiB per thread. If there are many logs,
///         several are read at a time. Default: 1.
///     dialect: Same as for `Reader`. Default: `None`.
///     log_number: Same as for `Reader`. Default: `None`.
///     compression: Same as for `Reader`. Default: `None`.
///     start: A file offset in bytes, as in `Reader`. Default: 0.
///     end: A file offset in bytes, as in `Reader`. Default: `None`.
///     verify_checksums: Same as for `Reader`. Default: `True`.
///     record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
///     storage_options: Same as for `Reader`. Default: `None`.
///     progress: A function to call after each read, in the thread that did the read. Its argument
///         is the number of new bytes, at most a few MiB. It is 0 if all bytes in this read had
///         been read before. If the length of the source is known, the numbers add up to at most
///         that length. If `progress` raises, so does this function. Default: `None`.
///
/// Returns:
///     The report, whose `ok` is true if there is no damage. If there are many logs, a `Results`,
///     which maps each log's name to its report.
///
/// Raises:
///     DialectError: The source is not a log.
///     OSError: The source cannot be opened or read.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `Reader` does not accept `source`.
///     ValueError: An option has an invalid value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> report = cordwood.verify("example.log")
/// >>> report.ok, report.record_count, report.payload_len, report.file_len
/// (True, 2, 6, 20)
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, log_number = None, compression = None, start = Start::default(), end = None, verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
), text_signature = "(source, *, threads=1, dialect=None, log_number=None, compression=None, start=0, end=None, \
    verify_checksums=True, record_len_max=1073741824, storage_options=None, progress=None)")]
pub(crate) fn verify(
    source: &Bound<'_, PyAny>,
    threads: isize,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    start: Start,
    end: Option<u64>,
    verify_checksums: bool,
    record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let format = (dialect, log_number, compression);
    let options = read_options(format, (start, end))
        .with_verify_checksums(verify_checksums)
        .with_record_len_max(record_len_max);
    let (report, path) = read_parts(source, options, threads, progress, parallel::verify_parts)?;
    Ok(Report {
        report,
        lost_content: None,
        path,
    })
}

/// Calls `work` with readers of `source`, and with the parts they read. There is one reader for
/// each of the `threads` threads, or a single reader if several would not be faster. Returns the
/// result of `work`, and the source's path if it has one.
fn read_parts<T: Send>(
    source: &Bound<'_, PyAny>,
    options: ReadOptions,
    threads: isize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Vec<Reader<StreamSource<Watched>>>, &Parts) -> Result<T, Error> + Send,
) -> PyResult<(T, Option<PathBuf>)> {
    let threads = threads_of(threads)?;
    let py = source.py();
    let OpenedReader {
        reader: mut whole,
        mut options,
        mut another,
        ..
    } = open_reader(source, options)?;
    let path = whole.path().map(Path::to_owned);
    let watch = &Watch::new(progress, whole.file_len());
    if threads > 1 && options.dialect.is_none() {
        let detected = py.detach(|| whole.detect());
        match detected.map_err(|error| to_python(py, error, path.as_deref()))? {
            Some(format) => options = options.with_format(format),
            // Several readers need a known dialect, and this log's dialect is unknown. So only one
            // reader is used.
            None => another = None,
        }
    }
    let parts = Parts::for_threads(&options, whole.file_len(), threads, Parts::LENS);
    let readers: io::Result<_> = match another.filter(|_| parts.are_worth(threads)) {
        Some(another) => {
            let reader = |_| {
                let input = another.another().ok_or(io::ErrorKind::Unsupported)?;
                let source = watched(source_at(input, 0)?.with_path(path.clone()), watch);
                Ok(Reader::with_source(source, options.clone()))
            };
            (0..threads).map(reader).collect()
        }
        None => {
            let source = watched(whole.into_inner(), watch);
            Ok(vec![Reader::with_source(source, options)])
        }
    };
    let readers: Vec<_> = readers.map_err(|error| os_error(py, error, path.as_deref()))?;
    let done = watch.run(py, readers.len(), || work(readers, &parts))?;
    Ok((done.map_err(|error| to_python(py, error, path.as_deref()))?, path))
}

/// Reads a log with the policy `"salvage"` and writes all its records to a new log.
///
/// The source is not changed. The new log is written under a temporary name in the directory of
/// `destination`, synced, and then renamed, so once a file has its final name, it is complete. If
/// the source is a path, the new log has the same permissions, as with `cp`. After a failure, the
/// unfinished log is removed.
///
/// Args:
///     source: Any source that `Reader` accepts, or many logs as in `verify`, but no splits.
///     destination: The path of the new log, which must not exist. If there are many logs,
///         `destination` is a directory, which is created if it does not exist. Each new log keeps
///         the old log's path relative to the directory or pattern in `source`. The new log has the
///         dialect, log number and engine metadata of the source. RocksDB and Pebble take the log
///         number from the file's name.
///     dialect: Same as for `Reader`. Default: `None`.
///     log_number: Same as for `Reader`. Default: `None`.
///     compression: Same as for `Reader`. Default: `None`.
///     record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
///     repair_bit_flips: Also write each record whose damage can be explained by a single flipped
///         bit, with that bit flipped back. The report gives the number of these records as
///         `repaired_count`, and lists the repaired fragments in `repaired`. If only one bit was
///         flipped, the checksum of a repaired record confirms its contents. Default: `False`.
///     storage_options: Same as for `Reader`. Default: `None`.
///     progress: Same as for `verify`. Default: `None`.
///
/// Returns:
///     The report on `source`. If there are many logs, a `Results`, as in `verify`.
///
/// Raises:
///     DialectError: `source` is not a log.
///     FileExistsError: A file already exists at `destination`. It is not changed.
///     OSError: The source cannot be opened or read, or the new log cannot be written. Also raised
///         if `destination` is named like a segment, or if the number in its name differs from the
///         number in the records.
///     OtherLogError: All of `source` belongs to another log, whose number is neither the number in
///         the file's name nor `log_number`. No new log is written.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `Reader` does not accept `source`, or `destination` is not a path.
///     ValueError: An option has an invalid value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two", b"three"])
/// 3
/// >>> with open("example.log", "r+b") as file:
/// ...     _ = file.seek(17), file.write(b"T")
/// >>> report = cordwood.salvage("example.log", "clean.log")
/// >>> report.record_count, report.skipped[0].bit_flip
/// (2, BitFlip(offset=17, bit=5, part='payload'))
/// >>> list(cordwood.Reader("clean.log"))
/// [b'one', b'three']
/// >>> report = cordwood.salvage("example.log", "repaired.log", repair_bit_flips=True)
/// >>> report.record_count, report.repaired_count, report.repaired[0].bit_flip
/// (3, 1, BitFlip(offset=17, bit=5, part='payload'))
/// >>> list(cordwood.Reader("repaired.log"))
/// [b'one', b'two', b'three']
#[pyfunction]
#[pyo3(signature = (
    source, destination, *, dialect = None, log_number = None, compression = None, record_len_max = 1_073_741_824, repair_bit_flips = false,
    progress = None
), text_signature = "(source, destination, *, dialect=None, log_number=None, compression=None, record_len_max=1073741824, \
    repair_bit_flips=False, storage_options=None, progress=None)")]
pub(crate) fn salvage(
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    record_len_max: u64,
    repair_bit_flips: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let py = source.py();
    let destination = new_log_path(destination)?;
    let mut options = SalvageOptions::default()
        .with_record_len_max(record_len_max)
        .with_repair_bit_flips(repair_bit_flips);
    (options.dialect, options.log_number, options.compression) = (dialect, log_number, compression);
    let (report, path) = read_once(source, progress, |source| ops::salvage(source, &destination, &options))?;
    // The new log exists by now, so this call succeeds even if the log cannot be read.
    let lacks_an_edit = !report.is_ok()
        && py.detach(|| {
            let options = ReadOptions::default()
                .with_record_len_max(record_len_max)
                .with_format(report.format);
            lacks_an_edit(&destination, path.as_deref(), options).unwrap_or(false)
        });
    Ok(Report {
        report,
        lost_content: lacks_an_edit.then_some("version_edit"),
        path,
    })
}

/// Copies all records of a closed log to a new log, for example to pack or unpack it.
///
/// Either all records are copied, or no log is written. It is an error if the log is damaged,
/// contains zeros, or ends with an incomplete record, because a record may have been lost. The only
/// exception is padding: if the file consists of whole blocks, zeros that pad the last block are
/// left out.
///
/// This function also unpacks a log. To get the same records back, pass the packed log as `source`
/// and the original log's dialect as `dialect`. If the original contained only complete records,
/// the unpacked log is also byte-for-byte identical to it. The function rejects logs that could not
/// be restored from the new log. These are logs that have a log number, engine metadata, or
/// individually compressed records. They also include `"wandb_old"` logs, and `"swanlab"` logs of a
/// version other than 2.
///
/// The source is not changed. The new log is written as in `salvage`: once a file has its final
/// name, it is complete and on disk. Only cordwood can read a packed log, so never pack a log that
/// a database has to read.
///
/// Args:
///     source: Same as for `Reader`. The log should be closed: records appended during the copy may
///         be missing from the new log.
///     destination: The path of the new log, which must not exist.
///     dialect: The dialect of the new log: `"packed"`, `"leveldb"`, `"wandb"` or `"swanlab"`.
///         Default: `"packed"`.
///     compression: The compression of the new log: `"zstd"`, or `None` for no compression.
///         Default: `"zstd"` for a packed log, and `None` for the other dialects, which have no
///         compression.
///     record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
///     progress: Same as for `verify`. Default: `None`.
///
/// Returns:
///     The report on `source`.
///
/// Raises:
///     CorruptionError: The log is damaged, ends in an incomplete record, or contains zeros other
///         than padding. No new log is written.
///     DialectError: `source` is not a log, or it could not be restored from the new log.
///     FileExistsError: A file already exists at `destination`. It is not changed.
///     OSError: The source cannot be opened or read, the new log cannot be written, or
///         `destination` is named like a segment.
///     RecordTooLargeError: A record is longer than `record_len_max`. No new log is written.
///     TypeError: `Reader` does not accept `source`, or `destination` is not a path.
///     ValueError: An option has an invalid value.
///
/// >>> import os
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend(b"record %d" % number for number in range(1000))
/// 1000
/// >>> report = cordwood.pack("example.log", "packed.log")
/// >>> report.record_count, os.path.getsize("packed.log") < report.file_len
/// (1000, True)
/// >>> cordwood.open("packed.log").dialect, next(cordwood.open("packed.log"))
/// ('packed', b'record 0')
/// >>> _ = cordwood.pack("packed.log", "again.log", dialect="leveldb")
/// >>> with open("again.log", "rb") as again, open("example.log", "rb") as example:
/// ...     again.read() == example.read()
/// True
#[pyfunction]
#[pyo3(signature = (
    source, destination, *, dialect = "packed", compression = OF_DIALECT, record_len_max = 1_073_741_824, progress = None
))]
pub(crate) fn pack(
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    dialect: &str,
    #[pyo3(from_py_with = given_compression)] compression: Option<Option<Compression>>,
    record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let destination = new_log_path(destination)?;
    let mut format = LogFormat::new(named("dialect", dialect)?);
    let of_dialect = (format.dialect == Dialect::PACKED).then_some(Compression::Zstd);
    format.compression = compression.unwrap_or(of_dialect);
    let options = PackOptions::default()
        .with_format(format)
        .with_record_len_max(record_len_max);
    let (report, path) = read_once(source, progress, |source| ops::pack(source, &destination, &options))?;
    Ok(Report {
        report,
        lost_content: None,
        path,
    })
}

/// Runs `work`, which reads a source once and writes a new log. Returns the result of `work`, and
/// the source's path, if there is one.
fn read_once<T: Send>(
    source: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(StreamSource<Watched>) -> Result<T, Error> + Send,
) -> PyResult<(T, Option<PathBuf>)> {
    let py = source.py();
    let (source, _) = open(source, 0, &ReadOptions::default())?;
    let path = source.path().map(Path::to_owned);
    let watch = Watch::new(progress, source.file_len());
    let source = watched(source, &watch);
    let done = watch.run(py, 1, || work(source))?;
    // An error that already has a path may concern the destination, so no path is passed.
    Ok((done.map_err(|error| to_python(py, error, None))?, path))
}

/// Converts the `compression` argument of `pack`, which may be `None`.
fn given_compression(value: &Bound<'_, PyAny>) -> PyResult<Option<Option<Compression>>> {
    compression_of(value).map(Some)
}

/// The value for an omitted argument. It gives the new log its dialect's default compression.
const OF_DIALECT: Option<Option<Compression>> = None;

/// Returns the path of a new log.
fn new_log_path(destination: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    refuse_url(
        destination,
        "URLs can only be read; write to the path of a file, and copy that file there",
    )?;
    required_path("destination", destination)
}

/// Reads a log to the end, and counts its contents.
///
/// Damage doesn't raise an exception, but is handled as in `verify`.
///
/// Args:
///     source: Same as for `verify`.
///     threads: Same as for `verify`. Default: 1.
///     dialect: Same as for `Reader`. Default: `None`.
///     log_number: Same as for `Reader`. Default: `None`.
///     compression: Same as for `Reader`. Default: `None`.
///     start: A file offset in bytes, as in `Reader`. Default: 0.
///     end: A file offset in bytes, as in `Reader`. Default: `None`.
///     verify_checksums: Same as for `Reader`. Default: `True`.
///     record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
///     storage_options: Same as for `Reader`. Default: `None`.
///     progress: Same as for `verify`. Default: `None`.
///
/// Returns:
///     The counts. If there are many logs, a `Results`, as in `verify`.
///
/// Raises:
///     DialectError: The source is not a log.
///     OSError: The source cannot be opened or read.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `Reader` does not accept `source`.
///     ValueError: An option has an invalid value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two" * 20_000])
/// 2
/// >>> stat = cordwood.stat("example.log")
/// >>> stat.record_count, stat.record_len_max, stat.full_count, stat.first_count
/// (2, 60000, 1, 1)
#[pyfunction]
#[pyo3(signature = (
    source, *, threads = 1, dialect = None, log_number = None, compression = None, start = Start::default(), end = None, verify_checksums = true,
    record_len_max = 1_073_741_824, progress = None
), text_signature = "(source, *, threads=1, dialect=None, log_number=None, compression=None, start=0, end=None, \
    verify_checksums=True, record_len_max=1073741824, storage_options=None, progress=None)")]
pub(crate) fn stat(
    source: &Bound<'_, PyAny>,
    threads: isize,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    start: Start,
    end: Option<u64>,
    verify_checksums: bool,
    record_len_max: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Stat> {
    let format = (dialect, log_number, compression);
    let options = read_options(format, (start, end))
        .with_verify_checksums(verify_checksums)
        .with_record_len_max(record_len_max);
    let (stat, path) = read_parts(source, options, threads, progress, parallel::stat_parts)?;
    Ok(Stat { stat, path })
}
