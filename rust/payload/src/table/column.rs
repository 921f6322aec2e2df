//! Columns in Arrow's memory layout, built from values row by row.

use std::collections::TryReserveError;
use std::sync::Arc;

use super::bits::Bits;
use super::given;
use super::json::{Text, write_json};
use super::kind::{Kind, Kinds};
use super::misfit::NotAdded;
use super::types::{Fields, Type};
use super::view::View;

/// A column, the items of a list, or a field of a structure.
///
/// Nulls are appended only before the next value or when the column is completed, so a column
/// without values costs almost nothing. If the column's type is given, however, an explicit null is
/// appended immediately.
#[derive(Debug)]
pub struct Column {
    kind: Type,
    /// The kinds of values that the column can contain.
    possible: Kinds,
    len: usize,
    /// The number of values that are not null.
    valid_count: usize,
    /// Bits that mark the values that are not null. This is empty until the first null is appended.
    validity: Bits,
    /// The values. A value at the index of a null is meaningless.
    pub values: Values,
}

/// The values of a [`Column`].
#[derive(Debug)]
pub enum Values {
    /// Booleans.
    Bool(Bits),
    /// Integers, or times in microseconds since 1970.
    I64(Vec<i64>),
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Floating-point numbers.
    F64(Vec<f64>),
    /// Text, bytes or JSON.
    Bytes {
        /// The offset of each value in `data`, followed by the end of the last value. There is one
        /// more offset than there are values.
        offsets: Vec<i32>,
        /// The bytes of all values, with no gaps.
        data: Vec<u8>,
    },
    /// Lists.
    List {
        /// The index in `items` of each list's first item, followed by the end of the last list.
        /// There is one more offset than there are lists.
        offsets: Vec<i32>,
        /// The items of all lists, with no gaps.
        items: Box<Column>,
        /// The number of items.
        count: usize,
        /// The number of Parquet columns that the items need.
        width: usize,
        /// The number of null items stored for each null list. This is 0 unless the lists have a
        /// fixed size.
        null_len: usize,
    },
    /// Structures. Each field is a column of the same length.
    Struct(Columns),
}

/// Named columns: the columns of a table or the fields of a structure.
#[derive(Debug)]
pub struct Columns {
    fields: Arc<Fields>,
    pub(super) columns: Vec<Column>,
    /// Whether the types are given. If so, values without a column are omitted.
    is_given: bool,
    /// The number of Parquet columns needed to store the columns with values.
    pub(super) width: usize,
}

impl Column {
    /// Creates a column of this type.
    pub(super) fn new(kind: &Type) -> Self {
        Column {
            kind: kind.clone(),
            possible: kind.kinds(),
            len: 0,
            valid_count: 0,
            validity: Bits::default(),
            values: match kind.made_as() {
                Type::Bool => Values::Bool(Bits::default()),
                Type::Int | Type::Time => Values::I64(Vec::new()),
                Type::UInt => Values::U64(Vec::new()),
                Type::Float => Values::F64(Vec::new()),
                Type::Text | Type::Bytes | Type::Json | Type::Given(_) => Values::Bytes {
                    offsets: vec![0],
                    data: Vec::new(),
                },
                Type::List(item) => Values::List {
                    offsets: vec![0],
                    items: Box::new(Column::new(item)),
                    count: 0,
                    width: item.leaf_count(),
                    null_len: kind.fixed_len(),
                },
                Type::Struct(fields) => {
                    Values::Struct(Columns::new(Arc::clone(fields), matches!(kind, Type::Given(_))))
                }
            },
        }
    }

    /// Appends nulls until the column has `len` rows.
    #[inline]
    fn pad(&mut self, len: usize) -> Result<(), TryReserveError> {
        if self.len == len { Ok(()) } else { self.pad_more(len) }
    }

    fn pad_more(&mut self, len: usize) -> Result<(), TryReserveError> {
        if self.valid_count == self.len {
            self.validity = Bits::ones(self.len)?;
        }
        self.validity.pad(len)?;
        let added = len - self.len;
        self.len = len;
        match &mut self.values {
            Values::Bool(bits) => bits.pad(len),
            Values::I64(values) => resize(values, len, 0),
            Values::U64(values) => resize(values, len, 0),
            Values::F64(values) => resize(values, len, 0.0),
            Values::List {
                offsets,
                count,
                null_len,
                ..
            } => {
                *count = count.saturating_add(added.saturating_mul(*null_len));
                // For lists of a fixed size, only the number of items matters.
                resize(offsets, len + 1, end_of(*count).unwrap_or(i32::MAX))
            }
            Values::Bytes { offsets, .. } => {
                let end = offsets.last().copied().unwrap_or_default();
                resize(offsets, len + 1, end)
            }
            Values::Struct(_) => Ok(()),
        }
    }

