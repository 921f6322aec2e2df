//! Records that show whether they are whole, and which of them a log returned.

/// The thread that appended a record, and the number of the record in that thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub thread: u32,
    pub number: u64,
}

/// The length of a key in a record, and so of the shortest record.
const KEY_LEN: usize = 16;

/// Makes the record with this key, of `len` bytes but no fewer than 16: its key, its length, and bytes that follow
/// from both.
pub fn write_record(key: Key, len: usize, record: &mut Vec<u8>) {
    record.clear();
    record.extend_from_slice(&key.number.to_le_bytes());
    record.extend_from_slice(&key.thread.to_le_bytes());
    record.extend_from_slice(&(len as u32).to_le_bytes());
    let mut state = key.number ^ u64::from(key.thread) << 48 ^ 0x9e37_79b9_7f4a_7c15;
    while record.len() < len {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        record.extend_from_slice(&(mixed ^ mixed >> 27).to_le_bytes());
    }
    record.truncate(len.max(KEY_LEN));
}

/// The key of a record; `None` if it is not a record that was made here.
pub fn key_of(record: &[u8]) -> Option<Key> {
    let number = u64::from_le_bytes(record.get(..8)?.try_into().ok()?);
    let thread = u32::from_le_bytes(record.get(8..12)?.try_into().ok()?);
    let len = u32::from_le_bytes(record.get(12..16)?.try_into().ok()?) as usize;
    let key = Key { thread, number };
    if len.max(KEY_LEN) != record.len() {
        return None;
    }
    let mut expected = Vec::new();
    write_record(key, len, &mut expected);
    (expected == record).then_some(key)
}
