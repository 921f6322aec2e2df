//! The state of a database after the edits in its MANIFEST.

use std::collections::BTreeMap;
use std::mem;

use super::error::PayloadError;
use super::new_file::NewFile;
use super::version_edit::{Field, VersionEdit};
use super::wire::make_room;

/// The state of a database after the edits in its MANIFEST: its live tables, and the last value of each
/// number.
///
/// Edits of RocksDB that take effect together add and remove tables once all of them are present.
/// Blob files are not kept.
///
/// ```
/// use cordwood_payload::VersionState;
///
/// let mut state = VersionState::default();
/// let key = b"\x09a\x01\x01\0\0\0\0\0\0";
/// state.apply(&[b"\x02\x04\x03\x07\x07\x01\x06\x2a", &key[..], &key[..]].concat())?;
/// state.apply(b"\x02\x05")?;
/// assert_eq!(state.numbers(), [("log_number", 5), ("next_file_number", 7)]);
/// let tables: Vec<_> = state.tables().map(|(family, file)| (family, file.level, file.file_number)).collect();
/// assert_eq!(tables, [(0, 1, 6)]);
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct VersionState {
    numbers: BTreeMap<&'static str, u64>,
    log_numbers: BTreeMap<u32, u64>,
    synced_lens: BTreeMap<u64, u64>,
    has_other_tags: bool,
    names: BTreeMap<u32, Vec<u8>>,
    /// By column family, level and number: the field, as it is in the record.
    tables: BTreeMap<(u32, u32, u64), Vec<u8>>,
    /// Records that take effect together with some that follow.
    group: Vec<Vec<u8>>,
}

impl VersionState {
    /// Applies the edit in the next record.
    ///
    /// # Errors
    ///
    /// If the record is not a version edit. The state is then that before it.
    pub fn apply(&mut self, record: &[u8]) -> Result<(), PayloadError> {
        // One field at a time: a decoded field takes up many times its size in the record.
        let (mut family, mut rest) = (None, None);
        for field in VersionEdit::new(record).fields() {
            match field? {
                // RocksDB writes the log number before the family that it is about.
                Field::ColumnFamily(number) => family = family.or(Some(number)),
                Field::InAtomicGroup(number) => rest = rest.or(Some(number)),
                _ => {}
            }
        }
        let family = family.unwrap_or(0);
        for field in VersionEdit::new(record).fields() {
            self.apply_number(&field?, family);
        }
        match rest {
            None => {
                // A group that another edit interrupts is incomplete, and never took effect.
                self.group.clear();
                self.apply_tables(record, family)
            }
            Some(rest) => {
                self.group.push(copied(record)?);
                if rest > 0 {
                    return Ok(());
                }
                mem::take(&mut self.group).iter().try_for_each(|record| {
                    let is_family = |field: &Result<Field<'_>, _>| matches!(field, Ok(Field::ColumnFamily(_)));
                    let family = VersionEdit::new(record).fields().find(is_family);
                    let family = match family.transpose()? {
                        Some(Field::ColumnFamily(number)) => number,
                        _ => 0,
                    };
                    self.apply_tables(record, family)
                })
            }
        }
    }

    fn apply_number(&mut self, field: &Field<'_>, family: u32) {
        // The fields that LevelDB knows have smaller tags.
        self.has_other_tags |= field.tag() >= 10;
        let number = match *field {
            Field::LogNumber(number) => {
                self.log_numbers.insert(family, number);
                number
            }
            Field::WalDeletion { log_number, .. } => {
                self.synced_lens = self.synced_lens.split_off(&log_number);
                log_number
            }
            Field::NextFileNumber(number)
            | Field::LastSequence(number)
            | Field::PrevLogNumber(number)
            | Field::MinLogNumberToKeep(number)
            | Field::LastCompactedManifestFileSize(number) => number,
            Field::ColumnFamily(number) | Field::MaxColumnFamily(number) | Field::InAtomicGroup(number) => {
                number.into()
            }
            Field::ColumnFamilyDrop => {
                self.log_numbers.remove(&family);
                return;
            }
            Field::WalAddition(wal) => {
                if let Some(len) = wal.synced_len {
                    self.synced_lens.insert(wal.log_number, len);
                }
                return;
            }
            _ => return,
        };
        self.numbers.insert(field.as_str(), number);
    }

    fn apply_tables(&mut self, record: &[u8], family: u32) -> Result<(), PayloadError> {
        let edit = VersionEdit::new(record);
        // The engines delete first, in any order of the fields: a file can return to where it was.
        for field in edit.fields() {
            if let Field::DeletedFile { level, file_number } = field? {
                self.tables.remove(&(family, level, file_number));
            }
        }
        let mut start = 0;
        while let Some((field, end)) = edit.field_at(start)? {
            match field {
                Field::NewFile(file) => {
                    let field = copied(&record[start..end])?;
                    self.tables.insert((family, file.level, file.file_number), field);
                }
                Field::ColumnFamilyAdd(name) => {
                    self.names.insert(family, copied(name)?);
                }
                Field::ColumnFamilyDrop => self.tables.retain(|&(other, ..), _| other != family),
                _ => {}
            }
            start = end;
        }
        Ok(())
    }

    /// The last value of each field that is a number, by the name of the field.
    pub fn numbers(&self) -> Vec<(&'static str, u64)> {
        self.numbers.iter().map(|(&name, &number)| (name, number)).collect()
    }

    /// For each column family, the smallest number of a log that it needs.
    pub fn log_numbers(&self) -> &BTreeMap<u32, u64> {
        &self.log_numbers
    }

    /// For each log that RocksDB keeps track of, its synced length in bytes.
    pub fn synced_lens(&self) -> &BTreeMap<u64, u64> {
        &self.synced_lens
    }

    /// Whether LevelDB knows all fields of the edits.
    pub fn is_of_leveldb(&self) -> bool {
        !self.has_other_tags
    }

    /// The name of a column family, if the MANIFEST states it; it does not for the default one.
    pub fn name(&self, family: u32) -> Option<&[u8]> {
        self.names.get(&family).map(Vec::as_slice)
    }

    /// The tables by column family, level and number: the number of the column family, and the table.
    pub fn tables(&self) -> impl Iterator<Item = (u32, NewFile<'_>)> {
        self.tables.iter().filter_map(
            |(&(family, ..), field)| match VersionEdit::new(field).fields().next()? {
                Ok(Field::NewFile(file)) => Some((family, file)),
                _ => None,
            },
        )
    }

    /// Removes the first of [`tables`](Self::tables).
    pub(super) fn remove_first_table(&mut self) {
        self.tables.pop_first();
    }
}

fn copied(bytes: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let mut copy = Vec::new();
    make_room(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
