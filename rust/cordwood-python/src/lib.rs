//! The Python module `cordwood._native`, which wraps the `cordwood` crate. Each class has its own
//! file.
//!
//! Python's `help` shows the `///` text of a class, method, attribute or function. This text is
//! therefore written as a Python docstring. `tools/stub.py` copies the text into the stub,
//! `python/cordwood/_native.pyi`, which adds the types.

#![expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
#![expect(
    clippy::large_enum_variant,
    reason = "of a writer and its log: there is one for each object, and most are the large variant"
)]

// Code shared by the classes. All `unsafe` code is in `memory/buffer.rs`, `arrow/c_data.rs`,
// `arrow/import.rs`, and three files in `interpreter/`: `fast_call`, `kept_exception` and
// `python_code`.
mod arrow;
mod exclusive;
mod interpreter;
mod io;
mod log_on_disk;
mod memory;
mod open_logs;
mod values;

// The modules that define the classes and functions.
mod checksum;
mod follower;
mod index;
mod ops;
mod payload;
mod reader;
mod scan;
mod writer;

use cordwood::damage::Reason;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyTuple};

// A panic must become an exception; an abort would kill the interpreter.
const _: () = assert!(cfg!(panic = "unwind"), "build it with panic = \"unwind\"");

#[pymodule(name = "_native")]
mod native {
    use super::*;
    use crate::interpreter::fast_call::{class_with_append, class_with_next, is_main_interpreter};
    use crate::memory::buffer::Exporter;
    use crate::reader::iterators::{ReaderIterator, RecordBatches};
    use crate::reader::record_batch::RecordBatchIterator;
    use crate::writer::Writer;

    #[pymodule_export]
    use crate::{
        checksum::{crc32c, mask_crc, unmask_crc},
        follower::{Follower, FollowerRecords},
        index::{RecordIndex, index, restored_index},
        ops::detect::{detect, is_log_name, segment_offset},
        ops::fragments::{Fragments, fragments},
        ops::{pack, salvage, stat, verify},
        payload::entity::{decode_entity, entity_kinds},
        payload::objects::{RecordDecoder, is_decoded},
        payload::table::Table,
        payload::version_edit::{VersionState, checked_version_edit, version_edit_field},
        payload::write_batch::{WriteBatchOperations, build_write_batch, write_batch_header},
        reader::record_batch::RecordBatch,
        reader::{Reader, leave_out_salvaged, left_out},
        scan::{Scan, scan},
        values::position::{Position, marks_of, moved_to, start_at, start_of},
        values::reason_in_words,
        values::record::Record,
    };
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the Python name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Each class and exception exists only once per process. If a sub-interpreter imported the
        // module, this crate would raise the main interpreter's exceptions, which the
        // sub-interpreter's code could not catch.
        if !is_main_interpreter(module.py()) {
            return Err(PyImportError::new_err(
                "cordwood does not support sub-interpreters: import it in the main interpreter \
                 (under mod_wsgi, set WSGIApplicationGroup %{GLOBAL})",
            ));
        }
        // PyO3 creates a class on first use, and panics if there is not enough memory. Creating
        // these classes here avoids such a panic later.
        class_with_next::<ReaderIterator>(module.py());
        class_with_next::<RecordBatchIterator>(module.py());
        module.py().get_type::<RecordBatches>();
        module.py().get_type::<Exporter>();
        // The garbage collector finds `__del__` through a slot in the class. Python fills this slot
        // only when `__del__` is assigned to the class.
        let writer = module.py().get_type::<Writer>();
        writer.setattr("__del__", writer.getattr("__del__")?)?;
        // In these dialects, a log must be read from its start to determine where it ends and
        // whether its records are compressed.
        let numbered = cordwood::Dialect::ALL
            .iter()
            .filter(|dialect| dialect.has_log_numbers());
        let names: Vec<_> = numbered.map(|dialect| dialect.name()).collect();
        module.add("NUMBERED_DIALECTS", PyTuple::new(module.py(), names)?)?;
        let severities = Reason::ALL
            .iter()
            .map(|reason| (reason.as_str(), reason.severity().as_str()));
        module.add("SEVERITIES", severities.into_py_dict(module.py())?)?;
        module.add("Writer", class_with_append::<Writer>(module.py()))?;
        crate::open_logs::close_at_end(module)
    }
}
