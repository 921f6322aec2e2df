//! Entities, beside the bytes that the App Engine SDK (appengine-python-standard 0.3.1) writes for them.

use cordwood_payload::{Entity, EntityValue, PathId, PayloadReason};

/// An entity with a value of each type, made with `Entity.ToPb` of the SDK.
const RECORD: &str = "\
6a276a05737e61707072190b12044c69737418070c0b12045461736b22056ec3a46d650ca201026e73721308111a07626c6f626b657920\
002a041a02626b720d08181a05656d70747920002a0072141a05666c6f617420002a0921000000000000f83f72141a03696e7420002a0b\
08fbffffffffffffffff01721608021a046c696e6b20002a0a1a08687474703a2f2f78720c1a046c69737420012a020801720f1a046c69\
737420012a051a0374776f721608021a046c69737420012a0a1a08687474703a2f2f79720a1a046e6f6e6520002a007210080d1a067261\
74696e6720002a02080572231a0372656620002a1a636a05737e617070737a014180010174737a01428a0101627464721108101a057368\
6f727420002a041a02736872111a047465787420002a071a05746578c3a972201a047573657220002a16434a056140622e635203622e63\
9001009a0102313744721508071a047768656e20002a0908fae185cd81999803722108091a05776865726520002a142b31000000000040\
48403900000000008022c02c720b1a0379657320002a0210017a10080e1a04626c6f6220002a041a02ff007a3c08131a05696e6e657220\
002a2f1a2d6a0e6a05737e61707072050b1201580c72091a016120002a020801720d08071a016220002a0408c0843d8201007a10080f1a\
046c6f6e6720002a041a026c6f82010a0b12044c69737418070c";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|index| u8::from_str_radix(&hex[index..index + 2], 16).unwrap())
        .collect()
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        field.push(len as u8 | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend_from_slice(content);
    field
}

/// `[Task 7]` of the app "a".
const KEY: &[u8] = b"\x6a\x0f\x6a\x01a\x72\x0a\x0b\x12\x04Task\x18\x07\x0c";

/// An entity with one property: "p", and these fields of `Property`.
fn entity_of(property: &[u8]) -> Vec<u8> {
    [KEY, &field(14, &[b"\x1a\x01p", property].concat())].concat()
}

fn reason(record: &[u8]) -> PayloadReason {
    let error = Entity::decode(record).unwrap_err();
    assert!(error.offset + error.len <= record.len(), "{error}");
    error.reason
}

#[test]
fn decodes_every_type_of_value_in_an_entity() {
    let record = bytes(RECORD);
    let entity = Entity::decode(&record).unwrap();
    let key = entity.key.as_ref().unwrap();
    assert_eq!((key.app, key.namespace, key.database), ("s~app", Some("ns"), None));
    let path: Vec<_> = key.path.iter().map(|element| (element.kind, element.id)).collect();
    assert_eq!(path, [("List", PathId::Id(7)), ("Task", PathId::Name("näme"))]);
    assert_eq!(entity.other_fields, []);

    let names: Vec<_> = entity.properties.iter().map(|property| property.name).collect();
    let sorted = "blobkey empty float int link list none rating ref short text user when where yes blob inner long";
    assert_eq!(names.join(" "), sorted);
    for property in &entity.properties {
        assert_eq!(property.is_array, ["empty", "list"].contains(&property.name));
        for value in &property.values {
            assert_eq!(value.is_indexed, !["blob", "inner", "long"].contains(&property.name));
        }
    }

    let values = |name| {
        let property = entity.properties.iter().find(|property| property.name == name).unwrap();
        property
            .values
            .iter()
            .map(|value| (value.value.clone(), value.meaning))
            .collect::<Vec<_>>()
    };
    assert_eq!(values("blobkey"), [(EntityValue::Text("bk"), Some(17))]);
    assert_eq!(values("empty"), []);
    assert_eq!(values("float"), [(EntityValue::Double(1.5), None)]);
    assert_eq!(values("int"), [(EntityValue::Integer(-5), None)]);
    assert_eq!(values("link"), [(EntityValue::Text("http://x"), Some(2))]);
    let list = [
        (EntityValue::Integer(1), None),
        (EntityValue::Text("two"), None),
        (EntityValue::Text("http://y"), Some(2)),
    ];
    assert_eq!(values("list"), list);
    assert_eq!(values("none"), [(EntityValue::Null, None)]);
    assert_eq!(values("rating"), [(EntityValue::Integer(5), Some(13))]);
    assert_eq!(values("short"), [(EntityValue::Bytes(b"sh"), Some(16))]);
    assert_eq!(values("text"), [(EntityValue::Text("texé"), None)]);
    assert_eq!(
        values("when"),
        [(EntityValue::Timestamp(1_795_262_400_000_250), Some(7))]
    );
    let point = EntityValue::Point {
        latitude: 48.5,
        longitude: -9.25,
    };
    assert_eq!(values("where"), [(point, Some(9))]);
    assert_eq!(values("yes"), [(EntityValue::Boolean(true), None)]);
    assert_eq!(values("blob"), [(EntityValue::Bytes(b"\xff\0"), Some(14))]);
    assert_eq!(values("long"), [(EntityValue::Text("lo"), Some(15))]);

    let [(EntityValue::Reference(key), None)] = &values("ref")[..] else {
        panic!("no reference");
    };
    let path: Vec<_> = key.path.iter().map(|element| (element.kind, element.id)).collect();
    assert_eq!(
        (key.app, path),
        ("s~app", vec![("A", PathId::Id(1)), ("B", PathId::Name("b"))])
    );
    let [(EntityValue::User(user), None)] = &values("user")[..] else {
        panic!("no user");
    };
    assert_eq!((user.email, user.auth_domain, user.gaia_id), ("a@b.c", "b.c", 0));
    assert_eq!((user.obfuscated_gaia_id, user.nickname), (Some("17"), None));
    let [(EntityValue::Entity(inner), Some(19))] = &values("inner")[..] else {
        panic!("no entity");
    };
    // Its `entity_group` is empty: it is no root, and its key is not complete.
    assert_eq!(inner.other_fields, []);
    let inner: Vec<_> = inner
        .properties
        .iter()
        .map(|property| (property.name, &property.values[0].value))
        .collect();
    assert_eq!(
        inner,
        [
            ("a", &EntityValue::Integer(1)),
            ("b", &EntityValue::Timestamp(1_000_000))
        ]
    );
}

