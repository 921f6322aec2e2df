//! The state of a database after the edits in its MANIFEST.

use std::collections::BTreeMap;
use std::mem;

use super::error::PayloadError;
use super::value::Value;
use super::version_edit::{Field, VersionEdit};
use super::wire::make_room;

/// The state of a database after the edits in its MANIFEST: the live tables and the last value of
/// each numeric field.
///
/// RocksDB writes some edits as a group that takes effect together. A group's tables aren't added
/// or removed until the group is complete. Blob files are ignored.
///
/// ```
/// use cordwood_payload::{Value, VersionState};
///
/// let mut state = VersionState::default();
/// let key = b"\x09a\x01\x01\0\0\0\0\0\0";
/// state.apply(&[b"\x02\x04\x03\x07\x07\x01\x06\x2a", &key[..], &key[..]].concat())?;
/// state.apply(b"\x02\x05")?;
/// assert_eq!(state.numbers(), [("log_number", 5), ("next_file_number", 7)]);
/// let tables: Vec<_> = state.tables().collect();
/// assert_eq!((tables[0].0, tables[0].1.get("file_number")), (0, Some(&Value::UInt(6))));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct VersionState {
    numbers: BTreeMap<&'static str, u64>,
    log_numbers: BTreeMap<u64, u64>,
    synced_lens: BTreeMap<u64, u64>,
    has_other_tags: bool,
    names: BTreeMap<u64, Vec<u8>>,
    /// The tables, each stored as the bytes of its field in the record. The keys consist of the
    /// column family, the level and the file number.
    tables: BTreeMap<(u64, u64, u64), Vec<u8>>,
    /// The records of an incomplete group of edits that take effect together.
    group: Vec<Vec<u8>>,
}

impl VersionState {
    /// Applies the edit in the next record.
    ///
    /// # Errors
    ///
    /// Fails if the record is not a version edit. On error, the state is unchanged.
    pub fn apply(&mut self, record: &[u8]) -> Result<(), PayloadError> {
        let (family, rest) = scope(record)?;
        for field in VersionEdit::new(record).fields() {
            self.apply_number(&field?, family);
        }
        match rest {
            None => {
                // A group interrupted by another edit is incomplete, and never took effect.
                self.group.clear();
                self.apply_tables(record, family)
            }
            Some(rest) => {
                self.group.push(copied(record)?);
                if rest > 0 {
                    return Ok(());
                }
                let mut group = mem::take(&mut self.group).into_iter();
                group.try_for_each(|record| self.apply_tables(&record, scope(&record)?.0))
            }
        }
    }

    fn apply_number(&mut self, field: &Field<'_>, family: u64) {
        // All fields known to LevelDB have tags below 10.
        self.has_other_tags |= field.tag >= 10;
        match (field.kind, &field.value) {
            ("column_family_drop", _) => drop(self.log_numbers.remove(&family)),
            ("wal_addition", wal) => {
                if let Some(&Value::UInt(len)) = wal.get("synced_len") {
                    self.synced_lens.insert(part(wal, "log_number"), len);
                }
            }
            (kind, &Value::UInt(number)) => {
                match kind {
                    "log_number" => drop(self.log_numbers.insert(family, number)),
                    "wal_deletion" => self.synced_lens = self.synced_lens.split_off(&number),
                    _ => {}
                }
                self.numbers.insert(kind, number);
            }
            _ => {}
        }
    }

    fn apply_tables(&mut self, record: &[u8], family: u64) -> Result<(), PayloadError> {
        let edit = VersionEdit::new(record);
        let key = |file: &Value<'_>| (family, part(file, "level"), part(file, "file_number"));
        // The engines apply deletions first, regardless of the order of the fields, so an edit can
        // delete a file and add it again at the same place.
        for field in edit.fields() {
            let field = field?;
            if field.kind == "deleted_file" {
                self.tables.remove(&key(&field.value));
            }
        }
        let mut start = 0;
        while let Some((field, end)) = edit.field_at(start)? {
            match (field.kind, &field.value) {
                ("new_file", file) => drop(self.tables.insert(key(file), copied(&record[start..end])?)),
                ("column_family_add", Value::Bytes(name)) => drop(self.names.insert(family, copied(name)?)),
                ("column_family_drop", _) => self.tables.retain(|&(other, ..), _| other != family),
                _ => {}
            }
            start = end;
        }
        Ok(())
    }

    /// Returns the last value of each numeric field, by field name.
    pub fn numbers(&self) -> Vec<(&'static str, u64)> {
        self.numbers.iter().map(|(&name, &number)| (name, number)).collect()
    }

    /// Returns the smallest log number that each column family still needs.
    pub fn log_numbers(&self) -> &BTreeMap<u64, u64> {
        &self.log_numbers
    }

    /// Returns the synced length of each log that RocksDB tracks, in bytes.
    pub fn synced_lens(&self) -> &BTreeMap<u64, u64> {
        &self.synced_lens
    }

    /// Checks whether LevelDB knows all fields of the edits.
    pub fn is_of_leveldb(&self) -> bool {
        !self.has_other_tags
    }

    /// Returns a column family's name, or `None` if it isn't in the MANIFEST. The default column
    /// family's name is never in a MANIFEST.
    pub fn name(&self, family: u64) -> Option<&[u8]> {
        self.names.get(&family).map(Vec::as_slice)
    }

    /// Returns each table with the number of its column family. The tables are sorted by column
    /// family, level and file number.
    pub fn tables(&self) -> impl Iterator<Item = (u64, Value<'_>)> {
        let fields = self.tables.iter();
        fields.filter_map(|(&(family, ..), field)| Some((family, VersionEdit::new(field).fields().next()?.ok()?.value)))
    }

    /// Removes the first of the [`tables`](Self::tables).
    pub(super) fn remove_first_table(&mut self) {
        self.tables.pop_first();
    }
}

/// Returns the column family of an edit and, if the edit is part of a group, how many edits of the
/// group follow. The whole record is decoded, but only one field at a time, because a decoded field
/// takes up much more memory than its bytes in the record.
fn scope(record: &[u8]) -> Result<(u64, Option<u64>), PayloadError> {
    let (mut family, mut rest) = (None, None);
    for field in VersionEdit::new(record).fields() {
        let field = field?;
        match (field.kind, field.value) {
            // RocksDB writes a log number before the column family it belongs to.
            ("column_family", Value::UInt(number)) => family = family.or(Some(number)),
            ("in_atomic_group", Value::UInt(number)) => rest = rest.or(Some(number)),
            _ => {}
        }
    }
    Ok((family.unwrap_or(0), rest))
}

/// Returns a number from a field's value.
fn part(value: &Value<'_>, name: &str) -> u64 {
    match value.get(name) {
        Some(&Value::UInt(number)) => number,
        _ => 0,
    }
}

fn copied(bytes: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let mut copy = Vec::new();
    make_room(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
