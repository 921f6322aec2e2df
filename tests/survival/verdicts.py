"""Compares the verdicts about databases with their engines: `make verdicts`.

`python verdicts.py [--states N] [--engines DIRECTORY] [--record]`. Writers are killed, and each state that they leave
must be healthy: the engine has every acknowledged write. Then each file of some of these states is deleted, emptied,
cut, filled with zeros, or has one bit flipped, in a copy. The engine opens a copy of each, and its contents are
compared with those of the state. A *false alarm* is a database with all contents that is not `ok`; a *miss* is one that
is `ok`, and refused or without some contents. A miss is silent if there is no problem, no damaged log and no torn one.

Each engine is a process of its own: this file with the name of the engine as its first argument. In the directory
`--engines` are other versions, which are installed there, and a program `goleveldb`, which is built from
`goleveldb.go`. `--record` writes the table into docs/safety.md.
"""

from __future__ import annotations

import argparse
import collections
import functools
import hashlib
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

say = functools.partial(print, flush=True)
FAMILIES = ("a", "b")
KILLS = 6
"""How often the writers of one database are killed."""
WRITES_MAX = 200
"""After this many writes, a writer waits to be killed."""
CHANGES = ("deleted", "emptied", "cut", "zeroed", "flipped")
TABLES_MAX = 3
VERSIONS = (
    *("rocksdict==0.3.3", "rocksdict==0.3.8", "rocksdict==0.3.15", "rocksdict==0.3.23", "rocksdict==0.3.29"),
    *("aimrocks==0.5.2", "faust-streaming-rocksdb==0.9.3", "amulet-rocksdb==1.0.6"),
    *("leveldb==0.201", "plyvel==1.5.1", "goleveldb"),
)

BRANDS = dict.fromkeys(("rocksdict", "aimrocks", "faust-streaming-rocksdb", "amulet-rocksdb"), "RocksDB")
BRANDS |= dict.fromkeys(("plyvel", "leveldb", "goleveldb"), "LevelDB")
READS_AS = {"amulet-rocksdb==1.0.6": "rocksdict==0.3.29"}
"""amulet-rocksdb repairs a database that RocksDB refuses."""


def write_at(number: int) -> tuple[int, bytes, bytes]:
    """The family, the key and the value of a write. Keys are not in order, so that tables overlap."""
    digest = hashlib.sha256(b"%d" % number).digest()
    value_len = (10, 100, 100, 2_000)[digest[8] % 4]
    return (0, 1, 1, 2)[digest[9] % 4], digest[:8], random.Random(number).randbytes(value_len)


def contents(count: int, families: int) -> list[tuple[bytes, bytes]]:
    """What a database holds after so many writes: keys start with the family."""
    found = (write_at(number) for number in range(count))
    return sorted((b"%d" % (family if families else 0) + key, value) for family, key, value in found)


# The engines, in a process of their own --------------------------------------------------------


def opened_rocksdict(directory, kind, *, creates):
    from rocksdict import Options, Rdict

    def options():
        made = Options(raw_mode=True)
        made.create_if_missing(creates)
        made.set_write_buffer_size(256 << 10 if kind == "large" else 64 << 10)
        if kind == "recycling":
            made.set_recycle_log_file_num(2)
        return made

    names = Rdict.list_cf(directory, options()) if Path(directory, "CURRENT").exists() else []
    database = Rdict(directory, options(), {name: options() for name in names} or None)
    found = [database]
    for name in FAMILIES if kind in ("families", "recycling", "large") else ():
        if name in names:
            found.append(database.get_column_family(name))
        elif creates:
            found.append(database.create_column_family(name, options()))

    def put(family, key, value):
        found[family if len(found) > 1 else 0][key] = value
        if key[0] < 2 and kind != "plain":
            found[key[0] % len(found)].flush()

    def items():
        for family, column_family in enumerate(found):
            yield from ((b"%d" % family + key, value) for key, value in column_family.items())

    return put, items


def opened_rocksdb(directory, kind, *, creates):
    """A module with the interface of python-rocksdb."""
    import importlib

    module = importlib.import_module("aimrocks" if kind == "aimrocks" else "rocksdb")
    database = module.DB(directory, module.Options(create_if_missing=creates, write_buffer_size=64 << 10))

    def items():
        found = database.iteritems()
        found.seek_to_first()
        return ((b"0" + key, value) for key, value in found)

    return lambda _, key, value: database.put(key, value), items


def opened_amulet(directory, kind, *, creates):
    from rocksdb import RocksDB

    database = RocksDB(directory, create_if_missing=creates)
    return (
        lambda _, key, value: database.put(key, value),
        lambda: ((b"0" + key, value) for key, value in database.items()),
    )


def opened_plyvel(directory, kind, *, creates):
    import plyvel

    database = plyvel.DB(directory, create_if_missing=creates, write_buffer_size=64 << 10)
    return (
        lambda _, key, value: database.put(key, value),
        lambda: ((b"0" + key, value) for key, value in database.iterator(verify_checksums=True)),
    )


