"""Builds everything that would be published, and tries each piece on its own: `make package-check`.

It checks the names and tags, the contents, the licences, the size, the cost of an import, that all examples and
commands of README, tutorial and guides work as printed with only the wheel installed, that the sdist can run its tests,
and that the crates' own examples run from the packaged crates.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

import licences
import published
import test_pythons
import wheels

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import pages  # noqa: E402 - needs the path above

OUT = ROOT / "target" / "package"
SOURCE = OUT / "source"
CRATES = {"cordwood-log": "cordwood", "cordwood-payload": "payload"}
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]

PAGES = {"Documentation", "Source", "Issues", "Changelog"}
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"}
WHEEL_LEN_MAX = 9 << 18
# Half of it is tests. Vectors, or what a build leaves, would be more.
CRATE_LEN_MAX = 640 << 10
# In addition to `python -c pass`. Loose: it is meant to catch an import that loads half the standard library.
IMPORT_SECONDS_MAX = 0.1

# They need libraries of up to 800 MB, or a database. `make test-engines` runs `libraries.md`, `make test` the others.
ELSEWHERE = {"change-feed.md", "libraries.md", "training.md"}


def run(*command: object, **options: object) -> str:
    """Runs a command; shows its output if it fails."""
    words = [str(word) for word in command]
    print("+", " ".join(words).partition("\n")[0], flush=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nexit status {done.returncode}")
    return done.stdout


def check(is_right: bool, problem: str) -> None:
    if not is_right:
        sys.exit(f"package-check: {problem}")


# Built ------------------------------------------------------------------------------------------


def build_wheel(*, abi3: bool = False) -> Path:
    directory = Path(tempfile.mkdtemp(dir=OUT))
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = re.search(r"^host: (.*)$", version, re.MULTILINE)[1]
    wheels.build(directory, abi3=abi3, target=host, source=SOURCE)
    [wheel] = directory.iterdir()
    return wheel


def build_sdist() -> Path:
    directory = Path(tempfile.mkdtemp(dir=OUT))
    run(sys.executable, "-m", "maturin", "sdist", "--out", directory, cwd=SOURCE)
    [sdist] = directory.iterdir()
    return sdist


def build_crates() -> dict[str, Path]:
    # The copy has no commit.
    pack = ["cargo", "package", "--locked", "--allow-dirty", "--no-verify", "--target-dir", OUT]
    for name in CRATES:
        run(*pack, "--package", name, cwd=SOURCE)
    return {name: OUT / "package" / f"{name}-{VERSION}.crate" for name in CRATES}


# Contents ---------------------------------------------------------------------------------------


def check_wheel(wheel: Path, tag: str) -> None:
    check(wheel.name.startswith(f"cordwood-{VERSION}-{tag}-"), f"{wheel.name} is not for {tag}")
    check(sys.platform != "linux" or wheels.OLDEST["gnu"] in wheel.name, f"{wheel.name} needs a newer glibc")
    check(wheel.stat().st_size <= WHEEL_LEN_MAX, f"{wheel.name} has {wheel.stat().st_size} bytes")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"cordwood-{VERSION}.dist-info"
        manual = f"cordwood-{VERSION}.data/data/share/man/man1/cordwood.1"
        known = ("cordwood/", "pyspark_cordwood/", f"{info}/", manual)
        strange = [name for name in names if not name.startswith(known)]
        check(not strange, f"{wheel.name} has {strange}")
        missing = LICENCES - {name.removeprefix(f"{info}/licenses/") for name in names}
        check(not missing, f"{wheel.name} is without {missing}")
        check(b"zstd" in archive.read(f"{info}/licenses/LICENSE-THIRD-PARTY"), "zstd's licence is not there")
        for name in ("cordwood/py.typed", "cordwood/_native.pyi", "cordwood/__init__.py", manual):
            check(name in names, f"{wheel.name} has no {name}")
        metadata = archive.read(f"{info}/METADATA").decode()
        required = re.findall(r"^Requires-Dist: (?!.*extra ==).*$", metadata, re.MULTILINE)
        check(not required, f"{wheel.name} requires {required}")
        linked = set(re.findall(r"^Project-URL: (\w+), https://", metadata, re.MULTILINE))
        check(linked == PAGES, f"{wheel.name} links to {linked}")
        check(
            f"License-Expression: {licences.EXPRESSION}\n" in metadata, f"{wheel.name} has another licence expression"
        )
        check_links(wheel.name, metadata)
        module = next(name for name in names if "_native" in name and not name.endswith(".pyi"))
        check(str(Path.home()).encode() not in archive.read(module), f"{wheel.name} has paths of this machine")


def check_links(name: str, text: str) -> None:
    """A README is published where its neighbours are not."""
    relative = re.findall(r"\]\((?!https?:|#)[^)\s]+\)", text)
    check(not relative, f"the README in {name} has relative links: {relative}")


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    ours = set(published.tracked()) | {"PKG-INFO", "LICENSE-THIRD-PARTY"}
    check(not ours ^ set(names), f"{sdist.name} has other files than the repository: {sorted(ours ^ set(names))}")


def check_crate(crate: Path) -> None:
    check(crate.stat().st_size <= CRATE_LEN_MAX, f"{crate.name} has {crate.stat().st_size} bytes")
    with tarfile.open(crate) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        for name in ("LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"):
            check(name in names, f"{crate.name} has no {name}")
        if "README.md" in names:
            check_links(crate.name, archive.extractfile(f"{crate.stem}/README.md").read().decode())


# Tried ------------------------------------------------------------------------------------------


def environment(name: str, *requirements: object) -> Path:
    """Creates an environment with these installed, and returns its Python."""
    directory = OUT / "env" / name
    venv.create(directory, with_pip=True, clear=True)
    python = directory / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", *requirements)
    return python


def try_page(python: Path, page: Path) -> None:
    """Runs the examples and the commands of a page, in order."""
    check(bool(pages.steps(page.read_text(encoding="utf-8"))), f"{page.name} has no examples")
    with tempfile.TemporaryDirectory() as directory:
        found = pages.problems(page, python, Path(directory), python.parent)
    check(not found, f"{page.name}:\n" + "\n".join(found))
    print(f"{page.name}: as printed")


def try_python(python: Path) -> None:
    missing = LICENCES - {path.name for path in python.parents[1].rglob("cordwood-*.dist-info/licenses/*")}
    check(not missing, f"installed without {missing}")
    try_page(python, ROOT / "README.md")
    try_page(python, ROOT / "docs" / "tutorial.md")
    installed = run(python, "-m", "pip", "list", "--format", "freeze").split()
    strange = [each for each in installed if not each.startswith(("cordwood==", "pip==", "setuptools=="))]
    check(not strange, f"beside cordwood there are {strange}")
    print(f"import: {import_seconds(python):.3f} s")
    check(import_seconds(python) <= IMPORT_SECONDS_MAX, "an import of cordwood takes too long")


def try_tests(python: Path, sdist: Path) -> None:
    """Runs the tests of the classes from the sdist, on the wheel that pip has built from it."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist) as archive:
            archive.extractall(place, filter="data")
        [directory] = Path(place).iterdir()
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--group", "classes", cwd=directory)
        print(run(python, "-m", "pytest", "--quiet", test_pythons.TESTS, cwd=directory).splitlines()[-1])


