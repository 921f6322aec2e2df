"""`cordwood.map`: the picture of a log, as a notebook shows it."""

import io
import mmap
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import reference

import cordwood

# Ten bytes are damaged, and the file's last four are an incomplete record.
FILE = bytearray(reference.encode([b"one", b"two", b"three", b"four"])[:-7])
FILE[17] ^= 0x20
TEXT = b"a text is no log, as can be seen from all of its bytes"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(FILE)
    return path


def test_a_map_contains_the_damage_counts_and_an_svg_image(path):
    made = cordwood.map(path)
    assert made[:5] == (str(path), "leveldb", 36, 10, 4)
    root = ElementTree.fromstring(made.svg)  # noqa: S314 - our own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert made._repr_html_() == made.svg
    assert "10 bytes damaged, 4 bytes of a torn tail" in made.svg


def test_the_repr_of_a_map_abbreviates_the_svg(path):
    made = cordwood.map(path)
    assert repr(made) == (
        f"LogMap(path={str(path)!r}, dialect='leveldb', file_len=36, damaged_len=10, torn_len=4, "
        f"svg=<{len(made.svg):,} characters>)"
    )


def test_a_map_matches_the_svg_that_the_command_writes(path):
    new = path.with_name("new.svg")
    subprocess.run([sys.executable, "-m", "cordwood", "map", "--svg", new, path], check=False, capture_output=True)
    assert cordwood.map(path).svg == new.read_text(encoding="utf-8")


def test_a_map_of_a_buffer_has_no_path(path):
    made = cordwood.map(bytes(FILE))
    assert made.path is None
    assert made.svg == cordwood.map(path).svg.replace("some.log", "log")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert cordwood.map(mapped) == made


def test_a_map_shows_a_log_in_an_object_store():
    class Stored:
        name = "store/some.log"

        def size(self):
            return len(FILE)

        def read_range(self, start, end):
            return FILE[start:end]

    assert cordwood.map(Stored()).svg.count("some.log") == 3


def test_map_accepts_reader_options():
    with pytest.raises(cordwood.DialectError):
        cordwood.map(TEXT)
    assert cordwood.map(TEXT, dialect="leveldb").file_len == len(TEXT)
    with pytest.raises(ValueError, match="have no log number"):
        cordwood.map(bytes(FILE), dialect="leveldb", log_number=1)
    with pytest.raises(FileNotFoundError):
        cordwood.map("none.log")


def test_map_rejects_an_open_file():
    with pytest.raises(TypeError, match="pass its path, or its content"):
        cordwood.map(io.BytesIO(FILE))
