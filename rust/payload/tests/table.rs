//! Tables of records: which columns are learned, and which rows they take.

use std::collections::BTreeSet;
use std::sync::Arc;

use cordwood_payload::table::{
    Builder, Column, Decoder, Facts, Fault, Fits, Given, Learner, Limits, Names, Record, Row, Sink, Type, Values,
};
use cordwood_payload::{Item, Value};

const CELL_COUNT_MAX: usize = 1 << 22;

/// The result of `take` for the row of a record, and the faults of the record.
fn decoded<T>(rows: &str, record: &[u8], take: impl FnMut(&Row<'_>) -> T) -> Result<(Option<T>, Vec<Fault>), Fault> {
    struct One<F, T>(F, Option<T>, Vec<Fault>);

    impl<T, F: FnMut(&Row<'_>) -> T> Sink for One<F, T> {
        fn row(&mut self, row: &Row<'_>) -> bool {
            self.1 = Some(self.0(row));
            true
        }

        fn fault(&mut self, fault: Fault) {
            self.2.push(fault);
        }
    }

    let mut sink = One(take, None, Vec::new());
    assert!(
        Decoder::named(rows, Facts::default())
            .unwrap()
            .record(&Record::of(record), &mut sink)?
    );
    Ok((sink.1, sink.2))
}

#[test]
fn every_decoder_name_creates_a_decoder() {
    for name in Decoder::names() {
        assert!(Decoder::named(name, Facts::default()).is_some(), "{name}");
    }
    assert!(Decoder::named("", Facts::default()).is_none());
}

/// The result of `take` for the row of a document.
fn of_json<T>(record: &str, take: impl FnMut(&Row<'_>) -> T) -> Option<T> {
    decoded("json", record.as_bytes(), take).unwrap().0
}

fn learned(limits: Limits, records: &[&str]) -> Learner {
    let mut learner = Learner::new(limits);
    for record in records {
        assert_eq!(of_json(record, |row| learner.add(row)), Some(true), "{record}");
    }
    learner
}

fn types(records: &[&str]) -> Vec<(String, Type)> {
    learned(Limits::default(), records).types()
}

fn structure<const COUNT: usize>(fields: [(&str, Type); COUNT]) -> Type {
    Type::Struct(std::sync::Arc::new(fields.into_iter().collect()))
}

fn columns(records: &[&str]) -> Vec<(usize, Column)> {
    let mut builder = Builder::new(types(records), CELL_COUNT_MAX);
    for record in records {
        assert_eq!(of_json(record, |row| builder.add(row)), Some(Ok(true)), "{record}");
    }
    let batch = builder.take().unwrap();
    assert_eq!(batch.row_count, records.len());
    batch.columns
}

#[test]
fn a_column_has_the_common_type_of_its_values() {
    let record = r#"{"a": true, "b": 1, "c": 1.5, "d": "x", "e": [1, null], "f": {"g": []}, "h": null, "i": {}}"#;
    let found = types(&[record, "{}"]);
    let expected = [
        ("a", Type::Bool),
        ("b", Type::Int),
        ("c", Type::Float),
        ("d", Type::Text),
        ("e", Type::List(Box::new(Type::Int))),
        ("f", structure([("g", Type::List(Box::new(Type::Text)))])),
        ("h", Type::Text),
        ("i", Type::Json),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn integers_are_stored_as_floats_only_if_no_precision_is_lost() {
    let of = |values: [&str; 2]| {
        types(
            &values
                .map(|value| format!(r#"{{"n": {value}}}"#))
                .each_ref()
                .map(|s| &**s),
        )
    };
    assert_eq!(of(["1", "0.5"])[0].1, Type::Float);
    assert_eq!(of(["9007199254740992", "0.5"])[0].1, Type::Float);
    assert_eq!(of(["9007199254740993", "0.5"])[0].1, Type::Json);
    assert_eq!(of(["9007199254740993", "1"])[0].1, Type::Int);
    assert_eq!(of(["9223372036854775808", "1"])[0].1, Type::Json);
}

#[test]
fn type_conflict_errors_name_the_column_and_its_types() {
    let found = learned(
        Limits::default(),
        &[
            r#"{"a": {"b": [1, "x"]}, "c": 1}"#,
            r#"{"c": 123456789012345678901234567890}"#,
        ],
    );
    let kinds = |kinds: &[&str]| kinds.iter().map(|&kind| kind.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        found.conflicts(),
        [
            ("a.b[]".to_owned(), kinds(&["int", "text"])),
            ("c".to_owned(), kinds(&["int", "int of more than 64 bits"])),
        ]
    );
}

#[test]
fn a_column_with_too_many_fields_is_stored_as_json() {
    let limits = Limits {
        columns: 4,
        fields: 2,
        levels: 2,
    };
    let found = learned(
        limits,
        &[r#"{"a": {"b": 1, "c": 2, "d": 3}}"#, r#"{"e": {"f": [[1]]}}"#],
    );
    assert_eq!(found.overfull(), ["a"]);
    let nested = structure([("f", Type::List(Box::new(Type::Json)))]);
    assert_eq!(found.types(), [("a".to_owned(), Type::Json), ("e".to_owned(), nested)]);
    let mut learner = Learner::new(limits);
    let added = of_json(r#"{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}"#, |row| learner.add(row));
    assert_eq!(added, Some(false));
}

#[test]
fn nulls_are_marked_in_the_validity_bitmap() {
    let found = columns(&[r#"{"a": 1, "b": "x"}"#, r#"{"b": "yz"}"#, r#"{"a": 3, "b": null}"#]);
    let [(0, first), (1, second)]: [_; 2] = found.try_into().unwrap() else {
        panic!("other columns")
    };
    assert_eq!((first.null_count(), second.len()), (1, 3));
    let (validity, values) = first.into_parts();
    assert_eq!(validity, Some(vec![0b101]));
    assert!(matches!(values, Values::I64(values) if values[..] == [1, 0, 3]));
    let (validity, values) = second.into_parts();
    assert_eq!(validity, Some(vec![0b011]));
    assert!(matches!(values, Values::Bytes { offsets, data } if offsets[..] == [0, 1, 3, 3] && data == b"xyz"));
}

#[test]
fn mixed_type_values_are_stored_as_json() {
    let found = columns(&[r#"{"a": [1, {"b": 1e300}]}"#, r#"{"a": "\u00e4\n"}"#]);
    let Values::Bytes { offsets, data } = &found[0].1.values else {
        panic!("{found:?}")
    };
    let text = str::from_utf8(data).unwrap();
    assert_eq!(text, "[1,{\"b\":1e+300}]\"ä\\n\"");
    assert_eq!(offsets[..], [0, 16, 22]);
}

#[test]
fn the_builder_remains_usable_after_a_rejected_row() {
    let mut builder = Builder::new([("a", Type::Int)], CELL_COUNT_MAX);
    let mut add = |record: &str| of_json(record, |row| builder.add(row));
    assert_eq!(add(r#"{"a": 1}"#), Some(Ok(true)));
    let mut misfit = |record: &str| add(record).unwrap().unwrap_err().to_string();
    assert_eq!(
        misfit(r#"{"a": 1.5}"#),
        "the column 'a' is int64, and cannot have a value of type float"
    );
    assert_eq!(
        misfit(r#"{"c": 1}"#),
        "the column 'c' was not there when the columns were found"
    );
    assert_eq!(add(r#"{"a": 2}"#), Some(Ok(true)));
    let batch = builder.take().unwrap();
    assert_eq!(batch.row_count, 1);
    assert!(matches!(&batch.columns[..], [(0, Column { values: Values::I64(values), .. })] if values[..] == [2]));
}

#[test]
fn errors_include_the_path_of_the_value_that_does_not_fit() {
    let kind = structure([("b", Type::List(Box::new(Type::Int)))]);
    let mut builder = Builder::new([("a", kind), ("u", Type::UInt)], CELL_COUNT_MAX);
    let mut refused = |record: &str| {
        let added = of_json(record, |row| builder.add(row));
        added.unwrap().unwrap_err().to_string()
    };
    let message = "the column 'a.b[]' is int64, and cannot have a value of type text";
    assert_eq!(refused(r#"{"a": {"b": [1, "x"]}}"#), message);
    let message = "the column 'a' is struct<b: list<item: int64>>, and cannot have a value of type list";
    assert_eq!(refused(r#"{"a": []}"#), message);
    let message = "the column 'a.c' was not there when the columns were found";
    assert_eq!(refused(r#"{"a": {"c": 1}}"#), message);
    let message = "the column 'u' is uint64, and cannot have a value of type int";
    assert_eq!(refused(r#"{"u": -1}"#), message);
    let message = "the column 'u' is uint64, and cannot have a value of type int of more than 64 bits";
    assert_eq!(refused(r#"{"u": 18446744073709551616}"#), message);
}

#[test]
fn columns_can_hold_very_large_integers_and_byte_strings() {
    let items: [Item<'_>; 2] = [
        ("n".into(), Value::Huge("18446744073709551615".into())),
        ("b".into(), Value::Bytes(b"\xff".into())),
    ];
    let mut learner = Learner::new(Limits::default());
    assert!(learner.add(&Row::of_items(&items)));
    assert_eq!(
        learner.types().into_iter().map(|(_, kind)| kind).collect::<Vec<_>>(),
        [Type::Json, Type::Bytes]
    );
    let columns = [("n", Type::UInt), ("b", Type::Bytes)];
    let mut builder = Builder::new(columns, CELL_COUNT_MAX);
    assert_eq!(builder.add(&Row::of_items(&items)), Ok(true));
    let columns = builder.take().unwrap().columns;
    assert!(matches!(&columns[0].1.values, Values::U64(values) if values[..] == [u64::MAX]));
    assert!(matches!(&columns[1].1.values, Values::Bytes { data, .. } if data == b"\xff"));
}

#[test]
fn columns_follow_the_order_of_the_selection() {
    let record = r#"{"a": {"b": {"c": 1, "d.e": 2}}, "a.b": {"c": 3}, "x.y": 4, "z": null}"#;
    let names = ["z", "x.y", "a.b.c", "a.b.d.e", "a.b", "missing", "x.z"];
    let selection: Names = names.into_iter().collect();
    let mut learner = Learner::new(Limits::default());
    of_json(record, |row| learner.add(&row.select(&selection)));
    let found: Vec<String> = learner.types().into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, ["z", "x.y", "a.b.c", "a.b.d.e", "a.b"]);
    let mut builder = Builder::new([("a.b.c", Type::Int)], CELL_COUNT_MAX);
    let selection: Names = ["a.b.c"].into_iter().collect();
    of_json(record, |row| builder.add(&row.select(&selection)));
    // The longest name of a column counts.
    assert!(matches!(&builder.take().unwrap().columns[0].1.values, Values::I64(values) if values[..] == [3]));
}

#[test]
fn a_batch_exceeds_the_cell_limit_only_if_a_single_row_is_too_large() {
    let mut builder = Builder::new([("a", Type::List(Box::new(Type::Int)))], 6);
    let mut add = |record: &str| of_json(record, |row| builder.add(row));
    assert_eq!(add(r#"{"a": [1, 2]}"#), Some(Ok(true)));
    assert_eq!(add(r#"{"a": [3]}"#), Some(Ok(true)));
    assert_eq!(add("{}"), Some(Ok(true)));
    assert_eq!(add("{}"), Some(Ok(false)));
    assert_eq!(builder.take().unwrap().row_count, 3);
    let record = r#"{"a": [1, 2, 3, 4, 5, 6, 7]}"#;
    assert_eq!(of_json(record, |row| builder.add(row)), Some(Ok(true)));
    assert_eq!(builder.row_count(), 1);
}

#[test]
fn invalid_document_errors_include_the_expected_token_and_offset() {
    let fault = |record: &[u8]| decoded("json", record, |_| ()).unwrap_err().to_string();
    for (record, text) in [
        (
            &b"{"[..],
            "not JSON: expected a name in quotation marks (0 bytes at offset 1 of the payload)",
        ),
        (b"\xff", "text that is not UTF-8 (1 byte at offset 0 of the payload)"),
        (b"a\xff", "text that is not UTF-8 (1 byte at offset 1 of the payload)"),
        (b"", "not JSON: expected a value (0 bytes at offset 0 of the payload)"),
        (
            b"{\"a\" 1}",
            "not JSON: expected a colon (2 bytes at offset 5 of the payload)",
        ),
        (
            b"[1 2]",
            "not JSON: expected a comma or a bracket (2 bytes at offset 3 of the payload)",
        ),
        (
            b"{\"a\": 1 2}",
            "not JSON: expected a comma or a brace (2 bytes at offset 8 of the payload)",
        ),
        (
            b"1 2",
            "not JSON: expected the end of the text (1 byte at offset 2 of the payload)",
        ),
        (
            b"\"a",
            "not JSON: expected a quotation mark (0 bytes at offset 2 of the payload)",
        ),
        (
            b"\"\\x\"",
            "not JSON: expected an escape (2 bytes at offset 2 of the payload)",
        ),
        (
            b"\"\\u12\"",
            "not JSON: expected four hexadecimal digits (3 bytes at offset 3 of the payload)",
        ),
        (
            b"01",
            "not JSON: expected no digit after a 0 (1 byte at offset 1 of the payload)",
        ),
        (b"1.", "not JSON: expected a digit (0 bytes at offset 2 of the payload)"),
        (
            br#"{"a": 1, "a": 2}"#,
            "not JSON: two values have the name 'a' (16 bytes at offset 0 of the payload)",
        ),
        (
            b"[1e999]",
            "the number 1e999, which is beyond the range of a double (6 bytes at offset 1 of the payload)",
        ),
    ] {
        assert_eq!(fault(record), text, "{record:?}");
    }
    let deep = fault(&b"[".repeat(101));
    assert_eq!(
        deep,
        "JSON of more than 100 levels (101 bytes at offset 0 of the payload)"
    );
    let long = fault(&b"1".repeat(4_301));
    assert_eq!(
        long,
        "an integer of 4301 digits (4301 bytes at offset 0 of the payload)"
    );
}

#[test]
fn undecodable_records_produce_no_row() {
    assert!(decoded("entity", b"\x01", |_| ()).is_err());
    assert_eq!(of_json("[1]", |row| row.has("__value__")), Some(true));
}

/// A given type.
fn given(name: &str, made_as: Type, fits: Fits, is_nullable: bool) -> Type {
    Type::Given(Arc::new(Given {
        name: name.to_owned(),
        made_as,
        fits,
        is_nullable,
    }))
}

/// The columns of given types, or the message of the first row that is not added.
fn given_columns<const COUNT: usize>(types: [(&str, Type); COUNT], records: &[&str]) -> Result<Vec<Column>, String> {
    let mut builder = Builder::new(types, CELL_COUNT_MAX);
    for record in records {
        let added = of_json(record, |row| builder.add(row)).unwrap();
        assert!(added.map_err(|error| error.to_string())?, "{record}");
    }
    Ok(builder
        .take()
        .unwrap()
        .columns
        .into_iter()
        .map(|(_, array)| array)
        .collect())
}

#[test]
fn a_typed_column_accepts_only_values_it_can_store_unchanged() {
    let int8 = || given("int8", Type::Int, Fits::Integers(8), true);
    let found = given_columns(
        [("a", int8())],
        &[r#"{"a": -128, "b": "x"}"#, r#"{"a": 127.0}"#, r#"{"a": null}"#],
    );
    let [array] = &found.unwrap()[..] else { panic!() };
    assert!(matches!(&array.values, Values::I64(values) if values[..2] == [-128, 127]));
    assert_eq!((array.len(), array.null_count()), (3, 1));

    let text = given("string", Type::Json, Fits::Same, true);
    let found = given_columns([("a", text)], &[r#"{"a": "x\""}"#, r#"{"a": ["x", 1]}"#]).unwrap();
    assert!(matches!(&found[0].values, Values::Bytes { data, .. } if data == br#"x"["x",1]"#));

    for (kind, value, message) in [
        (
            int8(),
            "128",
            "int8, and cannot have a value of type int: 128 would be changed",
        ),
        (
            int8(),
            "0.5",
            "int8, and cannot have a value of type float: 0.5 would be changed",
        ),
        (int8(), "true", "int8, and cannot have a value of type bool"),
        (
            given("float", Type::Float, Fits::Floats(32), true),
            "0.1",
            "float, and cannot have a value of type float: 0.1 would be changed",
        ),
        (
            given("uint64", Type::UInt, Fits::Integers(64), true),
            "18446744073709551616",
            "uint64, and cannot have a value of type int of more than 64 bits: 18446744073709551616 would be changed",
        ),
        (
            given("date", Type::Bool, Fits::Nothing, true),
            "true",
            "date, and cannot have a value of type bool",
        ),
        (
            given("bool", Type::Bool, Fits::Same, false),
            "null",
            "bool, and cannot have a value of type null",
        ),
    ] {
        let record = format!(r#"{{"a": {value}}}"#);
        let found = given_columns([("a", kind)], &[&record]);
        assert_eq!(found.unwrap_err(), format!("the column 'a' is {message}"), "{record}");
    }
}

#[test]
fn every_row_needs_a_value_in_a_non_nullable_column() {
    let inside = given("bool", Type::Bool, Fits::Same, false);
    let outside = given("struct", structure([("x", inside.clone())]), Fits::Same, true);
    let message = |name| format!("the column '{name}' is bool, and cannot have a value of type null");
    assert_eq!(given_columns([("a", inside)], &["{}"]).unwrap_err(), message("a"));
    let found = given_columns([("a", outside.clone())], &[r#"{"a": {}}"#]);
    assert_eq!(found.unwrap_err(), message("a.x"));
    assert_eq!(
        given_columns([("a", outside)], &["{}", r#"{"a": {"x": true}}"#]).unwrap()[0].null_count(),
        1
    );
}

#[test]
fn column_names_that_collide_in_arrow_are_rejected() {
    let any = || given("string", Type::Json, Fits::Same, true);
    let record = r#"{"\u0000": null, "\\x00": 1}"#;
    let message = r"two values have the name '\x00' in a table, where some characters are escaped";
    assert_eq!(given_columns([(r"\x00", any())], &[record]).unwrap_err(), message);
    let inside = given("struct", structure([(r"\x00", any())]), Fits::Same, true);
    let found = given_columns([("a", inside)], &[&format!(r#"{{"a": {record}}}"#)]);
    assert_eq!(found.unwrap_err(), message);
    assert_eq!(given_columns([("b", any())], &[record]).unwrap().len(), 0);
}

#[test]
fn a_null_in_a_fixed_size_list_column_still_occupies_its_items() {
    let item = given("int64", Type::Int, Fits::Integers(64), true);
    let pairs = given("pairs", Type::List(Box::new(item)), Fits::Count(2), true);
    let records = ["{}", r#"{"a": [1, null]}"#, "{}", r#"{"a": [3, 4]}"#, "{}"];
    let found = given_columns([("a", pairs.clone())], &records).unwrap();
    let Values::List { offsets, items, .. } = &found[0].values else {
        panic!()
    };
    assert_eq!((&offsets[..], items.len()), (&[0, 2, 4, 6, 8, 10][..], 10));
    assert!(matches!(&items.values, Values::I64(values) if values[..] == [0, 0, 1, 0, 0, 0, 3, 4, 0, 0]));
    let message = "the column 'a' is pairs, and cannot have a value of type list: it has 3 items";
    assert_eq!(
        given_columns([("a", pairs)], &[r#"{"a": [1, 2, 3]}"#]).unwrap_err(),
        message
    );
}

#[test]
fn a_map_column_is_stored_as_a_list_of_keys_and_values() {
    let key = given("string", Type::Json, Fits::Same, false);
    let value = given("bool", Type::Bool, Fits::Same, true);
    let pair = structure([("key", key), ("value", value)]);
    let map = given("map", Type::List(Box::new(pair)), Fits::Map, true);
    let found = given_columns(
        [("a", map.clone())],
        &[r#"{"a": {"x": true, "y": null}}"#, r#"{"a": {}}"#],
    )
    .unwrap();
    let Values::List { offsets, items, .. } = &found[0].values else {
        panic!()
    };
    assert_eq!((&offsets[..], items.len()), (&[0, 2, 2][..], 2));
    let message = "the column 'a[].value' is bool, and cannot have a value of type int";
    assert_eq!(
        given_columns([("a", map.clone())], &[r#"{"a": {"x": 1}}"#]).unwrap_err(),
        message
    );
    let message = "the column 'a' is map, and cannot have a value of type list";
    assert_eq!(given_columns([("a", map)], &[r#"{"a": []}"#]).unwrap_err(), message);
}
