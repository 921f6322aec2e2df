"""Count the lines of code of the product, to compare two versions of it.

    python tools/lines.py                     the working tree
    python tools/lines.py REVISION ...        these git revisions, a column for each
    python tools/lines.py --check             fails if the working tree has more than pyproject.toml allows

A line of code is neither blank nor part of a comment or a docstring. Tests do not count, in Rust
the modules named `tests`: the script relies on rustfmt, which starts and ends them in the first
column. The stub is counted apart and is not part of the product's lines, since it repeats the
binding.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

PARTS = {
    "core": "rust/cordwood/src/",
    "payload": "rust/payload/src/",
    "binding": "rust/cordwood-python/src/",
    "python": "python/cordwood/",
}
TESTS = re.compile(r"^(#\[[^\n]*\]\n)?mod tests \{$.*?^\}$", re.MULTILINE | re.DOTALL)


def rust_lines(text: str) -> int:
    """The lines of code of a Rust file."""
    lines = (line.strip() for line in TESTS.sub("", text).splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


def python_lines(text: str) -> int:
    """The lines of code of a Python file."""
    found = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            docstring = node.body[0]
            found.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return sum(bool(line.strip()) for number, line in enumerate(text.splitlines(), 1) if number in found)


COUNT = {".rs": rust_lines, ".py": python_lines, ".pyi": python_lines}


def part_of(path: str) -> str | None:
    """The part of the product that a file belongs to, or `None` if it is not code of the product."""
    if path.endswith(".pyi"):
        return "stub"
    if Path(path).suffix not in COUNT or path.endswith("/tests.rs"):
        return None
    return next((part for part, directory in PARTS.items() if path.startswith(directory)), None)


def working_tree() -> Iterator[tuple[str, str]]:
    """The files that git does not ignore."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "rust", "python").decode()
    for name in listed.splitlines():
        if part_of(name) and (path := Path(name)).exists():
            yield name, path.read_text(encoding="utf-8")


def revision(name: str) -> Iterator[tuple[str, str]]:
    """The files of a git revision."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", name, "rust", "python"))) as archive:
        for member in archive:
            if part_of(member.name) and (file := archive.extractfile(member)):
                yield member.name, file.read().decode()


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE).stdout


def count(files: Iterator[tuple[str, str]]) -> dict[str, int]:
    """The lines of each part, and of the product."""
    lines = dict.fromkeys([*PARTS, "product", "stub"], 0)
    for path, text in files:
        part = part_of(path)
        lines[part] += (found := COUNT[Path(path).suffix](text))
        if part in PARTS:
            lines["product"] += found
    return lines


def check() -> int:
    """Fails if the product has more lines of code than `product-lines-max`."""
    line_count = count(working_tree())["product"]
    line_count_max = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["cordwood"][
        "product-lines-max"
    ]
    if line_count > line_count_max:
        print(f"the product has {line_count:,} lines of code, of at most {line_count_max:,}: delete some, or raise")
        print("product-lines-max in pyproject.toml in a commit that says why")
    elif line_count < line_count_max:
        print(f"the product has {line_count:,} lines of code: lower product-lines-max, {line_count_max:,}, to that")
    return int(line_count > line_count_max)


def main() -> int:
    names = sys.argv[1:]
    if names == ["--check"]:
        return check()
    columns = [count(revision(name)) for name in names] or [count(working_tree())]
    print("".join(f"{name:>12}" for name in ["", *(names or ["lines"])]))
    for part in columns[0]:
        print(f"{part:12}" + "".join(f"{column[part]:12,}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
