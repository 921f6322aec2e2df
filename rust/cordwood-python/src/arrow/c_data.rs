//! The Arrow C Data Interface and its capsules, which pass batches to other libraries without
//! copying them. The rest of the crate describes arrays with the safe [`Array`] and [`Field`].
//! Arrays from other libraries are imported in `import.rs`.
//!
//! The interface places these requirements on a producer, and this crate meets them as follows:
//!
//! - *Memory stays where it is, unchanged, until it is released*: an exported array owns the
//!   [`Memory`] of its buffers. Moving a [`Memory`] value doesn't move the buffer, and the bytes
//!   never change.
//! - *The content matches the schema*: an [`Array`] has the buffers and children of its [`Field`],
//!   in order, each as long as the type requires. Each child of a structure is as long as the
//!   structure, and a list has as many items as its last offset indicates. An array and its field
//!   are created by the same code, which ensures this. Two files handle all the types:
//!   `columns.rs`, and `table/column.rs` in `cordwood-payload`.
//! - *`release` is called once, by any thread, with or without the interpreter*: [`Memory`] can be
//!   sent between threads and dropped without the interpreter. `release` sets its own field to
//!   null.
//! - *A consumer may move a structure out*, even a child. The consumer then sets the original's
//!   `release` to null. Each structure's own `private_data` therefore owns everything that the
//!   structure refers to. When a structure is dropped, it is released only if its `release` isn't
//!   null.
//! - *Callbacks do not unwind*: every callback that calls other code in the crate catches panics.

#![expect(unsafe_code, reason = "the interface is one of C")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::BatchBuffer;
use crate::values::error::EIO;

pub(super) const ARRAY: &CStr = c"arrow_array";
pub(super) const SCHEMA: &CStr = c"arrow_schema";
pub(super) const STREAM: &CStr = c"arrow_array_stream";

/// A column's name and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Cow<'static, CStr>,
    pub(crate) data_type: DataType,
    pub(crate) is_nullable: bool,
    /// The item field of a list, or the fields of a structure.
    pub(crate) children: Vec<Field>,
}

impl Field {
    /// Returns a field without a name, for a table or a dictionary's values.
    fn unnamed(data_type: DataType, children: Vec<Field>) -> Self {
        Field {
            name: c"".into(),
            data_type,
            is_nullable: false,
            children,
        }
    }
}

/// A column's type, as a format string of the C Data Interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataType(&'static CStr);

impl DataType {
    pub(crate) const BOOL: Self = DataType(c"b");
    pub(crate) const INT64: Self = DataType(c"l");
    pub(crate) const UINT64: Self = DataType(c"L");
    pub(crate) const FLOAT64: Self = DataType(c"g");
    /// UTF-8 text, with 32-bit offsets.
    pub(crate) const TEXT: Self = DataType(c"u");
    /// A 64-bit time in microseconds since 1970, in UTC.
    pub(crate) const TIME: Self = DataType(c"tsu:UTC");
    /// Bytes, with 32-bit offsets.
    pub(crate) const BINARY: Self = DataType(c"z");
    pub(crate) const LARGE_BINARY: Self = DataType(c"Z");
    /// Text with few distinct values. Each value is stored once, in a `utf8` dictionary with 32-bit
    /// indices.
    pub(crate) const DICTIONARY: Self = DataType(c"i");
    /// A list, with 32-bit offsets.
    pub(crate) const LIST: Self = DataType(c"+l");
    pub(crate) const STRUCT: Self = DataType(c"+s");
}

/// Memory that an array refers to. Its address doesn't change when this value is moved.
pub(crate) enum Memory {
    Batch(Arc<PooledBatch>, BatchBuffer),
    Bytes(Vec<u8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    U64(Vec<u64>),
}

impl Memory {
    fn address(&self) -> *const c_void {
        match self {
            Memory::Batch(batch, part) => part.place(batch.records()).0.cast(),
            Memory::Bytes(bytes) => bytes.as_ptr().cast(),
            Memory::I32(numbers) => numbers.as_ptr().cast(),
            Memory::I64(numbers) => numbers.as_ptr().cast(),
            Memory::F64(numbers) => numbers.as_ptr().cast(),
            Memory::U64(numbers) => numbers.as_ptr().cast(),
        }
    }
}

/// An array to export. Its buffers must match the layout of its type and hold `len` values.
pub(crate) struct Array {
    pub(crate) len: usize,
    pub(crate) null_count: usize,
    /// One bit per value, which is clear if the value is null. `None` if no value is null.
    pub(crate) validity: Option<Memory>,
    /// The other buffers.
    pub(crate) buffers: Vec<Memory>,
    pub(crate) children: Vec<Array>,
    pub(crate) dictionary: Option<Box<Array>>,
}

impl Array {
    /// Returns an array without nulls, children or a dictionary.
    pub(crate) fn plain(len: usize, buffers: Vec<Memory>) -> Self {
        Array {
            len,
            null_count: 0,
            validity: None,
            buffers,
            children: Vec::new(),
            dictionary: None,
        }
    }

