//! Counts the checks and the differences between the crate and the model.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The maximum number of differences to print.
const SHOWN_MAX: usize = 8;

/// The counts of one set.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) reads: u64,
    pub(crate) differences: u64,
    /// The first differences, printed in full.
    pub(crate) shown: BTreeSet<String>,
}

impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tally {
            files,
            reads,
            differences,
            ..
        } = self;
        write!(f, "{files} files, {reads} reads, {differences} differences")
    }
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.files += other.files;
        self.reads += other.reads;
        self.differences += other.differences;
        self.shown.extend(other.shown);
        while self.shown.len() > SHOWN_MAX {
            self.shown.pop_last();
        }
    }

    pub(crate) fn sum(tallies: Vec<Tally>) -> Tally {
        let mut sum = Tally::default();
        tallies.into_iter().for_each(|tally| sum.add(tally));
        sum
    }

    /// Compares the result of the crate with the expected result.
    pub(crate) fn compare<T: PartialEq + Debug>(
        &mut self,
        file: &[u8],
        how: &dyn Debug,
        found: impl FnOnce() -> T,
        expected: &T,
    ) {
        self.check(file, how, || {
            let found = found();
            if found == *expected {
                Ok(())
            } else {
                Err(format!("crate: {found:?}\nmodel: {expected:?}"))
            }
        });
    }

    /// Counts a check. If the check fails or panics, keeps its message, which shows both results.
    pub(crate) fn check(&mut self, file: &[u8], how: &dyn Debug, check: impl FnOnce() -> Result<(), String>) {
        self.reads += 1;
        let checked = catch_unwind(AssertUnwindSafe(check));
        let message = match checked {
            Ok(Ok(())) => return,
            Ok(Err(message)) => message,
            Err(_) => MESSAGE.take(),
        };
        if ENDS_AT_FIRST.load(Relaxed) {
            println!("{how:?}\n{message}");
            std::process::exit(1);
        }
        self.differences += 1;
        if self.shown.len() < SHOWN_MAX {
            let hex: Vec<String> = file.iter().map(|byte| format!("{byte:02x}")).collect();
            self.shown
                .insert(format!("file: {}\n{how:?}\n{message}", hex.join(" ")));
        }
    }
}

static ENDS_AT_FIRST: AtomicBool = AtomicBool::new(false);

/// Makes the process exit with status 1 at the first difference.
pub(crate) fn end_at_the_first_difference() {
    ENDS_AT_FIRST.store(true, Relaxed);
}

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes a panic in a check count as a difference, and prints it in the same way.
pub(crate) fn keep_messages_of_panics() {
    std::panic::set_hook(Box::new(|panic| MESSAGE.set(panic.to_string())));
}