#[test]
fn errors_in_truncated_or_bit_flipped_entities_point_inside_the_record() {
    let record = bytes(RECORD);
    for len in 0..record.len() {
        if let Err(error) = Entity::decode(&record[..len]) {
            assert!(error.offset + error.len <= len, "{error}");
        }
    }
    for bit in 0..8 * record.len() {
        let mut record = record.clone();
        record[bit / 8] ^= 1 << (bit % 8);
        if let Err(error) = Entity::decode(&record) {
            assert!(error.offset + error.len <= record.len(), "{error}");
        }
    }
}

#[test]
fn unknown_fields_are_kept() {
    // In each message: of the entity (owner, 17), a property (30), its value (31), a path (5) and an element (6).
    let key = field(13, b"\x6a\x01a\x72\x0e\x0b\x12\x04Task\x18\x07\x32\x00\x0c\x28\x09");
    let property = field(
        14,
        b"\x1a\x01p\x20\x00\x2a\x05\x08\x01\xf8\x01\x07\xf3\x01\x08\x01\xf4\x01",
    );
    let record = [key, property, b"\x8a\x01\x01x".to_vec()].concat();
    let entity = Entity::decode(&record).unwrap();
    let others: Vec<_> = entity
        .other_fields
        .iter()
        .map(|field| (field.message, field.number, field.bytes))
        .collect();
    let expected: [(&str, u32, &[u8]); 5] = [
        ("Element", 6, b"\x32\x00"),
        ("Path", 5, b"\x28\x09"),
        ("PropertyValue", 31, b"\xf8\x01\x07"),
        ("Property", 30, b"\xf3\x01\x08\x01\xf4\x01"),
        ("EntityProto", 17, b"\x8a\x01\x01x"),
    ];
    assert_eq!(others, expected);
    for field in &entity.other_fields {
        assert!(record[field.offset..].starts_with(field.bytes));
    }
    assert_eq!(entity.properties[0].values[0].value, EntityValue::Integer(1));
}

#[test]
fn an_entity_group_is_kept_if_it_contradicts_the_key() {
    let same = [KEY, b"\x82\x01\x0a\x0b\x12\x04Task\x18\x07\x0c"].concat();
    assert_eq!(Entity::decode(&same).unwrap().other_fields, []);
    let other = [KEY, b"\x82\x01\x0a\x0b\x12\x04Task\x18\x08\x0c"].concat();
    assert_eq!(Entity::decode(&other).unwrap().other_fields[0].number, 16);
}

#[test]
fn text_that_is_not_utf8_is_kept_as_bytes() {
    let record = entity_of(b"\x20\x00\x2a\x04\x1a\x02\xffx");
    let entity = Entity::decode(&record).unwrap();
    assert_eq!(entity.properties[0].values[0].value, EntityValue::Bytes(b"\xffx"));
    let name = [KEY, &field(14, b"\x1a\x01\xff\x20\x00\x2a\x00")].concat();
    assert_eq!(reason(&name), PayloadReason::NotUtf8);
}

