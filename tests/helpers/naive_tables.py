"""Tables of rows, learned and made in Python: the naive counterpart of the native module."""

import base64
import json
import math
import re
from datetime import datetime

import pyarrow as pa
from naive_rows import id_or_name

from cordwood._tables import table as limits
from cordwood._tables.payloads import KEY
from cordwood._tables.schema import ListOf, StructOf, TooManyColumnsError, arrow_name, utf8
from cordwood.payload.entity import Entity, GeoPoint, Key, User

# An integer up to this size is also a floating-point number, without loss.
_EXACT_MAX = 1 << 53
_INT64 = range(-(1 << 63), 1 << 63)


FIXED = {
    "key": KEY,
    "place": StructOf((("latitude", "float"), ("longitude", "float"))),
    "user": StructOf(tuple((name, "int" if name == "gaia_id" else "text") for name in User._fields)),
}
"""Values of entities that always have the same fields."""

_KINDS = {bool: "bool", str: "text", float: "float", bytes: "bytes", datetime: "time", list: "list"}


class _Node:
    """The kinds of values seen in a column, in the items of its lists, or in a field of its structures."""

    def __init__(self):
        self.seen = set()
        self.item = None
        self.fields = {}


class Columns:
    """Learns the columns of a table from its rows."""

    def __init__(self):
        self._roots = {}
        # The number of fields of each column that has any.
        self._field_counts = {}
        self._field_count = 0
        self._overfull = set()

    def add(self, row):
        """Takes a row into account. Raises `TooManyColumnsError` if there are too many columns."""
        for name, value in row.items():
            root = self._roots.setdefault(name, _Node())
            if value is not None and name not in self._overfull:
                kind = _kind_of(value)
                root.seen.add(kind)
                if kind in ("list", "object") and not self._learn(name, root, value, limits.LEVEL_COUNT_MAX):
                    self._overfull.add(name)
                    self._field_count -= self._field_counts.pop(name, 0)
                    root.fields, root.item = {}, None
        if len(self._roots) > limits.COLUMN_COUNT_MAX:
            raise TooManyColumnsError(f"more than {limits.COLUMN_COUNT_MAX:,} columns")

    def _learn(self, name, node, value, level_count):
        """Learns the values in a list or an object. Returns whether there is room for it in this column."""
        fields = fields_of(value)
        if fields is None:
            node.item = node.item or _Node()
            return all(self._learn_one(name, node.item, item, level_count) for item in value)
        for key, item in fields.items():
            inside = node.fields.get(key)
            if inside is None:
                count = self._field_counts[name] = self._field_counts.get(name, 0) + 1
                self._field_count += 1
                all_count = len(self._roots) + self._field_count
                if count > limits.FIELD_COUNT_MAX or all_count > limits.COLUMN_COUNT_MAX:
                    return False
                inside = node.fields[key] = _Node()
            if not self._learn_one(name, inside, item, level_count):
                return False
        return True

    def _learn_one(self, name, node, value, level_count):
        if value is None:
            return True
        kind = _kind_of(value)
        if kind in ("list", "object"):
            if level_count == 1:
                kind = "json"
            elif not self._learn(name, node, value, level_count - 1):
                return False
        node.seen.add(kind)
        return True

    def types(self):
        """The columns by name, in the order in which they were first seen."""
        return {name: "json" if name in self._overfull else self._type_of(node) for name, node in self._roots.items()}

    def conflicts(self):
        """The types of each column that has several without a common type."""
        found = {}
        nodes = [(name, node) for name, node in self._roots.items() if name not in self._overfull]
        while nodes:
            name, node = nodes.pop(0)
            if len(node.seen) > 1 and _common(node.seen) == "json":
                found[name] = sorted({_shown(kind) for kind in node.seen})
            elif node.item is not None:
                nodes.insert(0, (f"{name}[]", node.item))
            else:
                nodes[:0] = [(f"{name}.{key}", inside) for key, inside in node.fields.items()]
        return found

    @property
    def overfull(self):
        """The columns that are JSON because they would have too many fields."""
        return sorted(self._overfull)

    def _type_of(self, node):
        kind = _common(node.seen)
        if kind == "list":
            return ListOf("text" if node.item is None else self._type_of(node.item))
        if kind == "object":
            # Parquet has no structure without fields.
            fields = tuple((name, self._type_of(inside)) for name, inside in node.fields.items())
            return StructOf(fields) if fields else "json"
        return FIXED.get(kind, kind)


