//! Which columns a table has: the rules of `Columns` in
//! `python/cordwood/_tables/learner.py`, which is the naive counterpart and makes types from the
//! kinds found here. Independent of Python and of Arrow.

use super::names::Names;
use super::view::{Row, View};

/// The kinds of values seen in a column, in the items of its lists, or in a field of its
/// structures.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) kinds: Kinds,
    pub(super) item: Option<Box<Node>>,
    pub(super) fields: Nodes,
}

/// Nodes by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    names: Names,
    nodes: Vec<Node>,
}

/// The kinds of values, by the names that `Columns` uses for them.
pub(super) const KINDS: [&str; 14] = [
    "bool", "int", "large", "huge", "float", "text", "bytes", "time", "list", "object", "key", "place", "user", "json",
];

/// A set of kinds: one bit for each, by its index in [`KINDS`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) const ALL: Kinds = Kinds(u16::MAX);

    pub(super) fn of(kinds: &[Kind]) -> Kinds {
        Kinds(kinds.iter().fold(0, |all, &kind| all | 1 << kind as u16))
    }

    #[inline]
    pub(super) fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u16 & 1 == 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Large,
    Huge,
    Float,
    Text,
    Bytes,
    Time,
    List,
    Object,
    Key,
    Place,
    User,
    Json,
}

/// An integer up to this size converts to a floating-point number without loss.
const EXACT_MAX: u64 = 1 << 53;

impl Kind {
    #[inline]
    pub(super) fn of(value: View<'_>) -> Option<Self> {
        Some(match value {
            View::Null => return None,
            View::Bool(_) => Kind::Bool,
            View::Int(value) if value.unsigned_abs() <= EXACT_MAX => Kind::Int,
            View::Int(_) => Kind::Large,
            View::Huge(_) => Kind::Huge,
            View::Time(_) => Kind::Time,
            View::Float(_) => Kind::Float,
            View::Text(_) | View::Base64(_) => Kind::Text,
            View::Bytes(_) => Kind::Bytes,
            View::Point(..) => Kind::Place,
            View::User(_) => Kind::User,
            View::Key(_) => Kind::Key,
            View::Entity(_) | View::Element(_) | View::Other(_) | View::Data(_) | View::Object(_) => Kind::Object,
            View::Array(_) | View::Path(_) | View::Others(_) | View::Values(_) => Kind::List,
        })
    }
}

impl Node {
    /// The names of the kinds that were seen.
    pub(super) fn seen(&self) -> impl Iterator<Item = &'static str> {
        let seen = self.kinds.0;
        (0..)
            .zip(KINDS)
            .filter_map(move |(number, name)| (seen >> number & 1 == 1).then_some(name))
    }

    fn see(&mut self, kind: Kind) {
        self.kinds.0 |= 1 << kind as u16;
    }

    /// Learns the values in a list or an object. Returns whether there is room for it.
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
        self.see(kind);
        !is_nested || level_count == 1 || self.learn(value, level_count - 1, room)
    }
}

impl Nodes {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.names.iter().zip(&self.nodes)
    }
}

/// The limits of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Columns and fields in columns.
    pub(super) columns: usize,
    /// Fields in one column.
    pub(super) fields: usize,
    /// Levels of lists and structures in a column.
    pub(super) levels: usize,
}

/// The room that is left for fields.
struct Room {
    limits: Limits,
    column_count: usize,
    /// Fields of all columns.
    field_count: usize,
    /// Fields of this column.
    own_count: usize,
}

impl Room {
    /// Takes the room for one more field, and returns whether there was any. The field counts even
    /// if there was none.
    fn take(&mut self) -> bool {
        self.own_count += 1;
        self.field_count += 1;
        self.own_count <= self.limits.fields && self.column_count + self.field_count <= self.limits.columns
    }
}

/// Learns the columns of a table from its rows.
pub(super) struct Learner {
    limits: Limits,
    /// The number of the table's other columns.
    other_count: usize,
    pub(super) columns: Nodes,
    /// How many fields each column has; `None` if it would have too many. The learner stops looking
    /// at such a column.
    pub(super) field_counts: Vec<Option<usize>>,
    field_count: usize,
}

impl Learner {
    pub(super) fn new(limits: Limits, other_count: usize) -> Self {
        Learner {
            limits,
            other_count,
            columns: Nodes::default(),
            field_counts: Vec::new(),
            field_count: 0,
        }
    }

    /// Learns from a row. Returns whether the number of columns is within the limit.
    pub(super) fn add(&mut self, row: &Row<'_>) -> bool {
        let mut hint = 0;
        row.all_cells(|name, value| {
            hint = self.add_cell(name, value, hint) + 1;
            // A row may have any number of names.
            self.columns.names.len() + self.other_count <= self.limits.columns
        })
    }

    /// Learns from one value of a row. Returns the number of the column, which is looked for at
    /// `hint` first.
    fn add_cell(&mut self, name: &str, value: View<'_>, hint: usize) -> usize {
        let Nodes { names, nodes } = &mut self.columns;
        let number = names.find(name, hint).unwrap_or_else(|| {
            nodes.push(Node::default());
            self.field_counts.push(Some(0));
            names.add(name)
        });
        let (Some(kind), Some(own_count)) = (Kind::of(value), self.field_counts[number]) else {
            return number;
        };
        let root = &mut nodes[number];
        root.see(kind);
        if matches!(kind, Kind::List | Kind::Object) {
            let mut room = Room {
                limits: self.limits,
                column_count: names.len() + self.other_count,
                field_count: self.field_count,
                own_count,
            };
            let has_room = root.learn(value, self.limits.levels, &mut room);
            self.field_counts[number] = has_room.then_some(room.own_count);
            self.field_count = room.field_count;
            if !has_room {
                self.field_count -= room.own_count;
                root.item = None;
                root.fields = Nodes::default();
            }
        }
        number
    }
}
