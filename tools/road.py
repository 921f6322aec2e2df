"""Print the Python files of the package that one run of the command enters, in order, and how many there are.

    python tools/road.py convert --as entity --to parquet LOG TABLE

A file is entered where one of its functions is called; the line shows the first of them. Calls
while a module is imported do not count. The command's own output goes to stderr.
"""

import inspect
import os
import sys
import threading
from pathlib import Path
from types import FrameType

import cordwood
from cordwood.cli import main

PACKAGE = str(Path(cordwood.__file__).parent) + os.sep


class Road:
    """The entered files, each with the function that was called first."""

    def __init__(self) -> None:
        self.entered: dict[str, str] = {}
        # The thread imports a module of the package, perhaps from another one.
        self._imports = threading.local()

    def trace(self, frame: FrameType, event: str, _argument: object) -> None:
        """The function for `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        depth = getattr(self._imports, "depth", 0)
        if code.co_name == "<module>":
            self._imports.depth = depth + (1 if event == "call" else -1)
        # The body of a class is not optimized.
        elif event == "call" and not depth and code.co_flags & inspect.CO_OPTIMIZED:
            file = Path(code.co_filename.removeprefix(PACKAGE)).as_posix()
            self.entered.setdefault(file, code.co_qualname)


def traced(arguments: list[str]) -> dict[str, str]:
    """Runs the command with these arguments. Returns the entered files."""
    road = Road()
    output = os.dup(1)
    os.dup2(2, 1)
    threading.setprofile(road.trace)
    sys.setprofile(road.trace)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.stdout.flush()
        os.dup2(output, 1)
    return road.entered


if __name__ == "__main__":
    found = traced(sys.argv[1:])
    width = max(map(len, found), default=0)
    for file, function in found.items():
        print(f"{file:{width}}  {function}")
    print(f"{len(found)} files")
