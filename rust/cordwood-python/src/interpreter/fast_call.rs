//! Fast paths for the functions that are called once per record. These are `Writer.append` and the
//! `__next__` methods of the iterators over a reader, over `Reader.records` and over a batch.
//!
//! PyO3's functions parse the arguments, count the thread's nested calls and pass the result
//! through memory. For short records, this accounts for a considerable part of the time. The module
//! therefore exports a final subclass of each PyO3 class that needs a fast path. The subclass is
//! created with `PyType_FromSpecWithBases` and uses only the stable ABI. It adds one function. This
//! function handles calls that neither wait nor raise an exception. It passes all other calls on to
//! the base class's function.
//!
//! The subclass has the name, documentation, constructor and attributes of its base class. To
//! create an object, call the subclass as Python code would: `Py::new` would create an instance of
//! the base class.

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

/// A cache for a class's final subclass. Each class has a static with its own cache.
pub(crate) type FastClass = PyOnceLock<Py<PyType>>;

/// An iterator class with a fast `__next__`.
pub(crate) trait FastNext: PyClass<Frozen = True> + Sync {
    /// The cache of the final subclass.
    const FAST_CLASS: &'static FastClass;

    /// Returns the next item. If that isn't possible without waiting or raising an exception,
    /// returns `None`. `__next__` then tries again, and raises the exception if there is one.
    fn next_now(&self, py: Python<'_>) -> Option<Py<PyAny>>;
}

/// A writer class with a fast `append`.
pub(crate) trait FastAppend: PyClass<Frozen = True> + Sync {
    /// The cache of the final subclass.
    const FAST_CLASS: &'static FastClass;

    /// Appends a record and returns its offset. If that isn't possible without waiting or raising
    /// an exception, appends nothing and returns `None`.
    fn append_now(&self, record: &[u8]) -> Option<u64>;

