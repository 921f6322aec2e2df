//! Columns made from values, row by row.

use std::collections::TryReserveError;
use std::error;
use std::fmt;
use std::sync::Arc;

use super::array::{self, Array};
use super::bits::Bits;
use super::json::{Text, write_base64, write_json};
use super::learner::{Kind, Kinds};
use super::types::{Fields, Type};
use super::view::View;

/// A column under construction. It ends with its last value: nulls are added before the next value
/// or at the end, so that a column without values is free.
#[derive(Debug)]
pub(super) struct Column {
    /// The kinds of values that it can contain.
    possible: Kinds,
    len: usize,
    /// How many values are not null.
    valid_count: usize,
    /// Which values are not null; empty as long as none is null.
    validity: Bits,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Bool(Bits),
    I64(Vec<i64>),
    F64(Vec<f64>),
    /// Texts or bytes, and where each begins and the last one ends.
    Bytes {
        ends: Vec<i32>,
        data: Vec<u8>,
    },
    /// The same, for values of any kind.
    Json {
        ends: Vec<i32>,
        text: Text,
    },
    List {
        ends: Vec<i32>,
        item: Box<Column>,
        count: usize,
        /// The number of Parquet columns of the items.
        width: usize,
    },
    Struct {
        fields: Arc<Fields>,
        columns: Vec<Column>,
    },
}

/// Why a row was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdded {
    /// A value does not fit the type of its column, or no column or field has its name, or there is
    /// more than a column can contain.
    Misfit,
    /// There is not enough memory.
    NoMemory,
}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAdded::Misfit => "a value does not fit its column, or is in none",
            NotAdded::NoMemory => "there is not enough memory",
        })
    }
}

impl error::Error for NotAdded {}

impl From<TryReserveError> for NotAdded {
    fn from(_: TryReserveError) -> Self {
        NotAdded::NoMemory
    }
}

/// The kinds of values that a column of this type can contain. Others would also fit its memory, as
/// bytes would fit that of a text column.
fn kinds(kind: &Type) -> Kinds {
    match kind {
        Type::Bool => Kinds::of(&[Kind::Bool]),
        Type::Int => Kinds::of(&[Kind::Int, Kind::Large]),
        Type::Float => Kinds::of(&[Kind::Int, Kind::Float]),
        Type::Text => Kinds::of(&[Kind::Text]),
        Type::Bytes => Kinds::of(&[Kind::Bytes]),
        Type::Time => Kinds::of(&[Kind::Time]),
        Type::List(_) => Kinds::of(&[Kind::List]),
        Type::Struct(_) => Kinds::of(&[Kind::Object, Kind::Key, Kind::Place, Kind::User]),
        Type::Json => Kinds::ALL,
    }
}

impl Column {
    /// A column of this type.
    pub(super) fn new(kind: &Type) -> Self {
        Column {
            possible: kinds(kind),
            len: 0,
            valid_count: 0,
            validity: Bits::default(),
            values: match kind {
                Type::Bool => Values::Bool(Bits::default()),
                Type::Int | Type::Time => Values::I64(Vec::new()),
                Type::Float => Values::F64(Vec::new()),
                Type::Text | Type::Bytes => Values::Bytes {
                    ends: vec![0],
                    data: Vec::new(),
                },
                Type::Json => Values::Json {
                    ends: vec![0],
                    text: Text::default(),
                },
                Type::List(item) => Values::List {
                    ends: vec![0],
                    item: Box::new(Column::new(item)),
                    count: 0,
                    width: item.leaf_count(),
                },
                Type::Struct(fields) => Values::Struct {
                    columns: fields.types.iter().map(Column::new).collect(),
                    fields: Arc::clone(fields),
                },
            },
        }
    }

    /// Appends nulls up to a length.
    #[inline]
    fn pad(&mut self, len: usize) -> Result<(), TryReserveError> {
        if self.len == len { Ok(()) } else { self.pad_more(len) }
    }

    fn pad_more(&mut self, len: usize) -> Result<(), TryReserveError> {
        if self.valid_count == self.len {
            self.validity = Bits::ones(self.len)?;
        }
        self.validity.pad(len)?;
        self.len = len;
        match &mut self.values {
            Values::Bool(bits) => bits.pad(len),
            Values::I64(values) => resize(values, len, 0),
            Values::F64(values) => resize(values, len, 0.0),
            Values::Bytes { ends, .. } | Values::Json { ends, .. } | Values::List { ends, .. } => {
                let end = ends.last().copied().unwrap_or_default();
                resize(ends, len + 1, end)
            }
            Values::Struct { .. } => Ok(()),
        }
    }

