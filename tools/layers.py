"""Check that no Python module of the product imports one of a higher layer, and that none import each other.

`LAYERS` is the order, from the bottom; a name that ends with a dot stands for a package. The tools use only the public
API: they show that it suffices.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent / "python"

LAYERS = (
    *("cordwood._native", "cordwood.typing", "cordwood._text", "cordwood._html", "cordwood._optional"),
    *("cordwood.types", "cordwood._jsonable", "cordwood._log", "cordwood.errors", "cordwood._remote"),
    *("cordwood._follow", "cordwood._claims", "cordwood._pickling", "cordwood._open", "cordwood.payload."),
    *("cordwood._inputs.input", "cordwood._inputs.kind", "cordwood._inputs.stores", "cordwood._inputs.exports"),
    *("cordwood._inputs.files", "cordwood._inputs.", "cordwood._splits", "cordwood._tables."),
    *("cordwood._databases", "cordwood._summary", "cordwood._many", "cordwood._content", "cordwood"),
    *("cordwood._map.", "cordwood._evidence.", "cordwood.compat.", "cordwood.beam", "cordwood._spark."),
    *("pyspark_cordwood", "cordwood.cli.", "cordwood.cli", "cordwood.__main__"),
)

UPWARD = {("cordwood", "cordwood._map"), ("cordwood", "cordwood._evidence")}
"""The package passes on the names of tools that are built on it."""

LATE = ("cordwood._html", "cordwood._log", "cordwood._remote", "cordwood.payload")
"""Only these are imported in functions: a program that does not need them is to start without them."""

TOOLS = ("cordwood._map", "cordwood._evidence", "cordwood.beam", "cordwood.compat")
PUBLIC = ("cordwood", "cordwood.errors", "cordwood.payload", "cordwood.types", "cordwood.typing", "cordwood._text")
"""The modules that tools may use. `_text` has only names and words."""

LACKS = {
    "cordwood._evidence": {
        *("cordwood._native", "cordwood._remote", "cordwood._jsonable", "cordwood._summary", "cordwood._databases"),
        *("cordwood._inputs.each", "cordwood._inputs.exports", "cordwood._inputs.files", "cordwood._inputs.input"),
        *("cordwood._map.svg", "cordwood._tables.payloads"),
    },
    "cordwood.beam": {
        *("cordwood._native", "cordwood._remote", "cordwood._claims", "cordwood._tables.payloads"),
        *("cordwood._inputs.destinations", "cordwood._inputs.files"),
    },
}
"""The other modules that a tool uses, since the public API lacks something. The lists are only to get shorter."""


def is_part(module: str, package: str) -> bool:
    """Whether it is this package or a part of it."""
    return f"{module}.".startswith(f"{package}.")


def layer(module: str) -> int:
    """The number of its layer."""
    names = [name for name in LAYERS if module == name or (name.endswith(".") and f"{module}.".startswith(name))]
    if not names:
        sys.exit(f"{module} is in no layer: add it to LAYERS in tools/layers.py")
    return LAYERS.index(module if module in names else names[0])


def imports(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, int, bool]]:
    """The modules of the product that a module imports, with the line, and whether a function imports it."""
    late = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module or "" for name in whole]
        for name in modules.intersection(names):
            yield name, node.lineno, node in late


def faults(root: Path) -> Iterator[str]:
    """The imports that are against the rules."""
    paths = {".".join(path.relative_to(root).with_suffix("").parts): path for path in sorted(root.rglob("*.py"))}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    modules = {*paths, "cordwood._native"}
    graph: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {}
    for module, path in paths.items():
        for name, line, is_late in imports(ast.parse(path.read_text()), modules):
            place = f"{path.relative_to(root.parent)}:{line}: {module} imports {name}"
            if (module, name) in UPWARD:
                continue
            graph.setdefault(module, set()).add(name)
            if layer(name) > layer(module):
                yield f"{place}, which is in a higher layer"
            if is_late and not any(is_part(name, late) for late in LATE):
                yield f"{place} in a function"
            tool = next((tool for tool in TOOLS if is_part(module, tool)), None)
            if tool and not (is_part(name, tool) or name in PUBLIC or is_part(name, "cordwood.payload")):
                used.setdefault(tool, set()).add(name)
                if name not in LACKS.get(tool, ()):
                    yield f"{place}, which is not public"
    for tool, lacks in used.items():
        yield from (f"{tool} imports {name} no more: remove it from LACKS" for name in LACKS.get(tool, lacks) - lacks)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"modules import each other: {' -> '.join(reversed(error.args[1]))}"


if __name__ == "__main__":
    found = list(faults(ROOT))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
