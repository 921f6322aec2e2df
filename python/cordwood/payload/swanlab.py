"""The records of `.swanlab` files: the logged data of a run of SwanLab. SwanLab need not be installed.

Releases before 0.8 wrote JSON, later ones protocol buffers; both are read.

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
    return RecordDecoder("swanlab-history").row(record)
