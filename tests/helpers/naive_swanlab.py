"""The row of a number in the JSON of SwanLab: the naive counterpart of `rust/payload/src/table/decoders/swanlab.rs`."""

import math
import re
from datetime import UTC, datetime

from naive_json import NaiveError, document

from cordwood.types import PayloadReason


def history_row(record):
    model = document(record)
    if model.get("model_type") != "Scalar":
        return None
    try:
        data, time = model["data"], model["data"]["metric"].get("create_time")
        row = {
            "key": data["key"],
            "step": data["step"],
            "epoch": data.get("epoch"),
            "value": _number(data["metric"]["data"]),
            "time": None if time is None else _time(time),
        }
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise NaiveError(PayloadReason.NON_CANONICAL) from error
    if not (isinstance(row["key"], str) and _is_int(row["step"]) and (row["epoch"] is None or _is_int(row["epoch"]))):
        raise NaiveError(PayloadReason.NON_CANONICAL)
    return row


def _number(value):
    if isinstance(value, str):
        return {"NaN": math.nan, "INF": math.inf}[value]
    if isinstance(value, float):
        return value
    if not _is_int(value) or float(value) != value:
        raise ValueError
    return float(value)


def _time(text):
    # The form of `isoformat`, of the forms that `fromisoformat` reads.
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]{3}|\.[0-9]{6})?[+-][0-9]{2}:[0-9]{2}", text):
        raise ValueError
    return datetime.fromisoformat(text).astimezone(UTC)


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64
