"""`cordwood.evidence`: the value, the page, and hostile logs."""

import hashlib
import json
import os
import re
import shlex
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
import reference

import cordwood
from cordwood import _evidence
from cordwood._evidence import reading
from cordwood._inputs.input import Input
from cordwood.cli import evidence as verb
from cordwood.cli import main
from cordwood.payload import Operation, WriteBatch


class Page(HTMLParser):
    """The tags, the attributes and the text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.names, self.values, self.text = set(), set(), [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.values += (value for _, value in attrs)
        self.text += " "

    def handle_data(self, data):
        self.text += data


def log_of(path, *batches):
    """A log of these batches, each a list of operations, whose sequence numbers start at 1. Returns their offsets."""
    sequence, records = 1, []
    for operations in batches:
        records.append(bytes(WriteBatch.build(sequence, [Operation(kind, **fields) for kind, fields in operations])))
        sequence += len(operations)
    with cordwood.open(path, "w") as writer:
        return [writer.append(record) for record in records]


def put(key, **fields):
    return "put", {"key": key, "value": b"value", **fields}


def delete(key, **fields):
    return "delete", {"key": key, **fields}


def test_sequence_numbers_of_deleted_and_overwritten_keys_are_reported(tmp_path):
    path = tmp_path / "000003.log"
    first, second, third = log_of(
        path,
        [put(b"a"), put(b"b"), put(b"c")],
        [put(b"a"), delete(b"b"), delete(b"unknown")],
        [delete(b"a"), put(b"b"), ("delete_range", {"key": b"c", "end_key": b"d"})],
    )
    found = cordwood.evidence(path)
    keys = found.logs[0].keys
    assert "<bdi>unknown</bdi></code></td><td>6 at " in found.html
    assert [found.html.count(text) for text in ("not in this log", "not looked for")] == [1, 1]
    assert [change[:1] + change[4:8] for change in keys.deleted] == [
        (b"b", 5, second, 2, first),
        (b"unknown", 6, second, None, None),
        (b"a", 7, third, 4, second),
        (b"c", 9, third, None, None),
    ]
    assert keys.deleted[-1].end_key == b"d"
    assert [change[:1] + change[4:8] for change in keys.overwritten] == [(b"a", 4, second, 1, first)]
    assert (keys.deleted_count, keys.overwritten_count, keys.faulty_batch_count) == (4, 1, 0)


def test_the_same_key_in_two_column_families_is_tracked_separately(tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, [put(b"a"), put(b"a", column_family=1)], [delete(b"a", column_family=1)])
    keys = cordwood.evidence(path).logs[0].keys
    assert keys.overwritten_count == 0
    assert [(change.column_family, change.old_sequence) for change in keys.deleted] == [(1, 2)]


def test_values_are_found_after_damage_but_not_inside_it(tmp_path, capsys):
    path = tmp_path / "000003.log"
    first, second, _ = log_of(path, [put(b"lost")], [put(b"kept")], [delete(b"lost"), delete(b"kept")])
    data = bytearray(path.read_bytes())
    data[first + 7] ^= 1
    path.write_bytes(data)
    html = cordwood.evidence(path).html
    lost, kept = re.findall(r"<bdi>(?:lost|kept)</bdi>.*?</tr>", html)
    assert "not found: it may be lost" in lost
    assert f"<td>{second}</td>" in kept
    assert "not in this log" not in html
    [command] = re.findall("<code>(cordwood cat .*?)</code>", html)
    capsys.readouterr()
    main([str(second) if word == "OFFSET" else word for word in shlex.split(command)[1:]])
    assert json.loads(capsys.readouterr().out)["offset"] == second


def batch_of(sequence, *operations):
    return bytes(WriteBatch.build(sequence, [Operation(kind, **fields) for kind, fields in operations]))


DAMAGED = "the second record is damaged"
ZEROED = "zeros, where batches share their numbers"
BETWEEN = {
    "an adjacent put": (put(b"other"), 2, True),
    "a gap in the sequence numbers": (put(b"other"), 7, False),
    "a merge": (("merge", {"key": b"k", "value": b"+1"}), 2, False),
    "a deleted range": (("delete_range", {"key": b"a", "end_key": b"z"}), 2, False),
    "log data": (("log_data", {"value": b"note"}), 2, True),
    DAMAGED: (put(b"k"), 2, False),
    ZEROED: (put(b"k", value=b"v" * 2 * 32768), 2, False),
}


@pytest.mark.parametrize("change", ["put", "delete"])
@pytest.mark.parametrize("between", BETWEEN)
def test_an_old_value_is_uncertain_if_the_key_may_have_changed_since(between, change, tmp_path):
    path = tmp_path / "000003.log"
    operation, sequence, is_certain = BETWEEN[between]
    last = put(b"k") if change == "put" else delete(b"k")
    next_sequence = sequence + (between not in ("log data", ZEROED))
    batches = [batch_of(1, put(b"k")), batch_of(sequence, operation), batch_of(next_sequence, last, delete(b"unknown"))]
    data = bytearray(reference.encode(batches))
    second = len(reference.encode(batches[:1]))
    if between == DAMAGED:
        data[second + 12] ^= 1
    elif between == ZEROED:
        data[second : 2 * 32768] = bytes(2 * 32768 - second)
    path.write_bytes(data)
    found = cordwood.evidence(path)
    keys = found.logs[0].keys
    changes = keys.deleted[-2:-1] if change == "delete" else keys.overwritten[-1:]
    if between in (DAMAGED, ZEROED):
        assert found.logs[0].report.record_count == 2
    assert [(each.key, each.old_sequence, each.is_certain) for each in changes] == [(b"k", 1, is_certain)]
    assert found.html.count("not certainly the last value before") == (not is_certain)
    # Of a key without a value, the page says that it is not in this log only if that is certain.
    assert keys.deleted[-1][6:] == (None, None, is_certain)
    assert ("not in this log" in found.html, "not found: it may be lost" in found.html) == (is_certain, not is_certain)


def test_a_record_other_than_a_write_batch_makes_earlier_values_uncertain(tmp_path):
    path = tmp_path / "000003.log"
    path.write_bytes(reference.encode([batch_of(1, put(b"k")), b"no batch", batch_of(2, delete(b"k"))]))
    assert [change.is_certain for change in cordwood.evidence(path).logs[0].keys.deleted] == [False]


def test_an_old_value_is_uncertain_if_both_records_are_salvaged(tmp_path):
    path = tmp_path / "000003.log"
    _, second, third = log_of(path, [put(b"a")], [put(b"k")], [delete(b"k")])
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    [change] = cordwood.evidence(path).logs[0].keys.deleted
    assert (change.old_offset, change.offset, change.is_certain) == (second, third, False)


def test_an_old_value_is_known_for_certain_if_damage_precedes_both_records(tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, [put(b"x", value=b"v" * 32768)], [put(b"k")], [delete(b"k")])
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    [change] = cordwood.evidence(path).logs[0].keys.deleted
    assert (change.old_sequence, change.is_certain) == (2, True)


def test_the_evidence_page_does_not_describe_zeros_as_harmless(tmp_path):
    path = tmp_path / "000003.log"
    _, second = log_of(path, [put(b"a")], [put(b"b")])
    data = path.read_bytes()
    path.write_bytes(data[:second] + bytes(len(data) - second))
    found = cordwood.evidence(path)
    assert "Evidence: 1 log, 0 damaged, 1 incomplete</h1>" in found.html
    text = Page(found.html).text
    assert text.count("zeros: space that was never written, padding, or data that was lost") == 2
    assert "no damage: " not in text


def test_no_keys_are_reported_for_a_log_without_write_batches(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(reference.encode([b"text", b"more text"]))
    found = cordwood.evidence(path)
    assert found.logs[0].keys is None
    assert "Deleted keys" not in found.html


def test_records_that_are_not_write_batches_are_counted_in_the_evidence(tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, [put(b"a")])
    with cordwood.open(path, "a") as writer:
        writer.append(b"no batch")
    found = cordwood.evidence(path)
    assert found.logs[0].keys.faulty_batch_count == 1
    assert "1 record could not be decoded as a write batch" in found.html


def test_evidence_includes_the_operations_before_a_fault_in_a_batch(tmp_path):
    path = tmp_path / "000003.log"
    batch = bytes(WriteBatch.build(1, [Operation("put", key=b"a", value=b"1"), Operation("delete", key=b"a")]))
    with cordwood.open(path, "w") as writer:
        writer.append(batch)
        writer.append(batch + b"\x7f")
    keys = cordwood.evidence(path).logs[0].keys
    assert (keys.deleted_count, keys.faulty_batch_count) == (2, 1)


def test_the_evidence_includes_the_size_time_and_sha256_of_each_file(tmp_path):
    path = tmp_path / "log"
    data = reference.encode([b"one", b"two"])
    path.write_bytes(data)
    os.utime(path, ns=(0, 1_000_000_123_456_789))
    [log] = cordwood.evidence(path).logs
    assert (log.report.file_len, log.sha256) == (20, hashlib.sha256(data).hexdigest())
    assert (log.modified, log.is_changed) == ("1970-01-12T13:46:40.123456Z", False)


def test_a_timestamp_outside_the_calendar_becomes_none(tmp_path):
    assert reading.utc(1 << 70) is None
    assert reading.utc(-1) == "1969-12-31T23:59:59.999999Z"


def test_the_evidence_page_says_when_and_where_the_logs_were_read(tmp_path, monkeypatch):
    """Two pages that the same call makes in the same directory differ only in the time, if the logs are the same."""
    log_of(tmp_path / "000003.log", [put(b"k")])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading.time, "time_ns", lambda: 1_000_000_000 * 86_400)
    found = cordwood.evidence("000003.log")
    assert (found.examined, found.directory) == ("1970-01-02T00:00:00.000000Z", str(tmp_path))
    assert f"examined1970-01-02T00:00:00.000000Zdirectory{tmp_path}" in Page(found.html).text.replace(" ", "")
    assert f'"examined":"1970-01-02T00:00:00.000000Z","directory":"{tmp_path}"' in found.json
    assert cordwood.evidence("000003.log") == found

    (tmp_path / "removed").mkdir()
    monkeypatch.chdir(tmp_path / "removed")
    (tmp_path / "removed").rmdir()
    assert cordwood.evidence(tmp_path / "000003.log").directory is None


def test_evidence_flags_a_log_that_changes_while_being_read(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(reference.encode([b"one"]))

    def append(_):
        if path.stat().st_size == 10:
            with path.open("ab") as file:
                file.write(reference.encode([b"two"]))

    log = reading.reads()(Input(str(path), "log"), 1, append)
    assert log.is_changed
    assert "The file changed while it was read" in cordwood.Evidence((log,)).html


def test_the_evidence_lists_damaged_logs_before_incomplete_logs(tmp_path):
    data = reference.encode([b"one", b"two"])
    files = {"1": data, "2": data[:-1], "3": data[:17] + b"X" + data[18:], "4": b"a text of several lines\n" * 9}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = cordwood.evidence([tmp_path / name for name in "1234"])
    assert [Path(log.path).name for log in found.logs] == ["3", "2", "1"]
    assert [path for path, _ in found.failed] == [str(tmp_path / "4")]
    assert "1 damaged" in found.html


def test_the_evidence_page_describes_each_region_in_full(tmp_path):
    path = tmp_path / "log"
    data = bytearray(reference.encode([b"one", b"two", b"three"]))
    data[17] ^= 0x20
    path.write_bytes(data)
    found = cordwood.evidence(path)
    [(region, first)] = found.logs[0].regions
    assert (region.offset, region.end_offset, region.reason, first) == (10, 20, "checksum_mismatch", data[10:20])
    text = Page(found.html).text
    for part in "10 to 20, 10 bytes", "bit 5 of byte 17, in the payload", data[10:20].hex(" "):
        assert part in text


def test_json_evidence_has_the_same_facts_as_the_page(tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, [put(b"\xff")], [delete(b"\xff")])
    found = json.loads(cordwood.evidence(path, command="cordwood evidence").json)
    assert (found["command"], found["version"]) == ("cordwood evidence", cordwood.__version__)
    [log] = found["logs"]
    assert (log["source"], log["ok"], log["record_count"]) == (str(path), True, 2)
    assert log["keys"]["deleted"][0]["key"] == {"base64": "/w=="}


HOSTILE = [
    b"</script><script>alert(1)</script>",
    b"</style></svg><img src=x onerror=alert(1)>",
    b"\" onmouseover='alert(1)' x=\"",
    "\u202eright to left\u2066".encode(),
    b"line\nfeed\x00\x1b[31m\x7f",
    b"&lt;&amp;&#60;",
    b"\xff\xfe",
    b"k" * 100_000,
    "\u05d0\u05d1".encode(),
]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (b"user:1", "user:1"),
        ("\u00e9".encode(), "\u00e9"),
        (b"\x00\x02ab\xff", r"\x00\x02ab\xff"),
        (rb"a\xff", r"a\\xff"),
        (b"", "(empty)"),
    ],
)
def test_a_binary_key_is_shown_as_bytes_in_the_evidence(key, shown, tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, [delete(key)])
    html = cordwood.evidence(path).html
    assert f"<td>{shown}</td>" in html.replace("<code><bdi>", "").replace("</bdi></code>", "")


def test_the_page_escapes_keys_and_names(tmp_path):
    directory = tmp_path / "<img src=x>\u202e\n"
    directory.mkdir()
    path = directory / "<script>alert('1')&\u2066.log"
    log_of(path, *([put(key)] for key in HOSTILE), *([put(key), delete(key)] for key in HOSTILE))
    (directory / "damaged<b>.log").write_bytes(path.read_bytes()[:-3])
    found = cordwood.evidence(directory, command="cordwood evidence '<script>'")
    page = Page(found.html)
    drawn = {"svg", "g", "rect", "text", "path", "pattern", "defs", "title", "style"}
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    words = {"h1", "h2", "h3", "dl", "dt", "dd", "a", "p", "code", "bdi", "span", "section"}
    assert page.tags <= {"html", "head", "meta", "body"} | drawn | tables | words
    assert not {name for name in page.names if name.startswith("on")} | page.names & {"src", "srcdoc", "action"}
    # The only address is the name of SVG; links lead to places in the page.
    assert {value for value in page.values if "//" in (value or "")} == {"http://www.w3.org/2000/svg"}
    shown = {character for character in page.text if unicodedata.category(character) in ("Cc", "Cf", "Cs")}
    assert shown <= {"\n"}
    assert "<script>alert(1)</script>" in page.text
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.values
    assert "k" * 256 in page.text
    assert "k" * 257 not in page.text
    assert "99,744 more bytes" in page.text


def test_a_file_name_that_is_not_utf8_is_escaped(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.log"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(reference.encode([b"one"]))
    found = cordwood.evidence(os.fsdecode(path))
    assert r"\udcff.log" in found.html.encode().decode()
    assert json.loads(found.json.encode())["logs"][0]["source"] == os.fsdecode(path)


def test_evidence_can_be_gathered_from_a_log_at_a_url(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    log_of(tmp_path / "log", [put(b"a")], [delete(b"a")])
    data = bytearray((tmp_path / "log").read_bytes())
    data[-1:] = b""
    fsspec.filesystem("memory").pipe("/evidence.log", bytes(data))
    [log] = cordwood.evidence("memory://evidence.log").logs
    assert (log.report.record_count, log.sha256, log.modified) == (1, None, None)
    [(region, first)] = log.regions
    assert (region.reason, first) == ("torn_tail", None)
    assert "not computed" in cordwood.Evidence((log,)).html


def test_the_evidence_page_says_which_lists_were_cut_short(tmp_path):
    path = tmp_path / "000003.log"
    log_of(path, *([put(b"%d" % number), put(b"%d" % number), delete(b"%d" % number)] for number in range(1100)))
    data = bytearray(path.read_bytes() + bytes(-path.stat().st_size % 32768))
    # Records of 3 bytes take 10.
    data += b"".join(reference.encode([b"one", b"two"])[:17] + b"\xff\xff\xff" for _ in range(1200))
    path.write_bytes(data)
    found = cordwood.evidence(path)
    [log] = found.logs
    assert (len(log.keys.deleted), log.keys.deleted_count) == (1000, 1100)
    assert (len(log.keys.overwritten), log.keys.overwritten_count) == (1000, 1100)
    assert len(log.regions) == 1000
    text = Page(found.html).text
    assert text.count("100 more are not listed.") == 2
    assert f"{len(log.report.skipped) - 1000:,} more are not listed." in text
    assert "at most 1,000 regions" in text


def test_the_number_of_tracked_keys_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(reading.limits, "FOLLOWED_MAX", 2)
    path = tmp_path / "000003.log"
    log_of(path, [put(b"a"), put(b"b"), put(b"c")], [delete(b"a"), delete(b"c")])
    found = cordwood.evidence(path)
    assert [(change.old_sequence, change.is_certain) for change in found.logs[0].keys.deleted] == [
        (1, True),
        (None, False),
    ]
    assert not found.logs[0].keys.are_all_followed
    assert "There are too many keys" in found.html


def test_only_the_first_logs_are_described_in_detail(tmp_path, monkeypatch):
    monkeypatch.setattr(reading.limits, "DETAILED_MAX", 1)
    for name in "ab":
        (tmp_path / f"{name}.log").write_bytes(reference.encode([b"one"]))
    assert [bool(log.svg) for log in cordwood.evidence(tmp_path).logs] == [True, False]


def test_evidence_reports_whether_databases_are_intact(tmp_path, capsys):
    with cordwood.open(tmp_path / "MANIFEST-000002", "w") as writer:
        # The comparator, the log number, the next file number and the last sequence number.
        writer.append(b"\x01\x1aleveldb.BytewiseComparator\x02\x03\x03\x05\x04\x00")
    log_of(tmp_path / "000003.log", [put(b"a")])
    (tmp_path / "CURRENT").write_text("MANIFEST-000002\n")
    found = cordwood.evidence(tmp_path)
    assert (found.ok, [database.ok for database in found.databases]) == (True, [True])
    (tmp_path / "CURRENT").write_text("")
    found = cordwood.evidence(tmp_path)
    assert (found.ok, [database.ok for database in found.databases]) == (False, [False])
    assert "2 logs, 0 damaged; 1 database, 1 damaged</h1>" in found.html
    assert main(["evidence", "--overwrite", str(tmp_path), str(tmp_path / "page.html")]) == 3
    assert capsys.readouterr().out.endswith(": 2 logs, 0 damaged; 1 database, 1 damaged\n")
    assert "is empty" in Page(found.html).text
    assert json.loads(found.json)["databases"][0]["ok"] is False


def test_the_evidence_page_counts_the_files_that_are_not_logs(tmp_path):
    (tmp_path / "000003.log").write_bytes(reference.encode([b"one"]))
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    assert "Files that are not logs: 2" in cordwood.evidence(tmp_path).html


@pytest.mark.parametrize("name", ["missing", "text"])
def test_the_evidence_page_lists_failures_even_if_there_are_no_logs(name, tmp_path):
    (tmp_path / "text").write_bytes(b"a text of several lines\n" * 9)
    found = cordwood.evidence(tmp_path / name)
    assert (found.logs, len(found.failed)) == ((), 1)
    assert "Evidence: 0 logs" in found.html


def test_evidence_includes_the_report_of_a_log_that_is_removed_while_it_is_read(tmp_path, monkeypatch, capsys):
    for name in "ab":
        (tmp_path / f"{name}.log").write_bytes(reference.encode([b"one"]))
    reads = reading.reads

    def reads_and_removes(**log):
        def read(file, *rest):
            found = reads(**log)(file, *rest)
            if file.relative == "a.log":
                Path(file.name).unlink()
            return found

        return read

    monkeypatch.setattr(_evidence, "reads", reads_and_removes)
    found = cordwood.evidence(tmp_path)
    gone = str(tmp_path / "a.log")
    assert [(log.report.record_count, bool(log.svg)) for log in found.logs] == [(1, False), (1, True)]
    # A live database removes logs.
    assert found.failed == ()
    assert found.ok
    Path(gone).write_bytes(reference.encode([b"one"]))
    found = cordwood.evidence(gone)
    assert [log.report.record_count for log in found.logs] == [1]
    assert found.failed == ((gone, "No such file or directory"),)
    assert not found.ok
    Path(gone).write_bytes(reference.encode([b"one"]))
    monkeypatch.setattr(verb, "reads", reads_and_removes)
    assert main(["evidence", str(tmp_path), str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().err == ""
    Path(gone).write_bytes(reference.encode([b"one"]))
    assert main(["evidence", gone, str(tmp_path / "named.html")]) == 1
    assert capsys.readouterr().err == f"cordwood: {gone}: No such file or directory\n"
    assert "Files that could not be read" in (tmp_path / "named.html").read_text()


def test_keys_are_still_found_after_a_faulty_first_batch(tmp_path):
    path = tmp_path / "000003.log"
    batch = bytes(WriteBatch.build(1, [Operation("put", key=b"a", value=b"1"), Operation("delete", key=b"a")]))
    path.write_bytes(reference.encode([batch[:-1], batch, batch]))
    keys = cordwood.evidence(path).logs[0].keys
    assert (keys.deleted_count, keys.faulty_batch_count) == (3 - 1, 1)
    path.write_bytes(reference.encode([b"short", batch]))
    keys = cordwood.evidence(path).logs[0].keys
    assert (keys.deleted_count, keys.faulty_batch_count) == (1, 1)


def test_no_keys_are_reported_for_a_manifest(tmp_path):
    path = tmp_path / "MANIFEST-000002"
    path.write_bytes(reference.encode([b"\x01\x1aleveldb.BytewiseComparator\x02\x03\x03\x05\x04\x00"]))
    assert cordwood.evidence(path).logs[0].keys is None
