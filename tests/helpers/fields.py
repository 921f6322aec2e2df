"""The command `fields` of the sessions: of each JSON object on its standard input, the named fields, in a line.

    cordwood verify --json log | fields ok outcome.kind

So a session shows the fields that it is about, and stays as it is if another field is added. A dot leads into an
object, and into each object of a list. A field that an object lacks is left out, and so is an object that has none.
"""

import json
import sys

MISSING = object()


def field(value: object, path: list[str]) -> object:
    """The field at this path, or `MISSING`."""
    if not path:
        return value
    if isinstance(value, list):
        found = [field(item, path) for item in value]
        return [item for item in found if item is not MISSING]
    if isinstance(value, dict) and path[0] in value:
        return field(value[path[0]], path[1:])
    return MISSING


def line(text: str, names: list[str]) -> str | None:
    """The named fields of an object; `None` if it has none."""
    found = [(name, field(json.loads(text), name.split("."))) for name in names]
    shown = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in found if value is not MISSING]
    return ", ".join(shown) or None


if __name__ == "__main__":
    for each in sys.stdin:
        shown = line(each, sys.argv[1:])
        if shown is not None:
            sys.stdout.write(f"{shown}\n")
