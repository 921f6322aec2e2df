"""Turns JSON text into values. A separate module, so that `json` is imported only when it is needed."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from cordwood.payload._error import payload_error
from cordwood.types import PayloadReason

DEPTH_MAX = 100
"""As many levels as protocol buffers themselves allow. Python can certainly write this many."""


def _int(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


# One decoder for all: creating one takes several times as long as decoding a value.
parsed = json.JSONDecoder(parse_int=_int).decode
"""The value of JSON text. An integer with more digits than Python accepts becomes text."""


def _object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in items:
        if name in value:
            raise ValueError(f"two values have the name {name!r}")
        value[name] = item
    return value


class _TooLargeError(Exception):
    """A number is larger than Python has it."""


def _int_only(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        # The time to convert more is quadratic, so Python does not.
        raise _TooLargeError(f"an integer of {len(text.lstrip('-')):,} digits") from None


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _TooLargeError(f"the number {text[:40]}, which is beyond the range of a double")
    return value


_parsed_strictly = json.JSONDecoder(parse_int=_int_only, parse_float=_finite, object_pairs_hook=_object).decode


def document(record: bytes) -> Any:
    """The value of a record that is JSON text. NaN and the infinities, as Python writes them, are JSON.

    Raises:
        PayloadError: The record is not JSON, an object in it has two values of the same name, it is nested too deeply,
            or it has an integer with more digits than Python accepts, usually 4,300, or a number beyond the range of a
            double.
    """
    offset = 0
    try:
        text = record.decode()
        value = _parsed_strictly(text)
    except UnicodeDecodeError as error:
        message, reason, offset = "text that is not UTF-8", PayloadReason.NOT_UTF8, error.start
    except RecursionError:
        message, reason = f"JSON of more than {DEPTH_MAX} levels", PayloadReason.TOO_DEEP
    except _TooLargeError as error:
        message, reason = str(error), PayloadReason.TOO_LARGE
    except ValueError as error:
        message, reason = f"not JSON: {error}", PayloadReason.NON_CANONICAL
    else:
        if not is_too_deep(text):
            return value
        message, reason = f"JSON of more than {DEPTH_MAX} levels", PayloadReason.TOO_DEEP
    raise payload_error(message, record, reason, offset)


def is_too_deep(text: str) -> bool:
    """Whether JSON text has more than `DEPTH_MAX` levels of arrays and objects.

    A value that a later one of the same name replaces counts, too.
    """
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return False
    depth = 0
    # A text in quotation marks, which may contain brackets, is one match.
    for part in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}]', text):
        depth += (part in "[{") - (part in "]}")
        if depth > DEPTH_MAX:
            return True
    return False
