"""The errors of payloads that are found in Python."""

from __future__ import annotations

from cordwood.errors import PayloadError
from cordwood.types import PayloadReason


def payload_error(message: str, record: bytes, reason: PayloadReason, offset: int = 0) -> PayloadError:
    """The error for a record with a fault at an offset, with a message like those of the others."""
    length = len(record) - offset
    message = f"{message} ({length} byte{'' if length == 1 else 's'} at offset {offset} of the payload)"
    return PayloadError(message, offset=offset, length=length, reason=reason)
