"""The page "Try it here" of the built site, in Chromium: `make test-web`."""

import functools
import http.server
import importlib
import json
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="make test-web installs it")

import reference
from playwright import sync_api
from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
try_page = importlib.import_module("try_page")

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
SITE = ROOT / "target" / "docs"
VECTORS = ROOT / "tests" / "vectors"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the path"),
    pytest.mark.skipif(not try_page.MODULE.exists(), reason="make web has built no module"),
]

LOGS = [
    "appengine/export/output-0",
    "leveldb/plyvel/000003.log",
    "leveldb/plyvel/MANIFEST-000002",
    "leveldb/preallocated/000003.log",
    "pebble/recyclable-trailer/000002.log",
    "pebble/walsync/000007.log",
    "rocksdb/compressed/000008.log",
    "rocksdb/plain/000004.log",
    "rocksdb/recycled/000014.log",
    "swanlab/run/run.swanlab",
    "wandb/run/run-1.wandb",
]


class Server(http.server.ThreadingHTTPServer):
    """The site; it counts requests."""

    count = 0


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.count += 1
        super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with Server(("127.0.0.1", 0), functools.partial(Handler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    # In a container, Chromium's sandbox needs rights that root there does not have.
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server):
    with browser.new_context(viewport={"width": 400, "height": 800}) as context:
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.server_port}/try.html", wait_until="networkidle")
        answer(page)
        requested = server.count
        yield page
        assert server.count == requested, "the page requested something after it was loaded"
        assert page.complaints == []
        # No word of it is wider than a phone.
        assert page.evaluate("document.documentElement.scrollWidth") == 400


def answer(page):
    """Waits for the answer, and returns its parts."""
    page.wait_for_selector("#try-answer[aria-busy=false]", state="attached", timeout=120_000)
    return page.evaluate(
        """() => {
            const rows = [...document.querySelectorAll("#try-answer table")].map((table) => [
                table.previousElementSibling.textContent,
                [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
            ]);
            const text = (each) => each.textContent;
            const lines = [...document.querySelectorAll(".try-verdict p")].map(text);
            return {
                title: document.querySelector(".try-verdict strong").textContent, lines,
                regions: rows.find(([title]) => title === "What was skipped")?.[1] ?? [],
                records: rows.find(([title]) => title !== "What was skipped")?.[1] ?? [],
                legend: [...document.querySelectorAll(".try-legend li")].map(text),
                bars: document.querySelectorAll(".try-map rect").length,
            };
        }"""
    )


def drop(page, path):
    """Drops a file on the page, as a person does."""
    page.evaluate("document.getElementById('try-answer').setAttribute('aria-busy', 'true')")
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 400, "data": data})
    return answer(page)


def save(page):
    with page.expect_download() as download:
        page.click("#try-answer button")
    return Path(download.value.path()).read_bytes(), download.value.suggested_filename


