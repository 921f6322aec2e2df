"""`cordwood.compat.swanlab`, in what no log shows by itself. Tests have the names of deviations."""

import os
from pathlib import Path

import pytest
from compat_logs import SWANLAB, WANDB, Log, lengths
from compat_peers import original

import cordwood
from cordwood.compat import swanlab

ORIGINALS = {
    "DataStoreReader": "swanlab.sdk.internal.core_python.store",
    "WBDataStoreReader": "swanlab.converter.wb.wbdatastore",
}
RECORDS = [b"one", b"two" * 30_000, b"three", b"", b"five" * 10]


@pytest.mark.parametrize("name", lengths(SWANLAB))
def test_swanlab_write(name, tmp_path):
    theirs, ours = original("swanlab.sdk.internal.core_python.store").DataStoreWriter(), swanlab.DataStoreWriter()
    theirs.open(tmp_path / "theirs")
    ours.open(tmp_path / "ours")
    for writer in (theirs, ours):
        for length in lengths(SWANLAB)[name]:
            assert writer.write(bytes(length)) is None
        writer.ensure_flushed()
        writer.close()
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    with pytest.raises(FileExistsError):
        ours.open(tmp_path / "ours")
    nothing = swanlab.NullDataStoreWriter()
    nothing.open(tmp_path / "nothing")
    nothing.write(b"one")
    nothing.ensure_flushed()
    nothing.close()
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("flavour", [SWANLAB, WANDB])
def test_swanlab_goes_on(flavour, tmp_path):
    log = Log.of(flavour, RECORDS)
    begin = log.spans[2][0][0]
    log.file[begin + 8] ^= 1
    path = tmp_path / "run"
    path.write_bytes(log.file)
    reader = swanlab.DataStoreReader() if flavour is SWANLAB else swanlab.WBDataStoreReader()
    reader.open(path)
    assert [reader.scan(), reader.scan()] == RECORDS[:2]
    with pytest.raises(swanlab.DataStoreCorruptionError) as caught:
        reader.scan()
    assert isinstance(caught.value, swanlab.DataStoreError)
    assert isinstance(caught.value, cordwood.CorruptionError)
    assert (caught.value.path, caught.value.offset, caught.value.reason) == (str(path), begin, "checksum_mismatch")
    assert list(iter(reader.scan, None)) == RECORDS[3:]
    reader.close()


@pytest.mark.parametrize("kind", [os.fsencode, Path, lambda path: os.open(path, os.O_RDONLY)])
@pytest.mark.parametrize("name", ["DataStoreReader", "WBDataStoreReader"])
def test_what_open_takes(name, kind, tmp_path, monkeypatch):
    """And the file is read whatever becomes of its name."""
    path = tmp_path / "run"
    path.write_bytes(Log.of(SWANLAB if name[0] == "D" else WANDB, RECORDS).file)
    monkeypatch.chdir(tmp_path)
    readers = [getattr(original(ORIGINALS[name]), name)(), getattr(swanlab, name)()]
    for reader in readers:
        reader.open(kind(path.name))
    if os.name != "nt":
        path.unlink()
    for reader in readers:
        assert list(iter(reader.scan, None)) == RECORDS
        reader.close()


def test_swanlab_torn_tail_is_read_once_it_is_whole(tmp_path):
    path = tmp_path / "run"
    for flavour, reader in ((SWANLAB, swanlab.DataStoreReader()), (WANDB, swanlab.WBDataStoreReader())):
        whole = bytes(Log.of(flavour, RECORDS[:2]).file)
        path.write_bytes(whole[:-3])
        reader.open(path)
        assert reader.scan() == RECORDS[0]
        for _ in range(2):
            if flavour is SWANLAB:
                assert reader.scan() is None
            else:
                with pytest.raises(swanlab.DataStoreTruncatedError) as caught:
                    reader.scan()
                assert (caught.value.path, caught.value.offset) == (str(path), 17)
        path.write_bytes(whole)
        assert (reader.scan(), reader.scan()) == (RECORDS[1], None)
        reader.close()


def test_swanlab_old_files(tmp_path):
    path = tmp_path / "run-1.wandb"
    with cordwood.Writer(path, dialect="wandb_old") as writer:
        writer.extend(RECORDS)
    with swanlab.WBDataStoreReader() as reader:
        reader.open(path)
        assert list(iter(reader.scan, None)) == RECORDS


