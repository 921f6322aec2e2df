"""Runs the tests of the classes on each Python of this machine, with a wheel of its own: `make test-pythons`.

The Pythons are `python3.11` and its successors on the path or in pyenv, or those that you name. Those that are missing
are listed at the end.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import wheels

ROOT = Path(__file__).parents[1]
OUT = ROOT / "target" / "pythons"
# The `t` means free-threaded.
VERSIONS = ["3.11", "3.12", "3.13", "3.14", "3.14t", "3.15", "3.15t"]
TESTS = "@tests/classes.txt"
# Optimising across crates takes minutes for each, and says nothing about a Python.
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
SAY_VERSION = "import sys; print('%d.%d' % sys.version_info[:2] + getattr(sys, 'abiflags', ''))"


def version_of(python: str) -> str | None:
    """Its version, as in `VERSIONS`, or None if it does not run: a script of pyenv on the path may start no Python."""
    done = subprocess.run([python, "-c", SAY_VERSION], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def found(version: str) -> str | None:
    """A Python of that version, or None."""
    on_path = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [on_path] if on_path else []
    candidates += map(str, sorted(pyenv.glob(f"versions/*/bin/python{version}")))
    return next((python for python in candidates if version_of(python) == version), None)


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT)


def test(version: str, python: str) -> None:
    directory = OUT / version
    shutil.rmtree(directory, ignore_errors=True)
    run(python, "-m", "venv", "--without-pip", directory / "env")
    own = directory / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", own, "install", "--quiet"]
    run(*pip, "--group", "classes")
    wheels.build(directory, [str(own)])
    [wheel] = directory.glob("*.whl")
    run(*pip, "--no-deps", "--no-index", wheel)
    run(own, "-m", "pytest", "--quiet", TESTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="programs to test with, instead of those found")
    named = parser.parse_args().pythons
    os.environ.update(QUICK)
    pythons = {version_of(python): python for python in named} or {version: found(version) for version in VERSIONS}
    for version, python in pythons.items():
        if python is not None:
            print(f"Python {version}: {python}", flush=True)
            if version is None:
                sys.exit(f"{python} does not run")
            test(version, python)
    print("tested:", ", ".join(version for version, python in pythons.items() if python is not None) or "none")
    if missing := [version for version, python in pythons.items() if python is None]:
        print("missing on this machine, not tested:", ", ".join(missing))


if __name__ == "__main__":
    main()