    /// Sets the value at an index after all those that have one. Returns the number of cells of the
    /// items in it.
    ///
    /// # Errors
    ///
    /// The value is not in the column, which must no longer be used.
    pub(super) fn set(&mut self, index: usize, value: View<'_>) -> Result<usize, NotAdded> {
        let Some(kind) = Kind::of(value) else { return Ok(0) };
        if !self.possible.has(kind) {
            return Err(NotAdded::Misfit);
        }
        self.pad(index)?;
        if self.valid_count < self.len {
            self.validity.push(true)?;
        }
        self.len += 1;
        self.valid_count += 1;
        let mut cell_count = 0;
        match (&mut self.values, value) {
            (Values::Bool(bits), View::Bool(value)) => bits.push(value)?,
            (Values::I64(values), View::Int(value) | View::Time(value)) => push(values, value)?,
            (Values::F64(values), View::Float(value)) => push(values, value)?,
            // Exact: the type was chosen so that it is.
            (Values::F64(values), View::Int(value)) => push(values, value as f64)?,
            (Values::Bytes { ends, data }, View::Text(text)) => {
                append(data, text.as_bytes())?;
                push(ends, end_of(data.len())?)?;
            }
            (Values::Bytes { ends, data }, View::Bytes(bytes)) => {
                append(data, bytes)?;
                push(ends, end_of(data.len())?)?;
            }
            (Values::Bytes { ends, data }, View::Base64(bytes)) => {
                let mut text = Text::default();
                write_base64(&mut text, bytes);
                append(data, whole(&text)?.as_bytes())?;
                push(ends, end_of(data.len())?)?;
            }
            (Values::Json { ends, text }, value) => {
                write_json(text, value);
                push(ends, end_of(whole(text)?.len())?)?;
            }
            (
                Values::List {
                    ends,
                    item,
                    count,
                    width,
                },
                list,
            ) if list.is_list() => {
                let mut set = Ok(0);
                list.all_items(|value| {
                    set = item.set(*count, value);
                    *count += 1;
                    cell_count += *width + set.unwrap_or_default();
                    set.is_ok()
                });
                set?;
                push(ends, end_of(*count)?)?;
            }
            (Values::Struct { fields, columns }, value) if value.is_struct() => {
                let mut set = Ok(0);
                let mut hint = 0;
                value.all_fields(|name, value| {
                    set = fields
                        .names
                        .find(name, hint)
                        .ok_or(NotAdded::Misfit)
                        .and_then(|number| {
                            hint = number + 1;
                            columns[number].set(index, value)
                        });
                    cell_count += set.unwrap_or_default();
                    set.is_ok()
                });
                set?;
            }
            _ => return Err(NotAdded::Misfit),
        }
        Ok(cell_count)
    }

    /// The finished column, with `len` rows.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub(super) fn finish(mut self, len: usize) -> Result<Array, TryReserveError> {
        self.pad(len)?;
        let has_nulls = self.valid_count < len;
        Ok(Array {
            len,
            null_count: len - self.valid_count,
            validity: has_nulls.then(|| self.validity.into_bytes()),
            values: match self.values {
                Values::Bool(bits) => array::Values::Bits(bits.into_bytes()),
                Values::I64(values) => array::Values::I64(values),
                Values::F64(values) => array::Values::F64(values),
                Values::Bytes { ends, data } => array::Values::Bytes { offsets: ends, data },
                Values::Json { ends, text } => array::Values::Bytes {
                    offsets: ends,
                    data: text.text.into_bytes(),
                },
                Values::List { ends, item, count, .. } => array::Values::List {
                    offsets: ends,
                    items: Box::new(item.finish(count)?),
                },
                Values::Struct { columns, .. } => {
                    let fields = columns.into_iter().map(|column| column.finish(len));
                    array::Values::Struct(fields.collect::<Result<_, _>>()?)
                }
            },
        })
    }
}

fn end_of(len: usize) -> Result<i32, NotAdded> {
    i32::try_from(len).map_err(|_| NotAdded::Misfit)
}

/// All of a text.
fn whole(text: &Text) -> Result<&str, NotAdded> {
    if text.is_cut {
        Err(NotAdded::NoMemory)
    } else {
        Ok(&text.text)
    }
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
