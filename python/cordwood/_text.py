"""Quantities in words, and bytes as text."""

from __future__ import annotations

from binascii import b2a_base64


def quantity(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def base64_text(data: bytes) -> str:
    """Bytes as base64, on one line. The module `base64` is slower to import."""
    return b2a_base64(data, newline=False).decode("ascii")
