//! Tables of records. The values in a table determine its columns, which use Arrow's memory layout.
//!
//! A [`Decoder`] passes the rows of each record to a [`Sink`]. Once a [`Learner`] has seen all
//! rows, it knows the [`Type`] of each column. A [`Builder`] appends rows to columns of these
//! types, and returns several rows at a time, as a [`Batch`] of [`Column`]s.
//!
//! ```
//! use cordwood_payload::table::{Builder, Decoder, Facts, Fault, Learner, Limits, Record, Row, Sink, Type, Values};
//!
//! struct Learn(Learner);
//! impl Sink for Learn {
//!     fn row(&mut self, row: &Row<'_>) -> bool {
//!         self.0.add(row)
//!     }
//!     fn fault(&mut self, fault: Fault) {
//!         panic!("{fault}");
//!     }
//! }
//! struct Build(Builder);
//! impl Sink for Build {
//!     fn row(&mut self, row: &Row<'_>) -> bool {
//!         self.0.add(row).unwrap()
//!     }
//!     fn fault(&mut self, fault: Fault) {
//!         panic!("{fault}");
//!     }
//! }
//!
//! let records: [&[u8]; 2] = [br#"{"step": 1, "tags": ["a", "b"]}"#, br#"{"step": 2, "loss": 0.5}"#];
//! let mut learn = Learn(Learner::new(Limits::default()));
//! let mut decoder = Decoder::named("json", Facts::default()).expect("it is a name");
//! for record in records {
//!     assert!(decoder.record(&Record::of(record), &mut learn)?);
//! }
//! let columns = learn.0.types();
//! assert_eq!(columns[1], ("tags".into(), Type::List(Box::new(Type::Text))));
//!
//! let mut build = Build(Builder::new(columns, 1 << 22));
//! for record in records {
//!     assert!(decoder.record(&Record::of(record), &mut build)?);
//! }
//! let batch = build.0.take()?;
//! assert_eq!(batch.row_count, 2);
//! let (number, steps) = &batch.columns[0];
//! assert_eq!((*number, steps.null_count()), (0, 0));
//! assert!(matches!(&steps.values, Values::I64(values) if values[..] == [1, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading the records once is usually enough, because the first records of a log tend to have all
//! columns. The learner keeps learning columns while the builder appends rows. If it
//! [has changed](Learner::take_has_changed), check whether the builder still
//! [has all columns](Fields::has_all). You only have to create the table again if a column is
//! missing.

mod bits;
mod builder;
mod column;
mod decoders;
mod fault;
mod given;
mod json;
mod kind;
mod learner;
mod misfit;
mod names;
mod print;
mod row;
mod tree;
mod types;
mod view;
mod writer;

pub use self::bits::Bits;
pub use self::builder::{Batch, Builder};
pub use self::column::{Column, Columns, Values};
pub use self::decoders::{Decoder, Facts, OneRow, Record, Sink};
pub use self::fault::{Fault, Part};
pub use self::json::BytesAs;
pub use self::learner::{Learner, Limits};
pub use self::misfit::{Misfit, NotAdded};
pub use self::names::Names;
pub use self::row::Row;
pub use self::types::{Fields, Fits, Given, Type};
pub use self::view::View;
pub use self::writer::{Form, Made, Missing, Options, Stop, Table};
