"""Logs drawn by Hypothesis: undamaged ones, random fragments, and damaged ones, with options for reading them."""

import random

import reference
from hypothesis import strategies as st
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN, LAST, MIDDLE
from support import PAYLOAD, start_of

record_lens = st.one_of(
    st.integers(0, 40),
    st.integers(0, 3_000),
    st.integers(BLOCK_LEN - 60, BLOCK_LEN + 20),
    st.integers(0, 3 * BLOCK_LEN),
)


@st.composite
def plain_records(draw):
    length = draw(record_lens)
    start = draw(st.integers(0, 1000))
    return PAYLOAD[start : start + length]


# Some payloads look like other data: zeros, and logs within logs.
records = st.one_of(
    plain_records(),
    plain_records(),
    st.builds(bytes, st.integers(0, 200)),
    st.builds(reference.encode, st.lists(plain_records(), max_size=3)),
)


@st.composite
def many_short_records(draw):
    """The usual log, with hundreds of records in a block."""
    length_max = draw(st.integers(0, 300))
    starts = random.Random(draw(st.integers(0, 1000)))
    return [
        PAYLOAD[start : start + start % (length_max + 1)]
        for start in (starts.randrange(10_000) for _ in range(draw(st.integers(0, 600))))
    ]


record_lists = st.one_of(st.lists(records, max_size=8), many_short_records())


@st.composite
def fragment_soups(draw):
    """Fragments of any kind in any order, with valid and invalid checksums, and all bytes that may be between them."""
    file = bytearray()
    kinds = st.one_of(st.sampled_from([FULL, FIRST, MIDDLE, LAST]), st.integers(0, 255))
    for _ in range(draw(st.integers(0, 20))):
        left = BLOCK_LEN - len(file) % BLOCK_LEN
        what = draw(st.sampled_from(["short"] * 3 + ["fill"] * 2 + ["run", "block end", "zeros", "bytes"]))
        if what in ("short", "fill") and left >= HEADER_LEN:
            length = draw(st.integers(0, 20)) if what == "short" else left - HEADER_LEN - draw(st.integers(0, 20))
            length = max(0, min(length, left - HEADER_LEN))
            part = bytearray(reference.fragment(draw(kinds), PAYLOAD[len(file) : len(file) + length]))
            if draw(st.integers(0, 9)) == 0:
                part[draw(st.integers(0, 3))] ^= 1
            file += part
        elif what == "run":
            file += b"".join(reference.fragment(FULL, b"run"[: index % 4]) for index in range(draw(st.integers(1, 40))))
        elif what == "zeros":
            file += bytes(draw(st.sampled_from([1, 6, 7, 100, left])))
        elif what == "bytes":
            file += draw(st.binary(max_size=20))
        else:
            file += bytes([draw(st.sampled_from([0, 0, 0, 1]))]) * (left if left < 20 else 0)
    return bytes(file)


@st.composite
def smashed_logs(draw):
    """Short records, some of them logs; damage at headers and in payloads; perhaps a cut or zeros at the end."""
    lens = st.lists(st.integers(0, 9), max_size=3)
    short = st.one_of(
        st.integers(0, 60).map(lambda length: PAYLOAD[length : 2 * length]),
        lens.map(lambda lens: reference.encode([PAYLOAD[:length] for length in lens])),
    )
    records = draw(st.lists(short, min_size=1, max_size=25))
    if draw(st.booleans()):
        records.insert(
            draw(st.integers(0, len(records))), PAYLOAD[: draw(st.integers(BLOCK_LEN - 100, BLOCK_LEN + 100))]
        )
    file = bytearray(reference.encode(records))
    headers = [item.start for item in reference.fragments(bytes(file), verify_checksums=False)]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.sampled_from(headers)) + draw(st.sampled_from([0, 0, 0, 4, 5, 6, 7, 8]))
        new = draw(st.sampled_from([b"", b"\0" * 7, b"\xff" * 7, b"\0\0", b"\x01", b"junk and more junk"]))
        if start < len(file):
            file[start] ^= 1 << draw(st.integers(0, 7))
        file[start : start + len(new)] = new[: max(0, len(file) - start)]
    if draw(st.booleans()):
        del file[len(file) - draw(st.integers(0, min(len(file), 80))) :]
    if draw(st.booleans()):
        file += bytes(draw(st.integers(0, 100)))
    return bytes(file)


@st.composite
def damaged_logs(draw):
    """A valid log, damaged in one to four ways."""
    file = bytearray(reference.encode(draw(record_lists)))
    for _ in range(draw(st.integers(1, 4))):
        if file:
            draw(st.sampled_from(DAMAGES))(draw, file)
    return bytes(file)


def some_header(draw, file):
    """The offset of some fragment's header, if any is left."""
    items = list(reference.fragments(bytes(file), verify_checksums=False))
    return min(draw(st.sampled_from(items)).start if items else 0, max(0, len(file) - HEADER_LEN))


def flip_a_bit(draw, file):
    file[draw(st.integers(0, len(file) - 1))] ^= 1 << draw(st.integers(0, 7))


