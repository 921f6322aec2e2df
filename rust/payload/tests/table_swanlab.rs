//! The rows of the numbers that a run of SwanLab has logged.

mod rows;

use cordwood_payload::table::{Decoder, Facts, Fault, Record};

/// The only row of a record, or its fault; `None` if it has neither.
fn line(record: &[u8]) -> Option<String> {
    let mut lines = rows::lines("swanlab-history", &Facts::default(), &[Record::of(record)]);
    assert!(lines.len() <= 1, "{lines:?}");
    lines.pop()
}

/// The only row of a record, or `None` for a fault.
fn row(record: &[u8]) -> Option<String> {
    line(record).filter(|line| !line.starts_with("no row: "))
}

fn value(record: &[u8]) -> Result<Option<String>, Fault> {
    rows::value(
        &mut Decoder::named("swanlab-history", Facts::default()).unwrap(),
        record,
    )
}

/// A number in JSON, whose metric and other fields are given.
fn scalar(metric: &str, fields: &str) -> String {
    format!("{{\"model_type\": \"Scalar\", \"data\": {{\"metric\": {metric}, {fields}}}}}\n")
}

const FIELDS: &str = r#""key": "loss", "step": 3, "epoch": 4"#;
const NUMBER: &str = r#"{"index": 3, "data": 0.5}"#;
const FAULT: &str = "a scalar in a form that no release writes";

/// Whether a number in JSON has a row.
fn is_read(metric: &str, fields: &str) -> bool {
    let record = scalar(metric, fields);
    let line = line(record.as_bytes()).unwrap();
    if let Some(fault) = line.strip_prefix("no row: ") {
        let place = format!("({} bytes at offset 0 of the payload)", record.len());
        assert_eq!(fault, format!("{FAULT} {place}"));
        assert_eq!(value(record.as_bytes()).unwrap_err().to_string(), fault);
        return false;
    }
    true
}

#[test]
fn protobuf_scalars_have_no_epoch() {
    // Bytes that the messages of swanlab 0.10.3 serialise to: with a time, and without one.
    let without = b"\x6a\x13\x0a\x04loss\x10\x03\x2a\x09\x09\0\0\0\0\0\0\xe0\x3f";
    let expected = r#"key: "loss", step: 3, epoch: null, value: 0.5, time: null"#;
    assert_eq!(row(without).as_deref(), Some(expected));
    assert_eq!(value(without), Ok(Some(format!("{{{expected}}}"))));
    let with = b"\x6a\x0e\x22\x0c\x08\xf0\x86\x8c\xd8\x06\x10\x80\xca\xb5\xee\x01";
    let expected = r#"key: "", step: 0, epoch: null, value: 0.0, time: time 1795359600500000"#;
    assert_eq!(row(with).as_deref(), Some(expected));
}

