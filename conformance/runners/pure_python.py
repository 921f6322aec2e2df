"""A runner for the reference of the tests: plain Python, for LevelDB's dialect and packed logs."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "conformance"), str(ROOT / "tests" / "helpers")]

import reference  # noqa: E402
from containers import RefusedError  # noqa: E402
from suite import SEVERITY, crc32c  # noqa: E402

# A `leveldb` that was detected knows the types that later releases of its engines write.
DIALECTS = {
    ("leveldb", None): reference.LEVELDB,
    ("packed", None): reference.PACKED,
    (None, "leveldb"): reference.DETECTED,
    (None, "packed"): reference.PACKED,
}
OPTIONS = ("start", "end", "record_len_max", "verify_checksums")
FEATURES = ["ranges", "record_len_max", "verify_checksums", "zstd", "segments", "write", "repair"]
POLICIES = {"skip": {}, "raise": {}, "stop": {"stop": True}, "salvage": {"salvage": True}}


def answer(request):
    """The answer to a request."""
    if request["do"] == "describe":
        return {"dialects": ["leveldb", "packed"], "policies": [*POLICIES], "features": FEATURES}
    named = request.get("dialect")
    dialect = DIALECTS.get((named, None if named else request.get("detected")))
    if request["do"] == "write":
        return write(request) if named in (None, "leveldb") else {"unsupported": "the dialect"}
    if dialect is None:
        return {"unsupported": "detection"}
    return read(request, dialect) if request["do"] == "read" else repair(request, dialect)


def write(request):
    Path(request["path"]).write_bytes(reference.encode(map(bytes.fromhex, request["records"])))
    return {}


def read(request, dialect):
    path = Path(request["path"])
    options = POLICIES[request["policy"]] | {name: request[name] for name in OPTIONS if name in request}
    if path.is_dir():
        names = {file.name for file in path.iterdir()} - {"LOCK"}
        if any(not re.fullmatch(r"[0-9]{20}\.log", name) for name in names):
            return {"records": [], "end": ["refused", 0]}
        files = {int(file.stem): file.read_bytes() for file in path.glob("*.log")}
        if {"start", "end", "stop"} & options.keys():
            return {"unsupported": "segment_ranges"}
        if not files:
            return {"records": [], "end": ["refused", 0]}
        return with_raised(request, found(reference.events_of_segments(files, dialect=dialect, **options)))
    content = path.read_bytes()
    if options.get("start", 0) > len(content):
        return {"records": [], "end": ["refused", options["start"]]}
    return with_raised(request, found(reference.events(content, dialect=dialect, **options)))


def with_raised(request, answer):
    if request["policy"] == "raise":
        answer["raised"] = [start for _, start, _, severity in answer["regions"] if severity == "corruption"]
    return answer


def repair(request, dialect):
    content = Path(request["path"]).read_bytes()
    answer = found(reference.events(content, salvage=True, repair=True, dialect=dialect))
    del answer["salvaged"]
    return answer | {"records": [record[2:] for record in answer["records"]]}


def found(events):
    records, salvaged, regions, end = [], [], [], None
    try:
        for event in events:
            if isinstance(event, reference.Record):
                records.append([event.offset, event.end_offset, len(event.data), f"{crc32c(event.data):08x}"])
                if event.salvaged:
                    salvaged.append(event.offset)
            elif isinstance(event, reference.Skipped):
                regions.append([event.reason, event.start, event.end, SEVERITY[event.reason]])
            else:
                end = [event.kind, event.offset]
    except RefusedError as error:
        end = ["refused", error.offset]
    return {"records": records, "salvaged": salvaged, "regions": regions, "end": end}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"]} | answer(asked)), flush=True)
