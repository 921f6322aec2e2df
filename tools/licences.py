"""Prints the licences of the crates that are linked into the wheel: `make wheel` adds them to our own.

They require it: whoever distributes a binary must distribute these texts with it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BINDING = "cordwood-python"


def metadata() -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host()]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))


def linked(found: dict) -> Iterator[dict]:
    """The packages linked into the binding, without build tools, macros and those of this workspace."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    todo = [package["id"] for package in found["packages"] if package["name"] == BINDING]
    seen = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            name = dependency["pkg"]
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[name]["targets"])
            if is_normal and not is_macro and name not in seen:
                seen.add(name)
                todo.append(name)
    chosen = [packages[name] for name in seen if packages[name]["source"] is not None]
    return iter(sorted(chosen, key=lambda package: package["name"]))


def texts(package: dict) -> list[Path]:
    """The licences we use it under: only MIT if it has that file. A bundled C library's is one folder deeper."""
    folder = Path(package["manifest_path"]).parent
    found = sorted(path for name in ("LICEN[CS]E*", "*/LICEN[CS]E*") for path in folder.glob(name) if path.is_file())
    return [path for path in found if path.name == "LICENSE-MIT"] or found


def main() -> None:
    print("cordwood's compiled module contains these packages, under the licences that follow each,")
    print("and Rust's standard library (MIT OR Apache-2.0, https://www.rust-lang.org/policies/licenses).")
    for package in linked(metadata()):
        found = texts(package)
        if not found:
            sys.exit(f"{package['name']} has no text of its licence, {package['license']}")
        print(f"\n\n{'=' * 80}\n{package['name']} {package['version']}: {package['license']}")
        for path in found:
            print(f"{'-' * 80}\n{path.name}\n{'-' * 80}\n{path.read_text(encoding='utf-8').strip()}")


if __name__ == "__main__":
    main()