def try_guides(wheel: Path) -> None:
    """Runs each guide with only the wheel installed, and the extras that the guide itself installs."""
    for page in sorted((ROOT / "docs" / "guides").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if pages.steps(text) and page.name not in ELSEWHERE:
            extras = re.search(r"pip install 'cordwood(\[[a-z,]+\])'", text)
            try_page(environment(page.stem, f"{wheel}{extras[1] if extras else ''}"), page)


def import_seconds(python: Path) -> float:
    """How much more CPU time `import cordwood` takes than `pass`: the minimum of five runs of each."""
    script = "import os, subprocess, sys\nfor code in ('pass', 'import cordwood'):\n times = []\n"
    script += " for _ in range(5):\n  start = os.times()\n"
    script += "  subprocess.run([sys.executable, '-c', code], check=True)\n  end = os.times()\n"
    script += "  times.append(sum(end[2:4]) - sum(start[2:4]))\n"
    script += " print(min(times))"
    empty, loaded = map(float, run(python, "-c", script).split())
    return loaded - empty


def try_crates(crates: dict[str, Path]) -> None:
    cargo = {"env": {**os.environ, "CARGO_TARGET_DIR": str(OUT / "crates")}}
    # Outside the checkout: inside, Cargo would take a new package for part of the workspace.
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        for crate in crates.values():
            with tarfile.open(crate) as archive:
                archive.extractall(directory, filter="data")
        for name in crates:
            run("cargo", "test", "--doc", cwd=directory / f"{name}-{VERSION}", **cargo)
        run("cargo", "new", "--quiet", "--vcs", "none", "tried", cwd=directory)
        run("cargo", "add", "--quiet", "--path", f"../cordwood-log-{VERSION}", cwd=directory / "tried")
        [code] = re.findall(r"```rust\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        (directory / "tried" / "src" / "main.rs").write_text(code, encoding="utf-8")
        run("cargo", "run", "--quiet", cwd=directory / "tried", **cargo)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    published.publish(SOURCE)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheel, stable = build_wheel(), build_wheel(abi3=True)
    sdist, crates = build_sdist(), build_crates()

    check_wheel(wheel, f"{tag}-{tag}")
    check_wheel(stable, "cp311-abi3")
    check_sdist(sdist)
    for crate in crates.values():
        check_crate(crate)

    for name, source in {"wheel": wheel, "abi3": stable, "sdist": sdist}.items():
        print(f"\n{source.name}: {source.stat().st_size:,} bytes")
        # Build tools for the sdist are downloaded; cordwood itself needs no package.
        options = () if source is sdist else ("--no-index",)
        python = environment(name, *options, source)
        try_python(python)
        if source is sdist:
            try_tests(python, sdist)
    try_guides(wheel)
    try_crates(crates)
    print("\npackage-check: all is well")


if __name__ == "__main__":
    main()
