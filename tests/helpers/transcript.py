"""Console sessions in Markdown files: each command is run, and its output compared with the lines below it.

A file is one session in one directory that starts empty, with `cordwood` on the path, and for the sessions of the tests
`fields`, which shows some fields of JSON. stdout and stderr are combined, as on a terminal; `$?` is the status of the
preceding command.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FIELDS = Path(__file__).parent / "fields.py"
# The pages of the documentation that are such files.
PAGES = [
    path
    for directory in ("cli", "reference")
    for path in sorted((DOCS / directory).glob("*.md"))
    if "```console\n$ " in path.read_text(encoding="utf-8")
]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands in a file's console blocks, each with its expected output. A command's lines may end in `\\`."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            match = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL)
            assert match, part
            yield match[1], match[2]


def environment(directory: Path) -> dict[str, str]:
    """The environment of a user whose `cordwood` is the one under test."""
    directory.mkdir()
    for name, arguments in (("cordwood", "-m cordwood"), ("fields", shlex.quote(str(FIELDS)))):
        script = directory / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED"}
    }
    return kept | {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


def replayed(path: Path, directory: Path) -> str:
    """The text of a file, with the real output of its commands when run in `directory`."""
    text = path.read_text(encoding="utf-8")
    env = environment(directory / "bin")
    work = directory / "work"
    work.mkdir()
    status = 0
    printed = []
    for command, _ in commands(text):
        done = subprocess.run(
            ["/bin/bash", "-c", f"(exit {status})\n{command}"],
            check=False,
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        status = done.returncode
        printed.append((command, done.stdout.decode("utf-8", "backslashreplace")))
    blocks = iter(re.split(r"(```console\n.*?```)", text, flags=re.DOTALL))
    sessions = iter(printed)
    out = []
    for part in blocks:
        if not part.startswith("```console\n"):
            out.append(part)
            continue
        count = len(list(commands(part)))
        out.append("```console\n" + "".join(f"$ {c}{o}" for c, o in (next(sessions) for _ in range(count))) + "```")
    return "".join(out)


if __name__ == "__main__":
    # `python tests/helpers/transcript.py FILE...` writes the real output of the commands into the files.
    # Read the diff afterwards.
    import tempfile

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            text = replayed(Path(name), Path(temporary))
        Path(name).write_text(text, encoding="utf-8")
