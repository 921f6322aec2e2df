//! The two kernels for x86-64. `Chains` uses the `crc32` instruction of SSE4.2. The other kernel
//! also folds by carry-less multiplication in 512-bit registers.

#![expect(
    unsafe_code,
    reason = "calls #[target_feature] functions; each type here is the proof of its features; unaligned loads and stores through a pointer"
)]

mod chains;
mod fold512;

use crate::checksum::kernel::{Job, Kernel};

kernels! {
    is_x86_feature_detected;

    /// A machine with AVX-512: Intel servers since Ice Lake, and AMD processors since Zen 4. The
    /// compiler assumes that AVX-512 implies FMA and F16C, so these features are also detected.
    Fold512(
        "SSE4.2, AVX-512, VPCLMULQDQ",
        [
            "sse4.2", "pclmulqdq", "avx2", "vpclmulqdq", "fma", "f16c", "avx512f", "avx512bw"
        ],
        fold512::update,
        fold512::append
    );

    /// A machine with SSE4.2 and PCLMULQDQ: all machines since 2010.
    Chains("SSE4.2, PCLMULQDQ", ["sse4.2", "pclmulqdq"], chains::update);
}
