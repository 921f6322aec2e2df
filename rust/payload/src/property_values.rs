//! The values of a property. Usually there is only one.

use std::ops::Deref;
use std::slice;

use super::entity::PropertyValue;

/// The values of a [property](super::Property), in order, as a slice. A single value needs no
/// allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyValues<'a>(Kept<'a>);

#[derive(Debug, Clone, PartialEq)]
enum Kept<'a> {
    One(PropertyValue<'a>),
    /// Any other number of values.
    Several(Vec<PropertyValue<'a>>),
}

impl<'a> PropertyValues<'a> {
    pub(super) fn none() -> Self {
        PropertyValues(Kept::Several(Vec::new()))
    }

    #[inline(always)]
    pub(super) fn one(value: PropertyValue<'a>) -> Self {
        PropertyValues(Kept::One(value))
    }

    pub(super) fn push(&mut self, value: PropertyValue<'a>) {
        self.0 = match std::mem::replace(&mut self.0, Kept::Several(Vec::new())) {
            Kept::One(first) => Kept::Several(vec![first, value]),
            Kept::Several(mut values) => {
                values.push(value);
                Kept::Several(values)
            }
        };
    }
}

impl<'a> Deref for PropertyValues<'a> {
    type Target = [PropertyValue<'a>];

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Kept::One(value) => slice::from_ref(value),
            Kept::Several(values) => values,
        }
    }
}

impl<'v, 'a> IntoIterator for &'v PropertyValues<'a> {
    type Item = &'v PropertyValue<'a>;
    type IntoIter = slice::Iter<'v, PropertyValue<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
