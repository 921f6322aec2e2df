//! Appends rows to columns.

use std::collections::TryReserveError;

use super::array::Array;
use super::column::{Column, NotAdded};
use super::given;
use super::row::Row;
use super::types::{Fields, Type};

/// Appends rows to columns of known types.
#[derive(Debug)]
pub struct Builder {
    fields: Fields,
    /// The number of Parquet columns of all of them.
    width: usize,
    cell_count_max: usize,
    /// Whether the types are given: other columns are left out.
    is_given: bool,
    rows: Pending,
}

/// The rows since the last batch.
#[derive(Debug, Default)]
struct Pending {
    row_count: usize,
    /// `None` for a column without values.
    columns: Vec<Option<Column>>,
    /// The number of Parquet columns of these columns.
    width: usize,
    /// The number of cells of items in lists.
    item_cell_count: usize,
}

/// Some rows, as columns.
#[derive(Debug)]
pub struct Batch {
    /// The number of rows.
    pub row_count: usize,
    /// Those columns that have values, each with its number among all.
    pub columns: Vec<(usize, Array)>,
}

impl Builder {
    /// A builder of columns with these names and types.
    ///
    /// A batch has at most `cell_count_max` cells, those of items in lists included, but a single row
    /// may have more.
    pub fn new<N: AsRef<str>>(columns: impl IntoIterator<Item = (N, Type)>, cell_count_max: usize) -> Self {
        let fields = Fields::from_iter(columns);
        Builder {
            width: fields.types.iter().map(Type::leaf_count).sum(),
            is_given: fields.types.iter().any(|kind| matches!(kind, Type::Given(_))),
            fields,
            cell_count_max,
            rows: Pending::default(),
        }
    }

    /// The columns.
    pub fn columns(&self) -> &Fields {
        &self.fields
    }

    /// The number of rows since the last batch.
    pub fn row_count(&self) -> usize {
        self.rows.row_count
    }

    /// Appends a row. Returns whether there is room for it: if not, a batch must be taken first.
    ///
    /// # Errors
    ///
    /// A value does not fit its column, or is in none, or there is not enough memory. The rows since
    /// the last batch are then lost.
    pub fn add(&mut self, row: &Row<'_>) -> Result<bool, NotAdded> {
        if !self.has_room(row) {
            return Ok(false);
        }
        let added = self.append(row);
        if added.is_err() {
            self.rows = Pending::default();
        }
        added.map(|()| true)
    }

    /// Returns the rows since the last batch as columns.
    ///
    /// # Errors
    ///
    /// There is not enough memory. The rows are then lost.
    pub fn take(&mut self) -> Result<Batch, TryReserveError> {
        let Pending { row_count, columns, .. } = std::mem::take(&mut self.rows);
        let columns = columns.into_iter().enumerate();
        let columns = columns.filter_map(|(number, column)| Some((number, column?)));
        let columns = columns.map(|(number, column)| Ok((number, column.finish(row_count)?)));
        let columns = columns.collect::<Result<_, TryReserveError>>()?;
        Ok(Batch { row_count, columns })
    }

    /// Whether the number of cells stays within the limit with one more row. A column with any
    /// value has a cell in each row.
    fn has_room(&self, row: &Row<'_>) -> bool {
        let rows = &self.rows;
        if rows.row_count == 0 {
            return true;
        }
        let row_count = rows.row_count + 1;
        let Some(cell_count_max) = self.cell_count_max.checked_sub(rows.item_cell_count) else {
            return false;
        };
        // There are usually too few columns for the rest to matter.
        if row_count * self.width <= cell_count_max {
            return true;
        }
        let mut hint = 0;
        let mut width = rows.width;
        for &(name, _) in row.cells() {
            if let Some(number) = self.fields.names.find(name, hint) {
                hint = number + 1;
                if rows.columns[number].is_none() {
                    width += self.fields.types[number].leaf_count();
                }
            }
        }
        row_count * width <= cell_count_max
    }

    fn append(&mut self, row: &Row<'_>) -> Result<(), NotAdded> {
        let rows = &mut self.rows;
        if rows.columns.is_empty() {
            rows.columns.resize_with(self.fields.types.len(), || None);
        }
        let mut hint = 0;
        for &(name, value) in row.cells() {
            let number = if self.is_given {
                given::find(&self.fields.names, name, hint)
            } else {
                self.fields.names.find(name, hint)
            };
            let set = match number {
                Some(number) => {
                    hint = number + 1;
                    let kind = &self.fields.types[number];
                    let column = rows.columns[number].get_or_insert_with(|| {
                        rows.width += kind.leaf_count();
                        Column::new(kind)
                    });
                    if self.is_given && column.has(rows.row_count) {
                        return Err(NotAdded::SameNames(given::arrow_name(name)));
                    }
                    column.set(rows.row_count, value)
                }
                None if self.is_given => continue,
                None => Err(NotAdded::misfit(None, value)),
            };
            rows.item_cell_count += set.map_err(|error| error.within(name))?;
        }
        if self.is_given {
            let has = |column: &Option<Column>| column.as_ref().is_some_and(|column| column.has(rows.row_count));
            let columns = self.fields.iter().zip(&rows.columns);
            given::check_present(columns.map(|((name, kind), column)| (name, kind, has(column))))?;
        }
        rows.row_count += 1;
        Ok(())
    }
}
