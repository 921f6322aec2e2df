//! Fast paths for the functions that are called once per record: `Writer.append`, and `__next__` of
//! the iterators that `iter(reader)`, `Reader.records` and `iter(batch)` return.
//!
//! PyO3's functions parse the arguments, count the nested calls of the thread and pass the result
//! through memory. For short records, this takes a considerable part of the time. The module
//! therefore exports a final subclass of each of these PyO3 classes, created with
//! `PyType_FromSpecWithBases`. The subclass adds one function, which handles calls that neither
//! wait nor raise. For all other calls, it calls the function of the base class. The function uses
//! only the stable ABI.
//!
//! The subclass has the name, the documentation, the constructor and the attributes of its base
//! class. Its objects are created by calling the class, as in Python. `Py::new` would create an
//! object of the base class.

#![expect(
    unsafe_code,
    reason = "a class with functions that Python calls directly is made with C functions"
)]

use std::any::Any;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::exceptions::PySystemError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyType};
use pyo3::{Borrowed, PyClass, PyTypeInfo, ffi};

use crate::interpreter::interned;
use crate::interpreter::python_code::PythonCode;

/// Caches the final subclass of a class. Each class keeps its own cache in a static.
pub(crate) type FastClass = PyOnceLock<Py<PyType>>;

/// A class of iterators that have a fast `__next__`.
pub(crate) trait FastNext: PyClass<Frozen = True> + Sync {
    /// Returns the final subclass of this class.
    fn fast_class() -> &'static FastClass;

    /// Returns the next item, if that needs no waiting and raises no exception. If an exception
    /// would be raised, `__next__` tries again and raises it.
    fn next_now(&self, py: Python<'_>) -> Option<Py<PyAny>>;
}

/// A class of writers that have a fast `append`.
pub(crate) trait FastAppend: PyClass<Frozen = True> + Sync {
    /// Returns the final subclass of this class.
    fn fast_class() -> &'static FastClass;

    /// Appends a record and returns its offset, if that needs no waiting and raises no exception.
    /// Otherwise, appends nothing.
    fn append_now(&self, record: &[u8]) -> Option<u64>;