def _kind_of(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -_EXACT_MAX <= value <= _EXACT_MAX else "large" if value in _INT64 else "huge"
    fixed = {Key: "key", GeoPoint: "place", User: "user"}
    return _KINDS.get(type(value)) or fixed.get(type(value), "object")


def _shown(kind):
    """The name of a kind in messages."""
    deep = f"value of more than {limits.LEVEL_COUNT_MAX} levels"
    return {"large": "int", "huge": "int of more than 64 bits", "json": deep}.get(kind, kind)


def _common(seen):
    match sorted(seen):
        case []:
            return "text"
        case ["int" | "large"] | ["int", "large"]:
            return "int"
        case ["float", "int"]:
            return "float"
        case ["huge"]:
            return "json"
        case [alone]:
            return alone
        case _:
            return "json"


def fields_of(value):
    """The fields of a value: keys, places and users always have the same, maps those that are in them."""
    match value:
        case Entity():
            # Firestore's maps have a key without a meaning.
            key = {} if value.key in (None, Key("", ())) else {"__key__": value.key}
            return {**key, **value.properties}
        case Key():
            return {**value._asdict(), "path": [{"kind": kind, **id_or_name(last)} for kind, last in value.path]}
        case GeoPoint() | User():
            return value._asdict()
        case dict():
            return value
    return None


def table_of(rows, columns):
    """An Arrow table of rows."""
    schema = pa.schema([(arrow_name(name), _arrow_type(kind)) for name, kind in columns.items()])
    arrays = [
        pa.array([_stored(kind, row.get(name)) for row in rows], field.type)
        for field, (name, kind) in zip(schema, columns.items(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_type(kind):
    if isinstance(kind, ListOf):
        return pa.list_(_arrow_type(kind.item))
    if isinstance(kind, StructOf):
        return pa.struct([(arrow_name(name), _arrow_type(inside)) for name, inside in kind.fields])
    names = {"bool": pa.bool_(), "int": pa.int64(), "uint": pa.uint64(), "float": pa.float64(), "bytes": pa.binary()}
    return {**names, "time": pa.timestamp("us", tz="UTC")}.get(kind, pa.string())


def _stored(kind, value):
    if value is None:
        return None
    if isinstance(kind, ListOf):
        return [_stored(kind.item, item) for item in value]
    if isinstance(kind, StructOf):
        fields = fields_of(value)
        return {arrow_name(name): _stored(inside, fields.get(name)) for name, inside in kind.fields}
    if kind == "json":
        return json_text(value)
    return utf8(value) if kind == "text" else value


def json_text(value):
    """A value of a row as JSON text."""
    return json.dumps(_jsonable(value), ensure_ascii=False, separators=(",", ":"))


def _jsonable(value):  # noqa: PLR0911 - one for each type
    match value:
        case str():
            return utf8(value)
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Key():
            path = [part for element in value.path for part in element]
            return _without_none({**value._asdict(), "path": path[:-1] if path[-1:] == [None] else path})
        case User():
            return _without_none(value._asdict())
        case list():
            return [_jsonable(item) for item in value]
    fields = fields_of(value)
    return value if fields is None else {utf8(name): _jsonable(item) for name, item in fields.items()}


def _without_none(fields):
    return {name: value for name, value in fields.items() if value is not None}


def ndjson_of(rows):
    """Rows as lines of JSON."""
    return "".join(json_text(row) + "\n" for row in rows)


def csv_of(rows, columns):
    """Rows as CSV: an empty field means no value, `""` is empty text."""
    lines = [map(_quoted, columns), *([_cell(kind, row.get(name)) for name, kind in columns.items()] for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines) if columns else ""


def _cell(kind, value):
    if value is None:
        return ""
    is_json = kind == "json" or not isinstance(kind, str)
    text = json_text(value)
    # Text, a number or a time has quotation marks in JSON only.
    return _quoted(text if is_json else json.loads(text) if text.startswith('"') else text)


def _quoted(text):
    is_plain = re.fullmatch(r'[^",\r\n\s](?:[^",\r\n]*[^",\r\n\s])?', text)
    return text if is_plain else '"' + text.replace('"', '""') + '"'
