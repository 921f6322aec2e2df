//! Implements [`Read`] and [`Seek`] for the sources that Python users pass.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use cordwood::codec::Grid;
use cordwood::read::{FileReader, SeekSource, Source, StreamSource};
use cordwood::{Error, ErrorKind, ReadOptions};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBlockingIOError, PyException, PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::interpreter::kept_exception::KeptException;
use crate::interpreter::python_code::{Arguments, Held, PythonCode, module};
use crate::interpreter::{imported, interned};
use crate::memory::buffer::{copy_from_buffer, new_int, new_tuple};
use crate::values::arguments::{
    bytes_of, check_contiguous, is_of_buffer, is_path, is_url, path_of, refuse_text, view_of,
};
use crate::values::error::{call_python, check_signals_anywhere, of_call, to_python, unsupported};
use crate::values::position::Position;

/// A file, a buffer or a Python object.
pub(crate) trait Input: Read + Seek + Send + Sync {
    /// Returns a second input for the same source, with its own position. Returns `None` for a
    /// pipe, a device or an object, since all its readers would share one position.
    fn another(&self) -> Option<Box<dyn Input>> {
        None
    }

    /// Checks whether the input can seek. Even if it can, [`another`](Self::another) may return
    /// `None`, because inputs for the same object share one position.
    fn can_seek(&self) -> bool {
        self.another().is_some()
    }

