"""The fast paths for reading record by record and for `Writer.append` return the same as PyO3's own functions.

They are in the binding's `fast_call.rs`: methods of final classes, whose base classes have PyO3's methods.
"""

import gc
import inspect
import io
import pickle
import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN, fragment
from support import PAYLOAD

import cordwood

# Lengths around the pieces of a copy and the end of a block, and one beyond the writer's buffer.
LENGTHS = [0, 1, 16, 2047, 2048, 2049, 30_000, 70_000, 0, 5, BLOCK_LEN - 14, 3, (1 << 20) + 7, 100, *range(300)]
RECORDS = [PAYLOAD[:length] if length <= len(PAYLOAD) else bytes(length) for length in LENGTHS]
FILE = reference.encode(RECORDS)

DAMAGE = [
    FILE,
    FILE[:-1],
    FILE[:50_000] + b"\xff" + FILE[50_001:],
    fragment(9, b"unknown") + FILE,
    FILE + b"\0" * 100,
    b"",
]


def first_batch(file=FILE):
    # All records; together they are longer than a default batch.
    return next(cordwood.Reader(file).record_batches(target_len=len(file)))


ITERATOR = type(iter(cordwood.Reader(b"")))
BATCH_ITERATOR = type(iter(first_batch()))
CLASSES = [ITERATOR, BATCH_ITERATOR, cordwood.Writer]
BASE_ITERATOR, BASE_BATCH_ITERATOR, BASE_WRITER = (final.__base__ for final in CLASSES)


# The classes -----------------------------------------------------------------------------------


def test_final_classes_override_their_base_class_methods():
    """If the final classes cannot be made, their bases take their place, and everything works, but more slowly."""
    names = ["__next__", "__next__", "append"]
    modules = ["cordwood._native", "cordwood._native", "cordwood"]
    for final, name, module in zip(CLASSES, names, modules, strict=True):
        assert [vars(base).get("__module__") for base in final.__mro__] == [module, module, None]
        assert vars(final)[name] is not vars(final.__base__)[name]
        assert vars(final)[name].__objclass__ is final


def test_readers_and_writers_are_instances_of_the_final_classes(tmp_path):
    with cordwood.open(FILE) as reader, cordwood.open(tmp_path / "some.log", "x") as writer:
        assert type(iter(reader)) is type(reader.records()) is type(ITERATOR(reader, False)) is ITERATOR
        assert type(BATCH_ITERATOR(first_batch())) is BATCH_ITERATOR
        assert type(writer) is cordwood.Writer
    with cordwood.Writer(io.BytesIO()) as writer:
        assert type(writer) is cordwood.Writer


@pytest.mark.parametrize("final", CLASSES)
def test_the_final_class_has_the_attributes_of_its_base_class(final):
    base = final.__base__
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__text_signature__", "__basicsize__"):
        assert getattr(final, name) == getattr(base, name) is not None, name
    assert repr(final) == repr(base) == f"<class '{final.__module__}.{final.__name__}'>"
    assert inspect.signature(final) == inspect.signature(base)
    # They have the same attributes, except for those that Python may have cached.
    assert vars(final).keys() >= vars(base).keys()
    assert vars(final).keys() - vars(base).keys() <= {"__slotnames__"}
    for name, own in vars(final).items():
        if callable(own) and name != "__new__":
            assert inspect.signature(own) == inspect.signature(vars(base)[name]), name
            assert own.__doc__ == vars(base)[name].__doc__, name
            assert own.__qualname__ == f"{final.__name__}.{name}"
    assert final.__new__.__self__ is final


@pytest.mark.parametrize("final", CLASSES)
def test_the_final_class_cannot_be_subclassed(final):
    with pytest.raises(TypeError, match=f"type '{final.__module__}.{final.__name__}' is not an acceptable base type"):
        type("Derived", (final,), {})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_final_class_can_be_pickled(protocol):
    assert pickle.loads(pickle.dumps(cordwood.Writer, protocol)) is cordwood.Writer  # noqa: S301 - our own