    /// Appends a record with the class's regular `append` method.
    fn append<'py>(&self, record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;
}

/// Returns the final subclass of `T`. Every instance of `T` is created as an instance of this
/// subclass.
pub(crate) fn class_with_next<T: FastNext>(py: Python<'_>) -> &Bound<'_, PyType> {
    class::<T>(py, T::FAST_CLASS, |_| {
        Ok(ffi::PyType_Slot {
            slot: ffi::Py_tp_iternext,
            pfunc: fast_next::<T> as *mut c_void,
        })
    })
}

/// Returns the final subclass of `T`. Every instance of `T` is created as an instance of this
/// subclass.
pub(crate) fn class_with_append<T: FastAppend>(py: Python<'_>) -> &Bound<'_, PyType> {
    class::<T>(py, T::FAST_CLASS, |base| {
        let append = base.getattr("append")?;
        let signature: String = append.getattr("__text_signature__")?.extract()?;
        let doc: Option<String> = append.getattr("__doc__")?.extract()?;
        let doc = CString::new(format!("append{signature}\n--\n\n{}", doc.unwrap_or_default()))?;
        // Python keeps pointers to the method table and its text for as long as the class exists,
        // and the class is never freed.
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

/// Returns the final subclass of `T`. `fast` creates the slot that the subclass adds. The subclass
/// is created once per process, and reused if the module is imported again. If it cannot be
/// created, `T` itself is returned. In that case, all calls still work, but more slowly, and
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

/// Creates a final subclass with the name, documentation and attributes of `base`, and one
/// additional slot.
fn final_class<'py>(base: &Bound<'py, PyType>, fast: ffi::PyType_Slot) -> PyResult<Bound<'py, PyType>> {
    let name = CString::new(base.fully_qualified_name()?.to_str()?)?;
    let inherited = |slot: c_int| ffi::PyType_Slot {
        slot,
        // SAFETY: each of these slots can be queried on any class. The result has the type that the
        // slot requires.
        pfunc: unsafe { ffi::PyType_GetSlot(base.as_type_ptr(), slot) },
    };
    let mut slots = [
        inherited(ffi::Py_tp_doc),
        inherited(ffi::Py_tp_new),
        // The base class's function can free an instance of any subclass, and also releases the
        // instance's reference to its class. Python's own function for subclasses would first call
        // `__del__`, which only the garbage collector should do.
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
    // - `spec` and `slots` are complete, end with a zero slot, and outlive the call. Since Python
    //   3.11, the name and documentation are copied. Python keeps a pointer to the method table,
    //   which is never freed.
    // - `base` is a class that can be subclassed.
    // - The result is a new reference to a class, or null with an exception set.
    let class = unsafe {
        let class = ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr());
        Bound::from_owned_ptr_or_err(base.py(), class)?.cast_into_unchecked::<PyType>()
    };
    // The attributes are copied so that `vars`, `help` and other introspection show the same
    // information as for the base class.
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
/// Only Python calls this function. The thread is attached, and Python has checked that the object
/// is an instance of the final class.
unsafe extern "C" fn fast_next<T: FastNext>(iterator: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let fast = || {
        // SAFETY: The caller promises that the object stays alive during the call and is an
        // instance of the final subclass of `T`. This subclass has the same layout as `T`.
        let iterator = unsafe { Borrowed::from_ptr(Python::assume_attached(), iterator).cast_unchecked::<T>() };
        iterator.get().next_now(iterator.py()).map(Py::into_ptr)
    };
    match catch_unwind(AssertUnwindSafe(fast)) {
        Ok(Some(item)) => item,
        // SAFETY: The object is also an instance of the base class, so the caller's promises meet
        // the requirements of the base class's function. `PyType_GetSlot` returns null or the
        // slot's function, which has the type below.
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
/// Only Python calls this function, with the thread attached. `writer` is an instance of the final
/// class, as the method descriptor guarantees. `args` points to `arg_count` objects. If `names` is
/// a tuple of keywords, one more object follows for each keyword.
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
        // SAFETY: The caller promises that the objects stay alive during the call and that the
        // first is an instance of the final subclass of `T`. This subclass has the same layout as
        // `T`.
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
            // SAFETY: the thread is attached. If there is not enough memory for the number, the
            // result is null with an exception set, and Python raises the exception. Even then, the
            // record is in the log, as documented.
            return Some(unsafe { ffi::PyLong_FromUnsignedLongLong(offset) });
        }
        // From here on, PyO3 attaches the thread, so the call may wait or raise an exception. If
        // the interpreter is shutting down, attaching fails, and the base class's function is
        // called.
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
            // SAFETY: `base_append` has the same requirements as this function, and the caller
            // meets them.
            let offset = unsafe { base_append::<T>(writer, args, arg_count, names) };
            offset.map_or(null_mut(), Bound::into_ptr)
        }
        Err(panic) => raised(panic),
    }
}

/// Calls the base class's function, which handles keywords and invalid arguments. The arguments are
/// passed in a tuple and a dictionary because the stable ABI doesn't support vectorcall before
/// Python 3.12. Returns `None` with an exception set if the call could not be made.
///
/// # Safety
///
/// Same as for [`fast_append`].
#[cold]
unsafe fn base_append<'py, T: FastAppend>(
    writer: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    arg_count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY:
    // - The caller promises that the thread is attached and that the objects outlive the call.
    // - Each function returns a new reference. If it sets an exception, it returns null or -1
    //   instead. The code checks for both. `PyTuple_GetItem`, however, returns a borrowed
    //   reference, which is not null because each index is within the tuple.
    // - The tuple has room at each index, and there is no other reference to it. The tuple takes
    //   ownership only of new references.
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

/// Checks whether this is the process's main interpreter rather than a sub-interpreter.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: The thread is attached, so it has an interpreter. The main interpreter is number 0.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Raises the exception that PyO3 creates from a panic.
#[cold]
fn raised(panic: Box<dyn Any + Send>) -> *mut ffi::PyObject {
    let text = match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => *panic.downcast_ref::<&str>().unwrap_or(&"panic from Rust code"),
    };
    // SAFETY: This is called only by functions that Python calls with the thread attached.
    PanicException::new_err(text.to_owned()).restore(unsafe { Python::assume_attached() });
    null_mut()
}
