"""Asks the readers of other projects for the cases, and writes what each does to engines.md.

    make conformance

The Python packages are those of the dependency groups `test`, `peers` and `appengine`. The others are packages of
Debian for x86-64, which are unpacked into target/conformance: LevelDB, which needs g++, leveldb-java, which needs a
JDK, and Go's compiler with two readers in Go. RocksDB is the library in a Python package, called by its own headers,
which a crate of the same release contains.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from suite import HERE, SEVERITY, Runner, all_cases, tasks_of

ROOT = HERE.parent
BUILD = ROOT / "target" / "conformance"
UNPACKED = BUILD / "root"
PEERS = ROOT / ".venv" / "peers"
DEBIAN = {
    "golang-1.19-go": "Go",
    "golang-1.19-src": "Go",
    "golang-github-golang-leveldb-dev": "golang/leveldb",
    "golang-github-golang-snappy-dev": "",
    "golang-github-syndtr-goleveldb-dev": "goleveldb",
    "libguava-java": "",
    "libleveldb-dev": "LevelDB",
    "libleveldb-api-java": "",
    "libleveldb-java": "leveldb-java",
    "libsnappy-dev": "",
}
# The package whose library is RocksDB, and the crate with the headers of that release.
ROCKSDB, HEADERS = "pyrex-rocksdb==0.6.0", ("rust-librocksdb-sys", "=0.40.0")
POLICIES = ("skip", "stop", "salvage")
CLASSES = ("silent", "fewer", "other", "fails", "hangs")
"""How an engine deviates: the columns of the page, after those of the policies."""
OPTIONS = ("start", "end", "record_len_max", "verify_checksums")


def unpack():
    """Fetches the packages of Debian, unless they are there."""
    debs = BUILD / "debs"
    if not debs.exists():
        debs.mkdir(parents=True)
        subprocess.run(["apt-get", "download", *DEBIAN], cwd=debs, check=True)
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, UNPACKED], check=True)
    names = [deb.name.split("_") for deb in debs.glob("*.deb")]
    return {DEBIAN[name]: release.replace("%3a", ":") for name, release, _ in names}


def built():
    """The command of each compiled reader."""
    usr, sources = UNPACKED / "usr", HERE / "engines"
    libraries = [usr / "lib/x86_64-linux-gnu" / name for name in ("libleveldb.a", "libsnappy.a")]
    run(
        [
            "g++",
            "-std=c++17",
            f"-I{usr}/include",
            sources / "leveldb.cc",
            *libraries,
            "-lpthread",
            "-o",
            BUILD / "leveldb",
        ]
    )
    go = usr / "lib/go-1.19"
    settings = {"GOROOT": go, "GOPATH": usr / "share/gocode", "GO111MODULE": "off", "GOCACHE": BUILD / "go"}
    for name in ("goleveldb", "golang_leveldb"):
        run([go / "bin/go", "build", "-o", BUILD / name, sources / f"{name}.go"], settings)
    jars = ":".join(str(usr / "share/java" / f"{name}.jar") for name in ("leveldb", "leveldb-api", "guava"))
    run(["javac", "-cp", jars, "-d", BUILD / "java", sources / "LeveldbJava.java"])
    return {
        "LevelDB": [BUILD / "leveldb"],
        "goleveldb": [BUILD / "goleveldb", "lenient"],
        "goleveldb, strict": [BUILD / "goleveldb", "strict"],
        "golang/leveldb": [BUILD / "golang_leveldb"],
        "leveldb-java": ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{BUILD / 'java'}:{jars}", "LeveldbJava"],
    }


def rocksdb():
    """RocksDB's release, and the command of its reader, without the recovery mode."""
    packages, crate, calls = BUILD / "rocksdb", BUILD / "headers", BUILD / "rocksdb.so"
    if not packages.exists():
        run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, ROCKSDB])
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / "src" / "lib.rs").touch()
    name, wanted = HEADERS
    manifest = f'[package]\nname = "headers"\n[workspace]\n[dependencies]\n{name} = "{wanted}"\n'
    (crate / "Cargo.toml").write_text(manifest, encoding="utf-8")
    command = ["cargo", "metadata", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=crate, check=True, capture_output=True).stdout)
    [found] = [package for package in metadata["packages"] if package["name"] == name]
    sources, [library] = Path(found["manifest_path"]).parent / "rocksdb", packages.glob("pyrex/_pyrex*.so")
    settings = ["-std=c++20", "-DROCKSDB_PLATFORM_POSIX", "-DROCKSDB_LIB_IO_POSIX", "-DOS_LINUX"]
    headers = [f"-I{sources}", f"-I{sources}/include"]
    run(["g++", *settings, "-O1", "-fPIC", "-shared", *headers, HERE / "engines" / "rocksdb.cc", "-o", calls])
    return found["version"].partition("+")[2], [sys.executable, HERE / "engines" / "rocksdb.py", library, calls]


