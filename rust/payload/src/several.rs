//! A list of values that usually has only one item.

use std::ops::Deref;
use std::slice;

/// A list of values that can be read as a slice. A single value doesn't need an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Several<T>(Kept<T>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept<T> {
    One(T),
    /// No values, or more than one.
    Several(Vec<T>),
}

impl<T> Several<T> {
    pub(super) fn none() -> Self {
        Several(Kept::Several(Vec::new()))
    }

    #[inline(always)]
    pub(super) fn one(value: T) -> Self {
        Several(Kept::One(value))
    }

    pub(super) fn push(&mut self, value: T) {
        self.0 = match std::mem::replace(&mut self.0, Kept::Several(Vec::new())) {
            Kept::One(first) => Kept::Several(vec![first, value]),
            Kept::Several(mut values) => {
                values.push(value);
                Kept::Several(values)
            }
        };
    }
}

impl<T> Deref for Several<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Kept::One(value) => slice::from_ref(value),
            Kept::Several(values) => values,
        }
    }
}

impl<'v, T> IntoIterator for &'v Several<T> {
    type Item = &'v T;
    type IntoIter = slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
