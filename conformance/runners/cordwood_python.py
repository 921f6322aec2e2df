"""A runner for cordwood's Python package.

python conformance/suite.py python conformance/runners/cordwood_python.py
"""

import json
import sys
from pathlib import Path

import cordwood

sys.path.append(str(Path(__file__).parents[1]))

from suite import DIALECTS, FEATURES, POLICIES

OPTIONS = ("dialect", "log_number", "compression", "start", "end", "record_len_max", "verify_checksums")


def answer(request):
    """The answer to a request."""
    named = {name: request[name] for name in OPTIONS if name in request}
    return {"describe": describe, "read": read, "write": write, "repair": repair}[request["do"]](request, named)


def describe(_request, _named):
    return {"dialects": DIALECTS, "policies": POLICIES, "features": [*FEATURES]}


def read(request, named):
    records, salvaged, raised = [], [], []
    try:
        reader = cordwood.open(request["path"], on_corruption=request["policy"], **named)
    except IsADirectoryError:  # A directory without segments.
        return {"records": [], "end": ["refused", 0]}
    except cordwood.CordwoodError as error:
        return {"records": [], "end": ["refused", error.offset]}
    with reader:
        steps = reader.records()
        while True:
            try:
                record = next(steps)
            except StopIteration:
                break
            except cordwood.CorruptionError as error:
                raised.append(error.offset)
            except cordwood.RecordTooLargeError as error:
                if request["policy"] != "raise":  # More memory than the log may claim.
                    return {"records": records, "end": ["refused", error.offset]}
                raised.append(error.offset)
            except cordwood.CordwoodError as error:
                return {"records": records, "end": ["refused", error.offset]}
            else:
                records.append(plain(record))
                if record.salvaged:
                    salvaged.append(record.offset)
        found = {
            "dialect": reader.dialect,
            "records": records,
            "salvaged": salvaged,
            "regions": regions(reader.skipped),
            "end": [reader.outcome.kind, reader.outcome.offset],
            "ok": reader.ok,
            "zeros_offset": reader.outcome.zeros_offset,
        }
    return found | ({"raised": raised} if request["policy"] == "raise" else {})


def write(request, named):
    with cordwood.open(request["path"], "x", flush="close", **named) as writer:
        writer.extend(map(bytes.fromhex, request["records"]))
    return {}


def repair(request, named):
    report = cordwood.salvage(request["path"], request["to"], repair_bit_flips=True, **named)
    with cordwood.open(request["to"], dialect=report.dialect) as reader:
        records = [plain(record)[2:] for record in reader.records()]
    return {
        "records": records,
        "regions": regions(report.skipped),
        "end": [report.outcome.kind, report.outcome.offset],
        "ok": report.ok,
        "repaired": [
            [region.reason, region.offset, region.end_offset, region.bit_flip.offset, region.bit_flip.bit]
            for region in report.repaired
        ],
        "repaired_count": report.repaired_count,
    }


def plain(record):
    return [record.offset, record.end_offset, len(record.data), f"{cordwood.crc32c(record.data):08x}"]


def regions(skipped):
    return [[region.reason, region.offset, region.end_offset, region.severity] for region in skipped]


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"]} | answer(asked)), flush=True)
