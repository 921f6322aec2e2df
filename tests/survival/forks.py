"""Forks with a writer or a reader open, lets the child do all sorts of things, and checks the file that it leaves:
`python forks.py DIRECTORY COUNT SEED`.

The rules: a process that did not open a writer never changes its file. Calls that would change it raise an OSError that
says to reopen in this process; closing and dropping only release the descriptor, never the lock. The opener is not
affected.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import itertools
import json
import os
import random
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import judge  # one of the helpers
from judge import WrongRecordsError

TIMEOUT = 120
"""Seconds after which a process is considered hung."""

HINT = "reopen"
MINE = b"appended in a child, which must not be in the log"


def has_ended(process: int) -> bool:
    """Waits for the process to end, but not forever."""
    descriptor = os.pidfd_open(process)
    ended = select.select([descriptor], [], [], TIMEOUT)[0]
    os.close(descriptor)
    return bool(ended)


# The actions of the child ------------------------------------------------------------------------
# Each function returns the fault, or None. The writer is in a list, so that it can be dropped.


def refused(do: Callable[[], object]) -> str | None:
    """Makes a call that must raise."""
    try:
        do()
    except OSError as error:
        return None if getattr(error, "hint", None) == HINT else f"the error is {error!r}"
    except Exception as error:  # noqa: BLE001 - any of them is a finding
        return f"{type(error).__name__}: {error}"
    return "it did not raise"


def allowed(do: Callable[[], object]) -> str | None:
    """Makes a call that must not raise."""
    try:
        do()
    except Exception as error:  # noqa: BLE001 - any of them is a finding
        return f"{type(error).__name__}: {error}"
    return None


def nothing(held: list[cordwood.Writer]) -> str | None:
    return None


def collect(held: list[cordwood.Writer]) -> str | None:
    gc.collect()
    return None


def drop(held: list[cordwood.Writer]) -> str | None:
    return allowed(held.clear) or allowed(gc.collect)


def close(held: list[cordwood.Writer]) -> str | None:
    return allowed(held[0].close) or allowed(held[0].close)


def leave_with(held: list[cordwood.Writer]) -> str | None:
    def leave() -> None:
        with held[0]:
            pass

    return allowed(leave)


def append(held: list[cordwood.Writer]) -> str | None:
    """Writing a record at once raises, and closing still works; if the record is buffered, closing raises."""
    try:
        held[0].append(MINE)
    except OSError as error:
        return allowed(held[0].close) if getattr(error, "hint", None) == HINT else f"the error is {error!r}"
    closed = refused(held[0].close)
    return closed and f"close after an append that returned: {closed}"


def append_much(held: list[cordwood.Writer]) -> str | None:
    """Raises at the latest when it would write."""

    def fill() -> None:
        for _ in range(40):
            held[0].append(MINE + bytes(100_000))

    return refused(fill)


def append_sync(held: list[cordwood.Writer]) -> str | None:
    return refused(lambda: held[0].append(MINE, sync=True))


def extend(held: list[cordwood.Writer]) -> str | None:
    return refused(lambda: held[0].extend([MINE + bytes(100_000)] * 40))


def flush(held: list[cordwood.Writer]) -> str | None:
    return refused(held[0].flush) or allowed(held[0].close)


def sync(held: list[cordwood.Writer]) -> str | None:
    return refused(held[0].sync) or allowed(held[0].close)


def all_of_it(held: list[cordwood.Writer]) -> str | None:
    refused(lambda: held[0].append(MINE))
    return refused(held[0].flush) or refused(held[0].sync) or append_much(held)


def fork_again(held: list[cordwood.Writer]) -> str | None:
    """Like starting a daemon: the child ends at once, and its own child uses the writer."""
    child = os.fork()
    if child == 0:
        flush(held)
        held.clear()
        sys.exit(0)
    if not has_ended(child):
        os.kill(child, signal.SIGKILL)
        return "the grandchild hangs"
    _, status = os.waitpid(child, 0)
    return None if status == 0 else f"the grandchild ended with status {status}"


ACTIONS = [
    nothing,
    close,
    append,
    drop,
    flush,
    extend,
    leave_with,
    sync,
    append_much,
    collect,
    fork_again,
    append_sync,
    all_of_it,
]
EXITS = ["sys.exit", "os._exit", "exception"]
PEBBLE = {"dialect": "pebble", "log_number": judge.LOG_NUMBER}
VARIANTS = [
    ("leveldb", "w", {}),
    ("leveldb", "w", {"sync": "append"}),
    ("pebble", "x", PEBBLE),
    ("leveldb", "a", {"flush": "close"}),
    ("leveldb", "a", {"flush": "append"}),
    ("pebble", "x", PEBBLE | {"flush": "close"}),
    ("wandb", "x", {"dialect": "wandb"}),
    ("leveldb", "w", {"flush": "close", "sync": "close"}),
    ("packed", "x", {"dialect": "packed", "flush": "close"}),
    ("packed", "x", {"dialect": "packed", "compression": "zstd", "sync": "append"}),
]
"""The writer's dialect, mode and options."""


