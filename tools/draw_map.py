"""Draws `docs/cli/map.svg`: the picture that `cordwood map --svg` makes of a damaged log, always the same one.

python tools/draw_map.py            writes it
python tools/draw_map.py --check    fails if it differs from the command's picture
"""

import io
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cordwood
from cordwood.cli import main

PICTURE = Path(__file__).parents[1] / "docs" / "cli" / "map.svg"


def damaged_log() -> bytes:
    """Nine blocks of short and long records, damaged by a bad disk and a crash."""
    sink = io.BytesIO()
    with cordwood.Writer(sink) as writer:
        writer.extend(_records())
        writer.flush()
        log = bytearray(sink.getvalue())
    log[20_000] ^= 0x10  # A flipped bit.
    log[77_824:81_920] = bytes(4096)  # A page that was never written.
    log[150_000] ^= 0x01  # A flipped bit in the middle of a record of three blocks.
    return bytes(log[:-700])  # A crash.


def _records() -> Iterator[bytes]:
    # The only function of `random` that is guaranteed to return the same in every version of Python.
    draw = random.Random(20260).random
    for index in range(190):
        length = 70_000 if index == 70 else 3000 if index == 189 else int(100 + 3400 * draw() ** 3)
        yield b"%06d " % index + b"x" * length


def picture() -> str:
    """The picture that the command makes of that log."""
    with tempfile.TemporaryDirectory() as directory:
        log, svg = Path(directory, "000003.log"), Path(directory, "map.svg")
        log.write_bytes(damaged_log())
        status = main(["map", "--svg", str(svg), str(log)])
        if status != 3:
            sys.exit(f"cordwood map has returned {status}, not 3")
        return svg.read_text(encoding="utf-8")


if __name__ == "__main__":
    drawn = picture()
    if sys.argv[1:] == ["--check"]:
        if drawn != PICTURE.read_text(encoding="utf-8"):
            sys.exit(f"{PICTURE} is not what the command makes; run {sys.argv[0]}")
    else:
        PICTURE.write_text(drawn, encoding="utf-8", newline="\n")