def cordwood(*arguments):
    command = [sys.executable, "-m", "cordwood", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def spoiled(file):
    """A log with a flipped bit, zeros where bytes were, and no end."""
    file = bytearray(file)
    file[len(file) // 3] ^= 4
    file[len(file) // 2 :][:16] = bytes(16)
    return bytes(file[:-3])


def bomb(mib):
    """A packed log with one record of this many MiB: a frame of zstd, of which each 128 KiB take four bytes."""
    run_len, count = 128 << 10, 8 * mib
    runs = b"".join((run_len << 3 | 1 << 1 | (at == count - 1)).to_bytes(3, "little") + b"z" for at in range(count))
    length = bytes([0x80, 0x80, 0x80 | (mib & 1) << 6, mib >> 1])
    start = (len(length) << 3).to_bytes(3, "little") + length
    content_len = (len(length) + run_len * count).to_bytes(8, "little")
    container = b"\x01\x01\x28\xb5\x2f\xfd\xe0" + content_len + start + runs
    return reference.encode_record(container, 0, reference.CONTAINER_KINDS)


def number(text):
    return int(text.replace(",", ""))


def words_of(region):
    """What the page says about a region of `cordwood verify --json`."""
    words = region["message"].split(": ", 1)[1]
    flip = region["bit_flip"]
    return f"{words}. Bit {flip['bit']} of byte {flip['offset']:,} was flipped." if flip else words


def title_of(report):
    if report["other_log_number"] is not None:
        return "Another log"
    if not report["ok"]:
        return "Damaged"
    return "No damage, with a torn tail" if report["outcome"]["kind"] == "torn_tail" else "No damage"


def escaped(data):
    """A record of bytes that are no text, as a literal of Rust."""
    short = {9: r"\t", 10: r"\n", 13: r"\r", 34: r"\"", 39: r"\'", 92: r"\\"}
    return "".join(short.get(each) or (chr(each) if 32 <= each < 127 else f"\\x{each:02x}") for each in data[:120])


@pytest.mark.parametrize("change", [bytes, spoiled])
@pytest.mark.parametrize("name", LOGS)
def test_web_page_and_verify_report_the_same_result_for_a_log(page, tmp_path, name, change):
    path = tmp_path / Path(name).name
    path.write_bytes(change((VECTORS / name).read_bytes()))
    found = drop(page, path)

    report = json.loads(cordwood("verify", "--json", path))
    if "error" in report:
        assert (found["title"], found["records"]) == ("Not read", [])
        assert report["error"].endswith(found["lines"][1])
        return
    assert found["title"] == title_of(report)
    assert found["lines"][0].startswith(f"{path.name}: {report['file_len']:,} bytes, dialect {report['dialect']}")
    assert found["lines"][1].startswith(f"{report['record_count']:,} record")
    expected = [
        [region["offset"], region["end_offset"] - region["offset"], words_of(region)]
        for region in report["skipped"]
        if region["severity"] != "info" or region["reason"] in ("stale", "zero_fill", "unknown_version")
    ]
    assert [[number(start), number(length), words] for start, length, words in found["regions"]] == expected
    read = [json.loads(line) for line in cordwood("cat", "--json", "--on-corruption", "salvage", path).splitlines()]
    assert [number(offset) for offset, *_ in found["records"]] == [record["offset"] for record in read[:20]]
    total = sum(number(re.search(r"([\d,]+) bytes?$", each)[1]) for each in found["legend"])
    assert total == report["file_len"]

    if not read:
        return
    saved, saved_name = save(page)
    cordwood("salvage", path, tmp_path / "expected")
    assert saved == (tmp_path / "expected").read_bytes()
    assert saved_name == f"salvaged-{path.name}"


def test_page_shows_the_sample_log_when_it_loads(page):
    found = answer(page)
    assert found["title"] == "Damaged"
    assert any(row[2].endswith("was flipped.") for row in found["regions"])
    assert found["regions"][-1][2] == "an incomplete record at the end of the file"
    assert len(found["records"]) == 20
    assert found["bars"] > 6


def test_records_that_are_not_text_are_shown_as_bytes_literals(page, tmp_path):
    records = [b'{"a": "\xc3\xa4"}', b"a\tb\n\0", b"\xff\"'\\\n\0", "\u202eevil".encode(), b"", "ä".encode() * 150]
    (tmp_path / "a.log").write_bytes(reference.encode(records))
    found = drop(page, tmp_path / "a.log")["records"]
    shown = ['{"a": "ä"}', r"a\tb\n\0", escaped(records[2]), r"\u{202e}evil", "", "ä" * 60 + "…"]
    assert [contents for _, _, contents in found] == shown
    assert [number(length) for _, length, _ in found] == [len(record) for record in records]


def test_markup_in_names_and_records_is_shown_as_text(page, tmp_path):
    markup = "<img src=x onerror='window.ran = 1'><script>window.ran = 1<"
    path = tmp_path / f"{markup}.log"
    path.write_bytes(reference.encode([f"{markup}/script>".encode()] * 3)[:-1])
    found = drop(page, path)
    assert found["lines"][0].startswith(f"{markup}.log: ")
    assert found["records"][0][2] == f"{markup}/script>"
    assert page.query_selector("#try img") is None
    assert page.evaluate("window.ran") is None
    save(page)


def test_page_and_command_give_the_same_error_for_a_file_that_is_not_a_log(page, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200)
    found = drop(page, path)
    assert found["title"] == "Not read"
    assert json.loads(cordwood("verify", "--json", path))["error"].endswith(found["lines"][1])
    assert drop(page, VECTORS / LOGS[1])["title"] == "No damage"


def test_the_page_reports_a_log_file_that_has_the_name_of_another_log(page, tmp_path):
    path = tmp_path / "000015.log"
    path.write_bytes((VECTORS / "rocksdb/recycled/000014.log").read_bytes())
    found = drop(page, path)
    assert found["title"] == title_of(json.loads(cordwood("verify", "--json", path))) == "Another log"
    assert found["lines"][-1] == "The whole file belongs to log 14, its name says 15."
    assert found["records"] == []


def test_the_page_recognizes_an_empty_file_and_a_file_of_zeros(page, tmp_path):
    for size, title in [(0, "An empty file"), (100_000, "Only zeros")]:
        path = tmp_path / f"{size}.log"
        path.write_bytes(bytes(size))
        assert drop(page, path)["title"] == title


def test_the_page_rejects_a_decompression_bomb(page, tmp_path):
    path = tmp_path / "bomb.log"
    path.write_bytes(bomb(100) * 3)
    assert drop(page, path)["title"] == "Not read"
    path.write_bytes(bomb(240))
    found = drop(page, path)
    assert (found["title"], len(found["records"][0][2])) == ("No damage", 121)


def test_ten_million_empty_records_are_counted_but_not_listed(page, tmp_path):
    block = reference.encode([b""] * 4_681).ljust(32_768, b"\0")
    path = tmp_path / "empty.log"
    path.write_bytes(block * 2_137)
    found = drop(page, path)
    assert found["lines"][1].startswith("10,003,297 records, 0 bytes of data")
    assert len(found["records"]) == 20


def test_a_hundred_thousand_regions_are_counted_but_not_listed(page, tmp_path):
    # Of every second record, a bit is flipped.
    good = reference.encode([b"abc"])
    bad = good[:-1] + b"d"
    path = tmp_path / "regions.log"
    path.write_bytes((((good + bad) * 1_638).ljust(32_768, b"\0")) * 65)
    found = drop(page, path)
    assert found["title"] == "Damaged"
    assert len(found["regions"]) == 200
    assert page.inner_text("table + p.try-quiet").startswith("and 99,800 more regions")


def test_the_page_rejects_a_file_that_is_too_long(page, tmp_path):
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    assert drop(page, path)["title"] == "Too long for this page"


def test_choosing_another_file_stops_reading_the_current_file(page, tmp_path):
    path = tmp_path / "long.log"
    path.write_bytes(reference.encode([bytes(32_761)]) * 3_000)
    page.set_input_files("#try-file", path)
    page.set_input_files("#try-file", VECTORS / LOGS[1])
    assert answer(page)["lines"][0].startswith("000003.log")


def test_every_control_is_reachable_by_keyboard(page, tmp_path):
    page.focus("#try-file")
    with page.expect_file_chooser() as chooser:
        page.evaluate("0")  # By its answer, the browser reports choosers. Otherwise, the key may be faster.
        page.keyboard.press("Enter")
    page.evaluate("document.getElementById('try-answer').setAttribute('aria-busy', 'true')")
    chooser.value.set_files(VECTORS / LOGS[1])
    answer(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Save 24 readable records")
    with page.expect_download():
        page.keyboard.press("Enter")


def test_the_page_blocks_every_network_request(page, server):
    requested = server.count
    page.evaluate("fetch('/try.html').catch(() => 0)")
    page.evaluate("new Image().src = 'http://127.0.0.1:1/'")
    page.wait_for_function("true")
    assert server.count == requested
    assert len(page.complaints) >= 2
    assert all("Content Security Policy" in each for each in page.complaints)
    page.complaints.clear()


def test_page_and_module_stay_under_their_size_limits():
    assert try_page.MODULE.stat().st_size <= 550_000
    assert len(try_page.packed()) <= 240_000
    parts = [path for path in try_page.PARTS.rglob("*") if path.suffix in (".rs", ".js", ".html", ".css")]
    text = "\n".join(path.read_text(encoding="utf-8").split("mod tests {")[0] for path in parts)
    lines = [line.strip() for line in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()]
    assert sum(bool(line) and not line.startswith("//") for line in lines) <= 600