HELD_TO_THE_END: list[cordwood.Writer] = []


# A writer ----------------------------------------------------------------------------------------


class Parent:
    """The process that opened the writer, and everything that it appends."""

    def __init__(self, path: Path, mode: str, options: dict[str, object], rng: random.Random) -> None:
        self.path = path
        self.rng = rng
        self.records: list[bytes] = []
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None
        self.problem: str | None = None
        if mode == "a":
            with cordwood.open(path, "w") as writer:
                writer.append(b"there already")
            self.records.append(b"there already")
        # In a list, since a name on the stack would also keep it alive in the child. Released with this object or, if
        # it is not cleared, at the very end of the interpreter.
        self.held = rng.choice([[], HELD_TO_THE_END])
        self.held[:] = [cordwood.open(path, mode, **options)]

    def append(self, count: int) -> None:
        """Appends records; once the call has returned, they must survive."""
        for _ in range(count):
            record = b"%d " % len(self.records) + self.rng.choice([bytes, self.rng.randbytes])(
                self.rng.randrange(3_000)
            )
            self.held[0].append(record)
            self.records.append(record)

    def append_in_a_thread(self) -> None:
        """Appends continuously, so that a fork can happen at any point."""

        def run() -> None:
            try:
                while not self.stop.is_set() and len(self.records) < 3_000:
                    self.append(1)
            except Exception as error:  # noqa: BLE001 - said below
                self.problem = f"append in a thread of the parent: {type(error).__name__}: {error}"

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self) -> None:
        """Ends the thread, if there is one."""
        self.stop.set()
        if self.thread:
            self.thread.join(TIMEOUT)
            if self.thread.is_alive():
                raise WrongRecordsError("a thread of the parent hangs")
        if self.problem:
            raise WrongRecordsError(self.problem)


def is_locked(path: Path) -> bool:
    """Whether the file is locked, according to the system, as another process would see it."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_refused(path: Path) -> bool:
    """Whether the file is locked, according to a second writer."""
    try:
        cordwood.open(path, "a").close()
    except BlockingIOError:
        return True
    except (OSError, cordwood.CordwoodError):
        pass  # Refused for another reason than being open elsewhere.
    return False


class Child:
    """A fork that waits for a byte, acts, reports, waits for another byte and ends."""

    def __init__(self, act: Callable[[], str | None], how: str) -> None:
        here, there = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(here[0])
            os.close(there[1])
            os.read(there[0], 1)
            try:
                report = act()
            except Exception as error:  # noqa: BLE001 - the parent says it
                report = f"{type(error).__name__}: {error}"
            os.write(here[1], json.dumps(report).encode())
            os.close(here[1])
            os.read(there[0], 1)
            end(how)
        os.close(here[1])
        os.close(there[0])
        self.answers, self.orders = here[0], there[1]

    def acts(self) -> None:
        """Lets it act, and waits for its report."""
        self.starts()
        self.reports()

    def starts(self) -> None:
        """Lets it act, and does not wait."""
        os.write(self.orders, b".")

    def reports(self) -> None:
        """Waits for its report."""
        report = b""
        while True:
            if not select.select([self.answers], [], [], TIMEOUT)[0]:
                raise WrongRecordsError("the child hangs")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                break
            report += piece
        if not report:
            raise WrongRecordsError("the child ended in the middle")
        if problem := json.loads(report):
            raise WrongRecordsError(f"in the child: {problem}")

    def ends(self) -> None:
        """Lets it end, and waits until it has."""
        os.close(self.orders)
        self.orders = -1
        if not has_ended(self.pid):
            raise WrongRecordsError("the child hangs at its end")
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        if os.waitstatus_to_exitcode(status) < 0:
            raise WrongRecordsError(f"the child ended by signal {-os.waitstatus_to_exitcode(status)}")

    def clear(self) -> None:
        """Cleans up after a problem."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.answers)
        if self.orders >= 0:
            os.close(self.orders)


def end(how: str) -> None:
    """Ends the process: normally, with the interpreter's cleanup; at once; or by an uncaught exception."""
    if how == "os._exit":
        os._exit(0)
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the text of an exception, and a warning at the end
    if how == "sys.exit":
        sys.exit(0)
    raise KeyError


