//! Kernels whose instructions aren't available on every machine. `unsafe` is allowed here and in
//! the other places listed in `docs/design.md`.
//!
//! Each kernel consists of safe `#[target_feature]` functions. The one exception is the AVX-512
//! kernel: it is entered through `unsafe` functions without `#[target_feature]`, because that
//! attribute can't be combined with `#[inline(always)]`. Two operations are unsafe. The first is to
//! call a kernel, because the machine might lack the kernel's features. To rule this out, each
//! kernel is a type whose values can be created only on machines with these features. The second is
//! to load or store bytes through a pointer, as in the AVX-512 kernel.

/// Declares the kernels of an architecture, best first. For each kernel, declares a type whose
/// values prove that the machine supports the kernel's instructions. Also declares `Kernels`, an
/// enum of these kernels.
///
/// To declare a kernel, specify the name to show in reports, its features, its function and,
/// optionally, a function that also copies the data. List every feature that the kernel uses, and
/// every feature that these features imply.
#[cfg(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64"))]
macro_rules! kernels {
    (
        $is_detected:ident;
        $($(#[doc = $doc:literal])+ $kernel:ident($name:literal, [$($feature:tt),+], $update:path $(, $append:path)?);)+
    ) => {
        /// The kernels of this architecture.
        #[derive(Clone, Copy)]
        pub(in crate::checksum) enum Kernels {
            $($kernel($kernel),)+
        }

        impl Kernels {
            /// The names of all kernels, including those this machine can't run.
            #[cfg(test)]
            pub(in crate::checksum) const NAMES: &[&str] = &[$($name),+];

            /// Returns the kernels this machine can run, best first.
            pub(in crate::checksum) fn all() -> impl Iterator<Item = Kernels> {
                [$($kernel::new().map(Kernels::$kernel)),+].into_iter().flatten()
            }

            #[inline]
            pub(in crate::checksum) fn run<J: Job>(self, job: J) -> J::Output {
                match self {
                    $(Kernels::$kernel(kernel) => kernel.run(job),)+
                }
            }
        }

        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy)]
            pub(in crate::checksum) struct $kernel(());

            impl $kernel {
                fn new() -> Option<Self> {
                    ($($is_detected!($feature))&&+).then_some($kernel(()))
                }
            }

            impl Kernel for $kernel {
                const NAME: &'static str = $name;

                #[inline(always)]
                fn update(self, state: u32, data: &[u8]) -> u32 {
                    // SAFETY: `new` has detected the features.
                    unsafe { $update(state, data) }
                }

                $(
                    #[inline(always)]
                    fn append(self, state: u32, data: &[u8], out: &mut Vec<u8>) -> u32 {
                        // SAFETY: `new` has detected the features.
                        unsafe { $append(state, data, out) }
                    }
                )?

                #[inline]
                fn run<J: Job>(self, job: J) -> J::Output {
                    #[target_feature($(enable = $feature),+)]
                    fn with_features<J: Job>(kernel: $kernel, job: J) -> J::Output {
                        job.call(kernel)
                    }
                    // SAFETY: `new` has detected the features.
                    unsafe { with_features(self, job) }
                }
            }
        )+
    };
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
#[cfg(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64"))]
mod chains;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(super) use aarch64::Kernels;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::Kernels;

/// This architecture has no kernels. Big-endian AArch64 has none because nobody could test them.
#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(super) enum Kernels {}

#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
impl Kernels {
    #[cfg(test)]
    pub(super) const NAMES: &[&str] = &[];

    pub(super) fn all() -> impl Iterator<Item = Kernels> {
        std::iter::empty()
    }

    pub(super) fn run<J: super::kernel::Job>(self, _job: J) -> J::Output {
        match self {}
    }
}
