"""A progress bar."""

from __future__ import annotations

import os
import sys
from typing import Any, Self

from cordwood._remote import is_url
from cordwood.cli._sources import display_name


class Progress:
    """A bar on stderr with rate and time left, once the work takes longer than a second.

    Only on a terminal, and only where tqdm is installed (the extra `cli`). Where records go to the same terminal, they
    are the progress.
    """

    def __init__(self, name: str, *, prints_records: bool = False) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty() or (prints_records and sys.stdout.isatty()):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = None if name == "-" or is_url(name) else os.stat(name).st_size  # noqa: PTH116 - pathlib is slow to import
        self._bar = tqdm(
            total=total, desc=display_name(name), delay=1, leave=False, unit="B", unit_scale=True, unit_divisor=1024
        )

    def __call__(self, done_len: int) -> None:
        """Adds the number of bytes that have been done since the last call."""
        if self._bar is not None:
            self._bar.update(done_len)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