def opened_leveldb(directory, kind, *, creates):
    import leveldb

    database = leveldb.LevelDB(directory, create_if_missing=creates, write_buffer_size=64 << 10)
    return (
        lambda _, key, value: database.Put(key, value),
        lambda: ((b"0" + bytes(key), bytes(value)) for key, value in database.RangeIter(verify_checksums=True)),
    )


OPENED = {
    "rocksdict": opened_rocksdict,
    "aimrocks": opened_rocksdb,
    "faust-streaming-rocksdb": opened_rocksdb,
    "amulet-rocksdb": opened_amulet,
    "plyvel": opened_plyvel,
    "leveldb": opened_leveldb,
}


def act(engine: str, kind: str, role: str, directory: str, first: int) -> None:
    opened = OPENED[engine]
    kind = engine if engine == "aimrocks" else kind
    if role == "write":
        put, _ = opened(directory, kind, creates=True)
        for number in range(first, first + WRITES_MAX):
            put(*write_at(number))
            os.write(1, b"%d\n" % (number + 1))
        signal.pause()
    for line in sys.stdin:
        try:
            _, items = opened(line.rstrip("\n"), kind, creates=False)
            text = " ".join(f"{key.hex()} {value.hex()}" for key, value in items())
        except BaseException as error:  # noqa: BLE001 - each engine has its own
            text = "error " + str(error)
        # The database is closed when its functions are gone.
        items = _ = None
        say(text.replace("\n", " "))


# The oracle ------------------------------------------------------------------------------------


class Engine:
    def __init__(self, version: str, kind: str, directory: Path | None) -> None:
        self.reads_as = READS_AS.get(version, version)
        self.name = version.partition("==")[0]
        self.version, self.kind, self._directory = version, kind, directory
        self.families = self.name == "rocksdict" and kind in ("families", "recycling", "large")
        self._reader: subprocess.Popen[str] | None = None

    def start(self, role: str, directory: str = "", first: int = 0) -> subprocess.Popen[str]:
        environment = dict(os.environ)
        version = self.version if role == "write" else self.reads_as
        if self._directory:
            environment["PYTHONPATH"] = str(self._directory / version)
        command = [sys.executable, __file__, version.partition("==")[0], self.kind, role, directory, str(first)]
        if self.name == "goleveldb":
            command = [str(self._directory / "goleveldb"), role, directory]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment)

    def killed(self, directory: str, first: int, seconds: float) -> int:
        """Writes until it is killed after this time. Returns the count of acknowledged writes."""
        writer = self.start("write", directory, first)
        if self.name == "goleveldb":
            for number in range(first, first + WRITES_MAX):
                _, key, value = write_at(number)
                writer.stdin.write(f"{number} {key.hex()} {value.hex()}\n")
            writer.stdin.flush()
        writer.stdout.readline()
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        written = writer.stdout.read().split()
        writer.wait()
        return int(written[-1]) if written else first

    def read(self, directory: Path) -> list[tuple[bytes, bytes]] | str:
        """The contents of a copy, or the error with which the engine refuses it."""
        for _ in range(2):
            copy = directory.with_name("opened")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(directory, copy)
            self._reader = self._reader or self.start("read")
            try:
                self._reader.stdin.write(f"{copy}\n")
                self._reader.stdin.flush()
                answer = self._reader.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if answer.endswith("\n"):
                break
            self._reader.wait()
            self._reader = None
        else:
            return "the engine crashes"
        if answer.startswith("error"):
            return answer.strip()
        parts = [bytes.fromhex(part) for part in answer.split()]
        prefix = b"0" if self.name == "goleveldb" else b""
        return sorted((prefix + key, value) for key, value in zip(parts[::2], parts[1::2], strict=True))

    def close(self) -> None:
        if self._reader:
            self._reader.stdin.close()
            self._reader.wait()


def verdict(directory: Path):
    """Whether the database is ok, and all that is said about it: kinds of problems, and of logs."""
    import cordwood

    results = cordwood.verify(directory)
    said = [f"{problem.kind}" for database in results.databases for problem in database.problems]
    said += ["no database"] if not results.databases else []
    for report in results.values():
        said += [] if report.ok else ["damaged log"]
        said += [str(report.outcome.kind)] if report.outcome.kind != "clean" else []
    said += ["error" for _ in results.errors]
    is_ok = all(database.ok for database in results.databases) and bool(results.databases)
    return is_ok, sorted(set(said) - {"clean_end", "end"})


