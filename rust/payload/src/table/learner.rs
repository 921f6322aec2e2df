//! Learns the columns of a table. The naive counterpart is `Columns` in
//! `tests/helpers/naive_tables.py`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::kind::{Kind, Kinds};
use super::names::Names;
use super::row::Row;
use super::types::Type;
use super::view::View;

/// The kinds of values seen in a column, in the items of its lists, or in a field of its
/// structures.
#[derive(Debug, Clone, Default)]
struct Node {
    kinds: Kinds,
    item: Option<Box<Node>>,
    fields: Nodes,
}

/// Nodes by name.
#[derive(Debug, Clone, Default)]
struct Nodes {
    names: Names,
    nodes: Vec<Node>,
}

impl Node {
    fn type_of(&self) -> Type {
        match self.kinds.common() {
            Kind::Bool => Type::Bool,
            Kind::Int | Kind::Large => Type::Int,
            Kind::Float => Type::Float,
            Kind::Text => Type::Text,
            Kind::Bytes => Type::Bytes,
            Kind::Time => Type::Time,
            Kind::Key => Type::key(),
            Kind::Place => Type::point(),
            Kind::User => Type::user(),
            Kind::List => Type::List(Box::new(self.item.as_deref().map_or(Type::Text, Node::type_of))),
            // Parquet does not support structures without fields.
            Kind::Object if !self.fields.nodes.is_empty() => {
                let fields = self.fields.iter().map(|(name, node)| (name, node.type_of()));
                Type::Struct(Arc::new(fields.collect()))
            }
            Kind::Object | Kind::Huge | Kind::Json => Type::Json,
        }
    }

    /// Finds the places in the node where the values are of different kinds that have no common
    /// type. Collects each place's name and kinds.
    fn find_conflicts(&self, name: &str, limits: Limits, found: &mut Vec<(String, BTreeSet<String>)>) {
        if self.kinds.common() == Kind::Json && self.kinds.all().nth(1).is_some() {
            let kinds = self.kinds.all().map(|kind| match kind {
                Kind::Json => format!("value of more than {} levels", limits.levels),
                kind => kind.name().to_owned(),
            });
            found.push((name.to_owned(), kinds.collect()));
        } else if let Some(item) = &self.item {
            item.find_conflicts(&format!("{name}[]"), limits, found);
        } else {
            for (field, node) in self.fields.iter() {
                node.find_conflicts(&format!("{name}.{field}"), limits, found);
            }
        }
    }

    /// Adds a kind, and returns whether it is new.
    #[inline]
    fn see(&mut self, kind: Kind) -> bool {
        let is_new = !self.kinds.has(kind);
        self.kinds.0 |= 1 << kind as u16;
        is_new
    }

    /// Learns the kinds and the fields of the values in a list or an object. Returns whether there
    /// was room for all fields of the values.
    fn learn(&mut self, value: View<'_>, level_count: usize, room: &mut Room) -> bool {
        if value.is_list() {
            let item = self.item.get_or_insert_default();
            return value.all_items(|value| item.learn_one(value, level_count, room));
        }
        let Nodes { names, nodes } = &mut self.fields;
        let mut hint = 0;
        value.all_fields(|name, value| {
            let number = match names.find(name, hint) {
                Some(number) => number,
                None if !room.take() => return false,
                None => {
                    nodes.push(Node::default());
                    room.has_changed = true;
                    names.add(name)
                }
            };
            hint = number + 1;
            nodes[number].learn_one(value, level_count, room)
        })
    }

    fn learn_one(&mut self, value: View<'_>, level_count: usize, room: &mut Room) -> bool {
        let Some(mut kind) = Kind::of(value) else { return true };
        let is_nested = matches!(kind, Kind::List | Kind::Object);
        if is_nested && level_count == 1 {
            kind = Kind::Json;
        }
        room.has_changed |= self.see(kind);
        !is_nested || level_count == 1 || self.learn(value, level_count - 1, room)
    }
}

impl Nodes {
    fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.names.iter().zip(&self.nodes)
    }
}

/// The limits of a table.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of columns, including fields inside columns.
    pub columns: usize,
    /// The maximum number of fields in one column. A column with more fields becomes JSON.
    pub fields: usize,
    /// The maximum nesting depth of lists and structures in a column. Deeper values become JSON.
    pub levels: usize,
}

impl Default for Limits {
    /// Returns the default limits. BigQuery has the same limit on columns, and Datastore has the
    /// same limit on nesting.
    fn default() -> Self {
        Limits {
            columns: 10_000,
            fields: 1_000,
            levels: 20,
        }
    }
}

