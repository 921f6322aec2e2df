//! Tables of records: the columns that their values need, and those columns as Arrow lays them out.
//!
//! A [`Rows`] says what the records are, and makes a [`Row`] of each. A [`Learner`] sees all rows,
//! and knows the [`Type`] of each column then. A [`Builder`] appends rows to columns of these types,
//! and returns some at a time as a [`Batch`] of [`Array`]s.
//!
//! ```
//! use cordwood_payload::table::{Builder, Learner, Limits, Rows, Type, Values};
//!
//! let records: [&[u8]; 2] = [br#"{"step": 1, "tags": ["a", "b"]}"#, br#"{"step": 2, "loss": 0.5}"#];
//! let mut learner = Learner::new(Limits::default());
//! for record in records {
//!     let decoded = Rows::Json.of(record, |row| learner.add(row));
//!     assert_eq!((decoded.row, decoded.has_fault), (Some(true), false));
//! }
//! let columns = learner.types();
//! assert_eq!(columns[1], ("tags".into(), Type::List(Box::new(Type::Text))));
//!
//! let mut builder = Builder::new(columns.into_iter().map(|(name, kind)| (name, Some(kind))), 1 << 22);
//! for record in records {
//!     let added = Rows::Json.of(record, |row| builder.add(row)).row.transpose()?;
//!     assert_eq!(added, Some(true));
//! }
//! let batch = builder.take()?;
//! assert_eq!(batch.row_count, 2);
//! let (number, steps) = &batch.columns[0];
//! assert_eq!((*number, steps.null_count), (0, 0));
//! assert!(matches!(&steps.values, Values::I64(values) if values[..] == [1, 2]));
//! # Ok::<(), cordwood_payload::table::NotAdded>(())
//! ```
//!
//! One reading of the records is usually enough: a learner that has seen the first of them mostly
//! knows the columns of all. It goes on learning while their rows are added, and says when it
//! [has learned](Learner::take_has_changed) of a column that the builder
//! [does not have](Builder::has_all). Only then must the table be made again.

mod array;
mod bits;
mod builder;
mod column;
mod json;
mod learner;
mod names;
mod number;
mod rows;
mod tree;
mod types;
mod view;

pub use self::array::{Array, Values};
pub use self::builder::{Batch, Builder};
pub use self::column::{Misfit, NotAdded};
pub use self::learner::{Learner, Limits};
pub use self::rows::{Decoded, Row, Rows, Selection};
pub use self::tree::{Item, Value};
pub use self::types::{Fields, Type};
