"""Holds a reader and a writer of the log format to the cases: README.md describes both.

    python conformance/suite.py [OPTIONS] COMMAND [ARGUMENT ...]

The command is a runner: it answers one request a line. Each difference is printed. The exit status is 0 if all
answers are right, 1 if one differs, 2 if the runner is broken, and 3 if no answer was compared. Needs the standard
library only.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import queue
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Of the archive, or of a checkout.
VECTORS = HERE / "vectors" if (HERE / "vectors").is_dir() else HERE.parent / "tests" / "vectors"
VERSION = 2
"""It changes with the requests, the answers, and the outcome of a case."""
EQUAL, DIFFERENT, BROKEN, NONE_COMPARED = range(4)
"""The exit statuses."""

# Every reason for which a region is skipped: "info" is not damage, "corruption" is.
SEVERITY = {
    "bad_length": "corruption",
    "checksum_mismatch": "corruption",
    "unknown_kind": "corruption",
    "missing_start": "corruption",
    "missing_end": "corruption",
    "interrupted_record": "corruption",
    "zero_header": "corruption",
    "record_too_large": "corruption",
    "too_large_rest": "info",
    "zero_fill": "info",
    "nonzero_trailer": "info",
    "empty_first": "info",
    "torn_tail": "torn_tail",
    "file_header": "info",
    "unknown_version": "info",
    "bad_file_header": "corruption",
    "metadata": "info",
    "bad_metadata": "corruption",
    "ignored_kind": "info",
    "end_trailer": "info",
    "stale": "info",
    "lost_write": "corruption",
    "unsupported_compression": "corruption",
    "bad_compression": "corruption",
    "bad_container": "corruption",
    "missing_segment": "corruption",
    "grown_segment": "corruption",
    "not_read": "info",
}

# The options of a reader that a case may name.
OPTIONS = ("dialect", "log_number", "compression", "start", "end", "record_len_max", "verify_checksums")

DIALECTS = ("leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab", "packed")
POLICIES = ("skip", "stop", "raise", "salvage")
FEATURES = {
    "detection": "detects the dialect, the types of a detected `leveldb` (D11), and compression (D13)",
    "ranges": "`start` and `end`",
    "record_len_max": "the option",
    "verify_checksums": "the option",
    "log_number": "takes a named log number",
    "compression": "takes a named compression",
    "zstd": "decompresses zstd",
    "segments": "reads segmented logs",
    "segment_ranges": "reads ranges of them, and stops in them",
    "write": "writes logs",
    "repair": "flips bits back",
}


def all_cases() -> list[dict[str, Any]]:
    """Every case of every file."""
    files = sorted((HERE / "cases").glob("*.json"))
    return [case | {"file": file.name} for file in files for case in json.loads(file.read_text(encoding="utf-8"))]


def known_in(file: Path) -> dict[str, str]:
    """The cases that a file names, one on each line, and why their answers differ: `WHY: NAME`."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: why for why, _, name in (line.partition(": ") for line in lines)}


# The bytes of a case ---------------------------------------------------------------------------


def content_of(case: dict[str, Any]) -> bytes:
    """The bytes of the file of a case: its pieces, and then the changes to them."""
    data = bytearray(joined(case["content"]))
    for change, offset, *rest in case.get("changes", []):
        if change == "flip":
            data[offset] ^= 1 << rest[0]
        elif change == "put":
            new = bytes.fromhex(rest[0])
            data[offset : offset + len(new)] = new
        elif change == "zeros":
            data[offset : offset + rest[0]] = bytes(rest[0])
        else:
            assert change == "cut", change
            del data[offset:]
    return bytes(data)


def joined(pieces: list[dict[str, Any]]) -> bytes:
    """The bytes of the pieces, in order."""
    return b"".join(PIECES[next(iter(piece))](piece) for piece in pieces)


def noise(seed: str, count: int) -> bytes:
    """Bytes without a pattern, the same for everyone."""
    out = bytearray()
    for number in itertools.count():
        if len(out) >= count:
            break
        out += hashlib.sha256(f"{seed}{number}".encode()).digest()
    return bytes(out[:count])


