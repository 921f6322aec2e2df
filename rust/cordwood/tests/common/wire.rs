//! Builds fragments of every dialect without the crate under test. It has its own code for
//! checksums and headers.

/// The Castagnoli polynomial in reflected form.
const CASTAGNOLI: u32 = 0x82f6_3b78;
/// The polynomial that zip and PNG use, in reflected form.
const IEEE: u32 = 0xedb8_8320;

/// Computes a CRC bit by bit from its definition.
fn crc(poly: u32, data: &[u8]) -> u32 {
    !data.iter().fold(!0, |state, &byte| {
        (0..8).fold(state ^ u32::from(byte), |state, _| {
            (state >> 1) ^ if state & 1 == 1 { poly } else { 0 }
        })
    })
}

/// The form of a fragment. It determines the fields of the header besides checksum, length and
/// type, and how the checksum is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Types 1 to 4.
    Plain,
    /// Types 5 to 8, with this log number.
    Recyclable(u32),
    /// Types 9 to 12, with this log number and this synced offset.
    Synced(u32, u64),
    /// Types 1 to 4, with the CRC-32 that zip uses.
    Ieee,
    /// Types 0x40, 0x42, 0x44 and 0x46, for containers.
    #[allow(dead_code, reason = "not every test file makes containers")]
    Packed,
}

impl Wire {
    fn rest(self) -> Vec<u8> {
        match self {
            Wire::Plain | Wire::Ieee | Wire::Packed => Vec::new(),
            Wire::Recyclable(number) => number.to_le_bytes().to_vec(),
            Wire::Synced(number, synced) => [&number.to_le_bytes()[..], &synced.to_le_bytes()].concat(),
        }
    }

    pub(crate) fn header_len(self) -> usize {
        7 + self.rest().len()
    }

    /// Returns a fragment of any type.
    pub(crate) fn fragment(self, kind: u8, payload: &[u8]) -> Vec<u8> {
        let covered = [&[kind], &self.rest()[..], payload].concat();
        let stored = match self {
            Wire::Ieee => crc(IEEE, &covered),
            _ => crc(CASTAGNOLI, &covered).rotate_right(15).wrapping_add(0xa282_ead8),
        };
        let len = u16::try_from(payload.len()).expect("a payload that a header can state");
        [&stored.to_le_bytes()[..], &len.to_le_bytes(), &covered].concat()
    }

    /// Returns a FULL, FIRST, MIDDLE or LAST fragment for a `place` of 1, 2, 3 or 4.
    pub(crate) fn part(self, place: u8, payload: &[u8]) -> Vec<u8> {
        let before = match self {
            Wire::Plain | Wire::Ieee => 0,
            Wire::Recyclable(_) => 4,
            Wire::Synced(..) => 8,
            Wire::Packed => return self.fragment(0x3e + 2 * place, payload),
        };
        self.fragment(before + place, payload)
    }

    pub(crate) fn full(self, payload: &[u8]) -> Vec<u8> {
        self.part(1, payload)
    }

    /// Appends a record as a writer does, and returns its start. The first block starts at `grid`.
    pub(crate) fn append(self, file: &mut Vec<u8>, grid: usize, record: &[u8]) -> u64 {
        const BLOCK: usize = 32_768;
        let left = |file: &[u8]| BLOCK - (file.len() - grid) % BLOCK;
        if left(file) < self.header_len() {
            file.resize(file.len() + left(file), 0);
        }
        let start = file.len() as u64;
        let mut rest = record;
        let mut is_first = true;
        loop {
            let room = left(file) - self.header_len();
            let (payload, behind) = rest.split_at(rest.len().min(room));
            let place = match (is_first, behind.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            file.extend(self.part(place, payload));
            if behind.is_empty() {
                return start;
            }
            (rest, is_first) = (behind, false);
        }
    }
}
