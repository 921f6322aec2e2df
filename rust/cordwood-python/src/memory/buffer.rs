//! Raw memory access for buffers, `bytes`, text and numbers, and calls to the C functions that
//! create objects.

#![expect(unsafe_code, reason = "a Python buffer is raw memory")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cordwood::read::RecordBatch;
use pyo3::PyTypeInfo;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString, PyTuple, PyType};

use super::batch_pool::PooledBatch;

/// Copies bytes from `source`, starting at `position`, to `target`, until either buffer ends.
/// Returns the number of bytes copied.
///
/// As with any mutable buffer in Python, other threads may write to the buffer during the copy. The
/// copy then mixes old and new bytes. Only the copy is ever used, so a checksum always matches the
/// data it was computed from.
pub(crate) fn copy_from_buffer(_py: Python<'_>, source: &PyUntypedBuffer, position: u64, target: &mut [u8]) -> usize {
    let source_len = source.len_bytes();
    let position = usize::try_from(position).unwrap_or(usize::MAX).min(source_len);
    let len = target.len().min(source_len - position);
    if len == 0 || !source.is_c_contiguous() {
        return 0;
    }
    // SAFETY:
    // - The buffer is contiguous and `source_len` bytes long. While `source` holds a view of the
    //   buffer, the exporter must not move or resize it. The read is within bounds, because
    //   `position + len <= source_len`.
    // - `target` is an exclusive reference to at least `len` bytes. Python does not access this
    //   Rust memory, so source and target do not overlap.
    // - `u8` has no invalid values and no alignment requirement.
    // - A raw copy creates no reference to the source, so the source may change. A simultaneous
    //   write by another thread is still a data race, for which neither Rust nor C makes any
    //   promises. There is no portable way to rule out the race, and CPython reads buffers the same
    //   way.
    unsafe {
        std::ptr::copy_nonoverlapping(source.buf_ptr().cast::<u8>().add(position), target.as_mut_ptr(), len);
    }
    len
}

/// The number of bytes to copy at a time. The C library's copy function is slow for copies of more
/// than about 2 KiB (see the core's `copy.rs`).
const PIECE_LEN: usize = 2048;

/// Returns a `bytes` object with a copy of `data`, or `None` with an exception set if there is not
/// enough memory. Copying in pieces halves the time needed to read 100 KiB records.
#[inline]
pub(crate) fn new_bytes<'py>(py: Python<'py>, data: &[u8]) -> Option<Bound<'py, PyBytes>> {
    if data.len() <= PIECE_LEN {
        // SAFETY: there are `data.len()` bytes at the pointer. The result is a new reference to a
        // `bytes` object, or null with an exception set.
        return unsafe {
            let object = ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), data.len() as isize);
            Some(Bound::from_owned_ptr_or_opt(py, object)?.cast_into_unchecked())
        };
    }
    bytes_of_pieces(py, std::iter::once(data))
}

/// Like [`new_bytes`], but returns the exception as an error.
pub(crate) fn try_bytes<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    new_bytes(py, data).ok_or_else(|| PyErr::fetch(py))
}

/// Like [`new_bytes`], but for data in multiple pieces, whose lengths must not change.
pub(crate) fn bytes_of_pieces<'a, 'py>(
    py: Python<'py>,
    pieces: impl Iterator<Item = &'a [u8]> + Clone,
) -> Option<Bound<'py, PyBytes>> {
    let len: usize = pieces.clone().map(<[u8]>::len).sum();
    // SAFETY:
    // - If no bytes are passed, `PyBytes_FromStringAndSize` returns a new object with room for
    //   `len` bytes. Writing to it is allowed because nothing else refers to it yet. If the
    //   function returns null with an exception set, no bytes are written.
    // - Whatever the iterator yields, exactly `len` bytes are written. Each piece is truncated to
    //   the remaining space. Any space after the last piece is filled with zeros.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len as isize);
        let bytes = Bound::from_owned_ptr_or_opt(py, object)?.cast_into_unchecked::<PyBytes>();
        let mut target = ffi::PyBytes_AsString(object).cast::<u8>();
        let mut left = len;
        for piece in pieces.flat_map(|piece| piece.chunks(PIECE_LEN)) {
            let piece_len = piece.len().min(left);
            std::ptr::copy_nonoverlapping(piece.as_ptr(), target, piece_len);
            target = target.add(piece_len);
            left -= piece_len;
        }
        debug_assert_eq!(left, 0);
        std::ptr::write_bytes(target, 0, left);
        Some(bytes)
    }
}

/// Returns a `bytes` object with a copy of a buffer.
pub(crate) fn bytes_of_buffer<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: the thread is attached. The result is a new reference to a `bytes` object, or null
    // with an exception set.
    unsafe {
        let bytes = ffi::PyBytes_FromObject(object.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(object.py(), bytes)?.cast_into_unchecked())
    }
}

/// Returns a `MemoryError`, without allocating memory.
pub(crate) fn no_memory() -> PyErr {
    PyMemoryError::new_err(())
}

/// Returns an empty vector with room for `count` items.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory.
pub(crate) fn vec_for<T>(count: usize) -> PyResult<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| no_memory())?;
    Ok(items)
}

