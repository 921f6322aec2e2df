//! What Python users read from and write to, as [`Read`], [`Seek`] and [`Write`].

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use cordwood::{Dialect, ReadOptions, StreamSource};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBlockingIOError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyType};

use crate::bytes::copy_from_buffer;
use crate::error::{os_error, to_python};

/// A file, a buffer or a Python object.
pub(crate) trait Input: Read + Seek + Send + Sync {}

impl<T: Read + Seek + Send + Sync> Input for T {}

/// A source that is open, and its path if it has one.
pub(crate) struct Opened {
    pub(crate) source: StreamSource<Box<dyn Input>>,
    pub(crate) path: Option<PathBuf>,
}

pub(crate) type SourceReader = cordwood::Reader<StreamSource<Box<dyn Input>>>;

/// Opens what the user passed to `Reader`, for `options`: at the block in which their range starts. Those that are returned name the dialect, if it had to be
/// found out for that.
pub(crate) fn open_reader(
    source: &Bound<'_, PyAny>,
    mut options: ReadOptions,
) -> PyResult<(SourceReader, ReadOptions)> {
    let py = source.py();
    let begin = |dialect: Dialect| dialect.block_begin(options.start);
    let named = options.dialect.filter(|_| !options.must_look());
    let Opened { source: opened, path } = open(source, named.map_or(0, begin))?;
    let mut reader = cordwood::Reader::with_source(opened, options.clone()).with_path(path.clone());
    // Which log it is is found out at the beginning; then what lies before the range need not be read, where the source can be opened once more.
    if options.must_look() && options.start > 0 && reader.file_len().is_some() {
        let dialect = py.detach(|| reader.dialect());
        let dialect = dialect.map_err(|error| to_python(py, error, path.as_deref()))?;
        options.dialect = Some(dialect);
        let opened = open(source, dialect.block_begin(options.start))?.source;
        reader = cordwood::Reader::with_source(opened, options.clone()).with_path(path);
    }
    Ok((reader, options))
}

/// Opens what the user passed, at the offset `begin` of the log.
pub(crate) fn open(source: &Bound<'_, PyAny>, begin: u64) -> PyResult<Opened> {
    let py = source.py();
    if let Some(path) = path_of(source)? {
        let opened = py.detach(|| StreamSource::open(&path, begin));
        let source = opened.map_err(|error| os_error(error, Some(&path)))?;
        return Ok(Opened {
            source: source.map(|file| Box::new(file) as Box<dyn Input>),
            path: Some(path),
        });
    }
    if let Ok(bytes) = source.cast::<PyBytes>() {
        let len = bytes.as_bytes().len() as u64;
        let position = begin.min(len);
        let input: Box<dyn Input> = Box::new(BytesInput {
            bytes: bytes.clone().unbind(),
            position,
        });
        return Ok(Opened {
            source: StreamSource::new(input, position).with_len(len),
            path: None,
        });
    }
    if let Ok(view) = PyMemoryView::from(source) {
        let buffer = byte_buffer(&view)?;
        let len = buffer.len_bytes() as u64;
        let position = begin.min(len);
        let input: Box<dyn Input> = Box::new(BufferInput { buffer, position });
        return Ok(Opened {
            source: StreamSource::new(input, position).with_len(len),
            path: None,
        });
    }
    if source.hasattr(intern!(py, "read"))? {
        return open_object(source, begin);
    }
    Err(PyTypeError::new_err(format!(
        "source must be a path, bytes or another buffer, or an object with read(size), not {}",
        source.get_type().name()?
    )))
}

fn open_object(object: &Bound<'_, PyAny>, begin: u64) -> PyResult<Opened> {
    let py = object.py();
    refuse_text(object)?;
    let seekable = object.getattr_opt(intern!(py, "seekable"))?;
    let is_seekable = seekable.map_or(Ok(false), |seekable| seekable.call0()?.is_truthy())?;
    let base = if is_seekable {
        object.call_method0(intern!(py, "tell"))?.extract()?
    } else {
        0
    };
    let mut input = ObjectInput {
        object: object.clone().unbind(),
        base,
        is_seekable,
    };
    // What cannot seek is read from its beginning, and what lies before the range is thrown away. The length is not asked for: the answer may
    // cost as much as reading it all, of a compressed file for one.
    let offset = if begin > 0 && is_seekable {
        input.seek(SeekFrom::Start(begin))?
    } else {
        0
    };
    Ok(Opened {
        source: StreamSource::new(Box::new(input) as Box<dyn Input>, offset),
        path: None,
    })
}

/// A text file would be asked for bytes and give text.
pub(crate) fn refuse_text(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static TEXT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if object.is_instance(TEXT.import(object.py(), "io", "TextIOBase")?)? {
        return Err(PyTypeError::new_err(
            "a text file was given; open it in binary mode ('rb' or 'wb')",
        ));
    }
    Ok(())
}

/// The path that `object` is, if it is `str` or `os.PathLike`.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    let is_path =
        object.is_instance_of::<pyo3::types::PyString>() || object.hasattr(intern!(object.py(), "__fspath__"))?;
    if !is_path {
        return Ok(None);
    }
    let path: PathBuf = object.extract()?;
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(PyValueError::new_err("embedded null byte in the path"));
    }
    Ok(Some(path))
}

