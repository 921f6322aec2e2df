"""The verbs with URLs: they print the same for a URL as for the file."""

import subprocess
import sys

import pytest

import cordwood
from cordwood.cli import main

RECORDS = [b"one", b"two", b"three" * 20_000]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "example.log"
    with cordwood.open(path, "x") as writer:
        writer.extend(RECORDS)
    data = bytearray(path.read_bytes())
    data[18] ^= 1
    path.write_bytes(data)
    return path


def run(*arguments):
    command = [sys.executable, "-m", "cordwood", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["cat", "--json"],
        ["cat", "--on-corruption", "salvage", "--start", "5"],
        ["info"],
        ["map"],
        ["fragments"],
        ["fragments", "--json"],
        ["split", "--len", "32KiB"],
        ["stat", "--json"],
        ["verify"],
        ["convert", "--as", "raw", "--on-corruption", "salvage"],
    ],
    ids=" ".join,
)
def test_a_url_gives_the_same_output_as_its_file(arguments, path):
    url = f"file://{path}"
    expected = run(*arguments, str(path))
    assert expected[0] in {0, 3}

    def with_path(text):
        # How many more records can be read is counted only for a file.
        return text.replace(url, str(path)).replace("salvage may return more records", "salvage returns 1 more record")

    status, out, err = run(*arguments, url)
    assert (status, with_path(out), with_path(err)) == expected


@pytest.mark.parametrize(
    "url",
    [
        "reference://x",
        "zip://a::file://{directory}/not-an-archive",
        "tar://a::file://{directory}/not-an-archive",
        "async_wrapper://x",
        "generic://x",
    ],
)
@pytest.mark.parametrize("verb", ["cat", "verify --json", "split", "info", "convert", "map", "fragments"])
def test_every_file_system_exception_is_reported_as_a_message(verb, url, tmp_path, capfd):
    pytest.importorskip("fsspec")
    (tmp_path / "not-an-archive").write_bytes(b"text" * 1_000)
    url = url.format(directory=tmp_path)
    assert main([*verb.split(), url]) == 1
    err = capfd.readouterr().err
    assert err.splitlines()[0].startswith(f"cordwood: {url}: ")
    assert "Traceback" not in err


def test_reading_a_directory_url_as_a_single_log_fails(capfd):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe_file("/directory/a.log", b"")
    assert main(["verify", "memory://directory"]) == 1
    assert capfd.readouterr().err.splitlines()[0] == "cordwood: memory://directory: Is a directory"


def test_a_file_given_both_as_a_url_and_as_a_path_is_read_once(path, capfd):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe_file("/one.log", b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    names = [str(path), f"file://{path}", "memory://one.log", "memory://one.log"]
    assert main(["cat", "--on-corruption", "salvage", *names]) == 3
    out, err = capfd.readouterr()
    assert out.splitlines()[-1] == "foo"
    assert out.splitlines().count("one") == 1
    assert f"cordwood: file://{path}: the same file as {path}" in err.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="a name has no colon here")
