"""Values are values: each can be made with keywords, compared, hashed, copied, pickled and shown in one line.

An object with a file, a lock or a position is not a value; its error names the value to pass in its place.
"""

import copy
import enum
import io
import os
import pickle
import pickletools
import re
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pytest
import reference
from support import ROOT

import cordwood
from cordwood import payload, types
from cordwood.payload import entity, version_edit, write_batch

MODULES = [
    "cordwood",
    "cordwood.errors",
    "cordwood.payload",
    "cordwood.payload.entity",
    "cordwood.payload.version_edit",
    "cordwood.payload.write_batch",
    "cordwood.types",
]
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def public_classes():
    found = {}
    for module in map(import_module, MODULES):
        own = [name for name, item in vars(module).items() if getattr(item, "__module__", None) == module.__name__]
        for name in getattr(module, "__all__", own):
            item = getattr(module, name)
            if isinstance(item, type) and not name.startswith("_") and item.__module__.startswith("cordwood"):
                found[name] = item
    return found


CLASSES = public_classes()

# One of each, made as in a user's test.
LEVELDB = "leveldb"
CLEAN = cordwood.types.Outcome(kind=types.OutcomeKind.CLEAN, offset=20)
FLIP = cordwood.types.BitFlip(offset=7, bit=5, part=types.FragmentPart.PAYLOAD)
REGION = cordwood.SkippedRegion(
    offset=0, end_offset=20, reason=types.Reason.CHECKSUM_MISMATCH, stored_crc=1, computed_crc=2, bit_flip=FLIP
)
KEY = version_edit.InternalKey(user_key=b"k", sequence=7, value_type=1)
CUSTOM = version_edit.CustomField(kind=version_edit.CustomFieldKind.PATH_ID, tag=65, value=1)
ENTITY = entity.Entity(
    key=entity.Key(app="s~app", path=(("Task", 7),)),
    properties={"n": 5},
    meanings={},
    unindexed=frozenset(),
    other_fields=(),
)
REPORT = cordwood.Report(dialect="leveldb", record_count=2, payload_len=6, file_len=40, outcome=CLEAN, len_by_reason={})
PROBLEM = types.Problem(kind=types.ProblemKind.CURRENT_EMPTY, path="db/CURRENT")
GAP = write_batch.SequenceGap(start=4, end=6, after=b"k")
CHANGE = cordwood.types.KeyChange(b"key", 3, None, 0, sequence=4, offset=20, old_sequence=2, old_offset=0)
VALUES = {
    "BitFlip": FLIP,
    "BlobFileAddition": version_edit.BlobFileAddition(
        file_number=1, blob_count=2, blob_len=3, checksum_method=b"", checksum=b"", custom_fields=(CUSTOM,)
    ),
    "BlobFileGarbage": version_edit.BlobFileGarbage(file_number=1, blob_count=2, blob_len=3, custom_fields=()),
    "CompactPointer": version_edit.CompactPointer(level=1, key=KEY),
    "CustomField": CUSTOM,
    "Database": types.Database(
        path="db",
        engine=types.Engine.LEVELDB,
        manifest=None,
        newest_manifest="MANIFEST-000002",
        table_count=7,
        problems=(PROBLEM,),
    ),
    "DeletedFile": version_edit.DeletedFile(level=1, file_number=5),
    "Entity": ENTITY,
    "Evidence": cordwood.Evidence((cordwood.types.LogEvidence("some.log", REPORT),)),
    "Export": types.Export(path="all.overall_export_metadata", files=("output-0",), file_len=107, stated_len=214),
    "Field": version_edit.Field(kind=version_edit.FieldKind.LOG_NUMBER, tag=2, value=4),
    "Fragment": cordwood.types.Fragment(
        offset=0,
        end_offset=10,
        kind=types.FragmentKind.FULL,
        block=0,
        type_byte=1,
        payload_len=3,
        stored_crc=1,
        computed_crc=2,
        reason=types.Reason.STALE,
    ),
    "GeoPoint": entity.GeoPoint(latitude=1.5, longitude=2.5),
    "Info": cordwood.info(ROOT / "tests" / "vectors"),
    "InternalKey": KEY,
    "Key": entity.Key(app="s~app", path=(("Task", None),), namespace="n", database="d"),
    "DetectedDialect": cordwood.types.DetectedDialect("leveldb"),
    "KeyChange": CHANGE,
    "KeyChanges": cordwood.types.KeyChanges(1, (CHANGE,), 0, (), 0, are_all_followed=True),
    "LogEvidence": cordwood.types.LogEvidence("some.log", REPORT),
    "LogFormat": cordwood.types.LogFormat(dialect="rocksdb", log_number=4, compression="zstd"),
    "LogMap": cordwood.LogMap(
        path="some.log", dialect="leveldb", file_len=10, damaged_len=1, torn_len=2, svg="<svg>" + "x" * 10_000
    ),
    "LiveFile": version_edit.LiveFile(
        column_family=1,
        column_family_name=b"users",
        file=version_edit.NewFile(1, 5, 1000, KEY, KEY, None, None, 0, ()),
    ),
    "NewFile": version_edit.NewFile(
        level=1,
        file_number=2,
        file_len=3,
        smallest=KEY,
        largest=KEY,
        smallest_sequence=None,
        largest_sequence=None,
        path_id=0,
        custom_fields=(CUSTOM,),
    ),
    "NotYet": cordwood.types.NotYet(reason=types.WaitReason.IDLE, offset=10, file_len=20),
    "Operation": payload.Operation("put", key=b"k", value=b"v", column_family=3, sequence=100),
    "OtherField": entity.OtherField(message="Property", number=3, offset=4, data=b"d"),
    "Outcome": CLEAN,
    "Record": cordwood.Record(offset=0, end_offset=10, data=b"one", salvaged=True),
    "Report": cordwood.Report(
        dialect="rocksdb",
        record_count=2,
        payload_len=6,
        file_len=40,
        outcome=CLEAN,
        log_number=4,
        compression="zstd",
        salvaged_count=1,
        repaired_count=1,
        skipped=(REGION,),
        repaired=(REGION,),
        len_by_reason={types.Reason.CHECKSUM_MISMATCH: 20, types.Reason.TORN_TAIL: 3},
        other_log_number=9,
        not_kept=("bad_metadata",),
        path="some.log",
    ),
    "Problem": PROBLEM,
    "RegionEvidence": cordwood.types.RegionEvidence(REGION, b"first bytes"),
    "Results": cordwood.Results({}, {}, {"directory/notes": "text"}),
    "Run": types.Run(path="run-1.wandb", record_count=2, first_time=1.5, last_time=None, state="torn"),
    "SequenceGap": GAP,
    "SequenceNumbers": write_batch.SequenceNumbers(
        start=1, end=9, missing_count=2, gap_count=1, gaps=(GAP,), has_shared=False
    ),
    "SkippedRegion": REGION,
    "Position": cordwood.Position("1:10:0+0+10=00000007:"),
    "Split": cordwood.Split(str(ROOT / "some.log"), 0, 10, position=cordwood.Position("1:0:0+0+10=00000007:")),
    "Stat": cordwood.Stat(
        dialect=LEVELDB,
        record_count=2,
        payload_len=6,
        file_len=20,
        outcome=CLEAN,
        stored_len=6,
        header_len=14,
        record_len_min=3,
        record_len_max=3,
        full_count=2,
        first_count=3,
        middle_count=4,
        last_count=5,
        container_count=4,
        container_len=3,
        packed_count=2,
        packed_len=1,
        trailer_len=6,
        skipped_len=7,
        damaged_len=8,
        other_log_number=9,
        path="some.log",
    ),
    "User": entity.User(
        email="a@b",
        auth_domain="b",
        nickname=None,
        gaia_id=0,
        obfuscated_gaia_id=None,
        federated_identity=None,
        federated_provider=None,
    ),
    "VersionEdit": payload.VersionEdit(record=b"\x02\x04\x06\x01\x05"),
    "WalAddition": version_edit.WalAddition(log_number=3, synced_len=None),
    "WriteBatch": payload.WriteBatch.build(7, [payload.Operation("delete", key=b"k")], engine="pebble"),
}
# They contain dictionaries.
NOT_HASHED = {"Entity", "Info", "Results"}

