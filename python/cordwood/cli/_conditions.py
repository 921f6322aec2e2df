"""The conditions of `--where`."""

from __future__ import annotations

import argparse
import contextlib
import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cordwood._tables.json_text import json_text
from cordwood.cli._messages import escaped

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_ORDERS = ("<", "<=", ">", ">=")


class Condition(NamedTuple):
    """`COLUMN OP VALUE`."""

    column: str
    operator: str
    text: str
    number: float | None
    """The value as a number, if it is one."""
    time: datetime | None
    """The value as a time, if it is one."""
    data: bytes
    """The value as bytes: those of the text, or of the hexadecimal digits after `0x`."""

    def holds(self, value: object, to_json: Callable[[Any], object]) -> bool:
        """Whether it is true of the value that a row has in the column; never for a row that has none there."""
        if value is None:
            return False
        if isinstance(value, bytes):
            return self._compares(value, self.data)
        if self.operator != "~":
            if isinstance(value, int | float) and not isinstance(value, bool):
                return self._compares(value, self.number)
            if isinstance(value, datetime):
                return self._compares(value, self.time)
        if self.number is not None and self.operator in _ORDERS:
            # 900 is neither before nor after a text.
            return False
        return self._compares(_text_of(to_json(value)), self.text)

    def misfit(self, value: object) -> str | None:
        """Why it cannot be true of this value in the column, nor of any like it; `None` if it can."""
        if self.operator in ("!=", "~"):
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            what = None if self.number is not None else "a number"
        else:
            what = "a time, such as 2026-11-21 or 2026-11-21T12:00:00Z" if isinstance(value, datetime) else None
            what = what if self.time is None else None
        return what and f"{escaped(self.column)} is {what}, and {escaped(self.text) or 'nothing'} is not"

    def _compares(self, value: Any, other: Any) -> bool:
        if other is None:
            # A number or a time, and something that is not.
            return self.operator == "!="
        if self.operator == "~":
            return other in value
        if self.operator in ("=", "!=") and value != value and other != other:  # noqa: PLR0124 - NaN
            return self.operator == "="
        return _COMPARISONS[self.operator](value, other)


def _text_of(value: object) -> str:
    """The text of a JSON value: text as it is, anything else as its JSON."""
    return value if isinstance(value, str) else json_text(value)


def parse(text: str) -> Condition:
    """Parses a value of `--where`.

    Raises:
        argparse.ArgumentTypeError: It is not a condition.
    """
    match = re.fullmatch(r"([^=!<>~]+?) *(!=|<=|>=|=|<|>|~)(.*)", text, re.DOTALL)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"COLUMN OP VALUE is needed, where OP is one of = != < <= > >= ~, not {text!r}; for example 'loss<0.5'"
        )
    column, comparison, value = match.groups()
    if (wrong := comparison + value[:1]) in ("==", "!==", "=~", "=<", "=>", "<>", "<<", ">>"):
        raise argparse.ArgumentTypeError(
            f"there is no operator {wrong}, only = != < <= > >= ~; a value that begins with {value[0]} needs a space "
            "before it"
        )
    value = value.removeprefix(" ")
    return Condition(column, comparison, value, _number(value.strip(" ")), _time(value.strip(" ")), _data(value))


def _number(text: str) -> float | None:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        with contextlib.suppress(ValueError):  # Too many digits.
            return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return float(text)
    # As JSON has them here.
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(text)


def _data(text: str) -> bytes:
    if re.fullmatch(r" *0x([0-9A-Fa-f]{2})+ *", text):
        return bytes.fromhex(text.strip(" ")[2:])
    return text.encode("utf-8", "surrogateescape")


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=time.tzinfo or UTC)
    except ValueError:
        return None
