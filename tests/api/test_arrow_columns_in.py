"""`Writer.extend` with a column of Arrow, from the libraries that export one and from structures made by hand."""

import contextlib
import ctypes
import gc
import io
import random
import signal
import threading

import c_data
import pandas
import polars
import pyarrow
import pytest
import reference
from c_data import Array, Schema, copied, counted, pointed
from interrupts import Interrupt, after_work, raise_interrupt
from support import PAYLOAD

import cordwood

RECORDS = [b"one", b"", PAYLOAD[:70_000], b"exactly 12 b", b"13 bytes long", *[PAYLOAD[:at] for at in range(3_000)]]
BINARY_TYPES = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()]
TEXT_TYPES = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]


def log_of(column):
    """The log that `extend` makes of a column, and the result."""
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        count = writer.extend(column)
    return sink.getvalue(), count


class Exported:
    """An object that exports these capsules as an array."""

    def __init__(self, *capsules):
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema=None):
        return self._capsules


class Broken:
    """The array with a change to its structure, or to that of its schema."""

    def __init__(self, array, change):
        schema_capsule, array_capsule = array.__arrow_c_array__()
        self._kept = change(
            pointed(array_capsule, Array, b"arrow_array"), pointed(schema_capsule, Schema, b"arrow_schema")
        )
        self._capsules = schema_capsule, array_capsule

    def __arrow_c_array__(self, requested_schema=None):
        return self._capsules


@pytest.mark.parametrize("data_type", BINARY_TYPES, ids=str)
def test_an_arrow_array_writes_the_same_log_as_a_list(data_type):
    assert log_of(pyarrow.array(RECORDS, data_type)) == (reference.encode(RECORDS), len(RECORDS))


@pytest.mark.parametrize("data_type", TEXT_TYPES, ids=str)
def test_text_is_appended_as_utf8(data_type):
    texts = ["", "a", "größer als zwölf Bytes", "ein Wort 文字" * 5_000]
    assert log_of(pyarrow.array(texts, data_type))[0] == reference.encode([text.encode() for text in texts])


@pytest.mark.parametrize("data_type", BINARY_TYPES, ids=str)
def test_extend_with_an_array_slice_appends_only_that_slice(data_type):
    array = pyarrow.array(RECORDS, data_type)
    for start, end in [(0, 0), (1, 2), (3, 1_500), (len(RECORDS) - 1, len(RECORDS)), (len(RECORDS), len(RECORDS))]:
        assert log_of(array[start:end])[0] == reference.encode(RECORDS[start:end])


@pytest.mark.parametrize("data_type", BINARY_TYPES, ids=str)
def test_a_chunked_column_is_appended_in_order(data_type):
    column = pyarrow.chunked_array([RECORDS[:1], [], RECORDS[1:2_000], RECORDS[2_000:]], data_type)
    assert log_of(column) == (reference.encode(RECORDS), len(RECORDS))


@pytest.mark.parametrize("data_type", BINARY_TYPES, ids=str)
def test_extend_with_an_empty_column_appends_nothing(data_type):
    assert log_of(pyarrow.array([], data_type)) == (b"", 0)
    assert log_of(pyarrow.chunked_array([], data_type)) == (b"", 0)


def test_extend_accepts_polars_pandas_and_pyarrow_columns():
    for column in [
        polars.Series(RECORDS),
        pandas.Series(RECORDS, dtype=pandas.ArrowDtype(pyarrow.binary())),
        pyarrow.table({"record": RECORDS})["record"],
    ]:
        assert log_of(column) == (reference.encode(RECORDS), len(RECORDS))


def test_a_writer_can_append_the_records_of_a_scan(tmp_path):
    path, copy = tmp_path / "some.log", tmp_path / "copy.log"
    path.write_bytes(reference.encode(RECORDS))
    with cordwood.open(copy, "w") as writer:
        for batch in pyarrow.RecordBatchReader.from_stream(cordwood.scan(path, columns=["record"])):
            writer.extend(batch["record"])
    assert copy.read_bytes() == path.read_bytes()


def test_extend_accepts_readers_and_batches():
    file = reference.encode(RECORDS)
    assert log_of(cordwood.open(file)) == (file, len(RECORDS))
    [batch] = cordwood.open(file).record_batches(target_len=1 << 30)
    assert log_of(batch) == (file, len(RECORDS))


