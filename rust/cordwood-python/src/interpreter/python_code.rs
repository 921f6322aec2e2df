//! Calls Python code safely, even if the program ends during the call.
//!
//! While the interpreter shuts down, Python before version 3.14 terminates any other thread that
//! asks for the interpreter. For example, a thread asks for it when `time.sleep` or `file.read`
//! returns. Python terminates the thread by calling `pthread_exit`, which unwinds the thread's
//! stack. If this unwound a function of this crate, the function itself or PyO3's `catch_unwind`
//! would abort the process. Data that other objects have not written yet would then be lost. So
//! each call in this module is surrounded by a guard that blocks the thread until the process has
//! ended. Python 3.14 blocks such threads too, and so does PyO3 when Rust code asks for the
//! interpreter.
//!
//! Call Python code through [`PythonCode`] and import it with [`module`]. PyO3 has its own methods
//! for this, but Clippy rejects them (see `clippy.toml`). To keep a user's object for longer than
//! one call, use a [`Held`].

#![expect(unsafe_code, reason = "PyO3 declares these functions of C as ones that never unwind")]

use std::ffi::c_int;
use std::hint::black_box;
use std::mem::{forget, replace, transmute};
use std::ops::Deref;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString, PyTuple};

use crate::memory::buffer::new_interned;

/// Calls that run Python code.
pub(crate) trait PythonCode<'py> {
    /// Calls `self(*args)`, as [`call1`](PyAnyMethods::call1) does.
    fn run(&self, args: impl Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.run_with(args, None)
    }

    /// Calls `self(*args, **keywords)`, as [`call`](PyAnyMethods::call) does.
    fn run_with(&self, args: impl Arguments<'py>, keywords: Option<&Bound<'py, PyDict>>)
    -> PyResult<Bound<'py, PyAny>>;

    /// Calls `self.name(*args)`, as [`call_method1`](PyAnyMethods::call_method1) does.
    fn run_method(&self, name: &Bound<'py, PyString>, args: impl Arguments<'py>) -> PyResult<Bound<'py, PyAny>>;

    /// Returns `self.name`, or `None` if there is no such attribute, as
    /// [`getattr_opt`](PyAnyMethods::getattr_opt) does.
    fn attribute(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>>;

    /// Calls `isinstance(self, class)`, as [`is_instance`](PyAnyMethods::is_instance) does. If
    /// `class` is an abstract base class, this runs Python code.
    fn is_a(&self, class: &Bound<'py, PyAny>) -> PyResult<bool>;

    /// Calls `iter(self)`, as [`try_iter`](PyAnyMethods::try_iter) does.
    fn items(&self) -> PyResult<Items<'py>>;
}

/// Positional arguments, as a tuple.
pub(crate) trait Arguments<'py>: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>> {}

impl<'py, A> Arguments<'py> for A where A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>> {}

type Object = *mut ffi::PyObject;

/// Declares that a C function may unwind. PyO3 declares that the function never unwinds, so the
/// compiler would leave out the guard. To prevent this, `black_box` hides which function is called.
macro_rules! may_unwind {
    ($function:path; $($object:ty),+ => $result:ty) => {
        black_box(transmute::<
            unsafe extern "C" fn($($object),+) -> $result,
            unsafe extern "C-unwind" fn($($object),+) -> $result,
        >($function))
    };
}

impl<'py> PythonCode<'py> for Bound<'py, PyAny> {
    fn run_with(
        &self,
        args: impl Arguments<'py>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.into_pyobject(self.py()).map_err(Into::into)?;
        let keywords = keywords.map_or(null_mut(), |keywords| keywords.as_ptr());
        // SAFETY: The calling convention is the same, this thread is attached, and the references
        // outlive the call. The result is a new reference, or null with an exception set.
        unsafe {
            let call = may_unwind!(ffi::PyObject_Call; Object, Object, Object => Object);
            let result = guarded(|| call(self.as_ptr(), args.as_ptr(), keywords));
            Bound::from_owned_ptr_or_err(self.py(), result)
        }
    }

    fn run_method(&self, name: &Bound<'py, PyString>, args: impl Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        attribute(self, name)?.run(args)
    }

    fn attribute(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match attribute(self, name) {
            Err(error) if error.is_instance_of::<PyAttributeError>(self.py()) => Ok(None),
            attribute => attribute.map(Some),
        }
    }

    fn is_a(&self, class: &Bound<'py, PyAny>) -> PyResult<bool> {
        // SAFETY: As in `run_with`, but the result is 0 or 1, or -1 with an exception set.
        let is_a = unsafe {
            let is_instance = may_unwind!(ffi::PyObject_IsInstance; Object, Object => c_int);
            guarded(|| is_instance(self.as_ptr(), class.as_ptr()))
        };
        match is_a {
            -1 => Err(PyErr::fetch(self.py())),
            is_a => Ok(is_a == 1),
        }
    }

    fn items(&self) -> PyResult<Items<'py>> {
        // SAFETY: as in `run_with`.
        let iterator = unsafe {
            let iter = may_unwind!(ffi::PyObject_GetIter; Object => Object);
            Bound::from_owned_ptr_or_err(self.py(), guarded(|| iter(self.as_ptr())))
        };
        Ok(Items(iterator?))
    }
}

fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as in `run_with`.
    unsafe {
        let get = may_unwind!(ffi::PyObject_GetAttr; Object, Object => Object);
        Bound::from_owned_ptr_or_err(object.py(), guarded(|| get(object.as_ptr(), name.as_ptr())))
    }
}

/// Returns the module with this name. The first import of a module runs its code.
pub(crate) fn module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    let name = new_interned(py, name)?;
    // SAFETY: as in `run_with`.
    let module = unsafe {
        let import = may_unwind!(ffi::PyImport_Import; Object => Object);
        Bound::from_owned_ptr_or_err(py, guarded(|| import(name.as_ptr())))
    };
    Ok(module?.cast_into()?)
}

/// Returns the object with this name in a module.
pub(crate) fn object(py: Python<'_>, of_module: &str, name: &str) -> PyResult<Py<PyAny>> {
    Ok(module(py, of_module)?.getattr(new_interned(py, name)?)?.unbind())
}

/// An iterator over a Python iterable.
pub(crate) struct Items<'py>(Bound<'py, PyAny>);

impl<'py> Iterator for Items<'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    fn next(&mut self) -> Option<Self::Item> {
        let py = self.0.py();
        // SAFETY: As in `run_with`, except that the result can also be null without an exception,
        // at the end of the iteration.
        let item = unsafe {
            let next = may_unwind!(ffi::PyIter_Next; Object => Object);
            Bound::from_owned_ptr_or_opt(py, guarded(|| next(self.0.as_ptr())))
        };
        item.map_or_else(|| PyErr::take(py).map(Err), |item| Some(Ok(item)))
    }
}

/// A reference to a user's object. When the last reference is dropped, the object is released at
/// once, even by a thread that is not attached to the interpreter. Releasing an object can run
/// Python code, such as a file's `close`.
pub(crate) struct Held(Py<PyAny>);

impl Held {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Self {
        Held(object.clone().unbind())
    }
}

impl Deref for Held {
    type Target = Py<PyAny>;

    fn deref(&self) -> &Py<PyAny> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        Python::try_attach(|py| {
            let object = replace(&mut self.0, py.None()).into_ptr();
            // SAFETY: The calling convention is the same, this thread is attached, and the
            // reference is not used again.
            unsafe {
                let release = may_unwind!(ffi::Py_DecRef; Object => ());
                guarded(|| release(object));
            }
        });
    }
}

/// Calls a function that may unwind. `call` must make this call and do nothing else.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> T {
    let guard = Guard;
    let result = call();
    forget(guard);
    result
}

/// A guard that is dropped only if the stack is unwound. No panic can drop it, because no Rust code
/// runs while it exists.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        loop {
            thread::sleep(Duration::from_secs(3600));
        }
    }
}
