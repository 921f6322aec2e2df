"""Write batches: the logs of real databases, and batches of ours that real databases read."""

import json
import pickle
import random
import shutil
import sys
import tracemalloc

import plyvel
import pytest
import rocksdict
import write_batch as judge
from real_engines import the_log_of
from real_files import LATE_TIMESTAMPS, LOGS, PEBBLE
from rocksdict import Options, Rdict

import cordwood
from cordwood.payload import Operation, OperationKind, PayloadError, VersionEdit, WriteBatch, write_batch


def records_of(path):
    with cordwood.open(path) as reader:
        records = list(reader)
        assert reader.outcome.kind == "clean"
    return records


@pytest.mark.parametrize("path", LOGS + LATE_TIMESTAMPS + PEBBLE)
def test_batches_of_a_real_log_round_trip(path):
    engine = "pebble" if path.parts[-3] == "pebble" else "rocksdb"
    records = records_of(path)
    assert records
    for record in records:
        batch = WriteBatch(record, engine=engine)
        built = WriteBatch.build(batch.sequence, list(batch), engine=engine)
        assert bytes(built) == record
        assert built == batch
        json.dumps(batch.to_dict())


@pytest.mark.parametrize("path", LOGS)
def test_operations_decoded_from_a_real_log_match_the_oracle(path):
    for record in records_of(path):
        batch = WriteBatch(record)
        found = [
            (judge.PUT, operation.key, operation.value)
            if operation.kind is OperationKind.PUT
            else (judge.DELETE, operation.key)
            for operation in batch
        ]
        assert (batch.sequence, found) == judge.parse_write_batch(record)
        assert {operation.kind for operation in batch} <= {OperationKind.PUT, OperationKind.DELETE}


# Written by LevelDB and RocksDB -----------------------------------------------------------------


def test_replaying_a_leveldb_log_restores_the_database_content(tmp_path):
    random.seed(1)
    database = plyvel.DB(str(tmp_path / "db"), create_if_missing=True, write_buffer_size=256 << 20)
    for _ in range(200):
        with database.write_batch() as batch:
            for _ in range(random.randrange(1, 20)):
                key = random.randbytes(random.randrange(1, 3))
                if random.random() < 0.4:
                    batch.delete(key)
                else:
                    batch.put(key, random.randbytes(random.choice([0, 1, 200, 40_000])))
    expected = dict(database)
    database.close()

    content = {}
    sequence = 1
    for record in records_of(the_log_of(tmp_path / "db")):
        batch = WriteBatch(record)
        _, operations = judge.parse_write_batch(record)
        assert (batch.sequence, batch.count, len(batch)) == (sequence, len(operations), len(operations))
        for operation in batch:
            assert operation.sequence == sequence
            assert operation.column_family == 0
            sequence += 1
            if operation.kind == "put":
                content[operation.key] = operation.value
            else:
                assert operation.kind == "delete"
                content.pop(operation.key, None)
    assert content == expected
    assert len(expected) > 100


def rocksdb_options():
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 << 20)
    return options


def replay(records):
    """The contents of each column family after all operations, and how often each kind occurred."""
    families, kinds = {}, {}
    for record in records:
        for operation in WriteBatch(record):
            kinds[str(operation.kind)] = kinds.get(str(operation.kind), 0) + 1
            content = families.setdefault(operation.column_family, {})
            match operation.kind:
                case "put" | "put_entity":
                    content[operation.key] = operation.value
                case "delete":
                    content.pop(operation.key, None)
                case "delete_range":
                    for key in [key for key in content if operation.key <= key < operation.end_key]:
                        del content[key]
                case other:
                    pytest.fail(f"a {other}")
    return families, kinds


def test_replaying_a_rocksdb_log_restores_the_database_content(tmp_path):
    random.seed(2)
    directory = tmp_path / "db"
    database = Rdict(str(directory), rocksdb_options())
    users = database.create_column_family("users", rocksdb_options())
    handles = [None, database.get_column_family_handle("users")]
    for _ in range(300):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for _ in range(random.randrange(1, 10)):
            handle = random.choice(handles)
            key = random.randbytes(1)
            match random.choice(["put", "put", "put", "delete", "delete_range"]):
                case "put":
                    batch.put(key, random.randbytes(random.choice([0, 1, 200])), handle)
                case "delete":
                    batch.delete(key, handle)
                case "delete_range":
                    batch.delete_range(key, bytes([min(key[0] + 3, 255)]), handle)
        database.write(batch)
    expected = {0: dict(database.items()), 1: dict(users.items())}
    last_sequence = database.latest_sequence_number()
    database.flush_wal(True)
    log = shutil.copy(the_log_of(directory), tmp_path)
    database.close()

    records = records_of(log)
    families, kinds = replay(records)
    assert families == expected
    assert min(kinds[kind] for kind in ("put", "delete", "delete_range")) > 50
    *_, last = WriteBatch(records[-1])
    assert last.sequence == last_sequence