def changed(directory: Path, name: str, change: str, chance: random.Random) -> bool:
    """Changes a file; `False` if that makes no difference."""
    path = directory / name
    content = path.read_bytes()
    if change == "deleted":
        path.unlink()
        return True
    new = {"emptied": b"", "cut": content[: len(content) * 2 // 3], "zeroed": bytes(len(content))}.get(change)
    if new is None:
        flipped = bytearray(content)
        if flipped:
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        new = bytes(flipped)
    path.write_bytes(new)
    return new != content


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=150)
    parser.add_argument("--engines", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    silent: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as work:
        kept = kill(arguments, Path(work), counts)
        change_all(arguments, kept, counts, silent)
    table = rows(counts)
    say(table)
    for text, count in silent.most_common():
        say(f"  {count:4} {text}")
    if arguments.record:
        page = Path(__file__).parents[2] / "docs/safety.md"
        text = page.read_text()
        assert "<!-- verdicts -->" in text
        page.write_text(
            re.sub(r"(<!-- verdicts -->\n).*?(<!-- /verdicts -->)", rf"\1{table}\n\2", text, flags=re.DOTALL)
        )


def kill(arguments, work: Path, counts) -> list[tuple[Engine, Path]]:
    """The states of killed writers; some of them are kept."""
    kinds = [("rocksdict==0.3.29", kind) for kind in ("families", "recycling")] + [("plyvel==1.5.1", "")] * 2
    kinds = [(version, kind, arguments.states) for version, kind in kinds]
    if arguments.engines:
        for version in VERSIONS:
            if "==" in version and not (arguments.engines / version).exists():
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", arguments.engines / version]
                subprocess.run([*command, version], check=True)
        present = [version for version in VERSIONS if (arguments.engines / version).exists()]
        more = [("plain", "families", "recycling") if "rocksdict" in version else ("", "", "") for version in present]
        kinds += [(version, kind, 1) for version, each in zip(present, more, strict=True) for kind in each]
    kept = []
    chance = random.Random(arguments.seed)
    for place, (version, kind, states) in enumerate(kinds):
        engine = Engine(version, kind, arguments.engines)
        label = "other versions" if states == 1 else BRANDS[engine.name] + ", recycling" * (kind == "recycling")
        for state in range(states):
            if state % KILLS == 0:
                directory, first = work / f"{place}-{state}" / "db", 0
                directory.parent.mkdir()
            first = engine.killed(str(directory), first, chance.uniform(0.02, 0.3) if states > 1 else 0.5)
            if not (directory / "CURRENT").exists():
                continue
            is_ok, said = verdict(directory)
            found = engine.read(directory)
            if isinstance(found, str) or found != contents(len(found), engine.families) or len(found) < first:
                say("NOT HEALTHY", version, kind, state, found if isinstance(found, str) else (len(found), first))
                shutil.rmtree(directory)
                first = 0
                continue
            first = len(found)
            counts[label, "states"] += 1
            counts[label, "healthy"] += 1
            if not is_ok:
                counts[label, "false alarms"] += 1
                say("FALSE ALARM", version, kind, state, said, sorted(path.name for path in directory.iterdir()))
                shutil.copytree(directory, Path(tempfile.gettempdir()) / f"alarm-{place}-{state}", dirs_exist_ok=True)
        kept += [(engine, directory)] if (directory / "CURRENT").exists() else []
        say(version, kind, first, "writes")
    return kept


def change_all(arguments, kept, counts, silent) -> None:
    chance = random.Random(arguments.seed)
    for engine, directory in kept:
        whole = engine.read(directory)
        tables = sorted(path.name for path in directory.iterdir() if path.suffix in (".sst", ".ldb"))
        chosen = {*tables[:1], *tables[-TABLES_MAX + 1 :]}
        logs = [path.name for path in sorted(directory.glob("*.log"))]
        for name in sorted(path.name for path in directory.iterdir()):
            if name in tables and name not in chosen:
                continue
            of = name.partition("-")[0]
            of = "tables" if name in tables else "logs" if name in logs else of
            of = of if of in ("tables", "logs", "CURRENT", "MANIFEST") else "other files"
            for change in CHANGES:
                copy = directory.with_name("changed")
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(directory, copy)
                if not changed(copy, name, change, chance):
                    continue
                is_ok, said = verdict(copy)
                is_healthy = engine.read(copy) == whole
                counts[of, "states"] += 1
                counts[of, "healthy"] += is_healthy
                if is_healthy and not is_ok:
                    counts[of, "false alarms"] += 1
                    say("FALSE ALARM", engine.version, engine.kind, name, change, said, logs)
                elif is_ok and not is_healthy:
                    counts[of, "misses"] += 1
                    counts[of, "silent"] += not said
                    newest = " newest" if name in logs[-1:] else ""
                    text = f"{BRANDS[engine.name]}, {of}{newest} {change}: {', '.join(said) or 'SILENT'}"
                    silent[text] += 1
        engine.close()


def rows(counts) -> str:
    names = ("states", "healthy", "false alarms", "faulty", "misses", "silent")
    lines = ["| | states | all contents | false alarms | refused, or less | misses | silent |", "|---" * 7 + "|"]
    for row in dict.fromkeys(row for row, _ in counts):
        values = {name: counts[row, name] for name in names}
        values["faulty"] = values["states"] - values["healthy"]
        lines.append(f"| {row} | " + " | ".join(f"{value:,}" for value in values.values()) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 3 and not sys.argv[1].startswith("-"):
        act(*sys.argv[1:5], int(sys.argv[5]))
    else:
        main()
