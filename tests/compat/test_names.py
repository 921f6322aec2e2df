"""The originals' names and their methods' signatures: all are in the drop-ins, or listed as missing."""

import enum
import importlib
import inspect
from dataclasses import is_dataclass

import pytest
import reference
from compat_peers import original
from write_batch import PUT, write_batch

from cordwood.compat import appengine, ccl, dfindexeddb, leveldb_export, wandb

MODULES = [
    ("wandb.sdk.internal.datastore", wandb, {"logger"}),
    ("leveldb_export.records", leveldb_export, set()),
    ("dfindexeddb.leveldb.log", dfindexeddb, {"errors", "utils"}),
]

# The methods that are listed as missing.
MISSING_METHODS = {"FromDecoder", "FromStream", "FromBytes"}

# The names of an original that our Python cannot run, written by hand.
APP_ENGINE_READER = {
    "__init__": "(self, reader)",
    "read": "(self)",
    "__iter__": "(self)",
    "tell": "(self)",
    "seek": None,  # It has the parameters of the file's `seek`.
}
BY_HAND = {
    appengine: {
        "BLOCK_SIZE": 32 * 1024,
        "HEADER_FORMAT": "<IHB",
        "HEADER_LENGTH": 7,
        "RECORD_TYPE_NONE": 0,
        "RECORD_TYPE_FULL": 1,
        "RECORD_TYPE_FIRST": 2,
        "RECORD_TYPE_MIDDLE": 3,
        "RECORD_TYPE_LAST": 4,
        "Error": {},
        "InvalidRecordError": {},
        "FileWriter": {"write": "(self, data)"},
        "FileReader": {"read": "(self, size)", "tell": "(self)"},
        "RecordsWriter": {
            "__init__": "(self, writer, _pad_last_block=True)",
            "write": "(self, data)",
            "__enter__": "(self)",
            "__exit__": "(self, atype, value, traceback)",
            "close": "(self)",
        },
        "RecordsReader": APP_ENGINE_READER,
    },
    ccl: {
        "FileType": {"Ldb": 1, "Log": 2},
        "KeyState": {"Deleted": 0, "Live": 1, "Unknown": 2},
        "LogEntryType": {"Zero": 0, "Full": 1, "First": 2, "Middle": 3, "Last": 4},
        "Record": {
            "__init__": "(self, key, value, seq, state, file_type, origin_file, offset, was_compressed)",
            "ldb_record": "(key, value, origin_file, offset, was_compressed)",
            "log_record": "(key, value, seq, state, origin_file, offset)",
            "user_key": None,
        },
        "LogFile": {
            "LOG_ENTRY_HEADER_SIZE": 7,
            "LOG_BLOCK_SIZE": 32768,
            "__init__": "(self, file)",
            "__iter__": "(self)",
            "close": "(self)",
        },
    },
}
CCL_MISSING = {
    "Block",
    "BlockHandle",
    "LdbFile",
    "ManifestFile",
    "RawBlockEntry",
    "RawLevelDb",
    "VersionEdit",
    "VersionEditTag",
    "read_le_varint",
    "read_length_prefixed_blob",
}


def public_names(module):
    """The names that a module defines, or imports from its own package."""
    package = module.__name__.partition(".")[0]
    for name, value in vars(module).items():
        if name.startswith("_") or name in ("TYPE_CHECKING", "annotations"):
            continue
        if inspect.ismodule(value):
            home = value.__name__
        elif inspect.isroutine(value) or isinstance(value, type) or "typing" in type(value).__module__:
            home = value.__module__
        else:
            home = package
        if home.partition(".")[0] == package:
            yield name


def call_of(function):
    """A function's signature, without annotations."""
    signature = inspect.signature(function)
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def methods(cls):
    """The public methods, and those that `for`, `with` and calling the class use."""
    for name in dir(cls):
        value = getattr(cls, name)
        if inspect.isroutine(value) and not hasattr(object, name) and (name[0] != "_" or name in SPECIAL):
            yield name, value
    if inspect.isfunction(cls.__init__) and "typing" not in cls.__init__.__module__:
        yield "__init__", cls.__init__


SPECIAL = {"__enter__", "__iter__", "__next__"}  # The parameters of `__exit__` are given by position.


@pytest.mark.parametrize(("theirs", "ours", "missing"), MODULES, ids=lambda item: item if type(item) is str else "")
def test_drop_in_modules_define_the_public_names_of_the_originals(theirs, ours, missing):
    theirs = original(theirs)
    names = {*public_names(theirs)}
    assert names >= missing
    assert names - {*dir(ours)} == missing
    assert all(f"`{name}`" in ours.__doc__ for name in missing)
    for name in names - missing:
        compare(name, getattr(theirs, name), getattr(ours, name), ours)


