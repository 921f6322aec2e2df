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
    """A source that can be read several times: what is yielded gives it, at its beginning.

    A file by name can have several readers at a time. stdin, and the temporary file into which a pipe is copied, have
    one: the next begins when the one before has ended.
    """
    with contextlib.ExitStack() as stack:
        if name != "-" and Path(name).is_file():
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
