"""Decodes the records of `.swanlab` files, which contain the data logged by a SwanLab run.

SwanLab doesn't have to be installed. Releases before 0.8 wrote JSON, while later ones write protocol buffers. This
module reads both.

>>> import json
>>> from cordwood.payload import swanlab
>>> scalar = {"metric": {"index": 3, "data": 0.5}, "key": "loss", "step": 3, "epoch": 4}
>>> swanlab.history_row(json.dumps({"model_type": "Scalar", "data": scalar}).encode())
{'key': 'loss', 'step': 3, 'epoch': 4, 'value': 0.5, 'time': None}
"""

from __future__ import annotations

from typing import Any

from cordwood._native import RecordDecoder

__all__ = ["history_row"]


def history_row(record: bytes) -> dict[str, Any] | None:
    """Returns the number logged in a record. Images, text and other media are not numbers.

    Args:
        record: A record from a `.swanlab` file.

    Returns:
        A dictionary with `key` (the name), `step`, `epoch` (the number of values with this name so far, only in JSON),
        `value`, and `time` (a `datetime` in UTC). Values not in the record are `None`. The result is `None` if the
        record does not contain a number.

    Raises:
        PayloadError: The record is not a SwanLab record.
    """
    return RecordDecoder("swanlab-history").row(record)
