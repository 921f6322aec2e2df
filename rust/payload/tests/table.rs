//! Tables of records: which columns are learned, and which rows they take.

use std::collections::BTreeSet;

use cordwood_payload::table::{
    Array, Builder, Decoded, Item, Learner, Limits, Row, Rows, Selection, Type, Value, Values,
};

const CELL_COUNT_MAX: usize = 1 << 22;

fn learned(limits: Limits, records: &[&str]) -> Learner {
    let mut learner = Learner::new(limits);
    for record in records {
        let decoded = Rows::Json.of(record.as_bytes(), |row| learner.add(row));
        assert_eq!(decoded.row, Some(true), "{record}");
    }
    learner
}

fn types(records: &[&str]) -> Vec<(String, Type)> {
    learned(Limits::default(), records).types()
}

fn structure<const COUNT: usize>(fields: [(&str, Type); COUNT]) -> Type {
    Type::Struct(std::sync::Arc::new(fields.into_iter().collect()))
}

fn columns(records: &[&str]) -> Vec<(usize, Array)> {
    let columns = types(records).into_iter().map(|(name, kind)| (name, Some(kind)));
    let mut builder = Builder::new(columns, CELL_COUNT_MAX);
    for record in records {
        let decoded = Rows::Json.of(record.as_bytes(), |row| builder.add(row));
        assert_eq!(decoded.row, Some(Ok(true)), "{record}");
    }
    let batch = builder.take().unwrap();
    assert_eq!(batch.row_count, records.len());
    batch.columns
}

