//! Decodes the numbers logged by a SwanLab run.

use super::json::document;
use super::{Decode, Decoded, Record, Sink};
use crate::table::fault::{Fault, Part};
use crate::table::json::date_of;
use crate::table::row::Row;
use crate::table::view::{TIMES, View};
use crate::{PayloadReason, SwanlabScalar, Value};

/// Decodes each number into one row.
#[derive(Debug, Clone)]
pub(super) struct Swanlab;

impl Decode for Swanlab {
    fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) -> Decoded {
        // No SwanLab protocol buffer starts with this byte.
        if !record.data.starts_with(b"{") {
            let scalar = SwanlabScalar::decode(record.data)?;
            return Ok(scalar.is_none_or(|scalar| sink.row(&row(&scalar, None))));
        }
        // Releases before 0.8 wrote JSON.
        let model = document(record.data)?;
        if !matches!(model.get("model_type"), Some(Value::Text(name)) if name == "Scalar") {
            return Ok(true);
        }
        let Some((scalar, epoch)) = scalar_of(&model) else {
            let detail = "a scalar in a form that no release writes";
            return Err(Fault::whole(Part::Record, record.data, PayloadReason::NonCanonical, detail).into());
        };
        Ok(sink.row(&row(&scalar, epoch)))
    }
}

fn row<'v>(scalar: &SwanlabScalar<'v>, epoch: Option<i64>) -> Row<'v> {
    Row::new(vec![
        ("key", View::Text(scalar.key)),
        ("step", View::Int(scalar.step)),
        ("epoch", epoch.map_or(View::Null, View::Int)),
        ("value", View::Float(scalar.value)),
        ("time", scalar.timestamp.map_or(View::Null, View::Time)),
    ])
}

/// Returns the number in a model, and the number's epoch. The epoch counts the numbers that the run
/// has logged under this name so far. Returns `None` if the model has an unexpected form.
fn scalar_of<'v>(model: &'v Value<'_>) -> Option<(SwanlabScalar<'v>, Option<i64>)> {
    let data = model.get("data")?;
    let metric = data.get("metric")?;
    let Value::Text(key) = data.get("key")? else {
        return None;
    };
    let timestamp = match metric.get("create_time") {
        None | Some(Value::Null) => None,
        Some(Value::Text(text)) => Some(time(text)?),
        Some(_) => return None,
    };
    let epoch = match data.get("epoch") {
        None | Some(Value::Null) => None,
        Some(value) => Some(int(value)?),
    };
    let scalar = SwanlabScalar {
        key,
        step: int(data.get("step")?)?,
        timestamp,
        value: number(metric.get("data")?)?,
    };
    Some((scalar, epoch))
}

fn int(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Int(number) if number > i64::MIN => Some(number),
        _ => None,
    }
}

/// Returns a number that a double can represent. SwanLab writes non-finite numbers as text.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Int(_) => {
            let number = int(value)?;
            Some(number as f64).filter(|&double| double as i128 == i128::from(number))
        }
        Value::Text(text) if text == "NaN" => Some(f64::NAN),
        Value::Text(text) if text == "INF" => Some(f64::INFINITY),
        _ => None,
    }
}

/// Parses a time in the format of Python's `isoformat` into microseconds since 1970. The text ends
/// with an offset from UTC in whole minutes or with `Z`, as in `2025-06-05T18:32:00.500000+02:00`.
fn time(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let (fraction, offset) = match rest.strip_suffix('Z') {
        Some(fraction) => (fraction, "+00:00"),
        None => rest.split_at(rest.find(['+', '-'])?),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let [offset_hours, offset_minutes] = numbers(&offset[1..], ':', [2, 2])?;
    let micros = match fraction.strip_prefix('.') {
        Some(digits) if digits.len() == 3 => digits_of(digits)? * 1_000,
        Some(digits) if digits.len() == 6 => digits_of(digits)?,
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    // Years start in March, so that the leap day is the last day of a year.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 719_469;
    let is_date = year > 0 && date_of(days) == (year, month, day);
    let is_time = hour.max(offset_hours) < 24 && minute.max(second).max(offset_minutes) < 60;
    let offset_micros = (offset_hours * 60 + offset_minutes) * 60_000_000;
    let local = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros;
    let time = local
        + if offset.starts_with('-') {
            offset_micros
        } else {
            -offset_micros
        };
    (is_date && is_time && TIMES.contains(&time)).then_some(time)
}

/// Parses numbers between separators. `lens` specifies how many digits each number must have.
fn numbers<const COUNT: usize>(text: &str, separator: char, lens: [usize; COUNT]) -> Option<[i64; COUNT]> {
    let mut parts = text.split(separator);
    let mut found = [0; COUNT];
    for (number, len) in found.iter_mut().zip(lens) {
        *number = digits_of(parts.next().filter(|part| part.len() == len)?)?;
    }
    parts.next().is_none().then_some(found)
}

fn digits_of(text: &str) -> Option<i64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