/// A view of any buffer as plain bytes.
fn byte_buffer(view: &Bound<'_, PyAny>) -> PyResult<PyBuffer<u8>> {
    let cast = view.call_method1(intern!(view.py(), "cast"), ("B",));
    cast.map_err(|_| PyTypeError::new_err("the buffer must be contiguous"))?
        .extract()
}

/// A copy of the bytes of any buffer.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(array) = object.cast::<PyByteArray>() {
        return Ok(array.to_vec());
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a bytes-like object is required, not '{name}'"
        )));
    };
    byte_buffer(&view)?.to_vec(object.py())
}

/// `bytes`, which never change.
struct BytesInput {
    bytes: Py<PyBytes>,
    position: u64,
}

impl Read for BytesInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = Python::attach(|py| {
            let position = usize::try_from(self.position).unwrap_or(usize::MAX);
            let rest = self.bytes.as_bytes(py).get(position..).unwrap_or_default();
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            len
        });
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for BytesInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        seek_position(&mut self.position, to)
    }
}

/// Any other buffer. Others may write to it while we read, so each piece is copied before anyone looks at it.
struct BufferInput {
    buffer: PyBuffer<u8>,
    position: u64,
}

impl Read for BufferInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = Python::attach(|py| copy_from_buffer(py, &self.buffer, self.position, buffer));
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for BufferInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        seek_position(&mut self.position, to)
    }
}

fn seek_position(position: &mut u64, to: SeekFrom) -> io::Result<u64> {
    let SeekFrom::Start(offset) = to else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    *position = offset;
    Ok(offset)
}

/// An object with `read`.
struct ObjectInput {
    object: Py<PyAny>,
    /// Where the object stood when it was passed in: there is file offset 0.
    base: u64,
    is_seekable: bool,
}

impl Read for ObjectInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let answer = self
                .object
                .bind(py)
                .call_method1(intern!(py, "read"), (buffer.len(),))?;
            if answer.is_none() {
                return Err(PyBlockingIOError::new_err(
                    "read() returned None: the source must be in blocking mode",
                ));
            }
            if let Ok(bytes) = answer.cast::<PyBytes>() {
                return copy_answer(bytes.as_bytes(), buffer);
            }
            let bytes = bytes_of(&answer).map_err(|_| {
                let name = answer
                    .get_type()
                    .name()
                    .map_or_else(|_| "?".to_owned(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "read() must return bytes, not {name}; open a file in binary mode ('rb')"
                ))
            })?;
            copy_answer(&bytes, buffer)
        })
        .map_err(io::Error::from)
    }
}

fn copy_answer(answer: &[u8], buffer: &mut [u8]) -> PyResult<usize> {
    if answer.len() > buffer.len() {
        return Err(PyValueError::new_err(format!(
            "read({}) returned {} bytes",
            buffer.len(),
            answer.len()
        )));
    }
    buffer[..answer.len()].copy_from_slice(answer);
    Ok(answer.len())
}

impl Seek for ObjectInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(offset) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Python::attach(|py| {
            if !self.is_seekable {
                return Err(unsupported(py, "the source cannot seek"));
            }
            self.object
                .bind(py)
                .call_method1(intern!(py, "seek"), (self.base + offset,))?;
            Ok(offset)
        })
        .map_err(io::Error::from)
    }
}

/// An object with `write`.
pub(crate) struct ObjectOutput(pub(crate) Py<PyAny>);

impl ObjectOutput {
    fn fileno<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.bind(py).getattr_opt(intern!(py, "fileno"))? {
            Some(fileno) => fileno.call0(),
            None => Err(unsupported(py, "the sink has no file descriptor to sync")),
        }
    }
}

impl Write for ObjectOutput {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let answer = self
                .0
                .bind(py)
                .call_method1(intern!(py, "write"), (PyBytes::new(py, buffer),))?;
            if answer.is_none() {
                return Ok(buffer.len());
            }
            let written = answer.extract()?;
            if written > buffer.len() {
                let message = format!("write() of {} bytes said that it wrote {written}", buffer.len());
                return Err(PyValueError::new_err(message));
            }
            Ok(written)
        })
        .map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| match self.0.bind(py).getattr_opt(intern!(py, "flush"))? {
            Some(flush) => flush.call0().map(drop),
            None => Ok(()),
        })
        .map_err(io::Error::from)
    }
}

impl ObjectOutput {
    /// Fails if what is written here can never be synced.
    pub(crate) fn check_sync(&self) -> io::Result<()> {
        Python::attach(|py| self.fileno(py).map(drop)).map_err(io::Error::from)
    }

    /// Waits until all that was written is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let sync = |py: Python<'_>| py.import("os")?.call_method1("fsync", (self.fileno(py)?,)).map(drop);
        Python::attach(sync).map_err(io::Error::from)
    }
}

/// An `io.UnsupportedOperation`.
pub(crate) fn unsupported(py: Python<'_>, message: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let error = CLASS
        .import(py, "io", "UnsupportedOperation")
        .and_then(|class| class.call1((message,)));
    error.map_or_else(|error| error, PyErr::from_value)
}
