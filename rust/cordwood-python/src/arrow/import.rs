//! Reads records from memory that other libraries pass through the Arrow C Data Interface.
//!
//! The interface places these requirements on a consumer, and this crate meets them as follows:
//!
//! - *A structure that is taken over is released once*: [`taken`] sets the original's `release` to
//!   null, and the copy is released when it is dropped (`released!` in `c_data.rs`).
//! - *Memory is used only until it is released*: a record borrows from the [`RecordArray`] that
//!   owns its array.
//! - *A stream is used by one thread at a time, and never after it is released*: the [`Column`]
//!   owns the stream.
//!
//! Arrays are checked before they are used: the counts must be valid, each record must be within
//! its buffer, and the offsets must not decrease. The other requirements can't be checked, but the
//! interface makes the producer responsible for them. The pointers must be valid. Each buffer must
//! be long enough for the array's `offset` and `length`, and the data buffer must reach the last
//! offset. The bytes of a buffer must not change before the array is released.

#![expect(unsafe_code, reason = "the interface is one of C")]

use std::ffi::CStr;
use std::mem;
use std::ops::Range;
use std::slice;

use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::c_data::{ARRAY, ArrowArray, ArrowArrayStream, ArrowSchema, Get, SCHEMA, STREAM, Structure};
use crate::interpreter::interned;
use crate::interpreter::python_code::{PythonCode, guarded};
use crate::values::error::{ENOMEM, check_signals};

/// A column of records, stored in one or more arrays.
pub(crate) struct Column {
    layout: Layout,
    arrays: Arrays,
}

enum Arrays {
    One(Option<ArrowArray>),
    Stream(ArrowArrayStream),
}

impl Column {
    /// Returns the column that `object` exports, or `None` if it doesn't export one.
    ///
    /// # Errors
    ///
    /// Returns a `TypeError` if the column doesn't contain bytes or text. Exceptions raised by the
    /// object are returned unchanged.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        if let Some(export) = object.attribute(interned!(py, "__arrow_c_array__")?)? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = export.run(())?.extract()?;
            return Ok(Some(Column {
                layout: Layout::of(&taken(&schema, SCHEMA)?)?,
                arrays: Arrays::One(Some(taken(&array, ARRAY)?)),
            }));
        }
        let Some(export) = object.attribute(interned!(py, "__arrow_c_stream__")?)? else {
            return Ok(None);
        };
        let mut stream: ArrowArrayStream = taken(&export.run(())?, STREAM)?;
        let schema = stream.call(py, stream.get_schema, "get_schema")?;
        Ok(Some(Column {
            layout: Layout::of(&schema)?,
            arrays: Arrays::Stream(stream),
        }))
    }

    /// Returns the next array, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns the stream's own error, or a `ValueError` if an array violates the interface.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordArray>> {
        let array = match &mut self.arrays {
            Arrays::One(array) => array.take(),
            // A stream returns a released array at its end.
            Arrays::Stream(stream) => {
                Some(stream.call(py, stream.get_next, "get_next")?).filter(|array| !array.is_released())
            }
        };
        array.map(|array| RecordArray::new(array, self.layout)).transpose()
    }
}

/// How an array stores its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The records are stored back to back in one buffer, with 32-bit offsets.
    Offsets32,
    /// The records are stored back to back in one buffer, with 64-bit offsets.
    Offsets64,
    /// Each record has a 16-byte view, which contains the record itself if it is short. Longer
    /// records are stored in one of several buffers.
    Views,
}

impl Layout {
    fn of(schema: &ArrowSchema) -> PyResult<Self> {
        if schema.format.is_null() {
            return Err(malformed("its schema has no format"));
        }
        // SAFETY: a non-null format is a NUL-terminated string.
        match unsafe { CStr::from_ptr(schema.format) }.to_bytes() {
            _ if !schema.dictionary.is_null() => Err(PyTypeError::new_err(
                "records must be a column of bytes or text, not a dictionary: decode it first",
            )),
            b"z" | b"u" => Ok(Layout::Offsets32),
            b"Z" | b"U" => Ok(Layout::Offsets64),
            b"vz" | b"vu" => Ok(Layout::Views),
            b"+s" => Err(PyTypeError::new_err(
                "records must be a column, not a table: pass one of its columns, of bytes or text",
            )),
            format => Err(PyTypeError::new_err(format!(
                "records must be a column of bytes or text, not of the Arrow format {:?}",
                String::from_utf8_lossy(format)
            ))),
        }
    }
}

