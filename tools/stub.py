"""Copy the docstrings of the native module into its stub, and the names of payloads into `cordwood.typing`.

`make dev` runs it.

    python tools/stub.py            rewrite both
    python tools/stub.py --check    only compare, and fail if they differ

The types in the stub are written by hand. The docstrings are written once, as `///` in the binding, but editors read
them in the stub.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from types import WrapperDescriptorType

from cordwood import _native
from cordwood._tables.payloads import PAYLOADS

PACKAGE = Path(__file__).parents[1] / "python/cordwood"
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


def with_decoder_names(typing: str) -> str:
    """The module `cordwood.typing`, in which `DecoderName` has the names of all payloads."""
    names = "".join(f'    "{name}",\n' for name in PAYLOADS)
    return re.sub(r"(DecoderName: TypeAlias = Literal\[)[^\]]*\]", rf"\1\n{names}]", typing)


def main() -> None:
    for name, updated in (("_native.pyi", with_docstrings), ("typing.py", with_decoder_names)):
        path = PACKAGE / name
        old = path.read_text(encoding="utf-8")
        new = updated(old)
        if sys.argv[1:] == ["--check"]:
            if new != old:
                sys.exit(f"{path} is not up to date: run `make dev`")
        elif new != old:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
