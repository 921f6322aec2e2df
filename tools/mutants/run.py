"""Changes the core on purpose, one change at a time, and looks whether a test fails.

    python tools/mutants/run.py [--record] [PATH ...]

All changes (mutants) are in one build. The variable MUTANT has the number of the one that is on. `src/main.rs` lists
them, and those that do not compile are removed. Then each test runs once and notes which mutants it reaches, and each
mutant runs only the tests that reach it, the likeliest and shortest first, until one fails. A test that takes ten times
as long as usual counts as failed. The sets of `rust/exhaustive` are tests as well, in a build of their own.

The paths are below rust/cordwood/src; by default, PARTS. Results stay in target/mutants/results.jsonl, one mutant a
line, and a later run goes on where the last one stopped: `--again` tries those again that survived. `equivalent.txt`
lists the mutants that change no result, with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "mutants"
COPY = WORK / "copy"
SOURCE = Path("rust/cordwood/src")
RESULTS = WORK / "results.jsonl"
BUILD = WORK / "build.json"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")

# Parts of the core, in the order in which they are tried: those that decide about damage first.
PARTS = (
    "decode/look.rs",
    "assemble.rs",
    "fragment.rs",
    "damage",
    "writer/append",
    "reader/follow",
    "decode",
    "container.rs",
    "encode.rs",
    "encode",
    "segments.rs",
    "reader/segments.rs",
    "writer/segmented",
    "detect",
)

# Files without decisions about logs: tests, and what a report prints.
LEFT_OUT = ("tests.rs",)

# The programs with tests. The unit tests, and `all`, prove most, in the least time.
PROGRAMS = ("cordwood_log", "all", "model", "pack", "dialect_ops", "engines")

# All small files, with blocks of 24 bytes: a build of its own.
EXHAUSTIVE = "exhaustive"

# Tests that write more than the limit below.
SKIPPED = ("large_file::",)

SWITCH = """
/// Whether this mutant is on.
#[doc(hidden)]
#[expect(missing_docs)]
pub mod mutants {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    static ON: AtomicU32 = AtomicU32::new(u32::MAX);
    static REACHED: [AtomicBool; 20_000] = [const { AtomicBool::new(false) }; 20_000];

    #[inline(always)]
    pub fn mutant(number: u32) -> bool {
        let on = ON.load(Ordering::Relaxed);
        on == number || (on >= u32::MAX - 1 && first(number, on))
    }

    /// Reads the variables; notes that a mutant is reached.
    #[cold]
    #[inline(never)]
    fn first(number: u32, on: u32) -> bool {
        if on == u32::MAX {
            let is_noting = std::env::var_os("MUTANT_REACHED").is_some();
            let on = std::env::var("MUTANT").ok().and_then(|on| on.parse().ok()).unwrap_or(0);
            ON.store(if is_noting { u32::MAX - 1 } else { on }, Ordering::Relaxed);
            return mutant(number);
        }
        let reached = &REACHED[number as usize];
        if !reached.load(Ordering::Relaxed)
            && !reached.swap(true, Ordering::Relaxed)
            && let Some(path) = std::env::var_os("MUTANT_REACHED")
            && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path)
        {
            let _ = file.write_all(format!("{number}\\n").as_bytes());
        }
        false
    }
}
pub(crate) use mutants::mutant;
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(PARTS))
    parser.add_argument("--record", action="store_true", help="write the figures into docs/safety.md")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--seconds", type=float, default=60, help="for each mutant, the time of the tests to run")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many minutes")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    files = files_of(options.paths)
    if not options.record:
        mutants = build(files_of(list(PARTS) + [path for path in options.paths if path not in PARTS]))
        tests = watched()
        Tries(mutants, tests, options).run(files)
        print(table(counts()))
    else:
        record()
    return 0


def files_of(paths: list[str]) -> list[str]:
    """The source files below the paths, each once, in their order."""
    files: dict[str, None] = {}
    for path in paths:
        found = ROOT / SOURCE / path
        for file in sorted(found.rglob("*.rs")) if found.is_dir() else [found]:
            if file.name not in LEFT_OUT:
                files[str(file.relative_to(ROOT / SOURCE))] = None
    return list(files)