def test_a_rocksdb_wide_column_operation_is_decoded(tmp_path):
    directory = tmp_path / "db"
    database = Rdict(str(directory), rocksdb_options())
    database.put_entity(b"key", [b"x", b"y"], [b"1", b"22"])
    database.flush_wal(True)
    [record] = records_of(shutil.copy(the_log_of(directory), tmp_path))
    database.close()
    [operation] = WriteBatch(record)
    # Version 1, two columns: the names with the lengths of the values, then the values.
    assert operation == Operation("put_entity", key=b"key", value=b"\x01\x02\x01x\x01\x01y\x02122")


# Written by cordwood, read by them --------------------------------------------------------------


def test_leveldb_reads_batches_built_by_cordwood(tmp_path):
    directory = tmp_path / "db"
    plyvel.DB(str(directory), create_if_missing=True).close()
    with cordwood.open(the_log_of(directory), "a") as log:
        put = Operation("put", key=b"a", value=b"1" * 40_000)
        log.append(bytes(WriteBatch.build(1, [put, Operation(OperationKind.PUT, key=b"b", value=b"2")])))
        log.append(bytes(WriteBatch.build(3, [Operation("delete", key=b"b")])))
    with plyvel.DB(str(directory)) as database:
        assert dict(database) == {b"a": b"1" * 40_000}


def recovered_by_rocksdb(directory, operations):
    """A database, opened with this batch at the end of its log."""
    database = Rdict(str(directory), rocksdb_options())
    database.create_column_family("users", rocksdb_options())
    database.close()
    families = {"default": rocksdb_options(), "users": rocksdb_options()}
    with cordwood.open(the_log_of(directory), "a") as log:
        log.append(bytes(WriteBatch.build(100, operations)))
    return Rdict(str(directory), rocksdb_options(), column_families=families)


def test_rocksdb_reads_batches_built_by_cordwood(tmp_path):
    """RocksDB refuses a batch with a wrong count, so it agrees on which operations count."""
    operations = [
        Operation("log_data", value=b"passed over"),
        Operation("put", key=b"a", value=b"1"),
        Operation("put", key=b"b", value=b"2"),
        Operation("noop"),
        Operation("put", key=b"c", value=b"3", column_family=1),
        Operation("put", key=b"d", value=b"4", column_family=1),
        Operation("put", key=b"e", value=b"5", column_family=1),
        Operation("single_delete", key=b"a"),
        Operation("single_delete", key=b"c", column_family=1),
        Operation("delete", key=b"d", column_family=1),
        Operation("delete_range", key=b"x", end_key=b"z"),
        Operation("delete_range", key=b"x", end_key=b"z", column_family=1),
        Operation("commit", xid=b"x1"),
        Operation("rollback", xid=b"x1"),
        Operation("timed_put", key=b"t", value=b"6", write_unix_time=123),
        Operation("timed_put", key=b"t", value=b"7", write_unix_time=123, column_family=1),
        Operation("put_entity", key=b"entity", value=b"\x01\x01\x01x\x011"),
        Operation("put_entity", key=b"entity", value=b"\x01\x01\x01x\x011", column_family=1),
    ]
    database = recovered_by_rocksdb(tmp_path / "db", operations)
    users = database.get_column_family("users")
    assert dict(database.items()) == {b"b": b"2", b"t": b"6", b"entity": b""}
    assert dict(users.items()) == {b"e": b"5", b"t": b"7", b"entity": b""}
    assert database.get_entity(b"entity") == [(b"x", b"1")]
    # Fourteen operations count, the first of which has number 100.
    assert database.latest_sequence_number() == 113
    users.close()
    database.close()