/// An array of records.
pub(crate) struct RecordArray {
    array: ArrowArray,
    layout: Layout,
    /// The indices of this array's records in the buffers.
    range: Range<usize>,
    /// The length of the data buffer. With views, each data buffer has its own length, which is
    /// read when it is needed.
    data_len: usize,
}

impl RecordArray {
    fn new(array: ArrowArray, layout: Layout) -> PyResult<Self> {
        let count = |count: i64| usize::try_from(count).ok();
        let (start, len) = count(array.offset).zip(count(array.length)).unwrap_or((1, usize::MAX));
        // Memory cannot hold this many offsets or views. A view takes 16 bytes, and an offset takes
        // less. So none of the addresses computed below can overflow.
        let end = start.checked_add(len).filter(|&end| end < isize::MAX as usize / 16);
        // The buffers are the validity bits, the offsets and the data. In the layout `Views`, they
        // are the validity bits, the views, any number of data buffers, and the lengths of the data
        // buffers.
        let Some(end) = end.filter(|_| array.n_buffers >= 3 && !array.buffers.is_null()) else {
            return Err(malformed("an array states impossible counts"));
        };
        let mut checked = RecordArray {
            array,
            layout,
            range: start..end,
            data_len: 0,
        };
        if checked.len() > 0 {
            if checked.buffer(1).is_null() || (checked.array.null_count > 0 && checked.buffer(0).is_null()) {
                return Err(malformed("an array lacks a buffer"));
            }
            if layout != Layout::Views {
                let data_len = checked.offset(end);
                checked.data_len = data_len.ok_or_else(|| malformed("the last offset of an array is negative"))?;
            }
        }
        Ok(checked)
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns at most `count_max` records from index `start`. Stops before a fault, or after the
    /// record that brings the total length to `len_max` bytes or more.
    pub(crate) fn records(&self, start: usize, count_max: usize, len_max: usize) -> (Vec<&[u8]>, Option<Fault>) {
        let mut records = Vec::with_capacity(count_max.min(self.len() - start));
        let mut len = 0;
        for at in self.range.clone().skip(start).take(count_max) {
            match self.record(at) {
                Ok(record) => {
                    records.push(record);
                    len += record.len();
                }
                Err(fault) => return (records, Some(fault)),
            }
            if len >= len_max {
                break;
            }
        }
        (records, None)
    }

    /// Returns the record at this buffer index, which must be in the array's range.
    fn record(&self, at: usize) -> Result<&[u8], Fault> {
        if self.is_null(at) {
            return Err("is null");
        }
        let record = match self.layout {
            Layout::Views => self.viewed(at),
            _ => self.between_offsets(at),
        };
        record.ok_or("is not within its buffer")
    }

    fn is_null(&self, at: usize) -> bool {
        let validity = self.buffer(0);
        // SAFETY: the buffer has a bit for each value before the end of the range, and the range
        // contains `at`.
        self.array.null_count != 0 && !validity.is_null() && unsafe { *validity.add(at / 8) } >> (at % 8) & 1 == 0
    }

    /// Returns the offset at this index, or `None` if the offset is negative. The index must not
    /// exceed the end of the range.
    fn offset(&self, at: usize) -> Option<usize> {
        let offsets = self.buffer(1);
        // SAFETY: the buffer has one offset for each value before the end of the range, plus one
        // more. The offset isn't necessarily aligned.
        unsafe {
            match self.layout {
                Layout::Offsets32 => offsets.cast::<i32>().add(at).read_unaligned().try_into().ok(),
                _ => offsets.cast::<i64>().add(at).read_unaligned().try_into().ok(),
            }
        }
    }

    /// Returns the record between the offset at this index and the next offset. Returns `None` if
    /// the second offset is smaller or the record is not within the data.
    fn between_offsets(&self, at: usize) -> Option<&[u8]> {
        let (start, end) = (self.offset(at)?, self.offset(at + 1)?);
        let len = end.checked_sub(start).filter(|_| end <= self.data_len)?;
        self.part(2, start, len)
    }

    /// Returns the record whose view is at this index. Returns `None` if the view refers to bytes
    /// outside the data buffers.
    fn viewed(&self, at: usize) -> Option<&[u8]> {
        // SAFETY: the buffer has a 16-byte view for each value before the end of the range.
        let view = unsafe { &*self.buffer(1).add(at * 16).cast::<[u8; 16]>() };
        let number =
            |at: usize| usize::try_from(i32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]])).ok();
        let len = number(0)?;
        if len <= 12 {
            return Some(&view[4..4 + len]);
        }
        // The last buffer contains the lengths of the data buffers.
        let lens = usize::try_from(self.array.n_buffers).ok()? - 1;
        let (index, start) = (number(8)?, number(12)?);
        let lens_buffer = self.buffer(lens).cast::<i64>();
        if index >= lens - 2 || lens_buffer.is_null() {
            return None;
        }
        // SAFETY: there is a length for each data buffer.
        let buffer_len = usize::try_from(unsafe { lens_buffer.add(index).read_unaligned() }).ok()?;
        if start.checked_add(len)? > buffer_len {
            return None;
        }
        self.part(2 + index, start, len)
    }

    /// Returns bytes from a data buffer, or `None` if there is no such buffer. The caller must have
    /// checked that the bytes are within the buffer.
    fn part(&self, buffer: usize, start: usize, len: usize) -> Option<&[u8]> {
        let data = self.buffer(buffer);
        if len == 0 {
            return Some(&[]);
        }
        // SAFETY: the caller has checked that `start + len` is at most the length of the buffer.
        // The buffer's bytes don't change until the array is released, which can't happen while the
        // array is borrowed.
        (!data.is_null()).then(|| unsafe { slice::from_raw_parts(data.add(start), len) })
    }

    /// Returns the address of a buffer, or null if there is none. `index` must be less than the
    /// array's number of buffers.
    fn buffer(&self, index: usize) -> *const u8 {
        // SAFETY: `n_buffers` is the number of pointers, and is greater than `index`.
        unsafe { *self.array.buffers.add(index) }.cast()
    }
}