@pytest.mark.parametrize("header", [b"", SWANLAB.header[:6], b":SWL\xd6\xe1\x01", b":W&B\xe1\xbe\x01", b"\0" * 7])
@pytest.mark.parametrize("name", ["DataStoreReader", "WBDataStoreReader"])
def test_swanlab_file_header(header, name, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(header)
    reader = getattr(original(ORIGINALS[name]), name)()
    with pytest.raises(Exception, match=r"header|version") as caught:
        reader.open(path)
    if name[0] == "D":
        reader.close()
    ours = getattr(swanlab, name)()
    with pytest.raises(swanlab.DataStoreError, match="header") as error:
        ours.open(path)
    expected = "DataStoreError" if type(caught.value) is AssertionError else type(caught.value).__name__
    assert type(error.value).__name__ == expected
    with pytest.raises((AssertionError, swanlab.DataStoreError), match="not open"):
        ours.scan()
    ours.close()


def test_swanlab_attributes():
    with pytest.raises(TypeError):
        swanlab.DataStoreError("without a place")
    assert issubclass(swanlab.DataStoreTruncatedError, cordwood.CordwoodError)


def name_of_error(call, *arguments):
    """Of what scripts catch."""
    try:
        call(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return type(error).__name__
    return None


def test_what_needs_an_open_file():
    for name, module in ORIGINALS.items():
        theirs, ours = getattr(original(module), name)(), getattr(swanlab, name)()
        assert name_of_error(ours.scan) == name_of_error(theirs.scan)
        if name[0] == "D":
            assert name_of_error(iter, ours) == name_of_error(iter, theirs) == "AssertionError"
    theirs, ours = original(ORIGINALS["DataStoreReader"]).DataStoreWriter(), swanlab.DataStoreWriter()
    for call in (lambda writer: writer.write(b""), lambda writer: writer.ensure_flushed()):
        assert name_of_error(call, ours) == name_of_error(call, theirs) == "AssertionError"


def test_swanlab_not_open():
    with pytest.raises(AssertionError):
        next(swanlab.DataStoreReader())


def test_swanlab_close(tmp_path):
    path = tmp_path / "run"
    path.write_bytes(Log.of(SWANLAB, RECORDS).file)
    reader, writer = swanlab.DataStoreReader(), swanlab.DataStoreWriter()
    reader.open(path)
    writer.open(tmp_path / "copy")
    for opened in (reader, writer, reader, writer):
        opened.close()
    for name in ("DataStoreReader", "DataStoreWriter"):
        with pytest.raises(AssertionError):
            getattr(original(ORIGINALS["DataStoreReader"]), name)().close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_another_file_is_opened(tmp_path):
    """Without `close` in between: a `DataStoreReader` goes on with that, the other one refuses."""
    for name, module in ORIGINALS.items():
        paths = [tmp_path / (name + each) for each in ("one", "two")]
        for path in paths:
            path.write_bytes(Log.of(SWANLAB if name[0] == "D" else WANDB, [path.name.encode()]).file)
        for reader in (getattr(original(module), name)(), getattr(swanlab, name)()):
            reader.open(paths[0])
            error = name_of_error(reader.open, paths[1])
            assert error == (None if name[0] == "D" else "DataStoreError")
            assert reader.scan() == paths[error is None].name.encode()
            reader.close()


@pytest.mark.parametrize("closes", [True, False])
def test_swanlab_reuse(closes, tmp_path):
    writer = swanlab.DataStoreWriter()
    for name in ("a", "b"):
        writer.open(tmp_path / name)
        for record in RECORDS:
            writer.write(record)
        if closes:
            writer.close()
    writer.close()
    for name in ("a", "b"):
        assert (tmp_path / name).read_bytes() == bytes(Log.of(SWANLAB, RECORDS).file)


def test_swanlab_descriptor(tmp_path):
    path = tmp_path / "run"
    for flavour, reader in ((SWANLAB, swanlab.DataStoreReader()), (WANDB, swanlab.WBDataStoreReader())):
        path.write_bytes(Log.of(flavour, RECORDS).file)
        descriptor = os.open(path, os.O_RDONLY)
        os.lseek(descriptor, 5, os.SEEK_SET)
        reader.open(descriptor)
        assert list(iter(reader.scan, None)) == RECORDS
        reader.close()