@pytest.mark.parametrize("options", [{}, {"flush": "close"}, {"sync_interval": 0}, {"dialect": "packed"}])
def test_a_column_can_be_appended_with_any_writer_options(tmp_path, options):
    path = tmp_path / "some.log"
    with cordwood.open(path, "w", **options) as writer:
        assert writer.extend(pyarrow.array(RECORDS)) == len(RECORDS)
    assert list(cordwood.open(path)) == RECORDS


def test_a_column_is_appended_to_a_segmented_log(tmp_path):
    with cordwood.open(tmp_path / "log", "a", segment_len=100_000) as writer:
        writer.extend(pyarrow.array(RECORDS))
    assert len(list((tmp_path / "log").iterdir())) > 10
    assert list(cordwood.open(tmp_path / "log")) == RECORDS


@pytest.mark.parametrize("data_type", BINARY_TYPES, ids=str)
@pytest.mark.parametrize("at", [0, 1, 7, 8, 2_500])
def test_the_error_for_a_null_includes_its_index_in_the_column(data_type, at):
    records = [*RECORDS[:at], None, *RECORDS[at:]]
    for column in [
        pyarrow.array(records, data_type),
        pyarrow.array([b"another", *records], data_type)[1:],
        pyarrow.chunked_array([records[: at // 2], records[at // 2 :]], data_type),
    ]:
        sink = io.BytesIO()
        with cordwood.open(sink, "w") as writer, pytest.raises(ValueError, match=f"index {at} of the column is null"):
            writer.extend(column)
        assert sink.getvalue() == reference.encode(RECORDS[:at])


def test_nulls_are_detected_even_without_a_null_count():
    def uncount(array, schema):
        array.null_count = -1

    with pytest.raises(ValueError, match="index 1 of the column is null"):
        log_of(Broken(pyarrow.array([b"one", None]), uncount))
    assert log_of(Broken(pyarrow.array([b"one", b"two"]), uncount))[1] == 2


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pyarrow.array([1, 2]), "not of the Arrow format 'l'"),
        (pyarrow.array([[b"one"]]), r"not of the Arrow format '\+l'"),
        (pyarrow.array(["a", "b"]).dictionary_encode(), "not a dictionary"),
        (pyarrow.table({"record": [b"one"]}), "not a table: pass one of its columns"),
        (pyarrow.record_batch({"record": [b"one"]}), "not a table: pass one of its columns"),
        (cordwood.scan(b""), "not a table: pass one of its columns"),
    ],
    ids=["numbers", "lists", "a dictionary", "a table", "a batch", "a scan"],
)
def test_a_writer_rejects_tables_and_columns_of_other_types(column, message):
    with pytest.raises(TypeError, match=message.replace("'", '"')):
        log_of(column)


def test_a_closed_writer_rejects_a_column():
    writer = cordwood.open(io.BytesIO(), "w")
    writer.close()
    with pytest.raises(cordwood.ClosedError):
        writer.extend(pyarrow.array([], pyarrow.binary()))


def test_extend_stops_at_a_record_that_is_too_long(tmp_path):
    with (
        cordwood.open(tmp_path / "some.log", "w", record_len_max=5) as writer,
        pytest.raises(cordwood.RecordTooLargeError),
    ):
        writer.extend(pyarrow.array([b"one", b"two", b"longer", b"four"]))
    assert list(cordwood.open(tmp_path / "some.log")) == [b"one", b"two"]


# Streams ---------------------------------------------------------------------------------------


class Stream:
    """A column of two arrays, whose stream is changed."""

    def __init__(self, change):
        column = pyarrow.chunked_array([[b"one", b"two"], [b"three"]])
        self._capsule = column.__arrow_c_stream__()
        self._kept = change(pointed(self._capsule, c_data.Stream, b"arrow_array_stream"))

    def __arrow_c_stream__(self, requested_schema=None):
        return self._capsule


def failing(name, errno, text):
    """A change: a callback fails, `get_next` when it is called the second time."""

    def change(stream):
        function = copied(getattr(stream, name))
        calls = []

        def fail(pointer, out):
            calls.append(out)
            return function(pointer, out) if name == "get_next" and len(calls) == 1 else errno

        kept = (
            type(function)(fail),
            type(stream.get_last_error)(lambda pointer: ctypes.cast(text, ctypes.c_void_p).value),
        )
        setattr(stream, name, kept[0])
        stream.get_last_error = kept[1]
        return kept

    return change


