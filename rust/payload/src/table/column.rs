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
    kind: Type,
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
    U64(Vec<u64>),
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
#[derive(Debug, Clone, PartialEq)]
pub enum NotAdded {
    /// A value does not fit its column.
    Misfit(Box<Misfit>),
    /// There is not enough memory.
    NoMemory,
}

/// A value that does not fit its column: it is of another type, or there is more than a column can
/// contain, or no column or field has its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Misfit {
    /// The name of the column. `a.b` is a field of `a`, and `a[]` is an item.
    pub path: String,
    /// The type of that column, field or item; `None` if there is no such column or field.
    pub column: Option<Type>,
    /// The type of the value.
    pub value: &'static str,
}

impl NotAdded {
    pub(super) fn misfit(column: Option<&Type>, value: View<'_>) -> Self {
        NotAdded::Misfit(Box::new(Misfit {
            path: String::new(),
            column: column.cloned(),
            value: match Kind::of(value) {
                None => "null",
                // Why a column of floating-point numbers cannot have it.
                Some(Kind::Large) => "int of more than 53 bits",
                Some(kind) => kind.name(),
            },
        }))
    }

    /// Puts the name of the outer column or field before that of the inner one.
    pub(super) fn put_within(&mut self, outer: &str) {
        if let NotAdded::Misfit(misfit) = self {
            misfit.path.insert_str(0, outer);
        }
    }
}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdded::Misfit(misfit) => misfit.fmt(f),
            NotAdded::NoMemory => f.write_str("there is not enough memory"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { path, column, value } = self;
        match column {
            Some(column) => write!(
                f,
                "the column '{path}' is {column}, and cannot have a value of type {value}"
            ),
            None => write!(f, "the column '{path}' was not there when the columns were found"),
        }
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
        Type::UInt => Kinds::of(&[Kind::Int, Kind::Large, Kind::Huge]),
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
            kind: kind.clone(),
            possible: kinds(kind),
            len: 0,
            valid_count: 0,
            validity: Bits::default(),
            values: match kind {
                Type::Bool => Values::Bool(Bits::default()),
                Type::Int | Type::Time => Values::I64(Vec::new()),
                Type::UInt => Values::U64(Vec::new()),
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
            Values::U64(values) => resize(values, len, 0),
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
            return Err(NotAdded::misfit(Some(&self.kind), value));
        }
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
            (Values::U64(values), View::Huge(digits)) => push(values, digits.parse().map_err(|_| misfit())?)?,
            (Values::F64(values), View::Float(value)) => push(values, value)?,
            // Exact: the type was chosen so that it is.
            (Values::F64(values), View::Int(value)) => push(values, value as f64)?,
            (Values::Bytes { ends, data }, View::Text(text)) => {
                append(data, text.as_bytes())?;
                push(ends, end_of(data.len()).ok_or_else(misfit)?)?;
            }
            (Values::Bytes { ends, data }, View::Bytes(bytes)) => {
                append(data, bytes)?;
                push(ends, end_of(data.len()).ok_or_else(misfit)?)?;
            }
            (Values::Bytes { ends, data }, View::Base64(bytes)) => {
                let mut text = Text::default();
                write_base64(&mut text, bytes);
                append(data, whole(&text)?.as_bytes())?;
                push(ends, end_of(data.len()).ok_or_else(misfit)?)?;
            }
            (Values::Json { ends, text }, value) => {
                write_json(text, value);
                push(ends, end_of(whole(text)?.len()).ok_or_else(misfit)?)?;
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
                    match &mut set {
                        Ok(inner) => cell_count += *width + *inner,
                        Err(error) => error.put_within("[]"),
                    }
                    set.is_ok()
                });
                set?;
                push(ends, end_of(*count).ok_or_else(misfit)?)?;
            }
            (Values::Struct { fields, columns }, value) if value.is_struct() => {
                let mut set = Ok(0);
                let mut hint = 0;
                value.all_fields(|name, value| {
                    set = match fields.names.find(name, hint) {
                        Some(number) => {
                            hint = number + 1;
                            columns[number].set(index, value)
                        }
                        None => Err(NotAdded::misfit(None, value)),
                    };
                    match &mut set {
                        Ok(count) => cell_count += *count,
                        Err(error) => error.put_within(&format!(".{name}")),
                    }
                    set.is_ok()
                });
                set?;
            }
            _ => return Err(misfit()),
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
                Values::U64(values) => array::Values::U64(values),
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

fn end_of(len: usize) -> Option<i32> {
    i32::try_from(len).ok()
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