    /// Returns a table of `len` rows with these columns.
    pub(crate) fn table(len: usize, children: Vec<Array>) -> Self {
        Array {
            children,
            ..Array::plain(len, Vec::new())
        }
    }

    fn export(self) -> ArrowArray {
        let validity = self.validity.as_ref().map_or(ptr::null(), Memory::address);
        let addresses = [validity].into_iter().chain(self.buffers.iter().map(Memory::address));
        let memory = KeptArray {
            addresses: addresses.collect(),
            _memory: (self.validity, self.buffers),
        };
        let children = self.children.into_iter().map(Array::export);
        let dictionary = self.dictionary.map(|dictionary| dictionary.export());
        let mut kept = Kept::new(children, dictionary, memory);
        ArrowArray {
            length: self.len as i64,
            null_count: self.null_count as i64,
            offset: 0,
            n_buffers: kept.memory.addresses.len() as i64,
            n_children: kept.children.len() as i64,
            buffers: kept.memory.addresses.as_mut_ptr(),
            children: kept.children.as_mut_ptr(),
            dictionary: kept.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(kept).cast(),
        }
    }
}

/// The memory that an exported structure owns. `dictionary` is null if the structure has no
/// dictionary.
struct Kept<T, M> {
    children: Vec<*mut T>,
    dictionary: *mut T,
    memory: M,
}

impl<T, M> Kept<T, M> {
    fn new(children: impl Iterator<Item = T>, dictionary: Option<T>, memory: M) -> Box<Self> {
        let boxed = |value| Box::into_raw(Box::new(value));
        Box::new(Kept {
            children: children.map(boxed).collect(),
            dictionary: dictionary.map_or(ptr::null_mut(), boxed),
            memory,
        })
    }
}

impl<T, M> Drop for Kept<T, M> {
    fn drop(&mut self) {
        let dictionary = (!self.dictionary.is_null()).then_some(self.dictionary);
        for structure in self.children.drain(..).chain(dictionary) {
            // SAFETY: each structure is a box from `new`, and is freed only here. A structure that
            // was moved out has a null `release`, so dropping it has no effect.
            drop(unsafe { Box::from_raw(structure) });
        }
    }
}

/// A structure of the C Data Interface.
pub(super) trait Structure {
    /// Returns a released structure, which owns no memory. A stream returns a released array at its
    /// end.
    fn released() -> Self;

