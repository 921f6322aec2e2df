"""Changes two readers on purpose, one change at a time, and looks whether a case notices it. Writes mutants.md.

    python conformance/mutants.py [--node NODE]

Each line of a reader that has something to change gets two changes: hashes of the line select them. They belong to the
rules in the comment of its line, or else in the nearest comment above. The cases of these rules are asked first, then
all others. Results stay in target/reader-mutants.json: a later run tries only new changes, and those that no case
noticed and that have no reason. NODE needs a `zlib` with zstd, as of 22.15.

A change that no case notices is in mutants.md: `- LINE`, `+ LINE`, and the reason why it changes no answer, if it
changes none. Write the reason there; a later run keeps it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import suite

ROOT = suite.HERE.parent
RESULTS = ROOT / "target" / "reader-mutants.json"
PAGE = suite.HERE / "mutants.md"
JAVASCRIPT = ["conformance/readers/reader.mjs"]
PYTHON = ["tests/helpers/reference.py", "tests/helpers/containers.py"]
PARTS = ["FULL", "FIRST", "MIDDLE", "LAST"]
RULE = r"\b[A-Z]\d+[a-h]?\b"
DECLARES = re.compile(r"\s*(import|from|@|class|def|function|assert|const \[|\w+: \w+(,| = ))|.*describe")
# One change for each of them.
SALTS = ("", "2")
# Only the tests call them.
UNUSED = re.compile(r"def (record_offsets|varint)\b")
# What is changed, and to what.
CHANGES = [
    (r" < ", [" <= ", " >= "]),
    (r" > ", [" >= ", " <= "]),
    (r" <= ", [" < ", " > "]),
    (r" >= ", [" > ", " < "]),
    (r" (===?|!==?) ", {" === ": [" !== "], " !== ": [" === "], " == ": [" != "], " != ": [" == "]}),
    (r" (&&|\|\||and|or) ", {" && ": [" || "], " || ": [" && "], " and ": [" or "], " or ": [" and "]}),
    (r" (\+|-|\+=|\*) ", {" + ": [" - "], " - ": [" + "], " += ": [" -= "], " * ": [" + "]}),
    (r"(?<![\w.#\"'])\d+(?![\w.\"'])", lambda number: {str(int(number) + 1), str(abs(int(number) - 1))}),
    (r"(?<!\w)!(?=[\w(])|\bnot (?!in\b)", [""]),
    (r"\b(min|max|any|all|some|every)\(", lambda name: [OTHER[name]]),
    (r"\b[Tt]rue\b|\b[Ff]alse\b", lambda name: [OTHER[name]]),
    (r"\b(FULL|FIRST|MIDDLE|LAST)\b", lambda part: [PARTS[PARTS.index(part) - 1]]),
    (rf'(?<=")({"|".join(suite.SEVERITY)})(?=")', lambda reason: [OTHER.get(reason, "zero_fill")]),
    (r"^\s+((this|state)\.[\w.]+ (\?\?|\|\|)?= [^{]*;|yield.*;)$", [";"]),
    (r"^\s+(continue|break|yield .*|\w+ [+|]?= [^({]*|\w+\.(append|add)\(.*\))$", ["pass"]),
]
PAIRS = ["min( max(", "any( all(", "some( every(", "true false", "True False", "zero_fill torn_tail"]
OTHER = dict([pair.split() for pair in PAIRS] + [pair.split()[::-1] for pair in PAIRS])


@dataclass(frozen=True)
class Mutant:
    """A changed line of a reader."""

    file: str
    at: int
    old: str
    new: str
    rules: frozenset[str]
    nth: int
    """How many changes of the same line precede it."""

    @property
    def key(self) -> str:
        """Its name in the results."""
        return "\n".join([self.old, self.new, *([str(self.nth)] if self.nth else [])])


@dataclass(frozen=True)
class Reader:
    """A reader: its files, and the command that runs a copy of the repository."""

    name: str
    files: list[str]
    command: list[str]
    comment: str

    def mutants(self) -> Iterator[Mutant]:
        """Two changes for each line that has something to change, if it has two."""
        seen = Counter[str]()
        for file in self.files:
            rules, quoted, is_used = frozenset[str](), False, True
            for at, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines()):
                code, _, comment = line.partition(f" {self.comment} ")
                is_text = quoted or line.lstrip().startswith(('"""', self.comment, "/**"))
                if line.startswith(("def ", "class ")):
                    is_used = UNUSED.match(line) is None
                quoted ^= line.count('"""') == 1
                own = rules_in(line if is_text else comment)
                if is_text or code.rstrip().endswith(("{", ":")):
                    rules = own or rules
                if is_used and not is_text and (own or rules) and not DECLARES.match(line):
                    old = line.strip()
                    chosen = [
                        Mutant(file, at, old, new.strip() + line[len(code) :], own or rules, seen[old])
                        for new in sorted(set(changes(code)) - {code})
                    ]
                    yield from dict.fromkeys(filter(None, (self.chosen(chosen, salt) for salt in SALTS)))
                    seen[old] += bool(chosen)

    def chosen(self, mutants: list[Mutant], salt: str) -> Mutant | None:
        """The mutant of a line that a hash selects, or one of the next two, if that one does not compile."""
        digest = hashlib.sha256(f"{mutants[0].old}{salt}".encode()).hexdigest() if mutants else "0"
        first = int(digest, 16) % max(1, len(mutants))
        return next(filter(self.compiles, (mutants[first:] + mutants[:first])[:3]), None)

    def text(self, mutant: Mutant) -> str:
        """The changed file."""
        lines = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()
        line = lines[mutant.at]
        lines[mutant.at] = line[: len(line) - len(line.lstrip())] + mutant.new
        return "\n".join(lines)

    def compiles(self, mutant: Mutant) -> bool:
        if mutant.file.endswith(".py"):
            try:
                return bool(compile(self.text(mutant), mutant.file, "exec"))
            except SyntaxError:
                return False
        command = [self.command[0], "--check", "--input-type=module", "-"]
        return not subprocess.run(
            command, input=self.text(mutant).encode(), capture_output=True, check=False
        ).returncode

    def noticed(self, mutants: list[Mutant], cases: Path, copy: Path) -> Iterator[tuple[Mutant, suite.Task | None]]:
        """Each mutant, and the first task whose answer differs."""
        for directory in ("conformance", "tests/helpers"):
            shutil.copytree(ROOT / directory, copy / directory, ignore=shutil.ignore_patterns("cases", "__pycache__"))
        command = [self.command[0], str(copy / self.command[1])]
        runner = suite.Runner(command)
        states = runner.describe()
        # A reader that detects no dialect reads the one in the request.
        known = states | {"detection"}
        tasks = [task for task in suite.tasks(suite.all_cases(), cases) if known.issuperset(task.needs)]
        tasks = [task for task in tasks if suite.judged(task, runner.answer(task.request), states)[0] == "equal"]
        runner.stop()
        for mutant in mutants:
            (copy / mutant.file).write_text(self.text(mutant), encoding="utf-8")
            ordered = sorted(tasks, key=lambda task: mutant.rules.isdisjoint(task.case["rules"]))
            yield mutant, first_different(suite.Runner(command, timeout=10), ordered, states)
            shutil.copy(ROOT / mutant.file, copy / mutant.file)