def flip_a_bit_of_a_header(draw, file):
    at = some_header(draw, file) + draw(st.integers(0, HEADER_LEN - 1))
    if at < len(file):
        file[at] ^= 1 << draw(st.integers(0, 7))


def cut(draw, file):
    del file[draw(st.integers(0, len(file) - 1)) :]


def cut_in_a_header(draw, file):
    del file[some_header(draw, file) + draw(st.integers(0, HEADER_LEN + 3)) :]


def zero_a_stretch(draw, file):
    start = draw(st.integers(0, len(file) - 1))
    end = min(len(file), start + draw(st.sampled_from([1, 7, 100, BLOCK_LEN])))
    file[start:end] = bytes(end - start)


def zero_the_rest_of_a_block(draw, file):
    start = some_header(draw, file)
    end = min(len(file), start + BLOCK_LEN - start % BLOCK_LEN)
    file[start:end] = bytes(end - start)


def overwrite(draw, file):
    start = draw(st.integers(0, len(file) - 1))
    new = draw(st.binary(min_size=1, max_size=50))[: len(file) - start]
    file[start : start + len(new)] = new


def change_a_length(draw, file):
    start = some_header(draw, file)
    file[start + 4 : start + 6] = draw(st.integers(0, 0xFFFF)).to_bytes(2, "little")


def let_the_last_length_pass_the_end(draw, file):
    """As a flipped bit can: it looks like a torn tail, but is not one."""
    items = list(reference.fragments(bytes(file), verify_checksums=False))
    if items and items[-1].end == len(file) >= items[-1].start + HEADER_LEN:
        high_byte = items[-1].start + 5
        file[high_byte] = min(0x7F, file[high_byte] + draw(st.integers(1, 0x7F)))


def change_a_kind(draw, file):
    file[min(len(file) - 1, some_header(draw, file) + 6)] = draw(st.integers(0, 255))


def put_another_fragment_there(draw, file):
    start = some_header(draw, file)
    length = int.from_bytes(file[start + 4 : start + 6], "little")
    payload = bytes(file[start + HEADER_LEN : start + HEADER_LEN + length])
    part = reference.fragment(draw(st.integers(0, 255)), payload)[: len(file) - start]
    file[start : start + len(part)] = part


def fill_a_trailer(draw, file):
    for end in range(BLOCK_LEN, len(file) + 1, BLOCK_LEN):
        if draw(st.booleans()):
            file[end - draw(st.integers(1, 6)) : end] = b"trailer"[: draw(st.integers(1, 6))]


def swap_blocks(draw, file):
    blocks = [file[at : at + BLOCK_LEN] for at in range(0, len(file), BLOCK_LEN)]
    file[:] = b"".join(draw(st.permutations(blocks)))


def repeat_a_block(draw, file):
    start = draw(st.integers(0, (len(file) - 1) // BLOCK_LEN)) * BLOCK_LEN
    file[start:start] = file[start : start + BLOCK_LEN]


def lose_a_block(draw, file):
    start = draw(st.integers(0, (len(file) - 1) // BLOCK_LEN)) * BLOCK_LEN
    del file[start : start + BLOCK_LEN]


def add_garbage(draw, file):
    file += draw(st.binary(min_size=1, max_size=100))


def add_zeros(draw, file):
    file += bytes(draw(st.sampled_from([1, 6, 7, 8, 1000, BLOCK_LEN, 2 * BLOCK_LEN])))


def add_records(draw, file):
    file += reference.encode(draw(record_lists), len(file))


def add_records_off_the_grid(draw, file):
    file += reference.encode(draw(record_lists))


DAMAGES = [
    flip_a_bit,
    flip_a_bit_of_a_header,
    cut,
    cut_in_a_header,
    zero_a_stretch,
    zero_the_rest_of_a_block,
    overwrite,
    change_a_length,
    let_the_last_length_pass_the_end,
    change_a_kind,
    put_another_fragment_there,
    fill_a_trailer,
    swap_blocks,
    repeat_a_block,
    lose_a_block,
    add_garbage,
    add_zeros,
    add_records,
    add_records_off_the_grid,
]

files = st.one_of(
    damaged_logs(),
    damaged_logs(),
    fragment_soups(),
    st.binary(max_size=200),
    st.builds(reference.encode, record_lists),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "verify_checksums": st.booleans(),
        "record_len_max": st.one_of(st.integers(0, 50), st.integers(0, 3 * BLOCK_LEN)),
    },
)


@st.composite
def files_with_ranges(draw):
    """A file and a range of it, with bounds anywhere, or near the start of an event or a block."""
    file = draw(files)
    edges = [start_of(event) for event in reference.events(file) if not isinstance(event, reference.End)]
    edges += range(0, len(file) + 1, BLOCK_LEN)
    near_edges = st.builds(lambda edge, off: max(0, edge + off), st.sampled_from(edges), st.integers(-8, 8))
    offsets = st.one_of(st.integers(0, len(file) + 10), near_edges)
    # A start after the end is an error, which test_errors.py tests.
    starts = offsets.map(lambda offset: min(offset, len(file)))
    return file, draw(st.fixed_dictionaries({}, optional={"start": starts, "end": offsets}))
