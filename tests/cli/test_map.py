"""The picture of a log: that nothing is left out of it, that damage is seen, and that the documented one is true."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.cli.map import svg, terminal
from cordwood.cli.map.cells import Category, Cells, category_of, size

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"

WHOLE = ("full", None, None)
PART = ("first", None, None)
DAMAGE = ("full", "checksum_mismatch", "corruption")
LOST = ("last", "missing_start", "corruption")
TORN = ("full", "torn_tail", "torn_tail")
ZEROS = ("zeros", "zero_fill", "info")


def runs_of(*parts):
    """Consecutive runs of these lengths."""
    begin = 0
    for length, (name, reason, severity) in parts:
        yield begin, begin + length, name, reason, severity, 1
        begin += length


def parsed(document):
    return ElementTree.fromstring(document)  # noqa: S314 - we have written it


def text(cells, *, columns=64, color=False, unicode=False):
    return terminal.draw(cells, title="log", dialect="leveldb", columns=columns, color=color, unicode=unicode)


@pytest.mark.parametrize(
    ("fragment", "category"),
    [
        (WHOLE, Category.WHOLE),
        (("wal_sync_full", None, None), Category.WHOLE),
        (("recyclable_middle", None, None), Category.PART),
        (("trailer", None, None), Category.OTHER),
        (("file_header", "file_header", "info"), Category.OTHER),
        (("full", "stale", "info"), Category.STALE),
        (("zeros", "stale", "info"), Category.STALE),
        (ZEROS, Category.ZEROS),
        (TORN, Category.TORN),
        (DAMAGE, Category.DAMAGE),
        (("full", "lost_write", "corruption"), Category.DAMAGE),
        (LOST, Category.LOST),
    ],
)
def test_what_a_fragment_is(fragment, category):
    assert category_of(*fragment) is category


@given(st.lists(st.tuples(st.integers(1, 50_000), st.sampled_from([WHOLE, PART, DAMAGE, LOST, TORN, ZEROS]))))
def test_no_byte_is_left_out_however_long_the_log(parts):
    cells = Cells.of(runs_of(*parts), cell_len=16, count_max=32)
    assert len(cells.sums) <= 32
    assert cells.file_len == sum(length for length, _ in parts)
    for category in Category:
        expected = sum(length for length, fragment in parts if category_of(*fragment) is category)
        assert cells.totals[category] == expected == sum(sums[category] for sums in cells.sums)
    for index, sums in enumerate(cells.sums):
        assert sum(sums) == min(cells.cell_len, cells.file_len - index * cells.cell_len)


@given(st.integers(0, 100_000), st.sampled_from([DAMAGE, LOST, TORN]))
def test_one_byte_of_damage_is_seen(at, fragment):
    cells = Cells.of(runs_of((at, WHOLE), (1, fragment), (100_000, WHOLE)), cell_len=512, count_max=64)
    mark = {DAMAGE: "!", LOST: "x", TORN: "~"}[fragment]
    rows = [line for line in text(cells) if re.match(r" +[\d,]+ [#!x~]+", line)]
    assert "".join(rows).count(mark) == 2  # In its row, and after it.
    assert cells.regions[0].begin == at
    boxes = list(svg.boxes_of_cells(cells, 64))
    root = parsed(svg.draw(cells, boxes, title="log", dialect="leveldb", row_len=64 * cells.cell_len))
    name = {DAMAGE: "damage", LOST: "lost", TORN: "torn"}[fragment]
    titled = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    [shown] = [rect for rect in titled if rect.get("class") == name]
    assert float(shown.get("width")) >= 2.5


def test_regions_that_touch_are_one_and_the_list_is_bounded():
    parts = [(10, WHOLE), (5, DAMAGE), (5, DAMAGE), (5, LOST), (10, WHOLE)] * 2000
    cells = Cells.of(runs_of(*parts), cell_len=16, count_max=64)
    assert (cells.region_count, len(cells.regions)) == (4000, 1000)
    assert [(region.begin, region.end, region.reason) for region in cells.regions[:3]] == [
        (10, 20, "checksum_mismatch"),
        (20, 25, "missing_start"),
        (45, 55, "checksum_mismatch"),
    ]
    assert any("and 3,980 regions more" in line for line in text(cells))


def test_colours_change_nothing_but_colours():
    cells = Cells.of(runs_of((900, WHOLE), (900, PART), (40, DAMAGE), (700, ZEROS)), cell_len=64, count_max=64)
    colored = text(cells, color=True, unicode=True)
    assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in colored] == text(cells, unicode=True)
    assert colored != text(cells, unicode=True)
    assert all(line.isascii() for line in text(cells))
    assert all(line.count("\x1b[") == 0 or line.rstrip(" !x~").count("\x1b[0m") for line in colored)


@pytest.mark.parametrize(
    ("width", "columns"), [(1, 8), (40, 16), (79, 32), (80, 64), (143, 64), (144, 128), (999, 256)]
)
def test_cells_in_a_row(width, columns):
    assert terminal.cells_per_row(width) == columns


def test_a_name_cannot_command_the_terminal_or_break_the_document():
    name = 'a\x1b[2J<b>&"\n.log'
    cells = Cells.of(runs_of((10, WHOLE)), cell_len=16, count_max=64)
    lines = terminal.draw(cells, title=name, dialect="leveldb", columns=64, color=False, unicode=True)
    assert lines[0] == 'a?[2J<b>&"?.log'
    document = svg.draw(cells, [], title=name, dialect="leveldb", row_len=1024)
    assert 'a?[2J<b>&"' in "".join(parsed(document).itertext())


@pytest.mark.parametrize(
    ("length", "shown"), [(0, "0 bytes"), (1, "1 byte"), (1025, "1,025 bytes"), (1 << 15, "32 KiB"), (3 << 30, "3 GiB")]
)
def test_size(length, shown):
    assert size(length) == shown


def test_the_picture_in_the_documentation_is_what_the_command_draws():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "draw_map.py", "--check"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_picture_in_the_documentation_is_a_document_of_its_own():
    document = (ROOT / "docs" / "map.svg").read_text(encoding="utf-8")
    root = parsed(document)
    assert not list(root.iter(f"{SVG}script"))
    assert re.findall(r'(?:href|src|url)\s*[=(]\s*["\']?([^"\')]*)', document) == ["#h"] * document.count("url(#h)")
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert sum("corruption: checksum_mismatch" in title for title in titles) >= 3
    assert sum(title.startswith("full, ") for title in titles) > 150
