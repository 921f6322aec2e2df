"""The records of `.swanlab` files: the logged data of a run of SwanLab. SwanLab need not be installed.

Releases before 0.8 wrote JSON, later ones protocol buffers; both are read.

>>> import json
>>> from cordwood.payload import swanlab
>>> scalar = {"metric": {"index": 3, "data": 0.5}, "key": "loss", "step": 3, "epoch": 4}
>>> swanlab.history_row(json.dumps({"model_type": "Scalar", "data": scalar}).encode())
{'key': 'loss', 'step': 3, 'epoch': 4, 'value': 0.5, 'time': None}
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cordwood._native import decode_swanlab
from cordwood.payload._error import payload_error
from cordwood.payload._json_parser import document
from cordwood.types import PayloadReason

__all__ = ["history_row"]


def history_row(record: bytes) -> dict[str, Any] | None:
    """A number that was logged. Images, texts and other media are not numbers.

    Args:
        record: The record of a `.swanlab` file.

    Returns:
        `key` (the name), `step`, `epoch` (how many values of this name there are so far; only in JSON), `value`, and
        `time` (a `datetime` in UTC). A value that the record does not state is `None`. `None` if the record is of
        another kind.

    Raises:
        PayloadError: The record is not one of SwanLab.
    """
    # No protocol buffer of SwanLab begins with this byte.
    if record[:1] == b"{":
        return _json_row(record)
    scalar = decode_swanlab(record)
    if scalar is None:
        return None
    key, step, timestamp, value = scalar
    time = None if timestamp is None else _EPOCH + timedelta(microseconds=timestamp)
    return {"key": key, "step": step, "epoch": None, "value": value, "time": time}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _json_row(record: bytes) -> dict[str, Any] | None:
    model = cast("dict[str, Any]", document(record))
    if model.get("model_type") != "Scalar":
        return None
    try:
        scalar, time = model["data"], model["data"]["metric"].get("create_time")
        row = {
            "key": scalar["key"],
            "step": scalar["step"],
            "epoch": scalar.get("epoch"),
            "value": _number(scalar["metric"]["data"]),
            "time": None if time is None else _time(time),
        }
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise payload_error("a scalar in a form that no release writes", record, PayloadReason.NON_CANONICAL) from error
    if not (isinstance(row["key"], str) and _is_int(row["step"]) and (row["epoch"] is None or _is_int(row["epoch"]))):
        raise payload_error("a scalar in a form that no release writes", record, PayloadReason.NON_CANONICAL)
    return row


def _number(value: Any) -> float:
    if isinstance(value, str):
        return _NOT_FINITE[value]
    if isinstance(value, float):
        return value
    if not _is_int(value) or float(value) != value:
        raise ValueError("not a number, or one that no double has")
    return float(value)


_NOT_FINITE = {"NaN": math.nan, "INF": math.inf}
"""The texts of SwanLab for numbers that are not finite."""


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time without an offset from UTC")
    return time.astimezone(UTC)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64
