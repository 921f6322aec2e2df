"""`parse_leveldb_documents` compared with leveldb-export's, run with the App Engine SDK in its own environment."""

import json
import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from real_files import FIRESTORE
from support import written
from write_batch import varint

from cordwood.compat.leveldb_export import parse_leveldb_documents
from cordwood.payload import PayloadError, entity

TESTS = Path(__file__).parents[1]
JUDGE = Path(os.environ.get("CORDWOOD_APPENGINE_PYTHON") or TESTS.parent / ".venv" / "appengine" / "bin" / "python")


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field, value):
    return varint(field << 3) + varint(value)


def key(name):
    """The key of a document with a name or a number."""
    last = field(4, name.encode()) if isinstance(name, str) else number(3, name)
    element = b"\x0b" + field(2, b"books") + last + b"\x0c"
    return field(13, field(13, b"dev~a") + field(14, element))


def value(name, content, *, meaning=None, multiple=0):
    """An unindexed property, as all of Firestore's are."""
    stated = b"" if meaning is None else number(1, meaning)
    return field(15, stated + field(3, name.encode()) + number(4, multiple) + field(5, content))


def document(name, *values):
    # Field 16, the entity group, must be there.
    return key(name) + b"".join(values) + field(16, b"")


TIME, MAP, BLOB = 7, 19, 14
NO_KEY = field(13, field(13, b"") + field(14, b""))  # The key of a map.
MICROSECONDS = 1_700_000_000_123_456
VALUES = [
    value("text", field(3, "ä".encode())),
    value("count", number(1, 2**63)),
    value("ratio", b"\x21" + bytes.fromhex("000000000000f83f")),
    value("is_new", number(2, 1)),
    value("nothing", b""),
    value("at", number(1, MICROSECONDS), meaning=TIME),
    value("list", number(1, 1), multiple=1),
    value("list", field(3, b"two"), multiple=1),
]
NESTED = value("map", field(3, NO_KEY + b"".join(VALUES) + field(16, b"")), meaning=MAP)
DOCUMENTS = [document("a", *VALUES), document("b", NESTED), document("c")]


def as_json(found):
    """As `appengine_judge.py` prints it."""

    def special(item):
        assert isinstance(item, datetime)
        assert item.tzinfo is None
        return item.isoformat() + "Z"

    return json.loads(json.dumps(list(found), default=special))


def without_empty_texts(item, *, in_map=False):
    """The item as leveldb-export returns it, which turns empty texts in maps into None: the deviation `documents`."""
    if isinstance(item, dict):
        return {name: without_empty_texts(inner, in_map=True) for name, inner in item.items()}
    if isinstance(item, list):
        return [without_empty_texts(inner, in_map=in_map) for inner in item]
    return None if in_map and item == "" else item


def places(item):
    """The item with `GeoPoint`s, which would be arrays in JSON, as the oracle prints them."""
    if isinstance(item, entity.GeoPoint):
        return item._asdict()
    if isinstance(item, dict):
        return {name: places(inner) for name, inner in item.items()}
    return [places(inner) for inner in item] if isinstance(item, list) else item


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "output-0"
    path.write_bytes(written(DOCUMENTS))
    return path


def test_documents_contain_their_property_values(log):
    found = list(parse_leveldb_documents(str(log)))
    plain = {
        "text": "ä",
        "count": -(2**63),
        "ratio": 1.5,
        "is_new": True,
        "nothing": None,
        "at": datetime(2023, 11, 14, 22, 13, 20, 123456),
        "list": [1, "two"],
    }
    named = {"id": None, "namespace": "", "app": "dev~a"}
    assert found == [
        plain | {"_key": named | {"name": "a", "path": "books/a"}},
        {"map": plain | {"at": MICROSECONDS}, "_key": named | {"name": "b", "path": "books/b"}},
        {"_key": named | {"name": "c", "path": "books/c"}},
    ]
    with log.open("rb") as file:
        assert list(parse_leveldb_documents(file)) == found
        assert not file.closed


@pytest.mark.skipif(not JUDGE.exists(), reason=f"no App Engine SDK in {JUDGE}; `make test-python` installs it")
@pytest.mark.parametrize("export", [pytest.param(None, id="made here"), *FIRESTORE])
def test_documents_match_leveldb_export(export, log):
    path = export or log
    command = [str(JUDGE), str(TESTS / "helpers" / "appengine_judge.py"), "rows", str(path)]
    expected = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    assert len(expected) >= 3
    found = as_json(places(list(parse_leveldb_documents(str(path)))))
    keys = [row.pop("_key") for row in found]
    assert keys == [row.pop("_key") for row in expected]
    rows = [{name: without_empty_texts(item) for name, item in row.items()} for row in found]
    assert rows == expected


def test_leveldb_export_documents_have_numeric_ids_and_typed_maps(tmp_path):
    """Numbers as names, and in maps the types that leveldb-export lacks."""
    place = b"\x2b\x31" + bytes(8) + b"\x39" + bytes(8) + b"\x2c"
    inside = NO_KEY + value("empty", field(3, b"")) + value("place", place, meaning=9)
    inside += value("blob", field(3, b"\xff"), meaning=BLOB) + value("ascii", field(3, b"a"), meaning=BLOB)
    path = tmp_path / "output-0"
    path.write_bytes(written([document(7, value("map", field(3, inside + field(16, b"")), meaning=MAP))]))
    [found] = parse_leveldb_documents(str(path))
    assert found["_key"] == {"id": 7, "name": None, "namespace": "", "app": "dev~a", "path": "books/7"}
    assert found["map"] == {"empty": "", "place": entity.GeoPoint(0.0, 0.0), "blob": b"\xff", "ascii": "a"}


def test_leveldb_export_values_of_special_kinds_have_their_own_types(tmp_path):
    path = tmp_path / "output-0"
    place = b"\x2b\x31" + bytes(8) + b"\x39" + bytes(8) + b"\x2c"
    path.write_bytes(
        written([document("a", value("place", place, meaning=9), value("text", field(3, b"x"), meaning=15))])
    )
    [found] = parse_leveldb_documents(str(path))
    assert found["place"] == entity.GeoPoint(0.0, 0.0)
    assert type(found["text"]) is str


def test_leveldb_export_not_an_entity_records_raise_a_payload_error(tmp_path):
    path = tmp_path / "output-0"
    path.write_bytes(written([DOCUMENTS[0], b"no entity"]))
    documents = parse_leveldb_documents(str(path))
    assert next(documents)["text"] == "ä"
    with pytest.raises(PayloadError):
        next(documents)


def test_a_property_named_like_the_key_field_raises_an_error(tmp_path):
    path = tmp_path / "output-0"
    path.write_bytes(written([document("a", value("_key", field(3, b"x")))]))
    with pytest.raises(RuntimeError, match="_key"):
        next(parse_leveldb_documents(str(path)))
