"""Prints which tests prove each kind of log on each way of reading it, as a table in `tests/README.md`.

    python tools/matrix.py            writes the table
    python tools/matrix.py --check    fails if it is out of date, a cell is empty, or an expected failure has no id

A Python test states its cells by `@pytest.mark.cell("packed segmented", "index")`: each of these kinds with each of
these ways. `*` means every kind. A Rust test states them in a line above it: `/// Cell: segmented x follow-pad`. The
tests are read as text: none is run.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "tests/README.md"
START, END = "<!-- matrix: begin -->\n", "<!-- matrix: end -->"

KINDS = {
    "one-file": "one file",
    "segmented": "segmented",
    "packed": "packed",
    "numbered": "log numbers",
    "compressed": "compression",
    "remote": "remote",
}
WAYS = {
    "whole": "whole",
    "range": "range",
    "splits": "splits",
    "threads": "threads",
    "batches": "record batches",
    "follow-growing": "follower: growing",
    "follow-pad": "follower: after pad",
    "follow-truncate": "follower: after truncate",
    "follow-zeros": "follower: after zeros",
    "follow-flips": "follower: after flips",
    "index": "index",
    "salvage": "salvage",
    "repair": "repair",
    "retention": "retention",
    "scan": "`scan`",
    "beam": "Beam",
    "spark": "Spark",
}
ID = re.compile(r"(house|exact|attack|engines) [A-Z]\d+(?=: )")
RUST = re.compile(r"/// Cell: (.+) x (.+)\n(?:\s*(?:///|#\[).*\n)*\s*fn (\w+)")

Test = tuple[str, str, str]
"""The file, the name, and the id of its expected failure, or nothing."""


def main() -> None:
    faults: list[str] = []
    cells: dict[tuple[str, str], list[Test]] = {(kind, way): [] for way in WAYS for kind in KINDS}
    for kind, way, test in marked(faults):
        if (kind, way) not in cells:
            faults.append(f"{test[0]}::{test[1]}: no cell {kind} x {way}")
        else:
            cells[kind, way].append(test)
    faults += [f"no test of {kind} x {way}" for (kind, way), found in cells.items() if not found]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    new = before + START + "\n".join(table(cells)) + "\n" + END + after
    if "--check" not in sys.argv:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        faults.append("tests/README.md is out of date: run python tools/matrix.py")
    if faults:
        sys.exit("\n".join(faults))


def marked(faults: list[str]) -> Iterator[tuple[str, str, Test]]:
    """Each kind and way with each test of it."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        values = {node.targets[0].id: node.value for node in tree.body if is_constant(node)}
        faults += wrong_marks(tree, values, name)
        for test in ast.walk(tree):
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in test.decorator_list:
                    if called(mark) == "pytest.mark.cell":
                        kinds, ways = (ast.literal_eval(argument) for argument in mark.args)
                        failing = dict(expected_failures(test.decorator_list, values))
                        for kind, way in products(kinds, ways):
                            yield kind, way, (name, test.name, failing.get(kind, failing.get("*", "")))
    for path in sorted((ROOT / "rust/cordwood/tests").rglob("*.rs")):
        for kinds, ways, name in RUST.findall(path.read_text(encoding="utf-8")):
            for kind, way in products(kinds, ways):
                yield kind, way, (path.relative_to(ROOT).as_posix(), name, "")


def products(kinds: str, ways: str) -> Iterator[tuple[str, str]]:
    return product(KINDS if kinds == "*" else kinds.split(), ways.split())


def is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)


def called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def id_of(mark: ast.Call, values: dict[str, ast.expr]) -> str | None:
    """The id at the start of the reason of an expected failure, if it is strict."""
    given = {word.arg: word.value for word in mark.keywords}
    reason = given.get("reason")
    reason = values.get(reason.id) if isinstance(reason, ast.Name) else reason
    found = ID.match(str(getattr(reason, "value", "")))
    return found[0] if found and getattr(given.get("strict"), "value", False) is True else None


def is_from_a_file(mark: ast.Call) -> bool:
    """Whether the id is in `conformance/known.txt`, whose cases are marked as they are read."""
    return any(word.arg == "reason" and ast.unparse(word.value).startswith("KNOWN[") for word in mark.keywords)


def wrong_marks(tree: ast.AST, values: dict[str, ast.expr], file: str) -> list[str]:
    marks = [node for node in ast.walk(tree) if called(node) == "pytest.mark.xfail" and not is_from_a_file(node)]
    message = "an expected failure is strict, and its reason starts with the id of a finding"
    return [f"{file}:{mark.lineno}: {message}" for mark in marks if id_of(mark, values) is None]


def expected_failures(marks: Iterable[ast.AST], values: dict[str, ast.expr]) -> Iterator[tuple[str, str]]:
    """The kinds of log for which a test is expected to fail, with the id; `*` is every kind."""
    for node in (node for mark in marks for node in walk(mark, values)):
        if called(node) == "pytest.param":
            found = [mark for mark in walk(node, values) if called(mark) == "pytest.mark.xfail"]
            yield from ((ast.literal_eval(node.args[0]), id_of(mark, values) or "") for mark in found)
    yield from (("*", id_of(mark, values) or "") for mark in marks if called(mark) == "pytest.mark.xfail")


def walk(tree: ast.AST, values: dict[str, ast.expr]) -> Iterator[ast.AST]:
    """All nodes, also those of the constants that are named."""
    for node in ast.walk(tree):
        yield node
        if isinstance(node, ast.Name) and node.id in values:
            yield from walk(values[node.id], values)


def table(cells: dict[tuple[str, str], list[Test]]) -> Iterator[str]:
    tests = sorted({(file, name) for found in cells.values() for file, name, _ in found})
    numbers = {test: number for number, test in enumerate(tests, 1)}
    yield "| | " + " | ".join(KINDS.values()) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for way, title in WAYS.items():
        rows = (sorted({(numbers[file, name], failing) for file, name, failing in cells[kind, way]}) for kind in KINDS)
        texts = (
            ", ".join(f"**{number}: {failing}**" if failing else str(number) for number, failing in row) for row in rows
        )
        yield f"| {title} | " + " | ".join(texts) + " |"
    yield ""
    yield from (f"{number}. `{file}::{name}` (`{command(file)}`)" for (file, name), number in numbers.items())


def command(file: str) -> str:
    """What runs a test."""
    if file in ("pipelines/test_beam.py", "pipelines/test_spark.py"):
        return "make test-engines"
    return "make test-remote" if file.startswith("remote/") else "make test"


if __name__ == "__main__":
    main()
