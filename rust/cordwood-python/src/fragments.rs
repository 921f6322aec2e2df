//! The function `fragments`, its iterator and the class `Fragment`; and `runs`, from which the
//! picture of a long log is made.

use std::io::{self, Read, SeekFrom};
use std::path::PathBuf;
use std::vec;

use cordwood::damage::Severity;
use cordwood::format::BLOCK_LEN;
use cordwood::read::StreamSource;
use cordwood::{OnCorruption, ReadOptions, Reader, verbs};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::dialect::named;
use crate::error::to_python;
use crate::event::{reason_named, reason_object, severity_object};
use crate::exclusive::Exclusive;
use crate::reader::is_interrupt_of_source;
use crate::source::{Input, InputSource, Opened, Referent, open, source_at, unsupported};
use crate::value::{NewArgs, new_args, static_name};

/// Fragments found per step, with the interpreter released.
const BATCH_MAX: usize = 512;

/// A fragment of a log, or a gap between fragments. `cordwood.fragments` returns them.
///
/// `len(fragment)` is the number of bytes from `offset` to `end_offset`. The constructor takes the
/// attributes as keywords, but `severity`, which is that of the reason.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> next(cordwood.fragments("example.log"))
/// Fragment(offset=0, end_offset=10, kind='full')
#[pyclass(frozen, module = "cordwood", eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Fragment {
    offset: u64,
    end_offset: u64,
    block: u64,
    kind: &'static str,
    type_byte: Option<u8>,
    payload_len: Option<u16>,
    stored_crc: Option<u32>,
    computed_crc: Option<u32>,
    log_number: Option<u32>,
    synced_offset: Option<u64>,
    /// Its name, and its severity.
    reason: Option<(&'static str, Severity)>,
    record_offset: Option<u64>,
    salvaged: bool,
}

impl From<verbs::Fragment> for Fragment {
    fn from(fragment: verbs::Fragment) -> Self {
        Fragment {
            offset: fragment.offset,
            end_offset: fragment.end_offset,
            block: fragment.block,
            kind: fragment.kind.as_str(),
            type_byte: fragment.type_byte,
            payload_len: fragment.payload_len,
            stored_crc: fragment.stored_crc,
            computed_crc: fragment.computed_crc,
            log_number: fragment.log_number,
            synced_offset: fragment.synced_offset,
            reason: fragment.reason.map(name_and_severity),
            record_offset: fragment.record_offset,
            salvaged: fragment.is_salvaged,
        }
    }
}

fn name_and_severity(reason: cordwood::damage::Reason) -> (&'static str, Severity) {
    (reason.as_str(), reason.severity())
}

/// The names of all kinds.
const KINDS: [&str; 22] = [
    "full",
    "first",
    "middle",
    "last",
    "recyclable_full",
    "recyclable_first",
    "recyclable_middle",
    "recyclable_last",
    "wal_sync_full",
    "wal_sync_first",
    "wal_sync_middle",
    "wal_sync_last",
    "set_compression",
    "timestamp_sizes",
    "predecessor",
    "zero",
    "unknown",
    "end_trailer",
    "file_header",
    "trailer",
    "zeros",
    "rest",
];

