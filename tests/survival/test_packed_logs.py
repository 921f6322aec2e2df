"""Damaged packed logs are read as `reference.py` reads them. `make survival` looks at 10,000 files of each origin."""

import os
import random

import pytest
import random_packed
import reference
from containers import RefusedError
from support import merged, plain_skipped

import cordwood
from cordwood.types import DetectedDialect

FULL = os.environ.get("CORDWOOD_SURVIVAL") == "full"
FILES = 200 if FULL else 70
PARTS = range(50 if FULL else 1)
ORIGINS = {
    "written by cordwood": random_packed.written_by_cordwood,
    "written by the reference": random_packed.written_by_reference,
    "with checksums that are right": random_packed.with_fixed_checksums,
}

pytestmark = pytest.mark.usefixtures("no_log")


def by_reference(file, policy, **options):
    """The records with their marks, the regions, and the end or the refusal."""
    events = []
    try:
        for event in reference.events(file, salvage=policy == "salvage", stop=policy == "stop", **options):
            events += [event]  # One by one: those before an error count.
        end = events.pop()
        end = (end.kind, end.offset)
    except RefusedError as error:
        end = ("refused", error.offset)
    records = [event for event in events if isinstance(event, reference.Record)]
    return records, merged([event for event in events if isinstance(event, reference.Skipped)]), end


def by_cordwood(file, policy, **options):
    records = []
    with cordwood.open(file, on_corruption=policy, **options) as reader:
        try:
            for record in reader.records():  # One by one: those before an error count.
                records += [reference.Record(record.offset, record.end_offset, record.data, record.salvaged)]
            end = (reader.outcome.kind, reader.outcome.offset)
        except (cordwood.DialectError, cordwood.RecordTooLargeError) as error:
            end = ("refused", error.offset)
        return records, merged(plain_skipped(reader)), end


def some_range(rng, file):
    """A part of the file that starts and ends near a fragment."""
    headers = [item.start for item in reference.fragments(file, verify_checksums=False)]
    edges = [min(len(file), rng.choice([*headers, 0]) + rng.randrange(-2, 40)) for _ in range(2)]
    start, end = sorted(max(0, edge) for edge in edges)
    return {"start": start, "end": end}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_damaged_packed_logs_match_the_reference(origin, part):
    rng = random.Random(f"{origin} {part}")
    seen = set()
    for index in range(FILES):
        file = random_packed.a_file(rng, ORIGINS[origin])
        options = random_packed.some_options(rng)
        for policy in ("skip", "salvage", "stop"):
            expected = by_reference(file, policy, dialect=reference.PACKED, **options)
            assert by_cordwood(file, policy, dialect="packed", **options) == expected, (index, policy, options)
            seen |= {region.reason for region in expected[1]}
            if expected[2][0] == "refused":
                seen.add("refused")
            elif policy != "stop":
                bounds = some_range(rng, file)
                expected = by_reference(file, policy, dialect=reference.PACKED, **options, **bounds)
                found = by_cordwood(file, policy, dialect="packed", **options, **bounds)
                assert found == expected, (index, policy, options, bounds)
        # As where the mark was lost, and a log starts with ordinary records.
        expected = by_reference(file, "skip", dialect=reference.DETECTED)
        assert by_cordwood(file, "skip", dialect=DetectedDialect("leveldb")) == expected, index
    if part == 0:
        assert {"checksum_mismatch", "torn_tail"} <= seen
        if "right" in origin:
            assert {"bad_container", "bad_compression", "missing_end", "refused"} <= seen