# The build ---------------------------------------------------------------------------------------


def build(files: list[str]) -> list[dict[str, Any]]:
    """Every mutant, after the copy with those that compile is built."""
    lister = ["cargo", "run", "--quiet", "--manifest-path", str(Path(__file__).with_name("Cargo.toml"))]
    lister += ["--target-dir", str(WORK / "tool"), "--", str(ROOT / SOURCE), *files]
    listed = subprocess.run(lister, check=True, capture_output=True, text=True).stdout
    mutants = [json.loads(line) for line in listed.splitlines()]
    numbers: Counter[str] = Counter()
    for mutant in mutants:
        key = f"{mutant['file']} {mutant['place']}: {mutant['change']}"
        numbers[key] += 1
        mutant["key"] = key if numbers[key] == 1 else f"{key} #{numbers[key]}"
        mutant["dropped"] = False
    for number, mutant in enumerate(mutants, start=1):
        mutant["number"] = number
    source = digest_of(sorted((ROOT / SOURCE).rglob("*.rs")))
    kept = json.loads(BUILD.read_text()) if BUILD.exists() else {}
    copy(files)
    if kept.get("source") == source and kept["files"] == files:
        mutants = kept["mutants"]
        errors_of(mutants, files)
    else:
        while bad := errors_of(mutants, files):
            for mutant in mutants:
                mutant["dropped"] = mutant["dropped"] or mutant["number"] in bad
            print(f"{len(bad)} mutants do not compile", flush=True)
    cargo("test", "--no-run", *(flag for name in PROGRAMS[1:] for flag in ("--test", name)), "--lib")
    cargo("build", "--example", "conformance", "--profile", "test")
    build_exhaustive()
    BUILD.write_text(json.dumps({"source": source, "files": files, "mutants": mutants}))
    return mutants


