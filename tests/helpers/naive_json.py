"""JSON text as values, as Python's own parser has them: the naive counterpart of `rust/payload/src/table/tree.rs`."""

import json
import math
import re

from cordwood.types import PayloadReason

DEPTH_MAX = 100


class NaiveError(Exception):
    """A fault, with the reason that a `PayloadError` has for it."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


def refuse(reason):
    raise NaiveError(reason)


def escaped(value):
    """The value with the escape, six characters, in place of each lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [escaped(item) for item in value]
    if isinstance(value, dict):
        items = {escaped(name): escaped(item) for name, item in value.items()}
        if len(items) < len(value):
            raise NaiveError(PayloadReason.NON_CANONICAL)
        return items
    return value


def is_too_deep(text):
    """Whether JSON text has more than `DEPTH_MAX` levels of arrays and objects."""
    depth = 0
    for part in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}]', text):
        depth += (part in "[{") - (part in "]}")
        if depth > DEPTH_MAX:
            return True
    return False


def value_of_run(text):
    """A value of a run. The last of several values of one name counts; a number of many digits is text."""

    def integer(digits):
        return digits if len(digits.lstrip("-")) > 4_300 else int(digits)

    return _parsed(text, parse_int=integer)


def document(record):
    """The value of a record that is JSON text: each name occurs once, and each number is that of a double."""

    def values(items):
        if len(dict(items)) < len(items):
            raise NaiveError(PayloadReason.NON_CANONICAL)
        return dict(items)

    def integer(digits):
        if len(digits.lstrip("-")) > 4_300:
            raise NaiveError(PayloadReason.TOO_LARGE)
        return int(digits)

    def finite(number):
        if math.isinf(float(number)):
            raise NaiveError(PayloadReason.TOO_LARGE)
        return float(number)

    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise NaiveError(PayloadReason.NOT_UTF8) from error
    return _parsed(text, parse_int=integer, parse_float=finite, object_pairs_hook=values)


def _parsed(text, **rules):
    if is_too_deep(text):
        raise NaiveError(PayloadReason.TOO_DEEP)
    try:
        return escaped(json.JSONDecoder(**rules).decode(text))
    except ValueError as error:
        raise NaiveError(PayloadReason.NON_CANONICAL) from error
