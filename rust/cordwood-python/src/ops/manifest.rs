//! Checks whether engines can open a database with a salvaged MANIFEST.

use std::path::Path;

use cordwood::ReadOptions;
use cordwood_payload::VersionEdit;

/// Checks whether the new log at `path` is a MANIFEST that no engine can open. An engine opens a
/// database only if its MANIFEST sets the numbers that the engine needs. The edits that set them may
/// be missing, because the new log was salvaged from a damaged one. Sources: LevelDB `db/version_set.cc`, `VersionSet::Recover`;
/// RocksDB `db/version_edit_handler.cc`, `CheckIterationResult`.
///
/// A log is a MANIFEST if all its records are version edits. A log without records is a MANIFEST if
/// the file name of the `old` log starts with `MANIFEST-`.
///
/// # Errors
///
/// Returns an error if the new log cannot be read.
pub(crate) fn lacks_an_edit(path: &Path, old: Option<&Path>, options: ReadOptions) -> Result<bool, cordwood::Error> {
    let mut reader = cordwood::Reader::open_with(path, options)?;
    let (mut has_next_file, mut has_log, mut has_sequence) = (false, false, false);
    let name = old.and_then(Path::file_name).unwrap_or_default();
    let mut is_manifest = name.as_encoded_bytes().starts_with(b"MANIFEST-");
    while let Some(record) = reader.next_record()? {
        for field in VersionEdit::new(record.data).fields() {
            let Ok(field) = field else { return Ok(false) };
            has_next_file |= field.kind == "next_file_number";
            has_log |= field.kind == "log_number";
            has_sequence |= field.kind == "last_sequence";
            is_manifest = true;
        }
    }
    Ok(is_manifest && !(has_next_file && has_log && has_sequence))
}