def scene(number: int) -> tuple[Callable[[list[cordwood.Writer]], str | None], tuple[str, str, dict[str, object]], str]:
    """The choices made by the number of the fork, so that a few forks cover them all."""
    return (
        ACTIONS[number % len(ACTIONS)],
        VARIANTS[number % len(VARIANTS)],
        EXITS[number // len(VARIANTS) % len(EXITS)],
    )


def fork_a_writer(path: Path, number: int, rng: random.Random) -> None:
    """One fork; checks the log after both processes have continued and ended."""
    action, (dialect, mode, options), how = scene(number)
    parent = Parent(path, mode, options, rng)
    parent.append(rng.randrange(30))
    if rng.random() < 0.3:
        parent.append_in_a_thread()
    outlives = rng.random() < 0.5
    child = Child(functools.partial(action, parent.held), how)
    try:
        if not parent.thread:
            parent.append(rng.randrange(30))
        child.acts()
        if not is_locked(path) or not is_refused(path):
            raise WrongRecordsError("the log is not locked any more while its opener writes")
        if not outlives:
            child.ends()
        parent.join()
        parent.append(rng.randrange(30))
        if rng.random() < 0.5:
            parent.held[0].sync()
        if not is_locked(path):
            raise WrongRecordsError("the log is not locked any more when the child has ended")
        parent.held[0].close()
        if is_locked(path):
            raise WrongRecordsError("the log is locked after its opener has closed it")
        look_at(path, dialect, parent.records)
        if dialect != "pebble":  # A log with a log number is not appended to.
            with cordwood.open(path, "a", dialect=dialect) as writer:
                writer.append(b"from the next writer")
            parent.records.append(b"from the next writer")
        before = path.read_bytes()
        if outlives:
            child.ends()
            if path.read_bytes() != before:
                raise WrongRecordsError("the end of a child changed the file")
        look_at(path, dialect, parent.records)
    finally:
        parent.stop.set()
        child.clear()


def look_at(path: Path, dialect: str, expected: list[bytes]) -> None:
    """Every record is there, once and in order, and no other fragment except the one that closes such a log."""
    data = path.read_bytes()
    records = judge.records_in(data, dialect)
    found = [record.data for record in records]
    if found != expected:
        strange = sum(record not in expected for record in found)
        raise WrongRecordsError(
            f"{len(expected)} records were appended, {len(found)} are there, {strange} of them strangers"
        )
    rest = data[records[-1].end_offset if records else 0 :]
    trailer = judge.DIALECTS[dialect].end_trailer if dialect in judge.DIALECTS else b""
    header = judge.file_header(data, dialect) if not records else b""
    if rest.lstrip(b"\0") != (header + trailer).lstrip(b"\0") or len(rest) > len(header) + len(trailer) + 18:
        raise WrongRecordsError(f"{len(rest)} bytes after the last record")


# A reader ----------------------------------------------------------------------------------------


WAYS_TO_READ: dict[str, Callable[[Path], Iterator[bytes]]] = {
    "a reader": lambda path: iter(cordwood.open(path)),
    "records()": lambda path: (record.data for record in cordwood.open(path).records()),
    "packs()": lambda path: (
        pack[index] for pack in cordwood.open(path).record_batches(target_len=1 << 16) for index in range(len(pack))
    ),
    "a follower": lambda path: iter(cordwood.follow(path, timeout=0)),
}


def fork_a_reader(path: Path, number: int, rng: random.Random) -> None:
    """Both processes read on at the same time, each everything to the end, whichever is faster.

    They read one reader after another, so that their reads meet often enough.
    """
    records = [b"%06d" % index + bytes(rng.randrange(20_000)) for index in range(600)]
    with cordwood.open(path, "w") as writer:
        writer.extend(records)
    name = list(WAYS_TO_READ)[number % len(WAYS_TO_READ)]
    iterators = [WAYS_TO_READ[name](path) for _ in range(20)]
    before = rng.choice([0, 1, 10, 300])
    seen = [list(itertools.islice(iterator, before)) for iterator in iterators]

    def read() -> str | None:
        for started, iterator in zip(seen, iterators, strict=True):
            started.extend(iterator)
            if started != records:
                return f"{name}: {len(started)} of {len(records)} records"
        return None

    child = Child(read, EXITS[number % len(EXITS)])
    try:
        child.starts()
        problem = read()
        child.reports()
        child.ends()
        if problem:
            raise WrongRecordsError(f"in the parent: {problem}")
    finally:
        child.clear()


def main(directory: Path, count: int, seed: str) -> None:
    """Forks, checks, and prints the results. A file that fails is left in place."""
    rng = random.Random(seed)
    opener = os.getpid()
    problems: dict[str, str] = {}
    first = 6 * rng.randrange(len(ACTIONS) * len(VARIANTS) * len(EXITS))
    for number in range(first, first + count):
        path = directory / f"forks-{number}.log"
        readers = (number + 1) // 6  # Every sixth fork is of a reader.
        try:
            if number % 6 == 5:
                label = list(WAYS_TO_READ)[(readers - 1) % len(WAYS_TO_READ)]
                fork_a_reader(path, readers - 1, rng)
            else:
                action, variant, how = scene(number - readers)
                label = f"{action.__name__}, {how}, {variant}"
                fork_a_writer(path, number - readers, rng)
            path.unlink()
        except Exception as problem:
            if os.getpid() != opener:
                raise
            what = str(problem) if isinstance(problem, WrongRecordsError) else traceback.format_exc(limit=-2)
            problems.setdefault(label, f"{path.name}: {what}")
    print(json.dumps({"count": count, "problems": problems}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
