//! Builds a reader's options from a fuzzer's bytes.

use arbitrary::Arbitrary;
use cordwood::{Dialect, OnCorruption, ReadOptions};

use crate::file::{File, Place};

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Policy {
    Raise,
    Skip,
    Stop,
    Salvage,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Limit {
    Default,
    Small(u8),
    /// The length of a piece of the file, or one byte less.
    Piece(u8, bool),
    Any(u32),
    Off,
}

/// The start or the end of a range.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Bound {
    /// A place in the file, or slightly after its end.
    At(Place),
    /// The largest possible offset, minus this number.
    Far(u32),
}

impl Bound {
    fn at(self, file: &File) -> u64 {
        match self {
            Bound::At(place) => file.at(place) as u64,
            Bound::Far(less) => u64::MAX - u64::from(less),
        }
    }
}

/// The options of a reader. Zero bytes select the defaults.
#[derive(Arbitrary, Debug, Clone, Copy)]
pub struct Options {
    policy: Policy,
    limit: Limit,
    start: Option<Bound>,
    end: Option<Bound>,
    trusts: u8,
}

impl Options {
    /// Returns the options for `file`, including a range of it.
    pub fn of(self, file: &File) -> ReadOptions {
        // The model knows only this dialect.
        let mut options = ReadOptions::default()
            .with_dialect(Dialect::LEVELDB)
            .with_on_corruption(match self.policy {
                Policy::Raise => OnCorruption::Fail,
                Policy::Skip => OnCorruption::Skip,
                Policy::Stop => OnCorruption::Stop,
                Policy::Salvage => OnCorruption::Salvage,
            })
            // Checksums are seldom ignored, because most of the other code is then not reached.
            .with_verify_checksums(self.trusts < 224);
        options.start = self.start.map_or(0, |bound| bound.at(file));
        options.end = self.end.map(|bound| bound.at(file));
        match self.limit {
            Limit::Default => options,
            Limit::Piece(piece, is_less) => {
                let len = file.piece_len(piece).saturating_sub(u64::from(is_less));
                options.with_record_len_max(len)
            }
            Limit::Small(max) => options.with_record_len_max(max.into()),
            Limit::Any(max) => options.with_record_len_max((max % 100_000).into()),
            Limit::Off => options.with_record_len_max(u64::MAX),
        }
    }
}
