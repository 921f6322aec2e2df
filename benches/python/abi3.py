"""Times the build for the stable ABI against the one for this Python: `make bench-abi3`.

Each runs in its own process, and they take turns. The figures are CPU time, and a ratio compares two successive turns.
Each turn checks the records it has read or written.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT = 100_000
ROUNDS = 40
WORK = ("for record in reader", "records()", "append")


def worker(path: str) -> None:
    """Executes the commands on stdin, one per line, and prints nanoseconds per record."""
    import cordwood

    record = bytes(16)
    with cordwood.Writer(path, "w") as writer:
        writer.extend([record] * COUNT)
    for line in sys.stdin:
        start = time.process_time_ns()
        match line.strip():
            case "append":
                with cordwood.Writer(os.devnull, "w", flush="close") as writer:
                    for _ in range(COUNT):
                        writer.append(record)
                    done = writer.tell()
            case "records()":
                for found in cordwood.open(path).records():
                    done = found.end_offset
            case _:
                reader = cordwood.open(path)
                for _ in reader:
                    pass
                done = reader.tell()
        elapsed = time.process_time_ns() - start
        assert done == Path(path).stat().st_size, (line, done)
        print(elapsed / COUNT, flush=True)


def main(abi3: str) -> None:
    """Prints a line for each kind of work."""
    with tempfile.TemporaryDirectory() as directory:
        builds = {}
        for name, python_path in (("abi3", abi3), ("this Python", "")):
            command = [sys.executable, __file__, "--worker", str(Path(directory) / name)]
            builds[name] = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": python_path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

        def turn(name: str, work: str) -> float:
            print(work, file=builds[name].stdin, flush=True)
            return float(builds[name].stdout.readline())

        for work in WORK:
            times: dict[str, list[float]] = {name: [] for name in builds}
            for number in range(ROUNDS):
                # The processor may be faster or slower for the second one.
                for name in sorted(builds, reverse=number % 2 == 1):
                    times[name].append(turn(name, work))
            stable, own = times["abi3"], times["this Python"]
            low, middle, high = statistics.quantiles([x / y for x, y in zip(stable, own, strict=True)], n=4)
            print(
                f"{work:22}{statistics.median(stable):7.1f} ns with abi3,{statistics.median(own):7.1f} without: "
                f"{middle:.2f}x ({low:.2f} to {high:.2f})"
            )
        for build in builds.values():
            build.communicate()


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(sys.argv[2])
    else:
        main(sys.argv[1])