def test_a_failing_stream_raises_after_earlier_records_are_appended():
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer, pytest.raises(OSError, match="no more of it") as raised:
        writer.extend(Stream(failing("get_next", 5, b"no more of it")))
    assert raised.value.errno == 5
    assert list(cordwood.open(sink.getvalue())) == [b"one", b"two"]


def test_a_stream_that_fails_without_a_message_still_raises_an_error():
    with pytest.raises(OSError, match="the stream of records failed"):
        log_of(Stream(failing("get_schema", 22, None)))


def test_a_stream_that_runs_out_of_memory_raises_a_memory_error():
    with pytest.raises(MemoryError):
        log_of(Stream(failing("get_next", 12, b"too large")))


@pytest.mark.parametrize("name", ["get_schema", "get_next"])
def test_a_stream_that_lacks_a_callback_is_rejected(name):
    def change(stream):
        setattr(stream, name, type(getattr(stream, name))(0))

    with pytest.raises(ValueError, match=f"no function {name}"):
        log_of(Stream(change))


def test_each_structure_is_released_exactly_once_even_after_an_error():
    for records in ([b"one", b"two"], [b"one", None]):
        calls = []
        schema, array = pyarrow.array(records).__arrow_c_array__()
        kept = [
            counted(pointed(schema, Schema, b"arrow_schema"), calls),
            counted(pointed(array, Array, b"arrow_array"), calls),
        ]
        with contextlib.suppress(ValueError):
            log_of(Exported(schema, array))
        assert sorted(calls) == ["Array", "Schema"]
        del schema, array
        gc.collect()
        assert sorted(calls) == ["Array", "Schema"]
        del kept


class OnlyWrite:
    def write(self, data):
        pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
def test_ctrl_c_interrupts_appending_a_long_column():
    array = pyarrow.array([b"one"] * 1_000_000)
    column = pyarrow.chunked_array([array] * 10_000)
    writer = cordwood.open(OnlyWrite(), "w")
    with after_work(0.2, raise_interrupt), pytest.raises(Interrupt):
        writer.extend(column)
    # If it was raised in `write`, the writer has failed.
    with contextlib.suppress(OSError):
        writer.close()


def test_an_exception_raised_by_the_column_object_propagates_unchanged():
    class Failing:
        def __arrow_c_stream__(self, requested_schema=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        log_of(Failing())


def test_an_object_that_returns_no_capsule_is_rejected():
    with pytest.raises(TypeError):
        log_of(Exported(1, 2))
    schema, array = pyarrow.array([b"one"]).__arrow_c_array__()
    with pytest.raises(ValueError, match="incorrect name"):
        log_of(Exported(array, schema))


def test_a_consumed_capsule_is_rejected():
    exported = Exported(*pyarrow.array([b"one"]).__arrow_c_array__())
    assert log_of(exported)[1] == 1
    with pytest.raises(ValueError, match="used before"):
        log_of(exported)


def test_threads_that_append_columns_to_one_writer_do_not_lose_records():
    sink = io.BytesIO()
    columns = [pyarrow.array([b"%d %d" % (thread, number) for number in range(5_000)]) for thread in range(4)]
    with cordwood.open(sink, "w") as writer:
        threads = [threading.Thread(target=writer.extend, args=(column,)) for column in columns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(cordwood.open(sink.getvalue())) == sorted(record.as_py() for column in columns for record in column)


# Structures made by hand -----------------------------------------------------------------------


def offsets_of(data_type, *offsets):
    """A change: the array has these offsets."""

    def change(array, schema):
        number = ctypes.c_int64 if data_type == pyarrow.large_binary() else ctypes.c_int32
        kept = (number * len(offsets))(*offsets)
        array.buffers[1] = ctypes.addressof(kept)
        return kept

    return change


@pytest.mark.parametrize("data_type", BINARY_TYPES[:2], ids=str)
@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ((0, 3, 2, 6), "index 1 of the column is not within"),
        ((0, 7, 6, 6), "index 0 of the column is not within"),
        ((-1, 3, 6, 6), "index 0 of the column is not within"),
        ((0, -3, 6, 6), "index 0 of the column is not within"),
        ((4, 3, 6, 6), "index 0 of the column is not within"),
        ((0, 3, 6, -1), "last offset of an array is negative"),
    ],
)
def test_decreasing_or_out_of_range_offsets_are_rejected(data_type, offsets, message):
    array = pyarrow.array([b"one", b"two", b""], data_type)
    with pytest.raises(ValueError, match=message):
        log_of(Broken(array, offsets_of(data_type, *offsets)))


