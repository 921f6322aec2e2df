//! Checks whether a file is named like a log.

use std::path::Path;

/// Words in the names of logs.
const WORDS: &[&str] = &["log", "wal", "manifest", "wandb", "swanlab"];

/// The file name suffix of a log that describes a Datastore or Firestore export.
const OVERALL_METADATA: &str = "overall_export_metadata";

/// Checks whether a file is named like a log or a copy of a log: `000123.log`, `app.log.1`,
/// `MANIFEST-000002`, `run-1.wandb`, `backup.swanlab`, `output-0`. If such a file has no valid
/// fragment, it is more likely a damaged log than a file in another format.
pub fn is_log_name(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy().to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphabetic());
    words.any(|word| WORDS.contains(&word)) || name.contains(OVERALL_METADATA) || is_part_of_export(&name)
}

/// Checks whether the file is part of an export, such as `output-0`, or a copy of such a file.
fn is_part_of_export(name: &str) -> bool {
    let Some(number) = name.strip_prefix("output-") else {
        return false;
    };
    let rest = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.len() < number.len() && !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_logs_and_their_copies_by_name() {
        for name in [
            "000123.log",
            "000123-001.log",
            "1.log",
            "app.log.1",
            "MANIFEST-000002",
            "MANIFEST-000002.bak",
            "my_wal",
            "run-1.wandb",
            "backup.swanlab",
            "output-0",
            "output-12.copy",
            "all.overall_export_metadata",
            "directory/LOG",
        ] {
            assert!(is_log_name(Path::new(name)), "{name}");
        }
        for name in [
            "",
            "..",
            "CURRENT",
            "000005.ldb",
            "catalog.bin",
            "output-",
            "output-1a",
            "output",
            "all.export_metadata",
            "wandb/table.csv",
        ] {
            assert!(!is_log_name(Path::new(name)), "{name}");
        }
    }
}