#[test]
fn json_numbers_are_read_as_doubles() {
    let number = |data: &str| {
        let row = row(scalar(&format!("{{\"data\": {data}}}"), FIELDS).as_bytes())?;
        let (_, value) = row.split_once("value: ")?;
        Some(value.strip_suffix(", time: null")?.to_owned())
    };
    for (data, expected) in [
        ("0.5", "0.5"),
        ("-0", "0.0"),
        ("1152921504606846976", "1.152921504606847e18"),
        ("9007199254740992", "9007199254740992.0"),
        ("NaN", "NaN"),
        ("-Infinity", "-inf"),
        (r#""NaN""#, "NaN"),
        (r#""INF""#, "inf"),
    ] {
        assert_eq!(number(data).as_deref(), Some(expected), "{data}");
    }
    for data in [
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        r#""1""#,
        r#""inf""#,
        "true",
        "null",
        "[1]",
    ] {
        assert!(!is_read(&format!("{{\"data\": {data}}}"), FIELDS), "{data}");
    }
}

#[test]
fn a_swanlab_scalar_in_an_unknown_form_is_a_fault() {
    assert!(is_read(NUMBER, FIELDS));
    assert!(is_read(
        NUMBER,
        r#""key": "", "step": -9223372036854775807, "epoch": null"#
    ));
    assert!(is_read(NUMBER, r#""key": "", "step": 0"#));
    for fields in [
        r#""step": 3"#,
        r#""key": "loss""#,
        r#""key": null, "step": 3"#,
        r#""key": "loss", "step": "3""#,
        r#""key": "loss", "step": 3.0"#,
        r#""key": "loss", "step": true"#,
        r#""key": "loss", "step": -9223372036854775808"#,
        r#""key": "loss", "step": 9223372036854775808"#,
        r#""key": "loss", "step": 3, "epoch": 1.5"#,
    ] {
        assert!(!is_read(NUMBER, fields), "{fields}");
    }
    for metric in ["1", "{}", "[]", "null", r#"{"data": 1, "create_time": 1.5}"#] {
        assert!(!is_read(metric, FIELDS), "{metric}");
    }
    let no_data: &[&[u8]] = &[
        br#"{"model_type": "Scalar"}"#,
        br#"{"model_type": "Scalar", "data": "metric"}"#,
    ];
    for record in no_data {
        assert_eq!(row(record), None);
    }
}

#[test]
fn times_need_a_utc_offset_and_a_year_in_range() {
    let micros = |time: &str| {
        let row = row(scalar(&format!("{{\"data\": 1, \"create_time\": \"{time}\"}}"), FIELDS).as_bytes())?;
        let (_, micros) = row.split_once("time: time ")?;
        Some(micros.parse::<i64>().unwrap())
    };
    // As `datetime` of Python has them.
    for (time, expected) in [
        ("2025-06-05T16:32:00+00:00", 1_749_141_120_000_000),
        ("2025-06-05T18:32:00.500000+02:00", 1_749_141_120_500_000),
        ("2025-06-05T11:02:00.123-05:30", 1_749_141_120_123_000),
        ("1970-01-01T00:00:00+00:00", 0),
        ("1969-12-31T23:59:59.999999+00:00", -1),
        ("2000-02-29T00:00:00+00:00", 951_782_400_000_000),
        ("2024-03-01T00:00:00+00:00", 1_709_251_200_000_000),
        ("1900-03-01T00:00:00+00:00", -2_203_891_200_000_000),
        ("0001-01-01T00:00:00+00:00", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999+00:00", 253_402_300_799_999_999),
    ] {
        assert_eq!(micros(time), Some(expected), "{time}");
    }
    for time in [
        "yesterday",
        "",
        "2025-06-05",
        "2025-06-05T16:32:00",
        "2025-06-05T16:32:00+24:00",
        "2025-06-05T16:32:00+00:60",
        "2025-06-05T16:32:00+00:00:00",
        "2025-06-05T16:32:00.+00:00",
        "2025-06-05T16:32:00.5+00:00",
        "2025-06-05T24:00:00+00:00",
        "2025-06-05T16:60:00+00:00",
        "2025-06-05T16:32:60+00:00",
        "2025-06-5T016:32:00+00:00",
        "2025-02-29T00:00:00+00:00",
        "1900-02-29T00:00:00+00:00",
        "2025-04-31T00:00:00+00:00",
        "2025-13-01T00:00:00+00:00",
        "2025-00-01T00:00:00+00:00",
        "2025-01-00T00:00:00+00:00",
        "0000-01-01T00:00:00+00:00",
        "0001-01-01T00:00:00+09:00",
        "9999-12-31T23:59:59-00:01",
        "+025-06-05T16:32:00+00:00",
        "2025-06-05T16:32:00+-1:00",
        "2025-06-0\u{e4}T16:32:00+00:00",
    ] {
        assert_eq!(micros(time), None, "{time}");
    }
}

#[test]
fn consecutive_days_become_consecutive_dates_even_in_leap_years() {
    for (years, start, end) in [
        (1896..1905, -2_335_219_200_000_000, -2_051_222_400_000_000),
        (1996..2005, 820_454_400_000_000, 1_104_537_600_000_000),
    ] {
        let mut expected: i64 = start;
        for (year, month, day) in years.flat_map(|year| (0..372).map(move |at| (year, at / 31 + 1, at % 31 + 1))) {
            let time = format!("{year:04}-{month:02}-{day:02}T00:00:00+00:00");
            let record = scalar(&format!("{{\"data\": 1, \"create_time\": \"{time}\"}}"), FIELDS);
            if let Some(row) = row(record.as_bytes()) {
                assert!(row.ends_with(&format!("time: time {expected}")), "{time} {row}");
                expected += 86_400_000_000;
            }
        }
        assert_eq!(expected, end);
    }
}

#[test]
fn other_kinds_of_swanlab_records_produce_no_rows() {
    let records: &[&[u8]] = &[
        b"",
        b"{}",
        br#"{"model_type": "Header", "data": {}}"#,
        br#"{"model_type": 1}"#,
    ];
    for record in records {
        assert_eq!(line(record), None);
        assert_eq!(value(record), Ok(None));
    }
}

#[test]
fn a_swanlab_record_in_an_unknown_encoding_is_a_fault() {
    let fault = |record: &[u8]| line(record).unwrap();
    assert_eq!(
        fault(b"{}x"),
        "no row: not JSON: expected the end of the text (1 byte at offset 2 of the payload)"
    );
    assert_eq!(
        fault(br#"{"a":1,"a":2}"#),
        "no row: not JSON: two values have the name 'a' (13 bytes at offset 0 of the payload)"
    );
    assert_eq!(
        fault(b"\x6a\x03\x0a\x01\xff"),
        "no row: text that is not UTF-8 (3 bytes at offset 2 of the payload)"
    );
}
