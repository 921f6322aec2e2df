//! Names that are numbered in the order in which they were added.

use std::collections::HashMap;

/// The names of columns or fields, without duplicates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    names: Vec<Box<str>>,
    keys: Vec<Key>,
    numbers: HashMap<Box<str>, usize>,
    /// The slot selected by a name's key holds the name's number. A few names are not in this
    /// table, because their slots were already taken. Looking up a slot is much faster than using a
    /// hash table, which must guard against deliberate collisions.
    slots: Vec<u32>,
}

impl<N: AsRef<str>> FromIterator<N> for Names {
    fn from_iter<I: IntoIterator<Item = N>>(all: I) -> Self {
        let mut names = Names::default();
        for name in all {
            names.add(name.as_ref());
        }
        names
    }
}

/// Marks an empty slot. No name has this number.
const EMPTY: u32 = u32::MAX;

impl Names {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(Box::as_ref)
    }

    /// Returns the number assigned to a name. The search starts at `hint`, because most records
    /// have the same names in the same order. However, the order varies between the steps of a run.
    #[inline]
    pub(super) fn find(&self, name: &str, hint: usize) -> Option<usize> {
        let key = Key::of(name);
        if self.is_at(hint, &key, name) {
            return Some(hint);
        }
        self.find_far(&key, name)
    }

    fn find_far(&self, key: &Key, name: &str) -> Option<usize> {
        let number = *self.slots.get(key.slot(self.slots.len()))? as usize;
        if self.is_at(number, key, name) {
            return Some(number);
        }
        self.numbers.get(name).copied()
    }

    #[inline]
    fn is_at(&self, number: usize, key: &Key, name: &str) -> bool {
        self.keys.get(number) == Some(key) && (name.len() <= Key::WHOLE_MAX || *self.names[number] == *name)
    }

    /// Adds a name, which must be new.
    pub(super) fn add(&mut self, name: &str) -> usize {
        let number = self.names.len();
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        self.keys.push(Key::of(name));
        let mut first = number;
        if 4 * number >= self.slots.len() {
            self.slots = vec![EMPTY; (8 * number).next_power_of_two().max(16)];
            first = 0;
        }
        for (number, key) in self.keys.iter().enumerate().skip(first) {
            let slot = key.slot(self.slots.len());
            if self.slots[slot] == EMPTY {
                self.slots[slot] = number as u32;
            }
        }
        number
    }
}

/// The length and both ends of a name. If the name is short, the ends contain all of it.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    len: usize,
    first: u64,
    last: u64,
}

impl Key {
    /// Two names of at most this length are equal if their keys are equal.
    const WHOLE_MAX: usize = 16;

    #[inline]
    fn of(name: &str) -> Self {
        let text = name.as_bytes();
        let (first, last) = if let (Some(&first), Some(&last)) = (text.first_chunk(), text.last_chunk()) {
            (u64::from_le_bytes(first), u64::from_le_bytes(last))
        } else if let (Some(&first), Some(&last)) = (text.first_chunk(), text.last_chunk()) {
            (u32::from_le_bytes(first).into(), u32::from_le_bytes(last).into())
        } else {
            (text.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0)
        };
        let len = text.len();
        Key { len, first, last }
    }

    /// Returns a number below `count`, which must be a power of two.
    #[inline]
    fn slot(&self, count: usize) -> usize {
        let Key { len, first, last } = *self;
        let mixed = (first ^ last.rotate_left(27) ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & count.wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY, Names};

    #[test]
    fn finds_every_column_name_whatever_the_hint() {
        let mut names = Names::default();
        // There are names of each length, names with the same ends, and names that share a slot.
        let mut all: Vec<String> = (0..40).map(|len| "é".repeat(len / 2) + &"a".repeat(len % 2)).collect();
        all.extend((0..500).map(|number| format!("column {number} of a table")));
        all.extend((0..500).map(|number| format!("c{number}")));
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.find(name, number), None, "{name}");
            assert_eq!(names.add(name), number);
        }
        for (number, name) in all.iter().enumerate() {
            for hint in [number, number + 1, 0, all.len()] {
                assert_eq!(names.find(name, hint), Some(number), "{name}");
            }
            for other in [&format!("{name}b"), &name.replace('e', "E").replace("é", "e")] {
                let naive = all.iter().position(|known| known == other);
                assert_eq!(names.find(other, number), naive, "{other}");
            }
        }
        let in_slots = names.slots.iter().filter(|&&number| number != EMPTY).count();
        assert!((all.len() / 2..all.len()).contains(&in_slots), "{in_slots}");
    }
}
