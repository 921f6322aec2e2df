"""The report of `salvage` about a log in which some damage can be repaired."""

from pathlib import Path

import pytest
import reference

import cordwood
from cordwood.cli import main


def test_repaired_and_lost_regions_are_listed_in_file_order(tmp_path, capfd):
    data = bytearray(reference.encode([b"record %d" % number for number in range(40)]))
    record_len = 7 + len(b"record 1")
    # One flipped bit in the first and third of these records, and two changed bytes in the second.
    for number, flips in (2, (9,)), (4, (8, 9)), (6, (9,)):
        for place in flips:
            data[number * record_len + place] ^= 0x10
    log = tmp_path / "a.log"
    log.write_bytes(data)
    assert main(["salvage", "--repair-bit-flips", str(log), str(tmp_path / "new.log")]) == 3
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("  at ")]
    assert [(line.split(":")[0], "repaired" in line) for line in lines] == [
        ("  at 30", True),
        ("  at 60", False),
        ("  at 90", True),
    ]


@pytest.mark.parametrize("name", ["log", "log/", "log/.", "log/../log"])
def test_salvage_writes_a_segmented_log_to_its_own_directory(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with cordwood.open("log", "a", segment_len=40) as log:
        log.extend([b"record %d" % number for number in range(20)])
    Path("saved").mkdir()
    assert main(["salvage", name, "saved/"]) == 0, capfd.readouterr()
    assert list(Path("saved").iterdir()) == [Path("saved/log")]
    assert list(cordwood.open("saved/log")) == [b"record %d" % number for number in range(20)]
