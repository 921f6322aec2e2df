//! `cordwood._native`: the crate `cordwood` as a Python module. One file for each class.
//!
//! The `///` text of a Python class, method, attribute or function is what `help` shows: it is
//! written as a Python docstring. `tools/stub.py` copies it into the stub,
//! `python/cordwood/_native.pyi`, which has the types.

// Reading.
mod batch_pool;
mod detect;
mod follower;
mod follower_state;
mod listed;
mod read_ahead;
mod reader;
mod record;
mod record_batch;
mod source;

// Writing.
mod sink;
mod writer;

// Many logs as a table, and Arrow.
mod arrow;
mod scan;

// Taking a whole log apart, and the findings.
mod fragments;
mod manifest;
mod ops;
mod watched;

// What engines keep in records.
mod entity;
mod entity_table;
mod operation;
mod version_edit;
mod wandb;
mod write_batch;

// Checksums.
mod checksum;

// What the classes share: arguments, results and errors.
mod arguments;
mod enums;
mod error;
mod log;
mod options;
mod pickle;
mod values;

// Python's memory, calls and threads. All `unsafe` code is in `buffer`, `fast_call`,
// `kept_exception`, `python_code` and `arrow`.
mod buffer;
mod exclusive;
mod fast_call;
mod kept_exception;
mod python_code;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

// A panic becomes an exception. If it aborted, it would end the interpreter.
const _: () = assert!(cfg!(panic = "unwind"), "build it with panic = \"unwind\"");

#[pymodule(name = "_native")]
mod native {
    use super::*;
    use crate::fast_call::{class_with_append, class_with_next, is_main_interpreter};
    use crate::reader::Reader;
    use crate::values::severities;
    use crate::writer::Writer;

    #[pymodule_export]
    use crate::checksum::{crc32c, mask_crc, unmask_crc};
    #[pymodule_export]
    use crate::detect::{detect, is_log_name};
    #[pymodule_export]
    use crate::entity::decode_entity;
    #[pymodule_export]
    use crate::entity_table::{EntityBuilder, EntityLearner, batch_crc};
    #[pymodule_export]
    use crate::follower::{Follower, FollowerRecords};
    #[pymodule_export]
    use crate::fragments::{Fragments, Runs, fragments, runs};
    #[pymodule_export]
    use crate::ops::{pack, salvage, stat, verify};
    #[pymodule_export]
    use crate::reader::{leave_out_salvaged, left_out_count};
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::record_batch::RecordBatch;
    #[pymodule_export]
    use crate::scan::{Scan, scan};
    #[pymodule_export]
    use crate::values::reason_in_words;
    #[pymodule_export]
    use crate::version_edit::VersionEdit;
    #[pymodule_export]
    use crate::wandb::decode_wandb;
    #[pymodule_export]
    use crate::write_batch::WriteBatch;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the Python name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Classes and exceptions are kept once for the process: another interpreter would raise
        // those of this one, and could not catch them.
        if !is_main_interpreter(module.py()) {
            return Err(PyImportError::new_err(
                "cordwood does not support sub-interpreters: import it in the main interpreter \
                 (under mod_wsgi, set WSGIApplicationGroup %{GLOBAL})",
            ));
        }
        // The garbage collector finds `__del__` through a slot of the class, which Python fills
        // when the method is assigned.
        let writer = module.py().get_type::<Writer>();
        writer.setattr("__del__", writer.getattr("__del__")?)?;
        // Where such a log ends, and whether its records are compressed, depends on what comes
        // before.
        let numbered = cordwood::Dialect::ALL
            .iter()
            .filter(|dialect| dialect.has_log_numbers());
        let names: Vec<_> = numbered.map(|dialect| dialect.name()).collect();
        module.add("NUMBERED_DIALECTS", PyTuple::new(module.py(), names)?)?;
        module.add("SEVERITIES", severities(module.py())?)?;
        module.add("Writer", class_with_append::<Writer>(module.py()))?;
        module.add("Reader", class_with_next::<Reader>(module.py()))
    }
}
