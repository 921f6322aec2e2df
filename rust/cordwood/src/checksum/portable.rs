//! The kernel that runs on any machine. It performs sixteen table lookups for every sixteen bytes
//! ("slicing by 16").

use super::kernel::{Job, Kernel};
use super::polynomial::{CASTAGNOLI, multiply, x_to_bytes};

/// The kernel that runs on any machine.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Kernel for Portable {
    const NAME: &'static str = "portable";

    fn update(self, mut state: u32, data: &[u8]) -> u32 {
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

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        job.call(self)
    }
}

/// `TABLES[k][b]` is the result of advancing the state 0 over the byte `b` and then `k` zero bytes.
static TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let over_byte = x_to_bytes(CASTAGNOLI, 1);
    let mut tables = [[0; 256]; 16];
    let mut index = 0;
    while index < 16 * 256 {
        let (k, byte) = (index / 256, index % 256);
        tables[k][byte] = if k == 0 {
            multiply(CASTAGNOLI, byte as u32, over_byte)
        } else {
            let before = tables[k - 1][byte];
            tables[0][(before & 0xff) as usize] ^ (before >> 8)
        };
        index += 1;
    }
    tables
}
