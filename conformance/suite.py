"""Holds a reader and a writer of the log format to the cases: README.md describes both.

    python conformance/suite.py [--known FILE] COMMAND [ARGUMENT ...]

The command is a runner: it answers one request a line. Each difference is printed; the exit status is 0 if there is
none. The file names the cases whose answers are known to differ: such a case must differ. Needs the standard library
only.
"""

from __future__ import annotations

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VECTORS = HERE.parent / "tests" / "vectors"

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


def all_cases() -> list[dict[str, Any]]:
    """Every case of every file."""
    files = sorted((HERE / "cases").glob("*.json"))
    return [case for file in files for case in json.loads(file.read_text(encoding="utf-8"))]


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


def tasks_of(case: dict[str, Any], directory: Path) -> Iterator[Task]:
    """The tasks of a case, whose files are put into this directory."""
    path = directory / case.get("file_name", "file")
    if "segments" in case:
        path.mkdir()
        for origin, pieces in case["segments"].items():
            (path / (f"{int(origin):020}.log" if origin.isdigit() else origin)).write_bytes(joined(pieces))
    else:
        path.write_bytes(content_of(case))
    options = {name: case[name] for name in OPTIONS if name in case}
    dialect = {"dialect": case["detected"]} if "detected" in case else {}
    for policy, expected in case.get("expected", {}).items():
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
    for field, expected in task.expected.items():
        if field in answer and (given := normal(field, answer[field], expected)) != expected:
            found.append(f"{field}: {shown(given)}, expected {shown(expected)}")
    if "ok" in answer and "regions" in task.expected:
        damage = [region for region in task.expected["regions"] if SEVERITY[region[0]] == "corruption"]
        damage += task.expected.get("repaired", [])
        if answer["ok"] is bool(damage):
            found.append(f"ok: {answer['ok']}, with the damage {damage}")
    for reason, *_, severity in answer.get("regions", []):
        if severity != SEVERITY.get(reason):
            found.append(f"severity of {reason}: {severity}, expected {SEVERITY.get(reason)}")
    return found


def normal(field: str, given: Any, expected: Any) -> Any:
    """A field of an answer in the form in which a case states it."""
    if field == "regions":
        return merged([[reason, start, end] for reason, start, end, _ in given])
    if field == "records" and isinstance(expected, dict):
        return summary(given)
    if field == "records" and given and given[0][0] is None and len(given) == len(expected):
        # The runner does not know where records are.
        return [[*right[:-2], *record[-2:]] for record, right in zip(given, expected, strict=True)]
    return given


def summary(records: list[list[Any]]) -> dict[str, Any]:
    """Many records in short: how many, and a CRC-32 of a line for each."""
    lines = "".join(" ".join(map(str, record)) + "\n" for record in records)
    return {"count": len(records), "crc32": f"{zlib.crc32(lines.encode()):08x}"}


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


class Runner:
    """A program that answers requests. One that ends, or takes too long, is started again for the next request."""

    def __init__(self, command: list[str], timeout: float = 20) -> None:
        """Starts the program with the first request."""
        self._command = command
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, or `{"error": ...}`."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._lines.get(timeout=self._timeout)
        except (OSError, queue.Empty) as error:
            self.stop()
            return {"error": "no answer in time" if isinstance(error, queue.Empty) else "the runner ended"}
        if not line:
            self.stop()
            return {"error": "the runner ended"}
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.stop()
            return {"error": f"the answer is not a JSON object: {line[:80].rstrip()!r}"}
        return found

    def stop(self) -> None:
        """Ends the program."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        self._process = process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lines = lines = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()


def main(command: list[str], known: dict[str, str] | None = None) -> int:
    """Runs all cases. Returns 1 if an answer differs, or if one does not that is known to, else 0."""
    runner = Runner(command)
    counts = Counter[str]()
    is_known = Counter[str]()
    with tempfile.TemporaryDirectory() as parent:
        for number, case in enumerate(all_cases()):
            directory = Path(parent, str(number))
            directory.mkdir()
            for task in tasks_of(case, directory):
                answer = runner.answer(task.request)
                found = differences(task, answer)
                if found and task.case["name"] in (known or {}):
                    is_known[task.case["name"]] += 1
                    continue
                lacks = answer.get("unsupported")
                counts[f"unsupported ({lacks})" if lacks else "different" if found else "equal"] += 1
                for difference in found:
                    print(f"{task.name}\n    {difference}")
    runner.stop()
    for name in (known or {}).keys() - is_known.keys():
        counts["different"] += 1
        print(f"{name}\n    no answer differs: remove it from the known ones")
    different = counts["different"]
    print(", ".join(f"{counts.pop(outcome, 0)} {outcome}" for outcome in ("equal", "different")))
    if is_known:
        print(f"{is_known.total()} known to differ")
    for lacking, count in counts.most_common():
        print(f"{count} {lacking}")
    return min(different, 1)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in {"-h", "--help"}:
        sys.exit(__doc__)
    known_file, command = (sys.argv[2], sys.argv[3:]) if sys.argv[1] == "--known" else (None, sys.argv[1:])
    sys.exit(main(command, known_in(Path(known_file)) if known_file else None))