def digest_of(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def copy(files: list[str]) -> None:
    """Copies the core, except for the files with mutants; what its tests read is linked."""
    for file in sorted([*(ROOT / "rust/cordwood").rglob("*"), *(ROOT / "rust/exhaustive").rglob("*")]):
        name = file.relative_to(ROOT)
        if file.is_file() and str(name).removeprefix(f"{SOURCE}/") not in files:
            put(COPY / name, file.read_bytes() + (SWITCH.encode() if name == SOURCE / "lib.rs" else b""))
    for name in ("tests", "conformance", "docs", "README.md", "rust/fuzz"):
        if not (COPY / name).is_symlink():
            (COPY / name).symlink_to(ROOT / name)
    put(COPY / "Cargo.lock", (ROOT / "Cargo.lock").read_bytes())
    manifest = (ROOT / "Cargo.toml").read_text()
    before, _, after = manifest.partition("members =")
    put(COPY / "Cargo.toml", f'{before}members = ["rust/cordwood"]{after[after.index(chr(10)) :]}'.encode())


def put(file: Path, content: bytes) -> None:
    """Writes a file if its content changes. Otherwise Cargo would compile it again."""
    if not file.exists() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def cargo(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = ["cargo", arguments[0], "--quiet", "--offline", "--package", "cordwood-log", "--features", "zstd"]
    command += arguments[1:]
    environment = os.environ | {"RUSTFLAGS": "--cap-lints=allow", "CARGO_INCREMENTAL": "1"}
    environment["CARGO_TARGET_DIR"] = str(WORK / "target")
    return subprocess.run(command, cwd=COPY, env=environment, text=True, check=not more, **more)


def build_exhaustive() -> None:
    command = ["cargo", "build", "--quiet", "--offline", "--manifest-path", "rust/exhaustive/Cargo.toml"]
    environment = os.environ | {"RUSTFLAGS": "--cap-lints=allow --cfg cordwood_small_blocks"}
    environment["CARGO_TARGET_DIR"] = str(WORK / EXHAUSTIVE)
    subprocess.run(command, cwd=COPY, env=environment, check=True)


def errors_of(mutants: list[dict[str, Any]], files: list[str]) -> set[int]:
    """Writes the files with the mutants that are left, and returns the numbers of those that do not compile."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for file in files:
        of_file = [mutant for mutant in mutants if mutant["file"] == file and not mutant["dropped"]]
        content = (ROOT / SOURCE / file).read_bytes()
        out = Switches(content, of_file)
        put(COPY / SOURCE / file, bytes(out.text))
        spans[str(SOURCE.relative_to("rust/cordwood") / file)] = out.spans
    bad: set[int] = set()
    rest: list[str] = []
    for kind in ((), ("--profile", "test")):
        checked = cargo("check", "--lib", "--message-format=json", *kind, capture_output=True)
        for line in checked.stdout.splitlines():
            message = json.loads(line).get("message")
            if not isinstance(message, dict) or message["level"] != "error":
                continue
            found = {number for span in places_of(message) if (number := innermost(spans, span)) is not None}
            bad |= found
            if not found:
                rest.append(message["rendered"])
        if bad:
            return bad
    if rest:
        sys.exit("the copy does not compile:\n" + "\n".join(rest[:5]))
    return bad


def places_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Where an error comes from. A variable may be without a value because an assignment is deleted elsewhere."""
    is_without_value = (message["code"] or {}).get("code") == "E0381"
    return [span for span in message["spans"] if span["is_primary"] != is_without_value]


def innermost(spans: dict[str, list[tuple[int, int, int]]], place: dict[str, Any]) -> int | None:
    """The mutant whose text, or else whose switch, is the smallest around a place."""
    for file, ranges in spans.items():
        if place["file_name"].endswith(file):
            around = [
                (end - start, number)
                for start, end, number in ranges
                if start <= place["byte_start"] and place["byte_end"] <= end
            ]
            return min(around)[1] if around else None
    return None


class Switches:
    """The text of a file with a switch for each mutant, and the range of each."""

    def __init__(self, content: bytes, mutants: list[dict[str, Any]]) -> None:
        self.content = content
        self.text = bytearray()
        self.spans: list[tuple[int, int, int]] = []
        groups: dict[tuple[int, int, str], list[dict[str, Any]]] = defaultdict(list)
        for mutant in mutants:
            start, end = mutant["start"], mutant["end"]
            if mutant["role"] == "body":
                start = end
            groups[start, -end, mutant["role"]].append(mutant)
        # A condition's chain is outside of the expressions in it.
        order = {"body": 0, "statement": 1, "chain": 2, "expression": 3}
        self.groups = sorted(groups.items(), key=lambda group: (group[0][0], group[0][1], order[group[0][2]]))
        self.next = 0
        self.write(0, len(content))

    def write(self, at: int, end: int) -> None:
        """Writes a range of the content, and the switches in it."""
        while self.next < len(self.groups) and self.groups[self.next][0][0] < end:
            (start, negative, role), mutants = self.groups[self.next]
            self.next += 1
            self.text += self.content[at:start]
            self.switch(role, start, -negative, mutants)
            at = -negative
        self.text += self.content[at:end]

    def switch(self, role: str, start: int, end: int, mutants: list[dict[str, Any]]) -> None:
        """Writes a range, and the switches of the mutants that change all of it."""
        outer = len(self.text)
        if role == "expression":
            self.text += b"("
        for mutant in mutants:
            first = len(self.text)
            on = f"crate::mutant({mutant['number']})"
            self.text += {
                "expression": f"if {on} {{ {mutant['text']} }} else ",
                "statement": f"if !{on} {{ ",
                "chain": f"!{on} && ",
                "body": f" if {on} {{ {mutant['text']} }}",
            }[role].encode()
            self.spans.append((first, len(self.text), mutant["number"]))
        if role == "expression":
            self.text += b"{ "
        self.write(start, end)
        self.text += {"expression": b" })", "statement": b" }", "chain": b"", "body": b""}[role]
        for mutant in mutants:
            self.spans.append((outer, len(self.text), mutant["number"]))


# The tests ---------------------------------------------------------------------------------------


class Test:
    """A test, the time that it takes alone, and the mutants that it reaches."""

    def __init__(self, program: str, name: str) -> None:
        self.program = program
        self.name = name
        self.seconds = 0.0
        self.reached: set[int] = set()

    def __str__(self) -> str:
        return f"{self.program} {self.name}"


def command_of(tests: list[Test]) -> list[str]:
    """The command that runs tests of one program until one fails."""
    program = str(program_of(tests[0].program))
    if tests[0].program == "conformance":
        return [sys.executable, str(ROOT / "conformance/suite.py"), program]
    if tests[0].program == EXHAUSTIVE:
        return [program, "first", tests[0].name]
    names = [test.name for test in tests]
    return [program, "--exact", "--test-threads=1", "-Zunstable-options", "--fail-fast", *names]


def program_of(name: str) -> Path:
    if name == EXHAUSTIVE:
        return WORK / EXHAUSTIVE / "debug" / "cordwood-exhaustive"
    built = WORK / "target" / "debug" / ("examples" if name == "conformance" else "deps")
    if name == "conformance":
        return built / name
    found = [path for path in built.glob(f"{name}-*") if not path.suffix and os.access(path, os.X_OK)]
    return max(found, key=lambda path: path.stat().st_mtime)


def run(tests: list[Test], seconds: float, worker: int, **variables: str) -> tuple[str, float, str]:
    """Runs tests: "passed", "failed" or "timeout", the seconds of processor, and the output."""
    # In memory, where possible: the tests sync many files.
    memory = Path("/dev/shm")  # noqa: S108
    temporary = (memory if memory.is_dir() else WORK) / f"mutants-{os.getpid()}-{worker}"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(temporary), "RUSTC_BOOTSTRAP": "1", "RUST_BACKTRACE": "0"} | variables
    limit = int(max(2, seconds * 10 + 1))

    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            command_of(tests),
            cwd=COPY / "rust/cordwood",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with contextlib.suppress(ProcessLookupError):
            # A loop that never ends takes as much of the processor as it gets, however busy the machine is.
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit + 5))
            resource.prlimit(process.pid, resource.RLIMIT_AS, (4 << 30, 4 << 30))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        # Other tests may wait forever.
        timer = threading.Timer(max(60.0, seconds * 200), os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        file.seek(0)
        output = file.read().decode(errors="replace")
    shutil.rmtree(temporary, ignore_errors=True)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        result = "timeout"
    else:
        result = "failed" if process.returncode else "passed"
    return result, usage.ru_utime + usage.ru_stime, output


def listed(program: str, *arguments: str) -> list[str]:
    """What a program prints about each of its tests."""
    command = [str(program_of(program)), "--list", "--format=terse", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def state_of(test: Test, source: str) -> str:
    """Changes if the core or the file of a test changes, and so may the mutants that it reaches."""
    tests = ROOT / "rust/cordwood/tests"
    name = test.name.partition("::")[0] if test.program == "all" else test.program
    files = [file for file in (tests / f"{name}.rs", *sorted((tests / name).rglob("*.rs"))) if file.exists()]
    if test.program == EXHAUSTIVE:
        files = sorted((ROOT / "rust/exhaustive/src").rglob("*.rs"))
    return f"{source} {digest_of(files)}"


def watched() -> list[Test]:
    """Runs each test once without a mutant: which mutants it reaches, and how long it takes."""
    file = WORK / "tests.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    source = digest_of(sorted((COPY / SOURCE).rglob("*.rs")))
    tests = [Test("conformance", "")]
    sets = subprocess.run([str(program_of(EXHAUSTIVE)), "list"], capture_output=True, text=True, check=True).stdout
    tests += [Test(EXHAUSTIVE, name) for name in dict.fromkeys(sets.splitlines())]
    for program in PROGRAMS:
        ignored = listed(program, "--ignored")
        for line in listed(program):
            name, _, kind = line.rpartition(": ")
            if kind == "test" and line not in ignored and not name.startswith(SKIPPED):
                tests.append(Test(program, name))
    print(f"{len(tests)} tests", flush=True)

    def watch(number: int) -> None:
        test = tests[number]
        state = state_of(test, source)
        if (kept := known.get(str(test))) and kept["state"] == state:
            test.seconds, test.reached = kept["seconds"], set(kept["reached"])
            return
        reached = WORK / f"reached-{number}"
        reached.unlink(missing_ok=True)
        result, test.seconds, output = run([test], 60, 1000 + number, MUTANT_REACHED=str(reached))
        if result == "passed" and test.seconds > 0.3:
            # To note the mutants takes time.
            result, test.seconds, output = run([test], 60, 1000 + number)
        if reached.exists():
            test.reached = {int(line) for line in reached.read_text().split()}
            reached.unlink()
        if result == "passed":
            with lock:
                known[str(test)] = {"state": state, "seconds": test.seconds, "reached": sorted(test.reached)}
                file.write_text(json.dumps(known))
        else:
            failed.append(f"{test} does not pass without a mutant: {result}\n{output}\n")

    failed: list[str] = []
    lock = threading.Lock()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(watch, range(len(tests))))
    if failed:
        sys.exit("\n".join(failed))
    return tests


# The mutants -------------------------------------------------------------------------------------


class Tries:
    """Tries mutants with the tests that reach them."""

    def __init__(self, mutants: list[dict[str, Any]], tests: list[Test], options: argparse.Namespace) -> None:
        self.mutants = mutants
        self.tests = tests
        self.options = options
        self.lock = threading.Lock()
        self.results = results()
        # How often a test noticed a mutant of a function, and of a file.
        self.noticed: Counter[tuple[str, str]] = Counter()
        self.deadline = time.monotonic() + options.minutes * 60

    def run(self, files: list[str]) -> None:
        """Tries the mutants of the files that have no result yet."""
        order = {file: number for number, file in enumerate(files)}
        to_try = []
        for mutant in sorted(self.mutants, key=lambda mutant: order.get(mutant["file"], -1)):
            known = self.results.get(mutant["key"])
            if mutant["dropped"]:
                if mutant["file"] in order and (known is None or known["result"] != "dropped"):
                    self.keep(mutant, "dropped", "", 0.0)
                continue
            if known and known["result"] == "noticed":
                self.count(mutant, known["by"])
            open_results = ("dropped", "survived", "unreached") if self.options.again else ("dropped",)
            if mutant["file"] in order and (known is None or known["result"] in open_results):
                to_try.append(mutant)
        print(f"{len(to_try)} mutants to try", flush=True)
        with ThreadPoolExecutor(self.options.workers) as pool:
            workers = iter(range(10**9))
            list(pool.map(lambda mutant: self.attempt(mutant, next(workers)), to_try))

    def count(self, mutant: dict[str, Any], by: str) -> None:
        """Counts that a test noticed a mutant."""
        self.noticed[mutant["file"] + mutant["place"], by] += 1
        self.noticed[mutant["file"], by] += 1

    def attempt(self, mutant: dict[str, Any], worker: int) -> None:
        """Tries a mutant, unless the time is over."""
        if time.monotonic() < self.deadline:
            self.keep(mutant, *self.result_of(mutant, worker))

    def result_of(self, mutant: dict[str, Any], worker: int) -> tuple[str, str, float]:
        """Runs the tests that reach a mutant until one fails: the result, the test and the seconds of processor."""
        of_place, of_file = mutant["file"] + mutant["place"], mutant["file"]

        def worth(test: Test) -> float:
            likely = 20 * self.noticed[of_place, str(test)] + self.noticed[of_file, str(test)]
            # The suite of cases proves more than other tests of its time.
            cost = 0.05 if test.program == "conformance" else test.seconds + 0.01
            return cost / (1 + likely)

        tests = sorted((test for test in self.tests if mutant["number"] in test.reached), key=worth)
        if not tests:
            return "unreached", "", 0.0
        spent, used, left_out = 0.0, 0.0, 0
        while tests:
            # Those of one program run together, in growing numbers: to start a program takes time as well.
            batch = [tests.pop(0)]
            while tests and sum(test.seconds for test in batch) + tests[0].seconds < max(0.1, spent):
                batch.append(tests.pop(0))
            for part in parts_of(batch):
                seconds = sum(test.seconds for test in part)
                if spent and spent + seconds > self.options.seconds:
                    left_out += len(part)
                    continue
                spent += seconds
                result, more, output = run(part, seconds, worker, MUTANT=str(mutant["number"]))
                used += more
                if result == "passed":
                    continue
                by = next((test for test in part if f"test {test.name} ... FAILED" in output), part[0])
                with self.lock:
                    self.count(mutant, str(by))
                return {"failed": "noticed"}.get(result, result), str(by), used
        return "survived", f"{left_out} tests left out" if left_out else "", used

    def keep(self, mutant: dict[str, Any], result: str, by: str, seconds: float) -> None:
        """Writes a result."""
        line = {name: mutant[name] for name in ("key", "file", "line", "place", "change")}
        line |= {"result": result, "by": by, "seconds": round(seconds, 2)}
        with self.lock, RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")


def parts_of(tests: list[Test]) -> list[list[Test]]:
    """The tests of each program, which run together. A set of all small files runs alone."""
    parts: dict[str, list[Test]] = defaultdict(list)
    for test in tests:
        parts[str(test) if test.program == EXHAUSTIVE else test.program].append(test)
    return list(parts.values())


def results() -> dict[str, dict[str, Any]]:
    """The newest result of each mutant."""
    if not RESULTS.exists():
        return {}
    return {line["key"]: line for line in map(json.loads, RESULTS.read_text().splitlines())}


def equivalents() -> dict[str, str]:
    """The mutants that change no result, and why: each is a line, and its reason the next one, indented."""
    reasons: dict[str, str] = {}
    key = ""
    for line in EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []:
        if line.startswith("    "):
            reasons[key] = line.strip()
        elif line and not line.startswith("#"):
            key = line
    return reasons


COLUMNS = ("no compile", "test failed", "never ended", "equivalent", "not noticed")


def counts() -> dict[str, list[int]]:
    """For each file with results, the figures of the columns."""
    reasons = equivalents()
    columns = {"dropped": 0, "noticed": 1, "timeout": 2, "survived": 4, "unreached": 4}
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(COLUMNS))
    for key, line in results().items():
        column = columns[line["result"]]
        found[line["file"]][3 if column == 4 and key in reasons else column] += 1
    return found


