//! The sets of tests and their bounds.

mod append;
mod follow;
mod numbered;
mod read;
mod write;

use crate::files::Alphabet::{LevelDb, Packed};
use crate::files::Width::{All, Edge, Few, Least};
use crate::files::{Alphabet, Files, Width};
use crate::tally::Tally;

/// A set of files or records, with the check to run on each of them.
pub(crate) struct Set {
    pub(crate) name: String,
    /// Describes the bound up to which the set is complete.
    pub(crate) bound: String,
    pub(crate) run: Box<dyn Fn() -> Tally>,
}

/// The check to run on a file.
type Check = fn(&mut Tally, Alphabet, &[u8]);

fn of_files(name: &str, check: Check, alphabet: Alphabet, widths: &[Width], truncates: bool) -> Set {
    let files = Files {
        alphabet,
        widths: widths.to_vec(),
        truncates,
    };
    Set {
        name: format!("{name} {alphabet:?}"),
        bound: files.to_string(),
        run: Box::new(move || {
            Tally::sum(files.each(Tally::default, |tally, file| {
                tally.files += 1;
                check(tally, alphabet, file);
            }))
        }),
    }
}

/// Returns all sets, either in full or with the smaller bounds of `make test`.
pub(crate) fn all(is_full: bool) -> Vec<Set> {
    let mut sets = Vec::new();
    let mut add = |name, check, alphabet, widths: &[Width], truncates| {
        sets.push(of_files(name, check, alphabet, widths, truncates));
    };
    if is_full {
        add("policies", read::policies, LevelDb, &[All, All], true);
        add("policies", read::policies, LevelDb, &[Few, Few, Least], true);
        add("policies", read::policies, LevelDb, &[Edge, Few, Least], false);
        add("splits", read::splits, LevelDb, &[Edge, Least], true);
        add("ways", read::ways, LevelDb, &[Edge, Edge], true);
        add("limits", read::limits, LevelDb, &[Edge, Few], true);
        add("policies", read::policies, Packed, &[All, All], true);
        add("policies", read::policies, Packed, &[Few, Least, Least], true);
        add("splits", read::splits, Packed, &[Few, Least], true);
        add("ways", read::ways, Packed, &[Edge, Few], true);
        add("limits", read::limits, Packed, &[Few, Least], true);
    } else {
        for alphabet in [LevelDb, Packed] {
            add("policies", read::policies, alphabet, &[Few, Least], true);
            add("policies", read::policies, alphabet, &[Edge, Few], false);
            add("policies", read::policies, alphabet, &[Least, Least, Least], false);
            add("splits", read::splits, alphabet, &[Few, Least], false);
            add("ways", read::ways, alphabet, &[Few, Least], alphabet == LevelDb);
            add("limits", read::limits, alphabet, &[Few, Least], false);
        }
    }
    let appended: &[Width] = if is_full { &[Edge, Edge] } else { &[Few, Least] };
    sets.push(of_files("append", append::append, LevelDb, appended, true));
    sets.extend(numbered::sets(is_full));
    sets.extend(follow::sets(is_full));
    sets.extend(write::sets(is_full));
    sets
}

/// Returns all sequences of at most `count` of these lengths.
fn sequences(count: usize, of: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let mut start = 0;
    for _ in 0..count {
        let end = all.len();
        for index in start..end {
            all.extend(
                of.iter()
                    .map(|&next| [&all[index][..], &[next]].concat())
                    .collect::<Vec<_>>(),
            );
        }
        start = end;
    }
    all
}
