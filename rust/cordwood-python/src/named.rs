//! Arguments that are numbers, times or `bool`. Each has a function of its own name, which converts
//! it, so that an error names the argument: `#[pyo3(from_py_with = named::start)]`.

use std::num::NonZeroUsize;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// What the errors of an argument say, and which they are.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    name: &'static str,
    /// `" or None"` if that is allowed.
    or_none: &'static str,
    /// The exception for a number that is out of range.
    out_of_range: fn(String) -> PyErr,
}

impl Argument {
    /// `error` says that the value is no `what`.
    fn wrong_type(self, value: &Bound<'_, PyAny>, what: &str, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyTypeError>(value.py()) {
            return error;
        }
        match value.get_type().name() {
            Ok(class) => PyTypeError::new_err(format!("{} must be {what}{}, not {class}", self.name, self.or_none)),
            Err(error) => error,
        }
    }

    /// The value is not in the range of the argument, which `rule` states.
    fn refused(self, value: &Bound<'_, PyAny>, rule: &str) -> PyErr {
        const SHOWN_MAX: usize = 40;
        let shown = match value.str() {
            Ok(text) if text.len().is_ok_and(|len| len <= SHOWN_MAX) => text.to_string(),
            // Python does not even make the text of the longest numbers.
            _ => "a longer number".to_owned(),
        };
        (self.out_of_range)(format!("{} must be {rule}, not {shown}", self.name))
    }
}

/// A type of arguments.
pub(crate) trait FromArgument: Sized {
    fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl<T: FromArgument> FromArgument for Option<T> {
    fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let or_none = Argument {
            or_none: " or None",
            ..argument
        };
        (!value.is_none()).then(|| T::from_argument(or_none, value)).transpose()
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl FromArgument for $integer {
            fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract().map_err(|error: PyErr| {
                    if !error.is_instance_of::<PyOverflowError>(value.py()) {
                        argument.wrong_type(value, "int", error)
                    } else if value.lt(0).unwrap_or(false) {
                        argument.refused(value, "0 or more")
                    } else {
                        argument.refused(value, &format!("at most {}", <$integer>::MAX))
                    }
                })
            }
        }
    )*};
}

integers!(u32, u64, usize);

/// A time in seconds.
impl FromArgument for f64 {
    fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match value.extract() {
            Ok(seconds) => seconds,
            // An `int` beyond the range of a `float`.
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                if value.lt(0)? {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Err(error) => return Err(argument.wrong_type(value, "a number of seconds", error)),
        };
        if seconds >= 0.0 {
            Ok(seconds)
        } else {
            Err(argument.refused(value, "a number of seconds, 0 or more"))
        }
    }
}

impl FromArgument for Duration {
    fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        f64::from_argument(argument, value).map(duration)
    }
}

/// A time that has been checked. One beyond the range of any clock means forever.
pub(crate) fn duration(seconds: f64) -> Duration {
    if seconds < 1e15 {
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    } else {
        Duration::MAX
    }
}

/// A time as Python shows it.
pub(crate) fn in_seconds(time: Duration) -> f64 {
    if time == Duration::MAX {
        f64::INFINITY
    } else {
        time.as_secs_f64()
    }
}

/// More threads than this do not read faster.
const THREADS_MAX: usize = 256;

/// A number of threads, for [`threads_of`].
pub(crate) fn threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let argument = Argument {
        name: "threads",
        or_none: "",
        out_of_range: PyValueError::new_err,
    };
    match value.extract() {
        Ok(threads) if (1..=THREADS_MAX).contains(&threads) => Ok(threads),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => {
            Err(argument.wrong_type(value, "int", error))
        }
        _ => Err(argument.refused(value, &format!("from 1 to {THREADS_MAX}"))),
    }
}

/// A number of threads that has been checked.
pub(crate) fn threads_of(threads: usize) -> NonZeroUsize {
    NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN)
}

impl FromArgument for bool {
    fn from_argument(argument: Argument, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value
            .extract()
            .map_err(|error| argument.wrong_type(value, "bool", error))
    }
}

/// Makes the functions; those after `=>` raise the given exception for a number that is out of
/// range.
macro_rules! named {
    ($($error:ty => $($name:ident),*;)*) => {$($(
        pub(crate) fn $name<T: FromArgument>(value: &Bound<'_, PyAny>) -> PyResult<T> {
            let argument = Argument {
                name: stringify!($name),
                or_none: "",
                out_of_range: <$error>::new_err,
            };
            T::from_argument(argument, value)
        }
    )*)*};
}

named! {
    PyValueError => checkpoint, end, offset, poll_interval, preallocate_len, record_len_max, repair_bit_flips, retry_polls,
        retry_time, start, sync, sync_interval, sync_len, target_len, timeout, verify_checksums;
    PyOverflowError => column_family, crc, log_number, masked, sequence, write_unix_time;
}
