//! `cordwood._native`: the crate `cordwood` as a Python module. One file for each class.
//!
//! The `///` text of a Python class, method, attribute or function is what `help` shows: it is
//! written as a Python docstring. `tests/test_help.py` compares it with the stub,
//! `python/cordwood/_native.pyi`.

mod ahead;
mod arguments;
mod bytes;
mod checksum;
mod dialect;
mod entity;
mod error;
mod event;
mod exclusive;
mod fast_call;
mod follow;
mod fragments;
mod operation;
mod reader;
mod record_batch;
mod source;
mod value;
mod verbs;
mod version_edit;
mod write_batch;
mod writer;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
mod native {
    use super::*;
    use crate::writer::Writer;

    #[pymodule_export]
    use crate::checksum::{crc32c, mask_crc, unmask_crc};
    #[pymodule_export]
    use crate::dialect::detect;
    #[pymodule_export]
    use crate::entity::decode_entity;
    #[pymodule_export]
    use crate::event::{Outcome, Record, SkippedRegion};
    #[pymodule_export]
    use crate::follow::{Follower, FollowerRecords, NotYet};
    #[pymodule_export]
    use crate::fragments::{Fragment, Fragments, Runs, fragments, runs};
    #[pymodule_export]
    use crate::operation::Operation;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::record_batch::RecordBatch;
    #[pymodule_export]
    use crate::verbs::{BitFlip, Report, Stat, salvage, stat, verify};
    #[pymodule_export]
    use crate::version_edit::VersionEdit;
    #[pymodule_export]
    use crate::write_batch::WriteBatch;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the Python name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The garbage collector finds `__del__` through a slot of the class, which Python fills
        // when the method is assigned.
        let writer = module.py().get_type::<Writer>();
        writer.setattr("__del__", writer.getattr("__del__")?)?;
        module.add("Writer", crate::fast_call::writer_class(module.py()))
    }
}
