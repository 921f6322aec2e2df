//! Memory of Python's that we look at, and of ours that Python looks at. The only file of this crate with `unsafe`.

#![expect(unsafe_code, reason = "a Python buffer is raw memory")]

use std::ffi::c_int;

use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::pack::Pack;

/// Copies the bytes of `source` from `position` on to `target`, as many as there are and fit, and returns how many.
///
/// Other threads may write to the buffer meanwhile, as they may with every use of a mutable buffer in Python; then the copy holds
/// some of their bytes and some of the old. Nothing but the copy is ever looked at, so a checksum and the data it was computed
/// from cannot differ.
pub(crate) fn copy_from_buffer(_py: Python<'_>, source: &PyBuffer<u8>, position: u64, target: &mut [u8]) -> usize {
    let source_len = source.len_bytes();
    let position = usize::try_from(position).unwrap_or(usize::MAX).min(source_len);
    let len = target.len().min(source_len - position);
    if len == 0 || !source.is_c_contiguous() {
        return 0;
    }
    // SAFETY:
    // - The buffer is contiguous and `source_len` bytes long, and stays so while `source` holds its view (the exporter must not move or
    //   resize it meanwhile); `position + len <= source_len`, so all that is read lies in it.
    // - `target` is exclusively ours and `len` bytes of it exist; it is Rust memory that Python does not know of, so the two do not overlap.
    // - `u8` has no invalid values and no alignment.
    // - A raw copy makes no reference to the source, so no promise is made that it does not change.
    unsafe {
        std::ptr::copy_nonoverlapping(source.buf_ptr().cast::<u8>().add(position), target.as_mut_ptr(), len);
    }
    len
}

/// A `bytes` object with a copy of `data`, which is made in pieces: the C library's own copy is slow for more than about 2 KiB (see the
/// core's `copy.rs`). Records of 100 KiB are read in half the time.
#[inline]
pub(crate) fn new_bytes<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    const PIECE_LEN: usize = 2048;
    if data.len() <= PIECE_LEN {
        return PyBytes::new(py, data);
    }
    // SAFETY:
    // - `PyBytes_FromStringAndSize` without bytes gives a new object with room for `data.len()` of them, to which nobody else has a reference
    //   yet, so it may be written to; or null and an exception, which `from_owned_ptr` turns into a panic, as `PyBytes::new` does.
    // - All of the room is written, by pieces that end at `data.len()`.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), data.len() as isize);
        let bytes = Bound::from_owned_ptr(py, object).cast_into_unchecked::<PyBytes>();
        let mut target = ffi::PyBytes_AsString(object).cast::<u8>();
        for piece in data.chunks(PIECE_LEN) {
            std::ptr::copy_nonoverlapping(piece.as_ptr(), target, piece.len());
            target = target.add(piece.len());
        }
        bytes
    }
}

/// A part of a pack as bytes: what a `memoryview` of it shows.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct Column {
    pub(crate) pack: Py<Pack>,
    pub(crate) part: Part,
}

#[derive(Clone, Copy)]
pub(crate) enum Part {
    Data,
    Offsets,
    RecordOffsets,
}

#[pymethods]
impl Column {
    /// # Safety
    ///
    /// Python calls it with a `view` that it owns, and keeps this object alive until the view is released.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Column { pack, part } = slf.get();
        let pack = pack.get().records();
        let (begin, len) = match part {
            Part::Data => (pack.data().as_ptr(), pack.data().len()),
            Part::Offsets => (pack.offsets().as_ptr().cast(), size_of_val(pack.offsets())),
            Part::RecordOffsets => (
                pack.record_offsets().as_ptr().cast(),
                size_of_val(pack.record_offsets()),
            ),
        };
        // SAFETY:
        // - `view` is Python's to fill, as the caller promises.
        // - `len` bytes stand at `begin`, all of them set: those of a slice of integers.
        // - They stay there, unchanged, as long as this object: `Pack` is frozen and changes nothing before it is dropped, and this object holds it.
        // - The view is read-only: Python refuses whoever asks for a writable one, so the pointer is never written through.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), begin.cast_mut().cast(), len as isize, 1, flags) };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}
