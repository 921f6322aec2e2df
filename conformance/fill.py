"""Formats the files of cases, numbers new ones, and fills in expected outcomes that are null: `{"skip": null}`.

    python conformance/fill.py

The outcomes come from the reference of the tests, which shares no code with cordwood, and knows LevelDB's dialect and
packed logs; those of other dialects are written by hand. Check each outcome that it adds against the rule.
"""

import json
import sys
import tempfile
from itertools import count
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "runners")]

import pure_python  # noqa: E402
from suite import merged, summary, tasks_of  # noqa: E402

FIELDS = ("records", "salvaged", "raised", "regions", "end")
LISTED = 12


def outcome(answer):
    """The answer of the reference, as a case states it."""
    if "unsupported" in answer:
        raise SystemExit(f"write this outcome by hand: the reference does not know {answer['unsupported']}")
    found = {field: answer[field] for field in FIELDS if field in answer}
    if "regions" in found:
        found["regions"] = merged([region[:3] for region in found["regions"]])
    if not found.get("salvaged"):
        found.pop("salvaged", None)
    if len(found["records"]) > LISTED:
        found["records"] = summary(found["records"])
    return found


def fill(case):
    """Fills in the outcomes that are null."""
    with tempfile.TemporaryDirectory() as directory:
        for task in tasks_of(case, Path(directory)):
            if case.get("expected", {}).get(task.policy, task) is None:
                case["expected"][task.policy] = outcome(pure_python.answer(task.request))


def text(case):
    """A case in lines: one for each field, and one for each outcome."""
    lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in case.items() if key != "expected"]
    if "expected" in case:
        outcomes = (f"      {json.dumps(policy)}: {json.dumps(found)}" for policy, found in case["expected"].items())
        lines.append('    "expected": {\n' + ",\n".join(outcomes) + "\n    }")
    return "  {\n" + ",\n".join(lines) + "\n  }"


if __name__ == "__main__":
    for file in sorted((HERE / "cases").glob("*.json")):
        cases = json.loads(file.read_text(encoding="utf-8"))
        numbers = [int(case["id"].rpartition("-")[2]) for case in cases if "id" in case]
        new = count(max(numbers, default=0) + 1)
        cases = [case if "id" in case else {"id": f"{file.stem}-{next(new)}"} | case for case in cases]
        for one in cases:
            fill(one | {"file": file.name})
        file.write_text("[\n" + ",\n".join(map(text, cases)) + "\n]\n", encoding="utf-8")