def table(figures: dict[str, list[int]]) -> str:
    """A line for each file, in the order of the parts, and the sum."""
    order = {file: number for number, file in enumerate(files_of(list(PARTS)))}
    figures = {file: figures[file] for file in sorted(figures, key=lambda file: (order.get(file, len(order)), file))}
    lines = [f"| file | mutants | {' | '.join(COLUMNS)} | noticed |", "|---" * (len(COLUMNS) + 3) + "|"]
    for name, row in [*figures.items(), ("all", [sum(column) for column in zip(*figures.values(), strict=True)])]:
        noticed = row[1] + row[2]
        share = 100 * noticed / max(1, noticed + row[4])
        cells = [f"`{name}`" if name != "all" else name, *(f"{figure:,}" for figure in (sum(row), *row))]
        lines.append(f"| {' | '.join(cells)} | {share:.1f} % |")
    return "\n".join(lines)


def record() -> None:
    """Writes the figures between the markers of docs/safety.md. Files without results keep theirs."""
    page = ROOT / "docs" / "safety.md"
    before, start, rest = page.read_text().partition("<!-- mutants -->\n")
    kept, end, after = rest.partition("<!-- /mutants -->")
    if not end:
        sys.exit("docs/safety.md has no place for the figures")
    figures = {}
    for line in kept.splitlines():
        _, name, _, *row, _, _ = (cell.strip() for cell in line.split("|"))
        if name.startswith("`"):
            figures[name.strip("`")] = [int(figure.replace(",", "")) for figure in row]
    page.write_text(f"{before}{start}{table(figures | counts())}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
