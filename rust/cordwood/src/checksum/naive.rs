//! The oracle for tests, which computes CRC-32C bit by bit, directly from its definition.

use super::polynomial::CASTAGNOLI;

/// Returns `state` advanced over `data`.
pub(super) fn update(mut state: u32, data: &[u8]) -> u32 {
    for &byte in data {
        state ^= u32::from(byte);
        for _ in 0..8 {
            state = (state >> 1) ^ if state & 1 != 0 { CASTAGNOLI } else { 0 };
        }
    }
    state
}