def rules_in(text: str) -> frozenset[str]:
    """The rules that a comment names. `A1 to A6` are all from the one to the other."""
    found = set(re.findall(RULE, text))
    for first, last in re.findall(rf"({RULE}) to ({RULE})", text):
        found |= {rule for rule in ALL_RULES if order(first) <= order(rule) <= order(last)}
    return frozenset(found)


def order(rule: str) -> tuple[str, int, str]:
    """The place of a rule in a list."""
    letter, number, part = re.fullmatch(r"([A-Z])(\d+)(\w?)", rule).groups()
    return letter, int(number), part


ALL_RULES = sorted({rule for case in suite.all_cases() for rule in case["rules"]}, key=order)


def changes(code: str) -> Iterator[str]:
    """The line with each change that it allows."""
    for pattern, to in CHANGES:
        for match in re.finditer(pattern, code):
            old = match.group()
            new = to(old) if callable(to) else to[old] if isinstance(to, dict) else to
            yield from (code[: match.start()] + one + code[match.end() :] for one in new)


def first_different(runner: suite.Runner, tasks: list[suite.Task], states: set[str]) -> suite.Task | None:
    """The first task of which the suite would print a difference."""
    try:
        for task in tasks:
            new = Path(task.request.get("to") or task.request["path"])
            if task.policy in {"write", "repair"}:
                new.unlink(missing_ok=True)
            if suite.judged(task, runner.answer(task.request), states)[1]:
                return task
    except suite.BrokenRunnerError:
        return task
    finally:
        runner.stop()
    return None