def test_rocksdb_reads_operations_that_require_other_options(tmp_path):
    operations = [
        Operation("commit_with_timestamp", timestamp=b"12345678", xid=b"x1"),
        Operation("put_blob_index", key=b"b", value=b"\x00\x01inline"),
        Operation("put_blob_index", key=b"b", value=b"\x00\x01inline", column_family=1),
    ]
    database = recovered_by_rocksdb(tmp_path / "db", operations)
    assert database.latest_sequence_number() == 101
    database.close()


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("begin_prepare", "(?i)open with transactiondb"),
        ("begin_persisted_prepare", "WritePrepared/WriteUnprepared txn tag"),
        ("begin_unprepare", "WriteUnprepared txn tag"),
    ],
)
def test_rocksdb_recognizes_transaction_markers(start, says, tmp_path):
    """A prepared transaction can be recovered only by opening the database with transactions."""
    operations = [Operation(start), Operation("put", key=b"a", value=b"1"), Operation("end_prepare", xid=b"x1")]
    with pytest.raises(Exception, match=says):
        recovered_by_rocksdb(tmp_path / "db", operations)


def test_rocksdb_and_cordwood_reject_the_same_wrong_count(tmp_path):
    directory = tmp_path / "db"
    Rdict(str(directory), rocksdb_options()).close()
    record = bytearray(bytes(WriteBatch.build(1, [Operation("log_data", value=b"x")])))
    record[8] = 1
    with pytest.raises(PayloadError) as caught:
        list(WriteBatch(record))
    assert (caught.value.offset, caught.value.length, caught.value.reason) == (8, 4, "wrong_count")
    with cordwood.open(the_log_of(directory), "a") as log:
        log.append(bytes(record))
    with pytest.raises(Exception, match="wrong count"):
        Rdict(str(directory), rocksdb_options())


# The classes themselves -------------------------------------------------------------------------

KINDS = {
    "put": "key value",
    "delete": "key",
    "merge": "key value",
    "log_data": "value",
    "single_delete": "key",
    "delete_range": "key end_key",
    "put_blob_index": "key value",
    "put_entity": "key value",
    "timed_put": "key value write_unix_time",
    "noop": "",
    "begin_prepare": "",
    "begin_persisted_prepare": "",
    "begin_unprepare": "",
    "end_prepare": "xid",
    "commit": "xid",
    "commit_with_timestamp": "timestamp xid",
    "rollback": "xid",
    "delete_sized": "key value",
    "range_key_set": "key value",
    "range_key_unset": "key value",
    "range_key_delete": "key end_key",
    "ingest_sst": "key",
    "ingest_sst_with_blobs": "key value",
    "excise": "key end_key",
}
ATTRIBUTES = ["key", "end_key", "value", "xid", "timestamp", "write_unix_time"]
PEBBLE = {kind for kind in KINDS if kind.startswith(("range_key", "ingest", "excise", "delete_sized"))}
IN_FAMILIES = {"put", "delete", "merge", "single_delete", "delete_range", "put_blob_index", "put_entity", "timed_put"}
NOT_COUNTED = {kind for kind in KINDS if kind.startswith(("log_", "noop", "begin_", "end_", "commit", "rollback"))}


def test_every_operation_kind_is_defined():
    assert {str(kind) for kind in OperationKind} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_has_the_attributes_of_its_kind(kind):
    given = {name: 12 if name == "write_unix_time" else name.encode() for name in KINDS[kind].split()}
    operation = Operation(kind, **given)
    assert operation.kind == kind
    assert {name: getattr(operation, name) for name in ATTRIBUTES} == dict.fromkeys(ATTRIBUTES) | given
    assert operation.sequence is None
    assert operation.column_family is None
    assert eval(repr(operation)) == operation  # noqa: S307 - our own text
    engine = "pebble" if kind in PEBBLE else "rocksdb"
    batch = WriteBatch.build(5, [operation], engine=engine)
    [read] = WriteBatch(bytes(batch), engine=engine)
    assert read == operation
    assert hash(read) == hash(operation)
    assert read.kind is OperationKind(kind)
    assert read.column_family == (0 if kind in IN_FAMILIES else None)
    assert read.sequence == (5 if batch.count else None)
    assert batch.count == (kind not in NOT_COUNTED)
    if kind in IN_FAMILIES:
        elsewhere = Operation(kind, column_family=300, **given)
        assert elsewhere != operation
        assert elsewhere.column_family == 300
        assert list(WriteBatch.build(5, [elsewhere])) == [elsewhere]
        assert eval(repr(elsewhere)) == elsewhere  # noqa: S307 - our own text


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_accepts_exactly_the_attributes_of_its_kind(kind):
    given = {name: 12 if name == "write_unix_time" else b"x" for name in KINDS[kind].split()}
    for name in ATTRIBUTES:
        others = {other: value for other, value in given.items() if other != name}
        if name not in given:
            others[name] = 12 if name == "write_unix_time" else b"x"
        with pytest.raises(TypeError, match=kind):
            WriteBatch.build(1, [Operation(kind, **others)])
    if kind not in IN_FAMILIES:
        with pytest.raises(TypeError, match="column_family"):
            WriteBatch.build(1, [Operation(kind, column_family=1, **given)])


