"""Learns the columns of a table from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from cordwood._tables.schema import ColumnType, ListOf, Shapes, StructOf, TooManyColumnsError

COLUMN_COUNT_MAX = 10_000
"""The most columns, as in BigQuery: records with more do not have one form. Fields in columns also count."""

FIELD_COUNT_MAX = 1_000
"""The most fields within one column: a column with more is a mapping whose keys are data."""

LEVEL_COUNT_MAX = 20
"""The most levels of lists and structures in a column. Datastore itself allows no more."""

# An integer up to this size is also a floating-point number, without loss.
_EXACT_MAX = 1 << 53
_INT64 = range(-(1 << 63), 1 << 63)


_SHOWN = {
    "large": "int",
    "huge": "int of more than 64 bits",
    "json": f"value of more than {LEVEL_COUNT_MAX} levels",
}
"""Kinds that have other names in messages."""

_KINDS: dict[type, str] = {
    bool: "bool",
    str: "text",
    float: "float",
    bytes: "bytes",
    datetime: "time",
    list: "list",
}


class _Node:
    """The kinds of values seen in a column, in the items of its lists, or in a field of its structures."""

    __slots__ = ("fields", "item", "seen")

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.item: _Node | None = None
        self.fields: dict[str, _Node] = {}

    def nodes(self) -> Iterator[_Node]:
        """The nodes in it."""
        if self.item is not None:
            yield self.item
        yield from self.fields.values()


class Columns:
    """Learns the columns of a table from its rows.

    A column in which all values are of one type has that type. Integers and floating-point numbers together are
    floating-point, unless an integer is too large for that. Lists are lists of one such type, and objects are
    structures of all the fields that they have. All other values are JSON text. It keeps numbers, text and bytes apart,
    but not values that JSON cannot represent: times and NaN are text there.
    """

    takes_records = False
    """Whether it learns from records, and not from rows."""

    def __init__(self, shapes: Shapes | None = None) -> None:
        self._shapes = shapes or Shapes()
        self._fields_of, self._fixed = self._shapes
        self._roots: dict[str, _Node] = {}
        # The number of fields of each column that has any. The learner stops looking at columns that have too many.
        self._field_counts: dict[str, int] = {}
        self._field_count = 0
        self._overfull: set[str] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes a row into account.

        Raises:
            TooManyColumnsError: There are too many columns.
        """
        for name, value in row.items():
            root = self._roots.get(name)
            if root is None:
                root = self._roots[name] = _Node()
            if value is not None and name not in self._overfull:
                kind = _kind_of(value, self._shapes)
                root.seen.add(kind)
                if kind in ("list", "object") and not self._learn(name, root, value, LEVEL_COUNT_MAX):
                    self._overfull.add(name)
                    self._field_count -= self._field_counts.pop(name, 0)
                    root.fields, root.item = {}, None
        if len(self._roots) > COLUMN_COUNT_MAX:
            raise TooManyColumnsError(f"more than {COLUMN_COUNT_MAX:,} columns")

    def _learn(self, name: str, node: _Node, value: Any, level_count: int) -> bool:
        """Learns the values in a list or an object. Returns whether there is room for it in this column."""
        fields = self._fields_of(value)
        if fields is None:
            if node.item is None:
                node.item = _Node()
            return all(self._learn_one(name, node.item, item, level_count) for item in value)
        for key, item in fields.items():
            inside = node.fields.get(key)
            if inside is None:
                count = self._field_counts[name] = self._field_counts.get(name, 0) + 1
                self._field_count += 1
                if count > FIELD_COUNT_MAX or len(self._roots) + self._field_count > COLUMN_COUNT_MAX:
                    return False
                inside = node.fields[key] = _Node()
            if not self._learn_one(name, inside, item, level_count):
                return False
        return True

    def _learn_one(self, name: str, node: _Node, value: Any, level_count: int) -> bool:
        if value is None:
            return True
        kind = _kind_of(value, self._shapes)
        if kind in ("list", "object"):
            if level_count == 1:
                kind = "json"
            elif not self._learn(name, node, value, level_count - 1):
                return False
        node.seen.add(kind)
        return True

    def types(self) -> dict[str, ColumnType]:
        """The columns by name, in the order in which they were first seen."""
        return {name: "json" if name in self._overfull else self._type_of(node) for name, node in self._roots.items()}

    def conflicts(self) -> dict[str, list[str]]:
        """The types of each column that has several without a common type.

        `a.b` is a field of `a`, and `a[]` are its items.
        """
        found: dict[str, list[str]] = {}
        # Not recursive: there may be thousands.
        nodes = [(name, node) for name, node in self._roots.items() if name not in self._overfull]
        while nodes:
            name, node = nodes.pop(0)
            if len(node.seen) > 1 and _common(node.seen) == "json":
                found[name] = sorted({_SHOWN.get(kind, kind) for kind in node.seen})
            elif node.item is not None:
                nodes.insert(0, (f"{name}[]", node.item))
            else:
                nodes[:0] = [(f"{name}.{key}", inside) for key, inside in node.fields.items()]
        return found

    @property
    def overfull(self) -> list[str]:
        """The columns that are JSON because they would have too many fields."""
        return sorted(self._overfull)

    def _type_of(self, node: _Node) -> ColumnType:
        kind = _common(node.seen)
        if kind == "list":
            return ListOf("text" if node.item is None else self._type_of(node.item))
        if kind == "object":
            # Parquet has no structure without fields.
            fields = tuple((name, self._type_of(inside)) for name, inside in node.fields.items())
            return StructOf(fields) if fields else "json"
        return next((fixed for name, fixed in self._fixed.values() if name == kind), kind)


def _kind_of(value: object, shapes: Shapes) -> str:
    if (kind := _KINDS.get(type(value))) is not None:
        return kind
    # A bool, which is an int to Python, is among those.
    if isinstance(value, int):
        return "int" if -_EXACT_MAX <= value <= _EXACT_MAX else "large" if value in _INT64 else "huge"
    # For example, an enumeration.
    for known, kind in _KINDS.items():
        if isinstance(value, known):
            return kind
    if fixed := shapes.fixed.get(type(value)):
        return fixed[0]
    return "json" if shapes.fields_of(value) is None else "object"


def shown_kind(value: object, shapes: Shapes) -> str:
    """The type of a value, for messages."""
    kind = "null" if value is None else _kind_of(value, shapes)
    return _SHOWN.get(kind, kind)


def _common(seen: set[str]) -> str:
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