    /// Appends a record. This is the regular method of the class.
    fn append<'py>(&self, record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;
}

/// Returns the final subclass of `T`. All objects of `T` belong to it.
pub(crate) fn class_with_next<T: FastNext>(py: Python<'_>) -> &Bound<'_, PyType> {
    class::<T>(py, T::fast_class(), |_| {
        Ok(ffi::PyType_Slot {
            slot: ffi::Py_tp_iternext,
            pfunc: fast_next::<T> as *mut c_void,
        })
    })
}

/// Returns the final subclass of `T`. All objects of `T` belong to it.
pub(crate) fn class_with_append<T: FastAppend>(py: Python<'_>) -> &Bound<'_, PyType> {
    class::<T>(py, T::fast_class(), |base| {
        let append = base.getattr("append")?;
        let signature: String = append.getattr("__text_signature__")?.extract()?;
        let doc: Option<String> = append.getattr("__doc__")?.extract()?;
        let doc = CString::new(format!("append{signature}\n--\n\n{}", doc.unwrap_or_default()))?;
        // Python keeps pointers to the method table and its text for as long as the class exists,
        // which is forever.
        let methods = Box::leak(Box::new([
            ffi::PyMethodDef {
                ml_name: c"append".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer {
                    PyCFunctionFastWithKeywords: fast_append::<T>,
                },
                ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
                ml_doc: doc.into_raw(),
            },
            ffi::PyMethodDef::zeroed(),
        ]));
        Ok(ffi::PyType_Slot {
            slot: ffi::Py_tp_methods,
            pfunc: methods.as_mut_ptr().cast(),
        })
    })
}

/// Returns the final subclass of `T` with the slot that `fast` creates. The subclass is created
/// once per process and stays the same if the module is imported again. If it cannot be created,
/// returns `T` itself. All calls then still work, but more slowly, and
/// `tests/api/test_fast_calls.py` fails.
fn class<'py, T: PyTypeInfo>(
    py: Python<'py>,
    class: &'static FastClass,
    fast: impl FnOnce(&Bound<'py, PyType>) -> PyResult<ffi::PyType_Slot>,
) -> &'py Bound<'py, PyType> {
    let base = py.get_type::<T>();
    let class = class.get_or_init(py, || {
        let class = fast(&base).and_then(|slot| final_class(&base, slot));
        class.unwrap_or(base).unbind()
    });
    class.bind(py)
}

/// Creates a final subclass with the name, the documentation and the attributes of `base`, and with
/// one additional slot.
fn final_class<'py>(base: &Bound<'py, PyType>, fast: ffi::PyType_Slot) -> PyResult<Bound<'py, PyType>> {
    let name = CString::new(base.fully_qualified_name()?.to_str()?)?;
    let inherited = |slot: c_int| ffi::PyType_Slot {
        slot,
        // SAFETY: each of these slots can be queried on any class; the result fits the same slot.
        pfunc: unsafe { ffi::PyType_GetSlot(base.as_type_ptr(), slot) },
    };
    let mut slots = [
        inherited(ffi::Py_tp_doc),
        inherited(ffi::Py_tp_new),
        // The function of the base class frees an object of any subclass, and releases its class.
        // Python's own function for subclasses calls that function too, but calls `__del__` first.
        // Only the garbage collector should call `__del__`.
        inherited(ffi::Py_tp_dealloc),
        fast,
        ffi::PyType_Slot {
            slot: 0,
            pfunc: null_mut(),
        },
    ];
    if slots[..4].iter().any(|slot| slot.pfunc.is_null()) {
        return Err(PySystemError::new_err(
            "the class has no constructor, or no documentation",
        ));
    }
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        // Zero means the same size as the base class.
        basicsize: 0,
        itemsize: 0,
        // Without `Py_TPFLAGS_BASETYPE`, the class is final. It inherits the functions that the
        // garbage collector calls.
        flags: ffi::Py_TPFLAGS_DEFAULT as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY:
    // - `spec` and `slots` are complete, end with a zero slot, and live as long as the call. From
    //   Python 3.11 on the name and the documentation are copied. A table of methods, which is not,
    //   is never freed.
    // - `base` is a class that allows subclasses.
    // - The result is a new reference to a class, or null with an exception set.
    let class = unsafe {
        let class = ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr());
        Bound::from_owned_ptr_or_err(base.py(), class)?.cast_into_unchecked::<PyType>()
    };
    // The attributes are copied so that `vars`, `help` and other introspection show the same as for
    // the base class.
    let own = class.getattr("__dict__")?;
    for item in base
        .getattr("__dict__")?
        .run_method(interned!(base.py(), "items")?, ())?
        .items()?
    {
        let (name, value): (Bound<'py, PyString>, Bound<'py, PyAny>) = item?.extract()?;
        if !own.contains(&name)? {
            class.setattr(name, value)?;
        }
    }
    Ok(class)
}

/// # Safety
///
/// Python calls it, attached, with an object of the final class: Python checks the class of the
/// object first.
unsafe extern "C" fn fast_next<T: FastNext>(iterator: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let fast = || {
        // SAFETY: As the caller promises; the object lives as long as the call, and is a `T`, whose
        // subclass has the same layout.
        let iterator = unsafe { Borrowed::from_ptr(Python::assume_attached(), iterator).cast_unchecked::<T>() };
        iterator.get().next_now(iterator.py()).map(Py::into_ptr)
    };
    match catch_unwind(AssertUnwindSafe(fast)) {
        Ok(Some(item)) => item,
        // SAFETY: the same promises, passed on: the object is also an object of the base.
        // `PyType_GetSlot` returns null, or the function of this slot, which has this type.
        Ok(None) => unsafe {
            ffi::PyErr_Clear();
            let base = T::type_object_raw(Python::assume_attached());
            let slot = ffi::PyType_GetSlot(base, ffi::Py_tp_iternext);
            let next = std::mem::transmute::<*mut c_void, Option<ffi::iternextfunc>>(slot);
            next.map_or(null_mut(), |next| next(iterator))
        },
        Err(panic) => raised(panic),
    }
}