    /// Returns the current length in bytes, if it is known.
    fn len(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// Returns a second input for the same source, unless it is a pipe or a device. If the source
    /// is an object, both inputs then seek before every read.
    fn twin(&mut self) -> Option<Box<dyn Input>> {
        self.another()
    }
}

/// The Python object that an [`Input`] reads. There is none for a file or a `bytes` object. All
/// inputs for the object share this reference so that the owner of an input can report the object
/// to the garbage collector.
pub(crate) type Referent = Arc<Held>;

pub(crate) type InputSource = StreamSource<Box<dyn Input>>;

/// A source that has been opened, and the Python object that it reads. The source contains its
/// path, if it has one.
pub(crate) type Opened = (InputSource, Option<Referent>);

/// Returns a source that reads `input` from the log offset `start`, or from the log's end if the
/// log ends before `start`.
pub(crate) fn source_at(mut input: Box<dyn Input>, start: u64) -> io::Result<InputSource> {
    let Some(len) = input.len()? else {
        return Ok(StreamSource::new(input, 0));
    };
    let start = input.seek(SeekFrom::Start(start.min(len)))?;
    Ok(StreamSource::new(input, start).with_len(len))
}

pub(crate) type SourceReader = cordwood::Reader<InputSource>;

/// An open reader.
pub(crate) struct OpenedReader {
    pub(crate) reader: SourceReader,
    /// The given options, plus the format if it had to be detected.
    pub(crate) options: ReadOptions,
    /// A second input for the same source, if there can be one.
    pub(crate) another: Option<Box<dyn Input>>,
    pub(crate) referent: Option<Referent>,
}

/// Opens the source passed to `Reader`. Reading starts at the first block of the range in
/// `options`.
pub(crate) fn open_reader(source: &Bound<'_, PyAny>, mut options: ReadOptions) -> PyResult<OpenedReader> {
    let py = source.py();
    options.check().map_err(|error| to_python(py, error, None))?;
    if !is_url(source)?
        && let Some(path) = path_of(source)?
    {
        let opened = py.detach(|| open_path(&path, options));
        return opened.map_err(|error| to_python(py, error, Some(&path)));
    }
    let named = options.dialect.filter(|_| !options.must_look());
    let start = named.map_or(0, |dialect| Grid::new(dialect, 0).block_start(options.start));
    let (source, referent) = open(source, start, &options)?;
    let another = source.get_ref().another();
    let can_seek = source.get_ref().can_seek();
    let is_content = source.path().is_none() && another.is_some();
    let mut reader = cordwood::Reader::with_source(source, options.clone());
    if is_content
        && let Err(error) = py.detach(|| reader.format())
        && matches!(error.kind, ErrorKind::Foreign { .. })
    {
        let error = to_python(py, error, None);
        let hint = "bytes are the content of a log, not its path: pass a path as str or os.PathLike";
        let noted = error.value(py).run_method(interned!(py, "add_note")?, (hint,));
        return Err(noted.err().unwrap_or(error));
    }
    if options.must_look() && options.start > 0 && can_seek {
        // The format is detected from the start of the file. No other bytes before the range are
        // read.
        let started = py.detach(|| {
            options = options.clone().with_format(reader.format()?);
            reader.restart(options.clone())
        });
        started.map_err(|error| to_python(py, error, None))?;
    }
    Ok(OpenedReader {
        reader,
        options,
        another,
        referent,
    })
}

/// Like [`open_reader`] for a path, but doesn't need the interpreter.
pub(crate) fn open_path(path: &Path, mut options: ReadOptions) -> Result<OpenedReader, Error> {
    let mut reader = cordwood::Reader::open_with(path, options.clone())?;
    // Pipes are read by `FileInput` instead, because reading a pipe can block, and `FileInput` lets
    // a signal interrupt the wait.
    if options.must_look() && options.start > 0 && reader.file_len().is_some() {
        // The reader will start in the middle of the file, so the format must be known first.
        options = options.with_format(reader.format()?);
    }
    let source = reader.into_inner().map(FileInput::boxed);
    // Several threads can read a log only if it is a single file, not a segmented log.
    let is_one_file = !source.is_segmented();
    Ok(OpenedReader {
        another: source.get_ref().another().filter(|_| is_one_file),
        reader: cordwood::Reader::with_source(source, options.clone()),
        options,
        referent: None,
    })
}

/// Opens the user's source to read the range in `options`. A path is opened at the start of the
/// log. Any other source is opened at the log offset `start`.
pub(crate) fn open(source: &Bound<'_, PyAny>, start: u64, options: &ReadOptions) -> PyResult<Opened> {
    open_any(source, start, options).map_err(|error| of_call(source.py(), error))
}

fn open_any(source: &Bound<'_, PyAny>, start: u64, options: &ReadOptions) -> PyResult<Opened> {
    let py = source.py();
    let position = options.position.clone().map(Position);
    if let Some(file) = remote(source, "file_of", (source, options.start, options.end, position))? {
        return open_ranges(&file, start);
    }
    if let Some(path) = path_of(source)? {
        let opened = py.detach(|| StreamSource::open(&path));
        let file = opened.map_err(|error| to_python(py, error, Some(&path)))?;
        return Ok((file.map(FileInput::boxed), None));
    }
    if options.position.is_some() {
        return Err(PyTypeError::new_err(
            "start must be an offset, since a Position is compared only in a file or in a store",
        ));
    }
    if let Ok(bytes) = source.cast::<PyBytes>() {
        let bytes = Arc::new(PyBackedBytes::from(bytes.clone()));
        let len = bytes.len() as u64;
        // A `bytes` object doesn't refer to any other object, so it need not be reported to the
        // garbage collector.
        let (content, position) = (Content::Bytes(bytes), 0);
        let input = BufferInput { content, len, position };
        return Ok((source_at(Box::new(input), start)?, None));
    }
    let no_view = match view_of(source)? {
        Ok(view) => {
            check_contiguous(&view)?;
            let len = view.getattr(interned!(py, "nbytes")?)?.extract()?;
            let mut view = view.into_any();
            if PyUntypedBuffer::get(&view).is_err() {
                // PyO3 rejects a zero-dimensional buffer, such as that of a NumPy scalar.
                view = view.run_method(interned!(py, "cast")?, ("B",))?;
            }
            let view = Arc::new(Held::new(&view));
            let (content, position) = (Content::View(view.clone()), 0);
            let input = BufferInput { content, len, position };
            return Ok((source_at(Box::new(input), start)?, Some(view)));
        }
        Err(error) => error,
    };
    if source.attribute(interned!(py, "read")?)?.is_some() {
        return open_object(source, start);
    }
    let refused = PyTypeError::new_err(format!(
        "source must be a path, a URL, bytes or another buffer, or an object with read(size) or read_range(start, end), not {}",
        source.get_type().name()?
    ));
    if is_of_buffer(py, &no_view) {
        refused.set_cause(py, Some(no_view));
    }
    Err(refused)
}

/// Returns the source or list of sources after adding the file system's arguments to each URL.
pub(crate) fn with_options<'py>(
    source: &Bound<'py, PyAny>,
    storage_options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match storage_options {
        Some(given) => imported!(source.py(), "cordwood._remote", "with_options")?.run((source, given)),
        None => Ok(source.clone()),
    }
}

/// Returns the source as an object with `read_range`, which can be opened any number of times.
/// Returns `None` if the source is not read in ranges.
pub(crate) fn ranges_of<'py>(source: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    remote(source, "source_of", (source,))
}

/// Calls a function in `_remote.py` for a source. Returns `None` if the function returns `None`, or
/// if the source is read without calling Python code.
fn remote<'py>(
    source: &Bound<'py, PyAny>,
    function: &str,
    args: impl Arguments<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Paths and buffers are read without calling Python code.
    if !is_url(source)? && (is_path(source)? || PyMemoryView::from(source).is_ok()) {
        return Ok(None);
    }
    let made = module(source.py(), "cordwood._remote")?.getattr(function)?.run(args)?;
    Ok((!made.is_none()).then_some(made))
}