# The page --------------------------------------------------------------------------------------


def reasons() -> dict[tuple[str, str], str]:
    """Why changes that no case notices change no answer, by their two lines."""
    blocks = re.findall(r"^- (.*)\n\+ (.*)\n((?:  .+\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {(old, new): reason for old, new, reason in blocks}


def page(found: dict[str, list[tuple[Mutant, list[Any] | None]]]) -> str:
    """The tables of the page, and the changes that no case notices."""
    text, known = PAGE.read_text(encoding="utf-8"), reasons()
    sums, rows, rest = [], [], []
    for name, results in found.items():
        alive = [mutant for mutant, by in results if by is None]
        same = sum(bool(known.get((mutant.old, mutant.new))) for mutant in alive)
        noticed = len(results) - len(alive)
        share = noticed / (len(results) - same)
        sums.append(f"| `{name}` | {len(results)} | {same} | {noticed} | {len(alive) - same} | {share:.1%} |")
        rest += [f"- {one.old}\n+ {one.new}\n{known.get((one.old, one.new), '')}" for one in alive]
    for rule in ALL_RULES:
        touching = [(mutant, by) for results in found.values() for mutant, by in results if rule in mutant.rules]
        if touching:
            ids = dict.fromkeys(by[0] for _, by in touching if by)
            own = sum(rule in by[1] for _, by in touching if by)
            noticed = sum(by is not None for _, by in touching)
            rows.append(f"| {rule} | {len(touching)} | {noticed} | {own} | {', '.join(sorted(ids, key=place))} |")
    for title, lines in {"change no answer": sums, "by a case of the rule": rows}.items():
        table = rf"(\|.*{title}.*\n\|[- |]+\n)(\|.*\n)*"
        text = re.sub(table, lambda match, lines=lines: match[1] + "".join(f"{line}\n" for line in lines), text)
    return re.sub(r"(?<=```diff\n).*?(?=```)", lambda _: "".join(rest), text, flags=re.DOTALL)


def place(case: str) -> tuple[str, int]:
    """The place of the id of a case in a list."""
    file, _, number = case.rpartition("-")
    return file, int(number)


def main() -> None:
    """Tries the changes, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", default="node")
    given = parser.parse_args()
    readers = [
        Reader("reader.mjs", JAVASCRIPT, [given.node, *JAVASCRIPT], "//"),
        Reader("reference.py", PYTHON, [sys.executable, "conformance/runners/pure_python.py"], "#"),
    ]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found, known = {}, reasons()
    for reader in readers:
        mutants = [*reader.mutants()]
        new = [
            one
            for one in mutants
            if not results.get(one.key) and not (one.key in results and known.get((one.old, one.new)))
        ]
        with tempfile.TemporaryDirectory() as cases, tempfile.TemporaryDirectory() as copy:
            for mutant, task in reader.noticed(new, Path(cases), Path(copy)):
                results[mutant.key] = task and [task.case["id"], task.case["rules"]]
                RESULTS.write_text(json.dumps(results))
                print("." if task else f"\n- {mutant.old}\n+ {mutant.new}\n", end="", flush=True)
        found[reader.name] = [(mutant, results[mutant.key]) for mutant in mutants]
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