    /// Sets the value at an index, which must be greater than every index set so far. Returns the
    /// number of cells needed by the items in the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the value was not added. On error, the column must not be used again.
    pub(super) fn set(&mut self, index: usize, value: View<'_>) -> Result<usize, NotAdded> {
        let fits = match Kind::of(value) {
            None if self.kind.is_nullable() => {
                // If two values have the same name in Arrow, either of them may be null.
                if matches!(self.kind, Type::Given(_)) {
                    self.pad(index + 1)?;
                }
                return Ok(0);
            }
            None => false,
            Some(kind) => self.possible.has(kind),
        };
        if !fits {
            return Err(NotAdded::misfit(Some(&self.kind), value));
        }
        let value = match &self.kind {
            Type::Given(given) => given.fit(value).ok_or_else(|| {
                let mut error = NotAdded::misfit(Some(&self.kind), value);
                if let NotAdded::Misfit(misfit) = &mut error {
                    misfit.why = Some(given.why_not(value));
                }
                error
            })?,
            _ => value,
        };
        self.pad(index)?;
        if self.valid_count < self.len {
            self.validity.push(true)?;
        }
        self.len += 1;
        self.valid_count += 1;
        let mut cell_count = 0;
        let misfit = || NotAdded::misfit(Some(&self.kind), value);
        match (&mut self.values, value) {
            (Values::Bool(bits), View::Bool(value)) => bits.push(value)?,
            (Values::I64(values), View::Int(value) | View::Time(value)) => push(values, value)?,
            (Values::U64(values), View::Int(value)) => push(values, value.try_into().map_err(|_| misfit())?)?,
            (Values::U64(values), View::UInt(value)) => push(values, value)?,
            (Values::I64(values), View::UInt(value)) => push(values, value.try_into().map_err(|_| misfit())?)?,
            (Values::F64(values), View::UInt(value)) => push(values, value as f64)?,
            (Values::U64(values), View::Huge(digits)) => push(values, digits.parse().map_err(|_| misfit())?)?,
            (Values::F64(values), View::Float(value)) => push(values, value)?,
            // This conversion is exact, because the column only has this type if all of its
            // integers convert exactly.
            (Values::F64(values), View::Int(value)) => push(values, value as f64)?,
            (Values::Bytes { offsets, data }, value) => {
                match (value, self.kind.made_as()) {
                    // In a column of a given type, text has no quotation marks, even if the column
                    // is built as JSON.
                    (View::Text(text), _) if self.kind != Type::Json => append(data, text.as_bytes())?,
                    (View::Bytes(bytes), Type::Bytes) => append(data, bytes)?,
                    (value, _) => {
                        let mut text = Text::default();
                        write_json(&mut text, value);
                        text.check()?;
                        append(data, text.text.as_bytes())?;
                    }
                }
                push(offsets, end_of(data.len()).ok_or_else(misfit)?)?;
            }
            (
                Values::List {
                    offsets,
                    items,
                    count,
                    width,
                    ..
                },
                value,
            ) => {
                cell_count = set_items(items, count, *width, value)?;
                push(offsets, end_of(*count).ok_or_else(misfit)?)?;
            }
            (Values::Struct(fields), value) => cell_count = fields.set(index, value)?,
            _ => return Err(misfit()),
        }
        Ok(cell_count)
    }

    /// Checks whether the value at an index was set. The column must not have a later value. For a
    /// null, returns true only if the column's type is given.
    pub(super) fn has(&self, index: usize) -> bool {
        self.len > index
    }

    /// Completes the column by padding it to `len` rows.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub(super) fn finish(&mut self, len: usize) -> Result<(), TryReserveError> {
        self.pad(len)?;
        match &mut self.values {
            Values::List { items, count, .. } => items.finish(*count),
            Values::Struct(fields) => fields.columns.iter_mut().try_for_each(|column| column.finish(len)),
            _ => Ok(()),
        }
    }

    /// Returns the number of values, including nulls.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Checks whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of nulls.
    pub fn null_count(&self) -> usize {
        self.len - self.valid_count
    }

    /// Returns the validity and the values. The validity is `None` if there are no nulls.
    /// Otherwise, it has one bit per value, which is 0 for a null.
    pub fn into_parts(self) -> (Option<Vec<u8>>, Values) {
        let has_nulls = self.null_count() > 0;
        (has_nulls.then(|| self.validity.into_bytes()), self.values)
    }
}

