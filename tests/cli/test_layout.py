"""How reports and help texts look: their width, and the colour of damage."""

import os
import pty
import re
import subprocess
import sys

import pytest
import reference
from real_files import VECTORS
from support import PAYLOAD, written

from cordwood.cli import VERBS, main

WIDTH = 80
RED = "\x1b[1;31m"


def damaged():
    """Two thousand records in twenty blocks; one record in fifty has a flipped bit, and the tail is torn."""
    file = bytearray(reference.encode([b"%04d" % index + PAYLOAD[:300] for index in range(2000)]))
    for at in range(1000, len(file) - 1000, 311 * 50):
        file[at] ^= 0x20
    return bytes(file[:-5])


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_the_terminal_width(verb, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    with pytest.raises(SystemExit):
        main([*verb.split(), "--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > WIDTH] == []


LOG = {"dialect", "log-number"}
RARE = {
    **dict.fromkeys(("map", "fragments", "split"), LOG),
    **{verb: {*LOG, "record-len-max"} for verb in ("cat", "salvage", "follow")},
    **{verb: {*LOG, "record-len-max", "threads"} for verb in ("stat", "verify")},
    "evidence": {*LOG, "threads"},
    "pack": {"record-len-max"},
    "write": {*LOG, "flush"},
    "convert": {*LOG, "record-len-max", "escape-formulas"},
    "info": set(),
    "completion": set(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_lists_rare_options_last_under_their_own_heading(verb, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    common, _, rare = (
        capsys.readouterr()
        .out.partition("\n\noptions:\n")[2]
        .partition("\n\nexamples:")[0]
        .partition("\n\nrare options:\n")
    )
    options = re.compile(r"^  (?:-\w, )?--([\w-]+)", re.MULTILINE)
    assert set(options.findall(rare)) == RARE[verb]
    assert not RARE[verb] & {*options.findall(common)}


@pytest.mark.parametrize(
    "command",
    ["info", "stat", "verify", "map", "fragments", "fragments --damaged"],
)
def test_reports_fit_the_terminal_width(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    files = [damaged(), *(path.read_bytes() for path in sorted(VECTORS.rglob("*.log")))]
    for index, file in enumerate(files):
        with open(f"{index}.log", "wb") as log:  # noqa: PTH123
            log.write(file)
    main([*command.split(), *sorted(os.listdir())])  # noqa: PTH208
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > len(files)
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize(("count", "last"), [(1000, None), (1001, "1 more region"), (1500, "500 more regions")])
@pytest.mark.parametrize("verb", ["verify", "salvage"])
def test_a_thousand_regions_are_listed(verb, count, last, tmp_path, capsys):
    """Each record of 3 bytes takes 10; every second one is damaged."""
    path, saved = tmp_path / "log", tmp_path / "saved"
    file = bytearray(reference.encode([b"one"] * (2 * count + 1)))
    for index in range(count):
        file[20 * index + 19] ^= 0xFF
    assert len(file) < reference.BLOCK_LEN
    path.write_bytes(file)
    arguments = {"verify": [str(path)], "salvage": [str(path), str(saved)]}[verb]
    assert main([verb, *arguments]) == 3
    _, *lines = capsys.readouterr().out.splitlines()
    places = [line for line in lines if line.startswith("  at ")]
    assert len(places) == min(count, 1000)
    rest = [line for line in lines if line.startswith("  and ")]
    assert rest == ([] if last is None else [f"  and {last}; to list them: cordwood verify --json"])


def test_damage_lines_in_a_report_start_with_the_location(tmp_path, capsys):
    """However long a line is, it is folded only after the place."""
    path = tmp_path / "log"
    path.write_bytes(damaged())
    main(["verify", str(path)])
    lines = capsys.readouterr().out.splitlines()[1:-2]
    places = [re.match(r"  at [\d,]+: [\d,]+ bytes?, ", line) for line in lines]
    # The rest of a folded line is indented further.
    assert all(place or line.startswith("    ") for place, line in zip(places, lines, strict=True))
    assert sum(map(bool, places)) > 20
    main(["fragments", "--damaged", str(path)])
    shown = capsys.readouterr().out.splitlines()[2:]
    assert all(re.match(r" +[\d,]+ +[\d,]+ \w", line) for line in shown)
    assert len(shown) > 20


def test_the_report_shows_flipped_bits_instead_of_checksums(tmp_path, capsys):
    file = bytearray(written([b"one", b"two"]))
    file[17] ^= 0x20
    path = tmp_path / "log"
    path.write_bytes(file)
    main(["verify", str(path)])
    assert capsys.readouterr().out.splitlines()[1] == (
        "  at 10: 10 bytes, checksum mismatch: bit 5 of byte 17 was flipped"
    )
    file[18] ^= 0xFF
    path.write_bytes(file)
    main(["verify", str(path)])
    assert "the header states a79ef1a6" in capsys.readouterr().out


def on_a_terminal(*arguments, **settings):
    """The output of a verb on a terminal, line by line."""
    outer, inner = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | settings
    subprocess.run(
        [sys.executable, "-m", "cordwood", *arguments], stdout=inner, stderr=subprocess.DEVNULL, env=env, check=False
    )
    os.close(inner)
    shown = b""
    try:
        while piece := os.read(outer, 65_536):
            shown += piece
    except OSError:
        pass  # No process writes to the terminal any longer.
    os.close(outer)
    return shown.decode().replace("\r\n", "\n").splitlines()


@pytest.fixture
def logs(tmp_path):
    """One log that is damaged and torn, and one that is neither."""
    file = bytearray(written([b"one", b"two", b"three", b"four"])[:-1])
    file[17] ^= 0x20
    (tmp_path / "damaged").write_bytes(file)
    (tmp_path / "whole").write_bytes(written([b"one"]))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "red"),
    [
        ("info", ["  damage   10 bytes in 1 log"]),
        ("stat", ["DAMAGED", "10 damaged"]),
        (
            "verify",
            ["DAMAGED", "  at 10: 10 bytes, checksum mismatch: bit 5 of byte 17 was flipped"],
        ),
        ("map", ["             10             10  checksum_mismatch", "10 bytes damaged, 10 bytes of a torn tail"]),
        ("fragments", ["           10     10 full                    3 a79ef1a6 checksum_mismatch"]),
    ],
)
def test_damage_is_red_on_a_terminal(command, red, logs):
    shown = on_a_terminal(*command.split(), str(logs / "damaged"))
    found = re.findall(re.escape(RED) + "(.*?)\x1b\\[0m", "\n".join(shown))
    assert [text.partition(";")[0] for text in found] == red
    assert RED not in "".join(on_a_terminal(*command.split(), str(logs / "whole")))
    for settings in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        assert "\x1b" not in "".join(on_a_terminal(*command.split(), str(logs / "damaged"), **settings))


def test_totals_are_red_if_any_log_is_damaged(logs):
    assert f"total: 2 logs, {RED}1 damaged\x1b[0m, 0 failed; " in "".join(on_a_terminal("verify", str(logs)))
