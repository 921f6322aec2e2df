"""Shows a progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any, Self

from cordwood._remote import is_url
from cordwood._text import display_name
from cordwood.cli import _messages


class ProgressBar:
    """A progress bar on stderr that shows the rate and the remaining time.

    The bar appears once the work has taken a second, but only on a terminal, and only if tqdm is installed (the `cli`
    extra). It isn't shown while records are being printed on the terminal, because they already show the progress. It
    is removed before a message is printed and when the work ends.
    """

    def __init__(self, name: str, *, prints_records: bool = False) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty() or _messages.is_quiet or (prints_records and sys.stdout.isatty()):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = None
        # A missing file is reported when it is opened.
        with contextlib.suppress(OSError, ValueError):
            total = None if name == "-" or is_url(name) else os.stat(name).st_size
        self._bar = tqdm(
            total=total, desc=display_name(name), delay=1, leave=False, unit="B", unit_scale=True, unit_divisor=1024
        )
        # Leave space for `^C`, which the terminal prints on Ctrl-C.
        if self._bar.ncols:
            self._bar.ncols = max(self._bar.ncols - 3, 1)

    def __call__(self, done_len: int) -> None:
        """Adds the number of bytes read since the last call."""
        if self._bar is not None:
            self._bar.update(done_len)

    def __enter__(self) -> Self:
        _messages.before_message = self._clear
        return self

    def __exit__(self, *_: object) -> None:
        _messages.before_message = None
        if self._bar is not None:
            self._clear()
            self._bar.close()

    def _clear(self) -> None:
        """Removes the bar from the terminal until it is drawn again."""
        # Ctrl-C may arrive while the bar is being drawn, before tqdm has recorded that it is visible.
        if self._bar is None or time.time() < self._bar.start_t + self._bar.delay:
            return
        # This also removes `^C` from the line.
        is_dumb = os.environ.get("TERM") == "dumb"
        print(
            "\r" + (" " * (self._bar.ncols or 0) + "\r" if is_dumb else "\x1b[K"), end="", file=sys.stderr, flush=True
        )
