"""A log is read once: a verb says the same about a pipe, which cannot be read again, as about a file."""

import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN

COMMAND = [sys.executable, "-m", "cordwood"]


def flipped(file, offset):
    damaged = bytearray(file)
    damaged[offset] ^= 1
    return bytes(damaged)


RECORDS = reference.encode([b"record %d" % index for index in range(5_000)])
LOGS = {
    "damage, with records after it in the block": flipped(RECORDS, 40_000),
    "damage that ends the log": flipped(reference.encode([b"one", b"two"]), 17),
    "nothing that shows a dialect": bytes(7) + b"\xff" * 3_000,
    "zeros at the end": RECORDS + bytes(50_000),
    "a torn tail": RECORDS[:-1],
}


@pytest.mark.parametrize("command", ["verify", "stat", "cat", "convert", "cat --on-corruption salvage", "map"])
@pytest.mark.parametrize("content", LOGS.values(), ids=LOGS)
def test_a_pipe_gets_the_same_answer_as_a_file(command, content, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(content)

    def run(source, **options):
        done = subprocess.run(
            [*COMMAND, *command.split(), "--dialect", "leveldb", source], capture_output=True, check=False, **options
        )
        name = b"<stdin>" if source == "-" else str(path).encode()
        # A longer name may break a line elsewhere.
        return done.returncode, *(b" ".join(text.replace(name, b"LOG").split()) for text in (done.stdout, done.stderr))

    assert run("-", input=content) == run(str(path))


def test_an_undetectable_dialect_is_reported_also_on_stdin(tmp_path):
    """A file that is not named is detected; there is no valid fragment here."""
    content = bytes([9, 9, 9, 9, 9, 0, 1]) + b"\xff" * (BLOCK_LEN - 7) + b"\0\0\0\0\x05\0\1" + b"\xff" * 100
    path = tmp_path / "000003.log"
    path.write_bytes(content)
    for verb in ("verify", "cat", "convert"):
        for source in ("-", str(path)):
            done = subprocess.run([*COMMAND, verb, source], input=content, capture_output=True, check=False)
            said = b" ".join((done.stdout + done.stderr).split())
            assert (done.returncode, b"nothing shows its dialect" in said) == (3, True), (verb, source, said)


@pytest.mark.parametrize("verb", ["cat", "convert"])
def test_the_records_after_damage_are_left_out_and_counted(verb, tmp_path):
    """As by LevelDB's reader, whose rule the reference knows."""
    path = tmp_path / "log"
    path.write_bytes(LOGS["damage, with records after it in the block"])
    *events, _ = reference.events(path.read_bytes())
    by_rule = [event.data for event in events if isinstance(event, reference.Record)]
    options = {"cat": [], "convert": ["--to", "csv", "--columns", "data"]}[verb]
    done = subprocess.run([*COMMAND, verb, *options, path], capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stdout.splitlines()[len(options) > 0 :] == by_rule
    more = 5_000 - 1 - len(by_rule)
    assert f"--on-corruption salvage returns {more:,} more records\n".encode() in done.stderr
    assert b"at 39," in done.stderr