#[pymethods]
impl Fragment {
    #[new]
    #[pyo3(signature = (
        *, offset, end_offset, kind, block = None, type_byte = None, payload_len = None, stored_crc = None,
        computed_crc = None, log_number = None, synced_offset = None, reason = None, record_offset = None,
        salvaged = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        offset: u64,
        end_offset: u64,
        kind: &str,
        block: Option<u64>,
        type_byte: Option<u8>,
        payload_len: Option<u16>,
        stored_crc: Option<u32>,
        computed_crc: Option<u32>,
        log_number: Option<u32>,
        synced_offset: Option<u64>,
        reason: Option<&str>,
        record_offset: Option<u64>,
        salvaged: bool,
    ) -> PyResult<Self> {
        if end_offset < offset {
            return Err(PyValueError::new_err(format!(
                "a fragment cannot end at {end_offset}, before its offset {offset}"
            )));
        }
        let reason = reason.map(reason_named).transpose()?;
        Ok(Fragment {
            offset,
            end_offset,
            block: block.unwrap_or(offset / BLOCK_LEN as u64),
            kind: static_name(&KINDS, kind, "kind of fragment")?,
            type_byte,
            payload_len,
            stored_crc,
            computed_crc,
            log_number,
            synced_offset,
            reason: reason.map(name_and_severity),
            record_offset,
            salvaged,
        })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("offset", "end_offset", "kind")
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<NewArgs<'py>> {
        new_args(
            slf,
            &[
                "offset",
                "end_offset",
                "kind",
                "block",
                "type_byte",
                "payload_len",
                "stored_crc",
                "computed_crc",
                "log_number",
                "synced_offset",
                "reason",
                "record_offset",
                "salvaged",
            ],
        )
    }

    /// File offset of the first byte.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// File offset after the last byte. After damage, the beginning of the next fragment found.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// The index of its block, from 0.
    #[getter]
    fn block(&self) -> u64 {
        self.block
    }

    /// What it is: `"full"`, `"first"`, `"trailer"`, ...
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        KIND.import(py, "cordwood.types", "FragmentKind")?.call1((self.kind,))
    }

    /// The type byte; `None` if there is no header.
    #[getter]
    fn type_byte(&self) -> Option<u8> {
        self.type_byte
    }

    /// Bytes of payload as stated by the header, right or wrong; `None` if there is no header.
    #[getter]
    fn payload_len(&self) -> Option<u16> {
        self.payload_len
    }

    /// The CRC-32C that the header states, without the mask; `None` if there is no header.
    #[getter]
    fn stored_crc(&self) -> Option<u32> {
        self.stored_crc
    }

    /// The CRC-32C of what it should cover; `None` if that goes past the end of block or file.
    #[getter]
    fn computed_crc(&self) -> Option<u32> {
        self.computed_crc
    }

    /// The number of the log, if headers of this type carry one; else `None`.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.log_number
    }

    /// How far the file had been synced, in bytes, if headers of this type state it; else `None`.
    #[getter]
    fn synced_offset(&self) -> Option<u64> {
        self.synced_offset
    }

    /// Why these bytes were not returned as part of a record.
    ///
    /// `None` if they were, and for trailers.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.reason.map(|(name, _)| reason_object(py, name)).transpose()
    }

    /// The severity of that; `None` if there is no reason.
    #[getter]
    fn severity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let severity = self.reason.map(|(_, severity)| severity_object(py, severity));
        severity.transpose()
    }

    /// File offset of the record that contains it, if that was returned; else `None`.
    #[getter]
    fn record_offset(&self) -> Option<u64> {
        self.record_offset
    }

    /// Whether that record begins after damage in the same block.
    ///
    /// Only the policy `"salvage"` returns such a record.
    #[getter]
    fn salvaged(&self) -> bool {
        self.salvaged
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.end_offset - self.offset).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let Fragment {
            offset,
            end_offset,
            kind,
            reason,
            ..
        } = self;
        let reason = reason.map(|(name, _)| format!(", reason='{name}'"));
        format!(
            "Fragment(offset={offset}, end_offset={end_offset}, kind='{kind}'{})",
            reason.unwrap_or_default()
        )
    }
}

/// Lists every fragment and every gap of a log, with the reason for each that was not returned.
///
/// They tile the file: each begins where the one before it ends, and none crosses the end of a
/// block. Damage is not an error here. They follow what the policy `"salvage"` of `Reader` returns
/// or skips: in a skipped region, each fragment carries the region's reason. Memory does not grow
/// with the log.
///
/// Args:
///     source: What `Reader` takes, if it can be read twice: a path of a file, a buffer, or an
///         object with `read` and `seek`.
///     dialect: As for `Reader`. Default: `None`.
///     log_number: As for `Reader`. Default: `None`.
///     compression: As for `Reader`. Default: `None`.
///
/// Returns:
///     An iterator of `Fragment`.
///
/// Raises:
///     DialectError: It is not a log, on the first step.
///     OSError: The source cannot be opened or read.
///     io.UnsupportedOperation: The source cannot seek.
///     TypeError: `source` is nothing that `Reader` takes.
///     ValueError: There is no such dialect.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> for fragment in cordwood.fragments("example.log"):
/// ...     print(fragment.offset, fragment.kind, fragment.reason)
/// 0 full None
/// 10 full None
#[pyfunction]
#[pyo3(signature = (source, *, dialect = None, log_number = None, compression = None))]
pub(crate) fn fragments(
    source: &Bound<'_, PyAny>,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<Fragments> {
    Ok(Fragments(Exclusive::new(Some(Batches::open(
        source,
        dialect,
        log_number,
        compression,
    )?))))
}

/// The iterator that `fragments` returns.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct Fragments(Exclusive<Option<Batches>>);