impl Columns {
    pub(super) fn new(fields: Arc<Fields>, is_given: bool) -> Self {
        Columns {
            columns: fields.types.iter().map(Column::new).collect(),
            fields,
            is_given,
            width: 0,
        }
    }

    /// Sets the values of a row or a structure. Returns the number of cells needed by the items in
    /// these values.
    ///
    /// # Errors
    ///
    /// Returns an error if a value does not fit its column, if a value has no column, or if there
    /// is not enough memory. On error, the columns must not be used again.
    pub(super) fn set(&mut self, index: usize, value: View<'_>) -> Result<usize, NotAdded> {
        let (mut cell_count, mut hint, mut set) = (0, 0, Ok(()));
        value.all_fields(|name, value| {
            set = self
                .set_one(index, name, value, &mut hint)
                .map(|count| cell_count += count);
            set.is_ok()
        });
        set?;
        self.check(index)?;
        Ok(cell_count)
    }

    /// Sets the value of the column with this name. The search for the column starts at the index
    /// `hint`.
    #[inline]
    pub(super) fn set_one(
        &mut self,
        index: usize,
        name: &str,
        value: View<'_>,
        hint: &mut usize,
    ) -> Result<usize, NotAdded> {
        let Columns { fields, columns, .. } = self;
        let number = if self.is_given {
            given::find(&fields.names, name, *hint)
        } else {
            fields.names.find(name, *hint)
        };
        let set = match number {
            Some(number) if self.is_given && columns[number].has(index) => {
                Err(NotAdded::SameNames(given::arrow_name(name)))
            }
            Some(number) => {
                *hint = number + 1;
                let column = &mut columns[number];
                if column.is_empty() && (self.is_given || !matches!(value, View::Null)) {
                    self.width += fields.types[number].leaf_count();
                }
                column.set(index, value)
            }
            None if self.is_given => Ok(0),
            None => Err(NotAdded::misfit(None, value)),
        };
        set.map_err(|error| error.within(&format!(".{name}")))
    }

    /// Checks that a row or a structure has a value in every column that needs one.
    pub(super) fn check(&self, index: usize) -> Result<(), NotAdded> {
        if self.is_given {
            for ((name, kind), column) in self.fields.iter().zip(&self.columns) {
                if !column.has(index) && !kind.is_nullable() {
                    return Err(NotAdded::misfit(Some(kind), View::Null).within(&format!(".{name}")));
                }
            }
        }
        Ok(())
    }
}

/// Iterates over the columns in order.
impl IntoIterator for Columns {
    type Item = Column;
    type IntoIter = std::vec::IntoIter<Column>;

    fn into_iter(self) -> Self::IntoIter {
        self.columns.into_iter()
    }
}

/// Appends the items of a list, or the keys and values of a map, after the first `count` items.
/// Returns the number of cells needed by the new items.
fn set_items(item: &mut Column, count: &mut usize, width: usize, value: View<'_>) -> Result<usize, NotAdded> {
    let mut cell_count = 0;
    let mut set = Ok(0);
    let mut each = |value: View<'_>| {
        set = item.set(*count, value).map_err(|error| error.within("[]"));
        *count += 1;
        cell_count += set.as_ref().map_or(0, |inner| width + inner);
        set.is_ok()
    };
    if value.is_list() {
        value.all_items(each);
    } else {
        value.all_fields(|name, value| each(View::Cells(&[("key", View::Text(name)), ("value", value)])));
    }
    set.map(|_| cell_count)
}

fn end_of(len: usize) -> Option<i32> {
    i32::try_from(len).ok()
}

#[inline]
fn push<T>(values: &mut Vec<T>, value: T) -> Result<(), TryReserveError> {
    values.try_reserve(1)?;
    values.push(value);
    Ok(())
}

fn append(data: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TryReserveError> {
    data.try_reserve(bytes.len())?;
    data.extend_from_slice(bytes);
    Ok(())
}

fn resize<T: Copy>(values: &mut Vec<T>, len: usize, value: T) -> Result<(), TryReserveError> {
    values.try_reserve(len.saturating_sub(values.len()))?;
    values.resize(len, value);
    Ok(())
}
