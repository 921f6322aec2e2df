"""Prints the licences of the crates that are linked into the wheels: they go into sdist and wheels, beside our own.

They require it: whoever distributes a binary must distribute these texts with it. The text is the same on each system,
since the wheels for all systems can be built from one sdist.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXPRESSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license"]
BINDING = "cordwood-python"
OWN_APACHE = "LICENSE-APACHE"
# One for each system that has wheels: their packages differ by system, not by processor.
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]


def metadata(target: str) -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def linked(found: dict) -> dict[str, dict]:
    """The packages linked into the binding, by their ids, without build tools, macros and those of this workspace."""
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
    return {name: packages[name] for name in seen if packages[name]["source"] is not None}


def texts(package: dict) -> list[Path]:
    """The licences we use it under: only MIT if it has that file. A bundled C library's is one directory deeper."""
    directory = Path(package["manifest_path"]).parent
    found = sorted(path for name in ("LICEN[CS]E*", "*/LICEN[CS]E*") for path in directory.glob(name) if path.is_file())
    return [path for path in found if path.name == "LICENSE-MIT"] or found


def main() -> None:
    print("cordwood's compiled module contains these packages, under the licences that follow each,")
    print("and Rust's standard library (MIT OR Apache-2.0, https://www.rust-lang.org/policies/licenses).")
    # The licences of which one may be chosen, for each clause.
    clauses = [set(clause.strip("()").split(" OR ")) for clause in EXPRESSION.split(" AND ")]
    packages = {name: package for target in TARGETS for name, package in linked(metadata(target)).items()}
    for package in sorted(packages.values(), key=lambda package: (package["name"], package["version"])):
        found = texts(package)
        if not any(clause <= set(package["license"].split(" OR ")) for clause in clauses):
            sys.exit(f"`license` in pyproject.toml does not cover {package['name']}: {package['license']}")
        print(f"\n\n{'=' * 80}\n{package['name']} {package['version']}: {package['license']}")
        if not found and "Apache-2.0" in package["license"]:
            print(f"Used under the Apache License 2.0: {OWN_APACHE}, beside this file, is its text.")
        elif not found:
            sys.exit(f"{package['name']} has no text of its licence, {package['license']}")
        for path in found:
            print(f"{'-' * 80}\n{path.name}\n{'-' * 80}\n{path.read_text(encoding='utf-8').strip()}")


if __name__ == "__main__":
    main()
