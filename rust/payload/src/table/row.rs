//! A record's row, which consists of cells that can be selected.

use super::names::Names;
use super::view::View;
use crate::Item;

/// A record's row: column names, each with a value.
pub struct Row<'v>(Vec<(&'v str, View<'v>)>);

impl<'v> Row<'v> {
    /// Returns a row that consists of `items`, whose names must all differ.
    pub fn of_items(items: &'v [Item<'v>]) -> Self {
        Row(items
            .iter()
            .map(|(name, value)| (name.as_ref(), View::of_value(value)))
            .collect())
    }

    pub(super) fn new(cells: Vec<(&'v str, View<'v>)>) -> Self {
        Row(cells)
    }

    /// Returns the row with the cells `first` inserted before its own cells.
    pub(super) fn after<'r>(&'r self, first: &'r [(String, Option<String>)]) -> Row<'r> {
        let first = first
            .iter()
            .map(|(name, text)| (name.as_str(), View::optional(text.as_deref())));
        Row(first.chain(self.0.iter().copied()).collect())
    }

    /// Returns the row with only the wanted cells, in the order of `names`. A name refers to a
    /// column or, in the form `a.b`, to the field `b` of the column `a`.
    ///
    /// A dotted name refers to the column with exactly this name, if there is one. Otherwise, it
    /// refers to a field. If several columns have such a field, the column with the longest name is
    /// used.
    pub fn select<'r>(&'r self, names: &'r Names) -> Row<'r> {
        let mut found: Vec<Option<View<'r>>> = vec![None; names.len()];
        let mut hint = 0;
        for &(name, value) in &self.0 {
            if let Some(number) = names.find(name, hint) {
                hint = number + 1;
                found[number] = Some(value);
            }
        }
        let cells = names.iter().zip(found).filter_map(|(name, value)| {
            let inside = || inside(name, &|column| self.get(column));
            Some((name, value.or_else(inside)?))
        });
        Row(cells.collect())
    }

    /// Checks whether the row has a column with this name or, if the name contains dots, a field
    /// with this name.
    pub(super) fn has_inside(&self, name: &str) -> bool {
        self.has(name) || inside(name, &|column| self.get(column)).is_some()
    }

    /// Returns a column's value, or `None` if the row does not have the column.
    pub(super) fn get(&self, name: &str) -> Option<View<'_>> {
        let cell = self.0.iter().find(|&&(other, _)| other == name);
        cell.map(|&(_, value)| value)
    }

    /// Checks whether the row has a column with this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the cells in order.
    pub fn cells(&self) -> &[(&'v str, View<'v>)] {
        &self.0
    }
}

/// Returns the field that a dotted name refers to. `outer` looks up the part of the name before a
/// dot. The dots are tried from right to left until a field is found.
fn inside<'v>(name: &str, outer: &dyn Fn(&str) -> Option<View<'v>>) -> Option<View<'v>> {
    let mut dots = name.rmatch_indices('.');
    dots.find_map(|(at, _)| {
        let value = outer(&name[..at])?;
        let rest = &name[at + 1..];
        value.field(rest).or_else(|| inside(rest, &|name| value.field(name)))
    })
}