/// The reason a record cannot be read, phrased to complete a sentence about the record.
pub(crate) type Fault = &'static str;

#[cold]
fn malformed(fault: &str) -> PyErr {
    PyValueError::new_err(format!("the column is not valid Arrow: {fault}"))
}

impl ArrowArrayStream {
    /// Calls a stream callback, and returns the structure it writes.
    fn call<T: Structure + Send>(&mut self, py: Python<'_>, get: Option<Get<T>>, name: &str) -> PyResult<T> {
        let get = get.ok_or_else(|| malformed(&format!("a stream has no function {name}")))?;
        let mut structure = T::released();
        // SAFETY: the stream has not been released, and no other thread is using it; `structure`
        // may be written to, and doesn't need to be released.
        let errno = py.detach(|| guarded(|| unsafe { get(self, &mut structure) }));
        if errno == 0 {
            return Ok(structure);
        }
        // The producer may have stopped because of Ctrl-C.
        check_signals(py)?;
        // SAFETY: the stream has not been released, and the last call on it failed.
        let text = self
            .get_last_error
            .map(|get| unsafe { get(self) })
            .filter(|text| !text.is_null());
        // SAFETY: the text ends with a zero byte, and is valid until the next call.
        let text = text.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        Err(match errno {
            ENOMEM => PyMemoryError::new_err(()),
            _ => PyOSError::new_err((errno, text.unwrap_or_else(|| "the stream of records failed".to_owned()))),
        })
    }
}

/// Moves a structure out of its capsule, which must have this name.
fn taken<T: Structure>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<T> {
    let structure = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    // SAFETY: by the protocol, a capsule with this name contains this structure, and `capsule`
    // keeps it alive. No code from another library runs while the structure is borrowed.
    let taken = mem::replace(unsafe { structure.cast::<T>().as_mut() }, T::released());
    if taken.is_released() {
        return Err(malformed("its capsule has been used before"));
    }
    Ok(taken)
}
