//! Names, and their numbers in the order in which they were added.

use std::collections::HashMap;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Names {
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, usize>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(Box::as_ref)
    }

    /// The number of a name. It is looked for at `hint` first, because most records have the same
    /// names in the same order.
    pub(super) fn find(&self, name: &str, hint: usize) -> Option<usize> {
        let is_at = |number: usize| self.names.get(number).is_some_and(|known| is_same(known, name));
        // One may be missing.
        let near = [hint, hint + 1].into_iter().find(|&number| is_at(number));
        near.or_else(|| self.numbers.get(name).copied())
    }

    /// Adds a name that is not there yet.
    pub(super) fn add(&mut self, name: &str) -> usize {
        let number = self.names.len();
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        number
    }
}

/// Whether two names are the same. Comparing a few bytes as one number, or as two that overlap,
/// takes less time than calling the comparison for any length.
#[inline]
fn is_same(first: &str, second: &str) -> bool {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    match first.len() {
        len if len != second.len() => false,
        4..8 => ends::<4>(first) == ends::<4>(second),
        8..=16 => ends::<8>(first) == ends::<8>(second),
        _ => first == second,
    }
}

/// The first and the last `LEN` bytes of a text that has at least that many.
#[inline]
fn ends<const LEN: usize>(text: &[u8]) -> (Option<&[u8; LEN]>, Option<&[u8; LEN]>) {
    (text.first_chunk(), text.last_chunk())
}