/// Opens a file object that reads ahead in ranges. `file_of` in `_remote.py` creates such objects.
fn open_ranges(file: &Bound<'_, PyAny>, start: u64) -> PyResult<Opened> {
    let py = file.py();
    let referent = Arc::new(Held::new(file));
    let input = ObjectInput::boxed(&referent, 0, true, Some(file.len()? as u64));
    let source = source_at(input, start)?;
    let path = file.getattr(interned!(py, "name")?)?.extract()?;
    Ok((source.with_path(path), Some(referent)))
}

/// A file that this crate opened.
struct FileInput(FileReader);

impl FileInput {
    fn boxed(file: FileReader) -> Box<dyn Input> {
        Box::new(FileInput(file))
    }
}

impl Input for FileInput {
    fn another(&self) -> Option<Box<dyn Input>> {
        let has_positions = self.0.file_len().is_ok_and(|len| len.is_some());
        has_positions.then(|| FileInput::boxed(self.0.clone()))
    }

    fn len(&self) -> io::Result<Option<u64>> {
        self.0.file_len()
    }
}

impl Read for FileInput {
    /// A signal interrupts a read that is waiting for a pipe or a device. If the signal handler
    /// raises an exception, as it does for Ctrl-C, the read fails. Otherwise, the core repeats the
    /// read and may wait forever.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer);
        let is_interrupted = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
        // A thread that reads ahead in a regular file must not wait for the interpreter lock,
        // because the consumer of an Arrow stream may hold that lock while waiting for this thread.
        if read.as_ref().is_err_and(is_interrupted) && matches!(self.0.file_len(), Ok(None)) {
            check_signals_anywhere()?;
        }
        read
    }
}

impl Seek for FileInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// Checks whether an object with a `read` method can seek.
pub(crate) fn is_seekable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.attribute(interned!(object.py(), "seekable")?)? {
        Some(seekable) => seekable.run(())?.is_truthy(),
        None => Ok(false),
    }
}

fn open_object(object: &Bound<'_, PyAny>, start: u64) -> PyResult<Opened> {
    let py = object.py();
    refuse_text(object)?;
    let is_seekable = is_seekable(object)?;
    let base = match is_seekable {
        true => object.run_method(interned!(py, "tell")?, ())?.extract()?,
        false => 0,
    };
    // Objects from `cordwood.beam` have this attribute.
    let path = object
        .attribute(interned!(py, "cordwood_path")?)?
        .map_or(Ok(None), |path| path.extract())?;
    let referent = Arc::new(Held::new(object));
    let input = ObjectInput::boxed(&referent, base, is_seekable, None);
    // A source that cannot seek is read from its start, and the bytes before the range are
    // discarded. Its length is not queried, because that may cost as much as reading the whole
    // source, for example if it is a compressed file.
    let mut source = StreamSource::new(input, 0).with_path(path);
    if start > 0 && is_seekable {
        source.seek(start)?;
    }
    Ok((source, Some(referent)))
}

/// A buffer in memory.
#[derive(Clone)]
struct BufferInput {
    content: Content,
    len: u64,
    position: u64,
}

#[derive(Clone)]
enum Content {
    /// A `bytes` object. It is immutable, so reading it doesn't require the interpreter.
    Bytes(Arc<PyBackedBytes>),
    /// Any other buffer. Other threads may write to it during a read, so each piece is copied
    /// before it is used. The object is a `memoryview` created here, which pins the buffer and can
    /// be traversed by the garbage collector.
    View(Referent),
}

impl Input for BufferInput {
    fn another(&self) -> Option<Box<dyn Input>> {
        Some(Box::new(self.clone()))
    }

    fn len(&self) -> io::Result<Option<u64>> {
        Ok(Some(self.len))
    }
}

impl Read for BufferInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = match &self.content {
            Content::Bytes(bytes) => {
                let position = usize::try_from(self.position).unwrap_or(usize::MAX);
                bytes.get(position..).unwrap_or_default().read(buffer)?
            }
            // A thread may be reading ahead when the interpreter shuts down.
            Content::View(view) => call_python(|py| {
                let source = PyUntypedBuffer::get(view.bind(py))?;
                Ok(copy_from_buffer(py, &source, self.position, buffer))
            })?,
        };
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for BufferInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(offset) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        self.position = offset;
        Ok(offset)
    }
}

/// An object with `read`.
struct ObjectInput {
    object: Referent,
    /// The object's position when it was passed in, which corresponds to file offset 0.
    base: u64,
    is_seekable: bool,
    /// The object's length, if it is a file object that reads ahead in ranges. Such an object is
    /// closed when this input is dropped.
    len: Option<u64>,
    /// The file offset of the next byte to read.
    position: u64,
    /// Whether the object's position is unknown because its `read` or `seek` has raised an
    /// exception. For example, `read` may have consumed bytes and then failed to allocate memory
    /// for its result.
    is_lost: bool,
    /// Whether a [`twin`](Input::twin) may move the object's position between two reads.
    is_shared: bool,
}