@pytest.mark.parametrize("final", CLASSES)
def test_every_object_holds_a_reference_to_its_class(final):
    batch = first_batch()

    def make():
        reader = cordwood.Reader(FILE)
        makers = {
            ITERATOR: lambda: iter(reader),
            BATCH_ITERATOR: lambda: iter(batch),
            cordwood.Writer: lambda: cordwood.Writer(io.BytesIO()),
        }
        value = makers[final]()
        assert gc.is_tracked(value)
        assert final in gc.get_referents(value)
        assert final is not ITERATOR or reader in gc.get_referents(value)
        if final is cordwood.Writer:
            value.close()

    make()
    gc.collect()
    before = [sys.getrefcount(counted) for counted in (final, final.__base__)]
    for _ in range(100):
        make()
    gc.collect()
    after = [sys.getrefcount(counted) for counted in (final, final.__base__)]
    # Other objects of the classes may have been freed meanwhile.
    assert all(new <= old for new, old in zip(after, before, strict=True))


# Reading ---------------------------------------------------------------------------------------


def steps_of(step, iterate, reader):
    """Each record with the position after it, then how reading ended."""
    records, iterator = [], iterate(reader)
    while True:
        try:
            record = step(iterator)
        except StopIteration:
            return records, reader.outcome, reader.skipped
        except cordwood.CorruptionError as error:
            return records, str(error), error.offset
        records.append((record, reader.tell()))


@pytest.mark.parametrize("on_corruption", ["raise", "skip", "salvage", "stop"])
@pytest.mark.parametrize("file", DAMAGE)
def test_fast_and_slow_next_return_the_same_records_and_errors(file, on_corruption):
    ways = [(next, iter), (ITERATOR.__next__, iter), (BASE_ITERATOR.__next__, iter)]
    ways.append((next, lambda reader: reader))
    fast, *others = (steps_of(*way, cordwood.open(file, on_corruption=on_corruption)) for way in ways)
    # Not in the assert: pytest would take minutes to show how they differ.
    is_same = others == [fast] * 3
    assert is_same
    fast, base = (
        steps_of(step, cordwood.Reader.records, cordwood.open(file, on_corruption=on_corruption))
        for step in (next, BASE_ITERATOR.__next__)
    )
    assert (fast[0] == base[0], fast[1:]) == (True, base[1:])


def test_fast_and_slow_calls_share_the_same_position():
    with cordwood.open(FILE) as reader:
        one, other = iter(reader), iter(reader)
        assert one is not other
        ways = [lambda: next(one), lambda: next(other), lambda: BASE_ITERATOR.__next__(one), lambda: next(reader)]
        is_same = [ways[number % 4]() for number in range(len(RECORDS))] == RECORDS
    assert is_same


def test_next_on_a_closed_reader_raises_an_error():
    reader = cordwood.open(FILE)
    iterator = iter(reader)
    assert next(iterator) == RECORDS[0]
    reader.close()
    for step in (next, ITERATOR.__next__, BASE_ITERATOR.__next__):
        with pytest.raises(ValueError, match="the reader is closed"):
            step(iterator)
    for step in (next, iter):
        with pytest.raises(ValueError, match="the reader is closed"):
            step(reader)


@pytest.mark.parametrize(
    "step", [next, BATCH_ITERATOR.__next__, BASE_BATCH_ITERATOR.__next__], ids=["next", "final", "base"]
)
def test_next_returns_the_records_of_a_batch_one_at_a_time(step):
    batch = first_batch()
    one, other = iter(batch), iter(batch)
    # The records stay in memory as long as there is an iterator.
    del batch
    assert iter(one) is one
    is_same = [(step(one), step(other)) for _ in RECORDS] == [(record, record) for record in RECORDS]
    assert is_same
    for _ in range(3):
        with pytest.raises(StopIteration):
            step(one)


# Writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flush", ["append", "close"])
def test_fast_and_slow_append_write_the_same_bytes(tmp_path, flush):
    expected = reference.record_offsets(RECORDS)
    for number, append in enumerate(
        [
            cordwood.Writer.append,
            BASE_WRITER.append,
            lambda writer, record: writer.append(record),
            lambda writer, record: writer.append(record, sync=False),
            lambda writer, record: cordwood.Writer.append(writer, record, sync=False),
        ],
    ):
        path = tmp_path / f"{number}.log"
        with cordwood.open(path, "x", flush=flush) as writer:
            offsets = [append(writer, record) for record in RECORDS]
        is_same = (offsets, path.read_bytes()) == (expected, FILE)
        assert is_same, number


