//! Counts and differences.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How many differences are printed.
const SHOWN_MAX: usize = 8;

/// The counts of a set.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) reads: u64,
    pub(crate) differences: u64,
    /// The first differences in full.
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

    /// Compares the answer of the crate with the expected one.
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

    /// Counts a check, and keeps the message, with both answers, if it fails or panics.
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

/// Ends the process at the first difference, with status 1.
pub(crate) fn end_at_the_first_difference() {
    ENDS_AT_FIRST.store(true, Relaxed);
}

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A panic of a check is a difference, and is printed as one.
pub(crate) fn keep_messages_of_panics() {
    std::panic::set_hook(Box::new(|panic| MESSAGE.set(panic.to_string())));
}