impl Input for ObjectInput {
    fn can_seek(&self) -> bool {
        self.is_seekable
    }

    fn len(&self) -> io::Result<Option<u64>> {
        Ok(self.len)
    }

    fn twin(&mut self) -> Option<Box<dyn Input>> {
        self.is_shared = true;
        let object = Arc::clone(&self.object);
        Some(Box::new(ObjectInput { object, ..*self }))
    }
}

impl Drop for ObjectInput {
    fn drop(&mut self) {
        if self.len.is_some() {
            Python::try_attach(|py| {
                // If this drop is due to an exception, the exception must be preserved.
                let _kept = KeptException::new(py);
                // An object that the garbage collector has cleared is already closed and cannot be
                // closed again.
                let close = interned!(py, "close");
                let _ = close.and_then(|close| self.object.bind(py).run_method(close, ()));
            });
        }
    }
}

impl Read for ObjectInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_lost || self.is_shared {
            self.seek(SeekFrom::Start(self.position))?;
        }
        self.is_lost = true;
        let mut has_read_none = false;
        let read = call_python(|py| {
            self.read_once(py, buffer).inspect_err(|error| {
                has_read_none = !self.is_seekable && !error.is_instance_of::<PyMemoryError>(py);
            })
        });
        self.position += *read.as_ref().unwrap_or(&0) as u64;
        self.is_lost = read.is_err() && !has_read_none;
        read
    }
}

impl ObjectInput {
    fn boxed(object: &Referent, base: u64, is_seekable: bool, len: Option<u64>) -> Box<dyn Input> {
        Box::new(ObjectInput {
            object: Arc::clone(object),
            base,
            is_seekable,
            len,
            position: 0,
            is_lost: false,
            is_shared: false,
        })
    }

    fn read_once(&self, py: Python<'_>, buffer: &mut [u8]) -> PyResult<usize> {
        let size = new_int(py, buffer.len() as u64)?;
        let read = interned!(py, "read")?;
        let answer = self.object.bind(py).run_method(read, new_tuple(py, [size])?)?;
        if answer.is_none() {
            return Err(PyBlockingIOError::new_err(
                "read() returned None: the source must be in blocking mode",
            ));
        }
        let bytes = bytes_of("the result of read", &answer).map_err(|_| {
            let name = answer.get_type().name();
            let name = name.map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "read() must return bytes, not {name}; open a file in binary mode ('rb')"
            ))
        })?;
        let bytes = bytes.as_bytes();
        let (len, len_max) = (bytes.len(), buffer.len());
        if len > len_max {
            return Err(PyValueError::new_err(format!("read({len_max}) returned {len} bytes")));
        }
        buffer[..len].copy_from_slice(bytes);
        self.checked(py, len)
    }

    /// Checks and returns the length of a read's result. If a remote file's response is cut short,
    /// the file may appear to end there, even though its `size` is larger.
    fn checked(&self, py: Python<'_>, len: usize) -> PyResult<usize> {
        if len > 0 || !self.is_seekable {
            return Ok(len);
        }
        let object = self.object.bind(py);
        let Some(Ok(size)) = object
            .attribute(interned!(py, "size")?)?
            .map(|size| size.extract::<u64>())
        else {
            return Ok(len);
        };
        let position: u64 = object.run_method(interned!(py, "tell")?, ())?.extract()?;
        if position < size {
            return Err(PyOSError::new_err(format!(
                "the source ended after {position} bytes, and its size is {size}"
            )));
        }
        Ok(len)
    }
}

impl Seek for ObjectInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(offset) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if !self.is_seekable {
            return call_python(|py| match self.is_lost {
                true => Err(PyOSError::new_err(
                    "the source cannot be read on: there was no memory for bytes that it has returned",
                )),
                false => Err(unsupported(py, "the source cannot seek")),
            });
        }
        self.is_lost = true;
        call_python(|py| {
            // If the sum saturates, the position is too large for any object, and `seek` raises an
            // error.
            let position = new_int(py, self.base.saturating_add(offset))?;
            let seek = interned!(py, "seek")?;
            self.object.bind(py).run_method(seek, new_tuple(py, [position])?)?;
            Ok(())
        })?;
        (self.position, self.is_lost) = (offset, false);
        Ok(offset)
    }
}

/// Checks whether a Python object used as a source raised an exception that is not an error, such
/// as `KeyboardInterrupt`. Such an exception must be raised immediately.
pub(crate) fn is_interrupt(py: Python<'_>, error: &cordwood::Error) -> bool {
    let ErrorKind::Io { source: error, .. } = &error.kind else {
        return false;
    };
    let raised = error.get_ref().and_then(|error| error.downcast_ref::<PyErr>());
    raised.is_some_and(|raised| !raised.is_instance_of::<PyException>(py))
}