def test_the_first_offset_can_be_greater_than_zero():
    array = pyarrow.array([b"one", b"two", b""])
    assert list(cordwood.open(log_of(Broken(array, offsets_of(array.type, 1, 3, 5, 6)))[0])) == [b"ne", b"tw", b"o"]


def unaligned(array, schema):
    kept = ctypes.create_string_buffer(b"\0" + b"".join(n.to_bytes(4, "little") for n in (0, 3, 6, 6)))
    array.buffers[1] = ctypes.addressof(kept) + 1
    return kept


def test_unaligned_offsets_are_accepted():
    array = pyarrow.array([b"one", b"two", b""])
    assert list(cordwood.open(log_of(Broken(array, unaligned))[0])) == [b"one", b"two", b""]


def setting(name, value):
    def change(array, schema):
        setattr(array, name, value)

    return change


def without_buffer(index):
    def change(array, schema):
        array.buffers[index] = None

    return change


@pytest.mark.parametrize("data_type", [*BINARY_TYPES, *TEXT_TYPES], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        setting("length", -1),
        setting("length", (1 << 63) - 1),
        setting("offset", -1),
        setting("offset", (1 << 63) - 1),
        setting("n_buffers", 2),
        setting("n_buffers", -1),
        setting("buffers", None),
        without_buffer(1),
    ],
    ids=[
        "length below 0",
        "huge length",
        "offset below 0",
        "huge offset",
        "two buffers",
        "buffers below 0",
        "no buffers",
        "no offsets",
    ],
)
def test_invalid_counts_and_buffers_are_rejected(data_type, change):
    with pytest.raises(ValueError, match="not valid Arrow"):
        log_of(Broken(pyarrow.array(["one", "two"]).cast(data_type), change))


def test_nulls_without_a_bitmap_and_records_without_data_are_rejected():
    with pytest.raises(ValueError, match="lacks a buffer"):
        log_of(Broken(pyarrow.array([b"one"]), setting("null_count", 1)))
    with pytest.raises(ValueError, match="index 0 of the column is not within"):
        log_of(Broken(pyarrow.array([b"one"]), without_buffer(2)))


def test_a_schema_without_a_format_is_rejected():
    def change(array, schema):
        schema.format = None

    with pytest.raises(ValueError, match="no format"):
        log_of(Broken(pyarrow.array([b"one"]), change))


def view(length, index, offset):
    return b"".join(number.to_bytes(4, "little", signed=True) for number in (length, 0, index, offset))


@pytest.mark.parametrize(
    "bad", [view(-1, 0, 0), view(20, 1, 0), view(20, -1, 0), view(20, 0, -1), view(20, 0, 1), view((1 << 31) - 1, 0, 0)]
)
def test_views_outside_their_buffer_are_rejected(bad):
    """Its one buffer is 20 bytes long."""

    def change(array, schema):
        kept = ctypes.create_string_buffer(view(20, 0, 0) + bad, 32)
        array.buffers[1] = ctypes.addressof(kept)
        return kept

    array = pyarrow.array([b"20 bytes in a buffer", b"short"], pyarrow.binary_view())
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer, pytest.raises(ValueError, match="index 1 of the column is not within"):
        writer.extend(Broken(array, change))
    assert list(cordwood.open(sink.getvalue())) == [b"20 bytes in a buffer"]


def test_a_column_with_random_offsets_is_either_appended_or_rejected():
    random_numbers = random.Random(1)
    data = PAYLOAD[:50]
    array = pyarrow.array([data[:10]] * 4 + [data[:10]])
    for _ in range(2_000):
        offsets = [random_numbers.choice([-1, 0, 1, 10, 49, 50, 51, random_numbers.randrange(51)]) for _ in range(6)]
        fall = next((at for at in range(5) if not 0 <= offsets[at] <= offsets[at + 1] <= offsets[5]), None)
        sink = io.BytesIO()
        with cordwood.open(sink, "w") as writer:
            if offsets[5] <= 50 and (offsets[5] < 0 or fall is not None):
                with pytest.raises(ValueError, match=r"not within|negative"):
                    writer.extend(Broken(array, offsets_of(array.type, *offsets)))
            elif offsets[5] <= 50:
                assert writer.extend(Broken(array, offsets_of(array.type, *offsets))) == 5