#[test]
fn the_error_explains_why_a_record_is_not_an_entity() {
    assert_eq!(reason(b""), PayloadReason::MissingField { tag: 13 });
    assert_eq!(reason(&entity_of(b"\x20\x00")), PayloadReason::MissingField { tag: 5 });
    // A string where a truth value should be; an end without a start; a group that does not end;
    // one that ends as another.
    assert_eq!(reason(&entity_of(b"\x22\x00\x2a\x00")), PayloadReason::BadWireType);
    assert_eq!(reason(&[KEY, b"\x0c"].concat()), PayloadReason::BadWireType);
    assert_eq!(reason(&[KEY, b"\x0b\x08\x01"].concat()), PayloadReason::Truncated);
    assert_eq!(reason(&[KEY, b"\x0b\x14"].concat()), PayloadReason::BadWireType);
    // A field 0; any length after the end.
    assert_eq!(
        reason(&[KEY, b"\x00\x01"].concat()),
        PayloadReason::UnknownTag { tag: 0 }
    );
    assert_eq!(
        reason(&[KEY, b"\x72\xff\xff\xff\xff\x0f"].concat()),
        PayloadReason::Truncated
    );
    // Twice the same: a key, a value, a property that is no array; an array's value, and one that says it is none.
    assert_eq!(reason(&[KEY, KEY].concat()), PayloadReason::NonCanonical);
    assert_eq!(
        reason(&entity_of(b"\x20\x00\x2a\x04\x08\x01\x10\x01")),
        PayloadReason::NonCanonical
    );
    let single = field(14, b"\x1a\x01p\x20\x00\x2a\x00");
    let of_array = field(15, b"\x1a\x01p\x20\x01\x2a\x00");
    for (first, second) in [(&single, &single), (&single, &of_array), (&of_array, &single)] {
        assert_eq!(reason(&[KEY, first, second].concat()), PayloadReason::NonCanonical);
    }
    let array = [KEY, &of_array[..], &of_array].concat();
    assert_eq!(Entity::decode(&array).unwrap().properties[0].values.len(), 2);
}

#[test]
fn properties_with_reserved_names_are_rejected() {
    for name in ["__key__", "__other_fields__"] {
        let property = field(
            14,
            &[&field(3, name.as_bytes())[..], b"\x20\x00\x2a\x02\x08\x05"].concat(),
        );
        let record = [KEY, &property].concat();
        assert_eq!(reason(&record), PayloadReason::ReservedName);
        // The same in an embedded entity.
        let embedded = [b"\x08\x13\x20\x00", &field(5, &field(3, &property))[..]].concat();
        assert_eq!(reason(&entity_of(&embedded)), PayloadReason::ReservedName);
    }
    let other = field(14, &[&field(3, b"__keys__")[..], b"\x20\x00\x2a\x02\x08\x05"].concat());
    assert_eq!(
        Entity::decode(&[KEY, &other].concat()).unwrap().properties[0].name,
        "__keys__"
    );
}

#[test]
fn limits_how_deeply_entities_can_nest() {
    let nested = |depth: usize| {
        let mut record = KEY.to_vec();
        for _ in 1..depth {
            let value = field(5, &field(3, &record));
            record = [
                KEY,
                &field(14, &[b"\x08\x13\x1a\x01p\x20\x00", value.as_slice()].concat()),
            ]
            .concat();
        }
        record
    };
    assert!(Entity::decode(&nested(Entity::DEPTH_MAX)).is_ok());
    assert_eq!(reason(&nested(Entity::DEPTH_MAX + 1)), PayloadReason::TooDeep);
    assert_eq!(reason(&nested(5_000)), PayloadReason::TooDeep);
    let groups = [KEY, &[0x0b].repeat(100_000)].concat();
    assert_eq!(reason(&groups), PayloadReason::TooDeep);
}

/// Names that start and end alike and have one length, more of them than are compared one by one.
#[test]
fn array_items_of_different_properties_can_be_interleaved() {
    let names: Vec<String> = (10..50).map(|number| format!("n{number}n")).collect();
    let item = |name: &str, value: u8| {
        let name = field(3, name.as_bytes());
        field(14, &[&name, &b"\x20\x01\x2a\x02\x08"[..], &[value]].concat())
    };
    let turns = (0..3).flat_map(|turn| names.iter().map(move |name| (name, turn)));
    let fields: Vec<Vec<u8>> = turns.map(|(name, turn)| item(name, turn)).collect();
    let record = [KEY, &fields.concat()].concat();
    let entity = Entity::decode(&record).unwrap();
    let found: Vec<_> = entity.properties.iter().map(|property| property.name).collect();
    assert_eq!(found, names);
    for property in &entity.properties {
        let values: Vec<_> = property.values.iter().map(|value| value.value.clone()).collect();
        assert_eq!(values, [0, 1, 2].map(EntityValue::Integer));
    }
    // One of them again, and no item of an array.
    let again = field(14, &[&field(3, b"n30n"), &b"\x2a\x02\x08\x01"[..]].concat());
    assert_eq!(reason(&[record, again].concat()), PayloadReason::NonCanonical);
}
