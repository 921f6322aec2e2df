"""Bytes that were computed once, by programs other than this one."""

import io
import random

import crc32c as pypi_crc32c
import pytest

import cordwood

FULL_FOO = bytes.fromhex("dd 5f b3 7a 03 00 01 66 6f 6f")
# The CRC-32C of each type byte on its own.
CRC_OF_KIND = [
    *(0x527D5351, 0xA016D052, 0xB34623A6, 0x412DA0A5, 0x95E7C44E, 0x678C474D, 0x74DCB4B9),
    *(0x86B737BA, 0xD8A40B9E, 0x2ACF889D, 0x399F7B69, 0xCBF4F86A, 0x1F3E9C81),
]


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
def test_crc32c_matches_known_checksums(data, crc):
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
def test_masked_and_unmasked_checksums_match_known_values(crc, masked):
    assert cordwood.mask_crc(crc) == masked
    assert cordwood.unmask_crc(masked) == crc


def test_crc32c_matches_the_pypi_package():
    data = random.Random(1).randbytes(70_000)
    for len_ in [*range(5_000), 32_761, 65_535, 65_536, 69_000]:
        for start in (0, 1, 7):
            piece = data[start : start + len_]
            assert cordwood.crc32c(piece) == pypi_crc32c.crc32c(piece), (start, len_)


def test_crc32c_can_continue_from_the_crc_of_the_preceding_bytes():
    data = random.Random(2).randbytes(5_000)
    for cut in [0, 1, 63, 64, 65, 1000, 4999, 5000]:
        assert cordwood.crc32c(data[cut:], cordwood.crc32c(data[:cut])) == pypi_crc32c.crc32c(data)
        assert cordwood.crc32c(data[cut:], crc=123) == pypi_crc32c.crc32c(data[cut:], 123)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_crc32c_accepts_any_buffer(kind):
    assert cordwood.crc32c(kind(b"123456789")) == 0xE3069283


def test_a_writer_starts_a_log_at_the_position_of_the_file_object():
    sink = io.BytesIO(b"header")
    sink.seek(0, io.SEEK_END)
    with cordwood.Writer(sink) as writer:
        assert writer.append(b"foo") == 0
    assert sink.getvalue() == b"header" + FULL_FOO
