"""The history of SwanLab runs, compared with their JSON and with SwanLab's own messages."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import naive_swanlab
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from naive_json import NaiveError
from swanlab.proto.swanlab.metric.data.v1.data_pb2 import MediaRecord, ScalarRecord, ScalarValue
from swanlab.proto.swanlab.record.v1.record_pb2 import Record
from swanlab.proto.swanlab.terminal.v1.log_pb2 import LogRecord

import cordwood
from cordwood.errors import PayloadError
from cordwood.payload import swanlab

DAY, MINUTE = timedelta(hours=23, minutes=59), timedelta(minutes=1)
VECTORS = Path(__file__).parents[1] / "vectors/swanlab"


def scalar(**fields):
    metric = {"index": 0, "data": 0.5} | {name: fields.pop(name) for name in ("data", "create_time") if name in fields}
    data = {"metric": metric, "key": "loss", "step": 0, "epoch": 1} | fields
    return (json.dumps({"model_type": "Scalar", "data": data}) + "\n").encode()


@pytest.mark.parametrize("name", ["run-0.6.4.swanlab", "run-0.7.10.swanlab"])
def test_the_history_of_a_swanlab_run_stored_as_json_is_decoded(name):
    rows = [row for row in map(swanlab.history_row, cordwood.open(VECTORS / "releases" / name)) if row]
    assert rows == [
        {"key": "loss", "step": step, "epoch": step + 1, "value": 1 / (step + 1), "time": None} for step in range(4)
    ]


def test_a_swanlab_scalar_in_json_decodes_to_its_values():
    row = swanlab.history_row(scalar(create_time="2025-06-05T18:32:00.500000+02:00", step=7, key="ä/b"))
    time = datetime(2025, 6, 5, 16, 32, 0, 500_000, tzinfo=UTC)
    assert row == {"key": "ä/b", "step": 7, "epoch": 1, "value": 0.5, "time": time}
    assert swanlab.history_row(scalar(create_time="2025-06-05T16:32:00+00:00"))["time"].second == 0
    for text, number in (
        ("NaN", math.nan),
        ("INF", math.inf),
        (float("nan"), math.nan),
        (-math.inf, -math.inf),
        (2**60, 2.0**60),
    ):
        value = swanlab.history_row(scalar(data=text))["value"]
        assert isinstance(value, float)
        assert value == number or (math.isnan(value) and math.isnan(number))


@pytest.mark.parametrize(
    "fields",
    [
        {"step": "1"},
        {"step": 2**63},
        {"step": True},
        {"epoch": 1.5},
        {"key": None},
        {"data": "x"},
        {"data": "1_0"},
        {"data": "1"},
        {"data": True},
        {"data": 2**53 + 1},
        {"data": None},
        {"data": [1]},
        {"data": 10**400},
        {"metric": 1},
        {"metric": {}},
        {"create_time": "2025-06-05T16:32:00"},
        {"create_time": "yesterday"},
        {"create_time": 1.5},
        {"create_time": "0001-01-01T00:00:00+09:00"},
    ],
)
def test_an_unknown_form_of_swanlab_scalar_raises_an_error(fields):
    with pytest.raises(PayloadError, match="a scalar in a form that no release writes"):
        swanlab.history_row(scalar(**fields))


@pytest.mark.parametrize(
    "record", [b"{", b"{}x", b'{"a":1,"a":2}', b"\xff", b"\x6a\x02\x08\x01", b"\x6a\x03\x0a\x01\xff"]
)
def test_a_record_that_swanlab_would_not_write_raises_an_error(record):
    with pytest.raises(PayloadError):
        swanlab.history_row(record)


def test_swanlab_records_of_other_kinds_produce_no_history_row():
    for record in b"", b"{}", b'{"model_type": "Header", "data": {}}':
        assert swanlab.history_row(record) is None
    assert swanlab.history_row(Record(num=1, media=MediaRecord(key="a")).SerializeToString()) is None
    assert swanlab.history_row(Record(log=LogRecord()).SerializeToString()) is None


ANY = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats()
    | st.sampled_from(["", "NaN", "INF", "1", "x"])
)
CLOCK = st.times(
    timezones=st.just(UTC) | st.timedeltas(-DAY, DAY).map(lambda offset: timezone(offset - offset % MINUTE))
)
WHEN = st.builds(
    lambda date, time, timespec: datetime.combine(date, time).isoformat("T", timespec),
    st.dates(),
    CLOCK,
    st.sampled_from(["auto", "seconds", "milliseconds"]),
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.text(max_size=3) | ANY,
            "step": st.integers(-5, 5) | ANY,
            "epoch": ANY,
            "metric": st.fixed_dictionaries({}, optional={"data": ANY, "create_time": WHEN | ANY}) | ANY,
        },
    )
)
def test_scalars_decoded_from_json_match_the_naive_decoder(data):
    record = json.dumps({"model_type": "Scalar", "data": data}).encode()
    naive, found = (value_or_reason(module.history_row, record) for module in (naive_swanlab, swanlab))
    # As text, NaN equals itself.
    assert repr(found) == repr(naive)


def value_or_reason(decode, record):
    try:
        return decode(record)
    except (PayloadError, NaiveError) as error:
        return error.reason


TIMES = st.builds(Timestamp, seconds=st.integers(-62135596800, 253402300799), nanos=st.integers(0, 999_999_999))
SCALARS = st.builds(
    ScalarRecord,
    key=st.text(max_size=5),
    step=st.integers(-(2**63), 2**63 - 1),
    type=st.integers(0, 9),
    timestamp=st.none() | TIMES,
    value=st.none() | st.builds(ScalarValue, number=st.floats(allow_nan=False)),
)


@given(st.integers(0, 9), TIMES, SCALARS)
def test_swanlab_messages_decode_to_their_values(number, time, message):
    row = swanlab.history_row(Record(num=number, timestamp=time, scalar=message).SerializeToString())
    when = message.timestamp.ToDatetime(UTC) if message.HasField("timestamp") else None
    expected = {"key": message.key, "step": message.step, "epoch": None, "value": message.value.number, "time": when}
    assert row == expected