    fn is_released(&self) -> bool;
}

/// Defines a structure's `release` callback, and a `Drop` implementation that calls it.
macro_rules! released {
    ($structure:ty, $release:ident, $kept:ty) => {
        /// # Safety
        ///
        /// The structure was created by this module. It may have been moved, but it has not been
        /// released, and no other code is using it.
        unsafe extern "C" fn $release(structure: *mut $structure) {
            // SAFETY: upheld by the caller. `private_data` was set to a box of this type when the
            // structure was created. The box is taken only once, because `release` is null
            // afterwards.
            let kept = unsafe {
                (*structure).release = None;
                Box::from_raw((*structure).private_data.cast::<$kept>())
            };
            // A panic must not unwind out of this function.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(kept)));
        }

        impl Structure for $structure {
            fn released() -> Self {
                // SAFETY: the structure's fields are numbers, raw pointers and optional callbacks.
                // All of these may be zero.
                unsafe { mem::zeroed() }
            }

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $structure {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the structure has not been released or moved out; otherwise,
                    // `release` would be null.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the structure refers to static text and to memory that it owns. Neither is bound
        // to a thread, so both can be sent to other threads. The interface allows any thread to
        // release the structure.
        unsafe impl Send for $structure {}
    };
}

released!(ArrowArray, release_array, Kept<ArrowArray, KeptArray>);
released!(ArrowSchema, release_schema, Kept<ArrowSchema, Cow<'static, CStr>>);
released!(ArrowArrayStream, release_stream, KeptStream);

/// The buffers that an exported array owns.
struct KeptArray {
    addresses: Vec<*const c_void>,
    _memory: (Option<Memory>, Vec<Memory>),
}

/// `struct ArrowArray` of the C Data Interface.
#[repr(C)]
pub(super) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    n_children: i64,
    pub(super) buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowSchema` of the C Data Interface.
#[repr(C)]
pub(super) struct ArrowSchema {
    pub(super) format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

const NULLABLE: i64 = 2;

impl ArrowSchema {
    /// Returns the schema of a table.
    fn of(fields: &[Field]) -> Self {
        ArrowSchema::of_field(&Field::unnamed(DataType::STRUCT, fields.to_vec()))
    }

    fn of_field(field: &Field) -> Self {
        let is_dictionary = field.data_type == DataType::DICTIONARY;
        let values = is_dictionary.then(|| ArrowSchema::of_field(&Field::unnamed(DataType::TEXT, Vec::new())));
        let children = field.children.iter().map(ArrowSchema::of_field);
        let mut kept = Kept::new(children, values, field.name.clone());
        ArrowSchema {
            format: field.data_type.0.as_ptr(),
            // Moving the box doesn't change the text's address, because the text is static or on
            // the heap.
            name: kept.memory.as_ptr(),
            metadata: ptr::null(),
            flags: if field.is_nullable { NULLABLE } else { 0 },
            n_children: kept.children.len() as i64,
            children: kept.children.as_mut_ptr(),
            dictionary: kept.dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(kept).cast(),
        }
    }
}

/// Batches to export as a stream, in order. Any thread may call `next`, with or without the
/// interpreter, but only one thread at a time.
pub(crate) trait Batches: Send {
    fn fields(&self) -> Vec<Field>;

    /// Returns the next batch as a table with the stream's fields, or `None` at the end. `next` is
    /// not called again after a failure.
    fn next(&mut self) -> Result<Option<Array>, Failure>;
}

/// An error to report to the consumer of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// A number from `errno.h` that the consumer maps to an exception class.
    pub(crate) errno: c_int,
    pub(crate) message: String,
}

/// A stream callback that writes a structure to the given pointer.
pub(super) type Get<T> = unsafe extern "C-unwind" fn(*mut ArrowArrayStream, *mut T) -> c_int;

/// `struct ArrowArrayStream` of the C Data Interface.
#[repr(C)]
pub(super) struct ArrowArrayStream {
    pub(super) get_schema: Option<Get<ArrowSchema>>,
    pub(super) get_next: Option<Get<ArrowArray>>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

struct KeptStream {
    batches: Box<dyn Batches>,
    /// The error that `next` returned. Every later call also fails with this error.
    failed: Option<Failure>,
    last_error: Option<CString>,
}

impl KeptStream {
    /// Writes the result of `call` to `out` and returns 0. If `call` fails or panics, the error is
    /// stored for `get_last_error` and its number is returned.
    ///
    /// # Safety
    ///
    /// `out` may be written to, and its old value doesn't need to be dropped.
    unsafe fn call<T>(&mut self, out: *mut T, call: impl FnOnce(&mut Self) -> Result<T, Failure>) -> c_int {
        self.last_error = None;
        let called = catch_unwind(AssertUnwindSafe(|| call(self)));
        let failure = match called {
            Ok(Ok(value)) => {
                // SAFETY: upheld by the caller.
                unsafe { out.write(value) };
                return 0;
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure {
                errno: EIO,
                message: "this is a bug in cordwood: please report it".to_owned(),
            },
        };
        // A path can contain any character except NUL.
        self.last_error = CString::new(failure.message.replace('\0', "")).ok(); // phrase-ok: for C
        failure.errno
    }

    fn next(&mut self) -> Result<ArrowArray, Failure> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let next = self.batches.next();
        self.failed = next.as_ref().err().cloned();
        Ok(next?.map_or_else(ArrowArray::released, Array::export))
    }
}

impl ArrowArrayStream {
    fn new(batches: Box<dyn Batches>) -> Self {
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(KeptStream {
                batches,
                failed: None,
                last_error: None,
            }))
            .cast(),
        }
    }
}

/// # Safety
///
/// `stream` was created by [`ArrowArrayStream::new`] and may have been moved since, but it has not
/// been released and no other thread is using it. `out` may be written to, and its old value
/// doesn't need to be dropped.
unsafe extern "C-unwind" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: upheld by the caller; `new` has set `private_data`.
    unsafe {
        let kept = &mut *(*stream).private_data.cast::<KeptStream>();
        kept.call(out, |kept| Ok(ArrowSchema::of(&kept.batches.fields())))
    }
}

/// # Safety
///
/// As for [`get_schema`].
unsafe extern "C-unwind" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`.
    unsafe {
        let kept = &mut *(*stream).private_data.cast::<KeptStream>();
        kept.call(out, KeptStream::next)
    }
}

/// # Safety
///
/// `stream` meets the conditions of [`get_schema`]. The returned text is valid until the next call.
unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: upheld by the caller; `new` has set `private_data`.
    let kept = unsafe { &*(*stream).private_data.cast::<KeptStream>() };
    kept.last_error.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// Returns a schema's capsule.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, fields: &[Field]) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowSchema::of(fields), SCHEMA)
}

/// Returns a table's capsules: one for its schema and one for its contents.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    fields: &[Field],
    table: Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    Ok((
        schema_capsule(py, fields)?,
        PyCapsule::new_with_value(py, table.export(), ARRAY)?,
    ))
}

/// Returns a stream's capsule.
pub(crate) fn stream_capsule(py: Python<'_>, batches: impl Batches + 'static) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArrayStream::new(Box::new(batches)), STREAM)
}

/// Checks at compile time that the exported structures are `Send`, since any thread may release
/// them.
const fn is_send<T: Send>() {}
const _: () = is_send::<Memory>();