/// Counts fields, and checks whether there is room for more.
struct Room {
    limits: Limits,
    column_count: usize,
    /// The number of fields in all columns.
    field_count: usize,
    /// The number of fields in this column.
    own_count: usize,
    /// Whether a field is new, or has a value of a new kind.
    has_changed: bool,
}

impl Room {
    /// Counts one more field, and returns whether there was room for it. The field is counted
    /// either way.
    fn take(&mut self) -> bool {
        self.own_count += 1;
        self.field_count += 1;
        self.own_count <= self.limits.fields && self.column_count + self.field_count <= self.limits.columns
    }
}

/// Learns the columns of a table from its rows.
///
/// A column whose values all have the same type has that type. Integers mixed with floating-point
/// numbers become floating-point numbers, unless an integer is too large to convert exactly. A
/// column of lists gets a single item type. A column of objects becomes a structure with the fields
/// of all the objects. All other values become JSON.
#[derive(Debug, Clone)]
pub struct Learner {
    limits: Limits,
    columns: Nodes,
    /// The number of fields in each column, or `None` for a column that would have too many. The
    /// learner ignores all further values in such a column.
    field_counts: Vec<Option<usize>>,
    field_count: usize,
    has_changed: bool,
}

impl Learner {
    /// Creates a learner that hasn't seen any rows.
    pub fn new(limits: Limits) -> Self {
        Learner {
            limits,
            columns: Nodes::default(),
            field_counts: Vec::new(),
            field_count: 0,
            has_changed: false,
        }
    }

    /// Learns the columns of a row, and returns whether the number of columns is within the limit.
    pub fn add(&mut self, row: &Row<'_>) -> bool {
        let mut hint = 0;
        for &(name, value) in row.cells() {
            hint = self.add_cell(name, value, hint) + 1;
            // A row can have any number of names, so check the limit after each name.
            if self.columns.names.len() > self.limits.columns {
                return false;
            }
        }
        true
    }

    /// Checks whether any column has been added, or may have changed its type, since the last call.
    /// If not, the rows since then have not affected the columns.
    pub fn take_has_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Returns the columns and their types, in the order in which they were first seen.
    pub fn types(&self) -> Vec<(String, Type)> {
        let columns = self.all().map(|(name, node, is_overfull)| {
            let kind = if is_overfull { Type::Json } else { node.type_of() };
            (name.to_owned(), kind)
        });
        columns.collect()
    }

    /// Returns the columns whose values are of different types that have no common type, and the
    /// names of those types. In a column's name, `a.b` is a field of `a`, and `a[]` means the items
    /// of `a`.
    pub fn conflicts(&self) -> Vec<(String, BTreeSet<String>)> {
        let mut found = Vec::new();
        for (name, node, is_overfull) in self.all() {
            if !is_overfull {
                node.find_conflicts(name, self.limits, &mut found);
            }
        }
        found
    }

    /// Returns the names of the columns that are JSON because they would otherwise have too many
    /// fields. The names are sorted.
    pub fn overfull(&self) -> Vec<&str> {
        let overfull = self.all().filter(|&(_, _, is_overfull)| is_overfull);
        let mut names: Vec<&str> = overfull.map(|(name, ..)| name).collect();
        names.sort_unstable();
        names
    }

    /// Returns each column's name and node, and whether the column would have too many fields.
    fn all(&self) -> impl Iterator<Item = (&str, &Node, bool)> {
        let columns = self.columns.iter().zip(&self.field_counts);
        columns.map(|((name, node), field_count)| (name, node, field_count.is_none()))
    }

    /// Learns the column of one cell in a row. Searches for the column starting at `hint`, and
    /// returns its number.
    fn add_cell(&mut self, name: &str, value: View<'_>, hint: usize) -> usize {
        let Nodes { names, nodes } = &mut self.columns;
        let number = names.find(name, hint).unwrap_or_else(|| {
            nodes.push(Node::default());
            self.field_counts.push(Some(0));
            self.has_changed = true;
            names.add(name)
        });
        let (Some(kind), Some(own_count)) = (Kind::of(value), self.field_counts[number]) else {
            return number;
        };
        let root = &mut nodes[number];
        self.has_changed |= root.see(kind);
        if matches!(kind, Kind::List | Kind::Object) {
            let mut room = Room {
                limits: self.limits,
                column_count: names.len(),
                field_count: self.field_count,
                own_count,
                has_changed: false,
            };
            let has_room = root.learn(value, self.limits.levels, &mut room);
            self.field_counts[number] = has_room.then_some(room.own_count);
            self.field_count = room.field_count;
            self.has_changed |= room.has_changed || !has_room;
            if !has_room {
                self.field_count -= room.own_count;
                root.item = None;
                root.fields = Nodes::default();
            }
        }
        number
    }
}
