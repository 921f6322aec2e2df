//! Describes the bytes a reader does not return: [`SkippedRegion`]s, the reasons why they were
//! skipped, and flipped bits that explain damage.
//!
//! This module is pure and does no I/O.

mod bit_flip;
mod region;
pub(crate) mod repair;
mod report;
pub(crate) mod resync;
mod scanner;
#[cfg(test)]
mod tests;

pub use self::bit_flip::{BitFlip, FragmentPart, locate_bit_flip};
pub(crate) use self::bit_flip::{explanations, only_difference, place};
pub use self::region::{Reason, Severity, SkippedRegion};
pub use self::report::{Finding, Findings};
pub(crate) use self::scanner::Scanner;
