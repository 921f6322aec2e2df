"""Sources that are read more than once."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from cordwood.typing import Source


@contextlib.contextmanager
def readable_twice(name: str) -> Generator[Callable[[], Source]]:
    """A source that can be read several times, also at a time: what is yielded gives it, at its beginning.

    Of a pipe, it is a copy in a temporary file.
    """
    with contextlib.ExitStack() as stack:
        if name != "-" and not Path(name).is_fifo():
            yield lambda: name
            return
        file: IO[bytes] = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
        if not file.seekable():
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            file = copy
        begin = file.tell()

        def rewound() -> Source:
            file.seek(begin)
            return file

        yield rewound
