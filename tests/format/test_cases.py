"""The cases of `tests/cases`: each policy returns the events of the case, and `salvage` makes its repairs."""

from pathlib import Path

import pytest
import reference
from cases import all_cases, content_of
from crc32c import crc32c
from support import merged, plain_end, plain_skipped

import cordwood

OUTCOMES = [
    pytest.param(case, policy, id=f"{case['name']}: {policy}")
    for case in all_cases()
    for policy in case["expected"]
    if policy != "repair"
]
REPAIRS = [pytest.param(case, id=case["name"]) for case in all_cases() if "repair" in case["expected"]]
FORMAT = ("dialect", "log_number", "compression")


def test_no_two_cases_have_one_name():
    names = [case["name"] for case in all_cases()]
    assert len(names) == len(set(names))


def test_each_case_refers_to_a_page_of_the_format():
    docs = Path(__file__).parents[2] / "docs" / "format"
    for case in all_cases():
        page, _, section = case["rule"].partition("#")
        assert f"\n## {section}\n" in (docs / page).read_text(encoding="utf-8"), case["name"]


@pytest.mark.parametrize(("case", "policy"), OUTCOMES)
def test_a_reader_returns_the_events_of_the_case(case, policy, tmp_path, no_log):
    expected = case["expected"][policy]
    source = content_of(case)
    if "file_name" in case:
        path = tmp_path / case["file_name"]
        path.write_bytes(source)
        source = path
    named = {name: case[name] for name in FORMAT if name in case}
    with cordwood.open(source, on_corruption=policy, **named) as reader:
        records = list(reader.records())
        if "detected" in case:
            assert reader.dialect == case["detected"]
        check(expected, records, merged(plain_skipped(reader)), plain_end(reader))
        assert [record.offset for record in records if record.salvaged] == expected.get("salvaged", [])
        assert reader.ok is expected["ok"]
        assert reader.outcome.zeros_offset == expected.get("zeros_offset", reader.outcome.zeros_offset)


def dialect_of(case):
    """The dialect as the reference knows it, or `None`: it does not."""
    if case.get("detected") == "packed":
        return reference.PACKED
    if case.get("detected") == "leveldb":
        return reference.LEVELDB if "dialect" in case else reference.DETECTED
    return None


@pytest.mark.parametrize(("case", "policy"), [param for param in OUTCOMES if dialect_of(param.values[0])])
def test_the_reference_returns_the_events_of_the_case(case, policy):
    *events, end = reference.events(
        content_of(case), stop=policy == "stop", salvage=policy == "salvage", dialect=dialect_of(case)
    )
    records = [event for event in events if isinstance(event, reference.Record)]
    regions = merged([event for event in events if isinstance(event, reference.Skipped)])
    check(case["expected"][policy], records, regions, end)


@pytest.mark.parametrize("case", REPAIRS)
def test_salvage_makes_the_repairs_of_the_case(case, tmp_path):
    expected = case["expected"]["repair"]
    path, new = tmp_path / "old" / case.get("file_name", "log"), tmp_path / case.get("file_name", "log")
    path.parent.mkdir()
    path.write_bytes(content_of(case))
    named = {name: case[name] for name in FORMAT if name in case}
    report = cordwood.salvage(path, new, repair_bit_flips=True, **named)
    with cordwood.open(new, dialect=report.dialect) as reader:
        assert [[len(record), f"{crc32c(record):08x}"] for record in reader] == expected["records"]
    found = [
        [region.reason, region.offset, region.end_offset, region.bit_flip.offset, region.bit_flip.bit]
        for region in report.repaired
    ]
    assert found == expected["repaired"]
    assert report.repaired_count == expected["repaired_count"]
    regions = merged(plain_skipped(report))
    assert [[region.reason, region.begin, region.end] for region in regions] == expected["regions"]
    assert [report.outcome.kind, report.outcome.offset] == expected["end"]
    assert report.ok is expected["ok"]


@pytest.mark.parametrize("case", [param for param in REPAIRS if dialect_of(param.values[0])])
def test_the_reference_makes_the_repairs_of_the_case(case):
    expected = case["expected"]["repair"]
    *events, end = reference.events(content_of(case), salvage=True, repair=True, dialect=dialect_of(case))
    records = [event.data for event in events if isinstance(event, reference.Record)]
    regions = merged([event for event in events if isinstance(event, reference.Skipped)])
    assert [[len(record), f"{crc32c(record):08x}"] for record in records] == expected["records"]
    assert [[region.reason, region.begin, region.end] for region in regions] == expected["regions"]
    assert [end.kind, end.offset] == expected["end"]


def check(expected, records, regions, end):
    """Compares the events with an outcome."""
    if "records" in expected:
        found = [
            [record.offset, record.end_offset, len(record.data), f"{crc32c(record.data):08x}"] for record in records
        ]
        assert found == expected["records"]
    else:
        assert len(records) == expected["record_count"]
    assert [[region.reason, region.begin, region.end] for region in regions] == expected["regions"]
    assert [end.kind, end.offset] == expected["end"]
