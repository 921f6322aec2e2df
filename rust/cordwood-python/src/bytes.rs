//! The bytes of Python buffers. The only file of this crate with `unsafe`.

#![expect(unsafe_code, reason = "a Python buffer is raw memory")]

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

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
