"""Torn tails: the prefixes of logs are torn, and bytes that no writer writes are not."""

import random

import pytest
from real_files import ALL

import cordwood


def cuts(path, count):
    """Lengths to which a log is cut: around the edges of its fragments and blocks, and anywhere."""
    rng = random.Random(str(path))
    fragments = list(cordwood.fragments(path))
    # The bytes after the end of a recycled log belong to another one.
    file_len = next((part.offset for part in fragments if part.reason == "stale"), path.stat().st_size)
    chosen = rng.sample(fragments, min(len(fragments), count))
    edges = {edge for part in chosen for edge in (part.offset, part.end_offset)}
    edges |= set(range(0, file_len, 32_768))
    found = {edge + more for edge in edges for more in (-1, 0, 1, 6, 7, 8, 10, 11, 15, 18, 19, 20)}
    found |= {rng.randrange(file_len) for _ in range(count)} | set(range(40))
    return sorted(cut for cut in found if 0 <= cut <= file_len)


def is_text(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\n\r\f" for letter in text)


@pytest.mark.parametrize("path", ALL)
def test_every_prefix_of_a_log_is_reported_as_complete_or_torn(path, tmp_path):
    log = path.read_bytes()
    target = tmp_path / path.name
    text_count = 0
    for cut in cuts(path, 12):
        target.write_bytes(log[:cut])
        report = cordwood.verify(target)
        assert (report.ok, report.outcome.kind in ("clean", "torn_tail")) == (True, True), (cut, report.skipped[-1:])
        try:
            cordwood.open(target, "a", on_torn_tail="truncate").close()
        except cordwood.DialectError as error:
            if "never appended" not in str(error):
                # The one exception: the written part of the first header may look like text by chance.
                assert cut in (5, 6)
                assert is_text(log[:cut])
                text_count += 1
    assert text_count <= 1


NAMES = ["000003.log", "MANIFEST-000002", "run-abc.wandb", "output-0", "backup.swanlab", "app.log"]


def test_random_bytes_are_rarely_mistaken_for_a_torn_record(tmp_path):
    rng = random.Random(1)
    count = 300
    ok = []
    for number in range(count):
        path = tmp_path / NAMES[number % len(NAMES)]
        # As many short ones as long ones.
        path.write_bytes(rng.randbytes(int(8 * 12_500 ** rng.random())))
        report = cordwood.verify(path)
        ok += [path.name] * report.ok
    assert len(ok) <= count * 0.02, ok


NUMBERED = ("pebble/", "rocksdb/recycled", "rocksdb/late-timestamps-", "rocksdb/compressed/", "corpus:")
"""After the end of these logs, random bytes may be the rest of an older log."""


@pytest.mark.parametrize("path", [param for param in ALL if not param.id.startswith(NUMBERED)])
def test_random_bytes_after_a_log_are_rarely_mistaken_for_a_torn_record(path, no_log):
    with cordwood.open(path) as reader:
        ends = [record.end_offset for record in reader.records()]
        assert reader.log_number is None
        dialect = reader.dialect
    rng = random.Random(2)
    log = path.read_bytes()
    count = 100
    ok = 0
    for _ in range(count):
        file = log[: rng.choice(ends)] + rng.randbytes(rng.randrange(7, 5_000))
        ok += cordwood.verify(file, dialect=dialect).ok
    assert ok <= count * 0.02


@pytest.mark.parametrize("policy", ["refuse", "truncate", "pad"])
@pytest.mark.parametrize("text", ["1.2.3", "1.2.3\n", "é: ja"])
def test_a_short_text_file_is_not_mistaken_for_a_torn_header(text, policy, tmp_path):
    path = tmp_path / "VERSION"
    path.write_text(text, encoding="utf-8")
    for dialect in (None, "leveldb"):
        with pytest.raises(cordwood.DialectError, match="but text"):
            cordwood.open(path, "a", on_torn_tail=policy, dialect=dialect)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("header", [b"\xb1\x7e\x04\x9d1234"[:6], b"1.2", b"\x01\x02\x03\x04\x05"])
def test_very_short_or_binary_data_is_accepted_as_a_torn_header(header, tmp_path):
    path = tmp_path / "000003.log"
    path.write_bytes(header)
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        assert writer.discarded_tail.length == len(header)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"\x05\x2b\x28\x43\x64\x00\x9d", id="of an unknown type"),
        pytest.param(b"\x05\x2b\x28\x43\x64\x00\x02", id="of a FIRST inside a block"),
    ],
)
def test_a_follower_does_not_wait_for_data_that_was_never_written(header, tmp_path):
    path = tmp_path / "000003.log"
    with cordwood.open(path, "w") as writer:
        writer.append(b"one")
    with path.open("ab") as file:
        file.write(header + b"data")
    with cordwood.follow(path, on_corruption="skip", retry_time=1e-9) as follower:
        assert [follower.poll().data, follower.poll(), follower.poll(), follower.poll()] == [b"one", None, None, None]
        assert (follower.waiting.reason, follower.skipped) == ("suspect", ())
        assert follower.poll() is None
        assert [region.reason for region in follower.skipped] == ["bad_length"]


@pytest.mark.parametrize("kind", [1, 4])
def test_a_follower_waits_for_the_data_of_a_record_that_is_being_written(kind, tmp_path):
    path = tmp_path / "000003.log"
    with cordwood.open(path, "w") as writer:
        writer.append(b"one")
    with path.open("ab") as file:
        file.write(b"\x05\x2b\x28\x43\x64\x00" + bytes([kind]) + b"data")
    with cordwood.follow(path, retry_time=1e-9) as follower:
        assert follower.poll().data == b"one"
        for _ in range(10):
            assert follower.poll() is None
        assert (follower.waiting.reason, follower.skipped) == ("incomplete", ())
