//! Arrow columns made from values, row by row. Independent of Python.

use std::collections::TryReserveError;
use std::ffi::CString;
use std::sync::Arc;

use super::json::{Text, write_base64, write_json};
use super::names::Names;
use super::seen::{Kind, Kinds};
use super::view::View;
use crate::arrow::bits::Bits;
use crate::arrow::{Array, DataType, Field, Memory};

/// The type of a column, as `python/cordwood/_tables/schema.py` defines it.
#[derive(Debug, Clone)]
pub(super) enum Type {
    Bool,
    Int,
    Float,
    Text,
    Bytes,
    Time,
    /// JSON as text.
    Json,
    List(Box<Type>),
    Struct(Arc<Fields>),
}

#[derive(Debug)]
pub(super) struct Fields {
    pub(super) names: Names,
    pub(super) types: Vec<Type>,
}

impl Type {
    /// The number of Parquet columns of a column of this type.
    pub(super) fn leaf_count(&self) -> usize {
        match self {
            Type::List(item) => item.leaf_count(),
            Type::Struct(fields) => fields.types.iter().map(Type::leaf_count).sum(),
            _ => 1,
        }
    }

    /// The kinds of values that a column of this type can contain. Others would also fit its
    /// memory, as bytes would fit that of a text column.
    fn kinds(&self) -> Kinds {
        match self {
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

    /// The field with this name and type.
    pub(super) fn field(&self, name: &str) -> Field {
        let (data_type, children) = match self {
            Type::Bool => (DataType::Bool, Vec::new()),
            Type::Int => (DataType::Int64, Vec::new()),
            Type::Float => (DataType::Float64, Vec::new()),
            Type::Text | Type::Json => (DataType::Text, Vec::new()),
            Type::Bytes => (DataType::Binary, Vec::new()),
            Type::Time => (DataType::Time, Vec::new()),
            Type::List(item) => (DataType::List, vec![item.field("item")]),
            Type::Struct(fields) => {
                let children = fields.names.iter().zip(&fields.types);
                (
                    DataType::Struct,
                    children.map(|(name, kind)| kind.field(name)).collect(),
                )
            }
        };
        Field {
            // A name ends at a NUL in Arrow's interface.
            name: CString::new(name.replace('\0', "\\x00")).unwrap_or_default().into(),
            data_type,
            is_nullable: true,
            children,
        }
    }
}

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

/// Why a value is not in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotSet {
    /// It does not fit the type of the column, which has no such field, or there is more than a
    /// column can contain.
    Misfit,
    NoMemory,
}

impl From<TryReserveError> for NotSet {
    fn from(_: TryReserveError) -> Self {
        NotSet::NoMemory
    }
}

impl Column {
    /// A column of this type.
    pub(super) fn new(kind: &Type) -> Self {
        Column {
            possible: kind.kinds(),
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
    pub(super) fn set(&mut self, index: usize, value: View<'_>) -> Result<usize, NotSet> {
        let Some(kind) = Kind::of(value) else { return Ok(0) };
        if !self.possible.has(kind) {
            return Err(NotSet::Misfit);
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
                    set = fields.names.find(name, hint).ok_or(NotSet::Misfit).and_then(|number| {
                        hint = number + 1;
                        columns[number].set(index, value)
                    });
                    cell_count += set.unwrap_or_default();
                    set.is_ok()
                });
                set?;
            }
            _ => return Err(NotSet::Misfit),
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
        let validity = if self.valid_count == len {
            Memory::Absent
        } else {
            Memory::Bytes(Arc::new(self.validity.into_bytes()))
        };
        let (buffers, children) = match self.values {
            Values::Bool(bits) => (vec![validity, Memory::Bytes(Arc::new(bits.into_bytes()))], Vec::new()),
            Values::I64(values) => (vec![validity, Memory::I64(values)], Vec::new()),
            Values::F64(values) => (vec![validity, Memory::F64(values)], Vec::new()),
            Values::Bytes { ends, data } => (
                vec![validity, Memory::I32(Arc::new(ends)), Memory::Bytes(Arc::new(data))],
                Vec::new(),
            ),
            Values::Json { ends, text } => (
                vec![
                    validity,
                    Memory::I32(Arc::new(ends)),
                    Memory::Bytes(Arc::new(text.text.into_bytes())),
                ],
                Vec::new(),
            ),
            Values::List { ends, item, count, .. } => {
                (vec![validity, Memory::I32(Arc::new(ends))], vec![item.finish(count)?])
            }
            Values::Struct { columns, .. } => (
                vec![validity],
                columns
                    .into_iter()
                    .map(|column| column.finish(len))
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Array {
            null_count: len - self.valid_count,
            children,
            ..Array::plain(len, buffers)
        })
    }
}

fn end_of(len: usize) -> Result<i32, NotSet> {
    i32::try_from(len).map_err(|_| NotSet::Misfit)
}

/// All of a text.
fn whole(text: &Text) -> Result<&str, NotSet> {
    if text.is_cut {
        Err(NotSet::NoMemory)
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
