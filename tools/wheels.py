"""Builds wheels: `make wheel`, `make wheel-abi3`, and those of a release.

A wheel does not contain the paths of the machine that builds it: the same sources make the same bytes in any directory
and any home.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What the machine must have: the C library of Linux distributions since 2014, or of Alpine 3.13.
OLDEST = {"gnu": "manylinux_2_17", "musl": "musllinux_1_2"}


def remapped(source: Path) -> dict[str, str]:
    """The environment in which rustc writes other paths in place of those of the sources and of Cargo's packages."""
    cargo = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
    flags = [f"--remap-path-prefix={source}=/cordwood", f"--remap-path-prefix={cargo}=/cargo"]
    own = os.environ.get("RUSTFLAGS", "").split()
    return {**os.environ, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*own, *flags])}


def build(
    out: Path,
    pythons: Sequence[str] = (sys.executable,),
    *,
    abi3: bool = False,
    target: str | None = None,
    source: Path = ROOT,
) -> None:
    """Builds a wheel for each Python into a directory, or with `abi3` one for all.

    A Python is a program or, if a target is named, also a name such as `python3.14t`: none needs to be installed then.
    With a target of Linux, the wheel is for machines as old as `OLDEST` says, else for those like this one.
    """
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(out.absolute())]
    if target:
        command += ["--target", target]
    if target and "linux" in target:
        # Zig links with an old library on any Linux, also for another processor.
        command += ["--zig", "--compatibility", OLDEST[target.rpartition("-")[2]]]
    if abi3:
        command += ["--features", "abi3"]
    # Zig comes as a package: its program is beside the Python of this environment.
    env = remapped(source)
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    subprocess.run([*command, "--interpreter", *pythons], check=True, cwd=source, env=env)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="directory for the wheels")
    parser.add_argument("--target", help="what to build for, as rustc names it")
    parser.add_argument("--abi3", action="store_true", help="one wheel for all Pythons from 3.11")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=[sys.executable])
    named = parser.parse_args()
    build(named.out, named.pythons, abi3=named.abi3, target=named.target)


if __name__ == "__main__":
    main()