@pytest.mark.parametrize("name", ["https://x.log", "memory://x.log", "simplecache::s3://x.log"])
def test_a_local_file_named_like_a_url_takes_precedence_over_the_url(name, tmp_path, monkeypatch, capfd):
    """The shell gives this name of a file, if somebody's archive has a directory named `https:`."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    assert main(["cat", name]) == 0
    assert main(["convert", "--as", "raw", "--to", "csv", name, "-"]) == 0
    assert main(["follow", "--timeout", "0", name]) == 0
    assert main(["verify", name]) == 0
    assert main(["salvage", name, "new.log"]) == 0
    assert capfd.readouterr().out.splitlines()[-3:] == [
        f"./{name}: ok, 1 record, 3 bytes",
        f"./{name}: ok, 1 record, 3 bytes",
        "  wrote new.log: 1 record",
    ]


def test_a_client_error_names_its_source_and_does_not_stop_other_sources(monkeypatch, capfd):
    """Clients have classes of errors of their own, without a file name."""
    memory = pytest.importorskip("fsspec").filesystem("memory")

    class ClientError(OSError):
        pass

    def fail(*_, **__):
        raise ClientError("the connection failed")

    urls = ["memory://one.log", "memory://two.log"]
    for url in urls:
        with memory.open(url, "wb") as file:
            file.write(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    monkeypatch.setattr(type(memory), "cat_file", fail)
    assert main(["verify", *urls]) == 1
    out, err = capfd.readouterr()
    assert err.splitlines() == [f"cordwood: {url}: the connection failed" for url in urls]
    assert "2 failed" in out


def test_a_source_file_given_as_a_url_is_not_overwritten(path, tmp_path):
    before = path.read_bytes()
    other = tmp_path / "other" / "second.log"
    other.parent.mkdir()
    other.write_bytes(before)
    for url in f"file://{path}", f"local://{path}", f"simplecache::file://{path}":
        status, out, err = run("salvage", "--overwrite", url, str(path))
        assert (status, out) == (2, "")
        assert "is the log that is read, and would be overwritten\n" in err
        status, out, err = run("salvage", "--overwrite", str(other), url, str(tmp_path))
        assert (status, out) == (2, "")
        assert "example.log is one of the logs that are read, and would be overwritten\n" in err
        status, out, err = run("convert", "--as", "raw", "--overwrite", "--to", "csv", url, str(path))
        assert (status, out) == (2, "")
    assert path.read_bytes() == before


def test_salvage_accepts_a_url(path, tmp_path):
    for name, source in ("a", path), ("b", f"file://{path}"):
        for options in [], ["--overwrite"]:
            assert run("salvage", *options, str(source), str(tmp_path / name))[0] == 3
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_missing_url_does_not_stop_the_other_sources(path, tmp_path):
    status, out, err = run("verify", f"file://{tmp_path}/missing.log", str(path))
    assert status == 1
    assert err == f"cordwood: file://{tmp_path}/missing.log: No such file or directory\n"
    assert f"{path}: DAMAGED" in out
    assert "2 logs" not in out


@pytest.mark.parametrize(
    "arguments",
    [["cat"], ["info"], ["map"], ["fragments"], ["split", "--len", "32KiB"], ["stat"], ["verify"]],
    ids=" ".join,
)
def test_an_unknown_protocol_affects_only_its_source(arguments, path):
    alone = run(*arguments, str(path))
    status, out, err = run(*arguments, "unheard-of://a", str(path))
    assert status == 1
    assert out.startswith(alone[1])
    assert err == f"cordwood: unheard-of://a: Protocol not known: unheard-of\n{alone[2]}"
    assert run(*arguments, "unheard-of://a")[0] == 1


def test_the_conversion_error_includes_a_url_with_an_unknown_protocol(path):
    for options in [], ["--as", "auto"], ["--to", "csv"]:
        status, out, err = run("convert", "--as", "raw", *options, str(path), "unheard-of://a", "-")
        assert (status, len(out) > 20) == (1, True), err
        assert "unheard-of://a: Protocol not known" in err
        assert run("convert", "--as", "raw", *options, "unheard-of://a")[0] == 1


def test_json_output_includes_a_url_with_an_unknown_protocol(path):
    _, out, _ = run("verify", "--json", "unheard-of://a", str(path))
    assert out.startswith('{"source":"unheard-of://a","error":"Protocol not known: unheard-of"}\n')
    assert '"failed_count":1' in out


@pytest.mark.parametrize(
    "arguments", ["write", "follow", "salvage -", "salvage --overwrite -", "convert --as raw --to csv -", "map - --svg"]
)
def test_writing_to_or_following_a_url_is_rejected(arguments):
    status, _, err = run(*arguments.split(), "memory://a.log")
    why = "only a file on this machine can be followed" if arguments == "follow" else "URLs can only be read"
    assert (status, f"is a URL, and {why}" in err) == (2, True), err


def test_remote_directories_and_patterns_can_select_many_logs(path, capsys):
    path.with_name("notes").write_bytes(b"a text, and no log")
    directory = f"file://{path.parent}/"
    assert main(["verify", directory]) == 3
    assert "total: 1 log, 1 damaged, 0 failed" in (of_directory := capsys.readouterr().out)
    assert "1 file is not a log: text" in of_directory
    assert main(["verify", directory + "*.log"]) == 3
    assert "total: 1 log, 1 damaged, 0 failed" in capsys.readouterr().out
    assert main(["verify", directory + "*.wandb"]) == 1