/// Returns text as a `str`.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory; PyO3's own conversion would panic.
pub(crate) fn new_text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: there are `text.len()` bytes of UTF-8 at the pointer. The result is a new reference
    // to a `str`, or null with an exception set.
    unsafe {
        let object = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as isize);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Returns text as an interned `str`.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory.
pub(crate) fn new_interned<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    let mut object = new_text(py, text)?.into_ptr();
    // SAFETY: the thread is attached. The call replaces the reference with one to an equal,
    // interned `str`, or keeps it if there is not enough memory.
    unsafe {
        ffi::PyUnicode_InternInPlace(&mut object);
        Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

/// Returns a number as an `int`.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory; PyO3's own conversion would panic.
pub(crate) fn new_int(py: Python<'_>, number: u64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the thread is attached; the result is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromUnsignedLongLong(number)) }
}

/// Returns a tuple of the given objects.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory; PyO3's own conversion would panic.
pub(crate) fn new_tuple<'py, const N: usize>(
    py: Python<'py>,
    items: [Bound<'py, PyAny>; N],
) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: the thread is attached; the tuple is a new reference, or null with an exception set.
    // Each of its `N` items is set once, to a reference that the tuple takes ownership of.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(N as ffi::Py_ssize_t))?;
        for (index, item) in (0..).zip(items) {
            ffi::PyTuple_SetItem(tuple.as_ptr(), index, item.into_ptr());
        }
        Ok(tuple.cast_into_unchecked())
    }
}

/// Returns a named tuple with the given items. It is an instance of `class`, which has the layout
/// of its base `tuple`.
///
/// The object is created by calling the slot of `tuple` directly. Looking up `tuple.__new__` would
/// check the class again. The class's own `__new__` does the same work, but in Python, so it takes
/// several times as long, and a signal handler may run during the call.
///
/// # Errors
///
/// Returns a `MemoryError` if there is not enough memory, or a `TypeError` if `class` is not the
/// class of a named tuple.
pub(crate) fn new_named_tuple<'py>(
    class: &Bound<'py, PyType>,
    items: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let arguments = new_tuple(py, [items.into_any()])?;
    let tuple = PyTuple::type_object_raw(py);
    // SAFETY:
    // - The thread is attached, and both objects are types. `PyType_GetSlot` returns null or the
    //   slot's value, which has the type given here.
    // - `tuple` creates objects of any class that has the layout of its base `tuple`; the layout is
    //   checked first. The function receives its arguments as a tuple, and no keyword arguments.
    // - The result is a new reference, or null with an exception set.
    unsafe {
        if ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_base) != tuple.cast() {
            return Err(PyTypeError::new_err("the class of a named tuple has another base"));
        }
        let slot = ffi::PyType_GetSlot(tuple, ffi::Py_tp_new);
        let new = std::mem::transmute::<*mut c_void, Option<ffi::newfunc>>(slot);
        let new = new.ok_or_else(|| PyTypeError::new_err("`tuple` makes no objects"))?;
        let made = new(class.as_type_ptr(), arguments.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Memory that Python can read without copying it.
pub(crate) enum Shared {
    /// Bytes not yet written, and the index at which the view starts.
    Unwritten(Arc<Vec<u8>>, usize),
    Batch(Arc<PooledBatch>, BatchBuffer),
}

/// Part of a record batch.
#[derive(Clone, Copy)]
pub(crate) enum BatchBuffer {
    Data,
    Offsets,
    RecordOffsets,
}

impl BatchBuffer {
    /// Returns the address of the buffer and its length in bytes.
    pub(crate) fn place(self, records: &RecordBatch) -> (*const u8, usize) {
        fn of<T>(items: &[T]) -> (*const u8, usize) {
            (items.as_ptr().cast(), size_of_val(items))
        }
        match self {
            BatchBuffer::Data => of(records.data()),
            BatchBuffer::Offsets => of(records.offsets()),
            BatchBuffer::RecordOffsets => of(records.record_offsets()),
        }
    }
}

/// Returns a view of the memory as bytes. The memory does not change, and it outlives the view.
pub(crate) fn view_of_shared(py: Python<'_>, memory: Shared) -> PyResult<Bound<'_, PyMemoryView>> {
    PyMemoryView::from(Bound::new(py, Exporter(memory))?.as_any())
}

/// The memory that a view refers to.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Exporter(Shared);

#[pymethods]
impl Exporter {
    /// # Safety
    ///
    /// Only Python calls this function. Python owns `view`, and keeps this object alive until the
    /// view is released.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, len) = match &slf.get().0 {
            Shared::Unwritten(bytes, start) => (bytes[*start..].as_ptr(), bytes[*start..].len()),
            Shared::Batch(batch, part) => part.place(batch.records()),
        };
        // SAFETY:
        // - The caller promises that Python owns `view`, so it may be filled. The filled view holds
        //   a reference to this object.
        // - The `len` bytes at `start` are initialised, because they belong to a slice of integers.
        // - The bytes are not moved or changed while this object is alive, because it holds a
        //   reference to them. A `Vec` in a shared `Arc` is never changed or taken out, and a
        //   `PooledBatch` doesn't change until it is dropped.
        // - The view is read-only: Python refuses a request for a writable view, so the pointer is
        //   never written through.
        let filled = unsafe {
            let start = start.cast_mut().cast();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len as ffi::Py_ssize_t, 1, flags)
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}
