//! Appends rows to columns.

use std::collections::TryReserveError;
use std::mem;
use std::sync::Arc;

use super::column::{Column, Columns};
use super::misfit::NotAdded;
use super::row::Row;
use super::types::{Fields, Type};

/// Appends rows to columns of known types.
#[derive(Debug)]
pub struct Builder {
    fields: Arc<Fields>,
    /// The total number of Parquet columns.
    width: usize,
    cell_count_max: usize,
    /// Whether the types are given. If so, cells without a column are omitted.
    is_given: bool,
    /// The rows since the last batch.
    columns: Columns,
    row_count: usize,
    /// The number of cells in list items.
    item_cell_count: usize,
}

/// Several rows, stored as columns.
#[derive(Debug)]
pub struct Batch {
    /// The number of rows.
    pub row_count: usize,
    /// The columns that contain values, each with its index among all columns.
    pub columns: Vec<(usize, Column)>,
}

impl Builder {
    /// Creates a builder for columns with these names and types.
    ///
    /// A batch of several rows has at most `cell_count_max` cells, including those in list items. A
    /// single row may exceed that.
    pub fn new<N: AsRef<str>>(columns: impl IntoIterator<Item = (N, Type)>, cell_count_max: usize) -> Self {
        let fields = Arc::new(Fields::from_iter(columns));
        let is_given = fields.types.iter().any(|kind| matches!(kind, Type::Given(_)));
        Builder {
            width: fields.types.iter().map(Type::leaf_count).sum(),
            columns: Columns::new(Arc::clone(&fields), is_given),
            is_given,
            fields,
            cell_count_max,
            row_count: 0,
            item_cell_count: 0,
        }
    }

    /// Returns the columns.
    pub fn columns(&self) -> &Fields {
        &self.fields
    }

    /// Returns the number of rows since the last batch.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Appends a row if there is room for it, and returns whether there was. If not, take a batch
    /// and try again.
    ///
    /// # Errors
    ///
    /// Returns an error if a value does not fit its column, if a value has no column, or if there
    /// is not enough memory. On error, the rows since the last batch are lost.
    pub fn add(&mut self, row: &Row<'_>) -> Result<bool, NotAdded> {
        if !self.has_room(row) {
            return Ok(false);
        }
        let added = self.append(row);
        if added.is_err() {
            self.reset();
        }
        added.map(|()| true).map_err(NotAdded::of_row)
    }

    fn append(&mut self, row: &Row<'_>) -> Result<(), NotAdded> {
        let mut hint = 0;
        for &(name, value) in row.cells() {
            self.item_cell_count += self.columns.set_one(self.row_count, name, value, &mut hint)?;
        }
        self.columns.check(self.row_count)?;
        self.row_count += 1;
        Ok(())
    }

    /// Returns the rows since the last batch as columns.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory. On error, the rows are lost.
    pub fn take(&mut self) -> Result<Batch, TryReserveError> {
        let row_count = self.row_count;
        let columns = self.reset().into_iter().enumerate();
        let columns = columns.filter(|(_, column)| !column.is_empty());
        let columns = columns.map(|(number, mut column)| column.finish(row_count).map(|()| (number, column)));
        let columns = columns.collect::<Result<_, TryReserveError>>()?;
        Ok(Batch { row_count, columns })
    }

    /// Returns the columns, leaving empty columns in their place.
    fn reset(&mut self) -> Columns {
        (self.row_count, self.item_cell_count) = (0, 0);
        mem::replace(&mut self.columns, Columns::new(Arc::clone(&self.fields), self.is_given))
    }

    /// Checks whether adding this row keeps the number of cells within the limit. Columns with at
    /// least one value have a cell in each row.
    fn has_room(&self, row: &Row<'_>) -> bool {
        if self.row_count == 0 {
            return true;
        }
        let row_count = self.row_count + 1;
        let Some(cell_count_max) = self.cell_count_max.checked_sub(self.item_cell_count) else {
            return false;
        };
        // The exact count rarely matters, because most tables have few columns.
        if row_count * self.width <= cell_count_max {
            return true;
        }
        let mut hint = 0;
        let mut width = self.columns.width;
        for &(name, _) in row.cells() {
            if let Some(number) = self.fields.names.find(name, hint) {
                hint = number + 1;
                if self.columns.columns[number].is_empty() {
                    width += self.fields.types[number].leaf_count();
                }
            }
        }
        row_count * width <= cell_count_max
    }
}