#[test]
fn a_column_has_the_one_type_that_all_its_values_have() {
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
fn integers_are_stored_as_floats_only_without_loss() {
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
fn a_conflict_names_the_column_and_the_types() {
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
fn a_column_with_too_many_fields_is_json_and_takes_no_room_from_the_others() {
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
    let decoded = Rows::Json.of(br#"{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}"#, |row| learner.add(row));
    assert_eq!(decoded.row, Some(false));
}

#[test]
fn nulls_are_marked_in_a_column_that_has_any() {
    let found = columns(&[r#"{"a": 1, "b": "x"}"#, r#"{"b": "yz"}"#, r#"{"a": 3, "b": null}"#]);
    let [(0, first), (1, second)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((first.null_count, first.validity.as_deref()), (1, Some(&[0b101][..])));
    assert!(matches!(&first.values, Values::I64(values) if values[..] == [1, 0, 3]));
    assert_eq!((second.len, second.validity.as_deref()), (3, Some(&[0b011][..])));
    assert!(matches!(&second.values, Values::Bytes { offsets, data } if offsets[..] == [0, 1, 3, 3] && data == b"xyz"));
}

#[test]
fn a_value_of_several_types_is_its_json() {
    let found = columns(&[r#"{"a": [1, {"b": 1e300}]}"#, r#"{"a": "\u00e4\n"}"#]);
    let Values::Bytes { offsets, data } = &found[0].1.values else {
        panic!("{found:?}")
    };
    let text = str::from_utf8(data).unwrap();
    assert_eq!(text, "[1,{\"b\":1e+300}]\"ä\\n\"");
    assert_eq!(offsets[..], [0, 16, 22]);
}

#[test]
fn a_row_that_does_not_fit_is_refused_and_the_builder_can_still_be_used() {
    let mut builder = Builder::new([("a", Some(Type::Int)), ("b", None)], CELL_COUNT_MAX);
    let mut add = |record: &str| Rows::Json.of(record.as_bytes(), |row| builder.add(row)).row;
    assert_eq!(add(r#"{"a": 1, "b": "not wanted"}"#), Some(Ok(true)));
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
    assert!(matches!(&batch.columns[..], [(0, Array { values: Values::I64(values), .. })] if values[..] == [2]));
}

#[test]
fn a_value_that_does_not_fit_is_named_by_its_place() {
    let kind = structure([("b", Type::List(Box::new(Type::Int)))]);
    let mut builder = Builder::new([("a", Some(kind)), ("u", Some(Type::UInt))], CELL_COUNT_MAX);
    let mut refused = |record: &str| {
        let added = Rows::Json.of(record.as_bytes(), |row| builder.add(row)).row;
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
fn values_of_rows_that_no_record_has_are_columns_too() {
    let items: [Item<'_>; 3] = [
        ("n".into(), Value::Huge("18446744073709551615".into())),
        ("b".into(), Value::Bytes(b"\xff".into())),
        ("t".into(), Value::Time(5)),
    ];
    let mut learner = Learner::new(Limits::default());
    assert!(learner.add(&Row::of_items(&items)));
    assert_eq!(
        learner.types().into_iter().map(|(_, kind)| kind).collect::<Vec<_>>(),
        [Type::Json, Type::Bytes, Type::Time]
    );
    let columns = [("n", Type::UInt), ("b", Type::Bytes), ("t", Type::Time)];
    let mut builder = Builder::new(columns.map(|(name, kind)| (name, Some(kind))), CELL_COUNT_MAX);
    assert_eq!(builder.add(&Row::of_items(&items)), Ok(true));
    let columns = builder.take().unwrap().columns;
    assert!(matches!(&columns[0].1.values, Values::U64(values) if values[..] == [u64::MAX]));
    assert!(matches!(&columns[1].1.values, Values::Bytes { data, .. } if data == b"\xff"));
    assert!(matches!(&columns[2].1.values, Values::I64(values) if values[..] == [5]));
}

#[test]
fn a_selection_chooses_columns_and_fields_in_its_order() {
    let record = r#"{"a": {"b": {"c": 1, "d.e": 2}}, "a.b": {"c": 3}, "x.y": 4, "z": null}"#;
    let names = ["z", "x.y", "a.b.c", "a.b.d.e", "a.b", "missing", "x.z"];
    let selection: Selection = names.into_iter().collect();
    let mut learner = Learner::new(Limits::default());
    Rows::Json.of(record.as_bytes(), |row| learner.add(&row.select(&selection)));
    let found: Vec<String> = learner.types().into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, ["z", "x.y", "a.b.c", "a.b.d.e", "a.b"]);
    let mut builder = Builder::new([("a.b.c", Some(Type::Int))], CELL_COUNT_MAX);
    let selection: Selection = ["a.b.c"].into_iter().collect();
    Rows::Json.of(record.as_bytes(), |row| builder.add(&row.select(&selection)));
    // The longest name of a column counts.
    assert!(matches!(&builder.take().unwrap().columns[0].1.values, Values::I64(values) if values[..] == [3]));
}

#[test]
fn a_batch_has_no_more_cells_than_the_limit_unless_one_row_has() {
    let mut builder = Builder::new([("a", Some(Type::List(Box::new(Type::Int))))], 6);
    let mut add = |record: &str| Rows::Json.of(record.as_bytes(), |row| builder.add(row)).row;
    assert_eq!(add(r#"{"a": [1, 2]}"#), Some(Ok(true)));
    assert_eq!(add(r#"{"a": [3]}"#), Some(Ok(true)));
    assert_eq!(add("{}"), Some(Ok(true)));
    assert_eq!(add("{}"), Some(Ok(false)));
    assert_eq!(builder.take().unwrap().row_count, 3);
    let record = r#"{"a": [1, 2, 3, 4, 5, 6, 7]}"#;
    assert_eq!(
        Rows::Json.of(record.as_bytes(), |row| builder.add(row)).row,
        Some(Ok(true))
    );
    assert_eq!(builder.row_count(), 1);
}

#[test]
fn a_record_that_cannot_be_read_has_no_row() {
    let refused = Decoded {
        row: None,
        has_fault: true,
    };
    for record in [&b"{"[..], b"\xff", br#"{"a": 1, "a": 2}"#, b"1e999", b"01"] {
        assert_eq!(Rows::Json.of(record, |_| ()), refused, "{record:?}");
    }
    assert_eq!(Rows::Json.of(&b"[".repeat(101), |_| ()), refused);
    assert_eq!(Rows::Entity.of(b"\x01", |_| ()), refused);
    assert!(Rows::Json.of(b"[1]", |row| row.has("__value__")).row.unwrap());
}