def test_fast_append_accepts_other_buffers_and_sinks(tmp_path):
    class Bytes(bytes):
        pass

    with cordwood.open(tmp_path / "some.log", "x") as writer:
        for record in (b"abc", Bytes(b"abc"), bytearray(b"abc"), memoryview(b"abc")):
            writer.append(record)
    assert (tmp_path / "some.log").read_bytes() == reference.encode([b"abc"] * 4)
    with (tmp_path / "other.log").open("xb") as file, cordwood.Writer(file) as writer:
        assert [writer.append(b"abc") for _ in range(3)] == [0, 10, 20]
    assert (tmp_path / "other.log").read_bytes() == reference.encode([b"abc"] * 3)


def test_a_fast_append_is_synced_on_request(tmp_path):
    with cordwood.open(tmp_path / "some.log", "x") as writer:
        writer.append(b"abc")
        assert writer.durable_offset == 0
        writer.append(b"abc", sync=True)
        assert writer.durable_offset == 20
    with cordwood.open(tmp_path / "other.log", "x", sync="append") as writer:
        writer.append(b"abc")
        assert writer.durable_offset == 10


def raised(call, *arguments, **keywords):
    with pytest.raises((TypeError, ValueError)) as info:
        call(*arguments, **keywords)
    return info.type, str(info.value)


def test_fast_append_rejects_the_same_arguments_as_the_base_class(tmp_path):
    writer = cordwood.open(tmp_path / "some.log", "x")
    for arguments, keywords in [
        ((), {}),
        ((b"a", b"b"), {}),
        ((b"a",), {"none": 1}),
        ((b"a",), {"sync": 3}),
        ((b"a", b"b", b"c"), {"sync": True, "none": 1}),
        ((), {"record": b"a"}),
        (("a",), {}),
        ((None,), {}),
    ]:
        error = raised(BASE_WRITER.append, writer, *arguments, **keywords)
        assert raised(writer.append, *arguments, **keywords) == error
        assert error[0] is TypeError
    assert writer.tell() == 0
    writer.close()
    for keywords in ({}, {"sync": False}):
        message = f"{tmp_path / 'some.log'}: the writer is closed"
        assert raised(writer.append, b"a", **keywords) == (cordwood.ClosedError, message)


# Common assumptions ----------------------------------------------------------------------------


def test_the_fast_paths_reject_objects_of_other_classes(tmp_path):
    """The fast paths access the object's memory without checking its type: Python has to check it."""
    base_writer, base_iterator = BASE_WRITER(tmp_path / "base.log"), BASE_ITERATOR(cordwood.open(FILE), False)
    with cordwood.open(tmp_path / "some.log", "x") as writer, cordwood.open(FILE) as reader:
        for wrong in (object(), b"abc", reader, base_writer):
            with pytest.raises(TypeError):
                cordwood.Writer.append(wrong, b"abc")
        for wrong in (object(), b"abc", writer, reader, base_iterator):
            for final in (ITERATOR, BATCH_ITERATOR):
                with pytest.raises(TypeError):
                    final.__next__(wrong)
        for wrong in (object(), b"abc", writer, base_iterator):
            with pytest.raises(TypeError):
                ITERATOR(wrong, False)
        derived = type("Derived", (BASE_ITERATOR,), {"__next__": ITERATOR.__next__})
        with pytest.raises(TypeError):
            next(derived(reader, False))
    assert (base_writer.tell(), next(base_iterator)) == (0, RECORDS[0])
    base_writer.close()


def test_the_module_can_be_imported_again(tmp_path):
    code = f"""
import sys, cordwood
first = cordwood.open({str(tmp_path / "some.log")!r}, "x")
for name in [name for name in sys.modules if name.startswith("cordwood")]:
    del sys.modules[name]
import cordwood
first.append(b"one")
first.append(b"two", sync=True)
first.close()
print(list(cordwood.open({str(tmp_path / "some.log")!r})))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert (result.stdout, result.stderr) == ("[b'one', b'two']\n", "")