WHERE = {"path": "some.log", "offset": 5}
REGION_OF = {**WHERE, "length": 3, "reason": types.Reason.CHECKSUM_MISMATCH}
ERRORS = {
    "ClosedError": cordwood.ClosedError("text", path="some.log"),
    "CordwoodError": cordwood.CordwoodError("text", **WHERE),
    "CorruptionError": cordwood.CorruptionError("text", **REGION_OF, stored_crc=1, computed_crc=2),
    "DialectError": cordwood.DialectError("text", path=None, format="gzip"),
    "LogChangedError": cordwood.LogChangedError("text", **WHERE, length=7),
    "LogRotatedError": cordwood.LogRotatedError("text", **WHERE, file_len=7),
    "LogTruncatedError": cordwood.LogTruncatedError("text", **WHERE, file_len=7),
    "OtherLogError": cordwood.OtherLogError("text", path="some.log", log_number=7, other_log_number=8),
    "PayloadError": cordwood.PayloadError("text", offset=1, length=2, reason=types.PayloadReason.TRUNCATED),
    "RecordTooLargeError": cordwood.RecordTooLargeError("text", **REGION_OF),
    "TornTailError": cordwood.TornTailError("text", **REGION_OF),
}

FILE = reference.encode([b"one", b"two" * 20_000])
DAMAGED = FILE[:8] + b"X" + FILE[9:]