/// # Safety
///
/// Python calls it, attached, with an object of the final class, which the method descriptor
/// guarantees, with `arg_count` objects at `args` and, if there are keywords, one more after them
/// for each name in the tuple `names`.
unsafe extern "C" fn fast_append<T: FastAppend>(
    writer: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    arg_count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let fast = || {
        if arg_count != 1 || !names.is_null() {
            return None;
        }
        // SAFETY: As the caller promises; the objects live as long as the call, and the first is a
        // `T`, whose subclass has the same layout.
        let (writer, record) = unsafe {
            let py = Python::assume_attached();
            (
                Borrowed::from_ptr(py, writer).cast_unchecked::<T>(),
                Borrowed::from_ptr(py, *args),
            )
        };
        if let Ok(bytes) = record.cast_exact::<PyBytes>()
            && let Some(offset) = writer.get().append_now(bytes.as_bytes())
        {
            // SAFETY: the thread is attached. If there is not enough memory for the number, this is
            // null, with the exception set that is then raised. The record is in the log anyway, as
            // the documentation says.
            return Some(unsafe { ffi::PyLong_FromUnsignedLongLong(offset) });
        }
        // From here on, PyO3 attaches the call, so it may wait and raise. If the interpreter is
        // shutting down, attaching fails, and the function of the base class is called.
        Python::try_attach(|py| match writer.get().append(&record) {
            Ok(offset) => offset.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        })
    };
    match catch_unwind(AssertUnwindSafe(fast)) {
        Ok(Some(offset)) => offset,
        Ok(None) => {
            // SAFETY: the same promises, passed on.
            let offset = unsafe { base_append::<T>(writer, args, arg_count, names) };
            offset.map_or(null_mut(), Bound::into_ptr)
        }
        Err(panic) => raised(panic),
    }
}

/// Calls the function of the base class, for keywords and wrong arguments. The arguments are passed
/// in a tuple and a dictionary because the stable ABI has no vectorcall before Python 3.12. Returns
/// `None` with an exception set if the call could not be made.
///
/// # Safety
///
/// As for [`fast_append`].
#[cold]
unsafe fn base_append<'py, T: FastAppend>(
    writer: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    arg_count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY:
    // - As the caller promises, the thread is attached, and the objects live as long as the call.
    // - Each function returns a new reference, or null or -1 with an exception set, which is
    //   checked; `PyTuple_GetItem` returns a borrowed one, as each index is within the tuple.
    // - There is no other reference to the tuple, which has room at each index; the references that
    //   it takes over are new.
    unsafe {
        let py = Python::assume_attached();
        let positional = Bound::from_owned_ptr_or_opt(py, ffi::PyTuple_New(arg_count + 1))?;
        ffi::PyTuple_SetItem(positional.as_ptr(), 0, ffi::Py_NewRef(writer));
        for index in 0..arg_count {
            let arg = ffi::Py_NewRef(*args.offset(index));
            ffi::PyTuple_SetItem(positional.as_ptr(), index + 1, arg);
        }
        let keywords = Bound::from_owned_ptr_or_opt(py, ffi::PyDict_New())?;
        let name_count = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) };
        for index in 0..name_count {
            let name = ffi::PyTuple_GetItem(names, index);
            if ffi::PyDict_SetItem(keywords.as_ptr(), name, *args.offset(arg_count + index)) != 0 {
                return None;
            }
        }
        let append = ffi::PyObject_GetAttrString(T::type_object_raw(py).cast(), c"append".as_ptr());
        let append = Bound::from_owned_ptr_or_opt(py, append)?;
        let appended = ffi::PyObject_Call(append.as_ptr(), positional.as_ptr(), keywords.as_ptr());
        Bound::from_owned_ptr_or_opt(py, appended)
    }
}

/// Checks whether this is the main interpreter of the process and not a sub-interpreter.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: the thread is attached, so it has an interpreter. The number of the main one is 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Raises the exception that PyO3 creates from a panic.
#[cold]
fn raised(panic: Box<dyn Any + Send>) -> *mut ffi::PyObject {
    let text = match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => *panic.downcast_ref::<&str>().unwrap_or(&"panic from Rust code"),
    };
    // SAFETY: Only functions that Python calls, attached, call this.
    PanicException::new_err(text.to_owned()).restore(unsafe { Python::assume_attached() });
    null_mut()
}
