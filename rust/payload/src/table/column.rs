//! Columns made from values, row by row.

use std::collections::TryReserveError;
use std::error;
use std::fmt;
use std::sync::Arc;

use super::array::{self, Array};
use super::bits::Bits;
use super::given;
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
    /// Texts or bytes, and where each starts and the last one ends.
    Bytes {
        ends: Vec<i32>,
        data: Vec<u8>,
    },
    /// The same, for values of any kind.
    Json {
        ends: Vec<i32>,
        text: Text,
        /// Whether text is in quotation marks.
        is_quoted: bool,
    },
    List {
        ends: Vec<i32>,
        item: Box<Column>,
        count: usize,
        /// The number of Parquet columns of the items.
        width: usize,
        /// The number of items of a null, which are nulls: those of lists of a fixed size.
        null_len: usize,
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
    /// Two values have this name in Arrow.
    SameNames(String),
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
    /// Why a value of this type does not fit, if others do.
    pub why: Option<String>,
}

impl NotAdded {
    pub(super) fn misfit(column: Option<&Type>, value: View<'_>) -> Self {
        NotAdded::Misfit(Box::new(Misfit {
            path: String::new(),
            column: column.cloned(),
            value: match Kind::of(value) {
                None => "null",
                // Why a column of floating-point numbers cannot have it.
                Some(Kind::Large) if column.is_some_and(|column| *column.made_as() == Type::Float) => {
                    "int of more than 53 bits"
                }
                Some(kind) => kind.name(),
            },
            why: None,
        }))
    }

    /// The same, with the name of the outer column or field before that of the inner one.
    pub(super) fn within(mut self, outer: &str) -> Self {
        if let NotAdded::Misfit(misfit) = &mut self {
            misfit.path.insert_str(0, outer);
        }
        self
    }
}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdded::Misfit(misfit) => misfit.fmt(f),
            NotAdded::SameNames(name) => write!(
                f,
                "two values have the name '{name}' in a table, where some characters are escaped"
            ),
            NotAdded::NoMemory => f.write_str("there is not enough memory"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit {
            path,
            column,
            value,
            why,
        } = self;
        match column {
            Some(column) => {
                write!(
                    f,
                    "the column '{path}' is {column}, and cannot have a value of type {value}"
                )?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
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

impl Column {
    /// A column of this type.
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
                Type::Text | Type::Bytes => Values::Bytes {
                    ends: vec![0],
                    data: Vec::new(),
                },
                Type::Json | Type::Given(_) => Values::Json {
                    ends: vec![0],
                    text: Text::default(),
                    is_quoted: *kind == Type::Json,
                },
                Type::List(item) => Values::List {
                    ends: vec![0],
                    item: Box::new(Column::new(item)),
                    count: 0,
                    width: item.leaf_count(),
                    null_len: kind.fixed_len(),
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
        let added = len - self.len;
        self.len = len;
        match &mut self.values {
            Values::Bool(bits) => bits.pad(len),
            Values::I64(values) => resize(values, len, 0),
            Values::U64(values) => resize(values, len, 0),
            Values::F64(values) => resize(values, len, 0.0),
            Values::List {
                ends, count, null_len, ..
            } => {
                *count = count.saturating_add(added.saturating_mul(*null_len));
                // Of lists of a fixed size, only the items count.
                resize(ends, len + 1, end_of(*count).unwrap_or(i32::MAX))
            }
            Values::Bytes { ends, .. } | Values::Json { ends, .. } => {
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
        let fits = match Kind::of(value) {
            None if self.kind.is_nullable() => {
                // Of two values with one name in Arrow, one may be null.
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
            // Exact: the type was chosen so that it is.
            (Values::F64(values), View::Int(value)) => push(values, value as f64)?,
            (Values::Bytes { ends, data }, value) => {
                match value {
                    View::Text(text) => append(data, text.as_bytes())?,
                    View::Bytes(bytes) => append(data, bytes)?,
                    View::Base64(bytes) => {
                        let mut text = Text::default();
                        write_base64(&mut text, bytes);
                        append(data, whole(&text)?.as_bytes())?;
                    }
                    _ => return Err(misfit()),
                }
                push(ends, end_of(data.len()).ok_or_else(misfit)?)?;
            }
            (Values::Json { ends, text, is_quoted }, value) => {
                match value {
                    View::Text(value) if !*is_quoted => text.push_str(value),
                    View::Base64(bytes) if !*is_quoted => write_base64(text, bytes),
                    value => write_json(text, value),
                }
                push(ends, end_of(whole(text)?.len()).ok_or_else(misfit)?)?;
            }
            (
                Values::List {
                    ends,
                    item,
                    count,
                    width,
                    ..
                },
                value,
            ) => {
                cell_count = set_items(item, count, *width, value)?;
                push(ends, end_of(*count).ok_or_else(misfit)?)?;
            }
            (Values::Struct { fields, columns }, value) => {
                let is_given = matches!(self.kind, Type::Given(_));
                cell_count = set_fields(fields, columns, index, value, is_given)?;
            }
            _ => return Err(misfit()),
        }
        Ok(cell_count)
    }

    /// Whether its value at an index was set, after which none was. Of natural columns, null is not.
    pub(super) fn has(&self, index: usize) -> bool {
        self.len > index
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
                Values::Json { ends, text, .. } => array::Values::Bytes {
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

/// Sets the items of a list, or the keys and values of a map, after this number of items. Returns the
/// number of their cells.
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

/// Sets the fields of a structure. Returns the number of the cells of items in them.
fn set_fields(
    fields: &Fields,
    columns: &mut [Column],
    index: usize,
    value: View<'_>,
    is_given: bool,
) -> Result<usize, NotAdded> {
    let mut cell_count = 0;
    let mut set = Ok(0);
    let mut hint = 0;
    value.all_fields(|name, value| {
        let number = if is_given {
            given::find(&fields.names, name, hint)
        } else {
            fields.names.find(name, hint)
        };
        set = match number {
            Some(number) if is_given && columns[number].has(index) => Err(NotAdded::SameNames(given::arrow_name(name))),
            Some(number) => {
                hint = number + 1;
                columns[number].set(index, value)
            }
            None if is_given => Ok(0),
            None => Err(NotAdded::misfit(None, value)),
        }
        .map_err(|error| error.within(&format!(".{name}")));
        cell_count += *set.as_ref().unwrap_or(&0);
        set.is_ok()
    });
    set?;
    if is_given {
        let columns = fields.iter().zip(columns);
        let columns = columns.map(|((name, kind), column)| (name, kind, column.has(index)));
        given::check_present(columns).map_err(|error| error.within("."))?;
    }
    Ok(cell_count)
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