# The objects with a file, a lock or a position, and the values to pass in their place.
HANDLES = {
    "Reader": (cordwood.open, "pass the path, or a Split"),
    "Writer": (lambda _: cordwood.Writer(io.BytesIO()), "pass the path"),
    "Follower": (cordwood.follow, "pass the path and position()"),
    "RecordBatch": (lambda path: next(cordwood.open(path).record_batches()), "pass list(batch)"),
    "Scan": (cordwood.scan, "pass the arguments of scan"),
    "DecodedScan": (lambda path: cordwood.scan(path, decode="entity"), "pass the arguments of scan"),
}
# It has files, and is pickled: test_index.py.
INDICES = {"RecordIndex"}


def test_every_public_class_has_a_test_value():
    enums = {name for name, item in CLASSES.items() if issubclass(item, enum.Enum)}
    assert len(enums) >= 8
    assert CLASSES.keys() == VALUES.keys() | ERRORS.keys() | enums | HANDLES.keys() | INDICES
    for name, value in {**VALUES, **ERRORS}.items():
        assert type(value) is CLASSES[name]


# The values ------------------------------------------------------------------------------------


def copies(value):
    yield copy.copy(value)
    yield copy.deepcopy(value)
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(value, protocol))  # noqa: S301 - our own


def attributes(value):
    """All attributes, even those that `==` ignores, such as an operation's sequence number."""
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: getattr(value, name) for name in names if not callable(getattr(value, name))}


@pytest.mark.parametrize("name", VALUES)
def test_copies_of_a_value_equal_the_original(name):
    value = VALUES[name]
    for other in copies(value):
        assert type(other) is type(value)
        assert other == value
        assert not other != value  # noqa: SIM202 - `__ne__` is under test
        assert attributes(other) == attributes(value)
        assert repr(other) == repr(value)
        if name not in NOT_HASHED:
            assert hash(other) == hash(value)
            assert {value: 1}[other] == 1


@pytest.mark.parametrize("name", VALUES)
def test_different_values_are_not_equal(name):
    value = VALUES[name]
    assert value != object()
    assert value != "text"
    assert value is not None
    assert [other for other in VALUES.values() if other == value] == [value]


@pytest.mark.parametrize("name", VALUES)
def test_values_cannot_be_changed_after_creation(name):
    value = VALUES[name]
    for attribute in attributes(value):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, attribute, 1)


@pytest.mark.parametrize("name", VALUES)
def test_repr_fits_on_one_short_line(name):
    text = repr(VALUES[name])
    # The name of a dialect is shown as a name.
    assert type(VALUES[name]).__name__ in text or name == "DetectedDialect"
    assert "\n" not in text
    assert len(text) < 500


@pytest.mark.parametrize("name", ["BitFlip", "Fragment", "NotYet", "Outcome", "Record", "SkippedRegion"])
def test_eval_of_the_repr_gives_an_equal_value(name):
    """Only these classes: all others are shown in angle brackets, or hold the contents of a log."""
    assert eval(repr(VALUES[name]), {**vars(cordwood), **vars(cordwood.types)}) == VALUES[name]  # noqa: S307 - our own


FRAGMENT = {"offset": 40_000, "end_offset": 40_010, "kind": "full", "block": 1}
REGION_ATTRIBUTES = {"offset": 0, "end_offset": 20, "reason": "checksum_mismatch"}


