//! How this crate calls Python, and how Python calls it.

pub(crate) mod fast_call;
pub(crate) mod kept_exception;
pub(crate) mod python_code;