def test_an_engine_rejects_operations_of_other_engines():
    with pytest.raises(PayloadError) as caught:
        WriteBatch.build(1, [Operation("noop")], engine="pebble")
    assert caught.value.reason == "unknown_tag"
    with pytest.raises(PayloadError, match="tag 22"):
        WriteBatch.build(1, [Operation("ingest_sst", key=b"\x05")])
    with pytest.raises(PayloadError, match="tag 5"):
        WriteBatch.build(1, [Operation("put", key=b"", value=b"", column_family=1)], engine="pebble")
    with pytest.raises(ValueError, match="engine must be"):
        WriteBatch(bytes(12), engine="leveldb")
    with pytest.raises(ValueError, match="not a kind"):
        WriteBatch.build(1, [Operation("post", key=b"")])


def test_a_damaged_batch_returns_the_operations_before_the_damage():
    record = judge.write_batch(7, [(judge.PUT, b"a", b"1"), (judge.DELETE, b"b")])[:-1]
    operations = iter(WriteBatch(record))
    assert next(operations) == Operation("put", key=b"a", value=b"1")
    with pytest.raises(PayloadError) as caught:
        next(operations)
    assert isinstance(caught.value, cordwood.CordwoodError)
    assert isinstance(caught.value, ValueError)
    attributes = (None, 18, 1, "truncated")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):  # noqa: S301 - our own bytes
        assert (error.path, error.offset, error.length, error.reason) == attributes
        assert str(error).endswith("(1 byte at offset 18 of the payload)")
    assert list(operations) == []
    for use in (len, list, WriteBatch.to_dict):
        with pytest.raises(PayloadError):
            use(WriteBatch(record))
    assert bytes(WriteBatch(record)) == record


def test_every_truncated_batch_raises_an_error():
    record = judge.write_batch(7, [(judge.PUT, b"a" * 200, b"1"), (judge.DELETE, b"b")])
    for length in range(len(record)):
        with pytest.raises(PayloadError):
            list(WriteBatch(record[:length]))


def test_a_write_batch_accepts_any_buffer():
    record = judge.write_batch(7, [(judge.PUT, b"a", b"1")])
    batches = [WriteBatch(record), WriteBatch(bytearray(record)), WriteBatch(memoryview(record))]
    assert len(set(batches)) == 1
    assert batches[0] != WriteBatch(record, engine="pebble")
    with pytest.raises(TypeError):
        WriteBatch("text")
    with pytest.raises(TypeError):
        WriteBatch.build(1, [b"put"])
    assert not WriteBatch(bytes(12))
    assert WriteBatch(record)
    assert repr(batches[0]) == "<cordwood.payload.WriteBatch: sequence=7, count=1>"


def test_to_dict_values_are_json_serializable():
    operations = [
        Operation("put", key="schlüssel".encode(), value=b"\xff\x00", column_family=2),
        Operation("log_data", value=b""),
        Operation("delete_range", key=b"a", end_key=b"b"),
        Operation("timed_put", key=b"a", value=b"1", write_unix_time=9),
    ]
    record = bytes(WriteBatch.build(7, operations))
    expected = {
        "sequence": 7,
        "count": 3,
        "operations": [
            {"kind": "put", "sequence": 7, "column_family": 2, "key": "schlüssel", "value": {"base64": "/wA="}},
            {"kind": "log_data", "value": ""},
            {"kind": "delete_range", "sequence": 8, "column_family": 0, "key": "a", "end_key": "b"},
            {"kind": "timed_put", "sequence": 9, "column_family": 0, "key": "a", "value": "1", "write_unix_time": 9},
        ],
    }
    assert write_batch.to_dict(record) == expected == json.loads(json.dumps(write_batch.to_dict(record)))
    pebble = bytes(WriteBatch.build(7, [Operation("ingest_sst", key=b"\x05")], engine="pebble"))
    assert write_batch.to_dict(pebble, engine="pebble")["operations"] == [
        {"kind": "ingest_sst", "sequence": 7, "key": "\x05"}
    ]


