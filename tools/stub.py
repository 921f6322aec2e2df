"""Copy the docstrings of the native module into its stub: `make dev` runs it.

    python tools/stub.py            rewrite the stub
    python tools/stub.py --check    only compare, and fail if it has other docstrings

The types in the stub are written by hand. The docstrings are written once, as `///` in the binding, but editors read
them in the stub.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from types import WrapperDescriptorType

from cordwood import _native

STUB = Path(__file__).parents[1] / "python/cordwood/_native.pyi"
Name = tuple[str, ...]


def definitions(
    node: ast.Module | ast.ClassDef, path: Name = ()
) -> Iterator[tuple[Name, ast.ClassDef | ast.FunctionDef]]:
    """The classes, methods, properties and functions, each with its name and those of its owners."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield (*path, child.name), child
            if isinstance(child, ast.ClassDef):
                yield from definitions(child, (*path, child.name))


def docstring(path: Name) -> str | None:
    """The docstring of the object with this name, empty if it has none; `None` if it is Python's own."""
    item = reduce(getattr, path, _native)
    if path[-1] == "__new__" or isinstance(item, WrapperDescriptorType):
        return None
    return inspect.cleandoc(item.__doc__ or "")


def with_docstrings(stub: str) -> str:
    """The stub with the docstrings of the module. Of several overloads, the last has it."""
    lines = stub.splitlines()
    done = set[Name]()
    # From the end, so that the line numbers of the others stay right.
    for path, node in reversed(list(definitions(ast.parse(stub)))):
        if path in done or (text := docstring(path)) is None:
            continue
        done.add(path)
        if not text:
            if ast.get_docstring(node):
                sys.exit(f"{'.'.join(path)} has a docstring in the stub, and none in the binding")
            continue
        # The old docstring, or `...` at the end of a line.
        old = node.body[0]
        kept = lines[old.lineno - 1][: old.col_offset].rstrip()
        end = "\n" if "\n" in text else ""
        prefix = "r" if "\\" in text else ""
        new = textwrap.indent(f'{prefix}"""{text}{end}"""', " " * (node.col_offset + 4))
        lines[old.lineno - 1 : old.end_lineno] = [*filter(None, [kept]), *new.splitlines()]
    return "\n".join(lines) + "\n"


def main() -> None:
    old = STUB.read_text(encoding="utf-8")
    new = with_docstrings(old)
    if sys.argv[1:] == ["--check"]:
        if new != old:
            sys.exit(f"{STUB} has other docstrings than the module: run `make dev`")
    elif new != old:
        STUB.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
