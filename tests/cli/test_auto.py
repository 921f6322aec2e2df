"""`--as auto` and `--as json`: cases that no console session shows."""

import json

import pytest

import cordwood
from cordwood.cli import main

# Either a batch with only a no-op and sequence number 0x0b01, or a comparator whose name has 11 bytes.
EITHER = bytes.fromhex("010b000000000000 00000000 0d")


@pytest.mark.parametrize(
    ("name", "form", "line"),
    [
        ("000001.log", "write-batch", '{"offset":0,"sequence":null,"kind":"noop"}'),
        ("MANIFEST-000001", "version-edit", '{"offset":0,"fields":[{"kind":"comparator","tag":1,"value":'),
        ("other", None, '{"offset":0,"end_offset":20,"data":'),
    ],
)
def test_the_file_name_determines_the_payload_type_if_the_first_record_is_ambiguous(name, form, line, tmp_path, capfd):
    path = tmp_path / name
    with cordwood.open(path, "x") as writer:
        writer.append(EITHER)
    assert main(["convert", "--as", "auto", str(path)]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(line)
    how = f"with --as {form}" if form else "as bytes: its first record does not have exactly one known form"
    assert err == f"cordwood: {path}: read {how}\n"


def test_an_empty_log_gets_the_payload_type_of_the_other_logs(tmp_path, capfd):
    """Here one log's only record is torn, and another's is damaged."""
    for name in "a.log", "b.log", "c.log", "d.log":
        with cordwood.open(tmp_path / name, "x") as writer:
            writer.append(bytes.fromhex("0700000000000000 01000000 0003616263"))
    with (tmp_path / "a.log").open("r+b") as file:
        file.truncate(20)
    data = bytearray((tmp_path / "d.log").read_bytes())
    data[-1] ^= 1
    (tmp_path / "d.log").write_bytes(data)
    assert main(["convert", "--as", "auto", str(tmp_path / "a.log")]) == 0
    assert f"{tmp_path / 'a.log'}: read as bytes: there are no records\n" in capfd.readouterr().err
    assert main(["convert", "--as", "auto", str(tmp_path / "*.log"), str(tmp_path / "t.ndjson")]) == 3
    assert f"{tmp_path / 'b.log'}: read with --as write-batch\n" in capfd.readouterr().err
    rows = [json.loads(line) for line in (tmp_path / "t.ndjson").read_text().splitlines()]
    assert [row["key"] for row in rows] == [{"base64": "YWJj"}] * 2


def test_json_nested_more_than_100_levels_deep_is_omitted_from_the_table(tmp_path, capfd):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"[" * depth + b"]" * depth for depth in (100, 101, 100_000)])
    assert main(["convert", "--as", "json", str(path)]) == 3
    out, err = capfd.readouterr()
    assert out == '{"__value__":' + "[" * 100 + "]" * 100 + "}\n"
    assert err.count("JSON of more than 100 levels") == 2
