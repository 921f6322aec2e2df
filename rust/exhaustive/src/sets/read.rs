//! Tests that read whole files and ranges.

use cordwood::read::SliceSource;
use cordwood::{Dialect, OnCorruption, ReadOptions, ops};

use crate::crate_reads::{batches, records, slice, trickle};
use crate::files::Alphabet;
use crate::model::read;
use crate::numbered::NUMBER;
use crate::tally::Tally;

const POLICIES: [OnCorruption; 4] = [
    OnCorruption::Skip,
    OnCorruption::Salvage,
    OnCorruption::Fail,
    OnCorruption::Stop,
];

pub(super) fn options(alphabet: Alphabet, policy: OnCorruption) -> ReadOptions {
    let options = ReadOptions::default().with_on_corruption(policy);
    match alphabet {
        Alphabet::LevelDb => options.with_dialect(Dialect::LEVELDB),
        Alphabet::Packed => options.with_dialect(Dialect::PACKED),
        Alphabet::Numbered => options.with_dialect(Dialect::RECYCLABLE).with_log_number(NUMBER),
    }
}

/// Reads the whole file under each policy.
pub(crate) fn policies(tally: &mut Tally, alphabet: Alphabet, file: &[u8]) {
    for policy in POLICIES {
        let options = options(alphabet, policy);
        let expected = read(file, &options);
        tally.compare(file, &options, || slice(file, &options), &expected);
    }
}

/// Reads the two ranges that meet at each byte, under each policy.
pub(crate) fn splits(tally: &mut Tally, alphabet: Alphabet, file: &[u8]) {
    let skip = options(alphabet, OnCorruption::Skip);
    // If a log is refused, the format does not define how much of it a range reads.
    if read(file, &skip).1.is_err() {
        return;
    }
    for policy in POLICIES {
        let options = options(alphabet, policy);
        for at in 0..=file.len() as u64 {
            for options in [options.clone().with_range(..at), options.clone().with_range(at..)] {
                let expected = read(file, &options);
                tally.compare(file, &options, || slice(file, &options), &expected);
            }
        }
    }
}

/// Reads one byte at a time, in batches, by `verify`, and without verifying checksums.
pub(crate) fn ways(tally: &mut Tally, alphabet: Alphabet, file: &[u8]) {
    for policy in POLICIES {
        let options = options(alphabet, policy);
        let whole = read(file, &options);
        tally.compare(file, &options, || trickle(file, &options), &whole);
        for len in [1, 1000] {
            tally.compare(file, &options, || batches(file, &options, len), &records(&whole.0));
        }
        let unverified = options.clone().with_verify_checksums(false);
        let expected = read(file, &unverified);
        tally.compare(file, &unverified, || slice(file, &unverified), &expected);
        if policy == OnCorruption::Salvage && whole.1.is_ok() {
            tally.compare(
                file,
                &"verify",
                || {
                    ops::verify(SliceSource::new(file), &options)
                        .expect("a report")
                        .record_count
                },
                &(records(&whole.0).len() as u64),
            );
        }
    }
}

/// Reads with each record length limit up to the length of the file.
pub(crate) fn limits(tally: &mut Tally, alphabet: Alphabet, file: &[u8]) {
    for policy in [OnCorruption::Skip, OnCorruption::Salvage] {
        for limit in 0..=file.len() as u64 {
            let options = options(alphabet, policy).with_record_len_max(limit);
            let expected = read(file, &options);
            tally.compare(file, &options, || slice(file, &options), &expected);
        }
    }
}