def fragment(kind: int, data: bytes, piece: dict[str, Any]) -> bytes:
    """Header and payload, with a valid checksum, of the type `kind`."""
    numbers = b""
    if "log_number" in piece:
        numbers += struct.pack("<I", piece["log_number"])
    if "synced_offset" in piece:
        numbers += struct.pack("<Q", piece["synced_offset"])
    covered = bytes([kind]) + numbers + data
    checksum = zlib.crc32(covered) if piece.get("checksum") == "crc32" else masked(crc32c(covered))
    return struct.pack("<IHB", checksum, len(data), kind) + numbers + data


def masked(crc: int) -> int:
    """A checksum as a header states it."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """The CRC with Castagnoli's polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[crc & 255 ^ byte]
    return crc ^ 0xFFFFFFFF


def _entry(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


TABLE = [_entry(byte) for byte in range(256)]

PIECES = {
    "hex": lambda piece: bytes.fromhex(piece["hex"]),
    "text": lambda piece: piece["text"].encode(),
    "zeros": lambda piece: bytes(piece["zeros"]),
    "noise": lambda piece: noise(piece["seed"], piece["noise"]),
    "repeat": lambda piece: joined(piece["repeat"]) * piece["count"],
    "fragment": lambda piece: fragment(piece["fragment"], joined(piece["data"]), piece),
    "vector": lambda piece: (VECTORS / piece["vector"]).read_bytes()[piece.get("start", 0) : piece.get("end")],
}


# Requests, and the answers that they should have -----------------------------------------------


@dataclass(frozen=True)
class Task:
    """A request to a runner, and the fields that its answer must have."""

    case: dict[str, Any]
    policy: str
    """That of the reader, or `"write"`."""
    request: dict[str, Any]
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the case, and the policy."""
        return f"{self.case['name']}: {self.policy}"

    @property
    def level(self) -> str:
        """Whether each reader `must` give this answer; a reader `may` guess otherwise than this one."""
        if "at_least" in self.expected:
            return "must"
        return "may" if self.policy in {"salvage", "repair"} or all(map(is_guess, self.case["rules"])) else "must"

    @property
    def needs(self) -> Iterator[str]:
        """The dialect, the policy and the features that the request needs."""
        case = self.case
        yield case.get("dialect") or case.get("detected") or "leveldb"
        if self.policy in POLICIES:
            yield self.policy
        else:
            yield self.request["do"]
        is_detected = self.policy != "write" and "dialect" not in case
        if is_detected and ("detected" not in case or needs_detection(case)):
            yield "detection"
        yield from ("ranges" for name in ("start", "end") if name in self.request)
        named = ("record_len_max", "verify_checksums", "log_number", "compression")
        yield from (name for name in named if name in self.request)
        if "segments" in case:
            yield "segments"
            if {"start", "end"} & self.request.keys() or self.policy == "stop":
                yield "segment_ranges"


def least(task: Task) -> Task | None:
    """What a reader must answer to a task by which it may guess: with `salvage`, all records of `skip` (S10)."""
    records = (task.case["expected"].get("skip") or {}).get("records")
    if task.policy != "salvage" or not isinstance(records, list) or all(map(is_guess, task.case["rules"])):
        return None
    return replace(task, expected={"at_least": records})


def is_guess(rule: str) -> bool:
    """Whether the rule is about detection, which other readers may do otherwise."""
    return rule.startswith("W") or rule == "K14"


def needs_detection(case: dict[str, Any]) -> bool:
    """Whether a rule of the case holds only for logs that are detected: for types (D11), or for compression (D13)."""
    may_be_others = case["detected"] in {"leveldb", "recyclable"}
    return any(rule in {"D10", "D10b", "D11", "D12", "K14"} and may_be_others for rule in case["rules"]) or (
        "D13" in case["rules"] and case["detected"] == "rocksdb"
    )


def tasks_of(case: dict[str, Any], directory: Path) -> Iterator[Task]:
    """The tasks of a case, whose files are put into this directory."""
    path = directory / case.get("file_name", "file")
    if "segments" in case:
        path.mkdir()
        length = 0
        for origin, pieces in case["segments"].items():
            content = joined(pieces)
            (path / (f"{int(origin):020}.log" if origin.isdigit() else origin)).write_bytes(content)
            length = int(origin) + len(content) if origin.isdigit() else length
    else:
        content = content_of(case)
        path.write_bytes(content)
        length = len(content)
    options = {name: case[name] for name in OPTIONS if name in case}
    dialect = {"dialect": case["detected"]} if "detected" in case else {}
    outcomes = case.get("expected", {})
    for policy, expected in (outcomes | derived(outcomes, max(length, case.get("start", 0)), case.get("end"))).items():
        request = {"do": "read", "path": str(path), "policy": policy, **options}
        if policy == "repair":
            new = directory / "repaired"
            new.mkdir()
            request = {"do": "repair", "path": str(path), "to": str(new / path.name), **options}
        if "detected" in case:
            request["detected"] = case["detected"]
        yield Task(case, policy, request, ({} if policy == "repair" else dialect) | (expected or {}))
    if "written" in case:
        new = directory / "written"
        new.mkdir()
        records = [joined(pieces).hex() for pieces in case["written"]]
        named = {name: case[name] for name in ("dialect", "log_number", "compression") if name in case}
        request = {"do": "write", "path": str(new / path.name), "records": records, **named}
        yield Task(case, "write", request, {"content": content_of(case).hex()})


def derived(outcomes: dict[str, Any], length: int, end: int | None) -> dict[str, Any]:
    """The outcomes of `stop` and `raise` that follow from that of `skip`, unless they are stated."""
    skip = outcomes.get("skip") or {}
    if "regions" not in skip or skip["end"][0] == "refused":
        return {}
    damage = [region for region in skip["regions"] if SEVERITY[region[0]] == "corruption"]
    found = {"raise": skip | {"raised": [start for _, start, _ in damage]}}
    if not damage:
        found["stop"] = skip
    elif isinstance(skip["records"], list):
        _, start, after = damage[0]
        last = max(after, length if end is None else min(length, end))
        regions = skip["regions"][: skip["regions"].index(damage[0]) + 1]
        found["stop"] = {
            "records": [record for record in skip["records"] if record[0] < start],
            "regions": [*regions, *([["not_read", after, last]] if after < last else [])],
            "end": ["stopped", start],
        }
    return {policy: outcome for policy, outcome in found.items() if policy not in outcomes}


def differences(task: Task, answer: dict[str, Any]) -> list[str]:
    """The fields of an answer that are not as expected. Of those that it lacks, only the records must be there."""
    if "unsupported" in answer:
        return []
    needed, path = "records", Path(task.request["path"])
    if task.policy == "write":
        needed = "content"
        if path.exists():
            answer = {"content": path.read_bytes().hex(), **answer}
    found = []
    if "error" in answer:
        found.append(f"error: {answer['error']}")
    elif needed not in answer:
        found.append(f"{needed}: none")
    for field in task.expected:
        if field in answer:
            given, wanted = comparable(field, answer[field], task)
            if given != wanted:
                found.append(f"{field}: {shown(given)}, expected {shown(wanted)}")
    if lost := [record for record in task.expected.get("at_least", []) if not is_in(record, answer.get("records", []))]:
        found.append(f"records: not {shown(lost)}, which `skip` returns (S10)")
    return found + contradictions(task, answer)


def is_in(record: list[Any], records: list[list[Any]]) -> bool:
    """Whether the record is among these, which may be without their offsets."""
    return record in records or [None, None, *record[2:]] in records


def contradictions(task: Task, answer: dict[str, Any]) -> list[str]:
    """Where `ok` or a severity is not that of the regions."""
    found = []
    if "ok" in answer and "regions" in task.expected:
        damage = [region for region in task.expected["regions"] if SEVERITY[region[0]] == "corruption"]
        damage += task.expected.get("repaired", [])
        if answer["ok"] is bool(damage):
            found.append(f"ok: {answer['ok']}, with the damage {damage}")
    for reason, *_, severity in answer.get("regions", []):
        if severity != SEVERITY.get(reason):
            found.append(f"severity of {reason}: {severity}, expected {SEVERITY.get(reason)}")
    return found


def comparable(field: str, given: Any, task: Task) -> tuple[Any, Any]:
    """A field of an answer, and its expected value, in one form."""
    expected = task.expected[field]
    if field == "regions":
        found = merged([[reason, start, end] for reason, start, end, _ in given])
        return first_stops(found, expected, task) if task.policy == "stop" else found, expected
    if field == "raised":
        # Of several regions that a case joins, each is an error.
        inside = [(start, end) for _, start, end in task.expected.get("regions", [])]
        return [at for at in given if at in expected or not any(start < at < end for start, end in inside)], expected
    if field == "records" and given and given[0][0] is None:
        # The runner does not know where records are.
        datas = [record[-2:] for record in given]
        if isinstance(expected, dict):
            return {"count": len(datas), "data": digest(datas)}, {name: expected[name] for name in ("count", "data")}
        return datas, [record[-2:] for record in expected]
    if field == "records" and isinstance(expected, dict):
        return summary(given), expected
    return given, expected


def first_stops(given: list[list[Any]], expected: list[list[Any]], task: Task) -> list[list[Any]]:
    """The regions before the end by `stop`. Of several regions that a case joins, the first one stops."""
    if not given or (given[-1][0] == "not_read" and len(given) == 1):
        return given
    *before, damage, rest = given if given[-1][0] == "not_read" else [*given, None]
    joined_end = next((end for reason, start, end in expected if [reason, start] == damage[:2]), 0)
    if rest is None:
        is_past = "end" in task.request and task.request["end"] <= damage[2] < joined_end
        return [*before, [*damage[:2], joined_end]] if is_past else given
    if rest[1] != damage[2] or not damage[2] < joined_end <= rest[2]:
        return given
    return [*before, [*damage[:2], joined_end], *([["not_read", joined_end, rest[2]]] if joined_end < rest[2] else [])]


def is_records(value: Any) -> bool:
    """Whether this is a list of records, all with their offsets, or all without."""
    if not is_rows(value, 4) and not is_rows(value, 2):
        return False
    places = {type(place) for record in value for place in record[:-2]}
    return len(places) < 2 and places <= {int, type(None)} and all(is_row(record[-2:], int, str) for record in value)


def is_rows(value: Any, width: int) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and len(row) == width for row in value)


def is_row(value: Any, *types: type) -> bool:
    return isinstance(value, list) and [type(item) for item in value] == [*types]


def is_list(*types: type) -> Any:
    return lambda value: isinstance(value, list) and all(is_row(row, *types) for row in value)


def is_offsets(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)


# The form of each field of an answer.
FORMS = {
    "records": ("a list of [OFFSET, END, LENGTH, CRC], with all offsets or with null for all", is_records),
    "salvaged": ("a list of offsets", is_offsets),
    "raised": ("a list of offsets", is_offsets),
    "regions": ("a list of [REASON, START, END, SEVERITY]", is_list(str, int, int, str)),
    "repaired": ("a list of [REASON, START, END, OFFSET, BIT]", is_list(str, int, int, int, int)),
    "repaired_count": ("a number", lambda value: type(value) is int),
    "end": ("[KIND, OFFSET]", lambda value: is_row(value, str, int)),
    "dialect": ("text or null", lambda value: value is None or isinstance(value, str)),
    "ok": ("true or false", lambda value: isinstance(value, bool)),
    "zeros_offset": ("an offset or null", lambda value: value is None or type(value) is int),
    "error": ("text", lambda value: isinstance(value, str)),
    "unsupported": ("text", lambda value: isinstance(value, str)),
}


def summary(records: list[list[Any]]) -> dict[str, Any]:
    """Many records in short: how many, and a CRC-32 of a line for each, with and without its offsets."""
    datas = [record[-2:] for record in records]
    return {"count": len(records), "crc32": digest(records), "data": digest(datas)}


def digest(records: list[list[Any]]) -> str:
    """The CRC-32 of a line for each record."""
    lines = "".join(" ".join(map(str, record)) + "\n" for record in records)
    return f"{zlib.crc32(lines.encode()):08x}"


def merged(regions: list[list[Any]]) -> list[list[Any]]:
    """The regions, adjacent ones of one reason joined."""
    out: list[list[Any]] = []
    for reason, start, end in regions:
        if out and out[-1][0] == reason and out[-1][2] == start < end:
            out[-1][2] = end
        else:
            out.append([reason, start, end])
    return out


def shown(value: Any) -> str:
    """A value in a line."""
    text = json.dumps(value)
    return text if len(text) < 400 else f"{text[:400]}..."


# Runners ---------------------------------------------------------------------------------------


ENDED = "the runner ended"


class BrokenRunnerError(Exception):
    """The runner does not keep the protocol."""


class Runner:
    """A program that answers requests. One that ends, or takes too long, is started again for the next request."""

    def __init__(self, command: list[str], timeout: float = 20) -> None:
        """Starts the program with the first request."""
        self._command = command
        self._timeout = timeout
        self.late = f"no answer within {timeout:g} seconds"
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._id = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, or `{"error": ...}` if there is none."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._id += 1
        try:
            process.stdin.write(json.dumps({"id": self._id, **request}) + "\n")
            process.stdin.flush()
            line = self._lines.get(timeout=self._timeout)
        except (OSError, queue.Empty) as error:
            self.stop()
            return {"error": self.late if isinstance(error, queue.Empty) else ENDED}
        if not line:
            self.stop()
            return {"error": ENDED}
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.pop("id", None) != self._id:
            self.stop()
            raise BrokenRunnerError(
                f"this line is not the answer to the request {self._id}, a JSON object with its `id`: "
                f"{line.rstrip()[:80]!r}"
            )
        for field, value in found.items():
            form, is_right = FORMS.get(field, ("", None))
            if is_right and not is_right(value):
                self.stop()
                raise BrokenRunnerError(f"`{field}` must be {form}, and is {shown(value)}")
        return found

    def describe(self) -> set[str]:
        """The names of the dialects, the policies and the features that the runner states."""
        found = self.answer({"do": "describe"})
        if "error" in found:
            raise BrokenRunnerError(f"it does not describe itself: {found['error']}")
        names = set[str]()
        for field, known in (("dialects", DIALECTS), ("policies", POLICIES), ("features", FEATURES)):
            stated = found.get(field)
            if not isinstance(stated, list) or not all(name in [*known] for name in stated):
                raise BrokenRunnerError(
                    f"`{field}` of the answer to `describe` must be a list of {', '.join(known)}, "
                    f"and is {shown(stated)}"
                )
            names.update(stated)
        return names

    def stop(self) -> None:
        """Ends the program."""
        if self._process is not None:
            self._process.kill()
            # The thread that reads the output closes it.
            with contextlib.suppress(OSError):
                if self._process.stdin is not None:
                    self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        try:
            self._process = process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace"
            )
        except OSError as error:
            raise BrokenRunnerError(f"it does not start: {error}") from error
        self._lines = lines = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            with process.stdout as output:
                for line in output:
                    lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()


# The command -----------------------------------------------------------------------------------

# So many requests in a row without an answer, and the runner is broken.
SILENT_MAX = 5


def is_match(case: dict[str, Any], words: list[str]) -> bool:
    """Whether the case has each of the words as its id, file, dialect or rule, or in its name."""
    has = {case["id"], case["file"], case.get("dialect"), case.get("detected"), *case["rules"]}
    return all(word in has or word in case["name"] for word in words)


def message(task: Task, found: list[str]) -> str:
    """A difference, with all that is needed to look at it."""
    case, path = task.case, Path(task.request["path"])
    content = path.read_bytes() if path.is_file() and "content" in case else b""
    size = f"{len(content)} bytes: {content[:48].hex(' ')}{' ...' if len(content) > 48 else ''}"
    return "\n    ".join(
        [
            f"{case['id']} ({task.level}): {task.name}",
            f"{case['file']}, rules {', '.join(case['rules'])}",
            f"request {json.dumps(task.request)[:400]}",
            *([size] if content else []),
            *found,
        ]
    )


def main(
    command: list[str],
    known: dict[str, str] | None = None,
    *,
    words: list[str] = [],  # noqa: B006 - it is only read
    must: bool = False,
    keep: str | None = None,
    timeout: float = 20,
) -> int:
    """Asks a runner for the cases that have all the words. Returns the exit status."""
    runner = Runner(command, timeout)
    try:
        with tempfile.TemporaryDirectory() as parent:
            return compare(runner, Path(keep or parent), known or {}, words, must=must)
    except BrokenRunnerError as error:
        print(f"the runner is broken: {error}")
        return BROKEN
    finally:
        runner.stop()


def compare(runner: Runner, parent: Path, known: dict[str, str], words: list[str], *, must: bool) -> int:
    """Asks for each case, and prints the differences and the counts."""
    states = runner.describe()
    counts, is_known, silent = Counter[str](), Counter[str](), 0
    cases = [case for case in all_cases() if is_match(case, words)]
    for task in tasks(cases, parent):
        if must and task.level == "may":
            if (least_task := least(task)) is None:
                continue
            task = least_task  # noqa: PLW2901 - the rest of its answer is not compared
        if lacking := next((need for need in task.needs if need not in states), None):
            counts[f"not asked: {lacking}"] += 1
            continue
        try:
            answer = runner.answer(task.request)
        except BrokenRunnerError as error:
            raise BrokenRunnerError(f"{error}\n    {message(task, [])}") from error
        silent = silent + 1 if answer.get("error") in {runner.late, ENDED} else 0
        if silent == SILENT_MAX:
            raise BrokenRunnerError(f"{answer['error']}, {silent} times in a row\n    {message(task, [])}")
        outcome, found = judged(task, answer, states)
        if found and task.case["name"] in known:
            is_known[task.case["name"]] += 1
            continue
        counts[outcome] += 1
        if found:
            print(message(task, found))
    for name in {case["name"] for case in cases} & known.keys() - is_known.keys():
        counts["different"] += 1
        print(f"{name}\n    no answer differs: remove it from the known ones")
    return summed_up(counts, is_known.total())


def tasks(cases: list[dict[str, Any]], parent: Path) -> Iterator[Task]:
    """The tasks of the cases, each of which has a directory of its own."""
    for case in cases:
        directory = parent / case["id"]
        directory.mkdir(parents=True)
        yield from tasks_of(case, directory)


def judged(task: Task, answer: dict[str, Any], states: set[str]) -> tuple[str, list[str]]:
    """The outcome by which an answer is counted, and how it differs."""
    lacking = answer.get("unsupported")
    if lacking is None:
        found = differences(task, answer)
    elif lacking not in states and lacking in {*DIALECTS, *POLICIES, *FEATURES}:
        return f"unsupported: {lacking}", []
    else:
        found = [f"unsupported: {lacking}, which is no feature that the runner leaves out"]
    return "different" if found else "equal", found


def summed_up(counts: Counter[str], known: int) -> int:
    """Prints the counts, and returns the exit status."""
    equal, different = counts.pop("equal", 0), counts.pop("different", 0)
    print(f"suite {VERSION}: {equal} equal, {different} different")
    if known:
        print(f"{known} known to differ")
    for lacking, count in counts.most_common():
        print(f"{count} {lacking}")
    if not equal + different + known:
        print("no answer was compared")
        return NONE_COMPARED
    return DIFFERENT if different else EQUAL


def options() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the id and the name of each case, and end")
    parser.add_argument(
        "--match",
        action="append",
        default=[],
        metavar="WORD",
        help="only cases with this id, file, dialect or rule, or with this word in their name; may be repeated",
    )
    parser.add_argument("--must", action="store_true", help="only the answers that each reader must give")
    parser.add_argument("--known", type=Path, metavar="FILE", help="cases that must differ: WHY: NAME on each line")
    parser.add_argument("--keep", metavar="DIRECTORY", help="put the files of the cases here, and leave them")
    parser.add_argument("--timeout", type=float, default=20, metavar="SECONDS", help="for each answer")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the runner")
    return parser


if __name__ == "__main__":
    given = options().parse_args()
    if given.list:
        for one in all_cases():
            if is_match(one, given.match):
                print(f"{one['id']}: {one['name']} ({', '.join(one['rules'])})")
        sys.exit()
    if not given.command:
        options().error("no COMMAND")
    known_cases = known_in(given.known) if given.known else None
    sys.exit(
        main(
            given.command,
            known_cases,
            words=given.match,
            must=given.must,
            keep=given.keep,
            timeout=given.timeout,
        )
    )