def test_another_thread_can_use_an_iterator_while_an_error_is_being_created():
    """Creating an exception runs Python code, during which another thread may take a step."""
    steps = []

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.endswith("errors.py") and not steps:
            steps.append(None)
            steps[0] = next(operations, "over")

    operations = iter(WriteBatch(bytes(8) + b"\1\0\0\0" + b"\xff"))
    sys.setprofile(profile)
    try:
        with pytest.raises(PayloadError, match="tag 255"):
            next(operations)
    finally:
        sys.setprofile(None)
    assert steps == ["over"]


def test_a_sequence_number_has_at_most_56_bits():
    """An internal key has room for no more, and the next one is not 0."""
    operations, last = b"\x00\x01a\x00\x01b", (1 << 56) - 1

    def record(sequence, count):
        return sequence.to_bytes(8, "little") + count.to_bytes(4, "little") + operations

    assert [operation.sequence for operation in WriteBatch(record(last - 1, 2))] == [last - 1, last]
    built = WriteBatch.build(last - 1, [Operation("delete", key=b"a"), Operation("delete", key=b"b")])
    assert bytes(built) == record(last - 1, 2)
    for sequence in last, last + 1, (1 << 64) - 1:
        with pytest.raises(PayloadError, match=r"no program writes \(8 bytes at offset 0 of the payload\)") as caught:
            list(WriteBatch(record(sequence, 2)))
        assert (caught.value.offset, caught.value.length, caught.value.reason) == (0, 8, "non_canonical")
        with pytest.raises(PayloadError) as caught:
            WriteBatch.build(sequence, list(built))
        assert caught.value.reason == "too_large"


def test_an_error_about_one_operation_uses_the_singular():
    for count, deletes, message in (
        (1, 2, "the header states 1 operation, but there are 2 (4 bytes at offset 8 of the payload)"),
        (2, 1, "the header states 2 operations, but there is 1 (4 bytes at offset 8 of the payload)"),
    ):
        with pytest.raises(PayloadError) as caught:
            list(WriteBatch(bytes(8) + count.to_bytes(4, "little") + b"\x00\x01a" * deletes))
        assert str(caught.value) == message


def test_reordered_blocks_can_be_detected_only_from_the_payload(tmp_path):
    """As docs/format/damage.md says, each fragment is valid, so that no reader of the format finds a fault."""
    path = tmp_path / "log"
    batches = [bytes(WriteBatch.build(n, [Operation("put", key=b"%d" % n, value=b"v" * n)])) for n in range(1, 600)]
    with cordwood.open(path, "x") as log:
        log.extend(batches)
    data = path.read_bytes()
    blocks = [data[start : start + cordwood.BLOCK_LEN] for start in range(0, len(data), cordwood.BLOCK_LEN)]
    assert len(blocks) > 4
    for order in [[0, 2, 3, 4], [0, 2, 1, 3, 4], [0, 1, 1, 2, 3, 4]]:
        path.write_bytes(b"".join(blocks[index] for index in [*order, *range(5, len(blocks))]))
        assert cordwood.verify(path).ok
        joined = [record for record in records_of(path) if record not in batches]
        assert joined
        for record in joined:
            with pytest.raises(PayloadError):
                list(WriteBatch(record))


class Unequal(bytes):
    """Bytes that compare unlike others, as those of some libraries do."""

    __hash__ = bytes.__hash__

    def __eq__(self, other):
        return False

    def __len__(self):
        return 0


@pytest.mark.parametrize(
    ("of_record", "record"),
    [(WriteBatch, judge.write_batch(1, [(judge.DELETE, b"k")])), (VersionEdit, b"\x02\x04")],
)
def test_a_bytes_subclass_is_treated_as_plain_bytes(of_record, record):
    taken = of_record(Unequal(record))
    assert taken == of_record(record)
    assert taken
    assert type(bytes(taken)) is bytes


# Missing sequence numbers -------------------------------------------------------------------------


def batch_of(first, count):
    """A batch whose operations have the numbers from `first` on, and keys that name them."""
    puts = [(judge.PUT, b"k%d" % number, b"v") for number in range(first, first + count)]
    return WriteBatch(judge.write_batch(first, puts))


def gaps_of(batches):
    return [tuple(gap) for gap in write_batch.sequence_numbers(batches).gaps]


