"""Bytes that were computed once, by programs other than this one."""

import hashlib
import io
import random

import crc32c as pypi_crc32c
import pytest
from support import written

import cordwood

# The example in LevelDB's doc/log_format.md.
A, B, C = b"a" * 1000, b"b" * 97270, b"c" * 8000
ABC_SHA256 = "978db1f41c6ccc2bd1a2bee31f9307ea905f09ba066c9e8b2a8cfd2cac0049a9"
ABC_HEADERS = {
    0: "34 47 de 97 e8 03 01",  # FULL
    1007: "c4 36 75 71 0a 7c 02",  # FIRST
    32768: "f5 b6 29 97 f9 7f 03",  # MIDDLE
    65536: "1c 51 d6 9b f3 7f 04",  # LAST
    98298: "00 00 00 00 00 00",  # trailer
    98304: "8f aa 51 d5 40 1f 01",  # FULL
}

EMPTY_FULL = bytes.fromhex("05 2b 28 43 00 00 01")
EMPTY_FIRST = bytes.fromhex("64 51 d0 e9 00 00 02")
EMPTY_MIDDLE = bytes.fromhex("33 6d cd e3 00 00 03")
EMPTY_LAST = bytes.fromhex("a7 16 20 2b 00 00 04")
FULL_FOO = bytes.fromhex("dd 5f b3 7a 03 00 01 66 6f 6f")
FULL_BAR = bytes.fromhex("ba ea ec 44 03 00 01 62 61 72")
LAST_BAR = bytes.fromhex("05 9e 81 37 03 00 04 62 61 72")

# The CRC-32C of each type byte on its own.
CRC_OF_KIND = [
    *(0x527D5351, 0xA016D052, 0xB34623A6, 0x412DA0A5, 0x95E7C44E, 0x678C474D, 0x74DCB4B9),
    *(0x86B737BA, 0xD8A40B9E, 0x2ACF889D, 0x399F7B69, 0xCBF4F86A, 0x1F3E9C81),
]


def test_the_example_of_the_format_document_is_written():
    file = written([A, B, C])
    assert len(file) == 106_311
    for offset, header in ABC_HEADERS.items():
        expected = bytes.fromhex(header)
        assert file[offset : offset + len(expected)] == expected
    assert hashlib.sha256(file).hexdigest() == ABC_SHA256


def test_the_example_of_the_format_document_is_read():
    payloads = {0: A, 1007: b"b" * 31754, 32768: b"b" * 32761, 65536: b"b" * 32755, 98298: b"", 98304: C}
    file = b"".join(bytes.fromhex(ABC_HEADERS[offset]) + payload for offset, payload in payloads.items())
    assert hashlib.sha256(file).hexdigest() == ABC_SHA256
    with cordwood.open(file) as reader:
        records = [(record.offset, record.end_offset, record.data) for record in reader.records()]
        assert records == [(0, 1007, A), (1007, 98298, B), (98304, 106_311, C)]
        assert reader.skipped == ()
        assert (reader.outcome.kind, reader.outcome.offset) == ("clean", 106_311)


@pytest.mark.parametrize(
    ("records", "file"),
    [
        ([], b""),
        ([b""], EMPTY_FULL),
        ([b"foo"], FULL_FOO),
        ([b"", b"foo", b""], EMPTY_FULL + FULL_FOO + EMPTY_FULL),
    ],
)
def test_short_records(records, file):
    assert written(records) == file
    assert list(cordwood.open(file)) == records


@pytest.mark.parametrize(
    ("records", "tail"),
    [
        ([b"bar"], EMPTY_FIRST + LAST_BAR),  # LevelDB's aside: exactly seven bytes are left in the block.
        ([b"", b"bar"], EMPTY_FULL + FULL_BAR),
    ],
)
def test_seven_bytes_left_in_the_block(records, tail):
    filler = bytes(32_761 - 7)
    file = written([filler, *records])
    assert file[32_761:] == tail
    assert list(cordwood.open(file)) == [filler, *records]


@pytest.mark.parametrize("left", range(1, 7))
def test_the_trailer_is_zeros_and_written_only_when_a_record_follows(left):
    filler = bytes(32_768 - left - 7)
    assert len(written([filler])) == 32_768 - left
    assert written([filler, b"foo"])[32_768 - left :] == bytes(left) + FULL_FOO


def test_empty_fragments_of_any_kind_are_read():
    file = EMPTY_FIRST + EMPTY_MIDDLE + EMPTY_LAST + EMPTY_FULL
    assert list(cordwood.open(file)) == [b"", b""]


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        # RFC 3720, B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"\x01foo", 0x3A82EC18),
        *((bytes([kind]), crc) for kind, crc in enumerate(CRC_OF_KIND)),
    ],
)
def test_crc32c(data, crc):
    assert cordwood.crc32c(data) == crc


@pytest.mark.parametrize(
    ("crc", "masked"),
    [
        (0, 0xA282EAD8),
        (0x8A942EBE, 0),
        (0xAE2E7AAD, 0x97DE4734),
        (0x25F66779, 0x717536C4),
        (0x660EFA53, 0x9729B6F5),
        (0xB3227CA9, 0x9BD6511C),
        (0x5FDB9967, 0xD551AA8F),
    ],
)
def test_mask(crc, masked):
    assert cordwood.mask_crc(crc) == masked
    assert cordwood.unmask_crc(masked) == crc


def test_crc32c_is_that_of_the_pypi_package():
    data = random.Random(1).randbytes(70_000)
    for len_ in [*range(5_000), 32_761, 65_535, 65_536, 69_000]:
        for begin in (0, 1, 7):
            piece = data[begin : begin + len_]
            assert cordwood.crc32c(piece) == pypi_crc32c.crc32c(piece), (begin, len_)


def test_crc32c_continues_from_the_crc_of_the_bytes_before():
    data = random.Random(2).randbytes(5_000)
    for cut in [0, 1, 63, 64, 65, 1000, 4999, 5000]:
        assert cordwood.crc32c(data[cut:], cordwood.crc32c(data[:cut])) == pypi_crc32c.crc32c(data)
        assert cordwood.crc32c(data[cut:], crc=123) == pypi_crc32c.crc32c(data[cut:], 123)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_crc32c_takes_any_buffer(kind):
    assert cordwood.crc32c(kind(b"123456789")) == 0xE3069283


def test_the_writer_starts_a_new_log_at_the_position_of_an_object():
    sink = io.BytesIO(b"header")
    sink.seek(0, io.SEEK_END)
    with cordwood.Writer(sink) as writer:
        assert writer.append(b"foo") == 0
    assert sink.getvalue() == b"header" + FULL_FOO
