//! The row of a record.

use std::fmt::Write;

use super::names::Names;
use super::number::{Number, plain_number};
use super::tree::{Item, Refused, Rules, Value, has_twice, new_item, parse, push_item};
use super::view::View;
use crate::wandb::read_step;
use crate::{Entity, EntityValue, OtherField, PathElement, PathId};

/// Collects the fields that are not interpreted, of an entity and of all entities in it.
fn collect_others<'v>(entity: &'v Entity<'v>, found: &mut Vec<&'v OtherField<'v>>) {
    found.extend(&entity.other_fields);
    for value in entity.properties.iter().flat_map(|property| &property.values) {
        if let EntityValue::Entity(entity) = &value.value {
            collect_others(entity, found);
        }
    }
}

/// The columns that tables have for the key: no property may have one of these names.
const KEY_COLUMNS: [&str; 4] = ["__kind__", "__id__", "__name__", "__path__"];

/// What the records of a table are, and so which rows they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rows {
    /// Entities of Datastore or Firestore.
    Entity,
    /// JSON text.
    Json,
    /// Records of a run of Weights & Biases, whose steps are the rows.
    History,
}

impl Rows {
    /// Decodes a record, and calls `take` with its row, if it has one.
    pub fn of<T>(self, record: &[u8], take: impl FnOnce(&Row<'_>) -> T) -> Decoded<T> {
        match self {
            Rows::Entity => match Entity::decode(record) {
                Ok(entity) if !has_reserved_name(&entity) => {
                    let path = entity.key.as_ref().map(|key| path_text(&key.path));
                    let mut others = Vec::new();
                    collect_others(&entity, &mut others);
                    Decoded::whole(take(&Row(entity_cells(&entity, path.as_deref(), &others))))
                }
                _ => Decoded::none(true),
            },
            Rows::Json => {
                let mut value = Value::Null;
                let is_json = str::from_utf8(record).is_ok_and(|text| parse(text, Rules::Document, &mut value).is_ok());
                if !is_json {
                    return Decoded::none(true);
                }
                let items = match value {
                    Value::Object(items) => items,
                    value => vec![("__value__".into(), value)],
                };
                Decoded::whole(take(&Row::of_items(&items)))
            }
            Rows::History => match history(record) {
                Ok(Some((items, has_fault))) => Decoded {
                    row: Some(take(&Row::of_items(&items))),
                    has_fault,
                },
                Ok(None) => Decoded::none(false),
                Err(_) => Decoded::none(true),
            },
        }
    }
}

/// A decoded record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded<T> {
    /// The result for its row; `None` if it has none.
    pub row: Option<T>,
    /// Whether the record, or a value in it, cannot be read.
    pub has_fault: bool,
}

impl<T> Decoded<T> {
    fn whole(row: T) -> Self {
        Decoded {
            row: Some(row),
            has_fault: false,
        }
    }

    fn none(has_fault: bool) -> Self {
        Decoded { row: None, has_fault }
    }
}

fn has_reserved_name(entity: &Entity<'_>) -> bool {
    // Few entities have such a name: the others are not compared with each of them.
    let mut names = entity.properties.iter().map(|property| property.name);
    names.any(|name| name.starts_with("__") && KEY_COLUMNS.contains(&name))
}

/// The values of a step, and whether some cannot be read. `None` for any other kind of record.
fn history(record: &[u8]) -> Result<Option<(Vec<Item<'_>>, bool)>, Refused> {
    let mut found: Vec<Item<'_>> = Vec::new();
    let mut has_fault = false;
    let step = read_step(record, |name, value| {
        match plain_number(value) {
            Some((Number::Int(number), len)) if len == value.len() => {
                return push_item(&mut found, name, || Value::Int(number));
            }
            Some((Number::Float(number), len)) if len == value.len() => {
                return push_item(&mut found, name, || Value::Float(number));
            }
            _ => {}
        }
        let text = str::from_utf8(value).map_err(|_| Refused::Text)?;
        match parse(text, Rules::Run, new_item(&mut found, name)?) {
            Err(Refused::Text) => {
                has_fault = true;
                found.pop();
                Ok(())
            }
            parsed => parsed,
        }
    })?;
    let Some(step) = step else { return Ok(None) };
    if has_twice(&found)? {
        // The first of them counts.
        has_fault = true;
        let mut names = std::collections::HashSet::new();
        found.retain(|(name, _)| names.insert(name.clone()));
    }
    // In old files, the step is not among the items.
    let at = found.iter().position(|(name, _)| name == "_step");
    match (at, step) {
        (Some(at), _) => found[..=at].rotate_right(1),
        (None, Some(step)) => found.insert(0, ("_step".into(), Value::Int(step))),
        (None, None) => {}
    }
    Ok(Some((found, has_fault)))
}

