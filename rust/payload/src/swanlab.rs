//! Decodes a record from the `.swanlab` file of a SwanLab run (SwanLab 0.8 or later).
//!
//! The record is a protocol buffer, `swanlab.record.v1.Record`. This module parses it by hand and
//! only reads the parts that are needed. Earlier releases wrote JSON.

use super::error::PayloadError;
use super::proto::{Message, fields};
use super::wandb::microseconds;

// These field numbers are from `swanlab/proto` in swanlab 0.10.3.

/// A number logged by a SwanLab run.
///
/// ```
/// use cordwood_payload::SwanlabScalar;
///
/// let record = b"\x6a\x13\x0a\x04loss\x10\x03\x2a\x09\x09\0\0\0\0\0\0\xe0\x3f";
/// let scalar = SwanlabScalar::decode(record)?.unwrap();
/// assert_eq!((scalar.key, scalar.step, scalar.value), ("loss", 3, 0.5));
/// # Ok::<(), cordwood_payload::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SwanlabScalar<'a> {
    /// The name of the number.
    pub key: &'a str,
    /// The step.
    pub step: i64,
    /// When the number was logged, in microseconds since 1970-01-01 00:00 UTC.
    pub timestamp: Option<i64>,
    /// The number.
    pub value: f64,
}

impl<'a> SwanlabScalar<'a> {
    /// Decodes a record. Returns `None` if the record doesn't contain a scalar.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a `Record`. Also fails if a value is repeated, because the rules
    /// of [the crate](crate) forbid that.
    pub fn decode(record: &'a [u8]) -> Result<Option<Self>, PayloadError> {
        let (mut message, mut scalar) = (Message::new(record), None);
        fields!(message, field => { 13 => scalar, field.message().and_then(Self::read) });
        Ok(scalar)
    }

    fn read(mut message: Message<'a>) -> Result<Self, PayloadError> {
        let (mut key, mut step, mut timestamp, mut value) = (None, None, None, None);
        fields!(message, field => {
            1 => key, field.text(),
            2 => step, field.varint(),
            4 => timestamp, microseconds(&field),
            5 => value, field.message().and_then(read_number),
        });
        Ok(SwanlabScalar {
            key: key.unwrap_or_default(),
            step: step.unwrap_or_default() as i64,
            timestamp,
            value: value.unwrap_or_default(),
        })
    }
}

/// Reads the number in a `ScalarValue`.
fn read_number(mut message: Message<'_>) -> Result<f64, PayloadError> {
    let mut number = None;
    fields!(message, field => { 1 => number, field.double() });
    Ok(number.unwrap_or_default())
}