@pytest.mark.parametrize(
    ("class_", "attributes", "more"),
    [
        (cordwood.SkippedRegion, REGION_ATTRIBUTES, {"bit_flip": FLIP}),
        (cordwood.SkippedRegion, REGION_ATTRIBUTES, {"stored_crc": 1}),
        (cordwood.SkippedRegion, REGION_ATTRIBUTES, {"computed_crc": 1}),
        (cordwood.SkippedRegion, {**REGION_ATTRIBUTES, "reason": "bad_length"}, {"stated_len": 7}),
        (cordwood.SkippedRegion, {**REGION_ATTRIBUTES, "reason": "unknown_kind"}, {"type_byte": 7}),
        (cordwood.SkippedRegion, {**REGION_ATTRIBUTES, "reason": "unknown_version"}, {"version": 7}),
        (cordwood.types.Fragment, FRAGMENT, {"type_byte": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"payload_len": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"stored_crc": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"computed_crc": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"log_number": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"synced_offset": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"reason": "stale"}),
        (cordwood.types.Fragment, FRAGMENT, {"record_offset": 0}),
        (cordwood.types.Fragment, FRAGMENT, {"salvaged": True}),
        (cordwood.Record, {"offset": 0, "end_offset": 1, "data": b""}, {"salvaged": True}),
    ],
    ids=str,
)
def test_different_values_have_different_reprs(class_, attributes, more):
    values = class_(**attributes), class_(**attributes, **more)
    assert values[0] != values[1]
    assert repr(values[0]) != repr(values[1])
    assert [eval(repr(value), {**vars(cordwood), **vars(cordwood.types)}) for value in values] == [*values]  # noqa: S307 - our own


def test_the_repr_abbreviates_long_data():
    record = cordwood.Record(offset=0, end_offset=1 << 20, data=bytes(1 << 20))
    assert repr(record).startswith("Record(offset=0, end_offset=1048576, data=<1048576 bytes: b'\\x00")
    assert len(repr(record)) < 300
    operation = payload.Operation("put", key=b"k", value=bytes(1 << 20))
    assert repr(operation).startswith("Operation('put', key=b'k', value=<1048576 bytes: b'")
    assert len(repr(operation)) < 300
    edit = payload.VersionEdit(b"\x02\x04" * 1000)
    assert repr(edit).endswith("log_number, ...>")
    assert len(repr(edit)) < 300


# The results of a log --------------------------------------------------------------------------


@pytest.mark.parametrize("file", [FILE, DAMAGED, FILE[:-1], FILE + b"\0" * 50_000, b""])
def test_values_read_from_a_log_can_be_copied(file):
    reader = cordwood.open(file, on_corruption="salvage")
    values = [*reader.records(), *cordwood.fragments(file), *reader.skipped, reader.outcome]
    values += [cordwood.verify(file), cordwood.stat(file)]
    for value in values:
        for other in copies(value):
            assert other == value
            assert hash(other) == hash(value)
            assert attributes(other) == attributes(value)
            assert str(other) == str(value)


@pytest.mark.parametrize("reason", types.Reason)
def test_every_reason_has_a_severity_and_a_description(reason):
    region = cordwood.SkippedRegion(offset=5, end_offset=6, reason=reason)
    assert (region.reason, region.length) == (reason, 1)
    assert str(region) == f"1 byte at offset 5: {region.description}"
    fragment = cordwood.types.Fragment(offset=5, end_offset=6, kind=types.FragmentKind.REST, block=0, reason=reason)
    assert fragment.severity is region.severity is reason.severity
    assert fragment.length == 1


@pytest.mark.parametrize(
    ("of_package", "source"),
    [
        (types.Reason, "damage/region.rs"),
        (types.Severity, "damage/region.rs"),
        (types.FragmentKind, "format.rs"),
        (types.FragmentPart, "damage/bit_flip.rs"),
        (types.WaitReason, "reader/follow/poll.rs"),
    ],
)
def test_enums_define_every_name_in_the_rust_core(of_package, source):
    # A value whose name the enum lacks is a bare `KeyError` where it is first met.
    text = (ROOT / "rust/cordwood/src" / source).read_text()
    # Values are rows of a table, as in `BadLength { len } = "bad_length", Corruption` or `Info = "info"`.
    tables = {types.Reason: r"^reasons! \{", types.FragmentKind: r"^fragment_kinds! \{"}
    table = tables.get(of_package, rf"^    pub enum {of_package.__name__} \{{")
    [rows] = re.findall(rf"{table}\n(.*?)^ *\}}\n", text, re.MULTILINE | re.DOTALL)
    of_core = re.findall(r'^ +[A-Z][^=\n]*= "(\w+)"', rows, re.MULTILINE)
    assert of_core == list(of_package)