/// The row of a record: names of columns, and a value for each.
pub struct Row<'v>(Vec<(&'v str, View<'v>)>);

/// The columns that are wanted of each row, in their order: names of columns, or `a.b` for the field
/// `b` of the column `a`.
#[derive(Debug, Clone)]
pub struct Selection(Names);

impl<N: AsRef<str>> FromIterator<N> for Selection {
    fn from_iter<I: IntoIterator<Item = N>>(columns: I) -> Self {
        let mut names = Names::default();
        for name in columns {
            names.add(name.as_ref());
        }
        Selection(names)
    }
}

impl<'v> Row<'v> {
    /// The row with these values, each of which has another name.
    pub fn of_items(items: &'v [Item<'v>]) -> Self {
        Row(items
            .iter()
            .map(|(name, value)| (name.as_ref(), View::of_json(value)))
            .collect())
    }

    /// The row with only the cells in `selection`.
    ///
    /// A name with dots is that of a column, or else that of a field, of the column with the longest
    /// name that has one.
    pub fn select<'r>(&'r self, selection: &'r Selection) -> Row<'r> {
        let Selection(names) = selection;
        let mut found: Vec<Option<View<'r>>> = vec![None; names.len()];
        let mut hint = 0;
        for &(name, value) in &self.0 {
            if let Some(number) = names.find(name, hint) {
                hint = number + 1;
                found[number] = Some(value);
            }
        }
        let cells = names.iter().zip(found).filter_map(|(name, value)| {
            let inside = || inside(name, &|column| self.cell(column));
            Some((name, value.or_else(inside)?))
        });
        Row(cells.collect())
    }

    /// The text in a column; `None` if it has none.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.cell(name)? {
            View::Text(text) => Some(text),
            _ => None,
        }
    }

    fn cell(&self, name: &str) -> Option<View<'_>> {
        let cell = self.0.iter().find(|&&(other, _)| other == name);
        cell.map(|&(_, value)| value)
    }

    /// Whether it has a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.cell(name).is_some()
    }

    /// The cells, in their order.
    pub(super) fn cells(&self) -> &[(&'v str, View<'v>)] {
        &self.0
    }
}

/// The cells of an entity, whose path as text and whose fields that are not interpreted are given.
fn entity_cells<'v>(
    entity: &'v Entity<'v>,
    path: Option<&'v str>,
    others: &'v [&'v OtherField<'v>],
) -> Vec<(&'v str, View<'v>)> {
    let mut cells = Vec::with_capacity(entity.properties.len() + 5);
    let last = entity.key.as_ref().and_then(|key| key.path.last());
    if let (Some(last), Some(path)) = (last, path) {
        cells.push(("__kind__", View::Text(last.kind)));
        match last.id {
            PathId::None => {}
            PathId::Id(id) => cells.push(("__id__", View::Int(id))),
            PathId::Name(name) => cells.push(("__name__", View::Text(name))),
        }
        cells.push(("__path__", View::Text(path)));
    }
    cells.push(("__key__", entity.key.as_ref().map_or(View::Null, View::Key)));
    let properties = entity.properties.iter();
    cells.extend(properties.map(|property| (property.name, View::of_property(property))));
    if !others.is_empty() {
        cells.push(("__other_fields__", View::Others(others)));
    }
    cells
}

/// The field that a name with dots means, of the value that `outer` returns for the part before a
/// dot: the last dot for which there is one.
fn inside<'v>(name: &str, outer: &dyn Fn(&str) -> Option<View<'v>>) -> Option<View<'v>> {
    let mut dots = name.rmatch_indices('.');
    dots.find_map(|(at, _)| {
        let value = outer(&name[..at])?;
        let rest = &name[at + 1..];
        value.field(rest).or_else(|| inside(rest, &|name| value.field(name)))
    })
}

/// The kinds and the numbers or names, separated by slashes.
fn path_text(steps: &[PathElement<'_>]) -> String {
    let mut path = String::new();
    for (index, step) in steps.iter().enumerate() {
        if index > 0 {
            path.push('/');
        }
        path.push_str(step.kind);
        match step.id {
            PathId::None => {}
            PathId::Id(id) => {
                let _ = write!(path, "/{id}");
            }
            PathId::Name(name) => {
                path.push('/');
                path.push_str(name);
            }
        }
    }
    path
}