#[pymethods]
impl Fragments {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Fragment>> {
        let mut state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let Some(batches) = &mut *state else { return Ok(None) };
        Ok(batches.next(py)?.map(Fragment::from))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread that uses it now holds it, and so everything that it refers to.
        match self.0.try_lock().as_deref() {
            Some(Some(batches)) => batches.traverse(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let cleared = self.0.try_lock().and_then(|mut state| state.take());
        drop(cleared);
    }
}

/// Lists `fragments`, with neighbours of the same kind and reason in one block as one.
///
/// For pictures of long logs.
///
/// Args:
///     source: As for `fragments`.
///     dialect: As for `fragments`. Default: `None`.
///     log_number: As for `fragments`. Default: `None`.
///     compression: As for `fragments`. Default: `None`.
///
/// Returns:
///     An iterator of tuples: the offset, the end offset, the kind, the reason, its severity
///     and the number of fragments.
#[pyfunction]
#[pyo3(signature = (source, *, dialect = None, log_number = None, compression = None))]
pub(crate) fn runs(
    source: &Bound<'_, PyAny>,
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<Runs> {
    Ok(Runs(Exclusive::new(Some((
        Batches::open(source, dialect, log_number, compression)?,
        None,
    )))))
}

/// The iterator that `runs` returns. A run does not cross the end of a block.
#[pyclass(frozen, weakref, module = "cordwood._native")]
pub(crate) struct Runs(Exclusive<Option<(Batches, Option<verbs::Fragment>)>>);

type Run = (u64, u64, &'static str, Option<&'static str>, Option<&'static str>, u64);

#[pymethods]
impl Runs {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Run>> {
        let mut state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let Some((batches, met)) = &mut *state else {
            return Ok(None);
        };
        let first = match met.take() {
            Some(first) => first,
            None => match batches.next(py)? {
                Some(first) => first,
                None => return Ok(None),
            },
        };
        let reason = first.reason.map(cordwood::damage::Reason::as_str);
        let (mut end, mut count) = (first.end_offset, 1);
        while let Some(next) = batches.next(py)? {
            let next_reason = next.reason.map(cordwood::damage::Reason::as_str);
            if (next.block, next.kind, next_reason) != (first.block, first.kind, reason) {
                *met = Some(next);
                break;
            }
            end = next.end_offset;
            count += 1;
        }
        let severity = first.reason.map(|reason| reason.severity().as_str());
        Ok(Some((first.offset, end, first.kind.as_str(), reason, severity, count)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock().as_deref() {
            Some(Some((batches, _))) => batches.traverse(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let cleared = self.0.try_lock().and_then(|mut state| state.take());
        drop(cleared);
    }
}

/// One of two readers of the same source.
struct Half {
    input: Box<dyn Input>,
    /// Its position, if the other one moves the same object.
    position: Option<u64>,
}

impl Read for Half {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(position) = &mut self.position else {
            return self.input.read(buffer);
        };
        self.input.seek(SeekFrom::Start(*position))?;
        let len = self.input.read(buffer)?;
        *position += len as u64;
        Ok(len)
    }
}

/// Finds fragments, many at a time.
struct Batches {
    fragments: verbs::Fragments<StreamSource<Half>>,
    path: Option<PathBuf>,
    referents: [Option<Referent>; 2],
    found: vec::IntoIter<verbs::Fragment>,
    /// The error after the fragments that were found.
    failed: Option<cordwood::Error>,
}

impl Batches {
    fn open(
        source: &Bound<'_, PyAny>,
        dialect: Option<&Bound<'_, PyAny>>,
        log_number: Option<u32>,
        compression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = ReadOptions::default().with_on_corruption(OnCorruption::Salvage);
        (options.dialect, options.log_number, options.compression) = named(dialect, log_number, compression)?;
        let Opened {
            source: ahead,
            path,
            referent,
        } = open(source, 0)?;
        // A file or a buffer can be read at two positions, unless it is a pipe; an object is
        // shared.
        let another = ahead.get_ref().another();
        let is_shared = another.is_none();
        if is_shared && path.is_some() {
            return Err(unsupported(source.py(), "the source cannot seek"));
        }
        let (behind, also_referent) = match another {
            Some(input) => (source_at(input, 0)?, None),
            None => {
                let Opened { source, referent, .. } = open(source, 0)?;
                (source, referent)
            }
        };
        let half = |source: InputSource| {
            source.map(|input| Half {
                input,
                position: is_shared.then_some(0),
            })
        };
        let reader = Reader::with_source(half(ahead), options).with_path(path.clone());
        Ok(Batches {
            fragments: verbs::fragments(reader, half(behind)),
            path,
            referents: [referent, also_referent],
            found: Vec::new().into_iter(),
            failed: None,
        })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.referents
            .iter()
            .flatten()
            .try_for_each(|referent| visit.call(referent.as_ref()))
    }

    #[inline]
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<verbs::Fragment>> {
        match self.found.next() {
            Some(fragment) => Ok(Some(fragment)),
            None => self.find(py),
        }
    }

    fn find(&mut self, py: Python<'_>) -> PyResult<Option<verbs::Fragment>> {
        if self.failed.is_none() {
            py.check_signals()?;
            let mut found = Vec::with_capacity(BATCH_MAX);
            let (fragments, failed) = (&mut self.fragments, &mut self.failed);
            py.detach(|| {
                while found.len() < BATCH_MAX {
                    match fragments.next().transpose() {
                        Ok(Some(fragment)) => found.push(fragment),
                        Ok(None) => break,
                        Err(error) => {
                            *failed = Some(error);
                            break;
                        }
                    }
                }
            });
            self.found = found.into_iter();
        }
        // Ctrl-C is raised at once. What was found is returned by the next step.
        let is_interrupt = |error: &mut cordwood::Error| match error {
            cordwood::Error::Io { source, .. } => is_interrupt_of_source(py, source),
            _ => false,
        };
        if let Some(error) = self.failed.take_if(is_interrupt) {
            return Err(to_python(py, error, self.path.as_deref()));
        }
        match (
            self.found.next(),
            self.failed.take_if(|_| self.found.as_slice().is_empty()),
        ) {
            (Some(fragment), failed) => {
                self.failed = failed;
                Ok(Some(fragment))
            }
            (None, Some(error)) => Err(to_python(py, error, self.path.as_deref())),
            (None, None) => Ok(None),
        }
    }
}
