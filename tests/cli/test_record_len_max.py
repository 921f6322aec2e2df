"""`--record-len-max`: the verbs that read records leave out those that are longer."""

import pytest
import reference

import cordwood
from cordwood.cli import main

LEN = 100_000
RECORDS = [b"one", bytes(LEN), b"three"]

VERBS = [
    ["cat"],
    ["cat", "--json"],
    ["stat"],
    ["verify"],
    ["convert", "--as", "raw"],
    ["convert", "--as", "raw", "--to", "csv"],
    ["follow", "--timeout", "0"],
]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(reference.encode(RECORDS))
    return str(path)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_record_longer_than_the_limit_is_reported_as_damage(verb, log, capfdbinary):
    for limit, status in [([], 0), (["--record-len-max", str(LEN)], 0), (["--record-len-max", "97KiB"], 3)]:
        assert main([*verb, *limit, log]) == status, limit
        out, err = capfdbinary.readouterr()
        # `stat` only says "DAMAGED".
        text = b"DAMAGED" if verb == ["stat"] else b"longer than "
        assert (b"--record-len-max" in out + err) == (status == 3 and verb != ["stat"])
        assert (text in out + err) == (status == 3), limit


def test_a_record_longer_than_the_limit_is_not_salvaged(log, tmp_path):
    new = str(tmp_path / "new.log")
    assert main(["salvage", "--record-len-max", str(LEN - 1), log, new]) == 3
    assert list(cordwood.open(new)) == [RECORDS[0], RECORDS[2]]
    assert main(["salvage", "--overwrite", log, new]) == 0
    assert list(cordwood.open(new)) == RECORDS


def test_verify_counts_the_records_that_salvage_would_return(log, capsys):
    assert main(["verify", "--record-len-max", str(LEN - 1), log]) == 3
    # The policy "salvage" refuses the same record.
    assert "more record" not in capsys.readouterr().out
