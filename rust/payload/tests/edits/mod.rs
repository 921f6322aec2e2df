//! Fields of version edits as an engine writes them: the inverse of `VersionEdit::fields`, which shows
//! that no byte of a record is lost.

use cordwood_payload::{Field, Value};

/// The bytes of a field.
pub(crate) fn encoded(field: &Field<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, field.tag.into());
    let mut inside = Vec::new();
    match (field.tag, &field.value) {
        (7 | 100 | 102 | 103, file) => put_new_file(&mut out, field.tag, file),
        // Their numbers and flags are strings.
        (8199..=8201 | 8203, value) => {
            put_value(&mut inside, value);
            put_end(&mut inside, field.kind);
            put_bytes(&mut out, &inside);
        }
        (_, value) => {
            put_value(&mut out, value);
            put_end(&mut out, field.kind);
        }
    }
    out
}

/// The tag after the parts of a field that may lack some.
fn put_end(out: &mut Vec<u8>, kind: &str) {
    if kind == "wal_addition" {
        out.push(1);
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => {}
        Value::Bool(is_set) => out.push(u8::from(*is_set)),
        Value::UInt(number) => put_varint(out, *number),
        Value::Bytes(bytes) => put_bytes(out, bytes),
        Value::Object(items) => {
            if let Some(key) = key(value) {
                return put_bytes(out, &key);
            }
            for (name, value) in items {
                match (name.as_ref(), value) {
                    ("custom_fields", Value::Array(fields)) => put_fields(out, fields, 0),
                    ("synced_len", length) => {
                        out.push(2);
                        put_value(out, length);
                    }
                    (_, value) => put_value(out, value),
                }
            }
        }
        other => panic!("no field has {other:?}"),
    }
}

fn put_new_file(out: &mut Vec<u8>, tag: u32, file: &Value<'_>) {
    let mut put = |name: &str| put_value(out, file.get(name).expect(name));
    put("level");
    put("file_number");
    if tag == 102 {
        put("path_id");
    }
    put("file_len");
    put("smallest");
    put("largest");
    if tag > 7 {
        put("smallest_sequence");
        put("largest_sequence");
    }
    if let (103, Some(Value::Array(fields))) = (tag, file.get("custom_fields")) {
        put_fields(out, fields, 1);
    }
}

/// The further fields of a file. All are strings.
fn put_fields(out: &mut Vec<u8>, fields: &[Value<'_>], end: u8) {
    for field in fields {
        let Some(&Value::UInt(tag)) = field.get("tag") else {
            panic!("{field:?}")
        };
        put_varint(out, tag);
        match field.get("value").expect("a value") {
            Value::Bytes(bytes) => put_bytes(out, bytes),
            Value::UInt(number) if tag == 3 => put_bytes(out, &number.to_le_bytes()),
            Value::UInt(number) if matches!(tag, 9 | 65) => put_bytes(out, &[*number as u8]),
            value => {
                let mut inside = Vec::new();
                put_value(&mut inside, value);
                put_bytes(out, &inside);
            }
        }
    }
    out.push(end);
}

/// An internal key.
fn key(value: &Value<'_>) -> Option<Vec<u8>> {
    let (Value::Bytes(user_key), &Value::UInt(sequence), &Value::UInt(value_type)) =
        (value.get("user_key")?, value.get("sequence")?, value.get("value_type")?)
    else {
        return None;
    };
    Some([user_key, &(sequence << 8 | value_type).to_le_bytes()[..]].concat())
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
