"""The examples and commands of a page, run in their order in one directory, as a reader would who tries them.

Blocks of Python continue each other, and their output is the block of text that follows. In a console block, either
each line is a command, or those that start with `$`, and the other lines are the output.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

VECTORS = Path(__file__).parents[1] / "vectors"
# The files that a page supposes its reader to have, and the ones that stand for them.
INPUTS = {
    "databases.md": {"export": "appengine/export"},
    "exports.md": {"output-0": "appengine/export/output-0", "export": "appengine/export"},
    "forensics.md": {"profile": "leveldb"},
    "rescue.md": {"copy": "leveldb/plyvel"},
    "tables.md": {
        "run-59kl0f4q.wandb": "wandb/run/run-1.wandb",
        "wandb": "wandb/run",
        "output-0": "appengine/export/output-0",
        "export": "appengine/export",
    },
    "wandb.md": {"run-59kl0f4q.wandb": "wandb/run/run-1.wandb", "wandb": "wandb/run"},
}
# These are for a checkout or for services of others, or they have installed the package that runs here.
NOT_RUN = ("pip install", "cargo add", "make ", "bq ")
END = "\x00end of the step\x00"
# verify, cat and convert end with this status where a log is damaged, and the page says so.
DAMAGED = 3


@dataclass(frozen=True)
class Step:
    language: str
    code: str
    output: str | None


def steps(text: str) -> list[Step]:
    """What a page tells its reader to run: its commands, each by itself, and its blocks of Python."""
    found: list[Step] = []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language == "python":
            found.append(Step(language, block, None))
        elif language == "text" and found and found[-1] == Step("python", found[-1].code, None):
            found[-1] = Step("python", found[-1].code, block)
        elif language == "console" and block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(Step(language, command, output))
        elif language == "console":
            lines = block.replace("\\\n", "").splitlines()
            found += [Step(language, line, None) for line in lines if not line.startswith(NOT_RUN)]
    return found


def script(found: list[Step]) -> str:
    """The same as one program, since the blocks of Python continue each other."""
    lines = ["import subprocess, sys"]
    for step in found:
        if step.language == "python":
            lines += [step.code, "sys.stdout.flush()"]
        else:
            command = json.dumps(step.code)
            lines.append(f"done = subprocess.run(['bash', '-c', {command}], stdin=subprocess.DEVNULL, check=False)")
            lines.append(f"if done.returncode not in (0, {DAMAGED}): sys.exit('exit status %d' % done.returncode)")
        lines.append(f"print({END!r}, flush=True)")
    return "\n".join(lines)


def problems(page: Path, python: Path | str, directory: Path, commands: Path) -> list[str]:
    """Runs a page in `directory`, with that Python and the programs of `commands`; returns the steps that differ."""
    for name, source in INPUTS.get(page.name, {}).items():
        path = VECTORS / source
        (shutil.copytree if path.is_dir() else shutil.copy)(path, directory / name)
    found = steps(page.read_text(encoding="utf-8"))
    env = os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [str(python), "-c", script(found)],
        cwd=directory,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    printed = done.stdout.split(END + "\n")
    wrong = [
        f"{step.code}\nprints\n{output}\nand not\n{step.output}"
        for step, output in zip(found, printed, strict=False)
        if step.output is not None and output != step.output
    ]
    if done.returncode:
        wrong.append(f"{found[len(printed) - 1].code}\nfails:\n{printed[-1]}")
    return wrong