def test_a_report_adds_up_the_damaged_and_skipped_bytes():
    made = cordwood.Report(
        dialect=LEVELDB,
        record_count=0,
        payload_len=0,
        file_len=None,
        outcome=CLEAN,
        len_by_reason={types.Reason.CHECKSUM_MISMATCH: 20, types.Reason.TORN_TAIL: 5},
        skipped=(REGION,),
    )
    assert made.len_by_severity == {"torn_tail": 5, "corruption": 20}
    assert made.damaged_len == 20
    assert (made.ok, made.skipped_len) == (False, 25)
    # More than are listed.
    assert VALUES["Report"].skipped_len == 23


def test_impossible_attribute_values_are_rejected():
    with pytest.raises(ValueError, match="there is no reason 'none'"):
        str(cordwood.SkippedRegion(offset=0, end_offset=1, reason="none"))
    with pytest.raises(ValueError, match="a record cannot end at 1, before its offset 2"):
        cordwood.Record(offset=2, end_offset=1, data=b"")
    with pytest.raises(TypeError):
        cordwood.Record(offset=0, end_offset=1, data="text")


def test_tuple_attributes_are_cached(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(DAMAGED + bytes(10))
    reader = cordwood.open(path, on_corruption="skip")
    assert reader.skipped == ()
    list(reader)
    regions = reader.skipped
    assert [region.offset for region in regions] == [0, cordwood.BLOCK_LEN, len(DAMAGED)]
    assert reader.skipped is regions
    reader.close()
    assert reader.skipped is regions
    report = cordwood.verify(path)
    assert report.skipped is report.skipped
    edit = VALUES["VersionEdit"]
    assert edit.fields is edit.fields
    assert isinstance(edit.fields, tuple)
    with cordwood.follow(path, timeout=0, on_corruption="skip", retry_time=0) as follower:
        assert follower.skipped == ()
        list(follower)
        assert follower.skipped is follower.skipped
        assert follower.skipped[0].offset == 0


def test_the_skipped_attribute_is_updated_as_the_reader_moves():
    one = reference.fragment(1, b"one")
    blocks = [(one[:-1] + last).ljust(cordwood.BLOCK_LEN, b"\0") for last in (b"X", b"Y")]
    reader = cordwood.open(b"".join(blocks) + one, on_corruption="raise")
    for count in (1, 2):
        with pytest.raises(cordwood.CorruptionError):
            next(reader)
        assert len(reader.skipped) == len(reader.skipped) == count
    reader.seek(2 * cordwood.BLOCK_LEN)
    assert reader.skipped == ()
    assert next(reader) == b"one"


def test_a_process_pool_can_verify_the_logs_in_a_directory(tmp_path):
    paths = [tmp_path / "good.log", tmp_path / "bad.log"]
    for path, file in zip(paths, (FILE, DAMAGED), strict=True):
        path.write_bytes(file)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(cordwood.verify, paths)) == list(map(cordwood.verify, paths))
        failed = pool.submit(cordwood.verify, tmp_path / "none.log")
        with pytest.raises(FileNotFoundError):
            failed.result()


def test_pickles_contain_each_attribute_name_once():
    records = [cordwood.Record(offset=n, end_offset=n, data=b"") for n in range(10)]
    names = [argument for _, argument, _ in pickletools.genops(pickle.dumps(records)) if argument == "end_offset"]
    assert names == ["end_offset"]