def run(arguments, settings=None):
    """Runs a program."""
    environment = os.environ | {name: str(value) for name, value in (settings or {}).items()}
    subprocess.run(list(map(str, arguments)), check=True, env=environment)


def engines():
    """Each engine: its name, its version, and the command of its runner."""
    releases = unpack()
    foreign = str(HERE / "runners" / "foreign.py")
    for name, arguments in built().items():
        yield name, releases[name.split(",")[0]], [sys.executable, foreign, name, *map(str, arguments)]
    release, arguments = rocksdb()
    for name, mode in {"RocksDB, point in time": 2, "RocksDB, skip any": 3}.items():
        yield name, release, [sys.executable, foreign, name, *map(str, arguments), str(mode)]
    for name, python in {
        "wandb": sys.executable,
        "swanlab": sys.executable,
        "dfindexeddb": sys.executable,
        "chromium-reader": sys.executable,
        "leveldb-export": str(ROOT / ".venv/appengine/bin/python"),
    }.items():
        yield name, release_of(name), [python, foreign, name]


def release_of(name):
    """The version of a Python package."""
    directories = sorted(PEERS.glob(f"{name.replace('-', '_')}-*.dist-info"))
    return directories[0].name.removesuffix(".dist-info").rpartition("-")[2] if directories else version(name)


def outcome(case, answer):
    """The policy by which the records are those of the case, or None; and the classes in which they deviate."""
    expected = case["expected"]
    if "error" in answer:
        return None, ["hangs" if "in time" in answer["error"] or "within" in answer["error"] else "fails"]
    records = [record[2:] for record in answer["records"]]
    known = {policy: lengths_of(found["records"]) for policy, found in expected.items() if policy in POLICIES}
    same = next((policy for policy in POLICIES if known.get(policy) in (records, len(records))), None)
    possible = known.get("salvage", known["skip"])
    is_part = isinstance(possible, list) and not Counter(map(tuple, records)) - Counter(map(tuple, possible))
    found = [] if same else ["fewer" if is_part else "other"]
    is_damage = any(SEVERITY[region[0]] == "corruption" for region in expected["skip"].get("regions", []))
    return same, found + (["silent"] if "reported" not in answer and (is_damage or not same) else [])


def lengths_of(records):
    """Each record as an engine returns it; of many records, only their number."""
    return records["count"] if isinstance(records, dict) else [record[2:] for record in records]


def cases_for_engines(parent):
    """The cases that any reader can be asked, each with its request."""
    for number, case in enumerate(all_cases()):
        if "segments" in case or set(OPTIONS) & case.keys() or "skip" not in case.get("expected", {}):
            continue
        directory = Path(parent, str(number))
        directory.mkdir()
        yield case, next(task.request for task in tasks_of(case, directory) if task.policy == "skip")


def table(head, rows):
    """The lines of a table."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def ids(cases):
    """The ids of cases in short: those of one file together, and `1-3` for three in a row."""
    numbers = {}
    for case in cases:
        name, _, number = case["id"].rpartition("-")
        numbers.setdefault(name, []).append(int(number))
    return ", ".join(f"{name} {' '.join(runs(sorted(found)))}" for name, found in sorted(numbers.items()))


def runs(numbers):
    """Consecutive numbers as one, `1-3`."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0])


def section(name, deviations):
    """What an engine does otherwise: a line for each class and the rules of its cases."""
    groups = {}
    for case, classes in deviations:
        groups.setdefault((", ".join(classes), ", ".join(case["rules"])), []).append(case)
    rows = [
        [classes, rules, len(cases), ids(cases), min((case["name"] for case in cases), key=len)]
        for (classes, rules), cases in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1])))
    ]
    return (
        f"\n## {name}\n\n" + (table(["class", "rules", "", "cases", "one of them"], rows) if rows else "None.") + "\n"
    )


def main():
    """Runs the engines, and writes the page."""
    counts, sections = [], []
    with tempfile.TemporaryDirectory() as parent:
        asked = list(cases_for_engines(parent))
        for name, release, command in engines():
            runner, counted, deviations = Runner(command, timeout=120), Counter(), []
            for case, request in asked:
                answer = runner.answer(request)
                if "unsupported" not in answer:
                    policy, classes = outcome(case, answer)
                    counted.update(["cases", *([policy] if policy else []), *classes])
                    if classes:
                        deviations.append((case, classes))
            runner.stop()
            counts.append([name, release, *(counted[column] for column in ("cases", *POLICIES, *CLASSES))])
            sections.append(section(name, deviations))
            print(*counts[-1], flush=True)
    head = (HERE / "engines.md").read_text(encoding="utf-8").partition("\n| engine")[0]
    counted = table(["engine", "version", "cases", *POLICIES, *CLASSES], counts)
    (HERE / "engines.md").write_text(f"{head}\n{counted}\n{''.join(sections)}", encoding="utf-8")


if __name__ == "__main__":
    main()