def compare(name, theirs, ours, module):
    if isinstance(theirs, type) and issubclass(theirs, enum.Enum):
        assert {each.name: each.value for each in ours} == {each.name: each.value for each in theirs}
    elif isinstance(theirs, type) and issubclass(theirs, Exception):
        assert issubclass(ours, Exception)
    elif isinstance(theirs, type):
        for method, value in methods(theirs):
            if method in MISSING_METHODS:
                assert f"`{method}`" in module.__doc__
                assert not hasattr(ours, method)
            else:
                assert call_of(getattr(ours, method)) == call_of(value), (name, method)
        if is_dataclass(theirs):
            assert call_of(ours) == call_of(theirs)
    elif inspect.isroutine(theirs):
        assert call_of(ours) == call_of(theirs)
    elif inspect.ismodule(theirs):
        for inner, value in vars(ours).items():
            if inner[0] != "_":
                assert f"`{inner}`" in module.__doc__
                compare(inner, getattr(theirs, inner), value, module)
    else:
        assert ours == theirs


@pytest.mark.parametrize("module", BY_HAND, ids=lambda module: module.__name__)
def test_a_drop_in_module_has_the_same_names_as_an_original_that_cannot_be_installed(module):
    for name, expected in BY_HAND[module].items():
        ours = getattr(module, name)
        if not isinstance(expected, dict):
            assert ours == expected
            continue
        for inner, how in expected.items():
            found = getattr(ours, inner)
            if isinstance(how, str) and how[0] == "(":
                assert call_of(found) == how, (name, inner)
            elif how is not None:
                assert (found.value if isinstance(found, enum.Enum) else found) == how


def test_ccl_documentation_lists_the_missing_names():
    assert all(f"`{name}`" in ccl.__doc__ for name in CCL_MISSING)
    assert CCL_MISSING.isdisjoint(dir(ccl))


def test_ccl_offset_values_are_relative_to_the_batch_record(tmp_path):
    """The offset of a batch in several fragments, and of an operation in it."""
    batch = write_batch(7, [(PUT, b"key", bytes(40_000)), (PUT, b"other", b"")])
    path = tmp_path / "000005.log"
    path.write_bytes(reference.encode([write_batch(1, []), batch]))
    start = 7 + 12 + 7
    for module in (original("chromium_reader.leveldb"), ccl):
        log = module.LogFile(path)
        assert [found.offset for found in log] == [start + 12, start + 12 + 1 + 4 + 3 + 40_000]
        log.close()


def test_ccl_path_arguments_can_be_strings(tmp_path):
    path = tmp_path / "000005.log"
    path.write_bytes(reference.encode([write_batch(7, [(PUT, b"key", b"value")])]))
    assert [found.key for found in ccl.LogFile(str(path))] == [b"key"]
    with pytest.raises(AttributeError):
        original("chromium_reader.leveldb").LogFile(str(path))


def test_leveldb_export_names_omit_private_helpers():
    assert not hasattr(leveldb_export, "parse_entity_field")
    assert not hasattr(leveldb_export, "utils")


@pytest.mark.parametrize("name", ["appengine", "leveldb_export", "wandb", "ccl", "dfindexeddb"])
def test_every_name_listed_for_a_module_exists(name):
    module = importlib.import_module(f"cordwood.compat.{name}")
    assert all(hasattr(module, each) for each in module.__all__)


def test_a_script_can_create_table_records(tmp_path):
    """Scripts also create `Record` objects."""
    key = b"key" + (7 << 8 | 1).to_bytes(8, "little")
    record = ccl.Record.ldb_record(key, b"value", tmp_path, 12, True)
    assert (record.user_key, record.seq, record.state) == (b"key", 7, ccl.KeyState.Live)
    assert ccl.Record.ldb_record(key[:3] + bytes(8), b"", tmp_path, 0, False).state == ccl.KeyState.Deleted
    assert ccl.Record.ldb_record(key[3:], b"", tmp_path, 0, False).state == ccl.KeyState.Unknown
    record = ccl.Record.log_record(key, b"", 7, ccl.KeyState.Live, tmp_path, 12)
    assert (record.user_key, record.file_type, record.was_compressed) == (key, ccl.FileType.Log, False)
    theirs = original("chromium_reader.leveldb").Record
    for length in (8, 9, 20):
        made = [cls.ldb_record(bytes(range(length)), b"", tmp_path, 0, False) for cls in (theirs, ccl.Record)]
        assert made[0].seq == made[1].seq
        assert made[0].user_key == made[1].user_key
        assert made[0].state.name == made[1].state.name.upper()
