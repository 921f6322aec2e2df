//! The kernel that runs on any machine. It does sixteen table look-ups for every sixteen bytes
//! ("slicing by 16").

use super::kernel::{Job, Kernel};
use super::polynomial::{CASTAGNOLI, times_x};

/// The kernel that runs on any machine.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Kernel for Portable {
    const NAME: &'static str = "portable";

    #[inline]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        update(state, data)
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        job.call(self)
    }
}

/// `TABLES[k][b]` is the state 0 advanced over the byte `b` and `k` zero bytes.
static TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = times_x(CASTAGNOLI, state);
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut k = 1;
    while k < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = tables[0][(before & 0xff) as usize] ^ (before >> 8);
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// Returns `state` advanced over `data`.
fn update(mut state: u32, data: &[u8]) -> u32 {
    let (chunks, rest) = data.as_chunks::<16>();
    for chunk in chunks {
        let mut mixed = *chunk;
        for (byte, of_state) in mixed.iter_mut().zip(state.to_le_bytes()) {
            *byte ^= of_state;
        }
        state = 0;
        for (i, &byte) in mixed.iter().enumerate() {
            state ^= TABLES[15 - i][byte as usize];
        }
    }
    for &byte in rest {
        state = TABLES[0][((state ^ u32::from(byte)) & 0xff) as usize] ^ (state >> 8);
    }
    state
}