@pytest.mark.parametrize("seed", range(200))
def test_batch_order_does_not_affect_sequence_gaps(seed):
    choice = random.Random(seed)
    batches, number = [], choice.randrange(1, 100)
    for _ in range(choice.randrange(1, 30)):
        count = choice.randrange(4)
        batches.append((number, count))
        number += count + choice.choice([0, 0, 1, 5])
    numbers = {number for first, count in batches for number in range(first, first + count)}
    if seed % 2:
        choice.shuffle(batches)
    missing = sorted(set(range(min(numbers, default=0), max(numbers, default=0))) - numbers)
    starts = [number for number in missing if number - 1 in numbers]
    ends = [number + 1 for number in missing if number + 1 in numbers]
    found = write_batch.sequence_numbers(batch_of(*batch) for batch in batches)
    assert found.gaps == tuple((start, end, b"k%d" % (start - 1)) for start, end in zip(starts, ends, strict=True))
    assert (found.missing_count, found.gap_count, found.has_shared) == (len(missing), len(starts), False)
    assert (found.start, found.end) == ((min(numbers), max(numbers) + 1) if numbers else (None, None))


def test_sequence_numbers_shared_by_batches_are_reported():
    for batches in [(1, 2), (2, 2)], [(1, 1), (1, 1)], [(5, 3), (3, 3)], [(1, 1), (9, 1), (4, 1), (4, 1)]:
        assert write_batch.sequence_numbers(batch_of(*batch) for batch in batches).has_shared, batches
    # One number for a whole batch: the second batch has the number after that of the first.
    assert write_batch.sequence_numbers([batch_of(7, 3), batch_of(8, 3)]).has_shared


def test_a_log_data_operation_has_no_sequence_number():
    data = Operation(OperationKind.LOG_DATA, value=b"x")
    first = WriteBatch.build(1, [Operation(OperationKind.PUT, key=b"a", value=b""), data])
    assert gaps_of([first, WriteBatch.build(9, [data]), batch_of(4, 1)]) == [(2, 4, b"a")]


def test_sequence_gaps_past_the_list_limit_are_still_counted(monkeypatch):
    monkeypatch.setattr(write_batch, "GAPS_MAX", 3)
    found = write_batch.sequence_numbers(batch_of(number, 1) for number in range(1, 20, 2))
    assert (len(found.gaps), found.gap_count, found.missing_count) == (3, 9, 9)
    # A gap that is not kept may be filled.
    assert not write_batch.sequence_numbers(batch_of(number, 1) for number in [*range(1, 20, 2), 18]).has_shared


@pytest.mark.parametrize("numbers", [range(1, 401, 2), range(399, 0, -2)])
def test_batches_between_sequence_gaps_are_not_kept_in_memory(numbers):
    put = Operation(OperationKind.PUT, key=b"k", value=bytes(10_000))
    tracemalloc.start()
    try:
        found = write_batch.sequence_numbers(WriteBatch.build(number, [put]) for number in numbers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.gap_count == 199
    assert peak < 500_000


def test_finding_sequence_gaps_decodes_one_operation_at_a_time():
    records = [judge.write_batch(number, [(judge.DELETE, b"kk")] * 50_000) for number in (1, 50_002)]
    tracemalloc.start()
    try:
        found = write_batch.sequence_numbers(map(WriteBatch, records))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.gaps == ((50_001, 50_002, b"kk"),)
    assert peak < 500_000


def test_removing_two_records_from_a_leveldb_log_leaves_sequence_gaps(tmp_path):
    database = plyvel.DB(str(tmp_path / "db"), create_if_missing=True)
    for number in range(100):
        with database.write_batch() as batch:
            for part in range(number % 3 + 1):
                batch.put(b"user:%06d.%d" % (number, part), b"v")
    database.close()
    records = records_of(the_log_of(tmp_path / "db"))
    whole = [WriteBatch(record) for record in records]
    assert gaps_of(whole) == []
    assert gaps_of([*whole[:10], *whole[11:50], *whole[51:]]) == [
        (whole[10].sequence, whole[11].sequence, b"user:000009.0"),
        (whole[50].sequence, whole[51].sequence, b"user:000049.1"),
    ]


def test_unlogged_rocksdb_writes_leave_sequence_gaps(tmp_path):
    logged, unlogged = rocksdict.WriteOptions(), rocksdict.WriteOptions()
    unlogged.disable_wal = True
    database = Rdict(str(tmp_path / "db"), Options(raw_mode=True))
    for number in range(1, 10):
        database.put(b"k%d" % number, b"v", write_opt=unlogged if number in (4, 5, 8) else logged)
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    database.close()
    batches = map(WriteBatch, records_of(the_log_of(tmp_path / "copy")))
    assert gaps_of(batches) == [(4, 6, b"k3"), (8, 9, b"k7")]
