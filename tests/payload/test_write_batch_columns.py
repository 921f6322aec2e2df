"""Tables of write batches: those that `convert` writes must equal those of the naive counterpart."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive_rows import OPERATIONS
from write_batch import varint

table_pairs = pytest.importorskip("table_pairs")

fields = st.binary(max_size=3) | st.sampled_from([b"", b"key", "ä".encode(), b'"', b"\xff", b"x" * 200])


@st.composite
def operations(draw):
    tag = draw(st.sampled_from([*OPERATIONS]))
    out = bytes([tag])
    for name in OPERATIONS[tag][1:]:
        data = draw(fields)
        out += varint(draw(st.integers(1, 300))) if name == "column_family" else varint(len(data)) + data
    return out, tag != 3


@st.composite
def batches(draw):
    found = draw(st.lists(operations(), max_size=4))
    count = sum(is_counted for _, is_counted in found) + draw(st.sampled_from([0, 0, 0, 0, 1]))
    sequence = draw(st.integers(0, 2**40))
    record = struct.pack("<QI", sequence, count) + b"".join(operation for operation, _ in found)
    # Some end too early, or have an operation with a tag that no engine knows.
    return draw(st.sampled_from([record, record, record, record[:-1], record[:14], record + b"\x7f", b""]))


@given(st.lists(batches(), max_size=6))
@example([])
@example([struct.pack("<QI", 7, 1) + b"\x01\x01a\x01b", struct.pack("<QI", 8, 0)])
# The first record is also a version edit, with a field that can be ignored.
@example([bytes.fromhex("80cf3c08 00000000 01000000"), bytes(11)])
def test_write_batch_tables_match_the_naive_decoder(records):
    table_pairs.check_converted("write-batch", records)
