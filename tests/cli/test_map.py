"""The picture of a log: it leaves no byte out, damage is visible, and the one in the documentation is correct."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from cordwood._map import svg
from cordwood._map.cells import Category, Cells, category_of, size
from cordwood.cli import main
from cordwood.cli.map import terminal

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
    start = 0
    for length, (name, reason, severity) in parts:
        yield start, start + length, name, reason, severity, 1
        start += length


def parsed(document):
    return ElementTree.fromstring(document)  # noqa: S314 - our own file


def document(cells, boxes=(), *, title="log", row_len=None):
    row_len = row_len or 128 * cells.cell_len
    return svg.document([svg.draw(cells, boxes, title=title, row_len=row_len)])


def text(cells, *, columns=64, color=False, unicode=False):
    return terminal.draw(cells, title="log", columns=columns, color=color, unicode=unicode)


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
def test_each_fragment_has_a_map_category(fragment, category):
    assert category_of(*fragment) is category


@given(st.lists(st.tuples(st.integers(1, 50_000), st.sampled_from([WHOLE, PART, DAMAGE, LOST, TORN, ZEROS]))))
def test_a_map_covers_every_byte_of_a_long_log(parts):
    cells = Cells(runs_of(*parts), cell_len=16, count_max=32)
    assert len(cells.sums) <= 32
    assert cells.file_len == sum(length for length, _ in parts)
    for category in Category:
        expected = sum(length for length, fragment in parts if category_of(*fragment) is category)
        assert cells.totals[category] == expected == sum(sums[category] for sums in cells.sums)
    for index, sums in enumerate(cells.sums):
        assert sum(sums) == min(cells.cell_len, cells.file_len - index * cells.cell_len)


@given(st.integers(0, 100_000), st.sampled_from([DAMAGE, LOST, TORN]))
def test_a_map_shows_a_single_damaged_byte(at, fragment):
    cells = Cells(runs_of((at, WHOLE), (1, fragment), (100_000, WHOLE)), cell_len=512, count_max=64)
    mark = {DAMAGE: "!", LOST: "x", TORN: "~"}[fragment]
    rows = [line for line in text(cells) if re.match(r" +[\d,]+ [#!x~]+", line)]
    assert "".join(rows).count(mark) == 2  # In its row, and in the text after the row.
    assert cells.regions[0].start == at
    boxes = list(svg.boxes_of_cells(cells, 64))
    root = parsed(document(cells, boxes, row_len=64 * cells.cell_len))
    name = {DAMAGE: "damage", LOST: "lost", TORN: "torn"}[fragment]
    titled = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    [shown] = [rect for rect in titled if rect.get("class") == name]
    assert float(shown.get("width")) >= 2.5


def test_merges_adjacent_regions_and_lists_at_most_1000():
    parts = [(10, WHOLE), (5, DAMAGE), (5, DAMAGE), (5, LOST), (10, WHOLE)] * 2000
    cells = Cells(runs_of(*parts), cell_len=16, count_max=64)
    assert (cells.region_count, len(cells.regions)) == (4000, 1000)
    assert [(region.start, region.end, region.reason) for region in cells.regions[:3]] == [
        (10, 20, "checksum_mismatch"),
        (20, 25, "missing_start"),
        (45, 55, "checksum_mismatch"),
    ]
    assert any("and 3,980 regions more" in line for line in text(cells))


def test_color_does_not_change_the_text():
    cells = Cells(runs_of((900, WHOLE), (900, PART), (40, DAMAGE), (700, ZEROS)), cell_len=64, count_max=64)
    colored = text(cells, color=True, unicode=True)
    assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in colored] == text(cells, unicode=True)
    assert colored != text(cells, unicode=True)
    assert all(line.isascii() for line in text(cells))
    assert all(line.count("\x1b[") == 0 or line.rstrip(" !x~").count("\x1b[0m") for line in colored)


@pytest.mark.parametrize(
    ("width", "columns"), [(1, 8), (40, 16), (79, 32), (80, 64), (143, 64), (144, 128), (999, 256)]
)
def test_cells_per_row_depend_on_the_terminal_width(width, columns):
    assert terminal.cells_per_row(width) == columns


def test_a_file_name_cannot_inject_terminal_codes_or_markup():
    name = 'a\x1b[2J<b>&"\n.log'
    cells = Cells(runs_of((10, WHOLE)), cell_len=16, count_max=64)
    lines = terminal.draw(cells, title=name, columns=64, color=False, unicode=True)
    assert lines[0] == 'a?[2J<b>&"?.log'
    assert 'a?[2J<b>&"' in "".join(parsed(document(cells, title=name)).itertext())


@pytest.mark.parametrize(
    ("length", "shown"), [(0, "0 bytes"), (1, "1 byte"), (1025, "1,025 bytes"), (1 << 15, "32 KiB"), (3 << 30, "3 GiB")]
)
def test_a_map_shows_sizes_with_units(length, shown):
    assert size(length) == shown


def test_map_draws_exactly_the_picture_in_the_docs():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "draw_map.py", "--check"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_documented_picture_does_not_load_other_files():
    drawn = (ROOT / "docs" / "cli" / "map.svg").read_text(encoding="utf-8")
    root = parsed(drawn)
    assert not list(root.iter(f"{SVG}script"))
    links = re.findall(r'(?:href|src|url)\s*[=(]\s*["\']?([^"\')]*)', drawn)
    assert links == ["#cordwood-hatch"] * drawn.count("url(#cordwood-hatch)")
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert sum("corruption: checksum_mismatch" in title for title in titles) >= 3
    assert sum(title.startswith("full, ") for title in titles) > 150


# The font size by the class of the text, in a picture as wide as its view box.
SIZES = {"h": 19, "n": 13, "m": 13, "q": 15, "bad": 15, "": 15}


def places_of_text(root):
    """Each text and where it starts and ends: letters are about 0.58 of the font size wide, in columns 0.602."""
    for element in root.iter(f"{SVG}text"):
        style = element.get("class", "")
        x, length = (
            float(element.get("x")),
            (0.602 if style in ("n", "m") else 0.58) * SIZES[style] * len(element.text or ""),
        )
        length = float(element.get("textLength", length))
        x -= length if element.get("text-anchor") == "end" else 0
        yield element.text, x, x + length, float(element.get("y"))


@pytest.fixture
def full():
    """A long log, with everything that a picture can contain."""
    fragments = [WHOLE, PART, DAMAGE, LOST, ZEROS, ("full", "stale", "info"), ("trailer", None, None)]
    parts = [(10_000_000_000, fragment) for fragment in fragments * 6] + [(1_000_000_000, TORN)]
    return Cells(runs_of(*parts), cell_len=1 << 25, count_max=128 * 64)


def test_a_picture_scales_to_the_page_and_is_legible_at_500_pixels(full):
    drawn = document(full)
    root = parsed(drawn)
    left, top, width, _ = map(float, root.get("viewBox").split())
    assert (left, top, root.get("width"), root.get("height")) == (0, 0, "100%", None)
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (\d+)px", drawn)]
    assert set(SIZES.values()) == set(sizes)
    assert min(sizes) * 500 / width >= 9


def test_text_in_a_picture_is_not_cut_off_and_does_not_overlap(full):
    root = parsed(document(full, title="a" * 300 + ".log"))
    _, _, width, height = map(float, root.get("viewBox").split())
    shown = list(places_of_text(root))
    assert {text for text, *_ in shown} >= {"zeros", "damage", "offset", "reason", "checksum_mismatch"}
    lines = {}
    for text, left, right, y in shown:
        assert (left >= 0, right <= width, y < height) == (True, True, True), text
        lines.setdefault(y, []).append((left, right, text))
    for line in map(sorted, lines.values()):
        for (_, end, text), (start, *_) in pairwise(line):
            assert end <= start, text


def test_legend_lines_up_with_the_list_below_it(full):
    root = parsed(document(full))
    at = {text: y for text, _, _, y in places_of_text(root)}
    lines = sorted(y for y in set(at.values()) if y >= at["damage"])
    assert at["damage"] < at["whole records"] < at["offset"]
    gaps = [below - above for above, below in pairwise(lines)]
    assert set(gaps) == {23, 39}
    assert gaps.count(39) == 1
    swatches = [rect for rect in root.iter(f"{SVG}rect") if rect.get("width") == "18" and rect.get("class")]
    assert [float(rect.get("y")) + 13 for rect in swatches] == lines[: len(swatches)]


def test_picture_styles_do_not_leak_into_the_page(full):
    """The picture may be part of a page."""
    [style] = re.findall(r"<style>(.*?)</style>", document(full), re.DOTALL)
    selectors = re.findall(r"([^{};]+)\{", style)
    assert len(selectors) > 20
    for selector in selectors:
        for part in selector.strip().split(","):
            assert part.strip().startswith((".cordwood-map", "@media")), part


def drawn_by(*arguments, path):
    status = main(["map", "--svg", str(path), *arguments])
    return status, parsed(path.read_text(encoding="utf-8"))


def test_several_logs_are_drawn_in_one_document(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs = {"1.log": [b"one"], "2.log": [b"two"] * 3, "directory/2.log": [b"three"] * 500}
    (tmp_path / "directory").mkdir()
    for name, records in logs.items():
        file = bytearray(reference.encode(records))
        if name == "2.log":
            file[17] ^= 0x20
        (tmp_path / name).write_bytes(file)
    status, root = drawn_by("1.log", "2.log", "directory", "none.log", path=tmp_path / "all.svg")
    assert status == 1
    assert "none.log: No such file" in capsys.readouterr().err
    groups = root.findall(f"{SVG}g")
    titles = [group.find(f"{SVG}title").text for group in groups]
    assert titles == ["1.log: no damage", "2.log: 10 bytes damaged", "directory/2.log: no damage"]
    assert root.find(f"{SVG}title").text == "3 logs"
    # Each picture is below the previous one, and looks as it does on its own.
    y = 0
    for name, group in zip(logs, groups, strict=True):
        assert group.get("transform") == f"translate(0 {y})"
        _, alone = drawn_by(name, path=tmp_path / f"{y}.svg")
        y += int(alone.get("viewBox").split()[3])
        # Except for the title and its tooltip.
        alone, ours = (list(found)[2:] for found in (alone.find(f"{SVG}g"), group))
        assert [ElementTree.tostring(item) for item in alone] == [ElementTree.tostring(item) for item in ours]
    assert root.get("viewBox") == f"0 0 720 {y}"


def test_a_document_of_several_logs_has_a_size_limit(tmp_path):
    """Fragments are drawn while their total is small; after that, cells."""
    for index in range(3):
        (tmp_path / f"{index}.log").write_bytes(reference.encode([b"x"] * 1500))
    _, root = drawn_by(str(tmp_path), path=tmp_path / "all.svg")
    counts = [
        sum(title.text.startswith("full, ") for title in group.iter(f"{SVG}title")) for group in root.iter(f"{SVG}g")
    ]
    assert counts == [1500, 1500, 0]


def test_writes_no_picture_if_there_are_no_logs(tmp_path, capsys):
    (tmp_path / "note.txt").write_bytes(b"a text is no log, as can be seen from all of its bytes")
    assert main(["map", "--svg", str(tmp_path / "all.svg"), str(tmp_path / "note.txt")]) == 1
    assert not (tmp_path / "all.svg").exists()
    assert "not a log" in capsys.readouterr().err