def test_reports_are_equal_regardless_of_their_paths(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(DAMAGED)
    for verb in (cordwood.verify, cordwood.stat):
        assert verb(path) == verb(DAMAGED)
        assert not verb(path) != verb(DAMAGED)  # noqa: SIM202 - `__ne__` is under test
        assert hash(verb(path)) == hash(verb(DAMAGED))
        assert (verb(path).path, verb(DAMAGED).path) == (str(path), None)
    assert cordwood.salvage(path, tmp_path / "new.log").path == str(path)


# Notebooks -------------------------------------------------------------------------------------


class Table(HTMLParser):
    """Collects the text of cells and captions, and the tags that occur."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


TAGS = {"table", "caption", "tr", "td", "th", "p"}


def test_values_render_as_tables_in_a_notebook(tmp_path):
    path = tmp_path / "<b>&'\"<script>.log"
    path.write_bytes(DAMAGED)
    report = Table(cordwood.verify(path)._repr_html_())
    assert report.tags == TAGS - {"p"}
    assert report.texts[0] == str(path)
    assert report.texts[report.texts.index("ok") + 1] == "no"
    assert report.texts[-4:-2] == ["0", "10"]
    assert report.texts[-2].startswith("checksum mismatch: the header states ")
    assert report.texts[-1] == "corruption"
    stat = Table(cordwood.stat(path)._repr_html_())
    assert stat.texts[0] == str(path)
    assert stat.texts[stat.texts.index("record_count") + 1] == "1"
    assert stat.tags == {"table", "caption", "tr", "td"}
    saved = Table(cordwood.salvage(path, tmp_path / "new.log")._repr_html_())
    assert saved.texts[0] == str(path)


def test_values_from_a_log_without_a_path_render_in_a_notebook():
    assert Table(cordwood.verify(FILE)._repr_html_()).texts[0] == "Report"
    strange = cordwood.Stat(
        dialect=LEVELDB, record_count=0, payload_len=0, file_len=0, outcome=CLEAN, path=os.fsdecode(b"\xff.log")
    )
    assert Table(strange._repr_html_()).texts[0] == "\\udcff.log"
    assert Table(cordwood.stat(b"")._repr_html_()).texts[0] == "Stat"
    made = cordwood.Report(
        dialect=LEVELDB,
        record_count=0,
        payload_len=0,
        file_len=None,
        outcome=CLEAN,
        len_by_reason={types.Reason.CHECKSUM_MISMATCH: 20 * 1234},
        skipped=(REGION,) * 1234,
        not_kept=("<i>",),
        path="<\n>",
    )
    shown = Table(made._repr_html_())
    assert shown.tags == TAGS
    assert shown.texts[-1] == "and 1,224 more"
    assert {"<i>", "<\n>"} < set(shown.texts)


# The errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ERRORS)
def test_copying_an_error_keeps_all_its_attributes(name):
    error = ERRORS[name]
    error.__notes__ = ["a note"]
    for other in copies(error):
        assert type(other) is type(error)
        assert (other.args, vars(other), str(other)) == (error.args, vars(error), str(error))
        assert "\n" not in repr(other)


@pytest.mark.parametrize("name", [name for name, item in CLASSES.items() if issubclass(item, enum.Enum)])
def test_copying_or_pickling_an_enum_member_returns_the_same_member(name):
    for member in CLASSES[name]:
        assert [other is member for other in copies(member)] == [True] * (2 + len(PROTOCOLS))
        assert member == str(member)


# Objects that are not values -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opened", "shown"),
    [
        (cordwood.open, 'Reader of "some.log"'),
        (lambda path: cordwood.open(path.read_bytes()), "Reader"),
        (lambda path: cordwood.Writer(path, "a"), 'Writer of "some.log"'),
        (lambda _: cordwood.Writer(io.BytesIO()), "Writer"),
        (cordwood.follow, 'Follower of "some.log"'),
    ],
)
def test_the_repr_of_a_closed_object_says_that_it_is_closed(opened, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("some.log")
    path.write_bytes(FILE)
    with opened(path) as handle:
        assert repr(handle) == f"<cordwood.{shown}>"
    assert repr(handle) == f"<cordwood.{shown}, closed>"


@pytest.mark.parametrize("name", HANDLES)
def test_copying_or_pickling_a_handle_raises_a_helpful_error(name, tmp_path):
    (tmp_path / "some.log").write_bytes(FILE)
    make, instead = HANDLES[name]
    handle = make(tmp_path / "some.log")
    attempts = [copy.copy, copy.deepcopy, *(lambda value, p=p: pickle.dumps(value, p) for p in range(6))]
    for attempt in attempts:
        with pytest.raises(TypeError) as raised:
            attempt(handle)
        assert str(raised.value).startswith(f"a {name} cannot be pickled or copied: ")
        assert instead in str(raised.value)
    if hasattr(handle, "close"):
        handle.close()
