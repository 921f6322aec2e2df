"""Writes one archive with the suite, its cases, and their files, which needs no other file.

python conformance/archive.py DIRECTORY
"""

import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from suite import HERE, VECTORS, VERSION, all_cases, tasks

NAME = f"cordwood-conformance-{VERSION}"
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")


def vectors_of(value):
    """The names of the vectors in the pieces of a case."""
    if isinstance(value, dict):
        yield from [value["vector"]] if "vector" in value else vectors_of([*value.values()])
    elif isinstance(value, list):
        for part in value:
            yield from vectors_of(part)


def written(directory):
    """The archive, in this directory."""
    cases, members = all_cases(), {}
    for name in ("suite.py", "README.md"):
        members[name] = (HERE / name).read_bytes()
    for name in LICENCES:
        members[name] = (HERE.parent / name).read_bytes()
    for file in HERE.glob("cases/*.json"):
        members[f"cases/{file.name}"] = file.read_bytes()
    for name in set(vectors_of(cases)):
        members[f"vectors/{name}"] = (VECTORS / name).read_bytes()
    asked = []
    with tempfile.TemporaryDirectory() as parent:
        for task in tasks(cases, Path(parent)):
            request = {
                key: value.replace(parent, "files") if key in {"path", "to"} else value
                for key, value in task.request.items()
            }
            case = {key: task.case[key] for key in ("id", "name", "rules")}
            asked.append(case | {"level": task.level, "request": request, "expected": task.expected})
        for file in Path(parent).rglob("*"):
            if file.is_dir() and not any(file.iterdir()):
                members[f"files/{file.relative_to(parent).as_posix()}"] = None
            elif file.is_file():
                members[f"files/{file.relative_to(parent).as_posix()}"] = file.read_bytes()
    members["tasks.json"] = ("[\n" + ",\n".join(map(json.dumps, asked)) + "\n]\n").encode()
    path = Path(directory, f"{NAME}.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, content in sorted(members.items()):
            member = tarfile.TarInfo(f"{NAME}/{name}")
            if content is None:  # An empty directory: of a log without segments, or for a new file.
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    print(written(sys.argv[1]))
